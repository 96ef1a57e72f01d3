/* linalg_exp.c: the exponential of a matrix, by scaling and squaring: exp(a) = r(a/2ˢ)^(2ˢ), r a
 * Padé approximant.
 *
 * All in recorded operations, so derivatives of every order are those of the approximant. Its
 * degree is the same for every matrix, 13 in f64 and 7 in f32 (Higham 2005): near 0 a lower one
 * would give the value, but not its higher derivatives. */
#include "ops/linalg/linalg.h"
#include "backend/elements.h"

enum { MOST_SQUARINGS = 2000 }; /* norms up to 2^1024 */

/* The least n with x / 2^n <= 1, x > 1. */
static int power_above(double x) {
    int    n;
    double m = frexp(x, &n);
    return m == 0.5 ? n - 1 : n;
}

/* How often each matrix is halved: until its 1-norm is at most theta. counts: one for each; returns
 * the largest. */
static int halvings(const cot_tape *t, const cot__view *v, double theta, double *counts) {
    int64_t   n = v->shape[v->ndim - 1], stride[COT_MAX_NDIM];
    cot__view columns = *v;
    int       most = 0;
    for (int k = 0; k < v->ndim; k++) stride[k] = v->stride[k];
    stride[v->ndim - 2] = v->stride[v->ndim - 1], stride[v->ndim - 1] = v->stride[v->ndim - 2];
    columns.stride = stride;
    double        sum = 0, norm = 0;
    cot__elements e;
    for (cot__elements_open(&e, t->backend, &columns, COT_F64); cot__elements_next(&e);)
        for (int k = 0; k < e.n; k++) {
            int64_t at = e.first + k;
            sum = (at % n ? sum : 0) + fabs(e.f64[k]);
            if (at % (n * n) == 0) norm = 0;
            if ((at + 1) % n == 0 && sum > norm) norm = sum;
            if ((at + 1) % (n * n)) continue;
            double s = isfinite(norm) && norm > theta ? power_above(norm / theta) : 0;
            counts[at / (n * n)] = s > MOST_SQUARINGS ? MOST_SQUARINGS : s;
            if (s > most) most = s > MOST_SQUARINGS ? MOST_SQUARINGS : (int)s;
        }
    return most;
}

/* c[0] i + c[2] x + c[4] x² + …, as many as there are powers of x */
static cot_var even(cot_var identity, const double *c, int n, const cot_var *powers) {
    cot_var sum = cot_mul(identity, c[0]);
    for (int k = 0; k < n; k++) sum = cot_add(sum, cot_mul(powers[k], c[2 * k + 2]));
    return sum;
}

/* The coefficients are integers up to 6e16; scaled by powers of two, which changes nothing, all
 * that is computed is near 1: cot_check_grads takes large numbers on the way for noise in the
 * result. */
#define UNIT_7 0x1p-24
#define UNIT_13 0x1p-56

static cot_var pade_7(cot_var a, cot_var identity) {
    static const double b[] = {17297280 * UNIT_7, 8648640 * UNIT_7, 1995840 * UNIT_7, 277200 * UNIT_7,
                               25200 * UNIT_7,    1512 * UNIT_7,    56 * UNIT_7,      UNIT_7};
    cot_var             x[3];
    x[0] = cot_matmul(a, a);
    x[1] = cot_matmul(x[0], x[0]);
    x[2] = cot_matmul(x[1], x[0]);
    cot_var u = cot_matmul(a, even(identity, b + 1, 3, x)), v = even(identity, b, 3, x);
    return cot_solve(cot_sub(v, u), cot_add(v, u));
}

static cot_var pade_13(cot_var a, cot_var identity) {
    static const double b[] = {64764752532480000 * UNIT_13,
                               32382376266240000 * UNIT_13,
                               7771770303897600 * UNIT_13,
                               1187353796428800 * UNIT_13,
                               129060195264000 * UNIT_13,
                               10559470521600 * UNIT_13,
                               670442572800 * UNIT_13,
                               33522128640 * UNIT_13,
                               1323241920 * UNIT_13,
                               40840800 * UNIT_13,
                               960960 * UNIT_13,
                               16380 * UNIT_13,
                               182 * UNIT_13,
                               UNIT_13};
    cot_var x[3];
    x[0] = cot_matmul(a, a);
    x[1] = cot_matmul(x[0], x[0]);
    x[2] = cot_matmul(x[1], x[0]);
    cot_var high_u = cot_add(cot_add(cot_mul(x[2], b[13]), cot_mul(x[1], b[11])), cot_mul(x[0], b[9]));
    cot_var high_v = cot_add(cot_add(cot_mul(x[2], b[12]), cot_mul(x[1], b[10])), cot_mul(x[0], b[8]));
    cot_var inside = cot_add(cot_matmul(x[2], high_u), even(identity, b + 1, 3, x));
    cot_var u = cot_matmul(a, inside);
    cot_var v = cot_add(cot_matmul(x[2], high_v), even(identity, b, 3, x));
    return cot_solve(cot_sub(v, u), cot_add(v, u));
}

