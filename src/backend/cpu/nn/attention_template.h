/* attention_template.h: tiles of attention for one float type and one instruction set; included by
 * attention.c for each pair.
 *
 * T is the type, N(name) decorates names, TARGET is the function attribute, V a vector of T, MR the
 * rows of C held in registers beside two vectors of columns, FMADD and FMADD1 the multiply-add on
 * vectors and scalars, EXP and LOG the functions. Tiles are row-major with TILE rows; their columns
 * are padded to a multiple of PAD, which every vector divides. Chains run over the inner index in
 * order, so the bits of a score are the same in both passes. */

enum { N(VL) = sizeof(V) / sizeof(T) };

/* What causal masks hide is left out by floats in wide vectors, which most people run: the code is
 * long. */
enum { N(SKIPS) = sizeof(V) >= 32 && sizeof(T) == 4 };

/* MR rows and nv vectors of C (+)= A B. nv is a constant where this is inlined. */
static inline __attribute__((always_inline)) TARGET void N(block)(int nv, int64_t k, const T *restrict a, int64_t rs,
                                                                  int64_t ps, const T *restrict b, int64_t ldb,
                                                                  T *restrict c, int64_t ldc, bool add) {
    V acc[MR][2];
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < nv; j++) {
            if (add) memcpy(&acc[i][j], c + i * ldc + j * N(VL), sizeof(V));
            else acc[i][j] = (V){0};
        }
    for (int64_t p = 0; p < k; p++) {
        V bv[2];
        UNROLL for (int j = 0; j < nv; j++) memcpy(&bv[j], b + p * ldb + j * N(VL), sizeof(V));
        UNROLL for (int i = 0; i < MR; i++) {
            V av = a[i * rs + p * ps] - (V){0};
            UNROLL for (int j = 0; j < nv; j++) acc[i][j] = FMADD(av, bv[j], acc[i][j]);
        }
    }
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < nv; j++) memcpy(c + i * ldc + j * N(VL), &acc[i][j], sizeof(V));
}

typedef uint32_t N(words) __attribute__((vector_size(sizeof(V))));

static inline __attribute__((always_inline)) TARGET uint32_t N(any)(const N(words) *w) {
    uint32_t any = 0;
    for (int l = 0; l < (int)(sizeof(V) / sizeof any); l++) any |= (*w)[l];
    return any;
}

/* May an element of MR rows be -0? Words of 4 bytes tell: all bits of a float, half of a double,
 * where others may look like it. The lowest bit of such a word is its sign. */
static ONCE TARGET bool N(may_be_minus_zero)(const T *c, int64_t ldc, int64_t n) {
    N(words) found = {0}, w;
    for (int i = 0; i < MR; i++)
        for (int64_t j = 0; j < n; j += N(VL)) {
            memcpy(&w, c + i * ldc + j, sizeof w);
            found |= w & -w;
        }
    return N(any)(&found) >> 31;
}

/* C(m,n) (+)= A(m,k) B(k,n): a at row stride rs and inner stride ps; m is rounded up to MR, n a
 * multiple of PAD. With `strong` a zero of A wins over whatever it meets in B, so that a key
 * without weight may hold anything.
 *
 * What a sight hides is left out. Terms that are hidden have a zero of A, so they leave a sum as it
 * is, unless that is -0, to which they may add +0: then they are done. */
