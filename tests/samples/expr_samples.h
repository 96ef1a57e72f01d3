/* expr_samples.h: a call in an expression for every function of the library, for tests that loop
 * over all of them.
 *
 * A new function needs a sample here; without one test_expr_calls fails. */
#ifndef COT_EXPR_SAMPLES_H
#define COT_EXPR_SAMPLES_H

#include "expr/program.h"
#include "support/tape_test.h"

/* x is a scalar, v (3), A (2,3), S (3,3) positive definite, i two positions, m a mask (3), q
 * (2,3,4), b (1,2,6) or with more spatial axes. */
static const char prelude[] =
    "A = reshape(linspace(0.1, 0.6, 6), [2, 3]) + x; v = A[0]; S = A.T @ A + eye(3); i = [0, 2]; m = v > 0.65;"
    "q = reshape(linspace(-1, 1, 24), [2, 3, 4]) * x; b = reshape(linspace(-1, 1, 12), [1, 2, 6]) * x;"
    "b2 = b[:, :, None]; b3 = b2[:, :, None];";

/* Functions with names of their own in C are called by Python's names here: keywords, mostly. */
static const struct { const char *name, *text; } call_samples[] = {
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
    {"to_dense", "to_dense([1, x])"},
    {"zeros_like", "zeros_like(A)"},
    {"ones_like", "ones_like(A, dtype=int32)"},
    {"full_like", "full_like(A, 2)"},
    {"floor_divide", "floor_divide(A, 0.25)"},
};

static inline const char *call_sample(const cot__callee *f, char *buf, size_t size) {
    if (f->elementwise) {
        static const char *const arguments[] = {"x", "x, 0.25", "x, 0.25, 2"};
        snprintf(buf, size, "%s(%s)", f->name, arguments[f->n - 1]);
        return buf;
    }
    for (int i = 0; i < COUNTOF(call_samples); i++) {
        const cot__callee *s = cot__find_callee(call_samples[i].name, strlen(call_samples[i].name));
        assert_non_null(s);
        if (s->call != f->call) continue;
        snprintf(buf, size, "%s%s%s", prelude, f->name, call_samples[i].text + strlen(call_samples[i].name));
        return buf;
    }
    fail_msg("%s has no sample: add a call of it to `call_samples` in tests/samples/expr_samples.h", f->name);
    return NULL;
}

#endif
