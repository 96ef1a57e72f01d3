/* deferred.c: elementwise work, deferred until something needs it, then done block by block.
 *
 * One run after the other over arrays that no cache holds reads and writes memory for each of them.
 * Here runs of the same number of elements are collected while recording or a sweep goes on with
 * its bookkeeping, and all of them are done on a block of elements while it is in cache, on each of
 * the pool's threads. Every run works on element i of its views alone, so the results have the same
 * bits in any order of the blocks.
 *
 * Invariants: if two views of deferred runs share memory, one of them written, they have the same
 * elements at the same numbers; otherwise the deferred runs are done before the second one is
 * added. Code that reads a value gets it through cot__view_read, which does them first. Memory that
 * they will touch is not given back before: in a sweep its storages are kept in a list, and may
 * serve for new accumulators. Work that is still deferred when the library returns to its caller
 * touches memory that only the tape can reach. */
#include "ops/elementwise/deferred.h"

#include <string.h>

enum { RUNS = COT__STAGE_RUNS, PLACES = 96, NUMBERS = 1024, STORAGES = 32, MOVED = COT__STAGE_MOVED, STAGES = 8 };

int64_t cot__deferred_from = 4096, cot__deferred_bytes = 32768;
bool    cot__deferred_spoils = false;

/* Where the elements 0 … size - 1 of a view lie, to find out whether two views are the same
 * elements in the same order. */
typedef struct place {
    const char *lo, *hi; /* all its elements lie in [lo, hi) */
    const void *data;
    int64_t     element; /* bytes from each to the next; 0: repeats; -1: see view */
    cot__view   view;
    bool        written;
} place;

/* Runs that may be done block by block together. Mostly there is one stage. While a gradient is
 * recorded of which most will be dropped there are more: a run that cannot be done together with
 * the last ones begins a stage of its own behind them. */
typedef struct stage {
    int     runs, places; /* where it ends */
    int64_t size, cost;
} stage;

typedef struct work {
    cot__deferred  head; /* how many runs */
    int           places, numbers, storages;
    int64_t       size, cost;
    int64_t       emptied; /* how often */
    int           stages;  /* after the first */
    stage         before[STAGES];
    cot__block_run      run[RUNS];
    place         place[PLACES];
    int64_t       number[NUMBERS]; /* shapes, strides and single values that runs refer to */
    cot__storage *storage[STORAGES]; /* without references, kept until the runs are done */
    uint16_t      moves[RUNS]; /* see find_scratch */
} work;

static work *work_of(const cot_tape *t) { return (work *)(void *)t->deferred.work; }

/* ---- which memory a run touches -------------------------------------------------------------- */

static place place_of(const cot__view *v, bool written) {
    int64_t bytes = cot__dtype_size(v->dtype), least = 0, most = 0;
    place   p = {.data = v->data, .view = *v, .written = written};
    for (int i = 0; i < v->ndim; i++) {
        int64_t reach = v->shape[i] > 0 ? (v->shape[i] - 1) * v->stride[i] : 0;
        *(reach < 0 ? &least : &most) += reach;
    }
    p.lo = (const char *)v->data + least * bytes;
    p.hi = (const char *)v->data + (most + 1) * bytes;
    p.element = v->ndim == 0 ? 0 : cot__is_dense(v, v->dtype) ? bytes : cot__repeats(v) ? 0 : -1;
    return p;
}

static bool same_elements(const place *a, const place *b) {
    const cot__view *x = &a->view, *y = &b->view;
    if (a->data != b->data || a->element != b->element || x->dtype != y->dtype) return false;
    if (a->element >= 0) return true;
    size_t bytes = (size_t)x->ndim * sizeof *x->shape;
    return x->ndim == y->ndim && memcmp(x->shape, y->shape, bytes) == 0 && memcmp(x->stride, y->stride, bytes) == 0;
}

static bool overlaps(const place *a, const char *lo, const char *hi) { return a->lo < hi && lo < a->hi; }

