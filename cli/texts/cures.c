/* cures.c: a table of advice, and the operations that findings name. */
#include "texts/cures.h"

#include <stdio.h>
#include <string.h>

typedef struct cure {
    ailment     what;
    const char *ops; /* their names, with a blank on each side; NULL: all others */
    const char *text;
    const char *in_f32; /* where other numbers are small beside 1; NULL: the same text */
} cure;

static const cure table[] = {
    {NOT_FINITE, " log log2 log10 ",
     "Keep the argument above 0: log(x + 1e-12) for x >= 0; log(clamp(x, 1e-12, inf)) is finite too, but has no "
     "gradient below the bound. Of softmax(x) write log_softmax(x), of sigmoid(x) log_sigmoid(x), of sum(exp(x)) "
     "logsumexp(x), of 1 + x log1p(x), which is exact for small x too. Where a branch is not used, choose its "
     "argument, not its result: log(where(x > 0, x, 1)).", NULL},
    {NOT_FINITE, " log1p ",
     "Keep the argument above -1: log1p(clamp(x, -1 + 1e-12, inf)).",
     "Keep the argument above -1: log1p(clamp(x, -1 + 1e-6, inf))."},
    {NOT_FINITE, " sqrt rsqrt cbrt norm std pow ",
     "Keep the argument above 0: sqrt(x + 1e-12), or sqrt(where(x > 0, x, 1)) where that branch is not used. "
     "Of x**2 + y**2 write hypot(x, y), which neither overflows nor has an infinite derivative at 0. A power "
     "of a negative number is real only for whole exponents.", NULL},
    {NOT_FINITE, " div reciprocal fmod remainder sdiv ",
     "Keep the divisor away from 0: x/(y + 1e-12) for y >= 0, or x/where(y == 0, 1, y) where that branch is "
     "not used.", NULL},
    {NOT_FINITE, " exp exp2 expm1 sinh cosh ",
     "exp overflows beyond 709 (f32: 88). Write logsumexp(x) for log(sum(exp(x))), softmax(x) for "
     "exp(x)/sum(exp(x)), sigmoid(x) for 1/(1 + exp(-x)), softplus(x) for log(1 + exp(x)), expm1(x) for "
     "exp(x) - 1; or clamp(x, -50, 50). In a fit or a training run, take a smaller step or another start.", NULL},
    {NOT_FINITE, " asin acos atanh erfinv ",
     "Keep the argument inside of -1 to 1: clamp(x, -1 + 1e-12, 1 - 1e-12).",
     "Keep the argument inside of -1 to 1: clamp(x, -1 + 1e-6, 1 - 1e-6)."},
    {NOT_FINITE, " acosh ",
     "Keep the argument above 1: acosh(clamp(x, 1 + 1e-12, inf)).",
     "Keep the argument above 1: acosh(clamp(x, 1 + 1e-6, inf))."},
    {NOT_FINITE, " leaf constant parameter ",
     "It was given so: look at the data; where(isfinite(x), x, 0) leaves such elements out.", NULL},
    {NOT_FINITE, " cholesky ",
     "The matrix is not positive definite. If only rounding made it so, add a little to its diagonal, A + "
     "1e-9*eye(n). One with a negative eigenvalue (eigvalsh(A) lists them) has no such factor: add more than that "
     "eigenvalue, or take solve(A, b), lu(A) or eigh(A) instead.",
     "The matrix is not positive definite. If only rounding made it so, add a little to its diagonal, A + "
     "1e-6*eye(n). One with a negative eigenvalue (eigvalsh(A) lists them) has no such factor: add more than that "
     "eigenvalue, or take solve(A, b), lu(A) or eigh(A) instead."},
    {NOT_FINITE, " solve lu_solve triangular_solve inv det lstsq lu lu_factors logabsdet cofactors "
                 "eigh svd qr ",
     "The matrix is singular, or nearly: add a little to its diagonal, A + 1e-9*eye(n), or solve by lstsq(A, "
     "b).",
     "The matrix is singular, or nearly: add a little to its diagonal, A + 1e-6*eye(n), or solve by lstsq(A, "
     "b)."},
    {NOT_FINITE, " mul add sub square sum mean prod matmul dot cumsum cumprod sum_of dot_of einsum variance "
                 "fma smul ",
     "The numbers grow too large, or infinities cancel: divide by the largest first, add logarithms instead "
     "of multiplying (logsumexp, logaddexp), or take a smaller step.", NULL},
    {NOT_FINITE, NULL,
     "Keep its operands where it is finite: clamp(x, low, high), or where(condition, x, harmless) before it, "
     "not behind it.", NULL},
    {CUT, " relu selu elu leaky_relu ",
     "On the flat side nothing is learned: leaky_relu(x, 0.01), softplus(x) or gelu(x) let something through; "
     "or begin at another point, with a smaller step.", NULL},
    {CUT, " sigmoid tanh hard_sigmoid erf softmax log_softmax log_sigmoid ",
     "It is saturated: make its argument smaller (x/10, layer_norm(x), another start), or write the loss of "
     "the argument itself: bce_with_logits(x, t), softmax_cross_entropy(x, labels).", NULL},
    {CUT, " clamp minimum maximum max min max_pool ",
     "Beyond the bound, or below the winner, nothing depends on it: widen the bounds, or take a smooth one: "
     "softplus(x), logsumexp(x), logaddexp(x, y). To keep a logarithm finite, log(x + 1e-12) or log(softplus(x)) has "
     "a gradient where log(clamp(x, 1e-12, inf)) has none.", NULL},
    {CUT, " where ",
     "The other branch was chosen at this point: try a point on its side, or mix the two: lerp(a, b, "
     "sigmoid(k*x)).", NULL},
    {CUT, " mul smul div sdiv dot matmul ",
     "The other factor is 0 here, or the divisor infinite: the function is flat to first order, and another "
     "point, or hess, tells more.", NULL},
    {CUT, " floor ceil round trunc sign equal not_equal less less_equal greater greater_equal argmax argmin "
          "argsort one_hot logical_and logical_or logical_not any all cast ",
     "Steps are flat: take a smooth one, sigmoid(k*x) for x > 0, tanh(k*x) for sign(x), softmax(k*x) for a "
     "one-hot argmax.", NULL},
    {CUT, " detach ",
     "detach (stop_gradient) was asked for: leave it out where the gradient is wanted.", NULL},
    {CUT, NULL,
     "What arrives cancels, or is flat at this point: try another one.", NULL},
    {KINK, " abs relu leaky_relu elu selu hard_sigmoid clamp maximum minimum max min hypot norm atan2 sort "
           "topk std max_pool cosine_similarity cummax cummin huber argsort ",
     "At a corner the derivative is a convention: move the point a little, or round it off: hypot(x, 1e-6) "
     "for abs(x), softplus(k*x)/k for relu(x), logaddexp(k*x, k*y)/k for maximum(x, y).", NULL},
    {KINK, " eigh eigvalsh svd svdvals ",
     "Where eigenvalues are equal, single vectors are not determined: use what does not depend on their order "
     "(trace, det, a norm), or make them differ: A + diag(1e-9*arange(n)).",
     "Where eigenvalues are equal, single vectors are not determined: use what does not depend on their order "
     "(trace, det, a norm), or make them differ: A + diag(1e-6*arange(n))."},
    {KINK, " sign floor ceil round trunc fmod remainder ",
     "The value leaps here, and its derivative does not say so: move the point, or take a smooth step, "
     "tanh(k*x).", NULL},
    {ZERO_WINS, NULL,
     "where() and factors of 0 come after the infinite derivative, which does not count then. To be safe in "
     "every tool choose the argument, not the result: log(where(x > 0, x, 1)).", NULL},
};
enum { CURES = sizeof table / sizeof *table };

