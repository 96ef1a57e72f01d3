/* The passes views and readers: what only moves elements is done once or not at all, and readers
 * take a number or a value without axes as it is. */
#include "pass_test.h"

static const cot_shape MATRIX = {2, {2, 4}};

static void what_moves_nothing_goes(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX);
    x = op(&d, OP_copy, X(x));
    x = op(&d, OP_detach, X(x));
    x = op(&d, OP_alias, X(x));
    x = op(&d, OP_reshape, X(x), .asked = {COT_F32, MATRIX});
    x = op(&d, OP_broadcast_to, X(x), .asked = {COT_F32, MATRIX});
    x = op(&d, OP_cast, X(x), .asked = {COT_F32, {0}});
    x = op(&d, OP_pad, X(x), .ints = 4, .at = {0, 0, 0, 0}, .attr_number = 3);
    x = op(&d, OP_permute, X(x), .ints = 2, .at = {0, 1});
    x = op(&d, OP_slice, X(x), .ints = 5, .at = {1, 0, 4, 1, 0});
    x = op(&d, OP_concat, X(x), .ints = 2, .at = {0, 0});
    output(&d, x);
    becomes(&d, cot__pass_views, "%0 = input 0 f32(2,4)\n"
                                 "gives %0\n");
}

static void what_moves_something_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(4, 4)), y = input(&d, COT_F32, SHAPE(4, 4));
    output(&d, op(&d, OP_permute, X(x), .ints = 2, .at = {1, 0}));  /* of the same type */
    output(&d, op(&d, OP_slice, X(x), .ints = 5, .at = {1, 3, 4, -1, 0})); /* backwards */
    output(&d, op(&d, OP_concat, X(x, y), .ints = 2, .at = {0, 0}));
    output(&d, op(&d, OP_concat, X(x), .ints = 2, .at = {0, 1}));              /* a new axis */
    output(&d, op(&d, OP_pad, X(x), .ints = 4, .at = {1, 0, 0, 0}));
    output(&d, op(&d, OP_cast, X(op(&d, OP_cast, X(x), .asked = {COT_F16, {0}})), .asked = {COT_F32, {0}}));
    output(&d, op(&d, OP_cast, X(op(&d, OP_cast, X(x), .asked = {COT_I64, {0}})), .asked = {COT_F32, {0}}));
    uint32_t row = op(&d, OP_slice, X(x), .ints = 5, .at = {0, 1, 1, 1, 1});   /* drops its axis */
    output(&d, op(&d, OP_slice, X(row), .ints = 5, .at = {0, 1, 2, 1, 0}));
    uint32_t part = op(&d, OP_slice, X(x), .ints = 5, .at = {0, 1, 2, 1, 0});
    output(&d, op(&d, OP_slice, X(part), .ints = 5, .at = {1, 1, 2, 1, 0})); /* another axis */
    output(&d, op(&d, OP_reshape, X(op(&d, OP_broadcast_to, X(y), .asked = {COT_F32, SHAPE(2, 4, 4)})),
                  .asked = {COT_F32, SHAPE(32)}));
    stays(&d, cot__pass_views);
}

