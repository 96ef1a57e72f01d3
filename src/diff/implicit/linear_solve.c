/* linear_solve.c: solves A x = b, where A is not a matrix but a linear function: a body that is
 * played on vectors.
 *
 * Derivatives solve the transposed system, which is a linear_solve again: b̄ += λ with Aᵀ λ = x̄. The
 * captures of A get the gradient of -<λ, A x>. */
#include "rules/structural_ids.h"
#include "diff/implicit/implicit.h"
#include "diff/loops/loop.h"
#include "ops/structural.h"
#include "tape/record_job.h"

#include <string.h>

/* ---- A, played ------------------------------------------------------------------------------- */

typedef struct operator_at_work {
    cot_tape    *t;
    cot__linsolve *l;
    cot__player  player;
    uint32_t     b;    /* the node of b, which has the shape and dtype of a vector */
    int64_t      size;
    void        *raw;  /* a vector in the dtype of b */
    size_t       bytes;
} operator_at_work;

static bool open_operator(operator_at_work *a, cot_tape *t, cot__linsolve *l, const uint32_t *args) {
    *a = (operator_at_work){.t = t, .l = l, .b = args[0], .size = cot__size_at(t, args[0])};
    a->bytes = cot__bytes_at(t, a->b);
    if (!cot__player_open(&a->player, t, l->name, l->a)) return false;
    a->raw = cot__alloc(&t->al, a->bytes + 8);
    if (!a->raw) cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for a vector", l->name, a->bytes);
    for (int k = 0; k < l->a->captures; k++) a->player.value[1 + k] = VAR(t, args[1 + k]);
    return a->raw != NULL;
}

static void close_operator(operator_at_work *a) {
    cot__player_close(&a->player);
    cot__free(&a->t->al, a->raw, a->raw ? a->bytes + 8 : 0);
}

static bool apply_operator(void *ctx, const double *v, double *out) {
    operator_at_work *a = ctx;
    cot_tape         *t = a->t;
    cot_mark  m = cot__mark(t);
    cot_dtype dtype = cot__dtype_at(&t->nodes[a->b]);
    cot_var   y;
    if (!cot__take_steps(t, 1)) return false;
    for (int64_t k = 0; k < a->size; k++) cot__store_f64((char *)a->raw + k * cot__dtype_size(dtype), dtype, v[k]);
    a->player.value[0] = cot_data(t, dtype, cot__shape_at(t, a->b), a->raw);
    bool ok = t->status == COT_OK && cot__play(&a->player, &y);
    if (!ok) cot__error_in(t, "the body of [%s]", a->l->name);
    if (ok) {
        cot__view view = cot__look(t, cot__index(y));
        ok = cot__read_view(t, a->l->name, &view, COT_F64, out, a->size) == COT_OK;
    }
    cot__rewind(t, m);
    return ok;
}

/* A singular matrix is reported by its residual, so no note is needed. */
static bool eliminate(void *ctx, const double *matrix, const double *b, double *x) {
    operator_at_work *a = ctx;
    cot_tape         *t = a->t;
    bool              noted = t->notes.first[0] != 0;
    cot_mark          m = cot__mark(t);
    int64_t           n = a->size;
    cot_var           y = cot_data(t, COT_F64, COT_SHAPE(n), b), z;
    cot__eliminate(2, (cot_var[]){cot_data(t, COT_F64, COT_SHAPE(n, n), matrix), y}, 1, &z, NULL);
    bool ok = t->status == COT_OK;
    if (ok) {
        cot__view v = cot__look(t, cot__index(z));
        ok = cot__read_view(t, a->l->name, &v, COT_F64, x, n) == COT_OK;
    }
    cot__rewind(t, m);
    if (!noted) cot_tape_clear_note(t);
    return ok;
}

