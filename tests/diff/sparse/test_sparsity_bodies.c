/* Patterns of loops, conditions, checkpoints and functions with rules: a plan made at one point
 * gives the dense matrices at others, and is as sparse as the body. */
/* ctest: timeout=120 */
#include "diff/sparse/plan_test.h"

/* ---- bodies ---------------------------------------------------------------------------------- */

BODY(sine) {
    UNUSED;
    ys[0] = cot_sin(xs[0]);
    return 0;
}
BODY(stencil) {
    UNUSED;
    ys[0] = cot_add(cot_mul(0.5, xs[0]), cot_mul(0.2, cot_square(cot_roll(xs[0], 1, 0))));
    return 0;
}
/* fori: the number of the step comes first */
BODY(stencil_step) { return stencil(n, xs + 1, m, ys, user); }
BODY(pairs) {
    UNUSED;
    ys[0] = cot_sin(
        cot_add(cot_reshape(cot_flip(cot_reshape(xs[0], COT_SHAPE(N / 2, 2)), COT_AXES(1)), COT_SHAPE(N)), xs[0]));
    return 0;
}

BODY(in_checkpoint) {
    UNUSED;
    return cot_checkpoint(stencil, NULL, 1, xs, 1, ys);
}
BODY(in_scan) {
    UNUSED;
    return cot_scan(stencil, NULL, 2, 1, xs, 0, NULL, ys, 0, NULL, NULL);
}
BODY(in_fori) {
    UNUSED;
    return cot_fori(stencil_step, NULL, 3, 5, 1, xs, ys, NULL);
}
BODY(long_scan) {
    UNUSED;
    return cot_scan(pairs, NULL, 1000, 1, xs, 0, NULL, ys, 0, NULL, NULL);
}
BODY(in_cond) {
    UNUSED;
    return cot_cond(cot_greater(cot_index(xs[0], 0, 0), 0.0), stencil, sine, NULL, 1, xs, 1, ys);
}
BODY(in_constant_cond) {
    UNUSED;
    return cot_cond(cot_constant(xs[0].tape, 0), stencil, sine, NULL, 1, xs, 1, ys);
}
BODY(row) {
    UNUSED;
    return cot_checkpoint(sine, NULL, 1, xs, 1, ys);
}
BODY(vmapped) {
    UNUSED;
    return cot_vmap(row, NULL, 1, xs, NULL, 1, ys, NULL);
}
BODY(nested_step) {
    UNUSED;
    cot_var z;
    return cot_checkpoint(stencil, NULL, 1, xs, 1, &z) ||
           cot_cond(cot_greater(cot_index(z, 0, 1), 0.0), sine, sine, NULL, 1, &z, 1, ys);
}
BODY(nested) {
    UNUSED;
    return cot_scan(nested_step, NULL, 2, 1, xs, 0, NULL, ys, 0, NULL, NULL);
}

/* The slices and the values given out: y[k] = Σ_{i<=k} x[i] sin x[k], in both directions. */
BODY(running) {
    UNUSED;
    ys[0] = cot_add(xs[0], xs[1]);
    ys[1] = cot_mul(ys[0], cot_sin(xs[1]));
    return 0;
}
BODY(over_slices) {
    UNUSED;
    cot_var zero = cot_constant(xs[0].tape, 0), last;
    return cot_scan(running, NULL, -1, 1, &zero, 1, xs, &last, 1, ys, NULL);
}
BODY(backward_over_slices) {
    UNUSED;
    cot_var zero = cot_constant(xs[0].tape, 0), last;
    return cot_scan(running, NULL, -1, 1, &zero, 1, xs, &last, 1, ys, &(cot_loop_options){.reverse = true});
}
/* Positions that the step counts: y = Σ_i e_i x[i] x[5 - i] for i from 1 to 3; that e_i is zero at
 * all places but one is a value, and does not show. */
