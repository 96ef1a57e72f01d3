/* The objectives over double: the yardstick that a derivative's time is divided by. */
#include "problems.h"

#include <math.h>

#define T         double
#define EXP       exp
#define LOG       log
#define SQRT      sqrt
#define SIN       sin
#define COS       cos
#define TANH      tanh
#define RE(x)     (x)
#define OBJECTIVE ab_objective
#include "objective.inc"