static ONCE TARGET void N(product)(int64_t m, int64_t n, int64_t k, const T *a, int64_t rs, int64_t ps, const T *b,
                                   int64_t ldb, T *c, int64_t ldc, bool add, bool strong, sight s) {
    enum { WIDE = 2 * N(VL) };
    int64_t seen = N(SKIPS) ? what_of(s) : NONE_HIDDEN, edge = edge_in(s);
    for (int64_t i = 0; i < m; i += MR) {
        int64_t before = i + MR - 1 + edge, behind = i + 1 - edge;
        int64_t end = seen == TERMS_BEFORE ? within(before, k) : k;
        int64_t start = seen == TERMS_BEHIND ? within(behind, k) : 0;
        int64_t columns = seen == COLUMNS_BEFORE ? within(before, n) : n;
        int64_t j = seen == COLUMNS_BEHIND ? within(behind, n) / N(VL) * N(VL) : 0;
        for (int64_t wide; j < columns && !strong; j += wide) {
            T      *to = c + i * ldc + j;
            bool    more = add;
            int64_t p = start, stop = end;
            wide = columns - j > N(VL) ? WIDE : N(VL);
            if (p > 0 && add && N(may_be_minus_zero)(to, ldc, wide)) p = 0;
            do {
                const T *left = a + i * rs + p * ps, *right = b + p * ldb + j;
                if (wide == WIDE) N(block)(2, stop - p, left, rs, ps, right, ldb, to, ldc, more);
                else N(block)(1, stop - p, left, rs, ps, right, ldb, to, ldc, more);
                p = stop, stop = k, more = true;
            } while (p < k && N(may_be_minus_zero)(to, ldc, wide));
        }
        if (!strong) continue;
        for (int64_t r = i; r < i + MR; r++)
            for (j = 0; j < n; j++) {
                T t = add ? c[r * ldc + j] : 0;
                for (int64_t p = 0; p < k; p++)
                    if (a[r * rs + p * ps] != 0) t = FMADD1(a[r * rs + p * ps], b[p * ldb + j], t);
                c[r * ldc + j] = t;
            }
    }
}

/* Rows [first, first + rows) of a matrix to a tile, times `scale`, padded with zeros. Is every
 * element finite? Times 0 others are NaN, of which bits beside the sign are set. */
static ONCE TARGET bool N(load)(const matrix *x, int64_t first, int64_t rows, T scale, T *restrict to, int64_t ld) {
    V        factor = scale - (V){0};
    N(words) probe = {0};
    int64_t  vectors = x->plain ? x->cols / PAD * PAD : 0;
    for (int64_t i = 0; i < rows && vectors < ld; i++) {
        T          *row = to + i * ld + vectors;
        const char *from = x->data + (first + i) * x->row_bytes + vectors * x->col_stride * x->size;
        if (x->cols > vectors) x->load(row, 1, from, x->col_stride, x->cols - vectors);
        for (int64_t j = x->cols; j < ld; j++) row[j - vectors] = 0;
    }
    for (int64_t i = 0; i < rows; i++) {
        T       *row = to + i * ld;
        const T *from = (const T *)(const void *)(x->data + (first + i) * x->row_bytes);
        /* rows of the next tile: they lie apart, so the processor does not guess them */
        uintptr_t later = (uintptr_t)x->data + (uintptr_t)((first + i + TILE) * x->row_bytes);
        for (int64_t j = 0; j < ld; j += PAD) {
            const T *part = j < vectors ? from + j : row + j;
            __builtin_prefetch((const void *)(later + (uintptr_t)j * sizeof(T)));
            UNROLL for (int l = 0; l < PAD / N(VL); l++) {
                V value;
                memcpy(&value, part + l * N(VL), sizeof value);
                value *= factor;
                memcpy(row + j + l * N(VL), &value, sizeof value);
                probe |= (N(words))(value * (V){0});
            }
        }
    }
    for (int64_t i = rows * ld; i < TILE * ld; i++) to[i] = 0;
    return N(any)(&probe) << 1 == 0;
}

/* A tile to rows [first, first + rows) of a matrix. */
static ONCE TARGET void N(store)(const matrix *to, int64_t first, int64_t rows, const T *from, int64_t ld) {
    bool whole = to->plain && to->cols == ld;
    for (int64_t i = 0; i < rows && to->cols > 0; i++, from += ld) {
        char *row = to->data + (first + i) * to->row_bytes;
        if (!whole) to->store(row, 1, from, 1, to->cols);
        for (int64_t j = 0; j < ld && whole; j += N(VL)) {
            V value;
            memcpy(&value, from + j, sizeof value);
            memcpy(row + j * (int64_t)sizeof(T), &value, sizeof value);
        }
    }
}

