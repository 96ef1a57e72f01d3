/* Elementwise work that waits (src/pending). No bit of a result may show that it waited, nor in
 * which blocks and by how many threads it was done. Here all work waits, is done in the shortest
 * blocks, and is compared with runs in which none waits. */
/* ctest: labels=threads timeout=300 */
#include "rules/elementwise_ids.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "base/parallel.h"
#include "pending/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int counts[] = {1, 2, 3, 8, 16};

typedef struct settings { int64_t grain, from, bytes; } settings;

static settings usual(void) { return (settings){cot__grain, cot__pending_from, cot__pending_bytes}; }
static void     set(settings s) { cot__grain = s.grain, cot__pending_from = s.from, cot__pending_bytes = s.bytes; }

/* ---- random programs ------------------------------------------------------------------------- */

/* xorshift: the same programs everywhere */
static uint64_t next(uint64_t *s) {
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s >> 11;
}

/* Long enough for parts of several of the shortest blocks: of 256 elements, from 17 of them on two
 * a part. */
enum { LENGTH = 5000, VALUES = 40, NUMBERS = 8 * LENGTH };

/* Vectors of a few lengths, cut out of each other, joined again and combined element by element:
 * adjoints of slices meet in one accumulator at different places, and are shared, replaced and
 * added to. */
static cot_var program(cot_var x, cot_var w, uint64_t s) {
    cot_var v[VALUES] = {x, w};
    int     n = 2;
    while (n < VALUES) {
        cot_var a = v[next(&s) % (uint64_t)n], b = v[next(&s) % (uint64_t)n];
        int64_t na = cot_size(a), nb = cot_size(b), shift = (int64_t)(next(&s) % 3);
        switch (next(&s) % 11) {
        case 0: v[n] = cot_sin(a); break;
        case 1: v[n] = cot_mul(a, 0.5); break;
        case 2: v[n] = cot_tanh(cot_neg(a)); break;
        case 3: v[n] = cot_mul(a, a); break;
        case 4:
            v[n] = na > LENGTH - 20 ? cot_slice(a, 0, shift, na - 2 + shift, 1) : cot_exp(cot_neg(cot_square(a)));
            break;
        case 5: v[n] = cot_slice(a, 0, COT_END, COT_END, -1); break;
        /* a broadcast, and a reduction between */
        case 6: v[n] = cot_mul(a, cot_mean(b, COT_ALL)); break;
        case 7:
            v[n] = cot_reshape(cot_transpose(cot_reshape(cot_slice(a, 0, 0, na / 6 * 6, 1), COT_SHAPE(na / 6, 6))),
                               COT_SHAPE(na / 6 * 6));
            break;
        default: { /* two of one length, often overlapping parts of one value */
            int64_t m = na < nb ? na : nb;
            cot_var p = cot_slice(a, 0, na - m, na, 1), q = cot_slice(b, 0, 0, m, 1);
            v[n] = next(&s) % 2   ? cot_add(p, q)
                   : next(&s) % 2 ? cot_mul(p, q)
                                  : cot_atan2(p, cot_add(cot_square(q), 1.0));
        }
        }
        n++;
    }
    cot_var sum = cot_mean(v[n - 1], COT_ALL);
    for (int k = 2; k < n - 1; k++) sum = cot_add(sum, cot_mean(v[k], COT_ALL));
    return sum;
}

/* The value, gradients in numbers and recorded, a Hessian-vector product and a tangent of one
 * program. */
