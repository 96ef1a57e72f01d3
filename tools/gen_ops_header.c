/* gen_ops_header: prints include/cotangent_ops.h from rules.def and functions.def.
 *
 * The text meaning of the rules: every word becomes a string literal, so a formula is built by the compiler's own
 * concatenation. Run by `make ops-header`; a test compares the output with the checked-in header. */
#include <stdio.h>
#include <string.h>

#define X "x"
#define Y "y"
#define W "w"
#define Z "z"
#define G "g"
#define K(c) #c
#define NONE NULL
#define CALL1(f, a) f "(" a ")"
#define CALL2(f, a, b) f "(" a ", " b ")"
#define INFIX(a, o, b) "(" a " " o " " b ")"
#define GATE(c, g) "[" c "]·" g
#define NEG(a) "-" a
#define ABS(a) "|" a "|"
#define SIGN(a) CALL1("sign", a)
#define SQRT(a) CALL1("sqrt", a)
#define RSQRT(a) "1/sqrt(" a ")"
#define CBRT(a) CALL1("cbrt", a)
#define SQUARE(a) a "²"
#define RECIPROCAL(a) "1/" a
#define EXP(a) CALL1("exp", a)
#define EXP2(a) "2^" a
#define EXPM1(a) CALL1("expm1", a)
#define LOG(a) CALL1("log", a)
#define LOG2(a) CALL1("log2", a)
#define LOG10(a) CALL1("log10", a)
#define LOG1P(a) "log(1 + " a ")"
#define SIN(a) CALL1("sin", a)
#define COS(a) CALL1("cos", a)
#define TAN(a) CALL1("tan", a)
#define ASIN(a) CALL1("asin", a)
#define ACOS(a) CALL1("acos", a)
#define ATAN(a) CALL1("atan", a)
#define SINH(a) CALL1("sinh", a)
#define COSH(a) CALL1("cosh", a)
#define TANH(a) CALL1("tanh", a)
#define ASINH(a) CALL1("asinh", a)
#define ACOSH(a) CALL1("acosh", a)
#define ATANH(a) CALL1("atanh", a)
#define SIGMOID(a) CALL1("sigmoid", a)
#define LOG_SIGMOID(a) CALL1("log sigmoid", a)
#define SOFTPLUS(a) CALL1("softplus", a)
#define GELU(a) a "·Φ(" a ")"
#define GELU_TANH(a) a "/2·(1 + tanh(sqrt(2/π)(" a " + 0.044715" a "³)))"
#define MISH(a) a "·tanh(softplus(" a "))"
#define ERF(a) CALL1("erf", a)
#define ERFC(a) CALL1("erfc", a)
#define ERFINV(a) CALL1("erfinv", a)
#define LGAMMA(a) "log|Γ(" a ")|"
#define DIGAMMA(a) "ψ(" a ")"
#define POLYGAMMA(n, a) CALL2("polygamma", n, a)
#define FLOOR(a) CALL1("floor", a)
#define CEIL(a) CALL1("ceil", a)
#define ROUND(a) CALL1("round", a)
#define TRUNC(a) CALL1("trunc", a)
#define ISNAN(a) CALL1("isnan", a)
#define ISINF(a) CALL1("isinf", a)
#define ISFINITE(a) CALL1("isfinite", a)
#define NOT(a) "!" a
#define ADD(a, b) INFIX(a, "+", b)
#define SUB(a, b) INFIX(a, "-", b)
#define MUL(a, b) a "·" b
#define DIV(a, b) INFIX(a, "/", b)
#define SMUL(a, b) a "·" b
#define SDIV(a, b) INFIX(a, "/", b)
#define POW(a, b) a "^" b
#define ATAN2(a, b) CALL2("atan2", a, b)
#define HYPOT(a, b) CALL2("hypot", a, b)
#define MAXIMUM(a, b) CALL2("max", a, b)
#define MINIMUM(a, b) CALL2("min", a, b)
#define FMOD(a, b) CALL2("fmod", a, b)
#define REMAINDER(a, b) CALL2("remainder", a, b)
#define LOGADDEXP(a, b) "log(exp(" a ") + exp(" b "))"
#define EQ(a, b) INFIX(a, "=", b)
#define NE(a, b) INFIX(a, "≠", b)
#define LT(a, b) INFIX(a, "<", b)
#define LE(a, b) INFIX(a, "≤", b)
#define GT(a, b) INFIX(a, ">", b)
#define GE(a, b) INFIX(a, "≥", b)
#define AND(a, b) INFIX(a, "and", b)
#define OR(a, b) INFIX(a, "or", b)
#define WHERE(c, a, b) "(" c " ? " a " : " b ")"
#define CLAMP(a, b, c) "clamp(" a ", " b ", " c ")"
#define FMA(a, b, c) "(" a "·" b " + " c ")"
#define UNARY(name, cls, value, dx, lo, hi) {#name, 1, value, {dx, NULL, NULL}},
#define BINARY(name, cls, value, dx, dy, lo, hi) {#name, 2, value, {dx, dy, NULL}},
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi) {#name, 3, value, {dx, dy, dw}},

static const struct elementwise {
    const char *name;
    int         arity;
    const char *value, *partial[3];
} elementwise[] = {
#include "ops/rules.def"
};

static const struct function {
    const char *family, *remark; /* a heading, when set */
    const char *name, *parameters;
    int         mixes;
    const char *formula;
} functions[] = {
#define FAMILY(title, remark) {title, remark, NULL, NULL, 0, NULL},
#define FUNCTION(name, parameters, mixes, formula) {NULL, NULL, #name, parameters, mixes, formula},
#include "ops/functions.def"
};

#define COUNTOF(a) (sizeof(a) / sizeof(*(a)))

/* An outermost pair of brackets says nothing: "(x + y)" reads better as "x + y". */
static void print_bare(const char *text) {
    size_t n = strlen(text);
    int    depth = 0;
    for (size_t i = 0; i < n && text[0] == '('; i++) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth == 0) {
            if (i + 1 == n) {
                printf("%.*s", (int)(n - 2), text + 1);
                return;
            }
            break;
        }
    }
    printf("%s", text);
}

