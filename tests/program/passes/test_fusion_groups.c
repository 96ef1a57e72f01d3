/* Groups: which operations run together, why others do not, which values live within blocks, and
 * that a run has the bits and less memory than that of one operation after the other. */
#include "group_test.h"

static const cot_shape MATRIX = {2, {4, 6}};

/* Its group, or why it has none. */
static void tell(cot__text *to, const cot__fusion *f, uint32_t k, uint32_t z) {
    if (f->of[k] != COT__NO_VALUE) cot__putf(to, " in %u%s", f->of[k], f->inside[z] ? " inside" : "");
    if (f->why[k] != COT__FUSED) cot__putf(to, ": %s", cot__unfused_text[f->why[k]]);
}

static void groups_are(draft *d, const char *text) { groups_are_told(d, tell, text); }

static void neighbours_of_one_size_run_together(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX), y = input(&d, COT_BF16, SHAPE(24)), s = input(&d, COT_F32, NO_AXES);
    uint32_t a = op(&d, OP_exp, X(x)), b = op(&d, OP_mul, X(a, s)); /* %3 %4 */
    uint32_t flat = op(&d, OP_reshape, X(b), .asked = {COT_F32, SHAPE(24)}); /* in order */
    uint32_t c = op(&d, OP_cast, X(flat), .asked = {COT_BF16, {0}});
    output(&d, op(&d, OP_add, X(c, y)));
    output(&d, a);
    groups_are(&d, "%3 exp in 0: an operation stands between that is not elementwise\n"
                   "%4 mul in 0 inside\n"
                   "%5 reshape: it is not elementwise, or has no axes\n"
                   "%6 cast in 0 inside\n"
                   "%7 add in 0\n");
}

/* What is permuted, broadcast or cut may come from before the group, and not from itself. */
static void other_orders_sizes_and_operations_end_a_group(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(4, 4)), v = input(&d, COT_F32, SHAPE(4));
    uint32_t row = op(&d, OP_broadcast_to, X(v), .asked = {COT_F32, SHAPE(4, 4)});
    uint32_t t = op(&d, OP_permute, X(x), .ints = 2, .at = {1, 0});
    uint32_t a = op(&d, OP_mul, X(t, row)), b = op(&d, OP_add, X(a, x));
    uint32_t bt = op(&d, OP_permute, X(b), .ints = 2, .at = {1, 0}); /* %6 */
    uint32_t c = op(&d, OP_mul, X(bt, b));                           /* another order */
    uint32_t e = op(&d, OP_exp, X(v));                               /* another size */
    uint32_t f = op(&d, OP_mul, X(e, v));
    uint32_t g = op(&d, OP_cumsum, X(f), .ints = 2, .at = {0, 0});
    output(&d, op(&d, OP_neg, X(g)));
    output(&d, c);
    groups_are(&d, "%2 broadcast_to: it is not elementwise, or has no axes\n"
                   "%3 permute: it is not elementwise, or has no axes\n"
                   "%4 mul in 0 inside: an operation stands between that is not elementwise\n"
                   "%5 add in 0\n"
                   "%6 permute: it is not elementwise, or has no axes\n"
                   "%7 mul: it reads elements of the group in another order\n"
                   "%8 exp in 1 inside: its arrays have another number of elements\n"
                   "%9 mul in 1\n"
                   "%10 cumsum: it is not elementwise, or has no axes\n"
                   "%11 neg: an operation stands between that is not elementwise\n");
}

/* The one element of a slice without axes is read when the group is done. */
static void an_element_that_is_taken_out_ends_a_group(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(4)), a = op(&d, OP_exp, X(x));
    uint32_t s = op(&d, OP_slice, X(a), .ints = 5, .at = {0, 2, 1, 1, 1});
    output(&d, op(&d, OP_mul, X(a, s)));
    groups_are(&d, "%1 exp: an operation stands between that is not elementwise\n"
                   "%2 slice: it is not elementwise, or has no axes\n"
                   "%3 mul: an operation stands between that is not elementwise\n");
}