/* (TILE, ld) to (ld, TILE) */
static ONCE TARGET void N(turn_tile)(const T *restrict from, int64_t ld, T *restrict to) {
    enum { SQUARE = !TURNS ? 1 : sizeof(V) > 16 && sizeof(T) == 8 ? 4 : 16 / sizeof(T) };
    for (int64_t p = 0; p < ld; p += SQUARE)
        for (int64_t i = 0; i < TILE; i += SQUARE) {
            if (TURNS) N(turn)(to + p * TILE + i, TILE, from + i * ld + p, ld);
            else to[p * TILE + i] = from[i * ld + p];
        }
}

/* What is hidden of a tile of queries i0 … and keys j0 … becomes -inf, with queries in rows or in
 * columns. */
static ONCE TARGET void N(hide)(int64_t causal, int64_t i0, int64_t rows, int64_t j0, int64_t n, T *s, bool in_rows) {
    int64_t seen = i0 + causal - j0; /* query i sees key j if j < i + seen */
    int64_t lines = in_rows ? rows : n;
    if (!causal || n <= seen) return;
    for (int64_t l = 0; l < lines; l++) {
        int64_t from = in_rows ? within(seen + l, n) : 0, to = in_rows ? n : within(l - seen + 1, rows);
        for (int64_t j = from; j < to; j++) s[l * TILE + j] = -(T)INFINITY;
    }
}

/* Applies bias and mask to the scores of queries i0 … and keys j0 …; score (i, j) is s[i * rs + j *
 * cs]. Keys from n on are padding, which no sum includes. */
static ONCE void N(mask)(const plan *a, int64_t head, int64_t i0, int64_t rows, int64_t j0, int64_t n, T *s, int64_t rs,
                         int64_t cs) {
    if (a->bias.data) {
        matrix b = matrix_of(&a->bias, head, a->wide);
        T      row[TILE];
        for (int64_t i = 0; i < rows; i++) {
            b.load(row, 1, b.data + (i0 + i) * b.row_bytes + j0 * b.col_stride * b.size, b.col_stride, n);
            for (int64_t j = 0; j < n; j++) s[i * rs + j * cs] += row[j];
        }
    }
    if (a->mask.data) {
        matrix m = matrix_of(&a->mask, head, COT_BOOL);
        for (int64_t i = 0; i < rows; i++) {
            const char *row = m.data + (i0 + i) * m.row_bytes + j0 * m.col_stride;
            for (int64_t j = 0; j < n; j++)
                if (!row[j * m.col_stride]) s[i * rs + j * cs] = -(T)INFINITY;
        }
    }
}

/* Row i is computed up to here, where its first i + seen elements are seen; column j from there
 * on. */
static inline int64_t N(end_of)(int64_t i, int64_t seen) { return (within(i + seen, TILE) + PAD - 1) / PAD * PAD; }
static inline int64_t N(start_of)(int64_t j, int64_t seen) { return within(j - seen + 1, TILE) / PAD * PAD; }

/* ---- forward: one tile of queries, over all keys --------------------------------------------- */

/* Takes a tile of scores, keys in rows and queries in columns, into the running maxima `top` and
 * sums. The scores become weights relative to the new maxima; `fade` is the factor by which older
 * weights shrink. Query i sees key j if j < i + seen: what is hidden has no weight. */
static ONCE TARGET void N(soften)(T *restrict s, int64_t n, int64_t seen, T *restrict top, T *restrict sum,
                                  T *restrict fade) {
    T shift[TILE], old[TILE], part[TILE] = {0};
    for (int i = 0; i < TILE; i++) old[i] = top[i];
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = N(start_of)(j, seen); i < TILE; i += PAD)
            for (int64_t l = i; l < i + PAD; l++) top[l] = s[j * TILE + l] > top[l] ? s[j * TILE + l] : top[l];
    /* no key yet: every weight is exp(-inf) */
    for (int i = 0; i < TILE; i++) shift[i] = top[i] == -(T)INFINITY ? 0 : top[i];
    for (int i = 0; i < TILE; i++) fade[i] = EXP(old[i] - shift[i]);
    for (int64_t j = 0; j < n; j++) {
        int64_t first = N(start_of)(j, seen);
        for (int64_t i = 0; i < first; i += PAD) memset(s + j * TILE + i, 0, PAD * sizeof(T));
        for (int64_t i = first; i < TILE; i += PAD)
            for (int64_t l = i; l < i + PAD; l++) {
                T p = EXP(s[j * TILE + l] - shift[l]);
                s[j * TILE + l] = p;
                part[l] += p;
            }
    }
    for (int i = 0; i < TILE; i++) sum[i] = sum[i] * fade[i] + part[i];
}

