/* kernel_words.h: the kernel meaning of rules.def for a float type: every word is C arithmetic.
 *
 * A template without include guard. The includer defines
 *   T          double or float
 *   F(name)    the elementary function for T, of base/math/elementary.h or, with VECTOR_WORDS,
 *              base/math/vmath.h: the same bits
 *   S(name)    the same for a name that begins with cot__
 *   N(name)    name with the suffix of this instance
 * and gets, for every operation, `static inline T N(name_value)(T X, T Y, T W)`. Partials come from
 * kernel_partials.h. Words that need an argument twice are static inline functions; each expansion
 * is one parenthesised expression.
 *
 * May call: base, the tables. Must not touch: memory; a word is arithmetic on its arguments. */

#include "rules/words/fused.h"

#include "rules/words/choices.h"

static inline T N(w_relu)(T x) { return x < 0 ? (T)0 : x; }
static inline T N(w_polygamma)(T n, T x) {
    return n >= 0 && n <= (T)100000 && n == F(floor)(n) ? S(cot__polygamma)((int)n, x) : (T)NAN;
}

#include "rules/kernel_vocabulary.h"

#define UNARY(name, cls, value, dx, lo, hi)                                                                            \
    static inline T N(name##_value)(T X, T Y, T W) {                                                                   \
        (void)Y, (void)W;                                                                                              \
        return (value);                                                                                                \
    }
#define BINARY(name, cls, value, dx, dy, lo, hi)                                                                       \
    static inline T N(name##_value)(T X, T Y, T W) {                                                                   \
        (void)W;                                                                                                       \
        return (value);                                                                                                \
    }
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi)                                                                  \
    static inline T N(name##_value)(T X, T Y, T W) { return (value); }
#define SMUL(a, b) N(w_smul)(a, b)
#define SDIV(a, b) N(w_sdiv)(a, b)
#define GATE(c, g) ((c) ? (g) : (T)0)
#include "rules/rules.def"
