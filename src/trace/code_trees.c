/* code_trees.c: the trees of rules.def as expressions of C, in plain arithmetic or in calls of the
 * library; and the names that C has already.
 *
 * Recursive over the tree of one rule, whose depth the table bounds. */
#include "trace/code.h"

#include "rules/elementwise_ids.h"
#include "rules/elementwise_table.h"

#include <string.h>

/* How tightly C binds. */
enum { CHOICE = 1, OR_ELSE, AND_ALSO, EQUALITY, COMPARISON, SUM, PRODUCT, SIGN, ATOM };

/* A word in plain C: an operator between two, or a function; its definition, if libm lacks it. Of
 * smul and sdiv the operator where it does the same, else the function. */
typedef struct word {
    const char *sign;
    int         binds;
    const char *function, *definition;
} word;

static const word words[OP_elementwise_count] = {
    [OP_add] = {" + ", SUM, 0, 0},
    [OP_sub] = {" - ", SUM, 0, 0},
    [OP_mul] = {" * ", PRODUCT, 0, 0},
    [OP_smul] = {" * ", PRODUCT, "smul",
                 "static double smul(double x, double y) { return isnan(x * y) && (x == 0 || y == 0) ? 0 : x * y; }"},
    [OP_div] = {" / ", PRODUCT, 0, 0},
    [OP_sdiv] = {" / ", PRODUCT, "sdiv",
                 "static double sdiv(double x, double y) { return isnan(x / y) && x == 0 ? 0 : x / y; }"},
    [OP_equal] = {" == ", EQUALITY, 0, 0},
    [OP_not_equal] = {" != ", EQUALITY, 0, 0},
    [OP_less] = {" < ", COMPARISON, 0, 0},
    [OP_less_equal] = {" <= ", COMPARISON, 0, 0},
    [OP_greater] = {" > ", COMPARISON, 0, 0},
    [OP_greater_equal] = {" >= ", COMPARISON, 0, 0},
    [OP_logical_and] = {" && ", AND_ALSO, 0, 0},
    [OP_logical_or] = {" || ", OR_ELSE, 0, 0},
    [OP_abs] = {.function = "fabs"},
    [OP_sqrt] = {.function = "sqrt"},
    [OP_cbrt] = {.function = "cbrt"},
    [OP_exp] = {.function = "exp"},
    [OP_exp2] = {.function = "exp2"},
    [OP_expm1] = {.function = "expm1"},
    [OP_log] = {.function = "log"},
    [OP_log2] = {.function = "log2"},
    [OP_log10] = {.function = "log10"},
    [OP_log1p] = {.function = "log1p"},
    [OP_sin] = {.function = "sin"},
    [OP_cos] = {.function = "cos"},
    [OP_tan] = {.function = "tan"},
    [OP_asin] = {.function = "asin"},
    [OP_acos] = {.function = "acos"},
    [OP_atan] = {.function = "atan"},
    [OP_sinh] = {.function = "sinh"},
    [OP_cosh] = {.function = "cosh"},
    [OP_tanh] = {.function = "tanh"},
    [OP_asinh] = {.function = "asinh"},
    [OP_acosh] = {.function = "acosh"},
    [OP_atanh] = {.function = "atanh"},
    [OP_erf] = {.function = "erf"},
    [OP_erfc] = {.function = "erfc"},
    [OP_lgamma] = {.function = "lgamma"},
    [OP_floor] = {.function = "floor"},
    [OP_ceil] = {.function = "ceil"},
    [OP_round] = {.function = "rint"},
    [OP_trunc] = {.function = "trunc"},
    [OP_pow] = {.function = "pow"},
    [OP_atan2] = {.function = "atan2"},
    [OP_hypot] = {.function = "hypot"},
    [OP_fmod] = {.function = "fmod"},
    [OP_fma] = {.function = "fma"},
    [OP_maximum] = {.function = "fmax"},
    [OP_minimum] = {.function = "fmin"},
    [OP_isnan] = {.function = "isnan"},
    [OP_isinf] = {.function = "isinf"},
    [OP_isfinite] = {.function = "isfinite"},
    [OP_square] = {.function = "square", .definition = "static double square(double x) { return x * x; }"},
    [OP_sign] = {.function = "sign", .definition = "static double sign(double x) { return (x > 0) - (x < 0); }"},
    [OP_sigmoid] = {.function = "sigmoid",
                    .definition = "static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) "
                                  ": 1 / (1 + exp(-x)); }"},
    [OP_log_sigmoid] = {.function = "log_sigmoid",
                        .definition = "static double log_sigmoid(double x) { return fmin(x, 0) - "
                                      "log1p(exp(-fabs(x))); }"},
    [OP_softplus] = {.function = "softplus",
                     .definition = "static double softplus(double x) { return fmax(x, 0) + log1p(exp(-fabs(x))); }"},
    [OP_silu] = {.function = "silu", .definition = "static double silu(double x) { return x / (1 + exp(-x)); }"},
    [OP_gelu] = {.function = "gelu",
                 .definition = "static double gelu(double x) { return 0.5 * x * erfc(-0.7071067811865476 * x); }"},
    [OP_mish] = {.function = "mish",
                 .definition = "static double mish(double x) { return x * tanh(fmax(x, 0) + "
                               "log1p(exp(-fabs(x)))); }"},
    [OP_logaddexp] = {.function = "logaddexp",
                      .definition = "static double logaddexp(double x, double y) { return fmax(x, y) + "
                                    "log1p(exp(-fabs(x - y))); }"},
    [OP_remainder] = {.function = "modulo",
                      .definition = "static double modulo(double x, double y) { return x - floor(x / y) * y; }"},
};

