/* vexp_avx2.c: see vexp.inc. */
#if defined(__x86_64__)
#define N(name) name##_avx2
#include "backend/cpu/reduce/vexp.inc"
#else
typedef int cot__not_avx2_vexp;
#endif
