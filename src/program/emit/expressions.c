/* expressions.c: operations that are done element by element, as C expressions. What an elementwise
 * operation does is the tree of its value in rules.def; words of the tree are C operators or calls
 * of functions in exported.inc.
 *
 * Recursive over the tree of one rule, whose depth the table bounds. */
#include "program/emit/writer.h"
#include "program/show/show.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

/* How a word is spelled, for floats and for integers: an operator between or before operands, or a
 * function. An elementary function has the name of libm's, and maybe a prefix. */
typedef struct word {
    const char *sign, *function, *elementary, *integer;
} word;

static const word words[OP_elementwise_count] = {
    [OP_add]           = {.sign = " + ", .integer = "cot_iadd"},
    [OP_sub]           = {.sign = " - ", .integer = "cot_isub"},
    [OP_mul]           = {.sign = " * ", .integer = "cot_imul"},
    [OP_div]           = {.sign = " / "},
    [OP_smul]          = {.function = "w_smul", .integer = "cot_imul"},
    [OP_sdiv]          = {.function = "w_sdiv"},
    [OP_neg]           = {.integer = "cot_ineg"},
    [OP_abs]           = {.elementary = "fabs", .integer = "cot_iabs"},
    [OP_sign]          = {.function = "w_sign", .integer = "cot_isign"},
    [OP_sqrt]          = {.elementary = "sqrt"},
    [OP_cbrt]          = {.elementary = "cbrt"},
    [OP_square]        = {.function = "w_square", .integer = "cot_isquare"},
    [OP_exp]           = {.elementary = "exp"},
    [OP_exp2]          = {.elementary = "exp2"},
    [OP_expm1]         = {.elementary = "expm1"},
    [OP_log]           = {.elementary = "log"},
    [OP_log2]          = {.elementary = "log2"},
    [OP_log10]         = {.elementary = "log10"},
    [OP_log1p]         = {.elementary = "log1p"},
    [OP_sin]           = {.elementary = "sin"},
    [OP_cos]           = {.elementary = "cos"},
    [OP_tan]           = {.elementary = "tan"},
    [OP_asin]          = {.elementary = "asin"},
    [OP_acos]          = {.elementary = "acos"},
    [OP_atan]          = {.elementary = "atan"},
    [OP_sinh]          = {.elementary = "sinh"},
    [OP_cosh]          = {.elementary = "cosh"},
    [OP_tanh]          = {.elementary = "tanh"},
    [OP_asinh]         = {.elementary = "asinh"},
    [OP_acosh]         = {.elementary = "acosh"},
    [OP_atanh]         = {.elementary = "atanh"},
    [OP_sigmoid]       = {.elementary = "sigmoid"},
    [OP_log_sigmoid]   = {.elementary = "log_sigmoid"},
    [OP_softplus]      = {.elementary = "log1pexp"},
    [OP_gelu]          = {.elementary = "gelu"},
    [OP_gelu_tanh]     = {.elementary = "gelu_tanh"},
    [OP_silu]          = {.elementary = "silu"},
    [OP_mish]          = {.elementary = "mish"},
    [OP_erf]           = {.elementary = "erf"},
    [OP_erfc]          = {.elementary = "erfc"},
    [OP_erfinv]        = {.elementary = "erfinv"},
    [OP_lgamma]        = {.elementary = "lgamma"},
    [OP_digamma]       = {.elementary = "digamma"},
    [OP_polygamma]     = {.function = "w_polygamma"},
    [OP_floor]         = {.elementary = "floor"},
    [OP_ceil]          = {.elementary = "ceil"},
    [OP_round]         = {.elementary = "rint"},
    [OP_trunc]         = {.elementary = "trunc"},
    [OP_pow]           = {.elementary = "pow", .integer = "cot__ipow"},
    [OP_atan2]         = {.elementary = "atan2"},
    [OP_hypot]         = {.elementary = "hypot"},
    [OP_maximum]       = {.function = "w_maximum", .integer = "cot_imaximum"},
    [OP_minimum]       = {.function = "w_minimum", .integer = "cot_iminimum"},
    [OP_fmod]          = {.elementary = "fmod", .integer = "cot__ifmod"},
    [OP_remainder]     = {.elementary = "remainder", .integer = "cot__iremainder"},
    [OP_logaddexp]     = {.elementary = "logaddexp"},
    [OP_fma]           = {.function = "cot_fma", .integer = "cot_ifma"},
    [OP_equal]         = {.sign = " == ", .integer = "cot_iequal"},
    [OP_not_equal]     = {.sign = " != ", .integer = "cot_inot_equal"},
    [OP_less]          = {.sign = " < ", .integer = "cot_iless"},
    [OP_less_equal]    = {.sign = " <= ", .integer = "cot_iless_equal"},
    [OP_greater]       = {.sign = " > ", .integer = "cot_igreater"},
    [OP_greater_equal] = {.sign = " >= ", .integer = "cot_igreater_equal"},
    [OP_isnan]         = {.integer = "cot_inever"},
    [OP_isinf]         = {.integer = "cot_inever"},
    [OP_isfinite]      = {.integer = "cot_ialways"},
    [OP_logical_and]   = {.sign = " && "},
    [OP_logical_or]    = {.sign = " || "},
};

