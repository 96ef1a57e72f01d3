/* compiled.h: workloads as programs: a step is compiled once and run on plain arrays. */
#ifndef BENCH_COMPILED_H
#define BENCH_COMPILED_H

#include "workloads/workloads.h"

enum { MOST = 256 };

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

/* What is asked of a loss: its value, its gradients by the first inputs besides, or those inputs
 * after a step of gradient descent instead of the gradients. */
typedef enum loss_goal { VALUE, GRADIENTS, DESCENT } loss_goal;

typedef struct asked {
    cot_fn    loss;
    void     *user;
    int       parameters; /* the first inputs */
    loss_goal goal;
} asked;

/* A cot_fn; user: an asked. Outputs: the loss and, unless its value is all, one for each
 * parameter. */
int compiled_asked(int n, const cot_var *xs, int m, cot_var *ys, void *user);
/* How many outputs that has. */
static inline int outputs_of(const asked *a) { return a->goal == VALUE ? 1 : 1 + a->parameters; }
/* Memory for the outputs: after a descent the parameters themselves, which are the first inputs. */
void compiled_outputs(struct compiled *c, const asked *a, const cot_type *types);

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

#define COMPILED(name, dtype, make, known, tolerance)                                                                  \
    { name "_compiled", dtype, make, compiled_step, compiled_destroy, known, tolerance, compiled_seconds }

/* A workload that is trained, make(goal), as three: the step, the gradients alone, the loss
 * alone. */
#define MAKES(prefix, make)                                        \
    static void *prefix##_value(void) { return make(VALUE); }      \
    static void *prefix##_slope(void) { return make(GRADIENTS); }  \
    static void *prefix##_step(void) { return make(DESCENT); }
#define TRAINED(name, prefix, known, tolerance)                             \
    COMPILED(name, "f32", prefix##_step, known, tolerance),                 \
    COMPILED(name "_gradient", "f32", prefix##_slope, known, tolerance),    \
    COMPILED(name "_function", "f32", prefix##_value, known, tolerance)

#endif