static int64_t derivatives(cot_dtype dtype, uint64_t seed, double *out) {
    cot_tape *t = cot_tape_create(NULL);
    double    numbers[2 * LENGTH];
    uint64_t  s = seed * 77 + 5;
    int64_t   n = 0;
    for (int i = 0; i < 2 * LENGTH; i++) numbers[i] = (double)(next(&s) % 2001) / 1000 - 1;
    if (seed % 3 == 0) numbers[17] = NAN, numbers[900] = INFINITY;
    cot_var xs[2];
    for (int k = 0; k < 2; k++) {
        cot_var plain = cot_cast(cot_data(t, COT_F64, COT_SHAPE(LENGTH), numbers + k * LENGTH), dtype);
        float   narrow[LENGTH];
        cot_read_as(plain, COT_F32, narrow, LENGTH);
        xs[k] = dtype == COT_F32 ? cot_tensor(t, dtype, COT_SHAPE(LENGTH), narrow)
                                 : cot_tensor(t, dtype, COT_SHAPE(LENGTH), numbers + k * LENGTH);
    }
    cot_var y = program(xs[0], xs[1], seed), grads[2];
    cot_backward(y);
    for (int k = 0; k < 2; k++, n += LENGTH) cot_read(cot_grad(xs[k]), out + n, LENGTH);
    cot_grad_of(y, 2, xs, grads);
    for (int k = 0; k < 2; k++, n += LENGTH) cot_read(grads[k], out + n, LENGTH);
    cot_hvp(y, 2, xs, numbers, out + n);
    n += 2 * LENGTH;
    cot_jvps(1, 2, xs, numbers, 1, &y, out + n);
    out[n + 1] = cot_value(y);
    test_tape_ok(t, "a program");
    cot_tape_destroy(t);
    return n + 2;
}

static void waiting_does_not_show(void **state) {
    (void)state;
    static double at_once[NUMBERS], later[NUMBERS];
    settings      before = usual();
    for (uint64_t seed = 1; seed <= (test_small() ? 6 : 40); seed++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            char name[64];
            cot_set_threads(1);
            set((settings){before.grain, INT64_MAX, before.bytes});
            int64_t n = derivatives((cot_dtype)d, seed, at_once);
            for (int k = 0; k < TEST_COUNT(counts); k++) {
                cot_set_threads(counts[k]);
                set((settings){k == 0 ? before.grain : 1, 1, k == 3 ? 4096 : 1});
                derivatives((cot_dtype)d, seed, later);
                snprintf(name, sizeof name, "program %d, dtype %d, %d threads", (int)seed, d, counts[k]);
                test_same_array("put off", name, n, later, at_once);
            }
        }
    set(before);
    cot_set_threads(0);
    test_verdict();
}

/* ---- every elementwise operation ------------------------------------------------------------- */

/* Σ f(x, y, w) sin(x), whose adjoints wait together, for one operation f. For results that
 * are not floats only the mean. */
static int64_t of_operation(int op, cot_dtype dtype, double *out) {
    const cot__elementwise_info *e = &cot__elementwise_table[op];
    cot_tape                    *t = cot_tape_create(NULL);
    cot_var                      xs[3];
    double                       numbers[LENGTH];
    int64_t                      n = 0;
    for (int k = 0; k < e->arity; k++) {
        uint64_t s = (uint64_t)(op * 3 + k) + 99;
        for (int i = 0; i < LENGTH; i++) numbers[i] = e->lo + (e->hi - e->lo) * (double)(next(&s) % 4096) / 4096;
        float narrow[LENGTH];
        for (int i = 0; i < LENGTH; i++) narrow[i] = (float)numbers[i];
        xs[k] = cot_tensor(t, dtype, COT_SHAPE(LENGTH), dtype == COT_F32 ? (void *)narrow : (void *)numbers);
    }
    cot_var z = cot__call(op, xs);
    if (cot_requires_grad(z)) {
        cot_var first = op == OP_where ? xs[1] : xs[0];
        cot_backward(cot_sum(cot_add(cot_mul(z, cot_sin(first)), cot_mul(cot_square(z), first)), COT_ALL));
        for (int k = 0; k < e->arity; k++, n += LENGTH) cot_read(cot_grad(xs[k]), out + n, LENGTH);
    } else
        out[n++] = cot_value(cot_mean(cot_cast(z, COT_F64), COT_ALL));
    test_tape_ok(t, e->name);
    cot_tape_destroy(t);
    return n;
}

