/* Costs: known counts, the cheap gradient, and the sizes at which both modes cost the same. */
#include "support/tape_test.h"

#include "support/see.h"
#include "support/support.h"
#include "diff/loops/loop.h"
#include "rules/structural_ids.h"
#include "trace/cost/cost.h"
#include "trace/cost/cost_loop.h"
#include "tape/tape.h"

static cot__cost cost_of(cot_var y, int n, const cot_var *xs) {
    cot__cost c;
    char      why[512];
    bool      ok = cot__cost_of(&c, y, n, xs, why);
    assert_string_equal(why, "");
    assert_true(ok);
    return c;
}

/* f = x1 x2 + sin x1: three operations; forward: 2 products and a sum, cos and a product, a sum;
 * reverse: 2 products, cos and a product, and one sum where both ways meet at x1. */
static void the_worked_example(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[2] = {cot_scalar(t, 2), cot_scalar(t, 5)}, p = cot_mul(x[0], x[1]), y = cot_add(p, cot_sin(x[0]));
    cot__cost c = cost_of(y, 2, x);
    assert_int_equal(c.inputs, 2);
    assert_int_equal(c.outputs, 1);
    assert_near(c.function_operations, 3, 0);
    assert_near(c.forward_sweep, 6, 0);
    assert_near(c.reverse_sweep, 5, 0);
    assert_near(c.forward_operations, 3 + 2 * 6, 0);
    assert_near(c.reverse_operations, 3 + 5, 0);
    assert_int_equal(c.cheaper, 1);
    assert_near(c.crossing, 2 * 6 / 5.0, 0);
    assert_near(c.function_bytes, 5 * 8, 0); /* two inputs, two terms, the sum */
    assert_near(c.forward_bytes, 10 * 8, 0);
    /* x1 x2 y, and three adjoints: at the sum, the adjoint of the sum and those of both terms */
    assert_near(c.reverse_bytes, 6 * 8, 0);
    assert_true(cost_of(y, 0, NULL).reverse_operations == c.reverse_operations); /* all leaves */
    /* only the product moves (x1·dx2); a sum of one term is none */
    assert_near(cost_of(y, 1, &x[1]).forward_sweep, 1, 0);
    cot_tape_destroy(t);
}

static void an_operand_used_twice_goes_once(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), s = cot_sin(x), p = cot_mul(s, s), y = cot_add(cot_sin(p), cot_cos(p));
    assert_near(cost_of(y, 1, &x).function_bytes, 4 * 8, 0); /* x, p and both terms */
    cot_tape_destroy(t);
}

/* A chain of k sines: one operation each; either sweep costs a cosine and a product each.
 * Evaluating holds two values at a time (and the input), reverse mode all of them. */
static void a_chain(void **state) {
    (void)state;
    for (int k = 1; k < 100; k *= 3) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 0.5), y = x;
        for (int i = 0; i < k; i++) y = cot_sin(y);
        cot__cost c = cost_of(y, 1, &x);
        assert_near(c.function_operations, k, 0);
        assert_near(c.forward_sweep, 2 * k, 0);
        assert_near(c.reverse_sweep, 2 * k, 0);
        assert_int_equal(c.cheaper, 0);
        assert_near(c.crossing, 1, 0);
        assert_near(c.function_bytes, 8 * (k == 1 ? 2 : 3), 0);
        assert_near(c.forward_bytes, 2 * c.function_bytes, 0);
        /* x, all values, and the adjoint that comes and the one that goes */
        assert_near(c.reverse_bytes, 8 * (k + 1 + 2), 0);
        cot_tape_destroy(t);
    }
}

