/* Exported C: every sample function with its gradient and every elementwise operation, compiled
 * with strict warnings by gcc and clang, gives the library's bits; also on a bare 32-bit ARM. */
/* ctest: timeout=600 plain-only */
#define _GNU_SOURCE /* mkdtemp, open_memstream */
#include "program/emit_gradients.h"
#include "program/emit_loops.h"
#include "support/tape_test.h"

/* ---- samples and bodies ---------------------------------------------------------------------- */

static void add_samples(emitted *e, cot_dtype dtype, int step) {
    static group g;
    for (int k = 0; k < TEST_COUNT(samples); k += step) {
        test_function f = function_of(&samples[k], k, 0);
        if (!can_be_exported(&f, dtype)) continue;
        if (g.count == TEST_COUNT(g.f) || g.inputs + f.n > MOST_INPUTS) add_group(e, &g, dtype);
        g.f[g.count++] = f;
        g.inputs += f.n;
    }
    add_group(e, &g, dtype);
}

/* On positions that move; of constants they are computed once and for all. */
static cot_var positions(cot_var x) { return cot_cast(cot_mul(cot_sigmoid(x), 1.99), COT_I64); }
SAMPLE(m_one_hot) { UNUSED; return cot_one_hot(positions(x[0]), 3, cot_dtype_of(x[0])); }
SAMPLE(m_integers) {
    UNUSED;
    cot_var i = cot_mul(cot_cast(cot_mul(x[0], 100.0), COT_I32), 3), u = cot_cast(i, COT_U8);
    cot_var z = cot_add(cot_remainder(cot_sum(i, COT_AXES(0)), 7), cot_max(cot_cast(u, COT_I64), COT_AXES(0)));
    z = cot_add(cot_mul(z, cot_pow(z, 2)), cot_matmul(cot_cast(i, COT_I64), cot_cast(u, COT_I64)));
    return cot_add(cot_cast(cot_cumsum(z, 0, true), cot_dtype_of(x[0])), x[0]);
}

SAMPLE(m_gather) {
    UNUSED;
    cot_var at = cot_stack(2, (cot_var[]){positions(x[0]), positions(cot_neg(x[0]))}, -1);
    return cot_scatter(cot_gather(x[0], at), cot_index(positions(x[0]), 0, 0), cot_mul(x[0], 3.0), 0);
}
SAMPLE(m_compress) {
    UNUSED;
    cot_var flat = cot_reshape(x[0], COT_SHAPE(4));
    return cot_compress_to(flat, cot_greater(flat, 0.0), 0, 3, 7);
}
/* Their gradients have loops: a number beside what has none. */
SAMPLE(m_determinants) {
    UNUSED;
    cot_var sign, logarithm, det = cot_det(cot_detach(x[0]));
    cot_slogdet(cot_detach(x[0]), &sign, &logarithm);
    return cot_mul(cot_stack(3, (cot_var[]){sign, logarithm, det}, 0), cot_sum(x[0], COT_ALL));
}
/* The factors of a constant are constants, and then nothing reads it. */
SAMPLE(m_system) {
    UNUSED;
    cot_var a = cot_data(x[0].tape, COT_F64, COT_SHAPE(2, 2), (double[]){3, 1, -1, 2});
    return cot_add(cot_solve(cot_cast(a, cot_dtype_of(x[0])), x[0]), x[0]);
}
SAMPLE(m_draws) {
    UNUSED;
    cot_var   step = cot_cast(cot_mul(cot_index(cot_index(x[0], 0, 0), 0, 0), 1000.0), COT_I64);
    cot_tape *t = step.tape;
    cot_key   key = cot_key_at(cot_key_of(UINT64_C(0x123456789abcdef)), step);
    cot_dtype d = cot_dtype_of(x[0]);
    cot_var   z = cot_add(cot_uniform(t, key, d, COT_SHAPE(5, 2, 2), -1, 3), cot_normal(t, key, d, COT_SHAPE(5, 2, 2)));
    z = cot_add(z, cot_dropout(cot_gumbel(t, key, d, COT_SHAPE(5, 2, 2)), 0.25, key));
    z = cot_take(z, cot_permutation(t, key, 5), 0);
    return cot_mul(cot_add(z, cot_normal(t, key, d, COT_SCALAR)), x[0]);
}
SAMPLE(m_orders) {
    UNUSED;
    cot_var i = cot_cast(cot_mul(x[0], 3.0), COT_I32), sorted = cot_sort(cot_reshape(x[0], COT_SHAPE(4)), 0, false);
    cot_var u = cot_argsort(cot_cast(i, COT_U8), 1, true), b = cot_argsort(cot_greater(x[0], 0.0), 0, false);
    cot_var z = cot_add(cot_add(u, b), cot_add(cot_argsort(i, 0, true), cot_argsort(cot_cast(i, COT_I64), 1, false)));
    z = cot_add(z, cot_add(cot_searchsorted(sorted, x[0], false), cot_searchsorted(sorted, x[0], true)));
    z = cot_add(z, cot_cumprod(cot_cast(i, COT_I64), 0, true));
    return cot_add(cot_cast(cot_add(z, cot_cast(cot_cummax(i, 0, false), COT_I64)), cot_dtype_of(x[0])), x[0]);
}

