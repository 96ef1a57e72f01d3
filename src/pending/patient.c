/* patient.c: values that are cheaper to compute again than to write.
 *
 * The gradients of every example of a batch are products of a column and a row each: as arrays they
 * are many times what they are made from, and writing them takes longer than computing them twice.
 * Norms and sums of them can do without the arrays. So a large product of depth 1, and a cheap
 * elementwise operation on one, is patient: it does not join the queue until it is asked. A
 * reduction computes the elements in cache and folds them with the bits it would have had. Whoever
 * reads the elements themselves, or is about to change what they are made from, asks: then the
 * operation is one of the queue like any other, with the hazards of its turn.
 *
 * Invariants: a patient operation owns a reference to the storage of each of its operands, none of
 * which is borrowed, and stands in their lists of readers; so waiting for it costs nothing, however
 * many there are. An operand is another such value, all of it, or has elements, which may wait in
 * the queue. No such operation begins while a body or a function of a custom operation is recorded,
 * or where work is done at once. */
#include "pending/parts.h"

#include <string.h>

/* An operand in the shape of the result, or the result itself; its shape and strides are here. */
typedef struct cot__member {
    cot__view            view;
    cot__storage        *storage; /* NULL: a number */
    uint64_t             number;
    int64_t              dims[2 * COT_MAX_NDIM];
    struct cot__patient *of;
    struct cot__member  *next, *before; /* in the list of the storage's readers */
} cot__member;

typedef struct cot__patient {
    int          op, n; /* COT__RECIPE_PRODUCT or an elementwise operation; its operands */
    cot__member  x[3], z;
} cot__patient;

static cot__touched *place_of(const cot_tape *t, const cot__storage *s) {
    return &t->pending.work->touched[s->touched - 1];
}

/* ---- the description for the backend --------------------------------------------------------- */

/* A recipe, and the storages of its leaves. */
typedef struct description { cot__recipe recipe; cot__storage *leaf[COT__RECIPE_LEAVES]; } description;

static bool is_same_shape(const cot__recipe *r, const cot__view *v) {
    return v->ndim == r->ndim && memcmp(v->shape, r->shape, (size_t)r->ndim * sizeof *r->shape) == 0;
}

/* A leaf; COT__RECIPE_NONE: no room, or it cannot be seen in the shape of the recipe. */
static int add_leaf(description *d, const cot__member *x) {
    cot__recipe *r = &d->recipe;
    cot_shape    shape = {r->ndim, {0}};
    int64_t      stride[COT_MAX_NDIM] = {0};
    memcpy(shape.dim, r->shape, (size_t)r->ndim * sizeof *stride);
    if (x->storage && !cot__view_strides(&x->view, &shape, stride)) return COT__RECIPE_NONE;
    int at = cot__recipe_leaf(r, x->storage ? x->view.data : NULL, x->number, stride);
    if (at != COT__RECIPE_NONE) d->leaf[~at] = x->storage;
    return at;
}

/* p and what it is made of: the number of its step, or COT__RECIPE_NONE. It goes as deep as there
 * are steps at most. */
static int add_patient(const cot_tape *t, description *d, const cot__patient *p, int depth) {
    int8_t arg[3] = {COT__RECIPE_NONE, COT__RECIPE_NONE, COT__RECIPE_NONE};
    if (depth == 0) return COT__RECIPE_NONE;
    if (p->op == COT__RECIPE_PRODUCT && !is_same_shape(&d->recipe, &p->z.view)) return COT__RECIPE_NONE;
    for (int k = 0; k < p->n; k++) {
        const cot__patient *made = cot__patient_of(t, p->x[k].storage);
        int                 at = made ? add_patient(t, d, made, depth - 1) : add_leaf(d, &p->x[k]);
        if (at == COT__RECIPE_NONE) return at;
        arg[k] = (int8_t)at;
    }
    return cot__recipe_step(&d->recipe, p->op, arg);
}

/* The product of depth 1 that p begins with. */
static const cot__patient *first_of(const cot_tape *t, const cot__patient *p) {
    for (int k = 0; k < p->n && p->op != COT__RECIPE_PRODUCT;) {
        const cot__patient *made = cot__patient_of(t, p->x[k].storage);
        if (!made) k++;
        else p = made, k = 0;
    }
    return p;
}