static void products_of_matrices(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_tensor(t, COT_F32, COT_SHAPE(3, 4), NULL), b = cot_tensor(t, COT_F32, COT_SHAPE(4, 5), NULL);
    cot_var   z = cot_matmul(a, b), xs[2] = {a, b};
    cot__cost c = cost_of(z, 2, xs);
    assert_near(c.function_operations, 2 * 3 * 4 * 5, 0);
    assert_near(c.forward_sweep, 2 * 2 * 3 * 4 * 5 + 15, 0); /* da @ b + a @ db */
    assert_near(c.reverse_sweep, 2 * 2 * 3 * 4 * 5, 0);      /* z̄ @ bᵀ, aᵀ @ z̄ */
    assert_int_equal(c.inputs, 12 + 20);
    assert_int_equal(c.outputs, 15);
    /* the rule gives both as long as both are active */
    assert_near(cost_of(z, 1, &a).reverse_sweep, 2 * 2 * 3 * 4 * 5, 0);
    cot_var constant = cot_data(t, COT_F32, COT_SHAPE(4, 5), (float[20]){0});
    assert_near(cost_of(cot_matmul(a, constant), 1, &a).reverse_sweep, 2 * 3 * 4 * 5, 0);
    cot_tape_destroy(t);
}

/* The gradient of any function of the table costs a small multiple of the function: at most four
 * operations for each operation, plus additions where contributions meet. Every operation of the
 * rules counts, as they are written. */
static void a_gradient_is_cheap(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var w1 = cot_tensor(t, COT_F64, COT_SHAPE(20, 30), NULL), w2 = cot_tensor(t, COT_F64, COT_SHAPE(30, 10), NULL);
    cot_var x      = cot_data(t, COT_F64, COT_SHAPE(8, 20), (double[160]){0}),
            labels = cot_data(t, COT_I64, COT_SHAPE(8), (int64_t[8]){0});
    cot_var   loss = cot_softmax_cross_entropy(cot_matmul(cot_relu(cot_matmul(x, w1)), w2), labels);
    cot__cost c = cost_of(loss, 0, NULL);
    assert_int_equal(c.inputs, 900);
    assert_true(c.reverse_operations >= 1.5 * c.function_operations &&
                c.reverse_operations <= 4 * c.function_operations);
    assert_int_equal(c.cheaper, 1);
    assert_true(c.forward_operations > 100 * c.reverse_operations);
    assert_true(c.crossing > 100);
    /* n inputs summed: the reverse sweep is free of operations, forward mode is not */
    cot_var sum = cot_sum(w1, COT_ALL);
    c = cost_of(sum, 1, &w1);
    assert_near(c.reverse_sweep, 0, 0);
    assert_near(c.forward_sweep, 600, 0);
    assert_true(isnan(c.crossing));
    assert_string_equal(c.why, "a reverse sweep costs nothing here, so it is never dearer");
    cot_tape_destroy(t);
}

static void many_outputs_favour_forward_mode(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5),
            y   = cot_sin(cot_mul(cot_broadcast_to(x, COT_SHAPE(100)), cot_arange(t, COT_F64, 0, 100, 1)));
    cot__cost c = cost_of(y, 1, &x);
    assert_int_equal(c.inputs, 1);
    assert_int_equal(c.outputs, 100);
    assert_int_equal(c.cheaper, -1);
    assert_true(c.crossing < 2);
    cot_tape_destroy(t);
}

static const cot__loop_run *loop_run_of(cot_tape *t) {
    for (uint32_t i = t->count; i-- > 0;)
        if (t->nodes[i].op == OP_loop) return t->nodes[i].extra.attr->pointer2;
    return NULL;
}

static int half(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sin(xs[1]);
    return 0;
}

/* The schedule is that of the library's own loops, and no step is reversed before its state is
 * there. */
typedef struct walk {
    int64_t at, next_back;
    bool    kept[64], sound;
} walk;

static void follow(void *to, cot__loop_event what, int64_t from, int64_t end) {
    walk *w = to;
    if (what == COT__LOOP_KEEP) w->sound &= w->at == from, w->kept[from] = true;
    if (what == COT__LOOP_RUN) w->sound &= w->at == from || from == 0 || w->kept[from], w->at = end;
    if (what == COT__LOOP_BACK)
        w->sound &= from == w->next_back-- && (w->at == from || from == 0 || w->kept[from]), w->at = -1;
}

