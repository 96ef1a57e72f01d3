/* step_network.c: operations of networks: losses, normalisation, attention, convolutions, pools,
 * random numbers. */
#include "program.h"

STEP_FUNCTION(loss) {
    value x = pick(f, c, has_axes, no_value), y = pick(f, c, is_alike, x);
    if (x.name < 0 || y.name < 0) return;
    int axis = choose_axis(f, c, x, 0);
    switch (choose(c, 9)) {
    case 0: say(f, "cot_mse(%s, %s)", name_of(x), name_of(y)), put(f, cot_mse(x.var, y.var)); break;
    case 1: say(f, "cot_huber(%s, %s, 0.5)", name_of(x), name_of(y)), put(f, cot_huber(x.var, y.var, 0.5)); break;
    case 2:
        say(f, "cot_softmax_cross_entropy(%s, cot_softmax(%s, -1))", name_of(x), name_of(y));
        put(f, cot_softmax_cross_entropy(x.var, cot_softmax(y.var, -1)));
        break;
    case 3: {
        cot_var labels = cot_argmax(y.var, (cot_axes){1, false, {-1}});
        say(f, "cot_softmax_cross_entropy(%s, cot_argmax(%s, COT_AXES(-1)))", name_of(x), name_of(y));
        put(f, cot_softmax_cross_entropy(x.var, labels));
        break;
    }
    case 4:
        say(f, "cot_cross_entropy(cot_sigmoid(%s), cot_sigmoid(%s))", name_of(x), name_of(y));
        put(f, cot_cross_entropy(cot_sigmoid(x.var), cot_sigmoid(y.var)));
        break;
    case 5:
        say(f, "cot_bce_with_logits(%s, cot_sigmoid(%s))", name_of(x), name_of(y));
        put(f, cot_bce_with_logits(x.var, cot_sigmoid(y.var)));
        break;
    case 6:
        say(f, "cot_nll(cot_log_softmax(%s, -1), cot_argmax(%s, COT_AXES(-1)))", name_of(x), name_of(y));
        put(f, cot_nll(cot_log_softmax(x.var, -1), cot_argmax(y.var, (cot_axes){1, false, {-1}})));
        break;
    case 7:
        say(f, "cot_kl_div(cot_log_softmax(%s, -1), cot_softmax(%s, -1))", name_of(x), name_of(y));
        put(f, cot_kl_div(cot_log_softmax(x.var, -1), cot_softmax(y.var, -1)));
        break;
    default:
        say(f, "cot_cosine_similarity(%s, %s, %d, 1e-3)", name_of(x), name_of(y), axis);
        put(f, cot_cosine_similarity(x.var, y.var, axis, 1e-3));
    }
}

STEP_FUNCTION(normalize) {
    value   x    = pick(f, c, has_axes, no_value);
    cot_var none = {NULL, 0};
    if (x.name < 0 || rank(x) == 0) return;
    int       axis = (int)choose(c, (unsigned)rank(x));
    cot_shape s = cot_shape_of(x.var), w = {s.ndim - axis, {0}};
    for (int i = axis; i < s.ndim; i++) w.dim[i - axis] = s.dim[i];
    cot_var weight = chance(c, 2) ? none : cot_index(cot_reshape(x.var, (cot_shape){1, {-1}}), 0, 0);
    if (cot_size(x.var) == 0) weight = none;
    if (cot_is_valid(weight)) weight = cot_broadcast_to(weight, w);
    const char *with = cot_is_valid(weight) ? "the first element" : "COT_NONE";
    switch (choose(c, 4)) {
    case 0:
        say(f, "cot_layer_norm(%s, %s, COT_NONE, %d, 0.1)", name_of(x), with, axis);
        put(f, cot_layer_norm(x.var, weight, none, axis, 0.1));
        break;
    case 1:
        say(f, "cot_layer_norm(%s, COT_NONE, %s, %d, 0.1)", name_of(x), with, axis);
        put(f, cot_layer_norm(x.var, none, weight, axis, 0.1));
        break;
    case 2:
        say(f, "cot_rms_norm(%s, %s, %d, 0.1)", name_of(x), with, axis);
        put(f, cot_rms_norm(x.var, weight, axis, 0.1));
        break;
    default: {
        cot_var  mean = none, variance = none;
        cot_axes axes = {1, false, {axis}};
        say(f, "cot_batch_norm(%s, COT_AXES(%d), COT_NONE, COT_NONE, 0.1, &mean, &variance)", name_of(x), axis);
        put(f, cot_batch_norm(x.var, axes, none, none, 0.1, &mean, &variance));
        if (cot_is_valid(variance)) say(f, "variance"), put(f, variance);
    }
    }
}

