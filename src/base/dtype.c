/* dtype.c: the facts about each dtype: its size, its name, its class, and how two of them promote.
 *
 * Everything is a constant table indexed by the enum, in the enum's order. Conversions of values
 * are in convert.h. */
#include "base/base.h"

const cot__dtype_info cot__dtype_table[COT_DTYPE_COUNT] = {
    [COT_F64]  = {"f64", 8, true, COT_F64},
    [COT_F32]  = {"f32", 4, true, COT_F32},
    [COT_BF16] = {"bf16", 2, true, COT_F32},
    [COT_F16]  = {"f16", 2, true, COT_F32},
    [COT_I64]  = {"i64", 8, false, COT_I64},
    [COT_I32]  = {"i32", 4, false, COT_I64},
    [COT_U8]   = {"u8", 1, false, COT_I64},
    [COT_BOOL] = {"bool", 1, false, COT_I64},
};

/* Short names keep the promotion table a table. */
enum { D = COT_F64, S = COT_F32, B = COT_BF16, H = COT_F16, L = COT_I64, I = COT_I32, U = COT_U8, T = COT_BOOL };

/* A float absorbs every integer; the two half formats meet in f32, the smallest type that holds
 * both. */
static const unsigned char promotion[COT_DTYPE_COUNT][COT_DTYPE_COUNT] = {
    /*             f64 f32 bf16 f16 i64 i32 u8 bool */
    [COT_F64]  = {  D,  D,  D,  D,  D,  D,  D,  D },
    [COT_F32]  = {  D,  S,  S,  S,  S,  S,  S,  S },
    [COT_BF16] = {  D,  S,  B,  S,  B,  B,  B,  B },
    [COT_F16]  = {  D,  S,  S,  H,  H,  H,  H,  H },
    [COT_I64]  = {  D,  S,  B,  H,  L,  L,  L,  L },
    [COT_I32]  = {  D,  S,  B,  H,  L,  I,  I,  I },
    [COT_U8]   = {  D,  S,  B,  H,  L,  I,  U,  U },
    [COT_BOOL] = {  D,  S,  B,  H,  L,  I,  U,  T },
};

cot_dtype cot__dtype_promote(cot_dtype a, cot_dtype b) { return (cot_dtype)promotion[a][b]; }