/* Each on its own matrix, all in one program: what a compiler takes its time for is the file. */
static void add_to_group(group *g, const char *name, cot_function f) {
    g->f[g->count] = (test_function){.name = name, .f = f, .n = 1, .in[0].shape = {2, {2, 2}}};
    test_random random = test_random_of(name, 0);
    test_fill(&g->f[g->count++], &random, -2, 2);
    g->inputs++;
}

/* A tape takes second derivatives of ways back otherwise than a program, with other roundings. */
static void add_second(emitted *e) {
    static group g;
    add_to_group(&g, "second", m_second);
    runs = true;
    add_group(e, &g, COT_F64);
    runs = false;
}

/* Every so many of them. */
static void add_moving(emitted *e, cot_dtype dtype, int step) {
    const struct { const char *name; cot_function f; } moving[] = {
        {"one_hot", m_one_hot}, {"integers", m_integers}, {"gather", m_gather}, {"compress", m_compress},
        {"det", m_determinants}, {"draws", m_draws}, {"orders", m_orders}, {"scan", m_scan}, {"fori", m_fori},
        {"cond", m_cond}, {"bounded", m_bounded}, {"while", m_while}, {"never", m_never}, {"numbers", m_numbers},
        {"halves", m_halves}, {"each", m_each}, {"tangent", m_tangent}, {"system", m_system}};
    static group g;
    for (int k = 0; k < TEST_COUNT(moving); k += step) add_to_group(&g, moving[k].name, moving[k].f);
    add_group(e, &g, dtype);
}

/* ---- elementwise operations ------------------------------------------------------------------ */

/* Operations from *first on, 20 of them: value and gradient of each, on its own three operands. */
enum { SOME = 20 };
static int elementwise(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    int first = *(int *)user;
    (void)n, (void)m;
    for (int op = first; op < first + SOME && op < OP_elementwise_count; op++) {
        const cot_var *x = xs;
        int            arity = cot__elementwise_arity(op), at = op - first;
        cot_var        own[3], g[3] = {x[0], x[0], x[0]};
        for (int k = 0; k < 3; k++) own[k] = cot_index(x[k], 0, at);
        if (op == OP_where) own[0] = cot_greater(own[0], 0.0);
        ys[2 * at] = test_call(op, own);
        bool real = cot_dtype_of(ys[2 * at]) != COT_BOOL && cot__op_of(op)->kind != KIND_NONE && op != OP_polygamma;
        if (real) cot_grad_of(cot_sum(ys[2 * at], COT_ALL), arity - (op == OP_where), own + (op == OP_where), g);
        ys[2 * at + 1] = g[0];
    }
    return 0;
}

/* Rows of operands, one for each operation: points of its domain, and specials. Of scalars a row is
 * one number. */
static void add_elementwise(emitted *e, cot_dtype dtype, int64_t length) {
    static const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, 1e6, -1e9, 3e22, 1e-310, 2.0, -1.0};
    for (int first = 0; first < OP_elementwise_count; first += SOME) {
        cot_tape *t = cot_tape_create(NULL);
        double    x[3][SOME * 64];
        cot_var   xs[3];
        int       count = OP_elementwise_count - first < SOME ? OP_elementwise_count - first : SOME;
        for (int op = first; op < first + count; op++) {
            test_random random = test_random_of(cot__op_of(op)->name, (int)length);
            for (int64_t i = 0; i < length; i++) {
                double point[3];
                test_sample(op, &random, point);
                for (int k = 0; k < 3; k++) {
                    bool special = length > 1 && i >= length - TEST_COUNT(specials);
                    x[k][(op - first) * length + i] = special ? specials[(i + 5 * k) % TEST_COUNT(specials)] : point[k];
                }
            }
        }
        cot_shape shape = length > 1 ? COT_SHAPE(count, length) : COT_SHAPE(count);
        for (int k = 0; k < 3; k++) xs[k] = leaf_of(t, dtype, shape, x[k]);
        TEST_CHECK(add_function(e, t, "elementwise", elementwise, &first, 3, xs, 2 * count),
                   "elementwise operations from %d on are refused: %s", first, cot_tape_message(t));
        cot_tape_destroy(t);
    }
}

