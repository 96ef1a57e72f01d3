/* graph.c: layers on the nodes of a graph, which is a matrix of compressed rows: row i has an entry
 * for each node that node i reads. Convolutions weigh by its values, attention makes weights of its
 * own at the same places. Sums over the graph are f32, if not wider, also where the layer's result
 * is of 16 bits. */
#include "nn/nn.h"

/* ---- convolution ----------------------------------------------------------------------------- */

/* The weight (in, units) of the layer that is open, as Glorot would begin it; invalid after an
 * error. */
static cot_var weight_of(cot_params *p, cot_var like, int64_t in, int64_t units) {
    if (units < 1)
        return cot__fail(p->on, COT_SHAPE, "[%s] the layer has %lld units; it needs 1 or more", p->op,
                         (long long)units);
    return cot__layer_get(p, &(cot__wish){.name    = "weight",
                                          .shape   = {2, {in, units}},
                                          .dtype   = cot__params_dtype(p, like),
                                          .how     = {COT_INIT_XAVIER_UNIFORM, 0},
                                          .fan_in  = (double)in,
                                          .fan_out = (double)units});
}

/* y (…, units) + bias (units), where one is wanted. */
static cot_var biased(cot_params *p, cot_var y, cot_var like, int64_t units, bool bias) {
    return bias ? cot_add(y, cot__layer_vector(p, "bias", units, like, COT_INIT_CONSTANT)) : y;
}

cot_var cot_nn_gcn(cot_params *p, const char *name, cot_csr graph, cot_var x, int64_t units, bool bias) {
    if (!cot__layer_open(p, "nn_gcn", name, &x)) return cot__layer_none(p, x);
    if (!cot__layer_axes(p, x, 2)) return cot__layer_close(p, cot__layer_none(p, x));
    cot_shape s = cot_shape_of(x);
    cot_var   w = weight_of(p, x, s.dim[s.ndim - 1], units);
    cot_var   y = cot__layer_narrowed(p, cot_csr_matmul(graph, cot_matmul(x, w)));
    return cot__layer_close(p, biased(p, y, x, units, bias));
}

cot_var cot_nn_gcn_csr(cot_params *p, const char *name, cot_csr graph, cot_csr x, int64_t units, bool bias) {
    if (!cot__layer_open(p, "nn_gcn_csr", name, &x.values)) return cot__layer_none(p, x.values);
    cot_var w = weight_of(p, x.values, x.columns, units);
    cot_var y = cot__layer_narrowed(p, cot_csr_matmul(graph, cot_csr_matmul(x, w)));
    return cot__layer_close(p, biased(p, y, x.values, units, bias));
}

/* ---- attention ------------------------------------------------------------------------------- */

/* What each node says of itself, as a reader or as one that is read: h (heads, nodes, units) · a
 * vector of each head, (heads, nodes). */
static cot_var scores(cot_params *p, const char *name, cot_var h, cot_var like, int64_t heads, int64_t units) {
    cot_var a = cot__layer_get(p, &(cot__wish){.name    = name,
                                               .shape   = {2, {heads, units}},
                                               .dtype   = cot__params_dtype(p, like),
                                               .how     = {COT_INIT_XAVIER_UNIFORM, 0},
                                               .fan_in  = (double)heads,
                                               .fan_out = (double)units});
    return cot_sum(cot_mul(h, cot_expand_dims(a, 1)), COT_AXES(-1));
}

static cot_var gat(cot_params *p, cot_csr graph, cot_var x, int64_t units, const cot_nn_gat_options *o) {
    cot_shape s     = cot_shape_of(x);
    int64_t   heads = o->heads ? o->heads : 1;
    if (s.ndim != 2 || units < 1 || heads < 1 || units > INT64_MAX / heads)
        return cot__fail(p->on, COT_SHAPE,
                         "[nn_gat] x has %d axes, the layer %lld heads of %lld units; x is (nodes, in), and heads and "
                         "units are 1 or more",
                         s.ndim, (long long)heads, (long long)units);
    if (!isfinite(o->slope))
        return cot__fail(p->on, COT_VALUE, "[nn_gat] the slope of its leaky relu is %g; it must be finite", o->slope);
    cot_var h   = cot_matmul(x, weight_of(p, x, s.dim[1], heads * units));
    h           = cot_permute(cot_reshape(h, COT_SHAPE(s.dim[0], heads, units)), COT_AXES(1, 0, 2));
    cot_var dst = scores(p, "att_dst", h, x, heads, units), src = scores(p, "att_src", h, x, heads, units);
    /* dst[i] + src[j] at each entry (i, j), as a product of the rows (dst[i], 1) and (1, src[j]) */
    cot_var one  = cot_full_like(dst, 1), left[] = {dst, one}, right[] = {one, src};
    cot_csr e    = cot_csr_sddmm(graph, cot_stack(2, left, -1), cot_stack(2, right, -1));
    e.values     = cot_leaky_relu(e.values, o->slope != 0 ? o->slope : 0.2);
    cot_csr read = cot_csr_softmax(e);
    if (p->training && o->dropout != 0) read.values = cot_dropout(read.values, o->dropout, cot__layer_key(p));
    /* (nodes, heads, units) */
    cot_var y = cot__layer_narrowed(p, cot_permute(cot_csr_matmul(read, h), COT_AXES(1, 0, 2)));
    if (o->mean) return biased(p, cot_mean(y, COT_AXES(1)), x, units, !o->no_bias);
    return biased(p, cot_reshape(y, COT_SHAPE(s.dim[0], heads * units)), x, heads * units, !o->no_bias);
}

cot_var cot_nn_gat(cot_params *p, const char *name, cot_csr graph, cot_var x, int64_t units,
                   const cot_nn_gat_options *options) {
    static const cot_nn_gat_options plain = {0};
    if (!cot__layer_open(p, "nn_gat", name, &x)) return cot__layer_none(p, x);
    return cot__layer_close(p, gat(p, graph, x, units, options ? options : &plain));
}
