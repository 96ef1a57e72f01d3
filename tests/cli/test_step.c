/* test_step.c: trace --step in a pseudo-terminal: the contents of the screen. */
/* ctest: timeout=240 */
#define _GNU_SOURCE
#include "support/step_test.h"

/* ---- what is shown --------------------------------------------------------------------------- */

static void the_first_screen_shows_the_tape_and_one_value(void **state) {
    (void)state;
    begin_example(24, 80);
    sees_line(1, "x1*x2+sin(x1)");
    sees_line(3, "  node        operation                 value");
    sees_line(4, "> x1          leaf                      2");
    sees_line(5, "  x2          leaf                      ?");
    sees_line(6, "  v₁          mul x1 x2                 ?");
    sees_line(7, "  v₂          sin x1                    ?");
    sees_line(8, "  f           add v₁ v₂                 ?");
    /* to the very edge */
    sees_line(9, "── forward: node 1 of 5 ────────────────────────────────────────────────────────");
    sees_line(10, "x1, an input");
    sees_line(24, "step 1/12  n next  b back  p predict  g go to  r sweep  i input  ? help  q quit");
    assert_true(seen.alternate);
    assert_false(seen.cursor);
    send("q");
    ends_well();
}

static void values_are_revealed_one_by_one(void **state) {
    (void)state;
    begin_example(24, 80);
    send("n");
    sees_line(5, "> x2          leaf                      5");
    sees_line(6, "  v₁          mul x1 x2                 ?");
    send(" ");
    sees_line(6, "> v₁          mul x1 x2                 10");
    sees_line(2, "^~~~~");
    sees_line(10, "v₁ = mul x1 x2");
    sees_line(11, "value    10");
    sees_line(13, "rule     x·y = x1·x2");
    sees_line(14, "saves    x1, x2");
    sees_line(7, "  v₂          sin x1                    ?");
    send("\033[C");
    sees_line(7, "> v₂          sin x1                    0.909297");
    sees_line(2, "      ^~~~~~~");
    sees_line(11, "value    0.9092974268256817");
    send("\033OC");
    sees_line(8, "> f           add v₁ v₂                 10.9093");
    sees_line(14, "saves    nothing");
    send("q");
    ends_well();
}

static void the_sweep_fills_registers_and_sums(void **state) {
    (void)state;
    begin_example(24, 80);
    send("r");
    at_step("step 6/12");
    sees_line(3, "  node        operation                 value               adjoint");
    sees_line(4, "  x1          leaf                      2                   0");
    sees_line(8, "> f           add v₁ v₂                 10.9093             1");
    sees_line(11, "f̄ = 1");
    send("n");
    at_step("step 7/12");
    sees_line(6, "+ v₁          mul x1 x2                 10                  1");
    sees_line(7, "+ v₂          sin x1                    0.909297            1");
    sees_line(8, "> f           add v₁ v₂                 10.9093             1");
    send("n");
    sees_line(4, "+ x1          leaf                      2                   -0.416147");
    sees_line(7, "> v₂          sin x1                    0.909297            1");
    sees_line(10, "v₂ = sin x1, adjoint v̄₂ = 1");
    sees_line(11, "to      rule                   filled in              adds          so far");
    sees_line(12, "x̄1      g·cos(x)               v̄₂·cos(x1)             -0.416147     -0.416147");
    send("n");
    sees_line(4, "+ x1          leaf                      2                   4.58385");
    sees_line(5, "+ x2          leaf                      5                   2");
    sees_line(12, "x̄1      g·y                    v̄₁·x2                  5             4.58385");
    sees_line(13, "x̄2      g·x                    v̄₁·x1                  2             2");
    send("n");
    sees_line(5, "> x2          leaf                      5                   2");
    sees_line(11, "x2 is an input: its adjoint is the gradient.");
    send("nn");
    at_step("step 12/12");
    sees_line(10, "value = 10.909297426825681");
    sees_line(11, "d/dx1 = 4.583853163452858");
    sees_line(12, "d/dx2 = 2");
    send("n");
    send("b"); /* at the end n does nothing, so this goes to the step before */
    at_step("step 11/12");
    send("q");
    ends_well();
}

