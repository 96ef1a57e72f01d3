/* layout.c: see layout.h. Three passes over the operations: blocks, homes, the workspace. */
#include "program/emit/layout.h"
#include "program/emit/bodies.h"
#include "backend/cpu/table/cpu.h"
#include "base/sizes.h"
#include "program/memory/ranges.h"
#include "rules/structural_ids.h"

#include <string.h>

typedef struct arranger {
    cot__layout         *l;
    const cot__program  *p;
    const cot_allocator *al;
    const cot__caller   *caller;
    /* the last block that reads each root */
    uint32_t   *last;
    cot__ranges ranges;
} arranger;

static bool no_memory(const arranger *a) {
    return cot__refuse(a->caller, COT_MEMORY, "out of memory: the layout of %u operations", a->p->operations);
}

/* ---- questions ------------------------------------------------------------------------------- */

bool cot__is_by_element(const cot__program *p, uint32_t k) {
    int op = p->operation[k].op;
    return op < OP_structural || op == OP_cast || op == OP_copy;
}

bool cot__is_no_work(const cot__layout *l, uint32_t k) {
    const cot__operation *o = &l->p->operation[k];
    bool                  wanted = cot__operation_has_effect(l->p, k);
    for (uint32_t r = 0; r < o->results; r++) wanted |= l->wanted[o->result + r] != 0;
    return l->plan.how[k] == COT__BY_VIEW || !wanted;
}

bool cot__is_in_loop(const cot__layout *l, uint32_t k) {
    return cot__is_by_element(l->p, k) && !cot__is_no_work(l, k) &&
           cot__value_view(l->p, l->p->operation[k].result).ndim > 0;
}

