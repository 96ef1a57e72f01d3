/* numbers.c: one fused loop for each workload, with the derivative by hand. */
#include "handwritten/handwritten.h"

enum { ELEMENTS = 1 << SIZED(22, 18), ROSENBROCK = 100000, INPUTS = 8, HIDDEN = 256, OUTPUTS = 1024, THREADS = 64 };

static void release(void *state) {
    void **p = state; /* every state begins with three blocks */
    free(p[0]), free(p[1]), free(p[2]);
    free(state);
}

/* ---- elementwise ----------------------------------------------------------------------------- */

typedef struct elementwise { float *x, *g, *none; double sum[THREADS][8]; } elementwise;

static void *elementwise_make(void) {
    elementwise *e = must(calloc(1, sizeof *e));
    e->x = uniform_f32(7, ELEMENTS, 3);
    e->g = must(malloc(ELEMENTS * sizeof *e->g));
    return e;
}

static void elementwise_part(void *ctx, int part) {
    /* the sums of blocks are added in double: a float would not hold them all */
    enum { BLOCK = 1024 };
    float        si[BLOCK], co[BLOCK];
    elementwise *e = ctx;
    int64_t from = (int64_t)ELEMENTS * part / share_threads(), to = (int64_t)ELEMENTS * (part + 1) / share_threads();
    double       total = 0;
    for (int64_t start = from; start < to; start += BLOCK) {
        float                 sum = 0;
        int64_t               n = to - start < BLOCK ? to - start : BLOCK;
        const float *restrict x = e->x + start;
        float *restrict       g = e->g + start;
        /* two loops, because gcc would join the two calls to sincosf, which has no vector form */
        for (int64_t i = 0; i < n; i++) si[i] = sinf(x[i]);
        for (int64_t i = 0; i < n; i++) co[i] = cosf(x[i]);
        for (int64_t i = 0; i < n; i++) {
            float v = x[i], th = tanhf(v), ex = expf(-v * v), sg = 1 / (1 + expf(-v));
            sum += th * ex + si[i] * sg;
            g[i] = ex * ((1 - th * th) - 2 * v * th) + co[i] * sg + si[i] * sg * (1 - sg);
        }
        total += sum;
    }
    e->sum[part][0] = total;
}

static double elementwise_step(void *state) {
    elementwise *e = state;
    double       sum = 0;
    share(elementwise_part, e);
    for (int i = 0; i < share_threads(); i++) sum += e->sum[i][0];
    return sum;
}

/* ---- rosenbrock_hvp -------------------------------------------------------------------------- */

typedef struct rosenbrock { double *x, *v, *h; } rosenbrock;

static void *rosenbrock_make(void) {
    rosenbrock *r = must(calloc(1, sizeof *r));
    r->x = uniform_f64(8, ROSENBROCK, 1);
    r->v = uniform_f64(9, ROSENBROCK, 1);
    r->h = must(malloc(ROSENBROCK * sizeof *r->h));
    return r;
}

static double rosenbrock_step(void *state) {
    rosenbrock            *r = state;
    const double *restrict x = r->x, *restrict v = r->v;
    double *restrict       h = r->h;
    double                 sum = 0;
    for (int i = 0; i < ROSENBROCK; i++) {
        double t = 0;
        if (i + 1 < ROSENBROCK) t += (1200 * x[i] * x[i] - 400 * x[i + 1] + 2) * v[i] - 400 * x[i] * v[i + 1];
        if (i > 0) t += 200 * v[i] - 400 * x[i - 1] * v[i - 1];
        h[i] = t;
        sum += t;
    }
    return sum;
}

/* ---- jac_tall -------------------------------------------------------------------------------- */

typedef struct tall { double *x, *w1, *w2, j[OUTPUTS][INPUTS]; } tall;

static void *tall_make(void) {
    tall *t = must(calloc(1, sizeof *t));
    t->x = uniform_f64(20, INPUTS, 1);
    t->w1 = uniform_f64(21, HIDDEN * INPUTS, 0.3);
    t->w2 = uniform_f64(22, OUTPUTS * HIDDEN, 0.06);
    return t;
}

static double tall_step(void *state) {
    tall  *t = state;
    double h[HIDDEN], dh[HIDDEN][INPUTS], sum = 0;
    for (int i = 0; i < HIDDEN; i++) {
        double s = 0;
        for (int c = 0; c < INPUTS; c++) s += t->w1[i * INPUTS + c] * t->x[c];
        h[i] = tanh(s);
        for (int c = 0; c < INPUTS; c++) dh[i][c] = (1 - h[i] * h[i]) * t->w1[i * INPUTS + c];
    }
    for (int i = 0; i < OUTPUTS; i++) {
        double s = 0, d[INPUTS] = {0};
        for (int p = 0; p < HIDDEN; p++) {
            double w = t->w2[i * HIDDEN + p];
            s += w * h[p];
            for (int c = 0; c < INPUTS; c++) d[c] += w * dh[p][c];
        }
        double y = tanh(s);
        for (int c = 0; c < INPUTS; c++) sum += t->j[i][c] = (1 - y * y) * d[c];
    }
    return sum;
}

/* The vector functions of fast-math are exact to four units in the last place, and the value of
 * `elementwise` is known to seven digits. */
const workload numbers_by_hand[3] = {
    {"elementwise", "f32", elementwise_make, elementwise_step, release, 852839.9, SIZED(2e-6, 0), NULL},
    {"rosenbrock_hvp", "f64", rosenbrock_make, rosenbrock_step, release, 299794.59591440, 1e-11, NULL},
    {"jac_tall", "f64", tall_make, tall_step, release, 4.41506599338597, 1e-11, NULL},
};
