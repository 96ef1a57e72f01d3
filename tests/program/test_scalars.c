/* Instructions on slots: those that are joined, or linked so that one takes what the one before has
 * made from a register, or is done behind the same jump, leave in every slot what each would have
 * left. */
#include "program/scalars/scalars.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { SLOTS = 4 };

static const double points[] = {0, -0.0, 1, -3, 0.1, 1e300, -1e-300, INFINITY, -INFINITY, NAN};

static void fill(cot__slot *slots, cot_dtype dtype, int at) {
    for (int k = 0; k < SLOTS; k++) {
        double x = points[(at * (k + 1) + k * k) % TEST_COUNT(points)];
        slots[k] = (cot__slot){.bits = 0};
        if (dtype == COT_F64) slots[k].f64 = x;
        else slots[k].f32 = (float)x;
    }
}

static void run(const cot__scalar *first, int n, cot__slot *slots) {
    cot__scalar code[4];
    memcpy(code, first, (size_t)n * sizeof *code);
    cot__scalars_link(code, (uint32_t)n);
    cot__scalars_run(code, slots);
}

static void assert_same(cot_dtype dtype, const cot__slot *a, const cot__slot *b) {
    for (int k = 0; k < SLOTS; k++) {
        double x = dtype == COT_F64 ? a[k].f64 : (double)a[k].f32, y = dtype == COT_F64 ? b[k].f64 : (double)b[k].f32;
        if (!test_same(x, y)) fail_msg("slot %d: %g is not %g", k, x, y);
    }
}

/* Does a list of n do what a and b do by themselves? */
static void check_list(cot_dtype dtype, cot__scalar a, cot__scalar b, const cot__scalar *list, int n) {
    for (int at = 0; at < 3 * TEST_COUNT(points); at++) {
        cot__slot apart[SLOTS], together[SLOTS];
        fill(apart, dtype, at);
        fill(together, dtype, at);
        run(&a, 1, apart);
        run(&b, 1, apart);
        run(list, n, together);
        assert_same(dtype, apart, together);
    }
}

/* Returns whether they could be joined. */
static bool check_pair(cot_dtype dtype, cot__scalar a, cot__scalar b) {
    cot__scalar joined = a;
    if (!cot__scalars_join(&joined, &b)) return false;
    check_list(dtype, a, b, &joined, 1);
    return true;
}

static void joined_instructions_do_what_both_do(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32};
    static const int       first[] = {OP_mul, OP_smul, OP_add}, second[] = {OP_add, OP_sub, OP_mul};
    int                    joined = 0;
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < 9; i++)
            /* all slots of both, but the operands of the first */
            for (uint32_t s = 0; s < 256; s++) {
                cot__scalar a = {cot__scalar_code(first[i / 3], dtypes[d]), s & 3, 0, 1, 0, 0, NULL};
                uint32_t    z = s >> 2 & 3, x = s >> 4 & 3;
                cot__scalar b = {cot__scalar_code(second[i % 3], dtypes[d]), z, x, s >> 6, 0, 0, NULL};
                joined += check_pair(dtypes[d], a, b);
            }
    /* of two products and two sums: 4 slots of t, 4 of z, one of x and y is t */
    assert_int_equal(joined, 2 * 4 * 4 * 4 * 6);
}

static void linked_instructions_do_what_each_does(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32};
    static const int       first[] = {OP_mul, OP_sqrt, OP_less};
    (void)state;
    for (int d = 0; d < 2; d++)
        for (uint32_t code = d; code < COT__SCALAR_END; code += code < COT__PAIR_mul_f64 ? 2 : 1) {
            bool     pair = code >= COT__PAIR_mul_f64;
            uint32_t form = pair ? (code - COT__PAIR_mul_f64) / COT__PAIR_FORMS : 0;
            if ((pair && form % 2 != (uint32_t)d) || code / 2 == OP_where) continue;
            for (uint32_t s = 0; s < 3 * 256; s++) {
                cot__scalar a = {cot__scalar_code(first[s / 256], dtypes[d]), s & 3, 0, 1, 0, 0, NULL};
                cot__scalar b = {code, 3, s >> 2 & 3, s >> 4 & 3, s >> 6 & 3, 2, NULL}, both[] = {a, b};
                check_list(dtypes[d], a, b, both, 2);
            }
        }
}

/* Products that are NaN go another way, in the first of two and in the second; the third finds what
 * the second has made. */
static void three_in_a_row_do_what_each_does(void **state) {
    static const uint32_t code[] = {2 * OP_mul, 2 * OP_smul, 2 * OP_add, 2 * OP_sub, 2 * OP_neg,
                                    COT__PAIR_mul_f64 + COT__PAIR_ADD, COT__PAIR_mul_f64 + COT__PAIR_SUB,
                                    COT__PAIR_smul_f64 + COT__PAIR_ADD, 2 * OP_sqrt};
    (void)state;
    for (uint32_t s = 0; s < 9 * 9 * 9 * 64; s++) {
        uint32_t    slots = s / 729;
        cot__scalar list[] = {{code[s % 9], slots & 3, 0, 1, 2, 0, NULL},
                              {code[s / 9 % 9], slots >> 2 & 3, slots & 3, 3, slots >> 4, 0, NULL},
                              {code[s / 81 % 9], 3, 1, slots >> 2 & 3, slots >> 4, 0, NULL}};
        for (int at = 0; at < TEST_COUNT(points); at++) {
            cot__slot apart[SLOTS], together[SLOTS];
            fill(apart, COT_F64, at);
            fill(together, COT_F64, at);
            for (int k = 0; k < 3; k++) run(&list[k], 1, apart);
            run(list, 3, together);
            assert_same(COT_F64, apart, together);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(joined_instructions_do_what_both_do),
                                       cmocka_unit_test(linked_instructions_do_what_each_does),
                                       cmocka_unit_test(three_in_a_row_do_what_each_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
