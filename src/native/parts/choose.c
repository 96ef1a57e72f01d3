/* choose.c: see choose.h. Walks over the operations: what each can be, which stand in one part, who
 * reads what a part makes, and what each part reads and writes. */
#include "native/parts/choose.h"
#include "backend/cpu/table/cpu.h"
#include "backend/runs.h"
#include "base/cpu.h"
#include "base/parallel.h"
#include "native/parts/shifts.h"
#include "program/emit/emit.h"
#include "program/emit/layout.h"
#include "program/loop_form.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Lines of a function: compilers take more than linear time. Operations of a loop behind which a
 * part ends: of an unrolled loop, what comes again is found sooner in short parts (once.h).
 * Elements of a loop that is not worth vectors. Operations of the body of a loop over steps. */
enum { MOST_LINES = 128, LONG_LOOP = 16, SMALL_LOOP = 16, BLOCK_LINES = 20, MOST_BODY = 1024 };
/* Elements of a block, and terms of a product of matrices, from which on the kernels of the library
 * are as quick. Of many small products more: there the kernels spend their time on beginning; and
 * of what only moves elements: there the library asks again and again how they lie. */
enum { SMALL_BLOCK = 512, SMALL_MOVE = 2048, SMALL_PRODUCT = 256, SMALL_MATRIX = 256, SMALL_BATCH = 1 << 15 };

/* ---- what an operation can be ---------------------------------------------------------------- */

/* Exported text knows 16-bit floats by casts alone, which a pass of exports writes; here there are
 * none. */
static bool has_type(const cot__program *p, uint32_t value) {
    cot_dtype d = cot__value_view(p, value).dtype;
    return d != COT_F16 && d != COT_BF16 && cot__emit_type(d) != NULL;
}

static bool has_types(const cot__program *p, uint32_t k) {
    const uint32_t *x = cot__operation_operand(p, k);
    for (uint32_t r = 0; r < p->operation[k].results; r++)
        if (!has_type(p, p->operation[k].result + r)) return false;
    for (int i = 0; i < cot__operation_operands(p, k); i++)
        if (x[i] != COT__NO_VALUE && !has_type(p, x[i])) return false;
    return true;
}

/* Functions with branches and loops of their own: no vectors come of them. */
static bool has_vectors(int op) {
    return op != OP_fmod && op != OP_remainder && op != OP_erfinv && op != OP_lgamma && op != OP_digamma &&
           op != OP_polygamma;
}

static int64_t elements_of(const cot__program *p, uint32_t k) {
    const uint32_t *x = cot__operation_operand(p, k);
    int64_t         n = cot__result_size(p, k);
    for (int i = 0; i < cot__operation_operands(p, k); i++) {
        cot__view v = cot__value_view(p, x[i] == COT__NO_VALUE ? p->operation[k].result : x[i]);
        if (cot__view_size(&v) == 0) return 0;
        n = cot__size_add(n, cot__view_size(&v));
    }
    return n;
}

/* Elements that a block may have. Plain kernels of products round otherwise where they are asked to
 * be quick. */
static int64_t most_elements(const cot__program *p, uint32_t k) {
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]);
    cot__view z = cot__value_view(p, p->operation[k].result);
    int       op = p->operation[k].op;
    if (op != OP_matmul) return op == OP_reshape || op == OP_concat ? SMALL_MOVE : SMALL_BLOCK;
    if (cot__cpu_bits() != COT__BITS_PORTABLE || x.ndim == 0 || cot__view_size(&x) == 0) return 0;
    int64_t terms = x.shape[x.ndim - 1], one = terms;
    for (int i = z.ndim < 2 ? 0 : z.ndim - 2; i < z.ndim; i++) one *= z.shape[i];
    if (cot__view_size(&z) * terms <= SMALL_PRODUCT) return SMALL_BLOCK;
    return z.ndim > 2 && one <= SMALL_MATRIX ? SMALL_BATCH : 0;
}