BODY(by_count) {
    UNUSED;
    cot_var x = *(cot_var *)user, i = xs[0], term = cot_mul(cot_take(x, i, 0), cot_take(x, cot_sub(5, i), 0));
    ys[0] = cot_add(xs[1], cot_mul(cot_one_hot(i, N, COT_F64), term));
    return 0;
}
BODY(counted) {
    UNUSED;
    cot_var x = xs[0], zero = cot_zeros(x.tape, COT_F64, COT_SHAPE(N));
    return cot_fori(by_count, &x, 1, 4, 1, &zero, ys, NULL);
}
/* The first steps change nothing, and are not the last. */
BODY(square_at) {
    UNUSED;
    cot_var i = xs[0];
    ys[0]     = cot_mul(cot_one_hot(i, N, COT_F64), cot_square(cot_take(*(cot_var *)user, i, 0)));
    return 0;
}
BODY(nothing) {
    UNUSED;
    ys[0] = cot_zeros(xs[0].tape, COT_F64, COT_SHAPE(N));
    return 0;
}
BODY(some_steps) {
    UNUSED;
    cot_var z;
    if (cot_cond(cot_greater(xs[0], 2), square_at, nothing, user, 1, xs, 1, &z)) return 1;
    ys[0] = cot_add(xs[1], z);
    return 0;
}
BODY(late) {
    UNUSED;
    cot_var x = xs[0], zero = cot_zeros(x.tape, COT_F64, COT_SHAPE(N));
    return cot_fori(some_steps, &x, 0, N, 1, &zero, ys, NULL);
}

/* A while that runs longer at some points than at others. */
BODY(stencil_and_count) {
    UNUSED;
    stencil(1, xs, 1, ys, NULL);
    ys[1] = cot_add(xs[1], 1.0);
    return 0;
}
BODY(pairs_and_count) {
    UNUSED;
    pairs(1, xs, 1, ys, NULL);
    ys[1] = cot_add(xs[1], 1.0);
    return 0;
}
BODY(while_stencil) {
    UNUSED;
    cot_var in[2] = {xs[0], cot_constant(xs[0].tape, 0)}, out[2];
    if (cot_while(few_steps, stencil_and_count, NULL, 2, in, out, NULL)) return 1;
    ys[0] = out[0];
    return 0;
}
BODY(while_pairs) {
    UNUSED;
    cot_var in[2] = {xs[0], cot_constant(xs[0].tape, 0)}, out[2];
    if (cot_while(few_steps, pairs_and_count, NULL, 2, in, out, NULL)) return 1;
    ys[0] = out[0];
    return 0;
}
/* A body that does not run at the point where the plan is made; it is a chain: 0 <- 1 <- … <- 5. */
BODY(if_large) {
    UNUSED;
    ys[0] = cot_logical_and(cot_greater(cot_sum(cot_square(xs[0]), COT_ALL), 0.02), cot_less(xs[1], 3.0));
    return 0;
}
BODY(chain_and_count) {
    UNUSED;
    ys[0] = cot_mul(cot_cos(xs[0]), cot_concat(2,
                                               (cot_var[]){cot_slice(xs[0], 0, 1, cot_size(xs[0]), 1),
                                                           cot_ones(xs[0].tape, COT_F64, COT_SHAPE(1))},
                                               0));
    ys[1] = cot_add(xs[1], 1.0);
    return 0;
}
BODY(while_chain) {
    UNUSED;
    cot_var in[2] = {xs[0], cot_constant(xs[0].tape, 0)}, out[2];
    if (cot_while(if_large, chain_and_count, NULL, 2, in, out, NULL)) return 1;
    ys[0] = out[0];
    return 0;
}

/* Values that the steps give out after the sets of carried values have settled, from either end;
 * and slices alone, with no carried value that moves. */
