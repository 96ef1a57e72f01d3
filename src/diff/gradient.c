/* gradient.c: the public face of reverse mode: cot_backward and the gradients of leaves, cot_grad_of and cot_vjp. */
#include "diff/sweep.h"
#include "ops/inplace.h"

#include <string.h>

/* ---- inputs and seeds ------------------------------------------------------------------------------------------------------- */

bool cot__may_sweep(cot_tape *t, const char *op) {
    if (!t->inside) return true;
    cot__fail(t, COT_GRAD, "[%s] called inside a function of [%s]; such a function computes or records, and the library differentiates what it "
                           "recorded (use a tape of its own to differentiate there)", op, t->inside);
    return false;
}

bool cot__check_inputs(cot_tape *t, const char *op, int n, const cot_var *xs, uint32_t *index) {
    char which[32], text[160];
    for (int k = 0; k < n; k++) {
        uint32_t i = cot__index(xs[k]);
        if (UNLIKELY(xs[k].tape != t || i >= t->count || t->nodes[i].stamp != (uint32_t)(xs[k].id >> 32))) {
            snprintf(which, sizeof which, "xs[%d]", k);
            cot__operand(t, xs[k], op, which, &i);
            return false;
        }
        if (!(t->nodes[i].flags & COT__ACTIVE)) {
            cot__fail(t, COT_GRAD, "[%s] xs[%d], %s, does not require a gradient: it is a constant, detached, an integer, or was recorded "
                                   "without gradients", op, k, cot__describe(t, i, text, sizeof text));
            return false;
        }
        index[k] = i;
    }
    return true;
}

void cot__mark_wanted(cot_tape *t, int n, const uint32_t *index, bool on) {
    for (int k = 0; k < n; k++) {
        if (on)
            t->nodes[index[k]].flags |= COT__WANTED;
        else
            t->nodes[index[k]].flags &= (uint8_t)~COT__WANTED;
    }
}

/* The output of a sweep: alive, and a float. */
static cot_tape *enter_output(cot_var y, const char *op, uint32_t *i) {
    cot_tape *t = cot__enter(NULL, y, op, "", i);
    char      text[160];
    if (!t || !cot__may_sweep(t, op)) return NULL;
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[*i]))) {
        cot__fail(t, COT_DTYPE, "[%s] %s has dtype %s; only floats have derivatives", op, cot__describe(t, *i, text, sizeof text),
                  cot__dtype_name(cot__dtype_at(&t->nodes[*i])));
        return NULL;
    }
    return t;
}

/* The seed as a value on the tape with y's shape and dtype; NULL var: 1 for a scalar. */
static bool make_seed(cot_tape *t, const char *op, uint32_t y, const cot_var *given, uint32_t *seed) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    cot_dtype dtype = cot__dtype_at(&t->nodes[y]);
    if (!given) {
        if (cot__size_at(t, y) != 1) {
            cot__fail(t, COT_SHAPE, "[%s] y has shape %s, not a single number; give a seed of that shape (cot_backward_seeded, cot_vjp), or reduce y "
                                    "to a scalar first", op, cot__shape_text_at(t, y, a));
            return false;
        }
        *seed = cot__index(cot_full(t, dtype, cot__shape_at(t, y), 1));
        return t->status == COT_OK;
    }
    cot_var v = *given;
    if (cot__is_number(v) && cot__ndim_at(t, y) == 0) v = cot_constant(t, cot__number_value(v));
    if (!cot__operand(t, v, op, "seed", seed)) return false;
    cot_shape have = cot__shape_at(t, *seed), want = cot__shape_at(t, y);
    if (have.ndim != want.ndim || memcmp(have.dim, want.dim, (size_t)want.ndim * sizeof *want.dim) != 0) {
        cot__fail(t, COT_SHAPE, "[%s] the seed has shape %s, y has %s; they must be equal", op, cot__shape_text_at(t, *seed, a),
                  cot__shape_text_at(t, y, b));
        return false;
    }
    if (cot__dtype_at(&t->nodes[*seed]) != dtype) *seed = cot__index(cot_cast(VAR(t, *seed), dtype));
    return t->status == COT_OK;
}

