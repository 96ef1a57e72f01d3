/* ctest: timeout=240 */
/* test_vmap_while.c: a batch of cot_while runs together, each element as long as it needs. It
 * equals the loop over the elements: values and derivatives to third order, in both modes, inside
 * and outside of the batch, in batches of batches and in bodies of other loops. The body never sees
 * the state of an element that has ended, on which it could fail, divide by zero or never end. */
#include "rules/structural_ids.h"
#include "support/support.h"
#include "diff/loops/loop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BODY(name) static int name(int n, const cot_var *xs, int m, cot_var *ys, void *user)
#define UNUSED (void)n, (void)m, (void)user, (void)xs, (void)ys

static cot_var whole(cot_tape *t, int64_t value) { return cot_data(t, COT_I64, COT_SCALAR, &value); }

/* ---- loops of (x, c), both scalars, from 1 to 9; each is undefined, or worse,
 * where it has ended */

typedef cot_var pair[2];

/* The root of a negative number, and of 0, of which the derivative is infinite. */
BODY(above_one) { UNUSED; ys[0] = cot_greater(xs[0], 1.0); return 0; }
BODY(root_step) {
    UNUSED;
    ys[0] = cot_mul(cot_sqrt(cot_sub(xs[0], 1.0)), cot_add(0.9, cot_mul(0.01, *(cot_var *)user)));
    return 0;
}
BODY(roots) {
    UNUSED;
    cot_var c = xs[1], start = cot_sub(cot_square(xs[0]), 4.0), y;
    cot_while(above_one, root_step, &c, 1, &start, &y, NULL);
    ys[0] = cot_mul(y, c);
    return 0;
}

/* A quotient of the state and a capture: 0/0 at the end, and infinite for the state of one element
 * with the c of another. */
BODY(above_capture) { UNUSED; ys[0] = cot_greater(xs[0], cot_mul(0.5, (*(pair *)user)[1])); return 0; }
BODY(quotient_step) {
    UNUSED;
    cot_var gap = cot_sub(xs[0], cot_mul(0.5, (*(pair *)user)[1]));
    ys[0] =
        cot_sub(xs[0], cot_maximum(cot_div(cot_mul(0.5, cot_square(gap)), cot_mul(cot_sqrt(gap), cot_sqrt(gap))), 0.3));
    return 0;
}
BODY(quotients) {
    UNUSED;
    pair    both = {xs[0], xs[1]};
    cot_var start = cot_mul(1.3, xs[0]), y;
    cot_while(above_capture, quotient_step, &both, 1, &start, &y, &(cot_loop_options){.states = 2, .limit = 100});
    ys[0] = cot_sin(y);
    return 0;
}

/* The same root in a product: in its transposes 0 times NaN is NaN. */
BODY(first_above_one) { UNUSED; ys[0] = cot_greater(cot_index(xs[0], 0, 0), 1.0); return 0; }
BODY(product_step) { UNUSED; ys[0] = cot_matmul(*(cot_var *)user, cot_sqrt(cot_sub(xs[0], 1.0))); return 0; }
BODY(products) {
    UNUSED;
    cot_tape *t = xs[0].tape;
    cot_var   a = cot_add(cot_mul(0.02, xs[1]), cot_data(t, COT_F64, COT_SHAPE(2, 2), (double[]){0.9, 0.05, 0.4, 0.8}));
    cot_var   start = cot_add(cot_sub(cot_square(xs[0]), 4.0), cot_data(t, COT_F64, COT_SHAPE(2), (double[]){0, 1})), y;
    cot_while(first_above_one, product_step, &a, 1, &start, &y, NULL);
    ys[0] = cot_sum(cot_mul(y, a), COT_ALL);
    return 0;
}

/* Values of every kind, states in a file. w[i + from] past the end is an error: at the end, and for
 * the i of one element with another's from. */
