/* shifts.h: loops whose members read each other shifted, and change ranges of each other
 * (program/spans.c), as native code has them.
 *
 * The executor makes some elements of a block twice. In a loop of native code a member is a line
 * for each shift at which it is read: element i + 1 of it is another variable than element i. The
 * loop is cut into pieces where a range that is changed begins or ends, so within a piece it is
 * known which elements are, and nothing branches. */
#ifndef COT_NATIVE_SHIFTS_H
#define COT_NATIVE_SHIFTS_H

#include "native/parts/choose.h"

enum { COT__MOST_PIECES = 8, COT__SHIFTED_LINES = 96 };

/* What a member makes so many elements behind that of the loop. */
typedef struct cot__shifted_line { uint32_t operation; int64_t shift; } cot__shifted_line;

/* Elements from … to - 1 of the loop, and all that is done for each, in the order of the
 * operations. */
typedef struct cot__piece {
    int64_t           from, to;
    int               count;
    cot__shifted_line line[COT__SHIFTED_LINES];
} cot__piece;

typedef struct cot__loop_cuts { int count; int64_t cut[COT__MOST_PIECES + 1]; } cot__loop_cuts;

/* Has the group members of several sizes, or patches? */
bool cot__is_shifted(const cot__choice *c, const cot__group *g);
/* Where such a loop is cut. False: it would have too many pieces or lines. */
bool cot__find_cuts(const cot__choice *c, const cot__group *g, cot__loop_cuts *cuts);
/* Piece number i of it. */
bool cot__find_piece(const cot__choice *c, const cot__group *g, const cot__loop_cuts *cuts, int i, cot__piece *piece);
/* Does patch k change the elements of the piece, so many behind those of the loop? All or none. */
bool cot__piece_is_patched(const cot__choice *c, const cot__piece *piece, uint32_t k, int64_t shift);

#endif
