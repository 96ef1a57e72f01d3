/* Random programs over scalars and small tensors. They compare reverse with forward mode by inner
 * product, both with central differences, sweeps in numbers with recorded ones to the bit, and
 * Hessian-vector products with differences of gradients. A failure prints its seed and tape;
 * COT_TEST_SEED=n runs that one alone. */
/* ctest: timeout=300 */
#include "rules/elementwise_ids.h"
#include "support/tape_test.h"
#include "ops/elementwise/elementwise.h"

enum { LEAVES = 4, POOL = 160, FROZEN = 24, SIZE = 64, INPUTS = 1 + 3 + 6 + 1 };

static const int leaf_size[LEAVES] = {1, 3, 6, 1};

typedef struct program {
    uint64_t seed, rng;
    cot_tape *t;
    cot_var  pool[POOL];
    int      count;
    /* A detached value is a constant, so differences must hold it fixed. The first run notes the
     * values, the others use them. */
    bool   replay;
    int    frozen;
    double frozen_value[FROZEN][SIZE];
} program;

static uint32_t draw(program *p, uint32_t n) {
    p->rng = p->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(p->rng >> 33) % n;
}

static double draw_real(program *p) { return (double)draw(p, 1u << 20) / (1 << 19) - 1; }

static void keep(program *p, cot_var x) {
    if (p->count < POOL && cot_size(x) <= SIZE && cot_size(x) > 0 && cot_is_valid(x)) p->pool[p->count++] = x;
}

/* Newer values more often, older ones again and again. */
static cot_var pick(program *p) {
    uint32_t n = (uint32_t)p->count, back = draw(p, 2) ? draw(p, n < 6 ? n : 6) : draw(p, n);
    return p->pool[n - 1 - back];
}

static cot_var pick_ranked(program *p, int rank) {
    cot_var x = pick(p);
    for (int tries = 0; tries < 20 && cot_shape_of(x).ndim < rank; tries++) x = pick(p);
    while (cot_shape_of(x).ndim < rank) x = cot_expand_dims(x, 0);
    return x;
}

/* Into the middle of a domain, smoothly. */
static cot_var into(cot_var x, double lo, double hi) {
    return cot_add(cot_mul(cot_sin(x), 0.3 * (hi - lo) / 2), (lo + hi) / 2);
}
/* Values stay of order one. */
static cot_var bounded(cot_var x) { return cot_div(x, cot_hypot(x, 2.0)); }

/* y broadcast against x: as it is where the shapes allow, else its sum. */
static cot_var against(cot_var x, cot_var y) {
    cot_shape a = cot_shape_of(x), b = cot_shape_of(y);
    int64_t   size = 1;
    for (int k = 0; k < (a.ndim > b.ndim ? a.ndim : b.ndim); k++) {
        int64_t d = k < a.ndim ? a.dim[a.ndim - 1 - k] : 1, e = k < b.ndim ? b.dim[b.ndim - 1 - k] : 1;
        if (d != e && d != 1 && e != 1) return bounded(cot_sum(y, COT_ALL));
        size *= d > e ? d : e;
    }
    return size > SIZE || (a.ndim > 4 || b.ndim > 4) ? bounded(cot_sum(y, COT_ALL)) : y;
}

static void elementwise(program *p) {
    for (;;) {
        int                          op = (int)draw(p, OP_elementwise_count);
        const cot__elementwise_info *e = &cot__elementwise_table[op];
        cot_var                      xs[3];
        if (cot__op_of(op)->kind == KIND_NONE || op == OP_polygamma) continue;
        xs[0] = pick(p);
        for (int k = 1; k < e->arity; k++) xs[k] = against(xs[0], pick(p));
        if (e->arity == 3) xs[2] = against(xs[1], against(xs[0], xs[2])), xs[1] = against(xs[2], xs[1]);
        for (int k = 0; k < e->arity; k++)
            xs[k] = op == OP_where && k == 0 ? cot_greater(xs[k], 0.1) : into(xs[k], e->lo, e->hi);
        if (e->arity == 2 && draw(p, 4) == 0) xs[draw(p, 2)] = cot_number((e->lo + e->hi) / 2 + 0.1 * draw_real(p));
        keep(p, bounded(cot__elementwise(op, e->arity, xs)));
        return;
    }
}

