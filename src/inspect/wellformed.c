/* wellformed.c: is a tape what tape.h promises? The first broken promise, as a sentence.
 *
 * Reads everything, trusts nothing that it has not checked before: a check only follows indices and
 * pointers that an earlier check has found in range. (What cannot be checked is whether a pointer
 * points to memory at all.) */
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "base/number.h"
#include "base/text.h"
#include "tape/scope.h"
#include "tape/show.h"

#include <stdarg.h>
#include <string.h>

/* Says the violation and returns false. */
static bool broken(cot__text *why, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool broken(cot__text *why, const char *format, ...) {
    char    text[400];
    va_list args;
    va_start(args, format);
    cot__vformat(text, sizeof text, format, args);
    va_end(args);
    cot__put(why, text);
    return false;
}

/* ---- a node by itself ------------------------------------------------------------------------ */

static bool head_is_sound(cot__text *why, const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    if (n->op >= OP_count || (n->op >= OP_elementwise_count && n->op < OP_structural))
        return broken(why, "%%%u has the operation number %u, which does not exist.", i, n->op);
    if ((n->kind & 0x7f) >= COT_DTYPE_COUNT)
        return broken(why, "%%%u has the dtype number %u, which does not exist.", i, n->kind & 0x7fu);
    uint32_t stamp = n->stamp & ~COT__BODY_STAMP, before = i ? t->nodes[i - 1].stamp & ~COT__BODY_STAMP : 0;
    if (stamp > t->stamp) return broken(why, "%%%u has the stamp %u, newer than the tape's, %u.", i, stamp, t->stamp);
    if (stamp < before)
        return broken(why, "%%%u has the stamp %u, older than that of %%%u, %u.", i, stamp, i - 1, before);
    if (cot__in_body(n)) return true;
    if (n->flags & COT__WANTED) return broken(why, "%%%u is still marked as wanted, but no sweep runs.", i);
    return true;
}

static bool arity_is_sound(cot__text *why, const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    const cot__op   *op = cot__op_of(n->op);
    if (op->kind == KIND_SOURCE)
        return !(n->flags & COT__NARY) || broken(why, "%%%u, a %s, claims to have operands.", i, op->name);
    if (n->op < OP_structural) {
        int arity = cot__elementwise_arity(n->op);
        if (n->flags & COT__NARY)
            return broken(why, "%%%u, %s, is elementwise but keeps its operands in a list.", i, op->name);
        if (arity == 1 && (n->a == COT__NONE || n->b != COT__NONE))
            return broken(why, "%%%u, %s, does not have its one operand.", i, op->name);
        if (arity == 2 && n->a == COT__NONE && n->b == COT__NONE)
            return broken(why, "%%%u, %s, has two numbers as operands; at least one must be a value.", i, op->name);
        if (arity == 3 && (n->a == COT__NONE || n->b == COT__NONE || n->extra.c == COT__NONE))
            return broken(why, "%%%u, %s, lacks one of its three operands.", i, op->name);
        return true;
    }
    const cot__attr *attr = n->extra.attr;
    if (op->attrs && !attr) return broken(why, "%%%u, %s, lacks its attributes (%s).", i, op->name, op->attrs);
    if ((n->flags & COT__NARY) && (!attr || !attr->nargs || !attr->args))
        return broken(why, "%%%u, %s, claims a list of operands but has none.", i, op->name);
    if (!(n->flags & COT__NARY) && n->a == COT__NONE && n->op != OP_loop)
        return broken(why, "%%%u, %s, has no operand.", i, op->name);
    uint32_t names = 0, fixed = 1;
    for (const char *p = op->attrs; p && (p = strchr(p, ':')); p++)
        names += p[1] != 'n' && !cot__attr_is_list(p[1]), fixed &= !cot__attr_is_list(p[1]);
    if (op->attrs && (attr->nints < names || (fixed && attr->nints != names)))
        return broken(why, "%%%u, %s, has %u integers as attributes; %s needs %u.", i, op->name, attr->nints, op->attrs,
                      names);
    return true;
}

/* ---- its value ------------------------------------------------------------------------------- */

static bool storage_is_sound(cot__text *why, const cot__storage *s) {
    if (s->refs < 1)
        return broken(why, "a storage of %zu bytes is on the tape's list with %lld references.", s->bytes,
                      (long long)s->refs);
    if (s->bytes && !s->data && !s->dropped) return broken(why, "a storage of %zu bytes has no memory.", s->bytes);
    return true;
}

static bool tensor_is_sound(cot__text *why, const cot_tape *t, uint32_t i) {
    if (!cot__is_tensor(&t->nodes[i]) && !cot__scalars_in_nodes(t))
        return broken(why, "%%%u is a 0-d value in its node, but those of this tape lie on its device.", i);
    /* bodies have let their values go */
    if (!cot__is_tensor(&t->nodes[i]) || cot__in_body(&t->nodes[i])) return true;
    const cot__tensor *v = t->nodes[i].value.tensor;
    if (!v || !v->storage) return broken(why, "%%%u is a tensor without %s.", i, v ? "a storage" : "a header");
    int least = cot__scalars_in_nodes(t);
    if (v->ndim < least || v->ndim > COT_MAX_NDIM)
        return broken(why, "%%%u is a tensor with %d axes; %d to %d are possible.", i, v->ndim, least, COT_MAX_NDIM);
    if (v->storage->refs < 1)
        return broken(why, "the storage of %%%u has %lld references.", i, (long long)v->storage->refs);
    int64_t size = 1, low = v->offset, high = v->offset, bytes = cot__dtype_size(cot__dtype_at(&t->nodes[i]));
    for (int k = 0; k < v->ndim; k++) {
        if (v->dims[k] < 0) return broken(why, "%%%u has the extent %lld on axis %d.", i, (long long)v->dims[k], k);
        size *= v->dims[k];
    }
    if (size != v->size)
        return broken(why, "%%%u claims %lld elements, but its shape has %lld.", i, (long long)v->size,
                      (long long)size);
    for (int k = 0; k < v->ndim && size; k++) {
        int64_t reach = (v->dims[k] - 1) * v->dims[v->ndim + k];
        if (reach < 0) low += reach;
        else high += reach;
    }
    if (cot__is_let_go(v)) return true;
    if (size && (low < 0 || (high + 1) * bytes > (int64_t)v->storage->bytes))
        return broken(why, "%%%u reaches from element %lld to %lld of a storage that has %lld.", i, (long long)low,
                      (long long)high, (long long)v->storage->bytes / bytes);
    if (v->version > v->storage->version && v->version != COT__WRITTEN_ON_COPY)
        return broken(why, "%%%u has version %u of a storage that is at version %u.", i, v->version,
                      v->storage->version);
    return true;
}

/* ---- it and its operands --------------------------------------------------------------------- */

static bool operands_are_older(cot__text *why, const cot_tape *t, uint32_t i) {
    for (int k = 0, count = cot__nargs(&t->nodes[i]); k < count; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        /* a number; a loop on nothing */
        if (a == COT__NONE && (t->nodes[i].op < OP_structural || t->nodes[i].op == OP_loop)) continue;
        if (a >= i)
            return broken(why, "operand %d of %%%u, %s, is %%%u, which is not older.", k, i,
                          cot__op_of(t->nodes[i].op)->name, a);
    }
    return true;
}

static bool same_shape(const cot_tape *t, uint32_t a, uint32_t b) {
    cot__view x = cot__look(t, a), y = cot__look(t, b);
    return x.ndim == y.ndim && memcmp(x.shape, y.shape, (size_t)x.ndim * sizeof *x.shape) == 0;
}

/* Only tests change the dtype (to bool); where takes a bool first. A 0-d operand of a tensor
 * repeats, and is then inactive. */
static bool elementwise_fits(cot__text *why, const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    char             x[COT__SHAPE_TEXT], z[COT__SHAPE_TEXT];
    cot_dtype        all = COT_DTYPE_COUNT;
    if (n->op >= OP_structural) return true;
    const char *name = cot__op_of(n->op)->name;
    bool        test = cot__op_is_test(n->op);
    if (test && cot__dtype_at(n) != COT_BOOL) return broken(why, "%%%u, %s, is not a bool.", i, name);
    for (int k = 0; k < cot__nargs(n); k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE) continue;
        cot_dtype d = cot__dtype_at(&t->nodes[a]), want = n->op == OP_where && k == 0 ? COT_BOOL
                                                          : !test                     ? cot__dtype_at(n)
                                                                                      : all;
        if (want != COT_DTYPE_COUNT && d != want)
            return broken(why, "operand %d of %%%u, %s, has dtype %s; it needs %s.", k, i, name, cot__dtype_name(d),
                          cot__dtype_name(want));
        if (test) all = d;
        if (!same_shape(t, a, i) && (cot__has_axes(&t->nodes[a]) || (t->nodes[a].flags & COT__ACTIVE)))
            return broken(why, "operand %d of %%%u, %s, has shape %s; the result has %s.", k, i, name,
                          cot__shape_text_at(t, a, x), cot__shape_text_at(t, i, z));
    }
    return true;
}

