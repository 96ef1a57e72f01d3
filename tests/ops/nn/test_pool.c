/* Pooling against a direct loop over its definition: many geometries and dtypes, ties, NaN,
 * threads, errors. */
/* ctest: labels=threads timeout=120 */
#include "rules/structural_ids.h"
#include "support/tape_test.h"

#include "backend/cpu/kernels.h"
#include "tape/tape.h"

static uint64_t state;
static int64_t  below(int64_t n) {
     return (int64_t)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
}

enum { MOST = 1 << 16 };
static double x_data[MOST], seed[MOST], z_want[MOST], x_want[MOST], got[MOST];

typedef struct pool { int64_t planes, x[3], z[3]; int space; cot_pool_options o; } pool;

/* The windows that fit. In ceil mode there is one more, if elements are left for it and it starts
 * before the padding behind. */
static int64_t windows(int64_t n, int64_t k, int64_t s, int64_t p, bool ceil_mode) {
    int64_t z = 0;
    while (z * s + k <= n + 2 * p) z++;
    return z + (ceil_mode && (z - 1) * s + k < n + 2 * p && z * s < n + p);
}

static pool random_pool(int space) {
    pool g = {1 + below(5), {1, 1, 1}, {1, 1, 1}, space, {.ceil_mode = below(2), .exclude_padding = below(2)}};
    for (int a = 0; a < space; a++) {
        int64_t k = 1 + below(below(2) ? 2 : 4), s = below(2) ? 0 : 1 + below(4), p = below(2) ? 0 : below(k / 2 + 1);
        g.o.window[a] = k, g.o.stride[a] = s, g.o.padding[a] = p;
        int64_t n = k + below(space == 1 ? 60 : space == 2 ? 24 : 6);
        g.x[3 - space + a] = n, g.z[3 - space + a] = windows(n, k, s ? s : k, p, g.o.ceil_mode);
    }
    return g;
}

/* Both pools and their transposes at `seed`, from the definition. */
static void define(const pool *g, bool max) {
    int64_t xn = g->x[0] * g->x[1] * g->x[2], zn = g->z[0] * g->z[1] * g->z[2], k[3] = {1, 1, 1}, s[3] = {1, 1, 1},
            p[3] = {0};
    for (int a = 0; a < g->space; a++) {
        int to = 3 - g->space + a;
        k[to] = g->o.window[a], s[to] = g->o.stride[a] ? g->o.stride[a] : k[to], p[to] = g->o.padding[a];
    }
    for (int64_t i = 0; i < g->planes * xn; i++) x_want[i] = 0;
    for (int64_t q = 0; q < g->planes * zn; q++) {
        int64_t at[3] = {q % zn / g->z[2] / g->z[1], q % zn / g->z[2] % g->z[1], q % zn % g->z[2]}, best = -1,
                inside = 0, padded = 0;
        double  sum = 0;
        /* round 1 spreads what round 0 has counted */
        for (int round = 0; round < 2; round++)
            for (int64_t t = 0; t < k[0] * k[1] * k[2]; t++) {
                int64_t tap[3] = {t / k[2] / k[1], t / k[2] % k[1], t % k[2]}, i = q / zn;
                bool    in = true, near = true;
                for (int a = 0; a < 3; a++) {
                    int64_t e = at[a] * s[a] - p[a] + tap[a];
                    in &= e >= 0 && e < g->x[a], near &= e < g->x[a] + p[a];
                    i = i * g->x[a] + e;
                }
                if (round == 0) {
                    inside += in, padded += near;
                    if (in && (best < 0 || x_data[i] > x_data[best] || (isnan(x_data[i]) && !isnan(x_data[best]))))
                        best = i;
                    if (in) sum += x_data[i];
                } else if (in && !max) x_want[i] += seed[q] / (double)(g->o.exclude_padding ? inside : padded);
            }
        if (max) x_want[best] += seed[q];
        z_want[q] = max ? x_data[best] : sum / (double)(g->o.exclude_padding ? inside : padded);
    }
}

static cot_var tensor(cot_tape *t, cot_dtype d, cot_shape s, const double *from) {
    static double memory[MOST];
    int64_t       n = 1;
    for (int k = 0; k < s.ndim; k++) n *= s.dim[k];
    assert_true(n <= MOST);
    for (int64_t i = 0; i < n; i++) cot__store_f64((char *)memory + i * cot__dtype_size(d), d, from[i]);
    return d <= COT_F16 ? cot_tensor(t, d, s, memory) : cot_data(t, d, s, memory);
}

