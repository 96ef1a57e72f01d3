/* ctest: labels=threads */
/* Programs with a folder to spill to beside their memory limit: smaller limits are reached, what
 * may not be computed twice need not stay, every bit stays, and a run takes what was told. A disk
 * that is full or fails is done without, or is named. */
#include "compile/compile.h"
#include "compile/limit/limit_test.h"
#include "program/run_parts.h"
#include "support/nameless.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- nets ------------------------------------------------------------------------------------ */

/* What is done again, within the limit. */
static double again_within(limit_model *m, int64_t limit, const char *folder) {
    cot_program_facts f;
    cot_program      *p = limit_compile(m, &(cot_compile_options){.memory_limit = limit, .spill = folder});
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    cot_program_destroy(p);
    return f.again;
}

/* At limits of which some need the folder. Where none does, it costs no work. */
static void check_model(limit_model m) {
    cot_program *p = limit_compile(&m, NULL);
    cot_run     *r = cot_run_create(p);
    arrays       plain = arrays_of(p);
    int64_t      whole = (int64_t)cot_run_bytes(r), alone = smallest_limit(&m), with = smallest_with(&m, "/tmp");
    run(p, &plain, r);
    if (with >= alone) fail_msg("%s: %lld, without a folder %lld", m.name, (long long)with, (long long)alone);
    if (!test_small()) check_limit(&m, whole / 2 < with ? with : whole / 2, "/tmp", &plain);
    assert_true(check_limit(&m, (alone + with) / 2, "/tmp", &plain) > 0);
    assert_true(check_limit(&m, with, "/tmp", &plain) > 0);
    assert_int_equal(check_limit(&m, whole, "/tmp", &plain), 0); /* nothing has to go */
    assert_true(again_within(&m, alone, "/tmp") <= again_within(&m, alone, NULL));
    cot_run_destroy(r);
    free_arrays(&plain);
    cot_program_destroy(p);
}

static void a_deep_stack_reaches_smaller_limits(void **state) {
    (void)state;
    check_model(short_stack(test_small() ? 16 : DEEP_LAYERS));
}
static void convolutions_reach_smaller_limits(void **state) {
    (void)state;
    check_model(cnn_model());
}
static void a_transformer_reaches_smaller_limits(void **state) {
    (void)state;
    check_model(gpt_model());
}

/* ---- what may not be computed twice ---------------------------------------------------------- */

enum { SIDE = 48, SIZE = SIDE * SIDE, BYTES = SIZE * 4, STEPS = 12, LIMIT = 11 * BYTES };

static bool damages; /* the next probe damages the file of the run: */

/* The last byte is another: what is read back last lies there. */
static void nameless_file_ends_otherwise(void) {
    int           fd = nameless_file();
    struct stat   file;
    unsigned char b;
    assert_int_equal(fstat(fd, &file), 0);
    assert_int_equal(pread(fd, &b, 1, file.st_size - 1), 1);
    b ^= 16;
    assert_int_equal(pwrite(fd, &b, 1, file.st_size - 1), 1);
}

static int cube_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    const float *x = xs[0].data;
    float       *out = y->data;
    for (int64_t k = 0; k < y->size; k++) out[k] = x[k] * x[k] * x[k] + 0.25f;
    return 0;
}
static int probe_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    memcpy(y->data, xs[0].data, (size_t)y->size * sizeof(float));
    if (damages) nameless_file_ends_otherwise();
    return 0;
}
static const cot_custom cube = {.name = "cube", .value = cube_value}, probe = {.name = "probe", .value = probe_value};

static cot_var by_call(cot_var x) { return cot_call(&cube, 1, &x, NULL); }

BODY(half_step) {
    UNUSED;
    ys[0] = cot_mul(cot_sin(xs[0]), 0.5);
    return 0;
}
static cot_var by_loop(cot_var x) {
    cot_var y;
    cot_scan(half_step, NULL, 2, 1, &x, 0, NULL, &y, 0, NULL, NULL);
    return cot_add(y, 0.5);
}

