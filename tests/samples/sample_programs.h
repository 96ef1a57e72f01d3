/* sample_programs.h: samples as bodies of programs: the value of one, a loss of it, and the
 * gradient of that. */
#ifndef COT_SAMPLE_PROGRAMS_H
#define COT_SAMPLE_PROGRAMS_H

#include "samples/samples.h"

/* Of a sample and its gradient, at most. */
enum { SAMPLE_OUTPUTS = TEST_MAX_INPUTS + 2 };

static inline cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

/* The value, the loss, and the gradient of the loss by each input. */
static inline int with_gradient(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    ys[1] = loss(ys[0]);
    cot_grad_of(ys[1], n, xs, ys + 2);
    return 0;
}

/* Its inputs as leaves of this dtype. */
static inline void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        double   *data = (double *)(uintptr_t)f->in[k].data;
        char      raw[TEST_MAX_SIZE * sizeof(double)];
        cot_var   cast = cot_cast(cot_data(t, COT_F64, f->in[k].shape, data), dtype);
        cot__view v = cot__look(t, cot__index(cast));
        cot__read_view(t, "test", &v, dtype, raw, cot__view_size(&v));
        xs[k] = cot_tensor(t, dtype, f->in[k].shape, raw);
    }
}

#endif
