/* gen_ops_header: prints include/cotangent_ops.h from rules.def, operands.def and functions.def,
 * formulas by the library's own printer.
 *
 * Compiled with src/rules/table.c, formula.c and tree.c, not linked with the library: it must run
 * while the header is stale. Run by `make ops-header`; a test compares its output with the
 * checked-in header. */
#include "rules/elementwise_ids.h"
#include "ops/elementwise/elementwise.h"

#include <stdio.h>
#include <string.h>

/* table.c names the records of the structural operations; nothing here reads them. */
#define STRUCTURAL(name) const cot__op cot__op_##name;
#include "rules/ops.def"

/* Values that are words of their own, said in other words. */
static const struct { int op; const char *text; } in_words[] = {
    {OP_log1p, "log(1 + x)"},
    {OP_expm1, "exp(x) - 1"},
    {OP_sigmoid, "1/(1 + exp(-x))"},
    {OP_log_sigmoid, "-log(1 + exp(-x))"},
    {OP_softplus, "log(1 + exp(x))"},
    {OP_gelu, "x·Φ(x), Φ the normal distribution"},
    {OP_gelu_tanh, "x/2·(1 + tanh(sqrt(2/π)·(x + 0.044715·x³)))"},
    {OP_mish, "x·tanh(softplus(x))"},
    {OP_silu, "x·sigmoid(x)"},
    {OP_logaddexp, "log(exp(x) + exp(y))"},
    {OP_atan2, "the angle of the point (x, y), from -π to π"},
    {OP_hypot, "sqrt(x² + y²)"},
    {OP_fmod, "x - y·trunc(x/y): the sign of x"},
    {OP_remainder, "x - y·floor(x/y): the sign of y"},
    {OP_polygamma, "the n-th derivative of ψ at x"},
    {OP_round, "to the nearest integer, halves to even"},
    {OP_clamp, "min(max(x, lo), hi)"},
    {OP_smul, "x·y, where a zero wins over anything, also inf and NaN"},
    {OP_sdiv, "x/y, where a zero x wins over anything, also a zero or NaN y"},
    {OP_fma, "x·y + w, rounded once"},
    {OP_lerp, "x + w·(y - x), exact at both ends"},
};

static const struct function {
    const char *family, *remark; /* a heading, when set */
    const char *name, *parameters;
    int         mixes;
    const char *formula;
} functions[] = {
#define FAMILY(title, remark) {title, remark, NULL, NULL, 0, NULL},
#define FUNCTION(name, parameters, mixes, formula) {NULL, NULL, #name, parameters, mixes, formula},
#include "rules/functions.def"
};

static const char *value_text(int op, char *buf, size_t size) {
    for (int i = 0; i < COUNTOF(in_words); i++)
        if (in_words[i].op == op) return in_words[i].text;
    return cot__formula(op, cot__elementwise_table[op].value, buf, size);
}

/* Columns of n bytes of UTF-8: combining marks (U+0300 to U+036F) and continuation bytes take
 * none. */
static int columns(const char *s, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i], after = (unsigned char)s[i + 1];
        bool          combining = c == 0xCC || (c == 0xCD && after < 0xB0);
        count += (c & 0xC0) != 0x80 && !combining;
    }
    return count;
}

/* Prints a text that begins at column `at` and is followed by `tail` columns, so that lines end by
 * `limit`. Lines are broken at spaces that follow `behind` (' ': at any); the next one begins with
 * `next`. If a break is needed, parts that three spaces set apart get lines of their own, which
 * begin with `part`. */
static void print_broken(const char *text, int at, int tail, int limit, char behind,
                         const char *part, const char *next) {
    bool fits = at + columns(text, (int)strlen(text)) + tail <= limit;
    while (*text) {
        int gap = (int)strspn(text, " "), end = gap;
        while (text[end] && !(text[end] == ' ' && (behind == ' ' || text[end - 1] == behind))) end++;
        int  width  = columns(text, end) + (text[end] ? 0 : tail);
        bool begins = !fits && gap >= 3;
        if (begins || (gap && at + width > limit)) {
            printf("\n%s", begins ? part : next);
            at = (int)strlen(begins ? part : next);
            text += gap, end -= gap;
        }
        printf("%.*s", end, text);
        at += columns(text, end);
        text += end;
    }
}