/* ---- calls ----------------------------------------------------------------------------------- */

void cot__put_call(cot__writer *w, const char *name) {
    cot__parts_need(&w->parts, name);
    cot__putf(w->to, "%s(", name);
}

/* Exact, or rounded once, whoever computes them; and those that libm has. */
static bool is_in(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *s = strstr(list, name); s; s = strstr(s + 1, name))
        if ((s == list || s[-1] == ' ') && (s[n] == ' ' || s[n] == 0)) return true;
    return false;
}

void cot__put_elementary(cot__writer *w, const char *name, cot_dtype as) {
    const char *exact = "fabs sqrt floor ceil rint trunc",
               *libm  = "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh "
                        "atanh erf erfc cbrt pow atan2 hypot lgamma fmod",
               *plain = "erfinv lgamma digamma fmod remainder"; /* which vmath.h has not */
    bool      theirs  = is_in(exact, name) || (w->o->libm && is_in(libm, name));
    char      full[32];
    cot__text text = cot__text_buffer(full, sizeof full);
    if (w->vector && !theirs && !is_in(plain, name))
        cot__putf(&text, "%s%s%s", name, is_in("sin cos", name) ? "_near" : "", as == COT_F32 ? "_vf32" : "_vf64");
    else
        cot__putf(&text, "%s%s%s", is_in("sqrt", name) ? "cot_" : theirs ? "" : "cot__", name,
                  as == COT_F32 ? "f" : "");
    cot__put_call(w, full);
}

/* ---- trees ----------------------------------------------------------------------------------- */

/* What the operands of a tree are: those of the operation, or trees around it. */
typedef struct scope {
    const struct scope  *outer;
    const cot__tree     *operand[3];
    cot__writer         *w;
    uint32_t             k;
    const cot__at_index *at;
    cot_dtype            as;    /* the type in which it is computed */
    const cot__tree     *whole; /* the tree that needs no parentheses around it; NULL: all do */
} scope;

static void put_tree(const scope *s, const cot__tree *e);

static bool is_test(const cot__tree *e) { return e->what == TREE_OP && cot__op_is_test(e->op); }

static const cot__tree *operand(const cot__tree *e, int k) {
    for (e++; k > 0; k--) e = cot__tree_after(e);
    return e;
}

/* Something true or false, as C has it. */
static void put_condition(const scope *s, const cot__tree *e);

static void put_arguments(const scope *s, const cot__tree *e) {
    for (int k = 0; k < cot__elementwise_table[e->op].arity; k++) {
        cot__put(s->w->to, k ? ", " : "");
        put_tree(s, operand(e, k));
    }
    cot__put(s->w->to, ")");
}

/* Integers are compared by calls: compilers know the range of short ones, and that x < x is false,
 * and warn of comparisons that this decides. */
static void put_test(const scope *s, const cot__tree *e) {
    cot__text  *to      = s->w->to;
    const char *sign    = words[e->op].sign;
    bool        logical = e->op == OP_logical_and || e->op == OP_logical_or;
    bool        real    = cot__dtype_is_float(s->as);
    if (logical && s->w->vector) sign = e->op == OP_logical_and ? " & " : " | ";
    cot__put(to, "(");
    if (!real && words[e->op].integer) {
        cot__put_call(s->w, words[e->op].integer);
        put_arguments(s, e);
    } else if (e->op == OP_isnan || e->op == OP_isinf || e->op == OP_isfinite) {
        cot__putf(to, "%s(", cot__elementwise_table[e->op].name), put_tree(s, operand(e, 0)), cot__put(to, ") != 0");
    } else if (e->op == OP_logical_not) {
        cot__put(to, "!");
        put_condition(s, operand(e, 0));
    } else
        for (int k = 0; k < 2; k++) {
            if (k) cot__put(to, sign);
            if (logical)
                put_condition(s, operand(e, k));
            else
                put_tree(s, operand(e, k));
        }
    cot__put(to, ")");
}

