/* least.c: a limit that is enough, from shapes alone.
 *
 * Where a step can be rehearsed (rehearse.c), the smallest limit under which it succeeds is sought
 * by halving. Whether one does need not be monotone, because under another limit other values are
 * dropped; so some above the one that is told are tried as well. The tighter a limit, the longer it
 * takes: what takes too long counts as not enough, and halving ends when all together do. That is
 * counted, not timed, so the answer is always the same.
 *
 * Else it is estimated from above. What cannot be dropped stays: `fixed`. Besides, at each moment:
 *
 *   to make a value   need = the largest of: operands, results and workspace of its operation; an
 *                     operand's own need, with the other operands pinned beside it
 *   on the way back   adjoints that wait; values of the operation, one of them being made; what its
 *                     rule makes on its way, which is estimated
 *
 * Operands may be made in any order, and nothing is taken to be there that could be dropped: so
 * long chains cost no more than short ones, and each place where two branches meet costs one value
 * more. A body of a loop, a condition or a checkpoint counts with all its values and adjoints: the
 * largest one, beside the rest; a search, such as that for a root, with what it was seen to take.
 * What a called program or a function of the user's takes is not known from here. */
#include "memory/memory.h"
#include "backend/job_run.h"
#include "pending/pending.h"
#include "tape/record_job.h"

#include <math.h>

enum {
    SLACK = 1 << 13,  /* lists of a sweep, of waiting work, and operations that a rule records … */
    OF_VALUE = 512,   /* … with the header, the shape and the accumulator of each value in them */
    ALIGNED = 64
};

typedef struct measure {
    cot_tape *t;
    uint32_t *maker;   /* the operation that can make the value of a node again; COT__NONE: none */
    double   *need;    /* of a maker */
    double   *adjoint; /* of a node: what its adjoint takes; 0: it has none now */
    double    fixed, values;  /* what stays, and what can be dropped */
    double    there, back;    /* the most at once above `fixed`: while recording, on the way back */
    double    whole;          /* the same on the way back, with all values there */
} measure;

/* With the alignment of elements, as the allocator rounds it. */
static double room_for(size_t bytes) { return (double)cot__cache_takes(bytes + ALIGNED); }

static cot__storage *storage_at(const cot_tape *t, uint32_t i) {
    return i != COT__NONE && cot__is_tensor(&t->nodes[i]) ? t->nodes[i].value.tensor->storage : NULL;
}

/* Bytes of the value of node i, where it can be dropped. A scope lets none go under a limit. */
static double droppable(const measure *m, uint32_t i) {
    if (i == COT__NONE || m->maker[i] == COT__NONE) return 0;
    return room_for(cot__was_let_go(m->t, i) ? (size_t)cot__bytes_at(m->t, i) : storage_at(m->t, i)->bytes);
}

/* ---- who makes what -------------------------------------------------------------------------- */

/* Node i is the first on its storage, or a scope has let it go. */
static uint32_t maker_of(const cot_tape *t, uint32_t i) {
    uint32_t             by = t->nodes[i].op == OP_pick ? cot__arg(&t->nodes[i], 0) : i;
    const cot__storage *s = storage_at(t, i);
    bool                as_made = s->version == 0 || cot__was_let_go(t, i);
    return !s->borrowed && as_made && !cot__in_body(&t->nodes[i]) && cot__can_replay(t, by) ? by : COT__NONE;
}

/* What the elements of s take now. Without a limit they lie behind the header, which stays. */
static double taken_by(const cot__storage *s) {
    if (s->borrowed || s->aside || s->dropped) return 0;
    return s->block ? room_for(s->bytes) : room_for(sizeof *s + s->bytes) - (double)cot__cache_takes(sizeof *s);
}

/* A scope has let node i go, which it would not under a limit. A view has the elements of what it
 * views. */
static void find_maker_of_gone(measure *m, uint32_t i) {
    const cot__node *n = &m->t->nodes[i];
    bool             is_view = n->op >= OP_structural && cot__op_of(n->op)->view;
    m->maker[i] = is_view ? m->maker[cot__arg(n, 0)] : maker_of(m->t, i);
    if (is_view) return;
    if (m->maker[i] == COT__NONE) m->fixed += room_for((size_t)cot__bytes_at(m->t, i));
    else m->values += droppable(m, i);
}

static void clear_marks(cot_tape *t, uint32_t end) {
    for (uint32_t i = 0; i < end; i++) {
        cot__lists_walk(t, i);
        if (storage_at(t, i)) storage_at(t, i)->before = 0;
    }
}