static void the_graph_stands_beside_the_tape(void **state) {
    (void)state;
    begin_example(24, 100);
    send("nn");
    sees_line(3, "  node        operation                     value                                           graph");
    sees_line(4, "  x1          leaf                          2                                               ●─╮");
    sees_line(5, "  x2          leaf                          5                                               ●─│─╮");
    sees_line(6, "> v₁          mul x1 x2                     10                                              ●◂┼─┴─╮");
    sees_line(7, "  v₂          sin x1                        ?                                               ●─┴─╮ │");
    sees_line(8, "  f           add v₁ v₂                     ?                                               ●───┴─╯");
    send("g8\r");
    sees_line(7, "> v₂          sin x1                        0.909297               1                        ●▸┴─╮ │");
    send("q");
    ends_well();
}

static void a_step_can_be_predicted_before_it_is_shown(void **state) {
    (void)state;
    begin_example(24, 80);
    send("p"); /* the next step is an input */
    sees_line(24, "the next step finds no single number; go on, and try p there");
    send("np");
    sees_line(24, "v₁ = mul x1 x2  + - 0 or a number:");
    sees_line(6, "  v₁          mul x1 x2                 ?"); /* not shown yet */
    send("9\r");
    sees_line(24, "Not so: v₁ is 10. Right so far: 0 of 1.");
    sees_line(6, "> v₁          mul x1 x2                 10");
    send("p0.9\r"); /* within a twentieth */
    sees_line(24, "Right: v₂ is 0.909297. Right so far: 1 of 2.");
    send("p+\r");
    sees_line(24, "Right: f is 10.9093. Right so far: 2 of 3.");
    send("p");
    sees_line(24, "the next step finds no single number; go on, and try p there");
    send("nnp");
    sees_line(24, "x̄1 += v̄₂·cos(x1)  + - 0 or a number:");
    send("much\r");
    sees_line(24, "a prediction is +, - or 0, or a number, not 'much'");
    send("p-\r");
    sees_line(24, "Right: x̄1 is -0.416147. Right so far: 3 of 4.");
    send("q");
    ends_well();
}

static void forward_mode_is_walked_too(void **state) {
    (void)state;
    begin(24, 80, WORDS("--mode", "forward", "x1*x2+sin(x1)", "x1=2", "x2=5"), NULL);
    at_step("step 1/15");
    send("r");
    sees_line(3, "  node        operation                 value               tangent");
    sees_line(10, "A tangent says how a value moves with an input. Each number has a walk: 2.");
    send("n");
    sees_line(4, "> x1          leaf                      2                   1");
    sees_line(5, "  x2          leaf                      5                   0");
    sees_line(6, "  v₁          mul x1 x2                 10");
    sees_line(9, "── tangents: x1 moves, walk 1 of 2 ─────────────────────────────────────────────");
    send("n");
    sees_line(6, "> v₁          mul x1 x2                 10                  5");
    sees_line(11, "v̇₁ = 5");
    sees_line(12, "rule     ẋ1·x2 + ẋ2·x1");
    send("p-\r");
    sees_line(24, "Right: v̇₂ is -0.416147. Right so far: 1 of 1.");
    send("\033[F");
    sees_line(10, "along x1: ḟ = 4.583853163452858");
    sees_line(11, "along x2: ḟ = 2");
    send("q");
    ends_well();
}

