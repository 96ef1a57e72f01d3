/* The pass checks: what runs for its check of positions alone reads nothing but these. */
#include "pass_test.h"

#include "program/loop_form.h"
#include "program/run.h"

enum { ROWS = 2, COLUMNS = 3 };

/* A look at labels, or at positions, that nobody reads: what the run says of it. */
typedef struct case_of { const char *name; int op; cot__asker who; bool along; int64_t bad; } case_of;
static const case_of cases[] = {
    {"take", OP_take, COT__FOR_ITSELF, false, 2},
    {"embedding", OP_take, COT__FOR_EMBEDDING, false, -3},
    {"scatter_add", OP_scatter_add, COT__FOR_ITSELF, false, 2},
    {"softmax_cross_entropy", OP_softmax_cross_entropy, COT__FOR_ITSELF, false, -1},
    {"cross_entropy", OP_cross_entropy, COT__FOR_ITSELF, false, COLUMNS},
    {"take_along_axis", OP_take_along_axis, COT__FOR_ITSELF, true, COLUMNS},
    {"nll", OP_take_along_axis, COT__FOR_NLL, true, -1},
};

/* What is looked at is read through a sine, which is work that nobody else needs. */
static cot__program *program_of(const case_of *c) {
    union { cot__attr attr; char room[sizeof(cot__attr) + sizeof(int64_t)]; } a = {.attr = {.nints = 1}};
    draft    d;
    bool     adds = c->op == OP_scatter_add;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(ROWS, COLUMNS));
    uint32_t at = c->along ? input(&d, COT_I64, SHAPE(ROWS, 1)) : input(&d, COT_I64, SHAPE(ROWS));
    uint32_t y = op(&d, OP_sin, X(x));
    a.attr.number = c->who;
    a.attr.ints[0] = c->along;
    cot__build_operation(&d.b, &(cot__append){.op = c->op, .n = 2 + adds, .x = (uint32_t[]){y, at, y}, .name = c->name,
                                              .attr = cot__op_of(c->op)->attrs ? &a.attr : NULL, .file = "here.c",
                                              .line = 12});
    output(&d, op(&d, OP_neg, X(x)));
    return draft_close(&d);
}

/* What a run says, of good positions or with a bad one at the end. */
static void said_by(const cot__program *p, int64_t last, char text[512]) {
    heard         h = {0};
    cot__caller   caller = {"test", &h, hear_error, hear_note, NULL};
    const double  x[ROWS * COLUMNS] = {0};
    const int64_t at[ROWS] = {0, last};
    double        y[ROWS * COLUMNS];
    cot__run     *r = cot__run_create(p, &cot__cpu_backend, NULL, NULL, &caller);
    assert_non_null(r);
    cot__run_go(r, (const void *[]){x, at}, (void *[]){y});
    snprintf(text, 512, "%s", cot__run_message(r));
    cot__run_destroy(r);
}

static bool has(const cot__program *p, int op) {
    bool found = false;
    for (uint32_t k = 0; k < p->operations; k++) found |= p->operation[k].op == op;
    return found;
}

static void a_check_alone_says_the_same_and_reads_positions_alone(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(cases); i++) {
        char          want[512], said[512];
        cot__program *p = program_of(&cases[i]), *q = after(p, cot__pass_checks), *r = after(q, cot__pass_dead);
        said_by(p, cases[i].bad, want), said_by(r, cases[i].bad, said);
        TEST_CHECK(*want && strcmp(want, said) == 0, "%s: \"%s\", and alone \"%s\"", cases[i].name, want, said);
        said_by(r, 1, said);
        TEST_CHECK(!*said, "%s: good positions: %s", cases[i].name, said);
        TEST_CHECK(has(p, OP_sin) && !has(r, OP_sin), "%s reads more than its positions", cases[i].name);
        cot__program *again = after(r, cot__pass_checks);
        TEST_CHECK(again == r, "%s: it is not done with that", cases[i].name);
        cot__program_release(p), cot__program_release(q), cot__program_release(r), cot__program_release(again);
    }
    test_verdict();
}

