/* ctest: labels=threads */
/* A tape of scalars under a limit that its nodes and adjoints do not fit: with a spill folder they
 * lie in files there, and everything that is computed has the same bits. */
#include "memory/memory.h"
#include "support/nameless.h"
#include "support/resident.h"
#include "support/tape_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = SANITIZER ? 200000 : 1000000, LIMIT = LENGTH * 2, SHORT = 60000, SHORT_LIMIT = 200000 };

/* ---- what the process has -------------------------------------------------------------------- */

/* The limit holds for the process, too: what a read brings beside the page that it asks for, some
 * pages of the libraries and of the tests are the rest. */
static void assert_resident(size_t before, size_t limit) {
    size_t most = resident("VmHWM");
    if (!SANITIZER && most > before + limit + (2 << 20))
        fail_msg("%zu bytes more than before, limit %zu", most - before, limit);
}

/* ---- chains ---------------------------------------------------------------------------------- */

typedef struct numbers {
    double value, far, grad[3];
} numbers;

/* Most operands are near, some far away, and some values are not used. The xs are so small that
 * adjoints neither vanish nor grow. */
static cot_var chain(const cot_var *x, int n, cot_var *far) {
    cot_var h = cot_mul(x[0], x[1]), past = h;
    for (int k = 3; k < n; k += 5) {
        cot_var a = cot_mul(h, k % 2 ? 1.25 : 0.8), b = k % 1000 < 5 ? cot_mul(a, past) : cot_sin(a);
        cot_square(b);
        h = cot_add(cot_mul(b, x[k % 3]), a);
        if (k % 100003 < 5) past = h;
        if (k < n / 2) *far = b;
    }
    return h;
}

static void start(cot_tape *t, cot_var *x) {
    for (int k = 0; k < 3; k++) x[k] = cot_scalar(t, 1e-6 * (1 + k));
}

static void run(cot_tape *t, int n, numbers *out) {
    cot_var x[3], far = {0};
    start(t, x);
    cot_var y = chain(x, n, &far);
    cot_backward(y);
    *out = (numbers){cot_value(y), cot_value(far), {cot_grad_value(x[0]), cot_grad_value(x[1]), cot_grad_value(x[2])}};
}

static void run_without_limit(int n, numbers *out) {
    cot_tape *t = cot_tape_create(NULL);
    run(t, n, out);
    assert_ok(t);
    cot_tape_destroy(t);
}

static cot_tape *limited(int64_t limit) {
    return cot_tape_create(&(cot_options){.memory_limit = limit, .spill = "/tmp"});
}

static void a_chain_has_the_same_gradient(void **state) {
    (void)state;
    numbers    whole, part;
    cot_memory m;
    int64_t    bytes;
    size_t     before = forget_the_most();
    cot_tape  *t = limited(LIMIT);
    run(t, LENGTH, &part);
    assert_ok(t);
    assert_string_equal(cot_tape_note(t), "");
    assert_true(cot_tape_length(t) >= LENGTH);
    assert_true(cot_tape_peak_bytes(t) <= LIMIT);
    assert_int_equal(cot_tape_memory(t, &m, NULL), COT_OK);
    assert_resident(before, LIMIT); /* a report, too, goes by windows */
    assert_true(m.spilled >= LENGTH * 40 && m.spilled < LENGTH * 40 * 5 / 4);
    assert_true(nameless_files(&bytes) >= 3 && bytes >= m.spilled);
    cot_tape_destroy(t);
    assert_int_equal(nameless_files(&bytes), 0);
    run_without_limit(LENGTH, &whole);
    assert_memory_equal(&part, &whole, sizeof whole);
}

static void without_a_folder_the_limit_is_an_error(void **state) {
    (void)state;
    numbers   part;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT});
    run(t, LENGTH, &part);
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    assert_non_null(strstr(cot_tape_message(t), " are in use that cannot be dropped now; operations and adjoints may "
                                                "lie in files of a folder, cot_options.spill"));
    cot_tape_destroy(t);
}

