/* factors.c: numbers that values are multiplied with, for every IEEE number and to the bit.
 *
 *   smul(x, c) = x * c      c finite and not 0: only a zero or an infinity beside a zero makes a
 *                           difference. sdiv(x, c) = x / c likewise
 *   -(x * c) = x * (-c)     signs commute with rounding; so does (-x) * c
 *   (x * 2^k) * c = x * (2^k c)  if k >= 0 and |c| >= 1: x * 2^k is exact, or is infinite as the
 *                           whole is
 *   x + y * (-c) = x - y * c     where nothing else reads that product: then y * c may be there
 *                           already. x - y * (-c) = x + y * c likewise
 *
 * All of it is for floats. 16-bit ones are computed in f32 and rounded after each operation; there
 * x * 2^k is exact, too. */
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "rules/elementwise_ids.h"

#include <math.h>

typedef struct counts { uint32_t *readers; } counts; /* of each value of the old program */

/* ---- questions ------------------------------------------------------------------------------- */

/* Is it finite and not 0 in the dtype in which it is computed with? */
static bool is_factor(cot_dtype dtype, double c) {
    float narrow = (float)c;
    if (cot__dtype_compute(dtype) == COT_F64) return isfinite(c) && c != 0;
    return isfinite(narrow) && narrow != 0;
}

/* 2^k, k >= 0, such that 2^k c is an ordinary number of every dtype that is computed in. */
static bool is_exact(double power, double c) {
    int exponent;
    return power >= 1 && frexp(power, &exponent) == 0.5 && fabs(c) >= 1 && power * fabs(c) < 0x1p100;
}

/* The place of the plain number of an operation of two operands; -1: it has none. */
static int number_at(const uint32_t *x) { return x[1] == COT__NO_VALUE ? 1 : x[0] == COT__NO_VALUE ? 0 : -1; }

/* Does the new program make the value by multiplying *of with the number *c? */
static bool is_scaled(const cot__program *p, uint32_t v, uint32_t *of, double *c) {
    uint32_t k = cot__maker_of(p, v);
    if (k == COT__NO_VALUE || p->operation[k].op != OP_mul) return false;
    const uint32_t *x = cot__operation_operand(p, k);
    int             i = number_at(x);
    if (i < 0) return false;
    *of = x[1 - i];
    *c = cot__operation_number(p, k);
    return true;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static bool drop_strong_zero(cot__append *o, cot_dtype dtype) {
    int i = number_at(o->x);
    if (i < 0 || !is_factor(dtype, o->number)) return false;
    if (o->op == OP_smul) return o->op = OP_mul, true;
    return o->op == OP_sdiv && i == 1 ? o->op = OP_div, true : false;
}

/* -(x * c) */
static bool turn_scaled(cot__rewrite *r, cot__append *o) {
    double   c;
    uint32_t of;
    if (o->op != OP_neg || !is_scaled(r->to.p, o->x[0], &of, &c)) return false;
    r->x[0] = of;
    r->x[1] = COT__NO_VALUE;
    o->op = OP_mul;
    o->n = 2;
    o->number = -c;
    return true;
}

/* (-x) * c and (x * 2^k) * c */
static bool merge_factors(cot__rewrite *r, cot__append *o) {
    int      i = o->op == OP_mul ? number_at(o->x) : -1;
    uint32_t of;
    double   c;
    if (i < 0) return false;
    if (cot__made_by(r->to.p, o->x[1 - i], OP_neg, &of)) o->number = -o->number;
    else if (is_scaled(r->to.p, o->x[1 - i], &of, &c) && is_exact(c, o->number)) o->number *= c;
    else return false;
    r->x[1 - i] = of;
    return true;
}

/* The positive factor instead, as a new operation; `reader` reads the old product alone. */
static bool turn_sum(cot__rewrite *r, cot__append *o, uint32_t k) {
    const counts   *n = r->edit->state;
    const uint32_t *old = cot__operation_operand(r->from, k);
    uint32_t        of;
    double          c;
    if ((o->op != OP_add && o->op != OP_sub) || o->x[1] == COT__NO_VALUE || n->readers[old[1]] != 1) return false;
    if (!is_scaled(r->to.p, o->x[1], &of, &c) || !(c < 0)) return false;
    uint32_t    x[2] = {of, COT__NO_VALUE};
    cot__append scaled = {.op = OP_mul, .n = 2, .x = x, .number = -c, .name = o->name, .file = o->file,
                          .line = o->line};
    uint32_t    made = cot__build_operation(&r->to, &scaled);
    if (made == COT__NO_VALUE) return false; /* the builder has told */
    r->x[1] = made;
    o->op = o->op == OP_add ? OP_sub : OP_add;
    return true;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void edit_operation(cot__rewrite *r, uint32_t k) {
    cot__type   asked;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    cot_dtype   dtype = cot__value_view(r->from, r->from->operation[k].result).dtype;
    if (o.op < OP_structural && o.n <= 2 && cot__dtype_is_float(dtype)) {
        if (o.n == 1) r->changes += turn_scaled(r, &o);
        else r->changes += drop_strong_zero(&o, dtype), r->changes += merge_factors(r, &o) || turn_sum(r, &o, k);
    }
    cot__rewrite_put(r, k, &o);
}

static void count_readers(const cot__program *p, uint32_t *readers) {
    for (uint32_t v = 0; v < p->values; v++) readers[v] = 0;
    for (uint32_t i = 0; i < p->operands; i++)
        if (p->operand[i] != COT__NO_VALUE) readers[p->operand[i]]++;
    for (uint32_t i = 0; i < p->outputs; i++) readers[p->output[i]]++;
}

cot__program *cot__pass_factors(const cot__program *p, const cot__pass_options *o) {
    size_t    bytes = p->values * sizeof(uint32_t);
    counts    n = {cot__alloc(o->al, bytes)};
    cot__edit how = {.state = &n, .operation = edit_operation};
    if (!n.readers) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes), NULL;
    count_readers(p, n.readers);
    cot__program *made = cot__rewrite_run(p, o, &how);
    cot__free(o->al, n.readers, bytes);
    return made;
}
