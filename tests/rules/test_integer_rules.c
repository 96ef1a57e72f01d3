/* Elementwise operations on integers, for every row of rules.def, and the dtypes that operands of
 * different ones are promoted to. */
#include "rules/elementwise_ids.h"
#include "support/support.h"

#include "backend/cpu/elementwise/blocks.h"

#include <math.h>
#include <string.h>

#define EACH_OP(op) for (int op = 0; op < OP_elementwise_count; op++)
#define INFO(op) (&cot__elementwise_table[op])

/* ---- integers -------------------------------------------------------------------------------- */

typedef int64_t whole;
static whole w_of(uint64_t v) { return (whole)v; }
static whole i_pow(whole x, whole y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    uint64_t r = 1;
    for (whole i = 0; i < y; i++) r *= (uint64_t)x;
    return w_of(r);
}
static whole i_fmod(whole x, whole y) { return y == 0 || y == -1 ? 0 : x % y; }
static whole i_mod(whole x, whole y) {
    whole r = i_fmod(x, y);
    return r && (r < 0) != (y < 0) ? r + y : r;
}
#define I1(name, value)                                                                                                \
    static whole i_##name##_(whole x, whole y, whole w) {                                                              \
        (void)x, (void)y, (void)w;                                                                                     \
        return (value);                                                                                                \
    }
I1(neg, w_of(0 - (uint64_t)x)) I1(abs, x < 0 ? w_of(0 - (uint64_t)x) : x) I1(sign, x > 0 ? 1 : x < 0 ? -1 : 0)
I1(square, w_of((uint64_t)x * (uint64_t)x))
I1(relu, x > 0 ? x : 0) I1(same, x) I1(zero, 0) I1(one, 1) I1(not, x == 0) I1(add, w_of((uint64_t)x + (uint64_t)y))
I1(sub, w_of((uint64_t)x - (uint64_t)y))
I1(mul, w_of((uint64_t)x * (uint64_t)y)) I1(pow, i_pow(x, y)) I1(maximum, x > y ? x : y) I1(minimum, x < y ? x : y)
I1(fmod, i_fmod(x, y))
I1(remainder, i_mod(x, y)) I1(equal, x == y) I1(not_equal, x != y) I1(less, x < y) I1(less_equal, x <= y)
I1(greater, x > y)
I1(greater_equal, x >= y) I1(and, x && y) I1(or, x || y) I1(where, x ? y : w)
I1(clamp, (x > y ? x : y) < w ? (x > y ? x : y) : w)
I1(fma, w_of((uint64_t)x * (uint64_t)y + (uint64_t)w))

static const struct { const char *name; whole (*value)(whole, whole, whole);
} whole_references[] = {
    {"neg", i_neg_},         {"abs", i_abs_},
    {"sign", i_sign_},       {"square", i_square_},
    {"relu", i_relu_},       {"floor", i_same_},
    {"ceil", i_same_},       {"round", i_same_},
    {"trunc", i_same_},      {"isnan", i_zero_},
    {"isinf", i_zero_},      {"isfinite", i_one_},
    {"logical_not", i_not_}, {"add", i_add_},
    {"sub", i_sub_},         {"mul", i_mul_},
    {"smul", i_mul_},        {"pow", i_pow_},
    {"maximum", i_maximum_}, {"minimum", i_minimum_},
    {"fmod", i_fmod_},       {"remainder", i_remainder_},
    {"equal", i_equal_},     {"not_equal", i_not_equal_},
    {"less", i_less_},       {"less_equal", i_less_equal_},
    {"greater", i_greater_}, {"greater_equal", i_greater_equal_},
    {"logical_and", i_and_}, {"logical_or", i_or_},
    {"where", i_where_},     {"clamp", i_clamp_},
    {"fma", i_fma_},
};

static whole wrap_to(cot_dtype d, whole v) {
    switch (d) {
    case COT_I32: return (whole)(uint32_t)v - (v & 0x80000000 ? INT64_C(0x100000000) : 0);
    case COT_U8: return v & 0xff;
    case COT_BOOL: return v != 0;
    default: return v;
    }
}

