/* points.h: points at which operations are tried: random numbers that depend on a name only, points
 * of an operation's domain, and functions of leaves with their inputs. Knows no test program. */
#ifndef COT_TEST_POINTS_H
#define COT_TEST_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/elementwise/elementwise.h"

#define TEST_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

typedef struct test_random { uint64_t state; } test_random;
/* The same name gives the same numbers, whatever else is tested. */
test_random test_random_of(const char *name, int stream);
double      test_uniform(test_random *r, double lo, double hi);

/* Records an elementwise operation through its public function. */
cot_var test_call(int op, const cot_var *xs);
/* A point of the operation's domain. Operands of kind NONE of an operation that has a derivative
 * are non-negative integers. */
void test_sample(int op, test_random *r, double x[3]);

enum { TEST_MAX_INPUTS = 4, TEST_MAX_SIZE = 64 };

typedef struct test_input {
    cot_shape shape;
    bool      fixed; /* a constant, not a leaf */
    double    data[TEST_MAX_SIZE], direction[TEST_MAX_SIZE];
} test_input;

/* A function of leaves, and the point at which it is checked. */
typedef struct test_function {
    const char  *name;
    cot_function f;
    void        *user;
    int          n;
    test_input   in[TEST_MAX_INPUTS];
} test_function;

int64_t test_shape_size(const cot_shape *s);
/* Fills data from lo to hi and directions from -1 to 1. */
void test_fill(test_function *f, test_random *r, double lo, double hi);
/* Input k as a leaf of this dtype; a constant if it is fixed. */
cot_var test_input_of(cot_tape *t, cot_dtype dtype, const test_input *in, const double *numbers);

#endif