static void a_group_ends_when_it_is_full(void **state) {
    draft d;
    char  text[4096];
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX);
    for (int k = 0; k < 40; k++) x = op(&d, OP_sin, X(x));
    output(&d, x);
    cot__program *p = draft_close(&d);
    describe_groups(p, tell, text, sizeof text);
    assert_non_null(strstr(text, "%32 sin in 0\n"));
    assert_non_null(strstr(text, "%33 sin in 1 inside: the group is full\n"));
    cot__program_release(p);
}

/* ---- folds ----------------------------------------------------------------------------------- */

/* Sums over all axes join; over one axis, of short arrays and of what comes from elsewhere not. The
 * result of a fold is there when its group is done. */
static void reductions_to_one_element_join_the_group_that_makes_their_operand(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(50, 60)), a = op(&d, OP_exp, X(x)); /* %1 */
    uint32_t s = op(&d, OP_sum, X(a), .ints = 2, .at = {3, 0});
    uint32_t b = op(&d, OP_mul, X(a, x)), m = op(&d, OP_max, X(b), .ints = 2, .at = {3, 1});
    uint32_t c = op(&d, OP_mul, X(b, s)); /* reads the fold */
    output(&d, op(&d, OP_sum, X(c), .ints = 2, .at = {1, 0})); /* columns */
    output(&d, op(&d, OP_sum, X(x), .ints = 2, .at = {3, 0}));
    output(&d, m);
    groups_are(&d, "%1 exp in 0 inside: an operation stands between that is not elementwise\n"
                   "%2 sum in 0\n"
                   "%3 mul in 0\n"
                   "%4 max in 0\n"
                   "%5 mul: it reads elements of the group in another order\n"
                   "%6 sum: it is not elementwise, or has no axes\n"
                   "%7 sum: it is not elementwise, or has no axes\n");
}

static bool has_spans(const cot__program *p) {
    cot__fusion f;
    bool        spans = false;
    open_groups(p, &f);
    for (uint32_t k = 0; k < f.groups; k++) spans |= f.group[k].spans;
    cot__fusion_close(&f);
    return spans;
}

/* Returns whether a group of the program has shifts. */
static bool same_bits_in_groups(draft *d, uint64_t seed) {
    void         *in[4];
    cot__program *p = draft_close(d);
    fill_inputs(p, seed, in);
    groups_keep_bits(p, in, seed);
    bool spans = has_spans(p);
    cot__program_release(p);
    return spans;
}

/* Sizes around blocks and leaves, and every float dtype; numbers on which order shows. */
static void folds_have_the_bits_of_reductions(void **state) {
    static const int       sizes[] = {1024, 1025, 1279, 2048, 3000, 4096, 20000, 65536, 65537, 100001, 300000};
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    (void)state;
    for (int i = 0; i < TEST_COUNT(sizes); i++)
        for (int t = 0; t < TEST_COUNT(dtypes); t++) {
            draft d;
            draft_open(&d, NULL);
            uint32_t x = input(&d, dtypes[t], SHAPE(sizes[i])), third = constant(&d, dtypes[t], NO_AXES, 0.3);
            uint32_t y = op(&d, OP_tanh, X(op(&d, OP_where, X(op(&d, OP_isnan, X(x)), third, x))));
            uint32_t z = op(&d, OP_mul, X(y, NUM), .number = 0.1);
            uint32_t w = op(&d, OP_minimum, X(z, NUM), .number = 0.05);
            output(&d, op(&d, OP_sum, X(w), .ints = 2, .at = {1, 0}));
            output(&d, op(&d, OP_max, X(z), .ints = 2, .at = {1, 1}));
            output(&d, op(&d, OP_min, X(y), .ints = 2, .at = {1, 0}));
            if (i % 2) output(&d, z);
            same_bits_in_groups(&d, (uint64_t)i);
        }
    test_verdict();
}

/* Sums along the last axes join, too, with others of rows of that length; not along the first, not
 * with a fold of all elements, not of the end of a product. */