static bool solve(operator_at_work *a, const double *b, double *x) {
    cot_tape   *t = a->t;
    cot__caller caller = cot__tape_caller(t, a->l->name);
    cot__system s = {&caller, a->l->wanted, a->l->options, cot__dtype_at(&t->nodes[a->b]), a->size, a, apply_operator,
                     eliminate};
    size_t      bytes = cot__system_bytes(a->size, a->l->options.positive_definite);
    double     *work = cot__alloc(&t->al, bytes);
    if (!work) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for its vectors", a->l->name, bytes);
        return false;
    }
    bool ok = cot__system_solve(&s, b, x, work);
    if (ok && !a->l->proven) ok = a->l->proven = cot__system_is_linear(&s, x, work);
    cot__free(&t->al, work, bytes);
    return ok;
}

bool cot__solve_options_fit(cot_tape *t, const char *name, const cot_solve_options *options) {
    if (!options || (options->tolerance >= 0 && options->iterations >= 0)) return true;
    if (options->iterations < 0)
        cot__fail(t, COT_VALUE, "[%s] at most %d iterations; 0 is the default, 1 and more a bound", name,
                  options->iterations);
    else
        cot__fail(t, COT_VALUE, "[%s] the tolerance is %g; 0 is the default, INFINITY takes what comes", name,
                  options->tolerance);
    return false;
}

/* ---- the operation --------------------------------------------------------------------------- */

static cot_var record_solve(cot_tape *t, cot__linsolve *l, const uint32_t *args) {
    int              n = 1 + l->a->captures;
    cot__attr       *attr = cot__attr_make(t, l->name, 0, NULL, n, args);
    cot__view        v = cot__look(t, args[0]);
    int64_t          size = cot__size_at(t, args[0]);
    cot_shape        shape = cot__shape_at(t, args[0]);
    size_t           bytes = 2 * (size_t)size * sizeof(double) + 8;
    double          *b = attr ? cot__alloc(&t->al, bytes) : NULL;
    operator_at_work a;
    cot__result      r;
    if (!attr) return INVALID(t);
    if (!b) return cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for its vectors", l->name, bytes);
    double *x = b + size;
    cot__scope scope = cot__scope_open(t, 0);
    bool ok = cot__read_view(t, l->name, &v, COT_F64, b, size) == COT_OK;
    if (t->mode.body) { /* an example: any vector will do */
        memcpy(x, b, (size_t)size * sizeof *x);
    } else if (ok && size > 0) {
        cot__scratch_seen before = cot__scratch_watch(t);
        ok = open_operator(&a, t, l, attr->args) && solve(&a, b, x);
        close_operator(&a);
        cot__scratch_watched(t, before);
    }
    cot__scope_close(t, &scope);
    ok = ok && cot__result_open(t, &r, l->name, v.dtype, shape.ndim, shape.dim);
    if (ok && size > 0)
        t->backend->copy_in(&r.view, &(cot__view){x, COT_F64, r.view.ndim, r.view.shape, r.view.stride});
    cot__free(&t->al, b, bytes);
    if (!ok) return INVALID(t);
    attr->pointer = l;
    return cot__result_push(t, &r, OP_linear_solve, n, attr->args, attr);
}

cot_var cot__linear_solve_record(cot_tape *t, cot__linsolve *l, cot_var b) {
    uint32_t *args = cot__arena(t, ((size_t)l->a->captures + 1) * sizeof *args, l->name);
    if (!args) return INVALID(t);
    args[0] = cot__index(b);
    for (int k = 0; k < l->a->captures; k++) args[1 + k] = l->a->captured[k];
    const char *before = cot__ask(t, l->name);
    cot_var     x = record_solve(t, l, args);
    cot__asked(t, before);
    return x;
}

static int transposed(int n, const cot_var *xs, int m, cot_var *ys, void *user);
static int same(int n, const cot_var *xs, int m, cot_var *ys, void *user);

