/* function_matrices.c: Jacobians and Hessians of C functions, recorded: products with all unit
 * seeds or tangents, as one batch.
 *
 * The function runs once. What is batched is the sweep over what it recorded, so an operation of
 * the function becomes one of the Jacobian, whatever the number of rows or columns. */
#include "diff/functions/functions.h"
#include "diff/engine/find_kinks.h"
#include "ops/structural.h"
#include "tape/region.h"

#include <string.h>

static bool is_float(const cot_tape *t, uint32_t i) { return cot__dtype_is_float(cot__dtype_at(&t->nodes[i])); }

static int64_t float_elements(const cot_tape *t, int n, const uint32_t *list) {
    int64_t size = 0;
    for (int k = 0; k < n; k++) size = cot__size_add(size, is_float(t, list[k]) ? cot__size_at(t, list[k]) : 0);
    return size;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A batch puts one axis in the place of all those of a value, so scalars count as if they had
 * one. */
static bool blocks_fit(const cot__form *c) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    for (int k = 0; k < c->m; k++) {
        for (int j = 0; j < c->n; j++) {
            int rows = cot__ndim_at(c->t, c->y[k]), columns = cot__ndim_at(c->t, c->x[j]);
            int axes = (rows ? rows : 1) + (columns ? columns : 1);
            if (axes <= COT_MAX_NDIM || !is_float(c->t, c->y[k]) || !is_float(c->t, c->x[j])) continue;
            cot__fail(c->t, COT_SHAPE,
                      "[%s] the derivative of a value of shape %s by one of shape %s has %d axes, where a scalar "
                      "counts as one; at most %d",
                      c->op, cot__shape_text_at(c->t, c->y[k], a), cot__shape_text_at(c->t, c->x[j], b), axes,
                      COT_MAX_NDIM);
            return false;
        }
    }
    return true;
}

static cot_shape block_shape(const cot__form *c, int k, int j) {
    cot_shape rows = cot__shape_at(c->t, c->y[k]), columns = cot__shape_at(c->t, c->x[j]);
    memcpy(rows.dim + rows.ndim, columns.dim, (size_t)columns.ndim * sizeof *columns.dim);
    rows.ndim += columns.ndim;
    return rows;
}

/* What a batch gave, as the block of ys[k] by xs[j]: a gradient has the dtype of its input, however
 * it was found. */
static cot_var block_of(const cot__form *c, int k, int j, cot_var batch) {
    return cot_cast(cot_reshape(batch, block_shape(c, k, j)), cot__dtype_at(&c->t->nodes[c->x[j]]));
}

/* ---- sweeps ---------------------------------------------------------------------------------- */

/* One batch: unit directions of one value, and what they are pulled to or pushed to. */
typedef struct directions {
    const cot__form *c;
    uint32_t         from;
    uint32_t        *to; /* floats that are not empty */
    int             *of; /* their numbers in the list of the form */
    int              count;
} directions;

static bool directions_open(directions *d, const cot__form *c, int n, const uint32_t *list) {
    *d = (directions){.c = c};
    d->to = cot__arena(c->t, ((size_t)n + 1) * sizeof *d->to, c->op);
    d->of = d->to ? cot__arena(c->t, ((size_t)n + 1) * sizeof *d->of, c->op) : NULL;
    for (int k = 0; d->of && k < n; k++)
        if (is_float(c->t, list[k]) && cot__size_at(c->t, list[k]) > 0)
            d->of[d->count] = k, d->to[d->count++] = list[k];
    return d->of != NULL;
}

static int pull_unit(int n, const cot_var *seed, int m, cot_var *grads, void *user) {
    const directions *d = user;
    (void)n;
    cot__vjp_recorded(d->c->t, d->c->op, 1, &d->from, seed, m, d->to, grads);
    return 0;
}

static int push_unit(int n, const cot_var *tangent, int m, cot_var *dys, void *user) {
    const directions *d = user;
    uint32_t          dx = cot__index(tangent[0]);
    cot__jvp_recorded(d->c->t, d->c->op, m, d->to, n, &d->from, &dx, dys);
    return 0;
}

