/* units.c: finds the units of a program, what they cost, and who reads what. */
#include "program/limit/units.h"
#include "backend/job_run.h"
#include "program/memory/ranges.h"
#include "program/plan_parts.h"

#include <math.h>
#include <string.h>

/* ---- work ------------------------------------------------------------------------------------ */

enum { ELEMENTARY = 8 }; /* a function like exp, beside an addition */

static double size_of(const cot__program *p, uint32_t v) {
    if (v == COT__NO_VALUE) return 1;
    cot__view x = cot__value_view(p, v);
    return (double)cot__view_size(&x);
}

static double extent(const cot__view *x, int from_end) {
    return x->ndim >= from_end ? (double)x->shape[x->ndim - from_end] : 1;
}

/* Some costs are counted on tapes alone. For x (m,k), y (k,n) and z (m,n) this is m·k·n, and about
 * right for what is like a product, as a convolution is. */
static double like_a_product(const cot__program *p, uint32_t k, int n, const uint32_t *x) {
    double z = size_of(p, p->operation[k].result);
    return n < 2 ? size_of(p, x[0]) + z : 2 * sqrt(size_of(p, x[0]) * size_of(p, x[1]) * z);
}

static double structural(const cot__program *p, uint32_t k, int n, const uint32_t *x) {
    const cot__op_cost *c = &cot__op_of(p->operation[k].op)->cost;
    if (c->planned) return c->planned(cot__operation_attr(p, k));
    if (c->none || n == 0 || x[0] == COT__NO_VALUE) return 0;
    if (c->more) return like_a_product(p, k, n, x);
    cot__view a = cot__value_view(p, x[0]);
    double    rows = extent(&a, 2), columns = extent(&a, 1), z = size_of(p, p->operation[k].result);
    return c->each_x * size_of(p, x[0]) + c->each_z * z + c->each_inner * z * columns +
           c->each_cube * size_of(p, x[0]) * (rows < columns ? rows : columns);
}

double cot__work_of(const cot__program *p, uint32_t k) {
    const cot__operation *o = &p->operation[k];
    const uint32_t       *x = cot__operation_operand(p, k);
    int                   n = cot__operation_operands(p, k);
    double                moved = 0;
    for (uint32_t i = 0; i < o->results; i++) moved += size_of(p, o->result + i);
    for (int i = 0; i < n; i++) moved += size_of(p, x[i]);
    if (o->op >= OP_structural) return moved + structural(p, k, n, x);
    return moved + size_of(p, o->result) * (cot__elementwise_table[o->op].class == REAL ? ELEMENTARY : 1);
}

/* ---- units ----------------------------------------------------------------------------------- */

/* An effect happens once. What is held for a run, as runs of bodies are, would be held twice. */
static bool is_once(const cot__program *p, uint32_t k) {
    if (p->operation[k].op < OP_structural) return false;
    const cot__op *record = cot__op_of(p->operation[k].op);
    return cot__operation_has_effect(p, k) || record->open || record->opaque || record->binds ||
           cot__operation_bodies(p, k) > 0;
}

static int64_t workspace_of(const cot__units *u, uint32_t k, const cot__caller *caller) {
    cot__view x[8];
    uint64_t  number[2];
    cot__job  j;
    int       n = cot__operation_operands(u->p, k);
    if (u->plan->workspace[k] < 0 || n > 8) return 0;
    cot__operation_job(u->p, k, caller, x, number, &j);
    j.backend = u->plan->backend;
    j.z = cot__value_view(u->p, u->p->operation[k].result);
    for (int i = 0; i < n; i++) {
        uint32_t v = cot__operation_operand(u->p, k)[i];
        if (v != COT__NO_VALUE) x[i] = cot__plan_view(u->plan, v);
    }
    int64_t bytes = cot__job_workspace(&j);
    return bytes > 0 ? cot__range_bytes(bytes) : 0;
}

/* Does it lie in memory of the caller's? */
static bool is_callers(const cot__plan *plan, uint32_t v) {
    uint32_t one = cot__direct_of(&plan->directs, v);
    return one != COT__NO_VALUE && (plan->lends_outputs || plan->directs.one[one].donor != COT__NO_VALUE);
}