/* ---- larger arrays --------------------------------------------------------------------------- */

SAMPLE(long_sums) {
    UNUSED;
    cot_var y = cot_sin(cot_mul(x[0], 3.0));
    return cot_add(cot_sum(y, COT_AXES(0)), cot_sum(cot_transpose(cot_exp(y)), COT_AXES(1)));
}
SAMPLE(long_statistics) {
    UNUSED;
    cot_var y = cot_softmax(x[0], 0), z = cot_log_softmax(cot_transpose(x[0]), 1);
    cot_var w = cot_add(cot_norm(x[0], 2, COT_AXES(0)), cot_logsumexp(x[0], COT_AXES(0)));
    cot_var u = cot_index(x[0], 1, 0), v = cot_index(x[0], 1, 1);
    w = cot_add(w, cot_sum(cot_mul(y, cot_transpose(z)), COT_AXES(0)));
    return cot_add(w, cot_add(cot_mse(u, v), cot_dot(u, v)));
}
SAMPLE(long_products) { UNUSED; return cot_matmul(cot_transpose(x[0]), cot_cos(x[0])); }

/* Rows of many entries, and entries that are dot products of many terms. */
SAMPLE(long_rows) {
    UNUSED;
    int64_t row[1700], column[1700];
    for (int k = 0; k < 1700; k++) row[k] = k / 600, column[k] = k % 600;
    cot_tape *t = cot_tape_of(x[0]);
    cot_csr   a = cot_csr_from_triplets(t, 3, 600, 1700, row, column, cot_index(x[0], 1, 0));
    cot_csr   few = cot_csr_from_triplets(t, 3, 6, 6, row, column, cot_zeros(t, cot_dtype_of(x[0]), COT_SHAPE(6)));
    cot_var   left = cot_reshape(cot_slice(x[0], 0, 0, 450, 1), COT_SHAPE(3, 300));
    cot_var   right = cot_reshape(cot_slice(x[0], 0, 450, 1350, 1), COT_SHAPE(6, 300));
    cot_var   z = cot_csr_matmul(cot_csr_sddmm(few, left, right), cot_slice(x[0], 0, 0, 6, 1));
    return cot_add(z, cot_csr_matmul(cot_csr_softmax(a), cot_slice(x[0], 0, 0, 600, 1)));
}

static cot_var random_array(cot_tape *t, cot_dtype dtype, cot_shape shape) {
    static double x[4096];
    test_random   random = test_random_of("long", 1);
    for (int k = 0; k < TEST_COUNT(x); k++) x[k] = test_uniform(&random, -2, 2);
    assert_true(cot__count(shape.ndim, shape.dim) <= TEST_COUNT(x));
    return leaf_of(t, dtype, shape, x);
}

static void add_long(emitted *e, cot_dtype dtype, cot_function f) {
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       v = random_array(t, dtype, COT_SHAPE(1700, 2));
    test_function whole = {.name = "long", .f = f};
    TEST_CHECK(add_function(e, t, "long", with_gradient, &whole, 1, &v, 3), "a long array is refused: %s",
               cot_tape_message(t));
    cot_tape_destroy(t);
}

/* Gradients of weights are cut as the kernel cuts them: few taps and many images in shares, wide
 * images in chunks of rows, narrow ones in a row, with and without taps that some chunks do not
 * meet. */
