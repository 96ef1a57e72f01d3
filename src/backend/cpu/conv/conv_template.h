/* conv_template.h: the inner loops of convolution for one float type and one instruction set;
 * included by conv.c for each pair.
 *
 *   T, TI     the type, and an integer of its size
 *   V         a vector of T
 *   N(name)   decorates names
 *   TARGET    the function attribute
 *   FMADD     the multiply-add
 *   STORE_SOME(p, v, n)   stores the first n elements of v
 *   LOAD_SOME(p, mask), DIRECT   may be a load of the elements whose bits are set in a vector, else
 *                                0, that touches no others; and true
 *   ROWS      the height of the largest tile
 *   ACROSS    may be how many vectors of channels a tile has where these are in lanes; then
 *   SHUFFLE(a, b, at)   takes elements of two vectors, numbered through, and
 *   LOAD_FEW(p, n)      loads n elements, else 0, and touches no others
 *   WIDE      the most taps of a tile of the gradient with respect to the weight
 *
 * Lanes run along the last axis of the places, or, ACROSS, over channels. */

typedef TI N(bits) __attribute__((vector_size(sizeof(V))));

#ifndef LOAD_SOME
#define LOAD_SOME(p, mask) (V){0}
#define DIRECT false
#endif

/* LANES: the chains of a weight's sum, of which a vector holds some. */
enum { N(VL) = sizeof(V) / sizeof(T), N(LANES) = CHUNK_BYTES / sizeof(T), N(rows) = ROWS, N(direct) = DIRECT };
#ifdef ACROSS
enum { N(across) = ACROSS };
#else
enum { N(across) = 0 };
#endif

/* ---- out[m, place] = Σ over taps weight[tap][m] · source[place + offset[tap]] ---------------- */

/* Writes a tile, done[row][chunk] from chunk `index` on. A function of its own, because the tile
 * has many copies. */
static __attribute__((noinline)) TARGET void N(put)(const int rows, const int vecs, const cot__sweep *s, int64_t index,
                                                    const V *done, T *out) {
    for (int j = 0; j < vecs; j++, index++) {
        const cot__chunk *c = &s->chunks[index];
        for (int i = 0; i < rows; i++) {
            T       *plane = out + i * s->plane;
            V        v = done[i * vecs + j];
            const T *t = (const T *)&done[i * vecs + j];
            if (c->lanes == N(VL) && s->out_step == 1) memcpy(plane + c->out, &v, sizeof v);
            else if (c->lanes && s->out_step == 1) STORE_SOME(plane + c->out, v, c->lanes);
            else if (c->lanes)
                for (int l = 0; l < c->lanes; l++) plane[c->out + l * s->out_step] = t[l];
            else
                for (int l = 0; l < N(VL); l++)
                    if (s->places[index * N(VL) + l] >= 0) plane[s->places[index * N(VL) + l]] = t[l];
        }
    }
}

/* One tile: `rows` channels of the result times `vecs` chunks of places. */
static inline __attribute__((always_inline)) TARGET void
N(tile)(const int rows, const int vecs, const cot__sweep *s, const T *weight, const T *source, T *out, int64_t index) {
    V       acc[ROWS][8];
    int64_t first = s->whole ? 0 : s->chunks[index].first, last = s->whole ? s->taps : s->chunks[index].last;
    const T *at[8];
    UNROLL for (int j = 0; j < vecs; j++) {
        at[j] = source + s->chunks[index + j].at;
        if (s->chunks[index + j].first < first) first = s->chunks[index + j].first;
        if (s->chunks[index + j].last > last) last = s->chunks[index + j].last;
        UNROLL for (int i = 0; i < rows; i++) acc[i][j] = (V){0};
    }
    for (int64_t p = first; p < last; p++) {
        V x[8];
        UNROLL for (int j = 0; j < vecs; j++) memcpy(&x[j], at[j] + s->offset[p], sizeof(V));
        UNROLL for (int i = 0; i < rows; i++) {
            V w = weight[p * rows + i] - (V){0};
            UNROLL for (int j = 0; j < vecs; j++) acc[i][j] = FMADD(w, x[j], acc[i][j]);
        }
    }
    V done[16];
    /* A sum that underflowed to -0 becomes 0, as it would by a tap that reads padding. */
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int j = 0; j < vecs; j++) done[i * vecs + j] = acc[i][j] + (V){0};
    N(put)(rows, vecs, s, index, done, out);
}

