/* Sparse matrices from files: those in tests/data/scipy, which scipy.sparse.save_npz wrote, and
 * ones made here that say what is not so. */
#include "support/data_test.h"

#include "data/file/listing.h"

static const double expected[12] = {0, 1.5, 0, -2, 0, 0, 0, 0, 4, 0, 0.25, 0};

static const char *scipy(const char *name) {
    static char path[400];
    snprintf(path, sizeof path, "%s/tests/data/scipy/%s.npz", COT_SOURCE_FOLDER, name);
    return path;
}

static void every_format_gives_the_same_matrix(void **state) {
    (void)state;
    /* unsorted and coo have the entry (2, 0) twice, as 3 and 1 */
    static const char *const formats[] = {"csr", "csc", "coo", "unsorted"};
    for (int k = 0; k < 4; k++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_csr   a = cot_csr_load(t, scipy(formats[k]), COT_F64);
        double    dense[12];
        assert_string_equal(cot_tape_message(t), "");
        assert_true(a.rows == 3 && a.columns == 4 && cot_size(a.values) == 4 && !cot_requires_grad(a.values));
        assert_int_equal(cot_read(cot_csr_to_dense(a), dense, 12), COT_OK);
        assert_memory_equal(dense, expected, sizeof expected);
        cot_tape_destroy(t);
    }
}

static void integers_become_floats(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_csr   a = cot_csr_load(t, scipy("integers"), COT_F32);
    double    dense[4];
    assert_int_equal(cot_dtype_of(a.values), COT_F32);
    assert_int_equal(cot_read(cot_csr_to_dense(a), dense, 4), COT_OK);
    assert_true(dense[0] == 0 && dense[1] == 1 && dense[2] == 1 && dense[3] == 0);
    cot_tape_destroy(t);
}

static void refuses(const char *path, cot_dtype dtype, cot_status status, const char *format) {
    char      text[800];
    cot_tape *t = cot_tape_create(NULL);
    cot_csr   a = cot_csr_load(t, path, dtype);
    snprintf(text, sizeof text, format, path, path);
    assert_string_equal(cot_tape_message(t), text);
    assert_int_equal(cot_tape_status(t), status);
    assert_false(cot_is_valid(a.values) || cot_is_valid(a.pattern));
    cot_tape_destroy(t);
}

/* ---- files made here: a zip archive of stored .npy files ------------------------------------- */

typedef struct archive {
    uint8_t at[8192], directory[2048];
    size_t  n, m;
    int     members;
} archive;

static void put(uint8_t *to, size_t *at, const void *p, size_t n) {
    if (n) memcpy(to + *at, p, n);
    *at += n;
}

static void add(archive *z, const char *name, const char *descr, const char *shape, const void *data, size_t bytes) {
    uint8_t file[1024] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    int     length = snprintf((char *)file + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                              shape);
    memset(file + 10 + length, ' ', (size_t)(117 - length));
    file[127] = '\n';
    memcpy(file + 128, data, bytes);
    uint32_t size = 128 + (uint32_t)bytes, crc = cot__crc32(0, file, size), place = (uint32_t)z->n;
    uint8_t  local[30] = {'P', 'K', 3, 4, 20}, central[46] = {'P', 'K', 1, 2, 20, 0, 20};
    uint16_t named = (uint16_t)(strlen(name) + 4);
    memcpy(local + 14, &crc, 4), memcpy(local + 18, &size, 4), memcpy(local + 22, &size, 4);
    memcpy(local + 26, &named, 2);
    memcpy(central + 16, &crc, 4), memcpy(central + 20, &size, 4), memcpy(central + 24, &size, 4);
    memcpy(central + 28, &named, 2), memcpy(central + 42, &place, 4);
    put(z->at, &z->n, local, 30), put(z->at, &z->n, name, strlen(name)), put(z->at, &z->n, ".npy", 4);
    put(z->at, &z->n, file, size);
    put(z->directory, &z->m, central, 46), put(z->directory, &z->m, name, strlen(name));
    put(z->directory, &z->m, ".npy", 4);
    z->members++;
}

static void integers(archive *z, const char *name, int n, const int64_t *list) {
    char shape[16];
    snprintf(shape, sizeof shape, "(%d,)", n);
    add(z, name, "<i8", shape, list, (size_t)n * 8);
}

