/* fft_template.h: one instance for each working type and instruction set. T the type, N(name) its names, TARGET the instructions.
 *
 * Stockham's form: each pass reads one pair of arrays and writes the other, in order, with no bit reversal. The innermost loop runs
 * over `s` neighbours (rows side by side times what earlier passes have made), which the compiler vectorises. No sum depends on how
 * many rows go together, and multiply-adds are not contracted, so every instruction set gives the same bits. */

typedef struct N(pair) { T *re, *im; } N(pair);

/* ---- passes ------------------------------------------------------------------------------------------------------------- */

/* y[q + s(r p + k)] = w^(pk) Σ_j x[q + s(p + m j)] exp(-2πi jk/r), p < m = length left / r, w = root[step] */

#define PASS(NAME)                                                                                                           \
    TARGET static void N(NAME)(int64_t m, int64_t s, int64_t step, const T *restrict xr, const T *restrict xi,               \
                               T *restrict yr, T *restrict yi, const T *restrict wr, const T *restrict wi)
#define IN(j) (q + s * (p + m * (j)))
#define OUT(j) (q + s * (R * p + (j)))
/* y[j] = (a + ib) times the j-th root of this p */
#define TURNED(j, a, b)                                                                                                      \
    do {                                                                                                                     \
        T a_ = (a), b_ = (b);                                                                                                \
        yr[OUT(j)] = a_ * ur[j] - b_ * ui[j];                                                                                \
        yi[OUT(j)] = a_ * ui[j] + b_ * ur[j];                                                                                \
    } while (0)
#define ROOTS                                                                                                                \
    T ur[5], ui[5];                                                                                                          \
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
            T ar = xr[IN(0)] + xr[IN(2)], ai = xi[IN(0)] + xi[IN(2)], cr = xr[IN(0)] - xr[IN(2)], ci = xi[IN(0)] - xi[IN(2)];
            T br = xr[IN(1)] + xr[IN(3)], bi = xi[IN(1)] + xi[IN(3)], dr = xr[IN(1)] - xr[IN(3)], di = xi[IN(1)] - xi[IN(3)];
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
            T br = xr[IN(1)] + xr[IN(4)], bi = xi[IN(1)] + xi[IN(4)], dr = xr[IN(1)] - xr[IN(4)], di = xi[IN(1)] - xi[IN(4)];
            T cr = xr[IN(2)] + xr[IN(3)], ci = xi[IN(2)] + xi[IN(3)], er = xr[IN(2)] - xr[IN(3)], ei = xi[IN(2)] - xi[IN(3)];
            T fr = ar + c1 * br + c2 * cr, fi = ai + c1 * bi + c2 * ci, gr = ar + c2 * br + c1 * cr, gi = ai + c2 * bi + c1 * ci;
            T hr = s1 * dr + s2 * er, hi = s1 * di + s2 * ei, kr = s2 * dr - s1 * er, ki = s2 * di - s1 * ei;
            yr[OUT(0)] = ar + br + cr, yi[OUT(0)] = ai + bi + ci;
            TURNED(1, fr + hi, fi - hr);
            TURNED(2, gr + ki, gi - kr);
            TURNED(3, gr - ki, gi + kr);
            TURNED(4, fr - hi, fi + hr);
        }
    }
}

/* ---- a transform of length m, then of any length ------------------------------------------------------------------------ */

/* In *a, with *b as the other pair; they may come back exchanged. */
static void N(smooth)(const cot__fft_plan *p, int64_t lanes, N(pair) *a, N(pair) *b) {
    int64_t s = lanes, step = 1, left = p->m;
    for (int k = 0; k < p->factors; k++) {
        int     r = p->factor[k];
        int64_t m = left / r;
        N(pair) t = *a;
        (r == 2 ? N(pass2) : r == 3 ? N(pass3) : r == 4 ? N(pass4) : N(pass5))(m, s, step, a->re, a->im, b->re, b->im, p->root[0],
                                                                              p->root[1]);
        *a = *b, *b = t;
        s *= r, step *= r, left = m;
    }
}

