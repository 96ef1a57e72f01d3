/* sparse_recorded.c: sparse derivatives of functions, recorded: the products with the seeds of all
 * colours, as one batch, and the entries taken from them.
 *
 * Programs are made of this, and so is exported C: the positions of the entries and the colours are
 * constants there. */
#include "diff/functions/functions.h"
#include "diff/engine/find_kinks.h"
#include "diff/engine/recorded.h"
#include "diff/sparse/sparse.h"
#include "ops/structural.h"
#include "tape/region.h"

/* A function that was run, and its plan. What is coloured is seeded, the others are swept to. */
typedef struct sweep {
    const cot__form       *c;
    const cot_sparse_plan *p;
} sweep;

static int       seeded(const sweep *s) { return s->p->forward ? s->c->n : s->c->m; }
static int       swept(const sweep *s) { return s->p->forward ? s->c->m : s->c->n; }
static uint32_t *seeded_nodes(const sweep *s) { return s->p->forward ? s->c->x : s->c->y; }
static uint32_t *swept_nodes(const sweep *s) { return s->p->forward ? s->c->y : s->c->x; }

static bool all_floats(const cot__form *c, int n, const uint32_t *list, const char *what) {
    for (int k = 0; k < n; k++) {
        cot_dtype d = cot__dtype_at(&c->t->nodes[list[k]]);
        if (cot__dtype_is_float(d)) continue;
        cot__fail(c->t, COT_DTYPE, "[%s] %s[%d] is %s; derivatives are those of floats by floats", c->op, what, k,
                  cot__dtype_name(d));
        return false;
    }
    return true;
}

static int64_t elements(const cot__form *c, int n, const uint32_t *list) {
    int64_t size = 0;
    for (int k = 0; k < n; k++) size = cot__size_add(size, cot__size_at(c->t, list[k]));
    return size;
}

static cot_dtype widest(const cot__form *c) {
    cot_dtype d = cot__dtype_at(&c->t->nodes[c->x[0]]);
    for (int k = 1; k < c->n; k++) d = cot__dtype_promote(d, cot__dtype_at(&c->t->nodes[c->x[k]]));
    return d;
}

/* ---- products -------------------------------------------------------------------------------- */

/* The seeds of node i for every colour, along a new first axis: 1 where an element has the
 * colour. */
static cot_var seeds_of(const sweep *s, uint32_t i, int64_t from) {
    cot_tape *t = s->c->t;
    int64_t   size = cot__size_at(t, i);
    cot_shape shape = cot__shape_at(t, i), batch = {shape.ndim + 1, {s->p->colours}};
    for (int k = 0; k < shape.ndim; k++) batch.dim[k + 1] = shape.dim[k];
    cot_var colour = cot_data(t, COT_I32, COT_SHAPE(1, size), s->p->colour + from);
    cot_var number = cot_reshape(cot_arange(t, COT_I32, 0, s->p->colours, 1), COT_SHAPE(s->p->colours, 1));
    return cot_reshape(cot_cast(cot_equal(number, colour), cot__dtype_at(&t->nodes[i])), batch);
}

static int pull(int n, const cot_var *seeds, int m, cot_var *grads, void *user) {
    const cot__form *c = ((const sweep *)user)->c;
    (void)n, (void)m;
    cot__vjp_recorded(c->t, c->op, c->m, c->y, seeds, c->n, c->x, grads);
    return 0;
}

static int push(int n, const cot_var *tangents, int m, cot_var *dys, void *user) {
    const cot__form *c = ((const sweep *)user)->c;
    uint32_t        *dx = cot__arena(c->t, (size_t)n * sizeof *dx, c->op);
    for (int k = 0; dx && k < n; k++) dx[k] = cot__index(tangents[k]);
    if (dx) cot__jvp_recorded(c->t, c->op, m, c->y, n, c->x, dx, dys);
    return 0;
}

