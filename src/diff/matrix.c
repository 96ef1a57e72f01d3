/* matrix.c: many directions at once, in numbers: products with several seeds or tangents, Jacobians, Hessians.
 *
 * A sweep over f64 scalars carries up to two lanes; where another node lies on the way, the directions are swept one by one. */
#include "diff/find_kinks.h"
#include "diff/sweep.h"
#include "ops/queue.h"

#include <string.h>

/* ---- the vars of one side, flattened ---------------------------------------------------------------------------------------------- */

typedef struct side {
    cot_tape *t;
    int       n;
    uint32_t *index;
    int64_t   size; /* elements of all */
    uint32_t  lo, hi;
} side;

/* The name of an operand costs more than its check: it is only made for the message. */
static bool output_operand(cot_tape *t, const char *op, int k, cot_var y, uint32_t *index) {
    char which[32] = "";
    if (!cot_is_valid(y) || y.tape != t) snprintf(which, sizeof which, "ys[%d]", k);
    return cot__operand(t, y, op, which, index);
}

static bool side_open(side *s, cot_tape *t, const char *op, bool inputs, int n, const cot_var *vars) {
    *s = (side){.t = t, .n = n, .lo = UINT32_MAX};
    if (n < 0) {
        cot__fail(t, COT_VALUE, "[%s] a negative number of vars: %d", op, n);
        s->n = 0;
        return false;
    }
    s->index = cot__alloc(&t->al, (size_t)n * sizeof *s->index);
    if (!s->index) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d vars", op, n);
        return false;
    }
    if (inputs && !cot__check_inputs(t, op, n, vars, s->index)) return false;
    for (int k = 0; k < n; k++) {
        if (!inputs && !output_operand(t, op, k, vars[k], &s->index[k])) return false;
        if (!inputs && !cot__dtype_is_float(cot__dtype_at(&t->nodes[s->index[k]]))) {
            cot__fail(t, COT_DTYPE, "[%s] ys[%d] has dtype %s; only floats have derivatives", op, k,
                      cot__dtype_name(cot__dtype_at(&t->nodes[s->index[k]])));
            return false;
        }
        s->size += cot__size_at(t, s->index[k]);
        s->lo = s->index[k] < s->lo ? s->index[k] : s->lo;
        s->hi = s->index[k] > s->hi ? s->index[k] : s->hi;
    }
    return true;
}

static void side_close(side *s) { cot__free(&s->t->al, s->index, (size_t)s->n * sizeof *s->index); }

/* ---- lanes over scalars -------------------------------------------------------------------------------------------------------------- */

static bool is_scalar_run(const cot__node *n) {
    return !(n->flags & COT__ACTIVE) || ((cot__in_switch(n) || n->op == OP_leaf) && n->kind == COT_F64);
}

/* Is every node that a sweep between the xs and the ys can meet an f64 scalar that the runs know? First without regard to what the ys need,
 * which is cheap and mostly enough. */
static bool all_scalar(cot_tape *t, const char *op, uint32_t lo, uint32_t hi, const side *ys) {
    uint32_t i = lo;
    while (i <= hi && is_scalar_run(&t->nodes[i])) i++;
    if (i > hi) return true;
    uint8_t *needed = cot__needed(t, lo, hi, ys->n, ys->index);
    bool     all = needed != NULL;
    if (!all) cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to mark what the results depend on", op, (size_t)hi - lo + 1);
    for (; all && i <= hi; i++) all = !needed[i - lo] || is_scalar_run(&t->nodes[i]);
    if (needed) cot__free(&t->al, needed, (size_t)hi - lo + 1);
    return all;
}

static void slot_add(cot_tape *t, uint32_t i, int width, int lane, double v) {
    char *p = (char *)t->adjoints.data + (size_t)i * 8 * (size_t)width;
    ((double *)(void *)p)[lane] += v;
}

