/* create.c: constants made from a few numbers. Each is real memory of its own, so that in-place
 * operations may write it. */
#include "ops/structural.h"

bool cot__constant_open(cot_tape *t, cot__result *r, const char *op, cot_dtype dtype, const cot_shape *shape) {
    return t && t->status == COT_OK && cot__check_dtype(t, op, dtype) && cot__check_shape(t, op, shape) &&
           cot__result_open(t, r, op, dtype, shape->ndim, shape->dim);
}

cot_var cot__constant_push(cot_tape *t, cot__result *r) { return cot__result_push(t, r, OP_constant, 0, NULL, NULL); }

static cot_var filled(cot_tape *t, const char *op, cot_dtype dtype, const cot_shape *shape, double value) {
    cot__result r;
    if (!cot__constant_open(t, &r, op, dtype, shape)) return INVALID(t);
    t->backend->fill(&r.view, value);
    return cot__constant_push(t, &r);
}

cot_var cot_zeros(cot_tape *t, cot_dtype dtype, cot_shape shape) { return filled(t, "zeros", dtype, &shape, 0); }
cot_var cot_ones(cot_tape *t, cot_dtype dtype, cot_shape shape) { return filled(t, "ones", dtype, &shape, 1); }
cot_var cot_full(cot_tape *t, cot_dtype dtype, cot_shape shape, double value) {
    return filled(t, "full", dtype, &shape, value);
}

cot_var cot_full_like(cot_var x, double value) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "full_like", "x", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape shape = cot__shape_at(t, i);
    return filled(t, "full_like", cot__dtype_at(&t->nodes[i]), &shape, value);
}

/* Writes the block of a vector that ends with element i, if one does. */
static void write_full(const cot_tape *t, const cot__view *v, int64_t i, cot_dtype as, const void *block) {
    int n = (int)(i % COT__BLOCK) + 1;
    if (n == COT__BLOCK || i == v->shape[0] - 1) t->backend->write(v, i + 1 - n, n, as, block);
}

/* Do the integers of this dtype hold the numbers from `first` to `last`, fractions cut off? A cast
 * would take the nearest that there is, and the steps between them would not be the ones asked for.
 * A bool holds any number: it is whether that is not 0. */
static bool range_fits(cot_tape *t, const char *op, cot_dtype dtype, double first, double last) {
    /* the smallest, … */
    double below = dtype == COT_I64 ? -0x1p63 : dtype == COT_I32 ? -0x1p31 : 0;
    /* … and one more than the largest */
    double above = dtype == COT_I64 ? 0x1p63 : dtype == COT_I32 ? 0x1p31 : 0x1p8;
    double low = trunc(fmin(first, last)), high = trunc(fmax(first, last));
    if ((unsigned)dtype >= COT_DTYPE_COUNT || cot__dtype_is_float(dtype) || dtype == COT_BOOL) return true;
    if (low >= below && high < above && !isnan(first + last)) return true;
    cot__fail(t, COT_DTYPE, "[%s] from %.17g to %.17g, which %s does not hold; choose a wider dtype", op, first, last,
              cot__dtype_name(dtype));
    return false;
}

cot_var cot_arange(cot_tape *t, cot_dtype dtype, double start, double stop, double step) {
    cot__result r;
    if (!t || t->status != COT_OK) return INVALID(t);
    if (step == 0 || !isfinite(stop - start) || !isfinite(step))
        return cot__fail(
            t, COT_VALUE,
            "[arange] start %g, stop %g, step %g; these and stop - start must be finite, and the step not 0", start,
            stop, step);
    double n = ceil((stop - start) / step);
    if (!(n < 0x1p59))
        return cot__fail(t, COT_LIMIT, "[arange] start %g, stop %g, step %g; these are too many elements to address",
                         start, stop, step);
    cot_shape shape = {1, {n > 0 ? (int64_t)n : 0}};
    double    last  = start + (n - 1) * step;
    /* it was rounded: it lies before stop */
    if (step > 0 ? last >= stop : last <= stop) last = nextafter(stop, start);
    if (n > 0 && !range_fits(t, "arange", dtype, start, last)) return INVALID(t);
    if (!cot__constant_open(t, &r, "arange", dtype, &shape)) return INVALID(t);
    bool whole =
        dtype == COT_I64 && start == floor(start) && step == floor(step) && fabs(start) < 0x1p63 && fabs(step) < 0x1p63;
    union { double f64[COT__BLOCK]; int64_t i64[COT__BLOCK]; } block;
    for (int64_t i = 0; i < shape.dim[0]; i++) {
        /* whole numbers beyond 2^53 are not all doubles, so they are not counted in doubles */
        if (whole)
            block.i64[i % COT__BLOCK] = (int64_t)((uint64_t)(int64_t)start + (uint64_t)i * (uint64_t)(int64_t)step);
        else block.f64[i % COT__BLOCK] = start + (double)i * step;
        write_full(t, &r.view, i, whole ? COT_I64 : COT_F64, &block);
    }
    return cot__constant_push(t, &r);
}

/* The ends are exact; z[i] = start + i (stop - start) / (n - 1) between. */
cot_var cot_linspace(cot_tape *t, cot_dtype dtype, double start, double stop, int64_t n) {
    cot__result r;
    cot_shape   shape = {1, {n}};
    if (n > 0 && t && t->status == COT_OK && !range_fits(t, "linspace", dtype, start, n > 1 ? stop : start))
        return INVALID(t);
    if (!cot__constant_open(t, &r, "linspace", dtype, &shape)) return INVALID(t);
    double gaps = n > 1 ? (double)(n - 1) : 1, length = stop - start, step = length / gaps;
    bool   far = isinf(length); /* it overflowed: a mean of the ends, then */
    double block[COT__BLOCK];
    for (int64_t i = 0; i < n; i++) {
        double w = (double)i / gaps, between = far ? start * (1 - w) + stop * w : start + (double)i * step;
        block[i % COT__BLOCK] = i == 0 ? start : i == n - 1 ? stop : between;
        write_full(t, &r.view, i, COT_F64, block);
    }
    return cot__constant_push(t, &r);
}

cot_var cot_eye(cot_tape *t, cot_dtype dtype, int64_t rows, int64_t columns) {
    cot__result r;
    cot_shape   shape = {2, {rows, columns}};
    if (!cot__constant_open(t, &r, "eye", dtype, &shape)) return INVALID(t);
    t->backend->fill(&r.view, 0);
    int64_t   n = rows < columns ? rows : columns, step = columns + 1;
    cot__view diagonal = {r.view.data, dtype, 1, &n, &step};
    if (n > 0) t->backend->fill(&diagonal, 1);
    return cot__constant_push(t, &r);
}
