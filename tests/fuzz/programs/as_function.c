/* as_function.c: the program once more, as a function of its leaves: cot_value_and_grad of it, and
 * the same compiled. Gradients of functions have the bits of recorded ones, and programs have the
 * bits of the function. */
#include "program.h"

#include <cotangent_program.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is run again, and for which leaves. */
typedef struct again { run *r; int n; } again;

/* The loss of all steps, whose leaves are the inputs. */
static int loss_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const again *a = user;
    outcome      unused = {0};
    run          r = *a->r;
    (void)m, (void)n;
    r.tape = xs[0].tape, r.out = &unused, r.listing = NULL, r.given = xs, r.names = r.leaves = r.errors = 0;
    frame f = {.run = &r, .stop = program_steps(r.program)};
    for (int k = 0; k < f.stop;) k = step_run(&f, k);
    int used;
    ys[0] = loss_of_frame(&f, &used);
    memcpy(a->r->lent, r.lent, sizeof r.lent);
    a->r->lends = r.lends;
    outcome_free(&unused);
    return r.errors > 0 || !cot_is_valid(ys[0]);
}

static int gradient_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    return cot_value_and_grad(loss_of, user, n, xs, &ys[0], ys + 1) != COT_OK;
}

/* ---- on a tape, and compiled ----------------------------------------------------------------- */

static void read_all(int n, const cot_var *grads, double *to) {
    for (int k = 0; k < n; k++) {
        cot_read(grads[k], to, cot_size(grads[k]));
        to += cot_size(grads[k]);
    }
}

static void *copy_of(cot_var x) {
    void *data = malloc((size_t)cot_size(x) * 8 + 8);
    if (data) cot_read_as(x, cot_dtype_of(x), data, cot_size(x));
    return data;
}

static bool on_a_tape(again *a, const cot_var *xs, double *g) {
    cot_tape *t = cot_tape_create(&(cot_options){.strict = a->r->flags & STRICT});
    cot_var   in[MOST_LEAVES], grads[MOST_LEAVES];
    for (int k = 0; k < a->n; k++) {
        void *data = copy_of(xs[k]);
        in[k] = cot_tensor(t, cot_dtype_of(xs[k]), cot_shape_of(xs[k]), data);
        free(data);
    }
    bool ok = cot_value_and_grad(loss_of, a, a->n, in, NULL, grads) == COT_OK;
    if (ok) read_all(a->n, grads, g);
    ok = ok && cot_tape_status(t) == COT_OK;
    if (!ok) outcome_wrong(a->r->out, "cot_value_and_grad: %s", cot_tape_message(t));
    cot_tape_destroy(t);
    return ok;
}

/* False: it cannot be compiled. */
static bool compiled(again *a, const cot_var *xs, double *g) {
    cot_type     types[MOST_LEAVES];
    void        *in[MOST_LEAVES], *out[MOST_LEAVES + 1] = {malloc(8)};
    for (int k = 0; k < a->n; k++) {
        types[k] = (cot_type){cot_dtype_of(xs[k]), cot_shape_of(xs[k])};
        in[k] = copy_of(xs[k]);
        out[k + 1] = copy_of(xs[k]);
    }
    cot_program *p = cot_compile(gradient_of, a, a->n, types, a->n + 1, NULL);
    bool         ok = p && cot_program_status(p) == COT_OK;
    cot_run     *r = ok ? cot_run_create(p) : NULL;
    ok = r && cot_program_run(r, (const void *const *)in, out) == COT_OK;
    cot_tape *t = cot_tape_create(NULL);
    for (int k = 0; k < a->n && ok; k++) {
        cot_read(cot_data(t, types[k].dtype, types[k].shape, out[k + 1]), g, cot_size(xs[k]));
        g += cot_size(xs[k]);
    }
    cot_tape_destroy(t);
    cot_run_destroy(r);
    cot_program_destroy(p);
    for (int k = 0; k < a->n; k++) free(in[k]), free(out[k + 1]);
    free(out[0]);
    return ok;
}

