/* test_step_terminal.c: trace --step gives the terminal back however it ends, works at any size and
 * with any bytes, and says when it cannot work. */
/* ctest: timeout=240 */
#define _GNU_SOURCE
#include "support/step_test.h"

/* ---- the terminal is given back -------------------------------------------------------------- */

static void every_way_out_restores_the_terminal(void **state) {
    static const char *const ways[] = {"q", "Q", "\003", "\004", "?qq", "i\003", "g\004", "ix1 = 4\003"};
    (void)state;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        begin_example(24, 80);
        struct termios now;
        assert_int_equal(tcgetattr(slave, &now), 0);
        assert_true((now.c_lflag & (ICANON | ECHO)) == 0 && (settings.c_lflag & ICANON));
        send(ways[k]);
        ends_well();
    }
}

static void deadly_signals_restore_it_too(void **state) {
    static const int deadly[] = {SIGTERM, SIGHUP, SIGQUIT};
    (void)state;
    for (size_t k = 0; k < sizeof deadly / sizeof *deadly; k++) {
        begin_example(24, 80);
        kill(child, deadly[k]);
        int status = finish();
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), deadly[k]);
        is_restored();
        close_terminal();
    }
}

/* The first value costs nothing, the second takes a while. */
static void a_long_computation_can_be_interrupted(void **state) {
    (void)state;
    begin(24, 80, WORDS("sum(svdvals(W)) if x > 0 else x*x", "x=-1", "W=uniform(1, [1200, 1200], 1)"), NULL);
    sees("step 1/");
    send("ix = 1\r");
    poll(NULL, 0, 200);
    send("\003");
    int status = finish();
    bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0; /* on a very fast machine */
    assert_true(done || (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT));
    is_restored();
    close_terminal();
}

static void any_allocation_may_fail(void **state) {
    (void)state;
#ifdef COT_FAIL_MALLOC
    int failed = 0, fine = 0;
    for (int on = 0; on < 2; on++)
        for (int n = 1; n < 500; n += n < 100 ? 1 : 9) {
            char at[32];
            snprintf(at, sizeof at, "COT_FAIL_AT=%d", n);
            begin(24, 80, WORDS("x*y + sin(x)", "x=2", "y=5", "--threads", "1"),
                  WORDS("LD_PRELOAD=" COT_FAIL_MALLOC, at, on ? "COT_FAIL_ON=1" : "COT_UNUSED=1"));
            send("nix = 3\rrniy = [\rnq");
            int status = finish();
            assert_true(WIFEXITED(status));
            if (WEXITSTATUS(status) != 0) assert_int_equal(WEXITSTATUS(status), 3);
            failed += WEXITSTATUS(status) == 3;
            fine += WEXITSTATUS(status) == 0;
            is_restored();
            assert_string_equal(seen.fault, "");
            close_terminal();
        }
    assert_true(failed > 0 && fine > 0);
#else
    skip();
#endif
}

static void the_end_of_the_input_is_the_end(void **state) {
    (void)state;
    open_terminal(24, 80);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        enter_terminal();
        /* as nohup does: the command notices only the end of the input */
        signal(SIGHUP, SIG_IGN);
        run_command(WORDS("x*x", "x=2"), NULL);
    }
    sees("step 1/6");
    close(master);
    master = -1;
    int status = finish();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close_terminal();
}

/* A process between the test and the command acts as a shell, because a command without one cannot
 * be stopped. It writes 's' when the command stopped, and continues the command when it is told
 * to. */