static double slot_get(const cot_tape *t, uint32_t i, int width, int lane) {
    const char *p = (const char *)t->adjoints.data + (size_t)i * 8 * (size_t)width;
    return ((const double *)(const void *)p)[lane];
}

static void slots_clear(cot_tape *t, uint32_t lo, uint32_t hi, int width) {
    if (lo <= hi) memset((char *)t->adjoints.data + (size_t)lo * 8 * (size_t)width, 0, ((size_t)hi - lo + 1) * 8 * (size_t)width);
}

/* One reverse sweep, `used` of its lanes real. Wanted nodes stop the run: their adjoint is complete then, and stays in its slot. */
static void reverse_lanes(side *ys, side *xs, const cot__runs *runs, int used, const double *seeds, double *out) {
    cot_tape *t = ys->t;
    int       w = runs->lanes;
    uint32_t  lo = ys->lo < xs->lo ? ys->lo : xs->lo;
    for (int k = 0; k < ys->n; k++)
        for (int l = 0; l < used; l++) slot_add(t, ys->index[k], w, l, seeds[(int64_t)l * ys->size + k]);
    int64_t i = ys->hi;
    while (i >= (int64_t)xs->lo) {
        cot__node *n = &t->nodes[i];
        if (n->op == OP_leaf || n->op == OP_constant || cot__is_tensor(n) || !cot__dtype_is_float((cot_dtype)n->kind) ||
            !(n->flags & COT__ACTIVE)) {
            i--;
            continue;
        }
        uint8_t  stop = n->flags & (COT__WANTED | COT__RETAIN);
        uint32_t pushed = xs->lo; /* the run goes on down to the lowest input */
        double   adjoint[8];      /* the run consumes it; nothing is added to it any more */
        for (int l = 0; l < used && (stop & COT__WANTED); l++) adjoint[l] = slot_get(t, (uint32_t)i, w, l);
        n->flags &= (uint8_t)~stop;
        int64_t next = runs->reverse_f64(t->nodes, i, t->adjoints.data, &pushed);
        n->flags |= stop;
        for (int l = 0; l < used && (stop & COT__WANTED); l++) slot_add(t, (uint32_t)i, w, l, adjoint[l]);
        lo = pushed < lo ? pushed : lo;
        i = next < i ? next : i - 1;
    }
    for (int k = 0; k < xs->n; k++)
        for (int l = 0; l < used; l++) out[(int64_t)l * xs->size + k] = slot_get(t, xs->index[k], w, l);
    slots_clear(t, lo, ys->hi > xs->hi ? ys->hi : xs->hi, w);
}

/* Runs over node i alone, an input that is itself computed: it moves by its own tangent on top of what moves it. */
static void forward_input(cot_tape *t, uint32_t i, const cot__runs *runs, cot__slot_number *slots) {
    double            given[2];
    cot__slot_number *at = slots + (size_t)i * (size_t)runs->lanes;
    for (int l = 0; l < runs->lanes; l++) given[l] = at[l];
    t->nodes[i].flags &= (uint8_t)~COT__WANTED;
    runs->forward_f64(t->nodes, i, i, slots);
    t->nodes[i].flags |= COT__WANTED;
    for (int l = 0; l < runs->lanes; l++) at[l] += given[l];
}

void cot__forward_lanes(cot_tape *t, uint32_t lo, uint32_t hi, const cot__runs *runs, void *slots) {
    for (uint32_t i = lo; i <= hi;) {
        const cot__node *n = &t->nodes[i];
        bool known = cot__in_switch(n) && !cot__is_tensor(n); /* what is not known here is not needed either */
        if (!(n->flags & COT__ACTIVE) || !known)
            i++;
        else if (n->flags & COT__WANTED)
            forward_input(t, i++, runs, slots);
        else
            i = runs->forward_f64(t->nodes, i, hi, slots);
    }
}

