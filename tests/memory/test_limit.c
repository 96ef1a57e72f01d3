/* Under a memory limit values and gradients have the same bits, and the limit holds; where it
 * cannot, one sentence says what was needed. */
#include "memory/memory.h"
#include "backend/cpu/table/cpu.h"
#include "support/tape_test.h"
#include "memory/models.h"

/* ---- the same bits, within the limit --------------------------------------------------------- */

typedef struct run {
    counting  c;
    size_t    most, least; /* of the allocator: the most in use, and before anything was recorded */
    int64_t   peak, replayed;
    cot_status status;
    char      message[512];
    double    numbers[MODEL_NUMBERS];
} run;

static void *watched_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    run  *r = user;
    void *p = counting_alloc(&r->c, ptr, old_size, new_size);
    if (r->c.live > r->most) r->most = r->c.live;
    return p;
}

static void run_under(model *m, int64_t limit, run *r) {
    memset(r, 0, sizeof *r);
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {watched_alloc, r}, .memory_limit = limit});
    r->least = r->c.live;
    model_run(m, t, r->numbers);
    r->peak = cot_tape_peak_bytes(t);
    r->replayed = t->memory.replayed;
    r->status = cot_tape_status(t);
    snprintf(r->message, sizeof r->message, "%s", cot_tape_message(t));
    cot_tape_destroy(t);
    assert_int_equal(r->c.live, 0);
}

static void same_bits_at(model *m, const char *name, int n, const int *percents) {
    run whole, less;
    run_under(m, 0, &whole);
    if (whole.status != COT_OK) fail_msg("%s: %s", name, whole.message);
    for (int k = 0; k < n; k++) {
        int64_t limit = whole.peak * percents[k] / 100;
        run_under(m, limit, &less);
        if (getenv("COT_TEST_TELL"))
            fprintf(stderr, "%s at %3d %%: limit %lld, peak %lld, %lld operations again: %s\n", name, percents[k],
                    (long long)limit, (long long)less.peak, (long long)less.replayed, less.message);
        if (less.status != COT_OK) fail_msg("%s at %d %%: %s", name, percents[k], less.message);
        assert_memory_equal(less.numbers, whole.numbers, sizeof whole.numbers);
        assert_true(less.peak <= limit);
        if (percents[k] <= 50) assert_true(less.replayed > 0);
    }
}

static const int percents[4] = {100, 50, 30, 20};

static void a_deep_stack_has_the_same_gradients(void **state) {
    (void)state;
    same_bits_at(deep_stack, "deep stack", 4, percents);
}
static void a_convolutional_net_has_the_same_gradients(void **state) {
    (void)state;
    same_bits_at(convolutions, "16 convolutions", 4, percents);
}
static void a_transformer_has_the_same_gradients(void **state) {
    (void)state;
    same_bits_at(transformer, "12 blocks", 4, percents);
}

/* ---- the smallest limit that is told --------------------------------------------------------- */

static model wide[1] = {{wide_net, COT_F32, {2, {128, 64}}}}, graph[1] = {{graph_net, COT_F32, {2, {256, 32}}}};

/* What cot_tape_memory says of a step, before its way back. */
static int64_t least_of(model *m) {
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = model_input(t, m);
    cot_memory  told;
    cot_params_init(p, m->net, x, cot_key_of(3));
    cot_params_set_key(p, cot_key_of(0));
    cot_mean(cot_square(m->net(p, x)), COT_ALL);
    assert_int_equal(cot_tape_memory(t, &told, NULL), COT_OK);
    cot_params_destroy(p);
    cot_tape_destroy(t);
    return told.least;
}

/* A limit that is possible, found by halving, and at most `least`. */
static int64_t smallest_found(model *m, int64_t least) {
    int64_t low = 0, high = least; /* `low` is not possible */
    while (high - low > least / 20) {
        run     r;
        int64_t mid = (low + high) / 2;
        run_under(m, mid, &r);
        if (r.status == COT_OK) high = mid;
        else low = mid;
    }
    return high;
}

