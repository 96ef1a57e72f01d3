/* groups.c: cuts waiting operations into groups, and finds the values that live only while a block
 * is worked on. The rules are those of programs (program/fusion.h): one number of elements, and of
 * what the group itself writes, element i is read only to make element i. */
#include "pending/parts.h"

#include <string.h>

/* ---- do two views have the same elements? ---------------------------------------------------- */

/* Where the elements of a view lie that is not straight. */
typedef struct span {
    const char *lo, *hi; /* all of them lie in [lo, hi) */
    int64_t     element; /* bytes from each to the next; 0: repeats; -1: neither */
} span;

static span span_of(const cot__view *v) {
    int64_t bytes = cot__dtype_size(v->dtype), least = 0, most = 0;
    for (int i = 0; i < v->ndim; i++) {
        int64_t reach = v->shape[i] > 0 ? (v->shape[i] - 1) * v->stride[i] : 0;
        *(reach < 0 ? &least : &most) += reach;
    }
    return (span){(const char *)v->data + least * bytes, (const char *)v->data + (most + 1) * bytes,
                  v->ndim == 0 ? 0 : cot__is_dense(v, v->dtype) ? bytes : cot__repeats(v) ? 0 : -1};
}

static bool same_elements(const cot__view *x, const cot__view *y, const span *a, const span *b) {
    if (x->data != y->data || a->element != b->element || x->dtype != y->dtype) return false;
    if (a->element >= 0) return true;
    size_t bytes = (size_t)x->ndim * sizeof *x->shape;
    return x->ndim == y->ndim && memcmp(x->shape, y->shape, bytes) == 0 && memcmp(x->stride, y->stride, bytes) == 0;
}

static bool agree(const cot__view *x, const cot__view *y) {
    span a = span_of(x), b = span_of(y);
    return a.hi <= b.lo || b.hi <= a.lo || same_elements(x, y, &a, &b);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Views of a group on one storage are a list, from the last one back. */
static uint32_t number_of(uint32_t k, uint32_t i) { return k * COT__WAITING_VIEWS + i; }
static const cot__view *view_at(const cot__pending *q, uint32_t number) {
    return cot__view_of_run(&q->run[number / COT__WAITING_VIEWS], number % COT__WAITING_VIEWS);
}
static bool is_written(uint32_t number) { return number % COT__WAITING_VIEWS >= COT__RUN_VIEWS; }

/* May view i of operation k be worked on in one group with the views on its storage? */
static bool fits_view(const cot__pending *q, uint32_t k, uint32_t i, uint32_t group) {
    const cot__touched *s = &q->touched[q->op[k].on[i]];
    bool                written = i >= COT__RUN_VIEWS;
    if (s->group != group || (!written && !s->written)) return true;
    if (s->straight && q->op[k].straight >> i & 1) return true;
    for (uint32_t n = s->view; n != COT__NOWHERE; n = q->op[n / COT__WAITING_VIEWS].before[n % COT__WAITING_VIEWS])
        if ((written || is_written(n)) && !agree(cot__view_of_run(&q->run[k], i), view_at(q, n))) return false;
    return true;
}

static bool fits(const cot__pending *q, uint32_t first, uint32_t k, uint32_t group) {
    if (q->op[k].size != q->op[first].size || k - first == COT__STAGE_RUNS) return false;
    if (q->op[k].made || q->op[first].made) return false;
    COT__EACH_VIEW (i, &q->op[k])
        if (!fits_view(q, k, i, group)) return false;
    return true;
}

static void join_view(cot__pending *q, uint32_t k, uint32_t i, uint32_t group) {
    cot__touched *s = &q->touched[q->op[k].on[i]];
    if (s->group != group) {
        s->group = group;
        s->view = COT__NOWHERE;
        s->written = false;
        s->straight = true;
    }
    s->written |= i >= COT__RUN_VIEWS;
    s->straight &= q->op[k].straight >> i & 1;
    q->op[k].before[i] = s->view;
    s->view = number_of(k, i);
}

static void join(cot__pending *q, uint32_t k, uint32_t group) {
    q->op[k].group = group;
    COT__EACH_VIEW (i, &q->op[k]) join_view(q, k, i, group);
}

void cot__pending_group(cot__pending *q) {
    uint32_t group = 1, first = 0;
    for (uint32_t k = 0; k < q->count; k++) {
        if (k > first && !fits(q, first, k, group)) {
            group++;
            first = k;
        }
        join(q, k, group);
    }
}

/* ---- values that live in blocks -------------------------------------------------------------- */

/* A storage whose contents interest nobody before and after a group can be the same piece of memory
 * for every block, which stays in cache and need not go to memory. That takes straight views. */
static void note_views(cot__pending *q, uint32_t k) {
    uint32_t group = q->op[k].group;
    COT__EACH_VIEW (i, &q->op[k]) {
        cot__touched *s = &q->touched[q->op[k].on[i]];
        if (s->group != group) s->group = group, s->scratch = !s->needed && !s->storage->borrowed;
        s->scratch &= q->op[k].straight >> i & 1;
    }
}

static uint16_t scratch_views(const cot__pending *q, uint32_t k) {
    uint32_t views = 0;
    COT__EACH_VIEW (i, &q->op[k]) {
        const cot__touched *s = &q->touched[q->op[k].on[i]];
        views |= (uint32_t)(s->scratch && !s->needed) << i;
    }
    return (uint16_t)views;
}

static void find_in_group(cot__pending *q, uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; k++) note_views(q, k);
    cot__pending_walk_back(q, first, end);
    for (uint32_t k = first; k < end; k++) q->moves[k] = scratch_views(q, k);
}

void cot__pending_find_scratch(cot__pending *q) {
    cot__pending_from_end(q);
    for (uint32_t end = q->count, first; end > 0; end = first) {
        for (first = end - 1; first > 0 && q->op[first - 1].group == q->op[first].group; first--) {}
        find_in_group(q, first, end);
    }
}
