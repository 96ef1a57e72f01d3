/* time_steps.h: steps of a program that record and write, on the tape and in the model: sources,
 * assignments, operations, writes in place. */
#ifndef COT_TIME_STEPS_H
#define COT_TIME_STEPS_H

#include "tape/time_world.h"

/* ---- sources --------------------------------------------------------------------------------- */

static inline void make_source(world *w, const step *s) {
    bool   wide = s->r[0] & 1, leaf = s->r[0] & 2, wrap = (s->r[0] & 28) == 0 && w->wraps < WRAPS;
    bool   narrow = w->flavour == 1 || (w->flavour == 2 && s->r[0] & 32);
    double v[WIDE] = {number_of(s->r[1]), number_of(s->r[2]), number_of(s->r[3])};
    float  f[WIDE] = {(float)v[0], (float)v[1], (float)v[2]};
    void  *data = narrow ? (void *)f : v;
    int    i = model_push(&w->m, M_SOURCE, -1, -1, 0);
    cot_dtype   dtype = narrow ? COT_F32 : COT_F64;
    model_node *x = &w->m.node[i];
    if (wrap) wide = true, leaf = false;
    x->wide = wide, x->narrow = narrow, x->leaf = leaf, x->active = leaf && w->m.no_grad == 0;
    memcpy(x->value, v, sizeof v);
    for (int k = 0; k < WIDE; k++) x->size[k] = fabs(v[k]);
    model_own(&w->m, i);
    if (x->storage >= 0) w->wrapped[x->storage] = 0;
    if (wrap) {
        memcpy(w->memory[w->wraps], data, sizeof v / (narrow ? 2 : 1));
        x->var = cot_wrap(w->t, dtype, COT_SHAPE(WIDE), w->memory[w->wraps++]);
        w->wrapped[x->storage] = w->wraps;
    } else if (wide)
        x->var = leaf ? cot_tensor(w->t, dtype, COT_SHAPE(WIDE), data) : cot_data(w->t, dtype, COT_SHAPE(WIDE), data);
    else
        x->var = leaf ? cot_scalar_of(w->t, dtype, v[0]) : cot_data(w->t, dtype, COT_SCALAR, data);
    adopt(w, i, wrap ? "wrap" : leaf ? "leaf" : "constant");
}

/* The write has happened: node i, a source, has the numbers that the library says. */
static inline void assigned(world *w, int i, const char *what) {
    model_node *x = &w->m.node[i];
    double      have[WIDE];
    x->assigned = ++w->m.clock;
    if (x->storage >= 0) x->version = ++w->m.version[x->storage];
    if (cot_read(x->var, have, model_width(x)) != COT_OK) TROUBLE(w, "%s to %%%d: %s", what, i, cot_tape_message(w->t));
    for (int k = 0; k < model_width(x) && !w->trouble[0]; k++) {
        if (!near(w, have[k], x->value[k], x->size[k]))
            TROUBLE(w, "%s to %%%d: %.17g, not %.17g", what, i, have[k], x->value[k]);
        x->value[k] = have[k], x->size[k] = fabs(have[k]);
    }
    TELL(w, "%s to %%%d, which is %.6g%s now\n", what, i, have[0], x->wide ? " …" : "");
}

static inline void assign(world *w, const step *s) {
    int stale = pick(w, s->r[0], SOURCE_ONLY | STALE_ONLY),
        i     = stale >= 0 && s->r[1] % 2 ? stale : pick(w, s->r[0], SOURCE_ONLY | STALE_TOO);
    int from = s->r[1] / 2 % 3 == 0 ? pick(w, s->r[2], ANY) : -1;
    if (i < 0) return;
    model_node       *x = &w->m.node[i];
    const model_node *y = from < 0 ? NULL : &w->m.node[from];
    double            v[WIDE] = {number_of(s->r[3]), number_of(s->r[4]), number_of(s->r[5])};
    float             f[WIDE] = {(float)v[0], (float)v[1], (float)v[2]};
    if (y && (y->wide != x->wide || from == i || (x->storage >= 0 && y->storage == x->storage))) return;
    bool data = !y && s->r[1] / 2 % 3 == 1;
    for (int k = 0; k < WIDE; k++) x->value[k] = y ? y->value[k] : data ? v[k] : v[0], x->size[k] = fabs(x->value[k]);
    if (y) cot_assign(x->var, y->var);
    else if (data) cot_assign_data(x->var, x->narrow ? (void *)f : v);
    else cot_assign(x->var, v[0]);
    assigned(w, i, y ? "assign of a value" : data ? "assign_data" : "assign");
}

