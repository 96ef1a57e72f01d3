/* Exported C: every sample function with its gradient and every elementwise operation, compiled
 * with strict warnings by gcc and clang, gives the library's bits; also on a bare 32-bit ARM. */
/* ctest: timeout=600 plain-only */
#define _GNU_SOURCE /* mkdtemp, open_memstream */
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "samples/samples.h"
#include "support/emit_test.h"
#include "support/tape_test.h"

enum { MOST = 3 * OP_elementwise_count, ROOM = 1 << 15 };

/* ---- programs and what they give here -------------------------------------------------------- */

static cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

static int with_gradient(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const test_function *f = user;
    (void)m;
    ys[0] = f->f(n, xs, f->user);
    ys[1] = loss(ys[0]);
    cot_grad_of(ys[1], n, xs, ys + 2);
    return 0;
}

static uint8_t ran[OP_count];

/* The program of a function at these values, and its results here. */
static bool add_function(emitted *e, cot_tape *t, const char *name, cot_fn fn, void *user, int n, const cot_var *xs,
                         int m) {
    static char  in_room[8][ROOM], out_room[MOST][ROOM];
    void        *in[8], *out[MOST];
    emit_refusal why;
    cot__program *p = lower(t, name, fn, user, n, xs, m);
    cot__run     *run = p ? prepare(t, name, p) : NULL;
    bool          ok = run != NULL && p->inputs == (uint32_t)n;
    for (int k = 0; ok && k < n; k++) {
        cot__view v = cot__view_read(t, cot__index(xs[k]));
        in[k] = in_room[k];
        cot__read_view(t, "test", &v, v.dtype, in[k], cot__view_size(&v));
    }
    for (int k = 0; k < m; k++) out[k] = out_room[k];
    ok = ok && cot__run_go(run, (const void *const *)in, out);
    ok = ok && emitted_add(e, p, false, in, out, &why);
    for (uint32_t k = 0; ok && k < p->operations; k++) ran[p->operation[k].op] = 1;
    cot__run_destroy(run);
    cot__program_release(p);
    return ok;
}

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        double   *data = (double *)(uintptr_t)f->in[k].data;
        char      raw[TEST_MAX_SIZE * sizeof(double)];
        cot_var   cast = cot_cast(cot_data(t, COT_F64, f->in[k].shape, data), dtype);
        cot__view v = cot__view_read(t, cot__index(cast));
        cot__read_view(t, "test", &v, dtype, raw, cot__view_size(&v));
        xs[k] = cot_tensor(t, dtype, f->in[k].shape, raw);
    }
}

static void add_samples(emitted *e, cot_dtype dtype, int step) {
    for (int k = 0; k < TEST_COUNT(samples); k += step) {
        cot_tape     *t = cot_tape_create(NULL);
        test_function f = function_of(&samples[k], k, 0);
        cot_var       xs[TEST_MAX_INPUTS];
        leaves_of(t, &f, dtype, xs);
        add_function(e, t, f.name, with_gradient, &f, f.n, xs, 2 + f.n);
        cot_tape_destroy(t);
    }
}

/* ---- elementwise operations ------------------------------------------------------------------ */

/* Operations from *first on, 20 of them: value and gradient of each, on its own three operands. */
enum { SOME = 20 };
static int elementwise(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    int first = *(int *)user;
    (void)n, (void)m;
    for (int op = first; op < first + SOME && op < OP_elementwise_count; op++) {
        const cot_var *x = xs;
        int            arity = cot__elementwise_arity(op), at = op - first;
        cot_var        own[3], g[3] = {x[0], x[0], x[0]};
        for (int k = 0; k < 3; k++) own[k] = cot_index(x[k], 0, at);
        if (op == OP_where) own[0] = cot_greater(own[0], 0.0);
        ys[2 * at] = test_call(op, own);
        bool real = cot_dtype_of(ys[2 * at]) != COT_BOOL && cot__op_of(op)->kind != KIND_NONE && op != OP_polygamma;
        if (real) cot_grad_of(cot_sum(ys[2 * at], COT_ALL), arity - (op == OP_where), own + (op == OP_where), g);
        ys[2 * at + 1] = g[0];
    }
    return 0;
}

