/* Groups: which operations run together, why others do not, which values live within blocks, and
 * that a run has the bits and less memory than that of one operation after the other. */
#include "random_program.h"

#include "program/fusion.h"
#include "program/run.h"

static const cot_shape MATRIX = {2, {4, 6}};

/* One line for each operation: its group, or why it has none. */
static void describe(const cot__program *p, char *text, size_t size) {
    heard       h;
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__fusion f;
    cot__text   to = cot__text_buffer(text, size);
    assert_true(cot__fusion_open(&f, p, NULL, &caller));
    for (uint32_t k = 0; k < p->operations; k++) {
        uint32_t z = p->operation[k].result;
        cot__putf(&to, "%%%u %s", z, cot__op_of(p->operation[k].op)->name);
        if (f.of[k] != COT__NO_VALUE) cot__putf(&to, " in %u%s", f.of[k], f.inside[z] ? " inside" : "");
        if (f.why[k] != COT__FUSED) cot__putf(&to, ": %s", cot__unfused_text[f.why[k]]);
        cot__put(&to, "\n");
    }
    cot__fusion_close(&f);
}

static void groups_are(draft *d, const char *text) {
    char          got[4096];
    cot__program *p = draft_close(d);
    describe(p, got, sizeof got);
    assert_string_equal(got, text);
    cot__program_release(p);
}

static void neighbours_of_one_size_run_together(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX), y = input(&d, COT_BF16, SHAPE(24)), s = input(&d, COT_F32, NO_AXES);
    uint32_t a = op(&d, OP_exp, X(x)), b = op(&d, OP_mul, X(a, s)); /* %3 %4 */
    uint32_t flat = op(&d, OP_reshape, X(b), .asked = {COT_F32, SHAPE(24)}); /* in order */
    uint32_t c = op(&d, OP_cast, X(flat), .asked = {COT_BF16, {0}});
    output(&d, op(&d, OP_add, X(c, y)));
    output(&d, a);
    groups_are(&d, "%3 exp in 0: an operation stands between that is not elementwise\n"
                   "%4 mul in 0 inside\n"
                   "%5 reshape: it is not elementwise, or has no axes\n"
                   "%6 cast in 0 inside\n"
                   "%7 add in 0\n");
}

/* What is permuted, broadcast or cut may come from before the group, and not from itself. */
static void other_orders_sizes_and_operations_end_a_group(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(4, 4)), v = input(&d, COT_F32, SHAPE(4));
    uint32_t row = op(&d, OP_broadcast_to, X(v), .asked = {COT_F32, SHAPE(4, 4)});
    uint32_t t = op(&d, OP_permute, X(x), .ints = 2, .at = {1, 0});
    uint32_t a = op(&d, OP_mul, X(t, row)), b = op(&d, OP_add, X(a, x));
    uint32_t bt = op(&d, OP_permute, X(b), .ints = 2, .at = {1, 0}); /* %6 */
    uint32_t c = op(&d, OP_mul, X(bt, b));                           /* another order */
    uint32_t e = op(&d, OP_exp, X(v));                               /* another size */
    uint32_t f = op(&d, OP_mul, X(e, v));
    uint32_t g = op(&d, OP_cumsum, X(f), .ints = 2, .at = {0, 0});
    output(&d, op(&d, OP_neg, X(g)));
    output(&d, c);
    groups_are(&d, "%2 broadcast_to: it is not elementwise, or has no axes\n"
                   "%3 permute: it is not elementwise, or has no axes\n"
                   "%4 mul in 0 inside: an operation stands between that is not elementwise\n"
                   "%5 add in 0\n"
                   "%6 permute: it is not elementwise, or has no axes\n"
                   "%7 mul: it reads elements of the group in another order\n"
                   "%8 exp in 1 inside: its arrays have another number of elements\n"
                   "%9 mul in 1\n"
                   "%10 cumsum: it is not elementwise, or has no axes\n"
                   "%11 neg: an operation stands between that is not elementwise\n");
}

/* The one element of a slice without axes is read when the group is done. */
static void an_element_that_is_taken_out_ends_a_group(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(4)), a = op(&d, OP_exp, X(x));
    uint32_t s = op(&d, OP_slice, X(a), .ints = 5, .at = {0, 2, 1, 1, 1});
    output(&d, op(&d, OP_mul, X(a, s)));
    groups_are(&d, "%1 exp: an operation stands between that is not elementwise\n"
                   "%2 slice: it is not elementwise, or has no axes\n"
                   "%3 mul: an operation stands between that is not elementwise\n");
}