/* It is never above the peak, and near to the smallest that is possible. */
static void holds_at_least(model *m, const char *name) {
    run     whole, less;
    int64_t least = least_of(m), possible = smallest_found(m, least);
    run_under(m, 0, &whole);
    run_under(m, least, &less);
    if (getenv("COT_TEST_TELL"))
        fprintf(stderr, "%s: peak %lld, least %lld, possible %lld: %s\n", name, (long long)whole.peak,
                (long long)least, (long long)possible, less.message);
    if (less.status != COT_OK) fail_msg("%s at %lld: %s", name, (long long)least, less.message);
    assert_memory_equal(less.numbers, whole.numbers, sizeof whole.numbers);
    assert_true(less.peak <= least);
    assert_true(least <= whole.peak);
    assert_true(least <= 1.2 * (double)possible);
}

static void the_least_that_is_told_is_enough(void **state) {
    (void)state;
    holds_at_least(wide, "wide layers");
    holds_at_least(convolutions, "16 convolutions");
    holds_at_least(graph, "graph");
    holds_at_least(deep_stack, "deep stack");
    holds_at_least(transformer, "12 blocks");
}

/* A limit that makes a chain be computed again and again is given up after its share, and another
 * is told that is enough. */
static cot_var long_chain(cot_tape *t) {
    cot_var x = cot_tensor(t, COT_F32, COT_SHAPE(64, 64), NULL), h = x;
    for (int k = 0; k < 170; k++) h = cot_tanh(cot_add(cot_mul(h, 0.5), x));
    return cot_sum(h, COT_ALL);
}
static void a_long_chain_is_not_rehearsed_for_long(void **state) {
    (void)state;
    cot_tape      *t = cot_tape_create(NULL);
    cot_memory     told;
    uint32_t       y = cot__index(long_chain(t));
    cot__rehearsal tight = {.limit = 300000, .most_looks = 1 << 21}, easy = {.limit = 4000000, .most_looks = 1 << 21};
    assert_false(cot__rehearse(t, y, &tight));
    assert_false(tight.failed);
    assert_in_range(tight.looks, tight.most_looks, tight.most_looks + tight.most_looks / 64);
    assert_true(cot__rehearse(t, y, &easy));
    assert_true(easy.looks > 0 && easy.looks < easy.most_looks);
    assert_int_equal(cot_tape_memory(t, &told, NULL), COT_OK);
    cot_tape_destroy(t);
    assert_true(told.least > (int64_t)tight.limit && told.least < 4000000);
    t = cot_tape_create(&(cot_options){.memory_limit = told.least});
    assert_int_equal(cot_backward(long_chain(t)), COT_OK);
    cot_tape_destroy(t);
}

/* Under a limit scopes free nothing, so it must hold what they let go without one. */
enum { EDGE = 128 };
static cot_var one_large(cot_var x) {
    cot_var a = cot_add(x, 1.0), b = cot_concat(4, (cot_var[]){a, a, a, a}, 0), c = cot_add(b, 2.0);
    return cot_sum(cot_mul(cot_slice(c, 0, 0, EDGE, 1), 3.0), COT_ALL);
}
static cot_var transposes(cot_var x) {
    cot_var h = x;
    for (int k = 0; k < 6; k++) h = cot_add(cot_permute(h, COT_AXES(1, 0)), cot_matmul(h, x));
    return cot_sum(h, COT_ALL);
}
static int doubled(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)k, (void)n, (void)user;
    ys[0] = cot_mul(xs[0], 2.0);
    return 0;
}
static cot_var with_a_body(cot_var x) { /* it is estimated */
    cot_var y = x;
    cot_checkpoint_sequential(doubled, NULL, 1, 1, 1, &x, &y);
    return cot_add(one_large(x), cot_sum(y, COT_ALL));
}
static cot_var in_a_scope(cot_tape *t, cot_var (*f)(cot_var)) {
    cot_var x = cot_tensor(t, COT_F32, COT_SHAPE(EDGE, EDGE), NULL);
    cot_scope_open(t, "s");
    cot_var y = f(x);
    cot_scope_close(t, 1, &y);
    return y;
}
static void the_least_of_scopes_is_enough(void **state) {
    (void)state;
    cot_var (*const all[])(cot_var) = {one_large, transposes, with_a_body};
    for (int k = 0; k < COUNTOF(all); k++) {
        cot_memory told;
        cot_tape  *t = cot_tape_create(NULL);
        in_a_scope(t, all[k]);
        assert_int_equal(cot_tape_memory(t, &told, NULL), COT_OK);
        cot_tape_destroy(t);
        t = cot_tape_create(&(cot_options){.memory_limit = told.least});
        if (cot_backward(in_a_scope(t, all[k])) != COT_OK) fail_msg("%d: %s", k, cot_tape_message(t));
        cot_tape_destroy(t);
    }
}