#define PANEL(rows, vecs)                                                                                              \
    static TARGET void N(panel_##rows)(const cot__sweep *s, const T *weight, const T *source, T *out, int64_t c,       \
                                       int64_t end) {                                                                  \
        for (; c + vecs <= end; c += vecs) N(tile)(rows, vecs, s, weight, source, out, c);                             \
        for (; c < end; c++) N(tile)(rows, 1, s, weight, source, out, c);                                              \
    }
#if ROWS == 16
PANEL(16, 1)
PANEL(8, 2)
PANEL(4, 4)
#elif ROWS == 4
PANEL(4, 3)
#endif
#if ROWS > 1
PANEL(2, 4)
PANEL(1, 8)
#else
PANEL(1, 1)
#endif
#undef PANEL

/* ---- the same with channels in lanes --------------------------------------------------------- */

#ifdef ACROSS

/* Turns a square of VL vectors: interleaving vectors half of them apart, as often as VL has bits,
 * exchanges rows and columns. */
static inline __attribute__((always_inline)) TARGET void N(turn)(V a[N(VL)]) {
    N(bits) low, high;
    for (int l = 0; l < N(VL); l++) {
        low[l] = l / 2 + l % 2 * N(VL);
        high[l] = low[l] + N(VL) / 2;
    }
    UNROLL for (int half = N(VL) / 2, stage = half; stage; stage /= 2) {
        V b[N(VL)];
        UNROLL for (int i = 0; i < half; i++) {
            b[2 * i] = SHUFFLE(a[i], a[i + half], low);
            b[2 * i + 1] = SHUFFLE(a[i], a[i + half], high);
        }
        UNROLL for (int i = 0; i < N(VL); i++) a[i] = b[i];
    }
}

/* Writes the channels of one vector at the places of a chunk, done[place]. */
static __attribute__((noinline)) TARGET void N(put_across)(const cot__sweep *s, int64_t index, const V *done, T *out) {
    const cot__chunk *c = &s->chunks[index];
    for (int first = 0; first < PLACES; first += N(VL)) {
        int some = PLACES - first < N(VL) ? PLACES - first : N(VL);
        V   square[N(VL)];
        UNROLL for (int l = 0; l < N(VL); l++) square[l] = done[first + l < PLACES ? first + l : PLACES - 1];
        N(turn)(square);
        UNROLL for (int i = 0; i < N(VL); i++) STORE_SOME(out + i * s->plane + c->out + first, square[i], some);
    }
}

/* One tile: PLACES neighbours times `vecs` vectors of channels. */
static inline __attribute__((always_inline)) TARGET void
N(tile_across)(const int vecs, const cot__sweep *s, const T *weight, const T *source, T *out, int64_t index) {
    V        acc[ACROSS][PLACES];
    const T *at = source + s->chunks[index].at;
    UNROLL for (int j = 0; j < vecs; j++)
        UNROLL for (int i = 0; i < PLACES; i++) acc[j][i] = (V){0};
    for (int64_t p = s->whole ? 0 : s->chunks[index].first, last = s->whole ? s->taps : s->chunks[index].last; p < last;
         p++) {
        const T *x = at + s->offset[p];
        V        w[ACROSS];
        UNROLL for (int j = 0; j < vecs; j++) memcpy(&w[j], weight + (j * s->taps + p) * N(VL), sizeof(V));
        UNROLL for (int i = 0; i < PLACES; i++) {
            V v = x[i] - (V){0};
            UNROLL for (int j = 0; j < vecs; j++) acc[j][i] = FMADD(w[j], v, acc[j][i]);
        }
    }
    for (int j = 0; j < vecs; j++) {
        V done[PLACES];
        UNROLL for (int i = 0; i < PLACES; i++) done[i] = acc[j][i] + (V){0};
        N(put_across)(s, index, done, out + j * N(VL) * s->plane);
    }
}

