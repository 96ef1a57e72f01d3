/* time_world.h: a tape beside the model of time_model.h that follows it: nodes are chosen, their
 * values compared, marks set and returned to. */
#ifndef COT_TIME_WORLD_H
#define COT_TIME_WORLD_H

#include "support/support.h"
#include "support/time_model.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 40, MARKS = 8, HANDLES = 4, WRAPS = 8, PICKED = 4 };

typedef struct step { uint32_t what, r[6]; } step;

/* A gradient that was recorded, or a derivative that was kept, to be used later. */
typedef struct handle {
    int         y, x, count; /* made when the model had so many nodes */
    cot_var     g;
    double      value[WIDE];
    cot_linear *linear; /* of x -> y; NULL: g is the gradient of y by x */
} handle;

typedef struct world {
    cot_tape   *t;
    model       m;
    model_sweep s;
    struct { cot_mark mark; int count, parts, no_grad, handles; } marks[MARKS];
    int         mark_count, handle_count, wraps;
    handle      handles[HANDLES];
    double      memory[WRAPS][WIDE];
    int         wrapped[MODEL_STORAGES]; /* 1 + which memory a storage borrows */
    bool        strict, loud;
    int         flavour; /* 0: f64, 1: f32, 2: both */
    double      eps;
    char        trouble[400];
} world;

#define TROUBLE(w, ...)                                                                            \
    do {                                                                                           \
        if (!(w)->trouble[0]) snprintf((w)->trouble, sizeof(w)->trouble, __VA_ARGS__);             \
    } while (0)
#define TELL(w, ...)                                                                               \
    do {                                                                                           \
        if ((w)->loud) fprintf(stderr, "    " __VA_ARGS__);                                        \
    } while (0)

/* Never 0, and often 1, which rules may know. */
static inline double number_of(uint32_t r) { return r % 11 == 0 ? 1 : ((int)(r % 33) - 16) / 8.0 + 0.0625; }

static inline cot_var at(const world *w, int i) { return w->m.node[i].var; }

/* ---- choosing -------------------------------------------------------------------------------- */

enum {
    ANY         = 0,
    WIDE_ONLY   = 1,
    SCALAR_ONLY = 2,
    ACTIVE_ONLY = 4,
    LEAF_ONLY   = 8,
    STALE_TOO   = 16,
    SOURCE_ONLY = 32,
    F64_ONLY    = 64,
    STALE_ONLY  = 128
};

static inline bool suits(const world *w, int i, int wish) {
    const model_node *x = &w->m.node[i];
    if (x->hidden || x->odd) return false;
    if ((wish & WIDE_ONLY && !x->wide) || (wish & SCALAR_ONLY && x->wide)) return false;
    if ((wish & ACTIVE_ONLY && !x->active) || (wish & LEAF_ONLY && !x->leaf)) return false;
    if ((wish & SOURCE_ONLY && x->op != M_SOURCE) || (wish & F64_ONLY && x->narrow)) return false;
    return wish & STALE_ONLY ? model_stale(&w->m, i) : wish & STALE_TOO || !model_stale(&w->m, i);
}

