/* Style `compiled`: what the style tensor records, as a program (cot_compile) that is run on
 * plain arrays. Compiling is preparation, like the leaves. */
#include "cot_common.h"

#include <cotangent_program.h>
#include <stdlib.h>
#include <string.h>

/* A program and its arrays. */
struct compiled {
    cot_program *program;
    cot_run     *run;
    int          inputs, outputs;
    void       **in, **out;
    size_t       bytes; /* of the inputs */
};

static void close_program(struct compiled *c) {
    cot_run_destroy(c->run);
    cot_program_destroy(c->program);
    for (int i = 0; c->in && i < c->inputs; i++)
        free(c->in[i]);
    free(c->in);
    free(c->out);
    *c = (struct compiled){0};
}

/* The program of f for inputs of these types, whose arrays the caller fills. */
static bool open_program(struct compiled *c, cot_fn f, void *user, int n, const cot_type *types, int m,
                         struct ab_error *error) {
    c->inputs = n;
    c->outputs = m;
    c->in = calloc((size_t)n + 1, sizeof *c->in);
    c->out = calloc((size_t)m + 1, sizeof *c->out);
    c->program = cot_compile(f, user, n, types, m, NULL);
    /* COTANGENT_NATIVE=1 asks for it */
    if (cot_program_native(c->program, true) == COT_NATIVE_DROPPED)
        fprintf(stderr, "adbench: no native code: %s\n", cot_program_native_message(c->program));
    c->run = c->program ? cot_run_create(c->program) : NULL;
    if (!c->in || !c->out || !c->run)
        return ab_fail(error, "not enough memory");
    for (int i = 0; i < n; i++) {
        size_t bytes = sizeof(double); /* f64 and i64 alone */
        for (int k = 0; k < types[i].shape.ndim; k++)
            bytes *= (size_t)types[i].shape.dim[k];
        c->bytes += bytes;
        if (!(c->in[i] = malloc(bytes + 1)))
            return ab_fail(error, "not enough memory");
    }
    return cot_run_status(c->run) == COT_OK || ab_fail(error, "%s", cot_run_message(c->run));
}

static bool run_program(struct compiled *c, struct ab_error *error) {
    return cot_program_run(c->run, (const void *const *)c->in, c->out) == COT_OK ||
           ab_fail(error, "%s", cot_run_message(c->run));
}

/* ---- GMM, LSTM and HAND: leaves and constants of the style tensor are the inputs ------------- */

struct whole {
    struct ab_cot  *s;
    struct compiled c;
    int            *var; /* input i is var[i] of s */
    cot_var       (*record)(const struct ab_cot *s);
    cot_var        *vars; /* those of s while the program is recorded */
    size_t          vars_count;
};

static void close_whole(void *state) {
    struct whole *w = state;
    close_program(&w->c);
    if (w->s)
        ab_cot_close(w->s);
    free(w->var);
    free(w->vars);
    free(w);
}

static size_t whole_bytes(const void *state) {
    const struct whole *w = state;
    return cot_run_bytes(w->c.run) + w->c.bytes;
}

/* What is recorded when the first inputs are these. */
static cot_var record_with(const struct whole *w, int n, const cot_var *xs) {
    struct ab_cot s = *w->s;
    s.vars = w->vars;
    s.tape = cot_tape_of(xs[0]);
    for (int i = 0; i < n; i++)
        w->vars[w->var[i]] = xs[i];
    return w->record(&s);
}

static int value(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)m;
    ys[0] = record_with(user, n, xs);
    return 0;
}

/* By the first `wanted` inputs; the others have been put in their places. */
static int gradient(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const struct whole *w = user;
    for (int i = 0; i < n; i++)
        w->vars[w->var[i]] = xs[i];
    return cot_value_and_grad(value, user, m, xs, NULL, ys) != COT_OK;
}

/* Columns of the Jacobian one after the other: d u and d v, compressed, if there are such, then
 * theta. */
