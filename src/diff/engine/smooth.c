/* smooth.c: tapes that refuse to differentiate at a point without a derivative.
 *
 * Every sweep asks here before it begins. Inside a body nothing has a value while it is recorded,
 * so what is differentiated there is noted on the tape (t->watched); the body's program keeps those
 * operations, whether or not a result needs them, and the player asks here each time it has played
 * them. */
#include "diff/engine/find_kinks.h"
#include "tape/region.h"
#include "tape/show.h"

#include <string.h>

/* Adds node i to those the body under way will look at. */
static bool watch_later(cot_tape *t, const char *op, uint32_t i) {
    void *list = t->watched;
    if (!cot__grow(t, &list, &t->watched_capacity, t->watched_count, sizeof *t->watched, op)) return false;
    t->watched = list;
    t->watched[t->watched_count++] = i;
    return true;
}

/* Node i is differentiated: refuse where it sits on a kink, or tell who looks. */
static bool meet(cot_tape *t, const char *op, const char *where, uint32_t i) {
    char          text[320];
    cot__findings f = {.x = cot__text_buffer(text, sizeof text), .t = t};
    if (t->look) {
        snprintf(t->look->where, sizeof t->look->where, "%s", where);
        cot__find_kinks(t->look, i);
        return true;
    }
    snprintf(f.where, sizeof f.where, "%s", where);
    cot__find_kinks(&f, i);
    if (!f.found) return true;
    text[strcspn(text, "\n")] = 0;
    cot__fail(t, COT_GRAD, "[%s] a derivative at a point without one was refused, as this tape was asked to: %s", op,
              text);
    return false;
}

bool cot__played_watched(cot_tape *t, const char *op, uint32_t i) {
    char where[80];
    if (t->body && i >= t->body_from) return watch_later(t, op, i);
    snprintf(where, sizeof where, "In a body of [%s]: ", op);
    return meet(t, op, where, i);
}

/* Do the nodes that node i reads move, where it has a derivative and where it has none (tests,
 * positions)? */
static bool reads_moving(const cot_tape *t, uint32_t i, uint32_t from, const uint8_t *moves, bool *carries) {
    const cot__node *n = &t->nodes[i];
    uint32_t         inactive = cot__op_of(n->op)->inactive;
    bool             reads = false;
    *carries = false;
    for (int k = 0, count = cot__nargs(n); k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a == COT__NONE || a < from || !moves[a - from]) continue;
        reads = true;
        if (!(k < 32 && inactive >> k & 1)) *carries = true;
    }
    return reads;
}

bool cot__smooth_between(cot_tape *t, const char *op, int m, const uint32_t *ys, int n, const uint32_t *xs) {
    uint32_t from = UINT32_MAX, top = 0;
    if (!t->smooth) return true;
    for (int k = 0; k < n; k++) from = xs[k] < from ? xs[k] : from;
    for (int k = 0; k < m; k++) top = ys[k] > top ? ys[k] : top;
    if (n == 0 || m == 0 || from > top) return true;
    size_t   bytes = (size_t)top - from + 1;
    uint8_t *needed = cot__needed(t, from, top, m, ys, true), *moves = needed ? cot__alloc(&t->al, bytes) : NULL;
    bool     ok = moves != NULL;
    if (!ok) cot__fail(t, COT_MEMORY, "[%s] out of memory: nothing left to look for points without a derivative", op);
    if (ok) memset(moves, 0, bytes);
    for (int k = 0; ok && k < n; k++)
        if (xs[k] <= top) moves[xs[k] - from] = 1;
    for (uint32_t i = from; ok && i <= top; i++) {
        bool carries;
        if (!needed[i - from] || !reads_moving(t, i, from, moves, &carries)) continue;
        if (carries && (t->nodes[i].flags & COT__ACTIVE)) moves[i - from] = 1;
        if (!cot__can_kink(t->nodes[i].op)) continue;
        ok = t->body && i >= t->body_from ? watch_later(t, op, i) : meet(t, op, "", i);
    }
    if (moves) cot__free(&t->al, moves, bytes);
    if (needed) cot__free(&t->al, needed, bytes);
    return ok;
}

bool cot__smooth_step(cot_tape *t, const char *op, uint32_t from, uint32_t top, int64_t step) {
    char where[80];
    bool ok = true;
    if (!t->smooth && !t->look) return true;
    snprintf(where, sizeof where, "In step %lld of [%s]: ", (long long)step, op);
    for (uint32_t i = from; ok && i <= top; i++)
        if (cot__has_active_operand(t, i)) ok = meet(t, op, where, i);
    return ok;
}
