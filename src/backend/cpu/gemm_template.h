/* gemm_template.h: the matrix product for one float type and one instruction set; included by gemm.c for each pair.
 *
 * T is the type, N(name) decorates names, TARGET is the function attribute, V a vector of T, MR x (NV vectors) the tile held
 * in registers, FMADD(a, b, c) and FMADD1 the multiply-add on vectors and scalars: both fused or both not.
 *
 * The chain of an element c, in every function here: for each depth block of KC, t = 0, t = a*b + t over the block in order; the first
 * block gives c = t (or c + t when accumulating), each later one c = c + t. */

enum { N(VL) = sizeof(V) / sizeof(T), N(NR) = NV * N(VL), N(MC) = MR * (192 / MR) };

/* MR x NR tile over one depth block: a holds MR values, b NR values per step. */
static inline __attribute__((always_inline)) TARGET void N(tile)(int64_t k, const T *restrict a, const T *restrict b,
                                                                 V acc[MR][NV]) {
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) acc[i][j] = (V){0};
    for (int64_t p = 0; p < k; p++) {
        V bv[NV];
        UNROLL for (int j = 0; j < NV; j++) memcpy(&bv[j], b + p * N(NR) + j * N(VL), sizeof(V));
        UNROLL for (int i = 0; i < MR; i++) {
            V av = a[p * MR + i] - (V){0};
            UNROLL for (int j = 0; j < NV; j++) acc[i][j] = FMADD(av, bv[j], acc[i][j]);
        }
    }
}

/* A tile that lies wholly inside c, whose rows are contiguous. */
static TARGET void N(tile_inside)(int64_t k, const T *a, const T *b, T *c, int64_t row_stride, bool add) {
    V acc[MR][NV];
    N(tile)(k, a, b, acc);
    UNROLL for (int i = 0; i < MR; i++)
        UNROLL for (int j = 0; j < NV; j++) {
            T *p = c + i * row_stride + j * N(VL);
            V  t = acc[i][j];
            if (add) {
                V old;
                memcpy(&old, p, sizeof(V));
                t = old + t;
            }
            memcpy(p, &t, sizeof(V));
        }
}

/* A tile at an edge, or into a c of any strides: computed whole, stored in part. */
static TARGET void N(tile_edge)(int64_t k, const T *a, const T *b, const cot__matrix *c, int64_t i0, int64_t j0, bool add) {
    V acc[MR][NV];
    T out[MR][N(NR)];
    N(tile)(k, a, b, acc);
    memcpy(out, acc, sizeof(out));
    for (int64_t i = 0; i < MR && i0 + i < c->rows; i++)
        for (int64_t j = 0; j < N(NR) && j0 + j < c->cols; j++) {
            T *p = (T *)c->data + (i0 + i) * c->row_stride + (j0 + j) * c->col_stride;
            *p   = add ? *p + out[i][j] : out[i][j];
        }
}

/* Copies rows [i0, i0 + m) and depths [p0, p0 + k) into panels of `width` rows, depth outermost, the last one padded with zeros.
 * B is packed through its transpose. */
static void N(pack)(T *restrict to, const T *from, int64_t rs, int64_t ps, int64_t m, int64_t k, int width) {
    for (int64_t i0 = 0; i0 < m; i0 += width, to += width * k) {
        int      w = m - i0 < width ? (int)(m - i0) : width;
        const T *f = from + i0 * rs;
        if (rs == 1 && w == width)
            for (int64_t p = 0; p < k; p++) memcpy(to + p * width, f + p * ps, (size_t)width * sizeof(T));
        else
            for (int64_t p0 = 0; p0 < k; p0 += 16) /* a few depths at a time, so that the lines written stay near */
                for (int i = 0; i < width; i++)
                    for (int64_t p = p0; p < k && p < p0 + 16; p++) to[p * width + i] = i < w ? f[i * rs + p * ps] : 0;
    }
}

/* All tiles of a packed block of A (m rows from i0) with a packed block of B (n columns from j0). */
static void N(block)(int64_t k, const T *a, const T *b, const cot__matrix *c, int64_t i0, int64_t m, int64_t j0, int64_t n,
                     bool add) {
    for (int64_t j = 0; j < n; j += N(NR))
        for (int64_t i = 0; i < m; i += MR) {
            const T *ap = a + i * k, *bp = b + j * k;
            if (c->col_stride == 1 && i + MR <= m && j + N(NR) <= n)
                N(tile_inside)(k, ap, bp, (T *)c->data + (i0 + i) * c->row_stride + j0 + j, c->row_stride, add);
            else N(tile_edge)(k, ap, bp, c, i0 + i, j0 + j, add);
        }
}

