/* traced.h: a problem with its trace, made again whenever an input changes. */
#ifndef COT_CLI_TRACED_H
#define COT_CLI_TRACED_H

#include "problem/problem.h"
#include "trace/trace.h"

typedef struct traced {
    problem           p;
    cot_array         seed;
    cot__trace       *trace;
    cot__trace_input *inputs; /* p.n of them */
} traced;

/* From the command line; call traced_close in any case. */
bool traced_open(traced *x, const options *o, failure *f);
/* Again, after values of x->p.inputs were changed. On failure the old trace is gone. */
bool traced_again(traced *x, failure *f);
void traced_close(traced *x);

/* The object of `trace --json`, without a newline. */
bool traced_json(const traced *x, FILE *out, failure *f);

#endif
