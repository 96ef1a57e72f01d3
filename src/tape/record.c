/* record.c: how a node gets onto the tape: operand checks, room for a result, the push.
 *
 * Which operation it is, its shapes and its kernel are left to src/ops. */
#include "rules/structural_ids.h"
#include "tape/tape.h"

#include "backend/elements.h"
#include "tape/examples.h"
#include "tape/scope.h"

#include <string.h>

/* ---- operands -------------------------------------------------------------------------------- */

int cot__nargs(const cot__node *n) {
    if (n->flags & COT__NARY) return (int)n->extra.attr->nargs;
    const cot__op *op = cot__op_of(n->op);
    if (op->kind == KIND_SOURCE) return 0;
    return n->op < OP_structural ? cot__elementwise_arity(n->op) : n->b != COT__NONE ? 2 : 1;
}

uint32_t cot__arg(const cot__node *n, int k) {
    if (n->flags & COT__NARY) return n->extra.attr->args[k];
    return k == 0 ? n->a : k == 1 ? n->b : n->extra.c;
}

/* An operation that finds the tape failed is not the one that failed, so the error does not get its
 * source line. */
cot_tape *cot__usable(cot_tape *t) {
    if (t && t->status != COT_OK) t->errors.placed = true;
    return t && t->status == COT_OK ? t : NULL;
}

cot_tape *cot__tape_of(int n, const cot_var *xs) {
    for (int i = 0; xs && i < n; i++)
        if (xs[i].tape && !cot__is_number(xs[i])) return cot__usable(xs[i].tape);
    return NULL;
}

cot_var cot__invalid(int n, const cot_var *xs) {
    for (int i = 0; xs && i < n; i++)
        if (xs[i].tape && !cot__is_number(xs[i])) return INVALID(xs[i].tape);
    return INVALID(NULL);
}

cot_status cot__status_of(int n, const cot_var *xs) {
    if (n < 0) return COT_VALUE;
    for (int i = 0; xs && i < n; i++)
        if (xs[i].tape && !cot__is_number(xs[i])) return xs[i].tape->status;
    return COT_VAR;
}

cot_tape *cot__tape_beside(const char *op, const char *what, int m, const cot_var *ys, int n, const cot_var *others) {
    cot_tape *t = cot__tape_of(m, ys);
    if (t || cot__invalid(m, ys).tape) return t;
    t = cot__tape_of(n, others);
    if (!t) return NULL;
    if (m < 0) cot__fail(t, COT_VALUE, "[%s] a negative number of %s: %d", op, what, m);
    else if (m == 0) cot__fail(t, COT_VAR, "[%s] there are no %s", op, what);
    /* with the status that cot__status_of gives for a NULL list */
    else if (!ys) cot__fail(t, COT_VAR, "[%s] the list of %d %s is NULL", op, m, what);
    else if (m == 1) cot__fail(t, COT_VAR, "[%s] %s is not a value on a tape", op, what);
    else cot__fail(t, COT_VAR, "[%s] none of the %d %s is a value on a tape", op, m, what);
    return NULL;
}

bool cot__list_given(cot_tape *t, const char *op, const char *what, int n, const void *list) {
    if (list || n <= 0) return true;
    cot__fail(t, COT_VALUE, "[%s] the list of %d %s is NULL", op, n, what);
    return false;
}

/* A stale value is one whose storage has been written since. */
static bool is_stale(const cot__node *n) {
    return cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version;
}

