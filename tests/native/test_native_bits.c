/* Native code gives the bits of the executor: for every elementwise operation over short and long
 * arrays, ordinary and odd numbers, for random programs, and whatever the number of threads. */
/* ctest: timeout=300 plain-only */
#include "native_folder.h"
#include "program/passes/random_program.h"
#include "support/points.h"

#include "base/parallel.h"
#include "native/object.h"
#include "rules/elementwise_ids.h"

/* ---- programs, by both ways ------------------------------------------------------------------ */

typedef struct pair { const cot__program *p; cot__native *native; cot__run *run; void *aside; } pair;

/* The native code of a program, ready to run. `seed` names it. */
static pair open_pair(const cot__program *p, uint64_t seed) {
    heard       h = {0};
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    pair        x = {.p = p, .native = cot__native_open(p, NULL)};
    assert_non_null(x.native);
    if (cot__native_look(x.native, true) != COT__NATIVE_LOADED && cot__native_parts(x.native))
        fail_msg("program %llu: %s", (unsigned long long)seed, cot__native_message(x.native));
    if (!cot__native_parts(x.native)) return x;
    x.run = cot__run_create_with(p, &cot__cpu_backend, NULL, cot__native_parts(x.native), NULL, &caller);
    assert_non_null(x.run);
    x.aside = malloc(cot__native_aside(x.native));
    return x;
}

static void close_pair(pair *x) {
    cot__run_destroy(x->run);
    cot__native_close(x->native);
    free(x->aside);
}

/* By native code itself, which a trial may drop as slower: the executor would be compared with
 * itself. */
static bool go_native(const pair *x, void *const *in, void *const *out) {
    return cot__run_go_by(x->run, x->native->loaded.functions, (const void *const *)in, out);
}

static result run_with(pair *x, void *const *in, bool surely) {
    result z = {.outputs = x->p->outputs};
    for (uint32_t k = 0; k < z.outputs; k++) {
        z.bytes[k] = bytes_at(x->p, x->p->output[k]);
        z.dtype[k] = cot__value_view(x->p, x->p->output[k]).dtype;
        z.out[k] = malloc(z.bytes[k] + 1);
    }
    z.ok = surely ? go_native(x, in, z.out)
                  : cot__native_go(x->native, x->run, x->aside, (const void *const *)in, z.out);
    snprintf(z.text, sizeof z.text, "%s", cot__run_message(x->run));
    return z;
}
static result run_native(pair *x, void *const *in) { return run_with(x, in, false); }

/* Three times on other inputs, with other numbers of threads. */
static void compare_both(pair *x, uint64_t seed) {
    static const int threads[] = {1, 2, 7};
    for (int round = 0; round < TEST_COUNT(threads); round++) {
        void *in[8];
        cot_set_threads(threads[round]);
        fill_inputs(x->p, seed + 1000 * (uint64_t)round, in);
        result want = run_program(x->p, in, true), got = run_native(x, in);
        if (!same_result(&want, &got) || cot__native_look(x->native, false) == COT__NATIVE_DROPPED)
            fail_msg("program %llu, round %d: other bits; %s", (unsigned long long)seed, round,
                     cot__native_message(x->native));
        free_result(&want);
        free_result(&got);
        for (uint32_t k = 0; k < x->p->inputs; k++) free(in[k]);
    }
    cot_set_threads(0);
}

static int compared;

static void try_program(uint64_t seed, bool large, int steps) {
    cot__program *p = random_program_of(seed, large, steps, NULL);
    pair          x = open_pair(p, seed);
    if (x.run) compare_both(&x, seed), compared++;
    close_pair(&x);
    cot__program_release(p);
}

static void random_programs_have_the_executors_bits(void **state) {
    (void)state;
    int64_t grain = cot__grain;
    cot__grain = 256; /* loops are shared by threads */
    compared = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) try_program(seed, seed % 2, seed < 3 ? 20 : 120);
    cot__grain = grain;
    assert_true(compared >= 5);
}

/* ---- every elementwise operation ------------------------------------------------------------- */

enum { SHORT = 3, LONG = 301, OPERATIONS = OP_elementwise_count };

