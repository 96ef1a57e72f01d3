/* Tapes in files: what is loaded is printed, explained and differentiated like what was saved, to
 * the bit; what cannot be saved, and files that are cut, altered, newer or made to deceive, are
 * refused with a sentence. */
#define COT_SOURCE_LINES
#include "compile/files/tape_bytes.h"
#include "samples/samples.h"

#include "compile/compile.h"
#include "compile/tape_file.h"
#include "diff/loops/loop.h"
#include "program/loop_form.h"
#include "rules/structural_ids.h"
#include "tape/record_job.h"

#include <cotangent_program.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/cotangent-tapes-XXXXXX";
static int  enter_folder(void **state) { return (void)state, !mkdtemp(folder) || chdir(folder) != 0; }
static int  leave_folder(void **state) { return (void)state, chdir("/") != 0 || rmdir(folder) != 0; }

/* ---- files in memory ------------------------------------------------------------------------- */

static char *printed(const cot_tape *t) {
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    cot_tape_print(t, out);
    fclose(out);
    return text;
}

/* ---- every operation ------------------------------------------------------------------------- */

static cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

/* The value, the loss, the gradients, then the leaves. False: it cannot be recorded so. */
static bool record(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *ys, int *m) {
    cot_var xs[TEST_MAX_INPUTS];
    for (int k = 0; k < f->n; k++)
        xs[k] = cot_leaf(cot_cast(cot_data(t, COT_F64, f->in[k].shape, f->in[k].data), dtype));
    ys[0] = f->f(f->n, xs, f->user);
    ys[1] = cot_name(loss(ys[0]), "loss");
    if (f->n > 1) cot_grad_of(ys[1], 1, xs, ys + 2);
    else ys[2] = ys[1];
    *m = 3;
    return cot_tape_status(t) == COT_OK;
}

/* Everything that a backward leaves in the leaves, and the values, as text: all digits show. */
static char *swept(cot_tape *t, cot_var y, int m, const cot_var *ys) {
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    cot_backward(y);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].op == OP_leaf && !cot__in_body(&t->nodes[i])) {
            cot_var x = VAR(t, i);
            double  g[TEST_MAX_SIZE];
            if (cot_size(x) > TEST_MAX_SIZE || cot_read_grad(x, g, cot_size(x)) != COT_OK) continue;
            for (int64_t k = 0; k < cot_size(x); k++) fprintf(out, "%a ", g[k]);
        }
    for (int k = 0; k < m; k++) {
        double v[TEST_MAX_SIZE];
        if (cot_size(ys[k]) > TEST_MAX_SIZE || cot_read(ys[k], v, cot_size(ys[k])) != COT_OK) continue;
        for (int64_t i = 0; i < cot_size(ys[k]); i++) fprintf(out, "%a ", v[i]);
    }
    fprintf(out, "%s\n", cot_tape_message(t));
    fclose(out);
    return text;
}

static bool line_has(const char *line, const char *words) {
    const char *at = strstr(line, words);
    return at && at < line + strcspn(line, "\n");
}

/* The next line that is none of a body. */
static const char *next_line(const char *line) {
    while (line_has(line, "(in a body)")) line += strcspn(line, "\n") + 1;
    return line;
}

static bool is_subscript(const char *at) { return strncmp(at, "\xe2\x82", 2) == 0; }

/* Are two lines the same, but for the numbers of values, and for spaces? An operand that is v₁ in a
 * may be c₁ in b: a fixed value of a body, which is a constant there. */
static bool same_line(const char *a, const char *b) {
    static const char subscripts[] = "₀₁₂₃₄₅₆₇₈₉";
    for (;; a++, b++) {
        while (*a == ' ') a++;
        while (*b == ' ') b++;
        if (*a == 'v' && *b == 'c' && is_subscript(a + 1) && is_subscript(b + 1)) continue;
        if (*a != *b) return false;
        if (!*a || *a == '\n') return true;
        if (is_subscript(a)) a += strspn(a, subscripts) - 1, b += strspn(b, subscripts) - 1;
    }
}

/* Values that were written over in place are there again. Bodies know no source lines, and have
 * lost what nothing needs: so values behind them have other numbers. A fixed value of a body that
 * is read outside of it is a constant there. */
static bool same_lines(const char *a, const char *b) {
    bool bodies = strstr(a, "(in a body)");
    for (; *(a = next_line(a)) && *(b = next_line(b));) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        bool   same = bodies ? same_line(a, b) : n == m && !memcmp(a, b, n);
        if (!same && bodies && line_has(b, " = constant") && !line_has(a, " = constant")) {
            b += m + 1;
            continue;
        }
        if (!same && !line_has(a, "(overwritten)")) return false;
        a += n + 1, b += m + 1;
    }
    return *a == *b;
}

