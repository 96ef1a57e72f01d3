/* support.h: the common part of tests of rules:
 *   the points of points.h;
 *   a record of failures, so that a loop over a table goes on to its end;
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

#include "support/points.h"

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

/* ---- derivatives ----------------------------------------------------------------------------- */

/* Each of these notes differences. test_differences returns false, without a note, where the
 * function is not smooth: take another point. The functions without an order check y itself, or the
 * loss Σ c (y + y²/2), which makes linear functions curved. */
/* The order-th directional derivative against differences of the derivative below it. */
bool test_differences(const test_function *f, int order);
void test_transpose(const test_function *f);              /* ⟨ȳ, J v⟩ = ⟨Jᵀ ȳ, v⟩ */
/* forward over reverse = reverse over reverse */
void test_second_order(const test_function *f);
/* cot_backward = cot_grad_of, to the bit, in every dtype that the function knows */
void test_numbers_as_recorded(const test_function *f);
void test_single_precision(const test_function *f);       /* f32 near f64: value and gradient */

#endif
