/* region.c: recording a body, turning it into a program, and playing that on other values. */
#include "rules/structural_ids.h"
#include "tape/region.h"
#include "tape/show.h"

#include "base/number.h"
#include "tape/examples.h"
#include "tape/flow.h"
#include "tape/scope.h"

#include <stdarg.h>
#include <string.h>

const char cot__vmap_name[] = "vmap", cot__compile_name[] = "compile";

const cot__op cot__op_parameter = {.name = "parameter", .kind = KIND_SOURCE, .formula = "an input of a body",
                                   .cost = {.none = "is given"}};

bool cot__check_lists(cot_tape *t, const char *op, int n, const cot_var *xs, int m, const cot_var *ys) {
    if (n >= 0 && m >= 0 && (n == 0 || xs) && (m == 0 || ys)) return true;
    if (n < 0 || m < 0)
        cot__fail(t, COT_VALUE, "[%s] a negative number of values: %d", op, n < 0 ? n : m);
    else
        cot__fail(t, COT_VALUE, "[%s] a list of %d values is NULL", op, n > 0 && !xs ? n : m);
    return false;
}

bool cot__check_call(cot_tape *t, const char *op, cot_fn f, int n, const cot_var *xs, int m, const cot_var *ys) {
    if (!f) cot__fail(t, COT_VALUE, "[%s] the function is NULL", op);
    return f && cot__check_lists(t, op, n, xs, m, ys);
}

bool cot__check_set(cot_tape *t, const char *op, const char *function, int m, const cot_var *ys) {
    if (t->status != COT_OK) return false;
    for (int i = 0; i < m; i++) {
        if (ys[i].tape != t || ys[i].id != UINT64_MAX) continue;
        cot__fail(t, COT_VAR, "[%s] %s did not set ys[%d]; it gives %d result%s and must set each", op, function, i, m,
                  m == 1 ? "" : "s");
        return false;
    }
    return true;
}

void cot__error_in(cot_tape *t, const char *format, ...) {
    size_t  used = strlen(t->errors.message), room = sizeof t->errors.message - used;
    va_list args;
    if (t->status == COT_OK || t->status == COT_MEMORY || room < 8) return;
    memcpy(t->errors.message + used, " (in ", 6);
    va_start(args, format);
    int length = cot__vformat(t->errors.message + used + 5, room - 6, format, args);
    va_end(args);
    /* there is no room for more: only the fact stays */
    if (length < 0 || (size_t)length >= room - 6) t->errors.message[used] = 0;
    else memcpy(t->errors.message + used + 5 + length, ")", 2);
}

