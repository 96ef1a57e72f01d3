/* gemm_template.h: the kernels of the matrix product for one float type and one instruction set;
 * included by gemm_kernels.c for each pair.
 *
 *   T               the type
 *   N(name)         decorates names
 *   TARGET          the function attribute
 *   V               a vector of T
 *   MR, NV          the tile held in registers: MR rows, NV vectors
 *   FMADD, FMADD1   the multiply-add on vectors and on scalars: both fused or both not
 *   TURNS, SQUARE   if TURNS, squares of SQUARE are transposed in registers by N(turn)
 *   GATHER, TURN, GROUPS   may be defined: a vector of the 16-byte runs that lie some elements
 *                   behind pointers; turns the squares that 16 / sizeof(T) of them hold; how many
 *                   vectors of columns at a time: eight columns, or one vector. Columns of a
 *                   power of two lie in one set of the cache, which has eight ways: with 32 columns
 *                   each line was fetched again for every use, four times as slow
 *
 * The chain of an element is the same in all of them: t = 0, then t = a*b + t over the depth block
 * in order. */

enum { N(VL) = sizeof(V) / sizeof(T), N(NR) = NV * N(VL), N(UNIT) = MR / 3, N(LINE) = 64 / sizeof(T) };

/* ---- the tile -------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) TARGET void N(tile)(const int height, int64_t k, const T *a, int64_t rs,
                                                                 int64_t ps, const T *b, int64_t bs, T *c, int64_t cs,
                                                                 bool add, int64_t stored) {
    V        acc[MR][NV];
    const T *r[3] = {a, a + N(UNIT) * rs, a + 2 * N(UNIT) * rs};
    UNROLL for (int i = 0; i < height; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = (V){0};
    for (int64_t p = 0; p < k; p++) {
        V bv[NV];
        UNROLL for (int j = 0; j < NV; j++) memcpy(&bv[j], b + j * N(VL), sizeof(V));
        UNROLL for (int i = 0; i < height; i++) {
            V av = r[i / N(UNIT)][i % N(UNIT) * rs] - (V){0};
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = FMADD(av, bv[j], acc[i][j]);
        }
        UNROLL for (int i = 0; i < height / N(UNIT); i++) r[i] += ps;
        b += bs;
    }
    UNROLL for (int i = 0; i < height; i++) {
        if (i >= stored) break;
        UNROLL for (int j = 0; j < NV; j++) {
            T *p = c + i * cs + j * N(VL);
            V  t = acc[i][j], old;
            if (add) {
                memcpy(&old, p, sizeof(V));
                t = old + t;
            }
            memcpy(p, &t, sizeof(V));
        }
    }
}

#define TILE_ARGS                                                                                                      \
    int64_t k, const T *a, int64_t rs, int64_t ps, const T *b, int64_t bs, T *c, int64_t cs, bool add, int64_t stored
static TARGET void N(tile_3)(TILE_ARGS) { N(tile)(MR, k, a, rs, ps, b, bs, c, cs, add, stored); }
static TARGET void N(tile_2)(TILE_ARGS) { N(tile)(2 * N(UNIT), k, a, rs, ps, b, bs, c, cs, add, stored); }
static TARGET void N(tile_1)(TILE_ARGS) { N(tile)(N(UNIT), k, a, rs, ps, b, bs, c, cs, add, stored); }

static void N(put)(void *c, int64_t cs, const void *t, int64_t n, bool add) {
    T       *to = c;
    const T *from = t;
    if (cs != 1)
        for (int64_t j = 0; j < n; j++) to[j * cs] = add ? to[j * cs] + from[j] : from[j];
    else if (add)
        for (int64_t j = 0; j < n; j++) to[j] = to[j] + from[j];
    else memcpy(to, from, (size_t)n * sizeof(T));
}

/* If the tile reaches beyond the columns of c, or these do not lie side by side, the tile is
 * computed in a copy. */
static void N(place)(int height, int64_t k, const void *a, int64_t rs, int64_t ps, const void *b, int64_t bs,
                     const cot__matrix *c, int64_t i, int64_t j, bool add) {
    T      *to = (T *)c->data + i * c->row_stride + j * c->col_stride, out[MR * N(NR)];
    int64_t m = c->rows - i, n = c->cols - j;
    bool    inside = c->col_stride == 1 && n >= N(NR);
    void (*tile)(TILE_ARGS) = height == MR ? N(tile_3) : height == N(UNIT) ? N(tile_1) : N(tile_2);
    tile(k, a, rs, ps, b, bs, inside ? to : out, inside ? c->row_stride : N(NR), inside && add, m);
    for (int64_t r = 0; !inside && r < height && r < m; r++)
        N(put)(to + r * c->row_stride, c->col_stride, out + r * N(NR), n < N(NR) ? n : N(NR), add);
}
#undef TILE_ARGS

/* ---- packing --------------------------------------------------------------------------------- */

/* Copies `panels` panels, each depth a run of `width`. All that is read for one depth lies
 * together. */
