/* ctest: labels=threads timeout=180 */
/* test_training.c: a training run that is killed at any moment and resumed has the bits of one that
 * was not; a disk that is full, and files that are cut or altered, lose nothing older; parameters
 * that do not fit a file are told by name, and nothing is written. */
#include "support/data_test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { ROWS = 50, STEPS = 60, EVERY = 2, WIDTH = 7 };

static cot_var net(cot_params *p, cot_var x) {
    x = cot_tanh(cot_nn_dense(p, "fc1", x, WIDTH));
    return cot_nn_dense(p, "fc2", x, 1);
}

static cot_var wide_net(cot_params *p, cot_var x) {
    x = cot_tanh(cot_nn_dense(p, "fc1", x, WIDTH + 1));
    return cot_nn_dense(p, "last", x, 1);
}

/* A run: a model, its optimiser, its data, a sum of losses that is part of it. */
typedef struct run {
    cot_tape    *t;
    cot_params  *p;
    cot_optim   *o;
    cot_loader  *l;
    double       sum;
    double       x[ROWS * 3], y[ROWS];
    cot_array    arrays[2], extra;
    const char  *extra_name;
    cot_training state;
} run;

static void run_open_with(run *r, cot_net f) {
    *r   = (run){.t = cot_tape_create(NULL), .extra_name = "sum"};
    r->p = cot_params_create(r->t);
    cot_params_init(r->p, f, cot_data(r->t, COT_F64, COT_SHAPE(1, 3), NULL), cot_key_of(1));
    r->o = cot_optim_create(r->p, &(cot_optim_options){.kind = COT_ADAMW, .rate = 0.01, .decay = 0.01});
    for (int i = 0; i < ROWS * 3; i++) r->x[i] = (double)((i * 37) % 101) / 101;
    for (int i = 0; i < ROWS; i++) r->y[i] = r->x[3 * i] - r->x[3 * i + 1] * r->x[3 * i + 2];
    r->arrays[0] = (cot_array){COT_F64, COT_SHAPE(ROWS, 3), ROWS * 3, r->x};
    r->arrays[1] = (cot_array){COT_F64, COT_SHAPE(ROWS, 1), ROWS, r->y};
    r->l = cot_loader_create(2, r->arrays, &(cot_loader_options){.batch = 8, .shuffle = true, .key = cot_key_of(2)});
    r->extra = (cot_array){COT_F64, COT_SCALAR, 1, &r->sum};
    r->state = (cot_training){.params      = r->p,
                              .optim       = r->o,
                              .loader      = r->l,
                              .extras      = 1,
                              .extra_names = &r->extra_name,
                              .extra       = &r->extra,
                              .key         = cot_key_of(3)};
}

static void run_open(run *r) { run_open_with(r, net); }

static void run_close(run *r) {
    cot_loader_destroy(r->l);
    cot_optim_destroy(r->o);
    cot_params_destroy(r->p);
    cot_tape_destroy(r->t);
}

/* One step; the key of the run decides on the noise of the inputs. */
static bool run_step(run *r) {
    const cot_array *batch = cot_loader_next(r->l);
    if (!batch) return false;
    cot_mark  start = cot_tape_mark(r->t);
    cot_shape shape = batch[0].shape;
    cot_key   key   = cot_key_fold(r->state.key, (uint64_t)r->state.step);
    cot_var   x     = cot_data(r->t, COT_F64, shape, batch[0].data);
    cot_var   noise = cot_mul(0.01, cot_normal(r->t, key, COT_F64, shape));
    cot_var   y     = cot_data(r->t, COT_F64, batch[1].shape, batch[1].data);
    cot_var   error = cot_sub(net(r->p, cot_add(x, noise)), y);
    cot_var   loss  = cot_mean(cot_square(error), COT_ALL);
    cot_backward(loss);
    r->sum += cot_value(loss);
    cot_optim_step(r->o);
    cot_tape_zero_grads(r->t);
    cot_tape_rewind(r->t, start);
    r->state.step++;
    r->state.key = cot_key_fold(r->state.key, 7);
    return cot_tape_status(r->t) == COT_OK;
}