static void reductions_of_rows_join_the_group_that_makes_their_operand(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(20, 6, 10)), a = op(&d, OP_exp, X(x)); /* %1 */
    uint32_t s = op(&d, OP_sum, X(a), .ints = 2, .at = {6, 0}), m = op(&d, OP_max, X(a), .ints = 2, .at = {6, 1});
    uint32_t b = op(&d, OP_mul, X(a, x)), r = op(&d, OP_sum, X(b), .ints = 2, .at = {4, 0});
    uint32_t c = op(&d, OP_square, X(x)), t = op(&d, OP_sum, X(c), .ints = 2, .at = {1, 0});
    output(&d, s), output(&d, m), output(&d, r), output(&d, t);
    groups_are(&d, "%1 exp in 0 inside: an operation stands between that is not elementwise\n"
                   "%2 sum in 0\n"
                   "%3 max in 0\n"
                   "%4 mul in 0\n"
                   "%5 sum: it is not elementwise, or has no axes\n"
                   "%6 square: an operation stands between that is not elementwise\n"
                   "%7 sum: it is not elementwise, or has no axes\n");
}

/* Rows around vectors, leaves and blocks; those longer than a block of plain kernels; parts of rows
 * that are given out, and results that keep their axes. */
static void folds_of_rows_have_the_bits_of_reductions(void **state) {
    static const int       rows[] = {8, 9, 15, 16, 17, 100, 256, 257, 300, 511, 512, 513, 1000, 1024, 1025, 3000, 4096};
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16};
    (void)state;
    for (int i = 0; i < TEST_COUNT(rows); i++)
        for (int t = 0; t < TEST_COUNT(dtypes); t++) {
            draft d;
            draft_open(&d, NULL);
            cot_shape shape = SHAPE(1 + 20000 / rows[i], rows[i]);
            uint32_t  x = input(&d, dtypes[t], shape), bias = input(&d, dtypes[t], SHAPE(rows[i]));
            uint32_t  third = constant(&d, dtypes[t], NO_AXES, 0.3);
            uint32_t  wide = op(&d, OP_broadcast_to, X(bias), .asked = {dtypes[t], shape});
            uint32_t  y = op(&d, OP_where, X(op(&d, OP_isnan, X(x)), third, x));
            uint32_t  z = op(&d, OP_tanh, X(y)), w = op(&d, OP_mul, X(z, NUM), .number = 0.1);
            uint32_t  u = i % 3 ? w : op(&d, OP_add, X(w, wide));
            output(&d, op(&d, OP_sum, X(u), .ints = 2, .at = {2, i % 2}));
            output(&d, op(&d, OP_max, X(z), .ints = 2, .at = {2, 0}));
            output(&d, op(&d, OP_min, X(u), .ints = 2, .at = {2, 1}));
            if (i % 2) output(&d, z);
            same_bits_in_groups(&d, (uint64_t)i);
        }
    test_verdict();
}

/* ---- shifts and patches ---------------------------------------------------------------------- */

/* exp(x), its differences, and the differences added to a range of zeros, as the gradient of a
 * slice is: one group, but for what is given out besides. */
static void shifted_values_stay_in_their_group(void **state) {
    (void)state;
    for (int given = 0; given < 2; given++) {
        draft d;
        draft_open(&d, NULL);
        uint32_t x = input(&d, COT_F64, SHAPE(2000)), zeros = constant(&d, COT_F64, SHAPE(2000), 0);
        uint32_t e = op(&d, OP_exp, X(x)), head = op(&d, OP_slice, X(e), .ints = 5, .at = {0, 0, 1999, 1, 0});
        uint32_t tail = op(&d, OP_slice, X(e), .ints = 5, .at = {0, 1, 1999, 1, 0});
        uint32_t s = op(&d, OP_sub, X(tail, head)); /* %5 */
        uint32_t z = op(&d, OP_add_slice, X(zeros, s), .ints = 4, .at = {0, 1, 1999, 1});
        output(&d, op(&d, OP_sum, X(z), .ints = 2, .at = {1, 0}));
        if (given) output(&d, e);
        groups_are(&d, given ? "%2 exp: an operation stands between that is not elementwise\n"
                               "%3 slice: it is not elementwise, or has no axes\n"
                               "%4 slice: it is not elementwise, or has no axes\n"
                               "%5 sub in 0 inside: it reads, shifted, what is read outside of the group, too\n"
                               "%6 add_slice in 0 inside\n"
                               "%7 sum in 0\n"
                             : "%2 exp in 0 inside: an operation stands between that is not elementwise\n"
                               "%3 slice: it is not elementwise, or has no axes\n"
                               "%4 slice: it is not elementwise, or has no axes\n"
                               "%5 sub in 0 inside\n"
                               "%6 add_slice in 0 inside\n"
                               "%7 sum in 0\n");
    }
}

