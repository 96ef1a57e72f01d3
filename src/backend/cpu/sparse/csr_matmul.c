/* csr_matmul.c: a sparse matrix in compressed rows times dense ones.
 *
 * Rows are independent, and each element of the result is one chain over the entries of its row
 * (csr_template.h), so they are shared out to threads by how many entries they have, and bits stay.
 * Nothing of a pattern is believed: starts are brought within the entries, and columns that there
 * are not are passed over. */
#include "backend/cpu/fused.h"
#include "backend/cpu/sparse/csr.h"
#include "backend/cpu/split.h"

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define AVX512 "avx512f"
#else
#define UNROLL _Pragma("GCC unroll 8")
#define AVX512 "avx512f,prefer-vector-width=512"
#endif

enum {
    MOST  = 64, /* entries of a row that are looked up at a time */
    TILES = 4,  /* vectors of 64 bytes that are summed side by side */
};

/* One matrix of a batch. */
typedef struct product {
    const cot__compressed *a;
    const void     *v, *x;
    void           *z;
    int64_t         k, row;           /* columns of x and z; elements from row to row of x */
    uint32_t        columns, entries; /* how many rows x has; how many values there are */
} product;

static int64_t within(int64_t at, int64_t low, int64_t high) { return at < low ? low : at > high ? high : at; }
static int64_t start_of(const cot__compressed *a, int64_t i) { return within(a->start[i], 0, a->entries); }
static int64_t end_of(const cot__compressed *a, int64_t i, int64_t start) {
    return within(a->start[i + 1], start, a->entries);
}

#define T float
#define N(name) name##_f32
#define TARGET COT__BASELINE
#include "backend/cpu/sparse/csr_template.h"
#define T double
#define N(name) name##_f64
#define TARGET COT__BASELINE
#include "backend/cpu/sparse/csr_template.h"

#if defined(__x86_64__)
#define T float
#define N(name) name##_f32_avx2
#define TARGET __attribute__((target("avx2")))
#include "backend/cpu/sparse/csr_template.h"
#define T double
#define N(name) name##_f64_avx2
#define TARGET __attribute__((target("avx2")))
#include "backend/cpu/sparse/csr_template.h"
#define T float
#define N(name) name##_f32_avx512
#define TARGET __attribute__((target(AVX512)))
#include "backend/cpu/sparse/csr_template.h"
#define T double
#define N(name) name##_f64_avx512
#define TARGET __attribute__((target(AVX512)))
#include "backend/cpu/sparse/csr_template.h"
#endif

typedef void rows_fn(const product *p, int64_t from, int64_t to);

/* How rows of k columns are made. */
enum { ANY, COLUMN, ONE_VECTOR, TWO_VECTORS, WAYS };

static rows_fn *rows_of(cot_dtype d, int64_t k) {
#define WAYS_OF(suffix) {product_##suffix, column_##suffix, one_vector_##suffix, two_vectors_##suffix}
    static rows_fn *const rows[][2][WAYS] = {
        {WAYS_OF(f64), WAYS_OF(f32)},
#if defined(__x86_64__)
        {WAYS_OF(f64_avx2), WAYS_OF(f32_avx2)},
        {WAYS_OF(f64_avx512), WAYS_OF(f32_avx512)},
#endif
    };
#undef WAYS_OF
    int64_t wide = 64 / cot__dtype_size(d);
    int     way = k == 1 ? COLUMN : k == wide ? ONE_VECTOR : k == 2 * wide ? TWO_VECTORS : ANY;
    return rows[COUNTOF(rows) > 1 ? cot__cpu_isa() : 0][d == COT_F32][way];
}

/* A batch of products, cut into parts of about as many entries each. */
typedef struct products {
    rows_fn         *rows;
    const cot__compressed  *a;
    const cot__view *v, *x, *z;
    int64_t          parts; /* of one matrix */
} products;

/* The first row before which there are `share` entries and rows. What begins later ends later,
 * whatever the starts are: every row is in one part. */
static int64_t row_at(const cot__compressed *a, int64_t share) {
    int64_t low = 0, high = a->rows;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (a->start[mid] + mid < share) low = mid + 1;
        else high = mid;
    }
    return low;
}

static void some_rows(void *ctx, int64_t part) {
    const products *q = ctx;
    const cot__compressed *a = q->a;
    int64_t         b = part / q->parts, at = part % q->parts, all = a->entries + a->rows;
    product         p = {.a       = a,
                         .v       = cot__csr_at(q->v, 1, b),
                         .x       = cot__csr_at(q->x, 2, b),
                         .z       = cot__csr_at(q->z, 2, b),
                         .k       = q->z->shape[q->z->ndim - 1],
                         .row     = q->x->stride[q->x->ndim - 2],
                         .columns = (uint32_t)q->x->shape[q->x->ndim - 2],
                         .entries = (uint32_t)a->entries};
    int64_t from = at == 0 ? 0 : row_at(a, cot__part_start(all, q->parts, at)),
            to = at + 1 == q->parts ? a->rows : row_at(a, cot__part_start(all, q->parts, at + 1));
    q->rows(&p, from, to);
}

void cot__csr_matmul(const cot__compressed *a, const cot__view *values, const cot__view *x, const cot__view *z) {
    int64_t k = z->shape[z->ndim - 1], count = cot__count(z->ndim - 2, z->shape);
    if (cot__count(z->ndim, z->shape) == 0) return;
    products q = {rows_of(z->dtype, k), a, values, x, z, 1};
    q.parts = cot__parts(a->entries + a->rows, k < 4 ? 4 : k, COT__MOST_PARTS);
    cot__parallel(count * q.parts, some_rows, &q);
}