/* Those that are short as C: the others are left to the library, however small they are. */
static bool is_short(int op) {
    static const int ops[] = {OP_reshape, OP_concat, OP_pad, OP_sum, OP_max, OP_min, OP_any, OP_all, OP_argmax,
                              OP_argmin, OP_matmul, OP_update_slice, OP_add_slice, OP_copy_into, OP_cumsum, OP_norm,
                              OP_logsumexp, OP_softmax, OP_log_softmax, OP_mse};
    for (int k = 0; k < COUNTOF(ops); k++)
        if (ops[k] == op) return true;
    return false;
}

static bool is_block(const cot__program *p, uint32_t k) {
    int     op = p->operation[k].op;
    int64_t n = elements_of(p, k);
    if (cot__operation_has_effect(p, k) || !cot__exportable(op) || !is_short(op)) return false;
    return n > 0 && n <= most_elements(p, k);
}

static bool is_plain_fold(const cot__program *p, uint32_t k) {
    cot_dtype x = cot__value_view(p, cot__operation_operand(p, k)[0]).dtype;
    return x == cot__value_view(p, p->operation[k].result).dtype;
}

static bool is_float(const cot__program *p, uint32_t k) {
    return cot__dtype_is_float(cot__value_view(p, p->operation[k].result).dtype);
}

/* Statements on 0-d values alone, not too many of them? */
static bool is_plain_body(const cot__program *p) {
    for (uint32_t v = 0; v < p->values; v++)
        if (!has_type(p, v) || cot__value_view(p, v).ndim) return false;
    for (uint32_t k = 0; k < p->operations; k++) {
        const cot__op *record = cot__is_by_element(p, k) ? NULL : cot__op_of(p->operation[k].op);
        if (record && (!record->view || record->run)) return false;
    }
    return p->operations <= MOST_BODY && p->inputs <= MOST_BODY && p->outputs <= MOST_BODY;
}

/* A loop of known length, or a condition or a checkpoint, whose bodies are such statements. */
static bool is_scan(const cot__program *p, uint32_t k) {
    if (p->operation[k].op != OP_loop || cot__operation_has_effect(p, k)) return false;
    cot__program *const *body = p->body + p->operation[k].body; /* of a program that has bodies */
    cot__form            f = cot__form_read(cot__operation_attr(p, k), body);
    if (f.tests || (f.chosen && !f.once)) return false;
    return is_plain_body(body[0]) && (!f.chosen || is_plain_body(body[1]));
}

static cot__part_kind kind_of(const cot__choice *c, uint32_t k) {
    const cot__program *p = c->p;
    uint8_t             how = c->plan.how[k];
    if (how == COT__BY_VIEW) return COT__FOR_NOBODY;
    if (!has_types(p, k)) return COT__FOR_LIBRARY;
    if (is_scan(p, k)) return COT__AS_SCAN;
    if (p->operation[k].results != 1 || cot__operation_bodies(p, k)) return COT__FOR_LIBRARY;
    if (how == COT__BY_MOVE) return COT__AS_STATEMENT;
    if (how == COT__BY_GROUP && cot__is_fold(p, k)) return is_plain_fold(p, k) ? COT__AS_FOLD : COT__FOR_LIBRARY;
    if (how == COT__BY_GROUP && cot__is_patch(p, k)) return is_float(p, k) ? COT__AS_LOOP : COT__FOR_LIBRARY;
    if (!cot__is_by_element(p, k)) return is_block(p, k) ? COT__AS_BLOCK : COT__FOR_LIBRARY;
    if (cot__value_view(p, p->operation[k].result).ndim == 0) return COT__AS_STATEMENT;
    int64_t n = cot__result_size(p, k);
    return n == 0 || (n > SMALL_LOOP && !has_vectors(p->operation[k].op)) ? COT__FOR_LIBRARY : COT__AS_LOOP;
}

cot__group cot__loop_of(const cot__choice *c, uint32_t k) {
    uint32_t group = c->plan.fusion.of[k];
    return group == COT__NO_VALUE ? (cot__group){.first = k, .end = k + 1, .runs = 1} : c->plan.fusion.group[group];
}