static void print_elementwise(const struct elementwise *e) {
    static const char *operands[] = {"cot_var x", "cot_var x, cot_var y", "cot_var x, cot_var y, cot_var w"};
    printf("/* ");
    print_bare(e->value);
    for (int k = 0; k < e->arity; k++)
        if (e->partial[k]) {
            printf("   d/d%c: ", "xyw"[k]);
            print_bare(e->partial[k]);
        }
    printf(" */\nCOT_API cot_var cot_%s(%s);\n", e->name, operands[e->arity - 1]);
}

static void print_mixing(const char *name, int n) {
    if (n == 2) printf("#define cot_%s(x, y) COT__SITED((cot_%s)(COT__MIX(x), COT__MIX(y)))\n", name, name);
    if (n == 3)
        printf("#define cot_%s(x, y, w) COT__SITED((cot_%s)(COT__MIX(x), COT__MIX(y), COT__MIX(w)))\n", name, name);
}

int main(void) {
    printf("/* cotangent_ops.h: every operation, by family, with its formula. Generated by tools/gen_ops_header.c from src/ops/rules.def\n"
           " * and src/ops/functions.def: do not edit.\n"
           " *\n"
           " * Elementwise operations take scalars, tensors and plain numbers in any mix: shapes broadcast, dtypes promote. x y w are\n"
           " * the operands, z the result, g the incoming tangent or adjoint; [c]·g is g where c holds and 0 elsewhere; in a derivative\n"
           " * a zero times anything is zero. Operations without d/d… have no derivative: nothing flows through them. */\n"
           "#ifndef COTANGENT_OPS_H\n#define COTANGENT_OPS_H\n\n#ifndef COTANGENT_H\n#include <cotangent.h>\n#endif\n\n"
           "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* ==== Elementwise ==== */\n\n");
    for (size_t i = 0; i < COUNTOF(elementwise); i++) print_elementwise(&elementwise[i]);
    for (size_t i = 0; i < COUNTOF(functions); i++) {
        const struct function *f = &functions[i];
        if (f->family)
            printf("\n/* ==== %s ==== %s */\n\n", f->family, f->remark);
        else
            printf("/* %s */\nCOT_API cot_var cot_%s%s;\n", f->formula, f->name, f->parameters);
    }
    printf("\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n\n"
           "/* ==== Numbers as operands, and source lines ==== (gcc and clang; the functions above work everywhere) */\n\n"
           "#if defined(__GNUC__) && !defined(COT_PLAIN)\n"
           "#ifdef __cplusplus\n"
           "#define COT__MIX(x) (x)\n"
           "#else\n"
           "/* The operand is evaluated, and expanded, once: nested calls stay short. As few brackets as can be: clang nests 256. */\n"
           "#define COT__MIX(x) COT__MIX_IN(x, __COUNTER__)\n"
           "#define COT__MIX_IN(x, n) COT__MIX_AS(x, n)\n"
           "#define COT__MIX_AS(x, n) __extension__({ __auto_type cot__x##n = x; COT__OPERAND(cot__x##n); })\n"
           "#define COT__OPERAND(x) _Generic((x), cot_var: cot__as_var, float: cot_number, double: cot_number, \\\n"
           "    long double: cot_number, default: cot_integer)(x)\n"
           "static inline cot_var cot__as_var(cot_var x) { return x; }\n"
           "#endif\n\n"
           "#ifdef COT_SOURCE_LINES\n"
           "#define COT__SITED(call) COT__SITED_IN(call, __COUNTER__)\n"
           "#define COT__SITED_IN(call, n) COT__SITED_AS(call, n)\n"
           "#define COT__SITED_AS(call, n) __extension__({ static const cot_site cot__s##n = {__FILE__, __LINE__, __func__}; \\\n"
           "    cot_sited(call, &cot__s##n); })\n"
           "#else\n"
           "#define COT__SITED(call) (call)\n"
           "#endif\n\n");
    for (size_t i = 0; i < COUNTOF(elementwise); i++) print_mixing(elementwise[i].name, elementwise[i].arity);
    for (size_t i = 0; i < COUNTOF(functions); i++)
        if (functions[i].mixes) print_mixing(functions[i].name, functions[i].mixes);
    printf("\n#ifdef COT_SOURCE_LINES\n");
    for (size_t i = 0; i < COUNTOF(elementwise); i++)
        if (elementwise[i].arity == 1)
            printf("#define cot_%s(x) COT__SITED((cot_%s)(x))\n", elementwise[i].name, elementwise[i].name);
    for (size_t i = 0; i < COUNTOF(functions); i++)
        if (functions[i].name && !functions[i].mixes)
            printf("#define cot_%s(...) COT__SITED((cot_%s)(__VA_ARGS__))\n", functions[i].name, functions[i].name);
    printf("#endif\n#endif\n\n#endif\n");
    return 0;
}
