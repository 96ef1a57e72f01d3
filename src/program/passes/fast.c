/* fast.c: algebra that holds for real numbers and not for every IEEE number, for programs whose
 * user allows it (`fast`).
 *
 *   x + 0, x * 0, 0 / x       x, 0, 0; x - x is 0 and x / x is 1
 *   (x + c) + d               x + (c + d), with differences and negations in any place
 *   (x * c) * d               x * (c d); so with quotients of a number
 *   x / c                     x * (1 / c)
 *   x / y                     x * (1 / y) of arrays, if y divides something else too, or repeats
 *   x * c + x * d             x * (c + d); a * x + b * x = (a + b) * x, if only the sum reads both
 *   exp(log(x)), sqrt(x)^2    x; sqrt(x^2) is |x|, 1 / (1 / x) is x, …
 *   pow(x, n)                 products, n up to 16, and a square root for n + 1/2
 *   smul(g, y)                g * y, if neither has a pole: see below
 *   a * b + c                 fma(a, b, c), where that is one instruction
 *
 * It is taken for granted that what the user gives is finite, and that sums and products of finite
 * numbers are. A zero stays strong beside anything that may have a pole (1 / y, log, exp, …), and
 * beside what another program has computed (`within`): the branch of a `where` that was not taken
 * leaves no NaN. */
#include "base/cpu.h"
#include "base/element.h"
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <math.h>
#include <string.h>

enum { MOST_POWER = 16 };

/* Of a value of the old program. */
typedef struct seen {
    uint32_t readers, divides; /* how often it is read, and how often to divide by it */
    bool     tame;             /* it is finite, if the inputs are */
} seen;

typedef struct fast {
    seen    *of;
    uint32_t number[COT_DTYPE_COUNT][2]; /* 0 and 1 as constants without axes, when they are made */
} fast;

/* An operation that is looked at: its operands are values of the new program. */
typedef struct look {
    cot__rewrite *r;
    uint32_t      k;
    cot__append  *o;
} look;

/* ---- questions ------------------------------------------------------------------------------- */

static const cot__program *made_so_far(const look *l) { return l->r->to.p; }
static fast               *state_of(const look *l) { return l->r->edit->state; }
static cot__view           result_of(const look *l) {
    return cot__value_view(l->r->from, l->r->from->operation[l->k].result);
}

/* Operand i of the operation, as it was in the old program. */
static const seen *seen_at(const look *l, int i) {
    return &state_of(l)->of[cot__operation_operand(l->r->from, l->k)[i]];
}

/* The place of the plain number of an operation of two operands; -1: it has none. */
static int number_at(const uint32_t *x) { return x[1] == COT__NO_VALUE ? 1 : x[0] == COT__NO_VALUE ? 0 : -1; }

/* Far from overflow and from subnormals in every dtype that is computed in. */
static bool is_ordinary(double c) { return fabs(c) > 1e-30 && fabs(c) < 1e30; }

static bool made_by(const look *l, int i, int op, uint32_t *of) {
    return cot__made_by(made_so_far(l), l->o->x[i], op, of);
}

static bool has_axes(const look *l, uint32_t v) { return cot__value_view(made_so_far(l), v).ndim > 0; }

/* Operands and number of the operation of two operands that makes v. */
static const uint32_t *binary_of(const cot__program *p, uint32_t v, int *op, double *number) {
    uint32_t k = cot__maker_of(p, v);
    if (k == COT__NO_VALUE || p->operation[k].op >= OP_structural || cot__operation_operands(p, k) != 2) return NULL;
    const uint32_t *x = cot__operation_operand(p, k);
    *op = p->operation[k].op;
    *number = number_at(x) < 0 ? 0 : cot__operation_number(p, k);
    return x;
}

/* ---- building -------------------------------------------------------------------------------- */

/* What the operation becomes. */
static bool becomes(const look *l, int op, uint32_t x, uint32_t y, double number) {
    l->r->x[0] = x;
    l->r->x[1] = y;
    l->o->op = op;
    l->o->n = 2;
    l->o->number = number;
    return true;
}
static bool becomes_unary(const look *l, int op, uint32_t x) {
    l->r->x[0] = x;
    l->o->op = op;
    l->o->n = 1;
    return true;
}