static inline void optimise(world *w, const step *s) {
    cot_var xs[PICKED];
    int     in[PICKED], n = 0;
    bool    adam = s->r[0] & 1, have = false;
    double  rate = 0.25, zeros[2][PICKED][WIDE] = {{{0}}};
    void   *m[PICKED], *v[PICKED];
    for (int k = 0; k < 1 + (int)(s->r[1] % 3); k++) {
        int i = pick(w, s->r[2 + k], LEAF_ONLY | ACTIVE_ONLY);
        for (int j = 0; j < n; j++) i = in[j] == i ? -1 : i;
        /* zeroed ones have none */
        if (i < 0 || !(w->t->nodes[(uint32_t)at(w, i).id].flags & COT__HAS_GRAD)) continue;
        m[n] = zeros[0][n], v[n] = zeros[1][n], xs[n] = at(w, i), in[n++] = i;
        have = true;
    }
    if (!have) return;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < model_width(&w->m.node[in[k]]); j++) {
            model_node *x = &w->m.node[in[k]];
            double      move = adam ? (x->grad[j] > 0) - (x->grad[j] < 0) : x->grad[j];
            x->value[j] -= rate * move;
            x->size[j] +=
                /* the first step of Adam is a sign: wherever it leads is right */
                adam ? 1 / w->eps : x->grad_size[j];
        }
    if (adam) cot_adamw_step(n, xs, m, v, (cot_adamw){.step = 1, .rate = rate});
    else cot_sgd_step(n, xs, rate);
    for (int k = 0; k < n; k++) assigned(w, in[k], adam ? "adamw_step" : "sgd_step");
}

static inline void touch(world *w, const step *s) {
    int i = pick(w, s->r[0], WIDE_ONLY);
    if (i < 0 || !w->wrapped[w->m.node[i].storage]) return;
    const model_node *old = &w->m.node[i];
    int               n = w->wrapped[old->storage] - 1, z;
    cot_var           var = old->var;
    double            v[WIDE] = {number_of(s->r[1]), number_of(s->r[2]), number_of(s->r[3])};
    float             f[WIDE] = {(float)v[0], (float)v[1], (float)v[2]};
    memcpy(w->memory[n], old->narrow ? (void *)f : v, old->narrow ? sizeof f : sizeof v);
    cot_touch(&var);
    double have[WIDE] = {0};
    if (cot_read(var, have, WIDE) != COT_OK) TROUBLE(w, "touch of %%%d: %s", i, cot_tape_message(w->t));
    z = model_push(&w->m, M_SOURCE, -1, -1, 0);
    model_node *x = &w->m.node[z];
    x->wide = true, x->narrow = old->narrow, x->storage = old->storage, x->var = var;
    x->version = ++w->m.version[x->storage];
    memcpy(x->value, have, sizeof have);
    adopt(w, z, "touch");
}

/* ---- operations ------------------------------------------------------------------------------ */

static inline void unary(world *w, const step *s) {
    int a = pick(w, s->r[0], ANY);
    if (a < 0) return;
    const model_node *x = &w->m.node[a];
    double            number = number_of(s->r[2]);
    bool              large = false;
    for (int k = 0; k < model_width(x); k++) large |= fabs(x->value[k]) > 2.5;
    switch (s->r[1] % 6) {
    case 0: fresh(w, M_NEG, a, -1, 0, cot_neg(at(w, a)), "neg"); break;
    case 1: fresh(w, M_SQUARE, a, -1, 0, cot_square(at(w, a)), "square"); break;
    case 2: fresh(w, M_SIN, a, -1, 0, cot_sin(at(w, a)), "sin"); break;
    case 3:
        if (!large) fresh(w, M_EXP, a, -1, 0, cot_exp(at(w, a)), "exp");
        break;
    case 4: fresh(w, M_SCALE, a, -1, number, cot_mul(number, at(w, a)), "mul by a number"); break;
    case 5: fresh(w, M_SAME, a, -1, 0, cot_copy(at(w, a)), "copy"); break;
    }
    TELL(w, "  of %%%d\n", a);
}

