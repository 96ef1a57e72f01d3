/* Plans as objects: every allocation fails once, files are cut, altered or inconsistent, and
 * threads share one plan. */
/* ctest: labels=threads timeout=300 */
#include "support/tape_test.h"

#include <pthread.h>

enum { N = 7, MOST = 64 };

static int sine(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sin(xs[0]);
    return 0;
}
static int halved(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(0.5, xs[0]);
    return 0;
}
static int sine_jvp(int n, const cot_var *xs, int m, const cot_var *ys, const cot_var *dxs, cot_var *dys, void *user) {
    (void)n, (void)m, (void)ys, (void)user;
    dys[0] = cot_mul(cot_cos(xs[0]), dxs[0]);
    return 0;
}
/* Bodies of every sort, all element by element. */
static int through_bodies(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    static const cot_fn_rules rules = {"sine", NULL, sine_jvp};
    cot_var                   y, z;
    if (cot_cond(cot_greater(cot_index(xs[0], 0, 0), 0.0), sine, halved, NULL, 1, xs, 1, &y)) return 1;
    return cot_custom_fn(&rules, sine, NULL, 1, &y, 1, &z) || cot_checkpoint(halved, user, 1, &z, 1, ys);
}

/* A function with a bit of every way in which a pattern is found: selections, sums, axes, slices in
 * place, scalars, bodies. */
static void record(cot_tape *t, double shift, cot_var *xs, cot_var *ys) {
    double at[N];
    for (int i = 0; i < N; i++) at[i] = 0.3 * i + shift;
    xs[0] = cot_tensor(t, COT_F64, COT_SHAPE(N), at);
    xs[1] = cot_scalar(t, 1.25 + shift);
    cot_var a = cot_mul(cot_slice(xs[0], 0, 0, N - 1, 1), cot_sin(cot_slice(xs[0], 0, 1, N, 1))),
            z = cot_pad(a, COT_SHAPE(0), COT_SHAPE(1), 0);
    cot_update_slice(&z, 0, 0, 1, 1, cot_mul(xs[1], cot_index(xs[0], 0, 2)));
    cot_scan(through_bodies, NULL, 2, 1, &z, 0, NULL, &z, 0, NULL, NULL);
    ys[0] = cot_scatter_add(z, cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 3}), cot_slice(xs[0], 0, 0, 2, 1), 0);
    ys[1] = cot_cumsum(cot_reshape(cot_slice(z, 0, 0, 4, 1), COT_SHAPE(2, 2)), 1, false);
}

static cot_var objective(cot_tape *t, const cot_var *ys) {
    (void)t;
    return cot_add(cot_sum(cot_square(ys[0]), COT_ALL), cot_sum(cot_exp(cot_mul(0.1, ys[1])), COT_ALL));
}

typedef struct answer {
    double jacobian[MOST], hessian[MOST];
    int    made; /* plans */
} answer;

