/* pack.c: values that nobody but derivative rules reads any more, kept as bf16
 * (cot_precision.saved).
 *
 * A scope that closes has them packed. Who asks for their elements then finds a storage that is
 * dropped, and comes here by cot__make_again: the elements are widened into f32, and go again when
 * the operation that read them is over. The bf16 stay, so every reader finds the same numbers. */
#include "memory/memory.h"
#include "pending/pending.h"

#include <string.h>

static size_t half_of(const cot__storage *s) { return s->bytes / 2; }
static cot__view all_of(const cot__storage *s, cot_dtype d, void *elements, int64_t *n) {
    static const int64_t one = 1;
    *n = (int64_t)(s->bytes / sizeof(float));
    return (cot__view){elements, d, 1, n, &one};
}

/* Not if others hold its elements, or work that waits does. */
static bool can_be_packed(cot_tape *t, cot__storage *s) {
    if (s->owner == COT__NONE) return false; /* somebody may hold its address */
    if (s->unready || s->touched) cot__pending_finish(t);
    return s->block && !s->dropped && !s->packed && s->refs == 1 && !s->pins && !s->touched && !s->unready &&
           !s->aside && s->version == 0 && s->bytes > 0;
}

void cot__pack(cot_tape *t, cot__storage *s) {
    int64_t n;
    if (!can_be_packed(t, s) || !(s->packed = cot__alloc(&t->al, half_of(s)))) return;
    cot__view narrow = all_of(s, COT_BF16, s->packed, &n), wide = all_of(s, COT_F32, s->data, &n);
    t->backend->copy(&narrow, &wide);
    cot__payload_drop(t, s);
    s->maker = COT__NONE; /* its operation would make the f32 that it was */
    t->memory.packed++;
}

bool cot__pack_read(cot_tape *t, cot__storage *s) {
    int64_t n;
    if (!cot__payload_create(t, s)) return false;
    cot__view narrow = all_of(s, COT_BF16, s->packed, &n), wide = all_of(s, COT_F32, s->data, &n);
    t->backend->copy(&wide, &narrow);
    s->next_wide = t->memory.wide;
    t->memory.wide = s;
    t->memory.on = true; /* whatever has become of the policy: what is widened goes again */
    return true;
}

static bool is_in_use(const cot_tape *t, const cot__storage *s) {
    return s->refs > 1 || s->pins || s->touched || s->read_at >= t->memory.pinned_from;
}

/* Elements that nobody computes with go again. */
void cot__pack_again(cot_tape *t) {
    cot__storage **at = &t->memory.wide;
    while (*at) {
        cot__storage *s = *at;
        if (is_in_use(t, s)) at = &s->next_wide;
        else {
            *at = s->next_wide;
            cot__payload_drop(t, s);
        }
    }
}

void cot__pack_end(cot_tape *t, cot__storage *s) {
    cot__storage **at = &t->memory.wide;
    while (*at && *at != s) at = &(*at)->next_wide;
    if (*at) *at = s->next_wide;
    cot__free(&t->al, s->packed, half_of(s));
    s->packed = NULL;
    t->memory.packed--;
}
