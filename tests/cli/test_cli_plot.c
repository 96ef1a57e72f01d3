/* cotangent plot and grad --rank: what they print, whole, and pictures that are well-formed. */
#define _GNU_SOURCE
#include "support/cli_test.h"
#include "support/svg_test.h"
#include "support/terminal_test.h"

#include "draw/bars.h"
#include "draw/chart.h"
#include "draw/pictures.h"
#include "watch/run_row.h"

static void put_run(const char *name, const char *text) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static const char short_run[] = "{\"run\":\"small\",\"steps\":4}\n"
                                "{\"step\":1,\"seconds\":0.5,\"loss\":8,\"rate\":0.1}\n"
                                "{\"step\":2,\"seconds\":1,\"loss\":4,\"rate\":0.1}\n"
                                "{\"step\":2,\"seconds\":1.25,\"test/loss\":5,\"test/accuracy\":0.5}\n"
                                "{\"step\":3,\"seconds\":2,\"loss\":\"nan\",\"rate\":0.05}\n"
                                "{\"step\":3,\"note\":\"the rate is halved\",\"why\":[1,{\"a\":[null,true]}]}\n"
                                "{\"step\":4,\"seconds\":2.5,\"loss\":1,\"rate\":0.05}\n"
                                "{\"step\":4,\"seconds\":2.75,\"test/loss\":1.5,\"test/accuracy\":0.75}\n"
                                "{\"step\":5,\"seco"; /* a line that is being written */

static void plot_says_what_it_draws(void **state) {
    (void)state;
    put_run("run.jsonl", short_run);
    prints("cotangent plot run.jsonl --json",
           "{\"x\":\"step\",\"log\":false,\"smooth\":1,\"series\":["
           "{\"file\":\"run.jsonl\",\"name\":\"loss\",\"points\":4,\"x\":[1,4],\"y\":[1,8],\"last\":1},"
           "{\"file\":\"run.jsonl\",\"name\":\"test/loss\",\"points\":2,\"x\":[2,4],\"y\":[1.5,5],\"last\":1.5}]}\n");
    prints("cotangent plot run.jsonl --json --y test/accuracy --x seconds --smooth 3",
           "{\"x\":\"seconds\",\"log\":false,\"smooth\":3,\"series\":["
           "{\"file\":\"run.jsonl\",\"name\":\"test/accuracy\",\"points\":2,\"x\":[1.25,2.75],\"y\":[0.5,0.75],"
           "\"last\":0.75}]}\n");
    put_run("gpt.jsonl", "{\"step\":1,\"loss\":2,\"val_loss\":3,\"gloss\":4}\n");
    prints("cotangent plot gpt.jsonl --json",
           "{\"x\":\"step\",\"log\":false,\"smooth\":1,\"series\":["
           "{\"file\":\"gpt.jsonl\",\"name\":\"loss\",\"points\":1,\"x\":[1,1],\"y\":[2,2],\"last\":2},"
           "{\"file\":\"gpt.jsonl\",\"name\":\"val_loss\",\"points\":1,\"x\":[1,1],\"y\":[3,3],\"last\":3}]}\n");
    put_run("odd.jsonl", "{\"step\":1,\"a\":-1}\n{\"step\":2,\"a\":0}\n\n{\"step\":3,\"a\":\"-inf\",\"b\":2}\n");
    prints("cotangent plot odd.jsonl --log --y=a --json",
           "{\"x\":\"step\",\"log\":true,\"smooth\":1,\"series\":[{\"file\":\"odd.jsonl\",\"name\":\"a\",\"points\":3,"
           "\"x\":[1,3],\"y\":[-1,0],\"last\":\"-inf\",\"left_out\":2}]}\n");
    prints("cotangent plot odd.jsonl run.jsonl --json --y b,rate",
           "{\"x\":\"step\",\"log\":false,\"smooth\":1,\"series\":[{\"file\":\"odd.jsonl\",\"name\":\"b\",\"points\":1,"
           "\"x\":[3,3],\"y\":[2,2],\"last\":2},{\"file\":\"run.jsonl\",\"name\":\"rate\",\"points\":4,\"x\":[1,4],"
           "\"y\":[0.05,0.1],\"last\":0.05}]}\n");
}

