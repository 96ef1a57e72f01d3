/* tiers.c: see tiers.h. */
#include "tiers.h"

#include "backend/elements.h"
#include "base/element.h"
#include "base/parallel.h"
#include "compile/compile.h"
#include "compile/replay.h"
#include "rules/structural_ids.h"
#include "tape/lower.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int THREADS[] = {1, 2, 7};

static void *room(size_t n, size_t size) {
    void *p = calloc(n + 1, size);
    if (!p) abort();
    return p;
}

static int64_t count_of(const cot_type *type) { return cot__count(type->shape.ndim, type->shape.dim); }
static size_t  bytes_of(const cot_type *type) { return (size_t)count_of(type) * (size_t)cot__dtype_size(type->dtype); }
static void   *elements_of(const cot_type *type) { return room(bytes_of(type), 1); }

static void read_into(cot_var x, void **to) {
    cot_type type = {cot_dtype_of(x), cot_shape_of(x)};
    *to = elements_of(&type);
    cot_read_as(x, type.dtype, *to, cot_size(x));
}

/* ---- what led to a value --------------------------------------------------------------------- */

/* Hides from `lower` what y does not need: as nodes of bodies that are over. */
static uint32_t *hide_others(cot_tape *t, uint32_t y) {
    uint32_t *stamp  = room(t->count, sizeof *stamp);
    bool     *needed = room(t->count, sizeof *needed);
    needed[y] = true;
    for (uint32_t i = t->count; i-- > 0;) {
        cot__node *n = &t->nodes[i];
        for (int k = 0; needed[i] && k < cot__nargs(n); k++)
            if (cot__arg(n, k) != COT__NONE) needed[cot__arg(n, k)] = true;
        stamp[i] = n->stamp;
        if (!needed[i] && n->op != OP_leaf) n->stamp |= COT__BODY_STAMP;
    }
    free(needed);
    return stamp;
}

static void show_again(cot_tape *t, uint32_t count, uint32_t *stamp) {
    for (uint32_t i = 0; i < count; i++) t->nodes[i].stamp = stamp[i];
    free(stamp);
}

/* As cot_tape_save makes it. */
static cot__program *program_of(cot_tape *t, uint32_t y, uint32_t *value, char *why, size_t size) {
    cot__heard    heard = {COT_OK, ""};
    cot__caller   caller = cot__heard_by(&heard, "by_tiers");
    cot__not_yet  not_yet = {NULL, NULL};
    cot_mark      mark = cot__mark(t);
    cot__program *p = cot__tape_lower(t, NULL, 1, &y, value, &caller, &not_yet);
    if (!p && not_yet.why) snprintf(why, size, "%s: %s", not_yet.op, not_yet.why);
    else if (!p) snprintf(why, size, "%s%s", heard.message, cot_tape_message(t));
    else if (p->bound) { /* a function that counts how often it is called would count these */
        cot__program_release(p);
        p = NULL;
        snprintf(why, size, "its operations call a function of the user's");
    }
    cot__rewind(t, mark);
    return p;
}

static void take_cuts(taken *s, const cot_tape *t, uint32_t count, const uint32_t *value) {
    bool *cut = room(s->p->values, sizeof *cut);
    for (uint32_t i = 0; i < count; i++)
        if (value[i] != COT__NO_VALUE && cot__recorded_without_gradient(t, i)) cut[value[i]] = true;
    s->cut = room(s->p->operations, sizeof *s->cut);
    for (uint32_t k = 0; k < s->p->operations; k++) s->cut[k] = cut[s->p->operation[k].result];
    free(cut);
}

static void take_leaves(taken *s, cot_tape *t, uint32_t count, const uint32_t *value) {
    s->leaf = room(s->p->inputs, sizeof *s->leaf);
    s->wanted = room(s->p->inputs, sizeof *s->wanted);
    s->types = room(s->p->inputs, sizeof *s->types);
    s->in = room(s->p->inputs, sizeof *s->in);
    for (uint32_t i = 0; i < count; i++) {
        if (t->nodes[i].op != OP_leaf || value[i] == COT__NO_VALUE) continue;
        cot_var x = VAR(t, i);
        s->leaf[s->n] = i;
        s->wanted[s->n] = t->nodes[i].flags & COT__ACTIVE;
        s->types[s->n] = (cot_type){cot_dtype_of(x), cot_shape_of(x)};
        read_into(x, &s->in[s->n++]);
    }
}

static void name_results(taken *s, cot_var y) {
    s->results = room((size_t)s->n + 1, sizeof *s->results);
    s->want = room((size_t)s->n + 1, sizeof *s->want);
    s->swept = room((size_t)s->n + 1, sizeof *s->swept);
    s->results[s->m++] = (cot_type){cot_dtype_of(y), cot_shape_of(y)};
    for (int k = 0; k < s->n; k++)
        if (s->wanted[k]) s->results[s->m++] = s->types[k];
    read_into(y, &s->want[0]);
}