static void every_operation_may_wait(void **state) {
    (void)state;
    static double at_once[3 * LENGTH], later[3 * LENGTH];
    settings      before = usual();
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            cot_set_threads(1);
            set((settings){before.grain, INT64_MAX, before.bytes});
            int64_t n = of_operation(op, (cot_dtype)d, at_once);
            for (int k = 0; k < TEST_COUNT(counts); k++) {
                cot_set_threads(counts[k]);
                set((settings){1, 1, 1});
                of_operation(op, (cot_dtype)d, later);
                test_same_array("put off", cot__elementwise_table[op].name, n, later, at_once);
            }
        }
    set(before);
    cot_set_threads(0);
    test_verdict();
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Accumulators that are used up serve again while work waits: a long chain holds two or three
 * at a time, not one for each operation. */
static void waiting_holds_no_more_memory(void **state) {
    (void)state;
    settings before = usual();
    int64_t  most[2];
    enum { N = 1 << 14, CHAIN = 60 };
    static double x[N];
    for (int defers = 0; defers < 2; defers++) {
        set((settings){before.grain, defers ? 1 : INT64_MAX, before.bytes});
        cot_tape *t = cot_tape_create(NULL);
        cot_var   v = cot_tensor(t, COT_F64, COT_SHAPE(N), x), y = v;
        for (int k = 0; k < CHAIN; k++) y = cot_add(cot_sin(y), cot_mul(y, v));
        y = cot_sum(y, COT_ALL);
        int64_t recorded = cot_tape_bytes(t);
        cot_backward(y);
        most[defers] = cot_tape_bytes(t) - recorded;
        test_tape_ok(t, "a chain");
        cot_tape_destroy(t);
    }
    set(before);
    TEST_CHECK(most[1] <= most[0] + N * 8 + 65536,
               "a sweep whose work waits takes %lld bytes, one that does all at once %lld", (long long)most[1],
               (long long)most[0]);
    test_verdict();
}

/* ---- recording ------------------------------------------------------------------------------- */

enum { FEW = 600 };

/* In these tests everything waits, and values are spoilt until they are done. */
static settings before;
static bool     spoiling;

static int all_wait(void **state) {
    (void)state;
    before = usual(), spoiling = cot__pending_spoils;
    set((settings){before.grain, 1, 1});
    cot__pending_spoils = true;
    return 0;
}

static int let_be(void **state) {
    (void)state;
    set(before);
    cot__pending_spoils = spoiling;
    return 0;
}

static const void *memory_of(cot_var x) { return x.tape->nodes[cot__index(x)].value.tensor->storage->data; }

static bool waits(cot_var x) {
    const uint64_t *bits = memory_of(x);
    return x.tape->pending.work && *bits == UINT64_MAX;
}

static void all_are(cot_var x, double want, const char *what) {
    double out[FEW];
    cot_read(x, out, FEW);
    for (int i = 0; i < FEW; i++)
        TEST_CHECK(out[i] == want, "%s: element %d is %.17g, not %.17g", what, i, out[i], want);
}

static void fill(double *x, double v) {
    for (int i = 0; i < FEW; i++) x[i] = v;
}

/* Code that changes an operand of waiting work finds the work done first; a look does it too. */
static void writers_come_after_waiting_work(void **state) {
    (void)state;
    double x[FEW];
    fill(x, 2);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   leaf = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x), a = cot_mul(leaf, leaf), b = cot_mul(a, 3.0);
    TEST_CHECK(waits(a) && waits(b), "recorded work does not wait");
    all_are(b, 12, "a chain");
    TEST_CHECK(!cot__pending_any(t), "a look leaves work that waits");

    a = cot_add(leaf, 1.0);
    TEST_CHECK(waits(a), "a sum does not wait");
    fill(x, 5);
    cot_assign_data(leaf, x);
    all_are(a, 3, "before cot_assign_data");
    a = cot_add(leaf, 1.0);
    cot_assign(leaf, 7.0);
    all_are(a, 6, "before cot_assign");

    cot_var copy = cot_mul(cot_detach(leaf), 1.0), of_old = cot_mul(copy, 10.0);
    cot_add_into(&copy, 1.0);
    cot_var of_new = cot_mul(copy, 10.0);
    cot_copy_into(&copy, 0.0);
    TEST_CHECK(waits(of_old) && waits(of_new), "work before and after a write does not wait");
    all_are(of_new, 80, "after cot_add_into");
    all_are(of_old, 70, "before cot_add_into");
    all_are(copy, 0, "after cot_copy_into");
    cot_var half = cot_mul(leaf, 1.0), of_half = cot_mul(half, 2.0);
    cot_update_slice(&half, 0, 0, COT_END, 2, 100.0);
    all_are(of_half, 14, "before cot_update_slice");
    assert_int_equal(cot_tape_status(t), COT_OK);
    a = cot_mul(leaf, 2.0);
    TEST_CHECK(waits(a), "nothing waits when the tape is destroyed");
    cot_tape_destroy(t);
    test_verdict();
}

