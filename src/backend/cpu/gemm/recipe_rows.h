/* recipe_rows.h: the kernels of recipe_rows.c; included there for each float type T and width of
 * registers BYTES. */

static TARGET void N(row)(const void *f, const void *y, const void *s, int n, void *to, bool add) {
    typedef T vector __attribute__((vector_size(BYTES)));
    enum { WIDE = BYTES / sizeof(T) };
    const T *from = y, x = *(const T *)f, scale = *(const T *)s;
    T       *z = to;
    vector   v, w;
    int      k = 0;
    for (; k + WIDE <= n; k += WIDE) {
        memcpy(&v, from + k, sizeof v);
        v = (x * v + (T)0) * scale;
        if (add) {
            memcpy(&w, z + k, sizeof w);
            v = w + v;
        }
        memcpy(z + k, &v, sizeof v);
    }
    for (; k < n; k++) {
        T one = (x * from[k] + (T)0) * scale;
        z[k] = add ? z[k] + one : one;
    }
}

/* Two at a time, because the chains of one would wait for their own additions. */
static inline __attribute__((always_inline)) TARGET void N(pair)(T x, const T *y, const T *other, bool squared,
                                                                 T sum[2]) {
    typedef T vector __attribute__((vector_size(BYTES)));
    enum { WIDE = BYTES / sizeof(T), CHAINS = LANES / WIDE };
    typedef T quarter __attribute__((vector_size(16)));
    vector  chain[2][CHAINS], v;
    quarter low, high;
    UNROLL for (int g = 0; g < 2; g++)
        /* -0 + v is v, of every v */
        UNROLL for (int c = 0; c < CHAINS; c++) chain[g][c] = -(vector){0};
    for (int i = 0; i < COT__BLOCK; i += LANES)
        UNROLL for (int g = 0; g < 2; g++)
            UNROLL for (int c = 0; c < CHAINS; c++) {
                memcpy(&v, (g ? other : y) + i + c * WIDE, sizeof v);
                v = x * v;
                chain[g][c] += squared ? v * v : v + (T)0; /* the square of -0 is 0 already */
            }
    UNROLL for (int g = 0; g < 2; g++) {
        UNROLL for (int half = CHAINS / 2; half > 0; half /= 2)
            UNROLL for (int c = 0; c < half; c++) chain[g][c] += chain[g][c + half];
        memcpy(&low, &chain[g][0], sizeof low);
        memcpy(&high, (const char *)&chain[g][0] + BYTES - sizeof high, sizeof high);
        if (BYTES == 32) low += high;
        sum[g] = FOLDED(low);
    }
}

static TARGET void N(leaves)(const void *f, const void *y, int count, bool squared, void *sums) {
    const T *from = y, x = *(const T *)f;
    for (int k = 0; k < count; k += 2, from += 2 * COT__BLOCK) {
        T two[2];
        if (squared) N(pair)(x, from, from + (k + 1 < count ? COT__BLOCK : 0), true, two);
        else N(pair)(x, from, from + (k + 1 < count ? COT__BLOCK : 0), false, two);
        memcpy((T *)sums + k, two, (k + 1 < count ? 2 : 1) * sizeof(T));
    }
}

#undef T
#undef N
#undef FOLDED