bool taken_open(taken *s, cot_var y) {
    cot_tape *t = y.tape;
    uint32_t  count = t->count, *stamp = hide_others(t, cot__index(y)), *value = room(count, sizeof *value);
    *s = (taken){0};
    s->p = program_of(t, cot__index(y), value, s->why, sizeof s->why);
    show_again(t, count, stamp);
    if (s->p) {
        take_cuts(s, t, count, value);
        take_leaves(s, t, count, value);
        name_results(s, y);
    }
    free(value);
    if (s->p && cot_tape_status(t) != COT_OK) snprintf(s->why, sizeof s->why, "%s", cot_tape_message(t));
    cot_tape_clear_error(t); /* a leaf that was written over cannot be read, say */
    return !s->why[0];
}

void taken_compiled(taken *s, const cot_program *p, const void *const *inputs) {
    *s = (taken){.f = p->verified, .user = p->verified_user, .n = cot_program_inputs(p), .m = cot_program_outputs(p)};
    s->types = room((size_t)s->n, sizeof *s->types);
    s->in = room((size_t)s->n, sizeof *s->in);
    s->results = room((size_t)s->m, sizeof *s->results);
    s->want = room((size_t)s->m, sizeof *s->want);
    s->swept = room((size_t)s->m, sizeof *s->swept);
    for (int k = 0; k < s->n; k++) {
        s->types[k] = cot_program_input_type(p, k);
        s->in[k] = elements_of(&s->types[k]);
        memcpy(s->in[k], inputs[k], bytes_of(&s->types[k]));
    }
    for (int k = 0; k < s->m; k++) s->results[k] = cot_program_output_type(p, k);
}

void taken_close(taken *s) {
    cot__program_release(s->p);
    for (int k = 0; k < s->n; k++) free(s->in[k]);
    for (int k = 0; k < s->m; k++) free(s->want[k]), free(s->swept[k]);
    free(s->cut), free(s->leaf), free(s->wanted), free(s->types), free(s->in);
    free(s->results), free(s->want), free(s->swept);
}

/* ---- as the tape has it ---------------------------------------------------------------------- */

/* The gradient of a leaf, in doubles. */
static double *gradient_at(const taken *s, cot_tape *t, int input) {
    double *g = room((size_t)count_of(&s->types[input]), sizeof *g);
    cot_read_grad(VAR(t, s->leaf[input]), g, count_of(&s->types[input]));
    return g;
}

/* A list stays if it is all zeros, which what is added to it does not change. */
void taken_before(taken *s, cot_tape *t) {
    for (int k = 0, to = 1; k < s->n; k++) {
        if (!s->wanted[k]) continue;
        double *g = gradient_at(s, t, k);
        bool    zero = true;
        for (int64_t i = 0; i < count_of(&s->types[k]); i++) zero &= g[i] == 0;
        if (zero) s->swept[to] = g;
        else free(g);
        to++;
    }
}

void taken_after(taken *s, cot_tape *t) {
    for (int k = 0, to = 1; k < s->n; k++) {
        if (!s->wanted[k]) continue;
        if (s->swept[to]) {
            free(s->swept[to]);
            s->swept[to] = gradient_at(s, t, k);
        }
        to++;
    }
}

static int wanted_of(const taken *s, const cot_var *xs, cot_var *to) {
    int n = 0;
    for (int k = 0; k < s->n; k++)
        if (s->wanted[k]) to[n++] = xs[k];
    return n;
}

/* Gradients that are recorded on the tape, and forgotten. Not where cot_backward has given all of
 * them: an example may tell how much memory its tape has, or a scope has let go of what a recording
 * would read. */
static void take_recorded(taken *s, cot_var y) {
    cot_tape *t = y.tape;
    bool      all = true;
    for (int k = 1; k < s->m; k++) all &= s->swept[k] != NULL;
    if (all) return;
    cot_var  *xs = room((size_t)s->n, sizeof *xs), *grads = room((size_t)s->n, sizeof *grads);
    cot_mark  mark = cot_tape_mark(t);
    int       n = 0;
    for (int k = 0; k < s->n; k++)
        if (s->wanted[k]) xs[n++] = VAR(t, s->leaf[k]);
    if (cot_grad_of(y, n, xs, grads) == COT_OK)
        for (int k = 0; k < n; k++) read_into(grads[k], &s->want[k + 1]);
    cot_tape_rewind(t, mark);
    free(xs), free(grads);
}

/* ---- comparing ------------------------------------------------------------------------------- */

