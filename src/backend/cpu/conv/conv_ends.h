/* conv_ends.h: what comes before and after the inner loops of convolution, for one float type and
 * every instruction set; included by conv.c for each type.
 *
 *   T         the type
 *   N(name)   decorates names */

/* Packs w[m][c][k] (given by strides) as panels of at most `most` rows, taps outermost, in the
 * order of the sweep. Is every weight finite? */
static bool N(pack)(const cot__sweep *s, void *to, const void *from, int most, int64_t m_count, int64_t m_stride,
                    int64_t c_stride) {
    T *z = to, probe = 0;
    for (int64_t m = 0, rows; m < m_count; m += rows) {
        rows = panel_rows(most, m_count - m);
        for (int64_t p = 0; p < s->taps; p++) {
            const T *w = (const T *)from + m * m_stride + s->channel[p] * c_stride + s->kernel[p];
            for (int64_t i = 0; i < rows; i++) {
                probe += w[i * m_stride] * 0;
                *z++ = w[i * m_stride];
            }
        }
    }
    return probe == 0;
}

/* out[row][tap] = the sum of the lanes, folded by halves; with `add` it is added to out. The halves
 * down to a vector of 16 bytes are vectors themselves. */
static void N(fold)(const void *sums, int rows, int taps, void *out, int64_t row_stride, bool add) {
    enum { LANES = CHUNK_BYTES / sizeof(T), SIDE = 16 / sizeof(T), VECTORS = LANES / SIDE };
    typedef T side __attribute__((vector_size(16)));
    for (int i = 0; i < rows * taps; i++) {
        T   *to = (T *)out + i / taps * row_stride + i % taps, sum;
        side v[VECTORS];
        memcpy(v, (const T *)sums + i * LANES, sizeof v);
        UNROLL for (int h = VECTORS / 2; h > 0; h /= 2)
            UNROLL for (int l = 0; l < h; l++) v[l] += v[l + h];
        if (SIDE == 4) sum = (v[0][0] + v[0][2 % SIDE]) + (v[0][1] + v[0][3 % SIDE]);
        else sum = v[0][0] + v[0][1];
        *to = add ? *to + sum : sum;
    }
}

/* out[row][tap] = sums[tap][row], or is added to. */
static void N(turn_sums)(const void *sums, int rows, int taps, void *out, int64_t row_stride, bool add) {
    for (int i = 0; i < rows; i++)
        for (int t = 0; t < taps; t++) {
            T v = ((const T *)sums)[t * rows + i], *to = (T *)out + i * row_stride + t;
            *to = add ? *to + v : v;
        }
}

#undef T
#undef N
