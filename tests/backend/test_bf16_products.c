/* Products of bf16 under `fast`: near the exact product, the same at any number of threads, by
 * every unit that the machine has; and nothing of it unasked. On machines without such units the
 * same tests hold the usual products to the same bounds. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include "base/cpu.h"
#include "base/parallel.h"

#include <cotangent_program.h>

/* ---- operands -------------------------------------------------------------------------------- */

/* How an operand lies: by rows, by columns, with gaps both ways. */
enum { ROWS, COLUMNS, GAPS, LAYOUTS };

static cot_var turned(cot_var x) { return cot_permute(x, COT_AXES(0, 2, 1)); }

/* A (batch, m, n) operand: small integers, or normal numbers. */
static cot_var operand(cot_tape *t, uint64_t seed, int64_t batch, int64_t m, int64_t n, int layout, bool integers) {
    cot_key   key = cot_key_of(seed);
    cot_shape s = layout == COLUMNS ? COT_SHAPE(batch, n, m)
                  : layout == GAPS  ? COT_SHAPE(batch, 2 * m, 3 * n)
                                    : COT_SHAPE(batch, m, n);
    cot_var x = integers ? cot_sub(cot_floor(cot_mul(cot_uniform(t, key, COT_F32, s, 0, 5), 1.0)), 2.0)
                         : cot_normal(t, key, COT_F32, s);
    x = cot_cast(x, COT_BF16);
    if (layout == COLUMNS) return turned(x);
    if (layout == GAPS) return cot_slice(cot_slice(x, 1, 0, 2 * m, 2), 2, 0, 3 * n, 3);
    return x;
}

typedef struct read { double *at; int64_t n; } read_;
static read_ values(cot_var x) {
    read_ r = {NULL, cot_size(x)};
    r.at = malloc((size_t)(r.n + 1) * sizeof *r.at);
    assert_non_null(r.at);
    cot_read(x, r.at, r.n);
    return r;
}

static int units(cot__bf16_unit list[2]) {
    int n = 0;
    for (int u = COT__BF16_AVX512; u <= (int)COT__BF16_AMX; u++)
        if (cot__cpu_use_bf16((cot__bf16_unit)u)) list[n++] = (cot__bf16_unit)u;
    if (n == 0) list[n++] = COT__BF16_NONE;
    return n;
}

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct form { int64_t batch, m, n, k; } form;
static const form forms[] = {
    {1, 16, 16, 32}, {1, 17, 15, 33}, {1, 33, 64, 31},  {1, 1, 130, 50}, {1, 130, 1, 47},   {1, 64, 32, 96},
    {3, 40, 35, 20}, {1, 5, 3, 700},  {40, 24, 16, 12}, {1, 9, 9, 512},  {1, 100, 100, 1},  {2, 31, 65, 129},
};

/* Sums below 256 of integers are exact in bf16: each element is compared as it is. k <= 60. */
static void check_exact(const form *f, int la, int lb) {
    cot_tape *t = cot_tape_create(&(cot_options){.fast = true});
    int64_t   k = f->k > 60 ? 60 : f->k;
    cot_var   a = operand(t, 1, f->batch, f->m, k, la, true), b = operand(t, 2, f->batch, k, f->n, lb, true);
    read_     x = values(a), y = values(b), z = values(cot_matmul(a, b));
    assert_ok(t);
    for (int64_t q = 0; q < f->batch * f->m * f->n; q++) {
        int64_t i = q / f->n, j = q % f->n, at = i / f->m;
        double  sum = 0;
        for (int64_t p = 0; p < k; p++) sum += x.at[i * k + p] * y.at[(at * k + p) * f->n + j];
        assert_true(z.at[q] == sum);
    }
    free(x.at), free(y.at), free(z.at);
    cot_tape_destroy(t);
}

/* Products of bf16 are exact in f32; each of the k sums loses 2^-24 of what is summed, and rounding
 * to bf16 2^-8 of the result. */
static void check_bound(const form *f, int la, int lb) {
    cot_tape *t = cot_tape_create(&(cot_options){.fast = true});
    cot_var   a = operand(t, 1, f->batch, f->m, f->k, la, false), b = operand(t, 2, f->batch, f->k, f->n, lb, false);
    read_     x = values(a), y = values(b), z = values(cot_matmul(a, b));
    assert_ok(t);
    for (int64_t q = 0; q < f->batch * f->m * f->n; q++) {
        int64_t i = q / f->n, j = q % f->n, at = i / f->m;
        double  sum = 0, sizes = 0;
        for (int64_t p = 0; p < f->k; p++) {
            double term = x.at[i * f->k + p] * y.at[(at * f->k + p) * f->n + j];
            sum += term, sizes += fabs(term);
        }
        double lost = (double)f->k * 0x1p-24 / (1 - (double)f->k * 0x1p-24) * sizes;
        assert_true(fabs(z.at[q] - sum) <= lost + 0x1p-8 * (fabs(sum) + lost));
    }
    free(x.at), free(y.at), free(z.at);
    cot_tape_destroy(t);
}

