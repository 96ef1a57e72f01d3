/* test_tensor_files.c: tensors in files: what was saved is read back to the bit in every dtype and
 * kind of file; conversions are exact or errors; every file that is cut or altered gives an error
 * or the same numbers, never a crash; a failing write leaves the old file; any allocation may
 * fail. */
#include "support/data_test.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "data/file/zlib.h"

static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16, COT_I64, COT_I32, COT_U8, COT_BOOL};
static const size_t    sizes[]  = {8, 4, 2, 2, 8, 4, 1, 1};

/* Arrays of every dtype; NumPy's kinds leave bf16 out. */
typedef struct sample {
    int         n;
    const char *names[9];
    cot_array   arrays[9];
    uint8_t     bytes[9][48];
} sample;

static void make(sample *s, bool numpy) {
    s->n = 0;
    for (int k = 0; k < 8; k++) {
        if (numpy && dtypes[k] == COT_BF16) continue;
        cot_array *a = &s->arrays[s->n];
        for (int i = 0; i < 48; i++)
            s->bytes[s->n][i] = dtypes[k] == COT_BOOL ? (uint8_t)(i % 3 == 0) : (uint8_t)(37 * i + 11 * k);
        *a               = (cot_array){dtypes[k], COT_SHAPE(2, 3), 6, s->bytes[s->n]};
        s->names[s->n++] = cot_dtype_name(dtypes[k]);
    }
    s->arrays[s->n]  = (cot_array){COT_F32, COT_SHAPE(0, 5), 0, NULL};
    s->names[s->n++] = "empty \"\\ ünïcode";
}

static size_t size_of(cot_dtype d) { return sizes[d]; }

static void same_as(const sample *s, const char *path) {
    cot_file *f = cot_file_open(path, NULL);
    assert_string_equal(cot_file_message(f), "");
    assert_int_equal(cot_file_status(f), COT_OK);
    assert_int_equal(cot_file_count(f), s->n);
    for (int i = 0; i < s->n; i++) {
        uint8_t got[48];
        int     k = cot_file_find(f, s->names[i]);
        assert_true(k >= 0);
        assert_string_equal(cot_file_name(f, k), s->names[i]);
        assert_int_equal(cot_file_dtype(f, k), s->arrays[i].dtype);
        assert_int_equal(cot_file_size(f, k), s->arrays[i].size);
        cot_shape shape = cot_file_shape(f, k);
        assert_int_equal(shape.ndim, 2);
        assert_memory_equal(shape.dim, s->arrays[i].shape.dim, 2 * sizeof(int64_t));
        assert_int_equal(cot_file_read(f, k, s->arrays[i].dtype, got), COT_OK);
        if (s->arrays[i].size) assert_memory_equal(got, s->arrays[i].data, 6 * size_of(s->arrays[i].dtype));
    }
    cot_file_close(f);
}

static void every_dtype_comes_back(void **state) {
    (void)state;
    sample              s;
    char                why[500];
    const cot_text_pair texts[] = {{"model", "small \"net\""}, {"config", "{\n\t\"width\": 3}"}};
    make(&s, false);
    assert_int_equal(cot_file_save(in_folder("a.safetensors"), s.n, s.names, s.arrays,
                                   &(cot_save_options){.pairs = 2, .texts = texts}, why, sizeof why),
                     COT_OK);
    assert_string_equal(why, "");
    same_as(&s, in_folder("a.safetensors"));
    cot_file     *f = cot_file_open(in_folder("a.safetensors"), NULL);
    cot_text_pair pair;
    assert_string_equal(cot_file_text(f, "model"), texts[0].text);
    assert_string_equal(cot_file_text(f, "config"), texts[1].text);
    assert_null(cot_file_text(f, "none"));
    assert_true(cot_file_pair(f, 1, &pair));
    assert_string_equal(pair.key, "config");
    assert_false(cot_file_pair(f, 2, &pair));
    assert_null(cot_file_name(f, s.n));
    assert_null(cot_file_name(f, -1));
    cot_file_close(f);
    make(&s, true);
    assert_int_equal(cot_file_save(in_folder("a.npz"), s.n, s.names, s.arrays, NULL, why, sizeof why), COT_OK);
    same_as(&s, in_folder("a.npz"));
    for (int k = 0; k < s.n; k++) {
        sample one = {.n = 1, .names = {""}, .arrays = {s.arrays[k]}};
        assert_int_equal(cot_file_save(in_folder("a.npy"), 1, one.names, one.arrays, NULL, why, sizeof why), COT_OK);
        same_as(&one, in_folder("a.npy"));
    }
    assert_int_equal(count_files(test_folder), 3);
}

