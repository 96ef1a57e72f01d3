/* nn.h: kernels of networks: normalisation, attention, and the passes of optimisers.
 * backend/backend.h says what each computes.
 *
 * May call: base, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_CPU_NN_H
#define COT_CPU_NN_H

#include "backend/cpu/kernels.h"

void    cot__normalize(const cot__rows *r, const void *x, const void *weight, const void *bias, void *z);
void    cot__normalize_back(const cot__rows *r, const void *x, const void *weight, const void *g, void *z);
int64_t cot__normalize_scratch(const cot__rows *r);
void    cot__normalize_weights(const cot__rows *r, const void *x, const void *g, void *scratch, void *z);
int64_t cot__attention_bytes(const cot__attention *a, bool backward);
void    cot__attention_forward(const cot__attention *a, void *memory);
void    cot__attention_backward(const cot__attention *a, void *memory);

void cot__update_step(const cot__update *p);

#endif
