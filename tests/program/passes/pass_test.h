/* pass_test.h: what tests of passes share: programs written down in few words, what a pass makes of
 * them as text, and allocations that fail. */
#ifndef PASS_TEST_H
#define PASS_TEST_H

#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "support/support.h"
#include "support/tape_test.h"

#include "backend/cpu/table/cpu.h"
#include "base/element.h"
#include "program/build.h"
#include "program/passes/rewrite.h"

typedef struct heard { int errors; cot_status code; char text[512]; } heard;

static inline void hear_error(const cot__caller *c, cot_status code, const char *text) {
    heard *h = c->to;
    if (h->errors++) return;
    h->code = code;
    snprintf(h->text, sizeof h->text, "%s", text);
}
static inline void hear_note(const cot__caller *c, const char *text) { (void)c, (void)text; }

/* ---- writing a program down ------------------------------------------------------------------ */

/* A builder that complains by failing the test. */
typedef struct draft { cot__builder b; heard h; cot__caller caller; } draft;

static inline void draft_open(draft *d, const cot_allocator *al) {
    d->h = (heard){0};
    d->caller = (cot__caller){"test", &d->h, hear_error, hear_note, NULL};
    cot__builder_open(&d->b, al, &d->caller);
}

static inline cot__program *draft_close(draft *d) {
    cot__program *p = cot__builder_close(&d->b);
    if (d->h.errors) print_message("%s\n", d->h.text);
    assert_non_null(p);
    return p;
}

#define SHAPE(...) ((cot_shape){TEST_COUNT(((int[]){__VA_ARGS__})), {__VA_ARGS__}})
#define NO_AXES ((cot_shape){0})

static inline uint32_t input(draft *d, cot_dtype dtype, cot_shape shape) {
    return cot__build_input(&d->b, &(cot__type){dtype, shape});
}

/* Elements from numbers, which are repeated. */
static inline uint32_t constant_of(draft *d, cot_dtype dtype, cot_shape shape, int n, const double *numbers) {
    void    *elements = NULL;
    uint32_t v = cot__build_constant(&d->b, &(cot__type){dtype, shape}, &elements);
    int64_t  size = cot__count(shape.ndim, shape.dim);
    for (int64_t k = 0; k < size && v != COT__NO_VALUE; k++)
        cot__store_f64((char *)elements + k * cot__dtype_size(dtype), dtype, numbers[k % n]);
    return v;
}
#define constant(d, dtype, shape, ...)                                                                                 \
    constant_of(d, dtype, shape, TEST_COUNT(((double[]){__VA_ARGS__})), (double[]){__VA_ARGS__})

enum { NUM = -1 }; /* in place of an operand: the plain number */

typedef struct more { double number; cot__type asked; int ints; int64_t at[8]; double attr_number; int unused; } more;

typedef struct operands { int n; int64_t x[16]; } operands;

static inline uint32_t operation_of(draft *d, int op, operands x, const more *m) {
    union { cot__attr attr; char room[sizeof(cot__attr) + sizeof m->at]; } a = {.attr = {.nints = 0}};
    uint32_t operand[16];
    a.attr.nints = (uint32_t)m->ints;
    a.attr.number = m->attr_number;
    for (int k = 0; k < m->ints; k++) a.attr.ints[k] = m->at[k];
    for (int k = 0; k < x.n; k++) operand[k] = x.x[k] == NUM ? COT__NO_VALUE : (uint32_t)x.x[k];
    return cot__build_operation(&d->b, &(cot__append){.op = op, .n = x.n, .x = operand, .number = m->number,
                                                      .attr = cot__op_of(op)->attrs ? &a.attr : NULL,
                                                      .asked = &m->asked, .name = cot__op_of(op)->name});
}
/* op(d, OP_add, X(x, y)); op(d, OP_mul, X(x, NUM), .number = 2);
 * op(d, OP_sum, X(x), .ints = 2, .at = {1, 0}) */
#define X(...) ((operands){TEST_COUNT(((int64_t[]){__VA_ARGS__})), {__VA_ARGS__}})
#define op(d, which, ...) op_(d, which, __VA_ARGS__, .unused = 0)
#define op_(d, which, x, ...) operation_of(d, which, x, &(more){__VA_ARGS__})

static inline void output(draft *d, uint32_t v) { cot__build_output(&d->b, v); }

/* ---- passes ---------------------------------------------------------------------------------- */

static inline cot__pass_options options_of(heard *h, cot__caller *caller, const cot_allocator *al) {
    *h = (heard){0};
    *caller = (cot__caller){"test", h, hear_error, hear_note, NULL};
    return (cot__pass_options){.al = al, .caller = caller, .backend = &cot__cpu_backend};
}

static inline void text_of(const cot__program *p, char *text, size_t size) {
    cot__text to = cot__text_buffer(text, size);
    cot__program_print(p, &to);
}

/* The program is legal. */
static inline void assert_legal(const cot__program *p) {
    char      why[512] = "";
    cot__text text = cot__text_buffer(why, sizeof why);
    bool      legal = cot__program_check(p, &text);
    if (!legal) print_message("%s\n", why);
    assert_true(legal);
}

/* What the pass makes of the program; both programs are legal, and the old one is as it was. */
static inline cot__program *after(const cot__program *p, cot__pass *pass) {
    heard             h;
    cot__caller       caller;
    cot__pass_options o = options_of(&h, &caller, NULL);
    char              before[8192], later[8192];
    text_of(p, before, sizeof before);
    cot__program *q = pass(p, &o);
    if (h.errors) print_message("%s\n", h.text);
    assert_non_null(q);
    assert_legal(q);
    text_of(p, later, sizeof later);
    assert_string_equal(before, later);
    return q;
}

/* Closes the draft and compares what the pass makes of it. */
static inline void becomes(draft *d, cot__pass *pass, const char *text) {
    char          got[8192];
    cot__program *p = draft_close(d), *q = after(p, pass);
    text_of(q, got, sizeof got);
    assert_string_equal(got, text);
    cot__program_release(p);
    cot__program_release(q);
}

/* Closes the draft; the pass finds nothing to do in it, and gives back the program itself. */
static inline void stays(draft *d, cot__pass *pass) {
    cot__program *p = draft_close(d), *q = after(p, pass);
    if (p != q) {
        char got[8192];
        text_of(q, got, sizeof got);
        print_message("became\n%s", got);
    }
    assert_ptr_equal(p, q);
    cot__program_release(p);
    cot__program_release(q);
}

/* Every allocation of the pass fails once: it says so, nothing leaks, and p is as it was. */
static inline void never_spoils(const cot__program *p, cot__pass *pass) {
    for (long at = 1;; at++) {
        counting          c = {.fail_at = at};
        heard             h;
        cot__caller       caller;
        cot_allocator     al = {counting_alloc, &c};
        cot__pass_options o = options_of(&h, &caller, &al);
        cot__program     *q = pass(p, &o);
        assert_true((q == NULL) == (c.failed > 0));
        if (!q) assert_true(h.code == COT_MEMORY && strstr(h.text, "] out of memory: ") && h.errors == 1);
        cot__program_release(q);
        assert_true(c.live == 0 && c.blocks == 0 && !c.wrong_size);
        if (!c.failed) break;
    }
    assert_legal(p);
}

static inline void survives_no_memory(draft *d, cot__pass *pass) {
    cot__program *p = draft_close(d);
    never_spoils(p, pass);
    cot__program_release(p);
}

#endif
