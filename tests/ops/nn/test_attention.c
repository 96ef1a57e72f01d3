/* Attention: against loops in plain C and against its composition, at tile tails, with masks, NaN,
 * empty axes, threads, failing memory. */
/* ctest: labels=threads timeout=120 */
#include "support/support.h"
#include "support/tape_test.h"

#include "base/random.h"
#include "backend/cpu/nn/nn.h"
#include "ops/costs.h"
#include "rules/structural_ids.h"
#include "tape/tape.h"

#include <float.h>

static double uniform(uint64_t seed, uint64_t i) {
    return 2 * (double)(cot__mixed((seed << 32) + i) >> 11) * 0x1p-53 - 1;
}

static cot_var make(cot_tape *t, cot_dtype dtype, cot_shape shape, uint64_t seed, bool leaf) {
    int64_t n = 1;
    for (int i = 0; i < shape.ndim; i++) n *= shape.dim[i];
    char *data = malloc((size_t)n * 8 + 1);
    for (int64_t i = 0; i < n; i++)
        cot__store_f64(data + i * cot__dtype_size(dtype), dtype,
                       dtype == COT_BOOL ? uniform(seed, (uint64_t)i) > -0.4 : uniform(seed, (uint64_t)i));
    cot_var x = leaf ? cot_tensor(t, dtype, shape, data) : cot_data(t, dtype, shape, data);
    free(data);
    return x;
}

static double *read_all(cot_var x) {
    int64_t n = cot_size(x);
    double *out = malloc((size_t)n * sizeof *out + 1);
    if (cot_read(x, out, n) != COT_OK) fail_msg("%s", cot_tape_message(x.tape));
    return out;
}

static double *read_gradient(cot_var x) {
    int64_t n = cot_size(x);
    double *out = malloc((size_t)n * sizeof *out + 1);
    if (cot_read_grad(x, out, n) != COT_OK) fail_msg("%s", cot_tape_message(x.tape));
    return out;
}

/* ---- against plain loops, each variant of the kernel ----------------------------------------- */

/* causal: how many keys the first query sees, 0 for all */
typedef struct problem { int64_t h, t, s, d, e, causal; bool mask, bias; } problem;

/* z, lse and the three adjoints by their definition, in double. Rows of masks repeat over heads. */
static void plain(const problem *p, double scale, const double *q, const double *k, const double *v, const double *mask,
                  const double *bias, const double *g, double *z, double *lse, double *dq, double *dk, double *dv) {
    double *w = malloc((size_t)p->s * sizeof *w + 1);
    memset(dk, 0, (size_t)(p->h * p->s * p->d) * sizeof *dk);
    memset(dv, 0, (size_t)(p->h * p->s * p->e) * sizeof *dv);
    for (int64_t row = 0; row < p->h * p->t; row++) {
        int64_t h = row / p->t, i = row % p->t;
        double  top = -INFINITY, sum = 0, delta = 0;
        for (int64_t j = 0; j < p->s; j++) {
            double x = 0;
            for (int64_t c = 0; c < p->d; c++) x += q[row * p->d + c] * k[(h * p->s + j) * p->d + c];
            x *= scale;
            if (p->bias) x += bias[i * p->s + j];
            if ((p->causal && j >= i + p->causal) || (p->mask && mask[i * p->s + j] == 0)) x = -INFINITY;
            w[j] = x;
            top = fmax(top, x);
        }
        for (int64_t j = 0; j < p->s; j++) sum += top == -INFINITY ? 0 : exp(w[j] - top);
        lse[row] = sum == 0 ? -INFINITY : top + log(sum);
        for (int64_t j = 0; j < p->s; j++) w[j] = sum == 0 ? 0 : exp(w[j] - lse[row]);
        for (int64_t c = 0; c < p->e; c++) {
            double x = 0;
            for (int64_t j = 0; j < p->s; j++) x += w[j] * v[(h * p->s + j) * p->e + c];
            z[row * p->e + c] = x;
            delta += x * g[row * p->e + c];
        }
        for (int64_t c = 0; c < p->d; c++) dq[row * p->d + c] = 0;
        for (int64_t j = 0; j < p->s; j++) {
            double dp = 0;
            for (int64_t c = 0; c < p->e; c++) {
                dp += g[row * p->e + c] * v[(h * p->s + j) * p->e + c];
                dv[(h * p->s + j) * p->e + c] += w[j] * g[row * p->e + c];
            }
            double ds = scale * w[j] * (dp - delta);
            for (int64_t c = 0; c < p->d; c++) {
                dq[row * p->d + c] += ds * k[(h * p->s + j) * p->d + c];
                dk[(h * p->s + j) * p->d + c] += ds * q[row * p->d + c];
            }
        }
    }
    free(w);
}

static void same(const char *what, const problem *p, int narrower, cot_dtype d, int64_t n, const double *want,
                 const void *got, double tolerance) {
    for (int64_t i = 0; i < n; i++) {
        double x = cot__load_f64((const char *)got + i * cot__dtype_size(d), d);
        if (x == want[i] || fabs(x - want[i]) <= tolerance * (1 + fabs(want[i]))) continue;
        fail_msg("%s[%d] is %.17g, not %.17g: heads %d, queries %d, keys %d, features %d and %d, causal %d, mask %d, "
                 "bias %d, %s, %d narrower",
                 what, (int)i, x, want[i], (int)p->h, (int)p->t, (int)p->s, (int)p->d, (int)p->e, (int)p->causal,
                 p->mask, p->bias, cot_dtype_name(d), narrower);
    }
}

