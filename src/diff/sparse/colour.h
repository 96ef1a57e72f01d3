/* colour.h: finds columns, or rows, of a sparse matrix that one sweep can carry together.
 *
 * The code is our own. Debian has ColPack (libcolpack-dev), which is C++ and needs Boost. The
 * library depends on libc alone, and would use only three short algorithms of ColPack. */
#ifndef COT_COLOUR_H
#define COT_COLOUR_H

#include "diff/sparse/sparsity.h"

/* Gives all columns colours 0 … colours - 1 such that no row has two columns of one colour (partial
 * distance-2 colouring). First fit in the given order comes first. If it needs more colours than
 * the fullest row has entries, saturation is tried: it always colours the column that sees most
 * colours next, which is optimal on grids where first fit is not. Returns the number of colours, or
 * -1 when memory is short. */
int32_t cot__colour_columns(const cot_allocator *al, const cot__csr *m, int32_t *colour);
/* Colours a symmetric pattern. For each entry (i, j) one of two things holds: (i, j) is the only
 * entry of row i in a column of j's colour, or (j, i) is the only entry of row j in a column of i's
 * colour. A star colouring has this property (neighbours differ, and no path of four vertices has
 * only two colours). Never needs more colours than cot__colour_columns. */
int32_t cot__colour_star(const cot_allocator *al, const cot__csr *m, int32_t *colour);

/* Transposes: columns become rows. False when memory is short. */
bool    cot__csr_transpose(const cot_allocator *al, const cot__csr *m, cot__csr *out);
int64_t cot__fullest_row(const cot__csr *m);

#endif