/* What is recorded over what was forgotten lies in the same file, and leaves the memory too. */
static void a_rewound_tape_records_again(void **state) {
    (void)state;
    numbers   whole, part;
    cot_tape *t = limited(LIMIT);
    cot_mark  mark = cot_tape_mark(t);
    int64_t   bytes = 0, after;
    size_t    before = 0;
    run_without_limit(LENGTH, &whole);
    for (int k = 0; k < 3; k++) {
        run(t, LENGTH, &part);
        assert_ok(t);
        assert_memory_equal(&part, &whole, sizeof whole);
        nameless_files(&after);
        assert_true(k == 0 || after == bytes);
        if (k) assert_resident(before, LIMIT);
        bytes = after;
        cot_tape_rewind(t, mark);
        before = forget_the_most();
    }
    assert_true(cot_tape_peak_bytes(t) <= LIMIT);
    cot_tape_destroy(t);
}

/* A part of the tape that the sweep passes over without a look at its nodes: its adjoints are
 * zero. */
static void dead_parts_are_passed(void **state) {
    (void)state;
    double grad[2];
    size_t before = forget_the_most();
    for (int whole = 0; whole < 2; whole++) {
        cot_tape *t = limited(whole ? 0 : LIMIT);
        cot_var   x[3], far, h;
        start(t, x);
        h = chain(x, LENGTH / 4, &far);
        for (int k = 0; k < 4; k++) chain(x, LENGTH / 4, &far);
        cot_var y = chain((cot_var[]){h, x[1], x[2]}, LENGTH / 4, &far);
        cot_backward(y);
        grad[whole] = cot_grad_value(x[0]);
        assert_ok(t);
        if (!whole) assert_resident(before, LIMIT);
        cot_tape_destroy(t);
    }
    assert_memory_equal(&grad[0], &grad[1], sizeof grad[0]);
}

/* ---- other derivatives ----------------------------------------------------------------------- */

typedef struct more { double hvp[3], jvp, recorded[3], second[3], hessian[9], jacobian[3], series[4]; } more;

static void run_more(cot_tape *t, more *out) {
    cot_var x[3], g[3], far;
    start(t, x);
    cot_var y = chain(x, SHORT, &far);
    cot_hvp(y, 3, x, (double[]){1, -2, 3}, out->hvp);
    cot_hessian(y, 3, x, out->hessian);
    cot_jacobian(1, &y, 3, x, COT_REVERSE, out->jacobian);
    cot_taylor_values(y, 3, x, 1, (double[]){1, 2, 3}, 3, out->series);
    out->jvp = cot_value(cot_jvp(y, 3, x, (cot_var[]){cot_number(1), cot_number(2), cot_number(-1)}));
    cot_grad_of(y, 3, x, g);
    for (int k = 0; k < 3; k++) out->recorded[k] = cot_value(g[k]);
    cot_backward(cot_square(g[1]));
    for (int k = 0; k < 3; k++) out->second[k] = cot_grad_value(x[k]);
}

static void every_derivative_has_the_same_bits(void **state) {
    (void)state;
    static more whole, part;
    cot_tape   *t = cot_tape_create(NULL);
    run_more(t, &whole);
    assert_ok(t);
    cot_tape_destroy(t);
    size_t before = forget_the_most();
    t = limited(SHORT_LIMIT);
    run_more(t, &part);
    assert_ok(t);
    assert_memory_equal(&part, &whole, sizeof whole);
    assert_true(cot_tape_peak_bytes(t) <= SHORT_LIMIT);
    assert_resident(before, SHORT_LIMIT);
    cot_tape_zero_grads(t);
    assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
    cot_tape_destroy(t);
}

/* Leaves after leaves, of which the sweep keeps a list. */
static void many_leaves_have_gradients(void **state) {
    (void)state;
    enum { LEAVES = 200000, LITTLE = 1 << 20 };
    double   *grad[2] = {calloc(LEAVES, sizeof(double)), calloc(LEAVES, sizeof(double))};
    cot_var  *x = calloc(LEAVES, sizeof *x);
    size_t    before = forget_the_most();
    for (int whole = 0; whole < 2; whole++) {
        cot_tape *t = limited(whole ? 0 : LITTLE);
        for (int k = 0; k < LEAVES; k++) x[k] = cot_scalar(t, 0.001 * k);
        cot_var y = x[0];
        for (int k = 1; k < LEAVES; k++) y = cot_add(cot_mul(y, 0.5), cot_square(x[k]));
        if (!whole) before = forget_the_most();
        cot_backward(y);
        if (!whole) assert_resident(before, LITTLE);
        for (int k = 0; k < LEAVES; k++) grad[whole][k] = cot_grad_value(x[k]);
        assert_ok(t);
        assert_true(whole || cot_tape_peak_bytes(t) <= LITTLE);
        cot_tape_destroy(t);
    }
    assert_memory_equal(grad[0], grad[1], LEAVES * sizeof(double));
    free(x), free(grad[0]), free(grad[1]);
}

