/* statistics.c: blocks that fold an array twice: norms, logarithms of sums of exponentials,
 * softmax; and the mean of squares. Orders of arithmetic are those of backend/cpu/reduce. */
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

/* In f64: sums of 256 squares each, added in order (loss.c). */
void cot__put_mse(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    int64_t         n  = cot__view_size(&b->xv);
    cot__text      *to = cot__to(b);
    cot__put(to, "        double s_0 = 0.0, a_0 = 0.0;\n        uint32_t n_0 = 0;\n");
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &at, &room);
    cot__put_indent(b->w, inside);
    cot__put(to, "const double d_0 = (double)");
    cot__put_element(b->w, b->x[0], &at);
    cot__put(to, " - (double)");
    cot__put_element(b->w, b->x[1], &at);
    cot__put(to, ";\n");
    cot__put_indent(b->w, inside);
    cot__put(to, "s_0 = s_0 + d_0 * d_0;\n");
    cot__put_indent(b->w, inside);
    cot__put(to, "if (++n_0 == 256) a_0 = a_0 + s_0, s_0 = 0.0, n_0 = 0;\n");
    cot__close_loops(b->w, COT__BASE, inside);
    cot__put(to, "        if (n_0 > 0) a_0 = a_0 + s_0;\n");
    cot__open_result(b, COT__BASE, &at);
    cot__putf(to, "%sa_0 / %lld.0%s;\n", b->zv.dtype == COT_F32 ? "(float)(" : "", (long long)n,
              b->zv.dtype == COT_F32 ? ")" : "");
}