/* row j of every lane times c[j]: (ar + i ai)(cr + i ci) */
TARGET static void N(times)(int64_t n, int64_t lanes, T *restrict ar, T *restrict ai, const T *restrict cr, const T *restrict ci) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t q = j * lanes; q < (j + 1) * lanes; q++) {
            T re = ar[q] * cr[j] - ai[q] * ci[j];
            ai[q] = ar[q] * ci[j] + ai[q] * cr[j];
            ar[q] = re;
        }
}

static void N(exchange)(N(pair) *a) {
    T *t = a->re;
    a->re = a->im, a->im = t;
}

/* Σ x[j] w^(jk) = c[k] Σ (x[j] c[j]) conj(c[k-j]) with c[j] = w^(j²/2), because jk = (j² + k² - (k-j)²) / 2: a convolution. */
static void N(chirped)(const cot__fft_plan *p, int64_t lanes, N(pair) *a, N(pair) *b) {
    size_t rest = (size_t)((p->m - p->n) * lanes) * sizeof(T);
    N(times)(p->n, lanes, a->re, a->im, p->chirp[0], p->chirp[1]);
    memset(a->re + p->n * lanes, 0, rest);
    memset(a->im + p->n * lanes, 0, rest);
    N(smooth)(p, lanes, a, b);
    N(times)(p->m, lanes, a->re, a->im, p->kernel[0], p->kernel[1]);
    N(exchange)(a); /* backward: real and imaginary parts exchange their roles */
    N(smooth)(p, lanes, a, b);
    N(exchange)(a);
    N(times)(p->n, lanes, a->re, a->im, p->chirp[0], p->chirp[1]);
}

static void N(transform)(const cot__fft_plan *p, int64_t lanes, bool inverse, N(pair) *a, N(pair) *b) {
    if (inverse) N(exchange)(a);
    (p->chirped ? N(chirped) : N(smooth))(p, lanes, a, b);
    if (inverse) N(exchange)(a);
}

/* ---- tables ------------------------------------------------------------------------------------------------------------- */

/* exp(-2πi j/n) for j < count <= n. Where the circle's symmetries are the table's, they save most of the sines. */
static void N(fill_roots)(int64_t n, int64_t count, T *c, T *s) {
    int64_t exact = count - 1;
    double  re, im;
    if (count == n) exact = n % 8 == 0 ? n / 8 : n % 4 == 0 ? n / 4 : n / 2;
    for (int64_t j = 0; j <= exact; j++) {
        cot__fft_root(j, n, &re, &im);
        c[j] = (T)re, s[j] = (T)im;
    }
    if (count != n) return;
    if (n % 8 == 0)
        for (int64_t j = n / 8 + 1; j <= n / 4; j++) c[j] = -s[n / 4 - j], s[j] = -c[n / 4 - j];
    if (n % 4 == 0)
        for (int64_t j = n / 4 + 1; j <= n / 2; j++) c[j] = -c[n / 2 - j], s[j] = s[n / 2 - j];
    for (int64_t j = n / 2 + 1; j < n; j++) c[j] = c[n - j], s[j] = -s[n - j];
}

/* The plan's tables have their places; `buffer` has room for two pairs of m. */
static void N(fill_tables)(const cot__fft_plan *p, void *buffer) {
    T *memory = buffer;
    N(fill_roots)(p->m, p->m, p->root[0], p->root[1]);
    if (p->twist[0]) N(fill_roots)(2 * p->n, p->n + 1, p->twist[0], p->twist[1]);
    if (!p->chirped) return;
    N(pair) a = {memory, memory + p->m}, b = {memory + 2 * p->m, memory + 3 * p->m};
    T *cr = p->chirp[0], *ci = p->chirp[1], *kr = p->kernel[0], *ki = p->kernel[1];
    memset(a.re, 0, 2 * (size_t)p->m * sizeof(T));
    for (int64_t j = 0, square = 0; j < p->n; j++) { /* square = j² mod 2n, so that the angle stays exact */
        double re, im;
        cot__fft_root(square, 2 * p->n, &re, &im);
        square = (square + 2 * j + 1) % (2 * p->n);
        cr[j] = (T)re, ci[j] = (T)im;
        a.re[j] = cr[j], a.im[j] = -ci[j];
        if (j) a.re[p->m - j] = cr[j], a.im[p->m - j] = -ci[j];
    }
    N(smooth)(p, 1, &a, &b);
    for (int64_t k = 0; k < p->m; k++) kr[k] = a.re[k] / (T)p->m, ki[k] = a.im[k] / (T)p->m;
}

