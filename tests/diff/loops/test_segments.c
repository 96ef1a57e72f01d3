/* Layers in segments (cot_checkpoint_sequential) and checkpoints inside of checkpoints: the bits of
 * the layers written out, one more forward, and memory for 2 √N layers. */
#include "support/tape_test.h"

#include "support/body_test.h"

#include <float.h>

enum { WIDTH = 3, ROWS = 2, LAYERS = 17 };

/* A deep network whose layers carry two values, have a weight each and share one more and a scalar,
 * which stand in several places of a layer. */
typedef struct deep {
    cot_tape *t;
    cot_var   x[2], own[LAYERS], shared, scale;
} deep;

static int layer(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    const deep *d = user;
    (void)n;
    cot_var h = cot_add(cot_matmul(xs[0], d->own[k]), cot_matmul(xs[1], d->shared));
    h = cot_tanh(cot_add(h, cot_sum(cot_square(d->shared), COT_ALL)));
    ys[0] = cot_add(cot_mul(h, d->scale), cot_matmul(xs[0], d->shared));
    ys[1] = cot_sub(xs[1], cot_mul(cot_sin(h), cot_exp(d->scale)));
    return 0;
}

/* Rows of numbers that are the same in all runs; a third of the last axis is zeros, of both
 * signs. */
static cot_var numbers(cot_tape *t, cot_dtype dtype, int64_t rows, unsigned seed) {
    double number[WIDTH * WIDTH];
    for (int k = 0; k < rows * WIDTH; k++) {
        seed = seed * 1103515245u + 12345u;
        number[k] = k % 3 == 2 ? (k % 2 ? -0.0 : 0.0) : (double)(seed >> 16 & 1023) / 1024.0 - 0.5;
    }
    cot_var x = cot_tensor(t, dtype, COT_SHAPE(rows, WIDTH), NULL);
    cot_assign(x, cot_cast(cot_data(t, COT_F64, COT_SHAPE(rows, WIDTH), number), dtype));
    return x;
}

static void make(deep *d, cot_dtype dtype) {
    *d = (deep){.t = cot_tape_create(NULL)};
    for (int k = 0; k < 2; k++) d->x[k] = numbers(d->t, dtype, ROWS, 7u + (unsigned)k);
    for (int k = 0; k < LAYERS; k++) d->own[k] = numbers(d->t, dtype, WIDTH, 100u + (unsigned)k);
    d->shared = numbers(d->t, dtype, WIDTH, 99);
    d->scale = cot_scalar_of(d->t, dtype, 0.75);
}

/* The adjoints of what one segment reads are added as without segments. Those of what several
 * segments read, or one and somebody behind it, are added up in each segment first. */
enum { APART = ROWS * WIDTH + LAYERS * WIDTH * WIDTH, SHARED = ROWS * WIDTH + WIDTH * WIDTH + 1 };
typedef struct outcome {
    double value, apart[APART], shared[SHARED];
} outcome;

/* A shared one has at most 4 LAYERS + 1 terms, none above 100 in this network, and the order in
 * which they are added moves the sum by a rounding of each partial sum. */
static void assert_same_outcome(const outcome *got, const outcome *want, cot_dtype dtype, int segments) {
    const double terms = 4 * LAYERS + 1, most = 100;
    if (got->value != want->value || memcmp(got->apart, want->apart, sizeof got->apart))
        fail_msg("%d segments in %s", segments, cot_dtype_name(dtype));
    for (int k = 0; k < SHARED && dtype == COT_F64; k++)
        assert_near(got->shared[k], want->shared[k], terms * terms * most * DBL_EPSILON);
}

static outcome sweep(deep *d, const cot_var *y) {
    outcome o;
    double *to = o.apart, *shared = o.shared;
    cot_var all = cot_add(cot_matmul(y[0], d->shared), cot_mul(y[1], d->scale));
    all = cot_sum(cot_add(all, d->x[1]), COT_ALL);
    assert_int_equal(cot_backward(all), COT_OK);
    assert_ok(d->t);
    o.value = cot_value(all);
    cot_read(cot_grad(d->x[0]), to, ROWS * WIDTH), to += ROWS * WIDTH;
    for (int k = 0; k < LAYERS; k++, to += WIDTH * WIDTH) cot_read(cot_grad(d->own[k]), to, WIDTH * WIDTH);
    cot_read(cot_grad(d->x[1]), shared, ROWS * WIDTH), shared += ROWS * WIDTH;
    cot_read(cot_grad(d->shared), shared, WIDTH * WIDTH), shared += WIDTH * WIDTH;
    *shared = cot_grad_value(d->scale);
    assert_ok(d->t);
    return o;
}

