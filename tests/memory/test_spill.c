/* ctest: labels=threads */
/* Under a memory limit values go to a file of the spill folder, where that costs less than
 * computing them again or they cannot be, and come back with the same bits. A disk that fails costs
 * time. */
#include "memory/memory.h"
#include "memory/models.h"
#include "support/nameless.h"
#include "support/tape_test.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- nets ------------------------------------------------------------------------------------ */

typedef struct run {
    int64_t    peak, brought, replayed;
    cot_status status;
    char       message[512], note[512];
    double     numbers[MODEL_NUMBERS];
} run;

static void run_under(model *m, int64_t limit, const char *folder, run *r) {
    memset(r, 0, sizeof *r);
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limit, .spill = folder});
    model_run(m, t, r->numbers);
    r->peak = cot_tape_peak_bytes(t);
    r->brought = t->memory.brought;
    r->replayed = t->memory.replayed;
    r->status = cot_tape_status(t);
    snprintf(r->message, sizeof r->message, "%s", cot_tape_message(t));
    snprintf(r->note, sizeof r->note, "%s", cot_tape_note(t));
    cot_tape_destroy(t);
}

static void same_bits(model *m, const char *name) {
    static run       whole, less;
    static const int percents[] = {100, 50, 30, 20};
    int64_t          brought = 0;
    run_under(m, 0, NULL, &whole);
    for (int k = 0; k < 4; k++) {
        int64_t limit = whole.peak * percents[k] / 100;
        run_under(m, limit, "/tmp", &less);
        if (getenv("COT_TEST_TELL"))
            fprintf(stderr, "%s at %3d %%: limit %lld, peak %lld, %lld operations again, %lld values read: %s\n", name,
                    percents[k], (long long)limit, (long long)less.peak, (long long)less.replayed,
                    (long long)less.brought, less.message);
        if (less.status != COT_OK) fail_msg("%s at %d %%: %s", name, percents[k], less.message);
        assert_memory_equal(less.numbers, whole.numbers, sizeof whole.numbers);
        assert_true(less.peak <= limit);
        assert_string_equal(less.note, "");
        brought += less.brought;
    }
    assert_true(brought > 0);
}

static void a_deep_stack_has_the_same_gradients(void **state) {
    (void)state;
    same_bits(deep_stack, "deep stack");
}
static void a_convolutional_net_has_the_same_gradients(void **state) {
    (void)state;
    same_bits(convolutions, "16 convolutions");
}
static void a_transformer_has_the_same_gradients(void **state) {
    (void)state;
    same_bits(transformer, "12 blocks");
}

/* ---- what cannot be computed again ----------------------------------------------------------- */

enum { SIDE = 64, SIZE = SIDE * SIDE, BYTES = SIZE * 8, STEPS = 24, LIMIT = 12 * BYTES };

static int cube_value(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    const double *x = xs[0].data;
    double       *out = y->data;
    for (int64_t k = 0; k < y->size; k++) out[k] = x[k] * x[k] * x[k] + 0.25;
    return 0;
}
static int cube_vjp(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, cot_mul(3, cot_square(xs[0])));
    return 0;
}
static const cot_custom cube = {.name = "cube", .value = cube_value, .vjp = cube_vjp};

static cot_var by_call(cot_var x) { return cot_call(&cube, 1, &x, NULL); }

static int half_step(int n, const cot_var *in, int m, cot_var *out, void *user) {
    (void)n, (void)m, (void)user;
    out[0] = cot_mul(cot_sin(in[0]), 0.5);
    return 0;
}
static cot_var by_loop(cot_var x) {
    cot_var y;
    cot_scan(half_step, NULL, 2, 1, &x, 0, NULL, &y, 0, NULL, &(cot_loop_options){.states = 1, .spill = "/tmp"});
    return cot_add(y, 0.5);
}

static cot_var by_write(cot_var x) {
    cot_var y = cot_mul(x, 0.5);
    cot_add_into(&y, 0.25);
    return y;
}

static cot_var by_constant(cot_var x) {
    static double numbers[SIZE];
    for (int k = 0; k < SIZE; k++) numbers[k] = (double)(k * 31 % 977) / 977;
    return cot_mul(x, cot_data(x.tape, COT_F64, COT_SHAPE(SIDE, SIDE), numbers));
}

