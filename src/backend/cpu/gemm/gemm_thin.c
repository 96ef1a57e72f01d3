/* gemm_thin.c: products of a vector with a matrix.
 *
 * c = x b with x a row: a matrix is multiplied with a column as the transposed product. b is read
 * once, as its elements lie: of a b beyond the caches whose columns are runs of memory, a few
 * columns from end to end at a time. The work is cut along the columns, or, where there are few,
 * along the depth: sums of depth blocks are kept and added up in order. */
#include "backend/cpu/gemm/gemm.h"

/* parts have a multiple of this many columns: the chains that the kernels keep side by side */
enum {
    UNIT   = 16,
    FEW    = 64,      /* bytes of a row of the columns that are read from end to end at a time */
    CACHED = 4 << 20, /* bytes of a matrix that a cache holds */
};

typedef struct thin {
    const cot__gemm_kernels *g;
    const char              *x, *b;
    char                    *c, *sums; /* sums[block][column] */
    int64_t                  n, k, xs, rs, cs, to; /* strides of x, b and c */
    bool                     add, far; /* far: b is beyond the caches */
    int64_t                  blocks, parts;
} thin;

/* t = the sums over one depth block, n columns from j on. */
static void sums_of(const thin *w, int64_t p, int64_t j, int64_t n, char *t) {
    const cot__gemm_kernels *g = w->g;
    int64_t     k = cot__least(COT__DEEP, w->k - p);
    const char *x = w->x + p * w->xs * g->size, *b = w->b + (p * w->rs + j * w->cs) * g->size;
    if (w->cs == 1) g->along_rows(k, x, w->xs, b, w->rs, n, t);
    else g->dots(k, x, w->xs, b, w->rs, w->cs, n, t, w->far);
}

static void some_columns(const thin *w, int64_t start, int64_t stop) {
    double  t[COT__SPAN / sizeof(double)];
    int64_t span = (w->far && w->rs == 1 && w->cs != 1 ? FEW : COT__SPAN) / w->g->size;
    for (int64_t j = start; j < stop; j += span)
        for (int64_t p = 0; p < w->k; p += COT__DEEP) {
            int64_t n = cot__least(span, stop - j);
            sums_of(w, p, j, n, (char *)t);
            w->g->put(w->c + j * w->to * w->g->size, w->to, t, n, w->add || p > 0);
        }
}

static void column_part(void *ctx, int64_t part) {
    const thin *w = ctx;
    int64_t     units = (w->n + UNIT - 1) / UNIT;
    some_columns(w, UNIT * cot__part_start(units, w->parts, part),
                 cot__least(w->n, UNIT * cot__part_start(units, w->parts, part + 1)));
}

static void depth_part(void *ctx, int64_t part) {
    const thin *w = ctx;
    for (int64_t l = cot__part_start(w->blocks, w->parts, part), end = cot__part_start(w->blocks, w->parts, part + 1);
         l < end; l++)
        sums_of(w, l * COT__DEEP, 0, w->n, w->sums + l * w->n * w->g->size);
}

static thin thin_of(const cot__gemm_kernels *g, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    if (c.rows > 1) {
        cot__matrix at = cot__turned(a);
        a = cot__turned(b), b = at, c = cot__turned(c);
    }
    return (thin){.g      = g,
                  .x      = a.data,
                  .b      = b.data,
                  .c      = c.data,
                  .n      = c.cols,
                  .k      = a.cols,
                  .xs     = a.col_stride,
                  .rs     = b.row_stride,
                  .cs     = b.col_stride,
                  .to     = c.col_stride,
                  .add    = add,
                  .far    = (double)c.cols * (double)a.cols * g->size > CACHED,
                  .blocks = (a.cols + COT__DEEP - 1) / COT__DEEP,
                  .parts  = 1};
}

enum { MOST_PARTS = 32 };
static int64_t parts_of_depth(int64_t blocks, int64_t n) {
    return cot__parts(blocks, cot__size_mul(COT__DEEP / 2, n), MOST_PARTS);
}

size_t cot__gemm_thin_workspace(const cot__gemm_kernels *g, int64_t n, int64_t depth) {
    int64_t blocks = (depth + COT__DEEP - 1) / COT__DEEP;
    return parts_of_depth(blocks, n) > 1 ? (size_t)(blocks * n * g->size) : 0;
}

void cot__gemm_thin(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                    cot__matrix c, bool add) {
    /* bytes: memory wants to be read in long runs, a cache does not mind */
    enum { LONG_RUN = 4096, SHORT_RUN = 512 };
    thin    w = thin_of(g, a, b, c, add);
    int64_t columns = cot__parts_awake(w.n, w.k / 2, MOST_PARTS), blocks = parts_of_depth(w.blocks, w.n);
    int64_t run = w.far ? LONG_RUN : SHORT_RUN;
    columns = cot__least(columns, w.cs == 1 ? w.n * g->size / run : w.n / UNIT);
    if (!alone && blocks > 1 && columns < 4 && (size_t)(w.blocks * w.n * g->size) <= room.bytes) {
        w.sums = room.memory;
        w.parts = blocks;
        cot__parallel(blocks, depth_part, &w);
        for (int64_t l = 0; l < w.blocks; l++) g->put(w.c, w.to, w.sums + l * w.n * g->size, w.n, add || l > 0);
    } else if (!alone && columns > 1) {
        w.parts = columns;
        cot__spread_of(cot__size_mul(w.n, w.k / 2))(columns, column_part, &w);
    } else some_columns(&w, 0, w.n);
}

/* Row by row, of one depth block; straight into c where its rows take what the kernel makes.
 * Columns of b that do not lie side by side are laid so where several rows of a read them, or the
 * product is turned. */
void cot__gemm_tiny(const cot__gemm_kernels *g, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    enum { SEVERAL = 4 };
    double beside[COT__TINY / SEVERAL];
    if (b.col_stride != 1 && b.row_stride == 1 && c.rows >= SEVERAL) {
        for (int64_t j = 0; j < b.cols; j++)
            g->put((char *)beside + j * g->size, b.cols, (char *)b.data + j * b.col_stride * g->size, b.rows, false);
        b = (cot__matrix){beside, b.rows, b.cols, b.cols, 1};
    } else if (b.col_stride != 1 && a.row_stride == 1) {
        cot__matrix at = cot__turned(a);
        a = cot__turned(b), b = at, c = cot__turned(c);
    }
    bool straight = b.col_stride == 1 && c.col_stride == 1 && !add;
    for (int64_t i = 0; i < c.rows && straight; i++)
        g->along_rows(a.cols, (char *)a.data + i * a.row_stride * g->size, a.col_stride, b.data, b.row_stride, c.cols,
                      (char *)c.data + i * c.row_stride * g->size);
    for (int64_t i = 0; i < c.rows && !straight; i++) {
        thin w =
            thin_of(g, cot__part_of(a, g->size, i, 0, 1, a.cols), b, cot__part_of(c, g->size, i, 0, 1, c.cols), add);
        some_columns(&w, 0, w.n);
    }
}
