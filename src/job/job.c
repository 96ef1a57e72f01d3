/* job.c: the words of jobs, and the checks that the `infer` of records is made of. */
#include "job/job.h"
#include "base/number.h"
#include "base/sizes.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT = 512 }; /* as much as a tape keeps of a message */

/* "[name] text" in buf. */
static void word(const cot__caller *c, char buf[TEXT], const char *format, va_list args) {
    int n = snprintf(buf, TEXT, "[%s] ", c->name);
    if (n >= 0 && n < TEXT) cot__vformat(buf + n, (size_t)(TEXT - n), format, args);
}

bool cot__refuse(const cot__caller *c, cot_status code, const char *format, ...) {
    char    text[TEXT];
    va_list args;
    va_start(args, format);
    word(c, text, format, args);
    va_end(args);
    c->fail(c, code, text);
    return false;
}

void cot__remark(const cot__caller *c, const char *format, ...) {
    char    text[TEXT];
    va_list args;
    va_start(args, format);
    word(c, text, format, args);
    va_end(args);
    c->note(c, text);
}

bool cot__job_illegal(const cot__job *j, const char *format, ...) {
    char    text[TEXT];
    va_list args;
    va_start(args, format);
    cot__vformat(text, sizeof text, format, args);
    va_end(args);
    return cot__refuse(j->caller, COT_VALUE, "%s; this is no legal operation", text);
}

bool cot__job_has(const cot__job *j, int least, int most, int ints) {
    int has = j->attr ? (int)j->attr->nints : 0;
    if (j->n < least || j->n > most)
        return cot__job_illegal(j, "%d operands, where %d to %d belong", j->n, least, most);
    if (has < ints) return cot__job_illegal(j, "%d attributes, where %d belong", has, ints);
    return true;
}

bool cot__job_range(const cot__job *j, int at, int64_t low, int64_t high) {
    int64_t v = cot__job_int(j, at);
    return (v >= low && v <= high) ||
           cot__job_illegal(j, "attribute %d is %lld, not from %lld to %lld", at, (long long)v, (long long)low,
                            (long long)high);
}

bool cot__job_axis(const cot__job *j, int at, int ndim) { return cot__job_range(j, at, 0, ndim - 1); }

bool cot__job_dtype(const cot__job *j, int k, cot_dtype dtype) {
    return j->x[k].dtype == dtype || cot__job_illegal(j, "operand %d has dtype %s, not %s", k,
                                                      cot__dtype_name(j->x[k].dtype), cot__dtype_name(dtype));
}

bool cot__job_float(const cot__job *j, int k) {
    return cot__dtype_is_float(j->x[k].dtype) ||
           cot__job_illegal(j, "operand %d has dtype %s, not a float", k, cot__dtype_name(j->x[k].dtype));
}

bool cot__job_integers(const cot__job *j, int k, const char *what) {
    cot_dtype d = j->x[k].dtype;
    return d == COT_I64 || d == COT_I32 || d == COT_U8 ||
           cot__refuse(j->caller, COT_DTYPE, "%s have dtype %s; they must be integers", what, cot__dtype_name(d));
}

bool cot__job_shape(const cot__job *j, int k, int ndim, const int64_t *shape) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    bool same = j->x[k].ndim == ndim;
    for (int i = 0; same && i < ndim; i++) same = j->x[k].shape[i] == shape[i];
    return same || cot__job_illegal(j, "operand %d has shape %s, not %s", k,
                                    cot__shape_text(j->x[k].ndim, j->x[k].shape, a), cot__shape_text(ndim, shape, b));
}

/* The step of fewer than two elements is 1: nothing else bounds it, and it multiplies a stride. */
bool cot__slice_is_inside(int64_t extent, int64_t first, int64_t length, int64_t step) {
    if (length <= 0) return length == 0 && first == 0 && step == 1;
    int64_t last = cot__size_add(first, cot__size_mul(length - 1, step));
    return first >= 0 && first < extent && last >= 0 && last < extent && (length == 1 ? step == 1 : step != 0);
}

/* Few axes, none longer than 2^19: nothing to say, at a glance. A negative extent is not short. */
static bool is_small(const cot_shape *s) {
    uint64_t bits = 0;
    if (s->ndim < 0 || s->ndim > 3) return false;
    for (int k = 0; k < s->ndim; k++) bits |= (uint64_t)s->dim[k];
    return bits < UINT64_C(1) << 19;
}