typedef cot_var step_function(cot_var x);

/* Values of all steps, the oldest first, and the gradient. */
static void run_steps(cot_tape *t, step_function *f, double *out) {
    static double start[SIZE];
    for (int k = 0; k < SIZE; k++) start[k] = (double)(k * 7919 % 1009) / 1009;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(SIDE, SIDE), start), v[STEPS];
    for (int k = 0; k < STEPS; k++) v[k] = f(k ? v[k - 1] : x);
    cot_backward(cot_sum(cot_square(v[STEPS - 1]), COT_ALL));
    for (int k = 0; k < STEPS; k++) cot_read(v[k], out + k * SIZE, SIZE);
    cot_read_grad(x, out + STEPS * SIZE, SIZE);
}

static void only_a_folder_makes_room(step_function *f, int64_t limit) {
    static double whole[(STEPS + 1) * SIZE], part[(STEPS + 1) * SIZE];
    cot_tape     *t = cot_tape_create(NULL);
    run_steps(t, f, whole);
    assert_ok(t);
    cot_tape_destroy(t);
    t = cot_tape_create(&(cot_options){.memory_limit = limit});
    run_steps(t, f, part);
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    cot_tape_destroy(t);
    t = cot_tape_create(&(cot_options){.memory_limit = limit, .spill = "/tmp"});
    run_steps(t, f, part);
    assert_ok(t);
    assert_memory_equal(part, whole, sizeof whole);
    assert_true(cot_tape_peak_bytes(t) <= limit);
    assert_true(t->memory.brought > 0);
    cot_memory m;
    assert_int_equal(cot_tape_memory(t, &m, NULL), COT_OK);
    assert_true(m.spilled >= BYTES && m.spilled % BYTES == 0);
    cot_tape_destroy(t);
}

static void results_of_functions_of_the_users_are_spilled(void **state) {
    (void)state;
    only_a_folder_makes_room(by_call, LIMIT);
}
/* States that the way back begins from take most of the limit: they go to the folder, though the
 * loop's own options do not name one. */
static void states_of_loops_go_to_the_folder(void **state) {
    (void)state;
    enum { N = 4096, TURNS = 90, MOST = 40 * N * 8 };
    static double start[N], grad[2][N];
    for (int k = 0; k < N; k++) start[k] = 0.001 * k - 2;
    for (int limited = 0; limited < 2; limited++) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limited * MOST, .spill = limited ? "/tmp" : NULL});
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(N), start), y = x;
        cot_scan(half_step, NULL, TURNS, 1, &x, 0, NULL, &y, 0, NULL, NULL);
        cot_backward(cot_sum(cot_tanh(y), COT_ALL));
        cot_read_grad(x, grad[limited], N);
        assert_ok(t);
        assert_true(limited ? cot_tape_peak_bytes(t) <= MOST : cot_tape_peak_bytes(t) > TURNS * N * 8);
        cot_tape_destroy(t);
    }
    assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
}

static void results_of_loops_are_spilled(void **state) {
    (void)state;
    only_a_folder_makes_room(by_loop, 20 * BYTES);
}
static void results_of_writes_are_spilled(void **state) {
    (void)state;
    only_a_folder_makes_room(by_write, LIMIT);
}
static void constants_are_spilled(void **state) {
    (void)state;
    only_a_folder_makes_room(by_constant, LIMIT);
}

/* ---- the disk -------------------------------------------------------------------------------- */

/* Products, which cost more to make than to move. */
static cot_var by_product(cot_var x) { return cot_tanh(cot_matmul(x, cot_mul(x, 0.05))); }

static double whole[(STEPS + 1) * SIZE], part[(STEPS + 1) * SIZE];

static int compute_whole(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    run_steps(t, by_product, whole);
    cot_tape_destroy(t);
    return 0;
}

static void a_full_disk_leads_to_recomputation(void **state) {
    (void)state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 2 * BYTES + 5;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = "/tmp"});
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    run_steps(t, by_product, part);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_ok(t);
    assert_memory_equal(part, whole, sizeof whole);
    assert_true(t->memory.brought > 0 && t->memory.replayed > 0);
    assert_string_equal(cot_tape_note(t), "[spill] the disk of /tmp failed: File too large; values are computed again "
                                          "where they can be");
    cot_tape_destroy(t);
}