/* 2^-counts and counts themselves as constants (…,1,1). */
static cot_var factors_of(cot_tape *t, cot_shape batch, const double *counts, bool power, cot_dtype dtype) {
    int64_t n = cot__count(batch.ndim - 2, batch.dim);
    size_t  bytes = ((size_t)n + 1) * sizeof(double);
    double *x = cot__alloc(&t->al, bytes);
    if (!x) return cot__lin_no_memory(t, "matrix_exp");
    for (int64_t i = 0; i < n; i++) x[i] = power ? ldexp(1, -(int)counts[i]) : counts[i];
    cot_var z = cot_cast((cot_data)(t, COT_F64, cot__matrices(batch, 1, 1), x), dtype);
    cot__free(&t->al, x, bytes);
    return z;
}

static cot_var squared(cot_tape *t, cot_var a, const double *counts, int most) {
    cot_shape s = cot_shape_of(a);
    cot_dtype dtype = cot_dtype_of(a);
    cot_var   identity = cot_eye(t, dtype, cot__rows_of(&s), cot__rows_of(&s)), times = a;
    if (most > 0) {
        a = cot_mul(a, factors_of(t, s, counts, true, dtype));
        times = factors_of(t, s, counts, false, COT_F64);
    }
    cot_var z = dtype == COT_F64 ? pade_13(a, identity) : pade_7(a, identity);
    for (int k = 0; k < most && t->status == COT_OK; k++) {
        bool all = true;
        for (int64_t i = 0, count = cot__count(s.ndim - 2, s.dim); i < count; i++) all &= counts[i] > k;
        cot_var square = cot_matmul(z, z);
        z = all ? square : cot_where(cot_greater(times, (double)k), square, z);
    }
    return z;
}

/* In a body, where norms are not known, as many squarings as norms of millions need; each matrix
 * takes those it needs, and one of a larger norm is NaN. */
static cot_var squared_by_norm(cot_tape *t, cot_var a, double theta) {
    enum { MOST = 20 };
    cot_shape s = cot_shape_of(a);
    cot_dtype dtype = cot_dtype_of(a);
    cot_var norm = cot_max(cot_sum(cot_abs(cot_detach(a)), (cot_axes){1, true, {-2}}), COT_KEEP(-1));
    cot_var times = cot_ceil(cot_log2(cot_maximum(cot_div(norm, theta), 1.0)));
    cot_var   scaled = cot_mul(a, cot_exp2(cot_neg(times))),
            identity = cot_eye(t, dtype, cot__rows_of(&s), cot__rows_of(&s));
    cot_var z = dtype == COT_F64 ? pade_13(scaled, identity) : pade_7(scaled, identity);
    for (int k = 0; k < MOST && t->status == COT_OK; k++)
        z = cot_where(cot_greater(times, (double)k), cot_matmul(z, z), z);
    return cot_where(cot_greater(times, (double)MOST), (double)NAN, z);
}

cot_var cot_matrix_exp(cot_var x) {
    cot_dtype dtype;
    uint32_t  i;
    cot_tape *t = cot__enter_matrix("matrix_exp", x, true, &i, &dtype);
    if (!t) return cot__invalid(1, &x);
    cot__view v = cot__look(t, i);
    if (cot__size_at(t, i) == 0) return cot_cast(VAR(t, i), dtype);
    double    theta = v.dtype == COT_F64 ? 5.371920351148152 : 3.925724783138660;
    if (t->mode.body) return cot_cast(squared_by_norm(t, VAR(t, i), theta), dtype);
    size_t  bytes = ((size_t)cot__count(v.ndim - 2, v.shape) + 1) * sizeof(double);
    double *counts = cot__alloc(&t->al, bytes);
    if (!counts) return cot__lin_no_memory(t, "matrix_exp");
    int     most = halvings(t, &v, theta, counts);
    const char *before = cot__ask(t, "matrix_exp");
    cot_var     z = squared(t, VAR(t, i), counts, most);
    cot__asked(t, before);
    cot__free(&t->al, counts, bytes);
    return cot_cast(z, dtype);
}