bool cot__legal_dtype(const cot__caller *c, cot_dtype dtype) {
    return (unsigned)dtype < COT_DTYPE_COUNT ||
           cot__refuse(c, COT_DTYPE, "%d is not a dtype; dtypes are COT_F64 … COT_BOOL", (int)dtype);
}

bool cot__legal_shape(const cot__caller *c, const cot_shape *s) {
    char text[COT__SHAPE_TEXT];
    int  n = s->ndim;
    if (is_small(s)) return true;
    if (n < 0 || n > COT_MAX_NDIM)
        return cot__refuse(c, COT_LIMIT, "a shape of %d axes; shapes have 0 to %d axes", n, COT_MAX_NDIM);
    for (int k = 0; k < n; k++)
        if (s->dim[k] < 0)
            return cot__refuse(c, COT_SHAPE, "axis %d of shape %s has extent %lld; extents are not negative", k,
                               cot__shape_text(n, s->dim, text), (long long)s->dim[k]);
    return cot__size_product(n, s->dim) <= COT__SIZE_MOST / 16 ||
           cot__refuse(c, COT_LIMIT, "shape %s has too many elements to address", cot__shape_text(n, s->dim, text));
}

bool cot__job_check_type(const cot__job *j, const cot__type *z) {
    return cot__legal_dtype(j->caller, z->dtype) && cot__legal_shape(j->caller, &z->shape);
}

cot__asker cot__asker_of(const cot__attr *a) {
    bool is_one = a->number >= 0 && a->number < COT__ASKERS && a->number == (int)a->number;
    return is_one ? (cot__asker)(int)a->number : COT__ASKERS;
}

const char *cot__asker_name(cot__asker who) {
    static const char *const names[COT__ASKERS] = {
        NULL,      "take",   "take_along_axis", "embedding",     "scatter_add",           "scatter_add_along",
        "scatter", "gather", "nll",             "cross_entropy", "softmax_cross_entropy", "nn_cross_entropy"};
    return names[who];
}

const char *cot__asker_what(cot__asker who) { return cot__asker_wraps(who) ? "indices" : "labels"; }

bool cot__job_asker(const cot__job *j) {
    return cot__asker_of(j->attr) < COT__ASKERS || cot__job_illegal(j, "positions for %g", j->attr->number);
}

bool cot__infer_same(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, 1, 0)) return false;
    cot__type_like(z, j->x[0].dtype, &j->x[0]);
    return true;
}

bool cot__view_same(const cot__job *j, const cot__type *z, int64_t *stride, int64_t *offset) {
    for (int k = 0; k < z->shape.ndim; k++) stride[k] = j->x[0].stride[k];
    *offset = 0;
    return true;
}

const char *cot__shape_text(int ndim, const int64_t *shape, char *buf) {
    int n = snprintf(buf, COT__SHAPE_TEXT, "(");
    for (int k = 0; k < ndim && n < COT__SHAPE_TEXT - 24; k++)
        n += snprintf(buf + n, (size_t)(COT__SHAPE_TEXT - n), k ? ",%lld" : "%lld", (long long)shape[k]);
    snprintf(buf + n, (size_t)(COT__SHAPE_TEXT - n), ndim == 1 ? ",)" : ")");
    return buf;
}

/* From the back, maximal runs of axes of v that lie as one are cut into new axes; a new axis must
 * not reach over the end of a run. */
bool cot__view_strides(const cot__view *v, const cot_shape *shape, int64_t *stride) {
    int64_t left = 1, step = 1; /* elements of the current run not yet used, and their stride */
    int     o = v->ndim - 1;
    if (cot__count(v->ndim, v->shape) == 0) {
        cot__strides(shape->ndim, shape->dim, stride);
        return true;
    }
    for (int k = shape->ndim - 1; k >= 0; k--) {
        stride[k] = step;
        if (shape->dim[k] == 1) continue;
        if (left == 1) {
            while (v->shape[o] == 1) o--;
            left = v->shape[o], step = v->stride[o], o--;
            for (; o >= 0 && (v->shape[o] == 1 || v->stride[o] == step * left); o--) left *= v->shape[o];
            stride[k] = step;
        }
        if (left % shape->dim[k] != 0) return false;
        left /= shape->dim[k];
        step *= shape->dim[k];
    }
    return true;
}
