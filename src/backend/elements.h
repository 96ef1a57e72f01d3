/* elements.h: looking at single elements of arrays, which may lie on a device.
 *
 * Whatever the host wants to know of elements it asks here, in blocks or one by one, and the
 * backend brings them. Whole arrays go to and from the host with copy_in and copy_out. */
#ifndef COT_ELEMENTS_H
#define COT_ELEMENTS_H

#include "backend/backend.h"

#include <string.h>

/* Can the host load and store elements itself? Then a function of the user's gets them where they
 * are, and otherwise a copy. */
static inline bool cot__on_host(const cot__backend *b) { return !b->alloc; }
/* b, or its table of other bits where these are allowed and it has one. */
static inline const cot__backend *cot__backend_of(const cot__backend *b, bool fast) {
    return fast && b->fast ? b->fast : b;
}

/* Element `at` of a view, counted row-major. */
static inline double cot__element_f64(const cot__backend *b, const cot__view *v, int64_t at) {
    double x;
    b->read(v, at, 1, COT_F64, &x);
    return x;
}
static inline int64_t cot__element_i64(const cot__backend *b, const cot__view *v, int64_t at) {
    int64_t x;
    b->read(v, at, 1, COT_I64, &x);
    return x;
}

/* The only element of a 0-d view becomes x, in the view's dtype. */
static inline void cot__set_f64(const cot__backend *b, const cot__view *v, double x) {
    if (LIKELY(cot__on_host(b))) cot__store_f64(v->data, v->dtype, x);
    else b->write(v, 0, 1, COT_F64, &x);
}
static inline void cot__set_i64(const cot__backend *b, const cot__view *v, int64_t x) {
    if (LIKELY(cot__on_host(b))) cot__store_i64(v->data, v->dtype, x);
    else b->write(v, 0, 1, COT_I64, &x);
}

/* The element that lies `offset` elements behind the first, as strides count. */
static inline cot__view cot__view_at(const cot__view *v, int64_t offset) {
    return (cot__view){(char *)v->data + offset * cot__dtype_size(v->dtype), v->dtype, 0, NULL, NULL};
}

/* One element as it is, of dtype d, to another place of the backend. */
static inline void cot__copy_element(const cot__backend *b, void *to, const void *from, cot_dtype d) {
    if (LIKELY(cot__on_host(b))) memcpy(to, from, (size_t)cot__dtype_size(d));
    else b->copy(&(cot__view){to, d, 0, NULL, NULL}, &(cot__view){(void *)(uintptr_t)from, d, 0, NULL, NULL});
}

/* The elements of a view in row-major order, block by block, as dtype `as`: F64, F32 or I64.
 *
 *     cot__elements e;
 *     cot__elements_open(&e, t->backend, &v, COT_F64);
 *     while (cot__elements_next(&e))
 *         for (int k = 0; k < e.n; k++) … e.f64[k], element e.first + k …
 */
typedef struct cot__elements {
    const cot__backend *backend;
    cot__view           view;
    cot_dtype           as;
    int64_t             first, size; /* of the block; of all */
    int                 n;           /* of the block */
    union {
        double  f64[COT__BLOCK];
        float   f32[COT__BLOCK];
        int64_t i64[COT__BLOCK];
    };
} cot__elements;

static inline void cot__elements_open(cot__elements *e, const cot__backend *b, const cot__view *v, cot_dtype as) {
    e->backend = b;
    e->view = *v;
    e->as = as;
    e->first = 0;
    e->n = 0;
    e->size = cot__count(v->ndim, v->shape);
}

/* The next block; false: there is none. */
static inline bool cot__elements_next(cot__elements *e) {
    e->first += e->n;
    e->n = e->size - e->first < COT__BLOCK ? (int)(e->size - e->first) : COT__BLOCK;
    if (e->n > 0) e->backend->read(&e->view, e->first, e->n, e->as, e->f64);
    return e->n > 0;
}

#endif
