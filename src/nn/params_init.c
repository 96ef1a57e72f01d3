/* params_init.c: running a net once to learn its parameters, and the numbers they begin with.
 *
 * While the net runs, a name that is new becomes an entry, and the layer computes with its initial
 * numbers as constants. Then what was recorded is forgotten, and the leaves are made in its place:
 * so they lie before any mark that the caller makes, and nothing else stays. */
#include "nn/nn.h"

#include "ops/structural.h"
#include "tape/examples.h"
#include "tape/region.h"

/* Uniform in ± a, normal of deviation a, in f32 for narrower floats. */
static cot_var uniform(cot_tape *t, cot_key key, const cot__wish *w, double a) {
    return cot_uniform(t, key, w->dtype == COT_F64 ? COT_F64 : COT_F32, w->shape, -a, a);
}
static cot_var normal(cot_tape *t, cot_key key, const cot__wish *w, double a) {
    return cot_mul(a, cot_normal(t, key, w->dtype == COT_F64 ? COT_F64 : COT_F32, w->shape));
}
/* P(|z| < 2) of a normal z: uniform numbers up to it are mapped by the inverse distribution. */
static cot_var truncated(cot_tape *t, cot_key key, const cot__wish *w, double a) {
    return cot_mul(1.4142135623730951 * a, cot_erfinv(uniform(t, key, w, 0.9544997361036416)));
}

/* Where values are examples, so is a parameter: a net of any size is recorded in no time. */
static cot_var example(cot_tape *t, const cot__wish *w) {
    cot__result r;
    if (!cot__constant_open(t, &r, "full", w->dtype, &w->shape)) return INVALID(t);
    cot__result_is_example(t, &r);
    cot_var x = cot__constant_push(t, &r);
    return cot__failed(x) ? x : cot__parameter(t, cot__index(x));
}

cot_var cot__initial(cot_tape *t, const cot_params *p, const cot__entry *e) {
    const cot__wish *w   = &e->wish;
    if (t->mode.compiling) return example(t, w);
    cot_key          key = cot_key_fold(p->init_key, e->hash);
    double           in = w->fan_in > 0 ? w->fan_in : 1, both = w->fan_in + w->fan_out, v = w->how.value;
    double           gain = v != 0 ? v : 1, he = v != 0 ? v : 1.4142135623730951;
    if (both <= 0) both = 1;
    cot_var y;
    switch (w->how.kind) {
    case COT_INIT_ONES: return cot_ones(t, w->dtype, w->shape);
    case COT_INIT_UNIFORM: y = uniform(t, key, w, v != 0 ? v : 1 / sqrt(in)); break;
    case COT_INIT_NORMAL: y = normal(t, key, w, gain); break;
    case COT_INIT_TRUNCATED_NORMAL: y = truncated(t, key, w, gain); break;
    case COT_INIT_XAVIER_UNIFORM: y = uniform(t, key, w, gain * sqrt(6 / both)); break;
    case COT_INIT_XAVIER_NORMAL: y = normal(t, key, w, gain * sqrt(2 / both)); break;
    case COT_INIT_HE_UNIFORM: y = uniform(t, key, w, he * sqrt(3 / in)); break;
    case COT_INIT_HE_NORMAL: y = normal(t, key, w, he / sqrt(in)); break;
    case COT_INIT_DEFAULT:
    case COT_INIT_CONSTANT:
    default: return cot_full(t, w->dtype, w->shape, v);
    }
    if (w->zero_row) {
        cot_var rows = cot_arange(t, COT_I64, 0, (double)w->shape.dim[0], 1);
        y            = cot_where(cot_equal(cot_expand_dims(rows, 1), cot_integer(w->zero_row - 1)), 0, y);
    }
    return cot_cast(y, w->dtype);
}

/* Makes the leaf of an entry, with its initial numbers. */
static bool make_leaf(cot_params *p, cot__entry *e) {
    const cot__wish *w    = &e->wish;
    cot_tape        *t    = p->tape;
    cot_var          leaf = w->statistic    ? cot_data(t, w->dtype, w->shape, NULL)
                            : w->shape.ndim ? cot_tensor(t, w->dtype, w->shape, NULL)
                                            : cot_scalar_of(t, w->dtype, 0);
    cot_name(leaf, w->name);
    cot_mark start = cot_tape_mark(t);
    cot_var  first = cot__initial(t, p, e);
    if (t->status == COT_OK) (cot_assign)(leaf, first);
    if (t->status == COT_OK) cot_tape_rewind(t, start);
    e->leaf = leaf;
    return t->status == COT_OK;
}

bool cot__params_may_learn(cot_params *p, const char *op, cot_net net, cot_var x) {
    uint32_t  i;
    cot_tape *t = p->tape;
    if (!cot__operand(t, x, op, "", &i) || !cot__outside_bodies(t, op)) return false;
    if (net && !p->making && !p->bound) return true;
    cot__fail(t, COT_VALUE, "[%s] %s", op,
              !net        ? "the net is NULL; it says which parameters there are"
              : p->making ? "called by a net that is run for its parameters; a net calls layers"
                          : "other vars are bound; cot_params_bind with n = 0 ends that");
    return false;
}

bool cot__params_learn(cot_params *p, const char *op, cot_net net, cot_var x, cot_var *y) {
    cot_tape *t     = p->tape;
    int       depth = p->depth;
    p->making       = true;
    *y              = net(p, x);
    p->making       = false;
    int left        = p->depth - depth;
    p->depth        = depth;
    if (t->status == COT_OK && left != 0)
        cot__fail(t, COT_VALUE, "[%s] the net left %d names pushed; each push has its pop", op, left);
    if (t->status == COT_OK && !cot_is_valid(*y))
        cot__fail(t, COT_VAR, "[%s] the net returned no var; it returns its result", op);
    return t->status == COT_OK;
}

void cot__params_forget(cot_params *p, cot_mark start, uint32_t count) {
    if (p->tape->status == COT_OK)
        cot_tape_rewind(p->tape, start);
    else
        cot__rewind(p->tape, start), cot__next_stamp(p->tape);
    cot__params_drop(p, count);
}

cot_status cot_params_init(cot_params *p, cot_net net, cot_var x, cot_key key) {
    if (!p) return cot__status_of(1, &x);
    cot_tape *t = cot__usable(p->tape);
    if (!t || !cot__params_may_learn(p, "params_init", net, x)) return p->tape->status;
    cot_mark start  = cot_tape_mark(t);
    uint32_t before = p->count;
    cot_var  y;
    p->init_key = key;
    bool fine   = cot__params_learn(p, "params_init", net, x, &y);
    if (fine) cot_tape_rewind(t, start);
    for (uint32_t k = before; k < p->count && fine; k++) fine = make_leaf(p, &p->entry[k]);
    if (fine)
        cot__params_list(p);
    else
        cot__params_forget(p, start, before);
    return t->status;
}
