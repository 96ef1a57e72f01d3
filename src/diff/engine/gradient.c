/* gradient.c: the public face of reverse mode: cot_backward, cot_grad_of and cot_vjp. */
#include "diff/engine/find_kinks.h"
#include "ops/structural.h"
#include "tape/region.h"

#include <string.h>

/* ---- inputs and seeds ------------------------------------------------------------------------ */

bool cot__may_sweep(cot_tape *t, const char *op) {
    if (!t->mode.inside) return true;
    cot__fail(t, COT_GRAD,
              "[%s] called inside a function of [%s]; such a function computes or records, and the library "
              "differentiates what it "
              "recorded (use a tape of its own to differentiate there)",
              op, t->mode.inside);
    return false;
}

/* What a body may do instead: record. */
static const char *recorded_form(const char *op) {
    if (!strcmp(op, "vjps")) return "record the product with cot_vjp or cot_fn_vjp";
    if (!strcmp(op, "jvps")) return "record the product with cot_jvp or cot_fn_jvp";
    if (!strcmp(op, "hvp")) return "record the product with cot_fn_jvp of a gradient";
    if (!strcmp(op, "taylor_values")) return "record the derivatives with cot_taylor";
    return strstr(op, "hessian") ? "record the derivatives with cot_fn_hessian"
                                 : "record the derivatives with cot_fn_jacobian";
}

bool cot__may_sweep_numbers(cot_tape *t, const char *op, uint32_t y) {
    return cot__may_sweep(t, op) && cot__has_values(t, op, y, recorded_form(op));
}

bool cot__check_inputs(cot_tape *t, const char *op, int n, const cot_var *xs, uint32_t *index) {
    char which[32], text[160];
    if (n < 0) {
        cot__fail(t, COT_VALUE, "[%s] a negative number of vars: %d", op, n);
        return false;
    }
    if (!cot__list_given(t, op, "vars", n, xs)) return false;
    for (int k = 0; k < n; k++) {
        uint32_t i = cot__index(xs[k]);
        if (UNLIKELY(xs[k].tape != t || i >= t->count || t->nodes[i].stamp != (uint32_t)(xs[k].id >> 32))) {
            snprintf(which, sizeof which, "xs[%d]", k);
            cot__operand(t, xs[k], op, which, &i);
            return false;
        }
        if (!(t->nodes[i].flags & COT__ACTIVE)) {
            cot__fail(
                t, COT_GRAD,
                "[%s] xs[%d], %s, does not require a gradient: it is a constant, detached, an integer, or was recorded "
                "without gradients",
                op, k, cot__describe(t, i, text, sizeof text));
            return false;
        }
        index[k] = i;
    }
    return true;
}

void cot__mark_wanted(cot_tape *t, int n, const uint32_t *index, bool on) {
    uint8_t set = on ? COT__WANTED : 0;
    for (int k = 0; k < n; k++) {
        cot__node *x = &t->nodes[index[k]];
        x->flags = (uint8_t)((x->flags & ~COT__WANTED) | set);
    }
}