void cot__error_in_function(cot_tape *t, const char *part, const char *op) {
    char of[64];
    if (t->status == COT_OK) return;
    snprintf(of, sizeof of, " of [%s]", op);
    if (!strstr(t->errors.message, of) && strncmp(t->errors.message, of + 4, strlen(of + 4)))
        cot__error_in(t, "the %s of [%s]", part, op);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

cot_var cot__parameter(cot_tape *t, uint32_t x) {
    const cot__node *n = &t->nodes[x];
    cot_dtype        dtype = cot__dtype_at(n);
    if (cot__is_tensor(n) && (!t->mode.compiling || cot__is_example(t, x))) {
        cot__tensor *v = n->value.tensor;
        return cot__push_storage(t, OP_parameter, v->storage, dtype, v->ndim, v->dims, v->dims + v->ndim, v->offset, 0,
                                 NULL);
    }
    cot__result r;
    cot__value  value = n->value;
    cot_shape   shape = cot__shape_at(t, x);
    if (!cot__result_open(t, &r, "parameter", dtype, shape.ndim, shape.dim)) return INVALID(t);
    if (r.tensor) cot__result_is_example(t, &r);
    else r.scalar = value;
    return cot__result_push(t, &r, OP_parameter, 0, NULL, NULL);
}

/* ---- what a body may not do ------------------------------------------------------------------ */

bool cot__outside_bodies(cot_tape *t, const char *op) {
    if (!t->mode.body) return true;
    cot__fail(t, COT_GRAD,
              "[%s] called while the body of [%s] is recorded; a body records operations and their derivatives "
              "(cot_grad_of), and stands for every step",
              op, t->mode.body);
    return false;
}

/* In a body values are active, because whether its inputs move is known only when it is played. */
static cot__scope body_open(cot_tape *t, const char *op) {
    cot__scope before = cot__scope_open(t, COT__ACTIVE);
    t->mode.batch = op == cot__vmap_name && (!t->mode.body || t->mode.batch);
    if (!t->mode.body) t->mode.body_from = t->count;
    t->mode.body = op;
    t->mode.no_grad = 0;
    return before;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Work space while a program is made: a byte and a place for each node of the body. */
typedef struct maker {
    cot_tape   *t;
    const char *part; /* what messages call the function: "body" */
    uint32_t    first, count;
    uint8_t    *mark;
    uint32_t   *place;
    uint32_t   *captured;
    uint32_t    captures, capture_room;
    /* a hash table of captured nodes: the number of a node + 1; 0: free */
    uint32_t   *table;
    uint32_t    table_size; /* a power of two, at least twice the captures */
} maker;

enum {
    NEEDED = 1, MOVES = 2, /* a result depends on it; it depends on an input or a capture */
    KEPT = 4, CHANGES = 8, /* it may stay for its effect; MOVES of all nodes, needed or not */
};

static bool is_inside(const maker *k, uint32_t node) { return node != COT__NONE && node >= k->first; }

/* The place of a captured node in the table, or the free place for it. */
static uint32_t *table_place(const maker *k, uint32_t node) {
    uint32_t i = (uint32_t)(node * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (k->table_size - 1);
    while (k->table[i] && k->captured[k->table[i] - 1] != node) i = (i + 1) & (k->table_size - 1);
    return &k->table[i];
}

static bool grow_table(maker *k, const char *op) {
    uint32_t  size = k->table_size ? 2 * k->table_size : 16;
    uint32_t *table = cot__alloc(&k->t->al, size * sizeof *table);
    if (!table) {
        cot__fail(k->t, COT_MEMORY, "[%s] out of memory: a list of %u values from outside its %s", op, k->captures,
                  k->part);
        return false;
    }
    cot__free(&k->t->al, k->table, k->table_size * sizeof *table);
    memset(table, 0, size * sizeof *table);
    k->table = table;
    k->table_size = size;
    for (uint32_t i = 0; i < k->captures; i++) *table_place(k, k->captured[i]) = i + 1;
    return true;
}

static bool add_capture(maker *k, const char *op, uint32_t node) {
    if (k->table_size <= 2 * k->captures && !grow_table(k, op)) return false;
    uint32_t *place = table_place(k, node);
    if (*place) return true;
    void *list = k->captured;
    if (!cot__grow(k->t, &list, &k->capture_room, k->captures, sizeof *k->captured, op)) return false;
    k->captured = list;
    k->captured[k->captures++] = node;
    *place = k->captures;
    return true;
}

/* Was the value of the node used up by a write in place, so that it must be computed again? */
static bool is_overwritten(const cot__node *n) {
    return cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version &&
           n->value.tensor->version != COT__WRITTEN_ON_COPY;
}

/* While a body is recorded, no equation is solved in it and no cot_while runs. The value of such a
 * node is an example, not a value that holds for every step, even if it depends on constants
 * alone. */
static bool is_example(const cot__node *n) { return cot__op_of(n->op)->example; }

/* May its value change, whatever its operands do? */
static bool changes(const cot__node *n) { return n->op == OP_parameter || is_overwritten(n) || is_example(n); }

/* Takes a node that a result needs. Operands from before the body are captured, and the node may
 * depend on an input through them. */
static bool enter_needed(maker *k, const char *op, uint32_t i) {
    const cot__node *n = &k->t->nodes[i];
    if (n->op == OP_leaf) {
        char called[COT__CALLED_TEXT];
        cot__fail(k->t, COT_VALUE,
                  "[%s] its %s makes a leaf, %s; a body stands for every step: make leaves outside, it may use "
                  "them",
                  op, k->part, cot__called(k->t, i, called));
        return false;
    }
    /* a result is computed again by its operation */
    if (changes(n))
        k->mark[cot__operation_at(k->t, i) - k->first] |= MOVES;
    for (int a = 0, args = cot__nargs(n); a < args; a++) {
        uint32_t x = cot__arg(n, a);
        if (x != COT__NONE && !is_inside(k, x) && !add_capture(k, op, x)) return false;
    }
    return true;
}

/* ---- effects --------------------------------------------------------------------------------- */

/* See cot__operation_has_effect, which says the same of an operation of a program. */
static bool has_effect(cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    if (n->op < OP_structural) return false;
    const cot__op *op = cot__op_of(n->op);
    return cot__acts(op, n->extra.attr) || (op->bodies_act && op->bodies_act(&(cot__rule){.t = t, .node = i}));
}

/* Those of bodies inside this one are theirs. */
static bool is_watch(const cot__node *n) { return n->op == OP_watch && !cot__in_body(n); }

/* What the function checks, notes or may not end stays though no result needs it. Two kinds do not:
 * what a derivative repeats of its function, and what reads nothing that can change, which was done
 * when it was recorded. */
static bool may_be_kept(cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    return !cot__in_body(n) && !(n->flags & COT__REPEATS) && has_effect(t, i);
}

static void mark_effects(maker *k, cot__flow *w) {
    cot_tape *t = k->t;
    bool      some = false;
    for (uint32_t i = 0; i < k->count; i++) {
        if (is_watch(&t->nodes[k->first + i])) k->mark[i] |= NEEDED | MOVES;
        else if (may_be_kept(t, k->first + i)) k->mark[i] |= KEPT, some = true;
    }
    if (!some) return;
    for (uint32_t i = 0; i < k->count; i++)
        if (changes(&t->nodes[k->first + i])) k->mark[cot__operation_at(t, k->first + i) - k->first] |= CHANGES;
    cot__flow_up(w, CHANGES, COT__EDGES_ALL);
    for (uint32_t i = 0; i < k->count; i++) {
        bool stays = (k->mark[i] & (KEPT | CHANGES)) == (KEPT | CHANGES);
        k->mark[i] = (uint8_t)((k->mark[i] & (NEEDED | MOVES)) | (stays ? NEEDED : 0));
    }
}

/* ---- what belongs to it ---------------------------------------------------------------------- */

/* First from results back to inputs: which nodes are needed. Then forward: which depend on inputs.
 * Needed values from before the body are captured, and count as inputs. */
static bool mark_nodes(maker *k, const char *op, int m, const uint32_t *out) {
    cot_tape *t = k->t;
    cot__flow w = {.t = t, .from = k->first, .end = k->first + k->count, .mark = k->mark, .outside = true};
    mark_effects(k, &w);
    cot__flow_start(&w, m, out, NEEDED);
    for (int i = 0; i < m; i++)
        if (!is_inside(k, out[i]) && !add_capture(k, op, out[i])) return false;
    cot__flow_down(&w, NEEDED, COT__EDGES_ALL);
    for (uint32_t i = 0; i < k->count; i++)
        if (k->mark[i] & NEEDED && !enter_needed(k, op, k->first + i)) return false;
    return cot__flow_up(&w, MOVES, COT__EDGES_ALL);
}

/* The place of a needed value when the program is played. */
static uint64_t ref_of(const maker *k, int n, uint32_t x) {
    if (x == COT__NONE) return COT__REF_NUMBER;
    if (!is_inside(k, x)) return (uint64_t)n + *table_place(k, x) - 1;
    return k->place[x - k->first];
}

static cot__region *make_program(maker *k, const char *op, int n, const uint32_t *in, int m, const uint32_t *out) {
    cot_tape *t = k->t;
    uint32_t  steps = 0, fixed = 0, before = (uint32_t)n + k->captures;
    size_t    refs = (size_t)m;
    for (int i = 0; i < n; i++) k->place[in[i] - k->first] = (uint32_t)i;
    for (uint32_t i = 0; i < k->count; i++)
        if (k->mark[i] == NEEDED) k->place[i] = before + fixed++;
    for (uint32_t i = 0; i < k->count; i++) {
        if (k->mark[i] != (NEEDED | MOVES) || t->nodes[k->first + i].op == OP_parameter) continue;
        k->place[i] = before + fixed + steps++;
        refs += (size_t)cot__nargs(&t->nodes[k->first + i]);
    }
    cot__region *r = cot__arena(t, sizeof *r, op);
    uint64_t    *ref = r ? cot__arena(t, refs * sizeof *ref + 8, op) : NULL;
    uint32_t    *list =
        ref ? cot__arena(t, ((size_t)steps + fixed + k->captures + (size_t)m) * sizeof *list + 8, op) : NULL;
    if (!list) return NULL;
    uint32_t *node = list, *constant = list + steps, *captured = constant + fixed, *results = captured + k->captures;
    *r = (cot__region){
        op, k->first, k->first + k->count, n, (int)k->captures, m, fixed, captured, constant, results, steps, node, ref,
        false, NULL, 0, false};
    if (k->captures) memcpy(captured, k->captured, k->captures * sizeof *captured);
    for (int i = 0; i < m; i++) results[i] = out[i];
    for (uint32_t i = 0; i < k->count; i++) {
        const cot__node *x = &t->nodes[k->first + i];
        if (k->mark[i] == NEEDED) {
            *constant++ = k->first + i;
            t->nodes[k->first + i].flags |= COT__FIXED;
        }
        if (k->mark[i] != (NEEDED | MOVES) || x->op == OP_parameter) continue;
        *node++ = k->first + i;
        r->effects |= has_effect(t, k->first + i);
        for (int a = 0, args = cot__nargs(x); a < args; a++) *ref++ = ref_of(k, n, cot__arg(x, a));
    }
    for (int i = 0; i < m; i++) *ref++ = ref_of(k, n, out[i]);
    return r;
}

/* ---- closing a body -------------------------------------------------------------------------- */

/* Constants of the body stay, and those of bodies inside it. Every other value has served as an
 * example: its shape stays, its memory is freed. */
static bool let_values_go(const maker *k, const char *op, uint32_t storages) {
    cot_tape     *t = k->t;
    cot__storage *none = cot__storage_create(t, 0, op);
    if (!none) return false;
    for (uint32_t i = storages; i < t->storages.count; i++) t->storages.list[i]->writer = COT__NONE - 1;
    for (uint32_t i = 0; i < k->count; i++)
        if ((t->nodes[k->first + i].flags & COT__FIXED) && cot__is_tensor(&t->nodes[k->first + i])) {
            cot__tensor *v = t->nodes[k->first + i].value.tensor;
            v->storage->writer = COT__NONE;
            if (v->version == COT__WRITTEN_ON_COPY) v->version = v->storage->version;
        }
    for (uint32_t i = 0; i < k->count; i++) {
        cot__node *n = &t->nodes[k->first + i];
        if (!cot__is_tensor(n) || n->value.tensor->storage->writer != COT__NONE - 1) continue;
        n->value.tensor->storage = none;
        n->value.tensor->version = none->version;
    }
    for (uint32_t i = storages; i < t->storages.count; i++) {
        if (t->storages.list[i]->writer != COT__NONE - 1) continue;
        cot__storage_release(t, t->storages.list[i]);
        t->storages.list[i] = none;
        none->refs++;
    }
    return cot__storage_keep(t, none, op);
}

static bool maker_open(maker *k, cot_tape *t, const char *op, const char *part, uint32_t first) {
    *k = (maker){.t = t, .part = part, .first = first, .count = t->count - first};
    k->mark = cot__alloc(&t->al, k->count + 1);
    k->place = cot__alloc(&t->al, ((size_t)k->count + 1) * sizeof *k->place);
    if (k->mark && k->place) {
        memset(k->mark, 0, k->count + 1);
        return true;
    }
    cot__fail(t, COT_MEMORY, "[%s] out of memory: the program of a body of %u operations", op, k->count);
    return false;
}

static void maker_close(maker *k) {
    cot__free(&k->t->al, k->mark, k->mark ? k->count + 1 : 0);
    cot__free(&k->t->al, k->place, k->place ? ((size_t)k->count + 1) * sizeof *k->place : 0);
    cot__free(&k->t->al, k->captured, k->capture_room * sizeof *k->captured);
    cot__free(&k->t->al, k->table, k->table_size * sizeof *k->table);
}

static const char BODY[] = "body"; /* the name of the function of an operation that has one */

/* The results as nodes of this tape; numbers become constants of the body. */
static bool take_results(cot_tape *t, const char *op, const char *part, int m, const cot_var *ys, uint32_t *out) {
    char named[2][64];
    bool usual = part == BODY; /* which happens often enough for its words to stand here */
    if (!usual) snprintf(named[0], sizeof named[0], "its %s", part);
    if (!usual) snprintf(named[1], sizeof named[1], "%s's result ys", part);
    if (!cot__check_set(t, op, usual ? "its body" : named[0], m, ys)) return false;
    for (int i = 0; i < m; i++)
        if (!cot__enter_listed(t, ys[i], op, usual ? "body's result ys" : named[1], i, " as", &out[i])) return false;
    return true;
}

static bool record_body(cot_tape *t, const char *op, const char *part, cot_fn f, void *user, int n,
                        const cot_var *examples, int m, cot_var *xs, cot_var *ys, uint32_t *in, uint32_t *out) {
    for (int i = 0; i < n; i++) {
        uint32_t x;
        if (!cot__operand(t, examples[i], op, "given", &x)) return false;
        xs[i] = cot__parameter(t, x);
        if (xs[i].id == UINT64_MAX) return false;
        in[i] = cot__index(xs[i]);
    }
    for (int i = 0; i < m; i++) ys[i] = INVALID(t);
    int code = f(n, xs, m, ys, user);
    if (part == BODY) cot__error_in_function(t, part, op);
    else cot__error_in(t, "the %s of [%s]", part, op);
    if (code) cot__fail(t, COT_CUSTOM, "[%s] its %s failed with code %d", op, part, code);
    return t->status == COT_OK && take_results(t, op, part, m, ys, out);
}

cot__region *cot__region_record(cot_tape *t, const char *op, cot_fn f, void *user, int n, const cot_var *examples,
                                int m) {
    return cot__region_record_part(t, op, BODY, f, user, n, examples, m);
}

void cot__examples_over(cot_tape *t, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) t->nodes[i].stamp |= COT__BODY_STAMP;
}

/* Did the function close the scopes that it opened? Otherwise sets the error. */
static bool closed_scopes(cot_tape *t, const char *op, int before) {
    if (t->scopes.depth <= before) return true;
    cot__fail(t, COT_VALUE, "[%s] the function left scope \"%s\" open; what it opens, it closes", op,
              t->scopes.open[t->scopes.depth - 1].name);
    return false;
}

cot__region *cot__region_record_part(cot_tape *t, const char *op, const char *part, cot_fn f, void *user, int n,
                                     const cot_var *examples, int m) {
    size_t       bytes = (size_t)(n + m) * (sizeof(cot_var) + sizeof(uint32_t)) + 8;
    cot_var     *xs = cot__alloc(&t->al, bytes);
    uint32_t     first = t->count, storages = t->storages.count;
    cot__region *r = NULL;
    maker        k = {.t = t};
    if (!xs) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d values", op, n + m);
        return NULL;
    }
    cot_var  *ys = xs + n;
    uint32_t *in = (uint32_t *)(void *)(ys + m), *out = in + n;
    cot__scope before = body_open(t, op);
    int        scopes = t->scopes.depth;
    bool       ok = record_body(t, op, part, f, user, n, examples, m, xs, ys, in, out) && closed_scopes(t, op, scopes);
    t->scopes.depth = scopes;
    cot__scope_close_unnoted(t, &before);
    if (ok && maker_open(&k, t, op, part, first) && mark_nodes(&k, op, m, out) &&
        (r = make_program(&k, op, n, in, m, out)) != NULL) {
        if (!let_values_go(&k, op, storages)) r = NULL;
    }
    cot__examples_over(t, first, t->count); /* also if the body failed */
    maker_close(&k);
    cot__free(&t->al, xs, bytes);
    return r;
}

/* ---- playing --------------------------------------------------------------------------------- */

bool cot__player_open(cot__player *p, cot_tape *t, const char *op, const cot__region *region) {
    size_t count = (size_t)(region->n + region->captures) + region->fixed + region->steps;
    *p = (cot__player){t, region, NULL, count * sizeof(cot_var) + 8};
    p->value = cot__alloc(&t->al, p->bytes);
    if (p->value) {
        for (uint32_t k = 0; k < region->fixed; k++)
            p->value[(uint32_t)(region->n + region->captures) + k] = VAR(t, region->constant[k]);
        return true;
    }
    p->bytes = 0;
    cot__fail(t, COT_MEMORY, "[%s] out of memory: the values of a body of %u operations", op, region->steps);
    return false;
}

void cot__player_close(cot__player *p) { cot__free(&p->t->al, p->value, p->bytes); }

bool cot__play(cot__player *p, cot_var *out) {
    const cot__region *r = p->region;
    cot_tape          *t = p->t;
    const uint64_t    *ref = r->ref;
    cot_var           *value = p->value + (uint32_t)(r->n + r->captures) + r->fixed, few[8];
    cot__scope         scope = cot__scope_open(t, t->active_mask);
    bool               ok = true;
    for (uint32_t s = 0; ok && s < r->steps; s++) {
        uint32_t node = r->node[s];
        int      n = cot__nargs(&t->nodes[node]);
        cot_var *xs = n <= 8 ? few : cot__alloc(&t->al, (size_t)n * sizeof *xs);
        if (!xs) {
            cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d operands", cot__op_name(t, node), n);
            ok = false;
            break;
        }
        for (int a = 0; a < n; a++) xs[a] = *ref == COT__REF_NUMBER ? INVALID(t) : p->value[*ref], ref++;
        t->active_mask = cot__replay_mask(t, node, scope.active_mask);
        t->mode.repeats = scope.mode.repeats | (t->nodes[node].flags & COT__REPEATS);
        bool watch = t->nodes[node].op == OP_watch;
        value[s] = watch ? INVALID(t) : cot__reapply(t, node, xs);
        if (watch) cot__play_watch(t, r->name, node, xs);
        if (xs != few) cot__free(&t->al, xs, (size_t)n * sizeof *xs);
        ok = t->status == COT_OK;
    }
    cot__scope_close(t, &scope);
    for (int i = 0; ok && i < r->m; i++) out[i] = p->value[*ref++];
    return ok;
}

bool cot__play_once(cot_tape *t, const char *op, const cot__region *region, const cot_var *values, cot_var *out) {
    cot__player p;
    if (!cot__player_open(&p, t, op, region)) return false;
    memcpy(p.value, values, (size_t)(region->n + region->captures) * sizeof *values);
    bool ok = cot__play(&p, out);
    cot__player_close(&p);
    return ok;
}
