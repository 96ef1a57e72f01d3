/* listing.c: joins the tables of the library: one entry for each operation and function. */
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "trace/listing/listing.h"

#include "rules/kinks.h"
#include "trace/operand_letters.h"

#include <string.h>

/* ---- what there is --------------------------------------------------------------------------- */

static const struct function { const char *family, *remarks, *name, *parameters, *formula; } functions[] = {
#define FAMILY(title, text) {title, text, NULL, NULL, NULL},
#define FUNCTION(id, params, mixes, text) {NULL, NULL, #id, params, text},
#include "rules/functions.def"
};

static int structural_named(const char *name) {
    for (int op = OP_structural; op < OP_count; op++)
        if (strcmp(cot__op_of(op)->name, name) == 0) return op;
    return -1;
}

static const struct function *function_named(const char *name) {
    for (int i = 0; i < COUNTOF(functions); i++)
        if (functions[i].name && strcmp(functions[i].name, name) == 0) return &functions[i];
    return NULL;
}

/* The order of the listing: elementwise operations, functions, operations without a function of
 * their name. */
typedef struct entry { int op; const struct function *function; const char *family; } entry;

static int function_count(void) {
    int n = 0;
    for (int i = 0; i < COUNTOF(functions); i++) n += functions[i].name != NULL;
    return n;
}

static bool on_the_tape_only(int op) { return !cot__op_of(op)->planned && !function_named(cot__op_of(op)->name); }

int cot__listing_count(void) {
    int n = OP_elementwise_count + function_count();
    for (int op = OP_structural; op < OP_count; op++) n += on_the_tape_only(op);
    return n;
}

static entry entry_of(int i) {
    if (i < OP_elementwise_count) return (entry){i, NULL, "Elementwise"};
    i -= OP_elementwise_count;
    const char *family = "";
    for (int k = 0; k < COUNTOF(functions); k++) {
        if (functions[k].family) family = functions[k].family;
        if (functions[k].name && i-- == 0) return (entry){structural_named(functions[k].name), &functions[k], family};
    }
    for (int op = OP_structural; op < OP_count; op++)
        if (on_the_tape_only(op) && i-- == 0) return (entry){op, NULL, "On the tape"};
    return (entry){-1, NULL, ""};
}

const char *cot__listing_name(int i) {
    entry e = entry_of(i);
    return e.function ? e.function->name : cot__op_of(e.op)->name;
}

int cot__listing_find(const char *name) {
    if (strncmp(name, "cot_", 4) == 0) name += 4;
    for (int i = 0, n = cot__listing_count(); i < n; i++)
        if (strcmp(cot__listing_name(i), name) == 0) return i;
    return -1;
}

/* ---- conventions and domains ----------------------------------------------------------------- */

static void add_kink(cot__listing *l, const char *condition, const char *convention) {
    if (l->kink_count == COT__LISTING_KINKS) return;
    snprintf(l->kinks[l->kink_count].condition, sizeof l->kinks[0].condition, "%s", condition);
    l->kinks[l->kink_count++].convention = convention;
}

static void kinks_of_elementwise(cot__listing *l, int op) {
    char condition[COT__FORMULA_TEXT];
    for (int k = 0; k < KINK_count; k++)
        if (cot__kinks[k].op == op)
            add_kink(l, cot__formula(op, cot__kinks[k].condition, condition, sizeof condition),
                     cot__kinks[k].convention);
}

/* The convention of an array operation is named after its function or operation: std_0,
 * max_pool_tie. */
static void kinks_of_arrays(cot__listing *l, const char *function, const char *operation) {
    static const struct { const char *id; cot__array_kink_id number; } ids[] = {
#define KINK(...)
#define KINK_OF(id, ...) {#id, ARRAY_KINK_##id},
#include "rules/kinks.def"
    };
    for (int k = 0; k < COUNTOF(ids); k++) {
        char about[64];
        snprintf(about, sizeof about, "%s", ids[k].id);
        *strrchr(about, '_') = 0;
        if (strcmp(about, "cosine") == 0) snprintf(about, sizeof about, "cosine_similarity");
        const cot__array_kink *kink = &cot__array_kinks[ids[k].number];
        if (strcmp(about, function) == 0 || strcmp(about, operation) == 0)
            add_kink(l, kink->condition, kink->convention);
    }
}

