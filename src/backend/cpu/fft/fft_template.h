/* fft_template.h: Fourier transforms of groups of rows, one instance for each working type: T the
 * type, WORKING its dtype, TYPED(name) its names. The loops that run long come from fft_passes.h,
 * through a table: an instance for each instruction set. */

typedef struct TYPED(pair) { T *re, *im; } TYPED(pair);

typedef struct TYPED(loops) {
    /* 2 … 5 */
    void (*pass[4])(int64_t m, int64_t s, int64_t step, const T *xr, const T *xi, T *yr, T *yi, const T *wr,
                    const T *wi);
    void (*times)(int64_t n, int64_t lanes, T *ar, T *ai, const T *cr, const T *ci);
    void (*split)(const cot__fft_plan *p, int64_t lanes, const TYPED(pair) *z, const TYPED(pair) *out);
    void (*merge)(const cot__fft_plan *p, int64_t lanes, const TYPED(pair) *x, const TYPED(pair) *out);
    void (*scale)(int64_t n, T f, T *v);
} TYPED(loops);

static const TYPED(loops) *TYPED(loops_of)(const cot__fft_plan *p) { return p->loops; }

/* ---- a transform of length m, then of any length --------------------------------------------- */

/* In *a, with *b as the other pair; they may come back exchanged. */
static void TYPED(smooth)(const cot__fft_plan *p, int64_t lanes, TYPED(pair) *a, TYPED(pair) *b) {
    int64_t s = lanes, step = 1, left = p->m;
    for (int k = 0; k < p->factors; k++) {
        int         r = p->factor[k];
        int64_t     m = left / r;
        TYPED(pair) t = *a;
        TYPED(loops_of)(p)->pass[r - 2](m, s, step, a->re, a->im, b->re, b->im, p->root[0], p->root[1]);
        *a = *b, *b = t;
        s *= r, step *= r, left = m;
    }
}

static void TYPED(exchange)(TYPED(pair) *a) {
    T *t = a->re;
    a->re = a->im, a->im = t;
}

/* Σ x[j] w^(jk) = c[k] Σ (x[j] c[j]) conj(c[k-j]) with c[j] = w^(j²/2), because jk = (j² + k² -
 * (k-j)²) / 2: a convolution. */
static void TYPED(chirped)(const cot__fft_plan *p, int64_t lanes, TYPED(pair) *a, TYPED(pair) *b) {
    size_t rest = (size_t)((p->m - p->n) * lanes) * sizeof(T);
    TYPED(loops_of)(p)->times(p->n, lanes, a->re, a->im, p->chirp[0], p->chirp[1]);
    memset(a->re + p->n * lanes, 0, rest);
    memset(a->im + p->n * lanes, 0, rest);
    TYPED(smooth)(p, lanes, a, b);
    TYPED(loops_of)(p)->times(p->m, lanes, a->re, a->im, p->kernel[0], p->kernel[1]);
    TYPED(exchange)(a); /* backward: real and imaginary parts exchange their roles */
    TYPED(smooth)(p, lanes, a, b);
    TYPED(exchange)(a);
    TYPED(loops_of)(p)->times(p->n, lanes, a->re, a->im, p->chirp[0], p->chirp[1]);
}

