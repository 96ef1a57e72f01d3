/* replay.c: the elements of a dropped value are made again, or brought back from the store.
 *
 * What has to be made stands in a list, the value that was asked for at its bottom. The operation
 * at the end of the list is done if all its operands are there; else the oldest operand that is not
 * goes to the end of the list. What was made for an operation is pinned until that is done, so each
 * step brings it nearer. Operands that were there, but are dropped meanwhile, are made again too.
 * Where many operations of the list have one operand and wait for another, what they have may fill
 * the memory: then it is an error. */
#include "memory/memory.h"
#include "backend/elements.h"
#include "backend/job_run.h"
#include "diff/engine/saved_values.h"
#include "rules/structural_ids.h"
#include "tape/record_job.h"

#include <string.h>

/* ---- which operations ------------------------------------------------------------------------ */

bool cot__can_replay(const cot_tape *t, uint32_t operation) {
    const cot__node *n = &t->nodes[operation];
    if (cot__in_body(n) || (n->flags & COT__IN_PLACE)) return false;
    if (n->op < OP_structural) return true;
    if (n->op == OP_constant) return n->value.tensor->storage->given != NULL;
    const cot__op *op = cot__op_of(n->op);
    if (op->again) return op->again(n->extra.attr);
    return op->run && !op->needs_tape && op->kind != KIND_SOURCE && op->kind != KIND_PICK &&
           cot__results_at(t, operation) <= COT__JOB_RESULTS;
}

cot_var cot__note_made_so(cot_tape *t, cot_var z, const cot__made_so *g, size_t bytes) {
    cot__node  *n = cot_is_valid(z) ? &t->nodes[cot__index(z)] : NULL;
    cot__made_so *copy = NULL;
    if (!n || !cot__is_tensor(n)) return z;
    if (!(copy = cot__arena(t, bytes, "constant"))) return INVALID(t);
    memcpy(copy, g, bytes);
    n->value.tensor->storage->given = copy;
    return z;
}

/* ---- one operation --------------------------------------------------------------------------- */

static void *elements_of(const cot__node *n) {
    return (char *)n->value.tensor->storage->data + n->value.tensor->offset * cot__dtype_size(cot__dtype_at(n));
}

/* The operand as it lies: it is there. An immediate goes into `number`. */
static cot__view operand_view(const cot_tape *t, const cot__node *n, int k, cot__value *number, cot_dtype compute) {
    uint32_t a = cot__arg(n, k);
    if (a == COT__NONE) {
        cot__store_f64(number, compute, n->extra.number);
        return cot__number_view(number, compute);
    }
    cot__view v = cot__layout_at(t, a);
    v.data = cot__is_tensor(&t->nodes[a]) ? elements_of(&t->nodes[a])
                                          : (void *)&t->nodes[a].value;
    return v;
}

/* The dtype in which an elementwise operation computes: that of the operand that is no number and
 * no condition. */
static cot_dtype compute_of(const cot_tape *t, const cot__node *n) {
    for (int k = cot__nargs(n); k-- > 0;)
        if (cot__arg(n, k) != COT__NONE) return cot__dtype_compute(cot__dtype_at(&t->nodes[cot__arg(n, k)]));
    return COT_F64;
}

/* A function of the user's may fail though it did not the first time. */
static void tell(const cot__caller *c, cot_status code, const char *text) { cot__fail(c->to, code, "%s", text); }
static void silent(const cot__caller *c, cot_status code, const char *text) { (void)c, (void)code, (void)text; }
static void unheard(const cot__caller *c, const char *text) { (void)c, (void)text; }

static cot__storage *storage_of(const cot_tape *t, uint32_t i) {
    return i != COT__NONE && cot__is_tensor(&t->nodes[i]) ? t->nodes[i].value.tensor->storage : NULL;
}