static void a_disk_that_takes_nothing_leads_to_recomputation(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = "/tmp"});
    nameless_file_fails();
    run_steps(t, by_product, part);
    assert_ok(t);
    assert_memory_equal(part, whole, sizeof whole);
    assert_int_equal(t->memory.brought, 0);
    assert_true(strstr(cot_tape_note(t), "[spill] the disk of /tmp failed: ") != NULL);
    cot_tape_destroy(t);
}

/* The folder was not asked for by the loop: its states stay in memory, all or those that the disk
 * did not take. */
static void a_full_disk_leaves_states_in_memory(void **state) {
    (void)state;
    enum { N = 4096, TURNS = 90, MOST = 160 * N * 8 };
    static double start[N], grad[3][N];
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    for (int k = 0; k < N; k++) start[k] = 0.001 * k - 2;
    for (int full = 0; full < 3; full++) {
        small.rlim_cur = full == 1 ? 5 : 9 * N * 8 + 5;
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = MOST, .spill = "/tmp"});
        if (full) assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(N), start), y = x;
        cot_scan(half_step, NULL, TURNS, 1, &x, 0, NULL, &y, 0, NULL, NULL);
        cot_backward(cot_sum(cot_tanh(y), COT_ALL));
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        cot_read_grad(x, grad[full], N);
        assert_ok(t);
        assert_string_equal(cot_tape_note(t), full ? "[scan] the disk of /tmp failed: File too large; states of the "
                                                     "loop stay in memory" : "");
        cot_tape_destroy(t);
        assert_memory_equal(grad[0], grad[full], sizeof grad[0]);
    }
}

/* Where it cannot be computed again, the limit's sentence tells of the disk. */
static void without_a_disk_the_limit_says_so(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = "/tmp"});
    nameless_file_fails();
    run_steps(t, by_call, part);
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    assert_non_null(strstr(cot_tape_message(t), " are in use that cannot be dropped now; the disk of /tmp failed: "));
    cot_tape_destroy(t);
}

static cot_tape *damaged_tape(cot_var *y, step_function *f) {
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = "/tmp"});
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(SIDE, SIDE), NULL);
    *y = f(cot_add(x, 0.5));
    cot_var h = *y;
    for (int k = 0; k < STEPS; k++) h = by_product(h);
    assert_ok(t);
    assert_true(t->nodes[cot__index(*y)].value.tensor->storage->dropped);
    nameless_file_is_damaged();
    return t;
}

static void damage_is_seen_and_mended(void **state) {
    (void)state;
    cot_var   y;
    cot_tape *t = damaged_tape(&y, by_product);
    double    out[SIZE];
    cot_read(y, out, SIZE);
    assert_ok(t);
    assert_true(out[0] == tanh(64 * 0.5 * (0.5 * 0.05)) || fabs(out[0] - tanh(0.8)) < 1e-15);
    assert_string_equal(cot_tape_note(t), "[spill] the disk of /tmp failed: its checksum differs; values are computed "
                                          "again where they can be");
    cot_tape_destroy(t);
}

static void a_lost_value_is_an_error(void **state) {
    (void)state;
    cot_var   y;
    cot_tape *t = damaged_tape(&y, by_call);
    double    out[SIZE];
    cot_read(y, out, SIZE);
    assert_error(t, COT_MEMORY,
                 "[read] the value of cube (v₂) was spilled to a file in /tmp and could not be read back: its checksum "
                 "differs");
    cot_tape_clear_error(t);
    cot_read(y, out, SIZE); /* it stays lost */
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    cot_tape_destroy(t);
}

/* What was written in place has no operation that makes it. */
static void a_tape_goes_on_after_a_loss(void **state) {
    (void)state;
    cot_var   y, z;
    cot_tape *t = damaged_tape(&y, by_write);
    double    out[SIZE];
    cot_read(y, out, SIZE);
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    cot_tape_clear_error(t);
    cot_var h = cot_full(t, COT_F64, COT_SHAPE(SIDE, SIDE), 0.5);
    for (int k = 0; k < STEPS; k++) h = by_product(h);
    z = by_loop(h); /* in a file of its own */
    cot_read(z, out, SIZE);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void a_folder_that_is_none_is_an_error(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = "/nowhere/at/all"});
    assert_error(t, COT_VALUE,
                 "[tape_create] a file in /nowhere/at/all could not be made: No such file or directory");
    cot_tape_destroy(t);
    t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = ""});
    assert_error(t, COT_VALUE, "[tape_create] spill is \"\"; it must be the name of a folder, or NULL");
    cot_tape_destroy(t);
}