static void put_seed(cot__sweep *s, uint32_t y, uint32_t seed) {
    cot_tape *t = s->t;
    if (cot__is_tensor(&t->nodes[y])) {
        cot__tensor *v = t->nodes[seed].value.tensor;
        cot__acc_share(s, y, v->storage, v->offset, v->dims + v->ndim);
    } else
        cot__slot_add(t, y, cot__load_f64(&t->nodes[seed].value, cot__dtype_at(&t->nodes[seed])));
}

/* ---- backward ------------------------------------------------------------------------------------------------------------------ */

static cot__retained *retained_of(cot_tape *t, uint32_t node) {
    for (uint32_t i = t->retained_count; i-- > 0;)
        if (t->retained[i].node == node) return &t->retained[i];
    return NULL;
}

/* Every tensor that arrived gets memory of its own first, so that adding to gradients cannot fail half way. */
static bool own_arrivals(cot__sweep *s) {
    cot_tape *t = s->t;
    for (uint32_t i = 0; i < s->arrival_count; i++) {
        cot__arrival *a = &s->arrivals[i];
        if (!a->tensor.storage) continue;
        cot__view v = cot__view_of(t, a->node);
        if (a->tensor.storage->refs == 1 && !a->tensor.storage->borrowed && cot__is_contiguous(v.ndim, v.shape, a->tensor.stride) &&
            a->tensor.offset == 0)
            continue;
        size_t        bytes = (size_t)(cot__count(v.ndim, v.shape) * cot__dtype_size(v.dtype));
        cot__storage *fresh = cot__storage_create(t, bytes, "backward");
        if (!fresh) return false;
        int64_t stride[COT_MAX_NDIM];
        cot__strides(v.ndim, v.shape, stride);
        cot__view to = {fresh->data, v.dtype, v.ndim, v.shape, stride};
        cot__view from = {(char *)a->tensor.storage->data + a->tensor.offset * cot__dtype_size(v.dtype), v.dtype, v.ndim, v.shape,
                          a->tensor.stride};
        cot__copy(&to, &from);
        cot__storage_release(t, a->tensor.storage);
        a->tensor.storage = fresh;
        a->tensor.offset = 0;
        memcpy(a->tensor.stride, stride, sizeof stride);
    }
    return true;
}

/* grad += what arrived; the first time, what arrived becomes the gradient. */
static void commit_tensor(cot_tape *t, cot__arrival *a, cot__storage **grad) {
    if (!*grad) {
        *grad = a->tensor.storage;
        a->tensor.storage = NULL;
        return;
    }
    cot__view v = cot__view_of(t, a->node);
    cot__view to = {(*grad)->data, v.dtype, v.ndim, v.shape, a->tensor.stride}, pair[2] = {to, to};
    pair[1].data = a->tensor.storage->data;
    cot__run_elementwise(OP_add, cot__dtype_compute(v.dtype), 2, pair, &to);
}

/* grad += adjoint, in the leaf's dtype. */
static void commit_scalar(cot__node *n, double adjoint) {
    cot__value v;
    n->flags |= COT__HAS_GRAD;
    n->extra.number += adjoint;
    if (LIKELY(n->kind == COT_F64)) return;
    cot__store_f64(&v, cot__dtype_at(n), n->extra.number);
    n->extra.number = cot__load_f64(&v, cot__dtype_at(n));
}