typedef struct row { cot_var w, from; } row;
/* a number: 0 ends */
BODY(counted_test) { UNUSED; ys[0] = cot_cast(cot_sub(5, cot_add(xs[1], ((row *)user)->from)), COT_F64); return 0; }
BODY(counted_step) {
    UNUSED;
    cot_var w = ((row *)user)->w, at = cot_take(w, cot_add(xs[1], ((row *)user)->from), 0);
    ys[0] = cot_add(cot_mul(xs[0], cot_sin(at)), cot_cast(xs[2], COT_F64));
    ys[1] = cot_add(xs[1], whole(w.tape, 1));
    ys[2] = cot_add(cot_mul(xs[2], 0.5f), cot_cast(at, COT_F32));
    ys[3] = cot_logical_not(xs[3]);
    return 0;
}
BODY(counted) {
    UNUSED;
    cot_tape *t = xs[0].tape;
    row       r       = {cot_mul(cot_add(cot_arange(t, COT_F64, 0, 5, 1), 1.0), xs[1]),
                         cot_cast(cot_fmod(cot_floor(xs[0]), 5.0), COT_I64)};
    cot_var   init[4] = {xs[0], whole(t, 0), cot_cast(xs[1], COT_F32), cot_equal(r.from, r.from)}, out[4];
    cot_while(counted_test, counted_step, &r, 4, init, out, &(cot_loop_options){.states = 1, .spill = P_tmpdir});
    ys[0] = cot_add(cot_where(out[3], out[0], cot_square(out[0])),
                    cot_mul(cot_cast(out[2], COT_F64), cot_cast(out[1], COT_F64)));
    return 0;
}

/* An inner loop that would never end where the outer one has. */
BODY(below_ten) { UNUSED; ys[0] = cot_less(xs[0], 10.0); return 0; }
BODY(times_outer) { UNUSED; ys[0] = cot_mul(xs[0], *(cot_var *)user); return 0; }
BODY(outer_step) {
    UNUSED;
    cot_var base = xs[0], one = cot_mul(0.3, *(cot_var *)user), y;
    cot_while(below_ten, times_outer, &base, 1, &one, &y, &(cot_loop_options){.limit = 200});
    ys[0] = cot_sub(cot_mul(xs[0], 0.8), cot_mul(0.001, y));
    return 0;
}
BODY(outer_test) { UNUSED; ys[0] = cot_greater(xs[0], 1.1); return 0; }
BODY(nested_loops) {
    UNUSED;
    cot_var c = xs[1];
    return cot_while(outer_test, outer_step, &c, 1, xs, ys, NULL) != COT_OK;
}

/* All elements run equally long, because the counter has no batch. */
BODY(three_more) { UNUSED; ys[0] = cot_less(xs[1], 3); return 0; }
BODY(equal_step) {
    UNUSED;
    ys[0] = cot_add(cot_mul(0.5, xs[0]), cot_sin(*(cot_var *)user));
    ys[1] = cot_add(xs[1], whole(xs[0].tape, 1));
    return 0;
}
BODY(equally_long) {
    UNUSED;
    cot_var c = xs[1], init[2] = {xs[0], whole(c.tape, 0)}, out[2];
    cot_while(three_more, equal_step, &c, 2, init, out, &(cot_loop_options){.states = 1});
    ys[0] = cot_mul(out[0], cot_cast(out[1], COT_F64));
    return 0;
}

/* In other bodies. A scan that has `states` set has a way back of one operation, too. */
BODY(half_root_step) {
    UNUSED;
    roots(2, (cot_var[]){cot_add(2.5, cot_square(cot_sin(xs[0]))), *(cot_var *)user}, 1, ys, NULL);
    return 0;
}
BODY(in_scan) {
    UNUSED;
    cot_var c = xs[1];
    return cot_scan(half_root_step, &c, 2, 1, xs, 0, NULL, ys, 0, NULL, &(cot_loop_options){.states = 1}) != COT_OK;
}
BODY(slices_step) {
    UNUSED;
    ys[0] = cot_add(cot_mul(0.5, xs[0]), cot_mul(xs[1], *(cot_var *)user));
    ys[1] = cot_sin(ys[0]);
    return 0;
}
BODY(slices) {
    UNUSED;
    cot_var c = cot_sin(xs[1]), rows = cot_mul(cot_arange(c.tape, COT_F64, 0, 3, 1), xs[0]), out[2];
    cot_scan(slices_step, &c, -1, 1, xs, 1, &rows, out, 1, out + 1, &(cot_loop_options){.states = 1});
    ys[0] = cot_add(out[0], cot_sum(cot_square(out[1]), COT_ALL));
    return 0;
}
BODY(just_sine) { UNUSED; ys[0] = cot_sin(cot_mul(xs[0], xs[1])); return 0; }
BODY(in_cond) { return cot_cond(cot_greater(xs[0], 4.0), quotients, just_sine, user, n, xs, m, ys) != COT_OK; }
BODY(in_checkpoint) { return cot_checkpoint(roots, user, n, xs, m, ys) != COT_OK; }

