/* lazy_product.c: lazy products, results that are cheaper to compute again than to write.
 *
 * The gradients of every example of a batch are products of a column and a row each: as arrays they
 * are many times what they are made from, and writing them takes longer than computing them twice.
 * Norms and sums of them can do without the arrays. So a large product of depth 1 gets its memory
 * but no elements, only a recipe (backend/recipe.h); an elementwise operation on it adds a
 * step to a copy of that recipe; a reduction makes the elements in cache and folds them with the
 * bits it would have had. All other code asks cot__view_read or cot__view_deferred, which write the
 * array first.
 *
 * Invariants: the leaves of a recipe lie on storages that are no lazy products themselves, that the
 * recipe holds a reference to, and that only the library can change; code that is about to change
 * one (cot__view_write, operations in place) has the product written before. The elements of the
 * leaves may still be deferred work: that is done before a recipe is used. No lazy product begins
 * while a body or a function of a custom operation is recorded, or where work is done at once. */
#include "rules/elementwise_ids.h"
#include "ops/elementwise/deferred.h"
#include "ops/structural.h"
#include "ops/elementwise/lazy_product.h"

#include <string.h>

size_t cot__lazy_product_from = 1 << 20, cot__lazy_product_times = 4;
bool   cot__lazy_product_spoils = false;

typedef struct cot__lazy_product {
    cot__recipe          recipe;
    cot__storage        *leaf[COT__RECIPE_LEAVES]; /* NULL: a number */
    cot__storage        *of;
    cot_tape            *t;
    struct cot__lazy_product *next, *before;
} lazy_product;

/* ---- the list -------------------------------------------------------------------------------- */

static bool begin(cot_tape *t, const cot__result *r, const lazy_product *w) {
    lazy_product *kept = cot__alloc(&t->al, sizeof *kept);
    if (!kept) return false; /* it is written now: no error */
    *kept = *w;
    kept->t = t;
    kept->of = r->tensor->storage;
    kept->recipe.data = r->view.data;
    kept->before = NULL;
    kept->next = t->deferred.products;
    if (kept->next) kept->next->before = kept;
    t->deferred.products = kept->of->lazy = kept;
    for (int l = 0; l < kept->recipe.leaves; l++)
        if (kept->leaf[l]) kept->leaf[l]->refs++, kept->leaf[l]->readers++;
    if (cot__lazy_product_spoils) cot__spoil(t->backend, r->view.data, (int64_t)kept->of->bytes);
    return true;
}

void cot__lazy_product_drop(cot__storage *s) {
    lazy_product *w = s->lazy;
    cot_tape     *t = w->t;
    s->lazy = NULL;
    if (w->next) w->next->before = w->before;
    if (w->before) w->before->next = w->next;
    else t->deferred.products = w->next;
    for (int l = 0; l < w->recipe.leaves; l++) {
        if (!w->leaf[l]) continue;
        w->leaf[l]->readers--;
        cot__storage_release(t, w->leaf[l]);
    }
    cot__free(&t->al, w, sizeof *w);
}

void cot__lazy_product_write(cot__storage *s) {
    cot__deferred_finish(s->lazy->t);
    s->lazy->t->backend->make(&s->lazy->recipe);
    cot__lazy_product_drop(s);
}

void cot__lazy_product_write_readers(cot_tape *t, cot__storage *s) {
    for (lazy_product *w = t->deferred.products, *next; w && s->readers; w = next) {
        bool reads = false;
        next = w->next;
        for (int l = 0; l < w->recipe.leaves; l++) reads |= w->leaf[l] == s;
        if (reads) cot__lazy_product_write(w->of);
    }
}

/* ---- recipes --------------------------------------------------------------------------------- */

static bool may_begin(const cot_tape *t, const cot__result *r) {
    cot_dtype d = r->view.dtype;
    return r->view.ndim > 0 && r->view.ndim <= COT__RECIPE_AXES && (d == COT_F64 || d == COT_F32) &&
           !t->deferred.at_once && !t->mode.body && !t->mode.inside &&
           r->tensor->storage->bytes >= cot__lazy_product_from;
}

/* The elements that a view shows, each counted once, in bytes: what is read of memory. */
static size_t bytes_behind(const cot__view *v) {
    int64_t n = 1;
    for (int k = 0; k < v->ndim; k++) n *= v->stride[k] == 0 ? 1 : v->shape[k];
    return (size_t)(n * cot__dtype_size(v->dtype));
}