static void compare(const char *name, cot_tape *a, cot_tape *b, int m, const cot_var *ys, const cot_var *zs) {
    char *pa = printed(a), *pb = printed(b);
    TEST_CHECK(same_lines(pa, pb), "%s is printed otherwise:\n%s\n%s", name, pa, pb);
    char *sa = swept(a, ys[1], m, ys), *sb = swept(b, zs[1], m, zs);
    TEST_CHECK(!strcmp(sa, sb), "%s is swept otherwise:\n%s%s", name, sa, sb);
    free(pa), free(pb), free(sa), free(sb);
}

static int saved;

static void through_a_file(const test_function *f, cot_dtype dtype) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   ys[MOST_VARS], zs[MOST_VARS];
    int       m;
    if (record(t, f, dtype, ys, &m)) {
        file_bytes b = bytes_of(t, m, ys);
        if (b.count) {
            cot_tape *u = cot_tape_create(NULL);
            bool      loaded = cot__tape_file_record(u, b.at, b.count, m, zs);
            TEST_CHECK(loaded, "%s: %s", f->name, cot_tape_message(u));
            if (loaded) compare(f->name, t, u, m, ys, zs), saved++;
            cot_tape_destroy(u);
        } else
            TEST_CHECK(strstr(cot_tape_message(t), "cannot be saved yet"), "%s: %s", f->name, cot_tape_message(t));
        free(b.at);
    }
    cot_tape_destroy(t);
}

static void every_sample_comes_out_of_its_file_as_it_was(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    (void)state;
    for (int d = 0; d < TEST_COUNT(dtypes); d++)
        for (int i = 0; i < TEST_COUNT(samples); i++) {
            test_function f = function_of(&samples[i], i, 0);
            through_a_file(&f, dtypes[d]);
        }
    assert_true(saved > 300);
    test_verdict();
}

/* ---- a tape of everything -------------------------------------------------------------------- */

/* A step with a constant, a number of its own, a capture, a part without a gradient, something that
 * nothing needs, and a condition inside. */
static int bent(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_mul(cot_sin(xs[0]), *(const cot_var *)user);
    return 0;
}
static int straight(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], cot_number(0.5));
    return 0;
}
static int a_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    double    numbers[3] = {0.5, 0.25, 2};
    cot_tape *t = xs[0].tape;
    cot_var   s = *(const cot_var *)user, y;
    (void)n, (void)m;
    cot_exp(cot_add(s, xs[0]));
    cot_no_grad_open(t);
    cot_var weight = cot_square(xs[1]);
    cot_no_grad_close(t);
    cot_cond(cot_less(cot_sum(xs[0], COT_ALL), 1), bent, straight, user, 1, &xs[1], 1, &y);
    ys[0] = cot_add(cot_mul(xs[0], cot_data(t, COT_F64, COT_SHAPE(3), numbers)), cot_mul(weight, y));
    ys[1] = cot_sum(cot_mul(ys[0], s), COT_ALL);
    return 0;
}
static int goes_on(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_less(xs[0], 20);
    return 0;
}
static int grown(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_add(cot_mul(xs[0], 2), cot_square(*(const cot_var *)user));
    return 0;
}

/* A scan, a loop of unknown length and a checkpoint, from a matrix and a number; and the gradient
 * of the first, which is loops again. */
static cot_var loops(cot_var h, cot_var s) {
    cot_var first = cot_index(h, 0, 1), last, sums, long_enough, y, g;
    cot_scan(a_step, &s, -1, 1, &first, 1, &h, &last, 1, &sums, &(cot_loop_options){.reverse = true});
    cot_grad_of(cot_sum(sums, COT_ALL), 1, &h, &g);
    cot_while(goes_on, grown, &s, 1, &s, &long_enough, NULL);
    cot_checkpoint(bent, &long_enough, 1, &last, 1, &y);
    return cot_add(cot_sum(y, COT_ALL), cot_add(cot_sum(sums, COT_ALL), cot_sum(g, COT_ALL)));
}

/* Two results, of which the first is an integer, and the second has a derivative. */
static int place_and_curve(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_argmax(xs[0], COT_AXES(1));
    ys[1] = cot_sum(cot_mul(cot_tanh(cot_mul(xs[0], xs[1])), xs[0]), COT_AXES(0));
    return 0;
}