/* The caller can write or read this memory around the library, so work that touches it is done when
 * the call returns. */
static void work_on_borrowed_memory_does_not_wait(void **state) {
    (void)state;
    double x[FEW];
    fill(x, 2);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w = cot_wrap(t, COT_F64, COT_SHAPE(FEW), x), later = cot_mul(cot_ones(t, COT_F64, COT_SHAPE(FEW)), 4.0);
    cot_var   z = cot_mul(w, 3.0), of_view = cot_mul(cot_reshape(w, COT_SHAPE(2, FEW / 2)), 5.0),
            of_part = cot_neg(cot_slice(w, 0, 0, 10, 1));
    fill(x, 9);
    all_are(z, 6, "of borrowed memory");
    all_are(of_view, 10, "of a view of it");
    TEST_CHECK(cot_value(cot_sum(of_part, COT_ALL)) == -20, "a part of it is %g", cot_value(cot_sum(of_part, COT_ALL)));
    cot_touch(&w);
    cot_mul_into(&w, later);
    TEST_CHECK(x[0] == 36 && x[FEW - 1] == 36, "a write in place has not arrived: %g", x[0]);
    later = cot_mul(cot_ones(t, COT_F64, COT_SHAPE(FEW)), 8.0);
    TEST_CHECK(waits(later), "nothing waits before the next write");
    cot_copy_into(&w, later);
    TEST_CHECK(x[0] == 8 && x[FEW - 1] == 8, "a copy in place has not arrived: %g", x[0]);
    assert_int_equal(cot_tape_status(t), COT_OK);
    cot_tape_destroy(t);
    test_verdict();
}

/* A rewind gives memory back at once, and values older than the mark stay. */
static void a_rewind_leaves_no_work_waiting(void **state) {
    (void)state;
    double x[FEW];
    fill(x, 2);
    cot_tape *t = cot_tape_create(NULL);
    cot_var   leaf = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x), old = cot_mul(leaf, 3.0);
    cot_mark  m = cot_tape_mark(t);
    int64_t   bytes = cot_tape_storage_bytes(t);
    for (int k = 0; k < 100; k++) {
        cot_var y = old;
        for (int i = 0; i < 3; i++) y = cot_sin(y);
        TEST_CHECK(waits(y), "round %d: nothing waits", k);
        cot_tape_rewind(t, m);
        TEST_CHECK(cot_tape_storage_bytes(t) == bytes && !cot__pending_any(t),
                   "round %d: %lld bytes instead of %lld after the rewind", k, (long long)cot_tape_storage_bytes(t),
                   (long long)bytes);
    }
    all_are(old, 6, "older than the mark");
    assert_int_equal(cot_tape_status(t), COT_OK);
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- what is done, and together -------------------------------------------------------------- */

/* A backend that notes the stages it is given. */
static struct { int stages, runs, moved, folds; int64_t elements; } seen;
static const cot__backend *usual_backend;

static void note_stage(cot__stage *s) {
    seen.stages++;
    seen.runs += s->count;
    seen.elements += s->count * s->size;
    seen.folds += s->folds;
    for (int k = 0; s->moves && k < s->count; k++) seen.moved += s->moves[k] != 0;
    usual_backend->elementwise(s);
}

