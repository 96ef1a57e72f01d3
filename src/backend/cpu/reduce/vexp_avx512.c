/* vexp_avx512.c: see vexp.inc. */
#if defined(__x86_64__)
#define N(name) name##_avx512
#include "backend/cpu/reduce/vexp.inc"
#else
typedef int cot__not_avx512_vexp;
#endif
