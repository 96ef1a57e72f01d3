/* Vector kernels: each instruction set has the bits of the plain kernels, also at special values,
 * and bits are the same at every position and length. test_ulps.c measures how near they are to the
 * exact values. */
/* ctest: labels=vmath timeout=300 */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "backend/cpu/elementwise/blocks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/reduce/vexp.h"
#include "base/cpu.h"
#include "base/math/elementary.h"

#define INFO(op) (&cot__elementwise_table[op])
#define EACH_OP(op) for (int op = 0; op < OP_elementwise_count; op++)
#define EACH_VECTOR_ISA(isa) for (cot__isa isa = COT__ISA_AVX2; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1))

/* ---- variants against the plain kernels ------------------------------------------------------ */

static const double specials[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2,
                                  -3,
                                  0x1p-1074,
                                  -0x1p-1070,
                                  0x1p-149,
                                  0x1p-126,
                                  1e-30,
                                  88.7,
                                  -88.7,
                                  90,
                                  -104,
                                  709.7,
                                  -745,
                                  750,
                                  -750,
                                  1e6,
                                  1e22,
                                  -700,
                                  710.2,
                                  89.2,
                                  1.5707963267948966,
                                  -3e7,
                                  1e30,
                                  -1e300,
                                  3.4e38,
                                  (double)INFINITY,
                                  -(double)INFINITY,
                                  (double)NAN};
enum { POINTS = 4000, RANGE = 65 };

typedef struct block { double f64[POINTS]; float f32[POINTS]; } block;
static block g, x[3], z, ours, theirs;

/* Specials in every combination, then samples of the domain. */
static void fill_points(int op) {
    test_random r = test_random_of(INFO(op)->name, 2);
    int         s = TEST_COUNT(specials);
    for (int i = 0; i < POINTS; i++) {
        double p[3];
        test_sample(op, &r, p);
        if (i < 2000) p[0] = specials[i % s], p[1] = specials[i / s % s], p[2] = specials[i * 7 / s % s];
        g.f64[i] = test_f32(i % 11 == 0 ? 0 : i % 11 == 1 ? -0.0 : test_uniform(&r, -2, 2));
        g.f32[i] = (float)g.f64[i];
        for (int k = 0; k < 3; k++) x[k].f64[i] = i % 2 ? test_f32(p[k]) : p[k], x[k].f32[i] = (float)p[k];
    }
}

static void *data_of(block *b, bool f64) { return f64 ? (void *)b->f64 : (void *)b->f32; }
static double element(const block *b, bool f64, int i) { return f64 ? b->f64[i] : (double)b->f32[i]; }

/* Kernel k of the operation (-1: the value), n elements from `at` on. z holds the plain value
 * throughout. */
static void run(const cot__block_kernels *kernels, int k, bool f64, int at, int n, void *to) {
    size_t size = f64 ? sizeof(double) : sizeof(float);
#define FROM(b) ((char *)data_of(b, f64) + (size_t)at * size)
    if (k < 0) kernels->value(n, FROM(&x[0]), FROM(&x[1]), FROM(&x[2]), to);
    else kernels->partial[k](n, FROM(&g), FROM(&x[0]), FROM(&x[1]), FROM(&x[2]), FROM(&z), to);
#undef FROM
}

static bool has_kernel(int op, int k) { return k < 0 || (k < INFO(op)->arity && INFO(op)->partial[k]); }

/* The plain kernels are functions of single numbers, with a software fma; the vector kernels have
 * their bits, values and partials, for every argument. */
static void every_instruction_set_has_the_bits_of_the_plain_kernels(void **state) {
    (void)state;
    EACH_VECTOR_ISA(isa) EACH_OP(op) for (int f64 = 0; f64 < 2; f64++) for (int k = -1; k < 3; k++) {
        cot_dtype d = f64 ? COT_F64 : COT_F32;
        if (!has_kernel(op, k)) continue;
        fill_points(op);
        assert_true(cot__cpu_use(COT__ISA_PLAIN));
        run(cot__blocks(op, d), -1, f64, 0, POINTS, data_of(&z, f64));
        run(cot__blocks(op, d), k, f64, 0, POINTS, data_of(&theirs, f64));
        assert_true(cot__cpu_use(isa));
        run(cot__blocks(op, d), k, f64, 0, POINTS, data_of(&ours, f64));
        for (int i = 0; i < POINTS; i++)
            TEST_CHECK(test_same(element(&ours, f64, i), element(&theirs, f64, i)),
                       "%s: %s kernel %d at (%a, %a, %a; %a): plain %a, %s %a", INFO(op)->name, f64 ? "f64" : "f32", k,
                       element(&x[0], f64, i), element(&x[1], f64, i), element(&x[2], f64, i), element(&g, f64, i),
                       element(&theirs, f64, i), cot__isa_name(isa), element(&ours, f64, i));
    }
    test_verdict();
}

