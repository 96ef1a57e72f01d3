/* Native code reads and writes where the executor would: in arrays of the caller's, also where
 * outputs lie over inputs or inputs are donated, in equal steps on other arrays, and in programs
 * with loops and the user's own functions. */
#include "native_test.h"

enum { MANY = 3000, STEPS = 4 };

/* ---- a step of an optimiser ------------------------------------------------------------------ */

/* Parameters, their averages, and the loss; the last input is shorter than memory of its own. */
BODY(step) {
    UNUSED;
    cot_var gradient = cot_mul(cot_sub(xs[0], cot_sin(xs[1])), xs[2]);
    ys[1] = cot_add(cot_mul(xs[1], 0.9), cot_mul(gradient, 0.1));
    ys[0] = cot_sub(xs[0], cot_mul(ys[1], 0.5));
    ys[2] = cot_sum(cot_square(gradient), COT_ALL);
    return 0;
}

static const cot_type step_types[3] = {{COT_F32, {1, {MANY}}}, {COT_F32, {1, {MANY}}}, {COT_F32, {0, {0}}}};

typedef struct training { float w[MANY], m[MANY], loss; } training;

/* How a program is compiled, and where its outputs go. */
typedef struct way { bool native, donated, over; } way;

static void train(way how, training *z) {
    static const int    donate[2] = {0, 1};
    static training     other;
    cot_compile_options o = {.native = how.native, .donate = donate, .donations = how.donated ? 2 : 0};
    cot_program        *p = cot_compile(step, NULL, 3, step_types, 3, &o);
    assert_string_equal(cot_program_message(p), "");
    assert_int_equal(cot_program_native(p, true), how.native ? COT_NATIVE_READY : COT_NATIVE_OFF);
    cot_run *r = cot_run_create(p);
    training *from = z, *to = how.over ? z : &other;
    float     rate = 0.75f;
    for (int i = 0; i < MANY; i++) z->w[i] = (float)sin(0.1 * i), z->m[i] = 0;
    for (int k = 0; k < STEPS; k++) {
        assert_int_equal(cot_program_run(r, (const void *[]){from->w, from->m, &rate},
                                         (void *[]){to->w, to->m, &to->loss}), COT_OK);
        training *last = from;
        from = to;
        to = how.over ? z : last;
    }
    if (from != z) *z = *from;
    if (how.native) assert_non_null(strstr(cot_program_native_message(p), "native code runs"));
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void outputs_may_lie_over_inputs(void **state) {
    static training want, got;
    (void)state;
    train((way){.native = false}, &want);
    for (int donated = 0; donated < 2; donated++)
        for (int over = 0; over < 2; over++) {
            train((way){true, donated, over}, &got);
            if (memcmp(&want, &got, sizeof want)) fail_msg("donated %d, over its inputs %d: other bits", donated, over);
        }
}

/* An output that is not wanted is made in a donated input, and the others where they are wanted. */
static void donated_inputs_take_what_nobody_wants(void **state) {
    static training want, w, z;
    (void)state;
    train((way){.native = false}, &want);
    cot_program *p = cot_compile(step, NULL, 3, step_types, 3,
                                 &(cot_compile_options){.native = true, .donate = (int[]){0, 1}, .donations = 2});
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_READY);
    cot_run *r = cot_run_create(p);
    float    rate = 0.75f;
    for (int i = 0; i < MANY; i++) w.w[i] = (float)sin(0.1 * i), w.m[i] = 0;
    for (int k = 0; k < STEPS; k++) {
        training now = w; /* so that the inputs stay */
        assert_int_equal(cot_program_run(r, (const void *[]){now.w, now.m, &rate},
                                         (void *[]){NULL, z.m, &z.loss}), COT_OK);
        now = w;
        assert_int_equal(cot_program_run(r, (const void *[]){now.w, now.m, &rate},
                                         (void *[]){z.w, NULL, NULL}), COT_OK);
        w = z;
    }
    assert_memory_equal(&want, &z, sizeof z);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* ---- any program ----------------------------------------------------------------------------- */

static results run_program_of(cot_fn f, void *user, bool native, const char *words) {
    cot_program *p = cot_compile(f, user, 2, curve_types, 3, &(cot_compile_options){.native = native});
    cot_run     *r = cot_run_create(p);
    results      z;
    assert_string_equal(cot_program_message(p), "");
    cot_program_native(p, true);
    for (int k = 0; k < 2; k++) z = run_curve(r, k);
    if (native && !strstr(cot_program_native_message(p), words)) fail_msg("%s", cot_program_native_message(p));
    cot_run_destroy(r);
    cot_program_destroy(p);
    return z;
}

/* ---- what is the same but for its arrays ----------------------------------------------------- */

enum { UNROLLED = 400 };

/* Many equal steps, each of which reads its own slices and its own element of one array. */
BODY(unrolled) {
    UNUSED;
    cot_var z = xs[0], s = xs[1], all = cot_concat(2, (cot_var[]){xs[0], cot_sin(xs[0])}, 0);
    for (int k = 0; k < UNROLLED; k++) {
        s = cot_mul(cot_add(s, cot_index(all, 0, k % SIZE)), 0.5);
        z = cot_tanh(cot_add(cot_mul(z, cot_slice(all, 0, k % SIZE, k % SIZE + SIZE, 1)), s));
    }
    ys[0] = z;
    ys[1] = cot_sum(z, COT_ALL);
    ys[2] = s;
    return 0;
}

static void equal_steps_are_one_function(void **state) {
    (void)state;
    char  script[700], path[400];
    int   functions = 0;
    FILE *f;
    snprintf(path, sizeof path, "%s/functions", scratch);
    snprintf(script, sizeof script,
             "for a; do case \"$a\" in *.c) grep -c '^#define COT_PART ' \"$a\" > %s;; esac; done\n%s", path, COMPILER);
    use_compiler(script);
    results want = run_program_of(unrolled, NULL, false, ""),
            got = run_program_of(unrolled, NULL, true, "native code runs");
    assert_memory_equal(&want, &got, sizeof got);
    f = fopen(path, "r");
    assert_true(f && fscanf(f, "%d", &functions) == 1);
    fclose(f);
    assert_in_range(functions, 1, 10); /* of 19 parts */
}

/* Many small matrices times one, and each times its own. */
BODY(many_products) {
    UNUSED;
    cot_var a = cot_reshape(cot_slice(xs[0], 0, 0, 36, 1), COT_SHAPE(3, 3, 4));
    cot_var many = cot_broadcast_to(a, COT_SHAPE(26, 3, 3, 4)), shift = cot_reshape(cot_exp(a), COT_SHAPE(3, 4, 3));
    cot_var turned = cot_permute(many, COT_AXES(0, 1, 3, 2)), y = cot_matmul(cot_sin(many), turned);
    cot_var z = cot_matmul(y, cot_matmul(many, shift));
    ys[0] = cot_slice(cot_reshape(z, COT_SHAPE(26 * 3 * 9)), 0, 100, 100 + SIZE, 1);
    ys[1] = cot_sum(z, COT_ALL);
    ys[2] = cot_mul(xs[1], ys[1]);
    return 0;
}

static void many_small_products_have_the_executors_bits(void **state) {
    (void)state;
    results want = run_program_of(many_products, NULL, false, ""),
            got = run_program_of(many_products, NULL, true, "native code runs");
    assert_memory_equal(&want, &got, sizeof got);
}

/* ---- loops and functions of the user's ------------------------------------------------------- */

BODY(turn) {
    UNUSED;
    ys[0] = cot_sin(cot_add(xs[0], xs[1]));
    return 0;
}

/* Elementwise work before and behind a loop. */
BODY(around_a_loop) {
    UNUSED;
    cot_var start = cot_mul(cot_exp(xs[0]), xs[1]), each = cot_broadcast_to(xs[0], COT_SHAPE(3, SIZE)), end;
    cot_scan(turn, NULL, -1, 1, &start, 1, &each, &end, 0, NULL, NULL);
    ys[0] = cot_add(cot_mul(end, 2.0), cot_sin(start));
    ys[1] = cot_sum(ys[0], COT_ALL);
    ys[2] = cot_mul(xs[1], cot_add(xs[1], 3.0));
    return 0;
}

static void loops_stand_between_parts(void **state) {
    (void)state;
    results want = run_program_of(around_a_loop, NULL, false, ""),
            got = run_program_of(around_a_loop, NULL, true, "native code runs");
    assert_memory_equal(&want, &got, sizeof got);
}

static int calls;

static int doubled(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    calls++;
    for (int64_t k = 0; k < y->size; k++) ((double *)y->data)[k] = 2 * ((const double *)xs[0].data)[k];
    return 0;
}
static const cot_custom doubling = {.name = "doubled", .value = doubled};

BODY(with_a_call) {
    UNUSED;
    ys[0] = cot_add(cot_exp(cot_call(&doubling, 1, &xs[0], NULL)), xs[1]);
    ys[1] = cot_sum(ys[0], COT_ALL);
    ys[2] = cot_mul(xs[1], xs[1]);
    return 0;
}

static void functions_of_the_user_are_called_once(void **state) {
    (void)state;
    results want = run_program_of(with_a_call, NULL, false, "");
    int     once = calls;
    results got = run_program_of(with_a_call, NULL, true, "functions of its user's");
    assert_memory_equal(&want, &got, sizeof got);
    assert_int_equal(calls, 2 * once);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define NATIVE(name) cmocka_unit_test_setup_teardown(name, fresh, clean)
        NATIVE(outputs_may_lie_over_inputs),
        NATIVE(donated_inputs_take_what_nobody_wants),
        NATIVE(equal_steps_are_one_function),
        NATIVE(many_small_products_have_the_executors_bits),
        NATIVE(loops_stand_between_parts),
        NATIVE(functions_of_the_user_are_called_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
