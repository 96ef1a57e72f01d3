/* products.c: many directions at once, in numbers.
 *
 * A sweep over f64 scalars carries up to four lanes (product_scalars.c). If other nodes lie on the
 * way, the directions are swept one by one, but the results of several are read only when all of
 * these have been swept. Until then elementwise work waits (src/pending). So
 * the values on the tape, which all directions read, pass through the caches once for all of
 * them. */
#include "diff/engine/find_kinks.h"
#include "diff/products/products.h"
#include "pending/pending.h"

#include <string.h>

/* ---- the vars of one side, flattened --------------------------------------------------------- */

/* Writing the name of an operand costs more than checking it, so the name is made only for a
 * message. */
static bool output_operand(cot_tape *t, const char *op, int k, cot_var y, uint32_t *index) {
    char which[32];
    *index = cot__index(y);
    if (LIKELY(y.tape == t && *index < t->count && t->nodes[*index].stamp == (uint32_t)(y.id >> 32) &&
               !cot__is_tensor(&t->nodes[*index])))
        return true;
    snprintf(which, sizeof which, "ys[%d]", k);
    return cot__operand(t, y, op, which, index);
}

int64_t cot__total_size(int n, const cot_var *vars) {
    int64_t size = 0;
    for (int k = 0; vars && k < n; k++) size = cot__size_add(size, cot_size(vars[k]));
    return size;
}

/* Computes the range of nodes and the number of elements of all vars. */
static void measure(cot__side *s) {
    uint32_t lo = UINT32_MAX, hi = 0;
    int      scalars = 0;
    for (int k = 0; k < s->n; k++) {
        uint32_t i = s->index[k];
        lo = i < lo ? i : lo;
        hi = i > hi ? i : hi;
        if (LIKELY(!cot__is_tensor(&s->t->nodes[i]))) {
            scalars++;
            continue;
        }
        int64_t size = cot__size_at(s->t, i);
        s->size = cot__size_add(s->size, size);
        s->each_one = s->each_one && size == 1;
    }
    s->lo = lo, s->hi = hi;
    s->size = cot__size_add(s->size, scalars);
}

bool cot__each_one(int n, const cot_var *vars) {
    for (int k = 0; k < n; k++)
        if (cot_size(vars[k]) != 1) return false;
    return true;
}

bool cot__side_open(cot__side *s, cot_tape *t, const char *op, bool inputs, int n, const cot_var *vars) {
    *s = (cot__side){.t = t, .n = n, .each_one = true};
    if (n < 0) {
        cot__fail(t, COT_VALUE, "[%s] a negative number of vars: %d", op, n);
        s->n = 0;
        return false;
    }
    s->index = cot__alloc(&t->al, (size_t)n * sizeof *s->index);
    if (!s->index) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d vars", op, n);
        return false;
    }
    if (inputs && !cot__check_inputs(t, op, n, vars, s->index)) return false;
    for (int k = 0; k < n && !inputs; k++) {
        if (!output_operand(t, op, k, vars[k], &s->index[k])) return false;
        if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[s->index[k]]))) {
            cot__fail(t, COT_DTYPE, "[%s] ys[%d] has dtype %s; only floats have derivatives", op, k,
                      cot__dtype_name(cot__dtype_at(&t->nodes[s->index[k]])));
            return false;
        }
    }
    measure(s);
    return true;
}

void cot__side_close(cot__side *s) { cot__free(&s->t->al, s->index, (size_t)s->n * sizeof *s->index); }

/* ---- one direction, any nodes ---------------------------------------------------------------- */

/* A product whose numbers may still wait to be computed. */
typedef struct held {
    int      lane, var;
    int64_t  at;
    cot__acc tensor;
} held;

typedef struct work {
    cot_tape              *t;
    const cot__directions *d;
    cot__side             *from, *to;
    int                    lane;
    held                  *held;
    uint32_t               count, capacity;
    uint8_t               *reach; /* as in a sweep; NULL: not marked */
    uint32_t               reach_from;
    size_t                 reach_bytes;
} work;

/* Adds the numbers for node i to its slot, as an adjoint or tangent. They are the elements from
 * `at` on of this lane's direction. */
