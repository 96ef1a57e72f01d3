/* add.c: an operation comes: it is done now, or it waits.
 *
 * Everything an operation refers to is copied. If there is no memory for that, what waits is done,
 * and then the operation itself. */
#include "pending/parts.h"
#include "tape/examples.h"

#include <string.h>

int64_t cot__pending_from = 4096, cot__pending_bytes = 32768;
bool    cot__pending_spoils = false;

enum { MOST = 512 }; /* operations: more would hold memory for long */
enum { NUMBERS = COT__WAITING_VIEWS * 2 * COT_MAX_NDIM, RECIPE = sizeof(cot__recipe) / sizeof(int64_t) };

/* ---- room ------------------------------------------------------------------------------------ */

static bool room_for_operation(cot__pending *q) {
    uint32_t more = q->room ? 2 * q->room : 16;
    if (q->count < q->room) return true;
    cot__block_run *run = cot__alloc(&q->t->al, more * COT__WAITING_BYTES);
    if (!run) return false;
    cot__waiting *op = (cot__waiting *)(void *)(run + more);
    if (q->count) memcpy(run, q->run, q->count * sizeof *run);
    if (q->count) memcpy(op, q->op, q->count * sizeof *op);
    cot__free(&q->t->al, q->run, q->room * COT__WAITING_BYTES);
    q->run = run;
    q->op = op;
    q->moves = (uint16_t *)(void *)(op + more);
    q->room = more;
    return true;
}

static bool room_for_storages(cot__pending *q) {
    uint32_t more = q->touched_room ? 2 * q->touched_room : 32;
    if (q->places + COT__WAITING_VIEWS <= q->touched_room) return true;
    cot__touched *touched = cot__alloc(&q->t->al, more * COT__TOUCHED_BYTES);
    if (!touched) return false;
    uint32_t *queued = (uint32_t *)(void *)(touched + more);
    if (q->places) memcpy(touched, q->touched, q->places * sizeof *touched);
    if (q->touches) memcpy(queued, q->queued, q->touches * sizeof *queued);
    cot__free(&q->t->al, q->touched, q->touched_room * COT__TOUCHED_BYTES);
    q->touched = touched;
    q->queued = queued;
    q->touched_room = more;
    return true;
}

static bool room_for_numbers(cot__pending *q, uint32_t numbers) {
    cot__numbers *n = q->current;
    if (n && n->used + numbers <= COUNTOF(n->number)) return true;
    if (n && n->next) {
        q->current = n->next;
        return true;
    }
    cot__numbers *more = cot__alloc(&q->t->al, sizeof *more);
    if (!more) return false;
    more->next = NULL;
    more->used = 0;
    *(n ? &n->next : &q->numbers) = q->current = more;
    return true;
}

static bool room_for_one(cot_tape *t, bool operation, uint32_t numbers) {
    cot__pending *q = t->pending.work;
    if (!q) {
        if (!(q = cot__alloc(&t->al, sizeof *q))) return false;
        *q = (cot__pending){.t = t, .vacant = COT__NOWHERE};
        t->pending.work = q;
    }
    return room_for_storages(q) && (!operation || (room_for_operation(q) && room_for_numbers(q, numbers)));
}

static bool has_room(const cot__pending *q, uint32_t numbers) {
    return q && q->count < q->room && q->places + COT__WAITING_VIEWS <= q->touched_room && q->current &&
           q->current->used + numbers <= COUNTOF(q->current->number);
}

/* The list of waiting work with room made for one more; NULL: no memory. No value is dropped for
 * it. */
static cot__pending *make_room(cot_tape *t, bool operation, uint32_t numbers) {
    bool before = t->memory.dropping, refused = t->cache.refused;
    if (operation && t->pending.work && t->pending.work->count == MOST) cot__pending_run(t->pending.work);
    t->memory.dropping = true;
    bool well = room_for_one(t, operation, numbers);
    t->memory.dropping = before;
    t->cache.refused = refused; /* that there is none is no error */
    return well ? t->pending.work : NULL;
}

cot__pending *cot__pending_with_places(cot_tape *t) { return make_room(t, false, 0); }

/* ---- adding ---------------------------------------------------------------------------------- */

static const int64_t *keep_numbers(cot__pending *q, const void *numbers, int n) {
    int64_t *to = &q->current->number[q->current->used];
    memcpy(to, numbers, (size_t)n * sizeof *to);
    q->current->used += (uint32_t)n;
    return to;
}