/* All of a group or nothing. */
static void agree(cot__choice *c, const cot__group *g) {
    cot__loop_axes axes;
    bool           all = cot__is_plain_group(g), folds = false;
    for (uint32_t k = g->first; k < g->end; k++) {
        uint8_t kind = c->kind[k];
        folds |= kind == COT__AS_FOLD;
        all &= kind == COT__AS_LOOP || kind == COT__AS_FOLD || kind == COT__FOR_NOBODY;
    }
    if (all && cot__find_axes(c, g, &axes) && (axes.flat || !folds)) return;
    for (uint32_t k = g->first; k < g->end; k++)
        if (c->kind[k] != COT__FOR_NOBODY) c->kind[k] = COT__FOR_LIBRARY;
}

static void find_kinds(cot__choice *c) {
    for (uint32_t k = 0; k < c->p->operations; k++) c->kind[k] = (uint8_t)kind_of(c, k);
    for (uint32_t k = 0; k < c->p->operations; k++) {
        if (c->kind[k] != COT__AS_LOOP && c->plan.how[k] != COT__BY_GROUP) continue;
        cot__group g = cot__loop_of(c, k);
        agree(c, &g);
        k = g.end - 1;
    }
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool grow(const cot_allocator *al, void **list, uint32_t *room, size_t size) {
    uint32_t more = *room ? 2 * *room : 64;
    void    *p = cot__resize(al, *list, *room * size, more * size);
    if (!p) return false;
    *list = p;
    *room = more;
    return true;
}

static bool add_part(cot__choice *c, uint32_t first, uint32_t end) {
    void *list = c->part;
    if (c->parts == c->part_room && !grow(&c->al, &list, &c->part_room, sizeof *c->part)) return false;
    c->part = list;
    c->part[c->parts++] = (cot__run_part){.first = first, .end = end};
    return true;
}

static int cost_of(const cot__program *p, uint32_t k) {
    int op = p->operation[k].op; /* as backend/runs.c counts */
    return op < OP_structural && cot__elementwise_table[op].class == REAL ? 8 : 1;
}

/* Positions that threads share, if the loop is large enough. */
static void find_share(const cot__choice *c, const cot__group *g, int64_t *shared, int64_t *cost) {
    cot__loop_axes a;
    int64_t        one = 0, n = cot__result_size(c->p, g->first);
    bool           folds = false;
    *shared = *cost = 0;
    for (uint32_t k = g->first; k < g->end; k++) {
        if (c->kind[k] == COT__AS_LOOP) one += cost_of(c->p, k), n = cot__result_size(c->p, k);
        folds |= c->kind[k] == COT__AS_FOLD;
    }
    if (cot__is_shifted(c, g)) n = g->size;
    if (folds) { /* its blocks are nodes of the reduction's tree */
        int64_t step = cot__native_step(n);
        *shared = (n + step - 1) / step;
        *cost = one * step;
        return;
    }
    if (!cot__find_axes(c, g, &a) || a.count == 0) return;
    int64_t units = (a.extent[a.shared] + a.unit - 1) / a.unit;
    int64_t of_unit = one * (n / a.extent[a.shared]) * a.unit;
    if (cot__parts(units, of_unit, 64) == 1) return;
    *shared = units;
    *cost = of_unit;
}

/* A loop that is shifted has lines for each of its pieces. */
static uint32_t lines_of(const cot__choice *c, const cot__group *g) {
    cot__loop_cuts cuts;
    cot__piece     piece;
    uint32_t       lines = 0;
    if (!cot__is_shifted(c, g) || !cot__find_cuts(c, g, &cuts)) return g->end - g->first;
    for (int i = 0; i < cuts.count; i++)
        if (cot__find_piece(c, g, &cuts, i, &piece)) lines += (uint32_t)piece.count;
    return lines;
}

/* So has a loop over steps, for its bodies. */
static uint32_t lines_of_scan(const cot__program *p, uint32_t k) {
    uint32_t lines = BLOCK_LINES;
    for (uint32_t b = p->operation[k].body; b < p->operation[k + 1].body; b++) lines += p->body[b]->operations;
    return lines;
}

/* The open part: where it begins (COT__NO_VALUE: there is none) and how long it is. */
typedef struct opened { uint32_t first, lines; } opened;

/* Adds operations k … end - 1, all of one loop, or one. */
static bool add(cot__choice *c, opened *o, uint32_t k, uint32_t end) {
    int64_t    shared = 0, cost = 0;
    cot__group g = cot__loop_of(c, k);
    if (c->kind[k] == COT__AS_LOOP) find_share(c, &g, &shared, &cost);
    uint32_t lines = c->kind[k] == COT__AS_BLOCK  ? BLOCK_LINES
                     : c->kind[k] == COT__AS_SCAN ? lines_of_scan(c->p, k)
                     : c->kind[k] == COT__AS_LOOP ? lines_of(c, &g)
                                                  : 1;
    if (shared || o->first == COT__NO_VALUE || o->lines + lines > MOST_LINES) {
        if (!add_part(c, k, end)) return false;
        o->first = shared ? COT__NO_VALUE : k;
        o->lines = 0;
        c->part[c->parts - 1].shared = shared;
        c->part[c->parts - 1].cost = cost;
        for (uint32_t i = k; i < end; i++) c->part[c->parts - 1].ends |= c->kind[i] == COT__AS_FOLD;
    }
    c->part[c->parts - 1].end = end;
    c->part[c->parts - 1].lines += lines;
    o->lines += lines;
    if (c->kind[k] == COT__AS_LOOP && end - k >= LONG_LOOP) o->first = COT__NO_VALUE;
    return true;
}

static bool find_parts(cot__choice *c) {
    opened o = {COT__NO_VALUE, 0};
    for (uint32_t k = 0; k < c->p->operations; k++) {
        uint32_t end = c->kind[k] == COT__AS_LOOP ? cot__loop_of(c, k).end : k + 1;
        if (c->kind[k] == COT__FOR_NOBODY) continue;
        if (c->kind[k] == COT__FOR_LIBRARY) o.first = COT__NO_VALUE;
        else if (!add(c, &o, k, end)) return false;
        k = end - 1;
    }
    for (uint32_t k = 0; k < c->p->operations; k++) c->of[k] = COT__NO_VALUE;
    for (uint32_t i = 0; i < c->parts; i++)
        for (uint32_t k = c->part[i].first; k < c->part[i].end; k++) c->of[k] = i;
    return true;
}

/* ---- values of parts ------------------------------------------------------------------------- */

static uint32_t part_that_makes(const cot__choice *c, uint32_t root) {
    bool made = cot__value_origin(c->p, root) == COT__FROM_OPERATION;
    return made ? c->of[cot__value_maker(c->p, root)] : COT__NO_VALUE;
}

static void find_leaving(cot__choice *c) {
    memset(c->leaves, 0, c->p->values);
    for (uint32_t k = 0; k < c->p->operations; k++) {
        const uint32_t *x = cot__operation_operand(c->p, k);
        if (c->kind[k] == COT__FOR_NOBODY) continue;
        for (int i = 0; i < cot__operation_operands(c->p, k); i++)
            if (x[i] != COT__NO_VALUE && part_that_makes(c, c->plan.root[x[i]]) != c->of[k])
                c->leaves[c->plan.root[x[i]]] = 1;
    }
    for (uint32_t k = 0; k < c->p->outputs; k++) c->leaves[c->plan.root[c->p->output[k]]] = 1;
}

/* Numbers among constants stand in the text; what stays in its part, and has no axes or lives in a
 * loop, is a variable there. */
static bool needs_memory(const cot__choice *c, uint32_t root, uint32_t part) {
    bool scalar = cot__value_view(c->p, root).ndim == 0;
    if (scalar && cot__value_origin(c->p, root) == COT__FROM_CONSTANT) return false;
    if (part_that_makes(c, root) != part) return true;
    return scalar ? c->leaves[root] : !c->plan.fusion.inside[root];
}

static bool put_value(cot__choice *c, uint32_t value, uint32_t part) {
    void *list = c->value;
    if (c->values == c->value_room && !grow(&c->al, &list, &c->value_room, sizeof *c->value)) return false;
    c->value = list;
    c->value[c->values++] = value;
    c->part[part].values++;
    return true;
}

static bool add_value(cot__choice *c, uint32_t *seen, uint32_t v, uint32_t part) {
    if (seen[v] == part + 1 || !needs_memory(c, c->plan.root[v], part)) return true;
    seen[v] = part + 1;
    return put_value(c, v, part);
}

/* An operand is known by the memory of its root. A view of something from elsewhere that begins
 * behind that has a pointer of its own: then parts that read different slices have one text. */
static bool add_operand(cot__choice *c, uint32_t *seen, uint32_t v, uint32_t part) {
    uint32_t root = c->plan.root[v];
    bool     behind = v != root && c->plan.place[v] != 0, array = cot__value_view(c->p, v).ndim > 0;
    return add_value(c, seen, behind && array && part_that_makes(c, root) != part ? v : root, part);
}

/* So has an element that is moved. */
static bool add_element(cot__choice *c, uint32_t *seen, uint32_t k, uint32_t part) {
    uint32_t v = cot__operation_operand(c->p, k)[0];
    if (part_that_makes(c, c->plan.root[v]) == part) return add_operand(c, seen, c->plan.root[v], part);
    return put_value(c, COT__ELEMENT_OF | k, part);
}

static bool add_operands(cot__choice *c, uint32_t *seen, uint32_t k, uint32_t part) {
    const uint32_t *x = cot__operation_operand(c->p, k);
    if (c->plan.how[k] == COT__BY_MOVE) return add_element(c, seen, k, part);
    for (int j = 0; j < cot__operation_operands(c->p, k); j++)
        if (x[j] != COT__NO_VALUE && !add_operand(c, seen, x[j], part)) return false;
    return true;
}

static bool find_values(cot__choice *c, uint32_t *seen) {
    memset(seen, 0, c->p->values * sizeof *seen);
    for (uint32_t i = 0; i < c->parts; i++) {
        c->part[i].value = c->values;
        for (uint32_t k = c->part[i].first; k < c->part[i].end; k++) {
            if (c->kind[k] == COT__FOR_NOBODY) continue;
            if (!add_operands(c, seen, k, i)) return false;
            for (uint32_t r = 0; r < c->p->operation[k].results; r++)
                if (!add_value(c, seen, c->p->operation[k].result + r, i)) return false;
            if (c->kind[k] == COT__AS_FOLD && !put_value(c, COT__WORKSPACE_OF | k, i)) return false;
        }
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool choose(cot__choice *c, const cot__caller *caller) {
    size_t    operations = c->p->operations, values = c->p->values;
    uint32_t *seen = cot__alloc(&c->al, values * sizeof *seen);
    c->kind = cot__alloc(&c->al, operations);
    c->of = cot__alloc(&c->al, operations * sizeof *c->of);
    c->leaves = cot__alloc(&c->al, values);
    bool ok = seen && c->kind && c->of && c->leaves;
    if (ok) find_kinds(c);
    ok = ok && find_parts(c);
    if (ok) find_leaving(c);
    ok = ok && find_values(c, seen);
    cot__free(&c->al, seen, values * sizeof *seen);
    return ok || cot__refuse(caller, COT_MEMORY, "out of memory: the parts of %u operations", c->p->operations);
}

bool cot__choice_open(cot__choice *c, const cot__program *p, const cot_allocator *al, const cot__caller *caller) {
    *c = (cot__choice){.p = p, .al = al ? *al : (cot_allocator){0}};
    if (!cot__plan_open(&c->plan, p, &cot__cpu_backend, al, NULL, true, caller)) return false;
    if (choose(c, caller)) return true;
    cot__choice_close(c);
    return false;
}

void cot__choice_close(cot__choice *c) {
    cot__free(&c->al, c->kind, c->p->operations);
    cot__free(&c->al, c->of, c->p->operations * sizeof *c->of);
    cot__free(&c->al, c->leaves, c->p->values);
    cot__free(&c->al, c->part, c->part_room * sizeof *c->part);
    cot__free(&c->al, c->value, c->value_room * sizeof *c->value);
    cot__plan_close(&c->plan);
    *c = (cot__choice){0};
}