static void play_shell(int say, int hear) {
    char  told;
    int   status;
    pid_t command = fork();
    if (command == 0) {
        setpgid(0, 0);
        signal(SIGTTOU, SIG_IGN);
        tcsetpgrp(0, getpid());
        signal(SIGTTOU, SIG_DFL);
        run_command(WORDS("x1*x2+sin(x1)", "x1=2", "x2=5"), NULL);
    }
    signal(SIGTTOU, SIG_IGN);
    while (waitpid(command, &status, WUNTRACED) == command && WIFSTOPPED(status)) {
        if (write(say, "s", 1) != 1 || read(hear, &told, 1) != 1) _exit(1);
        kill(command, SIGCONT);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

static void a_stop_gives_the_terminal_back_for_its_time(void **state) {
    int  up[2], down[2];
    char said;
    (void)state;
    assert_true(pipe(up) == 0 && pipe(down) == 0);
    open_terminal(24, 80);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        enter_terminal();
        play_shell(up[1], down[0]);
    }
    at_step("step 1/12");
    send("nn");
    at_step("step 3/12");
    for (int k = 0; k < 2; k++) {
        send("\032");
        assert_int_equal(read(up[0], &said, 1), 1);
        is_restored();
        screen_clear(&seen);
        assert_int_equal(write(down[1], "c", 1), 1);
        at_step("step 3/12"); /* drawn again, with nothing typed */
        assert_true(seen.alternate);
        assert_false(seen.cursor);
    }
    send("n");
    at_step("step 4/12");
    send("q");
    ends_well();
    close(up[0]), close(up[1]), close(down[0]), close(down[1]);
}

/* ---- sizes and bytes ------------------------------------------------------------------------- */

static void resize(int rows, int columns) {
    while (take_output(0)) {}
    screen now = seen;
    screen_start(&seen, rows, columns);
    seen.alternate = now.alternate, seen.cursor = now.cursor, seen.wraps = now.wraps;
    set_size(rows, columns); /* sends SIGWINCH */
}

static void it_follows_the_size_of_the_terminal(void **state) {
    (void)state;
    begin_example(24, 80);
    send("g9\r");
    at_step("step 9/12");
    resize(40, 120);
    at_step("step 9/12");
    sees("> v₁          mul x1 x2");
    sees_line(40, "step 9/12  n next  b back  p predict  g go to  r sweep  i input  ? help  q quit");
    resize(10, 40);
    sees_line(10, "step 9/12  n next  b back  p predict  g…");
    sees_line(1, "x1*x2+sin(x1)");
    sees("> v₁      mul x1 x2   10       1");
    sees("x̄1 += v̄₁·x2  (g·y)");
    /* the panel scrolls to lines that have no room */
    send("\033[B\033[B");
    sees("x̄2 += v̄₁·x1  (g·x)");
    sees("  adds 2, so far 2");
    send("q");
    ends_well();
}

static void no_size_is_too_small(void **state) {
    static const int rows[]    = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 19, 20, 60},
                     columns[] = {1, 2, 3, 7, 12, 20, 39, 63, 64, 199};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            static const char *const keys[] = {"n", "\033[B", "?", "n", "i", "x", "\r",    "g",
                                               "x", "\r",     "r", "n", "n", "n", "\033[F"};
            begin(rows[r], columns[c],
                  WORDS("h = W @ x; sum(tanh(h) * concat([h, h], axis=0)[1:3]) + h[0]", "W=[[1,2],[3,4]]", "x=[1,2]"),
                  NULL);
            /* on, scrolled, help, prompts, errors, the sweep */
            for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) press(keys[k]);
            send("q");
            ends_well();
            if (seen.fault[0]) fail_msg("%dx%d: %s", rows[r], columns[c], seen.fault);
        }
}

