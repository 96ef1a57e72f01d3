/* descend.c: Newton's method for minima, within a trusted radius. Each step goes down the quadratic
 * model of f by conjugate gradients that stop at the radius or where the model bends down
 * (Steihaug's method). So it needs only products with the second derivative, never a matrix. It
 * leaves maxima and saddles, where Newton's method on the gradient would stay. It ends where it can
 * bring down neither f nor its gradient. */
#include "base/random.h"
#include "diff/implicit/descend.h"

#include <math.h>
#include <string.h>

typedef struct vectors { double *x, *g, *p, *r, *d, *hd, *next, *g_next; } vectors;

size_t cot__descend_bytes(int64_t n) { return 8 * (size_t)n * sizeof(double) + sizeof(double); }

static vectors lay_out(void *work, int64_t n) {
    double *w = work;
    return (vectors){w, w + n, w + 2 * n, w + 3 * n, w + 4 * n, w + 5 * n, w + 6 * n, w + 7 * n};
}

static double inner(int64_t n, const double *a, const double *b) {
    double s = 0;
    for (int64_t k = 0; k < n; k++) s += a[k] * b[k];
    return s;
}

static double length(int64_t n, const double *a) { return sqrt(inner(n, a, a)); }

static void add(int64_t n, double *to, double by, const double *a) {
    for (int64_t k = 0; k < n; k++) to[k] += by * a[k];
}

/* Conjugate gradients need n steps, with rounding a few more. With many variables, a direction
 * along which f bends down only a little may stay unseen. */
static int most_products(int64_t n) { return n < 100 ? 2 * (int)n + 10 : 200; }

/* Does f bend down along d, beyond rounding? */
static bool bends(const cot__landscape *f, double dhd, double d, double hd) { return dhd < -sqrt(f->eps) * d * hd; }

/* Moves p along d until |p| is the radius. */
static void to_the_edge(int64_t n, double *p, const double *d, double radius) {
    double dd = inner(n, d, d), pd = inner(n, p, d), rest = radius * radius - inner(n, p, p);
    add(n, p, (sqrt(pd * pd + dd * (rest > 0 ? rest : 0)) - pd) / dd, d);
}

/* Computes the step p, about the minimum of g'p + p'Hp / 2 with |p| <= radius. *promised: by how
 * much the model falls. */
static bool model_step(const cot__landscape *f, const vectors *v, double radius, double exact, double *promised) {
    int64_t n = f->n;
    memset(v->p, 0, (size_t)n * sizeof *v->p);
    memcpy(v->r, v->g, (size_t)n * sizeof *v->r); /* the gradient of the model at p */
    for (int64_t k = 0; k < n; k++) v->d[k] = -v->g[k];
    double rr = inner(n, v->r, v->r), enough = exact * sqrt(rr);
    for (int k = 0; k < most_products(n) && sqrt(rr) > enough; k++) {
        if (!f->bend(f->ctx, v->x, v->d, v->hd)) return false;
        double dhd = inner(n, v->d, v->hd), dd = inner(n, v->d, v->d);
        if (!isfinite(dhd)) break;
        double by = rr / dhd;
        bool   down = dhd <= 0;
        if (!down) { /* |p + by d|² of the next point */
            double there = inner(n, v->p, v->p) + 2 * by * inner(n, v->p, v->d) + by * by * dd;
            down = there >= radius * radius;
        }
        if (down) {
            to_the_edge(n, v->p, v->d, radius);
            break;
        }
        add(n, v->p, by, v->d);
        add(n, v->r, by, v->hd);
        double old = rr;
        rr = inner(n, v->r, v->r);
        for (int64_t j = 0; j < n; j++) v->d[j] = -v->r[j] + rr / old * v->d[j];
    }
    if (!f->bend(f->ctx, v->x, v->p, v->hd)) return false;
    *promised = -(inner(n, v->g, v->p) + 0.5 * inner(n, v->p, v->hd));
    return true;
}

/* Looks for a direction in which f bends down at x, by conjugate gradients with a right-hand side
 * that shares no symmetry with f. The direction is left in d. */