/* All steps, which the user's function makes, are read again from the last to the first. */
typedef cot_var step_function(cot_var x);
BODY(there_and_back) {
    step_function *step = *(step_function **)user;
    cot_var        h[STEPS + 1] = {xs[0]};
    (void)n, (void)m;
    for (int k = 0; k < STEPS; k++) h[k + 1] = step(h[k]);
    ys[0] = cot_call(&probe, 1, &h[STEPS], NULL);
    for (int k = STEPS; k > 0; k--) ys[0] = cot_matmul(cot_add(cot_mul(ys[0], 0.01), h[k]), xs[0]);
    return 0;
}

static cot_program *compile_steps(step_function **step, int64_t limit, const char *folder) {
    const cot_type type = {COT_F32, COT_SHAPE(SIDE, SIDE)};
    return cot_compile(there_and_back, step, 1, &type, 1,
                       &(cot_compile_options){.memory_limit = limit, .spill = folder});
}

/* Half of the steps need not be in memory together. */
static void only_a_folder_makes_room(step_function *step) {
    int64_t limit = smallest_told(compile_steps(&step, 1, "/tmp"));
    assert_true(smallest_told(compile_steps(&step, limit, NULL)) > limit + STEPS / 2 * BYTES);
    cot_program *plain = compile_steps(&step, 0, "/tmp"), *p = compile_steps(&step, limit, "/tmp");
    assert_string_equal(cot_program_message(p), "");
    cot_run *q = cot_run_create(plain), *r = cot_run_create(p);
    arrays   a = arrays_of(p), b = arrays_of(p);
    run(plain, &a, q), run(p, &b, r);
    assert_same_bits("steps", limit, p, &a, &b);
    assert_true((int64_t)cot_run_bytes(r) <= limit);
    free_arrays(&a), free_arrays(&b);
    cot_run_destroy(q), cot_run_destroy(r);
    cot_program_destroy(plain), cot_program_destroy(p);
}

static void results_of_functions_of_the_users_are_spilled(void **state) {
    (void)state;
    only_a_folder_makes_room(by_call);
}
static void results_of_loops_are_spilled(void **state) {
    (void)state;
    only_a_folder_makes_room(by_loop);
}

/* ---- numbers between arrays ------------------------------------------------------------------ */

static cot_var instructions(cot_var s, double k) { return cot_add(cot_mul(cot_sin(s), 0.9 + k), 0.1 + k); }

/* Each step, there and back, is between instructions on a number. */
BODY(there_and_back_in_time) {
    cot_var s = xs[1], h[2 * STEPS + 1] = {xs[0]};
    UNUSED;
    for (int k = 0; k < 2 * STEPS; k++) s = instructions(s, 0.001 * k), h[k + 1] = by_call(h[k]);
    ys[0] = xs[0];
    for (int k = 2 * STEPS; k > 0; k--) s = instructions(s, 0.002 * k), ys[0] = cot_matmul(ys[0], h[k]);
    ys[1] = instructions(s, 0.5);
    return 0;
}

static cot_program *compile_in_time(int64_t limit) {
    const cot_type types[] = {{COT_F32, COT_SHAPE(SIDE, SIDE)}, {COT_F32, {0}}};
    return cot_compile(there_and_back_in_time, NULL, 2, types, 2,
                       &(cot_compile_options){.memory_limit = limit, .spill = "/tmp"});
}

/* Every move begins another row of instructions, which its list has room for. */
static void moves_between_rows_of_instructions_have_room(void **state) {
    (void)state;
    int64_t      least = smallest_told(compile_in_time(1));
    cot_program *plain = compile_in_time(0);
    cot_run     *q = cot_run_create(plain);
    arrays       a = arrays_of(plain), b = arrays_of(plain);
    run(plain, &a, q);
    for (int more = 0; more < 8; more += 3) {
        cot_program *p = compile_in_time(least + more * BYTES);
        cot_run     *r = cot_run_create(p);
        assert_string_equal(cot_run_message(r), "");
        assert_true((const char *)(r->run->step + r->run->steps) <= (const char *)r->run->binding);
        run(p, &b, r);
        assert_same_bits("steps in time", least, p, &a, &b);
        cot_run_destroy(r);
        cot_program_destroy(p);
    }
    free_arrays(&a), free_arrays(&b);
    cot_run_destroy(q);
    cot_program_destroy(plain);
}

/* ---- the disk -------------------------------------------------------------------------------- */