static void steps_go_back_and_jump(void **state) {
    (void)state;
    begin_example(24, 80);
    send("\033[F");
    at_step("step 12/12");
    send("\033[D");
    at_step("step 11/12");
    send("b");
    at_step("step 10/12");
    send("g");
    sees_line(24, "step:");
    assert_true(seen.cursor);
    send("8\r");
    at_step("step 8/12");
    assert_false(seen.cursor);
    /* the sum of before */
    sees_line(4, "+ x1          leaf                      2                   -0.416147");
    sees_line(5, "  x2          leaf                      5                   0");
    send("j3\r");
    at_step("step 3/12");
    sees_line(7, "  v₂          sin x1                    ?"); /* hidden again */
    sees_line(3, "  node        operation                 value");
    send("\033[4~");
    at_step("step 12/12");
    send("\033[H");
    at_step("step 1/12");
    send("b");
    send("\033[6~");
    at_step("step 11/12");
    send("\033[5~");
    at_step("step 1/12");
    send("g13\r");
    sees_line(24, "there is no step 13; they go from 1 to 12");
    send("gfour\r");
    sees_line(24, "a step is a whole number, 1 to 12, not 'four'");
    send("g99999999999999999999999\r");
    sees_line(24, "there is no step 99999999999999999999999; they go from 1 to 12");
    send("g5\033");
    at_step("step 1/12");
    send("gg\177" "12\r");
    at_step("step 12/12");
    send("q");
    ends_well();
}

static void keys_are_explained(void **state) {
    (void)state;
    begin_example(24, 80);
    send("?");
    sees("i, name = value   change an input");
    send("n"); /* only leaves the help */
    at_step("step 1/12");
    send("?");
    sees("one step back");
    send("q"); /* leaves the help, as any key */
    at_step("step 1/12");
    send("q");
    ends_well();
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static void an_input_can_be_changed(void **state) {
    (void)state;
    begin_example(24, 80);
    send("g9\r");
    at_step("step 9/12");
    send("ix1 = pi / 2");
    sees_line(24, "name = value: x1 = pi / 2");
    send("\r");
    sees_line(24, "x1 = pi / 2: computed again");
    sees_line(4, "+ x1          leaf                      1.5708              5");
    sees_line(6, "> v₁          mul x1 x2                 7.85398             1");
    send("ix2=-1\r");
    sees_line(24, "x2=-1: computed again");
    sees_line(5, "+ x2          leaf                      -1                  1.5708");
    send("b");
    at_step("step 8/12");
    send("q");
    ends_well();
}

static void a_bad_change_is_told_and_nothing_is_lost(void **state) {
    static const struct { const char *typed, *message; } cases[] = {
        {"x3 = 1", "there is no input x3; did you mean x1?"},
        {"velocity = 1", "there is no input velocity; there is x1, x2"},
        {"7", "write name = value, with a name of x1, x2"},
        {"= 7", "write name = value, with a name of x1, x2"},
        {"x1", "write name = value, with a name of x1, x2"},
        {"x1 =", "x1: there is no value"},
        {"x1 = [1,", "x1: expected"},
        {"x1 = foo", "x1: a value is made of numbers, and foo is a name"},
        {"x1 = @nowhere.npy", "nowhere.npy"},
        {"x1 = [1,2]", "the value has shape (2,), not one element"},
    };
    (void)state;
    begin_example(24, 80);
    send("g9\r");
    at_step("step 9/12");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        send("i");
        send(cases[k].typed);
        send("\r");
        sees(cases[k].message);
        sees_line(4, "+ x1          leaf                      2                   4.58385");
        sees_line(5, "+ x2          leaf                      5                   2");
        send("x"); /* means nothing, and wipes the message */
        at_step("step 9/12");
    }
    send("i\033[A"); /* the last line again, to mend it */
    sees_line(24, "name = value: x1 = [1,2]");
    send("\177\177\177\177\177" "3\r");
    sees_line(24, "x1 = 3: computed again");
    sees_line(4, "+ x1          leaf                      3                   4.01001");
    send("i\r"); /* nothing typed, nothing changed */
    at_step("step 9/12");
    send("ix1 = 4\025x1 = 5 6\027\r"); /* a line wiped, a word wiped */
    sees_line(24, "x1 = 5 : computed again");
    send("q");
    ends_well();
}