cot_var cot__linear_solve(const char *name, const char *wanted, cot_fn f, void *user, cot_var b,
                          const cot_solve_options *options) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, b, name, "", &i);
    char      p[COT__SHAPE_TEXT], q[COT__SHAPE_TEXT];
    if (!t || !cot__check_call(t, name, f, 0, NULL, 0, NULL) || !cot__solve_options_fit(t, name, options))
        return cot__invalid(1, &b);
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[i])))
        return cot__fail(t, COT_DTYPE, "[%s] b has dtype %s; it must be a float", name,
                         cot__dtype_name(cot__dtype_at(&t->nodes[i])));
    cot__linsolve *l = cot__arena(t, sizeof *l, name);
    if (!l) return INVALID(t);
    *l = (cot__linsolve){.name = name, .wanted = wanted, .proven = f == transposed || f == same || wanted};
    if (options) l->options = *options;
    cot_var example = VAR(t, i);
    l->a = cot__region_record(t, name, f, user, 1, &example, 1);
    if (!l->a) return INVALID(t);
    cot_shape have = cot__shape_at(t, l->a->out[0]), want = cot__shape_at(t, i);
    cot_dtype given = cot__dtype_at(&t->nodes[l->a->out[0]]), asked = cot__dtype_at(&t->nodes[i]);
    if (!cot__same_shape(&have, &want) || given != asked)
        return cot__fail(t, cot__misfit(given, asked),
                         "[%s] the function gives %s %s for a vector of %s %s; it must keep shape and dtype", name,
                         cot__dtype_name(given), cot__shape_text(have.ndim, have.dim, p), cot__dtype_name(asked),
                         cot__shape_text(want.ndim, want.dim, q));
    return cot__linear_solve_record(t, l, example);
}

