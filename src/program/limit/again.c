/* again.c: each unit has its turn in the old order. What it reads and is not in memory is made
 * first, and what that reads before it: these wait on a stack, so nothing recurses. A unit that is
 * done again does only what the wanted result needs. What lies in a file is fetched instead, one
 * unit ahead where there is room.
 *
 * Whatever a unit on the stack reads stays until it is done, so a value is made once for it. Units
 * on the stack are older the higher they lie, so the stack ends. */
#include "program/limit/again.h"
#include "program/limit/keeping.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

enum { TIMES = 8, AND = 256 }; /* it is too long with more operations than so many times the old */

/* A unit that is to be done; wanted: for this result alone; COT__NO_VALUE: for all. */
typedef struct waiting { uint32_t unit, wanted; bool begun; } waiting;

typedef struct walk {
    const cot__units *u;
    cot__keeping      keeping;
    waiting          *stack;
    uint32_t          depth;
    uint8_t          *does;   /* for each operation: its unit does it, this time */
    uint32_t         *times;  /* for each value: how often it was made */
    uint32_t         *seen;   /* for each view: when its root was made that it is a view of */
    uint32_t         *chain;  /* views of views */
    uint32_t         *filed;  /* for each value: the new one in the file, if it was read */
    bool              too_long;
} walk;

/* ---- views ----------------------------------------------------------------------------------- */

/* Puts the views through which v is seen, unless they are there since its root was made last. */
static void bring(cot__rewrite *r, uint32_t v) {
    walk    *w = r->edit->state;
    uint32_t root = w->u->plan->root[v], n = 0;
    while (v != root && w->seen[v] != w->times[root]) {
        w->chain[n++] = cot__value_maker(r->from, v);
        v = cot__operation_operand(r->from, w->chain[n - 1])[0];
    }
    while (n-- > 0) {
        cot__rewrite_keep(r, w->chain[n]);
        w->seen[r->from->operation[w->chain[n]].result] = w->times[root];
    }
}

/* ---- what a unit does and reads -------------------------------------------------------------- */

/* Is the root made by the unit itself, this time? */
static bool makes(const walk *w, uint32_t unit, uint32_t root) {
    return cot__unit_of(w->u, root) == unit && w->does[cot__value_maker(w->u->p, root)];
}

/* Calls `each` for all roots that the unit reads, this time, and does not make. */
static void each_read(walk *w, uint32_t unit, void (*each)(walk *w, uint32_t root)) {
    const cot__unit *of = &w->u->unit[unit];
    for (uint32_t k = of->first; k < of->end; k++) {
        const uint32_t *x = cot__operation_operand(w->u->p, k);
        for (int i = 0; w->does[k] && i < cot__operation_operands(w->u->p, k); i++) {
            uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : w->u->plan->root[x[i]];
            if (root != COT__NO_VALUE && !makes(w, unit, root)) each(w, root);
        }
    }
}

/* From the wanted result back; what is in memory is read there. */
static void find_needed(walk *w, const waiting *f) {
    const cot__unit *of = &w->u->unit[f->unit];
    const uint32_t  *group = w->u->of;
    memset(w->does + of->first, 0, of->end - of->first);
    if (f->wanted != COT__NO_VALUE) w->does[cot__value_maker(w->u->p, f->wanted)] = 1;
    for (uint32_t k = of->end; k-- > of->first;) {
        const uint32_t *x = cot__operation_operand(w->u->p, k);
        if (f->wanted == COT__NO_VALUE) w->does[k] = group[k] == f->unit;
        for (int i = 0; w->does[k] && i < cot__operation_operands(w->u->p, k); i++) {
            uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : w->u->plan->root[x[i]];
            if (root == COT__NO_VALUE || cot__unit_of(w->u, root) != f->unit) continue;
            bool kept = w->u->bytes[root] && cot__is_here(&w->keeping, root);
            if (!kept) w->does[cot__value_maker(w->u->p, root)] = 1;
        }
    }
}

static void want(walk *w, uint32_t root) { w->keeping.wanted[root]++; }
static void let_be(walk *w, uint32_t root) { w->keeping.wanted[root]--; }
static void pass(walk *w, uint32_t root) { cot__keeping_passed(&w->keeping, root); }

/* The youngest one that is missing: what most has to be done for comes first, while little else has
 * to stay. COT__NO_VALUE: none is. */
