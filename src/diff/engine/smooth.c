/* smooth.c: tapes that refuse to differentiate at a point without a derivative.
 *
 * Every sweep asks here before it begins. Inside a body nothing has a value while it is recorded,
 * so what is differentiated there is watched by operations of their own (ops/watch.c), which look
 * whenever the body runs. */
#include "diff/engine/find_kinks.h"
#include "tape/region.h"
#include "tape/show.h"

#include <string.h>

/* Node i is differentiated. If it sits on a kink, refuses; or, while cot_report looks, tells it. */
static bool meet(cot_tape *t, const char *op, const char *where, uint32_t i) {
    char          text[320];
    cot__findings f = {.x = cot__text_buffer(text, sizeof text), .t = t};
    if (t->kinks.look) {
        snprintf(t->kinks.look->where, sizeof t->kinks.look->where, "%s", where);
        cot__find_kinks(t->kinks.look, i);
        return true;
    }
    snprintf(f.where, sizeof f.where, "%s", where);
    cot__find_kinks(&f, i);
    if (!f.found) return true;
    text[strcspn(text, "\n")] = 0;
    cot__fail(t, COT_GRAD, "[%s] " COT__KINK_REFUSED "%s", op, text);
    return false;
}

/* Has node i no value because it is in the body that is being recorded? */
static bool is_example(const cot_tape *t, uint32_t i) { return t->mode.body && i >= t->mode.body_from; }

bool cot__play_watch(cot_tape *t, const char *op, uint32_t watch, const cot_var *xs) {
    char     where[80];
    uint32_t i = cot__index(xs[cot__watched_operand(&t->nodes[watch])]);
    if (is_example(t, i)) return !cot__can_kink(t->nodes[i].op) || cot__watch(t, op, i);
    snprintf(where, sizeof where, "In a body of [%s]: ", op);
    return meet(t, op, where, i);
}

/* A look at all between xs and ys. */
typedef struct look { cot_tape *t; const char *op; const uint8_t *needed; } look;

/* Node i reads something that moves: it may sit on a kink. Does it move itself? Not where it only
 * tests what moves, or takes positions from it. */
static cot__onward look_at(cot__flow *w, uint32_t i) {
    const look *l = w->ctx;
    cot_tape   *t = l->t;
    if (!l->needed[i - w->from]) return COT__FLOW_PAST;
    bool moves = cot__flow_meets(w, i, 1, COT__EDGES_MOVING), ok = true;
    if (cot__can_kink(t->nodes[i].op))
        ok = is_example(t, i) ? cot__watch(t, l->op, i) : meet(t, l->op, "", i);
    return !ok ? COT__FLOW_STOP : moves ? COT__FLOW_ON : COT__FLOW_PAST;
}

bool cot__smooth_between(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs) {
    uint32_t from = cot__lowest(n, xs, UINT32_MAX), top = 0;
    if (!t->options.smooth) return true;
    for (int k = 0; k < m; k++) top = ys[k] > top ? ys[k] : top;
    if (n == 0 || m == 0 || from > top) return true;
    uint8_t  *needed = cot__needed(t, from, top, m, ys, COT__EDGES_VALUES);
    cot__flow w = {.t = t};
    bool      ok = needed && cot__flow_open(&w, t, from, top + 1);
    if (!ok) cot__fail(t, COT_MEMORY, "[%s] out of memory: nothing left to look for points without a derivative", op);
    else {
        w.visit = look_at, w.ctx = &(look){t, op, needed};
        cot__flow_start(&w, n, xs, 1);
        ok = cot__flow_up(&w, 1, COT__EDGES_ALL);
        cot__flow_close(&w);
    }
    if (needed) cot__list_free(t, needed, (size_t)top - from + 1);
    return ok;
}

bool cot__smooth_step(cot_tape *t, const char *op, uint32_t from, uint32_t top, int64_t step) {
    char where[80];
    bool ok = true;
    if (!t->options.smooth && !t->kinks.look) return true;
    snprintf(where, sizeof where, "In step %lld of [%s]: ", (long long)step, op);
    for (uint32_t i = from; ok && i <= top; i++)
        if (cot__has_active_operand(t, i)) ok = meet(t, op, where, i);
    return ok;
}
