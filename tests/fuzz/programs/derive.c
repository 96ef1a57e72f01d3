/* derive.c: the questions at the end of a program: values, then one loss and its derivatives in
 * every mode.
 *
 * Between two ways of running, all answers must agree in every bit. Within one run these checks are
 * made, and the first failure is reported:
 *
 *   - recorded gradients have the bits of those in numbers (f64 and f32, and no bodies);
 *   - forward and reverse mode agree: <dy, J v> = <Jᵀ dy, v>;
 *   - sparse Jacobians and Hessians agree with dense ones, and entries that the pattern lacks are
 *     zero;
 *   - a Taylor series has the tangent as its first derivative;
 *   - so have those of the program as a function, and compiled (as_function.c);
 *   - the tape comes out of a file as it went in (through_file.c);
 *   - the tape is well formed.
 *
 * Where rounding may differ, half of the digits must agree (as in cot_sparse_check), relative to Σ
 * |adjoint| |tangent| over all values on the way. This sum bounds the effect of rounding at any of
 * them on the result, but for cancellation inside one operation. Operations that amplify without a
 * bound set run.ill. Numbers that are not finite are compared as bits only. */
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double half_digits = 1.0 / (1 << 26);

enum { MOST_DENSE = 48 };

typedef struct state {
    frame  *f;
    run    *r;
    cot_var xs[MOST_LEAVES];
    int     n;
    int64_t size; /* elements of all leaves */
    double  direction[MOST_INPUTS], gradient[MOST_INPUTS];
    bool    swept; /* cot_backward has succeeded: the gradient can be compared with others */
    cot_var loss;
} state;

static bool fine(state *s) { return outcome_status(s->r->out, s->r->tape); }

/* Elements of vars, in order, into `out`. */
static bool read_all(int n, const cot_var *xs, double *out) {
    for (int k = 0; k < n; k++) {
        if (cot_read(xs[k], out, cot_size(xs[k])) != COT_OK) return false;
        out += cot_size(xs[k]);
    }
    return true;
}

static void keep(state *s, const char *what, int64_t n, const double *numbers) {
    outcome_open(s->r->out, "%s", what);
    for (int64_t i = 0; i < n; i++) outcome_add(s->r->out, numbers[i]);
}

/* Are both the same number? Zeros of either sign are, because a sweep in numbers skips nodes with a
 * zero adjoint. */
static bool same(double a, double b) { return (isnan(a) && isnan(b)) || a == b; }

/* May rounding be judged? Not in few digits, nor where numbers around 1 stand beside such as
 * 1e308, which swallow them. */
static bool judges_rounding(const state *s) {
    return !s->r->narrow && !s->r->single && !s->r->ill && !(s->r->flags & SPECIAL);
}

/* All values that can still be read; the others are taken out of the frame. */
static void read_values(state *s) {
    int count = 0;
    for (int k = 0; k < s->f->count; k++) {
        value v = s->f->at[k];
        outcome_open(s->r->out, "v%d %s", v.name, shape_text(cot_shape_of(v.var)));
        if (outcome_value(s->r->out, v.var))
            s->f->at[count++] = v;
        else { /* a sentence, whose numbers of nodes may differ */
            outcome_open(s->r->out, "status of v%d", v.name);
            outcome_status(s->r->out, s->r->tape), s->r->errors++;
        }
    }
    s->f->count = count;
}

cot_var loss_of_frame(const frame *f, int *used) {
    cot_var loss = cot_constant(f->run->tape, 0.25);
    *used = 0;
    for (int k = f->count - 1; k >= 0 && *used < 4; k--) {
        value v = f->at[k];
        if (!is_float(v, no_value) || !cot_requires_grad(v.var)) continue;
        ++*used;
        cot_var sum = cot_sum(v.var, (cot_axes){-1, false, {0}});
        loss        = cot_add(loss, cot_mul(cot_cast(sum, COT_F64), cot_number(1.0 / (1 << *used))));
    }
    return loss;
}

