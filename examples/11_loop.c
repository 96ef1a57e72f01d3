/* A long loop as one operation.
 *
 * cot_scan records its body once and plays it a million times: the tape stays as short as the body.
 * Reverse mode needs the state before every step; it keeps a hundred of them and computes the
 * others again, as few times as possible. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

enum { STEPS = 1000000 };
static const double END = 5; /* time, in STEPS steps */

/* Logistic growth, y' = r y (1 - y), one step of Euler's method. The body may use r, which is
 * outside; it gets its gradient. */
static int grow(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *r = user;
    ys[0]            = cot_fma(cot_mul(*r, END / STEPS), cot_mul(xs[0], cot_sub(1.0, xs[0])), xs[0]);
    return n != 1 || m != 1;
}

/* The solution is y0 / (y0 + (1 - y0) exp(-r t)), so … */
static double solution(double r, double y0) { return y0 / (y0 + (1 - y0) * exp(-r * END)); }
static double by_r(double r, double y0) { return END * solution(r, y0) * (1 - solution(r, y0)); }
static double by_y0(double r, double y0) { return exp(-r * END) / pow(y0 + (1 - y0) * exp(-r * END), 2); }

/* Euler's method is off by about the length of a step, 5e-6. */
static int line(const char *what, double got, double want) {
    printf("  %-8s %7.3f   by formula %7.3f\n", what, got, want);
    return !(fabs(got - want) <= 1e-4);
}

/* Until the population has doubled: a loop whose length depends on the values. */
static int is_small(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const cot_var *bound = (const cot_var *)user + 1;
    ys[0]                = cot_less(xs[0], *bound);
    return n != 1 || m != 1;
}

int main(void) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   user[2], r = cot_scalar(t, 0.8), y0 = cot_scalar(t, 0.05), y, until;
    user[0] = r;
    user[1] = cot_mul(2.0, y0);

    cot_scan(grow, user, STEPS, 1, &y0, 0, NULL, &y, 0, NULL, NULL);
    cot_backward(y);
    printf("Logistic growth in %d steps\n", STEPS);
    int wrong = line("y", cot_value(y), solution(0.8, 0.05));
    wrong |= line("dy/dr", cot_grad_value(r), by_r(0.8, 0.05));
    wrong |= line("dy/dy0", cot_grad_value(y0), by_y0(0.8, 0.05));
    bool short_tape = cot_tape_length(t) < 50, small = cot_tape_bytes(t) < 1 << 20;
    printf("  the tape has %s 50 operations, in %s 1 MB\n", short_tape ? "less than" : "MORE than",
           small ? "less than" : "MORE than");
    wrong |= !short_tape || !small;

    cot_while(is_small, grow, user, 1, &y0, &until, NULL);
    printf("\nUntil it has doubled\n");
    wrong |= line("y", cot_value(until), 0.1);

    wrong |= cot_tape_status(t) != COT_OK;
    if (wrong) fprintf(stderr, "a result is off. %s\n", cot_tape_message(t));
    cot_tape_destroy(t);
    return wrong;
}
