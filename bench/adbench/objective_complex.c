/* The objectives over double complex: for derivatives by complex step, an independent check. */
#include "problems.h"

#define T         double complex
#define EXP       cexp
#define LOG       clog
#define SQRT      csqrt
#define SIN       csin
#define COS       ccos
#define TANH      ctanh
#define RE(x)     creal(x)
#define OBJECTIVE ab_objective_complex
#include "objective.inc"