bool cot__is_whole(const cot__layout *l, uint32_t value) {
    uint32_t  root = l->plan.root[value];
    cot__view v = cot__plan_view(&l->plan, value), r = cot__value_view(l->p, root);
    if (value == root) return true;
    return l->plan.place[value] == 0 && v.ndim == r.ndim &&
           (v.ndim == 0 || (memcmp(v.shape, r.shape, (size_t)v.ndim * sizeof *v.shape) == 0 &&
                            memcmp(v.stride, r.stride, (size_t)v.ndim * sizeof *v.stride) == 0));
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* A matrix beside its factors is there for rules alone. */
static bool is_read(const cot__program *p, uint32_t k, int i) {
    int op = p->operation[k].op;
    return i > 0 || (op != OP_lu_solve && op != OP_det && op != OP_logabsdet);
}

static void find_wanted(cot__layout *l) {
    const cot__program *p = l->p;
    memset(l->wanted, 0, p->values);
    for (uint32_t k = 0; k < p->outputs; k++) l->wanted[l->plan.root[p->output[k]]] = 1;
    for (uint32_t k = p->operations; k-- > 0;) {
        const uint32_t *x = cot__operation_operand(p, k);
        if (cot__is_no_work(l, k)) continue;
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE && is_read(p, k, i)) l->wanted[l->plan.root[x[i]]] = 1;
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Is the value, or what it is a view of, made by the operations from `first` on that stand in a
 * loop of block b? */
static bool is_made_in(const cot__layout *l, uint32_t value, uint32_t b) {
    uint32_t root = l->plan.root[value];
    if (cot__value_origin(l->p, root) != COT__FROM_OPERATION) return false;
    uint32_t k = cot__value_maker(l->p, root);
    return l->block[k] == b && cot__is_in_loop(l, k);
}

/* May operation k join the open loop? It has its shape, and reads what the loop makes only where it
 * is made. */
static bool joins(const cot__layout *l, uint32_t k, uint32_t open, uint32_t shape_of) {
    const uint32_t *x = cot__operation_operand(l->p, k);
    cot__view       z = cot__value_view(l->p, l->p->operation[k].result), s = cot__value_view(l->p, shape_of);
    if (z.ndim != s.ndim || memcmp(z.shape, s.shape, (size_t)z.ndim * sizeof *z.shape)) return false;
    for (int i = 0; i < cot__operation_operands(l->p, k); i++)
        if (x[i] != COT__NO_VALUE && is_made_in(l, x[i], open) && !cot__is_whole(l, x[i])) return false;
    return true;
}

static bool reads_loop(const cot__layout *l, uint32_t k, uint32_t open) {
    const uint32_t *x = cot__operation_operand(l->p, k);
    for (int i = 0; i < cot__operation_operands(l->p, k); i++)
        if (x[i] != COT__NO_VALUE && is_made_in(l, x[i], open)) return true;
    return false;
}

/* Statements between the operations of a loop are printed before it, so they may not read what it
 * makes. */
static void find_blocks(cot__layout *l) {
    const cot__program *p     = l->p;
    uint32_t            block = 1, shape_of = COT__NO_VALUE; /* of the open loop; none is open */
    for (uint32_t k = 0; k < p->operations; k++) {
        bool loop = cot__is_in_loop(l, k), open = shape_of != COT__NO_VALUE;
        l->block[k] = block;
        if (cot__is_no_work(l, k)) continue;
        bool statement = !loop && (cot__is_by_element(p, k) || l->plan.how[k] == COT__BY_MOVE);
        bool goes_on   = open && (loop ? joins(l, k, block, shape_of) : statement && !reads_loop(l, k, block));
        if (open && !goes_on) shape_of = COT__NO_VALUE, block++;
        l->block[k] = block;
        if (loop && !goes_on) shape_of = p->operation[k].result;
        if (!loop && !statement) block++;
    }
}

/* ---- homes ----------------------------------------------------------------------------------- */

static cot__home first_home(const cot__program *p, uint32_t v) {
    if (cot__value_view(p, v).ndim == 0) return COT__AT_NAME;
    switch (cot__value_origin(p, v)) {
    case COT__FROM_INPUT: return COT__AT_INPUT;
    case COT__FROM_CONSTANT: return COT__AT_CONSTANT;
    case COT__FROM_OPERATION: break;
    }
    return cot__is_by_element(p, cot__value_maker(p, v)) ? COT__AT_LOOP : COT__AT_WORKSPACE;
}

/* A reader in another block, or of another element, needs it in memory. */
static void note_reader(arranger *a, uint32_t value, uint32_t k) {
    cot__layout *l    = a->l;
    uint32_t     root = l->plan.root[value];
    if (a->last[root] < l->block[k]) a->last[root] = l->block[k];
    if (l->home[root] != COT__AT_LOOP) return;
    uint32_t maker = cot__value_maker(l->p, root);
    if (l->block[maker] != l->block[k] || !cot__is_in_loop(l, k) || !cot__is_whole(l, value))
        l->home[root] = COT__AT_WORKSPACE;
}

static void note_output(arranger *a, uint32_t number) {
    cot__layout *l     = a->l;
    uint32_t     value = l->p->output[number], root = l->plan.root[value];
    a->last[root] = UINT32_MAX;
    bool made     = l->home[root] == COT__AT_LOOP || l->home[root] == COT__AT_WORKSPACE;
    if (!made) return;
    l->home[root] = COT__AT_WORKSPACE;
    if (root != value) return;
    l->home[root]  = COT__AT_OUTPUT;
    l->place[root] = number;
}

static void find_homes(arranger *a) {
    const cot__program *p = a->p;
    for (uint32_t v = 0; v < p->values; v++) a->l->home[v] = (uint8_t)first_home(p, v), a->last[v] = 0;
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        if (cot__is_no_work(a->l, k)) continue;
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE) note_reader(a, x[i], k);
    }
    for (uint32_t k = 0; k < p->outputs; k++) note_output(a, k);
}

/* ---- the workspace --------------------------------------------------------------------------- */

