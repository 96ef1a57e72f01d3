/* pool_template.h: pooling of one plane for one type and one instruction set; included by pool.c
 * for each pair.
 *
 *   T             the type
 *   LOWEST        its least value
 *   N(name)       decorates names
 *   TARGET        the function attribute
 *   SUMS          asks for the kernels that add
 *   MAX_ROW_2X2, PUT_ROW_2X2   may name rows of the commonest window, written for the
 *                              instruction set
 *
 * Rows of windows are handled tap by tap, so that the inner loop runs along the row. Taps come in
 * row-major order and only a larger element replaces the present one, so the first wins. */

#define LARGER(a, b) (((a) > (b)) | (((a) != (a)) & ((b) == (b))))

static inline __attribute__((always_inline)) TARGET void N(max_tap)(const T *restrict x, int64_t step, T *restrict z,
                                                                    int32_t *restrict index, int32_t tap, int64_t n) {
    for (int64_t w = 0; w < n; w++) {
        T    v = x[w * step];
        bool take = LARGER(v, z[w]);
        index[w] = take ? tap : index[w];
        z[w] = take ? v : z[w];
    }
}

#ifndef MAX_ROW_2X2
#define MAX_ROW_2X2 N(max_row_2x2)
#define PUT_ROW_2X2 N(put_row_2x2)
#define PLAIN_ROWS
#endif

#ifdef PLAIN_ROWS
/* Windows of 2 by 2 side by side, no padding: all four at once, columns first. A tie between
 * columns goes to the upper one. */
static TARGET void N(max_row_2x2)(const T *restrict a, const T *restrict b, T *restrict z, int32_t *restrict index,
                                  int64_t n) {
    for (int64_t w = 0; w < n; w++) {
        T       left = a[2 * w], right = a[2 * w + 1], left_low = b[2 * w], right_low = b[2 * w + 1];
        int32_t l = LARGER(left_low, left), r = LARGER(right_low, right);
        left = l ? left_low : left;
        right = r ? right_low : right;
        int32_t same = !LARGER(left, right) & !LARGER(right, left);
        int32_t take = LARGER(right, left) | (same & (l > r));
        z[w] = take ? right : left;
        index[w] = take ? 2 * r + 1 : 2 * l;
    }
}
#endif

static TARGET void N(max_plane)(const cot__pool *g, const T *x, T *z, int32_t *index) {
    bool by_two = g->window[0] == 1 && g->x[0] == 1 && g->window[1] == 2 && g->window[2] == 2 && g->stride[1] == 2 &&
                  g->stride[2] == 2 && !g->before[1] && !g->before[2] && 2 * g->z[1] <= g->x[1] &&
                  2 * g->z[2] <= g->x[2];
    span taps = taps_of(g);
    for (int64_t d = 0; d < g->z[0]; d++)
        for (int64_t h = 0; h < g->z[1]; h++, z += g->z[2], index += g->z[2]) {
            if (by_two) {
                MAX_ROW_2X2(x + 2 * h * g->x[2], x + (2 * h + 1) * g->x[2], z, index, g->z[2]);
                continue;
            }
            span sd = span_of(g, 0, d), sh = span_of(g, 1, h);
            for (int64_t w = 0; w < g->z[2]; w++) {
                z[w] = LOWEST;
                index[w] = (int32_t)((sd.first * g->window[1] + sh.first) * g->window[2] + span_of(g, 2, w).first);
            }
            for (int64_t kd = sd.first; kd < sd.last; kd++)
                for (int64_t kh = sh.first; kh < sh.last; kh++)
                    for (int64_t kw = taps.first; kw < taps.last; kw++) {
                        span     row = places_of(g, kw);
                        const T *from = x + ((sd.start + kd) * g->x[1] + sh.start + kh) * g->x[2] +
                                        row.first * g->stride[2] + kw - g->before[2];
                        int32_t  tap = (int32_t)((kd * g->window[1] + kh) * g->window[2] + kw);
                        int64_t  n = row.last - row.first;
                        if (g->stride[2] == 1) N(max_tap)(from, 1, z + row.first, index + row.first, tap, n);
                        else if (g->stride[2] == 2) N(max_tap)(from, 2, z + row.first, index + row.first, tap, n);
                        else N(max_tap)(from, g->stride[2], z + row.first, index + row.first, tap, n);
                    }
        }
}

#undef LARGER

#ifdef SUMS

#ifdef PLAIN_ROWS
static TARGET void N(put_row_2x2)(const T *restrict z, const int32_t *restrict index, T *restrict a, T *restrict b,
                                  int64_t n) {
    for (int64_t w = 0; w < n; w++) {
        T       v = z[w];
        int32_t i = index[w];
        a[2 * w] = i == 0 ? v : 0;
        a[2 * w + 1] = i == 1 ? v : 0;
        b[2 * w] = i == 2 ? v : 0;
        b[2 * w + 1] = i == 3 ? v : 0;
    }
}
#endif

