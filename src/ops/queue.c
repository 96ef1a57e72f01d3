/* queue.c: elementwise work, put off until somebody needs it, then done block by block.
 *
 * One run after the other over arrays that no cache holds reads and writes memory for each of them. Here runs of the same number of elements
 * are collected while recording or a sweep goes on with its bookkeeping, and all of them are done on a block of elements while it is in cache, on each of
 * the pool's threads. Every run works on element i of its views alone, so the results have the same bits in any order of the blocks.
 *
 * Invariants: two views in the queue that share memory, one of them written, have the same elements at the same numbers; otherwise the second
 * one makes the queue run first. Whoever looks at a value gets it through cot__view_of, which runs the queue. Memory that the queue will touch is not
 * given back before it has run: in a sweep it is buried, and may serve for new accumulators. What waits when the library returns to its caller touches
 * memory that only the tape can reach. */
#include "ops/queue_inside.h"

#include <string.h>

int64_t cot__queue_from = 4096;
bool    cot__queue_spoils = false;

/* A sweep alone is done in short bites, while its values are in cache; sweeps that share values wait for each other. */
static const cot__capacity few = {.runs = 32, .places = 96, .numbers = 1024, .buried = 32, .stages = 1},
                       many = {.runs = 240, .places = 400, .numbers = 4096, .buried = 96, .stages = COT__STAGES};

typedef cot__queue queue;
typedef cot__place place;

static queue *queue_of(const cot_tape *t) { return (queue *)(void *)t->put_off; }

/* ---- who touches what ------------------------------------------------------------------------------------------------------- */

static place place_of(const cot__view *v, int64_t size, bool written) {
    int64_t bytes = cot__dtype_size(v->dtype), least = 0, most = 0;
    place   p = {.data = v->data, .size = size, .view = *v, .read = written ? -1 : 0, .written = written ? 0 : -1};
    for (int i = 0; i < v->ndim; i++) {
        int64_t reach = v->shape[i] > 0 ? (v->shape[i] - 1) * v->stride[i] : 0;
        *(reach < 0 ? &least : &most) += reach;
    }
    p.lo = (const char *)v->data + least * bytes;
    p.hi = (const char *)v->data + (most + 1) * bytes;
    p.element = cot__is_plain(v, v->dtype) ? bytes : cot__repeats(v) ? 0 : -1;
    return p;
}

static bool same_elements(const place *a, const place *b) {
    const cot__view *x = &a->view, *y = &b->view;
    if (a->data != b->data || a->element != b->element || a->size != b->size || x->dtype != y->dtype) return false;
    if (a->element >= 0) return true;
    size_t bytes = (size_t)x->ndim * sizeof *x->shape;
    return x->ndim == y->ndim && memcmp(x->shape, y->shape, bytes) == 0 && memcmp(x->stride, y->stride, bytes) == 0;
}

/* The first stage in which p may be touched after all that waits. */
static int first_stage(const queue *q, const place *p) {
    int stage = 0;
    for (int k = 0; k < q->places; k++) {
        const place *other = &q->place[k];
        if (!cot__overlaps(other, p->lo, p->hi)) continue;
        int last = p->written < 0 ? other->written : cot__last_stage(other);
        if (last < 0) continue; /* both read */
        last += !same_elements(p, other);
        stage = last > stage ? last : stage;
    }
    return stage;
}

static void touch(place *p, const place *by, int stage) {
    if (by->read >= 0 && stage > p->read) p->read = stage;
    if (by->written >= 0 && stage > p->written) p->written = stage;
    if (stage < p->first) p->first = stage;
}

static void add_place(queue *q, const place *p, int stage) {
    for (int k = 0; k < q->places; k++)
        if (q->place[k].data == p->data && same_elements(p, &q->place[k])) {
            touch(&q->place[k], p, stage);
            return;
        }
    q->place[q->places] = *p;
    q->place[q->places].first = stage;
    touch(&q->place[q->places++], p, stage);
}

/* ---- doing it ---------------------------------------------------------------------------------------------------------------- */

static void empty(queue *q) {
    cot__queue_do(q);
    int buried = q->buried;
    q->head.runs = q->places = q->numbers = q->buried = q->stages = q->last = 0; /* nothing waits any more: what is released now is freed */
    for (int k = 0; k < buried; k++) cot__storage_release(q->head.tape, q->bury[k].storage);
}

void cot__queue_run(const cot_tape *t) {
    queue *q = queue_of(t);
    empty(q);
    if (!t->sweeps) cot__queue_forget(q->head.tape);
}

static size_t bytes_of(const cot__capacity *r) {
    queue q;
    return sizeof q + (size_t)r->runs * (sizeof *q.run + sizeof *q.moves + sizeof *q.stage_of) + (size_t)r->places * sizeof *q.place +
           (size_t)r->numbers * sizeof *q.number + (size_t)r->buried * sizeof *q.bury;
}

