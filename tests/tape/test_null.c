/* ctest: timeout=240 */
/* test_null.c: every function of the public headers, with every argument that can be bad (NULL, no
 * var, a forgotten var, a negative count), one at a time, on a tape without an error and on one
 * with an error. An argument that may be left out, as the header says, has a meaning then. Anything
 * else is an error in a whole sentence, which begins with the name of the function. Nothing
 * crashes, nothing leaks, and the tape can be cleared and used afterwards.
 *
 * tools/gen_null_calls.c makes the calls from the headers, with the arguments of
 * null_arguments.def. So a function that is added to a header is tried here too, or the build says
 * what it lacks. */
#define COT_PLAIN
#include "support/tape_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

/* ---- arguments ------------------------------------------------------------------------------- */

enum { LIST = 16 };

typedef struct fixture {
    counting          memory;
    cot_tape         *t;
    cot_var x, y, vector, matrix, positions, coordinates, mask, pairs, channels, image[3], kernel[3], target, wrapped,
        step, gone;
    cot_var           xs[LIST], ys[LIST], constants[LIST], vectors[LIST], nones[LIST], gones[LIST];
    cot_var           out[LIST], more[LIST], gone_out[LIST]; /* where results go */
    cot_csr           sparse;
    int64_t           places[4], starts[5];
    cot_key           key, gone_key, keys[2];
    cot_mark          mark;
    cot_linear       *linear, *linear_out;
    cot_sparse_plan  *plan, *hessian_plan;
    cot_array         point;
    cot_check_report  report;
    int               zeros[LIST];
    double            numbers[64], ones[64], jacobian[2], memory_of_moments[2][4];
    void             *moments[LIST], *no_moments[LIST];
    char              text[4096];
    FILE             *file, *saved;
    /* the returned value reports a failure */
    bool              failed;
    bool              told;   /* or it cannot report one */
    cot_status        status; /* the returned value, if it is a status */
} fixture;

/* ys[k] = Σ xs² */
static int bowl(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    for (int k = 0; k < m; k++) {
        ys[k] = cot_square(xs[0]);
        for (int i = 1; i < n; i++) ys[k] = cot_add(ys[k], cot_square(xs[i]));
    }
    return 0;
}

/* ys[k] = Σ xs / 4 + 1: a step that ends somewhere, and an equation that has a solution */
static int grow(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    for (int k = 0; k < m; k++) {
        ys[k] = cot_number(1);
        for (int i = 0; i < n; i++) ys[k] = cot_add(ys[k], cot_mul(xs[i], cot_number(0.25)));
    }
    return 0;
}

static int wiggle(int64_t layer, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)layer, (void)user;
    for (int k = 0; k < n; k++) ys[k] = cot_sin(xs[k]);
    return 0;
}

static int small(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_less(xs[0], cot_number(1.5));
    return 0;
}

static int twice(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], cot_number(2));
    return 0;
}

static cot_var product(int n, const cot_var *xs, void *user) {
    (void)n, (void)user;
    return cot_mul(xs[0], xs[0]);
}

static int double_it(int n, const cot_array *xs, cot_array *y, void *user) {
    (void)n, (void)user;
    for (int64_t i = 0; i < y->size; i++) ((double *)y->data)[i] = 2 * ((const double *)xs[0].data)[i];
    return 0;
}
static int double_back(int n, const cot_var *xs, cot_var y, cot_var ybar, cot_var *xbars, void *user) {
    (void)n, (void)xs, (void)y, (void)user;
    xbars[0] = cot_mul(ybar, cot_number(2));
    return 0;
}
static const cot_custom doubled = {.name = "doubled", .value = double_it, .vjp = double_back};
static const cot_custom nameless = {.value = double_it, .vjp = double_back};
static const cot_custom valueless = {.name = "valueless", .vjp = double_back};

static int bowl_back(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *ybars, cot_var *xbars,
                     void *user) {
    (void)m, (void)ys, (void)user;
    for (int k = 0; k < n; k++) xbars[k] = cot_mul(cot_mul(xs[k], cot_number(2)), ybars[0]);
    return 0;
}
static const cot_fn_rules bowl_rules = {.name = "bowl", .vjp = bowl_back}, nameless_rules = {.vjp = bowl_back},
                          no_rules = {.name = "no"};

