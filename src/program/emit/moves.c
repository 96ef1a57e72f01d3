/* moves.c: blocks in which elements move: reshapes, joins, borders, slices, positions. Where
 * elements meet they are added in the order of the kernels in backend/cpu. */
#include "program/emit/block.h"
#include "base/element.h"

/* z[i] = x[j] for all i of the loops over `over`: the end of every move. */
static void put_assignment(const cot__block *b, int depth, const cot__at_index *zi, uint32_t x,
                           const cot__at_index *xi) {
    cot__open_result(b, depth, zi);
    cot__put_element(b->w, x, xi);
    cot__put(cot__to(b), ";\n");
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* A reshape that is no view: elements in the order of x. */
void cot__put_reshape(const cot__block *b) {
    cot__at_index   xi = {0}, zi = {0};
    cot__loop_names room;
    cot__put_indent(b->w, COT__BASE);
    cot__put(cot__to(b), "ptrdiff_t n_0 = 0;\n");
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &xi, &room);
    zi.flat    = "n_0++";
    put_assignment(b, inside, &zi, b->x[0], &xi);
    cot__close_loops(b->w, COT__BASE, inside);
}

void cot__put_concat(const cot__block *b) {
    int64_t axis = cot__int(b, 0), at = 0;
    bool    is_new = cot__int(b, 1) != 0;
    for (int k = 0; k < cot__operation_operands(b->w->p, b->k); k++) {
        cot__view       v  = cot__value_view(b->w->p, b->x[k]);
        cot__at_index   xi = {0}, zi = {0};
        cot__loop_names room;
        char            place[48];
        cot__text       text   = cot__text_buffer(place, sizeof place);
        int             inside = cot__open_loops(b->w, COT__BASE, 'i', &v, COT__ALL_AXES, &xi, &room);
        for (int i = 0; i < v.ndim; i++) zi.axis[i + (is_new && i >= axis)] = xi.axis[i];
        if (is_new || !xi.axis[axis])
            cot__putf(&text, "%lld", (long long)at);
        else
            cot__putf(&text, "%lld + %s", (long long)at, xi.axis[axis]);
        if (at || (!is_new && xi.axis[axis])) zi.axis[axis] = at ? place : xi.axis[axis];
        put_assignment(b, inside, &zi, b->x[k], &xi);
        cot__close_loops(b->w, COT__BASE, inside);
        at += is_new ? 1 : v.shape[axis];
    }
}

void cot__put_pad(const cot__block *b) {
    cot__at_index   xi = {0}, zi = {0};
    cot__loop_names room;
    char            place[COT_MAX_NDIM][64];
    cot__put_fill(b, b->attr->number);
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &xi, &room);
    for (int k = 0; k < b->xv.ndim; k++) zi.axis[k] = cot__shifted(xi.axis[k], cot__int(b, 2 * k), 1, place[k]);
    put_assignment(b, inside, &zi, b->x[0], &xi);
    cot__close_loops(b->w, COT__BASE, inside);
}

/* z[zi] = z[zi] + y[yi], where integers wrap and truths stay 0 or 1. */
static void put_added(const cot__block *b, int depth, const cot__at_index *zi, uint32_t y, const cot__at_index *yi) {
    bool real = cot__dtype_is_float(b->zv.dtype);
    if (!real) {
        cot__put_indent(b->w, depth);
        cot__put(cot__to(b), "const int64_t s_0 = ");
        cot__put_call(b->w, "cot_iadd");
    } else
        cot__open_result(b, depth, zi);
    cot__put(cot__to(b), real ? "" : "(int64_t)");
    cot__put_result(b->w, b->z, zi);
    cot__put(cot__to(b), real ? " + " : ", (int64_t)");
    cot__put_element(b->w, y, yi);
    cot__put(cot__to(b), real ? ";\n" : ");\n");
    if (!real) cot__open_result(b, depth, zi), cot__put_stored(b, "s_0");
}

/* z = x; then z[slice] = y, or z[slice] = z[slice] + y. ints: axis, first, length, step. */
static void put_into_slice(const cot__block *b, bool add) {
    cot__view       v  = cot__value_view(b->w->p, b->x[1]);
    cot__at_index   yi = {0}, zi;
    cot__loop_names room;
    char            place[64];
    int64_t         axis = cot__int(b, 0);
    cot__put_copy(b, b->x[0]);
    int inside    = cot__open_loops(b->w, COT__BASE, 'i', &v, COT__ALL_AXES, &yi, &room);
    zi            = yi;
    zi.axis[axis] = cot__shifted(yi.axis[axis], cot__int(b, 1), cot__int(b, 3), place);
    if (add)
        put_added(b, inside, &zi, b->x[1], &yi);
    else
        put_assignment(b, inside, &zi, b->x[1], &yi);
    cot__close_loops(b->w, COT__BASE, inside);
}
void cot__put_update_slice(const cot__block *b) { put_into_slice(b, false); }
void cot__put_add_slice(const cot__block *b) { put_into_slice(b, true); }
void cot__put_copy_into(const cot__block *b) { cot__put_copy(b, b->x[1]); }

