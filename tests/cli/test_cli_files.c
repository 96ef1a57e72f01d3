/* The command's readers of .npy and .safetensors files: the values they read; and every file that
 * is cut, changed or inconsistent gives one error, and never takes more memory than the file has
 * bytes for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/data_file.h"
#include "problem/uniform.h"

/* ---- files made by hand ---------------------------------------------------------------------- */

typedef struct bytes {
    uint8_t at[4096];
    size_t  n;
} bytes;

static void add(bytes *b, const void *p, size_t n) {
    assert_true(b->n + n <= sizeof b->at);
    if (n) memcpy(b->at + b->n, p, n);
    b->n += n;
}

/* As numpy.save writes it: the header ends in a newline, and elements begin at a multiple of 64. */
static bytes npy(int major, const char *dict, const void *data, size_t n) {
    bytes   b = {.n = 0};
    size_t  prefix = major == 1 ? 10 : 12, length = (prefix + strlen(dict) + 1 + 63) / 64 * 64 - prefix;
    uint8_t start[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (uint8_t)major, 0, (uint8_t)length, (uint8_t)(length >> 8),
                         0,    0};
    add(&b, start, prefix);
    add(&b, dict, strlen(dict));
    while (b.n < prefix + length - 1) add(&b, " ", 1);
    add(&b, "\n", 1);
    add(&b, data, n);
    return b;
}

static bytes safetensors(const char *header, const void *data, size_t n) {
    bytes   b = {.n = 0};
    uint8_t length[8] = {0};
    for (int k = 0; k < 8; k++) length[k] = (uint8_t)((uint64_t)strlen(header) >> 8 * k);
    add(&b, length, 8);
    add(&b, header, strlen(header));
    add(&b, data, n);
    return b;
}

/* From memory of exactly that size, so that a sanitizer sees a read beyond it. */
static bool read_npy(const uint8_t *p, size_t n, cot_dtype real, cot_array *a, failure *f) {
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n) memcpy(copy, p, n);
    cot__source s = cot__source_of_memory("a.npy", copy, n);
    *f = (failure){0};
    *a = (cot_array){0};
    bool fine = npy_read(&s, real, a, f);
    free(copy);
    assert_int_equal(fine, f->status == EXIT_FINE);
    assert_int_equal(fine, f->message[0] == 0);
    assert_int_equal(fine, a->data != NULL);
    return fine;
}

static bool read_safetensors(const uint8_t *p, size_t n, const char *key, cot_dtype real, cot_array *a, failure *f) {
    uint8_t *copy = malloc(n ? n : 1);
    assert_non_null(copy);
    if (n) memcpy(copy, p, n);
    cot__source s = cot__source_of_memory("m.safetensors", copy, n);
    *f = (failure){0};
    *a = (cot_array){0};
    bool fine = safetensors_read(&s, key, real, a, f);
    free(copy);
    assert_int_equal(fine, f->status == EXIT_FINE);
    assert_int_equal(fine, f->message[0] == 0);
    assert_int_equal(fine, a->data != NULL);
    return fine;
}

static void npy_fails(bytes b, const char *message) {
    cot_array a;
    failure   f;
    assert_false(read_npy(b.at, b.n, COT_F64, &a, &f));
    assert_string_equal(f.message, message);
    assert_int_equal(f.status, EXIT_RUN);
}

/* ---- npy ------------------------------------------------------------------------------------- */

