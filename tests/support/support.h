/* support.h: the common part of tests of rules:
 *   a record of failures, so that a loop over a table goes on to its end;
 *   random numbers that depend on a name only;
 *   elementwise operations by number;
 *   checks of derivatives: jvp against differences, vjp against jvp by inner product, higher
 *       orders, numbers against recorded operations, f32 against f64. */
#ifndef COT_TEST_SUPPORT_H
#define COT_TEST_SUPPORT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "ops/elementwise/elementwise.h"

#define TEST_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* ---- failures -------------------------------------------------------------------------------- */

/* Notes a failure (the first few are printed) and goes on. test_verdict fails the test if there
 * were any. */
void test_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void test_verdict(void);
#define TEST_CHECK(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition)) test_note(__VA_ARGS__);                                                                      \
    } while (0)
/* Is the tape without error? Otherwise notes its message under this name. */
bool test_tape_ok(const cot_tape *t, const char *name);

/* Is COT_TEST_SMALL set? Sanitizer builds set it, to sample less. */
bool test_small(void);
bool test_defers(void); /* COT_TEST_DEFER: see support.c */

/* ---- numbers --------------------------------------------------------------------------------- */

typedef struct test_random { uint64_t state; } test_random;
/* The same name gives the same numbers, whatever else is tested. */
test_random test_random_of(const char *name, int stream);
double      test_uniform(test_random *r, double lo, double hi);

/* Rounds to f32 and back. gcc 12 drops this round trip from short unrolled loops (seen with -O2 and
 * its SLP vectoriser), so it is a function. */
double test_f32(double x);

/* Do a and b have the same bits? Any two NaN are the same. */
bool test_same(double a, double b);
/* Do a and b have the same bits? Zeros of either sign are the same. */
bool test_equal(double a, double b);
/* Do two arrays have the same bits? Otherwise notes where they differ. */
bool test_same_array(const char *what, const char *name, int64_t n, const double *a, const double *b);

/* |a - b| in units of the last place of b in a format of so many bits (53, 24). Both NaN or equal
 * infinities: 0. */
double test_ulps(double a, long double b, int bits);

/* ---- operations ------------------------------------------------------------------------------ */

/* Records an elementwise operation through its public function. */
cot_var test_call(int op, const cot_var *xs);
/* A point of the operation's domain. Operands of kind NONE of an operation that has a derivative
 * are non-negative integers. */
void test_sample(int op, test_random *r, double x[3]);

/* ---- derivatives ----------------------------------------------------------------------------- */

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

/* Each of these notes differences. test_differences returns false, without a note, where the
 * function is not smooth: take another point. The functions without an order check y itself, or the
 * loss Σ c (y + y²/2), which makes linear functions curved. */
/* The order-th directional derivative against differences of the derivative below it. */
bool test_differences(const test_function *f, int order);
void test_transpose(const test_function *f);              /* ⟨ȳ, J v⟩ = ⟨Jᵀ ȳ, v⟩ */
/* forward over reverse = reverse over reverse */
void test_second_order(const test_function *f);
/* cot_backward = cot_grad_of, to the bit, in f64 and f32 */
void test_numbers_as_recorded(const test_function *f);
void test_single_precision(const test_function *f);       /* f32 near f64: value and gradient */

#endif