/* Bools stay bools: true + true is true, as in NumPy and JAX. */
static cot_dtype whole_result(int op, cot_dtype d) { return INFO(op)->class == TEST ? COT_BOOL : d; }

static void integers_wrap_like_c(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_I64, COT_I32, COT_U8, COT_BOOL};
    static const whole     extremes[] = {
            0, 1, -1, 2, 7, -7, 255, 128, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 33};
    enum { N = 300 };
    static whole x[3][N], out[N];
    cot_tape    *t = cot_tape_create(NULL);
    EACH_OP(op) {
        if (INFO(op)->class == REAL) continue;
        int found = -1;
        for (int i = 0; i < TEST_COUNT(whole_references); i++)
            if (strcmp(whole_references[i].name, INFO(op)->name) == 0) found = i;
        if (found < 0) {
            test_note("%s takes integers but has no integer reference: add one to `whole_references` in "
                      "tests/rules/test_rules.c",
                      INFO(op)->name);
            continue;
        }
        for (int d = 0; d < TEST_COUNT(dtypes); d++) {
            cot_mark    m = cot_tape_mark(t);
            test_random random = test_random_of(INFO(op)->name, 120 + d);
            cot_var     xs[3];
            for (int k = 0; k < 3; k++) {
                for (int i = 0; i < N; i++) {
                    whole v = i < 13 * 13 ? extremes[(k ? i / 13 : i) % 13] : (whole)test_uniform(&random, -40, 40);
                    if (op == OP_pow && k == 1) v = v > 64 || v < -64 ? v % 64 : v;
                    x[k][i] = wrap_to(dtypes[d], v);
                }
                xs[k] = cot_cast(cot_data(t, COT_I64, COT_SHAPE(N), x[k]), dtypes[d]);
            }
            cot_var   z = test_call(op, xs);
            cot_dtype result = whole_result(op, dtypes[d]);
            TEST_CHECK(cot_dtype_of(z) == result, "%s of %s has dtype %s", INFO(op)->name, cot_dtype_name(dtypes[d]),
                       cot_dtype_name(cot_dtype_of(z)));
            cot_read_as(z, COT_I64, out, N);
            if (!test_tape_ok(t, INFO(op)->name)) break;
            for (int i = 0; i < N; i++) {
                whole want = wrap_to(result, whole_references[found].value(x[0][i], x[1][i], x[2][i]));
                TEST_CHECK(out[i] == want, "%s of %s (%lld, %lld, %lld) = %lld, expected %lld", INFO(op)->name,
                           cot_dtype_name(dtypes[d]), (long long)x[0][i], (long long)x[1][i], (long long)x[2][i],
                           (long long)out[i], (long long)want);
            }
            for (int i = 0; i < 20; i++) { /* 0-d values take another path */
                for (int k = 0; k < 3; k++) xs[k] = cot_cast(cot_data(t, COT_I64, COT_SCALAR, &x[k][i]), dtypes[d]);
                whole v = cot_value_i64(test_call(op, xs));
                TEST_CHECK(v == out[i], "%s of %s: 0-d %lld, tensor %lld", INFO(op)->name, cot_dtype_name(dtypes[d]),
                           (long long)v, (long long)out[i]);
            }
            cot_tape_rewind(t, m);
        }
    }
    cot_tape_destroy(t);
    test_verdict();
}

