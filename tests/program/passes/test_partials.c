/* Members of a group that together are the partial of an operation run as its kernel: those of all
 * rules, with the bits of one operation after the other; and not where one of them is needed
 * alone. */
#include "group_test.h"

#include "program/plan_parts.h"
#include "program/passes/passes.h"
#include "rules/elementwise_table.h"

/* ---- a rule written down --------------------------------------------------------------------- */

typedef struct rule {
    draft           *d;
    const cot__tree *at; /* the node that comes next */
    cot_dtype        dtype;
    uint32_t         x[COT__PARTIAL_READS];
    int              operations;
    bool             plain; /* all numbers are plain ones */
} rule;

enum { ROWS = 40, COLUMNS = 70 };

/* A plain number stays one in an operation of two operands. */
static int64_t write_rule(rule *r, double *number) {
    const cot__tree *tree = r->at++;
    int64_t          x[3];
    double           c, own = 0;
    switch (tree->what) {
    case TREE_OPERAND: return r->x[tree->op];
    case TREE_RESULT: return r->x[COT__PARTIAL_Z];
    case TREE_G: return r->x[COT__PARTIAL_G];
    case TREE_NUMBER: return *number = cot__tree_number(tree), NUM;
    }
    int arity = cot__elementwise_table[tree->op].arity;
    for (int i = 0; i < arity; i++) {
        x[i] = write_rule(r, &c);
        if (x[i] != NUM) continue;
        if (arity == 2) own = c;
        else x[i] = constant(r->d, r->dtype, SHAPE(ROWS, COLUMNS), c), r->plain = false;
    }
    r->operations++;
    return operation_of(r->d, tree->op, (operands){arity, {x[0], x[1], x[2]}}, &(more){.number = own});
}

static uint32_t array(draft *d, cot_dtype dtype) { return input(d, dtype, SHAPE(ROWS, COLUMNS)); }

/* Partial k of an operation, of a sum so that there is a group. */
static uint32_t write_partial(rule *r, draft *d, cot_dtype dtype, int which, int k) {
    double number;
    draft_open(d, NULL);
    *r = (rule){.d = d, .at = cot__elementwise_table[which].partial[k], .dtype = dtype, .plain = true};
    for (int i = 0; i < COT__PARTIAL_READS; i++) r->x[i] = array(d, dtype);
    r->x[COT__PARTIAL_G] = op(d, OP_add, X(r->x[COT__PARTIAL_G], r->x[0]));
    return (uint32_t)write_rule(r, &number);
}

/* ---- what is found --------------------------------------------------------------------------- */

/* How many partials there are in all groups; the first of the last group. */
static int find(const cot__program *p, cot__partial *found) {
    heard        h;
    cot__caller  caller = {"test", &h, hear_error, hear_note, NULL};
    cot__plan    plan;
    cot__partial all[COT__MOST_PARTIALS];
    int          n = 0, here;
    assert_true(cot__plan_open(&plan, p, &cot__cpu_backend, NULL, NULL, true, &caller));
    for (uint32_t k = 0; k < plan.fusion.groups; k++, n += here)
        if ((here = cot__find_partials(&plan, &plan.fusion.group[k], all))) *found = all[here - 1];
    cot__plan_close(&plan);
    return n;
}

/* Closes the draft: so many are found, and the bits are the same. */
static void finds(draft *d, int want, cot__partial *found) {
    void         *in[16];
    cot__program *p = draft_close(d);
    int           got = find(p, found);
    TEST_CHECK(got == want, "%d partials instead of %d", got, want);
    fill_inputs(p, 5, in);
    groups_keep_bits(p, in, 5);
    cot__program_release(p);
}

static void all_rules_keep_their_bits(void **state) {
    static const cot_dtype dtypes[] = {COT_F32, COT_F64, COT_BF16};
    int                    many = 0;
    (void)state;
    for (int t = 0; t < TEST_COUNT(dtypes); t++)
        for (int which = 0; which < OP_elementwise_count; which++)
            for (int k = 0; k < cot__elementwise_table[which].arity; k++) {
                const cot__tree *tree = cot__elementwise_table[which].partial[k];
                draft            d;
                rule             r;
                cot__partial     found;
                /* where() wants a truth */
                if (!tree || tree->what != TREE_OP || which == OP_where) continue;
                uint32_t z = write_partial(&r, &d, dtypes[t], which, k);
                bool     one = r.operations >= COT__SHORTEST_PARTIAL && r.plain && dtypes[t] != COT_BF16;
                output(&d, op(&d, OP_sub, X(z, r.x[0])));
                finds(&d, one, &found);
                many += one;
            }
    TEST_CHECK(many > 30, "only %d rules have partials of that length", many);
    test_verdict();
}