static int columns(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const struct whole *w = user;
    const int           first = (int)w->s->wanted - 1, lanes = 26;
    cot_var             errors, jacobian, moved;
    (void)m;
    for (int i = 0; i < n; i++)
        w->vars[w->var[i]] = xs[i];
    for (int k = 0; k < first; k++) { /* no error depends on two of them */
        cot_var tangents[3] = {COT_NONE, COT_NONE, COT_NONE};
        tangents[1 + k] = cot_ones(cot_tape_of(xs[0]), COT_F64, cot_shape_of(xs[1 + k]));
        if (cot_fn_jvp(value, user, 3, xs, tangents, 1, &errors, &moved) != COT_OK)
            return 1;
        ys[k] = moved;
    }
    if (cot_fn_jacobian(value, user, 1, xs, 1, NULL, COT_FORWARD, &jacobian) != COT_OK)
        return 1;
    jacobian = cot_reshape(jacobian, COT_SHAPE(w->s->in->u.hand.n, 3, lanes));
    ys[first] = cot_permute(jacobian, COT_AXES(2, 0, 1));
    return 0;
}

/* Inputs from the vars that exist, with their values. */
static bool list_inputs(struct whole *w, cot_type *types, int *n) {
    for (size_t k = 0; k < w->s->given; k++)
        if (cot_is_valid(w->s->vars[k])) {
            types[*n] = (cot_type){cot_dtype_of(w->s->vars[k]), cot_shape_of(w->s->vars[k])};
            w->var[(*n)++] = (int)k;
        }
    return true;
}

static struct whole *open_whole(struct ab_cot *s, cot_var (*record)(const struct ab_cot *), cot_fn f, int m,
                                struct ab_error *error) {
    struct whole *w = s ? calloc(1, sizeof *w) : NULL;
    cot_type     *types = s ? calloc(s->given + 1, sizeof *types) : NULL;
    int           n = 0;
    if (!w || !types) {
        free(w);
        free(types);
        if (s) {
            ab_fail(error, "not enough memory");
            ab_cot_close(s);
        }
        return NULL;
    }
    *w = (struct whole){.s = s, .record = record, .vars_count = s->vars_count};
    w->var = calloc(s->given + 1, sizeof *w->var);
    w->vars = calloc(s->vars_count + 1, sizeof *w->vars);
    bool ok = (w->var && w->vars) || ab_fail(error, "not enough memory");
    ok = ok && list_inputs(w, types, &n) && open_program(&w->c, f, w, n, types, m, error);
    for (int i = 0; ok && i < n; i++)
        ok = cot_read_as(s->vars[w->var[i]], types[i].dtype, w->c.in[i], cot_size(s->vars[w->var[i]])) == COT_OK ||
             ab_fail(error, "%s", cot_tape_message(s->tape));
    free(types);
    if (ok)
        return w;
    close_whole(w);
    return NULL;
}

static void *open_gmm(const struct ab_instance *in, struct ab_error *error) {
    return open_whole(ab_open_gmm(in, error), ab_record_gmm, gradient, 3, error);
}
static void *open_lstm(const struct ab_instance *in, struct ab_error *error) {
    struct ab_cot *s = ab_open_lstm(in, error);
    return open_whole(s, ab_record_lstm, gradient, s ? (int)s->wanted : 0, error);
}
static void *open_hand(const struct ab_instance *in, struct ab_error *error) {
    struct ab_cot *s = ab_open_hand_lanes(in, 1, error);
    return open_whole(s, ab_record_hand, columns, s ? (int)s->wanted : 0, error);
}

/* Outputs follow each other in the derivative. */
static bool run_whole(void *state, double *derivative, struct ab_error *error) {
    struct whole *w = state;
    for (int k = 0; k < w->c.outputs; k++) {
        const cot_shape shape = cot_program_output_type(w->c.program, k).shape;
        w->c.out[k] = derivative;
        size_t size = 1;
        for (int i = 0; i < shape.ndim; i++)
            size *= (size_t)shape.dim[i];
        derivative += size;
    }
    return run_program(&w->c, error);
}

/* ---- BA: a program for many observations, and one for the rest ------------------------------- */

#include "cot_ba_tensor.inc"
#include "cot_ba_gather.inc"

enum { BA_CHUNK = 480 };

struct ba {
    const struct ab_ba *a;
    struct compiled     c, rest;
    bool                some; /* cameras that are not rotated */
};

struct observations {
    cot_var feat[2], still;
    int     error;
};

