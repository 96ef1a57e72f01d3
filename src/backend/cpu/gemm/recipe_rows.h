/* recipe_rows.h: the kernels of recipe_rows.c; included there for each float type T and width of
 * registers BYTES. AT_ONCE leaves are folded side by side. */

/* The numbers of a register, folded by halves. */
static inline __attribute__((always_inline)) TARGET T N(folded)(const void *from) {
    typedef T quarter __attribute__((vector_size(16)));
    enum { QUARTERS = BYTES / 16 };
    quarter v[QUARTERS];
    memcpy(v, from, BYTES);
    UNROLL for (int half = QUARTERS / 2; half > 0; half /= 2)
        UNROLL for (int k = 0; k < half; k++) v[k] += v[k + half];
    return FOLDED(v[0]);
}

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

/* AT_ONCE leaves at a time, because the chains of one would wait for their own additions; the last
 * of those that are there stands for the others. */
static inline __attribute__((always_inline)) TARGET void N(several)(const void *const *f, const void *const *y,
                                                                    int there, bool squared, T sums[AT_ONCE]) {
    typedef T vector __attribute__((vector_size(BYTES)));
    enum { WIDE = BYTES / sizeof(T), CHAINS = LANES / WIDE };
    vector   chain[AT_ONCE][CHAINS], v;
    const T *at[AT_ONCE];
    T        x[AT_ONCE];
    UNROLL for (int g = 0; g < AT_ONCE; g++) {
        x[g] = *(const T *)f[g < there ? g : there - 1];
        at[g] = y[g < there ? g : there - 1];
        /* -0 + v is v, of every v */
        UNROLL for (int c = 0; c < CHAINS; c++) chain[g][c] = -(vector){0};
    }
    for (int i = 0; i < COT__BLOCK; i += LANES)
        UNROLL for (int g = 0; g < AT_ONCE; g++)
            UNROLL for (int c = 0; c < CHAINS; c++) {
                memcpy(&v, at[g] + i + c * WIDE, sizeof v);
                v = x[g] * v;
                chain[g][c] += squared ? v * v : v + (T)0; /* the square of -0 is 0 already */
            }
    UNROLL for (int g = 0; g < AT_ONCE; g++) {
        UNROLL for (int half = CHAINS / 2; half > 0; half /= 2)
            UNROLL for (int c = 0; c < half; c++) chain[g][c] += chain[g][c + half];
        sums[g] = N(folded)(&chain[g][0]);
    }
}

static TARGET void N(leaves)(const void *const *f, const void *const *y, int count, bool squared, void *sums) {
    for (int k = 0; k < count; k += AT_ONCE) {
        T   some[AT_ONCE];
        int there = count - k < AT_ONCE ? count - k : AT_ONCE;
        if (squared) N(several)(f + k, y + k, there, true, some);
        else N(several)(f + k, y + k, there, false, some);
        memcpy((T *)sums + k, some, (size_t)there * sizeof(T));
    }
}

#undef T
#undef AT_ONCE
#undef N
#undef FOLDED
