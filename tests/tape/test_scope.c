/* A scope gives a tape its modes back, whatever changed them in between. */
#include "support/support.h"

#include "tape/scope.h"

static void set_modes(cot_tape *t, const char *name, uint32_t number, bool flag) {
    t->mode.body = t->mode.inside = name;
    t->mode.body_from = t->mode.inside_from = number;
    t->mode.no_grad = (int)number;
    t->active_mask = flag ? COT__ACTIVE : 0;
    t->mode.strict_positions = flag;
}

static void test_a_scope_gives_back_every_mode(void **state) {
    (void)state;
    static const char before[] = "scan", between[] = "while";
    cot_tape         *t = cot_tape_create(NULL);
    set_modes(t, before, 7, true);
    cot__scope s = cot__scope_open(t, 0);
    assert_int_equal(t->active_mask, 0);
    assert_ptr_equal(t->mode.body, before); /* nothing else has changed yet */
    set_modes(t, between, 9, false);
    cot__scope_close(t, &s);
    assert_ptr_equal(t->mode.body, before);
    assert_ptr_equal(t->mode.inside, before);
    assert_int_equal(t->mode.body_from, 7);
    assert_int_equal(t->mode.inside_from, 7);
    assert_int_equal(t->mode.no_grad, 7);
    assert_int_equal(t->active_mask, COT__ACTIVE);
    assert_true(t->mode.strict_positions);
    set_modes(t, NULL, 0, true);
    cot_tape_destroy(t);
}

static void test_a_scope_forgets_the_notes_of_examples_and_keeps_older_ones(void **state) {
    (void)state;
    cot_tape  *t = cot_tape_create(NULL);
    cot__scope s = cot__scope_open(t, t->active_mask);
    cot__note(t, "[exp] of an example");
    cot__scope_close_unnoted(t, &s);
    assert_int_equal(t->notes.first[0], 0);
    cot__note(t, "[log] of a value");
    s = cot__scope_open(t, t->active_mask);
    cot__scope_close_unnoted(t, &s);
    assert_string_equal(t->notes.first, "[log] of a value");
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_scope_gives_back_every_mode),
        cmocka_unit_test(test_a_scope_forgets_the_notes_of_examples_and_keeps_older_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