bool cot__operand(cot_tape *t, cot_var x, const char *op, const char *which, uint32_t *index) {
    uint32_t i = (uint32_t)x.id;
    if (UNLIKELY(x.tape != t)) {
        if (!x.tape || cot__is_number(x))
            cot__fail(t, COT_VAR, "[%s] the %s%soperand is not a value on a tape", op, which, *which ? " " : "");
        else
            cot__fail(t, COT_VAR,
                      "[%s] the %s%soperand belongs to another tape; operands of one operation share a tape", op, which,
                      *which ? " " : "");
        return false;
    }
    if (UNLIKELY(x.id == UINT64_MAX)) {
        cot__fail(t, COT_VAR, "[%s] the %s%soperand is invalid: the operation that should have made it failed", op,
                  which, *which ? " " : "");
        return false;
    }
    if (UNLIKELY(i >= t->count || t->nodes[i].stamp != (uint32_t)(x.id >> 32))) {
        if (i < t->count && cot__in_body(&t->nodes[i]))
            cot__fail(t, COT_VAR,
                      "[%s] the %s%soperand belongs to the body of a loop, vmap or checkpoint that is over; a body "
                      "hands values out as "
                      "its results",
                      op, which, *which ? " " : "");
        else if (i < t->count && (uint32_t)(x.id >> 32) < t->nodes[i].stamp && cot__closed_scope(t, i))
            cot__fail(t, COT_VAR,
                      "[%s] the %s%soperand was made in scope \"%s\", which is closed; cot_scope_close keeps the "
                      "values that it is given",
                      op, which, *which ? " " : "", cot__closed_scope(t, i));
        else
            cot__fail(t, COT_VAR, "[%s] the %s%soperand was forgotten by a rewind", op, which, *which ? " " : "");
        return false;
    }
    if (UNLIKELY(is_stale(&t->nodes[i]))) {
        char        by[200], it[160];
        cot__writer writer = cot__describe_writer(t, t->nodes[i].value.tensor, by, sizeof by);
        cot__fail(t, COT_STALE, "[%s] the %s%soperand, %s, was overwritten by %s; %s", op, which, *which ? " " : "",
                  cot__describe(t, i, it, sizeof it), by,
                  writer == COT__IN_PLACE_WRITE || writer == COT__OUTSIDE_WRITE ? "use the var that the write updated"
                  : cot__op_of(t->nodes[i].op)->kind == KIND_SOURCE             ? "cot_assign gives it new numbers"
                                                                                : "record it again");
        return false;
    }
    *index = i;
    return true;
}

cot_tape *cot__enter(cot_tape *t, cot_var x, const char *op, const char *which, uint32_t *index) {
    t = t ? cot__usable(t) : cot__tape_of(1, &x);
    if (!t) return NULL;
    if (cot__is_number(x)) {
        int64_t whole = (int64_t)x.id;
        cot_var c     = (uintptr_t)x.tape == 2 ? cot_data(t, COT_I64, (cot_shape){0}, &whole)
                                               : cot_constant(t, cot__number_value(x));
        *index = cot__index(c);
        return c.id == UINT64_MAX ? NULL : t;
    }
    return cot__operand(t, x, op, which, index) ? t : NULL;
}

cot_tape *cot__enter_listed(cot_tape *t, cot_var x, const char *op, const char *list, int k, const char *as,
                            uint32_t *index) {
    char     which[80];
    uint32_t i = (uint32_t)x.id;
    if (LIKELY(x.tape == t && cot__usable(t) && i < t->count && t->nodes[i].stamp == (uint32_t)(x.id >> 32) &&
               !is_stale(&t->nodes[i]))) {
        *index = i;
        return t;
    }
    snprintf(which, sizeof which, "%s[%d]%s", list, k, as);
    return cot__enter(t, x, op, which, index);
}

/* ---- looking at a value ---------------------------------------------------------------------- */

const int64_t cot__no_axes[1], cot__no_strides[COT_MAX_NDIM];

int cot__ndim_at(const cot_tape *t, uint32_t i) {
    return cot__is_tensor(&t->nodes[i]) ? t->nodes[i].value.tensor->ndim : 0;
}
int64_t cot__size_at(const cot_tape *t, uint32_t i) {
    return cot__is_tensor(&t->nodes[i]) ? t->nodes[i].value.tensor->size : 1;
}
size_t  cot__bytes_at(const cot_tape *t, uint32_t i) {
    return (size_t)(cot__size_at(t, i) * cot__dtype_size(cot__dtype_at(&t->nodes[i])));
}

