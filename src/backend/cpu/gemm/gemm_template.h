/* gemm_template.h: the kernels of the matrix product for one float type and one instruction set;
 * included by gemm_kernels.c for each pair.
 *
 *   T               the type
 *   N(name)         decorates names
 *   TARGET          the function attribute
 *   V               a vector of T
 *   MR, NV          the tile held in registers: MR rows, NV vectors
 *   NARROW          may be defined: there are tiles of one vector, too
 *   FMADD, FMADD1   the multiply-add on vectors and on scalars: both fused or both not
 *   AT_ONCE         rows that are added to a sum at a time: several, unless FMADD is slow
 *   TURNS, SQUARE   if TURNS, squares of SQUARE are transposed in registers by N(turn)
 *   GATHER, TURN    may be defined: a vector of the runs of RUN bytes (16) that lie some elements
 *                   behind pointers, which are BESIDE columns apart; turns the squares that RUN /
 *                   sizeof(T) of them hold
 *   GROUPS, BEHIND  vectors of columns that take turns, each so many lines behind the one before:
 *                   columns that are a power of two apart lie in one set of the cache, which has
 *                   room for eight
 *   FAR_DOTS, FAR_BEHIND  may be defined: dots of another width, and another BEHIND, for a matrix
 *                   beyond the caches
 *
 * The chain of an element is the same in all of them: t = 0, then t = a*b + t over the depth block
 * in order. */

enum { N(VL) = sizeof(V) / sizeof(T), N(UNIT) = MR / 3, N(LINE) = 64 / sizeof(T) };

static void N(put)(void *c, int64_t cs, const void *t, int64_t n, bool add) {
    T       *to = c;
    const T *from = t;
    if (cs != 1)
        for (int64_t j = 0; j < n; j++) to[j * cs] = add ? to[j * cs] + from[j] : from[j];
    else if (add)
        for (int64_t j = 0; j < n; j++) to[j] = to[j] + from[j];
    else memcpy(to, from, (size_t)n * sizeof(T));
}

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
    int64_t   end = whole ? k / SQUARE * SQUARE : 0;
    for (int64_t p0 = 0; p0 < end; p0 += 16) {
        const int64_t next = end - p0 < 16 ? end : p0 + 16;
        for (int i = 0; i < whole; i += SQUARE) {
            UNROLL for (int l = 0; l < SQUARE; l++) __builtin_prefetch(from + (i + l) * rs + p0 + 2 * N(LINE));
            for (int64_t p = p0; p < next; p += SQUARE) N(turn)(to + p * width + i, width, from + i * rs + p, rs);
        }
        for (int64_t p = p0; p < next; p++)
            for (int i = whole; i < width; i++) to[p * width + i] = from[i * rs + p];
    }
    N(pack_any)(to + end * width, from + end, rs, 1, width, k - end, width);
}

/* A panel that is not whole: zeros, and what there is along the runs of memory. */
static TARGET void N(pack_edge)(T *to, const T *from, int64_t rs, int64_t ps, int64_t m, int64_t k, int width) {
    const bool    turns = TURNS && ps == 1, runs = rs == 1;
    const int64_t high = turns || runs ? m / SQUARE * SQUARE : 0, end = turns ? k / SQUARE * SQUARE : k;
    if (m < width) memset(to, 0, (size_t)(k * width) * sizeof(T));
    for (int64_t p = 0; p < end; p += turns ? SQUARE : 1)
        for (int64_t i = 0; i < high; i += SQUARE)
            if (runs) memcpy(to + p * width + i, from + p * ps + i, SQUARE * sizeof(T));
            else N(turn)(to + p * width + i, width, from + i * rs + p, rs);
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = p < end ? high : 0; i < m; i++) to[p * width + i] = from[i * rs + p * ps];
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

/* ---- tiles ----------------------------------------------------------------------------------- */