/* A program that is called twice with a derivative and once without, and the gradient of it, which
 * is a call again. */
static cot_var calls(cot_var h, cot_var s) {
    cot_type types[2] = {{COT_F64, cot_shape_of(h)}, {COT_F64, COT_SCALAR}};
    cot_program *p = cot_compile(place_and_curve, NULL, 2, types, 2, NULL);
    cot_var      a[2], b[2], c[2], g;
    cot_program_call(p, 2, (cot_var[]){h, s}, 2, a);
    cot_program_call(p, 2, (cot_var[]){cot_sin(h), s}, 2, b);
    cot_no_grad_open(h.tape);
    cot_program_call(p, 2, (cot_var[]){h, s}, 2, c);
    cot_no_grad_close(h.tape);
    cot_grad_of(cot_sum(cot_mul(a[1], b[1]), COT_ALL), 1, &h, &g);
    cot_program_destroy(p);
    cot_var sum = cot_add(cot_sum(a[1], COT_ALL), cot_sum(cot_mul(b[1], c[1]), COT_ALL));
    return cot_add(sum, cot_sum(g, COT_ALL));
}

/* It adds to a constant, part by part: so the transposed body writes to a copy of one. */
static int in_parts(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_tape *t = xs[0].tape;
    cot_var   parts = cot_zeros(t, COT_F64, COT_SHAPE(3));
    (void)n, (void)m;
    cot_update_slice(&parts, 0, 0, 3, 2, cot_mul(cot_slice(xs[0], 0, 0, 3, 2), *(const cot_var *)user));
    ys[0] = cot_add(cot_mul(xs[0], 2), parts);
    return 0;
}

static int hilly(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var far = cot_sub(xs[0], xs[1]);
    (void)n, (void)m;
    ys[0] = cot_sum(cot_add(cot_square(cot_square(far)), cot_mul(cot_square(far), *(const cot_var *)user)), COT_ALL);
    return 0;
}
/* A step with a root in it, which starts at what is carried. */
static int root_inside(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_root(cubic, NULL, NULL, xs[0], 1, &xs[0], NULL);
    return 0;
}

/* Linear systems, a root, a minimum, roots in a loop, and the gradient through all, which solves
 * other systems; in a loop that keeps two states, it is one operation. */
static cot_var solutions(cot_var h, cot_var s) {
    cot_var row = cot_index(h, 0, 1), near, g[2];
    cot_var x = cot_linear_solve(tridiagonal, &s, row, NULL), y = cot_linear_solve(in_parts, &s, row, NULL);
    cot_var root = cot_root(cubic, NULL, NULL, x, 1, &y, NULL);
    cot_var least = cot_minimize(hilly, &s, NULL, cot_mul(row, 2), 1, &row, NULL);
    cot_scan(root_inside, NULL, 3, 1, &root, 0, NULL, &near, 0, NULL, &(cot_loop_options){.states = 2});
    cot_var sum = cot_sum(cot_add(cot_square(cot_add(x, y)), cot_mul(near, least)), COT_ALL);
    cot_grad_of(sum, 2, (cot_var[]){s, row}, g);
    return cot_add(sum, cot_add(g[0], cot_sum(g[1], COT_ALL)));
}

/* Names, a part without a gradient, a write in place, several results, numbers, integers, loops,
 * calls of programs, solvers. */
static cot_var everything(cot_tape *t, cot_var *leaf) {
    double  a[6] = {0.5, -1, 2, 0.25, 3, -0.75};
    cot_var w = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a), "w"), s = cot_scalar(t, 0.3), q, r;
    cot_var h = cot_name(cot_tanh(cot_mul(w, s)), "hidden");
    cot_no_grad_open(t);
    cot_var weight = cot_square(h);
    cot_no_grad_close(t);
    cot_var part = cot_mul(cot_slice(weight, 1, 0, 2, 1), 2), all = cot_mul(h, cot_add(h, 1));
    cot_update_slice(&all, 1, 0, 2, 1, part);
    cot_qr(cot_matmul(all, cot_transpose(all)), &q, &r);
    cot_var top = cot_argmax(all, COT_AXES(1));
    *leaf = w;
    cot_var best = cot_take_along_axis(all, cot_expand_dims(top, 1), 1);
    cot_var rest = cot_add(loops(h, s), cot_add(calls(h, s), solutions(h, s)));
    return cot_name(cot_add(cot_add(cot_sum(r, COT_ALL), cot_sum(best, COT_ALL)), rest), "y");
}