SAMPLE(images_in_shares) { UNUSED; return cot_conv2d(x[0], x[1], COT_CONV(.padding = {1, 1})); }
SAMPLE(wide_images) { UNUSED; return cot_conv2d(x[0], x[1], COT_CONV(.stride = {2, 1}, .padding = {2, 3})); }
SAMPLE(spread_images) {
    UNUSED;
    return cot_conv2d(x[0], x[1], COT_CONV(.groups = 2, .stride = {3, 2}, .dilation = {2, 3}, .padding_after = {4, 5}));
}
SAMPLE(pooled_images) {
    UNUSED;
    cot_var y = cot_max_pool2d(x[0], COT_POOL(.window = {2, 2}));
    y = cot_avg_pool2d(y, COT_POOL(.window = {3, 2}, .padding = {1, 1}));
    return cot_mul(cot_sum(y, COT_AXES(0, 2, 3)), cot_sum(x[1], COT_ALL));
}

static void add_images(emitted *e, cot_dtype dtype) {
    const struct { cot_function f; cot_shape x, w; } list[] = {
        {images_in_shares, COT_SHAPE(19, 1, 4, 5), COT_SHAPE(1, 1, 3, 3)},
        {wide_images, COT_SHAPE(2, 3, 5, 33), COT_SHAPE(5, 3, 4, 7)},
        {spread_images, COT_SHAPE(3, 4, 11, 9), COT_SHAPE(6, 2, 3, 2)},
        {pooled_images, COT_SHAPE(2, 3, 6, 8), COT_SHAPE(1)},
    };
    for (int k = 0; k < TEST_COUNT(list); k++) {
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[2] = {random_array(t, dtype, list[k].x), random_array(t, dtype, list[k].w)};
        test_function f = {.name = "images", .f = list[k].f};
        TEST_CHECK(add_function(e, t, "images", with_gradient, &f, 2, xs, 4), "images are refused: %s",
                   cot_tape_message(t));
        cot_tape_destroy(t);
    }
}

/* ---- what is promised ------------------------------------------------------------------------ */

static emitted all, few;

/* What is written does not depend on how the library was built: where that takes long, few are
 * compiled. */
static void exported_programs_have_the_librarys_bits(void **state) {
    (void)state;
    if (test_small()) {
        emitted_compare(&few, "gcc -O0", "");
        test_verdict();
        return;
    }
    emitted_compare(&all, "gcc -O0", "");
    emitted_compare(&few, "gcc -O1", "");
    if (emit_has("clang")) emitted_compare(&all, "clang -O0", "");
    test_verdict();
}

/* Without an instruction for fused multiply-adds, and without one for doubles at all. */
static void a_bare_32_bit_arm_has_the_librarys_bits(void **state) {
    (void)state;
    if (test_small() || !emit_has("arm-none-eabi-gcc") || !emit_has("qemu-arm")) skip();
    emitted_compare(&few, "arm-none-eabi-gcc -O1 -marm -mcpu=arm926ej-s --specs=rdimon.specs", "qemu-arm");
    emitted_compare(&few,
                    "arm-none-eabi-gcc -O1 -mthumb -mcpu=cortex-a7 -mfpu=vfpv4 -mfloat-abi=hard --specs=rdimon.specs",
                    "qemu-arm");
    test_verdict();
}

/* A microcontroller cannot be run here; its code compiles. */
static void it_compiles_for_a_microcontroller(void **state) {
    (void)state;
    char line[512];
    if (test_small() || !emit_has("arm-none-eabi-gcc")) skip();
    snprintf(line, sizeof line,
             "cd %s && arm-none-eabi-gcc -O1 -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard " EMIT_STRICT
             " -c f*.c && rm *.o",
             few.folder);
    assert_int_equal(system(line), 0);
}

static bool page_lists(const char *page, const char *name) {
    char quoted[80];
    snprintf(quoted, sizeof quoted, "`%s`", name);
    return strstr(page, quoted) != NULL;
}

/* The part of the page from one text to another. */
static const char *section(char *page, size_t size, const char *from, const char *to) {
    FILE *f = fopen(COT_SOURCE_FOLDER "/docs/export.md", "r");
    assert_non_null(f);
    size_t n = fread(page, 1, size - 1, f);
    fclose(f);
    page[n] = 0;
    char *part = strstr(page, from), *end = part ? strstr(part, to) : NULL;
    assert_true(part && end);
    *end = 0;
    return part;
}

