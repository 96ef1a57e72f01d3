/* accumulate.c: the memory of a sweep: slots, accumulators, arrivals.
 *
 * A first contribution to a tensor's adjoint is kept by reference; a second makes a row-major copy
 * that belongs to the sweep, and from then on contributions are added in place. A copy belongs
 * to the sweep if it has one reference, the sweep's.
 *
 * What will be the gradient of a leaf does not count against a memory limit, from the moment in
 * which nobody else has it (cot__storage.gradients). */
#include "rules/elementwise_ids.h"
#include "diff/engine/sweep.h"

#include <string.h>

bool cot__slots(cot_tape *t, uint32_t top, int lanes, const char *op) {
    size_t need = ((size_t)top + 1) * 8 * (size_t)lanes;
    if (need <= t->sweep.zeroed) return true;
    if (!cot__array_reserve(t, &t->sweep.adjoints, need)) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for the adjoints of the sweep", op, need);
        return false;
    }
    /* Reserved memory, and a file, is zero until touched, and touched slots are zeroed again:
     * nothing to do, and nothing to fault in. */
    bool   zero = t->sweep.adjoints.reserved || t->sweep.adjoints.mapped;
    size_t have = zero ? need : t->sweep.adjoints.bytes;
    if (!zero)
        memset((char *)t->sweep.adjoints.data + t->sweep.zeroed, 0, have - t->sweep.zeroed);
    t->sweep.zeroed = have;
    return true;
}

double cot__slot_get(cot_tape *t, uint32_t i) {
    float  f;
    double d;
    if (t->nodes[i].kind == COT_F64) {
        memcpy(&d, cot__slot(t, i), sizeof d);
        return d;
    }
    memcpy(&f, cot__slot(t, i), sizeof f);
    return (double)f;
}

void cot__slot_add(cot_tape *t, uint32_t i, double v) {
    double d = cot__slot_get(t, i);
    if (t->nodes[i].kind == COT_F64) {
        d += v;
        memcpy(cot__slot(t, i), &d, sizeof d);
    } else {
        cot_dtype  dtype = (cot_dtype)t->nodes[i].kind;
        cot__value rounded;
        cot__store_f64(&rounded, dtype, (double)((float)d + (float)v));
        float f = (float)cot__load_f64(&rounded, dtype);
        memcpy(cot__slot(t, i), &f, sizeof f);
    }
}

/* ---- accumulators ---------------------------------------------------------------------------- */

static cot__acc *acc_of(cot__sweep *s, uint32_t node) {
    uint64_t slot = *cot__slot(s->t, node);
    return slot ? &s->accs[slot - 1] : NULL;
}

static cot__acc *acc_make(cot__sweep *s, uint32_t node) {
    uint32_t i = s->acc_count;
    if (s->acc_free) {
        i = s->acc_free - 1;
        s->acc_free = (uint32_t)s->accs[i].offset;
    } else {
        void *list = s->accs;
        if (!cot__grow(s->t, &list, &s->acc_capacity, s->acc_count, sizeof *s->accs, "backward")) return NULL;
        s->accs = list;
        s->acc_count++;
    }
    s->accs[i] = (cot__acc){0};
    *cot__slot(s->t, node) = (uint64_t)i + 1;
    if (node < s->lo) s->lo = node;
    return &s->accs[i];
}

/* Of the accumulator of a node, which has got its storage: will that be the gradient of a leaf? A
 * part of something larger will not. */
static void claim(const cot__sweep *s, uint32_t node, cot__acc *a) {
    if (!s->gradients || s->t->nodes[node].op != OP_leaf) return;
    a->gradient = !a->storage->borrowed && a->storage->bytes == cot__bytes_at(s->t, node);
    a->storage->gradients += a->gradient;
    if (a->storage->refs == a->storage->gradients) cot__storage_set_aside(s->t, a->storage);
}

static void let_go(cot_tape *t, cot__acc *a) {
    if (a->gradient) a->storage->gradients--;
    cot__storage_release(t, a->storage);
}

cot__bound cot__acc_bound(cot__sweep *s, uint32_t node, int64_t *stride) {
    cot__acc  *a = acc_of(s, node);
    cot__bound b = {cot__layout_at(s->t, node), a->storage};
    memcpy(stride, a->stride, (size_t)b.view.ndim * sizeof *stride);
    b.view.data = (char *)a->storage->data + a->offset * cot__dtype_size(b.view.dtype);
    b.view.stride = stride;
    return b;
}

bool cot__acc_share(cot__sweep *s, uint32_t node, cot__storage *storage, int64_t offset, const int64_t *stride) {
    if (!cot__storage_share(s->t, storage)) return false;
    cot__acc *a = acc_make(s, node);
    if (!a) return cot__storage_release(s->t, storage), false;
    cot__pending_ask(s->t, storage); /* accumulators are read as they lie when the sweep is over */
    a->storage = storage;
    a->offset = offset;
    memcpy(a->stride, stride, (size_t)cot__ndim_at(s->t, node) * sizeof *stride);
    claim(s, node, a);
    return true;
}

