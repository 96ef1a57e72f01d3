/* guarded.c: see guarded.h. */
#include "backend/guarded.h"

#include "backend/cpu/table/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory ---------------------------------------------------------------------------------- */

/* Blocks of powers of two in one range of addresses, which opens and shuts as a whole. The lists of
 * free blocks lie outside of the range. */
enum { SMALLEST = 6, CLASSES = 40 };
#define RANGE ((size_t)1 << 36)

typedef struct pile { void **block; size_t count, capacity; } pile;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char           *range;
static size_t          used;
static pile            spare[CLASSES];
static int             inside; /* number of calls under way */
static int64_t         calls;

static void protect(int how) {
    size_t bytes = (used + 4095) & ~(size_t)4095;
    if (bytes && mprotect(range, bytes, how) != 0) abort();
}

static void enter(void) {
    pthread_mutex_lock(&lock);
    calls++;
    if (inside++ == 0) protect(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&lock);
}

static void leave(void) {
    pthread_mutex_lock(&lock);
    if (--inside == 0) protect(PROT_NONE);
    pthread_mutex_unlock(&lock);
}

static int class_of(size_t bytes) {
    int k = SMALLEST;
    while (((size_t)1 << k) < bytes) k++;
    return k;
}

static void *fresh_block(size_t bytes) {
    if (!range) {
        range = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED) abort();
    }
    if (bytes > RANGE - used) return NULL;
    used += bytes;
    if (inside) protect(PROT_READ | PROT_WRITE);
    return range + used - bytes;
}

/* Memory of a device may run short, too: where the allocator would refuse so much, the backend
 * does. */
static void *take_block(const cot_allocator *al, size_t bytes) {
    void *asked = bytes > RANGE / 2 ? NULL : cot__alloc(al, bytes);
    if (!asked) return NULL;
    cot__free(al, asked, bytes);
    pthread_mutex_lock(&lock);
    int   k = class_of(bytes);
    pile *from = &spare[k];
    void *p = from->count ? from->block[--from->count] : fresh_block((size_t)1 << k);
    pthread_mutex_unlock(&lock);
    return p;
}

static void give_block(const cot_allocator *al, void *p, size_t bytes) {
    (void)al;
    pthread_mutex_lock(&lock);
    pile *to = &spare[class_of(bytes)];
    if (to->count == to->capacity) {
        to->capacity = to->capacity ? 2 * to->capacity : 64;
        to->block = realloc(to->block, to->capacity * sizeof *to->block);
        if (!to->block) abort();
    }
    to->block[to->count++] = p;
    pthread_mutex_unlock(&lock);
}

bool guarded_owns(const void *p) { return range && (const char *)p >= range && (const char *)p < range + RANGE; }

int64_t guarded_calls(void) { return calls; }

/* ---- is everything where it belongs? --------------------------------------------------------- */

/* A device could load neither operands nor results from the host, and the host no element: every
 * view and pointer of an entry is looked at, workspaces and status words too. */
static _Thread_local const char *entry;

static int refuse(const char *what) {
    fprintf(stderr, "guarded backend: %s was given %s\n", entry, what);
    abort();
}

static int in(const void *p) { return p && !guarded_owns(p) ? refuse("memory of the host") : 0; }
static int host_at(const void *p) { return guarded_owns(p) ? refuse("memory of its own as that of the host") : 0; }
static int at(const cot__view *v) { return v && cot__count(v->ndim, v->shape) > 0 ? in(v->data) : 0; }

static int runs_at(const cot__stage *work) {
    for (int r = 0; r < work->count; r++) {
        const cot__block_run *run = &work->run[r];
        for (int k = 0; k < run->n; k++)
            if (!cot__is_number_view(&run->x[k])) at(&run->x[k]);
        for (int k = 0; k < run->outputs; k++) at(&run->out[k].to);
    }
    for (int f = 0; f < work->folds; f++) {
        const cot__stage_rows *rows = work->fold[f].rows;
        for (int k = 0; rows && k < rows->job.n; k++)
            if (!(rows->job.numbers >> k & 1)) at(&rows->job.x[k]);
        at(rows ? &rows->job.z : &work->fold[f].z);
    }
    return 0;
}