/* A value of which any range may be taken: what is there, a constant, or zeros. */
static uint32_t any_of(growing *g, cot_dtype dtype, int64_t size) {
    for (int tries = 0; tries < 8; tries++) {
        uint32_t  v = any(g);
        cot__view x = seen(g, v);
        if (x.dtype == dtype && x.ndim == 1 && x.shape[0] == size) return v;
    }
    return any_constant(g, dtype, (cot_shape){1, {size}});
}

static uint32_t grow_shifted(growing *g) {
    uint32_t  x = any(g);
    cot__view v = seen(g, x);
    int64_t   n = v.shape[0], less = 1 + below(&g->r, below(&g->r, 4) ? 4 : 600), from = below(&g->r, (int)less + 1);
    switch (below(&g->r, 8)) {
    case 0:
    case 1: return op(g->d, OP_slice, X(x), .ints = 5, .at = {0, from, n - less, 1, 0});
    case 2: return op(g->d, OP_add_slice, X(any_of(g, v.dtype, n + less), x), .ints = 4, .at = {0, from, n, 1});
    case 3: return op(g->d, OP_update_slice, X(any_of(g, v.dtype, n + less), x), .ints = 4, .at = {0, from, n, 1});
    case 4: return op(g->d, OP_add, X(x, any_of(g, v.dtype, n)));
    case 5: return op(g->d, OP_add_slice, X(x, any_of(g, v.dtype, n)), .ints = 4, .at = {0, 0, n, 1});
    case 6: return op(g->d, OP_cast, X(x), .asked = {below(&g->r, 2) ? COT_F64 : COT_F32, {0}});
    default: return op(g->d, below(&g->r, 2) ? OP_relu : OP_neg, X(x));
    }
}

/* Arrays of a few sizes around blocks; one value or several are given out, and sums. */
static void random_stencils_keep_every_bit(void **state) {
    int spans = 0, n = test_small() ? 150 : 1500;
    (void)state;
    for (int seed = 0; seed < n; seed++) {
        draft   d;
        growing g = {.d = &d, .r = {(uint64_t)seed}};
        draft_open(&d, NULL);
        int64_t size = 1500 + below(&g.r, 4) * 1000 + below(&g.r, 3);
        for (int k = 0; k < 2; k++) keep(&g, input(&d, below(&g.r, 3) ? COT_F32 : COT_F64, (cot_shape){1, {size}}));
        for (int k = 4 + below(&g.r, 16); k > 0; k--) keep(&g, grow_shifted(&g));
        uint32_t last = g.value[g.values - 1];
        for (int k = below(&g.r, 3); k > 0; k--) output(&d, any(&g));
        output(&d, last);
        output(&d, op(&d, below(&g.r, 2) ? OP_sum : OP_max, X(last), .ints = 2, .at = {1, 0}));
        spans += same_bits_in_groups(&d, (uint64_t)seed);
    }
    TEST_CHECK(spans > n / 8, "only %d programs have groups with shifts", spans);
    test_verdict();
}

/* ---- rows and truths ------------------------------------------------------------------------- */

/* A layer with its bias, ReLU and its mask, as a network's derivative has them: rows of every
 * length that is done in another way, and truths that only the group reads. */