/* As passes leave it: what stands in a rule twice is computed once. */
static void shared_words_belong_to_one_partial(void **state) {
    draft        d;
    rule         r;
    cot__partial found;
    (void)state;
    output(&d, write_partial(&r, &d, COT_F32, OP_gelu_tanh, 0));
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_same);
    assert_true(find(q, &found) == 1 && found.op == OP_gelu_tanh && found.last == q->operations - 1);
    assert_true(q->operations < p->operations && found.first == 1);
    cot__program_release(p);
    cot__program_release(q);
}

/* ---- what is none ---------------------------------------------------------------------------- */

/* g (1 - z²), as the way back through tanh has it, with something else. */
typedef struct tanh_back { uint32_t g, z, square, rest, end; } tanh_back;

static tanh_back begin(draft *d, double one) {
    draft_open(d, NULL);
    uint32_t x = array(d, COT_F32);
    tanh_back b = {.g = op(d, OP_exp, X(x)), .z = array(d, COT_F32)};
    b.square = op(d, OP_square, X(b.z));
    b.rest = op(d, OP_sub, X(NUM, b.square), .number = one);
    return b;
}

static void a_number_of_another_rule_is_none(void **state) {
    cot__partial found;
    (void)state;
    for (int k = 0; k < 2; k++) {
        draft     d;
        tanh_back b = begin(&d, k ? 1.5 : 1);
        output(&d, op(&d, OP_smul, X(b.g, b.rest)));
        finds(&d, !k, &found);
    }
    test_verdict();
}

/* The way back through a ReLU reads its zero as a constant; -0 is another number. */
static void a_constant_without_axes_is_a_number(void **state) {
    cot__partial found;
    (void)state;
    for (int k = 0; k < 3; k++) {
        draft d;
        draft_open(&d, NULL);
        uint32_t x = array(&d, COT_F32), g = op(&d, OP_exp, X(x)), above = op(&d, OP_greater, X(x, NUM));
        uint32_t zero = constant(&d, COT_F32, COT_SCALAR, (double[]){0, -0.0, 1}[k]);
        output(&d, op(&d, OP_where, X(above, g, zero)));
        finds(&d, k == 0, &found);
    }
    test_verdict();
}

static void what_others_read_is_made_by_itself(void **state) {
    cot__partial found;
    (void)state;
    for (int k = 0; k < 3; k++) {
        draft     d;
        tanh_back b = begin(&d, 1);
        uint32_t  z = op(&d, OP_smul, X(b.g, b.rest));
        if (k == 0) output(&d, b.rest);                             /* an output */
        if (k == 1) output(&d, op(&d, OP_add, X(z, b.square)));     /* a later member */
        if (k == 2) output(&d, op(&d, OP_sum, X(b.rest), .ints = 2, .at = {3, 0})); /* a fold */
        output(&d, z);
        finds(&d, 0, &found);
    }
    test_verdict();
}

/* What it would read last may be written by then. */
static void nothing_else_stands_between(void **state) {
    draft        d;
    cot__partial found;
    (void)state;
    tanh_back b = begin(&d, 1);
    output(&d, op(&d, OP_sin, X(b.g)));
    output(&d, op(&d, OP_smul, X(b.g, b.rest)));
    finds(&d, 0, &found);
    test_verdict();
}

/* z is the square of something else, and both are read: the square is no operand. */
static void operands_are_one_value_each(void **state) {
    draft        d;
    cot__partial found;
    (void)state;
    draft_open(&d, NULL);
    uint32_t g = array(&d, COT_F32), z = op(&d, OP_exp, X(g)), y = array(&d, COT_F32);
    uint32_t rest = op(&d, OP_sub, X(NUM, y), .number = 1);
    output(&d, op(&d, OP_smul, X(g, op(&d, OP_mul, X(z, rest))))); /* a sigmoid's has z twice */
    finds(&d, 0, &found);
    test_verdict();
}

/* Nor is a view of what the partial would make on the way. */
static void a_view_of_a_word_is_no_operand(void **state) {
    draft        d;
    cot__partial found;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = array(&d, COT_F32), z = op(&d, OP_exp, X(x)), square = op(&d, OP_square, X(z));
    uint32_t rest = op(&d, OP_sub, X(NUM, square), .number = 1);
    output(&d, op(&d, OP_smul, X(op(&d, OP_detach, X(rest)), rest)));
    finds(&d, 0, &found);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_rules_keep_their_bits),
        cmocka_unit_test(shared_words_belong_to_one_partial),
        cmocka_unit_test(a_number_of_another_rule_is_none),
        cmocka_unit_test(a_constant_without_axes_is_a_number),
        cmocka_unit_test(what_others_read_is_made_by_itself),
        cmocka_unit_test(nothing_else_stands_between),
        cmocka_unit_test(operands_are_one_value_each),
        cmocka_unit_test(a_view_of_a_word_is_no_operand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