static void plot_draws_in_the_terminal(void **state) {
    (void)state;
    put_run("line.jsonl", "{\"step\":0,\"loss\":0}\n{\"step\":10,\"loss\":10}\n");
    prints("COLUMNS=40 cotangent plot line.jsonl", "line.jsonl\n"
                                                   "loss\n"
                                                   "10 ┤                        ⢀⠄\n"
                                                   "   │                       ⡔⠁\n"
                                                   "   │                     ⡠⠊\n"
                                                   " 8 ┤                   ⢀⠔⠁\n"
                                                   "   │                  ⡠⠃\n"
                                                   "   │                ⢀⠎\n"
                                                   " 6 ┤               ⡔⠁\n"
                                                   "   │             ⡠⠊\n"
                                                   "   │           ⡠⠊\n"
                                                   " 4 ┤         ⢀⠜\n"
                                                   "   │        ⡰⠁\n"
                                                   "   │      ⢠⠊\n"
                                                   " 2 ┤    ⢀⠔⠁\n"
                                                   "   │   ⡠⠊\n"
                                                   "   │ ⢀⠜\n"
                                                   " 0 ┤⠐⠁\n"
                                                   "   └─┬──────────┬───────────┬─\n"
                                                   "     0          5          10\n"
                                                   "               step\n");
    put_run("flat.jsonl", "{\"step\":0,\"loss\":5}\n{\"step\":10,\"loss\":5}\n");
    /* two curves without colour have letters */
    assert_int_equal(sh("COLUMNS=40 cotangent plot line.jsonl flat.jsonl"), 0);
    assert_non_null(strstr(last.out, "2 runs\n* line.jsonl   + flat.jsonl\n"));
    assert_non_null(strstr(last.out, "++++"));
    assert_null(strstr(last.out, "\033"));
    /* names that a terminal would obey are made harmless */
    put_run("evil.jsonl", "{\"step\":0,\"\\u001b[2J/loss\":5}\n");
    assert_int_equal(sh("cotangent plot evil.jsonl"), 0);
    assert_non_null(strstr(last.out, "?[2J/loss\n"));
    assert_null(strchr(last.out, '\033'));
    put_run("odd.jsonl", "{\"step\":1,\"a\":-1}\n{\"step\":2,\"a\":100}\n{\"step\":3,\"a\":1}\n");
    assert_int_equal(sh("cotangent plot odd.jsonl --log"), 0);
    assert_non_null(strstr(last.out, "100 ┤"));
    assert_non_null(strstr(last.out, "\na: 1 number that is not positive has no logarithm and is left out.\n"));
}

static void plot_refuses_in_sentences(void **state) {
    (void)state;
    put_run("run.jsonl", short_run);
    put_run("bad.jsonl", "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":}\n{\"step\":3,\"loss\":1}\n");
    put_run("none.jsonl", "{\"run\":\"x\",\"steps\":3}\n{\"step\":1,\"lo");
    fails("cotangent plot", 2, "which run? cotangent plot run.jsonl", "");
    fails("cotangent plot nowhere.jsonl", 3, "cannot read nowhere.jsonl: No such file or directory", "");
    fails("cotangent plot run.jsonl --y los", 2,
          "--y: there is no 'los', did you mean loss; there is loss, rate, test/loss and test/accuracy", "");
    fails("cotangent plot bad.jsonl", 3, "line 2 of bad.jsonl is no row of a run: it has something else than a value",
          "");
    fails("cotangent plot none.jsonl", 3, "none.jsonl has no numbers yet", "");
    fails("cotangent plot run.jsonl --x time", 2, "--x is step or seconds, not 'time'", "");
    fails("cotangent plot run.jsonl --smooth 0", 2, "--smooth is a whole number from 1 to 1000000000, not '0'", "");
    fails("cotangent plot run.jsonl --follow", 2, "--follow draws again and again, which takes a terminal", "");
    fails("cotangent plot run.jsonl --follow --svg a.svg", 2,
          "--follow draws in the terminal; it does not go together with --svg and --json", "");
    assert_int_equal(sh("cotangent plot run.jsonl --json --svg -"), 2);
}

static void plot_writes_pictures(void **state) {
    (void)state;
    put_run("run.jsonl", short_run);
    assert_int_equal(sh("cotangent plot run.jsonl --svg -"), 0);
    well_formed(last.out);
    /* two curves with dots, the first interrupted at the NaN: a point alone, then a line */
    assert_int_equal(occurrences(last.out, "<path class=\"line c0\" d=\"M"), 2); /* legend, curve */
    assert_int_equal(occurrences(last.out, "<path class=\"point dots c1\""), 1);
    assert_non_null(
        strstr(last.out, "<desc>2 curves against step: loss, 4 points, last 1; test/loss, 2 points, last 1.5"));
    assert_int_equal(sh("cotangent plot run.jsonl run.jsonl --log --smooth 2 --svg a.svg"), 0);
    assert_string_equal(last.err, "cotangent: wrote a.svg\n");
    assert_string_equal(last.out, "");
    sh("cat a.svg");
    well_formed(last.out);
    assert_int_equal(occurrences(last.out, "class=\"line raw c"), 4);
    put_run("a&b<c.jsonl", "{\"step\":1,\"<loss>&\\\"\":1}\n");
    assert_int_equal(sh("cotangent plot 'a&b<c.jsonl' --svg -"), 0);
    well_formed(last.out);
}

