/* Native code of programs: it is used when it is there, once compiled it is found again, and what
 * is missing, foreign, altered, slow or wrong leaves the program as it was and says so. */
#include "native_test.h"
#include "support/points.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- in use ---------------------------------------------------------------------------------- */

static void a_run_changes_to_native_code_when_that_is_there(void **state) {
    (void)state;
    unsetenv("COTANGENT_CC"); /* the one of the system */
    cot_program *p = compile_curve(true);
    cot_run     *r = cot_run_create(p); /* before it has ended */
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_READY);
    assert_non_null(strstr(cot_program_native_message(p), "will be compared"));
    for (int k = 0; k < 3; k++) {
        results got = run_curve(r, k), want = plain_curve(k);
        assert_memory_equal(&got, &want, sizeof got);
        assert_non_null(strstr(cot_program_native_message(p), "native code runs"));
    }
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* The same program runs by both, so what is not IEEE's has the same bits, too. */
static void a_fast_program_has_the_bits_of_its_executor(void **state) {
    results      got[2][2];
    cot_program *p[2];
    (void)state;
    unsetenv("COTANGENT_CC");
    for (int native = 0; native < 2; native++) {
        p[native] = cot_compile(curve, NULL, 2, curve_types, 3, &(cot_compile_options){.native = native, .fast = true});
        cot_run *r = cot_run_create(p[native]);
        cot_program_native(p[native], true);
        for (int k = 0; k < 2; k++) got[native][k] = run_curve(r, k);
        cot_run_destroy(r);
    }
    assert_non_null(strstr(cot_program_native_message(p[1]), "native code runs"));
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    results plain = plain_curve(0);
    assert_true(memcmp(&plain, &got[0][0], sizeof plain) != 0);
    for (int native = 0; native < 2; native++) cot_program_destroy(p[native]);
}

/* ---- as quick as the library ----------------------------------------------------------------- */

enum { WIDE = 40000 };

BODY(wide) {
    UNUSED;
    ys[0] = cot_mul(cot_exp(xs[0]), cot_tanh(xs[0]));
    return 0;
}

/* Runs that often with the compiler; the state at the end. */
static cot_native_state state_after(const char *compiler, int runs, const char *words) {
    static double x[WIDE], want[WIDE], got[WIDE];
    cot_type      type = {COT_F64, COT_SHAPE(WIDE)};
    use_compiler(compiler);
    cot_program *p = cot_compile(wide, NULL, 1, &type, 1, &(cot_compile_options){.native = true});
    cot_run     *r = cot_run_create(p);
    cot_program_native(p, true);
    for (int i = 0; i < WIDE; i++) x[i] = (double)i / WIDE;
    for (int k = 0; k < runs; k++) {
        assert_int_equal(cot_program_run(r, (const void *[]){x}, (void *[]){got}), COT_OK);
        if (k == 0) memcpy(want, got, sizeof want);
        assert_memory_equal(got, want, sizeof want);
    }
    if (!strstr(cot_program_native_message(p), words)) fail_msg("%s", cot_program_native_message(p));
    cot_native_state state = cot_program_native(p, false);
    cot_run_destroy(r);
    cot_program_destroy(p);
    return state;
}

/* Not optimised, native code takes some ten times as long as the kernels. */
static void slow_native_code_is_dropped(void **state) {
    (void)state;
    assert_int_equal(state_after("exec cc \"$@\" -O0", 10, "native code runs"), COT_NATIVE_READY);
    assert_int_equal(state_after("exec cc \"$@\" -O0", 12, "it is slower"), COT_NATIVE_DROPPED);
}

static void it_is_off_unless_asked_for(void **state) {
    (void)state;
    cot_program *p = compile_curve(false);
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_OFF);
    assert_non_null(strstr(cot_program_native_message(p), "not asked for"));
    cot_program_destroy(p);
    assert_int_equal(cot_program_native(NULL, true), COT_NATIVE_OFF);
    assert_non_null(strstr(cot_program_native_message(NULL), "not asked for"));
    setenv("COTANGENT_NATIVE", "yes", 1);
    assert_non_null(strstr(cot_program_native_message(NULL), "COTANGENT_NATIVE is neither 0 nor 1"));
    setenv("COTANGENT_NATIVE", "0", 1);
    assert_non_null(strstr(cot_program_native_message(NULL), "COTANGENT_NATIVE=0 forbids"));
    unsetenv("COTANGENT_NATIVE");
}