static cot_tape *noting_tape(void) {
    static cot__backend noting;
    usual_backend = cot__new_tape_backend;
    noting = *usual_backend;
    noting.elementwise = note_stage;
    cot__new_tape_backend = &noting;
    cot_tape *t = cot_tape_create(NULL);
    cot__new_tape_backend = usual_backend;
    return t;
}

static void expect(int stages, int runs, const char *what) {
    TEST_CHECK(seen.stages == stages && seen.runs == runs, "%s: %d operations in %d stages, not %d in %d", what,
               seen.runs, seen.stages, runs, stages);
    memset(&seen, 0, sizeof seen);
}

static void a_look_does_what_waits_in_groups(void **state) {
    (void)state;
    double x[FEW], out[FEW];
    fill(x, 2);
    cot_tape *t = noting_tape();
    cot_var   leaf = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x), y = leaf;
    memset(&seen, 0, sizeof seen);
    for (int k = 0; k < 5; k++) y = cot_mul(y, 0.5);
    cot_read(leaf, out, FEW);
    expect(0, 0, "a look at another value");
    TEST_CHECK(waits(y), "a look at another value has the work done");
    cot_read(y, out, FEW);
    expect(1, 5, "a chain");
    y = cot_neg(cot_slice(cot_neg(leaf), 0, COT_END, COT_END, -1));
    cot_read(y, out, FEW);
    expect(2, 2, "a chain with elements in another order");
    y = cot_mul(cot_reshape(cot_neg(leaf), COT_SHAPE(2, FEW / 2)), 3.0);
    cot_read(y, out, FEW);
    expect(1, 2, "a chain with another shape");
    cot_var wide = cot_neg(leaf), narrow = cot_neg(cot_slice(leaf, 0, 0, 1, 1));
    y = cot_add(wide, cot_mul(narrow, 2.0)); /* a broadcast is a view */
    cot_read(y, out, FEW);
    expect(3, 4, "a chain with other sizes between");
    test_tape_ok(t, "groups");
    cot_tape_destroy(t);
    test_verdict();
}

/* Sums, maxima and minima of what waits, of a value that was changed in place, and of one a part of
 * which was. */
static int64_t reductions(cot_dtype dtype, int64_t n, bool later, double *out) {
    int64_t from = cot__pending_from, count = 0;
    cot__pending_from = later ? 1 : INT64_MAX;
    cot_tape *t = noting_tape();
    cot_var   x = cot_div(cot_sub(cot_cast(cot_arange(t, COT_F64, 0, (double)n, 1), dtype), 70.0), 333.0);
    for (int way = 0; way < 3; way++)
        for (int what = 0; what < 3; what++) {
            cot_var y = cot_mul(cot_sin(x), x);
            if (way == 1) cot_add_into(&y, x);
            if (way == 2) cot_update_slice(&y, 0, 0, n / 2, 1, 0.25);
            cot_var z = what == 0 ? cot_sum(y, COT_ALL) : what == 1 ? cot_max(y, COT_ALL) : cot_min(y, COT_ALL);
            out[count++] = cot_value(z);
            out[count++] = cot_value(cot_index(y, 0, n - 1));
        }
    test_tape_ok(t, "reductions");
    cot_tape_destroy(t);
    cot__pending_from = from;
    return count;
}

static void reductions_are_done_on_the_way(void **state) {
    (void)state;
    static const int64_t sizes[] = {1023, 1024, 5000, 70001};
    double               later[64], at_once[64];
    for (int k = 0; k < TEST_COUNT(sizes); k++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            char name[48];
            snprintf(name, sizeof name, "%d elements, dtype %d", (int)sizes[k], d);
            int64_t n = reductions((cot_dtype)d, sizes[k], false, at_once);
            memset(&seen, 0, sizeof seen);
            assert_int_equal(reductions((cot_dtype)d, sizes[k], true, later), n);
            test_same_array("reductions", name, n, later, at_once);
            TEST_CHECK(seen.folds == (sizes[k] < 1024 ? 0 : 6), "%s: %d folds", name, seen.folds);
        }
    test_verdict();
}

