/* normalize_template.h: normalisation of rows of T. Included by normalize.c for each type and
 * instruction set.
 *
 *   T, V         element and a vector of VL of them
 *   U            the same vector at any address
 *   N(name)      the name with the suffix of this instance
 *   TARGET       an attribute
 *   TINY, HUGE_  variances outside of these need the careful path
 *
 * Every sum has the same lanes and the same order in all instances, so instruction sets do not
 * change bits. Rows longer than a CHUNK add up the chunks in f64. */

typedef struct N(stats) { T mean, r; } N(stats);

/* The sum of the lanes of two vectors, in halves: 4 + 4, 2 + 2, 1 + 1. By address: passing vectors
 * depends on the instruction set. */
static inline TARGET T N(lanes)(const V *a, const V *b) {
    V v = *a + *b;
#if VL == 8
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
#else
    return (v[0] + v[2]) + (v[1] + v[3]);
#endif
}

/* first: Σ (x - c), second: Σ (x - c)² over one chunk */
static inline TARGET void N(moments)(const T *x, T c, int64_t n, double *first, double *second) {
    V       a = {0}, b = {0}, p = {0}, q = {0}, centre = c - (V){0};
    T       s = 0, ss = 0;
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        V u = LOAD(x + i) - centre, v = LOAD(x + i + VL) - centre;
        a += u, b += v;
        p += u * u, q += v * v;
    }
    for (; i < n; i++) s += x[i] - c, ss += (x[i] - c) * (x[i] - c);
    *first += (double)(N(lanes)(&a, &b) + s);
    *second += (double)(N(lanes)(&p, &q) + ss);
}

static inline TARGET double N(total)(const T *x, int64_t n) {
    double total = 0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t len = n - at < CHUNK ? n - at : CHUNK, i = 0;
        V       a = {0}, b = {0};
        T       s = 0;
        for (; i + 2 * VL <= len; i += 2 * VL) a += LOAD(x + at + i), b += LOAD(x + at + i + VL);
        for (; i < len; i++) s += x[at + i];
        total += (double)(N(lanes)(&a, &b) + s);
    }
    return total;
}

/* For squares that leave the range of T: scales by the largest deviation, and computes in f64. */
static N(stats) N(careful)(const T *x, const cot__rows *r) {
    double mean = 0, m = 0, sum = 0, n = (double)r->n;
    for (int64_t i = 0; !r->rms && i < r->n; i++) mean += (double)x[i] / n;
    for (int64_t i = 0; i < r->n; i++) {
        double d = fabs((double)x[i] - mean);
        m = d > m || isnan(d) ? d : m;
    }
    for (int64_t i = 0; m > 0 && i < r->n; i++) {
        double d = ((double)x[i] - mean) / m;
        sum += d * d;
    }
    if (isinf(m)) return (N(stats)){(T)mean, 0};
    double scale = m > 0 || isnan(m) ? 1 / m / sqrt(sum / n + r->eps / m / m) : 1 / sqrt(r->eps);
    return (N(stats)){(T)mean, (T)scale};
}

/* Mean, then deviations from it. The rounding of the mean leaves a rest (Σ (x - mean) is not 0),
 * which corrects both. */
static TARGET N(stats) N(stats_of)(const T *x, const cot__rows *r) {
    double share = 1 / (double)r->n, left = 0, squares = 0;
    T      mean = r->rms ? 0 : (T)(N(total)(x, r->n) * share);
    for (int64_t at = 0; at < r->n; at += CHUNK)
        N(moments)(x + at, mean, r->n - at < CHUNK ? r->n - at : CHUNK, &left, &squares);
    left = r->rms ? 0 : left * share;
    double v = squares * share - left * left;
    v = (v > 0 ? v : v == v ? 0 : v) + r->eps;
    if (!(v > TINY && v < HUGE_)) return N(careful)(x, r);
    return (N(stats)){mean + (T)left, (T)(1 / sqrt(v))};
}

/* The statistics of one row: known already, or computed and kept if there is room. */
static inline TARGET N(stats) N(stats_at)(const rows_job *j, int64_t row, const T *x) {
    N(stats) *kept = j->r.stats, s;
    if (kept && j->r.known) return kept[row];
    s = N(stats_of)(x, &j->r);
    if (kept) kept[row] = s;
    return s;
}

