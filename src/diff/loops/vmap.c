/* vmap.c: cot_vmap. A function is recorded once, on the first elements of a batch, and then played
 * for all elements at once (batch/play.c). The user may choose the axes of the batch: they are
 * moved to the front before, and back afterwards. Where no derivative can be asked for, it may run
 * as a program instead (vmap_program.c). */
#include "diff/batch/vmap.h"
#include "diff/loops/loop.h"
#include "ops/nothing.h"
#include "ops/precision.h"
#include "ops/structural.h"
#include "tape/scope.h"

#include <string.h>

static const char NAME[] = "vmap"; /* of what is played; that of the body is cot__vmap_name */

/* ---- inputs ---------------------------------------------------------------------------------- */

typedef struct inputs {
    int      n;
    cot_var *x;       /* the values; batched ones have the batch as axis 0 */
    cot_var *example; /* the first element of each value */
    bool    *is;
    int64_t  extent;
} inputs;

/* All batched inputs must have the extent of the first one. */
static bool same_extent(cot_tape *t, inputs *in, int k, int axis, int64_t extent, int *first) {
    if (*first < 0) {
        *first = k;
        in->extent = extent;
    }
    if (extent == in->extent) return true;
    cot__fail(t, COT_SHAPE, "[vmap] axis %d of xs[%d] has extent %lld, the batch of xs[%d] %lld; all have the same",
              axis, k, (long long)extent, *first, (long long)in->extent);
    return false;
}

static bool enter_inputs(cot_tape *t, inputs *in, const cot_var *xs, const int *axes) {
    int first = -1;
    for (int k = 0; k < in->n; k++) {
        int      axis = axes ? axes[k] : 0;
        uint32_t i;
        if (!cot__enter_listed(t, xs[k], "vmap", "xs", k, "", &i)) return false;
        in->x[k] = in->example[k] = VAR(t, i);
        in->is[k] = axis != COT_NOT_BATCHED;
        if (!in->is[k]) continue;
        if (!cot__check_axis(t, "vmap", axis, cot__ndim_at(t, i), &axis)) return false;
        if (!same_extent(t, in, k, axis, cot__layout_at(t, i).shape[axis], &first)) return false;
        in->x[k] = cot__moved_axis(VAR(t, i), axis, 0);
        in->example[k] = cot__failed(in->x[k]) ? in->x[k] : cot__first_slice(t, in->x[k]);
        if (t->status != COT_OK) return false;
    }
    if (first >= 0) return true;
    cot__fail(t, COT_VALUE,
              "[vmap] none of the %d inputs is batched; give one of them an axis, or call the function itself", in->n);
    return false;
}

/* ---- playing --------------------------------------------------------------------------------- */

static bool may_have_derivatives(const cot_tape *t, const cot__mapping *b) {
    bool active = false;
    for (int k = 0; k < cot__mapping_values(b->r) && t->active_mask; k++)
        active |= (t->nodes[cot__index(b->values[k])].flags & COT__ACTIVE) != 0;
    return active;
}

/* Plays the body for all elements. Without `derivatives` no value of it has one: what a function
 * form recorded at a constant needs one only while it is recorded (ops/array/fresh_input.c). */
static bool play(cot_tape *t, const cot__mapping *b, cot_var *ys, bool derivatives) {
    cot__scope scope = cot__scope_open(t, derivatives ? t->active_mask : 0);
    bool       ok = cot__play_batched(t, NAME, b->r, b->values, b->given, b->extent, ys, b->is);
    cot__scope_close(t, &scope);
    return ok;
}

/* A result with its batch at the axis that the user wants, counted in the shape with the batch. */
static cot_var placed(cot_tape *t, cot_var y, bool is, int64_t extent, int k, const int *axes) {
    int axis = axes ? axes[k] : 0;
    if (axis == COT_NOT_BATCHED && is)
        return cot__fail(t, COT_VALUE,
                         "[vmap] ys[%d] is to have no batch, but depends on a batched input; give it an axis", k);
    if (axis == COT_NOT_BATCHED) return cot__own(y, COT__VIEW); /* y may be a node of the body */
    cot_shape s = cot_shape_of(y);
    if (!is) s = cot__batch_shape(t, extent, s);
    if (t->status != COT_OK || !cot__check_axis(t, "vmap", axis, s.ndim, &axis)) return INVALID(t);
    return cot__unchanged(cot__moved_axis(is ? y : cot_broadcast_to(y, s), 0, axis), COT__VIEW);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void run(cot_tape *t, const cot__region *r, const inputs *in, cot_var *ys, const int *axes) {
    size_t   count = (size_t)(r->n + r->captures);
    cot_var *values = cot__arena(t, count * sizeof *values, NAME);
    bool    *given = values ? cot__arena(t, count + (size_t)r->m, NAME) : NULL, done = false;
    if (!given) return;
    cot__mapping b = {r, values, given, given + count, in->extent};
    memcpy(values, in->x, (size_t)r->n * sizeof *values);
    memcpy(given, in->is, (size_t)r->n);
    for (int k = 0; k < r->captures; k++) values[r->n + k] = VAR(t, r->captured[k]), given[r->n + k] = false;
    /* the casts that the function's policy asked for are recorded in it */
    cot_precision policy = cot__precision_pause(t);
    bool derivatives = may_have_derivatives(t, &b);
    bool ok = (derivatives || cot__vmap_as_program(t, &b, ys, &done)) && (done || play(t, &b, ys, derivatives));
    t->precision = policy;
    for (int k = 0; k < r->m && ok; k++) {
        ys[k] = placed(t, ys[k], b.is[k], in->extent, k, axes);
        ok = t->status == COT_OK;
    }
}

static cot_status map(cot_fn f, void *user, int n, const cot_var *xs, const int *in_axes, int m, cot_var *ys,
                      const int *out_axes) {
    cot_tape *t = cot__tape_of(n, xs);
    if (!t) return cot__status_of(n, xs);
    if (!cot__check_call(t, "vmap", f, n, xs, m, ys)) return t->status;
    inputs in = {.n = n};
    in.x = cot__arena(t, 2 * (size_t)n * sizeof *in.x + (size_t)n, "vmap");
    if (!in.x) return t->status;
    in.example = in.x + n;
    in.is = (bool *)(in.example + n);
    if (!enter_inputs(t, &in, xs, in_axes)) return t->status;
    const cot__region *r = cot__region_record(t, cot__vmap_name, f, user, n, in.example, m);
    if (r) run(t, r, &in, ys, out_axes);
    return t->status;
}

/* The results may be written where the inputs are. After a failure they are invalid. */
cot_status cot_vmap(cot_fn f, void *user, int n, const cot_var *xs, const int *in_axes, int m, cot_var *ys,
                    const int *out_axes) {
    cot_var    none = cot__invalid(n, xs);
    cot_status status = map(f, user, n, xs, in_axes, m, ys, out_axes);
    for (int k = 0; ys && k < m && status != COT_OK; k++) ys[k] = none;
    return status;
}