/* No tensor is a file too, and so is one of no axes. */
static void none_and_scalars(void **state) {
    (void)state;
    char                     why[500];
    double                   x = 2.5, y = 0;
    cot_array                a       = {COT_F64, COT_SCALAR, 1, &x};
    const char              *name    = "x";
    static const char *const kinds[] = {"n.safetensors", "n.npz"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(cot_file_save(in_folder(kinds[k]), 0, NULL, NULL, NULL, why, sizeof why), COT_OK);
        cot_file *f = cot_file_open(in_folder(kinds[k]), NULL);
        assert_string_equal(cot_file_message(f), "");
        assert_int_equal(cot_file_count(f), 0);
        cot_file_close(f);
        assert_int_equal(cot_file_save(in_folder(kinds[k]), 1, &name, &a, NULL, NULL, 0), COT_OK);
        f = cot_file_open(in_folder(kinds[k]), NULL);
        assert_int_equal(cot_file_read(f, 0, COT_F64, &y), COT_OK);
        assert_true(y == x);
        assert_int_equal(cot_file_shape(f, 0).ndim, 0);
        cot_file_close(f);
    }
}

/* ---- conversions ----------------------------------------------------------------------------- */

static const char *converted(const char *path, cot_dtype dtype, void *out) {
    static char message[600];
    cot_file   *f = cot_file_open(path, NULL);
    cot_file_read(f, 0, dtype, out);
    snprintf(message, sizeof message, "%s", cot_file_message(f));
    cot_file_close(f);
    return message;
}

static void conversions_are_exact_or_errors(void **state) {
    (void)state;
    const char *name = "x", *path = in_folder("c.safetensors");
    double      f64[3] = {1.0 + 0x1p-30, -0.0, INFINITY}, back[3];
    float       f32[3];
    uint16_t    half[3];
    int64_t     i64[3] = {-1, 300, INT64_C(1) << 40};
    int32_t     i32[3];
    uint8_t     u8[3];
    char        expected[600];
    cot_array   a = {COT_F64, COT_SHAPE(3), 3, f64};
    assert_int_equal(cot_file_save(path, 1, &name, &a, NULL, NULL, 0), COT_OK);
    assert_string_equal(converted(path, COT_F32, f32), "");
    assert_true(f32[0] == 1.0f && signbit(f32[1]) && isinf(f32[2])); /* rounded once */
    assert_string_equal(converted(path, COT_BF16, half), "");
    assert_int_equal(half[0], 0x3f80);
    snprintf(expected, sizeof expected, "%s holds floating-point numbers, which are not read as i64", path);
    assert_string_equal(converted(path, COT_I64, i64), expected);

    /* bf16 and f32 become f64 and come back */
    a      = (cot_array){COT_F32, COT_SHAPE(3), 3, f32};
    f32[0] = 0.1f;
    assert_int_equal(cot_file_save(path, 1, &name, &a, NULL, NULL, 0), COT_OK);
    assert_string_equal(converted(path, COT_F64, back), "");
    assert_true(back[0] == (double)0.1f);

    a = (cot_array){COT_I64, COT_SHAPE(3), 3, i64};
    assert_int_equal(cot_file_save(path, 1, &name, &a, NULL, NULL, 0), COT_OK);
    assert_string_equal(converted(path, COT_F64, back), "");
    assert_true(back[0] == -1 && back[1] == 300 && back[2] == 0x1p40);
    size_t n;
    free(get_file(path, &n));
    snprintf(expected, sizeof expected, "%s holds the number 1099511627776 at byte %zu, which no i32 is", path, n - 8);
    assert_string_equal(converted(path, COT_I32, i32), expected);
    snprintf(expected, sizeof expected, "%s holds the number -1 at byte %zu, which no u8 is", path, n - 24);
    assert_string_equal(converted(path, COT_U8, u8), expected);
    assert_string_equal(converted(path, COT_F16, half), converted(path, COT_F16, half));
    assert_non_null(strstr(converted(path, COT_F16, half), "which no f16 is"));
    assert_string_equal(converted(path, COT_F32, f32), "");
    assert_true(f32[2] == 0x1p40f);
}

