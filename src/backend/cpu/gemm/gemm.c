/* gemm.c: matrix products.
 *
 * f32 and f64 run the kernels for the widest instruction set of the machine. The half formats are
 * widened to f32 and rounded once at the end. Integers multiply modulo 2^64. The bits of an element
 * depend only on its row of A, its column of B and its old value, because every path and every
 * instruction set keeps the same chain. For each depth block of COT__DEEP:
 *
 *     t = 0, then t = a*b + t, rounded once, over the block in order
 *     c = t (or c + t when accumulating) for the first block, c = c + t for each later one
 *
 * Contractions longer than LONG are done in sections that are then added up in the same way: sums
 * of sums lose fewer digits. A product whose result is one element has another order (dot.c), which
 * runs along the vectors; a matrix with one column keeps the chain, so that many columns at once
 * give what they give one by one. The caller checks shapes. */
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/strip.h"

#include <math.h>
#include <string.h>

enum { LONG = 1 << 16 /* terms */ };

static bool is_tiny(int64_t m, int64_t n, int64_t k) { return m * n <= COT__TINY / k; }

static size_t short_workspace(const cot__gemm_kernels *g, bool alone, int64_t m, int64_t n, int64_t k) {
    if (m == 1 || n == 1) return alone ? 0 : cot__gemm_thin_workspace(g, m * n, k);
    return cot__gemm_blocks_workspace(g, alone, m, n, k);
}

static void short_product(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                          cot__matrix c, bool add) {
    if (c.rows == 1 || c.cols == 1) cot__gemm_thin(g, room, alone, a, b, c, add);
    else if (is_tiny(c.rows, c.cols, a.cols)) cot__gemm_tiny(g, a, b, c, add);
    else cot__gemm_blocks(g, room, alone, a, b, c, add);
}

/* A section has as many depth blocks as there are sections, but is not shorter than a product that
 * is done in one. */
static int64_t section_of(int64_t k) {
    int64_t least = (LONG + COT__DEEP - 1) / COT__DEEP, root = (int64_t)sqrt((double)k / COT__DEEP);
    return k <= LONG ? k : COT__DEEP * (root > least ? root : least);
}

/* What is left of a room behind `bytes` that are taken from it. */
static cot__lent behind(cot__lent room, size_t bytes) {
    return room.bytes > bytes ? (cot__lent){(char *)room.memory + bytes, room.bytes - bytes}
                              : (cot__lent){NULL, 0};
}
static size_t whole_lines(int64_t elements, int size) { return ((size_t)elements * (size_t)size + 63) / 64 * 64; }

static void long_product(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                         cot__matrix c, bool add) {
    int64_t      k = a.cols, section = section_of(k);
    cot__matrix  sum = {room.memory, c.rows, c.cols, c.cols, 1};
    cot__lent rest = behind(room, whole_lines(c.rows * c.cols, g->size));
    for (int64_t p = 0; p < k; p += section) {
        int64_t depth = cot__least(section, k - p);
        short_product(g, rest, alone, cot__part_of(a, g->size, 0, p, a.rows, depth),
                      cot__part_of(b, g->size, p, 0, depth, b.cols), sum, false);
        for (int64_t i = 0; i < c.rows; i++)
            g->put((char *)c.data + i * c.row_stride * g->size, c.col_stride,
                   (char *)room.memory + i * c.cols * g->size, c.cols, add || p > 0);
    }
}

static void gemm_float(cot__lent room, bool alone, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c,
                       bool add) {
    if (c.rows == 1 && c.cols == 1) cot__gemm_dot(d, alone, a, b, c.data, add);
    else (a.cols > LONG ? long_product : short_product)(cot__gemm_kernels_of(d), room, alone, a, b, c, add);
}

static size_t float_workspace(cot_dtype d, bool alone, int64_t rows, int64_t cols, int64_t depth) {
    if (rows == 0 || cols == 0 || depth == 0 || is_tiny(rows, cols, depth) || (rows == 1 && cols == 1)) return 0;
    const cot__gemm_kernels *g = cot__gemm_kernels_of(d);
    size_t sums = depth > LONG ? whole_lines(rows * cols, g->size) : 0;
    return sums + short_workspace(g, alone, rows, cols, section_of(depth));
}

/* Copies between matrices of two dtypes through the library's one cast. */
static void copy_matrix(cot_dtype to, cot__matrix dst, cot_dtype from, cot__matrix src) {
    const int64_t   shape[2] = {src.rows, src.cols};
    const int64_t   ds[2] = {dst.row_stride, dst.col_stride}, ss[2] = {src.row_stride, src.col_stride};
    const cot__view d = {dst.data, to, 2, shape, ds}, s = {src.data, from, 2, shape, ss};
    cot__copy(&d, &s);
}

/* Bytes of the operands and the result in f32. */
static size_t widened(int64_t rows, int64_t cols, int64_t depth) {
    return whole_lines(rows * depth + depth * cols + rows * cols, sizeof(float));
}

static void gemm_half(cot__lent room, cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    float      *wide = room.memory, *right = wide + a.rows * a.cols;
    cot__matrix wa = {wide, a.rows, a.cols, a.cols, 1}, wb = {right, b.rows, b.cols, b.cols, 1};
    cot__matrix wc = {right + b.rows * b.cols, c.rows, c.cols, c.cols, 1};
    copy_matrix(COT_F32, wa, d, a);
    copy_matrix(COT_F32, wb, d, b);
    if (add) copy_matrix(COT_F32, wc, d, c);
    if (a.cols == 1 && !add) cot__outer_rows(COT_F32, wa, wb, wc, 0, c.rows);
    else gemm_float(behind(room, widened(c.rows, c.cols, a.cols)), false, COT_F32, wa, wb, wc, add);
    copy_matrix(d, c, COT_F32, wc);
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

/* ---- any dtype ------------------------------------------------------------------------------- */

size_t cot__gemm_workspace(cot_dtype d, int64_t rows, int64_t cols, int64_t depth) {
    if (d == COT_F64 || d == COT_F32) return float_workspace(d, false, rows, cols, depth);
    if (!cot__dtype_is_float(d) || rows == 0 || cols == 0 || depth == 0) return 0;
    return widened(rows, cols, depth) + float_workspace(COT_F32, false, rows, cols, depth);
}

static void fill_zeros(cot_dtype d, cot__matrix c) {
    double zero = 0;
    copy_matrix(d, c, COT_F64, (cot__matrix){&zero, c.rows, c.cols, 0, 0});
}

void cot__gemm(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, cot__lent room) {
    if (c.rows == 0 || c.cols == 0 || (a.cols == 0 && accumulate)) return;
    if (a.cols == 0) fill_zeros(d, c);
    else if (d == COT_F64 || d == COT_F32) gemm_float(room, false, d, a, b, c, accumulate);
    else if (cot__dtype_is_float(d)) gemm_half(room, d, a, b, c, accumulate);
    else gemm_integer(d, a, b, c, accumulate);
}

size_t cot__gemm_alone_workspace(cot_dtype d, int64_t rows, int64_t cols, int64_t depth) {
    return float_workspace(d, true, rows, cols, depth);
}

void cot__gemm_alone(cot_dtype d, cot__matrix a, cot__matrix b, cot__matrix c, bool accumulate, cot__lent room) {
    if (c.rows == 0 || c.cols == 0 || (a.cols == 0 && accumulate)) return;
    if (a.cols == 0) fill_zeros(d, c);
    else gemm_float(room, true, d, a, b, c, accumulate);
}