/* ---- positions ------------------------------------------------------------------------------- */

/* Are they constants, all of which exist? Then nobody need look at them again. */
static bool is_known(const cot__block *b, uint32_t positions, int64_t extent) {
    const cot__program *p    = b->w->p;
    uint32_t            root = cot__root_of(&b->w->layout, positions);
    if (cot__value_origin(p, root) != COT__FROM_CONSTANT) return false;
    cot__view   v       = cot__value_view(p, root);
    const char *element = cot__constant_elements(p, cot__value_maker(p, root));
    for (int64_t i = 0, n = cot__view_size(&v); i < n; i++, element += cot__dtype_size(v.dtype)) {
        int64_t at = cot__load_i64(element, v.dtype);
        if (at < 0 || at >= extent) return false;
    }
    return true;
}

/* "int64_t p_0 = position;", counted from the end if it is negative and may be; the function
 * returns where there is no such place. */
static void put_position(const cot__block *b, int depth, uint32_t positions, const cot__at_index *at, int64_t extent) {
    const cot__op *op     = cot__op_of(b->w->p->operation[b->k].op);
    bool           labels = !cot__asker_wraps(cot__asker_in(op, b->attr));
    bool known = is_known(b, positions, extent);
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), known || labels ? "const int64_t p_0 = (int64_t)" : "int64_t p_0 = (int64_t)");
    cot__put_element(b->w, positions, at);
    cot__put(cot__to(b), ";\n");
    if (known && extent == 1) cot__put_indent(b->w, depth), cot__put(cot__to(b), "(void)p_0;\n");
    if (known) return;
    b->w->checks++;
    cot__put_indent(b->w, depth);
    if (labels) cot__put(cot__to(b), "if (p_0 < 0");
    else cot__putf(cot__to(b), "if (p_0 < -INT64_C(%lld)", (long long)extent);
    cot__putf(cot__to(b), " || p_0 >= INT64_C(%lld)) return %d;\n", (long long)extent, b->w->checks);
    if (labels) return;
    cot__put_indent(b->w, depth);
    cot__putf(cot__to(b), "if (p_0 < 0) p_0 += INT64_C(%lld);\n", (long long)extent);
}

/* The axes of `take`: those of x before the axis, those of the positions, those of x behind it. */
static void split_axes(const cot__block *b, const cot__view *x, const cot__view *p, const cot__at_index *yi,
                       cot__at_index *xi, cot__at_index *pi) {
    int axis = (int)cot__int(b, 0);
    *xi = *pi = (cot__at_index){0};
    for (int k = 0; k < axis; k++) xi->axis[k] = yi->axis[k];
    for (int k = 0; k < p->ndim; k++) pi->axis[k] = yi->axis[axis + k];
    for (int k = axis + 1; k < x->ndim; k++) xi->axis[k] = yi->axis[k - 1 + p->ndim];
    xi->axis[axis] = "(ptrdiff_t)p_0";
}

/* One position for each element instead. */
static void split_along(const cot__block *b, const cot__at_index *yi, cot__at_index *xi, cot__at_index *pi) {
    *xi = *pi                = *yi;
    xi->axis[cot__int(b, 0)] = "(ptrdiff_t)p_0";
}

/* Where nothing is taken from the places they must be there nevertheless. */
static void put_positions(const cot__block *b, uint32_t positions, int64_t extent) {
    cot__view       p = cot__value_view(b->w->p, positions);
    cot__at_index   at = {0};
    cot__loop_names room;
    if (is_known(b, positions, extent)) return;
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &p, COT__ALL_AXES, &at, &room);
    put_position(b, inside, positions, &at, extent);
    cot__close_loops(b->w, COT__BASE, inside);
}