/* Solvers of grow = 0, grow = x and bowl = least. */
static double sum_of(int n, const cot_array *theta) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += *(const double *)theta[k].data;
    return sum;
}
static int find_root(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)user;
    *(double *)x->data = -4 - sum_of(n, theta);
    return 0;
}
static int find_fixed_point(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)user;
    *(double *)x->data = (1 + 0.25 * sum_of(n, theta)) / 0.75;
    return 0;
}
static int find_least(int n, const cot_array *theta, cot_array *x, void *user) {
    (void)n, (void)theta, (void)user;
    *(double *)x->data = 0;
    return 0;
}

static cot_tape        *fresh_tape(fixture *f) { return counted_tape(&f->memory, false); }
static cot_sparse_plan *fresh_plan(fixture *f) { return cot_sparse_jacobian_plan(1, f->ys, 2, f->xs, COT_AUTO); }

/* A scope that can be closed. */
static cot_tape *in_scope(fixture *f) {
    cot_no_grad_open(f->t);
    return f->t;
}
static cot_tape *in_open_scope(fixture *f) {
    cot_scope_open(f->t, "a scope");
    return f->t;
}

static void make_values(fixture *f) {
    static const double numbers[9] = {4, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 2};
    cot_tape           *t = f->t;
    for (int k = 0; k < 64; k++) f->ones[k] = f->numbers[k] = 1;
    f->x = cot_scalar(t, 0.5);
    f->vector = cot_tensor(t, COT_F64, COT_SHAPE(4), (double[]){0.125, 0.25, 0.5, 0.75});
    f->matrix = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), numbers);
    f->positions = cot_data(t, COT_I64, COT_SHAPE(4), (int64_t[]){2, 0, 1, 0});
    f->coordinates = cot_data(t, COT_I64, COT_SHAPE(2, 1), (int64_t[]){2, 0});
    f->mask = cot_data(t, COT_BOOL, COT_SHAPE(4), (uint8_t[]){1, 0, 1, 0});
    f->pairs = cot_tensor(t, COT_F64, COT_SHAPE(4, 2), f->ones);
    f->channels = cot_tensor(t, COT_F64, COT_SHAPE(2), f->ones);
    f->image[0] = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 2), f->ones);
    f->image[1] = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 2, 2), f->ones);
    f->image[2] = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 2, 2, 2), f->ones);
    f->kernel[0] = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 1), f->ones);
    f->kernel[1] = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 1, 1), f->ones);
    f->kernel[2] = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 1, 1, 1), f->ones);
    f->target = cot_data(t, COT_F64, COT_SHAPE(4), f->ones);
    f->wrapped = cot_wrap(t, COT_F64, COT_SHAPE(4), f->numbers);
    f->step = cot_cast(cot_constant(t, 1), COT_I64);
    for (int k = 0; k < 5; k++) f->places[k % 4] = k % 4, f->starts[k] = k;
    f->sparse = cot_csr_from_triplets(t, 4, 4, 4, f->places, f->places, f->vector);
}

static void make_lists(fixture *f) {
    for (int k = 0; k < LIST; k++) {
        f->xs[k] = cot_scalar(f->t, 0.5);
        f->constants[k] = cot_constant(f->t, 1);
        f->vectors[k] = f->vector;
        f->nones[k] = COT_NONE;
        f->gones[k] = f->gone_out[k] = f->gone;
        f->out[k] = f->more[k] = COT_NONE;
        f->moments[k] = f->memory_of_moments[k % 2];
    }
    f->y = cot_mul(cot_square(f->xs[0]), cot_add(f->xs[1], f->x));
    for (int k = 0; k < LIST; k++) f->ys[k] = f->y;
}

static void open_fixture(fixture *f) {
    *f = (fixture){.memory = {0}};
    f->t = fresh_tape(f);
    assert_non_null(f->t);
    cot_mark start = cot_tape_mark(f->t);
    f->gone = cot_scalar(f->t, 1);
    cot_tape_rewind(f->t, start);
    f->key = f->gone_key = cot_key_of(1);
    make_values(f);
    make_lists(f);
    f->gone_key.step = f->gone;
    f->point = (cot_array){COT_F64, COT_SHAPE(2), 2, f->ones};
    cot_linearize(bowl, NULL, 2, f->xs, 1, f->out, &f->linear);
    f->plan = fresh_plan(f);
    f->hessian_plan = cot_sparse_hessian_plan(f->y, 2, f->xs);
    cot_sparse_jacobian(f->plan, 1, f->ys, 2, f->xs, f->jacobian);
    f->file = tmpfile();
    f->saved = tmpfile();
    assert_true(f->file && f->saved);
    cot_sparse_plan_save(f->plan, f->saved);
    rewind(f->saved);
    f->mark = cot_tape_mark(f->t);
    assert_ok(f->t);
}

