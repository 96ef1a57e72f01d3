/* cot_precision.saved, operation by operation: a gradient is off by what rounding to bf16 explains,
 * or not at all, wherever the operation stands. Products take rounded values; others read what they
 * read as f32, also where a product reads the same value. */
#include "support/tape_test.h"

enum { ROWS = 4, COLUMNS = 8, N = ROWS * COLUMNS };

/* Of 8 binary digits, rounded to nearest: off by 2^-8 of a value, and so is a product. A gradient
 * has two such factors at most here (more where it is said), and f32 rounds a few times more. */
static const double BOUND = 2 * 0x1p-8 + 0x1p-16 + 16 * 0x1p-24;

/* ---- elementwise ----------------------------------------------------------------------------- */

typedef struct elementwise {
    const char *name;
    int         operands;
    bool        test;
    cot_var (*one)(cot_var);
    cot_var (*two)(cot_var, cot_var);
    cot_var (*three)(cot_var, cot_var, cot_var);
    double lo, hi;
} elementwise;

enum { ARITH = 0, REAL = 0, TEST = 1 };
static const elementwise functions[] = {
#define UNARY(op, class, value, dx, from, to) {#op, 1, class, .one = cot_##op, .lo = from, .hi = to},
#define BINARY(op, class, value, dx, dy, from, to) {#op, 2, class, .two = cot_##op, .lo = from, .hi = to},
#define TERNARY(op, class, value, dx, dy, dw, from, to) {#op, 3, class, .three = cot_##op, .lo = from, .hi = to},
#include "rules/rules.def"
};

static const char *const PRODUCTS[] = {"mul", "smul", "fma", "square", "exp", "exp2", "abs", "relu", "leaky_relu"};
static bool is_product(const char *name) {
    for (size_t k = 0; k < sizeof PRODUCTS / sizeof *PRODUCTS; k++)
        if (!strcmp(PRODUCTS[k], name)) return true;
    return false;
}

/* What is found of one operation: its gradients by each operand, of Σ z w and of Σ z² w. */
typedef struct found {
    double  g[2][3][N];
    int64_t packed;
} found;

/* Every operand of the operation is read by a square as well. */
static void differentiate(const elementwise *f, cot_dtype saved, found *to) {
    for (int squared = 0; squared < 2; squared++) {
        cot_tape  *t = cot_tape_create(NULL);
        cot_memory m;
        cot_var    x[3], h[3], z, y;
        float      at[3][N];
        cot_tape_set_precision(t, (cot_precision){.saved = saved});
        for (int k = 0; k < f->operands; k++) {
            for (int i = 0; i < N; i++)
                at[k][i] = (float)(f->lo + (f->hi - f->lo) * ((i * (7 + 4 * k) + k) % N + 0.37) / N);
            x[k] = cot_leaf(cot_data(t, COT_F32, COT_SHAPE(N), at[k]));
        }
        cot_var w = cot_uniform(t, cot_key_of(3), COT_F32, COT_SHAPE(N), 0.5, 1.5);
        cot_scope_open(t, "f");
        for (int k = 0; k < f->operands; k++) h[k] = cot_neg(cot_neg(x[k])), cot_square(h[k]);
        z = f->one ? f->one(h[0]) : f->two ? f->two(h[0], h[1]) : f->three(h[0], h[1], h[2]);
        z = cot_cast(z, COT_F32);
        cot_var other = cot_square(z);
        y = cot_sum(cot_mul(squared ? other : z, w), COT_ALL);
        /* nothing, but each operand has a gradient */
        for (int k = 0; k < f->operands; k++) y = cot_add(y, cot_mul(cot_sum(x[k], COT_ALL), 0.0));
        cot_scope_close(t, 1, &y);
        cot_tape_memory(t, &m, NULL);
        to->packed = m.packed;
        assert_int_equal(cot_backward(y), COT_OK);
        for (int k = 0; k < f->operands; k++) cot_read_grad(x[k], to->g[squared][k], N);
        assert_ok(t);
        cot_tape_destroy(t);
    }
}

