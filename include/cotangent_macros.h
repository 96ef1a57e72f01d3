/* cotangent_macros.h: macros over functions that cotangent_ops.h brings none for: plain numbers mix
 * into what writes, and with COT_SOURCE_LINES defined each call remembers its line. What a function
 * does stands where it is declared; here is nothing to learn. */
#ifndef COTANGENT_H
/* This file is a part of it, which it includes last: after all functions. */
#include <cotangent.h>
#elif !defined(COTANGENT_MACROS_H)
#define COTANGENT_MACROS_H

#if defined(__GNUC__) && !defined(COT_PLAIN)
#define cot_add_into(x, y) COT__SITED_WRITE(cot_add_into, x, COT__MIX(y))
#define cot_sub_into(x, y) COT__SITED_WRITE(cot_sub_into, x, COT__MIX(y))
#define cot_mul_into(x, y) COT__SITED_WRITE(cot_mul_into, x, COT__MIX(y))
#define cot_div_into(x, y) COT__SITED_WRITE(cot_div_into, x, COT__MIX(y))
#define cot_copy_into(x, y) COT__SITED_WRITE(cot_copy_into, x, COT__MIX(y))
#define cot_update_slice(x, axis, start, stop, step, y)                                                                \
    COT__SITED_WRITE(cot_update_slice, x, axis, start, stop, step, COT__MIX(y))
#define cot_assign(leaf, value) (cot_assign)(leaf, COT__MIX(value))
#define cot_grad_set(x, value) (cot_grad_set)(x, COT__MIX(value))
#define cot_grad_add(x, value) (cot_grad_add)(x, COT__MIX(value))
#define cot_backward_seeded(y, seed) (cot_backward_seeded)(y, COT__MIX(seed))
#define cot_vjp(y, seed, ...) (cot_vjp)(y, COT__MIX(seed), __VA_ARGS__)
#ifdef COT_SOURCE_LINES
/* What writes or records, but returns a status, is stamped through a var: of a write the one
 * that *x is after it, else the one that it starts from. A function gives the status: a value
 * that nobody takes would be a warning of clang's. */
