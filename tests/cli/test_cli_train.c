/* ctest: timeout=240 */
/* cotangent train: what models reach, runs that go on, stop or go wrong, and every error. Cora is
 * read if COT_SHARED_DATA has it. */
#include "support/cli_test.h"
#include "support/svg_test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#ifndef COT_SHARED_DATA
#define COT_SHARED_DATA ""
#endif

static const char *place(const char *name) {
    static char path[4][512];
    static int  k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

static void put_bytes(const char *name, const void *bytes, size_t n) {
    FILE *file = fopen(place(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void put_text(const char *name, const char *text) { put_bytes(name, text, strlen(text)); }

static bool is_there(const char *name) { return access(place(name), F_OK) == 0; }

static void same_files(const char *a, const char *b) {
    assert_true(is_there(a) && is_there(b));
    if (sh("cmp %s %s", a, b) != 0) fail_msg("%s and %s: %s", a, b, last.out);
}

static void works(const char *line) {
    if (sh("%s", line) != 0) fail_msg("%s\n%s%s", line, last.out, last.err);
}

static double number_of(const char *key) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"%s\":", key);
    const char *p = strstr(last.out, wanted);
    assert_non_null(p);
    return strtod(p + strlen(wanted), NULL);
}

/* The last run fails with a message that has this in it. */
static void fails_with(const char *line, int status, const char *text) {
    sh("%s", line);
    if (last.status != status || !strstr(last.err, text) || last.out[0])
        fail_msg("%s\nstatus %d, wanted: %s\n%s%s", line, last.status, text, last.out, last.err);
}

/* ---- digits that the test makes ------------------------------------------------------------- */

enum { DIGITS = 1100, PIXELS = 784 };

/* Bars: the class is their place. */
static void make_digits(const char *name, int n, int labels, int largest) {
    static unsigned char images[16 + DIGITS * PIXELS] = {0, 0, 8, 3}, classes[8 + DIGITS] = {0, 0, 8, 1};
    char                 path[128];
    memset(images + 16, 0, sizeof images - 16);
    images[6] = (unsigned char)(n >> 8), images[7] = (unsigned char)n, images[11] = images[15] = 28;
    classes[6] = (unsigned char)(labels >> 8), classes[7] = (unsigned char)labels;
    for (int k = 0; k < n; k++) {
        classes[8 + k] = (unsigned char)((k * 7 + k / 11) % (largest + 1));
        for (int x = 0; x < 28; x++) images[16 + k * PIXELS + 28 * (2 * classes[8 + k] % 26 + k % 2) + x] = 255;
    }
    assert_int_equal(sh("mkdir -p %s", name), 0);
    snprintf(path, sizeof path, "%s/t10k-images-idx3-ubyte", name);
    put_bytes(path, images, 16 + (size_t)n * PIXELS);
    snprintf(path, sizeof path, "%s/t10k-labels-idx1-ubyte", name);
    put_bytes(path, classes, 8 + (size_t)labels);
}

/* ---- what models reach ---------------------------------------------------------------------- */

/* Results have the same bits on every machine: so do these digits. */
static void graphs_are_learned(void **state) {
    (void)state;
    works("cotangent train gcn --json --quiet");
    assert_non_null(strstr(last.out, "{\"model\":\"gcn\",\"data\":\"karate: 34 nodes, 78 edges, 34 words, 2 classes\","
                                     "\"seeds\":1,\"steps\":119,"));
    assert_non_null(strstr(last.out, "\"test_accuracy_mean\":0.9375,\"test_accuracy_std\":0,"));
    assert_non_null(strstr(last.out, "\"class_accuracy\":[0.875,1]}\n"));
    assert_string_equal(json_value(last.out), "\n");
    works("cotangent train gcn --json --quiet --data generated --seeds 3");
    assert_true(number_of("test_accuracy_mean") > 0.8);
    assert_true(number_of("seeds") == 3);
    works("cotangent train gcn --quiet");
    assert_non_null(strstr(last.out, "gcn on karate: 34 nodes, 78 edges, 34 words, 2 classes\n119 steps, "));
    assert_non_null(strstr(last.out, "test accuracy 93.75 %\n\nclass   nodes   right\n    0      16   87.5 %\n"));
    assert_string_equal(last.err, "");
}

static void cora_is_learned(void **state) {
    const char *base = getenv("COT_SHARED_DATA");
    char        path[512];
    (void)state;
    base = base && *base ? base : COT_SHARED_DATA;
    snprintf(path, sizeof path, "%s/cora/edges.npy", base);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no graph in %s/cora (set COT_SHARED_DATA)\n", base);
        skip();
    }
    bool small = getenv("COT_TEST_SMALL");
    if (sh("cotangent train gcn --json --quiet --seeds %s --data '%s/cora'", small ? "1 --steps 20" : "3", base) != 0)
        fail_msg("%s", last.err);
    if (small) return; /* the numbers have the bits of the plain build */
    assert_true(number_of("test_accuracy_mean") > 0.8);
    /* more would be a leak of the test nodes */
    assert_true(number_of("test_accuracy_mean") < 0.84);
}

static void digits_are_learned(void **state) {
    (void)state;
    bool small = getenv("COT_TEST_SMALL"); /* few steps learn little */
    works(small ? "cotangent train mnist --data digits --json --quiet --steps 5 --batch 25"
                : "cotangent train mnist --data digits --json --quiet --steps 40 --batch 25");
    assert_true(small || number_of("test_accuracy_mean") > 0.95);
    assert_true(number_of("steps") == (small ? 5 : 40));
}

static double loss_of(const char *options) {
    char line[200];
    snprintf(line, sizeof line, "cotangent train mnist --data digits --json --quiet --steps 20 --batch 25 %s", options);
    works(line);
    return number_of("loss");
}

/* In 16 bits the loss is as near to that of f32 as f32's is over seeds. */
static void digits_are_learned_in_16_bits(void **state) {
    (void)state;
    if (getenv("COT_TEST_SMALL")) skip(); /* it compares losses */
    double f32 = loss_of(""), least = f32, most = f32;
    for (int seed = 1; seed < 3; seed++) {
        double other = loss_of(seed == 1 ? "--seed 1" : "--seed 2");
        least = fmin(least, other), most = fmax(most, other);
    }
    double bf16 = loss_of("--precision bf16"), f16 = loss_of("--precision f16");
    assert_true(fabs(bf16 - f32) <= most - least && bf16 != f32);
    assert_true(fabs(f16 - f32) <= most - least && f16 != f32);
}

/* Nothing is left to gain: more steps find the same. */
static void rates_are_found(void **state) {
    (void)state;
    works("cotangent train ode --json --quiet");
    double loss = number_of("loss"), birth = number_of("prey_birth"), death = number_of("predator_death");
    assert_true(fabs(birth - 0.55) < 0.05 * 0.55 && fabs(death - 0.84) < 0.05 * 0.84);
    bool small = getenv("COT_TEST_SMALL"); /* the same code 900 times */
    if (!small) {
        works("cotangent train ode --json --quiet --steps 900");
        assert_true(number_of("loss") <= loss && number_of("loss") > loss * (1 - 1e-6));
        assert_true(fabs(number_of("prey_birth") - birth) < 1e-4 * birth);
    }
    /* nothing in a run depends on the seed, only the noise of the counts that it is given */
    fails_with("cotangent train ode --quiet --steps 1 --seeds 2", 2,
               "--seeds repeats a run with other random numbers, and one of ode draws none; --seed N gives its "
               "generated counts other noise");
    works(small ? "cotangent train ode --json --quiet --steps 20 --seed 1"
                : "cotangent train ode --json --quiet --steps 900 --seed 1");
    assert_true(fabs(number_of("prey_birth") - birth) > 1e-3 * birth);
    put_text("counts.csv", "predators,time,prey\n4,0,30\n10,2,60\n50,4,40\n30,6,14\n12,8,17\n6,10,34\n");
    works("cotangent train ode --quiet --data counts.csv --pictures drawn --steps 20");
    assert_non_null(strstr(last.out, "ode on counts.csv: 6 counts of prey and predators\n"));
    assert_null(strstr(last.out, "in fact"));
    char *picture = slurp(place("drawn/counts.svg"));
    assert_true(well_formed(picture) > 20);
    free(picture);
}

static void several_seeds_are_summed_up(void **state) {
    (void)state;
    works("cotangent train gcn --quiet --steps 1 --seeds 2");
    assert_non_null(strstr(last.out, "\n1 step in the last run, "));
    assert_non_null(strstr(last.out, " (mean)\n"));
    works("cotangent train gcn --json --quiet --steps 5 --seeds 2");
    const char *runs = strstr(last.out, "\"runs\":[{\"seed\":0,\"steps\":5,\"loss\":");
    assert_true(runs && strstr(runs, "{\"seed\":1,\"steps\":5,\"loss\":"));
    double first = strtod(strstr(runs, "\"loss\":") + 7, NULL);
    double second = strtod(strstr(strstr(runs, "\"seed\":1"), "\"loss\":") + 7, NULL);
    assert_true(first != second && number_of("loss") == (first + second) / 2);
}

/* As soon as a step has ended, and nothing else; what was there before stays. */
static void a_log_may_be_the_standard_output(void **state) {
    (void)state;
    works("cotangent train gcn --quiet --steps 3 --log run.jsonl && cotangent train gcn --quiet --steps 3 --log - "
          "--pictures shown > said; for f in run.jsonl said; do sed 's/\"seconds\":[0-9.]*/S/' $f > $f.S; done; cmp "
          "run.jsonl.S said.S");
    assert_false(is_there("-"));
    assert_true(is_there("shown/curves.svg"));
    works("echo before > both; cotangent train gcn --quiet --steps 3 --checkpoint logged --log - >> both; cotangent "
          "train gcn --quiet --steps 4 --resume logged --log - >> both; wc -l < both");
    assert_string_equal(last.out, "7\n"); /* what was there, two heads and four steps */
    assert_int_equal(sh("cotangent train gcn --quiet --steps 1 --log - --json"), 2);
    assert_non_null(strstr(last.out, "\"only one of --json and --log - can go to the standard output\""));
    /* a reader that has had enough is no trouble; a full disk is, by its name */
    works("cotangent train gcn --quiet --steps 40 --log - | head -n 1 && sleep 0.1");
    assert_string_equal(last.err, "");
    fails_with("cotangent train gcn --quiet --steps 3 --log - > /dev/full", 3,
               "cotangent: cannot write the standard output: No space left on device\n");
}

static void pictures_are_drawn(void **state) {
    static const char *const names[] = {"drawn/curves.svg", "drawn/nodes.svg", "drawn/wrong.svg"};
    (void)state;
    works("cotangent train gcn --quiet --pictures drawn --node 3");
    assert_non_null(strstr(last.out, "\nNode 3 is taken for class 0 (it is 0)."));
    works("cotangent train gcn --quiet --json --node 3");
    assert_string_equal(json_value(last.out), "\n");
    assert_non_null(strstr(last.out, "\"node\":{\"node\":3,\"class\":0,\"label\":0,\"logit\":"));
    assert_non_null(strstr(last.out, "\"words\":[{\"word\":"));
    works("cotangent train mnist --data digits --quiet --steps 1 --pictures drawn");
    put_text("no_folder", "x");
    fails_with("cotangent train gcn --quiet --pictures no_folder --checkpoint unbegun", 3, "no_folder");
    assert_false(is_there("unbegun")); /* told before the first step */
    for (int k = 0; k < 3; k++) {
        char *picture = slurp(place(names[k]));
        assert_true(well_formed(picture) > 20);
        free(picture);
    }
}

/* ---- runs that go on ------------------------------------------------------------------------ */

static void a_resumed_run_has_the_same_bits(void **state) {
    (void)state;
    works("cotangent train gcn --quiet --data generated --checkpoint whole --steps 30");
    works("cotangent train gcn --quiet --data generated --checkpoint parts --steps 11");
    works("cotangent train gcn --quiet --data generated --resume parts --steps 30");
    assert_string_equal(last.err, "the run goes on after step 11; it has 30 steps now instead of 11\n");
    same_files("whole/model.safetensors", "parts/model.safetensors");

    /* 100 digits to train, 4 steps an epoch. The rate is that of 10 steps in both: the run goes
     * on after its checkpoint of step 9, amid the third epoch. */
    works("cotangent train mnist --quiet --data digits --batch 25 --checkpoint w2 --steps 10 --every 3");
    works("cp -r w2 w3 && rm w3/model.safetensors w3/step-000000000010.safetensors");
    assert_true(is_there("w3/step-000000000009.safetensors"));
    works("cotangent train mnist --quiet --data digits --batch 25 --resume w3");
    assert_string_equal(last.err, "the run goes on after step 9\n");
    same_files("w2/model.safetensors", "w3/model.safetensors");
}

/* ---- a limit of memory ---------------------------------------------------------------------- */

/* Values are computed again, and the model is the same to the byte. */
static void a_limit_leaves_the_same_model(void **state) {
    (void)state;
    works("cotangent train gcn --quiet --checkpoint club");
    works("cotangent train gcn --quiet --json --checkpoint club-less --memory 50%");
    assert_true(number_of("memory_peak") <= number_of("memory_limit"));
    double limit = number_of("memory_limit");
    same_files("club/model.safetensors", "club-less/model.safetensors");
    works("cotangent train gcn --quiet --json --memory 100% --steps 1 --seeds 2");
    assert_true(fabs(number_of("memory_limit") / 2 - limit) <= 1);
    /* of the environment's limit nothing is left */
    works("COTANGENT_MEMORY_LIMIT=1000 cotangent train gcn --quiet --json --memory 100% --steps 1");
    assert_true(fabs(number_of("memory_limit") / 2 - limit) <= 1);
    works("cotangent train mnist --quiet --data digits --steps 3 --checkpoint digits-whole");
    works("COTANGENT_MEMORY_LIMIT=1000 cotangent train mnist --quiet --data digits --steps 3 --checkpoint digits-less "
          "--memory 55%"); /* 13 MB: half, before the gradients of weights took less room */
    assert_non_null(strstr(last.out, " MiB of memory at most, of a limit of "));
    same_files("digits-whole/model.safetensors", "digits-less/model.safetensors");
    works("cotangent train ode --quiet --memory 100% --steps 2");
    /* what the forecast tells is enough */
    char line[120];
    works("cotangent memory --model mnist --json");
    snprintf(line, sizeof line, "cotangent train mnist --quiet --data digits --steps 1 --memory %.0f",
             number_of("least"));
    works(line);
}

static void limits_that_are_none_are_told(void **state) {
    static const char *const wrong[] = {"0", "-1", "5x", "%", "0%", "nan%", "101%", "0.5", "1e30TiB", "1MB"};
    char                     line[200], text[300];
    (void)state;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        snprintf(line, sizeof line, "cotangent train gcn --quiet --memory %s", wrong[k]);
        snprintf(text, sizeof text,
                 "--memory is \"%s\"; it is a number of bytes, 1 or more, or with B, KiB, MiB, GiB or TiB "
                 "behind it, or with %% and at most 100\n",
                 wrong[k]);
        fails_with(line, 2, text);
    }
    fails_with("cotangent train gcn --quiet --memory 1000", 3, "; the memory limit is 1000 bytes, and ");
    fails_with("cotangent train gcn --quiet --memory '1.5 KiB'", 3, "; the memory limit is 1536 bytes, and ");
    fails_with("cotangent train gcn --quiet --memory 1%", 3, "] out of memory: ");
}

