/* Products that wait to be asked (pending/patient.c). No bit of a result may show whether and when
 * they were written, nor by how many threads they were reduced. Here every product of depth 1
 * waits, its memory full of NaN, and results are compared with those of products that are written
 * at once. */
/* ctest: labels=threads timeout=300 */
#include "support/support.h"

#include "base/cpu.h"
#include "base/parallel.h"
#include "pending/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings { size_t from, times; bool spoils; int64_t grain; } settings;

static settings usual(void) {
    return (settings){cot__product_from, cot__product_times, cot__pending_spoils, cot__grain};
}
static void set(settings s) {
    cot__product_from = s.from, cot__product_times = s.times, cot__pending_spoils = s.spoils, cot__grain = s.grain;
}
static void all_wait(void) { cot__product_from = cot__product_times = 0, cot__pending_spoils = true; }
static void none_waits(void) { cot__product_from = SIZE_MAX; }

static bool waits(cot_var x) {
    return cot__patient_of(x.tape, x.tape->nodes[cot__index(x)].value.tensor->storage) != NULL;
}

/* ---- operands -------------------------------------------------------------------------------- */

enum { MOST = 40000 };

static void numbers(const char *name, int stream, bool special, int64_t n, double *out) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, -0.0, 0.0, 1e38, -1e-40, 5e-324, 1e308};
    test_random         r = test_random_of(name, stream);
    for (int64_t i = 0; i < n; i++) {
        out[i] = test_uniform(&r, -1, 1);
        if (special && test_uniform(&r, 0, 1) < 0.1) out[i] = odd[(int)test_uniform(&r, 0, TEST_COUNT(odd))];
    }
}

static cot_var leaf_of(cot_tape *t, cot_dtype dtype, cot_shape shape, const double *data) {
    cot_var x = cot_tensor(t, dtype, shape, NULL);
    cot_assign(x, cot_cast(cot_data(t, COT_F64, shape, data), dtype));
    return x;
}

/* Columns (…, m, 1) and rows (…, 1, n) of one product each. `layout` puts them otherwise into
 * memory: 1 rows strided, 2 columns transposed, 3 both repeated along the first axis. */
typedef struct batch { int ndim; int64_t dim[4]; } batch;

static cot_var operand(cot_tape *t, cot_dtype dtype, const batch *b, int side, int layout, bool special) {
    static double data[MOST];
    cot_shape     s = {b->ndim, {0}};
    for (int k = 0; k < b->ndim; k++) s.dim[k] = b->dim[k];
    s.dim[b->ndim - 1 - (side == 0 ? 0 : 1)] = 1;
    cot_shape held = s;
    if (layout == 1) held.dim[held.ndim - 1 - side] *= 2;
    if (layout == 3 && held.ndim > 2) held.dim[0] = 1;
    numbers("operand", side, special, cot__count(held.ndim, held.dim), data);
    cot_var x = leaf_of(t, dtype, held, data);
    if (layout == 1) x = cot_slice(x, -1 - side, 0, COT_END, 2);
    if (layout == 3 && held.ndim > 2) x = cot_broadcast_to(x, s);
    if (layout == 2) x = cot_copy(cot_transpose(x)), x = cot_transpose(x);
    return x;
}

/* ---- what is done with a product g (…, m, n) ------------------------------------------------- */

/* A number for each element of the batch, behind which as many axes of extent 1 as to go with g. */
static cot_var scales(cot_var g) {
    static double s[MOST];
    cot_shape shape = cot_shape_of(g);
    for (int k = 1; k < shape.ndim; k++) shape.dim[k] = 1;
    numbers("scales", 0, false, shape.dim[0], s);
    return cot_cast(cot_data(g.tape, COT_F64, shape, s), cot_dtype_of(g));
}

/* A row for all. */
static cot_var row(cot_var g) {
    static double s[MOST];
    cot_shape shape = cot_shape_of(g), one = {1, {shape.dim[shape.ndim - 1]}};
    numbers("row", 0, false, one.dim[0], s);
    return cot_cast(cot_data(g.tape, COT_F64, one, s), cot_dtype_of(g));
}

enum { CHAINS = 13 };
static const char *const chain_names[CHAINS] = {"g",     "g²",   "g·g",     "s·g",      "(g - row)²", "-|g|", "g/3",
                                                "clamp", "flat", "g + s·g", "too long", "g·h",        "2 - g"};
