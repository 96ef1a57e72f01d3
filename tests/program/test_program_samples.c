/* Every sample function with its recorded gradient, and every elementwise operation, gives as a
 * program the bits that recording gives, again and again on one run, whatever the number of
 * threads; and so does what all passes make of it, the program that computes again whatever it can,
 * and the program when it comes out of a file. */
/* ctest: timeout=300 */
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "samples/sample_programs.h"
#include "support/program_test.h"
#include "support/tape_test.h"

#include "program/limit/limit.h"
#include "program/passes/passes.h"

enum { MAX_OUT = SAMPLE_OUTPUTS, BYTES = 1 << 14 };

/* ---- memory of a backend --------------------------------------------------------------------- */

static void *room(const cot__backend *b, size_t bytes) {
    return b->alloc ? b->alloc(NULL, bytes + 1) : malloc(bytes + 1);
}
static void leave(const cot__backend *b, void *p, size_t bytes) {
    if (b->free) b->free(NULL, p, bytes + 1);
    else free(p);
}

typedef struct outputs { int m; size_t bytes[MAX_OUT]; cot_dtype dtype[MAX_OUT]; char bits[MAX_OUT][BYTES]; } outputs;

/* ---- the two ways ---------------------------------------------------------------------------- */

/* By recording. False: it cannot be recorded so. */
static bool eager(const test_function *f, cot_dtype dtype, outputs *o) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS], ys[MAX_OUT];
    leaves_of(t, f, dtype, xs);
    o->m = 2 + f->n;
    with_gradient(f->n, xs, o->m, ys, (void *)(uintptr_t)f);
    bool ok = cot_tape_status(t) == COT_OK;
    for (int k = 0; ok && k < o->m; k++) {
        cot__view v = cot__look(t, cot__index(ys[k]));
        o->dtype[k] = v.dtype;
        o->bytes[k] = (size_t)(cot__view_size(&v) * cot__dtype_size(v.dtype));
        ok = o->bytes[k] <= BYTES;
        if (ok) cot__read_view(t, "test", &v, v.dtype, o->bits[k], cot__view_size(&v));
    }
    cot_tape_destroy(t);
    return ok;
}

/* The values of a body's inputs and captures, side by side in memory of the backend. */
static void *place_input(cot_tape *t, uint32_t node) {
    cot__view v = cot__look(t, node), to = v;
    int64_t   stride[COT_MAX_NDIM];
    to.data = room(t->backend, cot__bytes_at(t, node));
    to.stride = stride;
    cot__strides(v.ndim, v.shape, stride);
    t->backend->copy(&to, &v);
    return to.data;
}

/* Runs on the values of xs. */
static bool go(cot_tape *t, cot__run *run, const cot__program *p, const cot_var *xs, outputs *o) {
    void *in[TEST_MAX_INPUTS], *out[MAX_OUT];
    for (uint32_t k = 0; k < p->inputs; k++) in[k] = place_input(t, cot__index(xs[k]));
    for (uint32_t k = 0; k < p->outputs; k++) {
        cot__view v = cot__value_view(p, p->output[k]);
        o->bytes[k] = (size_t)(cot__view_size(&v) * cot__dtype_size(v.dtype));
        o->dtype[k] = v.dtype;
        out[k] = room(t->backend, o->bytes[k]);
    }
    o->m = (int)p->outputs;
    bool ok = cot__run_go(run, (const void *const *)in, out);
    for (uint32_t k = 0; ok && k < p->outputs; k++) {
        cot__view from = cot__value_view(p, p->output[k]), to = from;
        from.data = out[k];
        to.data = o->bits[k];
        t->backend->copy_out(&to, &from);
    }
    for (uint32_t k = 0; k < p->inputs; k++) leave(t->backend, in[k], cot__bytes_at(t, cot__index(xs[k])));
    for (uint32_t k = 0; k < p->outputs; k++) leave(t->backend, out[k], o->bytes[k]);
    return ok;
}

/* Any two NaN are the same. */
static bool same_bits(const outputs *a, const outputs *b, int k) {
    if (a->bytes[k] != b->bytes[k] || a->dtype[k] != b->dtype[k]) return false;
    size_t size = (size_t)cot__dtype_size(a->dtype[k]);
    for (size_t i = 0; i < a->bytes[k]; i += size) {
        if (memcmp(a->bits[k] + i, b->bits[k] + i, size) == 0) continue;
        double x = cot__load_f64(a->bits[k] + i, a->dtype[k]), y = cot__load_f64(b->bits[k] + i, b->dtype[k]);
        if (!isnan(x) || !isnan(y)) return false;
    }
    return true;
}

