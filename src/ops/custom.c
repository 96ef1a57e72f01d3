/* custom.c: a function of the user's as one operation, and its derivatives from those that the user
 * gave.
 *
 *     wanted   in order of preference
 *     vjp      vjp, the transpose of jvp, vjp_numbers
 *     jvp      jvp, the transpose of vjp, jvp_numbers
 *
 * The result of a function in numbers is recorded as a node of its own, custom_numbers. It depends
 * on the operands, so it must not count as a constant, but its own derivative is not known;
 * differentiating it is an error, never a silent zero.
 *
 * Functions in numbers see dense row-major arrays: strided operands are copied, and so are scalars,
 * because nodes move. */
#include "rules/structural_ids.h"
#include "backend/elements.h"
#include "ops/custom_job.h"
#include "ops/structural.h"
#include "tape/region.h"
#include "tape/scope.h"

#include <string.h>

static const char *name_of(const cot_custom *op) { return op->name ? op->name : "custom"; }

/* ---- calling the user's functions ------------------------------------------------------------ */

static cot__scope visit_open(cot_tape *t, const cot_custom *op) {
    cot__scope before = cot__scope_open(t, t->active_mask);
    t->mode.inside = name_of(op);
    t->mode.inside_from = t->count;
    t->mode.repeats = 0; /* what the user checks in a rule, nobody has checked before */
    return before;
}

/* Reports a failure that the function did not report itself; true when all is well. */
static bool visit_close(cot_tape *t, cot__scope before, const cot_custom *op, const char *which, int code) {
    cot__scope_close(t, &before);
    cot__error_in_function(t, which, name_of(op));
    if (code) cot__fail(t, COT_CUSTOM, "[%s] %s failed with code %d", name_of(op), which, code);
    return t->status == COT_OK;
}

/* ---- dense arrays ---------------------------------------------------------------------------- */

enum { FEW = 6 };

typedef struct memory { void *data; size_t bytes; } memory;

/* Arrays for the user's functions, made one by one; what had to be copied is freed at the end. */
typedef struct arrays {
    cot_tape   *t;
    const char *name;
    int         n;
    cot_array  *at;      /* n arrays */
    cot__value *scalar;  /* a place for each that is 0-d */
    memory     *owned;   /* the memory of each that had to be copied */
    void       *block;   /* NULL: the places below are enough */
    cot_array   few[FEW];
    cot__value  few_scalar[FEW];
    memory      few_owned[FEW];
} arrays;

static size_t block_bytes(int n) { return (size_t)n * (sizeof(cot_array) + sizeof(cot__value) + sizeof(memory)); }

static bool arrays_open(arrays *a, cot_tape *t, const char *name, int n) {
    *a = (arrays){.t = t, .name = name, .n = n};
    a->at = a->few, a->scalar = a->few_scalar, a->owned = a->few_owned;
    if (n <= FEW) return true;
    a->block = cot__alloc(&t->al, block_bytes(n));
    if (!a->block) {
        a->n = 0;
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d arrays", name, n);
        return false;
    }
    memset(a->block, 0, block_bytes(n));
    a->at = a->block;
    a->scalar = (cot__value *)(void *)(a->at + n);
    a->owned = (memory *)(void *)(a->scalar + n);
    return true;
}

static size_t bytes_of(const cot_array *x) { return (size_t)x->size * (size_t)cot__dtype_size(x->dtype); }

static void arrays_close(arrays *a) {
    for (int k = 0; k < a->n; k++)
        if (a->owned[k].data) cot__free(&a->t->al, a->owned[k].data, a->owned[k].bytes);
    if (a->block) cot__free(&a->t->al, a->block, block_bytes(a->n));
}

/* Dtype and shape of node i, without data. */
static void describe(arrays *a, int k, uint32_t i) {
    a->at[k] = (cot_array){cot__dtype_at(&a->t->nodes[i]), cot__shape_at(a->t, i), cot__size_at(a->t, i), NULL};
}