static void forward_lanes(side *xs, side *ys, const cot__runs *runs, int used, const double *tangents, double *out) {
    cot_tape *t = xs->t;
    int       w = runs->lanes;
    for (int k = 0; k < xs->n; k++)
        for (int l = 0; l < used; l++) slot_add(t, xs->index[k], w, l, tangents[(int64_t)l * xs->size + k]);
    cot__forward_lanes(t, xs->lo, ys->hi, runs, t->adjoints.data);
    for (int k = 0; k < ys->n; k++)
        for (int l = 0; l < used; l++) out[(int64_t)l * ys->size + k] = slot_get(t, ys->index[k], w, l);
    uint32_t lo = xs->lo < ys->lo ? xs->lo : ys->lo, hi = xs->hi > ys->hi ? xs->hi : ys->hi;
    slots_clear(t, lo, hi, w);
}

/* ---- one direction, any nodes ------------------------------------------------------------------------------------------------------------- */

/* numbers[] are the elements of node i: added to its slot as an adjoint or tangent. */
static bool seed_node(cot__sweep *s, uint32_t i, const double *numbers) {
    cot_tape *t = s->t;
    if (!cot__is_tensor(&t->nodes[i])) {
        cot__slot_add(t, i, numbers[0]);
        return true;
    }
    int64_t   stride[COT_MAX_NDIM];
    cot__view v = cot__view_place(t, i);
    cot__strides(v.ndim, v.shape, stride);
    double *data;
    memcpy(&data, &numbers, sizeof data); /* read only */
    cot__view from = {data, COT_F64, v.ndim, v.shape, stride};
    if (*cot__slot(t, i) != 0) { /* listed twice */
        bool ok = cot__acc_add(s, i, &from);
        cot__queue_finish(t); /* the numbers are not ours */
        return ok;
    }
    cot__storage *fresh = cot__storage_create(t, (size_t)(cot__count(v.ndim, v.shape) * cot__dtype_size(v.dtype)), "backward");
    if (!fresh) return false;
    cot__view to = {fresh->data, v.dtype, v.ndim, v.shape, stride};
    cot__copy(&to, &from);
    bool ok = cot__acc_share(s, i, fresh, 0, stride);
    cot__storage_release(t, fresh);
    return ok;
}

static void collect(cot_tape *t, uint32_t i, double scalar, const cot__acc *a, double *out) {
    cot__view v = cot__view_of(t, i);
    int64_t   stride[COT_MAX_NDIM];
    if (v.ndim == 0) {
        *out = scalar;
        return;
    }
    cot__strides(v.ndim, v.shape, stride);
    cot__view to = {out, COT_F64, v.ndim, v.shape, stride};
    cot__view from = {(char *)a->storage->data + a->offset * cot__dtype_size(v.dtype), v.dtype, v.ndim, v.shape, a->stride};
    if (cot__count(v.ndim, v.shape) > 0) cot__copy(&to, &from);
}

static bool reverse_one(side *ys, side *xs, const double *seeds, double *out) {
    cot_tape  *t = ys->t;
    cot__sweep s = {.t = t, .lo = ys->lo, .top = ys->hi, .wanted_only = true};
    bool       ok = true;
    for (int k = 0; k < ys->n && ok; k++) {
        ok = seed_node(&s, ys->index[k], seeds);
        seeds += cot__size_at(t, ys->index[k]);
    }
    ok = ok && cot__reverse(&s);
    for (uint32_t a = 0; a < s.arrival_count && ok; a++) *cot__slot(t, s.arrivals[a].node) = (uint64_t)a + 1; /* the slots are free: an index */
    for (int k = 0; k < xs->n && ok; k++) {
        uint64_t slot = xs->index[k] <= s.top ? *cot__slot(t, xs->index[k]) : 0;
        int64_t  size = cot__size_at(t, xs->index[k]);
        if (slot) collect(t, xs->index[k], s.arrivals[slot - 1].scalar, &s.arrivals[slot - 1].tensor, out);
        else memset(out, 0, (size_t)size * sizeof *out);
        out += size;
    }
    cot__sweep_close(&s, false);
    return ok;
}