static cot_var chain(int which, cot_var g, cot_var h) {
    switch (which) {
    case 1: return cot_square(g);
    case 2: return cot_mul(g, g);
    case 3: return cot_mul(scales(g), g);
    case 4: return cot_square(cot_sub(g, row(g)));
    case 5: return cot_neg(cot_abs(g));
    case 6: return cot_div(g, 3);
    case 7: return cot_clamp(g, -0.25, 0.5);
    case 8: { /* an operation between two shapes of one storage */
        cot_shape s = cot_shape_of(g), flat = {2, {s.dim[0], cot_size(g) / (s.dim[0] ? s.dim[0] : 1)}};
        return cot_reshape(cot_mul(cot_reshape(g, flat), cot_reshape(scales(g), COT_SHAPE(s.dim[0], 1))), s);
    }
    case 9: return cot_add(g, cot_mul(g, scales(g)));
    case 10: {
        cot_var z = g;
        for (int k = 0; k < 12; k++) z = k % 2 ? cot_mul(z, 1.5 + k) : cot_add(z, row(g));
        return z;
    }
    case 11: return cot_mul(g, h);
    case 12: return cot_sub(2, g);
    default: return g;
    }
}

enum { REDUCTIONS = 11 };
static cot_var reduced(int which, cot_var x, cot_axes axes) {
    switch (which) {
    case 0: return cot_sum(x, axes);
    case 1: return cot_mean(x, axes);
    case 2: return cot_max(x, axes);
    case 3: return cot_min(x, axes);
    case 4: return cot_norm(x, 2, axes);
    case 5: return cot_variance(x, axes);
    case 6: return cot_any(cot_greater(x, 0.5), axes);
    case 7: return cot_all(x, axes);
    case 8: return cot_logsumexp(x, axes);
    case 9: return cot_std(x, axes);
    default: return cot_norm(x, 1, axes);
    }
}

/* Everything about one product: each reduction over each set of axes of each chain, and the
 * elements at last. */
static int64_t everything(cot_dtype dtype, const batch *b, int layout, bool special, bool few, double *out,
                          int64_t room) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   c = operand(t, dtype, b, 0, layout, special), r = operand(t, dtype, b, 1, layout, special);
    cot_mark  start = cot_tape_mark(t);
    int64_t   n = 0;
    for (int k = 0; k < CHAINS; k++)
        for (uint32_t mask = 1; mask < 1u << b->ndim; mask++) {
            cot_axes axes = {0, mask % 3 == 0, {0}};
            for (int i = 0; i < b->ndim; i++)
                if (mask >> i & 1) axes.axis[axes.n++] = i;
            cot_var g = cot_matmul(c, r), z = chain(k, g, k == 11 ? cot_matmul(cot_neg(c), r) : g);
            for (int i = 0; i < (few ? 2 : REDUCTIONS); i++) {
                cot_var y = reduced(i, z, axes);
                if (few) y = cot_slice(cot_reshape(y, COT_SHAPE(-1)), 0, 0, COT_END, cot_size(y) > 4096 ? 97 : 1);
                if (n + cot_size(y) > room) fail_msg("there is room for %lld numbers only", (long long)room);
                cot_read(y, out + n, cot_size(y));
                n += cot_size(y);
            }
            if (mask == 1 && !few) { /* and the elements, after the reductions */
                cot_read(z, out + n, cot_size(z));
                n += cot_size(z);
            }
            test_tape_ok(t, chain_names[k]);
            cot_tape_rewind(t, start);
        }
    cot_tape_destroy(t);
    return n;
}