static void compare(cot_var v, const double *want, int64_t n, double tolerance) {
    assert_int_equal(cot_size(v), n);
    assert_int_equal(cot_read(v, got, n), COT_OK);
    for (int64_t i = 0; i < n; i++) assert_near(got[i], want[i], tolerance);
}

static void check(const pool *g, bool max, cot_dtype d) {
    static cot_var (*const functions[2][4])(cot_var, cot_pool_options) = {
        {NULL, cot_avg_pool1d, cot_avg_pool2d, cot_avg_pool3d}, {NULL, cot_max_pool1d, cot_max_pool2d, cot_max_pool3d}};
    cot_tape *t = cot_tape_create(NULL);
    cot_shape sx = {1 + g->space, {g->planes}}, sz = sx;
    for (int a = 0; a < g->space; a++) sx.dim[1 + a] = g->x[3 - g->space + a], sz.dim[1 + a] = g->z[3 - g->space + a];
    cot_var x = tensor(t, d, sx, x_data), grad;
    cot_var z = functions[max][g->space](x, g->o);
    assert_ok(t);
    /* Numbers are small multiples of 1/8, so sums are exact, and one rounding or two are left;
     * halves gather up to 27 shares in f32. */
    double unit = d == COT_F64 ? 0x1p-52 : d == COT_F32 ? 0x1p-23 : d == COT_BF16 ? 0x1p-8 : 0x1p-11;
    for (int a = 0; a < sz.ndim; a++) assert_int_equal(cot_shape_of(z).dim[a], sz.dim[a]);
    compare(z, z_want, g->planes * g->z[0] * g->z[1] * g->z[2], max ? 0 : 2 * unit);
    if (d <= COT_F16) {
        cot_vjp(z, tensor(t, d, sz, seed), 1, &x, &grad);
        compare(grad, x_want, g->planes * g->x[0] * g->x[1] * g->x[2], max ? 0 : 8 * unit);
    }
    assert_ok(t);
    cot_tape_destroy(t);
}

static void pools_are_their_definition(void **s) {
    (void)s;
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16, COT_F16, COT_I64, COT_I32};
    state = 1;
    for (int round = 0; round < (test_small() ? 100 : 2000); round++) {
        pool g = random_pool(1 + round % 3);
        /* many ties */
        for (int64_t i = 0; i < g.planes * g.x[0] * g.x[1] * g.x[2]; i++)
            x_data[i] = (double)(below(9) - 4) * (round % 2 ? 1 : 1.5);
        for (int64_t i = 0; i < g.planes * g.z[0] * g.z[1] * g.z[2]; i++) seed[i] = (double)(below(17) - 8) / 8;
        cot_dtype d = dtypes[round / 3 % 6];
        if (d > COT_F16)
            for (int64_t i = 0; i < g.planes * g.x[0] * g.x[1] * g.x[2]; i++) x_data[i] = trunc(x_data[i]);
        define(&g, true);
        check(&g, true, d);
        define(&g, false);
        if (d <= COT_F16) check(&g, false, d);
    }
}

/* All arrangements of five values in the commonest window, which has kernels of its own: widths
 * around a vector, NaN and infinities. */
static void two_by_two_chooses_the_first_of_equals(void **s) {
    (void)s;
    static const double values[] = {-INFINITY, 0, 1, NAN, INFINITY};
    for (int width = 1; width <= 40; width += 1 + (width > 18) * 6)
        for (int extra = 0; extra < 2; extra++) { /* an odd column that no window covers */
            pool g = {625 / width + 1, {1, 4, 2 * width + extra}, {1, 2, width}, 2, {.window = {2, 2}}};
            for (int64_t q = 0; q < g.planes * 2 * width; q++) {
                int64_t row = q / width % 2, plane = q / width / 2, code = q % 625;
                double *x = x_data + (plane * 4 + 2 * row) * g.x[2] + 2 * (q % width);
                x[0] = values[code % 5], x[1] = values[code / 5 % 5], x[g.x[2]] = values[code / 25 % 5],
                x[g.x[2] + 1] = values[code / 125];
                seed[q] = (double)(q + 1);
                if (extra && q % width == width - 1) x[2] = x[g.x[2] + 2] = 9;
            }
            assert_true(g.planes * g.x[1] * g.x[2] <= MOST);
            define(&g, true);
            check(&g, true, COT_F32);
            check(&g, true, COT_F64);
        }
}