static void print_comment(const char *text) {
    printf("/* ");
    print_broken(text, 3, 3, 100, ' ', " * ", " * ");
    printf(" */\n");
}

static void print_prototype(const char *name, const char *parameters) {
    char text[1024];
    int  start = snprintf(text, sizeof text, "COT_API cot_var cot_%s", name);
    snprintf(text + start, sizeof text - (size_t)start, "%s;", parameters);
    print_broken(text, 0, 0, 120, ',', "", "    ");
    printf("\n");
}

static void print_elementwise(int op) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    char                         text[1024], comment[2048];
    int                          n = snprintf(comment, sizeof comment, "%s", value_text(op, text, sizeof text));
    for (int k = 0; k < e->arity; k++)
        if (e->partial[k])
            n += snprintf(comment + n, sizeof comment - (size_t)n, "   d/d%s: %s", cot__operand_name(op, k),
                          cot__formula(op, e->partial[k], text, sizeof text));
    print_comment(comment);
    printf("COT_API cot_var cot_%s(", e->name);
    for (int k = 0; k < e->arity; k++) printf("%scot_var %s", k ? ", " : "", cot__operand_name(op, k));
    printf(");\n");
}

static void print_function(const struct function *f) {
    if (f->family) {
        char heading[1024];
        snprintf(heading, sizeof heading, "==== %s ==== %s", f->family, f->remark);
        printf("\n");
        print_comment(heading);
        printf("\n");
    } else {
        print_comment(f->formula);
        print_prototype(f->name, f->parameters);
    }
}

static void print_mixing(int op) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    if (e->arity < 2) return;
    printf("#define cot_%s(", e->name);
    for (int k = 0; k < e->arity; k++) printf("%s%s", k ? ", " : "", cot__operand_name(op, k));
    printf(") COT__SITED((cot_%s)(", e->name);
    for (int k = 0; k < e->arity; k++) printf("%sCOT__MIX(%s)", k ? ", " : "", cot__operand_name(op, k));
    printf("))\n");
}

/* The same of a function: parameters up to the last that mixes keep their names, the others are the
 * macro's dots. */
static void print_mixing_of(const char *name, const char *parameters, int mixes) {
    char        formal[256] = "", actual[512] = "";
    const char *p = parameters + 1, *comma = "";
    for (; mixes > 0; comma = ", ") {
        int length = (int)strcspn(p, ",)"), start = length;
        while (start > 0 && p[start - 1] != ' ' && p[start - 1] != '*') start--;
        bool mixed = strncmp(p, "cot_var ", 8) == 0;
        mixes -= mixed;
        snprintf(formal + strlen(formal), sizeof formal - strlen(formal), "%s%.*s", comma, length - start, p + start);
        snprintf(actual + strlen(actual), sizeof actual - strlen(actual), mixed ? "%sCOT__MIX(%.*s)" : "%s%.*s", comma,
                 length - start, p + start);
        p += length + strspn(p + length, ", ");
    }
    bool more = *p != ')';
    printf("#define cot_%s(%s%s) COT__SITED((cot_%s)(%s%s))\n", name, formal, more ? ", ..." : "", name, actual,
           more ? ", __VA_ARGS__" : "");
}