/* y[i] = x[position], or x[position] += y[i], for all i of y. */
static void put_chosen(const cot__block *b, uint32_t y, bool along, bool add) {
    cot__view       p = cot__value_view(b->w->p, b->x[1]), yv = cot__value_view(b->w->p, y);
    cot__at_index   yi = {0}, xi, pi;
    cot__loop_names room;
    int64_t         extent = b->xv.shape[cot__int(b, 0)];
    if (cot__view_size(&yv) == 0) {
        put_positions(b, b->x[1], extent);
        return;
    }
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &yv, COT__ALL_AXES, &yi, &room);
    if (along)
        split_along(b, &yi, &xi, &pi);
    else
        split_axes(b, &b->xv, &p, &yi, &xi, &pi);
    put_position(b, inside, b->x[1], &pi, extent);
    if (add)
        put_added(b, inside, &xi, y, &yi);
    else
        put_assignment(b, inside, &yi, b->x[0], &xi);
    cot__close_loops(b->w, COT__BASE, inside);
}
void cot__put_take(const cot__block *b) { put_chosen(b, b->z, false, false); }
void cot__put_take_along(const cot__block *b) { put_chosen(b, b->z, true, false); }
void cot__put_scatter_add(const cot__block *b) { cot__put_copy(b, b->x[0]), put_chosen(b, b->x[2], false, true); }
void cot__put_scatter_add_along(const cot__block *b) { cot__put_copy(b, b->x[0]), put_chosen(b, b->x[2], true, true); }

void cot__put_one_hot(const cot__block *b) {
    cot__at_index   xi = {0}, zi;
    cot__loop_names room;
    int64_t         one = 0;
    cot__put_fill(b, 0);
    int inside          = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &xi, &room);
    zi                  = xi;
    zi.axis[b->xv.ndim] = "(ptrdiff_t)p_0";
    put_position(b, inside, b->x[0], &xi, b->zv.shape[b->zv.ndim - 1]);
    cot__open_result(b, inside, &zi);
    cot__store_f64(&one, b->zv.dtype, 1);
    cot__emit_literal(cot__to(b), b->zv.dtype, &one);
    cot__put(cot__to(b), ";\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* The place of each position, whose coordinates lie along the last axis. */
void cot__put_ravel_index(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    char            number[24];
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &at, &room);
    cot__put_indent(b->w, inside);
    cot__put(cot__to(b), "int64_t a_0 = 0;\n");
    for (int k = 0; k < (int)b->attr->nints; k++) {
        cot__text text = cot__text_buffer(number, sizeof number);
        cot__putf(&text, "%d", k);
        at.axis[b->zv.ndim] = k ? number : NULL;
        cot__put_indent(b->w, inside);
        cot__put(cot__to(b), "{\n");
        put_position(b, inside + 1, b->x[0], &at, cot__int(b, k));
        cot__put_indent(b->w, inside + 1);
        cot__putf(cot__to(b), "a_0 = a_0 * INT64_C(%lld) + p_0;\n", (long long)cot__int(b, k));
        cot__put_indent(b->w, inside);
        cot__put(cot__to(b), "}\n");
    }
    at.axis[b->zv.ndim] = NULL;
    cot__open_result(b, inside, &at);
    cot__put(cot__to(b), "a_0;\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* For each place the number of the last update that goes there; -1: none does. */
void cot__put_last_writer(const cot__block *b) {
    cot__at_index   at = {0}, zi = {0};
    cot__loop_names room;
    cot__put_fill(b, -1);
    cot__put_indent(b->w, COT__BASE);
    cot__put(cot__to(b), "int64_t n_0 = 0;\n");
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &at, &room);
    put_position(b, inside, b->x[0], &at, cot__int(b, 0));
    zi.axis[0] = "(ptrdiff_t)p_0";
    cot__open_result(b, inside, &zi);
    cot__put(cot__to(b), "n_0++;\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* The first places where x is true, filled up with -1. */
void cot__put_nonzero(const cot__block *b) {
    cot__at_index   at = {0}, zi = {0};
    cot__loop_names room;
    cot__put_fill(b, -1);
    cot__put_indent(b->w, COT__BASE);
    cot__put(cot__to(b), "ptrdiff_t n_0 = 0;\n");
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->xv, COT__ALL_AXES, &at, &room);
    cot__put_indent(b->w, inside);
    cot__putf(cot__to(b), "if (n_0 < %lld && ", (long long)b->zv.shape[0]);
    cot__put_element(b->w, b->x[0], &at);
    cot__put(cot__to(b), " != 0) ");
    zi.flat = "n_0++";
    cot__put_result(b->w, b->z, &zi);
    cot__putf(cot__to(b), " = %s;\n", at.axis[0] ? at.axis[0] : "0");
    cot__close_loops(b->w, COT__BASE, inside);
}
