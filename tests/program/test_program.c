/* Programs as data: what the builder takes and refuses, what the grammar says of damaged ones, how
 * they print, and that nothing leaks when memory runs out. */
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "program/build.h"

typedef struct heard { int errors; cot_status code; char text[512]; } heard;

static void hear_error(const cot__caller *c, cot_status code, const char *text) {
    heard *h = c->to;
    if (h->errors++) return;
    h->code = code;
    snprintf(h->text, sizeof h->text, "%s", text);
}
static void hear_note(const cot__caller *c, const char *text) { (void)c, (void)text; }

static const cot__type SCALAR = {COT_F64, {0, {0}}}, MATRIX = {COT_F32, {2, {2, 3}}}, WIDE = {COT_F32, {2, {3, 4}}};

static cot__builder open_builder(heard *h, const cot_allocator *al) {
    cot__builder b;
    cot__caller  caller = {"test", h, hear_error, hear_note, NULL};
    *h = (heard){0};
    cot__builder_open(&b, al, &caller);
    return b;
}

static uint32_t append(cot__builder *b, int op, int n, const uint32_t *x, double number, const cot__attr *attr) {
    return cot__build_operation(b, &(cot__append){.op = op, .n = n, .x = x, .number = number, .attr = attr,
                                                  .name = cot__operation_exists(op) ? cot__op_of(op)->name : "odd",
                                                  .file = "model.c", .line = 42});
}
#define X(...) ((const uint32_t[]){__VA_ARGS__})

/* f(a, b) = (a b) · 2, its sum over axis 1, and a scalar beside it */
static cot__program *build_sample(heard *h, const cot_allocator *al) {
    union { cot__attr attr; char room[sizeof(cot__attr) + 2 * sizeof(int64_t)]; } sum = {.attr = {.nints = 2}};
    const float          ones[] = {1, 1, 1, 1, 1, 1};
    void                *elements = NULL;
    cot__builder         b = open_builder(h, al);
    sum.attr.ints[0] = 2;
    sum.attr.ints[1] = 0;
    cot__build_input(&b, &MATRIX);
    cot__build_input(&b, &WIDE);
    cot__build_input(&b, &SCALAR);
    if (cot__build_constant(&b, &MATRIX, &elements) != COT__NO_VALUE) memcpy(elements, ones, sizeof ones);
    append(&b, OP_add, 2, X(0, 3), 0, NULL);                /* %4 */
    append(&b, OP_matmul, 2, X(4, 1), 0, NULL);             /* %5 */
    append(&b, OP_mul, 2, X(5, COT__NO_VALUE), 2, NULL);    /* %6 */
    append(&b, OP_sum, 1, X(6), 0, &sum.attr);              /* %7 */
    append(&b, OP_exp, 1, X(2), 0, NULL);                   /* %8 */
    cot__build_output(&b, 7);
    cot__build_output(&b, 8);
    return cot__builder_close(&b);
}

static bool check(const cot__program *p, char why[512]) {
    cot__text text = cot__text_buffer(why, 512);
    return cot__program_check(p, &text);
}

/* ---- what is legal --------------------------------------------------------------------------- */

static void a_program_is_built_and_printed(void **state) {
    heard         h;
    char          why[512], text[1024];
    cot__program *p = build_sample(&h, NULL);
    cot__text     to = cot__text_buffer(text, sizeof text);
    (void)state;
    assert_string_equal(h.text, "");
    assert_non_null(p);
    assert_true(check(p, why));
    cot__program_print(p, &to);
    assert_string_equal(text, "%0 = input 0 f32(2,3)\n"
                              "%1 = input 1 f32(3,4)\n"
                              "%2 = input 2 f64\n"
                              "%3 = constant 0 f32(2,3)\n"
                              "%4 = add(%0, %3) f32(2,3)  (model.c:42)\n"
                              "%5 = matmul(%4, %1) f32(2,4)  (model.c:42)\n"
                              "%6 = mul(%5, 2) f32(2,4)  (model.c:42)\n"
                              "%7 = sum(%6) [2 0] f32(2,)  (model.c:42)\n"
                              "%8 = exp(%2) f64  (model.c:42)\n"
                              "gives %7, %8\n");
    cot__program_release(p);
}

static void an_empty_program_is_legal(void **state) {
    heard         h;
    char          why[512];
    cot__builder  b = open_builder(&h, NULL);
    cot__program *p = cot__builder_close(&b);
    (void)state;
    assert_true(check(p, why));
    cot__program_release(p);
}

static void the_last_owner_frees_it(void **state) {
    counting      c = {0};
    heard         h;
    cot_allocator al = {counting_alloc, &c};
    cot__program *p = build_sample(&h, &al), *q = cot__program_share(p);
    (void)state;
    assert_true(c.live > 0);
    assert_true(cot__program_bytes(p) == c.live);
    cot__program_release(p);
    assert_true(c.live > 0);
    assert_int_equal(q->outputs, 2);
    cot__program_release(q);
    assert_true(c.live == 0 && !c.wrong_size);
    cot__program_release(NULL);
}

