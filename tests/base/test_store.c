/* A store keeps bytes in a file that has no name: room that was given back is used again, and what
 * comes back is what was written or is refused. */
#include "base/file/store.h"
#include "support/nameless.h"
#include "support/tape_test.h"

#include <errno.h>
#include <sys/resource.h>

enum { EXTENTS = 200 };

static void fill(unsigned char *to, size_t n, unsigned seed) {
    for (size_t k = 0; k < n; k++) to[k] = (unsigned char)(seed * 31 + k * 7 + (k >> 8));
}

/* Extents of random sizes come and go, and none writes into another. */
static void extents_do_not_touch(void **state) {
    (void)state;
    static unsigned char bytes[5000], back[5000];
    counting             c = {0};
    cot_allocator        al = {counting_alloc, &c};
    cot__store          *s = cot__store_open(&al, "/tmp");
    cot__extent          at[EXTENTS] = {{0}};
    unsigned             seed[EXTENTS] = {0}, random = 1;
    size_t               live = 0, most = 0;
    int64_t              size;
    assert_non_null(s);
    for (unsigned round = 1; round < 20000; round++) {
        random = random * 1664525u + 1013904223u;
        unsigned k = (random >> 16) % EXTENTS;
        size_t   n = 1 + (random >> 8) % (k < 20 ? sizeof bytes : 200);
        if (at[k].store) {
            size_t had = at[k].bytes;
            assert_true(cot__store_read(s, at[k].at, back, had, at[k].sum));
            fill(bytes, had, seed[k]);
            assert_memory_equal(back, bytes, had);
            cot__extent_give(&at[k]);
            assert_null(at[k].store);
            live -= had;
            continue;
        }
        assert_true(cot__extent_take(s, n, &at[k]));
        seed[k] = round;
        fill(bytes, n, round);
        assert_true(cot__store_write(s, at[k].at, bytes, n, &at[k].sum));
        live += n;
        if (live > most) most = live;
    }
    assert_int_equal(nameless_files(&size), 1);
    assert_in_range(size, live, 2 * most);
    for (unsigned k = 0; k < EXTENTS; k++) cot__extent_give(&at[k]);
    nameless_files(&size);
    assert_int_equal(size, 0);
    assert_null(cot__store_trouble(s));
    cot__store_close(s);
    assert_int_equal(nameless_files(&size), 0);
    assert_int_equal(c.live, 0);
}

static void every_changed_bit_is_seen(void **state) {
    (void)state;
    unsigned char bytes[77], back[77];
    cot__store   *s = cot__store_open(&(cot_allocator){0}, "/tmp");
    cot__extent   at;
    fill(bytes, sizeof bytes, 3);
    assert_true(cot__extent_take(s, sizeof bytes, &at));
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        unsigned char other;
        assert_true(cot__store_write(s, at.at, bytes, sizeof bytes, &at.sum));
        other = (unsigned char)(bytes[bit / 8] ^ 1u << bit % 8);
        assert_int_equal(pwrite(nameless_file(), &other, 1, (off_t)(at.at + bit / 8)), 1);
        assert_false(cot__store_read(s, at.at, back, sizeof bytes, at.sum));
    }
    assert_string_equal(cot__store_trouble(s), "its checksum differs");
    cot__store_close(s);
}

static void a_file_that_ends_early_is_refused(void **state) {
    (void)state;
    unsigned char bytes[1000] = {1}, back[1000];
    cot__store   *s = cot__store_open(&(cot_allocator){0}, "/tmp");
    cot__extent   at;
    assert_true(cot__extent_take(s, sizeof bytes, &at));
    assert_true(cot__store_write(s, at.at, bytes, sizeof bytes, &at.sum));
    assert_int_equal(ftruncate(nameless_file(), 500), 0);
    assert_false(cot__store_read(s, at.at, back, sizeof bytes, at.sum));
    assert_string_equal(cot__store_trouble(s), "Input/output error");
    assert_false(cot__extent_take(s, 10, &at)); /* a disk that fails is not trusted any more */
    cot__store_close(s);
}

/* It can grow no more, but what it has is used again. */
static void a_full_disk_is_told_of(void **state) {
    (void)state;
    struct rlimit before, small;
    cot__store   *s = cot__store_open(&(cot_allocator){0}, "/tmp");
    cot__extent   first, second, third;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1500;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool    took = cot__extent_take(s, 500, &first) && cot__extent_take(s, 900, &second);
    bool    refused = !cot__extent_take(s, 200, &third);
    int     why = errno;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(took && refused);
    assert_int_equal(why, EFBIG);
    assert_string_equal(cot__store_trouble(s), "File too large");
    assert_false(cot__store_has_room(s, 200));
    cot__extent_give(&first);
    assert_true(cot__store_has_room(s, 200));
    assert_true(cot__extent_take(s, 200, &third));
    assert_int_equal(third.at, 0);
    cot__store_close(s);
}

static void a_folder_that_is_none_is_refused(void **state) {
    (void)state;
    assert_null(cot__store_open(&(cot_allocator){0}, "/nowhere/at/all"));
    assert_int_equal(errno, ENOENT);
    static char name[5000];
    memset(name, 'x', sizeof name - 1);
    assert_null(cot__store_open(&(cot_allocator){0}, name));
    assert_int_equal(errno, ENAMETOOLONG);
    counting c = {.fail_at = 1};
    assert_null(cot__store_open(&(cot_allocator){counting_alloc, &c}, "/tmp"));
    assert_int_equal(errno, ENOMEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(extents_do_not_touch),
        cmocka_unit_test(every_changed_bit_is_seen),
        cmocka_unit_test(a_file_that_ends_early_is_refused),
        cmocka_unit_test(a_full_disk_is_told_of),
        cmocka_unit_test(a_folder_that_is_none_is_refused),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