/* Two rows at once, and an input that is the last node of the first window of the sweep. */
static void an_input_at_the_end_of_a_window(void **state) {
    (void)state;
    double    rows[4];
    cot_tape *t = limited(LIMIT);
    cot_var   x[2] = {cot_scalar(t, 1)}, y[2] = {x[0], x[0]};
    for (int k = 0; k < LENGTH; k++) y[1] = cot_add(y[1], 1);
    x[1] = cot_scalar(t, 2);
    for (int64_t k = 0; k < cot__window(t); k++) y[0] = y[1], y[1] = cot_add(y[1], x[1]);
    size_t before = forget_the_most();
    cot_jacobian(2, y, 2, x, COT_REVERSE, rows);
    assert_ok(t);
    assert_resident(before, LIMIT);
    double uses = (double)cot__window(t);
    assert_memory_equal(rows, ((double[]){1, uses - 1, 1, uses}), sizeof rows);
    cot_tape_destroy(t);
}

/* ---- with tensors, bodies and loops ---------------------------------------------------------- */

static int step(int n, const cot_var *in, int m, cot_var *out, void *user) {
    (void)n, (void)m, (void)user;
    out[0] = cot_add(cot_mul(in[0], 0.5), cot_sin(in[0]));
    return 0;
}

static void run_mixed(cot_tape *t, double *out) {
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(64), NULL), s = cot_scalar(t, 0.75), h = s, v = x;
    for (int k = 0; k < 6000; k++) {
        h = cot_add(cot_mul(cot_cos(h), s), 0.01);
        if (k % 100 == 0) v = cot_add(cot_tanh(cot_mul(v, h)), 0.125);
        if (k % 500 == 0) h = cot_mul(cot_mean(v, COT_ALL), h);
        if (k % 2000 == 0) cot_checkpoint(step, NULL, 1, &h, 1, &h);
        if (k % 2000 == 1) cot_scan(step, NULL, 50, 1, &h, 0, NULL, &h, 0, NULL, NULL);
    }
    cot_backward(cot_add(h, cot_sum(v, COT_ALL)));
    out[0] = cot_value(h), out[1] = cot_grad_value(s);
    cot_read_grad(x, out + 2, 64);
}

