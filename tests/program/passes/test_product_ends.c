/* Groups that begin with a matrix product: bias, activation, residual and the step of an optimiser
 * as its end. Which operations join it, and that it has the bits of one operation after the
 * other. */
#include "group_test.h"

static void tell(cot__text *to, const cot__fusion *f, uint32_t k, uint32_t z) {
    uint32_t group = f->of[k];
    if (group != COT__NO_VALUE)
        cot__putf(to, " in %u%s%s", group, cot__ends_product(&f->group[group]) ? ", a product's end" : "",
                  f->inside[z] ? ", inside" : "");
    if (f->why[k] == COT__PART_OF_PRODUCT) cot__put(to, " (a part)");
}

static void groups_are(draft *d, const char *text) { groups_are_told(d, tell, text); }

/* A layer with bias, activation and residual. */
static void what_reads_a_product_in_order_is_its_end(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(9, 5)), w = input(&d, COT_F32, SHAPE(5, 7)), b = input(&d, COT_F32, SHAPE(7));
    uint32_t y = input(&d, COT_F32, SHAPE(9, 7)), wide = op(&d, OP_broadcast_to, X(b), .asked = {COT_F32, SHAPE(9, 7)});
    uint32_t h = op(&d, OP_matmul, X(x, w)); /* %5 */
    uint32_t a = op(&d, OP_relu, X(op(&d, OP_add, X(h, wide))));
    output(&d, op(&d, OP_add, X(a, y)));
    groups_are(&d, "%4 broadcast_to\n"
                   "%5 matmul in 0, a product's end, inside\n"
                   "%6 add in 0, a product's end, inside\n"
                   "%7 relu in 0, a product's end, inside\n"
                   "%8 add in 0, a product's end\n");
}

/* Transposed and cut: after the product. So is what does not read it. */
static void other_orders_and_parts_are_no_ends(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(40, 40)), y = op(&d, OP_matmul, X(x, x)); /* %1 */
    uint32_t turned = op(&d, OP_permute, X(y), .ints = 2, .at = {1, 0});
    output(&d, op(&d, OP_exp, X(turned))); /* %3 */
    uint32_t z = op(&d, OP_matmul, X(x, y)), e = op(&d, OP_exp, X(z)); /* %4 %5 */
    uint32_t top = op(&d, OP_slice, X(e), .ints = 5, .at = {0, 0, 30, 1, 0});
    output(&d, op(&d, OP_neg, X(top))); /* %7 */
    uint32_t u = op(&d, OP_matmul, X(x, z)), s = op(&d, OP_exp, X(u)); /* %8 %9 */
    output(&d, op(&d, OP_sum, X(s), .ints = 2, .at = {3, 0}));
    uint32_t v = op(&d, OP_matmul, X(x, u)), a = op(&d, OP_exp, X(x)); /* %11 %12 */
    output(&d, op(&d, OP_neg, X(a)));
    output(&d, v);
    groups_are(&d, "%1 matmul\n%2 permute\n%3 exp\n"
                   "%4 matmul in 0, a product's end\n%5 exp in 0, a product's end\n%6 slice\n%7 neg (a part)\n"
                   "%8 matmul in 1, a product's end\n%9 exp in 1, a product's end, inside\n"
                   "%10 sum in 1, a product's end\n"
                   "%11 matmul\n%12 exp in 2, inside\n%13 neg in 2\n");
}

/* Bias, softmax, a factor and sums; and the product itself, summed, reduced by rows and normalised:
 * its rows are there. */
