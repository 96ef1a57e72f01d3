/* loop_form.h: what a loop is as an operation of a program, and the way back through one: how their
 * attributes are read, and which operand and which result is what. Those that run them
 * (diff/loops) and those that print them (emit) read the same.
 *
 *     operands    the choice; constants; what is carried; what steps take a slice of; what the
 *                 bodies capture; what the test captures
 *     results     what is carried at the end, then what the steps give: the floats, then others
 *     bodies      the body, the body where the choice is false, the test; those that there are */
#ifndef COT_LOOP_FORM_H
#define COT_LOOP_FORM_H

#include "program/program.h"

/* Integers among the attributes; of a way back there are more behind them. */
enum {
    COT__LOOP_CONSTS, COT__LOOP_CARRY, COT__LOOP_NXS, COT__LOOP_NYS, COT__LOOP_FORM, COT__LOOP_FIRST, COT__LOOP_LENGTH,
    COT__LOOP_STATES, COT__LOOP_KEEPS, COT__LOOP_INTS
};
/* Bits of its form. */
enum {
    COT__LOOP_COUNTS = 1, COT__LOOP_REVERSE = 2, COT__LOOP_ONCE = 4, COT__LOOP_CHOSEN = 8, COT__LOOP_TESTS = 16,
    COT__LOOP_FORM_END = 32
};

typedef struct cot__form {
    int     consts, carry, nxs, nys;
    int     captures[2], tested; /* captures of the bodies, and of the test */
    bool    chosen, tests;       /* it has a choice; a test finds its length */
    bool    counts, reverse, once;
    int64_t first, length;
} cot__form;

/* The number of the first operand of each group. */
static inline int cot__form_first_const(const cot__form *f) { return f->chosen; }
static inline int cot__form_first_carry(const cot__form *f) { return cot__form_first_const(f) + f->consts; }
static inline int cot__form_first_xs(const cot__form *f) { return cot__form_first_carry(f) + f->carry; }
static inline int cot__form_first_capture(const cot__form *f) { return cot__form_first_xs(f) + f->nxs; }
static inline int cot__form_first_tested(const cot__form *f) {
    return cot__form_first_capture(f) + f->captures[0] + f->captures[1];
}
static inline int cot__form_operands(const cot__form *f) { return cot__form_first_tested(f) + f->tested; }
/* Is it a constant or a capture, the same in all steps? Then its adjoint is carried back. */
static inline bool cot__form_is_outer(const cot__form *f, int k) {
    return (k >= cot__form_first_const(f) && k < cot__form_first_carry(f)) || k >= cot__form_first_capture(f);
}
static inline bool cot__form_is_carried(const cot__form *f, int k) {
    return k >= cot__form_first_carry(f) && k < cot__form_first_xs(f);
}
/* How many inputs a body has before its captures, and in all the one that is run, and the test; and
 * how many results the body. */
static inline int cot__form_own_inputs(const cot__form *f) { return f->consts + f->counts + f->carry + f->nxs; }
static inline int cot__form_inputs(const cot__form *f, int choice) {
    return cot__form_own_inputs(f) + f->captures[choice];
}
static inline int cot__form_tested(const cot__form *f) { return f->carry + f->tested; }
static inline int cot__form_results(const cot__form *f) { return f->carry + f->nys; }

/* What the integers say, without captures, which follow from the bodies: they are the inputs behind
 * those of the form. */
static inline cot__form cot__form_of(const cot__attr *a) {
    const int64_t *n = a->ints, form = n[COT__LOOP_FORM];
    return (cot__form){.consts = (int)n[COT__LOOP_CONSTS], .carry = (int)n[COT__LOOP_CARRY],
                       .nxs = (int)n[COT__LOOP_NXS], .nys = (int)n[COT__LOOP_NYS], .counts = form & COT__LOOP_COUNTS,
                       .reverse = form & COT__LOOP_REVERSE, .once = form & COT__LOOP_ONCE,
                       .chosen = form & COT__LOOP_CHOSEN, .tests = form & COT__LOOP_TESTS,
                       .first = n[COT__LOOP_FIRST], .length = n[COT__LOOP_LENGTH]};
}
static inline void cot__form_count(cot__form *f, cot__program *const *body) {
    for (int b = 0; b < 1 + f->chosen; b++) f->captures[b] = (int)body[b]->inputs - cot__form_own_inputs(f);
    if (f->tests) f->tested = (int)body[1 + f->chosen]->inputs - f->carry;
}
static inline cot__form cot__form_read(const cot__attr *a, cot__program *const *body) {
    cot__form f = cot__form_of(a);
    cot__form_count(&f, body);
    return f;
}

