/* lanes: a function of three numbers, written for one point, at 100,000 points: a compiled scalar
 * program called under cot_vmap, and a program of a function that calls cot_vmap, against the plain
 * C loop over points and against running the scalar program point by point. One thread.
 *
 *     lanes [POINTS [SAMPLES]]
 *
 * Some 50 operations, of which three are elementary functions; and the same with none. All take
 * turns, and the least time of each counts. */
#include "workloads/measure.h"

#include <cotangent.h>
#include <cotangent_program.h>
#include <cotangent_transform.h>

enum { TURNS = 12 };
static int points = 100000;

/* ---- the function ---------------------------------------------------------------------------- */

static double plain(double x, double y, double z, bool elementary) {
    double a = x * y + z, b = x - y * z;
    for (int k = 0; k < TURNS; k++) {
        double c = a * 0.5 + b * x;
        b = b - c * y;
        a = c;
    }
    return elementary ? exp(-a * a) * sin(b) + log(1 + b * b) : a * b;
}

typedef struct what { bool elementary; cot_program *of_point; } what;

static int at_point(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const what *w = user;
    cot_var     a = cot_add(cot_mul(xs[0], xs[1]), xs[2]), b = cot_sub(xs[0], cot_mul(xs[1], xs[2]));
    (void)n, (void)m;
    for (int k = 0; k < TURNS; k++) {
        cot_var c = cot_add(cot_mul(a, 0.5), cot_mul(b, xs[0]));
        b = cot_sub(b, cot_mul(c, xs[1]));
        a = c;
    }
    ys[0] = w->elementary ? cot_add(cot_mul(cot_exp(cot_neg(cot_mul(a, a))), cot_sin(b)),
                                    cot_log(cot_add(cot_mul(b, b), 1.0)))
                          : cot_mul(a, b);
    return 0;
}

static int call_point(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return cot_program_call(((what *)user)->of_point, n, xs, m, ys) != COT_OK;
}

static int at_points(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return cot_vmap(at_point, user, n, xs, NULL, m, ys, NULL) != COT_OK;
}

/* ---- ways to compute it ---------------------------------------------------------------------- */

typedef struct bench {
    what         w;
    double      *x[3], *y[5];
    cot_tape    *t;
    cot_var      xs[3];
    cot_run     *point, *whole, *native;
} bench;

static void by_loop(bench *b) {
    for (int i = 0; i < points; i++) b->y[0][i] = plain(b->x[0][i], b->x[1][i], b->x[2][i], b->w.elementary);
}
static void by_points(bench *b) {
    for (int i = 0; i < points; i++)
        cot_program_run(b->point, (const void *[]){b->x[0] + i, b->x[1] + i, b->x[2] + i}, (void *[]){b->y[1] + i});
}
static void by_call(bench *b) {
    cot_mark m = cot_tape_mark(b->t);
    cot_var  y = COT_NONE;
    cot_vmap(call_point, &b->w, 3, b->xs, NULL, 1, &y, NULL);
    cot_read(y, b->y[2], points);
    cot_tape_rewind(b->t, m);
}
static void by_program(bench *b) {
    cot_program_run(b->whole, (const void *[]){b->x[0], b->x[1], b->x[2]}, (void *[]){b->y[3]});
}
static void by_native(bench *b) {
    cot_program_run(b->native, (const void *[]){b->x[0], b->x[1], b->x[2]}, (void *[]){b->y[4]});
}

/* ---- the whole ------------------------------------------------------------------------------- */

static cot_run *run_of(cot_fn f, what *w, const cot_type *types, bool native, cot_program **keep) {
    cot_program *p = must(cot_compile(f, w, 3, types, 1, &(cot_compile_options){.native = native}));
    if (cot_program_status(p) != COT_OK) fprintf(stderr, "%s\n", cot_program_message(p)), exit(1);
    if (native) cot_program_native(p, true);
    cot_run *r = must(cot_run_create(p));
    if (keep) *keep = p;
    else cot_program_destroy(p);
    return r;
}

static void tell_groups(cot_program *p) {
    cot_program_facts f;
    if (cot_program_measure(p, &f) == COT_OK)
        printf("  %lld operations, %lld of them in %lld groups\n", (long long)f.operations, (long long)f.fused,
               (long long)f.groups);
}

static void compare(bool elementary, int samples) {
    static const cot_type one[3] = {{COT_F64, {0, {0}}}, {COT_F64, {0, {0}}}, {COT_F64, {0, {0}}}};
    cot_type              many[3];
    bench                 b = {.w = {.elementary = elementary}, .t = must(cot_tape_create(NULL))};
    for (int k = 0; k < 3; k++) {
        many[k] = (cot_type){COT_F64, {1, {points}}};
        b.x[k] = uniform_f64((uint64_t)k + 1, points, 0.5);
        b.xs[k] = cot_data(b.t, COT_F64, many[k].shape, b.x[k]);
    }
    for (int k = 0; k < 5; k++) b.y[k] = must(calloc((size_t)points, sizeof(double)));
    cot_program *whole;
    b.point = run_of(at_point, &b.w, one, false, &b.w.of_point);
    b.whole = run_of(at_points, &b.w, many, false, &whole);
    b.native = run_of(at_points, &b.w, many, true, NULL);
    void (*const way[5])(bench *) = {by_loop, by_points, by_call, by_program, by_native};
    static const char *const name[5] = {"plain C loop", "program, point by point", "program called under cot_vmap",
                                        "program of cot_vmap", "the same, native code"};
    double least[5] = {1e9, 1e9, 1e9, 1e9, 1e9};
    for (int s = 0; s < samples; s++)
        for (int k = 0; k < 5; k++) {
            double start = now();
            way[k](&b);
            double took = now() - start;
            if (took < least[k]) least[k] = took;
        }
    printf("%s\n", elementary ? "with exp, sin and log" : "sums and products");
    for (int k = 0; k < 5; k++)
        printf("  %-30s %8.1f M points/s  %6.2f of the time of plain C%s\n", name[k], points / least[k] * 1e-6,
               least[k] / least[0], k > 1 && memcmp(b.y[k], b.y[1], (size_t)points * 8) ? "  OTHER BITS" : "");
    tell_groups(whole);
    cot_program_destroy(whole);
    cot_program_destroy(b.w.of_point);
    cot_run_destroy(b.point);
    cot_run_destroy(b.whole);
    cot_run_destroy(b.native);
    cot_tape_destroy(b.t);
    for (int k = 0; k < 3; k++) free(b.x[k]);
    for (int k = 0; k < 5; k++) free(b.y[k]);
}

int main(int argc, char **argv) {
    if (argc > 1) points = atoi(argv[1]);
    int samples = argc > 2 ? atoi(argv[2]) : 20;
    cot_set_threads(1);
    compare(false, samples);
    compare(true, samples);
    return 0;
}
