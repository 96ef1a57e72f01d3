/* statistics.c: blocks that fold an array twice: norms, logarithms of sums of exponentials,
 * softmax; and the means of losses. Orders of arithmetic are those of backend/cpu/reduce. */
#include "program/emit/block.h"
#include "rules/structural_ids.h"

static const char *suffix(const cot__block *b) { return b->zv.dtype == COT_F32 ? "f" : ""; }

/* "type name = " */
static void open_variable(const cot__block *b, int depth, const char *name) {
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "%s %s = ", cot__emit_type(b->zv.dtype), name);
}

/* Folds x along `mask` into a variable of this name. */
static void put_folded(const cot__block *b, int depth, uint32_t mask, const cot__fold *f, const char *name,
                       cot__at_index *xi, cot__loop_names *room) {
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "%s %s;\n", cot__emit_type(b->zv.dtype), name);
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "{\n");
    cot__put_fold(b, depth + 1, mask, f, xi, room);
    cot__put_indent(b->w, depth + 1);
    cot__putf(cot__to(b), "%s = ", name);
    cot__put_fold_call(b, f, "end");
    cot__put(cot__to(b), "&f_0);\n");
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "}\n");
}

/* The name of an elementary function with its parenthesis, which is needed. */
static const char *function(const cot__block *b, const char *name, char room[48]) {
    cot__text text = cot__text_buffer(room, 48), *to = b->w->to;
    b->w->to = &text;
    cot__put_elementary(b->w, name, b->zv.dtype);
    b->w->to = to;
    return room;
}

/* m_0, the maximum, and s_0, the sum of e^(x - h_0); h_0 is m_0, or 0 where that is not finite. */
static void put_exponentials(const cot__block *b, int depth, uint32_t mask, cot__at_index *xi, cot__loop_names *room) {
    char name[48];
    put_folded(b, depth, mask, &(cot__fold){"max", "", "", b->zv.dtype}, "m_0", xi, room);
    open_variable(b, depth, "h_0");
    cot__putf(cot__to(b), "isfinite(m_0) ? m_0 : 0.0%s;\n", suffix(b));
    cot__fold sum = {"add", function(b, "exp", name), " - h_0)", b->zv.dtype};
    put_folded(b, depth, mask, &sum, "s_0", xi, room);
}

void cot__put_logsumexp(const cot__block *b) {
    uint32_t        mask = (uint32_t)cot__int(b, 0);
    cot__at_index   xi = {0}, zi = {0};
    cot__loop_names room;
    char            name[48];
    if (cot__view_size(&b->xv) == 0) {
        cot__put_fill(b, -INFINITY);
        return;
    }
    int inside = cot__open_kept(b, mask, cot__int(b, 1) != 0, &xi, &zi, &room);
    put_exponentials(b, inside, mask, &xi, &room);
    cot__open_result(b, inside, &zi);
    cot__putf(cot__to(b), "isfinite(m_0) ? m_0 + %ss_0) : m_0;\n", function(b, "log", name));
    cot__close_loops(b->w, COT__BASE, inside);
}

void cot__put_softmax(const cot__block *b) {
    uint32_t        mask      = 1u << cot__int(b, 0);
    bool            logarithm = b->w->p->operation[b->k].op == OP_log_softmax;
    cot__at_index   xi        = {0};
    cot__loop_names room;
    char            name[48];
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, ~mask, &xi, &room);
    put_exponentials(b, inside, mask, &xi, &room);
    if (logarithm) {
        open_variable(b, inside, "l_0");
        cot__putf(cot__to(b), "%ss_0);\n", function(b, "log", name));
    }
    int deep = cot__open_loops(b->w, inside, 'i', &b->xv, mask, &xi, &room);
    cot__open_result(b, deep, &xi);
    cot__put(cot__to(b), logarithm ? "(" : function(b, "exp", name));
    cot__put_element(b->w, b->x[0], &xi);
    cot__put(cot__to(b), logarithm ? " - m_0) - l_0;\n" : " - m_0) / s_0;\n");
    cot__close_loops(b->w, COT__BASE, deep);
}