/* All numbers of a run, for comparing bits. */
static size_t run_bits(run *r, double *out) {
    size_t n = 0;
    out[n++] = r->sum;
    out[n++] = (double)r->state.step;
    out[n++] = (double)r->state.key.word[0];
    out[n++] = (double)cot_optim_steps(r->o);
    out[n++] = (double)cot_loader_position(r->l).row;
    for (int k = 0; k < cot_params_count(r->p); k++) {
        cot_var v = cot_params_at(r->p, k).var;
        assert_int_equal(cot_read(v, out + n, cot_size(v)), COT_OK);
        n += (size_t)cot_size(v);
    }
    for (int k = 0; k < cot_optim_states(r->o); k++) {
        cot_array a = cot_optim_state(r->o, k, NULL);
        memcpy(out + n, a.data, (size_t)a.size * sizeof *out);
        n += (size_t)a.size;
    }
    return n;
}

static size_t uninterrupted(double *out, int steps) {
    run r;
    run_open(&r);
    for (int k = 0; k < steps; k++) assert_true(run_step(&r));
    size_t n = run_bits(&r, out);
    run_close(&r);
    return n;
}

/* ---- killed ---------------------------------------------------------------------------------- */

/* In a process of its own: resume, train to the end, write all numbers to `result`. */
static void child(const char *folder, const char *result) {
    run    r;
    double bits[500];
    run_open(&r);
    if (cot_training_resume(folder, &r.state, NULL, 0) != COT_OK) _exit(2);
    while (r.state.step < STEPS) {
        if (!run_step(&r)) _exit(3);
        if (r.state.step % EVERY == 0 && cot_training_save(folder, &r.state, NULL, 0) != COT_OK) _exit(4);
    }
    size_t n    = run_bits(&r, bits);
    FILE  *file = fopen(result, "wb");
    if (!file || fwrite(bits, sizeof *bits, n, file) != n || fclose(file) != 0) _exit(5);
    _exit(0);
}

