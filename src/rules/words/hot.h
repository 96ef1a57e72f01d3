/* hot.h: HOT(name) is 1 for the elementwise operations of which programs on scalars consist, and
 * for those of which their recorded derivatives consist (smul, sdiv); else 0. Their partials are
 * inlined in the scalar sweeps, and their recording is built for speed. For most of the others a
 * call or two more is little beside their own cost. */
#ifndef COT_HOT_H
#define COT_HOT_H

#define SECOND_OF(a, b, ...) b
#define SECOND(...) SECOND_OF(__VA_ARGS__)
#define HOT(name) SECOND(HOT_##name 1, 0, 0)
#define HOT_neg ,
#define HOT_abs ,
#define HOT_sqrt ,
#define HOT_rsqrt ,
#define HOT_square ,
#define HOT_reciprocal ,
#define HOT_exp ,
#define HOT_log ,
#define HOT_sin ,
#define HOT_cos ,
#define HOT_tanh ,
#define HOT_sigmoid ,
#define HOT_relu ,
#define HOT_add ,
#define HOT_sub ,
#define HOT_mul ,
#define HOT_div ,
#define HOT_smul ,
#define HOT_sdiv ,
#define HOT_maximum ,
#define HOT_minimum ,
#define HOT_where ,
#define HOT_fma ,

#endif