static int first_place(const work *q) { return q->stages ? q->before[q->stages - 1].places : 0; }

static bool in_the_way(const work *q, const place *p) {
    for (int k = first_place(q); k < q->places; k++) {
        const place *other = &q->place[k];
        if ((p->written || other->written) && overlaps(other, p->lo, p->hi) && !same_elements(p, other)) return true;
    }
    return false;
}

static void add_place(work *q, const place *p) {
    for (int k = first_place(q); k < q->places; k++)
        if (same_elements(p, &q->place[k])) {
            q->place[k].written |= p->written;
            return;
        }
    q->place[q->places++] = *p;
}

/* ---- memory that only the runs see ----------------------------------------------------------- */

/* A kept storage that the runs write before they read it holds nothing of interest, before or
 * after. Then every block of a part can have the same piece of it, which stays in cache and need
 * not go to memory. That takes views of the whole storage, row by row. */
static bool is_scratch(const work *q, const cot__storage *s) {
    const char *lo = s->data, *hi = lo + s->bytes;
    for (int k = 0; k < q->places; k++) {
        const place *p = &q->place[k];
        if (overlaps(p, lo, hi) && (p->lo != lo || p->hi != hi || p->element <= 0)) return false;
    }
    for (int k = 0; k < q->head.runs; k++) {
        const cot__block_run *r = &q->run[k];
        for (int i = 0; i < r->n; i++)
            if (r->x[i].data == s->data) return false;
        for (int i = 0; i < r->outputs; i++)
            if (r->out[i].to.data == s->data) return !r->out[i].accumulate;
    }
    return false;
}

/* Bit i of q->moves[k]: view i of run k lies there; outputs come after the operands. */
static uint16_t views_on(const cot__block_run *r, const void *data) {
    uint32_t views = 0;
    for (int i = 0; i < r->n; i++) views |= (uint32_t)(r->x[i].data == data) << i;
    for (int i = 0; i < r->outputs; i++) views |= (uint32_t)(r->out[i].to.data == data) << (COT__RUN_VIEWS + i);
    return (uint16_t)views;
}