/* Row-major arrays of the two dtypes; the kernel reads `narrow`. */
typedef struct array { int64_t n, shape[3], stride[3]; double *wide; void *narrow; cot__view view; } array;

static void array_make(array *a, cot_dtype d, int64_t x, int64_t y, int64_t z, uint64_t seed) {
    a->shape[0] = x, a->shape[1] = y, a->shape[2] = z;
    cot__strides(3, a->shape, a->stride);
    a->n = x * y * z;
    a->wide = malloc((size_t)a->n * 8 + 1);
    a->narrow = malloc((size_t)a->n * 8 + 1);
    for (int64_t i = 0; i < a->n; i++) {
        char *at = (char *)a->narrow + i * cot__dtype_size(d);
        cot__store_f64(at, d, d == COT_BOOL ? uniform(seed, (uint64_t)i) > -0.4 : uniform(seed, (uint64_t)i));
        a->wide[i] = cot__load_f64(at, d);
    }
    a->view = (cot__view){a->narrow, d, 3, a->shape, a->stride};
}

static void array_free(array *a) { free(a->wide), free(a->narrow); }

static void check_problem(const problem *p, cot_dtype d, int narrower) {
    enum { NQ, NK, NV, NM, NB, NG, NZ, NL, NDQ, NDK, NDV, COUNT };
    array          a[COUNT];
    const cot_dtype dtype[COUNT] = {d, d, d, COT_BOOL, d, d, d, cot__dtype_compute(d), d, d, d};
    const int64_t   shape[COUNT][3] = {{p->h, p->t, p->d}, {p->h, p->s, p->d}, {p->h, p->s, p->e}, {1, p->t, p->s},
                                       {1, p->t, p->s},    {p->h, p->t, p->e}, {p->h, p->t, p->e}, {p->h, p->t, 1},
                                       {p->h, p->t, p->d}, {p->h, p->s, p->d}, {p->h, p->s, p->e}};
    for (int i = 0; i < COUNT; i++) array_make(&a[i], dtype[i], shape[i][0], shape[i][1], shape[i][2], (uint64_t)i + 1);
    cot__attention job = {.q        = a[NQ].view,
                          .k        = a[NK].view,
                          .v        = a[NV].view,
                          .causal   = p->causal,
                          .scale    = 1.5,
                          .z        = a[NZ].view,
                          .lse      = a[NL].view,
                          .g        = a[NG].view,
                          .dq       = a[NDQ].view,
                          .dk       = a[NDK].view,
                          .dv       = a[NDV].view,
                          .narrower = narrower};
    a[NM].shape[0] = a[NB].shape[0] = p->h, a[NM].stride[0] = a[NB].stride[0] = 0;
    if (p->mask) job.mask = a[NM].view;
    if (p->bias) job.bias = a[NB].view;
    job.lse.ndim = 2;
    int64_t room[2] = {cot__attention_bytes(&job, false), cot__attention_bytes(&job, true)};
    assert_true(room[0] >= 0 && room[1] >= 0);
    void *memory = malloc((size_t)(room[0] > room[1] ? room[0] : room[1]) + 1);
    /* NaN: nothing may rely on zeros */
    memset(memory, 0xff, (size_t)(room[0] > room[1] ? room[0] : room[1]));
    plain(p, 1.5, a[NQ].wide, a[NK].wide, a[NV].wide, a[NM].wide, a[NB].wide, a[NG].wide, a[NZ].wide, a[NL].wide,
          a[NDQ].wide, a[NDK].wide, a[NDV].wide);
    cot__attention_forward(&job, memory);
    cot__attention_backward(&job, memory);
    /* Chains of up to d + s terms of size one, each step off by half a unit; z itself is rounded to
     * its dtype before backward reads it. */
    double unit = d == COT_F64 ? DBL_EPSILON : d == COT_F32 ? (double)FLT_EPSILON : d == COT_F16 ? 0x1p-10 : 0x1p-7;
    double tolerance = (d <= COT_F32 ? 8 + (double)(p->d + p->e + p->s + p->t) / 4 : 8) * unit;
    same("z", p, narrower, d, a[NZ].n, a[NZ].wide, a[NZ].narrow, tolerance);
    same("lse", p, narrower, dtype[NL], a[NL].n, a[NL].wide, a[NL].narrow, tolerance);
    same("dq", p, narrower, d, a[NDQ].n, a[NDQ].wide, a[NDQ].narrow, tolerance);
    same("dk", p, narrower, d, a[NDK].n, a[NDK].wide, a[NDK].narrow, tolerance);
    same("dv", p, narrower, d, a[NDV].n, a[NDV].wide, a[NDV].narrow, tolerance);
    free(memory);
    for (int i = 0; i < COUNT; i++) array_free(&a[i]);
}