/* One more operation in front of it; COT__NO_VALUE after the builder has told. */
static uint32_t make(const look *l, int op, int n, uint32_t x, uint32_t y) {
    uint32_t operand[2] = {x, y};
    return cot__build_operation(&l->r->to, &(cot__append){.op = op, .n = n, .x = operand, .name = l->o->name,
                                                          .file = l->o->file, .line = l->o->line});
}

static uint32_t repeat(const look *l, uint32_t x, const cot__view *like) {
    if (x == COT__NO_VALUE || like->ndim == 0) return x;
    cot__type type = {like->dtype, cot__view_extents(like)};
    return cot__build_operation(&l->r->to, &(cot__append){.op = OP_broadcast_to, .n = 1, .x = &x, .asked = &type,
                                                          .name = "broadcast_to", .file = l->o->file,
                                                          .line = l->o->line});
}

/* 0 or 1 in the type of the result. */
static uint32_t whole_number(const look *l, int c) {
    cot__view result = result_of(l);
    uint32_t *known = &state_of(l)->number[result.dtype][c];
    void     *element;
    if (*known == COT__NO_VALUE) {
        *known = cot__build_constant(&l->r->to, &(cot__type){result.dtype, {0, {0}}}, &element);
        if (*known != COT__NO_VALUE) cot__store_f64(element, result.dtype, c);
    }
    return repeat(l, *known, &result);
}

/* ---- the value that the result is ------------------------------------------------------------ */

static uint32_t value_beside_number(const look *l, int i) {
    double c = l->o->number;
    if (c == 0 && (l->o->op == OP_mul || l->o->op == OP_smul)) return whole_number(l, 0);
    if (c == 0 && i == 0 && (l->o->op == OP_div || l->o->op == OP_sdiv)) return whole_number(l, 0);
    if (c == 0 && l->o->op == OP_add) return l->o->x[1 - i];
    if (l->o->op == OP_pow && i == 1 && c == 0) return whole_number(l, 1);
    return l->o->op == OP_pow && i == 1 && c == 1 ? l->o->x[0] : COT__NO_VALUE;
}

static uint32_t value_beside_itself(const look *l) {
    uint32_t of = COT__NO_VALUE;
    switch (l->o->op) {
    case OP_sub: return whole_number(l, 0);
    case OP_div:
    case OP_sdiv: return whole_number(l, 1);
    case OP_mul:
    case OP_smul: return made_by(l, 0, OP_sqrt, &of) ? of : COT__NO_VALUE;
    default: return COT__NO_VALUE;
    }
}

/* Functions that undo each other, the second after the first. */
static uint32_t value_before(const look *l) {
    static const uint16_t undone[][2] = {{OP_log, OP_exp},     {OP_exp, OP_log},       {OP_log2, OP_exp2},
                                         {OP_exp2, OP_log2},   {OP_log1p, OP_expm1},   {OP_expm1, OP_log1p},
                                         {OP_sqrt, OP_square}, {OP_reciprocal, OP_reciprocal}};
    uint32_t of = COT__NO_VALUE;
    for (int k = 0; k < COUNTOF(undone) && of == COT__NO_VALUE; k++)
        if (l->o->op == undone[k][1]) made_by(l, 0, undone[k][0], &of);
    return of;
}

/* A value of the new program that the result is, or none. */
static uint32_t value_of(const look *l) {
    if (l->o->n == 1) return value_before(l);
    if (l->o->n != 2) return COT__NO_VALUE;
    int i = number_at(l->o->x);
    if (i >= 0) return value_beside_number(l, i);
    return l->o->x[0] == l->o->x[1] ? value_beside_itself(l) : COT__NO_VALUE;
}

/* ---- numbers meet ---------------------------------------------------------------------------- */

/* sign * x + c */
typedef struct shifted { uint32_t x; double sign, c; } shifted;

static bool is_shifted(int op, const uint32_t *x, double number, shifted *s) {
    int i = number_at(x);
    if (i < 0 || (op != OP_add && op != OP_sub)) return false;
    bool turned = op == OP_sub && i == 0;
    *s = (shifted){x[1 - i], turned ? -1 : 1, op == OP_sub && i == 1 ? -number : number};
    return true;
}

static bool join_shifts(const look *l) {
    shifted         outer = {l->o->x[0], -1, 0}, inner;
    int             op = 0;
    double          number = 0;
    if (l->o->op != OP_neg && !(l->o->n == 2 && is_shifted(l->o->op, l->o->x, l->o->number, &outer))) return false;
    const uint32_t *x = binary_of(made_so_far(l), outer.x, &op, &number);
    if (!x || !is_shifted(op, x, number, &inner)) return false;
    double c = outer.sign * inner.c + outer.c;
    if (!isfinite(c)) return false;
    if (outer.sign * inner.sign > 0) return becomes(l, OP_add, inner.x, COT__NO_VALUE, c);
    return becomes(l, OP_sub, COT__NO_VALUE, inner.x, c);
}

