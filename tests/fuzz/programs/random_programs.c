/* random_programs: draws programs from seeds, and examines those that fail.
 *
 *     random_programs COUNT [FIRST]    so many programs, one for each seed from FIRST (1) on
 *     random_programs --replay FILE…   programs in files, which libFuzzer or this program has
 *                                      written
 *     random_programs --show FILE      the calls of one
 *
 * Programs run in a child process, so a crash or an endless loop is a finding like others: the
 * parent knows the seed. A finding is made smaller by taking out steps as long as it still fails.
 * It is written to program-SEED.bin in the current folder, and printed as a list of calls. Exit
 * status 1: there was a finding. */
#include "program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BYTES = HEAD + STEP * MOST_STEPS };

/* A race ends the child at once. ThreadSanitizer would tell by the status of an exit, and a child
 * leaves by _exit. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "halt_on_error=1"; }

static int patience = 30; /* seconds; programs take some milliseconds */

/* written by the child, read by the parent */
typedef struct shared {
    uint64_t seed;
    char     why[800];
    tally    total;
} shared;
static shared *told;

/* ---- drawing --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z          = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z          = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t draw(uint64_t seed, uint8_t *bytes) {
    uint64_t s     = seed;
    size_t   steps = mix(&s) % 3 ? 4 + mix(&s) % 20 : 2 + mix(&s) % 4,
           size    = HEAD + STEP * steps; /* short ones say most about one thing */
    for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(mix(&s) >> 24);
    if (mix(&s) % 2) bytes[0] &= ~(WILD | SPECIAL); /* half of them are well meant */
    if (mix(&s) % 2) bytes[0] &= ~MIXED;
    return size;
}

/* ---- running in a child ---------------------------------------------------------------------- */

static void in_child(const uint8_t *bytes, size_t size) {
    program p = {bytes, size};
    alarm((unsigned)patience);
    if (!trial(&p, told->why, sizeof told->why)) _exit(1);
}

/* How the child ended: "" if nothing is wrong. */
static const char *fate(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0) {
    }
    if (WIFSIGNALED(status)) {
        int n = WTERMSIG(status);
        if (n == SIGALRM)
            snprintf(told->why, sizeof told->why, "it had not ended after %d seconds", patience);
        else
            snprintf(told->why, sizeof told->why, "signal %d: %s", n, strsignal(n));
    } else if (WEXITSTATUS(status) == 0) {
        told->why[0] = 0;
    } else if (!told->why[0]) {
        snprintf(told->why, sizeof told->why, "exit status %d: see what a sanitizer has said", WEXITSTATUS(status));
    }
    return told->why;
}

static pid_t child(void) {
    fflush(NULL);
    told->why[0] = 0;
    pid_t pid    = fork();
    if (pid < 0) {
        perror("fork");
        exit(3);
    }
    return pid;
}

static bool is_wrong(const uint8_t *bytes, size_t size) {
    pid_t pid = child();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(0);
        in_child(bytes, size);
        _exit(0);
    }
    return fate(pid)[0] != 0;
}

static void show(const uint8_t *bytes, size_t size) {
    pid_t pid = child();
    if (pid == 0) {
        program p = {bytes, size};
        outcome o = {0};
        alarm((unsigned)patience);
        run_program(&p, &ways[0], &o, 0, stdout);
        fflush(stdout);
        _exit(0);
    }
    fate(pid);
}

/* ---- findings -------------------------------------------------------------------------------- */

/* Takes out steps, from the last to the first, without which the program is still wrong; then
 * simplifies the head and the end. */
