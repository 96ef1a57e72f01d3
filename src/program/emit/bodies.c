/* bodies.c: loops, conditions and checkpoints: C loops around calls of functions, one for each
 * body. What is carried lies in two states, from one of which a step goes to the other. */
#include "program/emit/bodies.h"
#include "base/sizes.h"
#include "rules/structural_ids.h"

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t carried_bytes(const cot__program *p, uint32_t k, const cot__form *f) {
    int64_t bytes = 0;
    for (int i = cot__form_first_carry(f); i < cot__form_first_xs(f); i++) {
        cot__view v = cot__value_view(p, cot__operation_operand(p, k)[i]);
        bytes = cot__size_add(bytes, cot__home_bytes(&v));
    }
    return bytes;
}

static int64_t bar_bytes(const cot__program *p, uint32_t k, const cot__back_form *q) {
    int64_t bytes = 0;
    for (int i = 0; i < q->operands; i++) {
        cot__view v = cot__value_view(p, cot__operation_operand(p, k)[i]);
        bool      both = cot__form_is_outer(&q->f, i) || cot__form_is_carried(&q->f, i);
        if (both && cot__back_form_has_bar(q, i, v.dtype))
            bytes = cot__size_add(bytes, cot__size_mul(2, cot__home_bytes(&v)));
    }
    return bytes;
}

static int64_t given_bytes(const cot__program *body, const cot__form *f) {
    int64_t bytes = 0;
    for (int i = f->carry; f->carry && i < cot__form_results(f); i++) {
        cot__view v = cot__value_view(body, body->output[i]);
        bytes = cot__size_add(bytes, cot__home_bytes(&v));
    }
    return bytes;
}

cot__loop_room cot__loop_room_of(const cot__program *p, uint32_t k) {
    enum { ENTRY = 24 }; /* cot_kept of states.inc */
    const cot__attr     *a = cot__operation_attr(p, k);
    cot__program *const *body = p->body + p->operation[k].body;
    cot__form            f = cot__form_read(a, body);
    int64_t              state = carried_bytes(p, k, &f);
    cot__loop_room       r = {.bars = cot__size_mul(2, state)};
    r.given = r.kept = r.list = r.bodies = r.bars;
    if (p->operation[k].op != OP_loop_adjoint) return r;
    cot__back_form q = cot__back_form_read(a, body);
    int64_t        room = f.carry ? cot__back_form_room(&f, a) : 0;
    r.given = cot__size_add(r.bars, bar_bytes(p, k, &q));
    r.kept = cot__size_add(r.given, given_bytes(body[0], &f));
    r.list = cot__size_add(r.kept, cot__size_mul(room, state));
    r.bodies = cot__size_add(r.list, room * ENTRY);
    return r;
}

int64_t cot__behind_copies(const cot__block *b) {
    return b->w->layout.scratch[b->k] + cot__dense_bytes(&b->w->layout, b->k);
}

void cot__put_room(const cot__block *b, cot_dtype d, int64_t at) {
    cot__putf(cot__to(b), "(%s *)(void *)((char *)workspace + %lld)", cot__emit_type(d),
              (long long)(cot__behind_copies(b) + at));
}

/* ---- the states ------------------------------------------------------------------------------ */

static cot__view carried(const cot__block *b, const cot__form *f, int k) {
    return cot__value_view(b->w->p, b->x[cot__form_first_carry(f) + k]);
}

void cot__put_states(const cot__block *b, const cot__form *f) {
    int64_t at = 0;
    for (int k = 0; k < f->carry; k++) {
        cot__view v = carried(b, f, k);
        int64_t   bytes = cot__home_bytes(&v);
        cot__put_indent(b->w, COT__BASE);
        cot__putf(cot__to(b), "%s *p_%d = ", cot__emit_type(v.dtype), k);
        cot__put_room(b, v.dtype, at);
        cot__putf(cot__to(b), ", *q_%d = ", k);
        cot__put_room(b, v.dtype, at + bytes);
        cot__put(cot__to(b), ";\n");
        at += 2 * bytes;
    }
}

void cot__put_elements_copy(const cot__block *b, const cot__view *v, const char *to, const char *from, int depth) {
    cot__put_indent(b->w, depth);
    if (v->ndim == 0) cot__putf(cot__to(b), "*%s = *%s;\n", to, from);
    else
        cot__putf(cot__to(b), "for (ptrdiff_t n_0 = 0; n_0 < %lld; n_0++) %s[n_0] = %s[n_0];\n",
                  (long long)cot__view_size(v), to, from);
}