/* Zeroed memory for array k, which has been described. */
static bool make_memory(arrays *a, int k) {
    cot_array *x = &a->at[k];
    x->data = &a->scalar[k];
    a->scalar[k] = (cot__value){0};
    if (x->shape.ndim == 0 || x->size == 0) return true;
    x->data = cot__alloc(&a->t->al, bytes_of(x));
    a->owned[k] = (memory){x->data, bytes_of(x)};
    if (!x->data) {
        cot__fail(a->t, COT_MEMORY, "[%s] out of memory: %zu bytes for an array", a->name, bytes_of(x));
        return false;
    }
    memset(x->data, 0, bytes_of(x));
    return true;
}

/* Shows the value of node i as array k. */
static bool show(arrays *a, int k, uint32_t i) {
    cot__view v = cot__look(a->t, i);
    describe(a, k, i);
    if (v.ndim && a->at[k].size && cot__on_host(a->t->backend) && cot__is_contiguous(v.ndim, v.shape, v.stride)) {
        a->at[k].data = v.data;
        return true;
    }
    if (!make_memory(a, k)) return false;
    int64_t   stride[COT_MAX_NDIM];
    cot__strides(v.ndim, v.shape, stride);
    cot__view to = {a->at[k].data, v.dtype, v.ndim, v.shape, stride};
    a->t->backend->copy_out(&to, &v);
    return true;
}

/* Zeroed memory into which the user's function writes a result: the result's own memory or, if that
 * is on a device, memory of the host, which keep_result copies there. */
static bool show_result(cot_tape *t, const char *name, const cot__result *r, cot_array *y, memory *own) {
    *y = (cot_array){r->view.dtype, {r->view.ndim, {0}}, cot__count(r->view.ndim, r->view.shape), r->view.data};
    memcpy(y->shape.dim, r->view.shape, (size_t)r->view.ndim * sizeof *r->view.shape);
    if (r->tensor && y->size && !cot__on_host(t->backend)) {
        *own = (memory){cot__alloc(&t->al, bytes_of(y)), bytes_of(y)};
        y->data = own->data;
        if (!y->data) cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes for an array", name, bytes_of(y));
    }
    if (y->size && y->data) memset(y->data, 0, bytes_of(y));
    return t->status == COT_OK;
}

static void keep_result(const cot_tape *t, const cot__result *r, const memory *own) {
    cot__view host = r->view;
    host.data = own->data;
    if (own->data) t->backend->copy_in(&r->view, &host);
}