static inline cot_status cot__stamped(cot_status status, const cot_var *x, const cot_site *site) {
    if (x) cot_sited(*x, site);
    return status;
}
#define COT__SITED_WRITE(write, x, ...) COT__SITED_WRITE_IN(write, x, __COUNTER__, __VA_ARGS__)
#define COT__SITED_WRITE_IN(write, x, n, ...) COT__SITED_WRITE_AS(write, x, n, __VA_ARGS__)
#define COT__SITED_WRITE_AS(write, x, n, ...)                                                                          \
    (__extension__({                                                                                                   \
        static const cot_site cot__s##n = {__FILE__, __LINE__, __func__};                                              \
        cot_var              *cot__p##n = (x);                                                                         \
        cot__stamped((write)(cot__p##n, __VA_ARGS__), cot__p##n, &cot__s##n);                                          \
    }))
#define COT__SITED_FROM(function, y, ...) COT__SITED_FROM_IN(function, y, __COUNTER__, __VA_ARGS__)
#define COT__SITED_FROM_IN(function, y, n, ...) COT__SITED_FROM_AS(function, y, n, __VA_ARGS__)
#define COT__SITED_FROM_AS(function, y, n, ...)                                                                        \
    (__extension__({                                                                                                   \
        static const cot_site cot__s##n = {__FILE__, __LINE__, __func__};                                              \
        const cot_var         cot__y##n = (y);                                                                         \
        cot__stamped((function)(cot__y##n, __VA_ARGS__), &cot__y##n, &cot__s##n);                                      \
    }))
#define cot_grad_of(y, ...) COT__SITED_FROM(cot_grad_of, y, __VA_ARGS__)
#undef cot_vjp
#define cot_vjp(y, seed, ...) COT__SITED_FROM(cot_vjp, y, COT__MIX(seed), __VA_ARGS__)
#define cot_taylor(y, ...) COT__SITED_FROM(cot_taylor, y, __VA_ARGS__)
#define cot_split(x, ...) COT__SITED_FROM(cot_split, x, __VA_ARGS__)
#define cot_qr(a, ...) COT__SITED_FROM(cot_qr, a, __VA_ARGS__)
#define cot_lu(a, ...) COT__SITED_FROM(cot_lu, a, __VA_ARGS__)
#define cot_eigh(a, ...) COT__SITED_FROM(cot_eigh, a, __VA_ARGS__)
#define cot_svd(a, ...) COT__SITED_FROM(cot_svd, a, __VA_ARGS__)
#define cot_slogdet(a, ...) COT__SITED_FROM(cot_slogdet, a, __VA_ARGS__)
/* What makes values is stamped too, or it would take the line of the operation after it. */
#define cot_scalar(...) COT__SITED((cot_scalar)(__VA_ARGS__))
#define cot_scalar_of(...) COT__SITED((cot_scalar_of)(__VA_ARGS__))
#define cot_tensor(...) COT__SITED((cot_tensor)(__VA_ARGS__))
#define cot_constant(...) COT__SITED((cot_constant)(__VA_ARGS__))
#define cot_data(...) COT__SITED((cot_data)(__VA_ARGS__))
#define cot_wrap(...) COT__SITED((cot_wrap)(__VA_ARGS__))
#define cot_detach(...) COT__SITED((cot_detach)(__VA_ARGS__))
#define cot_grad(...) COT__SITED((cot_grad)(__VA_ARGS__))
#define cot_jvp(...) COT__SITED((cot_jvp)(__VA_ARGS__))
#define cot_call(...) COT__SITED((cot_call)(__VA_ARGS__))
/* What calls functions of yours and gives a status is stamped behind the call, when those have
 * stamped their own operations: through the first of its inputs that is on a tape. A second stamp
 * does nothing. */
static inline cot_status cot__stamped_by(cot_status status, const cot_site *site, int n, const cot_var *xs) {
    int k = 0;
    while (xs && k < n && !cot_tape_of(xs[k])) k++;
    if (xs && k < n) cot_sited(xs[k], site);
    return status;
}
static inline cot_status cot__value_and_grad_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs,
                                                cot_var *y, cot_var *grads) {
    return cot__stamped_by((cot_value_and_grad)(f, user, n, xs, y, grads), site, n, xs);
}
static inline cot_status cot__fn_vjp_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs, int m,
                                        cot_var *ys, const cot_var *seeds, cot_var *grads) {
    return cot__stamped_by((cot_fn_vjp)(f, user, n, xs, m, ys, seeds, grads), site, n, xs);
}
static inline cot_status cot__fn_jvp_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs,
                                        const cot_var *tangents, int m, cot_var *ys, cot_var *dys) {
    return cot__stamped_by((cot_fn_jvp)(f, user, n, xs, tangents, m, ys, dys), site, n, xs);
}
static inline cot_status cot__linearize_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs,
                                           int m, cot_var *ys, cot_linear **linear) {
    return cot__stamped_by((cot_linearize)(f, user, n, xs, m, ys, linear), site, n, xs);
}
static inline cot_status cot__fn_jacobian_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs,
                                             int m, cot_var *ys, cot_mode mode, cot_var *jacobians) {
    return cot__stamped_by((cot_fn_jacobian)(f, user, n, xs, m, ys, mode, jacobians), site, n, xs);
}
static inline cot_status cot__fn_hessian_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs,
                                            cot_var *y, cot_var *hessians) {
    return cot__stamped_by((cot_fn_hessian)(f, user, n, xs, y, hessians), site, n, xs);
}
static inline cot_status cot__fn_sparse_jacobian_at(const cot_site *site, const cot_sparse_plan *plan, cot_fn f,
                                                    void *user, int n, const cot_var *xs, int m, cot_var *ys,
                                                    cot_var *values) {
    return cot__stamped_by((cot_fn_sparse_jacobian)(plan, f, user, n, xs, m, ys, values), site, n, xs);
}
static inline cot_status cot__fn_sparse_hessian_at(const cot_site *site, const cot_sparse_plan *plan, cot_fn f,
                                                   void *user, int n, const cot_var *xs, cot_var *y, cot_var *values) {
    return cot__stamped_by((cot_fn_sparse_hessian)(plan, f, user, n, xs, y, values), site, n, xs);
}
static inline cot_status cot__scan_at(const cot_site *site, cot_fn body, void *user, int64_t length, int carry,
                                      const cot_var *init, int nxs, const cot_var *xs, cot_var *final, int nys,
                                      cot_var *ys, const cot_loop_options *options) {
    cot_status status = (cot_scan)(body, user, length, carry, init, nxs, xs, final, nys, ys, options);
    return cot__stamped_by(cot__stamped_by(status, site, carry, init), site, nxs, xs);
}
static inline cot_status cot__fori_at(const cot_site *site, cot_fn body, void *user, int64_t lower, int64_t upper,
                                      int carry, const cot_var *init, cot_var *final,
                                      const cot_loop_options *options) {
    return cot__stamped_by((cot_fori)(body, user, lower, upper, carry, init, final, options), site, carry, init);
}
static inline cot_status cot__while_at(const cot_site *site, cot_fn test, cot_fn body, void *user, int carry,
                                       const cot_var *init, cot_var *final, const cot_loop_options *options) {
    return cot__stamped_by((cot_while)(test, body, user, carry, init, final, options), site, carry, init);
}
static inline cot_status cot__cond_at(const cot_site *site, cot_var choice, cot_fn then, cot_fn otherwise,
                                      void *user, int n, const cot_var *xs, int m, cot_var *ys) {
    cot_status status = (cot_cond)(choice, then, otherwise, user, n, xs, m, ys);
    return cot__stamped_by(cot__stamped_by(status, site, n, xs), site, 1, &choice);
}
static inline cot_status cot__checkpoint_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs,
                                            int m, cot_var *ys) {
    return cot__stamped_by((cot_checkpoint)(f, user, n, xs, m, ys), site, n, xs);
}
static inline cot_status cot__checkpoint_sequential_at(const cot_site *site, cot_layer_fn layer, void *user,
                                                       int64_t layers, int64_t segments, int n, const cot_var *xs,
                                                       cot_var *ys) {
    return cot__stamped_by((cot_checkpoint_sequential)(layer, user, layers, segments, n, xs, ys), site, n, xs);
}
static inline cot_status cot__vmap_at(const cot_site *site, cot_fn f, void *user, int n, const cot_var *xs,
                                      const int *in_axes, int m, cot_var *ys, const int *out_axes) {
    return cot__stamped_by((cot_vmap)(f, user, n, xs, in_axes, m, ys, out_axes), site, n, xs);
}
static inline cot_status cot__custom_fn_at(const cot_site *site, const cot_fn_rules *rules, cot_fn f, void *user,
                                           int n, const cot_var *xs, int m, cot_var *ys) {
    return cot__stamped_by((cot_custom_fn)(rules, f, user, n, xs, m, ys), site, n, xs);
}
static inline cot_status cot__program_call_at(const cot_site *site, cot_program *p, int n, const cot_var *xs, int m,
                                              cot_var *ys) {
    return cot__stamped_by((cot_program_call)(p, n, xs, m, ys), site, n, xs);
}
static inline cot_status cot__jit_call_at(const cot_site *site, cot_jit *j, int n, const cot_var *xs, int m,
                                          cot_var *ys) {
    return cot__stamped_by((cot_jit_call)(j, n, xs, m, ys), site, n, xs);
}
static inline cot_status cot__optim_record_at(const cot_site *site, const cot_optim_options *options, cot_var rate,
                                              cot_var step, int n, const cot_var *gs, const cot_var *xs,
                                              const int *group, cot_var *ys) {
    return cot__stamped_by((cot_optim_record)(options, rate, step, n, gs, xs, group, ys), site, n, xs);
}
static inline cot_status cot__linear_jvp_at(const cot_site *site, cot_linear *linear, const cot_var *tangents,
                                            cot_var *dys) {
    cot_status status = (cot_linear_jvp)(linear, tangents, dys);
    return cot__stamped_by(status, site, status == COT_OK, dys);
}
static inline cot_status cot__linear_vjp_at(const cot_site *site, cot_linear *linear, const cot_var *seeds,
                                            cot_var *grads) {
    cot_status status = (cot_linear_vjp)(linear, seeds, grads);
    return cot__stamped_by(status, site, status == COT_OK, grads);
}
static inline cot_status cot__params_init_at(const cot_site *site, cot_params *p, cot_net net, cot_var x,
                                             cot_key key) {
    return cot__stamped_by((cot_params_init)(p, net, x, key), site, 1, &x);
}
#define COT__SITED_CALL(function, ...) COT__SITED_CALL_IN(function, __COUNTER__, __VA_ARGS__)
#define COT__SITED_CALL_IN(function, n, ...) COT__SITED_CALL_AS(function, n, __VA_ARGS__)
#define COT__SITED_CALL_AS(function, n, ...)                                                                           \
    (__extension__({                                                                                                   \
        static const cot_site cot__s##n = {__FILE__, __LINE__, __func__};                                              \
        function(&cot__s##n, __VA_ARGS__);                                                                             \
    }))
static inline cot_csr cot__stamped_csr(cot_csr a, const cot_site *site) {
    cot_sited(a.values, site);
    return a;
}
#define COT__SITED_CSR(call) COT__SITED_CSR_IN(call, __COUNTER__)
#define COT__SITED_CSR_IN(call, n) COT__SITED_CSR_AS(call, n)
#define COT__SITED_CSR_AS(call, n)                                                                                     \
    (__extension__({                                                                                                   \
        static const cot_site cot__s##n = {__FILE__, __LINE__, __func__};                                              \
        cot__stamped_csr(call, &cot__s##n);                                                                            \
    }))
#define cot_linear_jvp(...) COT__SITED_CALL(cot__linear_jvp_at, __VA_ARGS__)
#define cot_linear_vjp(...) COT__SITED_CALL(cot__linear_vjp_at, __VA_ARGS__)
#define cot_params_init(...) COT__SITED_CALL(cot__params_init_at, __VA_ARGS__)
#define cot_value_and_grad(...) COT__SITED_CALL(cot__value_and_grad_at, __VA_ARGS__)
#define cot_fn_vjp(...) COT__SITED_CALL(cot__fn_vjp_at, __VA_ARGS__)
#define cot_fn_jvp(...) COT__SITED_CALL(cot__fn_jvp_at, __VA_ARGS__)
#define cot_linearize(...) COT__SITED_CALL(cot__linearize_at, __VA_ARGS__)
#define cot_fn_jacobian(...) COT__SITED_CALL(cot__fn_jacobian_at, __VA_ARGS__)
#define cot_fn_hessian(...) COT__SITED_CALL(cot__fn_hessian_at, __VA_ARGS__)
#define cot_fn_sparse_jacobian(...) COT__SITED_CALL(cot__fn_sparse_jacobian_at, __VA_ARGS__)
#define cot_fn_sparse_hessian(...) COT__SITED_CALL(cot__fn_sparse_hessian_at, __VA_ARGS__)
#define cot_scan(...) COT__SITED_CALL(cot__scan_at, __VA_ARGS__)
#define cot_fori(...) COT__SITED_CALL(cot__fori_at, __VA_ARGS__)
#define cot_while(...) COT__SITED_CALL(cot__while_at, __VA_ARGS__)
#define cot_cond(...) COT__SITED_CALL(cot__cond_at, __VA_ARGS__)
#define cot_checkpoint(...) COT__SITED_CALL(cot__checkpoint_at, __VA_ARGS__)
#define cot_checkpoint_sequential(...) COT__SITED_CALL(cot__checkpoint_sequential_at, __VA_ARGS__)
#define cot_vmap(...) COT__SITED_CALL(cot__vmap_at, __VA_ARGS__)
#define cot_custom_fn(...) COT__SITED_CALL(cot__custom_fn_at, __VA_ARGS__)
#define cot_program_call(...) COT__SITED_CALL(cot__program_call_at, __VA_ARGS__)
#define cot_jit_call(...) COT__SITED_CALL(cot__jit_call_at, __VA_ARGS__)
#define cot_optim_record(...) COT__SITED_CALL(cot__optim_record_at, __VA_ARGS__)
#define cot_stop_gradient(...) COT__SITED((cot_stop_gradient)(__VA_ARGS__))
#define cot_leaf(...) COT__SITED((cot_leaf)(__VA_ARGS__))
#define cot_linear_solve(...) COT__SITED((cot_linear_solve)(__VA_ARGS__))
#define cot_root(...) COT__SITED((cot_root)(__VA_ARGS__))
#define cot_fixed_point(...) COT__SITED((cot_fixed_point)(__VA_ARGS__))
#define cot_minimize(...) COT__SITED((cot_minimize)(__VA_ARGS__))
#define cot_csr_to_dense(...) COT__SITED((cot_csr_to_dense)(__VA_ARGS__))
#define cot_csr_entry_rows(...) COT__SITED((cot_csr_entry_rows)(__VA_ARGS__))
#define cot_csr_entry_columns(...) COT__SITED((cot_csr_entry_columns)(__VA_ARGS__))
#define cot_csr_matmul(...) COT__SITED((cot_csr_matmul)(__VA_ARGS__))
#define cot_csr_matmul_transposed(...) COT__SITED((cot_csr_matmul_transposed)(__VA_ARGS__))
#define cot_matmul_csr(...) COT__SITED((cot_matmul_csr)(__VA_ARGS__))
#define cot_csr_sum_rows(...) COT__SITED((cot_csr_sum_rows)(__VA_ARGS__))
#define cot_csr_sum_columns(...) COT__SITED((cot_csr_sum_columns)(__VA_ARGS__))
#define cot_csr_solve(...) COT__SITED((cot_csr_solve)(__VA_ARGS__))
#define cot_nn_dense(...) COT__SITED((cot_nn_dense)(__VA_ARGS__))
#define cot_nn_linear(...) COT__SITED((cot_nn_linear)(__VA_ARGS__))
#define cot_nn_embedding(...) COT__SITED((cot_nn_embedding)(__VA_ARGS__))
#define cot_nn_conv(...) COT__SITED((cot_nn_conv)(__VA_ARGS__))
#define cot_nn_conv_transpose(...) COT__SITED((cot_nn_conv_transpose)(__VA_ARGS__))
#define cot_nn_layer_norm(...) COT__SITED((cot_nn_layer_norm)(__VA_ARGS__))
#define cot_nn_rms_norm(...) COT__SITED((cot_nn_rms_norm)(__VA_ARGS__))
#define cot_nn_group_norm(...) COT__SITED((cot_nn_group_norm)(__VA_ARGS__))
#define cot_nn_batch_norm(...) COT__SITED((cot_nn_batch_norm)(__VA_ARGS__))
#define cot_nn_dropout(...) COT__SITED((cot_nn_dropout)(__VA_ARGS__))
#define cot_nn_attention(...) COT__SITED((cot_nn_attention)(__VA_ARGS__))
#define cot_nn_rotary(...) COT__SITED((cot_nn_rotary)(__VA_ARGS__))
#define cot_nn_lstm(...) COT__SITED((cot_nn_lstm)(__VA_ARGS__))
#define cot_nn_gru(...) COT__SITED((cot_nn_gru)(__VA_ARGS__))
#define cot_nn_gcn(...) COT__SITED((cot_nn_gcn)(__VA_ARGS__))
#define cot_nn_gcn_csr(...) COT__SITED((cot_nn_gcn_csr)(__VA_ARGS__))
#define cot_nn_gat(...) COT__SITED((cot_nn_gat)(__VA_ARGS__))
#define cot_nn_cross_entropy(...) COT__SITED((cot_nn_cross_entropy)(__VA_ARGS__))
#define cot_loss_scaled(...) COT__SITED((cot_loss_scaled)(__VA_ARGS__))
#define cot_csr_from_triplets(...) COT__SITED_CSR((cot_csr_from_triplets)(__VA_ARGS__))
#define cot_csr_from_arrays(...) COT__SITED_CSR((cot_csr_from_arrays)(__VA_ARGS__))
#define cot_csr_from_dense(...) COT__SITED_CSR((cot_csr_from_dense)(__VA_ARGS__))
#define cot_csr_gcn(...) COT__SITED_CSR((cot_csr_gcn)(__VA_ARGS__))
#define cot_csr_load(...) COT__SITED_CSR((cot_csr_load)(__VA_ARGS__))
#define cot_csr_transpose(...) COT__SITED_CSR((cot_csr_transpose)(__VA_ARGS__))
#define cot_csr_sddmm(...) COT__SITED_CSR((cot_csr_sddmm)(__VA_ARGS__))
#define cot_csr_softmax(...) COT__SITED_CSR((cot_csr_softmax)(__VA_ARGS__))
#else
#define COT__SITED_WRITE(write, x, ...) (write)(x, __VA_ARGS__)
#endif
#endif

#endif