static void a_group_ends_when_it_is_full(void **state) {
    draft d;
    char  text[4096];
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, MATRIX);
    for (int k = 0; k < 40; k++) x = op(&d, OP_sin, X(x));
    output(&d, x);
    cot__program *p = draft_close(&d);
    describe(p, text, sizeof text);
    assert_non_null(strstr(text, "%32 sin in 0\n"));
    assert_non_null(strstr(text, "%33 sin in 1 inside: the group is full\n"));
    cot__program_release(p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t arena_of(const cot__program *p, bool fused) {
    heard       h;
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__run   *r = (fused ? cot__run_create : cot__run_create_unfused)(p, &cot__cpu_backend, NULL, NULL, &caller);
    size_t      bytes = cot__run_bytes(r);
    cot__run_destroy(r);
    return bytes;
}

enum { ARRAY = 8000 }; /* bytes of 1000 numbers; the rest of an arena is less */

static void takes_arrays(draft *d, size_t alone, size_t together) {
    cot__program *p = draft_close(d);
    assert_int_equal(arena_of(p, false) / ARRAY, alone);
    assert_int_equal(arena_of(p, true) / ARRAY, together);
    cot__program_release(p);
}

/* A chain lies where its end will lie, and that is where an operand lay that nobody reads later. */
static void a_chain_takes_the_memory_of_its_end(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1000)), a = op(&d, OP_cumsum, X(x), .ints = 2, .at = {0, 0});
    for (int k = 0; k < 10; k++) a = op(&d, OP_sin, X(a));
    output(&d, a);
    takes_arrays(&d, 1, 1);
}

/* (sin x)(cos x): one of them at home, one in a piece of its own. */
static void a_second_chain_has_memory_of_its_own(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1000));
    uint32_t a = op(&d, OP_sin, X(x)), b = op(&d, OP_cos, X(x));
    output(&d, op(&d, OP_exp, X(op(&d, OP_mul, X(a, b)))));
    takes_arrays(&d, 2, 2);
}

/* What is read in another order is not written before the group is done. */
static void what_is_read_in_another_order_stays_until_the_end(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1000)), a = op(&d, OP_cumsum, X(x), .ints = 2, .at = {0, 0});
    uint32_t back = op(&d, OP_slice, X(a), .ints = 5, .at = {0, 999, 1000, -1, 0});
    output(&d, op(&d, OP_exp, X(op(&d, OP_mul, X(back, a)))));
    takes_arrays(&d, 2, 2);
}

/* Σ over k of an integer and a float chain that meet late: more values within blocks than a stage
 * takes. */
static void a_group_may_have_more_inside_than_a_stage_takes(void **state) {
    draft    d;
    void    *in[1];
    uint32_t f[7];
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(5000));
    for (int k = 0; k < 7; k++) f[k] = op(&d, OP_mul, X(x, NUM), .number = k + 1);
    for (int k = 0; k < 7; k++) f[k] = op(&d, OP_less, X(f[k], NUM), .number = k);
    for (int k = 0; k < 7; k++) f[k] = op(&d, OP_cast, X(f[k]), .asked = {COT_F64, {0}});
    for (int k = 1; k < 7; k++) f[0] = op(&d, OP_add, X(f[0], f[k]));
    output(&d, f[0]);
    cot__program *p = draft_close(&d);
    fill_inputs(p, 1, in);
    result want = run_program(p, in, false), got = run_program(p, in, true);
    assert_true(same_result(&want, &got));
    free_result(&want);
    free_result(&got);
    free(in[0]);
    cot__program_release(p);
}

static void any_allocation_may_fail(void **state) {
    cot__program *p = random_program(5, false, NULL);
    (void)state;
    for (long at = 1;; at++) {
        counting      c = {.fail_at = at};
        heard         h = {0};
        cot_allocator al = {counting_alloc, &c};
        cot__caller   caller = {"test", &h, hear_error, hear_note, NULL};
        cot__run     *r = cot__run_create(p, &cot__cpu_backend, &al, NULL, &caller);
        assert_true((r == NULL) == (c.failed > 0));
        if (!r) assert_true(h.code == COT_MEMORY && h.errors == 1);
        cot__run_destroy(r);
        assert_true(c.live == 0 && c.blocks == 0 && !c.wrong_size);
        if (!c.failed) break;
    }
    cot__program_release(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_of_one_size_run_together),
        cmocka_unit_test(other_orders_sizes_and_operations_end_a_group),
        cmocka_unit_test(an_element_that_is_taken_out_ends_a_group),
        cmocka_unit_test(a_group_ends_when_it_is_full),
        cmocka_unit_test(a_chain_takes_the_memory_of_its_end),
        cmocka_unit_test(a_second_chain_has_memory_of_its_own),
        cmocka_unit_test(what_is_read_in_another_order_stays_until_the_end),
        cmocka_unit_test(a_group_may_have_more_inside_than_a_stage_takes),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