static void rows_and_sums_belong_to_the_end(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(50, 5)), w = input(&d, COT_F32, SHAPE(5, 60));
    uint32_t y = input(&d, COT_F32, SHAPE(50, 60)), h = op(&d, OP_matmul, X(x, w)); /* %3 */
    uint32_t s = SOFTMAX(&d, op(&d, OP_add, X(h, y)));                               /* %4 %5 */
    uint32_t z = op(&d, OP_mul, X(s, NUM), .number = 0.5);
    output(&d, op(&d, OP_sum, X(z), .ints = 2, .at = {2, 0})); /* %7 */
    uint32_t u = op(&d, OP_matmul, X(x, w));
    output(&d, op(&d, OP_sum, X(u), .ints = 2, .at = {3, 0})); /* %9: all elements */
    uint32_t v = op(&d, OP_matmul, X(x, w)); /* %10 */
    uint32_t top = op(&d, OP_max, X(v), .ints = 2, .at = {2, 1});
    uint32_t wide = op(&d, OP_broadcast_to, X(top), .asked = {COT_F32, SHAPE(50, 60)});
    output(&d, op(&d, OP_sub, X(v, wide)));
    uint32_t n = op(&d, OP_matmul, X(x, w));
    output(&d, NORM(&d, OP_layer_norm, 0, n)); /* %15 */
    output(&d, op(&d, OP_matmul, X(x, w)));
    output(&d, op(&d, OP_exp, X(SOFTMAX(&d, y)))); /* %17 */
    groups_are(&d, "%3 matmul in 0, a product's end, inside\n%4 add in 0, a product's end, inside\n"
                   "%5 softmax in 0, a product's end, inside\n%6 mul in 0, a product's end, inside\n"
                   "%7 sum in 0, a product's end\n"
                   "%8 matmul in 1, a product's end, inside\n%9 sum in 1, a product's end\n"
                   "%10 matmul in 2, a product's end, inside\n%11 max in 2, a product's end\n%12 broadcast_to\n"
                   "%13 sub in 2, a product's end\n"
                   "%14 matmul in 3, a product's end, inside\n%15 layer_norm in 3, a product's end\n"
                   "%16 matmul\n%17 softmax in 4, inside\n%18 exp in 4\n");
}

/* ---- bits ------------------------------------------------------------------------------------ */

static int products_with_ends(const cot__program *p, int *with_folds) {
    cot__fusion f;
    int         n = 0;
    open_groups(p, &f);
    for (uint32_t k = 0; k < f.groups; k++) {
        n += cot__ends_product(&f.group[k]);
        *with_folds += cot__ends_product(&f.group[k]) && f.group[k].folds;
    }
    cot__fusion_close(&f);
    return n;
}

/* Sums of many odd numbers are NaN, which hide everything. */
static void make_tame(const cot__program *p, void **in) {
    for (uint32_t k = 0; k < p->inputs; k++) {
        cot__view v = cot__value_view(p, p->input[k]);
        for (int64_t i = 0; i < cot__view_size(&v); i++) {
            char  *at = (char *)in[k] + i * cot__dtype_size(v.dtype);
            double x = cot__load_f64(at, v.dtype);
            if (!(fabs(x) < 8)) cot__store_f64(at, v.dtype, 0.37 * (double)(i % 11) - 1.5);
        }
    }
}

/* Returns how many products have ends; adds those that have folds or operations on rows. */
static int same_bits(draft *d, uint64_t seed, int *with_folds) {
    void         *in[8];
    cot__program *p = draft_close(d);
    fill_inputs(p, seed, in);
    if (seed % 4) make_tame(p, in);
    groups_keep_bits(p, in, seed);
    int ends = products_with_ends(p, with_folds);
    cot__program_release(p);
    return ends;
}

/* What a random end is grown from: arrays of the product's shape, and what can be seen as one. */
typedef struct place { cot_dtype dtype; int64_t m, n; uint32_t row, column, turned, other; } place;

static uint32_t operand_of(growing *g, const place *a) {
    cot__type asked = {a->dtype, {2, {a->m, a->n}}};
    switch (below(&g->r, 9)) {
    case 0: return op(g->d, OP_broadcast_to, X(a->row), .asked = asked);
    case 1: return op(g->d, OP_broadcast_to, X(a->column), .asked = asked);
    case 2: return op(g->d, OP_permute, X(a->turned), .ints = 2, .at = {1, 0});
    case 3: return a->other;
    case 4: return any_constant(g, a->dtype, NO_AXES);
    default: break;
    }
    for (int tries = 0; tries < 8; tries++) {
        uint32_t  v = any(g);
        cot__view x = seen(g, v);
        if (x.dtype == a->dtype && x.ndim == 2 && x.shape[0] == a->m && x.shape[1] == a->n) return v;
    }
    return a->other;
}

/* What is made of each row, repeated along it. */
static uint32_t row_of(growing *g, const place *a, uint32_t x) {
    static const int reductions[] = {OP_sum, OP_max, OP_logsumexp, OP_norm};
    uint32_t s = op(g->d, reductions[below(&g->r, TEST_COUNT(reductions))], X(x), .ints = 2, .at = {2, 1});
    if (below(&g->r, 2)) s = op(g->d, OP_mul, X(s, NUM), .number = 0.25);
    return op(g->d, OP_broadcast_to, X(s), .asked = {a->dtype, {2, {a->m, a->n}}});
}