static void tensors_and_loops_among_scalars(void **state) {
    (void)state;
    double    whole[66], part[66];
    cot_tape *t = cot_tape_create(NULL);
    run_mixed(t, whole);
    assert_ok(t);
    cot_tape_destroy(t);
    t = limited(300000);
    run_mixed(t, part);
    assert_ok(t);
    assert_non_null(t->node_memory.mapped);
    assert_memory_equal(whole, part, sizeof whole);
    assert_true(cot_tape_peak_bytes(t) <= 300000);
    cot_tape_destroy(t);
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* "x₁" … "x₃", then "v₁", "v₂", … */
static void name_of_line(int line, char *name) {
    char digits[12];
    int  n = snprintf(digits, sizeof digits, "%d", line < 3 ? line + 1 : line - 2);
    *name++ = line < 3 ? 'x' : 'v';
    for (int k = 0; k < n; k++, name += 3) memcpy(name, "₀", 3), name[2] = (char)(name[2] + digits[k] - '0');
    memcpy(name, " = ", 4);
}

/* Values are counted before some of the nodes, so that no line needs a walk from the beginning. */
static void a_long_tape_prints_the_same(void **state) {
    (void)state;
    FILE *out[2] = {tmpfile(), tmpfile()};
    for (int k = 0; k < 2; k++) {
        numbers   all;
        size_t    before = forget_the_most();
        cot_tape *t = k ? limited(SHORT_LIMIT) : cot_tape_create(NULL);
        assert_non_null(out[k]);
        run(t, SHORT, &all);
        cot_tape_print(t, out[k]);
        if (k) assert_resident(before, SHORT_LIMIT);
        assert_ok(t);
        cot_tape_destroy(t);
        rewind(out[k]);
    }
    char line[2][256], name[64];
    int  lines = 0;
    for (; fgets(line[0], sizeof line[0], out[0]); lines++) {
        assert_non_null(fgets(line[1], sizeof line[1], out[1]));
        assert_string_equal(line[0], line[1]);
        name_of_line(lines, name);
        assert_memory_equal(line[0], name, strlen(name));
    }
    assert_true(lines >= SHORT && !fgets(line[1], sizeof line[1], out[1]));
    fclose(out[0]), fclose(out[1]);
}

/* ---- limits that come and go ----------------------------------------------------------------- */

static void a_limit_that_is_set_late_moves_what_is_there(void **state) {
    (void)state;
    numbers   whole;
    double    grad[3];
    cot_var   x[3], far;
    cot_tape *t = limited(0);
    run_without_limit(SHORT, &whole);
    start(t, x);
    cot_var y = chain(x, SHORT, &far);
    assert_null(t->memory.mapped);
    assert_int_equal(cot_tape_set_memory_limit(t, SHORT_LIMIT), COT_OK);
    assert_non_null(t->node_memory.mapped);
    cot_backward(y);
    for (int k = 0; k < 3; k++) grad[k] = cot_grad_value(x[k]);
    assert_memory_equal(grad, whole.grad, sizeof grad);
    assert_int_equal(cot_tape_set_memory_limit(t, SHORT_LIMIT / 4), COT_OK); /* smaller windows */
    assert_true(cot_value(far) == whole.far && cot_value(cot_square(y)) == whole.value * whole.value);
    cot_backward(y);
    assert_true(cot_grad_value(x[0]) == 2 * whole.grad[0]);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void every_limit_gives_the_gradient_or_an_error(void **state) {
    (void)state;
    numbers whole, part;
    int     fine = 0;
    run_without_limit(SHORT / 10, &whole);
    for (int64_t limit = 1000; limit < 100000; limit += 1 + limit / 4) {
        cot_tape *t = limited(limit);
        run(t, SHORT / 10, &part);
        if (cot_tape_status(t) == COT_OK) {
            assert_memory_equal(&part, &whole, sizeof whole);
            assert_true(cot_tape_peak_bytes(t) <= limit);
            fine++;
        } else
            assert_int_equal(cot_tape_status(t), COT_MEMORY);
        cot_tape_destroy(t);
    }
    assert_true(fine >= 8);
}

/* ---- the disk -------------------------------------------------------------------------------- */

static void limit_files(rlim_t bytes) {
    struct rlimit most;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &most), 0);
    most.rlim_cur = bytes == RLIM_INFINITY ? most.rlim_max : bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &most), 0);
}

static void a_full_disk_is_told_and_the_tape_goes_on(void **state) {
    (void)state;
    char      text[512];
    cot_var   x[3], far, h, before;
    cot_tape *t = limited(SHORT_LIMIT);
    start(t, x);
    limit_files(SHORT * 16);
    for (before = h = x[0]; cot_tape_status(t) == COT_OK;) before = h, h = cot_add(h, x[1]);
    snprintf(text, sizeof text,
             "[add] out of memory: %zu bytes for the tape; the memory limit is %d bytes, and %zu are in use that "
             "cannot be dropped now; the disk of /tmp failed: File too large",
             ((size_t)t->count + 1) * 32, SHORT_LIMIT, cot__cache_used(&t->cache));
    assert_error(t, COT_MEMORY, text);
    assert_string_equal(cot_tape_note(t), "[spill] the disk of /tmp failed: File too large; lists of the tape stay in "
                                          "memory");
    double n = (double)(t->count - 3);
    cot_tape_clear_error(t);
    assert_int_equal(cot_tape_set_memory_limit(t, 0), COT_OK);
    cot_backward(chain((cot_var[]){before, x[1], x[2]}, SHORT, &far));
    cot_tape_zero_grads(t);
    cot_backward(before);
    limit_files(RLIM_INFINITY);
    assert_ok(t);
    assert_true(cot_grad_value(x[0]) == 1 && cot_grad_value(x[1]) == n);
    cot_tape_destroy(t);
}