/* A run of a short stack, within a limit that is reached without the folder, too, but for more; or
 * with it alone. What it gives, and what it should. */
typedef struct trial { limit_model m; cot_program *p; cot_run *r; arrays a, right; int64_t limit; } trial;

/* donates: the last weights. */
static trial trial_donating(bool alone, bool donates) {
    trial        t = {.m = short_stack(test_small() ? 8 : 12)};
    cot_program *plain = limit_compile(&t.m, NULL);
    cot_run     *r = cot_run_create(plain);
    cot_compile_options o = {.donate = (int[]){t.m.inputs - 1}, .donations = donates, .memory_limit = 1,
                             .spill = alone ? NULL : "/tmp"};
    o.memory_limit = t.limit = smallest_told(limit_compile(&t.m, &o));
    o.spill = "/tmp";
    t.p = limit_compile(&t.m, &o);
    t.r = cot_run_create(t.p);
    t.a = arrays_of(plain), t.right = arrays_of(plain);
    assert_string_equal(cot_run_message(t.r), "");
    run(plain, &t.right, r);
    cot_run_destroy(r);
    cot_program_destroy(plain);
    return t;
}

static trial trial_open(bool alone) { return trial_donating(alone, false); }

static void trial_close(trial *t) {
    free_arrays(&t->a), free_arrays(&t->right);
    cot_run_destroy(t->r);
    cot_program_destroy(t->p);
}

/* The note names the folder and the cause. */
#define FAILED "[spill] the disk of /tmp failed: No space left on device; values are computed again"

static void assert_goes_without(trial *t, const char *note) {
    run(t->p, &t->a, t->r);
    assert_same_bits("trial", t->limit, t->p, &t->a, &t->right);
    assert_string_equal(cot_run_note(t->r), note);
    assert_true((int64_t)cot_run_bytes(t->r) <= t->limit);
}

static void a_failing_disk_leads_to_recomputation(void **state) {
    (void)state;
    trial t = trial_open(true);
    run(t.p, &t.a, t.r);
    assert_string_equal(cot_run_note(t.r), "");
    nameless_file_fails();
    for (int k = 0; k < 2; k++) assert_goes_without(&t, FAILED);
    int64_t bytes;
    assert_int_equal(nameless_files(&bytes), 0); /* the file is closed */
    trial_close(&t);
}

static void a_failing_disk_is_named(void **state) {
    (void)state;
    trial t = trial_open(false);
    nameless_file_fails();
    for (int k = 0; k < 2; k++) {
        assert_int_equal(cot_program_run(t.r, (const void *const *)t.a.input, t.a.output), COT_MEMORY);
        const char *why = cot_run_message(t.r); /* /dev/full takes nothing, and gives zeros */
        if (strcmp(why, "[spill] the disk of /tmp failed: No space left on device; what lay there is lost, and the run "
                        "with it"))
            fail_msg("%s", why);
    }
    trial_close(&t);
}

/* What was, or may have been, written over cannot be read again. */
static void a_run_in_place_fails_with_its_disk_and_the_next_goes_on(void **state) {
    (void)state;
    for (int donates = 0; donates < 2; donates++) {
        trial t = trial_donating(true, donates);
        int   last = t.m.inputs - 1, gradient = t.m.inputs - t.m.data;
        void *own = t.a.output[gradient];
        nameless_file_fails();
        if (!donates) t.a.output[gradient] = t.a.input[last]; /* by this layer */
        assert_int_equal(cot_program_run(t.r, (const void *const *)t.a.input, t.a.output), COT_MEMORY);
        assert_non_null(strstr(cot_run_message(t.r), "[spill] the disk of /tmp failed: "));
        t.a.output[gradient] = own;
        for (int k = 0; k <= last; k++) fill(t.a.input[k], t.m.type[k], k);
        assert_goes_without(&t, FAILED);
        trial_close(&t);
    }
}

static int counted_calls;
static int counted_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    memcpy(y->data, xs[0].data, (size_t)y->size * sizeof(float));
    counted_calls++;
    return 0;
}
static const cot_custom counted = {.name = "counted", .value = counted_value};