static uint32_t grow_end(growing *g, const place *a, uint32_t last) {
    static const int two[] = {OP_add, OP_sub, OP_mul, OP_maximum, OP_div, OP_add, OP_mul};
    uint32_t         x = below(&g->r, 3) ? last : operand_of(g, a);
    if (seen(g, x).ndim == 0) x = last;
    switch (below(&g->r, 11)) {
    case 8: return SOFTMAX(g->d, x);
    case 9: return a->dtype == COT_BF16 ? x : NORM(g->d, below(&g->r, 2) ? OP_layer_norm : OP_rms_norm, 0, x);
    case 10: return row_of(g, a, x);
    case 0: return op(g->d, below(&g->r, 2) ? OP_relu : OP_tanh, X(x));
    case 1: return op(g->d, OP_mul, X(x, NUM), .number = odd_number(&g->r));
    case 2: return op(g->d, OP_where, X(op(g->d, OP_greater, X(x, NUM), .number = 0), x, operand_of(g, a)));
    case 3: return op(g->d, OP_cast, X(op(g->d, OP_cast, X(x), .asked = {COT_BF16, {0}})), .asked = {a->dtype, {0}});
    default: return op(g->d, two[below(&g->r, TEST_COUNT(two))], X(x, operand_of(g, a)));
    }
}

/* Sizes around tiles, strips, depth blocks and rows that repeat; tiny, deep and empty ones. */
static void random_ends_keep_every_bit(void **state) {
    static const int       sizes[] = {2, 3, 7, 12, 13, 24, 33, 48, 65, 100, 129, 200, 300};
    static const int       depths[] = {0, 1, 2, 5, 17, 64, 130, 384, 385, 800};
    static const cot_dtype dtypes[] = {COT_F32, COT_F32, COT_F64, COT_BF16};
    int                    ends = 0, with_folds = 0, n = test_small() ? 60 : 400;
    (void)state;
    for (int seed = 0; seed < n; seed++) {
        draft   d;
        growing g = {.d = &d, .r = {(uint64_t)seed}};
        draft_open(&d, NULL);
        place   a = {.dtype = dtypes[below(&g.r, TEST_COUNT(dtypes))], .m = sizes[below(&g.r, TEST_COUNT(sizes))],
                     .n = sizes[below(&g.r, TEST_COUNT(sizes))]};
        int64_t k = depths[below(&g.r, TEST_COUNT(depths))];
        bool    turned = below(&g.r, 2);
        uint32_t x = input(&d, a.dtype, turned ? SHAPE((int)k, (int)a.m) : SHAPE((int)a.m, (int)k));
        uint32_t w = input(&d, a.dtype, SHAPE((int)k, (int)a.n));
        a.row = input(&d, a.dtype, SHAPE((int)a.n)), a.column = input(&d, a.dtype, SHAPE((int)a.m, 1));
        a.turned = input(&d, a.dtype, SHAPE((int)a.n, (int)a.m));
        a.other = input(&d, a.dtype, SHAPE((int)a.m, (int)a.n));
        if (turned) x = op(&d, OP_permute, X(x), .ints = 2, .at = {1, 0});
        uint32_t last = keep(&g, op(&d, OP_matmul, X(x, w)));
        for (int steps = 1 + below(&g.r, 9); steps > 0; steps--) last = keep(&g, grow_end(&g, &a, last));
        for (int k1 = below(&g.r, 3); k1 > 0; k1--) output(&d, any(&g));
        output(&d, last);
        if (below(&g.r, 2)) output(&d, op(&d, OP_sum, X(last), .ints = 2, .at = {below(&g.r, 2) ? 3 : 2, 0}));
        ends += same_bits(&d, (uint64_t)seed, &with_folds);
    }
    TEST_CHECK(ends > n / 2, "only %d products have ends", ends);
    TEST_CHECK(with_folds > n / 5, "only %d products have ends with folds", with_folds);
    test_verdict();
}

/* Parts of the work share a piece of what lives within blocks, but the product is there as a
 * whole. */
static void large_products_are_scaled_normalised_and_summed(void **state) {
    static const cot_dtype dtypes[] = {COT_F32, COT_F64};
    (void)state;
    for (int t = 0; t < TEST_COUNT(dtypes); t++) {
        draft     d;
        int       with_folds = 0;
        cot_shape all = SHAPE(300, 1000);
        draft_open(&d, NULL);
        uint32_t x = input(&d, dtypes[t], SHAPE(300, 3)), w = input(&d, dtypes[t], SHAPE(3, 1000));
        uint32_t b = op(&d, OP_broadcast_to, X(input(&d, dtypes[t], SHAPE(1000))), .asked = {dtypes[t], all});
        uint32_t h = op(&d, OP_matmul, X(x, w)), s = SOFTMAX(&d, op(&d, OP_add, X(h, b)));
        uint32_t z = op(&d, OP_mul, X(op(&d, OP_mul, X(s, NUM), .number = 3), op(&d, OP_sin, X(h))));
        output(&d, op(&d, OP_sum, X(z), .ints = 2, .at = {2, 0}));
        if (t) output(&d, z);
        TEST_CHECK(same_bits(&d, 1, &with_folds) == 1 && with_folds == 1, "%d ends with folds", with_folds);
    }
    test_verdict();
}

