/* cotangent_nn.h: parameters by name, and layers: functions that find theirs there.
 *
 * A model is a C function. Its layers ask for parameters by name; cot_params_init runs the function
 * once to learn which there are, and makes a leaf for each. From then on the same function finds
 * them:
 *
 *     static cot_var net(cot_params *p, cot_var x) {
 *         x = cot_relu(cot_nn_dense(p, "fc1", x, 512));
 *         return cot_nn_dense(p, "fc2", x, 10);
 *     }
 *     …
 *     cot_params *p = cot_params_create(t);
 *     cot_params_init(p, net, x, cot_key_of(0));            fc1.weight, fc1.bias, fc2.weight, …
 *     int            n;
 *     const cot_var *w = cot_params_vars(p, &n);
 *     cot_mark       start = cot_tape_mark(t);
 *     for (int step = 0; step < 1000; step++) {
 *         cot_params_set_key(p, cot_key_at(key, cot_integer(step)));      where there is dropout
 *         cot_backward(cot_softmax_cross_entropy(net(p, x), labels));
 *         if (cot_sgd_step(n, w, 0.1) != COT_OK) break;     a rewind would clear the error
 *         cot_tape_zero_grads(t);
 *         cot_tape_rewind(t, start);
 *     }
 *
 * The same name is the same parameters: a layer that is called twice shares them. A layer takes the
 * sizes of its input from x. Weights of dense layers are (in, out), as cot_matmul(x, w) wants them
 * (GPT-2's layout; PyTorch's nn.Linear has the transpose), those of convolutions as in PyTorch. */
#ifndef COTANGENT_H
/* This file is a part of it, which it includes where the turn is: after the parts that this one
 * needs. */
#include <cotangent.h>
#elif !defined(COTANGENT_NN_H)
#define COTANGENT_NN_H

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Parameters
 * ======================================================================================== */

typedef struct cot_params cot_params;
/* A model: records its result for x, by calls of cot_nn_… and of operations. */
typedef cot_var (*cot_net)(cot_params *p, cot_var x);

/* No parameters yet; NULL when memory is short. The tape outlives it, and errors stick on the
 * tape (on that of the bound vars while some are bound). */
COT_API cot_params *cot_params_create(cot_tape *t);
/* The leaves stay on the tape. NULL is fine. */
COT_API void      cot_params_destroy(cot_params *p);
COT_API cot_tape *cot_params_tape(const cot_params *p); /* NULL for NULL */
/* For a net's own configuration; the parameters only keep the pointer. */
COT_API void *cot_params_user(const cot_params *p);
COT_API void  cot_params_set_user(cot_params *p, void *user);

/* Records net(p, x) once, forgets what was recorded, and makes a leaf for each name that was asked
 * for and is new. x is on the tape of p. Initial numbers come from the key folded with a hash of
 * the full name: another layer more changes no other's. Called again, with another net say, it
 * makes what is still missing. After a failure there are the parameters that there were before.
 * The leaves stand on the tape where it was called: rewind to no mark before that. */
COT_API cot_status cot_params_init(cot_params *p, cot_net net, cot_var x, cot_key key);

/* How numbers begin. A layer has its own way for each parameter, that of PyTorch; a rule for names
 * that match a pattern (* any letters, ? one; "*.weight") replaces it, before cot_params_init. Of
 * several rules the last that matches counts. fan_in and fan_out are what one unit reads, and how
 * many read one input. */
typedef enum cot_init_kind {
    COT_INIT_DEFAULT,  /* the layer's own */
    COT_INIT_CONSTANT, /* `value` everywhere: {COT_INIT_CONSTANT} is zeros */
    COT_INIT_ONES,
    COT_INIT_UNIFORM,          /* -value … value; value 0: 1/sqrt(fan_in) */
    COT_INIT_NORMAL,           /* of deviation `value`; 0: 1 */
    COT_INIT_TRUNCATED_NORMAL, /* the same, drawn again beyond two deviations */
    COT_INIT_XAVIER_UNIFORM,   /* ± gain sqrt(6 / (fan_in + fan_out)); the gain is `value`, 0: 1 */
    COT_INIT_XAVIER_NORMAL,    /* of deviation gain sqrt(2 / (fan_in + fan_out)) */
    COT_INIT_HE_UNIFORM,       /* ± gain sqrt(3 / fan_in); 0: the gain of relu, sqrt(2) */
    COT_INIT_HE_NORMAL         /* of deviation gain / sqrt(fan_in) */
} cot_init_kind;
typedef struct cot_init {
    cot_init_kind kind COT__OR_0;
    double value       COT__OR_0;
} cot_init;
COT_API cot_status cot_params_init_with(cot_params *p, const char *pattern, cot_init how);
/* The dtype of parameters made from now on, a float; else it is that of the layer's input, or f32
 * where that is no float. */