static void npy_reads_each_version_and_type(void **state) {
    (void)state;
    static const struct {
        const char *descr;
        uint8_t     data[16];
        size_t      n;
        cot_dtype   dtype;
        double      is[2];
    } cases[] = {
        {"<f8", {0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}, 16, COT_F64, {1.5, -2}},
        {">f8", {0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0}, 16, COT_F64, {1.5, -2}},
        {"<f4", {0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}, 8, COT_F64, {1.5, -2}},
        {">f4", {0x3f, 0xc0, 0, 0, 0xc0, 0, 0, 0}, 8, COT_F64, {1.5, -2}},
        {"<f2", {0, 0x3e, 0, 0xc0}, 4, COT_F64, {1.5, -2}},
        {">f2", {0x3e, 0, 0xc0, 0}, 4, COT_F64, {1.5, -2}},
        {"<i8", {3, 0, 0, 0, 0, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 16, COT_I64, {3, -2}},
        {">i8", {0, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}, 16, COT_I64, {3, -2}},
        {"<i4", {3, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}, 8, COT_I32, {3, -2}},
        {"<i2", {3, 0, 0xfe, 0xff}, 4, COT_I32, {3, -2}},
        {"|i1", {3, 0xfe}, 2, COT_I32, {3, -2}},
        {"|u1", {3, 0xfe}, 2, COT_U8, {3, 254}},
        {">u2", {0, 3, 0xff, 0xfe}, 4, COT_I32, {3, 65534}},
        {"<u4", {3, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}, 8, COT_I64, {3, 4294967294.0}},
        {"<u8", {3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10}, 16, COT_I64, {3, 0x1p60}},
        {"|b1", {1, 0}, 2, COT_BOOL, {1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int major = 1; major <= 3; major++) {
            char dict[128];
            snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", cases[i].descr);
            bytes     b = npy(major, dict, cases[i].data, cases[i].n);
            cot_array a;
            failure   f;
            assert_true(read_npy(b.at, b.n, COT_F64, &a, &f));
            assert_int_equal(a.dtype, cases[i].dtype);
            assert_int_equal(a.shape.ndim, 1);
            assert_int_equal(a.size, 2);
            for (int k = 0; k < 2; k++) {
                double v = a.dtype == COT_F64   ? ((double *)a.data)[k]
                           : a.dtype == COT_I64 ? (double)((int64_t *)a.data)[k]
                           : a.dtype == COT_I32 ? (double)((int32_t *)a.data)[k]
                                                : (double)((uint8_t *)a.data)[k];
                assert_true(v == cases[i].is[k]);
            }
            free(a.data);
        }
    }
}

static void npy_floats_take_the_dtype_asked_for(void **state) {
    (void)state;
    double    x = 0.1;
    bytes     b = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &x, 8);
    cot_array a;
    failure   f;
    assert_true(read_npy(b.at, b.n, COT_F32, &a, &f));
    assert_int_equal(a.dtype, COT_F32);
    assert_int_equal(a.shape.ndim, 0);
    assert_true(*(float *)a.data == 0.1f);
    free(a.data);
}

static void npy_fortran_order_is_turned(void **state) {
    (void)state;
    uint8_t   data[24];
    cot_array a;
    failure   f;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) data[i + 2 * (j + 3 * k)] = (uint8_t)(100 * i + 10 * j + k);
    bytes b = npy(1, "{'shape': (2, 3, 4), \"fortran_order\":True,'descr':'|u1'}", data, sizeof data);
    assert_true(read_npy(b.at, b.n, COT_F64, &a, &f));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                assert_int_equal(((uint8_t *)a.data)[(i * 3 + j) * 4 + k], 100 * i + 10 * j + k);
    free(a.data);
}

static void npy_that_lies_is_told(void **state) {
    (void)state;
    double x[6] = {0};
    npy_fails(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (7,), }", x, 48),
              "a.npy is truncated: its shape takes 56 bytes, and 48 follow the header");
    npy_fails(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }", x, 48),
              "a.npy has bytes left over: its shape takes 40 bytes, and 48 follow the header");
    npy_fails(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", x, 48),
              "a.npy has a shape with too many elements");
    npy_fails(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9223372036854775807, 9), }", x, 0),
              "a.npy has a shape with too many elements");
    npy_fails(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }", x, 48),
              "a.npy is truncated: its shape takes 8796093022208 bytes, and 48 follow the header");
    npy_fails(npy(1, "{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", x, 48),
              "a.npy has elements of type '<c16'; f2, f4, f8, i1 to i8, u1 to u8 and b1 can be read");
    npy_fails(npy(1, "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (6,), }", x, 48),
              "a.npy holds records; only arrays of numbers can be read");
    static const char *const bad[] = {
        "",
        "{}",
        "{'descr': '<f8', 'fortran_order': False}",
        "{'descr': '<f8', 'fortran_order': 0, 'shape': (6,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-6,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (6,)} x",
        "{'descr': '<f8', 'descr': '<f8', 'shape': (6,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        npy_fails(npy(1, bad[i], x, 48), "a.npy has a header that is not {'descr': …, 'fortran_order': …, 'shape': …} "
                                         "of an array of at most 16 axes");
    bytes b = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }", x, 48);
    b.at[6] = 4;
    npy_fails(b, "a.npy is a .npy file of version 4.0; 1.0, 2.0 and 3.0 can be read");
    b.at[6] = 2;
    b.at[8] = b.at[9] = b.at[10] = b.at[11] = 0xff;
    npy_fails(b, "a.npy is truncated: its header takes 4294967295 bytes, and the file has 176");
    b.at[0] = 'P';
    npy_fails(b, "a.npy is not a .npy file: it does not begin with \\x93NUMPY and a version");
    uint64_t huge = UINT64_MAX;
    npy_fails(npy(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", &huge, 8),
              "a.npy holds an unsigned number that no i64 holds, 18446744073709551615 at byte 128");
}

