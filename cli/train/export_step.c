/* export_step.c: cotangent compile --model DIR --training-step: loss, gradient and step of a model
 * as one function of plain arrays, all of them the caller's.
 *
 * The weights of a model are one array, parameter after parameter in the order of their names'
 * making, and so are its gradient and the two states of AdamW. A table of them stands in the
 * file. */
#include "train/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "models/mnist.h"

/* Inputs and outputs, as the function has them. */
enum { WEIGHTS, M, V, RATE, STEP, DATA, TARGETS, INPUTS };
enum { LOSS, GRADIENT, NEW_WEIGHTS, NEW_M, NEW_V, OUTPUTS };

typedef struct recording {
    saved            *s;
    cot_optim_options adam;
    double            clip; /* of the gradient's norm; 0: not */
    int               n;    /* parameters */
    int              *group;
    /* lists of n: weights, m, v; gradients; the new weights, m, v */
    cot_var          *parts;
    cot_var (*loss)(cot_params *p, cot_var x, cot_var y);
    cot_var           data, targets;
    int64_t           classes;
    bool              tokens; /* the data are tokens, as the targets are */
} recording;

static cot_var mnist_loss(cot_params *p, cot_var x, cot_var labels) {
    return cot_softmax_cross_entropy(mnist_net(p, x), labels);
}

static int loss_of_weights(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    recording *r = user;
    (void)m;
    cot_params_bind(r->s->p, n, xs);
    ys[0] = r->loss(r->s->p, r->data, r->targets);
    return cot_params_bind(r->s->p, 0, NULL) == COT_OK ? 0 : 1;
}

/* One array as the parameters' parts of it, and back. */
static void take_apart(const recording *r, cot_var all, cot_var *parts) {
    int64_t from = 0;
    for (int k = 0; k < r->n; k++) {
        cot_var   w = cot_params_at(r->s->p, k).var;
        cot_shape s = cot_shape_of(w);
        parts[k]    = cot_reshape(cot_slice(all, 0, from, from + cot_size(w), 1), s);
        from += cot_size(w);
    }
}
static cot_var join(const recording *r, cot_var *parts) {
    for (int k = 0; k < r->n; k++) parts[k] = cot_reshape(parts[k], COT_SHAPE(cot_size(parts[k])));
    return cot_concat(r->n, parts, 0);
}

/* As cot_clip_grad_norm scales, in f64. */
static void clip(const recording *r, cot_var *gs) {
    cot_var sum = cot_number(0);
    for (int k = 0; k < r->n; k++) sum = cot_add(sum, cot_sum(cot_square(cot_cast(gs[k], COT_F64)), COT_ALL));
    cot_var factor = cot_minimum(1, cot_div(r->clip, cot_add(cot_sqrt(sum), 1e-6)));
    for (int k = 0; k < r->n; k++) gs[k] = cot_mul(gs[k], cot_cast(factor, COT_F32));
}

/* Positions count from the end where they are negative; a class or token does not. One that is
 * negative becomes one that does not exist, which the function finds and tells. */
static cot_var from_zero(cot_var ids, int64_t count) {
    return cot_where(cot_less(ids, cot_integer(0)), cot_integer(count), ids);
}

/* The rate; the function finds and tells a step before the first, by a position of no element. */
static cot_var rate_of(cot_var rate, cot_var at) {
    cot_var nothing = cot_zeros(rate.tape, COT_F64, COT_SHAPE(1));
    cot_var early = cot_where(cot_less(at, cot_integer(1)), cot_integer(1), cot_integer(0));
    return cot_add(rate, cot_take(nothing, early, 0));
}

static int step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    recording *r = user;
    cot_var   *old = r->parts, *gs = old + 3 * r->n, *new = gs + r->n;
    (void)n, (void)m;
    r->data = r->tokens ? from_zero(xs[DATA], r->classes) : xs[DATA];
    r->targets = from_zero(xs[TARGETS], r->classes);
    /* the key of a run with seed 0 */
    cot_params_set_key(r->s->p, cot_key_at(cot_key_of(0), xs[STEP]));
    for (int k = 0; k < 3; k++) take_apart(r, xs[WEIGHTS + k], old + k * r->n);
    if (cot_value_and_grad(loss_of_weights, r, r->n, old, &ys[LOSS], gs) != COT_OK) return 1;
    if (r->clip > 0) clip(r, gs);
    cot_var rate = rate_of(xs[RATE], xs[STEP]);
    if (cot_optim_record(&r->adam, rate, xs[STEP], r->n, gs, old, r->group, new) != COT_OK) return 1;
    ys[GRADIENT] = join(r, gs);
    for (int k = 0; k < 3; k++) ys[NEW_WEIGHTS + k] = join(r, new + k * r->n);
    return 0;
}