static TARGET void N(forward)(const plan *a, int64_t head, int64_t tile, void *memory) {
    matrix q = matrix_of(&a->q, head, a->wide), k = matrix_of(&a->k, head, a->wide),
           v   = matrix_of(&a->v, head, a->wide);
    int64_t i0 = tile * TILE, rows = a->queries - i0 < TILE ? a->queries - i0 : TILE;
    /* later keys are hidden from the whole tile */
    int64_t last = i0 + rows - 1 + a->causal, keys = a->causal && last < a->keys ? last : a->keys;
    T      *qt = memory, *kk = qt + TILE * a->d, *vv = kk + TILE * a->d, *s = vv + TILE * a->dv, *o = s + TILE * TILE;
    T       top[TILE], sum[TILE] = {0}, fade[TILE];
    N(load)(&q, i0, rows, (T)a->scale, kk, a->d);
    N(turn_tile)(kk, a->d, qt);
    for (int i = 0; i < TILE; i++) top[i] = -(T)INFINITY;
    for (int64_t i = 0; i < TILE * a->dv; i++) o[i] = 0;
    for (int64_t j0 = 0; j0 < keys; j0 += TILE) {
        int64_t n = keys - j0 < TILE ? keys - j0 : TILE;
        N(load)(&k, j0, n, 1, kk, a->d);
        bool finite = N(load)(&v, j0, n, 1, vv, a->dv);
        sight   edge = N(SKIPS) ? edge_of(a, i0, rows, j0, n, true) : NONE_HIDDEN;
        int64_t seen = N(SKIPS) ? edge_in(edge) : TILE;
        N(product)(n, TILE, q.cols, kk, a->d, 1, qt, TILE, s, TILE, false, false, edge + COLUMNS_BEHIND);
        N(mask)(a, head, i0, rows, j0, n, s, 1, TILE);
        N(hide)(a->causal, i0, rows, j0, n, s, false);
        N(soften)(s, n, seen, top, sum, fade);
        for (int i = 0; i < TILE; i++)
            for (int64_t c = 0; c < a->dv; c++) o[i * a->dv + c] *= fade[i];
        N(product)(rows, a->dv, n, s, 1, TILE, vv, a->dv, o, a->dv, true, !finite, edge + TERMS_BEFORE);
    }
    matrix z = matrix_of(&a->z, head, a->wide);
    T     *lse = (T *)a->lse.data + head * a->queries + i0;
    for (int64_t i = 0; i < rows; i++) {
        bool none = sum[i] == 0; /* no key is left */
        for (int64_t c = 0; c < z.cols; c++) o[i * a->dv + c] = none ? 0 : o[i * a->dv + c] / sum[i];
        lse[i] = none ? -(T)INFINITY : top[i] + LOG(sum[i]);
    }
    N(store)(&z, i0, rows, o, a->dv);
}

/* ---- backward: some tiles of keys, over all queries ------------------------------------------ */

/* Weights from scores and log-sums, queries in rows. */
static TARGET void N(weigh)(T *restrict s, int64_t rows, int64_t seen, const T *lse) {
    for (int64_t i = 0; i < rows; i++, s += TILE) {
        T       shift = lse[i] == -(T)INFINITY ? 0 : lse[i];
        int64_t end = N(end_of)(i, seen);
        for (int64_t j = 0; j < end; j += PAD)
            for (int64_t l = j; l < j + PAD; l++) s[l] = EXP(s[l] - shift);
        for (int64_t j = end; j < TILE; j += PAD) memset(s + j, 0, PAD * sizeof(T));
    }
}