/* The sum of one error over all observations, with the weights' errors beside the first. */
static int total(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const struct observations *o = user;
    cot_var                    err[BA_ERRORS];
    (void)n, (void)m;
    record_observations(xs, o->feat, o->still, err);
    ys[0] = cot_sum(o->error == 0 ? cot_add(err[0], err[2]) : err[1], COT_ALL);
    return 0;
}

/* One input, the rows of ba_gather; outputs (n, 2, 15) and (n). */
static int blocks(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    struct observations o = {.still = COT_NONE};
    cot_var             x[BA_LEAVES], grads[BA_LEAVES], rows[2 * AB_BA_ROW];
    const int64_t       count = cot_shape_of(xs[0]).dim[1];
    (void)n, (void)m;
    for (int j = 0; j < BA_LEAVES; j++)
        x[j] = cot_index(xs[0], 0, j);
    for (int j = 0; j < 2; j++)
        o.feat[j] = cot_index(xs[0], 0, BA_FEATS + j);
    if (*(const bool *)user)
        o.still = cot_index(xs[0], 0, BA_STILL);
    for (o.error = 0; o.error < 2; o.error++) {
        if (cot_value_and_grad(total, &o, BA_LEAVES, x, NULL, grads) != COT_OK)
            return 1;
        memcpy(rows + o.error * AB_BA_ROW, grads, AB_BA_ROW * sizeof *grads);
        if (o.error == 0)
            ys[1] = grads[AB_BA_ROW];
    }
    ys[0] = cot_reshape(cot_stack(2 * AB_BA_ROW, rows, 1), COT_SHAPE(count, 2, AB_BA_ROW));
    return 0;
}

static void close_ba(void *state) {
    struct ba *b = state;
    close_program(&b->c);
    close_program(&b->rest);
    free(b);
}

static bool open_blocks(struct compiled *c, int n, bool *some, struct ab_error *error) {
    const cot_type type = {COT_F64, COT_SHAPE(BA_GATHERED, n)};
    return n == 0 || open_program(c, blocks, some, 1, &type, 2, error);
}

static void *open_ba(const struct ab_instance *in, struct ab_error *error) {
    struct ba *b = calloc(1, sizeof *b);
    if (!b) {
        ab_fail(error, "not enough memory");
        return NULL;
    }
    b->a = &in->u.ba;
    for (int i = 0; i < b->a->p; i++) {
        const double *r = b->a->cams[b->a->obs[i][0]];
        b->some |= r[0] == 0 && r[1] == 0 && r[2] == 0;
    }
    if (open_blocks(&b->c, b->a->p < BA_CHUNK ? 0 : BA_CHUNK, &b->some, error) &&
        open_blocks(&b->rest, b->a->p % BA_CHUNK, &b->some, error))
        return b;
    close_ba(b);
    return NULL;
}

static bool run_ba(void *state, double *values, struct ab_error *error) {
    struct ba *b = state;
    double    *weight_rows = values + 2 * AB_BA_ROW * (size_t)b->a->p;
    for (int i = 0; i < b->a->p; i += BA_CHUNK) {
        const int        n = b->a->p - i < BA_CHUNK ? b->a->p - i : BA_CHUNK;
        struct compiled *c = n == BA_CHUNK ? &b->c : &b->rest;
        ba_gather(b->a, i, n, c->in[0]);
        c->out[0] = values + 2 * AB_BA_ROW * (size_t)i;
        c->out[1] = weight_rows + i;
        if (!run_program(c, error))
            return false;
    }
    return true;
}

static size_t ba_bytes(const void *state) {
    const struct ba *b = state;
    return (b->c.run ? cot_run_bytes(b->c.run) : 0) + (b->rest.run ? cot_run_bytes(b->rest.run) : 0) + b->c.bytes +
           b->rest.bytes;
}

const struct ab_method ab_methods_compiled[] = {
    {AB_GMM, "compiled", open_gmm, run_whole, whole_bytes, close_whole},
    {AB_BA, "compiled", open_ba, run_ba, ba_bytes, close_ba},
    {AB_BAFULL, "compiled", open_ba, run_ba, ba_bytes, close_ba},
    {AB_LSTM, "compiled", open_lstm, run_whole, whole_bytes, close_whole},
    {AB_HAND, "compiled", open_hand, run_whole, whole_bytes, close_whole},
    {AB_HAND_COMPLICATED, "compiled", open_hand, run_whole, whole_bytes, close_whole},
    {.style = NULL},
};