static bool seed_node(cot__sweep *s, const work *w, uint32_t i, int64_t at) {
    cot_tape     *t = s->t;
    const double *row = w->d->seed || !w->d->in ? w->d->in : w->d->in + w->lane * w->from->size + at;
    int64_t       stride[COT_MAX_NDIM];
    cot__view     v = cot__layout_at(t, i);
    if (!cot__is_tensor(&t->nodes[i])) {
        double number;
        if (w->d->seed) w->d->seed(w->d->ctx, w->lane, at, &(cot__view){&number, COT_F64, 0, NULL, NULL});
        else number = *row;
        cot__slot_add(t, i, number);
        return true;
    }
    /* no memory that is kept for waiting work, because this memory is written at once */
    cot__storage *fresh =
        cot__storage_create(t, (size_t)(cot__count(v.ndim, v.shape) * cot__dtype_size(v.dtype)), "backward");
    if (!fresh) return false;
    cot__strides(v.ndim, v.shape, stride);
    cot__bound all = {{fresh->data, v.dtype, v.ndim, v.shape, stride}, fresh};
    cot__view  to = all.view;
    if (w->d->seed) {
        w->d->seed(w->d->ctx, w->lane, at, &to);
    } else {
        double *data;
        /* the copy of the pointer drops const; the memory is only read */
        memcpy(&data, &row, sizeof data);
        t->backend->copy_in(&to, &(cot__view){data, COT_F64, v.ndim, v.shape, stride});
    }
    bool listed_twice = *cot__slot(t, i) != 0;
    bool ok = listed_twice ? cot__acc_add(s, i, &all) : cot__acc_share(s, i, fresh, 0, stride);
    cot__storage_release(t, fresh);
    return ok;
}

static bool seed(cot__sweep *s, const work *w) {
    int64_t at = 0;
    for (int k = 0; k < w->from->n; k++) {
        if (!seed_node(s, w, w->from->index[k], at)) return false;
        at += cot__size_at(s->t, w->from->index[k]);
    }
    return true;
}

static bool take(const work *w, int lane, int64_t at, int64_t size, const cot__view *from) {
    int64_t stride[COT_MAX_NDIM];
    if (w->d->take) return w->d->take(w->d->ctx, lane, at, size, from);
    if (size == 0) return true;
    double *to = w->d->out + lane * w->to->size + at;
    if (!from) memset(to, 0, (size_t)size * sizeof *to);
    else if (cot__is_number_view(from)) *to = *(const double *)from->data;
    else {
        cot__strides(from->ndim, from->shape, stride);
        w->to->t->backend->copy_out(&(cot__view){to, COT_F64, from->ndim, from->shape, stride}, from);
    }
    return true;
}

/* Takes result k of this lane. A tensor is held until the work that waits is done, and taken
 * later. */
static bool hold(work *w, int k, int64_t at, bool arrived, double scalar, const cot__acc *a) {
    uint32_t i = w->to->index[k];
    void    *list = w->held;
    if (arrived && cot__is_tensor(&w->t->nodes[i])) {
        if (!cot__grow(w->t, &list, &w->capacity, w->count, sizeof *w->held, "backward")) return false;
        w->held = list;
        w->held[w->count++] = (held){w->lane, k, at, *a};
        a->storage->refs++;
        return true;
    }
    cot__view number = cot__number_view(&scalar, COT_F64);
    return take(w, w->lane, at, cot__size_at(w->t, i), arrived ? &number : NULL);
}

size_t cot__product_keeps(int m, int n) {
    size_t room = COT__GROWS_FROM;
    while (room < (size_t)n) room *= 2;
    return cot__cache_takes(room * sizeof(held)) + cot__cache_takes((size_t)m * sizeof(uint32_t)) +
           cot__cache_takes((size_t)n * sizeof(uint32_t));
}

