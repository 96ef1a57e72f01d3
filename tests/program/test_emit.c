/* Exported C: every sample function with its gradient and every elementwise operation, compiled
 * with strict warnings by gcc and clang, gives the library's bits; also on a bare 32-bit ARM. */
/* ctest: timeout=600 plain-only */
#define _GNU_SOURCE /* mkdtemp, open_memstream */
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "samples/samples.h"
#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#include "support/emit_test.h"
#include "support/tape_test.h"

enum { MOST = 3 * OP_elementwise_count, ROOM = 1 << 15 };

/* ---- programs and what they give here -------------------------------------------------------- */

static cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

static int with_gradient(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    ys[1] = loss(ys[0]);
    cot_grad_of(ys[1], n, xs, ys + 2);
    return 0;
}

static uint8_t ran[OP_count];

/* The program of a function at these values, and its results here. */
static bool add_function(emitted *e, cot_tape *t, const char *name, cot_fn fn, void *user, int n, const cot_var *xs,
                         int m) {
    static char  in_room[8][ROOM], out_room[MOST][ROOM];
    void        *in[8], *out[MOST];
    emit_refusal why;
    cot__program *p = lower(t, name, fn, user, n, xs, m);
    cot__run     *run = p ? prepare(t, name, p) : NULL;
    bool          ok = run != NULL && p->inputs == (uint32_t)n;
    for (int k = 0; ok && k < n; k++) {
        cot__view v = cot__view_read(t, cot__index(xs[k]));
        in[k] = in_room[k];
        cot__read_view(t, "test", &v, v.dtype, in[k], cot__view_size(&v));
    }
    for (int k = 0; k < m; k++) out[k] = out_room[k];
    ok = ok && cot__run_go(run, (const void *const *)in, out);
    ok = ok && emitted_add(e, p, false, in, out, &why);
    for (uint32_t k = 0; ok && k < p->operations; k++) ran[p->operation[k].op] = 1;
    cot__run_destroy(run);
    cot__program_release(p);
    return ok;
}

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        double   *data = (double *)(uintptr_t)f->in[k].data;
        char      raw[TEST_MAX_SIZE * sizeof(double)];
        cot_var   cast = cot_cast(cot_data(t, COT_F64, f->in[k].shape, data), dtype);
        cot__view v = cot__view_read(t, cot__index(cast));
        cot__read_view(t, "test", &v, dtype, raw, cot__view_size(&v));
        xs[k] = cot_tensor(t, dtype, f->in[k].shape, raw);
    }
}