static void elementwise_operations(void **state) {
    (void)state;
    static found plain, packed;
    int          wrong = 0, changed = 0;
    for (size_t j = 0; j < sizeof functions / sizeof *functions; j++) {
        const elementwise *f = &functions[j];
        if (f->test) continue;
        differentiate(f, COT_F32, &plain);
        differentiate(f, COT_BF16, &packed);
        bool differs = false;
        for (int squared = 0; squared < 2; squared++)
            for (int k = 0; k < f->operands; k++)
                for (int i = 0; i < N; i++) {
                    double a = packed.g[squared][k][i], b = plain.g[squared][k][i];
                    bool   exact = !squared && !is_product(f->name);
                    differs |= a != b && !isnan(b) && !squared;
                    if (a == b || (!exact && fabs(a - b) <= BOUND * fabs(b)) || (isnan(a) && isnan(b))) continue;
                    if (!wrong++) fprintf(stderr, "%s, operand %d: %g is not %g\n", f->name, k, a, b);
                }
        changed += differs;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(changed, 7); /* all products but abs and relu, whose rules read a sign */
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Where a formula at rounded values would be far off. h: ROWS x COLUMNS, 0.5 … 1.5. */
typedef cot_var function(cot_tape *t, cot_var h);
#define ONE(name, call) static cot_var name(cot_tape *t, cot_var h) { (void)t; return call; }
#define AS(h, ...) cot_reshape(h, COT_SHAPE(__VA_ARGS__))
ONE(product, cot_matmul(h, cot_transpose(h)))
ONE(sum_of_products, cot_einsum("ij,kj->ik", 2, (cot_var[]){h, h}))
ONE(tensor_product, cot_tensordot(h, h, COT_AXES(0), COT_AXES(0)))
ONE(kronecker, cot_kron(h, h))
ONE(inner, cot_dot(AS(h, N), AS(h, N)))
ONE(outer_product, cot_outer(AS(h, N), AS(h, N)))
ONE(convolution, cot_conv1d(AS(h, 1, ROWS, COLUMNS), AS(h, 2, ROWS, 4), COT_CONV_DEFAULT))
ONE(transposed, cot_conv_transpose1d(AS(h, 1, ROWS, COLUMNS), AS(h, ROWS, 2, 4), COT_CONV_DEFAULT))
ONE(largest, cot_max(h, COT_AXES(1)))
ONE(smallest, cot_min(h, COT_ALL))
ONE(sorted, cot_sort(h, 1, false))
ONE(top, cot_topk(h, 3, 1, NULL))
ONE(pooled, cot_max_pool1d(AS(h, 1, ROWS, COLUMNS), COT_POOL(.window = {2})))
ONE(running, cot_cummax(h, 1, false))
ONE(multiplied, cot_prod(h, COT_AXES(1)))
ONE(running_product, cot_cumprod(h, 1, false))
ONE(logarithm, cot_logsumexp(cot_mul(h, 30.0), COT_AXES(1)))
ONE(length, cot_norm(h, 2, COT_AXES(1)))
ONE(soft, cot_softmax(cot_mul(h, 30.0), 1))
ONE(log_soft, cot_log_softmax(cot_mul(h, 30.0), 1))
ONE(normalized, cot_layer_norm(cot_add(cot_mul(h, 0.1), 100.0), COT_NONE, COT_NONE, 1, 1e-5))
ONE(by_squares, cot_rms_norm(h, COT_NONE, 1, 1e-5))
ONE(by_batch, cot_batch_norm(cot_add(cot_mul(h, 0.1), 100.0), COT_AXES(0), COT_NONE, COT_NONE, 1e-5, NULL, NULL))
ONE(attended, cot_attention(cot_mul(h, 30.0), cot_sin(h), cot_cos(h), NULL))
ONE(near_pole, cot_atanh(cot_add(cot_mul(h, 1e-6), 0.9985)))
ONE(saturated, cot_square(cot_tanh(cot_add(cot_mul(h, 0.01), 4.0))))
ONE(dropped, cot_dropout(h, 0.1, cot_key_of(9)))
ONE(masked, cot_where(cot_greater(h, 1.0), h, cot_mul(h, 0.5)))
ONE(larger, cot_maximum(h, cot_flip(h, COT_AXES(1))))
ONE(quotient, cot_div(cot_sub(h, 1.0), h))
ONE(determinant, cot_det(cot_slice(h, 1, 0, ROWS, 1)))
ONE(entropy, cot_softmax_cross_entropy(cot_mul(h, 30.0), cot_softmax(cot_flip(h, COT_AXES(1)), 1)))
ONE(by_logits, cot_bce_with_logits(cot_mul(h, 30.0), cot_number(0.25)))

/* factors: how many rounded values a term of the gradient is a product of; 0: it has the bits that
 * it has without. prod is made of products of two, three deep here; batch_norm of operations that
 * multiply deviations from the mean, which themselves are exact before they are rounded. */
static const struct { const char *name; function *f; int factors; } others[] = {
    {"matmul", product, 2}, {"einsum", sum_of_products, 2}, {"tensordot", tensor_product, 2},
    {"kron", kronecker, 2}, {"dot", inner, 2}, {"outer", outer_product, 2},
    {"conv1d", convolution, 2}, {"conv_transpose1d", transposed, 2},
    {"max", largest, 0}, {"min", smallest, 0}, {"sort", sorted, 0}, {"topk", top, 0},
    {"max_pool1d", pooled, 0}, {"cummax", running, 0}, {"prod", multiplied, 3},
    {"cumprod", running_product, 0}, {"logsumexp", logarithm, 0}, {"norm", length, 0},
    {"softmax", soft, 0}, {"log_softmax", log_soft, 0}, {"layer_norm", normalized, 0},
    {"rms_norm", by_squares, 0}, {"batch_norm", by_batch, 3}, {"attention", attended, 0},
    {"atanh near 1", near_pole, 0}, {"tanh at 4", saturated, 0}, {"dropout", dropped, 0},
    {"where", masked, 0}, {"maximum", larger, 0}, {"div", quotient, 0},
    {"det", determinant, 0}, {"softmax_cross_entropy", entropy, 0}, {"bce_with_logits", by_logits, 0},
};

static void differentiate_other(function *f, cot_dtype saved, double *g) {
    cot_tape *t = cot_tape_create(&(cot_options){.smooth = true});
    cot_tape_set_precision(t, (cot_precision){.saved = saved});
    cot_var x = cot_leaf(cot_uniform(t, cot_key_of(5), COT_F32, COT_SHAPE(ROWS, COLUMNS), 0.5, 1.5));
    cot_scope_open(t, "f");
    cot_var h = cot_neg(cot_neg(x)), z = f(t, h);
    cot_square(h);
    cot_scope_close(t, 1, &z);
    cot_var w = cot_uniform(t, cot_key_of(6), COT_F32, cot_shape_of(z), 0.5, 1.5);
    assert_int_equal(cot_backward(cot_sum(cot_mul(z, w), COT_ALL)), COT_OK);
    cot_read_grad(x, g, N);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void operations_over_whole_arrays(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t j = 0; j < sizeof others / sizeof *others; j++) {
        double a[N], b[N];
        bool   same = true;
        differentiate_other(others[j].f, COT_BF16, a);
        differentiate_other(others[j].f, COT_F32, b);
        double largest = 0; /* terms may have either sign, and are no larger than a few of these */
        for (int i = 0; i < N; i++) largest = fmax(largest, fabs(b[i]));
        for (int i = 0; i < N; i++) {
            same &= a[i] == b[i];
            if (fabs(a[i] - b[i]) <= others[j].factors * BOUND / 2 * largest) continue;
            if (!wrong++) fprintf(stderr, "%s: %g is not %g\n", others[j].name, a[i], b[i]);
        }
        if (same != (others[j].factors == 0)) fprintf(stderr, "%s: nothing is rounded\n", others[j].name), wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise_operations),
        cmocka_unit_test(operations_over_whole_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