cot_shape cot__shape_at(const cot_tape *t, uint32_t i) {
    static const cot_shape scalar;
    const cot__node       *n = &t->nodes[i];
    cot_shape              s = scalar; /* copied: gcc would zero it by the slow rep stos */
    if (!cot__is_tensor(n)) return s;
    s.ndim = n->value.tensor->ndim;
    for (int k = 0; k < s.ndim; k++) s.dim[k] = n->value.tensor->dims[k];
    return s;
}

bool cot__has_shape(const cot_tape *t, uint32_t i, const cot_shape *s) {
    cot__view v = cot__layout_at(t, i);
    return v.ndim == s->ndim && memcmp(v.shape, s->dim, (size_t)v.ndim * sizeof *v.shape) == 0;
}

const char *cot__shape_text_at(const cot_tape *t, uint32_t i, char *buf) {
    cot__view v = cot__layout_at(t, i);
    return cot__shape_text(v.ndim, v.shape, buf);
}

/* ---- room for a result ----------------------------------------------------------------------- */

/* Number of elements, or -1 when the bytes, empty extents counted as 1, would not fit a ptrdiff. */
int64_t cot__checked_size(cot_tape *t, const char *op, cot_dtype dtype, int ndim, const int64_t *shape) {
    char    text[COT__SHAPE_TEXT];
    int64_t size = 0;
    if (ndim > COT_MAX_NDIM) {
        cot__fail(t, COT_LIMIT, "[%s] %d axes; at most %d are possible", op, ndim, COT_MAX_NDIM);
        return -1;
    }
    bool empty = false;
    for (int k = 0; k < ndim; k++) {
        if (shape[k] < 0) {
            cot__fail(t, COT_SHAPE, "[%s] extent %lld of axis %d is negative: shape %s", op, (long long)shape[k], k,
                      cot__shape_text(ndim, shape, text));
            return -1;
        }
        empty |= shape[k] == 0;
    }
    size = cot__size_product(ndim, shape);
    if (size > PTRDIFF_MAX / cot__dtype_size(dtype)) {
        cot__fail(t, COT_LIMIT, "[%s] shape %s has more elements than memory can hold", op,
                  cot__shape_text(ndim, shape, text));
        return -1;
    }
    return empty ? 0 : size;
}

static cot__tensor *make_tensor(cot_tape *t, const char *op, cot__storage *s, int64_t offset, int64_t size, int ndim,
                                const int64_t *shape, const int64_t *stride) {
    cot__tensor *v = cot__arena(t, sizeof *v + 2 * (size_t)ndim * sizeof *shape, op);
    if (!v) return NULL;
    *v = (cot__tensor){s, offset, size, s->version, ndim};
    for (int k = 0; k < ndim; k++) v->dims[k] = shape[k];
    if (stride)
        for (int k = 0; k < ndim; k++) v->dims[ndim + k] = stride[k];
    else
        cot__strides(ndim, shape, v->dims + ndim);
    return v;
}

bool cot__result_open_sized(cot_tape *t, cot__result *r, const char *op, cot_dtype dtype, int ndim,
                            const int64_t *shape, int64_t size) {
    if (ndim == 0 && LIKELY(cot__scalars_in_nodes(t))) {
        r->tensor = NULL;
        r->scalar = (cot__value){0};
        r->view = (cot__view){&r->scalar, dtype, 0, cot__no_axes, cot__no_axes};
        return t->status == COT_OK;
    }
    size_t        bytes = (size_t)(size * cot__dtype_size(dtype));
    cot__storage *s = t->mode.leaf ? cot__storage_create_aside(t, bytes, op) : cot__storage_create(t, bytes, op);
    if (!s || !cot__storage_keep(t, s, op)) return false;
    r->tensor = make_tensor(t, op, s, 0, size, ndim, shape, NULL);
    if (!r->tensor) return false;
    r->view = (cot__view){s->data, dtype, ndim, r->tensor->dims, r->tensor->dims + ndim};
    return true;
}