static void pause_for(double seconds) {
    struct timespec t = {0, seconds > 0 ? (long)(seconds * 1e9) : 0};
    nanosleep(&t, NULL);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Kills the child after so long; true if it had ended by itself. */
static bool try_for(double seconds, const char *folder, const char *result) {
    pid_t pid = fork();
    int   status;
    assert_true(pid >= 0);
    if (pid == 0) child(folder, result);
    double stop  = now() + seconds;
    pid_t  ended = 0;
    while (!ended && now() < stop) {
        pause_for(stop - now() < 0.001 ? stop - now() : 0.001);
        ended = waitpid(pid, &status, WNOHANG);
    }
    if (!ended) {
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFEXITED(status);
}

static void same_result(const char *result, const double *expected, size_t n) {
    size_t         bytes;
    unsigned char *got = get_file(result, &bytes);
    assert_int_equal(bytes, n * sizeof *expected);
    assert_memory_equal(got, expected, bytes);
    free(got);
}

static void killed_at_random_moments_the_bits_are_the_same(void **state) {
    (void)state;
    double   expected[500];
    size_t   n = uninterrupted(expected, STEPS);
    char     folder[100], result[100];
    uint32_t random = 12345;
    int      kills = 0, runs = 0;
    snprintf(result, sizeof result, "%s", in_folder("result"));
    /* moments are spread over a whole run */
    double start = now();
    snprintf(folder, sizeof folder, "%s", in_folder("whole"));
    assert_true(try_for(20, folder, result));
    double whole = now() - start;
    same_result(result, expected, n);
    while (kills < 100) {
        snprintf(folder, sizeof folder, "%s%d", in_folder("run"), runs);
        random = random * 1664525 + 1013904223;
        if (try_for((double)(random >> 8) / (1 << 24) * (whole < 0.15 ? whole : 0.15), folder, result)) {
            same_result(result, expected, n);
            runs++; /* the next one begins anew */
        } else {
            kills++;
            assert_true(access(folder, F_OK) != 0 || count_files(folder) <= 4);
        }
    }
    assert_true(try_for(20, folder, result));
    same_result(result, expected, n);
    /* two are kept, and nothing unfinished */
    assert_int_equal(count_files(folder), 2);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const char *checkpoint(const char *folder, int step) {
    static char path[200];
    snprintf(path, sizeof path, "%.120s/step-%012d.safetensors", folder, step);
    return path;
}

/* Steps and saves at each of them. */
static void train(run *r, const char *folder, int steps) {
    for (int k = 0; k < steps; k++) {
        assert_true(run_step(r));
        assert_int_equal(cot_training_save(folder, &r->state, NULL, 0), COT_OK);
    }
}

static void what_is_torn_falls_back_to_the_one_before(void **state) {
    (void)state;
    char           folder[100], why[1500];
    double         four[500], bits[500];
    size_t         bytes, n = uninterrupted(four, 4);
    run            r;
    unsigned char *whole;
    snprintf(folder, sizeof folder, "%s", in_folder("torn"));
    run_open(&r);
    train(&r, folder, 5);
    run_close(&r);
    assert_int_equal(count_files(folder), 2);
    whole = get_file(checkpoint(folder, 5), &bytes);
    /* every byte counts: cut anywhere, or any one altered */
    for (size_t at = 0; at < 2 * bytes; at += at < 100 || at + 40 > 2 * bytes ? 1 : 131) {
        if (at < bytes)
            put_file(checkpoint(folder, 5), whole, at);
        else {
            whole[at - bytes] ^= 16;
            put_file(checkpoint(folder, 5), whole, bytes);
            whole[at - bytes] ^= 16;
        }
        run_open(&r);
        assert_int_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_OK);
        assert_true(r.state.resumed);
        assert_int_equal(r.state.step, 4);
        assert_non_null(strstr(why, "[training_resume] "));
        assert_non_null(strstr(why, checkpoint(folder, 5)));
        assert_non_null(strstr(why, "; training goes on from "));
        assert_int_equal(run_bits(&r, bits), n);
        assert_memory_equal(bits, four, n * sizeof *bits);
        run_close(&r);
    }
    /* none is whole */
    put_file(checkpoint(folder, 4), whole, 10);
    put_file(checkpoint(folder, 5), whole, bytes - 1);
    run_open(&r);
    run_bits(&r, four);
    assert_int_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_VALUE);
    assert_non_null(strstr(why, "none of the 2 checkpoints in "));
    assert_false(r.state.resumed);
    run_bits(&r, bits);
    assert_memory_equal(bits, four, n * sizeof *bits);
    free(whole);
    run_close(&r);
}

static void a_full_disk_loses_nothing(void **state) {
    (void)state;
    char          folder[100], why[1500];
    double        bits[500], three[500];
    size_t        n = uninterrupted(three, 3);
    struct rlimit before;
    run           r;
    snprintf(folder, sizeof folder, "%s", in_folder("full"));
    run_open(&r);
    train(&r, folder, 3);
    assert_true(run_step(&r));
    getrlimit(RLIMIT_FSIZE, &before);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, before.rlim_max});
    cot_status status = cot_training_save(folder, &r.state, why, sizeof why);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, COT_VALUE);
    assert_non_null(strstr(why, "[training_save] cannot write "));
    assert_int_equal(count_files(folder), 2);
    run_close(&r);
    run_open(&r);
    assert_int_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_OK);
    assert_string_equal(why, "");
    run_bits(&r, bits);
    assert_memory_equal(bits, three, n * sizeof *bits);
    /* and so does a folder that cannot be written */
    snprintf(folder, sizeof folder, "%s", in_folder("a file"));
    put_file(folder, "x", 1);
    assert_int_equal(cot_training_save(folder, &r.state, why, sizeof why), COT_VALUE);
    assert_int_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_VALUE);
    run_close(&r);
}

static void a_checkpoint_of_another_model_is_refused(void **state) {
    (void)state;
    char   folder[100], why[1500];
    double before[500], after[500];
    run    r;
    snprintf(folder, sizeof folder, "%s", in_folder("other"));
    run_open(&r);
    train(&r, folder, 1);
    run_close(&r);
    run_open_with(&r, wide_net);
    size_t n = run_bits(&r, before);
    assert_int_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_SHAPE);
    assert_non_null(strstr(why, "missing in it: model.last.weight, model.last.bias, optim.last.weight.m"));
    assert_non_null(strstr(why, "unknown here: model.fc2.bias, model.fc2.weight"));
    assert_non_null(strstr(why, "model.fc1.weight (3,7) in the file, (3,8) here"));
    assert_int_equal(run_bits(&r, after), n);
    assert_memory_equal(before, after, n * sizeof *before);
    run_close(&r);
    /* fewer rows than were given */
    run_open(&r);
    train(&r, folder, 2);
    cot_loader_destroy(r.l);
    r.arrays[0].shape.dim[0] = 5, r.arrays[0].size = 15;
    r.arrays[1].shape.dim[0] = 5, r.arrays[1].size = 5;
    r.l = r.state.loader = cot_loader_create(2, r.arrays, &(cot_loader_options){.batch = 8});
    assert_int_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_VALUE);
    assert_non_null(strstr(why, "stands at row 16 of the data, which has 5 rows"));
    run_close(&r);
}

