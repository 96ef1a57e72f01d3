/* tangents.c: forward mode on the nodes of a trace: for each number of the inputs the tangent of
 * every node when that number moves by 1 and the others stay. The numbers are the library's own
 * (cot_jvps). The part that came through one operand is its tangent times the partial, by the
 * rule's kernel. */
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

/* "W[0,1]": an input, and the place in it that moves. */
static void name_walk(cot__walk *walk, const char *name, const cot__view *v) {
    int64_t   index[COT_MAX_NDIM];
    cot__text x = cot__text_buffer(walk->name, sizeof walk->name);
    cot__put(&x, name);
    if (walk->place < 0 || v->ndim == 0) return;
    for (int64_t d = v->ndim, rest = walk->place; d-- > 0; rest /= v->shape[d]) index[d] = rest % v->shape[d];
    for (int d = 0; d < v->ndim; d++) cot__putf(&x, "%s%lld", d ? "," : "[", (long long)index[d]);
    cot__put(&x, "]");
}

/* The walks of an input whose numbers begin at `first` of all that can move, with their directions:
 * ones where it moves, zeros elsewhere. */
static void add_walks(cot__tangents *w, int input, const char *name, const cot__view *v, int64_t first, bool each) {
    int64_t size = cot__count(v->ndim, v->shape);
    for (int64_t i = 0; i < (each ? size : 1); i++) {
        cot__walk *walk = &w->walk[w->walks];
        double    *row = w->direction + w->walks++ * w->width + first;
        *walk = (cot__walk){.input = input, .place = each ? i : -1};
        name_walk(walk, name, v);
        for (int64_t k = 0; k < size; k++) row[k] = !each || k == i;
    }
}

static bool sweep(cot__tangents *w, const cot__trace *tr, int n, const cot_var *xs, int m, const cot_var *ys) {
    w->value = calloc((size_t)(w->walks * w->elements) + 1, sizeof *w->value);
    bool ok = w->value;
    w->no_memory = !ok;
    if (ok && m) {
        cot_status status = cot_jvps(w->walks, n, xs, w->direction, m, ys, w->value);
        w->no_memory = status == COT_MEMORY;
        ok = status == COT_OK;
    }
    /* a sweep that fails shows nothing */
    if (!ok) cot_tape_clear_error(tr->t);
    return ok;
}

/* Can the input move the result? */
static bool can_move(const cot__trace *tr, const cot__trace_input *input) {
    return input->wanted && tr->nodes[cot__trace_find(tr, cot__index(input->value))].active;
}

/* A walk for each number where they are few, else for each input. */
static bool plan_walks(cot__tangents *w, int n, const cot__trace_input *inputs, int moving) {
    const cot__trace *tr = w->trace;
    bool    each = w->width <= COT__TANGENTS_PLACES && w->elements * w->width <= COT__TANGENTS_MOST;
    int64_t count = each ? w->width : moving, first = 0;
    if (w->elements * count > COT__TANGENTS_MOST) return false;
    w->walk = malloc(((size_t)count + 1) * sizeof *w->walk);
    w->direction = calloc((size_t)(count * w->width) + 1, sizeof *w->direction);
    w->no_memory = !w->walk || !w->direction;
    for (int k = 0; !w->no_memory && k < n; k++) {
        if (!can_move(tr, &inputs[k])) continue;
        const cot__view *v = &tr->nodes[cot__trace_find(tr, cot__index(inputs[k].value))].value;
        add_walks(w, k, inputs[k].name, v, first, each);
        first += cot__count(v->ndim, v->shape);
    }
    return !w->no_memory && w->walks > 0;
}

bool cot__tangents_open(cot__tangents *w, const cot__trace *tr, int n, const cot__trace_input *inputs) {
    int      m = 0, moving = 0;
    cot_var *xs = malloc(((size_t)n + 1) * sizeof *xs), *ys = malloc(((size_t)tr->node_count + 1) * sizeof *ys);
    *w = (cot__tangents){.trace = tr};
    w->at = malloc(((size_t)tr->node_count + 1) * sizeof *w->at);
    w->no_memory = !xs || !ys || !w->at;
    bool ok = !w->no_memory && !tr->why[0];
    for (int64_t i = 0; ok && i < tr->node_count; i++) {
        w->at[i] = moves(&tr->nodes[i]) ? w->elements : -1;
        if (w->at[i] < 0) continue;
        w->elements += size_of(&tr->nodes[i]);
        ys[m++] = VAR(tr->t, tr->nodes[i].id);
    }
    for (int k = 0; ok && k < n; k++) {
        if (!can_move(tr, &inputs[k])) continue;
        int64_t node = cot__trace_find(tr, cot__index(inputs[k].value));
        w->at[node] = -2 - w->width; /* given, not computed */
        w->width += size_of(&tr->nodes[node]);
        xs[moving++] = inputs[k].value;
    }
    ok = ok && plan_walks(w, n, inputs, moving) && sweep(w, tr, moving, xs, m, ys);
    free(xs), free(ys);
    if (!ok) cot__tangents_close(w);
    return ok;
}

void cot__tangents_close(cot__tangents *w) {
    free(w->walk), free(w->direction), free(w->at), free(w->value);
    *w = (cot__tangents){.no_memory = w->no_memory};
}

cot__view cot__tangent(const cot__tangents *w, int which, int64_t node) {
    static const double  zero;
    static const int64_t still[COT_MAX_NDIM];
    const cot__view     *v = &w->trace->nodes[node].value;
    int64_t              at = w->at[node];
    if (at == -1) return (cot__view){(void *)(uintptr_t)&zero, COT_F64, v->ndim, v->shape, still};
    double *data = at >= 0 ? w->value + which * w->elements + at : w->direction + which * w->width - 2 - at;
    return (cot__view){data, COT_F64, v->ndim, v->shape, NULL};
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