static const char *domain_of(int op) {
    switch (op) {
#define DOMAIN(name, where, x, y) case OP_##name: return where;
#include "trace/listing/domains.def"
    default: return "";
    }
}

/* ---- one entry ------------------------------------------------------------------------------- */

/* Rules call the adjoint of the result g; people see z̄, as in the formulas of structural
 * operations. */
static void get_partial(int op, const cot__tree *partial, char *buf, size_t size) {
    char formula[COT__FORMULA_TEXT];
    cot__formula_fill(cot__formula(op, partial, formula, sizeof formula),
                      &(cot__renaming){.count = 1, .letter = {"g"}, .name = {"z̄"}}, buf, size);
}

static void get_elementwise(cot__listing *l, int op) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    size_t                       used = 0;
    l->name = e->name;
    l->arity = e->arity;
    for (int k = 0; k < e->arity; k++) {
        l->operand[k] = cot__operand_name(op, k);
        used += (size_t)snprintf(l->prototype + used, sizeof l->prototype - used, "%scot_var %s", k ? ", " : "(",
                                 l->operand[k]);
    }
    snprintf(l->prototype + used, sizeof l->prototype - used, ")");
    l->parameters = l->prototype;
    cot__formula(op, e->value, l->value, sizeof l->value);
    for (int k = 0; k < e->arity; k++) get_partial(op, e->partial[k], l->partial[k], sizeof l->partial[k]);
    l->domain = domain_of(op);
    kinks_of_elementwise(l, op);
}

/* Is `name` one of the words? */
static bool names(const char *words, const char *name) {
    size_t n = strlen(name);
    for (const char *p = words; p && *p; p += strcspn(p, " "), p += *p == ' ')
        if (strncmp(p, name, n) == 0 && (p[n] == ' ' || !p[n])) return true;
    return false;
}

/* The operation that a function records: the one with its name, or the one whose record names the
 * function. -1: the function is made of others. */
static int operation_behind(const entry *e) {
    for (int op = OP_structural; e->op < 0 && e->function && op < OP_count; op++)
        if (names(cot__op_of(op)->functions, e->function->name)) return op;
    return e->op;
}

/* The rule of a pick is that of its operation. */
static bool differentiable(const cot__op *record) {
    return record->kind != KIND_NONE && record->kind != KIND_SOURCE && record->kind != KIND_PICK;
}

/* The part of the formula before the adjoints; all of it if there are no adjoints. */
static void get_value(const cot__op *record, char *buf, size_t size) {
    const char *formula = record->formula ? record->formula : "";
    if (differentiable(record))
        cot__formula_value(formula, buf, size);
    else
        snprintf(buf, size, "%s", strncmp(formula, "z = ", 4) == 0 ? formula + 4 : formula);
}

void cot__listing_get(int i, cot__listing *l) {
    entry e = entry_of(i);
    *l =
        (cot__listing){.family = e.family, .name = "", .parameters = "", .remark = "", .domain = "", .recorded_as = ""};
    if (e.op >= 0 && e.op < OP_structural) {
        get_elementwise(l, e.op);
        return;
    }
    int            op = operation_behind(&e);
    const cot__op *record = op >= 0 ? cot__op_of(op) : NULL;
    l->name = e.function ? e.function->name : record->name;
    if (e.function) {
        l->parameters = e.function->parameters;
        snprintf(l->value, sizeof l->value, "%s", e.function->formula);
    } else
        get_value(record, l->value, sizeof l->value);
    if (record) {
        l->recorded_as = record->name;
        if (differentiable(record))
            snprintf(l->adjoints, sizeof l->adjoints, "%s", cot__formula_adjoints(record->formula));
        if (e.function) get_value(record, l->recorded_value, sizeof l->recorded_value);
    }
    /* dropout and shuffle have remarks of their own */
    bool constant = strcmp(e.family, "Creation") == 0 || strcmp(e.family, "Random") == 0;
    l->remark = record && record->kind == KIND_NONE ? "no derivative"
                : record || constant                ? "" : "made of other operations, whose rules apply";
    kinks_of_arrays(l, l->name, record ? record->name : "");
}
