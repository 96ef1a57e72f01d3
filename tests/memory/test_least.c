/* The limit that cot_tape_memory names is enough for small nets too, where lists weigh as much as
 * values: so are those above it, and it is near to the smallest that is. */
#include "memory/memory.h"
#include "support/tape_test.h"

#include <stdlib.h>
#include <string.h>

typedef cot_var net(cot_var x);

static cot_var squares(cot_var x) { return cot_mul(x, x); }
static cot_var waves(cot_var x) { return cot_add(cot_mul(cot_sin(x), cot_exp(x)), x); }
static cot_var layers(cot_var x) {
    for (int k = 0; k < 3; k++) x = cot_tanh(cot_matmul(x, x));
    return x;
}
static cot_var attended(cot_var x) { return cot_matmul(cot_softmax(cot_matmul(x, x), 1), x); }
static cot_var sorted(cot_var x) { return cot_sort(cot_cumsum(cot_softmax(x, 1), 0, false), 1, false); }
static cot_var folded(cot_var x) { return cot_logsumexp(cot_matmul(x, x), COT_AXES(1)); }
/* To make one value again takes many that are read in other places, too. */
static cot_var skipping(cot_var x) {
    cot_var h = x, kept[64];
    for (int k = 0; k < 64; k++) kept[k] = x;
    for (int k = 0; k < 60; k++) kept[2 * k / 3 % 64] = h = cot_softmax(cot_matmul(h, kept[(62 * k + 31) % 64]), 1);
    return h;
}
static cot_var written(cot_var x) {
    cot_var y = cot_mul(x, 1.0);
    for (int k = 0; k < 4; k++) {
        cot_add_into(&y, cot_mul(0.1, x));
        y = cot_sin(y);
    }
    return y;
}
static cot_var solved(cot_var x) {
    int64_t n = cot_shape_of(x).dim[0];
    cot_var one = cot_eye(cot_tape_of(x), COT_F64, n, n);
    return cot_solve(cot_add(x, cot_mul(9.0, one)), cot_slice(x, 1, 0, 1, 1));
}
/* An operation with several results has room for all of them while it runs. */
static cot_var factors(cot_var x) {
    cot_var u, values, vt;
    cot_svd(cot_detach(x), &u, &values, &vt);
    return cot_add(x, cot_matmul(u, vt));
}
/* Numbers without axes come from elements of arrays that a rehearsal does not have. */
static cot_var spectrum(cot_var x) {
    cot_var h = cot_mul(x, 1.0);
    for (int k = 0; k < 2; k++) h = cot_mul(cot_add(h, cot_sum(cot_svdvals(h), COT_ALL)), 0.3);
    return h;
}
/* The rule looks at the number: where it is 0, it goes another way. */
static cot_var singular(cot_var x) { return cot_add(cot_det(cot_mul(x, 0.0)), x); }
/* Names and keys of constants lie beside shapes and attributes. */
static cot_var of_a_sum(cot_var x) {
    int64_t n = cot_shape_of(x).dim[0];
    cot_var ten = cot_mul(10.0, cot_eye(cot_tape_of(x), COT_F64, n, n));
    return cot_solve(cot_add(cot_matmul(x, cot_transpose(x)), ten), x);
}
/* Functions take memory for themselves while they record. */
static cot_var of_entries(cot_var x) { return cot_csr_matmul(cot_csr_from_dense(cot_sub(x, 0.05)), x); }
static cot_var of_edges(cot_var x) {
    int64_t from[64], to[64], n = cot_shape_of(x).dim[0];
    for (int k = 0; k < 64; k++) from[k] = k % n, to[k] = 7 * k % n;
    cot_csr edges = cot_csr_gcn(cot_tape_of(x), COT_F64, n, 64, from, to); /* before all else */
    return cot_csr_matmul(edges, cot_sin(x));
}

enum { MOST = 128, CHUNK = 4096, LISTS = 1024 };
static double numbers[MOST * MOST];
static const struct { net *f; const char *name; } nets[] = {
    {squares, "squares"}, {waves, "waves"}, {layers, "layers"}, {attended, "attended"},
    {sorted, "sorted"},   {folded, "folded"}, {written, "written"}, {solved, "solved"},
    {skipping, "skipping"}, {factors, "factors"}, {spectrum, "spectrum"}, {singular, "singular"},
    {of_a_sum, "of_a_sum"}, {of_entries, "of_entries"}, {of_edges, "of_edges"},
};