/* The results of a loop in order: which result of the operation each is, asked one by one. */
typedef struct cot__form_order { const cot__program *body; int next, other; } cot__form_order;
static inline bool cot__form_is_float(const cot__program *body, int k) {
    return cot__dtype_is_float(cot__value_view(body, body->output[k]).dtype);
}
static inline cot__form_order cot__form_order_of(const cot__program *body) {
    cot__form_order o = {.body = body};
    for (uint32_t k = 0; k < body->outputs; k++) o.other += cot__form_is_float(body, (int)k);
    return o;
}
static inline int cot__form_place(cot__form_order *o, int k) {
    return cot__form_is_float(o->body, k) ? o->next++ : o->other++;
}

/* ---- the way back ---------------------------------------------------------------------------- */

/*     operands    those of the loop, then the adjoints of those of its results that have one
 *     results     the adjoints of the operands that are asked for
 *     bodies      those of the loop, then the step back through each body
 *     integers    those of the loop; has: for each result, does it have an adjoint; of: for each
 *                 operand, is one asked for; for each step back how many captures, and which
 *                 operands they are */
typedef struct cot__back_form {
    cot__form      f;
    const int64_t *has, *of;
    int            captures[2];
    const int64_t *from[2];
    int            operands, seeds, count; /* of the loop; adjoints given, and asked for */
} cot__back_form;

static inline int cot__flags_set(const int64_t *flag, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++) sum += flag[k] != 0;
    return sum;
}

/* The integers behind those of the loop; false: there are not as many as they say. */
static inline bool cot__back_form_lists(cot__back_form *q, const cot__attr *a) {
    const int64_t *at = a->ints + COT__LOOP_INTS, *end = a->ints + a->nints;
    int            results = cot__form_results(&q->f);
    q->operands = cot__form_operands(&q->f);
    if (q->f.captures[0] < 0 || q->f.captures[1] < 0 || q->f.tested < 0) return false;
    if (end - at < (int64_t)results + q->operands) return false;
    q->has = at;
    q->of = at + results;
    q->seeds = cot__flags_set(q->has, results);
    q->count = cot__flags_set(q->of, q->operands);
    at = q->of + q->operands;
    for (int b = 0; b < 1 + q->f.chosen; b++) {
        if (at == end || *at < 0 || *at > end - at - 1) return false;
        q->captures[b] = (int)*at++;
        q->from[b] = at;
        at += q->captures[b];
    }
    return at == end;
}
/* Of attributes that have been checked. */
static inline cot__back_form cot__back_form_read(const cot__attr *a, cot__program *const *body) {
    cot__back_form q = {.f = cot__form_read(a, body)};
    cot__back_form_lists(&q, a);
    return q;
}
/* The number of the step back through body b among the bodies. */
static inline int cot__back_form_body(const cot__form *f, int b) { return 1 + f->chosen + f->tests + b; }
/* Does operand k, of this dtype, have an adjoint on the way? What is asked for, and carried
 * floats. */
static inline bool cot__back_form_has_bar(const cot__back_form *q, int k, cot_dtype d) {
    return cot__form_is_carried(&q->f, k) ? cot__dtype_is_float(d) : q->of[k] != 0;
}
/* How many states are kept, beside the first and the last. */
static inline int cot__back_form_room(const cot__form *f, const cot__attr *a) {
    int64_t states = a->ints[COT__LOOP_STATES];
    return (int)(!f->tests && f->length < states ? f->length : states);
}

#endif
