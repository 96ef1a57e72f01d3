/* base.h: shared by every file of the library: compiler words, dtypes, the allocator, and the
 * strided view.
 *
 * A view says where the elements of an array lie and owns nothing. Kernels see views only, never
 * tapes.
 *
 * May call: libc and threads. Must not touch: anything above: no operation, tape or device is known
 * here. */
#ifndef COT_BASE_H
#define COT_BASE_H

#include <cotangent.h>

#include "base/sizes.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(c) __builtin_expect(!!(c), 1)
#define UNLIKELY(c) __builtin_expect(!!(c), 0)
#define COUNTOF(a) ((int)(sizeof(a) / sizeof(*(a))))
/* The element n behind p, in the same block. NULL if p is NULL, on which C defines no arithmetic:
 * callers lay out several lists in one block before they check that there was memory for it. */
#define cot__behind(p, n) ((p) ? (p) + (n) : NULL)

/* Elements a kernel handles at a time: small enough that five f64 blocks fit a small stack. */
#define COT__BLOCK 256

/* ---- dtypes ---------------------------------------------------------------------------------- */

typedef struct cot__dtype_info {
    const char *name;
    int         size; /* of an element, in bytes */
    bool        is_float;
    /* The type in which arithmetic on it is done: F64, F32 (for f32, bf16, f16) or I64 (for all
     * integers and bool). */
    cot_dtype   compute;
} cot__dtype_info;
extern const cot__dtype_info cot__dtype_table[COT_DTYPE_COUNT];

/* Inline: every small operation asks several times. */
static inline int         cot__dtype_size(cot_dtype d) { return cot__dtype_table[d].size; }
static inline const char *cot__dtype_name(cot_dtype d) { return cot__dtype_table[d].name; }
static inline bool        cot__dtype_is_float(cot_dtype d) { return cot__dtype_table[d].is_float; }
static inline cot_dtype   cot__dtype_compute(cot_dtype d) { return cot__dtype_table[d].compute; }

/* Promotion of two dtypes: the one table, JAX's with 64-bit types enabled. */
cot_dtype cot__dtype_promote(cot_dtype a, cot_dtype b);

/* ---- views ----------------------------------------------------------------------------------- */

typedef struct cot__view {
    void          *data;   /* the element at index (0, 0, …) */
    cot_dtype      dtype;
    int            ndim;   /* 0 … COT_MAX_NDIM */
    const int64_t *shape;
    const int64_t *stride; /* in elements; may be zero or negative */
} cot__view;

static inline int64_t cot__count(int ndim, const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= shape[i];
    return n;
}

/* Row-major strides of a contiguous array. */
static inline void cot__strides(int ndim, const int64_t *shape, int64_t *stride) {
    int64_t s = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        stride[i] = s;
        s *= shape[i] > 0 ? shape[i] : 1;
    }
}

static inline bool cot__is_contiguous(int ndim, const int64_t *shape, const int64_t *stride) {
    int64_t s = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        if (shape[i] == 0) return true;
        if (shape[i] != 1 && stride[i] != s) return false;
        s *= shape[i];
    }
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* One function does all. ptr NULL allocates; new_size 0 frees, and returns NULL; otherwise the
 * block is resized. */
void *cot__alloc(const cot_allocator *al, size_t size);
void *cot__resize(const cot_allocator *al, void *ptr, size_t old_size, size_t new_size);
void  cot__free(const cot_allocator *al, void *ptr, size_t size);
/* Functions of a cot_allocator: large blocks are of the system and go back there at once, small
 * ones are asked of `allocator`, NULL: libc. The system promises the memory of cot__pages when it
 * is asked, and may refuse: a refusal is an error on a tape, where a promise that is not kept would
 * be the end of the process. cot__reserve is for arrays that nobody will touch: it takes addresses,
 * and no memory. */
void *cot__pages(void *allocator, void *ptr, size_t old_size, size_t new_size);
void *cot__reserve(void *allocator, void *ptr, size_t old_size, size_t new_size);

#endif
