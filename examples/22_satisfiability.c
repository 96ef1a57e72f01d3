/* Satisfiability, relaxed.
 *
 * A formula of three-literal clauses asks for truth values. Let each variable be a number between 0
 * and 1 instead, the chance that it is true: then the chance that a clause fails is the product of
 * its literals' chances to be false, the sum of these over all clauses is smooth, and its gradient
 * says which way each variable should go. Descending from random starts, rounding and counting
 * finds assignments that satisfy every clause, and the count proves them. */
#include <cotangent.h>
#include <stdint.h>
#include <stdio.h>

enum { VARIABLES = 80, CLAUSES = 260, STEPS = 150, STARTS = 20 };

typedef struct formula {
    int64_t variable[CLAUSES][3];
    double  negated[CLAUSES][3]; /* 1: the literal is "not" */
} formula;

/* Random clauses, all of which hold for a hidden assignment. */
static void plant(cot_tape *t, cot_key key, formula *f) {
    int64_t hidden[VARIABLES];
    for (int k = 0, n = 0; n < CLAUSES; k++) {
        cot_mark m = cot_tape_mark(t);
        double   draw[7];
        if (k == 0) {
            double coin[VARIABLES];
            cot_read(cot_uniform(t, cot_key_fold(key, 0), COT_F64, COT_SHAPE(VARIABLES), 0, 2), coin, VARIABLES);
            for (int v = 0; v < VARIABLES; v++) hidden[v] = coin[v] >= 1;
        }
        cot_read(cot_uniform(t, cot_key_fold(key, (uint64_t)k + 1), COT_F64, COT_SHAPE(6), 0, 1), draw, 6);
        int holds = 0;
        for (int j = 0; j < 3; j++) {
            f->variable[n][j] = (int64_t)(draw[j] * VARIABLES);
            f->negated[n][j]  = draw[3 + j] < 0.5;
            holds |= hidden[f->variable[n][j]] != (int64_t)f->negated[n][j];
        }
        n += holds;
        cot_tape_rewind(t, m);
    }
}

/* The expected number of clauses that fail, where variable v is true with chance sigmoid(z[v]). */
static cot_var failing(cot_var z, const formula *f) {
    cot_tape *t = cot_tape_of(z);
    cot_var   variable = cot_data(t, COT_I64, COT_SHAPE(CLAUSES, 3), f->variable);
    cot_var   negated = cot_data(t, COT_F64, COT_SHAPE(CLAUSES, 3), f->negated);
    cot_var   chance = cot_take(cot_sigmoid(z), variable, 0);
    /* not x: false with chance x; x: false with chance 1 - x */
    cot_var   fails = cot_where(negated, chance, cot_sub(1.0, chance));
    return cot_sum(cot_prod(fails, COT_AXES(1)), COT_ALL);
}

static int count_failing(const double *z, const formula *f) {
    int n = 0;
    for (int k = 0; k < CLAUSES; k++) {
        int holds = 0;
        for (int j = 0; j < 3; j++) holds |= (z[f->variable[k][j]] > 0) != (f->negated[k][j] != 0);
        n += !holds;
    }
    return n;
}

int main(void) {
    static formula f;
    cot_tape      *t = cot_tape_create(NULL);
    cot_key        key = cot_key_of(7);
    int            fail = CLAUSES;
    plant(t, cot_key_fold(key, 1), &f);
    printf("%d clauses over %d variables\n", CLAUSES, VARIABLES);
    for (uint64_t start = 0; fail > 0 && start < STARTS; start++) {
        double   m[VARIABLES] = {0}, v[VARIABLES] = {0}, z[VARIABLES];
        void    *ms[] = {m}, *vs[] = {v};
        cot_mark all = cot_tape_mark(t);
        cot_var  x = cot_leaf(cot_normal(t, cot_key_fold(key, 2 + start), COT_F64, COT_SHAPE(VARIABLES)));
        cot_mark mark = cot_tape_mark(t);
        for (int step = 1; step <= STEPS; step++, cot_tape_rewind(t, mark)) {
            cot_zero_grad(x);
            cot_backward(failing(x, &f));
            cot_adamw_step(1, &x, ms, vs, (cot_adamw){.step = step, .rate = 0.2});
        }
        cot_read(x, z, VARIABLES);
        fail = count_failing(z, &f);
        printf("start %2d: %d fail\n", (int)start + 1, fail);
        if (cot_tape_status(t) != COT_OK) break;
        cot_tape_rewind(t, all);
    }
    if (cot_tape_status(t) != COT_OK) fprintf(stderr, "%s\n", cot_tape_message(t));
    int wrong = fail != 0 || cot_tape_status(t) != COT_OK;
    printf("%s\n", wrong ? "nothing was found" : "satisfied, which the count proves");
    cot_tape_destroy(t);
    return wrong;
}