static void any_number_of_threads_gives_the_same_bits(void **s) {
    (void)s;
    static double first[4][MOST], other[4][MOST];
    int           before = cot_threads();
    for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        cot_tape *t = cot_tape_create(NULL);
        cot_set_threads(threads);
        state = 3;
        for (int64_t i = 0; i < MOST; i++) x_data[i] = (double)below(1000) / 7;
        cot_var x = tensor(t, COT_F32, COT_SHAPE(4, 16, 32, 32), x_data), g[2];
        cot_var a = cot_max_pool2d(x, COT_POOL(.window = {2, 2})),
                b = cot_avg_pool2d(x, COT_POOL(.window = {3, 3}, .stride = {2, 1}, .padding = {1, 1}));
        cot_grad_of(cot_sum(cot_mul(a, a), COT_ALL), 1, &x, &g[0]),
            cot_grad_of(cot_sum(cot_mul(b, b), COT_ALL), 1, &x, &g[1]);
        cot_var all[4] = {a, b, g[0], g[1]};
        for (int k = 0; k < 4; k++) {
            assert_int_equal(cot_read(all[k], threads == 1 ? first[k] : other[k], cot_size(all[k])), COT_OK);
            if (threads > 1) assert_memory_equal(first[k], other[k], (size_t)cot_size(all[k]) * sizeof(double));
        }
        cot_tape_destroy(t);
    }
    cot_set_threads(before);
}

static void leading_axes_are_planes_and_views_are_read(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    double    v[8];
    for (int i = 0; i < 24; i++) x_data[i] = i * 5 % 24;
    cot_var x = tensor(t, COT_F64, COT_SHAPE(4, 6), x_data);
    /* no leading axis at all */
    assert_int_equal(cot_read(cot_max_pool2d(x, COT_POOL(.window = {2, 3})), v, 4), COT_OK);
    assert_true(v[0] == 16 && v[1] == 21 && v[2] == 23 && v[3] == 19);
    cot_var turned = cot_transpose(x);
    for (int k = 0; k < 2; k++) {
        cot_var a = (k ? cot_avg_pool1d : cot_max_pool1d)(turned, COT_POOL(.window = {2})),
                b = (k ? cot_avg_pool1d : cot_max_pool1d)(cot_copy(turned), COT_POOL(.window = {2}));
        assert_int_equal(cot_read(a, z_want, 12), COT_OK);
        compare(b, z_want, 12, 0);
    }
    assert_int_equal(
        cot_size(cot_max_pool1d(cot_tensor(t, COT_F32, COT_SHAPE(0, 3, 4), NULL), COT_POOL(.window = {2}))), 0);
    assert_int_equal(
        cot_dtype_of(cot_avg_pool1d(cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 2}), COT_POOL(.window = {2}))),
        COT_F64);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void the_report_finds_windows_with_ties(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    char      text[512];
    cot_var   x = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(1, 6), (double[]){1, 2, 2, 3, 0, 0}), "x");
    assert_int_equal(cot_report(cot_sum(cot_max_pool1d(x, COT_POOL(.window = {2})), COT_ALL), text, sizeof text), 1);
    assert_non_null(strstr(text, "sits on its kink several elements of a window are the largest at [0,2]; its "
                                 "derivative there: all to the first of them."));
    assert_int_equal(
        cot_report(cot_sum(cot_max_pool1d(x, COT_POOL(.window = {2}, .stride = {3})), COT_ALL), text, sizeof text), 0);
    cot_tape_destroy(t);
}

