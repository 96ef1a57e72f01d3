/* through_file.c: the tape of a program, saved and loaded. What comes out of the file has the bits
 * of what went in, and sweeps give the same gradients. */
#include "program.h"

#include <cotangent_program.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

static bool same(double a, double b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

static bool is_smooth(const run *r) { return (r->flags & SMOOTH) && (r->flags & SMOOTH_TOO); }

/* Derivatives that no leaf can change are recorded as if one could. The file knows better, and a
 * sweep from there refuses, where the first one gave zeros. */
static bool is_known_constant(const cot_tape *t, int n, const cot_var *xs, const double *gradient) {
    if (!strstr(cot_tape_message(t), "depends on no leaf")) return false;
    for (int k = 0; k < n; k++)
        for (int64_t i = 0, size = cot_size(xs[k]); i < size; i++)
            if (*gradient++ != 0) return false;
    return true;
}

/* Zeros of either sign are the same gradient. */
static void compare(run *r, cot_var loss, cot_var again, int n, const cot_var *xs, const double *gradient) {
    static double g[MOST_INPUTS];
    if (!same(cot_value(loss), cot_value(again)))
        outcome_wrong(r->out, "the loss is %.17g, and %.17g out of a file", cot_value(loss), cot_value(again));
    if (!gradient) return;
    /* what was written over is there again, and a smooth tape then sees that it sits on a kink */
    if (cot_backward(again) == COT_GRAD && (is_smooth(r) || is_known_constant(again.tape, n, xs, gradient))) return;
    for (int k = 0; k < n; k++) {
        int64_t size = cot_size(xs[k]);
        if (cot_read_grad(xs[k], g, size) != COT_OK)
            outcome_wrong(r->out, "a sweep out of a file: %s", cot_tape_message(again.tape));
        for (int64_t i = 0; i < size && cot_tape_status(again.tape) == COT_OK; i++)
            if (!same(g[i], gradient[i]) && g[i] != gradient[i])
                outcome_wrong(r->out, "gradient %lld of leaf %d is %.17g, and %.17g out of a file", (long long)i, k,
                              gradient[i], g[i]);
        gradient += size;
    }
}

/* What cannot be saved, as a function of the user's, is left alone; by these words alone. */
static bool is_known_refusal(const char *why) {
    static const char *const known[] = {" cannot be saved yet: ", "values are computed again from leaves and constants",
                                        "it is solved again from what it has read"};
    for (int k = 0; k < (int)(sizeof known / sizeof *known); k++)
        if (strstr(why, known[k])) return true;
    return false;
}

void through_file(run *r, cot_var loss, int n, const cot_var *xs, const double *gradient) {
    char    path[64];
    cot_var vars[1 + MOST_LEAVES] = {loss};
    memcpy(vars + 1, xs, (size_t)n * sizeof *xs);
    snprintf(path, sizeof path, "%s/cotangent-program-%ld.tape", P_tmpdir, (long)getpid());
    char why[512] = "";
    if (cot_tape_save(r->tape, 1 + n, vars, path, why, sizeof why) != COT_OK) {
        if (!is_known_refusal(why)) outcome_wrong(r->out, "the tape cannot be saved: %s", why);
        return;
    }
    cot_options how = {.strict = r->flags & STRICT, .smooth = is_smooth(r)};
    cot_tape   *t = cot_tape_load(path, &how, 1 + n, vars);
    if (t && cot_tape_status(t) == COT_OK) compare(r, loss, vars[0], n, vars + 1, gradient);
    else if (t) outcome_wrong(r->out, "a file that was saved does not load: %s", cot_tape_message(t));
    cot_tape_destroy(t);
    unlink(path);
    total.files++;
}
