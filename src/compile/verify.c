/* verify.c: see verify.h. */
#include "compile/verify.h"

#include "base/element.h"
#include "base/number.h"
#include "base/text.h"
#include "ops/structural.h"
#include "tape/record_job.h"
#include "tape/region.h"

#include <stdio.h>
#include <string.h>

/* ---- the function, on a tape of its own ------------------------------------------------------ */

/* Floats are leaves, because the function may differentiate by them: while it was compiled, they
 * were active. */
static void record(cot__verifying *v, const void *const *inputs) {
    cot_tape *t = v->t;
    int       n = cot_program_inputs(v->p), m = cot_program_outputs(v->p);
    cot_var  *xs = cot__arena(t, ((size_t)n + (size_t)m + 1) * sizeof *xs, "compile");
    if (!xs) return;
    v->ys = xs + n;
    for (int k = 0; k < n; k++) {
        cot_type type = cot_program_input_type(v->p, k);
        xs[k] = cot__dtype_is_float(type.dtype) ? cot_tensor(t, type.dtype, type.shape, inputs[k])
                                                : cot_data(t, type.dtype, type.shape, inputs[k]);
    }
    for (int k = 0; k < m; k++) v->ys[k] = INVALID(t);
    t->mode.verifying = true;
    if (t->status == COT_OK) v->code = v->p->verified(n, xs, m, v->ys, v->p->verified_user);
    cot__error_in(t, "the function of [compile], recorded again");
}

cot__verifying cot__verify_open(const cot_program *p, const void *const *inputs) {
    cot__verifying v = {.p = p, .t = cot_tape_create(&(cot_options){.allocator = p->al})};
    if (v.t) record(&v, inputs);
    return v;
}