BODY(settles) {
    UNUSED;
    ys[0] = cot_sin(xs[0]);
    stencil(1, xs, 1, &ys[1], NULL);
    return 0;
}
BODY(given_out) {
    UNUSED;
    cot_var last, all;
    if (cot_scan(settles, NULL, 5, 1, xs, 0, NULL, &last, 1, &all, NULL)) return 1;
    ys[0] = cot_index(all, 0, 4);
    return 0;
}
BODY(given_out_backward) {
    UNUSED;
    cot_var last, all;
    if (cot_scan(settles, NULL, 5, 1, xs, 0, NULL, &last, 1, &all, &(cot_loop_options){.reverse = true})) return 1;
    ys[0] = cot_index(all, 0, 0);
    return 0;
}
BODY(pass) {
    UNUSED;
    ys[0] = xs[0];
    ys[1] = cot_sin(xs[1]);
    return 0;
}
BODY(slices_alone) {
    UNUSED;
    cot_var zero = cot_constant(xs[0].tape, 0), last;
    return cot_scan(pass, NULL, -1, 1, &zero, 1, xs, &last, 1, ys, NULL);
}
/* Positions that repeat before a new one comes; and one that is carried, and is a constant in the
 * first step only. */
BODY(at_table) {
    UNUSED;
    ys[0] = cot_add(xs[0], cot_square(cot_take(*(cot_var *)user, xs[1], 0)));
    return 0;
}
BODY(repeated) {
    UNUSED;
    cot_var x = xs[0], zero = cot_zeros(x.tape, COT_F64, COT_SCALAR),
            table = cot_data(x.tape, COT_I64, COT_SHAPE(4), (int64_t[]){2, 2, 2, 4});
    return cot_scan(at_table, &x, -1, 1, &zero, 1, &table, ys, 0, NULL, NULL);
}
BODY(at_carried) {
    UNUSED;
    cot_var x = *(cot_var *)user;
    ys[0]     = cot_add(xs[0], cot_square(cot_take(x, xs[1], 0)));
    ys[1]     = cot_argmax(x, COT_ALL);
    return 0;
}
BODY(carried) {
    UNUSED;
    cot_var x     = xs[0],
            in[2] = {cot_zeros(x.tape, COT_F64, COT_SCALAR), cot_data(x.tape, COT_I64, COT_SCALAR, &(int64_t){0})},
            out[2];
    if (cot_scan(at_carried, &x, 2, 2, in, 0, NULL, out, 0, NULL, NULL)) return 1;
    ys[0] = out[0];
    return 0;
}
/* A branch whose position a cot_while finds; and a branch that would not end, which is taken
 * nowhere here. */
BODY(below_three) {
    UNUSED;
    ys[0] = cot_less(xs[0], 3);
    return 0;
}
BODY(one_more) {
    UNUSED;
    ys[0] = cot_add(xs[0], 1);
    return 0;
}
BODY(at_found) {
    UNUSED;
    cot_var k = cot_data(xs[0].tape, COT_I64, COT_SCALAR, &(int64_t){0}), found;
    if (cot_while(below_three, one_more, NULL, 1, &k, &found, NULL)) return 1;
    ys[0] = cot_square(cot_take(xs[0], found, 0));
    return 0;
}
BODY(first) {
    UNUSED;
    ys[0] = cot_sin(cot_index(xs[0], 0, 0));
    return 0;
}
BODY(while_in_a_branch) {
    UNUSED;
    return cot_cond(cot_greater(cot_index(xs[0], 0, 1), 0.35), at_found, first, NULL, 1, xs, 1, ys);
}
BODY(always) {
    UNUSED;
    ys[0] = cot_less(cot_sum(cot_sin(xs[0]), COT_ALL), 100.0);
    return 0;
}
BODY(endless) {
    UNUSED;
    return cot_while(always, sine, NULL, 1, xs, ys, &(cot_loop_options){.limit = 1000});
}
BODY(endless_branch) {
    UNUSED;
    return cot_cond(cot_greater(cot_sum(cot_square(xs[0]), COT_ALL), 1e6), endless, sine, NULL, 1, xs, 1, ys);
}

/* Rules: of the body itself; and of something else than the body, which rounds, and reads a
 * neighbour's value. */