static inline __attribute__((always_inline)) TARGET void N(copy_panels)(T *restrict to, const T *from, int64_t ps,
                                                                        int64_t k, const int width, int64_t panels) {
    for (int64_t p = 0; p < k; p++, from += ps) {
        for (int64_t l = 0; l < panels * width; l += N(LINE)) __builtin_prefetch(from + AHEAD * ps + l);
        for (int64_t q = 0; q < panels; q++)
            memcpy(to + (q * k + p) * width, from + q * width, (size_t)width * sizeof(T));
    }
}

static inline __attribute__((always_inline)) TARGET void N(pack_any)(T *restrict to, const T *from, int64_t rs,
                                                                     int64_t ps, int64_t m, int64_t k, int width) {
    for (int64_t p = 0; p < k; p++)
        for (int i = 0; i < width; i++) to[p * width + i] = i < m ? from[i * rs + p * ps] : 0;
}

/* A panel whose depths lie side by side, a few at a time, so that the lines written stay near. */
static inline __attribute__((always_inline)) TARGET void N(turn_panel)(T *restrict to, const T *from, int64_t rs,
                                                                       int64_t k, const int width) {
    const int whole = TURNS ? width / SQUARE * SQUARE : 0;
    int64_t   end = whole ? k / 16 * 16 : 0;
    for (int64_t p0 = 0; p0 < end; p0 += 16) {
        for (int i = 0; i < whole; i += SQUARE) {
            UNROLL for (int l = 0; l < SQUARE; l++) __builtin_prefetch(from + (i + l) * rs + p0 + 2 * N(LINE));
            UNROLL for (int p = 0; p < 16; p += SQUARE)
                N(turn)(to + (p0 + p) * width + i, width, from + i * rs + p0 + p, rs);
        }
        for (int64_t p = p0; p < p0 + 16; p++)
            for (int i = whole; i < width; i++) to[p * width + i] = from[i * rs + p];
    }
    N(pack_any)(to + end * width, from + end, rs, 1, width, k - end, width);
}

static TARGET void N(turn_columns)(T *restrict to, const T *from, int64_t cs, int64_t k) {
    N(turn_panel)(to, from, cs, k, N(NR));
}
static TARGET void N(pack_edge)(T *restrict to, const T *from, int64_t rs, int64_t ps, int64_t m, int64_t k,
                                int width) {
    N(pack_any)(to, from, rs, ps, m, k, width);
}

static TARGET void N(pack_b)(void *to, const void *from, int64_t cs, int64_t ps, int64_t n, int64_t k) {
    int64_t  whole = n / N(NR);
    const T *f = from;
    if (cs == 1) N(copy_panels)(to, f, ps, k, N(NR), whole);
    for (int64_t q = cs == 1 ? whole : 0; q * N(NR) < n; q++) {
        T *panel = (T *)to + q * k * N(NR);
        if (q < whole && ps == 1) N(turn_columns)(panel, f + q * N(NR) * cs, cs, k);
        else N(pack_edge)(panel, f + q * N(NR) * cs, cs, ps, n - q * N(NR), k, N(NR));
    }
}

static TARGET void N(pack_a)(void *to, const void *from, int64_t rs, int64_t ps, int64_t m, int64_t k) {
    const T *f = from;
    for (int64_t i = 0; i < m; i += MR) {
        T  *panel = (T *)to + i * k;
        int height = m - i >= MR ? MR : (int)((m - i + N(UNIT) - 1) / N(UNIT) * N(UNIT));
        if (m - i >= MR && rs == 1) N(copy_panels)(panel, f + i, ps, k, MR, 1);
        else if (m - i >= MR && ps == 1) N(turn_panel)(panel, f + i * rs, rs, k, MR);
        else N(pack_edge)(panel, f + i * rs, rs, ps, m - i, k, height);
    }
}

/* ---- vectors and matrices -------------------------------------------------------------------- */

/* `count` rows of b at a time: t is loaded and stored once for all of them. */
static inline __attribute__((always_inline)) TARGET void N(add_rows)(const int count, const T *x, int64_t xs,
                                                                     const T *b, int64_t rs, int64_t n, T *restrict t) {
    int64_t j = 0;
    V       s[8];
    UNROLL for (int l = 0; l < count; l++) s[l] = x[l * xs] - (V){0};
    for (; j + N(VL) <= n; j += N(VL)) {
        V sum, r;
        memcpy(&sum, t + j, sizeof(V));
        UNROLL for (int l = 0; l < count; l++) {
            memcpy(&r, b + l * rs + j, sizeof(V));
            sum = FMADD(s[l], r, sum);
        }
        memcpy(t + j, &sum, sizeof(V));
    }
    for (; j < n; j++)
        UNROLL for (int l = 0; l < count; l++) t[j] = FMADD1(x[l * xs], b[l * rs + j], t[j]);
}

static TARGET void N(along_rows)(int64_t k, const void *x, int64_t xs, const void *b, int64_t rs, int64_t n, void *t) {
    int64_t p = 0;
    memset(t, 0, (size_t)n * sizeof(T));
    for (; p + 8 <= k; p += 8) N(add_rows)(8, (const T *)x + p * xs, xs, (const T *)b + p * rs, rs, n, t);
    for (; p < k; p++) N(add_rows)(1, (const T *)x + p * xs, xs, (const T *)b + p * rs, rs, n, t);
}

