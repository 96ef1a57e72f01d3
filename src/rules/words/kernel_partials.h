/* kernel_partials.h: the partials of rules.def as `static inline L NL(name_dX)(L G, T X, T Y, T W,
 * T Z)`, and dY, dW.
 *
 * A template like kernel_words.h, which must be included first for the same T. Besides T, F, S, N
 * it takes
 *   L          the type of G: T itself, or a gcc vector of T: many seeds or tangents at once, the
 *              "lanes"
 *   LI         the integer vector as wide as L, LI_LANE its element (only when L is a vector; then
 *              LANES > 1 is defined too)
 *   NL(name)   name with the suffix of this instance
 * Operands and result stay scalars: a cosine is taken once, whatever the number of lanes. */

#if defined(LANES) && LANES > 1
/* Is any of these lanes set? Each is all ones or all zeros. */
static inline bool NL(any)(LI lanes) {
#if defined(__SSE2__) && LANES == 2
    typedef double pair __attribute__((vector_size(16)));
    return __builtin_ia32_movmskpd((pair)lanes) != 0;
#else
    LI_LANE any = lanes[0];
    for (int k = 1; k < LANES; k++) any |= lanes[k];
    return any != 0;
#endif
}
/* 0 times anything is 0. If the plain product is a number, it is right already, but for the sign of
 * zeros. Adding to an adjoint or tangent, which is never -0, removes that sign. */
static inline L NL(w_smul)(L a, T b) {
    L r = a * b;
    return __builtin_expect(NL(any)(r != r), 0) ? (L)((LI)r & (a != 0) & (LI_LANE)(b != 0 ? -1 : 0)) : r;
}
static inline L NL(w_sdiv)(L a, T b) {
    L r = a / b;
    return __builtin_expect(b == 0 || b != b, 0) ? (L)((LI)r & (a != 0)) : r;
}
/* Uses a mask, because gcc 12 cannot always expand a choice between vectors. */
static inline L NL(w_gate)(T c, L g) { return (L)((LI)g & (LI_LANE)(c != 0 ? -1 : 0)); }
#define SMUL(a, b) _Generic((a), L: NL(w_smul), T: N(w_smul))(a, b)
#define SDIV(a, b) _Generic((a), L: NL(w_sdiv), T: N(w_sdiv))(a, b)
#define GATE(c, g) NL(w_gate)(c, g)
#else
#define SMUL(a, b) N(w_smul)(a, b)
#define SDIV(a, b) N(w_sdiv)(a, b)
#define GATE(c, g) ((c) != 0 ? (g) : (T)0)
#endif

#include "rules/kernel_vocabulary.h"
#undef NONE
#define NONE ((L){0})

#define PARTIAL(name, formula)                                                                                         \
    static inline L NL(name)(L G, T X, T Y, T W, T Z) {                                                                \
        (void)G, (void)X, (void)Y, (void)W, (void)Z;                                                                   \
        return (formula);                                                                                              \
    }
#define UNARY(name, cls, value, dx, lo, hi) PARTIAL(name##_dX, dx)
#define BINARY(name, cls, value, dx, dy, lo, hi) PARTIAL(name##_dX, dx) PARTIAL(name##_dY, dy)
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi)                                                                  \
    PARTIAL(name##_dX, dx) PARTIAL(name##_dY, dy) PARTIAL(name##_dW, dw)
#include "rules/rules.def"
#undef PARTIAL
