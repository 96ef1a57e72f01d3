/* has_partial.h: does operand X, Y, W of an operation have a derivative? name_x, name_y, name_w are
 * 1 or 0, at compile time. */
#ifndef COT_HAS_PARTIAL_H
#define COT_HAS_PARTIAL_H

#define X 1
#define Y 1
#define W 1
#define Z 1
#define G 1
#define K(c) 1
#define NONE 0
#define OP1(name, a) 1
#define OP2(name, a, b) 1
#define OP3(name, a, b, c) 1
#include "rules/words_ops.h"
enum {
#define UNARY(name, cls, value, dx, lo, hi) name##_x = (dx), name##_y = 0, name##_w = 0,
#define BINARY(name, cls, value, dx, dy, lo, hi) name##_x = (dx), name##_y = (dy), name##_w = 0,
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi) name##_x = (dx), name##_y = (dy), name##_w = (dw),
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
