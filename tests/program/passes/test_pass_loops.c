/* The pass loops: of two loops with the same steps the second, which gives out more, runs alone. */
#include "pass_test.h"

#include "program/loop_form.h"

/* A loop that carries a vector: x → factor x + shift, where the shift is a constant of the body. */
typedef struct sample {
    double  factor, shift;
    int     given;      /* how often the state before a step is given out */
    int64_t length, form, extent, most;
    bool    takes;      /* the body has an effect: it checks positions */
    bool    counts_out; /* a position, which is no float, is given out, too */
    int     line;       /* of the loop and of what it checks */
    double  within;     /* not 0: the factor of a loop within each step */
} sample;
static const sample USUAL = {.factor = 2, .shift = 1, .length = 5, .extent = 3, .most = 100};

static uint32_t loop(draft *d, uint32_t x, const sample *s);

static uint32_t take(draft *d, uint32_t x, uint32_t at, int line) {
    union { cot__attr attr; char room[sizeof(cot__attr) + sizeof(int64_t)]; } a = {.attr = {.nints = 1}};
    a.attr.ints[0] = 0;
    return cot__build_operation(&d->b, &(cot__append){.op = OP_take, .n = 2, .x = (uint32_t[]){x, at}, .attr = &a.attr,
                                                      .name = "take", .file = "loop.c", .line = line});
}

static cot__program *body_of(const sample *s) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE((int)s->extent)), c = constant(&d, COT_F64, SHAPE((int)s->extent), s->shift);
    uint32_t y = op(&d, OP_add, X(op(&d, OP_mul, X(x, NUM), .number = s->factor), c));
    uint32_t at = s->takes || s->counts_out ? constant(&d, COT_I64, SHAPE((int)s->extent), 0) : 0;
    if (s->takes) y = take(&d, y, at, s->line);
    if (s->within != 0) {
        sample inner = USUAL;
        inner.factor = s->within;
        y = loop(&d, y, &inner);
    }
    output(&d, y);
    if (s->counts_out) output(&d, at);
    for (int k = 0; k < s->given; k++) output(&d, x);
    return draft_close(&d);
}

static uint32_t loop(draft *d, uint32_t x, const sample *s) {
    union { cot__attr attr; char room[sizeof(cot__attr) + COT__LOOP_INTS * sizeof(int64_t)]; } a = {
        .attr = {.nints = COT__LOOP_INTS}};
    const int64_t ints[COT__LOOP_INTS] = {0, 1, 0, s->given + s->counts_out, s->form, 0, s->length, s->most, 0};
    memcpy(a.attr.ints, ints, sizeof ints);
    cot__program *body = body_of(s);
    uint32_t      z = cot__build_operation(&d->b, &(cot__append){.op = OP_loop, .n = 1, .x = &x, .attr = &a.attr,
                                                                 .name = "loop", .file = s->line ? "loop.c" : NULL,
                                                                 .line = s->line, .bodies = 1, .body = &body});
    cot__program_release(body);
    return z;
}

/* The square of what one loop carries at the end, and what the other gives out. */
static void draft_two(draft *d, const sample *first, const sample *second) {
    draft_open(d, NULL);
    uint32_t x = input(d, COT_F64, SHAPE(3));
    output(d, op(d, OP_square, X(loop(d, x, first))));
    output(d, loop(d, x, second) + 1);
}

static void one_loop_gives_all(void **state) {
    draft  d;
    sample states = USUAL;
    (void)state;
    states.given = 1;
    draft_two(&d, &USUAL, &states);
    becomes(&d, cot__pass_loops, "%0 = input 0 f64(3,)\n"
                                 "%1, %2 = loop(%0) [0 1 0 1 0 0 5 100 0] f64(3,) f64(5,3)\n"
                                 "    %0 = input 0 f64(3,)\n"
                                 "    %1 = constant 0 f64(3,)\n"
                                 "    %2 = mul(%0, 2) f64(3,)\n"
                                 "    %3 = add(%2, %1) f64(3,)\n"
                                 "    gives %3, %0\n"
                                 "%3 = square(%1) f64(3,)\n"
                                 "gives %3, %2\n");
}

/* Loops of the same input; the pass leaves them alone. */
static void both_stay(const sample *first, const sample *second) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE((int)first->extent));
    loop(&d, x, first), loop(&d, x, second);
    stays(&d, cot__pass_loops);
}

