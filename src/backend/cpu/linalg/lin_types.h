/* lin_types.h: includes LIN_TEMPLATE twice, for double and for float. */
#define T double
#define N(name) name##_f64
#define D COT_F64
#define SQRT sqrt
#define FABS fabs
#define EPSILON 0x1p-52
#include LIN_TEMPLATE
#undef T
#undef N
#undef D
#undef SQRT
#undef FABS
#undef EPSILON

#define T float
#define N(name) name##_f32
#define D COT_F32
#define SQRT sqrtf
#define FABS fabsf
#define EPSILON 0x1p-23f
#include LIN_TEMPLATE
#undef T
#undef N
#undef D
#undef SQRT
#undef FABS
#undef EPSILON