void cot__verify_close(cot__verifying *v) {
    cot_tape_destroy(v->t);
    *v = (cot__verifying){0};
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool is_nan(const void *x, cot_dtype dtype) {
    double value = cot__dtype_is_float(dtype) ? cot__load_f64(x, dtype) : 0;
    return value != value;
}

int64_t cot__first_difference(cot_dtype dtype, int64_t n, const void *a, const void *b) {
    size_t size = (size_t)cot__dtype_size(dtype);
    if (n == 0 || memcmp(a, b, (size_t)n * size) == 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        const char *x = (const char *)a + (size_t)i * size, *y = (const char *)b + (size_t)i * size;
        if (memcmp(x, y, size) && !(is_nan(x, dtype) && is_nan(y, dtype))) return i;
    }
    return -1;
}

/* "[1,2]", or "" of a value without axes. */
static const char *place_text(cot_shape shape, int64_t i, char text[COT__SHAPE_TEXT]) {
    cot__text out = cot__text_buffer(text, COT__SHAPE_TEXT);
    int64_t   at[COT_MAX_NDIM];
    for (int k = shape.ndim; k-- > 0; i /= shape.dim[k]) at[k] = i % shape.dim[k];
    for (int k = 0; k < shape.ndim; k++) cot__putf(&out, k ? ",%lld" : "[%lld", (long long)at[k]);
    cot__put(&out, shape.ndim ? "]" : "");
    return text;
}

/* All digits: two numbers that differ are not printed alike. */
static const char *number_text(const void *x, cot_dtype dtype, char text[32]) {
    if (is_nan(x, dtype)) snprintf(text, 32, "nan");
    else if (!cot__dtype_is_float(dtype)) snprintf(text, 32, "%lld", (long long)cot__load_i64(x, dtype));
    else cot__format(text, 32, "%.*g", dtype == COT_F64 ? 17 : 9, cot__load_f64(x, dtype));
    return text;
}

/* Either may be at fault: which one cannot be seen from here. */
#define CAUSES "the function reads what is no input and changes, or the program is wrong, which please report"

static bool refuse_element(const cot__caller *caller, int k, cot_type type, int64_t i, const char *got,
                           const char *want) {
    char   at[COT__SHAPE_TEXT], a[32], b[32];
    size_t place = (size_t)i * (size_t)cot__dtype_size(type.dtype);
    return cot__refuse(caller, COT_VALUE,
                       "output %d%s is %s by the program and %s by the function, recorded now; " CAUSES, k,
                       place_text(type.shape, i, at), number_text(got + place, type.dtype, a),
                       number_text(want + place, type.dtype, b));
}

static bool has_type(cot_var y, cot_type type) {
    cot_shape shape = cot_shape_of(y);
    return cot_dtype_of(y) == type.dtype && cot__same_shape(&shape, &type.shape);
}

/* A result that is a plain number is a constant, as it is where a function is compiled. */
static cot_var value_of(cot_tape *t, cot_var y) {
    uint32_t i;
    return cot__enter(t, y, "compile", "the output", &i) ? VAR(t, i) : INVALID(t);
}

static bool compare(const cot__verifying *v, int k, const char *got, const cot__caller *caller) {
    cot_type type = cot_program_output_type(v->p, k);
    int64_t  n = cot__count(type.shape.ndim, type.shape.dim), i;
    size_t   bytes = (size_t)n * (size_t)cot__dtype_size(type.dtype);
    cot_var  y = value_of(v->t, v->ys[k]);
    if (v->t->status != COT_OK) return true; /* it is told in the end */
    if (!has_type(y, type))
        return cot__refuse(caller, COT_VALUE, "output %d of the function, recorded now, has another dtype or shape "
                           "than the program's; " CAUSES, k);
    char *want = cot__alloc(&v->p->al, bytes);
    if (!want) return cot__refuse(caller, COT_MEMORY, "out of memory: %zu bytes to compare output %d", bytes, k);
    cot_read_as(y, type.dtype, want, n);
    i = v->t->status == COT_OK ? cot__first_difference(type.dtype, n, got, want) : -1;
    if (i >= 0) refuse_element(caller, k, type, i, got, want);
    cot__free(&v->p->al, want, bytes);
    return i < 0;
}

bool cot__verify(const cot__verifying *v, const void *const *results, const cot__caller *caller) {
    if (!v->t) return cot__refuse(caller, COT_MEMORY, "out of memory: a tape to compare with");
    for (int k = 0; k < cot_program_outputs(v->p) && v->t->status == COT_OK && v->code == 0; k++)
        if (results[k] && !compare(v, k, results[k], caller)) return false;
    if (v->t->status == COT_OK && v->code == 0) return true;
    if (v->t->status != COT_OK) caller->fail(caller, v->t->status, v->t->errors.message);
    else
        cot__refuse(caller, COT_CUSTOM, "the function failed with code %d when it was recorded again; " CAUSES,
                    v->code);
    return false;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Operands, then results, as arrays side by side in one block. */
typedef struct arrays {
    char        *block;
    size_t       bytes;
    const void **list;
    int          count;
} arrays;

static size_t room_of(cot_var x) {
    return ((size_t)cot_size(x) * (size_t)cot__dtype_size(cot_dtype_of(x)) + 15) & ~(size_t)15;
}

static bool open_arrays(arrays *a, cot_tape *t, const cot_var *vars) {
    size_t at = (size_t)a->count * sizeof *a->list;
    a->bytes = at;
    for (int k = 0; k < a->count; k++) a->bytes += room_of(vars[k]);
    a->block = cot__alloc(&t->al, a->bytes);
    a->list = (const void **)(void *)a->block;
    if (!a->block)
        return cot__fail(t, COT_MEMORY, "[program_call] out of memory: %zu bytes to compare with", a->bytes), false;
    for (int k = 0; k < a->count; at += room_of(vars[k++])) {
        a->list[k] = a->block + at;
        cot_read_as(vars[k], cot_dtype_of(vars[k]), a->block + at, cot_size(vars[k]));
    }
    return t->status == COT_OK;
}

bool cot__verify_call(cot_tape *t, const cot_program *p, const uint32_t *args, const cot_var *ys) {
    cot__caller caller = cot__tape_caller(t, "program_call");
    int         n = cot_program_inputs(p), m = cot_program_outputs(p);
    arrays      a = {.count = n + m};
    cot_var    *vars = cot__arena(t, ((size_t)a.count + 1) * sizeof *vars, "program_call");
    if (!vars) return false;
    for (int k = 0; k < a.count; k++) vars[k] = k < n ? VAR(t, args[k]) : ys[k - n];
    if (open_arrays(&a, t, vars)) {
        cot__verifying v = cot__verify_open(p, a.list);
        cot__verify(&v, a.list + n, &caller);
        cot__verify_close(&v);
    }
    cot__free(&t->al, a.block, a.bytes);
    return t->status == COT_OK;
}