bool cot__result_open(cot_tape *t, cot__result *r, const char *op, cot_dtype dtype, int ndim, const int64_t *shape) {
    int64_t size = ndim == 0 ? 1 : cot__checked_size(t, op, dtype, ndim, shape);
    return size >= 0 && cot__result_open_sized(t, r, op, dtype, ndim, shape, size);
}

/* ---- the push -------------------------------------------------------------------------------- */

bool cot__room(cot_tape *t, const char *op) { return cot__room_for(t, op, 1); }

bool cot__room_for(cot_tape *t, const char *op, uint32_t n) {
    size_t need = (size_t)t->count + n, want = need > COT__FIRST_NODES ? need : COT__FIRST_NODES;
    if (LIKELY(need <= t->capacity)) return true;
    if (need > COT__MAX_NODES) {
        cot__fail(t, COT_LIMIT, "[%s] the tape is full: %u operations; rewind, or split the work over several tapes",
                  op, t->count);
        return false;
    }
    if (!cot__array_reserve(t, &t->node_memory, want * sizeof(cot__node))) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for the tape", op, want * sizeof(cot__node));
        return false;
    }
    size_t capacity = t->node_memory.bytes / sizeof(cot__node);
    t->nodes = t->node_memory.data;
    t->capacity = capacity < COT__MAX_NODES ? (uint32_t)capacity : COT__MAX_NODES;
    t->fast_limit = cot__scalars_in_nodes(t) ? t->capacity : 0;
    return true;
}

static bool is_active(const cot_tape *t, uint32_t i) { return i != COT__NONE && (t->nodes[i].flags & COT__ACTIVE); }

/* op is the record of node n. */
static inline uint32_t saved_mask(const cot_tape *t, const cot__node *n, const cot__op *op) {
    uint32_t mask = 0;
    if (!(n->flags & COT__ACTIVE)) return 0;
    if (n->op < OP_structural) {
        for (int k = 0; k < cot__elementwise_arity(n->op); k++)
            if (is_active(t, cot__arg(n, k))) mask |= cot__elementwise_saves(n->op, k);
        return mask;
    }
    if (op->kind != KIND_BILINEAR) return op->saves;
    /* each operand is read for the adjoint of the other */
    return op->saves & (~3u | (is_active(t, cot__arg(n, 1)) ? 1u : 0u) | (is_active(t, cot__arg(n, 0)) ? 2u : 0u));
}

uint32_t cot__saved_mask(const cot_tape *t, uint32_t index) {
    return saved_mask(t, &t->nodes[index], cot__op_of(t->nodes[index].op));
}

static bool lies_on(const cot__node *n, const cot__storage *s, uint32_t version) {
    return cot__is_tensor(n) && n->value.tensor->storage == s && n->value.tensor->version == version;
}

bool cot__has_saver(const cot_tape *t, const cot__storage *s, uint32_t version) {
    if (s->saver_version != version || s->saver >= t->count || cot__in_body(&t->nodes[s->saver])) return false;
    const cot__node *n = &t->nodes[s->saver];
    uint32_t         mask = cot__saved_mask(t, s->saver);
    for (int k = 0, count = mask ? cot__nargs(n) : 0; k < count; k++)
        if (cot__saves_operand(mask, k) && cot__arg(n, k) != COT__NONE &&
            lies_on(&t->nodes[cot__arg(n, k)], s, version))
            return true;
    for (int k = 0, m = mask & COT__SAVES_Z ? cot__results_at(t, s->saver) : 0; k < m; k++)
        if (lies_on(n + k, s, version)) return true;
    return false;
}

/* The oldest saver is kept: while it lives, later ones do not matter, and a rewind forgets those
 * first. */