/* Lengths 0 to 65 at offsets 0 to 16: the bits of the element done alone; nothing written beyond;
 * in place too. */
static void bits_do_not_depend_on_position(void **state) {
    (void)state;
    EACH_VECTOR_ISA(isa) {
        assert_true(cot__cpu_use(isa));
        EACH_OP(op) for (int f64 = 0; f64 < 2; f64++) for (int k = -1; k < 3; k++) {
            cot_dtype                 d = f64 ? COT_F64 : COT_F32;
            const cot__block_kernels *kernels = cot__blocks(op, d);
            size_t                    size = f64 ? sizeof(double) : sizeof(float);
            if (!has_kernel(op, k)) continue;
            fill_points(op);
            run(cot__plain_blocks(op, d), -1, f64, 0, POINTS, data_of(&z, f64));
            int first = 1960; /* some specials, some of the domain */
            for (int i = 0; i < 2 * RANGE; i++)
                run(kernels, k, f64, first + i, 1, (char *)data_of(&theirs, f64) + (size_t)(first + i) * size);
            for (int offset = 0; offset <= 16; offset++)
                for (int n = 0; n <= RANGE; n++) {
                    union {
                        double f64[RANGE + 1];
                        float  f32[RANGE + 1];
                        char   bytes[(RANGE + 1) * sizeof(double)];
                    } out;
                    memset(&out, 0x55, sizeof out);
                    run(kernels, k, f64, first + offset, n, &out);
                    for (int i = 0; i < n; i++) {
                        double a = f64 ? out.f64[i] : (double)out.f32[i], b = element(&theirs, f64, first + offset + i);
                        TEST_CHECK(test_same(a, b),
                                   "%s %s %s kernel %d: element %d of %d at offset %d is %.17g, alone %.17g",
                                   cot__isa_name(isa), INFO(op)->name, f64 ? "f64" : "f32", k, i, n, offset, a, b);
                    }
                    for (size_t i = 0; i < size; i++)
                        TEST_CHECK(out.bytes[(size_t)n * size + i] == 0x55, "%s %s kernel %d writes beyond %d elements",
                                   cot__isa_name(isa), INFO(op)->name, k, n);
                    if (k >= 0) continue;
                    block keep = x[0];
                    run(kernels, k, f64, first + offset, n,
                        (char *)data_of(&x[0], f64) + (size_t)(first + offset) * size);
                    for (int i = 0; i < n; i++)
                        TEST_CHECK(test_same(element(&x[0], f64, first + offset + i),
                                             element(&theirs, f64, first + offset + i)),
                                   "%s %s: in place, element %d of %d", cot__isa_name(isa), INFO(op)->name, i, n);
                    x[0] = keep;
                }
        }
    }
    test_verdict();
}

/* One huge argument of a sine among small ones is done again and leaves its neighbours alone. */
static void rare_arguments_are_redone_alone(void **state) {
    (void)state;
    EACH_VECTOR_ISA(isa) {
        assert_true(cot__cpu_use(isa));
        double a[40], b[40], c[40];
        for (int i = 0; i < 40; i++) a[i] = 0.1 * i;
        cot__blocks(OP_sin, COT_F64)->value(40, a, NULL, NULL, b);
        a[17] = 1e22;
        cot__blocks(OP_sin, COT_F64)->value(40, a, NULL, NULL, c);
        for (int i = 0; i < 40; i++) assert_true(i == 17 ? c[i] == cot__sin(1e22) : c[i] == b[i]);
    }
}