/* ---- called ---------------------------------------------------------------------------------- */

static int call_it(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return cot_program_call(user, n, xs, m, ys) != COT_OK;
}

/* The gradients by cot_backward. What has one when it is recorded has one when it is called. */
static void swept_back(again *a, cot_var loss, const cot_var *in, double *g) {
    if (cot_backward(loss) != COT_OK)
        outcome_wrong(a->r->out, "cot_backward of a call: %s", cot_tape_message(loss.tape));
    for (int k = 0; k < a->n; k++) {
        cot_read_grad(in[k], g, cot_size(in[k]));
        g += cot_size(in[k]);
    }
}

/* By a call of the compiled loss, or, nested, of a program that calls it: recorded, and by
 * cot_backward, if `swept`. False: it cannot be compiled. */
static bool called(again *a, const cot_var *xs, bool nested, bool swept, double *g, double *back) {
    cot_type     types[MOST_LEAVES];
    cot_var      in[MOST_LEAVES], grads[MOST_LEAVES], loss;
    cot_tape    *t = cot_tape_create(&(cot_options){.strict = a->r->flags & STRICT});
    for (int k = 0; k < a->n; k++) {
        void *data = copy_of(xs[k]);
        types[k] = (cot_type){cot_dtype_of(xs[k]), cot_shape_of(xs[k])};
        in[k] = cot_tensor(t, types[k].dtype, types[k].shape, data);
        free(data);
    }
    cot_program *inner = cot_compile(loss_of, a, a->n, types, 1, NULL);
    cot_program *p = nested ? cot_compile(call_it, inner, a->n, types, 1, NULL) : inner;
    bool         ok = p && cot_program_call(p, a->n, in, 1, &loss) == COT_OK;
    ok = ok && cot_grad_of(loss, a->n, in, grads) == COT_OK;
    if (ok) read_all(a->n, grads, g);
    if (ok && swept) swept_back(a, loss, in, back);
    else if (ok) read_all(a->n, grads, back);
    if (nested) cot_program_destroy(p);
    cot_program_destroy(inner);
    cot_tape_destroy(t);
    return ok;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool same(double a, double b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

void as_function(run *r, int n, const cot_var *xs, int64_t size, const double *recorded, bool swept) {
    static double g[MOST_INPUTS], c[MOST_INPUTS], b[MOST_INPUTS];
    again         a = {r, n};
    if (r->out->writes_sources || r->marked || r->errors || (r->flags & SMOOTH && r->flags & SMOOTH_TOO)) return;
    if (n == 0 || n != r->leaves || !on_a_tape(&a, xs, g)) return;
    total.functions++;
    for (int64_t i = 0; i < size; i++)
        if (!same(g[i], recorded[i]) && g[i] != recorded[i])
            outcome_wrong(r->out, "gradient, element %lld: cot_grad_of %.17g but cot_value_and_grad %.17g",
                          (long long)i, recorded[i], g[i]);
    if (!compiled(&a, xs, c)) return;
    total.compiled++;
    for (int64_t i = 0; i < size; i++)
        if (!same(g[i], c[i]))
            outcome_wrong(r->out, "gradient, element %lld: cot_value_and_grad %.17g but compiled %.17g", (long long)i,
                          g[i], c[i]);
    for (int nested = 0; nested < 2; nested++)
        if (called(&a, xs, nested, swept, c, b))
            for (int64_t i = 0; i < size; i++)
                if ((!same(g[i], c[i]) && g[i] != c[i]) || (!same(g[i], b[i]) && g[i] != b[i]))
                    outcome_wrong(r->out,
                                  "gradient, element %lld: cot_value_and_grad %.17g but %.17g, by cot_backward %.17g, "
                                  "by a call%s",
                                  (long long)i, g[i], c[i], b[i], nested ? " in a program that is called" : "");
}