static cot_axes some_axes(program *p, int ndim) {
    cot_axes a = {0, draw(p, 2), {0}};
    for (int k = 0; k < ndim; k++)
        if (draw(p, 2)) a.axis[a.n++] = draw(p, 2) ? k : k - ndim;
    if (draw(p, 4) == 0) a.n = -1;
    return a;
}

static void reduction(program *p) {
    cot_var  x = pick_ranked(p, 1), y;
    cot_axes a = some_axes(p, cot_shape_of(x).ndim);
    switch (draw(p, 9)) {
    case 0: y = cot_sum(x, a); break;
    case 1: y = cot_mean(x, a); break;
    case 2: y = cot_max(x, a); break;
    case 3: y = cot_min(x, a); break;
    case 4: y = cot_logsumexp(x, a); break;
    case 5: y = cot_variance(x, a); break;
    case 6: y = cot_norm(cot_add(x, 1.5), 2, a); break;
    case 7: y = cot_prod(cot_add(x, 1.2), a); break;
    default: y = cot_norm(cot_add(x, 1.5), 3, a); break;
    }
    keep(p, bounded(y));
}

static void reshaping(program *p) {
    cot_var   x = pick_ranked(p, 1), y = x;
    cot_shape s = cot_shape_of(x);
    int       axis = (int)draw(p, (uint32_t)s.ndim);
    int64_t   d = s.dim[axis];
    switch (draw(p, 10)) {
    case 0: y = cot_reshape(x, COT_SHAPE(-1)); break;
    case 1: y = cot_transpose(x); break;
    case 2: {
        cot_axes order = {s.ndim, false, {0}};
        for (int k = 0; k < s.ndim; k++) order.axis[k] = (k + axis) % s.ndim;
        y = cot_permute(x, order);
        break;
    }
    case 3: y = cot_slice(x, axis, draw(p, (uint32_t)d), COT_END, 1 + (int)draw(p, 2)); break;
    case 4: y = cot_slice(x, axis, -1, COT_END, -1 - (int)draw(p, 2)); break;
    case 5: y = cot_index(x, axis, (int64_t)draw(p, (uint32_t)d) - (draw(p, 2) ? d : 0)); break;
    case 6: y = cot_flip(x, some_axes(p, s.ndim)); break;
    case 7:
        y = s.ndim < 3 ? cot_broadcast_to(cot_expand_dims(x, 0),
                                          s.ndim == 1 ? COT_SHAPE(2, s.dim[0]) : COT_SHAPE(2, s.dim[0], s.dim[1]))
                       : x;
        break;
    case 8: y = cot_squeeze(cot_expand_dims(x, axis), COT_ALL); break;
    default: {
        cot_shape before = s, after = s;
        for (int k = 0; k < s.ndim; k++) before.dim[k] = draw(p, 2), after.dim[k] = draw(p, 2);
        y = cot_pad(x, before, after, 0.5);
    }
    }
    keep(p, y);
}

static void joining(program *p) {
    cot_var   x = pick_ranked(p, 1), y = against(x, pick(p));
    cot_shape s = cot_shape_of(x);
    cot_var   sum = cot_add(x, y);
    if (cot_shape_of(sum).ndim == s.ndim && memcmp(cot_shape_of(sum).dim, s.dim, (size_t)s.ndim * sizeof *s.dim) == 0 &&
        draw(p, 2))
        keep(p, cot_stack(3, (cot_var[]){x, sum, x}, (int)draw(p, (uint32_t)s.ndim + 1)));
    else
        keep(p, cot_concat(2, (cot_var[]){sum, sum}, (int)draw(p, (uint32_t)cot_shape_of(sum).ndim)));
}