static void every_variant_is_the_definition(void **state) {
    (void)state;
    static const problem problems[] = {
        {1, 1, 1, 1, 1, 0, 0, 0},       {1, 1, 1, 1, 1, 1, 0, 0},       {2, 3, 5, 4, 7, 0, 0, 0},
        {2, 5, 3, 17, 1, 1, 0, 0},      {1, 63, 64, 16, 16, 0, 0, 0},   {1, 64, 63, 15, 33, 1, 0, 0},
        {1, 65, 66, 31, 32, 1, 1, 0},   {2, 66, 65, 33, 16, 0, 1, 1},   {1, 130, 70, 8, 5, 1, 0, 1},
        {1, 70, 130, 5, 8, 1, 1, 1},    {3, 129, 129, 32, 32, 1, 0, 0}, {17, 9, 11, 3, 2, 0, 0, 1},
        {1, 200, 257, 48, 20, 0, 1, 0}, {0, 3, 4, 2, 2, 0, 0, 0},       {2, 0, 4, 2, 2, 0, 0, 0},
        {2, 3, 0, 2, 2, 1, 0, 0},       {2, 3, 4, 0, 2, 0, 0, 0},       {2, 3, 4, 2, 0, 0, 0, 0},
        {1, 7, 5, 70, 66, 0, 0, 0},     {1, 1, 300, 64, 64, 0, 1, 0},   {2, 3, 7, 4, 5, 4, 0, 0},
        {1, 1, 200, 9, 9, 130, 0, 0},   {1, 130, 200, 8, 5, 65, 0, 1},  {1, 70, 130, 5, 8, 64, 1, 0},
        {2, 140, 70, 8, 8, 63, 0, 0},   {1, 3, 5, 2, 2, 300, 0, 0},
    };
    for (int i = 0; i < (int)(sizeof problems / sizeof *problems); i++)
        for (int narrower = 0; narrower < 3; narrower++)
            for (int d = COT_F64; d <= COT_F16; d++) check_problem(&problems[i], (cot_dtype)d, narrower);
    for (int64_t n = 0; n <= (test_small() ? 20 : 66); n++) /* every tail of every axis */
        for (int narrower = 0; narrower < 3; narrower++) {
            check_problem(&(problem){1, n, 5, 3, 4, 1, 0, 0}, COT_F32, narrower);
            check_problem(&(problem){1, 5, n, 3, 4, 1, 0, 0}, COT_F32, narrower);
            check_problem(&(problem){1, 5, 4, n, 3, 0, 0, 0}, COT_F32, narrower);
            check_problem(&(problem){1, 5, 4, 3, n, 0, 0, 0}, COT_F64, narrower);
        }
}

/* Queries one by one, each at its position, as in decoding with kept keys. */
static void one_query_at_its_position_is_its_row_to_the_bit(void **state) {
    (void)state;
    for (int d = COT_F64; d <= COT_F16; d++) {
        enum { N = 131, WIDTH = 9 };
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x[3];
        for (int i = 0; i < 3; i++) x[i] = make(t, (cot_dtype)d, COT_SHAPE(2, N, WIDTH), 1 + (uint64_t)i, true);
        double *all = read_all(cot_attention(x[0], x[1], x[2], &(cot_attention_options){.causal = true}));
        for (int64_t i = 0; i < N; i++) {
            cot_var q = cot_slice(x[0], 1, i, i + 1, 1);
            /* later keys are there, or not yet */
            cot_var k = i % 2 ? cot_slice(x[1], 1, 0, i + 1, 1) : x[1];
            cot_var v = i % 2 ? cot_slice(x[2], 1, 0, i + 1, 1) : x[2];
            double *one = read_all(cot_attention(q, k, v, &(cot_attention_options){.causal = true, .first_query = i}));
            for (int h = 0; h < 2; h++) assert_memory_equal(one + h * WIDTH, all + (h * N + i) * WIDTH, WIDTH * 8);
            free(one);
        }
        assert_ok(t);
        free(all);
        cot_tape_destroy(t);
    }
}

static cot_var later(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    cot_attention_options o = {.causal = true, .first_query = 2, .bias = xs[3]};
    return cot_attention(xs[0], xs[1], xs[2], &o);
}
static int later_fn(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    ys[0] = later(n, xs, user);
    return cot_grad_of(cot_sum(cot_sin(ys[0]), COT_ALL), n, xs, ys + 1) == COT_OK ? 0 : 1;
}

/* z and the three gradients: two heads of t queries and keys. What `tiny` multiplies with weights
 * vanishes, half of it as -0. Query `odd` is NaN, if there is one. */
static void causal_or_masked(bool masked, int64_t t, double tiny, int64_t odd, double *out[4]) {
    cot_tape *tape = cot_tape_create(NULL);
    cot_shape shape = COT_SHAPE(2, t, 40);
    cot_var   q = make(tape, COT_F32, shape, 1, true), k = make(tape, COT_F32, shape, 2, true);
    cot_var   v = make(tape, COT_F32, shape, 3, true), g = make(tape, COT_F32, shape, 4, false);
    cot_var   at = cot_arange(tape, COT_I64, 0, (double)t, 1);
    cot_var   mask = cot_less_equal(at, cot_reshape(at, COT_SHAPE(t, 1)));
    cot_attention_options how = {.causal = !masked, .mask = masked ? mask : (cot_var){0}};
    cot_var   asked = cot_where(cot_equal(cot_reshape(at, COT_SHAPE(t, 1)), (double)odd), cot_number(NAN), q);
    cot_var   z = cot_attention(asked, k, cot_mul(v, cot_number(tiny)), &how);
    cot_backward(cot_sum(cot_mul(z, g), COT_ALL));
    assert_int_equal(cot_tape_status(tape), COT_OK);
    out[0] = read_all(z);
    out[1] = read_gradient(q), out[2] = read_gradient(k), out[3] = read_gradient(v);
    cot_tape_destroy(tape);
}

static bool same_elements(const double *x, const double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(&x[i], &y[i], sizeof *x) != 0 && !(isnan(x[i]) && isnan(y[i]))) return false;
    return true;
}

