/* Style `compiled`: what the style tensor records, as a program (cot_compile) that is run on
 * plain arrays. Compiling is preparation, like the leaves. */
#include "cot_program.h"

#include <stdlib.h>
#include <string.h>

/* ---- GMM and LSTM: leaves and constants of the style tensor are the inputs ------------- */

struct whole {
    struct ab_cot    *s;
    struct ab_program c;
    int              *var; /* input i is var[i] of s */
    cot_var         (*record)(const struct ab_cot *s);
    cot_var          *vars; /* those of s while the program is recorded */
    size_t            vars_count;
};

static void close_whole(void *state) {
    struct whole *w = state;
    ab_close_program(&w->c);
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
    ok = ok && list_inputs(w, types, &n) && ab_open_program(&w->c, f, w, n, types, m, error);
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

/* Outputs follow each other in the derivative. */
static bool run_whole(void *state, double *derivative, struct ab_error *error) {
    struct whole *w = state;
    return ab_run_in_row(&w->c, derivative, error);
}

/* ---- BA: a program for many observations, and one for the rest ------------------------------- */

#include "cot_ba_tensor.inc"
#include "cot_ba_gather.inc"

enum { BA_CHUNK = 480 };

struct ba {
    const struct ab_ba *a;
    struct ab_program     c, rest;
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
    ab_close_program(&b->c);
    ab_close_program(&b->rest);
    free(b);
}

static bool open_blocks(struct ab_program *c, int n, bool *some, struct ab_error *error) {
    const cot_type type = {COT_F64, COT_SHAPE(BA_GATHERED, n)};
    return n == 0 || ab_open_program(c, blocks, some, 1, &type, 2, error);
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
        struct ab_program *c = n == BA_CHUNK ? &b->c : &b->rest;
        ba_gather(b->a, i, n, c->in[0]);
        c->out[0] = values + 2 * AB_BA_ROW * (size_t)i;
        c->out[1] = weight_rows + i;
        if (!ab_run_program(c, error))
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
    {.style = NULL},
};
