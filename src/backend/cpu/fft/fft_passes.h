/* fft_passes.h: the loops of Fourier transforms, one instance for each working type and instruction
 * set: T the type, TYPED(name) what is the type's, N(name) what is the instance's, TARGET the
 * instructions.
 *
 * Stockham's form: each pass reads one pair of arrays and writes the other, in order, with no bit
 * reversal. The innermost loop runs over `s` neighbours (rows side by side times what earlier
 * passes have made), which the compiler vectorises. No sum depends on how many rows go together,
 * and multiply-adds are not contracted, so every instruction set gives the same bits. */

/* ---- passes ---------------------------------------------------------------------------------- */

/* y[q + s(r p + k)] = w^(pk) Σ_j x[q + s(p + m j)] exp(-2πi jk/r), p < m = length left / r, w =
 * root[step] */

#define PASS(NAME)                                                                                                     \
    TARGET static void N(NAME)(int64_t m, int64_t s, int64_t step, const T *restrict xr, const T *restrict xi,         \
                               T *restrict yr, T *restrict yi, const T *restrict wr, const T *restrict wi)
#define IN(j) (q + s * (p + m * (j)))
#define OUT(j) (q + s * (R * p + (j)))
/* y[j] = (a + ib) times the j-th root of this p */
#define TURNED(j, a, b)                                                                                                \
    do {                                                                                                               \
        T a_ = (a), b_ = (b);                                                                                          \
        yr[OUT(j)] = a_ * ur[j] - b_ * ui[j];                                                                          \
        yi[OUT(j)] = a_ * ui[j] + b_ * ur[j];                                                                          \
    } while (0)
#define ROOTS                                                                                                          \
    T ur[5], ui[5];                                                                                                    \
    for (int64_t j = 1; j < R; j++) ur[j] = wr[j * p * step], ui[j] = wi[j * p * step]

PASS(pass2) {
    enum { R = 2 };
    for (int64_t p = 0; p < m; p++) {
        ROOTS;
        INDEPENDENT
        for (int64_t q = 0; q < s; q++) {
            T ar = xr[IN(0)], ai = xi[IN(0)], br = xr[IN(1)], bi = xi[IN(1)];
            yr[OUT(0)] = ar + br, yi[OUT(0)] = ai + bi;
            TURNED(1, ar - br, ai - bi);
        }
    }
}

PASS(pass3) {
    enum { R = 3 };
    const T h = (T)0.86602540378443864676; /* sin 60° */
    for (int64_t p = 0; p < m; p++) {
        ROOTS;
        INDEPENDENT
        for (int64_t q = 0; q < s; q++) {
            T ar = xr[IN(0)], ai = xi[IN(0)];
            T tr = xr[IN(1)] + xr[IN(2)], ti = xi[IN(1)] + xi[IN(2)];
            T dr = h * (xr[IN(1)] - xr[IN(2)]), di = h * (xi[IN(1)] - xi[IN(2)]);
            T cr = ar - (T)0.5 * tr, ci = ai - (T)0.5 * ti;
            yr[OUT(0)] = ar + tr, yi[OUT(0)] = ai + ti;
            TURNED(1, cr + di, ci - dr);
            TURNED(2, cr - di, ci + dr);
        }
    }
}

PASS(pass4) {
    enum { R = 4 };
    for (int64_t p = 0; p < m; p++) {
        ROOTS;
        INDEPENDENT
        for (int64_t q = 0; q < s; q++) {
            T ar = xr[IN(0)] + xr[IN(2)], ai = xi[IN(0)] + xi[IN(2)], cr = xr[IN(0)] - xr[IN(2)],
              ci = xi[IN(0)] - xi[IN(2)];
            T br = xr[IN(1)] + xr[IN(3)], bi = xi[IN(1)] + xi[IN(3)], dr = xr[IN(1)] - xr[IN(3)],
              di       = xi[IN(1)] - xi[IN(3)];
            yr[OUT(0)] = ar + br, yi[OUT(0)] = ai + bi;
            TURNED(1, cr + di, ci - dr);
            TURNED(2, ar - br, ai - bi);
            TURNED(3, cr - di, ci + dr);
        }
    }
}