static void indexing(program *p) {
    cot_var   x = pick_ranked(p, 1);
    cot_shape s = cot_shape_of(x);
    int       axis = (int)draw(p, (uint32_t)s.ndim);
    int64_t   at[3];
    for (int k = 0; k < 3; k++) at[k] = (int64_t)draw(p, (uint32_t)s.dim[axis]) - (draw(p, 2) ? s.dim[axis] : 0);
    cot_var i = cot_data(p->t, COT_I64, COT_SHAPE(3), at), taken = cot_take(x, i, axis);
    keep(p, taken);
    if (draw(p, 2)) keep(p, bounded(cot_scatter_add(x, i, cot_mul(taken, 0.5), axis)));
}

static void product(program *p) {
    cot_var x = pick_ranked(p, 2), y = pick(p);
    if (cot_shape_of(x).ndim > 3) return;
    switch (draw(p, 4)) {
    case 0:
        keep(p, bounded(cot_matmul(
                    x, cot_square(cot_permute(x, cot_shape_of(x).ndim == 2 ? COT_AXES(1, 0) : COT_AXES(0, 2, 1))))));
        break;
    case 1:
        if (cot_shape_of(x).ndim == 2) keep(p, bounded(cot_matmul(cot_index(x, -2, 0), cot_sin(cot_index(x, -2, -1)))));
        break;
    case 2: {
        cot_var flat = cot_reshape(y, COT_SHAPE(-1));
        if (cot_size(y) <= 8) keep(p, cot_outer(flat, cot_cos(flat)));
        break;
    }
    default:
        keep(p, draw(p, 2) ? cot_softmax(x, (int)draw(p, 2)) : bounded(cot_log_softmax(x, (int)draw(p, 2))));
        break;
    }
}

static cot_var frozen(program *p, cot_var x) {
    cot_var d = cot_detach(x);
    if (p->frozen == FROZEN) return cot_zeros(p->t, COT_F64, cot_shape_of(x));
    double *value = p->frozen_value[p->frozen++];
    if (p->replay) return cot_data(p->t, COT_F64, cot_shape_of(x), value);
    cot_read(d, value, cot_size(x));
    return d;
}

static void writing(program *p) {
    cot_var x = cot_mul(pick_ranked(p, 1), 1.0), y = pick(p), shape = against(x, y);
    y = cot_size(cot_add(x, shape)) == cot_size(x) && cot_shape_of(shape).ndim <= cot_shape_of(x).ndim
            ? shape
            : cot_sum(y, COT_ALL);
    switch (draw(p, 6)) {
    case 0: cot_add_into(&x, y); break;
    case 1: cot_sub_into(&x, y); break;
    case 2: cot_mul_into(&x, cot_sin(y)); break;
    case 3: cot_div_into(&x, into(y, 1, 4)); break;
    case 4: cot_update_slice(&x, 0, 0, COT_END, 2, cot_sum(y, COT_ALL)); break;
    default: { /* on top of itself */
        cot_var v = cot_reshape(x, COT_SHAPE(-1)), head = cot_slice(v, 0, 0, -1, 1),
                tail = cot_slice(v, 0, 1, COT_END, 1);
        if (cot_size(x) > 1) cot_add_into(&tail, head), x = tail;
    }
    }
    keep(p, bounded(x));
}

static void scalars(program *p) {
    cot_var xs[5];
    for (int k = 0; k < 5; k++) {
        cot_var x = pick(p);
        xs[k] = cot_shape_of(x).ndim ? cot_index(cot_reshape(x, COT_SHAPE(-1)), 0, -1) : x;
    }
    uint32_t which = draw(p, 3);
    keep(p, bounded(which == 0 ? cot_dot_of(2, xs, xs + 2) : which == 1 ? cot_sum_of(5, xs) : cot_logsumexp_of(5, xs)));
    keep(p, bounded(cot_sub(cot_mul(xs[0], xs[1]), cot_div(xs[2], into(xs[3], 1, 3)))));
}

