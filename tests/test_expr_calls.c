/* Every function of the library can be called in an expression: a loop over the table, and a sample for each that is not elementwise. */
#include "expr/program.h"
#include "tape_test.h"

/* x is a scalar, v (3), A (2,3), S (3,3) positive definite, i two positions, m a mask (3), q (2,3,4), b (1,2,6) or with more spatial axes. */
static const char prelude[] = "A = reshape(linspace(0.1, 0.6, 6), [2, 3]) + x; v = A[0]; S = A.T @ A + eye(3); i = [0, 2]; m = v > 0.65;"
                              "q = reshape(linspace(-1, 1, 24), [2, 3, 4]) * x; b = reshape(linspace(-1, 1, 12), [1, 2, 6]) * x;"
                              "b2 = b[:, :, None]; b3 = b2[:, :, None];";

/* What C's functions are named in their own ways is called by Python's names here: keywords, mostly. */
static const struct { const char *name, *text; } samples[] = {
    {"cast", "cast(A, dtype=float32)"},
    {"sum", "sum(x=A, axis=0, keepdims=True)"},
    {"mean", "mean(A, axis=(0, 1))"},
    {"prod", "prod(A, axis=1)"},
    {"max", "max(A, axis=None)"},
    {"min", "min(A, axis=-1)"},
    {"argmax", "argmax(A, axis=1)"},
    {"argmin", "argmin(A)"},
    {"variance", "variance(A, axis=0)"},
    {"std", "std(A, axis=0, keepdims=True)"},
    {"logsumexp", "logsumexp(A, axis=1)"},
    {"norm", "norm(A, ord=3, axis=1)"},
    {"any", "any(A > 1, axis=0)"},
    {"all", "all(A > 0)"},
    {"sum_of", "sum_of([x, 2, x])"},
    {"logsumexp_of", "logsumexp_of([x, 2, x])"},
    {"dot_of", "dot_of([x, 2], [3, x])"},
    {"reshape", "reshape(A, shape=(3, 2))"},
    {"copy", "copy(A)"},
    {"transpose", "transpose(q, axes=(2, 0, 1))"},
    {"permute", "permute(q, order=(2, 0, 1))"},
    {"broadcast_to", "broadcast_to(v, [4, 3])"},
    {"expand_dims", "expand_dims(v, axis=1)"},
    {"squeeze", "squeeze(v[None])"},
    {"concat", "concat([v, A[1]], axis=0)"},
    {"stack", "stack([v, A[1]], axis=1)"},
    {"slice", "slice(A, axis=1, start=0, step=2)"},
    {"index", "index(A, 1, i=-1)"},
    {"pad", "pad(v, pad_width=(1, 2), constant_values=7)"},
    {"flip", "flip(A, axis=1)"},
    {"take", "take(A, i, axis=1)"},
    {"take_along_axis", "take_along_axis(A, [[0, 2], [1, 1]], axis=1)"},
    {"scatter_add", "scatter_add(v, i, [x, 2*x])"},
    {"one_hot", "one_hot(i, num_classes=3)"},
    {"roll", "roll(A, 1, axis=1)"},
    {"tile", "tile(v, reps=[2, 1])"},
    {"repeat", "repeat(A, repeats=2, axis=0)"},
    {"diag", "diag(v, k=1)"},
    {"tril", "tril(S)"},
    {"triu", "triu(S, k=-1)"},
    {"trace", "trace(S)"},
    {"kron", "kron(A, v[None])"},
    {"gather", "gather(A, [[0, 1], [1, 2]])"},
    {"scatter", "scatter(v, i, [x, 2*x], axis=0)"},
    {"compress", "compress(m, A, axis=1)"},
    {"compress_to", "compress_to(A, m, size=3, axis=1, fill=9)"},
    {"masked_select", "masked_select(v, m)"},
    {"cumsum", "cumsum(A, axis=1, reverse=True)"},
    {"cumprod", "cumprod(A)"},
    {"cummax", "cummax(A, axis=1)"},
    {"cummin", "cummin(A)"},
    {"sort", "sort(A, descending=True)"},
    {"argsort", "argsort(A, axis=0)"},
    {"topk", "topk(A, k=2)[0]"},
    {"searchsorted", "searchsorted(v, x, right=True)"},
    {"matmul", "matmul(A, v)"},
    {"dot", "dot(v, v)"},
    {"outer", "outer(v, i)"},
    {"einsum", "einsum('ij,ij->i', A, A)"},
    {"tensordot", "tensordot(A, A, axes=([1], [1]))"},
    {"fft", "fft(q[:, :, :2], n=4)"},
    {"ifft", "ifft(q[:, :, :2])"},
    {"rfft", "rfft(A, n=None)"},
    {"irfft", "irfft(q[:, :, :2], axis=-1)"},
    {"fft_convolve", "fft_convolve(v, v, mode='same')"},
    {"solve", "solve(S, v)"},
    {"triangular_solve", "triangular_solve(S, v, upper=True, transposed=True)"},
    {"inv", "inv(S)"},
    {"det", "det(S)"},
    {"cholesky", "cholesky(S)"},
    {"eigvalsh", "eigvalsh(S)"},
    {"svdvals", "svdvals(A)"},
    {"lstsq", "lstsq(A.T, v)"},
    {"matrix_exp", "matrix_exp(S)"},
    {"softmax", "softmax(A)"},
    {"log_softmax", "log_softmax(A, axis=0)"},
    {"softmax_cross_entropy", "softmax_cross_entropy(A, [0, 2])"},
    {"cross_entropy", "cross_entropy(softmax(A), [0, 2])"},
    {"mse", "mse(A, 1)"},
    {"attention", "attention(q, q, q, causal=True, scale=0.5, bias=q[:, :, :3])"},
    {"conv1d", "conv1d(b, ones([2, 1, 3]), stride=2, padding=[1], groups=2)"},
    {"conv2d", "conv2d(b2, ones([1, 2, 1, 3]), dilation=[1, 2])"},
    {"conv3d", "conv3d(b3, ones([1, 2, 1, 1, 3]), padding_before=[0, 0, 2])"},
    {"conv_transpose1d", "conv_transpose1d(b, ones([2, 1, 3]), stride=2, output_padding=1)"},
    {"conv_transpose2d", "conv_transpose2d(b2, ones([2, 1, 1, 3]))"},
    {"conv_transpose3d", "conv_transpose3d(b3, ones([2, 1, 1, 1, 3]))"},
    {"max_pool1d", "max_pool1d(b, window=2)"},
    {"max_pool2d", "max_pool2d(b2, window=[1, 3], stride=[1, 2], ceil_mode=True)"},
    {"max_pool3d", "max_pool3d(b3, window=[1, 1, 2])"},
    {"avg_pool1d", "avg_pool1d(b, 2, padding=1, exclude_padding=True)"},
    {"avg_pool2d", "avg_pool2d(b2, window=[1, 2], stride=None)"},
    {"avg_pool3d", "avg_pool3d(b3, window=[1, 1, 2])"},
    {"zeros", "zeros([2, 2], dtype=float32)"},
    {"ones", "ones((2,), 'int64')"},
    {"full", "full([2], fill_value=3)"},
    {"arange", "arange(1, 9, step=2)"},
    {"linspace", "linspace(0, 1, num=5)"},
    {"eye", "eye(2, 3)"},
    {"layer_norm", "layer_norm(A, weight=v, eps=1e-3)"},
    {"rms_norm", "rms_norm(A)"},
    {"group_norm", "group_norm(b, groups=2, weight=[1., 2.], bias=None)"},
    {"batch_norm", "batch_norm(b, axis=[0, 2])"},
    {"batch_norm_inference", "batch_norm_inference(b, [0, 2], [0., 1.], [1., 2.])"},
    {"embedding", "embedding(A, [1, 0, 1], padding=0)"},
    {"bce_with_logits", "bce_with_logits(A, 1)"},
    {"nll", "nll(log_softmax(A), [0, 2])"},
    {"huber", "huber(A, 0.5, delta=0.1)"},
    {"kl_div", "kl_div(log_softmax(A), softmax(2*A))"},
    {"cosine_similarity", "cosine_similarity(A, 2*A)"},
    {"uniform", "uniform(1, [3], minval=-1, maxval=2)"},
    {"normal", "normal(key=2, shape=3)"},
    {"gumbel", "gumbel(3, [2])"},
    {"bernoulli", "bernoulli(4, 0.5, [4])"},
    {"categorical", "categorical(5, A, axis=1)"},
    {"permutation", "permutation(6, 5)"},
    {"shuffle", "shuffle(7, v)"},
    {"dropout", "dropout(A, rate=0.5, key=8)"},
    {"detach", "detach(A)"},
    {"qr", "qr(S)[1]"},
    {"lu", "lu(S)[2]"},
    {"eigh", "eigh(S)[0]"},
    {"svd", "svd(A)[1]"},
    {"slogdet", "slogdet(S)[1]"},
    {"split", "split(v, parts=3)[2]"},
    {"array", "array([1, x], dtype='float32')"},
    {"zeros_like", "zeros_like(A)"},
    {"ones_like", "ones_like(A, dtype=int32)"},
    {"full_like", "full_like(A, 2)"},
    {"floor_divide", "floor_divide(A, 0.25)"},
};