static void waiting_does_not_show(void **state) {
    (void)state;
    static const batch shapes[] = {
        {2, {3, 5}},      {2, {1, 1}},      {2, {300, 1}},     {2, {1, 700}},     {3, {5, 7, 33}},
        {3, {4, 3, 512}}, {3, {3, 2, 700}}, {3, {18, 40, 10}}, {4, {2, 3, 4, 5}}, {3, {1, 9, 260}},
    };
    static double written[1 << 20], waiting[1 << 20];
    settings      before = usual();
    for (int s = 0; s < TEST_COUNT(shapes); s++)
        for (int d = COT_F64; d <= COT_F32; d++)
            for (int layout = 0; layout < 4; layout++) {
                if (test_small() && (s + layout) % 2) continue;
                bool special = (s + d + layout) % 2;
                char name[96];
                cot_set_threads(1);
                none_waits();
                int64_t n = everything((cot_dtype)d, &shapes[s], layout, special, false, written, TEST_COUNT(written));
                all_wait();
                for (int threads = 1; threads <= 3; threads += 2) {
                    cot_set_threads(threads);
                    cot__grain = threads == 1 ? before.grain : 1;
                    int64_t m =
                        everything((cot_dtype)d, &shapes[s], layout, special, false, waiting, TEST_COUNT(waiting));
                    snprintf(name, sizeof name, "shape %d, dtype %d, layout %d, %d threads", s, d, layout, threads);
                    assert_int_equal(m, n);
                    test_same_array("waiting", name, n, waiting, written);
                }
                set(before);
            }
    cot_set_threads(0);
    test_verdict();
}

/* Long slices, which are cut into chunks, and sums of leaves by every instruction set. */
static void large_products_have_the_same_sums(void **state) {
    (void)state;
    static const batch shapes[] = {{3, {2, 40, 512}}, {3, {2, 600, 1024}}, {3, {2, 700, 300}}, {2, {3000, 100}}};
    static double      written[1 << 20], waiting[1 << 20];
    settings           before = usual();
    cot__isa           isa = cot__cpu_isa();
    for (int s = 0; s < (test_small() ? 1 : TEST_COUNT(shapes)); s++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            char name[96];
            cot_set_threads(2);
            none_waits();
            int64_t n = everything((cot_dtype)d, &shapes[s], 0, d == COT_F32, true, written, TEST_COUNT(written));
            cot__product_from = 1 << 16;
            for (int k = 0; k <= (int)isa; k++) {
                if (!cot__cpu_use((cot__isa)k)) continue;
                int64_t m = everything((cot_dtype)d, &shapes[s], 0, d == COT_F32, true, waiting, TEST_COUNT(waiting));
                snprintf(name, sizeof name, "large shape %d, dtype %d, %s", s, d, cot__isa_name((cot__isa)k));
                assert_int_equal(m, n);
                test_same_array("waiting", name, n, waiting, written);
            }
            cot__cpu_use(isa);
            set(before);
        }
    cot_set_threads(0);
    test_verdict();
}

/* ---- which products wait, and until when -------------------------------------------------- */

typedef struct fixture { cot_tape *t; cot_var c, r, g; } fixture;

static fixture product_of(int64_t b, int64_t m, int64_t n) {
    static double data[MOST];
    fixture       f = {.t = cot_tape_create(NULL)};
    numbers("fixture", 0, false, MOST, data);
    f.c = cot_tensor(f.t, COT_F64, COT_SHAPE(b, m, 1), data);
    f.r = cot_tensor(f.t, COT_F64, COT_SHAPE(b, 1, n), data + MOST / 2);
    f.g = cot_matmul(f.c, f.r);
    return f;
}

static void only_who_reads_elements_has_them_written(void **state) {
    (void)state;
    settings before = usual();
    all_wait();
    fixture f = product_of(3, 4, 15);
    cot_var flat = cot_reshape(f.g, COT_SHAPE(3, 60)), square = cot_square(flat),
            scaled = cot_mul(f.g, cot_slice(f.c, 1, 0, 1, 1));
    cot_var mean = cot_mean(f.g, COT_AXES(0)), norms = cot_sum(square, COT_AXES(1));
    assert_true(waits(f.g) && waits(flat) && waits(square) && waits(scaled));
    assert_false(waits(mean) || waits(norms));
    double out[180];
    cot_read(square, out, 180);
    assert_true(waits(f.g) && waits(scaled) && !waits(square));
    cot_read(cot_slice(f.g, 0, 0, 1, 1), out, 60);
    assert_false(waits(f.g) || waits(flat));
    assert_true(waits(scaled));
    /* an operation that takes longer than writing is not done twice */
    assert_false(waits(cot_exp(scaled)) || waits(scaled));
    assert_false(waits(cot_matmul(cot_cast(f.c, COT_BF16), cot_cast(f.r, COT_BF16))));
    assert_true(test_tape_ok(f.t, "reading"));
    cot_tape_destroy(f.t);
    set((settings){1 << 20, 4, false, before.grain}); /* as they are without COT_TEST_DEFER */
    fixture small = product_of(3, 4, 5), large = product_of(4, 200, 200);
    assert_false(waits(small.g));
    assert_true(waits(large.g));
    /* an operand as large as the result */
    assert_false(waits(cot_mul(large.g, cot_add(cot_copy(large.g), 1))));
    cot_tape_destroy(small.t);
    cot_tape_destroy(large.t);
    set(before);
}