static uint32_t last_missing(const walk *w, uint32_t unit) {
    const cot__unit *of = &w->u->unit[unit];
    uint32_t         last = COT__NO_VALUE;
    for (uint32_t k = of->first; k < of->end; k++) {
        const uint32_t *x = cot__operation_operand(w->u->p, k);
        for (int i = 0; w->does[k] && i < cot__operation_operands(w->u->p, k); i++) {
            uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : w->u->plan->root[x[i]];
            bool     younger = root != COT__NO_VALUE && (last == COT__NO_VALUE || root > last);
            if (younger && !makes(w, unit, root) && !cot__is_here(&w->keeping, root)) last = root;
        }
    }
    return last;
}

/* ---- doing a unit ---------------------------------------------------------------------------- */

static int64_t bytes_made(const walk *w, uint32_t unit, int64_t *largest) {
    const cot__unit *of = &w->u->unit[unit];
    int64_t          sum = 0;
    *largest = 0;
    for (uint32_t k = of->first; k < of->end; k++)
        for (uint32_t i = 0; w->does[k] && i < w->u->p->operation[k].results; i++) {
            int64_t bytes = w->u->bytes[w->u->p->operation[k].result + i];
            sum += bytes;
            if (bytes > *largest) *largest = bytes;
        }
    return sum;
}

/* An operand that nobody reads later, and in whose place an elementwise result can lie. */
static uint32_t taken_over(const walk *w, uint32_t unit, int64_t bytes) {
    const cot__unit *of = &w->u->unit[unit];
    for (uint32_t k = of->first; k < of->end && of->elementwise; k++) {
        const uint32_t *x = cot__operation_operand(w->u->p, k);
        for (int i = 0; w->does[k] && i < cot__operation_operands(w->u->p, k); i++) {
            uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : w->u->plan->root[x[i]];
            if (root == COT__NO_VALUE || makes(w, unit, root) || w->u->bytes[root] != bytes) continue;
            if (w->keeping.place[root] == COT__NO_VALUE || w->u->unit[cot__unit_of(w->u, root)].once) continue;
            uint32_t after = w->keeping.next[root];
            after += after < w->u->read[root + 1] && w->u->reader[after] == w->keeping.now && unit == w->keeping.now;
            if (after == w->u->read[root + 1]) return root;
        }
    }
    return COT__NO_VALUE;
}

static void do_operations(cot__rewrite *r, const waiting *f) {
    walk            *w = r->edit->state;
    const cot__unit *of = &w->u->unit[f->unit];
    for (uint32_t k = of->first; k < of->end && !r->to.failed; k++) {
        const cot__operation *o = &r->from->operation[k];
        const uint32_t       *x = cot__operation_operand(r->from, k);
        if (!w->does[k]) continue;
        for (int i = 0; i < cot__operation_operands(r->from, k); i++)
            if (x[i] != COT__NO_VALUE) bring(r, x[i]);
        cot__rewrite_keep(r, k);
        for (uint32_t v = o->result; v < o->result + o->results; v++) {
            w->times[v]++;
            cot__keeping_put(&w->keeping, v);
        }
        r->changes += f->wanted != COT__NO_VALUE;
    }
}

static void do_unit(cot__rewrite *r, const waiting *f) {
    walk    *w = r->edit->state;
    int64_t  largest, bytes = bytes_made(w, f->unit, &largest) + w->u->unit[f->unit].workspace;
    uint32_t over = largest ? taken_over(w, f->unit, largest) : COT__NO_VALUE;
    cot__keeping_make_room(&w->keeping, bytes - (over == COT__NO_VALUE ? 0 : largest));
    bool tight = w->keeping.used + bytes > w->keeping.budget;
    each_read(w, f->unit, let_be);
    if (tight && over != COT__NO_VALUE && !w->keeping.wanted[over]) cot__keeping_drop(&w->keeping, over);
    do_operations(r, f);
    if (f->wanted == COT__NO_VALUE) each_read(w, f->unit, pass);
}

/* ---- from the file --------------------------------------------------------------------------- */

static bool is_filed(const walk *w, uint32_t root) {
    return (w->keeping.state[root] & (COT__HERE | COT__FILED)) == COT__FILED;
}

/* There is a copy of the value that was let go first; others that were read from there are not
 * written again. */
static void fetch(cot__rewrite *r, uint32_t root) {
    walk       *w = r->edit->state;
    cot__attr   mark = {.number = COT__FETCHES};
    cot__append o = {.op = OP_copy, .n = 1, .x = &w->filed[root], .attr = &mark, .name = "copy"};
    if (w->filed[root] == COT__NO_VALUE) w->filed[root] = r->value[root];
    cot__keeping_make_room(&w->keeping, w->u->bytes[root]);
    r->value[root] = cot__build_operation(&r->to, &o);
    w->times[root]++;
    cot__keeping_put(&w->keeping, root);
    r->changes++;
}