static void exponentials_of_arrays_have_the_kernels_bits(void **state) {
    (void)state;
    for (cot__isa isa = COT__ISA_PLAIN; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1)) {
        assert_true(cot__cpu_use(isa));
        double a[RANGE], b[RANGE], e[RANGE];
        float  af[RANGE], bf[RANGE], ef[RANGE];
        for (int i = 0; i < RANGE; i++) a[i] = (i - 30) * 1.37, af[i] = (float)a[i];
        a[3] = (double)NAN, a[7] = -(double)INFINITY, af[5] = -(float)INFINITY;
        for (int n = 0; n <= RANGE; n++) {
            cot__blocks(OP_exp, COT_F64)->value(n, a, NULL, NULL, b);
            cot__blocks(OP_exp, COT_F32)->value(n, af, NULL, NULL, bf);
            cot__exp_f64(n, a, e);
            cot__exp_f32(n, af, ef);
            for (int i = 0; i < n; i++) assert_true(test_same(b[i], e[i]) && test_same((double)bf[i], (double)ef[i]));
        }
    }
    cot__cpu_use(cot__cpu_best());
}

/* What is done with rows of n elements. */
static void check_rows(int n, const double *a, const float *af) {
    double out[RANGE], most = a[0];
    float  out_f[RANGE], most_f = af[0];
    cot__exp_less_f64(n, a, 3.5, out), cot__exp_less_f32(n, af, 3.5f, out_f);
    for (int i = 0; i < n; i++)
        assert_true(test_same(out[i], cot__exp(a[i] - 3.5)) &&
                    test_same((double)out_f[i], (double)cot__expf(af[i] - 3.5f)));
    cot__less_f64(n, a, 3.5, 0.1, out), cot__less_f32(n, af, 3.5f, 0.1f, out_f);
    for (int i = 0; i < n; i++)
        assert_true(test_same(out[i], (a[i] - 3.5) - 0.1) &&
                    test_same((double)out_f[i], (double)((af[i] - 3.5f) - 0.1f)));
    cot__divide_f64(n, out, 3), cot__divide_f32(n, out_f, 3);
    for (int i = 0; i < n; i++) {
        assert_true(test_same(out[i], ((a[i] - 3.5) - 0.1) / 3));
        assert_true(test_same((double)out_f[i], (double)(((af[i] - 3.5f) - 0.1f) / 3)));
        most = a[i] > most || isnan(a[i]) ? a[i] : most;
        most_f = af[i] > most_f || isnan(af[i]) ? af[i] : most_f;
    }
    if (n == 0) return;
    assert_true(test_same(cot__most_f64(n, a), most) && test_same((double)cot__most_f32(n, af), (double)most_f));
}

static void rows_have_the_bits_of_their_elements(void **state) {
    (void)state;
    for (cot__isa isa = COT__ISA_PLAIN; isa <= cot__cpu_best(); isa = (cot__isa)(isa + 1)) {
        assert_true(cot__cpu_use(isa));
        for (int nan = -1; nan < RANGE; nan++) {
            double a[RANGE];
            float  af[RANGE];
            for (int i = 0; i < RANGE; i++) a[i] = (i * 37 % 61 - 30) * 0.37, af[i] = (float)a[i];
            a[2] = -(double)INFINITY, af[3] = -(float)INFINITY;
            if (nan >= 0) a[nan] = (double)NAN, af[nan] = NAN;
            for (int n = 0; n <= RANGE; n++) check_rows(n, a, af);
        }
    }
    cot__cpu_use(cot__cpu_best());
}

static void an_instruction_set_the_processor_lacks_is_refused(void **state) {
    (void)state;
    cot__isa best = cot__cpu_best();
    assert_true(cot__cpu_use(best));
    assert_false(cot__cpu_use((cot__isa)(best + 1)));
    assert_int_equal(cot__cpu_isa(), best);
    assert_true(cot__cpu_use(COT__ISA_PLAIN));
    assert_int_equal(cot__cpu_isa(), COT__ISA_PLAIN);
    assert_true(cot__cpu_use(best));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_has_the_bits_of_the_plain_kernels),
        cmocka_unit_test(bits_do_not_depend_on_position),
        cmocka_unit_test(rare_arguments_are_redone_alone),
        cmocka_unit_test(exponentials_of_arrays_have_the_kernels_bits),
        cmocka_unit_test(rows_have_the_bits_of_their_elements),
        cmocka_unit_test(an_instruction_set_the_processor_lacks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
