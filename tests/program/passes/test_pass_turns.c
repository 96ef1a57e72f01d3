/* The pass turns: a matrix that is read turned alone is made turned, and others stay. */
#include "pass_test.h"

static uint32_t transpose(draft *d, uint32_t x) { return op(d, OP_permute, X(x), .ints = 2, .at = {1, 0}); }

/* A Jacobian by rows: d (a wᵀ), each column times its own number, given out turned and summed. */
static void a_product_and_its_end_are_made_as_they_are_read(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(2, 3)), w = input(&d, COT_F64, SHAPE(4, 3)), v = input(&d, COT_F64, SHAPE(4));
    uint32_t product = op(&d, OP_matmul, X(a, transpose(&d, w)));
    uint32_t scaled = op(&d, OP_mul, X(product, op(&d, OP_broadcast_to, X(v), .asked = {COT_F64, SHAPE(2, 4)})));
    uint32_t out = transpose(&d, op(&d, OP_mul, X(scaled, NUM), .number = 3));
    output(&d, op(&d, OP_sum, X(out), .ints = 2, .at = {3, 0}));
    output(&d, out);
    becomes(&d, cot__pass_turns, "%0 = input 0 f64(2,3)\n"
                                 "%1 = input 1 f64(4,3)\n"
                                 "%2 = input 2 f64(4,)\n"
                                 "%3 = permute(%1) [1 0] f64(3,4)\n"
                                 "%4 = permute(%0) [1 0] f64(3,2)\n"
                                 "%5 = matmul(%1, %4) f64(4,2)\n"
                                 "%6 = broadcast_to(%2) f64(2,4)\n"
                                 "%7 = permute(%6) [1 0] f64(4,2)\n"
                                 "%8 = mul(%5, %7) f64(4,2)\n"
                                 "%9 = mul(%8, 3) f64(4,2)\n"
                                 "%10 = sum(%9) [3 0] f64\n"
                                 "gives %10, %9\n");
}

/* What goes into the product is turned with it, if nobody else reads it. */
static void products_before_a_turned_one_turn_too(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F32, SHAPE(2, 3)), v = input(&d, COT_F32, SHAPE(4, 3)),
             w = input(&d, COT_F32, SHAPE(5, 4));
    uint32_t first = op(&d, OP_tanh, X(op(&d, OP_matmul, X(a, transpose(&d, v)))));
    output(&d, transpose(&d, op(&d, OP_matmul, X(first, transpose(&d, w)))));
    becomes(&d, cot__pass_turns, "%0 = input 0 f32(2,3)\n"
                                 "%1 = input 1 f32(4,3)\n"
                                 "%2 = input 2 f32(5,4)\n"
                                 "%3 = permute(%1) [1 0] f32(3,4)\n"
                                 "%4 = permute(%0) [1 0] f32(3,2)\n"
                                 "%5 = matmul(%1, %4) f32(4,2)\n"
                                 "%6 = tanh(%5) f32(4,2)\n"
                                 "%7 = permute(%2) [1 0] f32(4,5)\n"
                                 "%8 = matmul(%2, %6) f32(5,2)\n"
                                 "gives %8\n");
}

/* The first product is made turned, and what the second one reads of it is turned back. */
static void a_transpose_of_what_is_turned_is_turned_back(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(2, 3)), w = input(&d, COT_F64, SHAPE(4, 3));
    uint32_t first = transpose(&d, op(&d, OP_matmul, X(a, transpose(&d, w))));
    output(&d, transpose(&d, op(&d, OP_exp, X(first))));
    becomes(&d, cot__pass_turns, "%0 = input 0 f64(2,3)\n"
                                 "%1 = input 1 f64(4,3)\n"
                                 "%2 = permute(%1) [1 0] f64(3,4)\n"
                                 "%3 = permute(%0) [1 0] f64(3,2)\n"
                                 "%4 = matmul(%1, %3) f64(4,2)\n"
                                 "%5 = permute(%4) [1 0] f64(2,4)\n"
                                 "%6 = exp(%5) f64(2,4)\n"
                                 "gives %6\n");
}