/* One array as column and as row: two leaves that begin at the same place. */
static void an_array_may_be_both_factors(void **state) {
    (void)state;
    enum { N = 50 };
    settings before = usual();
    double   data[N], out[2][2 * N];
    numbers("both", 0, false, N, data);
    for (int waiting = 0; waiting < 2; waiting++) {
        if (waiting) all_wait();
        else none_waits();
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(N), data);
        cot_var   h = cot_mul(3, cot_matmul(cot_reshape(x, COT_SHAPE(N, 1)), cot_reshape(x, COT_SHAPE(1, N))));
        assert_int_equal(waits(h), waiting);
        cot_read(cot_sum(h, COT_AXES(0)), out[waiting], N);
        cot_read(cot_slice(h, 0, 1, 2, 1), out[waiting] + N, N);
        assert_true(test_tape_ok(t, "both"));
        cot_tape_destroy(t);
    }
    set(before);
    test_same_array("both factors", "one array", 2 * N, out[1], out[0]);
    test_verdict();
}

/* A leaf whose own numbers still wait: they are computed before any element is made, both
 * for sums and when the product is written. */
static void a_leaf_may_wait_too(void **state) {
    (void)state;
    enum { M = 30, N = 40 };
    settings before = usual();
    int64_t  from = cot__pending_from;
    bool     spoils = cot__pending_spoils;
    double   out[2][M + M * N];
    for (int waiting = 0; waiting < 2; waiting++) {
        if (waiting) all_wait();
        else none_waits();
        cot__pending_from = waiting ? 1 : INT64_MAX;
        cot__pending_spoils = waiting;
        fixture f = product_of(1, M, N);
        cot_var sums = cot_sum(cot_mul(f.g, cot_add(f.r, 1)), COT_AXES(0, 2)), g = cot_mul(cot_sub(f.c, 2), f.g);
        assert_int_equal(waits(g), waiting);
        /* written, though no value was read yet */
        cot_read(cot_exp(g), out[waiting] + M, M * N);
        cot_read(sums, out[waiting], M);
        assert_true(test_tape_ok(f.t, "waiting"));
        cot_tape_destroy(f.t);
    }
    cot__pending_from = from;
    cot__pending_spoils = spoils;
    set(before);
    test_same_array("leaves", "waiting", M + M * N, out[1], out[0]);
    test_verdict();
}

/* Every way to change an operand, at once or by work that waits, too: the product keeps the value
 * of the old numbers. */
static void who_changes_an_operand_has_the_product_written(void **state) {
    (void)state;
    settings before = usual();
    int64_t  from = cot__pending_from;
    enum { WAYS = 9 };
    for (int way = 0; way < WAYS; way++) {
        double old[3][120], zeros[24] = {0}, m[24] = {0}, v[24] = {0};
        for (int waiting = 0; waiting < 3; waiting++) {
            if (waiting) all_wait();
            else none_waits();
            cot__pending_from = waiting == 2 ? 1 : from;
            fixture f = product_of(3, 8, 5);
            cot_var c = cot_copy(f.c), used = way < 4 ? f.c : c, g = cot_matmul(used, f.r), h = cot_mul(2, g);
            cot_backward(cot_sum(used, COT_ALL));
            void *moment[] = {m, v};
            switch (way) {
            case 0: cot_assign(f.c, 0.5); break;
            case 1: cot_assign_data(f.c, zeros); break;
            case 2: cot_sgd_step(1, &f.c, 0.1); break;
            case 3: cot_adamw_step(1, &f.c, &moment[0], &moment[1], (cot_adamw){.rate = 0.1, .step = 1}); break;
            case 4: cot_add_into(&c, 1); break;
            case 5: cot_mul_into(&c, f.c); break;
            case 6: cot_copy_into(&c, cot_full(f.t, COT_F64, COT_SHAPE(3, 8, 1), 7)); break;
            case 7: cot_update_slice(&c, 0, 0, 2, 1, cot_number(3)); break;
            default: { /* a view of the operand is written */
                cot_var view = cot_slice(c, 1, 2, 6, 1);
                cot_add_into(&view, 5);
            }
            }
            assert_int_equal(cot_tape_status(f.t), COT_OK);
            assert_false(waits(g));
            /* the var of a value whose operand was assigned may be refused: the number stays */
            uint32_t  i = cot__index(h);
            cot__view z = cot__look(f.t, i);
            memcpy(old[waiting], z.data, sizeof old[waiting]);
            cot_tape_destroy(f.t);
        }
        char name[32];
        snprintf(name, sizeof name, "way %d", way);
        test_same_array("changed operands", name, 120, old[1], old[0]);
        test_same_array("changed operands, later", name, 120, old[2], old[0]);
    }
    cot__pending_from = from;
    set(before);
    test_verdict();
}