/* Channels [m, m_end), chunks [c, c_end), for panels of VL channels and chunks of PLACES. */
static TARGET void N(run_across)(const cot__sweep *s, const T *weights, const T *source, T *out, int64_t m,
                                 int64_t m_end, int64_t c, int64_t c_end) {
    for (int vecs; m < m_end; m += vecs * N(VL)) {
        const T *w = weights + m * s->taps;
        T       *z = out + m * s->plane;
        vecs = m + ACROSS * N(VL) <= m_end ? ACROSS : 1;
        for (int64_t i = c; i < c_end; i++)
            if (vecs == ACROSS) N(tile_across)(ACROSS, s, w, source, z, i);
            else N(tile_across)(1, s, w, source, z, i);
    }
}

#endif

/* Channels [m, m_end) of the result, chunks [c, c_end), of one image and group. */
static void N(run)(const cot__sweep *s, const void *weights, const void *source, void *out, int64_t m, int64_t m_end,
                   int64_t c, int64_t c_end) {
#ifdef ACROSS
    if (s->across) {
        N(run_across)(s, weights, source, out, m, m_end, c, c_end);
        return;
    }
#endif
    for (int rows; m < m_end; m += rows) {
        const T *w = (const T *)weights + m * s->taps;
        T       *z = (T *)out + m * s->plane;
        rows = panel_rows(ROWS, m_end - m);
        switch (rows) {
#if ROWS == 16
        case 16: N(panel_16)(s, w, source, z, c, c_end); break;
        case 8: N(panel_8)(s, w, source, z, c, c_end); break;
#endif
#if ROWS > 1
        case 4: N(panel_4)(s, w, source, z, c, c_end); break;
        case 2: N(panel_2)(s, w, source, z, c, c_end); break;
#endif
        default: N(panel_1)(s, w, source, z, c, c_end);
        }
    }
}

/* ---- weight[m, tap] = Σ over images and places of z[m, place] · x[place + offset[tap]] ------- */

/* Chunks [c, c_end) of one image, at least one. direct: z is read where it lies. */
static inline __attribute__((always_inline)) TARGET void N(add_image)(const int rows, const int taps, const bool direct,
                                                                      const cot__correlation *j, const T *x, const T *z,
                                                                      const int64_t *offset, int64_t c, int64_t c_end,
                                                                      V acc[4][6]) {
    do {
        const T *at = x + j->chunks[c].at, *from = z + (direct ? j->chunks[c].out : c * N(LANES));
        V        zv[4];
        N(bits)  mask;
        memcpy(&mask, (const char *)j->masks + c * CHUNK_BYTES, sizeof mask);
        UNROLL for (int i = 0; i < rows; i++)
            if (direct) zv[i] = LOAD_SOME(from + i * j->z_channel, mask);
            else memcpy(&zv[i], from + i * j->z_channel, sizeof(V));
        UNROLL for (int t = 0; t < taps; t++) {
            N(bits) raw;
            memcpy(&raw, at + offset[t], sizeof raw);
            V xv = (V)(raw & mask);
            UNROLL for (int i = 0; i < rows; i++) acc[i][t] = FMADD(zv[i], xv, acc[i][t]);
        }
    } while (++c < c_end);
}

/* Adds to sums[row][tap], `all` taps a row: the chains that one vector holds of LANES for each;
 * they are summed at the end. There is at least one image and one chunk, so the compiler need not
 * keep anything for the case without. */
static inline __attribute__((always_inline)) TARGET void N(correlate)(const int rows, const int taps, int all,
                                                                      const cot__correlation *j, const T *x, const T *z,
                                                                      const int64_t *offset, int64_t n, int64_t n_end,
                                                                      int64_t c, int64_t c_end, T *sums) {
    V acc[4][6];
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int t = 0; t < taps; t++) memcpy(&acc[i][t], sums + (i * all + t) * N(LANES), sizeof(V));
    do {
        const T *image = x + n * j->x_image, *of = z + n * j->z_image;
        if (DIRECT && rows == 4 && j->direct) N(add_image)(rows, taps, true, j, image, of, offset, c, c_end, acc);
        else N(add_image)(rows, taps, false, j, image, of, offset, c, c_end, acc);
    } while (++n < n_end);
    UNROLL for (int i = 0; i < rows; i++)
        UNROLL for (int t = 0; t < taps; t++) memcpy(sums + (i * all + t) * N(LANES), &acc[i][t], sizeof(V));
}

