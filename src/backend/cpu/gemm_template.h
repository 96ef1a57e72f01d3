/* gemm_template.h: the matrix product for one float type and one instruction set; included by gemm.c for each pair.
 *
 * T is the type, N(name) decorates names, TARGET is the function attribute, V a vector of T, MR x (NV vectors) the tile held
 * in registers, FMADD(a, b, c) and FMADD1 the multiply-add on vectors and scalars: both fused or both not.
 *
 * The chain of an element c, in every function here: for each depth block of KC, t = 0, t = a*b + t over the block in order; the first
 * block gives c = t (or c + t when accumulating), each later one c = c + t. */

enum { N(VL) = sizeof(V) / sizeof(T), N(NR) = NV * N(VL), N(MC) = MR * (192 / MR), N(JC) = N(NR) * (128 / N(NR)) };
#define N_MC_OF(left) ((left) ? N(MC) : N(JC))

/* MR x NR tile over one depth block: a holds MR values, b NR values per step. */
static inline __attribute__((always_inline)) TARGET void N(tile)(int64_t k, const T *restrict a, const T *restrict b,
                                                                 V acc[MR][NV]) {
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = (V){0};
    for (int64_t p = 0; p < k; p++) {
        V bv[NV];
        UNROLL for (int j = 0; j < NV; j++) memcpy(&bv[j], b + p * N(NR) + j * N(VL), sizeof(V));
        UNROLL for (int i = 0; i < MR; i++) {
            V av = a[p * MR + i] - (V){0};
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = FMADD(av, bv[j], acc[i][j]);
        }
    }
}

/* A tile all of whose columns lie inside c, whose rows are contiguous; only the first `rows` rows are stored. */
static TARGET void N(tile_inside)(int64_t k, const T *a, const T *b, T *c, int64_t row_stride, bool add, int64_t rows) {
    V acc[MR][NV];
    N(tile)(k, a, b, acc);
    UNROLL for (int i = 0; i < MR; i++) {
        if (i >= rows) break;
        UNROLL for (int j = 0; j < NV; j++) {
            T *p = c + i * row_stride + j * N(VL);
            V  t = acc[i][j];
            if (add) {
                V old;
                memcpy(&old, p, sizeof(V));
                t = old + t;
            }
            memcpy(p, &t, sizeof(V));
        }
    }
}

/* A tile at an edge, or into a c of any strides: computed whole, stored in part. */
static TARGET void N(tile_edge)(int64_t k, const T *a, const T *b, const cot__matrix *c, int64_t i0, int64_t j0, bool add) {
    V acc[MR][NV];
    T out[MR][N(NR)];
    N(tile)(k, a, b, acc);
    memcpy(out, acc, sizeof(out));
    for (int64_t i = 0; i < MR && i0 + i < c->rows; i++)
        for (int64_t j = 0; j < N(NR) && j0 + j < c->cols; j++) {
            T *p = (T *)c->data + (i0 + i) * c->row_stride + (j0 + j) * c->col_stride;
            *p   = add ? *p + out[i][j] : out[i][j];
        }
}

/* Copies rows [i0, i0 + m) and depths [p0, p0 + k) into panels of `width` rows, depth outermost, the last one padded with zeros.
 * B is packed through its transpose. Where the depths of a row lie side by side, squares of them are turned in registers. */
static void N(pack)(T *restrict to, const T *from, int64_t rs, int64_t ps, int64_t m, int64_t k, int width) {
    enum { SQUARE = 16 / sizeof(T) };
    for (int64_t i0 = 0; i0 < m; i0 += width, to += width * k) {
        int      w = m - i0 < width ? (int)(m - i0) : width, whole = ps == 1 && TURNS ? w - w % SQUARE : 0;
        const T *f = from + i0 * rs;
        if (rs == 1 && w == width) {
            for (int64_t p = 0; p < k; p++) memcpy(to + p * width, f + p * ps, (size_t)width * sizeof(T));
            continue;
        }
        for (int64_t p0 = 0; p0 < k; p0 += 16) { /* a few depths at a time, so that the lines written stay near */
            int64_t end = k - p0 < 16 ? k : p0 + 16, turned = whole ? p0 + (end - p0) / SQUARE * SQUARE : p0;
            for (int i = 0; i < whole; i += SQUARE)
                for (int64_t p = p0; p < turned; p += SQUARE) N(turn)(to + p * width + i, width, f + i * rs + p, rs);
            for (int i = 0; i < width; i++)
                for (int64_t p = i < whole ? turned : p0; p < end; p++) to[p * width + i] = i < w ? f[i * rs + p * ps] : 0;
        }
    }
}