static void commit_arrivals(cot__sweep *s) {
    cot_tape *t = s->t;
    for (uint32_t i = 0; i < t->arrived_count; i++) {
        uint32_t leaf = t->arrived[i];
        commit_scalar(&t->nodes[leaf], t->nodes[leaf].kind == COT_F64 ? *cot__slot_f64(t, leaf) : cot__slot_get(t, leaf));
        *cot__slot(t, leaf) = 0;
    }
    for (uint32_t i = 0; i < s->arrival_count; i++) {
        cot__arrival  *a = &s->arrivals[i];
        cot__node     *n = &t->nodes[a->node];
        cot__retained *kept = n->op == OP_leaf ? NULL : retained_of(t, a->node);
        n->flags |= COT__HAS_GRAD;
        if (cot__is_tensor(n))
            commit_tensor(t, a, kept ? &kept->tensor : &n->extra.grad);
        else if (kept)
            kept->scalar += a->scalar;
        else
            commit_scalar(n, a->scalar);
    }
}

/* Does node i, whose rule runs, read a leaf that was assigned after i was recorded? Sets the error. */
static bool reads_unassigned(cot_tape *t, uint32_t i, bool report) {
    const cot__node *n = &t->nodes[i];
    uint32_t         saves = n->op == OP_dot_of ? UINT32_MAX : cot__saved_mask(t, i);
    if (!(n->flags & COT__ACTIVE) || !saves) return true;
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        uint32_t         a = cot__arg(n, k);
        const cot__node *leaf = a == COT__NONE ? NULL : &t->nodes[a];
        if (!leaf || leaf->op != OP_leaf || !(saves >> (k < 32 ? k : 31) & 1)) continue;
        if (report ? !cot__saved_intact(t, i, a) : leaf->b > n->stamp || (leaf->b == n->stamp && leaf->a > i)) return false;
    }
    return true;
}

/* Scalar leaves are overwritten without a trace on the nodes that read them, and the runs over scalars do not look. So look here, before
 * a sweep: first whether any node older than the last cot_assign reads an assigned leaf (in a training loop that part of the tape holds
 * the leaves alone); if so, whether the sweep from ys can meet it. */
bool cot__leaves_unassigned(cot_tape *t, const char *op, int n, const uint32_t *ys) {
    uint32_t hi = 0, end = 0;
    bool     clean = true;
    for (int k = 0; k < n; k++) hi = ys[k] > hi ? ys[k] : hi;
    for (; n > 0 && end <= hi; end++) {
        uint32_t stamp = t->nodes[end].stamp;
        if (stamp > t->assigned_stamp || (stamp == t->assigned_stamp && end >= t->assigned_at)) break;
        clean = clean && reads_unassigned(t, end, false);
    }
    if (clean) return true;
    size_t   bytes = (size_t)hi + 1;
    uint8_t *met = cot__alloc(&t->al, bytes);
    if (!met) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to look for assigned leaves", op, bytes);
        return false;
    }
    memset(met, 0, bytes);
    for (int k = 0; k < n; k++) met[ys[k]] = 1;
    clean = true;
    for (uint32_t i = hi + 1; i-- > 0 && clean;) {
        const cot__node *node = &t->nodes[i];
        if (!met[i] || !(node->flags & COT__ACTIVE)) continue;
        clean = reads_unassigned(t, i, true);
        uint32_t inactive = cot__op_of(node->op)->inactive;
        for (int k = 0, count = cot__nargs(node); k < count; k++)
            if (cot__arg(node, k) != COT__NONE && !(k < 32 && inactive >> k & 1)) met[cot__arg(node, k)] = 1;
    }
    cot__free(&t->al, met, bytes);
    return clean;
}

/* On a tape that was told so, a non-smooth point is an error with the first finding of cot_report, not a convention. */
static bool is_smooth(cot_tape *t, const char *op, uint32_t y) {
    char text[320];
    if (!t->smooth) return true;
    if (cot_report(VAR(t, y), text, sizeof text) == 0) {
        bool looked = strncmp(text, "There is not enough memory", 26) != 0; /* what else it says, the sweep will say too */
        if (!looked) cot__fail(t, COT_MEMORY, "[%s] out of memory: nothing left to look for points without a derivative", op);
        return looked;
    }
    text[strcspn(text, "\n")] = 0;
    cot__fail(t, COT_GRAD, "[%s] a derivative at a point without one was refused, as this tape was asked to: %s", op, text);
    return false;
}