static void put_condition(const scope *s, const cot__tree *e) {
    /* the condition of `where` is a bool, whatever the others are */
    if (is_test(e))
        put_test(s, e);
    else if (e->what == TREE_OPERAND && s->outer)
        put_condition(s->outer, s->operand[e->op]);
    else if (e->what == TREE_OPERAND) {
        uint32_t  x = cot__operation_operand(s->w->p, s->k)[e->op];
        cot_dtype d = x == COT__NO_VALUE ? s->as : cot__value_view(s->w->p, x).dtype;
        cot__put(s->w->to, "(");
        cot__put_operand(s->w, s->k, e->op, s->at, d);
        cot__put(s->w->to, " != 0)");
    } else {
        cot__put(s->w->to, "(");
        put_tree(s, e);
        cot__put(s->w->to, " != 0)");
    }
}

/* In vectors, those of rules/words/choices.h without short cuts. */
static void put_function(const scope *s, const cot__tree *e) {
    static const char choices[] = "w_sign w_square w_smul w_sdiv w_maximum w_minimum";
    char      full[32];
    cot__text text  = cot__text_buffer(full, sizeof full);
    bool      fused = e->op == OP_fma, single = s->as == COT_F32;
    bool      straight = s->w->vector && is_in(choices, words[e->op].function);
    cot__putf(&text, "%s%s%s", words[e->op].function, fused ? "" : straight ? "_v" : "_",
              fused ? (single ? "f" : "") : single ? "f32" : "f64");
    cot__put_call(s->w, full);
    put_arguments(s, e);
}

/* As a call, in which all three are evaluated: what is loaded in one case only keeps a loop from
 * becoming vectors. */
static void put_select(const scope *s, const cot__tree *e) {
    bool vector = s->w->vector;
    if (vector)
        cot__put_call(s->w, s->as == COT_F32 ? "cot_select_f32" : s->as == COT_F64 ? "cot_select_f64" : "cot_iselect");
    put_condition(s, operand(e, 0));
    cot__put(s->w->to, vector ? ", " : " ? ");
    put_tree(s, operand(e, 1));
    cot__put(s->w->to, vector ? ", " : " : ");
    put_tree(s, operand(e, 2));
    if (vector) cot__put(s->w->to, ")");
}

/* a ? b : c, a sign between two, a sign before one, 1/x */
static bool put_signs(const scope *s, const cot__tree *e) {
    cot__text  *to   = s->w->to;
    bool        real = cot__dtype_is_float(s->as), one = e->op == OP_reciprocal || e->op == OP_rsqrt;
    const char *sign = words[e->op].sign;
    if (e->op == OP_smul && e == s->whole && s->w->plain) sign = " * ";
    bool        two = sign && real, before = real && (e->op == OP_neg || one);
    const char *open = e == s->whole ? "" : "(", *close = e == s->whole ? "" : ")";
    if (e->op != OP_where && !two && !before) return false;
    cot__put(to, open);
    if (e->op == OP_where) put_select(s, e);
    else {
        cot__put(to, two ? "" : !one ? "-" : s->as == COT_F32 ? "1.0f / " : "1.0 / ");
        if (e->op == OP_rsqrt) cot__put_elementary(s->w, "sqrt", s->as);
        put_tree(s, operand(e, 0));
        if (e->op == OP_rsqrt) cot__put(to, ")");
        if (two) cot__put(to, sign), put_tree(s, operand(e, 1));
    }
    cot__put(to, close);
    return true;
}

static void put_integer(const scope *s, const cot__tree *e) {
    if (words[e->op].integer) {
        cot__put_call(s->w, words[e->op].integer);
        put_arguments(s, e);
    } else
        put_tree(s, operand(e, 0)); /* floor, ceil, round, trunc */
}

/* Another operation of the table, in its own terms. */
static void put_inner(const scope *s, const cot__tree *e) {
    scope inner = {.outer = s, .w = s->w, .k = s->k, .at = s->at, .as = s->as};
    for (int k = 0; k < cot__elementwise_table[e->op].arity; k++) inner.operand[k] = operand(e, k);
    put_tree(&inner, cot__elementwise_table[e->op].value);
}

static bool is_word(int op, bool real) {
    const cot__tree *value = cot__elementwise_table[op].value;
    return (value->what == TREE_OP && value->op == op) || (!real && words[op].integer);
}

static void put_operation(const scope *s, const cot__tree *e) {
    bool real = cot__dtype_is_float(s->as);
    if (!is_word(e->op, real))
        put_inner(s, e);
    else if (is_test(e)) {
        cot__putf(s->w->to, "(%s)", cot__emit_type(s->as));
        put_test(s, e);
    } else if (put_signs(s, e))
        ;
    else if (!real)
        put_integer(s, e);
    else if (words[e->op].function)
        put_function(s, e);
    else {
        cot__put_elementary(s->w, words[e->op].elementary, s->as);
        put_arguments(s, e);
    }
}