/* Its products of bf16 need less memory on their way. */
static void the_least_of_a_fast_tape_is_its_own(void **state) {
    (void)state;
    cot_memory told[2];
    for (int fast = 0; fast < 2; fast++) {
        cot_tape *t = cot_tape_create(&(cot_options){.fast = fast});
        cot_var   x = cot_tensor(t, COT_BF16, COT_SHAPE(256, 256), NULL), h = x;
        for (int k = 0; k < 3; k++) h = cot_matmul(h, x);
        cot_var y = cot_sum(h, COT_ALL);
        assert_int_equal(cot_tape_memory(t, &told[fast], NULL), COT_OK);
        assert_int_equal(cot_backward(y), COT_OK);
        assert_true(told[fast].least <= cot_tape_peak_bytes(t));
        cot_tape_destroy(t);
    }
    if (cot__cpu_backend.fast) assert_true(told[1].least < told[0].least);
}

/* Where no limit may be set, none is told. */
static void packed_values_have_no_least(void **state) {
    (void)state;
    cot_tape  *t = cot_tape_create(NULL);
    cot_memory told;
    cot_tape_set_precision(t, (cot_precision){.saved = COT_BF16});
    in_a_scope(t, transposes);
    char  text[2048];
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(cot_tape_memory(t, &told, file), COT_OK);
    assert_int_equal(told.least, 0);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_non_null(strstr(text, "there can be no memory limit: values are kept as bf16\n"));
    assert_null(strstr(text, "is enough"));
    cot_tape_destroy(t);
}

static void reporting_program(cot_tape *t, void *user) {
    cot_var    x = cot_tensor(t, COT_F64, COT_SHAPE(4, 4), NULL);
    cot_memory told;
    (void)user;
    for (int k = 1; k < 20; k++) x = cot_tanh(x);
    if (cot_tape_memory(t, &told, NULL) == COT_OK) assert_true(told.least > 0);
    else assert_int_equal(told.least, 0);
}

static void a_report_may_lack_memory(void **state) {
    (void)state;
    const char *const said[] = {"[tape_memory] out of memory: 20 operations to look at"};
    assert_survives_no_memory(reporting_program, NULL, 1, said);
}

/* ---- the limit itself ------------------------------------------------------------------------ */

enum { SIDE = 64, BYTES = SIDE * SIDE * 8 };

/* k squares of sums: each value is read by the next alone. */
static cot_var chain(cot_var x, int k) {
    for (int i = 0; i < k; i++) x = cot_tanh(cot_add(cot_matmul(x, x), 1.0 / SIDE));
    return x;
}

static cot_var square_matrix(cot_tape *t) {
    static double numbers[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) numbers[i] = (double)((i * 7919) % 1009) / 1009 / SIDE;
    return cot_data(t, COT_F64, COT_SHAPE(SIDE, SIDE), numbers);
}

/* What the system was asked for, not only what is in use, stays within the limit. */
static void the_allocator_never_sees_more(void **state) {
    (void)state;
    enum { LIMIT = 8 * BYTES + 200000 };
    static run r;
    memset(&r, 0, sizeof r);
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {watched_alloc, &r}, .memory_limit = LIMIT});
    size_t    before = r.c.live;
    cot_var   y = chain(square_matrix(t), 100);
    double    sum = cot_value(cot_sum(y, COT_ALL));
    assert_ok(t);
    assert_true(sum > 0);
    assert_true(r.most - before <= LIMIT);
    assert_true(cot_tape_peak_bytes(t) <= LIMIT);
    cot_tape_destroy(t);
    assert_false(r.c.wrong_size);
}