static void note_saver(cot_tape *t, const cot__tensor *v, uint32_t index) {
    if (cot__has_saver(t, v->storage, v->version)) return;
    v->storage->saver = index;
    v->storage->saver_version = v->version;
}

/* Notes this node as the saver on the storages whose values its rule will read: in-place writes
 * look there. */
static void note_saves(cot_tape *t, uint32_t index, uint32_t mask) {
    const cot__node *n = &t->nodes[index];
    for (int k = 0, count = mask ? cot__nargs(n) : 0; k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (cot__saves_operand(mask, k) && a != COT__NONE && cot__is_tensor(&t->nodes[a]))
            note_saver(t, t->nodes[a].value.tensor, index);
    }
    for (int k = 0, m = mask & COT__SAVES_Z ? cot__results_at(t, index) : 0; k < m; k++)
        if (cot__is_tensor(n + k)) note_saver(t, n[k].value.tensor, index);
}

void cot__note_saves(cot_tape *t, uint32_t index) { note_saves(t, index, cot__saved_mask(t, index)); }

const char *cot__assigner_name(const cot__node *n) {
    static const char *const names[COT__ASSIGNERS] = {"cot_assign",     "cot_assign_data", "cot_sgd_step",
                                                      "cot_adamw_step", "cot_optim_step",  "cot_optim_swap"};
    return names[n->b % COT__ASSIGNERS];
}

/* Which node on v's storage made or holds the write: of those later than v, the earliest.
 * COT__NONE: it is not on the tape. */
static uint32_t write_after(const cot_tape *t, const cot__tensor *v) {
    uint32_t found = COT__NONE, version = UINT32_MAX;
    for (uint32_t i = 0; i < t->count; i++) { /* a walk, but only to word an error */
        const cot__node *n = &t->nodes[i];
        if (!(n->flags & COT__IN_PLACE) && !cot__was_assigned(n)) continue;
        if (!cot__is_tensor(n) || n->value.tensor->storage != v->storage) continue;
        uint32_t at = n->value.tensor->version;
        if (at > v->version && at < version) found = i, version = at;
    }
    return found;
}

/* The copy that was written in v's place: the last one that read v's memory, stale since. */
static const cot__tensor *written_copy(const cot_tape *t, const cot__tensor *v) {
    for (uint32_t i = t->count; i-- > 0;) {
        if (t->nodes[i].op != OP_copy || !cot__is_tensor(&t->nodes[i])) continue;
        const cot__tensor *x = t->nodes[t->nodes[i].a].value.tensor;
        if (x->storage == v->storage && x->version == COT__WRITTEN_ON_COPY) return t->nodes[i].value.tensor;
    }
    return v;
}

cot__writer cot__describe_writer(const cot_tape *t, const cot__tensor *v, char *buf, size_t size) {
    char     it[160];
    uint32_t i = write_after(t, v->version == COT__WRITTEN_ON_COPY ? written_copy(t, v) : v);
    if (cot__is_let_go(v)) {
        snprintf(buf, size, "the end of its scope (cot_scope_close)");
        return COT__REWOUND_WRITE;
    }
    if (i == COT__NONE) {
        snprintf(buf, size,
                 v->storage->writer == COT__NONE ? "a write from outside (cot_touch)" : "a write that was rewound");
        return v->storage->writer == COT__NONE ? COT__OUTSIDE_WRITE : COT__REWOUND_WRITE;
    }
    cot__describe(t, i, it, sizeof it);
    if (t->nodes[i].flags & COT__IN_PLACE) {
        snprintf(buf, size, "%s", it);
        return COT__IN_PLACE_WRITE;
    }
    snprintf(buf, size, "%s to %s", cot__assigner_name(&t->nodes[i]), it);
    return COT__ASSIGNMENT;
}

