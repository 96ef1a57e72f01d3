/* loop_steps.h: the steps of a loop on plain memory. Each is a run of the program of a body;
 * nothing is recorded, and nothing allocated. */
#ifndef COT_LOOP_STEPS_H
#define COT_LOOP_STEPS_H

#include "program/loop_form.h"
#include "program/run.h"

typedef struct cot__steps {
    cot__form           f;
    const cot__backend *backend;
    int                 choice;         /* which body is run */
    cot__run           *body, *test;
    const void        **in, **tested;   /* inputs of the next step, and of the next test */
    void              **out;            /* and results of the step */
    int64_t            *in_step, *out_step; /* how far each moves from step to step, in bytes */
    size_t             *offset, bytes;  /* of each carried value in a state, and of a state */
    char               *state, *next;   /* the carried values, and where a step puts them */
    int64_t            *count;          /* the number of the step, in memory of the backend */
} cot__steps;

/* Bytes of the lists of a loop; and puts them there. */
size_t cot__steps_lists(const cot__form *f);
void   cot__steps_lay(cot__steps *s, void *lists);
/* Where each carried value lies in a state, from the views of the operands. False: a state has more
 * bytes than memory can hold. */
bool cot__steps_measure(cot__steps *s, const cot__view *x);

/* Input k of the body, or of the test, as a view with strides: what is carried lies row-major. x:
 * the operands. */
cot__view cot__steps_input(const cot__steps *s, const cot__view *x, int k);
cot__view cot__steps_tested(const cot__steps *s, const cot__view *x, int k);

/* Takes the operands as they lie now: constants and captures are read there. */
void cot__steps_bind(cot__steps *s, const cot__view *x);
/* The first state: the carried operands. */
void cot__steps_first(cot__steps *s, const cot__view *x);
/* Step k of `length`, in the order of running, from the state to the next one, which becomes the
 * state. y: where the stacked values go that steps give out, row-major; NULL: they are not wanted.
 * False: the run of the body has refused something. */
bool cot__steps_go(cot__steps *s, const cot__view *x, const cot__view *y, int64_t k, int64_t length);
/* n steps at once, from step k on, each state `apart` bytes behind the one before; 0: in its place.
 * False: the body is not one row of scalar instructions, and nothing was done. */
bool cot__steps_go_along(cot__steps *s, const cot__view *x, const cot__view *y, int64_t k, int64_t n, int64_t length,
                         size_t apart);
/* Does the test say that the loop goes on? */
bool cot__steps_test(cot__steps *s, bool *go);

/* Bytes from slice to slice of a value with an axis of steps; row-major if it has no strides. */
static inline int64_t cot__slice_step(const cot__view *v) {
    return (v->stride ? v->stride[0] : cot__count(v->ndim - 1, v->shape + 1)) * cot__dtype_size(v->dtype);
}
static inline void *cot__slice_at(const cot__view *v, int64_t at) {
    return (void *)((uintptr_t)v->data + (uintptr_t)(at * cot__slice_step(v)));
}

#endif