/* So many values that several are let go at once. */
static void a_long_tape_has_the_same_gradients(void **state) {
    enum { LAYERS = 2000, SIZE = 512 };
    (void)state;
    double  x[SIZE], g[2][SIZE];
    int64_t peak = 0;
    for (int k = 0; k < SIZE; k++) x[k] = 0.001 * k;
    for (int percent = 100; percent >= 20; percent -= percent > 60 ? 50 : 15) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = peak * percent / 100});
        cot_var   v = cot_tensor(t, COT_F64, COT_SHAPE(SIZE), x), h = v;
        for (int k = 0; k < LAYERS; k++) h = cot_tanh(cot_mul(h, 1.01));
        cot_backward(cot_sum(h, COT_ALL));
        cot_read_grad(v, g[percent < 100], SIZE);
        assert_ok(t);
        assert_true(!peak || cot_tape_peak_bytes(t) <= peak * percent / 100);
        assert_true(t->memory.replayed < 8 * LAYERS); /* chains of what was let go stay short */
        if (percent == 100) peak = cot_tape_peak_bytes(t);
        else assert_memory_equal(g[0], g[1], sizeof g[0]);
        cot_tape_destroy(t);
    }
}

static void old_values_can_be_read_in_any_order(void **state) {
    (void)state;
    enum { N = 40 };
    static double whole[N][SIDE * SIDE], part[SIDE * SIDE];
    for (int limited = 0; limited < 2; limited++) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limited ? 16 * BYTES + 200000 : 0});
        cot_var   v[N];
        v[0] = square_matrix(t);
        for (int i = 1; i < N; i++) v[i] = cot_tanh(cot_add(cot_matmul(v[i - 1], v[0]), cot_transpose(v[i - 1])));
        for (int k = 0; k < N; k++) {
            int i = (k * 23 + 7) % N;
            cot_read(v[i], limited ? part : whole[i], SIDE * SIDE);
            assert_ok(t);
            if (limited) assert_memory_equal(part, whole[i], sizeof part);
        }
        assert_ok(t);
        if (limited) assert_true(t->memory.replayed > N);
        cot_tape_destroy(t);
    }
}

/* ---- gradients do not count ------------------------------------------------------------------ */

enum { ROWS = 256, COLUMNS = 512, GRADIENT = ROWS * COLUMNS * 8, FEW = 4 };

/* Each has a leaf of a megabyte, and values that are much smaller. */
static cot_var by_matmul(cot_var w, cot_var x) { return cot_tanh(cot_matmul(x, w)); }
static cot_var by_take(cot_var w, cot_var x) {
    cot_var rows = cot_data(cot_tape_of(x), COT_I64, COT_SHAPE(3), (int64_t[]){7, 1, 7});
    return cot_tanh(cot_take(w, rows, 0));
}
/* The product's rule comes first on the way back: what the other gives is added in place. */
static cot_var by_two(cot_var w, cot_var x) {
    cot_var rows = by_take(w, x);
    return cot_add(rows, cot_sum(by_matmul(w, x), COT_AXES(0)));
}
/* The adjoint of the sum is that of the leaf, a part of it that of a value. */
static cot_var by_a_sum(cot_var w, cot_var x) {
    cot_var h = cot_tanh(x), twice = cot_concat(2, (cot_var[]){h, h}, 1);
    return cot_add(cot_slice(w, 0, 0, FEW, 1), twice);
}

typedef cot_var with_leaf(cot_var w, cot_var x);

static void gradient_under(with_leaf *f, int64_t limit, double *grad) {
    static double numbers[ROWS * COLUMNS];
    for (int k = 0; k < ROWS * COLUMNS; k++) numbers[k] = (double)(k * 7919 % 1009) / 1009 - 0.5;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limit});
    cot_var   w = cot_tensor(t, COT_F64, COT_SHAPE(ROWS, COLUMNS), numbers);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(FEW, ROWS), numbers);
    size_t    aside = t->cache.aside;
    cot_mark  start = cot_tape_mark(t);
    cot_backward(cot_sum(f(w, x), COT_ALL));
    cot_read_grad(w, grad, ROWS * COLUMNS);
    assert_ok(t);
    assert_true(cot_tape_peak_bytes(t) < GRADIENT / 2);
    assert_true(t->cache.aside >= aside + GRADIENT);
    cot_tape_zero_grads(t);
    cot_tape_rewind(t, start);
    assert_int_equal(t->cache.aside, aside);
    cot_tape_destroy(t);
}

static void a_gradient_may_be_larger_than_the_limit(void **state) {
    (void)state;
    static double     whole[ROWS * COLUMNS], less[ROWS * COLUMNS];
    with_leaf *const  all[] = {by_matmul, by_take, by_two, by_a_sum};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        gradient_under(all[k], 0, whole);
        gradient_under(all[k], GRADIENT / 2, less);
        assert_memory_equal(whole, less, sizeof whole);
    }
}

