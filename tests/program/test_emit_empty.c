/* Exported C of arrays without elements: every sample function and its gradient with extents of 0,
 * where the library takes them, gives the bits of the executor, and touches no memory but its
 * own. */
/* ctest: timeout=600 plain-only */
#define _GNU_SOURCE /* mkdtemp, open_memstream */
#include "program/emit_gradients.h"
#include "support/tape_test.h"

static emitted all;
static group   some;
static int     exported;

/* ---- samples with extents of 0 --------------------------------------------------------------- */

static void add_one(const test_function *f, cot_dtype dtype) {
    if (!can_be_exported(f, dtype)) return;
    if (some.count == TEST_COUNT(some.f) || some.inputs + f->n > MOST_INPUTS) add_group(&all, &some, dtype);
    some.f[some.count++] = *f;
    some.inputs += f->n;
    exported++;
}

/* With each of its extents 0, wherever it stands. */
static void add_emptied(const test_function *f, cot_dtype dtype) {
    enum { LARGEST = 16 };
    for (int64_t extent = 1; extent <= LARGEST; extent++) {
        test_function g = *f;
        bool          any = false;
        for (int k = 0; k < f->n; k++)
            for (int i = 0; i < f->in[k].shape.ndim; i++)
                if (f->in[k].shape.dim[i] == extent) g.in[k].shape.dim[i] = 0, any = true;
        if (any) add_one(&g, dtype);
    }
}

static void add_samples(cot_dtype dtype) {
    for (int k = 0; k < TEST_COUNT(samples); k += test_small() ? 7 : 1) {
        test_function f = function_of(&samples[k], k, 0);
        /* these end when a sum is large enough */
        bool ends = f.f != s_while && f.f != s_slopes_of_while;
        if (ends) add_emptied(&f, dtype);
    }
}

/* ---- what no sample is at an extent of 0 ----------------------------------------------------- */

SAMPLE(e_softmax) { UNUSED; return cot_softmax(x[0], -1); }
SAMPLE(e_log_softmax) { UNUSED; return cot_log_softmax(x[0], 0); }
SAMPLE(e_orders) {
    UNUSED;
    cot_var i = cot_argsort(x[0], -1, false), y = cot_sort(x[0], -1, true);
    return cot_add(cot_cast(i, cot_dtype_of(x[0])), y);
}
SAMPLE(e_sums) { UNUSED; return cot_add(cot_sum(x[0], COT_AXES(0)), cot_logsumexp(x[0], COT_ALL)); }
SAMPLE(e_running) { UNUSED; return cot_add(cot_cumsum(x[0], -1, false), cot_cumprod(x[0], -1, true)); }
SAMPLE(e_extremes) { UNUSED; return cot_add(cot_cummax(x[0], -1, false), cot_cummin(x[0], 0, true)); }
SAMPLE(e_loss) { UNUSED; return cot_softmax_cross_entropy(x[0], cot_detach(x[0])); }
SAMPLE(e_plain_loss) { UNUSED; return cot_cross_entropy(x[0], cot_detach(x[0])); }
SAMPLE(e_mse) { UNUSED; return cot_mse(x[0], cot_mul(x[0], 2.0)); }
SAMPLE(e_square) { UNUSED; return cot_matmul(cot_transpose(x[0]), x[0]); }
SAMPLE(e_values) { UNUSED; return cot_detach(x[0]); }
SAMPLE(e_truths) {
    UNUSED;
    cot_var t = cot_add(cot_cast(cot_any(cot_greater(x[0], 0.0), COT_AXES(-1)), COT_I64),
                        cot_all(cot_greater(x[0], 0.0), COT_AXES(-1)));
    return cot_add(cot_cast(t, cot_dtype_of(x[0])), cot_sum(x[0], COT_AXES(-1)));
}

static void add_own(cot_dtype dtype) {
    static const struct { const char *name; cot_function f; } own[] = {
        {"softmax", e_softmax}, {"log_softmax", e_log_softmax}, {"orders", e_orders}, {"sums", e_sums},
        {"running", e_running}, {"extremes", e_extremes}, {"loss", e_loss}, {"plain loss", e_plain_loss},
        {"mse", e_mse}, {"square", e_square}, {"values", e_values}, {"truths", e_truths}};
    const cot_shape shapes[] = {COT_SHAPE(0), COT_SHAPE(3, 0), COT_SHAPE(0, 3), COT_SHAPE(0, 0)};
    for (int k = 0; k < TEST_COUNT(own); k++)
        for (int i = 0; i < TEST_COUNT(shapes); i++)
            add_one(&(test_function){.name = own[k].name, .f = own[k].f, .n = 1, .in[0].shape = shapes[i]}, dtype);
}

/* ---- what is promised ------------------------------------------------------------------------ */

static void arrays_without_elements_give_the_executors_bits(void **state) {
    (void)state;
    emitted_compare(&all, "gcc -O0 -fsanitize=address,undefined -fno-sanitize-recover=all", "");
    print_message("%d functions\n", exported);
    assert_true(test_small() || exported > TEST_COUNT(samples));
    test_verdict();
}

/* A position that is not there is refused also where there is nothing to take from it. */
static int takes(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_take(xs[0], xs[1], 0);
    return 0;
}
static int scatters(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_scatter_add(xs[0], xs[1], cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(2, 0)), 0);
    return 0;
}

static void refuses_position_4(cot_fn fn, const char *name) {
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       at = cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){0, 0});
    cot_var       xs[2] = {cot_zeros(t, COT_F64, COT_SHAPE(4, 0)), at};
    cot__program *p = lower(t, name, fn, NULL, 2, xs, 1);
    emit_refusal  why;
    char          line[512];
    assert_non_null(p);
    assert_true(emit_files(&all, p, false, name, &why));
    FILE *f = emit_open(&all, "try.c", "w");
    fprintf(f, "#include \"%s.h\"\nint main(void) {\n    double x[1] = {0}, y[1];\n"
               "    int64_t last[2] = {-4, 3}, over[2] = {0, 4};\n"
               "    return %s(x, last, y, 0) == 0 && %s(x, over, y, 0) == 1 ? 0 : 1;\n}\n", name, name, name);
    fclose(f);
    snprintf(line, sizeof line, "cd %s && gcc " EMIT_STRICT " %s.c try.c -o try && ./try", all.folder, name);
    assert_int_equal(system(line), 0);
    cot__program_release(p);
    cot_tape_destroy(t);
}

static void positions_of_rows_without_elements_are_checked(void **state) {
    (void)state;
    refuses_position_4(takes, "takes");
    refuses_position_4(scatters, "scatters");
}

int main(void) {
    runs = true;
    emitted_begin(&all);
    add_samples(COT_F64);
    add_own(COT_F64);
    add_group(&all, &some, COT_F64);
    add_own(COT_F32);
    add_group(&all, &some, COT_F32);
    emitted_end(&all);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_without_elements_give_the_executors_bits),
        cmocka_unit_test(positions_of_rows_without_elements_are_checked),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    emitted_close(&all);
    return failed;
}