static void free_memory(cot_tape *t, memory *own) {
    if (own->data) cot__free(&t->al, own->data, own->bytes);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Operands keep their own dtypes. A plain number takes the dtype of the first operand on the tape,
 * if that is a float. */
static bool enter_operands(cot_tape *t, const char *name, int n, const cot_var *xs, uint32_t *args) {
    char      which[24];
    cot_dtype weak = COT_F64;
    for (int k = n - 1; k >= 0; k--)
        if (cot_is_valid(xs[k]) && xs[k].tape == t) weak = cot_dtype_of(xs[k]);
    for (int k = 0; k < n; k++) {
        snprintf(which, sizeof which, "xs[%d]", k);
        if (!cot__enter(t, xs[k], name, which, &args[k])) return false;
        if (!cot__is_number(xs[k]) || !cot__dtype_is_float(weak)) continue;
        if ((args[k] = cot__as(t, args[k], weak)) == COT__NONE) return false;
    }
    return true;
}

/* Dtype and shape of the result: like the first operand, unless the user says otherwise. Shapes
 * depend on shapes alone, so no data is shown. */
static bool result_like(arrays *xs, const cot_custom *op, void *user, cot_array *y) {
    cot_tape *t = xs->t;
    char      text[COT__SHAPE_TEXT];
    *y = xs->at[0];
    if (!op->shape) return true;
    cot__scope before = visit_open(t, op);
    int   code = op->shape(xs->n, xs->at, y, user);
    if (!visit_close(t, before, op, "shape", code)) return false;
    if ((unsigned)y->dtype >= COT_DTYPE_COUNT) {
        cot__fail(t, COT_CUSTOM, "[%s] shape gave %d for a dtype; dtypes are COT_F64 … COT_BOOL", name_of(op),
                  (int)y->dtype);
        return false;
    }
    if (y->shape.ndim < 0 || y->shape.ndim > COT_MAX_NDIM) {
        cot__fail(t, COT_CUSTOM, "[%s] shape gave a result of %d axes; shapes have 0 to %d axes", name_of(op),
                  y->shape.ndim, COT_MAX_NDIM);
        return false;
    }
    for (int k = 0; k < y->shape.ndim; k++)
        if (y->shape.dim[k] < 0) {
            cot__fail(t, COT_CUSTOM, "[%s] shape gave %s for the result; extents are not negative", name_of(op),
                      cot__shape_text(y->shape.ndim, y->shape.dim, text));
            return false;
        }
    return true;
}

static cot_var compute(arrays *xs, const cot_custom *op, void *user, cot__attr *attr) {
    cot_tape   *t = xs->t;
    cot_array   y;
    cot__result r;
    for (int k = 0; k < xs->n; k++) describe(xs, k, attr->args[k]);
    if (!result_like(xs, op, user, &y)) return INVALID(t);
    if (!cot__result_open(t, &r, name_of(op), y.dtype, y.shape.ndim, y.shape.dim)) return INVALID(t);
    for (int k = 0; k < xs->n; k++)
        if (!show(xs, k, attr->args[k])) return INVALID(t);
    memory own = {0};
    if (!show_result(t, name_of(op), &r, &y, &own)) return INVALID(t);
    cot__scope before = visit_open(t, op);
    int   code = op->value(xs->n, xs->at, &y, user);
    bool  ok = visit_close(t, before, op, "value", code);
    if (ok) keep_result(t, &r, &own);
    free_memory(t, &own);
    return ok ? cot__result_push(t, &r, OP_custom, (int)attr->nargs, attr->args, attr) : INVALID(t);
}

cot_var(cot_call)(const cot_custom *op, int n, const cot_var *xs, void *user) {
    cot_tape *t = cot__tape_of(xs ? n : 0, xs);
    arrays    shown;
    if (!t) return cot__invalid(xs ? n : 0, xs);
    if (!op) return cot__fail(t, COT_CUSTOM, "[call] the operation is NULL; give a cot_custom");
    if (!op->value)
        return cot__fail(t, COT_CUSTOM, "[%s] has no value function; a custom operation needs at least that",
                         name_of(op));
    cot__attr *attr = cot__attr_make(t, name_of(op), 0, NULL, n, NULL);
    if (!attr || !enter_operands(t, name_of(op), n, xs, attr->args)) return INVALID(t);
    attr->pointer = op;
    attr->pointer2 = user;
    cot_var y = arrays_open(&shown, t, name_of(op), n) ? compute(&shown, op, user, attr) : INVALID(t);
    arrays_close(&shown);
    return y;
}

/* ---- derivatives in recorded operations ------------------------------------------------------ */

static const cot_custom *op_of(const cot__rule *r) { return cot__rule_attr(r)->pointer; }

static void *user_of(const cot__rule *r) {
    void *user;
    /* the user's own pointer back, as it came */
    memcpy(&user, &cot__rule_attr(r)->pointer2, sizeof user);
    return user;
}

/* Operands and n places more, all invalid; NULL after a failure. */
static cot_var *vars_open(cot__rule *r, int n) {
    cot_tape *t = r->t;
    cot_var  *vars = cot__alloc(&t->al, 2 * (size_t)n * sizeof *vars);
    if (!vars) cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d vars", name_of(op_of(r)), 2 * n);
    for (int k = 0; k < n && vars; k++) vars[k] = cot__rule_x(r, k), vars[n + k] = INVALID(t);
    return vars;
}

static void vars_close(cot__rule *r, cot_var *vars, int n) { cot__free(&r->t->al, vars, 2 * (size_t)n * sizeof *vars); }

/* Did the user set this var? */
static bool is_set(cot_var v) { return v.tape && (cot__is_number(v) || !cot__failed(v)); }

static void recorded_vjp(cot__rule *r) {
    const cot_custom *op = op_of(r);
    cot_tape         *t = r->t;
    int               n = cot__nargs(cot__rule_node(r));
    cot_var           y = cot__rule_z(r), *xs = vars_open(r, n);
    if (!xs) return;
    if (t->status == COT_OK) {
        cot__scope before = visit_open(t, op);
        int   code = op->vjp(n, xs, y, r->g, xs + n, user_of(r));
        bool  ok = visit_close(t, before, op, "vjp", code);
        for (int k = 0; k < n && ok; k++)
            if (is_set(xs[n + k])) cot__give(r, k, xs[n + k]);
    }
    vars_close(r, xs, n);
}

/* The tangent that the user gave, in the result's dtype; its shape must be the result's. */
static cot_var fitted_tangent(cot__rule *r, cot_var dy) {
    cot_tape   *t = r->t;
    const char *name = name_of(op_of(r));
    char        a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    uint32_t    i;
    if (!is_set(dy) || !cot__enter(t, dy, name, "tangent", &i)) return INVALID(t);
    cot_shape have = cot__shape_at(t, i), want = cot__shape_at(t, r->node);
    if (!cot__same_shape(&have, &want))
        return cot__fail(t, COT_SHAPE,
                         "[%s] jvp gave a tangent of shape %s for a result of shape %s; they must be equal", name,
                         cot__shape_text_at(t, i, a), cot__shape_text_at(t, r->node, b));
    i = cot__as(t, i, cot__dtype_at(&t->nodes[r->node]));
    return i == COT__NONE ? INVALID(t) : VAR(t, i);
}

static void recorded_jvp(cot__rule *r) {
    const cot_custom *op = op_of(r);
    cot_tape         *t = r->t;
    int               n = cot__nargs(cot__rule_node(r));
    cot_var           y = cot__rule_z(r), dy = INVALID(t), *xs = vars_open(r, n);
    if (!xs) return;
    if (t->status == COT_OK) {
        cot__scope before = visit_open(t, op);
        int   code = op->jvp(n, xs, y, r->tangents, &dy, user_of(r));
        if (visit_close(t, before, op, "jvp", code)) r->tangent = fitted_tangent(r, dy);
    }
    vars_close(r, xs, n);
}

/* ---- derivatives in numbers ------------------------------------------------------------------ */

/* The operands and the result, intact and shown in places 0 … n. */
static bool show_node(cot__rule *r, arrays *a, int n) {
    for (int k = 0; k < n; k++)
        if (cot__failed(cot__rule_x(r, k)) || !show(a, k, cot__rule_arg(r, k))) return false;
    return !cot__failed(cot__rule_z(r)) && show(a, n, r->node);
}

/* The attributes of a custom_numbers node: operands, result, and the adjoint or the tangents that
 * move. number: 0 for a vjp, 1 for a jvp. Integers: the number of operands, then which operand gets
 * this adjoint, or which tangents move. */
static cot__attr *numbers_attr(cot__rule *r, int n, int more, const cot_var *given, double which, int receiver) {
    cot_tape  *t = r->t;
    int        count = n + 1, ints = which == 0 ? 2 : 1 + n;
    for (int k = 0; k < more; k++) count += !cot__failed(given[k]);
    cot__attr *attr = cot__attr_make(t, "custom_numbers", ints, NULL, count, NULL);
    if (!attr) return NULL;
    attr->pointer = op_of(r);
    attr->pointer2 = user_of(r);
    attr->number = which;
    attr->ints[0] = n;
    attr->ints[1] = receiver;
    for (int k = 0; which != 0 && k < n; k++) attr->ints[1 + k] = !cot__failed(given[k]);
    for (int k = 0; k < n; k++) attr->args[k] = cot__rule_arg(r, k);
    attr->args[n] = r->node;
    for (int k = 0, to = n + 1; k < more; k++)
        if (!cot__failed(given[k])) attr->args[to++] = cot__index(given[k]);
    return attr;
}

static cot_var push_numbers(cot_tape *t, cot__result *y, cot__attr *attr) {
    return cot__result_push(t, y, OP_custom_numbers, (int)attr->nargs, attr->args, attr);
}

/* Places: xs 0 … n-1, y n, ybar n+1, xbars n+2 …. Wanted adjoints are written to their final
 * memory, the others to memory that is thrown away. */
static bool run_vjp_numbers(cot__rule *r, arrays *a, int n, cot__result *xbars) {
    const cot_custom *op = op_of(r);
    cot_tape         *t = r->t;
    if (!show_node(r, a, n) || !show(a, n + 1, cot__index(r->g))) return false;
    for (int k = 0; k < n; k++) {
        cot_array *xbar = &a->at[n + 2 + k];
        describe(a, n + 2 + k, cot__rule_arg(r, k));
        if (!cot__rule_wants(r, k)) {
            if (!make_memory(a, n + 2 + k)) return false;
            continue;
        }
        if (!cot__result_open(t, &xbars[k], name_of(op), xbar->dtype, xbar->shape.ndim, xbar->shape.dim)) return false;
        if (!show_result(t, name_of(op), &xbars[k], xbar, &a->owned[n + 2 + k])) return false;
    }
    cot__scope before = visit_open(t, op);
    int   code = op->vjp_numbers(n, a->at, &a->at[n], &a->at[n + 1], &a->at[n + 2], user_of(r));
    if (!visit_close(t, before, op, "vjp_numbers", code)) return false;
    for (int k = 0; k < n; k++)
        if (cot__rule_wants(r, k)) keep_result(t, &xbars[k], &a->owned[n + 2 + k]);
    return true;
}

static void numbers_vjp(cot__rule *r) {
    cot_tape    *t = r->t;
    const char  *name = name_of(op_of(r));
    int          n = cot__nargs(cot__rule_node(r));
    arrays       a;
    size_t       bytes = (size_t)n * sizeof(cot__result);
    cot__result *xbars = cot__alloc(&t->al, bytes);
    if (!xbars) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d adjoints", name, n);
        return;
    }
    bool ok = arrays_open(&a, t, name, 2 * n + 2) && run_vjp_numbers(r, &a, n, xbars);
    for (int k = 0; k < n && ok; k++) {
        if (!cot__rule_wants(r, k)) continue;
        cot__attr *attr = numbers_attr(r, n, 1, &r->g, 0, k);
        if (!(ok = attr != NULL)) break;
        cot__give(r, k, push_numbers(t, &xbars[k], attr));
    }
    arrays_close(&a);
    cot__free(&t->al, xbars, bytes);
}

