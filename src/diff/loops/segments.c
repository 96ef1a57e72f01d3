/* segments.c: cot_checkpoint_sequential: layers that run one after the other, cut into segments of
 * about the same length, each of which is a cot_checkpoint. What lies between segments is kept,
 * what lies inside of one is made again when the sweep comes to it. */
#include "ops/structural.h"
#include "tape/region.h"

#include <string.h>

static const char NAME[] = "checkpoint_sequential";

/* Layers from … to - 1. */
typedef struct segment {
    cot_layer_fn layer;
    void        *user;
    int64_t      from, to;
    cot_var     *x; /* room for what a layer reads */
} segment;

/* The body of a segment; what it carries it gives. */
static int run_segment(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    segment  *s = user;
    cot_tape *t = xs[0].tape;
    (void)m;
    memcpy(ys, xs, (size_t)n * sizeof *ys);
    for (int64_t i = s->from; i < s->to; i++) {
        memcpy(s->x, ys, (size_t)n * sizeof *ys);
        for (int k = 0; k < n; k++) ys[k] = INVALID(t);
        int failed = s->layer(i, n, s->x, ys, s->user);
        if (failed) return failed;
        if (!cot__check_set(t, NAME, "a layer", n, ys)) return 1;
    }
    return 0;
}

/* The least s with s² >= n: with so many segments each has at most as many layers. */
static int64_t root_above(int64_t n) {
    int64_t s = 1;
    while (s < n / s + (n % s != 0)) s++;
    return s;
}

static bool may_run(cot_tape *t, cot_layer_fn layer, int64_t layers, int64_t segments, int n, const cot_var *xs,
                    const cot_var *ys) {
    if (!layer) cot__fail(t, COT_VALUE, "[%s] the function is NULL", NAME);
    else if (layers < 0) cot__fail(t, COT_VALUE, "[%s] %lld layers; there are 0 or more", NAME, (long long)layers);
    else if (segments < 0)
        cot__fail(t, COT_VALUE,
                  "[%s] %lld segments; 0 is the root of the number of layers, 1 and more a number of them", NAME,
                  (long long)segments);
    bool     ok = t->status == COT_OK && cot__check_lists(t, NAME, n, xs, n, ys);
    uint32_t i;
    for (int k = 0; ok && k < n; k++)
        ok = cot__is_number(xs[k]) || cot__enter_listed(t, xs[k], NAME, "xs", k, "", &i);
    return ok;
}

cot_status cot_checkpoint_sequential(cot_layer_fn layer, void *user, int64_t layers, int64_t segments, int n,
                                     const cot_var *xs, cot_var *ys) {
    cot_tape *t = cot__tape_of(n, xs);
    if (!t) {
        cot_status status = cot__status_of(n, xs);
        cot_var    invalid = cot__invalid(n, xs);
        for (int k = 0; ys && k < n; k++) ys[k] = invalid;
        return status;
    }
    bool    ok = may_run(t, layer, layers, segments, n, xs, ys);
    segment s = {layer, user, 0, 0, ok ? cot__arena(t, (size_t)n * sizeof *s.x, NAME) : NULL};
    if (s.x) {
        int64_t count = segments == 0 ? root_above(layers) : segments < layers ? segments : layers;
        memmove(ys, xs, (size_t)n * sizeof *ys);
        /* the first segments have one layer more where the layers do not divide */
        for (int64_t k = 0; k < count && t->status == COT_OK && s.to < layers; k++) {
            s.from = s.to;
            s.to += layers / count + (k < layers % count);
            cot_checkpoint(run_segment, &s, n, ys, n, ys);
        }
    }
    for (int k = 0; ys && t->status != COT_OK && k < n; k++) ys[k] = INVALID(t);
    return t->status;
}