static cot_status backward(cot_var y, const cot_var *given, const char *op) {
    uint32_t  i, seed;
    cot_tape *t = enter_output(y, op, &i);
    if (!t) return y.tape && !cot__is_number(y) ? y.tape->status : COT_VAR;
    char text[160];
    if (!(t->nodes[i].flags & COT__ACTIVE)) {
        cot__fail(t, COT_GRAD, "[%s] y, %s, depends on no leaf: nothing requires a gradient (constants, detach, a no-grad scope, or an "
                               "operation without derivative lie between)", op, cot__describe(t, i, text, sizeof text));
        return t->status;
    }
    cot_mark   m = cot__mark(t);
    cot__sweep s = {.t = t, .lo = i, .top = i};
    if (is_smooth(t, op, i) && make_seed(t, op, i, given, &seed) && cot__leaves_unassigned(t, op, 1, &i) && cot__slots(t, i, 1, op)) {
        put_seed(&s, i, seed);
        cot__rewind(t, m); /* the seed's storage lives on in its slot */
        t->arrived_count = 0;
        bool done = t->status == COT_OK && cot__reverse(&s) && own_arrivals(&s);
        if (done) commit_arrivals(&s);
        cot__sweep_close(&s, done);
    } else
        cot__rewind(t, m);
    return t->status;
}

cot_status cot_backward(cot_var y) { return backward(y, NULL, "backward"); }
cot_status(cot_backward_seeded)(cot_var y, cot_var seed) { return backward(y, &seed, "backward_seeded"); }

/* ---- gradients of leaves ---------------------------------------------------------------------------------------------------------- */

/* Where the gradient of x is kept; NULL after a failure. */
static bool find_gradient(cot_var x, const char *op, cot_tape **t, uint32_t *i, double **scalar, cot__storage ***tensor) {
    if (!cot_is_valid(x)) {
        if (x.tape && !cot__is_number(x)) cot__operand(x.tape, x, op, "", i);
        return false;
    }
    *t = x.tape;
    *i = cot__index(x);
    cot__node *n = &x.tape->nodes[*i];
    char       text[160];
    if (n->op == OP_leaf) {
        *scalar = &n->extra.number;
        *tensor = &n->extra.grad;
        return true;
    }
    cot__retained *kept = retained_of(x.tape, *i);
    if (!kept) {
        cot__fail(x.tape, COT_GRAD, "[%s] %s keeps no gradient; only leaves do, and values marked with cot_retain_grad before backward", op,
                  cot__describe(x.tape, *i, text, sizeof text));
        return false;
    }
    *scalar = &kept->scalar;
    *tensor = &kept->tensor;
    return true;
}

double cot_grad_value(cot_var x) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "grad_value", &t, &i, &scalar, &tensor)) return (double)NAN;
    if (!cot__is_tensor(&t->nodes[i])) return *scalar;
    if (cot__size_at(t, i) == 1) return *tensor ? cot__load_f64((*tensor)->data, cot__dtype_at(&t->nodes[i])) : 0;
    cot__fail(t, COT_SHAPE, "[grad_value] the gradient has %lld elements; use cot_read_grad", (long long)cot__size_at(t, i));
    return (double)NAN;
}

cot_status cot_read_grad(cot_var x, double *out, int64_t n) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "read_grad", &t, &i, &scalar, &tensor)) return x.tape && !cot__is_number(x) ? x.tape->status : COT_VAR;
    cot__view v = cot__view_of(t, i);
    int64_t   stride[COT_MAX_NDIM] = {0};
    double    zero = 0;
    if (v.ndim == 0) {
        v.dtype = COT_F64;
        v.data = scalar;
    } else if (*tensor) {
        cot__strides(v.ndim, v.shape, stride);
        v.data = (*tensor)->data;
        v.stride = stride;
    } else { /* none yet: zeros */
        v.dtype = COT_F64;
        v.data = &zero;
        v.stride = stride;
    }
    return cot__read_view(t, "read_grad", &v, COT_F64, out, n);
}

