/* Tapes of scalars, which take nothing but lists of nodes and adjoints: a limit counts lists,
 * whenever it came; a rewind and a trim give the room of long ones back. */
#include "memory/memory.h"
#include "support/resident.h"
#include "support/tape_test.h"

#include <float.h>

/* ---- limits ---------------------------------------------------------------------------------- */

/* Long lists lie in address space that does not count, until there is a limit. */
static void a_limit_counts_lists_that_were_long_before(void **state) {
    (void)state;
    enum { MANY = 70000, LIMIT = 6000000 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), h = x;
    for (int k = 0; k < MANY; k++) h = cot_sin(h);
    double value = cot_value(h);
    assert_int_equal(cot_tape_set_memory_limit(t, LIMIT / 6), COT_MEMORY);
    cot_tape_clear_error(t);
    assert_int_equal(cot_tape_memory_limit(t), 0);
    assert_int_equal(cot_tape_set_memory_limit(t, LIMIT), COT_OK);
    assert_true(cot_value(h) == value);
    assert_int_equal(cot_backward(h), COT_OK);
    for (int k = 0; k < 1000000 && cot_tape_status(t) == COT_OK; k++) h = cot_sin(h);
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    assert_true(cot_tape_peak_bytes(t) <= LIMIT);
    cot_tape_destroy(t);
}

static void *small_blocks(void *user, void *ptr, size_t old_size, size_t new_size) {
    (void)user, (void)old_size;
    if (new_size) return new_size < 1 << 20 ? realloc(ptr, new_size) : NULL;
    free(ptr);
    return NULL;
}
/* Where there is no memory for long lists, they cannot count, so there is no limit. */
static void a_limit_that_lists_find_no_memory_for_is_refused(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   h = cot_scalar(t, 0.5);
    for (int k = 0; k < 70000; k++) h = cot_sin(h);
    if (t->node_memory.reserved) {
        double value = cot_value(h);
        t->cache.below.alloc = small_blocks;
        assert_int_equal(cot_tape_set_memory_limit(t, 100000000), COT_MEMORY);
        assert_non_null(strstr(cot_tape_message(t), "[tape_set_memory_limit] out of memory: "));
        cot_tape_clear_error(t);
        assert_int_equal(cot_tape_memory_limit(t), 0);
        t->cache.below.alloc = NULL;
        assert_true(cot_value(h) == value);
        assert_int_equal(cot_tape_set_memory_limit(t, 100000000), COT_OK);
        assert_int_equal(cot_backward(h), COT_OK);
    }
    cot_tape_destroy(t);
}

/* Lists leave their address space, whether to memory that counts or to a file; what was in use
 * was. */
static void a_limit_that_comes_late_leaves_the_peak(void **state) {
    (void)state;
    for (int with = 0; with < 2; with++) {
        cot_tape *t = cot_tape_create(&(cot_options){.spill = with ? "/tmp" : NULL});
        cot_var   h = cot_scalar(t, 0.5);
        for (int k = 0; k < 70000; k++) h = cot_sin(h);
        cot_backward(h);
        int64_t peak = cot_tape_peak_bytes(t);
        assert_int_equal(cot_tape_set_memory_limit(t, 6000000), COT_OK);
        assert_int_equal(cot_tape_peak_bytes(t), peak);
        assert_int_equal(cot_tape_set_memory_limit(t, 5000000), COT_OK);
        assert_int_equal(cot_tape_peak_bytes(t), peak);
        cot_tape_destroy(t);
    }
}

