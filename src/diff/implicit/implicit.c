/* implicit.c: the operation x(θ) with F(x, θ) = 0. However x was found, its derivatives follow from
 * the implicit function theorem:
 *
 *     dx = -(∂F/∂x)⁻¹ ∂F/∂θ dθ        θ̄ += -(∂F/∂θ)ᵀ λ,  (∂F/∂x)ᵀ λ = x̄
 *
 * Fixed points are roots of x - g(x, θ), minima are roots of a gradient. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "diff/engine/find_kinks.h"
#include "diff/functions/functions.h"
#include "diff/implicit/implicit.h"
#include "diff/implicit/search.h"
#include "ops/structural.h"

#include <string.h>

/* ---- F, played ------------------------------------------------------------------------------- */

cot_var cot__root_play(cot_tape *t, const cot__root *q, const cot_var *values, cot_var *value) {
    cot_var ys[2] = {INVALID(t), INVALID(t)};
    if (!cot__play_once(t, q->name, q->f, values, ys)) cot__error_in(t, "the body of [%s]", q->name);
    if (value) *value = ys[1];
    return ys[0];
}

static cot_var f_at_alias(const cot__near *at, cot_var *alias) {
    cot_tape *t = at->t;
    cot_var  *values = cot__arena(t, (size_t)cot__root_operands(at->q) * sizeof *values + 8, at->q->name);
    if (!values) return INVALID(t);
    memcpy(values, at->values, (size_t)cot__root_operands(at->q) * sizeof *values);
    *alias = values[0] = cot__fresh_input(at->x);
    return cot__failed(*alias) ? *alias : cot__root_play(t, at->q, values, NULL);
}

int cot__root_forth(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot__near *at = user;
    cot_var           alias, y = f_at_alias(at, &alias);
    (void)n, (void)m;
    if (cot__failed(y)) return 0;
    uint32_t x = cot__index(alias), dx = cot__index(xs[0]), out = cot__index(y);
    cot__jvp_recorded(at->t, at->q->name, 1, &out, 1, &x, &dx, ys);
    return 0;
}

static int back(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot__near *at = user;
    cot_var           alias, y = f_at_alias(at, &alias);
    (void)n, (void)m;
    if (cot__failed(y)) return 0;
    uint32_t x = cot__index(alias), out = cot__index(y);
    cot__vjp_recorded(at->t, at->q->name, 1, &out, xs, 1, &x, ys);
    return 0;
}

/* ---- the operation --------------------------------------------------------------------------- */

static cot_var record_root(cot_tape *t, const cot__root *q, const uint32_t *args) {
    cot__attr  *attr = cot__attr_make(t, q->name, 0, NULL, cot__root_operands(q), args);
    cot__view   v = cot__look(t, args[0]);
    cot_shape   shape = cot__shape_at(t, args[0]);
    cot__result r;
    if (!attr || !cot__result_open(t, &r, q->name, v.dtype, shape.ndim, shape.dim)) return INVALID(t);
    v = cot__look(t, args[0]);
    t->backend->copy(&r.view, &v); /* the start of the search */
    cot_array x = {v.dtype, shape, cot__count(shape.ndim, shape.dim), r.view.data};
    cot__view host = r.view;
    size_t    bytes = r.tensor && !cot__on_host(t->backend) ? cot__bytes_at(t, args[0]) : 0;
    if (bytes && !(x.data = host.data = cot__alloc(&t->al, bytes)))
        return cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for its vectors", q->name, bytes);
    if (bytes) t->backend->copy_out(&host, &r.view);
    cot_mark  m = cot__mark(t);
    cot__scope scope = cot__scope_open(t, 0);
    bool ok = true;
    /* while a body is recorded, the start serves as example */
    if (!t->mode.body && x.size > 0) ok = cot__root_find(t, q, attr->args, &x);
    cot__scope_close(t, &scope);
    cot__rewind(t, m);
    if (ok && bytes) t->backend->copy_in(&r.view, &host);
    if (bytes) cot__free(&t->al, host.data, bytes);
    if (!ok) return INVALID(t);
    attr->pointer = q;
    return cot__result_push(t, &r, OP_root, (int)attr->nargs, attr->args, attr);
}

cot_var cot__root_record(cot_tape *t, cot__root *q, const uint32_t *index) {
    uint32_t *args = cot__arena(t, ((size_t)cot__root_operands(q) + 1) * sizeof *args, q->name);
    if (!args) return INVALID(t);
    memcpy(args, index, (size_t)q->f->n * sizeof *args);
    for (int k = 0; k < q->f->captures; k++) args[q->f->n + k] = q->f->captured[k];
    return record_root(t, q, args);
}