/* A rewind frees what was recorded, so its values need not be computed. Older ones are. */
static void what_a_rewind_forgets_is_never_computed(void **state) {
    (void)state;
    double x[FEW];
    fill(x, 2);
    cot_tape *t = noting_tape();
    cot_var   leaf = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x), old = cot_mul(leaf, 3.0);
    cot_mark  m = cot_tape_mark(t);
    memset(&seen, 0, sizeof seen);
    cot_exp(cot_sin(old));
    cot_tape_rewind(t, m);
    expect(1, 1, "a rewind");
    all_are(old, 6, "older than the mark");
    test_tape_ok(t, "rewound");
    cot_tape_destroy(t);
    test_verdict();
}

/* The adjoints between two operations of a chain are read by one group alone. */
static void what_one_group_reads_does_not_go_to_memory(void **state) {
    (void)state;
    double x[FEW];
    fill(x, 2);
    cot_tape *t = noting_tape();
    cot_var   leaf = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x), y = cot_sum(cot_mul(cot_sin(leaf), leaf), COT_ALL);
    cot_value(y);
    memset(&seen, 0, sizeof seen);
    cot_backward(y);
    TEST_CHECK(seen.moved > 0, "%d operations in %d stages, none of which reads or writes blocks alone", seen.runs,
               seen.stages);
    test_tape_ok(t, "a sweep");
    cot_tape_destroy(t);
    test_verdict();
}

/* Parts of an array that are written one by one, by the caller and by both kinds of sweeps, cost as
 * many elements as the parts have. */
static void a_write_in_place_costs_what_it_writes(void **state) {
    (void)state;
    enum { PARTS = 50, PART = 2, PASSES = 6 };
    double x[FEW], out[FEW];
    fill(x, 2);
    cot_tape   *t = noting_tape();
    cot_var     leaf = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x), copy = cot_mul(cot_detach(leaf), 1.0), y, g;
    const void *memory = memory_of(copy);
    cot_read(copy, out, FEW);
    memset(&seen, 0, sizeof seen);
    for (int k = 0; k < PARTS; k++) cot_update_slice(&copy, 0, k, k + PART, 1, 7.0);
    cot_read(copy, out, FEW);
    TEST_CHECK(out[PARTS] == 7 && out[PARTS + 1] == 2, "the array ends with %g, %g", out[PARTS], out[PARTS + 1]);
    TEST_CHECK(memory_of(copy) == memory, "the array has moved");
    TEST_CHECK(seen.elements == PARTS * PART, "writes: %lld elements", (long long)seen.elements);
    y = cot_sum(cot_slice(leaf, 0, 0, PART, 1), COT_ALL);
    for (int k = 1; k < PARTS; k++) y = cot_add(y, cot_sum(cot_square(cot_slice(leaf, 0, k, k + PART, 1)), COT_ALL));
    cot_value(y);
    memset(&seen, 0, sizeof seen);
    cot_backward(y);
    TEST_CHECK(seen.elements <= PARTS * PART * PASSES, "a sweep: %lld elements", (long long)seen.elements);
    memset(&seen, 0, sizeof seen);
    cot_grad_of(y, 1, &leaf, &g);
    cot_read(g, out, FEW);
    TEST_CHECK(out[0] == 1 && out[1] == 5 && out[2] == 8, "the gradient begins %g, %g, %g", out[0], out[1], out[2]);
    TEST_CHECK(seen.elements <= PARTS * PART * PASSES, "a recorded one: %lld elements", (long long)seen.elements);
    test_tape_ok(t, "parts");
    cot_tape_destroy(t);
    test_verdict();
}

/* ---- lists that come again ------------------------------------------------------------------- */

static uint32_t misses_of(const cot_tape *t) { return t->pending.work->misses; }

