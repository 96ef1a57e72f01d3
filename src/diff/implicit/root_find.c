/* root_find.c: F on a tape, as the search for its root calls it (search.h): played, read and
 * forgotten. */
#include "backend/elements.h"
#include "diff/implicit/implicit.h"
#include "diff/loops/loop.h"
#include "diff/implicit/search.h"
#include "ops/structural.h"
#include "tape/record_job.h"

#include <string.h>

typedef struct searching {
    cot_tape        *t;
    const cot__root *q;
    const uint32_t  *args; /* the operands of the node */
    cot_array       *x;
} searching;

static double norm_of(const cot_tape *t, cot_var y) {
    cot__view     v = cot__look(t, cot__index(y));
    double        s = 0;
    cot__elements e;
    cot__elements_open(&e, t->backend, &v, COT_F64);
    while (cot__elements_next(&e))
        for (int k = 0; k < e.n; k++) s += e.f64[k] * e.f64[k];
    return sqrt(s);
}

/* The operands of F. x is read from the memory `raw`, in dtype and shape of operand 0. NULL after
 * an error. */
static cot_var *values_at(const searching *s, const void *raw) {
    cot_tape *t = s->t;
    cot_var  *values = cot__arena(t, (size_t)cot__root_operands(s->q) * sizeof *values + 8, s->q->name);
    if (!values || !cot__take_steps(t, 1)) return NULL;
    for (int k = 0; k < cot__root_operands(s->q); k++) values[k] = VAR(t, s->args[k]);
    values[0] = cot_data(t, s->x->dtype, s->x->shape, raw);
    return t->status == COT_OK ? values : NULL;
}

static bool read_into(const searching *s, cot_var y, double *out, int64_t n) {
    if (s->t->status != COT_OK) return false;
    cot__view v = cot__look(s->t, cot__index(y));
    return cot__read_view(s->t, s->q->name, &v, COT_F64, out, n) == COT_OK;
}

static double residual(void *ctx, const void *raw) {
    const searching *s = ctx;
    cot_tape        *t = s->t;
    cot_mark         m = cot__mark(t);
    cot_var *values = values_at(s, raw), y = values ? cot__root_play(t, s->q, values, NULL) : INVALID(t);
    double   norm = t->status == COT_OK ? norm_of(t, y) : (double)NAN;
    cot__rewind(t, m);
    return norm;
}

static bool step(void *ctx, const void *raw, double *to) {
    const searching *s = ctx;
    cot_tape        *t = s->t;
    cot_mark         m = cot__mark(t);
    cot_var         *values = values_at(s, raw);
    bool             ok = false;
    if (values) {
        cot__near         at = {t, s->q, values[0], values};
        cot_var           y = cot__root_play(t, s->q, values, NULL), dx = y;
        cot_solve_options linear = cot__search_linear(&s->q->options);
        if (t->status == COT_OK)
            dx = cot__linear_solve(s->q->name, COT__FOR_A_STEP, cot__root_forth, &at, y, &linear);
        ok = read_into(s, dx, to, s->x->size);
    }
    cot__rewind(t, m);
    return ok;
}

static bool at(void *ctx, const void *raw, double *f, double *gradient) {
    const searching *s = ctx;
    cot_mark         m = cot__mark(s->t);
    cot_var          value = INVALID(s->t), y = value, *values = values_at(s, raw);
    if (values) y = cot__root_play(s->t, s->q, values, &value);
    bool ok = read_into(s, y, gradient, s->x->size) && read_into(s, value, f, 1);
    cot__rewind(s->t, m);
    return ok;
}

static bool bend(void *ctx, const void *raw, const void *v, double *to) {
    const searching *s = ctx;
    cot_tape        *t = s->t;
    cot_mark         m = cot__mark(t);
    cot_var          dx = INVALID(t), dy = dx, *values = values_at(s, raw);
    if (values) dx = cot_data(t, s->x->dtype, s->x->shape, v);
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    if (t->status == COT_OK) cot__root_forth(1, &dx, 1, &dy, &(cot__near){t, s->q, values[0], values});
    cot__scope_close(t, &scope);
    bool ok = !cot__failed(dy) && read_into(s, dy, to, s->x->size);
    cot__rewind(t, m);
    return ok;
}

static void forget(void *ctx) { cot_tape_clear_error(((const searching *)ctx)->t); }

/* ---- a solver of the user's ------------------------------------------------------------------ */

/* θ as dense arrays of the host. */
static cot_array *arrays_of(const searching *s, int n) {
    cot_tape  *t = s->t;
    cot_array *theta = cot__arena(t, ((size_t)n + 1) * sizeof *theta, s->q->name);
    for (int k = 0; theta && k < n; k++) {
        cot_var dense = cot_copy(VAR(t, s->args[1 + k]));
        if (cot__failed(dense)) return NULL;
        cot__view v = cot__look(t, cot__index(dense));
        theta[k] = (cot_array){v.dtype, cot_shape_of(dense), cot_size(dense), v.data};
        if (v.ndim && cot__on_host(t->backend)) continue;
        theta[k].data = cot__arena(t, cot__bytes_at(t, cot__index(dense)) + 8, s->q->name);
        if (!theta[k].data) return NULL;
        cot__read_view(t, s->q->name, &v, v.dtype, theta[k].data, theta[k].size);
    }
    return theta;
}

static int solver(void *ctx, void *x) {
    const searching *s = ctx;
    cot_tape        *t = s->t;
    cot_array       *theta = arrays_of(s, s->q->f->n - 1);
    if (!theta) return 0;
    cot__scope scope = cot__scope_open(t, t->active_mask);
    t->mode.inside = s->q->name, t->mode.inside_from = t->count;
    /* the solver may change its description of the array; the numbers in x's memory count */
    cot_array given = *s->x;
    given.data = x;
    int code = s->q->solver(s->q->f->n - 1, theta, &given, s->q->user);
    cot__scope_close(t, &scope);
    cot__error_in_function(t, "solver", s->q->name);
    return code;
}

bool cot__root_find(cot_tape *t, const cot__root *q, const uint32_t *args, cot_array *x) {
    searching   ctx = {t, q, args, x};
    cot__caller caller = cot__tape_caller(t, q->name);
    cot__search s = {&caller, q->least, q->options, x->dtype, x->size, &ctx, residual, bend, step, at,
                     q->solver ? solver : NULL, &t->status, t->errors.message, sizeof t->errors.message, forget};
    size_t            bytes = cot__search_bytes(x->size);
    cot__scratch_seen before = cot__scratch_watch(t);
    void             *work = cot__alloc(&t->al, bytes);
    bool              ok = work ? cot__search_go(&s, x->data, work)
                                : cot__refuse(&caller, COT_MEMORY, "out of memory: %zu bytes for its vectors", bytes);
    cot__free(&t->al, work, bytes);
    cot__scratch_watched(t, before);
    return ok;
}
