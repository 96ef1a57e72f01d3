/* Functions of the user's on the way back through a loop: an error in one names the loop and the
 * step, as one on the way there does, and a derivative that reads values is not recorded where the
 * states are bounded. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <string.h>

/* ---- a function that fails in one step ------------------------------------------------------- */

/* x + 1, whose derivative fails where x is 3: in step 3 of a loop that begins with 0. */
static int one_more(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    *(double *)y->data = *(const double *)xs[0].data + 1;
    return 0;
}
static int fails_at_3(int n, const cot_array *xs, const cot_array *y, const cot_array *ybar, cot_array *xbars,
                      void *user) {
    (void)n, (void)y, (void)user;
    *(double *)xbars[0].data = *(const double *)ybar->data;
    return *(const double *)xs[0].data == 3 ? 5 : 0;
}
static const cot_custom failing = {.name = "failing", .value = one_more, .vjp_numbers = fails_at_3};

typedef struct ways { int kind, states, steps; } ways;

BODY(counts_on) { UNUSED; ys[0] = cot_call(&failing, 1, &xs[n - 1], NULL); return 0; }
BODY(stays) { UNUSED; ys[0] = xs[0]; return 0; }
BODY(chooses) { UNUSED; return cot_cond(cot_less(xs[0], 1e9), counts_on, stays, NULL, 1, xs, 1, ys); }
BODY(is_less) { UNUSED; ys[0] = cot_less(xs[0], ((const ways *)user)->steps); return 0; }
BODY(walks) {
    const ways      *w = user;
    cot_loop_options o = {.states = w->states, .reverse = w->kind == 1};
    UNUSED;
    if (w->kind < 2) return cot_scan(counts_on, NULL, w->steps, 1, xs, 0, NULL, ys, 0, NULL, &o);
    if (w->kind == 2) return cot_fori(counts_on, NULL, 10, 10 + w->steps, 1, xs, ys, &o);
    if (w->kind == 3) return cot_while(is_less, counts_on, user, 1, xs, ys, &o);
    return cot_scan(chooses, NULL, w->steps, 1, xs, 0, NULL, ys, 0, NULL, &o);
}
BODY(walks_back) { UNUSED; return cot_value_and_grad(walks, user, 1, xs, NULL, ys); }

static void assert_names_step(const ways *w, const char *by, cot_status status, const char *message) {
    static const char *const names[] = {"scan", "scan", "fori", "while", "scan"};
    char                     want[160];
    int                      step = w->kind == 1 ? w->steps - 4 : w->kind == 2 ? 13 : 3;
    snprintf(want, sizeof want, "[failing] vjp_numbers failed with code 5%s (in step %d of [%s])",
             w->kind == 4 ? " (in the then branch of [cond])" : "", step, names[w->kind]);
    if (strcmp(message, want) || status != COT_CUSTOM)
        fail_msg("kind %d, %d states, %d steps, %s: %s\nin place of %s", w->kind, w->states, w->steps, by, message,
                 want);
}

static void swept(ways w) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0), y;
    walks(1, &x, 1, &y, &w);
    cot_backward(y);
    assert_names_step(&w, "swept", cot_tape_status(t), cot_tape_message(t));
    cot_tape_destroy(t);
}

static void recorded(ways w, bool smooth) {
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = smooth});
    cot_var   x = cot_scalar(t, 0), y, g;
    walks(1, &x, 1, &y, &w);
    cot_grad_of(y, 1, &x, &g);
    assert_names_step(&w, smooth ? "recorded, smooth" : "recorded", cot_tape_status(t), cot_tape_message(t));
    cot_tape_destroy(t);
}