static int recipe_at(const cot__recipe *r) {
    for (int k = 0; k < r->leaves; k++) in(r->leaf[k].data);
    return in(r->data);
}

/* The lists and values lie on the host. */
static int picks_at(const cot__picks *p) {
    for (int64_t k = p->first; k < p->first + p->n; k++) in(p->products[p->lane[k]]);
    return host_at(p->lane) + host_at(p->source) + host_at(p->entry) + host_at(p->values);
}

static int csr_at(const cot__compressed *a) { return in(a->start) + in(a->column) + in(a->order); }

static int attention_at(const cot__attention *a) {
    const cot__view *all[] = {&a->q, &a->k, &a->v, &a->mask, &a->bias, &a->z, &a->lse, &a->g, &a->dq, &a->dk, &a->dv};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (all[k]->data) at(all[k]);
    return 0;
}

/* ---- the table: every entry of the CPU's, with the memory open ------------------------------- */

#define DO(name, parameters, arguments, check)                                                                         \
    static void guarded_##name parameters {                                                                            \
        entry = #name;                                                                                                 \
        (void)(check);                                                                                                 \
        enter();                                                                                                       \
        cot__cpu_backend.name arguments;                                                                               \
        leave();                                                                                                       \
    }
#define GIVE(type, name, parameters, arguments, check)                                                                 \
    static type guarded_##name parameters {                                                                            \
        entry = #name;                                                                                                 \
        (void)(check);                                                                                                 \
        enter();                                                                                                       \
        type given = cot__cpu_backend.name arguments;                                                                  \
        leave();                                                                                                       \
        return given;                                                                                                  \
    }

DO(read, (const cot__view *v, int64_t first, int n, cot_dtype as, void *host), (v, first, n, as, host),
    at(v) + host_at(host))
DO(write, (const cot__view *v, int64_t first, int n, cot_dtype as, const void *host), (v, first, n, as, host),
    at(v) + host_at(host))
DO(copy_in, (const cot__view *dst, const cot__view *host), (dst, host),
    at(dst) + host_at(host->data))
DO(copy_out, (const cot__view *host, const cot__view *src), (host, src),
    host_at(host->data) + at(src))
DO(copy, (const cot__view *dst, const cot__view *src), (dst, src),
    at(dst) + at(src))
DO(fill, (const cot__view *v, double value), (v, value),
    at(v))
DO(elementwise, (cot__stage *work), (work),
    runs_at(work))
DO(make, (const cot__recipe *r), (r),
    recipe_at(r))
DO(reduce, (cot__reduction what, const cot__view *x, uint32_t axes, const cot__view *z), (what, x, axes, z),
    at(x) + at(z))
GIVE(bool, reduce_made, (cot__reduction what, const cot__view *x, const cot__recipe *made, uint32_t axes,
    const cot__view *z),
    (what, x, made, axes, z),
    recipe_at(made) + at(z))
DO(mean_squares, (const cot__view *x, const cot__view *y, const cot__view *z), (x, y, z),
    at(x) + at(y) + at(z))
DO(mean_labelled, (const cot__view *p, const cot__view *labels, bool logarithm, const cot__view *z),
    (p, labels, logarithm, z),
    at(p) + at(labels) + at(z))
DO(mean_weighted, (const cot__view *p, const cot__view *q, bool logarithm, const cot__view *z), (p, q, logarithm, z),
    at(p) + at(q) + at(z))
DO(softmax, (const cot__view *x, int axis, bool logarithm, const cot__view *z), (x, axis, logarithm, z),
    at(x) + at(z))
DO(cumsum, (const cot__view *x, int axis, bool reverse, const cot__view *z), (x, axis, reverse, z),
    at(x) + at(z))
DO(recurrence, (const cot__view *a, const cot__view *b, int axis, bool reverse, bool strong, const cot__view *z),
    (a, b, axis, reverse, strong, z),
    at(a) + at(b) + at(z))
DO(cumargmax, (const cot__view *x, int axis, bool smallest, const cot__view *z), (x, axis, smallest, z),
    at(x) + at(z))
GIVE(size_t, matmul_workspace, (const cot__view *a, const cot__view *b, int64_t m, int64_t n), (a, b, m, n),
    0)
DO(matmul, (const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch),
    (a, b, c, m, n, scratch),
    at(a) + at(b) + in(scratch) + (m > 0 && n > 0 ? in(c) : 0))
