/* gemm.c: matrix products.
 *
 * f32 and f64 run the kernels for the widest instruction set of the machine. The half formats are
 * widened to f32 and rounded once at the end. Integers multiply modulo 2^64. On one machine the
 * bits of an element depend only on its row of A, its column of B and its old value, because every
 * path keeps the same chain. For each depth block of COT__DEEP:
 *
 *     t = 0, then t = a*b + t over the block in order
 *     c = t (or c + t when accumulating) for the first block, c = c + t for each later one
 *
 * Contractions longer than LONG are done in sections that are then added up in the same way: sums
 * of sums lose fewer digits. The caller checks shapes. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/strip.h"

#include <math.h>
#include <string.h>

enum {
    LONG = 1 << 16, /* terms */
    TINY = 8 * 8 * 8, /* products of at most this many terms are not worth a tile */
};

static bool short_product(const cot__gemm_kernels *g, const cot_allocator *al, void *scratch, cot__matrix a,
                          cot__matrix b, cot__matrix c, bool add) {
    if (c.rows == 1 || c.cols == 1) return cot__gemm_thin(g, al, scratch != NULL, a, b, c, add);
    if (c.rows * c.cols <= TINY / a.cols) {
        cot__gemm_tiny(g, a, b, c, add);
        return true;
    }
    return cot__gemm_blocks(g, al, scratch, a, b, c, add);
}

/* A section has as many depth blocks as there are sections, but is not shorter than a product that
 * is done in one. */
static int64_t section_of(int64_t k) {
    int64_t least = (LONG + COT__DEEP - 1) / COT__DEEP, root = (int64_t)sqrt((double)k / COT__DEEP);
    return k <= LONG ? k : COT__DEEP * (root > least ? root : least);
}

static bool long_product(const cot__gemm_kernels *g, const cot_allocator *al, void *scratch, cot__matrix a,
                         cot__matrix b, cot__matrix c, bool add) {
    int64_t k = a.cols, section = section_of(k);
    size_t  bytes = (size_t)(c.rows * c.cols) * (size_t)g->size, before = (bytes + 63) / 64 * 64;
    char   *memory = scratch ? scratch : cot__alloc(al, bytes);
    if (!memory) return false;
    cot__matrix sum = {memory, c.rows, c.cols, c.cols, 1};
    bool        done = true;
    for (int64_t p = 0; p < k && done; p += section) {
        int64_t depth = cot__least(section, k - p);
        done = short_product(g, al, scratch ? memory + before : NULL, cot__part_of(a, g->size, 0, p, a.rows, depth),
                             cot__part_of(b, g->size, p, 0, depth, b.cols), sum, false);
        for (int64_t i = 0; i < c.rows && done; i++)
            g->put((char *)c.data + i * c.row_stride * g->size, c.col_stride, memory + i * c.cols * g->size, c.cols,
                   add || p > 0);
    }
    if (!scratch) cot__free(al, memory, bytes);
    return done;
}

static bool gemm_float(const cot_allocator *al, void *scratch, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c,
                       bool add) {
    return (a.cols > LONG ? long_product : short_product)(cot__gemm_kernels_of(d), al, scratch, a, b, c, add);
}

size_t cot__gemm_scratch(cot_dtype d, int64_t rows, int64_t cols, int64_t depth) {
    const cot__gemm_kernels *g = cot__gemm_kernels_of(d);
    size_t sums = depth > LONG ? ((size_t)(rows * cols) * (size_t)g->size + 63) / 64 * 64 : 0;
    return sums + cot__gemm_blocks_scratch(g, rows, cols, section_of(depth));
}

void cot__gemm_alone(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, void *scratch) {
    if (c.rows == 0 || c.cols == 0) return;
    if (a.cols > 0) gemm_float(NULL, scratch, d, a, b, c, accumulate);
    /* zeros: nothing is allocated */
    else if (!accumulate) cot__gemm(NULL, d, a, b, c, false);
}

/* Copies between matrices of two dtypes through the library's one cast. */
static void copy_matrix(cot_dtype to, cot__matrix dst, cot_dtype from, cot__matrix src) {
    const int64_t   shape[2] = {src.rows, src.cols};
    const int64_t   ds[2] = {dst.row_stride, dst.col_stride}, ss[2] = {src.row_stride, src.col_stride};
    const cot__view d = {dst.data, to, 2, shape, ds}, s = {src.data, from, 2, shape, ss};
    cot__copy(&d, &s);
}

static bool gemm_half(const cot_allocator *al, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    int64_t na = a.rows * a.cols, nb = b.rows * b.cols, nc = c.rows * c.cols;
    size_t  bytes = (size_t)(na + nb + nc) * sizeof(float);
    float  *wide  = cot__alloc(al, bytes);
    if (!wide) return false;
    cot__matrix wa = {wide, a.rows, a.cols, a.cols, 1}, wb = {wide + na, b.rows, b.cols, b.cols, 1};
    cot__matrix wc = {wide + na + nb, c.rows, c.cols, c.cols, 1};
    copy_matrix(COT_F32, wa, d, a);
    copy_matrix(COT_F32, wb, d, b);
    if (add) copy_matrix(COT_F32, wc, d, c);
    bool done = gemm_float(al, NULL, COT_F32, wa, wb, wc, add);
    if (done) copy_matrix(d, c, COT_F32, wc);
    cot__free(al, wide, bytes);
    return done;
}

/* Rows of c, a block of columns at a time; unsigned, because integers wrap. */
static void gemm_integer(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    uint64_t       sum[COT__BLOCK], row[COT__BLOCK];
    int            size = cot__dtype_size(d);
    cot__strip_fn *load = cot__strip(COT_I64, d), *store = cot__strip(d, COT_I64);
    for (int64_t i = 0; i < c.rows; i++)
        for (int64_t j = 0; j < c.cols; j += COT__BLOCK) {
            int64_t n  = c.cols - j < COT__BLOCK ? c.cols - j : COT__BLOCK;
            char   *to = (char *)c.data + (i * c.row_stride + j * c.col_stride) * size;
            if (add) load(sum, 1, to, c.col_stride, n);
            else memset(sum, 0, sizeof(sum));
            for (int64_t p = 0; p < a.cols; p++) {
                uint64_t s = (uint64_t)cot__load_i64((char *)a.data + (i * a.row_stride + p * a.col_stride) * size, d);
                load(row, 1, (char *)b.data + (p * b.row_stride + j * b.col_stride) * size, b.col_stride, n);
                for (int64_t l = 0; l < n; l++) sum[l] += s * row[l];
            }
            store(to, c.col_stride, sum, 1, n);
        }
}

bool cot__gemm(const cot_allocator *al, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate) {
    if (c.rows == 0 || c.cols == 0 || (a.cols == 0 && accumulate)) return true;
    if (a.cols == 0) {
        double zero = 0;
        copy_matrix(d, c, COT_F64, (cot__matrix){&zero, c.rows, c.cols, 0, 0});
        return true;
    }
    if (d == COT_F64 || d == COT_F32) return gemm_float(al, NULL, d, a, b, c, accumulate);
    if (cot__dtype_is_float(d)) return gemm_half(al, d, a, b, c, accumulate);
    gemm_integer(d, a, b, c, accumulate);
    return true;
}