/* ---- wherever memory is short ---------------------------------------------------------------- */

/* A little more each time, so that one time or another every allocation is the one that has no
 * room, those of the store as well. */
static void every_limit_gives_the_values_or_an_error(void **state) {
    (void)state;
    double out[SIZE], want = 0.5;
    int    fine = 0;
    for (int64_t limit = 2 * BYTES; limit < 6 * BYTES; limit += 1024) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limit, .spill = "/tmp"});
        cot_var   v[10];
        for (int k = 0; k < 10; k++)
            v[k] = by_call(k ? v[k - 1] : cot_full(t, COT_F64, COT_SHAPE(SIDE, SIDE), 0.5));
        bool recorded = cot_tape_status(t) == COT_OK;
        want = 0.5;
        for (int k = 0; k < 10 && recorded; k++) {
            want = want * want * want + 0.25;
            cot_read(v[k], out, SIZE);
            assert_ok(t);
            assert_true(out[0] == want && out[SIZE - 1] == want);
        }
        fine += recorded;
        cot_tape_destroy(t);
    }
    assert_true(fine > 64);
}

/* Operations with several results are done again while one of these is on its way. */
static void factors_are_made_again_and_read_ahead(void **state) {
    enum { ROWS = 512, COLUMNS = 8, LAYERS = 10 };
    (void)state;
    static double start[ROWS * COLUMNS], g[2][ROWS * COLUMNS];
    for (int k = 0; k < ROWS * COLUMNS; k++) start[k] = (double)(k * 7919 % 1009) / 1009 + (k % (COLUMNS + 1) == 0);
    for (int64_t limit = 0; limit <= 14; limit = limit ? limit + 1 : 12) {
        counting  c = {0};
        cot_tape *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, &c}, .spill = "/tmp",
                                                     .memory_limit = limit * ROWS * COLUMNS * 8});
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(ROWS, COLUMNS), start), h = x, s = cot_sum(x, COT_ALL), q, r;
        for (int k = 0; k < LAYERS; k++) {
            cot_qr(h, &q, &r);
            s = cot_add(s, cot_sum(cot_tanh(r), COT_ALL));
            h = cot_add(cot_tanh(cot_matmul(q, r)), cot_mul(h, 0.01));
        }
        cot_backward(cot_add(s, cot_sum(cot_square(h), COT_ALL)));
        cot_read_grad(x, g[limit > 0], ROWS * COLUMNS);
        assert_ok(t);
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
        if (limit) assert_memory_equal(g[0], g[1], sizeof g[0]);
    }
}

