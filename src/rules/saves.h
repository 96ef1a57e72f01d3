/* saves.h: the saves meaning of rules.def: which of X, Y, W, Z a partial reads. name_dX_saves,
 * name_dY_saves, name_dW_saves are masks, known at compile time: the mask of a word is the or of
 * the masks of its arguments. */
#ifndef COT_SAVES_H
#define COT_SAVES_H

#include "rules/elementwise_table.h"

#define X 1
#define Y 2
#define W 4
#define Z COT__SAVES_Z
#define G 0
#define K(c) 0
#define NONE 0
#define OP1(name, a) (a)
#define OP2(name, a, b) ((a) | (b))
#define OP3(name, a, b, c) ((a) | (b) | (c))
#include "rules/words_ops.h"
enum {
#define UNARY(name, cls, value, dx, lo, hi) name##_dX_saves = (dx),
#define BINARY(name, cls, value, dx, dy, lo, hi) name##_dX_saves = (dx), name##_dY_saves = (dy),
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi)                                                                  \
    name##_dX_saves = (dx), name##_dY_saves = (dy), name##_dW_saves = (dw),
#include "rules/rules.def"
};
#undef X
#undef Y
#undef W
#undef Z
#undef G
#undef OP1
#undef OP2
#undef OP3

#endif