const char *cot__c_helper(int op) { return words[op].definition; }

static bool is_said(int op) {
    bool signs = op == OP_where || op == OP_neg || op == OP_logical_not || op == OP_reciprocal || op == OP_rsqrt;
    return signs || words[op].sign || words[op].function;
}

bool cot__c_plain(int op) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    const cot__tree             *trees[] = {e->value, e->partial[0], e->partial[1], e->partial[2]};
    bool                         said = true;
    for (int k = 0; k <= e->arity; k++)
        for (const cot__tree *p = trees[k], *end = p ? cot__tree_after(p) : NULL; p < end; p++)
            said = said && (p->what != TREE_OP || is_said(p->op));
    return said;
}

/* Two capitals or more and no small letter (M_PI, BUFSIZ), or _ as one of the first two (L_tmpnam,
 * _Bool). W1 is nobody's. */
static bool may_be_a_macro(const char *name) {
    int capitals = 0, small = 0;
    for (const char *p = name; *p; p++) capitals += *p >= 'A' && *p <= 'Z', small += *p >= 'a' && *p <= 'z';
    return (capitals > 1 && small == 0) || name[0] == '_' || (name[0] >= 'A' && name[0] <= 'Z' && name[1] == '_');
}

bool cot__c_reserved(const char *name) {
    static const char *const others[] = {
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern",
        "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed",
        "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool",
        "true", "false", "nullptr", "typeof", "alignas", "alignof", "constexpr", "static_assert", "thread_local",
        "asm", "linux", "unix", "NAN", "INFINITY", "NULL", "EOF", "errno", "stdin", "stdout", "stderr", "printf",
        "malloc", "free", "main", "t", "show", "recorded", "by_hand", "math_errhandling"};
    for (int k = 0; k < COUNTOF(others); k++)
        if (strcmp(name, others[k]) == 0) return true;
    for (int op = 0; op < OP_elementwise_count; op++)
        if (words[op].function && strcmp(name, words[op].function) == 0) return true;
    size_t n = strlen(name);
    bool   type = n > 2 && strcmp(name + n - 2, "_t") == 0;
    return type || may_be_a_macro(name) || strncmp(name, "cot_", 4) == 0;
}

