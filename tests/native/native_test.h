/* native_test.h: a small function to compile, and what is expected of it. */
#ifndef NATIVE_TEST_H
#define NATIVE_TEST_H

#include "native_folder.h"
#include "support/body_test.h"

#include <cotangent_program.h>

/* ---- a function ------------------------------------------------------------------------------ */

enum { SIZE = 37 };

/* An array, a sum that leaves it, and scalars. */
BODY(curve) {
    UNUSED;
    cot_var a = cot_add(cot_mul(cot_exp(xs[0]), xs[1]), cot_sin(xs[0]));
    ys[0] = a;
    ys[1] = cot_sum(a, COT_ALL);
    ys[2] = cot_add(cot_mul(xs[1], xs[1]), 3.0);
    return 0;
}

static const cot_type curve_types[2] = {{COT_F64, {1, {SIZE}}}, {COT_F64, {0, {0}}}};

typedef struct results { double a[SIZE], sum, scalar; } results;

static inline results run_curve(cot_run *r, double shift) {
    double  x[SIZE], y = 0.7 + shift;
    results z;
    memset(&z, 0, sizeof z);
    for (int i = 0; i < SIZE; i++) x[i] = shift + sin((double)i);
    assert_int_equal(cot_program_run(r, (const void *[]){x, &y}, (void *[]){z.a, &z.sum, &z.scalar}), COT_OK);
    return z;
}

static inline cot_program *compile_curve(bool native) {
    cot_program *p = cot_compile(curve, NULL, 2, curve_types, 3, &(cot_compile_options){.native = native});
    assert_non_null(p);
    assert_string_equal(cot_program_message(p), "");
    return p;
}

/* What the library gives. */
static inline results plain_curve(double shift) {
    cot_program *p = compile_curve(false);
    cot_run     *r = cot_run_create(p);
    results      z = run_curve(r, shift);
    cot_run_destroy(r);
    cot_program_destroy(p);
    return z;
}

/* Two runs have the library's results, whatever the state. */
static inline void assert_runs(cot_program *p) {
    cot_run *r = cot_run_create(p);
    for (int k = 0; k < 2; k++) {
        results got = run_curve(r, k), want = plain_curve(k);
        assert_memory_equal(&got, &want, sizeof got);
    }
    cot_run_destroy(r);
}

/* Compiles, waits, and runs: it must end so, with these words in its sentence. */
static inline void assert_ends(cot_native_state state, const char *words) {
    cot_program *p = compile_curve(true);
    cot_native_state got = cot_program_native(p, true);
    if (got != state || !strstr(cot_program_native_message(p), words)) fail_msg("%s", cot_program_native_message(p));
    assert_runs(p);
    cot_program_destroy(p);
}

#endif
