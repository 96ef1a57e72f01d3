/* structural.c: operations that are blocks of their own: which there are, and what they share. */
#include "program/emit/block.h"
#include "base/element.h"
#include "rules/structural_ids.h"

#include <string.h>

/* ---- what they share ------------------------------------------------------------------------- */

void cot__open_result(const cot__block *b, int depth, const cot__at_index *at) {
    cot__put_indent(b->w, depth);
    cot__put_result(b->w, b->z, at);
    cot__put(cot__to(b), " = ");
}

/* z = operand x, which has its shape. */
void cot__put_copy(const cot__block *b, uint32_t x) {
    cot__at_index   at = {0};
    cot__loop_names room;
    int             inside = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &at, &room);
    cot__open_result(b, inside, &at);
    cot__put_element(b->w, x, &at);
    cot__put(cot__to(b), ";\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

void cot__put_fill(const cot__block *b, double value) {
    cot__at_index   at = {0};
    cot__loop_names room;
    int64_t         element = 0;
    int             inside  = cot__open_loops(b->w, COT__BASE, 'i', &b->zv, COT__ALL_AXES, &at, &room);
    cot__open_result(b, inside, &at);
    cot__store_f64(&element, b->zv.dtype, value);
    cot__emit_literal(cot__to(b), b->zv.dtype, &element);
    cot__put(cot__to(b), ";\n");
    cot__close_loops(b->w, COT__BASE, inside);
}

const char *cot__shifted(const char *index, int64_t before, int64_t step, char room[64]) {
    cot__text text = cot__text_buffer(room, 64);
    if (before == 0 && step == 1) return index;
    if (!index) return before ? (cot__putf(&text, "%lld", (long long)before), room) : NULL;
    cot__putf(&text, "%lld", (long long)before);
    if (step == 1 || step == -1)
        cot__putf(&text, " %c %s", step < 0 ? '-' : '+', index);
    else
        cot__putf(&text, " %c %lld * %s", step < 0 ? '-' : '+', step < 0 ? -(long long)step : (long long)step, index);
    return room;
}

void cot__put_stored(const cot__block *b, const char *text) {
    cot_dtype d = b->zv.dtype;
    if (d == COT_I32)
        cot__put_call(b->w, "cot_i32_from_i64"), cot__putf(cot__to(b), "%s);\n", text);
    else if (d == COT_U8)
        cot__putf(cot__to(b), "(uint8_t)(uint64_t)%s;\n", text);
    else if (d == COT_BOOL)
        cot__putf(cot__to(b), "(uint8_t)(%s != 0);\n", text);
    else
        cot__putf(cot__to(b), "%s;\n", text);
}

void cot__put_address(const cot__block *b, uint32_t value, const cot__at_index *at) {
    cot__put(cot__to(b), "&");
    cot__put_element(b->w, value, at);
}

cot__view cot__operand_view(const cot__block *b, int k) { return cot__plan_view(&b->w->layout.plan, b->x[k]); }

int64_t cot__step(const cot__block *b, uint32_t value, int axis) {
    return cot__plan_view(&b->w->layout.plan, value).stride[axis];
}

void cot__put_dense_copies(const cot__block *b) {
    for (int k = 0; k < cot__operation_operands(b->w->p, b->k); k++) {
        int64_t         at = cot__dense_copy(&b->w->layout, b->k, k);
        cot__view       v = cot__value_view(b->w->p, b->x[k]);
        const char     *type = cot__emit_type(v.dtype);
        cot__at_index   i = {0};
        cot__loop_names room;
        if (at < 0) continue;
        cot__put_indent(b->w, COT__BASE);
        cot__putf(cot__to(b), "%s *const d_%d = (%s *)(void *)((char *)workspace + %lld);\n", type, k, type,
                  (long long)(b->w->layout.scratch[b->k] + at));
        cot__put_indent(b->w, COT__BASE);
        cot__put(cot__to(b), "{\n");
        cot__put_indent(b->w, COT__BASE + 1);
        cot__put(cot__to(b), "ptrdiff_t n_0 = 0;\n");
        int inside = cot__open_loops(b->w, COT__BASE + 1, 'i', &v, COT__ALL_AXES, &i, &room);
        cot__put_indent(b->w, inside);
        cot__putf(cot__to(b), "d_%d[n_0++] = ", k);
        cot__put_element(b->w, b->x[k], &i);
        cot__put(cot__to(b), ";\n");
        cot__close_loops(b->w, COT__BASE, inside);
    }
}

void cot__put_dense(const cot__block *b, int k) {
    cot__at_index none = {0};
    if (cot__dense_copy(&b->w->layout, b->k, k) >= 0) cot__putf(cot__to(b), "d_%d", k);
    else cot__put_address(b, b->x[k], &none);
}

void cot__put_typed_call(const cot__block *b, const char *name, cot_dtype d) {
    char      full[48];
    cot__text text = cot__text_buffer(full, sizeof full);
    cot__putf(&text, "%s_%s", name, d == COT_BOOL ? "u8" : cot__dtype_name(d));
    cot__put_call(b->w, full);
}

const char *cot__rounded(const cot__block *b) { return b->zv.dtype == COT_F32 ? "(float)" : ""; }

void cot__open_check(const cot__block *b, int depth) {
    b->w->checks++;
    cot__put_indent(b->w, depth);
    cot__put(cot__to(b), "if (");
}
void cot__close_check(const cot__block *b) { cot__putf(cot__to(b), ") return %d;\n", b->w->checks); }

/* ---- the table ------------------------------------------------------------------------------- */

/* checks: it looks at operands, or runs bodies that do, also where its results have no elements. */
static const struct exportable {
    int          op;
    cot__put_fn *put;
    bool         checks;
} exportables[] = {
    {OP_reshape, cot__put_reshape, false},
    {OP_concat, cot__put_concat, false},
    {OP_pad, cot__put_pad, false},
    {OP_take, cot__put_take, true},
    {OP_take_along_axis, cot__put_take_along, false},
    {OP_scatter_add, cot__put_scatter_add, true},
    {OP_scatter_add_along, cot__put_scatter_add_along, true},
    {OP_one_hot, cot__put_one_hot, true},
    {OP_sum, cot__put_sum, false},
    {OP_max, cot__put_max, false},
    {OP_min, cot__put_min, false},
    {OP_any, cot__put_any, false},
    {OP_all, cot__put_all, false},
    {OP_argmax, cot__put_argmax, false},
    {OP_argmin, cot__put_argmin, false},
    {OP_categorical, cot__put_argmax, false},
    {OP_matmul, cot__put_matmul, false},
    {OP_update_slice, cot__put_update_slice, false},
    {OP_add_slice, cot__put_add_slice, false},
    {OP_copy_into, cot__put_copy_into, false},
    {OP_cumsum, cot__put_cumsum, false},
    {OP_norm, cot__put_norm, false},
    {OP_logsumexp, cot__put_logsumexp, false},
    {OP_softmax, cot__put_softmax, false},
    {OP_log_softmax, cot__put_softmax, false},
    {OP_mse, cot__put_mse, false},
    {OP_cross_entropy, cot__put_cross_entropy, false},
    {OP_softmax_cross_entropy, cot__put_cross_entropy, false},
    {OP_sum_of, cot__put_list, false},
    {OP_dot_of, cot__put_list, false},
    {OP_logsumexp_of, cot__put_logsumexp_of, false},
    {OP_ravel_index, cot__put_ravel_index, false},
    {OP_last_writer, cot__put_last_writer, true},
    {OP_nonzero, cot__put_nonzero, false},
    {OP_recurrence, cot__put_recurrence, false},
    {OP_cumargmax, cot__put_cumargmax, false},
    {OP_argsort, cot__put_argsort, false},
    {OP_searchsorted, cot__put_searchsorted, true},
    {OP_draw_at, cot__put_draw_at, false},
    {OP_probabilities, cot__put_probabilities, false},
    {OP_lu_factors, cot__put_lu_factors, false},
    {OP_lu, cot__put_lu, false},
    {OP_lu_solve, cot__put_lu_solve, false},
    {OP_det, cot__put_determinant, false},
    {OP_logabsdet, cot__put_determinant, false},
    {OP_det_sign, cot__put_determinant, false},
    {OP_triangular_solve, cot__put_triangular_solve, false},
    {OP_cholesky, cot__put_cholesky, false},
    {OP_qr, cot__put_qr, false},
    {OP_loop, cot__put_loop, true},
    {OP_loop_adjoint, cot__put_way_back, true},
    {OP_conv, cot__put_convolution, false},
    {OP_conv_transpose, cot__put_convolution, false},
    {OP_conv_weight, cot__put_convolution, false},
    {OP_max_pool, cot__put_pool, false},
    {OP_max_take, cot__put_pool, false},
    {OP_max_unpool, cot__put_pool, false},
    {OP_avg_pool, cot__put_pool, false},
    {OP_avg_unpool, cot__put_pool, false},
    {OP_layer_norm, cot__put_normalized, false},
    {OP_rms_norm, cot__put_normalized, false},
    {OP_norm_known, cot__put_normalized, false},
    {OP_norm_back, cot__put_norm_back, false},
    {OP_norm_weights, cot__put_norm_weights, false},
    {OP_csr_matmul, cot__put_csr_matmul, false},
    {OP_csr_sddmm, cot__put_csr_sddmm, false},
    {OP_csr_softmax, cot__put_csr_softmax, false},
};

static const struct exportable *find(int op) {
    for (int k = 0; k < COUNTOF(exportables); k++)
        if (exportables[k].op == op) return &exportables[k];
    return NULL;
}

/* What is always a view is index arithmetic. */
bool cot__exportable(int op) {
    const cot__op *record = cot__op_of(op);
    return op < OP_structural || op == OP_cast || op == OP_copy || find(op) || (record->view && !record->run);
}

static void put_comment(const cot__block *b) {
    const cot__op *record = cot__op_of(b->w->p->operation[b->k].op);
    const char    *end    = strchr(record->formula, ';');
    cot__put_indent(b->w, 1);
    cot__putf(cot__to(b), "/* %s: %.*s; z is ", record->name, end ? (int)(end - record->formula) : 80, record->formula);
    cot__put_name(b->w, b->z);
    for (int k = 0; k < cot__operation_operands(b->w->p, b->k) && k < 8; k++) {
        cot__put(cot__to(b), k ? ", " : " of ");
        cot__put_name(b->w, cot__root_of(&b->w->layout, b->x[k]));
    }
    cot__put(cot__to(b), " */\n");
}

/* Longer products are done in sections (gemm.c), which nobody has asked for here. */
static bool is_too_deep(const cot__block *b) {
    enum { LONG = 1 << 16 };
    return b->w->p->operation[b->k].op == OP_matmul && b->xv.shape[b->xv.ndim - 1] > LONG;
}

/* Results without axes. */
static void put_variables(const cot__block *b) {
    for (uint32_t z = b->z; z < b->z + b->w->p->operation[b->k].results; z++) {
        if (b->w->layout.home[z] != COT__AT_NAME) continue;
        cot__put_indent(b->w, 1);
        cot__putf(cot__to(b), "%s v_%u;\n", cot__emit_type(cot__value_view(b->w->p, z).dtype),
                  cot__number_of(b->w, z));
    }
}

static bool is_empty(const cot__block *b, uint32_t value) {
    cot__view v = cot__value_view(b->w->p, value);
    return cot__view_size(&v) == 0;
}

static bool makes_nothing(const cot__block *b) {
    for (uint32_t z = b->z; z < b->z + b->w->p->operation[b->k].results; z++)
        if (!is_empty(b, z)) return false;
    return true;
}

static void put_as_read(const cot__block *b, uint32_t value) {
    cot__put_indent(b->w, 1);
    cot__put(cot__to(b), "(void)");
    cot__put_name(b->w, value);
    cot__put(cot__to(b), ";\n");
}

/* Results of several that nobody reads; and all names where elements are missing, since then there
 * may be nothing that reads them. */
static void put_unread(const cot__block *b) {
    const cot__layout *l = &b->w->layout;
    int                operands = cot__operation_operands(b->w->p, b->k);
    bool               missing = false;
    for (int k = 0; k < operands; k++) missing |= is_empty(b, b->x[k]);
    for (uint32_t z = b->z; z < b->z + b->w->p->operation[b->k].results; z++) missing |= is_empty(b, z);
    for (uint32_t z = b->z; z < b->z + b->w->p->operation[b->k].results; z++)
        if (missing || (l->home[z] == COT__AT_NAME && !l->wanted[z])) put_as_read(b, z);
    for (int k = 0; missing && k < operands; k++) put_as_read(b, cot__root_of(l, b->x[k]));
}

static void put_scratch(const cot__block *b) {
    const char *type = cot__emit_type(b->zv.dtype);
    if (b->w->layout.scratch[b->k] < 0 || cot__wants_dense(b->w->p->operation[b->k].op)) return;
    cot__put_indent(b->w, COT__BASE);
    cot__putf(cot__to(b), "%s *const w_0 = (%s *)(void *)((char *)workspace + %lld);\n", type, type,
              (long long)b->w->layout.scratch[b->k]);
}

bool cot__refuse_operation(const cot__writer *w, uint32_t k) {
    const char *name = cot__operation_name(w->p, k), *record = cot__op_of(w->p->operation[k].op)->name;
    bool        same = strcmp(name, record) == 0;
    return cot__refuse(w->caller, COT_VALUE,
                       "%s%s%s%s cannot be exported yet; docs/export.md lists the operations that can", record,
                       same ? "" : " (in ", same ? "" : name, same ? "" : ")");
}

bool cot__put_structural(cot__writer *w, uint32_t k) {
    const cot__operation    *o = &w->p->operation[k];
    const struct exportable *as = find(o->op);
    if (!as) return cot__refuse_operation(w, k);
    cot__block b = {
        .w = w, .k = k, .z = o->result, .x = cot__operation_operand(w->p, k), .attr = cot__operation_attr(w->p, k)};
    b.xv = cot__value_view(w->p, b.x[0]);
    b.zv = cot__value_view(w->p, b.z);
    if (makes_nothing(&b) && !as->checks) {
        put_unread(&b);
        return true;
    }
    if (is_too_deep(&b))
        return cot__refuse(w->caller, COT_LIMIT, "a matmul of %lld terms cannot be exported yet; at most 65536",
                           (long long)b.xv.shape[b.xv.ndim - 1]);
    if (cot__is_too_large(&b))
        return cot__refuse(w->caller, COT_LIMIT, "%s of more than 32 columns cannot be exported yet",
                           cot__operation_name(w->p, k));
    if (cot__has_too_many_images(&b))
        return cot__refuse(w->caller, COT_LIMIT, "%s over images of more than 32 MB cannot be exported yet",
                           cot__operation_name(w->p, k));
    put_comment(&b);
    put_variables(&b);
    cot__put_indent(w, 1);
    cot__put(w->to, "{\n");
    put_scratch(&b);
    as->put(&b);
    cot__put_indent(w, 1);
    cot__put(w->to, "}\n");
    put_unread(&b);
    return true;
}