static bool forward_one(side *xs, side *ys, const double *tangents, double *out) {
    cot_tape  *t = xs->t;
    uint32_t   lo = xs->lo < ys->lo ? xs->lo : ys->lo, hi = xs->hi > ys->hi ? xs->hi : ys->hi;
    cot__sweep s = {.t = t, .lo = lo, .top = hi};
    bool       ok = true;
    for (int k = 0; k < xs->n && ok; k++) {
        ok = seed_node(&s, xs->index[k], tangents);
        tangents += cot__size_at(t, xs->index[k]);
    }
    s.top = ys->hi;
    s.ys = ys->index;
    s.ny = ys->n;
    ok = ok && (xs->lo > ys->hi || cot__forward(&s, xs->lo));
    s.top = hi;
    for (int k = 0; k < ys->n && ok; k++) {
        uint32_t i = ys->index[k];
        uint64_t slot = *cot__slot(t, i);
        bool     tensor = cot__is_tensor(&t->nodes[i]);
        if (slot) collect(t, i, tensor ? 0 : cot__slot_get(t, i), tensor ? &s.accs[slot - 1] : NULL, out);
        else memset(out, 0, (size_t)cot__size_at(t, i) * sizeof *out);
        out += cot__size_at(t, i);
    }
    cot__sweep_close(&s, false);
    return ok;
}

/* ---- the public functions --------------------------------------------------------------------------------------------------------------------- */

/* `lanes` directions in either mode; rows of `in` (lanes, from) and `out` (lanes, to). */
static cot_status products(const char *op, bool reverse, int lanes, side *from, side *to, const double *in, double *out) {
    cot_tape *t = from->t;
    side     *xs = reverse ? to : from, *ys = reverse ? from : to;
    uint32_t  hi = ys->hi > xs->hi ? ys->hi : xs->hi, lo = xs->lo < ys->lo ? xs->lo : ys->lo;
    if (from->n == 0 || to->n == 0 || lanes <= 0) return t->status;
    if (!cot__leaves_unassigned(t, op, ys->n, ys->index)) return t->status;
    if (!cot__smooth_between(t, op, ys->n, ys->index, xs->n, xs->index)) return t->status;
    bool scalar = lanes > 1 && from->size == from->n && to->size == to->n && all_scalar(t, op, lo, hi, ys);
    if (t->status != COT_OK) return t->status;
    cot__mark_wanted(t, xs->n, xs->index, true);
    for (int done = 0; done < lanes && t->status == COT_OK;) {
        const cot__runs *runs = cot__runs_for(scalar ? lanes - done : 1);
        int              used = runs->lanes < lanes - done ? runs->lanes : lanes - done;
        const double    *a = in + (int64_t)done * from->size;
        double          *b = out + (int64_t)done * to->size;
        if (!cot__slots(t, hi, runs->lanes, op)) break;
        if (scalar)
            (reverse ? reverse_lanes : forward_lanes)(from, to, runs, used, a, b);
        else if (!(reverse ? reverse_one : forward_one)(from, to, a, b))
            break;
        done += used;
    }
    cot__mark_wanted(t, xs->n, xs->index, false);
    return t->status;
}

/* Rows of numbers to read and to write. */
static bool lists_given(cot_tape *t, const char *op, bool any, const side *ys, const side *xs, bool reverse, const double *in,
                        const double *out) {
    int64_t from = reverse ? ys->size : xs->size, to = reverse ? xs->size : ys->size;
    if (!any || ((in || from == 0) && (out || to == 0))) return true;
    cot__fail(t, COT_VALUE, "[%s] a list of %lld values is NULL", op, (long long)(in || from == 0 ? to : from));
    return false;
}