static void npy_cut_anywhere_is_an_error(void **state) {
    (void)state;
    double    x[6] = {1, 2, 3, 4, 5, 6};
    cot_array a;
    failure   f;
    for (int major = 1; major <= 3; major++) {
        bytes b = npy(major, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", x, sizeof x);
        for (size_t n = 0; n < b.n; n++) assert_false(read_npy(b.at, n, COT_F64, &a, &f));
        assert_true(read_npy(b.at, b.n, COT_F64, &a, &f));
        free(a.data);
    }
}

/* ---- safetensors ----------------------------------------------------------------------------- */

static const char three[] =
    "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
    "\"b.weight\":{\"dtype\":\"BF16\",\"shape\":[1,2],\"data_offsets\":[8,12]},"
    "\"m\\u00e9\":{\"shape\":[],\"data_offsets\":[12,20],\"dtype\":\"I64\"}}   ";
static const uint8_t three_data[20] = {0, 0,    0xc0, 0x3f, 0,    0,    0,    0xc0, 0xc0, 0x3f,
                                       0, 0xc0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static void safetensors_reads_one_tensor(void **state) {
    (void)state;
    bytes     b = safetensors(three, three_data, sizeof three_data);
    cot_array a;
    failure   f;
    for (int k = 0; k < 2; k++) {
        assert_true(read_safetensors(b.at, b.n, k ? "b.weight" : "a", COT_F64, &a, &f));
        assert_int_equal(a.dtype, COT_F64);
        assert_int_equal(a.shape.ndim, 1 + k);
        assert_true(((double *)a.data)[0] == 1.5 && ((double *)a.data)[1] == -2);
        free(a.data);
    }
    assert_true(read_safetensors(b.at, b.n, "mé", COT_F64, &a, &f));
    assert_int_equal(a.dtype, COT_I64);
    assert_int_equal(a.shape.ndim, 0);
    assert_int_equal(*(int64_t *)a.data, -2);
    free(a.data);
}

static void safetensors_says_which_keys_there_are(void **state) {
    (void)state;
    bytes     b = safetensors(three, three_data, sizeof three_data);
    cot_array a;
    failure   f;
    assert_false(read_safetensors(b.at, b.n, "b.weights", COT_F64, &a, &f));
    assert_string_equal(f.message,
                        "m.safetensors has no tensor b.weights; did you mean b.weight? It holds a, b.weight, mé");
    assert_false(read_safetensors(b.at, b.n, NULL, COT_F64, &a, &f));
    assert_string_equal(f.message, "which tensor of m.safetensors? Write @m.safetensors:KEY; it holds a, b.weight, mé");
    assert_int_equal(f.status, EXIT_USAGE);
    b = safetensors("{}", NULL, 0);
    assert_false(read_safetensors(b.at, b.n, "x", COT_F64, &a, &f));
    assert_string_equal(f.message, "m.safetensors holds no tensors");
}

static void safetensors_that_lies_is_told(void **state) {
    (void)state;
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}",
         "m.safetensors: the tensor a takes 8 bytes by its shape and dtype, 12 by its offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[16,24]}}",
         "m.safetensors is truncated or wrong: the tensor a lies at bytes 16 to 24 of 20"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
         "m.safetensors is truncated or wrong: the tensor a lies at bytes 8 to 0 of 20"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
         "m.safetensors has 12 bytes left over behind its last tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},\"b\":{\"dtype\":\"F32\",\"shape\":[3],"
         "\"data_offsets\":"
         "[8,20]}}",
         "m.safetensors: the tensor b overlaps another"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[4,20]}}",
         "m.safetensors: the tensor a has unused bytes before it"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[3],"
         "\"data_offsets\":["
         "8,20]}}",
         "m.safetensors names the tensor a twice"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,20]}}",
         "m.safetensors: the tensor a has too many elements"},
        {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[20],\"data_offsets\":[0,20]}}",
         "m.safetensors: the tensor a has dtype F8_E4M3; F64, F32, F16, BF16, I8 to I64, U8 to U64 and BOOL can be "
         "read"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[5.0],\"data_offsets\":[0,20]}}",
         "m.safetensors has a header that cannot be read: neither , nor ] at byte 38"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}} x",
         "m.safetensors has a header that cannot be read: text behind the object at byte 64"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[5]}}",
         "m.safetensors has a header that cannot be read: a tensor without dtype, shape or data_offsets at byte 40"},
        {"[]", "m.safetensors has a header that cannot be read: something else than an object at byte 8"},
    };
    cot_array a;
    failure   f;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b = safetensors(cases[i].header, three_data, sizeof three_data);
        assert_false(read_safetensors(b.at, b.n, "a", COT_F64, &a, &f));
        assert_string_equal(f.message, cases[i].message);
    }
    bytes b = safetensors(three, three_data, sizeof three_data);
    memset(b.at, 0xff, 8);
    assert_false(read_safetensors(b.at, b.n, "a", COT_F64, &a, &f));
    assert_non_null(strstr(f.message, "its header takes 18446744073709551615 bytes"));
}