static void names_lines_and_numbers_come_back(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w, y = everything(t, &w), vars[2], g, h;
    char      why[256] = "old";
    assert_ok(t);
    assert_int_equal(cot_tape_save(t, 2, (cot_var[]){y, w}, "t.cot", why, sizeof why), COT_OK);
    assert_string_equal(why, "");
    cot_tape *u = cot_tape_load("t.cot", NULL, 2, vars);
    assert_string_equal(cot_tape_message(u), "");
    char *a = printed(t), *b = printed(u);
    if (!same_lines(a, b)) fail_msg("printed otherwise:\n%s\n%s", a, b);
    assert_non_null(strstr(b, "test_tape_file.c:"));
    assert_non_null(strstr(b, "hidden = "));
    assert_int_equal(cot_tape_check(u, why, sizeof why), COT_OK);
    assert_true(cot_value(vars[0]) == cot_value(y));
    cot_grad_of(y, 1, &w, &g);
    cot_grad_of(vars[0], 1, &vars[1], &h);
    double x[6], z[6];
    assert_int_equal(cot_read(g, x, 6), COT_OK);
    assert_int_equal(cot_read(h, z, 6), COT_OK);
    assert_memory_equal(x, z, sizeof x);
    cot_var named = cot_tape_named(u, "w");
    assert_true(named.tape == u && named.id == vars[1].id);
    assert_false(cot_is_valid(cot_tape_named(u, "v")));
    assert_false(cot_is_valid(cot_tape_named(u, NULL)));
    assert_false(cot_is_valid(cot_tape_named(NULL, "w")));
    free(a), free(b);
    cot_tape_destroy(t), cot_tape_destroy(u);
    unlink("t.cot");
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* What a file holds of a tape is a program, in which a call is an operation. */
static void a_tape_with_calls_runs_as_a_program(void **state) {
    (void)state;
    cot_tape      *t = cot_tape_create(NULL);
    double         a[6] = {0.5, -1, 2, 0.25, 3, -0.75}, s = 0.3, z;
    cot_var        h = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a), y = calls(h, cot_scalar(t, s));
    cot__tape_file f;
    cot__caller    caller = cot__tape_caller(t, "test");
    uint32_t       node = cot__index(y);
    assert_true(cot__tape_file_open(&f, t, 1, &node, &caller));
    cot_program *p = cot__program_object(cot__program_share(f.p), &(cot_compile_options){.plain = true}, false);
    cot_run     *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *[]){a, &s}, (void *[]){&z}), COT_OK);
    assert_true(z == cot_value(y));
    cot_run_destroy(r);
    cot_program_destroy(p);
    cot__tape_file_close(&f);
    cot_tape_destroy(t);
}

/* No tape has that: where a program is compiled, what it calls is recorded inline. */
static void a_file_with_calls_inside_of_calls_is_refused(void **state) {
    (void)state;
    cot_tape      *t = cot_tape_create(NULL), *u = cot_tape_create(NULL), *v = cot_tape_create(NULL);
    cot_var        h = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL), y = calls(h, cot_scalar(t, 2)), z;
    cot__tape_file f;
    cot__caller    caller = cot__tape_caller(t, "test");
    uint32_t       node = cot__index(y);
    assert_true(cot__tape_file_open(&f, t, 1, &node, &caller));
    cot_program *p = cot__program_object(cot__program_share(f.p), &(cot_compile_options){.plain = true}, false);
    cot_var      xs[2] = {cot_data(u, COT_F64, COT_SHAPE(2, 3), NULL), cot_constant(u, 2)};
    cot_program_call(p, 2, xs, 1, &z);
    assert_ok(u);
    assert_true(cot_value(z) == cot_value(y));
    file_bytes b = bytes_of(u, 1, &z);
    assert_ok(u);
    assert_false(cot__tape_file_record(v, b.at, b.count, 1, &z));
    assert_string_equal(cot_tape_message(v),
                        "[program_call] a call inside of a body; on tapes its operations stand there instead");
    free(b.at);
    cot_program_destroy(p);
    cot__tape_file_close(&f);
    cot_tape_destroy(u), cot_tape_destroy(v);
    cot_tape_destroy(t); /* in whose memory the program lies */
}

