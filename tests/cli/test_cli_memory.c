/* ctest: timeout=400 */
/* test_cli_memory.c: any allocation of the command may fail. Then its output is complete, with the
 * same status as otherwise, or there is an error and nothing else: never a part. This holds for
 * every command, in its forms, and for each file that it writes.
 *
 * The command runs as a function, in a process of its own, with an allocator that fails the n-th
 * allocation, for every n, alone and with all that follow. */
#include "support/cli_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>

#include "problem/command.h"
#include "cotangent_command.h"
#include "watch/watch.h"
#include "cli/fail_malloc.h"

#ifdef COT_FAIL_MALLOC

#define SMALLEST "|--layers|1|--heads|1|--width|4|--context|4|--batch|1"

/* Words are parted by bars. */
static const char *const lines[] = {
    "eval|sum(W @ x)|W=[[1,2],[3,4]]|x=[5,6]",
    "eval|--json|x*y|x=@a.npy|y=@a.safetensors:b",
    "grad|--json|sum(tanh(W @ x))|W=uniform(1,[2,2],1)|x=[5,6]",
    "grad|h = x*y; sin(h)|x=2|y=3|--mode|forward",
    "grad|-f|model.txt|x=2",
    "grad|--json|x*(|x=2",
    "grad|x*(|x=2",
    "grad|x*foo|x=2",
    "vjp|W @ x|W=[[1,2],[3,4]]|x=[5,6]|--seed|[1,-1]",
    "jvp|x*y + sin(x)|x=2|y=3|--tangent|x=1",
    "hvp|x**2*y|x=2|y=5|--tangent|y=1",
    "taylor|sum(x**2*y)|x=[1,2]|y=5|--along|x=[1,1]",
    "jac|x**2*y|x=[1,2]|y=5",
    "jac|--sparse|--json|x[1:]**2*y|x=[1,2,3]|y=5",
    "grad|--json|sum(A @ x)|x=[1,2,3,4]|A=@" COT_SOURCE_FOLDER "/tests/data/scipy/csr.npz",
    "hess|x**2*y|x=2|y=5",
    "hess|--sparse|sum(x**2)*y|x=[1,2]|y=5",
    "compile|sum(W @ x)|W=[[1,2],[3,4]]|x=[5,6]|--grad|--main",
    "compile|x*y|x=1|y=2|--hvp|--tangent|x=1|-o|t.c",
    "compile|sum(exp(x)*x)|x=[1,2]|--grad|--print|--report|--json",
    "trace|x*y + sin(x)|x=1|y=2",
    "trace|--json|abs(x)*y + sin(x)|x=0|y=2|--dot|t.dot",
    "trace|abs(x)*y|x=0|y=2|--html|t.html",
    "trace|x*y|x=0|y=2|--dot|-",
    "trace|--c|softmax(A @ x)[0]*y|A=[[1,2],[3,4]]|x=[1,2]|y=2",
    "trace|--c|sigmoid(x)*y|x=1|y=2",
    "check|x*y|x=1|y=2",
    "check|--json|abs(x)*y|x=0|y=2",
    "cost|x*y + sin(x)|x=1|y=2",
    "cost|--inputs|3|--outputs|2",
    "cost|--json|--depth|9|--states|2",
    "memory|x*y + sin(x)|x=[1,2]|y=2",
    "memory|--json|exp(x)|x=[1,2]|--svg|m.svg",
    "memory|--model|gpt|--layers|3|--width|32|--context|8",
    "explain|log(x - 1)*y|x=0.5|y=1",
    "explain|sqrt(x)*relu(y) + z|x=0|y=-1|z=1",
    "explain|--json|abs(x)*y|x=0|y=0",
    "fit|--json|a*x + b*t|m.csv|a=1|b=1",
    "fit|a*x|m.csv|a=1|--plot|-",
    "fit|a*x|m.csv|a=1|--chart",
    "fit|a*x|m.csv|a=1|--plot|t.svg",
    "fit|a*x|m.csv|a=1|b=2",
    "grad|--rank|x*y + sum(z)|x=2|y=0|z=[1,2]",
    "grad|--rank|--json|x*y|x=2|y=0|--svg|t.svg",
    "plot|r.jsonl",
    "plot|r.jsonl|r.jsonl|--json|--svg|t.svg|--smooth|2|--log",
    "plot|r.jsonl|--y|lose",
    "train|gcn|--steps|2|--quiet",
    "train|gcn|--steps|2|--quiet|--node|3|--pictures|.",
    "train|ode|--steps|1|--quiet|--data|counts.csv|--json",
    "train|gcn|--steps|1|--quiet|--memory|100%",
    "train|zebra",
    "ops",
    "ops|matmul",
    "ops|--json|tanh",
    "train|gpt|--data|w.txt" SMALLEST "|--steps|1|--quiet",
    "train|gpt|--data|w.bin" SMALLEST "|--steps|1|--json|--quiet",
    "sample|m|--prompt|ab|--length|6|--top-p|0.9",
    "predict|m|w.txt|--json",
    "compile|--model|m|-o|t.c",
    "help|grad",
    "help|expressions",
    "grad|--help",
    "--help",
    "nonsense",
};