static void close_fixture(fixture *f) {
    cot_sparse_plan_destroy(f->plan);
    cot_sparse_plan_destroy(f->hessian_plan);
    cot_tape_destroy(f->t);
    fclose(f->file);
    fclose(f->saved);
}

static int noted;
#define NOTE(...) (noted++, test_note(__VA_ARGS__))

/* ---- results --------------------------------------------------------------------------------- */

static void says(fixture *f, bool failed) { f->failed = failed, f->told = true; }

static void take_cot_var(fixture *f, cot_var v) { says(f, !cot_is_valid(v)); }
static void take_cot_csr(fixture *f, cot_csr a) { says(f, !cot_is_valid(a.values) || !cot_is_valid(a.pattern)); }
static void take_cot_status(fixture *f, cot_status s) { says(f, (f->status = s) != COT_OK); }
static void take_double(fixture *f, double v) { says(f, isnan(v)); }
static void take_cot_sparse_plan_p(fixture *f, cot_sparse_plan *p) {
    says(f, !p);
    cot_sparse_plan_destroy(p);
}
static void take_cot_tape_p(fixture *f, cot_tape *t) {
    says(f, !t);
    if (t != f->t) cot_tape_destroy(t); /* a new tape, not that of a var */
}
/* These have no value that could only be a failure. */
static void take_const_char_p(fixture *f, const char *s) {
    (void)f;
    if (!s) NOTE("a text is NULL");
}
static void take_int(fixture *f, int v) { (void)f, (void)v; }
static void take_int64_t(fixture *f, int64_t v) { (void)f, (void)v; }
static void take_bool(fixture *f, bool v) { (void)f, (void)v; }
static void take_cot_dtype(fixture *f, cot_dtype v) { (void)f, (void)v; }
static void take_cot_shape(fixture *f, cot_shape v) { (void)f, (void)v; }
static void take_cot_key(fixture *f, cot_key v) { (void)f, (void)v; }
static void take_cot_mark(fixture *f, cot_mark v) { (void)f, (void)v; }
static void take_cot_precision(fixture *f, cot_precision v) { (void)f, (void)v; }
static void take_cot_sparse_info(fixture *f, cot_sparse_info v) { (void)f, (void)v; }

/* ---- the calls ------------------------------------------------------------------------------- */

typedef struct null_parameter {
    int         bad, way; /* bad < 0: the end of the list */
    const char *type, *name, *what;
    bool        optional;
} null_parameter;

typedef struct null_function {
    const char *name, *type;
    void (*call)(fixture *f, int bad, int way);
    const null_parameter *parameters;
} null_function;

#include "null_calls.inc"

static bool is_listed(const char *name, int n, const char *const *list) {
    for (int k = 0; k < n; k++)
        if (strcmp(list[k], name) == 0) return true;
    return false;
}

/* Functions that set no error on a tape that they see: they read a tape or a var, for which the
 * header says "accepted everywhere", make keys, which are on no tape, or do not know how many vars
 * there are. */
static bool is_quiet(const char *name) {
    static const char *const quiet[] = {
        "cot_is_valid", "cot_requires_grad", "cot_dtype_of",   "cot_shape_of",         "cot_size",
        "cot_explain",  "cot_report",        "cot_tape_print", "cot_tape_print_sweep", "cot_key_split",
        "cot_key_fold", "cot_key_at",        "cot_sited",      "cot_linear_jvp",       "cot_linear_vjp",
        "cot_tape_of"};
    return is_listed(name, TEST_COUNT(quiet), quiet);
}

/* Does another argument than p have a tape? Then an error stands there. A forgotten var knows
 * its own. A list has the length that the last count in front of it says: none, if p is that. */