static void safetensors_cut_anywhere_is_an_error(void **state) {
    (void)state;
    bytes     b = safetensors(three, three_data, sizeof three_data);
    cot_array a;
    failure   f;
    for (size_t n = 0; n < b.n; n++) assert_false(read_safetensors(b.at, n, "a", COT_F64, &a, &f));
}

/* ---- damaged files --------------------------------------------------------------------------- */

static uint64_t random_state = 1;
static uint32_t draw(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % below;
}

/* A few bytes changed, doubled or dropped; from a good file, so that most of it still means
 * something. */
static bytes damage(bytes b) {
    static const char telling[] = "0123456789[]{}(),:'\"\\-.eE <>|fFiIuUbB\x93\xff";
    for (uint32_t k = 1 + draw(3); k > 0 && b.n > 0; k--) {
        size_t at = draw((uint32_t)b.n);
        switch (draw(4)) {
        case 0: b.at[at] = (uint8_t)draw(256); break;
        case 1: b.at[at] = (uint8_t)telling[draw(sizeof telling)]; break;
        case 2: memmove(b.at + at, b.at + at + 1, b.n - at - 1), b.n--; break;
        default:
            if (b.n + 1 > sizeof b.at) break;
            memmove(b.at + at + 1, b.at + at, b.n - at), b.n++;
        }
    }
    return b;
}

/* The array read from a damaged file is no larger than the file allows: at most 8 bytes for an
 * element, which has at least one byte in the file. */
static void damaged_files_give_an_error_or_an_array(void **state) {
    (void)state;
    double    x[6] = {1, 2, 3, 4, 5, 6};
    bytes     good[3] = {npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", x, sizeof x),
                         npy(3, "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 12), }", x, sizeof x),
                         safetensors(three, three_data, sizeof three_data)};
    int       rounds = getenv("COT_TEST_SMALL") ? 20000 : 200000;
    cot_array a;
    failure   f;
    for (int i = 0; i < rounds; i++) {
        int   which = i % 3;
        bytes b = damage(good[which]);
        bool  fine =
            which < 2 ? read_npy(b.at, b.n, COT_F64, &a, &f) : read_safetensors(b.at, b.n, "a", COT_F64, &a, &f);
        if (!fine) continue;
        assert_true(a.size >= 0 && (size_t)a.size <= b.n);
        free(a.data);
    }
}

static void uniform_is_the_generator_of_the_workloads(void **state) {
    (void)state;
    static const double is[] = {-0.45284307304587834, 0.8124848967956497, 0.20256661423742695, -0.766056256550965};
    for (int i = 0; i < 4; i++) assert_true(uniform_at(1, (uint64_t)i, 1) == is[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_reads_each_version_and_type),
        cmocka_unit_test(npy_floats_take_the_dtype_asked_for),
        cmocka_unit_test(npy_fortran_order_is_turned),
        cmocka_unit_test(npy_that_lies_is_told),
        cmocka_unit_test(npy_cut_anywhere_is_an_error),
        cmocka_unit_test(safetensors_reads_one_tensor),
        cmocka_unit_test(safetensors_says_which_keys_there_are),
        cmocka_unit_test(safetensors_that_lies_is_told),
        cmocka_unit_test(safetensors_cut_anywhere_is_an_error),
        cmocka_unit_test(damaged_files_give_an_error_or_an_array),
        cmocka_unit_test(uniform_is_the_generator_of_the_workloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