/* A step, with what is told of it before its way back; NULL: nothing. */
static cot_status step(cot_tape *t, net *f, int64_t n, cot_memory *told) {
    cot_var y = cot_sum(f(cot_tensor(t, COT_F64, COT_SHAPE(n, n), numbers)), COT_ALL);
    if (told) assert_int_equal(cot_tape_memory(t, told, NULL), COT_OK);
    return cot_backward(y);
}

static bool is_enough(net *f, int64_t n, int64_t limit, char *why, size_t size) {
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limit});
    bool      enough = step(t, f, n, NULL) == COT_OK;
    snprintf(why, size, "%s", cot_tape_message(t));
    cot_tape_destroy(t);
    return enough;
}

static void holds(net *f, const char *name, int64_t n) {
    cot_memory told;
    char       why[256];
    cot_tape  *t = cot_tape_create(NULL);
    cot_mark   nothing = cot_tape_mark(t);
    assert_int_equal(step(t, f, n, &told), COT_OK);
    /* under a limit there are two chunks of a sixteenth of it */
    if (told.least - told.least / 8 > cot_tape_peak_bytes(t) + LISTS)
        fail_msg("%s, %d: told %d, a peak of %d", name, (int)n, (int)told.least, (int)cot_tape_peak_bytes(t));
    /* the same tape may have it from now on; its chunks have other sizes */
    cot_tape_rewind(t, nothing);
    assert_int_equal(cot_tape_set_memory_limit(t, told.least + told.least / 16 + CHUNK), COT_OK);
    if (step(t, f, n, NULL) != COT_OK)
        fail_msg("%s, %d: later, told %d: %s", name, (int)n, (int)told.least, cot_tape_message(t));
    cot_tape_destroy(t);
    for (int k = 0; k < 12; k++) {
        int64_t limit = told.least + told.least * k / 16;
        if (!is_enough(f, n, limit, why, sizeof why))
            fail_msg("%s, %d: at %d, told %d: %s", name, (int)n, (int)limit, (int)told.least, why);
    }
    /* of small ones the lists are known to a few hundred bytes only, and where a limit is not
     * enough though a smaller one is, one above both is told */
    if (is_enough(f, n, told.least - told.least / 5 - LISTS, why, sizeof why))
        fail_msg("%s, %d: less than %d was enough", name, (int)n, (int)told.least);
}

static void the_least_of_small_nets_is_enough(void **state) {
    (void)state;
    const int64_t sizes[] = {1, 3, 8, 15, 20, 28, 64};
    for (int k = 0; k < MOST * MOST; k++) numbers[k] = 0.01 * (k % 97);
    for (int k = 0; k < COUNTOF(nets); k++)
        for (int j = 0; j < COUNTOF(sizes); j++) holds(nets[k].f, nets[k].name, sizes[j]);
}

/* An operation of many operands has a list of them: without room for it a rehearsal ends, and was
 * not enough. */
static void a_rehearsal_without_room_for_operands_ends(void **state) {
    (void)state;
    enum { MANY = 1000 };
    cot_var   xs[MANY];
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_data(t, COT_F64, COT_SHAPE(1), NULL);
    for (int k = 0; k < MANY; k++) xs[k] = x;
    uint32_t y = cot__index(cot_concat(MANY, xs, 0));
    int      enough = 0;
    for (size_t limit = 4096; limit < 1 << 17; limit += 1024) {
        cot__rehearsal r = {.limit = limit, .most_looks = INT64_MAX};
        if (!cot__rehearse(t, y, &r)) continue;
        assert_true(r.peak >= MANY * sizeof(cot__view));
        enough++;
    }
    assert_in_range(enough, 1, 100);
    cot_tape_destroy(t);
}

/* ---- bodies, for which it is estimated ------------------------------------------------------- */

static int layer(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m, (void)user;
    ys[0] = cot_tanh(cot_matmul(xs[0], xs[n - 1]));
    return 0;
}
static int round_of(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    return layer(n - 1, xs + 1, m, ys, user); /* xs[0]: its number */
}
static int segment(int64_t k, int n, const cot_var *xs, cot_var *ys, void *user) {
    (void)k;
    return layer(n, xs, 1, ys, user);
}