static bool has_tape(const null_function *g, const null_parameter *p) {
    int count = -1;
    if (strstr(p->what, "forgotten")) return true;
    for (const null_parameter *o = g->parameters; o->bad >= 0; o++) {
        if (strcmp(o->type, "int") == 0) count = o->bad;
        if (o->bad != p->bad && (strstr(o->type, "cot_tape") || strcmp(o->type, "cot_var") == 0 ||
                                 (strcmp(o->type, "const cot_var *") == 0 && count != p->bad)))
            return true;
    }
    return false;
}

/* "[grad_of] the list of 2 gradients is NULL": the function that was called, in brackets, then
 * words. Functions that run something the user named have that name. */
static bool is_sentence(const char *name, const char *message) {
    static const char *const others[][2] = {{"cot_call", "doubled"}, {"cot_call", "valueless"},
                                            {"cot_call", "custom"},  {"cot_custom_fn", "bowl"},
                                            {"cot_custom_fn", "no"}, {"cot_custom_fn", "custom_fn"}};
    const char *end = message[0] == '[' ? strstr(message, "] ") : NULL;
    size_t      n = end ? (size_t)(end - message) - 1 : 0;
    const char              *called      = name + strlen("cot_");
    bool                     named       = end && strlen(called) == n && strncmp(called, message + 1, n) == 0;
    for (int k = 0; k < TEST_COUNT(others) && end; k++)
        named = named || (strcmp(others[k][0], name) == 0 && strlen(others[k][1]) == n &&
                          strncmp(others[k][1], message + 1, n) == 0);
    return named && strlen(end) > 10 && strchr(end + 2, ' ');
}

/* Notes the errors of one call. */
static void try_call(const null_function *g, const null_parameter *p, bool after_an_error) {
    static const char first[] = "[cot] an error that was there";
    fixture    *f = malloc(sizeof *f); /* large, and ASan sees beyond its ends */
    const char *what = p ? p->what : "all is well", *name = p ? p->name : "";
    assert_non_null(f);
    open_fixture(f);
    if (after_an_error) cot__fail(f->t, COT_VALUE, "%s", first);
    g->call(f, p ? p->bad : -1, p ? p->way : -1);
    cot_status  status = cot_tape_status(f->t);
    const char *message = cot_tape_message(f->t);
    if (after_an_error) {
        bool clears = strcmp(g->name, "cot_tape_clear_error") == 0 || strcmp(g->name, "cot_tape_rewind") == 0;
        if (!clears && strncmp(message, first, strlen(first)))
            NOTE("%s(%s: %s) after an error changes it: %s", g->name, name, what, message);
    } else if (!p || p->optional) {
        if (!p && status != COT_OK)
            NOTE("%s fails: %s; give it other arguments by ARG in tests/samples/null_arguments.def", g->name, message);
        else if (status != COT_OK || (f->told && f->failed))
            NOTE("%s(%s: %s) fails: %s", g->name, name, what, message);
    } else {
        bool must = has_tape(g, p) && !is_quiet(g->name);
        if (f->told && !f->failed) NOTE("%s(%s: %s) returns as if all were well: %s", g->name, name, what, message);
        if (must && status == COT_OK) NOTE("%s(%s: %s) is not told of on the tape", g->name, name, what);
        if (status != COT_OK && f->status != COT_OK && f->status != status)
            NOTE("%s(%s: %s) returns %s: %s", g->name, name, what, cot_status_name(f->status), message);
        if (status != COT_OK && !is_sentence(g->name, message))
            NOTE("%s(%s: %s) says: %s", g->name, name, what, message);
    }
    cot_tape_clear_error(f->t);
    if (strcmp(g->name, "cot_no_grad_open") == 0 && !p) cot_no_grad_close(f->t);
    cot_var z = cot_mul(f->xs[0], f->xs[1]);
    cot_tape_zero_grads(f->t);
    cot_backward(z);
    if (cot_grad_value(f->xs[0]) != cot_value(f->xs[1]) || cot_tape_status(f->t) != COT_OK)
        NOTE("%s(%s: %s): the tape cannot be used afterwards: %s", g->name, name, what, cot_tape_message(f->t));
    close_fixture(f);
    if (f->memory.live || f->memory.blocks)
        NOTE("%s(%s: %s) leaks %zu bytes in %zu blocks", g->name, name, what, f->memory.live, f->memory.blocks);
    free(f);
}