/* All tiles of a packed block of A (m rows from i0) with a packed block of B (n columns from j0). */
static void N(block)(int64_t k, const T *a, const T *b, const cot__matrix *c, int64_t i0, int64_t m, int64_t j0, int64_t n,
                     bool add) {
    for (int64_t j = 0; j < n; j += N(NR))
        for (int64_t i = 0; i < m; i += MR) {
            const T *ap = a + i * k, *bp = b + j * k;
            if (c->col_stride == 1 && j + N(NR) <= n)
                N(tile_inside)(k, ap, bp, (T *)c->data + (i0 + i) * c->row_stride + j0 + j, c->row_stride, add, m - i);
            else N(tile_edge)(k, ap, bp, c, i0 + i, j0 + j, add);
        }
}

/* ---- packed products --------------------------------------------------------------------------------------------
 * C is cut into chunks of at most ROWS x COLUMNS, the depth into chunks of whole KC blocks that fit the room. For each, A and B are packed, in
 * parts, and then blocks of C computed, in parts: every thread finds all of A and B packed once. */

typedef struct N(job) {
    cot__matrix a, b, c;
    bool        add;
    int64_t     i0, m, j0, n, p0, k; /* the chunk */
    int64_t     a_parts, width, blocks_across; /* how packing is shared out; columns of a block of C, blocks side by side */
    T          *ap, *bp;
} N(job);