static void the_page_lists_what_can_be_exported_and_all_of_it_was_tried(void **state) {
    (void)state;
    static char page[1 << 16];
    const char *table = section(page, sizeof page, "## What can be exported", "\n\nAnother operation");
    for (int op = OP_structural; op < OP_count; op++) {
        const char *name = cot__op_of(op)->name;
        bool        source = cot__op_of(op)->kind == KIND_SOURCE;
        TEST_CHECK(source || page_lists(table, name) == cot__exportable(op), "docs/export.md is wrong about %s", name);
        TEST_CHECK(source || !cot__exportable(op) || ran[op], "no exported program has %s", name);
    }
    for (int op = 0; op < OP_elementwise_count; op++)
        TEST_CHECK(ran[op], "no exported program has %s", cot__op_of(op)->name);
    test_verdict();
}

BODY(values_of) {
    (void)n, (void)m, (void)user;
    cot_var s;
    cot_svd(xs[1], NULL, &s, NULL);
    ys[0] = cot_mul(xs[1], s);
    return 0;
}
BODY(values) { (void)n, (void)m, (void)user; cot_svd(xs[0], NULL, &ys[0], NULL); return 0; }
BODY(large) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_cholesky(cot_broadcast_to(cot_sum(xs[0], COT_ALL), COT_SHAPE(33, 33)));
    return 0;
}
/* svd in a loop's body */
BODY(within) { (void)n, (void)m, (void)user; cot_fori(values_of, NULL, 0, 2, 1, xs, ys, NULL); return 0; }

static void refuses(cot_fn fn, const char *text) {
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_zeros(t, COT_F64, COT_SHAPE(2, 2));
    cot__program *p = lower(t, "refused", fn, NULL, 1, &x, 1);
    emit_refusal  why;
    assert_non_null(p);
    assert_false(emit_files(&few, p, false, "refused", &why));
    assert_string_equal(why.text, text);
    cot__program_release(p);
    cot_tape_destroy(t);
}

static void what_cannot_be_exported_is_named(void **state) {
    (void)state;
    refuses(values, "[compile] svd cannot be exported yet; docs/export.md lists the operations that can");
    refuses(large, "[compile] cholesky of more than 32 columns cannot be exported yet");
    refuses(within, "[compile] svd cannot be exported yet; docs/export.md lists the operations that can");
}

/* ---- notes ----------------------------------------------------------------------------------- */

BODY(solves) { (void)n, (void)m, (void)user; ys[0] = cot_solve(xs[0], xs[0]); return 0; }
BODY(solves_step) { (void)n, (void)m, (void)user; ys[0] = cot_solve(xs[1], xs[1]); return 0; }
BODY(solves_within) { (void)n, (void)m, (void)user; return cot_fori(solves_step, NULL, 0, 2, 1, xs, ys, NULL); }
BODY(solves_and_factors) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_add(cot_cholesky(xs[0]), cot_inv(xs[0]));
    return 0;
}
BODY(adds) { (void)n, (void)m, (void)user; ys[0] = cot_add(xs[0], 1); return 0; }

static void says(cot_fn fn, const char *text) {
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_zeros(t, COT_F64, COT_SHAPE(2, 2));
    cot__program *p = lower(t, "noted", fn, NULL, 1, &x, 1);
    cot__caller   caller = cot__tape_caller(t, "compile");
    char          room[4000];
    cot__text     header = cot__text_buffer(room, sizeof room);
    assert_non_null(p);
    assert_true(cot__program_emit_c(p, &(cot__emit_options){.name = "f"}, NULL, &header, NULL, &caller));
    TEST_CHECK(text ? strstr(room, text) != NULL : !strstr(room, "makes a note"), "%s", room);
    cot__program_release(p);
    cot_tape_destroy(t);
}

static void the_function_says_of_which_operations_it_makes_no_notes(void **state) {
    (void)state;
    says(solves, " * The library makes a note of what it finds in the data of solve, inv; this function makes none.\n");
    says(solves_within, "in the data of solve, inv; this");
    says(solves_and_factors, "in the data of solve, inv, cholesky; this");
    says(adds, NULL);
    test_verdict();
}

static void the_page_says_what_is_not_told(void **state) {
    (void)state;
    static char page[1 << 16];
    const char *table = section(page, sizeof page, "## What is not told", "\n\n## ");
    for (int op = OP_structural; op < OP_count; op++) {
        const cot__op *o = cot__op_of(op);
        const char    *names = o->functions ? o->functions : o->name;
        char           first[40];
        snprintf(first, sizeof first, "%.*s", (int)strcspn(names, " "), names);
        TEST_CHECK(!o->tell || !cot__exportable(op) || page_lists(table, first),
                   "docs/export.md does not say what is not told of %s", first);
    }
    test_verdict();
}

