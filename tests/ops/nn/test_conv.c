/* Convolution against a direct loop over its definition: many geometries, every pass, every
 * instruction set, dtypes, threads, errors. */
/* ctest: labels=threads timeout=120 */
#include "support/tape_test.h"

#include "backend/cpu/conv/conv.h"
#include "base/half.h"

#include <sys/mman.h>
#include <unistd.h>

/* The narrower instruction sets, as if the machine had no wider one. */
void    conv_baseline(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                      const cot__view *z, void *room);
int64_t conv_baseline_bytes(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                            const cot__view *z);
void    conv_avx2(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b, const cot__view *z,
                  void *room);
int64_t conv_avx2_bytes(const cot__conv *g, cot__conv_pass pass, const cot__view *a, const cot__view *b,
                        const cot__view *z);

static uint64_t state;
static int64_t  below(int64_t n) {
     return (int64_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
}

/* ---- the definition -------------------------------------------------------------------------- */

/* Calls term(user, element of x, of w, of z) for every term of the trilinear form, all arrays
 * contiguous. */
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
                        term(user, (n * g->in + o / out * in + c) * g->x[0] * g->x[1] * g->x[2] + at,
                             (o * in + c) * g->k[0] * g->k[1] * g->k[2] + k,
                             (n * g->out + o) * g->z[0] * g->z[1] * g->z[2] + q);
                    }
}

typedef struct sums { cot__conv_pass pass; const double *x, *w, *z; double *to, *size; } sums;

static void sum_term(void *user, int64_t x, int64_t w, int64_t z) {
    sums   *s = user;
    int64_t to = s->pass == COT__CONV_OUTPUT ? z : s->pass == COT__CONV_INPUT ? x : w;
    double  v  = s->pass == COT__CONV_OUTPUT  ? s->x[x] * s->w[w]
                 : s->pass == COT__CONV_INPUT ? s->z[z] * s->w[w]
                                              : s->x[x] * s->z[z];
    s->to[to] += v;
    s->size[to] += fabs(v);
}

/* ---- kernels --------------------------------------------------------------------------------- */

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
            g.k[a] = 1 + below(below(3) ? 3 : 7), g.dilation[a] = below(3) ? 1 : 1 + below(3),
            g.stride[a] = below(2) ? 1 : 1 + below(4);
            g.before[a] = below(5), g.x[a] = 1 + below(space == 1 ? 70 : space == 2 ? 20 : 7);
            g.z[a] = g.x[a] + g.before[a] + after - (g.k[a] - 1) * g.dilation[a] - 1;
        } while (g.z[a] < 0);
        g.z[a] = g.z[a] / g.stride[a] + 1;
    }
    return g;
}

typedef struct variant {
    const char *name;
    int64_t (*bytes)(const cot__conv *, cot__conv_pass, const cot__view *, const cot__view *, const cot__view *);
    void (*run)(const cot__conv *, cot__conv_pass, const cot__view *, const cot__view *, const cot__view *, void *);
} variant;

/* Runs in exactly as much memory as the kernel told, which holds no zeros. */
static void run_in_its_memory(const variant *f, const cot__conv *g, cot__conv_pass pass, const cot__view v[3]) {
    enum { MARK = 64 };
    int64_t bytes = f->bytes(g, pass, &v[0], &v[1], &v[2]);
    assert_true(bytes >= 0);
    char *room = malloc((size_t)bytes + MARK);
    memset(room, 0xff, (size_t)bytes);
    memset(room + bytes, 0x5a, MARK);
    f->run(g, pass, &v[0], &v[1], &v[2], room);
    for (int i = 0; i < MARK; i++) assert_int_equal(room[bytes + i], 0x5a);
    free(room);
}

/* Runs one pass in a dtype and compares each element with the definition: the error of a sum is at
 * most its terms' sizes times their number (and 2) in units of the dtype. */