static uint8_t activity(const cot_tape *t, int op, const cot__op *o, cot_dtype dtype, int n, const uint32_t *args) {
    if (!t->active_mask || o->kind == KIND_NONE || !cot__dtype_is_float(dtype)) return 0;
    if (op == OP_leaf || op == OP_parameter) return COT__ACTIVE;
    uint32_t inactive = o->inactive;
    for (int k = 0; k < n; k++)
        if (args[k] != COT__NONE && !(k < 32 && inactive >> k & 1) && (t->nodes[args[k]].flags & COT__ACTIVE))
            return COT__ACTIVE;
    return 0;
}

/* The storage of a new result can be made again by its operation. A view has none of its own. */
static void note_maker(cot_tape *t, const cot__result *r, uint32_t operation) {
    if (!r->tensor || !r->view.data) return;
    r->tensor->storage->owner = operation;
    if (cot__limited(t)) r->tensor->storage->maker = operation, t->memory.remakes = true;
    r->tensor->storage->used_at = r->tensor->storage->read_at = t->memory.clock;
}

cot_var cot__result_push(cot_tape *t, cot__result *r, int op, int n, const uint32_t *args, cot__attr *attr) {
    const cot__op *record = cot__op_of(op);
    if (t->status != COT_OK || (t->count >= t->capacity && !cot__room(t, record->name))) return INVALID(t);
    uint32_t index = t->count;
    uint8_t  flags = activity(t, op, record, r->view.dtype, n, args);
    uint8_t  kind = (uint8_t)(r->view.dtype | (r->tensor ? COT__TENSOR : 0));
    if (n > 2 && op >= OP_structural) {
        if (!attr && !(attr = cot__attr_make(t, record->name, 0, NULL, n, args))) return INVALID(t);
        if (attr->nargs == 0) { /* made without operands: a second record with both */
            cot__attr *both = cot__attr_make(t, record->name, (int)attr->nints, attr->ints, n, args);
            if (!both) return INVALID(t);
            both->number = attr->number, both->pointer = attr->pointer, both->pointer2 = attr->pointer2;
            attr = both;
        }
    }
    bool nary = attr && attr->nargs;
    if (nary) flags |= COT__NARY;
    if (UNLIKELY(t->mode.repeats) && t->mode.body && op != OP_leaf) flags |= t->mode.repeats;
    /* written where it stays: a copy in wide words would wait for the narrow ones before it */
    cot__node *node = &t->nodes[index];
    node->op = (uint16_t)op, node->kind = kind, node->flags = flags, node->stamp = t->stamp;
    node->a = n > 0 && !nary ? args[0] : COT__NONE;
    node->b = n > 1 && !nary ? args[1] : COT__NONE;
    node->extra.attr = op >= OP_structural ? attr : NULL;
    if (op < OP_structural && n == 3) node->extra.c = args[2];
    if (r->tensor)
        node->value.tensor = r->tensor;
    else
        node->value = r->scalar;
    t->count = index + 1;
    if (UNLIKELY(t->memory.on)) note_maker(t, r, op == OP_pick ? args[0] : index);
    /* whether it is active does not matter: fresh inputs become active later */
    if (kind != COT_F64 || !cot__sweeps_know(node)) t->scalars_from = index + 1;
    uint32_t saves = saved_mask(t, node, record);
    if (saves) note_saves(t, index, saves);
    cot__memory_tick(t);
    return VAR(t, index);
}

/* With room for all nodes, only the first can fail. */
cot_var cot__results_push(cot_tape *t, int m, cot__result *r, int op, int n, const uint32_t *args, cot__attr *attr) {
    if (m < 1 || t->status != COT_OK || !cot__room_for(t, cot__op_of(op)->name, (uint32_t)m)) return INVALID(t);
    cot_var  z = cot__result_push(t, &r[0], op, n, args, attr);
    uint32_t of = cot__index(z);
    if (z.id == UINT64_MAX) return z;
    for (int k = 1; k < m; k++) cot__result_push(t, &r[k], OP_pick, 1, &of, NULL);
    if (m > 1) cot__note_saves(t, of);
    return z;
}