/* A limit that is too small says the smallest that is not: a percentage less of it fails. */
static void a_limit_that_is_too_small_says_what_would_do(void **state) {
    enum { FORECAST = 4 };
    static const char *const runs[] = {"gcn --memory 1%", "gcn --memory 2000", "ode --memory 20%",
                                       "ode --data counts.csv --memory 20%", "mnist --data digits --memory 1%"};
    static const char        would[] = " are in use that cannot be dropped now; --memory ";
    char                     line[200];
    (void)state;
    /* with these the solver takes another number of steps after the first step of training */
    works("awk 'BEGIN { print \"time,prey,predators\"; x = 10; y = 5; for (k = 0; k < 21; k++) { printf "
          "\"%g,%.6f,%.6f\\n\", k * 0.5, x, y; for (i = 0; i < 500; i++) { u = 1.1 * x - 0.4 * x * y; "
          "v = 0.1 * x * y - 0.4 * y; x += u * 0.001; y += v * 0.001 } } }' > counts.csv");
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        int words = (int)strcspn(runs[k], "%0123456789"), steps = 1 + (k == 3);
        snprintf(line, sizeof line, "cotangent train %s --quiet --steps %d", runs[k], steps);
        fails_with(line, 3, would);
        const char *at = strstr(last.err, would) + strlen(would);
        int         percent = atoi(at);
        assert_true(percent > 1 && percent <= 100);
        assert_string_equal(at + (percent > 9) + (percent > 99) + 1, "% would do\n");
        snprintf(line, sizeof line, "cotangent train %.*s%d%% --quiet --steps %d", words, runs[k], percent, steps);
        works(line);
        /* a forecast may have some to spare */
        snprintf(line, sizeof line, "cotangent train %.*s%d%% --quiet --steps %d", words, runs[k],
                 k == FORECAST ? percent * 2 / 3 : percent - 1, steps);
        fails_with(line, 3, would);
    }
}