static void program(cot_tape *t, answer *a) {
    cot_var xs[2], ys[2];
    record(t, 0.5, xs, ys);
    cot_var          y = objective(t, ys);
    cot_sparse_plan *j = cot_sparse_jacobian_plan(2, ys, 2, xs, COT_AUTO),
                    *r = cot_sparse_jacobian_plan(2, ys, 2, xs, COT_REVERSE), *h = cot_sparse_hessian_plan(y, 2, xs);
    a->made = (j != NULL) + (r != NULL) + (h != NULL);
    cot_sparse_jacobian(j, 2, ys, 2, xs, a->jacobian);
    cot_sparse_check(j, 2, ys, 2, xs, a->jacobian, 1);
    cot_sparse_hessian(h, y, 2, xs, a->hessian);
    cot_sparse_check(h, 1, &y, 2, xs, a->hessian, 1);
    FILE *f = tmpfile();
    if (j && f && cot_sparse_plan_save(j, f) == COT_OK) {
        rewind(f);
        cot_sparse_plan *again = cot_sparse_plan_load(t, f);
        a->made += again != NULL;
        cot_sparse_plan_destroy(again);
    }
    if (f) fclose(f);
    cot_sparse_plan_destroy(j);
    cot_sparse_plan_destroy(r);
    cot_sparse_plan_destroy(h);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Possible messages when one of our own requests for memory fails. */
static const char *const ours[] = {
    "[sparse_jacobian_plan] out of memory: the sparsity pattern",
    "[sparse_hessian_plan] out of memory: the sparsity pattern",
    "[sparse_jacobian_plan] out of memory: a plan for 2 outputs and 2 inputs",
    "[sparse_hessian_plan] out of memory: a plan for 2 outputs and 2 inputs",
    "[sparse_plan_load] out of memory: a plan of ",
};

static void every_allocation_may_fail(void **state) {
    (void)state;
    answer    want = {0};
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    bool      heard[sizeof ours / sizeof *ours] = {0};
    program(t, &want);
    assert_ok(t);
    assert_int_equal(want.made, 4);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
    long total = c.requests, step = test_small() ? 97 : 1;
    assert_true(total > 100);
    for (long n = 2; n <= total; n += step) {
        answer a = {0};
        c = (counting){.fail_at = n, .fail_for_good = true};
        t = counted_tape(&c, false);
        program(t, &a);
        if (cot_tape_status(t) != COT_MEMORY || !strstr(cot_tape_message(t), "] out of memory"))
            fail_msg("allocation %ld failing: %s", n, cot_tape_message(t));
        for (size_t k = 0; k < sizeof ours / sizeof *ours; k++)
            heard[k] |= strncmp(cot_tape_message(t), ours[k], strlen(ours[k])) == 0;
        c.fail_at = 0;
        c.fail_for_good = false;
        cot_tape_clear_error(t);
        memset(&a, 0, sizeof a);
        program(t, &a); /* the tape is as good as before */
        assert_ok(t);
        assert_memory_equal(&a, &want, sizeof want);
        cot_tape_destroy(t);
        if (c.live || c.blocks || c.wrong_size)
            fail_msg("allocation %ld failing: %zu bytes in %zu blocks leak", n, c.live, c.blocks);
    }
    for (size_t k = 0; k < sizeof ours / sizeof *ours && !test_small(); k++)
        if (!heard[k]) fail_msg("never heard: %s", ours[k]);
}

/* A request that is too large names its size: of each kind one that only we make. */
static void large_requests_are_named(void **state) {
    (void)state;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    enum { LARGE = 4000 };
    cot_var xs[LARGE], f = cot_constant(t, 0), more;
    double  values[LARGE + 2];
    for (int i = 0; i < LARGE; i++) xs[i] = cot_scalar(t, i), f = cot_add(f, cot_square(xs[i]));
    f = cot_add(f, cot_mul(xs[0], xs[1])); /* two colours */
    /* not between f64 scalars any more */
    more = cot_cast(cot_sum(cot_cast(cot_stack(LARGE, xs, 0), COT_F32), COT_ALL), COT_F64);
    cot_sparse_plan *p = cot_sparse_hessian_plan(f, LARGE, xs),
                    *j = cot_sparse_jacobian_plan(1, &f, LARGE, xs, COT_AUTO);
    assert_true(p && j);
    cot_tape_trim(t);
    more = cot_add(f, more);
    c.fail_from_size = LARGE * sizeof(cot_var);
    assert_int_equal(cot_sparse_hessian(p, more, LARGE, xs, values), COT_MEMORY);
    assert_error(t, COT_MEMORY, "[sparse_hessian] out of memory: 4000 gradients");
    cot_tape_clear_error(t);
    assert_int_equal(cot_sparse_hessian(p, f, LARGE, xs, values), COT_MEMORY);
    assert_error(t, COT_MEMORY, "[sparse_hessian] out of memory: 2 products of 192000 bytes in all");
    cot_tape_clear_error(t);
    assert_true(isnan(values[0]) && isnan(values[LARGE - 1]));
    c.fail_from_size = 300000; /* the products fit, tangents and adjoints of 12003 nodes do not */
    assert_int_equal(cot_sparse_hessian(p, f, LARGE, xs, values), COT_MEMORY);
    assert_error(t, COT_MEMORY, "[sparse_hessian] out of memory: 864216 bytes for the adjoints of the sweep");
    cot_tape_clear_error(t);
    c.fail_from_size = LARGE * sizeof(double);
    assert_int_equal(cot_sparse_check(j, 1, &f, LARGE, xs, values, 1), COT_MEMORY);
    assert_error(t, COT_MEMORY, "[sparse_check] out of memory: a direction of 4000 elements");
    cot_tape_clear_error(t);
    assert_int_equal(cot_sparse_jacobian(j, 1, &f, LARGE, xs, values), COT_MEMORY);
    assert_error(t, COT_MEMORY, "[sparse_jacobian] out of memory: 1 products of 32008 bytes in all");
    assert_true(isnan(values[0]) && isnan(values[LARGE - 1]));
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_destroy(j);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

/* In one piece, by which check_errors_listed.sh finds it. */
#define TOO_MANY_RULE                                                                                                  \
    " entries, here or on the way; where most entries can be other than zero, take the dense matrix in blocks "        \
    "(cot_jacobian, cot_hessian) or products (cot_vjp, cot_jvp, cot_hvp), or allow more (cot_sparse_plan_limit)"
#define TOO_MANY(op, shape, limit) "[" op "] the pattern of " shape " has more than " limit TOO_MANY_RULE

/* A dense pattern is refused before memory is taken for it, also one that is dense on the way only,
 * or found to be large row by row. */
static void a_plan_has_a_limit(void **state) {
    (void)state;
    enum { LARGE = 9000 };
    counting  c = {.fail_from_size = 4 << 20}; /* a matrix would take 324 MB at least */
    cot_tape *t = counted_tape(&c, false);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(LARGE), NULL), y = cot_softmax(x, 0),
            f = cot_square(cot_sum(x, COT_ALL));
    assert_null(cot_sparse_jacobian_plan(1, &y, 1, &x, COT_AUTO));
    assert_error(t, COT_LIMIT, TOO_MANY("sparse_jacobian_plan", "(9000,9000)", "67108864"));
    cot_tape_clear_error(t);
    assert_null(cot_sparse_hessian_plan(f, 1, &x));
    assert_error(t, COT_LIMIT, TOO_MANY("sparse_hessian_plan", "(9000,9000)", "67108864"));
    cot_tape_clear_error(t);
    cot_var part = cot_slice(x, 0, 0, 30, 1), few = cot_softmax(part, 0);
    cot_sparse_plan_limit(t, 900);
    cot_sparse_plan *p = cot_sparse_jacobian_plan(1, &few, 1, &part, COT_AUTO);
    assert_int_equal(cot_sparse_plan_info(p).nnz, 900);
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_limit(t, 899);
    assert_null(cot_sparse_jacobian_plan(1, &few, 1, &part, COT_AUTO));
    assert_error(t, COT_LIMIT, TOO_MANY("sparse_jacobian_plan", "(30,30)", "899"));
    cot_tape_clear_error(t);
    cot_var xs[30], running[30]; /* 1 + 2 + … + 30 entries */
    for (int k = 0; k < 30; k++) xs[k] = cot_scalar(t, k);
    for (int k = 0; k < 30; k++) running[k] = k ? cot_add(running[k - 1], xs[k]) : xs[k];
    cot_sparse_plan_limit(t, 464);
    assert_null(cot_sparse_jacobian_plan(30, running, 30, xs, COT_AUTO));
    assert_error(t, COT_LIMIT, TOO_MANY("sparse_jacobian_plan", "(30,30)", "464"));
    cot_tape_clear_error(t);
    cot_sparse_plan_limit(t, 100);
    /* on the way to 30 entries */
    assert_null(cot_sparse_jacobian_plan(1, &running[29], 30, xs, COT_AUTO));
    assert_error(t, COT_LIMIT, TOO_MANY("sparse_jacobian_plan", "(1,30)", "100"));
    cot_tape_clear_error(t);
    cot_sparse_plan_limit(t, 0);
    p = cot_sparse_jacobian_plan(30, running, 30, xs, COT_AUTO);
    assert_int_equal(cot_sparse_plan_info(p).nnz, 465);
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_limit(NULL, 1); /* harmless */
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

static int many(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)user;
    for (int k = 0; k < m; k++) ys[k] = xs[0];
    return 0;
}

static void a_list_of_outputs_may_fail(void **state) {
    (void)state;
    counting  c = {0};
    cot_tape *t = counted_tape(&c, false);
    cot_var   x = cot_scalar(t, 1);
    c.fail_from_size = 40000 * sizeof(cot_var);
    assert_null(cot_sparse_jacobian_plan_of(many, NULL, 1, &x, 40000, COT_AUTO));
    assert_error(t, COT_MEMORY, "[sparse_jacobian_plan_of] out of memory: 640016 bytes for shapes and attributes");
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct image {
    unsigned char bytes[4096];
    size_t        n;
} image;

static image image_of(const cot_sparse_plan *p) {
    image i;
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(cot_sparse_plan_save(p, f), COT_OK);
    rewind(f);
    i.n = fread(i.bytes, 1, sizeof i.bytes, f);
    assert_true(i.n > 0 && i.n < sizeof i.bytes);
    fclose(f);
    return i;
}

static cot_sparse_plan *load(cot_tape *t, const unsigned char *bytes, size_t n) {
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    rewind(f);
    cot_sparse_plan *p = cot_sparse_plan_load(t, f);
    fclose(f);
    return p;
}

/* Writes a right checksum for wrong contents, as a forged file would have. */
static void seal(image *i) {
    uint64_t sum = 0;
    for (size_t k = 0; k + 8 < i->n; k++) sum = (sum ^ i->bytes[k]) * UINT64_C(0x100000001b3);
    for (int k = 0; k < 8; k++) i->bytes[i->n - 8 + (size_t)k] = (unsigned char)(sum >> 8 * k);
}

static void set(image *i, size_t at, uint64_t v, int bytes) {
    for (int k = 0; k < bytes; k++) i->bytes[at + (size_t)k] = (unsigned char)(v >> 8 * k);
}

static void refused(cot_tape *t, image i, const char *why) {
    char text[256];
    seal(&i);
    assert_null(load(t, i.bytes, i.n));
    snprintf(text, sizeof text, "[sparse_plan_load] this file is not a plan: %s", why);
    assert_error(t, COT_VALUE, text);
    cot_tape_clear_error(t);
}

static cot_sparse_plan *some_plan(cot_tape *t, int which) {
    cot_var xs[2], ys[2];
    record(t, 0.5, xs, ys);
    return which == 2 ? cot_sparse_hessian_plan(objective(t, ys), 2, xs)
                      : cot_sparse_jacobian_plan(2, ys, 2, xs, which ? COT_REVERSE : COT_FORWARD);
}

static void a_loaded_plan_is_the_saved_one(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        cot_tape        *t = cot_tape_create(NULL);
        cot_sparse_plan *p = some_plan(t, which), *q;
        image            i = image_of(p);
        assert_non_null(q = load(t, i.bytes, i.n));
        cot_sparse_info a = cot_sparse_plan_info(p), b = cot_sparse_plan_info(q);
        assert_true(a.rows == b.rows && a.cols == b.cols && a.nnz == b.nnz && a.colours == b.colours &&
                    a.mode == b.mode && a.hessian == b.hessian);
        assert_memory_equal(a.row_start, b.row_start, (size_t)(a.rows + 1) * sizeof *a.row_start);
        assert_memory_equal(a.col, b.col, (size_t)a.nnz * sizeof *a.col);
        image again = image_of(q);
        assert_int_equal(i.n, again.n);
        assert_memory_equal(i.bytes, again.bytes, i.n);
        cot_var xs[2], ys[2];
        double  x[MOST], y[MOST];
        record(t, 0.9, xs, ys);
        for (int k = 0; k < 2; k++) {
            const cot_sparse_plan *use = k ? q : p;
            if (which == 2) cot_sparse_hessian(use, objective(t, ys), 2, xs, k ? y : x);
            else cot_sparse_jacobian(use, 2, ys, 2, xs, k ? y : x);
        }
        assert_ok(t);
        assert_memory_equal(x, y, (size_t)a.nnz * sizeof *x);
        cot_sparse_plan_destroy(p);
        cot_sparse_plan_destroy(q);
        cot_tape_destroy(t);
    }
}

static void files_cut_anywhere_are_refused(void **state) {
    (void)state;
    cot_tape        *t = cot_tape_create(NULL);
    cot_sparse_plan *p = some_plan(t, 0);
    image            i = image_of(p);
    for (size_t n = 0; n < i.n; n++) {
        assert_null(load(t, i.bytes, n));
        assert_error(t, COT_VALUE, n < 8 ? "[sparse_plan_load] this file is not a plan: it does not begin like one"
                                         : "[sparse_plan_load] this file is not a plan: it ends too early");
        cot_tape_clear_error(t);
    }
    cot_sparse_plan_destroy(p);
    cot_tape_destroy(t);
}

static void files_with_any_bit_turned_are_refused(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        counting         c = {0};
        cot_tape        *t = counted_tape(&c, false);
        cot_sparse_plan *p = some_plan(t, which);
        image            i = image_of(p);
        for (size_t at = 0; at < i.n; at++)
            for (int bit = 0; bit < 8; bit++) {
                if (test_small() && bit != (int)(at % 8)) continue;
                i.bytes[at] ^= (unsigned char)(1u << bit);
                assert_null(load(t, i.bytes, i.n));
                assert_int_equal(cot_tape_status(t), COT_VALUE);
                assert_memory_equal(cot_tape_message(t), "[sparse_plan_load] this file is not a plan: ", 44);
                cot_tape_clear_error(t);
                i.bytes[at] ^= (unsigned char)(1u << bit);
            }
        cot_sparse_plan_destroy(p);
        cot_tape_destroy(t);
        assert_int_equal(c.live, 0);
    }
}

