/* test_step_model.c: the walk of trace --step without a terminal: positions, keys, prompts, bytes,
 * registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "step/step_keys.h"
#include "step/step_model.h"
#include "step/step_registers.h"
#include "step/step_text.h"
#include "problem/traced.h"

#include "problem/command.h"

static step_wish type(step_model *m, const char *keys) {
    step_wish wish = STEP_DRAW;
    for (; *keys; keys++) wish = step_key(m, (unsigned char)*keys);
    return wish;
}

static void stands(const step_model *m, step_phase phase, int64_t index) {
    int64_t at = -9;
    assert_int_equal(step_where(m, &at), phase);
    if (phase == STEP_FORWARD || phase == STEP_REVERSE) assert_int_equal(at, index);
}

static void any_key_leaves_the_help(void **state) {
    step_model m;
    (void)state;
    for (const char *key = "q?nQ"; *key; key++) {
        step_begin(&m, 3, 2);
        step_key(&m, '?');
        assert_int_equal(m.mode, STEP_HELP);
        assert_int_equal(step_key(&m, *key), STEP_DRAW);
        assert_int_equal(m.mode, STEP_WALK);
        stands(&m, STEP_FORWARD, 0);
    }
    assert_int_equal(step_key(&m, 'q'), STEP_QUIT);
}

/* ---- positions ------------------------------------------------------------------------------- */

static void a_walk_visits_nodes_then_the_seed_then_the_sweep_then_the_end(void **state) {
    step_model m;
    (void)state;
    step_begin(&m, 3, 2);
    assert_int_equal(step_last(&m), 7);
    for (int k = 0; k < 3; k++) {
        stands(&m, STEP_FORWARD, k);
        assert_int_equal(step_revealed(&m), k + 1);
        assert_int_equal(step_swept(&m), -1);
        assert_int_equal(step_key(&m, 'n'), STEP_DRAW);
    }
    stands(&m, STEP_SEED, 0);
    assert_int_equal(step_swept(&m), 0);
    for (int k = 0; k < 2; k++) {
        step_key(&m, KEY_RIGHT);
        stands(&m, STEP_REVERSE, k);
        assert_int_equal(step_swept(&m), k + 1);
        assert_int_equal(step_revealed(&m), 3);
    }
    step_key(&m, ' ');
    stands(&m, STEP_END, 0);
    assert_int_equal(step_swept(&m), 2);
    step_key(&m, 'n'); /* no further */
    assert_int_equal(m.at, 7);
    for (int k = 6; k >= 1; k--) {
        step_key(&m, 'b');
        assert_int_equal(m.at, k);
    }
    step_key(&m, KEY_LEFT);
    assert_int_equal(m.at, 1);
}

static void without_a_sweep_the_end_follows_the_tape(void **state) {
    step_model m;
    (void)state;
    step_begin(&m, 3, 0);
    assert_int_equal(step_last(&m), 4);
    step_key(&m, 'r');
    stands(&m, STEP_END, 0);
    assert_int_equal(step_swept(&m), -1);
    assert_int_equal(step_revealed(&m), 3);
}

static void jumps_are_checked(void **state) {
    static const struct { const char *keys; int at; bool wrong;
    } cases[] = {
        {"g5\r", 5, false},
        {"j 7 \r", 7, false},
        {"g0\r", 1, true},
        {"g8\r", 1, true},
        {"g-1\r", 1, true},
        {"g2x\r", 1, true},
        {"gx\r", 1, true},
        {"g\r", 1, false},
        {"g4\0335\r", 1, false},
        {"g99999999999999999999\r", 1, true},
        {"g2\025"
         "3\n",
         3, false},
        {"g12\1773\r", 1, true},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        step_model m;
        step_begin(&m, 3, 2);
        for (const char *p = cases[k].keys; *p; p++) step_key(&m, *p == '\033' ? KEY_ESCAPE : (unsigned char)*p);
        assert_int_equal(m.at, cases[k].at);
        assert_int_equal(m.wrong, cases[k].wrong);
        assert_int_equal(m.message[0] != 0, cases[k].wrong);
        assert_int_equal(m.mode, STEP_WALK);
    }
}