DO(csr_matmul, (const cot__compressed *a, const cot__view *values, const cot__view *x, const cot__view *z),
    (a, values, x, z),
    csr_at(a) + at(values) + at(x) + at(z))
DO(csr_sddmm, (const cot__compressed *a, const cot__view *x, const cot__view *y, const cot__view *values),
    (a, x, y, values),
    csr_at(a) + at(x) + at(y) + at(values))
DO(csr_softmax, (const cot__compressed *a, const cot__view *values, const cot__view *z), (a, values, z),
    csr_at(a) + at(values) + at(z))
DO(bad_position, (const cot__view *index, int64_t extent, bool wrap, int64_t *status), (index, extent, wrap, status),
    at(index) + in(status))
DO(take, (const cot__view *x, int axis, const cot__view *index, const cot__view *z), (x, axis, index, z),
    at(x) + at(index) + at(z))
DO(scatter_add, (const cot__view *x, int axis, const cot__view *index, const cot__view *u), (x, axis, index, u),
    at(x) + at(index) + at(u))
DO(take_along, (const cot__view *x, int axis, const cot__view *index, const cot__view *z), (x, axis, index, z),
    at(x) + at(index) + at(z))
DO(scatter_add_along, (const cot__view *x, int axis, const cot__view *index, const cot__view *u),
    (x, axis, index, u),
    at(x) + at(index) + at(u))
DO(ravel_index, (const cot__view *index, int d, const int64_t *extent, const cot__view *places),
    (index, d, extent, places),
    at(index) + at(places))
DO(last_writer, (const cot__view *index, const cot__view *writers), (index, writers),
    at(index) + at(writers))
DO(nonzero, (const cot__view *mask, const cot__view *places, int64_t *status), (mask, places, status),
    at(mask) + at(places) + in(status))
DO(one_hot, (const cot__view *index, const cot__view *z), (index, z),
    at(index) + at(z))
DO(equal_to, (const int32_t *which, int32_t value, const cot__view *z), (which, value, z),
    host_at(which) + at(z))
DO(pick, (const cot__picks *p), (p),
    picks_at(p))
GIVE(int64_t, argsort_workspace, (const cot__view *x, int axis, int64_t k), (x, axis, k),
    0)
DO(argsort, (const cot__view *x, int axis, bool descending, const cot__view *z, void *scratch),
    (x, axis, descending, z, scratch),
    at(x) + at(z) + in(scratch))
DO(searchsorted, (const cot__view *sorted, const cot__view *v, bool right, const cot__view *z), (sorted, v, right, z),
    at(sorted) + at(v) + at(z))
DO(first_descent, (const cot__view *x, int64_t *status), (x, status),
    at(x) + in(status))
DO(draw, (cot__draw_kind kind, cot_key key, const cot__view *z, double low, double high), (kind, key, z, low, high),
    at(z))
DO(permutation, (cot_key key, const cot__view *z), (key, z),
    at(z))
DO(normalize, (const cot__rows *r, const void *x, const void *weight, const void *bias, void *z),
    (r, x, weight, bias, z),
    in(x) + in(weight) + in(bias) + in(r->stats) + in(z))
DO(normalize_back, (const cot__rows *r, const void *x, const void *weight, const void *g, void *z),
    (r, x, weight, g, z),
    in(x) + in(weight) + in(g) + in(r->stats) + in(z))
GIVE(int64_t, normalize_workspace, (const cot__rows *r), (r),
    0)
DO(normalize_weights, (const cot__rows *r, const void *x, const void *g, void *scratch, void *z),
    (r, x, g, scratch, z),
    in(x) + in(g) + in(r->stats) + in(scratch) + in(z))
GIVE(int64_t, attention_workspace, (const cot__attention *a, bool backward), (a, backward),
    0)
DO(attention_forward, (const cot__attention *a, void *memory), (a, memory),
    attention_at(a) + in(memory))
DO(attention_backward, (const cot__attention *a, void *memory), (a, memory),
    attention_at(a) + in(memory))
GIVE(int64_t, conv_workspace, (const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
    const cot__view *result),
    (g, pass, a, b, result),
    0)
DO(conv, (const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b, const cot__view *result,
    void *memory),
    (g, pass, a, b, result, memory),
    at(a) + at(b) + at(result) + in(memory))