/* The caller's memory may change at any time. A value that is written in place waits no more. */
static void what_others_can_change_does_not_wait(void **state) {
    (void)state;
    settings before = usual();
    double   mine[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[64];
    all_wait();
    cot_tape *t = cot_tape_create(NULL);
    cot_var   c = cot_wrap(t, COT_F64, COT_SHAPE(8, 1), mine), r = cot_data(t, COT_F64, COT_SHAPE(1, 8), mine),
            g = cot_matmul(c, r);
    assert_false(waits(g));
    mine[0] = 100;
    cot_read(g, out, 64);
    assert_true(out[0] == 1 && out[63] == 64);
    cot_var h = cot_matmul(cot_reshape(r, COT_SHAPE(8, 1)), r);
    assert_true(waits(h));
    assert_false(waits(cot_mul(h, cot_wrap(t, COT_F64, COT_SHAPE(1, 8), mine))) || waits(h));
    h = cot_matmul(cot_reshape(r, COT_SHAPE(8, 1)), r);
    cot_add_into(&h, 1);
    assert_false(waits(h));
    cot_read(h, out, 64);
    assert_true(out[0] == 2 && out[63] == 65);
    assert_true(test_tape_ok(t, "wrapped"));
    cot_tape_destroy(t);
    set(before);
}

static void rewinding_forgets_products_unwritten(void **state) {
    (void)state;
    settings before = usual();
    all_wait();
    fixture  f = product_of(3, 4, 5);
    int64_t  held = f.t->nodes[cot__index(f.c)].value.tensor->storage->refs;
    cot_mark m = cot_tape_mark(f.t);
    cot_var  later = cot_square(cot_matmul(cot_neg(f.c), f.r));
    assert_true(waits(later));
    cot_tape_rewind(f.t, m);
    assert_true(waits(f.g)); /* older than the mark */
    assert_int_equal(f.t->nodes[cot__index(f.c)].value.tensor->storage->refs, held);
    assert_int_equal(f.t->pending.patients, 1);
    double a[60], b[60];
    cot_read(f.g, a, 60);
    assert_int_equal(f.t->pending.patients, 0);
    none_waits();
    cot_read(cot_matmul(f.c, f.r), b, 60);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(cot_tape_status(f.t), COT_OK);
    cot_tape_destroy(f.t);
    set(before);
}

/* A backend that counts the arrays that are written from recipes. */
static int                 makes;
static const cot__backend *usual_backend;

static void count_made(const cot__recipe *r) {
    makes++;
    usual_backend->make(r);
}

static fixture counted_product(void) {
    static cot__backend counting_backend;
    usual_backend = cot__new_tape_backend;
    counting_backend = *usual_backend;
    counting_backend.make = count_made;
    cot__new_tape_backend = &counting_backend;
    fixture f = product_of(3, 4, 5);
    cot__new_tape_backend = usual_backend;
    makes = 0;
    return f;
}

/* Recorded work that reads elements has them written before it is done, not before it waits. */
static void what_is_asked_for_waits_in_the_queue(void **state) {
    (void)state;
    settings before = usual();
    int64_t  from = cot__pending_from;
    double   got[60], want[60];
    all_wait();
    cot__pending_from = 1;
    fixture  f = counted_product();
    cot_mark m = cot_tape_mark(f.t);
    cot_exp(cot_matmul(f.c, cot_neg(f.r)));
    cot_tape_rewind(f.t, m);
    assert_int_equal(makes, 0); /* asked for in vain */
    cot_var e = cot_exp(f.g), other = cot_neg(f.r);
    assert_false(waits(f.g)); /* it waits like any other */
    assert_true(cot__pending_any(f.t));
    assert_int_equal(makes, 0);
    cot_read(e, got, 60);
    assert_int_equal(makes, 1);
    cot_read(other, want, 15);
    assert_int_equal(makes, 1);
    none_waits();
    cot_read(cot_exp(cot_matmul(f.c, f.r)), want, 60);
    assert_memory_equal(got, want, sizeof got);
    assert_true(test_tape_ok(f.t, "asked"));
    cot_tape_destroy(f.t);
    cot__pending_from = from;
    set(before);
}

/* However many wait to be asked: other work does not pass over them, and the lists that they stand
 * in do not grow while as many come as go. */
static void who_waits_to_be_asked_costs_others_nothing(void **state) {
    (void)state;
    settings before = usual();
    int64_t  from = cot__pending_from;
    all_wait();
    cot__pending_from = 1;
    fixture f = product_of(3, 4, 5);
    for (int k = 0; k < 300; k++) cot_matmul(f.c, f.r);
    size_t lists = 0;
    double out[60];
    for (int round = 0; round < 100; round++) {
        cot_mark m = cot_tape_mark(f.t);
        cot_var  norm = cot_sum(cot_square(cot_matmul(f.c, cot_neg(f.r))), COT_ALL), y = cot_neg(f.r);
        assert_int_equal(f.t->pending.work->touches, 2);
        cot_read(y, out, 15);
        cot_value(norm);
        cot_tape_rewind(f.t, m);
        assert_int_equal(f.t->pending.patients, 301);
        if (round == 1) lists = cot__pending_lists(f.t);
    }
    assert_int_equal(cot__pending_lists(f.t), lists);
    assert_true(test_tape_ok(f.t, "idle"));
    cot_tape_destroy(f.t);
    cot__pending_from = from;
    set(before);
}

/* ---- derivatives ----------------------------------------------------------------------------- */

enum { IN = 6, HIDDEN = 9, BATCH = 5, WEIGHTS = IN * HIDDEN + HIDDEN };

static int gradient_of_one(int n, const cot_var *xs, int count, cot_var *ys, void *user) {
    cot_var *w = user, h = cot_tanh(cot_matmul(xs[0], w[0]));
    (void)n;
    return cot_grad_of(cot_square(cot_sum(cot_matmul(h, w[1]), COT_ALL)), count, w, ys) == COT_OK ? 0 : 1;
}

/* Norms of each example's gradients, their mean after clipping; and the derivatives of this mean by
 * weights and inputs, in every way. */
static int64_t clipped(double *out) {
    static double data[MOST];
    numbers("net", 0, false, MOST, data);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(BATCH, IN), data), w[2], gs[2], ds[3];
    int64_t   n = 0;
    w[0] = cot_tensor(t, COT_F64, COT_SHAPE(IN, HIDDEN), data + 100);
    w[1] = cot_tensor(t, COT_F64, COT_SHAPE(HIDDEN, 1), data + 300);
    cot_vmap(gradient_of_one, w, 1, &x, NULL, 2, gs, NULL);
    cot_var squares = cot_add(cot_sum(cot_square(gs[0]), COT_AXES(1, 2)), cot_sum(cot_square(gs[1]), COT_AXES(1, 2)));
    cot_var scale   = cot_reshape(cot_minimum(1, cot_div(0.5, cot_sqrt(squares))), COT_SHAPE(BATCH, 1, 1)),
            loss    = cot_number(0);
    for (int k = 0; k < 2; k++) {
        cot_var mean = cot_mean(cot_mul(scale, gs[k]), COT_AXES(0));
        cot_read(mean, out + n, cot_size(mean));
        n += cot_size(mean);
        loss = cot_add(loss, cot_sum(cot_mul(cot_variance(gs[k], COT_AXES(0)), cot_exp(mean)), COT_ALL));
    }
    cot_var all[3] = {w[0], w[1], x};
    cot_grad_of(loss, 3, all, ds);
    for (int k = 0; k < 3; k++, n += cot_size(all[k - 1])) cot_read(ds[k], out + n, cot_size(ds[k]));
    cot_backward(loss);
    for (int k = 0; k < 3; k++, n += cot_size(all[k - 1])) cot_read_grad(all[k], out + n, cot_size(all[k]));
    cot_jvps(1, 3, all, data, 1, &loss, out + n++);
    cot_hvp(loss, 3, all, data, out + n);
    n += WEIGHTS + BATCH * IN;
    test_tape_ok(t, "clipped");
    char why[400];
    TEST_CHECK(cot_tape_check(t, why, sizeof why) == COT_OK, "the tape: %s", why);
    cot_tape_destroy(t);
    return n;
}