const char *cot__c_number(double v, char *buf) {
    if (isnan(v)) snprintf(buf, COT__C_NAME, "NAN");
    else if (isinf(v)) snprintf(buf, COT__C_NAME, v < 0 ? "-INFINITY" : "INFINITY");
    else {
        cot__shortest(v, buf);
        if (!strpbrk(buf, ".e")) strcat(buf, ".0"); /* of 32 bytes that cot__shortest may fill */
    }
    return buf;
}

/* ---- trees ----------------------------------------------------------------------------------- */

typedef struct writing {
    cot__text         *to;
    const cot__c_tree *with;
    bool               missing; /* a function that C lacks */
} writing;

static const cot__tree *operand(const cot__tree *e, int k) {
    for (e++; k > 0; k--) e = cot__tree_after(e);
    return e;
}

/* A number that is known: those of the rule, plain operands, sums and products of them. */
static bool known(const writing *w, const cot__tree *e, double *v) {
    double a, b;
    if (e->what == TREE_NUMBER) return *v = cot__tree_number(e), true;
    if (e->what == TREE_OPERAND && w->with->number[e->op]) return *v = *w->with->number[e->op], true;
    if (e->what != TREE_OP || !known(w, operand(e, 0), &a)) return false;
    if (e->op == OP_neg) return *v = -a, true;
    if (e->op != OP_add && e->op != OP_sub && e->op != OP_mul) return false;
    if (!known(w, operand(e, 1), &b)) return false;
    *v = e->op == OP_add ? a + b : e->op == OP_sub ? a - b : a * b;
    return true;
}

/* The tree itself, or the operand that it is equal to: x^1, 1·x. */
static const cot__tree *plainer(const writing *w, const cot__tree *e) {
    double v;
    while (e->what == TREE_OP && !known(w, e, &v)) {
        bool product = e->op == OP_mul || e->op == OP_smul;
        if (product && known(w, operand(e, 0), &v) && v == 1) e = operand(e, 1);
        else if ((product || e->op == OP_pow) && known(w, operand(e, 1), &v) && v == 1) e = operand(e, 0);
        else break;
    }
    return e;
}

/* ---- where a zero wins ----------------------------------------------------------------------- */

/* A number that stands in the tree: of the rule, of an operand, the result or the adjoint. NULL:
 * it is an operation. */
static const double *value_of(const writing *w, const cot__tree *e, double *buf) {
    if (known(w, e, buf)) return buf;
    return e->what == TREE_OPERAND  ? &w->with->at[e->op]
           : e->what == TREE_RESULT ? &w->with->at_result
           : e->what == TREE_G      ? &w->with->at_adjoint
                                    : NULL;
}

/* No larger magnitude has the tree at this point. INFINITY: it may be infinite, or NaN. */
static double magnitude(const writing *w, const cot__tree *e) {
    double        buf;
    const double *v = value_of(w, e = plainer(w, e), &buf);
    if (v) return isfinite(*v) ? fabs(*v) : INFINITY;
    double a = magnitude(w, operand(e, 0)), most = INFINITY;
    switch (e->op) {
    case OP_neg: case OP_abs: return a;
    case OP_sin: case OP_cos: case OP_tanh: case OP_sigmoid: case OP_erf: case OP_sign: return a < INFINITY ? 1 : a;
    case OP_square: most = a * a; break;
    case OP_add: case OP_sub: most = a + magnitude(w, operand(e, 1)); break;
    case OP_mul: case OP_smul: most = a * magnitude(w, operand(e, 1)); break;
    case OP_where: return fmax(magnitude(w, operand(e, 1)), magnitude(w, operand(e, 2)));
    default: break;
    }
    return isnan(most) ? INFINITY : most;
}

/* Is the tree a number at this point, and not 0? Of the few operations that divisors have. */
static bool is_not_zero(const writing *w, const cot__tree *e) {
    double        buf;
    const double *v = value_of(w, e = plainer(w, e), &buf);
    if (v) return *v != 0 && !isnan(*v);
    if (e->op == OP_neg) return is_not_zero(w, operand(e, 0));
    if (e->op != OP_mul) return false;
    v = value_of(w, plainer(w, operand(e, 1)), &buf);
    return known(w, operand(e, 0), &(double){0}) && is_not_zero(w, operand(e, 0)) && v && fabs(*v) > 1e-200;
}