/* Products of tiles on the diagonal leave out what is hidden. A mask hides the same, and there
 * nothing is left out: a sum that is -0 shows terms of +0, and a query that is NaN shows in all
 * keys of its tile. (Beyond the first tile a mask has whole tiles of them.) */
static void what_causal_leaves_out_changes_no_bit(void **state) {
    static const struct { int64_t t; double tiny; int64_t odd; } each[] = {
        {64, 1, -1}, {64, 1e-44, -1}, {64, 3e-38, -1}, {192, 1, -1}, {200, 1, -1}, {64, 1, 10}};
    (void)state;
    for (int n = 0; n < TEST_COUNT(each); n++) {
        double *want[4], *got[4];
        int64_t size = 2 * each[n].t * 40, minus = 0;
        causal_or_masked(true, each[n].t, each[n].tiny, each[n].odd, want);
        causal_or_masked(false, each[n].t, each[n].tiny, each[n].odd, got);
        for (int k = 0; k < 4; k++) {
            TEST_CHECK(same_elements(want[k], got[k], size), "t %d, tiny %g, odd %d, array %d", (int)each[n].t,
                       each[n].tiny, (int)each[n].odd, k);
            for (int64_t i = 0; i < size; i++) minus += want[k][i] == 0 && signbit(want[k][i]);
            free(want[k]), free(got[k]);
        }
        TEST_CHECK(each[n].tiny > 1e-40 || minus > 0, "no element is -0");
    }
    test_verdict();
}

/* Both modes to second order; as one batch, and compiled, with the bits of the tape. */
static void a_later_first_query_goes_through_every_transformation(void **state) {
    (void)state;
    static const int64_t shape[4][3] = {{2, 3, 2}, {2, 6, 2}, {2, 6, 3}, {2, 3, 6}};
    double               data[4][36], want[5][36], got[5][36];
    cot_array            at[4];
    cot_type             types[4];
    for (int k = 0; k < 4; k++) {
        int64_t n = shape[k][0] * shape[k][1] * shape[k][2];
        for (int64_t i = 0; i < n; i++) data[k][i] = uniform((uint64_t)k, (uint64_t)i);
        cot_shape s = COT_SHAPE(shape[k][0], shape[k][1], shape[k][2]);
        at[k] = (cot_array){COT_F64, s, n, data[k]};
        types[k] = (cot_type){COT_F64, s};
    }
    cot_check_report report;
    if (cot_check_grads(later, NULL, 4, at, 2, &report) != COT_OK) fail_msg("%s", report.message);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[4], ys[5], each[5];
    for (int k = 0; k < 4; k++) xs[k] = cot_tensor(t, COT_F64, at[k].shape, data[k]);
    assert_int_equal(later_fn(4, xs, 5, ys, NULL), 0);
    assert_int_equal(cot_vmap(later_fn, NULL, 4, xs, NULL, 5, each, NULL), COT_OK);
    cot_program *program = cot_compile(later_fn, NULL, 4, types, 5, NULL);
    assert_non_null(program);
    void *out[5] = {got[0], got[1], got[2], got[3], got[4]};
    cot_run *run = cot_run_create(program);
    assert_int_equal(cot_program_run(run, (const void *[]){data[0], data[1], data[2], data[3]}, out), COT_OK);
    for (int k = 0; k < 5; k++) {
        size_t bytes = (size_t)cot_size(ys[k]) * sizeof(double);
        cot_read(ys[k], want[k], cot_size(ys[k]));
        assert_memory_equal(want[k], got[k], bytes);
        cot_read(each[k], got[k], cot_size(ys[k]));
        assert_memory_equal(want[k], got[k], bytes);
    }
    assert_ok(t);
    cot_run_destroy(run);
    cot_program_destroy(program);
    cot_tape_destroy(t);
}

/* ---- against the composition, through the tape ----------------------------------------------- */

/* softmax(scale q kᵀ + bias) v of unmasked queries, in recorded operations. */
static cot_var composed(cot_var q, cot_var k, cot_var v, const cot_attention_options *o) {
    cot_shape s = cot_shape_of(k);
    cot_axes  order = {s.ndim, false, {0}};
    for (int i = 0; i < s.ndim; i++) order.axis[i] = i < s.ndim - 2 ? i : 2 * s.ndim - 3 - i;
    cot_var x =
        cot_mul(cot_matmul(q, cot_permute(k, order)), o->scale > 0 ? o->scale : 1 / sqrt((double)s.dim[s.ndim - 1]));
    if (o->bias.tape) x = cot_add(x, o->bias);
    if (o->mask.tape) x = cot_where(o->mask, x, -INFINITY);
    return cot_matmul(cot_softmax(x, -1), v);
}

static void compare_vars(cot_var a, cot_var b, double tolerance) {
    double *x = read_all(a), *y = read_all(b);
    assert_int_equal(cot_size(a), cot_size(b));
    for (int64_t i = 0; i < cot_size(a); i++) assert_near(x[i], y[i], tolerance);
    free(x), free(y);
}

/* Heads that broadcast, strided operands (a batch of heads inside the features), a bias that moves;
 * value, gradient, second order. */