static int sine_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                    void *user) {
    UNUSED;
    xbars[0] = cot_mul(ybars[0], cot_cos(xs[0]));
    return 0;
}
static int straight_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys,
                        void *user) {
    UNUSED;
    /* the sum is read, not moved */
    dys[0] = cot_mul(cot_roll(dxs[0], 1, 0), cot_sum(cot_square(xs[0]), COT_ALL));
    return 0;
}
BODY(rounded) {
    UNUSED;
    ys[0] = cot_round(xs[0]);
    return 0;
}
static const cot_fn_rules given[2] = {{"sine", sine_vjp, NULL}, {"straight", NULL, straight_jvp}};
BODY(with_vjp) {
    UNUSED;
    return cot_custom_fn(&given[0], sine, NULL, 1, xs, 1, ys);
}
BODY(with_jvp) {
    UNUSED;
    return cot_custom_fn(&given[1], rounded, NULL, 1, xs, 1, ys);
}

static const sample bodies[] = {
    {"checkpoint", in_checkpoint, 2 * N, 3 * N},
    {"scan", in_scan, 3 * N, 5 * N},
    {"fori", in_fori, 3 * N, 5 * N},
    {"a long scan", long_scan, 2 * N, 2 * N},
    {"cond", in_cond, 2 * N, 0},
    {"cond, of a constant", in_constant_cond, N, N},
    {"vmap of a checkpoint", vmapped, N, N},
    {"scan of cond of checkpoint", nested, 3 * N, 0},
    {"slices", over_slices, N *(N + 1) / 2, 0},
    {"slices, from the last", backward_over_slices, N *(N + 1) / 2, 0},
    {"positions from the step", counted, 4 * N, 0},
    {"steps that begin late", late, 3 * N, 9},
    {"while, a ring", while_stencil, N *N, 0},
    {"while, pairs", while_pairs, 2 * N, 2 * N},
    {"while, a chain", while_chain, N *(N + 1) / 2, 0},
    {"given out", given_out, 2 * N, 3 * N},
    {"given out, from the last", given_out_backward, 2 * N, 3 * N},
    {"slices alone", slices_alone, N, N},
    {"positions that repeat", repeated, 2, 4},
    {"a carried position", carried, N, 0},
    {"a while in a branch", while_in_a_branch, N, 0},
    /* its way back is one operation, dense */
    {"a branch that would not end", endless_branch, N, 0},
    {"a vjp", with_vjp, N, N},
    /* a wrong derivative has no symmetric second one */
    {"a jvp", with_jvp, N, -1},
};

static void plans_are_as_sparse_as_bodies(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(bodies); k++)
        for (int stream = 0; stream < 4; stream++) {
            int64_t nnz[2];
            serve(bodies[k].name, bodies[k].f, NULL, bodies[k].hessian >= 0, stream, nnz);
            TEST_CHECK(nnz[0] == bodies[k].nnz, "%s: %lld entries, not %lld", bodies[k].name, (long long)nnz[0],
                       (long long)bodies[k].nnz);
            TEST_CHECK(bodies[k].hessian <= 0 || nnz[1] == bodies[k].hessian,
                       "%s: %lld entries of the Hessian, not %lld", bodies[k].name, (long long)nnz[1],
                       (long long)bodies[k].hessian);
        }
    test_verdict();
}

/* A while to the end, from a position that the inputs choose: one step or six. */
BODY(before_the_end) {
    UNUSED;
    ys[0] = cot_less(xs[1], N);
    return 0;
}
BODY(at_count) {
    UNUSED;
    cot_var x = *(cot_var *)user;
    ys[0]     = cot_add(xs[0], cot_square(cot_take(x, xs[1], 0)));
    ys[1]     = cot_add(xs[1], 1);
    return 0;
}
BODY(while_to_the_end) {
    UNUSED;
    cot_var x     = xs[0];
    cot_var in[2] = {cot_index(x, 0, 0),
                     cot_cast(cot_where(cot_greater(cot_sum(x, COT_ALL), 1.0), 0.0, (double)N - 1), COT_I64)},
            out[2];
    if (cot_while(before_the_end, at_count, &x, 2, in, out, NULL)) return 1;
    ys[0] = out[0];
    return 0;
}
/* Elementwise, in a scan: the way back of the while is one operation, and as sparse as its body.
 * And with a bound on states, outside. */