/* What two leaves and a value have in common counts until it is the leaves' alone. */
static void a_shared_adjoint_counts_while_others_have_it(void **state) {
    (void)state;
    double grad[2][SIDE * SIDE];
    for (int limited = 0; limited < 2; limited++) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limited ? 16 * BYTES + 100000 : 0});
        cot_var   x = square_matrix(t), a = cot_tensor(t, COT_F64, COT_SHAPE(SIDE, SIDE), NULL);
        cot_var   b = cot_tensor(t, COT_F64, COT_SHAPE(SIDE, SIDE), NULL), h = cot_add(x, a);
        size_t    aside = t->cache.aside;
        for (int k = 0; k < 8; k++) h = cot_add(cot_tanh(cot_matmul(h, cot_add(h, b))), cot_add(a, b));
        cot_backward(cot_sum(cot_add(cot_add(a, h), b), COT_ALL));
        cot_read_grad(a, grad[limited], SIDE * SIDE);
        assert_ok(t);
        assert_true(!limited || cot_tape_peak_bytes(t) <= 16 * BYTES + 100000);
        assert_true(t->cache.aside >= aside + 2 * BYTES && t->cache.aside < aside + 3 * BYTES);
        cot_tape_destroy(t);
    }
    assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static void too_small_a_limit_says_what_was_needed(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = 3 * BYTES + 100000});
    cot_var   x = square_matrix(t), y = cot_transpose(x);
    cot_concat(9, (cot_var[]){x, y, x, y, x, y, x, y, x}, 0);
    assert_int_equal(cot_tape_status(t), COT_MEMORY);
    assert_non_null(strstr(cot_tape_message(t), "[concat] out of memory: 294912 bytes for a tensor; the memory "
                                                "limit is 198304 bytes, and "));
    assert_non_null(strstr(cot_tape_message(t), " are in use that cannot be dropped now"));
    cot_tape_destroy(t);
}

/* One value at a time. */
static void a_tape_may_be_looked_at_under_its_limit(void **state) {
    (void)state;
    enum { N = 2000, MANY = 60, LIMIT = 300000 };
    static double data[N];
    cot_tape     *t = cot_tape_create(&(cot_options){.memory_limit = LIMIT});
    FILE         *nowhere = fopen("/dev/null", "w");
    char          why[256];
    for (int i = 0; i < N; i++) data[i] = 0.001 * i;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(N), data), h = x;
    for (int k = 0; k < MANY; k++) h = cot_sin(cot_mul(h, 1.3));
    cot_var y = cot_sum(h, COT_ALL);
    assert_int_equal(cot_backward(y), COT_OK);
    cot_tape_print(t, nowhere);
    assert_string_equal(cot_tape_message(t), "");
    assert_int_equal(cot_tape_check(t, why, sizeof why), COT_OK);
    assert_string_equal(cot_tape_message(t), "");
    assert_int_equal(cot_backward(y), COT_OK);
    assert_true(cot_tape_peak_bytes(t) <= LIMIT + 2 * (int64_t)sizeof data);
    fclose(nowhere);
    cot_tape_destroy(t);
}

static void limits_that_are_none_are_refused(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = -5});
    assert_error(t, COT_VALUE, "[tape_create] a memory limit of -5 bytes; it must not be negative");
    cot_tape_destroy(t);
    t = cot_tape_create(NULL);
    assert_int_equal(cot_tape_set_memory_limit(t, -1), COT_VALUE);
    assert_error(t, COT_VALUE, "[tape_set_memory_limit] a limit of -1 bytes; it must not be negative");
    cot_tape_clear_error(t);
    cot_var x = square_matrix(t);
    assert_int_equal(cot_tape_set_memory_limit(t, 1000), COT_MEMORY);
    assert_non_null(strstr(cot_tape_message(t), "[tape_set_memory_limit] a limit of 1000 bytes, but "));
    cot_tape_clear_error(t);
    assert_int_equal(cot_tape_memory_limit(t), 0);
    assert_int_equal(cot_tape_set_memory_limit(t, 10 * BYTES), COT_OK);
    assert_int_equal(cot_tape_memory_limit(t), 10 * BYTES);
    chain(x, 50);
    assert_ok(t);
    assert_int_equal(cot_tape_set_memory_limit(t, 0), COT_OK);
    /* dropped values are still made again */
    assert_true(cot_value(cot_sum(chain(x, 3), COT_ALL)) > 0);
    assert_ok(t);
    assert_int_equal(cot_tape_set_memory_limit(NULL, 5), COT_MEMORY);
    assert_int_equal(cot_tape_memory_limit(NULL), 0);
    cot_tape_destroy(t);
}