/* An operation on scalars, its operands, its value and its number: 24 + 8 + 8 + 8 bytes. */
static void a_million_scalar_operations_are_small(void **state) {
    counting      c = {0};
    heard         h;
    char          why[512];
    int           n = test_small() ? 10000 : 1000000;
    cot_allocator al = {counting_alloc, &c};
    cot__builder  b = open_builder(&h, &al);
    (void)state;
    uint32_t x = cot__build_input(&b, &SCALAR);
    for (int k = 0; k < n; k++) x = append(&b, OP_mul, 2, X(x, COT__NO_VALUE), k, NULL);
    cot__build_output(&b, x);
    cot__program *p = cot__builder_close(&b);
    assert_non_null(p);
    assert_true(c.live <= (size_t)n * 48 + 2048);
    assert_true(check(p, why));
    cot__program_release(p);
    assert_true(c.live == 0);
}

/* ---- what is not ----------------------------------------------------------------------------- */

static void refuses(cot__builder *b, heard *h, cot_status code, const char *text) {
    assert_null(cot__builder_close(b));
    assert_string_equal(h->text, text);
    assert_int_equal(h->code, code);
    assert_int_equal(h->errors, 1);
}

#define REFUSED(code, text, ...)                                                                                       \
    do {                                                                                                               \
        heard        h;                                                                                                \
        cot__builder b = open_builder(&h, NULL);                                                                       \
        cot__build_input(&b, &MATRIX);                                                                                 \
        cot__build_input(&b, &WIDE);                                                                                   \
        __VA_ARGS__;                                                                                                   \
        append(&b, OP_neg, 1, X(77), 0, NULL); /* says no more */                                                      \
        refuses(&b, &h, code, text);                                                                                   \
    } while (0)