BODY(large_and_few) {
    UNUSED;
    ys[0] = cot_logical_and(cot_greater(cot_sum(cot_square(xs[0]), COT_ALL), 0.02), cot_less(xs[1], 2.0));
    return 0;
}
BODY(while_pairs_if_large) {
    UNUSED;
    cot_var in[2] = {xs[0], cot_constant(xs[0].tape, 0)}, out[2];
    if (cot_while(large_and_few, pairs_and_count, NULL, 2, in, out, NULL)) return 1;
    ys[0] = out[0];
    return 0;
}
BODY(while_in_scan) {
    UNUSED;
    return cot_scan(while_pairs_if_large, NULL, 2, 1, xs, 0, NULL, ys, 0, NULL, NULL);
}
BODY(bounded_while) {
    UNUSED;
    cot_var in[2] = {xs[0], cot_constant(xs[0].tape, 0)}, out[2];
    if (cot_while(large_and_few, pairs_and_count, NULL, 2, in, out, &(cot_loop_options){.states = 1})) return 1;
    ys[0] = out[0];
    return 0;
}
BODY(bounded_scan) {
    UNUSED;
    return cot_scan(stencil, NULL, 2, 1, xs, 0, NULL, ys, 0, NULL, &(cot_loop_options){.states = 1});
}
BODY(batch_of_while) { /* of pairs, each of which ends when it is small */
    UNUSED;
    cot_var pairs = cot_reshape(xs[0], COT_SHAPE(N / 2, 2)), y;
    if (cot_vmap(while_chain, NULL, 1, &pairs, NULL, 1, &y, NULL)) return 1;
    ys[0] = cot_reshape(y, COT_SHAPE(N));
    return 0;
}

/* Linear: the values that come back into f do not depend on the inputs, so f alone makes the whole
 * Hessian. */
BODY(plain_sum) {
    UNUSED;
    const summed *s = user;
    cot_var       z;
    if (s->f(1, xs, 1, &z, s->user)) return 1;
    ys[0] = cot_sum(z, COT_ALL);
    return 0;
}

