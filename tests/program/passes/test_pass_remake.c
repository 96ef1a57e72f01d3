/* The pass remake: reductions of what is made of a column and a row compute it where they read it,
 * with every bit that they had, and what somebody needs written is written. */
/* ctest: timeout=300 */
#include "random_program.h"

#include "base/parallel.h"

/* However small they are. */
static int all_pay(void **state) {
    (void)state;
    cot__product_from = cot__product_times = cot__remake_any_from = 0;
    return 0;
}

static int as_ever(void **state) {
    (void)state;
    cot__product_from = 1 << 20, cot__product_times = 4, cot__remake_any_from = 64 << 20;
    return 0;
}

static uint32_t sum(draft *d, uint32_t x, int64_t axes) { return op(d, OP_sum, X(x), .ints = 2, .at = {axes, 0}); }

/* ---- what becomes of programs ---------------------------------------------------------------- */

/* Norms of each example, and the mean of all once they were scaled. */
static void all_reductions_of_a_product_are_on_its_factors(void **state) {
    draft d;
    char  want[1024];
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F32, SHAPE(5, 30, 1)), b = input(&d, COT_F32, SHAPE(5, 1, 4)),
             s = input(&d, COT_F32, SHAPE(5, 1, 1));
    uint32_t z = op(&d, OP_matmul, X(a, b));
    output(&d, sum(&d, op(&d, OP_square, X(z)), 6));
    uint32_t along = op(&d, OP_broadcast_to, X(s), .asked = {COT_F32, SHAPE(5, 30, 4)});
    output(&d, sum(&d, op(&d, OP_mul, X(op(&d, OP_mul, X(along, z)), NUM), .number = 0.5), 1));
    snprintf(want, sizeof want,
             "%%0 = input 0 f32(5,30,1)\n"
             "%%1 = input 1 f32(5,1,4)\n"
             "%%2 = input 2 f32(5,1,1)\n"
             "%%3 = matmul(%%0, %%1) f32(5,30,4)\n"
             "%%4 = square(%%3) f32(5,30,4)\n"
             "%%5 = fold_made(%%0, %%1) [0 6 0 3 5 30 4 3 5 30 4 0 -1 -1 -2 -7 %d 0 -7 -7] f32(5,)\n"
             "%%6 = broadcast_to(%%2) f32(5,30,4)\n"
             "%%7 = mul(%%6, %%3) f32(5,30,4)\n"
             "%%8 = mul(%%7, 0.5) f32(5,30,4)\n"
             "%%9 = fold_made(%%0, %%1, %%6) [0 1 0 3 5 30 4 3 5 30 4 1 1056964608 -1 -1 -2 -7 %d -3 0 -7 %d 1 -4 -7] "
             "f32(30,4)\n"
             "gives %%5, %%9\n",
             OP_square, OP_mul, OP_mul);
    becomes(&d, cot__pass_remake, want);
}

/* One that is given out, one that a product reads, one with a dear operation, one whose terms are
 * as large; and reductions that know no recipe. */
static void what_somebody_needs_is_written(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(3, 1)), b = input(&d, COT_F64, SHAPE(1, 4)), z;
    z = op(&d, OP_matmul, X(a, b));
    output(&d, sum(&d, op(&d, OP_square, X(z)), 3));
    output(&d, z);
    z = op(&d, OP_matmul, X(op(&d, OP_neg, X(a)), b));
    output(&d, sum(&d, z, 1));
    output(&d, op(&d, OP_matmul, X(z, op(&d, OP_permute, X(b), .ints = 2, .at = {1, 0}))));
    z = op(&d, OP_matmul, X(op(&d, OP_exp, X(a)), b));
    output(&d, sum(&d, op(&d, OP_exp, X(z)), 3));
    z = op(&d, OP_matmul, X(op(&d, OP_abs, X(a)), b));
    output(&d, op(&d, OP_logsumexp, X(z), .ints = 2, .at = {2, 0}));
    output(&d, op(&d, OP_argmax, X(z), .ints = 2, .at = {2, 0}));
    output(&d, sum(&d, z, 2));
    /* a depth of 2 */
    output(&d, sum(&d, op(&d, OP_matmul, X(op(&d, OP_concat, X(a, a), .ints = 2, .at = {1, 0}),
                                           op(&d, OP_concat, X(b, b), .ints = 2, .at = {0, 0}))), 3));
    stays(&d, cot__pass_remake);
}