bool cot__acc_own(cot__sweep *s, uint32_t node, bool zeros_if_empty) {
    cot__view  v = cot__layout_at(s->t, node);
    cot__acc  *a = acc_of(s, node);
    bool       gradient = s->gradients && s->t->nodes[node].op == OP_leaf;
    if (a && a->storage->refs == 1 && !a->storage->borrowed && cot__is_contiguous(v.ndim, v.shape, a->stride) &&
        a->gradient == gradient)
        return true;
    if (!a && !(a = acc_make(s, node))) return false;
    size_t        bytes = (size_t)(cot__count(v.ndim, v.shape) * cot__dtype_size(v.dtype));
    bool          zeros = !a->storage && zeros_if_empty;
    cot__storage *fresh = zeros ? NULL : cot__pending_reuse(s->t, bytes);
    if (!fresh) fresh = (gradient ? cot__storage_create_aside : cot__storage_create)(s->t, bytes, "backward");
    if (!fresh) return false;
    int64_t stride[COT_MAX_NDIM];
    cot__strides(v.ndim, v.shape, stride);
    if (a->storage) {
        int64_t    old[COT_MAX_NDIM];
        cot__bound to = {{fresh->data, v.dtype, v.ndim, v.shape, stride}, fresh}, from = cot__acc_bound(s, node, old);
        cot__pending_copy(s->t, &to, &from);
        let_go(s->t, a);
    } else if (zeros)
        s->t->backend->fill(&(cot__view){fresh->data, v.dtype, v.ndim, v.shape, stride}, 0);
    a->storage = fresh;
    a->offset = 0;
    memcpy(a->stride, stride, (size_t)v.ndim * sizeof *stride);
    claim(s, node, a);
    return true;
}

bool cot__acc_add(cot__sweep *s, uint32_t node, const cot__bound *v) {
    int64_t stride[COT_MAX_NDIM];
    if (!cot__acc_own(s, node, true)) return false;
    cot__bound to = cot__acc_bound(s, node, stride), pair[2] = {to, *v};
    cot__pending_value(s->t, OP_add, cot__dtype_compute(to.view.dtype), 2, pair, &to);
    return true;
}

void cot__acc_drop(cot__sweep *s, uint32_t node) {
    cot__acc *a = acc_of(s, node);
    if (!a) return;
    let_go(s->t, a);
    a->storage = NULL;
    a->offset = s->acc_free;
    s->acc_free = (uint32_t)(a - s->accs) + 1;
    *cot__slot(s->t, node) = 0;
}

bool cot__arrive(cot__sweep *s, uint32_t node) {
    void *list = s->arrivals;
    if (!cot__grow(s->t, &list, &s->arrival_capacity, s->arrival_count, sizeof *s->arrivals, "backward")) return false;
    s->arrivals = list;
    cot__arrival *to = &s->arrivals[s->arrival_count];
    *to = (cot__arrival){.node = node};
    if (cot__is_tensor(&s->t->nodes[node])) {
        bool is_leaf = s->t->nodes[node].op == OP_leaf;
        if (is_leaf && s->gradients && !acc_of(s, node)->gradient && !cot__acc_own(s, node, false)) return false;
        to->tensor = *acc_of(s, node);
        to->tensor.storage->refs++;
        to->tensor.storage->gradients += to->tensor.gradient;
        if (is_leaf && !s->gradients) cot__storage_set_aside(s->t, to->tensor.storage);
    } else
        to->scalar = cot__slot_get(s->t, node);
    s->arrival_count++;
    return true;
}

/* Nodes arrive in the order of the sweep: from the last to the first. */
cot__arrival *cot__arrival_at(const cot__sweep *s, uint32_t node) {
    uint32_t lo = 0, hi = s->arrival_count;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->arrivals[mid].node > node)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->arrival_count && s->arrivals[lo].node == node ? &s->arrivals[lo] : NULL;
}

void cot__sweep_close(cot__sweep *s, bool consumed) {
    cot_tape *t = s->t;
    for (uint32_t i = 0; i < s->acc_count; i++)
        if (s->accs[i].storage) let_go(t, &s->accs[i]);
    for (uint32_t i = 0; i < s->arrival_count; i++)
        if (s->arrivals[i].tensor.storage) let_go(t, &s->arrivals[i].tensor);
    t->cache.aside -= s->owed;
    cot__free(&t->al, s->accs, s->acc_capacity * sizeof *s->accs);
    cot__free(&t->al, s->arrivals, s->arrival_capacity * sizeof *s->arrivals);
    cot__list_free(t, s->reach, s->reach_bytes);
    if (!consumed && s->lo <= s->top && t->sweep.zeroed)
        cot__list_clear(t, cot__slot(t, s->lo), ((size_t)s->top - s->lo + 1) * 8);
    *s = (cot__sweep){.t = t, .lo = 1};
}