DO(max_pool, (const cot__pool *g, cot_dtype dtype, const void *x, void *z, int32_t *index), (g, dtype, x, z, index),
    in(x) + in(z) + in(index))
DO(pool_take, (const cot__pool *g, int size, const void *x, const int32_t *index, void *z), (g, size, x, index, z),
    in(x) + in(index) + in(z))
DO(pool_put, (const cot__pool *g, cot_dtype dtype, const void *z, const int32_t *index, void *x),
    (g, dtype, z, index, x),
    in(z) + in(index) + in(x))
DO(avg_pool, (const cot__pool *g, cot_dtype dtype, bool exclude, const void *x, void *z), (g, dtype, exclude, x, z),
    in(x) + in(z))
DO(avg_unpool, (const cot__pool *g, cot_dtype dtype, bool exclude, const void *z, void *x),
    (g, dtype, exclude, z, x),
    in(z) + in(x))
DO(update, (const cot__update *p), (p),
    in(p->w) + in(p->g) + in(p->state[0]) + in(p->state[1]) + in(p->state[2]) + in(p->state[3]))
GIVE(int64_t, fft_workspace, (const cot__fft_job *job, const cot__view *x), (job, x),
    0)
DO(fft, (const cot__fft_job *job, const cot__view *x, const cot__view *z, void *scratch), (job, x, z, scratch),
    at(x) + at(z) + in(scratch))
GIVE(int64_t, lu_workspace, (const cot__view *a), (a),
    0)
DO(lu, (const cot__view *a, const cot__view *permutation, void *scratch), (a, permutation, scratch),
    at(a) + at(permutation) + in(scratch))
GIVE(int64_t, lu_solve_workspace, (const cot__view *factors, const cot__view *b), (factors, b),
    0)
DO(lu_solve, (const cot__view *factors, const cot__view *permutation, const cot__view *b, bool transposed,
    const cot__view *z, void *scratch, int64_t *status),
    (factors, permutation, b, transposed, z, scratch, status),
    at(factors) + at(permutation) + at(b) + at(z) + in(scratch) + in(status))
DO(lu_det, (const cot__view *factors, const cot__view *permutation, bool logarithm, const cot__view *z),
    (factors, permutation, logarithm, z),
    at(factors) + at(permutation) + at(z))
DO(lu_sign, (const cot__view *factors, const cot__view *permutation, const cot__view *z), (factors, permutation, z),
    at(factors) + at(permutation) + at(z))
DO(lu_split, (const cot__view *factors, const cot__view *l, const cot__view *u), (factors, l, u),
    at(factors) + at(l) + at(u))
GIVE(int64_t, triangular_workspace, (const cot__view *a, const cot__view *b), (a, b),
    0)
DO(triangular, (const cot__view *a, int flags, const cot__view *b, void *scratch, int64_t *status),
    (a, flags, b, scratch, status),
    at(a) + at(b) + in(scratch) + in(status))
GIVE(int64_t, cholesky_workspace, (const cot__view *a), (a),
    0)
DO(cholesky, (const cot__view *a, void *scratch, int64_t *status), (a, scratch, status),
    at(a) + in(scratch) + in(status))
GIVE(int64_t, qr_workspace, (const cot__view *a), (a),
    0)
DO(qr, (const cot__view *a, const cot__view *q, const cot__view *r, void *scratch), (a, q, r, scratch),
    at(a) + at(q) + at(r) + in(scratch))
GIVE(int64_t, eigh_workspace, (const cot__view *a), (a),
    0)
DO(eigh, (const cot__view *a, const cot__view *v, const cot__view *w, void *scratch, int64_t *status),
    (a, v, w, scratch, status),
    at(a) + at(v) + at(w) + in(scratch) + in(status))
GIVE(int64_t, svd_workspace, (const cot__view *a), (a),
    0)
DO(svd, (const cot__view *a, const cot__view *u, const cot__view *s, const cot__view *vt, void *scratch,
    int64_t *status),
    (a, u, s, vt, scratch, status),
    at(a) + at(u) + at(s) + at(vt) + in(scratch) + in(status))
DO(sync, (void), (),
    0)