/* All operations of one array of each operand. */
static cot__program *all_operations(cot_dtype dtype, int size, bool trig_apart) {
    draft    d;
    uint32_t x[3];
    draft_open(&d, NULL);
    for (int k = 0; k < 3; k++) x[k] = input(&d, dtype, SHAPE(size));
    uint32_t flag = op(&d, OP_less, X(x[1], x[2])), sum = COT__NO_VALUE;
    for (int o = 0; o < OPERATIONS; o++) {
        int      arity = cot__elementwise_arity(o);
        uint32_t y = o == OP_where ? op(&d, o, X(flag, x[0], x[1]))
                     : arity == 1  ? op(&d, o, X(x[0]))
                     : arity == 2  ? op(&d, o, X(x[0], x[1]))
                                   : op(&d, o, X(x[0], x[1], x[2]));
        if (trig_apart && (o == OP_sin || o == OP_cos || o == OP_tan)) output(&d, y);
        /* NaN does not come through: each is chosen or a number is */
        y = op(&d, OP_cast, X(y), .asked = {dtype, SHAPE(size)});
        uint32_t nan = op(&d, OP_isnan, X(y)), finite = op(&d, OP_where, X(nan, x[2], y));
        sum = sum == COT__NO_VALUE ? finite : op(&d, OP_sub, X(op(&d, OP_mul, X(sum, NUM), .number = 0.75), finite));
        if (o % 24 == 23) output(&d, sum), sum = COT__NO_VALUE;
    }
    output(&d, sum);
    return draft_close(&d);
}

/* Numbers between -4 and 4, then with odd ones and far arguments of sines among them. */
static void fill_numbers(const cot__program *p, int round, void **in) {
    dice r = {(uint64_t)round + 5};
    for (uint32_t k = 0; k < p->inputs; k++) {
        cot__view v = cot__value_view(p, p->input[k]);
        in[k] = malloc(bytes_at(p, p->input[k]) + 1);
        for (int64_t i = 0; i < cot__view_size(&v); i++) {
            double x = (double)(int64_t)(roll(&r) % 800001) / 100000 - 4;
            if (round == 1 && i % 7 == 3) x = odd_number(&r);
            if (round == 2 && i % 50 == 49) x *= 1e9;
            cot__store_f64((char *)in[k] + i * cot__dtype_size(v.dtype), v.dtype, x);
        }
    }
}

static void compare_all(cot_dtype dtype, int size) {
    cot__program *p = all_operations(dtype, size, true);
    pair          x = open_pair(p, (uint64_t)size);
    assert_non_null(x.run);
    for (int round = 0; round < 3; round++) {
        void *in[3];
        fill_numbers(p, round, in);
        result want = run_program(p, in, true), got = run_native(&x, in);
        if (!same_result(&want, &got))
            fail_msg("%s, %d elements, round %d: other bits", cot__dtype_name(dtype), size, round);
        assert_int_equal(cot__native_look(x.native, false), COT__NATIVE_READY);
        free_result(&want);
        free_result(&got);
        for (uint32_t k = 0; k < 3; k++) free(in[k]);
    }
    close_pair(&x);
    cot__program_release(p);
}

static void every_operation_on_f64_has_the_executors_bits(void **state) {
    (void)state;
    compare_all(COT_F64, LONG);
}
static void every_operation_on_f32_has_the_executors_bits(void **state) {
    (void)state;
    compare_all(COT_F32, LONG);
}
static void every_operation_on_short_arrays_has_the_executors_bits(void **state) {
    (void)state;
    compare_all(COT_F32, SHORT);
}

/* ---- loops that end in folds ----------------------------------------------------------------- */

/* Sums and extremes of what a loop makes, of which one is read nowhere else. */
static cot__program *folds(cot_dtype dtype, int size) {
    draft    d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, SHAPE(size)), y = op(&d, OP_sin, X(x)), z = op(&d, OP_mul, X(y, x));
    uint32_t sum = op(&d, OP_sum, X(z), .ints = 2, .at = {1, 0});
    output(&d, sum);
    output(&d, op(&d, OP_max, X(y), .ints = 2, .at = {1, 1}));
    output(&d, op(&d, OP_min, X(op(&d, OP_exp, X(y))), .ints = 2, .at = {1, 0}));
    output(&d, op(&d, OP_square, X(sum)));
    output(&d, y);
    return draft_close(&d);
}