/* Of numbers without axes nothing is dropped: what they take must fit, and little more. */
static void a_limit_holds_scalars_that_fit(void **state) {
    (void)state;
    enum { MANY_NODES = 1200000, ENOUGH = MANY_NODES * 48 }; /* a node has 32 bytes, an adjoint 8 */
    double grad[2];
    for (int limited = 0; limited < 2; limited++) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limited ? ENOUGH : 0});
        cot_var   x = cot_scalar(t, 0.5), y = x;
        for (int k = 1; k < MANY_NODES; k++) y = cot_sin(y);
        cot_backward(y);
        assert_ok(t);
        grad[limited] = cot_grad_value(x);
        assert_true(!limited || cot_tape_peak_bytes(t) <= ENOUGH);
        cot_tape_destroy(t);
    }
    assert_memory_equal(&grad[0], &grad[1], sizeof *grad);
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = 1 << 20});
    cot_var   x = cot_scalar(t, 0.5);
    for (int k = 0; k < 1 << 16; k++) x = cot_sin(x);
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    assert_non_null(strstr(cot_tape_message(t), " bytes for the tape; the memory limit is 1048576 bytes, and "));
    cot_tape_destroy(t);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* All but an arena, or windows of lists where every tape has a folder. */
static void assert_short(cot_tape *t) {
    assert_true(cot_tape_bytes(t) < 80000 || cot__spill_always);
}
/* The tape forgets what was long, and goes on. */
static void goes_on(cot_tape *t, cot_mark mark, cot_var x) {
    cot_tape_rewind(t, mark);
    if (!cot_tape_memory_limit(t)) cot_tape_trim(t);
    assert_short(t);
    cot_tape_zero_grads(t);
    cot_backward(cot_sin(x));
    assert_true(fabs(cot_grad_value(x) - cos(0.5)) <= DBL_EPSILON);
    assert_ok(t);
    cot_tape_destroy(t);
}
/* Of two steps on one tape the longer one leaves the other its room: without a sweep it fits the
 * limit, and so does the sweep of the shorter one. */
static void a_rewind_leaves_the_room_of_long_lists(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = 2000000});
    cot_var   x = cot_scalar(t, 0.5), y = x;
    cot_mark  mark = cot_tape_mark(t);
    for (int k = 0; k < 60000; k++) y = cot_sin(y);
    assert_ok(t);
    cot_tape_rewind(t, mark);
    assert_short(t);
    y = x;
    for (int k = 0; k < 10000; k++) y = cot_sin(y);
    cot_backward(y);
    assert_ok(t);
    goes_on(t, mark, x);
}
static void trimming_frees_long_lists(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), y = x;
    cot_mark  mark = cot_tape_mark(t);
    for (int k = 0; k < 20000; k++) y = cot_sin(y);
    cot_backward(y);
    cot_tape_trim(t); /* nothing that is in use */
    assert_ok(t);
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    goes_on(t, mark, x);
}

/* Lists that lie in reserved address space leave the process, and the tape goes on as before. */
static void trimming_frees_very_long_lists(void **state) {
    (void)state;
    for (int n = 70000; n <= 300000; n += 230000) { /* of the second one slots lie there, too */
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_scalar(t, 0.5);
        cot_mark  mark = cot_tape_mark(t);
        int64_t   peak = 0;
        for (int step = 0; step < 2; step++) {
            cot_var y = x;
            for (int k = 0; k < n; k++) y = cot_sin(y);
            cot_backward(y);
            cot_tape_trim(t); /* slots; nothing that is in use */
            assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
            if (!step) peak = cot_tape_peak_bytes(t);
            size_t full = resident("VmRSS");
            cot_tape_rewind(t, mark);
            cot_tape_trim(t);
            size_t gone = full - resident("VmRSS");
            if (!SANITIZER && !cot__spill_always && gone < (size_t)n * sizeof *t->nodes * 3 / 4)
                fail_msg("%d nodes: %zu bytes came back", n, gone);
            assert_int_equal(cot_tape_peak_bytes(t), peak);
        }
        goes_on(t, mark, x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_counts_lists_that_were_long_before),
        cmocka_unit_test(a_limit_that_lists_find_no_memory_for_is_refused),
        cmocka_unit_test(a_limit_that_comes_late_leaves_the_peak),
        cmocka_unit_test(a_limit_holds_scalars_that_fit),
        cmocka_unit_test(a_rewind_leaves_the_room_of_long_lists),
        cmocka_unit_test(trimming_frees_long_lists),
        cmocka_unit_test(trimming_frees_very_long_lists),
    };
    return cmocka_run_group_tests_name("limit_lists", tests, NULL, NULL);
}