/* The same with derivatives inside. */
BODY(slope_of_roots) {
    UNUSED;
    cot_var g[2];
    cot_value_and_grad(roots, NULL, 2, xs, NULL, g);
    ys[0] = cot_add(g[0], cot_mul(2.0, g[1]));
    return 0;
}
BODY(slope_of_quotients) {
    UNUSED;
    cot_var g[2];
    cot_value_and_grad(quotients, NULL, 2, xs, NULL, g);
    ys[0] = cot_add(g[0], cot_mul(2.0, g[1]));
    return 0;
}
BODY(slope_of_products) {
    UNUSED;
    cot_var g[2];
    cot_value_and_grad(products, NULL, 2, xs, NULL, g);
    ys[0] = cot_add(g[0], cot_mul(2.0, g[1]));
    return 0;
}
BODY(slope_of_counted) {
    UNUSED;
    cot_var g[2];
    cot_value_and_grad(counted, NULL, 2, xs, NULL, g);
    ys[0] = cot_add(g[0], cot_mul(2.0, g[1]));
    return 0;
}
BODY(slope_of_equal) {
    UNUSED;
    cot_var g[2];
    cot_value_and_grad(equally_long, NULL, 2, xs, NULL, g);
    ys[0] = cot_mul(g[0], cot_sin(g[1]));
    return 0;
}
BODY(slope_of_slices) {
    UNUSED;
    cot_var g[2];
    cot_value_and_grad(slices, NULL, 2, xs, NULL, g);
    ys[0] = cot_add(g[0], cot_mul(2.0, g[1]));
    return 0;
}
BODY(slope_of_nested) {
    UNUSED;
    cot_var g[2];
    cot_value_and_grad(nested_loops, NULL, 2, xs, NULL, g);
    ys[0] = cot_add(g[0], cot_mul(2.0, g[1]));
    return 0;
}
BODY(tangent_of_roots) {
    UNUSED;
    cot_var y, d[2] = {cot_sin(xs[1]), cot_constant(xs[0].tape, 1)};
    return cot_fn_jvp(roots, NULL, 2, xs, d, 1, &y, ys) != COT_OK;
}

static const struct sample { const char *name; cot_fn f; bool narrow; } samples[] = {
    {"roots", roots, false},
    {"quotients", quotients, false},
    {"products", products, false},
    {"counted", counted, true},
    {"loops in loops", nested_loops, false},
    {"equally long", equally_long, false},
    {"in a scan", in_scan, false},
    {"a scan of slices", slices, false},
    {"in a branch", in_cond, false},
    {"in a checkpoint", in_checkpoint, false},
    {"slopes of roots", slope_of_roots, false},
    {"slopes of quotients", slope_of_quotients, false},
    {"slopes of products", slope_of_products, false},
    {"slopes, counted", slope_of_counted, true},
    {"slopes, equally long", slope_of_equal, false},
    {"slopes of slices", slope_of_slices, false},
    {"slopes of loops in loops", slope_of_nested, false},
    {"tangents of roots", tangent_of_roots, false},
};

/* ---- the loop over the elements, and the batch ----------------------------------------------- */

enum { MOST = 6 };

/* batched: bit k, xs[k] is */
typedef struct way { cot_fn f; bool one_by_one; unsigned batched; } way;

static cot_var mapped(const way *w, const cot_var *xs) {
    cot_var each[MOST], y;
    int     axes[2], extent = (int)cot_shape_of(xs[w->batched & 1 ? 0 : 1]).dim[0];
    for (int k = 0; k < 2; k++) axes[k] = w->batched >> k & 1 ? 0 : COT_NOT_BATCHED;
    if (!w->one_by_one) return cot_vmap(w->f, NULL, 2, xs, axes, 1, &y, NULL), y;
    for (int e = 0; e < extent; e++) {
        cot_var x[2];
        for (int k = 0; k < 2; k++) x[k] = w->batched >> k & 1 ? cot_index(xs[k], 0, e) : xs[k];
        w->f(2, x, 1, &each[e], NULL);
    }
    return cot_stack(extent, each, 0);
}