/* Beyond six steps, and with too many leaves, there is no recipe. */
static void long_recipes_are_none(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(3, 1)), b = input(&d, COT_F64, SHAPE(1, 4)), z = op(&d, OP_matmul, X(a, b));
    for (int k = 0; k < COT__RECIPE_STEPS; k++) z = op(&d, k % 2 ? OP_square : OP_neg, X(z));
    output(&d, sum(&d, z, 3));
    z = op(&d, OP_matmul, X(op(&d, OP_neg, X(a)), b));
    for (int k = 0; k < 5; k++) z = op(&d, OP_add, X(z, NUM), .number = 2 + k);
    output(&d, sum(&d, z, 3));
    stays(&d, cot__pass_remake);
}

/* A product of these and a reduction of it, by the bounds of users. */
static bool is_remade(cot_dtype dtype, cot_shape shape, int kind, int64_t axes) {
    draft     d;
    cot_shape a = shape, b = shape, s = shape;
    a.dim[shape.ndim - 1] = b.dim[shape.ndim - 2] = 1;
    for (int k = 1; k < s.ndim; k++) s.dim[k] = 1;
    as_ever(NULL);
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, a), z = op(&d, OP_matmul, X(x, input(&d, dtype, b)));
    if (kind == 's') z = op(&d, OP_square, X(z));
    if (kind == 'a') z = op(&d, OP_abs, X(z));
    if (kind == 'w')
        z = op(&d, OP_mul, X(op(&d, OP_broadcast_to, X(input(&d, dtype, s)), .asked = {dtype, shape}), z));
    output(&d, sum(&d, z, axes));
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_remake);
    bool          made = p != q;
    cot__program_release(p);
    cot__program_release(q);
    all_pay(NULL);
    return made;
}

/* Others are faster when the array is written and read in one group, up to some size. */
static void products_that_sums_have_kernels_for_are_not_written(void **state) {
    (void)state;
    TEST_CHECK(is_remade(COT_F32, SHAPE(16, 64, 512), 's', 6), "norms");
    TEST_CHECK(is_remade(COT_F32, SHAPE(16, 64, 512), 'p', 6), "sums of examples");
    TEST_CHECK(is_remade(COT_F32, SHAPE(16, 64, 384), 'w', 1), "clipped means");
    TEST_CHECK(is_remade(COT_F64, SHAPE(16, 64, 192), 'w', 1), "of pieces of 64 doubles");
    TEST_CHECK(is_remade(COT_F32, SHAPE(300, 80, 1000), 'a', 6), "too large to write");
    TEST_CHECK(!is_remade(COT_F32, SHAPE(16, 64, 500), 's', 6), "rows that fill no blocks");
    TEST_CHECK(!is_remade(COT_F32, SHAPE(16, 64, 500), 'w', 1), "pieces of two rows");
    TEST_CHECK(!is_remade(COT_F32, SHAPE(16, 64, 512), 'a', 6), "steps without a kernel");
    TEST_CHECK(!is_remade(COT_F32, SHAPE(16, 64, 512), 's', 1), "squares side by side");
    TEST_CHECK(!is_remade(COT_F32, SHAPE(16, 15, 512), 's', 6), "less than 1 MiB");
    TEST_CHECK(!is_remade(COT_F32, SHAPE(4000, 2, 512), 's', 6), "less than four times its factors");
    test_verdict();
}

/* A factor that is a part of something larger keeps that alive. */
static void products_of_parts_of_larger_arrays_are_written(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = op(&d, OP_neg, X(input(&d, COT_F64, SHAPE(600, 9))));
    uint32_t a = op(&d, OP_slice, X(x), .ints = 5, .at = {1, 3, 1, 1, 0});
    output(&d, sum(&d, op(&d, OP_matmul, X(a, input(&d, COT_F64, SHAPE(1, 8)))), 3));
    stays(&d, cot__pass_remake);
}