/* On a smooth tape a call keeps nothing for its derivative. */
static void a_smooth_tape_is_loaded_as_one(void **state) {
    (void)state;
    cot_options smooth = {.smooth = true};
    cot_tape   *t = cot_tape_create(&smooth);
    cot_var     y = calls(cot_tensor(t, COT_F64, COT_SHAPE(2, 3), NULL), cot_scalar(t, 2)), z;
    assert_int_equal(cot_tape_save(t, 1, &y, "s.cot", NULL, 0), COT_OK);
    cot_tape *u = cot_tape_load("s.cot", &smooth, 1, &z), *v = cot_tape_load("s.cot", NULL, 1, &z);
    assert_string_equal(cot_tape_message(u), "");
    assert_string_equal(cot_tape_message(v),
                        "[program_call] a call of the file has 2 results, and here another number; a tape is loaded "
                        "with the options (smooth) that it was recorded with (in the file s.cot)");
    cot_tape_destroy(t), cot_tape_destroy(u), cot_tape_destroy(v);
    unlink("s.cot");
}

/* ---- solvers --------------------------------------------------------------------------------- */

static int doubled(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], 2);
    return 0;
}
static cot_var curved(cot_var y, cot_var x) {
    cot_var g, of_g;
    cot_grad_of(y, 1, &x, &g);
    cot_grad_of(cot_sum(cot_mul(g, cot_sin(g)), COT_ALL), 1, &x, &of_g);
    return of_g;
}

static cot_tape *loaded(const file_bytes *b, int n, cot_var *vars) {
    cot_tape *t = cot_tape_create(NULL);
    bool      fine = cot__tape_file_record(t, b->at, b->count, n, vars);
    if (!fine) fail_msg("%s", cot_tape_message(t));
    return t;
}

/* Bodies that were recorded again are saved as they stood in the file; and what a loaded tape
 * records behind them is saved with them. */
static void solvers_have_second_derivatives_behind_a_file(void **state) {
    (void)state;
    double    a[6] = {0.5, -1, 2, 0.25, 1, -0.75}, want[6], have[6];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   h = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a), vars[2], more[3];
    cot_var   y = solutions(h, cot_scalar(t, 0.3));
    assert_ok(t);
    file_bytes once = bytes_of(t, 2, (cot_var[]){y, h});
    assert_ok(t);
    cot_tape *u = loaded(&once, 2, vars);
    file_bytes again = bytes_of(u, 2, vars);
    assert_int_equal(once.count, again.count);
    assert_memory_equal(once.at, again.at, once.count);
    cot_var of_t = curved(y, h), of_u = curved(vars[0], vars[1]);
    assert_int_equal(cot_read(of_t, want, 6), COT_OK);
    assert_int_equal(cot_read(of_u, have, 6), COT_OK);
    assert_memory_equal(want, have, sizeof want);
    file_bytes longer = bytes_of(u, 3, (cot_var[]){vars[0], vars[1], of_u});
    cot_tape *v = loaded(&longer, 3, more);
    assert_int_equal(cot_read(more[2], have, 6), COT_OK);
    assert_memory_equal(want, have, sizeof want);
    free(once.at), free(again.at), free(longer.at);
    cot_tape_destroy(t), cot_tape_destroy(u), cot_tape_destroy(v);
}

/* What was written over is computed again, before the equation is. */
static void a_solver_whose_operand_was_written_over_comes_back(void **state) {
    (void)state;
    double    want[2], have[2];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){0.5, -1}), b = cot_sin(x), vars[2];
    cot_var   y = (cot_linear_solve)(doubled, NULL, b, NULL), z = cot_sum(cot_square(y), COT_ALL);
    (cot_add_into)(&b, cot_number(1));
    assert_ok(t);
    file_bytes file = bytes_of(t, 2, (cot_var[]){z, x});
    cot_tape *u = loaded(&file, 2, vars);
    assert_true(cot_value(z) == cot_value(vars[0]));
    cot_backward(z), cot_backward(vars[0]);
    assert_int_equal(cot_read_grad(x, want, 2), COT_OK);
    assert_int_equal(cot_read_grad(vars[1], have, 2), COT_OK);
    assert_memory_equal(want, have, sizeof want);
    free(file.at);
    cot_tape_destroy(t), cot_tape_destroy(u);
}

static int of_both(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *both = user;
    (void)n, (void)m;
    ys[0] = cot_sub(cot_mul(xs[0], both[0]), cot_sin(both[1]));
    return 0;
}
static int kept_of_both(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var both[2] = {*(const cot_var *)user, xs[1]};
    (void)n;
    cot_checkpoint(of_both, both, 1, &xs[1], m, ys);
    ys[0] = cot_mul(ys[0], xs[0]);
    return 0;
}