static void compare(const test_function *f, cot_dtype dtype, const outputs *want, const outputs *got) {
    for (int k = 0; k < want->m; k++)
        TEST_CHECK(same_bits(want, got, k), "%s, %s: output %d has other bits as a program", f->name,
                   cot__dtype_name(dtype), k);
}

/* Function number k at a point that depends on the round. */
typedef test_function function_maker(int k, int round);

/* ---- every sample ---------------------------------------------------------------------------- */

static uint8_t ran[OP_count];
static int     longer; /* programs that compute something again under the tightest limit */

static void note_operations(const cot__program *p) {
    for (uint32_t k = 0; k < p->operations; k++) ran[p->operation[k].op] = 1;
}

/* One run, three times, on other inputs and with other numbers of threads. */
static void compare_runs(cot_tape *t, function_maker *make, int number, cot_dtype dtype, cot__run *run,
                         const cot__program *p) {
    static const int threads[] = {1, 2, 7};
    static outputs   want, got;
    for (int round = 0; round < TEST_COUNT(threads); round++) {
        test_function f = make(number, round);
        cot_var       xs[TEST_MAX_INPUTS];
        cot_mark      m = cot_tape_mark(t);
        cot_set_threads(threads[round]);
        if (!eager(&f, dtype, &want)) continue;
        leaves_of(t, &f, dtype, xs);
        bool ok = go(t, run, p, xs, &got);
        TEST_CHECK(ok, "%s, %s: %s", f.name, cot__dtype_name(dtype), cot__run_message(run));
        if (ok) compare(&f, dtype, &want, &got);
        cot_tape_rewind(t, m);
    }
    cot_set_threads(0);
}

/* What all passes make of it, too. */
static void compare_optimised(cot_tape *t, function_maker *make, int number, cot_dtype dtype, const cot__program *p) {
    const char       *name = make(number, 0).name;
    cot__caller       caller = cot__tape_caller(t, "test");
    cot__pass_options o = {.caller = &caller, .backend = t->backend};
    cot__program     *best = cot__optimise(p, &o);
    cot__run         *run = best ? prepare(t, name, best) : NULL;
    TEST_CHECK(run && best->operations <= p->operations, "%s: passes add operations", name);
    if (run) compare_runs(t, make, number, dtype, run, best);
    cot__run_destroy(run);
    cot__program_release(best);
}

/* And the program that computes again whatever it can. */
static void compare_tight(cot_tape *t, function_maker *make, int number, cot_dtype dtype, const cot__program *p) {
    cot__program *tight = cot__limit_tightest(p, t->backend, NULL);
    cot__run     *run = prepare(t, make(number, 0).name, tight);
    if (run) compare_runs(t, make, number, dtype, run, tight);
    longer += tight->operations > p->operations;
    cot__run_destroy(run);
    cot__program_release(tight);
}

static void compare_loaded(cot_tape *t, function_maker *make, int number, cot_dtype dtype, const char *name,
                           const cot__program *p) {
    cot__program *q = through_a_file(t, name, p);
    cot__run     *run = q ? prepare(t, name, q) : NULL;
    if (run) compare_runs(t, make, number, dtype, run, q);
    cot__run_destroy(run);
    cot__program_release(q);
}

static int lowered;

static void lower_and_compare(function_maker *make, int number, cot_dtype dtype) {
    cot_tape     *t = cot_tape_create(NULL);
    test_function f = make(number, 0);
    cot_var       xs[TEST_MAX_INPUTS];
    leaves_of(t, &f, dtype, xs);
    cot__program *p = lower(t, f.name, with_gradient, &f, f.n, xs, 2 + f.n);
    cot__run     *run = p ? prepare(t, f.name, p) : NULL;
    if (run) {
        lowered++;
        note_operations(p);
        TEST_CHECK(p->inputs == (uint32_t)f.n, "%s: the body captures something", f.name);
        compare_runs(t, make, number, dtype, run, p);
        compare_optimised(t, make, number, dtype, p);
        compare_tight(t, make, number, dtype, p);
        if (!p->bound) compare_loaded(t, make, number, dtype, f.name, p);
    }
    cot__run_destroy(run);
    cot__program_release(p);
    cot_tape_destroy(t);
}

/* Operations that samples do on constants alone, or whose gradient is a condition, so that they are
 * not operations of a program there: on values that move. */
