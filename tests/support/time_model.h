/* time_model.h: a model of a tape whose values change. It keeps every number it has ever seen, and
 * so knows what derivatives should be.
 *
 * The model lists operations like a tape, but each one keeps copies of the operands that it was
 * computed from. So it knows the right derivative whatever was written since. It also knows which
 * values a rule would have to read from memory that has changed: only then may the library answer
 * COT_STALE. Values are numbers or arrays of three; arrays lie in storages with versions.
 *
 * Beside each derivative stands its magnitude: the same sum with every term taken as positive.
 * Rounding errors are a few units of it. */
#ifndef COT_TIME_MODEL_H
#define COT_TIME_MODEL_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <cotangent.h>

enum { WIDE = 3, MODEL_NODES = 400, MODEL_STORAGES = 200, MODEL_PARTS = 60 };

typedef enum model_op {
    M_SOURCE,
    M_NEG,
    M_SQUARE,
    M_SIN,
    M_EXP,
    M_SCALE,
    M_SHIFT,
    M_SAME,
    M_ADD,
    M_SUB,
    M_MUL,
    M_DIV,
    M_SUM,
    M_FLIP,
    M_INDEX,
    M_UPDATE
} model_op;

/* The values that an operation made of several (a loop, a root) reads when it is differentiated:
 * all its inputs. */
typedef struct model_part {
    int  n, in[4];
    long clock;
    bool always;
} model_part; /* always: also where no gradient is recorded */

typedef struct model_node {
    model_op op;
    int      n, in[2];
    double   seen[2][WIDE], seen_size[2][WIDE]; /* operands as they were, and their magnitudes */
    /* the rule reads a copy that cannot be overwritten */
    bool     copied[2];
    /* the number of M_SCALE and M_SHIFT; the position of M_INDEX */
    double   number;
    int      lo, hi;                            /* of M_UPDATE */
    bool     wide, narrow;                      /* an array; f32 */
    bool     active, leaf;
    double   value[WIDE], size[WIDE];
    long     clock, assigned;
    int      storage, part;                     /* -1: none */
    unsigned version;
    bool     hidden, odd;                       /* inside a part; too large to go on with */
    cot_var  var;
    double   grad[WIDE], grad_size[WIDE];       /* of a leaf, as cot_backward has added it up */
} model_node;

typedef struct model {
    model_node node[MODEL_NODES];
    model_part part[MODEL_PARTS];
    unsigned   version[MODEL_STORAGES];
    int        count, parts, storages, no_grad;
    int        most; /* nodes that there ever were at once */
    long       clock;
} model;

static inline int model_width(const model_node *x) { return x->wide ? WIDE : 1; }

/* ---- values ---------------------------------------------------------------------------------- */

static inline bool model_stale(const model *m, int i) {
    const model_node *x = &m->node[i];
    return x->storage >= 0 && x->version != m->version[x->storage];
}

static inline void model_value(model_node *z) {
    for (int i = 0; i < model_width(z); i++) {
        double x[2] = {0, 0}, s[2] = {0, 0};
        for (int k = 0; k < z->n; k++) x[k] = z->seen[k][i], s[k] = z->seen_size[k][i];
        switch (z->op) {
        case M_SOURCE: break;
        case M_NEG: z->value[i] = -x[0], z->size[i] = s[0]; break;
        case M_SQUARE: z->value[i] = x[0] * x[0], z->size[i] = s[0] * s[0]; break;
        case M_SIN: z->value[i] = sin(x[0]), z->size[i] = 1 + s[0]; break;
        case M_EXP: z->value[i] = exp(x[0]), z->size[i] = z->value[i] * (1 + s[0]); break;
        case M_SCALE: z->value[i] = x[0] * z->number, z->size[i] = s[0] * fabs(z->number); break;
        case M_SHIFT: z->value[i] = x[0] + z->number, z->size[i] = s[0] + fabs(z->number); break;
        case M_SAME: z->value[i] = x[0], z->size[i] = s[0]; break;
        case M_ADD: z->value[i] = x[0] + x[1], z->size[i] = s[0] + s[1]; break;
        case M_SUB: z->value[i] = x[0] - x[1], z->size[i] = s[0] + s[1]; break;
        case M_MUL: z->value[i] = x[0] * x[1], z->size[i] = s[0] * s[1]; break;
        case M_DIV: z->value[i] = x[0] / x[1], z->size[i] = s[0] * s[1] / (x[1] * x[1]); break;
        case M_SUM:
            z->value[0] = z->size[0] = 0;
            for (int j = 0; j < WIDE; j++) z->value[0] += z->seen[0][j], z->size[0] += z->seen_size[0][j];
            break;
        case M_FLIP: z->value[i] = z->seen[0][WIDE - 1 - i], z->size[i] = z->seen_size[0][WIDE - 1 - i]; break;
        case M_INDEX: z->value[0] = z->seen[0][(int)z->number], z->size[0] = z->seen_size[0][(int)z->number]; break;
        case M_UPDATE: {
            int from = i >= z->lo && i < z->hi;
            z->value[i] = x[from], z->size[i] = s[from];
            break;
        }
        }
    }
}