/* Recorded for the batch, the checkpoint reads one value in two places that it has captured. */
static void a_value_that_was_captured_twice_comes_back(void **state) {
    (void)state;
    double    a[4] = {0.5, -1, 2, 0.25}, want[4], have[4];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), a), y, vars[2];
    cot_vmap(kept_of_both, &x, 2, (cot_var[]){x, x}, (int[]){0, COT_NOT_BATCHED}, 1, &y, NULL);
    y = cot_sum(cot_square(y), COT_ALL);
    file_bytes b = bytes_of(t, 2, (cot_var[]){y, x});
    assert_ok(t);
    cot_tape *u = loaded(&b, 2, vars);
    cot_backward(y), cot_backward(vars[0]);
    assert_int_equal(cot_read_grad(x, want, 4), COT_OK);
    assert_int_equal(cot_read_grad(vars[1], have, 4), COT_OK);
    assert_memory_equal(want, have, sizeof want);
    free(b.at);
    cot_tape_destroy(t), cot_tape_destroy(u);
}

/* ---- what cannot be saved -------------------------------------------------------------------- */

static void refused(cot_tape *t, int n, const cot_var *vars, const char *path, cot_status status, const char *want) {
    char why[512];
    assert_int_equal(cot_tape_save(t, n, vars, path, why, sizeof why), status);
    assert_string_equal(why, want);
    assert_int_equal(cot_tape_save(t, n, vars, path, NULL, 0), status);
    assert_int_not_equal(access("no.cot", F_OK), 0);
}

static int halve(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], 0.5);
    return 0;
}

static int halved(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user) {
    (void)n, (void)xs, (void)m, (void)ys, (void)user;
    dys[0] = cot_mul(dxs[0], 0.5);
    return 0;
}
static const cot_fn_rules half_rules = {.name = "half", .jvp = halved};

static int holding_a_rule(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)user;
    return (int)cot_custom_fn(&half_rules, halve, NULL, n, xs, m, ys);
}

/* A solver that leaves x as it is. */
static int stays(int n, const cot_array *theta, cot_array *x, void *user) {
    return (void)n, (void)theta, (void)x, (void)user, 0;
}

static void called_with_a_rule(const cot_var *x, cot_var *y) {
    cot_program *p = cot_compile(holding_a_rule, NULL, 1, &(cot_type){COT_F64, COT_SCALAR}, 1, NULL);
    cot_program_call(p, 1, x, 1, y);
    cot_program_destroy(p);
}

static void what_cannot_be_saved_is_told(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = (cot_scalar)(t, 2), y = (cot_mul)(x, x), foreign = cot_scalar(other, 1);
    refused(NULL, 0, NULL, "no.cot", COT_MEMORY, "[tape_save] the tape is NULL");
    refused(t, -1, NULL, "no.cot", COT_VALUE, "[tape_save] a negative number of values: -1");
    refused(t, 1, NULL, "no.cot", COT_VALUE, "[tape_save] a list of 1 values is NULL");
    refused(t, 0, NULL, NULL, COT_VALUE, "[tape_save] the path is NULL");
    refused(t, 1, &foreign, "no.cot", COT_VAR, "[tape_save] vars[0] is no value of this tape");
    refused(t, 1, (cot_var[]){cot_number(2)}, "no.cot", COT_VAR, "[tape_save] vars[0] is no value of this tape");
    refused(t, 0, NULL, ".", COT_VALUE, "[tape_save] cannot write .: it is a directory");
    cot_mark m = cot_tape_mark(t);
    cot_custom_fn(&half_rules, halve, NULL, 1, &x, 1, &y);
    assert_ok(t);
    refused(t, 1, &y, "no.cot", COT_LIMIT, "[tape_save] half cannot be saved yet: it calls a function of the user's");
    cot_tape_rewind(t, m);
    cot_checkpoint(holding_a_rule, NULL, 1, &x, 1, &y);
    assert_ok(t);
    refused(t, 1, &y, "no.cot", COT_LIMIT, "[tape_save] half cannot be saved yet: it calls a function of the user's");
    cot_tape_rewind(t, m);
    cot_var one = cot_data(t, COT_F64, COT_SHAPE(1), (double[]){1});
    y = cot_root(cubic, NULL, stays, one, 1, &x, &(cot_solve_options){.tolerance = INFINITY});
    assert_ok(t);
    refused(t, 1, &y, "no.cot", COT_VALUE,
            "[tape_save] the operation 'root' is bound to this process (it holds an address); a program with it "
            "cannot be saved");
    cot_tape_rewind(t, m);
    cot_var written = cot_data(t, COT_F64, COT_SHAPE(1), (double[]){1});
    y = (cot_linear_solve)(doubled, NULL, written, NULL);
    (cot_add_into)(&written, cot_number(1));
    assert_ok(t);
    refused(t, 1, &y, "no.cot", COT_STALE,
            "[tape_save] linear_solve (v₃) has read what was written over in place since; it is solved again from what "
            "it has read");
    cot_tape_rewind(t, m);
    called_with_a_rule(&x, &y);
    assert_ok(t);
    refused(t, 1, &y, "no.cot", COT_VALUE,
            "[tape_save] the operation 'half' is bound to this process (it holds an address); a program with it "
            "cannot be saved");
    cot_tape_rewind(t, m);
    cot_assign(x, cot_number(3));
    refused(t, 0, NULL, "no.cot", COT_STALE,
            "[tape_save] leaf (x₁) was assigned after mul (v₁) had read it; values are computed again from leaves and "
            "constants");
    cot_tape_destroy(t), cot_tape_destroy(other);
}