static void make_loss(state *s) {
    int used;
    s->loss = loss_of_frame(s->f, &used);
    if (s->r->listing)
        fprintf(s->r->listing, "    the loss: the sums of the last %d floats, times 1/2, 1/4, …\n", used);
    outcome_open(s->r->out, "status of the loss");
    fine(s);
}

/* In some ways the sweep is rehearsed before: it must not show. */
static void report(state *s) {
    cot_memory told;
    if (s->r->way->grain || s->r->way->drops) cot_tape_memory(s->r->tape, &told, NULL);
}

static void in_numbers(state *s) {
    double *g = s->gradient;
    cot_tape_zero_grads(s->r->tape);
    report(s);
    outcome_open(s->r->out, "status of cot_backward");
    cot_backward(s->loss);
    s->swept = fine(s);
    total.gradients += s->swept && s->r->way == ways;
    for (int k = 0; k < s->n; k++) {
        cot_read_grad(s->xs[k], g, cot_size(s->xs[k]));
        g += cot_size(s->xs[k]);
    }
    outcome_open(s->r->out, "status of gradients");
    if (fine(s))
        keep(s, "gradients by cot_backward", s->size, s->gradient);
    else
        s->size = 0;
}

static bool all_finite(int64_t n, const double *x) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static bool recorded(state *s) {
    static double g[MOST_INPUTS];
    cot_var       grads[MOST_LEAVES];
    outcome_open(s->r->out, "status of cot_grad_of");
    cot_grad_of(s->loss, s->n, s->xs, grads);
    if (!fine(s)) return false;
    bool read = read_all(s->n, grads, g);
    outcome_open(s->r->out, "status of recorded gradients");
    if (!fine(s) || !read) return false;
    keep(s, "gradients by cot_grad_of", s->size, g);
    bool   exact   = !s->r->bodies;
    double largest = 1.0 / (1 << 20);
    for (int64_t i = 0; i < s->size; i++) largest = fmax(largest, fabs(g[i]));
    bool judge = s->swept && !s->r->narrow && (exact || (all_finite(s->size, g) && judges_rounding(s)));
    for (int64_t i = 0; i < s->size && judge; i++)
        if (isnan(g[i]) && (s->r->flags & SPECIAL))
            continue; /* nothing is skipped there, and 0 times infinity is NaN */
        else if (exact ? !same(g[i], s->gradient[i]) : !(fabs(g[i] - s->gradient[i]) <= half_digits * largest))
            (exact ? outcome_wrong : outcome_far)(s->r->out,
                                                  "gradient, element %lld: cot_backward %.17g but cot_grad_of %.17g",
                                                  (long long)i, s->gradient[i], g[i]);
    if (s->r->way == ways) as_function(s->r, s->n, s->xs, s->size, g, s->swept);
    return true;
}

/* Σ |adjoint| |tangent| over all values of the frame; NaN or infinite where it cannot be had. */
static double flow(state *s) {
    cot_var ys[MOST_VALUES];
    int     m    = 0;
    int64_t size = 0;
    double  sum = 0, one = 1;
    for (int k = 0; k < s->f->count; k++) {
        value v = s->f->at[k];
        if (!is_float(v, no_value) || !cot_requires_grad(v.var)) continue;
        ys[m++] = v.var;
        size += cot_size(v.var);
    }
    double *adjoint = calloc((size_t)size + 1, sizeof *adjoint), *tangent = calloc((size_t)size + 1, sizeof *tangent);
    if (adjoint && tangent && m > 0) {
        cot_vjps(1, 1, &s->loss, &one, m, ys, adjoint);
        cot_jvps(1, s->n, s->xs, s->direction, m, ys, tangent);
        for (int64_t i = 0; i < size; i++) sum += fabs(adjoint[i]) * fabs(tangent[i]);
    }
    if (!adjoint || !tangent || cot_tape_status(s->r->tape) != COT_OK) sum = INFINITY;
    cot_tape_clear_error(s->r->tape);
    free(adjoint);
    free(tangent);
    return sum;
}

