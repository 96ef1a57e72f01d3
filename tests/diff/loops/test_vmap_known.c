/* A cot_vmap whose body was met before runs as a program, however small it is, without recording
 * the body of all elements: with the bits of what is recorded, whatever has changed in between, and
 * with nothing else left on the tape. */
#include "base/poison.h"
#include "rules/structural_ids.h"
#include "samples/samples.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "diff/batch/vmap.h"
#include "diff/loops/loop.h"

#include <stdlib.h>
#include <string.h>

enum { EXTENT = 3, MOST = 4096 };

static int64_t usual_from;

static int set_up(void **state) {
    (void)state;
    usual_from = cot__vmap_program_from;
    return 0;
}
static int take_down(void **state) {
    (void)state;
    cot__vmap_program_from = usual_from;
    cot_set_threads(0);
    return 0;
}

static bool is_program(cot_var y) {
    const cot__node *n = &y.tape->nodes[cot__operation_at(y.tape, cot__index(y))];
    return n->op == OP_loop && ((const cot__loop *)n->extra.attr->pointer)->vmapped;
}

/* ---- every sample ---------------------------------------------------------------------------- */

/* One call: which elements, how many, in which dtype, by which factor, given by the function. */
typedef struct call { int stream, extent; cot_dtype dtype; double factor; } call;

/* Each is made three times, one after the other. */
static const call calls[] = {{0, EXTENT, COT_F64, 1},     {5, EXTENT, COT_F64, 1},   {0, EXTENT, COT_F64, -0.5},
                             {2, EXTENT - 1, COT_F64, 1}, {0, EXTENT, COT_F32, 1},   {0, EXTENT, COT_F32, 0.5},
                             {0, 0, COT_F64, 1},          {1, EXTENT, COT_BF16, 1}, {7, EXTENT, COT_F64, 1}};

typedef struct work { const test_function *f; const call *c; cot_var captured; } work;

static int call_sample(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const work *w = user;
    cot_var     x[TEST_MAX_INPUTS];
    (void)m;
    for (int k = 0; k < n; k++) x[k] = w->c->dtype == COT_F64 ? xs[k] : cot_cast(xs[k], w->c->dtype);
    ys[0] = w->f->f(n, x, w->f->user);
    if (cot__dtype_is_float(cot_dtype_of(ys[0]))) ys[0] = cot_mul(cot_mul(ys[0], w->c->factor), w->captured);
    return 0;
}

/* Its shape depends on values. */
static bool has_no_batch(cot_function f) { return f == s_compress || f == s_masked_select; }

static void constants_of(cot_tape *t, int i, const test_function *f, unsigned subset, const call *c, cot_var *xs,
                         int *axes) {
    for (int k = 0; k < f->n; k++) {
        double    data[EXTENT * TEST_MAX_SIZE];
        cot_shape s = f->in[k].shape;
        int64_t   n = cot__count(s.ndim, s.dim);
        for (int e = 0; e < EXTENT; e++) {
            test_function g = function_of(&samples[i], i, c->stream + e);
            memcpy(data + e * n, g.in[k].data, (size_t)n * sizeof *data);
        }
        axes[k] = subset >> k & 1 ? 0 : COT_NOT_BATCHED;
        xs[k] = cot_data(t, COT_F64, axes[k] ? s : cot__batch_shape(t, c->extent, s), data);
    }
}

typedef struct outcome {
    cot_dtype  dtype;
    cot_shape  shape;
    double     at[MOST];
    cot_status status;
    char       text[600]; /* error and note */
    bool       program;
} outcome;

static void map_sample(cot_tape *t, int i, unsigned subset, const call *c, outcome *o) {
    test_function f = function_of(&samples[i], i, 0);
    cot_var       xs[TEST_MAX_INPUTS], y;
    int           axes[TEST_MAX_INPUTS];
    char          why[256];
    constants_of(t, i, &f, subset, c, xs, axes);
    work w = {&f, c, cot_constant(t, 1 + 0.25 * c->stream)};
    o->status = cot_vmap(call_sample, &w, f.n, xs, axes, 1, &y, NULL);
    o->program = false;
    if (o->status == COT_OK) {
        o->dtype = cot_dtype_of(y), o->shape = cot_shape_of(y), o->program = is_program(y);
        assert_true(cot__count(o->shape.ndim, o->shape.dim) <= MOST);
        assert_int_equal(cot_read(cot_cast(y, COT_F64), o->at, cot__count(o->shape.ndim, o->shape.dim)), COT_OK);
        assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    }
    snprintf(o->text, sizeof o->text, "%s|%s", cot_tape_message(t), cot_tape_note(t));
}

