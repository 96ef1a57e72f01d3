/* reductions.c: blocks that fold arrays: reductions, products of matrices, running sums. Orders of
 * arithmetic are those of the kernels in backend/cpu. */
#include "program/emit/block.h"

/* ---- reductions ------------------------------------------------------------------------------ */

/* Leaves have 256 values; a tree over n leaves has so many levels. */
void cot__note_levels(cot__writer *w, int64_t count) {
    int levels = 1;
    for (int64_t leaves = (count + 255) / 256; leaves > 1; leaves = (leaves + 1) / 2) levels++;
    if (levels > w->levels) w->levels = levels;
}

/* Loops over the axes that stay, and the place of the result. */
int cot__open_kept(const cot__block *b, uint32_t mask, bool keeps, cot__at_index *xi, cot__at_index *zi,
                   cot__loop_names *room) {
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, ~mask, xi, room), n = 0;
    for (int k = 0; k < b->xv.ndim; k++)
        if (!(mask >> k & 1))
            zi->axis[n++] = xi->axis[k];
        else if (keeps)
            zi->axis[n++] = NULL;
    return inside;
}

static int64_t reduced_count(const cot__block *b, uint32_t mask) {
    int64_t count = 1;
    for (int k = 0; k < b->xv.ndim; k++)
        if (mask >> k & 1) count *= b->xv.shape[k];
    return count;
}

void cot__put_fold_call(const cot__block *b, const cot__fold *f, const char *what) {
    char      name[48];
    cot__text text = cot__text_buffer(name, sizeof name);
    cot__putf(&text, "cot_fold_%s_%s_%s", what, f->kind, f->as == COT_F32 ? "f32" : "f64");
    cot__put_call(b->w, name);
}

/* Folds the slices of x along `mask` into the variable f_0. */
void cot__put_fold(const cot__block *b, int depth, uint32_t mask, const cot__fold *f, cot__at_index *xi,
                   cot__loop_names *room) {
    cot__note_levels(b->w, reduced_count(b, mask));
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "cot_fold_%s_%s f_0;\n", f->kind, f->as == COT_F32 ? "f32" : "f64");
    cot__put_indent(b->w, depth);
    cot__put_fold_call(b, f, "begin");
    cot__put(cot__to(b), "&f_0);\n");
    int inside = cot__open_loops(b->w, depth, 'i', &b->xv, mask, xi, room);
    cot__put_indent(b->w, inside);
    cot__put_fold_call(b, f, "take");
    cot__putf(cot__to(b), "&f_0, %s", f->before);
    if (b->xv.dtype != f->as) cot__putf(cot__to(b), "(%s)", cot__emit_type(f->as));
    cot__put_element(b->w, b->x[0], xi);
    cot__putf(cot__to(b), "%s);\n", f->behind);
    cot__close_loops(b->w, depth, inside);
}

/* Sums and extremes of integers, any and all: a plain chain, since no order of it shows. `start`
 * NULL: the first value. */
static void put_chain(const cot__block *b, int depth, uint32_t mask, const char *step, const char *start,
                      cot__at_index *xi, cot__loop_names *room) {
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "int64_t a_0 = %s", start ? start : "(int64_t)");
    if (!start) {
        cot__at_index first = *xi;
        for (int k = 0; k < b->xv.ndim; k++)
            if (mask >> k & 1) first.axis[k] = NULL;
        cot__put_element(b->w, b->x[0], &first);
    }
    cot__put(cot__to(b), ";\n");
    int inside = cot__open_loops(b->w, depth, 'i', &b->xv, mask, xi, room);
    cot__put_indent(b->w, inside);
    cot__put(cot__to(b), "a_0 = ");
    cot__put_call(b->w, step);
    cot__put(cot__to(b), "a_0, (int64_t)");
    cot__put_element(b->w, b->x[0], xi);
    cot__put(cot__to(b), ");\n");
    cot__close_loops(b->w, depth, inside);
}

