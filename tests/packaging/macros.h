/* Every macro of the public headers, used once as a user would: macros.c and macros.cpp compile
 * it with all the warnings that users switch on. check.sh looks that none is missing, and writes
 * elementwise.h: all that mix numbers in, called with numbers. */
#include <cotangent.h>
#include <math.h>
#include <stdio.h>

#ifdef __cplusplus
#define NOTHING nullptr
#else
#define NOTHING NULL
#endif

#if COT_VERSION_MAJOR < 0 || COT_VERSION_MINOR < 0 || COT_VERSION_PATCH < 0 || COT_BITS < 1
#error "a version is not negative, and bits have one"
#endif

COT_API void use_shapes(cot_tape *t);
COT_API void use_options(cot_var x, cot_var w);
COT_API void use_numbers(cot_tape *t, cot_var x);
COT_API void use_writes(cot_var *x, cot_var *more);
void use_functions(cot_fn f, cot_layer_fn layer, cot_var x, cot_var *y, cot_program *p, cot_jit *j);
void use_matrices(cot_tape *t, cot_var x);
void use_layers(cot_params *p, cot_net net, cot_csr graph, cot_var x, cot_var *state);
COT_API void print_statuses(void);

void use_shapes(cot_tape *t) {
    int64_t n = 3;
    cot_var x = cot_zeros(t, COT_F32, COT_SHAPE(2, n, 4)), s = cot_full(t, COT_F64, COT_SCALAR, 1);
    x = cot_sum(x, COT_AXES(0, -1));
    x = cot_mean(x, COT_KEEP(0));
    x = cot_max(x, COT_ALL);
    x = cot_min(s, COT_KEEP_ALL);
    x = cot_slice(cot_reshape(x, COT_SHAPE(-1)), 0, 0, COT_END, 1);
    x = cot_layer_norm(x, COT_NONE, COT_NONE, -1, 1e-5);
    x = cot_embedding(cot_ones(t, COT_F64, COT_SHAPE(2, 2)), cot_arange(t, COT_I64, 0, 2, 1), COT_NO_PADDING);
    int axes[] = {COT_NOT_BATCHED};
    if (axes[0] < -COT_MAX_NDIM) cot_name(x, "x");
}

void use_options(cot_var x, cot_var w) {
    cot_conv_options one_by_one = COT_CONV_DEFAULT;
    one_by_one.stride[0] = 2;
    cot_conv1d(x, w, one_by_one);
    cot_conv2d(x, w, COT_CONV_DEFAULT);
#if !defined(__cplusplus) || __cplusplus >= 202002L
    cot_conv2d(x, w, COT_CONV(.stride = {2, 2}, .padding = {1, 1}));
    cot_conv2d(x, w, COT_CONV(.groups = 2));
    cot_max_pool2d(x, COT_POOL(.window = {2, 2}, .ceil_mode = true));
    cot_options           options   = {.strict = true};
    cot_loop_options      loop      = {.states = 3, .limit = 7};
    cot_solve_options     solve     = {.iterations = 3};
    cot_adamw             adamw     = {.step = 1, .rate = 1e-3};
    cot_attention_options attention = {.causal = true};
    cot_custom            custom    = {.name = "none"};
    cot_fn_rules          rules     = {.name = "none"};
#elif __cplusplus >= 201402L
    cot_conv2d(x, w, COT_CONV(1, {2, 2}));
    cot_max_pool2d(x, COT_POOL({2, 2}));
    cot_options           options   = {{}, true};
    cot_loop_options      loop      = {3};
    cot_solve_options     solve     = {1e-3};
    cot_adamw             adamw     = {1, 1e-3};
    cot_attention_options attention = {true};
    cot_custom            custom    = {"none"};
    cot_fn_rules          rules     = {"none"};
#else
    cot_conv2d(x, w, COT_CONV());
    cot_max_pool2d(x, COT_POOL());
    cot_options           options   = {};
    cot_loop_options      loop      = {};
    cot_solve_options     solve     = {};
    cot_adamw             adamw     = {};
    cot_attention_options attention = {};
    cot_custom            custom    = {};
    cot_fn_rules          rules     = {};
#endif
    (void)options, (void)loop, (void)solve, (void)adamw, (void)attention, (void)custom, (void)rules;
}

