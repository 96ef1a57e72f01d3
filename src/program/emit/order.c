/* order.c: blocks of what goes along one axis, element by element: recurrences, running extremes,
 * orders and searches; and draws of random numbers. */
#include "program/emit/block.h"
#include "base/number.h"

#include <string.h>

/* ---- chains ---------------------------------------------------------------------------------- */

/* z[k] = b[k] + a[k] z[k-1], carried in f64 (scan.c); reverse: z[k] = b[k] + a[k+1] z[k+1]. */
void cot__put_recurrence(const cot__block *b) {
    int64_t         axis = cot__int(b, 0), n = b->zv.shape[axis];
    bool            back = cot__int(b, 1) != 0, strong = cot__int(b, 2) != 0, real = cot__dtype_is_float(b->zv.dtype);
    cot__at_index   at = {0}, before;
    cot__loop_names room;
    char            index[64], other[64];
    cot__text      *to = cot__to(b);
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, ~(1u << axis), &at, &room);
    cot__put_indent(b->w, inside);
    cot__putf(to, "%s s_0 = 0;\n", real ? "double" : "int64_t");
    int         deep = cot__open_loops(b->w, inside, 'i', &b->zv, 1u << axis, &at, &room);
    const char *forward = at.axis[axis];
    before = at;
    if (back) {
        at.axis[axis] = cot__shifted(forward, n - 1, -1, index);
        before.axis[axis] = cot__shifted(forward, n, -1, other);
    }
    const char *type = real ? "(double)" : "(int64_t)";
    cot__put_indent(b->w, deep);
    if (forward) {
        cot__putf(to, "s_0 = %s == 0 ? %s", forward, type);
        cot__put_element(b->w, b->x[1], &at);
        cot__put(to, " : ");
        if (real) cot__put(to, "(double)");
        else cot__put_call(b->w, "cot_iadd"), cot__put(to, "(int64_t)");
        cot__put_element(b->w, b->x[1], &at);
        cot__put(to, real ? " + " : ", ");
        if (real && strong) cot__put_call(b->w, "cot_strong_product");
        if (!real) cot__put_call(b->w, "cot_imul");
        cot__put(to, type);
        cot__put_element(b->w, b->x[0], &before);
        cot__put(to, real && !strong ? " * s_0;\n" : real ? ", s_0);\n" : ", s_0));\n");
    } else {
        cot__putf(to, "s_0 = %s", type);
        cot__put_element(b->w, b->x[1], &at);
        cot__put(to, ";\n");
    }
    cot__open_result(b, deep, &at);
    if (real) cot__putf(to, "%ss_0;\n", cot__rounded(b));
    else cot__put_stored(b, "s_0");
    cot__close_loops(b->w, COT__BASE, deep);
}

/* The place of the first of the extremes so far; the first NaN wins for good. */
void cot__put_cumargmax(const cot__block *b) {
    int64_t         axis = cot__int(b, 0);
    char            better = cot__int(b, 1) ? '<' : '>';
    const char     *type = cot__emit_type(b->xv.dtype);
    cot__at_index   at = {0}, first;
    cot__loop_names room;
    cot__text      *to = cot__to(b);
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, ~(1u << axis), &at, &room);
    first = at;
    first.axis[axis] = NULL;
    cot__put_indent(b->w, inside);
    cot__putf(to, "int64_t a_0 = 0;\n");
    cot__put_indent(b->w, inside);
    cot__putf(to, "%s b_0 = ", type);
    cot__put_element(b->w, b->x[0], &first);
    cot__put(to, ";\n");
    int deep = cot__open_loops(b->w, inside, 'i', &b->xv, 1u << axis, &at, &room);
    cot__put_indent(b->w, deep);
    cot__putf(to, "const %s e_0 = ", type);
    cot__put_element(b->w, b->x[0], &at);
    cot__put(to, ";\n");
    cot__put_indent(b->w, deep);
    if (cot__dtype_is_float(b->xv.dtype)) cot__putf(to, "if (b_0 == b_0 && (e_0 != e_0 || e_0 %c b_0))", better);
    else cot__putf(to, "if (e_0 %c b_0)", better);
    cot__putf(to, " b_0 = e_0, a_0 = %s;\n", at.axis[axis] ? at.axis[axis] : "0");
    cot__open_result(b, deep, &at);
    cot__put_stored(b, "a_0");
    cot__close_loops(b->w, COT__BASE, deep);
}

/* ---- orders ---------------------------------------------------------------------------------- */

void cot__put_argsort(const cot__block *b) {
    int             axis = (int)cot__int(b, 0);
    cot__at_index   at = {0};
    cot__loop_names room;
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, ~(1u << axis), &at, &room);
    cot__put_indent(b->w, inside);
    cot__put_typed_call(b, "cot_argsort", b->xv.dtype);
    cot__put_address(b, b->x[0], &at);
    cot__putf(cot__to(b), ", %lld, %lld, %s, ", (long long)cot__step(b, b->x[0], axis), (long long)b->xv.shape[axis],
              cot__int(b, 1) ? "UINT64_MAX" : "0");
    cot__put_address(b, b->z, &at);
    cot__putf(cot__to(b), ", %lld, %lld);\n", (long long)b->zv.stride[axis], (long long)b->zv.shape[axis]);
    cot__close_loops(b->w, COT__BASE, inside);
}

