/* host_arrays.h: operands and results of an operation of a program as functions of the user's see
 * them: dense arrays of the host. Those that lie otherwise are copied, to memory that was taken
 * when the run was made. */
#ifndef COT_HOST_ARRAYS_H
#define COT_HOST_ARRAYS_H

#include "job/job.h"

typedef struct cot__host_arrays {
    cot_allocator al;
    int           n;
    cot_array    *x;
    void        **copy; /* memory for each that must be copied; NULL: it is seen where it lies */
} cot__host_arrays;

/* Room for n arrays, to be described one by one; to be closed in any case. False after telling the
 * caller. */
bool cot__host_arrays_open(cot__host_arrays *h, const cot__job *j, int n, const cot_allocator *al);
/* Array k is like this view, and will lie like it in each run. */
bool cot__host_array_like(cot__host_arrays *h, const cot__job *j, int k, const cot__view *v);
/* The same for an array of its own, which no view has. */
bool cot__host_array_apart(cot__host_arrays *h, const cot__job *j, int k, const cot__view *v);
/* It only has the description of the view, and no elements. */
void cot__host_array_described(cot__host_arrays *h, int k, const cot__view *v);
void cot__host_arrays_close(cot__host_arrays *h);

/* In a run: array k has the elements of the view; it is zeros, to be written; and what was written
 * goes to the view. */
void cot__host_array_see(cot__host_arrays *h, const cot__job *j, int k, const cot__view *v);
void cot__host_array_clear(cot__host_arrays *h, int k, const cot__view *v);
void cot__host_array_give(const cot__host_arrays *h, const cot__job *j, int k, const cot__view *v);

#endif
