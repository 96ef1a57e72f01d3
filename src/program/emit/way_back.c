/* way_back.c: the way back through a loop, as a C loop: it goes from the last step to the first,
 * each time from a kept state to the one that the step back needs. Which states are kept,
 * states.inc says. What a step back takes and gives, diff/loops/loop_way.h says.
 *
 *     p_K q_K    carried value K, now and after a step; s_K: its kept ones, slot by slot
 *     a_K z_K    the adjoint of operand K, now and after a step back
 *     u_K        result K of a step, which nobody wants */
#include "program/emit/bodies.h"
#include "base/number.h"

typedef struct way {
    const cot__block *b;
    cot__back_form    q;
    cot__loop_room    room;
} way;

static cot__view operand(const way *w, int k) { return cot__value_view(w->b->w->p, w->b->x[k]); }
static void      line(const way *w, int depth, const char *text) {
    cot__put_indent(w->b->w, depth);
    cot__put(cot__to(w->b), text);
}

/* ---- adjoints that are carried back ---------------------------------------------------------- */

/* Those of carried floats, then those of constants and captures; the next from `k` on in `pass`. */
static int next_bar(const way *w, int pass, int k) {
    for (; k < w->q.operands; k++) {
        bool here = pass ? cot__form_is_outer(&w->q.f, k) : cot__form_is_carried(&w->q.f, k);
        if (here && cot__back_form_has_bar(&w->q, k, operand(w, k).dtype)) break;
    }
    return k;
}
#define FOR_BARS(w, k)                                                                                                 \
    for (int pass = 0; pass < 2; pass++)                                                                               \
        for (int k = next_bar(w, pass, 0); k < (w)->q.operands; k = next_bar(w, pass, k + 1))

/* The operand that is the adjoint of result j; -1: it has none. */
static int seed_of(const way *w, int j) {
    return w->q.has[j] ? w->q.operands + cot__flags_set(w->q.has, j) : -1;
}

/* At first: the adjoint of what is carried at the end, or zeros. */
static void put_first_bar(const way *w, int k) {
    cot__view v = operand(w, k);
    int       seed = cot__form_is_carried(&w->q.f, k) ? seed_of(w, k - cot__form_first_carry(&w->q.f)) : -1;
    cot__put_indent(w->b->w, COT__BASE);
    if (v.ndim) cot__putf(cot__to(w->b), "for (ptrdiff_t n_0 = 0; n_0 < %lld; n_0++) ", (long long)cot__view_size(&v));
    cot__putf(cot__to(w->b), v.ndim ? "a_%d[n_0] = " : "*a_%d = ", k);
    if (seed < 0) cot__put(cot__to(w->b), "0");
    else if (v.ndim == 0) cot__put_element(w->b->w, w->b->x[seed], &(cot__at_index){0});
    else cot__put(cot__to(w->b), "*("), cot__put_dense(w->b, seed), cot__put(cot__to(w->b), " + n_0)");
    cot__put(cot__to(w->b), ";\n");
}

static void put_bars(const way *w) {
    int64_t at = w->room.bars;
    FOR_BARS(w, k) {
        cot__view v = operand(w, k);
        cot__put_indent(w->b->w, COT__BASE);
        cot__putf(cot__to(w->b), "%s *a_%d = ", cot__emit_type(v.dtype), k);
        cot__put_room(w->b, v.dtype, at);
        cot__putf(cot__to(w->b), ", *z_%d = ", k);
        cot__put_room(w->b, v.dtype, at + cot__home_bytes(&v));
        cot__put(cot__to(w->b), ";\n");
        at += 2 * cot__home_bytes(&v);
        put_first_bar(w, k);
    }
}

/* The result that is the adjoint of operand k. */
static uint32_t result_of(const way *w, int k) { return w->b->z + (uint32_t)cot__flags_set(w->q.of, k); }

static void put_results(const way *w) {
    FOR_BARS(w, k) {
        cot__view     v = operand(w, k);
        cot__at_index at = {.flat = "n_0"};
        if (!w->q.of[k]) continue;
        cot__put_indent(w->b->w, COT__BASE);
        if (v.ndim)
            cot__putf(cot__to(w->b), "for (ptrdiff_t n_0 = 0; n_0 < %lld; n_0++) ", (long long)cot__view_size(&v));
        cot__put_result(w->b->w, result_of(w, k), &at);
        cot__putf(cot__to(w->b), v.ndim ? " = a_%d[n_0];\n" : " = *a_%d;\n", k);
    }
}