static void put_number(const scope *s, const cot__tree *e) {
    double  d = cot__tree_number(e);
    float   f = (float)d;
    int64_t i = (int64_t)d;
    cot__emit_literal(s->w->to, s->as, s->as == COT_F64 ? (void *)&d : s->as == COT_F32 ? (void *)&f : (void *)&i);
}

static void put_tree(const scope *s, const cot__tree *e) {
    if (e->what == TREE_NUMBER)
        put_number(s, e);
    else if (e->what == TREE_OP)
        put_operation(s, e);
    else if (s->outer)
        put_tree(s->outer, s->operand[e->op]);
    else
        cot__put_operand(s->w, s->k, e->op, s->at, s->as);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A value of type `as` becomes one of type `to`: text before it, text behind it. */
static void put_conversion(cot__writer *w, cot_dtype from, cot_dtype to) {
    bool real = cot__dtype_is_float(from);
    if (to == COT_F16 || to == COT_BF16) {
        const char *name = cot__dtype_name(to), *by = from == COT_F64 ? "f64" : real ? "f32" : "i64";
        char        full[32];
        cot__text   text = cot__text_buffer(full, sizeof full);
        cot__putf(&text, "%s%s_from_%s", real ? "cot__" : "", name, by);
        cot__put_call(w, full);
    } else if (to == COT_BOOL)
        cot__put(w->to, "(uint8_t)(0 != ");
    else if (cot__dtype_is_float(to))
        cot__putf(w->to, "(%s)(", cot__emit_type(to));
    else if (real) {
        cot__put_call(w, to == COT_I64 ? "saturate_i64" : to == COT_I32 ? "saturate_i32" : "saturate_u8");
        cot__put(w->to, "(double)");
    } else if (to == COT_I64)
        cot__put(w->to, "(int64_t)(");
    else if (to == COT_I32)
        cot__put_call(w, "cot_i32_from_i64");
    else
        cot__put(w->to, "(uint8_t)(uint64_t)(");
}

static cot_dtype computed_in(const cot__writer *w, uint32_t k) {
    const uint32_t *x = cot__operation_operand(w->p, k);
    for (int i = w->p->operation[k].op == OP_where; i < cot__operation_operands(w->p, k); i++)
        if (x[i] != COT__NO_VALUE) return cot__dtype_compute(cot__value_view(w->p, x[i]).dtype);
    return COT_F64;
}

static void put_elementwise(cot__writer *w, uint32_t k, const cot__at_index *at) {
    int              op       = w->p->operation[k].op;
    cot_dtype        z        = cot__value_view(w->p, w->p->operation[k].result).dtype;
    const cot__tree *value    = cot__elementwise_table[op].value;
    scope            s        = {.w = w, .k = k, .at = at, .as = computed_in(w, k), .whole = value};
    bool             converts = z != s.as && !is_test(value);
    if (converts) put_conversion(w, s.as, z);
    if (is_test(value))
        cot__put(w->to, "(uint8_t)"), put_test(&s, value);
    else
        put_tree(&s, value);
    if (converts) cot__put(w->to, ")");
}

void cot__put_expression(cot__writer *w, uint32_t k, const cot__at_index *at) {
    uint32_t  x = cot__operation_operand(w->p, k)[0];
    cot_dtype z = cot__value_view(w->p, w->p->operation[k].result).dtype;
    if (w->p->operation[k].op < OP_structural)
        put_elementwise(w, k, at);
    else {
        cot_dtype from = cot__value_view(w->p, x).dtype; /* cast, copy */
        bool half = from != z && (from == COT_F16 || from == COT_BF16);
        if (from != z) put_conversion(w, from, z);
        if (half) cot__put_call(w, from == COT_F16 ? "cot__f32_from_f16" : "cot__f32_from_bf16");
        cot__put_element(w, x, at);
        if (half) cot__put(w->to, ")");
        if (from != z) cot__put(w->to, ")");
    }
}

/* ---- formulas -------------------------------------------------------------------------------- */

static uint32_t root_in(const void *writer, uint32_t value) {
    return cot__root_of(&((const cot__writer *)writer)->layout, value);
}

static bool is_inside(const void *writer, uint32_t root) {
    const cot__writer *w = writer;
    if (cot__value_origin(w->p, root) != COT__FROM_OPERATION) return false;
    uint32_t k      = cot__value_maker(w->p, root);
    bool     scalar = cot__value_view(w->p, root).ndim == 0;
    return cot__is_by_element(w->p, k) && (w->loop ? w->layout.block[k] == w->loop && !scalar : scalar);
}

static void put_name(void *writer, uint32_t root) { cot__put_name(writer, root); }

void cot__put_formula(cot__writer *w, uint32_t value) {
    cot__formula_style s = {w->p, w->to, w, root_in, is_inside, put_name, 5};
    cot__put_formula_of(&s, value);
}
