/* record.c: the steps of optimisers as functions of vars, for programs: the formulas of
 * rules/words/updates.h in recorded operations, with the bits of the kernel. */
#include "optim/optim.h"
#include "ops/structural.h"

#include "rules/words/updates.h"
#include "tape/tape.h"

#define ADD(a, b) cot_add(a, b)
#define SUB(a, b) cot_sub(a, b)
#define MUL(a, b) cot_mul(a, b)
#define DIV(a, b) cot_div(a, b)
#define SQRT(a) cot_sqrt(a)
#define POSITIVE(a) cot_relu(a)
#define POW(a, b) cot_pow(a, b)

cot_var cot__descended(cot_var w, double rate, cot_var g) { return COT__DESCENDED(w, rate, g); }

/* The factors of a step for one group, in f64. */
typedef struct factors {
    cot_var rate, keep, spread;
    double  decay;
} factors;

static factors factors_of(const cot_optim_options *o, cot_var rate, cot_var step, cot_optim_group group) {
    factors f = {MUL(rate, group.scale), cot_number(1), cot_number(1), group.decay};
    if (o->kind == COT_ADAMW) f.keep = COT__KEPT(f.rate, group.decay), f.decay = 0;
    if (o->kind != COT_ADAMW && o->kind != COT_ADAM) return f;
    f.rate = COT__CORRECTED(f.rate, o->beta1, step);
    if (o->eps_hat) f.rate = MUL(f.rate, COT__SHORT(o->beta2, step));
    else f.spread = COT__SPREAD(o->beta2, step);
    return f;
}

/* A factor in the type of the weights. A number is rounded where it is used. */
static cot_var narrowed(cot_var factor, cot_dtype d) { return cot__is_number(factor) ? factor : cot_cast(factor, d); }

/* One weight: state[k] is read and replaced where it is kept. */
static cot_var updated(const cot_optim_options *o, const factors *f, cot_var w, cot_var g, cot_var *state) {
    cot_dtype d = cot_dtype_of(w);
    unsigned  keeps = cot__optim_keeps(o);
    cot_var   rate = narrowed(f->rate, d), *m = &state[COT__MEAN], *v = &state[COT__SQUARE], *u = &state[COT__VELOCITY];
    double    b2 = o->kind == COT_RMSPROP ? o->alpha : o->beta2, b1 = o->kind == COT_RMSPROP ? b2 : o->beta1;
    if (f->decay != 0) g = COT__DECAYED(g, f->decay, w);
    if (keeps & 1u << COT__MEAN) *m = COT__AVERAGED(b1, *m, 1 - b1, g);
    if (keeps & 1u << COT__SQUARE) *v = COT__AVERAGED(b2, *v, 1 - b2, MUL(g, g));
    if (o->kind == COT_ADAM || o->kind == COT_ADAMW)
        return COT__ADAPTED(narrowed(f->keep, d), w, rate, *m, *v, narrowed(f->spread, d), o->eps);
    if (o->kind == COT_RMSPROP) {
        cot_var spread = keeps & 1u << COT__MEAN ? COT__CENTRED(*v, *m) : *v;
        g = COT__WHITENED(g, spread, o->eps);
    }
    if (!(keeps & 1u << COT__VELOCITY)) return COT__DESCENDED(w, rate, g);
    *u = COT__PUSHED(o->momentum, *u, g);
    return COT__DESCENDED(w, rate, o->nesterov ? COT__PUSHED(o->momentum, *u, g) : *u);
}

static bool like_weight(cot_tape *t, cot_var x, cot_var w, const char *what, int k) {
    uint32_t  i;
    cot_shape have, want = cot_shape_of(w);
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    if (!cot__operand(t, x, "optim_record", what, &i)) return false;
    have = cot__shape_at(t, i);
    if (cot__dtype_at(&t->nodes[i]) == cot_dtype_of(w) && cot__same_shape(&have, &want)) return true;
    cot__fail(t, COT_SHAPE, "[optim_record] %s of weight %d is %s %s, the weight %s %s; they must be equal", what, k,
              cot__dtype_name(cot__dtype_at(&t->nodes[i])), cot__shape_text_at(t, i, a),
              cot__dtype_name(cot_dtype_of(w)), cot__shape_text_at(t, cot__index(w), b));
    return false;
}

static bool check_weight(cot_tape *t, cot_var w, int k) {
    uint32_t i;
    if (!cot__operand(t, w, "optim_record", "", &i)) return false;
    cot_dtype d = cot__dtype_at(&t->nodes[i]);
    if (d == COT_F64 || d == COT_F32) return true;
    cot__fail(t, COT_DTYPE, "[optim_record] xs[%d] has dtype %s; weights are f32 or f64: cast them for the computation",
              k, cot__dtype_name(d));
    return false;
}

/* A number, or a 0-d var as f64. */
static bool enter_number(cot_tape *t, cot_var *x, const char *what) {
    uint32_t i;
    char     a[COT__SHAPE_TEXT];
    if (cot__is_number(*x)) return true;
    if (!cot__operand(t, *x, "optim_record", what, &i)) return false;
    if (cot__shape_at(t, i).ndim == 0) return *x = cot_cast(*x, COT_F64), t->status == COT_OK;
    cot__fail(t, COT_SHAPE, "[optim_record] the %s has shape %s; it is one number", what, cot__shape_text_at(t, i, a));
    return false;
}

int cot_optim_kept(const cot_optim_options *options) {
    return options ? __builtin_popcount(cot__optim_keeps(options)) : 0;
}

cot_status cot_optim_record(const cot_optim_options *options, cot_var rate, cot_var step, int n, const cot_var *gs,
                            const cot_var *xs, const int *group, cot_var *ys) {
    cot_tape *t = cot__tape_beside("optim_record", "xs", n, xs, n, gs);
    if (n == 0) return COT_OK;
    if (!t) return cot__status_of(n, xs);
    if (!options) cot__fail(t, COT_VALUE, "[optim_record] the options are NULL; they say which step it is");
    if (!options || !cot__list_given(t, "optim_record", "gs", n, gs) ||
        !cot__list_given(t, "optim_record", "ys", n, ys))
        return t->status;
    cot_optim_options o = cot__optim_defaults(*options);
    unsigned          keeps = cot__optim_keeps(&o);
    if (!cot__optim_check(t, "optim_record", &o) || !enter_number(t, &rate, "rate") || !enter_number(t, &step, "step"))
        return t->status;
    factors f = {.decay = 0};
    for (int k = 0; k < n; k++) {
        cot_var         state[COT__STATES] = {0};
        cot_optim_group of;
        if (!check_weight(t, xs[k], k) || !like_weight(t, gs[k], xs[k], "gradient", k) ||
            !cot__optim_group(t, "optim_record", &o, group ? group[k] : 0, &of))
            return t->status;
        for (int j = 0, at = n + k; j < COT__STATES; j++)
            if (keeps & 1u << j) {
                if (!like_weight(t, xs[at], xs[k], cot__state_names[j], k)) return t->status;
                state[j] = xs[at], at += n;
            }
        if (k == 0 || (group && group[k] != group[k - 1])) f = factors_of(&o, rate, step, of);
        ys[k] = updated(&o, &f, xs[k], gs[k], state);
        if (o.average != 0) {
            cot_var *a = &state[COT__AVERAGE];
            *a = COT__AVERAGED(o.average, *a, 1 - o.average, ys[k]);
        }
        for (int j = 0, at = n + k; j < COT__STATES; j++)
            if (keeps & 1u << j) ys[at] = state[j], at += n;
    }
    return t->status;
}