void cot__put_first_state(const cot__block *b, const cot__form *f, int depth) {
    for (int k = 0; k < f->carry; k++) {
        cot__view     v = carried(b, f, k);
        int           x = cot__form_first_carry(f) + k;
        cot__at_index none = {0};
        cot__put_indent(b->w, depth);
        if (v.ndim == 0) cot__putf(cot__to(b), "*p_%d = ", k), cot__put_element(b->w, b->x[x], &none);
        else {
            cot__putf(cot__to(b), "for (ptrdiff_t n_0 = 0; n_0 < %lld; n_0++) p_%d[n_0] = *(",
                      (long long)cot__view_size(&v), k);
            cot__put_dense(b, x);
            cot__put(cot__to(b), " + n_0)");
        }
        cot__put(cot__to(b), ";\n");
    }
}

/* Result k of the loop among those of the operation. */
static uint32_t result_of(const cot__block *b, int k) {
    cot__form_order o = cot__form_order_of(b->w->p->body[b->w->p->operation[b->k].body]);
    int             at = 0;
    for (int i = 0; i <= k; i++) at = cot__form_place(&o, i);
    return b->z + (uint32_t)at;
}

static void put_last_state(const cot__block *b, const cot__form *f) {
    for (int k = 0; k < f->carry; k++) {
        cot__view     v = carried(b, f, k);
        cot__at_index at = {.flat = "n_0"};
        cot__put_indent(b->w, COT__BASE);
        if (v.ndim)
            cot__putf(cot__to(b), "for (ptrdiff_t n_0 = 0; n_0 < %lld; n_0++) ", (long long)cot__view_size(&v));
        cot__put_result(b->w, result_of(b, k), &at);
        cot__putf(cot__to(b), v.ndim ? " = p_%d[n_0];\n" : " = *p_%d;\n", k);
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

void cot__put_argument(const cot__block *b, int k) {
    cot__at_index none = {0};
    if (cot__value_view(b->w->p, b->x[k]).ndim == 0) cot__put_element(b->w, b->x[k], &none);
    else cot__put_dense(b, k);
    cot__put(cot__to(b), ", ");
}

void cot__put_carried(const cot__block *b, const cot__form *f) {
    for (int k = 0; k < f->carry; k++)
        cot__putf(cot__to(b), carried(b, f, k).ndim ? "p_%d, " : "*p_%d, ", k);
}

void cot__put_slice(const cot__block *b, int k) {
    cot__view v = cot__value_view(b->w->p, b->x[k]);
    int64_t   row = cot__count(v.ndim - 1, v.shape + 1);
    cot__put(cot__to(b), v.ndim == 1 ? "*(" : "");
    cot__put_dense(b, k);
    cot__putf(cot__to(b), v.ndim == 1 ? " + j_0), " : " + j_0 * %lld, ", (long long)row);
}

static const cot__called *called(const cot__block *b, int body) {
    return &b->w->called[b->w->p->operation[b->k].body + (uint32_t)body];
}

void cot__open_body_call(const cot__block *b, int body, int depth) {
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "e_0 = b_%d(", called(b, body)->number);
}

void cot__close_body_call(const cot__block *b, int body, int depth) {
    int64_t at = cot__behind_copies(b) + cot__loop_room_of(b->w->p, b->k).bodies;
    if (called(b, body)->workspace) cot__putf(cot__to(b), "(char *)workspace + %lld);\n", (long long)at);
    else cot__put(cot__to(b), "NULL);\n");
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "if (e_0 != 0) return e_0;\n");
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void put_given_out(const cot__block *b, const cot__form *f, bool back) {
    cot__at_index none = {0};
    for (int k = 0; k < f->carry; k++) cot__putf(cot__to(b), "q_%d, ", k);
    for (int k = f->carry; k < cot__form_results(f); k++) {
        if (back) {
            cot__putf(cot__to(b), "u_%d, ", k);
            continue;
        }
        uint32_t  z = result_of(b, k);
        cot__view v = cot__value_view(b->w->p, z);
        cot__put_address(b, z, &none);
        if (!f->once) cot__putf(cot__to(b), " + j_0 * %lld", (long long)cot__count(v.ndim - 1, v.shape + 1));
        cot__put(cot__to(b), ", ");
    }
}

static void put_body_call(const cot__block *b, const cot__form *f, int which, bool back, int depth) {
    cot__open_body_call(b, which, depth);
    for (int k = 0; k < f->consts; k++) cot__put_argument(b, cot__form_first_const(f) + k);
    if (f->counts) cot__put_i64(cot__to(b), f->first), cot__put(cot__to(b), " + j_0, ");
    cot__put_carried(b, f);
    for (int k = 0; k < f->nxs; k++) cot__put_slice(b, cot__form_first_xs(f) + k);
    for (int k = 0; k < f->captures[which]; k++)
        cot__put_argument(b, cot__form_first_capture(f) + (which ? f->captures[0] : 0) + k);
    put_given_out(b, f, back);
    cot__close_body_call(b, which, depth);
}

void cot__put_swap(const cot__block *b, cot_dtype d, char p, char q, int number, int depth) {
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "{ %s *const h_0 = %c_%d; ", cot__emit_type(d), p, number);
    cot__putf(cot__to(b), "%c_%d = %c_%d; %c_%d = h_0; }\n", p, number, q, number, q, number);
}