static const char *sample(const cot__callee *f, char *buf, size_t size) {
    if (f->elementwise) {
        static const char *const arguments[] = {"x", "x, 0.25", "x, 0.25, 2"};
        snprintf(buf, size, "%s(%s)", f->name, arguments[f->n - 1]);
        return buf;
    }
    for (int i = 0; i < COUNTOF(samples); i++) {
        const cot__callee *s = cot__find_callee(samples[i].name, strlen(samples[i].name));
        assert_non_null(s);
        if (s->call != f->call) continue;
        snprintf(buf, size, "%s%s%s", prelude, f->name, samples[i].text + strlen(samples[i].name));
        return buf;
    }
    fail_msg("%s has no sample", f->name);
    return NULL;
}

static void every_function_can_be_called(void **state) {
    (void)state;
    assert_true(cot__callee_count > 200);
    for (int i = 0; i < cot__callee_count; i++) {
        char            text[1000];
        cot__expr_error error;
        cot_tape       *t = cot_tape_create(NULL);
        cot__expr_input x = {"x", cot_scalar(t, 0.5)};
        sample(&cot__callees[i], text, sizeof text);
        cot__expr *e = cot__expr_parse(text, strlen(text), &error);
        cot_var    z = e ? cot__expr_run(e, t, 1, &x, &error, NULL, NULL) : COT_NONE;
        if (!cot_is_valid(z)) fail_msg("%s: column %d: %s", text, error.column, error.message);
        assert_int_equal(cot_tape_check(t, NULL, 0), COT_OK);
        cot__expr_free(e);
        cot_tape_destroy(t);
    }
}

