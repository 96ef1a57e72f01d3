/* traced.c: records a problem and traces it. */
#include "problem/traced.h"

#include <stdlib.h>
#include <string.h>

#include "problem/expression.h"
#include "problem/results.h"
#include "problem/values.h"

static bool ones(const problem *p, cot_array *seed, failure *f) {
    if (!array_allocate(seed, COT_F64, cot_shape_of(p->y), f)) return false;
    for (int64_t i = 0; i < seed->size; i++) ((double *)seed->data)[i] = 1;
    return true;
}

static bool trace_it(traced *x, failure *f) {
    problem *p = &x->p;
    char     why[512] = "";
    if (!problem_record(p, f)) return false;
    cot__trace_request request = {.y           = p->y,
                                  .input_count = p->n,
                                  .inputs      = x->inputs,
                                  .spans       = p->spans,
                                  .span_first  = p->first,
                                  .span_count  = p->span_count,
                                  .expr        = p->expr};
    for (int k = 0; k < p->n; k++)
        x->inputs[k] = (cot__trace_input){p->inputs[k].name, p->inputs[k].var, p->inputs[k].wanted};
    cot_var seed;
    bool    differentiable = cot__dtype_is_float(cot_dtype_of(p->y)) && cot_requires_grad(p->y);
    if (differentiable || p->o->seed) { /* without a derivative the tape can still be shown */
        /* forward mode starts at the inputs: any seed will do */
        bool any = p->o->mode == COT_FORWARD && !p->o->seed;
        if (any ? !ones(p, &x->seed, f) : !problem_seed(p, &x->seed, f)) return false;
        if (x->seed.shape.ndim == 0) seed = cot_number(*(double *)x->seed.data);
        else seed = cot_cast(cot_data(p->t, COT_F64, x->seed.shape, x->seed.data), cot_dtype_of(p->y));
        request.seed = &seed;
    }
    x->trace = cot__trace_make(&request, why);
    return x->trace ? true : sentence_failure(why, "trace", f);
}

bool traced_open(traced *x, const options *o, failure *f) {
    *x = (traced){0};
    if (!problem_open(&x->p, o, f)) return false;
    x->inputs = calloc((size_t)x->p.n + 1, sizeof *x->inputs);
    return x->inputs ? trace_it(x, f) : failure_memory(f);
}

static void forget(traced *x) {
    cot__trace_free(x->trace);
    x->trace = NULL;
    free(x->seed.data);
    x->seed.data = NULL;
    problem_forget(&x->p);
}

bool traced_again(traced *x, failure *f) {
    forget(x);
    return trace_it(x, f);
}

void traced_close(traced *x) {
    forget(x);
    free(x->inputs);
    problem_close(&x->p);
}

bool traced_json(const traced *x, FILE *out, failure *f) {
    cot__json j = cot__json_to(out);
    return cot__trace_json(&j, x->trace, x->p.text, x->p.o->dtype, x->p.n, x->inputs) || failure_memory(f);
}
