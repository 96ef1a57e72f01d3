/* attention.c: multi-head attention, rotary positions, and what decoding keeps of earlier ones.
 *
 * A cache owns memory for keys and values. A call borrows it on the tape, writes its positions in
 * place and attends to a slice: what earlier calls recorded reads positions before these, which
 * nobody writes again. */
#include "nn/nn.h"

#include "ops/structural.h"

/* Keys and values of one layer: (leading axes and heads, most, d) each. */
typedef struct kept {
    uint64_t  layer; /* hash of its name */
    cot_shape shape;
    cot_dtype dtype;
    int64_t   length; /* positions that are filled */
    size_t    bytes;
    char     *memory; /* keys, then values */
} kept;

struct cot_nn_cache {
    cot_params   *p;
    cot_allocator al;
    kept         *layer;
    int           count, capacity;
    int64_t       most;
};

cot_nn_cache *cot_nn_cache_create(cot_params *p, int64_t most) {
    if (!p || !cot__params_on(p)) return NULL;
    if (most < 1) {
        cot__fail(p->on, COT_VALUE, "[nn_cache_create] room for %lld positions; there must be 1 or more",
                  (long long)most);
        return NULL;
    }
    cot_nn_cache *c = cot__alloc(&p->al, sizeof *c);
    if (!c) return cot__fail(p->on, COT_MEMORY, "[nn_cache_create] out of memory: %zu bytes", sizeof *c), NULL;
    *c = (cot_nn_cache){.p = p, .al = p->al, .most = most};
    return c;
}

/* The memory stays: what is recorded still reads it. */
void cot_nn_cache_clear(cot_nn_cache *c) {
    for (int k = 0; c && k < c->count; k++) c->layer[k].length = 0;
}

/* Frees what is kept of layer k; the last one takes its place. */
static void let_go(cot_nn_cache *c, int k) {
    cot__free(&c->al, c->layer[k].memory, 2 * c->layer[k].bytes);
    c->layer[k] = c->layer[--c->count];
}

void cot_nn_cache_destroy(cot_nn_cache *c) {
    if (!c) return;
    cot_allocator al = c->al;
    while (c->count > 0) let_go(c, c->count - 1);
    cot__free(&al, c->layer, (size_t)c->capacity * sizeof *c->layer);
    cot__free(&al, c, sizeof *c);
}

/* What is kept of this layer, made if it is new, whose keys are (…, T, d); NULL after an error. */
static kept *kept_of(cot_nn_cache *c, cot_var keys) {
    uint64_t  layer                   = cot__layer_hash(c->p);
    cot_tape *t                       = c->p->on;
    kept new                          = {.layer = layer, .shape = cot_shape_of(keys), .dtype = cot_dtype_of(keys)};
    new.shape.dim[new.shape.ndim - 2] = c->most;
    for (int k = 0; k < c->count; k++) {
        if (c->layer[k].layer != layer) continue;
        if (cot__same_shape(&c->layer[k].shape, &new.shape) && c->layer[k].dtype == new.dtype) return &c->layer[k];
        if (c->layer[k].length == 0) {
            let_go(c, k);
            break;
        }
        char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
        cot__fail(
            t, COT_SHAPE,
            "[nn_attention] the cache holds keys of shape %s, this call's would be %s; cot_nn_cache_clear empties it",
            cot__shape_text(c->layer[k].shape.ndim, c->layer[k].shape.dim, a),
            cot__shape_text(new.shape.ndim, new.shape.dim, b));
        return NULL;
    }
    int64_t size = cot__checked_size(t, "nn_attention", new.dtype, new.shape.ndim, new.shape.dim);
    if (size < 0) return NULL;
    new.bytes = (size_t)size *(size_t)cot__dtype_size(new.dtype);
    if (c->count == c->capacity) {
        size_t n    = (size_t)c->capacity;
        kept  *more = cot__resize(&c->al, c->layer, n * sizeof *more, (2 * n + 4) * sizeof *more);
        if (more) c->layer = more, c->capacity = 2 * c->capacity + 4;
    }
    if (c->count < c->capacity && (new.memory = cot__alloc(&c->al, 2 * new.bytes)))
        return c->layer[c->count] = new, &c->layer[c->count++];
    cot__fail(t, COT_MEMORY, "[nn_attention] out of memory: %zu bytes for keys and values", 2 * new.bytes);
    return NULL;
}

/* Adds keys and values to the cache, and makes them all that are there. */
static bool keep(kept *l, int64_t most, cot_var kv[2]) {
    cot_tape *t = cot_tape_of(kv[0]);
    int64_t   n = cot__shape_at(t, cot__index(kv[0])).dim[l->shape.ndim - 2], end = l->length + n;
    if (end > most) {
        cot__fail(t, COT_LIMIT, "[nn_attention] the cache has room for %lld positions, and %lld would be in it",
                  (long long)most, (long long)end);
        return false;
    }
    for (int k = 0; k < 2; k++) {
        cot_var all = cot_wrap(t, l->dtype, l->shape, l->memory + (size_t)k * l->bytes);
        cot_update_slice(&all, -2, l->length, end, 1, kv[k]);
        kv[k] = cot_slice(all, -2, 0, end, 1);
    }
    return t->status == COT_OK;
}

