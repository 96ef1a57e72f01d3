/* Convolution against a direct loop over its definition: many geometries, every pass, every instruction set, dtypes, threads, errors. */
/* ctest: labels=threads timeout=120 */
#include "tape_test.h"

#include "backend/cpu/conv.h"
#include "base/half.h"

/* The narrower instruction sets, as if the machine had no wider one. */
bool conv_baseline(const cot_allocator *al, const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b, const cot__view *z);
bool conv_avx2(const cot_allocator *al, const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b, const cot__view *z);

static uint64_t state;
static int64_t  below(int64_t n) { return (int64_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % n; }

/* ---- the definition ------------------------------------------------------------------------------------------------------ */

/* Calls term(user, element of x, of w, of z) for every term of the trilinear form, all arrays contiguous. */
static void each_term(const cot__conv *g, void (*term)(void *user, int64_t x, int64_t w, int64_t z), void *user) {
    int64_t in = g->in / g->groups, out = g->out / g->groups;
    for (int64_t n = 0; n < g->batch; n++)
        for (int64_t o = 0; o < g->out; o++)
            for (int64_t c = 0; c < in; c++)
                for (int64_t q = 0; q < g->z[0] * g->z[1] * g->z[2]; q++)
                    for (int64_t k = 0; k < g->k[0] * g->k[1] * g->k[2]; k++) {
                        int64_t kk[3] = {k / g->k[2] / g->k[1], k / g->k[2] % g->k[1], k % g->k[2]};
                        int64_t qq[3] = {q / g->z[2] / g->z[1], q / g->z[2] % g->z[1], q % g->z[2]}, at = 0;
                        bool    inside = true;
                        for (int a = 0; a < 3; a++) {
                            int64_t i = qq[a] * g->stride[a] + kk[a] * g->dilation[a] - g->before[a];
                            inside &= i >= 0 && i < g->x[a];
                            at = at * g->x[a] + i;
                        }
                        if (!inside) continue;
                        term(user, (n * g->in + o / out * in + c) * g->x[0] * g->x[1] * g->x[2] + at, (o * in + c) * g->k[0] * g->k[1] * g->k[2] + k,
                             (n * g->out + o) * g->z[0] * g->z[1] * g->z[2] + q);
                    }
}

typedef struct sums { cot__conv_pass pass; const double *x, *w, *z; double *to, *size; } sums;

static void sum_term(void *user, int64_t x, int64_t w, int64_t z) {
    sums   *s = user;
    int64_t to = s->pass == COT__CONV_OUTPUT ? z : s->pass == COT__CONV_INPUT ? x : w;
    double  v = s->pass == COT__CONV_OUTPUT ? s->x[x] * s->w[w] : s->pass == COT__CONV_INPUT ? s->z[z] * s->w[w] : s->x[x] * s->z[z];
    s->to[to] += v;
    s->size[to] += fabs(v);
}

/* ---- kernels -------------------------------------------------------------------------------------------------------------- */

enum { MOST = 1 << 16 };
static double x_data[MOST], w_data[MOST], z_data[MOST], want[MOST], size_of[MOST];
static double memory[3][MOST];

static int64_t elements(const cot__conv *g, int which) {
    return which == 0   ? g->batch * g->in * g->x[0] * g->x[1] * g->x[2]
           : which == 1 ? g->out * (g->in / g->groups) * g->k[0] * g->k[1] * g->k[2]
                        : g->batch * g->out * g->z[0] * g->z[1] * g->z[2];
}

/* A geometry whose arrays fit; axes in front are 1 for fewer than three. */
static cot__conv random_geometry(int space) {
    cot__conv g = {1 + below(3), 1, 0, 0, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}};
    g.groups = below(3) ? 1 : 1 + below(4);
    g.in = g.groups * (1 + below(below(4) ? 4 : 20)), g.out = g.groups * (1 + below(below(4) ? 9 : 40));
    if (below(6) == 0) g.in = g.out = g.groups; /* depthwise */
    for (int a = 3 - space; a < 3; a++) {
        do {
            int64_t after = below(4);
            g.k[a] = 1 + below(below(3) ? 3 : 7), g.dilation[a] = below(3) ? 1 : 1 + below(3), g.stride[a] = below(2) ? 1 : 1 + below(4);
            g.before[a] = below(5), g.x[a] = 1 + below(space == 1 ? 70 : space == 2 ? 20 : 7);
            g.z[a] = g.x[a] + g.before[a] + after - (g.k[a] - 1) * g.dilation[a] - 1;
        } while (g.z[a] < 0);
        g.z[a] = g.z[a] / g.stride[a] + 1;
    }
    return g;
}