static void a_refit_keeps_the_place_as_well_as_it_can(void **state) {
    static const struct { int at; int64_t nodes, steps; step_phase phase; int64_t index;
    } cases[] = {
        {2, 5, 4, STEP_FORWARD, 1}, {5, 5, 4, STEP_FORWARD, 4}, {5, 3, 4, STEP_FORWARD, 2},  {6, 3, 2, STEP_SEED, 0},
        {6, 9, 2, STEP_SEED, 0},    {8, 9, 6, STEP_REVERSE, 1}, {10, 9, 2, STEP_REVERSE, 1}, {10, 5, 0, STEP_END, 0},
        {11, 20, 20, STEP_END, 0},  {6, 5, 0, STEP_END, 0},     {10, 5, 4, STEP_REVERSE, 3},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        step_model m;
        step_begin(&m, 5, 4);
        m.at = cases[k].at;
        step_refit(&m, cases[k].nodes, cases[k].steps);
        stands(&m, cases[k].phase, cases[k].index);
        assert_true(m.at >= 1 && m.at <= step_last(&m));
    }
}

/* ---- prompts --------------------------------------------------------------------------------- */

static void a_change_is_handed_over_whole(void **state) {
    step_model m;
    (void)state;
    step_begin(&m, 3, 2);
    assert_int_equal(type(&m, "ix = n q"), STEP_DRAW); /* letters are letters here */
    assert_int_equal(m.mode, STEP_CHANGE);
    assert_int_equal(step_key(&m, '\r'), STEP_SET);
    assert_string_equal(m.typed, "x = n q");
    assert_int_equal(m.mode, STEP_WALK);
    type(&m, "iy");
    step_key(&m, KEY_UP);
    assert_string_equal(m.typed, "x = n q");
    step_key(&m, KEY_ESCAPE);
    assert_int_equal(type(&m, "i  \r"), STEP_DRAW); /* nothing was asked for */
    type(&m, "i\xcc\x84x\xe4\xb8\xad");
    step_key(&m, KEY_BACKSPACE); /* a whole character */
    assert_string_equal(m.typed, "\xcc\x84x");
    for (int k = 0; k < 9; k++) step_key(&m, 127);
    assert_string_equal(m.typed, "");
}

static void a_line_that_is_too_long_is_not_half_a_line(void **state) {
    step_model m;
    (void)state;
    step_begin(&m, 3, 2);
    type(&m, "i");
    for (int k = 0; k < STEP_TYPED - 1; k++) step_key(&m, '1');
    assert_int_equal(m.length, STEP_TYPED - 1);
    step_key(&m, '2');
    step_key(&m, 127); /* the end of it was never there */
    assert_int_equal(step_key(&m, '\r'), STEP_DRAW);
    assert_true(m.wrong);
    assert_int_equal(type(&m, "ix=1\r"), STEP_SET);
}

static void leaving_works_from_everywhere(void **state) {
    static const char *const ways[] = {"q", "\003", "\004", "i\003", "g\004", "?qq", "?\003"};
    (void)state;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        step_model m;
        step_begin(&m, 3, 2);
        assert_int_equal(type(&m, ways[k]), STEP_QUIT);
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* All keys of some bytes, given in pieces of n. */
static int keys_of(const char *bytes, size_t n, int *keys) {
    step_keys k = {0};
    int       count = 0;
    for (size_t left = strlen(bytes); left > 0;) {
        size_t piece = left < n ? left : n;
        keys_add(&k, bytes, piece);
        bytes += piece, left -= piece;
        for (int key; (key = keys_next(&k)) >= 0;) keys[count++] = key;
    }
    keys_settle(&k);
    for (int key; (key = keys_next(&k)) >= 0;) keys[count++] = key;
    assert_false(keys_pending(&k));
    return count;
}

static void sequences_are_keys_in_any_pieces(void **state) {
    static const struct { const char *bytes; int keys[8], count; } cases[] = {
        {"n", {'n'}, 1},
        {"\033[C\033[D\033[A\033[B", {KEY_RIGHT, KEY_LEFT, KEY_UP, KEY_DOWN}, 4},
        {"\033OC\033OH\033OF", {KEY_RIGHT, KEY_HOME, KEY_END}, 3},
        {"\033[H\033[F\033[1~\033[4~\033[7~\033[8~", {KEY_HOME, KEY_END, KEY_HOME, KEY_END, KEY_HOME, KEY_END}, 6},
        {"\033[5~\033[6~\033[1;5C", {KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_RIGHT}, 3},
        {"\033[200~n", {KEY_NONE, 'n'}, 2},
        {"\033", {KEY_ESCAPE}, 1},
        {"\033\033[C", {KEY_ESCAPE, KEY_RIGHT}, 2},
        {"\033x\377", {KEY_NONE, 255}, 2},
        {"\033[12", {KEY_NONE}, 1},
        {"\033O", {KEY_NONE}, 1},
        {"\033[1\rn", {KEY_NONE, '\r', 'n'}, 3},
    };
    int keys[64];
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t n = 1; n < 12; n++) {
            assert_int_equal(keys_of(cases[c].bytes, n, keys), cases[c].count);
            assert_memory_equal(keys, cases[c].keys, (size_t)cases[c].count * sizeof *keys);
        }
}

