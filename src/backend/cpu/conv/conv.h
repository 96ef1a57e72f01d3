/* conv.h: the three bilinear kernels of convolution, which are one trilinear form read in three
 * directions (cot__conv of backend/backend.h).
 *
 * Given two of x, w and z, each kernel computes what multiplies the third; so the transposes of
 * each are the other two.
 *
 * May call: base, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_CONV_H
#define COT_CONV_H

#include "backend/cpu/kernels.h"

/* The entries `conv_workspace` and `conv` of the table. */
int64_t cot__conv_bytes(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                        const cot__view *result);
void    cot__conv_run(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                      const cot__view *result, void *memory);

#endif
