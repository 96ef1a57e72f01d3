/* gemm_bf16.c: products of bf16 matrices by instructions that multiply bf16 and add in f32, for
 * tapes and programs that allow other bits (`fast`).
 *
 * Both operands are packed into panels of 16 rows of A, or columns of B, cut into blocks of 32
 * depths, padded with zeros: 1 KiB each. A block holds two depths in each of its 16 x 16 words: by
 * rows of A, by depths of B, which is what tiles of AMX take. A square of 32 x 32 elements of C
 * stays in registers over the whole depth, and is rounded once. So an element is
 *
 *     AMX       c = 0, then for each block c = c + (even + odd), where both are chains over its
 *               even and its odd depths
 *     AVX-512   c = 0, then for each two depths c = a'b' + c, c = ab + c, the odd one first
 *
 * with f32 sums, in which subnormal numbers, of bf16 too, count as zeros. Neither cuts nor strides
 * show in a result. Products that are small, of two vectors, or longer than LONG have the usual
 * bits. */
#include "backend/cpu/gemm/gemm.h"
#include "base/cpu.h"
#include "base/poison.h"

#include <string.h>

enum {
    LEAST = 16 * 16 * 16, /* terms; native code takes fewer, with the usual bits (native/parts) */
    LONG = 1 << 16,       /* terms of an element; more are added up in sections elsewhere */
};

bool cot__gemm_bf16_takes(cot_dtype d, int64_t m, int64_t n, int64_t k) {
    return d == COT_BF16 && k <= LONG && (m > 1 || n > 1) && (double)m * (double)n * (double)k >= LEAST &&
           cot__cpu_bf16() != COT__BF16_NONE;
}

#if COT__HAS_BF16

#include <immintrin.h>

enum {
    SIDE   = 16,               /* of a panel */
    DEEP   = 32,               /* depths of a block */
    BLOCK  = SIDE * DEEP,      /* its elements */
    SQUARE = 2 * SIDE,         /* rows and columns of C at a time */
    NEAR   = 1 << 20,          /* bytes of packed A that stay in the second cache */
    PARTS  = 64,
    LINE   = 64,
};

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))
#define AMX __attribute__((target("amx-tile,amx-bf16")))
#define UNROLL _Pragma("GCC unroll 16")

typedef struct product {
    cot__matrix c;
    /* the rows of A and the columns of B: how many, where, how far apart; and their depths */
    struct side { const uint16_t *data; int64_t count, across, along; uint16_t *panels; } a, b;
    int64_t k, steps;           /* depths, blocks of a panel */
    int64_t strip, across;      /* squares of a strip of rows; squares side by side */
    int64_t items, parts, pack_parts;
    bool    tiles;              /* by AMX */
} product;

static int64_t ratio_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t panels_of(int64_t count) { return ratio_up(count, SIDE); }

/* ---- packing --------------------------------------------------------------------------------- */

/* Columns become rows: pairs of rows, then fours, then quarters of registers change places. */
AVX512 static inline void turn(__m512i v[SIDE]) {
    __m512i t[SIDE];
    UNROLL for (int i = 0; i < SIDE; i += 2) {
        t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < SIDE; i += 4) {
        v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        __m512i a = _mm512_shuffle_i32x4(v[i], v[4 + i], 0x88), b = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], 0x88);
        __m512i c = _mm512_shuffle_i32x4(v[i], v[4 + i], 0xdd), d = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], 0xdd);
        t[i] = _mm512_shuffle_i32x4(a, b, 0x88);
        t[8 + i] = _mm512_shuffle_i32x4(a, b, 0xdd);
        t[4 + i] = _mm512_shuffle_i32x4(c, d, 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(c, d, 0xdd);
    }
    memcpy(v, t, sizeof t);
}

/* Up to 16 rows of up to 32 depths, any strides, with zeros around them. */
static void gather(uint16_t to[BLOCK], const struct side *s, const uint16_t *from, int64_t rows, int64_t depths) {
    memset(to, 0, BLOCK * sizeof *to);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < depths; p++) to[i * DEEP + p] = from[i * s->across + p * s->along];
}