void cot__queue_forget(cot_tape *t) {
    cot__free(&t->al, t->put_off, t->put_off ? bytes_of(queue_of(t)->room) : 0);
    t->put_off = NULL;
}

void cot__queue_open(cot_tape *t) { t->sweeps++; }

void cot__queue_open_many(cot_tape *t) {
    t->sweeps++;
    t->many_sweeps++;
}

void cot__queue_close_many(cot_tape *t) {
    t->many_sweeps--;
    cot__queue_close(t);
}

void cot__queue_close(cot_tape *t) {
    if (--t->sweeps > 0) return;
    cot__queue_finish(t);
    cot__queue_forget(t);
}

cot__paused cot__queue_pause(cot_tape *t) {
    cot__paused before = {t->sweeps, t->at_once};
    cot__queue_finish(t);
    t->sweeps = 0;
    t->at_once = true;
    return before;
}

void cot__queue_resume(cot_tape *t, cot__paused before) {
    t->sweeps = before.sweeps;
    t->at_once = before.at_once;
}

/* ---- what is buried ------------------------------------------------------------------------------------------------------------- */

bool cot__queue_buries(cot_tape *t, cot__storage *s) {
    queue      *q = queue_of(t);
    const char *lo = s->data, *hi = lo + s->bytes;
    int         stage = -1;
    for (int k = 0; k < q->places; k++)
        if (cot__overlaps(&q->place[k], lo, hi) && cot__last_stage(&q->place[k]) > stage) stage = cot__last_stage(&q->place[k]);
    if (stage < 0) return false;
    if (s->borrowed || q->buried == q->room->buried || !t->sweeps) { /* who frees memory outside of sweeps shall have it */
        cot__queue_run(t);
        return false;
    }
    s->refs = 1;
    q->bury[q->buried++] = (cot__buried){s, stage};
    return true;
}

/* What a late stage touches would make an early one late too: then other memory is better. */
cot__storage *cot__queue_reuse(cot_tape *t, size_t bytes) {
    queue *q = queue_of(t);
    int    best = -1;
    for (int k = 0; q && k < q->buried; k++)
        if (q->bury[k].storage->bytes == bytes && q->bury[k].stage <= (best < 0 ? q->last : q->bury[best].stage)) best = k;
    if (best < 0) return NULL;
    cot__storage *s = q->bury[best].storage;
    q->bury[best] = q->bury[--q->buried];
    *s = (cot__storage){.refs = 1, .bytes = s->bytes, .block_bytes = s->block_bytes, .data = s->data,
                        .saver_version = UINT32_MAX, .writer = COT__NONE}; /* like a new one */
    return s;
}

/* ---- putting off ------------------------------------------------------------------------------------------------------------ */

/* One block: the widest first, so that each is aligned. */
static queue *create(cot_tape *t, const cot__capacity *room) {
    queue *q = cot__alloc(&t->al, bytes_of(room));
    if (!q) return NULL;
    *q = (queue){.head = {0, t}, .room = room, .run = (cot__run *)(q + 1)};
    q->place = (place *)(q->run + room->runs);
    q->number = (int64_t *)(q->place + room->places);
    q->bury = (cot__buried *)(q->number + room->numbers);
    q->moves = (uint16_t *)(q->bury + room->buried);
    q->stage_of = (uint8_t *)(q->moves + room->runs);
    return q;
}

static queue *ready(cot_tape *t) {
    const cot__capacity *room = t->many_sweeps ? &many : &few;
    if (t->put_off && queue_of(t)->room != room) {
        cot__queue_finish(t);
        cot__queue_forget(t);
    }
    if (!t->put_off) t->put_off = (cot__put_off *)create(t, room);
    return queue_of(t);
}

static const int64_t *keep_numbers(queue *q, const int64_t *numbers, int n) {
    memcpy(&q->number[q->numbers], numbers, (size_t)n * sizeof *numbers);
    q->numbers += n;
    return &q->number[q->numbers - n];
}

/* What the view refers to moves into the queue: a single value, or shape and strides. */
static void keep_view(queue *q, cot__view *v) {
    if (v->ndim == 0) {
        memcpy(&q->number[q->numbers], v->data, (size_t)cot__dtype_size(v->dtype));
        v->data = &q->number[q->numbers++];
    } else {
        v->shape = keep_numbers(q, v->shape, v->ndim);
        v->stride = keep_numbers(q, v->stride, v->ndim);
    }
}

enum { VIEWS = 10 }; /* of a run, at most */

