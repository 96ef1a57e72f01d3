/* implicit.c: x with F(x, θ) = 0, however it was found, and its derivatives by the implicit function theorem:
 *
 *     dx = -(∂F/∂x)⁻¹ ∂F/∂θ dθ        θ̄ += -(∂F/∂θ)ᵀ λ,  (∂F/∂x)ᵀ λ = x̄
 *
 * Fixed points are roots of x - g(x, θ), minima roots of a gradient. */
#include "diff/find_kinks.h"
#include "diff/implicit.h"
#include "ops/structural.h"

#include <string.h>

typedef struct root {
    const char        *name;
    const cot__region *f; /* inputs x, θ; one result like x */
    cot_solver         solver;
    void              *user;
    cot_solve_options  options;
} root;

/* ---- F, played ------------------------------------------------------------------------------------------------------------------------ */

static int operand_count(const root *q) { return q->f->n + q->f->captures; } /* x0, θ, captures: the places of the player */

static cot_var play_f(cot_tape *t, const root *q, const cot_var *values) {
    cot__player p;
    cot_var     y = INVALID(t);
    if (!cot__player_open(&p, t, q->name, q->f)) return y;
    memcpy(p.value, values, (size_t)operand_count(q) * sizeof *values);
    cot__play(&p, &y);
    cot__player_close(&p);
    return y;
}

/* F near a point, as the linear functions v -> ∂F/∂x v and v -> (∂F/∂x)ᵀ v. */
typedef struct near_point { cot_tape *t; const root *q; cot_var x; const cot_var *values; } near_point;

static cot_var f_at_alias(const near_point *at, cot_var *alias) {
    cot_tape *t = at->t;
    cot_var  *values = cot__arena(t, (size_t)operand_count(at->q) * sizeof *values + 8, at->q->name);
    if (!values) return INVALID(t);
    memcpy(values, at->values, (size_t)operand_count(at->q) * sizeof *values);
    *alias = values[0] = cot__alias(at->x);
    return cot__failed(*alias) ? *alias : play_f(t, at->q, values);
}

static int forth(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const near_point *at = user;
    cot_var           alias, y = f_at_alias(at, &alias);
    (void)n, (void)m;
    if (cot__failed(y)) return 0;
    uint32_t x = cot__index(alias), dx = cot__index(xs[0]), out = cot__index(y);
    cot__jvp_recorded(at->t, at->q->name, 1, &out, 1, &x, &dx, ys);
    return 0;
}

static int back(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const near_point *at = user;
    cot_var           alias, y = f_at_alias(at, &alias);
    (void)n, (void)m;
    if (cot__failed(y)) return 0;
    uint32_t x = cot__index(alias), out = cot__index(y);
    cot__vjp_recorded(at->t, at->q->name, 1, &out, xs, 1, &x, ys);
    return 0;
}

/* ---- finding it ---------------------------------------------------------------------------------------------------------------------------- */

static double norm_of(const cot_tape *t, cot_var y) {
    cot__view   v = cot__view_of(t, cot__index(y));
    int64_t     n = cot__count(v.ndim, v.shape);
    double      s = 0, buf[COT__BLOCK];
    cot__cursor c;
    cot__cursor_open(&c, &v, COT_F64);
    for (int64_t done = 0; done < n; done += COT__BLOCK) {
        int           len = n - done < COT__BLOCK ? (int)(n - done) : COT__BLOCK;
        const double *p = cot__cursor_load(&c, len, buf);
        for (int k = 0; k < len; k++) s += p[k] * p[k];
    }
    return sqrt(s);
}

/* |F| with x in the memory `raw`, of the dtype and shape of operand 0; with `step`, x becomes x - step · (∂F/∂x)⁻¹ F first. NaN after an error. */
static double residual_at(cot_tape *t, const root *q, const uint32_t *args, const void *raw) {
    cot_mark m = cot__mark(t);
    cot_var *values = cot__arena(t, (size_t)operand_count(q) * sizeof *values + 8, q->name);
    double   norm = (double)NAN;
    if (values) {
        for (int k = 0; k < operand_count(q); k++) values[k] = VAR(t, args[k]);
        values[0] = cot_data(t, cot__dtype_at(&t->nodes[args[0]]), cot__shape_at(t, args[0]), raw);
        cot_var y = play_f(t, q, values);
        if (t->status == COT_OK) norm = norm_of(t, y);
    }
    cot__rewind(t, m);
    return norm;
}