/* Programs taking turns on one tape, rewound after each: from the third time on no list of a plain
 * one is looked at anew, and no bit shows it. */
static void lists_that_come_again_have_the_same_bits(void **state) {
    (void)state;
    enum { PROGRAMS = 5, ROUNDS = 4 };
    static double first[PROGRAMS][2 * LENGTH], numbers[2 * LENGTH], again[2 * LENGTH];
    uint64_t      s = 12345;
    for (int i = 0; i < 2 * LENGTH; i++) numbers[i] = (double)(next(&s) % 2001) / 1000 - 1;
    for (int later = 0; later < 2; later++) {
        cot__pending_from = later ? 1 : INT64_MAX;
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(LENGTH), numbers),
                w = cot_tensor(t, COT_F64, COT_SHAPE(LENGTH), numbers + LENGTH);
        cot_mark m = cot_tape_mark(t);
        for (int round = 0; round < (later ? ROUNDS : 1); round++)
            for (int k = 0; k < PROGRAMS; k++) {
                char    name[48];
                double *out = later ? again : first[k];
                cot_backward(program(x, w, (uint64_t)k + 1));
                cot_read_grad(x, out, LENGTH);
                cot_read_grad(w, out + LENGTH, LENGTH);
                cot_tape_zero_grads(t);
                cot_tape_rewind(t, m);
                snprintf(name, sizeof name, "program %d, round %d", k, round);
                if (later) test_same_array("again", name, 2 * LENGTH, again, first[k]);
            }
        test_tape_ok(t, "rounds");
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* The same operations: once nobody reads the second value. */
static void a_list_is_another_if_another_value_is_needed(void **state) {
    (void)state;
    double x[FEW];
    fill(x, 2);
    cot_tape *t = noting_tape();
    cot_var   leaf = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x);
    cot_mark  start = cot_tape_mark(t);
    memset(&seen, 0, sizeof seen);
    for (int round = 0; round < 6; round++) {
        cot_var  a = cot_mul(leaf, 3.0);
        cot_mark m = cot_tape_mark(t);
        cot_var  b = cot_add(a, 1.0);
        if (round % 2 == 0) cot_tape_rewind(t, m);
        else all_are(b, 7, "the second value");
        all_are(a, 6, "the first value");
        expect(1, round % 2 == 0 ? 1 : 2, "a round");
        TEST_CHECK((misses_of(t) == 0) == (round >= 2), "round %d: %u lists were looked at", round, misses_of(t));
        cot_tape_rewind(t, start);
    }
    test_tape_ok(t, "needed");
    cot_tape_destroy(t);
    test_verdict();
}

/* The same operations on as many storages, of which one is as long as the others, or is not. */
static void a_list_is_another_if_a_size_is_another(void **state) {
    (void)state;
    double x[FEW], out[FEW];
    fill(x, 2);
    cot_tape *t = noting_tape();
    cot_var   leaf[3];
    for (int k = 0; k < 3; k++) leaf[k] = cot_data(t, COT_F64, COT_SHAPE(k == 1 ? FEW / 2 : FEW), x);
    cot_mark start = cot_tape_mark(t);
    memset(&seen, 0, sizeof seen);
    for (int round = 0; round < 6; round++) {
        cot_var y = cot_neg(leaf[0]), z = cot_mul(leaf[1 + round % 2], 3.0);
        all_are(y, -2, "the first value");
        expect(2 - round % 2, 2, "sizes");
        cot_read(z, out, cot_size(z));
        TEST_CHECK(out[0] == 6 && out[cot_size(z) - 1] == 6, "the second value is %g, %g", out[0],
                   out[cot_size(z) - 1]);
        cot_tape_rewind(t, start);
    }
    test_tape_ok(t, "sizes");
    cot_tape_destroy(t);
    test_verdict();
}

/* The same operations on parts of one array: the second reads what the first has written, or has
 * written one element further on, which is no group of both. */
