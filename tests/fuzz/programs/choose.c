/* choose.c: turns bytes into decisions. The same bytes decide the same things in every way of
 * running, because decisions look at shapes and dtypes only, never at values. */
#include "program.h"

#include <math.h>

uint8_t program_head(const program *p, int k) { return (size_t)k < p->size ? p->bytes[k] : 0; }

int program_steps(const program *p) {
    size_t n = p->size < HEAD ? 0 : (p->size - HEAD) / STEP;
    return n < MOST_STEPS ? (int)n : MOST_STEPS;
}

static uint64_t mix(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z          = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z          = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

chooser chooser_of(const program *p, int step) {
    chooser c = {p->bytes + HEAD + (size_t)step * STEP, 1, 0, step};
    for (int i = 0; i < STEP; i++) c.mixed = (c.mixed ^ c.byte[i]) * UINT64_C(1099511628211);
    return c;
}

unsigned choose(chooser *c, unsigned n) {
    if (n < 2) return 0;
    return (unsigned)((c->at < STEP ? c->byte[c->at++] : mix(&c->mixed) >> 32) % n);
}

bool chance(chooser *c, unsigned one_in) { return choose(c, one_in) == one_in - 1; }

/* Bodies fail as a whole, so bad decisions stay outside of them. */
bool wild(const frame *f, chooser *c) { return (f->run->flags & WILD) && f->depth == 0 && mix(&c->mixed) % 8 == 0; }

double choose_number(const frame *f, chooser *c) {
    static const double special[] = {INFINITY, -INFINITY, NAN,    -0.0,  0,     1e308,
                                     -1e308,   1e-308,    5e-324, 1e-40, 65504, 1e19};
    uint64_t            bits      = mix(&c->mixed);
    if ((f->run->flags & SPECIAL) && bits % 8 == 0) return special[(bits >> 8) % (sizeof special / sizeof *special)];
    /* small whole numbers, so that there are ties */
    if (bits % 16 == 1) return (double)((int64_t)(bits >> 8) % 3);
    return (double)((bits >> 11) % 4001) / 1000 - 2;
}

int64_t choose_extent(chooser *c) {
    static const int64_t extents[] = {1, 2, 3, 4, 2, 3, 1, 5, 2, 3, 4, 7, 3, 2, 0, 16};
    return extents[choose(c, 16)];
}

cot_shape choose_shape(chooser *c, int most_axes) {
    cot_shape s = {(int)choose(c, (unsigned)most_axes + 1), {0}};
    if (s.ndim == 1 && chance(c, 12)) { /* long enough for several blocks of a kernel */
        s.dim[0] = 257 + (int64_t)choose(c, 256) * 4;
        return s;
    }
    int64_t size = 1;
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = choose_extent(c);
        if (size * s.dim[i] > MOST_ELEMENTS / 2) s.dim[i] = 2;
        size *= s.dim[i] ? s.dim[i] : 1;
    }
    return s;
}

int choose_axis(const frame *f, chooser *c, value x, int beyond) {
    int n = rank(x) + beyond;
    if (n == 0 || wild(f, c)) return (int)choose(c, 9) - 4;
    return (int)choose(c, 2 * (unsigned)n) - n;
}

cot_axes choose_axes(const frame *f, chooser *c, value x) {
    cot_axes a    = {-1, false, {0}};
    unsigned what = choose(c, 8);
    a.keepdims    = what & 1;
    if (what < 3 || (rank(x) == 0 && !wild(f, c))) return a;
    a.n       = 1;
    a.axis[0] = choose_axis(f, c, x, 0);
    if (what == 7 && rank(x) > 1) { /* two axes that differ, unless the decision is a bad one */
        int first = a.axis[0] < 0 ? a.axis[0] + rank(x) : a.axis[0];
        a.axis[1] = wild(f, c) ? first : (first + 1) % rank(x);
        a.n       = 2;
    }
    return a;
}

cot_dtype choose_dtype(chooser *c) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16, COT_I64, COT_I32, COT_U8, COT_BOOL};
    return dtypes[choose(c, 8)];
}

cot_dtype choose_float(chooser *c, bool mixed) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_F32, COT_BF16, COT_F16, COT_F64, COT_F32, COT_F64};
    unsigned               which    = choose(c, 8);
    return mixed ? dtypes[which] : COT_F64;
}