static bool reverse_lane(work *w) {
    cot_tape  *t = w->t;
    cot__side *ys = w->from, *xs = w->to;
    cot__sweep s = {.t = t, .lo = ys->lo, .top = ys->hi, .gradients = true, .wanted_only = true, .read_later = true};
    s.reach = w->reach, s.reach_from = w->reach_from;
    int64_t    at = 0;
    bool       ok = seed(&s, w) && cot__reverse(&s);
    /* the slots are free now: they serve as an index of arrivals */
    for (uint32_t a = 0; a < s.arrival_count && ok; a++) *cot__slot(t, s.arrivals[a].node) = (uint64_t)a + 1;
    for (int k = 0; k < xs->n && ok; k++) {
        uint64_t            slot = xs->index[k] <= s.top ? *cot__slot(t, xs->index[k]) : 0;
        const cot__arrival *a = slot ? &s.arrivals[slot - 1] : NULL;
        ok = hold(w, k, at, a, a ? a->scalar : 0, a ? &a->tensor : NULL);
        at += cot__size_at(t, xs->index[k]);
    }
    s.reach = NULL; /* all lanes share it */
    cot__sweep_close(&s, false);
    return ok;
}

/* The sweep goes down to all that the ys depend on, so it may come to an overwritten value that no
 * x needs. Then it is done again, only on the way to the xs. Marking that way beforehand would cost
 * time in all other cases. */
static bool reverse_one(work *w) {
    cot__sweep marks = {.t = w->t};
    if (reverse_lane(w)) return true;
    if (w->t->status != COT_STALE || w->reach) return false;
    cot_tape_clear_error(w->t);
    if (!cot__mark_reach(&marks, w->t->sweep.asked, w->to->n, w->to->index, w->from->hi)) return false;
    w->reach = marks.reach, w->reach_from = marks.reach_from, w->reach_bytes = marks.reach_bytes;
    return reverse_lane(w);
}

