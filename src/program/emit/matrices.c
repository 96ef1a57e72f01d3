/* matrices.c: blocks of linear algebra on small matrices, one matrix of a batch after the other, by
 * calls of functions in matrices.inc. */
#include "program/emit/block.h"
#include "rules/structural_ids.h"

/* Below this the kernels are chains (COT__LIN_BASE of backend/cpu/linalg); beyond, they are made of
 * matrix products, which nobody has asked for here. */
enum { MOST = 32 };

static int64_t rows_of(const cot__view *v) { return v->shape[v->ndim - 2]; }
static int64_t columns_of(const cot__view *v) { return v->shape[v->ndim - 1]; }

bool cot__is_too_large(const cot__block *b) {
    int op = b->w->p->operation[b->k].op;
    int64_t rows, columns;
    if (op != OP_lu_factors && op != OP_lu_solve && op != OP_triangular_solve && op != OP_cholesky && op != OP_qr)
        return false;
    rows = rows_of(&b->xv), columns = columns_of(&b->xv);
    return (rows < columns ? rows : columns) > MOST;
}

/* Loops over the matrices of a batch: all axes of v but the last `axes`. */
static int open_batch(const cot__block *b, const cot__view *v, int axes, cot__at_index *at, cot__loop_names *room) {
    cot__view batch = *v;
    batch.ndim -= axes;
    return cot__open_loops(b->w, COT__BASE, 'i', &batch, COT__ALL_AXES, at, room);
}

static void put_count(const cot__block *b, int64_t n) { cot__putf(cot__to(b), "%lld, ", (long long)n); }

/* "&a[i], row step, column step, " */
static void put_matrix(const cot__block *b, int k, const cot__at_index *at) {
    int n = cot__operand_view(b, k).ndim;
    cot__put_address(b, b->x[k], at);
    cot__put(cot__to(b), ", ");
    put_count(b, cot__step(b, b->x[k], n - 2));
    put_count(b, cot__step(b, b->x[k], n - 1));
}

/* "&p[i], step" */
static void put_permutation(const cot__block *b, int k, const cot__at_index *at) {
    cot__put_address(b, b->x[k], at);
    cot__putf(cot__to(b), ", %lld", (long long)cot__step(b, b->x[k], cot__operand_view(b, k).ndim - 1));
}

static void begin_call(const cot__block *b, int inside, const char *name) {
    cot__put_indent(b->w, inside);
    cot__put_typed_call(b, name, b->zv.dtype);
}

/* ---- elimination ----------------------------------------------------------------------------- */