static cot_var *values_of(cot__rule *r, const cot__root *q) {
    cot_var *values = cot__arena(r->t, ((size_t)cot__root_operands(q) + 1) * sizeof *values, q->name);
    for (int k = 1; values && k < cot__root_operands(q); k++) values[k] = cot__rule_x(r, k);
    if (values) values[0] = cot__rule_z(r);
    return r->t->status == COT_OK ? values : NULL;
}

static void root_vjp(cot__rule *r) {
    const cot__root *q = cot__rule_attr(r)->pointer;
    cot_tape   *t = r->t;
    cot_var    *values = values_of(r, q), *outer = values ? values_of(r, q) : NULL;
    int         n = cot__root_operands(q), count = 0;
    uint32_t   *x = outer ? cot__arena(t, ((size_t)n + 1) * sizeof *x, q->name) : NULL;
    cot_var    *grads = x ? cot__arena(t, ((size_t)n + 1) * sizeof *grads, q->name) : NULL;
    if (!grads) return;
    cot__near at = {t, q, values[0], values};
    cot_solve_options linear = cot__search_linear(&q->options);
    cot_var    lambda = cot__linear_solve(q->name, COT__FOR_A_DERIVATIVE, back, &at, r->g, &linear);
    if (cot__failed(lambda)) return;
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    for (int k = 1; k < n; k++) {
        if (!cot__rule_wants(r, k)) continue;
        outer[k] = cot__fresh_input(outer[k]);
        x[count++] = cot__index(outer[k]);
    }
    cot_var  y = cot__root_play(t, q, outer, NULL), seed = cot_neg(lambda);
    uint32_t out = cot__index(y);
    /* F is differentiated by the solution, too */
    x[count] = r->node;
    if (t->status == COT_OK && cot__smooth_between(t, q->name, 1, &out, count + 1, x))
        cot__vjp_recorded(t, q->name, 1, &out, &seed, count, x, grads);
    cot__scope_close(t, &scope);
    for (int k = 1, j = 0; k < n && t->status == COT_OK; k++)
        if (cot__rule_wants(r, k)) cot__give(r, k, grads[j++]);
}

static void root_jvp(cot__rule *r) {
    const cot__root *q = cot__rule_attr(r)->pointer;
    cot_tape   *t = r->t;
    cot_var    *values = values_of(r, q), *outer = values ? values_of(r, q) : NULL, dy;
    int         n = cot__root_operands(q), count = 0;
    uint32_t   *x = outer ? cot__arena(t, 2 * ((size_t)n + 1) * sizeof *x, q->name) : NULL, *dx = cot__behind(x, n);
    if (!x) return;
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    for (int k = 1; k < n; k++) {
        if (cot__failed(r->tangents[k])) continue;
        outer[k] = cot__fresh_input(outer[k]);
        x[count] = cot__index(outer[k]), dx[count++] = cot__index(r->tangents[k]);
    }
    cot_var  y = cot__root_play(t, q, outer, NULL);
    uint32_t out = cot__index(y);
    x[count] = r->node;
    bool     ok = t->status == COT_OK && count && cot__smooth_between(t, q->name, 1, &out, count + 1, x) &&
                  cot__jvp_recorded(t, q->name, 1, &out, count, x, dx, &dy) == COT_OK;
    cot__scope_close(t, &scope);
    cot__near at = {t, q, values[0], values};
    cot_solve_options linear = cot__search_linear(&q->options);
    if (ok) r->tangent = cot_neg(cot__linear_solve(q->name, COT__FOR_A_DERIVATIVE, cot__root_forth, &at, dy, &linear));
}

static cot_var root_apply(cot__rule *r, const cot_var *xs) {
    const cot__root *q = cot__rule_attr(r)->pointer;
    uint32_t   *args = cot__arena(r->t, ((size_t)cot__root_operands(q) + 1) * sizeof *args, q->name);
    for (int k = 0; args && k < cot__root_operands(q); k++)
        if (!cot__enter(r->t, xs[k], q->name, "replayed", &args[k])) return INVALID(r->t);
    return args ? record_root(r->t, q, args) : INVALID(r->t);
}

const cot__op cot__op_root = {.name         = "root",
                              .kind         = KIND_GENERIC,
                              .sweeps_alone = true,
                              .inactive     = 1,
                              .saves        = 0x7e | COT__SAVES_Z,
                              .formula      = "z with F(z, θ) = 0; θ̄ += -(∂F/∂θ)ᵀ λ with (∂F/∂z)ᵀ λ = z̄",
                              .vjp          = root_vjp,
                              .jvp          = root_jvp,
                              .apply        = root_apply,
                              .infer        = cot__root_infer,
                              .workspace    = cot__root_workspace,
                              .bodies       = 3,
                              .binds        = true,
                              .open         = cot__root_open,
                              .go           = cot__root_go,
                              .close        = cot__root_close,
                              .effect       = cot__root_effect,
                              .plain        = cot__root_plain,
                              .cost         = {.none = "what its functions do is not counted"},
                              .opaque       = true,
                              .operands     = "*",
                              .example      = true};