/* Copies what the view refers to, a single value or shape and strides. */
static void keep_view(cot__pending *q, cot__view *v, const cot__storage *s) {
    if (!v->data) return; /* not read */
    if (s) {
        v->shape = keep_numbers(q, v->shape, v->ndim);
        v->stride = keep_numbers(q, v->stride, v->ndim);
    } else {
        int64_t value = 0;
        memcpy(&value, v->data, (size_t)cot__dtype_size(v->dtype));
        /* the pointer may be written to: it is one of a view */
        v->data = (void *)(uintptr_t)keep_numbers(q, &value, 1);
    }
}

uint32_t cot__pending_place(cot__pending *q, cot__storage *s) {
    if (s->touched) return s->touched - 1;
    uint32_t place = q->vacant;
    if (place == COT__NOWHERE) place = q->places++;
    else q->vacant = q->touched[place].view;
    cot__touched *e = &q->touched[place];
    e->storage = s;
    e->patient = NULL;
    e->readers = NULL;
    e->queued = e->unread = false; /* the rest is written by whoever reads it */
    s->touched = place + 1;
    return place;
}

static uint32_t touch(cot__pending *q, cot__storage *s) {
    uint32_t place = s->touched ? s->touched - 1 : cot__pending_place(q, s);
    if (!q->touched[place].queued) {
        q->touched[place].queued = true;
        q->queued[q->touches++] = place;
    }
    return place;
}

/* No waiting operation, this one included, reads the old contents. */
static void spoil(const cot__pending *q, const cot__block_run *r, cot__storage *const *on) {
    cot__storage *z = on[COT__RUN_VIEWS];
    if (r->outputs != 1 || r->out[0].accumulate || z->touched || !cot__is_straight(&r->out[0].to, z)) return;
    for (int i = 0; i < r->n; i++)
        if (on[i] == z) return;
    cot__spoil(q->t->backend, z->data, (int64_t)z->bytes);
}

static void keep(cot__pending *q, cot__block_run *r, cot__storage *const *on, const cot__recipe *made) {
    cot__waiting *w = &q->op[q->count];
    if (cot__pending_spoils) spoil(q, r, on);
    w->size = cot__count(r->out[0].to.ndim, r->out[0].to.shape);
    for (int k = 1; k < COT__KEY; k++) w->key[k] = 0;
    w->outputs = (uint16_t)r->outputs;
    w->number = (uint16_t)q->count;
    if (made) w->adds = 1 << 15;
    w->made = made ? (const cot__recipe *)(const void *)keep_numbers(q, made, RECIPE) : NULL;
    for (int i = 0; i < COT__WAITING_VIEWS; i++) {
        if (!cot__view_in_use(r, i)) continue;
        cot__view *v = i < COT__RUN_VIEWS ? &r->x[i] : &r->out[i - COT__RUN_VIEWS].to;
        keep_view(q, v, on[i]);
        if (!v->data || !on[i]) continue;
        w->on[i] = touch(q, on[i]);
        w->used |= (uint16_t)(UINT32_C(1) << i);
        bool straight = cot__is_straight(v, on[i]), written = i >= COT__RUN_VIEWS;
        w->straight |= (uint16_t)((uint32_t)straight << i);
        q->bent |= !straight;
        if (!written) continue;
        on[i]->unready = true;
        w->adds |= (uint16_t)((uint32_t)r->out[i - COT__RUN_VIEWS].accumulate << i);
    }
    q->print = (q->print ^ w->key[1] ^ w->key[2] ^ (w->key[2 + COT__RUN_VIEWS / 2] >> 9)) * 0x9e3779b97f4a7c15;
    q->run[q->count++] = *r;
}

bool cot__pending_add(cot_tape *t, cot__block_run *r, cot__storage *const *on, const cot__recipe *made) {
    cot__pending *q = t->pending.work;
    uint32_t      numbers = made ? NUMBERS + RECIPE : NUMBERS;
    if (UNLIKELY(!has_room(q, numbers))) q = make_room(t, true, numbers);
    if (q) keep(q, r, on, made);
    return q != NULL;
}

/* ---- now or later ---------------------------------------------------------------------------- */

/* Can the caller neither write nor read this memory but through the library? What a body is
 * recorded on is given up soon, so it is done at once. */
static bool is_private(const cot_tape *t, const cot__block_run *r, cot__storage *const *on) {
    if (t->pending.at_once || t->mode.body || t->mode.inside) return false;
    for (int i = 0; i < COT__WAITING_VIEWS; i++)
        if (cot__view_in_use(r, i) && on[i] && on[i]->borrowed) return false;
    return true;
}

/* Memory that is no storage's may be gone when the work is done. */
static bool is_on_storages(const cot__block_run *r, cot__storage *const *on) {
    for (int i = 0; i < COT__WAITING_VIEWS; i++)
        if (cot__view_in_use(r, i) && !on[i] && cot__view_of_run(r, i)->ndim > 0) return false;
    return true;
}

