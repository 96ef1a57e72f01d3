/* tangents.c: the tangents of forward mode as data to show: for each wanted input, how every node
 * moves when that input moves by 1 (of an array: each of its elements). All come from one call of
 * the library's own forward mode, as numbers; nothing is recorded. */
#include "trace/trace.h"

#include <stdlib.h>

enum { MOST = 1 << 17 }; /* numbers: beyond that, tables of tangents are not worth their time */

typedef struct walks {
    cot_var *xs, *ys;
    int      n, m;         /* wanted inputs; active nodes */
    int64_t  count, total; /* elements of the xs and of the ys */
    double  *directions, *out;
} walks;

static int64_t size_of(cot__view v) {
    int64_t n = 1;
    for (int k = 0; k < v.ndim; k++) n *= v.shape[k];
    return n;
}

static const cot__trace_node *node_of(const cot__trace *tr, cot_var x) {
    return &tr->nodes[cot__trace_find(tr, cot__index(x))];
}

static bool is_moved(const cot__trace *tr, const cot__trace_input *input) {
    return input->wanted && node_of(tr, input->value)->active;
}

/* Lists what moves and what is moved. False: there is nothing to walk, or too much. */
static bool list(walks *w, const cot__trace *tr, int n, const cot__trace_input *inputs) {
    for (int k = 0; k < n; k++)
        if (is_moved(tr, &inputs[k])) {
            w->xs[w->n++] = inputs[k].value;
            w->count += size_of(node_of(tr, inputs[k].value)->value);
        }
    for (int64_t i = 0; i < tr->node_count; i++)
        if (tr->nodes[i].active) w->ys[w->m++] = VAR(tr->t, tr->nodes[i].id), w->total += size_of(tr->nodes[i].value);
    return w->n > 0 && w->m > 0 && w->n * (w->count + w->total) <= MOST;
}

/* Each wanted input moves alone, along ones. */
static bool walk(walks *w, const cot__trace *tr) {
    w->directions = calloc((size_t)(w->n * w->count), sizeof(double));
    w->out = malloc((size_t)(w->n * w->total) * sizeof(double));
    if (!w->directions || !w->out) return false;
    int64_t at = 0;
    for (int k = 0; k < w->n; k++)
        for (int64_t e = size_of(node_of(tr, w->xs[k])->value); e > 0; e--, at++) w->directions[k * w->count + at] = 1;
    bool done = cot_jvps(w->n, w->n, w->xs, w->directions, w->m, w->ys, w->out) == COT_OK;
    if (!done) cot_tape_clear_error(tr->t);
    return done;
}

static void write_walk(cot__json *j, const cot__trace *tr, const walks *w, int k) {
    double *at = w->out + k * w->total;
    cot__json_open(j, '[');
    for (int i = 0; i < w->m; i++) {
        const cot__trace_node *n = node_of(tr, w->ys[i]);
        int64_t                stride[COT_MAX_NDIM];
        cot__strides(n->value.ndim, n->value.shape, stride);
        cot__json_open(j, '{');
        cot__json_key(j, "node"), cot__json_integer(j, n->id);
        cot__json_key(j, "tangent");
        cot__json_tensor(j, &(cot__view){at, COT_F64, n->value.ndim, n->value.shape, stride});
        cot__json_close(j, '}');
        at += size_of(n->value);
    }
    cot__json_close(j, ']');
}

bool cot__trace_tangents_json(cot__json *j, const cot__trace *tr, int n, const cot__trace_input *inputs) {
    walks w = {.xs = calloc((size_t)n + 1, sizeof *w.xs), .ys = calloc((size_t)tr->node_count + 1, sizeof *w.ys)};
    bool  ok = w.xs && w.ys, any = ok && !tr->why[0] && list(&w, tr, n, inputs);
    ok = ok && (!any || walk(&w, tr));
    cot__json_open(j, '{');
    for (int k = 0, i = 0; k < n && any && ok; k++)
        if (is_moved(tr, &inputs[k])) cot__json_key(j, inputs[k].name), write_walk(j, tr, &w, i++);
    cot__json_close(j, '}');
    free(w.xs), free(w.ys), free(w.directions), free(w.out);
    return ok;
}