static void lists_stay_in_memory_where_there_is_no_disk(void **state) {
    (void)state;
    numbers   whole, part;
    cot_tape *t = limited(SHORT * 80);
    run_without_limit(SHORT, &whole);
    limit_files(100);
    run(t, SHORT, &part);
    limit_files(RLIM_INFINITY);
    assert_ok(t);
    assert_null(t->memory.mapped);
    assert_memory_equal(&part, &whole, sizeof whole);
    assert_string_equal(cot_tape_note(t), "[spill] the disk of /tmp failed: File too large; lists of the tape stay in "
                                          "memory");
    cot_tape_destroy(t);
}

/* ---- processes and threads ------------------------------------------------------------------- */

/* A chain that a parent has recorded, whose children write to what they take for their own. */
typedef struct family {
    cot_tape *t;
    cot_mark  mark;
    cot_var   x[3], y, far;
    numbers   whole;
} family;

static void found(family *f) {
    run_without_limit(SHORT, &f->whole);
    f->t = limited(SHORT_LIMIT);
    start(f->t, f->x);
    f->mark = cot_tape_mark(f->t);
    f->y = chain(f->x, SHORT, &f->far);
    assert_ok(f->t);
    assert_non_null(f->t->node_memory.mapped);
    fflush(NULL);
}

/* A child that does not go on for ever. */
static pid_t born(void) {
    pid_t child = fork();
    if (child == 0) alarm(60);
    return child;
}

/* Forgets the chain and writes half of another one there. */
static cot_var write_over(family *f) {
    cot_tape_rewind(f->t, f->mark);
    cot_var h = f->x[0];
    for (int k = 0; k < SHORT / 2; k++) h = cot_add(h, 1);
    return h;
}

/* 0: all of it was well. Else the signal that has ended the child. */
static int ended(pid_t child) {
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    return WIFSIGNALED(how) ? WTERMSIG(how) : 0;
}

static void the_parent_has_its_own(family *f) {
    const cot_var *x = f->x;
    cot_backward(f->y);
    numbers part = {
        cot_value(f->y), cot_value(f->far), {cot_grad_value(x[0]), cot_grad_value(x[1]), cot_grad_value(x[2])}};
    assert_ok(f->t);
    assert_memory_equal(&part, &f->whole, sizeof part);
    assert_int_equal(cot_tape_check(f->t, NULL, 0), COT_OK);
    cot_tape_destroy(f->t);
}

static void a_forked_child_leaves_its_parent_alone(void **state) {
    (void)state;
    family f;
    found(&f);
    pid_t child = born();
    if (child == 0) {
        cot_backward(f.y);
        bool well = cot_grad_value(f.x[2]) == f.whole.grad[2] && cot_value(f.far) == f.whole.far;
        write_over(&f);
        well = well && cot_tape_status(f.t) == COT_OK;
        cot_tape_set_memory_limit(f.t, 0);
        for (int k = 0; k < SHORT; k++) cot_add(f.x[0], 1);
        well = well && cot_tape_status(f.t) == COT_OK;
        cot_tape_destroy(f.t);
        _exit(well ? 0 : 1);
    }
    assert_int_equal(ended(child), 0);
    the_parent_has_its_own(&f);
}

/* The chain and another one behind it, and the gradient of both. */
static void go_on(const cot_var *x, cot_var y, numbers *out) {
    cot_var far;
    y = chain((cot_var[]){y, x[1], x[2]}, SHORT, &far);
    cot_backward(y);
    *out = (numbers){cot_value(y), cot_value(far), {cot_grad_value(x[0]), cot_grad_value(x[1]), cot_grad_value(x[2])}};
}

