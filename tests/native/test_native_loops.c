/* Loops, conditions and checkpoints whose bodies are work on numbers become native code, with the
 * executor's bits. The programs here are nothing but such an operation, so that native code runs
 * only if it became some; those whose bodies are anything else stay with the library. */
#include "native_test.h"

enum { STEPS = 9, OUTPUTS = 5 };

typedef struct given { double a, b; float c; int64_t i; double row[2 * STEPS]; float single[STEPS]; } given;
typedef struct taken { double out[OUTPUTS][2 * STEPS]; } taken;

static const cot_type types[] = {{COT_F64, {0, {0}}}, {COT_F64, {0, {0}}},           {COT_F32, {0, {0}}},
                                 {COT_I64, {0, {0}}}, {COT_F64, {2, {STEPS, 2}}},    {COT_F32, {1, {STEPS}}}};

static given example(double a) {
    given g = {.a = a, .b = -0.75, .c = 0.3f, .i = 5};
    for (int k = 0; k < 2 * STEPS; k++) g.row[k] = sin(1.0 + k);
    for (int k = 0; k < STEPS; k++) g.single[k] = (float)cos(0.3 * k);
    return g;
}

/* Two runs of f, of which the first is compared with the executor's. */
static taken outcome(cot_fn f, void *user, int m, bool native, const char *words) {
    cot_program *p = cot_compile(f, user, 6, types, m, &(cot_compile_options){.native = native});
    cot_run     *r = cot_run_create(p);
    taken        z;
    void        *to[OUTPUTS];
    memset(&z, 0, sizeof z);
    for (int k = 0; k < OUTPUTS; k++) to[k] = z.out[k];
    assert_string_equal(cot_program_message(p), "");
    if (native) cot_program_native(p, true);
    for (int k = 0; k < 2; k++) {
        given g = example(0.4 + 0.1 * k);
        assert_int_equal(cot_program_run(r, (const void *[]){&g.a, &g.b, &g.c, &g.i, g.row, g.single}, to), COT_OK);
    }
    if (!strstr(cot_program_native_message(p), words)) fail_msg("%s", cot_program_native_message(p));
    cot_run_destroy(r);
    cot_program_destroy(p);
    return z;
}

static void compare(cot_fn f, void *user, int m, const char *words) {
    taken want = outcome(f, user, m, false, ""), got = outcome(f, user, m, true, words);
    assert_memory_equal(&want, &got, sizeof want);
}

static const char runs[] = "native code runs", nothing[] = "nothing in the program";

/* ---- scans ----------------------------------------------------------------------------------- */

/* Carried values change places, and one has no adjoint; a strided row, a value of another dtype,
 * and what is captured. */
BODY(mixed_step) {
    const cot_var *outer = user;
    (void)n, (void)m;
    ys[0] = cot_add(cot_mul(xs[1], outer[1]), xs[3]);
    ys[1] = xs[0];
    ys[2] = cot_add(xs[2], 2);
    ys[3] = cot_sin(cot_add(ys[0], outer[0]));
    ys[4] = cot_less(xs[4], ys[3]);
    return 0;
}

static int scan_of(int n, const cot_var *xs, int m, cot_var *ys, void *user, int64_t length) {
    (void)n, (void)m;
    cot_var first[3] = {xs[0], xs[1], xs[3]}, each[2] = {cot_index(xs[4], 1, 1), xs[5]};
    if (length == 0) each[0] = cot_slice(each[0], 0, 0, 0, 1), each[1] = cot_slice(each[1], 0, 0, 0, 1);
    return cot_scan(mixed_step, (void *)(uintptr_t)xs, -1, 3, first, 2, each, ys, 2, ys + 3, user);
}
BODY(mixed_scan) { return scan_of(n, xs, m, ys, user, STEPS); }
BODY(empty_scan) { return scan_of(n, xs, m, ys, user, 0); }

static void a_scan_has_the_executors_bits(void **state) {
    (void)state;
    compare(mixed_scan, NULL, 5, runs);
}
static void a_scan_from_the_end_has_the_executors_bits(void **state) {
    (void)state;
    compare(mixed_scan, &(cot_loop_options){.reverse = true}, 5, runs);
}
static void a_scan_of_no_steps_gives_what_it_began_with(void **state) {
    (void)state;
    compare(empty_scan, NULL, 5, runs);
}

BODY(counted_step) {
    const cot_var *outer = user;
    (void)n, (void)m;
    ys[0] = cot_add(cot_mul(xs[1], outer[1]), cot_cast(xs[0], COT_F64));
    return 0;
}
BODY(counted) {
    UNUSED;
    return cot_fori(counted_step, (void *)(uintptr_t)xs, -3, 8, 1, xs, ys, user);
}

