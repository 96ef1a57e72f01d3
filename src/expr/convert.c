/* convert.c: turns items of the stack into values of C. */
#include "expr/program.h"

#include "base/text.h"
#include "ops/structural.h"

#include <string.h>

bool cot__is_plain(const cot__item *x) {
    return x->kind == ITEM_BOOL || x->kind == ITEM_INTEGER || x->kind == ITEM_NUMBER;
}
double cot__plain_value(const cot__item *x) { return x->kind == ITEM_NUMBER ? x->as.number : (double)x->as.integer; }
cot_var cot__plain_operand(const cot__item *x) {
    return x->kind == ITEM_NUMBER ? cot_number(x->as.number) : cot_integer(x->as.integer);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const struct { const char *name; cot_dtype dtype;
} dtypes[] = {
    {"f64", COT_F64},     {"float64", COT_F64}, {"float", COT_F64},     {"double", COT_F64}, {"f32", COT_F32},
    {"float32", COT_F32}, {"bf16", COT_BF16},   {"bfloat16", COT_BF16}, {"f16", COT_F16},    {"float16", COT_F16},
    {"i64", COT_I64},     {"int64", COT_I64},   {"int", COT_I64},       {"i32", COT_I32},    {"int32", COT_I32},
    {"u8", COT_U8},       {"uint8", COT_U8},    {"bool", COT_BOOL},     {"bool_", COT_BOOL},
};
static const struct { const char *name; double value; } constants[] = {
    {"pi", 3.14159265358979323846}, {"e", 2.71828182845904523536}, {"inf", (double)INFINITY}, {"nan", (double)NAN},
};

static bool same(const char *a, const char *name, size_t length) {
    return strlen(a) == length && memcmp(a, name, length) == 0;
}

bool cot__dtype_named(const char *name, size_t length, cot_dtype *out) {
    for (int i = 0; i < COUNTOF(dtypes); i++) {
        if (!same(dtypes[i].name, name, length)) continue;
        *out = dtypes[i].dtype;
        return true;
    }
    return false;
}

int cot__expr_constants(const cot__expr *e, const char *name[COT__EXPR_CONSTANTS], double value[COT__EXPR_CONSTANTS]) {
    int n = 0;
    _Static_assert(COUNTOF(constants) == COT__EXPR_CONSTANTS, "every constant has a place");
    for (int i = 0; i < COUNTOF(constants); i++) {
        int k = cot__expr_name(e, constants[i].name, strlen(constants[i].name));
        if (k < 0 || e->names[k].assigned) continue;
        name[n] = constants[i].name;
        value[n++] = constants[i].value;
    }
    return n;
}

bool cot__known_name(const char *name, size_t length, cot__item *out) {
    cot_dtype dtype;
    for (int i = 0; i < COUNTOF(constants); i++) {
        if (!same(constants[i].name, name, length)) continue;
        *out = cot__item_number(constants[i].value);
        return true;
    }
    if (!cot__dtype_named(name, length, &dtype)) return false;
    *out = (cot__item){.kind = ITEM_DTYPE, .as.integer = dtype};
    return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void put_shape(cot__text *x, cot_shape s) {
    cot__put(x, "(");
    for (int k = 0; k < s.ndim; k++) cot__putf(x, "%s%lld", k ? "," : "", (long long)s.dim[k]);
    cot__put(x, s.ndim == 1 ? ",)" : ")");
}

const char *cot__item_words(const cot__item *x, char *buf, size_t size) {
    cot__text t = cot__text_buffer(buf, size);
    switch (x->kind) {
    case ITEM_UNSET:
    case ITEM_NONE: cot__put(&t, "None"); break;
    case ITEM_BOOL: cot__put(&t, x->as.integer ? "True" : "False"); break;
    case ITEM_INTEGER: cot__putf(&t, "the integer %lld", (long long)x->as.integer); break;
    case ITEM_NUMBER: /* digits that an int64 cannot hold are a float */
        cot__putf(&t, "the number %g%s", x->as.number,
                  isfinite(x->as.number) && fabs(x->as.number) >= 0x1p63 ? ", which no int64 holds" : "");
        break;
    case ITEM_TEXT: cot__put(&t, "a string"); break;
    case ITEM_LIST: cot__putf(&t, "a list of %d", x->n); break;
    case ITEM_TUPLE: cot__putf(&t, "a tuple of %d", x->n); break;
    case ITEM_SLICE: cot__put(&t, "a slice"); break;
    case ITEM_ELLIPSIS: cot__put(&t, "..."); break;
    case ITEM_DTYPE: cot__putf(&t, "the dtype %s", cot_dtype_name((cot_dtype)x->as.integer)); break;
    case ITEM_SPARSE:
        cot__put(&t, "a sparse matrix of shape ");
        put_shape(&t, cot__matrix_shape(x));
        break;
    case ITEM_VAR: {
        cot_shape s = cot_shape_of(x->as.var);
        cot__putf(&t, "%s %s", s.ndim ? "an array of" : "a value of", cot_dtype_name(cot_dtype_of(x->as.var)));
        if (s.ndim) put_shape(&t, s);
        if (cot__is_compiled(x->as.var)) cot__put(&t, " that is not known while a function is compiled");
    }
    }
    return buf;
}

/* ---- lists as arrays ------------------------------------------------------------------------- */

static cot_var plain_constant(cot__evaluation *r, const cot__item *x) {
    bool flag = x->as.integer != 0;
    if (x->kind == ITEM_NUMBER) return (cot_constant)(r->t, x->as.number);
    if (x->kind == ITEM_BOOL) return (cot_data)(r->t, COT_BOOL, COT_SCALAR, &flag);
    return (cot_data)(r->t, COT_I64, COT_SCALAR, &x->as.integer);
}

/* The shape of a nested list, by its first elements. False if it holds anything but plain
 * numbers. */
static bool is_literal(const cot__item *x, int depth, cot_shape *shape, cot__item_kind *kind) {
    if (cot__is_plain(x)) {
        if (x->kind > *kind) *kind = x->kind;
        if (depth > shape->ndim) shape->ndim = depth;
        return true;
    }
    if (!cot__is_sequence(x) || depth == COT_MAX_NDIM) return false;
    for (int i = 0; i < x->n; i++)
        if (!is_literal(&x->as.items[i], depth + 1, shape, kind)) return false;
    if (x->n == 0 && depth + 1 > shape->ndim) shape->ndim = depth + 1;
    return true;
}

static bool ragged(cot__evaluation *r) {
    return cot__evaluation_fail(r, "the rows of the list differ in length or depth; an array needs equal ones");
}

static bool fill(cot__evaluation *r, const cot__item *x, int depth, cot_shape *shape, cot_dtype dtype, char **at) {
    if (depth == shape->ndim) {
        if (!cot__is_plain(x)) return ragged(r);
        double  number = cot__plain_value(x);
        int64_t integer = x->as.integer;
        bool    flag = integer != 0;
        size_t  size = (size_t)cot__dtype_size(dtype);
        memcpy(*at, dtype == COT_F64 ? (void *)&number : dtype == COT_I64 ? (void *)&integer : (void *)&flag, size);
        *at += size;
        return true;
    }
    if (!cot__is_sequence(x) || x->n != shape->dim[depth]) return ragged(r);
    for (int i = 0; i < x->n; i++)
        if (!fill(r, &x->as.items[i], depth + 1, shape, dtype, at)) return false;
    return true;
}

static bool literal(cot__evaluation *r, const cot__item *x, cot_shape *shape, cot__item_kind kind, cot_var *out) {
    cot_dtype dtype = kind == ITEM_NUMBER || kind == ITEM_UNSET ? COT_F64 : kind == ITEM_INTEGER ? COT_I64 : COT_BOOL;
    const cot__item *first = x;
    int64_t          count = 1;
    for (int k = 0; k < shape->ndim; k++) {
        if (!cot__is_sequence(first)) return ragged(r);
        shape->dim[k] = first->n;
        /* Not more than were typed, unless rows differ, which is found below. */
        count *= first->n;
        if (count > COT__EXPR_MAX_BYTES) return ragged(r);
        if (first->n == 0) { /* [[], []]: nothing is nested deeper */
            shape->ndim = k + 1;
            break;
        }
        first = &first->as.items[0];
    }
    char *data = cot__store_take(&r->pool, (size_t)(count ? count : 1) * (size_t)cot__dtype_size(dtype)), *at = data;
    if (!data) return cot__expr_short_of_memory(r->error);
    if (!fill(r, x, 0, shape, dtype, &at)) return false;
    *out = (cot_data)(r->t, dtype, *shape, data);
    return cot_is_valid(*out) || cot__evaluation_tape_failed(r);
}

/* The dtype of the vars among the elements. COT_DTYPE_COUNT: there are none. */
static cot_dtype dtype_among(const cot__item *x, int depth) {
    cot_dtype all = COT_DTYPE_COUNT;
    for (int i = 0; i < x->n; i++) {
        const cot__item *y = &x->as.items[i];
        cot_dtype        one = COT_DTYPE_COUNT;
        if (y->kind == ITEM_VAR) one = cot_dtype_of(y->as.var);
        if (cot__is_sequence(y) && depth < COT_MAX_NDIM) one = dtype_among(y, depth + 1);
        if (one != COT_DTYPE_COUNT) all = all == COT_DTYPE_COUNT ? one : cot__dtype_promote(all, one);
    }
    return all;
}

/* Plain numbers are weak among vars too: [x, 0.5] has the dtype of x, unless it is an integer
 * dtype. */
static bool element(cot__evaluation *r, const cot__item *x, cot_dtype others, cot_var *out) {
    bool fits = cot__is_plain(x) && others != COT_DTYPE_COUNT && others != COT_BOOL &&
                (cot__dtype_is_float(others) || x->kind == ITEM_INTEGER);
    if (!fits || others == COT_F64 || others == COT_I64) return cot__to_var(r, x, out);
    *out = (cot_full)(r->t, others, COT_SCALAR, cot__plain_value(x));
    return cot_is_valid(*out) || cot__evaluation_tape_failed(r);
}

/* Checked here, because the user did not call cot_stack and should not read about it. */
static bool same_shapes(cot__evaluation *r, const cot__item *x, const cot_var *xs) {
    char texts[2][100];
    for (int i = 1; i < x->n; i++) {
        cot_shape shapes[2] = {cot_shape_of(xs[0]), cot_shape_of(xs[i])};
        if (cot__same_shape(&shapes[0], &shapes[1])) continue;
        for (int k = 0; k < 2; k++) {
            cot__text t = cot__text_buffer(texts[k], sizeof texts[k]);
            put_shape(&t, shapes[k]);
        }
        return cot__evaluation_fail(r, "element 0 of the %s has shape %s, element %d has %s; an array needs equal ones",
                             x->kind == ITEM_TUPLE ? "tuple" : "list", texts[0], i, texts[1]);
    }
    return true;
}

static bool stacked(cot__evaluation *r, const cot__item *x, int depth, cot_dtype others, cot_var *out) {
    if (x->n == 0) return cot__to_var(r, x, out);
    cot_var *xs = cot__store_take(&r->pool, (size_t)(x->n + 1) * sizeof *xs);
    if (!xs) return cot__expr_short_of_memory(r->error);
    if (depth > COT_MAX_NDIM)
        return cot__evaluation_fail(r, "a list nested more than %d deep is no array", COT_MAX_NDIM);
    for (int i = 0; i < x->n; i++) {
        const cot__item *y = &x->as.items[i];
        if (cot__is_sequence(y)) {
            if (!stacked(r, y, depth + 1, others, &xs[i])) return false;
        } else if (!element(r, y, others, &xs[i])) {
            return false;
        }
    }
    if (!same_shapes(r, x, xs)) return false;
    *out = (cot_stack)(x->n, xs, 0);
    return cot_is_valid(*out) || cot__evaluation_tape_failed(r);
}

bool cot__to_var(cot__evaluation *r, const cot__item *x, cot_var *out) {
    char words[100];
    if (x->kind == ITEM_VAR) {
        *out = x->as.var;
        return true;
    }
    if (cot__is_plain(x)) {
        *out = plain_constant(r, x);
        return cot_is_valid(*out) || cot__evaluation_tape_failed(r);
    }
    if (cot__is_sequence(x)) {
        cot_shape      shape = {.ndim = 0};
        cot__item_kind kind = ITEM_UNSET;
        return is_literal(x, 0, &shape, &kind) ? literal(r, x, &shape, kind, out)
                                               : stacked(r, x, 1, dtype_among(x, 1), out);
    }
    return cot__evaluation_fail(r, "%s is no number and no array%s", cot__item_words(x, words, sizeof words),
                                x->kind != ITEM_SPARSE ? ""
                                                       : "; it takes @, * and / by a number, -, .T, sum, mean, softmax "
                                                         "and solve, and to_dense(…) makes an array of it");
}

bool cot__to_operand(cot__evaluation *r, const cot__item *x, cot_var *out) {
    if (!cot__is_plain(x)) return cot__to_var(r, x, out);
    *out = cot__plain_operand(x);
    return true;
}

bool cot__as_integer(const cot__item *x, int64_t *out) {
    if (x->kind == ITEM_INTEGER || x->kind == ITEM_BOOL) {
        *out = x->as.integer;
        return true;
    }
    if (x->kind != ITEM_VAR || cot_shape_of(x->as.var).ndim != 0 || cot__dtype_is_float(cot_dtype_of(x->as.var)) ||
        cot__has_no_number(x->as.var))
        return false;
    *out = cot_value_i64(x->as.var);
    return true;
}