static void it_is_its_composition_to_second_order(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var x[4] = {make(t, COT_F64, COT_SHAPE(2, 70, 3, 5), 1, true),
                    make(t, COT_F64, COT_SHAPE(1, 3, 67, 5), 2, true),
                    make(t, COT_F64, COT_SHAPE(67, 4), 3, true),
                    make(t, COT_F64, COT_SHAPE(3, 1, 67), 4, true)};
    cot_var   mask = make(t, COT_BOOL, COT_SHAPE(70, 67), 5, false), y[2], g[2][4], h[2];
    cot_attention_options o = {.scale = 0.8, .mask = mask, .bias = x[3]};
    cot_var   q = cot_permute(x[0], COT_AXES(0, 2, 1, 3));
    y[0] = cot_attention(q, x[1], x[2], &o);
    y[1] = composed(q, x[1], x[2], &o);
    for (int i = 0; i < 2; i++) {
        cot_var z = cot_sum(cot_mul(y[i], cot_sin(y[i])), COT_ALL), direction[4];
        assert_int_equal(cot_grad_of(z, 4, x, g[i]), COT_OK);
        for (int k = 0; k < 4; k++) direction[k] = make(t, COT_F64, cot_shape_of(x[k]), 10 + (uint64_t)k, false);
        compare_vars(cot_jvp(y[0], 4, x, direction), cot_jvp(y[1], 4, x, direction), 1e-13);
        cot_var all = cot_sum(cot_square(g[i][0]), COT_ALL);
        for (int k = 1; k < 4; k++) all = cot_add(all, cot_sum(cot_square(g[i][k]), COT_ALL));
        h[i] = all;
    }
    compare_vars(y[0], y[1], 1e-14);
    for (int k = 0; k < 4; k++) compare_vars(g[0][k], g[1][k], 1e-13);
    cot_var second[2][4];
    for (int i = 0; i < 2; i++) assert_int_equal(cot_grad_of(h[i], 4, x, second[i]), COT_OK);
    for (int k = 0; k < 4; k++) compare_vars(second[0][k], second[1][k], 1e-12);
    assert_ok(t);
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    cot_tape_destroy(t);
}

