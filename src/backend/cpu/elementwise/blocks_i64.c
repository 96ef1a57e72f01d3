/* blocks_i64.c: block kernels of the elementwise operations on integers: those of class ARITH and
 * TEST. Narrower integers are widened on load and wrap on store. No derivatives. */
#include "base/math/special.h"
#include "backend/cpu/elementwise/blocks.h"

typedef int64_t T;

static inline T wrap(uint64_t v) { return (T)v; }
static inline T i_neg(T a) { return wrap(0 - (uint64_t)a); }
static inline T i_mul(T a, T b) { return wrap((uint64_t)a * (uint64_t)b); }
static inline T i_add(T a, T b) { return wrap((uint64_t)a + (uint64_t)b); }
static inline T i_sub(T a, T b) { return wrap((uint64_t)a - (uint64_t)b); }
static inline T i_max(T a, T b) { return a > b ? a : b; }
static inline T i_min(T a, T b) { return a < b ? a : b; }
static inline T i_sign(T a) { return (a > 0) - (a < 0); }
static inline T i_abs(T a) { return a < 0 ? i_neg(a) : a; }
static inline T i_same(T a) { return a; }
static inline T i_square(T a) { return i_mul(a, a); }

#define X (x[i])
#define Y (y[i])
#define W (w[i])
#define K(c) ((T)(c))
#define NEG(a) i_neg(a)
#define ABS(a) i_abs(a)
#define SIGN(a) i_sign(a)
#define SQUARE(a) i_square(a)
#define FLOOR(a) i_same(a)
#define CEIL(a) i_same(a)
#define ROUND(a) i_same(a)
#define TRUNC(a) i_same(a)
#define ISNAN(a) ((T)0 * (a))
#define ISINF(a) ((T)0 * (a))
#define ISFINITE(a) ((T)((a) == (a)))
#define NOT(a) ((T)((a) == 0))
#define ADD(a, b) i_add(a, b)
#define SUB(a, b) i_sub(a, b)
#define MUL(a, b) i_mul(a, b)
#define SMUL(a, b) i_mul(a, b)
#define POW(a, b) cot__ipow(a, b)
#define MAXIMUM(a, b) i_max(a, b)
#define MINIMUM(a, b) i_min(a, b)
#define FMOD(a, b) cot__ifmod(a, b)
#define REMAINDER(a, b) cot__iremainder(a, b)
#define EQ(a, b) ((T)((a) == (b)))
#define NE(a, b) ((T)((a) != (b)))
#define LT(a, b) ((T)((a) < (b)))
#define LE(a, b) ((T)((a) <= (b)))
#define GT(a, b) ((T)((a) > (b)))
#define GE(a, b) ((T)((a) >= (b)))
#define AND(a, b) ((T)(((a) != 0) & ((b) != 0)))
#define OR(a, b) ((T)(((a) != 0) | ((b) != 0)))
#define WHERE(c, a, b) ((c) != 0 ? (a) : (b))
#define FMA(a, b, c) i_add(i_mul(a, b), c)

#define KERNEL_ARITH(name, value)                                                                                      \
    static void name##_block(int n, const void *xv, const void *yv, const void *wv, void *zv) {                        \
        const T *x = xv, *y = yv, *w = wv;                                                                             \
        T       *z = zv;                                                                                               \
        (void)y, (void)w;                                                                                              \
        for (int i = 0; i < n; i++) z[i] = (value);                                                                    \
    }
#define KERNEL_TEST(name, value) KERNEL_ARITH(name, value)
#define KERNEL_REAL(name, value)
#define UNARY(name, cls, value, dx, lo, hi) KERNEL_##cls(name, value)
#define BINARY(name, cls, value, dx, dy, lo, hi) KERNEL_##cls(name, value)
#define TERNARY(name, cls, value, dx, dy, dw, lo, hi) KERNEL_##cls(name, value)
#include "rules/rules.def"

#define ROW_ARITH(name) [OP_##name] = {name##_block, {NULL, NULL, NULL}},
#define ROW_TEST(name) ROW_ARITH(name)
#define ROW_REAL(name)
const cot__block_kernels cot__blocks_i64[OP_elementwise_count] = {
#define UNARY(name, cls, ...) ROW_##cls(name)
#define BINARY(name, cls, ...) ROW_##cls(name)
#define TERNARY(name, cls, ...) ROW_##cls(name)
#include "rules/rules.def"
};