static bool activity_is_sound(cot__text *why, const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    const cot__op   *op = cot__op_of(n->op);
    if (!(n->flags & COT__ACTIVE)) return true;
    if (!cot__dtype_is_float(cot__dtype_at(n)))
        return broken(why, "%%%u, %s, is active, but integers have no adjoint.", i, op->name);
    if (n->op == OP_leaf || n->op == OP_parameter || n->op == OP_alias) return true;
    if (op->kind == KIND_SOURCE || op->kind == KIND_NONE)
        return broken(why, "%%%u is active, but %s has no derivative.", i, op->name);
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a != COT__NONE && !(k < 32 && op->inactive >> k & 1) && (t->nodes[a].flags & COT__ACTIVE)) return true;
    }
    return broken(why, "%%%u, %s, is active, but no operand of it is.", i, op->name);
}

/* A pick follows its operation, or another pick of it. The first result is a float if any is, as
 * adjoints go through its node. */
static bool pick_is_sound(cot__text *why, const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    if (n->op != OP_pick) return true;
    if (i == 0 || (n->a != i - 1 && (t->nodes[i - 1].op != OP_pick || t->nodes[i - 1].a != n->a)))
        return broken(why, "%%%u, a pick of %%%u, does not follow it.", i, n->a);
    if (t->nodes[n->a].op < OP_structural || cot__op_of(t->nodes[n->a].op)->kind == KIND_SOURCE)
        return broken(why, "%%%u is a pick of %%%u, %s, which has one result.", i, n->a,
                      cot__op_of(t->nodes[n->a].op)->name);
    if (cot__dtype_is_float(cot__dtype_at(n)) && !cot__dtype_is_float(cot__dtype_at(&t->nodes[n->a])))
        return broken(why, "%%%u, a float, is a further result of %%%u, whose first is none.", i, n->a);
    return true;
}