static void folders_are_not_written_over(void **state) {
    (void)state;
    works("cotangent train gcn --quiet --checkpoint once --steps 3");
    fails_with("cotangent train gcn --quiet --checkpoint once --steps 3", 2,
               "there is a run in once already; go on with it by --resume once, or choose another folder");
    works("cotangent train gcn --quiet --resume fresh --steps 3");
    assert_string_equal(last.err, "there is no checkpoint in fresh; the run begins at 0\n");
    fails_with("cotangent train gcn --quiet --checkpoint once/model.safetensors", 3,
               "cannot write once/model.safetensors: Not a directory"); /* before the first step */
    fails_with("cotangent train gcn --quiet --resume no/where", 3, "cannot write no/where: No such file or directory");
    same_files("once/model.safetensors", "fresh/model.safetensors");
    fails_with("cotangent train gcn --quiet --resume once --checkpoint fresh", 2,
               "--resume once goes on saving there; leave out --checkpoint fresh");
    fails_with("cotangent train gcn --quiet --seeds 2 --checkpoint another", 2, "leave out --seeds 2");
    fails_with("cotangent train gcn --quiet --every 3", 2,
               "--every says how often a run is saved; it goes with --checkpoint or --resume");
    /* shapes are of data and options: those are told */
    fails_with("cotangent train gcn --quiet --data generated --resume once", 2,
               "--data has other contents than the run that is saved in once was trained on; it goes on with the same");
    fails_with("cotangent train gcn --quiet --width 8 --resume once", 2,
               "--width was left out in the run that is saved in once, and is 8 now; it goes on with the same");
    fails_with("cotangent train ode --quiet --resume once", 2,
               "the run that is saved in once is of another model than ode; it goes on with the same");
    /* one that was altered is not asked */
    works("cp -r once others && sed -i s/extra.told/extra.tale/ others/step-*");
    fails_with("cotangent train gcn --quiet --resume others", 3, "[train] none of the 1 checkpoints in others ");
}