static size_t minimise(uint8_t *bytes, size_t size) {
    int usual = patience;
    patience  = 5;
    for (bool again = true; again;) {
        again = false;
        for (int k = (int)((size - HEAD) / STEP) - 1; k >= 0; k--) {
            uint8_t *step = bytes + HEAD + (size_t)k * STEP, before = *step;
            if (before == NO_STEP) continue;
            *step = NO_STEP;
            if (is_wrong(bytes, size))
                again = true;
            else
                *step = before;
        }
    }
    while (size >= HEAD + STEP && bytes[size - size % STEP - STEP + HEAD % STEP] == NO_STEP &&
           is_wrong(bytes, size - STEP))
        size -= STEP;
    for (int k = 0; k < HEAD; k++) {
        uint8_t before = bytes[k];
        bytes[k]       = 0;
        if (before && !is_wrong(bytes, size)) bytes[k] = before;
    }
    is_wrong(bytes, size); /* says why once more */
    patience = usual;
    return size;
}

static void found(uint8_t *bytes, size_t size, const char *name) {
    char path[300];
    printf("\nWRONG: %s: %s\n", name, told->why);
    fflush(stdout);
    size = minimise(bytes, size);
    snprintf(path, sizeof path, strpbrk(name, ".-") ? "smaller-%s" : "program-%s.bin", name);
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(bytes, 1, size, file);
        fclose(file);
    }
    printf("made smaller: %s\n", told->why);
    show(bytes, size);
    printf("again: random_programs --replay %s\n\n", path);
}

/* Of many programs a part has a loss, and a tape that can be saved. */
enum { ENOUGH = 100, FILES = 10 };

static int by_seed(int64_t count, uint64_t first) {
    static uint8_t bytes[MOST_BYTES];
    uint64_t       seed     = first;
    int            findings = 0;
    while (seed < first + (uint64_t)count) {
        told->seed = seed;
        pid_t pid  = child();
        if (pid == 0) {
            for (total = told->total; told->seed < first + (uint64_t)count; told->seed++) {
                in_child(bytes, draw(told->seed, bytes));
                told->total = total;
            }
            _exit(0);
        }
        if (fate(pid)[0]) {
            char name[32];
            snprintf(name, sizeof name, "%llu", (unsigned long long)told->seed);
            seed        = told->seed + 1;
            size_t size = draw(told->seed, bytes);
            findings++;
            if (findings <= 20) found(bytes, size, name);
        } else {
            seed = told->seed;
        }
    }
    const tally *n = &told->total;
    printf("%lld values, %lld errors, %lld gradients; forward and reverse judged %lld times, sparse and dense %lld "
           "times; %lld files; %lld functions, %lld compiled\n",
           (long long)n->values, (long long)n->errors, (long long)n->gradients, (long long)n->judged,
           (long long)n->sparse, (long long)n->files, (long long)n->functions, (long long)n->compiled);
    printf("%lld random programs from seed %llu on, %d ways to run each: %d wrong\n", (long long)count,
           (unsigned long long)first, way_count, findings);
    if (count >= ENOUGH && n->files < count / FILES) {
        printf("only %lld of them were saved as files\n", (long long)n->files);
        return 1;
    }
    return findings > 0;
}

static size_t read_file(const char *path, uint8_t *bytes) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(2);
    }
    size_t size = fread(bytes, 1, MOST_BYTES, file);
    fclose(file);
    return size;
}

static int replay(int n, char **paths) {
    static uint8_t bytes[MOST_BYTES];
    int            findings = 0;
    for (int k = 0; k < n; k++) {
        size_t size = read_file(paths[k], bytes);
        if (size < HEAD || !is_wrong(bytes, size)) continue;
        const char *name = strrchr(paths[k], '/');
        findings++;
        found(bytes, size, name ? name + 1 : paths[k]);
    }
    printf("%d programs, %d wrong\n", n, findings);
    return findings > 0;
}

int main(int argc, char **argv) {
    static uint8_t bytes[MOST_BYTES];
    told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED) return 3;
    if (argc > 2 && strcmp(argv[1], "--replay") == 0) return replay(argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "--show") == 0) {
        size_t size = read_file(argv[2], bytes);
        show(bytes, size);
        return 0;
    }
    if (argc < 2 || atoll(argv[1]) < 1) {
        fprintf(stderr, "random_programs COUNT [FIRST] | --replay FILE… | --show FILE\n");
        return 2;
    }
    return by_seed(atoll(argv[1]), argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
}
