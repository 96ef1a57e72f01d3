/* cot_tape_check accepts what the library records, and names every broken promise of tape.h. Each
 * test breaks one promise in the library's own memory, checks, and mends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "diff/engine/sweep.h"

static cot_tape *t;
static char      why[512];

/* %0 x, %1 m (2,3), %2 n (3,), %3 n broadcast, %4 product, %5 1, %6 add, %7 total, %8 test, %9 sin,
 * %10 exp, %11 concat, … */
static cot_var x, m, n, product, total, test;

static int setup(void **state) {
    (void)state;
    double a[6] = {1, 2, 3, 4, 5, 6};
    t = cot_tape_create(NULL);
    x = cot_scalar(t, 2);
    m = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a);
    n = cot_tensor(t, COT_F64, COT_SHAPE(3), a);
    product = cot_mul(m, n);
    total = cot_sum(cot_add(product, cot_constant(t, 1)), COT_AXES(1));
    test = cot_greater(m, 2.0);
    cot_name(product, "product");
    cot_var parts[3] = {x};
    parts[1] = cot_sin(x);
    parts[2] = cot_exp(x);
    cot_retain_grad(cot_stack(3, parts, 0));
    cot_backward(cot_sum(cot_where(test, cot_flip(product, COT_ALL), 0.0), COT_ALL));
    return cot_tape_check(t, why, sizeof why);
}

static int teardown(void **state) {
    (void)state;
    int status = cot_tape_check(t, why, sizeof why); /* everything was mended */
    cot_tape_destroy(t);
    return status;
}

static cot__node *at(cot_var v) { return &t->nodes[cot__index(v)]; }

#define SEES(text)                                                                                                     \
    do {                                                                                                               \
        assert_int_equal(cot_tape_check(t, why, sizeof why), COT_VALUE);                                               \
        assert_string_equal(why, text);                                                                                \
    } while (0)
/* Sets a field for the length of a check. */
#define BREAK(place, value, text)                                                                                      \
    do {                                                                                                               \
        __typeof__(place) kept = (place);                                                                              \
        (place)                = (value);                                                                              \
        SEES(text);                                                                                                    \
        (place) = kept;                                                                                                \
    } while (0)

static void a_sound_tape_passes_and_a_null_one_is_named(void **state) {
    (void)state;
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    assert_string_equal(why, "");
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    assert_int_equal(cot_tape_check(NULL, why, sizeof why), COT_MEMORY);
    assert_string_equal(why, "the tape is NULL: cot_tape_create found no memory");
}

static void a_failed_tape_is_still_well_formed(void **state) {
    (void)state;
    cot_reshape(m, COT_SHAPE(5));
    assert_int_equal(cot_tape_status(t), COT_SHAPE);
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    cot_tape_clear_error(t);
}

static void operations_and_dtypes_exist(void **state) {
    (void)state;
    char text[200];
    snprintf(text, sizeof text, "%%0 has the operation number %d, which does not exist.", (int)OP_count);
    BREAK(at(x)->op, (uint16_t)OP_count, text);
    BREAK(at(x)->kind, 0x3f, "%0 has the dtype number 63, which does not exist.");
}

static void operands_are_older_than_their_node(void **state) {
    (void)state;
    BREAK(at(product)->a, cot__index(product), "operand 0 of %4, mul, is %4, which is not older.");
    BREAK(at(product)->b, 4000000000u, "operand 1 of %4, mul, is %4000000000, which is not older.");
    cot__node *stack = &t->nodes[t->count];
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].op == OP_concat) stack = &t->nodes[i];
    BREAK(stack->extra.attr->args[2], t->count, "operand 2 of %11, concat, is %17, which is not older.");
}

static void every_operation_has_its_operands_and_attributes(void **state) {
    (void)state;
    cot_var sine = {t, 0};
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].op == OP_sin) sine = VAR(t, i);
    BREAK(at(sine)->b, 0, "%9, sin, does not have its one operand.");
    BREAK(at(sine)->flags, COT__ACTIVE | COT__NARY, "%9, sin, is elementwise but keeps its operands in a list.");
    BREAK(at(total)->extra.attr, NULL, "%7, sum, lacks its attributes (axes:m keepdims:f).");
    BREAK(at(total)->extra.attr->nints, 1, "%7, sum, has 1 integers as attributes; axes:m keepdims:f needs 2.");
    BREAK(at(total)->a, COT__NONE, "%7, sum, has no operand.");
    BREAK(at(total)->flags, COT__ACTIVE | COT__NARY, "%7, sum, claims a list of operands but has none.");
    BREAK(at(x)->flags, COT__ACTIVE | COT__NARY, "%0, a leaf, claims to have operands.");
    uint32_t b = at(product)->b;
    at(product)->b = COT__NONE;
    BREAK(at(product)->a, COT__NONE, "%4, mul, has two numbers as operands; at least one must be a value.");
    at(product)->b = b;
}