static void names_are_what_c_takes(void **state) {
    (void)state;
    static const char *const names[][2] = {{"x", "x"}, {"double", "double_x"}, {"x'", "x_x"}, {"1st", "x1st"},
                                           {"a b", "a_b"}, {"t_12", "t_12_x"}, {"cot_fma", "cot_fma_x"}, {"", "x"},
                                           {"DBL_MAX", "DBL_MAX_x"}, {"M_PI", "M_PI_x"}, {"EOF", "EOF_x"},
                                           {"time", "time"}, {"SCNd8", "SCNd8_x"}, {"A", "A"}, {"AB", "AB"}};
    char name[64];
    for (int k = 0; k < TEST_COUNT(names); k++) {
        cot__emit_name(names[k][0], name, sizeof name);
        assert_string_equal(name, names[k][1]);
    }
    for (int k = 0; k < TEST_COUNT(names); k++) {
        cot__emit_name(names[k][1], name, sizeof name);
        assert_string_equal(name, names[k][1]);
    }
    assert_true(cot__emit_function_name("exp_vf64", name, sizeof name));
    assert_string_equal(name, "exp_vf64_x");
    assert_true(cot__emit_function_name("printf", name, sizeof name));
    assert_string_equal(name, "printf_x");
    assert_true(cot__emit_function_name("f", name, sizeof name));
    assert_string_equal(name, "f");
}

/* Positions that are not there: the function returns the number of the check. */
BODY(chooses) { (void)n, (void)m, (void)user; ys[0] = cot_take(xs[0], xs[1], 0); return 0; }

static void a_position_that_is_not_there_is_refused(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       xs[2] = {cot_zeros(t, COT_F64, COT_SHAPE(3)), cot_data(t, COT_I64, COT_SHAPE(1), (int64_t[]){0})};
    cot__program *p = lower(t, "chooses", chooses, NULL, 2, xs, 1);
    emit_refusal  why;
    char          line[512];
    assert_true(emit_files(&few, p, false, "chooses", &why));
    FILE *f = emit_open(&few, "try.c", "w");
    fputs("#include \"chooses.h\"\nint main(void) {\n    double x[3] = {0}, y;\n"
          "    int64_t last = -3, over = 3;\n"
          "    return chooses(x, &last, &y, 0) == 0 && chooses(x, &over, &y, 0) == 1 ? 0 : 1;\n}\n", f);
    fclose(f);
    snprintf(line, sizeof line, "cd %s && gcc " EMIT_STRICT " chooses.c try.c -o try && ./try", few.folder);
    assert_int_equal(system(line), 0);
    cot__program_release(p);
    cot_tape_destroy(t);
}

/* A label that is none, before it counts from the end. */
BODY(labelled) { (void)n, (void)m, (void)user; ys[0] = cot_nll(xs[0], xs[1]); return 0; }

static void a_label_that_is_none_is_refused(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       xs[2] = {cot_zeros(t, COT_F64, COT_SHAPE(1, 3)), cot_data(t, COT_I64, COT_SHAPE(1), (int64_t[]){0})};
    cot__program *p = lower(t, "labelled", labelled, NULL, 2, xs, 1);
    emit_refusal  why;
    char          line[512];
    assert_true(emit_files(&few, p, false, "labelled", &why));
    FILE *f = emit_open(&few, "try.c", "w");
    fputs("#include \"labelled.h\"\n#include <stddef.h>\nint main(void) {\n    double x[3] = {0}, y;\n"
          "    int64_t last = 2, over = 3, below = -1;\n"
          "    static double room[64];\n"
          "    return labelled(x, &last, &y, room) == 0 && labelled(x, &over, &y, room) == 1 &&\n"
          "                   labelled(x, &below, &y, room) == 1 ? 0 : 1;\n}\n", f);
    fclose(f);
    snprintf(line, sizeof line, "cd %s && gcc " EMIT_STRICT " labelled.c try.c -o try && ./try", few.folder);
    assert_int_equal(system(line), 0);
    cot__program_release(p);
    cot_tape_destroy(t);
}

BODY(endless) { (void)n, (void)m, (void)user; ys[0] = cot_less(xs[0], 100.0); return 0; }
BODY(doubled) { (void)n, (void)m, (void)user; ys[0] = cot_add(xs[0], xs[0]); return 0; }
BODY(goes_on) {
    (void)n, (void)m, (void)user;
    cot_while(endless, doubled, NULL, 1, xs, ys, &(cot_loop_options){.limit = 3});
    return 0;
}