#ifdef GATHER
/* Some depths of `groups` vectors of columns, whose depths lie side by side: `deep` squares of 16
 * bytes by 16 bytes for each column, turned in registers. */
COT__INLINED TARGET void N(squares)(const int groups, const int deep, const T *x, int64_t xs, const T *b, int64_t cs,
                                    V *sum) {
    enum { SIDE = 16 / sizeof(T) };
    UNROLL for (int g = 0; g < groups; g++) {
        V        r[2][SIDE];
        const T *part[sizeof(V) / 16];
        UNROLL for (int l = 0; l < (int)sizeof(V) / 16; l++) {
            part[l] = b + (g * N(VL) + l * SIDE) * cs;
            OPAQUE(part[l]);
        }
        UNROLL for (int i = 0; i < SIDE; i++)
            UNROLL for (int q = 0; q < deep; q++) r[q][i] = GATHER(part, i * cs + q * SIDE);
        UNROLL for (int q = 0; q < deep; q++) {
            TURN(r[q]);
            UNROLL for (int i = 0; i < SIDE; i++) sum[g] = FMADD(x[(q * SIDE + i) * xs] - (V){0}, r[q][i], sum[g]);
        }
    }
}

/* The same depths of the next columns are fetched meanwhile. */
COT__INLINED TARGET void N(turned)(const int groups, int64_t k, const T *x, int64_t xs, const T *b, int64_t cs, T *t) {
    enum { SIDE = 16 / sizeof(T), MANY = N(VL) };
    V       sum[GROUPS];
    int64_t p = 0;
    UNROLL for (int g = 0; g < groups; g++) sum[g] = (V){0};
    for (; p + 2 * SIDE <= k; p += 2 * SIDE) {
        if (p % N(LINE) == 0)
            UNROLL for (int l = 0; l < groups * MANY; l++) __builtin_prefetch(b + (groups * MANY + l) * cs + p, 0, 2);
        N(squares)(groups, 2, x + p * xs, xs, b + p, cs, sum);
    }
    if (p + SIDE <= k) {
        N(squares)(groups, 1, x + p * xs, xs, b + p, cs, sum);
        p += SIDE;
    }
    memcpy(t, sum, (size_t)groups * sizeof(V));
    for (int l = 0; l < groups * MANY; l++)
        for (int64_t q = p; q < k; q++) t[l] = FMADD1(x[q * xs], b[l * cs + q], t[l]);
}

/* The last columns are done together with some before them. False: there are not enough. */
static TARGET bool N(turned_dots)(int64_t k, const T *x, int64_t xs, const T *b, int64_t cs, int64_t n, T *t) {
    int64_t j = 0;
    if (n < N(VL)) return false;
    for (; j + GROUPS * N(VL) <= n; j += GROUPS * N(VL)) N(turned)(GROUPS, k, x, xs, b + j * cs, cs, t + j);
    for (; j < n; j += N(VL)) {
        if (j + N(VL) > n) j = n - N(VL);
        N(turned)(1, k, x, xs, b + j * cs, cs, t + j);
    }
    return true;
}
#else
#define NO_TURNS
#endif

/* DOTS chains side by side: as many as hide the latency of one. The data of the next ones are
 * fetched meanwhile. */
static TARGET void N(dots)(int64_t k, const void *x, int64_t xs, const void *b, int64_t rs, int64_t cs, int64_t n,
                           void *t) {
#ifndef NO_TURNS
    if (rs == 1 && N(turned_dots)(k, x, xs, b, cs, n, t)) return;
#endif
    for (int64_t j = 0; j < n; j += DOTS) {
        int64_t  many = n - j < DOTS ? n - j : DOTS;
        T        sum[DOTS] = {0};
        const T *column[DOTS];
        UNROLL for (int l = 0; l < DOTS; l++) column[l] = (const T *)b + (j + (l < many ? l : 0)) * cs;
        for (int64_t p0 = 0; p0 < k; p0 += N(LINE)) {
            int64_t end = k - p0 < N(LINE) ? k : p0 + N(LINE);
            UNROLL for (int l = 0; l < DOTS; l++) __builtin_prefetch(column[l] + p0 * rs + DOTS * cs, 0, 2);
            for (int64_t p = p0; p < end; p++) {
                T s = ((const T *)x)[p * xs];
                UNROLL for (int l = 0; l < DOTS; l++) sum[l] = FMADD1(s, column[l][p * rs], sum[l]);
            }
        }
        memcpy((T *)t + j, sum, (size_t)many * sizeof(T));
    }
}

static const cot__gemm_kernels N(kernels) = {sizeof(T),     MR,      N(NR), N(place), N(pack_a), N(pack_b),
                                             N(along_rows), N(dots), N(put)};

#undef T
#undef V
#undef N
#undef MR
#undef NV
#undef TARGET
#undef FMADD
#undef FMADD1
#undef SQUARE
#undef GATHER
#undef TURN
#undef GROUPS
#undef NO_TURNS