static void halves_compute_in_f32_and_integers_in_f64(void **state) {
    (void)state;
    for (int d = COT_BF16; d <= COT_F16; d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   q = make(t, (cot_dtype)d, COT_SHAPE(9, 6), 1, true),
                k   = make(t, (cot_dtype)d, COT_SHAPE(300, 6), 2, true);
        cot_var   v = make(t, (cot_dtype)d, COT_SHAPE(300, 6), 3, true), y = cot_attention(q, k, v, NULL);
        assert_int_equal(cot_dtype_of(y), d);
        cot_var wide = cot_cast(cot_attention(cot_cast(q, COT_F32), cot_cast(k, COT_F32), cot_cast(v, COT_F32), NULL),
                                (cot_dtype)d);
        compare_vars(y, wide, 0); /* rounded once */
        cot_var g[3], h[3], s = cot_cast(cot_sum(y, COT_ALL), COT_F64);
        assert_int_equal(cot_grad_of(s, 3, (cot_var[]){q, k, v}, g), COT_OK);
        assert_int_equal(cot_grad_of(cot_sum(cot_square(cot_cast(g[1], COT_F64)), COT_ALL), 3, (cot_var[]){q, k, v}, h),
                         COT_OK);
        for (int i = 0; i < 3; i++) assert_int_equal(cot_dtype_of(h[i]), d);
        cot_tape_destroy(t);
    }
    cot_tape *t = cot_tape_create(NULL);
    cot_var   i = cot_data(t, COT_I32, COT_SHAPE(2, 1), (int32_t[]){1, 2});
    assert_int_equal(cot_dtype_of(cot_attention(i, i, i, NULL)), COT_F64);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- masks, NaN, nothing --------------------------------------------------------------------- */

/* Rows without a key, by mask and by bias, are zeros with zero gradients, next to rows that are as
 * if the others were not there. */
static void a_query_without_keys_gives_zeros(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x        = make(t, COT_F32, COT_SHAPE(3, 4), 1, true),
            w[2]       = {make(t, COT_F32, COT_SHAPE(5, 4), 2, true), make(t, COT_F32, COT_SHAPE(5, 2), 3, true)};
    uint8_t   mask[15] = {1, 1, 0, 1, 1};
    float     bias[15] = {0};
    /* row 1 by mask, row 2 by bias */
    for (int j = 0; j < 5; j++) mask[10 + j] = 1, bias[10 + j] = -INFINITY;
    cot_attention_options o = {.mask = cot_data(t, COT_BOOL, COT_SHAPE(3, 5), mask),
                               .bias = cot_tensor(t, COT_F32, COT_SHAPE(3, 5), bias)};
    cot_var   y = cot_attention(x, w[0], w[1], &o);
    double   *z = read_all(y);
    for (int i = 2; i < 6; i++) assert_true(z[i] == 0);
    cot_var row   = cot_slice(x, 0, 0, 1, 1),
            alone = cot_attention(row, w[0], w[1],
                                  &(cot_attention_options){.mask = cot_data(t, COT_BOOL, COT_SHAPE(5), mask)});
    double   *a = read_all(alone);
    assert_true(z[0] == a[0] && z[1] == a[1] && z[0] != 0);
    cot_backward_seeded(y, cot_number(1));
    double *g = read_gradient(x), *b = read_gradient(o.bias);
    for (int i = 4; i < 12; i++) assert_true(g[i] == 0);
    for (int i = 5; i < 15; i++) assert_true(b[i] == 0);
    cot_var first, second;
    assert_int_equal(cot_grad_of(cot_sum(cot_square(y), COT_ALL), 1, &x, &first), COT_OK);
    assert_int_equal(cot_grad_of(cot_sum(cot_square(first), COT_ALL), 1, &x, &second), COT_OK);
    double *h = read_all(second);
    for (int i = 0; i < 12; i++) assert_true(i < 4 ? h[i] != 0 : h[i] == 0);
    free(z), free(a), free(g), free(b), free(h);
    cot_tape_destroy(t);
}

/* The contents of a masked key reach neither values nor first gradients, also if it shares a tile
 * with visible keys. A visible NaN reaches its query and no other. */
static void nan_stays_where_it_is_seen(void **state) {
    (void)state;
    float     q[70 * 3], kv[70 * 3];
    cot_tape *t = cot_tape_create(NULL);
    for (int i = 0; i < 70 * 3; i++) q[i] = (float)uniform(1, (uint64_t)i), kv[i] = (float)uniform(2, (uint64_t)i);
    for (int c = 0; c < 3; c++) kv[40 * 3 + c] = c ? (float)INFINITY : (float)NAN, q[50 * 3 + c] = (float)NAN;
    cot_var x = cot_tensor(t, COT_F32, COT_SHAPE(70, 3), q), y = cot_tensor(t, COT_F32, COT_SHAPE(70, 3), kv);
    cot_var v = make(t, COT_F32, COT_SHAPE(70, 2), 3, true),
            z = cot_attention(x, y, v, &(cot_attention_options){.causal = true});
    double *a = read_all(z), *g[2];
    /* every query from 40 on sees key 40 */
    for (int i = 0; i < 70; i++) assert_true(isnan(a[2 * i]) == (i >= 40));
    cot_var early = cot_attention(cot_slice(x, 0, 0, 40, 1), y, v, &(cot_attention_options){.causal = true});
    cot_backward_seeded(early, cot_number(1));
    g[0] = read_gradient(x), g[1] = read_gradient(y);
    for (int i = 0; i < 40 * 3; i++) assert_true(isfinite(g[0][i]) && isfinite(g[1][i]));
    for (int i = 64 * 3; i < 70 * 3; i++) assert_true(g[1][i] == 0);
    free(a), free(g[0]), free(g[1]);
    /* the same in v, by a mask, with values */
    float   w[70 * 2];
    uint8_t mask[70];
    for (int i = 0; i < 70; i++)
        mask[i] = i != 7, w[2 * i] = i == 7 ? (float)NAN : 1, w[2 * i + 1] = i == 7 ? (float)INFINITY : 2;
    cot_var k = make(t, COT_F32, COT_SHAPE(70, 3), 9, true), masked = cot_data(t, COT_BOOL, COT_SHAPE(70), mask),
            bad = cot_tensor(t, COT_F32, COT_SHAPE(70, 2), w);
    cot_var p = make(t, COT_F32, COT_SHAPE(70, 3), 8, true);
    z = cot_attention(p, k, bad, &(cot_attention_options){.mask = masked});
    a = read_all(z);
    for (int i = 0; i < 70; i++) assert_near(a[2 * i], 1, 1e-6), assert_near(a[2 * i + 1], 2, 1e-6);
    cot_backward_seeded(z, cot_number(1));
    g[0] = read_gradient(p), g[1] = read_gradient(k);
    for (int i = 0; i < 70 * 3; i++) assert_true(isfinite(g[0][i]) && isfinite(g[1][i]));
    free(a), free(g[0]), free(g[1]);
    cot_tape_destroy(t);
}

/* Scores far beyond what exp can hold. */
static void large_scores_neither_overflow_nor_vanish(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   q = cot_tensor(t, COT_F32, COT_SHAPE(1, 1), (float[]){1e4f}),
            k   = cot_tensor(t, COT_F32, COT_SHAPE(3, 1), (float[]){-1, 1, 0.5f});
    cot_var   v = cot_tensor(t, COT_F32, COT_SHAPE(3, 1), (float[]){1, 2, 3});
    assert_near(cot_value(cot_reshape(cot_attention(q, k, v, NULL), COT_SCALAR)), 2, 0);
    cot_tape_destroy(t);
}

static void empty_axes_have_defined_results(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var q = make(t, COT_F64, COT_SHAPE(2, 3, 4), 1, true), none = cot_tensor(t, COT_F64, COT_SHAPE(2, 0, 4), NULL);
    cot_var   y = cot_attention(q, none, none, NULL), g[3];
    double   *z = read_all(y);
    for (int i = 0; i < 24; i++) assert_true(z[i] == 0);
    assert_int_equal(cot_grad_of(cot_sum(y, COT_ALL), 2, (cot_var[]){q, none}, g), COT_OK);
    double *d = read_all(g[0]);
    for (int i = 0; i < 24; i++) assert_true(d[i] == 0);
    cot_var h;
    assert_int_equal(cot_grad_of(cot_sum(cot_square(g[0]), COT_ALL), 1, &q, &h), COT_OK);
    assert_int_equal(cot_size(cot_attention(none, q, q, &(cot_attention_options){.causal = true})), 0);
    cot_var batch = cot_tensor(t, COT_F64, COT_SHAPE(0, 3, 4), NULL);
    y = cot_attention(batch, batch, batch, NULL);
    assert_int_equal(cot_size(y), 0);
    assert_int_equal(cot_backward(cot_sum(y, COT_ALL)), COT_OK);
    /* no features: every key weighs the same */
    cot_var flat = cot_tensor(t, COT_F64, COT_SHAPE(3, 0), NULL);
    y = cot_attention(flat, flat, cot_data(t, COT_F64, COT_SHAPE(3, 1), (double[]){1, 2, 6}), NULL);
    assert_near(cot_value(cot_reshape(cot_slice(y, 0, 0, 1, 1), COT_SCALAR)), 3, 1e-15);
    assert_int_equal(cot_backward(cot_sum(y, COT_ALL)), COT_OK);
    assert_ok(t);
    free(z), free(d);
    cot_tape_destroy(t);
}

/* ---- memory, threads ------------------------------------------------------------------------- */

typedef struct peaking { counting c; size_t peak; } peaking;

static void *peak_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    peaking *p = user;
    void    *r = counting_alloc(&p->c, ptr, old_size, new_size);
    if (p->c.live > p->peak) p->peak = p->c.live;
    return r;
}