static outcome written_out(cot_dtype dtype) {
    deep    d;
    cot_var y[2], x[2];
    make(&d, dtype);
    memcpy(y, d.x, sizeof y);
    for (int64_t k = 0; k < LAYERS; k++) memcpy(x, y, sizeof x), layer(k, 2, x, y, &d);
    outcome o = sweep(&d, y);
    cot_tape_destroy(d.t);
    return o;
}

static void segments_have_the_bits_of_layers_written_out(void **state) {
    (void)state;
    const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    for (int k = 0; k < 4; k++) {
        outcome want = written_out(dtypes[k]);
        for (int64_t segments = 0; segments <= LAYERS + 1; segments++) {
            deep    d;
            cot_var y[2];
            make(&d, dtypes[k]);
            assert_int_equal(cot_checkpoint_sequential(layer, &d, LAYERS, segments, 2, d.x, y), COT_OK);
            outcome got = sweep(&d, y);
            assert_same_outcome(&got, &want, dtypes[k], (int)segments);
            cot_tape_destroy(d.t);
        }
    }
}

/* Layers a … b in halves, each a checkpoint, down to single layers. */
typedef struct halves {
    const deep *d;
    int64_t     from, to;
} halves;

BODY(halved) {
    const halves *h = user;
    (void)n, (void)m;
    if (h->to - h->from == 1) return layer(h->from, 2, xs, ys, (void *)(uintptr_t)h->d);
    int64_t middle = h->from + (h->to - h->from) / 2;
    halves  low = {h->d, h->from, middle}, high = {h->d, middle, h->to};
    cot_var z[2];
    if (cot_checkpoint(halved, &low, 2, xs, 2, z) != COT_OK) return 1;
    return cot_checkpoint(halved, &high, 2, z, 2, ys) != COT_OK;
}

static void checkpoints_nest_with_the_same_bits(void **state) {
    (void)state;
    outcome want = written_out(COT_F64);
    deep    d;
    cot_var y[2];
    make(&d, COT_F64);
    halves all = {&d, 0, LAYERS};
    assert_int_equal(cot_checkpoint(halved, &all, 2, d.x, 2, y), COT_OK);
    outcome got = sweep(&d, y);
    assert_same_outcome(&got, &want, COT_F64, 1);
    cot_tape_destroy(d.t);
}

/* The same weight as two operands of one checkpoint, and captured: all of its adjoint arrives. */
BODY(twice) {
    (void)n, (void)m;
    ys[0] = cot_mul(cot_mul(xs[0], xs[1]), *(cot_var *)user);
    return 0;
}

static void a_value_that_is_an_operand_twice_gets_both_adjoints(void **state) {
    (void)state;
    for (int tensor = 0; tensor < 2; tensor++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = tensor ? cot_tensor(t, COT_F64, COT_SHAPE(1), (double[]){3}) : cot_scalar(t, 3), y;
        cot_checkpoint(twice, &x, 2, (cot_var[]){x, x}, 1, &y);
        cot_backward(cot_sum(cot_add(y, x), COT_ALL));
        assert_ok(t);
        double g[1];
        cot_read(cot_grad(x), g, 1);
        assert_near(g[0], 3 * 9 + 1, 0);
        cot_tape_destroy(t);
    }
}

/* ---- the price ------------------------------------------------------------------------------- */

static int count_run(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n;
    memcpy(y->data, xs[0].data, sizeof(double));
    ++*(int *)user;
    return 0;
}
static int same_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    xbars[0] = ybar;
    return 0;
}
static const cot_custom counted = {.name = "counted", .value = count_run, .vjp = same_vjp};

static int counted_layer(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)n, (void)k;
    ys[0] = cot_call(&counted, 1, xs, user);
    return 0;
}

