/* product.c: values that are cheaper to compute again than to write.
 *
 * The gradients of every example of a batch are products of a column and a row each: as arrays they
 * are many times what they are made from, and writing them takes longer than computing them twice.
 * Norms and sums of them can do without the arrays. So a large product of depth 1, and a cheap
 * elementwise operation on one, waits until somebody looks at its own elements. Other work does not
 * make it run. A reduction computes the elements in cache and folds them with the bits it would
 * have had.
 *
 * Invariants: such an operation holds references to the storages of its operands, which only the
 * library can change; whoever is about to change one has the readers done before. An operand is
 * another such value, all of it, or has elements, which may wait like any other. No such operation
 * begins while a body or a function of a custom operation is recorded, or where work is done at
 * once. */
#include "pending/parts.h"

#include <string.h>

/* An operand in the shape of the result, or the result itself; its shape and strides are here. */
typedef struct member {
    cot__view     view;
    cot__storage *storage; /* NULL: a number */
    uint64_t      number;
    int64_t       dims[2 * COT_MAX_NDIM];
} member;

typedef struct cot__product {
    int                  op, n; /* COT__RECIPE_PRODUCT or an elementwise operation; its operands */
    member               x[3], z;
    cot_tape            *t;
    struct cot__product *next, *before;
} cot__product;

/* ---- the description for the backend --------------------------------------------------------- */

static bool is_same_shape(const cot__recipe *r, const cot__view *v) {
    return v->ndim == r->ndim && memcmp(v->shape, r->shape, (size_t)r->ndim * sizeof *r->shape) == 0;
}

/* A leaf; COT__RECIPE_NONE: no room, or it cannot be seen in the shape of the recipe. */
static int add_leaf(cot__recipe *r, const member *x) {
    cot_shape shape = {r->ndim, {0}};
    int64_t   stride[COT_MAX_NDIM] = {0};
    memcpy(shape.dim, r->shape, (size_t)r->ndim * sizeof *stride);
    if (x->storage && !cot__view_strides(&x->view, &shape, stride)) return COT__RECIPE_NONE;
    return cot__recipe_leaf(r, x->storage ? x->view.data : NULL, x->number, stride);
}

/* p and what it is made of: the number of its step, or COT__RECIPE_NONE. It goes as deep as there
 * are steps at most. */
static int add_product(cot__recipe *r, const cot__product *p, int depth) {
    int8_t arg[3] = {COT__RECIPE_NONE, COT__RECIPE_NONE, COT__RECIPE_NONE};
    if (depth == 0 || (p->op == COT__RECIPE_PRODUCT && !is_same_shape(r, &p->z.view))) return COT__RECIPE_NONE;
    for (int k = 0; k < p->n; k++) {
        const cot__product *made = p->x[k].storage ? p->x[k].storage->product : NULL;
        int at = made ? add_product(r, made, depth - 1) : add_leaf(r, &p->x[k]);
        if (at == COT__RECIPE_NONE) return at;
        arg[k] = (int8_t)at;
    }
    return cot__recipe_step(r, p->op, arg);
}

/* The product of depth 1 that p begins with. */
static const cot__product *first_of(const cot__product *p) {
    for (int k = 0; k < p->n && p->op != COT__RECIPE_PRODUCT;) {
        const cot__product *made = p->x[k].storage ? p->x[k].storage->product : NULL;
        if (!made) k++;
        else p = made, k = 0;
    }
    return p;
}

/* False: it is too long, its arrays do not fit together, or it does not begin with a product any
 * more, which was written meanwhile. */
