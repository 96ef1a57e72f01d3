/* code_calls.c: nodes as calls of the library's public functions, with their attributes as
 * arguments.
 *
 * An operation that no public function records alone (a norm's way back, say) has no row, and code
 * that needs it ends there. */
#include "trace/code_calls.h"

#include "backend/elements.h"

#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

void cot__c_shape_put(cot__text *x, int n, const int64_t *extent) {
    if (n == 0) cot__put(x, "COT_SCALAR");
    for (int k = 0; k < n; k++) cot__putf(x, k ? ", %lld" : "COT_SHAPE(%lld", (long long)extent[k]);
    if (n) cot__put(x, ")");
}

const char *cot__c_dtype_name(cot_dtype dtype) {
    static const char *const names[COT_DTYPE_COUNT] = {"COT_F64", "COT_F32", "COT_BF16", "COT_F16",
                                                       "COT_I64", "COT_I32", "COT_U8",   "COT_BOOL"};
    return names[dtype];
}

/* The axes of a bit mask; all of them when there are n. */
static void put_axes(cot__text *x, int64_t mask, bool keep, int n) {
    const char *comma = "";
    if (mask == ((int64_t)1 << n) - 1) {
        cot__put(x, keep ? "COT_KEEP_ALL" : "COT_ALL");
        return;
    }
    if (mask == 0) { /* no axis: nothing to reduce */
        cot__putf(x, "(cot_axes){0, %s, {0}}", keep ? "true" : "false");
        return;
    }
    cot__put(x, keep ? "COT_KEEP(" : "COT_AXES(");
    for (int k = 0; k < n; k++)
        if (mask >> k & 1) cot__putf(x, "%s%d", comma, k), comma = ", ";
    cot__put(x, ")");
}

/* An expression around which the axis and the last one change places; `after` ends it. */
static void put_swapped(cot__text *x, const cot__c_along *a, const char *text, bool after) {
    int last = a->shape.ndim - 1;
    if (!after && a->axis != last) cot__put(x, "cot_permute(");
    if (!after) cot__put(x, text);
    for (int k = 0; after && a->axis != last && k <= last; k++)
        cot__putf(x, k ? ", %d" : ", COT_AXES(%d", k == last ? a->axis : k == a->axis ? last : k);
    if (after && a->axis != last) cot__put(x, "))");
}

/* Updates times rows of ones and zeros, added up. */
void cot__c_along_put(cot__text *x, const cot__c_along *a) {
    cot__put(x, "cot_add("), cot__put(x, a->to), cot__put(x, ", ");
    put_swapped(x, a, "cot_sum(cot_mul(cot_one_hot(", false);
    put_swapped(x, a, a->index, false), put_swapped(x, a, NULL, true);
    cot__putf(x, ", %lld, %s), cot_expand_dims(", (long long)a->shape.dim[a->axis], cot__c_dtype_name(a->dtype));
    put_swapped(x, a, a->updates, false), put_swapped(x, a, NULL, true);
    cot__putf(x, ", -1)), COT_AXES(%d))", a->shape.ndim - 1);
    put_swapped(x, a, NULL, true), cot__put(x, ")");
}

/* ---- calls that a row cannot say ------------------------------------------------------------- */

static bool put_permute(const cot__c_calling *c) {
    int n = cot__shape_at(c->t, c->id).ndim;
    bool reversed = true;
    for (int k = 0; k < n; k++) reversed = reversed && c->a[k] == n - 1 - k;
    if (reversed) {
        cot__putf(c->to, "cot_transpose("), cot__put(c->to, c->operand[0]), cot__put(c->to, ")");
        return true;
    }
    cot__put(c->to, "cot_permute("), cot__put(c->to, c->operand[0]);
    for (int k = 0; k < n; k++) cot__putf(c->to, k ? ", %lld" : ", COT_AXES(%lld", (long long)c->a[k]);
    cot__put(c->to, "))");
    return true;
}

/* axis, first, length, step, drop */
static bool put_slice(const cot__c_calling *c) {
    long long first = c->a[1], stop = c->a[1] + c->a[2] * c->a[3];
    cot__put(c->to, c->a[4] ? "cot_index(" : "cot_slice("), cot__put(c->to, c->operand[0]);
    cot__putf(c->to, ", %lld, %lld", (long long)c->a[0], first);
    if (!c->a[4] && stop < 0) cot__putf(c->to, ", COT_END, %lld", (long long)c->a[3]);
    else if (!c->a[4]) cot__putf(c->to, ", %lld, %lld", stop, (long long)c->a[3]);
    cot__put(c->to, ")");
    return true;
}