static void add_operation(cot__units *u, cot__unit *to, uint32_t k, const cot__caller *caller) {
    const cot__operation *o = &u->p->operation[k];
    uint32_t              group = u->plan->fusion.of ? u->plan->fusion.of[k] : COT__NO_VALUE;
    u->of[k] = (uint32_t)(to - u->unit);
    to->work += cot__work_of(u->p, k);
    to->once |= is_once(u->p, k);
    bool alone = group == COT__NO_VALUE || cot__is_product(u->p, k);
    if (alone) to->workspace += workspace_of(u, k, caller);
    for (uint32_t v = o->result; v < o->result + o->results; v++) {
        bool inside = group != COT__NO_VALUE && u->plan->fusion.inside[v];
        if (!inside && !is_callers(u->plan, v) && !cot__in_slot(u->plan, v))
            u->bytes[v] = cot__range_bytes(cot__planned_bytes(u->p, v));
    }
}

/* Bytes of the arrays in which a group has what lives within its blocks. */
static int64_t bytes_of_pieces(const cot__units *u, const cot__unit *of) {
    const cot__plan *plan = u->plan;
    int64_t          sum = 0;
    for (uint32_t k = of->first; k < of->end; k++) {
        uint32_t z = u->p->operation[k].result;
        bool     known = !plan->fusion.inside[z] || plan->fusion.inside[z] == COT__INSIDE_AT_HOME;
        for (uint32_t i = of->first; i < k && !known; i++) {
            uint32_t other = u->p->operation[i].result;
            known = plan->fusion.inside[other] && plan->place[other] == plan->place[z];
        }
        if (!known) sum += cot__range_bytes(cot__planned_bytes(u->p, z));
    }
    return sum;
}

static void find_units(cot__units *u, const cot__caller *caller) {
    const cot__plan *plan = u->plan;
    uint32_t         made = 0;
    for (uint32_t k = 0, end; k < u->p->operations; k = end) {
        bool group = plan->how[k] == COT__BY_GROUP;
        end = group ? plan->fusion.group[plan->fusion.of[k]].end : k + 1;
        if (plan->how[k] == COT__BY_VIEW) continue;
        cot__unit *to = &u->unit[u->count++];
        *to = (cot__unit){.first = k, .end = end, .made = made,
                          .elementwise = group || u->p->operation[k].op < OP_structural};
        for (uint32_t i = k; i < end; i++)
            if (plan->how[i] != COT__BY_VIEW) add_operation(u, to, i, caller);
        if (group) to->workspace += bytes_of_pieces(u, to);
        uint32_t to_value = u->p->operation[end - 1].result + u->p->operation[end - 1].results;
        for (uint32_t v = u->p->operation[k].result; v < to_value; v++)
            if (u->bytes[v]) u->made[made++] = v;
    }
    u->unit[u->count] = (cot__unit){.made = made};
}

/* ---- who reads what -------------------------------------------------------------------------- */

/* Notes that a unit reads a value, which something else has made; twice in a row counts once. */
static void note_reader(cot__units *u, uint32_t *last, uint32_t v, uint32_t unit, bool count) {
    uint32_t root = u->plan->root[v];
    if (cot__unit_of(u, root) == unit || last[root] == unit) return;
    last[root] = unit;
    if (count) u->read[root + 1]++;
    else u->reader[u->read[root]++] = unit;
}

static void each_read(cot__units *u, uint32_t *last, bool count) {
    for (uint32_t v = 0; v < u->p->values; v++) last[v] = COT__NO_VALUE;
    for (uint32_t k = 0; k < u->p->operations; k++) {
        const uint32_t *x = cot__operation_operand(u->p, k);
        for (int i = 0; u->of[k] != COT__NO_VALUE && i < cot__operation_operands(u->p, k); i++)
            if (x[i] != COT__NO_VALUE) note_reader(u, last, x[i], u->of[k], count);
    }
    for (uint32_t k = 0; k < u->p->outputs; k++) note_reader(u, last, u->p->output[k], u->count, count);
}

/* Counts, then fills: the ends that filling leaves are where the next ones begin. */
static bool find_readers(cot__units *u) {
    size_t    values = u->p->values;
    uint32_t *last = cot__alloc(&u->al, values * sizeof *last);
    if (!last) return false;
    each_read(u, last, true);
    for (size_t v = 0; v < values; v++) u->read[v + 1] += u->read[v];
    u->readers = u->read[values];
    u->reader = cot__alloc(&u->al, u->readers * sizeof *u->reader);
    if (u->reader) each_read(u, last, false);
    cot__free(&u->al, last, values * sizeof *last);
    memmove(u->read + 1, u->read, values * sizeof *u->read);
    u->read[0] = 0;
    return u->reader != NULL;
}