/* sum, max, min */
static void put_reduction(const cot__block *b, const char *kind, const char *step, const char *start) {
    uint32_t        mask = (uint32_t)cot__int(b, 0);
    cot__at_index   xi = {0}, zi = {0};
    cot__loop_names room;
    bool            real = cot__dtype_is_float(b->zv.dtype);
    if (reduced_count(b, mask) == 0) {
        cot__put_fill(b, 0);
        return;
    }
    int inside = cot__open_kept(b, mask, cot__int(b, 1) != 0, &xi, &zi, &room);
    if (real)
        cot__put_fold(b, inside, mask, &(cot__fold){kind, "", "", b->zv.dtype}, &xi, &room);
    else
        put_chain(b, inside, mask, step, start, &xi, &room);
    cot__open_result(b, inside, &zi);
    if (real)
        cot__put_fold_call(b, &(cot__fold){kind, "", "", b->zv.dtype}, "end"), cot__put(cot__to(b), "&f_0);\n");
    else
        cot__put_stored(b, "a_0");
    cot__close_loops(b->w, COT__BASE, inside);
}
void cot__put_sum(const cot__block *b) { put_reduction(b, "add", "cot_iadd", "0"); }
void cot__put_max(const cot__block *b) { put_reduction(b, "max", "cot_imaximum", NULL); }
void cot__put_min(const cot__block *b) { put_reduction(b, "min", "cot_iminimum", NULL); }

/* any, all: of the elements' truths */
static void put_truth(const cot__block *b, bool all) {
    uint32_t        mask = (uint32_t)cot__int(b, 0);
    cot__at_index   xi = {0}, zi = {0};
    cot__loop_names room;
    int             inside = cot__open_kept(b, mask, cot__int(b, 1) != 0, &xi, &zi, &room);
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "uint8_t a_0 = %d;\n", all);
    int deep = cot__open_loops(b->w, inside, 'i', &b->xv, mask, &xi, &room);
    cot__put_indent(b->w, deep);
    cot__put(cot__to(b), "if (");
    cot__put_element(b->w, b->x[0], &xi);
    cot__putf(cot__to(b), " %s 0) a_0 = %d;\n", all ? "==" : "!=", !all);
    cot__close_loops(b->w, inside, deep);
    cot__open_result(b, inside, &zi);
    cot__put(cot__to(b), "a_0;\n");
    cot__close_loops(b->w, COT__BASE, inside);
}
void cot__put_any(const cot__block *b) { put_truth(b, false); }
void cot__put_all(const cot__block *b) { put_truth(b, true); }

/* The first of the extremes; the first NaN beats all. */
static void put_arg(const cot__block *b, char better) {
    uint32_t        mask = (uint32_t)cot__int(b, 0);
    cot__at_index   xi = {0}, zi = {0}, first;
    cot__loop_names room;
    const char     *type = cot__emit_type(b->xv.dtype);
    int             axis = 0, inside = cot__open_kept(b, mask, cot__int(b, 1) != 0, &xi, &zi, &room);
    while (!(mask >> axis & 1)) axis++;
    first            = xi;
    first.axis[axis] = NULL;
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "int64_t a_0 = 0;\n");
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "%s b_0 = ", type);
    cot__put_element(b->w, b->x[0], &first);
    cot__put(cot__to(b), ";\n");
    int deep = cot__open_loops(b->w, inside, 'i', &b->xv, mask, &xi, &room);
    cot__put_indent(b->w, deep);
    cot__putf(cot__to(b), "const %s e_0 = ", type);
    cot__put_element(b->w, b->x[0], &xi);
    cot__put(cot__to(b), ";\n");
    cot__put_indent(b->w, deep);
    cot__putf(cot__to(b), "if (e_0 %c b_0", better);
    if (cot__dtype_is_float(b->xv.dtype)) cot__put(cot__to(b), " || (e_0 != e_0 && b_0 == b_0)");
    cot__putf(cot__to(b), ") b_0 = e_0, a_0 = %s;\n", xi.axis[axis] ? xi.axis[axis] : "0");
    cot__close_loops(b->w, inside, deep);
    cot__open_result(b, inside, &zi);
    cot__put(cot__to(b), "a_0;\n");
    cot__close_loops(b->w, COT__BASE, inside);
}
void cot__put_argmax(const cot__block *b) { put_arg(b, '>'); }
void cot__put_argmin(const cot__block *b) { put_arg(b, '<'); }