/* ---- the public functions -------------------------------------------------------------------- */

static bool as_many(cot_tape *t, const char *name, uint32_t equations, uint32_t unknowns) {
    char      p[COT__SHAPE_TEXT], s[COT__SHAPE_TEXT];
    cot_shape have = cot__shape_at(t, equations), want = cot__shape_at(t, unknowns);
    cot_dtype given = cot__dtype_at(&t->nodes[equations]), asked = cot__dtype_at(&t->nodes[unknowns]);
    if (cot__same_shape(&have, &want) && given == asked) return true;
    cot__fail(t, cot__misfit(given, asked),
              "[%s] there are equations %s %s for unknowns %s %s; they must be as many and of the same dtype", name,
              cot__dtype_name(given), cot__shape_text(have.ndim, have.dim, p), cot__dtype_name(asked),
              cot__shape_text(want.ndim, want.dim, s));
    return false;
}

typedef struct wrapped { cot_fn f; void *user; } wrapped;

static int minus_itself(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    wrapped  *w = user;
    cot_tape *t = xs[0].tape;
    uint32_t  next;
    int       code = w->f(n, xs, m, ys, w->user);
    if (code || t->status != COT_OK || (ys[0].tape == t && cot__failed(ys[0]))) return code;
    if (!cot__enter(t, ys[0], "fixed_point", "body's result ys[0] as", &next) ||
        !as_many(t, "fixed_point", next, cot__index(xs[0])))
        return 0;
    ys[0] = cot_sub(xs[0], VAR(t, next));
    return 0;
}

/* A function of the first input alone, to be differentiated by it. The other inputs are taken from
 * xs. */
typedef struct partly { wrapped *w; int n; const cot_var *xs; } partly;

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
    partly p = {user, n, xs};
    (void)m;
    cot__value_and_grad("minimize", "what is least is one float", of_first, &p, 1, xs, &ys[1], ys);
    return 0;
}

static cot_var find(const char *name, bool least, cot_fn f, void *f_user, cot_solver solver, void *user, cot_var x0,
                    int n, const cot_var *theta, const cot_solve_options *options) {
    cot_tape *t = cot__tape_of(1, &x0);
    if (!t) t = cot__tape_of(n, theta);
    if (!t) return cot__invalid(1, &x0);
    if (!cot__check_call(t, name, f, n, theta, 0, NULL) || !cot__solve_options_fit(t, name, options)) return INVALID(t);
    cot__root *q = cot__arena(t, sizeof *q, name);
    cot_var  *examples = q ? cot__arena(t, ((size_t)n + 1) * sizeof *examples, name) : NULL;
    uint32_t *index = examples ? cot__arena(t, ((size_t)n + 1) * sizeof *index, name) : NULL;
    if (!index || !cot__enter(t, x0, name, "x0 as", &index[0])) return INVALID(t);
    for (int k = 0; k < n; k++)
        if (!cot__enter_listed(t, theta[k], name, "theta", k, " as", &index[1 + k])) return INVALID(t);
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[index[0]])))
        return cot__fail(t, COT_DTYPE, "[%s] x0 has dtype %s; it must be a float", name,
                         cot__dtype_name(cot__dtype_at(&t->nodes[index[0]])));
    for (int k = 0; k <= n; k++) examples[k] = VAR(t, index[k]);
    *q = (cot__root){.name = name, .least = least, .solver = solver, .user = user};
    if (options) q->options = *options;
    q->f = cot__region_record(t, name, f, f_user, n + 1, examples, least ? 2 : 1);
    if (!q->f) return INVALID(t);
    return as_many(t, name, q->f->out[0], index[0]) ? cot__root_record(t, q, index) : INVALID(t);
}

cot_var cot_root(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta,
                 const cot_solve_options *options) {
    return find("root", false, f, user, solver, user, x0, n, theta, options);
}

cot_var cot_fixed_point(cot_fn g, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta,
                        const cot_solve_options *options) {
    wrapped w = {g, user};
    return find("fixed_point", false, g ? minus_itself : NULL, &w, solver, user, x0, n, theta, options);
}

cot_var cot_minimize(cot_fn f, void *user, cot_solver solver, cot_var x0, int n, const cot_var *theta,
                     const cot_solve_options *options) {
    wrapped w = {f, user};
    return find("minimize", true, f ? gradient_of : NULL, &w, solver, user, x0, n, theta, options);
}