/* A checkpoint of which nobody reads the result: the rows of a sine at some positions. */
static cot__program *program_of_a_checkpoint(bool read) {
    union { cot__attr attr; char room[sizeof(cot__attr) + COT__LOOP_INTS * sizeof(int64_t)]; } a = {
        .attr = {.nints = COT__LOOP_INTS}};
    draft body, d;
    draft_open(&body, NULL);
    uint32_t x = input(&body, COT_F64, SHAPE(ROWS, COLUMNS)), at = input(&body, COT_I64, SHAPE(ROWS));
    output(&body, op(&body, OP_take, X(op(&body, OP_sin, X(x)), at), .ints = 1));
    cot__program *inner = draft_close(&body);
    draft_open(&d, NULL);
    x = input(&d, COT_F64, SHAPE(ROWS, COLUMNS)), at = input(&d, COT_I64, SHAPE(ROWS));
    a.attr.ints[COT__LOOP_CONSTS] = 2, a.attr.ints[COT__LOOP_NYS] = 1, a.attr.ints[COT__LOOP_FORM] = COT__LOOP_ONCE;
    a.attr.ints[COT__LOOP_LENGTH] = a.attr.ints[COT__LOOP_STATES] = 1;
    uint32_t z = cot__build_operation(&d.b, &(cot__append){.op = OP_loop, .n = 2, .x = (uint32_t[]){x, at},
                                                           .attr = &a.attr, .name = "checkpoint", .bodies = 1,
                                                           .body = &inner});
    cot__program_release(inner);
    output(&d, read ? z : op(&d, OP_neg, X(x)));
    return draft_close(&d);
}

static void a_checkpoint_that_nobody_reads_looks_at_its_data_alone(void **state) {
    (void)state;
    char          want[512], said[512];
    cot__program *p = program_of_a_checkpoint(false), *q = after(p, cot__pass_checks), *r = after(q, cot__pass_bodies);
    said_by(p, ROWS, want), said_by(r, ROWS, said);
    TEST_CHECK(*want && strcmp(want, said) == 0, "\"%s\", and alone \"%s\"", want, said);
    said_by(r, 1, said);
    TEST_CHECK(!*said, "good positions: %s", said);
    TEST_CHECK(has(p->body[0], OP_sin) && !has(r->body[0], OP_sin), "the body computes more than it looks at");
    cot__program *again = after(r, cot__pass_checks), *read = program_of_a_checkpoint(true);
    TEST_CHECK(again == r, "it is not done with that");
    cot__program *kept = after(read, cot__pass_checks);
    TEST_CHECK(kept == read, "a checkpoint that is read changed");
    cot__program_release(p), cot__program_release(q), cot__program_release(r), cot__program_release(again);
    cot__program_release(read), cot__program_release(kept);
    test_verdict();
}

static void what_is_read_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(COLUMNS)), at = input(&d, COT_I64, SHAPE(ROWS));
    output(&d, op(&d, OP_take, X(x, at), .ints = 1));
    stays(&d, cot__pass_checks);
}

static void another_check_stays(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(COLUMNS)), v = input(&d, COT_F64, SHAPE(ROWS));
    op(&d, OP_searchsorted, X(x, v), .ints = 1);
    output(&d, x);
    stays(&d, cot__pass_checks);
}

static void any_allocation_may_fail(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(COLUMNS)), at = input(&d, COT_I64, SHAPE(ROWS));
    op(&d, OP_take, X(op(&d, OP_sin, X(x)), at), .ints = 1);
    output(&d, x);
    survives_no_memory(&d, cot__pass_checks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_check_alone_says_the_same_and_reads_positions_alone),
        cmocka_unit_test(a_checkpoint_that_nobody_reads_looks_at_its_data_alone),
        cmocka_unit_test(what_is_read_stays),
        cmocka_unit_test(another_check_stays),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