static void the_schedule_is_that_of_loops(void **state) {
    (void)state;
    for (int states = 1; states < 6; states++)
        for (int steps = 1; steps < 60; steps += 7) {
            cot_tape *t = cot_tape_create(NULL);
            cot_var   x = cot_scalar(t, 0.3), y;
            int64_t   held = 0;
            cot_fori(half, NULL, 0, steps, 1, &x, &y, &(cot_loop_options){.states = states});
            cot_backward(y);
            walk    w = {.next_back = steps - 1, .sound = true};
            int64_t runs = cot__loop_schedule(steps, states, &held, follow, &w);
            assert_int_equal(runs, 2 * steps + loop_run_of(t)->again);
            assert_true(w.sound && w.next_back == -1);
            assert_true(held <= states + 2);
            cot_tape_destroy(t);
        }
}

static void plans_trade_time_for_memory(void **state) {
    (void)state;
    cot__loop_plan p[COT__LOOP_PLANS];
    assert_true(cot__loop_plans(&(cot__loop_sizes){.depth = 100, .width = 8, .batch = 4, .states = 10, .micro = 2}, p));
    assert_int_equal(p[COT__PLAIN].kept, 100);
    assert_true(p[COT__PLAIN].bytes == 100 * 8 * 4 * 8);
    assert_int_equal(p[COT__SQRT].kept, 10 + 9);
    assert_int_equal(p[COT__SQRT].runs, 200);
    assert_true(p[COT__MICRO].bytes == p[COT__PLAIN].bytes / 2 && p[COT__MICRO].time == p[COT__PLAIN].time);
    assert_true(p[COT__BINOMIAL].kept < p[COT__SQRT].kept && p[COT__BINOMIAL].runs > p[COT__SQRT].runs);
    /* many more states than steps: a step runs once more, on its way back */
    assert_true(cot__loop_plans(&(cot__loop_sizes){.depth = 7, .width = 1, .batch = 1, .states = 100, .micro = 1}, p));
    assert_int_equal(p[COT__BINOMIAL].runs, 14);
    assert_int_equal(p[COT__BINOMIAL].kept, 7);
    assert_null(p[COT__LIMIT].name);
}

static void a_limit_keeps_what_fits(void **state) {
    (void)state;
    cot__loop_plan  p[COT__LOOP_PLANS];
    cot__loop_sizes s = {.depth = 100, .width = 8, .batch = 4, .states = 10, .micro = 1, .bytes = 2};
    int64_t         before = 0;
    assert_true(cot__loop_plans(&s, p));
    assert_true(p[COT__PLAIN].bytes == 100 * 8 * 4 * 2);
    /* the less there is, the more runs again; what does not fit keeps the least that there is */
    for (double states = 100; states >= 1; states--) {
        s.limit = states * 64;
        assert_true(cot__loop_plans(&s, p));
        assert_true(p[COT__LIMIT].bytes <= s.limit || states < 3);
        assert_true(p[COT__LIMIT].runs >= before);
        /* and never more than with √depth states, where those fit */
        if (p[COT__SQRT].bytes <= s.limit) assert_true(p[COT__LIMIT].time <= p[COT__SQRT].time);
        assert_int_equal(cot__loop_plan_fits(&s, p), p[COT__LIMIT].bytes <= s.limit);
        if (states == 100) assert_int_equal(p[COT__LIMIT].runs, 100);
        before = p[COT__LIMIT].runs;
    }
}

static void sizes_alone(void **state) {
    (void)state;
    cot__cost c;
    cot__cost_of_sizes(&c, 1000, 1);
    assert_near(c.reverse_operations, 4, 0);
    assert_near(c.forward_operations, 1501, 0);
    assert_near(c.crossing, 500, 0);
    assert_int_equal(c.cheaper, 1);
    cot__cost_of_sizes(&c, 1, 1000000);
    assert_int_equal(c.cheaper, -1);
    cot__cost_of_sizes(&c, 1, 1);
    assert_non_null(strstr(c.why, "(3 evaluations each): reverse mode costs more for any number of outputs"));
    cot__cost_of_sizes(&c, 2, 1);
    assert_int_equal(c.cheaper, 0);
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__cost_json(&j, &c);
    assert_string_equal(text_of(f), "{\"inputs\":2,\"outputs\":1,\"function\":{\"operations\":1,\"bytes\":24},"
                                    "\"forward\":{\"sweeps\":2,\"operations\":4,\"bytes\":48},"
                                    "\"reverse\":{\"sweeps\":1,\"operations\":4,\"bytes\":48},\"cheaper\":\"equal\","
                                    "\"crossing\":{\"outputs\":1,\"why\":\"forward mode sweeps "
                                    "once for each of 2 inputs (1.5 evaluations each), reverse mode once for each "
                                    "output (3 evaluations each): the same at 1 output\"}}");
    f = tmpfile();
    assert_true(cot__cost_table(f, &c));
    assert_string_equal(text_of(f), "2 inputs, 1 output\n\n"
                                    "          sweeps  evaluations  bytes at least\n"
                                    "function                    1              24\n"
                                    "forward        2            4              48\n"
                                    "reverse        1            4              48\n\n"
                                    "cheaper: equal\n"
                                    "forward mode sweeps once for each of 2 inputs (1.5 evaluations each), reverse\n"
                                    "mode once for each output (3 evaluations each): the same at 1 output\n");
}