/* Places: xs 0 … n-1, y n, dxs n+1 …. */
static void run_jvp_numbers(cot__rule *r, arrays *a, int n) {
    const cot_custom *op = op_of(r);
    cot_tape         *t = r->t;
    cot__result       dy;
    cot_shape         shape = cot__shape_at(t, r->node);
    if (!show_node(r, a, n)) return;
    for (int k = 0; k < n; k++) {
        bool moves = !cot__failed(r->tangents[k]);
        if (moves && !show(a, n + 1 + k, cot__index(r->tangents[k]))) return;
        if (!moves) describe(a, n + 1 + k, cot__rule_arg(r, k));
    }
    if (!cot__result_open(t, &dy, name_of(op), cot__dtype_at(&t->nodes[r->node]), shape.ndim, shape.dim)) return;
    cot_array y;
    memory    own = {0};
    if (!show_result(t, name_of(op), &dy, &y, &own)) return;
    cot__scope before = visit_open(t, op);
    int        code = op->jvp_numbers(n, a->at, &a->at[n], &a->at[n + 1], &y, user_of(r));
    bool       ok = visit_close(t, before, op, "jvp_numbers", code);
    if (ok) keep_result(t, &dy, &own);
    free_memory(t, &own);
    if (!ok) return;
    cot__attr *attr = numbers_attr(r, n, n, r->tangents, 1, 0);
    if (attr) r->tangent = push_numbers(t, &dy, attr);
}