/* Operands and results are pinned (by 1), or free to go again (by -1). */
static void pin(cot_tape *t, uint32_t operation, int by) {
    const cot__node *n = &t->nodes[operation];
    int              count = cot__nargs(n), m = cot__results_at(t, operation);
    for (int k = 0; k < count + m; k++) {
        cot__storage *s = storage_of(t, k < count ? cot__arg(n, k) : operation + (uint32_t)(k - count));
        if (s) s->pins += (uint32_t)by;
    }
}

static bool no_memory(cot_tape *t, uint32_t operation, size_t bytes) {
    char text[160];
    cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to compute %s again",
              t->sweep.asked ? t->sweep.asked : cot__op_name(t, operation), bytes,
              cot__describe(t, operation, text, sizeof text));
    return false;
}

/* Room for the results: those that are there are written once more, with the same bits. made: bit k
 * is set where result k had no elements. */
static bool open_results(cot_tape *t, uint32_t operation, int m, cot__view *z, cot__value *single, uint32_t *made,
                         size_t *bytes) {
    for (int k = 0; k < m; k++) {
        cot__storage *s = storage_of(t, operation + (uint32_t)k);
        /* the store's thread may be reading or writing it */
        if (s && !cot__let_arrive(t, s)) cot__memory_settle(s);
        z[k] = cot__layout_at(t, operation + (uint32_t)k);
        z[k].data = s ? s->data : (void *)&single[k];
        if (!s || !s->dropped) continue;
        *bytes = s->bytes;
        cot__memory_expect(t, s->bytes);
        if (!cot__payload_create(t, s)) return false;
        *made |= UINT32_C(1) << k;
        z[k].data = s->data;
        s->used_at = t->memory.clock;
    }
    return true;
}

static bool run_held(cot_tape *t, cot__job *j) {
    cot__caller caller = *j->caller;
    caller.fail = tell;
    j->caller = &caller;
    j->held = j->record->open(j, &t->al);
    if (!j->held) return false;
    bool ok = j->record->go(j);
    j->record->close(j->held);
    t->memory.replayed++;
    return ok;
}

/* Runs the job of the operation, whose operands and results have memory. False: there is none for
 * the workspace, which *need tells. */
static bool run(cot_tape *t, uint32_t operation, cot__view *x, cot__view *z, size_t *need) {
    const cot__node *n = &t->nodes[operation];
    cot__caller      caller = {cot__op_name(t, operation), t, silent, unheard, NULL};
    int64_t          status[2] = {0, 0};
    cot__job         j = {.caller = &caller, .backend = t->backend, .record = cot__op_of(n->op), .op = n->op,
                          .n = cot__nargs(n), .x = x, .z = z[0], .more = z + 1, .status = status,
                          .attr = n->op >= OP_structural ? n->extra.attr : NULL};
    if (n->op == OP_constant) {
        const cot__made_so *g = n->value.tensor->storage->given;
        return g->give(g, t->backend, &z[0]), t->memory.replayed++, true;
    }
    cot__value       number;
    cot_dtype        compute = n->op < OP_structural ? compute_of(t, n) : COT_F64;
    for (int k = 0; k < j.n; k++) {
        x[k] = operand_view(t, n, k, &number, compute);
        if (cot__arg(n, k) == COT__NONE) j.numbers |= UINT32_C(1) << k;
    }
    if (j.record && j.record->again) return run_held(t, &j);
    int64_t bytes = cot__job_workspace(&j);
    *need = (size_t)bytes;
    if (bytes) cot__memory_expect(t, (size_t)bytes);
    if (bytes && !(j.workspace = cot__device_alloc(t, (size_t)bytes))) return false;
    if (n->op >= OP_structural && j.record->in_place) t->backend->copy(&j.z, &x[0]);
    cot__job_run(&j);
    cot__device_free(t, j.workspace, (size_t)bytes);
    t->memory.replayed++;
    return true;
}

/* Work that waits writes operands, too. */
static void finish_operands(cot_tape *t, uint32_t operation) {
    const cot__node *n = &t->nodes[operation];
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        cot__storage *s = storage_of(t, cot__arg(n, k));
        if (s && s->unready) cot__pending_ready(t, s);
    }
}