/* In a process of its own, so that a crash is seen and named. */
static int in_child(const null_function *g, const null_parameter *only) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
        for (int k = 0; k < TEST_COUNT(deadly); k++)
            signal(deadly[k], SIG_DFL); /* cmocka would go on here as in the parent */
        for (int after = 0; after < 2; after++) {
            if (!only) try_call(g, NULL, after);
            for (const null_parameter *p = only ? only : g->parameters; p->bad >= 0; p++) {
                try_call(g, p, after);
                if (only) break;
            }
        }
        fflush(NULL);
        _exit(noted > 0);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static void no_argument_that_is_missing_does_harm(void **state) {
    (void)state;
    int wrong = 0;
    for (int i = 0; i < TEST_COUNT(null_functions); i++) {
        const null_function *g = &null_functions[i];
        int                  status = in_child(g, NULL);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
        wrong++;
        /* the child has reported it */
        if (WIFEXITED(status) && WEXITSTATUS(status) == 1) continue;
        bool named = false;
        for (const null_parameter *p = g->parameters; p->bad >= 0; p++) {
            status = in_child(g, p);
            if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) continue;
            named = true;
            print_error("    %s(%s: %s) crashes\n", g->name, p->name, p->what);
        }
        if (!named) print_error("    %s crashes\n", g->name);
    }
    if (wrong) fail_msg("%d functions of %d", wrong, TEST_COUNT(null_functions));
}

/* "[matmul] out of memory: …" from cot_einsum. A function that is made of public ones, or calls one
 * of the user's, may name the one that there was no memory for. The user has not called the
 * operations that a sweep records. */
static bool may_name_a_part(const char *name) {
    static const char *const sweeps[] = {"cot_backward",
                                         "cot_backward_seeded",
                                         "cot_grad_of",
                                         "cot_vjp",
                                         "cot_jvp",
                                         "cot_vjps",
                                         "cot_jvps",
                                         "cot_jacobian",
                                         "cot_hessian",
                                         "cot_hvp",
                                         "cot_sparse_jacobian",
                                         "cot_sparse_hessian",
                                         "cot_linear_jvp",
                                         "cot_linear_vjp",
                                         "cot_sparse_jacobian_plan",
                                         "cot_sparse_hessian_plan",
                                         "cot_sparse_check",
                                         "cot_taylor",
                                         "cot_taylor_values"};
    return !is_listed(name, TEST_COUNT(sweeps), sweeps);
}

static bool is_told(const char *name, const char *message) {
    /* the inputs of a body, and the call of a macro, have no function */
    static const char *const others[] = {"[parameter]", "[source line]"};
    if (is_sentence(name, message)) return true;
    if (!may_name_a_part(name)) return false;
    for (int i = 0; i < TEST_COUNT(null_functions); i++)
        if (is_sentence(null_functions[i].name, message)) return true;
    for (int k = 0; k < TEST_COUNT(others); k++)
        if (strncmp(message, others[k], strlen(others[k])) == 0) return true;
    return false;
}

/* With its good arguments, and `left` more allocations. Did that fail one? */
static bool runs_out(const null_function *g, long left) {
    fixture *f = malloc(sizeof *f);
    assert_non_null(f);
    open_fixture(f);
    /* otherwise kept memory would be enough for most calls */
    cot_tape_trim(f->t);
    let_succeed(&f->memory, left);
    g->call(f, -1, -1);
    bool        failed  = f->memory.failed > 0;
    const char *message = cot_tape_message(f->t);
    if (cot_tape_status(f->t) != COT_OK && !is_told(g->name, message))
        NOTE("%s without memory says: %s", g->name, message);
    let_succeed(&f->memory, -1);
    close_fixture(f);
    if (f->memory.live || f->memory.blocks) NOTE("%s without memory leaks", g->name);
    free(f);
    return failed;
}

static void a_failed_allocation_is_told_by_a_function_that_users_know(void **state) {
    (void)state;
    noted = 0;
    for (int i = 0; i < TEST_COUNT(null_functions); i++)
        for (long left = 0; runs_out(&null_functions[i], left); left++) {
        }
    assert_int_equal(noted, 0);
}