/* dx = (∂F/∂x)⁻¹ F at x, into `step`. */
static bool newton_step(cot_tape *t, const root *q, const uint32_t *args, const void *raw, double *step, int64_t n) {
    cot_mark m = cot__mark(t);
    cot_var *values = cot__arena(t, (size_t)operand_count(q) * sizeof *values + 8, q->name);
    bool     ok = false;
    if (values) {
        for (int k = 0; k < operand_count(q); k++) values[k] = VAR(t, args[k]);
        values[0] = cot_data(t, cot__dtype_at(&t->nodes[args[0]]), cot__shape_at(t, args[0]), raw);
        near_point at = {t, q, values[0], values};
        cot_var    y = play_f(t, q, values), dx = t->status == COT_OK ? cot__linear_solve(q->name, forth, &at, y, NULL) : y;
        if (t->status == COT_OK) {
            cot__view v = cot__view_of(t, cot__index(dx));
            ok = cot__read_view(t, q->name, &v, COT_F64, step, n) == COT_OK;
        }
    }
    cot__rewind(t, m);
    return ok;
}

static void move(void *to, const void *from, cot_dtype dtype, int64_t n, const double *step, double by) {
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k * cot__dtype_size(dtype);
        cot__store_f64((char *)to + at, dtype, cot__load_f64((const char *)from + at, dtype) - by * step[k]);
    }
}

/* Newton's method with halved steps where a whole one does not bring the residual down, until it cannot be brought down any more. */
static bool newton(cot_tape *t, const root *q, const uint32_t *args, cot_array *x) {
    size_t  bytes = (size_t)x->size * (sizeof(double) + 8) + 8;
    double *step = cot__alloc(&t->al, bytes), first = residual_at(t, q, args, x->data), now = first;
    void   *next = step + x->size;
    int     most = q->options.iterations > 0 ? q->options.iterations : 100, k = 0;
    double  goal = cot__solve_tolerance(&q->options, x->dtype, 1e-10, 1e-4);
    if (!step) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for its vectors", q->name, bytes);
        return false;
    }
    for (; k < most && now > 0 && t->status == COT_OK; k++) {
        if (!newton_step(t, q, args, x->data, step, x->size)) {
            if (t->status == COT_VALUE) cot_tape_clear_error(t); /* the system was singular: said below, with the residual */
            break;
        }
        double by = 1, then = (double)NAN;
        for (; by > 1e-4; by /= 2) {
            move(next, x->data, x->dtype, x->size, step, by);
            then = residual_at(t, q, args, next);
            if (then < now) break;
        }
        if (!(then < now)) break; /* rounding, or stuck */
        memcpy(x->data, next, (size_t)(x->size * cot__dtype_size(x->dtype)));
        now = then;
    }
    cot__free(&t->al, step, bytes);
    if (t->status == COT_OK && !(now <= goal * (1 + first)))
        cot__fail(t, COT_VALUE, "[%s] the solver did not converge: the residual is %g after %d steps, from %g at the start; give a better start, or a solver of "
                                "your own", q->name, now, k, first);
    return t->status == COT_OK;
}

static bool call_solver(cot_tape *t, const root *q, const uint32_t *args, cot_array *x) {
    int        n = q->f->n - 1;
    cot_array *theta = cot__arena(t, ((size_t)n + 1) * sizeof *theta, q->name);
    if (!theta) return false;
    for (int k = 0; k < n; k++) {
        cot_var dense = cot_copy(VAR(t, args[1 + k]));
        if (cot__failed(dense)) return false;
        theta[k] = (cot_array){cot_dtype_of(dense), cot_shape_of(dense), cot_size(dense), NULL};
        if (!theta[k].shape.ndim) theta[k].data = cot__arena(t, 8, q->name);
        if (!theta[k].shape.ndim && theta[k].data) memcpy(theta[k].data, cot__view_of(t, cot__index(dense)).data, 8);
        if (theta[k].shape.ndim) theta[k].data = cot__view_of(t, cot__index(dense)).data;
    }
    double      first = residual_at(t, q, args, x->data);
    const char *inside = t->inside;
    uint32_t    from = t->inside_from;
    t->inside = q->name, t->inside_from = t->count;
    int code = q->solver(n, theta, x, q->user);
    t->inside = inside, t->inside_from = from;
    double now = residual_at(t, q, args, x->data);
    if (code)
        cot__fail(t, COT_CUSTOM, "[%s] the solver failed with code %d; the residual is %g", q->name, code, now);
    else if (q->options.tolerance > 0 && !(now <= q->options.tolerance * (1 + first)))
        cot__fail(t, COT_VALUE, "[%s] the residual of what the solver found is %g, from %g at the start; a tolerance of %g was asked", q->name, now, first,
                  q->options.tolerance);
    return t->status == COT_OK;
}

/* ---- the operation -------------------------------------------------------------------------------------------------------------------------- */