cot_var cot_grad(cot_var x) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "grad", &t, &i, &scalar, &tensor)) return INVALID(cot__is_number(x) ? NULL : x.tape);
    cot_shape shape = cot__shape_at(t, i);
    cot_dtype dtype = cot__dtype_at(&t->nodes[i]);
    if (shape.ndim == 0) return cot_full(t, dtype, shape, *scalar);
    return cot_data(t, dtype, shape, *tensor ? (*tensor)->data : NULL);
}

void cot_zero_grad(cot_var x) {
    cot_tape      *t;
    uint32_t       i;
    double        *scalar;
    cot__storage **tensor;
    if (!find_gradient(x, "zero_grad", &t, &i, &scalar, &tensor)) return;
    if (cot__is_tensor(&t->nodes[i])) {
        cot__storage_release(t, *tensor);
        *tensor = NULL;
    } else
        *scalar = 0;
    t->nodes[i].flags &= (uint8_t)~COT__HAS_GRAD;
}

void cot_tape_zero_grads(cot_tape *t) {
    if (!t) return;
    for (uint32_t i = 0; i < t->count; i++) {
        if (!(t->nodes[i].flags & COT__HAS_GRAD)) continue;
        cot_zero_grad(VAR(t, i));
    }
}

cot_var cot_retain_grad(cot_var x) {
    uint32_t i;
    if (cot__is_number(x) || !x.tape) return INVALID(NULL);
    cot_tape *t = x.tape;
    if (!cot__check_inputs(t, "retain_grad", 1, &x, &i)) return INVALID(t);
    if (t->nodes[i].op == OP_leaf || (t->nodes[i].flags & COT__RETAIN)) return x;
    void *list = t->retained;
    if (!cot__grow(t, &list, &t->retained_capacity, t->retained_count, sizeof *t->retained, "retain_grad")) return INVALID(t);
    t->retained = list;
    t->retained[t->retained_count++] = (cot__retained){.node = i};
    t->nodes[i].flags |= COT__RETAIN;
    return x;
}

/* ---- gradients on the tape ------------------------------------------------------------------------------------------------------------ */

/* Which nodes between the lowest x and y depend on any x: only those get adjoints. */
static bool mark_reach(cot__sweep *s, const char *op, int n, const uint32_t *xs, uint32_t y) {
    cot_tape *t = s->t;
    s->reach_from = y;
    for (int k = 0; k < n; k++) s->reach_from = xs[k] < s->reach_from ? xs[k] : s->reach_from;
    s->reach_bytes = (size_t)y - s->reach_from + 1;
    s->reach = cot__alloc(&t->al, s->reach_bytes);
    if (!s->reach) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to mark what depends on the inputs", op, s->reach_bytes);
        s->reach_bytes = 0;
        return false;
    }
    memset(s->reach, 0, s->reach_bytes);
    for (int k = 0; k < n; k++)
        if (xs[k] <= y) s->reach[xs[k] - s->reach_from] = 1;
    for (uint32_t i = s->reach_from; i <= y; i++) {
        const cot__node *node = &t->nodes[i];
        if (!(node->flags & COT__ACTIVE) || s->reach[i - s->reach_from]) continue;
        uint32_t inactive = cot__op_of(node->op)->inactive;
        for (int k = 0, count = cot__nargs(node); k < count; k++) {
            uint32_t a = cot__arg(node, k);
            if (a == COT__NONE || a < s->reach_from || (k < 32 && inactive >> k & 1) || !s->reach[a - s->reach_from]) continue;
            s->reach[i - s->reach_from] = 1;
            break;
        }
    }
    return true;
}