/* *need: what there was no memory for. */
static bool do_again(cot_tape *t, uint32_t operation, size_t *need) {
    int        count = cot__nargs(&t->nodes[operation]), m = cot__results_at(t, operation);
    cot__view  few[COT__FEW_OPERANDS], z[COT__JOB_RESULTS];
    cot__value single[COT__JOB_RESULTS];
    uint32_t   made = 0;
    size_t     bytes = (size_t)count * sizeof *few;
    pin(t, operation, 1);
    finish_operands(t, operation);
    *need = bytes;
    cot__view *x = count <= COT__FEW_OPERANDS ? few : cot__alloc(&t->al, bytes);
    bool       done = x && open_results(t, operation, m, z, single, &made, need) && run(t, operation, x, z, need);
    pin(t, operation, -1);
    if (x != few) cot__free(&t->al, x, bytes);
    for (int k = 0; k < m && !done; k++) /* elements that were not written are not the value */
        if (made >> k & 1) cot__payload_drop(t, storage_of(t, operation + (uint32_t)k));
    return done;
}

/* ---- what it needs --------------------------------------------------------------------------- */

/* Would it read what its operation saw? Otherwise sets the error. */
static bool sources_unwritten(cot_tape *t, uint32_t operation) {
    const cot__node *n = &t->nodes[operation];
    char             a[160], b[160], c[200];
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        uint32_t x = cot__arg(n, k);
        if (x == COT__NONE || !cot__overwritten(t, x, operation)) continue;
        if (cot__assigned_since(t, x, operation)) snprintf(c, sizeof c, "%s", cot__assigner_name(&t->nodes[x]));
        else cot__describe_writer(t, t->nodes[x].value.tensor, c, sizeof c);
        cot__fail(t, COT_STALE,
                  "[%s] the value of %s was dropped under the memory limit of %zu bytes, and computing it again would "
                  "read %s, which was overwritten by %s; read it before the write, or raise the limit",
                  t->sweep.asked ? t->sweep.asked : "read", cot__describe(t, operation, a, sizeof a), t->cache.limit,
                  cot__describe(t, x, b, sizeof b), c);
        return false;
    }
    return true;
}

/* The oldest operand that is not there; NULL: all are. Newer ones are often made from it. */
static cot__storage *missing(const cot_tape *t, uint32_t operation) {
    const cot__node *n = &t->nodes[operation];
    uint32_t         oldest = COT__NONE;
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        const cot__storage *s = storage_of(t, cot__arg(n, k));
        if (s && s->dropped && cot__arg(n, k) < oldest) oldest = cot__arg(n, k);
    }
    return storage_of(t, oldest);
}

/* ---- the list -------------------------------------------------------------------------------- */

/* An operation to be done, and the value that it is done for: pinned once it is there, until the
 * operation before it in the list, which reads it, is done. */
typedef struct step { uint32_t operation; cot__storage *made; } step;

typedef struct steps {
    cot_tape *t;
    step     *list;
    uint32_t  count, capacity;
} steps;

static bool push(steps *s, cot__storage *wanted) {
    if (s->count == s->capacity) {
        uint32_t more = s->capacity ? 2 * s->capacity : 16;
        step    *list = cot__resize(&s->t->al, s->list, s->capacity * sizeof *list, more * sizeof *list);
        if (!list) return no_memory(s->t, wanted->owner, more * sizeof *list);
        s->list = list;
        s->capacity = more;
    }
    s->list[s->count++] = (step){wanted->maker != COT__NONE ? wanted->maker : wanted->owner, wanted};
    return true;
}

/* Steps that are done stay in the list, as pins, until their reader is done: their operation is
 * COT__NONE then. */
static void unpin_until(steps *s, uint32_t count) {
    while (s->count > count) {
        step *last = &s->list[--s->count];
        if (last->operation == COT__NONE) last->made->pins--;
    }
}

