/* gemm.h: the common part of the files of the matrix product: the kernels of one float type and
 * instruction set, and the functions that run them.
 *
 *   gemm_kernels.c   has the kernels, made from gemm_template.h
 *   gemm_blocks.c    cuts products into tiles
 *   gemm_thin.c      multiplies vectors with matrices
 *   dot.c            multiplies vectors with vectors
 *   gemm_bf16.c      multiplies bf16 by instructions for it, with bits of its own
 *   gemm.c           chooses
 *
 * Strides are in elements, pointers are to elements of the kernels' type.
 *
 * May call: base, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_GEMM_H
#define COT_GEMM_H

#include "backend/cpu/kernels.h"
#include "base/parallel.h"

enum {
    COT__DEEP = 384,  /* depth of a block; part of the definition of the result */
    COT__SPAN = 8192, /* bytes of a row that a vector's product sums at a time */
    COT__TINY = 8 * 8 * 8, /* products of at most this many terms are not worth a tile */
};

typedef struct cot__gemm_kernels {
    /* bytes of an element; the tile: rows, which come in thirds, and columns */
    int size, rows, cols;

    /* c = a b, or c += a b, in one tile at rows i, columns j of c, over at most COT__DEEP. a has
     * `height` rows, one to three thirds of the tile's; b has the tile's columns side by side, bs
     * apart from depth to depth. Elements outside of c are not stored. keep: NULL, or where the
     * panel of b is packed meanwhile, by a tile of all rows, if `keeps`. */
    void (*tile)(int height, int64_t k, const void *a, int64_t rs, int64_t ps, const void *b, int64_t bs,
                 const cot__matrix *c, int64_t i, int64_t j, bool add, void *keep);

    /* m rows of a, n columns of b, k deep, into panels as high or as wide as the tiles, depth
     * outermost, the last one padded with zeros. */
    void (*pack_a)(void *to, const void *from, int64_t rs, int64_t ps, int64_t m, int64_t k);
    void (*pack_b)(void *to, const void *from, int64_t cs, int64_t ps, int64_t n, int64_t k);

    /* t[j] = Σ x[p] b[p, j] over at most COT__DEEP, for n columns: side by side; or at any
     * strides. far: b is beyond the caches, and is fetched ahead where columns are runs. */
    void (*along_rows)(int64_t k, const void *x, int64_t xs, const void *b, int64_t rs, int64_t n, void *t);
    void (*dots)(int64_t k, const void *x, int64_t xs, const void *b, int64_t rs, int64_t cs, int64_t n, void *t,
                 bool far);

    /* c[j] = t[j], or c[j] + t[j] */
    void (*put)(void *c, int64_t cs, const void *t, int64_t n, bool add);

    /* the same with tiles of fewer columns, for products that have no more; or NULL */
    const struct cot__gemm_kernels *narrow;
    bool                            keeps;
} cot__gemm_kernels;

const cot__gemm_kernels *cot__gemm_kernels_of(cot_dtype d); /* f64 or f32 */

/* Products with k >= 1 and c not empty, c = a b or c + a b. alone: on this thread. The first tells
 * the bytes that the second is given for a c whose rows are contiguous (see cot__gemm_workspace);
 * thin products need some only where they are shared out. */
size_t cot__gemm_blocks_workspace(const cot__gemm_kernels *g, bool alone, int64_t rows, int64_t cols, int64_t depth);
void   cot__gemm_blocks(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                        cot__matrix c, bool add);
size_t cot__gemm_thin_workspace(const cot__gemm_kernels *g, int64_t n, int64_t depth);
void   cot__gemm_thin(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                      cot__matrix c, bool add);
/* A result of one element: x has one row, y one column. */
void   cot__gemm_dot(cot_dtype dtype, bool alone, cot__matrix x, cot__matrix y, void *z, bool add);
/* The same for a few terms, without memory. */
void   cot__gemm_tiny(const cot__gemm_kernels *g, cot__matrix a, cot__matrix b, cot__matrix c, bool add);

static inline cot__matrix cot__turned(cot__matrix m) {
    return (cot__matrix){m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}
static inline cot__matrix cot__part_of(cot__matrix m, int size, int64_t i, int64_t j, int64_t rows, int64_t cols) {
    return (cot__matrix){(char *)m.data + (i * m.row_stride + j * m.col_stride) * size, rows, cols, m.row_stride,
                         m.col_stride};
}
static inline int64_t cot__least(int64_t x, int64_t y) { return x < y ? x : y; }

#endif
