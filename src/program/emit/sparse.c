/* sparse.c: blocks of sparse matrices: products with dense ones, dense products at the places of a
 * sparse one, softmax over the entries of rows. The pattern is an array like any other, mostly a
 * constant. Orders of arithmetic are those of backend/cpu/sparse, and as there nothing of a pattern
 * is believed. */
#include "program/emit/block.h"
#include "rules/structural_ids.h"

/* operands; csr_softmax has no second one */
enum { FIRST, SECOND, PATTERN, SOFT_PATTERN = 1 };

static int64_t extent(const cot__view *v, int back) { return v->shape[v->ndim - back]; }
static cot__view operand(const cot__block *b, int k) { return cot__value_view(b->w->p, b->x[k]); }
static const char *zero_of(const cot__block *b) { return b->zv.dtype == COT_F32 ? "0.0f" : "0.0"; }

/* Element `before + index` of the pattern. */
static void put_place(const cot__block *b, int pattern, int64_t before, const char *index) {
    char          room[64];
    cot__at_index at = {0};
    at.axis[0] = cot__shifted(index, before, 1, room);
    cot__put_element(b->w, b->x[pattern], &at);
}

/* "ptrdiff_t NAME = pattern[…];" */
static void put_variable(const cot__block *b, int depth, const char *name, int64_t before, const char *index) {
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "const ptrdiff_t %s = ", name);
    put_place(b, PATTERN, before, index);
    cot__put(cot__to(b), ";\n");
}

/* b_0 and e_0, the first of a row's entries and the one behind its last, both within `entries`. */
static void put_range(const cot__block *b, int depth, int pattern, int64_t before, const char *row, int64_t entries) {
    for (int end = 0; end < 2; end++) {
        const char *low = end ? "b_0" : "0", *name = end ? "e_0" : "b_0";
        cot__put_indent(b->w, depth);
        cot__putf(cot__to(b), "ptrdiff_t %s = ", name);
        put_place(b, pattern, before + end, row);
        cot__putf(cot__to(b), ";\n");
        cot__put_indent(b->w, depth);
        cot__putf(cot__to(b), "%s = %s < %s ? %s : %s > %lld ? %lld : %s;\n", name, name, low, low, name,
                  (long long)entries, (long long)entries, name);
    }
}

static void close_brace(const cot__block *b, int depth) {
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "}\n");
}

/* ---- products -------------------------------------------------------------------------------- */

/* An element: a chain over the entries of its row. */
void cot__put_csr_matmul(const cot__block *b) {
    cot__view       v = operand(b, FIRST), x = operand(b, SECOND);
    int             n = b->zv.ndim;
    bool            transposed = cot__int(b, 0) != 0;
    int64_t         entries = extent(&v, 1), in = extent(&x, 2), out = extent(&b->zv, 2);
    int64_t         starts = transposed ? in + 1 + entries : 0, columns = starts + out + 1;
    cot__at_index   zi = {0};
    cot__loop_names room;
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &zi, &room);
    cot__at_index   vi = zi, xi = zi;
    vi.axis[n - 2] = transposed ? "o_0" : "b_0";
    vi.axis[n - 1] = NULL;
    xi.axis[n - 2] = "c_0";
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "%s s_0 = %s;\n", cot__emit_type(b->zv.dtype), zero_of(b));
    put_range(b, inside, PATTERN, starts, zi.axis[n - 2], entries);
    cot__put_indent(b->w, inside);
    cot__put(cot__to(b), "for (; b_0 < e_0; b_0++) {\n");
    put_variable(b, inside + 1, "c_0", columns, "b_0");
    if (transposed) put_variable(b, inside + 1, "o_0", columns + entries, "b_0");
    cot__put_indent(b->w, inside + 1);
    cot__putf(cot__to(b), "if (c_0 >= 0 && c_0 < %lld", (long long)in);
    if (transposed) cot__putf(cot__to(b), " && o_0 >= 0 && o_0 < %lld", (long long)entries);
    cot__put(cot__to(b), ") s_0 = s_0 + ");
    cot__put_element(b->w, b->x[FIRST], &vi);
    cot__put(cot__to(b), " * ");
    cot__put_element(b->w, b->x[SECOND], &xi);
    cot__put(cot__to(b), ";\n");
    close_brace(b, inside);
    cot__open_result(b, inside, &zi);
    cot__put(cot__to(b), "s_0;\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* s_0 = x[r_0] · y[c_0], -0 made 0. */
static void put_row_product(const cot__block *b, int depth, int64_t terms, const cot__at_index *xi,
                            const cot__at_index *yi) {
    if (terms > 1) {
        cot__put_vectors(b, depth, terms, xi, yi, true);
        return;
    }
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "s_0 = ");
    cot__put_element(b->w, b->x[FIRST], xi);
    cot__put(cot__to(b), " * ");
    cot__put_element(b->w, b->x[SECOND], yi);
    cot__putf(cot__to(b), " + %s;\n", zero_of(b));
}

/* Loops over the matrices of a batch: all axes of the result but its last. */
static int open_batch(const cot__block *b, cot__at_index *at, cot__loop_names *room) {
    cot__view batch = b->zv;
    batch.ndim--;
    return cot__open_loops(b->w, COT__BASE, 'i', &batch, COT__ALL_AXES, at, room);
}

