/* tangents.c: forward mode on the nodes of a trace: for each input the tangent of every node when
 * that input moves by ones and the others stay. The numbers are the library's own (cot_jvps). The
 * part that came through one operand is its tangent times the partial, by the rule's kernel. */
#include "trace/tangents.h"

#include "diff/engine/kept_adjoints.h"
#include "ops/elementwise/elementwise.h"
#include "tape/show.h"
#include "trace/operand_letters.h"

#include <stdlib.h>
#include <string.h>

static int64_t size_of(const cot__trace_node *n) { return cot__count(n->value.ndim, n->value.shape); }

/* Has the node a tangent? Sources move by what they are given, and need no sweep. */
static bool moves(const cot__trace_node *n) {
    return n->active && n->nargs > 0 && cot__dtype_is_float(n->value.dtype) && !n->overwritten;
}

/* The directions, one row for each input: ones at its own elements, zeros at the others'. */
static void fill_directions(double *rows, int n, const cot_var *xs, int64_t width) {
    int64_t at = 0;
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < cot_size(xs[k]); i++) rows[k * width + at++] = 1;
}

static bool sweep(cot__tangents *w, const cot__trace *tr, int m, const cot_var *ys, const cot_var *xs) {
    int64_t width = 0;
    for (int k = 0; k < w->inputs; k++) width += cot_size(xs[k]);
    double *rows = calloc((size_t)(w->inputs * width) + 1, sizeof *rows);
    w->value = calloc((size_t)(w->inputs * w->elements) + 1, sizeof *w->value);
    bool ok = rows && w->value;
    if (ok) fill_directions(rows, w->inputs, xs, width);
    w->no_memory = !ok;
    if (ok && m) {
        cot_status status = cot_jvps(w->inputs, w->inputs, xs, rows, m, ys, w->value);
        w->no_memory = status == COT_MEMORY;
        ok = status == COT_OK;
    }
    /* a sweep that fails shows nothing */
    if (!ok) cot_tape_clear_error(tr->t);
    free(rows);
    return ok;
}

bool cot__tangents_open(cot__tangents *w, const cot__trace *tr, int n, const cot__trace_input *inputs) {
    int      m = 0;
    cot_var *xs = malloc(((size_t)n + 1) * sizeof *xs), *ys = malloc(((size_t)tr->node_count + 1) * sizeof *ys);
    *w = (cot__tangents){.trace = tr};
    w->input = malloc(((size_t)n + 1) * sizeof *w->input);
    w->at = malloc(((size_t)tr->node_count + 1) * sizeof *w->at);
    w->no_memory = !xs || !ys || !w->input || !w->at;
    bool ok = !w->no_memory && !tr->why[0];
    for (int k = 0; ok && k < n; k++) {
        if (!inputs[k].wanted || !tr->nodes[cot__trace_find(tr, cot__index(inputs[k].value))].active) continue;
        w->input[w->inputs] = k;
        xs[w->inputs++] = inputs[k].value;
    }
    for (int64_t i = 0; ok && i < tr->node_count; i++) {
        w->at[i] = moves(&tr->nodes[i]) ? w->elements : -1;
        if (w->at[i] < 0) continue;
        w->elements += size_of(&tr->nodes[i]);
        ys[m++] = VAR(tr->t, tr->nodes[i].id);
    }
    ok = ok && w->inputs > 0 && w->elements * w->inputs <= COT__TANGENTS_MOST && sweep(w, tr, m, ys, xs);
    free(xs), free(ys);
    if (!ok) cot__tangents_close(w);
    return ok;
}

void cot__tangents_close(cot__tangents *w) {
    free(w->input), free(w->at), free(w->value);
    *w = (cot__tangents){.no_memory = w->no_memory};
}

cot__view cot__tangent(const cot__tangents *w, int which, int64_t node, const cot__trace_input *inputs) {
    static const double  unit[2] = {0, 1};
    static const int64_t still[COT_MAX_NDIM];
    const cot__view     *v = &w->trace->nodes[node].value;
    if (w->at[node] < 0) {
        bool own = w->trace->nodes[node].id == cot__index(inputs[w->input[which]].value);
        return (cot__view){(void *)(uintptr_t)&unit[own], COT_F64, v->ndim, v->shape, still};
    }
    return (cot__view){w->value + which * w->elements + w->at[node], COT_F64, v->ndim, v->shape, NULL};
}

const char *cot__tangent_filled(const cot__trace *tr, int64_t node, int k, char *buf, size_t size) {
    const cot__trace_node *n = &tr->nodes[node];
    char rule[COT__TRACE_TEXT], letter[3][16], name[3][64], dotted[72], own[64];
    cot__renaming with = {.count = 0};
    cot__formula(n->op, cot__elementwise_table[n->op].partial[k], rule, sizeof rule);
    for (; with.count < n->nargs && with.count < 3; with.count++) {
        with.letter[with.count] = cot__operand_letter(n->op, with.count, n->nargs, letter[with.count]);
        with.name[with.count] = cot__trace_operand(tr, node, with.count, name[with.count], sizeof name[0]);
    }
    with.letter[with.count] = "g";
    with.name[with.count++] = cot__with_mark(name[k], COT__DOT, dotted, sizeof dotted);
    with.letter[with.count] = "z";
    with.name[with.count++] = cot__trace_label(tr, node, own, sizeof own);
    cot__formula_fill(rule, &with, buf, size);
    cot__trace_simplify(buf);
    return buf;
}

const char *cot__tangent_rule(const cot__trace *tr, int64_t node, char *buf, size_t size) {
    const cot__trace_node *n = &tr->nodes[node];
    cot__text              x = cot__text_buffer(buf, size);
    char                   part[COT__TRACE_TEXT];
    const char            *plus = "";
    for (int k = 0; n->op < OP_structural && k < n->nargs; k++) {
        int64_t from = n->args[k] == COT__NONE ? -1 : cot__trace_find(tr, n->args[k]);
        if (from < 0 || !tr->nodes[from].active || !cot__elementwise_table[n->op].partial[k]) continue;
        cot__put(&x, plus), cot__put(&x, cot__tangent_filled(tr, node, k, part, sizeof part));
        plus = " + ";
    }
    if (n->op >= OP_structural) cot__put(&x, "by the rule of "), cot__put(&x, cot__op_name(tr->t, n->id));
    return buf;
}