COT_API void cot_params_set_dtype(cot_params *p, cot_dtype dtype);
/* Layers whose name matches compute in this dtype, COT_BF16 or COT_F16: they read their input and
 * parameters through recorded casts, and give a result of that dtype. Sums over a graph, and what
 * adds up over steps (the state c of an LSTM, h of a GRU), are f32. Parameters stay what they are,
 * f32 say, and so do their gradients and statistics. COT_F32 and COT_F64: as parameters and
 * input are. Of several patterns the last that matches counts; one that matches nothing does no
 * harm. "*" is every layer; "h.*" those of the blocks of a transformer. */
COT_API cot_status cot_params_set_precision(cot_params *p, const char *pattern, cot_dtype dtype);

/* A parameter. The name lives as long as p; var is its leaf, of a statistic (a running mean, say) a
 * constant. */
typedef struct cot_param {
    const char *name;
    cot_var var;
    bool statistic;
    bool frozen;
    int group;
} cot_param;
COT_API int       cot_params_count(const cot_params *p);     /* statistics included; 0 for NULL */
/* In the order they were made; all zero beyond the end. */
COT_API cot_param cot_params_at(const cot_params *p, int k);
/* What layers use under this full name: the leaf, or the var that is bound in its place. A name
 * that is not there is an error, which tells a near one. */
COT_API cot_var cot_params_get(cot_params *p, const char *name);
/* The leaves that are trained, neither statistics nor frozen, in order. The list is p's, and good
 * until the next cot_params_init or cot_params_freeze. n may be NULL. */
COT_API const cot_var *cot_params_vars(cot_params *p, int *n);
/* Freezes (or thaws) all that match; a pattern that matches nothing is an error. No gradient is
 * computed for what is frozen, and cot_params_vars leaves it out. */
COT_API cot_status cot_params_freeze(cot_params *p, const char *pattern, bool frozen);
/* The group of an optimiser, 0 unless said; a pattern that matches nothing is an error. */
COT_API cot_status cot_params_group(cot_params *p, const char *pattern, int group);

/* Training, which is how it begins, or evaluation: dropout and batch norms differ. */
COT_API void cot_params_train(cot_params *p, bool on);
COT_API bool cot_params_training(const cot_params *p); /* false for NULL */
/* The key of the step: layers that draw fold their name into it. Set another one each step,
 * cot_key_at(key, step), where the step is cot_integer(k), or the input of a function that is
 * compiled: both draw the same. (A key that was folded with the step before draws other numbers, as
 * the name is then folded in last.) */
COT_API void cot_params_set_key(cot_params *p, cot_key key);
/* The step's key folded with the full name, for draws of one's own; where none was set, an error in
 * training. */
COT_API cot_key cot_params_key(cot_params *p, const char *name);

/* Between push and pop names begin with that name and a dot: "encoder.0.fc1.weight". A number does
 * as well. Both may be called in any order with operations; pop without push is an error. */
COT_API void cot_params_push(cot_params *p, const char *name);
COT_API void cot_params_push_number(cot_params *p, int64_t number);
COT_API void cot_params_pop(cot_params *p);

/* Layers use xs in place of the leaves, until bound again; n = 0: the leaves. xs stand for
 * cot_params_vars, or, where n is cot_params_count, for all in order. They may be of another tape:
 * layers then record there. So a function of parameters is differentiated, batched or compiled like
 * any other:
 *
 *     static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
 *         model *a = user;
 *         cot_params_bind(a->p, n - 2, xs + 2);                    xs: x, labels, parameters
 *         ys[0] = cot_softmax_cross_entropy(net(a->p, xs[0]), xs[1]);
 *         return cot_params_bind(a->p, 0, NULL) == COT_OK ? 0 : 1;
 *     }
 *
 * A statistic that a layer updates meanwhile is not written: where it is bound, the new value takes
 * the place of the bound one (cot_params_get), otherwise nothing happens. */
COT_API cot_status cot_params_bind(cot_params *p, int n, const cot_var *xs);

/* Writes a table of the layers that net calls for x, and nothing else, to `out`: what each gives,
 * its parameters (those that are shared are counted where they are met first), operations of its
 * values, and the bytes that it keeps on the tape. Nothing else comes of it: it may be called
 * before cot_params_init. */
COT_API cot_status cot_params_summary(cot_params *p, cot_net net, cot_var x, FILE *out);