static void compiled(ways w) {
    const double x = 0;
    double       g;
    cot_program *p = cot_compile(walks_back, &w, 1, &(cot_type){COT_F64, {0, {0}}}, 1, NULL);
    cot_run     *r = cot_run_create(p);
    cot_program_run(r, (const void *[]){&x}, (void *[]){&g});
    assert_names_step(&w, "compiled", cot_run_status(r), cot_run_message(r));
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void an_error_on_the_way_back_names_its_step(void **state) {
    (void)state;
    for (int kind = 0; kind < 5; kind++)
        for (int states = 0; states < 3; states++)
            for (int steps = 6; steps < 40; steps += 15) {
                ways w = {kind, states, steps};
                swept(w);
                recorded(w, false);
                recorded(w, true);
                compiled(w);
            }
}

BODY(outer) { UNUSED; return walks(1, &xs[1], 1, ys, user); }

static void loops_in_loops_name_the_steps_of_both(void **state) {
    (void)state;
    for (int states = 0; states < 2; states++) {
        ways      w = {0, states, 6};
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 0), y;
        cot_fori(outer, &w, 4, 6, 1, &x, &y, NULL);
        cot_backward(y);
        assert_error(t, COT_CUSTOM,
                     "[failing] vjp_numbers failed with code 5 (in step 3 of [scan]) (in step 4 of [fori])");
        cot_tape_destroy(t);
    }
}

/* ---- a derivative that reads values ---------------------------------------------------------- */

static int leaky_value(int n, const cot_array *xs, cot_array *y, void *user) {
    double x = *(const double *)xs[0].data;
    (void)n, (void)user;
    *(double *)y->data = x < 2 ? 3 * x : x;
    return 0;
}
/* Branches by a value, and makes a leaf of a number. */
static int leaky_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y, (void)user;
    xbars[0] = cot_value(xs[0]) < 2 ? cot_mul(ybar, cot_scalar(ybar.tape, 3)) : ybar;
    return 0;
}
static const cot_custom leaky = {.name = "leaky", .value = leaky_value, .vjp = leaky_vjp};

BODY(leaks) { UNUSED; ys[0] = cot_call(&leaky, 1, &xs[n - 1], NULL); return 0; }
BODY(leaks_inside) { UNUSED; return cot_fori(leaks, NULL, 0, 2, 1, xs, ys, &(cot_loop_options){.states = 1}); }

/* With .states each step is swept, as by cot_backward: values are there to be read. Where all
 * states are kept the derivative is a loop whose body is recorded, and has none. */
static void a_derivative_may_read_values_where_states_are_bounded(void **state) {
    (void)state;
    static const cot_fn bodies[] = {leaks, leaks_inside};
    for (int k = 0; k < 2; k++)
        for (int steps = 1; steps < 40; steps += 19)
            for (int smooth = 0; smooth < 2; smooth++) {
                cot_tape        *t = cot_tape_create(&(cot_options){.smooth = smooth});
                cot_loop_options o = {.states = 2};
                cot_var          x = cot_scalar(t, 0.5), y, g;
                cot_scan(bodies[k], NULL, steps, 1, &x, 0, NULL, &y, 0, NULL, &o);
                cot_grad_of(y, 1, &x, &g);
                cot_backward(y);
                assert_ok(t);
                assert_true(cot_value(g) == (k == 0 && steps == 1 ? 3 : 9));
                assert_true(cot_grad_value(x) == cot_value(g));
                cot_tape_destroy(t);
            }
}

static void where_all_are_kept_it_may_not(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), y, g;
    cot_scan(leaks, NULL, 3, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    cot_grad_of(y, 1, &x, &g);
    assert_error(t, COT_VALUE,
                 "[value] asked for while the body of [scan] is recorded, which stands for every step and has no "
                 "values yet; choose by values with cot_where or cot_cond (in the vjp of [leaky])");
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_on_the_way_back_names_its_step),
        cmocka_unit_test(loops_in_loops_name_the_steps_of_both),
        cmocka_unit_test(a_derivative_may_read_values_where_states_are_bounded),
        cmocka_unit_test(where_all_are_kept_it_may_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