static bool may_wait(const cot_tape *t, const cot__block_run *r, cot__storage *const *on) {
    const cot__view *z = &r->out[0].to;
    return z->ndim > 0 && cot__count(z->ndim, z->shape) >= cot__pending_from &&
           (t->pending.sweeps || is_private(t, r, on)) && is_on_storages(r, on);
}

/* An operation that does not wait comes after those whose results it reads, and after those that
 * read or write what it writes. */
static void make_way(cot_tape *t, const cot__block_run *r, cot__storage *const *on) {
    for (int i = 0; i < COT__WAITING_VIEWS; i++) {
        if (!cot__view_in_use(r, i) || !on[i]) continue;
        if (i < COT__RUN_VIEWS) cot__pending_ready(t, on[i]);
        else cot__pending_settle(t, on[i]);
    }
}

/* Patient operations join the queue before one that reads what they make, or writes what they make
 * or read. */
static void ask(cot_tape *t, const cot__block_run *r, cot__storage *const *on) {
    for (int i = 0; i < COT__WAITING_VIEWS; i++) {
        if (!cot__view_in_use(r, i) || !on[i]) continue;
        if (i >= COT__RUN_VIEWS) cot__pending_ask_readers(t, on[i]);
        if (cot__patient_of(t, on[i])) cot__pending_ask(t, on[i]);
    }
}

/* Of a function that is compiled: an example that is written over stays one, what is written from
 * examples becomes one, and neither is computed. False: all operands have elements. */
static bool is_of_examples(const cot__block_run *r, cot__storage *const *on) {
    cot__storage *to = r->outputs == 1 ? on[COT__RUN_VIEWS] : NULL;
    bool          found = to && to->example;
    for (int i = 0; i < COT__RUN_VIEWS && !found; i++) found = cot__view_in_use(r, i) && on[i] && on[i]->example;
    if (!found) return false;
    if (to && !to->borrowed) {
        to->example = (uint8_t)(1 + r->out[0].to.dtype);
        to->unready = true;
        return true;
    }
    for (int i = 0; i < COT__WAITING_VIEWS; i++)
        if (cot__view_in_use(r, i) && on[i] && on[i]->example) cot__example_ready(on[i]);
    return false;
}

/* True: it waits. False: it is to be done now. */
static bool waits(cot_tape *t, cot__block_run *r, cot__storage *const *on) {
    if (UNLIKELY(t->mode.compiling) && is_of_examples(r, on)) return true;
    if (UNLIKELY(t->pending.patients)) ask(t, r, on);
    if (may_wait(t, r, on) && cot__pending_add(t, r, on, NULL)) return true;
    make_way(t, r, on);
    return false;
}

void cot__pending_value(cot_tape *t, int op, cot_dtype compute, int n, const cot__bound *xs, const cot__bound *z) {
    cot__block_run r;
    cot__view      views[3];
    cot__storage  *on[COT__WAITING_VIEWS];
    for (int k = 0; k < n; k++) views[k] = xs[k].view, on[k] = xs[k].storage;
    on[COT__RUN_VIEWS] = z->storage;
    cot__block_run_of_value(&r, op, compute, n, views, &z->view);
    if (!waits(t, &r, on)) cot__run_now(t->backend, &r);
}

void cot__pending_partials(cot_tape *t, int op, cot_dtype compute, int n, const cot__bound *xs, const cot__bound *z,
                           int count, const cot__pending_term *terms) {
    cot__block_run r;
    cot__view      views[3] = {{0}};
    cot__term      plain[COT__RUN_OUTPUTS] = {{0}};
    cot__storage  *on[COT__WAITING_VIEWS];
    for (int k = 0; k < n; k++) views[k] = xs[k].view;
    for (int k = 0; k < count; k++)
        plain[k] = (cot__term){terms[k].k, terms[k].accumulate, terms[k].g.view, terms[k].out.view};
    cot__block_run_of_partials(&r, op, compute, n, views, &z->view, count, plain);
    for (int k = 0; k <= n; k++) on[k] = !r.x[k].data ? NULL : k < n ? xs[k].storage : z->storage;
    for (int k = 0; k < count; k++) {
        on[r.out[k].g] = terms[k].g.storage;
        on[COT__RUN_VIEWS + k] = terms[k].out.storage;
    }
    if (!waits(t, &r, on)) cot__run_now(t->backend, &r);
}

void cot__pending_copy(cot_tape *t, const cot__bound *to, const cot__bound *from) {
    cot__block_run r;
    cot__storage  *on[COT__WAITING_VIEWS] = {from->storage};
    on[COT__RUN_VIEWS] = to->storage;
    cot__block_run_of_copy(&r, &to->view, &from->view);
    if (!waits(t, &r, on)) t->backend->copy(&to->view, &from->view);
}