/* m rows of n, `rs` apart, become columns `ts` apart, along the lines that are written. */
static TARGET void N(put_turned)(T *to, int64_t ts, const T *from, int64_t rs, int64_t m, int64_t n) {
    const int64_t high = TURNS ? m / SQUARE * SQUARE : 0, wide = TURNS ? n / SQUARE * SQUARE : 0;
    for (int64_t l = 0; l < wide; l += SQUARE)
        for (int64_t r = 0; r < high; r += SQUARE) N(turn)(to + l * ts + r, ts, from + r * rs + l, rs);
    for (int64_t l = 0; l < n; l++)
        for (int64_t r = l < wide ? high : 0; r < m; r++) to[l * ts + r] = from[r * rs + l];
}


#define W(name) N(name)
#include "backend/cpu/gemm/gemm_tile.h"
#ifdef NARROW
#define W(name) N(narrow_##name)
#define NV 1
#include "backend/cpu/gemm/gemm_tile.h"
#endif

/* ---- vectors and matrices -------------------------------------------------------------------- */

/* `count` rows of b at a time: t is loaded and stored once for all of them. Nothing is fetched
 * ahead: each row is a long run in order, which processors see and fetch by themselves, sooner than
 * instructions can ask for its lines. */
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

/* The same with fewer rows, which is all there is of small matrices. */
static inline __attribute__((always_inline)) TARGET void N(add_last)(int64_t count, const T *x, int64_t xs, const T *b,
                                                                     int64_t rs, int64_t n, T *restrict t) {
    int64_t j = 0;
    for (; j + N(VL) <= n; j += N(VL)) {
        V sum, r;
        memcpy(&sum, t + j, sizeof(V));
        for (int64_t l = 0; l < count; l++) {
            memcpy(&r, b + l * rs + j, sizeof(V));
            sum = FMADD(x[l * xs] - (V){0}, r, sum);
        }
        memcpy(t + j, &sum, sizeof(V));
    }
    for (; j < n; j++)
        for (int64_t l = 0; l < count; l++) t[j] = FMADD1(x[l * xs], b[l * rs + j], t[j]);
}

static TARGET void N(along_rows)(int64_t k, const void *x, int64_t xs, const void *b, int64_t rs, int64_t n, void *t) {
    int64_t p = 0;
    memset(t, 0, (size_t)n * sizeof(T));
    for (; AT_ONCE > 1 && p + AT_ONCE <= k; p += AT_ONCE)
        N(add_rows)(AT_ONCE, (const T *)x + p * xs, xs, (const T *)b + p * rs, rs, n, t);
    if (p < k) N(add_last)(k - p, (const T *)x + p * xs, xs, (const T *)b + p * rs, rs, n, t);
}

#ifdef GATHER
#ifndef RUN
#define RUN 16
#define BESIDE ((int)(RUN / sizeof(T)))
#endif
#ifndef FAR_BEHIND
#define FAR_BEHIND BEHIND
#endif

/* Some depths of a vector of columns, whose depths lie side by side: two runs of each column, or
 * one, turned in registers. */
COT__INLINED TARGET V N(runs)(const int deep, const T *x, const T *b, int64_t cs, V sum) {
    enum { SIDE = RUN / sizeof(T), PARTS = sizeof(V) / RUN };
    V        r[2][SIDE];
    const T *part[N(VL) / BESIDE];
    UNROLL for (int l = 0; l < N(VL) / BESIDE; l++) {
        part[l] = b + l * BESIDE * cs;
        OPAQUE(part[l]);
    }
    UNROLL for (int i = 0; i < SIDE; i++)
        UNROLL for (int q = 0; q < deep; q++) r[q][i] = GATHER((part + i / BESIDE * PARTS), i % BESIDE * cs + q * SIDE);
    UNROLL for (int q = 0; q < deep; q++) {
        TURN(r[q]);
        UNROLL for (int i = 0; i < SIDE; i++) sum = FMADD(x[q * SIDE + i] - (V){0}, r[q][i], sum);
    }
    return sum;
}

/* A line of the cache of each column at a time. The groups take turns, because the chain of one
 * waits for itself. far: of more runs than processors follow by themselves, as many lines of one
 * column that come later are fetched with each line as there are columns, because memory gives
 * neighbours sooner than lines of many columns in turn. */