static void a_sequence_without_end_does_not_fill_the_room(void **state) {
    step_keys k = {0};
    (void)state;
    keys_add(&k, "\033[", 2);
    for (int i = 0; i < 100000; i++) {
        assert_true(keys_room(&k) > 0);
        keys_add(&k, ";", 1);
        while (keys_next(&k) >= 0) {}
    }
}

static void text_for_a_terminal_holds_no_orders_to_it(void **state) {
    static const struct { const char *text, *clean;
    } cases[] = {
        {"x·y", "x·y"},
        {"\033[2J", "?[2J"},
        {"a\nb\tc", "a b c"},
        {"\177\001", "??"},
        {"\302\233m", "??m"},
        {"\342\200\256m", "???m"},
        {"\xff\xe4\xb8", "???"},
        {"\xc0\x80", "??"},
        {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
    };
    char buf[64];
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_string_equal(step_clean(cases[k].text, strlen(cases[k].text), buf, sizeof buf), cases[k].clean);
    assert_string_equal(step_clean("a\xe4\xb8\xad", 4, buf, 4), "a"); /* never half a character */
    assert_int_equal(step_wrapped("one two three", 7, 1, buf, sizeof buf), 2);
    assert_string_equal(buf, "three");
    assert_int_equal(step_wrapped("abcdefgh", 3, 2, buf, sizeof buf), 3);
    assert_string_equal(buf, "gh");
}

/* ---- registers ------------------------------------------------------------------------------- */

static double number(const cot__view *v) { return *(const double *)v->data; }

/* As the sweep does it: walking all steps. */
static bool walked(const cot__trace *tr, int64_t node, int64_t swept, double *sum) {
    bool there = node == tr->output;
    if (there) *sum = number(&tr->seed);
    for (int64_t s = 0; s < swept; s++)
        for (int k = 0; k < tr->steps[s].add_count; k++)
            if (cot__trace_find(tr, tr->steps[s].adds[k].to) == node)
                *sum = number(&tr->steps[s].adds[k].sum), there = true;
    return there;
}

static void registers_are_those_of_walking_the_sweep(void **state) {
    const char    *words[] = {"a = x*y; b = sin(a)*a + x*x*a; c = 0*b + y; c*b - relu(x - 5) + 3 + z*z", "x=2", "y=0.5",
                              "z=1", "w=2"};
    failure        f = {0};
    options o = {.command = command_find("trace", &f), .dtype = COT_F64, .positionals = words, .positional_count = 4};
    traced         x;
    step_registers r = {0};
    (void)state;
    assert_true(traced_open(&x, &o, &f));
    assert_true(registers_open(&r, x.trace, &f));
    assert_true(x.trace->step_count > 10);
    for (int64_t swept = 0; swept <= x.trace->step_count; swept++)
        for (int64_t node = 0; node < x.trace->node_count; node++) {
            cot__view v;
            double    expected = -1;
            bool      there = walked(x.trace, node, swept, &expected);
            assert_int_equal(registers_read(&r, x.trace, node, swept, &v), there);
            if (there) assert_true(number(&v) == expected);
        }
    cot__view v;
    assert_false(registers_read(&r, x.trace, x.trace->output, -1, &v)); /* before the seed is set */
    registers_close(&r);
    traced_close(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_key_leaves_the_help),
        cmocka_unit_test(a_walk_visits_nodes_then_the_seed_then_the_sweep_then_the_end),
        cmocka_unit_test(without_a_sweep_the_end_follows_the_tape),
        cmocka_unit_test(jumps_are_checked),
        cmocka_unit_test(a_refit_keeps_the_place_as_well_as_it_can),
        cmocka_unit_test(a_change_is_handed_over_whole),
        cmocka_unit_test(a_line_that_is_too_long_is_not_half_a_line),
        cmocka_unit_test(leaving_works_from_everywhere),
        cmocka_unit_test(sequences_are_keys_in_any_pieces),
        cmocka_unit_test(a_sequence_without_end_does_not_fill_the_room),
        cmocka_unit_test(text_for_a_terminal_holds_no_orders_to_it),
        cmocka_unit_test(registers_are_those_of_walking_the_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