/* A leaf, perhaps one that is there; COT__RECIPE_NONE: no room. */
static int add_leaf(lazy_product *w, const lazy_product *from, int l) {
    cot__recipe *r = &w->recipe;
    size_t       bytes = (size_t)r->ndim * sizeof *r->leaf[0].stride;
    for (int k = 0; k < r->leaves; k++)
        if (r->leaf[k].data == from->recipe.leaf[l].data && r->leaf[k].number == from->recipe.leaf[l].number &&
            memcmp(r->leaf[k].stride, from->recipe.leaf[l].stride, bytes) == 0)
            return ~k;
    if (r->leaves == COT__RECIPE_LEAVES) return COT__RECIPE_NONE;
    r->leaf[r->leaves] = from->recipe.leaf[l];
    w->leaf[r->leaves] = from->leaf[l];
    return ~r->leaves++;
}

/* A step, perhaps one that is there; -1: no room. */
static int add_step(cot__recipe *r, int op, const int8_t arg[3]) {
    for (int k = 0; k < r->steps; k++)
        if (r->step[k].op == op && memcmp(r->step[k].arg, arg, 3) == 0) return k;
    if (r->steps == COT__RECIPE_STEPS) return -1;
    r->step[r->steps].op = op;
    memcpy(r->step[r->steps].arg, arg, 3);
    return r->steps++;
}

/* All that `from` does: the number of its last step here; -1: no room. */
static int add_recipe(lazy_product *w, const lazy_product *from) {
    int at[COT__RECIPE_STEPS] = {0};
    for (int k = 0; k < from->recipe.steps; k++) {
        int8_t arg[3];
        for (int i = 0; i < 3; i++) {
            int8_t x = from->recipe.step[k].arg[i];
            arg[i] = (int8_t)(x >= 0 ? at[x] : x == COT__RECIPE_NONE ? x : add_leaf(w, from, ~x));
            if (arg[i] == COT__RECIPE_NONE && x != COT__RECIPE_NONE) return -1;
        }
        if ((at[k] = add_step(&w->recipe, from->recipe.step[k].op, arg)) < 0) return -1;
    }
    return at[from->recipe.steps - 1];
}

static lazy_product empty_of(cot_dtype dtype, int ndim, const int64_t *shape) {
    lazy_product w = {.recipe = {.dtype = dtype, .ndim = ndim}};
    memcpy(w.recipe.shape, shape, (size_t)ndim * sizeof *shape);
    return w;
}

/* ---- products -------------------------------------------------------------------------------- */

bool cot__lazy_product_open(cot_tape *t, const cot__result *r, const uint32_t xs[2], const cot__view *a,
                            const cot__view *b) {
    if (!may_begin(t, r) || r->tensor->storage->bytes < cot__lazy_product_times * (bytes_behind(a) + bytes_behind(b)))
        return false;
    lazy_product w = empty_of(r->view.dtype, r->view.ndim, r->view.shape);
    int     leading = a->ndim > 2 ? a->ndim - 2 : 0, axis = leading;
    for (int k = 0; k < 2; k++) {
        w.leaf[k] = t->nodes[xs[k]].value.tensor->storage;
        if (w.leaf[k]->borrowed) return false;
        const cot__view *v = k ? b : a;
        w.recipe.leaf[k].data = v->data;
        memcpy(w.recipe.leaf[k].stride, v->stride, (size_t)leading * sizeof *v->stride);
    }
    w.recipe.leaves = 2;
    if (a->ndim > 1) w.recipe.leaf[0].stride[axis++] = a->stride[a->ndim - 2];
    if (b->ndim > 1) w.recipe.leaf[1].stride[axis] = b->stride[b->ndim - 1];
    add_step(&w.recipe, COT__RECIPE_PRODUCT, (int8_t[]){~0, ~1, COT__RECIPE_NONE});
    return begin(t, r, &w);
}

/* ---- elementwise operations ------------------------------------------------------------------ */

/* Additions and the like: what takes longer is better done once. */
static bool is_cheap(int op) {
    return op == OP_div || (cot__elementwise_table[op].class == ARITH && op != OP_pow && op != OP_fmod &&
                            op != OP_remainder && op != OP_where);
}

