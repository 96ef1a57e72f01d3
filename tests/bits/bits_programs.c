/* bits_programs.c: derivatives of higher order, loops, sparse matrices, and small networks that
 * learn: what is made of many operations. */
#include "bits/bits.h"

#include <stdlib.h>

#define DTYPE(d) (BITS_DTYPES[d])

/* ---- second order, series, sparse ------------------------------------------------------------ */

static cot_var bumpy(cot_var x) {
    cot_var a = cot_slice(x, 0, 0, -1, 1), b = cot_slice(x, 0, 1, COT_END, 1);
    cot_var r = cot_sub(b, cot_mul(a, a));
    return cot_sum(cot_add(cot_mul(r, cot_mul(r, 100.0)), cot_square(cot_sub(1.0, cot_sin(a)))), COT_ALL);
}

/* The same on scalars, which have sweeps of their own. */
static cot_var bumpy_scalars(int n, const cot_var *x) {
    cot_var sum = cot_constant(x[0].tape, 0);
    for (int i = 0; i + 1 < n; i++) {
        cot_var r = cot_sub(x[i + 1], cot_mul(x[i], x[i]));
        sum       = cot_add(sum, cot_add(cot_mul(r, cot_mul(r, 100.0)), cot_tanh(cot_exp(cot_sin(x[i])))));
    }
    return sum;
}

enum { WIDTH = 9 };

static void scalars(cot_tape *t, cot_dtype dtype, cot_var *x) {
    test_random random = test_random_of("scalars", 1);
    for (int i = 0; i < WIDTH; i++) x[i] = cot_scalar_of(t, dtype, test_uniform(&random, -1, 1));
}

void bits_family_second_order(void) {
    double v[3 * WIDTH], out[WIDTH * WIDTH];
    for (int i = 0; i < 3 * WIDTH; i++) v[i] = 0.25 * (i % 5) - 0.5;
    for (int d = 0; d < 4; d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x[WIDTH], w = bits_leaf(t, DTYPE(d), COT_SHAPE(WIDTH), 1, -1, 1);
        cot_var   y = bumpy(w), squares = cot_cumsum(cot_mul(w, cot_exp(w)), 0, false);
        scalars(t, DTYPE(d), x);
        cot_var z = bumpy_scalars(WIDTH, x);
        bits_item("tensor %s", cot_dtype_name(DTYPE(d)));
        if (cot_hessian(y, 1, &w, out) == COT_OK) bits_numbers(WIDTH * WIDTH, out);
        if (cot_hvp(y, 1, &w, v, out) == COT_OK) bits_numbers(WIDTH, out);
        if (cot_jacobian(1, &squares, 1, &w, COT_FORWARD, out) == COT_OK) bits_numbers(WIDTH * WIDTH, out);
        if (cot_jacobian(1, &squares, 1, &w, COT_REVERSE, out) == COT_OK) bits_numbers(WIDTH * WIDTH, out);
        bits_item("scalars %s", cot_dtype_name(DTYPE(d)));
        if (cot_hessian(z, WIDTH, x, out) == COT_OK) bits_numbers(WIDTH * WIDTH, out);
        if (cot_hvp(z, WIDTH, x, v, out) == COT_OK) bits_numbers(WIDTH, out);
        if (cot_vjps(3, 1, &z, v, WIDTH, x, out) == COT_OK) bits_numbers(3 * WIDTH, out);
        if (cot_jvps(3, WIDTH, x, v, 1, &z, out) == COT_OK) bits_numbers(3, out);
        bits_close(t);
    }
}

void bits_family_series(void) {
    enum { ORDER = 6 };
    for (int d = 0; d < 2; d++) {
        cot_tape *t         = cot_tape_create(NULL);
        cot_var   x         = bits_leaf(t, DTYPE(d), COT_SHAPE(5), 1, 0.2, 1), out[ORDER + 1];
        cot_var   direction = cot_data(t, COT_F64, COT_SHAPE(5), (double[]){1, -0.5, 0.25, 2, 1});
        cot_var   y         = cot_mul(cot_exp(cot_sin(x)), cot_div(cot_log(x), cot_add(1.0, cot_tanh(x))));
        cot_var   curve     = cot_cast(direction, DTYPE(d));
        bits_item("taylor %s", cot_dtype_name(DTYPE(d)));
        if (cot_taylor(y, 1, &x, 1, &curve, ORDER, out) == COT_OK)
            for (int k = 0; k <= ORDER; k++) bits_var(out[k]);
        bits_close(t);
    }
}