static cot_var record_root(cot_tape *t, const root *q, const uint32_t *args) {
    cot__attr  *attr = cot__attr_make(t, q->name, 0, NULL, operand_count(q), args);
    cot__view   v = cot__view_of(t, args[0]);
    cot_shape   shape = cot__shape_at(t, args[0]);
    cot__result r;
    uint8_t     mask = t->active_mask;
    if (!attr || !cot__result_open(t, &r, q->name, v.dtype, shape.ndim, shape.dim)) return INVALID(t);
    v = cot__view_of(t, args[0]);
    cot__copy(&r.view, &v); /* where to start */
    cot_array x = {v.dtype, shape, cot__count(shape.ndim, shape.dim), r.view.data};
    cot_mark  m = cot__mark(t);
    t->active_mask = 0;
    bool ok = true;
    if (!t->body && x.size > 0) ok = q->solver ? call_solver(t, q, attr->args, &x) : newton(t, q, attr->args, &x); /* in a body the start is an example */
    t->active_mask = mask;
    cot__rewind(t, m);
    if (!ok) return INVALID(t);
    attr->pointer = q;
    return cot__result_push(t, &r, OP_root, (int)attr->nargs, attr->args, attr);
}

static cot_var *values_of(cot__rule *r, const root *q) {
    cot_var *values = cot__arena(r->t, ((size_t)operand_count(q) + 1) * sizeof *values, q->name);
    for (int k = 1; values && k < operand_count(q); k++) values[k] = cot__rule_x(r, k);
    if (values) values[0] = cot__rule_z(r);
    return r->t->status == COT_OK ? values : NULL;
}

static void root_vjp(cot__rule *r) {
    const root *q = cot__rule_attr(r)->pointer;
    cot_tape   *t = r->t;
    cot_var    *values = values_of(r, q), *outer = values ? values_of(r, q) : NULL;
    int         n = operand_count(q), count = 0;
    uint32_t   *x = outer ? cot__arena(t, ((size_t)n + 1) * sizeof *x, q->name) : NULL;
    cot_var    *grads = x ? cot__arena(t, ((size_t)n + 1) * sizeof *grads, q->name) : NULL;
    if (!grads) return;
    near_point at = {t, q, values[0], values};
    cot_var    lambda = cot__linear_solve(q->name, back, &at, r->g, NULL);
    if (cot__failed(lambda)) return;
    uint8_t mask = t->active_mask;
    t->active_mask = COT__ACTIVE;
    for (int k = 1; k < n; k++) {
        if (!cot__rule_wants(r, k)) continue;
        outer[k] = cot__alias(outer[k]);
        x[count++] = cot__index(outer[k]);
    }
    cot_var  y = play_f(t, q, outer), seed = cot_neg(lambda);
    uint32_t out = cot__index(y);
    x[count] = r->node; /* the equation is differentiated there, too */
    if (t->status == COT_OK && cot__smooth_between(t, q->name, 1, &out, count + 1, x))
        cot__vjp_recorded(t, q->name, 1, &out, &seed, count, x, grads);
    t->active_mask = mask;
    for (int k = 1, j = 0; k < n && t->status == COT_OK; k++)
        if (cot__rule_wants(r, k)) cot__give(r, k, grads[j++]);
}

static void root_jvp(cot__rule *r) {
    const root *q = cot__rule_attr(r)->pointer;
    cot_tape   *t = r->t;
    cot_var    *values = values_of(r, q), *outer = values ? values_of(r, q) : NULL, dy;
    int         n = operand_count(q), count = 0;
    uint32_t   *x = outer ? cot__arena(t, 2 * ((size_t)n + 1) * sizeof *x, q->name) : NULL, *dx = x + n;
    if (!x) return;
    uint8_t mask = t->active_mask;
    t->active_mask = COT__ACTIVE;
    for (int k = 1; k < n; k++) {
        if (cot__failed(r->tangents[k])) continue;
        outer[k] = cot__alias(outer[k]);
        x[count] = cot__index(outer[k]), dx[count++] = cot__index(r->tangents[k]);
    }
    cot_var  y = play_f(t, q, outer);
    uint32_t out = cot__index(y);
    x[count] = r->node;
    bool     ok = t->status == COT_OK && count && cot__smooth_between(t, q->name, 1, &out, count + 1, x) &&
                  cot__jvp_recorded(t, q->name, 1, &out, count, x, dx, &dy) == COT_OK;
    t->active_mask = mask;
    near_point at = {t, q, values[0], values};
    if (ok) r->tangent = cot_neg(cot__linear_solve(q->name, forth, &at, dy, NULL));
}

static cot_var root_apply(cot__rule *r, const cot_var *xs) {
    const root *q = cot__rule_attr(r)->pointer;
    uint32_t   *args = cot__arena(r->t, ((size_t)operand_count(q) + 1) * sizeof *args, q->name);
    for (int k = 0; args && k < operand_count(q); k++)
        if (!cot__enter(r->t, xs[k], q->name, "replayed", &args[k])) return INVALID(r->t);
    return args ? record_root(r->t, q, args) : INVALID(r->t);
}