static void a_failed_tape_tells_its_own_error(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    char      why[512];
    cot_reshape(cot_scalar(t, 1), COT_SHAPE(2));
    assert_int_equal(cot_tape_save(t, 0, NULL, "no.cot", why, sizeof why), COT_SHAPE);
    assert_string_equal(why, cot_tape_message(t));
    cot_tape_destroy(t);
}

/* Numbers that were written over in place are gone; those of a leaf that was assigned before it was
 * read are the new ones. */
static void a_leaf_that_was_assigned_first_is_saved(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), v;
    cot_assign(x, cot_number(5));
    cot_var y = cot_square(x);
    assert_int_equal(cot_tape_save(t, 1, &y, "t.cot", NULL, 0), COT_OK);
    cot_tape *u = cot_tape_load("t.cot", NULL, 1, &v);
    assert_true(cot_value(v) == 25);
    cot_tape_destroy(t), cot_tape_destroy(u);
    unlink("t.cot");
}

/* ---- files that are not what they say -------------------------------------------------------- */

static file_bytes a_file(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w, y = everything(t, &w);
    file_bytes b = bytes_of(t, 1, &y);
    assert_ok(t);
    cot_tape_destroy(t);
    return b;
}

/* The error, in `message`; "": it loads. */
static void load_bytes(const unsigned char *at, size_t n, char message[512]) {
    /* a number that was altered may be that of the steps of a loop */
    cot_tape *t = cot_tape_create(&(cot_options){.load_steps = 1 << 14});
    cot_var   v;
    char      why[256];
    bool      loaded = cot__tape_file_record(t, at, n, 1, &v);
    assert_int_equal(loaded, cot_tape_status(t) == COT_OK);
    snprintf(message, 512, "%s", cot_tape_message(t));
    if (loaded) assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    if (loaded) cot_backward(v);
    cot_tape_destroy(t);
}

static void correct(unsigned char *at, size_t n) {
    cot__to_bytes(at + 16, n, 8);
    cot__to_bytes(at + n - 8, cot__checksum(0, at, n - 8), 8);
}

static void cut_and_altered_files_are_refused(void **state) {
    (void)state;
    char   message[512];
    file_bytes b    = a_file();
    size_t step = test_small() ? 5 : 1;
    for (size_t n = 0; n < b.count; n += step) {
        unsigned char *cut = malloc(n + !n); /* just so many: a sanitizer sees a read beyond */
        memcpy(cut, b.at, n);
        load_bytes(cut, n, message);
        assert_true(!strncmp(message, "[tape_load] this ", 17));
        free(cut);
    }
    for (size_t k = 0; k < b.count; k += step) {
        b.at[k] ^= (unsigned char)(1 << k % 8);
        load_bytes(b.at, b.count, message);
        assert_true(!strncmp(message, "[tape_load] this ", 17));
        b.at[k] ^= (unsigned char)(1 << k % 8);
    }
    b.at[8] = 2;
    correct(b.at, b.count);
    load_bytes(b.at, b.count, message);
    assert_non_null(strstr(message, "this tape file has format 2, and version "));
    free(b.at);
}

/* With length and checksum corrected, so that what they say is looked at. One that loads all the
 * same is a legal tape. */
