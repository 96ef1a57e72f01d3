/* lapack_none.c: there is no LAPACK. It stands in for lapack.c where nothing is loaded at run
 * time: in the static library, in WebAssembly, and everywhere with COT_LAPACK_AT_RUN_TIME=OFF. */
#include "backend/cpu/linalg/lin.h"

bool cot__lapack_use(const char *library) { (void)library; return false; }
bool cot__lapack_takes(int64_t m, int64_t n) { (void)m, (void)n; return false; }

/* Never called: cot__lapack_takes says no. */
int cot__lapack_eigh(const cot_allocator *al, cot_dtype d, int64_t size, void *a, void *w) {
    (void)al, (void)d, (void)size, (void)a, (void)w;
    return -1;
}
int cot__lapack_svd(const cot_allocator *al, cot_dtype d, int64_t rows, int64_t columns, void *a, void *u, void *s,
                    void *vt) {
    (void)al, (void)d, (void)rows, (void)columns, (void)a, (void)u, (void)s, (void)vt;
    return -1;
}
