/* What a person sees of a run: the line of progress, the file of JSON lines, TensorBoard's event
 * files, and an end that is asked for. `test_watch --sample FOLDER` writes two runs there, for
 * tests/peers/peer_tensorboard.py. */
#define _GNU_SOURCE
#include "support/cli_test.h"
#include "support/terminal_test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "io/append.h"
#include "io/system.h"
#include "watch/events.h"
#include "watch/peak.h"
#include "watch/run_file.h"
#include "watch/status.h"
#include "watch/watch.h"

static char path_buffer[2][160];

static const char *in_folder(int k, const char *name) {
    snprintf(path_buffer[k], sizeof *path_buffer, "%s/%s", folder, name);
    return path_buffer[k];
}

static void put_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* The text of a file with every "seconds":N as "seconds":S. */
static char *without_times(const char *path) {
    char *text = slurp(path), *to = text;
    for (char *from = text; *from;) {
        size_t key = strncmp(from, "\"seconds\":", 10) == 0 ? 10 : 0;
        memmove(to, from, key ? key : 1);
        to += key ? key : 1, from += key ? key : 1;
        if (key) from += strspn(from, "0123456789.e-"), *to++ = 'S';
    }
    *to = 0;
    return text;
}

/* ---- the file of JSON lines ------------------------------------------------------------------ */

/* Steps first to last of a run of 6, with an evaluation every second one. */
static void run_steps(const char *log, const char *tensorboard, int64_t first, int64_t last_step, int64_t resumed) {
    failure f = {0};
    watch  *w = watch_open(
         &(watch_options){
             .name = "six", .steps = 6, .resumed = resumed, .log = log, .tensorboard = tensorboard, .quiet = true},
         &f);
    assert_string_equal(f.message, "");
    assert_non_null(w);
    for (int64_t k = first; k <= last_step; k++) {
        watch_step(w, k, 1.0 / (double)k, 1, &(watch_number){"rate", 0.125});
        if (k % 2 == 0) {
            watch_row(w, k, 2, (watch_number[]){{"test/loss", 2.0 / (double)k}, {"test/accuracy", 0.5}});
            watch_note(w, k, "half \"way\"");
        }
    }
    watch_close(w);
}

static const char whole_run[] = "{\"run\":\"six\",\"steps\":6}\n"
                                "{\"step\":1,\"seconds\":S,\"loss\":1,\"rate\":0.125}\n"
                                "{\"step\":2,\"seconds\":S,\"loss\":0.5,\"rate\":0.125}\n"
                                "{\"step\":2,\"seconds\":S,\"test/loss\":1,\"test/accuracy\":0.5}\n"
                                "{\"step\":2,\"seconds\":S,\"note\":\"half \\\"way\\\"\"}\n"
                                "{\"step\":3,\"seconds\":S,\"loss\":0.3333333333333333,\"rate\":0.125}\n"
                                "{\"step\":4,\"seconds\":S,\"loss\":0.25,\"rate\":0.125}\n"
                                "{\"step\":4,\"seconds\":S,\"test/loss\":0.5,\"test/accuracy\":0.5}\n"
                                "{\"step\":4,\"seconds\":S,\"note\":\"half \\\"way\\\"\"}\n"
                                "{\"step\":5,\"seconds\":S,\"loss\":0.2,\"rate\":0.125}\n"
                                "{\"step\":6,\"seconds\":S,\"loss\":0.16666666666666666,\"rate\":0.125}\n"
                                "{\"step\":6,\"seconds\":S,\"test/loss\":0.3333333333333333,\"test/accuracy\":0.5}\n"
                                "{\"step\":6,\"seconds\":S,\"note\":\"half \\\"way\\\"\"}\n";

static void a_resumed_log_is_that_of_one_run(void **state) {
    (void)state;
    const char *one = in_folder(0, "one.jsonl"), *two = in_folder(1, "two.jsonl");
    run_steps(one, NULL, 1, 6, 0);
    char *text = without_times(one);
    assert_string_equal(text, whole_run);
    free(text);
    /* saved after step 2, killed in step 5 in the middle of a line; then again after step 4 */
    run_steps(two, NULL, 1, 5, 0);
    FILE *file = fopen(two, "ab");
    fputs("{\"step\":6,\"sec", file);
    fclose(file);
    run_steps(two, NULL, 3, 4, 2);
    run_steps(two, NULL, 5, 6, 4);
    text = without_times(two);
    assert_string_equal(text, whole_run);
    free(text);
    /* a run from the start begins the file again */
    run_steps(two, NULL, 1, 6, 0);
    text = without_times(two);
    assert_string_equal(text, whole_run);
    free(text);
}