static void put_sorted(const cot__block *b) {
    cot__at_index none = {0};
    cot__put_address(b, b->x[0], &none);
    cot__putf(cot__to(b), ", %lld, %lld", (long long)cot__step(b, b->x[0], 0), (long long)b->xv.shape[0]);
}

/* The array must be sorted, which is looked at in every run. */
void cot__put_searchsorted(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    if (b->xv.shape[0] > 1) {
        cot__open_check(b, COT__BASE);
        cot__put(cot__to(b), "!");
        cot__put_typed_call(b, "cot_is_sorted", b->xv.dtype);
        put_sorted(b);
        cot__put(cot__to(b), ")");
        cot__close_check(b);
    }
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &at, &room);
    cot__open_result(b, inside, &at);
    cot__put_typed_call(b, "cot_search", b->xv.dtype);
    put_sorted(b);
    cot__put(cot__to(b), ", ");
    cot__put_element(b->w, b->x[1], &at);
    cot__put(cot__to(b), cot__int(b, 0) ? ", true);\n" : ", false);\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* Each element is looked at before it is copied. A NaN is none. */
void cot__put_probabilities(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &at, &room);
    cot__put_indent(b->w, inside);
    cot__put(cot__to(b), "const double p_0 = (double)");
    cot__put_element(b->w, b->x[0], &at);
    cot__put(cot__to(b), ";\n");
    cot__open_check(b, inside);
    cot__put(cot__to(b), "!(p_0 >= 0 && p_0 <= 1)");
    cot__close_check(b);
    cot__close_loops(b->w, COT__BASE, inside);
    cot__put_copy(b, b->x[0]);
}

enum { KIND, KEY, LOW = KEY + 2, HIGH, SHAPE };          /* attributes of draw_at */
enum { UNIFORM, NORMAL, GUMBEL, KEEP, PERMUTATION };     /* its kinds (ops/random.c) */

static double number_at(const cot__block *b, int at) {
    double v;
    memcpy(&v, &b->attr->ints[at], sizeof v);
    return v;
}

static void put_number(const cot__block *b, double v) {
    cot__put(cot__to(b), ", ");
    cot__emit_literal(cot__to(b), COT_F64, &v);
}

/* One number, of the bits k_0. */
static void put_draw(const cot__block *b, bool fine) {
    static const char *const names[] = {"cot__drawn_uniform", "cot__drawn_normal", "cot__drawn_gumbel",
                                        "cot__drawn_keep"};
    int64_t kind = cot__int(b, KIND);
    double  high = number_at(b, HIGH);
    cot__put(cot__to(b), cot__rounded(b));
    cot__put_call(b->w, names[kind]);
    cot__put(cot__to(b), "k_0");
    if (kind == NORMAL || kind == GUMBEL) cot__put(cot__to(b), fine ? ", UINT64_C(1) << 53" : ", UINT64_C(1) << 24");
    else {
        put_number(b, fine ? 0x1p-53 : 0x1p-24);
        put_number(b, number_at(b, LOW));
        put_number(b, high);
        if (kind == UNIFORM)
            put_number(b, fine ? nextafter(high, -INFINITY) : (double)nextafterf((float)high, -INFINITY));
    }
    cot__put(cot__to(b), ");\n");
}

void cot__put_draw_at(const cot__block *b) {
    int             axes = b->xv.ndim;
    int64_t         kind = cot__int(b, KIND), n = 1;
    bool            fine = b->zv.dtype == COT_F64 || kind == KEEP;
    cot__at_index   at = {0}, none = {0};
    cot__loop_names room;
    cot__text      *to = cot__to(b);
    for (int k = axes; k < b->zv.ndim; k++) n *= b->zv.shape[k];
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &at, &room);
    cot__put_indent(b->w, inside);
    cot__put(to, "const cot_key d_0 = ");
    cot__put_call(b->w, "cot_key_at_step");
    cot__putf(to, "%lluu, %lluu, (int64_t)", (unsigned long long)cot__int(b, KEY),
              (unsigned long long)cot__int(b, KEY + 1));
    cot__put_element(b->w, b->x[0], &at);
    cot__put(to, ");\n");
    if (kind == PERMUTATION) {
        cot__put_indent(b->w, inside);
        cot__put_call(b->w, "cot_permutation");
        cot__put(to, "d_0, ");
        cot__put_address(b, b->z, &at);
        cot__putf(to, ", %lld);\n", (long long)n);
        cot__close_loops(b->w, COT__BASE, inside);
        return;
    }
    cot__put_indent(b->w, inside);
    if (b->zv.ndim) {
        cot__putf(to, "%s *const z_0 = ", cot__emit_type(b->zv.dtype));
        cot__put_address(b, b->z, &at);
        cot__put(to, ";\n");
        cot__put_indent(b->w, inside);
    }
    cot__putf(to, "for (ptrdiff_t n_0 = 0; n_0 < %lld; n_0++) {\n", (long long)n);
    cot__put_indent(b->w, inside + 1);
    cot__put(to, "const uint64_t k_0 = ");
    cot__put_call(b->w, "cot_drawn");
    cot__put(to, fine ? "d_0, n_0, true);\n" : "d_0, n_0, false);\n");
    if (b->zv.ndim) cot__put_indent(b->w, inside + 1), cot__put(to, "z_0[n_0] = ");
    else cot__open_result(b, inside + 1, &none);
    put_draw(b, fine);
    cot__put_indent(b->w, inside);
    cot__put(to, "}\n");
    cot__close_loops(b->w, COT__BASE, inside);
}
