/* scan.c: running sums, first-order recurrences and running extremes along one axis.
 *
 * Each slice along the axis is one chain in a fixed order, carried in f64 (or i64) and rounded to
 * the result's dtype at each place, so a long chain of narrow floats neither stalls nor drifts.
 * Slices that lie side by side advance together, LANES at a time; where the axis itself is the
 * dense one a slice goes block by block. Parts are groups of slices. */
#include "backend/cpu/strip.h"
#include "base/parallel.h"

enum { LANES = 32, MOST_PARTS = 64 };

typedef enum scan_kind { SUM, RECURRENCE, STRONG_RECURRENCE, ARGMAX, ARGMIN } scan_kind;

typedef union lane { double f; int64_t i; } lane;

typedef struct scan {
    scan_kind kind;
    bool      whole;               /* integers: lanes are i64 */
    /* a: the coefficients of a recurrence, else like b and not read */
    cot__view a, b, z;
    int64_t   n;                   /* elements of a slice */
    int64_t   axis[3];             /* strides of a, b, z along it, in the direction of the scan */
    /* offset of the coefficient of element 0, which is not read: backward it lies behind the
     * array */
    int64_t   a_first;
    cot__walk outer;               /* the other axes but one, and */
    int64_t   neighbours, step[3]; /* that one, which numbers neighbouring slices */
    int64_t   groups, per_row;     /* groups of up to LANES slices; of one index of `outer` */
    bool      alone;               /* slice by slice */
    int64_t   parts;
} scan;

/* The state of a slice between blocks. */
typedef struct carry { lane value; int64_t at; } carry;

/* ---- one step of each kind: n values of b (and a); the i-th belongs to s[i * side] ----------- */

static inline double strong_product(double a, double s) { return a == 0 || s == 0 ? 0 : a * s; }

static void advance_f64(scan_kind kind, carry *s, int side, const lane *a, const lane *b, lane *z, int n) {
    if (kind == SUM && side == 0) {
        double sum = s->value.f;
        for (int i = 0; i < n; i++) z[i].f = sum += b[i].f;
        s->value.f = sum;
        return;
    }
    for (int i = 0; i < n; i++) {
        carry *c = &s[i * side];
        switch (kind) {
        case SUM: c->value.f += b[i].f; break;
        case RECURRENCE: c->value.f = b[i].f + a[i].f * c->value.f; break;
        default: c->value.f = b[i].f + strong_product(a[i].f, c->value.f); break;
        }
        z[i].f = c->value.f;
    }
}

/* Unsigned, because integers wrap. */
static void advance_i64(scan_kind kind, carry *s, int side, const lane *a, const lane *b, lane *z, int n) {
    for (int i = 0; i < n; i++) {
        carry   *c = &s[i * side];
        uint64_t old = (uint64_t)c->value.i;
        c->value.i = (int64_t)((uint64_t)b[i].i + (kind == SUM ? old : (uint64_t)a[i].i * old));
        z[i].i = c->value.i;
    }
}

/* A later element wins only if it is strictly beyond; the first NaN wins for good. */
static void advance_extreme(const scan *c, carry *s, int side, int64_t at, const lane *b, lane *z, int n) {
    for (int i = 0; i < n; i++) {
        carry *best = &s[i * side];
        lane   x = b[i];
        bool   beyond;
        if (c->whole) beyond = c->kind == ARGMAX ? x.i > best->value.i : x.i < best->value.i;
        else if (best->value.f != best->value.f) beyond = false;
        else beyond = x.f != x.f || (c->kind == ARGMAX ? x.f > best->value.f : x.f < best->value.f);
        if (beyond) best->value = x, best->at = at + (side ? 0 : i);
        z[i].i = best->at;
    }
}

static void advance(const scan *c, carry *s, int side, int64_t at, const lane *a, const lane *b, lane *z, int n) {
    if (c->kind >= ARGMAX) advance_extreme(c, s, side, at, b, z, n);
    else if (c->whole) advance_i64(c->kind, s, side, a, b, z, n);
    else advance_f64(c->kind, s, side, a, b, z, n);
}

/* The first element of each slice is its own. */
static void begin(const scan *c, carry *s, const lane *b, lane *z, int n) {
    for (int i = 0; i < n; i++) {
        s[i] = (carry){b[i], 0};
        if (c->kind >= ARGMAX) z[i].i = 0;
        else z[i] = b[i];
    }
}

/* ---- loading and storing --------------------------------------------------------------------- */

static cot_dtype lane_dtype(const scan *c) { return c->whole ? COT_I64 : COT_F64; }

static void load(const scan *c, const cot__view *v, int64_t offset, int64_t stride, lane *to, int n) {
    cot__strip(lane_dtype(c), v->dtype)(to, 1, cot__at(v, offset), stride, n);
}

static void store(const scan *c, int64_t offset, int64_t stride, const lane *from, int n) {
    cot__strip(c->z.dtype, c->kind >= ARGMAX ? COT_I64 : lane_dtype(c))(cot__at(&c->z, offset), stride, from, 1, n);
}

static bool has_coefficients(const scan *c) { return c->kind == RECURRENCE || c->kind == STRONG_RECURRENCE; }