static void numbers_jvp(cot__rule *r) {
    int    n = cot__nargs(cot__rule_node(r));
    arrays a;
    if (arrays_open(&a, r->t, name_of(op_of(r)), 2 * n + 1)) run_jvp_numbers(r, &a, n);
    arrays_close(&a);
}

/* ---- on other operands ----------------------------------------------------------------------- */

static cot_var custom_apply(cot__rule *r, const cot_var *xs) {
    return (cot_call)(op_of(r), cot__nargs(cot__rule_node(r)), xs, user_of(r));
}

/* Runs the function in numbers again. For a vjp it keeps the one adjoint that this node is. Places
 * as above. */
static cot_var run_numbers(cot_tape *t, arrays *a, cot__attr *attr) {
    const cot_custom *op = attr->pointer;
    void             *user = (void *)(uintptr_t)attr->pointer2;
    bool              tangent = attr->number != 0;
    int               n = (int)attr->ints[0], next = n + 1, to = tangent ? n : (int)attr->ints[1];
    cot__result       z;
    for (int k = 0; k <= n; k++)
        if (!show(a, k, attr->args[k])) return INVALID(t);
    if (!tangent && !show(a, n + 1, attr->args[next])) return INVALID(t);
    for (int k = 0; k < n; k++) {
        int place = n + 1 + !tangent + k;
        describe(a, place, attr->args[k]);
        if (tangent ? attr->ints[1 + k] && !show(a, place, attr->args[next++]) : !make_memory(a, place))
            return INVALID(t);
    }
    cot_array like = a->at[to], *at = a->at;
    if (!cot__result_open(t, &z, name_of(op), like.dtype, like.shape.ndim, like.shape.dim)) return INVALID(t);
    cot_array y;
    memory    own = {0};
    if (!show_result(t, name_of(op), &z, &y, &own)) return INVALID(t);
    if (!tangent) at[n + 2 + to] = y;
    cot__scope before = visit_open(t, op);
    int   code = tangent ? op->jvp_numbers(n, at, &at[n], &at[n + 1], &y, user)
                         : op->vjp_numbers(n, at, &at[n], &at[n + 1], &at[n + 2], user);
    bool  ok = visit_close(t, before, op, tangent ? "jvp_numbers" : "vjp_numbers", code);
    if (ok) keep_result(t, &z, &own);
    free_memory(t, &own);
    return ok ? push_numbers(t, &z, attr) : INVALID(t);
}