/* ---- products -------------------------------------------------------------------------------- */

enum { DEEP = 384 }; /* COT__DEEP: terms of a block of the chain */

/* One element: a chain of fused multiply-adds over each block of the depth, blocks added in order
 * (gemm.c). */
static void put_dot(const cot__block *b, int depth, int64_t terms, const cot__at_index *ai, const cot__at_index *bi) {
    const char *type = cot__emit_type(b->zv.dtype), *zero = b->zv.dtype == COT_F32 ? "0.0f" : "0.0";
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "%s s_0 = %s%s%s;\n", type, zero, terms > DEEP ? ", a_0 = " : "", terms > DEEP ? zero : "");
    cot__put_indent(b->w, depth);
    if (terms > 1)
        cot__putf(cot__to(b), "for (ptrdiff_t k_0 = 0; k_0 < %lld; k_0++) {\n", (long long)terms);
    else
        cot__put(cot__to(b), "{\n");
    cot__put_indent(b->w, depth + 1);
    cot__put(cot__to(b), "s_0 = ");
    if (terms > 1) cot__put_call(b->w, b->zv.dtype == COT_F32 ? "cot_fmaf" : "cot_fma");
    cot__put_element(b->w, b->x[0], ai);
    cot__put(cot__to(b), terms > 1 ? ", " : " * ");
    cot__put_element(b->w, b->x[1], bi);
    cot__putf(cot__to(b), terms > 1 ? ", s_0);\n" : " + %s;\n", zero);
    if (terms > DEEP) {
        cot__put_indent(b->w, depth + 1);
        cot__putf(cot__to(b), "if (k_0 %% %d == %d || k_0 == %lld) a_0 = k_0 < %d ? s_0 : a_0 + s_0, s_0 = %s;\n", DEEP,
                  DEEP - 1, (long long)terms - 1, DEEP, zero);
    }
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "}\n");
}

/* A product of two vectors is the sum of the products, with the tree of sums (dot.c); -0 becomes
 * 0. */
void cot__put_vectors(const cot__block *b, int depth, int64_t terms, const cot__at_index *ai, const cot__at_index *bi,
                      bool declared) {
    cot__fold   f    = {"add", "", "", b->zv.dtype};
    const char *type = b->zv.dtype == COT_F32 ? "f32" : "f64";
    cot__note_levels(b->w, terms);
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "cot_fold_add_%s f_0;\n", type);
    cot__put_indent(b->w, depth);
    cot__put_fold_call(b, &f, "begin");
    cot__put(cot__to(b), "&f_0);\n");
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "for (ptrdiff_t k_0 = 0; k_0 < %lld; k_0++) ", (long long)terms);
    cot__put_fold_call(b, &f, "take");
    cot__put(cot__to(b), "&f_0, ");
    cot__put_element(b->w, b->x[0], ai);
    cot__put(cot__to(b), " * ");
    cot__put_element(b->w, b->x[1], bi);
    cot__put(cot__to(b), ");\n");
    cot__put_indent(b->w, depth);
    if (!declared) cot__putf(cot__to(b), "const %s ", cot__emit_type(b->zv.dtype));
    cot__put(cot__to(b), "s_0 = ");
    cot__put_fold_call(b, &f, "end");
    cot__putf(cot__to(b), "&f_0) + 0.0%s;\n", b->zv.dtype == COT_F32 ? "f" : "");
}