static void compare(int i, int c, const outcome *have, const outcome *want) {
    const char *name = samples[i].op ? samples[i].op : "composed";
    TEST_CHECK(have->status == want->status && !strcmp(have->text, want->text), "sample %d (%s), call %d: %s, %s", i,
               name, c, have->text, want->text);
    if (want->status != COT_OK || have->status != COT_OK) return;
    TEST_CHECK(have->dtype == want->dtype && cot__same_shape(&have->shape, &want->shape),
               "sample %d (%s), call %d: another type", i, name, c);
    test_same_array("the batch", name, cot__count(want->shape.ndim, want->shape.dim), have->at, want->at);
}

static void every_sample_keeps_its_bits_when_it_is_met_again(void **state) {
    static outcome want, have;
    static const int threads[] = {1, 2, 7};
    int programs = 0, again = 0;
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (unsigned subset = 1; subset < 1u << samples[i].n && !has_no_batch(samples[i].f); subset++) {
            cot_tape *t = cot_tape_create(NULL);
            bool      rewinds = (i + (int)subset) % 2;
            cot_set_threads(threads[i % 3]);
            for (int c = 0; c < TEST_COUNT(calls); c += test_small() ? 3 : 1) {
                cot_tape *fresh = cot_tape_create(NULL);
                cot__vmap_program_from = INT64_MAX;
                map_sample(fresh, i, subset, &calls[c], &want);
                assert_false(want.program);
                cot_tape_destroy(fresh);
                cot__vmap_program_from = usual_from;
                for (int k = 0; k < 3; k++) {
                    cot_mark m = cot_tape_mark(t);
                    cot_tape_clear_note(t);
                    map_sample(t, i, subset, &calls[c], &have);
                    compare(i, c, &have, &want);
                    again += k > 0 && want.status == COT_OK, programs += have.program && k > 0;
                    if (rewinds || have.status != COT_OK) cot_tape_rewind(t, m);
                }
            }
            cot_tape_destroy(t);
        }
    /* loops, solvers, functions of the user's and large constants are not told in words */
    TEST_CHECK(programs * 10 > again * 8, "%d of %d ran as programs", programs, again);
    test_verdict();
}

/* ---- what is another batch ------------------------------------------------------------------- */

typedef struct wave { double number; cot_var w; int steps; } wave;

static int waves(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const wave *a = user;
    (void)n, (void)m;
    cot_var all = cot_data(xs[0].tape, COT_F64, COT_SHAPE(2), (double[]){a->number, 0.25});
    ys[0] = cot_mul(cot_sin(xs[0]), a->w);
    for (int k = 0; k < a->steps; k++) ys[0] = cot_add(cot_mul(ys[0], 1 / a->number), cot_sum(all, COT_ALL));
    return 0;
}

/* y as numbers, and whether it was a program. */
static bool run(wave *a, cot_var x, int axis, double *y) {
    cot_var z;
    cot_vmap(waves, a, 1, &x, &axis, 1, &z, NULL);
    assert_int_equal(cot_read(z, y, cot_size(z)), COT_OK);
    return is_program(z);
}

static void recorded(const wave *a, cot_shape shape, const double *data, double by, int axis, double *y) {
    int64_t   from = cot__vmap_program_from;
    cot_tape *t = cot_tape_create(NULL);
    wave      own = {a->number, cot_constant(t, by), a->steps};
    cot__vmap_program_from = INT64_MAX;
    assert_false(run(&own, cot_data(t, COT_F64, shape, data), axis, y));
    cot__vmap_program_from = from;
    cot_tape_destroy(t);
}