static inline int64_t N(round)(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
/* Within a depth block of k, panels lie one after another; depth blocks follow each other. */
static inline T *N(panel)(T *base, int64_t room, int64_t p, int64_t row, int64_t k) { return base + p * room + row * k; }

/* Part: MC rows of A, or as many columns of B, over the whole chunk's depth. */
static TARGET void N(pack_part)(void *ctx, int64_t part) {
    const N(job) *g = ctx;
    bool          left = part < g->a_parts;
    int64_t       at = (left ? part : part - g->a_parts) * N_MC_OF(left), most = N_MC_OF(left), all = left ? g->m : g->n;
    int64_t       rows = all - at < most ? all - at : most, room = N(round)(all, left ? MR : N(NR));
    for (int64_t p = 0; p < g->k; p += KC) {
        int64_t k = g->k - p < KC ? g->k - p : KC;
        if (left)
            N(pack)(N(panel)(g->ap, room, p, at, k), (const T *)g->a.data + (g->i0 + at) * g->a.row_stride + (g->p0 + p) * g->a.col_stride,
                    g->a.row_stride, g->a.col_stride, rows, k, MR);
        else
            N(pack)(N(panel)(g->bp, room, p, at, k), (const T *)g->b.data + (g->p0 + p) * g->b.row_stride + (g->j0 + at) * g->b.col_stride,
                    g->b.col_stride, g->b.row_stride, rows, k, N(NR));
    }
}

/* Part: a block of C, MC rows by `width` columns, over the chunk's depth. */
static TARGET void N(block_part)(void *ctx, int64_t part) {
    const N(job) *g = ctx;
    int64_t       i = part / g->blocks_across * N(MC), j = part % g->blocks_across * g->width;
    int64_t       m = g->m - i < N(MC) ? g->m - i : N(MC), n = g->n - j < g->width ? g->n - j : g->width;
    int64_t       m_room = N(round)(g->m, MR), n_room = N(round)(g->n, N(NR));
    for (int64_t p = 0; p < g->k; p += KC) {
        int64_t k = g->k - p < KC ? g->k - p : KC;
        N(block)(k, N(panel)(g->ap, m_room, p, i, k), N(panel)(g->bp, n_room, p, j, k), &g->c, g->i0 + i, m, g->j0 + j, n,
                 g->add || g->p0 + p > 0);
    }
}

/* Elements that are packed at a time. */
static void N(room)(int64_t rows, int64_t cols, int64_t depth, int64_t *m, int64_t *n, int64_t *k) {
    *m = rows < ROWS ? rows : N(MC) * (ROWS / N(MC));
    *n = cols < COLUMNS ? cols : COLUMNS;
    int64_t width = N(round)(*m, MR) + N(round)(*n, N(NR)), blocks = PACKED / (int64_t)sizeof(T) / (width + 1) / KC; /* 0 x 0 has none */
    *k = blocks < 1 ? KC : blocks * KC;
    if (*k > depth) *k = depth;
}

static size_t N(scratch)(int64_t rows, int64_t cols, int64_t depth) {
    int64_t m, n, k;
    N(room)(rows, cols, depth, &m, &n, &k);
    return (size_t)((N(round)(m, MR) + N(round)(n, N(NR))) * k) * sizeof(T) + 64;
}

static void N(packed)(void *memory, const cot__matrix *a, const cot__matrix *b, const cot__matrix *c, bool add, cot__spread spread) {
    int64_t m, n, k;
    N(room)(c->rows, c->cols, a->cols, &m, &n, &k);
    N(job) g = {.a = *a, .b = *b, .c = *c, .add = add, .ap = (T *)(void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63)};
    g.bp = g.ap + N(round)(m, MR) * k;
    for (g.j0 = 0; g.j0 < c->cols; g.j0 += n)
        for (g.p0 = 0; g.p0 < a->cols; g.p0 += k)
            for (g.i0 = 0; g.i0 < c->rows; g.i0 += m) {
                g.n = c->cols - g.j0 < n ? c->cols - g.j0 : n;
                g.k = a->cols - g.p0 < k ? a->cols - g.p0 : k;
                g.m = c->rows - g.i0 < m ? c->rows - g.i0 : m;
                g.a_parts = (g.m + N_MC_OF(true) - 1) / N_MC_OF(true);
                int64_t b_parts = g.i0 == 0 ? (g.n + N_MC_OF(false) - 1) / N_MC_OF(false) : 0; /* later rows find B packed */
                spread(g.a_parts + b_parts, N(pack_part), &g);
                int64_t down = (g.m + N(MC) - 1) / N(MC), across = (PARTS + down - 1) / down;
                g.width = N(round)((g.n + across - 1) / across, N(NR));
                g.blocks_across = (g.n + g.width - 1) / g.width;
                spread(down * g.blocks_across, N(block_part), &g);
            }
}

/* Without packing, b's rows contiguous: a row of c is a sum of rows of b, SPAN columns at a time. */
static TARGET void N(by_rows)(const cot__matrix *a, const cot__matrix *b, const cot__matrix *c, bool add) {
    T t[SPAN];
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j0 = 0; j0 < c->cols; j0 += SPAN)
            for (int64_t p0 = 0; p0 < a->cols; p0 += KC) {
                int64_t n = c->cols - j0 < SPAN ? c->cols - j0 : SPAN, end = a->cols - p0 < KC ? a->cols : p0 + KC;
                T      *to = (T *)c->data + i * c->row_stride + j0 * c->col_stride;
                for (int64_t j = 0; j < n; j++) t[j] = 0;
                for (int64_t p = p0; p < end; p++) {
                    T                 s = ((const T *)a->data)[i * a->row_stride + p * a->col_stride];
                    const T *restrict r = (const T *)b->data + p * b->row_stride + j0;
                    for (int64_t j = 0; j < n; j++) t[j] = FMADD1(s, r[j], t[j]);
                }
                for (int64_t j = 0; j < n; j++) to[j * c->col_stride] = add || p0 > 0 ? to[j * c->col_stride] + t[j] : t[j];
            }
}