/* `before` of a storage is free between two searches (drop.c): 1 + the first node on it, and
 * negative once it is known for that of a leaf. The first on that of a parameter is an example. */
static void find_makers(measure *m, uint32_t end) {
    cot_tape *t = m->t;
    m->fixed = (double)cot__cache_used(&t->cache);
    clear_marks(t, end);
    for (uint32_t i = 0; i < end; i++) {
        cot__lists_walk(t, i);
        cot__storage *s = storage_at(t, i);
        m->maker[i] = COT__NONE;
        if (!s) continue;
        if (cot__was_let_go(t, i)) {
            find_maker_of_gone(m, i);
            continue;
        }
        bool first = s->before == 0;
        if (first) s->before = 1 + (double)i;
        m->maker[i] = first ? maker_of(t, i) : m->maker[(uint32_t)fabs(s->before) - 1];
        if (first) m->values += droppable(m, i);
        bool leaf = cot__is_leaf(&t->nodes[i]) && s->before > 0;
        if (leaf) s->before = -s->before;
        if (m->maker[i] != COT__NONE ? first : leaf) m->fixed -= taken_by(s);
    }
    clear_marks(t, end);
}

double cot__undroppable(cot_tape *t, uint32_t end) {
    measure m = {.t = t};
    if (end && !(m.maker = cot__list_resize(t, NULL, 0, end * sizeof *m.maker))) return -1;
    find_makers(&m, end);
    size_t with = cot__cache_used(&t->cache);
    cot__list_free(t, m.maker, end * sizeof *m.maker);
    return m.fixed - (double)(with - cot__cache_used(&t->cache)); /* without the list */
}

/* ---- one operation --------------------------------------------------------------------------- */

int64_t cot__workspace_at(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    cot__view        x[COT__FEW_OPERANDS], z[COT__JOB_RESULTS];
    int              count = cot__nargs(n), m = cot__results_at(t, i);
    const cot__op   *op = cot__op_of(n->op);
    /* others do not run by their shapes alone */
    bool has = n->op >= OP_structural && op->workspace && !op->again; /* so it is no number */
    bool asks = has && (cot__can_replay(t, i) || (cot__in_body(n) && op->run && !op->needs_tape));
    if (!asks || count > COT__FEW_OPERANDS || m > COT__JOB_RESULTS) return 0;
    for (int k = 0; k < count; k++) x[k] = cot__layout_at(t, cot__arg(n, k));
    for (int k = 0; k < m; k++) z[k] = cot__layout_at(t, i + (uint32_t)k);
    cot__job j = {.backend = t->backend, .record = op, .op = n->op, .n = count, .x = x, .z = z[0], .more = z + 1,
                  .attr = n->extra.attr};
    int64_t bytes = cot__job_workspace(&j);
    return bytes > 0 ? bytes : 0;
}

static double workspace_of(const cot_tape *t, uint32_t i) {
    int64_t bytes = cot__workspace_at(t, i);
    return bytes ? room_for((size_t)bytes) : 0;
}

/* The values of an operation, k = 0, 1, …: operands, then results. */
static uint32_t value_of(const cot_tape *t, uint32_t i, int k) {
    int count = cot__nargs(&t->nodes[i]);
    return k < count ? cot__arg(&t->nodes[i], k) : i + (uint32_t)(k - count);
}

/* What the first n values of operation i take together, one of them being made. */
static double with_one_made(const measure *m, uint32_t i, int n) {
    double all = 0, more = 0;
    for (int k = 0; k < n; k++) {
        uint32_t v = value_of(m->t, i, k);
        double   own = droppable(m, v), extra = own > 0 && m->maker[v] != i ? m->need[m->maker[v]] - own : 0;
        all += own;
        if (extra > more) more = extra;
    }
    return all + more;
}

/* ---- the two walks --------------------------------------------------------------------------- */

static void walk_up(measure *m, uint32_t end) {
    for (uint32_t i = 0; i < end; i++) {
        cot__lists_walk(m->t, i);
        int    count = cot__nargs(&m->t->nodes[i]);
        double own = workspace_of(m->t, i), making = with_one_made(m, i, count);
        for (int k = 0; k < count + cot__results_at(m->t, i); k++) own += droppable(m, value_of(m->t, i, k));
        m->need[i] = own > making ? own : making;
        if (m->need[i] > m->there) m->there = m->need[i];
    }
}

