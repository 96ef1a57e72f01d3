/* matmul.c: batches of matrix products: threads share a large product, or each takes small ones. */
#include "backend/cpu/kernels.h"
#include "base/parallel.h"

enum { LEFT, RIGHT };

/* The last two axes of v, offset by the leading ones; a vector is a row on the left, a column on
 * the right. */
static cot__matrix matrix_at(const cot__view *v, int side, int64_t offset) {
    void   *data = (char *)v->data + offset * cot__dtype_size(v->dtype);
    int     n = v->ndim;
    int64_t extent = v->shape[n - 1], stride = v->stride[n - 1];
    if (n == 1)
        return side == LEFT ? (cot__matrix){data, 1, extent, 0, stride} : (cot__matrix){data, extent, 1, stride, 0};
    return (cot__matrix){data, v->shape[n - 2], extent, v->stride[n - 2], stride};
}

/* One product for each index of the leading axes. a, b contiguous or not; c contiguous. */
typedef struct products {
    const cot__view *a, *b;
    void            *c;
    int64_t          m, n, batches, parts;
    bool             many;   /* small ones: a thread does some of them */
    size_t           room;   /* bytes for a part */
    char            *scratch;
} products;

static void product_at(const products *x, int64_t batch, cot__matrix *a, cot__matrix *b, cot__matrix *c) {
    int64_t ao = 0, bo = 0, rest = batch;
    for (int k = (x->a->ndim > 2 ? x->a->ndim - 2 : 0) - 1; k >= 0; k--) {
        ao += rest % x->a->shape[k] * x->a->stride[k];
        bo += rest % x->a->shape[k] * x->b->stride[k];
        rest /= x->a->shape[k];
    }
    *a = matrix_at(x->a, LEFT, ao);
    *b = matrix_at(x->b, RIGHT, bo);
    *c = (cot__matrix){(char *)x->c + batch * x->m * x->n * cot__dtype_size(x->a->dtype), x->m, x->n, x->n, 1};
}

static void some_products(void *ctx, int64_t part) {
    const products *x = ctx;
    cot__matrix     a, b, c;
    cot__lent    room = {x->room ? x->scratch + (size_t)part * x->room : NULL, x->room};
    for (int64_t i = cot__part_start(x->batches, x->parts, part); i < cot__part_start(x->batches, x->parts, part + 1);
         i++) {
        product_at(x, i, &a, &b, &c);
        cot__gemm_alone(x->a->dtype, a, b, c, false, room);
    }
}

/* Depth 1: rows of all the products, as many for each part. */
static void some_rows(void *ctx, int64_t part) {
    const products *x = ctx;
    int64_t         at = cot__part_start(x->batches * x->m, x->parts, part),
            end        = cot__part_start(x->batches * x->m, x->parts, part + 1);
    cot__matrix     a, b, c;
    while (at < end) {
        int64_t batch = at / x->m, first = at % x->m, last = end - batch * x->m < x->m ? end - batch * x->m : x->m;
        product_at(x, batch, &a, &b, &c);
        cot__outer_rows(x->a->dtype, a, b, c, first, last);
        at = batch * x->m + last;
    }
}

static bool is_outer(const cot__view *a) {
    return a->shape[a->ndim - 1] == 1 && (a->dtype == COT_F64 || a->dtype == COT_F32);
}

/* Several threads share a large product, or take one small product each. */
static products products_of(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch) {
    enum { SHARED = 1 << 24, MOST_PARTS = 32 };
    products x = {a, b, c, m, n, cot__count(a->ndim > 2 ? a->ndim - 2 : 0, a->shape), 1, false, 0, scratch};
    double   work = (double)m * (double)n * (double)a->shape[a->ndim - 1];
    x.many = x.batches > 1 && work < SHARED && (a->dtype == COT_F64 || a->dtype == COT_F32);
    /* gradients of weights for one example each: nothing to pack, everything to write */
    if (is_outer(a)) x.parts = cot__parts(x.batches * m, n / 4, MOST_PARTS);
    else if (x.many) x.parts = cot__parts(x.batches, (int64_t)(work / 8), MOST_PARTS);
    return x;
}