/* False: it is too long, its arrays do not fit together, or it does not begin with a product any
 * more, which was written meanwhile. */
static bool describe(const cot_tape *t, const cot__patient *p, description *d) {
    const cot__view *shape = &first_of(t, p)->z.view;
    *d = (description){.recipe = {.dtype = p->z.view.dtype, .ndim = shape->ndim, .data = p->z.view.data}};
    memcpy(d->recipe.shape, shape->shape, (size_t)shape->ndim * sizeof *shape->shape);
    return shape->ndim <= COT__RECIPE_AXES && add_patient(t, d, p, COT__RECIPE_STEPS) == d->recipe.steps - 1 &&
           cot__recipe_close(&d->recipe);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void keep_member(cot__member *m, const cot__view *v, cot__storage *s) {
    size_t bytes = (size_t)v->ndim * sizeof *v->shape;
    *m = (cot__member){.view = *v, .storage = s};
    if (!s) memcpy(&m->number, v->data, (size_t)cot__dtype_size(v->dtype));
    memcpy(m->dims, v->shape, bytes);
    memcpy(m->dims + v->ndim, v->stride, bytes);
    m->view.shape = m->dims;
    m->view.stride = m->dims + v->ndim;
}

static void hook(cot__pending *q, cot__patient *p, cot__member *x) {
    cot__touched *e = &q->touched[cot__pending_place(q, x->storage)];
    x->of = p;
    x->next = e->readers;
    if (x->next) x->next->before = x;
    e->readers = x;
    x->storage->refs++;
}

static void unhook(cot_tape *t, cot__member *x) {
    if (x->next) x->next->before = x->before;
    *(x->before ? &x->before->next : &place_of(t, x->storage)->readers) = x->next;
    cot__pending_vacate(t->pending.work, x->storage);
    cot__storage_release(t, x->storage);
}

/* False: it cannot be described, or there is no memory, and it is none. */
static bool begin(cot_tape *t, cot__patient *p) {
    description   d;
    cot__pending *q = describe(t, p, &d) ? cot__pending_with_places(t) : NULL;
    if (!q) return false;
    q->touched[cot__pending_place(q, p->z.storage)].patient = p;
    p->z.storage->unready = true;
    t->pending.patients++;
    for (int k = 0; k < p->n; k++)
        if (p->x[k].storage) hook(q, p, &p->x[k]);
    if (cot__pending_spoils) cot__spoil(t->backend, p->z.view.data, (int64_t)p->z.storage->bytes);
    return true;
}

static void end(cot_tape *t, cot__patient *p) {
    place_of(t, p->z.storage)->patient = NULL;
    cot__pending_vacate(t->pending.work, p->z.storage);
    t->pending.patients--;
    for (int k = 0; k < p->n; k++)
        if (p->x[k].storage) unhook(t, &p->x[k]);
    cot__free(&t->al, p, sizeof *p);
}

void cot__patient_forget(cot_tape *t, cot__storage *s) { end(t, cot__patient_of(t, s)); }

/* ---- asking ---------------------------------------------------------------------------------- */

/* What reads the leaves and writes the result, for those who ask what an operation touches. */
static void run_of_recipe(cot__block_run *r, const description *d, const cot__member *z, cot__storage **on) {
    const cot__recipe *from = &d->recipe;
    *r = (cot__block_run){.compute = from->dtype, .outputs = 1, .values = true, .out = {{.k = -1, .to = z->view}}};
    for (int k = 0; k < from->leaves; k++) {
        if (!d->leaf[k]) continue; /* a number */
        on[r->n] = d->leaf[k];
        r->x[r->n++] = (cot__view){(void *)(uintptr_t)from->leaf[k].data, from->dtype, from->ndim, from->shape,
                                   from->leaf[k].stride};
    }
}

/* What cannot be described any more is done like any other operation, after its operands. */
static void run_plainly(cot_tape *t, cot__block_run *r, const cot__patient *p, cot__storage **on) {
    cot__view x[3];
    for (int k = 0; k < p->n; k++) {
        if (p->x[k].storage) cot__pending_ask(t, p->x[k].storage);
        x[k] = p->x[k].storage ? p->x[k].view : cot__number_view(&p->x[k].number, p->x[k].view.dtype);
        on[k] = p->x[k].storage;
    }
    cot__block_run_of_value(r, p->op, p->z.view.dtype, p->n, x, &p->z.view);
}

void cot__pending_ask(cot_tape *t, cot__storage *s) {
    cot__patient  *p = cot__patient_of(t, s);
    cot__storage  *on[COT__WAITING_VIEWS] = {NULL};
    cot__block_run r;
    description    d;
    if (!p) return;
    bool made = describe(t, p, &d);
    if (made) run_of_recipe(&r, &d, &p->z, on);
    else run_plainly(t, &r, p, on);
    on[COT__RUN_VIEWS] = s;
    if (!cot__pending_add(t, &r, on, made ? &d.recipe : NULL)) { /* no memory */
        cot__pending_finish(t);
        if (made) t->backend->make(&d.recipe);
        else cot__run_now(t->backend, &r);
        s->unready = false;
    }
    end(t, p);
    if (t->pending.at_once && !t->pending.sweeps) cot__pending_finish(t);
}

void cot__pending_ask_readers(cot_tape *t, cot__storage *s) {
    while (s->touched && place_of(t, s)->readers) cot__pending_ask(t, place_of(t, s)->readers->of->z.storage);
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

static bool begin_or_free(cot_tape *t, cot__patient *p) {
    if (begin(t, p)) return true;
    cot__free(&t->al, p, sizeof *p);
    return false;
}

/* A factor, (…, m, 1) or (…, 1, n), repeated along its axis of extent 1. z has no axis for the row
 * or column that a vector is. */
static void keep_factor(cot__member *m, const cot__bound *x, const cot__view *z, bool left) {
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
    cot__patient *p = cot__alloc(&t->al, sizeof *p);
    if (!p) return false; /* it is written now: no error */
    cot__pending_ask(t, a->storage);
    cot__pending_ask(t, b->storage);
    p->op = COT__RECIPE_PRODUCT;
    p->n = 2;
    keep_factor(&p->x[0], a, &z->view, true);
    keep_factor(&p->x[1], b, &z->view, false);
    keep_member(&p->z, &z->view, z->storage);
    return begin_or_free(t, p);
}

/* Such a value, all of it in its order. */
static bool is_patient(const cot_tape *t, const cot__bound *x) {
    return cot__patient_of(t, x->storage) && cot__is_straight(&x->view, x->storage);
}

/* Any other operand is a number, or small, with elements. */
static bool may_be_leaf(const cot_tape *t, const cot__bound *x, const cot__bound *z) {
    if (!x->storage) return x->view.ndim == 0;
    return x->view.ndim > 0 && !cot__patient_of(t, x->storage) && !x->storage->borrowed &&
           x->view.dtype == z->view.dtype && cot__recipe_pays(z->storage->bytes, bytes_behind(&x->view));
}

bool cot__pending_extend(cot_tape *t, int op, int n, const cot__bound *xs, const cot__bound *z) {
    int patients = 0;
    if (!z->storage || !cot__recipe_may_hold(op) || !may_begin(t, z)) return false;
    for (int k = 0; k < n; k++) {
        bool is = is_patient(t, &xs[k]);
        if (is ? xs[k].view.dtype != z->view.dtype : !may_be_leaf(t, &xs[k], z)) return false;
        patients += is;
    }
    cot__patient *p = patients ? cot__alloc(&t->al, sizeof *p) : NULL;
    if (!p) return false;
    p->op = op;
    p->n = n;
    for (int k = 0; k < n; k++) keep_member(&p->x[k], &xs[k].view, xs[k].storage);
    keep_member(&p->z, &z->view, z->storage);
    return begin_or_free(t, p);
}

bool cot__patient_reduce(cot_tape *t, cot__reduction what, const cot__bound *x, uint32_t axes, const cot__view *z) {
    description d;
    if (!is_patient(t, x)) return false;
    cot__pending_finish(t);
    return describe(t, cot__patient_of(t, x->storage), &d) &&
           t->backend->reduce_made(what, &x->view, &d.recipe, axes, z);
}