static double adjoint_bytes(const measure *m, uint32_t i) {
    return room_for((size_t)cot__bytes_at(m->t, i)) + OF_VALUE;
}

/* What the rule of operation i makes on its way, before it hands down: the adjoint of its result in
 * another order, what is added to adjoints that are there, workspaces as its own operation has. A
 * rule that is no product of its adjoint takes its values once more. */
static double made_by_rule(const measure *m, uint32_t i) {
    const cot__node *n = &m->t->nodes[i];
    bool             whole = n->op >= OP_structural && cot__op_of(n->op)->kind == KIND_GENERIC;
    double           all = 2 * workspace_of(m->t, i);
    for (int k = 0, count = cot__nargs(n); k < count + cot__results_at(m->t, i); k++) {
        uint32_t v = value_of(m->t, i, k);
        if (v == COT__NONE || !cot__has_axes(&m->t->nodes[v])) continue;
        if (k >= count || m->adjoint[v] > 0) all += adjoint_bytes(m, v);
        if (whole) all += adjoint_bytes(m, v);
    }
    return all;
}

/* Adjoints for the operands of node i. Those of leaves are gradients, and do not count. */
static double hand_down(measure *m, uint32_t i) {
    const cot__node *n = &m->t->nodes[i];
    double           more = 0;
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || m->adjoint[a] > 0 || !(m->t->nodes[a].flags & COT__ACTIVE)) continue;
        m->adjoint[a] = adjoint_bytes(m, a);
        if (!cot__is_leaf(&m->t->nodes[a])) more += m->adjoint[a];
    }
    return more;
}

