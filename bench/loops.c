/* loops: what a loop with a scalar body costs: the Lotka-Volterra equations, 500 steps of the
 * classic Runge-Kutta method, and the gradient of a squared distance at the end by four parameters
 * and two initial values.
 *
 *     loops [STEPS [SAMPLES]]
 *
 * The gradient through cot_scan is compared with the plain C loss, and with the gradient of the
 * same loop unrolled on the tape; so is the same function as a program, run by the executor and by
 * native code, if there is a compiler. All take turns, and the least time of each counts. */
#include "workloads/measure.h"

#include <cotangent.h>
#include <cotangent_program.h>

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

static cot_var loss_of(pair s) {
    return cot_add(cot_square(cot_sub(s.x, 1.0)), cot_square(cot_sub(s.y, 1.0)));
}

static double gradient(cot_tape *t, cot_var *p, pair (*run)(cot_var *)) {
    cot_mark m = cot_tape_mark(t);
    pair     s = run(p);
    cot_var  loss = loss_of(s);
    cot_backward(loss);
    double value = cot_value(loss);
    if (cot_tape_status(t) != COT_OK) fprintf(stderr, "%s\n", cot_tape_message(t)), exit(1);
    cot_tape_zero_grads(t);
    cot_tape_rewind(t, m);
    return value;
}

/* ---- compiled -------------------------------------------------------------------------------- */

/* The loss and its gradient. */
static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var p[PARAMETERS];
    (void)m, (void)user;
    memcpy(p, xs, sizeof p);
    ys[0] = loss_of(scanned(p));
    return cot_grad_of(ys[0], n, xs, ys + 1);
}

typedef struct program { cot_program *p; cot_run *r; } program;

/* Native code is compared and timed in its first runs, before it counts. */
static program open_program(bool native) {
    cot_type type[PARAMETERS] = {{COT_F64, {0, {0}}}};
    for (int k = 1; k < PARAMETERS; k++) type[k] = type[0];
    cot_compile_options o = {.native = native};
    program             a = {cot_compile(step, NULL, PARAMETERS, type, 1 + PARAMETERS, &o), NULL};
    a.r = cot_run_create(a.p);
    if (cot_run_status(a.r) != COT_OK) fprintf(stderr, "%s\n", cot_run_message(a.r)), exit(1);
    if (native) cot_program_native(a.p, true);
    return a;
}

static double run_program(void *ctx) {
    const void *in[PARAMETERS];
    double      out[1 + PARAMETERS];
    void       *to[1 + PARAMETERS];
    for (int k = 0; k < PARAMETERS; k++) in[k] = &at[k];
    for (int k = 0; k <= PARAMETERS; k++) to[k] = &out[k];
    cot_program_run(((program *)ctx)->r, in, to);
    return out[0];
}

static void close_program(program *a) {
    cot_run_destroy(a->r);
    cot_program_destroy(a->p);
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

enum { PLAIN, SCANNED, UNROLLED, COMPILED, NATIVE, WAYS };

static void put_row(const char *what, double ratio, double target) {
    printf("%-52s %8.2f  target %-4g %s\n", what, ratio, target, ratio <= target ? "met" : "MISSED");
}

static void put_all(const double *best, const program *native) {
    printf("Lotka-Volterra, %d steps of Runge-Kutta: loss in C %.3g us, gradient by cot_scan %.3g us, "
           "unrolled %.3g us, compiled %.3g us, native %.3g us\n", steps, best[PLAIN] * 1e6, best[SCANNED] * 1e6,
           best[UNROLLED] * 1e6, best[COMPILED] * 1e6, best[NATIVE] * 1e6);
    put_row("gradient by cot_scan / the plain C loss", best[SCANNED] / best[PLAIN], 10);
    put_row("gradient by cot_scan / the same loop unrolled", best[SCANNED] / best[UNROLLED], 1);
    put_row("gradient, compiled / the plain C loss", best[COMPILED] / best[PLAIN], 10);
    if (cot_program_native(native->p, true) == COT_NATIVE_READY)
        put_row("gradient, native code / the plain C loss", best[NATIVE] / best[PLAIN], 10);
    else printf("no native code: %s\n", cot_program_native_message(native->p));
}

int main(int argc, char **argv) {
    both   b = {cot_tape_create(NULL), {COT_NONE}};
    double best[WAYS] = {1e9, 1e9, 1e9, 1e9, 1e9}, value[WAYS] = {0};
    int    samples = argc > 2 ? atoi(argv[2]) : 20;
    if (argc > 1) steps = atoi(argv[1]);
    if (!b.t || steps < 1 || samples < 1) return fprintf(stderr, "usage: loops [STEPS [SAMPLES]]\n"), 2;
    for (int k = 0; k < PARAMETERS; k++) b.p[k] = cot_scalar(b.t, at[k]);
    program compiled = open_program(false), native = open_program(true);
    for (int i = 0; i < samples; i++) {
        value[PLAIN] = repeated(&best[PLAIN], 20, run_plain, &b);
        value[SCANNED] = repeated(&best[SCANNED], 3, run_scan, &b);
        value[UNROLLED] = repeated(&best[UNROLLED], 3, run_unrolled, &b);
        value[COMPILED] = repeated(&best[COMPILED], 5, run_program, &compiled);
        value[NATIVE] = repeated(&best[NATIVE], 5, run_program, &native);
    }
    cot_tape_destroy(b.t);
    put_all(best, &native);
    close_program(&compiled);
    close_program(&native);
    bool right = fabs(value[SCANNED] / value[PLAIN] - 1) < 1e-9 && value[SCANNED] == value[UNROLLED] &&
                 value[SCANNED] == value[COMPILED] && value[SCANNED] == value[NATIVE];
    if (!right)
        for (int k = 0; k < WAYS; k++) fprintf(stderr, "WRONG: loss %d is %.17g\n", k, value[k]);
    return !right;
}