/* Adds an operation on nodes a and b (-1: none). Its value is computed from their present
 * values. */
static inline int model_push(model *m, model_op op, int a, int b, double number) {
    int         i = m->count++, in[2] = {a, b};
    if (m->count > m->most) m->most = m->count;
    model_node *z = &m->node[i];
    *z = (model_node){.op = op, .n = (a >= 0) + (b >= 0), .in = {a, b}, .number = number, .clock = m->clock};
    z->storage = z->part = -1;
    z->narrow = a >= 0;
    for (int k = 0; k < z->n; k++) {
        const model_node *x = &m->node[in[k]];
        for (int j = 0; j < WIDE; j++)
            z->seen[k][j] = x->value[x->wide ? j : 0], z->seen_size[k][j] = x->size[x->wide ? j : 0];
        z->wide |= x->wide, z->narrow &= x->narrow;
        z->active |= x->active && m->no_grad == 0;
    }
    if (op == M_SUM || op == M_INDEX) z->wide = false;
    model_value(z);
    return i;
}

/* Gives an array memory of its own. */
static inline void model_own(model *m, int i) {
    model_node *z = &m->node[i];
    if (!z->wide) return;
    z->storage = m->storages++;
    m->version[z->storage] = z->version = 0;
}

/* ---- derivatives ----------------------------------------------------------------------------- */

/* First and second partials of an elementwise operation, at element i, and bounds of them. */
typedef struct model_partials { double p[2], q[2][2], ps[2], qs[2][2]; } model_partials;

static inline model_partials model_partials_at(const model_node *z, int i) {
    model_partials d = {{0}, {{0}}, {0}, {{0}}};
    double         x = z->seen[0][i], y = z->seen[1][i], xs = z->seen_size[0][i], ys = z->seen_size[1][i];
    switch (z->op) {
    case M_NEG: d.p[0] = -1; break;
    case M_SQUARE: d.p[0] = 2 * x, d.q[0][0] = 2, d.ps[0] = 2 * xs; break;
    case M_SIN: d.p[0] = cos(x), d.q[0][0] = -sin(x), d.ps[0] = d.qs[0][0] = 1 + xs; break;
    case M_EXP: d.p[0] = d.q[0][0] = exp(x), d.ps[0] = d.qs[0][0] = exp(x) * (1 + xs); break;
    case M_SCALE: d.p[0] = z->number; break;
    case M_SHIFT: case M_SAME: d.p[0] = 1; break;
    case M_ADD: d.p[0] = d.p[1] = 1; break;
    case M_SUB: d.p[0] = 1, d.p[1] = -1; break;
    case M_MUL: d.p[0] = y, d.p[1] = x, d.q[0][1] = d.q[1][0] = 1, d.ps[0] = ys, d.ps[1] = xs; break;
    case M_DIV: {
        double spread = 1 + ys / fabs(y); /* of the quotient, where the divisor is a sum */
        d.p[0] = 1 / y, d.p[1] = -x / (y * y), d.q[0][1] = d.q[1][0] = -1 / (y * y), d.q[1][1] = 2 * x / (y * y * y);
        d.ps[0] = spread / fabs(y), d.ps[1] = xs * spread * spread / (y * y);
        d.qs[0][1] = d.qs[1][0] = spread * spread / (y * y),
        d.qs[1][1]              = 2 * xs * spread * spread * spread / fabs(y * y * y);
        break;
    }
    case M_UPDATE: d.p[i >= z->lo && i < z->hi] = 1; break;
    default: break;
    }
    for (int k = 0; k < 2; k++) {
        d.ps[k] = fmax(d.ps[k], fabs(d.p[k]));
        for (int j = 0; j < 2; j++) d.qs[k][j] = fmax(d.qs[k][j], fabs(d.q[k][j]));
    }
    return d;
}

/* Tangents, adjoints, and the tangents of adjoints, with their magnitudes. */
typedef struct model_sweep {
    double dx[MODEL_NODES][WIDE], dxs[MODEL_NODES][WIDE];
    double g[MODEL_NODES][WIDE], gs[MODEL_NODES][WIDE];
    double dg[MODEL_NODES][WIDE], dgs[MODEL_NODES][WIDE];
} model_sweep;

/* An operation that gives elements of its operand as they are, or their sum: every partial is 1. */
static inline bool model_rearranges(model_op op) { return op == M_SUM || op == M_FLIP || op == M_INDEX; }