static bool names(const char *ops, const char *op) {
    char word[80];
    if (!ops) return true;
    snprintf(word, sizeof word, " %.60s ", op);
    return strstr(ops, word) != NULL;
}

/* Poles, where the derivative at the kink is infinite, have the cures of values that are not
 * finite. */
const char *cure_of(ailment what, const char *op, bool f32) {
    for (int k = 0; k < CURES; k++)
        if (table[k].what == what && names(table[k].ops, op))
            return f32 && table[k].in_f32 ? table[k].in_f32 : table[k].text;
    return cure_of(NOT_FINITE, op, f32);
}

static int add(const char *text, const char **cures, int n) {
    for (int k = 0; k < n; k++)
        if (cures[k] == text) return n;
    if (n < CURES_MOST) cures[n++] = text;
    return n;
}

/* The name before " (": of "element [1] of log (v₂)" it is log. */
static int add_named(ailment what, const char *at, bool f32, const char **cures, int n) {
    char        op[64];
    const char *end = strstr(at, " ("), *begin = end;
    if (!end) return n;
    while (begin > at && begin[-1] != ' ') begin--;
    snprintf(op, sizeof op, "%.*s", (int)(end - begin), begin);
    return add(cure_of(what, op, f32), cures, n);
}

int cures_find(const char *explanation, const char *report, bool f32, const char *cures[CURES_MOST]) {
    static const struct {
        const char *phrase;
        ailment     what;
    } said[] = {{" The first value that is not finite is ", NOT_FINITE}, {" It became so at ", NOT_FINITE},
                {" It is cut at ", CUT}, {" It gets only zeros from ", CUT}};
    int n = 0;
    for (size_t k = 0; k < sizeof said / sizeof *said; k++)
        for (const char *p = explanation; (p = strstr(p, said[k].phrase));)
            n = add_named(said[k].what, p += strlen(said[k].phrase), f32, cures, n);
    for (const char *line = report, *end; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        size_t      length = end ? (size_t)(end - line) : strlen(line);
        char        text[512];
        snprintf(text, sizeof text, "%.*s", length < 500 ? (int)length : 500, line);
        bool zero = strstr(text, ": the zero wins.") != NULL;
        n = add_named(zero ? NOT_FINITE : KINK, text, f32, cures, n);
        if (zero) n = add_named(ZERO_WINS, text, f32, cures, n);
    }
    return n;
}
