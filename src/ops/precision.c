/* precision.c: the policy of mixed precision, by the names of operations. It is asked where
 * operands are brought to one dtype, so the casts are recorded like any other. */
#include "ops/precision.h"

#include "base/text.h"

#include <string.h>

static const char NARROW[] = "matmul einsum tensordot conv* attention";
static const char WIDE[] = "*cross_entropy mse bce_with_logits huber nll kl_div";

/* The names of all operations that may ask, with spaces between. */
#define FAMILY(...)
#define FUNCTION(name, parameters, mixes, formula) #name " "
static const char NAMES[] =
#include "rules/functions.def"
    ;

/* The next word of a list, and the list behind it; false: there is none. What is too long for a
 * name is cut, and is none. */
typedef char word[64];
static bool next_word(const char **list, word to) {
    *list += strspn(*list, " ");
    size_t n = strcspn(*list, " "), kept = n < sizeof(word) ? n : sizeof(word) - 1;
    memcpy(to, *list, kept);
    to[kept] = 0;
    *list += n;
    return n > 0;
}

/* Is the name one of the list? */
static bool is_listed(const char *list, const char *name) {
    word w;
    while (next_word(&list, w))
        if (cot__matches(w, name)) return true;
    return false;
}

/* Does every word of the list name an operation that may ask? Where not: which. */
static bool names_operations(const char *list, word wrong) {
    while (list && next_word(&list, wrong)) {
        const char *names = NAMES;
        word        name;
        bool        found = false;
        while (!found && next_word(&names, name)) found = cot__matches(wrong, name);
        if (!found) return false;
    }
    return true;
}

cot_dtype cot__precision_of(const cot_tape *t, const char *op, cot_dtype dtype) {
    const cot_precision *p = &t->precision;
    if (p->compute != COT_BF16 && p->compute != COT_F16) return dtype;
    if (dtype == COT_F32) return is_listed(p->narrow ? p->narrow : NARROW, op) ? p->compute : dtype;
    if (dtype == COT_BF16 || dtype == COT_F16) return is_listed(p->wide ? p->wide : WIDE, op) ? COT_F32 : dtype;
    return dtype;
}

/* Is there an operation that both lists name? Which. */
static bool name_both(const cot_precision *how, word which) {
    const char *names = NAMES;
    while (how->narrow && how->wide && next_word(&names, which))
        if (is_listed(how->narrow, which) && is_listed(how->wide, which)) return true;
    return false;
}

static bool is_legal(cot_tape *t, const cot_precision *how) {
    word wrong;
    bool is_float = (unsigned)how->compute < COT_DTYPE_COUNT && cot__dtype_is_float(how->compute), narrow;
    if (!is_float) {
        cot__fail(t, COT_VALUE,
                  "[tape_set_precision] compute is %d, no dtype of floats; COT_BF16 and COT_F16 are asked for, any "
                  "other float for none", (int)how->compute);
        return false;
    }
    narrow = !names_operations(how->narrow, wrong);
    if (!narrow && names_operations(how->wide, wrong)) {
        if (!name_both(how, wrong)) return true;
        cot__fail(t, COT_VALUE,
                  "[tape_set_precision] %s is in both lists, narrow and wide; an operation computes in one of them",
                  wrong);
        return false;
    }
    cot__fail(t, COT_VALUE,
              "[tape_set_precision] \"%s\" in the list `%s` names no operation that asks; matmul to losses do, "
              "elementwise ones compute in the dtype of their operands", wrong, narrow ? "narrow" : "wide");
    return false;
}

static bool can_save(cot_tape *t, cot_dtype d) {
    if (d == COT_F64 || d == COT_F32 || (d == COT_BF16 && !t->cache.limit)) return true;
    if (d != COT_BF16)
        cot__fail(t, COT_VALUE,
                  "[tape_set_precision] saved is %s; COT_BF16 is asked for, COT_F32 or COT_F64 for none",
                  (unsigned)d < COT_DTYPE_COUNT ? cot_dtype_name(d) : "no dtype");
    else
        cot__fail(t, COT_VALUE, "[tape_set_precision] saved is bf16 and the tape has a memory limit, which would "
                                "compute values again from rounded ones; ask for one of them");
    return false;
}

cot_precision cot_tape_set_precision(cot_tape *t, cot_precision how) {
    cot_precision before = {0};
    if (!t) return before;
    before = t->precision;
    if (!is_legal(t, &how) || !can_save(t, how.saved)) return before;
    t->precision = how;
    t->memory.on |= cot__packs(t); /* elements apart from headers, from now on */
    for (int k = 0; k < t->scopes.depth; k++) t->scopes.open[k].packs &= cot__packs(t);
    return before;
}