/* The number of elements of an operand that one element of z reads, and element j of them. */
static inline int model_terms(const model_node *z) { return z->op == M_SUM ? WIDE : 1; }
static inline int model_from(const model *m, const model_node *z, int k, int i, int j) {
    if (z->op == M_SUM) return j;
    if (z->op == M_FLIP) return WIDE - 1 - i;
    if (z->op == M_INDEX) return (int)z->number;
    return m->node[z->in[k]].wide ? i : 0;
}

static inline bool model_moves(const model *m, const model_node *z, int k) {
    return z->active && m->node[z->in[k]].active;
}

/* Up: s->dx holds the tangents of the inputs. Down: s->g holds the adjoints of the outputs. */
static inline void model_differentiate(const model *m, model_sweep *s) {
    for (int z = 0; z < m->count; z++) {
        const model_node *n = &m->node[z];
        bool              moved = model_rearranges(n->op);
        for (int i = 0; i < model_width(n); i++) {
            model_partials d = model_partials_at(n, i);
            for (int k = 0; k < n->n; k++)
                for (int j = 0; j < model_terms(n) && model_moves(m, n, k); j++) {
                    int a = n->in[k], at = model_from(m, n, k, i, j);
                    s->dx[z][i] += (moved ? 1 : d.p[k]) * s->dx[a][at];
                    s->dxs[z][i] += (moved ? 1 : d.ps[k]) * s->dxs[a][at];
                }
        }
    }
    for (int z = m->count; z-- > 0;) {
        const model_node *n = &m->node[z];
        bool              moved = model_rearranges(n->op);
        for (int i = 0; i < model_width(n); i++) {
            model_partials d = model_partials_at(n, i);
            for (int k = 0; k < n->n; k++)
                for (int j = 0; j < model_terms(n) && model_moves(m, n, k); j++) {
                    int    a = n->in[k], at = model_from(m, n, k, i, j);
                    double p = moved ? 1 : d.p[k], ps = moved ? 1 : d.ps[k], bend = 0, bends = 0;
                    for (int l = 0; l < n->n && !moved; l++) {
                        int from = m->node[n->in[l]].wide ? i : 0;
                        if (!model_moves(m, n, l)) continue;
                        bend += d.q[k][l] * s->dx[n->in[l]][from];
                        bends += d.qs[k][l] * s->dxs[n->in[l]][from];
                    }
                    s->g[a][at] += s->g[z][i] * p;
                    s->gs[a][at] += s->gs[z][i] * ps;
                    s->dg[a][at] += s->dg[z][i] * p + s->g[z][i] * bend;
                    s->dgs[a][at] += s->dgs[z][i] * ps + s->gs[z][i] * bends;
                }
        }
    }
}

/* ---- what a derivative reads ----------------------------------------------------------------- */

/* Has the value of node x changed since `clock`, when it was read? */
static inline bool model_overwritten(const model *m, int x, long clock) {
    return model_stale(m, x) || (m->node[x].op == M_SOURCE && m->node[x].assigned > clock);
}

/* Does the partial of node z to operand k read operand `which` (2: the result)? */
static inline bool model_reads(model_op op, int k, int which) {
    switch (op) {
    case M_SQUARE: case M_SIN: return which == 0;
    case M_EXP: return which == 2;
    case M_MUL: return which == 1 - k;
    case M_DIV: return which == 1 || (k == 1 && which == 2);
    default: return false;
    }
}

static inline bool model_partial_spoilt(const model *m, int z, int k) {
    const model_node *n = &m->node[z];
    if (n->part >= 0) {
        const model_part *p = &m->part[n->part];
        for (int j = 0; j < p->n; j++)
            if (model_overwritten(m, p->in[j], p->clock)) return true;
        return false;
    }
    for (int j = 0; j < n->n; j++)
        if (model_reads(n->op, k, j) && !n->copied[j] && model_overwritten(m, n->in[j], n->clock)) return true;
    return model_reads(n->op, k, 2) && model_stale(m, z);
}

/* Would a derivative of the ys by the xs (none: by all leaves) read a value that has been
 * overwritten? */
static inline bool model_spoilt(const model *m, int ny, const int *ys, int nx, const int *xs) {
    bool needed[MODEL_NODES] = {false}, reach[MODEL_NODES] = {false};
    for (int k = 0; k < ny; k++) needed[ys[k]] = true;
    for (int k = 0; k < nx; k++) reach[xs[k]] = true;
    for (int z = 0; z < m->count; z++) {
        if (nx == 0) reach[z] = m->node[z].active;
        for (int k = 0; k < m->node[z].n; k++) reach[z] |= model_moves(m, &m->node[z], k) && reach[m->node[z].in[k]];
    }
    for (int z = m->count; z-- > 0;)
        for (int k = 0; k < m->node[z].n && needed[z]; k++) {
            int a = m->node[z].in[k];
            if (!model_moves(m, &m->node[z], k)) continue;
            needed[a] = true;
            if (reach[a] && model_partial_spoilt(m, z, k)) return true;
        }
    return false;
}

#endif