/* Does smul or sdiv do more than the operator at this point, perhaps? */
static bool zero_may_win(const writing *w, const cot__tree *e) {
    if (e->op == OP_smul) return !(magnitude(w, operand(e, 0)) < INFINITY && magnitude(w, operand(e, 1)) < INFINITY);
    return e->op == OP_sdiv && !is_not_zero(w, operand(e, 1));
}

/* ---- expressions ----------------------------------------------------------------------------- */

static int binding(const writing *w, const cot__tree *e) {
    double v;
    if (known(w, e, &v)) return v < 0 ? SIGN : ATOM;
    if (e->what != TREE_OP || w->with->calls) return ATOM;
    switch (e->op) {
    case OP_where: return CHOICE;
    case OP_neg: case OP_logical_not: return SIGN;
    case OP_reciprocal: case OP_rsqrt: return PRODUCT;
    default: return words[e->op].sign && !zero_may_win(w, e) ? words[e->op].binds : ATOM;
    }
}

static void write(writing *w, const cot__tree *e, int least);

static void write_call(writing *w, const char *prefix, const char *name, const cot__tree *e) {
    cot__putf(w->to, "%s%s(", prefix, name);
    for (int k = 0; k < cot__elementwise_table[e->op].arity; k++) {
        if (k) cot__put(w->to, ", ");
        write(w, operand(e, k), CHOICE);
    }
    cot__put(w->to, ")");
}

static void write_plain(writing *w, const cot__tree *e) {
    const word *in = &words[e->op];
    if (e->op == OP_where) {
        write(w, operand(e, 0), OR_ELSE);
        cot__put(w->to, " ? ");
        write(w, operand(e, 1), OR_ELSE);
        cot__put(w->to, " : ");
        write(w, operand(e, 2), CHOICE);
    } else if (e->op == OP_neg || e->op == OP_logical_not) {
        cot__put(w->to, e->op == OP_neg ? "-" : "!");
        write(w, operand(e, 0), ATOM);
    } else if (e->op == OP_reciprocal || e->op == OP_rsqrt) {
        cot__put(w->to, e->op == OP_rsqrt ? "1.0 / sqrt(" : "1.0 / ");
        write(w, operand(e, 0), e->op == OP_rsqrt ? CHOICE : ATOM);
        if (e->op == OP_rsqrt) cot__put(w->to, ")");
    } else if (in->sign && !zero_may_win(w, e)) {
        write(w, operand(e, 0), in->binds);
        cot__put(w->to, in->sign);
        write(w, operand(e, 1), in->binds + 1);
    } else if (in->function) {
        if (w->with->uses) w->with->uses[e->op] = true;
        write_call(w, "", in->function, e);
    } else
        w->missing = true;
}

static void write(writing *w, const cot__tree *e, int least) {
    char   number[COT__C_NAME];
    double v;
    e = plainer(w, e);
    bool parentheses = binding(w, e) < least;
    if (parentheses) cot__put(w->to, "(");
    if (known(w, e, &v)) cot__put(w->to, cot__c_number(v, number));
    else if (e->what == TREE_OPERAND) cot__put(w->to, w->with->operand[e->op]);
    else if (e->what == TREE_RESULT) cot__put(w->to, w->with->result);
    else if (e->what == TREE_G) cot__put(w->to, w->with->adjoint);
    else if (w->with->calls) write_call(w, "cot_", cot__elementwise_table[e->op].name, e);
    else write_plain(w, e);
    if (parentheses) cot__put(w->to, ")");
}

bool cot__c_tree_put(cot__text *x, const cot__c_tree *with, const cot__tree *tree) {
    writing w = {x, with, false};
    write(&w, tree, CHOICE);
    return !w.missing;
}