int64_t cot__home_bytes(const cot__view *v) {
    int64_t bytes = cot__view_size(v) * cot__dtype_size(v->dtype);
    return bytes > 0 ? (bytes + 7) / 8 * 8 : 8;
}

static int64_t bytes_of(const cot__program *p, uint32_t v) {
    cot__view x = cot__value_view(p, v);
    return cot__home_bytes(&x);
}

/* Gives back what no block after `block` reads. `from` is the first operation that can still hold
 * something: values die in any order, so all of those that are alive are looked at. */
static bool give_back(arranger *a, uint32_t *alive, uint32_t *count, uint32_t block) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        uint32_t v = alive[i];
        if (a->last[v] > block)
            alive[kept++] = v;
        else if (!cot__ranges_give(&a->ranges, a->l->place[v], bytes_of(a->p, v)))
            return no_memory(a);
    }
    *count = kept;
    return true;
}

bool cot__wants_dense(int op) {
    return op == OP_layer_norm || op == OP_rms_norm || op == OP_norm_known || op == OP_norm_back ||
           op == OP_norm_weights || op == OP_loop || op == OP_loop_adjoint;
}

/* Copies of the operands before `end`. */
static int64_t copied(const cot__layout *l, uint32_t k, int end, bool *last) {
    const uint32_t *x = cot__operation_operand(l->p, k);
    int64_t         bytes = 0;
    for (int i = 0; i < end; i++) {
        cot__view v = cot__plan_view(&l->plan, x[i]);
        *last       = v.ndim > 0 && !cot__is_contiguous(v.ndim, v.shape, v.stride);
        if (*last) bytes += bytes_of(l->p, x[i]);
    }
    return bytes;
}

int64_t cot__dense_copy(const cot__layout *l, uint32_t k, int i) {
    bool    last   = false;
    int64_t behind = copied(l, k, i + 1, &last);
    return last ? behind - bytes_of(l->p, cot__operation_operand(l->p, k)[i]) : -1;
}

int64_t cot__dense_bytes(const cot__layout *l, uint32_t k) {
    bool last;
    return cot__wants_dense(l->p->operation[k].op) ? copied(l, k, cot__operation_operands(l->p, k), &last) : 0;
}

/* The most that one of its bodies needs; -1: no memory to find out. Recursive as bodies nest. */
static int64_t room_of_bodies(const arranger *a, uint32_t k) {
    int64_t most = 0;
    for (uint32_t i = a->p->operation[k].body; i < a->p->operation[k + 1].body; i++) {
        cot__layout body;
        if (!cot__layout_open(&body, a->p->body[i], a->al, a->caller)) return -1;
        if (body.workspace > most) most = body.workspace;
        cot__layout_close(&body);
    }
    return most;
}

/* Copies of its operands, then what bodies.h says, and room for the bodies. */
static int64_t scratch_of_loop(const arranger *a, uint32_t k) {
    int64_t bodies = room_of_bodies(a, k), own = cot__loop_room_of(a->p, k).bodies;
    if (bodies < 0) return -1;
    int64_t bytes = cot__size_add(cot__size_add(cot__dense_bytes(a->l, k), own), bodies);
    if (bytes < COT__SIZE_MOST / 2) return bytes;
    cot__refuse(a->caller, COT_LIMIT, "%s keeps more states than memory can hold; ask for fewer (states)",
                cot__operation_name(a->p, k));
    return -1;
}

/* Memory that an operation needs while it runs: copies of its operands; qr keeps its reflections.
 * -1 after telling why it cannot be found out. */
static int64_t scratch_of(const arranger *a, uint32_t k) {
    const cot__layout *l = a->l;
    int                op = l->p->operation[k].op;
    if (op == OP_loop || op == OP_loop_adjoint) return scratch_of_loop(a, k);
    int64_t bytes = cot__dense_bytes(l, k);
    if (op != OP_qr) return bytes;
    cot__view v = cot__value_view(l->p, l->p->operation[k].result);
    return v.shape[v.ndim - 2] * v.shape[v.ndim - 1] * cot__dtype_size(v.dtype);
}