/* The output of a sweep: alive, and a float. */
static cot_tape *enter_output(cot_var y, const char *op, int n, const cot_var *others, uint32_t *i) {
    cot_tape *t = cot__tape_beside(op, "y", 1, &y, n, others);
    char      text[160];
    if (!t || !cot__enter(t, y, op, "", i) || !cot__may_sweep(t, op)) return NULL;
    if (!cot__dtype_is_float(cot__dtype_at(&t->nodes[*i]))) {
        cot__fail(t, COT_DTYPE, "[%s] %s has dtype %s; only floats have derivatives", op,
                  cot__describe(t, *i, text, sizeof text), cot__dtype_name(cot__dtype_at(&t->nodes[*i])));
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
            cot__fail(t, COT_SHAPE, "[%s] y has shape %s, not a single number; %s", op, cot__shape_text_at(t, y, a),
                      strstr(op, "hessian")
                          ? "a Hessian is of one number: cot_sum y first"
                          : "give a seed of that shape (cot_backward_seeded, cot_vjp), or reduce y to a scalar first");
            return false;
        }
        *seed = cot__index(cot_full(t, dtype, cot__shape_at(t, y), 1));
        return t->status == COT_OK;
    }
    cot_var v = *given;
    /* the same for every element */
    if (cot__is_number(v)) v = cot_full(t, dtype, cot__shape_at(t, y), cot__number_value(v));
    if (t->status != COT_OK || !cot__operand(t, v, op, "seed", seed)) return false;
    cot_shape have = cot__shape_at(t, *seed), want = cot__shape_at(t, y);
    if (!cot__same_shape(&have, &want)) {
        cot__fail(t, COT_SHAPE, "[%s] the seed has shape %s, y has %s; they must be equal", op,
                  cot__shape_text_at(t, *seed, a), cot__shape_text_at(t, y, b));
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

/* ---- backward -------------------------------------------------------------------------------- */

/* On a smooth tape a point without a derivative is an error, with the first finding of cot_report,
 * instead of a convention. */
static bool is_smooth(cot_tape *t, const char *op, uint32_t y, int n, const uint32_t *xs) {
    char text[320];
    if (!t->options.smooth) return true;
    if (t->mode.body) return cot__smooth_between(t, op, 1, &y, n, xs);
    int found = cot_report(VAR(t, y), text, sizeof text);
    if (found < 0)
        cot__fail(t, COT_MEMORY, "[%s] out of memory: nothing left to look for points without a derivative", op);
    if (found <= 0) return found == 0; /* any other error the sweep will tell too */
    text[strcspn(text, "\n")] = 0;
    cot__fail(t, COT_GRAD, "[%s] a derivative at a point without one was refused, as this tape was asked to: %s", op,
              text);
    return false;
}

static cot_status backward(cot_var y, const cot_var *given, const char *op) {
    uint32_t  i, seed;
    cot_tape *t = enter_output(y, op, 1, given, &i);
    if (!t || !cot__outside_bodies(t, op)) return cot__status_of(1, &y);
    char text[160];
    if (!(t->nodes[i].flags & COT__ACTIVE)) {
        cot__fail(
            t, COT_GRAD,
            "[%s] y, %s, depends on no leaf: nothing requires a gradient (constants, detach, a no-grad scope, or an "
            "operation without derivative lie between)",
            op, cot__describe(t, i, text, sizeof text));
        return t->status;
    }
    cot_mark    m = cot__mark(t);
    cot__sweep  s = {.t = t, .gradients = true, .lo = i, .top = i};
    const char *before = cot__ask(t, op);
    if (is_smooth(t, op, i, 0, NULL) && make_seed(t, op, i, given, &seed) &&
        cot__leaves_unassigned(t, op, 1, &i, 0, NULL) && cot__slots(t, i, 1, op)) {
        put_seed(&s, i, seed);
        cot__rewind(t, m); /* the seed's storage lives on in its slot */
        t->sweep.arrived_count = 0;
        bool done = t->status == COT_OK && cot__reverse(&s) && cot__own_arrivals(&s);
        if (done) cot__commit_arrivals(&s);
        cot__sweep_close(&s, done);
    } else
        cot__rewind(t, m);
    cot__asked(t, before);
    return t->status;
}

cot_status cot_backward(cot_var y) { return backward(y, NULL, "backward"); }
cot_status(cot_backward_seeded)(cot_var y, cot_var seed) { return backward(y, &seed, "backward_seeded"); }

/* ---- gradients on the tape ------------------------------------------------------------------- */

bool cot__mark_reach(cot__sweep *s, const char *op, int n, const uint32_t *xs, uint32_t y) {
    cot__flow w;
    if (!cot__flow_open(&w, s->t, cot__lowest(n, xs, y), y + 1)) {
        cot__fail(s->t, COT_MEMORY, "[%s] out of memory: %zu bytes to mark what depends on the inputs", op,
                  cot__flow_bytes(&w));
        return false;
    }
    cot__flow_start(&w, n, xs, 1);
    cot__flow_up(&w, 1, COT__EDGES_MOVING);
    s->reach = w.mark, s->reach_from = w.from, s->reach_bytes = cot__flow_bytes(&w);
    return true;
}

static uint32_t highest(int n, const uint32_t *nodes) {
    uint32_t top = 0;
    for (int k = 0; k < n; k++) top = nodes[k] > top ? nodes[k] : top;
    return top;
}

/* A value that is listed twice gets both seeds. */
static void seed_recorded(cot__sweep *s, uint32_t y, cot_var seed) {
    cot_tape *t = s->t;
    if (y < s->reach_from || !s->reach[y - s->reach_from]) return;
    uint64_t held = *cot__slot(t, y);
    cot_var  sum = held ? cot_add(VAR(t, (uint32_t)held - 1), seed) : seed;
    if (cot__failed(sum)) return;
    *cot__slot(t, y) = (uint64_t)cot__index(sum) + 1;
    if (y < s->lo) s->lo = y;
}

static bool any_reached(const cot__sweep *s, int m, const uint32_t *ys) {
    for (int k = 0; k < m; k++)
        if (ys[k] >= s->reach_from && s->reach[ys[k] - s->reach_from]) return true;
    return false;
}

/* What has arrived for node x; zeros where nothing has. */
static cot_var gradient_in(cot_tape *t, uint64_t slot, uint32_t x, bool *absent) {
    if (absent) *absent = !slot;
    return slot ? VAR(t, (uint32_t)slot - 1) : cot_zeros(t, cot__dtype_at(&t->nodes[x]), cot__shape_at(t, x));
}

cot_status cot__vjp_recorded_to(cot_tape *t, const char *op, int m, const uint32_t *ys, const cot_var *seeds, int n,
                                const uint32_t *xs, cot_var *grads, bool *absent) {
    uint32_t   y = highest(m, ys);
    cot__sweep s = {.t = t, .recording = true, .lo = y, .top = y};
    if (!cot__mark_reach(&s, op, n, xs, y) || !cot__slots(t, y, 1, op)) {
        s.lo = y + 1;
        cot__sweep_close(&s, false);
        return t->status;
    }
    if (!any_reached(&s, m, ys)) {
        /* then ys may be older than a sweep that is under way, which owns the slots there */
        for (int k = 0; k < n; k++) grads[k] = gradient_in(t, 0, xs[k], absent ? &absent[k] : NULL);
        s.lo = y + 1;
        cot__sweep_close(&s, false);
        return t->status;
    }
    const char *before = cot__ask(t, op);
    uint8_t     repeats = t->mode.repeats;
    t->mode.repeats = COT__REPEATS;
    cot__mark_wanted(t, n, xs, true);
    for (int k = 0; k < m; k++) seed_recorded(&s, ys[k], seeds[k]);
    bool ok = t->status == COT_OK && cot__reverse(&s);
    t->mode.repeats = repeats;
    cot__asked(t, before);
    for (int k = 0; k < n && ok; k++)
        grads[k] = gradient_in(t, xs[k] <= y ? *cot__slot(t, xs[k]) : 0, xs[k], absent ? &absent[k] : NULL);
    cot__mark_wanted(t, n, xs, false);
    cot__sweep_close(&s, false);
    return t->status;
}

cot_status cot__vjp_recorded(cot_tape *t, const char *op, int m, const uint32_t *ys, const cot_var *seeds, int n,
                             const uint32_t *xs, cot_var *grads) {
    return cot__vjp_recorded_to(t, op, m, ys, seeds, n, xs, grads, NULL);
}

cot_var cot__as_recorded(cot_tape *t, uint32_t from, cot_var v) {
    if (!cot__failed(v) && cot__index(v) < from) v = cot__unchanged(v, COT__COPY);
    return !t->active_mask && !cot__failed(v) && (t->nodes[cot__index(v)].flags & COT__ACTIVE) ? cot_detach(v) : v;
}

cot_status cot__grad_recorded(cot_tape *t, const char *op, uint32_t y, cot_var seed, int n, const uint32_t *xs,
                              cot_var *grads) {
    return cot__vjp_recorded(t, op, 1, &y, &seed, n, xs, grads);
}

/* The gradients may go where the inputs are; after a failure they are invalid. */
cot_status cot__grad_of(const char *op, cot_var y, const cot_var *given, int n, const cot_var *xs, cot_var *grads) {
    uint32_t   i, seed, few[16];
    cot_tape  *t = enter_output(y, op, n, xs, &i);
    cot_status status = t ? COT_OK : cot__status_of(1, &y);
    uint32_t   from = 0, *index = n <= 16 || !t ? few : cot__alloc(&t->al, (size_t)n * sizeof *index);
    if (!index) cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %d inputs", op, n);
    if (t && index && cot__check_inputs(t, op, n, xs, index) && cot__list_given(t, op, "gradients", n, grads) &&
        is_smooth(t, op, i, n, index) && make_seed(t, op, i, given, &seed)) {
        from = t->count;
        cot__grad_recorded(t, op, i, VAR(t, seed), n, index, grads);
    }
    for (int k = 0; t && index && k < n && t->status == COT_OK; k++) grads[k] = cot__as_recorded(t, from, grads[k]);
    if (t && index && index != few) cot__free(&t->al, index, (size_t)n * sizeof *index);
    if (t) status = t->status;
    for (int k = 0; grads && k < n && status != COT_OK; k++) grads[k] = INVALID(cot__is_number(y) ? NULL : y.tape);
    return status;
}

cot_status cot_grad_of(cot_var y, int n, const cot_var *xs, cot_var *grads) {
    return cot__grad_of("grad_of", y, NULL, n, xs, grads);
}
cot_status(cot_vjp)(cot_var y, cot_var seed, int n, const cot_var *xs, cot_var *grads) {
    return cot__grad_of("vjp", y, &seed, n, xs, grads);
}