/* The same list by the unit that reads. */
static bool find_reads(cot__units *u) {
    u->reads = cot__alloc(&u->al, u->readers * sizeof *u->reads);
    if (!u->reads) return false;
    for (uint32_t v = 0; v < u->p->values; v++)
        for (uint32_t i = u->read[v]; u->bytes[v] && i < u->read[v + 1]; i++)
            if (u->reader[i] < u->count) u->unit[u->reader[i] + 1].reads++;
    for (uint32_t k = 0; k < u->count; k++) u->unit[k + 1].reads += u->unit[k].reads;
    for (uint32_t v = 0; v < u->p->values; v++)
        for (uint32_t i = u->read[v]; u->bytes[v] && i < u->read[v + 1]; i++)
            if (u->reader[i] < u->count) u->reads[u->unit[u->reader[i]].reads++] = v;
    for (uint32_t k = u->count; k-- > 0;) u->unit[k + 1].reads = u->unit[k].reads;
    u->unit[0].reads = 0;
    return true;
}

/* From the last unit on. What may not be done again reads its operands once. */
static void find_ends(cot__units *u) {
    for (uint32_t v = u->p->values; v-- > 0;) {
        u->until[v] = 0;
        for (uint32_t i = u->read[v]; i < u->read[v + 1]; i++) {
            uint32_t by = u->reader[i];
            if (by > u->until[v]) u->until[v] = by;
            if (by == u->count || u->unit[by].once) continue;
            for (uint32_t k = u->unit[by].made; k < u->unit[by + 1].made; k++)
                if (u->until[u->made[k]] > u->until[v]) u->until[v] = u->until[u->made[k]];
        }
    }
}

/* ---- inputs that are written over ------------------------------------------------------------ */

/* The unit that makes an output in this input, which is donated. */
static uint32_t writer_of(const cot__units *u, uint32_t input) {
    const cot__directs *d = &u->plan->directs;
    for (uint32_t i = 0; i < d->count; i++)
        if (d->one[i].donor == input) return u->of[d->one[i].at];
    return COT__NO_VALUE;
}

/* Values stand in the order in which they are made. */
static void find_latest(cot__units *u) {
    const cot__program *p = u->p;
    for (uint32_t v = 0; v < p->values; v++) u->latest[v] = COT__NO_VALUE;
    for (uint32_t i = 0; i < p->inputs; i++) u->latest[p->input[i]] = writer_of(u, i);
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        uint32_t        latest = COT__NO_VALUE;
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE && u->latest[x[i]] < latest) latest = u->latest[x[i]];
        for (uint32_t i = 0; i < p->operation[k].results; i++) u->latest[p->operation[k].result + i] = latest;
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool cot__units_open(cot__units *u, const cot__plan *plan, const cot_allocator *al, const cot__caller *caller) {
    const cot__program *p = plan->p;
    *u = (cot__units){.p = p, .plan = plan, .al = al ? *al : (cot_allocator){0}};
    u->unit = cot__alloc(al, (p->operations + (size_t)1) * sizeof *u->unit);
    u->made = cot__alloc(al, 3 * (size_t)p->values * sizeof *u->made);
    u->of = cot__alloc(al, p->operations * sizeof *u->of);
    u->bytes = cot__alloc(al, p->values * sizeof *u->bytes);
    u->read = cot__alloc(al, (p->values + (size_t)1) * sizeof *u->read);
    bool ok = u->unit && u->made && u->of && u->bytes && u->read;
    if (ok) {
        for (uint32_t k = 0; k < p->operations; k++) u->of[k] = COT__NO_VALUE;
        memset(u->bytes, 0, p->values * sizeof *u->bytes);
        memset(u->read, 0, (p->values + (size_t)1) * sizeof *u->read);
        u->until = u->made + p->values;
        u->latest = u->until + p->values;
        find_units(u, caller);
        ok = find_readers(u) && find_reads(u);
    }
    if (ok) {
        find_ends(u);
        find_latest(u);
        return true;
    }
    cot__units_close(u);
    return cot__refuse(caller, COT_MEMORY, "out of memory: a memory limit for %u operations", p->operations);
}

void cot__units_close(cot__units *u) {
    const cot__program *p = u->p;
    cot__free(&u->al, u->unit, (p->operations + (size_t)1) * sizeof *u->unit);
    cot__free(&u->al, u->made, 3 * (size_t)p->values * sizeof *u->made);
    cot__free(&u->al, u->of, p->operations * sizeof *u->of);
    cot__free(&u->al, u->bytes, p->values * sizeof *u->bytes);
    cot__free(&u->al, u->read, (p->values + (size_t)1) * sizeof *u->read);
    cot__free(&u->al, u->reads, u->readers * sizeof *u->reads);
    cot__free(&u->al, u->reader, u->readers * sizeof *u->reader);
}