static void put_integer_dot(const cot__block *b, int depth, int64_t terms, const cot__at_index *ai,
                            const cot__at_index *bi) {
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "int64_t s_0 = 0;\n");
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "for (ptrdiff_t k_0 = 0; k_0 < %lld; k_0++) s_0 = ", (long long)terms);
    cot__put_call(b->w, "cot_ifma");
    cot__put(cot__to(b), "(int64_t)");
    cot__put_element(b->w, b->x[0], ai);
    cot__put(cot__to(b), ", (int64_t)");
    cot__put_element(b->w, b->x[1], bi);
    cot__put(cot__to(b), ", s_0);\n");
}

void cot__put_matmul(const cot__block *b) {
    cot__view       a = b->xv, c = cot__value_view(b->w->p, b->x[1]);
    int64_t         terms = a.shape[a.ndim - 1];
    cot__at_index   zi = {0}, ai = {0}, bi = {0};
    cot__loop_names room;
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &zi, &room), n = b->zv.ndim;
    int             leading = a.ndim > 2 ? a.ndim - 2 : 0;
    for (int k = 0; k < leading; k++) ai.axis[k] = bi.axis[k] = zi.axis[k];
    if (a.ndim > 1) ai.axis[a.ndim - 2] = zi.axis[leading];
    if (c.ndim > 1) bi.axis[c.ndim - 1] = zi.axis[n - 1];
    ai.axis[a.ndim - 1] = bi.axis[c.ndim > 1 ? c.ndim - 2 : 0] = terms > 1 ? "k_0" : NULL;
    bool real                                                  = cot__dtype_is_float(b->zv.dtype);
    bool one = (a.ndim < 2 || a.shape[a.ndim - 2] == 1) && (c.ndim < 2 || c.shape[c.ndim - 1] == 1);
    if (terms == 0)
        cot__put_indent(b->w, inside), cot__putf(cot__to(b), "const %s s_0 = 0;\n", cot__emit_type(b->zv.dtype));
    else if (real && one && terms > 1)
        cot__put_vectors(b, inside, terms, &ai, &bi, false);
    else if (real)
        put_dot(b, inside, terms, &ai, &bi);
    else
        put_integer_dot(b, inside, terms, &ai, &bi);
    cot__open_result(b, inside, &zi);
    if (real)
        cot__put(cot__to(b), terms > DEEP && !one ? "a_0;\n" : "s_0;\n");
    else
        cot__put_stored(b, "s_0");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* ---- running sums ---------------------------------------------------------------------------- */

/* A chain along the axis, carried in f64 (scan.c). */
void cot__put_cumsum(const cot__block *b) {
    int64_t         axis = cot__int(b, 0), n = b->xv.shape[axis];
    cot__at_index   at = {0};
    cot__loop_names room;
    char            index[64];
    bool            real = cot__dtype_is_float(b->zv.dtype), back = b->attr->nints > 1 && cot__int(b, 1) != 0;
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, ~(1u << axis), &at, &room);
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "%s s_0 = 0;\n", real ? "double" : "int64_t");
    int         deep    = cot__open_loops(b->w, inside, 'i', &b->xv, 1u << axis, &at, &room);
    const char *forward = at.axis[axis];
    if (back) at.axis[axis] = cot__shifted(forward, n - 1, -1, index);
    cot__put_indent(b->w, deep);
    if (real)
        cot__putf(cot__to(b), "s_0 = %s%s%s(double)", forward ? forward : "", forward ? " == 0 ? " : "", "");
    else
        cot__put(cot__to(b), "s_0 = "), cot__put_call(b->w, "cot_iadd"), cot__put(cot__to(b), "s_0, (int64_t)");
    cot__put_element(b->w, b->x[0], &at);
    if (real && forward) cot__put(cot__to(b), " : s_0 + (double)"), cot__put_element(b->w, b->x[0], &at);
    cot__put(cot__to(b), real ? ";\n" : ");\n");
    cot__open_result(b, deep, &at);
    if (real)
        cot__put(cot__to(b), b->zv.dtype == COT_F32 ? "(float)s_0;\n" : "s_0;\n");
    else
        cot__put_stored(b, "s_0");
    cot__close_loops(b->w, COT__BASE, deep);
}