static void forward(state *s) {
    double  moved = 0, moved_again = NAN, back = 0, series[2] = {0};
    cot_var tangents[MOST_LEAVES];
    double *d = s->direction;
    outcome_open(s->r->out, "status of cot_jvps");
    cot_jvps(1, s->n, s->xs, s->direction, 1, &s->loss, &moved);
    if (!fine(s)) return;
    keep(s, "the tangent by cot_jvps", 1, &moved);
    s->r->out->tangent = moved;

    for (int k = 0; k < s->n; k++) { /* in the dtype of each leaf, as cot_jvps reads them */
        cot_shape shape = cot_shape_of(s->xs[k]);
        tangents[k]     = cot_cast(cot_data(s->r->tape, COT_F64, shape, d), cot_dtype_of(s->xs[k]));
        d += cot_size(s->xs[k]);
    }
    cot_var dy = cot_jvp(s->loss, s->n, s->xs, tangents);
    outcome_open(s->r->out, "status of cot_jvp");
    if (fine(s) && cot_is_valid(dy)) {
        double kept = cot_value(dy);
        keep(s, "the tangent by cot_jvp", 1, &kept);
        moved_again = kept;
    }
    outcome_open(s->r->out, "status of cot_taylor_values");
    cot_taylor_values(s->loss, s->n, s->xs, 1, s->direction, 1, series);
    bool told = fine(s);
    if (told) keep(s, "the series", 2, series);

    for (int64_t i = 0; i < s->size; i++) back += s->gradient[i] * s->direction[i];
    if (!s->swept || !judges_rounding(s) || !isfinite(moved) || !all_finite(s->size, s->gradient)) return;
    double bound     = half_digits * (flow(s) + 1.0 / (1 << 20));
    s->r->out->scale = bound;
    if (!isfinite(bound)) return;
    total.judged += s->r->way == ways;
    if (fabs(moved - back) > bound)
        outcome_far(s->r->out, "forward %.17g but reverse %.17g, which may differ by %.3g", moved, back, bound);
    if (isfinite(moved_again) && fabs(moved - moved_again) > bound)
        outcome_far(s->r->out, "cot_jvps %.17g but cot_jvp %.17g, which may differ by %.3g", moved, moved_again, bound);
    if (told && isfinite(series[1]) && fabs(series[1] - moved) > bound)
        outcome_far(s->r->out, "tangent %.17g but the series says %.17g, which may differ by %.3g", moved, series[1],
                    bound);
}

/* Compares the entries of a plan with a dense matrix, relative to its largest entry. If all entries
 * are below 2^-20, they are the result of cancellation between numbers around 1, and are compared
 * relative to 2^-20. */
static void compare_sparse(state *s, const char *what, const cot_sparse_plan *plan, const double *values,
                           const double *dense) {
    cot_sparse_info info    = cot_sparse_plan_info(plan);
    int64_t         size    = info.rows * info.cols;
    double          largest = 1.0 / (1 << 20), *full = calloc((size_t)size + 1, sizeof *full);
    if (!full) return;
    for (int64_t i = 0; i < info.rows; i++)
        for (int64_t e = info.row_start[i]; e < info.row_start[i + 1]; e++)
            full[i * info.cols + info.col[e]] = values[e];
    for (int64_t i = 0; i < size; i++) largest = fmax(largest, fabs(dense[i]));
    bool judge = all_finite(size, dense) && all_finite(size, full) && judges_rounding(s);
    total.sparse += judge && s->r->way == ways;
    for (int64_t i = 0; i < size && judge; i++)
        if (fabs(full[i] - dense[i]) > half_digits * largest)
            outcome_far(s->r->out, "%s, row %lld column %lld: sparse %.17g but dense %.17g", what,
                        (long long)(i / info.cols), (long long)(i % info.cols), full[i], dense[i]);
    keep(s, what, size, full);
    free(full);
}