/* One block, whole ones, and some with a rest. */
static void sums_at_the_end_of_loops_have_the_executors_bits(void **state) {
    (void)state;
    static const int sizes[] = {1024, 3000, 4096 * 4, 70001};
    for (int k = 0; k < TEST_COUNT(sizes); k++) {
        cot__program *p = folds(k % 2 ? COT_F32 : COT_F64, sizes[k]);
        pair          x = open_pair(p, (uint64_t)k);
        bool          ends = false;
        const cot__run_parts *parts = cot__native_parts(x.native);
        for (uint32_t i = 0; i < parts->parts; i++) ends |= parts->part[i].ends;
        assert_true(ends);
        compare_both(&x, (uint64_t)k);
        close_pair(&x);
        cot__program_release(p);
    }
}

/* ---- loops that read themselves shifted ------------------------------------------------------ */

static uint32_t part_of(draft *d, uint32_t x, int first, int n) {
    return op(d, OP_slice, X(x), .ints = 5, .at = {0, first, n, 1, 0});
}
static uint32_t patched(draft *d, int how, uint32_t x, uint32_t u, int first, int n) {
    return op(d, how, X(x, u), .ints = 4, .at = {0, first, n, 1});
}

/* Neighbours, differences of what was made of them, and ranges that are added to and replaced:
 * results of two sizes, and a sum of the longer. */
static cot__program *shifts(cot_dtype dtype, int size) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, SHAPE(size)), y = input(&d, dtype, SHAPE(size));
    uint32_t head = part_of(&d, x, 0, size - 1), tail = part_of(&d, x, 1, size - 1);
    uint32_t a = op(&d, OP_smul, X(op(&d, OP_sub, X(tail, head)), part_of(&d, y, 1, size - 1)));
    uint32_t b = op(&d, OP_exp, X(op(&d, OP_neg, X(op(&d, OP_square, X(a))))));
    uint32_t c = op(&d, OP_mul, X(part_of(&d, b, 1, size - 2), part_of(&d, a, 0, size - 2)));
    uint32_t z = patched(&d, OP_add_slice, op(&d, OP_mul, X(y, NUM), .number = 0.5), b, 1, size - 1);
    z = patched(&d, OP_add_slice, z, a, 0, size - 1);
    z = patched(&d, OP_update_slice, z, c, 1, size - 2);
    output(&d, op(&d, OP_sum, X(z), .ints = 2, .at = {1, 0}));
    output(&d, z);
    output(&d, op(&d, OP_sub, X(c, NUM), .number = 1));
    return draft_close(&d);
}

/* Zeros with gradients of slices added, as Hessian-vector products of chains have them. */
static cot__program *chained(cot_dtype dtype, int size) {
    draft   d;
    double *zeros = calloc((size_t)size, sizeof *zeros);
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, SHAPE(size)), none = constant_of(&d, dtype, SHAPE(size), size, zeros);
    uint32_t head = part_of(&d, x, 0, size - 1), tail = part_of(&d, x, 1, size - 1);
    uint32_t a = op(&d, OP_sub, X(tail, op(&d, OP_square, X(head))));
    uint32_t b = op(&d, OP_smul, X(a, head));
    uint32_t z = patched(&d, OP_add_slice, patched(&d, OP_add_slice, none, a, 1, size - 1), b, 0, size - 1);
    output(&d, z);
    output(&d, op(&d, OP_max, X(z), .ints = 2, .at = {1, 0}));
    free(zeros);
    return draft_close(&d);
}

static void compare_shifts(cot__program *p, uint64_t seed) {
    pair x = open_pair(p, seed);
    assert_non_null(x.run);
    const cot__run_parts *parts = cot__native_parts(x.native);
    uint32_t              most = 0;
    for (uint32_t i = 0; i < parts->parts; i++)
        if (parts->part[i].end - parts->part[i].first > most) most = parts->part[i].end - parts->part[i].first;
    assert_true(most >= 5); /* the group is a loop, and not the executor's */
    compare_both(&x, seed);
    close_pair(&x);
    cot__program_release(p);
}

static void loops_that_read_shifted_have_the_executors_bits(void **state) {
    (void)state;
    static const int sizes[] = {3, 4, 9, 300, 5000, 70001};
    int64_t          grain = cot__grain;
    cot__grain = 256;
    for (int k = 0; k < TEST_COUNT(sizes); k++) {
        compare_shifts(shifts(k % 2 ? COT_F32 : COT_F64, sizes[k]), (uint64_t)k);
        compare_shifts(chained(k % 2 ? COT_F64 : COT_F32, sizes[k]), (uint64_t)k + 50);
    }
    cot__grain = grain;
}