#define CORRELATE(rows, taps)                                                                                          \
    static TARGET void N(correlate_##rows##_##taps)(int all, const cot__correlation *j, const T *x, const T *z,        \
                                                    const int64_t *offset, int64_t n, int64_t n_end, int64_t c,        \
                                                    int64_t c_end, T *sums) {                                          \
        N(correlate)(rows, taps, all, j, x, z, offset, n, n_end, c, c_end, sums);                                      \
    }
#define CORRELATE_ROWS(X) X(4) X(2) X(1)
#if WIDE == 6
#define EACH_WIDTH(rows)                                                                                               \
    CORRELATE(rows, 1) CORRELATE(rows, 2) CORRELATE(rows, 3) CORRELATE(rows, 4) CORRELATE(rows, 5) CORRELATE(rows, 6)
#elif WIDE == 3
#define EACH_WIDTH(rows) CORRELATE(rows, 1) CORRELATE(rows, 2) CORRELATE(rows, 3)
#elif WIDE == 2
#define EACH_WIDTH(rows) CORRELATE(rows, 1) CORRELATE(rows, 2)
#else
#define EACH_WIDTH(rows) CORRELATE(rows, 1)
#endif
CORRELATE_ROWS(EACH_WIDTH)
#undef EACH_WIDTH

/* The tile of `rows` channels and `taps` taps: at most WIDE taps and one vector of the chunks at a
 * time. Vectors in which no chunk has places are left out. */