/* Can the caller neither write nor read this memory but through the library? What a body is recorded on is given up soon, so it is done at once. */
static bool is_private(const cot_tape *t, int n, const uint32_t *nodes) {
    if (!nodes || t->at_once || t->body || t->inside) return false;
    for (int k = 0; k < n; k++) {
        const cot__node *x = nodes[k] == COT__NONE ? NULL : &t->nodes[nodes[k]];
        if (x && cot__is_tensor(x) && x->value.tensor->storage->borrowed) return false;
    }
    return true;
}

static bool may_wait(const cot_tape *t, const cot__view *z, int n, const uint32_t *nodes) {
    return z->ndim > 0 && cot__count(z->ndim, z->shape) >= cot__queue_from && (t->sweeps || is_private(t, n, nodes));
}

static bool has_room(const queue *q) {
    const cot__capacity *r = q->room;
    return q->head.runs < r->runs && q->places + VIEWS <= r->places && q->numbers + VIEWS * 2 * COT_MAX_NDIM <= r->numbers;
}

/* The stage in which a run of that many elements can be; -1: in none, so what waits is to be done first. */
static int stage_for(queue *q, const place *p, int n, int64_t size) {
    int stage = 0;
    if (!has_room(q)) return -1;
    for (int k = 0; k < n; k++) {
        int first = first_stage(q, &p[k]);
        stage = first > stage ? first : stage;
    }
    while (stage < q->stages && q->stage[stage].size != size) stage++;
    if (stage >= q->room->stages) return -1;
    if (stage >= q->stages) {
        stage = q->stages++;
        q->stage[stage] = (cot__stage){.size = size};
    }
    return stage;
}

/* Nothing that waits, this run included, reads what was there. */
static void spoil(const queue *q, const place *p, int n) {
    const place *z = &p[n - 1];
    for (int k = 0; k < q->places; k++)
        if (cot__overlaps(z, q->place[k].lo, q->place[k].hi)) return;
    for (int k = 0; k < n - 1; k++)
        if (cot__overlaps(z, p[k].lo, p[k].hi)) return;
    if (z->element > 0) memset(z->view.data, 0xff, (size_t)(z->hi - z->lo));
}

static void keep(queue *q, cot__run *r) {
    int64_t size = cot__count(r->out[0].to.ndim, r->out[0].to.shape);
    place   places[VIEWS];
    int     n = 0;
    for (int k = 0; k < r->n; k++)
        if (r->x[k].ndim > 0) places[n++] = place_of(&r->x[k], size, false);
    for (int k = 0; k < r->outputs; k++) places[n++] = place_of(&r->out[k].to, size, true);
    int stage = stage_for(q, places, n, size);
    if (stage < 0) {
        empty(q);
        stage = stage_for(q, places, n, size);
    }
    if (cot__queue_spoils && r->outputs == 1 && !r->out[0].accumulate) spoil(q, places, n);
    q->last = stage;
    q->stage[stage].cost += r->cost;
    for (int k = 0; k < r->n; k++) keep_view(q, &r->x[k]);
    for (int k = 0; k < r->outputs; k++) keep_view(q, &r->out[k].to);
    n = 0;
    for (int k = 0; k < r->n; k++)
        if (r->x[k].ndim > 0) places[n++].view = r->x[k];
    for (int k = 0; k < r->outputs; k++) places[n++].view = r->out[k].to;
    for (int k = 0; k < n; k++) add_place(q, &places[k], stage);
    cot__run_prepare(r);
    q->stage_of[q->head.runs] = (uint8_t)stage;
    q->run[q->head.runs++] = *r;
}

static void now_or_later(cot_tape *t, cot__run *r, int n, const uint32_t *nodes) {
    queue *q = may_wait(t, &r->out[0].to, n, nodes) ? ready(t) : NULL;
    if (q) {
        keep(q, r);
        return;
    }
    cot__queue_finish(t);
    cot__run_prepare(r);
    cot__run_now(r);
}

void cot__queue_elementwise(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z, const uint32_t *nodes) {
    cot__run r;
    cot__run_of_value(&r, op, compute, n, xs, z);
    now_or_later(t, &r, n, nodes);
}

void cot__queue_partials(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z, int count, const cot__term *terms) {
    cot__run r;
    cot__run_of_partials(&r, op, compute, n, xs, z, count, terms);
    now_or_later(t, &r, 0, NULL);
}

void cot__queue_copy(cot_tape *t, const cot__view *to, const cot__view *from, const uint32_t *nodes) {
    cot__run r;
    queue   *q = may_wait(t, to, 2, nodes) ? ready(t) : NULL;
    if (q) {
        cot__run_of_copy(&r, to, from);
        keep(q, &r);
        return;
    }
    cot__queue_finish(t);
    cot__copy(to, from);
}