typedef bool run_fn(const cot_allocator *, const cot__conv *, cot__conv_pass, const cot__view *, const cot__view *, const cot__view *);

/* Runs one pass in a dtype and compares each element with the definition: the error of a sum is at most its terms' sizes times their number
 * (and 2) in units of the dtype. */
static void check_pass(run_fn *run, const char *name, const cot__conv *g, cot__conv_pass pass, cot_dtype d) {
    static const int operands[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
    const double    *data[3] = {x_data, w_data, z_data};
    int64_t          shape[3][5], stride[3][5], n = elements(g, operands[pass][2]);
    cot__view        v[3];
    for (int i = 0; i < 3; i++) {
        int            which = operands[pass][i];
        const int64_t *space = which == 0 ? g->x : which == 1 ? g->k : g->z;
        shape[i][0] = which == 1 ? g->out : g->batch, shape[i][1] = which == 0 ? g->in : which == 1 ? g->in / g->groups : g->out;
        for (int a = 0; a < 3; a++) shape[i][2 + a] = space[a];
        cot__strides(5, shape[i], stride[i]);
        v[i] = (cot__view){memory[i], d, 5, shape[i], stride[i]};
        memset(memory[i], 0xff, sizeof memory[i]); /* NaN: everything must be written */
        for (int64_t j = 0; i < 2 && j < elements(g, which); j++)
            cot__store_f64((char *)memory[i] + j * cot__dtype_size(d), d, data[which][j]);
    }
    memset(want, 0, sizeof want), memset(size_of, 0, sizeof size_of);
    sums s = {pass, x_data, w_data, z_data, want, size_of};
    each_term(g, sum_term, &s);
    cot_allocator al = {counting_alloc, &(counting){0}};
    assert_true(run(&al, g, pass, &v[0], &v[1], &v[2]));
    double  unit = d == COT_F64 ? 0x1p-52 : d == COT_F32 ? 0x1p-23 : d == COT_BF16 ? 0x1p-8 : 0x1p-11;
    double  terms = (double)(elements(g, 0) + elements(g, 1) + elements(g, 2));
    double  wide = d == COT_F64 || d == COT_F32 ? unit : 0x1p-23;
    for (int64_t j = 0; j < n; j++) {
        double got = cot__load_f64((char *)memory[2] + j * cot__dtype_size(d), d);
        if (fabs(got - want[j]) <= wide * (2 + sqrt(terms)) * size_of[j] + (wide != unit ? unit * fabs(want[j]) + 0x1p-24 : 0)) continue;
        fprintf(stderr, "%s, pass %d, %s: element %lld is %.9g, not %.9g\n", name, pass, cot_dtype_name(d), (long long)j, got, want[j]);
        fprintf(stderr, "batch %lld groups %lld in %lld out %lld\n", (long long)g->batch, (long long)g->groups, (long long)g->in, (long long)g->out);
        for (int a = 0; a < 3; a++)
            fprintf(stderr, "x %lld k %lld z %lld stride %lld dilation %lld before %lld\n", (long long)g->x[a], (long long)g->k[a], (long long)g->z[a],
                    (long long)g->stride[a], (long long)g->dilation[a], (long long)g->before[a]);
        fail();
    }
}

/* Short numbers, which every dtype holds exactly. */
static void fill(const cot__conv *g) {
    double *data[3] = {x_data, w_data, z_data};
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < elements(g, i); j++) data[i][j] = (double)(below(255) - 127) / 64;
}

static void check_variant(run_fn *run, const char *name, int rounds) {
    state = 1;
    for (int round = 0; round < rounds; round++) {
        cot__conv g = random_geometry(1 + round % 3);
        if (elements(&g, 0) > MOST || elements(&g, 1) > MOST || elements(&g, 2) > MOST) continue;
        fill(&g);
        for (int pass = 0; pass < 3; pass++) {
            check_pass(run, name, &g, (cot__conv_pass)pass, COT_F64);
            check_pass(run, name, &g, (cot__conv_pass)pass, COT_F32);
            check_pass(run, name, &g, (cot__conv_pass)pass, round % 2 ? COT_BF16 : COT_F16);
        }
    }
}

static void the_kernels_are_the_definition(void **s) {
    (void)s;
    check_variant(cot__conv_run, "widest", test_small() ? 60 : 600);
}

static void the_narrow_kernels_too(void **s) {
    (void)s;
    check_variant(conv_baseline, "baseline", test_small() ? 60 : 300);
    check_variant(conv_avx2, "AVX2", test_small() ? 60 : 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernels_are_the_definition), cmocka_unit_test(the_narrow_kernels_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