typedef struct comparing {
    taken      *s;
    const char *where, *how;
    int         threads, wrong, *compared;
} comparing;

static void tell(comparing *c, int k, const char *what) {
    if (++c->wrong <= 5)
        fprintf(stderr, "%s, %s, %d threads: output %d: %s\n", c->where, c->how, c->threads, k, what);
}

static void compare(comparing *c, int k, const void *got) {
    cot_dtype   dtype = c->s->results[k].dtype;
    int         size = cot__dtype_size(dtype);
    const char *a = c->s->want[k], *b = got;
    char        text[120];
    if (!a) return;
    ++*c->compared;
    for (int64_t i = 0; i < count_of(&c->s->results[k]); i++, a += size, b += size) {
        double x = cot__load_f64(a, dtype), z = cot__load_f64(b, dtype);
        if (!memcmp(a, b, (size_t)size) || (isnan(x) && isnan(z))) continue;
        snprintf(text, sizeof text, "element %lld is %.17g, not %.17g", (long long)i, z, x);
        tell(c, k, text);
        return;
    }
}

/* A sweep over numbers may give zeros of another sign (docs/bits.md). */
static void compare_swept(comparing *c, int k, const double *got) {
    cot_dtype   dtype = c->s->results[k].dtype;
    const char *a = c->s->want[k];
    char        text[120];
    if (!a || !got) return;
    ++*c->compared;
    for (int64_t i = 0; i < count_of(&c->s->results[k]); i++) {
        double x = cot__load_f64(a + i * cot__dtype_size(dtype), dtype);
        if (x == got[i] || (isnan(x) && isnan(got[i]))) continue;
        snprintf(text, sizeof text, "element %lld is %.17g, not %.17g", (long long)i, got[i], x);
        tell(c, k, text);
        return;
    }
}

/* ---- eagerly --------------------------------------------------------------------------------- */

/* A body has no node for a call: its operations are recorded in its place. What the node keeps
 * besides is for its own way back. */
static void record_called(cot__replaying *r, uint32_t k) {
    const cot__operation *o = &r->p->operation[k];
    const cot__program   *called = r->p->body[o->body + (uint32_t)cot__operation_bodies(r->p, k) - 1];
    const uint32_t       *x = cot__operation_operand(r->p, k);
    cot_var              *ys = room(called->outputs, sizeof *ys);
    for (int i = 0; i < cot__operation_operands(r->p, k); i++) r->x[i] = r->value[x[i]];
    if (cot__replay(r->t, called, r->x, ys))
        for (uint32_t i = 0; i < called->outputs; i++) r->value[o->result + i] = ys[i];
    free(ys);
}

/* Records the program, as a file's tape is. False after an error on the tape. */
static bool record(const taken *s, cot_tape *t, const cot_var *xs, cot_var *y) {
    cot__replaying r;
    if (cot__replay_open(&r, t, "by_tiers", s->p)) {
        for (uint32_t k = 0; k < s->p->inputs; k++) r.value[s->p->input[k]] = xs[k];
        for (uint32_t k = 0; k < s->p->constants && t->status == COT_OK; k++) cot__replay_constant(&r, k);
        for (uint32_t k = 0; k < s->p->operations && t->status == COT_OK; k++) {
            if (s->cut[k]) cot_no_grad_open(t);
            if (t->mode.body && s->p->operation[k].op == OP_call) record_called(&r, k);
            else cot__replay_operation(&r, k);
            if (s->cut[k]) cot_no_grad_close(t);
        }
        *y = r.value[s->p->output[0]];
    }
    cot__replay_close(&r);
    return t->status == COT_OK;
}

/* The first way says what is right, where the example has not. */
static void compare_var(comparing *c, int k, cot_var got) {
    void *elements;
    read_into(got, &elements);
    if (c->s->want[k]) compare(c, k, elements), free(elements);
    else c->s->want[k] = elements;
}

static void tape_eagerly(comparing *c, cot_tape *t, const cot_var *xs) {
    const taken *s = c->s;
    cot_var     *in = room((size_t)s->n, sizeof *in), *grads = room((size_t)s->n, sizeof *grads), y = COT_NONE;
    int          n = wanted_of(s, xs, in);
    if (record(s, t, xs, &y) && cot_backward(y) == COT_OK && cot_grad_of(y, n, in, grads) == COT_OK)
        for (int k = 0; k <= n; k++) {
            compare_var(c, k, k ? grads[k - 1] : y);
            if (!k) continue;
            double *swept = room((size_t)cot_size(in[k - 1]), sizeof *swept);
            cot_read_grad(in[k - 1], swept, cot_size(in[k - 1]));
            compare_swept(c, k, swept);
            free(swept);
        }
    free(in), free(grads);
}