/* The lazy product that node x is the whole of, its elements in order; NULL: none. */
static const lazy_product *whole_lazy_product(const cot_tape *t, uint32_t x) {
    if (x == COT__NONE || !cot__is_tensor(&t->nodes[x])) return NULL;
    const cot__tensor  *v = t->nodes[x].value.tensor;
    const lazy_product *w = v->storage->lazy;
    bool whole = w && v->offset == 0 && (size_t)(v->size * cot__dtype_size(w->recipe.dtype)) == v->storage->bytes;
    return whole && cot__is_contiguous(v->ndim, v->dims, v->dims + v->ndim) ? w : NULL;
}

/* Adds an operand that is no lazy product, in the shape of the recipe: a leaf. */
static int add_operand(lazy_product *w, const cot_tape *t, uint32_t x, const cot__value *number, const cot__view *z) {
    cot__recipe *r = &w->recipe;
    lazy_product one = empty_of(r->dtype, r->ndim, r->shape);
    size_t       bytes = (size_t)cot__dtype_size(r->dtype);
    one.recipe.leaves = 1;
    if (x == COT__NONE || !cot__is_tensor(&t->nodes[x])) {
        memcpy(&one.recipe.leaf[0].number, x == COT__NONE ? number : &t->nodes[x].value, bytes);
        return add_leaf(w, &one, 0);
    }
    cot__view v = cot__view_shape(t, x);
    cot_shape shape = {r->ndim, {0}};
    int64_t   stride[COT_MAX_NDIM];
    one.leaf[0] = t->nodes[x].value.tensor->storage;
    memcpy(shape.dim, r->shape, (size_t)r->ndim * sizeof *r->shape);
    size_t whole = (size_t)cot__count(z->ndim, z->shape) * bytes;
    if (v.dtype != r->dtype || one.leaf[0]->lazy || one.leaf[0]->borrowed ||
        bytes_behind(&v) * cot__lazy_product_times > whole || !cot__view_strides(&v, &shape, stride))
        return COT__RECIPE_NONE;
    one.recipe.leaf[0].data = v.data;
    memcpy(one.recipe.leaf[0].stride, stride, (size_t)r->ndim * sizeof *stride);
    return add_leaf(w, &one, 0);
}

bool cot__lazy_product_extend(cot_tape *t, const cot__result *r, int op, int n, const uint32_t *xs,
                              const cot__value *number) {
    const lazy_product *first = NULL, *from[3] = {NULL, NULL, NULL};
    int8_t         arg[3] = {COT__RECIPE_NONE, COT__RECIPE_NONE, COT__RECIPE_NONE};
    if (!is_cheap(op) || !may_begin(t, r)) return false;
    for (int k = 0; k < n; k++)
        if ((from[k] = whole_lazy_product(t, xs[k])) && !first) first = from[k];
    if (!first) return false;
    lazy_product w = empty_of(r->view.dtype, first->recipe.ndim, first->recipe.shape);
    for (int k = 0; k < n; k++) {
        int at = COT__RECIPE_NONE;
        if (!from[k]) at = add_operand(&w, t, xs[k], number, &r->view);
        else if (from[k]->recipe.dtype == w.recipe.dtype && from[k]->recipe.ndim == first->recipe.ndim &&
                 memcmp(from[k]->recipe.shape, first->recipe.shape,
                        (size_t)first->recipe.ndim * sizeof *first->recipe.shape) == 0)
            at = add_recipe(&w, from[k]);
        if (from[k] ? at < 0 : at == COT__RECIPE_NONE) return false;
        arg[k] = (int8_t)at;
    }
    /* no room, or a result that is there already */
    if (add_step(&w.recipe, op, arg) != w.recipe.steps - 1) return false;
    bool pair = w.recipe.steps == 2 && op == OP_mul; /* a product and a second factor */
    w.recipe.squares = w.recipe.steps == 2 && arg[0] == 0 && (op == OP_square || (pair && arg[1] == 0));
    w.recipe.scale = pair && arg[0] < 0 ? ~arg[0] : pair && arg[1] < 0 ? ~arg[1] : -1;
    return begin(t, r, &w);
}

/* ---- reductions ------------------------------------------------------------------------------ */

bool cot__lazy_product_reduce(cot_tape *t, cot__reduction what, uint32_t x, uint32_t axes, const cot__view *z) {
    const lazy_product *w = whole_lazy_product(t, x);
    if (!w) return false;
    cot__deferred_finish(t);
    cot__view v = cot__view_shape(t, x);
    return t->backend->reduce_made(what, &v, &w->recipe, axes, z);
}