/* Records the program of the seed on t at the point x; the same operations whatever the point. */
static cot_var build(program *p, cot_tape *t, const double *x, cot_var *leaves) {
    p->t = t;
    p->rng = p->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    p->count = p->frozen = 0;
    leaves[0] = cot_scalar(t, x[0]);
    leaves[1] = cot_tensor(t, COT_F64, COT_SHAPE(3), x + 1);
    leaves[2] = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), x + 4);
    leaves[3] = cot_scalar(t, x[10]);
    for (int k = 0; k < LEAVES; k++) keep(p, leaves[k]);
    int steps = 4 + (int)draw(p, 28);
    for (int i = 0; i < steps; i++) {
        switch (draw(p, 12)) {
        case 0: case 1: case 2: elementwise(p); break;
        case 3: reduction(p); break;
        case 4: case 5: reshaping(p); break;
        case 6: joining(p); break;
        case 7: indexing(p); break;
        case 8: product(p); break;
        case 9: writing(p); break;
        case 10: scalars(p); break;
        default: {
            cot_var a = pick(p), b = pick(p), f = frozen(p, b);
            keep(p, bounded(cot_mul(a, against(a, f))));
        }
        }
    }
    cot_var y = cot_constant(t, 0);
    for (int i = p->count - 1, n = 0; i >= 0 && n < 6; i--, n++)
        y = cot_add(y, cot_mul(cot_mean(p->pool[i], COT_ALL), draw_real(p)));
    /* something to differentiate, always */
    return cot_add(y, cot_mul(leaves[draw(p, 2) ? 0 : 3], 0.5));
}

/* ---- the checks ------------------------------------------------------------------------------ */

static void show(const program *p, const cot_tape *t, uint32_t end) {
    fprintf(stderr, "seed %llu\n", (unsigned long long)p->seed);
    for (uint32_t i = 0; i < end && i < t->count; i++) {
        const cot__node *n = &t->nodes[i];
        char             shape[COT__SHAPE_TEXT];
        fprintf(stderr, "%%%u = %s%s", i, cot__op_of(n->op)->name, n->flags & COT__IN_PLACE ? " in place" : "");
        for (int k = 0; k < cot__nargs(n); k++)
            if (cot__arg(n, k) == COT__NONE) fprintf(stderr, " %g", n->extra.number);
            else fprintf(stderr, " %%%u", cot__arg(n, k));
        cot__view v = cot__look(t, i);
        fprintf(stderr, "  %s %s", cot__dtype_name(cot__dtype_at(n)), cot__shape_text_at(t, i, shape));
        fprintf(stderr, cot__size_at(t, i) ? "  %g …\n" : "\n",
                cot__size_at(t, i) ? cot__load_f64(v.data, v.dtype) : 0);
    }
}

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            show(p, t, length);                                                                                        \
            fail_msg(__VA_ARGS__);                                                                                     \
        }                                                                                                              \
    } while (0)

static double dot(const double *a, const double *b) {
    double s = 0;
    for (int i = 0; i < INPUTS; i++) s += a[i] * b[i];
    return s;
}

static double scale(const double *a, const double *b) {
    double s = 0;
    for (int i = 0; i < INPUTS; i++) s += fabs(a[i] * b[i]);
    return s;
}

/* Value and gradient at another point, with detached values held fixed. */
static double at(program *p, const double *x, double h, const double *v, double *gradient) {
    double    moved[INPUTS];
    cot_var   leaves[LEAVES];
    cot_tape *t = cot_tape_create(NULL);
    for (int i = 0; i < INPUTS; i++) moved[i] = x[i] + h * v[i];
    p->replay = true;
    cot_var y = build(p, t, moved, leaves);
    p->replay = false;
    double value = cot_value(y);
    cot_backward(y);
    for (int k = 0, i = 0; k < LEAVES; i += leaf_size[k++]) cot_read_grad(leaves[k], gradient + i, leaf_size[k]);
    cot_tape_destroy(t);
    return value;
}

