/* ctest: labels=threads */
/* test_loader.c: batches of a loader: every row once an epoch, the same with and without a thread,
 * the same on from any position, also when it is destroyed early; and files of tokens. */
#include "support/data_test.h"

enum { ROWS = 23 };

static int64_t   numbers[ROWS * 2];
static uint8_t   labels[ROWS];
static cot_array arrays[2];

static void make_arrays(void) {
    for (int i = 0; i < ROWS; i++) numbers[2 * i] = i, numbers[2 * i + 1] = -i, labels[i] = (uint8_t)i;
    arrays[0] = (cot_array){COT_I64, COT_SHAPE(ROWS, 2), 2 * ROWS, numbers};
    arrays[1] = (cot_array){COT_U8, COT_SHAPE(ROWS), ROWS, labels};
}

/* The rows of up to `most` batches. */
static int collect(cot_loader *l, int most, int *rows, int *sizes) {
    int n = 0, batches = 0;
    for (const cot_array *a; batches < most && (a = cot_loader_next(l)); batches++) {
        assert_int_equal(a[0].shape.dim[0], a[1].shape.dim[0]);
        assert_int_equal(a[0].shape.dim[1], 2);
        assert_int_equal(a[0].size, 2 * a[1].size);
        for (int64_t i = 0; i < a[1].size; i++) {
            const int64_t *row = (const int64_t *)a[0].data + 2 * i;
            assert_int_equal(row[0], -row[1]);
            assert_int_equal(row[0], ((const uint8_t *)a[1].data)[i]);
            rows[n++] = (int)row[0];
        }
        if (sizes) sizes[batches] = (int)a[1].size;
    }
    return n;
}

static void each_row_comes_once_an_epoch(void **state) {
    (void)state;
    make_arrays();
    for (int mode = 0; mode < 8; mode++) {
        bool               shuffle = mode & 1, drop = mode & 2;
        int                rows[3 * ROWS], sizes[20];
        cot_loader_options o = {.batch     = 5,
                                .shuffle   = shuffle,
                                .key       = cot_key_of(4),
                                .drop_last = drop,
                                .epochs    = 3,
                                .ahead     = mode & 4 ? -1 : 3};
        cot_loader        *l = cot_loader_create(2, arrays, &o);
        assert_string_equal(cot_loader_message(l), "");
        assert_int_equal(cot_loader_rows(l), ROWS);
        int n = collect(l, 100, rows, sizes), per = drop ? 20 : ROWS;
        assert_int_equal(n, 3 * per);
        assert_int_equal(sizes[4], drop ? 5 : 3);
        assert_null(cot_loader_next(l));
        assert_int_equal(cot_loader_position(l).epoch, 3);
        for (int e = 0; e < 3; e++) {
            int seen[ROWS] = {0}, moved = 0;
            for (int i = 0; i < per; i++) seen[rows[e * per + i]]++, moved += rows[e * per + i] != i;
            for (int i = 0; i < ROWS; i++) assert_true(seen[i] <= 1);
            assert_int_equal(moved > 0, shuffle);
        }
        if (shuffle) assert_memory_not_equal(rows, rows + per, (size_t)per * sizeof *rows);
        cot_loader_destroy(l);
    }
}

/* Written down, so that no machine has another. */
static void the_order_of_a_key_is_this(void **state) {
    (void)state;
    static const int64_t expected[10] = {2, 6, 3, 5, 1, 4, 0, 7, 8, 9};
    int64_t              order[200];
    cot_row_order(cot_key_of(42), 10, order);
    assert_memory_equal(order, expected, sizeof expected);
    int seen[200] = {0};
    cot_row_order(cot_key_of(1), 200, order);
    for (int i = 0; i < 200; i++) seen[order[i]]++;
    for (int i = 0; i < 200; i++) assert_int_equal(seen[i], 1);
    cot_row_order(cot_key_of(1), 0, order);
    cot_row_order(cot_key_of(1), 3, NULL);
}