cot_status cot__products(const char *op, bool reverse, int lanes, int m, const cot_var *ys, int n, const cot_var *xs, const double *in,
                         double *out) {
    cot_tape *t = cot__tape_of(m, ys);
    if (!t) return cot__status_of(m, ys);
    if (!cot__may_sweep(t, op)) return t->status;
    if (lanes < 0) {
        cot__fail(t, COT_VALUE, "[%s] a negative number of lanes: %d", op, lanes);
        return t->status;
    }
    side a, b = {.t = t};
    if (side_open(&a, t, op, false, m, ys) && cot__may_sweep_numbers(t, op, a.hi) && side_open(&b, t, op, true, n, xs) &&
        lists_given(t, op, lanes > 0, &a, &b, reverse, in, out) && cot__not_lost(t, op, a.n, a.index, b.n, b.index))
        products(op, reverse, lanes, reverse ? &a : &b, reverse ? &b : &a, in, out);
    side_close(&a);
    side_close(&b);
    return t->status;
}

static int64_t total_size(int n, const cot_var *vars) {
    int64_t size = 0;
    for (int k = 0; vars && k < n; k++) size += cot_size(vars[k]);
    return size;
}

/* A failure leaves no numbers behind that could be taken for results: out is (rows, elements of the vars). */
static cot_status finish(cot_status status, double *out, int64_t rows, int n, const cot_var *vars) {
    if (status == COT_OK || !out) return status;
    for (int64_t i = 0, count = rows * total_size(n, vars); i < count; i++) out[i] = (double)NAN;
    return status;
}

cot_status cot_vjps(int lanes, int m, const cot_var *ys, const double *seeds, int n, const cot_var *xs, double *out) {
    return finish(cot__products("vjps", true, lanes, m, ys, n, xs, seeds, out), out, lanes, n, xs);
}

cot_status cot_jvps(int lanes, int n, const cot_var *xs, const double *tangents, int m, const cot_var *ys, double *out) {
    return finish(cot__products("jvps", false, lanes, m, ys, n, xs, tangents, out), out, lanes, m, ys);
}

/* Unit directions in groups, so that the memory stays a few rows whatever the size. */
enum { GROUP = 64 };

static cot_status jacobian(int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode, double *out) {
    cot_tape *t = cot__tape_of(m, ys);
    if (!t) return cot__status_of(m, ys);
    if ((unsigned)mode > COT_FORWARD) {
        cot__fail(t, COT_VALUE, "[jacobian] %d is not a mode; COT_AUTO, COT_REVERSE and COT_FORWARD are", (int)mode);
        return t->status;
    }
    int64_t rows = total_size(m, ys), cols = total_size(n, xs);
    bool    reverse = mode == COT_REVERSE || (mode == COT_AUTO && rows <= cols);
    int64_t directions = reverse ? rows : cols, results = reverse ? cols : rows;
    int64_t group = directions < GROUP ? directions : GROUP;
    if (directions == 0 || results == 0) return cot__products("jacobian", reverse, 0, m, ys, n, xs, NULL, NULL); /* only its checks */
    if (!out) {
        cot__fail(t, COT_VALUE, "[jacobian] the place for the result is NULL");
        return t->status;
    }
    size_t  unit_bytes = (size_t)(group * directions) * sizeof(double), column_bytes = (size_t)(group * results) * sizeof(double);
    double *unit = cot__alloc(&t->al, unit_bytes), *column = reverse ? NULL : cot__alloc(&t->al, column_bytes);
    if (!unit || (!reverse && !column))
        cot__fail(t, COT_MEMORY, "[jacobian] out of memory: %lld directions of %lld elements", (long long)group, (long long)directions);
    for (int64_t at = 0; at < directions && t->status == COT_OK; at += group) {
        int64_t k = directions - at < group ? directions - at : group;
        memset(unit, 0, unit_bytes);
        for (int64_t i = 0; i < k; i++) unit[i * directions + at + i] = 1;
        double *to = reverse ? out + at * cols : column;
        cot__products("jacobian", reverse, (int)k, m, ys, n, xs, unit, to);
        for (int64_t i = 0; i < k && !reverse; i++)
            for (int64_t r = 0; r < rows; r++) out[r * cols + at + i] = column[i * rows + r];
    }
    if (unit) cot__free(&t->al, unit, unit_bytes);
    if (column) cot__free(&t->al, column, column_bytes);
    return t->status;
}