typedef struct numbers { double of[4096]; int n; } numbers;

static void put(numbers *out, cot_var v) {
    double some[64];
    int    n = (int)cot_size(v);
    assert_true(n <= 64 && out->n + n <= (int)TEST_COUNT(out->of));
    if (cot_read(cot_cast(v, COT_F64), some, n) == COT_OK)
        memcpy(out->of + out->n, some, (size_t)n * sizeof *some), out->n += n;
}

/* Value; gradient in numbers, tangent and recorded gradient of it along a direction, to third
 * order. */
static void derivatives(numbers *out, cot_tape *t, cot_var y, const cot_var *xs, int orders) {
    cot_var d[2], g[2], loss = cot_sum(cot_mul(y, cot_cos(y)), COT_ALL);
    put(out, y);
    for (int k = 0; k < 2; k++) d[k] = cot_sin(cot_mul(3.0, cot_detach(xs[k])));
    for (int order = 1; order <= orders; order++) {
        cot_tape_zero_grads(t);
        cot_backward(loss);
        for (int k = 0; k < 2; k++) put(out, cot_grad(xs[k]));
        put(out, cot_jvp(loss, 2, xs, d));
        cot_grad_of(loss, 2, xs, g);
        for (int k = 0; k < 2; k++) put(out, g[k]);
        loss = cot_add(cot_sum(cot_mul(g[0], d[0]), COT_ALL), cot_sum(cot_mul(g[1], d[1]), COT_ALL));
    }
}

/* The two must have the same numbers; narrow: f32 on the way. Sums of one element's terms in
 * another order, which loops enlarge. */
static void compare(const char *name, const char *what, const numbers *have, const numbers *want, bool narrow) {
    double size = 1;
    TEST_CHECK(have->n == want->n && want->n > 0, "%s, %s: %d numbers, not %d", name, what, have->n, want->n);
    for (int k = 0; k < want->n; k++) {
        TEST_CHECK(isfinite(want->of[k]), "%s, %s: number %d is no good sample", name, what, k);
        size = fmax(size, fabs(want->of[k]));
    }
    for (int k = 0; k < want->n && k < have->n; k++)
        TEST_CHECK(fabs(have->of[k] - want->of[k]) <= (narrow ? 1e-6 : 1e-11) * size,
                   "%s, %s: number %d of %d is %.17g, not %.17g", name, what, k, want->n, have->of[k], want->of[k]);
}

/* x = 1.2: roots and quotients take no step */
static const double at[2][MOST] = {{5.3, 1.2, 8.9, 2.4, 3.7, 6.6}, {2.1, 4.4, 1.7, 3.1, 1.3, 2.8}};

static void values_and_derivatives_are_those_of_the_loop(void **state) {
    (void)state;
    for (int s = 0; s < TEST_COUNT(samples); s++)
        for (unsigned batched = 1; batched < 4; batched++)
            for (int extent = 1; extent <= MOST; extent += MOST - 1) {
                static numbers both[2];
                for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
                    cot_tape *t = cot_tape_create(NULL);
                    way       w = {samples[s].f, one_by_one, batched};
                    cot_var   xs[2];
                    for (int k = 0; k < 2; k++)
                        xs[k] = cot_tensor(t, COT_F64, batched >> k & 1 ? COT_SHAPE(extent) : COT_SCALAR, at[k]);
                    both[one_by_one].n = 0;
                    derivatives(&both[one_by_one], t, mapped(&w, xs), xs, test_small() ? 2 : 3);
                    test_tape_ok(t, samples[s].name);
                    TEST_CHECK(cot_tape_note(t)[0] == 0, "%s: %s", samples[s].name, cot_tape_note(t));
                    cot_tape_destroy(t);
                }
                compare(samples[s].name,
                        batched == 3   ? "both batched"
                        : batched == 1 ? "c shared"
                                       : "x shared",
                        &both[0], &both[1], samples[s].narrow);
            }
    test_verdict();
}

/* ---- batches of batches, and batches in bodies ----------------------------------------------- */