static int look_down(const cot__landscape *f, const double *x, const vectors *v) {
    int64_t n = f->n;
    for (int64_t k = 0; k < n; k++) v->d[k] = v->r[k] = cot__mixed_direction((uint64_t)k);
    double rr = inner(n, v->r, v->r), first = rr;
    for (int k = 0; k < most_products(n) && rr > f->eps * f->eps * first; k++) {
        if (!f->bend(f->ctx, x, v->d, v->hd)) return -1;
        double dhd = inner(n, v->d, v->hd);
        if (bends(f, dhd, length(n, v->d), length(n, v->hd))) return 1;
        if (!(dhd > 0) || !isfinite(dhd)) return 0; /* f is flat along d, or has no derivative */
        add(n, v->r, -rr / dhd, v->hd);
        double old = rr;
        rr = inner(n, v->r, v->r);
        for (int64_t j = 0; j < n; j++) v->d[j] = v->r[j] + rr / old * v->d[j];
    }
    return 0;
}

int cot__bends_down(const cot__landscape *f, const double *x, void *work) {
    vectors v = lay_out(work, f->n);
    return look_down(f, x, &v);
}

/* Sets p to a step along d, in which f bends down, up to the radius; downhill if there is a
 * gradient. */
static void fall(int64_t n, const vectors *v, double radius, double *promised) {
    double scale = radius / length(n, v->d), bend = inner(n, v->d, v->hd) * scale * scale;
    if (inner(n, v->g, v->d) > 0) scale = -scale;
    for (int64_t k = 0; k < n; k++) v->p[k] = scale * v->d[k];
    *promised = -(inner(n, v->g, v->p) + 0.5 * bend);
}

/* Computes one step p, and by how much the model falls. If the gradient leads no further (spent), p
 * goes along a direction in which f bends down. *end: there is no such direction. */
static bool next_step(const cot__landscape *f, const vectors *v, double radius, double exact, bool spent,
                      double *promised, bool *end) {
    if (!spent) return model_step(f, v, radius, exact, promised);
    int down = look_down(f, v->x, v);
    if (down > 0) fall(f->n, v, radius, promised);
    *end = down == 0;
    return down >= 0;
}

cot__descent cot__descend(const cot__landscape *f, double *x, int most, double goal, void *work, cot__descended *how) {
    int64_t n = f->n;
    size_t  bytes = (size_t)n * sizeof(double);
    vectors v = lay_out(work, n);
    memcpy(v.x, x, bytes);
    if (!f->at(f->ctx, v.x, &how->f, v.g)) return COT__DOWN_STOPPED;
    double radius = 1 + length(n, v.x), gradient = length(n, v.g), least = 4 * f->eps;
    bool   spent = gradient == 0, end = false;
    how->first = gradient;
    for (how->steps = 0; how->steps < most && isfinite(how->f) && isfinite(gradient); how->steps++) {
        double promised = 0, there, exact = fmin(0.1, sqrt(gradient / (1 + how->first)));
        if (!next_step(f, &v, radius, exact, spent, &promised, &end)) return COT__DOWN_STOPPED;
        if (end) break;
        for (int64_t k = 0; k < n; k++) v.next[k] = v.x[k] + v.p[k];
        if (!f->at(f->ctx, v.next, &there, v.g_next)) return COT__DOWN_STOPPED;
        double fell = how->f - there, step = length(n, v.p), then = length(n, v.g_next);
        /* the promised fall is within rounding of f, so the gradient tells more than f */
        bool   rounded = promised <= 16 * f->eps * (1 + fabs(how->f));
        bool   better = isfinite(then) && (rounded ? !spent && then < gradient : fell > 1e-4 * promised);
        if (!better || !(fell > 0.25 * promised || rounded)) radius = step / 4;
        else if (fell > 0.75 * promised && step > 0.8 * radius) radius *= 2;
        bool stuck = radius < least * (least + length(n, v.x));
        if (spent && !better && stuck) break; /* the model bends down, but f does not fall */
        spent = better ? then == 0 : spent || rounded || stuck;
        if (!better) continue;
        memcpy(v.x, v.next, bytes);
        memcpy(v.g, v.g_next, bytes);
        how->f = there;
        gradient = then;
    }
    how->gradient = gradient;
    memcpy(x, v.x, bytes);
    bool close = gradient <= goal * (1 + how->first);
    int  down = !end && close ? look_down(f, v.x, &v) : 0;
    return down < 0 ? COT__DOWN_STOPPED : close && !down ? COT__DOWN : COT__DOWN_STUCK;
}