static void sparse_jacobian(state *s) {
    value y = no_value;
    for (int k = s->f->count - 1; k >= 0 && y.name < 0; k--)
        if (is_float(s->f->at[k], no_value) && cot_size(s->f->at[k].var) > 0 && cot_size(s->f->at[k].var) <= MOST_DENSE)
            y = s->f->at[k];
    if (y.name < 0 || s->size > MOST_DENSE) return;
    static double    dense[MOST_DENSE * MOST_DENSE], values[MOST_DENSE * MOST_DENSE];
    cot_mode         mode = (cot_mode)(program_head(s->r->program, 3) % 3);
    cot_sparse_plan *plan = cot_sparse_jacobian_plan(1, &y.var, s->n, s->xs, mode);
    outcome_open(s->r->out, "status of the plan of a Jacobian");
    if (!fine(s)) return;
    outcome_open(s->r->out, "status of cot_sparse_jacobian");
    cot_sparse_jacobian(plan, 1, &y.var, s->n, s->xs, values);
    bool done = fine(s);
    outcome_open(s->r->out, "status of cot_jacobian");
    cot_jacobian(1, &y.var, s->n, s->xs, mode, dense);
    if (fine(s) && done) {
        keep(s, "the dense Jacobian", cot_size(y.var) * s->size, dense);
        compare_sparse(s, "the sparse Jacobian", plan, values, dense);
    }
    cot_sparse_plan_destroy(plan);
}

static void sparse_hessian(state *s) {
    if (s->size > 24) return;
    static double    dense[MOST_DENSE * MOST_DENSE], values[MOST_DENSE * MOST_DENSE];
    cot_sparse_plan *plan = cot_sparse_hessian_plan(s->loss, s->n, s->xs);
    outcome_open(s->r->out, "status of the plan of a Hessian");
    if (!fine(s)) return;
    outcome_open(s->r->out, "status of cot_sparse_hessian");
    cot_sparse_hessian(plan, s->loss, s->n, s->xs, values);
    bool done = fine(s);
    outcome_open(s->r->out, "status of cot_hessian");
    cot_hessian(s->loss, s->n, s->xs, dense);
    if (fine(s) && done) {
        keep(s, "the dense Hessian", s->size * s->size, dense);
        compare_sparse(s, "the sparse Hessian", plan, values, dense);
    }
    cot_sparse_plan_destroy(plan);
}

/* The reports about the result for people: their words must be the same in every way. */
static void words(state *s) {
    static char text[20000];
    cot_explain(s->loss, text, sizeof text);
    outcome_open(s->r->out, "what cot_explain says");
    outcome_text(s->r->out, text);
    cot_report(s->loss, text, sizeof text);
    outcome_open(s->r->out, "what cot_report says");
    outcome_text(s->r->out, text);
    FILE *out = fopen("/dev/null", "w");
    if (!out) return;
    cot_tape_print(s->r->tape, out);
    cot_tape_print_sweep(s->loss, out);
    fclose(out);
    cot_tape_clear_error(s->r->tape);
}

void derive(frame *f) {
    static state s;
    char         why[200];
    s         = (state){.f = f, .r = f->run};
    chooser c = {.byte = (const uint8_t *)"direction…", .at = STEP, .mixed = program_head(f->run->program, 2)};
    read_values(&s);
    for (int k = 0; k < s.r->leaves; k++) {
        if (!cot_is_valid(s.r->leaf[k].var) || s.size + cot_size(s.r->leaf[k].var) > MOST_INPUTS) continue;
        s.xs[s.n++] = s.r->leaf[k].var;
        s.size += cot_size(s.r->leaf[k].var);
    }
    for (int64_t i = 0; i < s.size; i++) s.direction[i] = (double)choose(&c, 17) / 8 - 1;
    if (s.n > 0) {
        make_loss(&s);
        in_numbers(&s);
        if (s.r->way == ways && cot_is_valid(s.loss) && cot_tape_status(s.r->tape) == COT_OK)
            through_file(s.r, s.loss, s.n, s.xs, s.swept && s.size ? s.gradient : NULL);
    }
    if (s.n > 0 && s.size > 0) {
        recorded(&s);
        forward(&s);
        if (s.r->program->size > 2 && program_head(s.r->program, 1) % 2 == 0) sparse_jacobian(&s);
        if (program_head(s.r->program, 1) % 4 == 1) sparse_hessian(&s);
        if (program_head(s.r->program, 1) % 8 == 3) words(&s);
    }
    if (cot_tape_check(s.r->tape, why, sizeof why) != COT_OK) outcome_wrong(s.r->out, "the tape: %s", why);
}
