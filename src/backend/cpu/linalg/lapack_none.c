/* lapack_none.c: there is no LAPACK. It stands in for lapack.c where nothing is loaded at run
 * time: in the static library, in WebAssembly, and everywhere with COT_LAPACK_AT_RUN_TIME=OFF. */
#include "backend/cpu/linalg/lin.h"

bool cot__lapack_use(const char *library) { (void)library; return false; }
bool cot__lapack_takes(int64_t m, int64_t n) { (void)m, (void)n; return false; }

/* Never called: cot__lapack_takes says no. */
double cot__lapack_eigh_work(cot_dtype d, int64_t n) { (void)d, (void)n; return 0; }
double cot__lapack_svd_work(cot_dtype d, int64_t m, int64_t n) { (void)d, (void)m, (void)n; return 0; }
bool   cot__lapack_eigh(cot_dtype d, int64_t n, void *a, void *w, void *work) {
    (void)d, (void)n, (void)a, (void)w, (void)work;
    return false;
}
bool cot__lapack_svd(cot_dtype d, int64_t m, int64_t n, void *a, void *u, void *s, void *vt, void *work) {
    (void)d, (void)m, (void)n, (void)a, (void)u, (void)s, (void)vt, (void)work;
    return false;
}