/* The last step that is not done. */
static uint32_t current(const steps *s) {
    uint32_t k = s->count;
    while (k > 0 && s->list[k - 1].operation == COT__NONE) k--;
    return k - 1;
}

static bool is_done(steps *s, uint32_t at) {
    unpin_until(s, at + 1);
    s->list[at].operation = COT__NONE;
    s->list[at].made->pins++;
    return true;
}

/* The disk has lost it, now or before, and no operation makes it: it was written in place, say. */
static bool is_lost(cot_tape *t, const cot__storage *s) {
    char text[160];
    if (s->maker < t->count && s->version == 0 && cot__can_replay(t, s->maker)) return false;
    const char *why = t->memory.store ? cot__store_trouble(t->memory.store) : NULL;
    t->cache.refused = false; /* it is no matter of the limit */
    cot__fail(t, COT_MEMORY, "[%s] the value of %s was spilled to a file in %s and could not be read back: %s",
              t->sweep.asked ? t->sweep.asked : "read", cot__describe(t, s->owner, text, sizeof text),
              t->memory.store ? cot__store_folder(t->memory.store) : "", why ? why : "unknown");
    return true;
}

static bool go_on(steps *s) {
    cot_tape     *t = s->t;
    uint32_t      at = current(s), operation = s->list[at].operation;
    cot__storage *made = s->list[at].made;
    size_t        need;
    if (made->dropped && cot__is_stored(made)) {
        cot__return r = cot__bring_back(t, made);
        if (r == COT__BACK) return is_done(s, at);
        if (r == COT__NO_ROOM) return no_memory(t, made->owner, made->bytes);
    }
    if (is_lost(t, made)) return false;
    cot__storage *x = missing(t, operation);
    if (x) return push(s, x);
    if (!sources_unwritten(t, operation)) return false;
    if (!do_again(t, operation, &need)) return no_memory(t, operation, need);
    return is_done(s, at);
}

bool cot__make_again(const cot_tape *tape, cot__storage *wanted) {
    cot_tape *t = (cot_tape *)(uintptr_t)tape; /* what can be seen of it does not change */
    steps     s = {.t = t};
    if (wanted->packed) return cot__pack_read(t, wanted) || no_memory(t, wanted->owner, wanted->bytes);
    bool      done = push(&s, wanted);
    while (done && s.list[0].operation != COT__NONE) done = go_on(&s);
    unpin_until(&s, 0);
    cot__free(&t->al, s.list, s.capacity * sizeof *s.list);
    return done && !wanted->dropped;
}

void *cot__nothing(const cot_tape *t) {
    cot_tape *mine = (cot_tape *)(uintptr_t)t;
    memset(mine->memory.nothing, 0, sizeof mine->memory.nothing);
    return mine->memory.nothing;
}

/* ---- before a write -------------------------------------------------------------------------- */

static bool reads(const cot_tape *t, const cot__node *n, const cot__storage *s) {
    for (int k = 0, count = cot__nargs(n); k < count; k++)
        if (storage_of(t, cot__arg(n, k)) == s) return true;
    return false;
}

/* So that what was made from its elements, or together with them, is never made from others. What
 * lies in the store need not be made. */
bool cot__memory_before_write(cot_tape *t, cot__storage *s) {
    uint32_t maker = s->maker;
    cot__memory_settle(s);
    if (s->dropped && !cot__make_again(t, s)) return false;
    if (s->packed) cot__pack_end(t, s); /* what is written is not rounded */
    if (!t->memory.remakes && !cot__limited(t)) return true; /* nothing is made again */
    s->maker = COT__NONE; /* from now on its operation does not make what it holds */
    for (uint32_t i = 0; i < t->storages.count; i++) {
        cot__storage *other = t->storages.list[i];
        if (other->maker >= t->count || (other->maker != maker && !reads(t, &t->nodes[other->maker], s))) continue;
        if (other->dropped && !other->packed && !cot__is_stored(other) && !cot__make_again(t, other)) return false;
        other->maker = COT__NONE;
    }
    return true;
}