/* ---- IDX, tables, gzip ----------------------------------------------------------------------- */

static void idx_is_read(void **state) {
    (void)state;
    static const uint8_t idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255};
    static const uint8_t big[] = {0, 0, 11, 1, 0, 0, 0, 2, 0xff, 0xfe, 1, 0};
    uint8_t              u8[6];
    float                f32[6];
    put_file(in_folder("train-images-idx3-ubyte"), idx, sizeof idx);
    assert_string_equal(converted(in_folder("train-images-idx3-ubyte"), COT_U8, u8), "");
    assert_memory_equal(u8, idx + 12, 6);
    assert_string_equal(converted(in_folder("train-images-idx3-ubyte"), COT_F32, f32), "");
    assert_true(f32[5] == 255);
    put_file(in_folder("idx"), big, sizeof big);
    int32_t i32[2];
    assert_string_equal(converted(in_folder("idx"), COT_I32, i32), "");
    assert_true(i32[0] == -2 && i32[1] == 256);
    char expected[300];
    put_file(in_folder("idx"), idx, sizeof idx - 1);
    snprintf(expected, sizeof expected, "%s is truncated: its shape takes 6 bytes, and 5 follow its head at byte 12",
             in_folder("idx"));
    assert_string_equal(converted(in_folder("idx"), COT_U8, u8), expected);
    put_file(in_folder("idx"), idx, 7);
    snprintf(expected, sizeof expected, "%s is truncated: its 2 axes take 12 bytes, and the file has 7",
             in_folder("idx"));
    assert_string_equal(converted(in_folder("idx"), COT_U8, u8), expected);
}

static void tables_are_read(void **state) {
    (void)state;
    static const char text[] = "x,\"y\"\n1,2.5\n-3,\n";
    const char       *path   = in_folder("t.csv");
    double            x[2];
    float             y[2];
    char              expected[300];
    put_file(path, text, sizeof text - 1);
    cot_file *f = cot_file_open(path, NULL);
    assert_string_equal(cot_file_message(f), "");
    assert_int_equal(cot_file_count(f), 2);
    assert_int_equal(cot_file_find(f, "y"), 1);
    assert_int_equal(cot_file_size(f, 0), 2);
    assert_int_equal(cot_file_read(f, 0, COT_F64, x), COT_OK);
    assert_int_equal(cot_file_read(f, 1, COT_F32, y), COT_OK);
    assert_true(x[0] == 1 && x[1] == -3 && y[0] == 2.5f && isnan(y[1]));
    cot_file_close(f);
    put_file(path, "1 2\n3 word\n", 11);
    f = cot_file_open(path, NULL);
    assert_int_equal(cot_file_find(f, "1"), 1);
    assert_int_equal(cot_file_read(f, 1, COT_F64, x), COT_VALUE);
    snprintf(expected, sizeof expected,
             "row 2 (line 2 of %s), column 1: 'word' is not a number; a # before the line leaves it out", path);
    assert_string_equal(cot_file_message(f), expected);
    cot_file_close(f);
}