static void loops_that_differ_stay(void **state) {
    sample states = USUAL, other;
    (void)state;
    states.given = 1;
    other = states, other.factor = 3, both_stay(&USUAL, &other);
    other = states, other.shift = 3, both_stay(&USUAL, &other);
    other = states, other.length = 6, both_stay(&USUAL, &other);
    other = states, other.most = 7, both_stay(&USUAL, &other);
    other = states, other.form = COT__LOOP_REVERSE, both_stay(&USUAL, &other);
    both_stay(&states, &USUAL); /* the first gives out more */
}

static void loops_within_are_compared_too(void **state) {
    draft  d;
    sample one = USUAL, states;
    (void)state;
    one.within = 3;
    states = one, states.given = 1, states.within = 4;
    both_stay(&one, &states);
    states.within = 3;
    draft_two(&d, &one, &states);
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_loops);
    assert_int_equal(q->operations, 2);
    cot__program_release(p);
    cot__program_release(q);
}

static void loops_of_other_operands_stay(void **state) {
    draft  d;
    sample states = USUAL;
    (void)state;
    states.given = 1;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(3)), y = input(&d, COT_F64, SHAPE(3));
    loop(&d, x, &USUAL), loop(&d, y, &states);
    stays(&d, cot__pass_loops);
}

static void what_is_no_float_stays(void **state) {
    sample one = USUAL, states = USUAL;
    (void)state;
    one.counts_out = states.counts_out = true, states.given = 1;
    both_stay(&one, &states);
}

/* What is told in the end is told under the name and with the lines of the first loop. */
static void steps_look_at_data_once_where_the_first_loop_stood(void **state) {
    draft  d;
    sample one = USUAL, states = USUAL;
    (void)state;
    one.takes = states.takes = true, states.given = 1;
    one.line = 7, states.line = 8;
    draft_two(&d, &one, &states);
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_loops);
    assert_int_equal(q->operations, 2);
    assert_true(q->effects);
    const cot__program *body = q->body[0];
    assert_int_equal(body->outputs, 2);
    assert_int_equal(body->operation[body->operations - 1].op, OP_take);
    assert_int_equal(body->label[body->operation[body->operations - 1].label].line, 7);
    assert_int_equal(q->label[q->operation[0].label].line, 7);
    cot__program_release(p);
    cot__program_release(q);
}

/* One MiB: 131072 numbers, as 4096 states of 32. */
static void what_would_live_for_longer_is_small(void **state) {
    sample one = USUAL, states;
    draft  d;
    (void)state;
    one.extent = 32, one.length = 4097;
    states = one, states.given = 1;
    both_stay(&one, &states);
    one.length = states.length = 4096;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(32));
    loop(&d, x, &one), loop(&d, x, &states);
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_loops);
    assert_int_equal(q->operations, 1);
    cot__program_release(p);
    cot__program_release(q);
}

/* Two pairs of 3/4 MiB each: the first is one loop, in every round of all passes. */
static void all_that_would_live_for_longer_is_small(void **state) {
    sample      one = USUAL, states;
    draft       d;
    heard       h;
    cot__caller caller;
    (void)state;
    one.extent = 32, one.length = 3072;
    states = one, states.given = 1;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(32)), y = op(&d, OP_sin, X(x));
    output(&d, loop(&d, x, &one)), output(&d, loop(&d, y, &one));
    output(&d, loop(&d, y, &states) + 1), output(&d, loop(&d, x, &states) + 1);
    cot__program     *p = draft_close(&d), *q = after(p, cot__pass_loops);
    cot__pass_options o = options_of(&h, &caller, NULL);
    assert_int_equal(q->operations, 4);
    cot__program *r = cot__optimise(p, &o);
    assert_int_equal(r->operations, 4);
    cot__program_release(p), cot__program_release(q), cot__program_release(r);
}

static void any_allocation_may_fail(void **state) {
    draft  d;
    sample states = USUAL;
    (void)state;
    states.given = 1;
    draft_two(&d, &USUAL, &states);
    survives_no_memory(&d, cot__pass_loops);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_loop_gives_all),
        cmocka_unit_test(loops_that_differ_stay),
        cmocka_unit_test(loops_within_are_compared_too),
        cmocka_unit_test(loops_of_other_operands_stay),
        cmocka_unit_test(what_is_no_float_stays),
        cmocka_unit_test(steps_look_at_data_once_where_the_first_loop_stood),
        cmocka_unit_test(what_would_live_for_longer_is_small),
        cmocka_unit_test(all_that_would_live_for_longer_is_small),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
