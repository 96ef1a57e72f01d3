/* points.c: see points.h. */
#include "support/points.h"

#include <math.h>

static uint64_t next_random(test_random *r) { /* splitmix64 */
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

test_random test_random_of(const char *name, int stream) {
    test_random r = {UINT64_C(14695981039346656037) + (uint64_t)stream};
    for (; *name; name++) r.state = (r.state ^ (unsigned char)*name) * UINT64_C(1099511628211);
    next_random(&r);
    return r;
}

double test_uniform(test_random *r, double lo, double hi) {
    return lo + (hi - lo) * ((double)(next_random(r) >> 11) * 0x1p-53);
}

cot_var test_call(int op, const cot_var *xs) { return cot__call(op, xs); }

void test_sample(int op, test_random *r, double x[3]) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    bool smooth = e->partial[0] || e->partial[1] || e->partial[2];
    for (int k = 0; k < 3; k++) {
        x[k] = test_uniform(r, e->lo, e->hi);
        if (k < e->arity && smooth && !e->partial[k]) x[k] = floor(fabs(x[k]));
    }
}

int64_t test_shape_size(const cot_shape *s) {
    int64_t n = 1;
    for (int k = 0; k < s->ndim; k++) n *= s->dim[k];
    return n;
}

void test_fill(test_function *f, test_random *r, double lo, double hi) {
    for (int k = 0; k < f->n; k++)
        for (int i = 0; i < TEST_MAX_SIZE; i++) {
            f->in[k].data[i] = test_uniform(r, lo, hi);
            f->in[k].direction[i] = test_uniform(r, -1, 1);
        }
}

cot_var test_input_of(cot_tape *t, cot_dtype dtype, const test_input *in, const double *numbers) {
    cot_var data = cot_cast(cot_data(t, COT_F64, in->shape, numbers), dtype);
    if (in->fixed) return data;
    cot_var leaf = in->shape.ndim ? cot_tensor(t, dtype, in->shape, NULL) : cot_scalar_of(t, dtype, 0);
    cot_assign(leaf, data);
    return leaf;
}