/* Scaled by a power of two near the largest magnitude, so that no square leaves the range. */
void cot__put_norm(const cot__block *b) {
    uint32_t        mask   = (uint32_t)cot__int(b, 0);
    bool            single = b->zv.dtype == COT_F32;
    cot__at_index   xi = {0}, zi = {0};
    cot__loop_names room;
    if (cot__view_size(&b->xv) == 0) {
        cot__put_fill(b, 0);
        return;
    }
    int inside = cot__open_kept(b, mask, cot__int(b, 1) != 0, &xi, &zi, &room);
    put_folded(b, inside, mask, &(cot__fold){"max", single ? "fabsf(" : "fabs(", ")", b->zv.dtype}, "m_0", &xi, &room);
    open_variable(b, inside, "h_0");
    cot__put(cot__to(b), single ? "(float)" : "");
    cot__put_call(b->w, "cot_scale");
    cot__put(cot__to(b), single ? "(double)m_0, 125);\n" : "m_0, 1021);\n");
    cot__fold squares = {"add", single ? "w_square_f32(" : "w_square_f64(", " * h_0)", b->zv.dtype};
    cot__parts_need(&b->w->parts, single ? "w_square_f32" : "w_square_f64");
    put_folded(b, inside, mask, &squares, "s_0", &xi, &room);
    cot__open_result(b, inside, &zi);
    cot__putf(cot__to(b), "isfinite(m_0) ? %s / h_0 : m_0;\n", single ? "(float)sqrt((double)s_0)" : "sqrt(s_0)");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* In f64: sums of 256 terms each, added in order (loss.c). */
static void open_mean(const cot__block *b) {
    cot__put(cot__to(b), "        double q_0 = 0.0, r_0 = 0.0;\n        uint32_t n_0 = 0;\n");
}
static void end_term(const cot__block *b, int depth) {
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "if (++n_0 == 256) r_0 = r_0 + q_0, q_0 = 0.0, n_0 = 0;\n");
}
static void close_mean(const cot__block *b, int64_t n) {
    cot__at_index at = {0};
    double        count = (double)n;
    cot__put(cot__to(b), "        if (n_0 > 0) r_0 = r_0 + q_0;\n");
    cot__open_result(b, COT__BASE, &at);
    cot__putf(cot__to(b), "%s(r_0 / ", cot__rounded(b));
    cot__emit_literal(cot__to(b), COT_F64, &count);
    cot__put(cot__to(b), ");\n");
}

void cot__put_mse(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    cot__text      *to = cot__to(b);
    open_mean(b);
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &at, &room);
    cot__put_indent(b->w, inside);
    cot__put(to, "const double d_0 = (double)");
    cot__put_element(b->w, b->x[0], &at);
    cot__put(to, " - (double)");
    cot__put_element(b->w, b->x[1], &at);
    cot__put(to, ";\n");
    cot__put_indent(b->w, inside);
    cot__put(to, "q_0 = q_0 + d_0 * d_0;\n");
    end_term(b, inside);
    cot__close_loops(b->w, COT__BASE, inside);
    close_mean(b, cot__view_size(&b->xv));
}

/* e_0 = the logarithm of a probability: of an element of x, or, of logits, by the softmax of its
 * row. */
static void put_log_probability(const cot__block *b, int depth, bool logits, const cot__at_index *at) {
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "const double e_0 = ");
    if (logits) cot__put(cot__to(b), "(double)((");
    else cot__put_elementary(b->w, "log", COT_F64), cot__put(cot__to(b), "(double)");
    cot__put_element(b->w, b->x[0], at);
    cot__put(cot__to(b), logits ? " - m_0) - l_0);\n" : ");\n");
}

/* The label of a row, which must be a position on the last axis. */
static void put_label(const cot__block *b, int depth, int64_t classes, const cot__at_index *at) {
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "const int64_t p_0 = (int64_t)");
    cot__put_element(b->w, b->x[1], at);
    cot__put(cot__to(b), ";\n");
    cot__open_check(b, depth);
    cot__putf(cot__to(b), "p_0 < 0 || p_0 >= INT64_C(%lld)", (long long)classes);
    cot__close_check(b);
}