static void others_stay(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(2, 3)), w = input(&d, COT_F64, SHAPE(4, 3)),
             b = input(&d, COT_F64, SHAPE(3, 4));
    uint32_t half = input(&d, COT_BF16, SHAPE(2, 3)), z;
    output(&d, transpose(&d, op(&d, OP_matmul, X(a, b)))); /* no operand is a transpose */
    output(&d, transpose(&d, op(&d, OP_tanh, X(a))));      /* its operand would be read turned */
    z = op(&d, OP_matmul, X(a, transpose(&d, w)));
    output(&d, transpose(&d, z));
    output(&d, z);                                         /* read as it is, too */
    z = op(&d, OP_matmul, X(a, transpose(&d, w)));
    output(&d, op(&d, OP_matmul, X(transpose(&d, z), a))); /* a view that a product reads is free */
    /* 16 bits, which AMX multiplies in an order of its own */
    output(&d, transpose(&d, op(&d, OP_matmul, X(half, transpose(&d, half)))));
    stays(&d, cot__pass_turns);
}

/* ---- arrays put together from pieces --------------------------------------------------------- */

/* z with piece v at `first` of axis 0. */
static uint32_t with_piece(draft *d, int op_, uint32_t z, uint32_t v, int64_t first) {
    return op(d, op_, X(z, v), .ints = 4, .at = {0, first, 1, 1});
}

static uint32_t zeros(draft *d) {
    return op(d, OP_broadcast_to, X(constant(d, COT_F64, NO_AXES, 0)), .asked = {COT_F64, SHAPE(2, 3, 4)});
}

static uint32_t as_rows(draft *d, uint32_t x) {
    return op(d, OP_reshape, X(op(d, OP_permute, X(x), .ints = 3, .at = {1, 2, 0})), .asked = {COT_F64, SHAPE(12, 2)});
}

static void an_array_of_pieces_is_put_together_as_it_is_read(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(1, 3, 4)), b = input(&d, COT_F64, SHAPE(1, 3, 4));
    uint32_t first = with_piece(&d, OP_add_slice, zeros(&d), a, 1);
    output(&d, as_rows(&d, with_piece(&d, OP_update_slice, first, b, 0)));
    becomes(&d, cot__pass_turns, "%0 = input 0 f64(1,3,4)\n"
                                 "%1 = input 1 f64(1,3,4)\n"
                                 "%2 = constant 0 f64\n"
                                 "%3 = broadcast_to(%2) f64(2,3,4)\n"
                                 "%4 = permute(%3) [1 2 0] f64(3,4,2)\n"
                                 "%5 = permute(%0) [1 2 0] f64(3,4,1)\n"
                                 "%6 = add_slice(%4, %5) [2 1 1 1] f64(3,4,2)\n"
                                 "%7 = permute(%1) [1 2 0] f64(3,4,1)\n"
                                 "%8 = update_slice(%6, %7) [2 0 1 1] f64(3,4,2)\n"
                                 "%9 = reshape(%8) f64(12,2)\n"
                                 "gives %9\n");
}

static void other_pieces_stay(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(1, 3, 4)), whole = input(&d, COT_F64, SHAPE(2, 3, 4));
    /* the whole would be permuted, too */
    output(&d, as_rows(&d, with_piece(&d, OP_add_slice, whole, a, 0)));
    uint32_t z = with_piece(&d, OP_add_slice, zeros(&d), a, 0);
    output(&d, as_rows(&d, z));
    output(&d, z); /* read as it is, too */
    /* a view that elementwise operations read is free */
    z = op(&d, OP_permute, X(with_piece(&d, OP_add_slice, zeros(&d), a, 1)), .ints = 3, .at = {2, 1, 0});
    output(&d, op(&d, OP_tanh, X(z)));
    stays(&d, cot__pass_turns);
}

static void no_memory_spoils_nothing(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t a = input(&d, COT_F64, SHAPE(2, 3)), w = input(&d, COT_F64, SHAPE(4, 3));
    output(&d, as_rows(&d, with_piece(&d, OP_add_slice, zeros(&d), input(&d, COT_F64, SHAPE(1, 3, 4)), 1)));
    output(&d, transpose(&d, op(&d, OP_exp, X(op(&d, OP_matmul, X(a, transpose(&d, w)))))));
    survives_no_memory(&d, cot__pass_turns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_and_its_end_are_made_as_they_are_read),
        cmocka_unit_test(products_before_a_turned_one_turn_too),
        cmocka_unit_test(a_transpose_of_what_is_turned_is_turned_back),
        cmocka_unit_test(others_stay),
        cmocka_unit_test(an_array_of_pieces_is_put_together_as_it_is_read),
        cmocka_unit_test(other_pieces_stay),
        cmocka_unit_test(no_memory_spoils_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
