/* signature.c: a body described word by word: all that its program depends on (lower.c), and
 * nothing of where on the tape it stands. */
#include "rules/structural_ids.h"
#include "tape/lower.h"

#include <string.h>

enum { LARGEST_CONSTANT = 256 }; /* in bytes; larger ones are not told */

static void put_type(cot_tape *t, uint32_t node, cot__words *w) {
    const cot__node *n = &t->nodes[node];
    int              ndim = cot__ndim_at(t, node);
    cot__words_put(w, (uint64_t)cot__dtype_at(n) | (uint64_t)(n->flags & COT__ACTIVE) << 8 | (uint64_t)ndim << 32);
    if (ndim) cot__words_put_bytes(w, n->value.tensor->dims, (size_t)ndim * sizeof(int64_t));
}

static void put_constant(cot_tape *t, uint32_t node, cot__words *w) {
    _Alignas(64) char elements[LARGEST_CONSTANT];
    size_t            bytes = cot__bytes_at(t, node);
    int64_t           stride[COT_MAX_NDIM];
    put_type(t, node, w);
    w->failed = w->failed || bytes > sizeof elements;
    if (w->failed) return;
    cot__view from = cot__look(t, node), to = from;
    cot__strides(from.ndim, from.shape, stride);
    to.data = elements;
    to.stride = stride;
    t->backend->copy_out(&to, &from);
    cot__words_put_bytes(w, elements, bytes);
}

static void put_attributes(const cot__attr *a, cot__words *w) {
    cot__words_put(w, a ? (uint64_t)a->nints + 1 : 0);
    if (!a) return;
    w->failed = w->failed || a->pointer || a->pointer2;
    cot__words_put_bytes(w, &a->number, sizeof a->number);
    cot__words_put_bytes(w, a->ints, a->nints * sizeof *a->ints);
}

static void put_step(cot_tape *t, uint32_t node, const uint64_t *ref, cot__words *w) {
    const cot__node *n = &t->nodes[node];
    const cot_site  *site = cot__site_of(t, node);
    int              args = cot__nargs(n);
    bool             number = false;
    cot__words_put(w, n->op | (uint64_t)(n->flags & COT__ACTIVE) << 16 | (uint64_t)args << 32);
    for (int k = 0; k < args; k++) {
        cot__words_put(w, ref[k]);
        number |= ref[k] == COT__REF_NUMBER;
    }
    if (number) cot__words_put_bytes(w, &n->extra.number, sizeof n->extra.number);
    if (n->op == OP_pick) cot__words_put(w, node - n->a);
    else if (n->op >= OP_structural) {
        put_type(t, node, w);
        put_attributes(n->extra.attr, w);
    }
    if (!site) return;
    /* the text: what is recorded again has one of its own */
    cot__words_put(w, strlen(site->file));
    cot__words_put_bytes(w, site->file, strlen(site->file));
    cot__words_put(w, (uint64_t)site->line);
}

void cot__region_describe(cot_tape *t, const cot__region *r, cot__words *w) {
    const uint64_t *ref = r->ref;
    /* operations that watch speak for the body */
    cot__words_put_bytes(w, r->name, strlen(r->name));
    cot__words_put(w, (uint64_t)(uint32_t)r->n | (uint64_t)(uint32_t)r->captures << 32);
    cot__words_put(w, (uint64_t)(uint32_t)r->m | (uint64_t)r->fixed << 32);
    cot__words_put(w, r->steps);
    for (int k = 0; k < r->n; k++) put_type(t, r->first + (uint32_t)k, w);
    for (int k = 0; k < r->captures; k++) put_type(t, r->captured[k], w);
    for (uint32_t k = 0; k < r->fixed && !w->failed; k++) put_constant(t, r->constant[k], w);
    for (uint32_t s = 0; s < r->steps && !w->failed; s++) {
        put_step(t, r->node[s], ref, w);
        ref += cot__nargs(&t->nodes[r->node[s]]);
    }
    if (!w->failed) cot__words_put_bytes(w, ref, (size_t)r->m * sizeof *ref);
}
