/* loops: what a loop with a scalar body costs: the Lotka-Volterra equations, 500 steps of the
 * classic Runge-Kutta method, and the gradient of a squared distance at the end by four parameters
 * and two initial values.
 *
 *     loops [STEPS [SAMPLES]]
 *
 * The gradient through cot_scan is compared with the plain C loss, and with the gradient of the
 * same loop unrolled on the tape; all take turns, and the least time of each counts. */
#include "workloads/measure.h"

#include <cotangent.h>

enum { PARAMETERS = 6 };
static const double at[PARAMETERS] = {1.5, 1.0, 3.0, 1.0, 1.0, 1.2}, H = 0.01;
static int          steps = 500;

/* ---- plain C --------------------------------------------------------------------------------- */

typedef struct two { double x, y; } two;

static two slope(const double *p, two s) {
    return (two){p[0] * s.x - p[1] * s.x * s.y, p[3] * s.x * s.y - p[2] * s.y};
}
static two moved(two s, double h, two k) { return (two){s.x + h * k.x, s.y + h * k.y}; }

static double plain(const double *p) {
    two s = {p[4], p[5]};
    for (int i = 0; i < steps; i++) {
        two a = slope(p, s), b = slope(p, moved(s, H / 2, a)), c = slope(p, moved(s, H / 2, b)),
            d = slope(p, moved(s, H, c));
        s.x += H / 6 * (a.x + 2 * b.x + 2 * c.x + d.x);
        s.y += H / 6 * (a.y + 2 * b.y + 2 * c.y + d.y);
    }
    return (s.x - 1) * (s.x - 1) + (s.y - 1) * (s.y - 1);
}

/* ---- recorded -------------------------------------------------------------------------------- */

typedef struct pair { cot_var x, y; } pair;

static pair slope_of(const cot_var *p, pair s) {
    cot_var xy = cot_mul(s.x, s.y);
    return (pair){cot_sub(cot_mul(p[0], s.x), cot_mul(p[1], xy)), cot_sub(cot_mul(p[3], xy), cot_mul(p[2], s.y))};
}
static pair moved_by(pair s, double h, pair k) {
    return (pair){cot_add(s.x, cot_mul(h, k.x)), cot_add(s.y, cot_mul(h, k.y))};
}
static cot_var weighted(cot_var a, cot_var b, cot_var c, cot_var d) {
    return cot_mul(H / 6, cot_add(cot_add(a, cot_mul(2.0, b)), cot_add(cot_mul(2.0, c), d)));
}
static pair next(const cot_var *p, pair s) {
    pair a = slope_of(p, s), b = slope_of(p, moved_by(s, H / 2, a)), c = slope_of(p, moved_by(s, H / 2, b)),
         d = slope_of(p, moved_by(s, H, c));
    return (pair){cot_add(s.x, weighted(a.x, b.x, c.x, d.x)), cot_add(s.y, weighted(a.y, b.y, c.y, d.y))};
}

static int body(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    pair s = next(user, (pair){xs[0], xs[1]});
    (void)n, (void)m;
    ys[0] = s.x, ys[1] = s.y;
    return 0;
}

static pair scanned(cot_var *p) {
    cot_var last[2] = {p[4], p[5]};
    cot_scan(body, p, steps, 2, &p[4], 0, NULL, last, 0, NULL, NULL);
    return (pair){last[0], last[1]};
}

static pair unrolled(cot_var *p) {
    pair s = {p[4], p[5]};
    for (int i = 0; i < steps; i++) s = next(p, s);
    return s;
}

static double gradient(cot_tape *t, cot_var *p, pair (*run)(cot_var *)) {
    cot_mark m = cot_tape_mark(t);
    pair     s = run(p);
    cot_var  loss = cot_add(cot_square(cot_sub(s.x, 1.0)), cot_square(cot_sub(s.y, 1.0)));
    cot_backward(loss);
    double value = cot_value(loss);
    if (cot_tape_status(t) != COT_OK) fprintf(stderr, "%s\n", cot_tape_message(t)), exit(1);
    cot_tape_zero_grads(t);
    cot_tape_rewind(t, m);
    return value;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static double repeated(double *best, int times, double (*run)(void *), void *ctx) {
    double start = now(), value = 0;
    for (int i = 0; i < times; i++) value = run(ctx);
    double each = (now() - start) / times;
    if (each < *best) *best = each;
    return value;
}

typedef struct both { cot_tape *t; cot_var p[PARAMETERS]; } both;

static double run_plain(void *ctx) {
    /* changed by nothing, but the compiler cannot know */
    volatile double p0 = at[0];
    double          p[PARAMETERS] = {p0, at[1], at[2], at[3], at[4], at[5]};
    (void)ctx;
    return plain(p);
}
static double run_scan(void *ctx) { return gradient(((both *)ctx)->t, ((both *)ctx)->p, scanned); }
static double run_unrolled(void *ctx) { return gradient(((both *)ctx)->t, ((both *)ctx)->p, unrolled); }

int main(int argc, char **argv) {
    both   b = {cot_tape_create(NULL), {COT_NONE}};
    double best[3] = {1e9, 1e9, 1e9}, value[3] = {0};
    int    samples = argc > 2 ? atoi(argv[2]) : 20;
    if (argc > 1) steps = atoi(argv[1]);
    if (!b.t || steps < 1 || samples < 1) return fprintf(stderr, "usage: loops [STEPS [SAMPLES]]\n"), 2;
    for (int k = 0; k < PARAMETERS; k++) b.p[k] = cot_scalar(b.t, at[k]);
    for (int i = 0; i < samples; i++) {
        value[0] = repeated(&best[0], 20, run_plain, &b);
        value[1] = repeated(&best[1], 3, run_scan, &b);
        value[2] = repeated(&best[2], 3, run_unrolled, &b);
    }
    cot_tape_destroy(b.t);
    printf("Lotka-Volterra, %d steps of Runge-Kutta: loss in C %.3g us, gradient by cot_scan %.3g us, "
           "unrolled %.3g us\n", steps, best[0] * 1e6, best[1] * 1e6, best[2] * 1e6);
    printf("%-52s %8.2f  target 10   %s\n", "gradient by cot_scan / the plain C loss", best[1] / best[0],
           best[1] <= 10 * best[0] ? "met" : "MISSED");
    printf("%-52s %8.2f  target 1.0  %s\n", "gradient by cot_scan / the same loop unrolled", best[1] / best[2],
           best[1] <= best[2] ? "met" : "MISSED");
    bool right = fabs(value[1] / value[0] - 1) < 1e-9 && value[1] == value[2];
    if (!right) fprintf(stderr, "WRONG: losses %.17g, %.17g, %.17g\n", value[0], value[1], value[2]);
    return !right;
}