/* They follow the pooled array, and what backward puts back is told where by them. */
static void places_are_a_second_result(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F32, COT_SHAPE(1, 6), (float[]){1, 2, 2, 2, 5, 0}), g;
    cot_var   z = cot_max_pool1d(x, COT_POOL(.window = {2})), places = cot__result_of(z, 1);
    assert_int_equal(cot__results_at(t, cot__index(z)), 2);
    assert_int_equal(cot_dtype_of(places), COT_I32);
    cot_read(places, got, 3);
    assert_true(got[0] == 1 && got[1] == 0 && got[2] == 0);
    cot_grad_of(cot_sum(cot_square(z), COT_ALL), 1, &x, &g);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].op == OP_max_unpool) assert_int_equal(t->nodes[i].b, cot__index(places));
    cot_read(g, got, 6);
    static const double want[6] = {0, 4, 4, 0, 10, 0};
    for (int k = 0; k < 6; k++) assert_true(got[k] == want[k]);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* A window that is padding but for five elements is done with five taps, not two thousand
 * million. */
static void padding_costs_nothing(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(1, 1, 5), (double[]){1, 5, 2, 4, 3});
    cot_var   max = cot_max_pool1d(x, COT_POOL(.window = {INT32_MAX}, .padding = {INT32_MAX / 2}, .stride = {1}));
    cot_var   mean =
        cot_avg_pool1d(x, COT_POOL(.window = {INT32_MAX}, .padding = {INT32_MAX / 2}, .exclude_padding = true));
    cot_backward(cot_add(cot_sum(max, COT_ALL), cot_sum(mean, COT_ALL)));
    assert_string_equal(cot_tape_message(t), "");
    assert_int_equal(cot_size(max), 5);
    cot_read(max, got, 5);
    for (int i = 0; i < 5; i++) assert_true(got[i] == 5);
    assert_true(cot_value(mean) == 3);
    cot_read_grad(x, got, 5);
    for (int i = 0; i < 5; i++) assert_true(got[i] == 1.0 / 5 + (i == 1 ? 5 : 0));
    cot_tape_destroy(t);
}

static void errors_say_what_was_given(void **s) {
    (void)s;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F32, COT_SHAPE(2, 5), NULL);
#define REFUSED(call, code, text)                                                                                      \
    do {                                                                                                               \
        assert_false(cot_is_valid(call));                                                                              \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)
    REFUSED(cot_max_pool3d(x, COT_POOL(.window = {1, 1, 1})), COT_SHAPE,
            "[max_pool3d] x has shape (2,5); it needs 3 spatial axes");
    REFUSED(cot_max_pool2d(x, COT_POOL(.window = {2})), COT_VALUE,
            "[max_pool2d] window[1] is 0 and stride[1] 0; a window has 1 to 2147483647 elements, a stride is 0 to "
            "2147483647");
    REFUSED(cot_avg_pool1d(x, COT_POOL(.window = {2}, .stride = {-1})), COT_VALUE,
            "[avg_pool1d] window[0] is 2 and stride[0] -1; a window has 1 to 2147483647 elements, a stride is 0 to "
            "2147483647");
    REFUSED(cot_max_pool1d(x, COT_POOL(.window = {3}, .padding = {2})), COT_VALUE,
            "[max_pool1d] padding[0] is 2 for a window of 3; it may be up to half the window");
    REFUSED(cot_avg_pool1d(x, COT_POOL(.window = {2}, .stride = {1}, .padding = {INT64_MAX - 1})), COT_VALUE,
            "[avg_pool1d] padding[0] is 9223372036854775806 for a window of 2; it may be up to half the window");
    REFUSED(cot_max_pool1d(cot_zeros(t, COT_F64, COT_SHAPE(2, 0)), COT_POOL(.window = {2}, .padding = {1})), COT_SHAPE,
            "[max_pool1d] spatial axis 0 has no elements, only padding; an empty maximum does not exist");
    REFUSED(cot_max_pool1d(x, COT_POOL(.window = {8}, .padding = {1})), COT_SHAPE,
            "[max_pool1d] the window has 8 elements along spatial axis 0, which has 7 with its padding; it must fit");
    REFUSED(cot_max_pool1d(x, COT_POOL(.window = {2, 2})), COT_VALUE,
            "[max_pool1d] window[1], stride[1] and padding[1] are 2, 0 and 0, but there is 1 spatial axis; leave the "
            "rest 0");
    REFUSED(cot_avg_pool2d(x, COT_POOL(.window = {2, 2, 2})), COT_VALUE,
            "[avg_pool2d] window[2], stride[2] and padding[2] are 2, 0 and 0, but there are 2 spatial axes; leave the "
            "rest 0");
    cot_var wide = cot_broadcast_to(cot_zeros(t, COT_F32, COT_SHAPE(1, 1)), COT_SHAPE(1 << 20, 1 << 20));
    REFUSED(cot_max_pool2d(wide, COT_POOL(.window = {1 << 20, 1 << 20})), COT_LIMIT,
            "[max_pool2d] the window has 1099511627776 elements; it may have up to 2147483647");
    assert_ok(t);
    cot_tape_destroy(t);
}