/* The products of all colours: (colours, elements of what is swept to). */
static cot_var products_of(const sweep *s) {
    cot_tape *t = s->c->t;
    int       n = seeded(s), m = swept(s);
    cot_var  *seeds = cot__arena(t, ((size_t)n + (size_t)m) * sizeof *seeds, s->c->op), *rows = cot__behind(seeds, n);
    int64_t   from = 0;
    if (!seeds) return INVALID(t);
    for (int k = 0; k < n; k++) {
        seeds[k] = seeds_of(s, seeded_nodes(s)[k], from);
        from += cot__size_at(t, seeded_nodes(s)[k]);
    }
    if (cot_vmap(s->p->forward ? push : pull, (void *)(uintptr_t)s, n, seeds, NULL, m, rows, NULL) != COT_OK)
        return INVALID(t);
    for (int k = 0; k < m; k++)
        rows[k] = cot_reshape(cot_cast(rows[k], widest(s->c)),
                              COT_SHAPE(s->p->colours, cot__size_at(t, swept_nodes(s)[k])));
    return m == 1 ? rows[0] : cot_concat(m, rows, 1);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Where each entry stands among the elements of all products. */
static void find_positions(const cot_sparse_plan *p, int64_t to, int64_t *position) {
    for (int32_t g = 0; g < cot__plan_groups(p); g++)
        for (int64_t k = p->entry_start[g]; k < p->entry_start[g + 1]; k++)
            position[p->entry ? p->entry[k] : k] = ((int64_t)g * p->lanes + p->lane[k]) * to + p->source[k];
}

static cot_var entries(const sweep *s, cot_var products) {
    cot_tape *t = s->c->t;
    int64_t   nnz = s->p->pattern.nnz, to = elements(s->c, swept(s), swept_nodes(s));
    size_t    bytes = (size_t)nnz * sizeof(int64_t);
    int64_t  *position = cot__alloc(&t->al, bytes);
    if (!position) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: the positions of %lld entries", s->c->op, (long long)nnz);
        return INVALID(t);
    }
    find_positions(s->p, to, position);
    cot_var at = cot_data(t, COT_I64, COT_SHAPE(nnz), position);
    cot__free(&t->al, position, bytes);
    return cot_take(cot_reshape(products, COT_SHAPE(to * s->p->colours)), at, 0);
}

/* All entries of the derivative of what was run; NULL after a failure. */
static cot_var *values_of(const cot__form *c, const cot_sparse_plan *p, bool hessian) {
    sweep    s = {c, p};
    cot_var *found = cot__arena(c->t, sizeof *found, c->op);
    if (!found || !all_floats(c, c->n, c->x, "xs") || !all_floats(c, c->m, c->y, "ys") ||
        !cot__sparse_fits(c->op, c->t, p, hessian, elements(c, c->m, c->y), elements(c, c->n, c->x),
                          found) ||
        !cot__smooth_between(c->t, c->op, c->m, c->y, c->n, c->x))
        return NULL;
    *found = p->pattern.nnz ? entries(&s, products_of(&s)) : cot_zeros(c->t, widest(c), COT_SHAPE(0));
    return c->t->status == COT_OK ? found : NULL;
}

/* ---- the forms ------------------------------------------------------------------------------- */

cot_status cot_fn_sparse_jacobian(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs, int m,
                                  cot_var *ys, cot_var *values) {
    cot__form      c;
    const cot_var *at;
    bool           ran = cot__form_open(&c, "fn_sparse_jacobian", n, xs, 0, NULL) &&
               cot__check_lists(c.t, c.op, 1, values, 0, NULL) && (at = cot__form_list(&c, m, ys)) != NULL &&
               cot__form_run(&c, f, user, xs, m, at);
    cot__form_fill(&c, 1, values, ran ? values_of(&c, plan, false) : NULL);
    cot__form_fill(&c, m, ys, ran ? c.out : NULL);
    return cot__form_status(&c);
}

/* Before the gradient is taken, which an integer has not; a plain whole number is one (tape 2). */
static bool given_floats(const cot__form *c, const cot_var *xs) {
    for (int k = 0; k < c->n; k++) {
        bool whole = (uintptr_t)xs[k].tape == 2;
        if (!whole && cot__dtype_is_float(cot_dtype_of(xs[k]))) continue;
        cot__fail(c->t, COT_DTYPE, "[%s] xs[%d] is %s; derivatives are those of floats by floats", c->op, k,
                  cot__dtype_name(whole ? COT_I64 : cot_dtype_of(xs[k])));
        return false;
    }
    return true;
}

typedef struct gradient {
    cot_fn  f;
    void   *user;
    cot_var y;
} gradient;

static int gradient_of(int n, const cot_var *xs, int m, cot_var *grads, void *user) {
    gradient *g = user;
    (void)m;
    cot__value_and_grad("fn_sparse_hessian", "a Hessian is of one float, use cot_fn_sparse_jacobian", g->f, g->user, n,
                        xs, &g->y, grads);
    return 0;
}

cot_status cot_fn_sparse_hessian(const cot_sparse_plan *plan, cot_fn f, void *user, int n, const cot_var *xs,
                                 cot_var *y, cot_var *values) {
    cot__form c;
    gradient  g = {.f = f, .user = user};
    bool      ran = cot__form_open(&c, "fn_sparse_hessian", n, xs, 0, NULL) &&
               cot__check_lists(c.t, c.op, 1, values, 0, NULL);
    if (ran && !f) ran = false, cot__fail(c.t, COT_VALUE, "[fn_sparse_hessian] the function is NULL");
    const cot_var *at = ran && given_floats(&c, xs) ? cot__form_list(&c, n, NULL) : NULL;
    ran               = at && cot__form_run(&c, gradient_of, &g, xs, n, at);
    cot_var *found    = ran ? values_of(&c, plan, true) : NULL;
    cot__form_fill(&c, 1, values, found);
    cot__form_fill(&c, 1, y, found ? &g.y : NULL);
    return cot__form_status(&c);
}