/* It is free again when the operation is done; its results have their places already. */
static bool place_scratch(arranger *a, uint32_t k) {
    int64_t needed = scratch_of(a, k), bytes = (needed + 7) / 8 * 8;
    a->l->scratch[k] = -1;
    if (needed < 0) return false;
    if (bytes == 0) return true;
    a->l->scratch[k] = cot__ranges_take(&a->ranges, bytes);
    if (a->l->scratch[k] < 0 || !cot__ranges_give(&a->ranges, a->l->scratch[k], bytes)) return no_memory(a);
    return true;
}

static bool place_values(arranger *a, uint32_t *alive) {
    const cot__program *p     = a->p;
    uint32_t            count = 0, block = 0;
    for (uint32_t k = 0; k < p->operations; k++) {
        if (cot__is_no_work(a->l, k)) continue;
        if (a->l->block[k] != block) {
            if (!give_back(a, alive, &count, block)) return false;
            block = a->l->block[k];
        }
        for (uint32_t r = 0; r < p->operation[k].results; r++) {
            uint32_t v = p->operation[k].result + r;
            if (a->l->home[v] != COT__AT_WORKSPACE) continue;
            a->l->place[v] = cot__ranges_take(&a->ranges, bytes_of(p, v));
            if (a->l->place[v] < 0) return no_memory(a);
            if (a->last[v] < block) a->last[v] = block;
            alive[count++] = v;
        }
        if (!place_scratch(a, k)) return false;
    }
    a->l->workspace = a->ranges.top;
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool arrange(arranger *a) {
    cot__layout *l      = a->l;
    size_t       values = a->p->values, operations = a->p->operations;
    l->block        = cot__alloc(a->al, operations * sizeof *l->block);
    l->wanted       = cot__alloc(a->al, values * sizeof *l->wanted);
    l->home         = cot__alloc(a->al, values * sizeof *l->home);
    l->place        = cot__alloc(a->al, values * sizeof *l->place);
    l->scratch      = cot__alloc(a->al, operations * sizeof *l->scratch);
    a->last         = cot__alloc(a->al, values * sizeof *a->last);
    uint32_t *alive = cot__alloc(a->al, values * sizeof *alive);
    bool      ok    = l->block && l->wanted && l->home && l->place && l->scratch && a->last && alive;
    if (!ok) no_memory(a);
    if (ok) find_wanted(l), find_blocks(l), find_homes(a);
    ok = ok && place_values(a, alive);
    cot__free(a->al, alive, values * sizeof *alive);
    cot__free(a->al, a->last, values * sizeof *a->last);
    cot__ranges_close(&a->ranges);
    return ok;
}

bool cot__layout_open(cot__layout *l, const cot__program *p, const cot_allocator *al, const cot__caller *caller) {
    *l = (cot__layout){.p = p};
    if (!cot__plan_open(&l->plan, p, &cot__cpu_backend, al, NULL, false, caller)) return false;
    arranger a = {.l = l, .p = p, .al = &l->plan.al, .caller = caller, .ranges.al = &l->plan.al};
    if (arrange(&a)) return true;
    cot__layout_close(l);
    return false;
}

void cot__layout_close(cot__layout *l) {
    const cot_allocator al = l->plan.al;
    if (l->p) {
        cot__free(&al, l->block, l->p->operations * sizeof *l->block);
        cot__free(&al, l->wanted, l->p->values * sizeof *l->wanted);
        cot__free(&al, l->home, l->p->values * sizeof *l->home);
        cot__free(&al, l->place, l->p->values * sizeof *l->place);
        cot__free(&al, l->scratch, l->p->operations * sizeof *l->scratch);
        if (l->plan.p) cot__plan_close(&l->plan);
    }
    *l = (cot__layout){0};
}