void bits_family_sparse(void) {
    enum { N = 40 };
    cot_tape        *t = cot_tape_create(NULL);
    double           values[8 * N];
    cot_var          x = bits_leaf(t, COT_F64, COT_SHAPE(N), 1, -1, 1), y = bumpy(x);
    cot_var          z        = cot_mul(cot_exp(x), cot_roll(x, 1, 0));
    cot_sparse_plan *jacobian = cot_sparse_jacobian_plan(1, &z, 1, &x, COT_AUTO),
                    *hessian  = cot_sparse_hessian_plan(y, 1, &x);
    bits_item("jacobian");
    if (jacobian && cot_sparse_jacobian(jacobian, 1, &z, 1, &x, values) == COT_OK)
        bits_numbers(cot_sparse_plan_info(jacobian).nnz, values);
    bits_item("hessian");
    if (hessian && cot_sparse_hessian(hessian, y, 1, &x, values) == COT_OK)
        bits_numbers(cot_sparse_plan_info(hessian).nnz, values);
    cot_sparse_plan_destroy(jacobian);
    cot_sparse_plan_destroy(hessian);
    bits_close(t);
}

/* ---- loops and implicit functions ------------------------------------------------------------ */

/* One step of Heun's method for two animals that eat each other. */
static int animals(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *rate = user;
    cot_var        a = xs[0], b = xs[1];
    (void)n, (void)m;
    for (int half = 0; half < 2; half++) {
        cot_var da = cot_mul(a, cot_sub(rate[0], b)), db = cot_mul(b, cot_sub(cot_mul(a, rate[1]), 1.0));
        a = cot_add(xs[0], cot_mul(da, half ? 0.02 : 0.01));
        b = cot_add(xs[1], cot_mul(db, half ? 0.02 : 0.01));
    }
    ys[0] = a, ys[1] = b;
    if (m > 2) ys[2] = cot_log(cot_mul(a, b));
    return 0;
}

void bits_family_loops(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int axes = 0; axes < 2; axes++) {
            cot_tape *t     = cot_tape_create(NULL);
            cot_shape shape = axes ? COT_SHAPE(7) : COT_SCALAR;
            cot_var   xs[4] = {bits_leaf(t, DTYPE(d), shape, 1, 0.5, 1.5), bits_leaf(t, DTYPE(d), shape, 2, 0.5, 1.5),
                               bits_leaf(t, DTYPE(d), shape, 3, 0.5, 1.5), bits_leaf(t, DTYPE(d), shape, 4, 0.5, 1.5)};
            cot_var   end[2], trace;
            cot_scan(animals, xs + 2, 100, 2, xs, 0, NULL, end, 1, &trace, NULL);
            bits_item("animals %s%s", cot_dtype_name(DTYPE(d)), axes ? " together" : "");
            bits_derivatives(cot_add(cot_sum(trace, COT_ALL), cot_sum(cot_mul(end[0], end[1]), COT_ALL)), 4, xs);
            bits_close(t);
        }
}

static int kepler(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user; /* E - e sin E = M */
    ys[0] = cot_sub(cot_sub(xs[0], cot_mul(xs[1], cot_sin(xs[0]))), xs[2]);
    return 0;
}

void bits_family_implicit(void) {
    for (int d = 0; d < 2; d++) {
        cot_tape *t     = cot_tape_create(NULL);
        cot_var   xs[2] = {bits_leaf(t, DTYPE(d), COT_SHAPE(4), 1, 0.1, 0.7),
                           bits_leaf(t, DTYPE(d), COT_SHAPE(4), 2, 0.2, 3)};
        bits_item("kepler %s", cot_dtype_name(DTYPE(d)));
        bits_derivatives(cot_root(kepler, NULL, NULL, cot_detach(xs[1]), 2, xs, NULL), 2, xs);
        bits_close(t);
    }
}

/* (a + 2) x less its neighbours, or less those on one side: symmetric and positive definite, or
 * not. */
typedef struct neighbours {
    cot_var a;
    bool    both;
} neighbours;

static int less_neighbours(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const neighbours *w = user;
    int64_t           size = cot_size(xs[0]);
    cot_var           zero = cot_zeros(xs[0].tape, cot_dtype_of(xs[0]), COT_SHAPE(1));
    cot_var           before = cot_concat(2, (cot_var[]){zero, cot_slice(xs[0], 0, 0, size - 1, 1)}, 0);
    cot_var           behind = cot_concat(2, (cot_var[]){cot_slice(xs[0], 0, 1, COT_END, 1), zero}, 0);
    (void)n, (void)m;
    ys[0] = cot_sub(cot_mul(cot_add(w->a, 2.0), xs[0]), w->both ? cot_add(before, behind) : before);
    return 0;
}