/* The adjoint of the scores, p (dp - delta), with a zero weight winning. */
static TARGET void N(score_adjoint)(const T *restrict p, T *restrict dp, int64_t rows, int64_t seen, const T *delta) {
    for (int64_t i = 0; i < rows; i++, p += TILE, dp += TILE) {
        int64_t end = N(end_of)(i, seen);
        for (int64_t j = 0; j < end; j += PAD)
            for (int64_t l = j; l < j + PAD; l++) {
                T x = p[l] * (dp[l] - delta[i]);
                dp[l] = p[l] == 0 ? 0 : x;
            }
        for (int64_t j = end; j < TILE; j += PAD) memset(dp + j, 0, PAD * sizeof(T));
    }
}

/* delta[i] = Σ_c g[i,c] z[i,c] of a tile of queries, in the chain of dp = g vᵀ: with a single key z
 * is v and p (dp - delta) exactly 0. */
static TARGET void N(deltas)(const plan *a, int64_t head, int64_t tile, void *memory) {
    /* chains side by side: as many as hide the latency of one */
    enum { SIDE = MR > 4 || sizeof(V) > 16 ? 8 : 2 };
    matrix  g = matrix_of(&a->g, head, a->wide), z = matrix_of(&a->z, head, a->wide);
    int64_t i0 = tile * TILE, rows = a->queries - i0 < TILE ? a->queries - i0 : TILE, ld = a->dv;
    T      *gg = memory, *zz = gg + TILE * ld, *delta = (T *)(void *)a->deltas + head * a->queries + i0;
    N(load)(&g, i0, rows, 1, gg, ld);
    N(load)(&z, i0, rows, 1, zz, ld);
    for (int64_t i = 0; i < rows; i += SIDE) {
        T sum[SIDE] = {0};
        for (int64_t c = 0; c < z.cols; c++)
            UNROLL for (int l = 0; l < SIDE; l++) sum[l] = FMADD1(gg[(i + l) * ld + c], zz[(i + l) * ld + c], sum[l]);
        for (int64_t l = 0; l < SIDE && i + l < rows; l++) delta[i + l] = sum[l];
    }
}

/* One tile of keys with one tile of queries: adds to dk, dv (TILE rows each) and to the queries'
 * rows of dq. */
typedef struct N(tiles) {
    T      *kk, *kt, *vt, *qq, *gg, *s, *ds, *dk, *dv;
    int64_t queries; /* the first of those in qq and gg; -1: there are none */
    bool    k_finite, q_finite, g_finite;
} N(tiles);

static TARGET void N(backward_pair)(const plan *a, int64_t head, int64_t i0, int64_t j0, int64_t n, N(tiles) *w,
                                    T *dq) {
    matrix   q = matrix_of(&a->q, head, a->wide), g = matrix_of(&a->g, head, a->wide);
    int64_t  rows = a->queries - i0 < TILE ? a->queries - i0 : TILE;
    const T *lse = (const T *)a->lse.data + head * a->queries + i0;
    const T *delta = (const T *)(const void *)a->deltas + head * a->queries + i0;
    if (w->queries != i0) {
        w->q_finite = N(load)(&q, i0, rows, (T)a->scale, w->qq, a->d);
        w->g_finite = N(load)(&g, i0, rows, 1, w->gg, a->dv);
        w->queries = i0;
    }
    /* where a log-sum is NaN all weights of its query are, hidden or not */
    bool     known = true;
    for (int64_t i = 0; i < rows && N(SKIPS); i++) known &= lse[i] == lse[i];
    sight    edge = N(SKIPS) ? edge_of(a, i0, rows, j0, n, known) : NONE_HIDDEN;
    int64_t  seen = N(SKIPS) ? edge_in(edge) : TILE;
    N(product)(rows, TILE, q.cols, w->qq, a->d, 1, w->kt, TILE, w->s, TILE, false, false, edge + COLUMNS_BEFORE);
    N(mask)(a, head, i0, rows, j0, n, w->s, TILE, 1);
    N(hide)(a->causal, i0, rows, j0, n, w->s, true);
    N(weigh)(w->s, rows, seen, lse);
    /* dv += pᵀ g */
    N(product)(n, a->dv, rows, w->s, 1, TILE, w->gg, a->dv, w->dv, a->dv, true, !w->g_finite,
               edge + TERMS_BEHIND);
    /* dp = g vᵀ */
    N(product)(rows, TILE, g.cols, w->gg, a->dv, 1, w->vt, TILE, w->ds, TILE, false, false, edge + COLUMNS_BEFORE);
    N(score_adjoint)(w->s, w->ds, rows, seen, delta);
    /* dk += dsᵀ (scale q) */
    N(product)(n, a->d, rows, w->ds, 1, TILE, w->qq, a->d, w->dk, a->d, true, !w->q_finite, edge + TERMS_BEHIND);
    /* dq += ds k, scaled at the end */
    N(product)(rows, a->d, n, w->ds, TILE, 1, w->kk, a->d, dq + i0 * a->d, a->d, true, !w->k_finite,
               edge + TERMS_BEFORE);
}