/* The order in which the table is searched, and that all of it is found. */
static void every_function_is_found_by_its_name(void **state) {
    (void)state;
    for (int i = 0; i < cot__callee_count; i++) {
        const cot__callee *f = &cot__callees[i];
        assert_ptr_equal(cot__find_callee(f->name, strlen(f->name)), f);
        assert_string_equal(cot__expr_function_name(i), f->name);
    }
    assert_null(cot__find_callee("su", 2));
    assert_null(cot__find_callee("summ", 4));
    assert_null(cot__expr_function_name(cot__callee_count));
}

static void signatures_are_those_of_numpy(void **state) {
    (void)state;
    char buf[400];
    assert_string_equal(cot__expr_signature("sum", buf, sizeof buf), "sum(x, axis=None, keepdims=False)");
    assert_string_equal(cot__expr_signature("zeros", buf, sizeof buf), "zeros(shape, dtype=float64)");
    assert_string_equal(cot__expr_signature("einsum", buf, sizeof buf), "einsum(subscripts, *xs)");
    assert_string_equal(cot__expr_signature("var", buf, sizeof buf), "var(x, axis=None, keepdims=False)");
    assert_string_equal(cot__expr_signature("where", buf, sizeof buf), "where(condition, x, y)");
    assert_string_equal(cot__expr_signature("arctan2", buf, sizeof buf), "arctan2(y, x)");
    assert_string_equal(cot__expr_signature("polygamma", buf, sizeof buf), "polygamma(n, x)");
    assert_string_equal(cot__expr_signature("clip", buf, sizeof buf), "clip(x, min, max)");
    assert_null(cot__expr_signature("nothing", buf, sizeof buf));
}

