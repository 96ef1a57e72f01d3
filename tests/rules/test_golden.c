/* Compares every operation with JAX and PyTorch: values, dtypes, shapes, gradients, directional and
 * higher derivatives. */
/* ctest: timeout=120 */
/* The cases are text, golden/NAME.txt; golden/make_golden.py wrote them and describes the format. A
 * case names an operation of rules.def or functions.def. A case with an unknown name fails, and so
 * does an operation without a case.
 *
 * Tolerances. Both sides round at every step, so the answers differ by the sum of the effects of
 * all roundings. The script measures this: the scale beside a number says how far it moves, at
 * most, when every intermediate result of the reference computation is off by one relative unit.
 * Cancellation and ill-conditioned steps are included. In each library a step may be off by up to 4
 * units (the promise of special.h for its functions; others are better), and our steps are not JAX's
 * steps. So the default is 2 · 4 units of the result's dtype times the scale. A case may ask for
 * another number (ulps=) with its reason in the script, or for equality (exact=1): moved, chosen
 * and counted elements. Integers, bools, NaNs and infinities are equal or wrong. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cotangent.h>

#include "rules/elementwise_ids.h"
#include "ops/elementwise/elementwise.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))
enum { MAX_OPERANDS = 8, MAX_ATTRS = 8, POOL = 1 << 15, LINE = 1 << 16, DEFAULT_ULPS = 8 };

/* ---- a case ---------------------------------------------------------------------------------- */

typedef struct numbers {
    int64_t n;     /* -1: not given */
    double *value;
    double *scale; /* NULL: the magnitude of the value */
} numbers;

typedef struct operand {
    enum { LEAF, CONSTANT, NUMBER, INTEGER } kind;
    cot_dtype dtype;
    cot_shape shape;
    numbers   a;
} operand;

typedef struct golden {
    char      name[80], op[40];
    char      key[MAX_ATTRS][16], text[MAX_ATTRS][64];
    int       attrs, n;
    operand   in[MAX_OPERANDS];
    cot_dtype dtype;
    cot_shape shape;
    numbers   out, ct, jvp, orders, grad[MAX_OPERANDS], tan[MAX_OPERANDS], hvp[MAX_OPERANDS], third[MAX_OPERANDS];
    /* while it runs */
    cot_tape *t;
    cot_var   leaf[MAX_OPERANDS]; /* the operands as they were made */
    cot_var   x[MAX_OPERANDS];    /* the same as the operation takes them: perhaps a view */
    int       failures;
} golden;

static double pool[POOL];
static int    pooled;

/* ---- reading --------------------------------------------------------------------------------- */

static numbers read_numbers(const char *s) {
    numbers r = {0, pool + pooled, NULL};
    char   *end;
    for (;; s = end) {
        double v = strtod(s, &end);
        if (end == s) break;
        assert_true(pooled < POOL);
        pool[pooled++] = v;
        r.n++;
    }
    assert_true(*(s += strspn(s, " \n")) == '\0');
    return r;
}

static cot_dtype dtype_named(const char *s) {
    for (int d = 0; d < COT_DTYPE_COUNT; d++)
        if (strcmp(cot_dtype_name((cot_dtype)d), s) == 0) return (cot_dtype)d;
    fail_msg("no dtype is called %s", s);
    return COT_F64;
}

/* "2,3" or "()" */
static cot_shape shape_from(const char *s) {
    cot_shape shape = {0, {0}};
    if (*s == '(') return shape;
    for (char *end; *s; s = *end == ',' ? end + 1 : end) {
        shape.dim[shape.ndim++] = strtoll(s, &end, 10);
        assert_true(end != s && shape.ndim <= COT_MAX_NDIM);
    }
    return shape;
}

/* "f64 2,3 : 1 2 3 4 5 6" */
static numbers read_typed(const char *s, cot_dtype *dtype, cot_shape *shape) {
    char d[8], e[64];
    int  used = 0;
    assert_int_equal(sscanf(s, "%7s %63s : %n", d, e, &used), 2);
    assert_true(used > 0);
    *dtype = dtype_named(d);
    *shape = shape_from(e);
    numbers r = read_numbers(s + used);
    int64_t n = 1;
    for (int k = 0; k < shape->ndim; k++) n *= shape->dim[k];
    assert_int_equal(r.n, n);
    return r;
}

