/* Every structural operation and each of its derivatives, with each allocation failing once: there
 * is an error of memory and no leak. Sanitizer builds also see that no code reads the shape of a
 * failed value. */
/* ctest: timeout=300 */
#include "samples/samples.h"
#include "support/support.h"
#include "support/tape_test.h"

typedef struct job {
    const test_function *f;
    int                  way;
} job;

static int in_a_batch(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    return 0;
}

static void differentiate(cot_tape *t, void *user) {
    const job *j = user;
    cot_var    xs[TEST_MAX_INPUTS], out[TEST_MAX_INPUTS], tangents[TEST_MAX_INPUTS], series[3];
    int        none[TEST_MAX_INPUTS], axes[TEST_MAX_INPUTS] = {0};
    for (int k = 0; k < j->f->n; k++) {
        xs[k]       = cot_tensor(t, COT_F64, j->f->in[k].shape, j->f->in[k].data);
        tangents[k] = cot_number(0.5);
        none[k]     = COT_NOT_BATCHED;
    }
    if (j->way == 3) {
        none[0] = axes[0];
        xs[0]   = cot_stack(2, (cot_var[]){xs[0], xs[0]}, 0);
        cot_vmap(in_a_batch, (void *)(uintptr_t)j->f, j->f->n, xs, none, 1, out, NULL);
        return;
    }
    cot_var y = j->f->f(j->f->n, xs, j->f->user);
    if (j->way == 0) cot_vjp(y, cot_number(1), j->f->n, xs, out);
    if (j->way == 1) cot_jvp(y, j->f->n, xs, tangents);
    if (j->way == 2) cot_taylor(y, j->f->n, xs, 1, tangents, 2, series);
}

/* Some samples are errors in one of the ways, which is no matter of memory: these are left to
 * others. */
static bool can(const job *j) {
    cot_tape *t = cot_tape_create(NULL);
    differentiate(t, (void *)(uintptr_t)j);
    bool fine = cot_tape_status(t) == COT_OK;
    cot_tape_destroy(t);
    return fine;
}

static void every_derivative_of_every_sample_survives_no_memory(void **state) {
    (void)state;
    int judged = 0;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int way = 0; way < 4; way++) {
            test_function f = function_of(&samples[i], i, 0);
            job           j = {&f, way};
            if (!can(&j)) continue;
            judged++;
            assert_survives_no_memory(differentiate, &j, 0, NULL);
        }
    assert_true(judged > 3 * TEST_COUNT(samples));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_derivative_of_every_sample_survives_no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