static void add_samples(emitted *e, cot_dtype dtype, int step) {
    for (int k = 0; k < TEST_COUNT(samples); k += step) {
        cot_tape     *t = cot_tape_create(NULL);
        test_function f = function_of(&samples[k], k, 0);
        cot_var       xs[TEST_MAX_INPUTS];
        leaves_of(t, &f, dtype, xs);
        add_function(e, t, f.name, with_gradient, &f, f.n, xs, 2 + f.n);
        cot_tape_destroy(t);
    }
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

static void add_moving(emitted *e) {
    const struct { const char *name; cot_function f; } moving[] = {{"one_hot", m_one_hot}, {"integers", m_integers}};
    for (int k = 0; k < TEST_COUNT(moving); k++) {
        cot_tape     *t = cot_tape_create(NULL);
        test_function f = {.name = moving[k].name, .f = moving[k].f, .n = 1, .in[0].shape = {2, {2, 2}}};
        test_random   random = test_random_of(f.name, 0);
        cot_var       x;
        test_fill(&f, &random, -2, 2);
        leaves_of(t, &f, COT_F64, &x);
        TEST_CHECK(add_function(e, t, f.name, with_gradient, &f, 1, &x, 3), "%s is refused: %s", f.name,
                   cot_tape_message(t));
        cot_tape_destroy(t);
    }
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
        for (int k = 0; k < 3; k++) xs[k] = cot_detach(cot_cast(cot_data(t, COT_F64, shape, x[k]), dtype));
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

static void add_long(emitted *e, cot_dtype dtype, cot_function f) {
    cot_tape *t = cot_tape_create(NULL);
    enum { ROWS_ = 1700 };
    static double x[ROWS_ * 2];
    test_random   random = test_random_of("long", 1);
    for (int k = 0; k < ROWS_ * 2; k++) x[k] = test_uniform(&random, -2, 2);
    cot_var       v = cot_detach(cot_cast(cot_data(t, COT_F64, COT_SHAPE(ROWS_, 2), x), dtype));
    test_function whole = {.name = "long", .f = f};
    TEST_CHECK(add_function(e, t, "long", with_gradient, &whole, 1, &v, 3), "a long array is refused: %s",
               cot_tape_message(t));
    cot_tape_destroy(t);
}

/* ---- what is promised ------------------------------------------------------------------------ */

static emitted all, few;

static void exported_programs_have_the_librarys_bits(void **state) {
    (void)state;
    emitted_compare(&all, "gcc -O1", "");
    if (emit_has("clang")) emitted_compare(&all, "clang -O0", "");
    test_verdict();
}

/* Without an instruction for fused multiply-adds, and without one for doubles at all. */
static void a_bare_32_bit_arm_has_the_librarys_bits(void **state) {
    (void)state;
    if (!emit_has("arm-none-eabi-gcc") || !emit_has("qemu-arm")) skip();
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
    if (!emit_has("arm-none-eabi-gcc")) skip();
    snprintf(line, sizeof line,
             "cd %s && arm-none-eabi-gcc -O2 -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard " EMIT_STRICT
             " -c f*.c && rm *.o",
             few.folder);
    assert_int_equal(system(line), 0);
}

static bool page_lists(const char *page, const char *name) {
    char quoted[80];
    snprintf(quoted, sizeof quoted, "`%s`", name);
    return strstr(page, quoted) != NULL;
}

static char *read_page(void) {
    static char page[1 << 16];
    FILE       *f = fopen(COT_SOURCE_FOLDER "/docs/export.md", "r");
    assert_non_null(f);
    size_t n = fread(page, 1, sizeof page - 1, f);
    fclose(f);
    page[n] = 0;
    char *table = strstr(page, "## What can be exported"), *end = table ? strstr(table, "\n\nAnother operation") : NULL;
    assert_true(table && end);
    *end = 0;
    return table;
}

static void the_page_lists_what_can_be_exported_and_all_of_it_was_tried(void **state) {
    (void)state;
    const char *table = read_page();
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

BODY(factors) { (void)n, (void)m, (void)user; ys[0] = cot_cholesky(xs[0]); return 0; }
BODY(halves) { (void)n, (void)m, (void)user; ys[0] = cot_cast(cot_cast(xs[0], COT_F16), COT_F64); return 0; }

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
    refuses(factors, "[compile] cholesky cannot be exported yet; docs/export.md lists the operations that can");
    refuses(halves, "[compile] f16 cannot be exported yet; C99 has no such type");
}

static void names_are_what_c_takes(void **state) {
    (void)state;
    static const char *const names[][2] = {{"x", "x"}, {"double", "double_x"}, {"x'", "x_x"}, {"1st", "x1st"},
                                           {"a b", "a_b"}, {"t_12", "t_12_x"}, {"cot_fma", "cot_fma_x"}, {"", "x"},
                                           {"DBL_MAX", "DBL_MAX_x"}, {"M_PI", "M_PI_x"}, {"A", "A"}, {"AB", "AB"}};
    char name[64];
    for (int k = 0; k < TEST_COUNT(names); k++) {
        cot__emit_name(names[k][0], name, sizeof name);
        assert_string_equal(name, names[k][1]);
    }
    cot__emit_function_name("exp_vf64", name, sizeof name);
    assert_string_equal(name, "exp_vf64_x");
    cot__emit_function_name("printf", name, sizeof name);
    assert_string_equal(name, "printf_x");
    cot__emit_function_name("f", name, sizeof name);
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

static void every_allocation_may_fail(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_zeros(t, COT_F64, COT_SHAPE(4, 2));
    test_function f = {.name = "long", .f = long_sums};
    cot__program *p = lower(t, "fails", with_gradient, &f, 1, &x, 3);
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
    add_long(&all, COT_F64, long_statistics);
    add_long(&all, COT_F32, long_statistics);
    add_moving(&all);
    emitted_end(&all);
    emitted_begin(&few);
    add_elementwise(&few, COT_F64, 64);
    add_elementwise(&few, COT_F32, 64);
    add_long(&few, COT_F32, long_sums);
    emitted_end(&few);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exported_programs_have_the_librarys_bits),
        cmocka_unit_test(a_bare_32_bit_arm_has_the_librarys_bits),
        cmocka_unit_test(it_compiles_for_a_microcontroller),
        cmocka_unit_test(the_page_lists_what_can_be_exported_and_all_of_it_was_tried),
        cmocka_unit_test(what_cannot_be_exported_is_named),
        cmocka_unit_test(names_are_what_c_takes),
        cmocka_unit_test(a_position_that_is_not_there_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    emitted_close(&all);
    emitted_close(&few);
    return failed;
}