static void check(wave *a, cot_var x, int axis, bool expected, double by, const char *what) {
    double    have[36], want[36], data[36];
    cot_shape s = cot_shape_of(x);
    assert_int_equal(cot_read(x, data, cot_size(x)), COT_OK);
    bool is = run(a, x, axis, have);
    if (is != expected) fail_msg("%s: %s", what, is ? "a program" : "recorded");
    recorded(a, s, data, by, axis, want);
    if (memcmp(have, want, (size_t)cot_size(x) * sizeof *have)) fail_msg("%s: other bits", what);
}

static void a_batch_that_differs_is_another(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    double    data[36];
    (void)state;
    for (int k = 0; k < 36; k++) data[k] = 0.1 * k;
    cot_var x = cot_data(t, COT_F64, COT_SHAPE(6, 6), data), fewer = cot_slice(x, 0, 0, 5, 1);
    wave    a = {0.5, cot_constant(t, 2), 3};
    check(&a, x, 0, false, 2, "the first time");
    check(&a, x, 0, true, 2, "the second time");
    check(&a, x, 0, true, 2, "the third time");
    a.w = cot_constant(t, 3);
    check(&a, x, 0, true, 3, "another value of a capture");
    check(&a, cot_mul(x, 2.0), 0, true, 3, "other values");
    a.number = -0.5;
    check(&a, x, 0, false, 3, "another number");
    check(&a, x, 0, true, 3, "another number again");
    a.number = 0.5;
    check(&a, x, 0, true, 3, "the first number");
    a.steps = 4;
    check(&a, x, 0, false, 3, "another step");
    a.steps = 3;
    check(&a, fewer, 0, false, 3, "another extent");
    check(&a, fewer, 0, true, 3, "the second time of this extent");
    /* what lies otherwise in memory has a run of its own */
    check(&a, x, 1, false, 3, "another axis");
    check(&a, x, 1, true, 3, "another axis again");
    check(&a, x, 0, true, 3, "the first axis");
    check(&a, x, 1, true, 3, "the other axis");
    check(&a, cot_transpose(x), 1, true, 3, "the transpose, which lies as x does");
    check(&a, cot_transpose(x), 0, true, 3, "and the other way");
    a.number = 0;
    check(&a, x, 0, false, 3, "zero");
    check(&a, x, 0, true, 3, "zero again");
    a.number = -0.0;
    check(&a, x, 0, false, 3, "the other zero");
    assert_ok(t);
    cot_tape_destroy(t);
}

static int powers(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sub(cot_mul(xs[0], 2.0), cot_mul(xs[1], 1.0));
    return 0;
}

