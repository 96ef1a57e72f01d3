/* call_test.h: a function and the program of it, as functions of one kind, for tests that compare
 * the two. */
#ifndef CALL_TEST_H
#define CALL_TEST_H

#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

/* A vector and a number of a matrix, a vector and a number. */
static inline void vector_and_number(const cot_var *xs, cot_var *ys) {
    cot_var h = cot_tanh(cot_add(cot_matmul(xs[0], xs[1]), xs[2]));
    ys[0] = cot_mul(h, cot_softmax(cot_matmul(cot_transpose(xs[0]), h), -1));
    ys[1] = cot_sum(cot_mul(cot_exp(cot_mul(h, 0.5)), xs[1]), COT_ALL);
}

/* p NULL: the function is recorded. */
typedef struct either { cot_fn f; cot_program *p; } either;

static inline int run_either(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    either *e = user;
    return e->p ? cot_program_call(e->p, n, xs, m, ys) != COT_OK : e->f(n, xs, m, ys, NULL);
}

static inline void make_pair(cot_fn f, int n, const cot_type *types, int m, either two[2]) {
    two[0] = (either){f, NULL};
    two[1] = (either){f, cot_compile(f, NULL, n, types, m, NULL)};
    assert_string_equal(cot_program_message(two[1].p), "");
}

#endif