/* What the next unit reads comes while this one is done, if there is room for it besides. */
static void fetch_ahead(cot__rewrite *r) {
    walk            *w = r->edit->state;
    const cot__unit *now = &w->u->unit[w->keeping.now], *next = now + 1;
    int64_t          room = w->keeping.budget - now->workspace - w->keeping.used;
    if (w->keeping.now + 1 == w->u->count) return;
    for (uint32_t i = now->made; i < next->made; i++) room -= w->u->bytes[w->u->made[i]];
    for (uint32_t i = next->reads; i < next[1].reads && !r->to.failed; i++) {
        uint32_t x = w->u->reads[i];
        if (!is_filed(w, x) || w->u->bytes[x] > room) continue;
        room -= w->u->bytes[x];
        fetch(r, x);
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

static void stop_if_too_long(cot__rewrite *r) {
    walk *w = r->edit->state;
    w->too_long |= r->to.p && r->to.p->operations > TIMES * (uint64_t)r->from->operations + AND;
    r->to.failed |= w->too_long;
}

static void make(cot__rewrite *r, uint32_t unit, uint32_t wanted) {
    walk *w = r->edit->state;
    w->stack[0] = (waiting){unit, wanted, false};
    w->depth = 1;
    while (w->depth > 0 && !r->to.failed) {
        waiting *top = &w->stack[w->depth - 1];
        if (!top->begun) {
            find_needed(w, top);
            each_read(w, top->unit, want);
            top->begun = true;
        }
        uint32_t missing = last_missing(w, top->unit);
        if (missing != COT__NO_VALUE && is_filed(w, missing)) {
            fetch(r, missing);
            continue;
        }
        if (missing != COT__NO_VALUE) {
            w->stack[w->depth++] = (waiting){cot__unit_of(w->u, missing), missing, false};
            continue;
        }
        do_unit(r, top);
        w->depth--;
        stop_if_too_long(r);
    }
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    walk    *w = r->edit->state;
    uint32_t unit = w->keeping.now;
    if (unit == w->u->count || k + 1 != w->u->unit[unit].end) return;
    if (w->keeping.spills) fetch_ahead(r);
    make(r, unit, COT__NO_VALUE);
    w->keeping.now++;
}

/* Outputs are read together. */
static void give_outputs(cot__rewrite *r) {
    walk *w = r->edit->state;
    for (uint32_t i = 0; i < r->from->outputs; i++) want(w, w->u->plan->root[r->from->output[i]]);
    for (uint32_t i = 0; i < r->from->outputs && !r->to.failed; i++) {
        uint32_t root = w->u->plan->root[r->from->output[i]];
        if (!cot__is_here(&w->keeping, root)) make(r, cot__unit_of(w->u, root), root);
    }
    for (uint32_t i = 0; i < r->from->outputs && !r->to.failed; i++) bring(r, r->from->output[i]);
    if (!r->to.failed) cot__rewrite_keep_outputs(r);
}

static void open_times(walk *w) {
    memset(w->does, 0, w->u->p->operations);
    for (uint32_t v = 0; v < w->u->p->values; v++) {
        w->times[v] = cot__value_origin(w->u->p, v) != COT__FROM_OPERATION;
        w->seen[v] = 0;
        w->filed[v] = COT__NO_VALUE;
    }
}

cot__program *cot__compute_again(const cot__units *u, int64_t budget, bool spills, const cot__pass_options *o,
                                 bool *too_long) {
    walk          w = {.u = u};
    cot__edit     how = {.state = &w, .operation = edit_operation, .outputs = give_outputs};
    size_t        values = u->p->values, operations = u->p->operations;
    cot__program *made = NULL;
    w.stack = cot__alloc(&u->al, (u->count + (size_t)1) * sizeof *w.stack);
    w.does = cot__alloc(&u->al, operations);
    w.times = cot__alloc(&u->al, 4 * values * sizeof *w.times);
    bool opened = w.stack && w.does && w.times && cot__keeping_open(&w.keeping, u, budget, spills);
    if (opened) {
        w.seen = w.times + values;
        w.chain = w.seen + values;
        w.filed = w.chain + values;
        open_times(&w);
        made = cot__rewrite_run(u->p, o, &how);
        cot__keeping_close(&w.keeping);
    } else
        cot__refuse(o->caller, COT_MEMORY, "out of memory: a memory limit for %u operations", u->p->operations);
    cot__free(&u->al, w.stack, (u->count + (size_t)1) * sizeof *w.stack);
    cot__free(&u->al, w.does, operations);
    cot__free(&u->al, w.times, 4 * values * sizeof *w.times);
    *too_long = w.too_long;
    return made;
}