cot_var cot_nn_rotary(cot_var x, double base, int64_t first) {
    uint32_t  i;
    cot_tape *t = cot__enter(NULL, x, "nn_rotary", "", &i);
    if (!t) return cot__invalid(1, &x);
    cot_shape s = cot__shape_at(t, i);
    int64_t   d = s.ndim > 0 ? s.dim[s.ndim - 1] : 0, half = d / 2;
    if (s.ndim < 2 || d % 2 || !(base > 0) || isinf(base) || first < 0)
        return cot__fail(t, COT_VALUE,
                         "[nn_rotary] x has %d axes, the last of extent %lld, the base is %g, the first position %lld; "
                         "there are two axes or more, the last even, a positive base and no negative positions",
                         s.ndim, (long long)d, base, (long long)first);
    cot_dtype wide  = cot__dtype_compute(cot__dtype_at(&t->nodes[i]));
    cot_var   at    = cot_arange(t, wide, (double)first, (double)(first + s.dim[s.ndim - 2]), 1);
    cot_var   rate  = cot_pow(base, cot_mul(-2 / (double)(d ? d : 1), cot_arange(t, wide, 0, (double)half, 1)));
    cot_var   angle = cot_mul(cot_expand_dims(at, 1), rate), c = cot_cos(angle), sine = cot_sin(angle);
    cot_var   a = cot_cast(cot_slice(x, -1, 0, half, 1), wide), b = cot_cast(cot_slice(x, -1, half, d, 1), wide);
    cot_var   turned[2] = {cot_sub(cot_mul(a, c), cot_mul(b, sine)), cot_add(cot_mul(b, c), cot_mul(a, sine))};
    return cot_cast(cot_concat(2, turned, -1), cot__dtype_at(&t->nodes[i]));
}

/* (…, T, heads · d) to (…, heads, T, d). */
static cot_var to_heads(cot_var x, int64_t heads) {
    if (cot__failed(x)) return x;
    cot_shape s       = cot_shape_of(x);
    cot_axes  order   = {s.ndim + 1, false, {0}};
    s.dim[s.ndim]     = heads > 0 ? s.dim[s.ndim - 1] / heads : 0;
    s.dim[s.ndim - 1] = heads;
    for (int k = 0; k < order.n; k++) order.axis[k] = k == order.n - 3 ? k + 1 : k == order.n - 2 ? k - 1 : k;
    s.ndim++;
    return cot_permute(cot_reshape(x, s), order);
}

/* And back. */
static cot_var from_heads(cot_var x) {
    cot_shape s     = cot_shape_of(x);
    cot_axes  order = {s.ndim, false, {0}};
    for (int k = 0; k < s.ndim; k++) order.axis[k] = k == s.ndim - 3 ? k + 1 : k == s.ndim - 2 ? k - 1 : k;
    cot_shape z = s;
    z.ndim--;
    z.dim[z.ndim - 2] = s.dim[s.ndim - 2];
    z.dim[z.ndim - 1] = s.dim[s.ndim - 3] * s.dim[s.ndim - 1];
    return cot_reshape(cot_permute(x, order), z);
}

/* Heads in groups that share keys: (…, heads, T, d) to (…, groups, heads / groups, T, d). */
static cot_var in_groups(cot_var x, int64_t groups) {
    if (cot__failed(x)) return x;
    cot_shape s  = cot_shape_of(x);
    int       at = s.ndim - 3;
    for (int k = s.ndim++; k > at; k--) s.dim[k] = s.dim[k - 1];
    s.dim[at + 1] = groups > 0 ? s.dim[at] / groups : 0;
    s.dim[at]     = groups;
    return cot_reshape(x, s);
}

/* A projection whose weight begins Xavier uniform, and whose bias begins as zeros. */
static cot_var project(cot_params *p, const char *const names[2], bool bias, cot_var x, int64_t units) {
    cot_shape s  = cot_shape_of(x);
    int64_t   in = s.dim[s.ndim - 1];
    cot_var   w  = cot__layer_get(p, &(cot__wish){names[0],
                                                  {2, {in, units}},
                                                  cot__params_dtype(p, x),
                                                  false,
                                                  {COT_INIT_XAVIER_UNIFORM, 0},
                                                  (double)in,
                                                  (double)units,
                                                  0});
    cot_var   y  = cot_matmul(x, w);
    return bias ? cot_add(y, cot__layer_vector(p, names[1], units, x, COT_INIT_CONSTANT)) : y;
}