/* ---- strong products ------------------------------------------------------------------------- */

/* Products of products, as gradients have them, and what becomes of them: sums, or a choice that
 * NaN does not come through. */
static cot__program *products(cot_dtype dtype, int size, bool chosen, bool trig) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, SHAPE(size)), y = input(&d, dtype, SHAPE(size));
    uint32_t a = op(&d, OP_smul, X(x, y)), b = op(&d, OP_smul, X(a, trig ? op(&d, OP_sin, X(x)) : y));
    uint32_t c = op(&d, OP_sub, X(b, op(&d, OP_neg, X(a)))), z = op(&d, OP_smul, X(c, x));
    if (chosen) z = op(&d, OP_where, X(op(&d, OP_less, X(z, y)), x, y));
    output(&d, z);
    output(&d, op(&d, OP_sum, X(op(&d, OP_square, X(z))), .ints = 2, .at = {1, 0}));
    return draft_close(&d);
}

/* Round 0 has no NaN; the others have zeros beside infinities, in
 * some blocks or in all. */
static void fill_factors(const cot__program *p, int round, void **in) {
    cot__view v = cot__value_view(p, p->input[0]);
    fill_numbers(p, 0, in);
    for (int64_t i = 0; round > 0 && i < cot__view_size(&v); i++) {
        bool hit = round == 1 ? i % 1500 == 700 : i % 2 == 1;
        if (!hit) continue;
        cot__store_f64((char *)in[0] + i * cot__dtype_size(v.dtype), v.dtype, i % 3 ? 0 : (double)NAN);
        cot__store_f64((char *)in[1] + i * cot__dtype_size(v.dtype), v.dtype, i % 4 < 2 ? (double)INFINITY : 0);
    }
}

/* The first output lies apart, or where the first input lies. */
static void compare_products(pair *x, int round, bool in_place) {
    void *in[2];
    fill_factors(x->p, round, in);
    result want = run_program(x->p, in, true), got = {0};
    if (!in_place) got = run_with(x, in, true);
    else assert_true(go_native(x, in, (void *const[]){in[0], NULL}));
    if (in_place ? memcmp(in[0], want.out[0], want.bytes[0]) != 0 : !same_result(&want, &got))
        fail_msg("round %d%s: other bits", round, in_place ? " in place" : "");
    free_result(&want);
    if (!in_place) free_result(&got);
    free(in[0]), free(in[1]);
}

static void strong_products_of_long_loops_have_the_executors_bits(void **state) {
    (void)state;
    for (int k = 0; k < 6; k++) {
        cot__program *p = products(k % 2 ? COT_F32 : COT_F64, 5000, k / 2 == 1, k / 2 == 2);
        pair          x = open_pair(p, (uint64_t)k);
        for (int round = 0; round < 3; round++) compare_products(&x, round, false), compare_products(&x, round, true);
        close_pair(&x);
        cot__program_release(p);
    }
}

/* The way back through a chain of numbers; `chosen`: what it ends in is chosen, so that NaN does
 * not come through. */
static cot__program *chain(cot_dtype dtype, bool chosen) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, dtype, COT_SCALAR), y = input(&d, dtype, COT_SCALAR), g = x, sum = y;
    for (int k = 0; k < 40; k++) {
        uint32_t to = op(&d, OP_smul, X(g, y));
        sum = op(&d, OP_add, X(sum, op(&d, OP_smul, X(to, x))));
        g = op(&d, OP_sub, X(op(&d, OP_mul, X(to, NUM), .number = 0.5), op(&d, OP_smul, X(g, x))));
    }
    uint32_t less = op(&d, OP_less, X(sum, y));
    output(&d, chosen ? op(&d, OP_where, X(less, x, y)) : sum);
    output(&d, chosen ? y : g);
    return draft_close(&d);
}