/* Which inputs have the batch, where one element of each has the same type. */
static void who_is_batched_is_part_of_it(void **state) {
    static const int axes[][2] = {{0, COT_NOT_BATCHED}, {COT_NOT_BATCHED, 0}, {0, 0}};
    cot_tape *t = cot_tape_create(NULL);
    double    data[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9];
    cot_var   x[2] = {cot_data(t, COT_F64, COT_SHAPE(3, 3), data), cot_data(t, COT_F64, COT_SHAPE(3), data)};
    (void)state;
    for (int k = 0; k < 9; k++) {
        const int *axis = axes[k % 3];
        cot_var    in[2] = {x[axis[0] != 0], x[axis[1] != 0]}, z;
        cot_vmap(powers, NULL, 2, in, axis, 1, &z, NULL);
        assert_int_equal(is_program(z), k >= 3);
        assert_int_equal(cot_read(z, y, 9), COT_OK);
        for (int i = 0; i < 9; i++) assert_true(y[i] == 2 * data[axis[0] ? i % 3 : i] - data[axis[1] ? i % 3 : i]);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static uint64_t number_of(cot_var y) {
    const cot__loop *l = y.tape->nodes[cot__operation_at(y.tape, cot__index(y))].extra.attr->pointer;
    return l->body[0]->known;
}

/* In turn they would drive each other out, and each would be made again and again. */
static void more_batches_than_a_tape_can_know_are_recorded(void **state) {
    enum { ALL = 90, AT_LEAST = 50 }; /* 64, but for hashes that share a place */
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_arange(t, COT_F64, 0, 12, 1), y;
    uint64_t  number[ALL] = {0};
    wave      a = {0, cot_constant(t, 2), 3};
    (void)state;
    x = cot_reshape(x, COT_SHAPE(6, 2));
    for (int round = 0; round < 8; round++) {
        int programs = 0, the_same = 0;
        for (int k = 0; k < ALL; k++) {
            a.number = 1 + k;
            cot_vmap(waves, &a, 1, &x, NULL, 1, &y, NULL);
            uint64_t now = is_program(y) ? number_of(y) : 0;
            programs += now != 0, the_same += now && now == number[k];
            number[k] = now;
        }
        if (round > 2) assert_true(programs >= AT_LEAST && the_same == programs);
    }
    /* of those that are met no more they take the places */
    for (int round = 0; round < 120; round++)
        for (int k = 0; k < 10; k++) {
            a.number = 1000 + k;
            cot_vmap(waves, &a, 1, &x, NULL, 1, &y, NULL);
        }
    assert_true(is_program(y));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void a_body_of_two_operations_is_recorded(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_zeros(t, COT_F64, COT_SHAPE(4, 3)), w = cot_constant(t, 2), y;
    wave      a = {0.5, w, 0};
    (void)state;
    for (int k = 0; k < 3; k++) cot_vmap(waves, &a, 1, &x, NULL, 1, &y, NULL);
    assert_false(is_program(y));
    a.steps = 1;
    for (int k = 0; k < 3; k++) cot_vmap(waves, &a, 1, &x, NULL, 1, &y, NULL);
    assert_true(is_program(y));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- what it leaves and takes ---------------------------------------------------------------- */

static int chain(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var y = xs[0];
    (void)n, (void)m;
    for (int k = 0; k < 20; k++) y = cot_tanh(cot_add(cot_mul(y, *(const cot_var *)user), 0.5));
    ys[0] = y;
    return 0;
}

static void the_body_of_all_elements_is_not_recorded_again(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_zeros(t, COT_F64, COT_SHAPE(2, 3)), w = cot_constant(t, 0.5), y;
    uint32_t  took[3];
    (void)state;
    for (int k = 0; k < 3; k++) {
        uint32_t before = t->count;
        cot_vmap(chain, &w, 1, &x, NULL, 1, &y, NULL);
        took[k] = t->count - before;
        assert_int_equal(is_program(y), k > 0);
    }
    assert_ok(t);
    /* an example, its parameter, the body of one element; then one node, not one for each step */
    assert_true(took[2] >= 60 && took[2] <= 66 && took[1] == took[2] && took[0] >= took[2] + 59);
    cot_tape_destroy(t);
}

static void a_batch_that_is_met_again_asks_for_no_memory(void **state) {
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    cot_var   x = cot_zeros(t, COT_F64, COT_SHAPE(20, 30)), w = cot_constant(t, 0.5), y;
    long      before = 0;
    (void)state;
    for (int k = 0; k < 40; k++) {
        cot_mark m = cot_tape_mark(t);
        if (k == 30) before = c.requests;
        cot_vmap(chain, &w, 1, &x, NULL, 1, &y, NULL);
        cot_tape_rewind(t, m);
    }
    assert_ok(t);
#if !COT__ADDRESS_SANITIZER /* under which the tape keeps no memory for later */
    assert_int_equal(c.requests, before);
#else
    assert_true(before > 0);
#endif
    cot_tape_destroy(t);
}

static void map_again(cot_tape *t, void *user) {
    cot_var x = cot_zeros(t, COT_F64, COT_SHAPE(2, 3)), w = cot_constant(t, 0.5), y;
    (void)user;
    for (int k = 0; k < 3; k++) {
        cot_mark m = cot_tape_mark(t);
        cot_vmap(chain, &w, 1, &x, NULL, 1, &y, NULL);
        if (cot_tape_status(t) != COT_OK) return;
        cot_tape_rewind(t, m);
    }
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(map_again, NULL, 0, NULL);
}

/* ---- who looks into it ----------------------------------------------------------------------- */

static char *saved(int64_t from, int times, size_t *bytes) {
    cot_tape *t = cot_tape_create(NULL);
    double    data[36];
    char      why[256];
    for (int k = 0; k < 36; k++) data[k] = 0.1 * k;
    cot_var x = cot_data(t, COT_F64, COT_SHAPE(6, 6), data), y;
    wave    a = {0.5, cot_constant(t, 2), 3};
    cot__vmap_program_from = from;
    for (int k = 0; k < times; k++) {
        cot_mark m = cot_tape_mark(t);
        cot_vmap(waves, &a, 1, &x, NULL, 1, &y, NULL);
        if (k < times - 1) cot_tape_rewind(t, m);
    }
    cot__vmap_program_from = usual_from;
    assert_true(is_program(y));
    uint32_t nodes = t->count;
    if (cot_tape_save(t, 1, &y, "vmap.cot", why, sizeof why) != COT_OK) fail_msg("%s", why);
    assert_int_equal(t->count, nodes);
    cot_tape *u = cot_tape_load("vmap.cot", NULL, 1, &x);
    double    have[36], want[36];
    assert_int_equal(cot_read(x, have, 36), COT_OK);
    assert_int_equal(cot_read(y, want, 36), COT_OK);
    assert_memory_equal(have, want, sizeof want);
    cot_tape_destroy(u);
    cot_tape_destroy(t);
    FILE *file = fopen("vmap.cot", "rb");
    assert_non_null(file);
    char *all = malloc(1 << 16);
    *bytes = fread(all, 1, 1 << 16, file);
    fclose(file);
    remove("vmap.cot");
    return all;
}

static void a_file_holds_its_operations_however_often_it_was_met(void **state) {
    size_t a, b;
    char  *first = saved(0, 1, &a), *later = saved(usual_from, 20, &b);
    (void)state;
    assert_true(a > 500 && a < 1 << 16);
    assert_int_equal(a, b);
    assert_memory_equal(first, later, a);
    free(first);
    free(later);
}

static int product(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], xs[1]);
    return 0;
}

static int curve(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sin(cot_mul(xs[0], xs[0]));
    return 0;
}

/* Without a gradient the batch is a program, though its operands have one. */
static int slope(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *gs, cot_var *out, void *user) {
    cot_var in[2] = {gs[0], cot_mul(cot_mul(xs[0], 2.0), cot_cos(cot_mul(xs[0], xs[0])))};
    (void)n, (void)m, (void)ys, (void)user;
    cot_no_grad_open(xs[0].tape);
    cot_vmap(product, NULL, 2, in, NULL, 1, out, NULL);
    cot_no_grad_close(xs[0].tape);
    return cot_is_valid(out[0]) ? 0 : 1;
}

/* So what its transpose lacks is told as of operations that are on the tape: not that the rule is
 * no linear one. */
static void a_rule_with_a_batch_in_it_is_linear(void **state) {
    static const cot_fn_rules rules = {.vjp = slope};
    static const int64_t      from[] = {INT64_MAX, 0};
    char                      text[2][600];
    (void)state;
    for (int k = 0; k < 2; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0.5, 1, 2}), y;
        cot_var   dx = cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, -2, 3});
        cot__vmap_program_from = from[k];
        cot_custom_fn(&rules, curve, NULL, 1, &x, 1, &y);
        cot_jvp(y, 1, &x, &dx);
        snprintf(text[k], sizeof text[k], "%s", cot_tape_message(t));
        cot_tape_destroy(t);
    }
    assert_string_equal(text[1], text[0]);
    assert_null(strstr(text[0], "not linear"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_keeps_its_bits_when_it_is_met_again, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_batch_that_differs_is_another, set_up, take_down),
        cmocka_unit_test_setup_teardown(who_is_batched_is_part_of_it, set_up, take_down),
        cmocka_unit_test_setup_teardown(more_batches_than_a_tape_can_know_are_recorded, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_body_of_two_operations_is_recorded, set_up, take_down),
        cmocka_unit_test_setup_teardown(the_body_of_all_elements_is_not_recorded_again, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_batch_that_is_met_again_asks_for_no_memory, set_up, take_down),
        cmocka_unit_test_setup_teardown(any_allocation_may_fail, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_file_holds_its_operations_however_often_it_was_met, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_rule_with_a_batch_in_it_is_linear, set_up, take_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