cot_status cot__grad_recorded(cot_tape *t, const char *op, uint32_t y, cot_var seed, int n, const uint32_t *xs, cot_var *grads) {
    cot__sweep s = {.t = t, .recording = true, .lo = y, .top = y};
    if (!mark_reach(&s, op, n, xs, y) || !cot__slots(t, y, 1, op)) {
        s.lo = y + 1;
        cot__sweep_close(&s, false);
        return t->status;
    }
    cot__mark_wanted(t, n, xs, true);
    if (s.reach[y - s.reach_from]) *cot__slot(t, y) = (uint64_t)cot__index(seed) + 1;
    bool ok = cot__reverse(&s);
    for (int k = 0; k < n && ok; k++) {
        uint64_t slot = xs[k] <= y ? *cot__slot(t, xs[k]) : 0;
        grads[k] = slot ? VAR(t, (uint32_t)slot - 1) : cot_zeros(t, cot__dtype_at(&t->nodes[xs[k]]), cot__shape_at(t, xs[k]));
    }
    cot__mark_wanted(t, n, xs, false);
    cot__sweep_close(&s, false);
    return t->status;
}

static cot_status grad_of(const char *op, cot_var y, const cot_var *given, int n, const cot_var *xs, cot_var *grads) {
    uint32_t  i, seed;
    cot_tape *t = enter_output(y, op, &i);
    for (int k = 0; k < n; k++) grads[k] = INVALID(cot__is_number(y) ? NULL : y.tape);
    if (!t) return y.tape && !cot__is_number(y) ? y.tape->status : COT_VAR;
    uint32_t  few[16];
    uint32_t *index = n <= 16 ? few : cot__alloc(&t->al, (size_t)n * sizeof *index);
    if (!index) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d inputs", op, n);
        return t->status;
    }
    if (cot__check_inputs(t, op, n, xs, index) && is_smooth(t, op, i) && make_seed(t, op, i, given, &seed))
        cot__grad_recorded(t, op, i, VAR(t, seed), n, index, grads);
    if (index != few) cot__free(&t->al, index, (size_t)n * sizeof *index);
    if (t->status != COT_OK)
        for (int k = 0; k < n; k++) grads[k] = INVALID(t);
    return t->status;
}

cot_status cot_grad_of(cot_var y, int n, const cot_var *xs, cot_var *grads) { return grad_of("grad_of", y, NULL, n, xs, grads); }
cot_status(cot_vjp)(cot_var y, cot_var seed, int n, const cot_var *xs, cot_var *grads) {
    return grad_of("vjp", y, &seed, n, xs, grads);
}

/* ---- writes to leaves --------------------------------------------------------------------------------------------------------------------- */

/* The status of the tape these vars are on, also when it has failed. */
static cot_status status_of(int n, const cot_var *xs) {
    for (int k = 0; k < n; k++)
        if (xs[k].tape && !cot__is_number(xs[k])) return xs[k].tape->status;
    return COT_VAR;
}

static bool assignable(cot_var leaf, const char *op, cot_tape **t, uint32_t *i) {
    char text[160];
    *t = cot__enter(NULL, leaf, op, "", i);
    if (!*t) return false;
    if (cot__op_of((*t)->nodes[*i].op)->kind == KIND_SOURCE) return true;
    cot__fail(*t, COT_VALUE, "[%s] %s is computed from other values; only leaves and constants can be assigned", op,
              cot__describe(*t, *i, text, sizeof text));
    return false;
}

static void note_time(cot_tape *t, uint32_t i) {
    cot__node *n = &t->nodes[i];
    if (n->op == OP_leaf) n->a = t->count, n->b = t->stamp;
    t->assigned_at = t->count;
    t->assigned_stamp = t->stamp;
}