/* Whatever becomes of one product, another one does not hear of it. */
static void what_has_to_be_written_concerns_its_own_readers_alone(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(40, 1)), b = input(&d, COT_F64, SHAPE(1, 50)), z = 0;
    for (int k = 0; k < 20; k++) { /* each reads the one before, and the last is given out */
        uint32_t q = op(&d, OP_matmul, X(op(&d, OP_mul, X(a, NUM), .number = k + 2), b));
        z = k ? op(&d, OP_add, X(z, q)) : q;
        output(&d, sum(&d, z, 3));
    }
    output(&d, z);
    output(&d, sum(&d, op(&d, OP_matmul, X(op(&d, OP_neg, X(a)), b)), 3));
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_remake);
    int           folds = 0;
    for (uint32_t k = 0; k < q->operations; k++) folds += q->operation[k].op == OP_fold_made;
    assert_int_equal(folds, 1);
    cot__program_release(p);
    cot__program_release(q);
}

/* The two are one leaf. */
static void a_factor_may_be_its_own_other(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = op(&d, OP_broadcast_to, X(input(&d, COT_F64, SHAPE(1, 1, 1))), .asked = {COT_F64, SHAPE(300, 1, 1)});
    output(&d, sum(&d, op(&d, OP_matmul, X(a, a)), 7));
    becomes(&d, cot__pass_remake, "%0 = input 0 f64(1,1,1)\n"
                                  "%1 = broadcast_to(%0) f64(300,1,1)\n"
                                  "%2 = matmul(%1, %1) f64(300,1,1)\n"
                                  "%3 = fold_made(%1) [0 7 0 3 300 1 1 3 300 1 1 0 -1 -1 -1 -7] f64\n"
                                  "gives %3\n");
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* A factor of this shape: an input, or one that lies in another order, or repeats. */
static uint32_t any_factor(growing *g, cot_dtype dtype, cot_shape shape) {
    int       n = shape.ndim;
    cot_shape turned = shape, one = shape;
    switch (below(&g->r, 5)) {
    case 0: { /* the last axes turned */
        turned.dim[n - 1] = shape.dim[n - 2], turned.dim[n - 2] = shape.dim[n - 1];
        uint32_t x = input(g->d, dtype, turned);
        return n == 2 ? op(g->d, OP_permute, X(x), .ints = 2, .at = {1, 0})
                      : op(g->d, OP_permute, X(x), .ints = 3, .at = {0, 2, 1});
    }
    case 1: { /* every second from the end */
        int     axis = below(&g->r, n);
        int64_t extent = shape.dim[axis];
        turned.dim[axis] = 2 * extent;
        uint32_t x = input(g->d, dtype, turned);
        return op(g->d, OP_slice, X(x), .ints = 5, .at = {axis, 2 * extent - 1, extent, extent > 1 ? -2 : 1, 0});
    }
    case 2: /* the same for the whole batch */
        one.dim[0] = 1;
        return op(g->d, OP_broadcast_to, X(input(g->d, dtype, one)), .asked = {dtype, shape});
    default: return input(g->d, dtype, shape);
    }
}

/* Something small that repeats to the shape, or the number of the next operation. */
static int64_t any_term(growing *g, cot_dtype dtype, cot_shape shape) {
    cot_shape part = shape;
    int       kind = below(&g->r, 4);
    if (kind == 0) return NUM;
    if (kind == 1) return input(g->d, dtype, NO_AXES);
    for (int k = 0; k < part.ndim; k++)
        if (below(&g->r, 2)) part.dim[k] = 1;
    return op(g->d, OP_broadcast_to, X(input(g->d, dtype, part)), .asked = {dtype, shape});
}

static uint32_t any_product(growing *g, cot_dtype dtype, cot_shape shape) {
    cot_shape a = shape, b = shape;
    a.dim[shape.ndim - 1] = b.dim[shape.ndim - 2] = 1;
    uint32_t x = any_factor(g, dtype, a);
    if (cot__count(a.ndim, a.dim) == cot__count(b.ndim, b.dim) && a.dim[a.ndim - 2] == 1 && below(&g->r, 2))
        return op(g->d, OP_matmul, X(x, x));
    return op(g->d, OP_matmul, X(x, any_factor(g, dtype, b)));
}

static uint32_t any_step(growing *g, cot_dtype dtype, cot_shape shape, uint32_t z, uint32_t other) {
    static const int one[] = {OP_square, OP_neg, OP_abs, OP_relu, OP_square},
                     two[] = {OP_mul, OP_add, OP_sub, OP_div, OP_maximum, OP_smul};
    int which = two[below(&g->r, TEST_COUNT(two))];
    if (below(&g->r, 3) == 0) return op(g->d, one[below(&g->r, TEST_COUNT(one))], X(z));
    int64_t y = below(&g->r, 4) ? any_term(g, dtype, shape) : other;
    if (below(&g->r, 2)) return op(g->d, which, X(z, y), .number = odd_number(&g->r));
    return op(g->d, which, X(y, z), .number = odd_number(&g->r));
}

static uint32_t any_reduction(growing *g, uint32_t z) {
    static const int what[] = {OP_sum, OP_sum, OP_sum, OP_max, OP_min, OP_norm};
    cot__view        v = seen(g, z);
    int64_t          axes = 1 + below(&g->r, (1 << v.ndim) - 1);
    if (below(&g->r, 4) == 0) { /* of one row of all, or of all of an example */
        int64_t lead = below(&g->r, 2) ? 1 : v.shape[0];
        z = op(g->d, OP_reshape, X(z), .asked = {v.dtype, SHAPE((int)lead, (int)(cot__view_size(&v) / lead))});
        axes = 1 + below(&g->r, 3);
    }
    return op(g->d, what[below(&g->r, TEST_COUNT(what))], X(z), .ints = 2, .at = {axes, below(&g->r, 2)});
}

static cot__program *random_reductions(uint64_t seed) {
    static const cot_shape shapes[] = {{2, {40, 70}}, {2, {1, 600}}, {2, {300, 1}}, {3, {3, 20, 33}}, {3, {7, 1, 5}},
                                       {3, {2, 64, 64}}, {3, {1, 9, 530}}, {3, {5, 300, 1}}, {3, {500, 1, 1}},
                                       {3, {3, 5, 512}}};
    draft     d;
    growing   g = {.d = &d, .r = {seed}};
    cot_dtype dtype = below(&g.r, 2) ? COT_F64 : COT_F32;
    cot_shape shape = shapes[below(&g.r, TEST_COUNT(shapes))];
    draft_open(&d, NULL);
    uint32_t z[8], n = 1 + (uint32_t)below(&g.r, 2);
    for (uint32_t k = 0; k < n; k++) z[k] = any_product(&g, dtype, shape);
    for (int k = below(&g.r, 5); k > 0; k--, n++)
        z[n] = any_step(&g, dtype, shape, z[below(&g.r, (int)n)], z[below(&g.r, (int)n)]);
    for (int k = 1 + below(&g.r, 3); k > 0; k--) {
        if (d.h.errors) print_message("seed %llu: %s\n", (unsigned long long)seed, d.h.text);
        assert_int_equal(d.h.errors, 0);
        output(&d, any_reduction(&g, z[below(&g.r, 2) ? n - 1 : (uint32_t)below(&g.r, (int)n)]));
    }
    return draft_close(&d);
}

/* As it stands and after the pass, and after all passes, on several threads. */
static bool keeps_every_bit(const cot__program *p, cot__pass *pass, void *const *in, const result *want) {
    static const int threads[] = {1, 2, 7};
    cot__program    *q = after(p, pass);
    int64_t          usual = cot__grain;
    bool             same = true;
    for (int k = 0; k < TEST_COUNT(threads); k++) {
        cot_set_threads(threads[k]);
        cot__grain = k ? 1 : usual;
        result got = run_program(q, in, true);
        same &= same_result(want, &got);
        free_result(&got);
    }
    cot_set_threads(0);
    cot__grain = usual;
    cot__program_release(q);
    return same;
}

static void every_bit_stays(void **state) {
    int n = test_small() ? 300 : 3000, found = 0;
    (void)state;
    for (int seed = 0; seed < n; seed++) {
        void         *in[32];
        cot__program *p = random_reductions((uint64_t)seed), *q = after(p, cot__pass_remake);
        found += q != p;
        cot__program_release(q);
        fill_inputs(p, (uint64_t)seed, in);
        result want = run_program(p, in, false);
        TEST_CHECK(keeps_every_bit(p, cot__pass_remake, in, &want), "seed %d: remake changes bits", seed);
        TEST_CHECK(keeps_every_bit(p, cot__optimise, in, &want), "seed %d: all passes change bits", seed);
        free_result(&want);
        for (uint32_t k = 0; k < p->inputs; k++) free(in[k]);
        cot__program_release(p);
    }
    TEST_CHECK(found > n / 3, "%d of %d programs have work for the pass", found, n);
    test_verdict();
}

/* ---- other ways to fail ---------------------------------------------------------------------- */

/* Attributes that no pass makes are refused, whoever brings them. */
static void what_is_no_recipe_is_refused(void **state) {
    static const int64_t legal[] = {0, 3, 0, 2, 3, 4, 2, 3, 4, 0, -1, -1, -2, -7, 6, 0, -7, -7};
    enum { N = TEST_COUNT(legal) };
    static const struct { int at; int64_t to; const char *text; } wrong[] = {
        {0, 3, "recipe"},   {0, -1, "recipe"}, {1, 0, "recipe"},  {1, 4, "recipe"},  {2, 2, "recipe"},
        {3, 9, "recipe"},   {3, 0, "recipe"},  {4, 4, "numbers"}, {4, 0, "numbers"}, {6, 7, "recipe"},
        {7, 4, "numbers"},  {9, 5, "recipe"},  {9, -1, "recipe"}, {10, 5, "step 0"}, {10, 6, "step 0"},
        {11, 0, "step 0"},  {12, -3, "step 0"}, {13, 0, "step 0"}, {14, 9999, "step 1"}, {14, OP_exp, "step 1"},
        {15, 1, "step 1"},  {15, -7, "step 1"}, {16, 0, "step 1"}};
    (void)state;
    for (int k = -1; k < TEST_COUNT(wrong); k++) {
        union { cot__attr attr; char room[sizeof(cot__attr) + sizeof legal]; } a = {.attr = {.nints = N}};
        draft d;
        memcpy(a.attr.ints, legal, sizeof legal);
        if (k >= 0) a.attr.ints[wrong[k].at] = wrong[k].to;
        draft_open(&d, NULL);
        uint32_t x[2] = {input(&d, COT_F64, SHAPE(3, 1)), input(&d, COT_F64, SHAPE(1, 4))};
        uint32_t z = cot__build_operation(&d.b, &(cot__append){.op = OP_fold_made, .n = 2, .x = x, .attr = &a.attr,
                                                               .name = "fold_made"});
        if (k < 0) TEST_CHECK(z != COT__NO_VALUE, "what is legal was refused: %s", d.h.text);
        else
            TEST_CHECK(z == COT__NO_VALUE && strstr(d.h.text, wrong[k].text), "%d = %lld: \"%s\"", wrong[k].at,
                       (long long)wrong[k].to, d.h.text);
        cot__program_release(cot__builder_close(&d.b));
    }
    test_verdict();
}

static void no_memory_spoils_nothing(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(2, 1)), b = input(&d, COT_F64, SHAPE(1, 4));
    output(&d, sum(&d, op(&d, OP_square, X(op(&d, OP_matmul, X(a, b)))), 3));
    survives_no_memory(&d, cot__pass_remake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reductions_of_a_product_are_on_its_factors),
        cmocka_unit_test(what_somebody_needs_is_written),
        cmocka_unit_test(long_recipes_are_none),
        cmocka_unit_test(products_that_sums_have_kernels_for_are_not_written),
        cmocka_unit_test(products_of_parts_of_larger_arrays_are_written),
        cmocka_unit_test(what_has_to_be_written_concerns_its_own_readers_alone),
        cmocka_unit_test(a_factor_may_be_its_own_other),
        cmocka_unit_test(every_bit_stays),
        cmocka_unit_test(what_is_no_recipe_is_refused),
        cmocka_unit_test(no_memory_spoils_nothing),
    };
    return cmocka_run_group_tests(tests, all_pay, as_ever);
}
