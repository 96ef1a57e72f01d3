/* chain.c: a thousand dependent scalar steps of the logistic map, value and both derivatives. */
#include "workloads/workloads.h"

enum { STEPS = 1000 };

typedef struct chain { cot_tape *t; cot_mark start; cot_var x0, r; } chain;

static void *chain_make(void) {
    chain *c = must(calloc(1, sizeof *c));
    c->t = must(cot_tape_create(NULL));
    c->x0 = cot_scalar(c->t, 0.3);
    c->r = cot_scalar(c->t, 3.7);
    c->start = cot_tape_mark(c->t);
    return c;
}

static double chain_step(void *state) {
    chain  *c = state;
    cot_var x = c->x0;
    for (int k = 0; k < STEPS; k++) x = cot_mul(cot_mul(c->r, x), cot_sub(1.0, x));
    cot_backward(x);
    double derivative = cot_grad_value(c->x0);
    check(c->t);
    cot_tape_zero_grads(c->t);
    cot_tape_rewind(c->t, c->start);
    return derivative;
}

static void chain_destroy(void *state) {
    cot_tape_destroy(((chain *)state)->t);
    free(state);
}

/* The known derivative has eleven digits. The map is chaotic: one multiplication rounded otherwise,
 * and after a hundred steps no digit is left. */
const workload chain_workloads[1] = {
    {"chain", "f64", chain_make, chain_step, chain_destroy, -1.8429505840e+146, 1e-10, NULL},
};