/* Bytes of a part. */
static size_t room_of(const products *x) {
    int64_t k = x->a->shape[x->a->ndim - 1];
    if (!x->many) return cot__gemm_workspace(x->a->dtype, x->m, x->n, k);
    return (cot__gemm_alone_workspace(x->a->dtype, x->m, x->n, k) + 63) / 64 * 64;
}

size_t cot__matmul_workspace(const cot__view *a, const cot__view *b, int64_t m, int64_t n) {
    if (m == 0 || n == 0 || is_outer(a)) return 0;
    if (a->ndim <= 2) return cot__gemm_workspace(a->dtype, m, n, a->shape[a->ndim - 1]);
    products x = products_of(a, b, NULL, m, n, NULL);
    return room_of(&x) * (size_t)x.parts;
}

static cot__lent lent(const cot__view *a, int64_t m, int64_t n, void *scratch) {
    return (cot__lent){scratch, scratch ? cot__gemm_workspace(a->dtype, m, n, a->shape[a->ndim - 1]) : 0};
}

/* A single product, without the questions that batches raise. */
static void one_product(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch) {
    cot__lent room = lent(a, m, n, scratch);
    cot__gemm(a->dtype, matrix_at(a, LEFT, 0), matrix_at(b, RIGHT, 0), (cot__matrix){c, m, n, n, 1}, false, room);
}

void cot__matmul(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch) {
    if (m == 0 || n == 0) return; /* however many products of nothing */
    bool outer = is_outer(a);
    if (a->ndim <= 2 && !outer) {
        one_product(a, b, c, m, n, scratch);
        return;
    }
    products x = products_of(a, b, c, m, n, scratch);
    if (scratch) x.room = room_of(&x);
    if (outer) cot__parallel(x.parts, some_rows, &x);
    else if (x.many) cot__parallel(x.parts, some_products, &x);
    else
        for (int64_t i = 0; i < x.batches; i++) {
            cot__matrix l, r, z;
            product_at(&x, i, &l, &r, &z);
            cot__gemm(a->dtype, l, r, z, false, (cot__lent){scratch, x.room});
        }
}

/* ---- where bits need not be kept ------------------------------------------------------------- */

static bool takes_bf16(const cot__view *a, int64_t m, int64_t n) {
    return cot__gemm_bf16_takes(a->dtype, m, n, a->shape[a->ndim - 1]);
}

/* Products that are too large for one thread share their work themselves. */
static products bf16_products(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch) {
    enum { SHARED = 1 << 24, MOST_PARTS = 32 };
    products x = products_of(a, b, c, m, n, scratch);
    int64_t  k = a->shape[a->ndim - 1];
    double   work = (double)m * (double)n * (double)k;
    if (work < SHARED) x.parts = cot__parts(x.batches, (int64_t)(work / 64), MOST_PARTS);
    x.room = (cot__gemm_bf16_workspace(m, n, k) + 63) / 64 * 64;
    return x;
}

static void some_bf16_products(void *ctx, int64_t part) {
    const products *x = ctx;
    cot__matrix     a, b, c;
    for (int64_t i = cot__part_start(x->batches, x->parts, part); i < cot__part_start(x->batches, x->parts, part + 1);
         i++) {
        product_at(x, i, &a, &b, &c);
        cot__gemm_bf16(a, b, c, x->scratch + (size_t)part * x->room);
    }
}

size_t cot__matmul_fast_workspace(const cot__view *a, const cot__view *b, int64_t m, int64_t n) {
    if (!takes_bf16(a, m, n)) return cot__matmul_workspace(a, b, m, n);
    products x = bf16_products(a, b, NULL, m, n, NULL);
    return x.room * (size_t)x.parts;
}

void cot__matmul_fast(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch) {
    if (!takes_bf16(a, m, n)) {
        cot__matmul(a, b, c, m, n, scratch);
        return;
    }
    products x = bf16_products(a, b, c, m, n, scratch);
    cot__parallel(x.parts, some_bf16_products, &x);
}
