/* file_test.h: the common part of tests of program files: programs to save, files in memory, and
 * who hears what is refused. */
#ifndef COT_FILE_TEST_H
#define COT_FILE_TEST_H

#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "support/program_test.h"
#include "support/tape_test.h"

#include "program/build.h"

typedef struct heard { int errors; cot_status code; char text[512]; } heard;

static inline void hear_error(const cot__caller *c, cot_status code, const char *text) {
    heard *h = c->to;
    if (h->errors++) return;
    h->code = code;
    snprintf(h->text, sizeof h->text, "%s", text);
}
static inline void hear_note(const cot__caller *c, const char *text) { (void)c, (void)text; }

/* Forgets what was heard before. */
static inline cot__caller listen(heard *h, const char *name) {
    *h = (heard){0};
    return (cot__caller){name, h, hear_error, hear_note, NULL};
}

/* ---- files in memory ------------------------------------------------------------------------- */

static inline saved save_program(const cot__program *p) {
    heard       h;
    cot__caller caller = listen(&h, "save");
    saved       s = {0};
    bool        fine = cot__program_save(p, append_bytes, &s, &caller);
    assert_string_equal(h.text, "");
    assert_true(fine);
    return s;
}

/* Corrects the checksum, without which hardly any change gets further. */
static inline void put_sum(unsigned char *bytes, size_t size) {
    cot__to_bytes(bytes + size - 8, cot__checksum(0, bytes, size - 8), 8);
}

/* ---- programs -------------------------------------------------------------------------------- */

static const cot__type SCALAR = {COT_F64, {0, {0}}}, MATRIX = {COT_F32, {2, {2, 3}}}, WIDE = {COT_F32, {2, {3, 4}}};

#define X(...) ((const uint32_t[]){__VA_ARGS__})

static inline uint32_t append(cot__builder *b, int op, int n, const uint32_t *x, double number, const cot__attr *attr,
                              const cot__type *asked) {
    return cot__build_operation(b, &(cot__append){.op = op, .n = n, .x = x, .number = number, .attr = attr,
                                                  .asked = asked, .name = cot__op_of(op)->name,
                                                  .file = op < OP_structural ? "model.c" : NULL, .line = 42 + op % 3});
}

typedef union ints { cot__attr attr; char room[sizeof(cot__attr) + 4 * sizeof(int64_t)]; } ints;
static inline const cot__attr *make_ints(ints *a, double number, uint32_t n, const int64_t *of) {
    a->attr = (cot__attr){.nints = n, .number = number};
    for (uint32_t k = 0; k < n; k++) a->attr.ints[k] = of[k];
    return &a->attr;
}

/* Nothing at all. */
static inline void build_empty(cot__builder *b) { (void)b; }

/* One input, given out. */
static inline void build_input(cot__builder *b) { cot__build_output(b, cot__build_input(b, &SCALAR)); }

/* sum((a + 1) w · 2) over axis 1, and eˣ of a scalar: values of all origins, mixed. */
static inline void build_products(cot__builder *b) {
    const float ones[] = {1, 1, 1, 1, 1, 1};
    void       *elements = NULL;
    ints        a;
    cot__build_input(b, &MATRIX);
    cot__build_input(b, &WIDE);
    if (cot__build_constant(b, &MATRIX, &elements) != COT__NO_VALUE) memcpy(elements, ones, sizeof ones);
    append(b, OP_add, 2, X(0, 2), 0, NULL, NULL);             /* %3 */
    append(b, OP_matmul, 2, X(3, 1), 0, NULL, NULL);          /* %4 */
    cot__build_input(b, &SCALAR);                             /* %5 */
    append(b, OP_mul, 2, X(4, COT__NO_VALUE), 2, NULL, NULL); /* %6 */
    append(b, OP_sub, 2, X(COT__NO_VALUE, 6), -0.0, NULL, NULL);
    append(b, OP_sum, 1, X(7), 0, make_ints(&a, 0, 2, (int64_t[]){2, 0}), &MATRIX);
    append(b, OP_exp, 1, X(5), 0, NULL, NULL);
    cot__build_output(b, 8);
    cot__build_output(b, 9);
    cot__build_output(b, 8);
}

/* A constant of each dtype, in bits that no arithmetic makes: NaNs that carry something, −0. */
static inline void build_constants(cot__builder *b) {
    for (int d = 0; d < COT_DTYPE_COUNT; d++) {
        cot__type type = {(cot_dtype)d, {2, {3, 3}}};
        void     *elements = NULL;
        uint32_t  v = cot__build_constant(b, &type, &elements);
        if (v == COT__NO_VALUE) return;
        for (int k = 0; k < 9 * cot__dtype_size(type.dtype); k++)
            ((unsigned char *)elements)[k] = (unsigned char)(d == COT_BOOL ? k % 2 : 0xff - 31 * k);
        cot__build_output(b, v);
    }
}

/* A type, a shape and a dtype that are asked for; extents of 0; labels without a file. */
static inline void build_shapes(cot__builder *b) {
    static const cot__type none = {COT_I32, {3, {4, 0, 5}}}, flat = {COT_I32, {1, {0}}}, rows = {COT_F32, {2, {3, 2}}};
    ints                   a;
    uint32_t               x = cot__build_input(b, &none), y = cot__build_input(b, &MATRIX);
    x = append(b, OP_reshape, 1, X(x), 0, NULL, &flat);
    y = append(b, OP_reshape, 1, X(y), 0, NULL, &rows);
    y = append(b, OP_permute, 1, X(y), 0, make_ints(&a, 0, 2, (int64_t[]){1, 0}), NULL);
    cot__build_output(b, x);
    cot__build_output(b, append(b, OP_less, 2, X(y, COT__NO_VALUE), NAN, NULL, NULL));
}

/* x · 2: the smallest with an operation. */
static inline void build_twice(cot__builder *b) {
    static const cot__type row = {COT_F32, {1, {3}}};
    uint32_t               x = cot__build_input(b, &row);
    x = cot__build_operation(b, &(cot__append){.op = OP_mul, .n = 2, .x = X(x, COT__NO_VALUE), .number = 2,
                                               .name = "mul", .file = "a.c", .line = 7});
    cot__build_output(b, x);
}

typedef void build_program(cot__builder *b);
static const struct { const char *name; build_program *build; } PROGRAMS[] = {
    {"empty", build_empty},         {"input", build_input},   {"products", build_products},
    {"constants", build_constants}, {"shapes", build_shapes}, {"twice", build_twice},
};
enum { PROGRAM_COUNT = sizeof PROGRAMS / sizeof *PROGRAMS };

/* NULL after an error. */
static inline cot__program *build_with(build_program *build, heard *h, const cot_allocator *al) {
    cot__caller  caller = listen(h, "build");
    cot__builder b;
    cot__builder_open(&b, al, &caller);
    build(&b);
    return cot__builder_close(&b);
}

static inline cot__program *build_one(build_program *build) {
    heard         h;
    cot__program *p = build_with(build, &h, NULL);
    assert_string_equal(h.text, "");
    assert_non_null(p);
    return p;
}

/* Is it legal? */
static inline void check_program(const cot__program *p) {
    char      why[512] = "";
    cot__text text = cot__text_buffer(why, sizeof why);
    if (!cot__program_check(p, &text)) fail_msg("%s", why);
}

#endif
