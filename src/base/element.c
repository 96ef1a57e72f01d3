/* element.c: single values of any dtype that lie on the host, in nodes or in the caller's
 * memory. */
#include "base/element.h"

#include "base/convert.h"

double cot__load_f64(const void *p, cot_dtype d) {
    switch (d) {
#define CASE(FROM) case COT_##FROM: return WRITE_F64(READ_##FROM(*(const stored_##FROM *)p));
        EACH_DTYPE(CASE)
#undef CASE
    case COT_DTYPE_COUNT: break;
    }
    return 0;
}

int64_t cot__load_i64(const void *p, cot_dtype d) {
    switch (d) {
#define CASE(FROM) case COT_##FROM: return WRITE_I64(READ_##FROM(*(const stored_##FROM *)p));
        EACH_DTYPE(CASE)
#undef CASE
    case COT_DTYPE_COUNT: break;
    }
    return 0;
}

void cot__store_f64(void *p, cot_dtype d, double v) {
    switch (d) {
#define CASE(TO) case COT_##TO: *(stored_##TO *)p = WRITE_##TO(v); break;
        EACH_DTYPE(CASE)
#undef CASE
    case COT_DTYPE_COUNT: break;
    }
}

void cot__store_i64(void *p, cot_dtype d, int64_t v) {
    switch (d) {
#define CASE(TO) case COT_##TO: *(stored_##TO *)p = WRITE_##TO(v); break;
        EACH_DTYPE(CASE)
#undef CASE
    case COT_DTYPE_COUNT: break;
    }
}