static void read_attrs(golden *g, char *s) {
    for (char *word = strtok(s, " \n"); word; word = strtok(NULL, " \n")) {
        char *is = strchr(word, '=');
        assert_true(is && g->attrs < MAX_ATTRS && is - word < 16 && strlen(is) < 64);
        snprintf(g->key[g->attrs], sizeof g->key[0], "%.*s", (int)(is - word), word);
        snprintf(g->text[g->attrs++], sizeof g->text[0], "%s", is + 1);
    }
}

/* Reads up to the end of the next case; false at the end of the file. */
static bool read_case(FILE *f, golden *g) {
    static char line[LINE];
    numbers    *last = NULL;
    memset(g, 0, sizeof *g);
    pooled = 0;
    numbers *lists[] = {g->grad, g->tan, g->hvp, g->third};
    g->out.n = g->ct.n = g->jvp.n = g->orders.n = -1;
    for (int k = 0; k < COUNT(lists) * MAX_OPERANDS; k++) lists[k / MAX_OPERANDS][k % MAX_OPERANDS].n = -1;
    while (fgets(line, sizeof line, f)) {
        char word[16];
        int  used = 0, k = 0, more = 0;
        if (line[0] == '#') continue;
        assert_true(strchr(line, '\n') != NULL && sscanf(line, "%15s %n", word, &used) == 1);
        char *rest = line + used;
        if (sscanf(rest, ": %n", &more) == 0 && more) rest += more;
        if (strcmp(word, "end") == 0) return true;
        if (strcmp(word, "case") == 0) sscanf(rest, "%79s", g->name);
        else if (strcmp(word, "op") == 0) sscanf(rest, "%39s", g->op);
        else if (strcmp(word, "attr") == 0) read_attrs(g, rest);
        else if (strcmp(word, "in") == 0 || strcmp(word, "const") == 0) {
            assert_true(g->n < MAX_OPERANDS);
            operand *o = &g->in[g->n++];
            o->kind = word[0] == 'i' ? LEAF : CONSTANT;
            o->a = read_typed(rest, &o->dtype, &o->shape);
        } else if (strcmp(word, "number") == 0 || strcmp(word, "integer") == 0) {
            assert_true(g->n < MAX_OPERANDS);
            operand *o = &g->in[g->n++];
            o->kind = word[0] == 'n' ? NUMBER : INTEGER;
            o->a = read_numbers(rest);
            assert_int_equal(o->a.n, 1);
        } else if (strcmp(word, "out") == 0) g->out = read_typed(rest, &g->dtype, &g->shape), last = &g->out;
        else if (strcmp(word, "ct") == 0) g->ct = read_numbers(rest), last = &g->ct;
        else if (strcmp(word, "jvp") == 0) g->jvp = read_numbers(rest), last = &g->jvp;
        else if (strcmp(word, "orders") == 0) g->orders = read_numbers(rest), last = &g->orders;
        else if (strcmp(word, "~") == 0) {
            assert_non_null(last);
            numbers scale = read_numbers(rest);
            assert_int_equal(scale.n, last->n);
            last->scale = scale.value;
        } else {
            static const char *const names[] = {"grad", "tan", "hvp", "third"};
            int                      i = 0;
            while (i < COUNT(names) && strcmp(names[i], word) != 0) i++;
            if (i == COUNT(names) || sscanf(rest, "%d : %n", &k, &more) != 1 || k < 0 || k >= g->n)
                fail_msg("%s: what is: %s", g->name, line);
            lists[i][k] = read_numbers(rest + more), last = &lists[i][k];
        }
    }
    assert_true(g->name[0] == '\0');
    return false;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static const char *attr(const golden *g, const char *key) {
    for (int k = 0; k < g->attrs; k++)
        if (strcmp(g->key[k], key) == 0) return g->text[k];
    return NULL;
}

static const char *need(const golden *g, const char *key) {
    const char *s = attr(g, key);
    if (!s) fail_msg("%s: no attribute %s", g->name, key);
    return s;
}

static double    real(const golden *g, const char *key) { return strtod(need(g, key), NULL); }
static int64_t   whole(const golden *g, const char *key) { return strtoll(need(g, key), NULL, 10); }
static int       axis(const golden *g) { return (int)whole(g, "axis"); }
static cot_dtype dtype(const golden *g) { return dtype_named(need(g, "dtype")); }
static cot_shape shape(const golden *g, const char *key) { return shape_from(need(g, key)); }

static cot_axes axes(const golden *g) {
    cot_axes  a = {-1, attr(g, "keep") && whole(g, "keep") != 0, {0}};
    cot_shape s;
    if (strcmp(need(g, "axes"), "all") == 0) return a;
    s = shape(g, "axes");
    a.n = s.ndim;
    for (int k = 0; k < s.ndim; k++) a.axis[k] = (int)s.dim[k];
    return a;
}

static cot_axes axes_in(const golden *g, const char *key) {
    cot_shape s = shape(g, key);
    cot_axes  a = {s.ndim, false, {0}};
    for (int k = 0; k < s.ndim; k++) a.axis[k] = (int)s.dim[k];
    return a;
}

/* ---- operations by name ---------------------------------------------------------------------- */

#define X0 (g->x[0])
#define X1 (g->x[1])
#define X2 (g->x[2])
#define CALL(name, call)                                                                                               \
    static cot_var run_##name(golden *g) { return call; }
CALL(cast, cot_cast(X0, dtype(g)))
CALL(sum, cot_sum(X0, axes(g)))
CALL(mean, cot_mean(X0, axes(g)))
CALL(prod, cot_prod(X0, axes(g)))
CALL(max, cot_max(X0, axes(g)))
CALL(min, cot_min(X0, axes(g)))
CALL(argmax, cot_argmax(X0, axes(g)))
CALL(argmin, cot_argmin(X0, axes(g)))
CALL(variance, cot_variance(X0, axes(g)))
CALL(std, cot_std(X0, axes(g)))
CALL(logsumexp, cot_logsumexp(X0, axes(g)))
CALL(norm, cot_norm(X0, real(g, "p"), axes(g)))
CALL(any, cot_any(X0, axes(g)))
CALL(all, cot_all(X0, axes(g)))
CALL(sum_of, cot_sum_of(g->n, g->x))
CALL(dot_of, cot_dot_of(g->n / 2, g->x, g->x + g->n / 2))
CALL(logsumexp_of, cot_logsumexp_of(g->n, g->x))
CALL(reshape, cot_reshape(X0, shape(g, "shape")))
CALL(copy, cot_copy(X0))
CALL(transpose, cot_transpose(X0))
CALL(permute, cot_permute(X0, axes(g)))
CALL(broadcast_to, cot_broadcast_to(X0, shape(g, "shape")))
CALL(expand_dims, cot_expand_dims(X0, axis(g)))
CALL(squeeze, cot_squeeze(X0, axes(g)))
CALL(concat, cot_concat(g->n, g->x, axis(g)))
CALL(stack, cot_stack(g->n, g->x, axis(g)))
CALL(slice, cot_slice(X0, axis(g), whole(g, "start"), strcmp(need(g, "stop"), "end") == 0 ? COT_END : whole(g, "stop"),
                      whole(g, "step")))
CALL(index, cot_index(X0, axis(g), whole(g, "i")))
CALL(pad, cot_pad(X0, shape(g, "before"), shape(g, "after"), real(g, "value")))
CALL(flip, cot_flip(X0, axes(g)))
CALL(take, cot_take(X0, X1, axis(g)))
CALL(take_along_axis, cot_take_along_axis(X0, X1, axis(g)))
CALL(scatter_add, cot_scatter_add(X0, X1, X2, axis(g)))
CALL(one_hot, cot_one_hot(X0, whole(g, "n"), dtype(g)))
CALL(roll, cot_roll(X0, whole(g, "shift"), axis(g)))
CALL(tile, cot_tile(X0, shape(g, "reps")))
CALL(repeat, cot_repeat(X0, whole(g, "n"), axis(g)))
CALL(diag, cot_diag(X0, whole(g, "k")))
CALL(tril, cot_tril(X0, whole(g, "k")))
CALL(triu, cot_triu(X0, whole(g, "k")))
CALL(trace, cot_trace(X0, whole(g, "k")))
CALL(kron, cot_kron(X0, X1))
CALL(gather, cot_gather(X0, X1))
CALL(scatter, cot_scatter(X0, X1, X2, axis(g)))
CALL(compress, cot_compress(X0, X1, axis(g)))
CALL(compress_to, cot_compress_to(X0, X1, axis(g), whole(g, "size"), real(g, "fill")))
CALL(masked_select, cot_masked_select(X0, X1))
CALL(cumsum, cot_cumsum(X0, axis(g), whole(g, "reverse") != 0))
CALL(cumprod, cot_cumprod(X0, axis(g), whole(g, "reverse") != 0))
CALL(cummax, cot_cummax(X0, axis(g), whole(g, "reverse") != 0))
CALL(cummin, cot_cummin(X0, axis(g), whole(g, "reverse") != 0))
CALL(sort, cot_sort(X0, axis(g), whole(g, "descending") != 0))
CALL(argsort, cot_argsort(X0, axis(g), whole(g, "descending") != 0))
CALL(topk, cot_topk(X0, whole(g, "k"), axis(g), NULL))
CALL(searchsorted, cot_searchsorted(X0, X1, whole(g, "right") != 0))
CALL(dot, cot_dot(X0, X1))
CALL(outer, cot_outer(X0, X1))
CALL(einsum, cot_einsum(need(g, "subscripts"), g->n, g->x))
CALL(tensordot, cot_tensordot(X0, X1, axes_in(g, "a"), axes_in(g, "b")))
CALL(fft, cot_fft(X0, whole(g, "n"), axis(g)))
CALL(ifft, cot_ifft(X0, whole(g, "n"), axis(g)))
CALL(rfft, cot_rfft(X0, whole(g, "n"), axis(g)))
CALL(irfft, cot_irfft(X0, whole(g, "n"), axis(g)))
CALL(fft_convolve, cot_fft_convolve(X0, X1, axis(g), need(g, "mode")))
CALL(solve, cot_solve(X0, X1))
CALL(triangular_solve, cot_triangular_solve(X0, X1, (int)whole(g, "flags")))
CALL(inv, cot_inv(X0))
CALL(det, cot_det(X0))
CALL(cholesky, cot_cholesky(X0))
CALL(eigvalsh, cot_eigvalsh(X0))
CALL(svdvals, cot_svdvals(X0))
CALL(lstsq, cot_lstsq(X0, X1))
CALL(matrix_exp, cot_matrix_exp(X0))
CALL(softmax, cot_softmax(X0, axis(g)))
CALL(log_softmax, cot_log_softmax(X0, axis(g)))
CALL(softmax_cross_entropy, cot_softmax_cross_entropy(X0, X1))
CALL(cross_entropy, cot_cross_entropy(X0, X1))
CALL(mse, cot_mse(X0, X1))
/* Options of convolutions and pools; a list that is not given is zeros. */
static void fill_option(const golden *g, const char *key, int64_t to[3]) {
    cot_shape s = {0, {0}};
    if (attr(g, key)) s = shape(g, key);
    for (int k = 0; k < s.ndim && k < 3; k++) to[k] = s.dim[k];
}

static cot_conv_options conv_options(const golden *g) {
    cot_conv_options o = {.groups = attr(g, "groups") ? whole(g, "groups") : 0};
    fill_option(g, "stride", o.stride), fill_option(g, "dilation", o.dilation), fill_option(g, "padding", o.padding);
    fill_option(g, "before", o.padding_before), fill_option(g, "after", o.padding_after),
        fill_option(g, "output", o.output_padding);
    return o;
}

static cot_pool_options pool_options(const golden *g) {
    cot_pool_options o = {.ceil_mode = attr(g, "ceil") != NULL, .exclude_padding = attr(g, "exclude") != NULL};
    fill_option(g, "window", o.window), fill_option(g, "stride", o.stride), fill_option(g, "padding", o.padding);
    return o;
}

CALL(conv1d, cot_conv1d(X0, X1, conv_options(g)))
CALL(conv2d, cot_conv2d(X0, X1, conv_options(g)))
CALL(conv3d, cot_conv3d(X0, X1, conv_options(g)))
CALL(conv_transpose1d, cot_conv_transpose1d(X0, X1, conv_options(g)))
CALL(conv_transpose2d, cot_conv_transpose2d(X0, X1, conv_options(g)))
CALL(conv_transpose3d, cot_conv_transpose3d(X0, X1, conv_options(g)))
CALL(max_pool1d, cot_max_pool1d(X0, pool_options(g)))
CALL(max_pool2d, cot_max_pool2d(X0, pool_options(g)))
CALL(max_pool3d, cot_max_pool3d(X0, pool_options(g)))
CALL(avg_pool1d, cot_avg_pool1d(X0, pool_options(g)))
CALL(avg_pool2d, cot_avg_pool2d(X0, pool_options(g)))
CALL(avg_pool3d, cot_avg_pool3d(X0, pool_options(g)))
CALL(zeros, cot_zeros(g->t, dtype(g), shape(g, "shape")))
CALL(ones, cot_ones(g->t, dtype(g), shape(g, "shape")))
CALL(full, cot_full(g->t, dtype(g), shape(g, "shape"), real(g, "value")))
CALL(full_like, cot_full_like(X0, real(g, "value")))
CALL(arange, cot_arange(g->t, dtype(g), real(g, "start"), real(g, "stop"), real(g, "step")))
CALL(linspace, cot_linspace(g->t, dtype(g), real(g, "start"), real(g, "stop"), whole(g, "n")))
CALL(eye, cot_eye(g->t, dtype(g), whole(g, "rows"), whole(g, "columns")))

#define GIVEN(k) ((k) < g->n ? g->x[k] : COT_NONE)
CALL(layer_norm, cot_layer_norm(X0, GIVEN(1), GIVEN(2), axis(g), real(g, "eps")))
CALL(rms_norm, cot_rms_norm(X0, GIVEN(1), axis(g), real(g, "eps")))
CALL(group_norm, cot_group_norm(X0, whole(g, "groups"), GIVEN(1), GIVEN(2), real(g, "eps")))
CALL(batch_norm, cot_batch_norm(X0, axes(g), GIVEN(1), GIVEN(2), real(g, "eps"), NULL, NULL))
CALL(batch_norm_inference, cot_batch_norm_inference(X0, axes(g), X1, X2, GIVEN(3), GIVEN(4), real(g, "eps")))
CALL(embedding, cot_embedding(X0, X1, strcmp(need(g, "padding"), "none") == 0 ? COT_NO_PADDING : whole(g, "padding")))
CALL(bce_with_logits, cot_bce_with_logits(X0, X1))
CALL(nll, cot_nll(X0, X1))
CALL(huber, cot_huber(X0, X1, real(g, "delta")))
CALL(kl_div, cot_kl_div(X0, X1))
CALL(cosine_similarity, cot_cosine_similarity(X0, X1, axis(g), real(g, "eps")))

static cot_key key(const golden *g) {
    cot_key k = cot_key_of((uint64_t)whole(g, "seed")), parts[8];
    if (attr(g, "fold")) return cot_key_fold(k, (uint64_t)whole(g, "fold"));
    if (!attr(g, "split")) return k;
    cot_key_split(k, COUNT(parts), parts);
    return parts[whole(g, "split")];
}

CALL(uniform, cot_uniform(g->t, key(g), dtype(g), shape(g, "shape"), real(g, "lo"), real(g, "hi")))
CALL(normal, cot_normal(g->t, key(g), dtype(g), shape(g, "shape")))
CALL(gumbel, cot_gumbel(g->t, key(g), dtype(g), shape(g, "shape")))
CALL(bernoulli, cot_bernoulli(g->t, key(g), X0, shape(g, "shape")))
CALL(categorical, cot_categorical(key(g), X0, axis(g)))
CALL(permutation, cot_permutation(g->t, key(g), whole(g, "n")))
CALL(shuffle, cot_shuffle(key(g), X0, axis(g)))
CALL(dropout, cot_dropout(X0, real(g, "rate"), key(g)))

/* The matrices may come transposed: strided operands of the kernel. */
static cot_var swapped(cot_var x, bool swap) {
    cot_axes order = {cot_shape_of(x).ndim, false, {0}};
    if (!swap) return x;
    for (int k = 0; k < order.n; k++) order.axis[k] = k < order.n - 2 ? k : 2 * order.n - 3 - k;
    return cot_permute(x, order);
}

static cot_var run_matmul(golden *g) {
    return cot_matmul(swapped(X0, attr(g, "ta") && whole(g, "ta")), swapped(X1, attr(g, "tb") && whole(g, "tb")));
}

/* mask=K and bias=K name operands. */
static cot_var run_attention(golden *g) {
    cot_attention_options o = {.causal = attr(g, "causal") != NULL, .scale = attr(g, "scale") ? real(g, "scale") : 0};
    if (attr(g, "mask")) o.mask = g->x[whole(g, "mask")];
    if (attr(g, "bias")) o.bias = g->x[whole(g, "bias")];
    return cot_attention(X0, X1, X2, &o);
}

static const struct {
    const char *name;
    cot_var (*run)(golden *);
} functions[] = {
#define FAMILY(title, remarks)
#define FUNCTION(name, parameters, mixes, formula) {#name, run_##name}, /* by CALL(name, …) */
#include "rules/functions.def"
};

/* The families, in the order of functions.def, each followed by its functions: a NULL ends it. */
static const char *const families[] = {
#define FAMILY(title, remarks) NULL, title,
#define FUNCTION(name, parameters, mixes, formula) #name,
#include "rules/functions.def"
    NULL,
};

static const struct {
    cot_var (*one)(cot_var);
    cot_var (*two)(cot_var, cot_var);
    cot_var (*three)(cot_var, cot_var, cot_var);
} elementwise[] = {
#define UNARY(name, ...) {cot_##name, NULL, NULL},
#define BINARY(name, ...) {NULL, cot_##name, NULL},
#define TERNARY(name, ...) {NULL, NULL, cot_##name},
#include "rules/rules.def"
};

static int elementwise_cases[COUNT(elementwise)], function_cases[COUNT(functions)];

/* Operations with several results: one of them by a name of its own. */
static bool run_part(golden *g, cot_var *y) {
    cot_var x = X0;
#define PART(name, call)                                                                                               \
    if (strcmp(g->op, name) == 0) return call, true;
    PART("qr_q", cot_qr(x, y, NULL))
    PART("qr_r", cot_qr(x, NULL, y))
    PART("lu_l", cot_lu(x, NULL, y, NULL))
    PART("lu_u", cot_lu(x, NULL, NULL, y))
    PART("eigh_v", cot_eigh(x, NULL, y))
    PART("svd_u", cot_svd(x, y, NULL, NULL))
    PART("svd_vt", cot_svd(x, NULL, NULL, y))
    PART("det_sign", cot_slogdet(x, y, NULL))
    PART("logabsdet", cot_slogdet(x, NULL, y))
#undef PART
    return false;
}

static cot_var run_operation(golden *g) {
    cot_var part;
    if (strcmp(g->op, "maximum_self") == 0) return cot_maximum(X0, X0);
    if (run_part(g, &part)) return part;
    for (int k = 0; k < COUNT(elementwise); k++)
        if (strcmp(cot__elementwise_table[k].name, g->op) == 0) {
            elementwise_cases[k]++;
            assert_int_equal(g->n, cot__elementwise_table[k].arity);
            return elementwise[k].one   ? elementwise[k].one(X0)
                   : elementwise[k].two ? elementwise[k].two(X0, X1)
                                        : elementwise[k].three(X0, X1, X2);
        }
    for (int k = 0; k < COUNT(functions); k++)
        if (strcmp(functions[k].name, g->op) == 0) {
            function_cases[k]++;
            return functions[k].run(g);
        }
    fail_msg("%s: no operation is called %s", g->name, g->op);
    return X0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* The distance of 1 to the next number, and the smallest number: below it nothing can be told
 * apart. */
static double unit_of(cot_dtype d) {
    return d == COT_F64 ? DBL_EPSILON : d == COT_F32 ? (double)FLT_EPSILON : d == COT_BF16 ? 0x1p-7 : 0x1p-10;
}
static double least_of(cot_dtype d) {
    return d == COT_F64 ? 0x1p-1074 : d == COT_F16 ? 0x1p-24 : d == COT_F32 ? 0x1p-149 : 0x1p-133;
}

static bool is_float(cot_dtype d) { return d <= COT_F16; }

static void miss(golden *g, const char *what, int k) {
    g->failures++;
    print_message("%s (%s): %s", g->name, g->op, what);
    if (k >= 0) print_message(" %d", k);
}

static void compare_numbers(golden *g, const char *what, int k, cot_dtype d, const double *got, const numbers *want) {
    double ulps = attr(g, "ulps") ? real(g, "ulps") : DEFAULT_ULPS;
    bool   exact = !is_float(d) || attr(g, "exact");
    for (int64_t i = 0; i < want->n; i++) {
        double a = got[i], b = want->value[i], scale = fmax(want->scale ? want->scale[i] : 0, fabs(b));
        bool   fine = isnan(b)            ? isnan(a)
                      : isinf(b) || exact ? a == b
                                          : fabs(a - b) <= ulps * unit_of(d) * scale + least_of(d);
        if (fine) continue;
        miss(g, what, k);
        print_message(" [%d] is %.17g, not %.17g: off by %.3g units of %.2g\n", (int)i, a, b,
                      fabs(a - b) / unit_of(d) / scale, scale);
    }
}

static void compare(golden *g, const char *what, int k, cot_var got, cot_dtype d, const numbers *want) {
    static double buffer[POOL];
    if (cot_tape_status(g->t) != COT_OK || cot_size(got) != want->n || cot_dtype_of(got) != d) {
        miss(g, what, k);
        print_message(" has %lld elements of %s, not %lld of %s; %s\n", (long long)cot_size(got),
                      cot_dtype_name(cot_dtype_of(got)), (long long)want->n, cot_dtype_name(d), cot_tape_message(g->t));
        return;
    }
    assert_int_equal(cot_read(got, buffer, want->n), COT_OK);
    compare_numbers(g, what, k, d, buffer, want);
}

/* ---- running --------------------------------------------------------------------------------- */

static cot_var make(golden *g, bool leaf, cot_dtype d, const cot_shape *s, const numbers *v) {
    static double memory[POOL]; /* wide enough for every dtype */
    for (int64_t i = 0; i < v->n; i++) cot__store_f64((char *)memory + i * cot__dtype_size(d), d, v->value[i]);
    return leaf ? cot_tensor(g->t, d, *s, memory) : cot_data(g->t, d, *s, memory);
}

static void make_operands(golden *g) {
    for (int k = 0; k < g->n; k++) {
        const operand *o = &g->in[k];
        cot_var        x = o->kind == NUMBER    ? cot_number(o->a.value[0])
                           : o->kind == INTEGER ? cot_integer((int64_t)o->a.value[0])
                                                : make(g, o->kind == LEAF, o->dtype, &o->shape, &o->a);
        g->leaf[k] = g->x[k] = x;
    }
    if (attr(g, "via")) g->x[0] = cot_transpose(g->x[0]);
}

static void check_shape(golden *g, cot_var y) {
    cot_shape s = cot_shape_of(y);
    bool      same = s.ndim == g->shape.ndim;
    for (int k = 0; same && k < s.ndim; k++) same = s.dim[k] == g->shape.dim[k];
    if (same || cot_tape_status(g->t) != COT_OK) return;
    miss(g, "shape", -1);
    print_message(" has %d axes (%lld, %lld, …), not %d (%lld, %lld, …)\n", s.ndim, (long long)s.dim[0],
                  (long long)s.dim[1], g->shape.ndim, (long long)g->shape.dim[0], (long long)g->shape.dim[1]);
}

/* The operands that move, in order, with their places in the case. */
static int moving(const golden *g, int *place, cot_var *xs) {
    int n = 0;
    for (int k = 0; k < g->n; k++)
        if (g->in[k].kind == LEAF) place[n] = k, xs[n++] = g->leaf[k];
    return n;
}

static void check_backward(golden *g, cot_var y, cot_var ct, int n, const int *place, const cot_var *xs) {
    static double buffer[POOL];
    if (cot_requires_grad(y)) cot_backward_seeded(y, ct);
    for (int i = 0; i < n; i++) {
        if (cot_read_grad(xs[i], buffer, g->grad[place[i]].n) != COT_OK) {
            miss(g, "backward", place[i]);
            print_message(": %s\n", cot_tape_message(g->t));
            return;
        }
        compare_numbers(g, "backward", place[i], g->in[place[i]].dtype, buffer, &g->grad[place[i]]);
    }
}

/* cot_hvp of Σ ct · y, all operands at once. */
static void check_hvp_numbers(golden *g, cot_var y, cot_var ct, int n, const int *place, const cot_var *xs) {
    static double v[POOL], out[POOL];
    int64_t       at = 0;
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; j < g->tan[place[i]].n; j++) v[at++] = g->tan[place[i]].value[j];
    cot_var weighed = cot_sum(cot_mul(ct, y), COT_ALL);
    if (cot_hvp(weighed, n, xs, v, out) != COT_OK) {
        miss(g, "cot_hvp", -1);
        print_message(": %s\n", cot_tape_message(g->t));
        return;
    }
    at = 0;
    for (int i = 0; i < n; i++) {
        compare_numbers(g, "cot_hvp", place[i], g->in[place[i]].dtype, out + at, &g->hvp[place[i]]);
        at += g->hvp[place[i]].n;
    }
}

static void check_derivatives(golden *g, cot_var y) {
    int     place[MAX_OPERANDS], n;
    cot_var xs[MAX_OPERANDS], grads[MAX_OPERANDS], tans[MAX_OPERANDS], ct = make(g, false, g->dtype, &g->shape, &g->ct);
    n = moving(g, place, xs);
    if (cot_vjp(y, ct, n, xs, grads) != COT_OK) {
        miss(g, "cot_vjp", -1);
        print_message(": %s\n", cot_tape_message(g->t));
        return;
    }
    for (int i = 0; i < n; i++) {
        const operand *o = &g->in[place[i]];
        compare(g, "grad", place[i], grads[i], o->dtype, &g->grad[place[i]]);
        if (g->jvp.n >= 0) tans[i] = make(g, false, o->dtype, &o->shape, &g->tan[place[i]]);
    }
    check_backward(g, y, ct, n, place, xs);
    if (g->jvp.n < 0) return;
    compare(g, "jvp", -1, cot_jvp(y, n, xs, tans), g->dtype, &g->jvp);
    if (g->hvp[place[0]].n < 0) return;
    for (int i = 0; i < n; i++) {
        cot_dtype d = g->in[place[i]].dtype;
        cot_var   h = cot_jvp(grads[i], n, xs, tans);
        compare(g, "hvp", place[i], h, d, &g->hvp[place[i]]);
        if (g->third[place[i]].n >= 0) compare(g, "third", place[i], cot_jvp(h, n, xs, tans), d, &g->third[place[i]]);
    }
    check_hvp_numbers(g, y, ct, n, place, xs);
}

/* f, f', f'', … of one number, each differentiated from the last. */
static void check_orders(golden *g, cot_var y) {
    int     place[MAX_OPERANDS];
    cot_var xs[MAX_OPERANDS], z;
    assert_int_equal(moving(g, place, xs), 1);
    for (int k = 0; k < g->orders.n; k++, y = z) {
        numbers one = {1, g->orders.value + k, g->orders.scale ? g->orders.scale + k : NULL};
        compare(g, "order", k, y, COT_F64, &one);
        if (cot_grad_of(y, 1, xs, &z) != COT_OK) {
            miss(g, "cot_grad_of", k);
            print_message(": %s\n", cot_tape_message(g->t));
            return;
        }
    }
}

static int run_case(golden *g) {
    g->t = cot_tape_create(NULL);
    assert_non_null(g->t);
    make_operands(g);
    cot_var y = run_operation(g);
    if (cot_tape_status(g->t) != COT_OK) {
        miss(g, "failed: ", -1);
        print_message("%s\n", cot_tape_message(g->t));
    } else if (g->orders.n >= 0) check_orders(g, y);
    else {
        check_shape(g, y);
        compare(g, "value", -1, y, g->dtype, &g->out);
        if (g->ct.n >= 0 && g->failures == 0) check_derivatives(g, y);
    }
    cot_tape_destroy(g->t);
    return g->failures;
}

static void run_file(const char *name) {
    static golden g;
    char          path[4096];
    int           cases = 0, wrong = 0;
    snprintf(path, sizeof path, "%s/tests/golden/%s.txt", COT_SOURCE_FOLDER, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (; read_case(f, &g); cases++) wrong += run_case(&g) != 0;
    fclose(f);
    print_message("%s: %d cases\n", name, cases);
    assert_true(cases > 0);
    assert_int_equal(wrong, 0);
}

#define FILES(X) \
    X(elementwise) \
    X(special) \
    X(integers) \
    X(broadcast) \
    X(pow) \
    X(kinks) \
    X(promotion) \
    X(narrow) \
    X(casts) \
    X(reductions) \
    X(shape) \
    X(index) \
    X(matrices) \
    X(networks) \
    X(creation) \
    X(cumulative) \
    X(order) \
    X(arrange) \
    X(select) \
    X(einsum) \
    X(fourier) \
    X(normalisation) \
    X(losses) \
    X(random) \
    X(attention) \
    X(linear_algebra) \
    X(convolution)
#define TEST(name)                                                                                                     \
    static void test_##name(void **state) {                                                                            \
        (void)state;                                                                                                   \
        run_file(#name);                                                                                               \
    }
FILES(TEST)

static int cases_of(const char *name) {
    for (int k = 0; k < COUNT(functions); k++)
        if (strcmp(functions[k].name, name) == 0) return function_cases[k];
    return 0;
}

/* Runs last. */
static void test_every_operation_has_a_case(void **state) {
    (void)state;
    int total = 0, missing = 0;
    assert_int_equal(COUNT(elementwise), OP_elementwise_count);
    for (int k = 0; k < COUNT(elementwise); k++) {
        total += elementwise_cases[k];
        if (elementwise_cases[k]) continue;
        print_message("%s has no case: add it to cases/elementwise.py in tests/golden, then run make_golden.py\n",
                      cot__elementwise_table[k].name);
        missing++;
    }
    print_message("Elementwise: %d cases for %d operations\n", total, COUNT(elementwise));
    for (int k = 0; k < COUNT(families) - 1; k++) {
        const char *title = families[++k];
        int         operations = 0;
        for (total = 0; families[k + 1]; operations++) {
            int n = cases_of(families[++k]);
            total += n;
            if (n) continue;
            print_message("%s has no case: add one to cases in tests/golden, then run make_golden.py\n", families[k]);
            missing++;
        }
        print_message("%s: %d cases for %d operations\n", title, total, operations);
    }
    assert_int_equal(missing, 0);
}

int main(void) {
#define UNIT(name) cmocka_unit_test(test_##name),
    const struct CMUnitTest tests[] = {FILES(UNIT) cmocka_unit_test(test_every_operation_has_a_case)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