static void find_scratch(work *q) {
    int moved = 0;
    for (int k = 0; k < q->head.runs; k++) q->moves[k] = 0;
    for (int b = 0; b < q->storages && !q->stages; b++) {
        int more = 0;
        if (!is_scratch(q, q->storage[b])) continue;
        for (int k = 0; k < q->head.runs; k++) more += !q->moves[k] && views_on(&q->run[k], q->storage[b]->data);
        if (moved + more > MOVED) continue; /* then it is memory like other */
        for (int k = 0; k < q->head.runs; k++) q->moves[k] |= views_on(&q->run[k], q->storage[b]->data);
        moved += more;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

/* Runs first … end - 1: a stage. */
static void run_stage(work *q, int first, int end) {
    if (end == first) return;
    q->head.tape->backend->elementwise(&(cot__stage){.run = &q->run[first],
                                                     .count = end - first,
                                                     .size = q->size,
                                                     .cost = q->cost,
                                                     .block_bytes = cot__deferred_bytes,
                                                     .moves = &q->moves[first]});
}

static void empty(work *q) {
    stage last = {.size = q->size, .cost = q->cost};
    find_scratch(q);
    for (int k = 0; k < q->stages; k++) {
        q->size = q->before[k].size;
        q->cost = q->before[k].cost;
        run_stage(q, k ? q->before[k - 1].runs : 0, q->before[k].runs);
    }
    q->size = last.size;
    q->cost = last.cost;
    run_stage(q, q->stages ? q->before[q->stages - 1].runs : 0, q->head.runs);
    q->stages = 0;
    int storages = q->storages;
    q->emptied++;
    /* nothing is deferred any more: storages that are released now are freed */
    q->head.runs = q->places = q->numbers = q->storages = 0;
    q->cost = 0;
    for (int k = 0; k < storages; k++) cot__storage_release(q->head.tape, q->storage[k]);
}

void cot__deferred_run(const cot_tape *t) {
    work *q = work_of(t);
    empty(q);
    if (!t->deferred.sweeps) cot__deferred_forget(q->head.tape);
}

void cot__deferred_forget(cot_tape *t) {
    cot__free(&t->al, t->deferred.work, t->deferred.work ? sizeof(work) : 0);
    t->deferred.work = NULL;
}

void cot__deferred_open(cot_tape *t) { t->deferred.sweeps++; }

void cot__deferred_close(cot_tape *t) {
    if (--t->deferred.sweeps > 0) return;
    cot__deferred_finish(t);
    cot__deferred_forget(t);
}

cot__paused cot__deferred_pause(cot_tape *t) {
    cot__paused before = {t->deferred.sweeps, t->deferred.at_once};
    cot__deferred_finish(t);
    t->deferred.sweeps = 0;
    t->deferred.at_once = true;
    return before;
}

void cot__deferred_resume(cot_tape *t, cot__paused before) {
    t->deferred.sweeps = before.sweeps;
    t->deferred.at_once = before.at_once;
}

/* ---- memory that is kept until the runs are done --------------------------------------------- */

bool cot__deferred_keeps_storage(cot_tape *t, cot__storage *s) {
    work       *q = work_of(t);
    const char *lo = s->data, *hi = lo + s->bytes;
    bool        touched = false;
    for (int k = 0; k < q->places && !touched; k++) touched = overlaps(&q->place[k], lo, hi);
    if (!touched) return false;
    if (s->borrowed || q->storages == STORAGES || !t->deferred.sweeps) {
        /* code that frees memory outside of sweeps expects it to be free */
        cot__deferred_run(t);
        return false;
    }
    s->refs = 1;
    q->storage[q->storages++] = s;
    return true;
}

cot__storage *cot__deferred_reuse(cot_tape *t, size_t bytes) {
    work *q = work_of(t);
    for (int k = q ? q->storages - 1 : -1; k >= 0; k--)
        if (q->storage[k]->bytes == bytes) {
            cot__storage *s = q->storage[k];
            q->storage[k] = q->storage[--q->storages];
            *s = (cot__storage){.refs = 1, .backend = s->backend, .bytes = s->bytes, .data = s->data,
                                /* like a new one */
                                .saver_version = UINT32_MAX, .writer = COT__NONE};
            return s;
        }
    return NULL;
}

/* ---- runs whose results nothing will read ---------------------------------------------------- */

cot__deferred_point cot__deferred_hold(cot_tape *t) {
    const work *q = work_of(t);
    t->deferred.in_stages = true;
    return q ? (cot__deferred_point){q->emptied, q->head.runs} : (cot__deferred_point){0, 0};
}

/* If the list was emptied meanwhile, it holds nothing older. */
static int first_since(const work *q, cot__deferred_point since) {
    return q->emptied == since.emptied ? since.runs : 0;
}

bool cot__deferred_any_since(const cot_tape *t, cot__deferred_point since) {
    return t->deferred.work && first_since(work_of(t), since) < t->deferred.work->runs;
}

static bool reads(const cot__block_run *r, const place *z) {
    for (int k = 0; k < r->n; k++) {
        place x = place_of(&r->x[k], false);
        if (r->x[k].data && overlaps(&x, z->lo, z->hi)) return true;
    }
    for (int k = 0; k < r->outputs; k++) {
        place out = place_of(&r->out[k].to, true);
        if (r->out[k].accumulate && overlaps(&out, z->lo, z->hi)) return true;
    }
    return false;
}

/* A run is dead if neither a needed value nor a living run after it reads its result. */
static void forget(work *q, cot__deferred_point since, uint32_t from, const uint8_t *needed) {
    const cot_tape *t = q->head.tape;
    place           z[RUNS];
    bool            lives[RUNS];
    int             first = first_since(q, since), kept = first;
    for (int k = first; k < q->head.runs; k++) {
        z[k] = place_of(&q->run[k].out[0].to, true);
        lives[k] = q->run[k].outputs != 1;
    }
    for (uint32_t i = from; i < t->count; i++) {
        if (!needed[i - from] || !cot__is_tensor(&t->nodes[i])) continue;
        const cot__storage *s = t->nodes[i].value.tensor->storage;
        for (int k = first; k < q->head.runs; k++)
            lives[k] |= overlaps(&z[k], s->data, (const char *)s->data + s->bytes);
    }
    for (int k = q->head.runs - 1; k >= first; k--)
        for (int later = k + 1; later < q->head.runs && !lives[k]; later++)
            lives[k] = lives[later] && reads(&q->run[later], &z[k]);
    for (int k = first, s = 0; k < q->head.runs; k++) {
        while (s < q->stages && q->before[s].runs < k) s++;
        for (; s < q->stages && q->before[s].runs == k; s++) q->before[s].runs = kept;
        if (lives[k]) q->run[kept++] = q->run[k];
    }
    q->head.runs = kept;
    while (q->stages && q->before[q->stages - 1].runs == kept) { /* an empty last one */
        q->size = q->before[--q->stages].size;
        q->cost = q->before[q->stages].cost;
    }
}

void cot__deferred_drop_since(cot_tape *t, cot__deferred_point since, uint32_t from, const uint8_t *needed) {
    work *q = work_of(t);
    t->deferred.in_stages = false;
    if (q && needed) forget(q, since, from, needed);
    if (q && q->stages) empty(q);
}

/* ---- deferring ------------------------------------------------------------------------------- */

static work *ready(cot_tape *t) {
    if (!t->deferred.work && (t->deferred.work = cot__alloc(&t->al, sizeof(work)))) {
        work *q = work_of(t);
        q->head = (cot__deferred){0, t};
        q->places = q->numbers = q->storages = 0;
        q->cost = q->emptied = q->stages = 0;
    }
    return work_of(t);
}

static const int64_t *keep_numbers(work *q, const int64_t *numbers, int n) {
    memcpy(&q->number[q->numbers], numbers, (size_t)n * sizeof *numbers);
    q->numbers += n;
    return &q->number[q->numbers - n];
}

/* Does the value lie where it may have moved when the runs are done: a number of the caller's, or a
 * 0-d value in its node? */
static bool is_passing(const work *q, const cot__view *v) {
    return v->ndim == 0 && (cot__is_number_view(v) || cot__scalars_in_nodes(q->head.tape));
}

/* Copies what the view refers to, a single value or shape and strides, into the list. */
static void keep_view(work *q, cot__view *v) {
    if (!v->data) return; /* not read */
    if (is_passing(q, v)) {
        memcpy(&q->number[q->numbers], v->data, (size_t)cot__dtype_size(v->dtype));
        v->data = &q->number[q->numbers++];
    } else {
        v->shape = keep_numbers(q, v->shape, v->ndim);
        v->stride = keep_numbers(q, v->stride, v->ndim);
    }
}

enum { VIEWS = 10 }; /* of a run, at most */

/* Can the caller neither write nor read this memory but through the library? What a body is
 * recorded on is given up soon, so it is done at once. */
static bool is_private(const cot_tape *t, int n, const uint32_t *nodes) {
    if (!nodes || t->deferred.at_once || t->mode.body || t->mode.inside) return false;
    for (int k = 0; k < n; k++) {
        const cot__node *x = nodes[k] == COT__NONE ? NULL : &t->nodes[nodes[k]];
        if (x && cot__is_tensor(x) && x->value.tensor->storage->borrowed) return false;
    }
    return true;
}

static bool may_defer(const cot_tape *t, const cot__view *z, int n, const uint32_t *nodes) {
    return z->ndim > 0 && cot__count(z->ndim, z->shape) >= cot__deferred_from &&
           (t->deferred.sweeps || is_private(t, n, nodes));
}

static bool is_full(const work *q) {
    return q->head.runs == RUNS || q->places + VIEWS > PLACES || q->numbers + VIEWS * 2 * COT_MAX_NDIM > NUMBERS;
}

/* Can it be done block by block with the last stage? */
static bool fits(const work *q, int64_t size, const place *p, int n) {
    if (size != q->size) return false;
    for (int k = 0; k < n; k++)
        if (in_the_way(q, &p[k])) return false;
    return true;
}

static void make_room(work *q, int64_t size, const place *p, int n) {
    if (!q->head.runs) return;
    if (is_full(q)) {
        empty(q);
    } else if (!fits(q, size, p, n)) {
        if (!q->head.tape->deferred.in_stages || q->stages == STAGES) {
            empty(q);
            return;
        }
        q->before[q->stages++] = (stage){q->head.runs, q->places, q->size, q->cost};
        q->cost = 0;
    }
}

/* No deferred run, this one included, reads the old contents. */
static void spoil(const work *q, const place *p, int n) {
    const place *z = &p[n - 1];
    for (int k = 0; k < q->places; k++)
        if (overlaps(z, q->place[k].lo, q->place[k].hi)) return;
    for (int k = 0; k < n - 1; k++)
        if (overlaps(z, p[k].lo, p[k].hi)) return;
    if (z->element > 0) cot__spoil(q->head.tape->backend, z->view.data, z->hi - z->lo);
}

static void keep(work *q, cot__block_run *r) {
    int64_t size = cot__count(r->out[0].to.ndim, r->out[0].to.shape);
    place   places[VIEWS];
    int     n = 0, of[VIEWS]; /* which operand each is of */
    for (int k = 0; k < r->n; k++)
        if (r->x[k].data && !is_passing(q, &r->x[k])) places[n++] = place_of(&r->x[k], false), of[n - 1] = k;
    int read = n;
    for (int k = 0; k < r->outputs; k++) places[n++] = place_of(&r->out[k].to, true);
    make_room(q, size, places, n);
    if (cot__deferred_spoils && r->outputs == 1 && !r->out[0].accumulate) spoil(q, places, n);
    q->size = size;
    q->cost += r->cost;
    for (int k = 0; k < r->n; k++) keep_view(q, &r->x[k]);
    for (int k = 0; k < r->outputs; k++) keep_view(q, &r->out[k].to);
    for (int k = 0; k < n; k++) { /* the views as the list keeps them */
        places[k].view = k < read ? r->x[of[k]] : r->out[k - read].to;
        add_place(q, &places[k]);
    }
    q->run[q->head.runs++] = *r;
}

static void now_or_later(cot_tape *t, cot__block_run *r, int n, const uint32_t *nodes) {
    work *q = may_defer(t, &r->out[0].to, n, nodes) ? ready(t) : NULL;
    if (q) {
        keep(q, r);
        return;
    }
    cot__deferred_finish(t);
    cot__run_now(t->backend, r);
}

void cot__deferred_elementwise(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z,
                               const uint32_t *nodes) {
    cot__block_run r;
    cot__block_run_of_value(&r, op, compute, n, xs, z);
    now_or_later(t, &r, n, nodes);
}

void cot__deferred_partials(cot_tape *t, int op, cot_dtype compute, int n, const cot__view *xs, const cot__view *z,
                            int count, const cot__term *terms) {
    cot__block_run r;
    cot__block_run_of_partials(&r, op, compute, n, xs, z, count, terms);
    now_or_later(t, &r, 0, NULL);
}

void cot__deferred_copy(cot_tape *t, const cot__view *to, const cot__view *from, const uint32_t *nodes) {
    cot__block_run r;
    work          *q = may_defer(t, to, 2, nodes) ? ready(t) : NULL;
    if (q) {
        cot__block_run_of_copy(&r, to, from);
        keep(q, &r);
        return;
    }
    cot__deferred_finish(t);
    t->backend->copy(to, from);
}