/* r_0 is the row of entry b_0. */
void cot__put_csr_sddmm(const cot__block *b) {
    cot__view       x = operand(b, FIRST), y = operand(b, SECOND);
    int             n = x.ndim;
    int64_t         rows = extent(&x, 2), columns = extent(&y, 2), terms = extent(&x, 1), entries = extent(&b->zv, 1);
    cot__at_index   zi = {0};
    cot__loop_names room;
    int             inside = open_batch(b, &zi, &room);
    cot__at_index   xi = zi, yi = zi;
    xi.axis[n - 2] = "r_0", yi.axis[n - 2] = "c_0";
    xi.axis[n - 1] = yi.axis[n - 1] = terms > 1 ? "k_0" : NULL;
    zi.axis[n - 2] = "b_0";
    if (terms > 0) cot__put_indent(b->w, inside), cot__put(cot__to(b), "ptrdiff_t r_0 = 0;\n");
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "for (ptrdiff_t b_0 = 0; b_0 < %lld; b_0++) {\n", (long long)entries);
    cot__put_indent(b->w, inside + 1);
    cot__putf(cot__to(b), "%s s_0 = %s;\n", cot__emit_type(b->zv.dtype), zero_of(b));
    if (terms > 0) {
        put_variable(b, inside + 1, "c_0", rows + 1, "b_0");
        cot__put_indent(b->w, inside + 1);
        cot__putf(cot__to(b), "while (r_0 < %lld && ", (long long)rows);
        put_place(b, PATTERN, 1, "r_0");
        cot__put(cot__to(b), " <= b_0) r_0++;\n");
        cot__put_indent(b->w, inside + 1);
        cot__putf(cot__to(b), "if (r_0 < %lld && c_0 >= 0 && c_0 < %lld) {\n", (long long)rows, (long long)columns);
        put_row_product(b, inside + 2, terms, &xi, &yi);
        close_brace(b, inside + 1);
    }
    cot__open_result(b, inside + 1, &zi);
    cot__put(cot__to(b), "s_0;\n");
    close_brace(b, inside);
    cot__close_loops(b->w, COT__BASE, inside);
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* "TYPE NAME;" and in a block of its own the fold of the entries of a row. */
static void put_folded(const cot__block *b, int depth, const cot__fold *f, const char *name, const cot__at_index *at) {
    const char *type = b->zv.dtype == COT_F32 ? "f32" : "f64";
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "%s %s;\n", cot__emit_type(b->zv.dtype), name);
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "{\n");
    cot__put_indent(b->w, depth + 1);
    cot__putf(cot__to(b), "cot_fold_%s_%s f_0;\n", f->kind, type);
    cot__put_indent(b->w, depth + 1);
    cot__put_fold_call(b, f, "begin");
    cot__put(cot__to(b), "&f_0);\n");
    cot__put_indent(b->w, depth + 1);
    cot__put(cot__to(b), "for (ptrdiff_t k_0 = b_0; k_0 < e_0; k_0++) ");
    cot__put_fold_call(b, f, "take");
    cot__putf(cot__to(b), "&f_0, %s", f->before);
    cot__put_element(b->w, b->x[FIRST], at);
    cot__putf(cot__to(b), "%s);\n", f->behind);
    cot__put_indent(b->w, depth + 1);
    cot__putf(cot__to(b), "%s = ", name);
    cot__put_fold_call(b, f, "end");
    cot__put(cot__to(b), "&f_0);\n");
    close_brace(b, depth);
}

void cot__put_csr_softmax(const cot__block *b) {
    int64_t         rows = cot__int(b, 0), entries = extent(&b->zv, 1);
    cot__at_index   at = {0};
    cot__loop_names room;
    char            exponential[48];
    cot__text text = cot__text_buffer(exponential, sizeof exponential), *to = b->w->to;
    b->w->to = &text;
    cot__put_elementary(b->w, "exp", b->zv.dtype);
    b->w->to = to;
    cot__note_levels(b->w, entries);
    int inside = open_batch(b, &at, &room);
    at.axis[b->zv.ndim - 1] = "k_0";
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "for (ptrdiff_t r_0 = 0; r_0 < %lld; r_0++) {\n", (long long)rows);
    put_range(b, inside + 1, SOFT_PATTERN, 0, "r_0", entries);
    cot__put_indent(b->w, inside + 1);
    cot__put(cot__to(b), "if (b_0 == e_0) continue;\n");
    put_folded(b, inside + 1, &(cot__fold){"max", "", "", b->zv.dtype}, "m_0", &at);
    cot__put_indent(b->w, inside + 1);
    cot__putf(cot__to(b), "const %s h_0 = isfinite(m_0) ? m_0 : %s;\n", cot__emit_type(b->zv.dtype), zero_of(b));
    put_folded(b, inside + 1, &(cot__fold){"add", exponential, " - h_0)", b->zv.dtype}, "s_0", &at);
    cot__put_indent(b->w, inside + 1);
    cot__put(cot__to(b), "for (ptrdiff_t k_0 = b_0; k_0 < e_0; k_0++) ");
    cot__put_result(b->w, b->z, &at);
    cot__putf(cot__to(b), " = %s", exponential);
    cot__put_element(b->w, b->x[FIRST], &at);
    cot__put(cot__to(b), " - m_0) / s_0;\n");
    close_brace(b, inside);
    cot__close_loops(b->w, COT__BASE, inside);
}