static inline void binary(world *w, const step *s) {
    int a = pick(w, s->r[0], ANY), b = pick(w, s->r[1], ANY);
    if (a < 0) return;
    cot_var x = at(w, a), y = at(w, b);
    bool    small = false;
    for (int k = 0; k < model_width(&w->m.node[b]); k++) small |= fabs(w->m.node[b].value[k]) < 0.25;
    switch (s->r[2] % 6) {
    case 0: fresh(w, M_ADD, a, b, 0, cot_add(x, y), "add"); break;
    case 1: fresh(w, M_SUB, a, b, 0, cot_sub(x, y), "sub"); break;
    case 2:
        if (!small) fresh(w, M_DIV, a, b, 0, cot_div(x, y), "div");
        break;
    default: fresh(w, M_MUL, a, b, 0, cot_mul(x, y), "mul"); break;
    }
    TELL(w, "  of %%%d and %%%d\n", a, b);
}

/* A view lies in the memory of the value that it shows; a single element is copied. */
static inline void as_view(world *w, int z, int of, bool constant, const char *what) {
    model_node *n = &w->m.node[z];
    if (n->wide) n->storage = w->m.node[of].storage, n->version = w->m.node[of].version;
    if (constant) n->active = false;
    adopt(w, z, what);
    TELL(w, "  of %%%d\n", of);
}

static inline void shape(world *w, const step *s) {
    int a = pick(w, s->r[0], s->r[1] % 4 < 3 ? WIDE_ONLY : ANY), which = (int)(s->r[1] % 4), k = (int)(s->r[2] % WIDE);
    model_op op = which == 0 ? M_SUM : which == 1 ? M_FLIP : which == 2 ? M_INDEX : M_SAME;
    if (a < 0) return;
    int z = model_push(&w->m, op, a, -1, k);
    w->m.node[z].var = which == 0   ? cot_sum(at(w, a), COT_ALL)
                       : which == 1 ? cot_flip(at(w, a), COT_ALL)
                       : which == 2 ? cot_index(at(w, a), 0, k)
                                    : cot_detach(at(w, a));
    as_view(w, z, a, which == 3, which == 0 ? "sum" : which == 1 ? "flip" : which == 2 ? "index" : "detach");
}

/* Operations that have nothing to do give a value of their own for a source, and return a computed
 * operand itself. */
static inline void idle(world *w, const step *s) {
    int a = pick(w, s->r[0], ANY), which = (int)(s->r[1] % 6);
    if (a < 0) return;
    cot_var     x = at(w, a), y;
    bool        view = which >= 3;
    const char *what;
    switch (which) {
    case 0: y = cot_cast(x, cot_dtype_of(x)), what = "cast to the same dtype"; break;
    case 1: y = cot_sum(x, (cot_axes){0}), what = "sum over no axes"; break;
    case 2: y = cot_dropout(x, 0, cot_key_of(s->r[2])), what = "dropout of nothing"; break;
    case 3: y = cot_reshape(x, cot_shape_of(x)), what = "reshape to the same shape"; break;
    case 4: y = cot_flip(x, (cot_axes){0}), what = "flip of no axis"; break;
    default: y = cot_einsum("...->...", 1, &x), what = "einsum of one"; break;
    }
    if (w->m.node[a].op != M_SOURCE) {
        if (y.id != x.id) TROUBLE(w, "%s: a computed value, %%%d, was not given back", what, a);
        return;
    }
    if (view) {
        int z = model_push(&w->m, M_SAME, a, -1, 0);
        w->m.node[z].var = y;
        as_view(w, z, a, false, what);
        return;
    }
    fresh(w, M_SAME, a, -1, 0, y, what);
    TELL(w, "  of %%%d\n", a);
}