static void go_on_without_limit(numbers *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x[3], far;
    start(t, x);
    go_on(x, chain(x, SHORT, &far), out);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Beyond the room of what it has inherited its lists lie in files of its own. */
static void a_forked_child_records_more(void **state) {
    (void)state;
    family    f;
    numbers   whole, part;
    const int bytes = SHORT_LIMIT / 4;
    go_on_without_limit(&whole);
    found(&f);
    cot_backward(f.y);
    cot_tape_zero_grads(f.t);
    char *list = cot__list_new(f.t, (size_t)bytes);
    assert_non_null(list);
    memset(list, 7, (size_t)bytes);
    pid_t child = born();
    if (child == 0) {
        bool well = f.t->node_memory.mapped->inherited && f.t->sweep.adjoints.mapped->inherited;
        go_on(f.x, f.y, &part);
        well = well && !memcmp(&part, &whole, sizeof part) && cot_tape_status(f.t) == COT_OK;
        well = well && !f.t->node_memory.mapped->inherited && !f.t->sweep.adjoints.mapped->inherited;
        list = cot__list_resize(f.t, list, (size_t)bytes, (size_t)bytes * 4);
        well = well && list && list[0] == 7 && list[bytes - 1] == 7 && list[bytes] == 0;
        for (cot__mapped *m = f.t->memory.mapped; m; m = m->next)
            well = well && !m->inherited && m->counted == f.t->memory.window;
        well = well && cot_tape_peak_bytes(f.t) <= SHORT_LIMIT && !*cot_tape_note(f.t);
        cot__list_end(f.t, list, (size_t)bytes * 4);
        cot_tape_destroy(f.t);
        _exit(well ? 0 : 1);
    }
    assert_int_equal(ended(child), 0);
    assert_true(list[0] == 7 && list[bytes - 1] == 7);
    cot__list_end(f.t, list, (size_t)bytes);
    the_parent_has_its_own(&f);
}

/* It has no file of its own, so the limit is in its way, and it says whose fault that is. */
static void a_forked_child_on_a_full_disk_says_so(void **state) {
    (void)state;
    family  f;
    numbers part;
    found(&f);
    pid_t child = born();
    if (child == 0) {
        limit_files(100);
        go_on(f.x, f.y, &part);
        _exit(cot_tape_status(f.t) == COT_MEMORY &&
                      strstr(cot_tape_message(f.t), "; the disk of /tmp failed: File too large") &&
                      !strncmp(cot_tape_note(f.t), "[spill] the disk of /tmp failed: File too large", 47)
                  ? 0
                  : 1);
    }
    assert_int_equal(ended(child), 0);
    the_parent_has_its_own(&f);
}

static void limit_memory(rlim_t bytes) {
    struct rlimit most;
    getrlimit(RLIMIT_DATA, &most);
    most.rlim_cur = bytes < most.rlim_max ? bytes : most.rlim_max;
    setrlimit(RLIMIT_DATA, &most);
}

/* It can read, and its first write is its end: better than in the tape of its parent. */
static void a_child_without_pages_leaves_its_parent_alone(void **state) {
    (void)state;
    family f;
    found(&f);
    limit_memory(4096); /* pages of one's own count, shared ones do not */
    pid_t child = born();
    limit_memory(RLIM_INFINITY);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (cot_value(f.far) != f.whole.far) _exit(1);
        write_over(&f);
        _exit(0); /* a system that does not count */
    }
    int by = ended(child);
    assert_true(by == 0 || by == SIGSEGV);
    the_parent_has_its_own(&f);
}

/* What a child has written is what its own child reads. */
static void a_child_of_a_child_has_what_that_wrote(void **state) {
    (void)state;
    family f;
    found(&f);
    pid_t child = born();
    if (child == 0) {
        cot_var h = write_over(&f);
        double is = cot_value(h);
        pid_t  second = fork();
        if (second == 0) _exit(cot_value(h) == is ? 0 : 1);
        int how;
        _exit(waitpid(second, &how, 0) == second && WIFEXITED(how) ? WEXITSTATUS(how) : 1);
    }
    assert_int_equal(ended(child), 0);
    the_parent_has_its_own(&f);
}

static void *run_in_thread(void *out) {
    cot_tape *t = limited(SHORT_LIMIT);
    run(t, SHORT, out);
    cot_tape_destroy(t);
    return NULL;
}