/* The block of panel `first` / 16 at depth p; by_depth: as B has it. */
AVX512 static void pack_block(uint16_t *to, const struct side *s, int64_t k, int64_t first, int64_t p, bool by_depth) {
    const uint16_t *from = s->data + first * s->across + p * s->along;
    int64_t         rows = cot__least(SIDE, s->count - first), depths = cot__least(DEEP, k - p);
    uint16_t        some[BLOCK];
    __m512i         v[SIDE];
    bool            whole = rows == SIDE && depths == DEEP, is_by_depth = whole && s->across == 1 && s->along != 1;
    if (is_by_depth)
        UNROLL for (int q = 0; q < SIDE; q++) {
            __m256i even = _mm256_loadu_si256((const void *)(from + 2 * q * s->along));
            __m256i odd = _mm256_loadu_si256((const void *)(from + (2 * q + 1) * s->along));
            v[q] = _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
        }
    else {
        bool lies = whole && s->along == 1;
        if (!lies) gather(some, s, from, rows, depths);
        UNROLL for (int i = 0; i < SIDE; i++)
            v[i] = _mm512_loadu_si512(lies ? from + i * s->across : some + i * DEEP);
    }
    if (is_by_depth != by_depth) turn(v);
    UNROLL for (int i = 0; i < SIDE; i++) _mm512_storeu_si512(to + i * DEEP, v[i]);
}

static void pack_part(void *ctx, int64_t part) {
    const product *x = ctx;
    int64_t        left = panels_of(x->a.count), panels = left + panels_of(x->b.count);
    for (int64_t i = cot__part_start(panels, x->pack_parts, part); i < cot__part_start(panels, x->pack_parts, part + 1);
         i++) {
        const struct side *s = i < left ? &x->a : &x->b;
        int64_t            panel = i < left ? i : i - left;
        for (int64_t step = 0; step < x->steps; step++)
            pack_block(s->panels + (panel * x->steps + step) * BLOCK, s, x->k, panel * SIDE, step * DEEP, s == &x->b);
    }
}

/* ---- squares of C ---------------------------------------------------------------------------- */

/* c = a b for two panels of each. */
typedef void square_fn(int64_t steps, const uint16_t *const a[2], const uint16_t *const b[2], float *c);

AMX static void square_amx(int64_t steps, const uint16_t *const a[2], const uint16_t *const b[2], float *c) {
    enum { BLOCK_LINE = DEEP * sizeof(uint16_t), C_LINE = SQUARE * sizeof(float) };
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t at = 0; at < steps * BLOCK; at += BLOCK) {
        _tile_loadd(4, a[0] + at, BLOCK_LINE);
        _tile_loadd(6, b[0] + at, BLOCK_LINE);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b[1] + at, BLOCK_LINE);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, a[1] + at, BLOCK_LINE);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, C_LINE);
    _tile_stored(1, c + SIDE, C_LINE);
    _tile_stored(2, c + SIDE * SQUARE, C_LINE);
    _tile_stored(3, c + SIDE * SQUARE + SIDE, C_LINE);
    cot__written(c, SQUARE * SQUARE * sizeof *c);
}

/* Eight rows of it. */
AVX512 static inline void rows_avx512(int64_t steps, const uint16_t *a, const uint16_t *const b[2], float *c) {
    enum { HIGH = 8 };
    __m512 sum[HIGH][2];
    UNROLL for (int r = 0; r < HIGH; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    for (int64_t at = 0; at < steps * BLOCK; at += BLOCK)
        for (int64_t q = 0; q < BLOCK; q += DEEP) {
            __m512i left = _mm512_loadu_si512(b[0] + at + q), right = _mm512_loadu_si512(b[1] + at + q);
            UNROLL for (int r = 0; r < HIGH; r++) {
                int32_t two;
                memcpy(&two, a + at + r * DEEP + q / SIDE, sizeof two);
                __m512i both = _mm512_set1_epi32(two);
                sum[r][0] = _mm512_dpbf16_ps(sum[r][0], (__m512bh)both, (__m512bh)left);
                sum[r][1] = _mm512_dpbf16_ps(sum[r][1], (__m512bh)both, (__m512bh)right);
            }
        }
    UNROLL for (int r = 0; r < HIGH; r++) {
        _mm512_storeu_ps(c + r * SQUARE, sum[r][0]);
        _mm512_storeu_ps(c + r * SQUARE + SIDE, sum[r][1]);
    }
}

AVX512 static void square_avx512(int64_t steps, const uint16_t *const a[2], const uint16_t *const b[2], float *c) {
    for (int i = 0; i < 4; i++) rows_avx512(steps, a[i / 2] + i % 2 * 8 * DEEP, b, c + i * 8 * SQUARE);
}

/* Rounds what lies within C. */
AVX512 static void put_square(const product *x, int64_t i, int64_t j, const float *c) {
    int64_t   rows = cot__least(SQUARE, x->c.rows - i), columns = cot__least(SQUARE, x->c.cols - j);
    uint32_t  there = columns < SQUARE ? (UINT32_C(1) << columns) - 1 : UINT32_MAX;
    uint16_t *to = (uint16_t *)x->c.data + i * x->c.row_stride + j;
    for (int64_t r = 0; r < rows; r++, to += x->c.row_stride, c += SQUARE) {
        __m512bh row = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(c + SIDE), _mm512_loadu_ps(c));
        _mm512_mask_storeu_epi16(to, there, (__m512i)row);
        cot__written(to, (size_t)columns * sizeof *to);
    }
}