/* The product of `fast`. */
static size_t guarded_fast_workspace(const cot__view *a, const cot__view *b, int64_t m, int64_t n) {
    return cot__cpu_backend.fast->matmul_workspace(a, b, m, n);
}
static void guarded_fast_matmul(const cot__view *a, const cot__view *b, void *c, int64_t m, int64_t n, void *scratch) {
    entry = "matmul of fast";
    (void)(at(a) + at(b) + in(scratch) + (m > 0 && n > 0 ? in(c) : 0));
    enter();
    cot__cpu_backend.fast->matmul(a, b, c, m, n, scratch);
    leave();
}

/* All entries but the product. */
#define ENTRIES                                                                                                        \
    .scalars_in_nodes = false, .alloc = take_block, .free = give_block,                                                \
    .sync = guarded_sync, .read = guarded_read, .write = guarded_write, .copy_in = guarded_copy_in,                    \
    .copy_out = guarded_copy_out, .copy = guarded_copy, .fill = guarded_fill,                                          \
    .elementwise = guarded_elementwise, .make = guarded_make, .reduce = guarded_reduce,                                \
    .reduce_made = guarded_reduce_made, .mean_squares = guarded_mean_squares,                                          \
    .mean_labelled = guarded_mean_labelled, .mean_weighted = guarded_mean_weighted, .softmax = guarded_softmax,        \
    .cumsum = guarded_cumsum, .recurrence = guarded_recurrence, .cumargmax = guarded_cumargmax,                        \
    .csr_matmul = guarded_csr_matmul, .csr_sddmm = guarded_csr_sddmm, .csr_softmax = guarded_csr_softmax,              \
    .bad_position = guarded_bad_position, .take = guarded_take, .scatter_add = guarded_scatter_add,                    \
    .take_along = guarded_take_along, .scatter_add_along = guarded_scatter_add_along,                                  \
    .ravel_index = guarded_ravel_index, .last_writer = guarded_last_writer, .nonzero = guarded_nonzero,                \
    .one_hot = guarded_one_hot, .equal_to = guarded_equal_to, .pick = guarded_pick,                                    \
    .argsort_workspace = guarded_argsort_workspace, .argsort = guarded_argsort,                                        \
    .searchsorted = guarded_searchsorted, .first_descent = guarded_first_descent, .draw = guarded_draw,                \
    .permutation = guarded_permutation, .normalize = guarded_normalize,                                                \
    .normalize_back = guarded_normalize_back, .normalize_workspace = guarded_normalize_workspace,                      \
    .normalize_weights = guarded_normalize_weights, .attention_workspace = guarded_attention_workspace,                \
    .attention_forward = guarded_attention_forward, .attention_backward = guarded_attention_backward,                  \
    .conv_workspace = guarded_conv_workspace, .conv = guarded_conv, .max_pool = guarded_max_pool,                      \
    .pool_take = guarded_pool_take, .pool_put = guarded_pool_put, .avg_pool = guarded_avg_pool,                        \
    .avg_unpool = guarded_avg_unpool, .update = guarded_update, .fft_workspace = guarded_fft_workspace,                \
    .fft = guarded_fft, .lu_workspace = guarded_lu_workspace, .lu = guarded_lu,                                        \
    .lu_solve_workspace = guarded_lu_solve_workspace, .lu_solve = guarded_lu_solve, .lu_det = guarded_lu_det,          \
    .lu_sign = guarded_lu_sign, .lu_split = guarded_lu_split,                                                          \
    .triangular_workspace = guarded_triangular_workspace, .triangular = guarded_triangular,                            \
    .cholesky_workspace = guarded_cholesky_workspace, .cholesky = guarded_cholesky,                                    \
    .qr_workspace = guarded_qr_workspace, .qr = guarded_qr, .eigh_workspace = guarded_eigh_workspace,                  \
    .eigh = guarded_eigh, .svd_workspace = guarded_svd_workspace, .svd = guarded_svd

static const cot__backend fast_backend = {
    .name = "guarded", .matmul_workspace = guarded_fast_workspace, .matmul = guarded_fast_matmul, ENTRIES};

/* 0-d values are arrays of rank 0. */
const cot__backend guarded_backend = {
    .name = "guarded", .fast = &fast_backend, .matmul_workspace = guarded_matmul_workspace, .matmul = guarded_matmul,
    ENTRIES};
