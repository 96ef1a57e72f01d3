/* vmap.c: cot_vmap. A function is recorded once, on the first elements of a batch, and then played
 * for all elements at once (batch/play.c). The user may choose the axes of the batch: they are
 * moved to the front before, and back afterwards.
 *
 * Where no derivative can be asked for and the work is large, what is played is a body itself, a
 * loop of one step: it runs as a program, which records nothing, writes no value that a result does
 * not need and holds no more memory than is needed at a time. Small work is over before its program
 * would be made (docs/architecture/diff.md has the measurements). */
#include "diff/loops/loop.h"
#include "diff/batch/vmap.h"
#include "ops/precision.h"
#include "ops/structural.h"
#include "pending/pending.h"
#include "tape/scope.h"

#include <string.h>

/* the name of the loop; that of the body of one element is cot__vmap_name */
static const char NAME[] = "vmap";

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

/* ---- as a program ---------------------------------------------------------------------------- */

int64_t cot__vmap_program_from = 1 << 20;

/* A body with values for its inputs, then its captures. */
typedef struct batch {
    const cot__region *r;
    const cot_var     *values;
    const bool        *given; /* which of them have the batch as axis 0 */
    bool              *is;    /* which results have it */
    int64_t            extent;
} batch;

static bool may_have_derivatives(const cot_tape *t, const batch *b) {
    bool active = false;
    for (int k = 0; k < b->r->n + b->r->captures && t->active_mask; k++)
        active |= (t->nodes[cot__index(b->values[k])].flags & COT__ACTIVE) != 0;
    return active;
}

/* Is it a product that is much larger than its factors? Recorded, such a one may never be written
 * (src/pending/patient.c). */
static bool outgrows_factors(const cot_tape *t, uint32_t node) {
    const cot__node *n = &t->nodes[node];
    int64_t          read = 0;
    if (cot__op_of(n->op)->kind != KIND_BILINEAR) return false;
    for (int k = 0; k < cot__nargs(n); k++) read = cot__size_add(read, cot__size_at(t, cot__arg(n, k)));
    return (uint64_t)cot__size_at(t, node) >= cot__product_times * (uint64_t)read;
}

/* Is the work large, and none of it better left to wait? A program saves the writing of what
 * elementwise operations give; kernels of others do the same either way. */
static bool is_large(const cot_tape *t, const batch *b) {
    enum { SAVED = 4 }; /* what such an element counts for */
    int64_t all = 0;
    for (uint32_t s = 0; s < b->r->steps; s++) {
        uint32_t node = b->r->node[s];
        if (outgrows_factors(t, node)) return false;
        int64_t counts = t->nodes[node].op < OP_structural ? SAVED : 1;
        all = cot__size_add(all, cot__size_mul(cot__size_at(t, node), counts));
    }
    return cot__size_mul(all, b->extent) >= cot__vmap_program_from;
}

/* Is a result an input, or a view of one? Then it shares its memory, and writes to one of them are
 * seen by the other; results of a program are new. */
static bool find_views(cot_tape *t, const cot__region *r, bool *found) {
    size_t          outer = (size_t)(r->n + r->captures) + r->fixed, places = outer + r->steps;
    const uint64_t *ref = r->ref;
    bool           *is = cot__arena(t, places + 1, NAME);
    if (!is) return false;
    memset(is, true, outer);
    for (uint32_t s = 0; s < r->steps; s++) {
        const cot__node *n = &t->nodes[r->node[s]];
        is[outer + s] = cot__op_of(n->op)->view && ref[0] != COT__REF_NUMBER && is[ref[0]];
        ref += cot__nargs(n);
    }
    *found = false;
    for (int k = 0; k < r->m; k++) *found |= is[ref[k]];
    return true;
}

/* Does the body of one element need its tape? */
static bool can_be_program(cot_tape *t, const cot__region *r) {
    cot__not_yet  not_yet;
    cot__program *p = cot__region_lower(t, r, &t->al, &not_yet);
    cot__program_release(p);
    return p != NULL;
}

static int play_all(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const batch *b = user;
    (void)n, (void)m;
    return cot__play_batched(xs[0].tape, NAME, b->r, xs, b->given, b->extent, ys, b->is) ? 0 : 1;
}

/* The body of all elements; nothing is computed while it is recorded (tape/examples.h). */
static const cot__region *record_all(cot_tape *t, batch *b) {
    cot__scope scope = cot__scope_open(t, t->active_mask);
    t->mode.compiling = true;
    const cot__region *all = cot__region_record(t, NAME, play_all, b, b->r->n + b->r->captures, b->values, b->r->m);
    cot__scope_close(t, &scope);
    return all;
}

static bool record_loop(cot_tape *t, const cot__region *all, const batch *b, cot_var *ys) {
    int        n = all->n + all->captures;
    cot__loop *l = cot__arena(t, sizeof *l, NAME);
    uint32_t  *args = l ? cot__arena(t, ((size_t)n + 1) * sizeof *args, NAME) : NULL;
    if (!args) return false;
    *l = (cot__loop){.name = NAME, .body = {all, NULL}, .consts = all->n, .nys = all->m, .once = true, .length = 1};
    for (int k = 0; k < all->n; k++) args[k] = cot__index(b->values[k]);
    for (int k = 0; k < all->captures; k++) args[all->n + k] = all->captured[k];
    if (cot__loop_record(t, l, args, ys) != COT_OK) cot__error_in_function(t, "body", NAME);
    return t->status == COT_OK;
}

/* *done: it ran as a program. False: there is an error on the tape. */
static bool run_as_program(cot_tape *t, batch *b, cot_var *ys, bool *done) {
    bool views;
    *done = false;
    if (t->mode.body || b->r->m == 0 || !is_large(t, b)) return true;
    if (!find_views(t, b->r, &views)) return false;
    if (views || !can_be_program(t, b->r)) return t->status == COT_OK;
    cot_mark           before = cot__mark(t);
    const cot__region *all = record_all(t, b);
    *done = all && cot__region_program(t, all);
    if (*done) return record_loop(t, all, b, ys);
    if (t->status == COT_OK) cot__rewind(t, before);
    return t->status == COT_OK;
}

/* Plays the body for all elements. Without `derivatives` no value of it has one: what a function
 * form recorded at a constant needs one only while it is recorded (ops/array/fresh_input.c). */
static bool play(cot_tape *t, const batch *b, cot_var *ys, bool derivatives) {
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
    batch b = {r, values, given, given + count, in->extent};
    memcpy(values, in->x, (size_t)r->n * sizeof *values);
    memcpy(given, in->is, (size_t)r->n);
    for (int k = 0; k < r->captures; k++) values[r->n + k] = VAR(t, r->captured[k]), given[r->n + k] = false;
    /* the casts that the function's policy asked for are recorded in it */
    cot_precision policy = cot__precision_pause(t);
    bool derivatives = may_have_derivatives(t, &b);
    bool ok = (derivatives || run_as_program(t, &b, ys, &done)) && (done || play(t, &b, ys, derivatives));
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
