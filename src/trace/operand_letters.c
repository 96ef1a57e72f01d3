/* operand_letters.c: formulas of structural operations taken apart. They are texts, in which a
 * letter stands for an operand. */
#include "trace/operand_letters.h"

#include "base/text.h"

#include <string.h>

/* Operands in order; an operation that is not here has x, y, w. */
static const char *const letters[OP_count] = {
    [OP_matmul] = "a b",
    [OP_take] = "x indices", [OP_take_along_axis] = "x indices",
    [OP_scatter_add] = "x indices u", [OP_scatter_add_along] = "x indices u",
    [OP_softmax_cross_entropy] = "x q", [OP_cross_entropy] = "p q",
    [OP_recurrence] = "a b",
    [OP_layer_norm] = "x w b", [OP_rms_norm] = "x w", [OP_norm_back] = "x g w", [OP_norm_weights] = "x g",
    [OP_attention_lse] = "q k", [OP_attention] = "q k v lse b b", [OP_attention_backward] = "q k v z g lse b b",
    [OP_lu_factors] = "a", [OP_lu_permutation] = "a", [OP_lu] = "a f", [OP_lu_solve] = "a b f p",
    [OP_det] = "a f p", [OP_logabsdet] = "a f p", [OP_triangular_solve] = "a b",
    [OP_cholesky] = "a", [OP_qr] = "a", [OP_eigh] = "a", [OP_svd] = "a", [OP_cofactors] = "a s",
    [OP_conv] = "x w", [OP_conv_transpose] = "x w",
    [OP_max_pool] = "x index", [OP_max_unpool] = "x index",
};

const char *cot__operand_letter(int op, int k, int n, char *buf) {
    static const char *const usual[] = {"x", "y", "w"};
    if (op < OP_elementwise_count) return cot__operand_name(op, k);
    if (op == OP_concat || op == OP_sum_of || op == OP_logsumexp_of) return "x";
    if (op == OP_dot_of) return k < n / 2 ? "x" : "y";
    const char *p = letters[op];
    for (int at = 0; p && *p; at++) {
        size_t length = strcspn(p, " ");
        if (at == k) {
            snprintf(buf, 16, "%.*s", (int)length, p);
            return buf;
        }
        p += length + (p[length] == ' ');
    }
    if (!letters[op] && k < 3 && n <= 3) return usual[k];
    snprintf(buf, 16, "x%d", k);
    return buf;
}

int cot__barred(const char *s, const char *letter) {
    static const struct { const char *letter, *barred; } one[] = {
        {"a", "\xc4\x81"}, {"u", "\xc5\xab"}, {"y", "\xc8\xb3"}, {"g", "\xe1\xb8\xa1"}};
    size_t n = strlen(letter);
    if (strncmp(s, letter, n) == 0 && strncmp(s + n, COT__BAR, 2) == 0) return (int)n + 2;
    for (int k = 0; k < COUNTOF(one); k++)
        if (strcmp(letter, one[k].letter) == 0 && strncmp(s, one[k].barred, strlen(one[k].barred)) == 0)
            return (int)strlen(one[k].barred);
    return 0;
}

void cot__formula_value(const char *formula, char *buf, size_t size) {
    const char *end = formula ? strstr(formula, "; ") : NULL;
    buf[0] = 0;
    if (!formula) return;
    if (strncmp(formula, "z = ", 4) == 0) formula += 4;
    snprintf(buf, size, "%.*s", end ? (int)(end - formula) : (int)strlen(formula), formula);
}

const char *cot__formula_adjoints(const char *formula) {
    const char *at = formula ? strstr(formula, "; ") : NULL;
    return at ? at + 2 : "";
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The next comma or semicolon outside of brackets, or the end. */
static const char *clause_end(const char *s) {
    for (int depth = 0; *s; s++) {
        depth += (*s == '(' || *s == '[') - (*s == ')' || *s == ']');
        if (depth == 0 && (*s == ',' || *s == ';') && s[1] == ' ') break;
    }
    return s;
}

/* The end of the part that begins at s. A clause without an equals sign only explains what is
 * before it: "Φ: lower half". */
static const char *part_end(const char *s) {
    for (s = clause_end(s); *s;) {
        const char *end = clause_end(s + 2), *equals = strstr(s + 2, "= ");
        if (equals && equals < end) break;
        s = end;
    }
    return s;
}

static bool holds(const char *s, size_t n, const char *what, size_t length) {
    for (size_t i = 0; length && i + length <= n; i++)
        if (memcmp(s + i, what, length) == 0) return true;
    return false;
}

static void append(cot__text *x, const char *s, size_t n) {
    for (char piece[64]; n > 0;) {
        size_t take = n < sizeof piece ? n : sizeof piece - 1;
        while (take < n && ((unsigned char)s[take] & 0xc0) == 0x80) take--;
        memcpy(piece, s, take);
        piece[take] = 0;
        cot__put(x, piece);
        s += take, n -= take;
    }
}

void cot__formula_part(const char *adjoints, const char *letter, char *buf, size_t size) {
    cot__text   x = cot__text_buffer(buf, size);
    const char *found = NULL;
    size_t      length = 0;
    for (const char *p = adjoints; *p && !found;) {
        const char *end = part_end(p);
        int         bar = cot__barred(p, letter);
        if (bar) {
            found = strncmp(p + bar, " += ", 4) == 0 ? p + bar + 4 : p;
            length = (size_t)(end - found);
        }
        p = *end ? end + 2 : end;
    }
    if (!found) {
        cot__put(&x, adjoints);
        return;
    }
    append(&x, found, length);
    for (const char *p = adjoints; *p;) { /* definitions: "h = z̄·w" */
        const char *end = part_end(p), *equals = strstr(p, " = "), *plus = strstr(p, " += ");
        if (equals && equals < end && (!plus || plus > equals) && holds(found, length, p, (size_t)(equals - p)))
            cot__put(&x, ", "), append(&x, p, (size_t)(end - p));
        p = *end ? end + 2 : end;
    }
}

/* ---- names for letters ----------------------------------------------------------------------- */

static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void cot__formula_fill(const char *rule, const cot__renaming *with, char *buf, size_t size) {
    cot__text x = cot__text_buffer(buf, size);
    char      before = ' ';
    for (const char *p = rule; *p;) {
        int took = 0;
        for (int k = 0; k < with->count && !took && !in_word(before); k++) {
            size_t n = strlen(with->letter[k]);
            if ((took = cot__barred(p, with->letter[k])) != 0)
                cot__put(&x, with->name[k]), cot__put(&x, COT__BAR);
            else if (strncmp(p, with->letter[k], n) == 0 && !in_word(p[n])) {
                cot__put(&x, with->name[k]);
                took = (int)n;
            }
        }
        if (!took) {
            took = 1;
            while (((unsigned char)p[took] & 0xc0) == 0x80) took++;
            append(&x, p, (size_t)took);
        }
        before = p[took - 1];
        p += took;
    }
}
