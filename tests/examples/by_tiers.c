/* by_tiers.c: every example once more: what it differentiates is run eagerly, compiled with and
 * without passes, and native, by 1, 2 and 7 threads, and must have the same bits. The example then
 * goes on, so that its text can be compared, too.
 *
 *     by_tiers 06_mlp [arguments of the example …]
 *
 * A line that differentiates in a loop is looked at when it does so for the first, second and fifth
 * time with the same operations; so is one that runs a program of its own. */
#include "by_tiers.h"
#include "tiers.h"

#include "compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the examples ---------------------------------------------------------------------------- */

/* made by CMakeLists.txt: NONE for those whose main takes no arguments */
#define NONE(name) int main_##name(void);
#define SOME(name) int main_##name(int n, char **arguments);
#include "examples.inc"
#undef NONE
#undef SOME

typedef struct example { const char *name; int (*none)(void), (*some)(int n, char **arguments); } example;
static const example examples[] = {
#define NONE(name) {#name, main_##name, NULL},
#define SOME(name) {#name, NULL, main_##name},
#include "examples.inc"
};

/* What cannot be compared: so many tapes, which cannot be programs, and the sentence that says so
 * has these words. Words NULL: the example differentiates nothing at all. An entry that is wrong is
 * an error. */
typedef struct exception { const char *example, *words; int tapes; const char *why; } exception;
static exception exceptions[] = {
    {"12_implicit", "a function of the user's", 2, "a solver counts how often it is called"},
    {"16_mnist", NULL, 0, "its images are not in the repository; 10_cnn is like it"},
    {"26_coming_from", "a function of the user's", 1, "a gradient has a rule of its own"},
};

enum { LINES = 64, SHAPES = 8 };
static struct {
    const char *name;
    int         compared, wrong, times, native;
    bool        busy; /* a function that is run for a comparison differentiates, too */
    /* how often each line has differentiated the same operations */
    struct { int line, count; uint64_t operations; } seen[LINES * SHAPES];
    int         n;
} now;

/* ---- which tapes ----------------------------------------------------------------------------- */

static uint64_t operations_of(const cot_tape *t) {
    uint64_t sum = 14695981039346656037u;
    for (uint32_t i = 0; i < t->count; i++) {
        const cot__node *n = &t->nodes[i];
        sum = (sum ^ n->op) * 1099511628211u;
        for (int k = 0; k < cot__nargs(n); k++) sum = (sum ^ cot__arg(n, k)) * 1099511628211u;
    }
    return sum;
}

/* How often the line has come with these operations; 0: it has come with enough others. */
static int times(uint64_t operations, int line) {
    int others = 0;
    for (int k = 0; k < now.n; k++) {
        if (now.seen[k].line != line) continue;
        if (now.seen[k].operations == operations) return ++now.seen[k].count;
        others++;
    }
    if (others == SHAPES || now.n == LINES * SHAPES) return 0;
    now.seen[now.n].line = line;
    now.seen[now.n].operations = operations;
    return now.seen[now.n++].count = 1;
}

/* On a tape where values are there and may be read. */
static bool may_be_taken(cot_var y) {
    return !now.busy && y.tape && cot_is_valid(y) && !cot__is_number(y) && !y.tape->mode.body && !y.tape->mode.inside &&
           !y.tape->mode.no_grad && !y.tape->mode.compiling && cot_requires_grad(y) && cot_size(y) == 1;
}

/* ---- one of them ----------------------------------------------------------------------------- */

static void refused(const taken *s, int line) {
    for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++) {
        exception *e = &exceptions[k];
        if (strcmp(e->example, now.name) || !e->words || !strstr(s->why, e->words)) continue;
        e->tapes--; /* of those that are still to come */
        return;
    }
    fprintf(stderr, "%s:%d: what is differentiated here cannot be a program, and is not listed: %s\n", now.name, line,
            s->why);
    now.wrong++;
}

/* Is it to be looked at? The first of a line is also compiled natively. */
static bool is_one_of(int time, bool *native) {
    *native = time == 1;
    return time == 1 || time == 2 || time == 5;
}
static bool is_taken(cot_var y, int line, bool *native) {
    return is_one_of(may_be_taken(y) ? times(operations_of(y.tape), line) : 0, native);
}

static void compare_taken(taken *s, cot_var y, int line, bool native) {
    char where[100];
    snprintf(where, sizeof where, "%s:%d", now.name, line);
    int before = now.compared;
    now.busy = true;
    now.wrong += taken_by_tiers(s, y, native && COT_HAS_CC, where, &now.compared);
    now.busy = false;
    now.times += now.compared > before;
    now.native += s->native;
}

static void look(cot_var y, int line) {
    taken s;
    bool  native;
    if (!is_taken(y, line, &native)) return;
    if (taken_open(&s, y)) compare_taken(&s, y, line, native);
    else refused(&s, line);
    taken_close(&s);
}