/* Without packing, any strides: DOTS elements of a column of c at a time, as that many chains side by side. */
static TARGET void N(by_dots)(const cot__matrix *a, const cot__matrix *b, const cot__matrix *c, bool add) {
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i0 = 0; i0 < c->rows; i0 += DOTS)
            for (int64_t p0 = 0; p0 < a->cols; p0 += KC) {
                int64_t  m = c->rows - i0 < DOTS ? c->rows - i0 : DOTS, end = a->cols - p0 < KC ? a->cols : p0 + KC;
                T        t[DOTS] = {0};
                const T *row[DOTS];
                for (int l = 0; l < DOTS; l++) row[l] = (const T *)a->data + (i0 + (l < m ? l : 0)) * a->row_stride;
                for (int64_t p = p0; p < end; p++) {
                    T s = ((const T *)b->data)[p * b->row_stride + j * b->col_stride];
                    UNROLL for (int l = 0; l < DOTS; l++) t[l] = FMADD1(row[l][p * a->col_stride], s, t[l]);
                }
                for (int64_t l = 0; l < m; l++) {
                    T *to = (T *)c->data + (i0 + l) * c->row_stride + j * c->col_stride;
                    *to   = add || p0 > 0 ? *to + t[l] : t[l];
                }
            }
}

/* Without packing, some rows of c at a time: a vector's product with a matrix may be long all the same. */
typedef struct N(unpacked) { cot__matrix a, b, c; bool add; int64_t parts; } N(unpacked);

static void N(unpacked_part)(void *ctx, int64_t part) {
    const N(unpacked) *g = ctx;
    bool               rows = g->c.cols == 1;
    int64_t            n = rows ? g->c.rows : g->c.cols, start = cot__part_start(n, g->parts, part), stop = cot__part_start(n, g->parts, part + 1);
    cot__matrix        a = g->a, b = g->b, c = g->c;
    if (rows) {
        a.rows = c.rows = stop - start;
        a.data = (T *)a.data + start * a.row_stride;
        c.data = (T *)c.data + start * c.row_stride;
    } else {
        b.cols = c.cols = stop - start;
        b.data = (T *)b.data + start * b.col_stride;
        c.data = (T *)c.data + start * c.col_stride;
    }
    if (b.col_stride == 1 && c.cols > 1) N(by_rows)(&a, &b, &c, g->add);
    else N(by_dots)(&a, &b, &c, g->add);
}

/* c = a b with k >= 1 and c not empty. The product of transposes is the transposed product, bit for bit: a*b commutes. */
static bool N(gemm)(const cot_allocator *al, void *scratch, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    bool small = is_small(c.rows, c.cols, a.cols), large = !scratch && is_large(c.rows, c.cols, a.cols);
    if (small ? b.col_stride != 1 && (a.row_stride == 1 || c.rows == 1) : c.col_stride != 1 && c.row_stride == 1) {
        cot__matrix at = transposed(a);
        a              = transposed(b);
        b              = at;
        c              = transposed(c);
    }
    if (small) {
        N(unpacked) g = {a, b, c, add, 1};
        if (!scratch && (c.cols == 1 || c.rows == 1)) g.parts = cot__parts(c.rows * c.cols, a.cols, 32);
        if (g.parts > 1) cot__parallel(g.parts, N(unpacked_part), &g);
        else if (b.col_stride == 1 && c.cols > 1) N(by_rows)(&a, &b, &c, add);
        else N(by_dots)(&a, &b, &c, add);
    } else if (scratch) N(packed)(scratch, &a, &b, &c, add, spread_here);
    else {
        size_t bytes = N(scratch)(c.rows, c.cols, a.cols);
        void  *memory = cot__alloc(al, bytes);
        if (!memory) return false;
        N(packed)(memory, &a, &b, &c, add, large ? cot__parallel : spread_here);
        cot__free(al, memory, bytes);
    }
    return true;
}

#undef T
#undef V
#undef N
#undef MR
#undef NV
#undef TARGET
#undef FMADD
#undef FMADD1
#undef N_MC_OF