/* Plans at the origin, where no while takes a step, serve where they do. */
static void a_while_that_did_not_run_counts(void **state) {
    (void)state;
    static const sample cases[] = {
        {"a chain", while_chain, N * (N + 1) / 2, 0},  {"to the end", while_to_the_end, N, 0},
        {"pairs", while_pairs_if_large, 2 * N, 2 * N}, {"in a scan", while_in_scan, 2 * N, 2 * N},
        {"bounded", bounded_while, 2 * N, 2 * N},      {"a bounded scan", bounded_scan, 3 * N, 5 * N},
        {"a batch", batch_of_while, 3 * N / 2, 2 * N}};
    for (int c = 0; c < TEST_COUNT(cases); c++) {
        double           at[N] = {0}, values[N * N], have[N * N], want[N * N];
        cot_tape        *t     = cot_tape_create(NULL);
        summed           s     = {cases[c].f, NULL};
        cot_var          x     = cot_tensor(t, COT_F64, COT_SHAPE(N), at), far, y;
        cot_sparse_plan *p     = cot_sparse_jacobian_plan_of(cases[c].f, NULL, 1, &x, 1, COT_AUTO);
        cot_fn           of[2] = {plain_sum, sum_of_squares};
        cot_sparse_plan *h      = cot_sparse_hessian_plan_of(of[1], &s, 1, &x),
                        *plain  = cot_sparse_hessian_plan_of(of[0], &s, 1, &x);
        int64_t          nnz[2] = {cot_sparse_plan_info(p).nnz, cot_sparse_plan_info(h).nnz};
        TEST_CHECK(cases[c].nnz == 0 || nnz[0] == cases[c].nnz, "%s: %lld entries", cases[c].name, (long long)nnz[0]);
        TEST_CHECK(cases[c].hessian == 0 || nnz[1] == cases[c].hessian, "%s: %lld of the Hessian", cases[c].name,
                   (long long)nnz[1]);
        for (int i = 0; i < N; i++) at[i] = 0.3 + 0.1 * i;
        far = cot_tensor(t, COT_F64, COT_SHAPE(N), at);
        TEST_CHECK(p && cot_sparse_jacobian_of(p, cases[c].f, NULL, 1, &far, 1, values) == COT_OK, "%s: values",
                   cases[c].name);
        cases[c].f(1, &far, 1, &y, NULL);
        cot_jacobian(1, &y, 1, &far, COT_AUTO, want);
        if (test_tape_ok(t, cases[c].name)) {
            spread(cot_sparse_plan_info(p), values, have);
            near(cases[c].name, "Jacobian", 0, cot_size(y) * N, have, want);
        }
        for (int k = 0; k < 2; k++) {
            cot_sparse_plan *q = k ? h : plain;
            TEST_CHECK(q && cot_sparse_hessian_of(q, of[k], &s, 1, &far, values) == COT_OK, "%s: second values",
                       cases[c].name);
            of[k](1, &far, 1, &y, &s);
            cot_hessian(y, 1, &far, want);
            if (!test_tape_ok(t, cases[c].name)) continue;
            spread(cot_sparse_plan_info(q), values, have);
            near(cases[c].name, k ? "Hessian" : "Hessian of the sum", 0, N * N, have, want);
        }
        cot_sparse_plan_destroy(p);
        cot_sparse_plan_destroy(plain);
        cot_sparse_plan_destroy(h);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* A chain of which each step moves everything one place on: the sets grow for as many rounds as it
 * has elements, and are joined before that. */
static void a_long_chain_in_a_while_ends(void **state) {
    (void)state;
    enum { MANY = 150 };
    static double    at[MANY], values[MANY * MANY], have[MANY * MANY], want[MANY * MANY];
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          x = cot_tensor(t, COT_F64, COT_SHAPE(MANY), at), far, y;
    cot_sparse_plan *p = cot_sparse_jacobian_plan_of(while_chain, NULL, 1, &x, 1, COT_AUTO);
    TEST_CHECK(cot_sparse_plan_info(p).nnz == MANY * MANY, "%lld entries", (long long)cot_sparse_plan_info(p).nnz);
    for (int i = 0; i < MANY; i++) at[i] = 0.3 + 0.1 * sin(i);
    far = cot_tensor(t, COT_F64, COT_SHAPE(MANY), at);
    TEST_CHECK(p && cot_sparse_jacobian_of(p, while_chain, NULL, 1, &far, 1, values) == COT_OK, "values");
    while_chain(1, &far, 1, &y, NULL);
    cot_jacobian(1, &y, 1, &far, COT_AUTO, want);
    if (test_tape_ok(t, "a long chain")) {
        spread(cot_sparse_plan_info(p), values, have);
        near("a long chain", "Jacobian", 0, MANY * MANY, have, want);
    }
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
    test_verdict();
}

static void a_no_grad_scope_makes_no_difference(void **state) {
    (void)state;
    for (int k = 0; k < TEST_COUNT(bodies); k++) {
        double    at[N] = {0.3, -0.2, 0.7, 0.1, -0.9, 0.5};
        cot_tape *t     = cot_tape_create(NULL);
        cot_var   x     = cot_tensor(t, COT_F64, COT_SHAPE(N), at);
        cot_no_grad_open(t);
        cot_sparse_plan *p = cot_sparse_jacobian_plan_of(bodies[k].f, NULL, 1, &x, 1, COT_AUTO);
        TEST_CHECK(cot_sparse_plan_info(p).nnz == bodies[k].nnz, "%s: %lld entries", bodies[k].name,
                   (long long)cot_sparse_plan_info(p).nnz);
        cot_sparse_plan_destroy(p);
        cot_no_grad_close(t);
        test_tape_ok(t, bodies[k].name);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* A hundred thousand elements: 2 N entries instead of N², and as many bytes. */
static void a_stencil_in_a_scan_stays_linear(void **state) {
    (void)state;
    enum { MANY = 100000, STEPS = 3 };
    cot_tape        *t = cot_tape_create(NULL);
    cot_var          x = cot_tensor(t, COT_F64, COT_SHAPE(MANY), NULL);
    cot_sparse_plan *p = cot_sparse_jacobian_plan_of(in_checkpoint, NULL, 1, &x, 1, COT_AUTO),
                    *q = cot_sparse_jacobian_plan_of(in_scan, NULL, 1, &x, 1, COT_AUTO);
    TEST_CHECK(cot_sparse_plan_info(p).nnz == 2 * MANY && cot_sparse_plan_info(p).colours == 2, "checkpoint");
    TEST_CHECK(cot_sparse_plan_info(q).nnz == 3 * MANY && cot_sparse_plan_info(q).colours <= 4, "scan");
    test_tape_ok(t, "large");
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_destroy(q);
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- a branch that cannot be played here ----------------------------------------------------- */

/* Inside a scan the branch that is not taken may have positions out of range: cond(i < 3, x[i + 3],
 * x[i]). It counts, densely. */
BODY(beyond) {
    UNUSED;
    ys[0] = cot_take(xs[1], cot_add(xs[0], 3), 0);
    return 0;
}
BODY(here) {
    UNUSED;
    ys[0] = cot_take(xs[1], xs[0], 0);
    return 0;
}
BODY(pick) {
    UNUSED;
    cot_var x = *(cot_var *)user, in[2] = {xs[0], x}, z, inside = cot_less(xs[0], 3),
            reached = cot_greater(cot_sum(cot_square(x), COT_ALL), -1.0);
    if (cot_cond(cot_logical_and(inside, reached), beyond, here, NULL, 2, in, 1, &z)) return 1;
    ys[0] = cot_add(xs[1], cot_mul(cot_one_hot(xs[0], N, COT_F64), cot_square(z)));
    return 0;
}
BODY(picks) {
    UNUSED;
    cot_var x = xs[0], zero = cot_zeros(x.tape, COT_F64, COT_SHAPE(N));
    return cot_fori(pick, &x, 2, 5, 1, &zero, ys, NULL);
}

static void a_branch_that_fails_where_it_is_not_taken_counts(void **state) {
    (void)state;
    int64_t nnz[2];
    serve("picks", picks, NULL, true, 0, nnz);
    TEST_CHECK(nnz[0] == N * N, "%lld entries",
               /* x[0] is one that only the failing branch of step 3 or 4 can bring */
               (long long)nnz[0]);
    test_verdict();
}

/* ---- a batch of loops ------------------------------------------------------------------------ */

/* Elements that have ended borrow the state and the captures of another element: that must bring no
 * entries of the other element. */
BODY(below_two) { UNUSED; ys[0] = cot_less(xs[0], 2.0); return 0; }
BODY(grows) { UNUSED; ys[0] = cot_add(cot_mul(1.3, xs[0]), cot_add(0.1, cot_square(*(cot_var *)user))); return 0; }
BODY(one_loop) {
    UNUSED;
    cot_var c = xs[1];
    return cot_while(below_two, grows, &c, 1, xs, ys, NULL) != COT_OK;
}
BODY(batch_of_loops) {
    UNUSED;
    cot_var in[2] = {xs[0], cot_roll(xs[0], 1, 0)};
    return cot_vmap(one_loop, NULL, 2, in, (int[]){0, 0}, 1, ys, NULL) != COT_OK;
}

static void elements_of_a_batch_of_loops_stay_apart(void **state) {
    (void)state;
    int64_t nnz[2];
    serve("batch of loops", batch_of_loops, NULL, true, 0, nnz);
    TEST_CHECK(nnz[0] == 2 * N && nnz[1] == 3 * N, "%lld and %lld entries", (long long)nnz[0], (long long)nnz[1]);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_as_sparse_as_bodies),
        cmocka_unit_test(a_while_that_did_not_run_counts),
        cmocka_unit_test(a_no_grad_scope_makes_no_difference),
        cmocka_unit_test(a_long_chain_in_a_while_ends),
        cmocka_unit_test(a_stencil_in_a_scan_stays_linear),
        cmocka_unit_test(a_branch_that_fails_where_it_is_not_taken_counts),
        cmocka_unit_test(elements_of_a_batch_of_loops_stay_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