cot_var cot_linear_solve(cot_fn a, void *user, cot_var b, const cot_solve_options *options) {
    return cot__linear_solve("linear_solve", NULL, a, user, b, options);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* Plays A on a vector. `outer` holds the captures; NULL: the captures of the rule's node. */
static cot_var play_a(cot__rule *r, const cot__linsolve *l, cot_var v, const cot_var *outer) {
    cot_var  y = INVALID(r->t);
    cot_var *values = cot__arena(r->t, ((size_t)l->a->captures + 1) * sizeof *values, l->name);
    if (!values) return y;
    values[0] = v;
    for (int k = 0; k < l->a->captures; k++) values[1 + k] = outer ? outer[k] : cot__rule_x(r, 1 + k);
    if (r->t->status == COT_OK) cot__play_once(r->t, l->name, l->a, values, &y);
    return y;
}

/* Aᵀ v: the gradient of <v, A u> by u. A is linear, so u may be any vector. */
static int transposed(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot__rule           *r = user;
    const cot__linsolve *l = cot__rule_attr(r)->pointer;
    cot_tape            *t = r->t;
    (void)n, (void)m;
    cot_var  zero = cot_zeros(t, cot_dtype_of(xs[0]), cot_shape_of(xs[0])), u = cot__fresh_input(zero);
    cot_var  y = cot__failed(u) ? u : play_a(r, l, u, NULL);
    uint32_t x = cot__index(u), out = cot__index(y);
    if (t->status == COT_OK) cot__vjp_recorded(t, l->name, 1, &out, xs, 1, &x, ys);
    return 0;
}

static int same(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    cot__rule *r = user;
    ys[0] = play_a(r, cot__rule_attr(r)->pointer, xs[0], NULL);
    return 0;
}

static void linear_solve_vjp(cot__rule *r) {
    const cot__linsolve *l = cot__rule_attr(r)->pointer;
    cot_tape            *t = r->t;
    cot_var              lambda = cot__linear_solve(l->name, l->wanted, transposed, r, r->g, &l->options);
    int                  c = l->a->captures, count = 0;
    if (cot__failed(lambda)) return;
    cot__give(r, 0, lambda);
    cot_var  *outer = cot__arena(t, (2 * (size_t)c + 1) * sizeof *outer, l->name), *grads = cot__behind(outer, c);
    uint32_t *x = outer ? cot__arena(t, ((size_t)c + 1) * sizeof *x, l->name) : NULL;
    if (!x) return;
    /* the nodes swept here must be active, also while the caller records without gradients */
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    for (int k = 0; k < c; k++) {
        outer[k] = cot__rule_x(r, 1 + k);
        if (!cot__rule_wants(r, 1 + k)) continue;
        outer[k] = cot__fresh_input(outer[k]);
        x[count++] = cot__index(outer[k]);
    }
    if (count && t->status == COT_OK) {
        cot_var  y = play_a(r, l, cot__rule_z(r), outer), seed = cot_neg(lambda);
        uint32_t out = cot__index(y);
        if (t->status == COT_OK) cot__vjp_recorded(t, l->name, 1, &out, &seed, count, x, grads);
    }
    cot__scope_close(t, &scope);
    for (int k = 0, j = 0; k < c && t->status == COT_OK; k++)
        if (cot__rule_wants(r, 1 + k)) cot__give(r, 1 + k, grads[j++]);
}

/* A dx = db - dA x */
static void linear_solve_jvp(cot__rule *r) {
    const cot__linsolve *l = cot__rule_attr(r)->pointer;
    cot_tape            *t = r->t;
    int                  c = l->a->captures, count = 0;
    cot_var              rhs = r->tangents[0], dy = INVALID(t);
    cot_var             *outer = cot__arena(t, ((size_t)c + 1) * sizeof *outer, l->name);
    uint32_t *x = outer ? cot__arena(t, 2 * ((size_t)c + 1) * sizeof *x, l->name) : NULL, *dx = cot__behind(x, c);
    if (!x) return;
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    for (int k = 0; k < c; k++) {
        outer[k] = cot__rule_x(r, 1 + k);
        if (cot__failed(r->tangents[1 + k])) continue;
        outer[k] = cot__fresh_input(outer[k]);
        x[count] = cot__index(outer[k]), dx[count++] = cot__index(r->tangents[1 + k]);
    }
    if (count && t->status == COT_OK) {
        uint32_t out = cot__index(play_a(r, l, cot__rule_z(r), outer));
        if (t->status == COT_OK && cot__jvp_recorded(t, l->name, 1, &out, count, x, dx, &dy) == COT_OK)
            rhs = cot__failed(rhs) ? cot_neg(dy) : cot_sub(rhs, dy);
    }
    cot__scope_close(t, &scope);
    if (t->status == COT_OK && !cot__failed(rhs))
        r->tangent = cot__linear_solve(l->name, l->wanted, same, r, rhs, &l->options);
}

static cot_var linear_solve_apply(cot__rule *r, const cot_var *xs) {
    cot__linsolve *l = (cot__linsolve *)(uintptr_t)cot__rule_attr(r)->pointer;
    uint32_t      *args = cot__arena(r->t, ((size_t)l->a->captures + 1) * sizeof *args, l->name);
    for (int k = 0; args && k < 1 + l->a->captures; k++)
        if (!cot__enter(r->t, xs[k], l->name, "replayed", &args[k])) return INVALID(r->t);
    return args ? record_solve(r->t, l, args) : INVALID(r->t);
}

const cot__op cot__op_linear_solve = {.name         = "linear_solve",
                                      .kind         = KIND_GENERIC,
                                      .sweeps_alone = true,
                                      .saves        = 0x7e | COT__SAVES_Z,
                                      .formula      = "z with A(z) = x; x̄ += λ with Aᵀ(λ) = z̄, "
                                                      "ȳ += -λ·∂A(z)/∂y with Aᵀ(λ) = z̄",
                                      .vjp          = linear_solve_vjp,
                                      .jvp          = linear_solve_jvp,
                                      .apply        = linear_solve_apply,
                                      .infer        = cot__linear_solve_infer,
                                      .workspace    = cot__linear_solve_workspace,
                                      .bodies       = 2,
                                      .open         = cot__linear_solve_open,
                                      .go           = cot__linear_solve_go,
                                      .close        = cot__linear_solve_close,
                                      .effect       = cot__linear_solve_effect,
                                      .plain        = cot__linear_solve_plain,
                                      .cost         = {.none = "what its functions do is not counted"},
                                      .linear       = 1u,
                                      .operands     = "*",
                                      .example      = true};
