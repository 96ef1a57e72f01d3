/* gemm_blocks.c: a matrix product cut into tiles.
 *
 * The rows of C are cut into chunks, the depth into chunks of whole depth blocks. For each, A is
 * packed once, in parts; then strips of columns are computed, in parts, each of which packs its
 * strip of B, a depth block at a time, into room of its own: that stays in the second cache while
 * the panels of A pass by it. A B whose rows lie side by side is packed by the first row of tiles
 * as they go, which takes next to no time of its own. Small operands are read where they lie, and
 * so is a large one if the other has a few rows or columns. A deep product with a small C is cut
 * along the depth instead: the depth blocks are products of their own, added up in order. A product
 * of few terms goes tile by tile without any of this. Cuts depend on shapes and strides, those of
 * rows from MANY threads on on their number, too; none shows in a result. */
#include "backend/cpu/gemm/gemm.h"

#include <string.h>

enum {
    ROWS   = 1536,      /* most rows of A that are packed at a time, and */
    PACKED = 4 << 20,   /* most bytes of these rows, which bound the depth */
    /* an operand of at most this many bytes stays in the second cache wherever it lies */
    NEAR   = 128 << 10,
    /* deepest A whose rows are read where they lie: a tile's worth of them fits the first cache */
    SHALLOW = 2 * COT__DEEP,
    PARTS  = 16,        /* least number of parts of a large enough C */
    MANY   = 9,         /* threads for which these are too few to be even */
    PACKING = 12,       /* rows of tiles that take as long as packing their strip of B */
    PANELS = 4,         /* most panels of a strip */
    SLOTS  = COT__MOST_ROOMS, /* most parts at work at a time */
    LINE   = 64,
    PAGE   = 4096,
    LOCAL  = 12 << 10,  /* bytes that are taken from the stack instead of the caller */
};

typedef struct plan {
    bool    a_lies, b_lies; /* the operand is read where it lies */
    bool    keeps;          /* the first row of tiles packs B */
    int64_t m, k, width;    /* of a chunk; of a strip */
    int64_t a_room, b_room; /* bytes: packed A, packed strip */
} plan;

typedef struct job {
    const cot__gemm_kernels *g;
    cot__matrix              a, b, c;
    bool                     add;
    plan                     x;
    int64_t                  i0, m, p0, k;        /* the chunk */
    int64_t                  pack_rows;           /* of A that a part packs */
    /* strips side by side, rows of a part, rooms for B */
    int64_t                  strips, rows, parts;
    char                    *ap, *bp;
    cot__rooms               rooms;
} job;

/* How the parts are run: by one of the pool's, or on the caller's thread. */
static void spread_here(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    for (int64_t part = 0; part < parts; part++) run(ctx, part);
}

static bool is_large(int64_t m, int64_t n, int64_t k) {
    return (double)m * (double)n * (double)k >= 32 * (double)cot__grain;
}
/* Not large, but worth a thread that is awake: some microseconds. */
static bool is_middling(int64_t m, int64_t n, int64_t k) {
    return (double)m * (double)n * (double)k >= 4 * (double)cot__grain;
}
/* The same where threads pack, each in a room of its own: smaller products had better not take so
 * much memory. */
static bool is_shared(bool alone, int64_t m, int64_t n, int64_t k) {
    return !alone && (double)m * (double)n * (double)k >= 24 * (double)cot__grain;
}
static cot__spread *spread_of(bool alone, int64_t m, int64_t n, int64_t k) {
    return !is_shared(alone, m, n, k) ? spread_here : is_large(m, n, k) ? cot__parallel : cot__parallel_small;
}
static int64_t ratio_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t round_up(int64_t n, int64_t to) { return ratio_up(n, to) * to; }
static char   *element(const cot__matrix *m, int size, int64_t i, int64_t j) {
      return (char *)m->data + (i * m->row_stride + j * m->col_stride) * size;
}