static TARGET void N(forward)(const rows_job *j, int64_t from, int64_t to) {
    const T *w = j->weight, *b = j->bias;
    int64_t  n = j->r.n;
    for (int64_t row = from; row < to; row++) {
        const T *restrict x = (const T *)j->x + row * n;
        T *restrict z = (T *)j->z + row * n;
        N(stats) s = N(stats_at)(j, row, x);
        if (w && b) for (int64_t i = 0; i < n; i++) z[i] = (x[i] - s.mean) * s.r * w[i] + b[i];
        else if (w) for (int64_t i = 0; i < n; i++) z[i] = (x[i] - s.mean) * s.r * w[i];
        else if (b) for (int64_t i = 0; i < n; i++) z[i] = (x[i] - s.mean) * s.r + b[i];
        else for (int64_t i = 0; i < n; i++) z[i] = (x[i] - s.mean) * s.r;
    }
}

/* Is h = g · weight zero in the whole row, a zero winning over anything? */
static bool N(nothing)(const T *g, const T *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (g[i] != 0 && (!w || w[i] != 0)) return false;
    return true;
}

/* Σ h and Σ h (x - mean) over one chunk, h = g w */
static inline TARGET void N(products)(const T *g, const T *w, const T *x, T mean, int64_t n, double *first,
                                      double *second) {
    V       a = {0}, b = {0}, p = {0}, q = {0}, centre = mean - (V){0};
    T       s = 0, ss = 0;
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        V u = LOAD(g + i), v = LOAD(g + i + VL);
        if (w) u *= LOAD(w + i), v *= LOAD(w + i + VL);
        a += u, b += v;
        p += u * (LOAD(x + i) - centre), q += v * (LOAD(x + i + VL) - centre);
    }
    for (; i < n; i++) {
        T h = w ? g[i] * w[i] : g[i];
        s += h, ss += h * (x[i] - mean);
    }
    *first += (double)(N(lanes)(&a, &b) + s);
    *second += (double)(N(lanes)(&p, &q) + ss);
}

static TARGET void N(backward)(const rows_job *j, int64_t from, int64_t to) {
    const T *w = j->weight;
    int64_t  n = j->r.n;
    double   share = 1 / (double)n;
    for (int64_t row = from; row < to; row++) {
        const T *restrict x = (const T *)j->x + row * n, *restrict g = (const T *)j->g + row * n;
        T *restrict z = (T *)j->z + row * n;
        N(stats) s = N(stats_at)(j, row, x);
        double   sum = 0, along = 0;
        for (int64_t at = 0; at < n; at += CHUNK)
            N(products)(g + at, w ? w + at : NULL, x + at, s.mean, n - at < CHUNK ? n - at : CHUNK, &sum, &along);
        T first = j->r.rms ? 0 : (T)(sum * share), second = (T)(along * (double)s.r * share);
        if (!isfinite(first) || !isfinite(second) || !isfinite(s.r)) {
            if (N(nothing)(g, w, n)) {
                for (int64_t i = 0; i < n; i++) z[i] = 0;
                continue;
            }
        }
        if (w) for (int64_t i = 0; i < n; i++) z[i] = s.r * (g[i] * w[i] - first - (x[i] - s.mean) * s.r * second);
        else for (int64_t i = 0; i < n; i++) z[i] = s.r * (g[i] - first - (x[i] - s.mean) * s.r * second);
    }
}

/* Adds rows from … to into total (2,n), FLUSH rows at a time through `part` (2,n). */
static TARGET void N(weights)(const rows_job *j, int64_t from, int64_t to, double *restrict total, T *restrict part) {
    int64_t n = j->r.n;
    for (int64_t i = 0; i < 2 * n; i++) total[i] = 0;
    for (int64_t start = from; start < to; start += FLUSH) {
        for (int64_t i = 0; i < 2 * n; i++) part[i] = 0;
        for (int64_t row = start; row < to && row < start + FLUSH; row++) {
            const T *restrict x = (const T *)j->x + row * n, *restrict g = (const T *)j->g + row * n;
            N(stats) s = N(stats_at)(j, row, x);
            if (isfinite(s.mean) && isfinite(s.r) && s.r != 0) /* all of x is finite */
                for (int64_t i = 0; i < n; i++) part[i] += g[i] * ((x[i] - s.mean) * s.r);
            else
                for (int64_t i = 0; i < n; i++) part[i] += g[i] == 0 ? 0 : g[i] * ((x[i] - s.mean) * s.r);
            for (int64_t i = 0; i < n; i++) part[n + i] += g[i];
        }
        for (int64_t i = 0; i < 2 * n; i++) total[i] += (double)part[i];
    }
}

#undef T
#undef V
#undef U
#undef VL
#undef N
#undef TARGET
#undef TINY
#undef HUGE_
