/* compiled.h: workloads as programs: a step is compiled once and run on plain arrays. */
#ifndef BENCH_COMPILED_H
#define BENCH_COMPILED_H

#include "workloads/workloads.h"

enum { MOST = 192 };

typedef struct compiled {
    cot_program *p;
    cot_run     *r;
    void        *array[MOST];
    const void  *in[MOST];
    void        *out[MOST];
    int          arrays;
    double     (*result)(const struct compiled *c);
    double       compile_s;
    int64_t      step;    /* steps that were done; before: what changes from one to the next */
    void       (*before)(struct compiled *c);
} compiled;

/* An array that the workload frees at its end. */
void     *compiled_take(compiled *c, void *array);
compiled *compiled_make(cot_fn f, void *user, int n, const cot_type *types, int m);
/* The same with options; NULL: the defaults. */
compiled *compiled_make_with(cot_fn f, void *user, int n, const cot_type *types, int m,
                             const cot_compile_options *options);
double    compiled_step(void *state);
void      compiled_destroy(void *state);
double    compiled_seconds(const void *state); /* that compiling took */
double    compiled_first_float(const compiled *c);

#endif