int main(void) {
    printf("/* cotangent_ops.h: every operation, by family, with its formula. Generated by\n"
           " * tools/gen_ops_header.c from src/rules/rules.def, operands.def and functions.def: do not edit.\n"
           " *\n"
           " * Elementwise operations take scalars, tensors and plain numbers in any mix: shapes broadcast,\n"
           " * dtypes promote. In formulas z is the result, g the incoming tangent or adjoint; [c]·g is g where\n"
           " * c holds and 0 elsewhere; in a derivative a zero times anything is zero. Operations without d/d…\n"
           " * have no derivative: nothing flows through them.\n"
           " * Values are good to 2 ulp, in f64 with a few exceptions: docs/accuracy.md. */\n"
           "#ifndef COTANGENT_H\n"
           "/* This file is a part of it, which it includes where the turn is: after the parts that this one\n"
           " * needs. */\n"
           "#include <cotangent.h>\n#elif !defined(COTANGENT_OPS_H)\n#define COTANGENT_OPS_H\n\n"
           "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* ==== Elementwise ==== */\n\n");
    for (int op = 0; op < OP_elementwise_count; op++) print_elementwise(op);
    for (int i = 0; i < COUNTOF(functions); i++) print_function(&functions[i]);
    printf(
        "\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n"
        "/* ==== Numbers as operands, and source lines ====\n"
        " * for gcc and clang; the functions above work everywhere */\n\n"
        "#if defined(__GNUC__) && !defined(COT_PLAIN)\n"
        "#ifdef __cplusplus\n"
        "#define COT__MIX(x) (x)\n"
        "#else\n"
        "/* The operand is evaluated, and expanded, once: nested calls stay short. As few brackets as can\n"
        " * be: clang nests 256. */\n"
        "#define COT__MIX(x) COT__MIX_IN(x, __COUNTER__)\n"
        "#define COT__MIX_IN(x, n) COT__MIX_AS(x, n)\n"
        "#define COT__MIX_AS(x, n) __extension__({ __auto_type cot__x##n = x; COT__OPERAND(cot__x##n); })\n"
        "/* Numbers by type; anything else, a pointer say, is an error of the compiler. */\n"
        "#define COT__OPERAND(x) _Generic((x), cot_var: cot__as_var, \\\n"
        "    float: cot__as_float, double: cot_number, long double: cot__as_double, _Bool: cot_integer, \\\n"
        "    char: cot_integer, signed char: cot_integer, unsigned char: cot_integer, short: cot_integer, \\\n"
        "    unsigned short: cot_integer, int: cot_integer, unsigned: cot_integer, long: cot_integer, \\\n"
        "    long long: cot_integer, unsigned long: cot__as_unsigned, unsigned long long: cot__as_unsigned)(x)\n"
        "static inline cot_var cot__as_var(cot_var x) { return x; }\n"
        "static inline cot_var cot__as_float(float x) { return cot_number((double)x); }\n"
        "static inline cot_var cot__as_double(long double x) { return cot_number((double)x); }\n"
        "#endif\n\n"
        "#ifdef COT_SOURCE_LINES\n"
        "#define COT__SITED(call) COT__SITED_IN(call, __COUNTER__)\n"
        "#define COT__SITED_IN(call, n) COT__SITED_AS(call, n)\n"
        "#define COT__SITED_AS(call, n) __extension__({ static const cot_site cot__s##n = {__FILE__, __LINE__, "
        "__func__}; \\\n"
        "    cot_sited(call, &cot__s##n); })\n"
        "#else\n"
        "#define COT__SITED(call) (call)\n"
        "#endif\n\n");
    for (int op = 0; op < OP_elementwise_count; op++) print_mixing(op);
    for (int i = 0; i < COUNTOF(functions); i++)
        if (functions[i].mixes) print_mixing_of(functions[i].name, functions[i].parameters, functions[i].mixes);
    printf("\n#ifdef COT_SOURCE_LINES\n");
    for (int op = 0; op < OP_elementwise_count; op++)
        if (cot__elementwise_table[op].arity == 1)
            printf("#define cot_%s(x) COT__SITED((cot_%s)(x))\n", cot__elementwise_table[op].name,
                   cot__elementwise_table[op].name);
    for (int i = 0; i < COUNTOF(functions); i++)
        if (functions[i].name && !functions[i].mixes)
            printf("#define cot_%s(...) COT__SITED((cot_%s)(__VA_ARGS__))\n", functions[i].name, functions[i].name);
    printf("#endif\n#endif\n\n#endif\n");
    return 0;
}