/* The unit directions of node i, along a new first axis; invalid after a failure. */
static cot_var units(cot_tape *t, uint32_t i) {
    int64_t   size = cot__size_at(t, i);
    cot_shape shape = cot__shape_at(t, i), batch = {shape.ndim + 1, {size}};
    memcpy(batch.dim + 1, shape.dim, (size_t)shape.ndim * sizeof *shape.dim);
    return cot_reshape(cot_eye(t, cot__dtype_at(&t->nodes[i]), size, size), batch);
}

/* All blocks of one row (reverse) or one column (forward) of blocks. */
static bool sweep_all(directions *d, bool reverse, int which, cot_var *jacobians) {
    const cot__form *c = d->c;
    cot_tape        *t = c->t;
    d->from = reverse ? c->y[which] : c->x[which];
    if (!is_float(t, d->from) || cot__size_at(t, d->from) == 0 || d->count == 0) return true;
    cot_var *batch = cot__arena(t, (size_t)d->count * sizeof *batch, c->op), seeds = units(t, d->from);
    int     *axes = batch ? cot__arena(t, (size_t)d->count * sizeof *axes, c->op) : NULL;
    for (int k = 0; axes && k < d->count; k++) axes[k] = reverse ? 0 : -1;
    if (!axes || cot_vmap(reverse ? pull_unit : push_unit, d, 1, &seeds, NULL, d->count, batch, axes) != COT_OK)
        return false;
    for (int k = 0; k < d->count; k++) {
        int row = reverse ? which : d->of[k], column = reverse ? d->of[k] : which;
        jacobians[(size_t)row * (size_t)c->n + (size_t)column] = block_of(c, row, column, batch[k]);
    }
    return t->status == COT_OK;
}

/* Blocks without elements are made here; those of integers stay invalid. */
static void empty_blocks(const cot__form *c, cot_var *jacobians) {
    cot_tape *t = c->t;
    for (int k = 0; k < c->m; k++)
        for (int j = 0; j < c->n; j++) {
            uint32_t y = c->y[k], x = c->x[j];
            if (!is_float(t, y) || !is_float(t, x) || (cot__size_at(t, y) > 0 && cot__size_at(t, x) > 0)) continue;
            jacobians[(size_t)k * (size_t)c->n + (size_t)j] =
                cot_zeros(t, cot__dtype_at(&t->nodes[x]), block_shape(c, k, j));
        }
}

/* All blocks; NULL after a failure. */
static cot_var *matrix(const cot__form *c, cot_mode mode) {
    cot_tape  *t = c->t;
    directions d;
    size_t     count = (size_t)c->m * (size_t)c->n;
    bool       reverse = mode == COT_REVERSE;
    cot_var   *jacobians = cot__arena(t, (count + 1) * sizeof *jacobians, c->op);
    if (!jacobians) return NULL;
    for (size_t k = 0; k < count; k++) jacobians[k] = INVALID(t);
    if (mode == COT_AUTO) reverse = float_elements(t, c->m, c->y) <= float_elements(t, c->n, c->x);
    bool ok = blocks_fit(c) && cot__smooth_between(t, c->op, c->m, c->y, c->n, c->x) &&
              directions_open(&d, c, reverse ? c->n : c->m, reverse ? c->x : c->y);
    for (int k = 0; ok && k < (reverse ? c->m : c->n); k++) ok = sweep_all(&d, reverse, k, jacobians);
    if (ok) empty_blocks(c, jacobians);
    return t->status == COT_OK ? jacobians : NULL;
}

/* ---- the forms ------------------------------------------------------------------------------- */

/* m × n is the length of a list: it must be a count. */
static int block_count(int m, int n) { return m > 0 && n > 0 && n <= INT32_MAX / m ? m * n : 0; }

static bool check_blocks(const cot__form *c, int m, const cot_var *blocks) {
    if (m <= 0 || c->n <= INT32_MAX / m)
        return cot__check_lists(c->t, c->op, m < 0 ? m : block_count(m, c->n), blocks, 0, NULL);
    cot__fail(c->t, COT_VALUE, "[%s] %d results by %d inputs; at most %d blocks", c->op, m, c->n, INT32_MAX);
    return false;
}