static cot_var checkpoints(cot_var x) {
    cot_var h = x;
    for (int k = 0; k < 4; k++) cot_checkpoint(layer, NULL, 2, (cot_var[]){h, x}, 1, &h);
    return h;
}
static cot_var rounds(cot_var x) {
    cot_var h;
    cot_fori(round_of, NULL, 0, 6, 1, &x, &h, NULL);
    return cot_sin(h);
}
/* A constant without axes has no storage to ask about. */
static cot_var beside_a_number(cot_var x) {
    return cot_mul(checkpoints(x), cot_full(x.tape, COT_F64, COT_SCALAR, 0.5));
}
static cot_var segments(cot_var x) {
    cot_var h;
    cot_checkpoint_sequential(segment, NULL, 8, 3, 1, &x, &h);
    return h;
}

/* Searches take vectors, and play their bodies to try; up to 64 unknowns are solved by
 * elimination. */
static int tried(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sub(cot_add(xs[0], cot_mul(0.1, cot_sin(xs[0]))), xs[1]);
    return 0;
}
static cot_var rooted(cot_var x) {
    cot_tape *t = cot_tape_of(x);
    cot_shape shape = COT_SHAPE(cot_shape_of(x).dim[0] / 2);
    cot_var   of = cot_tensor(t, COT_F64, shape, numbers);
    return cot_root(tried, NULL, NULL, cot_zeros(t, COT_F64, shape), 1, &of, NULL);
}

/* Bodies that search are played, and forgotten with what they took. */
static int search(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    cot_var start = cot_zeros(xs[0].tape, COT_F64, cot_shape_of(xs[0])), of = cot_sin(xs[0]);
    ys[0] = cot_root(tried, NULL, NULL, start, 1, &of, NULL);
    return 0;
}
static int sum_of_all(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_add(cot_mul(5.0, xs[0]), cot_mul(0.01, cot_cumsum(xs[0], 0, false)));
    return 0;
}
static int solve_round(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_linear_solve(sum_of_all, NULL, cot_sin(xs[1]), NULL);
    return 0;
}
static cot_var long_vector(cot_var x) {
    int64_t n = cot_size(x);
    return cot_mul(cot_slice(cot_reshape(x, COT_SHAPE(n)), 0, 0, n < 1600 ? n : 1600, 1), 1.0);
}
static cot_var rooted_in_a_checkpoint(cot_var x) {
    cot_var h = long_vector(x);
    cot_checkpoint(search, NULL, 1, &h, 1, &h);
    return cot_sin(h);
}
static cot_var solved_in_rounds(cot_var x) {
    cot_var h = long_vector(x);
    cot_fori(solve_round, NULL, 0, 4, 1, &h, &h, NULL);
    return h;
}

static int gates(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = xs[0];
    for (int k = 0; k < 6; k++) ys[0] = cot_mul(cot_tanh(ys[0]), cot_exp(cot_sin(cot_cumsum(ys[0], 0, false))));
    return 0;
}
/* The first batch is recorded, if it is small, and the third is run by the program that the second
 * has made. */
static cot_var in_batches(cot_var x) {
    cot_var h = cot_detach(x);
    for (int k = 0; k < 3; k++) cot_vmap(gates, NULL, 1, &h, NULL, 1, &h, NULL);
    return cot_mul(x, h);
}

static void the_estimate_of_bodies_is_enough(void **state) {
    (void)state;
    net *const    all[] = {checkpoints, rounds, beside_a_number, segments, rooted, rooted_in_a_checkpoint,
                           solved_in_rounds, in_batches};
    const int64_t sizes[] = {3, 8, 20, MOST};
    char          why[256];
    for (int k = 0; k < COUNTOF(all); k++)
        for (int j = 0; j < COUNTOF(sizes); j++) {
            cot_memory told;
            cot_tape  *t = cot_tape_create(NULL);
            assert_int_equal(step(t, all[k], sizes[j], &told), COT_OK);
            cot_tape_destroy(t);
            if (!is_enough(all[k], sizes[j], told.least, why, sizeof why)) fail_msg("%d, %d: %s", k, j, why);
        }
}

/* ---- steps that are forgotten ---------------------------------------------------------------- */