static void strong_products_of_numbers_have_the_executors_bits(void **state) {
    (void)state;
    /* no NaN; NaN of some products, of all, and one that comes in */
    static const double factors[][2] = {{0.75, 0.5}, {0, (double)INFINITY}, {(double)INFINITY, 0}, {(double)NAN, 0},
                                        {1e300, -1e300}};
    for (int k = 0; k < 4; k++) {
        cot__program *p = chain(k % 2 ? COT_F32 : COT_F64, k / 2);
        pair          x = open_pair(p, (uint64_t)k);
        for (int round = 0; round < TEST_COUNT(factors); round++) {
            double room[2];
            void  *in[2] = {&room[0], &room[1]};
            for (int i = 0; i < 2; i++) cot__store_f64(in[i], k % 2 ? COT_F32 : COT_F64, factors[round][i]);
            result want = run_program(p, in, true), got = run_with(&x, in, true);
            if (!same_result(&want, &got)) fail_msg("program %d, round %d: other bits", k, round);
            free_result(&want);
            free_result(&got);
        }
        close_pair(&x);
        cot__program_release(p);
    }
}

/* The maps of joints one after the other, for several tangents at once: products of a few rows, of
 * matrices that lie turned, and what is laid side by side between them. */
static cot__program *joints(cot_dtype dtype) {
    draft d;
    draft_open(&d, NULL);
    uint32_t moved = input(&d, dtype, SHAPE(5, 12, 4)), turn = input(&d, dtype, SHAPE(5, 4, 4));
    uint32_t map = input(&d, dtype, SHAPE(5, 3, 4)), turns = input(&d, dtype, SHAPE(5, 4, 4, 4));
    uint32_t one = op(&d, OP_matmul, X(moved, turn));
    uint32_t back = op(&d, OP_permute, X(turns), .ints = 4, .at = {0, 1, 3, 2});
    uint32_t left = op(&d, OP_reshape, X(back), .asked = {dtype, SHAPE(5, 16, 4)});
    uint32_t right = op(&d, OP_permute, X(map), .ints = 3, .at = {0, 2, 1});
    uint32_t two = op(&d, OP_matmul, X(left, right));
    uint32_t wide = op(&d, OP_reshape, X(two), .asked = {dtype, SHAPE(5, 4, 4, 3)});
    uint32_t turned = op(&d, OP_permute, X(wide), .ints = 4, .at = {0, 1, 3, 2});
    uint32_t same = op(&d, OP_reshape, X(turned), .asked = {dtype, SHAPE(5, 12, 4)});
    uint32_t sum = op(&d, OP_add, X(one, same));
    output(&d, op(&d, OP_concat, X(one, sum, same), .ints = 2, .at = {2, 0}));
    return draft_close(&d);
}

static void small_products_are_native_with_the_executors_bits(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        cot__program *p = joints(k ? COT_F32 : COT_F64);
        pair          x = open_pair(p, (uint64_t)k);
        uint32_t      left = p->operations;
        assert_non_null(x.run);
        const cot__run_parts *parts = cot__native_parts(x.native);
        for (uint32_t i = 0; i < parts->parts; i++) left -= parts->part[i].end - parts->part[i].first;
        assert_int_equal(left, 0); /* to the library */
        compare_both(&x, (uint64_t)k);
        close_pair(&x);
        cot__program_release(p);
    }
}

/* The compiler of the system, as users have it. */
static int fresh_and_full(void **state) {
    int failed = fresh(state);
    unsetenv("COTANGENT_CC");
    return failed;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_operation_on_f64_has_the_executors_bits, fresh_and_full, clean),
        cmocka_unit_test_setup_teardown(every_operation_on_f32_has_the_executors_bits, fresh_and_full, clean),
        cmocka_unit_test_setup_teardown(every_operation_on_short_arrays_has_the_executors_bits, fresh, clean),
        cmocka_unit_test_setup_teardown(sums_at_the_end_of_loops_have_the_executors_bits, fresh, clean),
        cmocka_unit_test_setup_teardown(loops_that_read_shifted_have_the_executors_bits, fresh, clean),
        cmocka_unit_test_setup_teardown(strong_products_of_long_loops_have_the_executors_bits, fresh, clean),
        cmocka_unit_test_setup_teardown(strong_products_of_numbers_have_the_executors_bits, fresh, clean),
        cmocka_unit_test_setup_teardown(small_products_are_native_with_the_executors_bits, fresh, clean),
        cmocka_unit_test_setup_teardown(random_programs_have_the_executors_bits, fresh, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