/* ---- the lists of the tape ------------------------------------------------------------------- */

static bool leaves_are_sound(cot__text *why, const cot_tape *t) {
    uint32_t tensors = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        cot__lists_walk(t, i);
        tensors += t->nodes[i].op == OP_leaf && cot__is_tensor(&t->nodes[i]);
    }
    if (tensors != t->leaves.count)
        return broken(why, "the list of tensor leaves has %u entries, the tape %u tensor leaves.", t->leaves.count,
                      tensors);
    for (uint32_t k = 0; k < t->leaves.count; k++) {
        uint32_t i = t->leaves.list[k];
        if (i >= t->count || t->nodes[i].op != OP_leaf || !cot__is_tensor(&t->nodes[i]))
            return broken(why, "entry %u of the list of tensor leaves is %%%u, which is none.", k, i);
        if (k && i <= t->leaves.list[k - 1])
            return broken(why, "the list of tensor leaves is not sorted: %%%u follows %%%u.", i, t->leaves.list[k - 1]);
        const cot__storage *g = t->nodes[i].extra.grad;
        size_t              bytes = cot__bytes_at(t, i);
        if (g && g->bytes != bytes)
            return broken(why, "the gradient of %%%u has %zu bytes; its value has %zu.", i, g->bytes, bytes);
    }
    return true;
}

static bool lists_are_sound(cot__text *why, const cot_tape *t) {
    for (uint32_t k = 0; k < t->names.count; k++)
        if (t->names.list[k].node >= t->count || !t->names.list[k].name)
            return broken(why, "name %u belongs to %%%u, which is not on the tape.", k, t->names.list[k].node);
    for (uint32_t k = 1; k < t->sites.count; k++)
        if (t->sites.list[k].first <= t->sites.list[k - 1].first)
            return broken(why, "source line %u ends before the one before it.", k);
    for (uint32_t k = 0; k < t->retained.count; k++)
        if (t->retained.list[k].node >= t->count || !(t->nodes[t->retained.list[k].node].flags & COT__RETAIN))
            return broken(why, "retained gradient %u belongs to %%%u, which is not marked.", k,
                          t->retained.list[k].node);
    return true;
}

/* A sample: all of the first slots, then one in many. */
static bool slots_are_zero(cot__text *why, const cot_tape *t) {
    const uint64_t *slot = t->sweep.adjoints.data;
    size_t          count = t->sweep.zeroed / sizeof *slot;
    for (size_t i = 0; i < count; i += i < 1024 ? 1 : 1021) {
        if (slot[i]) return broken(why, "slot %zu of the sweeps is not zero, but no sweep runs.", i);
        if (i >= 1024) cot__lists_walk(t, 0);
    }
    return true;
}

static bool is_sound(cot__text *why, const cot_tape *t) {
    if (t->count > t->capacity) return broken(why, "the tape has %u nodes and room for %u.", t->count, t->capacity);
    for (uint32_t k = 0; k < t->storages.count; k++)
        if (!storage_is_sound(why, t->storages.list[k])) return false;
    for (uint32_t i = 0; i < t->count; i++) {
        cot__lists_walk(t, i);
        cot__memory_tick((cot_tape *)(uintptr_t)t); /* the values before it may go again */
        if (!head_is_sound(why, t, i) || !arity_is_sound(why, t, i) || !tensor_is_sound(why, t, i) ||
            !operands_are_older(why, t, i) || !elementwise_fits(why, t, i) || !activity_is_sound(why, t, i) ||
            !pick_is_sound(why, t, i))
            return false;
    }
    return leaves_are_sound(why, t) && lists_are_sound(why, t) && slots_are_zero(why, t);
}

cot_status cot_tape_check(const cot_tape *t, char *out, size_t size) {
    cot__text why = cot__text_buffer(out, size);
    if (!t) {
        cot__put(&why, cot_tape_message(t));
        return COT_MEMORY;
    }
    return is_sound(&why, t) ? COT_OK : COT_VALUE;
}