/* Notes the write: values computed from the old numbers are recognised by their time. */
static void note_assign(cot_tape *t, uint32_t i) {
    cot__node *n = &t->nodes[i];
    if (cot__is_tensor(n)) {
        cot__bump(n->value.tensor->storage, COT__NONE);
        n->value.tensor->version = n->value.tensor->storage->version;
    }
    note_time(t, i);
}

static cot_status assign_view(cot_tape *t, uint32_t i, const cot__view *from) {
    cot__view to = cot__view_of(t, i);
    cot__copy(&to, from);
    note_assign(t, i);
    return t->status;
}

cot_status(cot_assign)(cot_var leaf, cot_var value) {
    cot_tape *t;
    uint32_t  i, v;
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    if (!assignable(leaf, "assign", &t, &i)) return status_of(1, &leaf);
    if (cot__is_number(value)) {
        double  number = cot__number_value(value);
        int64_t stride[COT_MAX_NDIM] = {0};
        cot__view to = cot__view_of(t, i), from = {&number, COT_F64, to.ndim, to.shape, stride};
        return assign_view(t, i, &from);
    }
    if (!cot__operand(t, value, "assign", "new", &v)) return t->status;
    cot_shape want = cot__shape_at(t, i), have = cot__shape_at(t, v);
    if (want.ndim != have.ndim || memcmp(want.dim, have.dim, (size_t)want.ndim * sizeof *want.dim) != 0) {
        cot__fail(t, COT_SHAPE, "[assign] the value has shape %s, the leaf %s; they must be equal", cot__shape_text_at(t, v, b),
                  cot__shape_text_at(t, i, a));
        return t->status;
    }
    /* A view of the leaf itself would be read while it is written. */
    if (cot__is_tensor(&t->nodes[v]) && t->nodes[v].value.tensor->storage == t->nodes[i].value.tensor->storage) {
        cot__fail(t, COT_VALUE, "[assign] the value is a view of the leaf's own memory; compute it into memory of its own first");
        return t->status;
    }
    cot__view from = cot__view_of(t, v);
    return assign_view(t, i, &from);
}

cot_status cot_assign_data(cot_var leaf, const void *data) {
    cot_tape *t;
    uint32_t  i;
    if (!assignable(leaf, "assign_data", &t, &i)) return status_of(1, &leaf);
    if (!data && cot__size_at(t, i) > 0) {
        cot__fail(t, COT_VALUE, "[assign_data] the data is NULL; it must hold %lld elements", (long long)cot__size_at(t, i));
        return t->status;
    }
    cot__view to = cot__view_of(t, i);
    int64_t   stride[COT_MAX_NDIM];
    cot__strides(to.ndim, to.shape, stride);
    cot__view from = to;
    memcpy(&from.data, &data, sizeof data); /* const is kept: the copy reads only */
    from.stride = stride;
    return assign_view(t, i, &from);
}

cot_status cot_sgd_step(int n, const cot_var *xs, double rate) {
    cot_tape *t = cot__tape_of(n, xs);
    for (int k = 0; k < n && t && t->status == COT_OK; k++) {
        uint32_t i;
        if (!cot__operand(t, xs[k], "sgd_step", "", &i)) break;
        cot__node *leaf = &t->nodes[i];
        if (leaf->op != OP_leaf) {
            cot__fail(t, COT_VALUE, "[sgd_step] xs[%d] is not a leaf", k);
            break;
        }
        if (!(leaf->flags & COT__HAS_GRAD)) continue;
        cot_mark m = cot__mark(t);
        cot_no_grad_open(t);
        cot_var next = cot_sub(cot_detach(xs[k]), cot_mul(rate, cot_grad(xs[k])));
        cot_no_grad_close(t);
        if (t->status == COT_OK) (cot_assign)(xs[k], next);
        cot__rewind(t, m);
        if (t->status == COT_OK) note_time(t, i); /* not the time within the step: the next node is recorded after it */
    }
    return status_of(n, xs);
}