/* 100 times "0,1,2\n", as gzip -9n packs it */
static void gzip_is_unpacked(void **state) {
    (void)state;
    char command[300];
    if (!cot__has_zlib() || system("gzip --version > /dev/null 2>&1") != 0) skip();
    FILE *file = fopen(in_folder("z.csv"), "wb");
    assert_non_null(file);
    for (int k = 0; k < 10000; k++) fprintf(file, "%d,%d\n", k, 2 * k);
    fclose(file);
    snprintf(command, sizeof command, "cd %s && gzip -k z.csv && cat z.csv.gz z.csv.gz > twice.csv.gz", test_folder);
    assert_int_equal(system(command), 0);
    static double x[20000];
    cot_file     *f = cot_file_open(in_folder("z.csv.gz"), NULL);
    assert_string_equal(cot_file_message(f), "");
    assert_int_equal(cot_file_size(f, 1), 10000);
    assert_int_equal(cot_file_read(f, 1, COT_F64, x), COT_OK);
    assert_true(x[9999] == 19998);
    cot_file_close(f);
    f = cot_file_open(in_folder("twice.csv.gz"), NULL);
    assert_string_equal(cot_file_message(f), "");
    assert_int_equal(cot_file_size(f, 0), 20000);
    cot_file_close(f);
    /* every cut and altered byte is found, but for bytes of the head that mean nothing */
    size_t         n;
    unsigned char *bytes = get_file(in_folder("z.csv.gz"), &n);
    for (size_t cut = 18; cut < n; cut += 997) {
        put_file(in_folder("cut.csv.gz"), bytes, cut);
        f = cot_file_open(in_folder("cut.csv.gz"), NULL);
        assert_int_equal(cot_file_status(f), COT_VALUE);
        assert_non_null(strstr(cot_file_message(f), "is damaged"));
        cot_file_close(f);
    }
    for (size_t at = 20; at < n; at += 1009) {
        bytes[at] ^= 4;
        put_file(in_folder("cut.csv.gz"), bytes, n);
        bytes[at] ^= 4;
        f = cot_file_open(in_folder("cut.csv.gz"), NULL);
        assert_int_not_equal(cot_file_status(f), COT_OK);
        cot_file_close(f);
    }
    free(bytes);
}