/* Tiles [from, to) of the keys of a head. dq (queries rounded up to TILE, d) receives what they add
 * to the adjoint of q. */
static TARGET void N(backward)(const plan *a, int64_t head, int64_t from, int64_t to, void *memory, void *dq_sum) {
    matrix   k = matrix_of(&a->k, head, a->wide), v = matrix_of(&a->v, head, a->wide);
    matrix   dk = matrix_of(&a->dk, head, a->wide), dv = matrix_of(&a->dv_out, head, a->wide);
    int64_t  big = TILE * a->d, wide = TILE * a->dv, all = (a->queries + TILE - 1) / TILE * TILE * a->d;
    T       *p = memory, *dq = dq_sum;
    N(tiles) w = {.kk = p, .kt = p + big, .qq = p + 2 * big, .dk = p + 3 * big, .queries = -1};
    p += 4 * big;
    w.vt = p, w.gg = p + wide, w.dv = p + 2 * wide, w.s = p + 3 * wide, w.ds = w.s + TILE * TILE;
    for (int64_t i = 0; i < all; i++) dq[i] = 0;
    for (int64_t tile = from; tile < to; tile++) {
        int64_t j0 = tile * TILE, n = a->keys - j0 < TILE ? a->keys - j0 : TILE;
        w.k_finite = N(load)(&k, j0, n, 1, w.kk, a->d);
        N(turn_tile)(w.kk, a->d, w.kt);
        N(load)(&v, j0, n, 1, w.dv, a->dv);
        N(turn_tile)(w.dv, a->dv, w.vt);
        for (int64_t i = 0; i < big; i++) w.dk[i] = 0;
        for (int64_t i = 0; i < wide; i++) w.dv[i] = 0;
        /* the first query that sees key j0 */
        int64_t first = a->causal && j0 >= a->causal ? j0 - a->causal + 1 : 0;
        for (int64_t i0 = first / TILE * TILE; i0 < a->queries; i0 += TILE)
            N(backward_pair)(a, head, i0, j0, n, &w, dq);
        N(store)(&dk, j0, n, w.dk, a->d);
        N(store)(&dv, j0, n, w.dv, a->dv);
    }
}

/* The sums of `chunks` parts, in order, times scale: rows [i0, i0 + TILE) of dq. */
static TARGET void N(finish)(const plan *a, int64_t head, int64_t tile, const void *sums, int64_t chunks) {
    matrix  dq = matrix_of(&a->dq, head, a->wide);
    int64_t i0 = tile * TILE, rows = a->queries - i0 < TILE ? a->queries - i0 : TILE;
    int64_t all = (a->queries + TILE - 1) / TILE * TILE * a->d;
    T      *first = (T *)(uintptr_t)sums + i0 * a->d;
    for (int64_t c = 1; c < chunks; c++)
        for (int64_t i = 0; i < rows * a->d; i++) first[i] += first[c * all + i];
    for (int64_t i = 0; i < rows * a->d; i++) first[i] *= (T)a->scale;
    N(store)(&dq, i0, rows, first, a->d);
}

#undef T
#undef V
#undef N
#undef MR
#undef TARGET
#undef FMADD
#undef FMADD1
#undef EXP
#undef LOG