/* The argument reaches the C parameter it is named after: results against direct calls. */
static void arguments_reach_their_parameters(void **state) {
    (void)state;
    static const struct { const char *text; double want; } cases[] = {
        {"sum(attention(q, q, q, causal=True) - attention(q, q, q, mask=tril(ones([3, 3])) > 0))", 0},
        {"sum(layer_norm([1., 3.], eps=3, axis=0)[1:])", 0.5},
        {"sum(compress_to(array([1., 2., 3.]), [True, False, True], 4, fill=10))", 24},
        {"sum(triangular_solve(array([[2., 9.], [1., 4.]]), [2., 8.])) - (1 + 1.75)", 0},
        {"sum(triangular_solve(array([[2., 1.], [9., 4.]]), [4., 8.], upper=True)) - (1 + 2)", 0},
        {"sum(triangular_solve(array([[2., 9.], [1., 4.]]), [2., 8.], unit_diagonal=True)) - (2 + 6)", 0},
        {"sum(triangular_solve(array([[2., 9.], [1., 4.]]), [[3., 8.]], right=True)) - (0.5 + 2)", 0},
        {"sum(pad(array([1.]), (1, 2), constant_values=5))", 16},
        {"sum(uniform(1, [9], minval=3, maxval=3.000001) > 2.9)", 9},
        {"sum(cumsum(array([1, 2, 3]), reverse=True) == array([6, 5, 3]))", 3},
        {"sum(avg_pool1d(array([[2., 4.]]), 2, padding=1))", 1 + 2},
        {"sum(avg_pool1d(array([[2., 4.]]), 2, padding=1, exclude_padding=True))", 2 + 4},
        {"sum(conv1d(array([[[1., 2., 3., 4.]]]), array([[[1., 10.]]]), stride=2, padding_after=2))", 21 + 43},
        {"sum(conv1d(array([[[1., 2., 3., 4.]]]), array([[[1., 10.]]]), dilation=3))", 41},
        {"dropout(ones([1]), 0.0, 1)[0]", 1},
        {"sum(searchsorted(array([1., 2., 2., 3.]), array([2., 2.]), right=True))", 6},
    };
    for (int i = 0; i < COUNTOF(cases); i++) {
        char            text[1000];
        cot__expr_error error;
        cot_tape       *t = cot_tape_create(NULL);
        cot__expr_input x = {"x", cot_scalar(t, 0.5)};
        snprintf(text, sizeof text, "%s%s", prelude, cases[i].text);
        cot__expr *e = cot__expr_parse(text, strlen(text), &error);
        cot_var    z = e ? cot__expr_run(e, t, 1, &x, &error, NULL, NULL) : COT_NONE;
        if (!cot_is_valid(z)) fail_msg("%s: column %d: %s", text, error.column, error.message);
        if (!(fabs(cot_value(z) - cases[i].want) < 1e-14)) fail_msg("%s is %.17g, not %g", cases[i].text, cot_value(z), cases[i].want);
        cot__expr_free(e);
        cot_tape_destroy(t);
    }
}

/* Each parameter of each function gets what it was not made for: a sentence or a value, never a crash, and nothing left behind. */
static void odd_arguments_are_refused_or_computed(void **state) {
    (void)state;
    static const char *const odd[] = {"x", "A", "v", "None", "0", "-1", "2", "1.5", "nan", "inf", "[]", "[[]]", "[0, 1]", "[[1, 2], [3, 4]]", "[x, v]",
                                      "'ij->ji'", "''", "f32", "bool", "True", "9223372036854775807", "-9223372036854775807", "1e300", "m", "q",
                                      "zeros([0, 3])", "[1, 1, 1, 1]", "(3, -1)", "S * nan", "S * inf", "i", "[[[[1.]]]]", "1000000", "cast(A, f16)"};
    uint64_t                 seed = 1;
    const char              *quick = getenv("COT_TEST_SMALL");
    for (int i = 0; i < cot__callee_count; i++) {
        for (int round = 0; round < (quick ? 20 : 150); round++) {
            const cot__callee *f = &cot__callees[i];
            char               text[2000];
            int                n = snprintf(text, sizeof text, "%s%s(", prelude, f->name);
            for (int k = 0; k < f->n; k++) {
                seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                bool first = k == 0 && (seed >> 50) % 2; /* often what it takes, so that the others are looked at */
                if (k > 0 && f->parameter[k].fallback && (seed >> 40) % 3 == 0) break;
                n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", k ? ", " : "", first ? "A" : odd[(seed >> 33) % COUNTOF(odd)]);
            }
            snprintf(text + n, sizeof text - (size_t)n, ")");
            counting        c = {.fail_from_size = 1 << 20};
            cot_tape       *t = cot_tape_create(&(cot_options){.allocator = {counting_alloc, &c}});
            cot__expr_error error;
            cot__expr_input x = {"x", cot_scalar(t, 0.5)};
            cot__expr      *e = cot__expr_parse(text, strlen(text), &error);
            if (!e) fail_msg("%s: %s", text, error.message);
            cot_var z = cot__expr_run(e, t, 1, &x, &error, NULL, NULL);
            if (!cot_is_valid(z) && (!error.message[0] || error.column < 1 || strstr(error.message, "knows no reason")))
                fail_msg("%s: column %d: %s", text, error.column, error.message);
            cot_tape_clear_error(t);
            if (cot_tape_check(t, NULL, 0) != COT_OK) fail_msg("%s leaves a broken tape", text);
            cot__expr_free(e);
            cot_tape_destroy(t);
            assert_int_equal(c.blocks, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_can_be_called),
        cmocka_unit_test(every_function_is_found_by_its_name),
        cmocka_unit_test(signatures_are_those_of_numpy),
        cmocka_unit_test(arguments_reach_their_parameters),
        cmocka_unit_test(odd_arguments_are_refused_or_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