/* More unknowns than are eliminated, and no multiple of 8: GMRES, then conjugate gradients. */
void bits_family_solvers(void) {
    for (int d = 0; d < 2; d++)
        for (int both = 0; both < 2; both++) {
            cot_tape  *t = cot_tape_create(NULL);
            cot_var    xs[2] = {bits_leaf(t, DTYPE(d), COT_SHAPE(101), 1, -1, 1),
                                bits_leaf(t, DTYPE(d), COT_SHAPE(101), 2, 0.1, 1)};
            neighbours w = {xs[1], both};
            bits_item("%s %s", both ? "conjugate gradients" : "gmres", cot_dtype_name(DTYPE(d)));
            bits_derivatives(
                cot_linear_solve(less_neighbours, &w, xs[0], &(cot_solve_options){.positive_definite = both}), 2, xs);
            bits_close(t);
        }
}

/* ---- optimisers and networks ----------------------------------------------------------------- */

typedef struct trainer {
    int      n;
    cot_var *xs;
    void    *m[8], *v[8];
    int64_t  step;
} trainer;

static trainer trainer_of(int n, cot_var *xs) {
    trainer r = {.n = n, .xs = xs};
    for (int k = 0; k < n; k++)
        r.m[k] = calloc((size_t)cot_size(xs[k]) + 1, 8), r.v[k] = calloc((size_t)cot_size(xs[k]) + 1, 8);
    return r;
}

static void trainer_step(trainer *r, cot_var loss) {
    cot_tape *t = cot_tape_of(loss);
    bits_var(loss);
    cot_backward(loss);
    cot_adamw_step(r->n, r->xs, r->m, r->v, (cot_adamw){.step = ++r->step, .rate = 0.01, .decay = 0.1});
    cot_tape_zero_grads(t);
}

static void trainer_close(trainer *r) {
    for (int k = 0; k < r->n; k++) {
        bits_var(r->xs[k]);
        free(r->m[k]);
        free(r->v[k]);
    }
}

void bits_family_optimisers(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
        cot_tape *t    = cot_tape_create(NULL);
        cot_var   w[2] = {bits_leaf(t, DTYPE(d), COT_SHAPE(WIDTH), 1, -1, 1),
                          bits_leaf(t, DTYPE(d), COT_SHAPE(301), 2, -1, 1)};
        cot_mark  m    = cot_tape_mark(t);
        trainer   r    = trainer_of(2, w);
        bits_item("adamw %s", cot_dtype_name(DTYPE(d)));
        for (int i = 0; d < 2 && i < 5; i++, cot_tape_rewind(t, m))
            trainer_step(&r, cot_add(bumpy(w[0]), bits_loss(w[1])));
        trainer_close(&r);
        bits_item("sgd %s", cot_dtype_name(DTYPE(d)));
        for (int i = 0; i < 5; i++, cot_tape_rewind(t, m)) {
            cot_backward(cot_add(bumpy(w[0]), bits_loss(w[1])));
            cot_sgd_step(2, w, 0.001);
            cot_tape_zero_grads(t);
        }
        bits_var(w[0]), bits_var(w[1]);
        bits_close(t);
    }
}

void bits_family_mlp(void) {
    for (int d = 0; d < 2; d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_key   keys[4];
        cot_key_split(cot_key_of(5), 4, keys);
        cot_var x      = cot_normal(t, keys[0], DTYPE(d), COT_SHAPE(64, 30)),
                labels = bits_leaf(t, COT_I64, COT_SHAPE(64), 1, 0, 10);
        cot_var  w[4]  = {cot_leaf(cot_mul(0.2, cot_normal(t, keys[1], DTYPE(d), COT_SHAPE(30, 50)))),
                          cot_tensor(t, DTYPE(d), COT_SHAPE(50), NULL),
                          cot_leaf(cot_mul(0.2, cot_normal(t, keys[2], DTYPE(d), COT_SHAPE(50, 10)))),
                          cot_tensor(t, DTYPE(d), COT_SHAPE(10), NULL)};
        cot_mark m     = cot_tape_mark(t);
        trainer  r     = trainer_of(4, w);
        bits_item("mlp %s", cot_dtype_name(DTYPE(d)));
        for (int i = 0; i < 10; i++, cot_tape_rewind(t, m)) {
            cot_var h =
                cot_dropout(cot_gelu(cot_add(cot_matmul(x, w[0]), w[1])), 0.1, cot_key_fold(keys[3], (uint64_t)i));
            trainer_step(&r, cot_softmax_cross_entropy(cot_add(cot_matmul(h, w[2]), w[3]), labels));
        }
        trainer_close(&r);
        bits_close(t);
    }
}

