/* pair_test.h: compares a function made of transformations with the same computation in plain C:
 * both must give the same numbers. */
#ifndef COT_PAIR_TEST_H
#define COT_PAIR_TEST_H

#include "support/body_test.h"
#include "support/support.h"

#include <math.h>

typedef struct pair {
    const char  *name;
    cot_function ours, plain;
    int          n;
    int64_t      shapes[2][3]; /* rank, extents */
    /* there is an f32 inside, so differences are of no use */
    bool         f64_only;
} pair;

static inline test_function function_at(const pair *p, int round, cot_function f) {
    test_function q = {.name = p->name, .f = f, .n = p->n};
    for (int k = 0; k < q.n; k++) {
        q.in[k].shape.ndim = (int)p->shapes[k][0];
        for (int j = 0; j < q.in[k].shape.ndim; j++) q.in[k].shape.dim[j] = p->shapes[k][j + 1];
    }
    test_random random = test_random_of(q.name, round);
    test_fill(&q, &random, -1.5, 1.5);
    return q;
}

static inline void leaves_of(const test_function *f, cot_tape *t, cot_var *xs) {
    for (int k = 0; k < f->n; k++)
        xs[k] = f->in[k].shape.ndim ? cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data)
                                    : cot_scalar(t, f->in[k].data[0]);
}

static inline void directions_of(const test_function *f, cot_tape *t, cot_var *d) {
    for (int k = 0; k < f->n; k++) d[k] = cot_data(t, COT_F64, f->in[k].shape, f->in[k].direction);
}

/* Appends the elements of x to the first n numbers of out. Returns the new number of numbers. */
static inline int append(cot_var x, double *out, int n) {
    return cot_read(x, out + n, cot_size(x)), n + (int)cot_size(x);
}

static inline void tape_is_sound(const cot_tape *t, const char *name) {
    char why[300];
    if (test_tape_ok(t, name)) TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "%s: %s", name, why);
}

/* `numbers` writes the numbers that are compared, and returns how many. The allowed difference is a
 * part of each number (at least of 1), or a part of the largest number. */
typedef struct allowance { double of_each, of_largest; } allowance;

static inline void assert_pair_agrees(const pair *p, int rounds, int (*numbers)(const test_function *f, double *out),
                                      allowance allowed) {
    for (int round = 0; round < rounds; round++) {
        test_function ours = function_at(p, round, p->ours), plain = function_at(p, round, p->plain);
        double        a[512] = {0}, b[512] = {0}, largest = 1;
        int           n = numbers(&ours, a), m = numbers(&plain, b);
        TEST_CHECK(n == m, "%s: %d numbers, not %d", ours.name, n, m);
        for (int k = 0; k < m; k++) largest = fmax(largest, fabs(b[k]));
        for (int k = 0; k < n && n == m; k++)
            TEST_CHECK(fabs(a[k] - b[k]) <= allowed.of_each * (1 + fabs(b[k])) + allowed.of_largest * largest,
                       "%s: number %d of %d is %.17g, not %.17g", ours.name, k, n, a[k], b[k]);
    }
}

#endif