/* A parameter of your own layer, under the name that is pushed: made in cot_params_init, found
 * later. Its dtype is that of `like`, if that is a float (COT_NONE: f32); how {0}: as in a dense
 * layer, fan_in being the extents but the last, fan_out the last. Another shape later is an
 * error. */
COT_API cot_var cot_nn_parameter(cot_params *p, const char *name, cot_shape shape, cot_var like, cot_init how);
/* The same, not trained; how {0}: zeros. */
COT_API cot_var cot_nn_statistic(cot_params *p, const char *name, cot_shape shape, cot_var like, cot_init how);
/* Writes a statistic in training, see cot_params_bind; in cot_params_init and evaluation nothing
 * happens. */
COT_API cot_status cot_nn_update(cot_params *p, const char *name, cot_var value);

/* ==== Layers
 * ======================================================================================== */

/* Each finds its parameters under `name`, after what is pushed; they are named beside it. */

/* x (…, in) @ weight (in, units) + bias (units). Both begin uniform in ± 1/sqrt(in). */
COT_API cot_var cot_nn_dense(cot_params *p, const char *name, cot_var x, int64_t units);
/* The same without bias. */
COT_API cot_var cot_nn_linear(cot_params *p, const char *name, cot_var x, int64_t units);
/* Rows of weight (rows, width) for integers; see cot_embedding for `padding`, whose row begins as
 * zeros (COT_NO_PADDING: none). The others begin normal, of deviation 1. */
COT_API cot_var cot_nn_embedding(cot_params *p, const char *name, cot_var indices, int64_t rows, int64_t width,
                                 int64_t padding);

/* x (images, channels in, spatial axes), with a kernel of as many axes as COT_SHAPE(…) has, 1 to 3;
 * weight (channels, in/groups, kernel), bias (channels) if asked for. Both begin uniform in ±
 * 1/sqrt(what one result reads). */
COT_API cot_var cot_nn_conv(cot_params *p, const char *name, cot_var x, int64_t channels, cot_shape kernel, bool bias,
                            cot_conv_options options);
/* The transpose (cot_conv_transpose2d): weight (in, channels/groups, kernel), bias (channels). */
COT_API cot_var cot_nn_conv_transpose(cot_params *p, const char *name, cot_var x, int64_t channels, cot_shape kernel,
                                      bool bias, cot_conv_options options);

/* Norms: weight begins as ones, bias as zeros. eps 0: 1e-5. Over the last axis: */
COT_API cot_var cot_nn_layer_norm(cot_params *p, const char *name, cot_var x, double eps);
/* the same without mean and bias */
COT_API cot_var cot_nn_rms_norm(cot_params *p, const char *name, cot_var x, double eps);
/* x (N, C, …): over groups of C/groups channels, see cot_group_norm. */
COT_API cot_var cot_nn_group_norm(cot_params *p, const char *name, cot_var x, int64_t groups, double eps);
/* x (N, C, …): over all but the channels. In training by the statistics of the batch, which
 * running_mean and running_var follow: r = (1 - momentum) r + momentum · batch, the variance over
 * n - 1; momentum 0: 0.1. In evaluation by those two. */
COT_API cot_var cot_nn_batch_norm(cot_params *p, const char *name, cot_var x, double momentum, double eps);

/* cot_dropout in training, with the step's key and its own name; x in evaluation. */
COT_API cot_var cot_nn_dropout(cot_params *p, const char *name, cot_var x, double rate);

/* Keys and values of the positions that were seen, for decoding: each call of an attention layer
 * adds its own, and sees all. The memory is the cache's own: rewind the tape after each token.
 * `most`: positions. NULL when memory is short. It is used with one p, and before p is
 * destroyed. What was recorded with it is valid until it is destroyed, or used after a clear. */
typedef struct cot_nn_cache cot_nn_cache;
COT_API cot_nn_cache       *cot_nn_cache_create(cot_params *p, int64_t most);
COT_API void                cot_nn_cache_destroy(cot_nn_cache *c); /* NULL is fine */
/* For another sequence, also of other shape. Rewind the tape before the next call. */
COT_API void cot_nn_cache_clear(cot_nn_cache *c);

/* What an attention layer may be told; only heads must be. */
typedef struct cot_nn_attention_options {
    int64_t heads    COT__OR_0;
    int64_t kv_heads COT__OR_0; /* keys and values are shared by groups of heads; 0: as heads */
    bool causal      COT__OR_0;
    bool no_bias     COT__OR_0;
    /* rotates queries and keys by their positions (cot_nn_rotary), with this base, often 10000; 0:
     * not */
    double rotary COT__OR_0;
    cot_var mask  COT__OR_0; /* as in cot_attention_options */
    cot_var bias  COT__OR_0;
    /* keys and values come from here, (…, S, width): then the parameters are q_proj and kv_proj */
    cot_var context     COT__OR_0;
    cot_nn_cache *cache COT__OR_0; /* NULL: none. Not with a context */
} cot_nn_attention_options;
/* Multi-head attention, x (…, T, width), heads a divisor of the width: in_proj.weight (width, width
 * + 2 · keys' width), columns of q, k, v, and in_proj.bias; out_proj.weight (width, width) and
 * out_proj.bias. in_proj begins Xavier uniform, out_proj uniform in ± 1/sqrt(width), biases
 * zero. */