/* A run that goes on is told what it was told before, and no model what it would pass over. */
static void options_are_not_passed_over(void **state) {
    (void)state;
    works("cotangent train gcn --quiet --checkpoint first --steps 3 --rate 0.02");
    fails_with("cotangent train gcn --quiet --resume first --steps 5", 2,
               "--rate was 0.02 in the run that is saved in first, and is left out now; it goes on with the same");
    fails_with("cotangent train gcn --quiet --resume first --steps 5 --rate 0.02 --seed 7", 2,
               "--seed was 0 in the run that is saved in first, and is 7 now; it goes on with the same");
    works("cotangent train gcn --quiet --resume first --steps 5 --rate 0.02");
    fails_with("cotangent train gcn --quiet --resume first --steps 4 --rate 0.02", 2,
               "--steps is 4, and the run that is saved in first has done 5; give as many or more, or train in another "
               "folder");
    /* a run keeps its own length, and a longer one has another schedule */
    works("cotangent train ode --quiet --checkpoint waves --steps 4");
    works("cotangent train ode --json --resume waves");
    assert_non_null(strstr(last.err, "the run has done its 4 steps; more --steps would train it further\n"
                                     "ode 4/4 100%"));
    assert_null(strstr(last.err, "loss"));
    assert_true(number_of("steps") == 4);
    works("cotangent train ode --quiet --resume waves --steps 6");
    assert_string_equal(last.err, "the run goes on after step 4; it has 6 steps now instead of 4, and the rate goes on "
                                  "as if it had had them from the beginning\n");
    put_text("now.csv", "time,prey,predators\n0,30,4\n2,60,10\n4,40,50\n");
    put_text("then.csv", "time,prey,predators\n0,30,4\n2,60,10\n4,40,51\n");
    works("cotangent train ode --quiet --data now.csv --checkpoint counted --steps 2");
    fails_with("cotangent train ode --quiet --data then.csv --resume counted --steps 3", 2,
               "--data has other contents than the run that is saved in counted was trained on; it goes on with the "
               "same");
    works("mv now.csv moved.csv && cotangent train ode --quiet --data moved.csv --resume counted --steps 3");
    fails_with("cotangent train gcn --quiet --heads 3", 2, "--heads is for gpt; gcn has nothing that it would set");
    fails_with("cotangent train ode --quiet --batch 3", 2,
               "--batch is for mnist and gpt; ode has nothing that it would set");
}