const cot__op cot__op_pick = {.name     = "pick",
                              .kind     = KIND_PICK,
                              .formula  = "z = a further result of x; it is swept with x",
                              .cost     = {.none = "comes with the operation"},
                              .operands = "x"};

/* A rehearsal has no elements of arrays (memory/hollow.c), but numbers. */
static void copy_number(const cot__backend *b, const cot__view *to, const cot__view *v, int64_t offset) {
    cot__view from = cot__view_at(v, offset);
    if (UNLIKELY(b->hollow && v->ndim > 0)) b->copy(to, &from);
    else cot__copy_element(b, to->data, from.data, v->dtype);
}

/* The type of the view has been checked. */
static cot_var push_view(cot_tape *t, const char *name, int op, uint32_t of, int ndim, const int64_t *shape,
                         const int64_t *stride, int64_t offset, cot__attr *attr) {
    bool        example = cot__is_example(t, of), reads = !example && (ndim == 0 || cot__ndim_at(t, of) == 0);
    cot__view   v = reads ? cot__look(t, of) : cot__layout_at(t, of);
    cot__result r;
    int         bytes = cot__dtype_size(v.dtype);
    if (ndim == 0) {
        if (!cot__result_open_sized(t, &r, name, v.dtype, 0, NULL, 1)) return INVALID(t);
        if (example) cot__result_is_example(t, &r);
        else copy_number(t->backend, &r.view, &v, offset);
        return cot__result_push(t, &r, op, 1, &of, attr);
    }
    cot__storage *s;
    if (v.ndim == 0) { /* a scalar has no storage to share */
        s = cot__storage_create(t, (size_t)bytes, name);
        if (!s || !cot__storage_keep(t, s, name)) return INVALID(t);
        if (example) cot__storage_is_example(s, v.dtype);
        else cot__copy_element(t->backend, s->data, v.data, v.dtype);
    } else {
        s = t->nodes[of].value.tensor->storage;
        offset += t->nodes[of].value.tensor->offset;
    }
    r.tensor = make_tensor(t, name, s, offset, cot__count(ndim, shape), ndim, shape, stride);
    if (!r.tensor) return INVALID(t);
    if (v.ndim) r.tensor->version = t->nodes[of].value.tensor->version;
    r.view = (cot__view){NULL, v.dtype, ndim, r.tensor->dims, r.tensor->dims + ndim};
    return cot__result_push(t, &r, op, 1, &of, attr);
}

cot_var cot__push_view(cot_tape *t, int op, uint32_t of, int ndim, const int64_t *shape, const int64_t *stride,
                       int64_t offset, cot__attr *attr) {
    const char *name = cot__op_of(op)->name;
    if (cot__checked_size(t, name, cot__dtype_at(&t->nodes[of]), ndim, shape) < 0) return INVALID(t);
    return push_view(t, name, op, of, ndim, shape, stride, offset, attr);
}

cot_var cot__push_view_as(cot_tape *t, const char *name, int op, uint32_t of, const cot__type *z, const int64_t *stride,
                          int64_t offset, cot__attr *attr) {
    return push_view(t, name, op, of, z->shape.ndim, z->shape.dim, stride, offset, attr);
}

cot_var cot__push_storage(cot_tape *t, int op, cot__storage *s, cot_dtype dtype, int ndim, const int64_t *shape,
                          const int64_t *stride, int64_t offset, int n, const uint32_t *args) {
    cot__result r;
    r.tensor = make_tensor(t, cot__op_of(op)->name, s, offset, cot__count(ndim, shape), ndim, shape, stride);
    if (!r.tensor) return INVALID(t);
    r.view = (cot__view){NULL, dtype, ndim, r.tensor->dims, r.tensor->dims + ndim};
    return cot__result_push(t, &r, op, n, args, NULL);
}