/* ---- one run --------------------------------------------------------------------------------- */

typedef struct outcome {
    int  status; /* -1: it crashed */
    bool failed; /* an allocation did */
    /* files: names and contents of the files that it wrote */
    char out[1 << 18], err[1 << 13], files[1 << 19];
} outcome;

static void read_into(const char *path, char *to, size_t size) {
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(to, 1, size - 1, file) : 0;
    to[n] = 0;
    assert_true(n < size - 1);
    if (file) fclose(file);
}

static bool is_written(const char *name) { return strncmp(name, "t.", 2) == 0; }

/* Reads and removes the files that were not in the folder before. */
static void take_files(char *to, size_t size) {
    DIR   *all = opendir(".");
    size_t n = 0;
    to[0] = 0;
    assert_non_null(all);
    for (struct dirent *e; (e = readdir(all));) {
        if (!is_written(e->d_name)) continue;
        n += (size_t)snprintf(to + n, size - n, "<%s>", e->d_name);
        assert_true(n < size - 1);
        read_into(e->d_name, to + n, size - n);
        n += strlen(to + n);
        unlink(e->d_name);
    }
    closedir(all);
}

/* How long a run took is not compared. */
static void forget_seconds(char *out) {
    char *text = strstr(out, " steps, "), *json = strstr(out, "\"seconds\":");
    for (char *c = text ? text + 8 : NULL; c && *c && *c != ' '; c++) *c = '-';
    if (!json) return;
    json += strlen("\"seconds\":");
    memmove(json, json + strcspn(json, ",}"), strlen(json + strcspn(json, ",}")) + 1);
}