static void put_list(const cot__c_calling *c, int n) {
    cot__putf(c->to, "%d, (cot_var[]){", n);
    for (int k = 0; k < n; k++) cot__put(c->to, k ? ", " : ""), cot__put(c->to, c->operand[k]);
    cot__put(c->to, "}");
}

/* axis, new */
static bool put_concat(const cot__c_calling *c) {
    cot__put(c->to, c->a[1] ? "cot_stack(" : "cot_concat(");
    put_list(c, cot__nargs(c->n));
    cot__putf(c->to, ", %lld)", (long long)c->a[0]);
    return true;
}

static bool put_pad(const cot__c_calling *c) {
    int64_t side[2][COT_MAX_NDIM];
    int     n = cot__shape_at(c->t, c->id).ndim;
    char    number[COT__C_NAME];
    for (int k = 0; k < 2 * n; k++) side[k % 2][k / 2] = c->a[k];
    cot__put(c->to, "cot_pad("), cot__put(c->to, c->operand[0]);
    for (int k = 0; k < 2; k++) cot__put(c->to, ", "), cot__c_shape_put(c->to, n, side[k]);
    cot__putf(c->to, ", %s)", cot__c_number(c->n->extra.attr->number, number));
    return true;
}

/* axis, descending; only the first places, where the result is shorter than the operand */
static bool put_argsort(const cot__c_calling *c) {
    cot_shape x = cot__shape_at(c->t, cot__arg(c->n, 0)), z = cot__shape_at(c->t, c->id);
    int       axis = (int)c->a[0];
    bool      part = z.dim[axis] < x.dim[axis];
    cot__put(c->to, part ? "cot_slice(cot_argsort(" : "cot_argsort("), cot__put(c->to, c->operand[0]);
    cot__putf(c->to, ", %d, %s)", axis, c->a[1] ? "true" : "false");
    if (part) cot__putf(c->to, ", %d, 0, %lld, 1)", axis, (long long)z.dim[axis]);
    return true;
}

/* x with x[i, indices[i,j]] += updates[i,j] */
static bool put_along(const cot__c_calling *c) {
    cot__c_along_put(c->to, &(cot__c_along){c->operand[0], c->operand[1], c->operand[2], cot__shape_at(c->t, c->id),
                                            (int)c->a[0], cot__dtype_at(c->n)});
    return true;
}

/* x with the part axis, first, length, step written over */
static bool put_update(const cot__c_calling *c) {
    cot__put(c->to, "cot_scatter("), cot__put(c->to, c->operand[0]);
    cot__putf(c->to, ", cot_arange(t, COT_I64, %lld, %lld, %lld), ", (long long)c->a[1],
              (long long)(c->a[1] + c->a[2] * c->a[3]), (long long)c->a[3]);
    cot__put(c->to, c->operand[1]), cot__putf(c->to, ", %lld)", (long long)c->a[0]);
    return true;
}

static bool put_flags(const cot__c_calling *c) {
    static const struct { int flag; const char *name; } flags[] = {{COT_UPPER, "COT_UPPER"},
        {COT_TRANSPOSED, "COT_TRANSPOSED"}, {COT_UNIT_DIAGONAL, "COT_UNIT_DIAGONAL"}, {COT_RIGHT, "COT_RIGHT"}};
    const char *bar = "";
    cot__put(c->to, "cot_triangular_solve("), cot__put(c->to, c->operand[0]);
    cot__put(c->to, ", "), cot__put(c->to, c->operand[1]), cot__put(c->to, ", ");
    for (int k = 0; k < COUNTOF(flags); k++)
        if (c->a[0] & flags[k].flag) cot__putf(c->to, "%s%s", bar, flags[k].name), bar = " | ";
    cot__put(c->to, *bar ? ")" : "0)");
    return true;
}

static bool put_dot_of(const cot__c_calling *c) {
    cot__c_calling second = *c;
    int     n = cot__nargs(c->n) / 2;
    second.operand += n;
    cot__put(c->to, "cot_dot_of("), put_list(c, n);
    cot__put(c->to, ", (cot_var[]){");
    for (int k = 0; k < n; k++) cot__put(c->to, k ? ", " : ""), cot__put(c->to, second.operand[k]);
    cot__put(c->to, "})");
    return true;
}

/* Where a mask is true: the numbers 0, 1, … that it keeps. size: how many places there are, filled
 * up with -1; -1: as many as are true. */