/* One call, and steps that can be computed again. */
enum { LONG = 16384 };
BODY(calls_once) {
    cot_var h[STEPS + 1] = {cot_call(&counted, 1, xs, NULL)};
    UNUSED;
    for (int k = 0; k < STEPS; k++) h[k + 1] = cot_tanh(cot_cumsum(cot_mul(h[k], 0.001 * (k + 1)), 0, false));
    ys[0] = h[STEPS];
    for (int k = STEPS; k > 0; k--) ys[0] = cot_cumsum(cot_mul(ys[0], h[k]), 0, false);
    return 0;
}
static cot_program *compile_calls_once(int64_t limit, const char *folder) {
    return cot_compile(calls_once, NULL, 1, &(cot_type){COT_F32, COT_SHAPE(LONG)}, 1,
                       &(cot_compile_options){.memory_limit = limit, .spill = folder});
}

static void a_function_of_the_users_runs_once_though_the_disk_fails(void **state) {
    (void)state;
    cot_program *p = compile_calls_once(smallest_told(compile_calls_once(1, NULL)), "/tmp");
    cot_run     *r = cot_run_create(p);
    arrays       a = arrays_of(p), b = arrays_of(p);
    run(p, &a, r);
    nameless_file_fails();
    counted_calls = 0;
    assert_int_equal(cot_program_run(r, (const void *const *)b.input, b.output), COT_MEMORY);
    assert_int_equal(counted_calls, 1);
    assert_non_null(strstr(cot_run_message(r), "[spill] the disk of /tmp failed: No space left on device; "));
    run(p, &b, r);
    assert_int_equal(counted_calls, 2);
    assert_same_bits("calls once", 0, p, &a, &b);
    assert_string_equal(cot_run_note(r), FAILED);
    free_arrays(&a), free_arrays(&b);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

static void without_memory_for_a_run_without_the_disk_the_next_tries_again(void **state) {
    (void)state;
    counting     c = {0};
    limit_model  m = short_stack(8);
    cot_program *p = limit_compile(&m, &(cot_compile_options){.allocator = {counting_alloc, &c}, .spill = "/tmp",
                                                              .memory_limit = smallest_limit(&m)});
    cot_run     *r = cot_run_create(p);
    arrays       a = arrays_of(p), b = arrays_of(p);
    run(p, &a, r);
    nameless_file_fails();
    let_succeed(&c, 0);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(cot_program_run(r, (const void *const *)b.input, b.output), COT_MEMORY);
        const char *why = k ? "[program_run] out of memory: " : "[spill] the disk of /tmp failed: ";
        if (!strstr(cot_run_message(r), why)) fail_msg("%s", cot_run_message(r));
    }
    let_succeed(&c, -1);
    run(p, &b, r);
    assert_same_bits("again", 0, p, &a, &b);
    assert_string_equal(cot_run_note(r), FAILED);
    free_arrays(&a), free_arrays(&b);
    cot_run_destroy(r);
    cot_program_destroy(p);
    assert_int_equal(c.live, 0);
}

#if defined(__SANITIZE_THREAD__) /* it ends a child that starts a thread */
#define NO_THREADS_AFTER_FORK true
#else
#define NO_THREADS_AFTER_FORK false
#endif