static void real_operations_on_integers_are_f64(void **state) {
    (void)state;
    static const cot_dtype dtypes[] = {COT_I64, COT_I32, COT_U8, COT_BOOL};
    enum { N = 12 };
    static const double x[3][N] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 100, 200, 1},
                                   {1, 2, 1, 3, 5, 2, 7, 1, 3, 0, 11, 1},
                                   {2, 1, 0, 1, 0, 1, 0, 1, 0, 3, 0, 1}};
    cot_tape           *t = cot_tape_create(NULL);
    EACH_OP(op) for (int d = 0; INFO(op)->class == REAL && d < TEST_COUNT(dtypes); d++) {
        cot_mark m = cot_tape_mark(t);
        cot_var  xs[3], fs[3];
        double   a[N], b[N];
        for (int k = 0; k < 3; k++) {
            xs[k] = cot_cast(cot_data(t, COT_F64, COT_SHAPE(N), x[k]), dtypes[d]);
            fs[k] = cot_cast(xs[k], COT_F64);
        }
        cot_var z = test_call(op, xs);
        TEST_CHECK(cot_dtype_of(z) == COT_F64, "%s of %s has dtype %s", INFO(op)->name, cot_dtype_name(dtypes[d]),
                   cot_dtype_name(cot_dtype_of(z)));
        cot_read(z, a, N);
        cot_read(test_call(op, fs), b, N);
        if (!test_tape_ok(t, INFO(op)->name)) break;
        test_same_array(cot_dtype_name(dtypes[d]), INFO(op)->name, N, a, b);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- promotion ------------------------------------------------------------------------------- */

enum { D = COT_F64, S = COT_F32, B = COT_BF16, H = COT_F16, L = COT_I64, I = COT_I32, U = COT_U8, T = COT_BOOL };
/* JAX with 64-bit types: a float wins over any integer; bf16 and f16 meet in f32. */
static const unsigned char selected[COT_DTYPE_COUNT][COT_DTYPE_COUNT] = {
    /*       f64 f32 b16 f16 i64 i32 u8 bool */
    /* f64 */ {D, D, D, D, D, D, D, D},
    /* f32 */ {D, S, S, S, S, S, S, S},
    /* b16 */ {D, S, B, S, B, B, B, B},
    /* f16 */ {D, S, S, H, H, H, H, H},
    /* i64 */ {D, S, B, H, L, L, L, L},
    /* i32 */ {D, S, B, H, L, I, I, I},
    /* u8  */ {D, S, B, H, L, I, U, U},
    /* bool*/ {D, S, B, H, L, I, U, T},
};

static cot_dtype as_divided(cot_dtype d) { return d >= COT_I64 ? COT_F64 : d; }
static cot_dtype as_selected(cot_dtype d) { return d; }
static cot_dtype as_compared(cot_dtype d) {
    (void)d;
    return COT_BOOL;
}

static void dtypes_promote_as_in_jax(void **state) {
    (void)state;
    static const struct { int op; cot_dtype (*result)(cot_dtype);
    } cases[]                = {{OP_add, as_selected},
                                {OP_mul, as_selected},
                                {OP_div, as_divided},
                                {OP_maximum, as_selected},
                                {OP_equal, as_compared}};
    const cot_shape shapes[] = {COT_SCALAR, COT_SHAPE(2)};
    cot_tape       *t = cot_tape_create(NULL);
    for (int c = 0; c < TEST_COUNT(cases); c++)
        for (int a = 0; a < COT_DTYPE_COUNT; a++)
            for (int b = 0; b < COT_DTYPE_COUNT; b++)
                for (int s = 0; s < 4; s++) {
                    cot_var   xs[2] = {cot_full(t, (cot_dtype)a, shapes[s % 2], 1),
                                       cot_full(t, (cot_dtype)b, shapes[s / 2], 1)};
                    cot_dtype want  = cases[c].result((cot_dtype)selected[a][b]),
                              have  = cot_dtype_of(test_call(cases[c].op, xs));
                    TEST_CHECK(have == want, "%s of %s and %s is %s, expected %s", INFO(cases[c].op)->name,
                               cot_dtype_name((cot_dtype)a), cot_dtype_name((cot_dtype)b), cot_dtype_name(have),
                               cot_dtype_name(want));
                }
    test_tape_ok(t, "promotion");
    cot_tape_destroy(t);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_wrap_like_c),
        cmocka_unit_test(real_operations_on_integers_are_f64),
        cmocka_unit_test(dtypes_promote_as_in_jax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
