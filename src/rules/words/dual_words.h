/* dual_words.h: the dual meaning of rules.def: values and partials on pairs of a number and its
 * tangent.
 *
 * Every word is an operation with a value and partials, so its dual version follows from those
 * alone: NAME_dual(X, Y, W), and the partials of NAME in dual words, NAME_dX(G, X, Y, W, Z), dY,
 * dW. Also the kernel meaning in f64 that these are made of. */
#ifndef COT_DUAL_WORDS_H
#define COT_DUAL_WORDS_H

#include "base/math/special.h"
#include "base/base.h"

#define T double
#define F(name) cot__##name
#define S(name) name
#define N(name) name##_f64
#include "rules/words/kernel_words.h"
#define L T
#define NL(name) N(name)
#include "rules/words/kernel_partials.h"

typedef struct dual { double v, d; } dual;

/* ---- the operations on duals ----------------------------------------------------------------- */

#define UNARY(name, ...)                                                                                               \
    static inline dual name##_dual(dual X) {                                                                           \
        double z = name##_value_f64(X.v, 0, 0);                                                                        \
        return (dual){z, name##_dX_f64(X.d, X.v, 0, 0, z)};                                                            \
    }
#define BINARY(name, ...)                                                                                              \
    static inline dual name##_dual(dual X, dual Y) {                                                                   \
        double z = name##_value_f64(X.v, Y.v, 0);                                                                      \
        return (dual){z, name##_dX_f64(X.d, X.v, Y.v, 0, z) + name##_dY_f64(Y.d, X.v, Y.v, 0, z)};                     \
    }
#define TERNARY(name, ...)                                                                                             \
    static inline dual name##_dual(dual X, dual Y, dual W) {                                                           \
        double z  = name##_value_f64(X.v, Y.v, W.v);                                                                   \
        double dx = name##_dX_f64(X.d, X.v, Y.v, W.v, z), dy = name##_dY_f64(Y.d, X.v, Y.v, W.v, z);                   \
        return (dual){z, dx + dy + name##_dW_f64(W.d, X.v, Y.v, W.v, z)};                                              \
    }
#include "rules/rules.def"

/* ---- the partials, in dual words ------------------------------------------------------------- */

#define K(c) ((dual){(c), 0})
#define NONE K(0)
#define OP1(name, a) name##_dual(a)
#define OP2(name, a, b) name##_dual(a, b)
#define OP3(name, a, b, c) name##_dual(a, b, c)
#include "rules/words_ops.h"
#define PARTIAL(name, formula)                                                                                         \
    static inline dual name(dual G, dual X, dual Y, dual W, dual Z) {                                                  \
        (void)G, (void)X, (void)Y, (void)W, (void)Z;                                                                   \
        return (formula);                                                                                              \
    }
#define UNARY(name, cls, value, dx, lo, hi) PARTIAL(name##_dX, dx)
#define BINARY(name, cls, value, dx, dy, lo, hi) PARTIAL(name##_dX, dx) PARTIAL(name##_dY, dy)
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi)                                                                  \
    PARTIAL(name##_dX, dx) PARTIAL(name##_dY, dy) PARTIAL(name##_dW, dw)
#include "rules/rules.def"

#endif