static void the_environment_asks_for_it_and_forbids_it(void **state) {
    (void)state;
    setenv("COTANGENT_NATIVE", "1", 1);
    cot_program *p = compile_curve(false);
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_READY);
    cot_program_destroy(p);
    setenv("COTANGENT_NATIVE", "0", 1);
    p = compile_curve(true);
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_OFF);
    cot_program_destroy(p);
}

static void printing_a_program_tells_its_state(void **state) {
    (void)state;
    char         text[4096] = "";
    FILE        *f = fmemopen(text, sizeof text, "w");
    cot_program *p = compile_curve(true);
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_READY);
    assert_runs(p);
    cot_program_print(p, f);
    fclose(f);
    assert_non_null(strstr(text, "native: native code runs"));
    cot_program_destroy(p);
}

static void a_call_on_a_tape_and_its_gradient_use_it(void **state) {
    (void)state;
    double grad[2][SIZE];
    for (int native = 0; native < 2; native++) {
        cot_tape    *t = cot_tape_create(NULL);
        cot_program *p = compile_curve(native);
        double       x[SIZE];
        for (int i = 0; i < SIZE; i++) x[i] = cos((double)i);
        cot_program_native(p, true);
        cot_var xs[2] = {cot_tensor(t, COT_F64, COT_SHAPE(SIZE), x), cot_scalar(t, 0.5)}, ys[3];
        for (int round = 0; round < 2; round++) assert_int_equal(cot_program_call(p, 2, xs, 3, ys), COT_OK);
        cot_backward(ys[1]);
        cot_read_as(cot_grad(xs[0]), COT_F64, grad[native], SIZE);
        assert_ok(t);
        cot_program_destroy(p);
        cot_tape_destroy(t);
    }
    assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
}

typedef struct runner { cot_program *p; results want[4]; bool ok; } runner;

static void *run_many(void *arg) {
    runner  *me = arg;
    cot_run *r = cot_run_create(me->p);
    me->ok = r != NULL;
    for (int k = 0; k < 4000 && me->ok; k++) {
        results got = run_curve(r, k % 4);
        me->ok = memcmp(&got, &me->want[k % 4], sizeof got) == 0;
    }
    cot_run_destroy(r);
    return NULL;
}

static void threads_change_to_it_in_the_middle_of_their_runs(void **state) {
    (void)state;
    pthread_t thread[3];
    runner    me[3];
    for (int k = 0; k < 4; k++) me[0].want[k] = plain_curve(k);
    cot_program *p = compile_curve(true);
    for (int k = 0; k < 3; k++) {
        memcpy(me[k].want, me[0].want, sizeof me[0].want);
        me[k].p = p;
        assert_int_equal(pthread_create(&thread[k], NULL, run_many, &me[k]), 0);
    }
    cot_program_native(p, true);
    for (int k = 0; k < 3; k++) pthread_join(thread[k], NULL), assert_true(me[k].ok);
    assert_int_equal(cot_program_native(p, false), COT_NATIVE_READY);
    cot_program_destroy(p);
}

static void wrong_code_is_dropped_after_its_first_run(void **state) {
    (void)state;
    use_compiler("for a; do case \"$a\" in *.c) sed -i 's/ + 3.0;/ - 3.0;/' \"$a\";; esac; done\n" COMPILER);
    cot_program *p = compile_curve(true);
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_READY);
    assert_runs(p);
    assert_int_equal(cot_program_native(p, false), COT_NATIVE_DROPPED);
    assert_non_null(strstr(cot_program_native_message(p), "other bits"));
    cot_program_destroy(p);
}

BODY(matmul_with_itself) {
    UNUSED;
    ys[0] = cot_matmul(xs[0], xs[0]);
    return 0;
}

static void a_program_without_work_for_it_says_so(void **state) {
    (void)state;
    static const cot_type type = {COT_F32, {2, {40, 40}}};
    cot_program *p = cot_compile(matmul_with_itself, NULL, 1, &type, 1, &(cot_compile_options){.native = true});
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_DROPPED);
    assert_non_null(strstr(cot_program_native_message(p), "there is nothing"));
    cot_program_destroy(p);
}