/* At a sum of all elements. What that records is forgotten. */
static void look_at_sum(int m, const cot_var *ys, const cot_var *seed, int line) {
    cot_tape *t = ys[0].tape;
    if (now.busy || !cot_is_valid(ys[0]) || t->mode.body) return;
    cot_mark mark = cot_tape_mark(t);
    cot_var  all = cot_number(0);
    for (int k = 0; k < m; k++) all = cot_add(all, cot_sum(seed ? cot_mul(ys[k], *seed) : ys[k], COT_ALL));
    look(all, line);
    cot_tape_rewind(t, mark);
}

/* ---- in place of the library's --------------------------------------------------------------- */

/* Where it is an error, there is nothing to compare. */
cot_status tiers_backward(cot_var y, int line) {
    taken s;
    bool  native;
    if (!is_taken(y, line, &native)) return cot_backward(y);
    bool fine = taken_open(&s, y);
    if (fine) taken_before(&s, y.tape);
    cot_status status = cot_backward(y);
    if (fine) taken_after(&s, y.tape);
    if (fine && status == COT_OK) compare_taken(&s, y, line, native);
    else if (status == COT_OK) refused(&s, line);
    taken_close(&s);
    return status;
}

cot_status tiers_backward_seeded(cot_var y, cot_var seed, int line) {
    look_at_sum(1, &y, &seed, line);
    return (cot_backward_seeded)(y, seed);
}

cot_status tiers_grad_of(cot_var y, int n, const cot_var *xs, cot_var *grads, int line) {
    look(y, line);
    return (cot_grad_of)(y, n, xs, grads);
}

cot_status tiers_value_and_grad(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *grads, int line) {
    cot_status status = cot_value_and_grad(f, user, n, xs, y, grads);
    if (status == COT_OK && y) look(*y, line);
    return status;
}

cot_status tiers_hvp(cot_var y, int n, const cot_var *xs, const double *v, double *out, int line) {
    look(y, line);
    return cot_hvp(y, n, xs, v, out);
}

cot_status tiers_sparse_jacobian(const cot_sparse_plan *plan, int m, const cot_var *ys, int n, const cot_var *xs,
                                 double *values, int line) {
    look_at_sum(m, ys, NULL, line);
    return cot_sparse_jacobian(plan, m, ys, n, xs, values);
}

/* The residuals at the beginning; what it sums up are their squares. */
cot_status tiers_least_squares(int n, const cot_var *xs, cot_function f, void *user,
                               const cot_least_squares_options *options, cot_least_squares_report *report, int line) {
    cot_mark mark = cot_tape_mark(xs[0].tape);
    cot_var  squares = cot_square(f(n, xs, user));
    look_at_sum(1, &squares, NULL, line);
    cot_tape_rewind(xs[0].tape, mark);
    return cot_least_squares(n, xs, f, user, options, report);
}

/* An example's own program is held to what its function records, on every run, and by that is
 * known from what it was compiled. */
cot_program *tiers_compile(cot_fn f, void *user, int n, const cot_type *types, int m,
                           const cot_compile_options *options) {
    cot_compile_options o = options ? *options : (cot_compile_options){0};
    o.verify = true;
    return cot_compile(f, user, n, types, m, &o);
}

cot_status tiers_program_run(cot_run *r, const void *const *inputs, void *const *outputs, int line) {
    taken s;
    bool  native;
    if (cot_run_status(r) == COT_OK && is_one_of(times(0, line), &native)) {
        taken_compiled(&s, r->p, inputs);
        compare_taken(&s, COT_NONE, line, native);
        taken_close(&s);
    }
    now.busy = true;
    cot_status status = cot_program_run(r, inputs, outputs);
    now.busy = false;
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Is what was compared what the list says? */
static void judge(void) {
    bool nothing = false;
    for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++) {
        const exception *e = &exceptions[k];
        if (strcmp(e->example, now.name)) continue;
        nothing |= !e->words;
        if (e->words ? e->tapes == 0 : now.compared == 0) continue;
        fprintf(stderr, "%s: it is listed (%s), but %s; mend the entry\n", now.name, e->why,
                e->tapes < 0 ? "more of it cannot be compared" : "more of it can be compared");
        now.wrong++;
    }
    if (!nothing && now.compared == 0) fprintf(stderr, "%s: nothing was compared\n", now.name), now.wrong++;
}

int main(int n, char **arguments) {
    const example *e = NULL;
    for (size_t k = 0; n > 1 && k < sizeof examples / sizeof *examples; k++)
        if (!strcmp(examples[k].name, arguments[1])) e = &examples[k];
    if (!e) return fprintf(stderr, "by_tiers: give the name of an example\n"), 1;
    unsetenv("COTANGENT_NATIVE");
    now.name = e->name;
    int status = e->none ? e->none() : e->some(n - 1, arguments + 1);
    judge();
    fprintf(stderr, "%s: %d times, %d of them native, %d results compared, %d wrong\n", now.name, now.times, now.native,
            now.compared, now.wrong);
    return status != 0 || now.wrong > 0;
}
