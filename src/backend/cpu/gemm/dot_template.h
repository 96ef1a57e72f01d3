/* dot_template.h: sums of products of two contiguous runs, for one float type and one width of
 * registers; included by dot.c for each pair.
 *
 *   T         the type
 *   V, Q      a vector of T; one of 16 bytes
 *   FOLDED(v) the sum of the elements of Q, by halves
 *   N(name)   decorates names
 *   TARGET    the function attribute
 *
 * A leaf has the LANES chains of reduce_template.h: term i goes to chain i % LANES, and chains are
 * folded by halves. Products are rounded, so a leaf has the bits of a sum of products. */

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

/* `side` whole leaves side by side, because the chains of one wait for their own additions. */
COT__INLINED TARGET void N(whole)(const int side, const T *x, const T *y, T *sums) {
    V chain[8][N(CHAINS)], u, v;
    UNROLL for (int s = 0; s < side; s++)
        /* -0 + v is v, of every v */
        UNROLL for (int c = 0; c < N(CHAINS); c++) chain[s][c] = -(V){0};
    for (int i = 0; i < COT__BLOCK; i += LANES)
        UNROLL for (int s = 0; s < side; s++)
            UNROLL for (int c = 0; c < N(CHAINS); c++) {
                memcpy(&u, x + s * COT__BLOCK + i + c * N(VL), sizeof u);
                memcpy(&v, y + s * COT__BLOCK + i + c * N(VL), sizeof v);
                chain[s][c] = chain[s][c] + u * v;
            }
    UNROLL for (int s = 0; s < side; s++) sums[s] = N(folded)(chain[s]);
}

static TARGET void N(leaves)(const void *x, const void *y, int64_t count, void *sums) {
    const T *p = x, *q = y;
    T       *z = sums;
    for (; count >= N(SIDE); count -= N(SIDE), p += N(SIDE) * COT__BLOCK, q += N(SIDE) * COT__BLOCK, z += N(SIDE))
        N(whole)(N(SIDE), p, q, z);
    for (; count > 0; count--, p += COT__BLOCK, q += COT__BLOCK, z++) N(whole)(1, p, q, z);
}

/* A leaf of 1 <= n < COT__BLOCK terms. */
static TARGET void N(last)(const void *x, const void *y, int n, void *sum) {
    const T *p = x, *q = y;
    T        lane[LANES] = {0};
    int      used = n < LANES ? n : LANES, i = LANES;
    for (int l = 0; l < used; l++) lane[l] = p[l] * q[l];
    if (n >= 2 * LANES) {
        V chain[N(CHAINS)], u, v;
        memcpy(chain, lane, sizeof chain);
        for (; i + LANES <= n; i += LANES)
            UNROLL for (int c = 0; c < N(CHAINS); c++) {
                memcpy(&u, p + i + c * N(VL), sizeof u);
                memcpy(&v, q + i + c * N(VL), sizeof v);
                chain[c] = chain[c] + u * v;
            }
        memcpy(lane, chain, sizeof chain);
    }
    for (int l = 0; i + l < n; l++) lane[l] = lane[l] + p[i + l] * q[i + l];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half && l + half < used; l++) lane[l] = lane[l] + lane[l + half];
    *(T *)sum = lane[0];
}

#undef T
#undef V
#undef Q
#undef FOLDED
#undef N
#undef TARGET
