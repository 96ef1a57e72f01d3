/* along.c: tangents of several inputs, one after the other. */
#include "commands/along.h"

#include <stdlib.h>

bool direction_make(direction *d, const problem *p, bool wanted_too, failure *f) {
    *d = (direction){0};
    d->inputs = malloc(((size_t)p->n + 1) * sizeof *d->inputs);
    d->vars = malloc(((size_t)p->n + 1) * sizeof *d->vars);
    if (!d->inputs || !d->vars) return failure_memory(f);
    for (int k = 0; k < p->n; k++) {
        problem_input *x = &p->inputs[k];
        if (!x->tangent.data && !(wanted_too && x->wanted)) continue;
        d->inputs[d->n] = x;
        d->vars[d->n++] = x->var;
        d->size += x->value.size;
    }
    d->v = calloc((size_t)d->size + 1, sizeof *d->v);
    if (!d->v) return failure_memory(f);
    for (int64_t k = 0, at = 0; k < d->n; at += d->inputs[k++]->value.size) {
        const cot_array *v = &d->inputs[k]->tangent;
        for (int64_t i = 0; v->data && i < v->size; i++)
            d->v[at + i] = v->dtype == COT_F32 ? (double)((float *)v->data)[i] : ((double *)v->data)[i];
    }
    return true;
}

void direction_free(direction *d) {
    free(d->inputs);
    free(d->vars);
    free(d->v);
}