static void two_become_one(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(2, 3, 10)), a, b;
    a = op(&d, OP_permute, X(x), .ints = 3, .at = {2, 0, 1});
    output(&d, op(&d, OP_permute, X(a), .ints = 3, .at = {1, 0, 2}));
    output(&d, op(&d, OP_permute, X(a), .ints = 3, .at = {1, 2, 0})); /* back */
    a = op(&d, OP_reshape, X(x), .asked = {COT_F32, SHAPE(60)});
    output(&d, op(&d, OP_reshape, X(a), .asked = {COT_F32, SHAPE(6, 10)}));
    output(&d, op(&d, OP_reshape, X(a), .asked = {COT_F32, SHAPE(2, 3, 10)})); /* back */
    a = op(&d, OP_broadcast_to, X(op(&d, OP_reshape, X(x), .asked = {COT_F32, SHAPE(60)})),
           .asked = {COT_F32, SHAPE(2, 60)});
    output(&d, op(&d, OP_broadcast_to, X(a), .asked = {COT_F32, SHAPE(3, 2, 60)}));
    a = op(&d, OP_slice, X(x), .ints = 5, .at = {2, 9, 5, -2, 0});  /* 9 7 5 3 1 */
    b = op(&d, OP_slice, X(a), .ints = 5, .at = {2, 3, 2, -2, 0});  /* 3 7 */
    output(&d, b);
    output(&d, op(&d, OP_slice, X(b), .ints = 5, .at = {2, 1, 1, 1, 1})); /* 7, without its axis */
    output(&d, op(&d, OP_slice, X(b), .ints = 5, .at = {2, 0, 0, 1, 0})); /* nothing */
    becomes(&d, cot__pass_views, "%0 = input 0 f32(2,3,10)\n"
                                 "%1 = permute(%0) [2 0 1] f32(10,2,3)\n"
                                 "%2 = permute(%0) [0 2 1] f32(2,10,3)\n"
                                 "%3 = reshape(%0) f32(60,)\n"
                                 "%4 = reshape(%0) f32(6,10)\n"
                                 "%5 = reshape(%0) f32(60,)\n"
                                 "%6 = broadcast_to(%5) f32(2,60)\n"
                                 "%7 = broadcast_to(%5) f32(3,2,60)\n"
                                 "%8 = slice(%0) [2 9 5 -2 0] f32(2,3,5)\n"
                                 "%9 = slice(%0) [2 3 2 4 0] f32(2,3,2)\n"
                                 "%10 = slice(%0) [2 7 1 1 1] f32(2,3)\n"
                                 "%11 = slice(%0) [2 0 0 1 0] f32(2,3,0)\n"
                                 "gives %2, %0, %4, %0, %7, %9, %10, %11\n");
}

/* Between reshapes, as batches of one leave them. */
static void axes_of_extent_1_move_nothing(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX), a;
    a = op(&d, OP_permute, X(op(&d, OP_reshape, X(x), .asked = {COT_F32, SHAPE(2, 1, 4)})), .ints = 3, .at = {0, 2, 1});
    output(&d, a);
    output(&d, op(&d, OP_reshape, X(a), .asked = {COT_F32, MATRIX}));
    a = op(&d, OP_reshape, X(x), .asked = {COT_F32, SHAPE(4, 1, 2)});
    output(&d, op(&d, OP_permute, X(a), .ints = 3, .at = {2, 1, 0})); /* moves more */
    becomes(&d, cot__pass_views, "%0 = input 0 f32(2,4)\n"
                                 "%1 = reshape(%0) f32(2,1,4)\n"
                                 "%2 = reshape(%0) f32(2,4,1)\n"
                                 "%3 = reshape(%0) f32(4,1,2)\n"
                                 "%4 = permute(%3) [2 1 0] f32(2,1,4)\n"
                                 "gives %2, %0, %4\n");
}

/* Through a dtype that has all numbers of the first, and through one that has not. */
static void casts_meet_where_no_number_is_lost(void **state) {
    static const char kept[COT_DTYPE_COUNT][COT_DTYPE_COUNT + 1] = {
        /* through    f64, f32, bf16, f16, i64, i32, u8, bool */
        [COT_F64] = "--------", [COT_F32] = "x-------", [COT_BF16] = "xx------", [COT_F16] = "xx------",
        [COT_I64] = "--------", [COT_I32] = "x---x---", [COT_U8] = "xxxxxx--", [COT_BOOL] = "xxxxxxx-",
    };
    (void)state;
    for (int a = 0; a < COT_DTYPE_COUNT; a++)
        for (int b = 0; b < COT_DTYPE_COUNT; b++) {
            draft d;
            if (a == b) continue;
            draft_open(&d, NULL);
            uint32_t x = input(&d, (cot_dtype)a, MATRIX);
            uint32_t y = op(&d, OP_cast, X(x), .asked = {(cot_dtype)b, {0}});
            output(&d, op(&d, OP_cast, X(y), .asked = {(cot_dtype)a, {0}}));
            cot__program *p = draft_close(&d), *q = after(p, cot__pass_views);
            TEST_CHECK((q->output[0] == q->input[0]) == (kept[a][b] == 'x'), "%s through %s %s",
                       cot__dtype_name((cot_dtype)a), cot__dtype_name((cot_dtype)b),
                       q == p ? "stays" : "goes");
            cot__program_release(p);
            cot__program_release(q);
        }
    test_verdict();
}