static void N(correlate_any)(int rows, int taps, const cot__correlation *j, const void *x, const void *z,
                             const int64_t *offset, int64_t n, int64_t n_end, int64_t c, int64_t c_end, void *sums) {
    typedef void tile_fn(int, const cot__correlation *, const T *, const T *, const int64_t *, int64_t, int64_t,
                         int64_t, int64_t, T *);
#if WIDE == 6
#define EACH_WIDTH(rows)                                                                                               \
    {N(correlate_##rows##_1), N(correlate_##rows##_2), N(correlate_##rows##_3),                                        \
     N(correlate_##rows##_4), N(correlate_##rows##_5), N(correlate_##rows##_6)},
    static tile_fn *const tiles[][6] = {CORRELATE_ROWS(EACH_WIDTH)};
#elif WIDE == 3
#define EACH_WIDTH(rows) {N(correlate_##rows##_1), N(correlate_##rows##_2), N(correlate_##rows##_3)},
    static tile_fn *const tiles[][3] = {CORRELATE_ROWS(EACH_WIDTH)};
#elif WIDE == 2
#define EACH_WIDTH(rows) {N(correlate_##rows##_1), N(correlate_##rows##_2)},
    static tile_fn *const tiles[][2] = {CORRELATE_ROWS(EACH_WIDTH)};
#else
#define EACH_WIDTH(rows) {N(correlate_##rows##_1)},
    static tile_fn *const tiles[][1] = {CORRELATE_ROWS(EACH_WIDTH)};
#endif
    tile_fn *const *tile = tiles[rows == 4 ? 0 : rows == 2 ? 1 : 2];
    for (int t = 0, some; t < taps; t += some) {
        some = taps - t > WIDE ? WIDE : taps - t;
        cot__correlation part = *j;
        for (int l = 0; l < j->used; l += N(VL), part.masks = (const char *)part.masks + sizeof(V))
            tile[some - 1](taps, &part, (const T *)x + l, (const T *)z + l, offset + t, n, n_end, c, c_end,
                           (T *)sums + t * N(LANES) + l);
    }
}

#undef EACH_WIDTH

/* ---- the same with channels in lanes, one lane of the chunks at a time ----------------------- */

#ifdef ACROSS

/* Copies the chunks of ACROSS vectors of channels, `channel` apart, of which each has `used`
 * places: to[place][chunk][channel]. */
static TARGET void N(cut_across)(const cot__sweep *s, int used, const void *z, int64_t channel, void *to) {
    const int64_t lane = s->chunk_count * ACROSS * N(VL);
    for (int j = 0; j < ACROSS; j++)
        for (int64_t c = 0; c < s->chunk_count; c++)
            for (int first = 0; first < used; first += N(VL)) {
                int      some = used - first < N(VL) ? used - first : N(VL);
                const T *from = (const T *)z + j * N(VL) * channel + s->chunks[c].out + first;
                T       *at = (T *)to + first * lane + (c * ACROSS + j) * N(VL);
                V        square[N(VL)];
                UNROLL for (int l = 0; l < N(VL); l++) square[l] = LOAD_FEW(from + l * channel, some);
                N(turn)(square);
                UNROLL for (int l = 0; l < N(VL); l++)
                    if (l < some) memcpy(at + l * lane, &square[l], sizeof(V));
            }
}

/* Adds to sums[tap][channel] what one lane of the chunks [c, c_end) of some images gives. */
static inline __attribute__((always_inline)) TARGET void N(lane)(const int taps, const cot__correlation *j, const T *x,
                                                                 const T *z, const int64_t *offset, int64_t images,
                                                                 int64_t c, int64_t c_end, T *sums) {
    V acc[6][ACROSS];
    UNROLL for (int t = 0; t < taps; t++)
        UNROLL for (int k = 0; k < ACROSS; k++) memcpy(&acc[t][k], sums + (t * ACROSS + k) * N(VL), sizeof(V));
    for (; images > 0; images--, x += j->x_image, z += j->z_image) {
        const T *from = z + c * ACROSS * N(VL);
        int64_t  i = c;
        do {
            const T *at = x + j->chunks[i].at;
            V        zv[ACROSS];
            UNROLL for (int k = 0; k < ACROSS; k++) memcpy(&zv[k], from + k * N(VL), sizeof(V));
            UNROLL for (int t = 0; t < taps; t++) {
                V xv = at[offset[t]] - (V){0};
                UNROLL for (int k = 0; k < ACROSS; k++) acc[t][k] = FMADD(zv[k], xv, acc[t][k]);
            }
            from += ACROSS * N(VL);
        } while (++i < c_end);
    }
    UNROLL for (int t = 0; t < taps; t++)
        UNROLL for (int k = 0; k < ACROSS; k++) memcpy(sums + (t * ACROSS + k) * N(VL), &acc[t][k], sizeof(V));
}

static TARGET void N(lane_any)(int taps, const cot__correlation *j, const void *x, const void *z, const int64_t *offset,
                               int64_t images, int64_t c, int64_t c_end, void *sums) {
    switch (taps) {
    case 6: N(lane)(6, j, x, z, offset, images, c, c_end, sums); break;
    case 5: N(lane)(5, j, x, z, offset, images, c, c_end, sums); break;
    case 4: N(lane)(4, j, x, z, offset, images, c, c_end, sums); break;
    case 3: N(lane)(3, j, x, z, offset, images, c, c_end, sums); break;
    case 2: N(lane)(2, j, x, z, offset, images, c, c_end, sums); break;
    default: N(lane)(1, j, x, z, offset, images, c, c_end, sums);
    }
}

#else

/* no one calls them */
static void N(cut_across)(const cot__sweep *s, int used, const void *z, int64_t channel, void *to) {
    (void)s, (void)used, (void)z, (void)channel, (void)to;
}
static void N(lane_any)(int taps, const cot__correlation *j, const void *x, const void *z, const int64_t *offset,
                        int64_t images, int64_t c, int64_t c_end, void *sums) {
    (void)taps, (void)j, (void)x, (void)z, (void)offset, (void)images, (void)c, (void)c_end, (void)sums;
}

#endif

#undef CORRELATE
#undef CORRELATE_ROWS
#undef T
#undef TI
#undef V
#undef N
#undef ROWS
#undef ACROSS
#undef SHUFFLE
#undef WIDE
#undef TARGET
#undef FMADD
#undef STORE_SOME
#undef LOAD_SOME
#undef LOAD_FEW
#undef DIRECT