static void fast_products_are_within_their_bound_for_all_shapes_and_strides(void **state) {
    (void)state;
    cot__bf16_unit list[2];
    int            n = units(list);
    for (int u = 0; u < n; u++)
        for (int f = 0; f < (int)(sizeof forms / sizeof *forms); f++)
            for (int l = 0; l < LAYOUTS * LAYOUTS; l++) {
                cot__cpu_use_bf16(list[u]);
                check_exact(&forms[f], l % LAYOUTS, l / LAYOUTS);
                if (l < LAYOUTS) check_bound(&forms[f], l, (l + 1) % LAYOUTS);
            }
}

/* As in cot_matmul without `fast`. */
static void products_without_elements_or_terms_are_zeros(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.fast = true});
    double    z[64 * 64];
    cot_var   none = cot_zeros(t, COT_BF16, COT_SHAPE(64, 0)), rows = cot_zeros(t, COT_BF16, COT_SHAPE(0, 64));
    cot_read(cot_matmul(none, rows), z, 64 * 64);
    for (int i = 0; i < 64 * 64; i++) assert_true(z[i] == 0);
    assert_int_equal(cot_size(cot_matmul(rows, none)), 0);
    cot_var batch = cot_zeros(t, COT_BF16, COT_SHAPE(0, 64, 64));
    assert_int_equal(cot_size(cot_matmul(batch, batch)), 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* One NaN in a row makes that row NaN, one infinity infinite, and no other: ones elsewhere. */
static void nan_and_infinity_stay_in_their_rows(void **state) {
    (void)state;
    enum { M = 33, N = 35, K = 37 };
    static double  x[M * K], z[M * N];
    cot__bf16_unit list[2];
    int            n = units(list);
    for (int i = 0; i < M * K; i++) x[i] = 1;
    x[5 * K + K - 1] = NAN;
    x[M * K - 1] = -INFINITY;
    for (int u = 0; u < n; u++) {
        cot_tape *t = cot_tape_create(&(cot_options){.fast = true});
        cot__cpu_use_bf16(list[u]);
        cot_var a = cot_cast(cot_data(t, COT_F64, COT_SHAPE(M, K), x), COT_BF16);
        cot_read(cot_matmul(a, cot_full(t, COT_BF16, COT_SHAPE(K, N), 1)), z, M * N);
        for (int i = 0; i < M * N; i++)
            assert_true(i / N == 5 ? isnan(z[i]) : z[i] == (i / N == M - 1 ? -INFINITY : K));
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static void bits_do_not_depend_on_threads_or_strides(void **state) {
    (void)state;
    enum { M = 70, N = 90, K = 150, BATCH = 3 };
    static double  z[BATCH * M * N], other[BATCH * M * N];
    cot__bf16_unit list[2];
    int64_t        grain = cot__grain;
    int            n = units(list), before = cot_threads();
    for (int u = 0; u < n; u++)
        for (int way = 0; way < 4; way++) {
            cot_tape *t = cot_tape_create(&(cot_options){.fast = true});
            cot__cpu_use_bf16(list[u]);
            cot_var a = operand(t, 1, BATCH, M, K, ROWS, false), b = operand(t, 2, BATCH, K, N, ROWS, false);
            if (way == 3) { /* the same numbers by columns */
                a = turned(cot_copy(turned(a)));
                b = turned(cot_copy(turned(b)));
            }
            cot_set_threads(way == 3 ? 1 : way + 1);
            cot__grain = way == 0 ? grain : 16;
            cot_read(cot_matmul(a, b), way ? other : z, BATCH * M * N);
            assert_ok(t);
            if (way) assert_memory_equal(z, other, sizeof z);
            cot_tape_destroy(t);
        }
    cot__grain = grain;
    cot_set_threads(before);
}

/* ---- when ------------------------------------------------------------------------------------ */

enum { SIDE = 64 };

/* Of numbers that bf16 holds as subnormals, times 2^40: zero where a unit did it. */
static cot_var tiny_product(cot_tape *t) {
    cot_var a = cot_full(t, COT_BF16, COT_SHAPE(SIDE, SIDE), 0x1p-130),
            b = cot_full(t, COT_BF16, COT_SHAPE(SIDE, SIDE), 0x1p40);
    return cot_matmul(a, b);
}

static double first_of(cot_var x) {
    double z[SIDE * SIDE];
    cot_read(x, z, SIDE * SIDE);
    return z[0];
}

static double eager(bool fast) {
    cot_tape *t = cot_tape_create(&(cot_options){.fast = fast});
    double    z = first_of(tiny_product(t));
    assert_ok(t);
    cot_tape_destroy(t);
    return z;
}

BODY(multiply) {
    UNUSED;
    ys[0] = cot_matmul(xs[0], xs[1]);
    return 0;
}

static const cot_type square[2] = {{COT_BF16, {2, {SIDE, SIDE}}}, {COT_BF16, {2, {SIDE, SIDE}}}};

/* Run on arrays, and called on a tape. */
static double compiled(bool fast, bool tape_fast) {
    static uint16_t a[SIDE * SIDE], b[SIDE * SIDE], z[SIDE * SIDE];
    cot_program    *p = cot_compile(multiply, NULL, 2, square, 1, &(cot_compile_options){.fast = fast});
    cot_run        *r = cot_run_create(p);
    for (int i = 0; i < SIDE * SIDE; i++) a[i] = 0x0008, b[i] = 0x5380; /* 2^-130, 2^40 */
    assert_int_equal(cot_program_run(r, (const void *[]){a, b}, (void *[]){z}), COT_OK);
    cot_run_destroy(r);
    cot_tape *t = cot_tape_create(&(cot_options){.fast = tape_fast});
    for (int k = 0; k < 2; k++) { /* the second call takes the run of the first */
        cot_var y, xs[2] = {cot_wrap(t, COT_BF16, square[0].shape, a), cot_wrap(t, COT_BF16, square[1].shape, b)};
        assert_int_equal(cot_program_call(p, 2, xs, 1, &y), COT_OK);
        assert_true((first_of(y) == 0) == (z[0] == 0));
    }
    assert_ok(t);
    cot_tape_destroy(t);
    cot_program_destroy(p);
    return z[0];
}

static void only_fast_tapes_and_programs_have_other_bits(void **state) {
    (void)state;
    cot__bf16_unit list[2];
    int            n = units(list);
    double         plain = ldexp(SIDE, -90);
    for (int u = 0; u < n; u++) {
        cot__cpu_use_bf16(list[u]);
        bool unit = cot__cpu_bf16() != COT__BF16_NONE;
        assert_true(eager(false) == plain);
        assert_true(eager(true) == (unit ? 0 : plain));
        for (int tape = 0; tape < 2; tape++) {
            assert_true(compiled(false, tape) != 0);
            assert_true((compiled(true, tape) == 0) == unit);
        }
    }
}

/* A lesser instruction set has no such unit, and gives the usual bits. */
static void a_lesser_machine_gives_the_usual_bits(void **state) {
    (void)state;
    cot__isa isa = cot__cpu_isa();
    if (isa == COT__ISA_PLAIN || !cot__cpu_use(COT__ISA_PLAIN + 1)) return;
    if (isa == cot__cpu_isa()) return;
    assert_true(eager(true) == ldexp(SIDE, -90));
    cot__cpu_use(isa);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* Of sums of integers below 256, so that every way gives the exact numbers. */
static void gradients_are_those_of_the_product(void **state) {
    (void)state;
    enum { M = 20, N = 17, K = 24 };
    double         g[2][2][M * K];
    cot__bf16_unit list[2];
    int            n = units(list);
    for (int u = 0; u < n; u++) {
        for (int fast = 0; fast < 2; fast++) {
            cot__cpu_use_bf16(list[u]);
            cot_tape *t = cot_tape_create(&(cot_options){.fast = fast});
            cot_var   a = cot_leaf(cot_reshape(operand(t, 1, 1, M, K, ROWS, true), COT_SHAPE(M, K)));
            cot_var   b = cot_leaf(cot_reshape(operand(t, 2, 1, K, N, ROWS, true), COT_SHAPE(K, N)));
            cot_var   w = cot_reshape(operand(t, 3, 1, M, N, ROWS, true), COT_SHAPE(M, N));
            cot_var   y = cot_sum(cot_mul(cot_matmul(a, b), w), COT_ALL), recorded;
            assert_int_equal(cot_backward(y), COT_OK);
            cot_read_grad(a, g[fast][0], M * K);
            cot_read_grad(b, g[fast][1], K * N);
            assert_int_equal(cot_grad_of(y, 1, &a, &recorded), COT_OK);
            double again[M * K];
            cot_read(recorded, again, M * K);
            assert_memory_equal(again, g[fast][0], sizeof again);
            assert_ok(t);
            cot_tape_destroy(t);
        }
        assert_memory_equal(g[0][0], g[1][0], sizeof g[0][0]);
        assert_memory_equal(g[0][1], g[1][1], K * N * sizeof(double));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_products_are_within_their_bound_for_all_shapes_and_strides),
        cmocka_unit_test(products_without_elements_or_terms_are_zeros),
        cmocka_unit_test(nan_and_infinity_stay_in_their_rows),
        cmocka_unit_test(bits_do_not_depend_on_threads_or_strides),
        cmocka_unit_test(only_fast_tapes_and_programs_have_other_bits),
        cmocka_unit_test(a_lesser_machine_gives_the_usual_bits),
        cmocka_unit_test(gradients_are_those_of_the_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