static TARGET void N(put_plane)(const cot__pool *g, const T *z, const int32_t *index, T *x) {
    bool by_two = g->window[0] == 1 && g->x[0] == 1 && g->window[1] == 2 && g->window[2] == 2 && g->stride[1] == 2 &&
                  g->stride[2] == 2 && !g->before[1] && !g->before[2] && 2 * g->z[1] == g->x[1] &&
                  2 * g->z[2] == g->x[2];
    if (by_two) {
        for (int64_t h = 0; h < g->z[1]; h++)
            PUT_ROW_2X2(z + h * g->z[2], index + h * g->z[2], x + 2 * h * g->x[2], x + (2 * h + 1) * g->x[2], g->z[2]);
        return;
    }
    uint64_t plane = (uint64_t)(g->x[0] * g->x[1] * g->x[2]);
    memset(x, 0, (size_t)plane * sizeof(T));
    for (int64_t d = 0; d < g->z[0]; d++)
        for (int64_t h = 0; h < g->z[1]; h++)
            for (int64_t w = 0; w < g->z[2]; w++, z++, index++) {
                int64_t at = element_of(g, d, h, w, *index);
                if ((uint64_t)at < plane) x[at] += *z;
            }
}

/* How many elements window w of a row counts. */
static inline T N(count)(const cot__pool *g, bool exclude, int64_t rows, int64_t w) {
    return (T)(rows * counted(g, exclude, 2, w));
}

static TARGET void N(avg_plane)(const cot__pool *g, bool exclude, const T *x, T *z) {
    span taps = taps_of(g);
    for (int64_t d = 0; d < g->z[0]; d++)
        for (int64_t h = 0; h < g->z[1]; h++, z += g->z[2]) {
            span    sd = span_of(g, 0, d), sh = span_of(g, 1, h);
            int64_t rows = counted(g, exclude, 0, d) * counted(g, exclude, 1, h);
            for (int64_t w = 0; w < g->z[2]; w++) z[w] = 0;
            for (int64_t kd = sd.first; kd < sd.last; kd++)
                for (int64_t kh = sh.first; kh < sh.last; kh++)
                    for (int64_t kw = taps.first; kw < taps.last; kw++) {
                        span              row = places_of(g, kw);
                        const T *restrict from = x + ((sd.start + kd) * g->x[1] + sh.start + kh) * g->x[2] +
                                                 row.first * g->stride[2] + kw - g->before[2];
                        T *restrict       to = z + row.first;
                        for (int64_t w = 0, n = row.last - row.first; w < n; w++) to[w] += from[w * g->stride[2]];
                    }
            for (int64_t w = 0; w < g->z[2]; w++) z[w] /= N(count)(g, exclude, rows, w);
        }
}

static TARGET void N(avg_unplane)(const cot__pool *g, bool exclude, const T *z, T *x) {
    T    share[COT__BLOCK];
    span taps = taps_of(g);
    memset(x, 0, (size_t)(g->x[0] * g->x[1] * g->x[2]) * sizeof(T));
    for (int64_t d = 0; d < g->z[0]; d++)
        for (int64_t h = 0; h < g->z[1]; h++, z += g->z[2])
            for (int64_t w0 = 0; w0 < g->z[2]; w0 += COT__BLOCK) {
                span    sd = span_of(g, 0, d), sh = span_of(g, 1, h);
                int64_t rows = counted(g, exclude, 0, d) * counted(g, exclude, 1, h),
                        end  = g->z[2] - w0 < COT__BLOCK ? g->z[2] : w0 + COT__BLOCK;
                for (int64_t w = w0; w < end; w++) share[w - w0] = z[w] / N(count)(g, exclude, rows, w);
                for (int64_t kd = sd.first; kd < sd.last; kd++)
                    for (int64_t kh = sh.first; kh < sh.last; kh++)
                        for (int64_t kw = taps.first; kw < taps.last; kw++) {
                            span    row = places_of(g, kw);
                            int64_t first = row.first > w0 ? row.first : w0, last = row.last < end ? row.last : end;
                            T      *to = x + ((sd.start + kd) * g->x[1] + sh.start + kh) * g->x[2] + kw - g->before[2];
                            for (int64_t w = first; w < last; w++) to[w * g->stride[2]] += share[w - w0];
                        }
            }
}

#endif

#undef T
#undef N
#undef LOWEST
#undef TARGET
#undef SUMS
#undef MAX_ROW_2X2
#undef PUT_ROW_2X2
#undef PLAIN_ROWS