static void walk_down(measure *m, uint32_t y) {
    double live = m->adjoint[y] = adjoint_bytes(m, y);
    for (uint32_t i = y + 1; i-- > 0;) {
        const cot__node *n = &m->t->nodes[i];
        cot__lists_walk(m->t, i);
        if (m->adjoint[i] == 0) continue;
        double rule = made_by_rule(m, i);
        live += hand_down(m, i);
        double back = live + rule + with_one_made(m, i, cot__nargs(n) + cot__results_at(m->t, i));
        if (back > m->back) m->back = back;
        if (live + rule > m->whole) m->whole = live + rule;
        if (!cot__is_leaf(n)) live -= m->adjoint[i];
    }
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* What playing the body of nodes `from` … takes, and sweeping it: while it goes on no value of it
 * is dropped, each may have an adjoint, and one rule at a time makes what it needs. *to: its
 * end. */
static double inside(const measure *m, uint32_t from, uint32_t end, uint32_t *to) {
    double   values = 0, rule = 0;
    uint32_t i = from;
    for (; i < end && cot__in_body(&m->t->nodes[i]); i++) {
        const cot__node *n = &m->t->nodes[i];
        double           own = made_by_rule(m, i);
        bool             is_view = n->op >= OP_structural && cot__op_of(n->op)->view;
        if (cot__has_axes(n) && n->op != OP_parameter && !is_view) values += adjoint_bytes(m, i);
        if (own > rule) rule = own;
    }
    *to = i;
    return 2 * values + rule;
}

/* The most that a body takes. A body inside of another lies within its nodes. */
static double most_inside(const measure *m, uint32_t end) {
    double most = 0;
    for (uint32_t i = 0, to; i < end; i = to) {
        cot__lists_walk(m->t, i);
        double one = inside(m, i, end, &to);
        if (one > most) most = one;
        if (to == i) to++;
    }
    return most;
}

/* Nodes, slots and side records under a limit instead of what they take now: lists that are long
 * grow by an eighth, and the arena by chunks of a sixteenth of the limit. */
static double lists_under_limit(const cot_tape *t, uint32_t end) {
    const cot__array *const lists[] = {&t->node_memory, &t->sweep.adjoints};
    double                  more = 9.0 / 8 * (double)(end + COT__FIRST_NODES) * (sizeof *t->nodes + sizeof(double));
    for (int k = 0; k < COUNTOF(lists); k++)
        more -= (double)(lists[k]->mapped ? lists[k]->mapped->counted : lists[k]->reserved ? 0 : lists[k]->bytes);
    for (const cot__chunk *c = t->arena; c; c = c->prev)
        more += (double)c->used - (double)cot__cache_takes(sizeof *c + c->size);
    return more - (double)cot__pending_lists(t);
}

static int64_t estimate(cot_tape *t, uint32_t y) {
    /* the further results of its operation are looked at, too */
    uint32_t of = cot__operation_at(t, y), end = of + (uint32_t)cot__results_at(t, of);
    size_t   one = sizeof(uint32_t) + 2 * sizeof(double);
    measure  m = {.t = t};
    double  *memory = cot__list_resize(t, NULL, 0, end * one);
    if (!memory) return -1;
    m.need = memory, m.adjoint = memory + end, m.maker = (uint32_t *)(memory + 2 * (size_t)end);
    cot__list_clear(t, m.adjoint, end * sizeof *m.adjoint);
    find_makers(&m, end);
    /* what solves on the way there does on the way back, too */
    m.fixed += SLACK + lists_under_limit(t, end) + cot__scratch_most(t);
    walk_up(&m, end);
    walk_down(&m, y);
    double limit = m.there > m.back ? m.there : m.back, whole = m.values + m.whole, body = most_inside(&m, end);
    size_t with = cot__cache_used(&t->cache);
    cot__list_free(t, memory, end * one);
    m.fixed -= (double)(with - cot__cache_used(&t->cache)); /* the list itself */
    double all = m.fixed + (limit < whole ? limit : whole) + body;
    /* tensors have a chunk of the arena for the tape, and one for what rules record */
    return (int64_t)(t->arena ? all * 8 / 7 : all);
}

/* ---- by rehearsals --------------------------------------------------------------------------- */

enum {
    PART = 64,                 /* a limit is sought to a part of 1 / PART of it */
    LOOKS = 1 << 21,           /* of a rehearsal, and twice as many as storages squared … */
    SHARES = 3                 /* … of which halving takes as many together */
};

typedef struct search { cot_tape *t; uint32_t y; size_t beside; int64_t share, looks; bool failed; } search;

static bool is_enough(search *s, size_t limit) {
    cot__rehearsal r = {.limit = limit, .beside = s->beside, .most_looks = s->share};
    bool           enough = cot__rehearse(s->t, s->y, &r);
    s->looks += r.looks;
    s->failed |= r.failed;
    return enough;
}

/* About `most` at most. Limits above it are tried, too, further and further away; behind one that
 * is not enough it begins anew. */
static int64_t seek(search *s, size_t most) {
    size_t low = s->beside, high = most;
    while (high - low > high / PART && s->looks < SHARES * s->share && !s->failed) {
        size_t mid = low + (high - low) / 2;
        if (is_enough(s, mid)) high = mid;
        else low = mid;
    }
    size_t step = high / PART + 1, above = 0;
    high += step; /* a rehearsal knows small lists to some hundred bytes */
    while (high < most && above < most - high && !s->failed) {
        if (is_enough(s, high + above)) above += above / 2 + step;
        else high += above + step, above = 0;
    }
    if (high < most) return (int64_t)high;
    for (int k = 0; k < PART && !s->failed && !is_enough(s, most); k++) most += most / PART;
    return (int64_t)most;
}

/* The most in use at once under a limit that drops nothing: a little more than without one, where
 * elements lie behind their headers, and what scopes let go. 0: memory is short. */
static size_t most_under_limits(cot_tape *t, uint32_t y, size_t beside) {
    cot__rehearsal r = {.limit = SIZE_MAX / 4, .beside = beside};
    return cot__rehearse(t, y, &r) ? r.peak : 0;
}

int64_t cot__enough(cot_tape *t, uint32_t y, int64_t *whole) {
    cot__rehearsal r = {0};
    *whole = 0;
    if (t->memory.packed || cot__packs(t)) return 0; /* there can be none */
    if (!cot__can_rehearse(t, y) || !cot__rehearse(t, y, &r)) return r.failed ? -1 : estimate(t, y);
    /* a sweep makes lists of its own, which are there from an earlier one; those of waiting work go
     * before a value does */
    const cot__array *slots = &t->sweep.adjoints;
    double own = (double)(slots->reserved || slots->mapped ? 0 : slots->bytes) + (double)cot__pending_lists(t);
    double fixed = cot__undroppable(t, y + 1), beside = fixed - r.lists - own;
    if (fixed < 0) return -1;
    size_t more = beside > 0 ? (size_t)beside : 0, most = most_under_limits(t, y, more);
    *whole = (int64_t)(r.peak + more);
    int64_t count = t->storages.count < COT__MANY_STORAGES ? t->storages.count : COT__MANY_STORAGES;
    search  s = {.t = t, .y = y, .beside = more, .share = LOOKS + 2 * count * count, .failed = most == 0};
    int64_t least = seek(&s, most);
    return s.failed ? -1 : least;
}