const cot__op cot__op_root = {.name = "root", .kind = KIND_GENERIC, .inactive = 1, .saves = 0x7e | COT__SAVES_Z,
                              .formula = "x with F(x, θ) = 0; θ̄ += -(∂F/∂θ)ᵀ λ with (∂F/∂x)ᵀ λ = x̄", .vjp = root_vjp, .jvp = root_jvp, .apply = root_apply};

/* ---- the public functions ------------------------------------------------------------------------------------------------------------------------ */

typedef struct wrapped { cot_fn f; void *user; } wrapped;

static int minus_itself(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    wrapped *w = user;
    cot_var  g;
    int      code = w->f(n, xs, m, &g, w->user);
    if (!code) ys[0] = cot_sub(xs[0], g);
    return code;
}

/* The gradient with respect to the first input; the others are as they are outside. */
typedef struct partly { wrapped *w; int n; const cot_var *xs; int code; } partly;

static int of_first(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    partly  *p = user;
    cot_var *all = cot__arena(xs[0].tape, (size_t)p->n * sizeof *all, "minimize");
    (void)n;
    if (!all) return 0;
    memcpy(all, p->xs, (size_t)p->n * sizeof *all);
    all[0] = xs[0];
    return p->w->f(p->n, all, m, ys, p->w->user);
}

static int gradient_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    partly p = {user, n, xs, 0};
    (void)m;
    cot_value_and_grad(of_first, &p, 1, xs, NULL, ys);
    return 0;
}

static cot_var find(const char *name, cot_fn f, void *f_user, cot_solver solver, void *user, cot_var x0, int n, const cot_var *theta,
                    const cot_solve_options *options) {
    cot_tape *t = cot__tape_of(1, &x0);
    if (!t) t = cot__tape_of(n, theta);
    if (!t) return cot__invalid(1, &x0);
    char p[COT__SHAPE_TEXT], s[COT__SHAPE_TEXT], which[32];
    if (!cot__check_call(t, name, f, n, theta, 0, NULL)) return INVALID(t);
    root     *q = cot__arena(t, sizeof *q, name);
    cot_var  *examples = q ? cot__arena(t, ((size_t)n + 1) * sizeof *examples, name) : NULL;
    uint32_t *index = examples ? cot__arena(t, ((size_t)n + 1) * sizeof *index, name) : NULL;
    if (!index || !cot__enter(t, x0, name, "x0 as", &index[0])) return INVALID(t);
    for (int k = 0; k < n; k++) {
        snprintf(which, sizeof which, "theta[%d] as", k);
        if (!cot__enter(t, theta[k], name, which, &index[1 + k])) return INVALID(t);
    }
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[index[0]])))
        return cot__fail(t, COT_DTYPE, "[%s] x0 has dtype %s; it must be a float", name, cot__dtype_name(cot__dtype_at(&t->nodes[index[0]])));
    for (int k = 0; k <= n; k++) examples[k] = VAR(t, index[k]);
    *q = (root){.name = name, .solver = solver, .user = user};
    if (options) q->options = *options;
    q->f = cot__region_record(t, name, f, f_user, n + 1, examples, 1);
    if (!q->f) return INVALID(t);
    cot_shape have = cot__shape_at(t, q->f->out[0]), want = cot__shape_at(t, index[0]);
    if (!cot__same_shape(&have, &want) || cot__dtype_at(&t->nodes[q->f->out[0]]) != cot__dtype_at(&t->nodes[index[0]]))
        return cot__fail(t, COT_SHAPE, "[%s] there are equations %s %s for unknowns %s %s; they must be as many and of the same dtype", name,
                         cot__dtype_name(cot__dtype_at(&t->nodes[q->f->out[0]])), cot__shape_text(have.ndim, have.dim, p),
                         cot__dtype_name(cot__dtype_at(&t->nodes[index[0]])), cot__shape_text(want.ndim, want.dim, s));
    uint32_t *args = cot__arena(t, ((size_t)operand_count(q) + 1) * sizeof *args, name);
    if (!args) return INVALID(t);
    memcpy(args, index, ((size_t)n + 1) * sizeof *args);
    for (int k = 0; k < q->f->captures; k++) args[n + 1 + k] = q->f->captured[k];
    return record_root(t, q, args);
}

cot_var cot_root(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta, const cot_solve_options *options) {
    return find("root", f, user, solver, user, x0, n, theta, options);
}

cot_var cot_fixed_point(cot_fn g, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta, const cot_solve_options *options) {
    wrapped w = {g, user};
    return find("fixed_point", g ? minus_itself : NULL, &w, solver, user, x0, n, theta, options);
}

cot_var cot_minimize(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta, const cot_solve_options *options) {
    wrapped w = {f, user};
    return find("minimize", f ? gradient_of : NULL, &w, solver, user, x0, n, theta, options);
}