/* What a step took for itself is forgotten with it: the next one needs the same. */
static void a_loop_of_steps_needs_what_one_does(void **state) {
    (void)state;
    net *const all[] = {of_edges, of_entries, rooted, solved_in_rounds};
    for (int k = 0; k < COUNTOF(all); k++) {
        cot_memory first, last;
        uint32_t   notes = 0;
        cot_tape  *t = cot_tape_create(NULL);
        cot_var    x = cot_tensor(t, COT_F64, COT_SHAPE(4, 4), numbers);
        cot_mark   start = cot_tape_mark(t); /* the first note stands right behind it */
        for (int s = 0, steps = test_small() ? 100 : 1000; s < steps; s++) {
            cot_tape_rewind(t, start);
            cot_var y = cot_sum(all[k](x), COT_ALL);
            if (s == 0 || s == steps - 1) cot_tape_memory(t, s ? &last : &first, NULL);
            assert_int_equal(cot_backward(y), COT_OK);
            if (s == 0) notes = t->memory.scratch.count;
        }
        assert_int_equal(t->memory.scratch.count, notes);
        assert_true(notes > 0);
        if (last.least > first.least + 1024) /* small lists are known to some hundred bytes */
            fail_msg("%d: %d at first, %d at last", k, (int)first.least, (int)last.least);
        cot_tape_destroy(t);
    }
}

/* ---- numbers, of which nothing is dropped ---------------------------------------------------- */

static cot_status step_of_numbers(cot_tape *t, int n, cot_memory *told) {
    cot_var x = cot_scalar(t, 0.3), h = x;
    for (int k = 0; k < n; k++) h = k % 3 ? cot_sin(h) : cot_mul(x, h);
    if (told) assert_int_equal(cot_tape_memory(t, told, NULL), COT_OK);
    return cot_backward(h);
}
static bool numbers_fit(int n, int64_t limit) {
    cot_tape *t = cot_tape_create(&(cot_options){.memory_limit = limit});
    bool      enough = step_of_numbers(t, n, NULL) == COT_OK;
    cot_tape_destroy(t);
    return enough;
}
static void the_estimate_of_numbers_is_near(void **state) {
    (void)state;
    for (int n = 3000; n < 100000; n = 5 * n + 1) { /* the last one lies in reserved addresses */
        cot_memory told;
        cot_tape  *t = cot_tape_create(NULL);
        assert_int_equal(step_of_numbers(t, n, &told), COT_OK);
        cot_tape_destroy(t);
        assert_true(numbers_fit(n, told.least));
        assert_false(numbers_fit(n, told.least - told.least / 5)); /* the smallest is within 1.25 */
    }
}

/* ---- several results ------------------------------------------------------------------------- */

enum { BEHIND = 64 };

/* Zeros lie behind each block: what reads beyond its end finds node 0 there. */
static void *with_zeros_behind(void *user, void *ptr, size_t old_size, size_t new_size) {
    (void)user, (void)old_size;
    if (new_size == 0) return free(ptr), NULL;
    char *grown = realloc(ptr, new_size + BEHIND);
    if (grown) memset(grown + new_size, 0, BEHIND);
    return grown;
}

static int count_and_halve(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_mul(xs[0], 0.5);
    ys[1] = cot_add(xs[1], cot_integer(1));
    return 0;
}

/* A sweep could begin at the float at the latest; the count is a result behind it. */
static void the_last_operation_may_have_results_behind_the_last_float(void **state) {
    (void)state;
    static const double at[] = {1, 2, 3};
    cot_memory          told;
    cot_tape           *t = cot_tape_create(&(cot_options){.allocator = {with_zeros_behind, NULL}});
    cot_var             first[2] = {cot_tensor(t, COT_F64, COT_SHAPE(3), at)}, last[2];
    first[1] = cot_data(t, COT_I64, COT_SCALAR, &(int64_t){0});
    cot_scan(count_and_halve, NULL, 3, 2, first, 0, NULL, last, 0, NULL, NULL);
    assert_int_equal(cot_tape_memory(t, &told, NULL), COT_OK);
    assert_true(told.least > 0);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_of_small_nets_is_enough),
        cmocka_unit_test(a_rehearsal_without_room_for_operands_ends),
        cmocka_unit_test(the_estimate_of_bodies_is_enough),
        cmocka_unit_test(a_loop_of_steps_needs_what_one_does),
        cmocka_unit_test(the_estimate_of_numbers_is_near),
        cmocka_unit_test(the_last_operation_may_have_results_behind_the_last_float),
    };
    return cmocka_run_group_tests_name("least", tests, NULL, NULL);
}