/* The means of a window, against sums made directly, also behind a number that swallows all
 * others. */
static void smoothing_is_the_mean_of_the_window(void **state) {
    (void)state;
    put_run("spike.jsonl", "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":1e300}\n{\"step\":3,\"loss\":2}\n"
                           "{\"step\":4,\"loss\":4}\n{\"step\":5,\"loss\":6}\n{\"step\":6,\"loss\":\"nan\"}\n"
                           "{\"step\":7,\"loss\":8}\n{\"step\":1000,\"loss\":3}\n");
    /* the logarithms of the means over 3 steps are places in the picture: those of steps 4 and 5
     * (mean 4 and 5), 7 (8) and 1000 (3) only depend on what is within their window */
    put_run("same.jsonl", "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":1e300}\n{\"step\":3,\"loss\":2}\n"
                          "{\"step\":4,\"loss\":4}\n{\"step\":5,\"loss\":5}\n{\"step\":6,\"loss\":\"nan\"}\n"
                          "{\"step\":7,\"loss\":8}\n{\"step\":1000,\"loss\":3}\n");
    sh("cotangent plot spike.jsonl --smooth 3 --log --svg - | grep '\"line c0\" d' | tail -1 > smooth; "
       "cotangent plot same.jsonl --log --svg - | grep '\"line c0\" d' | tail -1 > plain; "
       "sed 's/.*d=\"//; s/[ML]/\\n/g' smooth | sed -n '5,8p'; sed 's/.*d=\"//; s/[ML]/\\n/g' plain | sed -n '5,8p'");
    char *half = last.out + strlen(last.out) / 2;
    assert_true(strlen(last.out) > 20 && *half);
    assert_int_equal(strlen(last.out) % 2, 0);
    assert_int_equal(memcmp(last.out, half, strlen(half)), 0);
}

/* Ends by itself when the run has done its steps; draws on a cleared screen. */
static void plot_follows_a_run(void **state) {
    (void)state;
    int  master, slave, status = 0;
    char got[1 << 16], path[96];
    put_run("live.jsonl", "{\"run\":\"r\",\"steps\":2}\n{\"step\":1,\"loss\":2}\n");
    take_terminal(&master, &slave);
    pid_t child = fork();
    if (child == 0) {
        dup2(slave, 1);
        snprintf(got, sizeof got, "%s/cotangent", COT_COMMAND_FOLDER);
        if (chdir(folder) == 0) execl(got, "cotangent", "plot", "live.jsonl", "--follow", (char *)NULL);
        _exit(9);
    }
    close(slave);
    usleep(300000);
    snprintf(path, sizeof path, "%s/live.jsonl", folder);
    FILE *file = fopen(path, "ab");
    fputs("{\"step\":2,\"loss\":1}\n", file);
    fclose(file);
    size_t used = 0;
    for (ssize_t n; used + 1 < sizeof got && (n = read(master, got + used, sizeof got - 1 - used)) > 0;)
        used += (size_t)n;
    got[used] = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(master);
    assert_int_equal(occurrences(got, "\033[H\033[2Jlive.jsonl"), 2);
}

