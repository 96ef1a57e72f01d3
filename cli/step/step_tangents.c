/* step_tangents.c: the steps of forward mode, one walk after the other. */
#include "step/step_tangents.h"

#include <stdlib.h>

bool tangents_open(step_tangents *s, const traced *x, failure *f) {
    const cot__trace *tr = x->trace;
    *s = (step_tangents){0};
    if (x->p.o->mode != COT_FORWARD) return true;
    if (!cot__tangents_open(&s->w, tr, x->p.n, x->inputs)) return s->w.no_memory ? failure_memory(f) : true;
    s->on = true;
    s->moving = malloc(((size_t)tr->node_count + 1) * sizeof *s->moving);
    if (!s->moving) return failure_memory(f);
    for (int64_t i = 0; i < tr->node_count; i++)
        if (s->w.at[i] >= 0) s->moving[s->count++] = i;
    return true;
}

void tangents_close(step_tangents *s) {
    if (s->on) cot__tangents_close(&s->w);
    free(s->moving);
    *s = (step_tangents){0};
}

int64_t tangents_steps(const step_tangents *s) { return s->w.walks * (1 + s->count); }

int tangents_walk(const step_tangents *s, int64_t step, int64_t *node, const traced *x) {
    int     walk = (int)(step / (1 + s->count));
    int64_t k = step % (1 + s->count);
    cot_var input = x->inputs[s->w.walk[walk].input].value;
    *node = k ? s->moving[k - 1] : cot__trace_find(x->trace, cot__index(input));
    return walk;
}

bool tangents_read(const step_tangents *s, const traced *x, int64_t node, int64_t swept, cot__view *v,
                   int64_t stride[COT_MAX_NDIM]) {
    int64_t at;
    if (swept < 1 || !x->trace->nodes[node].active) return false;
    int walk = tangents_walk(s, swept - 1, &at, x);
    bool start = (swept - 1) % (1 + s->count) == 0;
    if (s->w.at[node] >= 0 && (start || node > at)) return false;
    *v = cot__tangent(&s->w, walk, node);
    if (!v->stride) cot__strides(v->ndim, v->shape, stride), v->stride = stride;
    return true;
}