/* Of labels, integers, or of probabilities, for which a zero contributes nothing. */
void cot__put_cross_entropy(const cot__block *b) {
    int             last   = b->xv.ndim - 1;
    bool            logits = b->w->p->operation[b->k].op == OP_softmax_cross_entropy;
    bool            labels = !cot__dtype_is_float(cot__value_view(b->w->p, b->x[1]).dtype);
    cot__at_index   at     = {0};
    cot__loop_names room;
    cot__view       rows = b->xv;
    char            name[48];
    rows.ndim--;
    open_mean(b);
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &rows, COT__ALL_AXES, &at, &room), deep = inside;
    if (labels) put_label(b, inside, b->xv.shape[last], &at);
    if (b->xv.shape[last] == 0) { /* rows of nothing contribute nothing */
        cot__close_loops(b->w, COT__BASE, inside);
        close_mean(b, cot__count(last, b->xv.shape));
        return;
    }
    if (logits) {
        cot_dtype as = b->zv.dtype;
        put_exponentials(b, inside, 1u << last, &at, &room);
        cot__put_indent(b->w, inside);
        cot__putf(cot__to(b), "const %s l_0 = %ss_0);\n", cot__emit_type(as), function(b, "log", name));
    }
    if (labels) at.axis[last] = "(ptrdiff_t)p_0";
    else deep = cot__open_loops(b->w, inside, 'i', &b->xv, 1u << last, &at, &room);
    if (!labels) {
        cot__put_indent(b->w, deep);
        cot__put(cot__to(b), "const double d_0 = (double)");
        cot__put_element(b->w, b->x[1], &at);
        cot__put(cot__to(b), ";\n");
    }
    put_log_probability(b, deep, logits, &at);
    cot__put_indent(b->w, deep);
    cot__put(cot__to(b), labels ? "q_0 = q_0 - e_0;\n" : "if (d_0 != 0) q_0 = q_0 - d_0 * e_0;\n");
    end_term(b, deep);
    cot__close_loops(b->w, COT__BASE, deep);
    close_mean(b, cot__count(last, b->xv.shape));
}

/* ---- lists of numbers ------------------------------------------------------------------------ */

/* sum_of, dot_of: a chain from 0 in the order of the operands; second factors stand behind the
 * first ones. */
void cot__put_list(const cot__block *b) {
    bool          dot = b->w->p->operation[b->k].op == OP_dot_of;
    int           n   = cot__operation_operands(b->w->p, b->k) / (dot ? 2 : 1);
    cot__at_index at  = {0};
    cot__open_result(b, COT__BASE, &at);
    cot__putf(cot__to(b), "0.0%s", suffix(b));
    for (int k = 0; k < n; k++) {
        cot__put(cot__to(b), cot__to(b)->column > 100 ? "\n            + " : " + ");
        cot__put_element(b->w, b->x[k], &at);
        if (dot) cot__put(cot__to(b), " * "), cot__put_element(b->w, b->x[k + n], &at);
    }
    cot__put(cot__to(b), ";\n");
}

/* The largest number, and the logarithm of the sum of e^(x - it), in the order of the operands. */
void cot__put_logsumexp_of(const cot__block *b) {
    int           n   = cot__operation_operands(b->w->p, b->k);
    cot_dtype     d   = b->zv.dtype;
    cot__text    *to  = cot__to(b);
    cot__at_index at  = {0};
    char          name[48];
    cot__putf(to, "        const %s x_0[%d] = {", cot__emit_type(d), n);
    for (int k = 0; k < n; k++) {
        cot__put(to, k == 0 ? "" : to->column > 100 ? ",\n            " : ", ");
        cot__put_element(b->w, b->x[k], &at);
    }
    cot__putf(to, "};\n        %s m_0 = (%s)-INFINITY, s_0 = 0;\n        int o_0 = 0;\n", cot__emit_type(d),
              cot__emit_type(d));
    cot__putf(to, "        for (ptrdiff_t k_0 = 0; k_0 < %d; k_0++) {\n", n);
    cot__put(to, "            m_0 = x_0[k_0] > m_0 ? x_0[k_0] : m_0;\n"
                 "            if (x_0[k_0] != x_0[k_0]) o_0 = 1;\n        }\n");
    cot__putf(to, "        if (o_0) m_0 = (%s)NAN;\n", cot__emit_type(d));
    cot__putf(to, "        const %s h_0 = isinf(m_0) && m_0 < 0 ? 0 : m_0;\n", cot__emit_type(d));
    cot__putf(to, "        for (ptrdiff_t k_0 = 0; k_0 < %d; k_0++) s_0 = s_0 + %sx_0[k_0] - h_0);\n", n,
              function(b, "exp", name));
    cot__open_result(b, COT__BASE, &at);
    cot__putf(to, "isfinite(m_0) ? m_0 + %ss_0) : m_0;\n", function(b, "log", name));
}
