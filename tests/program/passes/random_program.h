/* random_program.h: random programs of many kinds of operations, whose every seed gives a legal
 * one, and random inputs with all the numbers on which arithmetic can go wrong. */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include "pass_test.h"

#include "program/fusion.h"
#include "program/run.h"

typedef struct dice { uint64_t state; } dice;

static inline uint64_t roll(dice *r) {
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = r->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static inline int below(dice *r, int n) { return (int)(roll(r) % (uint64_t)n); }

static inline double odd_number(dice *r) {
    static const double odd[] = {0.0, -0.0, 1, -1, 2, 0.5, 3, -8, 1e-310, 1e30, INFINITY, -INFINITY, NAN};
    if (below(r, 2)) return odd[below(r, TEST_COUNT(odd))];
    return (double)(int64_t)(roll(r) % 4001) / 500 - 4;
}

/* ---- growing --------------------------------------------------------------------------------- */

enum { MAX_VALUES = 256 };

typedef struct growing { draft *d; dice r; uint32_t value[MAX_VALUES]; int values; bool large; } growing;

static inline cot__view seen(const growing *g, uint32_t v) { return cot__value_view(g->d->b.p, v); }

static inline uint32_t keep(growing *g, uint32_t v) {
    if (v == COT__NO_VALUE) print_message("%s\n", g->d->h.text);
    assert_true(v != COT__NO_VALUE);
    return g->value[g->values++] = v;
}

/* Mostly one of the last few, so that chains come about. */
static inline uint32_t any(growing *g) {
    int back = below(&g->r, below(&g->r, 3) ? 4 : g->values);
    return g->value[back < g->values ? g->values - 1 - back : 0];
}

static inline cot_shape any_shape(growing *g) {
    static const cot_shape small[] = {{0, {0}}, {1, {7}}, {2, {3, 5}}, {2, {5, 3}}, {2, {1, 5}}, {3, {2, 3, 5}},
                                      {1, {300}}, {2, {4, 1}}, {1, {0}}};
    static const cot_shape large[] = {{1, {3000}}, {2, {60, 50}}, {2, {50, 60}}, {2, {54, 55}}, {1, {60}}, {0, {0}}};
    return g->large ? large[below(&g->r, TEST_COUNT(large))] : small[below(&g->r, TEST_COUNT(small))];
}

static inline cot_dtype any_dtype(growing *g) {
    static const cot_dtype dtypes[] = {COT_F32, COT_F32, COT_F64, COT_F64, COT_BF16, COT_F16, COT_I64, COT_I32,
                                       COT_U8, COT_BOOL};
    return dtypes[below(&g->r, TEST_COUNT(dtypes))];
}

static inline uint32_t any_constant(growing *g, cot_dtype dtype, cot_shape shape) {
    double numbers[5];
    bool   one = below(&g->r, 2);
    for (int k = 0; k < 5; k++) numbers[k] = one && k ? numbers[0] : odd_number(&g->r);
    return keep(g, constant_of(g->d, dtype, shape, 5, numbers));
}

/* A value of this type: one that is there, one without axes, a constant, or a broadcast. */
static inline uint32_t like(growing *g, uint32_t x) {
    cot__view v = seen(g, x);
    cot_shape shape = cot__view_extents(&v);
    for (int tries = 0; tries < 6; tries++) {
        uint32_t  y = any(g);
        cot__view w = seen(g, y);
        if (w.dtype == v.dtype && (w.ndim == 0 || cot__same_type(g->d->b.p, x, g->d->b.p, y))) return y;
    }
    switch (below(&g->r, 4)) {
    case 0: return x;
    case 1: return any_constant(g, v.dtype, NO_AXES);
    case 2:
        return keep(g, op(g->d, OP_broadcast_to, X(any_constant(g, v.dtype, NO_AXES)), .asked = {v.dtype, shape}));
    default: return any_constant(g, v.dtype, shape);
    }
}

/* The same with all its axes. */
static inline uint32_t like_array(growing *g, uint32_t x) {
    uint32_t y = like(g, x);
    return seen(g, y).ndim == seen(g, x).ndim ? y : x;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* One whose arithmetic takes this dtype, of so many operands. */
static inline int any_elementwise(growing *g, int arity, cot_dtype dtype) {
    static const int plain[] = {OP_neg, OP_abs, OP_square, OP_relu, OP_floor, OP_exp, OP_neg, OP_tanh};
    static const int two[] = {OP_add, OP_sub, OP_mul, OP_div, OP_maximum, OP_smul, OP_add, OP_sub, OP_mul};
    bool real = cot__dtype_is_float(dtype);
    for (;;) {
        int o = below(&g->r, OP_elementwise_count), pick = below(&g->r, 3);
        if (pick && arity == 1) o = plain[below(&g->r, TEST_COUNT(plain))];
        if (pick && arity == 2) o = two[below(&g->r, TEST_COUNT(two))];
        if (cot__elementwise_arity(o) != arity || (!real && cot__elementwise_table[o].class == REAL)) continue;
        if (o == OP_where || o == OP_polygamma) continue; /* other dtypes; slow */
        return o;
    }
}

static inline uint32_t grow_elementwise(growing *g) {
    uint32_t  x = any(g), y;
    cot_dtype dtype = seen(g, x).dtype;
    switch (below(&g->r, 5)) {
    case 0: return op(g->d, any_elementwise(g, 1, dtype), X(x));
    case 1: return op(g->d, any_elementwise(g, 2, dtype), X(x, NUM), .number = odd_number(&g->r));
    case 2:
        if (below(&g->r, 3) == 0) {
            y = like(g, x);
            return op(g->d, any_elementwise(g, 3, dtype), X(x, y, like(g, x)));
        }
        return op(g->d, any_elementwise(g, 2, dtype), X(NUM, x), .number = odd_number(&g->r));
    case 3:
        if (below(&g->r, 2)) return op(g->d, OP_isnan, X(x));
        y = like(g, x);
        return op(g->d, OP_less, X(x, y));
    default: break;
    }
    /* once, or again with the operands in the other order */
    int which = any_elementwise(g, 2, dtype);
    y = like(g, x);
    uint32_t z = op(g->d, which, X(x, y));
    if (below(&g->r, 4)) return z;
    keep(g, z);
    uint32_t again = below(&g->r, 2) ? op(g->d, which, X(y, x)) : op(g->d, which, X(x, y));
    return op(g->d, below(&g->r, 2) ? OP_equal : OP_mul, X(z, again));
}

static inline uint32_t grow_where(growing *g) {
    uint32_t x = any(g), y = like(g, x), c;
    c = below(&g->r, 3) ? op(g->d, OP_greater, X(x, y)) : any_constant(g, COT_BOOL, NO_AXES);
    return op(g->d, OP_where, X(c, x, y));
}

static inline uint32_t grow_view(growing *g) {
    uint32_t  x = any(g);
    cot__view v = seen(g, x);
    cot_shape shape = cot__view_extents(&v);
    int64_t   size = cot__view_size(&v), axis = v.ndim ? below(&g->r, v.ndim) : 0;
    switch (below(&g->r, 6)) {
    case 0: return op(g->d, OP_reshape, X(x), .asked = {v.dtype, SHAPE(size)});
    case 1: return op(g->d, OP_reshape, X(x), .asked = {v.dtype, SHAPE(1, size)});
    case 2:
        if (v.ndim == 0) return op(g->d, OP_broadcast_to, X(x), .asked = {v.dtype, any_shape(g)});
        if (v.ndim == 2) return op(g->d, OP_permute, X(x), .ints = 2, .at = {1, 0});
        return op(g->d, OP_copy, X(x));
    case 3:
        if (v.ndim != 1) return op(g->d, OP_detach, X(x));
        return op(g->d, OP_broadcast_to, X(x), .asked = {v.dtype, SHAPE(3, size)});
    case 4: /* and perhaps back again */
        x = op(g->d, OP_cast, X(x), .asked = {any_dtype(g), shape});
        return below(&g->r, 2) ? x : op(g->d, OP_cast, X(keep(g, x)), .asked = {v.dtype, shape});
    default:
        if (v.ndim == 0 || shape.dim[axis] < 2) return op(g->d, OP_alias, X(x));
        int64_t length = 2 + below(&g->r, (int)shape.dim[axis] - 1);
        if (below(&g->r, 3) == 0) return op(g->d, OP_slice, X(x), .ints = 5, .at = {axis, length - 1, length, -1, 0});
        return op(g->d, OP_slice, X(x), .ints = 5, .at = {axis, shape.dim[axis] - length, length, 1, 0});
    }
}

/* Softmax, or rows divided by their length, or a norm and the way back through it. */
static inline uint32_t grow_rows(growing *g, uint32_t x) {
    cot__view v = seen(g, x);
    cot_shape shape = cot__view_extents(&v);
    int64_t   axis = below(&g->r, 4) ? v.ndim - 1 : below(&g->r, v.ndim), rms = below(&g->r, 2);
    switch (below(&g->r, 4)) {
    case 0: return op(g->d, OP_softmax, X(x), .ints = 1, .at = {axis});
    case 1: return op(g->d, OP_log_softmax, X(x), .ints = 1, .at = {axis});
    case 2: {
        uint32_t s = keep(g, op(g->d, rms ? OP_norm : OP_logsumexp, X(x), .ints = 2, .at = {INT64_C(1) << axis, 1}));
        s = keep(g, op(g->d, OP_broadcast_to, X(s), .asked = {v.dtype, shape}));
        return op(g->d, OP_div, X(x, s));
    }
    default: break;
    }
    if (v.dtype != COT_F32 && v.dtype != COT_F64) return op(g->d, OP_softmax, X(x), .ints = 1, .at = {axis});
    uint32_t z = op(g->d, rms ? OP_rms_norm : OP_layer_norm, X(x), .ints = 3, .at = {axis, rms, 1}, .attr_number = 0.1);
    keep(g, z);
    if (below(&g->r, 2)) return z;
    return op(g->d, OP_norm_back, X(x, keep(g, like_array(g, z)), z + 1), .ints = 2, .at = {axis, rms},
              .attr_number = 0.1);
}

static inline uint32_t grow_structural(growing *g) {
    uint32_t  x = any(g);
    cot__view v = seen(g, x);
    int64_t   axis = v.ndim ? below(&g->r, v.ndim) : 0;
    if (v.ndim == 0 || cot__view_size(&v) == 0) return op(g->d, OP_cast, X(x), .asked = {COT_F32, {0}});
    switch (below(&g->r, 9)) {
    case 7:
    case 8: return cot__dtype_is_float(v.dtype) ? grow_rows(g, x) : op(g->d, OP_cast, X(x), .asked = {COT_F32, {0}});
    case 0: return op(g->d, OP_sum, X(x), .ints = 2, .at = {INT64_C(1) << axis, below(&g->r, 2)});
    case 1: return op(g->d, OP_max, X(x), .ints = 2, .at = {INT64_C(1) << axis, below(&g->r, 2)});
    case 2:
        if (v.ndim == 2 && cot__dtype_is_float(v.dtype)) {
            uint32_t back = op(g->d, OP_permute, X(x), .ints = 2, .at = {1, 0});
            return op(g->d, OP_matmul, X(x, keep(g, back)));
        }
        return op(g->d, OP_sum, X(x), .ints = 2, .at = {(INT64_C(1) << v.ndim) - 1, 0});
    case 3: return op(g->d, OP_concat, X(x, x), .ints = 2, .at = {axis, 0});
    case 4: return op(g->d, OP_cumsum, X(x), .ints = 2, .at = {axis, 0});
    case 5: return op(g->d, OP_take, X(x, any_constant(g, COT_U8, SHAPE(2))), .ints = 1, .at = {axis});
    default:
        if (v.ndim == 1) return op(g->d, OP_pad, X(x), .ints = 2, .at = {1, 2}, .attr_number = odd_number(&g->r));
        return op(g->d, OP_sum, X(x), .ints = 2, .at = {INT64_C(1) << axis, 0});
    }
}

static inline uint32_t grow(growing *g) {
    int kind = below(&g->r, 12);
    if (kind < 7) return grow_elementwise(g);
    if (kind < 8) return grow_where(g);
    return kind < 11 ? grow_view(g) : grow_structural(g);
}

/* The program of a seed; `large`: of arrays of several blocks; steps 0: as many as the seed
 * says. */
static inline cot__program *random_program_of(uint64_t seed, bool large, int steps, const cot_allocator *al) {
    draft   d;
    growing g = {.d = &d, .r = {seed}, .large = large};
    draft_open(&d, al);
    cot__small_rows = 1; /* such arrays, too, run with what is done to their rows */
    int inputs = 1 + below(&g.r, 3), some = 4 + below(&g.r, 30);
    if (steps == 0) steps = some;
    for (int k = 0; k < inputs; k++) keep(&g, input(&d, any_dtype(&g), any_shape(&g)));
    for (int k = 0; k < steps && g.values < MAX_VALUES - 16; k++) keep(&g, grow(&g));
    for (int k = 0; k < 3; k++) output(&d, any(&g));
    output(&d, g.value[g.values - 1]);
    return draft_close(&d);
}

static inline cot__program *random_program(uint64_t seed, bool large, const cot_allocator *al) {
    return random_program_of(seed, large, 0, al);
}

/* ---- running it ------------------------------------------------------------------------------ */

static inline size_t bytes_at(const cot__program *p, uint32_t v) {
    cot__view x = cot__value_view(p, v);
    return (size_t)(cot__view_size(&x) * cot__dtype_size(x.dtype));
}

/* Inputs of a program, by its seed. */
static inline void fill_inputs(const cot__program *p, uint64_t seed, void **in) {
    dice r = {seed};
    for (uint32_t k = 0; k < p->inputs; k++) {
        cot__view v = cot__value_view(p, p->input[k]);
        in[k] = malloc(bytes_at(p, p->input[k]) + 1);
        for (int64_t i = 0; i < cot__view_size(&v); i++)
            cot__store_f64((char *)in[k] + i * cot__dtype_size(v.dtype), v.dtype, odd_number(&r));
    }
}

typedef struct result {
    bool      ok;
    uint32_t  outputs;
    void     *out[8];
    cot_dtype dtype[8];
    size_t    bytes[8];
    char      text[512];
} result;

static inline void free_result(result *z) {
    for (uint32_t k = 0; k < z->outputs; k++) free(z->out[k]);
}

/* Any two NaN are the same. */
static inline bool same_elements(const void *a, const void *b, size_t bytes, cot_dtype dtype) {
    size_t size = (size_t)cot__dtype_size(dtype);
    for (size_t i = 0; i < bytes; i += size) {
        const char *x = (const char *)a + i, *y = (const char *)b + i;
        bool        nan = isnan(cot__load_f64(x, dtype)) && isnan(cot__load_f64(y, dtype));
        if (!nan && memcmp(x, y, size) != 0) return false;
    }
    return true;
}

static inline bool same_result(const result *a, const result *b) {
    if (a->ok != b->ok || a->outputs != b->outputs || strcmp(a->text, b->text) != 0) return false;
    for (uint32_t k = 0; a->ok && k < a->outputs; k++)
        if (a->bytes[k] != b->bytes[k] || a->dtype[k] != b->dtype[k] ||
            !same_elements(a->out[k], b->out[k], a->bytes[k], a->dtype[k]))
            return false;
    return true;
}

static inline result run_program(const cot__program *p, void *const *in, bool fused) {
    heard       h = {0};
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    result      z = {.outputs = p->outputs};
    cot__run   *r = (fused ? cot__run_create : cot__run_create_unfused)(p, &cot__cpu_backend, NULL, NULL, &caller);
    assert_non_null(r);
    for (uint32_t k = 0; k < p->outputs; k++) {
        z.bytes[k] = bytes_at(p, p->output[k]);
        z.dtype[k] = cot__value_view(p, p->output[k]).dtype;
        z.out[k] = malloc(z.bytes[k] + 1);
    }
    z.ok = cot__run_go(r, (const void *const *)in, z.out);
    snprintf(z.text, sizeof z.text, "%s", cot__run_message(r));
    cot__run_destroy(r);
    return z;
}

#endif