static void write_archive(archive *z, const char *path) {
    uint8_t  end[22] = {'P', 'K', 5, 6};
    uint32_t at = (uint32_t)z->n, bytes = (uint32_t)z->m;
    uint16_t count = (uint16_t)z->members;
    memcpy(end + 8, &count, 2), memcpy(end + 10, &count, 2), memcpy(end + 12, &bytes, 4), memcpy(end + 16, &at, 4);
    put(z->at, &z->n, z->directory, z->m);
    put(z->at, &z->n, end, 22);
    put_file(path, z->at, z->n);
}

/* What a file says of a matrix; 0 starts or places: it has no such array. */
typedef struct said {
    const char *format, *type; /* of the text: |S3, or <U3 */
    int64_t     shape[2], starts[4], indices[3];
    int         start_count, index_count;
} said;

static const char *matrix_file(said s) {
    const char *path = in_folder("m.npz");
    archive     z = {.n = 0};
    double      data[2] = {5, 7};
    char        wide[12] = {s.format[0], 0, 0, 0, s.format[1], 0, 0, 0, s.format[2]};
    bool        is_wide = s.type[1] == 'U';
    add(&z, "format", s.type, "()", is_wide ? wide : s.format, is_wide ? 12 : 3);
    integers(&z, "shape", 2, s.shape);
    add(&z, "data", "<f8", "(2,)", data, 16);
    bool compressed = s.format[1] == 's';
    if (s.start_count) integers(&z, compressed ? "indptr" : "row", s.start_count, s.starts);
    if (s.index_count) integers(&z, compressed ? "indices" : "col", s.index_count, s.indices);
    write_archive(&z, path);
    return path;
}

static void what_a_file_says_is_held_against_itself(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_csr   a = cot_csr_load(t, matrix_file((said){"csr", "<U3", {2, 2}, {0, 1, 2}, {1, 0}, 3, 2}), COT_F64);
    assert_string_equal(cot_tape_message(t), "");
    double values[2];
    assert_int_equal(cot_read(a.values, values, 2), COT_OK);
    assert_true(values[0] == 5 && values[1] == 7);
    cot_tape_destroy(t);

    refuses(matrix_file((said){"csr", "|S3", {2, 2}, {0, 3, 2}, {1, 0}, 3, 2}), COT_F64, COT_VALUE,
            "[csr_load] %s: indptr[1] is 3, for 2 entries; it ascends from 0 to their number");
    refuses(matrix_file((said){"csr", "|S3", {2, 2}, {0, 1, 1}, {1, 0}, 3, 2}), COT_F64, COT_VALUE,
            "[csr_load] %s: indptr[2] is 1, for 2 entries; it ascends from 0 to their number");
    refuses(matrix_file((said){"csr", "|S3", {2, 2}, {1, 1, 2}, {1, 0}, 3, 2}), COT_F64, COT_VALUE,
            "[csr_load] %s: indptr[0] is 1, for 2 entries; it ascends from 0 to their number");
    refuses(matrix_file((said){"csr", "|S3", {2, 2}, {0, 1, 2}, {1, 2}, 3, 2}), COT_F64, COT_VALUE,
            "[csr_load] %s: entry 1 lies at (1, 2), outside of a matrix of shape (2,2)");
    refuses(matrix_file((said){"csc", "|S3", {2, 2}, {0, 1, 2}, {1, -1}, 3, 2}), COT_F64, COT_VALUE,
            "[csr_load] %s: entry 1 lies at (-1, 1), outside of a matrix of shape (2,2)");
    refuses(matrix_file((said){"csr", "|S3", {3, 2}, {0, 1, 2}, {1, 0}, 3, 2}), COT_F64, COT_SHAPE,
            "[csr_load] %s: indptr has 3 elements for 3 rows; there is one more than these");
    refuses(matrix_file((said){"csc", "|S3", {2, 1}, {0, 1, 2}, {1, 0}, 3, 2}), COT_F64, COT_SHAPE,
            "[csr_load] %s: indptr has 3 elements for 1 columns; there is one more than these");
    refuses(matrix_file((said){"csr", "|S3", {2, 2}, {0, 1, 2}, {1, 0, 1}, 3, 3}), COT_F64, COT_SHAPE,
            "[csr_load] %s: indices has shape (3,), and the other arrays of the matrix another length");
    refuses(matrix_file((said){"coo", "|S3", {2, 2}, {0, 1}, {0}, 2, 0}), COT_F64, COT_VALUE,
            "[csr_load] %s has no array col, which belongs to a matrix of format coo");
    refuses(matrix_file((said){"csr", "|S3", {-1, 2}, {0}, {0}, 1, 0}), COT_F64, COT_SHAPE,
            "[csr_load] %s: the shape is (-1,2); extents are not negative");
}