static void rank_orders_by_sensitivity(void **state) {
    (void)state;
    prints("COLUMNS=50 cotangent grad --rank 'x**3*y/z' x=2 y=3 z=4",
           "value = 6, sensitivities x/f*df/dx:\n"
           "x             ███████████████████████████████▌   3\n"
           "y             ██████████▌                        1\n"
           "z  ▐██████████                                  -1\n");
    prints("cotangent grad --rank --json 'sum(W @ x)*y' W=[[1,2],[3,4]] x=[1,0] y=2 --wrt W,x --top 3",
           "{\"value\":8,\"measure\":\"x/f*df/dx\",\"rank\":["
           "{\"name\":\"x[0]\",\"sensitivity\":1,\"derivative\":8,\"at\":1},"
           "{\"name\":\"W[1,0]\",\"sensitivity\":0.75,\"derivative\":2,\"at\":3},"
           "{\"name\":\"W[0,0]\",\"sensitivity\":0.25,\"derivative\":2,\"at\":1}],"
           "\"remarks\":\"1 input is 0, where a change in percent is no change: its sensitivity is 0 whatever the "
           "derivative.\\n3 more are not shown, none above 0 in magnitude.\"}\n");
    prints("COLUMNS=40 cotangent grad --rank 'x - y' x=2 y=2",
           "value = 0, sensitivities x*df/dx:\n"
           "x                  ████████████████    2\n"
           "y  ████████████████                   -2\n"
           "The value is 0, so nothing is a percent of it: ranked by x*df/dx, not x/f*df/dx.\n");
    prints("COLUMNS=40 cotangent grad --rank 'sqrt(x) + y' x=0 y=2",
           "value = 2, sensitivities x/f*df/dx:\n"
           "y  ████████████████████████████████    1\n"
           "x                                    nan\n"
           "1 sensitivity is not finite; `cotangent explain` says why.\n");
    prints("cotangent grad --rank --json --dtype f32 'x*x' x=3",
           "{\"value\":9,\"measure\":\"x/f*df/"
           "dx\",\"rank\":[{\"name\":\"x\",\"sensitivity\":2,\"derivative\":6,\"at\":3}]}\n");
}

static void rank_refuses_in_sentences(void **state) {
    (void)state;
    fails("cotangent grad --top 3 x x=1", 2, "--top says how many inputs --rank lists; give both", "");
    fails("cotangent grad --svg a.svg x x=1", 2, "--svg draws what --rank lists; give both", "");
    fails("cotangent grad --rank x x=[1,2] --seed 1", 2, "--rank is for a value of one element, which needs no --seed",
          "");
    assert_int_equal(sh("cotangent grad --rank 'x*y' x=2 y=3 --svg -"), 0);
    well_formed(last.out);
    assert_int_equal(occurrences(last.out, "<rect class=\"bar c0\""), 2);
    assert_int_equal(sh("cotangent grad --rank 'x/y' x=2 y=3 --svg r.svg"), 0);
    assert_string_equal(last.err, "cotangent: wrote r.svg\n");
    assert_non_null(strstr(last.out, "value = 0.6666666666666666, sensitivities x/f*df/dx:\nx"));
}

/* ---- drawings without a command -------------------------------------------------------------- */

static char *drawn(FILE **file, size_t *size) {
    static char *text;
    if (*file) {
        fclose(*file);
        return text;
    }
    *file = open_memstream(&text, size);
    return NULL;
}

static void images_are_runs_of_greys(void **state) {
    (void)state;
    /* black, two whites in a run, half grey, beyond both ends, and a NaN, which is black */
    static const float       pixels[]   = {0, 1, 1, 0.5f, 0, 0, 2, -1, NAN, 0, 0, 1};
    static const char *const captions[] = {"4 → 9", "<"};
    size_t                   size;
    FILE                    *file = NULL;
    drawn(&file, &size);
    picture_images(file, &(picture_grid){"wrong ones", "two digits", 2, 5, 2, 3, pixels, captions});
    char *text = drawn(&file, &size);
    well_formed(text);
    assert_non_null(strstr(text, "<path stroke=\"#ffffff\" d=\"M1 0.5h2\"/>"));
    assert_non_null(strstr(text, "<path stroke=\"#848484\" d=\"M0 1.5h1\"/>"));
    assert_non_null(strstr(text, "<path stroke=\"#ffffff\" d=\"M0 0.5h1M2 1.5h1\"/>"));
    assert_non_null(strstr(text, ">4 → 9</text>"));
    free(text);
}

static void clouds_have_a_class_each(void **state) {
    (void)state;
    static const double      x[] = {1, 2, 3, 4, NAN}, y[] = {1, 2, 3, 4, 5};
    static const int         classes[] = {0, 1, 1, 7, 0};
    static const char *const names[]   = {"Mr. Hi", "Officer"};
    size_t                   size;
    FILE                    *file = NULL;
    drawn(&file, &size);
    assert_true(picture_scatter(file, &(picture_cloud){"clubs", "34 members", 5, x, y, classes, 2, names}));
    char *text = drawn(&file, &size);
    well_formed(text);
    const char *first  = strstr(text, "<path class=\"point dots c0\""),
               *second = strstr(text, "<path class=\"point dots c1\"");
    assert_true(first && second);
    assert_int_equal(occurrences(second, "h0"), 2);
    assert_int_equal(occurrences(first, "h0"), 3);
    assert_non_null(strstr(text, ">Officer</text>"));
    free(text);
}