static void rows_repeat_and_truths_stay_numbers(void **state) {
    static const int       rows[] = {1, 7, 8, 31, 32, 127, 128, 129, 256, 257, 300, 1024, 2000};
    static const cot_dtype dtypes[] = {COT_F32, COT_F64, COT_BF16};
    (void)state;
    for (int i = 0; i < TEST_COUNT(rows); i++)
        for (int t = 0; t < TEST_COUNT(dtypes); t++) {
            draft     d;
            cot_shape shape = SHAPE(5000 / rows[i] + 2, rows[i]);
            draft_open(&d, NULL);
            uint32_t x = input(&d, dtypes[t], shape), b = input(&d, dtypes[t], SHAPE(rows[i]));
            uint32_t g = input(&d, dtypes[t], shape), column = input(&d, dtypes[t], SHAPE(5000 / rows[i] + 2, 1));
            uint32_t wide = op(&d, OP_broadcast_to, X(b), .asked = {dtypes[t], shape});
            uint32_t tall = op(&d, OP_broadcast_to, X(column), .asked = {dtypes[t], shape});
            uint32_t h = op(&d, OP_add, X(x, wide)), mask = op(&d, OP_greater, X(h, NUM), .number = 0);
            uint32_t zero = constant(&d, dtypes[t], NO_AXES, 0), back = op(&d, OP_where, X(mask, g, zero));
            uint32_t both = op(&d, OP_logical_and, X(mask, op(&d, OP_less, X(g, NUM), .number = 2)));
            output(&d, op(&d, OP_mul, X(back, wide)));
            output(&d, op(&d, OP_relu, X(h)));
            output(&d, op(&d, OP_cast, X(both), .asked = {COT_F64, {0}}));
            if (i % 2) output(&d, op(&d, OP_add, X(op(&d, OP_mul, X(h, tall)), wide)));
            same_bits_in_groups(&d, (uint64_t)i);
        }
    test_verdict();
}

/* The rows of a repeated one as a matrix are a view that the plan alone finds, and lie in one
 * place. Their list is a copy, which no group may have in it. */
static void a_copy_of_what_is_repeated_stands_in_no_group(void **state) {
    for (int told = 0; told < 2; told++) {
        draft d;
        (void)state;
        draft_open(&d, NULL);
        uint32_t x = input(&d, COT_F32, SHAPE(1, 1, 4)), e = op(&d, OP_sin, X(x));
        uint32_t wide = op(&d, OP_broadcast_to, X(e), .asked = {COT_F32, SHAPE(1, 2, 4)});
        uint32_t rows = op(&d, OP_reshape, X(wide), .asked = {COT_F32, SHAPE(2, 4)});
        uint32_t a = op(&d, OP_exp, X(rows));
        uint32_t list = op(&d, OP_reshape, X(rows), .asked = {COT_F32, SHAPE(8)});
        output(&d, op(&d, OP_cos, X(list)));
        output(&d, op(&d, OP_mul, X(a, rows)));
        if (told) {
            groups_are(&d, "%1 sin: an operation stands between that is not elementwise\n"
                           "%2 broadcast_to: it is not elementwise, or has no axes\n"
                           "%3 reshape: it is not elementwise, or has no axes\n"
                           "%4 exp: an operation stands between that is not elementwise\n"
                           "%5 reshape: it is not elementwise, or has no axes\n"
                           "%6 cos in 0: an operation stands between that is not elementwise\n"
                           "%7 mul in 0\n");
        } else same_bits_in_groups(&d, 1);
    }
    test_verdict();
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t arena_of(const cot__program *p, bool fused) {
    heard       h;
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__run   *r = (fused ? cot__run_create : cot__run_create_unfused)(p, &cot__cpu_backend, NULL, NULL, &caller);
    size_t      bytes = cot__run_arena_bytes(r);
    cot__run_destroy(r);
    return bytes;
}

enum { ARRAY = 8000 }; /* bytes of 1000 numbers; the rest of an arena is less */

static void takes_arrays(draft *d, size_t alone, size_t together) {
    cot__program *p = draft_close(d);
    assert_int_equal(arena_of(p, false) / ARRAY, alone);
    assert_int_equal(arena_of(p, true) / ARRAY, together);
    cot__program_release(p);
}

/* A chain lies where its end will lie, and that is where an operand lay that nobody reads later. */
static void a_chain_takes_the_memory_of_its_end(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1000)), a = op(&d, OP_cumsum, X(x), .ints = 2, .at = {0, 0});
    for (int k = 0; k < 10; k++) a = op(&d, OP_sin, X(a));
    output(&d, a);
    takes_arrays(&d, 1, 1);
}