static void a_cast_further_on_is_one_cast(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F16, MATRIX), y = op(&d, OP_cast, X(x), .asked = {COT_F32, {0}});
    output(&d, op(&d, OP_cast, X(y), .asked = {COT_F64, {0}}));
    becomes(&d, cot__pass_views, "%0 = input 0 f16(2,4)\n"
                                 "%1 = cast(%0) f32(2,4)\n"
                                 "%2 = cast(%0) f64(2,4)\n"
                                 "gives %2\n");
}

/* ---- readers --------------------------------------------------------------------------------- */

static void draft_readers(draft *d) {
    draft_open(d, NULL);
    uint32_t x = input(d, COT_F32, MATRIX), s = input(d, COT_F32, NO_AXES);
    uint32_t two = constant(d, COT_F32, NO_AXES, 2), three = constant(d, COT_F32, MATRIX, 3);
    uint32_t wide = op(d, OP_broadcast_to, X(s), .asked = {COT_F32, MATRIX});
    uint32_t twos = op(d, OP_broadcast_to, X(two), .asked = {COT_F32, MATRIX});
    output(d, op(d, OP_mul, X(x, wide)));
    output(d, op(d, OP_mul, X(wide, wide))); /* one of them must stay */
    output(d, op(d, OP_add, X(x, twos)));
    output(d, op(d, OP_sub, X(three, x)));
    output(d, op(d, OP_sub, X(three, s))); /* its shape comes from the constant */
    output(d, op(d, OP_fma, X(wide, three, x)));
    output(d, op(d, OP_mul, X(s, two)));
}

static void readers_take_values_without_axes_and_numbers(void **state) {
    draft d;
    (void)state;
    draft_readers(&d);
    becomes(&d, cot__pass_readers, "%0 = input 0 f32(2,4)\n"
                                   "%1 = input 1 f32\n"
                                   "%2 = constant 0 f32\n"
                                   "%3 = constant 1 f32(2,4)\n"
                                   "%4 = broadcast_to(%1) f32(2,4)\n"
                                   "%5 = broadcast_to(%2) f32(2,4)\n"
                                   "%6 = mul(%0, %1) f32(2,4)\n"
                                   "%7 = mul(%1, %4) f32(2,4)\n"
                                   "%8 = add(%0, 2) f32(2,4)\n"
                                   "%9 = sub(3, %0) f32(2,4)\n"
                                   "%10 = sub(%3, %1) f32(2,4)\n"
                                   "%11 = fma(%1, %3, %0) f32(2,4)\n"
                                   "%12 = mul(%1, 2) f32\n"
                                   "gives %6, %7, %8, %9, %10, %11, %12\n");
}

static void integers_that_no_number_holds_stay(void **state) {
    draft d;
    void *at;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_I64, MATRIX), c = cot__build_constant(&d.b, &(cot__type){COT_I64, {0}}, &at);
    memcpy(at, &(int64_t){(INT64_C(1) << 53) + 1}, sizeof(int64_t));
    output(&d, op(&d, OP_add, X(x, c)));
    stays(&d, cot__pass_readers);
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_readers(&d);
    survives_no_memory(&d, cot__pass_readers);
    draft_readers(&d);
    survives_no_memory(&d, cot__pass_views);
    draft_readers(&d);
    survives_no_memory(&d, cot__optimise);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_moves_nothing_goes),
        cmocka_unit_test(what_moves_something_stays),
        cmocka_unit_test(two_become_one),
        cmocka_unit_test(axes_of_extent_1_move_nothing),
        cmocka_unit_test(casts_meet_where_no_number_is_lost),
        cmocka_unit_test(a_cast_further_on_is_one_cast),
        cmocka_unit_test(readers_take_values_without_axes_and_numbers),
        cmocka_unit_test(integers_that_no_number_holds_stay),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