/* ---- a step back ----------------------------------------------------------------------------- */

static void put_inputs(const way *w, int which) {
    const cot__form *f = &w->q.f;
    if (f->counts) cot__put_i64(cot__to(w->b), f->first), cot__put(cot__to(w->b), " + j_0, ");
    FOR_BARS(w, k) cot__putf(cot__to(w->b), operand(w, k).ndim ? "a_%d, " : "*a_%d, ", k);
    cot__put_carried(w->b, f);
    for (int k = cot__form_first_xs(f); k < cot__form_first_capture(f); k++) cot__put_slice(w->b, k);
    for (int j = f->carry; j < cot__form_results(f); j++) {
        if (!w->q.has[j]) continue;
        if (f->once) cot__put_argument(w->b, seed_of(w, j));
        else cot__put_slice(w->b, seed_of(w, j));
    }
    for (int k = 0; k < w->q.captures[which]; k++) cot__put_argument(w->b, (int)w->q.from[which][k]);
}

static void put_outputs(const way *w) {
    const cot__form *f = &w->q.f;
    FOR_BARS(w, k) cot__putf(cot__to(w->b), "z_%d, ", k);
    for (int k = cot__form_first_xs(f); k < cot__form_first_capture(f); k++) {
        cot__view     v = operand(w, k);
        cot__at_index none = {0};
        if (!w->q.of[k]) continue;
        cot__put_address(w->b, result_of(w, k), &none);
        cot__putf(cot__to(w->b), " + j_0 * %lld, ", (long long)cot__count(v.ndim - 1, v.shape + 1));
    }
}

/* Does a step back use its number? */
static bool knows_step(const way *w) {
    const cot__form *f = &w->q.f;
    bool             given = !f->once && cot__flags_set(w->q.has + f->carry, f->nys) > 0;
    return f->counts || f->nxs || given;
}

static void put_call(const way *w, int which, int depth) {
    int body = cot__back_form_body(&w->q.f, which);
    cot__open_body_call(w->b, body, depth);
    put_inputs(w, which);
    put_outputs(w);
    cot__close_body_call(w->b, body, depth);
}

static void put_step_back(const way *w, int depth) {
    if (w->q.f.chosen) {
        cot__put_choice(w->b, depth);
        put_call(w, 0, depth + 1);
        line(w, depth, "} else {\n");
        put_call(w, 1, depth + 1);
        line(w, depth, "}\n");
    } else put_call(w, 0, depth);
    FOR_BARS(w, k) cot__put_swap(w->b, operand(w, k).dtype, 'a', 'z', k, depth);
}

/* ---- kept states ----------------------------------------------------------------------------- */

static void put_kept(const way *w) {
    const cot__form *f = &w->q.f;
    int              room = cot__back_form_room(f, w->b->attr);
    int64_t          at = w->room.kept;
    for (int k = 0; k < f->carry; k++) {
        cot__view v = operand(w, cot__form_first_carry(f) + k);
        cot__put_indent(w->b->w, COT__BASE);
        cot__putf(cot__to(w->b), "%s *const s_%d = ", cot__emit_type(v.dtype), k);
        cot__put_room(w->b, v.dtype, at);
        cot__put(cot__to(w->b), ";\n");
        at += room * cot__home_bytes(&v);
    }
    at = w->room.given;
    for (int k = f->carry; k < cot__form_results(f); k++) {
        const cot__program *body = w->b->w->p->body[w->b->w->p->operation[w->b->k].body];
        cot__view           v = cot__value_view(body, body->output[k]);
        cot__put_indent(w->b->w, COT__BASE);
        cot__putf(cot__to(w->b), "%s *const u_%d = ", cot__emit_type(v.dtype), k);
        cot__put_room(w->b, v.dtype, at);
        cot__put(cot__to(w->b), ";\n");
        at += cot__home_bytes(&v);
    }
    line(w, COT__BASE, "cot_states l_0;\n");
    line(w, COT__BASE, "l_0.at = (cot_kept *)(void *)((char *)workspace + ");
    cot__putf(cot__to(w->b), "%lld);\n", (long long)(cot__behind_copies(w->b) + w->room.list));
    line(w, COT__BASE, "l_0.kept = 0;\n");
    cot__put_indent(w->b->w, COT__BASE);
    cot__putf(cot__to(w->b), "l_0.room = %d;\n", room);
    line(w, COT__BASE, "");
    cot__put_call(w->b->w, "cot_states_open");
    cot__put(cot__to(w->b), "&l_0);\n");
}