static void other_files_are_refused(void **state) {
    (void)state;
    refuses(scipy("dia"), COT_F64, COT_VALUE,
            "[csr_load] %s holds a matrix of format dia; csr, csc and coo can be read: save a.tocsr()");
    refuses(scipy("complex"), COT_F64, COT_VALUE,
            "[csr_load] %s has elements of type '<c16'; f2, f4, f8, i1 to i8, u1 to u8 and b1 can be read");
    refuses(scipy("none"), COT_F64, COT_VALUE, "[csr_load] cannot read %s: No such file or directory");
    refuses(scipy("csr"), COT_I64, COT_DTYPE, "[csr_load] dtype i64; values are floats");
    refuses(NULL, COT_F64, COT_VALUE, "[csr_load] the path is NULL");
    double      x = 1;
    const char *name = "x", *path = in_folder("x.npz");
    cot_array   one = {COT_F64, COT_SHAPE(1), 1, &x};
    assert_int_equal(cot_file_save(path, 1, &name, &one, NULL, NULL, 0), COT_OK);
    refuses(path, COT_F64, COT_VALUE, "[csr_load] %s holds no sparse matrix; scipy.sparse.save_npz writes one");
}

/* The sums of an archive see a changed byte of a member; a changed head is another error, or means
 * nothing. */
static void a_damaged_file_is_an_error_or_the_matrix(void **state) {
    (void)state;
    size_t         n;
    unsigned char *bytes = get_file(scipy("coo"), &n);
    const char    *path = in_folder("damaged.npz");
    int            wrong = 0;
    for (size_t k = 0; k < 2 * n; k++) {
        bool cut = k >= n;
        if (!cut) bytes[k] ^= 0x55;
        put_file(path, bytes, cut ? k - n : n);
        if (!cut) bytes[k] ^= 0x55;
        cot_tape *t = cot_tape_create(NULL);
        cot_csr   a = cot_csr_load(t, path, COT_F64);
        double    dense[12];
        if (cot_tape_status(t) == COT_OK) {
            assert_int_equal(cot_read(cot_csr_to_dense(a), dense, 12), COT_OK);
            assert_memory_equal(dense, expected, sizeof expected);
        } else {
            assert_true(strncmp(cot_tape_message(t), "[csr_load] ", 11) == 0);
            wrong++;
        }
        cot_tape_destroy(t);
    }
    assert_true((size_t)wrong > n + n / 2);
    free(bytes);
}

/* A tape that is refused memory lets go what it keeps for later and asks again, so memory is short
 * from a call on. */
static void *short_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    counted *c = user;
    if (new_size && c->fail_at && c->calls + 1 >= c->fail_at) return c->calls++, NULL;
    return counted_alloc(user, ptr, old_size, new_size);
}

static void memory_may_be_short_at_any_time(void **state) {
    (void)state;
    bool loaded = false;
    for (int64_t at = 1; !loaded; at++) {
        counted   c = {.fail_at = 0};
        cot_tape *t = cot_tape_create(&(cot_options){.allocator = {short_alloc, &c}});
        c.calls = 0, c.fail_at = at;
        cot_csr a = cot_csr_load(t, scipy("unsorted"), COT_F64);
        loaded = c.calls < at;
        assert_int_equal(loaded, cot_is_valid(a.values));
        assert_int_equal(cot_tape_status(t), loaded ? COT_OK : COT_MEMORY);
        cot_tape_destroy(t);
        assert_int_equal(c.used, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_gives_the_same_matrix),
        cmocka_unit_test(integers_become_floats),
        cmocka_unit_test(what_a_file_says_is_held_against_itself),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(a_damaged_file_is_an_error_or_the_matrix),
        cmocka_unit_test(memory_may_be_short_at_any_time),
    };
    return cmocka_run_group_tests(tests, data_setup, data_teardown);
}
