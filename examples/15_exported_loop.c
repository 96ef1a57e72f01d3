/* A loop and its gradient as plain C: a spring, integrated by Runge and Kutta's method, is compiled
 * and printed as one C99 function that needs no library, no memory but a small workspace, and has
 * the same bits. The way back keeps 8 of the 400 states and makes the others again.
 *
 *     ./15_exported_loop spring.c && cc -std=c99 -c spring.c */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STEPS = 400 };
static const double END = 4, STEP = 4.0 / STEPS;

/* x' = v, v' = -k x; the slope at (x, v) + a (dx, dv). */
static void slope(cot_var k, const cot_var *at, const cot_var *d, double a, cot_var *to) {
    to[0] = cot_add(at[1], cot_mul(d[1], a));
    to[1] = cot_neg(cot_mul(k, cot_add(at[0], cot_mul(d[0], a))));
}

/* xs: the number of the step, position and velocity. */
static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var k = *(const cot_var *)user, *at = xs + 1;
    cot_var       a[2], b[2], c[2], d[2];
    slope(k, at, at, 0, a);
    slope(k, at, a, STEP / 2, b);
    slope(k, at, b, STEP / 2, c);
    slope(k, at, c, STEP, d);
    for (int i = 0; i < 2; i++) {
        cot_var sum = cot_add(cot_add(a[i], d[i]), cot_mul(cot_add(b[i], c[i]), 2.0));
        ys[i] = cot_add(at[i], cot_mul(sum, STEP / 6));
    }
    return n != 3 || m != 2;
}

/* Where the spring is at the end: of k and of where it was at first. */
static int spring(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var k = xs[0], first[2] = {xs[1], cot_mul(xs[1], 0.0)}, last[2];
    (void)user;
    cot_fori(step, &k, 0, STEPS, 2, first, last, &(cot_loop_options){.states = 8});
    ys[0] = last[0];
    return n != 2 || m != 1;
}

static int with_gradient(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    return cot_value_and_grad(spring, user, n, xs, &ys[0], ys + 1) != COT_OK;
}

/* Prints the C to a file, and the line that tells how much memory it wants. */
static int export_to(const cot_program *p, FILE *file) {
    static const char *const in[] = {"k", "x"}, *const out[] = {"end", "by_k", "by_x"};
    const cot_emit_options   options = {.name = "spring", .title = "where a spring is, and its gradient", .inputs = in,
                                        .outputs = out};
    char                     line[512], why[256];
    if (!file || cot_program_emit_c(p, &options, file, NULL, why, sizeof why) != COT_OK) return 1;
    rewind(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "#define SPRING_WORKSPACE", 24) == 0) printf("%s", line);
    return fclose(file);
}

int main(int argc, char **argv) {
    const cot_type types[] = {{COT_F64, COT_SCALAR}, {COT_F64, COT_SCALAR}};
    double         k = 2.25, x = 0.5, end = 0, by_k = 0, by_x = 0;
    cot_program   *p = cot_compile(with_gradient, NULL, 2, types, 3, NULL);
    cot_run       *r = cot_run_create(p);
    cot_program_run(r, (const void *[]){&k, &x}, (void *[]){&end, &by_k, &by_x});
    printf("x(%g) = %.6f, by k %.6f, by x(0) %.6f\n", END, end, by_k, by_x);
    int wrong = cot_run_status(r) != COT_OK || export_to(p, argc > 1 ? fopen(argv[1], "w+") : tmpfile());

    /* x cos(sqrt(k) t); the method is off by about STEP to the fourth */
    double phase = sqrt(k) * END;
    wrong |= !(fabs(end - x * cos(phase)) < 1e-6) || !(fabs(by_x - cos(phase)) < 1e-6) ||
             !(fabs(by_k + x * sin(phase) * END / (2 * sqrt(k))) < 1e-6);
    cot_run_destroy(r);
    cot_program_destroy(p);
    return wrong;
}