void bits_family_cnn(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_detach(bits_leaf(t, COT_F32, COT_SHAPE(8, 1, 12, 12), 1, -1, 1));
    cot_var   labels = bits_leaf(t, COT_I64, COT_SHAPE(8), 2, 0, 10);
    cot_var   w[5] = {bits_leaf(t, COT_F32, COT_SHAPE(6, 1, 3, 3), 3, -0.5, 0.5),
                      bits_leaf(t, COT_F32, COT_SHAPE(8, 6, 3, 3), 4, -0.2, 0.2),
                      bits_leaf(t, COT_F32, COT_SHAPE(72, 10), 5, -0.2, 0.2),
                      cot_tensor(t, COT_F32, COT_SHAPE(72), NULL), bits_leaf(t, COT_F32, COT_SHAPE(72), 6, 0.9, 1.1)};
    cot_mark  m = cot_tape_mark(t);
    trainer   r = trainer_of(5, w);
    bits_item("cnn");
    for (int i = 0; i < 5; i++, cot_tape_rewind(t, m)) {
        cot_conv_options same = COT_CONV(.padding = {1, 1});
        cot_pool_options half = COT_POOL(.window = {2, 2});
        cot_var          h = cot_max_pool2d(cot_relu(cot_conv2d(x, w[0], same)), half);
        h = cot_max_pool2d(cot_silu(cot_conv2d(h, w[1], same)), half);
        h = cot_layer_norm(cot_reshape(h, COT_SHAPE(8, 72)), w[4], w[3], -1, 1e-5);
        trainer_step(&r, cot_softmax_cross_entropy(cot_matmul(h, w[2]), labels));
    }
    trainer_close(&r);
    bits_close(t);
}

/* ---- compiled -------------------------------------------------------------------------------- */

/* Products with an end, and a loss. */
static int network(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var h = cot_gelu(cot_add(cot_matmul(xs[0], xs[1]), xs[2]));
    (void)n, (void)m, (void)user;
    ys[0] = cot_mse(cot_sigmoid(cot_matmul(h, cot_transpose(h))), cot_number(0.25));
    return 0;
}

/* Reductions of all elements, and of rows that are large enough to run in groups with what stands
 * around them; reads that are shifted and turned. */
static int groups(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var x = xs[0], z = cot_softmax(cot_tanh(cot_mul(x, 1.5)), -1);
    (void)n, (void)m, (void)user;
    z = cot_add(z, cot_exp(cot_layer_norm(cot_sin(x), xs[1], xs[2], -1, 1e-5)));
    z = cot_mul(cot_slice(z, 0, 1, COT_END, 1), cot_sub(cot_slice(x, 0, 0, -1, 1), cot_mean(x, COT_ALL)));
    ys[0] = cot_add(cot_sum(z, COT_AXES(1)), cot_max(cot_transpose(z), COT_AXES(0)));
    return 0;
}

/* As one operation on a tape, whose derivatives are programs too. */
static void called(cot_tape *t, cot_fn f, int n, const cot_var *xs) {
    cot_type types[4];
    cot_var  y;
    for (int k = 0; k < n; k++) types[k] = (cot_type){cot_dtype_of(xs[k]), cot_shape_of(xs[k])};
    cot_program *p = cot_compile(f, NULL, n, types, 1, NULL);
    cot_program_call(p, n, xs, 1, &y);
    bits_derivatives(y, n, xs);
    cot_program_destroy(p);
    bits_close(t);
}

void bits_family_compiled(void) {
    for (int d = 0; d < BITS_DTYPE_COUNT; d++) {
        cot_tape *t = cot_tape_create(NULL);
        bits_item("network %s", cot_dtype_name(DTYPE(d)));
        called(t, network, 3, (cot_var[]){bits_leaf(t, DTYPE(d), COT_SHAPE(40, 30), 1, -1, 1),
                                          bits_leaf(t, DTYPE(d), COT_SHAPE(30, 50), 2, -1, 1),
                                          bits_leaf(t, DTYPE(d), COT_SHAPE(50), 3, -1, 1)});
        for (int rows = 5; rows <= 300; rows += 295) {
            t = cot_tape_create(NULL);
            bits_item("groups of %d rows %s", rows, cot_dtype_name(DTYPE(d)));
            called(t, groups, 3, (cot_var[]){bits_leaf(t, DTYPE(d), COT_SHAPE(rows, 512), 4, -1, 1),
                                             bits_leaf(t, DTYPE(d), COT_SHAPE(512), 5, 0.5, 1.5),
                                             bits_leaf(t, DTYPE(d), COT_SHAPE(512), 6, -1, 1)});
        }
    }
}