cot_var cot__numbers_record(cot_tape *t, const cot__attr *of, int n, const cot_var *xs) {
    arrays      a;
    const char *name = name_of(of->pointer);
    cot__attr  *attr = cot__attr_make(t, "custom_numbers", (int)of->nints, of->ints, n, NULL);
    if (!attr) return INVALID(t);
    attr->pointer = of->pointer, attr->pointer2 = of->pointer2, attr->number = of->number;
    if (!enter_operands(t, name, n, xs, attr->args)) return INVALID(t);
    cot_var z = arrays_open(&a, t, name, 2 * (int)of->ints[0] + 2) ? run_numbers(t, &a, attr) : INVALID(t);
    arrays_close(&a);
    return z;
}

static cot_var numbers_apply(cot__rule *r, const cot_var *xs) {
    const cot__attr *of = cot__rule_attr(r);
    return cot__numbers_record(r->t, of, (int)of->nargs, xs);
}

/* ---- the rules ------------------------------------------------------------------------------- */

static void refuse(cot__rule *r, const char *mode) {
    const cot_custom *op = op_of(r);
    if (op->vjp_numbers || op->jvp_numbers)
        cot__fail(r->t, COT_GRAD, "[%s] has only %s: %s mode needs %s, or a vjp or jvp in recorded operations",
                  name_of(op), op->vjp_numbers ? "vjp_numbers" : "jvp_numbers", mode,
                  op->vjp_numbers ? "jvp_numbers" : "vjp_numbers");
    else
        cot__fail(r->t, COT_GRAD,
                  "[%s] has no derivative: none of vjp, jvp, vjp_numbers and jvp_numbers is given; detach its result "
                  "(cot_detach) if it is meant to be constant",
                  name_of(op));
}