static void check_pass(const variant *f, const cot__conv *g, cot__conv_pass pass, cot_dtype d) {
    static const int operands[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
    const double    *data[3] = {x_data, w_data, z_data};
    int64_t          shape[3][5], stride[3][5], n = elements(g, operands[pass][2]);
    cot__view        v[3];
    for (int i = 0; i < 3; i++) {
        int            which = operands[pass][i];
        const int64_t *space = which == 0 ? g->x : which == 1 ? g->k : g->z;
        shape[i][0] = which == 1 ? g->out : g->batch, shape[i][1] = which == 0   ? g->in
                                                                    : which == 1 ? g->in / g->groups
                                                                                 : g->out;
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
    run_in_its_memory(f, g, pass, v);
    double  unit = d == COT_F64 ? 0x1p-52 : d == COT_F32 ? 0x1p-23 : d == COT_BF16 ? 0x1p-8 : 0x1p-11;
    double  terms = (double)(elements(g, 0) + elements(g, 1) + elements(g, 2));
    double  wide = d == COT_F64 || d == COT_F32 ? unit : 0x1p-23;
    for (int64_t j = 0; j < n; j++) {
        double got = cot__load_f64((char *)memory[2] + j * cot__dtype_size(d), d);
        if (fabs(got - want[j]) <=
            wide * (2 + sqrt(terms)) * size_of[j] + (wide != unit ? unit * fabs(want[j]) + 0x1p-24 : 0))
            continue;
        fprintf(stderr, "%s, pass %d, %s: element %lld is %.9g, not %.9g\n", f->name, pass, cot_dtype_name(d),
                (long long)j, got, want[j]);
        fprintf(stderr, "batch %lld groups %lld in %lld out %lld\n", (long long)g->batch, (long long)g->groups,
                (long long)g->in, (long long)g->out);
        for (int a = 0; a < 3; a++)
            fprintf(stderr, "x %lld k %lld z %lld stride %lld dilation %lld before %lld\n", (long long)g->x[a],
                    (long long)g->k[a], (long long)g->z[a], (long long)g->stride[a], (long long)g->dilation[a],
                    (long long)g->before[a]);
        fail();
    }
}

/* Short numbers, which every dtype holds exactly. */
static void fill(const cot__conv *g) {
    double *data[3] = {x_data, w_data, z_data};
    for (int i = 0; i < 3; i++)
        for (int64_t j = 0; j < elements(g, i); j++) data[i][j] = (double)(below(255) - 127) / 64;
}

static void check_variant(const variant *f, int rounds) {
    state = 1;
    for (int round = 0; round < rounds; round++) {
        cot__conv g = random_geometry(1 + round % 3);
        if (elements(&g, 0) > MOST || elements(&g, 1) > MOST || elements(&g, 2) > MOST) continue;
        fill(&g);
        for (int pass = 0; pass < 3; pass++) {
            check_pass(f, &g, (cot__conv_pass)pass, COT_F64);
            check_pass(f, &g, (cot__conv_pass)pass, COT_F32);
            check_pass(f, &g, (cot__conv_pass)pass, round % 2 ? COT_BF16 : COT_F16);
        }
    }
}

static void the_kernels_are_the_definition(void **s) {
    (void)s;
    check_variant(&(variant){"widest", cot__conv_bytes, cot__conv_run}, test_small() ? 60 : 600);
}

static void the_narrow_kernels_too(void **s) {
    (void)s;
    check_variant(&(variant){"baseline", conv_baseline_bytes, conv_baseline}, test_small() ? 60 : 300);
    check_variant(&(variant){"AVX2", conv_avx2_bytes, conv_avx2}, test_small() ? 60 : 300);
}

/* The operands of a pass, contiguous, in `memory`. kind 1: some are not finite; 2: products
 * underflow, to zeros of both signs. */
static void views_of(const cot__conv *g, cot__conv_pass pass, cot_dtype d, int kind, cot__view v[3],
                     int64_t shape[3][5], int64_t stride[3][5]) {
    static const int operands[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
    for (int i = 0; i < 3; i++) {
        int            which = operands[pass][i];
        const int64_t *space = which == 0 ? g->x : which == 1 ? g->k : g->z;
        shape[i][0] = which == 1 ? g->out : g->batch;
        shape[i][1] = which == 0 ? g->in : which == 1 ? g->in / g->groups : g->out;
        for (int a = 0; a < 3; a++) shape[i][2 + a] = space[a];
        cot__strides(5, shape[i], stride[i]);
        v[i] = (cot__view){memory[i], d, 5, shape[i], stride[i]};
        for (int64_t j = 0; i < 2 && j < elements(g, which); j++) {
            double value = (double)(below(255) - 127) / 60;
            if (kind == 1 && below(200) == 0) value = below(2) ? INFINITY : NAN;
            if (kind == 2) value *= below(2) ? 0 : d == COT_F64 ? 1e-162 : 1e-23;
            cot__store_f64((char *)memory[i] + j * cot__dtype_size(d), d, value);
        }
    }
}

/* Channels in lanes, where rows fill vectors of places badly, against places in lanes, which the
 * kernels for AVX2 have: values, padding times what is not finite, and signs of zeros. */
static void channels_in_lanes_give_the_same_bits(void **s) {
    (void)s;
    static const cot__conv layers[] = {
        {3, 1, 16, 32, {1, 14, 14}, {1, 5, 5}, {1, 14, 14}, {1, 1, 1}, {1, 1, 1}, {0, 2, 2}},
        {2, 2, 32, 64, {1, 14, 14}, {1, 3, 3}, {1, 14, 14}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
        {1, 1, 48, 48, {1, 3, 28}, {1, 3, 3}, {1, 3, 28}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
        {5, 1, 70, 32, {1, 9, 14}, {1, 1, 1}, {1, 9, 14}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
        {2, 1, 8, 32, {1, 29, 29}, {1, 3, 3}, {1, 14, 14}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}},
        {2, 1, 5, 32, {3, 5, 9}, {2, 3, 4}, {2, 5, 8}, {1, 1, 1}, {1, 1, 2}, {0, 1, 3}},
        {2, 1, 6, 96, {1, 7, 7}, {1, 2, 7}, {1, 6, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 3}},
    };
    static double other[MOST];
    const variant widest = {"widest", cot__conv_bytes, cot__conv_run}, avx2 = {"AVX2", conv_avx2_bytes, conv_avx2};
    state = 1;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int each = 0; each < 18; each++) {
            const cot__conv *g = &layers[i];
            cot__conv_pass   pass = (cot__conv_pass)(each % 3);
            cot_dtype        d = each / 3 % 2 ? COT_F64 : COT_F32;
            int64_t          shape[3][5], stride[3][5], n;
            cot__view        v[3];
            views_of(g, pass, d, each / 6, v, shape, stride);
            n = cot__count(5, shape[2]);
            run_in_its_memory(&avx2, g, pass, v);
            memcpy(other, memory[2], sizeof other);
            memset(memory[2], 0xff, sizeof memory[2]);
            run_in_its_memory(&widest, g, pass, v);
            for (int64_t j = 0; j < n; j++) {
                int64_t at = j * cot__dtype_size(d);
                double  a = cot__load_f64((char *)memory[2] + at, d), b = cot__load_f64((char *)other + at, d);
                if (isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b)) continue;
                fprintf(stderr, "layer %zu, pass %d, %s, kind %d: element %lld is %.9g, by AVX2 %.9g\n", i, pass,
                        cot_dtype_name(d), each / 6, (long long)j, a, b);
                fail();
            }
        }
}

/* ---- through the public functions ------------------------------------------------------------ */

static cot_var filled(cot_tape *t, cot_dtype d, cot_shape shape) {
    static double data[1 << 17];
    int64_t       n = 1;
    for (int k = 0; k < shape.ndim; k++) n *= shape.dim[k];
    assert_true(n <= 1 << 17);
    for (int64_t i = 0; i < n; i++)
        cot__store_f64((char *)data + i * cot__dtype_size(d), d, (double)(below(255) - 127) / 64);
    return cot_tensor(t, d, shape, data);
}

static void assert_same(cot_var a, cot_var b) {
    static double x[1 << 17], y[1 << 17];
    int64_t       n = cot_size(a);
    assert_true(n >= 0 && n <= 1 << 17);
    assert_int_equal(cot_size(b), n);
    assert_int_equal(cot_read(a, x, n), COT_OK);
    assert_int_equal(cot_read(b, y, n), COT_OK);
    assert_memory_equal(x, y, (size_t)n * sizeof *x);
}

static void shapes_are_those_of_pytorch(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = filled(t, COT_F32, COT_SHAPE(2, 4, 9, 7));
    cot_shape z = cot_shape_of(cot_conv2d(
        x, filled(t, COT_F32, COT_SHAPE(6, 2, 3, 2)),
        COT_CONV(.groups = 2, .stride = {2, 3}, .padding = {1, 0}, .dilation = {2, 1}, .padding_after = {1, 0})));
    assert_int_equal(z.ndim, 4);
    assert_true(z.dim[0] == 2 && z.dim[1] == 6 && z.dim[2] == 4 && z.dim[3] == 2);
    z = cot_shape_of(
        cot_conv_transpose2d(x, filled(t, COT_F32, COT_SHAPE(4, 3, 3, 2)),
                             COT_CONV(.groups = 2, .stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2})));
    assert_true(z.dim[0] == 2 && z.dim[1] == 6 && z.dim[2] == 18 && z.dim[3] == 22);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void strided_operands_are_read_in_place(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    state = 5;
    for (int d = COT_F64; d <= COT_F16; d++) {
        cot_var x = cot_flip(cot_transpose(filled(t, (cot_dtype)d, COT_SHAPE(9, 10, 4, 2))), COT_AXES(2));
        cot_var kernels[] = {cot_transpose(filled(t, (cot_dtype)d, COT_SHAPE(3, 2, 4, 5))),
                             cot_transpose(filled(t, (cot_dtype)d, COT_SHAPE(1, 1, 4, 5)))};
        for (int round = 0; round < 4; round++) {
            cot_var          w = kernels[round / 2];
            /* the last two: rows that follow each other */
            cot_conv_options o = {.stride = {1, 1 + round % 2}, .padding = {round < 2, round < 2}};
            cot_var          a = cot_conv2d(x, w, o), b = cot_conv2d(cot_copy(x), cot_copy(w), o), ga[2], gb[2];
            assert_same(a, b);
            cot_var seed = cot_transpose(
                filled(t, (cot_dtype)d, (cot_shape){4, {cot_shape_of(a).dim[3], cot_shape_of(a).dim[2], 5, 2}}));
            cot_vjp(a, seed, 2, ((cot_var[]){x, w}), ga), cot_vjp(a, cot_copy(seed), 2, ((cot_var[]){x, w}), gb);
            assert_same(ga[0], gb[0]), assert_same(ga[1], gb[1]);
        }
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void any_number_of_threads_gives_the_same_bits(void **s) {
    (void)s;
    static const struct { cot_shape x, w; cot_conv_options o; } cases[] = {
        {{4, {8, 16, 14, 14}}, {4, {32, 16, 5, 5}}, {.padding = {2, 2}}},
        {{4, {1, 3, 100, 90}}, {4, {5, 3, 3, 3}}, {.stride = {2, 1}, .padding = {1, 1}}},
        {{4, {2, 96, 20, 20}}, {4, {96, 1, 3, 3}}, {.groups = 96}},
        {{3, {3, 20, 800}}, {3, {30, 20, 4}}, {.dilation = {3}}},
        {{5, {1, 4, 10, 30, 30}}, {5, {8, 4, 3, 3, 3}}, {.padding = {1, 1, 1}}},
    };
    int before = cot_threads();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static double first[3][1 << 17], other[3][1 << 17];
        for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
            cot_tape *t = cot_tape_create(NULL);
            cot_set_threads(threads);
            state = i;
            int     space = cases[i].x.ndim - 2;
            cot_var x = filled(t, COT_F32, cases[i].x), w = filled(t, COT_F32, cases[i].w), g[2];
            cot_var z = (space == 1 ? cot_conv1d : space == 2 ? cot_conv2d : cot_conv3d)(x, w, cases[i].o);
            cot_grad_of(cot_sum(cot_mul(z, cot_mul(z, z)), COT_ALL), 2, (cot_var[]){x, w}, g);
            cot_var all[3] = {z, g[0], g[1]};
            for (int k = 0; k < 3; k++) {
                assert_true(cot_size(all[k]) <= 1 << 17);
                assert_int_equal(cot_read(all[k], threads == 1 ? first[k] : other[k], cot_size(all[k])), COT_OK);
                if (threads > 1) assert_memory_equal(first[k], other[k], (size_t)cot_size(all[k]) * sizeof(double));
            }
            assert_ok(t);
            cot_tape_destroy(t);
        }
    }
    cot_set_threads(before);
}

/* ⟨z̄, conv(x, w)⟩ = ⟨conv_transpose(z̄, w), x⟩ when the extents are made to match. */
/* Groups, and a batch of layers, which is groups: each has the bits that it has alone, however many
 * there are. Many images, so that the sums of weights are split. */
static void groups_and_batches_have_the_bits_of_each(void **s) {
    (void)s;
    for (int d = COT_F64; d <= COT_F32; d++) {
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_leaf(filled(t, (cot_dtype)d, COT_SHAPE(40, 6, 14, 14)));
        cot_var   w = cot_leaf(filled(t, (cot_dtype)d, COT_SHAPE(15, 2, 3, 3))), all, one;
        cot_var   z = cot_conv2d(x, w, COT_CONV(.groups = 3, .padding = {1, 1}));
        assert_int_equal(cot_grad_of(cot_sum(cot_sin(z), COT_ALL), 1, &w, &all), COT_OK);
        for (int k = 0; k < 3; k++) {
            cot_var x1 = cot_slice(x, 1, 2 * k, 2 * k + 2, 1), w1 = cot_slice(w, 0, 5 * k, 5 * k + 5, 1);
            cot_var z1 = cot_conv2d(x1, w1, COT_CONV(.padding = {1, 1}));
            assert_int_equal(cot_grad_of(cot_sum(cot_sin(z1), COT_ALL), 1, &w1, &one), COT_OK);
            assert_same(one, cot_slice(all, 0, 5 * k, 5 * k + 5, 1));
        }
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static void the_transpose_is_the_transpose(void **s) {
    (void)s;
    cot_tape        *t = cot_tape_create(NULL);
    cot_conv_options o = {.groups = 2, .stride = {3, 2}, .padding = {1, 2}, .dilation = {1, 2}};
    cot_var          x = filled(t, COT_F64, COT_SHAPE(2, 4, 12, 13)), w = filled(t, COT_F64, COT_SHAPE(6, 2, 3, 3)),
            z              = cot_conv2d(x, w, o);
    cot_shape        shape = cot_shape_of(z);
    cot_var          y = filled(t, COT_F64, shape);
    o.output_padding[0]    = 12 - ((shape.dim[2] - 1) * 3 - 2 + 3),
    o.output_padding[1]    = 13 - ((shape.dim[3] - 1) * 2 - 4 + 5);
    double left            = cot_value(cot_sum(cot_mul(y, z), COT_ALL)),
           right           = cot_value(cot_sum(cot_mul(x, cot_conv_transpose2d(y, w, o)), COT_ALL));
    /* sums of some ten thousand numbers below 100: all multiples of 2^-18, so nearly exact */
    assert_near(left, right, 1e-12);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void integers_become_f64(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_data(t, COT_I64, COT_SHAPE(1, 1, 3), (int64_t[]){1, 2, 3}),
            w   = cot_data(t, COT_U8, COT_SHAPE(1, 1, 2), (uint8_t[]){1, 10});
    cot_var   z = cot_conv1d(x, w, COT_CONV(0));
    double    v[2];
    assert_int_equal(cot_dtype_of(z), COT_F64);
    assert_int_equal(cot_read(z, v, 2), COT_OK);
    assert_true(v[0] == 21 && v[1] == 32);
    assert_int_equal(cot_dtype_of(cot_conv1d(cot_cast(x, COT_F16), cot_cast(w, COT_BF16), COT_CONV(0))), COT_F32);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void nothing_to_sum_is_zero_and_nothing_to_make_is_empty(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    double    v[8];
    cot_var   none = cot_tensor(t, COT_F32, COT_SHAPE(0, 2, 4), NULL), w = filled(t, COT_F32, COT_SHAPE(3, 2, 2)), g[2];
    cot_var   z = cot_conv1d(none, w, COT_CONV(0));
    assert_int_equal(cot_size(z), 0);
    assert_int_equal(cot_shape_of(z).dim[1], 3);
    assert_int_equal(cot_grad_of(cot_sum(z, COT_ALL), 2, (cot_var[]){none, w}, g), COT_OK);
    assert_int_equal(cot_read(g[1], (double[12]){0}, 12), COT_OK);
    assert_true(cot_value(cot_sum(cot_abs(g[1]), COT_ALL)) == 0);
    /* no channels */
    z = cot_conv1d(cot_tensor(t, COT_F32, COT_SHAPE(2, 0, 4), NULL), cot_tensor(t, COT_F32, COT_SHAPE(1, 0, 1), NULL),
                   COT_CONV(0));
    assert_int_equal(cot_read(z, v, 8), COT_OK);
    for (int i = 0; i < 8; i++) assert_true(v[i] == 0);
    assert_int_equal(cot_size(cot_conv1d(filled(t, COT_F32, COT_SHAPE(2, 1, 4)),
                                         cot_tensor(t, COT_F32, COT_SHAPE(0, 1, 2), NULL), COT_CONV(0))),
                     0);
    assert_int_equal(
        cot_size(cot_conv_transpose1d(none, cot_tensor(t, COT_F32, COT_SHAPE(2, 3, 2), NULL), COT_CONV(0))), 0);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Lanes beyond a row, and elements beside a tap, have no effect: an infinity reaches only the
 * places of its taps. */
static void infinities_stay_where_they_belong(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    float     x[3 * 21] = {0}, ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    double    z[21];
    x[21 + 5] = INFINITY;
    cot_var v = cot_tensor(t, COT_F32, COT_SHAPE(1, 1, 3, 21), x),
            w = cot_tensor(t, COT_F32, COT_SHAPE(1, 1, 3, 3), ones), g;
    cot_var y = cot_conv2d(v, w, COT_CONV(.padding = {0, 1}));
    assert_int_equal(cot_read(y, z, 21), COT_OK);
    for (int i = 0; i < 21; i++) assert_true(i >= 4 && i <= 6 ? isinf(z[i]) : z[i] == 0);
    float seed[21] = {0};
    seed[20] = 1; /* only the last place: its taps see zeros, and the lanes beyond are not there */
    assert_int_equal(cot_vjp(y, cot_data(t, COT_F32, COT_SHAPE(1, 1, 1, 21), seed), 1, &v, &g), COT_OK);
    assert_near(cot_value(cot_sum(g, COT_ALL)), 6, 0);
    /* the second row begins where lanes beyond the first one would read: 0 · inf there would be
     * NaN */
    float row[2 * 14] = {0};
    row[14] = INFINITY;
    cot_var one = cot_tensor(t, COT_F32, COT_SHAPE(1, 1, 1, 1), ones);
    y = cot_conv2d(cot_data(t, COT_F32, COT_SHAPE(1, 1, 2, 14), row), one, COT_CONV(0));
    assert_int_equal(cot_vjp(y, cot_ones(t, COT_F32, COT_SHAPE(1, 1, 2, 14)), 1, &one, &g), COT_OK);
    assert_true(cot_value(cot_sum(g, COT_ALL)) == INFINITY);
    cot_tape_destroy(t);
}

/* Adjoints of weights read z where it lies, in vectors that are longer than its rows: nothing
 * behind its last element may be touched. 32 channels are in lanes. */
static void nothing_is_read_behind_the_end(void **s) {
    (void)s;
    long  page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && mprotect(pages + page, (size_t)page, PROT_NONE) == 0);
    for (int each = 0; each < 4; each++) {
        int64_t   out = each / 2 ? 32 : 4;
        cot_dtype dtype = each % 2 ? COT_F64 : COT_F32;
        cot__conv g     = {1, 1, 1, out, {1, 1, 14}, {1, 1, 3}, {1, 1, 14}, {1, 1, 1}, {1, 1, 1}, {0, 0, 1}};
        int64_t   xs[5] = {1, 1, 1, 1, 14}, zs[5] = {1, out, 1, 1, 14}, ws[5] = {out, 1, 1, 1, 3}, stride[3][5];
        double    x[14] = {0}, w[3 * 32];
        char     *z = pages + page - out * 14 * cot__dtype_size(dtype);
        cot__strides(5, xs, stride[0]), cot__strides(5, zs, stride[1]), cot__strides(5, ws, stride[2]);
        for (int i = 0; i < out * 14; i++) cot__store_f64(z + i * cot__dtype_size(dtype), dtype, i);
        cot__store_f64((char *)x + 13 * cot__dtype_size(dtype), dtype, 1);
        run_in_its_memory(&(variant){"widest", cot__conv_bytes, cot__conv_run}, &g, COT__CONV_WEIGHT,
                          (cot__view[]){{x, dtype, 5, xs, stride[0]},
                                        {z, dtype, 5, zs, stride[1]},
                                        {w, dtype, 5, ws, stride[2]}});
        /* the middle tap meets it in the last place, the last tap one before */
        for (int i = 0; i < out; i++)
            assert_true(cot__load_f64((char *)w + (3 * i + 1) * cot__dtype_size(dtype), dtype) == 14 * i + 13 &&
                        cot__load_f64((char *)w + (3 * i + 2) * cot__dtype_size(dtype), dtype) == 14 * i + 12);
    }
    munmap(pages, (size_t)(2 * page));
}

static void errors_say_what_was_given(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = filled(t, COT_F32, COT_SHAPE(1, 4, 5)), w = filled(t, COT_F32, COT_SHAPE(6, 4, 3)),
            x2    = filled(t, COT_F32, COT_SHAPE(1, 4, 5, 5));
    cot_var empty = cot_tensor(t, COT_F32, COT_SHAPE(6, 4, 0), NULL),
            line  = cot_tensor(t, COT_F32, COT_SHAPE(1, 4, 0), NULL);
#define REFUSED(call, code, text)                                                                                      \
    do {                                                                                                               \
        assert_false(cot_is_valid(call));                                                                              \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)
    REFUSED(cot_conv2d(x, w, COT_CONV(0)), COT_SHAPE,
            "[conv2d] x has shape (1,4,5), the weight (6,4,3); both have two axes for channels and the like, then 2 "
            "spatial");
    REFUSED(cot_conv1d(x2, w, COT_CONV(0)), COT_SHAPE,
            "[conv1d] x has shape (1,4,5,5), the weight (6,4,3); both have two axes for channels and the like, then 1 "
            "spatial");
    REFUSED(cot_conv1d(x, w, COT_CONV(.stride = {-1})), COT_VALUE,
            "[conv1d] stride[0] is -1; it may be 0 to 2147483647");
    REFUSED(cot_conv1d(x, w, COT_CONV(.dilation = {INT64_MAX})), COT_VALUE,
            "[conv1d] dilation[0] is 9223372036854775807; it may be 0 to 2147483647");
    REFUSED(cot_conv1d(x, w, COT_CONV(.padding = {1, 1})), COT_VALUE,
            "[conv1d] padding[1] is 1, but there is 1 spatial axis; leave the rest 0");
    REFUSED(cot_conv2d(x2, x2, COT_CONV(.stride = {1, 1, 2})), COT_VALUE,
            "[conv2d] stride[2] is 2, but there are 2 spatial axes; leave the rest 0");
    REFUSED(cot_conv1d(x, w, COT_CONV(.groups = -2)), COT_VALUE,
            "[conv1d] groups is -2; it is positive, or 0 for one group");
    REFUSED(cot_conv1d(x, w, COT_CONV(.groups = 3)), COT_SHAPE,
            "[conv1d] 3 groups, but x has 4 channels and the weight 6 along its first axis; groups divide both");
    REFUSED(cot_conv1d(x, w, COT_CONV(.groups = 2)), COT_SHAPE,
            "[conv1d] x has 4 channels, the weight (6,4,3) takes 8; groups times its second axis is the channels of x");
    REFUSED(cot_conv_transpose1d(x, w, COT_CONV(0)), COT_SHAPE,
            "[conv_transpose1d] x has 4 channels, the weight (6,4,3) takes 6; its first axis is the channels of x");
    REFUSED(cot_conv1d(x, empty, COT_CONV(0)), COT_SHAPE,
            "[conv1d] the weight has shape (6,4,0); a kernel has at least one element");
    REFUSED(cot_conv1d(x, w, COT_CONV(.dilation = {4}, .padding_before = {3})), COT_SHAPE,
            "[conv1d] the kernel reaches over 9 elements of spatial axis 0, which has 8 with its padding; it must fit");
    REFUSED(cot_conv1d(line, w, COT_CONV(.padding = {1})), COT_SHAPE,
            "[conv1d] the kernel reaches over 3 elements of spatial axis 0, which has 2 with its padding; it must fit");
    REFUSED(cot_conv1d(x, w, COT_CONV(.output_padding = {1})), COT_VALUE,
            "[conv1d] output_padding[0] is 1; only transposed convolutions have one");
    REFUSED(cot_conv_transpose1d(x, cot_transpose(cot_reshape(w, COT_SHAPE(3, 6, 4))),
                                 COT_CONV(.stride = {2}, .output_padding = {2})),
            COT_VALUE, "[conv_transpose1d] output_padding[0] is 2; it must be less than stride or dilation");
    REFUSED(cot_conv_transpose1d(x, cot_transpose(cot_reshape(w, COT_SHAPE(3, 6, 4))), COT_CONV(.padding = {4})),
            COT_SHAPE,
            "[conv_transpose1d] 5 elements along spatial axis 0 would become -1; the result has at least one");
    REFUSED(cot_conv_transpose1d(line, cot_transpose(cot_reshape(w, COT_SHAPE(3, 6, 4))), COT_CONV(0)), COT_SHAPE,
            "[conv_transpose1d] 0 elements along spatial axis 0 would become 0; the result has at least one");
    cot_var wide =
        cot_broadcast_to(cot_zeros(t, COT_F32, COT_SHAPE(1, 1, 1)), COT_SHAPE(INT64_C(1) << 20, 1, INT64_C(1) << 34));
    REFUSED(cot_conv_transpose1d(wide, cot_zeros(t, COT_F32, COT_SHAPE(1, 1, 1)), COT_CONV(.stride = {1 << 20})),
            COT_LIMIT, "[conv_transpose] shape (1048576,1,18014398508433409) has too many elements to address");
    assert_ok(t);
    cot_tape_destroy(t);
}

static void convolve(cot_tape *t, void *user) {
    (void)user;
    state = 1;
    cot_var x = filled(t, COT_BF16, COT_SHAPE(2, 2, 9, 9)), w = filled(t, COT_BF16, COT_SHAPE(3, 2, 3, 3));
    cot_var z = cot_conv2d(x, w, COT_CONV(.stride = {2, 2}, .padding = {1, 1}));
    cot_backward(cot_sum(cot_max_pool2d(cot_mul(z, z), COT_POOL(.window = {2, 2})), COT_ALL));
    cot_backward(cot_sum(cot_avg_pool2d(cot_transpose(x), COT_POOL(.window = {2, 2})), COT_ALL));
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **s) {
    (void)s;
    assert_survives_no_memory(convolve, NULL, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernels_are_the_definition), cmocka_unit_test(the_narrow_kernels_too),
        cmocka_unit_test(channels_in_lanes_give_the_same_bits),
        cmocka_unit_test(shapes_are_those_of_pytorch), cmocka_unit_test(strided_operands_are_read_in_place),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits), cmocka_unit_test(the_transpose_is_the_transpose),
        cmocka_unit_test(groups_and_batches_have_the_bits_of_each),
        cmocka_unit_test(integers_become_f64), cmocka_unit_test(nothing_to_sum_is_zero_and_nothing_to_make_is_empty),
        cmocka_unit_test(infinities_stay_where_they_belong), cmocka_unit_test(nothing_is_read_behind_the_end),
        cmocka_unit_test(errors_say_what_was_given),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
