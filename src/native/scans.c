/* scans.c: see scans.h. The statements of a body stand in the loop, and what is carried is
 * variables: nothing goes through memory but what steps take and give.
 *
 *     {
 *         const double v_7 = v_0;                    a constant, or what the body captures
 *         double v_5 = v_1;                          carried
 *         for (ptrdiff_t k_0 = 0; k_0 < 500; k_0++) {
 *             const double v_6 = t_2[k_0];           a slice
 *             const double v_8 = v_7 * v_5 + v_6;    the body
 *             t_3[k_0] = v_8;                        given out
 *             const double n_0 = v_8;                carried to the next step
 *             v_5 = n_0;
 *         }
 *         v_4 = v_5;
 *     } */
#include "native/scans.h"
#include "backend/cpu/table/cpu.h"
#include "program/loop_form.h"

#include <string.h>

typedef struct scan {
    cot__writer    *w;
    uint32_t        k, first; /* the operation, and the number of the first value of its bodies */
    const uint32_t *x;
    cot__form       f;
} scan;

/* A body, and the writer that prints it. */
typedef struct body {
    cot__writer w;
    uint32_t   *number;
    uint8_t    *home, *wanted;
} body;

static const cot__program *body_of(const scan *s, int which) {
    return s->w->p->body[s->w->p->operation[s->k].body + (uint32_t)which];
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Result j of the loop among those of the operation. */
static uint32_t result_of(const scan *s, int j) {
    cot__form_order o = cot__form_order_of(body_of(s, 0));
    int             at = 0;
    for (int i = 0; i <= j; i++) at = cot__form_place(&o, i);
    return s->w->p->operation[s->k].result + (uint32_t)at;
}

/* "        const double v_7 = ": input i of a body. */
static void open_input(const scan *s, body *b, int i, bool carried, int depth) {
    uint32_t v = b->w.p->input[i];
    cot__put_indent(s->w, depth);
    cot__putf(s->w->to, "%s%s v_%u = ", carried ? "" : "const ", cot__emit_type(cot__value_view(b->w.p, v).dtype),
              b->number[v]);
}

/* Input i of a body, from operand k of the loop; at: where of it, NULL: it is a number. */
static void put_input(const scan *s, body *b, int i, int k, const char *at, int depth) {
    cot__at_index index = {.axis = {at}};
    open_input(s, b, i, !at && cot__form_is_carried(&s->f, k), depth);
    cot__put_element(s->w, s->x[k], &index);
    cot__put(s->w->to, ";\n");
}

/* What all steps read, and what is carried to the first. */
static void put_outer(const scan *s, body *b, int which, int depth) {
    const cot__form *f = &s->f;
    int              captured = cot__form_first_capture(f) + (which ? f->captures[0] : 0);
    for (int i = 0; i < f->consts; i++) put_input(s, b, i, cot__form_first_const(f) + i, NULL, depth);
    for (int i = 0; i < f->carry; i++)
        put_input(s, b, f->consts + f->counts + i, cot__form_first_carry(f) + i, NULL, depth);
    for (int i = 0; i < f->captures[which]; i++)
        put_input(s, b, cot__form_own_inputs(f) + i, captured + i, NULL, depth);
}

/* The number of the step, and slices. */
static void put_step_inputs(const scan *s, body *b, int depth) {
    const cot__form *f = &s->f;
    cot__put_indent(s->w, depth);
    if (f->reverse) cot__putf(s->w->to, "const ptrdiff_t j_0 = %lld - k_0;\n", (long long)f->length - 1);
    else cot__put(s->w->to, "const ptrdiff_t j_0 = k_0;\n");
    if (f->counts) {
        open_input(s, b, f->consts, false, depth);
        cot__put_i64(s->w->to, f->first);
        cot__put(s->w->to, " + j_0;\n");
    }
    for (int i = 0; i < f->nxs; i++)
        put_input(s, b, f->consts + f->counts + f->carry + i, cot__form_first_xs(f) + i, "j_0", depth);
}

static void put_output(body *b, int j) {
    cot__at_index none = {0};
    cot__put_element(&b->w, b->w.p->output[j], &none);
    cot__put(b->w.to, ";\n");
}

/* What the step gives out, and what it carries on: all of it is read before any is written. */
static void put_step_outputs(const scan *s, body *b, int depth) {
    const cot__form *f = &s->f;
    for (int j = f->carry; j < cot__form_results(f); j++) {
        cot__put_indent(s->w, depth);
        cot__put_result(s->w, result_of(s, j), &(cot__at_index){.axis = {"j_0"}});
        cot__put(s->w->to, " = ");
        put_output(b, j);
    }
    for (int j = 0; j < f->carry; j++) {
        cot__put_indent(s->w, depth);
        cot__putf(s->w->to, "const %s n_%d = ", cot__emit_type(cot__value_view(b->w.p, b->w.p->output[j]).dtype), j);
        put_output(b, j);
    }
    for (int j = 0; j < f->carry; j++) {
        cot__put_indent(s->w, depth);
        cot__putf(s->w->to, "v_%u = n_%d;\n", b->number[b->w.p->input[f->consts + f->counts + j]], j);
    }
}

/* ---- a body ---------------------------------------------------------------------------------- */

static void put_statements(body *b, int depth) {
    for (uint32_t k = 0; k < b->w.p->operations; k++) {
        if (b->w.layout.plan.how[k] == COT__BY_VIEW) continue;
        cot__put_indent(&b->w, depth - 1);
        cot__put_statement(&b->w, k);
    }
}

static void put_loop(const scan *s, body *b, int which, int depth) {
    const cot__form *f = &s->f;
    put_outer(s, b, which, depth);
    cot__put_indent(s->w, depth);
    cot__putf(s->w->to, "for (ptrdiff_t k_0 = 0; k_0 < %lld; k_0++) {\n", (long long)f->length);
    put_step_inputs(s, b, depth + 1);
    put_statements(b, depth + 1);
    put_step_outputs(s, b, depth + 1);
    cot__put_indent(s->w, depth);
    cot__put(s->w->to, "}\n");
    for (int j = 0; j < f->carry; j++) {
        cot__put_indent(s->w, depth);
        cot__put_result(s->w, result_of(s, j), &(cot__at_index){0});
        cot__putf(s->w->to, " = v_%u;\n", b->number[b->w.p->input[f->consts + f->counts + j]]);
    }
}

/* All values of a body are numbers, and variables but for constants. */
static bool put_body(const scan *s, int which, int depth) {
    const cot__program *p = body_of(s, which);
    const cot_allocator al = *s->w->al;
    size_t              values = p->values, bytes = values * (sizeof(uint32_t) + 2);
    uint32_t           *number = cot__alloc(&al, bytes);
    body                b = {.w = *s->w, .number = number};
    if (!number) return cot__refuse(s->w->caller, COT_MEMORY, "out of memory: %zu values of a body", values);
    b.home = (uint8_t *)(number + values);
    b.wanted = b.home + values;
    memset(b.home, COT__AT_NAME, values);
    memset(b.wanted, 1, values);
    for (uint32_t v = 0; v < p->values; v++) number[v] = s->first + v;
    b.w.p = p;
    b.w.number = number;
    b.w.pointed = NULL;
    b.w.layout = (cot__layout){.p = p, .home = b.home, .wanted = b.wanted};
    bool ok = cot__plan_open(&b.w.layout.plan, p, &cot__cpu_backend, &al, NULL, true, s->w->caller);
    if (ok) {
        put_loop(s, &b, which, depth);
        cot__plan_close(&b.w.layout.plan);
    }
    cot__free(&al, number, bytes);
    return ok;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_variables(const scan *s) {
    for (uint32_t r = 0; r < s->w->p->operation[s->k].results; r++) {
        uint32_t  z = s->w->p->operation[s->k].result + r;
        cot__view v = cot__value_view(s->w->p, z);
        if (v.ndim == 0) cot__putf(s->w->to, "    %s v_%u;\n", cot__emit_type(v.dtype), cot__number_of(s->w, z));
    }
}

bool cot__native_put_scan(cot__writer *w, uint32_t k, uint32_t number) {
    scan s = {.w = w, .k = k, .first = number, .x = cot__operation_operand(w->p, k),
              .f = cot__form_read(cot__operation_attr(w->p, k), w->p->body + w->p->operation[k].body)};
    put_variables(&s);
    if (s.f.chosen) {
        cot__put(w->to, "    if (");
        cot__put_element(w, s.x[0], &(cot__at_index){0});
        cot__put(w->to, " != 0) {\n");
        if (!put_body(&s, 0, 2)) return false;
        cot__put(w->to, "    } else {\n");
        if (!put_body(&s, 1, 2)) return false;
    } else {
        cot__put(w->to, "    {\n");
        if (!put_body(&s, 0, 2)) return false;
    }
    cot__put(w->to, "    }\n");
    return true;
}