static void tapes_of_two_threads_share_a_folder(void **state) {
    (void)state;
    numbers   whole, part[2];
    pthread_t thread[2];
    run_without_limit(SHORT, &whole);
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(&thread[k], NULL, run_in_thread, &part[k]), 0);
    for (int k = 0; k < 2; k++) pthread_join(thread[k], NULL);
    for (int k = 0; k < 2; k++) assert_memory_equal(&part[k], &whole, sizeof whole);
}

/* ---- failing allocations --------------------------------------------------------------------- */

static int no_more_spilling(void **state) {
    (void)state;
    cot__spill_always = getenv("COT_TEST_SPILL");
    return 0;
}

/* The system has no block of so many bytes, whatever the limit is. */
static size_t most_of_the_system;
static void *in_small_blocks(void *user, void *p, size_t old_size, size_t new_size) {
    (void)user, (void)old_size;
    if (new_size > most_of_the_system) return NULL;
    if (new_size) return realloc(p, new_size);
    free(p);
    return NULL;
}

/* Records until there is no memory: the error does not name the limit. Files are short in any case,
 * as the environment may give every tape a folder. */
static void record_all(const cot_options *options) {
    char      text[128];
    cot_tape *t = cot_tape_create(options);
    cot_var   x = cot_scalar(t, 1);
    limit_files(SHORT * 20);
    t->cache.refused = true; /* by the limit, which was no error */
    while (cot_tape_status(t) == COT_OK) cot_add(x, 1);
    limit_files(RLIM_INFINITY);
    snprintf(text, sizeof text, "[add] out of memory: %zu bytes for the tape", ((size_t)t->count + 1) * 32);
    assert_error(t, COT_MEMORY, text);
    cot_tape_destroy(t);
}

static void a_limit_with_room_is_not_blamed(void **state) {
    (void)state;
    cot_options options = {.memory_limit = SHORT * 80, .allocator = {.alloc = in_small_blocks}};
    most_of_the_system = SHORT * 12; /* more than the limit leaves of a list in memory */
    record_all(&options);
    options.spill = "/tmp"; /* where the nodes lie until its disk is full */
    record_all(&options);
}

static void long_program(cot_tape *t, void *user) {
    (void)user;
    cot_var x[3], g[3], far;
    double  out[3];
    start(t, x);
    cot_var y = chain(x, 300, &far);
    cot_backward(y);
    cot_hvp(y, 3, x, (double[]){1, 2, 3}, out);
    cot_grad_of(y, 3, x, g);
    cot_backward(cot_square(g[0]));
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    cot__spill_always = "/tmp";
    const char *const said[] = {"[tape_create] out of memory: no store for /tmp"};
    assert_survives_no_memory(long_program, NULL, 1, said);
    int64_t bytes;
    assert_int_equal(nameless_files(&bytes), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_has_the_same_gradient),
        cmocka_unit_test(without_a_folder_the_limit_is_an_error),
        cmocka_unit_test(a_rewound_tape_records_again),
        cmocka_unit_test(dead_parts_are_passed),
        cmocka_unit_test(every_derivative_has_the_same_bits),
        cmocka_unit_test(many_leaves_have_gradients),
        cmocka_unit_test(an_input_at_the_end_of_a_window),
        cmocka_unit_test(tensors_and_loops_among_scalars),
        cmocka_unit_test(a_long_tape_prints_the_same),
        cmocka_unit_test(a_limit_that_is_set_late_moves_what_is_there),
        cmocka_unit_test(every_limit_gives_the_gradient_or_an_error),
        cmocka_unit_test(a_full_disk_is_told_and_the_tape_goes_on),
        cmocka_unit_test(lists_stay_in_memory_where_there_is_no_disk),
        cmocka_unit_test(a_forked_child_leaves_its_parent_alone),
        cmocka_unit_test(a_forked_child_records_more),
        cmocka_unit_test(a_forked_child_on_a_full_disk_says_so),
        cmocka_unit_test(a_child_without_pages_leaves_its_parent_alone),
        cmocka_unit_test(a_child_of_a_child_has_what_that_wrote),
        cmocka_unit_test(tapes_of_two_threads_share_a_folder),
        cmocka_unit_test(a_limit_with_room_is_not_blamed),
        cmocka_unit_test_teardown(any_allocation_may_fail, no_more_spilling),
    };
    return cmocka_run_group_tests_name("long_lists", tests, NULL, NULL);
}