static void derivatives_of_waiting_products_are_the_same(void **state) {
    (void)state;
    static double written[4096], waiting[4096];
    settings      before = usual();
    none_waits();
    int64_t n = clipped(written);
    all_wait();
    assert_int_equal(clipped(waiting), n);
    test_same_array("derivatives", "clipped", n, waiting, written);
    set(before);
    test_verdict();
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct budget { int64_t left; int64_t in_use; } budget;

static void *spend(void *user, void *p, size_t old_size, size_t new_size) {
    budget *b = user;
    if (new_size > 0 && b->left-- <= 0) return NULL;
    if (new_size == 0) {
        b->in_use -= (int64_t)old_size;
        free(p);
        return NULL;
    }
    void *q = realloc(p, new_size);
    if (q) b->in_use += (int64_t)new_size - (int64_t)old_size;
    return q;
}

/* The n-th allocation fails, for every n: the right numbers or an error, nothing lost. */
static void survive_failing_allocations(void) {
    settings before = usual();
    double   data[24], want[24], got[24];
    int64_t  n = 0;
    numbers("memory", 0, false, 24, data);
    all_wait();
    for (bool done = false; !done; n++) {
        budget    b = {n == 0 ? INT64_MAX : n - 1, 0};
        cot_tape *t = cot_tape_create(&(cot_options){.allocator = {spend, &b}});
        if (t) {
            cot_var c = cot_data(t, COT_F64, COT_SHAPE(2, 3, 1), data),
                    r = cot_data(t, COT_F64, COT_SHAPE(2, 1, 4), data + 6);
            cot_var g = cot_matmul(c, r), z = cot_mul(cot_square(g), cot_sum(g, COT_AXES(1, 2))), s;
            s = cot_sum(z, COT_AXES(0));
            z = cot_exp(cot_add(z, s));
            cot_add_into(&z, g);
            cot_status status = cot_read(z, got, 24);
            if (n == 0) memcpy(want, got, sizeof want);
            TEST_CHECK(status == COT_OK || status == COT_MEMORY || status == COT_SHAPE, "allocation %d: %s", (int)n,
                       cot_tape_message(t));
            TEST_CHECK(status != COT_OK || memcmp(got, want, sizeof got) == 0, "allocation %d: other numbers", (int)n);
            cot_tape_destroy(t);
        }
        TEST_CHECK(b.in_use == 0, "allocation %d: %lld bytes are lost", (int)n, (long long)b.in_use);
        done = n > 0 && b.left > 0;
    }
    TEST_CHECK(n > 8, "only %d allocations", (int)n);
    set(before);
}

static void failing_allocations_are_survived(void **state) {
    (void)state;
    int64_t from = cot__pending_from;
    survive_failing_allocations();
    cot__pending_from = 1; /* and what is asked for waits, too */
    survive_failing_allocations();
    cot__pending_from = from;
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_does_not_show),
        cmocka_unit_test(large_products_have_the_same_sums),
        cmocka_unit_test(only_who_reads_elements_has_them_written),
        cmocka_unit_test(an_array_may_be_both_factors),
        cmocka_unit_test(a_leaf_may_wait_too),
        cmocka_unit_test(who_changes_an_operand_has_the_product_written),
        cmocka_unit_test(what_others_can_change_does_not_wait),
        cmocka_unit_test(rewinding_forgets_products_unwritten),
        cmocka_unit_test(what_is_asked_for_waits_in_the_queue),
        cmocka_unit_test(who_waits_to_be_asked_costs_others_nothing),
        cmocka_unit_test(derivatives_of_waiting_products_are_the_same),
        cmocka_unit_test(failing_allocations_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