/* Recent nodes more often than old ones, sources more often than either. -1: none suits. */
static inline int pick(const world *w, uint32_t r, int wish) {
    int list[2 * MODEL_NODES], n = 0;
    for (int i = 0; i < w->m.count; i++) {
        if (!suits(w, i, wish)) continue;
        list[n++] = i;
        if (i + 6 >= w->m.count || w->m.node[i].op == M_SOURCE) list[n++] = i;
    }
    return n ? list[r % (uint32_t)n] : -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Rounding along a path. An operation computes its partial (a function is good to 2 ulp, a quotient
 * x / y² rounds three times), multiplies by it, and adds the product to what came by other paths:
 * no more than 4 eps of the magnitude. A path passes each node once, and in second order once more
 * on its way back: 8 eps for each node that there ever was, since gradients outlive a rewind. */
static inline bool near(const world *w, double have, double want, double size) {
    return isfinite(have) && fabs(have - want) <= 8 * w->m.most * w->eps * (size + fabs(want)) + 1e-30;
}

/* The library's value of node i equals that of the model within rounding. From now on the model has
 * the library's value, to the bit. */
static inline void adopt(world *w, int i, const char *what) {
    model_node *x = &w->m.node[i];
    double      have[WIDE];
    if (cot_tape_status(w->t) != COT_OK || !cot_is_valid(x->var)) {
        TROUBLE(w, "%s failed: %s", what, cot_tape_message(w->t));
        return;
    }
    if (cot_size(x->var) != model_width(x) || (cot_dtype_of(x->var) == COT_F32) != x->narrow)
        TROUBLE(w, "%s: shape or dtype", what);
    if (cot_requires_grad(x->var) != x->active)
        TROUBLE(w, "%s: requires a gradient: %d", what, cot_requires_grad(x->var));
    if (w->trouble[0] || cot_read(x->var, have, model_width(x)) != COT_OK) {
        TROUBLE(w, "%s cannot be read: %s", what, cot_tape_message(w->t));
        return;
    }
    for (int k = 0; k < model_width(x); k++) {
        if (!near(w, have[k], x->value[k], x->size[k]))
            TROUBLE(w, "%s: value %.17g, not %.17g", what, have[k], x->value[k]);
        x->value[k] = have[k], x->size[k] = fabs(have[k]);
        x->odd |= !(fabs(have[k]) < 30);
    }
    TELL(w, "%%%d = %s  %.6g%s\n", i, what, have[0], x->wide ? " …" : "");
}

static inline int fresh(world *w, model_op op, int a, int b, double number, cot_var var, const char *what) {
    int i = model_push(&w->m, op, a, b, number);
    w->m.node[i].var = var;
    model_own(&w->m, i);
    adopt(w, i, what);
    return i;
}

/* Values that are not stale still have their numbers; stale values cannot be read; gradients are
 * the sums of what was added. */
static inline void look_at_everything(world *w) {
    for (int i = 0; i < w->m.count && !w->trouble[0]; i++) {
        const model_node *x = &w->m.node[i];
        double            have[WIDE];
        if (x->hidden || x->odd) continue;
        cot_status status = cot_read(x->var, have, model_width(x));
        if (status != (model_stale(&w->m, i) ? COT_STALE : COT_OK))
            TROUBLE(w, "reading %%%d: %s %s", i, cot_status_name(status), cot_tape_message(w->t));
        cot_tape_clear_error(w->t);
        for (int k = 0; k < model_width(x) && status == COT_OK; k++)
            if (!test_same(have[k], x->value[k])) TROUBLE(w, "%%%d is %.17g, and was %.17g", i, have[k], x->value[k]);
    }
}

static inline void look_at_gradients(world *w) {
    for (int i = 0; i < w->m.count && !w->trouble[0]; i++) {
        const model_node *x = &w->m.node[i];
        double            have[WIDE];
        if (!x->leaf || !x->active) continue;
        if (cot_read_grad(x->var, have, model_width(x)) != COT_OK)
            TROUBLE(w, "the gradient of %%%d: %s", i, cot_tape_message(w->t));
        for (int k = 0; k < model_width(x) && !w->trouble[0]; k++)
            if (!near(w, have[k], x->grad[k], x->grad_size[k]))
                TROUBLE(w, "the gradient of %%%d is %.17g, not %.17g", i, have[k], x->grad[k]);
    }
}

/* ---- marks ----------------------------------------------------------------------------------- */

static inline void mark(world *w) {
    if (w->mark_count == MARKS) return;
    w->marks[w->mark_count].mark = cot_tape_mark(w->t);
    w->marks[w->mark_count].count = w->m.count;
    w->marks[w->mark_count].parts = w->m.parts;
    w->marks[w->mark_count].no_grad = w->m.no_grad;
    w->marks[w->mark_count].handles = w->handle_count;
    TELL(w, "mark %d\n", w->mark_count);
    w->mark_count++;
}

static inline void rewind_to(world *w, int k) {
    TELL(w, "rewind to mark %d\n", k);
    cot_tape_rewind(w->t, w->marks[k].mark);
    w->m.count = w->marks[k].count, w->m.parts = w->marks[k].parts, w->m.no_grad = w->marks[k].no_grad;
    w->handle_count = w->marks[k].handles;
    w->mark_count = k;
    if (cot_tape_status(w->t) != COT_OK) TROUBLE(w, "rewind: %s", cot_tape_message(w->t));
}

/* Clears an error, or rewinds to a mark, which clears it too. */
static inline void recover(world *w, uint32_t r) {
    if (w->mark_count && r % 2) rewind_to(w, (int)(r / 2 % (uint32_t)w->mark_count));
    cot_tape_clear_error(w->t);
}

#endif