static void what_is_illegal_is_refused_with_a_sentence(void **state) {
    static const cot__type no_dtype = {(cot_dtype)99, {0, {0}}}, negative = {COT_F64, {1, {-1}}},
                           positions = {COT_I64, {1, {3}}};
    void                  *elements;
    (void)state;
    REFUSED(COT_VALUE, "[odd] there is no operation 1000", append(&b, 1000, 1, X(0), 0, NULL));
    REFUSED(COT_VALUE, "[leaf] a source is no operation of a program", append(&b, OP_leaf, 0, NULL, 0, NULL));
    REFUSED(COT_VALUE, "[pick] a result is picked by its number, not by an operation",
            append(&b, OP_pick, 1, X(0), 0, NULL));
    REFUSED(COT_VALUE, "[sum] it lacks its attributes (axes:m keepdims:f)", append(&b, OP_sum, 1, X(0), 0, NULL));
    REFUSED(COT_VALUE, "[exp] operand 0 is value 2, which is not there", append(&b, OP_exp, 1, X(2), 0, NULL));
    REFUSED(COT_VALUE, "[add] 2 of 2 operands are numbers; one of two may be, in an elementwise operation",
            append(&b, OP_add, 2, X(COT__NO_VALUE, COT__NO_VALUE), 0, NULL));
    REFUSED(COT_VALUE, "[add] operand 1 has shape (3,4), not (2,3); this is no legal operation",
            append(&b, OP_add, 2, X(0, 1), 0, NULL));
    REFUSED(COT_VALUE, "[test] output 0 is value 5, which is not there", cot__build_output(&b, 5));
    REFUSED(COT_DTYPE, "[test] 99 is not a dtype; dtypes are COT_F64 … COT_BOOL", cot__build_input(&b, &no_dtype));
    REFUSED(COT_SHAPE, "[test] axis 0 of shape (-1,) has extent -1; extents are not negative",
            cot__build_constant(&b, &negative, &elements));
    union { cot__attr attr; char room[sizeof(cot__attr) + sizeof(int64_t)]; } place = {.attr = {.nints = 1}};
    place.attr.ints[0] = 1;
    for (int k = 0; k < 4; k++) {
        static const char *const text[] = {"99", "-1", "0.5", "nan"};
        char                     sentence[80];
        place.attr.number = strtod(text[k], NULL);
        snprintf(sentence, sizeof sentence, "[last_writer] positions for %s; this is no legal operation", text[k]);
        REFUSED(COT_VALUE, sentence,
                append(&b, OP_last_writer, 1, X(cot__build_input(&b, &positions)), 0, &place.attr));
    }
    cot__program *body[1] = {NULL};
    REFUSED(COT_VALUE, "[exp] 1 bodies, where at most 0 belong",
            cot__build_operation(&b, &(cot__append){.op = OP_exp, .n = 1, .x = X(0), .name = "exp", .bodies = 1,
                                                    .body = body}));
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Writes over a part of a list, asks, and puts back what was there. */
static void spoil(const cot__program *p, void *part, size_t size, uint64_t value, const char *sentence) {
    uint64_t before = 0;
    char     why[512] = "";
    memcpy(&before, part, size);
    memcpy(part, &value, size);
    assert_false(check(p, why));
    assert_string_equal(why, sentence);
    memcpy(part, &before, size);
    assert_true(check(p, why));
}
#define SPOIL(part, value, sentence) spoil(p, &(part), sizeof(part), (uint64_t)(value), sentence)

static void damaged_programs_are_refused(void **state) {
    heard         h;
    cot__program *p = build_sample(&h, NULL);
    (void)state;
    SPOIL(p->depth, 65, "it says that its bodies nest 65 deep; 64 is the most.");
    SPOIL(p->type[0].ndim, 99, "type 0 has 99 axes, of which 14 extents and strides are there.");
    SPOIL(p->type[0].at, 4000, "type 0 has 2 axes, of which 0 extents and strides are there.");
    SPOIL(p->type[0].dtype, 77, "[program] 77 is not a dtype; dtypes are COT_F64 … COT_BOOL");
    SPOIL(p->extent[p->type[p->value[7].type].at], 9, "%7 has another type than operation 3, sum, gives it.");
    SPOIL(p->extent[p->type[0].at + 2], 9, "type 0 has strides that are not row-major.");
    SPOIL(p->text[p->text_bytes - 1], 'x', "the texts do not begin with the empty one and end with an end.");
    SPOIL(p->label[0].name, 5000, "label 0 has a text that is not there.");
    SPOIL(p->operation[p->operations].operand, 3,
          "the lists of operands and bodies are not as long as the operations say.");
    SPOIL(p->operation[1].operand, 900, "operation 0 has operands or bodies of another.");
    SPOIL(p->operation[1].label, 900, "operation 1 has label 900, which is not there.");
    SPOIL(p->operation[0].op, 1000, "operation 0 has number 1000, which does not exist.");
    SPOIL(p->operation[0].op, OP_leaf, "operation 0, leaf, cannot run in a program.");
    SPOIL(p->operation[0].op, OP_less, "%4 has another type than operation 0, less, gives it.");
    SPOIL(p->operation[0].op, OP_sum, "operation 0, sum, lacks its attributes.");
    SPOIL(p->operation[3].extra, 7, "operation 3, sum, has attributes that are not there.");
    SPOIL(p->attr[0], UINT64_C(1000) << 32, "operation 3, sum, has attributes that are not there.");
    SPOIL(p->attr[2], 1, "operation 3, sum, has an address among its attributes.");
    SPOIL(p->operation[0].results, 0, "operation 0, add, has 0 results; 1 to 4 are possible.");
    SPOIL(p->operation[4].results, 2, "operation 4, exp, makes %8, which is not its own.");
    SPOIL(p->operation[0].result, 900, "operation 0, add, makes %900, which is not its own.");
    SPOIL(p->operation[0].result, 5, "operation 0, add, makes %5, which another makes.");
    SPOIL(p->operand[0], 4, "operand 0 of operation 0, add, is %4, which is not older.");
    SPOIL(p->operand[0], 1, "[add] operand 1 has shape (2,3), not (3,4); this is no legal operation");
    SPOIL(p->operand[0], COT__NO_VALUE, "operation 0, add, has a number for an operand that is not there.");
    SPOIL(p->value[0].type, 40, "%0 has type 40, which is not there.");
    SPOIL(p->value[0].from, 0, "%0 is not made where it says.");
    SPOIL(p->input[1], 0, "%1 is not made where it says.");
    SPOIL(p->constant[0].at, 64, "constant 0 takes 24 bytes from 64 on, of 24.");
    SPOIL(p->constant[0].at, 4, "constant 0 takes 24 bytes from 4 on, of 24.");
    SPOIL(p->output[1], 9, "output 1 is %9, which is not there.");
    cot__program_release(p);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void any_allocation_may_fail(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        counting      c = {.fail_at = at};
        heard         h;
        cot_allocator al = {counting_alloc, &c};
        cot__program *p = build_sample(&h, &al);
        assert_true((p == NULL) == (c.failed > 0));
        if (!p) assert_true(h.code == COT_MEMORY && strstr(h.text, "] out of memory: ") && h.errors == 1);
        cot__program_release(p);
        assert_true(c.live == 0 && c.blocks == 0 && !c.wrong_size);
        if (!c.failed) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_built_and_printed),
        cmocka_unit_test(an_empty_program_is_legal),
        cmocka_unit_test(the_last_owner_frees_it),
        cmocka_unit_test(a_million_scalar_operations_are_small),
        cmocka_unit_test(what_is_illegal_is_refused_with_a_sentence),
        cmocka_unit_test(damaged_programs_are_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
