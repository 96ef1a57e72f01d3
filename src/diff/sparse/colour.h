/* colour.h: which columns, or rows, of a sparse matrix one sweep can carry together.
 *
 * Own code: Debian has ColPack (libcolpack-dev), in C++ with Boost behind it; the library depends
 * on libc alone, and three short algorithms are all it would use of it. */
#ifndef COT_COLOUR_H
#define COT_COLOUR_H

#include "diff/sparse/sparsity.h"

/* Colours 0 … colours - 1 of all columns such that no row has two columns of one colour (partial
 * distance-2). First fit in the given order; then, if that needs more than the fullest row has, by
 * saturation: always the column that sees most colours, which is optimal on grids where first fit
 * is not. The number of colours, or -1 when memory is short. */
int32_t cot__colour_columns(const cot_allocator *al, const cot__csr *m, int32_t *colour);
/* Of a symmetric pattern: each entry (i, j) is the only one of row i in a column of j's colour, or
 * (j, i) is that of row j in one of i's. So are the entries of a star colouring (neighbours differ,
 * no path of four vertices has two colours). Never more colours than for columns. */
int32_t cot__colour_star(const cot_allocator *al, const cot__csr *m, int32_t *colour);

/* The other way round: columns become rows. False when memory is short. */
bool    cot__csr_transpose(const cot_allocator *al, const cot__csr *m, cot__csr *out);
int64_t cot__fullest_row(const cot__csr *m);

#endif