/* Rows of one colour in two billion columns, of which few have entries: the file is small, and
 * loading it takes little memory. */
static void few_entries_in_many_columns_take_little_memory(void **state) {
    (void)state;
    /* of row 0, then of row 1 */
    static const uint64_t columns[3][4] = {{0, 7, 3, INT32_MAX - 1}, {7, 9, 8, 9}, {0, 2, 1, 0}};
    counting              c = {.fail_from_size = 100000};
    cot_tape             *t = counted_tape(&c, false);
    for (int k = 0; k < 3; k++) {
        image i = {.n = 48 + 4 * 2 + 4 * 4 + 4 * 2 + 8};
        memcpy(i.bytes, "COTPLAN1", 8);
        const uint64_t head[] = {0, 2, INT32_MAX, 4, 1};
        for (size_t h = 0; h < 5; h++) set(&i, 8 + 8 * h, head[h], 8);
        /* the last one has row 0: 0, 2, 1, out of order */
        set(&i, 48, k == 2 ? 3 : 2, 4), set(&i, 52, k == 2 ? 1 : 2, 4);
        for (size_t e = 0; e < 4; e++) set(&i, 56 + 4 * e, columns[k][e], 4);
        if (k > 0) {
            refused(t, i, k == 1 ? "its colours would mix entries" : "the columns of a row are out of range or order");
            continue;
        }
        seal(&i);
        cot_sparse_plan *p = load(t, i.bytes, i.n);
        assert_ok(t);
        assert_int_equal(cot_sparse_plan_info(p).cols, INT32_MAX);
        assert_int_equal(cot_sparse_plan_info(p).col[3], INT32_MAX - 1);
        cot_sparse_plan_destroy(p);
    }
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

/* Where things are: flags 8, rows 16, columns 24, entries 32, colours 40, then lengths of rows,
 * columns, colours. */
static void files_that_lie_are_refused(void **state) {
    (void)state;
    counting         c = {0};
    cot_tape        *t = counted_tape(&c, false);
    cot_sparse_plan *p = some_plan(t, 0), *h = some_plan(t, 2);
    cot_sparse_info  info = cot_sparse_plan_info(p);
    image            i = image_of(p), lie;
    size_t           rows = 48, cols = rows + 4 * (size_t)info.rows, colours = cols + 4 * (size_t)info.nnz;
    lie = i, set(&lie, 8, 4, 8), refused(t, lie, "its sizes are impossible");
    /* a Hessian that is not square */
    lie = i, set(&lie, 8, 3, 8), refused(t, lie, "its sizes are impossible");
    lie = i, set(&lie, 16, UINT64_C(1) << 31, 8), refused(t, lie, "its sizes are impossible");
    lie = i, set(&lie, 24, UINT64_MAX, 8), refused(t, lie, "its sizes are impossible");
    lie = i, set(&lie, 32, UINT64_C(1) << 40, 8), refused(t, lie, "its sizes are impossible");
    lie = i, set(&lie, 40, (uint64_t)info.cols + 1, 8), refused(t, lie, "its sizes are impossible");
    /* and no eight gigabytes are asked for */
    lie = i, set(&lie, 16, INT32_MAX, 8), refused(t, lie, "it ends too early");
    lie = i, set(&lie, rows, 1000, 4), refused(t, lie, "its rows have more entries than it has");
    lie = i, set(&lie, rows, UINT32_MAX, 4), refused(t, lie, "its rows have more entries than it has");
    lie = i, set(&lie, rows + 4 * (size_t)(info.rows - 1), 0, 4),
    refused(t, lie, "its rows have fewer entries than it has");
    lie = i, set(&lie, cols, (uint64_t)info.cols, 4), refused(t, lie, "the columns of a row are out of range or order");
    assert_true(info.row_start[1] >= 2);
    lie = i, set(&lie, cols + 4, (uint64_t)info.col[0], 4),
    refused(t, lie, "the columns of a row are out of range or order");
    lie = i, set(&lie, colours, (uint64_t)info.colours, 4), refused(t, lie, "a colour is out of range");
    lie = i, set(&lie, colours + 4 * (size_t)info.col[0], 0, 4), set(&lie, colours + 4 * (size_t)info.col[1], 0, 4),
    refused(t, lie, "its colours would mix entries");
    lie = i, set(&lie, 40, 0, 8), refused(t, lie, "a colour is out of range");
    /* Hessians: not symmetric, and colours that no half can be read with */
    info = cot_sparse_plan_info(h);
    i = image_of(h);
    cols = rows + 4 * (size_t)info.rows, colours = cols + 4 * (size_t)info.nnz;
    lie = i;
    for (int k = 0; k < info.cols; k++) set(&lie, colours + 4 * (size_t)k, 0, 4);
    refused(t, lie, "its colours would mix entries");
    image two = {.n = 48 + 4 * 2 + 4 * 1 + 4 * 2 + 8}; /* a single entry, beside the diagonal */
    memcpy(two.bytes, i.bytes, 8);
    static const uint64_t head[] = {3, 2, 2, 1, 2};
    for (size_t k = 0; k < 5; k++) set(&two, 8 + 8 * k, head[k], 8);
    set(&two, 48, 1, 4), set(&two, 52, 0, 4), set(&two, 56, 1, 4), set(&two, 60, 0, 4), set(&two, 64, 1, 4);
    refused(t, two, "its colours would mix entries");
    /* the checksum itself */
    lie = i, lie.bytes[lie.n - 1] ^= 1;
    assert_null(load(t, lie.bytes, lie.n));
    assert_error(t, COT_VALUE, "[sparse_plan_load] this file is not a plan: its checksum does not fit: it was altered");
    cot_tape_clear_error(t);
    assert_null(cot_sparse_plan_load(t, NULL));
    assert_error(t, COT_VALUE, "[sparse_plan_load] the file is NULL");
    assert_null(cot_sparse_plan_load(t, stdin)); /* the error stands: nothing is read */
    assert_null(cot_sparse_plan_load(NULL, stdin));
    assert_int_equal(cot_sparse_plan_save(NULL, stdout), COT_VALUE);
    assert_int_equal(cot_sparse_plan_save(p, NULL), COT_VALUE);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(cot_sparse_plan_save(p, full), COT_VALUE);
        fclose(full);
    }
    cot_sparse_plan_destroy(p);
    cot_sparse_plan_destroy(h);
    cot_tape_destroy(t);
    assert_int_equal(c.live, 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct job {
    const cot_sparse_plan *j, *h;
    double                 jacobian[MOST], hessian[MOST];
    bool                   fine;
} job;

static void *evaluate(void *arg) {
    job *mine = arg;
    mine->fine = true;
    for (int round = 0; round < 50; round++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   xs[2], ys[2];
        record(t, 0.25, xs, ys);
        mine->fine &= cot_sparse_jacobian(mine->j, 2, ys, 2, xs, mine->jacobian) == COT_OK;
        mine->fine &= cot_sparse_hessian(mine->h, objective(t, ys), 2, xs, mine->hessian) == COT_OK;
        cot_tape_destroy(t);
    }
    return NULL;
}

static void threads_share_a_plan(void **state) {
    (void)state;
    enum { THREADS = 6 };
    static job       jobs[THREADS + 1];
    pthread_t        thread[THREADS];
    cot_tape        *t = cot_tape_create(NULL);
    cot_sparse_plan *j = some_plan(t, 0), *h = some_plan(t, 2);
    cot_tape_destroy(t);
    assert_true(j && h);
    for (int k = 0; k <= THREADS; k++) jobs[k] = (job){.j = j, .h = h};
    evaluate(&jobs[THREADS]);
    for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_create(&thread[k], NULL, evaluate, &jobs[k]), 0);
    for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
    for (int k = 0; k <= THREADS; k++) {
        assert_true(jobs[k].fine);
        assert_memory_equal(jobs[k].jacobian, jobs[THREADS].jacobian, sizeof jobs[k].jacobian);
        assert_memory_equal(jobs[k].hessian, jobs[THREADS].hessian, sizeof jobs[k].hessian);
    }
    cot_sparse_plan_destroy(j);
    cot_sparse_plan_destroy(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(large_requests_are_named),
        cmocka_unit_test(a_plan_has_a_limit),
        cmocka_unit_test(a_list_of_outputs_may_fail),
        cmocka_unit_test(a_loaded_plan_is_the_saved_one),
        cmocka_unit_test(files_cut_anywhere_are_refused),
        cmocka_unit_test(files_with_any_bit_turned_are_refused),
        cmocka_unit_test(few_entries_in_many_columns_take_little_memory),
        cmocka_unit_test(files_that_lie_are_refused),
        cmocka_unit_test(threads_share_a_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