static void TYPED(transform)(const cot__fft_plan *p, int64_t lanes, bool inverse, TYPED(pair) *a, TYPED(pair) *b) {
    if (inverse) TYPED(exchange)(a);
    (p->chirped ? TYPED(chirped) : TYPED(smooth))(p, lanes, a, b);
    if (inverse) TYPED(exchange)(a);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* exp(-2πi j/n) for j < count, n/2 < count <= n. Where the circle's symmetries are the table's,
 * they save most of the sines. */
__attribute__((cold)) static void TYPED(fill_roots)(int64_t n, int64_t count, T *c, T *s) {
    int64_t exact = n % 8 == 0 ? n / 8 : n % 4 == 0 ? n / 4 : n / 2;
    double  re, im;
    for (int64_t j = 0; j <= exact; j++) {
        cot__fft_root(j, n, &re, &im);
        c[j] = (T)re, s[j] = (T)im;
    }
    if (n % 8 == 0)
        for (int64_t j = n / 8 + 1; j <= n / 4; j++) c[j] = -s[n / 4 - j], s[j] = -c[n / 4 - j];
    if (n % 4 == 0)
        for (int64_t j = n / 4 + 1; j <= n / 2; j++) c[j] = -c[n / 2 - j], s[j] = s[n / 2 - j];
    for (int64_t j = n / 2 + 1; j < count; j++) c[j] = c[n - j], s[j] = -s[n - j];
}

/* The plan's tables have their places; `buffer` has room for two pairs of m. */
static void TYPED(fill_tables)(const cot__fft_plan *p, void *buffer) {
    T *memory = buffer;
    TYPED(fill_roots)(p->m, p->m, p->root[0], p->root[1]);
    if (p->twist[0]) TYPED(fill_roots)(2 * p->n, p->n + 1, p->twist[0], p->twist[1]);
    if (!p->chirped) return;
    TYPED(pair) a = {memory, memory + p->m}, b = {memory + 2 * p->m, memory + 3 * p->m};
    T *cr = p->chirp[0], *ci = p->chirp[1], *kr = p->kernel[0], *ki = p->kernel[1];
    memset(a.re, 0, 2 * (size_t)p->m * sizeof(T));
    for (int64_t j = 0, square = 0; j < p->n; j++) {
        /* square = j² mod 2n, so that the angle stays exact */
        double re, im;
        cot__fft_root(square, 2 * p->n, &re, &im);
        square = (square + 2 * j + 1) % (2 * p->n);
        cr[j] = (T)re, ci[j] = (T)im;
        a.re[j] = cr[j], a.im[j] = -ci[j];
        if (j) a.re[p->m - j] = cr[j], a.im[p->m - j] = -ci[j];
    }
    TYPED(smooth)(p, 1, &a, &b);
    for (int64_t k = 0; k < p->m; k++) kr[k] = a.re[k] / (T)p->m, ki[k] = a.im[k] / (T)p->m;
}

/* ---- a group of rows ------------------------------------------------------------------------- */

/* n elements of each row, every step-th from `first`, into lanes or back; part: 0 real, 1
 * imaginary. */
static void TYPED(load)(const cot__fft_work *w, int64_t row, int64_t lanes, int64_t n, int64_t first, int64_t step,
                        int part, T *to) {
    bool    pairs = w->job.kind != COT__FFT_REAL;
    int64_t stride = w->x.stride[w->job.axis], at = first * stride + (pairs && part ? w->x.stride[w->x.ndim - 1] : 0);
    for (int64_t r = 0; r < lanes && n; r++)
        cot__strip(WORKING, w->x.dtype)(
            to + r, lanes, cot__at(&w->x, cot__fft_row(&w->x, w->job.axis, pairs, row + r) + at), step * stride, n);
}

static void TYPED(store)(const cot__fft_work *w, int64_t row, int64_t lanes, int64_t n, int64_t first, int64_t step,
                         int part, const T *from) {
    bool    pairs = w->job.kind != COT__FFT_HALF;
    int64_t stride = w->z.stride[w->job.axis], at = first * stride + (pairs && part ? w->z.stride[w->z.ndim - 1] : 0);
    for (int64_t r = 0; r < lanes && n; r++)
        cot__strip(w->z.dtype, WORKING)(cot__at(&w->z, cot__fft_row(&w->z, w->job.axis, pairs, row + r) + at),
                                        step * stride, from + r, lanes, n);
}

static void TYPED(complex_group)(const cot__fft_work *w, int64_t row, int64_t lanes, TYPED(pair) a, TYPED(pair) b) {
    int64_t n = w->job.n;
    T       f = w->job.scaled ? (T)1 / (T)n : (T)1;
    TYPED(load)(w, row, lanes, n, 0, 1, 0, a.re);
    TYPED(load)(w, row, lanes, n, 0, 1, 1, a.im);
    TYPED(transform)(&w->plan, lanes, w->job.inverse, &a, &b);
    TYPED(loops_of)(&w->plan)->scale(n * lanes, f, a.re);
    TYPED(loops_of)(&w->plan)->scale(n * lanes, f, a.im);
    TYPED(store)(w, row, lanes, n, 0, 1, 0, a.re);
    TYPED(store)(w, row, lanes, n, 0, 1, 1, a.im);
}

/* Multiplies bins that are their own mirror images by `ends`, the others by `inner`. */
static void TYPED(weigh)(const cot__fft_work *w, int64_t lanes, T ends, T inner, TYPED(pair) a) {
    /* inner bins: 1 … last - 1 */
    int64_t n = w->job.n, bins = n / 2 + 1, last = n % 2 ? bins : bins - 1;
    T      *part[2] = {a.re, a.im};
    for (int k = 0; k < 2; k++) {
        TYPED(loops_of)(&w->plan)->scale(lanes, ends, part[k]);
        if (last > 1) TYPED(loops_of)(&w->plan)->scale((last - 1) * lanes, inner, part[k] + lanes);
        if (last < bins && last > 0) TYPED(loops_of)(&w->plan)->scale(lanes, ends, part[k] + last * lanes);
    }
}

static void TYPED(real_group)(const cot__fft_work *w, int64_t row, int64_t lanes, TYPED(pair) a, TYPED(pair) b) {
    int64_t n = w->job.n, bins = n / 2 + 1;
    T       f = w->job.scaled ? (T)1 / (T)n : (T)1;
    if (n % 2) {
        TYPED(load)(w, row, lanes, n, 0, 1, 0, a.re);
        memset(a.im, 0, (size_t)(n * lanes) * sizeof(T));
        TYPED(transform)(&w->plan, lanes, false, &a, &b);
    } else {
        TYPED(load)(w, row, lanes, n / 2, 0, 2, 0, a.re);
        TYPED(load)(w, row, lanes, n / 2, 1, 2, 0, a.im);
        TYPED(transform)(&w->plan, lanes, false, &a, &b);
        TYPED(loops_of)(&w->plan)->split(&w->plan, lanes, &a, &b);
        a = b;
    }
    TYPED(weigh)(w, lanes, f, w->job.scaled ? 2 * f : 1, a);
    /* bins that are their own mirror images are real, whatever rounding or a NaN made of them */
    memset(a.im, 0, (size_t)lanes * sizeof(T));
    if (n % 2 == 0) memset(a.im + (bins - 1) * lanes, 0, (size_t)lanes * sizeof(T));
    TYPED(store)(w, row, lanes, bins, 0, 1, 0, a.re);
    TYPED(store)(w, row, lanes, bins, 0, 1, 1, a.im);
}

static void TYPED(half_group)(const cot__fft_work *w, int64_t row, int64_t lanes, TYPED(pair) a, TYPED(pair) b) {
    int64_t n = w->job.n, bins = n / 2 + 1;
    T       f = w->job.scaled ? (T)1 / (T)n : (T)1;
    TYPED(load)(w, row, lanes, bins, 0, 1, 0, a.re);
    TYPED(load)(w, row, lanes, bins, 0, 1, 1, a.im);
    /* each inner bin stands for itself and its mirror image */
    TYPED(weigh)(w, lanes, f, w->job.scaled ? f : (T)0.5, a);
    memset(a.im, 0, (size_t)lanes * sizeof(T));
    if (n % 2) {
        for (int64_t k = 1; k < bins; k++)
            for (int64_t q = 0; q < lanes; q++) {
                a.re[(n - k) * lanes + q] = a.re[k * lanes + q];
                a.im[(n - k) * lanes + q] = -a.im[k * lanes + q];
            }
        TYPED(transform)(&w->plan, lanes, true, &a, &b);
        TYPED(store)(w, row, lanes, n, 0, 1, 0, a.re);
    } else {
        memset(a.im + (bins - 1) * lanes, 0, (size_t)lanes * sizeof(T));
        TYPED(loops_of)(&w->plan)->merge(&w->plan, lanes, &a, &b);
        TYPED(transform)(&w->plan, lanes, true, &b, &a);
        TYPED(store)(w, row, lanes, n / 2, 0, 2, 0, b.re);
        TYPED(store)(w, row, lanes, n / 2, 1, 2, 0, b.im);
    }
}

static void TYPED(group)(const cot__fft_work *w, int64_t row, int64_t lanes, void *buffer) {
    int64_t size = (int64_t)(w->room / sizeof(T)) / 4;
    T      *m = buffer;
    TYPED(pair) a = {m, m + size}, b = {m + 2 * size, m + 3 * size};
    if (w->job.kind == COT__FFT_COMPLEX) TYPED(complex_group)(w, row, lanes, a, b);
    else if (w->job.kind == COT__FFT_REAL) TYPED(real_group)(w, row, lanes, a, b);
    else TYPED(half_group)(w, row, lanes, a, b);
}

#undef T
#undef TYPED
#undef WORKING
