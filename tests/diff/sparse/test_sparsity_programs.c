/* Patterns of random programs, bodies within bodies: a plan made at one point gives the dense
 * matrices at others. */
/* ctest: timeout=120 */
#include "diff/sparse/plan_test.h"

#include <stdio.h>

/* Kinds of a program from the outside in, 0 at the end. All keep the shape. */
enum { MOST_DEPTH = 4 };
typedef struct program {
    int kind[MOST_DEPTH + 1], depth;
} program;
typedef struct at_depth {
    const program *p;
    int            depth;
} at_depth;

static int apply(at_depth at, cot_var x, cot_var *y);
BODY(inner) {
    UNUSED;
    return apply(*(at_depth *)user, xs[0], ys);
}
BODY(inner_carry) {
    UNUSED;
    cot_var z;
    if (apply(*(at_depth *)user, xs[0], &z)) return 1;
    ys[0] = cot_add(cot_tanh(z), cot_mul(xs[1], cot_roll(xs[0], 1, 0)));
    ys[1] = cot_mul(z, xs[1]);
    return 0;
}
BODY(inner_count) {
    UNUSED;
    cot_var z;
    if (apply(*(at_depth *)user, xs[1], &z)) return 1;
    ys[0] = cot_add(cot_mul(0.5, z), cot_mul(cot_one_hot(xs[0], N, COT_F64), cot_take(xs[1], xs[0], 0)));
    return 0;
}
BODY(inner_while) {
    UNUSED;
    cot_var z;
    if (apply(*(at_depth *)user, xs[0], &z)) return 1;
    ys[0] = cot_tanh(z);
    ys[1] = cot_add(xs[1], 1.0);
    return 0;
}
BODY(inner_total) {
    UNUSED;
    cot_var z;
    if (apply(*(at_depth *)user, xs[0], &z)) return 1;
    ys[0] = cot_sum(cot_sin(z), COT_ALL);
    return 0;
}
BODY(mild) {
    UNUSED;
    ys[0] = cot_mul(0.3, cot_flip(xs[0], COT_ALL));
    return 0;
}
static int inner_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user) {
    UNUSED;
    cot_var z;
    return cot_fn_jvp(inner, user, 1, xs, dxs, 1, &z, dys);
}
static int inner_vjp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                     void *user) {
    UNUSED;
    cot_var z;
    return cot_fn_vjp(inner, user, 1, xs, 1, &z, ybars, xbars);
}
static const cot_fn_rules inner_rules[2] = {{"forward", NULL, inner_jvp}, {"reverse", inner_vjp, NULL}};

static int apply(at_depth at, cot_var x, cot_var *y) {
    at_depth *in = cot__arena(x.tape, sizeof *in, "test"); /* outlives this call: rules run later */
    if (!in) return 1;
    *in = (at_depth){at.p, at.depth + 1};
    if (at.depth == at.p->depth) {
        *y = cot_add(cot_sin(cot_mul(x, cot_roll(x, 1, 0))), cot_mul(0.2, x));
        return 0;
    }
    cot_var z[2], two[2] = {x, cot_constant(x.tape, 0)};
    switch (at.p->kind[at.depth]) {
    case 0: return cot_checkpoint(inner, in, 1, &x, 1, y);
    case 1: return cot_cond(cot_greater(cot_sum(x, COT_ALL), 0.0), inner, mild, in, 1, &x, 1, y);
    case 2: {
        cot_var slices = cot_stack(2, (cot_var[]){cot_cos(x), cot_full(x.tape, COT_F64, COT_SHAPE(N), 0.4)}, 0);
        if (cot_scan(inner_carry, in, -1, 1, &x, 1, &slices, &z[0], 1, &z[1], NULL)) return 1;
        *y = cot_add(z[0], cot_index(z[1], 0, 1));
        return 0;
    }
    case 3: return cot_fori(inner_count, in, 1, 3, 1, &x, y, NULL);
    case 4:
        if (cot_while(few_steps, inner_while, in, 2, two, z, NULL)) return 1;
        *y = z[0];
        return 0;
    case 5: return cot_custom_fn(&inner_rules[0], inner, in, 1, &x, 1, y);
    case 6: return cot_custom_fn(&inner_rules[1], inner, in, 1, &x, 1, y);
    case 7: return cot_value_and_grad(inner_total, in, 1, &x, NULL, y);
    case 8:
        if (apply(*in, x, &z[0])) return 1;
        *y = cot_sort(z[0], 0, false);
        return 0;
    case 9:
        if (apply(*in, x, &z[0])) return 1;
        *y = cot_mul(cot_take(z[0], cot_argsort(cot_slice(x, 0, 0, N, 1), 0, false), 0), x);
        return 0;
    case 10: {
        cot_var batch = cot_stack(2, (cot_var[]){x, cot_mul(0.5, x)}, 0);
        if (cot_vmap(inner, in, 1, &batch, NULL, 1, &z[0], NULL)) return 1;
        *y = cot_sum(z[0], COT_AXES(0));
        return 0;
    }
    default:
        if (cot_scan(inner, in, 2, 1, &x, 0, NULL, y, 0, NULL, &(cot_loop_options){.states = 1})) return 1;
        return 0;
    }
}

static void random_programs_equal_their_dense_matrices(void **state) {
    (void)state;
    for (int round = 0; round < (test_small() ? 40 : 300); round++) {
        test_random r = test_random_of("bodies", round);
        program     p = {.depth = 1 + (int)test_uniform(&r, 0, 3)};
        char        name[64];
        int         at = snprintf(name, sizeof name, "program %d:", round);
        for (int k = 0; k < p.depth; k++) {
            p.kind[k] = (int)test_uniform(&r, 0, 12);
            at += snprintf(name + at, sizeof name - (size_t)at, " %d", p.kind[k]);
        }
        int64_t  nnz[2];
        at_depth whole = {&p, 0};
        serve(name, inner, &whole, p.depth < 3, round, nnz);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs_equal_their_dense_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