/* Rows of operands, one for each operation: points of its domain, and specials. Of scalars a row is
 * one number. */
static void add_elementwise(emitted *e, cot_dtype dtype, int64_t length) {
    static const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, 1e6, -1e9, 3e22, 1e-310, 2.0, -1.0};
    for (int first = 0; first < OP_elementwise_count; first += SOME) {
        cot_tape *t = cot_tape_create(NULL);
        double    x[3][SOME * 64];
        cot_var   xs[3];
        int       count = OP_elementwise_count - first < SOME ? OP_elementwise_count - first : SOME;
        for (int op = first; op < first + count; op++) {
            test_random random = test_random_of(cot__op_of(op)->name, (int)length);
            for (int64_t i = 0; i < length; i++) {
                double point[3];
                test_sample(op, &random, point);
                for (int k = 0; k < 3; k++) {
                    bool special = length > 1 && i >= length - TEST_COUNT(specials);
                    x[k][(op - first) * length + i] = special ? specials[(i + 5 * k) % TEST_COUNT(specials)] : point[k];
                }
            }
        }
        cot_shape shape = length > 1 ? COT_SHAPE(count, length) : COT_SHAPE(count);
        for (int k = 0; k < 3; k++) xs[k] = cot_detach(cot_cast(cot_data(t, COT_F64, shape, x[k]), dtype));
        TEST_CHECK(add_function(e, t, "elementwise", elementwise, &first, 3, xs, 2 * count),
                   "elementwise operations from %d on are refused: %s", first, cot_tape_message(t));
        cot_tape_destroy(t);
    }
}

/* ---- larger arrays --------------------------------------------------------------------------- */

SAMPLE(long_sums) {
    UNUSED;
    cot_var y = cot_sin(cot_mul(x[0], 3.0));
    return cot_add(cot_sum(y, COT_AXES(0)), cot_sum(cot_transpose(cot_exp(y)), COT_AXES(1)));
}
SAMPLE(long_products) { UNUSED; return cot_matmul(cot_transpose(x[0]), cot_cos(x[0])); }

static void add_long(emitted *e, cot_dtype dtype, cot_function f) {
    cot_tape *t = cot_tape_create(NULL);
    enum { ROWS_ = 1700 };
    static double x[ROWS_ * 2];
    test_random   random = test_random_of("long", 1);
    for (int k = 0; k < ROWS_ * 2; k++) x[k] = test_uniform(&random, -2, 2);
    cot_var       v = cot_detach(cot_cast(cot_data(t, COT_F64, COT_SHAPE(ROWS_, 2), x), dtype));
    test_function whole = {.name = "long", .f = f};
    TEST_CHECK(add_function(e, t, "long", with_gradient, &whole, 1, &v, 3), "a long array is refused: %s",
               cot_tape_message(t));
    cot_tape_destroy(t);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static emitted all;

static void exported_programs_have_the_librarys_bits(void **state) {
    (void)state;
    emitted_compare(&all, "gcc -O1", "");
    if (emit_has("clang")) emitted_compare(&all, "clang -O0", "");
    test_verdict();
}

int main(void) {
    emitted_begin(&all);
    add_elementwise(&all, COT_F64, 64);
    add_elementwise(&all, COT_F32, 64);
    add_elementwise(&all, COT_F64, 1);
    add_samples(&all, COT_F64, 1);
    add_long(&all, COT_F64, long_sums);
    add_long(&all, COT_F32, long_sums);
    add_long(&all, COT_F64, long_products);
    emitted_end(&all);
    const struct CMUnitTest tests[] = {cmocka_unit_test(exported_programs_have_the_librarys_bits)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!getenv("KEEP")) emitted_close(&all);
    else fprintf(stderr, "%s: %d programs\n", all.folder, all.count);
    return failed;
}