/* Each of 6 orders of 3 rows about equally often: 6000 keys, 1000 each; 5 deviations are 145. */
static void orders_are_equally_likely(void **state) {
    (void)state;
    int count[27] = {0};
    for (uint64_t k = 0; k < 6000; k++) {
        int64_t o[3];
        cot_row_order(cot_key_of(k), 3, o);
        count[9 * o[0] + 3 * o[1] + o[2]]++;
    }
    int orders = 0;
    for (int i = 0; i < 27; i++) {
        orders += count[i] > 0;
        assert_true(!count[i] || (count[i] > 855 && count[i] < 1145));
    }
    assert_int_equal(orders, 6);
}

static void any_position_goes_on_exactly(void **state) {
    (void)state;
    make_arrays();
    cot_loader_options o = {.batch = 4, .shuffle = true, .key = cot_key_of(5)};
    int                all[20 * 4];
    cot_loader        *l     = cot_loader_create(2, arrays, &o);
    int                total = collect(l, 18, all, NULL);
    cot_loader_destroy(l);
    for (int k = 0; k < 18; k++) {
        int rows[80], head;
        l               = cot_loader_create(2, arrays, &o);
        head            = collect(l, k, rows, NULL);
        cot_position at = cot_loader_position(l);
        cot_loader_destroy(l); /* early, with batches made that nobody asked for */
        l = cot_loader_create(2, arrays, &o);
        if (k % 2) cot_loader_next(l);
        assert_int_equal(cot_loader_seek(l, at), COT_OK);
        assert_int_equal(cot_loader_position(l).row, at.row);
        int tail = collect(l, 18 - k, rows, NULL);
        assert_int_equal(head + tail, total);
        assert_memory_equal(rows, all + head, (size_t)tail * sizeof *rows);
        cot_loader_destroy(l);
    }
}

static void tokens_come_in_windows(void **state) {
    (void)state;
    uint8_t bytes[40];
    int64_t out[20];
    for (int i = 0; i < 20; i++) bytes[2 * i] = (uint8_t)i, bytes[2 * i + 1] = (uint8_t)(i == 19 ? 255 : 0);
    put_file(in_folder("t.bin"), bytes, sizeof bytes);
    cot_tokens *t = cot_tokens_open(in_folder("t.bin"), 2, NULL);
    assert_string_equal(cot_tokens_message(t), "");
    assert_int_equal(cot_tokens_count(t), 20);
    assert_int_equal(cot_tokens_read(t, 18, 2, out), COT_OK);
    assert_true(out[0] == 18 && out[1] == 255 * 256 + 19);
    assert_int_equal(cot_tokens_read(t, 19, 2, out), COT_VALUE);
    assert_int_equal(cot_tokens_read(t, -1, 1, out), COT_VALUE);
    cot_loader      *l = cot_loader_tokens(t, 5, 4, &(cot_loader_options){.batch = 3, .epochs = 1});
    const cot_array *a = cot_loader_next(l);
    assert_int_equal(cot_loader_rows(l), 4);
    assert_non_null(a);
    assert_int_equal(a->dtype, COT_I32);
    assert_int_equal(a->shape.dim[0], 3);
    assert_int_equal(a->shape.dim[1], 5);
    for (int i = 0; i < 15; i++) assert_int_equal(((const int32_t *)a->data)[i], 4 * (i / 5) + i % 5);
    assert_int_equal(cot_loader_next(l)->shape.dim[0], 1);
    assert_null(cot_loader_next(l));
    cot_loader_destroy(l);
    cot_tokens_close(t);
    t = cot_tokens_open(in_folder("t.bin"), 4, NULL);
    assert_int_equal(cot_tokens_count(t), 10);
    l = cot_loader_tokens(t, 11, 1, &(cot_loader_options){.batch = 3});
    assert_int_equal(cot_loader_rows(l), 0);
    assert_null(cot_loader_next(l));
    cot_loader_destroy(l);
    cot_tokens_close(t);
    char expected[200];
    put_file(in_folder("t.bin"), bytes, 7);
    t = cot_tokens_open(in_folder("t.bin"), 2, NULL);
    snprintf(expected, sizeof expected, "%s holds 3 tokens of 2 bytes, and at byte 6 a part of one",
             in_folder("t.bin"));
    assert_string_equal(cot_tokens_message(t), expected);
    l = cot_loader_tokens(t, 1, 1, &(cot_loader_options){.batch = 3});
    assert_string_equal(cot_loader_message(l), expected);
    cot_loader_destroy(l);
    cot_tokens_close(t);
    t = cot_tokens_open(in_folder("none"), 2, NULL);
    assert_int_equal(cot_tokens_status(t), COT_VALUE);
    cot_tokens_close(t);
    put_file(in_folder("t.bin"), "", 0);
    t = cot_tokens_open(in_folder("t.bin"), 2, NULL);
    assert_int_equal(cot_tokens_status(t), COT_OK);
    assert_int_equal(cot_tokens_count(t), 0);
    cot_tokens_close(t);
}