/* Numbers of every type beside vars. */
void use_numbers(cot_tape *t, cot_var x) {
    cot_var y = cot_scalar(t, 1.5);
#ifndef COT_PLAIN
    float         f = 0.5f;
    long double   l = 0.5L;
    signed char   c = 1;
    unsigned char uc = 1;
    short         s = 1;
    unsigned long ul = 1;
    long long     ll = 1;
    y = cot_add(x, f), y = cot_add(l, y), y = cot_sub(y, c), y = cot_mul(uc, y), y = cot_div(y, s), y = cot_pow(y, 2u);
    y = cot_maximum(y, ul), y = cot_minimum(ll, y), y = cot_mul(y, true),
    y = cot_mul(cot_add(x, 1), cot_sub(2, cot_mul(y, 3)));
    y = cot_huber(x, 0.5, 1), y = cot_mse(0, x), y = cot_bernoulli(t, cot_key_of(1), 0.5, COT_SHAPE(2));
#include "elementwise.h"
#else
    y = cot_add(x, cot_number(0.5)), y = cot_mul(cot_integer(3), y);
#endif
    y = cot_neg(cot_detach(cot_call(NOTHING, 1, &y, NOTHING)));
    y = cot_full_like(y, 3), y = cot_data(cot_tape_of(y), COT_F64, COT_SCALAR, NOTHING);
}

void use_writes(cot_var *x, cot_var *more) {
#ifndef COT_PLAIN
    cot_add_into(x, 1), cot_sub_into(x, 1.0), cot_mul_into(x, 2.0f), cot_div_into(x, *more), cot_copy_into(x, 0);
    cot_update_slice(x, 0, 0, COT_END, 2, 1.5);
    cot_grad_set(*x, 0.0), cot_grad_add(*x, 1);
    cot_assign(*x, 0.0), cot_backward_seeded(*x, 2), cot_vjp(*x, 1.0, 1, more, more);
#endif
    cot_grad_of(*x, 1, more, more), cot_split(*x, 2, 0, more), cot_qr(*x, more, NOTHING),
        cot_lu(*x, NOTHING, more, NOTHING);
    cot_eigh(*x, more, NOTHING), cot_svd(*x, NOTHING, more, NOTHING), cot_slogdet(*x, NOTHING, more),
        cot_taylor(*x, 1, more, 1, more, 0, more);
    *x = cot_wrap(cot_tape_of(*x), COT_F64, COT_SCALAR, NOTHING), *x = cot_grad(*x), *x = cot_jvp(*x, 1, more, more);
    *x = cot_tensor(cot_tape_of(*x), COT_F64, COT_SCALAR, NOTHING), *x = cot_scalar_of(cot_tape_of(*x), COT_F32, 1);
    *x = cot_constant(cot_tape_of(*x), 1);
}