BODY(inner_batch) { way *w = user; (void)n, (void)m; ys[0] = mapped(w, xs); return 0; }
static cot_var twice(way *w, const cot_var *xs) { /* xs[0] (2, 3); c is 3 */
    cot_var y, rows[2];
    if (!w->one_by_one) return cot_vmap(inner_batch, w, 2, xs, (int[]){0, COT_NOT_BATCHED}, 1, &y, NULL), y;
    for (int e = 0; e < 2; e++) rows[e] = mapped(w, (cot_var[]){cot_index(xs[0], 0, e), xs[1]});
    return cot_stack(2, rows, 0);
}
typedef struct stepping { way *w; cot_var c; } stepping;
BODY(batch_step) {
    stepping *s = user;
    UNUSED;
    ys[0] = cot_add(2.0, cot_square(cot_sin(mapped(s->w, (cot_var[]){xs[0], s->c}))));
    return 0;
}
static cot_var scanned(way *w, const cot_var *xs) {
    stepping s = {w, xs[1]};
    cot_var  y = xs[0];
    if (!w->one_by_one) return cot_scan(batch_step, &s, 2, 1, xs, 0, NULL, &y, 0, NULL, NULL), y;
    for (int k = 0; k < 2; k++) batch_step(1, &y, 1, &y, &s);
    return y;
}
BODY(batch_goes_on) { UNUSED; ys[0] = cot_less(xs[1], 2); return 0; }
BODY(batch_counted) { ys[1] = cot_add(xs[1], whole(xs[0].tape, 1)); return batch_step(1, xs, 1, ys, user) || n - m; }
static cot_var whiled(way *w, const cot_var *xs) {
    stepping s = {w, xs[1]};
    cot_var  out[2] = {xs[0], whole(xs[0].tape, 0)};
    if (w->one_by_one) return scanned(w, xs);
    cot_while(batch_goes_on, batch_counted, &s, 2, out, out, NULL);
    return out[0];
}
BODY(not_taken) { UNUSED; ys[0] = cot_square(xs[0]); return 0; }
BODY(taken) { return batch_step(n, xs, m, ys, user); }
static cot_var branched(way *w, const cot_var *xs) {
    stepping s = {w, xs[1]};
    cot_var  y;
    if (w->one_by_one) taken(1, xs, 1, &y, &s);
    else cot_cond(cot_constant(xs[0].tape, 1), taken, not_taken, &s, 1, xs, 1, &y);
    return y;
}

static void batches_nest_and_lie_in_bodies(void **state) {
    (void)state;
    static const struct {
        const char *name;
        cot_var (*f)(way *, const cot_var *);
        int      ndim;
        unsigned batched;
    } forms[] = {{"a batch of batches", twice, 2, 3},
                 {"in a scan", scanned, 1, 1},
                 {"in a while", whiled, 1, 3},
                 {"in a branch", branched, 1, 3}};
    for (int s = 0; s < TEST_COUNT(samples); s++)
        for (int f = 0; f < TEST_COUNT(forms); f++) {
            static numbers both[2];
            for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
                cot_tape *t = cot_tape_create(NULL);
                way       w = {samples[s].f, one_by_one, forms[f].batched};
                cot_var   xs[2] = {cot_tensor(t, COT_F64, forms[f].ndim == 2 ? COT_SHAPE(2, 3) : COT_SHAPE(3), at[0]),
                                   cot_tensor(t, COT_F64, forms[f].batched & 2 ? COT_SHAPE(3) : COT_SCALAR, at[1])};
                both[one_by_one].n = 0;
                derivatives(&both[one_by_one], t, forms[f].f(&w, xs), xs, 2);
                test_tape_ok(t, samples[s].name);
                cot_tape_destroy(t);
            }
            compare(samples[s].name, forms[f].name, &both[0], &both[1], samples[s].narrow);
        }
    test_verdict();
}

/* ---- together -------------------------------------------------------------------------------- */

static int count_of(const cot_tape *t, int op) {
    int n = 0;
    for (uint32_t i = 0; i < t->count; i++) n += t->nodes[i].op == op;
    return n;
}

/* As many loops and operations on the tape for 1000 elements as for 10, and an empty batch gives
 * nothing. */