static void run(const char *line, long fail_at, bool later_too, outcome *o) {
    char  words[256], name[] = "cotangent", *argv[32] = {name};
    int   n = 1;
    fflush(NULL);
    snprintf(words, sizeof words, "%s|--threads|1", line);
    if (strncmp(line, "ops", 3) == 0 || strncmp(line, "help", 4) == 0 ||
        strncmp(line, "plot", 4) == 0 || strstr(line, "--help") ||
        !strcmp(line, "nonsense") || strstr(line, "--inputs"))
        snprintf(words, sizeof words, "%s", line);
    pid_t child = fork();
    if (child == 0) {
        for (char *word = strtok(words, "|"); word; word = strtok(NULL, "|")) argv[n++] = word;
        int out = open(".out", O_WRONLY | O_CREAT | O_TRUNC, 0600),
            err = open(".err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(out, 1), dup2(err, 2);
        fail_malloc(fail_at, later_too);
        int  status = cotangent_command(n, argv);
        bool did = fail_malloc_did();
        fail_malloc(0, false);
        fflush(NULL);
        _exit(status + (did ? 100 : 0));
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    o->status = WIFEXITED(status) ? WEXITSTATUS(status) % 100 : -1;
    o->failed = WIFEXITED(status) && WEXITSTATUS(status) >= 100;
    read_into(".out", o->out, sizeof o->out);
    read_into(".err", o->err, sizeof o->err);
    forget_seconds(o->out);
    take_files(o->files, sizeof o->files);
}

static bool same(const outcome *a, const outcome *b) {
    return a->status == b->status && strcmp(a->out, b->out) == 0 && strcmp(a->err, b->err) == 0 &&
           strcmp(a->files, b->files) == 0;
}

/* There must be a complete error and nothing else, except complete files that were written before
 * it. */
static const char *what_is_wrong(const outcome *got, const outcome *whole) {
    bool json = strncmp(got->out, "{\"error\":{\"code\":\"memory\"", 25) == 0;
    if (got->status != 3) return "the status";
    if (got->out[0] && !(json && json_value(got->out) && strcmp(json_value(got->out), "\n") == 0)) return "the output";
    if (!json && !strstr(got->err, "memory is short")) return "the message";
    /* of two files it may have written one */
    if (got->files[0] && !strstr(whole->files, got->files)) return "a file";
    return NULL;
}

static void any_allocation_may_fail(void **state) {
    static outcome whole, got;
    int            wrong = 0;
    (void)state;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        run(lines[k], 0, false, &whole);
        assert_true(whole.status >= 0 && whole.status <= 3);
        for (int later = 0; later < 2; later++) {
            long n = 1;
            int  said = 0;
            do {
                run(lines[k], n, later, &got);
                const char *what = same(&got, &whole) ? NULL : what_is_wrong(&got, &whole);
                if (what && ++wrong && said++ < 2)
                    print_error("%s, allocation %ld%s: %s, status %d\n%.300s%.300s\n", lines[k], n,
                                later ? " and all later ones" : "", what, got.status, got.out, got.err);
                n++;
            } while (got.failed && n < 20000);
            assert_true(n > 3);
        }
    }
    assert_int_equal(wrong, 0);
}

/* A run that is watched goes on without memory: rows are missing in its log, and those that are
 * there are whole. Or it does not begin, and says why. */
static int watch_without_memory(long fail_at, bool later_too) {
    failure f = {0};
    fail_malloc(fail_at, later_too);
    watch *w = watch_open(&(watch_options){.name = "r", .steps = 3, .log = "t.jsonl", .tensorboard = "t.events",
                                           .quiet = true}, &f);
    for (int k = 1; w && k <= 3; k++) {
        watch_step(w, k, 0.5, 0, NULL);
        watch_note(w, k, "so far");
    }
    watch_close(w);
    bool did = fail_malloc_did();
    fail_malloc(0, false);
    if (w ? f.status != EXIT_FINE : strcmp(f.message, "memory is short") != 0) return 90;
    if (!w) return did ? 1 : 91;
    FILE *log = fopen("t.jsonl", "rb");
    char  line[400];
    int   rows = 0;
    while (log && fgets(line, sizeof line, log)) {
        size_t n = strlen(line);
        if (line[0] != '{' || n < 2 || strcmp(line + n - 2, "}\n") != 0) return 92;
        rows++;
    }
    if (log) fclose(log);
    return !did && rows != 7 ? 93 : did ? 1 : 0;
}

static void a_watched_run_goes_on_without_memory(void **state) {
    (void)state;
    for (int later = 0; later < 2; later++) {
        int  status = -1;
        long n = 1;
        do {
            fflush(NULL);
            pid_t child = fork();
            if (child == 0) {
                int err = open(".err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
                dup2(err, 2);
                _exit(watch_without_memory(n, later));
            }
            assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
            if (WEXITSTATUS(status) > 1) fail_msg("allocation %ld: %d", n, WEXITSTATUS(status));
            n++;
        } while (WEXITSTATUS(status) == 1 && n < 1000);
        assert_true(n > 8);
    }
    assert_int_equal(system("rm -r t.events t.jsonl"), 0);
}

/* A command that is added gets a line. */
static void every_command_is_tried(void **state) {
    (void)state;
    for (int i = 0; i < command_count; i++) {
        size_t n = strlen(command_table[i].name);
        bool   tried = false;
        for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
            tried = tried || (strncmp(lines[k], command_table[i].name, n) == 0 && (lines[k][n] == '|' || !lines[k][n]));
        if (!tried) fail_msg("%s has no line: add one to `lines` in test_cli_memory.c", command_table[i].name);
    }
}

static void put_bytes(const char *path, const char *bytes, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_true(file && fwrite(bytes, 1, n, file) == n);
    fclose(file);
}

static int make_files(void **state) {
    static const char npy[] =
        "\x93NUMPY\x01\x00\x36\x00{'descr': '<f8', 'fortran_order': False, 'shape': (), }\0\0\0\0\0\0\xf8?";
    static const char header[] = "{\"b\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}";
    char              text[50], tokens[100] = {3};
    char              tensors[8 + sizeof header - 1 + 8] = {sizeof header - 1};
    if (folder_make(state) != 0 || chdir(folder) != 0) return -1;
    memcpy(tensors + 8, header, sizeof header - 1);
    memcpy(tensors + sizeof tensors - 2, "\xf8?", 2); /* 1.5 */
    put_bytes("a.npy", npy, 10 + 0x36 + 8);
    put_bytes("a.safetensors", tensors, sizeof tensors);
    put_bytes("counts.csv", "time,prey,predators\n0,3,4\n1,5,4\n2,4,5\n", 38);
    put_bytes("m.csv", "y,x,t\n1,1,0\n2,2,1\n3,3.5,2\n", 27);
    put_bytes("r.jsonl", "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":1}\n{\"st", 44);
    put_bytes("model.txt", "h = x*x\nh + sin(x)\n", 19);
    /* the least text, and the least file of tokens, of which a tenth is a window of five */
    for (int k = 0; k < 50; k++) memcpy(text + k, k % 3 ? "a" : "b", 1);
    put_bytes("w.txt", text, 50);
    put_bytes("w.bin", tokens, sizeof tokens);
    return sh("cotangent train gpt --data w.txt --layers 1 --heads 1 --width 4 --context 4 --batch 1 --steps 1 "
              "--quiet --checkpoint m");
}
#else
static void any_allocation_may_fail(void **state) { (void)state, skip(); }
static void every_command_is_tried(void **state) { (void)state, skip(); }
static void a_watched_run_goes_on_without_memory(void **state) { (void)state, skip(); }
static int  make_files(void **state) { return folder_make(state); }
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_command_is_tried),
                                       cmocka_unit_test(a_watched_run_goes_on_without_memory),
                                       cmocka_unit_test(any_allocation_may_fail)};
    return cmocka_run_group_tests(tests, make_files, folder_remove);
}