/* ---- the cache ------------------------------------------------------------------------------- */

static int starts_of(cot_native_state want) {
    int before = atomic_load(&cot__native_started);
    assert_ends(want, "");
    return atomic_load(&cot__native_started) - before;
}

static void what_was_compiled_once_is_found_again(void **state) {
    (void)state;
    char path[1100];
    assert_int_equal(starts_of(COT_NATIVE_READY), 1);
    assert_int_equal(find_object(path), 1);
    assert_int_equal(starts_of(COT_NATIVE_READY), 0);
}

static void another_compiler_makes_another_object(void **state) {
    (void)state;
    char path[1100];
    assert_int_equal(starts_of(COT_NATIVE_READY), 1);
    use_compiler("true\n" COMPILER);
    assert_int_equal(starts_of(COT_NATIVE_READY), 1);
    assert_int_equal(find_object(path), 2);
}

/* Changes the object that is there, and sees that it is made again. */
static void assert_made_again(void (*change)(const char *path)) {
    char path[1100];
    assert_ends(COT_NATIVE_READY, "");
    assert_int_equal(find_object(path), 1);
    change(path);
    assert_int_equal(starts_of(COT_NATIVE_READY), 1);
    assert_int_equal(starts_of(COT_NATIVE_READY), 0);
}

static void alter(const char *path) {
    int  fd = open(path, O_RDWR);
    char byte;
    assert_int_equal(pread(fd, &byte, 1, 5000), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, 5000), 1);
    close(fd);
}
static void shorten(const char *path) { assert_int_equal(truncate(path, 3000), 0); }
static void let_others_write(const char *path) { assert_int_equal(chmod(path, 0666), 0); }
static void put_a_link(const char *path) {
    char other[1100];
    snprintf(other, sizeof other, "%s/other", scratch);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
}

static void an_altered_object_is_not_loaded(void **state) { (void)state, assert_made_again(alter); }
static void a_shortened_object_is_not_loaded(void **state) { (void)state, assert_made_again(shorten); }
static void an_object_that_others_may_write_is_not_loaded(void **state) {
    (void)state, assert_made_again(let_others_write);
}
static void a_link_is_not_loaded(void **state) { (void)state, assert_made_again(put_a_link); }

static void an_object_of_another_program_is_not_loaded(void **state) {
    (void)state;
    char mine[1100], other[1100];
    assert_ends(COT_NATIVE_READY, "");
    assert_int_equal(find_object(mine), 1);
    snprintf(other, sizeof other, "%s/%064d.so", folder, 7);
    /* whole, but put where another one is: it has another key */
    assert_int_equal(rename(mine, other), 0);
    use_compiler("true\n" COMPILER);
    assert_ends(COT_NATIVE_READY, "");
    char next[1100] = "";
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.' && !strstr(other, e->d_name)) snprintf(next, sizeof next, "%s/%s", folder, e->d_name);
    closedir(d);
    assert_int_equal(rename(other, next), 0);
    assert_int_equal(starts_of(COT_NATIVE_READY), 1);
}

static void the_oldest_objects_go_when_there_are_too_many(void **state) {
    (void)state;
    char        first[1100], now[1100], limit[32];
    struct stat s;
    assert_ends(COT_NATIVE_READY, "");
    assert_int_equal(find_object(first), 1);
    assert_int_equal(stat(first, &s), 0);
    snprintf(limit, sizeof limit, "%lld", (long long)s.st_size * 3 / 2);
    setenv("COTANGENT_CACHE_BYTES", limit, 1);
    use_compiler("true\n" COMPILER);
    assert_ends(COT_NATIVE_READY, "");
    assert_int_equal(find_object(now), 1);
    assert_string_not_equal(first, now);
}

static void a_cache_without_room_leaves_the_library_to_run(void **state) {
    (void)state;
    setenv("COTANGENT_CACHE_BYTES", "1", 1);
    assert_ends(COT_NATIVE_DROPPED, "has no room");
}

/* ---- folders that cannot be used ------------------------------------------------------------- */

