/* conv.h: the three bilinear kernels of convolution, which are one trilinear form read in three
 * directions.
 *
 *   Σ x[n, c, q·stride + k·dilation − before] · w[o, c, k] · z[n, o, q]
 *       over images n, channels c and o, taps k, places q
 *
 * Given two of x, w and z, each kernel computes what multiplies the third; so the transposes of
 * each are the other two.
 *
 * May call: base, the shared kernels. Must not touch: tapes, nodes, vars. */
#ifndef COT_CONV_H
#define COT_CONV_H

#include "backend/cpu/kernels.h"

enum { COT__SPACE = 3 }; /* spatial axes; fewer have leading extents of 1 */

typedef struct cot__conv {
    int64_t batch, groups, in, out;  /* images, groups, channels of x, channels of z */
    int64_t x[COT__SPACE], k[COT__SPACE], z[COT__SPACE];                  /* extents */
    /* before: zeros in front of x */
    int64_t stride[COT__SPACE], dilation[COT__SPACE], before[COT__SPACE];
} cot__conv;

/* z from (x, w), x from (z, w), w from (x, z). */
typedef enum cot__conv_pass { COT__CONV_OUTPUT, COT__CONV_INPUT, COT__CONV_WEIGHT } cot__conv_pass;

/* Views of five axes: x (batch, in, …), w (out, in/groups, …), z (batch, out, …); floats of one
 * dtype; the result is contiguous. bf16 and f16 are computed in f32 and rounded once. Returns false
 * when memory for the padded operand cannot be had. */
bool cot__conv_run(const cot_allocator *al, const cot__conv *g, cot__conv_pass pass, const cot__view *a,
                   const cot__view *b, const cot__view *result);

#endif