/* c * x, or c / x */
typedef struct scaled { uint32_t x; double c; bool divides; } scaled;

static bool is_scaled(int op, const uint32_t *x, double number, scaled *s) {
    int i = number_at(x);
    if (i < 0 || !is_ordinary(number) || (op != OP_mul && op != OP_div)) return false;
    *s = (scaled){x[1 - i], op == OP_div && i == 1 ? 1 / number : number, op == OP_div && i == 0};
    return true;
}

/* The value as a product with a number: of itself and 1, if nothing else. */
static scaled scaled_value(const cot__program *p, uint32_t v) {
    int             op = 0;
    double          number = 0;
    scaled          s;
    const uint32_t *x = binary_of(p, v, &op, &number);
    return x && is_scaled(op, x, number, &s) ? s : (scaled){v, 1, false};
}

static bool put_scaled(const look *l, uint32_t x, double c, bool divides) {
    if (!is_ordinary(c)) return false;
    return divides ? becomes(l, OP_div, COT__NO_VALUE, x, c) : becomes(l, OP_mul, x, COT__NO_VALUE, c);
}

/* (c x) d, (c / x) d, d / (c x), d / (c / x), and x / d */
static bool join_factors(const look *l) {
    scaled outer, inner;
    if (l->o->n != 2 || !is_scaled(l->o->op, l->o->x, l->o->number, &outer)) return false;
    inner = scaled_value(made_so_far(l), outer.x);
    if (inner.x == outer.x) return l->o->op == OP_div && !outer.divides && put_scaled(l, outer.x, outer.c, false);
    double c = outer.divides ? outer.c / inner.c : outer.c * inner.c;
    return put_scaled(l, inner.x, c, outer.divides != inner.divides);
}

/* ---- sums of products ------------------------------------------------------------------------ */

static bool is_sum(const look *l) {
    return (l->o->op == OP_add || l->o->op == OP_sub) && number_at(l->o->x) < 0;
}

/* c x + d x, of which one may be x itself */
static bool join_scaled(const look *l) {
    scaled a = scaled_value(made_so_far(l), l->o->x[0]), b = scaled_value(made_so_far(l), l->o->x[1]);
    bool   apart = a.x != b.x || a.divides != b.divides || l->o->x[0] == l->o->x[1];
    return !apart && put_scaled(l, a.x, l->o->op == OP_add ? a.c + b.c : a.c - b.c, a.divides);
}

/* The two operands of a product of two values. */
static const uint32_t *product_of(const look *l, int i, int *op) {
    double          number;
    const uint32_t *x = binary_of(made_so_far(l), l->o->x[i], op, &number);
    return x && (*op == OP_mul || *op == OP_smul) && number_at(x) < 0 ? x : NULL;
}

/* a x + b x: x keeps its place. */
static bool join_products(const look *l) {
    int             op[2];
    const uint32_t *a = product_of(l, 0, &op[0]), *b = product_of(l, 1, &op[1]);
    if (!a || !b || seen_at(l, 0)->readers != 1 || seen_at(l, 1)->readers != 1) return false;
    for (int i = 0; i < 4; i++) {
        uint32_t common = a[i & 1], first = a[1 - (i & 1)], second = b[1 - (i >> 1)];
        if (b[i >> 1] != common || !cot__same_type(made_so_far(l), first, made_so_far(l), second)) continue;
        uint32_t sum = make(l, l->o->op, 2, first, second);
        int      product = op[0] == OP_mul && op[1] == OP_mul ? OP_mul : OP_smul;
        if (sum == COT__NO_VALUE) return false;
        return i & 1 ? becomes(l, product, sum, common, 0) : becomes(l, product, common, sum, 0);
    }
    return false;
}

/* a * b + c, of arrays: scalars have an instruction for it as it is. */
static bool fuse(const look *l) {
    if (l->o->op != OP_add || !cot__cpu_fuses()) return false;
    for (int i = 0; i < 2; i++) {
        int             op;
        const uint32_t *x = product_of(l, i, &op);
        if (!x || op != OP_mul || seen_at(l, i)->readers != 1 || !has_axes(l, l->o->x[i])) continue;
        uint32_t fused[3] = {x[0], x[1], l->o->x[1 - i]};
        memcpy(l->r->x, fused, sizeof fused);
        l->o->op = OP_fma;
        l->o->n = 3;
        return true;
    }
    return false;
}

