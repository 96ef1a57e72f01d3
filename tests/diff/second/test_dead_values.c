/* Values of a recorded gradient that no tangent reads are not computed (diff/second/dead_values.c),
 * and no result shows it. Random functions run with all elementwise work waiting, in memory full
 * of NaN until it is done. Hessians and products have the same bits as without deferring. */
#include "diff/second/second.h"
#include "support/support.h"

#include "base/random.h"
#include "diff/engine/sweep.h"
#include "pending/parts.h"

#include <string.h>

enum { N = 9, POOL = 12, PROGRAMS = 400 };

typedef struct draw { uint64_t at; } draw;
static int below(draw *d, int n) { return (int)(cot__mixed(d->at++) % (uint64_t)n); }

/* A new value from two values of the same shape. The rules of some read their operands, of some
 * their own result, of some nothing. */
static cot_var step(draw *d, cot_var a, cot_var b, cot_var matrix) {
    switch (below(d, 13)) {
    case 0: return cot_add(a, b);
    case 1: return cot_sub(a, b);
    case 2: return cot_mul(a, b);
    case 3: return cot_div(a, cot_add(2.0, cot_square(b)));
    case 4: return cot_exp(cot_mul(0.1, a));
    case 5: return cot_sin(a);
    case 6: return cot_square(a);
    case 7: return cot_sqrt(cot_add(1.0, cot_square(a)));
    case 8: return cot_tanh(a);
    case 9: return cot_mul(a, cot_sum(b, COT_ALL));
    case 10: return cot_matmul(matrix, a);
    case 11: return cot_mul(cot_cumsum(a, 0, false), b);
    default: return cot_where(cot_greater(a, b), cot_mul(a, b), cot_neg(b));
    }
}

static cot_var program(draw d, cot_tape *t, cot_var x) {
    cot_var pool[POOL] = {cot_slice(x, 0, 0, N - 1, 1), cot_slice(x, 0, 1, N, 1)};
    double  numbers[(N - 1) * (N - 1)];
    for (int k = 0; k < (N - 1) * (N - 1); k++) numbers[k] = 0.1 * (double)(k % 7) - 0.3;
    cot_var matrix = cot_tensor(t, COT_F64, COT_SHAPE(N - 1, N - 1), numbers);
    for (int k = 2; k < POOL; k++) pool[k] = step(&d, pool[below(&d, k)], pool[below(&d, k)], matrix);
    return cot_sum(cot_mul(pool[POOL - 1], pool[below(&d, POOL)]), COT_ALL);
}

typedef struct results { double product[N], matrix[N * N], gradient[N]; } results;

static void evaluate(int seed, bool defers, results *r) {
    int64_t from = cot__pending_from, bytes = cot__pending_bytes;
    bool    spoils = cot__pending_spoils;
    cot__pending_from = defers ? 1 : INT64_MAX;
    cot__pending_bytes = 1;
    cot__pending_spoils = defers;
    cot_tape *t = cot_tape_create(NULL);
    double    at[N], v[N];
    for (int k = 0; k < N; k++) at[k] = 0.5 + 0.04 * k, v[k] = 1.0 - 0.3 * k;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(N), at), y = program((draw){(uint64_t)seed << 20}, t, x), g;
    cot_hvp(y, 1, &x, v, r->product);
    cot_hessian(y, 1, &x, r->matrix);
    cot_grad_of(y, 1, &x, &g); /* a gradient that is asked for has its values */
    cot_read(g, r->gradient, N);
    TEST_CHECK(cot_tape_status(t) == COT_OK, "program %d: %s", seed, cot_tape_message(t));
    cot_tape_destroy(t);
    cot__pending_from = from;
    cot__pending_bytes = bytes;
    cot__pending_spoils = spoils;
}

static void what_is_not_computed_is_not_read(void **state) {
    (void)state;
    for (int seed = 0; seed < PROGRAMS; seed++) {
        results later, at_once;
        evaluate(seed, true, &later);
        evaluate(seed, false, &at_once);
        TEST_CHECK(memcmp(&later, &at_once, sizeof later) == 0, "program %d differs where work waits", seed);
    }
    test_verdict();
}

/* Of Σx² the gradient is 2x, and its tangents read neither that nor 2x times the adjoint of the
 * sum. */
static void what_nobody_reads_is_not_computed(void **state) {
    (void)state;
    enum { LONG = 5000 };
    static double at[LONG];
    cot_tape     *t = cot_tape_create(NULL);
    cot_var       x = cot_tensor(t, COT_F64, COT_SHAPE(LONG), at), y = cot_sum(cot_square(x), COT_ALL), g;
    cot__pending_open(t);
    uint32_t since = t->storages.count, from = t->count;
    assert_int_equal(cot_grad_of(y, 1, &x, &g), COT_OK);
    TEST_CHECK(cot__pending_any(t), "nothing waits");
    cot__drop_dead_values(t, since, from);
    cot__pending_from_end(t->pending.work);
    cot__pending_drop_dead(t->pending.work);
    TEST_CHECK(!cot__pending_any(t), "%u operations wait", t->pending.work->count);
    cot__pending_close(t);
    cot_tape_destroy(t);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_computed_is_not_read),
                                       cmocka_unit_test(what_nobody_reads_is_not_computed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