static bool forward_one(work *w) {
    cot_tape  *t = w->t;
    cot__side *xs = w->from, *ys = w->to;
    uint32_t   lo = xs->lo < ys->lo ? xs->lo : ys->lo, hi = xs->hi > ys->hi ? xs->hi : ys->hi;
    cot__sweep s = {.t = t, .lo = lo, .top = hi, .read_later = true};
    int64_t    at = 0;
    bool       ok = seed(&s, w);
    s.top = ys->hi;
    s.ys = ys->index;
    s.ny = ys->n;
    ok = ok && (xs->lo > ys->hi || cot__forward(&s, xs->lo));
    s.top = hi;
    for (int k = 0; k < ys->n && ok; k++) {
        uint32_t i = ys->index[k];
        uint64_t slot = *cot__slot(t, i);
        bool     tensor = cot__is_tensor(&t->nodes[i]);
        ok = hold(w, k, at, slot, tensor ? 0 : cot__slot_get(t, i), tensor && slot ? &s.accs[slot - 1] : NULL);
        at += cot__size_at(t, i);
    }
    cot__sweep_close(&s, false);
    return ok;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool take_held(work *w, bool ok) {
    cot__pending_finish(w->t);
    for (uint32_t k = 0; k < w->count && ok; k++) {
        const held *h = &w->held[k];
        cot__view   v = cot__layout_at(w->t, w->to->index[h->var]);
        cot__view   from = {(char *)h->tensor.storage->data + h->tensor.offset * cot__dtype_size(v.dtype), v.dtype,
                            v.ndim, v.shape, h->tensor.stride};
        ok = take(w, h->lane, h->at, cot__count(v.ndim, v.shape), &from);
    }
    if (ok && w->d->done && w->lane == w->d->lanes) w->d->done(w->d->ctx);
    for (uint32_t k = 0; k < w->count; k++) cot__storage_release(w->t, w->held[k].tensor.storage);
    w->count = 0;
    return ok;
}

static void any_nodes(work *w, bool reverse) {
    int  group = w->to->n <= COT__HELD_VARS ? COT__HELD : 1;
    bool ok = true;
    cot__pending_open(w->t);
    while (w->lane < w->d->lanes && ok) {
        int end = w->d->lanes - w->lane < group ? w->d->lanes : w->lane + group;
        for (; w->lane < end && ok; w->lane++) ok = (reverse ? reverse_one : forward_one)(w);
        ok = take_held(w, ok);
    }
    cot__pending_close(w->t);
    cot__free(&w->t->al, w->held, w->capacity * sizeof *w->held);
    cot__list_free(w->t, w->reach, w->reach_bytes);
}

static void scalars(const char *op, work *w, bool reverse, uint32_t hi) {
    for (int done = 0; done < w->d->lanes;) {
        const cot__scalar_runs *runs = cot__scalar_runs_for(w->d->lanes - done);
        int              used = runs->lanes < w->d->lanes - done ? runs->lanes : w->d->lanes - done;
        if (!cot__slots(w->t, hi, runs->lanes, op)) return;
        (reverse ? cot__reverse_products : cot__forward_products)(
            w->from, w->to, runs, used, w->d->in + done * w->from->size, w->d->out + done * w->to->size);
        done += used;
    }
}

static void products(const char *op, bool reverse, cot__side *from, cot__side *to, const cot__directions *d) {
    cot_tape  *t = from->t;
    cot__side *xs = reverse ? to : from, *ys = reverse ? from : to;
    uint32_t   hi = ys->hi > xs->hi ? ys->hi : xs->hi, lo = xs->lo < ys->lo ? xs->lo : ys->lo;
    work       w = {.t = t, .d = d, .from = from, .to = to};
    if (from->n == 0 || to->n == 0 || d->lanes == 0) return;
    if (!cot__leaves_unassigned(t, op, ys->n, ys->index, xs->n, xs->index)) return;
    if (!cot__smooth_between(t, op, ys->n, ys->index, xs->n, xs->index)) return;
    bool scalar =
        d->lanes > 1 && d->in && d->out && from->each_one && to->each_one && cot__all_scalar(t, op, lo, hi, ys);
    if (t->status != COT_OK) return;
    if (!scalar && cot__products_batched(op, reverse, from, to, d)) return;
    cot__mark_wanted(t, xs->n, xs->index, true);
    if (scalar) scalars(op, &w, reverse, hi);
    else if (cot__slots(t, hi, 1, op)) any_nodes(&w, reverse);
    cot__mark_wanted(t, xs->n, xs->index, false);
}

/* Checks that there are rows of numbers to read and to write. */
static bool lists_given(cot_tape *t, const char *op, const cot__side *from, const cot__side *to,
                        const cot__directions *d) {
    if (d->lanes == 0 || d->seed || ((d->in || from->size == 0) && (d->out || to->size == 0))) return true;
    cot__fail(t, COT_VALUE, "[%s] a list of %lld values is NULL", op,
              (long long)(d->in || from->size == 0 ? to->size : from->size));
    return false;
}

cot_status cot__products_of(const char *op, bool reverse, int m, const cot_var *ys, int n, const cot_var *xs,
                            const cot__directions *d) {
    cot_tape *t = cot__tape_beside(op, m == 1 ? "y" : "ys", m, ys, n, xs);
    if (!t) return cot__status_of(m, ys);
    if (!cot__may_sweep(t, op)) return t->status;
    if (d->lanes < 0) {
        cot__fail(t, COT_VALUE, "[%s] a negative number of lanes: %d", op, d->lanes);
        return t->status;
    }
    cot__side   a, b = {.t = t};
    const char *before = cot__ask(t, op);
    if (cot__side_open(&a, t, op, false, m, ys) && cot__may_sweep_numbers(t, op, a.hi) &&
        cot__side_open(&b, t, op, true, n, xs) && lists_given(t, op, reverse ? &a : &b, reverse ? &b : &a, d) &&
        cot__no_grad_check(t, op, a.n, a.index, b.n, b.index))
        products(op, reverse, reverse ? &a : &b, reverse ? &b : &a, d);
    cot__asked(t, before);
    cot__side_close(&a);
    cot__side_close(&b);
    return t->status;
}

cot_status cot__products(const char *op, bool reverse, int lanes, int m, const cot_var *ys, int n, const cot_var *xs,
                         const double *in, double *out) {
    return cot__products_of(op, reverse, m, ys, n, xs, &(cot__directions){.lanes = lanes, .in = in, .out = out});
}