cot_status cot_jacobian(int m, const cot_var *ys, int n, const cot_var *xs, cot_mode mode, double *out) {
    cot_status status = jacobian(m, ys, n, xs, mode, out);
    return finish(status, out, status == COT_OK ? 0 : total_size(m, ys), n, xs);
}

/* The gradient is recorded, then its Jacobian taken in forward mode: forward over reverse. */
static cot_status over_gradient(const char *op, cot_var y, int n, const cot_var *xs, const double *v, double *out) {
    cot_tape *t = cot__tape_of(1, &y);
    if (!t) return cot__status_of(1, &y);
    if (cot_is_valid(y) && !cot__may_sweep_numbers(t, op, cot__index(y))) return t->status;
    if (!out && total_size(n, xs) > 0) {
        cot__fail(t, COT_VALUE, "[%s] the place for the result is NULL", op);
        return t->status;
    }
    cot_mark m = cot__mark(t);
    cot_var *grads = cot__alloc(&t->al, (size_t)(n > 0 ? n : 0) * sizeof *grads);
    if (!grads) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: %d gradients", op, n);
        return t->status;
    }
    uint8_t mask = t->active_mask;
    t->active_mask = COT__ACTIVE; /* what is differentiated again here must be, also in a no-grad scope */
    cot__queue_open(t); /* the gradient may wait for the product */
    cot_status status = cot__grad_of(op, y, NULL, n, xs, grads);
    t->active_mask = mask;
    if (status == COT_OK && cot__move_apart(t, op, n, xs)) {
        if (v)
            cot_jvps(1, n, xs, v, n, grads, out);
        else
            cot_jacobian(n, grads, n, xs, COT_FORWARD, out);
    }
    cot__queue_close(t);
    cot__free(&t->al, grads, (size_t)(n > 0 ? n : 0) * sizeof *grads);
    cot__rewind(t, m);
    return t->status;
}

cot_status cot_hessian(cot_var y, int n, const cot_var *xs, double *out) {
    cot_status status = over_gradient("hessian", y, n, xs, NULL, out);
    return finish(status, out, status == COT_OK ? 0 : total_size(n, xs), n, xs);
}

static cot_status hvp(cot_var y, int n, const cot_var *xs, const double *v, double *out) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, y, "hvp", "", &i);
    side      inputs;
    if (!t || !cot__may_sweep_numbers(t, "hvp", i)) return cot__status_of(1, &y);
    if ((!v || !out) && total_size(n, xs) > 0) {
        cot__fail(t, COT_VALUE, "[hvp] %s is NULL; both have an element for each of the xs",
                  v ? "the place for the product" : "the direction v");
        return t->status;
    }
    bool ok = side_open(&inputs, t, "hvp", true, n, xs), scalars = ok && n > 0 && inputs.size == n && inputs.hi <= i;
    ok = ok && cot__move_apart(t, "hvp", n, xs);
    scalars = scalars && ok && t->nodes[i].kind == COT_F64 && cot__hvp_applies(t, inputs.lo, i);
    if (scalars && cot__leaves_unassigned(t, "hvp", 1, &i) && cot__smooth_between(t, "hvp", 1, &i, n, inputs.index))
        cot__hvp_scalars(t, i, n, inputs.index, inputs.lo, v, out);
    side_close(&inputs);
    return scalars || !ok ? t->status : over_gradient("hvp", y, n, xs, v, out);
}

cot_status cot_hvp(cot_var y, int n, const cot_var *xs, const double *v, double *out) {
    return finish(hvp(y, n, xs, v, out), out, 1, n, xs);
}
