/* vexp_neon.c: see vexp.inc. */
#if defined(__aarch64__)
#define N(name) name##_neon
#include "backend/cpu/reduce/vexp.inc"
#else
typedef int cot__not_neon_vexp;
#endif