/* The file is the parent's, and so is the thread. */
__attribute__((unused)) static void a_forked_child_goes_on(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = "/tmp"});
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(SIDE, SIDE), NULL), h = cot_add(x, 0.5);
    for (int k = 0; k < STEPS; k++) h = by_product(h);
    assert_ok(t);
    assert_true(t->memory.brought > 0 || t->memory.dropped > 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        for (int k = 0; k < 4; k++) h = by_product(h);
        cot_backward(cot_sum(h, COT_ALL));
        cot_status status = cot_tape_status(t);
        cot_tape_destroy(t);
        _exit(status == COT_OK ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    for (int k = 0; k < 4; k++) h = by_product(h);
    cot_backward(cot_sum(h, COT_ALL));
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- all that can be ------------------------------------------------------------------------- */

static int no_more_spilling(void **state) {
    (void)state;
    cot__spill_always = getenv("COT_TEST_SPILL");
    return 0;
}

/* Reading a value from a file reads no leaf: it is not stale. */
static void a_spilled_value_outlives_a_write_to_its_leaf(void **state) {
    (void)state;
    cot__spill_always = "/tmp";
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), y = cot_square(w);
    double    out[3];
    cot_exp(y);
    cot_assign(w, 5.0);
    cot_read(y, out, 3);
    assert_ok(t);
    assert_memory_equal(out, ((double[]){1, 4, 9}), sizeof out);
    cot_tape_destroy(t);
}

/* What lies in the file is an older version then, and is not read. */
static void a_spilled_value_may_be_written(void **state) {
    (void)state;
    cot__spill_always = "/tmp";
    cot_tape *t = cot_tape_create(NULL);
    cot_var   c = cot_data(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3}), y = cot_square(c), z = cot_add(y, 1.0);
    double    out[3];
    cot_exp(z);
    cot_add_into(&y, 100.0);
    cot_exp(z);
    cot_assign_data(c, (double[]){7, 8, 9});
    cot_exp(z);
    cot_read(y, out, 3);
    assert_memory_equal(out, ((double[]){101, 104, 109}), sizeof out);
    cot_read(z, out, 3);
    assert_memory_equal(out, ((double[]){2, 5, 10}), sizeof out);
    cot_read(c, out, 3);
    assert_memory_equal(out, ((double[]){7, 8, 9}), sizeof out);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* An adjoint may lie in a value that is on its way to the store, and is added to there. */
static void what_is_shared_is_not_read_by_the_store_any_more(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT, .spill = "/tmp"});
    cot_var       y = cot_square(cot_ones(t, COT_F64, COT_SHAPE(SIZE)));
    cot__storage *s = t->nodes[cot__index(y)].value.tensor->storage;
    cot_value(cot_sum(y, COT_ALL));
    assert_true(cot__write_behind(t, s));
    assert_int_not_equal(s->stored.errand, 0);
    assert_true(cot__storage_share(t, s));
    assert_int_equal(s->stored.errand, 0);
    cot__storage_release(t, s);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void spilling_program(cot_tape *t, void *user) {
    (void)user;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(4, 4), NULL), h = x;
    double  out[16];
    for (int i = 0; i < 4; i++) h = by_call(cot_matmul(cot_add(h, 0.5), cot_transpose(x)));
    cot_var w = cot_square(h);
    cot_add_into(&w, cot_max(h, COT_AXES(0)));
    cot_backward(cot_sum(cot_mul(w, h), COT_ALL));
    cot_read(h, out, 16);
    cot_read_grad(x, out, 16);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    cot__spill_always = "/tmp";
    const char *const said[] = {"[tape_create] out of memory: no store for /tmp"};
    assert_survives_no_memory(spilling_program, NULL, 1, said);
    int64_t bytes;
    assert_int_equal(nameless_files(&bytes), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deep_stack_has_the_same_gradients),
        cmocka_unit_test(a_convolutional_net_has_the_same_gradients),
        cmocka_unit_test(a_transformer_has_the_same_gradients),
        cmocka_unit_test(results_of_functions_of_the_users_are_spilled),
        cmocka_unit_test(states_of_loops_go_to_the_folder),
        cmocka_unit_test(results_of_loops_are_spilled),
        cmocka_unit_test(results_of_writes_are_spilled),
        cmocka_unit_test(constants_are_spilled),
        cmocka_unit_test_setup(a_full_disk_leads_to_recomputation, compute_whole),
        cmocka_unit_test_setup(a_disk_that_takes_nothing_leads_to_recomputation, compute_whole),
        cmocka_unit_test(a_full_disk_leaves_states_in_memory),
        cmocka_unit_test(without_a_disk_the_limit_says_so),
        cmocka_unit_test(damage_is_seen_and_mended),
        cmocka_unit_test(a_lost_value_is_an_error),
        cmocka_unit_test(a_tape_goes_on_after_a_loss),
        cmocka_unit_test(a_folder_that_is_none_is_an_error),
        cmocka_unit_test(every_limit_gives_the_values_or_an_error),
        cmocka_unit_test(factors_are_made_again_and_read_ahead),
#if !defined(__SANITIZE_THREAD__) /* it ends a child that starts a thread */
        cmocka_unit_test(a_forked_child_goes_on),
#endif
        cmocka_unit_test_teardown(a_spilled_value_outlives_a_write_to_its_leaf, no_more_spilling),
        cmocka_unit_test_teardown(a_spilled_value_may_be_written, no_more_spilling),
        cmocka_unit_test(what_is_shared_is_not_read_by_the_store_any_more),
        cmocka_unit_test_teardown(any_allocation_may_fail, no_more_spilling),
    };
    return cmocka_run_group_tests_name("spill", tests, NULL, NULL);
}