/* (sin x)(cos x): one of them at home, one in a piece of its own. */
static void a_second_chain_has_memory_of_its_own(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1000));
    uint32_t a = op(&d, OP_sin, X(x)), b = op(&d, OP_cos, X(x));
    output(&d, op(&d, OP_exp, X(op(&d, OP_mul, X(a, b)))));
    takes_arrays(&d, 2, 2);
}

/* What is read in another order is not written before the group is done. */
static void what_is_read_in_another_order_stays_until_the_end(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1000)), a = op(&d, OP_cumsum, X(x), .ints = 2, .at = {0, 0});
    uint32_t back = op(&d, OP_slice, X(a), .ints = 5, .at = {0, 999, 1000, -1, 0});
    output(&d, op(&d, OP_exp, X(op(&d, OP_mul, X(back, a)))));
    takes_arrays(&d, 2, 2);
}

/* sin(x) in f32, and half of it in f64: as many bytes as x, but element i lies elsewhere. */
static void half_as_many_of_twice_the_size_lie_elsewhere(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(10000)), a = op(&d, OP_concat, X(x, x), .ints = 2, .at = {0, 0});
    uint32_t half = op(&d, OP_slice, X(op(&d, OP_sin, X(a))), .ints = 5, .at = {0, 0, 10000, 1, 0});
    uint32_t z = op(&d, OP_cast, X(half), .asked = {COT_F64, {0}});
    output(&d, op(&d, OP_concat, X(z, z), .ints = 2, .at = {0, 0}));
    assert_true(same_bits_in_groups(&d, 1));
    test_verdict();
}

/* Σ over k of an integer and a float chain that meet late: more values within blocks than a stage
 * takes. */
static void a_group_may_have_more_inside_than_a_stage_takes(void **state) {
    draft    d;
    void    *in[1];
    uint32_t f[7];
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(5000));
    for (int k = 0; k < 7; k++) f[k] = op(&d, OP_mul, X(x, NUM), .number = k + 1);
    for (int k = 0; k < 7; k++) f[k] = op(&d, OP_less, X(f[k], NUM), .number = k);
    for (int k = 0; k < 7; k++) f[k] = op(&d, OP_cast, X(f[k]), .asked = {COT_F64, {0}});
    for (int k = 1; k < 7; k++) f[0] = op(&d, OP_add, X(f[0], f[k]));
    output(&d, f[0]);
    cot__program *p = draft_close(&d);
    fill_inputs(p, 1, in);
    result want = run_program(p, in, false), got = run_program(p, in, true);
    assert_true(same_result(&want, &got));
    free_result(&want);
    free_result(&got);
    free(in[0]);
    cot__program_release(p);
}

static void any_allocation_may_fail(void **state) {
    cot__program *p = random_program(5, false, NULL);
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
        cmocka_unit_test(neighbours_of_one_size_run_together),
        cmocka_unit_test(other_orders_sizes_and_operations_end_a_group),
        cmocka_unit_test(an_element_that_is_taken_out_ends_a_group),
        cmocka_unit_test(a_copy_of_what_is_repeated_stands_in_no_group),
        cmocka_unit_test(a_group_ends_when_it_is_full),
        cmocka_unit_test(reductions_to_one_element_join_the_group_that_makes_their_operand),
        cmocka_unit_test(folds_have_the_bits_of_reductions),
        cmocka_unit_test(reductions_of_rows_join_the_group_that_makes_their_operand),
        cmocka_unit_test(folds_of_rows_have_the_bits_of_reductions),
        cmocka_unit_test(shifted_values_stay_in_their_group),
        cmocka_unit_test(random_stencils_keep_every_bit),
        cmocka_unit_test(rows_repeat_and_truths_stay_numbers),
        cmocka_unit_test(a_chain_takes_the_memory_of_its_end),
        cmocka_unit_test(a_second_chain_has_memory_of_its_own),
        cmocka_unit_test(what_is_read_in_another_order_stays_until_the_end),
        cmocka_unit_test(half_as_many_of_twice_the_size_lie_elsewhere),
        cmocka_unit_test(a_group_may_have_more_inside_than_a_stage_takes),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