/* ---- Ctrl-C --------------------------------------------------------------------------------- */

static void rest(void) { nanosleep(&(struct timespec){0, 7000000}, NULL); }

/* Starts the line's words, and sends a signal when it has saved its first checkpoint. */
static int interrupted(const char *run, char *const *words) {
    char command[512], checkpoint[128];
    snprintf(command, sizeof command, "%s/cotangent", COT_COMMAND_FOLDER);
    pid_t child = fork();
    if (child == 0) {
        int out = open(place(".out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int err = open(place(".err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(out, 1), dup2(err, 2);
        if (chdir(folder) == 0) execv(command, words);
        _exit(99);
    }
    assert_true(child > 0);
    snprintf(checkpoint, sizeof checkpoint, "%s/step-000000000001.safetensors", run);
    for (int k = 0; k < 1500 && !is_there(checkpoint); k++) rest();
    assert_int_equal(kill(child, SIGINT), 0);
    int status = -1;
    assert_true(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void ctrl_c_ends_in_order(void **state) {
    char  line[] = "cotangent train ode --json --steps 700 --rate 0.0625 --every 1 --log it's.jsonl --checkpoint held";
    char *words[16];
    int   n = 0;
    (void)state;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) words[n++] = word;
    words[n] = NULL;
    assert_int_equal(interrupted("held", words), 128 + SIGINT);
    char *out = slurp(place(".out"));
    if (strncmp(out, "{\"model\":\"ode\",", 15) != 0 || !strstr(out, "\"seeds\":0,\"interrupted\":true,\"steps\":"))
        fail_msg("%s", out);
    assert_string_equal(json_value(out), "\n");
    free(out);
    char *err = slurp(place(".err")), *said = strstr(err, "stopped after step ");
    if (!said) fail_msg("%s", err);
    int step = atoi(said + strlen("stopped after step "));
    assert_true(step > 0 && step < 700);
    assert_non_null(strstr(said, ", which is saved; go on with: cotangent train ode --log 'it'\\''s.jsonl' --steps 700 "
                                 "--every 1 --rate 0.0625 --resume held"));
    assert_false(is_there("held/model.safetensors"));
    free(err);
    works("cotangent train ode --rate 0.0625 --resume held --quiet");
    assert_int_equal(atoi(strstr(last.err, "after step ") + strlen("after step ")), step);
    works("cotangent train ode --quiet --steps 700 --rate 0.0625 --checkpoint straight");
    same_files("held/model.safetensors", "straight/model.safetensors");
}

/* ---- runs that go wrong --------------------------------------------------------------------- */

static void a_loss_that_is_no_number_stops(void **state) {
    (void)state;
    fails_with("cotangent train mnist --quiet --data digits --batch 25 --rate 1e6 --steps 60 --checkpoint burst", 1,
               "the step was not taken, and its batch is in burst/bad-batch.safetensors. ");
    assert_non_null(strstr(last.err, "[train] the loss of step "));
    assert_true(is_there("burst/bad-batch.safetensors") && !is_there("burst/model.safetensors"));
    works("cotangent eval 'sum(a)*0 + 1' a=@burst/bad-batch.safetensors:images");
    fails_with("cotangent train mnist --quiet --data digits --batch 25 --rate 1e6 --steps 60", 1,
               "; the step was not taken. The result, softmax_cross_entropy ");
    /* the weights are made so by the step before */
    works("for i in $(seq 300); do echo \"the quick brown fox $i jumps over\"; done > words.txt");
    fails_with("cotangent train gpt --quiet --data words.txt --layers 1 --width 16 --context 16 --batch 4 --steps 100 "
               "--rate 1000", 1, "; the step was not taken. The weights are to blame: ");
    assert_non_null(strstr(last.err, " became infinite or nan in step "));
    assert_non_null(strstr(last.err, ". A smaller --rate helps"));
    fails_with("cotangent train ode --quiet --rate 1000 --steps 5", 3, "[train] still going on after 1000000 steps");
}

static void wrong_data_are_told(void **state) {
    (void)state;
    fails_with("cotangent train", 2, "train takes the name of one model: ");
    fails_with("cotangent train gcm", 2, "there is no model gcm; did you mean gcn?");
    fails_with("cotangent train zebra", 2, "there is no model zebra; it is gcn, ");
    fails_with("cotangent train mnist", 2, "mnist needs --data DIR");
    fails_with("cotangent train mnist --data nowhere", 3, "[train] cannot read nowhere/t10k-images-idx3-ubyte");
    make_digits("few", 500, 500, 9);
    fails_with("cotangent train mnist --data few", 3, "[train] few has 500 digits; there must be more than 1000");
    make_digits("odd", 1100, 1099, 9);
    fails_with("cotangent train mnist --data odd", 3, "1100 images and 1099 labels of t10k; there must be as many");
    make_digits("torn", 1100, 1100, 9);
    put_bytes("torn/train-labels-idx1-ubyte", "x", 1); /* its images are not there */
    fails_with("cotangent train mnist --quiet --data torn --steps 1", 3, "[train] cannot read torn/train-images-idx3-");
    make_digits("beyond", 1100, 1100, 12);
    fails_with("cotangent train mnist --data beyond", 3, "digits are 0 … 9");
    fails_with("cotangent train mnist --data digits --batch 200", 3, "batch");
    fails_with("cotangent train gcn --data nowhere", 3, "[train] cannot read nowhere/");
    fails_with("cotangent train gcn --node 34", 2, "--node is 34; nodes are 0 … 33");
    fails_with("cotangent train ode --data nowhere.csv", 3, "[train] cannot read nowhere.csv");
    put_text("two.csv", "time,prey\n0,1\n1,2\n2,3\n");
    fails_with("cotangent train ode --data two.csv", 3, "two.csv has no column predators");
    put_text("short.csv", "time,prey,predators\n0,1,2\n1,2,3\n");
    fails_with("cotangent train ode --data short.csv", 3, "short.csv has 2 counts; there must be 3 … 1000");
    put_text("back.csv", "time,prey,predators\n0,1,2\n1,2,3\n1,2,3\n");
    fails_with("cotangent train ode --data back.csv", 3, "row 3 has time 1, prey 2, predators 3; times rise");
    put_text("none.csv", "time,prey,predators\n0,1,2\n1,0,3\n2,2,3\n");
    fails_with("cotangent train ode --data none.csv", 3, "counts are positive");
}

/* A graph whose edges lead nowhere. */
static void wrong_graphs_are_told(void **state) {
    static const struct {
        const char *file, *shape;
        int64_t     n, v[8];
    } parts[] = {{"edges", "(2, 2)", 4, {0, 1, 1, 2}},   {"features_indptr", "(4,)", 4, {0, 1, 2, 3}},
                 {"features_indices", "(3,)", 3, {0, 1, 2}}, {"labels", "(3,)", 3, {0, 1, 1}},
                 {"train", "(2,)", 2, {0, 1}},           {"val", "(1,)", 1, {2}},
                 {"test", "(1,)", 1, {2}}};
    (void)state;
    for (int wrong = -1; wrong < 7; wrong++) {
        assert_int_equal(sh("rm -rf g && mkdir g"), 0);
        for (int k = 0; k < 7; k++) {
            char    bytes[256] = "\x93NUMPY\x01", name[64];
            int64_t v[8];
            memcpy(v, parts[k].v, sizeof v);
            if (k == wrong) v[parts[k].n - 1] = k == 3 ? -1 : 99;
            int n = snprintf(bytes + 10, 118, "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }",
                             parts[k].shape);
            memset(bytes + 10 + n, ' ', (size_t)(118 - n));
            bytes[8] = 118, bytes[127] = '\n';
            memcpy(bytes + 128, v, (size_t)parts[k].n * 8);
            snprintf(name, sizeof name, "g/%s.npy", parts[k].file);
            put_bytes(name, bytes, 128 + (size_t)parts[k].n * 8);
        }
        /* any word is one */
        if (wrong < 0 || wrong == 2) works("cotangent train gcn --quiet --data g --steps 2");
        else fails_with("cotangent train gcn --quiet --data g --steps 2", 3, "[train] ");
        if (wrong >= 0 && wrong != 2) assert_non_null(strstr(last.err, parts[wrong].file));
    }
}

static int make_folder(void **state) {
    int wrong = folder_make(state);
    if (wrong == 0) make_digits("digits", DIGITS, DIGITS, 9);
    return wrong;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_are_learned),
        cmocka_unit_test(cora_is_learned),
        cmocka_unit_test(digits_are_learned),
        cmocka_unit_test(digits_are_learned_in_16_bits),
        cmocka_unit_test(rates_are_found),
        cmocka_unit_test(several_seeds_are_summed_up),
        cmocka_unit_test(a_log_may_be_the_standard_output),
        cmocka_unit_test(pictures_are_drawn),
        cmocka_unit_test(a_resumed_run_has_the_same_bits),
        cmocka_unit_test(a_limit_leaves_the_same_model),
        cmocka_unit_test(limits_that_are_none_are_told),
        cmocka_unit_test(a_limit_that_is_too_small_says_what_would_do),
        cmocka_unit_test(folders_are_not_written_over),
        cmocka_unit_test(options_are_not_passed_over),
        cmocka_unit_test(ctrl_c_ends_in_order),
        cmocka_unit_test(a_loss_that_is_no_number_stops),
        cmocka_unit_test(wrong_data_are_told),
        cmocka_unit_test(wrong_graphs_are_told),
    };
    return cmocka_run_group_tests(tests, make_folder, folder_remove);
}