static void a_loop_that_goes_on_too_long_is_refused(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_scalar(t, 50);
    cot__program *p = lower(t, "goes_on", goes_on, NULL, 1, &x, 1);
    emit_refusal  why;
    char          line[512];
    assert_non_null(p);
    assert_true(emit_files(&few, p, false, "goes_on", &why));
    FILE *f = emit_open(&few, "go.c", "w");
    fputs("#include \"goes_on.h\"\nint main(void) {\n    double y = 0, space[GOES_ON_WORKSPACE / 8 + 1];\n"
          "    return goes_on(13, &y, space) == 0 && y == 104 && goes_on(12, &y, space) == 1 ? 0 : 1;\n}\n", f);
    fclose(f);
    snprintf(line, sizeof line, "cd %s && gcc " EMIT_STRICT " goes_on.c go.c -o go && ./go", few.folder);
    assert_int_equal(system(line), 0);
    cot__program_release(p);
    cot_tape_destroy(t);
}

static int with_loop(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    with_gradient(n, xs, m - 1, ys, user);
    return cot_fori(nested, NULL, 0, 3, 1, xs, &ys[m - 1], NULL) == COT_OK ? 0 : 1;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_zeros(t, COT_F64, COT_SHAPE(4, 2));
    test_function f = {.name = "long", .f = long_sums};
    cot__program *p = lower(t, "fails", with_loop, &f, 1, &x, 4);
    for (long k = 1;; k++) {
        counting      c = {.fail_at = k};
        cot_allocator al = {counting_alloc, &c};
        emit_refusal  why = {""};
        cot__caller   caller = {"compile", &why, emit_hear, NULL, NULL};
        char          text[64];
        cot__text     to = cot__text_buffer(text, sizeof text);
        bool          ok = cot__program_emit_c(p, &(cot__emit_options){.name = "f"}, &al, NULL, &to, &caller);
        assert_int_equal(c.live, 0);
        assert_false(c.wrong_size);
        assert_int_equal(ok, c.failed == 0);
        if (ok) break;
        assert_non_null(strstr(why.text, "out of memory"));
    }
    cot__program_release(p);
    cot_tape_destroy(t);
}

int main(void) {
    emitted_begin(&all);
    add_elementwise(&all, COT_F64, 64);
    add_elementwise(&all, COT_F32, 64);
    add_elementwise(&all, COT_F64, 1);
    add_samples(&all, COT_F64, 1);
    add_long(&all, COT_F64, long_sums);
    add_long(&all, COT_F32, long_sums);
    add_long(&all, COT_F64, long_products);
    add_long(&all, COT_F64, long_rows);
    add_long(&all, COT_F32, long_rows);
    add_long(&all, COT_F64, long_statistics);
    add_long(&all, COT_F32, long_statistics);
    add_images(&all, COT_F64);
    add_images(&all, COT_F32);
    add_moving(&all, COT_F64, 1);
    add_moving(&all, COT_F32, 1);
    add_second(&all);
    add_samples(&all, COT_F16, 11);
    add_samples(&all, COT_BF16, 13);
    emitted_end(&all);
    emitted_begin(&few);
    add_elementwise(&few, COT_F64, 64);
    add_elementwise(&few, COT_F32, 64);
    add_long(&few, COT_F32, long_sums);
    add_moving(&few, COT_F32, 3);
    add_samples(&few, COT_BF16, 40);
    emitted_end(&few);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exported_programs_have_the_librarys_bits),
        cmocka_unit_test(a_bare_32_bit_arm_has_the_librarys_bits),
        cmocka_unit_test(it_compiles_for_a_microcontroller),
        cmocka_unit_test(the_page_lists_what_can_be_exported_and_all_of_it_was_tried),
        cmocka_unit_test(what_cannot_be_exported_is_named),
        cmocka_unit_test(the_function_says_of_which_operations_it_makes_no_notes),
        cmocka_unit_test(the_page_says_what_is_not_told),
        cmocka_unit_test(names_are_what_c_takes),
        cmocka_unit_test(a_position_that_is_not_there_is_refused),
        cmocka_unit_test(a_label_that_is_none_is_refused),
        cmocka_unit_test(a_loop_that_goes_on_too_long_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    emitted_close(&all);
    emitted_close(&few);
    return failed;
}
