/* test_csr_kernels.c: products of sparse matrices by the CPU have the bits of the chain that
 * docs/bits.md gives, for legal patterns and for those that a file might claim, of which nothing is
 * believed. */
#include "backend/kernel_test.h"

#include "backend/cpu/sparse/csr.h"

enum { ROWS = 300, COLUMNS = 40, MOST_ENTRIES = 3000, WIDTHS = 17 };

typedef struct pattern { int32_t start[ROWS + 1], column[MOST_ENTRIES], order[MOST_ENTRIES]; } pattern;

static cot__compressed some_pattern(pattern *p, bool ordered) {
    int32_t n = 0;
    for (int i = 0; i < ROWS; i++) {
        p->start[i] = n;
        for (int64_t k = below(10); k > 0; k--) p->column[n] = (int32_t)below(COLUMNS), p->order[n] = n, n++;
    }
    p->start[ROWS] = n;
    for (int32_t k = n - 1; k > 0; k--) {
        int64_t other = below((int)k + 1);
        int32_t swap = p->order[k];
        p->order[k] = p->order[other], p->order[other] = swap;
    }
    return (cot__compressed){ROWS, n, p->start, p->column, ordered ? p->order : NULL};
}

static int64_t within(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }

/* One element: a chain from 0 over the entries that there are. */
#define CHAIN(T, NAME)                                                                                                 \
    static T NAME(const cot__compressed *a, const T *v, const T *x, int64_t k, int64_t i, int64_t j) {                 \
        volatile T sum = 0, product; /* each is rounded by itself */                                                   \
        int64_t    from = within(a->start[i], 0, a->entries), to = within(a->start[i + 1], from, a->entries);          \
        for (int64_t e = from; e < to; e++) {                                                                          \
            int64_t o = a->order ? a->order[e] : e;                                                                    \
            if (a->column[e] < 0 || a->column[e] >= COLUMNS || o < 0 || o >= a->entries) continue;                     \
            product = v[o] * x[a->column[e] * k + j];                                                                  \
            sum = sum + product;                                                                                       \
        }                                                                                                              \
        return sum;                                                                                                    \
    }
CHAIN(double, chain_f64)
CHAIN(float, chain_f32)

static void check(const cot__compressed *a, int64_t k) {
    static double v[MOST_ENTRIES], x[COLUMNS * WIDTHS], z[ROWS * WIDTHS];
    static float  vs[MOST_ENTRIES], xs[COLUMNS * WIDTHS], zs[ROWS * WIDTHS];
    int64_t       of_v[1] = {a->entries}, one[1] = {1}, of_x[2] = {COLUMNS, k}, of_z[2] = {ROWS, k}, stride[2] = {k, 1};
    for (int64_t e = 0; e < a->entries; e++) vs[e] = (float)(v[e] = (double)below(1 << 20) / 999983 - 0.5);
    for (int64_t e = 0; e < COLUMNS * k; e++) xs[e] = (float)(x[e] = (double)below(1 << 20) / 999979 - 0.5);
    cot__csr_matmul(a, &(cot__view){v, COT_F64, 1, of_v, one}, &(cot__view){x, COT_F64, 2, of_x, stride},
                    &(cot__view){z, COT_F64, 2, of_z, stride});
    cot__csr_matmul(a, &(cot__view){vs, COT_F32, 1, of_v, one}, &(cot__view){xs, COT_F32, 2, of_x, stride},
                    &(cot__view){zs, COT_F32, 2, of_z, stride});
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < k; j++) {
            assert_true(z[i * k + j] == chain_f64(a, v, x, k, i, j));
            assert_true(zs[i * k + j] == chain_f32(a, vs, xs, k, i, j));
        }
}

static void products_are_chains_whatever_the_pattern_claims(void **state) {
    (void)state;
    static const int32_t claims[] = {-1, COLUMNS, INT32_MIN, INT32_MAX, -1000000, 1000000, 3};
    pattern              p;
    for (int trial = 0; trial < 200; trial++) {
        cot__compressed a = some_pattern(&p, trial % 3 == 2);
        for (int64_t lies = trial % 5; lies > 0 && a.entries > 0; lies--) {
            int32_t claim = claims[below(COUNTOF(claims))], *list[] = {p.start, p.column, p.order};
            int64_t which = below(3);
            list[which][below(which == 0 ? ROWS + 1 : (int)a.entries)] = claim;
            /* an entry that there was in another trial */
            if (which == 0 && claim == 3) p.start[ROWS] = (int32_t)a.entries + 1;
        }
        check(&a, (const int64_t[]){1, 1, 3, 8, 16, 17}[below(6)]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_chains_whatever_the_pattern_claims)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