static void check_seed(program *p) {
    double    x[INPUTS], v[INPUTS], g[INPUTS], recorded[INPUTS], hv[INPUTS], up[INPUTS], down[INPUTS];
    cot_var   leaves[LEAVES], grads[LEAVES], tangents[LEAVES];
    cot_tape *t = cot_tape_create(NULL);
    p->rng = ~p->seed * UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < INPUTS; i++) x[i] = 0.9 * draw_real(p);
    for (int i = 0; i < INPUTS; i++) v[i] = draw_real(p);
    cot_var  y = build(p, t, x, leaves);
    uint32_t length = (uint32_t)cot_tape_length(t);
    CHECK(cot_tape_status(t) == COT_OK, "recording: %s", cot_tape_message(t));
    CHECK(isfinite(cot_value(y)), "the value is %g", cot_value(y));

    /* numbers and recorded operations: the same bits */
    CHECK(cot_backward(y) == COT_OK, "backward: %s", cot_tape_message(t));
    for (int k = 0, i = 0; k < LEAVES; i += leaf_size[k++]) cot_read_grad(leaves[k], g + i, leaf_size[k]);
    CHECK(cot_tape_length(t) == length, "backward left operations on the tape");
    CHECK(cot_grad_of(y, LEAVES, leaves, grads) == COT_OK, "grad_of: %s", cot_tape_message(t));
    for (int k = 0, i = 0; k < LEAVES; i += leaf_size[k++]) cot_read(grads[k], recorded + i, leaf_size[k]);
    for (int i = 0; i < INPUTS; i++)
        CHECK(g[i] == recorded[i] || memcmp(&g[i], &recorded[i], sizeof *g) == 0,
              "input %d: backward %.17g, grad_of %.17g", i, g[i], recorded[i]);

    /* <g, v> = J v, both ways of forward mode */
    double   forward, tolerance = 1e-11 * (1 + scale(g, v));
    cot_mark m = cot_tape_mark(t);
    tangents[0] = cot_constant(t, v[0]), tangents[1] = cot_data(t, COT_F64, COT_SHAPE(3), v + 1);
    tangents[2] = cot_data(t, COT_F64, COT_SHAPE(2, 3), v + 4), tangents[3] = cot_constant(t, v[10]);
    double jv = cot_value(cot_jvp(y, LEAVES, leaves, tangents));
    CHECK(cot_tape_status(t) == COT_OK, "jvp: %s", cot_tape_message(t));
    CHECK(fabs(jv - dot(g, v)) <= tolerance, "jvp %.17g, <gradient, v> %.17g", jv, dot(g, v));
    CHECK(cot_jvps(1, LEAVES, leaves, v, 1, &y, &forward) == COT_OK, "jvps: %s", cot_tape_message(t));
    CHECK(fabs(forward - dot(g, v)) <= tolerance, "jvps %.17g, <gradient, v> %.17g", forward, dot(g, v));
    cot_tape_rewind(t, m);

    /* differences of values, and of gradients */
    CHECK(cot_hvp(y, LEAVES, leaves, v, hv) == COT_OK, "hvp: %s", cot_tape_message(t));
    double size = 1, worst[2] = {0, 0}, slope = 0;
    for (int i = 0; i < INPUTS; i++) size += fabs(hv[i]) + fabs(g[i]);
    for (double h = 1e-5; h > 1e-8; h /= 100) {
        /* a kink may lie within the step: hardly within both */
        double plus = at(p, x, h, v, up), minus = at(p, x, -h, v, down);
        slope = (plus - minus) / (2 * h);
        worst[0] = fabs(slope - dot(g, v)) / (1e-5 * (1 + scale(g, v)));
        worst[1] = 0;
        for (int i = 0; i < INPUTS; i++)
            worst[1] = fmax(worst[1], fabs((up[i] - down[i]) / (2 * h) - hv[i]) / (1e-4 * size));
        if (worst[0] <= 1 && worst[1] <= 1) break;
    }
    CHECK(worst[0] <= 1, "difference quotient %.12g, <gradient, v> %.12g", slope, dot(g, v));
    CHECK(worst[1] <= 1, "hvp against the difference of gradients: %g times the tolerance", worst[1]);
    cot_tape_destroy(t);
}

static void derivatives_of_random_programs_agree(void **state) {
    (void)state;
    static program p;
    const char    *one = getenv("COT_TEST_SEED");
    uint64_t       seeds = test_small() ? 300 : 5000;
    for (p.seed = one ? strtoull(one, NULL, 10) : 1; p.seed <= seeds || one; p.seed++) {
        check_seed(&p);
        if (one) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(derivatives_of_random_programs_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
