/* recipe_leaf.h: a leaf of a sum of f·y[i], or of the squares of these, none of which is ever in memory; included by recipe_leaf.c for each float
 * type T and width of registers BYTES. */

static inline __attribute__((always_inline)) TARGET T N(leaf)(T f, const T *y, bool squared) {
    typedef T vector __attribute__((vector_size(BYTES)));
    enum { WIDE = BYTES / sizeof(T), CHAINS = LANES / WIDE };
    vector chain[CHAINS], v;
    T      lane[LANES];
    UNROLL for (int c = 0; c < CHAINS; c++) {
        memcpy(&v, y + c * WIDE, sizeof v);
        v = f * v;
        chain[c] = squared ? v * v : v + (T)0; /* the square of -0 is 0 as it is */
    }
    for (int i = LANES; i < COT__BLOCK; i += LANES)
        UNROLL for (int c = 0; c < CHAINS; c++) {
            memcpy(&v, y + i + c * WIDE, sizeof v);
            v = f * v;
            chain[c] += squared ? v * v : v + (T)0;
        }
    memcpy(lane, chain, sizeof lane);
    UNROLL for (int l = 0; l < 8; l++) lane[l] += lane[l + 8];
    UNROLL for (int l = 0; l < 4; l++) lane[l] += lane[l + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

static TARGET T N(sum)(T f, const T *y) { return N(leaf)(f, y, false); }
static TARGET T N(squares)(T f, const T *y) { return N(leaf)(f, y, true); }

#undef T
#undef N