/* What calls functions, and layers: with COT_SOURCE_LINES these are macros, too. */
void use_functions(cot_fn f, cot_layer_fn layer, cot_var x, cot_var *y, cot_program *p, cot_jit *j) {
    cot_linear *linear = NOTHING;
    cot_fori(f, NOTHING, 0, 2, 1, &x, y, NOTHING), cot_scan(f, NOTHING, 2, 1, &x, 0, NOTHING, y, 0, NOTHING, NOTHING);
    cot_while(f, f, NOTHING, 1, &x, y, NOTHING), cot_cond(x, f, f, NOTHING, 1, &x, 1, y);
    cot_checkpoint(f, NOTHING, 1, &x, 1, y), cot_checkpoint_sequential(layer, NOTHING, 2, 1, 1, &x, y);
    cot_vmap(f, NOTHING, 1, &x, NOTHING, 1, y, NOTHING), cot_custom_fn(NOTHING, f, NOTHING, 1, &x, 1, y);
    cot_program_call(p, 1, &x, 1, y), cot_jit_call(j, 1, &x, 1, y);
    cot_value_and_grad(f, NOTHING, 1, &x, y, y), cot_fn_vjp(f, NOTHING, 1, &x, 1, y, y, y);
    cot_fn_jvp(f, NOTHING, 1, &x, &x, 1, y, y), cot_fn_jacobian(f, NOTHING, 1, &x, 1, y, COT_AUTO, y);
    cot_fn_hessian(f, NOTHING, 1, &x, y, y), cot_linearize(f, NOTHING, 1, &x, 1, y, &linear);
    cot_linear_jvp(linear, &x, y), cot_linear_vjp(linear, &x, y);
    cot_fn_sparse_jacobian(NOTHING, f, NOTHING, 1, &x, 1, y, y);
    cot_fn_sparse_hessian(NOTHING, f, NOTHING, 1, &x, y, y);
    cot_optim_record(NOTHING, x, x, 1, &x, &x, NOTHING, y);
    *y = cot_root(f, NOTHING, NOTHING, x, 0, NOTHING, NOTHING);
    *y = cot_fixed_point(f, NOTHING, NOTHING, x, 0, NOTHING, NOTHING);
    *y = cot_minimize(f, NOTHING, NOTHING, x, 0, NOTHING, NOTHING), *y = cot_linear_solve(f, NOTHING, x, NOTHING);
    *y = cot_stop_gradient(cot_leaf(x));
}

void use_matrices(cot_tape *t, cot_var x) {
    const int64_t at[1] = {0};
    cot_csr       a = cot_csr_from_dense(x), b = cot_csr_gcn(t, COT_F64, 1, 1, at, at);
    a = cot_csr_from_triplets(t, 1, 1, 1, at, at, x), a = cot_csr_from_arrays(t, 1, 1, NOTHING, NOTHING, x);
    a = cot_csr_softmax(cot_csr_transpose(cot_csr_sddmm(b, x, x))), b = cot_csr_load(t, "a.npz", COT_F64);
    x = cot_csr_matmul(a, cot_matmul_csr(cot_csr_matmul_transposed(a, x), b)), x = cot_csr_to_dense(a);
    x = cot_csr_sum_rows(a), x = cot_csr_sum_columns(a), x = cot_csr_solve(a, x, NOTHING);
    x = cot_csr_entry_rows(a), x = cot_csr_entry_columns(a);
}

void use_layers(cot_params *p, cot_net net, cot_csr graph, cot_var x, cot_var *state) {
    cot_params_init(p, net, x, cot_key_of(1));
    x = cot_nn_dense(p, "a", x, 2), x = cot_nn_linear(p, "b", x, 2), x = cot_nn_embedding(p, "c", x, 2, 2, 0);
    x = cot_nn_conv(p, "d", x, 2, COT_SHAPE(3, 3), true, COT_CONV_DEFAULT);
    x = cot_nn_conv_transpose(p, "e", x, 2, COT_SHAPE(3, 3), true, COT_CONV_DEFAULT);
    x = cot_nn_layer_norm(p, "f", x, 1e-5), x = cot_nn_rms_norm(p, "g", x, 1e-5);
    x = cot_nn_group_norm(p, "h", x, 2, 1e-5), x = cot_nn_batch_norm(p, "i", x, 0.1, 1e-5);
    x = cot_nn_dropout(p, "j", x, 0.5), x = cot_nn_attention(p, "k", x, NOTHING), x = cot_nn_rotary(x, 1e4, 0);
    x = cot_nn_lstm(p, "l", x, 2, state), x = cot_nn_gru(p, "m", x, 2, state);
    x = cot_nn_gcn(p, "n", graph, x, 2, true), x = cot_nn_gcn_csr(p, "o", graph, graph, 2, true);
    x = cot_nn_gat(p, "p", graph, x, 2, NOTHING), x = cot_nn_cross_entropy(x, x, NOTHING);
    x = cot_loss_scaled(NOTHING, x);
}

void print_statuses(void) {
#define PRINT(name, text) printf("%s: %s\n", #name, text);
    COT_STATUS_LIST(PRINT)
}