static void seconds_go_on_when_a_run_is_resumed(void **state) {
    (void)state;
    const char *path = in_folder(0, "seconds.jsonl");
    failure     f    = {0};
    run_file    r;
    put_text(path, "{\"run\":\"six\",\"steps\":6}\n{\"step\":1,\"seconds\":100.5,\"loss\":1}\n");
    run_steps(path, NULL, 2, 2, 1);
    assert_true(run_file_read(&r, path, &f));
    assert_string_equal(r.series[0].name, "loss");
    assert_int_equal(r.series[0].n, 2);
    assert_true(r.series[0].seconds[1] >= 100.5 && r.series[0].seconds[1] < 200);
    assert_true(r.steps == 6 && r.last == 2);
    run_file_free(&r);
    /* more steps than were planned are said */
    watch *w = watch_open(&(watch_options){.name = "six", .steps = 9, .resumed = 2, .log = path, .quiet = true}, &f);
    assert_non_null(w);
    watch_close(w);
    assert_true(run_file_read(&r, path, &f));
    assert_true(r.steps == 9);
    run_file_free(&r);
}

static void what_is_no_log_is_not_touched(void **state) {
    (void)state;
    const char *path = in_folder(0, "letter.txt");
    failure     f    = {0};
    char        message[400];
    put_text(path, "Dear reader,\nthis is not a log.\n");
    assert_null(watch_open(&(watch_options){.name = "a", .resumed = 3, .log = path, .quiet = true}, &f));
    snprintf(message, sizeof message,
             "cannot go on with %s: line 1 is no row of a run, it has something else than an object", path);
    assert_string_equal(f.message, message);
    char *text = slurp(path);
    assert_string_equal(text, "Dear reader,\nthis is not a log.\n");
    free(text);
    f = (failure){0};
    assert_null(watch_open(&(watch_options){.name = "a", .log = in_folder(1, "no/where"), .quiet = true}, &f));
    snprintf(message, sizeof message, "cannot write %s: No such file or directory", in_folder(1, "no/where"));
    assert_string_equal(f.message, message);
    f = (failure){0};
    assert_null(
        watch_open(&(watch_options){.name = "a", .tensorboard = in_folder(1, "letter.txt/t"), .quiet = true}, &f));
    assert_non_null(strstr(f.message, "Not a directory"));
}

/* ---- a full disk ----------------------------------------------------------------------------- */

/* What run() says on stderr, through a pipe, which no limit of files concerns. */
static char *stderr_of(void (*run)(void)) {
    static char said[4096];
    int         ends[2], kept = dup(2);
    size_t      used = 0;
    fflush(stderr);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    close(ends[1]);
    run();
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    for (ssize_t n; (n = read(ends[0], said + used, sizeof said - 1 - used)) > 0;) used += (size_t)n;
    close(ends[0]);
    said[used] = 0;
    return said;
}

/* A limit on the size of files stands for the disk: it cuts a row in its middle. */
static void run_on_a_full_disk(void) {
    struct rlimit limit, before;
    failure       f = {0};
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    watch *w = watch_open(&(watch_options){.name = "full", .log = in_folder(0, "full.jsonl"), .quiet = true}, &f);
    assert_non_null(w);
    limit          = before;
    limit.rlim_cur = 60;
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int k = 1; k <= 4; k++) watch_step(w, k, 0.5, 0, NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    watch_step(w, 5, 0.25, 0, NULL);
    watch_close(w);
}

static void a_full_disk_is_told_and_survived(void **state) {
    (void)state;
    char expected[600], *said = stderr_of(run_on_a_full_disk), *text = without_times(in_folder(0, "full.jsonl"));
    snprintf(expected, sizeof expected,
             "cotangent: cannot write %s: File too large; the run goes on\n"
             "cotangent: %s lacks 3 rows: File too large\n",
             in_folder(0, "full.jsonl"), in_folder(0, "full.jsonl"));
    assert_string_equal(said, expected);
    assert_string_equal(text, "{\"run\":\"full\"}\n{\"step\":1,\"seconds\":S,\"loss\":0.5}\n"
                              "{\"step\":5,\"seconds\":S,\"loss\":0.25}\n");
    free(text);
}

