/* export.c: cotangent compile --model: a trained network as C. Its parameters are constants of the
 * file, which so needs nothing beside it. */
#include "train/export.h"
#include "train/use.h"

#include <stdlib.h>
#include <string.h>

#include "compiled/compiled.h"
#include "io/memory_file.h"
#include "models/mnist.h"
#include "problem/expression.h"

enum { MOST = 4000000 }; /* parameters: a compiler takes minutes for more */

typedef struct recording {
    saved   *s;
    cot_net  net;
    float  **values; /* of each parameter */
    cot_var *bound;
    bool     last; /* of the logits of all positions, those of the last */
} recording;

static bool read_values(recording *r, failure *f) {
    int     n   = cot_params_count(r->s->p);
    int64_t all = 0;
    r->values   = calloc((size_t)n + 1, sizeof *r->values);
    r->bound    = calloc((size_t)n + 1, sizeof *r->bound);
    if (!r->values || !r->bound) return failure_memory(f);
    for (int k = 0; k < n; k++) all += cot_size(cot_params_at(r->s->p, k).var);
    if (all > MOST)
        return failure_set(f, EXIT_RUN, "compile",
                           "[compile] %.600s has %lld parameters, which would be constants of a C "
                           "file; at most %d are written",
                           r->s->path, (long long)all, MOST);
    for (int k = 0; k < n; k++) {
        cot_var v    = cot_params_at(r->s->p, k).var;
        r->values[k] = malloc((size_t)(cot_size(v) + 1) * sizeof *r->values[k]);
        if (!r->values[k]) return failure_memory(f);
        cot_read_as(v, COT_F32, r->values[k], cot_size(v));
    }
    return saved_fine(r->s, f);
}

static void free_values(recording *r) {
    for (int k = 0; r->values && k < cot_params_count(r->s->p); k++) free(r->values[k]);
    free(r->values);
    free(r->bound);
}

static int function(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    recording *r     = user;
    int        count = cot_params_count(r->s->p);
    (void)n, (void)m;
    for (int k = 0; k < count; k++)
        r->bound[k] = cot_data(xs[0].tape, COT_F32, cot_shape_of(cot_params_at(r->s->p, k).var), r->values[k]);
    cot_params_bind(r->s->p, count, r->bound);
    ys[0] = r->net(r->s->p, xs[0]);
    if (r->last) ys[0] = cot_slice(ys[0], 1, r->s->net.context - 1, r->s->net.context, 1);
    return cot_params_bind(r->s->p, 0, NULL) == COT_OK ? 0 : 1;
}

static bool write_c(const cot_program *program, const exported *x, const options *o, FILE *out, failure *f) {
    memory_file code = {0}, header = {0};
    char        name[COMPILED_NAME], why[512], *path = NULL;
    bool fine = compiled_name(o->output, name, &path, f) && memory_file_open(&code, f) && memory_file_open(&header, f);
    if (fine) {
        cot_emit_options e = {.name    = name,
                              .title   = x->title,
                              .header  = compiled_included(path),
                              .inputs  = x->input_names,
                              .outputs = x->output_names,
                              .libm    = o->libm};
        if (cot_program_emit_c(program, &e, code.file, path ? header.file : NULL, why, sizeof why))
            fine = sentence_failure(why, "compile", f);
    }
    fine = code.file && memory_file_close(&code, f) && fine;
    fine = header.file && memory_file_close(&header, f) && fine;
    fine = fine && compiled_put(o, name, path, &code, &header, out, f);
    memory_file_free(&code);
    memory_file_free(&header);
    free(path);
    return fine;
}

bool export_function(const exported *e, const options *o, FILE *out, failure *f) {
    cot_program *program = cot_compile(e->function, e->user, e->inputs, e->types, e->outputs, NULL);
    bool         fine;
    if (!program || cot_program_status(program) == COT_MEMORY)
        fine = failure_memory(f);
    else if (cot_program_status(program))
        fine = sentence_failure(cot_program_message(program), "compile", f);
    else
        fine = write_c(program, e, o, out, f);
    cot_program_destroy(program);
    return fine;
}

static bool compile(recording *r, cot_type input, const options *o, FILE *out, failure *f) {
    const exported e = {.function = function, .user = r, .title = r->s->path, .inputs = 1, .outputs = 1,
                        .types = {input}, .input_names = {"x"}, .output_names = {"logits"}};
    bool           fine = read_values(r, f) && export_function(&e, o, out, f);
    free_values(r);
    return fine;
}

static bool options_fit(const options *o, failure *f) {
    if (o->train.batch && !o->training_step)
        return failure_usage(f, "--batch is of the step that trains a model, --training-step");
    bool more = o->derivative || o->main || o->print || o->report || o->dot || o->file || o->wrt || o->seed ||
                o->sparse || o->tangent_count || o->positional_count;
    return !more ||
           failure_usage(f, "compile --model DIR writes the trained network or, with --training-step, the step that "
                            "trains it; it takes -o, --libm and --json, no expression and no derivative");
}

int run_export(const options *o, FILE *out, look how, failure *f) {
    saved     s = {0};
    recording r = {.s = &s};
    (void)how;
    if (!options_fit(o, f)) return EXIT_USAGE;
    bool fine = saved_open(&s, o->train.model, f);
    if (fine && o->training_step) {
        export_step(&s, o, out, f);
    } else if (fine && strcmp(s.model, "mnist") == 0) {
        cot_shape one = COT_SHAPE(1, 1, MNIST_SIDE, MNIST_SIDE);
        r.net         = mnist_net;
        if (saved_load(&s, mnist_net, cot_full(s.t, COT_F32, one, 0), f))
            compile(&r, (cot_type){COT_F32, one}, o, out, f);
    } else if (fine && strcmp(s.model, "gpt") == 0) {
        r.net       = gpt_net;
        r.last      = true;
        fine        = saved_gpt(&s, f);
        s.net.plain = true;
        if (fine) compile(&r, (cot_type){COT_I64, COT_SHAPE(1, s.net.context)}, o, out, f);
    } else if (fine) {
        failure_set(f, EXIT_RUN, "file", "%.600s is a model of %.60s; compile --model takes mnist or gpt", s.path,
                    s.model);
    }
    saved_close(&s);
    return f->status;
}