static bool is_mode(const cot__form *c, cot_mode mode) {
    if ((unsigned)mode <= COT_FORWARD) return true;
    cot__fail(c->t, COT_VALUE, "[%s] %d is not a mode; COT_AUTO, COT_REVERSE and COT_FORWARD are", c->op, (int)mode);
    return false;
}

const cot_var *cot__form_list(const cot__form *c, int m, const cot_var *list) {
    return list ? list : cot__arena(c->t, ((size_t)(m > 0 ? m : 0) + 1) * sizeof *list, c->op);
}

cot_status cot_fn_jacobian(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys, cot_mode mode,
                           cot_var *jacobians) {
    cot__form      c;
    const cot_var *at = NULL;
    bool           ran = cot__form_open(&c, "fn_jacobian", n, xs, 0, NULL) && check_blocks(&c, m, jacobians) &&
               is_mode(&c, mode) && (at = cot__form_list(&c, m, ys)) != NULL && cot__form_run(&c, f, user, xs, m, at);
    cot__form_fill(&c, block_count(m, n), jacobians, ran ? matrix(&c, mode) : NULL);
    cot__form_fill(&c, m, ys, ran ? c.out : NULL);
    return cot__form_status(&c);
}

typedef struct gradient {
    cot_fn  f;
    void   *user;
    cot_var y;
} gradient;

/* The gradient by the float inputs, as a function of all of them. */
static int gradient_of(int n, const cot_var *xs, int m, cot_var *grads, void *user) {
    gradient *g = user;
    cot__form c;
    cot_var   one = cot_number(1), *all;
    char      text[COT__SHAPE_TEXT];
    if (!cot__form_open(&c, "fn_hessian", n, xs, 0, NULL) || !cot__form_run(&c, g->f, g->user, xs, 1, &g->y)) return 0;
    g->y = c.out[0];
    if (cot__size_at(c.t, c.y[0]) != 1 || !is_float(c.t, c.y[0])) {
        cot__fail(c.t, COT_SHAPE, "[fn_hessian] the function gives %s of shape %s; a Hessian is of one float, use "
                                  "cot_fn_jacobian twice",
                  cot__dtype_name(cot__dtype_at(&c.t->nodes[c.y[0]])), cot__shape_text_at(c.t, c.y[0], text));
        return 0;
    }
    if (!(all = cot__form_pull(&c, &one))) return 0;
    for (int k = 0, at = 0; k < n && at < m; k++)
        if (is_float(c.t, c.x[k])) grads[at++] = all[k];
    return 0;
}

/* The blocks of the float inputs, at their places among those of all. */
static cot_var *hessian(cot__form *c, gradient *g, const cot_var *xs, int floats) {
    cot_tape *t = c->t;
    size_t    n = (size_t)c->n;
    cot_var  *all = cot__arena(t, (n * n + 1) * sizeof *all, c->op), *blocks = NULL;
    bool      ran = all && cot__form_run(c, gradient_of, g, xs, floats, all);
    if (!ran || !(blocks = matrix(c, COT_FORWARD))) return NULL; /* forward over reverse */
    for (size_t k = 0; k < n * n; k++) all[k] = INVALID(t);
    for (size_t k = 0, at = 0; k < n; k++)
        if (is_float(t, c->x[k])) memcpy(all + k * n, blocks + n * at++, n * sizeof *blocks);
    return all;
}

cot_status cot_fn_hessian(cot_fn f, void *user, int n, const cot_var *xs, cot_var *y, cot_var *hessians) {
    cot__form c;
    gradient  g = {.f = f, .user = user};
    int       floats = 0;
    bool      given = cot__form_open(&c, "fn_hessian", n, xs, 0, NULL) && check_blocks(&c, n, hessians);
    if (given && !f) cot__fail(c.t, COT_VALUE, "[fn_hessian] the function is NULL");
    given = given && f;
    for (int k = 0; given && k < n; k++)
        /* 2: a whole number, an i64 */
        floats += (uintptr_t)xs[k].tape != 2 && cot__dtype_is_float(cot_dtype_of(xs[k]));
    cot_var *found = given ? hessian(&c, &g, xs, floats) : NULL;
    cot__form_fill(&c, block_count(n, n), hessians, found);
    cot__form_fill(&c, 1, y, found ? &g.y : NULL);
    return cot__form_status(&c);
}
