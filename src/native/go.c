/* go.c: runs with native code, of which the first is compared with the executor's, and the next
 * ones are timed (trial.c). */
#include "native/native.h"
#include "base/element.h"
#include "base/number.h"
#include "native/object.h"

#include <string.h>

/* ---- outputs aside --------------------------------------------------------------------------- */

static size_t bytes_of(const cot__program *p, uint32_t k) {
    cot__view v = cot__value_view(p, p->output[k]);
    return (size_t)cot__view_size(&v) * (size_t)cot__dtype_size(v.dtype);
}
static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Two lists of pointers, and what they point to. */
size_t cot__native_aside(cot__native *n) {
    cot__native_state state = cot__native_look(n, false);
    if (!cot__native_parts(n) || state == COT__NATIVE_READY || state == COT__NATIVE_DROPPED) return 0;
    size_t bytes = rounded(2 * n->p->outputs * sizeof(void *)) + 64;
    for (uint32_t k = 0; k < n->p->outputs; k++) bytes += 2 * rounded(bytes_of(n->p, k));
    return bytes;
}

/* List 0 or 1. */
static void **list_in(const cot__native *n, void *aside, int which) {
    return (void **)aside + (uint32_t)which * n->p->outputs;
}

static void lay_out(const cot__native *n, void *aside) {
    char *to = (char *)aside + rounded(2 * n->p->outputs * sizeof(void *));
    for (int which = 0; which < 2; which++)
        for (uint32_t k = 0; k < n->p->outputs; k++) {
            list_in(n, aside, which)[k] = to;
            to += rounded(bytes_of(n->p, k));
        }
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool is_nan(cot_dtype dtype, const char *x) {
    double v = cot__dtype_is_float(dtype) ? cot__load_f64(x, dtype) : 0;
    return v != v;
}

/* All NaN are one. */
static bool has_same_bits(const cot__program *p, uint32_t k, const char *a, const char *b) {
    cot_dtype dtype = cot__value_view(p, p->output[k]).dtype;
    size_t    size = (size_t)cot__dtype_size(dtype), bytes = bytes_of(p, k);
    if (bytes == 0 || memcmp(a, b, bytes) == 0) return true;
    for (size_t at = 0; at < bytes; at += size)
        if (memcmp(a + at, b + at, size) && !(is_nan(dtype, a + at) && is_nan(dtype, b + at))) return false;
    return true;
}

/* One of the runs that compare at the same time says it. */
static void drop(cot__native *n, const char *why) {
    if (!atomic_flag_test_and_set(&n->told)) {
        cot__format(n->differs, sizeof n->differs, "native code was dropped: %s; please report it", why);
        atomic_store(&n->state, COT__NATIVE_DROPPED);
    }
}

static void compare(cot__native *n, void *aside) {
    for (uint32_t k = 0; k < n->p->outputs; k++)
        if (!has_same_bits(n->p, k, list_in(n, aside, 0)[k], list_in(n, aside, 1)[k])) {
            char why[96];
            cot__format(why, sizeof why, "output %u of its first run has other bits than the executor's", k);
            drop(n, why);
            return;
        }
    int loaded = COT__NATIVE_LOADED;
    atomic_compare_exchange_strong(&n->state, &loaded, COT__NATIVE_READY);
}

/* By the executor, then by native code; the executor's results are given out. */
static bool go_twice(cot__native *n, cot__run *r, void *aside, const void *const *inputs, void *const *outputs) {
    lay_out(n, aside);
    if (!cot__run_go(r, inputs, NULL)) return false;
    cot__run_give(r, list_in(n, aside, 0));
    if (cot__run_go_by(r, n->loaded.functions, inputs, NULL)) {
        cot__run_give(r, list_in(n, aside, 1));
        compare(n, aside);
    } else drop(n, "its first run refused data that the executor takes");
    if (cot__run_status(r) != COT_OK) return cot__run_go(r, inputs, outputs);
    for (uint32_t k = 0; k < n->p->outputs; k++)
        if (outputs && outputs[k] && bytes_of(n->p, k)) memcpy(outputs[k], list_in(n, aside, 0)[k], bytes_of(n->p, k));
    return true;
}

bool cot__native_go(cot__native *n, cot__run *r, void *aside, const void *const *inputs, void *const *outputs) {
    switch (cot__native_look(n, false)) {
    case COT__NATIVE_READY:
        if (!cot__native_is_tried(n)) return cot__native_try(n, r, inputs, outputs);
        return cot__run_go_by(r, n->loaded.functions, inputs, outputs);
    case COT__NATIVE_LOADED:
        if (aside) return go_twice(n, r, aside, inputs, outputs);
        break;
    default: break;
    }
    return cot__run_go(r, inputs, outputs);
}
