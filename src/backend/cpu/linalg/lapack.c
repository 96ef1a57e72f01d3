/* lapack.c: eigenvalues and singular values by a LAPACK of the user's choice, loaded at run time.
 *
 * This happens only when the environment asks for it: COTANGENT_LAPACK=liblapack.so.3 (or a path).
 * Without it our own kernels do everything, for two reasons. A LAPACK may split its work by a
 * number of threads that the host program sets, and then its results depend on that number. And
 * some builds (the serial OpenBLAS of Debian) give wrong results when two threads call them at
 * once; no lock of ours protects a host that calls the same library itself. A user who sets the
 * variable knows the library. Our own calls take turns.
 *
 * The shared library has this file, and so has the command. In the static library, and everywhere
 * with COT_LAPACK_AT_RUN_TIME=OFF, lapack_none.c replaces it: a program that is linked -static
 * could load a library only beside the very glibc that it was linked with, and the linker warns
 * about that.
 *
 * Integers of the library are taken to be 32 bits wide (LP64), so larger matrices stay with our
 * kernels. */
#define _GNU_SOURCE
#include "backend/cpu/linalg/lin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

enum { LARGEST = 20000 }; /* the lengths of work arrays, 2 n² and 4 n², fit 32 bits */

typedef void eigh_fn(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w, void *work,
                     const int *lwork, int *iwork, const int *liwork, int *info, size_t, size_t);
typedef void svd_fn(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s, void *u,
                    const int *ldu, void *vt, const int *ldvt, void *work, const int *lwork, int *iwork, int *info,
                    size_t);

static struct lapack {
    pthread_mutex_t turn;
    pthread_once_t  once;
    void           *handle;
    eigh_fn        *eigh[2]; /* f64, f32 */
    svd_fn         *svd[2];
} lapack = {.turn = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ISO C has no cast from an object pointer to a function; POSIX promises that the bits are the
 * same. */
static void find(void *handle, const char *name, void *function) {
    void *symbol = dlsym(handle, name);
    memcpy(function, &symbol, sizeof symbol);
}

bool cot__lapack_use(const char *library) {
    void *handle = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (handle) {
        find(handle, "dsyevd_", &lapack.eigh[0]);
        find(handle, "ssyevd_", &lapack.eigh[1]);
        find(handle, "dgesdd_", &lapack.svd[0]);
        find(handle, "sgesdd_", &lapack.svd[1]);
        if (!lapack.eigh[0] || !lapack.eigh[1] || !lapack.svd[0] || !lapack.svd[1]) {
            dlclose(handle);
            handle = NULL;
        }
    }
    /* a library that was used before stays loaded, because another thread may be inside */
    lapack.handle = handle;
    return handle != NULL;
}

static void look(void) {
    const char *library = getenv("COTANGENT_LAPACK");
    if (library && *library) cot__lapack_use(library);
}

bool cot__lapack_takes(int64_t m, int64_t n) {
    if (m <= COT__LIN_BASE || m > LARGEST || n > LARGEST) return false;
    pthread_once(&lapack.once, look);
    return lapack.handle != NULL;
}

/* A length that a query wrote as a floating-point number. */
static int length_of(cot_dtype d, const void *p) { return (int)cot__load_f64(p, d) + 16; }

/* What the library wants for work: numbers of elements, which we take as 8 bytes each, and of
 * integers. 0: it does not say. In turn. */
static int ask_eigh(cot_dtype d, int n, int *integers) {
    int    ask = -1, info = 0;
    double query = 0;
    lapack.eigh[d == COT_F32]("V", "L", &n, NULL, &n, NULL, &query, &ask, integers, &ask, &info, 1, 1);
    return info == 0 ? length_of(d, &query) : 0;
}

static int ask_svd(cot_dtype d, int m, int n, int k) {
    int    ask = -1, info = 0;
    double query = 0;
    lapack.svd[d == COT_F32]("S", &m, &n, NULL, &m, NULL, NULL, &m, NULL, &k, &query, &ask, NULL, &info, 1);
    return info == 0 ? length_of(d, &query) : 0;
}

double cot__lapack_eigh_work(cot_dtype d, int64_t n) {
    int integers = 0;
    pthread_mutex_lock(&lapack.turn);
    int elements = ask_eigh(d, (int)n, &integers);
    pthread_mutex_unlock(&lapack.turn);
    return 8.0 * elements + (double)sizeof(int) * integers;
}

bool cot__lapack_eigh(cot_dtype d, int64_t size, void *a, void *w, void *work) {
    int n = (int)size, info = 1, integers = 0;
    pthread_mutex_lock(&lapack.turn);
    int elements = ask_eigh(d, n, &integers);
    if (elements > 0)
        lapack.eigh[d == COT_F32]("V", "L", &n, a, &n, w, work, &elements,
                                  (int *)(void *)((char *)work + (size_t)elements * 8), &integers, &info, 1, 1);
    pthread_mutex_unlock(&lapack.turn);
    return info == 0;
}

/* Our row-major matrix is a transpose for LAPACK: aᵀ = v s uᵀ, whose factors then lie as we need
 * them. */
double cot__lapack_svd_work(cot_dtype d, int64_t rows, int64_t columns) {
    int k = (int)(rows < columns ? rows : columns);
    pthread_mutex_lock(&lapack.turn);
    int elements = ask_svd(d, (int)columns, (int)rows, k);
    pthread_mutex_unlock(&lapack.turn);
    return 8.0 * elements + 8.0 * k * (double)sizeof(int);
}

bool cot__lapack_svd(cot_dtype d, int64_t rows, int64_t columns, void *a, void *u, void *s, void *vt, void *work) {
    int m = (int)columns, n = (int)rows, k = m < n ? m : n, info = 1;
    pthread_mutex_lock(&lapack.turn);
    int elements = ask_svd(d, m, n, k);
    if (elements > 0)
        lapack.svd[d == COT_F32]("S", &m, &n, a, &m, s, vt, &m, u, &k, work, &elements,
                                 (int *)(void *)((char *)work + (size_t)elements * 8), &info, 1);
    pthread_mutex_unlock(&lapack.turn);
    return info == 0;
}