static void a_sweep_runs_each_layer_once_more(void **state) {
    (void)state;
    for (int64_t segments = 0; segments <= 16; segments++) {
        int       runs = 0;
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 2), y;
        cot_checkpoint_sequential(counted_layer, &runs, 16, segments, 1, &x, &y);
        int forward = runs;
        cot_backward(y);
        assert_ok(t);
        assert_near(cot_grad_value(x), 1, 0);
        /* a body is recorded on examples first */
        assert_true(forward == 16 || forward == 32);
        assert_int_equal(runs - forward, 16);
        cot_tape_destroy(t);
    }
}

enum { BIG = 1 << 14 };

static int big_layer(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)n, (void)k, (void)user;
    ys[0] = cot_matmul(xs[0], *(cot_var *)user);
    ys[0] = cot_tanh(ys[0]);
    return 0;
}

/* The peak of a sweep through n layers, in arrays of the size of what they carry. */
static double peak_of(int64_t layers, int64_t segments) {
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(BIG / 16, 16), NULL);
    cot_var   w = cot_tensor(t, COT_F64, COT_SHAPE(16, 16), NULL), y;
    cot_checkpoint_sequential(big_layer, &w, layers, segments, 1, &x, &y);
    cot_backward(cot_sum(y, COT_ALL));
    assert_ok(t);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
    return (double)c.peak / (BIG * 8);
}

static void memory_grows_with_the_root_of_the_layers(void **state) {
    (void)state;
    /* Kept: √N values between segments, 2 √N in the one that is made again (a product and its
     * tanh), and twelve at most that do not depend on N: x, its gradient, the sum, adjoints on
     * the way and those that a segment adds up, what the tape needs. The tape's cache holds up to
     * a quarter more. */
    for (int64_t layers = 16; layers <= 1024; layers *= 4) {
        double root = sqrt((double)layers), peak = peak_of(layers, 0);
        if (peak > 1.25 * (3 * root + 12)) fail_msg("%d layers take %g arrays", (int)layers, peak);
        /* all in one segment is all at once */
        assert_true(peak_of(layers, 1) > (double)layers);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int fails_at_two(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)user;
    for (int i = 0; i < n; i++) ys[i] = cot_sin(xs[i]);
    return k == 2;
}
static int sets_one(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)n, (void)k, (void)user;
    ys[0] = cot_sin(xs[0]);
    return 0;
}

static void what_it_refuses_it_says(void **state) {
    (void)state;
    static const struct {
        cot_layer_fn f;
        int64_t      layers, segments;
        cot_status   code;
        const char  *text;
    } cases[] = {
        {NULL, 3, 0, COT_VALUE, "[checkpoint_sequential] the function is NULL"},
        {sets_one, -1, 0, COT_VALUE, "[checkpoint_sequential] -1 layers; there are 0 or more"},
        {sets_one, 3, -2, COT_VALUE,
         "[checkpoint_sequential] -2 segments; 0 is the root of the number of layers, 1 and more a number of them"},
        {sets_one, 3, 0, COT_VAR,
         "[checkpoint_sequential] a layer did not set ys[1]; it gives 2 results and must set each (in the body of "
         "[checkpoint])"},
        {fails_at_two, 3, 3, COT_CUSTOM, "[checkpoint] its body failed with code 1"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x[2] = {cot_scalar(t, 1), cot_scalar(t, 2)}, y[2];
        cot_checkpoint_sequential(cases[k].f, NULL, cases[k].layers, cases[k].segments, 2, x, y);
        assert_error(t, cases[k].code, cases[k].text);
        assert_false(cot_is_valid(y[0]) || cot_is_valid(y[1]));
        cot_tape_destroy(t);
    }
}

static void without_layers_nothing_happens(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 5), y;
    assert_int_equal(cot_checkpoint_sequential(fails_at_two, NULL, 0, 0, 1, &x, &y), COT_OK);
    assert_near(cot_value(y), 5, 0);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_have_the_bits_of_layers_written_out),
        cmocka_unit_test(checkpoints_nest_with_the_same_bits),
        cmocka_unit_test(a_value_that_is_an_operand_twice_gets_both_adjoints),
        cmocka_unit_test(a_sweep_runs_each_layer_once_more),
        cmocka_unit_test(memory_grows_with_the_root_of_the_layers),
        cmocka_unit_test(what_it_refuses_it_says),
        cmocka_unit_test(without_layers_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
