/* lotka.c: the equations, their residuals, and where counts come from. */
#include "lotka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GENERATED = 24 };

const char *const lotka_names[LOTKA_RATES] = {"birth of prey", "prey eaten", "death of predators",
                                              "predators born of prey"};
const double      lotka_truth[LOTKA_RATES] = {0.55, 0.028, 0.84, 0.026};

void lotka_free(lotka *c) {
    free(c->time);
    free(c->count);
    *c = (lotka){0};
}

static int take(lotka *c, int64_t n, char *why, size_t room) {
    c->n = n;
    c->time = calloc((size_t)n + 1, sizeof *c->time);
    c->count = calloc((size_t)n + 1, 2 * sizeof *c->count);
    if (c->time && c->count) return 0;
    snprintf(why, room, "out of memory for %lld counts", (long long)n);
    return 1;
}

static void change(int d, cot_var t, const cot_var *y, cot_var *dy, void *user) {
    const cot_var *rate = user;
    cot_var        meet = cot_mul(y[0], y[1]);
    (void)d, (void)t;
    dy[0] = cot_sub(cot_mul(rate[0], y[0]), cot_mul(rate[1], meet));
    dy[1] = cot_sub(cot_mul(rate[3], meet), cot_mul(rate[2], y[1]));
}

/* The solution at all times, (n, 2). */
static cot_var solve(const lotka *c, cot_var unknown) {
    cot_var rate[LOTKA_RATES], y[2], at[LOTKA_MOST], all = cot_exp(unknown);
    cot_var h = cot_constant(cot_tape_of(unknown), 0.05 * (c->time[c->n - 1] - c->time[0]) / (double)c->n);
    dopri   p = {change, rate, 2, 1e-7, 1e-7};
    for (int k = 0; k < LOTKA_RATES; k++) rate[k] = cot_index(all, 0, k);
    for (int k = 0; k < 2; k++) y[k] = cot_index(all, 0, LOTKA_RATES + k);
    for (int64_t k = 0; k < c->n; k++) {
        if (k > 0) dopri_solve(&p, c->time[k - 1], c->time[k], &h, y);
        at[k] = cot_stack(2, y, 0);
    }
    return cot_stack((int)c->n, at, 0);
}

cot_var lotka_residuals(const lotka *c, cot_var unknown) {
    cot_var counts = cot_data(cot_tape_of(unknown), COT_F64, COT_SHAPE(c->n, 2), c->count);
    return cot_sub(cot_log(solve(c, unknown)), cot_log(counts));
}

/* The mean of either over cycles is where nothing changes, (c/d, a/b), and the length of a small
 * cycle there is 2π/sqrt(a c). A cycle is what lies between two times that prey rises through its
 * mean. */
void lotka_guess(const lotka *c, double unknown[LOTKA_UNKNOWN]) {
    double  mean[2] = {0, 0}, first = 0, last = 0;
    int64_t rises = 0;
    for (int64_t k = 0; k < 2 * c->n; k++) mean[k % 2] += c->count[k] / (double)c->n;
    for (int64_t k = 1; k < c->n; k++) {
        if (!(c->count[2 * k - 2] < mean[0] && c->count[2 * k] >= mean[0])) continue;
        if (rises++ == 0) first = c->time[k];
        last = c->time[k];
    }
    double length = rises > 1 ? (last - first) / (double)(rises - 1) : c->time[c->n - 1] - c->time[0];
    double rate = 2 * acos(-1.0) / length;
    unknown[0] = unknown[2] = log(rate);
    unknown[1] = log(rate / mean[1]);
    unknown[3] = log(rate / mean[0]);
    unknown[4] = log(c->count[0]);
    unknown[5] = log(c->count[1]);
}

int lotka_generate(lotka *c, uint64_t seed, char *why, size_t room) {
    double    unknown[LOTKA_UNKNOWN] = {0, 0, 0, 0, log(30.0), log(4.0)};
    cot_tape *t = cot_tape_create(NULL);
    int       wrong = !t || take(c, GENERATED, why, room);
    for (int k = 0; k < LOTKA_RATES; k++) unknown[k] = log(lotka_truth[k]);
    for (int64_t k = 0; !wrong && k < c->n; k++) c->time[k] = (double)k;
    if (!wrong) {
        cot_no_grad_open(t);
        cot_var noise = cot_exp(cot_mul(0.05, cot_normal(t, cot_key_of(seed), COT_F64, COT_SHAPE(c->n, 2))));
        cot_var y = solve(c, cot_data(t, COT_F64, COT_SHAPE(LOTKA_UNKNOWN), unknown));
        wrong = cot_read(cot_mul(y, noise), c->count, 2 * c->n) != COT_OK;
        cot_no_grad_close(t);
    }
    if (wrong) snprintf(why, room, "%s", t && cot_tape_status(t) ? cot_tape_message(t) : "out of memory");
    cot_tape_destroy(t);
    return wrong;
}

/* Counts are positive, and times rise. */
static int check(const lotka *c, const char *path, char *why, size_t room) {
    if (c->n < 3 || c->n > LOTKA_MOST) {
        snprintf(why, room, "%s has %lld counts; there must be 3 … %d, since six numbers are to be found", path,
                 (long long)c->n, LOTKA_MOST);
        return 1;
    }
    for (int64_t k = 0; k < c->n; k++) {
        bool rises = isfinite(c->time[k]) && (k == 0 || c->time[k] > c->time[k - 1]);
        if (rises && c->count[2 * k] > 0 && c->count[2 * k + 1] > 0 && isfinite(c->count[2 * k] + c->count[2 * k + 1]))
            continue;
        snprintf(why, room, "%s: row %lld has time %g, prey %g, predators %g; times rise, and counts are positive",
                 path, (long long)k + 1, c->time[k], c->count[2 * k], c->count[2 * k + 1]);
        return 1;
    }
    return 0;
}

int lotka_read(lotka *c, const char *path, char *why, size_t room) {
    static const char *const names[] = {"time", "prey", "predators"};
    cot_file                *f = cot_file_open(path, NULL);
    int                      wrong = !f || cot_file_status(f) != COT_OK;
    *c = (lotka){0};
    if (wrong) snprintf(why, room, "%s", f ? cot_file_message(f) : "out of memory");
    for (int k = 0; !wrong && k < 3; k++)
        if (cot_file_find(f, names[k]) < 0) {
            snprintf(why, room, "%s has no column %s; the columns are time, prey and predators", path, names[k]);
            wrong = 1;
        }
    int64_t n = wrong ? 0 : cot_file_size(f, cot_file_find(f, "time"));
    double *column = wrong ? NULL : malloc(((size_t)n + 1) * sizeof *column);
    if (!wrong) wrong = take(c, n, why, room);
    if (!wrong && !column) snprintf(why, room, "out of memory for %lld counts", (long long)n), wrong = 1;
    for (int k = 0; !wrong && k < 3; k++) {
        wrong = cot_file_read(f, cot_file_find(f, names[k]), COT_F64, column) != COT_OK;
        if (wrong) snprintf(why, room, "%s", cot_file_message(f));
        for (int64_t r = 0; !wrong && r < n; r++) *(k ? &c->count[2 * r + k - 1] : &c->time[r]) = column[r];
    }
    free(column);
    cot_file_close(f);
    return wrong || check(c, path, why, room);
}