static void run_into_nothing(void) {
    failure     f = {0};
    append_file a;
    assert_true(append_open(&a, "/dev/full", 0, &f));
    assert_false(append_record(&a, "x", 1)); /* told once */
    assert_true(append_record(&a, "x", 1));
    assert_int_equal(a.missed, 2);
    append_close(&a);
    assert_null(watch_open(&(watch_options){.name = "a", .log = "/dev/full", .quiet = true}, &f));
    assert_string_equal(f.message, "cannot write /dev/full: No space left on device");
}

static void a_device_without_space_is_refused_at_the_start(void **state) {
    (void)state;
    assert_string_equal(stderr_of(run_into_nothing), "");
}

/* ---- TensorBoard ----------------------------------------------------------------------------- */

static void checksums_are_those_of_the_standard(void **state) {
    (void)state;
    uint8_t bytes[32] = {0};
    assert_int_equal(events_crc("123456789", 9), 0xe3069283u); /* the check value of CRC-32C */
    /* RFC 3720, B.4 */
    assert_int_equal(events_crc(bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, 32);
    assert_int_equal(events_crc(bytes, 32), 0x62a8ab43u);
    for (int k = 0; k < 32; k++) bytes[k] = (uint8_t)k;
    assert_int_equal(events_crc(bytes, 32), 0x46dd794eu);
}

/* The bytes that TensorBoard 2.21's own writer makes of the same events. */
static void events_have_known_bytes(void **state) {
    (void)state;
    static const char head[] =
        "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x09\x00\x00\x20\x40\xfc\x54\xd9\x41\x1a\x0d\x62\x72\x61\x69"
        "\x6e\x2e\x45\x76\x65\x6e\x74\x3a\x32\x2b\x35\x31\x10";
    static const char start[] = "\x10\x00\x00\x00\x00\x00\x00\x00\x95\xfb\xfe\x18\x09\x00\x00\x20\x40\xfc\x54\xd9\x41"
                                "\x10\xad\x02\x3a\x02\x08\x01\x59\x6f\x3f\x79";
    static const char row[] =
        "\x31\x00\x00\x00\x00\x00\x00\x00\x9d\x83\x83\xe9\x09\x00\x00\x50\x40\xfc\x54\xd9\x41\x10\xac\x02\x2a\x23\x0a"
        "\x0b\x0a\x04\x6c\x6f\x73\x73\x15\x00\x00\x40\x3f\x0a\x14\x0a\x0d\x74\x65\x73\x74\x2f\x61\x63\x63\x75\x72\x61"
        "\x63\x79\x15\x00\x00\x00\xc0\xd9\xa3\x8a\x67";
    append_file a = {0};
    failure     f = {0};
    assert_true(events_open(&a, in_folder(0, "deep/er/events"), 300, 1700000000.5, &f));
    assert_true(events_row(&a, 1700000001.25, 300, 2, (watch_number[]){{"loss", 0.75}, {"test/accuracy", -2}}));
    append_close(&a);
    const char *path = in_folder(0, "deep/er/events/events.out.tfevents.1700000000.cotangent.000000000300");
    char       *text = slurp(path);
    assert_memory_equal(text, head, sizeof head - 1);
    assert_memory_equal(text + sizeof head - 1, start, sizeof start - 1);
    assert_memory_equal(text + sizeof head + sizeof start - 2, row, sizeof row - 1);
    FILE *file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    assert_int_equal(ftell(file), sizeof head + sizeof start + sizeof row - 3);
    fclose(file);
    free(text);
}

/* Long names and many numbers fit. */
static void events_hold_what_a_row_may_hold(void **state) {
    (void)state;
    char         name[300];
    watch_number numbers[64];
    append_file  a = {0};
    failure      f = {0};
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    for (int k = 0; k < 64; k++) numbers[k] = (watch_number){name, k};
    assert_true(events_open(&a, in_folder(0, "long"), 0, 1, &f));
    assert_true(events_row(&a, 1, INT64_MAX, 64, numbers));
    assert_true(a.size > 64 * 200);
    append_close(&a);
}

/* ---- the line of progress -------------------------------------------------------------------- */

static void the_line_says_where_the_run_is(void **state) {
    (void)state;
    char       buf[400];
    run_status s = {.name     = "mnist",
                    .step     = 1234,
                    .steps    = 10000,
                    .loss     = 0.31239,
                    .weight   = 1,
                    .rate     = 412.4,
                    .examples = 64,
                    .flops    = 1e8,
                    .peak     = 1e11,
                    .memory   = 84e6};
    assert_string_equal(
        status_text(&s, 200, buf, sizeof buf),
        "mnist 1234/10000 12%  loss 0.3124  0:22 left  412 steps/s  26.4k examples/s  84.0 MB  41% of matmul");
    assert_string_equal(status_text(&s, 60, buf, sizeof buf),
                        "mnist 1234/10000 12%  loss 0.3124  0:22 left  412 steps/s");
    assert_string_equal(status_text(&s, 5, buf, sizeof buf), "mnist 1234/10000 12%");
    s = (run_status){.name = "a", .step = 7, .loss = -NAN, .rate = 0.01};
    assert_string_equal(status_text(&s, 80, buf, sizeof buf), "a 7  loss nan  0.01 steps/s");
    s = (run_status){.name = "a", .step = 0, .steps = 5};
    assert_string_equal(status_text(&s, 80, buf, sizeof buf), "a 0/5 0%");
    s = (run_status){.name = "a", .step = 1, .steps = 5001, .rate = 1, .weight = 1};
    assert_string_equal(status_text(&s, 80, buf, sizeof buf), "a 1/5001 0%  loss 0  1:23:20 left  1.00 steps/s");
    s.rate = 0.01;
    assert_string_equal(status_text(&s, 80, buf, sizeof buf), "a 1/5001 0%  loss 0  5d 18h left  0.01 steps/s");
    /* a resumed run that has done no step yet has no loss */
    s = (run_status){.name = "a", .step = 5, .steps = 5, .rate = 2, .examples = 1024, .unit = "tokens"};
    assert_string_equal(status_text(&s, 80, buf, sizeof buf), "a 5/5 100%  2.00 steps/s  2.05k tokens/s");
}

static void losses_are_smoothed_and_rates_forget(void **state) {
    (void)state;
    run_status s = {.name = "a"};
    status_loss(&s, 4);
    assert_true(s.loss == 4);
    status_loss(&s, 2);
    /* the second weighs 1, the first 0.98 */
    assert_true(fabs(s.loss - (0.98 * 4 + 2) / 1.98) < 1e-15 * 4);
    status_loss(&s, NAN);
    assert_true(isnan(s.loss));
    status_loss(&s, 3);
    assert_true(s.loss == 3);
    s = (run_status){.name = "a", .step = 10, .rate_at = 100};
    status_time(&s, 101);
    assert_true(s.rate == 10);
    s.step = 30;
    status_time(&s, 102); /* 20 a second, in one of five seconds */
    assert_true(fabs(s.rate - (10 * exp(-0.2) + 20 * (1 - exp(-0.2)))) < 1e-13);
    double rate = s.rate;
    status_time(&s, 103); /* no step since: nothing is known */
    assert_true(s.rate == rate);
}

static void run_loudly(void) {
    failure f = {0};
    watch  *w = watch_open(&(watch_options){.name = "loud", .steps = 3, .examples = 2}, &f);
    for (int k = 1; k <= 3; k++) watch_step(w, k, k, 0, NULL);
    watch_row(w, 3, 1, &(watch_number){"test/loss", 0.5});
    watch_note(w, 3, "a bell: \a");
    watch_say(w, "resume with: cotangent");
    watch_close(w);
}

static void run_quietly(void) {
    failure f = {0};
    watch  *w = watch_open(&(watch_options){.name = "quiet", .steps = 3, .quiet = true}, &f);
    for (int k = 1; k <= 3; k++) watch_step(w, k, k, 0, NULL);
    watch_row(w, 3, 1, &(watch_number){"test/loss", 0.5});
    watch_note(w, 3, "nothing");
    watch_close(w);
}

/* Where there is no terminal a short run leaves one line, in the end. */
static void without_a_terminal_there_are_plain_lines(void **state) {
    (void)state;
    char             *said    = stderr_of(run_loudly);
    static const char start[] = "step 3  test/loss 0.5\nstep 3  a bell: ?\nresume with: cotangent\n"
                                "loud 3/3 100%  loss 2.0";
    assert_int_equal(strncmp(said, start, sizeof start - 1), 0);
    assert_null(strchr(said, '\033'));
    assert_null(strchr(said, '\r'));
    said = stderr_of(run_quietly);
    assert_string_equal(said, "");
}

/* Half a second of steps draws at most six times, and the evaluation's line stays above. */
static void a_terminal_has_one_line_that_changes(void **state) {
    (void)state;
    int master, slave;
    setenv("TERM", "xterm", 1);
    setenv("COLUMNS", "80", 1);
    take_terminal(&master, &slave);
    fflush(stderr);
    int kept = dup(2);
    dup2(slave, 2);
    failure f     = {0};
    watch  *w     = watch_open(&(watch_options){.name = "tty", .steps = 1000000}, &f);
    double  start = system_seconds();
    int64_t step  = 0;
    while (system_seconds() - start < 0.55) watch_step(w, ++step, 1, 0, NULL), system_sleep(0.001);
    watch_row(w, step, 1, &(watch_number){"test/loss", 0.5});
    watch_close(w);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    close(slave);
    char   got[4096];
    size_t used = 0;
    for (ssize_t n; used + 1 < sizeof got && (n = read(master, got + used, sizeof got - 1 - used)) > 0;)
        used += (size_t)n;
    close(master);
    got[used] = 0;
    int drawn = 0;
    for (const char *at = got; (at = strstr(at, "\r\033[Ktty ")); at++) drawn++;
    assert_true(drawn >= 2 && drawn <= 6); /* the last one is watch_close's */
    assert_non_null(strstr(got, "\r\033[Kstep "));
}

static void the_matrix_product_has_a_speed(void **state) {
    (void)state;
    double start = system_seconds(), peak = peak_measure(), took = system_seconds() - start;
    assert_true(peak > 1e7 && peak < 1e16);
    assert_true(took < 5); /* 0.1 s, on a machine that does nothing else */
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The exit status of a child that is sent so many signals, 0 if it ended in order. */
static int after_signals(int signal_number, int times) {
    int   status = -1;
    pid_t child  = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 2);
        system_start();
        system_stop_gently();
        bool before = system_stop_asked();
        for (int k = 0; k < times; k++) raise(signal_number);
        _exit(before ? 8 : system_stop_asked() ? 0 : 9);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 100 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void the_first_signal_asks_and_the_second_ends(void **state) {
    (void)state;
    assert_int_equal(after_signals(SIGINT, 1), 0);
    assert_int_equal(after_signals(SIGTERM, 1), 0);
    assert_int_equal(after_signals(SIGINT, 2), 100 + SIGINT);
    assert_int_equal(after_signals(SIGTERM, 2), 100 + SIGTERM);
    assert_int_equal(after_signals(SIGHUP, 1), 100 + SIGHUP);
    assert_int_equal(after_signals(SIGINT, 0), 9);
}

/* ---- for the peers --------------------------------------------------------------------------- */

/* Two event files of one run, which was interrupted in step 5 and resumed after step 4. */
static int write_sample(const char *where) {
    char log[300];
    snprintf(log, sizeof log, "%s/run.jsonl", where);
    run_steps(log, where, 1, 5, 0);
    system_sleep(1.1);
    run_steps(log, where, 5, 6, 4);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--sample") == 0) return write_sample(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_log_is_that_of_one_run),
        cmocka_unit_test(seconds_go_on_when_a_run_is_resumed),
        cmocka_unit_test(what_is_no_log_is_not_touched),
        cmocka_unit_test(a_full_disk_is_told_and_survived),
        cmocka_unit_test(a_device_without_space_is_refused_at_the_start),
        cmocka_unit_test(checksums_are_those_of_the_standard),
        cmocka_unit_test(events_have_known_bytes),
        cmocka_unit_test(events_hold_what_a_row_may_hold),
        cmocka_unit_test(the_line_says_where_the_run_is),
        cmocka_unit_test(losses_are_smoothed_and_rates_forget),
        cmocka_unit_test(without_a_terminal_there_are_plain_lines),
        cmocka_unit_test(a_terminal_has_one_line_that_changes),
        cmocka_unit_test(the_matrix_product_has_a_speed),
        cmocka_unit_test(the_first_signal_asks_and_the_second_ends),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