/* q, k and v from the rows of matrices: (…, T, d). */
STEP_FUNCTION(attention) {
    value q = pick(f, c, has_matrix, no_value), v = pick(f, c, is_alike, q);
    if (q.name < 0 || v.name < 0 || cot_size(q.var) > 200) return;
    cot_attention_options o = {.causal = chance(c, 3), .scale = chance(c, 2) ? 0 : 0.5};
    if (chance(c, 4))
        o.bias = cot_full(f->run->tape, cot_dtype_of(q.var), (cot_shape){2, {extent(q, -2), extent(q, -2)}}, 0.25);
    if (chance(c, 4)) o.mask = cot_greater(cot_index(q.var, -1, 0), cot_number(0));
    if (cot_is_valid(o.mask) && (rank(q) != 2 || extent(q, -1) == 0)) o.mask = (cot_var){NULL, 0};
    if (extent(q, -1) == 0) return;
    say(f, "cot_attention(%s, %s, %s, causal %d scale %g bias %d mask %d)", name_of(q), name_of(v), name_of(v),
        o.causal, o.scale, cot_is_valid(o.bias), cot_is_valid(o.mask));
    put(f, cot_attention(q.var, v.var, v.var, &o));
}

/* An array (images, channels, places) from any value, and a kernel (out, in, taps) from another. */
STEP_FUNCTION(conv) {
    value x = pick(f, c, is_small, no_value), w = pick(f, c, is_small, no_value);
    if (x.name < 0 || w.name < 0 || cot_size(x.var) == 0 || cot_size(w.var) == 0) return;
    int64_t          in = cot_size(x.var) % 2 == 0 && cot_size(w.var) % 2 == 0 ? 1 + choose(c, 2) : 1;
    cot_conv_options o  = {.stride   = {choose(c, 3), choose(c, 3)},
                           .dilation = {choose(c, 3), 1},
                           .padding  = {choose(c, 3), choose(c, 2)}};
    bool plane = chance(c, 3), back = chance(c, 3);
    if (chance(c, 4)) o.padding_before[0] = choose(c, 4);
    if (back && o.stride[0] > 1 && chance(c, 2)) o.output_padding[0] = 1;
    cot_shape sx = {plane ? 4 : 3, {1, in, -1, 1}}, sw = {plane ? 4 : 3, {1, in, -1, 1}};
    if (back) sw.dim[0] = in, sw.dim[1] = 1;
    cot_var a = cot_cast(cot_reshape(x.var, sx), cot_dtype_of(x.var)),
            b = cot_cast(cot_reshape(w.var, sw), cot_dtype_of(x.var));
    say(f, "cot_conv%s%dd(%s as %s, %s as %s, stride %lld,%lld dilation %lld padding %lld,%lld +%lld output %lld)",
        back ? "_transpose" : "", plane ? 2 : 1, name_of(x), shape_text(sx), name_of(w), shape_text(sw),
        (long long)o.stride[0], (long long)o.stride[1], (long long)o.dilation[0], (long long)o.padding[0],
        (long long)o.padding[1], (long long)o.padding_before[0], (long long)o.output_padding[0]);
    if (plane)
        put(f, (back ? cot_conv_transpose2d : cot_conv2d)(a, b, o));
    else
        put(f, (back ? cot_conv_transpose1d : cot_conv1d)(a, b, o));
}