static void a_batch_is_one_loop(void **state) {
    (void)state;
    uint32_t nodes[3];
    int      extents[3] = {10, 1000, 0};
    for (int k = 0; k < 3; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[2] = {cot_add(cot_mul(7.0 / (extents[k] + 1), cot_arange(t, COT_F64, 0, extents[k], 1)), 1.0),
                           cot_scalar(t, 2)},
                y[2];
        xs[0] = cot_leaf(xs[0]);
        uint32_t from = t->count;
        cot_vmap(roots, NULL, 2, xs, (int[]){0, COT_NOT_BATCHED}, 1, &y[0], NULL);
        int loops = count_of(t, OP_loop);
        cot_vmap(slope_of_roots, NULL, 2, xs, (int[]){0, COT_NOT_BATCHED}, 1, &y[1], NULL);
        nodes[k] = t->count - from;
        TEST_CHECK(k == 2 || loops == 2, "%d loops, not the example and the one of all", loops);
        TEST_CHECK(k == 2 || count_of(t, OP_loop_adjoint) == 2, "%d ways back", count_of(t, OP_loop_adjoint));
        for (int j = 0; j < 2; j++) TEST_CHECK(cot_size(y[j]) == extents[k], "%lld results", (long long)cot_size(y[j]));
        cot_backward(cot_sum(cot_add(y[0], y[1]), COT_ALL));
        TEST_CHECK(cot_size(cot_grad(xs[0])) == extents[k] && isfinite(cot_grad_value(xs[1])), "the gradient of %d",
                   extents[k]);
        test_tape_ok(t, "one loop");
        cot_tape_destroy(t);
    }
    TEST_CHECK(nodes[0] == nodes[1], "%u nodes for 10 elements, %u for 1000", nodes[0], nodes[1]);
    test_verdict();
}

/* No element takes a step: where the body is recorded there is none that goes on. */
static void no_element_goes_on(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double    low[3] = {1.1, 2.0, 1.5}, have[3];
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), low), c = cot_scalar(t, 3), y;
    cot_vmap(roots, NULL, 2, (cot_var[]){x, c}, (int[]){0, COT_NOT_BATCHED}, 1, &y, NULL);
    cot_backward(cot_sum(y, COT_ALL));
    cot_read(cot_grad(x), have, 3);
    for (int k = 0; k < 3; k++) TEST_CHECK(have[k] == 3 * 2 * low[k], "%g, not %g", have[k], 6 * low[k]);
    test_tape_ok(t, "no step");
    cot_tape_destroy(t);
    test_verdict();
}

BODY(never_down) { UNUSED; ys[0] = cot_add(xs[0], 0.0); return 0; }
BODY(endless) {
    UNUSED;
    return cot_while(above_one, never_down, NULL, 1, xs, ys, &(cot_loop_options){.limit = 7}) != COT_OK;
}
BODY(past_test) { UNUSED; ys[0] = cot_less(xs[1], 9); return 0; }
BODY(past_step) {
    UNUSED;
    ys[0] = cot_add(xs[0], cot_take(*(cot_var *)user, xs[1], 0));
    ys[1] = cot_add(xs[1], whole(xs[0].tape, 4));
    return 0;
}
BODY(past) {
    UNUSED;
    cot_var w = cot_arange(xs[0].tape, COT_F64, 0, 5, 1), in[2] = {xs[0], cot_cast(xs[0], COT_I64)}, out[2];
    cot_while(past_test, past_step, &w, 2, in, out, NULL);
    ys[0] = out[0];
    return 0;
}

/* An error of an element that goes on is reported, with the step. */
static void errors_of_those_that_go_on_are_told(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){0.5, 2, 0.25}), y;
    TEST_CHECK(cot_vmap(endless, NULL, 1, &x, NULL, 1, &y, NULL) == COT_LIMIT, "status %d", (int)cot_tape_status(t));
    assert_string_equal(cot_tape_message(t),
                        "[while] still going on after 7 steps, the most it was allowed (in the body of [vmap])");
    cot_tape_clear_error(t);
    x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){4, 9, 1});
    TEST_CHECK(cot_vmap(past, NULL, 1, &x, NULL, 1, &y, NULL) == COT_VALUE, "status %d", (int)cot_tape_status(t));
    assert_non_null(strstr(cot_tape_message(t), "out of range for extent 5"));
    assert_non_null(strstr(cot_tape_message(t), "step 1 of [while]"));
    cot_tape_destroy(t);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_derivatives_are_those_of_the_loop),
        cmocka_unit_test(batches_nest_and_lie_in_bodies),
        cmocka_unit_test(a_batch_is_one_loop),
        cmocka_unit_test(no_element_goes_on),
        cmocka_unit_test(errors_of_those_that_go_on_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