/* ---- quotients ------------------------------------------------------------------------------- */

static int64_t size_of(const cot__program *p, uint32_t v) {
    cot__view x = cot__value_view(p, v);
    return cot__view_size(&x);
}

/* What a divisor repeats: itself without axes, or the operand of a broadcast; or nothing. */
static uint32_t repeated(const look *l, uint32_t y) {
    uint32_t  of = COT__NO_VALUE;
    cot__view result = result_of(l);
    if (size_of(made_so_far(l), y) < cot__view_size(&result)) return y;
    bool      is = cot__made_by(made_so_far(l), y, OP_broadcast_to, &of);
    return is && size_of(made_so_far(l), of) < cot__view_size(&result) ? of : COT__NO_VALUE;
}

static uint32_t reciprocal_of(const look *l, uint32_t y) {
    uint32_t of = repeated(l, y);
    if (of == COT__NO_VALUE || of == y) return make(l, OP_reciprocal, 1, y, COT__NO_VALUE);
    cot__view like = cot__value_view(made_so_far(l), y);
    return repeat(l, make(l, OP_reciprocal, 1, of, COT__NO_VALUE), &like);
}

static bool multiply_instead(const look *l) {
    bool     strong = l->o->op == OP_sdiv;
    uint32_t x = l->o->x[0], y = l->o->x[1], of;
    if ((l->o->op != OP_div && !strong) || y == COT__NO_VALUE) return false;
    if (made_by(l, 1, OP_reciprocal, &of)) return becomes(l, strong ? OP_smul : OP_mul, x, of, l->o->number);
    if (result_of(l).ndim == 0) return false; /* there a quotient is no dearer than a product */
    if (seen_at(l, 1)->divides < 2 && repeated(l, y) == COT__NO_VALUE) return false;
    if (x == COT__NO_VALUE && l->o->number == 1 && !strong) return becomes_unary(l, OP_reciprocal, y);
    uint32_t by = reciprocal_of(l, y);
    return by != COT__NO_VALUE && becomes(l, strong ? OP_smul : OP_mul, x, by, l->o->number);
}

/* ---- powers ---------------------------------------------------------------------------------- */

/* x^n by squares, n >= 1; `result` is what it is multiplied with, if there is something. */
static uint32_t power(const look *l, uint32_t x, int n, uint32_t result) {
    for (;; n >>= 1) {
        if (n & 1) result = result == COT__NO_VALUE ? x : make(l, OP_mul, 2, result, x);
        if (n <= 1 || (n & 1 && result == COT__NO_VALUE)) return result;
        x = make(l, OP_square, 1, x, COT__NO_VALUE);
        if (x == COT__NO_VALUE) return x;
    }
}

/* pow(x, ±n) and pow(x, ±(n + 1/2)) as a value; none if the exponent is another one. */
static uint32_t power_value(const look *l) {
    double c = l->o->number, n = floor(fabs(c));
    bool   half = fabs(c) - n == 0.5;
    if (l->o->op != OP_pow || l->o->x[1] != COT__NO_VALUE) return COT__NO_VALUE;
    if (!(n <= MOST_POWER) || (fabs(c) != n && !half) || c == 0) return COT__NO_VALUE;
    if (c == -0.5) return make(l, OP_rsqrt, 1, l->o->x[0], COT__NO_VALUE);
    uint32_t root = half ? make(l, OP_sqrt, 1, l->o->x[0], COT__NO_VALUE) : COT__NO_VALUE;
    uint32_t v = half && root == COT__NO_VALUE ? root : n > 0 ? power(l, l->o->x[0], (int)n, root) : root;
    return c > 0 || v == COT__NO_VALUE ? v : make(l, OP_reciprocal, 1, v, COT__NO_VALUE);
}

/* ---- something simpler ----------------------------------------------------------------------- */

static bool turn_difference(const look *l) {
    int             op = 0;
    double          number;
    const uint32_t *x = l->o->op == OP_neg ? binary_of(made_so_far(l), l->o->x[0], &op, &number) : NULL;
    return x && op == OP_sub && number_at(x) < 0 && becomes(l, OP_sub, x[1], x[0], 0);
}