static size_t peak_of(int64_t n) {
    peaking     p = {0};
    cot_options o = {.allocator = {peak_alloc, &p}};
    cot_tape   *t = cot_tape_create(&o);
    cot_var     q = make(t, COT_F32, COT_SHAPE(n, 16), 1, true), k = make(t, COT_F32, COT_SHAPE(n, 16), 2, true),
            v = make(t, COT_F32, COT_SHAPE(n, 16), 3, true);
    assert_int_equal(cot_backward(cot_sum(cot_attention(q, k, v, &(cot_attention_options){.causal = true}), COT_ALL)),
                     COT_OK);
    cot_tape_destroy(t);
    assert_int_equal(p.c.live, 0);
    return p.peak;
}

static void memory_grows_with_the_sequence_not_its_square(void **state) {
    (void)state;
    size_t small = peak_of(2048), large = peak_of(4096);
    if (large > 2 * small + 65536) fail_msg("%zu bytes for 2048 positions, %zu for 4096", small, large);
    assert_true(large < 4096u * 4096u * sizeof(float) / 4); /* no matrix of scores fits in there */
}

/* Heads shared out, and a single head whose keys are. */
static void any_number_of_threads_gives_the_same_bits(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{8, 4, 130, 24}, {1, 1, 1100, 16}, {1, 3, 700, 8}};
    static const int     threads[] = {1, 2, 3, 8};
    for (int s = 0; s < 3; s++) {
        double *first[4] = {0};
        for (int n = 0; n < 4; n++) {
            cot_set_threads(threads[n]);
            cot_tape *t = cot_tape_create(NULL);
            cot_shape shape = {4, {shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3]}};
            cot_var   x[3], y;
            for (int i = 0; i < 3; i++) x[i] = make(t, COT_F32, shape, 1 + (uint64_t)i, true);
            y = cot_attention(x[0], x[1], x[2], &(cot_attention_options){.causal = s != 2});
            assert_int_equal(cot_backward_seeded(y, make(t, COT_F32, shape, 7, false)), COT_OK);
            for (int i = 0; i < 4; i++) {
                double *got = i < 3 ? read_gradient(x[i]) : read_all(y);
                if (n == 0) {
                    first[i] = got;
                    continue;
                }
                assert_memory_equal(got, first[i], (size_t)cot_size(y) * sizeof *got);
                free(got);
            }
            cot_tape_destroy(t);
        }
        for (int i = 0; i < 4; i++) free(first[i]);
    }
    cot_set_threads(0);
}

static void attend(cot_tape *t, void *user) {
    (void)user;
    cot_var q = make(t, COT_F32, COT_SHAPE(2, 70, 8), 1, true), mask = make(t, COT_BOOL, COT_SHAPE(70), 2, false), g;
    cot_attention_options o = {.causal = true, .mask = mask};
    cot_var y = cot_attention(q, q, q, &o);
    cot_backward(cot_sum(y, COT_ALL));
    cot_grad_of(cot_sum(y, COT_ALL), 1, &q, &g);
}

static void every_failing_allocation_is_an_error(void **state) {
    (void)state;
    assert_survives_no_memory(attend, NULL, 0, NULL);
}

/* What the forward pass did not reach must not stay on the tape, where clearing the error would
 * leave it. */