static void a_list_is_another_if_parts_lie_otherwise(void **state) {
    (void)state;
    enum { PART = 500 };
    double x[FEW], five[FEW], out[PART];
    fill(x, 2);
    fill(five, 5);
    cot_tape *t = noting_tape();
    cot_var   leaf = cot_data(t, COT_F64, COT_SHAPE(FEW), x), part = cot_data(t, COT_F64, COT_SHAPE(PART), five);
    cot_mark  start = cot_tape_mark(t);
    for (int round = 0; round < 6; round++) {
        cot_var y = cot_mul(leaf, 1.0);
        cot_read(y, x, FEW);
        memset(&seen, 0, sizeof seen);
        cot_update_slice(&y, 0, 0, PART, 1, part);
        cot_var z = cot_neg(cot_slice(y, 0, round % 2, PART + round % 2, 1));
        cot_read(z, out, PART);
        expect(1 + round % 2, 2, "parts");
        for (int i = 0; i < PART; i++) {
            double want = i == PART - 1 && round % 2 ? -2 : -5;
            TEST_CHECK(out[i] == want, "round %d, element %d: %g, not %g", round, i, out[i], want);
        }
        cot_tape_rewind(t, start);
    }
    test_tape_ok(t, "parts");
    cot_tape_destroy(t);
    test_verdict();
}

/* The n-th allocation fails, for every n: the right numbers or an error, nothing lost. */
static void failing_allocations_are_survived(void **state) {
    (void)state;
    double x[FEW], want[FEW], got[FEW];
    fill(x, 0.5);
    long n = 0;
    for (bool done = false; !done; n++) {
        counting  c = {.fail_at = n};
        cot_tape *t = counted_tape(&c, false);
        if (t) {
            cot_var y = cot_tensor(t, COT_F64, COT_SHAPE(FEW), x), leaf = y;
            for (int k = 0; k < 20; k++) y = cot_mul(cot_sin(y), leaf);
            cot_backward(cot_sum(y, COT_ALL));
            cot_status status = cot_read_grad(leaf, got, FEW);
            if (n == 0) memcpy(want, got, sizeof want);
            TEST_CHECK(status != COT_OK || memcmp(got, want, sizeof got) == 0, "allocation %ld: other numbers", n);
            cot_tape_destroy(t);
        }
        TEST_CHECK(c.blocks == 0, "allocation %ld: %ld blocks are lost", n, (long)c.blocks);
        done = n > 0 && !c.failed;
    }
    TEST_CHECK(n > 20, "only %ld allocations", n);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_does_not_show),
        cmocka_unit_test(every_operation_may_wait),
        cmocka_unit_test(waiting_holds_no_more_memory),
        cmocka_unit_test_setup_teardown(writers_come_after_waiting_work, all_wait, let_be),
        cmocka_unit_test_setup_teardown(work_on_borrowed_memory_does_not_wait, all_wait, let_be),
        cmocka_unit_test_setup_teardown(a_rewind_leaves_no_work_waiting, all_wait, let_be),
        cmocka_unit_test_setup_teardown(a_look_does_what_waits_in_groups, all_wait, let_be),
        cmocka_unit_test_setup_teardown(reductions_are_done_on_the_way, all_wait, let_be),
        cmocka_unit_test_setup_teardown(what_a_rewind_forgets_is_never_computed, all_wait, let_be),
        cmocka_unit_test_setup_teardown(what_one_group_reads_does_not_go_to_memory, all_wait, let_be),
        cmocka_unit_test_setup_teardown(a_write_in_place_costs_what_it_writes, all_wait, let_be),
        cmocka_unit_test_setup_teardown(lists_that_come_again_have_the_same_bits, all_wait, let_be),
        cmocka_unit_test_setup_teardown(a_list_is_another_if_another_value_is_needed, all_wait, let_be),
        cmocka_unit_test_setup_teardown(a_list_is_another_if_a_size_is_another, all_wait, let_be),
        cmocka_unit_test_setup_teardown(a_list_is_another_if_parts_lie_otherwise, all_wait, let_be),
        cmocka_unit_test_setup_teardown(failing_allocations_are_survived, all_wait, let_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