/* It is known before the run that the file is the parent's. */
static void a_function_of_the_users_runs_in_a_forked_child(void **state) {
    (void)state;
    if (NO_THREADS_AFTER_FORK) skip();
    cot_program *p = compile_calls_once(smallest_told(compile_calls_once(1, NULL)), "/tmp");
    cot_run     *r = cot_run_create(p);
    arrays       a = arrays_of(p);
    run(p, &a, r);
    counted_calls = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool ok = cot_program_run(r, (const void *const *)a.input, a.output) == COT_OK;
        ok = ok && !strcmp(cot_run_note(r), "[spill] the file in /tmp is that of the parent process; values are "
                                            "computed again");
        _exit(ok && counted_calls == 1 ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    free_arrays(&a);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* The file is the parent's, who goes on with it. */
static void a_forked_child_goes_without(void **state) {
    (void)state;
    if (NO_THREADS_AFTER_FORK) skip();
    trial t = trial_open(true);
    run(t.p, &t.a, t.r);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool ok = cot_program_run(t.r, (const void *const *)t.a.input, t.a.output) == COT_OK && *cot_run_note(t.r);
        for (int k = 0; k < cot_program_outputs(t.p); k++)
            ok = ok && !memcmp(t.a.output[k], t.right.output[k], (size_t)bytes_of(cot_program_output_type(t.p, k)));
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run(t.p, &t.a, t.r);
    assert_same_bits("parent", t.limit, t.p, &t.a, &t.right);
    assert_string_equal(cot_run_note(t.r), "");
    trial_close(&t);
}

static void damage_is_seen(void **state) {
    (void)state;
    step_function *step = by_call;
    cot_program   *p = compile_steps(&step, LIMIT, "/tmp");
    cot_run       *r = cot_run_create(p);
    arrays         a = arrays_of(p);
    run(p, &a, r);
    damages = true;
    assert_int_equal(cot_program_run(r, (const void *const *)a.input, a.output), COT_MEMORY);
    damages = false;
    assert_string_equal(cot_run_message(r), "[spill] the disk of /tmp failed: its checksum differs; what lay there is "
                                            "lost, and the run with it");
    run(p, &a, r); /* which writes it anew */
    free_arrays(&a);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* The room is taken when the run is made. */
static void a_full_disk_is_told_when_a_run_is_made(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    for (int alone = 0; alone < 2; alone++) {
        trial             t = trial_open(alone);
        cot_program_facts f;
        int64_t           bytes;
        assert_int_equal(cot_program_measure(t.p, &f), COT_OK);
        assert_int_equal(nameless_files(&bytes), 1);
        assert_true(f.spilled_bytes > 0 && bytes == f.spilled_bytes);
        cot_run_destroy(t.r);
        small.rlim_cur = (rlim_t)f.spilled_bytes - 1;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        t.r = cot_run_create(t.p);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        char text[200];
        snprintf(text, sizeof text, "[run_create] there is no room for %lld bytes in a file in /tmp: File too large",
                 (long long)f.spilled_bytes);
        assert_string_equal(cot_run_message(t.r), alone ? "" : text);
        assert_int_equal(cot_run_status(t.r), alone ? COT_OK : COT_MEMORY);
        snprintf(text, sizeof text, "[spill] there is no room for %lld bytes in a file in /tmp: File too large; values "
                                    "are computed again", (long long)f.spilled_bytes);
        if (alone) assert_goes_without(&t, text);
        trial_close(&t);
    }
}

static void a_folder_that_is_none_is_told(void **state) {
    (void)state;
    limit_model  m = short_stack(12);
    int64_t      limit = smallest_with(&m, "/tmp");
    cot_program *p = limit_compile(&m, &(cot_compile_options){.memory_limit = limit, .spill = "/not"});
    cot_run     *r = cot_run_create(p);
    assert_int_equal(cot_run_status(r), COT_VALUE);
    assert_string_equal(cot_run_message(r), "[run_create] a file in /not could not be made: No such file or directory");
    cot_run_destroy(r);
    cot_program_destroy(p);
    p = limit_compile(&m, &(cot_compile_options){.memory_limit = smallest_limit(&m), .spill = "/not"});
    r = cot_run_create(p);
    arrays a = arrays_of(p);
    run(p, &a, r);
    assert_string_equal(cot_run_note(r), "[spill] a file in /not could not be made: No such file or directory; values "
                                         "are computed again");
    free_arrays(&a);
    cot_run_destroy(r);
    cot_program_destroy(p);
    p = limit_compile(&m, &(cot_compile_options){.memory_limit = limit, .spill = ""});
    assert_string_equal(cot_program_message(p), "[compile] spill is \"\"; it must be the name of a folder, or NULL");
    cot_program_destroy(p);
}

/* ---- reports, calls, memory ------------------------------------------------------------------ */

static void the_report_tells_what_is_spilled(void **state) {
    (void)state;
    trial             t = trial_open(false);
    cot_program_facts f;
    char              line[200], *text = NULL;
    size_t            size = 0;
    FILE             *out = open_memstream(&text, &size);
    assert_int_equal(cot_program_measure(t.p, &f), COT_OK);
    assert_int_equal(cot_program_report(t.p, out), COT_OK);
    fclose(out);
    snprintf(line, sizeof line, "  spilled     %12lld  written to a file by each run, and read back\n",
             (long long)f.spilled_bytes);
    if (!f.spilled_bytes || !strstr(text, line)) fail_msg("%s\n%s", line, text);
    free(text);
    trial_close(&t);
}

static bool reads(const cot__program *p, uint32_t k, uint32_t v) {
    const uint32_t *x = cot__operation_operand(p, k);
    int             i = 0, n = cot__operation_operands(p, k);
    while (i < n && x[i] != v) i++;
    return i < n;
}

/* How many products come between a fetch and the first that reads, or views, what it brings. */
static int products_before_reader(const cot__program *p, uint32_t fetch) {
    int count = 0;
    for (uint32_t k = fetch + 1; k < p->operations && !reads(p, k, p->operation[fetch].result); k++)
        count += !strcmp(cot__operation_name(p, k), "matmul");
    return count;
}

/* Its reader may be the end of one product; the other one is done while the thread reads. */
static void values_are_fetched_ahead(void **state) {
    (void)state;
    limit_model       m = deep_model();
    cot_program      *plain = limit_compile(&m, NULL), *p;
    cot_program_facts f;
    assert_int_equal(cot_program_measure(plain, &f), COT_OK);
    p = limit_compile(&m, &(cot_compile_options){.memory_limit = f.run_bytes / 2, .spill = "/tmp"});
    int fetches = 0, ahead = 0;
    for (uint32_t k = 0; k < p->runs->operations; k++) {
        if (!cot__is_fetch(p->runs, k)) continue;
        fetches++;
        ahead += products_before_reader(p->runs, k) > 1;
    }
    if (fetches < 10 || ahead < fetches / 2) fail_msg("%d of %d fetches are ahead", ahead, fetches);
    cot_program_destroy(plain), cot_program_destroy(p);
}

static void a_call_whose_disk_fails_is_an_error_and_the_next_is_none(void **state) {
    (void)state;
    static float   start[SIZE], out[2][SIZE];
    step_function *step = by_call;
    cot_program   *p = compile_steps(&step, LIMIT, "/tmp");
    const cot_type type = {COT_F32, COT_SHAPE(SIDE, SIDE)};
    fill(start, type, 1);
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_data(t, COT_F32, type.shape, start), y;
        if (k == 1) nameless_file_fails(); /* that of the run which waits for the next call */
        cot_program_call(p, 1, &x, 1, &y);
        if (k == 1) {
            assert_error(t, COT_MEMORY, "[spill] the disk of /tmp failed: No space left on device; what lay there is "
                                        "lost, and the run with it");
        } else {
            cot_read_as(y, COT_F32, out[k / 2], SIZE);
            assert_ok(t);
        }
        cot_tape_destroy(t);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    cot_program_destroy(p);
}

static bool call_gives(cot_program *p, const float *start, float *out) {
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      x = cot_data(t, COT_F32, COT_SHAPE(SIDE, SIDE), start), y;
    cot_program_call(p, 1, &x, 1, &y);
    bool ok = cot_read_as(y, COT_F32, out, SIZE) == COT_OK;
    cot_tape_destroy(t);
    return ok;
}

/* The run that waits for the next call has its parent's file. */
static void a_call_of_a_forked_child_has_a_file_of_its_own(void **state) {
    (void)state;
    if (NO_THREADS_AFTER_FORK) skip();
    static float   start[SIZE], out[2][SIZE];
    step_function *step = by_call;
    cot_program   *p = compile_steps(&step, LIMIT, "/tmp");
    int64_t        bytes;
    fill(start, (cot_type){COT_F32, COT_SHAPE(SIDE, SIDE)}, 1);
    assert_true(call_gives(p, start, out[0]));
    assert_int_equal(nameless_files(&bytes), 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool ok = call_gives(p, start, out[1]) && nameless_files(&bytes) == 1;
        _exit(ok && !memcmp(out[0], out[1], sizeof out[0]) ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(call_gives(p, start, out[1]));
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    cot_program_destroy(p);
}

/* A call has a file, too; without one it keeps what it would have moved. */
static void calls_give_the_same(void **state) {
    (void)state;
    static const char *const folders[] = {"/tmp", "/not"};
    static float             start[SIZE], whole[SIZE], part[SIZE];
    step_function           *step = by_call;
    const cot_type           type = {COT_F32, COT_SHAPE(SIDE, SIDE)};
    fill(start, type, 1);
    for (int k = -1; k < 2; k++) {
        char             folder[8] = "";
        cot_jit_options  o = {.compile = {.memory_limit = k < 0 ? 0 : LIMIT, .spill = k < 0 ? NULL : folder}};
        snprintf(folder, sizeof folder, "%s", k < 0 ? "" : folders[k]);
        cot_jit  *j = cot_jit_create(there_and_back, &step, &o);
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_data(t, COT_F32, type.shape, start), y;
        memset(folder, 'x', sizeof folder - 1); /* the name was copied */
        cot_jit_call(j, 1, &x, 1, &y);
        int64_t bytes;
        assert_int_equal(nameless_files(&bytes), k == 0); /* of the run, which is kept */
        cot_jit_destroy(j);
        cot_read_as(y, COT_F32, k < 0 ? whole : part, SIZE);
        assert_ok(t);
        if (k >= 0) assert_memory_equal(part, whole, sizeof whole);
        cot_tape_destroy(t);
    }
}

/* Every allocation fails once: of compiling, and of making a run. */
static void without_memory_it_fails_in_order(void **state) {
    (void)state;
    limit_model m = short_stack(6);
    int64_t     smallest = smallest_with(&m, "/tmp");
    bool        done = false;
    for (long at = 1; !done; at += at < 60 ? 7 : at < 1000 && !test_small() ? 97 : 1011) {
        counting            c = {.fail_at = at, .fail_for_good = true};
        cot_compile_options o = {.allocator = {counting_alloc, &c}, .memory_limit = smallest, .spill = "/tmp"};
        cot_program        *p = limit_compile(&m, &o);
        done = c.failed == 0;
        if (p && cot_program_status(p) != COT_OK) {
            assert_int_equal(cot_program_status(p), COT_MEMORY);
            if (!strstr(cot_program_message(p), "out of memory")) fail_msg("%s", cot_program_message(p));
        }
        if (done) assert_int_equal(cot_program_status(p), COT_OK);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
        assert_false(c.wrong_size);
    }
    counting            c = {0};
    cot_compile_options o = {.allocator = {counting_alloc, &c}, .memory_limit = smallest, .spill = "/tmp"};
    cot_program        *p = limit_compile(&m, &o);
    size_t              before = c.live;
    for (long left = 0; done; left++) {
        let_succeed(&c, left);
        c.failed = 0;
        cot_run *r = cot_run_create(p);
        done = c.failed > 0;
        assert_int_equal(cot_run_status(r), done && cot_run_status(r) != COT_OK ? COT_MEMORY : COT_OK);
        cot_run_destroy(r);
        assert_int_equal(c.live, before);
    }
    cot_program_destroy(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deep_stack_reaches_smaller_limits),
        cmocka_unit_test(convolutions_reach_smaller_limits),
        cmocka_unit_test(a_transformer_reaches_smaller_limits),
        cmocka_unit_test(results_of_functions_of_the_users_are_spilled),
        cmocka_unit_test(results_of_loops_are_spilled),
        cmocka_unit_test(moves_between_rows_of_instructions_have_room),
        cmocka_unit_test(a_failing_disk_leads_to_recomputation),
        cmocka_unit_test(a_failing_disk_is_named),
        cmocka_unit_test(a_run_in_place_fails_with_its_disk_and_the_next_goes_on),
        cmocka_unit_test(a_function_of_the_users_runs_once_though_the_disk_fails),
        cmocka_unit_test(without_memory_for_a_run_without_the_disk_the_next_tries_again),
        cmocka_unit_test(a_function_of_the_users_runs_in_a_forked_child),
        cmocka_unit_test(a_forked_child_goes_without),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(a_full_disk_is_told_when_a_run_is_made),
        cmocka_unit_test(a_folder_that_is_none_is_told),
        cmocka_unit_test(the_report_tells_what_is_spilled),
        cmocka_unit_test(values_are_fetched_ahead),
        cmocka_unit_test(calls_give_the_same),
        cmocka_unit_test(a_call_whose_disk_fails_is_an_error_and_the_next_is_none),
        cmocka_unit_test(a_call_of_a_forked_child_has_a_file_of_its_own),
        cmocka_unit_test(without_memory_it_fails_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
