/* choices.h: words that choose between numbers, in three forms with the same bits: with short cuts;
 * with VECTOR_WORDS without, so that loops over one of them become vector instructions; and with
 * STRAIGHT_WORDS as one choice after the other, for long loops: of some of these gcc makes no
 * vectors where truths are joined.
 *
 * A template without include guard; T and N(name) as in kernel_words.h. */

static inline T N(w_sign)(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }
static inline T N(w_square)(T x) { return x * x; }
#if defined(STRAIGHT_WORDS)
static inline T N(w_smul)(T a, T b) {
    T r = a * b, factor = a == 0 ? a : b, z = factor == 0 ? (T)0 : r;
    return r != r ? z : r;
}
static inline T N(w_sdiv)(T a, T b) {
    T r = a / b, z = a == 0 ? (T)0 : r;
    return r != r ? z : r;
}
static inline T N(w_maximum)(T a, T b) {
    T m = a > b ? a : b;
    return a != a ? a : m;
}
static inline T N(w_minimum)(T a, T b) {
    T m = a < b ? a : b;
    return a != a ? a : m;
}
#elif defined(VECTOR_WORDS)
static inline T N(w_smul)(T a, T b) {
    T r = a * b;
    return ((r != r) & ((a == 0) | (b == 0))) ? (T)0 : r;
}
static inline T N(w_sdiv)(T a, T b) {
    T r = a / b;
    return ((r != r) & (a == 0)) ? (T)0 : r;
}
static inline T N(w_maximum)(T a, T b) { return ((a > b) | (a != a)) ? a : b; }
static inline T N(w_minimum)(T a, T b) { return ((a < b) | (a != a)) ? a : b; }
#else
/* Strong zero: a zero wins over anything, also over inf and NaN. The plain result can be wrong only
 * where it is NaN. */
static inline T N(w_smul)(T a, T b) {
    T r = a * b;
    return UNLIKELY(r != r) && (a == 0 || b == 0) ? (T)0 : r;
}
static inline T N(w_sdiv)(T a, T b) {
    T r = a / b;
    return UNLIKELY(r != r) && a == 0 ? (T)0 : r;
}
static inline T N(w_maximum)(T a, T b) { return a > b || a != a ? a : b; }
static inline T N(w_minimum)(T a, T b) { return a < b || a != a ? a : b; }
#endif