#define SAYS(call, code, sentence)                                                                                     \
    do {                                                                                                               \
        (void)(call);                                                                                                  \
        assert_error(t, code, sentence);                                                                               \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void what_is_missing_is_named(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), y = cot_mul(x, x), none[2] = {COT_NONE, COT_NONE}, xs[2] = {x, x}, g;
    cot_var   vector = cot_tensor(t, COT_F64, COT_SHAPE(4), NULL), positions = cot_data(t, COT_I64, COT_SHAPE(1), NULL);
    double    out[4];
    SAYS(cot_grad_of(y, 1, &x, NULL), COT_VALUE, "[grad_of] the list of 1 gradients is NULL");
    SAYS(cot_grad_of(y, 1, NULL, NULL), COT_VALUE, "[grad_of] the list of 1 vars is NULL");
    SAYS(cot_vjp(y, x, 1, &x, NULL), COT_VALUE, "[vjp] the list of 1 gradients is NULL");
    SAYS(cot_grad_of(COT_NONE, 1, &x, &g), COT_VAR, "[grad_of] y is not a value on a tape");
    assert_false(cot_is_valid(g));
    SAYS(cot_backward_seeded(COT_NONE, x), COT_VAR, "[backward_seeded] y is not a value on a tape");
    SAYS(cot_jvp(y, 1, &x, NULL), COT_VALUE, "[jvp] the list of 1 tangents is NULL");
    SAYS(cot_vjps(1, 2, none, (double[]){1, 1}, 1, &x, out), COT_VAR, "[vjps] none of the 2 ys is a value on a tape");
    assert_true(isnan(out[0]));
    SAYS(cot_jacobian(2, NULL, 1, &x, COT_AUTO, out), COT_VAR, "[jacobian] the list of 2 ys is NULL");
    SAYS(cot_jacobian(-1, &y, 1, &x, COT_AUTO, out), COT_VALUE, "[jacobian] a negative number of ys: -1");
    SAYS(cot_jacobian(0, &y, 1, &x, COT_AUTO, out), COT_VAR, "[jacobian] there are no ys");
    SAYS(cot_jacobian(1, &y, -1, &x, COT_AUTO, out), COT_VALUE, "[jacobian] a negative number of vars: -1");
    /* there is no tape to say it on */
    assert_int_equal(cot_vjps(1, -1, &y, out, -1, &x, out), COT_VALUE);
    SAYS(cot_fn_vjp(bowl, NULL, 2, none, 1, &g, &x, xs), COT_VAR, "[fn_vjp] none of the 2 xs is a value on a tape");
    SAYS(cot_dot_of(1, &x, NULL), COT_VALUE, "[dot_of] the list of 1 ys is NULL");
    SAYS(cot_dot_of(1, NULL, &x), COT_VALUE, "[dot_of] the list of 1 xs is NULL");
    SAYS(cot_split(vector, 2, 0, NULL), COT_VALUE, "[split] the list of 2 parts is NULL");
    SAYS(cot_take(COT_NONE, positions, 0), COT_VAR, "[take] the first operand is not a value on a tape");
    SAYS(cot_add_into(NULL, x), COT_VAR, "[add_into] the target is not a value on a tape");
    SAYS(cot_update_slice(none, 0, 0, 1, 1, x), COT_VAR, "[update_slice] the target is not a value on a tape");
    SAYS(cot_assign(COT_NONE, x), COT_VAR, "[assign] the leaf is not a value on a tape");
    SAYS(cot_bernoulli(NULL, cot_key_of(1), x, COT_SHAPE(2)), COT_VAR,
         "[bernoulli] the tape is NULL; it is where p is");
    SAYS(cot_layer_norm(COT_NONE, vector, COT_NONE, 0, 0), COT_VAR,
         "[layer_norm] the x operand is not a value on a tape");
    cot_key old = cot_key_of(1);
    cot_mark m = cot_tape_mark(t);
    old.step = cot_scalar(t, 1);
    cot_tape_rewind(t, m);
    SAYS(cot_shuffle(old, vector, 0), COT_VAR, "[shuffle] the key's step as operand was forgotten by a rewind");
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_argument_that_is_missing_does_harm),
                                       cmocka_unit_test(a_failed_allocation_is_told_by_a_function_that_users_know),
                                       cmocka_unit_test(what_is_missing_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
