/* The pass bodies: all passes make the bodies of operations smaller, at any depth. */
#include "pass_test.h"

#include "program/loop_form.h"

/* One step of a loop that carries a vector: twice x, and, if asked for, what nobody reads and what
 * does nothing. */
typedef struct step { bool wasteful; const struct step *within; } step;

static uint32_t loop(draft *d, uint32_t x, const step *s);

static cot__program *body_of(const step *s) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(3)), y = op(&d, OP_mul, X(x, NUM), .number = 2);
    if (s->wasteful) {
        op(&d, OP_exp, X(x));
        y = op(&d, OP_mul, X(y, NUM), .number = 1);
    }
    if (s->within) y = loop(&d, y, s->within);
    output(&d, y);
    return draft_close(&d);
}

static uint32_t loop(draft *d, uint32_t x, const step *s) {
    union { cot__attr attr; char room[sizeof(cot__attr) + COT__LOOP_INTS * sizeof(int64_t)]; } a = {
        .attr = {.nints = COT__LOOP_INTS}};
    const int64_t ints[COT__LOOP_INTS] = {0, 1, 0, 0, 0, 0, 5, 100, 0};
    memcpy(a.attr.ints, ints, sizeof ints);
    cot__program *body = body_of(s);
    uint32_t      z = cot__build_operation(&d->b, &(cot__append){.op = OP_loop, .n = 1, .x = &x, .attr = &a.attr,
                                                                 .name = "loop", .bodies = 1, .body = &body});
    cot__program_release(body);
    return z;
}

/* A loop on x, behind something that the pass itself leaves alone. */
static void draft_loop(draft *d, const step *s) {
    draft_open(d, NULL);
    uint32_t x = input(d, COT_F64, SHAPE(3));
    output(d, loop(d, op(d, OP_mul, X(x, NUM), .number = 1), s));
}

static void a_body_becomes_smaller(void **state) {
    draft      d;
    const step s = {.wasteful = true};
    (void)state;
    draft_loop(&d, &s);
    becomes(&d, cot__pass_bodies, "%0 = input 0 f64(3,)\n"
                                  "%1 = mul(%0, 1) f64(3,)\n"
                                  "%2 = loop(%1) [0 1 0 0 0 0 5 100 0] f64(3,)\n"
                                  "    %0 = input 0 f64(3,)\n"
                                  "    %1 = mul(%0, 2) f64(3,)\n"
                                  "    gives %1\n"
                                  "gives %2\n");
}

static void a_body_within_a_body_becomes_smaller(void **state) {
    draft      d;
    const step inner = {.wasteful = true}, s = {.within = &inner};
    (void)state;
    draft_loop(&d, &s);
    becomes(&d, cot__pass_bodies, "%0 = input 0 f64(3,)\n"
                                  "%1 = mul(%0, 1) f64(3,)\n"
                                  "%2 = loop(%1) [0 1 0 0 0 0 5 100 0] f64(3,)\n"
                                  "    %0 = input 0 f64(3,)\n"
                                  "    %1 = mul(%0, 2) f64(3,)\n"
                                  "    %2 = loop(%1) [0 1 0 0 0 0 5 100 0] f64(3,)\n"
                                  "        %0 = input 0 f64(3,)\n"
                                  "        %1 = mul(%0, 2) f64(3,)\n"
                                  "        gives %1\n"
                                  "    gives %2\n"
                                  "gives %2\n");
}

static void what_is_small_stays(void **state) {
    draft      d;
    const step inner = {.wasteful = false}, s = {.within = &inner};
    (void)state;
    draft_loop(&d, &s);
    stays(&d, cot__pass_bodies);
}

static void any_allocation_may_fail(void **state) {
    draft      d;
    const step s = {.wasteful = true};
    (void)state;
    draft_loop(&d, &s);
    survives_no_memory(&d, cot__pass_bodies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_becomes_smaller),
        cmocka_unit_test(a_body_within_a_body_becomes_smaller),
        cmocka_unit_test(what_is_small_stays),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