/* ---- outputs where inputs lie ---------------------------------------------------------------- */

/* W − 0.1 g·g is written where W lies; W − 0.1 g·W is not, before it is done: rows that are made
 * later read all of W. */
static void a_step_is_written_over_its_parameters_and_never_over_its_factors(void **state) {
    (void)state;
    for (int factor = 0; factor < 2; factor++) {
        draft   d;
        int     with_folds = 0;
        void   *in[2];
        heard   h = {0};
        draft_open(&d, NULL);
        uint32_t w = input(&d, COT_F32, SHAPE(256, 256)), g = input(&d, COT_F32, SHAPE(256, 256));
        uint32_t z = op(&d, OP_matmul, X(g, factor ? w : g));
        output(&d, op(&d, OP_sub, X(w, op(&d, OP_mul, X(z, NUM), .number = 0.1))));
        cot__program *p = draft_close(&d);
        assert_int_equal(products_with_ends(p, &with_folds), 1);
        fill_inputs(p, 3, in);
        make_tame(p, in);
        result      want = run_program(p, in, false);
        cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
        cot__run   *r = cot__run_create(p, &cot__cpu_backend, NULL, NULL, &caller);
        assert_true(cot__run_go(r, (const void *const *)in, in));
        assert_true(same_elements(in[0], want.out[0], want.bytes[0], COT_F32));
        cot__run_destroy(r);
        free_result(&want);
        free(in[0]), free(in[1]);
        cot__program_release(p);
    }
}

/* A product that only its end reads has no array of its own. */
static void a_product_lies_where_its_end_will_lie(void **state) {
    draft       d;
    heard       h;
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(20, 20)), y = op(&d, OP_matmul, X(x, x));
    output(&d, op(&d, OP_tanh, X(op(&d, OP_add, X(y, x)))));
    cot__program *p = draft_close(&d);
    cot__run     *alone = cot__run_create_unfused(p, &cot__cpu_backend, NULL, NULL, &caller);
    cot__run     *together = cot__run_create(p, &cot__cpu_backend, NULL, NULL, &caller);
    assert_int_equal(cot__run_arena_bytes(together), cot__run_arena_bytes(alone));
    cot__run_destroy(alone);
    cot__run_destroy(together);
    cot__program_release(p);
}

static cot__program *some_layer(void) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(30, 20)), w = input(&d, COT_F32, SHAPE(20, 50));
    uint32_t y = op(&d, OP_relu, X(op(&d, OP_matmul, X(x, w))));
    uint32_t mask = op(&d, OP_greater, X(y, NUM), .number = 1), zero = constant(&d, COT_F32, NO_AXES, 0);
    output(&d, op(&d, OP_where, X(mask, y, zero)));
    return draft_close(&d);
}

static void any_allocation_may_fail(void **state) {
    cot__program *p = some_layer();
    (void)state;
    for (long at = 1;; at++) {
        counting      c = {.fail_at = at};
        heard         h = {0};
        cot_allocator al = {counting_alloc, &c};
        cot__caller   caller = {"test", &h, hear_error, hear_note, NULL};
        cot__run     *r = cot__run_create(p, &cot__cpu_backend, &al, NULL, &caller);
        assert_true((r == NULL) == (c.failed > 0));
        if (!r) assert_true(h.code == COT_MEMORY && h.errors == 1);
        cot__run_destroy(r);
        assert_true(c.live == 0 && c.blocks == 0 && !c.wrong_size);
        if (!c.failed) break;
    }
    cot__program_release(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_reads_a_product_in_order_is_its_end),
        cmocka_unit_test(other_orders_and_parts_are_no_ends),
        cmocka_unit_test(rows_and_sums_belong_to_the_end),
        cmocka_unit_test(random_ends_keep_every_bit),
        cmocka_unit_test(large_products_are_scaled_normalised_and_summed),
        cmocka_unit_test(a_step_is_written_over_its_parameters_and_never_over_its_factors),
        cmocka_unit_test(a_product_lies_where_its_end_will_lie),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, of_any_size, of_usual_size);
}