static void custom_vjp(cot__rule *r) {
    const cot_custom *op = op_of(r);
    if (op->vjp)
        recorded_vjp(r);
    else if (op->jvp)
        cot__transpose_jvp(r, recorded_jvp);
    else if (op->vjp_numbers)
        numbers_vjp(r);
    else
        refuse(r, "reverse");
}

static void custom_jvp(cot__rule *r) {
    const cot_custom *op = op_of(r);
    if (op->jvp)
        recorded_jvp(r);
    else if (op->vjp)
        r->tangent = cot__transpose_vjp(r, recorded_vjp);
    else if (op->jvp_numbers)
        numbers_jvp(r);
    else
        refuse(r, "forward");
}

/* Sets the error: a result that was computed in numbers cannot be differentiated. */
static void numbers_again(cot__rule *r) {
    const cot_custom *op = op_of(r);
    bool              tangent = cot__rule_attr(r)->number != 0;
    const char       *has     = op->vjp_numbers && op->jvp_numbers ? "vjp_numbers and jvp_numbers"
                                : tangent                          ? "jvp_numbers"
                                                                   : "vjp_numbers";
    cot__fail(
        r->t, COT_GRAD,
        "[%s] has only %s: its %s cannot be recorded to be differentiated again; give a %s in recorded operations",
        name_of(op), has, tangent ? "tangent" : "gradient", tangent ? "jvp" : "vjp");
}

/* The user's functions may read any operand and the result, so all are saved. */
static bool custom_users_rule(const cot__rule *r) { return (void)r, true; }

const cot__op cot__op_custom         = {.name         = "custom",
                                        .kind         = KIND_GENERIC,
                                        .sweeps_alone = true,
                                        .saves        = 0x7f | COT__SAVES_Z,
                                        .formula      = "a function of the user's",
                                        .vjp          = custom_vjp,
                                        .jvp          = custom_jvp,
                                        .apply        = custom_apply,
                                        .asks         = COT__ASKS_DTYPE | COT__ASKS_SHAPE,
                                        .infer        = cot__custom_job_infer,
                                        .binds        = true,
                                        .open         = cot__custom_job_open,
                                        .go           = cot__custom_job_go,
                                        .close        = cot__custom_job_close,
                                        .again        = cot__custom_job_again,
                                        .effect       = cot__custom_job_effect,
                                        .plain        = cot__custom_plain,
                                        /* the cost of the user's function is not known: one
                                         * operation for each element */
                                        .cost         = {.each_z = 1},
                                        .opaque       = true,
                                        .operands     = "*",
                                        .users_rule   = custom_users_rule};
const cot__op cot__op_custom_numbers = {.name         = "custom_numbers",
                                        .kind         = KIND_GENERIC,
                                        .sweeps_alone = true,
                                        .formula      = "a derivative of the user's, in numbers",
                                        .attrs        = "operands:d of:l",
                                        .vjp          = numbers_again,
                                        .jvp          = numbers_again,
                                        .apply        = numbers_apply,
                                        .infer        = cot__numbers_job_infer,
                                        .binds        = true,
                                        .open         = cot__numbers_job_open,
                                        .go           = cot__numbers_job_go,
                                        .close        = cot__custom_job_close,
                                        .effect       = cot__custom_job_effect,
                                        .plain        = cot__custom_plain,
                                        .cost         = {.each_z = 1},
                                        .opaque       = true,
                                        .operands     = "*"};
