/* bits.h: hashes of results, for bits_hash. A family is a function that hashes many results, each
 * under a name of its own, so that two machines whose hashes differ can be asked where.
 *
 * All NaN count as one; a zero has its sign. Inputs are made of integers, without libm, and nothing
 * depends on addresses, time, threads or the locale. */
#ifndef COT_BITS_TEST_H
#define COT_BITS_TEST_H

#include "support/points.h"

/* ---- what is hashed -------------------------------------------------------------------------- */

/* Begins the result of this name; what follows is hashed into it. */
void bits_item(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The dtype, the shape and every element; where there is none, that. */
void bits_var(cot_var x);
void bits_gradient(cot_var leaf);
void bits_numbers(int64_t n, const double *x);
/* Begins that result, hashes x. */
void bits_one(const char *name, cot_var x);
/* Ends a tape: its status belongs to the result. */
void bits_close(cot_tape *t);

/* ---- inputs and functions -------------------------------------------------------------------- */

#define BITS_DTYPES                                                                                                    \
    (const cot_dtype[]) { COT_F64, COT_F32, COT_BF16, COT_F16 }
enum { BITS_DTYPE_COUNT = 4 };

/* A leaf with numbers from lo to hi that depend on `stream`; for integers a constant. */
cot_var bits_leaf(cot_tape *t, cot_dtype dtype, cot_shape shape, int stream, double lo, double hi);
/* Σ (y + y²/2), of any float value */
cot_var bits_loss(cot_var y);
/* y, its tangent, and the gradients of its loss: by cot_backward and by cot_grad_of. */
void bits_derivatives(cot_var y, int n, const cot_var *xs);

/* The families: bits_ops.c, bits_kernels.c, bits_linalg.c, bits_programs.c. */
#define BITS_FAMILIES(F)                                                                                               \
    F(casts)                                                                                                           \
    F(elementwise) F(elementwise_scalars) F(structural) F(reductions) F(softmax) F(products) F(dots) F(convolutions)   \
        F(pooling) F(attention) F(norms) F(scans) F(scatters) F(fft) F(linalg) F(random) F(create) F(second_order)     \
            F(series) F(sparse) F(csr) F(loops) F(implicit) F(solvers) F(optimisers) F(mlp) F(cnn) F(compiled)
#define BITS_DECLARE(name) void bits_family_##name(void);
BITS_FAMILIES(BITS_DECLARE)

#endif