static void packed_npz(void **state) {
    (void)state;
    sample s;
    char   why[500];
    make(&s, true);
    cot_status status = cot_file_save(in_folder("p.npz"), s.n, s.names, s.arrays, &(cot_save_options){.compress = true},
                                      why, sizeof why);
    if (!cot__has_zlib()) {
        assert_int_equal(status, COT_LIMIT);
        assert_non_null(strstr(why, "zlib1g"));
        return;
    }
    assert_string_equal(why, "");
    same_as(&s, in_folder("p.npz"));
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Whatever the file is, it is read or refused, and reading takes no more than it may. */
static void look(const char *path, counted *c) {
    cot_file *f = cot_file_open(path, &(cot_allocator){counted_alloc, c});
    assert_non_null(f);
    assert_int_equal(cot_file_status(f) == COT_OK, cot_file_message(f)[0] == 0);
    for (int k = 0; k < cot_file_count(f); k++) {
        double *out = calloc((size_t)cot_file_size(f, k) + 1, 8);
        assert_non_null(out);
        cot_file_read(f, k, cot_file_dtype(f, k), out);
        free(out);
    }
    cot_file_close(f);
    assert_int_equal(c->used, 0);
}

static void damaged_files_are_errors(void **state) {
    (void)state;
    static const char *const kinds[] = {"d.safetensors", "d.npz", "d.npy"};
    sample                   s;
    counted                  c = {0};
    make(&s, true);
    for (int k = 0; k < 3; k++) {
        const char *path = in_folder(kinds[k]);
        assert_int_equal(cot_file_save(path, k == 2 ? 1 : s.n, s.names, s.arrays, NULL, NULL, 0), COT_OK);
        size_t         n;
        unsigned char *bytes = get_file(path, &n);
        for (size_t cut = 0; cut < n; cut++) {
            put_file(path, bytes, cut);
            cot_file *f = cot_file_open(path, NULL);
            assert_int_not_equal(cot_file_status(f), COT_OK);
            assert_non_null(strstr(cot_file_message(f), path));
            cot_file_close(f);
        }
        for (size_t at = 0; at < n; at++)
            for (int bit = 0; bit < 8; bit += 3) {
                bytes[at] ^= (unsigned char)(1 << bit);
                put_file(path, bytes, n);
                bytes[at] ^= (unsigned char)(1 << bit);
                look(path, &c);
            }
        free(bytes);
    }
}

/* A header of 0x8b1f bytes begins as what gzip packed does. */
static void a_number_is_no_mark_of_gzip(void **state) {
    (void)state;
    enum { HEADER = 0x8b1f };
    static const char start[] = "{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}";
    static char       bytes[8 + 0x80000 + HEADER + 2];
    for (int k = 0; k < 2; k++) {
        /* … and with a third byte of 8 too, where only the name can tell */
        size_t n = HEADER + (k ? 0x80000 : 0);
        memset(bytes, ' ', sizeof bytes);
        for (int i = 0; i < 8; i++) bytes[i] = (char)(n >> 8 * i);
        memcpy(bytes + 8, start, sizeof start - 1);
        put_file(in_folder("g.safetensors"), bytes, 8 + n + 2);
        cot_file *f = cot_file_open(in_folder("g.safetensors"), NULL);
        assert_string_equal(cot_file_message(f), "");
        assert_int_equal(cot_file_size(f, 0), 2);
        cot_file_close(f);
    }
}

/* All members of an archive of two are made the first. */
static void members_that_overlap_are_refused(void **state) {
    (void)state;
    double      x[2] = {1, 2};
    const char *names[] = {"a", "b"}, *path = in_folder("o.npz");
    cot_array   two[] = {{COT_F64, COT_SHAPE(2), 2, x}, {COT_F64, COT_SHAPE(2), 2, x}};
    size_t      n;
    assert_int_equal(cot_file_save(path, 2, names, two, NULL, NULL, 0), COT_OK);
    unsigned char *bytes = get_file(path, &n);
    for (size_t at = 0; at + 46 <= n; at++)
        if (memcmp(bytes + at, "PK\1\2", 4) == 0) memset(bytes + at + 42, 0, 4);
    put_file(path, bytes, n);
    free(bytes);
    cot_file *f = cot_file_open(path, NULL);
    assert_int_equal(cot_file_status(f), COT_VALUE);
    assert_non_null(strstr(cot_file_message(f), ".npy overlaps another"));
    cot_file_close(f);
}

static void errors_say_what(void **state) {
    (void)state;
    char        why[500], expected[600];
    double      x = 1;
    cot_array   a = {COT_F64, COT_SCALAR, 1, &x}, two[2] = {a, a};
    const char *names[2] = {"x", "x"};
    assert_int_equal(cot_file_save(NULL, 1, names, &a, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] the path is NULL");
    assert_int_equal(cot_file_save("x.txt", 1, names, &a, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(
        why, "[file_save] x.txt ends neither in .safetensors nor in .npy nor in .npz, which says what to write");
    assert_int_equal(cot_file_save("x.npy", 2, names, two, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] x.npy is to hold 2 arrays, and an .npy file holds one; write an .npz file");
    assert_int_equal(cot_file_save("x.npz", 2, names, two, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] two tensors for x.npz have the name x");
    assert_int_equal(cot_file_save("x.safetensors", 1, (const char *[]){"__metadata__"}, two, NULL, why, sizeof why),
                     COT_VALUE);
    assert_string_equal(why, "[file_save] a tensor for x.safetensors has the name __metadata__, which .safetensors "
                             "files keep for the texts beside tensors");
    assert_int_equal(cot_file_save("x.npz", 2, NULL, two, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] the list of 2 tensors for x.npz is NULL or negative");
    assert_int_equal(cot_file_save("x.npz", -1, names, two, NULL, why, sizeof why), COT_VALUE);
    names[0] = NULL;
    assert_int_equal(cot_file_save("x.npz", 1, names, two, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] a name of a tensor for x.npz is NULL");
    names[0] = "\xff";
    assert_int_equal(cot_file_save("x.npz", 1, names, two, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] a name of a tensor for x.npz is not UTF-8");
    names[0] = "x";
    a.dtype  = COT_BF16;
    assert_int_equal(cot_file_save("x.npz", 1, names, &a, NULL, why, sizeof why), COT_DTYPE);
    assert_string_equal(why, "[file_save] NumPy knows no bf16, which x in x.npz is; cast it to f32");
    a.size = 2;
    assert_int_equal(cot_file_save("x.npz", 1, names, &a, NULL, why, sizeof why), COT_SHAPE);
    assert_string_equal(why, "[file_save] the tensor x for x.npz has a shape that is not of its 2 elements");
    a = (cot_array){COT_F64, COT_SCALAR, 1, NULL};
    assert_int_equal(cot_file_save("x.npz", 1, names, &a, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] the elements of the tensor x for x.npz are NULL");
    a.data             = &x;
    cot_text_pair text = {"key", NULL};
    assert_int_equal(
        cot_file_save("x.safetensors", 1, names, &a, &(cot_save_options){.pairs = 1, .texts = &text}, why, sizeof why),
        COT_VALUE);
    assert_string_equal(why, "[file_save] text 0 for x.safetensors, or its key, is NULL");
    assert_int_equal(
        cot_file_save("x.npz", 1, names, &a, &(cot_save_options){.pairs = 1, .texts = &text}, why, sizeof why),
        COT_VALUE);
    assert_int_equal(cot_file_save(test_folder, 1, names, &a, NULL, why, sizeof why), COT_VALUE);
    assert_int_equal(cot_file_save("/none/x.npy", 1, names, &a, NULL, why, sizeof why), COT_VALUE);
    assert_string_equal(why, "[file_save] cannot write /none/x.npy: No such file or directory");

    cot_file *f = cot_file_open(NULL, NULL);
    assert_int_equal(cot_file_status(f), COT_VALUE);
    assert_string_equal(cot_file_message(f), "the path is NULL");
    assert_int_equal(cot_file_count(f), 0);
    cot_file_close(f);
    f = cot_file_open("/none.npy", NULL);
    assert_string_equal(cot_file_message(f), "cannot read /none.npy: No such file or directory");
    cot_file_close(f);
    f = cot_file_open(test_folder, NULL);
    snprintf(expected, sizeof expected, "cannot read %s: it is not a regular file", test_folder);
    assert_string_equal(cot_file_message(f), expected);
    cot_file_close(f);
    put_file(in_folder("what"), "hello there", 11);
    f = cot_file_open(in_folder("what"), NULL);
    assert_non_null(strstr(cot_file_message(f), "is of no kind that is known"));
    cot_file_close(f);
    assert_int_equal(cot_file_status(NULL), COT_MEMORY);
    assert_int_equal(cot_file_count(NULL), 0);
    assert_int_equal(cot_file_find(NULL, "x"), -1);
    assert_int_equal(cot_file_read(NULL, 0, COT_F64, &x), COT_MEMORY);
    assert_null(cot_file_text(NULL, "x"));
    cot_file_close(NULL);
    assert_int_equal(cot_file_save(in_folder("e.npy"), 1, names, &a, NULL, NULL, 0), COT_OK);
    f = cot_file_open(in_folder("e.npy"), NULL);
    assert_int_equal(cot_file_read(f, 1, COT_F64, &x), COT_VALUE);
    assert_non_null(strstr(cot_file_message(f), "has 1 tensors, and none is number 1"));
    /* the first error stays */
    assert_int_equal(cot_file_read(f, 0, COT_F64, &x), COT_VALUE);
    cot_file_close(f);
    f = cot_file_open(in_folder("e.npy"), NULL);
    assert_int_equal(cot_file_read(f, 0, COT_F64, NULL), COT_VALUE);
    cot_file_close(f);
    f = cot_file_open(in_folder("e.npy"), NULL);
    assert_int_equal(cot_file_read(f, 0, COT_DTYPE_COUNT, &x), COT_DTYPE);
    cot_file_close(f);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A limit on the size of files stands for a disk that is full. */
static void a_failing_write_leaves_the_old_file(void **state) {
    (void)state;
    static const char *const kinds[] = {"f.safetensors", "f.npz", "f.npy"};
    static double            many[1000];
    const char              *name = "x";
    char                     why[300];
    for (int k = 0; k < 3; k++) {
        const char   *path  = in_folder(kinds[k]);
        cot_array     small = {COT_F64, COT_SHAPE(3), 3, many}, large = {COT_F64, COT_SHAPE(1000), 1000, many};
        struct rlimit before, limit;
        int           files = count_files(test_folder) + 1;
        assert_int_equal(cot_file_save(path, 1, &name, &small, NULL, NULL, 0), COT_OK);
        getrlimit(RLIMIT_FSIZE, &before);
        limit = (struct rlimit){4000, before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        cot_status status = cot_file_save(path, 1, &name, &large, NULL, why, sizeof why);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(status, COT_VALUE);
        assert_non_null(strstr(why, "cannot write"));
        cot_file *f = cot_file_open(path, NULL);
        assert_int_equal(cot_file_size(f, 0), 3);
        cot_file_close(f);
        assert_int_equal(count_files(test_folder), files);
    }
    /* a device is written to directly, and says that it is full */
    cot_array large = {COT_F64, COT_SHAPE(1000), 1000, many};
    if (symlink("/dev/full", in_folder("full.npy")) == 0 && access("/dev/full", W_OK) == 0) {
        assert_int_equal(cot_file_save(in_folder("full.npy"), 1, &name, &large, NULL, why, sizeof why), COT_VALUE);
        assert_non_null(strstr(why, strerror(ENOSPC)));
    }
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    static const char *const kinds[] = {"m.safetensors", "m.npz", "m.csv"};
    sample                   s;
    make(&s, true);
    put_file(in_folder("m.csv"), "a,b\n1,2\n3,4\n", 12);
    for (int k = 0; k < 3; k++) {
        counted c    = {0};
        bool    fine = k == 2;
        for (int64_t at = 1; !fine && at < 100; at++) {
            c                  = (counted){.fail_at = at};
            cot_save_options o = {.allocator = {counted_alloc, &c}};
            char             why[300];
            cot_status       status = cot_file_save(in_folder(kinds[k]), s.n, s.names, s.arrays, &o, why, sizeof why);
            assert_int_equal(c.used, 0);
            fine = status == COT_OK;
            if (!fine) assert_int_equal(status, COT_MEMORY);
            assert_int_equal(fine, c.calls < at);
        }
        assert_true(fine);
        fine = false;
        for (int64_t at = 1; !fine && at < 200; at++) {
            c           = (counted){.fail_at = at};
            cot_file *f = cot_file_open(in_folder(kinds[k]), &(cot_allocator){counted_alloc, &c});
            uint8_t   out[48];
            for (int i = 0; i < cot_file_count(f); i++) {
                cot_dtype d = k == 2 ? COT_F32 : cot_file_dtype(f, i);
                cot_file_read(f, i, d, out);
            }
            fine = f && cot_file_status(f) == COT_OK;
            if (!fine) assert_int_equal(cot_file_status(f), COT_MEMORY);
            assert_int_equal(fine, c.calls < at);
            cot_file_close(f);
            assert_int_equal(c.used, 0);
        }
        assert_true(fine);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, data_setup, data_teardown)
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_comes_back),
        TEST(none_and_scalars),
        TEST(conversions_are_exact_or_errors),
        TEST(idx_is_read),
        TEST(tables_are_read),
        TEST(gzip_is_unpacked),
        TEST(packed_npz),
        TEST(a_number_is_no_mark_of_gzip),
        TEST(members_that_overlap_are_refused),
        TEST(damaged_files_are_errors),
        TEST(errors_say_what),
        TEST(a_failing_write_leaves_the_old_file),
        TEST(any_allocation_may_fail),
    };
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