COT_API cot_var cot_nn_attention(cot_params *p, const char *name, cot_var x, const cot_nn_attention_options *options);
/* x (…, T, d), d even: of each position first + i the pairs (x[j], x[j + d/2]) turned by the angle
 * (first + i) base^(-2j/d). */
COT_API cot_var cot_nn_rotary(cot_var x, double base, int64_t first);

/* Over the first axis of x (T, …, in), one step after the other, as PyTorch's with time first:
 * gives (T, …, units). weight_ih (in, g · units), weight_hh (units, g · units), bias_ih, bias_hh,
 * g = 4 gates i, f, g, o or 3 gates r, z, n; all begin uniform in ± 1/sqrt(units). state: h and,
 * of an LSTM, c, (…, units) each; taken from there unless COT_NONE, which means zeros, and left
 * there after the last step. NULL: zeros, and the last ones are not wanted. */
COT_API cot_var cot_nn_lstm(cot_params *p, const char *name, cot_var x, int64_t units, cot_var *state);
COT_API cot_var cot_nn_gru(cot_params *p, const char *name, cot_var x, int64_t units, cot_var *state);

/* On the nodes of a graph, a matrix with an entry (i, j) wherever node i reads node j.
 *
 * A convolution: graph (x weight) + bias, x (…, nodes, in), with weights (in, units) that begin
 * Xavier uniform and a bias (units) of zeros, if asked for. The graph's values weigh: Kipf and
 * Welling's come from cot_csr_gcn, and their layers have no bias. */
COT_API cot_var cot_nn_gcn(cot_params *p, const char *name, cot_csr graph, cot_var x, int64_t units, bool bias);
/* The same for x of compressed rows, words of texts say, which stay so. */
COT_API cot_var cot_nn_gcn_csr(cot_params *p, const char *name, cot_csr graph, cot_csr x, int64_t units, bool bias);

/* What a graph attention may be told; NULL, or all left out: one head. */
typedef struct cot_nn_gat_options {
    int64_t heads  COT__OR_0; /* 0: 1 */
    /* (nodes, units), the mean of the heads; else they stand side by side */
    bool mean      COT__OR_0;
    bool no_bias   COT__OR_0;
    double slope   COT__OR_0; /* of the leaky relu; 0: 0.2 */
    double dropout COT__OR_0; /* of the weights of neighbours, in training; 0: none */
} cot_nn_gat_options;
/* Graph attention of Veličković and others, x (nodes, in) -> (nodes, heads · units): of each head,
 * with h = x weight,
 *
 *     y[i] = Σ_j a[i,j] h[j]       a[i,:] = softmax over the entries of row i of
 *                                           leaky_relu(att_dst · h[i] + att_src · h[j])
 *
 * and a bias. weight (in, heads · units), att_dst and att_src (heads, units) begin Xavier uniform,
 * the bias as zeros. Of the graph only the places are used, not the values: it should have loops,
 * for a node that shall read itself, and a node that reads nobody gets the bias alone. */
COT_API cot_var cot_nn_gat(cot_params *p, const char *name, cot_csr graph, cot_var x, int64_t units,
                           const cot_nn_gat_options *options);

/* ==== A loss
 * ======================================================================================== */

/* What a cross entropy may be told; NULL, or all left out: cot_softmax_cross_entropy. */
typedef struct cot_cross_entropy_options {
    /* so much of each target goes to all classes in equal parts; 0 … 1 */
    double smoothing COT__OR_0;
    cot_var weights  COT__OR_0; /* one of each class; left out: all 1 */
    bool ignore      COT__OR_0; /* rows whose label is `ignored` do not count */
    int64_t ignored  COT__OR_0;
} cot_cross_entropy_options;
/* logits (…, classes). For labels (…): Σ w[y] (-log softmax(logits)[y]) / Σ w[y], over the rows
 * that count: NaN if none does. For probabilities (…, classes): the mean of -Σ w q log
 * softmax(logits) over rows. These are PyTorch's, with classes last. */
COT_API cot_var cot_nn_cross_entropy(cot_var logits, cot_var targets, const cot_cross_entropy_options *options);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