/* Panel i of a side, and the one behind it; the last one, if it is alone, twice. */
static void two_panels(const struct side *s, int64_t steps, int64_t i, const uint16_t *two[2]) {
    two[0] = s->panels + i * steps * BLOCK;
    two[1] = two[0] + (i + 1 < panels_of(s->count) ? steps * BLOCK : 0);
}

static void squares(const product *x, int64_t part, square_fn *square) {
    _Alignas(LINE) float c[SQUARE * SQUARE];
    const uint16_t      *a[2], *b[2];
    for (int64_t item = cot__part_start(x->items, x->parts, part); item < cot__part_start(x->items, x->parts, part + 1);
         item++) {
        int64_t first = item / x->across * x->strip, j = item % x->across,
                end = cot__least(first + x->strip, ratio_up(x->c.rows, SQUARE));
        two_panels(&x->b, x->steps, 2 * j, b);
        for (int64_t i = first; i < end; i++) {
            two_panels(&x->a, x->steps, 2 * i, a);
            square(x->steps, a, b, c);
            put_square(x, i * SQUARE, j * SQUARE, c);
        }
    }
}

/* All eight tiles have 16 rows of 64 bytes. (A constant, because gcc 12 takes the instruction to
 * read only the first bytes of it, and would leave out stores to the others.) */
static const struct { uint8_t palette, from, unused[14]; uint16_t bytes[16]; uint8_t rows[16]; } tiles = {
    1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};

/* The registers are given back when a part is done: a thread that holds them is dearer to
 * switch. */
AMX static void squares_amx(const product *x, int64_t part) {
    _tile_loadconfig(&tiles);
    squares(x, part, square_amx);
    _tile_release();
}

static void squares_part(void *ctx, int64_t part) {
    const product *x = ctx;
    if (x->tiles) squares_amx(x, part);
    else squares(x, part, square_avx512);
}

/* ---- the whole ------------------------------------------------------------------------------- */

size_t cot__gemm_bf16_workspace(int64_t m, int64_t n, int64_t k) {
    return (size_t)((panels_of(m) + panels_of(n)) * ratio_up(k, DEEP)) * BLOCK * sizeof(uint16_t) + LINE;
}

void cot__gemm_bf16(cot__matrix a, cot__matrix b, cot__matrix c, void *memory) {
    uint16_t *room = (uint16_t *)(((uintptr_t)memory + LINE - 1) & ~(uintptr_t)(LINE - 1));
    product   x = {.c = c, .k = a.cols, .steps = ratio_up(a.cols, DEEP), .tiles = cot__cpu_bf16() == COT__BF16_AMX,
                   .a = {a.data, a.rows, a.row_stride, a.col_stride, room},
                   .b = {b.data, b.cols, b.col_stride, b.row_stride, NULL}};
    x.b.panels = room + panels_of(c.rows) * x.steps * BLOCK;
    int64_t down = ratio_up(c.rows, SQUARE), most = NEAR / (2 * BLOCK * (int64_t)sizeof *room * x.steps);
    x.across = ratio_up(c.cols, SQUARE);
    x.strip = cot__least(down * x.across / 32, most);
    if (x.strip < 1) x.strip = 1;
    x.items = ratio_up(down, x.strip) * x.across;
    x.parts = cot__parts(x.items, x.strip * x.steps * 64, PARTS);
    int64_t panels = panels_of(c.rows) + panels_of(c.cols);
    x.pack_parts = cot__parts(panels, x.steps * 64, PARTS);
    cot__parallel(x.pack_parts, pack_part, &x);
    cot__parallel(x.parts, squares_part, &x);
}

#else /* nothing is taken */

size_t cot__gemm_bf16_workspace(int64_t m, int64_t n, int64_t k) { return (void)m, (void)n, (void)k, 0; }
void   cot__gemm_bf16(cot__matrix a, cot__matrix b, cot__matrix c, void *memory) {
      (void)a, (void)b, (void)c, (void)memory;
}

#endif