COT__INLINED TARGET void N(turned)(const int groups, int64_t k, const T *x, const T *b, int64_t cs, T *t, bool far) {
    enum { SIDE = RUN / sizeof(T), MANY = N(VL) };
    const bool ahead = far && groups * MANY > FOLLOWED;
    int64_t    lines = k / N(LINE), q = lines * N(LINE), behind = far ? FAR_BEHIND : BEHIND;
    V          sum[GROUPS];
    UNROLL for (int g = 0; g < groups; g++) sum[g] = (V){0};
    for (int64_t l = 0; l < lines + (groups - 1) * behind; l++)
        UNROLL for (int g = 0; g < groups; g++) {
            int64_t  line = l - g * behind, at = line * N(LINE);
            const T *column = b + g * MANY * cs + at;
            if (line < 0 || line >= lines) continue;
            const T *later = b + (g * MANY + line % MANY) * cs + (line / MANY * MANY + LATER) * N(LINE);
            if (ahead) ROLLED for (int i = 0; i < MANY; i++) __builtin_prefetch(later + i * N(LINE), 0, 2);
            UNROLL for (int p = 0; p < N(LINE); p += 2 * SIDE)
                sum[g] = N(runs)(2, x + at + p, column + p, cs, sum[g]);
        }
    for (; q + SIDE <= k; q += SIDE)
        UNROLL for (int g = 0; g < groups; g++) sum[g] = N(runs)(1, x + q, b + g * MANY * cs + q, cs, sum[g]);
    memcpy(t, sum, (size_t)groups * sizeof(V));
    for (int l = 0; l < groups * MANY; l++)
        for (int64_t p = q; p < k; p++) t[l] = FMADD1(x[p], b[l * cs + p], t[l]);
}

/* The last columns are done together with some before them. False: there are not enough. */
static TARGET bool N(turned_dots)(int64_t k, const T *x, const T *b, int64_t cs, int64_t n, T *t, bool far) {
    int64_t j = 0;
    if (n < N(VL)) return false;
    for (; j + GROUPS * N(VL) <= n; j += GROUPS * N(VL)) N(turned)(GROUPS, k, x, b + j * cs, cs, t + j, far);
    for (; j < n; j += N(VL)) {
        if (j + N(VL) > n) j = n - N(VL);
        N(turned)(1, k, x, b + j * cs, cs, t + j, far);
    }
    return true;
}
#else
#define NO_TURNS
#endif

/* DOTS chains side by side: as many as hide the latency of one. The data of the next ones are
 * fetched meanwhile. */
static TARGET void N(dots)(int64_t k, const void *x, int64_t xs, const void *b, int64_t rs, int64_t cs, int64_t n,
                           void *t, bool far) {
    (void)far;
#ifdef FAR_DOTS
    if (far) {
        FAR_DOTS(k, x, xs, b, rs, cs, n, t, far);
        return;
    }
#define FAR false
#else
#define FAR far
#endif
#ifndef NO_TURNS
    T beside[COT__DEEP];
    if (rs == 1 && n >= N(VL) && xs != 1) {
        for (int64_t p = 0; p < k; p++) beside[p] = ((const T *)x)[p * xs];
        x = beside, xs = 1;
    }
    if (rs == 1 && N(turned_dots)(k, x, b, cs, n, t, FAR)) return;
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

#ifdef NARROW
static const cot__gemm_kernels N(narrow_kernels) = {
    sizeof(T), MR, N(narrow_NR), N(narrow_place), N(pack_a), N(narrow_pack_b), N(along_rows), N(dots), N(put), NULL,
    false};
#define N_NARROW &N(narrow_kernels)
#else
#define N_NARROW NULL
#endif
static const cot__gemm_kernels N(kernels) = {sizeof(T),      MR,      N(NR),  N(place), N(pack_a), N(pack_b),
                                             N(along_rows), N(dots), N(put), N_NARROW, N(KEEPS)};

#undef T
#undef V
#undef N
#undef MR
#undef NARROW
#undef N_NARROW
#undef TARGET
#undef FMADD
#undef FMADD1
#undef AT_ONCE
#undef SQUARE
#undef GATHER
#undef TURN
#undef RUN
#undef BESIDE
#undef GROUPS
#undef BEHIND
#undef FAR_BEHIND
#undef FAR_DOTS
#undef FAR
#undef NO_TURNS