/* Of `bytes`, as many rooms as there are parts, or as they hold: one at least. */
static int64_t slots_in(int64_t bytes, int64_t room, int64_t parts) {
    int64_t slots = cot__least(room > 0 ? bytes / room : SLOTS, cot__least(parts, SLOTS));
    return slots < 1 ? 1 : slots;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Within a depth block of k, panels lie one after another; depth blocks follow each other. */
static char *panel(const job *x, int64_t p, int64_t row, int64_t k) {
    return x->ap + (p * round_up(x->m, x->g->rows / 3) + row * k) * x->g->size;
}

/* Rows of the next tile where `left` are left: whole tiles, then one of a third or two thirds of
 * the rows, perhaps padded. */
static int tile_height(const cot__gemm_kernels *g, int64_t left) {
    return left >= g->rows ? g->rows : (int)round_up(left, g->rows / 3);
}

/* Part: some rows of A over the whole chunk's depth. */
static void pack_part(void *ctx, int64_t part) {
    const job *x = ctx;
    int64_t    at = part * x->pack_rows, rows = cot__least(x->pack_rows, x->m - at);
    for (int64_t p = 0; p < x->k; p += COT__DEEP) {
        int64_t k = cot__least(COT__DEEP, x->k - p);
        x->g->pack_a(panel(x, p, at, k), element(&x->a, x->g->size, x->i0 + at, x->p0 + p), x->a.row_stride,
                     x->a.col_stride, rows, k);
    }
}

/* Of an A that is read where it lies, the last rows if they do not fill a tile. */
static void pack_last(const job *x) {
    int64_t i = x->m / x->g->rows * x->g->rows, height = tile_height(x->g, x->m - i);
    for (int64_t p = 0; p < x->k && x->m - i < height; p += COT__DEEP)
        x->g->pack_a(x->ap + p * height * x->g->size, element(&x->a, x->g->size, x->i0 + i, x->p0 + p),
                     x->a.row_stride, x->a.col_stride, x->m - i, cot__least(COT__DEEP, x->k - p));
}

/* One row of tiles, at row i of the chunk, with the strip of n columns from j on, packed in bp.
 * keep: the whole panels are not there yet, and are packed by it. */
static void row_of_tiles(const job *x, int64_t i, int64_t j, int64_t n, int64_t p, int64_t k, char *bp, bool keep) {
    const cot__gemm_kernels *g = x->g;
    int         height = tile_height(g, x->m - i);
    bool        lies = x->x.a_lies && x->m - i >= height, add = x->add || x->p0 + p > 0;
    const char *a = element(&x->a, g->size, x->i0 + i, x->p0 + p);
    if (!lies) a = x->x.a_lies ? x->ap + p * height * g->size : panel(x, p, i, k);
    for (int64_t l = 0; l < n; l += g->cols) {
        bool        here = (keep || x->x.b_lies) && n - l >= g->cols;
        const char *b = here ? element(&x->b, g->size, x->p0 + p, j + l) : bp + l * k * g->size;
        g->tile(height, k, a, lies ? x->a.row_stride : 1, lies ? x->a.col_stride : height, b,
                here ? x->b.row_stride : g->cols, &x->c, x->i0 + i, j + l, add,
                keep && here ? bp + l * k * g->size : NULL);
    }
}

/* Part: a strip of columns, some rows of it, over the chunk's depth. */
static void strip_part(void *ctx, int64_t part) {
    job    *x = ctx;
    int64_t i0 = part / x->strips * x->rows, j = part % x->strips * x->x.width, end = cot__least(x->m, i0 + x->rows),
            n    = cot__least(x->x.width, x->c.cols - j);
    int64_t whole = n / x->g->cols * x->g->cols, slot = 0, skip = 0;
    bool    keeps = x->x.keeps && end - i0 >= x->g->rows, packs = !x->x.b_lies || whole < n;
    if (packs) slot = cot__room_take(&x->rooms, part, x->parts);
    if (keeps || x->x.b_lies) skip = whole;
    char *bp = x->bp + slot * x->x.b_room;
    for (int64_t p = 0; p < x->k; p += COT__DEEP) {
        int64_t k = cot__least(COT__DEEP, x->k - p);
        if (skip < n)
            x->g->pack_b(bp + skip * k * x->g->size, element(&x->b, x->g->size, x->p0 + p, j + skip), x->b.col_stride,
                         x->b.row_stride, n - skip, k);
        for (int64_t i = i0; i < end; i += x->g->rows) row_of_tiles(x, i, j, n, p, k, bp, keeps && i == i0);
    }
    if (packs) cot__room_give(&x->rooms, slot);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Panels of a strip; lies: B is read where it lies. */
static int64_t strip_panels(int64_t panels, bool lies) {
    int64_t wide = panels / PARTS;
    return lies && panels <= PANELS ? panels : wide > PANELS ? PANELS : wide < 1 ? 1 : wide;
}

/* Groups of rows that strips are cut into: each packs its strip again, so not for a few rows,
 * unless nothing is packed. */
static int64_t row_groups(const cot__gemm_kernels *g, int64_t m, int64_t strips, bool lies) {
    int64_t groups = cot__least(m / ((lies ? 2 : 8) * g->rows), ratio_up(lies ? SLOTS : PARTS, strips));
    return groups < 1 ? 1 : groups;
}

/* The same for many threads: as many as let all be done first. Threads do not take equally long, as
 * a processor does other things, too: the last one is waited for half a part more. */
static int64_t even_row_groups(const cot__gemm_kernels *g, int64_t m, int64_t strips, bool lies, int64_t threads) {
    int64_t best = row_groups(g, m, strips, lies), least = INT64_MAX;
    if (threads < MANY) return best;
    for (int64_t n = 1; n == 1 || (n <= m / (2 * g->rows) && n * strips <= 4 * threads); n++) {
        int64_t rows = round_up(ratio_up(m, n), g->rows), parts = ratio_up(m, rows) * strips;
        int64_t time = (2 * ratio_up(parts, threads) + 1) * (rows + (lies ? 0 : PACKING));
        if (time < least) best = n, least = time;
    }
    return best;
}

/* Would its rows fall on the same lines of the cache? */
static bool is_aliased(const cot__gemm_kernels *g, const cot__matrix *a, int64_t rows) {
    return a->row_stride * g->size % PAGE == 0 && rows > 8;
}

/* A is read where it lies if it is small, or if its rows lie side by side and are short: then a row
 * of tiles reads as many lines as it would of a packed panel; or if it is read once; or if its
 * columns lie side by side, so near to each other that the processor fetches them ahead, and all
 * of it stays near. */
static bool reads_a(const cot__gemm_kernels *g, const cot__matrix *a, int64_t rows, int64_t panels, int64_t depth,
                    bool alone) {
    bool aliased = is_aliased(g, a, rows);
    bool small = alone && panels <= PANELS && (double)rows * (double)depth * g->size <= NEAR;
    bool beside = a->row_stride == 1 && a->col_stride > 1 && a->col_stride * g->size < PAGE;
    if (beside && (double)rows * (double)depth * g->size <= PACKED / 2) return true;
    return !aliased && (small || (a->col_stride == 1 && (depth <= SHALLOW || panels == 1)));
}

static plan plan_of(const cot__gemm_kernels *g, const cot__matrix *a, const cot__matrix *b, int64_t rows, int64_t cols,
                    int64_t depth, bool alone) {
    int64_t panels = ratio_up(cols, g->cols), deep = cot__least(depth, COT__DEEP);
    plan    x = {.m = rows < ROWS ? rows : g->rows * (ROWS / g->rows), .k = depth};
    x.a_lies = reads_a(g, a, rows, panels, depth, alone);
    x.b_lies = b->col_stride == 1 && (rows <= g->rows || (double)cols * (double)depth * g->size <= NEAR);
    /* beyond the last cache a strip had better be read along its rows */
    x.keeps = g->keeps && b->col_stride == 1 && !x.b_lies && (double)cols * (double)depth * g->size <= PACKED;
    x.width = strip_panels(panels, x.b_lies) * g->cols;
    int64_t high = round_up(x.m + 1, g->rows / 3), blocks = PACKED / g->size / (high * COT__DEEP);
    if (!x.a_lies && blocks * COT__DEEP < depth) x.k = cot__least(depth, (blocks < 1 ? 1 : blocks) * COT__DEEP);
    x.a_room = round_up((x.a_lies ? tile_height(g, rows % g->rows) : high) * x.k * g->size, LINE);
    x.b_room = round_up(x.width * deep * g->size, LINE);
    return x;
}

static void by_tiles(const cot__gemm_kernels *g, void *memory, const plan *x, cot__matrix a, cot__matrix b,
                     cot__matrix c, bool add, int64_t slots, cot__spread *run) {
    job w    = {.g     = g,
                .a     = a,
                .b     = b,
                .c     = c,
                .add   = add,
                .x     = *x,
                .ap    = (char *)(((uintptr_t)memory + LINE - 1) & ~(uintptr_t)(LINE - 1))};
    w.bp = w.ap + x->a_room;
    cot__rooms_open(&w.rooms, slots);
    w.strips = ratio_up(c.cols, x->width);
    for (w.p0 = 0; w.p0 < a.cols; w.p0 += x->k)
        for (w.i0 = 0; w.i0 < c.rows; w.i0 += x->m) {
            w.k = cot__least(x->k, a.cols - w.p0);
            w.m = cot__least(x->m, c.rows - w.i0);
            w.pack_rows = round_up(ratio_up(w.m, PARTS), g->rows);
            if (x->a_lies) pack_last(&w);
            else run(ratio_up(w.m, w.pack_rows), pack_part, &w);
            int64_t threads = run == spread_here ? 1 : cot_threads();
            bool    lies = x->b_lies && c.cols == g->cols;
            w.rows = round_up(ratio_up(w.m, even_row_groups(g, w.m, w.strips, lies, threads)), g->rows);
            w.parts = ratio_up(w.m, w.rows) * w.strips;
            run(w.parts, strip_part, &w);
        }
}

/* ---- along the depth ------------------------------------------------------------------------- */

typedef struct deep_job {
    const cot__gemm_kernels *g;
    cot__matrix              a, b;
    int64_t                  m, n, blocks, parts;
    char                    *sums, *memory;
    size_t                   room; /* bytes of each of the rooms in this memory */
    cot__rooms               rooms;
} deep_job;

static void deep_part(void *ctx, int64_t part) {
    deep_job *x = ctx;
    int       size = x->g->size;
    int64_t   slot = cot__room_take(&x->rooms, part, x->parts);
    for (int64_t l = cot__part_start(x->blocks, x->parts, part); l < cot__part_start(x->blocks, x->parts, part + 1);
         l++) {
        int64_t     p = l * COT__DEEP, k = cot__least(COT__DEEP, x->a.cols - p);
        cot__matrix c = {x->sums + l * x->m * x->n * size, x->m, x->n, x->n, 1};
        cot__lent room = {x->room ? x->memory + (size_t)slot * x->room : NULL, x->room};
        cot__gemm_blocks(x->g, room, true, cot__part_of(x->a, size, 0, p, x->m, k),
                         cot__part_of(x->b, size, p, 0, k, x->n), c, false);
    }
    cot__room_give(&x->rooms, slot);
}

/* Few rows and columns for the threads; where these are no more than a narrow panel, few depths are
 * enough. */
static bool is_deep(const cot__gemm_kernels *g, int64_t m, int64_t n, int64_t k) {
    bool narrow = g->narrow && cot__least(m, n) <= g->narrow->cols;
    bool deep = narrow ? k >= 4 * COT__DEEP : k >= 8 * COT__DEEP && is_large(m, n, k);
    return deep && m <= 8 * g->rows && n <= PANELS * g->cols;
}

static deep_job deep_of(const cot__gemm_kernels *g, int64_t m, int64_t n, int64_t k) {
    deep_job x = {.g = g, .m = m, .n = n, .blocks = ratio_up(k, COT__DEEP)};
    x.parts = cot__parts(x.blocks, m * n * COT__DEEP / 8, 2 * PARTS);
    x.room = cot__gemm_blocks_workspace(g, true, m, n, COT__DEEP);
    return x;
}

/* False: there is no room for it. */
static bool by_depth(const cot__gemm_kernels *g, cot__lent room, cot__matrix a, cot__matrix b, cot__matrix c,
                     bool add) {
    deep_job x = deep_of(g, c.rows, c.cols, a.cols);
    int64_t  one = c.rows * c.cols * g->size;
    size_t   sums = (size_t)(one * x.blocks);
    if (room.bytes < sums + x.room) return false;
    x.a = a, x.b = b;
    cot__rooms_open(&x.rooms, slots_in((int64_t)(room.bytes - sums), (int64_t)x.room, x.parts));
    x.sums = room.memory;
    x.memory = x.sums + sums;
    spread_of(false, c.rows, c.cols, a.cols)(x.parts, deep_part, &x);
    for (int64_t l = 0; l < x.blocks; l++)
        for (int64_t i = 0; i < c.rows; i++)
            g->put(element(&c, g->size, i, 0), c.col_stride, x.sums + l * one + i * c.cols * g->size, c.cols,
                   add || l > 0);
    return true;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Of packed A: a chunk, or the last tile of all its depth. It grows with either extent, which
 * chunks themselves do not. */
static int64_t a_most(const cot__gemm_kernels *g, int64_t rows, int64_t depth) {
    int64_t high = cot__least(rows, ROWS) + g->rows, most = PACKED / g->size;
    if (most < high * COT__DEEP) most = high * COT__DEEP;
    if (most < g->rows * depth) most = g->rows * depth;
    return round_up((depth < most ? cot__least(high * depth, most) : most) * g->size, LINE);
}

/* Of B, by all parts that are at work, each of which has packed a strip. */
static int64_t panels_at_work(const cot__gemm_kernels *g, int64_t rows, int64_t panels, int64_t wide) {
    int64_t strips = ratio_up(panels, wide), parts = strips * row_groups(g, cot__least(rows, ROWS), strips, false);
    return cot__least(parts, cot__least(SLOTS, strips < PARTS ? PARTS : strips)) * wide;
}

size_t cot__gemm_blocks_workspace(const cot__gemm_kernels *g, bool alone, int64_t rows, int64_t cols, int64_t depth) {
    bool    shared = is_shared(alone, rows, cols, depth);
    int64_t panels = ratio_up(cols, g->cols), b = cot__least(panels, PANELS);
    int64_t panel = round_up(g->cols * cot__least(depth, COT__DEEP) * g->size, LINE);
    size_t  bytes = (size_t)(a_most(g, rows, depth) + b * panel + LINE);
    if (!shared) return bytes <= LOCAL ? 0 : bytes;
    int64_t all = panels_at_work(g, rows, panels, strip_panels(panels, true));
    if (all > b) bytes += (size_t)((all - b) * panel);
    if (!is_deep(g, rows, cols, depth)) return bytes;
    deep_job x = deep_of(g, rows, cols, depth);
    size_t   deep = (size_t)(rows * cols * g->size * x.blocks) + x.room * (size_t)cot__least(x.parts, SLOTS);
    return deep > bytes ? deep : bytes;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* A product with no more columns than a narrow tile has, of an A that is read where it lies:
 * nothing large is packed. False: it is none, or there is no room for it. */
static bool by_narrow_tiles(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                            cot__matrix c, bool add) {
    char    local[LOCAL], *memory = room.memory ? room.memory : local;
    int64_t bytes = room.memory ? (int64_t)room.bytes : LOCAL;
    if (!g || c.cols > g->cols || c.rows <= c.cols) return false;
    cot__spread *run = spread_of(alone, c.rows, c.cols, a.cols);
    plan         x = plan_of(g, &a, &b, c.rows, c.cols, a.cols, run != cot__parallel);
    if (!x.a_lies || x.a_room + x.b_room + LINE > bytes) return false;
    by_tiles(g, memory, &x, a, b, c, add, slots_in(bytes - x.a_room - LINE, x.b_room, SLOTS), run);
    return true;
}

static void by_blocks(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                      cot__matrix c, bool add) {
    char    local[LOCAL], *memory = room.memory ? room.memory : local;
    cot__spread *run = spread_of(alone, c.rows, c.cols, a.cols);
    if (run != spread_here && is_deep(g, c.rows, c.cols, a.cols) && by_depth(g, room, a, b, c, add)) return;
    if (by_narrow_tiles(g->narrow, room, alone, a, b, c, add)) return;
    plan    x = plan_of(g, &a, &b, c.rows, c.cols, a.cols, run != cot__parallel);
    int64_t slots = room.memory ? slots_in((int64_t)room.bytes - x.a_room - LINE, x.b_room, SLOTS) : 1;
    if (run != cot__parallel && x.a_lies && x.b_lies) {
        /* strips as narrow as they come, none of which has anything to pack but the last */
        if (!alone && is_middling(c.rows, c.cols, a.cols)) run = cot__parallel_small, x.width = g->cols;
    } else if (slots == 1 && run == cot__parallel_small) run = spread_here; /* all pack there */
    by_tiles(g, memory, &x, a, b, c, add, slots, run);
}

/* Whole tiles of operands that are read where they lie: nothing is packed, and nothing turned. */
static bool lies_ready(const cot__gemm_kernels *g, bool alone, const cot__matrix *a, const cot__matrix *b,
                       const cot__matrix *c) {
    if (c->col_stride != 1 || c->cols % g->cols) return false;
    plan x = plan_of(g, a, b, c->rows, c->cols, a->cols, alone || !is_large(c->rows, c->cols, a->cols));
    return x.a_lies && x.b_lies;
}

/* A product of so few terms that a plan would take as long as they do: tile by tile, panel after
 * panel of B, without room. Packed are the last rows, if they fill no tile, and a panel of B that
 * is not whole or does not lie along its rows. False: it is none. */
static bool by_few_tiles(const cot__gemm_kernels *g, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    enum { SHORT = 1 << 12, CHAINS = 8 /* that hide the latency of one */ };
    const int64_t m = c.rows, n = c.cols, k = a.cols, rows = g->rows, unit = rows / 3;
    _Alignas(LINE) char ap[LOCAL / 2], bp[LOCAL];
    if ((m | n | k) >= SHORT || m * n * k >= 4 * cot__grain || g->cols * k * g->size > LOCAL ||
        rows * k * g->size > LOCAL / 2 || is_aliased(g, &a, m))
        return false;
    /* a third of a tile is as fast as more of it, if it has enough chains */
    const uint32_t step = (uint32_t)(2 * unit >= CHAINS ? unit : rows), rest = (uint32_t)m % step;
    const int64_t  end = rest % (uint32_t)unit ? m - rest : m;
    if (end < m) g->pack_a(ap, element(&a, g->size, end, 0), a.row_stride, a.col_stride, m - end, k);
    for (int64_t j = 0; j < n; j += g->cols) {
        if (g->narrow && n - j <= g->narrow->cols) g = g->narrow;
        const bool  lies = b.col_stride == 1 && n - j >= g->cols;
        const char *panel = lies ? element(&b, g->size, 0, j) : bp;
        if (!lies) g->pack_b(bp, element(&b, g->size, 0, j), b.col_stride, b.row_stride, cot__least(g->cols, n - j), k);
        for (int64_t i = 0, high; i < m; i += high) {
            const bool here = i < end;
            high = tile_height(g, (here ? end : m) - i);
            g->tile((int)high, k, here ? element(&a, g->size, i, 0) : ap, here ? a.row_stride : 1,
                    here ? a.col_stride : high, panel, lies ? b.row_stride : g->cols, &c, i, j, add, NULL);
        }
    }
    return true;
}

/* Is the product better turned? Its few rows fill a narrow panel, and its columns fill none. */
static bool turns(const cot__gemm_kernels *g, const cot__matrix *c) {
    if (c->col_stride != 1) return c->row_stride == 1;
    return g->narrow && c->rows < c->cols && c->rows <= g->narrow->cols &&
           (uint32_t)c->cols % (uint32_t)g->narrow->cols != 0;
}

/* The same of a product with few columns, of an a whose rows lie side by side, too far from each
 * other for a narrow tile: turned, its rows are read where they lie, and fill whole panels. The
 * room is that of the product as it stands, so whether the turned one fits into it is asked
 * (does_fit). */
static bool is_better_turned(const cot__gemm_kernels *g, const cot__matrix *a, const cot__matrix *c) {
    return c->cols <= g->rows && c->rows >= PANELS * g->cols && a->row_stride == 1 && a->col_stride * g->size >= PAGE;
}

/* Is the room enough for one strip at a time? */
static bool does_fit(const cot__gemm_kernels *g, cot__lent room, bool alone, const cot__matrix *a,
                     const cot__matrix *b, const cot__matrix *c) {
    bool alone_too = spread_of(alone, c->rows, c->cols, a->cols) != cot__parallel;
    plan x = plan_of(g, a, b, c->rows, c->cols, a->cols, alone_too);
    return x.a_room + x.b_room + LINE <= (room.memory ? (int64_t)room.bytes : LOCAL);
}

void cot__gemm_blocks(const cot__gemm_kernels *g, cot__lent room, bool alone, cot__matrix a, cot__matrix b,
                      cot__matrix c, bool add) {
    /* the product of transposes is the transposed product, bit for bit: a*b commutes */
    cot__matrix at = cot__turned(a), bt = cot__turned(b), ct = cot__turned(c);
    if (turns(g, &c) ? by_few_tiles(g, bt, at, ct, add) : by_few_tiles(g, a, b, c, add)) return;
    if (!lies_ready(g, alone, &a, &b, &c) && by_narrow_tiles(g->narrow, room, alone, bt, at, ct, add)) return;
    bool better = is_better_turned(g, &a, &c) && does_fit(g, room, alone, &bt, &at, &ct);
    if (better || (c.col_stride != 1 && c.row_stride == 1)) by_blocks(g, room, alone, bt, at, ct, add);
    else by_blocks(g, room, alone, a, b, c, add);
}
