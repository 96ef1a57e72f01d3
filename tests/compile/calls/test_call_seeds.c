/* Calls of a program of which only some results get a gradient: what the forward program kept is
 * read, not computed again, with the bits of the function recorded. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include "compile/variants.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <cotangent_program.h>

#include <string.h>

enum { N = 5 };
static const cot_type types[2] = {{COT_F64, {2, {N, N}}}, {COT_F64, {1, {N}}}};

/* A layer and its loss, as most programs of a training step give them. */
BODY(layer_and_loss) {
    UNUSED;
    ys[0] = cot_tanh(cot_matmul(xs[0], xs[1]));
    ys[1] = cot_sum(cot_mul(cot_exp(ys[0]), cot_sin(xs[1])), COT_ALL);
    return 0;
}

typedef struct gradients { double of[N * N + N]; } gradients;

/* which: bit k, result k goes into what is differentiated. p NULL: the function itself. */
static gradients gradients_of(cot_program *p, int which) {
    cot_tape *t = cot_tape_create(NULL);
    double    w[N * N], x[N];
    gradients g;
    for (int i = 0; i < N * N; i++) w[i] = 0.3 * sin(i + 1);
    for (int i = 0; i < N; i++) x[i] = cos(2 * i);
    cot_var xs[2] = {cot_tensor(t, COT_F64, types[0].shape, w), cot_tensor(t, COT_F64, types[1].shape, x)}, ys[2];
    if (p) cot_program_call(p, 2, xs, 2, ys);
    else layer_and_loss(2, xs, 2, ys, NULL);
    cot_var all = cot_number(0);
    if (which & 1) all = cot_add(all, cot_sum(cot_square(ys[0]), COT_ALL));
    if (which & 2) all = cot_add(all, cot_mul(ys[1], 3.0));
    cot_backward(all);
    assert_ok(t);
    cot_read(cot_grad(xs[0]), g.of, N * N);
    cot_read(cot_grad(xs[1]), g.of + N * N, N);
    assert_ok(t);
    cot_tape_destroy(t);
    return g;
}

static void seeds_for_some_results_give_the_bits_of_the_function(void **state) {
    (void)state;
    cot_program *p = cot_compile(layer_and_loss, NULL, 2, types, 2, NULL);
    for (int which = 1; which < 4; which++) {
        gradients a = gradients_of(NULL, which), b = gradients_of(p, which);
        assert_memory_equal(&a, &b, sizeof a);
    }
    cot_program_destroy(p);
}

static int how_many(const cot_program *p, int op) {
    int some = 0;
    for (uint32_t k = 0; k < p->source->operations; k++) some += p->source->operation[k].op == op;
    return some;
}

static void what_the_forward_program_kept_is_read(void **state) {
    (void)state;
    cot_program        *p = cot_compile(layer_and_loss, NULL, 2, types, 2, NULL);
    cot__caller         caller = {.name = "test"};
    const bool          both[2] = {true, true}, all[2] = {true, true};
    const cot__variant *whole = cot__variant_of(p, COT__SPLIT, false, both, all, &caller);
    assert_non_null(whole);
    for (int only = 0; only < 2; only++) {
        bool seeded[16] = {false};
        seeded[only] = true;
        const cot__variant *v = cot__variant_of(whole->forward, COT__PULL, false, both, seeded, &caller);
        assert_non_null(v);
        assert_int_equal(how_many(v->backward, OP_tanh), 0);
        assert_int_equal(how_many(v->backward, OP_exp), 0);
        /* those of the two adjoints, and not the product itself */
        assert_true(how_many(v->backward, OP_matmul) <= 2);
    }
    cot_program_destroy(p);
}

/* A second derivative goes back through residuals, too: through what the first one read. */
BODY(norm_of_gradient) {
    cot_var two[2], g[2];
    (void)n, (void)m;
    if (user) cot_program_call(user, 2, xs, 2, two);
    else layer_and_loss(2, xs, 2, two, NULL);
    cot_grad_of(two[1], 2, xs, g);
    ys[0] = cot_add(cot_sum(cot_square(g[0]), COT_ALL), cot_sum(cot_square(g[1]), COT_ALL));
    return 0;
}

static void second_derivatives_read_it_too(void **state) {
    (void)state;
    cot_program *p = cot_compile(layer_and_loss, NULL, 2, types, 2, NULL);
    double       wx[N * N + N], g[2][N * N + N];
    for (int i = 0; i < N * N + N; i++) wx[i] = 0.3 * sin(i + 1);
    for (int called = 0; called < 2; called++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[2] = {cot_tensor(t, COT_F64, types[0].shape, wx),
                           cot_tensor(t, COT_F64, types[1].shape, wx + N * N)}, y;
        norm_of_gradient(2, xs, 1, &y, called ? p : NULL);
        cot_backward(y);
        assert_ok(t);
        cot_read(cot_grad(xs[0]), g[called], N * N);
        cot_read(cot_grad(xs[1]), g[called] + N * N, N);
        assert_ok(t);
        cot_tape_destroy(t);
    }
    /* sums of some tens of products of numbers near 1, in another order */
    for (int i = 0; i < N * N + N; i++) assert_true(fabs(g[0][i] - g[1][i]) <= 1e-14 * (1 + fabs(g[0][i])));
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_for_some_results_give_the_bits_of_the_function),
        cmocka_unit_test(what_the_forward_program_kept_is_read),
        cmocka_unit_test(second_derivatives_read_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
