/* gemm_tile.h: tiles of MR rows and NV vectors of columns, and how B is packed for them; included
 * by gemm_template.h, whose words it uses, once for each width.
 *
 *   W(name)   decorates names */

enum { W(NR) = NV * N(VL) };

/* keep: where B goes meanwhile, packed, or NULL: stores and fetches wait for nobody here. */
static inline __attribute__((always_inline)) TARGET void W(tile)(const int height, int64_t k, const T *a, int64_t rs,
                                                                 int64_t ps, const T *b, int64_t bs, T *c, int64_t cs,
                                                                 bool add, int64_t stored, T *keep) {
    V        acc[MR][NV];
    const T *r[3] = {a, a + N(UNIT) * rs, a + 2 * N(UNIT) * rs};
    UNROLL for (int i = 0; i < height; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = (V){0};
    for (int64_t p = 0; p < k; p++) {
        V bv[NV];
        UNROLL for (int j = 0; j < NV; j++) memcpy(&bv[j], b + j * N(VL), sizeof(V));
        if (keep) {
            UNROLL for (int j = 0; j < W(NR); j += N(LINE)) __builtin_prefetch(b + AHEAD * bs + j);
            UNROLL for (int j = 0; j < NV; j++) memcpy(keep + j * N(VL), &bv[j], sizeof(V));
            keep += W(NR);
        }
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
    int64_t k, const T *a, int64_t rs, int64_t ps, const T *b, int64_t bs, T *c, int64_t cs, bool add, int64_t stored, \
        T *keep
#define TILE(height, keep) W(tile)(height, k, a, rs, ps, b, bs, c, cs, add, stored, keep)
enum { W(KEEPS) = sizeof(V) >= 32 && NV > 1 }; /* the code is long */
static TARGET void W(tile_keeping)(TILE_ARGS) { TILE(MR, W(KEEPS) ? keep : NULL); }
static TARGET void W(tile_3)(TILE_ARGS) { (void)keep, TILE(MR, NULL); }
static TARGET void W(tile_2)(TILE_ARGS) { (void)keep, TILE(2 * N(UNIT), NULL); }
static TARGET void W(tile_1)(TILE_ARGS) { (void)keep, TILE(N(UNIT), NULL); }

/* If the tile reaches beyond the columns of c, or these do not lie side by side, the tile is
 * computed in a copy. */
static void W(place)(int height, int64_t k, const void *a, int64_t rs, int64_t ps, const void *b, int64_t bs,
                     const cot__matrix *c, int64_t i, int64_t j, bool add, void *keep) {
    T      *to = (T *)c->data + i * c->row_stride + j * c->col_stride, out[MR * W(NR)];
    int64_t m = c->rows - i, n = c->cols - j;
    bool    inside = c->col_stride == 1 && n >= W(NR);
    void (*tile)(TILE_ARGS) = keep && W(KEEPS)  ? W(tile_keeping)
                              : height == MR      ? W(tile_3)
                              : height == N(UNIT) ? W(tile_1)
                                                  : W(tile_2);
    tile(k, a, rs, ps, b, bs, inside ? to : out, inside ? c->row_stride : W(NR), inside && add, m, keep);
    if (inside) return;
    m = m < height ? m : height, n = n < W(NR) ? n : W(NR);
    if (c->row_stride == 1 && !add) N(put_turned)(to, c->col_stride, out, W(NR), m, n);
    else
        for (int64_t r = 0; r < m; r++) N(put)(to + r * c->row_stride, c->col_stride, out + r * W(NR), n, add);
}
#undef TILE_ARGS
#undef TILE

static TARGET void W(turn_columns)(T *restrict to, const T *from, int64_t cs, int64_t k) {
    N(turn_panel)(to, from, cs, k, W(NR));
}
static TARGET void W(pack_b)(void *to, const void *from, int64_t cs, int64_t ps, int64_t n, int64_t k) {
    int64_t  whole = n / W(NR);
    const T *f = from;
    if (cs == 1) N(copy_panels)(to, f, ps, k, W(NR), whole);
    for (int64_t q = cs == 1 ? whole : 0; q * W(NR) < n; q++) {
        T *panel = (T *)to + q * k * W(NR);
        if (q < whole && ps == 1) W(turn_columns)(panel, f + q * W(NR) * cs, cs, k);
        else N(pack_edge)(panel, f + q * W(NR) * cs, cs, ps, n - q * W(NR), k, W(NR));
    }
}

#undef W
#undef NV