static cot_var positions(cot_var x) { return cot_cast(cot_mul(cot_sigmoid(x), 1.99), COT_I64); }
SAMPLE(m_one_hot) { UNUSED; return cot_one_hot(positions(x[0]), 3, cot_dtype_of(x[0])); }
SAMPLE(m_gather) { UNUSED; return cot_gather(x[0], positions(x[0])); }
SAMPLE(m_scatter) { UNUSED; return cot_scatter(x[0], positions(cot_index(x[0], 0, 0)), x[0], 0); }
SAMPLE(m_compress) { UNUSED; return cot_compress_to(x[0], cot_greater(cot_index(x[0], 0, 0), 0.0), 1, 4, 0.5); }
SAMPLE(m_draw) {
    UNUSED;
    cot_var at = cot_sum(positions(x[0]), COT_ALL);
    return cot_cast(cot_normal(x[0].tape, cot_key_at(cot_key_of(3), at), COT_F32, COT_SHAPE(2, 2)), cot_dtype_of(x[0]));
}
SAMPLE(m_det) { UNUSED; return cot_detach(cot_det(x[0])); }
static const struct { const char *name; cot_function f; } moving[] = {
    {"one_hot", m_one_hot}, {"gather", m_gather}, {"scatter", m_scatter},
    {"compress", m_compress}, {"draw_at", m_draw}, {"det", m_det},
};

static test_function moving_function(int k, int round) {
    test_function f = {.name = moving[k].name, .f = moving[k].f, .n = 1, .in[0].shape = {2, {2, 2}}};
    test_random   random = test_random_of(f.name, round);
    test_fill(&f, &random, -2, 2);
    return f;
}
static test_function sample_function(int k, int round) { return function_of(&samples[k], k, round); }

static void every_sample_and_its_gradient_has_the_bits_of_recording(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    (void)state;
    for (int d = 0; d < TEST_COUNT(dtypes); d++) {
        for (int i = 0; i < TEST_COUNT(samples); i++) lower_and_compare(sample_function, i, dtypes[d]);
        for (int i = 0; i < TEST_COUNT(moving); i++) lower_and_compare(moving_function, i, dtypes[d]);
    }
    for (int op = OP_structural; op < OP_count; op++) {
        const cot__op *o = cot__op_of(op);
        /* no sample has a function of the user's, or calls a program: see test_compile_numbers.c
         * and test_tape_file.c in tests/compile */
        bool users = op == OP_custom || op == OP_custom_numbers || op == OP_call;
        bool runs = o->kind != KIND_SOURCE && o->kind != KIND_PICK && !o->needs_tape && !o->planned && !users;
        TEST_CHECK(ran[op] || !runs, "%s never ran in a program", o->name);
    }
    assert_true(lowered > 600 && longer > 100);
    test_verdict();
}

/* ---- elementwise operations ------------------------------------------------------------------ */

/* An operation on tensors, on scalars, and with a number on either side. */
typedef struct elementwise { int op; bool number; } elementwise;

static cot_var as_operand(int op, int k, cot_var x) { return op == OP_where && k == 0 ? cot_greater(x, 0.0) : x; }

static cot_var call_elementwise(int n, const cot_var *xs, void *user) {
    const elementwise *e = user;
    cot_var            all[3];
    (void)n;
    for (int k = 0; k < cot__elementwise_arity(e->op); k++) all[k] = as_operand(e->op, k, xs[k]);
    cot_var z = test_call(e->op, all);
    if (e->number) z = cot_add(z, cot_mul(test_call(e->op, (cot_var[]){all[0], cot_number(0.75)}),
                                          test_call(e->op, (cot_var[]){cot_number(0.75), all[1]})));
    return z;
}

static elementwise now;
static cot_shape   now_shape;

static test_function elementwise_function(int op, int round) {
    test_function f = {.name = cot__elementwise_table[op].name, .f = call_elementwise, .user = &now};
    test_random   random = test_random_of(f.name, round);
    f.n = cot__elementwise_arity(op);
    for (int k = 0; k < f.n; k++) f.in[k].shape = now_shape;
    test_fill(&f, &random, 0.1, 0.9);
    return f;
}

static void every_elementwise_operation_has_the_bits_of_recording(void **state) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    static const cot_shape shapes[] = {{0, {0}}, {1, {5}}};
    (void)state;
    lowered = 0;
    for (int op = 0; op < OP_elementwise_count; op++)
        for (int d = 0; d < TEST_COUNT(dtypes); d++)
            for (int k = 0; k < TEST_COUNT(shapes); k++) {
                bool test = cot__op_is_test(op);
                now = (elementwise){op, cot__elementwise_arity(op) == 2 && !test};
                now_shape = shapes[k];
                if (!test) lower_and_compare(elementwise_function, op, dtypes[d]);
            }
    assert_true(lowered > 300);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_and_its_gradient_has_the_bits_of_recording),
        cmocka_unit_test(every_elementwise_operation_has_the_bits_of_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
