/* Patterns of positions that are computed from the inputs: a plan made at one point gives the dense
 * matrices at others, where the positions are others. */
/* ctest: timeout=120 */
#include "diff/sparse/plan_test.h"
#include "rules/structural_ids.h"

static cot_var square_of(cot_var x) { return cot_reshape(x, COT_SHAPE(2, 3)); }
static cot_var order_of(cot_var x) { return cot_argsort(x, 0, false); }

BODY(p_sort) {
    UNUSED;
    ys[0] = cot_sort(xs[0], 0, false);
    return 0;
}
BODY(p_sort_rows) {
    UNUSED;
    ys[0] = cot_sort(square_of(xs[0]), 1, true);
    return 0;
}
BODY(p_cummax) {
    UNUSED;
    ys[0] = cot_cummax(square_of(xs[0]), 1, false);
    return 0;
}
BODY(p_cummin) {
    UNUSED;
    ys[0] = cot_cummin(square_of(xs[0]), 0, false);
    return 0;
}
BODY(p_pool) {
    UNUSED;
    ys[0] = cot_max_pool1d(cot_reshape(xs[0], COT_SHAPE(1, 1, N)), COT_POOL(.window = {2}));
    return 0;
}
BODY(p_pool_steps) {
    UNUSED;
    ys[0] = cot_max_pool1d(cot_reshape(xs[0], COT_SHAPE(1, N)), COT_POOL(.window = {3}, .stride = {1}, .padding = {1}));
    return 0;
}
BODY(p_pool_2d) {
    UNUSED;
    ys[0] = cot_max_pool2d(cot_reshape(xs[0], COT_SHAPE(1, 1, 2, 3)), COT_POOL(.window = {2, 2}, .stride = {1, 1}));
    return 0;
}
BODY(p_take) {
    UNUSED;
    ys[0] = cot_take(xs[0], cot_argmax(xs[0], COT_ALL), 0);
    return 0;
}
BODY(p_take_rows) {
    UNUSED;
    cot_var a = square_of(xs[0]);
    ys[0]     = cot_take(a, cot_argsort(cot_sum(a, COT_AXES(1)), 0, false), 0);
    return 0;
}
BODY(p_take_table) {
    UNUSED;
    cot_var a = square_of(xs[0]);
    ys[0]     = cot_take(a, cot_argsort(a, 1, false), 1);
    return 0;
}
BODY(p_scatter_add) {
    UNUSED;
    ys[0] = cot_scatter_add(cot_square(xs[0]), order_of(cot_slice(xs[0], 0, 0, 3, 1)), cot_slice(xs[0], 0, 3, N, 1), 0);
    return 0;
}
BODY(p_scatter_rows) {
    UNUSED;
    cot_var a = square_of(xs[0]);
    cot_var first = cot_reshape(cot_repeat(cot_slice(a, 0, 0, 1, 1), 3, 0), COT_SHAPE(3, 3));
    ys[0]         = cot_scatter_add(cot_sin(a), cot_argmax(a, COT_AXES(0)), cot_mul(2.0, first), 0);
    return 0;
}
BODY(p_scatter) {
    UNUSED;
    ys[0] = cot_scatter(xs[0], order_of(cot_slice(xs[0], 0, 0, 2, 1)), cot_slice(xs[0], 0, 4, 6, 1), 0);
    return 0;
}
BODY(p_detached) {
    UNUSED;
    ys[0] = cot_take(xs[0], cot_cast(cot_mul(2.0, cot_abs(cot_detach(xs[0]))), COT_I64), 0);
    return 0;
}
BODY(p_where) {
    UNUSED;
    ys[0] = cot_where(cot_greater(xs[0], 0.0), cot_square(xs[0]), cot_roll(xs[0], 1, 0));
    return 0;
}
BODY(p_counted) {
    UNUSED;
    cot_var k = cot_sum(cot_cast(cot_greater(xs[0], 0.0), COT_I64), COT_ALL);
    ys[0]     = cot_take(cot_pad(xs[0], COT_SHAPE(0), COT_SHAPE(1), 1), k, 0);
    return 0;
}
BODY(p_in_scan_step) {
    UNUSED;
    ys[0] = cot_mul(cot_take(xs[0], order_of(xs[0]), 0), 0.9);
    return 0;
}
BODY(p_in_scan) {
    UNUSED;
    return cot_scan(p_in_scan_step, NULL, 2, 1, xs, 0, NULL, ys, 0, NULL, NULL);
}

/* Along x² at the places of x: x[i]² stands where x[i] is the largest. */
BODY(p_pool_along) {
    UNUSED;
    cot_var x = cot_reshape(xs[0], COT_SHAPE(1, 1, N)), y = cot_max_pool1d(x, COT_POOL(.window = {2}));
    ys[0] = cot_jvp(y, 1, &x, (cot_var[]){cot_square(x)});
    return 0;
}

static const sample positions[] = {
    {"sort", p_sort, N *N, 0},
    {"sort of rows", p_sort_rows, 18, 0},
    {"cummax", p_cummax, 18, 0},
    {"cummin", p_cummin, 12, 0},
    {"max_pool1d", p_pool, N, 0},
    {"max_pool1d, overlapping", p_pool_steps, 3 * N - 2, 0},
    {"max_pool2d", p_pool_2d, 8, 0},
    {"max_pool1d along a direction", p_pool_along, N, 0},
    {"take", p_take, N, 0},
    {"take of rows", p_take_rows, 12, 0},
    {"take of a table", p_take_table, 36, 0},
    {"scatter_add", p_scatter_add, N + 15, 0},
    {"scatter_add of rows", p_scatter_rows, 0, 0},
    {"scatter", p_scatter, 0, 0},
    {"positions from a detached value", p_detached, N *N, 0},
    {"where", p_where, 2 * N, 0},
    {"a position that is counted", p_counted, N, 0},
    {"positions in a scan", p_in_scan, N *N, 0},
};

/* Marks the operations with positions on the tape of this function and on that of its gradient. */
static void mark_operations(cot_fn f, bool *met) {
    cot_tape *t = cot_tape_create(NULL);
    summed    s = {f, NULL};
    double    at[N];
    for (int i = 0; i < N; i++) at[i] = sin(i + 1.);
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(N), at), y, g;
    if (sum_of_squares(1, &x, 1, &y, &s) == 0) cot_grad_of(y, 1, &x, &g);
    for (uint32_t i = 0; i < t->count; i++) met[t->nodes[i].op] = true;
    cot_tape_destroy(t);
}

static void positions_may_be_others_elsewhere(void **state) {
    (void)state;
    bool met[OP_count] = {false};
    for (int k = 0; k < TEST_COUNT(positions); k++) {
        mark_operations(positions[k].f, met);
        for (int stream = 0; stream < 4; stream++) {
            int64_t nnz[2];
            serve(positions[k].name, positions[k].f, NULL, true, stream, nnz);
            TEST_CHECK(!positions[k].nnz || nnz[0] == positions[k].nnz, "%s: %lld entries, not %lld", positions[k].name,
                       (long long)nnz[0], (long long)positions[k].nnz);
        }
    }
    for (int op = OP_structural; op < OP_count; op++) {
        const cot__op *o = cot__op_of(op);
        TEST_CHECK(!o || o->choice.from == COT__CHOOSES_NOTHING || met[op], "%s has positions, and no case here",
                   o->name);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_may_be_others_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