static bool put_nonzero(const cot__c_calling *c) {
    cot_shape mask = cot__shape_at(c->t, cot__arg(c->n, 0));
    cot__putf(c->to, c->a[0] < 0 ? "cot_compress(cot_arange(t, COT_I64, 0, %lld, 1), "
                                 : "cot_compress_to(cot_arange(t, COT_I64, 0, %lld, 1), ", (long long)mask.dim[0]);
    cot__put(c->to, c->operand[0]);
    if (c->a[0] < 0) cot__put(c->to, ", 0)");
    else cot__putf(c->to, ", 0, %lld, -1.0)", (long long)c->a[0]);
    return mask.ndim == 1;
}

/* That of cumprod, whose terms are the first of its factors and zeros. */
static bool put_recurrence(const cot__c_calling *c) {
    uint32_t terms = cot__arg(c->n, 1);
    cot__put(c->to, "cot_cumprod("), cot__put(c->to, c->operand[0]);
    cot__putf(c->to, ", %lld, false)", (long long)c->a[0]);
    return !c->a[1] && !c->a[2] && c->t->nodes[terms].op == OP_pad;
}

/* By factors that cot_solve finds again; of the transpose it factors that. */
static bool put_solve(const cot__c_calling *c) {
    int n = cot__shape_at(c->t, c->id).ndim;
    cot__put(c->to, "cot_solve(");
    if (c->a[0]) cot__put(c->to, n == 2 ? "cot_transpose(" : "cot_permute(");
    cot__put(c->to, c->operand[0]);
    for (int k = 0; c->a[0] && n > 2 && k < n; k++)
        cot__putf(c->to, k ? ", %d" : ", COT_AXES(%d", k < n - 2 ? k : 2 * n - 3 - k);
    if (c->a[0]) cot__put(c->to, n == 2 ? ")" : "))");
    cot__put(c->to, ", "), cot__put(c->to, c->operand[1]), cot__put(c->to, ")");
    return true;
}

/* ---- sparse matrices ------------------------------------------------------------------------- */

/* The struct of a matrix, of values and a pattern, which is a constant like any other. */
static void put_csr(const cot__c_calling *c, int64_t rows, int64_t columns, const char *values, const char *pattern) {
    cot__putf(c->to, "(cot_csr){%lld, %lld, ", (long long)rows, (long long)columns);
    cot__put(c->to, values), cot__put(c->to, ", "), cot__put(c->to, pattern), cot__put(c->to, "}");
}

/* values, x, pattern; transposed */
static bool put_csr_matmul(const cot__c_calling *c) {
    cot_shape x = cot__shape_at(c->t, cot__arg(c->n, 1)), z = cot__shape_at(c->t, c->id);
    int64_t   in = x.dim[x.ndim - 2], out = z.dim[z.ndim - 2];
    cot__put(c->to, c->a[0] ? "cot_csr_matmul_transposed(" : "cot_csr_matmul(");
    put_csr(c, c->a[0] ? in : out, c->a[0] ? out : in, c->operand[0], c->operand[2]);
    cot__put(c->to, ", "), cot__put(c->to, c->operand[1]), cot__put(c->to, ")");
    return true;
}

/* x, y, pattern: the values of the matrix are not read. */
static bool put_csr_sddmm(const cot__c_calling *c) {
    cot_shape x = cot__shape_at(c->t, cot__arg(c->n, 0)), y = cot__shape_at(c->t, cot__arg(c->n, 1));
    cot_shape z = cot__shape_at(c->t, c->id);
    char      zeros[COT__C_NAME];
    snprintf(zeros, sizeof zeros, "cot_zeros(t, %s, COT_SHAPE(%lld))", cot__c_dtype_name(cot__dtype_at(c->n)),
             (long long)z.dim[z.ndim - 1]);
    cot__put(c->to, "cot_csr_sddmm(");
    put_csr(c, x.dim[x.ndim - 2], y.dim[y.ndim - 2], zeros, c->operand[2]);
    cot__put(c->to, ", "), cot__put(c->to, c->operand[0]), cot__put(c->to, ", "), cot__put(c->to, c->operand[1]);
    cot__put(c->to, ").values");
    return true;
}