static bool drop_root(const look *l) {
    uint32_t of;
    return l->o->op == OP_sqrt && made_by(l, 0, OP_square, &of) && becomes_unary(l, OP_abs, of);
}

/* Either operand may be the zero, and the other one the pole. */
static bool drop_strong_zero(const look *l) {
    if (l->o->op != OP_smul || number_at(l->o->x) >= 0 || !seen_at(l, 0)->tame || !seen_at(l, 1)->tame) return false;
    l->o->op = OP_mul;
    return true;
}

static bool simpler(const look *l) {
    if (l->o->n == 1) return join_shifts(l) || turn_difference(l) || drop_root(l);
    if (l->o->n != 2) return false;
    if (is_sum(l)) return join_scaled(l) || join_products(l) || fuse(l);
    return join_shifts(l) || join_factors(l) || multiply_instead(l) || drop_strong_zero(l);
}

/* ---- what is known before -------------------------------------------------------------------- */

static bool is_linear(int kind) { return kind == KIND_LINEAR || kind == KIND_BILINEAR; }

/* Is the result finite if the operands are? Of what is not named here nobody knows. */
static bool has_no_pole(int op) {
    switch (op) {
    case OP_neg: case OP_abs: case OP_sign: case OP_square: case OP_relu: case OP_clamp: case OP_where:
    case OP_sin: case OP_cos: case OP_tanh: case OP_atan: case OP_sigmoid: case OP_softplus: case OP_log_sigmoid:
    case OP_erf: case OP_erfc: case OP_gelu: case OP_gelu_tanh: case OP_silu: case OP_mish: case OP_asinh:
    case OP_add: case OP_sub: case OP_mul: case OP_smul: case OP_fma: case OP_maximum: case OP_minimum: return true;
    default: return op >= OP_structural && is_linear(cot__op_of(op)->kind);
    }
}

static void look_at(const cot__program *p, uint32_t k, seen *of) {
    const cot__operation *o = &p->operation[k];
    const uint32_t       *x = cot__operation_operand(p, k);
    bool                  tame = has_no_pole(o->op);
    for (int i = 0; i < cot__operation_operands(p, k); i++) {
        if (x[i] == COT__NO_VALUE) tame &= isfinite(cot__operation_number(p, k)) != 0;
        else {
            tame &= of[x[i]].tame || !cot__dtype_is_float(cot__value_view(p, x[i]).dtype);
            of[x[i]].readers++;
            of[x[i]].divides += i == 1 && (o->op == OP_div || o->op == OP_sdiv);
        }
    }
    for (uint32_t i = 0; i < o->results; i++) of[o->result + i].tame = tame;
}

static void look_around(const cot__program *p, seen *of, bool within) {
    memset(of, 0, p->values * sizeof *of);
    for (uint32_t k = 0; k < p->inputs; k++) of[p->input[k]].tame = !within;
    for (uint32_t k = 0; k < p->operations; k++) look_at(p, k, of);
    for (uint32_t k = 0; k < p->outputs; k++) of[p->output[k]].readers++;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static bool can_stand_for(const look *l, uint32_t v) {
    return v != COT__NO_VALUE && cot__same_type(made_so_far(l), v, l->r->from, l->r->from->operation[l->k].result);
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    cot__type   asked;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    look        l = {r, k, &o};
    if (o.op < OP_structural && cot__dtype_is_float(result_of(&l).dtype)) {
        uint32_t v = value_of(&l);
        if (v == COT__NO_VALUE) v = power_value(&l);
        if (can_stand_for(&l, v)) {
            cot__rewrite_replace(r, k, v);
            return;
        }
        r->changes += simpler(&l);
    }
    cot__rewrite_put(r, k, &o);
}

cot__program *cot__pass_fast(const cot__program *p, const cot__pass_options *o) {
    size_t    bytes = p->values * sizeof(seen);
    fast      f;
    cot__edit how = {.state = &f, .operation = edit_operation};
    if (!o->fast) return cot__program_share(p);
    f.of = cot__alloc(o->al, bytes);
    if (!f.of) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes), NULL;
    look_around(p, f.of, o->within);
    for (int dtype = 0; dtype < COT_DTYPE_COUNT; dtype++) f.number[dtype][0] = f.number[dtype][1] = COT__NO_VALUE;
    cot__program *made = cot__rewrite_run(p, o, &how);
    cot__free(o->al, f.of, bytes);
    return made;
}
