/* leaf_template.h: sums over contiguous runs, leaf by leaf, and over columns, for one float type
 * and one width of registers; included by leaves.c for each pair.
 *
 *   T           the type
 *   V, Q        a vector of T; one of 16 bytes
 *   FOLDED(v)   the sum of the elements of Q, by halves
 *   N(name)     decorates names
 *   TARGET      the function attribute
 *
 * A leaf has LANES chains: term i goes to chain i % LANES, and chains are folded by halves. A term
 * is x[i], or of a product x[i] y[i], rounded. */

enum { N(VL) = sizeof(V) / sizeof(T), N(CHAINS) = LANES / N(VL), N(SIDE) = 8 / N(CHAINS) };

/* The sum of the chains, by halves. */
COT__INLINED TARGET T N(folded)(V *chain) {
    enum { PARTS_OF = sizeof(V) / 16 };
    Q part[PARTS_OF];
    UNROLL for (int half = N(CHAINS) / 2; half > 0; half /= 2)
        UNROLL for (int c = 0; c < half; c++) chain[c] = chain[c] + chain[c + half];
    memcpy(part, chain, sizeof(V));
    UNROLL for (int half = PARTS_OF / 2; half > 0; half /= 2)
        UNROLL for (int c = 0; c < half; c++) part[c] = part[c] + part[c + half];
    return FOLDED(part[0]);
}

/* Terms i … i + VL - 1. */
COT__INLINED TARGET V N(terms)(const bool product, const T *x, const T *y, int64_t i) {
    V u, v;
    memcpy(&u, x + i, sizeof u);
    if (!product) return u;
    memcpy(&v, y + i, sizeof v);
    return u * v;
}

/* `side` whole leaves side by side, because the chains of one wait for their own additions. */
COT__INLINED TARGET void N(whole)(const bool product, const int side, const T *x, const T *y, T *sums) {
    V chain[8][N(CHAINS)];
    UNROLL for (int s = 0; s < side; s++)
        /* -0 + v is v, of every v */
        UNROLL for (int c = 0; c < N(CHAINS); c++) chain[s][c] = -(V){0};
    for (int i = 0; i < COT__BLOCK; i += LANES)
        UNROLL for (int s = 0; s < side; s++)
            UNROLL for (int c = 0; c < N(CHAINS); c++)
                chain[s][c] = chain[s][c] + N(terms)(product, x, y, s * COT__BLOCK + i + c * N(VL));
    UNROLL for (int s = 0; s < side; s++) sums[s] = N(folded)(chain[s]);
}

/* Products go leaf by leaf: they load twice for each addition, the processor looks far enough ahead
 * to begin the next leaf meanwhile, and memory is slow to give two places of a page in turn. */
COT__INLINED TARGET void N(any_leaves)(const bool product, const T *x, const T *y, int64_t count, T *sums) {
    const int side = product ? 1 : N(SIDE);
    for (; count >= side; count -= side, x += side * COT__BLOCK, sums += side) {
        N(whole)(product, side, x, y, sums);
        if (product) y += side * COT__BLOCK;
    }
    for (; count > 0; count--, x += COT__BLOCK, sums++) {
        N(whole)(product, 1, x, y, sums);
        if (product) y += COT__BLOCK;
    }
}

/* All chains have terms: n is LANES or more. */
COT__INLINED TARGET T N(full)(const bool product, const T *x, const T *y, int n) {
    V   chain[N(CHAINS)];
    T   lane[LANES];
    int i = LANES;
    UNROLL for (int c = 0; c < N(CHAINS); c++) chain[c] = N(terms)(product, x, y, c * N(VL));
    for (; i + LANES <= n; i += LANES)
        UNROLL for (int c = 0; c < N(CHAINS); c++) chain[c] = chain[c] + N(terms)(product, x, y, i + c * N(VL));
    if (i < n) {
        memcpy(lane, chain, sizeof lane);
        for (int l = 0; i + l < n; l++) lane[l] = lane[l] + (product ? x[i + l] * y[i + l] : x[i + l]);
        memcpy(chain, lane, sizeof lane);
    }
    return N(folded)(chain);
}

COT__INLINED TARGET void N(any_last)(const bool product, const T *x, const T *y, int n, T *sum) {
    T lane[LANES];
    if (n >= LANES) {
        *sum = N(full)(product, x, y, n);
        return;
    }
    for (int l = 0; l < n; l++) lane[l] = product ? x[l] * y[l] : x[l];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half && l + half < n; l++) lane[l] = lane[l] + lane[l + half];
    *sum = lane[0];
}

static TARGET void N(sums)(const void *x, int64_t count, void *sums) { N(any_leaves)(false, x, x, count, sums); }
static TARGET void N(sum)(const void *x, int n, void *sum) { N(any_last)(false, x, x, n, sum); }
static TARGET void N(dots)(const void *x, const void *y, int64_t count, void *sums) {
    N(any_leaves)(true, x, y, count, sums);
}
static TARGET void N(dot)(const void *x, const void *y, int n, void *sum) { N(any_last)(true, x, y, n, sum); }

static TARGET void N(add)(void *a, const void *b, int n) {
    T *restrict       to = a;
    const T *restrict from = b;
    for (int i = 0; i < n; i++) to[i] = to[i] + from[i];
}

/* A leaf of each of VL columns, lanes in registers: n rows, LANES at least. */
COT__INLINED TARGET void N(columns_of)(const T *x, int64_t rs, int n, T *sums) {
    V   lane[LANES], row;
    int i = LANES;
    UNROLL for (int l = 0; l < LANES; l++) memcpy(&lane[l], x + l * rs, sizeof row);
    for (; i + LANES <= n; i += LANES)
        UNROLL for (int l = 0; l < LANES; l++) {
            memcpy(&row, x + (i + l) * rs, sizeof row);
            lane[l] = lane[l] + row;
        }
    UNROLL for (int l = 0; l < LANES; l++) {
        if (i + l >= n) break;
        memcpy(&row, x + (i + l) * rs, sizeof row);
        lane[l] = lane[l] + row;
    }
    UNROLL for (int half = LANES / 2; half > 0; half /= 2)
        UNROLL for (int l = 0; l < half; l++) lane[l] = lane[l] + lane[l + half];
    memcpy(sums, lane, sizeof row);
}

/* The same of fewer rows than there are lanes. */
static TARGET void N(short_columns_of)(const T *x, int64_t rs, int n, T *sums) {
    V lane[LANES];
    for (int l = 0; l < n; l++) memcpy(&lane[l], x + l * rs, sizeof *lane);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half && l + half < n; l++) lane[l] = lane[l] + lane[l + half];
    memcpy(sums, lane, sizeof *lane);
}

/* The last columns are done together with some before them. False: there are too few. */
static TARGET bool N(columns)(const void *x, int64_t rs, int n, int w, void *sums) {
    if (w < N(VL)) return false;
    for (int j = 0; j < w; j += N(VL)) {
        if (j + N(VL) > w) j = w - N(VL);
        if (n < LANES) N(short_columns_of)((const T *)x + j, rs, n, (T *)sums + j);
        else N(columns_of)((const T *)x + j, rs, n, (T *)sums + j);
    }
    return true;
}

#undef T
#undef V
#undef Q
#undef FOLDED
#undef N
#undef TARGET