/* What the file says of itself, a line for each parameter and where it begins; free it. */
static char *title_of(const recording *r) {
    size_t  room = strlen(r->s->path) + 300, used;
    int64_t from = 0;
    for (int k = 0; k < r->n; k++) room += strlen(cot_params_at(r->s->p, k).name) + 400;
    char *text = malloc(room);
    if (!text) return NULL;
    used = (size_t)snprintf(text, room, "a step of AdamW for the model of %s. Steps count from 1, classes from 0; "
                            "others return a number that is not 0. The gradient is the clipped one. Weights, gradient "
                            "and states are", r->s->path);
    for (int k = 0; k < r->n; k++) {
        cot_param a = cot_params_at(r->s->p, k);
        cot_shape s = cot_shape_of(a.var);
        used += (size_t)snprintf(text + used, room - used, "\n  [%lld] %s (", (long long)from, a.name);
        for (int d = 0; d < s.ndim; d++)
            used += (size_t)snprintf(text + used, room - used, d ? ",%lld" : "%lld", (long long)s.dim[d]);
        used += (size_t)snprintf(text + used, room - used, ")");
        from += cot_size(a.var);
    }
    return text;
}

static bool write_step(recording *r, cot_type data, cot_type targets, const options *o, FILE *out, failure *f) {
    int64_t all = 0;
    r->n     = cot_params_count(r->s->p);
    r->group = calloc((size_t)r->n + 1, sizeof *r->group);
    r->parts = calloc((size_t)r->n * 7 + 1, sizeof *r->parts);
    char *title = title_of(r);
    bool  fine  = (r->group && r->parts && title) || failure_memory(f);
    for (int k = 0; fine && k < r->n; k++) {
        all += cot_size(cot_params_at(r->s->p, k).var);
        r->group[k] = cot_params_at(r->s->p, k).group;
    }
    const cot_type flat = {COT_F32, COT_SHAPE(all)};
    const exported e = {.function = step, .user = r, .title = title, .inputs = INPUTS, .outputs = OUTPUTS,
                        .types = {flat, flat, flat, {COT_F64, COT_SCALAR}, {COT_I64, COT_SCALAR}, data, targets},
                        .input_names = {"weights", "m", "v", "rate", "step", "x", "targets"},
                        .output_names = {"loss", "gradient", "new_weights", "new_m", "new_v"}};
    fine = fine && export_function(&e, o, out, f);
    free(title);
    free(r->group);
    free(r->parts);
    return fine;
}

bool export_step(saved *s, const options *o, FILE *out, failure *f) {
    recording r = {.s = s};
    int64_t   batch = o->train.batch;
    if (strcmp(s->model, "mnist") == 0) {
        if (!batch) batch = 64;
        cot_shape images = COT_SHAPE(batch, 1, MNIST_SIDE, MNIST_SIDE);
        r.loss = mnist_loss;
        r.classes = 10;
        r.adam = mnist_optim;
        if (!saved_load(s, mnist_net, cot_full(s->t, COT_F32, COT_SHAPE(1, 1, MNIST_SIDE, MNIST_SIDE), 0), f))
            return false;
        cot_params_train(s->p, true);
        return write_step(&r, (cot_type){COT_F32, images}, (cot_type){COT_I64, COT_SHAPE(batch)}, o, out, f);
    }
    if (strcmp(s->model, "gpt") == 0) {
        if (!batch) batch = 8;
        if (!saved_gpt(s, f)) return false;
        const cot_type tokens = {COT_I64, COT_SHAPE(batch, s->net.context)};
        s->net.plain = true;
        r.loss = gpt_loss;
        r.classes = s->net.vocabulary;
        r.tokens = true;
        r.clip = GPT_CLIP;
        r.adam = gpt_optim(s->p);
        cot_params_train(s->p, true);
        return write_step(&r, tokens, tokens, o, out, f);
    }
    return failure_set(f, EXIT_RUN, "file", "%.600s is a model of %.60s; compile --model takes mnist or gpt", s->path,
                       s->model);
}