static bool N(packed)(const cot_allocator *al, const cot__matrix *a, const cot__matrix *b, const cot__matrix *c, bool add) {
    int64_t n_most = c->cols < NC ? c->cols : NC, m_most = c->rows < N(MC) ? c->rows : N(MC);
    int64_t k_most = a->cols < KC ? a->cols : KC;
    int64_t n_room = (n_most + N(NR) - 1) / N(NR) * N(NR), m_room = (m_most + MR - 1) / MR * MR;
    size_t  bytes  = (size_t)((n_room + m_room) * k_most) * sizeof(T) + 64;
    void   *memory = cot__alloc(al, bytes);
    if (!memory) return false;
    T *bp = (T *)(void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63), *ap = bp + n_room * k_most;
    for (int64_t j = 0; j < c->cols; j += NC) {
        int64_t n = c->cols - j < NC ? c->cols - j : NC;
        for (int64_t p = 0; p < a->cols; p += KC) {
            int64_t k = a->cols - p < KC ? a->cols - p : KC;
            N(pack)(bp, (const T *)b->data + p * b->row_stride + j * b->col_stride, b->col_stride, b->row_stride, n, k, N(NR));
            for (int64_t i = 0; i < c->rows; i += N(MC)) {
                int64_t m = c->rows - i < N(MC) ? c->rows - i : N(MC);
                N(pack)(ap, (const T *)a->data + i * a->row_stride + p * a->col_stride, a->row_stride, a->col_stride, m, k, MR);
                N(block)(k, ap, bp, c, i, m, j, n, add || p > 0);
            }
        }
    }
    cot__free(al, memory, bytes);
    return true;
}

/* Without packing, b's rows contiguous: a row of c is a sum of rows of b, SPAN columns at a time. */
static TARGET void N(by_rows)(const cot__matrix *a, const cot__matrix *b, const cot__matrix *c, bool add) {
    T t[SPAN];
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j0 = 0; j0 < c->cols; j0 += SPAN)
            for (int64_t p0 = 0; p0 < a->cols; p0 += KC) {
                int64_t n = c->cols - j0 < SPAN ? c->cols - j0 : SPAN, end = a->cols - p0 < KC ? a->cols : p0 + KC;
                T      *to = (T *)c->data + i * c->row_stride + j0 * c->col_stride;
                for (int64_t j = 0; j < n; j++) t[j] = 0;
                for (int64_t p = p0; p < end; p++) {
                    T                 s = ((const T *)a->data)[i * a->row_stride + p * a->col_stride];
                    const T *restrict r = (const T *)b->data + p * b->row_stride + j0;
                    for (int64_t j = 0; j < n; j++) t[j] = FMADD1(s, r[j], t[j]);
                }
                for (int64_t j = 0; j < n; j++) to[j * c->col_stride] = add || p0 > 0 ? to[j * c->col_stride] + t[j] : t[j];
            }
}

/* Without packing, any strides: DOTS elements of a column of c at a time, as that many chains side by side. */
static TARGET void N(by_dots)(const cot__matrix *a, const cot__matrix *b, const cot__matrix *c, bool add) {
    for (int64_t j = 0; j < c->cols; j++)
        for (int64_t i0 = 0; i0 < c->rows; i0 += DOTS)
            for (int64_t p0 = 0; p0 < a->cols; p0 += KC) {
                int64_t  m = c->rows - i0 < DOTS ? c->rows - i0 : DOTS, end = a->cols - p0 < KC ? a->cols : p0 + KC;
                T        t[DOTS] = {0};
                const T *row[DOTS];
                for (int l = 0; l < DOTS; l++) row[l] = (const T *)a->data + (i0 + (l < m ? l : 0)) * a->row_stride;
                for (int64_t p = p0; p < end; p++) {
                    T s = ((const T *)b->data)[p * b->row_stride + j * b->col_stride];
                    UNROLL for (int l = 0; l < DOTS; l++) t[l] = FMADD1(row[l][p * a->col_stride], s, t[l]);
                }
                for (int64_t l = 0; l < m; l++) {
                    T *to = (T *)c->data + (i0 + l) * c->row_stride + j * c->col_stride;
                    *to   = add || p0 > 0 ? *to + t[l] : t[l];
                }
            }
}

/* c = a b with k >= 1 and c not empty. The product of transposes is the transposed product, bit for bit: a*b commutes. */
static bool N(gemm)(const cot_allocator *al, cot__matrix a, cot__matrix b, cot__matrix c, bool add) {
    bool small = c.rows == 1 || c.cols == 1 || c.rows * c.cols <= TINY / a.cols;
    if (small ? b.col_stride != 1 && (a.row_stride == 1 || c.rows == 1) : c.col_stride != 1 && c.row_stride == 1) {
        cot__matrix at = transposed(a);
        a              = transposed(b);
        b              = at;
        c              = transposed(c);
    }
    if (!small) return N(packed)(al, &a, &b, &c, add);
    if (b.col_stride == 1 && c.cols > 1) N(by_rows)(&a, &b, &c, add);
    else N(by_dots)(&a, &b, &c, add);
    return true;
}

#undef T
#undef V
#undef N
#undef MR
#undef NV
#undef TARGET
#undef FMADD
#undef FMADD1