static void a_step_may_know_its_number(void **state) {
    (void)state;
    compare(counted, NULL, 1, runs);
    compare(counted, &(cot_loop_options){.reverse = true}, 1, runs);
}

/* ---- gradients ------------------------------------------------------------------------------- */

BODY(smooth_step) {
    const cot_var *outer = user;
    (void)n, (void)m;
    ys[0] = cot_add(cot_mul(xs[1], outer[1]), cot_mul(xs[2], xs[0]));
    ys[1] = cot_mul(cot_tanh(xs[0]), outer[0]);
    ys[2] = cot_mul(ys[0], ys[1]);
    return 0;
}
BODY(gradient) {
    UNUSED;
    cot_var first[2] = {xs[0], xs[1]}, each = cot_index(xs[4], 1, 0), last[2], all;
    cot_scan(smooth_step, (void *)(uintptr_t)xs, -1, 2, first, 1, &each, last, 1, &all, NULL);
    ys[0] = cot_add(cot_mul(last[0], last[1]), cot_sum(all, COT_ALL));
    cot_var by[3] = {xs[0], xs[1], xs[4]};
    return cot_grad_of(ys[0], 3, by, ys + 1);
}
BODY(second_order) {
    UNUSED;
    cot_var y[4];
    gradient(n, xs, 4, y, user);
    ys[0] = cot_sum(cot_square(y[3]), COT_ALL);
    cot_var by[2] = {xs[0], xs[1]};
    return cot_grad_of(ys[0], 2, by, ys + 1);
}

static void gradients_of_scans_have_the_executors_bits(void **state) {
    (void)state;
    compare(gradient, NULL, 4, runs);
    compare(second_order, NULL, 3, runs);
}

/* ---- conditions and checkpoints -------------------------------------------------------------- */

BODY(then) {
    const cot_var *outer = user;
    (void)n, (void)m;
    ys[0] = cot_exp(cot_mul(xs[0], outer[1]));
    ys[1] = cot_less(xs[0], outer[0]);
    return 0;
}
BODY(otherwise) {
    UNUSED;
    ys[0] = cot_square(xs[0]);
    ys[1] = cot_isnan(xs[0]);
    return 0;
}
BODY(choosing) {
    UNUSED;
    return cot_cond(xs[3], then, otherwise, (void *)(uintptr_t)xs, 1, xs, 2, ys);
}
BODY(kept) {
    UNUSED;
    return cot_checkpoint(then, (void *)(uintptr_t)xs, 1, xs, 2, ys);
}
BODY(other_way) {
    UNUSED;
    cot_var none[6] = {xs[0], xs[1], xs[2], cot_sub(xs[3], 5), xs[4], xs[5]};
    return choosing(n, none, m, ys, user);
}

static void conditions_and_checkpoints_have_the_executors_bits(void **state) {
    (void)state;
    compare(choosing, NULL, 2, runs);
    compare(other_way, NULL, 2, runs);
    compare(kept, NULL, 2, runs);
}

/* ---- what stays with the library ------------------------------------------------------------- */

BODY(goes_on) {
    UNUSED;
    ys[0] = cot_less(xs[0], 40);
    return 0;
}
BODY(grown) {
    UNUSED;
    ys[0] = cot_add(cot_mul(xs[0], 3), 1);
    return 0;
}
BODY(searching) {
    UNUSED;
    return cot_while(goes_on, grown, NULL, 1, xs, ys, user);
}
BODY(row_step) {
    UNUSED;
    ys[0] = cot_sort(cot_add(xs[0], xs[1]), 0, false);
    return 0;
}
BODY(rows) {
    UNUSED;
    cot_var first = cot_index(xs[4], 0, 0);
    return cot_scan(row_step, NULL, -1, 1, &first, 1, &xs[4], ys, 0, NULL, NULL);
}
BODY(outer_step) {
    UNUSED;
    return cot_fori(counted_step, user, 0, 3, 1, xs, ys, NULL);
}
BODY(nested) {
    UNUSED;
    return cot_scan(outer_step, (void *)(uintptr_t)xs, 4, 1, xs, 0, NULL, ys, 0, NULL, NULL);
}

static void other_loops_stay_with_the_library(void **state) {
    (void)state;
    compare(searching, NULL, 1, nothing);
    compare(rows, NULL, 1, nothing);
    compare(nested, NULL, 1, nothing);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define NATIVE(name) cmocka_unit_test_setup_teardown(name, fresh, clean)
        NATIVE(a_scan_has_the_executors_bits),
        NATIVE(a_scan_from_the_end_has_the_executors_bits),
        NATIVE(a_scan_of_no_steps_gives_what_it_began_with),
        NATIVE(a_step_may_know_its_number),
        NATIVE(gradients_of_scans_have_the_executors_bits),
        NATIVE(conditions_and_checkpoints_have_the_executors_bits),
        NATIVE(other_loops_stay_with_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