/* ---- writes in place ------------------------------------------------------------------------- */

/* Has a living rule saved the present value of the storage? sure: an operation on arrays of one
 * dtype, which reads it directly. */
static inline bool has_saver(const world *w, int storage, bool sure) {
    const model *m = &w->m;
    for (int z = 0; z < m->count; z++) {
        const model_node *n = &m->node[z];
        const model_part *p = n->part < 0 ? NULL : &m->part[n->part];
        for (int k = 0; p && !sure && (n->active || p->always) && k < p->n; k++)
            if (m->node[p->in[k]].storage == storage && !model_overwritten(m, p->in[k], p->clock)) return true;
        for (int k = 0; k < n->n && !p; k++) {
            if (!model_moves(m, n, k)) continue;
            for (int j = 0; j < n->n; j++) {
                const model_node *x = &m->node[n->in[j]];
                if (!model_reads(n->op, k, j) || n->copied[j] || x->storage != storage ||
                    model_overwritten(m, n->in[j], n->clock))
                    continue;
                if (!sure || (x->narrow == n->narrow && x->wide == n->wide)) return true;
            }
            if (model_reads(n->op, k, 2) && n->storage == storage && !model_stale(m, z)) return true;
        }
    }
    return false;
}

static inline cot_status write_into(int which, cot_var *x, cot_var y, int lo, int hi) {
    if (which == 0) return cot_add_into(x, y);
    if (which == 1) return cot_sub_into(x, y);
    if (which == 2) return cot_mul_into(x, y);
    if (which == 3) return cot_copy_into(x, y);
    return cot_update_slice(x, 0, lo, hi, 1, y);
}

static inline void into(world *w, const step *s) {
    static const model_op ops[] = {M_ADD, M_SUB, M_MUL, M_SAME, M_UPDATE};
    static const char    *names[] = {"add_into", "sub_into", "mul_into", "copy_into", "update_slice"};
    int                   which = (int)(s->r[2] % 5), lo = (int)(s->r[3] % 2), hi = 2 + (int)(s->r[3] / 2 % 2);
    int                   a = pick(w, s->r[0], which == 4 || s->r[4] % 4 ? WIDE_ONLY : ANY),
        b                   = pick(w, s->r[1], which == 4 ? SCALAR_ONLY : ANY);
    if (a < 0 || b < 0 || (w->m.node[b].wide && !w->m.node[a].wide)) return;
    int     storage = w->m.node[a].storage;
    bool    wide = w->m.node[a].wide, narrow = w->m.node[a].narrow, may = storage >= 0 && has_saver(w, storage, false);
    bool    must = storage >= 0 && has_saver(w, storage, true);
    cot_var var = at(w, a);
    cot_status status = write_into(which, &var, at(w, b), lo, hi);
    if (w->strict && status == COT_STALE) {
        if (!may) TROUBLE(w, "refused, though nothing was saved: %s", cot_tape_message(w->t));
        cot_tape_clear_error(w->t);
        TELL(w, "%s of %%%d into %%%d is refused\n", names[which], b, a);
        return;
    }
    if (w->strict && must) TROUBLE(w, "%s of %%%d into %%%d, which was saved, was not refused", names[which], b, a);
    int         z = which == 3 ? model_push(&w->m, M_SAME, b, -1, 0) : model_push(&w->m, ops[which], a, b, 0);
    model_node *n = &w->m.node[z];
    n->wide = wide, n->narrow = narrow, n->lo = lo, n->hi = hi, n->var = var;
    model_value(n);
    n->copied[0] = wide, n->copied[1] = wide && w->m.node[b].storage == storage;
    if (wide) n->storage = storage, n->version = ++w->m.version[storage];
    adopt(w, z, names[which]);
    TELL(w, "  of %%%d into %%%d\n", b, a);
}

#endif