static void a_folder_that_others_may_write_is_refused(void **state) {
    (void)state;
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(starts_of(COT_NATIVE_DROPPED), 0);
    assert_ends(COT_NATIVE_DROPPED, "others may write to it");
}

static void a_folder_of_another_user_is_refused(void **state) {
    (void)state;
    if (geteuid() != 0) skip(); /* only root can give one away */
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chown(folder, 12345, 12345), 0);
    assert_ends(COT_NATIVE_DROPPED, "belongs to another user");
}

static void a_link_to_a_folder_is_refused(void **state) {
    (void)state;
    assert_int_equal(symlink(scratch, folder), 0);
    assert_ends(COT_NATIVE_DROPPED, "symbolic link");
}

static void a_folder_that_cannot_be_made_is_told(void **state) {
    (void)state;
    setenv("COTANGENT_CACHE", "/proc/no/such", 1);
    assert_ends(COT_NATIVE_DROPPED, "the cache folder /proc/no/such");
    setenv("COTANGENT_CACHE", "here", 1);
    assert_ends(COT_NATIVE_DROPPED, "does not begin with /");
}

/* Writes of the process beyond so many bytes of a file fail, as on a full disk. */
static void a_file_that_cannot_be_written_is_told(void **state) {
    (void)state;
    char          path[1100];
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = (struct rlimit){1000, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    cot_program     *p = compile_curve(true);
    cot_native_state got = cot_program_native(p, true);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(got, COT_NATIVE_DROPPED);
    assert_non_null(strstr(cot_program_native_message(p), "cannot write to the cache folder"));
    assert_runs(p);
    cot_program_destroy(p);
    assert_int_equal(find_object(path), 0); /* nothing is left there */
}

static void a_compiler_without_room_is_told(void **state) {
    (void)state;
    use_compiler("echo 'cc: No space left on device' >&2\nexit 1");
    assert_ends(COT_NATIVE_DROPPED, "No space left on device");
}

static void the_folder_is_found_under_home(void **state) {
    (void)state;
    char path[1100], *home = getenv("HOME"), *kept = home ? strdup(home) : NULL;
    struct stat s;
    unsetenv("COTANGENT_CACHE");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", scratch, 1);
    assert_ends(COT_NATIVE_READY, "");
    snprintf(path, sizeof path, "%s/.cache/cotangent", scratch);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
    empty_folder(path);
    rmdir(path);
    snprintf(path, sizeof path, "%s/.cache", scratch);
    rmdir(path);
    unsetenv("HOME");
    assert_ends(COT_NATIVE_DROPPED, "neither COTANGENT_CACHE nor HOME");
    if (kept) setenv("HOME", kept, 1);
    free(kept);
}

/* ---- compilers that do not compile ----------------------------------------------------------- */

static void a_compiler_that_fails_is_told_with_its_first_line(void **state) {
    (void)state;
    setenv("COTANGENT_CC", "/bin/false", 1);
    assert_ends(COT_NATIVE_DROPPED, "/bin/false has failed with exit status 1");
    use_compiler("echo 'something is wrong' >&2\nexit 3");
    assert_ends(COT_NATIVE_DROPPED, "exit status 3: something is wrong");
    use_compiler("kill -9 $$");
    assert_ends(COT_NATIVE_DROPPED, "ended by signal 9");
}

static void a_compiler_that_makes_nothing_or_nonsense_is_told(void **state) {
    (void)state;
    use_compiler("exit 0");
    assert_ends(COT_NATIVE_DROPPED, "No such file");
    use_compiler("while [ $# -gt 1 ]; do [ \"$1\" = -o ] && echo nonsense > \"$2\"; shift; done");
    assert_ends(COT_NATIVE_DROPPED, "cannot be loaded");
}

static void a_compiler_that_hangs_is_stopped_with_all_it_started(void **state) {
    (void)state;
    use_compiler("sleep 1000 &\nsleep 1000");
    setenv("COTANGENT_NATIVE_SECONDS", "0.2", 1);
    assert_ends(COT_NATIVE_DROPPED, "was stopped after 0.2 s");
}

static void a_number_of_the_environment_that_is_none_is_told(void **state) {
    (void)state;
    static const char *const seconds[] = {"abc", "5 s", "-1", "0", "nan", "1e9"};
    static const char *const bytes[] = {"abc", "1 MB", "-1"};
    for (int k = 0; k < TEST_COUNT(seconds); k++) {
        setenv("COTANGENT_NATIVE_SECONDS", seconds[k], 1);
        assert_ends(COT_NATIVE_DROPPED, "it must be a number of seconds, 0.001 at least and below 1000000");
    }
    setenv("COTANGENT_NATIVE_SECONDS", "600", 1);
    for (int k = 0; k < TEST_COUNT(bytes); k++) {
        setenv("COTANGENT_CACHE_BYTES", bytes[k], 1);
        assert_ends(COT_NATIVE_DROPPED, "it must be a number of bytes, 0 at least");
    }
}

static void without_a_compiler_a_sentence_says_so(void **state) {
    (void)state;
    char *kept = strdup(getenv("PATH"));
    unsetenv("COTANGENT_CC");
    setenv("PATH", "/nowhere", 1);
    assert_ends(COT_NATIVE_DROPPED, "there is no compiler");
    setenv("PATH", kept, 1);
    free(kept);
    setenv("COTANGENT_CC", "gcc -O1", 1);
    assert_ends(COT_NATIVE_DROPPED, "without options");
}

static void a_process_with_foreign_rights_starts_none(void **state) {
    (void)state;
    cot__native_secure = 1;
    assert_int_equal(starts_of(COT_NATIVE_DROPPED), 0);
    assert_ends(COT_NATIVE_DROPPED, "AT_SECURE");
}

/* ---- the host -------------------------------------------------------------------------------- */

static volatile sig_atomic_t children;
static void count_child(int signal) { (void)signal, children++; }

static void the_host_sees_no_child_and_no_signal(void **state) {
    (void)state;
    struct sigaction counts = {.sa_handler = count_child}, before;
    children = 0;
    sigaction(SIGCHLD, &counts, &before);
    use_compiler(SLOW_COMPILER);
    cot_program *p = compile_curve(true);
    /* while it runs, and when it has ended */
    for (int k = 0; k < 2; k++) {
        errno = 0;
        assert_int_equal(waitpid(-1, NULL, 0), -1);
        assert_int_equal(errno, ECHILD);
        assert_int_equal(cot_program_native(p, k == 0), COT_NATIVE_READY);
    }
    assert_int_equal(children, 0);
    sigaction(SIGCHLD, &before, NULL);
    cot_program_destroy(p);
}

/* Children that nobody waits for end without a trace, but the compiler is not one of the host's. */
static void the_host_may_let_its_children_go(void **state) {
    static const struct sigaction ways[] = {{.sa_handler = SIG_IGN}, {.sa_flags = SA_NOCLDWAIT}};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct sigaction before, after;
        empty_folder(folder);
        sigaction(SIGCHLD, &ways[k], &before);
        assert_ends(COT_NATIVE_READY, "native code");
        sigaction(SIGCHLD, &before, &after);
        assert_true(after.sa_handler == ways[k].sa_handler && (after.sa_flags & SA_NOCLDWAIT) == ways[k].sa_flags);
    }
}