static void other_keys_and_sequences_mean_nothing(void **state) {
    static const char *const garbage[] = {"xyzwX",
                                          "\033[15~",
                                          "\033[1;5P",
                                          "\033[200~",
                                          "\033OP",
                                          "\033[Z",
                                          "\033a",
                                          "\303\251\342\202\254",
                                          "\001\002\005",
                                          "\033[<0;1;2M",
                                          "\377\376",
                                          "\033[?1c",
                                          "\033[99;99;99;99;99;99;99;99;99;99;99;99;99x",
                                          "\033[\030"};
    (void)state;
    begin_example(24, 80);
    for (size_t k = 0; k < sizeof garbage / sizeof *garbage; k++) {
        send(garbage[k]);
        send("n");
        at_step("step 2/12");
        send("b");
        at_step("step 1/12");
    }
    send("\033"); /* alone, then a key: not Alt with a key, once it has waited */
    rest();
    send("n");
    at_step("step 2/12");
    srand(4);
    for (int k = 0; k < 3000; k++) { /* anything but a way out; the inputs may change */
        char byte[2] = {(char)(rand() % 256), 0};
        if (strchr("qQ\003\004\032\034", byte[0])) continue;
        send(byte);
        while (take_output(0)) {}
    }
    send("\033");
    rest();
    send("\025\033"); /* out of a prompt */
    rest();
    send("x\033[H");
    at_step("step 1/12");
    send("q");
    ends_well();
}

static void strange_bytes_of_the_expression_stay_harmless(void **state) {
    (void)state;
    begin(24, 80, WORDS("(x*x # \033[31m\302\233 \377 \344\270\255\xcc\x84 \t\n + x)", "x=2"), NULL);
    sees_line(1, "(x*x # ?[31m?? ? 中\xcc\x84    + x)");
    send("q");
    ends_well();
}

static void wide_characters_are_cut_at_the_edge(void **state) {
    (void)state;
    begin(24, 31, WORDS("x*x # 中中中中中中中中中中中中中中中中中中", "x=2"), NULL);
    sees_line(1, "x*x # 中中中中中中中中中中中中…");
    send("q");
    ends_well();
}

/* ---- where it cannot work -------------------------------------------------------------------- */

static void it_asks_for_a_terminal(void **state) {
    (void)state;
    fails("cotangent trace --step x*x x=2", 2,
          "trace --step is interactive, and the standard input is not a terminal; leave out --step to print the tables",
          "");
    fails("cotangent trace --step x*x x=2 --html a.html", 2,
          "--step is interactive; it does not go together with --html", "");
    fails("cotangent trace --step x*x x=2 --dot -", 2, "--step is interactive; it does not go together with --dot", "");
    assert_int_equal(sh("cotangent trace --step --json x*x x=2"), 2);
    assert_non_null(strstr(last.out, "--step is interactive; it does not go together with --json"));
    fails("cotangent grad --step x*x x=2", 2, "grad has no option --step; `cotangent grad --help` lists them", "");
}

static void a_dumb_terminal_is_refused(void **state) {
    static const char *const types[] = {"TERM=dumb", "TERM=", "TERM"};
    (void)state;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        begin(24, 80, WORDS("x*x", "x=2"), WORDS(types[k]));
        int status = finish();
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 2);
        assert_false(seen.alternate);
        is_restored();
        close_terminal();
    }
}

static void a_mistake_in_the_expression_is_told_before_the_screen_changes(void **state) {
    (void)state;
    begin(24, 80, WORDS("x*", "x=2"), NULL);
    int status = finish();
    assert_int_equal(WEXITSTATUS(status), 2);
    assert_false(seen.alternate);
    assert_string_equal(seen.fault, "");
    close_terminal();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_out_restores_the_terminal),
        cmocka_unit_test(deadly_signals_restore_it_too),
        cmocka_unit_test(a_long_computation_can_be_interrupted),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(the_end_of_the_input_is_the_end),
        cmocka_unit_test(a_stop_gives_the_terminal_back_for_its_time),
        cmocka_unit_test(it_follows_the_size_of_the_terminal),
        cmocka_unit_test(no_size_is_too_small),
        cmocka_unit_test(other_keys_and_sequences_mean_nothing),
        cmocka_unit_test(strange_bytes_of_the_expression_stay_harmless),
        cmocka_unit_test(wide_characters_are_cut_at_the_edge),
        cmocka_unit_test(it_asks_for_a_terminal),
        cmocka_unit_test(a_dumb_terminal_is_refused),
        cmocka_unit_test(a_mistake_in_the_expression_is_told_before_the_screen_changes),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