/* Where relu comes right before it, max_pool masks the adjoint itself. If the adjoint between the
 * two is asked for (`how`: of a recorded gradient, of a retained value), relu's own rule does. */
enum { MASKED, ASKED, RETAINED, BACKWARD, WRITTEN, WAYS };
static void gradient_behind_relu(const pool *g, cot_dtype d, int how, double *first, double *second) {
    static cot_var (*const functions[4])(cot_var, cot_pool_options) = {NULL, cot_max_pool1d, cot_max_pool2d,
                                                                       cot_max_pool3d};
    cot_tape *t = cot_tape_create(NULL);
    cot_shape sx = {1 + g->space, {g->planes}}, sz = sx;
    for (int a = 0; a < g->space; a++) sx.dim[1 + a] = g->x[3 - g->space + a], sz.dim[1 + a] = g->z[3 - g->space + a];
    cot_var x = tensor(t, d, sx, x_data), u = tensor(t, d, sz, seed);
    cot_var r = cot_relu(cot_mul(x, 2)), z = functions[g->space](r, g->o), both[2] = {x, r}, grad[2];
    if (how == WRITTEN) cot_add_into(&z, 1); /* the maxima are lost */
    if (how == RETAINED || how == BACKWARD) {
        if (how == RETAINED) cot_retain_grad(r);
        cot_backward_seeded(z, u);
        grad[0] = cot_grad(x);
    } else {
        cot_vjp(z, u, how == ASKED ? 2 : 1, both, grad);
        cot_var again; /* the gradient is linear in u */
        cot_vjp(grad[0], x, 1, &u, &again);
        assert_int_equal(cot_read(again, second, cot_size(again)), COT_OK);
    }
    assert_ok(t);
    assert_int_equal(cot_read(grad[0], first, cot_size(x)), COT_OK);
    cot_tape_destroy(t);
}

static bool same_bits(const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(isnan(a[i]) && isnan(b[i])) && memcmp(&a[i], &b[i], sizeof *a) != 0) return false;
    return true;
}

static void behind_relu_the_adjoint_is_masked_where_it_is_pooled(void **s) {
    (void)s;
    static const double values[] = {-INFINITY, -1, -0.0, 0, 0, 0x1p-130, 1, 1, NAN, INFINITY};
    static const double seeds[] = {-INFINITY, -1, -0.0, 0, 3, NAN, INFINITY};
    static double       first[2][MOST], second[2][MOST];
    state = 5;
    for (int round = 0; round < (test_small() ? 100 : 600); round++) {
        pool      g = random_pool(1 + round % 3);
        cot_dtype d = (cot_dtype[]){COT_F32, COT_F64, COT_BF16}[round / 3 % 3];
        int64_t   n = g.planes * g.x[0] * g.x[1] * g.x[2], m = g.planes * g.z[0] * g.z[1] * g.z[2];
        for (int64_t i = 0; i < n; i++) x_data[i] = values[below(10)];
        for (int64_t i = 0; i < m; i++) seed[i] = seeds[below(7)];
        gradient_behind_relu(&g, d, ASKED, first[0], second[0]);
        for (int how = MASKED; how < WAYS; how++) {
            memcpy(second[1], second[0], sizeof second[0]);
            gradient_behind_relu(&g, d, how, first[1], second[1]);
            assert_true(same_bits(first[1], first[0], n));
            assert_true(same_bits(second[1], second[0], m));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_are_their_definition),
        cmocka_unit_test(two_by_two_chooses_the_first_of_equals),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(leading_axes_are_planes_and_views_are_read),
        cmocka_unit_test(the_report_finds_windows_with_ties),
        cmocka_unit_test(padding_costs_nothing),
        cmocka_unit_test(places_are_a_second_result),
        cmocka_unit_test(errors_say_what_was_given),
        cmocka_unit_test(behind_relu_the_adjoint_is_masked_where_it_is_pooled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