static void the_compiler_gets_no_files_signals_or_environment_of_the_host(void **state) {
    (void)state;
    assert_int_equal(dup2(1, 9), 9); /* which an exec would keep */
    signal(SIGUSR1, SIG_IGN);
    setenv("CPATH", ":/nowhere", 1); /* the current folder, and another */
    setenv("PATH", ".::/usr/bin:/bin", 1);
    use_compiler("[ -e /proc/$$/fd/9 ] && exit 9\n"
                 "grep -q 'SigIgn:.*[2367abef]..$' /proc/$$/status && exit 8\n"
                 "[ \"$CPATH\" = '' ] && [ \"$PATH\" = /usr/bin:/bin ] && [ \"$LC_ALL\" = C ] || exit 7\n"
                 COMPILER);
    assert_ends(COT_NATIVE_READY, "");
    close(9);
    unsetenv("CPATH");
    signal(SIGUSR1, SIG_DFL);
}

static void a_fork_while_it_compiles_does_not_wait_for_ever(void **state) {
    (void)state;
    use_compiler(SLOW_COMPILER);
    cot_program *p = compile_curve(true);
    pid_t        child = fork();
    if (child == 0) {
        bool ok = cot_program_native(p, true) == COT_NATIVE_DROPPED && strstr(cot_program_native_message(p), "forked");
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(cot_program_native(p, true), COT_NATIVE_READY);
    cot_program_destroy(p);
}

static void a_program_may_be_destroyed_while_it_is_compiled(void **state) {
    (void)state;
    use_compiler(SLOW_COMPILER);
    cot_program_destroy(compile_curve(true));
    assert_ends(COT_NATIVE_READY, ""); /* waits for its turn behind it */
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void any_allocation_may_fail(void **state) {
    (void)state;
    assert_ends(COT_NATIVE_READY, ""); /* so that it is found */
    for (long at = 1;; at++) {
        counting     c = {.fail_at = at, .fail_for_good = true};
        cot_program *p = cot_compile(curve, NULL, 2, curve_types, 3,
                                     &(cot_compile_options){.native = true, .allocator = {counting_alloc, &c}});
        cot_run *r = p ? cot_run_create(p) : NULL;
        if (p && cot_program_status(p) == COT_OK && cot_run_status(r) == COT_OK) {
            results got = run_curve(r, 1), want = plain_curve(1);
            assert_memory_equal(&got, &want, sizeof got);
        }
        bool failed = c.failed > 0, ready = p && cot_program_native(p, true) == COT_NATIVE_READY;
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
        assert_int_equal(c.wrong_size, 0);
        if (failed) continue;
        assert_true(ready);
        return;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define NATIVE(name) cmocka_unit_test_setup_teardown(name, fresh, clean)
        NATIVE(a_run_changes_to_native_code_when_that_is_there),
        NATIVE(a_fast_program_has_the_bits_of_its_executor),
        NATIVE(slow_native_code_is_dropped),
        NATIVE(it_is_off_unless_asked_for),
        NATIVE(the_environment_asks_for_it_and_forbids_it),
        NATIVE(printing_a_program_tells_its_state),
        NATIVE(a_call_on_a_tape_and_its_gradient_use_it),
        NATIVE(threads_change_to_it_in_the_middle_of_their_runs),
        NATIVE(wrong_code_is_dropped_after_its_first_run),
        NATIVE(a_program_without_work_for_it_says_so),
        NATIVE(what_was_compiled_once_is_found_again),
        NATIVE(another_compiler_makes_another_object),
        NATIVE(an_altered_object_is_not_loaded),
        NATIVE(a_shortened_object_is_not_loaded),
        NATIVE(an_object_that_others_may_write_is_not_loaded),
        NATIVE(a_link_is_not_loaded),
        NATIVE(an_object_of_another_program_is_not_loaded),
        NATIVE(the_oldest_objects_go_when_there_are_too_many),
        NATIVE(a_cache_without_room_leaves_the_library_to_run),
        NATIVE(a_folder_that_others_may_write_is_refused),
        NATIVE(a_folder_of_another_user_is_refused),
        NATIVE(a_link_to_a_folder_is_refused),
        NATIVE(a_folder_that_cannot_be_made_is_told),
        NATIVE(a_file_that_cannot_be_written_is_told),
        NATIVE(a_compiler_without_room_is_told),
        NATIVE(the_folder_is_found_under_home),
        NATIVE(a_compiler_that_fails_is_told_with_its_first_line),
        NATIVE(a_compiler_that_makes_nothing_or_nonsense_is_told),
        NATIVE(a_compiler_that_hangs_is_stopped_with_all_it_started),
        NATIVE(a_number_of_the_environment_that_is_none_is_told),
        NATIVE(without_a_compiler_a_sentence_says_so),
        NATIVE(a_process_with_foreign_rights_starts_none),
        NATIVE(the_host_sees_no_child_and_no_signal),
        NATIVE(the_host_may_let_its_children_go),
        NATIVE(the_compiler_gets_no_files_signals_or_environment_of_the_host),
        NATIVE(a_fork_while_it_compiles_does_not_wait_for_ever),
        NATIVE(a_program_may_be_destroyed_while_it_is_compiled),
        NATIVE(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