static void refused(int n, const cot_array *a, cot_loader_options o, const char *message) {
    cot_loader *l = cot_loader_create(n, a, &o);
    assert_int_not_equal(cot_loader_status(l), COT_OK);
    assert_string_equal(cot_loader_message(l), message);
    assert_null(cot_loader_next(l));
    assert_int_not_equal(cot_loader_seek(l, (cot_position){0, 0}), COT_OK);
    cot_loader_destroy(l);
}

static void errors_say_what(void **state) {
    (void)state;
    make_arrays();
    refused(0, arrays, (cot_loader_options){.batch = 1}, "the list of 0 arrays is empty or NULL");
    refused(2, NULL, (cot_loader_options){.batch = 1}, "the list of 2 arrays is empty or NULL");
    refused(2, arrays, (cot_loader_options){.batch = 0}, "a batch of 0 rows; it has at least 1");
    refused(2, arrays, (cot_loader_options){.batch = 1, .epochs = -1}, "-1 epochs; 0 is without end");
    refused(2, arrays, (cot_loader_options){.batch = 24, .drop_last = true},
            "a batch of 24 rows, of which there are 23, and one that is not full is left out");
    cot_array bad[2]    = {arrays[0], arrays[1]};
    bad[1].shape.dim[0] = bad[1].size = 22;
    refused(2, bad, (cot_loader_options){.batch = 1}, "array 1 has 22 rows, and array 0 has 23; all have as many");
    bad[1] = (cot_array){COT_U8, COT_SCALAR, 1, labels};
    refused(2, bad, (cot_loader_options){.batch = 1}, "array 1 has no axis of rows");
    bad[1]      = arrays[1];
    bad[1].data = NULL;
    refused(2, bad, (cot_loader_options){.batch = 1}, "the elements of array 1 are NULL");
    bad[1].size = 7;
    refused(2, bad, (cot_loader_options){.batch = 1}, "array 1 has a shape that is not of its 7 elements");
    cot_loader *l = cot_loader_create(2, arrays, &(cot_loader_options){.batch = INT64_MAX});
    assert_int_equal(cot_loader_next(l)->shape.dim[0], ROWS);
    assert_int_equal(cot_loader_seek(l, (cot_position){0, 24}), COT_VALUE);
    assert_int_equal(cot_loader_seek(l, (cot_position){-1, 0}), COT_VALUE);
    assert_int_equal(cot_loader_seek(l, (cot_position){INT64_MAX, 0}), COT_VALUE);
    cot_loader_destroy(l);
    cot_loader_destroy(NULL);
    assert_null(cot_loader_next(NULL));
    assert_int_equal(cot_loader_status(NULL), COT_MEMORY);
    l = cot_loader_tokens(NULL, 1, 1, NULL);
    assert_string_equal(cot_loader_message(l), "the tokens are NULL");
    cot_loader_destroy(l);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    make_arrays();
    bool fine = false;
    for (int64_t at = 1; !fine; at++) {
        counted     c = {.fail_at = at};
        cot_loader *l = cot_loader_create(
            2, arrays, &(cot_loader_options){.allocator = {counted_alloc, &c}, .batch = 400, .shuffle = true});
        fine = cot_loader_next(l) != NULL;
        assert_int_equal(fine, c.calls < at);
        if (!fine) assert_int_equal(cot_loader_status(l), COT_MEMORY);
        cot_loader_destroy(l);
        assert_int_equal(c.used, 0);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, data_setup, data_teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_row_comes_once_an_epoch), TEST(the_order_of_a_key_is_this), TEST(orders_are_equally_likely),
        TEST(any_position_goes_on_exactly), TEST(tokens_come_in_windows),     TEST(errors_say_what),
        TEST(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