PASS(pass5) {
    enum { R = 5 };
    const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410; /* cos 72°, cos 144° */
    const T s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;  /* sin 72°, sin 144° */
    for (int64_t p = 0; p < m; p++) {
        ROOTS;
        INDEPENDENT
        for (int64_t q = 0; q < s; q++) {
            T ar = xr[IN(0)], ai = xi[IN(0)];
            T br = xr[IN(1)] + xr[IN(4)], bi = xi[IN(1)] + xi[IN(4)], dr = xr[IN(1)] - xr[IN(4)],
              di = xi[IN(1)] - xi[IN(4)];
            T cr = xr[IN(2)] + xr[IN(3)], ci = xi[IN(2)] + xi[IN(3)], er = xr[IN(2)] - xr[IN(3)],
              ei = xi[IN(2)] - xi[IN(3)];
            T fr = ar + c1 * br + c2 * cr, fi = ai + c1 * bi + c2 * ci, gr = ar + c2 * br + c1 * cr,
              gi = ai + c2 * bi + c1 * ci;
            T hr = s1 * dr + s2 * er, hi = s1 * di + s2 * ei, kr = s2 * dr - s1 * er, ki = s2 * di - s1 * ei;
            yr[OUT(0)] = ar + br + cr, yi[OUT(0)] = ai + bi + ci;
            TURNED(1, fr + hi, fi - hr);
            TURNED(2, gr + ki, gi - kr);
            TURNED(3, gr - ki, gi + kr);
            TURNED(4, fr - hi, fi + hr);
        }
    }
}

/* row j of every lane times c[j]: (ar + i ai)(cr + i ci) */
TARGET static void N(times)(int64_t n, int64_t lanes, T *restrict ar, T *restrict ai, const T *restrict cr,
                            const T *restrict ci) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t q = j * lanes; q < (j + 1) * lanes; q++) {
            T re = ar[q] * cr[j] - ai[q] * ci[j];
            ai[q] = ar[q] * ci[j] + ai[q] * cr[j];
            ar[q] = re;
        }
}

/* ---- real rows ------------------------------------------------------------------------------- */

/* Z, the transform of x[2j] + i x[2j+1], h long, to X[k], k <= h:
 * X = E + w^k O with 2E = Z[k] + conj Z[h-k], 2iO = Z[k] - conj Z[h-k] */
TARGET static void N(split)(const cot__fft_plan *p, int64_t lanes, const TYPED(pair) *z, const TYPED(pair) *out) {
    const T *wr = p->twist[0], *wi = p->twist[1];
    int64_t  h = p->n;
    for (int64_t k = 0; k <= h; k++) {
        int64_t  i = k % h * lanes, j = (h - k) % h * lanes;
        const T *ar = z->re + i, *ai = z->im + i, *br = z->re + j, *bi = z->im + j;
        T *restrict xr = out->re + k * lanes, *restrict xi = out->im + k * lanes;
        INDEPENDENT
        for (int64_t q = 0; q < lanes; q++) {
            T er = ar[q] + br[q], ei = ai[q] - bi[q], or = ai[q] + bi[q], oi = br[q] - ar[q];
            xr[q] = (T)0.5 * (er + (or * wr[k] - oi * wi[k]));
            xi[q] = (T)0.5 * (ei + (or * wi[k] + oi * wr[k]));
        }
    }
}

/* The other way: Z[k] = (X[k] + conj X[h-k]) + i (X[k] - conj X[h-k]) conj w^k, k < h */
TARGET static void N(merge)(const cot__fft_plan *p, int64_t lanes, const TYPED(pair) *x, const TYPED(pair) *out) {
    const T *wr = p->twist[0], *wi = p->twist[1];
    int64_t  h = p->n;
    for (int64_t k = 0; k < h; k++) {
        const T *ar = x->re + k * lanes, *ai = x->im + k * lanes, *br = x->re + (h - k) * lanes,
                *bi    = x->im + (h - k) * lanes;
        T *restrict zr = out->re + k * lanes, *restrict zi = out->im + k * lanes;
        INDEPENDENT
        for (int64_t q = 0; q < lanes; q++) {
            T er = ar[q] + br[q], ei = ai[q] - bi[q], dr = ar[q] - br[q], di = ai[q] + bi[q];
            zr[q] = er - (di * wr[k] - dr * wi[k]);
            zi[q] = ei + (dr * wr[k] + di * wi[k]);
        }
    }
}

TARGET static void N(scale)(int64_t n, T f, T *restrict v) {
    for (int64_t i = 0; f != 1 && i < n; i++) v[i] *= f;
}

static const TYPED(loops) N(loops) = {{N(pass2), N(pass3), N(pass4), N(pass5)}, N(times), N(split), N(merge), N(scale)};

#undef PASS
#undef IN
#undef OUT
#undef TURNED
#undef ROOTS
#undef T
#undef TYPED
#undef N
#undef TARGET