static void a_line_that_is_too_long_does_nothing(void **state) {
    char line[3001];
    (void)state;
    memset(line, '1', sizeof line - 1);
    memcpy(line, "ix1 = ", 6);
    line[sizeof line - 1] = 0;
    begin_example(24, 80);
    send(line);
    send("\r");
    sees_line(24, "a line holds at most 1023 bytes; this one is longer, and nothing was done");
    sees_line(4, "> x1          leaf                      2");
    send("q");
    ends_well();
}

static void a_tape_of_another_length_keeps_the_place(void **state) {
    (void)state;
    begin(24, 80, WORDS("y = x*x if x > 0 else x; y*y", "x=-3"), NULL);
    send("r");
    sees("reverse: the seed");
    send("ix = 2\r");
    sees("x = 2: computed again");
    sees("reverse: the seed");
    send("\033[F");
    sees("value = 16");
    sees("d/dx = 32");
    send("ix = -2\r");
    sees("d/dx = -4");
    send("ix = cast(3, i64)\r"); /* no derivative any more */
    sees("no reverse sweep");
    sees("The value depends on no float input: there is nothing to sweep.");
    send("q");
    ends_well();
}

static void only_what_is_wanted_is_a_gradient(void **state) {
    (void)state;
    begin(24, 80, WORDS("x*y + z[0]", "x=2", "y=3", "z=[4,5]", "--wrt", "y,z"), NULL);
    send("\033[F");
    sees("value = 10");
    sees("d/dy = 2");
    sees("d/dz = [1 0]");
    assert_false(some_line_has("d/dx", 0));
    send("iy = cast(1, i64)\r");
    sees("--wrt: y is i64, and only floats have derivatives");
    sees("d/dy = 2");
    send("q");
    ends_well();
}

/* ---- colour and length ----------------------------------------------------------------------- */

static void colour_only_where_it_is_welcome(void **state) {
    (void)state;
    begin_example(24, 80);
    assert_true(seen.coloured);
    send("q");
    ends_well();
    begin(24, 80, WORDS("x*x", "x=2"), WORDS("NO_COLOR=1"));
    sees("step 1/");
    send("rnn");
    /* the marks do without */
    sees("> x           leaf                      2                   4");
    assert_false(seen.coloured);
    send("q");
    ends_well();
}

static void a_tape_of_a_hundred_thousand_nodes_moves_at_once(void **state) {
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/long.txt", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("x", file);
    for (int k = 0; k < 50000; k++) fputs("+x*x", file);
    fclose(file);
    begin(24, 80, WORDS("-f", path, "x=1"), NULL);
    at_step("step 1/200004");
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int k = 0; k < 20; k++) {
        send("g150000\r");
        sees("reverse: step 49998 of 100001");
        send("n");
        sees("reverse: step 49999 of 100001");
        send("g70000\r");
        sees("> v₆₉₉₉₉");
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    /* 60 screens; walking the sweep for each register would take minutes. */
    assert_true((double)(end.tv_sec - start.tv_sec) < 20);
    send("\033[F");
    sees("d/dx = 100001");
    send("q");
    ends_well();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_screen_shows_the_tape_and_one_value),
        cmocka_unit_test(values_are_revealed_one_by_one),
        cmocka_unit_test(the_sweep_fills_registers_and_sums),
        cmocka_unit_test(the_graph_stands_beside_the_tape),
        cmocka_unit_test(a_step_can_be_predicted_before_it_is_shown),
        cmocka_unit_test(forward_mode_is_walked_too),
        cmocka_unit_test(steps_go_back_and_jump),
        cmocka_unit_test(keys_are_explained),
        cmocka_unit_test(an_input_can_be_changed),
        cmocka_unit_test(a_bad_change_is_told_and_nothing_is_lost),
        cmocka_unit_test(a_line_that_is_too_long_does_nothing),
        cmocka_unit_test(a_tape_of_another_length_keeps_the_place),
        cmocka_unit_test(only_what_is_wanted_is_a_gradient),
        cmocka_unit_test(colour_only_where_it_is_welcome),
        cmocka_unit_test(a_tape_of_a_hundred_thousand_nodes_moves_at_once),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