static void elementwise_operands_fit_their_result(void **state) {
    (void)state;
    BREAK(at(product)->b, cot__index(n), "operand 1 of %4, mul, has shape (3,); the result has (2,3).");
    BREAK(at(product)->b, cot__index(x), "operand 1 of %4, mul, has shape (); the result has (2,3).");
    BREAK(at(m)->kind, COT_F32 | COT__TENSOR, "operand 0 of %4, mul, has dtype f32; it needs f64.");
    BREAK(at(test)->kind, COT_U8 | COT__TENSOR, "%8, greater, is not a bool.");
}

static void tensors_stay_within_their_storage(void **state) {
    (void)state;
    cot__tensor *v = at(m)->value.tensor;
    BREAK(v->offset, 1, "%1 reaches from element 1 to 6 of a storage that has 6.");
    BREAK(v->dims[2], -3, "%1 reaches from element -3 to 2 of a storage that has 6.");
    BREAK(v->dims[3], 2, "%1 reaches from element 0 to 7 of a storage that has 6.");
    BREAK(v->size, 5, "%1 claims 5 elements, but its shape has 6.");
    BREAK(v->dims[0], -2, "%1 has the extent -2 on axis 0.");
    BREAK(v->ndim, 17, "%1 is a tensor with 17 axes; 1 to 16 are possible.");
    BREAK(v->version, 7, "%1 has version 7 of a storage that is at version 0.");
    BREAK(v->storage, NULL, "%1 is a tensor without a storage.");
    BREAK(v->storage->refs, 0, "a storage of 48 bytes is on the tape's list with 0 references.");
    BREAK(v->storage->data, NULL, "a storage of 48 bytes has no memory.");
}

static void stamps_do_not_come_from_the_future(void **state) {
    (void)state;
    BREAK(at(x)->stamp, 9, "%0 has the stamp 9, newer than the tape's, 1.");
    BREAK(at(m)->stamp, 0, "%1 has the stamp 0, older than that of %0, 1.");
}

static void activity_comes_from_operands(void **state) {
    (void)state;
    cot__node *constant = &t->nodes[5];
    assert_int_equal(constant->op, OP_constant);
    BREAK(constant->flags, COT__ACTIVE, "%5 is active, but constant has no derivative.");
    BREAK(at(test)->flags, COT__ACTIVE, "%8, greater, is active, but integers have no adjoint.");
    uint8_t flags = at(x)->flags;
    at(x)->flags = 0;
    SEES("%9, sin, is active, but no operand of it is.");
    at(x)->flags = flags;
    BREAK(at(product)->flags, at(product)->flags | COT__WANTED, "%4 is still marked as wanted, but no sweep runs.");
}

static void the_list_of_leaves_is_sorted_and_complete(void **state) {
    (void)state;
    assert_int_equal(t->leaves.count, 2);
    BREAK(t->leaves.count, 1, "the list of tensor leaves has 1 entries, the tape 2 tensor leaves.");
    BREAK(t->leaves.list[1], 0, "entry 1 of the list of tensor leaves is %0, which is none.");
    BREAK(t->leaves.list[1], 1, "the list of tensor leaves is not sorted: %1 follows %1.");
    BREAK(at(m)->extra.grad->bytes, 40, "the gradient of %1 has 40 bytes; its value has 48.");
}

static void the_other_lists_point_into_the_tape(void **state) {
    (void)state;
    BREAK(t->names.list[0].node, 99, "name 0 belongs to %99, which is not on the tape.");
    BREAK(t->retained.list[0].node, 0, "retained gradient 0 belongs to %0, which is not marked.");
    BREAK(t->capacity, 3, "the tape has 17 nodes and room for 3.");
}

static void slots_are_zero_between_sweeps(void **state) {
    (void)state;
    BREAK(*cot__slot(t, 3), 1, "slot 3 of the sweeps is not zero, but no sweep runs.");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_sound_tape_passes_and_a_null_one_is_named),
        TEST(a_failed_tape_is_still_well_formed),
        TEST(operations_and_dtypes_exist),
        TEST(operands_are_older_than_their_node),
        TEST(every_operation_has_its_operands_and_attributes),
        TEST(elementwise_operands_fit_their_result),
        TEST(tensors_stay_within_their_storage),
        TEST(stamps_do_not_come_from_the_future),
        TEST(activity_comes_from_operands),
        TEST(the_list_of_leaves_is_sorted_and_complete),
        TEST(the_other_lists_point_into_the_tape),
        TEST(slots_are_zero_between_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