/* What ends "(element": it is compared with 0. 16-bit floats are their bits, and have two zeros. */
static void put_compared(const cot__block *b, cot_dtype d, const char *compared) {
    bool half = d == COT_F16 || d == COT_BF16;
    cot__putf(cot__to(b), half ? " & 0x7fff) %s 0" : ") %s 0", compared);
}

void cot__put_choice(const cot__block *b, int depth) {
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "if ((");
    cot__put_element(b->w, b->x[0], &(cot__at_index){0});
    put_compared(b, cot__value_view(b->w->p, b->x[0]).dtype, "!=");
    cot__put(cot__to(b), ") {\n");
}

/* Then what was made is what there is. */
void cot__put_step(const cot__block *b, const cot__form *f, bool back, int depth) {
    if (f->chosen) {
        cot__put_choice(b, depth);
        put_body_call(b, f, 0, back, depth + 1);
        cot__put_indent(b->w, depth);
        cot__put(cot__to(b), "} else {\n");
        put_body_call(b, f, 1, back, depth + 1);
        cot__put_indent(b->w, depth);
        cot__put(cot__to(b), "}\n");
    } else put_body_call(b, f, 0, back, depth);
    for (int k = 0; k < f->carry; k++) cot__put_swap(b, carried(b, f, k).dtype, 'p', 'q', k, depth);
}

void cot__put_step_number(const cot__block *b, const cot__form *f, const char *k, int depth) {
    cot__put_indent(b->w, depth);
    if (f->reverse) cot__putf(cot__to(b), "const ptrdiff_t j_0 = %lld - (ptrdiff_t)%s;\n", (long long)f->length - 1, k);
    else cot__putf(cot__to(b), "const ptrdiff_t j_0 = (ptrdiff_t)%s;\n", k);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* The test is asked before each step; a step too many is refused. */
void cot__put_test(const cot__block *b, const cot__form *f, int depth) {
    int                 which = 1 + f->chosen;
    const cot__program *test = b->w->p->body[b->w->p->operation[b->k].body + (uint32_t)which];
    cot__put_indent(b->w, depth);
    cot_dtype answer = cot__value_view(test, test->output[0]).dtype;
    cot__putf(cot__to(b), "%s g_0;\n", cot__emit_type(answer));
    cot__open_body_call(b, which, depth);
    cot__put_carried(b, f);
    for (int k = 0; k < f->tested; k++) cot__put_argument(b, cot__form_first_tested(f) + k);
    cot__put(cot__to(b), "&g_0, ");
    cot__close_body_call(b, which, depth);
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "if ((g_0");
    put_compared(b, answer, "==");
    cot__put(cot__to(b), ") break;\n");
    if (f->length == 0) return;
    cot__open_check(b, depth);
    cot__putf(cot__to(b), "k_0 == INT64_C(%lld)", (long long)f->length);
    cot__close_check(b);
}

static void put_once(const cot__block *b, const cot__form *f) {
    if (f->counts || f->nxs) cot__put_indent(b->w, COT__BASE), cot__put(cot__to(b), "const ptrdiff_t j_0 = 0;\n");
    cot__put_step(b, f, false, COT__BASE);
}

void cot__put_loop(const cot__block *b) {
    cot__form  f = cot__form_read(b->attr, b->w->p->body + b->w->p->operation[b->k].body);
    cot__text *to = cot__to(b);
    cot__put_dense_copies(b);
    cot__put_indent(b->w, COT__BASE);
    cot__put(to, "int e_0;\n");
    if (f.once) {
        put_once(b, &f);
        return;
    }
    cot__put_states(b, &f);
    cot__put_first_state(b, &f, COT__BASE);
    cot__put_indent(b->w, COT__BASE);
    if (f.tests) cot__put(to, f.length ? "for (int64_t k_0 = 0;; k_0++) {\n" : "for (;;) {\n");
    else cot__putf(to, "for (ptrdiff_t k_0 = 0; k_0 < %lld; k_0++) {\n", (long long)f.length);
    if (f.tests) cot__put_test(b, &f, COT__BASE + 1);
    else if (f.counts || f.nxs || f.nys) cot__put_step_number(b, &f, "k_0", COT__BASE + 1);
    cot__put_step(b, &f, false, COT__BASE + 1);
    cot__put_indent(b->w, COT__BASE);
    cot__put(to, "}\n");
    put_last_state(b, &f);
}