/* values, pattern; rows */
static bool put_csr_softmax(const cot__c_calling *c) {
    cot_shape v = cot__shape_at(c->t, c->id), p = cot__shape_at(c->t, cot__arg(c->n, 1));
    cot__put(c->to, "cot_csr_softmax(");
    put_csr(c, c->a[0], p.dim[0] - 2 - c->a[0] - 3 * v.dim[v.ndim - 1], c->operand[0], c->operand[1]);
    cot__put(c->to, ").values");
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The call of an operation, in which stand for
 *   %0 %1 %2  operands       %*  all of them, as n and a list
 *   %a        the first integer                      %g %f  the first, the second as true or false
 *   %m        the mask of axes, with keepdims
 *   %s %d %l  shape, dtype and last extent of the result */
static const struct row { int op; const char *call; bool (*put)(const cot__c_calling *c); } rows[] = {
    {OP_detach, "cot_detach(%0)", NULL},
    {OP_alias, "%0", NULL},
    {OP_cast, "cot_cast(%0, %d)", NULL},
    {OP_copy, "cot_copy(%0)", NULL},
    {OP_reshape, "cot_reshape(%0, %s)", NULL},
    {OP_permute, NULL, put_permute},
    {OP_broadcast_to, "cot_broadcast_to(%0, %s)", NULL},
    {OP_slice, NULL, put_slice},
    {OP_concat, NULL, put_concat},
    {OP_pad, NULL, put_pad},
    {OP_take, "cot_take(%0, %1, %a)", NULL},
    {OP_take_along_axis, "cot_take_along_axis(%0, %1, %a)", NULL},
    {OP_scatter_add, "cot_scatter_add(%0, %1, %2, %a)", NULL},
    {OP_one_hot, "cot_one_hot(%0, %l, %d)", NULL},
    {OP_sum, "cot_sum(%0, %m)", NULL},
    {OP_max, "cot_max(%0, %m)", NULL},
    {OP_min, "cot_min(%0, %m)", NULL},
    {OP_argmax, "cot_argmax(%0, %m)", NULL},
    {OP_argmin, "cot_argmin(%0, %m)", NULL},
    {OP_categorical, "cot_argmax(%0, %m)", NULL},
    {OP_probabilities, "cot_detach(%0)", NULL},
    {OP_any, "cot_any(%0, %m)", NULL},
    {OP_all, "cot_all(%0, %m)", NULL},
    {OP_logsumexp, "cot_logsumexp(%0, %m)", NULL},
    {OP_norm, "cot_norm(%0, 2, %m)", NULL},
    {OP_softmax, "cot_softmax(%0, %a)", NULL},
    {OP_log_softmax, "cot_log_softmax(%0, %a)", NULL},
    {OP_softmax_cross_entropy, "cot_softmax_cross_entropy(%0, %1)", NULL},
    {OP_cross_entropy, "cot_cross_entropy(%0, %1)", NULL},
    {OP_mse, "cot_mse(%0, %1)", NULL},
    {OP_matmul, "cot_matmul(%0, %1)", NULL},
    {OP_cumsum, "cot_cumsum(%0, %a, %f)", NULL},
    {OP_argsort, NULL, put_argsort},
    {OP_scatter_add_along, NULL, put_along},
    {OP_update_slice, NULL, put_update},
    {OP_recurrence, NULL, put_recurrence},
    {OP_searchsorted, "cot_searchsorted(%0, %1, %g)", NULL},
    {OP_nonzero, NULL, put_nonzero},
    {OP_fft, NULL, cot__c_fft_put},
    {OP_rfft, NULL, cot__c_fft_put},
    {OP_irfft, NULL, cot__c_fft_put},
    {OP_layer_norm, NULL, cot__c_norm_put},
    {OP_rms_norm, NULL, cot__c_norm_put},
    {OP_attention, NULL, cot__c_attention_put},
    {OP_conv, NULL, cot__c_conv_put},
    {OP_conv_transpose, NULL, cot__c_conv_put},
    {OP_max_pool, NULL, cot__c_pool_put},
    {OP_avg_pool, NULL, cot__c_pool_put},
    {OP_lu_solve, NULL, put_solve},
    {OP_det, "cot_det(%0)", NULL},
    {OP_cholesky, "cot_cholesky(%0)", NULL},
    {OP_triangular_solve, NULL, put_flags},
    {OP_csr_matmul, NULL, put_csr_matmul},
    {OP_csr_sddmm, NULL, put_csr_sddmm},
    {OP_csr_softmax, NULL, put_csr_softmax},
    {OP_sum_of, "cot_sum_of(%*)", NULL},
    {OP_logsumexp_of, "cot_logsumexp_of(%*)", NULL},
    {OP_dot_of, NULL, put_dot_of},
};

static void put_argument(const cot__c_calling *c, char code) {
    cot_shape z = cot__shape_at(c->t, c->id);
    switch (code) {
    case '0': case '1': case '2': cot__put(c->to, c->operand[code - '0']); break;
    case '*': put_list(c, cot__nargs(c->n)); break;
    case 'a': cot__putf(c->to, "%lld", (long long)c->a[0]); break;
    case 'g': cot__put(c->to, c->a[0] ? "true" : "false"); break;
    case 'f': cot__put(c->to, c->a[1] ? "true" : "false"); break;
    case 'm': put_axes(c->to, c->a[0], c->a[1] != 0, cot__shape_at(c->t, cot__arg(c->n, 0)).ndim); break;
    case 's': cot__c_shape_put(c->to, z.ndim, z.dim); break;
    case 'd': cot__put(c->to, cot__c_dtype_name(cot__dtype_at(c->n))); break;
    case 'l': cot__putf(c->to, "%lld", (long long)(z.ndim ? z.dim[z.ndim - 1] : 0)); break;
    }
}

bool cot__c_call_put(cot__text *x, const cot_tape *t, uint32_t id, const char *const *operand) {
    const cot__node *n = &t->nodes[id];
    if (n->op < OP_structural) {
        cot__putf(x, "cot_%s(", cot__op_name(t, id));
        for (int k = 0; k < cot__nargs(n); k++) cot__put(x, k ? ", " : ""), cot__put(x, operand[k]);
        cot__put(x, ")");
        return true;
    }
    bool    plain = cot__op_of(n->op)->kind == KIND_SOURCE || !n->extra.attr;
    cot__c_calling c = {x, t, id, n, plain ? NULL : n->extra.attr->ints, operand};
    for (int k = 0; k < COUNTOF(rows); k++) {
        if (rows[k].op != n->op) continue;
        if (rows[k].put) return rows[k].put(&c);
        for (const char *p = rows[k].call; p && *p; p++)
            if (*p == '%') put_argument(&c, *++p);
            else cot__put(x, (char[]){*p, 0});
        return true;
    }
    return false;
}

/* ---- leaves and constants -------------------------------------------------------------------- */

const char *cot__c_element_type(cot_dtype dtype) {
    static const char *const types[COT_DTYPE_COUNT] = {
        [COT_F64] = "double",  [COT_F32] = "float",  [COT_I64] = "int64_t",
        [COT_I32] = "int32_t", [COT_U8] = "uint8_t", [COT_BOOL] = "bool"};
    return types[dtype];
}

bool cot__c_elements_put(cot__text *x, const cot_tape *t, uint32_t id, int64_t from, int64_t to) {
    cot__view v = cot__look(t, id);
    char      text[COT__C_NAME];
    for (int64_t i = from; i < to; i++) {
        int64_t at = i, offset = 0;
        for (int k = v.ndim - 1; k >= 0; k--) offset += at % v.shape[k] * v.stride[k], at /= v.shape[k];
        const char *p = (const char *)v.data + offset * cot__dtype_size(v.dtype);
        cot__put(x, i > from ? ", " : "");
        if (cot__dtype_is_float(v.dtype)) cot__put(x, cot__c_number(cot__load_f64(p, v.dtype), text));
        else cot__put(x, cot__element_text(p, v.dtype, text));
    }
    return v.data != NULL;
}

bool cot__c_is_given(int op) { return op == OP_last_writer || op == OP_cumargmax || op == OP_ravel_index; }

bool cot__c_source_put(cot__text *x, const cot_tape *t, uint32_t id, const char *data) {
    const cot__node *n = &t->nodes[id];
    cot_shape        shape = cot__shape_at(t, id);
    cot_dtype        dtype = cot__dtype_at(n);
    const char      *type = cot__c_element_type(dtype);
    bool             leaf = n->op == OP_leaf;
    if ((!leaf && n->op != OP_constant && !cot__c_is_given(n->op)) || !type || !cot__on_host(t->backend)) return false;
    if (shape.ndim == 0 && dtype == COT_F64) {
        cot__put(x, leaf ? "cot_scalar(t, " : "cot_constant(t, ");
        cot__c_elements_put(x, t, id, 0, 1);
        cot__put(x, ")");
        return true;
    }
    cot__putf(x, "%s(t, %s, ", leaf ? "cot_tensor" : "cot_data", cot__c_dtype_name(dtype));
    cot__c_shape_put(x, shape.ndim, shape.dim);
    if (data) {
        cot__putf(x, ", %s)", data);
        return true;
    }
    if (cot__count(shape.ndim, shape.dim) == 0) { /* C has no array without elements */
        cot__put(x, ", NULL)");
        return true;
    }
    cot__putf(x, ", (%s[]){", type);
    cot__c_elements_put(x, t, id, 0, cot__count(shape.ndim, shape.dim));
    cot__put(x, "})");
    return true;
}