static void what_is_no_function_is_refused(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1), y = cot_sin(x), elsewhere = cot_scalar(other, 1);
    cot__cost c;
    char      why[512];
    assert_false(cot__cost_of(&c, cot_number(1), 0, NULL, why));
    assert_string_equal(why, "[cost] y is not a value on a tape");
    assert_false(cot__cost_of(&c, y, 1, &elsewhere, why));
    assert_string_equal(why, "[cost] input 0 is not a value on the tape of y");
    cot_matmul(x, x);
    assert_false(cot__cost_of(&c, y, 0, NULL, why));
    assert_string_equal(why, cot_tape_message(t));
    cot_tape_clear_error(t);
    c = cost_of(cot_constant(t, 3), 0, NULL); /* no input at all */
    assert_int_equal(c.inputs, 0);
    assert_near(c.forward_sweep + c.reverse_sweep, 0, 0);
    cot_tape_destroy(other);
    cot_tape_destroy(t);
}

/* A value that a rule reads is gone: the sweep that would read it is impossible, and said to be. */
static void overwritten_values(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), NULL), z = cot_softmax(x, 0), y = cot_sum(z, COT_ALL);
    cot_mul_into(&z, cot_number(2));
    cot__cost c = cost_of(y, 1, &x);
    assert_true(isnan(c.reverse_sweep) && isnan(c.forward_sweep));
    assert_int_equal(c.cheaper, 0);
    assert_non_null(strstr(c.why, "which was overwritten by mul"));
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__cost_json(&j, &c);
    assert_non_null(strstr(text_of(f), "\"reverse\":{\"sweeps\":1,\"operations\":null,"));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void memory_may_run_out(void **state) {
    (void)state;
    int failures = 0;
    for (long n = 0;; n++) {
        counting  count = {0};
        cot_tape *t = counted_tape(&count, false);
        cot_var   x     = cot_tensor(t, COT_F64, COT_SHAPE(40, 40), NULL),
                y       = cot_sum(cot_softmax(cot_matmul(x, x), 1), COT_ALL);
        cot__cost c;
        char      why[512];
        cot_tape_trim(t);
        let_succeed(&count, n);
        bool ok = cot__cost_of(&c, y, 0, NULL, why);
        let_succeed(&count, -1);
        /* memory that the cache holds may be enough */
        assert_true(ok || count.failed);
        if (!ok) assert_non_null(strstr(why, "out of memory")), failures++;
        assert_ok(t);
        cot_tape_destroy(t);
        assert_int_equal(count.live, 0);
        assert_false(count.wrong_size);
        if (!count.failed) break;
    }
    assert_true(failures > 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worked_example),   cmocka_unit_test(a_chain),
        cmocka_unit_test(an_operand_used_twice_goes_once),
        cmocka_unit_test(products_of_matrices), cmocka_unit_test(a_gradient_is_cheap),
        cmocka_unit_test(many_outputs_favour_forward_mode), cmocka_unit_test(sizes_alone),
        cmocka_unit_test(the_schedule_is_that_of_loops), cmocka_unit_test(plans_trade_time_for_memory),
        cmocka_unit_test(a_limit_keeps_what_fits),
        cmocka_unit_test(what_is_no_function_is_refused),   cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(overwritten_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
