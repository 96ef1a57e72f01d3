/* The tableau, one step, and the loop around it. */
#include "dopri.h"

enum { STAGES = 7 };

/* Rows of the tableau: stage s is f(t + NODE[s] h, y + h Σ WEIGHT[s][r] k[r]). The last row is the
 * solution of order 5, whose f is the first stage of the next step. */
static const double NODE[STAGES] = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
static const double WEIGHT[STAGES][STAGES - 1] = {
    {0},
    {1. / 5},
    {3. / 40, 9. / 40},
    {44. / 45, -56. / 15, 32. / 9},
    {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
    {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
    {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
};
/* Order 5 less order 4: what the step is off by, over h. */
static const double ERROR[STAGES] = {71. / 57600,      0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525,
                                     -1. / 40};

/* What the loop carries: the time, the next step, y, and f there. */
enum { TIME, NEXT, Y };

typedef struct loop {
    const dopri *p;
    double       end;
} loop;

static cot_var combine(const double *weight, int n, cot_var k[STAGES][DOPRI_MOST], int c) {
    cot_var sum = cot_mul(weight[0], k[0][c]);
    for (int r = 1; r < n; r++)
        if (weight[r] != 0) sum = cot_add(sum, cot_mul(weight[r], k[r][c]));
    return sum;
}

/* The error of a step in parts of what is allowed, root mean square over the components. */
static cot_var size_of_error(const dopri *p, cot_var h, cot_var k[STAGES][DOPRI_MOST], const cot_var *from,
                             const cot_var *to) {
    double  relative = p->relative > 0 ? p->relative : 1e-8, absolute = p->absolute > 0 ? p->absolute : 1e-10;
    cot_var sum = cot_full_like(h, 0);
    for (int c = 0; c < p->d; c++) {
        cot_var scale = cot_fma(cot_maximum(cot_abs(from[c]), cot_abs(to[c])), relative, absolute);
        sum = cot_add(sum, cot_square(cot_div(cot_mul(h, combine(ERROR, STAGES, k, c)), scale)));
    }
    return cot_sqrt(cot_div(sum, p->d));
}

static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const loop *l = user;
    const int   d = l->p->d;
    cot_var     left = cot_sub(l->end, xs[TIME]), h = cot_minimum(xs[NEXT], left), k[STAGES][DOPRI_MOST], y[DOPRI_MOST];
    for (int c = 0; c < d; c++) k[0][c] = xs[Y + d + c];
    for (int s = 1; s < STAGES; s++) {
        for (int c = 0; c < d; c++) y[c] = cot_add(xs[Y + c], cot_mul(h, combine(WEIGHT[s], s, k, c)));
        l->p->f(d, cot_add(xs[TIME], cot_mul(NODE[s], h)), y, k[s], l->p->user);
    }
    cot_var error = cot_stop_gradient(size_of_error(l->p, h, k, xs + Y, y)), good = cot_less_equal(error, 1.0);
    cot_var factor = cot_clamp(cot_mul(0.9, cot_pow(cot_maximum(error, 1e-10), -0.2)), 0.2, 10.0);
    cot_var last = cot_logical_and(good, cot_greater_equal(xs[NEXT], left));
    /* a last step was cut to end there, and says nothing against the length it was to have */
    ys[NEXT] = cot_stop_gradient(cot_where(last, xs[NEXT], cot_mul(h, factor)));
    ys[TIME] = cot_stop_gradient(cot_where(last, l->end, cot_where(good, cot_add(xs[TIME], h), xs[TIME])));
    for (int c = 0; c < d; c++) {
        ys[Y + c] = cot_where(good, y[c], xs[Y + c]);
        ys[Y + d + c] = cot_where(good, k[STAGES - 1][c], k[0][c]);
    }
    return n != Y + 2 * d || m != n;
}

static int before_end(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const loop *l = user;
    ys[0] = cot_less(xs[TIME], l->end);
    return n < Y || m != 1;
}

cot_status dopri_solve(const dopri *p, double t0, double t1, cot_var *h, cot_var *y) {
    loop      l = {p, t1};
    cot_tape *t = cot_tape_of(y[0]);
    cot_var   carried[Y + 2 * DOPRI_MOST];
    carried[TIME] = cot_constant(t, t0);
    carried[NEXT] = *h;
    for (int c = 0; c < p->d; c++) carried[Y + c] = y[c];
    p->f(p->d, carried[TIME], y, carried + Y + p->d, p->user);
    cot_while(before_end, step, &l, Y + 2 * p->d, carried, carried, &(cot_loop_options){.limit = 1000000});
    *h = carried[NEXT];
    for (int c = 0; c < p->d; c++) y[c] = carried[Y + c];
    return cot_tape_status(t);
}