static void a_failure_leaves_no_sums_that_nothing_wrote(void **state) {
    (void)state;
    for (long left = 0, failed = 1; failed; left++) {
        counting  c = {0};
        cot_tape *t = counted_tape(&c, false);
        cot_var   x = cot_ones(t, COT_F64, COT_SHAPE(3, 2));
        let_succeed(&c, left);
        cot_attention(x, x, x, NULL);
        failed = c.failed;
        for (uint32_t i = 0; failed && i < t->count; i++) assert_int_not_equal(t->nodes[i].op, OP_attention);
        let_succeed(&c, -1);
        cot_tape_clear_error(t);
        cot_var y = cot_attention(x, x, x, NULL);
        assert_ok(t);
        assert_true(cot_value(cot_sum(y, COT_ALL)) == 6);
        cot_tape_destroy(t);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void wrong_operands_are_refused(void **state) {
    (void)state;
    counting  c = {.fail_from_size = (size_t)1 << 40};
    cot_tape *t = counted_tape(&c, false);
    cot_var   q = make(t, COT_F64, COT_SHAPE(2, 3, 4), 1, true), k = make(t, COT_F64, COT_SHAPE(2, 5, 4), 2, true),
            v = make(t, COT_F64, COT_SHAPE(2, 5, 2), 3, true);
#define REFUSED(code, text, ...)                                                                                       \
    do {                                                                                                               \
        assert_false(cot_is_valid(cot_attention(__VA_ARGS__)));                                                        \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)
    cot_var line = make(t, COT_F64, COT_SHAPE(4), 4, true);
    REFUSED(COT_VALUE, "[attention] the first query is at position -1; positions count from 0, to 2^48", q, k, v,
            &(cot_attention_options){.first_query = -1});
    REFUSED(COT_SHAPE,
            "[attention] q, k and v have shapes (4,), (2,5,4) and (2,5,2); each has at least two axes, positions and "
            "features",
            line, k, v, NULL);
    REFUSED(COT_SHAPE, "[attention] q has shape (2,3,4) and k (2,5,2); their last axes must be equal", q, v, v, NULL);
    REFUSED(COT_SHAPE, "[attention] k has shape (2,5,4) and v (2,3,4); their second last axes, the keys, must be equal",
            q, k, q, NULL);
    cot_var three = make(t, COT_F64, COT_SHAPE(3, 5, 2), 5, true);
    REFUSED(COT_SHAPE,
            "[attention] leading axes of q (2,3,4), k (2,5,4) and v (3,5,2) do not broadcast; aligned before the last "
            "two, extents are equal or 1",
            q, k, three, NULL);
    REFUSED(COT_VALUE, "[attention] the scale is -1; it must be positive and finite, or 0 for 1/sqrt of the last axis",
            q, k, v, &(cot_attention_options){.scale = -1});
    REFUSED(COT_VALUE, "[attention] the scale is nan; it must be positive and finite, or 0 for 1/sqrt of the last axis",
            q, k, v, &(cot_attention_options){.scale = (double)NAN});
    cot_var mask = make(t, COT_BOOL, COT_SHAPE(5, 3), 6, false), bias = make(t, COT_F64, COT_SHAPE(3, 3, 5), 7, false);
    REFUSED(COT_SHAPE, "[attention] the mask has shape (5,3), the scores (2,3,5); it must broadcast to theirs", q, k, v,
            &(cot_attention_options){.mask = mask});
    REFUSED(COT_SHAPE, "[attention] the bias has shape (3,3,5), the scores (2,3,5); it must broadcast to theirs", q, k,
            v, &(cot_attention_options){.bias = bias});
    REFUSED(COT_DTYPE,
            "[attention] the mask has dtype f64; a mask is bool, true where a key is seen; bias is what is added", q, k,
            v, &(cot_attention_options){.mask = bias});
    REFUSED(COT_DTYPE, "[attention] the bias has dtype bool; what is added is a float; a bool goes in as mask", q, k, v,
            &(cot_attention_options){.bias = mask});
    cot_var bad = INVALID(t);
    REFUSED(COT_VAR, "[attention] the mask operand is invalid: the operation that should have made it failed", q, k, v,
            &(cot_attention_options){.mask = bad});
    /* products that overflow: views of one element */
    cot_var one  = cot_tensor(t, COT_F64, COT_SHAPE(1, 1), NULL),
            huge = cot_broadcast_to(one, COT_SHAPE(1, INT64_C(1) << 56));
    REFUSED(COT_MEMORY, "[attention] the workspace would be larger than any memory", huge, huge, one, NULL);
    cot_var tall = cot_broadcast_to(one, COT_SHAPE(INT64_C(1) << 40, 1));
    REFUSED(COT_MEMORY, "[attention] out of memory: 8796093022208 bytes for a tensor", tall, one, one, NULL);
    cot_var heads = cot_broadcast_to(one, COT_SHAPE(INT64_C(1) << 50, 1, 1));
    REFUSED(COT_LIMIT, "[broadcast_to] shape (1125899906842624,1099511627776,1) has too many elements to address", tall,
            heads, one, NULL);
    cot_tape_destroy(t);
}

static void backward_costs_its_five_products(void **state) {
    (void)state;
    enum { HEADS = 2, QUERIES = 3, KEYS = 5, D = 4, E = 7 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[3] = {make(t, COT_F64, COT_SHAPE(HEADS, QUERIES, D), 1, true),
                       make(t, COT_F64, COT_SHAPE(HEADS, KEYS, D), 2, true),
                       make(t, COT_F64, COT_SHAPE(HEADS, KEYS, E), 3, true)},
              grads[3];
    cot_grad_of(cot_sum(cot_attention(xs[0], xs[1], xs[2], NULL), COT_ALL), 3, xs, grads);
    assert_ok(t);
    int found = 0;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].op == OP_attention_backward) {
            /* q kᵀ, s̄ k and s̄ᵀ q over D features, z̄ vᵀ and pᵀ z̄ over E */
            double want = 2.0 * HEADS * QUERIES * KEYS * (3 * D + 2 * E);
            assert_true(cot__cost_of_value(t, i) == want);
            found++;
        }
    assert_int_equal(found, 1);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward_costs_its_five_products),
        cmocka_unit_test(every_variant_is_the_definition),
        cmocka_unit_test(one_query_at_its_position_is_its_row_to_the_bit),
        cmocka_unit_test(what_causal_leaves_out_changes_no_bit),
        cmocka_unit_test(a_later_first_query_goes_through_every_transformation),
        cmocka_unit_test(it_is_its_composition_to_second_order),
        cmocka_unit_test(halves_compute_in_f32_and_integers_in_f64),
        cmocka_unit_test(a_query_without_keys_gives_zeros),
        cmocka_unit_test(nan_stays_where_it_is_seen),
        cmocka_unit_test(large_scores_neither_overflow_nor_vanish),
        cmocka_unit_test(empty_axes_have_defined_results),
        cmocka_unit_test(memory_grows_with_the_sequence_not_its_square),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(every_failing_allocation_is_an_error),
        cmocka_unit_test(a_failure_leaves_no_sums_that_nothing_wrote),
        cmocka_unit_test(wrong_operands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