static cot_var attend(cot_params *p, cot_var x, const cot_nn_attention_options *o) {
    static const char *const in[2] = {"in_proj.weight", "in_proj.bias"}, *const q[2] = {"q_proj.weight", "q_proj.bias"},
                             *const kv[2] = {"kv_proj.weight", "kv_proj.bias"};
    cot_shape                       s     = cot_shape_of(x);
    bool                            other = o->context.tape != NULL;
    int64_t width = s.dim[s.ndim - 1], heads = o->heads, groups = o->kv_heads ? o->kv_heads : heads, first = 0;
    if (heads < 1 || groups < 1 || width % heads || heads % groups)
        return cot__fail(
            p->on, COT_SHAPE,
            "[nn_attention] the width is %lld, with %lld heads and %lld heads of keys; heads divide the width, "
            "and those of keys the heads",
            (long long)width, (long long)heads, (long long)groups);
    if (o->cache && (other || o->cache->p != p || p->on->mode.body))
        return cot__fail(p->on, COT_VALUE,
                         "[nn_attention] a cache was given %s; it serves decoding of x itself, step by step, with the "
                         "parameters it was made for",
                         other              ? "with a context"
                         : o->cache->p != p ? "of other parameters"
                                            : "inside a body");
    int  seen = other ? cot_shape_of(o->context).ndim : 0, more = 1 + (groups != heads);
    bool wider = seen > s.ndim;
    if ((wider ? seen : s.ndim) + more > COT_MAX_NDIM)
        return cot__fail(p->on, COT_LIMIT,
                         "[nn_attention] %s has %d axes; heads take %d more, and at most %d are possible",
                         wider ? "the context" : "x", wider ? seen : s.ndim, more, COT_MAX_NDIM);
    int64_t d = width / heads;
    cot_var part[3];
    if (!other) {
        cot_var all = to_heads(project(p, in, !o->no_bias, x, (heads + 2 * groups) * d), heads + 2 * groups);
        part[0]     = cot_slice(all, -3, 0, heads, 1);
        part[1]     = cot_slice(all, -3, heads, heads + groups, 1);
        part[2]     = cot_slice(all, -3, heads + groups, heads + 2 * groups, 1);
    } else {
        part[0]      = to_heads(project(p, q, !o->no_bias, x, width), heads);
        cot_var both = to_heads(project(p, kv, !o->no_bias, o->context, 2 * groups * d), 2 * groups);
        part[1]      = cot_slice(both, -3, 0, groups, 1);
        part[2]      = cot_slice(both, -3, groups, 2 * groups, 1);
    }
    if (!cot__params_on(p)) return INVALID(p->on);
    kept *l = NULL;
    if (o->cache && !p->making) {
        if (!(l = kept_of(o->cache, part[1]))) return INVALID(p->on);
        first = l->length;
    }
    for (int k = 0; k < 2 && o->rotary != 0; k++) part[k] = cot_nn_rotary(part[k], o->rotary, k && other ? 0 : first);
    if (!cot__params_on(p) || (l && !keep(l, o->cache->most, part + 1))) return INVALID(p->on);
    if (groups != heads)
        for (int k = 0; k < 3; k++) part[k] = in_groups(part[k], groups);
    cot_attention_options how = {.causal = o->causal, .mask = o->mask, .bias = o->bias, .first_query = first};
    cot_var               z   = cot_attention(part[0], part[1], part[2], &how);
    if (!cot__params_on(p)) return INVALID(p->on);
    if (l) l->length += s.dim[s.ndim - 2];
    if (groups != heads) {
        cot_shape joined = cot_shape_of(z);
        int       at     = joined.ndim - 4;
        joined.dim[at] *= joined.dim[at + 1];
        for (int k = at + 1; k + 1 < joined.ndim; k++) joined.dim[k] = joined.dim[k + 1];
        joined.ndim--;
        z = cot_reshape(z, joined);
    }
    z = cot_matmul(from_heads(z), cot__layer_get(p, &(cot__wish){"out_proj.weight",
                                                                 {2, {width, width}},
                                                                 cot__params_dtype(p, x),
                                                                 false,
                                                                 {COT_INIT_UNIFORM, 0},
                                                                 (double)width,
                                                                 (double)width,
                                                                 0}));
    return o->no_bias ? z : cot_add(z, cot__layer_vector(p, "out_proj.bias", width, x, COT_INIT_CONSTANT));
}

cot_var cot_nn_attention(cot_params *p, const char *name, cot_var x, const cot_nn_attention_options *options) {
    if (!cot__layer_open(p, "nn_attention", name, &x)) return cot__layer_none(p, x);
    if (!options) cot__fail(p->on, COT_VALUE, "[nn_attention] the options are NULL; they say how many heads there are");
    bool fine =
        options && cot__layer_axes(p, x, 2) && (!options->context.tape || cot__layer_axes(p, options->context, 2));
    return cot__layer_close(p, fine ? attend(p, x, options) : INVALID(p->on));
}