static bool describe(const cot__product *p, cot__recipe *r) {
    const cot__view *shape = &first_of(p)->z.view;
    *r = (cot__recipe){.dtype = p->z.view.dtype, .ndim = shape->ndim, .data = p->z.view.data};
    memcpy(r->shape, shape->shape, (size_t)shape->ndim * sizeof *shape->shape);
    return shape->ndim <= COT__RECIPE_AXES && add_product(r, p, COT__RECIPE_STEPS) == r->steps - 1 &&
           cot__recipe_close(r);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void keep_member(member *m, const cot__view *v, cot__storage *s) {
    size_t bytes = (size_t)v->ndim * sizeof *v->shape;
    *m = (member){.view = *v, .storage = s};
    if (!s) memcpy(&m->number, v->data, (size_t)cot__dtype_size(v->dtype));
    memcpy(m->dims, v->shape, bytes);
    memcpy(m->dims + v->ndim, v->stride, bytes);
    m->view.shape = m->dims;
    m->view.stride = m->dims + v->ndim;
}

static void unlink_product(cot__product *p) {
    cot_tape *t = p->t;
    if (p->next) p->next->before = p->before;
    *(p->before ? &p->before->next : &t->pending.products) = p->next;
    p->z.storage->product = NULL;
    p->z.storage->unready = false;
    for (int k = 0; k < p->n; k++) {
        if (!p->x[k].storage) continue;
        p->x[k].storage->readers--;
        cot__storage_release(t, p->x[k].storage);
    }
    cot__free(&t->al, p, sizeof *p);
}

void cot__product_drop(cot__storage *s) { unlink_product(s->product); }

/* False: it cannot be described, and is none. */
static bool begin(cot_tape *t, cot__product *p) {
    cot__recipe r;
    if (!describe(p, &r)) return false;
    p->t = t;
    p->before = NULL;
    p->next = t->pending.products;
    if (p->next) p->next->before = p;
    t->pending.products = p->z.storage->product = p;
    p->z.storage->unready = true;
    for (int k = 0; k < p->n; k++)
        if (p->x[k].storage) p->x[k].storage->refs++, p->x[k].storage->readers++;
    if (cot__pending_spoils) cot__spoil(t->backend, p->z.view.data, (int64_t)p->z.storage->bytes);
    return true;
}

/* What cannot be described any more is done like any other operation, after the operands that
 * wait. */
static void run_plainly(const cot__product *p) {
    cot__view x[3];
    for (int k = 0; k < p->n; k++) {
        x[k] = p->x[k].view;
        if (!p->x[k].storage) x[k] = cot__number_view(&p->x[k].number, x[k].dtype);
        else if (p->x[k].storage->product) cot__product_make(p->x[k].storage);
    }
    cot__run_value(p->t->backend, p->op, p->z.view.dtype, p->n, x, &p->z.view);
}

void cot__product_make(cot__storage *s) {
    cot__recipe r;
    cot__pending_finish(s->product->t);
    if (describe(s->product, &r)) s->product->t->backend->make(&r);
    else run_plainly(s->product);
    unlink_product(s->product);
}

static bool reads(const cot__product *p, const cot__storage *s) {
    for (int k = 0; k < p->n; k++)
        if (p->x[k].storage == s) return true;
    return false;
}

void cot__product_make_readers(cot_tape *t, cot__storage *s) {
    while (s->readers) { /* making one may let others go */
        cot__product *p = t->pending.products;
        while (!reads(p, s)) p = p->next;
        cot__product_make(p->z.storage);
    }
}

/* ---- which operations wait so ---------------------------------------------------------------- */

static bool may_begin(const cot_tape *t, const cot__bound *z) {
    cot_dtype d = z->view.dtype;
    return z->view.ndim > 0 && (d == COT_F64 || d == COT_F32) && !t->pending.at_once && !t->mode.body &&
           !t->mode.inside && cot__recipe_pays(z->storage->bytes, 0);
}

/* The elements that a view shows, each counted once, in bytes: what is read of memory. */
static size_t bytes_behind(const cot__view *v) {
    int64_t n = 1;
    for (int k = 0; k < v->ndim; k++) n *= v->stride[k] == 0 ? 1 : v->shape[k];
    return (size_t)(n * cot__dtype_size(v->dtype));
}

static bool begin_or_free(cot_tape *t, cot__product *p) {
    if (begin(t, p)) return true;
    cot__free(&t->al, p, sizeof *p);
    return false;
}

/* A factor, (…, m, 1) or (…, 1, n), repeated along its axis of extent 1. z has no axis for the row
 * or column that a vector is. */
static void keep_factor(member *m, const cot__bound *x, const cot__view *z, bool left) {
    int64_t stride[COT_MAX_NDIM] = {0};
    int     leading = x->view.ndim > 2 ? x->view.ndim - 2 : 0, own = left ? x->view.ndim - 2 : x->view.ndim - 1;
    memcpy(stride, x->view.stride, (size_t)leading * sizeof *stride);
    if (x->view.ndim > 1) stride[left ? leading : z->ndim - 1] = x->view.stride[own];
    keep_member(m, &(cot__view){x->view.data, z->dtype, z->ndim, z->shape, stride}, x->storage);
}

bool cot__pending_product(cot_tape *t, const cot__bound *a, const cot__bound *b, const cot__bound *z) {
    if (!may_begin(t, z) || !cot__recipe_pays(z->storage->bytes, bytes_behind(&a->view) + bytes_behind(&b->view)))
        return false;
    if (a->storage->borrowed || b->storage->borrowed || z->view.ndim > COT__RECIPE_AXES) return false;
    cot__product *p = cot__alloc(&t->al, sizeof *p);
    if (!p) return false; /* it is written now: no error */
    if (a->storage->product) cot__product_make(a->storage);
    if (b->storage->product) cot__product_make(b->storage);
    p->op = COT__RECIPE_PRODUCT;
    p->n = 2;
    keep_factor(&p->x[0], a, &z->view, true);
    keep_factor(&p->x[1], b, &z->view, false);
    keep_member(&p->z, &z->view, z->storage);
    return begin_or_free(t, p);
}

/* Such a value, all of it in its order. */
static bool is_product(const cot__bound *x) {
    return x->storage && x->storage->product && cot__is_straight(&x->view, x->storage);
}

/* Any other operand is a number, or small, with elements. */
static bool may_be_leaf(const cot__bound *x, const cot__bound *z) {
    if (!x->storage) return x->view.ndim == 0;
    return x->view.ndim > 0 && !x->storage->product && !x->storage->borrowed && x->view.dtype == z->view.dtype &&
           cot__recipe_pays(z->storage->bytes, bytes_behind(&x->view));
}

bool cot__pending_extend(cot_tape *t, int op, int n, const cot__bound *xs, const cot__bound *z) {
    int products = 0;
    if (!z->storage || !cot__recipe_may_hold(op) || !may_begin(t, z)) return false;
    for (int k = 0; k < n; k++) {
        bool is = is_product(&xs[k]);
        if (is ? xs[k].view.dtype != z->view.dtype : !may_be_leaf(&xs[k], z)) return false;
        products += is;
    }
    cot__product *p = products ? cot__alloc(&t->al, sizeof *p) : NULL;
    if (!p) return false;
    p->op = op;
    p->n = n;
    for (int k = 0; k < n; k++) keep_member(&p->x[k], &xs[k].view, xs[k].storage);
    keep_member(&p->z, &z->view, z->storage);
    return begin_or_free(t, p);
}

bool cot__product_reduce(cot_tape *t, cot__reduction what, const cot__bound *x, uint32_t axes, const cot__view *z) {
    cot__recipe r;
    if (!is_product(x)) return false;
    cot__pending_finish(t);
    return describe(x->storage->product, &r) && t->backend->reduce_made(what, &x->view, &r, axes, z);
}