static void altered_files_that_hide_it_are_refused_or_legal(void **state) {
    (void)state;
    file_bytes  b        = a_file();
    test_random random = test_random_of("tape file", 1);
    int         refusals = 0, rounds = test_small() ? 300 : 3000;
    for (int round = 0; round < rounds; round++) {
        char           message[512];
        unsigned char *copy = malloc(b.count);
        memcpy(copy, b.at, b.count);
        for (int k = 0; k <= round % 3; k++)
            copy[24 + (size_t)(test_uniform(&random, 0, 1) * (double)(b.count - 32))] ^=
                (unsigned char)(1 << (int)test_uniform(&random, 0, 7.99));
        /* the program within has a checksum of its own */
        if (round % 2) {
            uint64_t n = cot__from_bytes(b.at + 24, 8);
            cot__to_bytes(copy + 24, n, 8);
            correct(copy + 32, n);
        }
        correct(copy, b.count);
        load_bytes(copy, b.count, message);
        refusals += message[0] != 0;
        free(copy);
    }
    assert_true(refusals > rounds / 2);
    free(b.at);
}

static void refuses_to_load(const char *path, int n, cot_var *vars, const char *sentence) {
    cot_tape *t = cot_tape_load(path, NULL, n, vars);
    assert_string_equal(cot_tape_message(t), sentence);
    for (int k = 0; vars && k < n; k++) assert_false(cot_is_valid(vars[k]));
    cot_tape_destroy(t);
}

static void what_cannot_be_loaded_is_told(void **state) {
    (void)state;
    cot_var   vars[3];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1);
    assert_int_equal(cot_tape_save(t, 1, &x, "t.cot", NULL, 0), COT_OK);
    refuses_to_load(NULL, 1, vars, "[tape_load] the path is NULL");
    refuses_to_load("t.cot", -1, vars, "[tape_load] a negative number of values: -1");
    refuses_to_load("t.cot", 2, NULL, "[tape_load] a list of 2 values is NULL");
    refuses_to_load("t.cot", 2, vars, "[tape_load] 2 values are asked for, but the file has 1 (in the file t.cot)");
    refuses_to_load("none.cot", 1, vars, "[tape_load] cannot read none.cot: No such file or directory");
    refuses_to_load(".", 1, vars, "[tape_load] cannot read .: it is a directory");
    cot_program *p = cot_compile(halve, NULL, 1, &(cot_type){COT_F64, COT_SCALAR}, 1, NULL);
    cot_program_save(p, "t.cot", NULL, 0);
    refuses_to_load("t.cot", 1, vars,
                    "[tape_load] this is no tape file: it does not begin with COTTAPE (in the file t.cot)");
    cot_program_destroy(p);
    cot_tape_destroy(t);
    unlink("t.cot");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state) {
    (void)state;
    /* bodies are derived and programs compiled, with thousands of allocations: not each of the late
     * ones fails once */
    for (long at = 0;; at += 1 + at / 32) {
        counting  c = {0};
        cot_tape *t = counted_tape(&c, false);
        cot_var   w, y = everything(t, &w);
        assert_ok(t);
        let_succeed(&c, at);
        cot_status status = cot_tape_save(t, 1, &y, "t.cot", NULL, 0);
        assert_true(status == COT_OK || status == COT_MEMORY);
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
        if (status == COT_OK) break;
    }
    for (long at = 1;; at += 1 + at / 64) {
        counting  c = {.fail_at = at, .fail_for_good = true};
        cot_var   v;
        cot_tape *t = cot_tape_load("t.cot", &(cot_options){.allocator = {counting_alloc, &c}}, 1, &v);
        bool      loaded = t && cot_tape_status(t) == COT_OK;
        if (t && !loaded) assert_int_equal(cot_tape_status(t), COT_MEMORY);
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
        if (loaded && !c.failed) break;
    }
    unlink("t.cot");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_comes_out_of_its_file_as_it_was),
        cmocka_unit_test(names_lines_and_numbers_come_back),
        cmocka_unit_test(a_tape_with_calls_runs_as_a_program),
        cmocka_unit_test(a_file_with_calls_inside_of_calls_is_refused),
        cmocka_unit_test(a_smooth_tape_is_loaded_as_one),
        cmocka_unit_test(solvers_have_second_derivatives_behind_a_file),
        cmocka_unit_test(a_solver_whose_operand_was_written_over_comes_back),
        cmocka_unit_test(a_value_that_was_captured_twice_comes_back),
        cmocka_unit_test(what_cannot_be_saved_is_told),
        cmocka_unit_test(a_failed_tape_tells_its_own_error),
        cmocka_unit_test(a_leaf_that_was_assigned_first_is_saved),
        cmocka_unit_test(cut_and_altered_files_are_refused),
        cmocka_unit_test(altered_files_that_hide_it_are_refused_or_legal),
        cmocka_unit_test(what_cannot_be_loaded_is_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