static void logarithmic_ticks_are_round(void **state) {
    (void)state;
    double ticks[SVG_TICKS];
    char   buf[40];
    /* 0.04 to 3: 0.05 0.1 0.2 0.5 1 2 */
    assert_int_equal(svg_log_ticks((svg_range){-1.39, 0.48}, 9, ticks), 6);
    assert_string_equal(svg_log_tick_text(ticks[0], buf), "0.05");
    assert_string_equal(svg_log_tick_text(ticks[1], buf), "0.1");
    assert_string_equal(svg_log_tick_text(ticks[5], buf), "2");
    int n = svg_log_ticks((svg_range){-300, 300}, 9, ticks);
    assert_true(n >= 5 && n <= 9);
    assert_true(svg_log_ticks((svg_range){-1.7e308, 1.7e308}, 9, ticks) <= SVG_TICKS); /* it ends */
    assert_true(svg_log_ticks((svg_range){-1e300, 1e300}, 9, ticks) <= SVG_TICKS);
    assert_string_equal(svg_log_tick_text(-12, buf), "1e-12");
    assert_string_equal(svg_log_tick_text(5, buf), "100000");
    assert_string_equal(svg_log_tick_text(6, buf), "1e6");
}

/* Of many corners, a column keeps its lowest and its highest. */
static void long_lines_are_thinned_to_their_ends(void **state) {
    (void)state;
    enum { MANY = 200000 };
    double *x = malloc(2 * MANY * sizeof *x), *y = x + MANY;
    size_t  size;
    FILE   *file = NULL;
    for (int i = 0; i < MANY; i++) x[i] = i, y[i] = i % 7 == 3 ? 1 : 0;
    y[100003] = 9;
    drawn(&file, &size);
    svg_panel p = {file, 0, 0, 500, 100, {0, MANY}, {0, 10}, false};
    svg_line(&p, "line", MANY, x, y);
    char *text = drawn(&file, &size);
    assert_true(size < 501 * 3 * 12 + 200);
    assert_non_null(strstr(text, " 10.0L")); /* the spike at 9 of 10 */
    free(text);
    free(x);
}

static void rows_are_strict_json(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double      value; /* NAN: it is no number and passed over, or the line is refused */
        bool        fine;
    } rows[] = {{"1", 1, true},
                {" -0.5e2 ", -50, true},
                {"1e400", INFINITY, true},
                {"\"inf\"", INFINITY, true},
                {"\"-inf\"", -INFINITY, true},
                {"true", NAN, true},
                {"[]", NAN, true},
                {"\"\\\"\"", NAN, true},
                {"{\"a\":[1,{\"b\":null}],\"c\":\"]\"}", NAN, true},
                {"01", NAN, false},
                {"1.", NAN, false},
                {".5", NAN, false},
                {"-", NAN, false},
                {"1e", NAN, false},
                {"+1", NAN, false},
                {"", NAN, false},
                {"[[", NAN, false},
                {"truth", NAN, false},
                {"1 2", NAN, false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char    line[100];
        bool    memory;
        run_row r;
        int     n = snprintf(line, sizeof line, "{\"step\":3,\"v\":%s}", rows[k].text);
        if (rows[k].fine != !run_row_read(&r, line, (size_t)n, &memory)) fail_msg("%s", line);
        if (rows[k].fine) assert_true(r.has_step && r.step == 3);
        if (rows[k].fine) assert_int_equal(r.n, !isnan(rows[k].value));
        if (!isnan(rows[k].value)) assert_true(r.values[0] == rows[k].value && strcmp(r.names[0], "v") == 0);
        run_row_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plot_says_what_it_draws),
        cmocka_unit_test(plot_draws_in_the_terminal),
        cmocka_unit_test(plot_refuses_in_sentences),
        cmocka_unit_test(plot_writes_pictures),
        cmocka_unit_test(smoothing_is_the_mean_of_the_window),
        cmocka_unit_test(plot_follows_a_run),
        cmocka_unit_test(rank_orders_by_sensitivity),
        cmocka_unit_test(rank_refuses_in_sentences),
        cmocka_unit_test(images_are_runs_of_greys),
        cmocka_unit_test(clouds_have_a_class_each),
        cmocka_unit_test(logarithmic_ticks_are_round),
        cmocka_unit_test(long_lines_are_thinned_to_their_ends),
        cmocka_unit_test(rows_are_strict_json),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