static void without_a_checkpoint_nothing_happens(void **state) {
    (void)state;
    char why[100];
    run  r;
    run_open(&r);
    assert_int_equal(cot_training_resume(in_folder("none"), &r.state, why, sizeof why), COT_OK);
    assert_string_equal(why, "");
    assert_false(r.state.resumed);
    assert_int_equal(cot_training_save(NULL, &r.state, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[training_save] the folder is NULL");
    assert_int_equal(cot_training_save("x", NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[training_save] the training is NULL");
    assert_int_equal(cot_training_resume("x", NULL, why, sizeof why), COT_VALUE);
    r.state.extra = NULL;
    assert_int_equal(cot_training_save("x", &r.state, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[training_save] the list of 1 more arrays is NULL or negative");
    r.state.extra = &r.extra;
    r.state.step  = -1;
    assert_int_equal(cot_training_save("x", &r.state, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[training_save] step -1 is negative");
    r.state.step = INT64_C(1000000000000000000);
    assert_int_equal(cot_training_save(in_folder("far"), &r.state, why, sizeof why), COT_VALUE);
    assert_string_equal(why,
                        "[training_save] step 1000000000000000000 has no name; the last one is 999999999999999999");
    run_close(&r);
    /* of nothing at all: a step and a key */
    cot_training bare = {.step = 3, .key = cot_key_of(9)}, back = {0};
    assert_int_equal(cot_training_save(in_folder("bare"), &bare, why, sizeof why), COT_OK);
    assert_int_equal(cot_training_resume(in_folder("bare"), &back, why, sizeof why), COT_OK);
    assert_true(back.resumed && back.step == 3 && back.key.word[1] == bare.key.word[1]);
}

/* An array of the caller's whose fields contradict each other is neither read nor written. */
static void more_arrays_are_what_they_say(void **state) {
    (void)state;
    char           why[500];
    const char    *folder = in_folder("more"), *name = "x", *none = NULL;
    double         one = 1, ten[10] = {1};
    const cot_array wrong[] = {{COT_F64, COT_SHAPE(100000), 1, &one},
                               {COT_F64, COT_SCALAR, 10, ten},
                               {(cot_dtype)99, COT_SCALAR, 1, &one},
                               {COT_F64, COT_SCALAR, 1, NULL}};
    const cot_status want[] = {COT_SHAPE, COT_SHAPE, COT_DTYPE, COT_VALUE};
    for (int k = 0; k < 4; k++) {
        cot_training t = {.extras = 1, .extra_names = &name, .extra = &wrong[k]};
        assert_int_equal(cot_training_save(folder, &t, why, sizeof why), want[k]);
        assert_non_null(strstr(why, "[training_save] the "));
        assert_int_equal(cot_training_resume(folder, &t, why, sizeof why), want[k]);
        assert_true(access(folder, F_OK) != 0);
    }
    cot_training t = {.extras = 1, .extra_names = &none, .extra = &(cot_array){COT_F64, COT_SCALAR, 1, &one}};
    assert_int_equal(cot_training_save(folder, &t, why, sizeof why), COT_VALUE);
}

static void a_dtype_that_is_not_read_writes_nothing(void **state) {
    (void)state;
    char    folder[100], why[1500];
    double  before[500], after[500];
    int64_t whole = 7;
    run     r;
    snprintf(folder, sizeof folder, "%s", in_folder("dtype"));
    run_open(&r);
    train(&r, folder, 1);
    run_close(&r);
    run_open(&r);
    r.extra  = (cot_array){COT_I64, COT_SCALAR, 1, &whole};
    size_t n = run_bits(&r, before);
    assert_int_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_DTYPE);
    assert_non_null(strstr(why, "; 1 of a dtype that is not read as that here: extra.sum"));
    assert_int_equal(run_bits(&r, after), n);
    assert_memory_equal(before, after, n * sizeof *before);
    assert_int_equal(whole, 7);
    run_close(&r);
}

/* The array stands behind the parameters: without a look before, those would be written. */
static void an_integer_that_does_not_fit_writes_nothing(void **state) {
    (void)state;
    char    folder[100], why[1500];
    double  before[500], after[500];
    int64_t large = INT64_C(1) << 40;
    int32_t small = 7;
    run     r;
    snprintf(folder, sizeof folder, "%s", in_folder("narrow"));
    run_open(&r);
    r.extra = (cot_array){COT_I64, COT_SCALAR, 1, &large};
    assert_true(run_step(&r));
    assert_int_equal(cot_training_save(folder, &r.state, why, sizeof why), COT_OK);
    run_close(&r);
    run_open(&r);
    r.extra  = (cot_array){COT_I32, COT_SCALAR, 1, &small};
    size_t n = run_bits(&r, before);
    assert_int_not_equal(cot_training_resume(folder, &r.state, why, sizeof why), COT_OK);
    assert_non_null(strstr(why, "1099511627776"));
    assert_int_equal(run_bits(&r, after), n);
    assert_memory_equal(before, after, n * sizeof *before);
    assert_int_equal(small, 7);
    run_close(&r);
}

static void save_step(const char *folder, int64_t step) {
    char why[500];
    assert_int_equal(cot_training_save(folder, &(cot_training){.step = step}, why, sizeof why), COT_OK);
}

static void cut(const char *path) {
    size_t         bytes;
    unsigned char *whole = get_file(path, &bytes);
    put_file(path, whole, bytes - 1);
    free(whole);
}

static void only_whole_ones_replace_old_ones(void **state) {
    (void)state;
    char folder[100], why[500];
    snprintf(folder, sizeof folder, "%s", in_folder("old"));
    save_step(folder, 100);
    save_step(folder, 200);
    cut(checkpoint(folder, 200));
    save_step(folder, 300);
    assert_int_equal(access(checkpoint(folder, 100), F_OK), 0);
    /* one before another would be lost, for a run goes on from the last */
    cot_training early = {.step = 50};
    assert_int_equal(cot_training_save(folder, &early, why, sizeof why), COT_VALUE);
    assert_non_null(strstr(why, "[training_save] step 50 comes before "));
    assert_non_null(strstr(why, checkpoint(folder, 300)));
    assert_true(access(checkpoint(folder, 50), F_OK) != 0);
    /* but not where the last is torn */
    cut(checkpoint(folder, 300));
    save_step(folder, 250);
    assert_int_equal(cot_training_resume(folder, &early, why, sizeof why), COT_OK);
    assert_int_equal(early.step, 250);
    save_step(folder, 400);
    assert_int_equal(count_files(folder), 3); /* 400, what is left of 300, 250 */
    assert_int_equal(access(checkpoint(folder, 250), F_OK), 0);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    char   folder[100], why[300];
    run    r;
    double before[500], after[500];
    snprintf(folder, sizeof folder, "%s", in_folder("memory"));
    run_open(&r);
    train(&r, folder, 1);
    size_t n = run_bits(&r, before);
    for (int saves = 0; saves < 2; saves++) {
        bool fine = false;
        for (int64_t at = 1; !fine && at < 300; at++) {
            counted c         = {.fail_at = at};
            r.state.allocator = (cot_allocator){counted_alloc, &c};
            cot_status status = saves ? cot_training_save(folder, &r.state, why, sizeof why)
                                      : cot_training_resume(folder, &r.state, why, sizeof why);
            assert_int_equal(c.used, 0);
            /* what is removed may stay without memory */
            fine = status == COT_OK && c.calls < at;
            if (status) assert_int_equal(status, COT_MEMORY);
            run_bits(&r, after);
            assert_memory_equal(before, after, n * sizeof *before);
        }
        assert_true(fine);
    }
    run_close(&r);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static const char *renamed(const char *name, char *to, size_t size, void *user) {
    (void)user;
    if (strncmp(name, "fc1.", 4) != 0) return strcmp(name, "fc2.bias") == 0 ? NULL : name;
    snprintf(to, size, "first.%s", name + 4);
    return to;
}

static void parameters_by_name(void **state) {
    (void)state;
    run           r;
    char          why[1500], expected[600], path[100];
    double        before[500], after[500];
    cot_text_pair text = {"model", "tiny"};
    snprintf(path, sizeof path, "%s", in_folder("p.safetensors"));
    run_open(&r);
    size_t n = run_bits(&r, before);
    assert_int_equal(cot_params_save(r.p, path, &(cot_save_options){.pairs = 1, .texts = &text}, why, sizeof why),
                     COT_OK);
    assert_string_equal(why, "");
    cot_file *f = cot_file_open(path, NULL);
    assert_string_equal(cot_file_text(f, "model"), "tiny");
    cot_file_close(f);
    for (int k = 0; k < 3; k++) run_step(&r);
    assert_int_equal(cot_params_load(r.p, path, NULL, why, sizeof why), COT_OK);
    assert_string_equal(why, "");
    run_bits(&r, after);
    assert_memory_equal(before + 5, after + 5, 36 * sizeof *before); /* the parameters alone */
    assert_int_equal(cot_params_save(r.p, in_folder("p.npz"), NULL, why, sizeof why), COT_OK);
    assert_int_equal(cot_params_load(r.p, in_folder("p.npz"), NULL, why, sizeof why), COT_OK);

    /* another layout: a prefix, other names, a buffer, something missing */
    static float w1[21], b1[WIDTH], w2[WIDTH];
    const char  *names[]  = {"net.first.weight", "net.first.bias", "net.fc2.weight", "net.first.mask"};
    cot_array    arrays[] = {{COT_F32, COT_SHAPE(3, 7), 21, w1},
                             {COT_F32, COT_SHAPE(7), 7, b1},
                             {COT_F32, COT_SHAPE(7, 1), 7, w2},
                             {COT_F32, COT_SHAPE(7), 7, b1}};
    const char  *ignore   = "net.*.mask";
    for (int i = 0; i < 21; i++) w1[i] = (float)i / 10;
    assert_int_equal(cot_file_save(path, 4, names, arrays, NULL, NULL, 0), COT_OK);
    cot_load_options o = {.prefix = "net.", .rename = renamed, .ignores = 1, .ignore = &ignore};
    run_bits(&r, before);
    assert_int_equal(cot_params_load(r.p, path, &o, why, sizeof why), COT_OK);
    assert_string_equal(why, "");
    run_bits(&r, after);
    /* f32 becomes f64 exactly; fc2.bias stays */
    assert_true(after[5 + 1] == (double)w1[1]);
    assert_memory_equal(before + 5 + 35, after + 5 + 35, sizeof *before);

    /* what does not fit is listed, and nothing is written */
    assert_int_equal(cot_params_load(r.p, path, NULL, why, sizeof why), COT_VALUE);
    snprintf(expected, sizeof expected,
             "[params_load] %s does not fit the 4 parameters; 4 missing in it: fc1.weight, fc1.bias, fc2.weight, "
             "fc2.bias; 4 unknown here: net.fc2.weight, net.first.bias, net.first.mask, net.first.weight",
             path);
    assert_string_equal(why, expected);
    o.ignores = 0;
    o.partial = true;
    assert_int_equal(cot_params_load(r.p, path, &o, why, sizeof why), COT_OK);
    snprintf(expected, sizeof expected,
             "[params_load] %s does not fit the 4 parameters; 1 unknown here: net.first.mask", path);
    assert_string_equal(why, expected);
    arrays[0].shape = COT_SHAPE(7, 3);
    assert_int_equal(cot_file_save(path, 4, names, arrays, NULL, NULL, 0), COT_OK);
    run_bits(&r, before);
    assert_int_equal(cot_params_load(r.p, path, &o, why, sizeof why), COT_SHAPE);
    assert_non_null(strstr(why, "1 of another shape: fc1.weight (7,3) in the file, (3,7) here"));
    run_bits(&r, after);
    assert_memory_equal(before, after, n * sizeof *before);

    assert_int_equal(cot_params_save(NULL, path, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[params_save] the parameters are NULL");
    assert_int_equal(cot_params_load(r.p, NULL, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[params_load] the path is NULL");
    assert_int_equal(cot_params_save(r.p, "x.npy", NULL, why, sizeof why), COT_VALUE);
    assert_int_equal(cot_params_load(r.p, "/none", NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[params_load] cannot read /none: No such file or directory");
    run_close(&r);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, data_setup, data_teardown)
    const struct CMUnitTest tests[] = {
        TEST(killed_at_random_moments_the_bits_are_the_same),
        TEST(what_is_torn_falls_back_to_the_one_before),
        TEST(a_full_disk_loses_nothing),
        TEST(a_checkpoint_of_another_model_is_refused),
        TEST(without_a_checkpoint_nothing_happens),
        TEST(more_arrays_are_what_they_say),
        TEST(a_dtype_that_is_not_read_writes_nothing),
        TEST(an_integer_that_does_not_fit_writes_nothing),
        TEST(only_whole_ones_replace_old_ones),
        TEST(any_allocation_may_fail),
        TEST(parameters_by_name),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