static int64_t limit_from(const char *text, char *message) {
    setenv("COTANGENT_MEMORY_LIMIT", text, 1);
    cot_tape *t = cot_tape_create(NULL);
    int64_t   limit = cot_tape_memory_limit(t);
    snprintf(message, 256, "%s", cot_tape_message(t));
    cot_tape_destroy(t);
    unsetenv("COTANGENT_MEMORY_LIMIT");
    return limit;
}

static void the_environment_sets_the_limit(void **state) {
    (void)state;
    char said[256];
    assert_int_equal(limit_from("300000", said), 300000);
    assert_int_equal(limit_from("64 KiB", said), 65536);
    assert_int_equal(limit_from("1.5GiB", said), 1610612736);
    assert_int_equal(limit_from("2MiB", said), 2097152);
    assert_int_equal(limit_from("2 TiB", said), 2199023255552);
    assert_int_equal(limit_from("70000 B", said), 70000);
    assert_int_equal(limit_from("1", said), 1);
    assert_int_equal(limit_from("0.001 KiB", said), 1);
    assert_int_equal(limit_from("0", said), 0);
    assert_int_equal(limit_from("", said), 0);
    assert_string_equal(said, "");
    const char *const bad[] = {"much", "3 MB", "-1", "nan", "1e300", "1e9 TiB", "5 KiB ", "0.5", "0.0001 KiB"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        char whole[256];
        assert_int_equal(limit_from(bad[k], said), 0);
        snprintf(whole, sizeof whole,
                 "[tape_create] COTANGENT_MEMORY_LIMIT is \"%s\"; it must be a number of bytes, or of KiB, MiB, GiB "
                 "or TiB: 1 byte at least, or 0 for no limit",
                 bad[k]);
        assert_string_equal(said, whole);
    }
}

/* The smallest limit that the header names holds a small net. */
static void a_limit_of_64_kib_holds_tensors(void **state) {
    (void)state;
    double grad[2][256], start[256];
    for (int i = 0; i < 256; i++) start[i] = (double)(i * 37 % 256) / 4096;
    for (int limited = 0; limited < 2; limited++) {
        cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limited ? 65536 : 0});
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(16, 16), start), h = x;
        for (int i = 0; i < 20; i++) h = cot_tanh(cot_matmul(h, cot_add(x, 1.0)));
        cot_backward(cot_sum(h, COT_ALL));
        cot_read_grad(x, grad[limited], 256);
        assert_ok(t);
        assert_true(limited ? cot_tape_peak_bytes(t) <= 65536 : cot_tape_peak_bytes(t) > 65536);
        cot_tape_destroy(t);
    }
    assert_memory_equal(grad[0], grad[1], sizeof grad[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deep_stack_has_the_same_gradients),
        cmocka_unit_test(a_convolutional_net_has_the_same_gradients),
        cmocka_unit_test(a_transformer_has_the_same_gradients),
        cmocka_unit_test(the_least_that_is_told_is_enough),
        cmocka_unit_test(a_long_chain_is_not_rehearsed_for_long),
        cmocka_unit_test(the_least_of_scopes_is_enough),
        cmocka_unit_test(the_least_of_a_fast_tape_is_its_own),
        cmocka_unit_test(packed_values_have_no_least),
        cmocka_unit_test(a_report_may_lack_memory),
        cmocka_unit_test(the_allocator_never_sees_more),
        cmocka_unit_test(a_long_tape_has_the_same_gradients),
        cmocka_unit_test(old_values_can_be_read_in_any_order),
        cmocka_unit_test(a_gradient_may_be_larger_than_the_limit),
        cmocka_unit_test(a_shared_adjoint_counts_while_others_have_it),
        cmocka_unit_test(too_small_a_limit_says_what_was_needed),
        cmocka_unit_test(a_tape_may_be_looked_at_under_its_limit),
        cmocka_unit_test(limits_that_are_none_are_refused),
        cmocka_unit_test(the_environment_sets_the_limit),
        cmocka_unit_test(a_limit_of_64_kib_holds_tensors),
    };
    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