void cot__put_lu_factors(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    cot__put_copy(b, b->x[0]);
    int inside = open_batch(b, &b->xv, 2, &at, &room);
    begin_call(b, inside, "cot_lu");
    put_count(b, rows_of(&b->xv));
    put_count(b, columns_of(&b->xv));
    cot__put_address(b, b->z, &at);
    cot__put(cot__to(b), ", ");
    cot__put_address(b, b->z + 1, &at);
    cot__put(cot__to(b), ");\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* One of both triangles: l (m,k), the first result, or u (k,n). */
static void put_triangle(const cot__block *b, uint32_t z, bool upper) {
    cot__view       v    = cot__value_view(b->w->p, z);
    int             last = v.ndim - 1;
    cot__at_index   at   = {0};
    cot__loop_names room;
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &v, COT__ALL_AXES, &at, &room);
    const char     *r = at.axis[last - 1] ? at.axis[last - 1] : "0", *c = at.axis[last] ? at.axis[last] : "0";
    const char     *f = v.dtype == COT_F32 ? "f" : "";
    cot__put_indent(b->w, inside);
    cot__put_result(b->w, z, &at);
    cot__putf(cot__to(b), upper ? " = %s <= %s ? " : " = %s > %s ? ", r, c);
    cot__put_element(b->w, b->x[1], &at);
    if (upper) cot__putf(cot__to(b), " : 0.0%s;\n", f);
    else cot__putf(cot__to(b), " : %s == %s ? 1.0%s : 0.0%s;\n", r, c, f, f);
    cot__close_loops(b->w, COT__BASE, inside);
}
void cot__put_lu(const cot__block *b) { put_triangle(b, b->z, false), put_triangle(b, b->z + 1, true); }

/* Of operands a, b, factors, permutation the last three are read. */
void cot__put_lu_solve(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    cot__put_copy(b, b->x[1]);
    int inside = open_batch(b, &b->zv, 2, &at, &room);
    begin_call(b, inside, "cot_lu_solve");
    put_count(b, rows_of(&b->zv));
    put_matrix(b, 2, &at);
    put_permutation(b, 3, &at);
    cot__putf(cot__to(b), ", %s, %lld, ", cot__int(b, 0) ? "true" : "false", (long long)columns_of(&b->zv));
    cot__put_address(b, b->z, &at);
    cot__put(cot__to(b), ");\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* det, logabsdet (operands a, factors, permutation) and det_sign (factors, permutation) */
void cot__put_determinant(const cot__block *b) {
    int             op = b->w->p->operation[b->k].op, f = op == OP_det_sign ? 0 : 1;
    const char     *name = op == OP_det ? "product_of" : op == OP_logabsdet ? "logarithm_of" : "sign_of";
    cot__view       v = cot__operand_view(b, f);
    cot__at_index   at = {0};
    cot__loop_names room;
    if (columns_of(&v) == 0) { /* there is no element to point to */
        cot__put_fill(b, op == OP_logabsdet ? 0 : 1);
        return;
    }
    int inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &at, &room);
    cot__open_result(b, inside, &at);
    cot__put(cot__to(b), cot__rounded(b));
    cot__put_typed_call(b, name, v.dtype);
    cot__put_address(b, b->x[f], &at);
    cot__putf(cot__to(b), ", %lld, %lld",
              (long long)(cot__step(b, b->x[f], v.ndim - 2) + cot__step(b, b->x[f], v.ndim - 1)),
              (long long)columns_of(&v));
    if (op != OP_logabsdet) {
        cot__put(cot__to(b), ", ");
        cot__put_call(b->w, "permutation_sign_f64");
        put_permutation(b, f + 1, &at);
        cot__putf(cot__to(b), ", %lld)", (long long)columns_of(&v));
    }
    cot__put(cot__to(b), ");\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* ---- triangles ------------------------------------------------------------------------------- */

enum { UPPER = COT_UPPER, TRANSPOSED = COT_TRANSPOSED, UNIT = COT_UNIT_DIAGONAL, RIGHT = COT_RIGHT };

/* The lower left system in other strides, as lin_core.inc has it. */
void cot__put_triangular_solve(const cot__block *b) {
    cot__view       a = cot__operand_view(b, 0);
    int64_t         flags = cot__int(b, 0), n = columns_of(&a), rows = rows_of(&b->zv), columns = columns_of(&b->zv);
    int64_t         ars = cot__step(b, b->x[0], a.ndim - 2), acs = cot__step(b, b->x[0], a.ndim - 1);
    int64_t         brs = columns, bcs = 1, k = columns, s;
    bool            upper = (flags & UPPER) != 0;
    cot__at_index   at = {0};
    cot__loop_names room;
    if (!(flags & TRANSPOSED) != !(flags & RIGHT)) s = ars, ars = acs, acs = s, upper = !upper;
    if (flags & RIGHT) s = brs, brs = bcs, bcs = s, k = rows;
    int64_t a_first = upper ? (n - 1) * (ars + acs) : 0, b_first = upper ? (n - 1) * brs : 0;
    if (upper) ars = -ars, acs = -acs, brs = -brs;
    cot__put_copy(b, b->x[1]);
    int inside = open_batch(b, &b->zv, 2, &at, &room);
    begin_call(b, inside, "solve_base");
    put_count(b, n);
    cot__put_address(b, b->x[0], &at);
    if (a_first) cot__putf(cot__to(b), " + %lld", (long long)a_first);
    cot__putf(cot__to(b), ", %lld, %lld, %s, %lld, ", (long long)ars, (long long)acs, flags & UNIT ? "true" : "false",
              (long long)k);
    cot__put_address(b, b->z, &at);
    if (b_first) cot__putf(cot__to(b), " + %lld", (long long)b_first);
    cot__putf(cot__to(b), ", %lld, %lld);\n", (long long)brs, (long long)bcs);
    cot__close_loops(b->w, COT__BASE, inside);
}

void cot__put_cholesky(const cot__block *b) {
    cot__at_index   at = {0};
    cot__loop_names room;
    cot__put_copy(b, b->x[0]);
    int inside = open_batch(b, &b->zv, 2, &at, &room);
    begin_call(b, inside, "cot_cholesky");
    put_count(b, rows_of(&b->zv));
    cot__put_address(b, b->z, &at);
    cot__put(cot__to(b), ");\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

/* q (m,n) and r (n,n); the reflections lie in scratch memory. */
void cot__put_qr(const cot__block *b) {
    int64_t         m = rows_of(&b->xv), n = columns_of(&b->xv);
    cot__at_index   at = {0}, one = {0};
    cot__loop_names room;
    cot__view       matrix = b->xv;
    int inside = open_batch(b, &b->zv, 2, &at, &room);
    cot__put_indent(b->w, inside);
    cot__put(cot__to(b), "ptrdiff_t n_0 = 0;\n");
    one = at;
    int deep = cot__open_loops(b->w, inside, 'i', &matrix, 3u << (b->xv.ndim - 2), &one, &room);
    cot__put_indent(b->w, deep);
    cot__put(cot__to(b), "w_0[n_0++] = ");
    cot__put_element(b->w, b->x[0], &one);
    cot__put(cot__to(b), ";\n");
    cot__close_loops(b->w, inside, deep);
    begin_call(b, inside, "cot_qr");
    put_count(b, m);
    put_count(b, n);
    cot__put(cot__to(b), "w_0, ");
    cot__put_address(b, b->z, &at);
    cot__put(cot__to(b), ", ");
    cot__put_address(b, b->z + 1, &at);
    cot__put(cot__to(b), ");\n");
    cot__close_loops(b->w, COT__BASE, inside);
}