/* ---- real rows ---------------------------------------------------------------------------------------------------------- */

/* Z, the transform of x[2j] + i x[2j+1], h long, to X[k], k <= h:
 * X = E + w^k O with 2E = Z[k] + conj Z[h-k], 2iO = Z[k] - conj Z[h-k] */
TARGET static void N(split)(const cot__fft_plan *p, int64_t lanes, const N(pair) *z, const N(pair) *out) {
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
TARGET static void N(merge)(const cot__fft_plan *p, int64_t lanes, const N(pair) *x, const N(pair) *out) {
    const T *wr = p->twist[0], *wi = p->twist[1];
    int64_t  h = p->n;
    for (int64_t k = 0; k < h; k++) {
        const T *ar = x->re + k * lanes, *ai = x->im + k * lanes, *br = x->re + (h - k) * lanes, *bi = x->im + (h - k) * lanes;
        T *restrict zr = out->re + k * lanes, *restrict zi = out->im + k * lanes;
        INDEPENDENT
        for (int64_t q = 0; q < lanes; q++) {
            T er = ar[q] + br[q], ei = ai[q] - bi[q], dr = ar[q] - br[q], di = ai[q] + bi[q];
            zr[q] = er - (di * wr[k] - dr * wi[k]);
            zi[q] = ei + (dr * wr[k] + di * wi[k]);
        }
    }
}

/* ---- a group of rows ---------------------------------------------------------------------------------------------------- */

TARGET static void N(scale)(int64_t n, T f, T *restrict v) {
    for (int64_t i = 0; f != 1 && i < n; i++) v[i] *= f;
}

/* n elements of each row, every step-th from `first`, into lanes or back; part: 0 real, 1 imaginary. */
static void N(load)(const cot__fft_work *w, int64_t row, int64_t lanes, int64_t n, int64_t first, int64_t step, int part, T *to) {
    bool    pairs = w->job.kind != COT__FFT_REAL;
    int64_t stride = w->x.stride[w->job.axis], at = first * stride + (pairs && part ? w->x.stride[w->x.ndim - 1] : 0);
    for (int64_t r = 0; r < lanes && n; r++)
        cot__strip(WORKING, w->x.dtype)(to + r, lanes, cot__at(&w->x, cot__fft_row(&w->x, w->job.axis, pairs, row + r) + at),
                                        step * stride, n);
}

static void N(store)(const cot__fft_work *w, int64_t row, int64_t lanes, int64_t n, int64_t first, int64_t step, int part,
                     const T *from) {
    bool    pairs = w->job.kind != COT__FFT_HALF;
    int64_t stride = w->z.stride[w->job.axis], at = first * stride + (pairs && part ? w->z.stride[w->z.ndim - 1] : 0);
    for (int64_t r = 0; r < lanes && n; r++)
        cot__strip(w->z.dtype, WORKING)(cot__at(&w->z, cot__fft_row(&w->z, w->job.axis, pairs, row + r) + at), step * stride,
                                        from + r, lanes, n);
}

static void N(complex_group)(const cot__fft_work *w, int64_t row, int64_t lanes, N(pair) a, N(pair) b) {
    int64_t n = w->job.n;
    T       f = w->job.scaled ? (T)1 / (T)n : (T)1;
    N(load)(w, row, lanes, n, 0, 1, 0, a.re);
    N(load)(w, row, lanes, n, 0, 1, 1, a.im);
    N(transform)(&w->plan, lanes, w->job.inverse, &a, &b);
    N(scale)(n * lanes, f, a.re);
    N(scale)(n * lanes, f, a.im);
    N(store)(w, row, lanes, n, 0, 1, 0, a.re);
    N(store)(w, row, lanes, n, 0, 1, 1, a.im);
}

/* Bins that are their own mirror images by `ends`, the others by `inner`. */
static void N(weigh)(const cot__fft_work *w, int64_t lanes, T ends, T inner, N(pair) a) {
    int64_t n = w->job.n, bins = n / 2 + 1, last = n % 2 ? bins : bins - 1; /* inner bins: 1 … last - 1 */
    T      *part[2] = {a.re, a.im};
    for (int k = 0; k < 2; k++) {
        N(scale)(lanes, ends, part[k]);
        if (last > 1) N(scale)((last - 1) * lanes, inner, part[k] + lanes);
        if (last < bins && last > 0) N(scale)(lanes, ends, part[k] + last * lanes);
    }
}

static void N(real_group)(const cot__fft_work *w, int64_t row, int64_t lanes, N(pair) a, N(pair) b) {
    int64_t n = w->job.n, bins = n / 2 + 1;
    T       f = w->job.scaled ? (T)1 / (T)n : (T)1;
    if (n % 2) {
        N(load)(w, row, lanes, n, 0, 1, 0, a.re);
        memset(a.im, 0, (size_t)(n * lanes) * sizeof(T));
        N(transform)(&w->plan, lanes, false, &a, &b);
    } else {
        N(load)(w, row, lanes, n / 2, 0, 2, 0, a.re);
        N(load)(w, row, lanes, n / 2, 1, 2, 0, a.im);
        N(transform)(&w->plan, lanes, false, &a, &b);
        N(split)(&w->plan, lanes, &a, &b);
        a = b;
    }
    N(weigh)(w, lanes, f, w->job.scaled ? 2 * f : 1, a);
    /* bins that are their own mirror images are real, whatever rounding or a NaN made of them */
    memset(a.im, 0, (size_t)lanes * sizeof(T));
    if (n % 2 == 0) memset(a.im + (bins - 1) * lanes, 0, (size_t)lanes * sizeof(T));
    N(store)(w, row, lanes, bins, 0, 1, 0, a.re);
    N(store)(w, row, lanes, bins, 0, 1, 1, a.im);
}

static void N(half_group)(const cot__fft_work *w, int64_t row, int64_t lanes, N(pair) a, N(pair) b) {
    int64_t n = w->job.n, bins = n / 2 + 1;
    T       f = w->job.scaled ? (T)1 / (T)n : (T)1;
    N(load)(w, row, lanes, bins, 0, 1, 0, a.re);
    N(load)(w, row, lanes, bins, 0, 1, 1, a.im);
    N(weigh)(w, lanes, f, w->job.scaled ? f : (T)0.5, a); /* each inner bin stands for itself and its mirror image */
    memset(a.im, 0, (size_t)lanes * sizeof(T));
    if (n % 2) {
        for (int64_t k = 1; k < bins; k++)
            for (int64_t q = 0; q < lanes; q++) {
                a.re[(n - k) * lanes + q] = a.re[k * lanes + q];
                a.im[(n - k) * lanes + q] = -a.im[k * lanes + q];
            }
        N(transform)(&w->plan, lanes, true, &a, &b);
        N(store)(w, row, lanes, n, 0, 1, 0, a.re);
    } else {
        memset(a.im + (bins - 1) * lanes, 0, (size_t)lanes * sizeof(T));
        N(merge)(&w->plan, lanes, &a, &b);
        N(transform)(&w->plan, lanes, true, &b, &a);
        N(store)(w, row, lanes, n / 2, 0, 2, 0, b.re);
        N(store)(w, row, lanes, n / 2, 1, 2, 0, b.im);
    }
}

static void N(group)(const cot__fft_work *w, int64_t row, int64_t lanes, void *buffer) {
    int64_t size = (int64_t)(w->room / sizeof(T)) / 4;
    T      *m = buffer;
    N(pair) a = {m, m + size}, b = {m + 2 * size, m + 3 * size};
    if (w->job.kind == COT__FFT_COMPLEX) N(complex_group)(w, row, lanes, a, b);
    else if (w->job.kind == COT__FFT_REAL) N(real_group)(w, row, lanes, a, b);
    else N(half_group)(w, row, lanes, a, b);
}

#undef PASS
#undef IN
#undef OUT
#undef TURNED
#undef ROOTS
#undef T
#undef N
#undef TARGET
#undef WORKING