/* The state goes to slot o_0, or comes from there. */
static void put_moved(const way *w, bool back, int depth) {
    const cot__form *f = &w->q.f;
    for (int k = 0; k < f->carry; k++) {
        cot__view v = operand(w, cot__form_first_carry(f) + k);
        char      state[24], slot[64];
        int64_t   size = cot__home_bytes(&v) / cot__dtype_size(v.dtype);
        cot__format(state, sizeof state, "p_%d", k);
        cot__format(slot, sizeof slot, "(s_%d + (ptrdiff_t)o_0 * %lld)", k, (long long)size);
        cot__put_elements_copy(w->b, &v, back ? state : slot, back ? slot : state, depth);
    }
}

/* "const int64_t o_0 = CALL(&l_0, STEP…" and the move there. */
static void put_keep(const way *w, const char *call, const char *step, int depth) {
    line(w, depth, "const int64_t o_0 = ");
    cot__put_call(w->b->w, call);
    cot__putf(cot__to(w->b), "&l_0, %s);\n", step);
    put_moved(w, false, depth);
}

static void put_next(const way *w, const char *text, int depth) {
    line(w, depth, text);
    cot__put_call(w->b->w, "cot_states_next");
    cot__put(cot__to(w->b), "&l_0, f_0, k_0)");
}

/* To the state before step k_0. */
static void put_reach(const way *w, int depth) {
    line(w, depth, "int64_t f_0;\n");
    line(w, depth, "const int64_t o_0 = ");
    cot__put_call(w->b->w, "cot_states_reach");
    cot__put(cot__to(w->b), "&l_0, k_0, &f_0);\n");
    line(w, depth, "if (o_0 < 0) {\n");
    cot__put_first_state(w->b, &w->q.f, depth + 1);
    line(w, depth, "} else {\n");
    put_moved(w, true, depth + 1);
    line(w, depth, "}\n");
    put_next(w, "for (int64_t i_0 = ", depth);
    cot__put(cot__to(w->b), "; f_0 < k_0; f_0++) {\n");
    if (w->q.f.counts || w->q.f.nxs) cot__put_step_number(w->b, &w->q.f, "f_0", depth + 1);
    line(w, depth + 1, "if (f_0 == i_0) {\n");
    put_keep(w, "cot_states_keep", "f_0", depth + 2);
    put_next(w, "i_0 = ", depth + 2);
    cot__put(cot__to(w->b), ";\n");
    line(w, depth + 1, "}\n");
    cot__put_step(w->b, &w->q.f, true, depth + 1);
    line(w, depth, "}\n");
}

/* Runs a loop of unknown length, which is m_0 then. */
static void put_run(const way *w) {
    line(w, COT__BASE, "int64_t m_0 = 0;\n");
    cot__put_first_state(w->b, &w->q.f, COT__BASE);
    line(w, COT__BASE, "for (int64_t k_0 = 0;; m_0 = ++k_0) {\n");
    cot__put_test(w->b, &w->q.f, COT__BASE + 1);
    line(w, COT__BASE + 1, "if (k_0 > 0) {\n");
    put_keep(w, "cot_states_online", "k_0", COT__BASE + 2);
    line(w, COT__BASE + 1, "}\n");
    cot__put_step(w->b, &w->q.f, true, COT__BASE + 1);
    line(w, COT__BASE, "}\n");
}

/* ---- the whole ------------------------------------------------------------------------------- */

void cot__put_way_back(const cot__block *b) {
    way w = {.b = b, .q = cot__back_form_read(b->attr, b->w->p->body + b->w->p->operation[b->k].body),
             .room = cot__loop_room_of(b->w->p, b->k)};
    const cot__form *f = &w.q.f;
    cot__put_dense_copies(b);
    line(&w, COT__BASE, "int e_0;\n");
    cot__put_states(b, f);
    put_bars(&w);
    if (f->carry) put_kept(&w);
    if (f->tests) put_run(&w), line(&w, COT__BASE, "for (int64_t k_0 = m_0; k_0-- > 0;) {\n");
    else
        cot__put_indent(b->w, COT__BASE),
            cot__putf(cot__to(b), "for (int64_t k_0 = %lld; k_0-- > 0;) {\n", (long long)f->length);
    if (f->carry) put_reach(&w, COT__BASE + 1);
    if (knows_step(&w)) cot__put_step_number(b, f, "k_0", COT__BASE + 1);
    put_step_back(&w, COT__BASE + 1);
    line(&w, COT__BASE, "}\n");
    put_results(&w);
}