static void function_eagerly(comparing *c, const cot_var *xs) {
    const taken *s = c->s;
    cot_var     *ys = room((size_t)s->m, sizeof *ys);
    if (s->f(s->n, xs, s->m, ys, s->user)) tell(c, 0, "the function has failed");
    else
        for (int k = 0; k < s->m; k++) compare_var(c, k, ys[k]);
    free(ys);
}

static void eagerly(comparing *c) {
    const taken *s = c->s;
    cot_tape    *t = cot_tape_create(NULL);
    cot_var     *xs = room((size_t)s->n, sizeof *xs);
    for (int k = 0; k < s->n; k++) {
        bool leaf = s->f ? cot__dtype_is_float(s->types[k].dtype) : s->wanted[k];
        xs[k] = (leaf ? cot_tensor : cot_data)(t, s->types[k].dtype, s->types[k].shape, s->in[k]);
    }
    if (s->f) function_eagerly(c, xs);
    else tape_eagerly(c, t, xs);
    if (cot_tape_status(t) != COT_OK) tell(c, 0, cot_tape_message(t));
    cot_tape_destroy(t);
    free(xs);
}

/* ---- compiled -------------------------------------------------------------------------------- */

/* The value and its gradients. */
static int value_and_gradients(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const taken *s = user;
    cot_var     *all = room((size_t)n, sizeof *all), *in = room((size_t)n, sizeof *in);
    for (int k = 0; k < n; k++)
        all[k] = s->wanted[k] || !cot__dtype_is_float(s->types[k].dtype) ? xs[k] : cot_detach(xs[k]);
    int  wanted = wanted_of(s, all, in);
    bool fine = wanted + 1 == m && record(s, xs[0].tape, all, &ys[0]);
    fine = fine && (cot_grad_of)(ys[0], wanted, in, ys + 1) == COT_OK;
    free(all), free(in);
    return !fine;
}

static void run_once(comparing *c, cot_run *r) {
    void **out = room((size_t)c->s->m, sizeof *out);
    for (int k = 0; k < c->s->m; k++) out[k] = elements_of(&c->s->results[k]);
    if (cot_program_run(r, (const void *const *)c->s->in, out) != COT_OK) tell(c, 0, cot_run_message(r));
    else
        for (int k = 0; k < c->s->m; k++) compare(c, k, out[k]);
    for (int k = 0; k < c->s->m; k++) free(out[k]);
    free(out);
}

/* Native code is compared with the executor by its first run, and dropped if they differ. The runs
 * after that are by turns: of two with each number of threads one is native. */
static void compiled(comparing *c, const char *how, const cot_compile_options *options) {
    taken       *s = c->s;
    cot_program *p = cot_compile(s->f ? s->f : value_and_gradients, s->f ? s->user : s, s->n, s->types, s->m, options);
    c->how = how;
    if (cot_program_status(p) != COT_OK) tell(c, 0, cot_program_message(p));
    else if (options->native && cot_program_native(p, true) == COT_NATIVE_READY) c->s->native = true;
    else if (options->native && !strstr(cot_program_native_message(p), "nothing"))
        tell(c, 0, cot_program_native_message(p));
    for (int k = 0; k < 3 && cot_program_status(p) == COT_OK; k++) {
        cot_run *r = cot_run_create(p);
        cot_set_threads(c->threads = THREADS[k]);
        for (int again = 0; again <= options->native; again++) run_once(c, r);
        cot_run_destroy(r);
    }
    if (options->native && c->s->native && cot_program_native(p, false) != COT_NATIVE_READY)
        tell(c, 0, cot_program_native_message(p));
    cot_program_destroy(p);
}

int taken_by_tiers(taken *s, cot_var y, bool native, const char *where, int *compared) {
    comparing c = {.s = s, .where = where, .how = "eager", .compared = compared};
    int       before = cot_threads();
    int64_t   grain = cot__grain;
    if (!s->f) take_recorded(s, y);
    for (int k = 0; k < 3; k++) {
        cot_set_threads(c.threads = THREADS[k]);
        cot__grain = THREADS[k] > 1 ? 1 : grain; /* small work is shared out, too */
        eagerly(&c);
    }
    c.how = "cot_backward of the example";
    for (int k = 1; k < s->m; k++) compare_swept(&c, k, s->swept[k]);
    if (s->n > 0) {
        compiled(&c, "compiled, without passes", &(cot_compile_options){.plain = true});
        compiled(&c, "compiled", &(cot_compile_options){0});
        if (native) compiled(&c, "native", &(cot_compile_options){.native = true});
    }
    cot__grain = grain;
    cot_set_threads(before);
    return c.wrong;
}
