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

/* ---- the table ------------------------------------------------------------------------------- */

static const struct exportable {
    int          op;
    cot__put_fn *put;
} exportables[] = {
    {OP_reshape, cot__put_reshape},
    {OP_concat, cot__put_concat},
    {OP_pad, cot__put_pad},
    {OP_take, cot__put_take},
    {OP_take_along_axis, cot__put_take_along},
    {OP_scatter_add, cot__put_scatter_add},
    {OP_scatter_add_along, cot__put_scatter_add_along},
    {OP_one_hot, cot__put_one_hot},
    {OP_sum, cot__put_sum},
    {OP_max, cot__put_max},
    {OP_min, cot__put_min},
    {OP_any, cot__put_any},
    {OP_all, cot__put_all},
    {OP_argmax, cot__put_argmax},
    {OP_argmin, cot__put_argmin},
    {OP_matmul, cot__put_matmul},
    {OP_update_slice, cot__put_update_slice},
    {OP_add_slice, cot__put_add_slice},
    {OP_copy_into, cot__put_copy_into},
    {OP_cumsum, cot__put_cumsum},
    {OP_norm, cot__put_norm},
    {OP_logsumexp, cot__put_logsumexp},
    {OP_softmax, cot__put_softmax},
    {OP_log_softmax, cot__put_softmax},
    {OP_mse, cot__put_mse},
};

static cot__put_fn *find(int op) {
    for (int k = 0; k < COUNTOF(exportables); k++)
        if (exportables[k].op == op) return exportables[k].put;
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

bool cot__put_structural(cot__writer *w, uint32_t k) {
    const cot__operation *o   = &w->p->operation[k];
    cot__put_fn          *put = find(o->op);
    if (!put)
        return cot__refuse(w->caller, COT_VALUE,
                           "%s cannot be exported yet; docs/export.md lists the operations that can",
                           cot__operation_name(w->p, k));
    cot__block b = {
        .w = w, .k = k, .z = o->result, .x = cot__operation_operand(w->p, k), .attr = cot__operation_attr(w->p, k)};
    b.xv = cot__value_view(w->p, b.x[0]);
    b.zv = cot__value_view(w->p, b.z);
    if (is_too_deep(&b))
        return cot__refuse(w->caller, COT_LIMIT, "a matmul of %lld terms cannot be exported yet; at most 65536",
                           (long long)b.xv.shape[b.xv.ndim - 1]);
    put_comment(&b);
    if (w->layout.home[b.z] == COT__AT_NAME)
        cot__put_indent(w, 1), cot__putf(w->to, "%s v_%u;\n", cot__emit_type(b.zv.dtype), b.z);
    cot__put_indent(w, 1);
    cot__put(w->to, "{\n");
    put(&b);
    cot__put_indent(w, 1);
    cot__put(w->to, "}\n");
    return true;
}