STEP_FUNCTION(pool) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    bool             plane = rank(x) > 1 && chance(c, 2), max = chance(c, 2);
    cot_pool_options o = {.window = {1 + choose(c, 4), 1 + choose(c, 3)}, .stride = {choose(c, 4), choose(c, 3)}};
    o.padding[0] = choose(c, 3), o.padding[1] = choose(c, 2);
    for (int i = 0; i < 2; i++)
        if (o.padding[i] > o.window[i] / 2 && !wild(f, c)) o.padding[i] = o.window[i] / 2;
    o.ceil_mode = chance(c, 3), o.exclude_padding = chance(c, 3);
    say(f, "cot_%s_pool%dd(%s, window %lld,%lld stride %lld,%lld padding %lld,%lld ceil %d exclude %d)",
        max ? "max" : "avg", plane ? 2 : 1, name_of(x), (long long)o.window[0], (long long)o.window[1],
        (long long)o.stride[0], (long long)o.stride[1], (long long)o.padding[0], (long long)o.padding[1], o.ceil_mode,
        o.exclude_padding);
    if (plane)
        put(f, (max ? cot_max_pool2d : cot_avg_pool2d)(x.var, o));
    else
        put(f, (max ? cot_max_pool1d : cot_avg_pool1d)(x.var, o));
}

STEP_FUNCTION(embedding) {
    value x = pick(f, c, has_matrix, no_value);
    if (x.name < 0 || rank(x) != 2 || extent(x, 0) == 0) return;
    int64_t at[3] = {0, extent(x, 0) - 1, 0}, padding = chance(c, 2) ? COT_NO_PADDING : 0;
    say(f, "cot_embedding(%s, 0 %lld 0, %s)", name_of(x), (long long)at[1], padding == 0 ? "0" : "COT_NO_PADDING");
    put(f, cot_embedding(x.var, cot_data(f->run->tape, COT_I64, (cot_shape){1, {3}}, at), padding));
}

STEP_FUNCTION(random) {
    cot_key   key = cot_key_fold(cot_key_of(choose(c, 256)), choose(c, 4));
    cot_shape s   = choose_shape(c, 2);
    cot_dtype d   = choose_float(c, f->run->flags & MIXED);
    value     x = pick(f, c, has_axes, no_value), step = pick(f, c, is_integer, no_value);
    if (step.name >= 0 && rank(step) == 0 && chance(c, 2))
        key = cot_key_at(key, step.var);
    else
        step = no_value;
    switch (choose(c, 6)) {
    case 0:
        say(f, "cot_normal(t, key at %s, %s, %s)", name_of(step), cot_dtype_name(d), shape_text(s)),
            put(f, cot_normal(f->run->tape, key, d, s));
        break;
    case 1:
        say(f, "cot_uniform(t, key at %s, %s, %s, -1, 2)", name_of(step), cot_dtype_name(d), shape_text(s));
        put(f, cot_uniform(f->run->tape, key, d, s, -1, 2));
        break;
    case 2:
        say(f, "cot_gumbel(t, key at %s, %s, %s)", name_of(step), cot_dtype_name(d), shape_text(s)),
            put(f, cot_gumbel(f->run->tape, key, d, s));
        break;
    case 3:
        say(f, "cot_bernoulli(t, key at %s, 0.5, %s)", name_of(step), shape_text(s));
        put(f, cot_bernoulli(f->run->tape, key, cot_number(0.5), s));
        break;
    case 4:
        if (x.name < 0) return;
        say(f, "cot_categorical(key at %s, %s, -1)", name_of(step), name_of(x)),
            put(f, cot_categorical(key, x.var, -1));
        break;
    default:
        if (x.name < 0) return;
        say(f, "cot_shuffle(key at %s, %s, 0)", name_of(step), name_of(x)), put(f, cot_shuffle(key, x.var, 0));
    }
}

STEP_FUNCTION(dropout) {
    value  x    = float_of(f, c);
    double rate = (double[]){0, 0.25, 0.5, 1}[choose(c, 4)];
    if (x.name < 0) return;
    say(f, "cot_dropout(%s, %g, key)", name_of(x), rate);
    put(f, cot_dropout(x.var, rate, cot_key_of(choose(c, 99))));
}