static void scan_together(const scan *c, const int64_t o[3], int w) {
    carry s[LANES];
    lane  a[LANES], b[LANES], z[LANES];
    for (int64_t k = 0; k < c->n; k++) {
        load(c, &c->b, o[1] + k * c->axis[1], c->step[1], b, w);
        if (k > 0 && has_coefficients(c)) load(c, &c->a, o[0] + k * c->axis[0], c->step[0], a, w);
        if (k == 0) begin(c, s, b, z, w);
        else advance(c, s, 1, k, a, b, z, w);
        store(c, o[2] + k * c->axis[2], c->step[2], z, w);
    }
}

static void scan_alone(const scan *c, const int64_t o[3]) {
    carry s;
    lane  a[COT__BLOCK], b[COT__BLOCK], z[COT__BLOCK];
    for (int64_t k = 0; k < c->n; k += COT__BLOCK) {
        /* element 0 has no coefficient */
        int len = c->n - k < COT__BLOCK ? (int)(c->n - k) : COT__BLOCK, from = k == 0;
        load(c, &c->b, o[1] + k * c->axis[1], c->axis[1], b, len);
        if (has_coefficients(c) && len > from)
            load(c, &c->a, o[0] + (k + from) * c->axis[0], c->axis[0], a + from, len - from);
        if (from) begin(c, &s, b, z, 1);
        advance(c, &s, 0, k + from, a + from, b + from, z + from, len - from);
        store(c, o[2] + k * c->axis[2], c->axis[2], z, len);
    }
}

/* ---- all slices ------------------------------------------------------------------------------ */

static void run_part(void *ctx, int64_t part) {
    const scan *c = ctx;
    int64_t     end = cot__part_start(c->groups, c->parts, part + 1);
    for (int64_t g = cot__part_start(c->groups, c->parts, part); g < end; g++) {
        int64_t row = g / c->per_row, first = g % c->per_row * LANES, o[3] = {c->a_first, 0, 0};
        int     w = c->neighbours - first < LANES ? (int)(c->neighbours - first) : LANES;
        for (int i = c->outer.ndim - 1; i >= 0; row /= c->outer.shape[i], i--)
            for (int k = 0; k < 3; k++) o[k] += row % c->outer.shape[i] * c->outer.stride[k][i];
        for (int k = 0; k < 3; k++) o[k] += first * c->step[k];
        if (!c->alone) {
            scan_together(c, o, w);
            continue;
        }
        for (int i = 0; i < w; i++)
            scan_alone(c, (int64_t[]){o[0] + i * c->step[0], o[1] + i * c->step[1], o[2] + i * c->step[2]});
    }
}

/* Views whose axis runs backward: the same places seen from the other end. The coefficient of a
 * recurrence belongs to the step between an element and the one before it, so from the other end it
 * is one place off. */
static void turn_round(scan *c) {
    int64_t last = c->n - 1;
    c->a_first = c->n * c->axis[0];
    c->b.data = cot__at(&c->b, last * c->axis[1]);
    c->z.data = cot__at(&c->z, last * c->axis[2]);
    for (int k = 0; k < 3; k++) c->axis[k] = -c->axis[k];
}

static void run(scan_kind kind, bool reverse, const cot__view *a, const cot__view *b, int axis, const cot__view *z) {
    if (cot__count(b->ndim, b->shape) == 0) return;
    scan c = {.kind  = kind,
              .whole = cot__dtype_compute(b->dtype) == COT_I64,
              .a     = *a,
              .b     = *b,
              .z     = *z,
              .n     = b->shape[axis],
              .axis  = {a->stride[axis], b->stride[axis], z->stride[axis]}};
    cot__walk_start(&c.outer, 3);
    for (int i = 0; i < b->ndim; i++)
        if (i != axis) cot__walk_axis(&c.outer, b->shape[i], a->stride[i], b->stride[i], z->stride[i]);
    cot__walk_sort(&c.outer, 1);
    cot__walk_merge(&c.outer);
    c.neighbours = cot__walk_pop(&c.outer, c.step);
    if (reverse) turn_round(&c);
    c.alone = c.neighbours == 1 || llabs(c.axis[1]) < llabs(c.step[1]);
    c.per_row = (c.neighbours + LANES - 1) / LANES;
    c.groups = cot__walk_count(&c.outer) * c.per_row;
    c.parts = cot__parts(c.groups, c.n * (c.neighbours < LANES ? c.neighbours : LANES) * 4, MOST_PARTS);
    cot__parallel(c.parts, run_part, &c);
}

void cot__cumsum(const cot__view *x, int axis, bool reverse, const cot__view *z) { run(SUM, reverse, x, x, axis, z); }

void cot__recurrence(const cot__view *a, const cot__view *b, int axis, bool reverse, bool strong, const cot__view *z) {
    run(strong ? STRONG_RECURRENCE : RECURRENCE, reverse, a, b, axis, z);
}

void cot__cumargmax(const cot__view *x, int axis, bool smallest, const cot__view *z) {
    run(smallest ? ARGMIN : ARGMAX, false, x, x, axis, z);
}
