/* compiled.c: see compiled.h. */
#include "compiled/compiled.h"

#include <stdlib.h>
#include <string.h>

#include "io/data_file.h"
#include "base/element.h"
#include "problem/command.h"

/* ---- does it fit? ---------------------------------------------------------------------------- */

static bool needs_one_element(const compiled *c, const char *instead, failure *f) {
    char shape[400];
    if (cot_size(c->p->y) == 1) return true;
    return failure_set(f, EXIT_USAGE, "shape", "[compile] the value has shape %s, not one element; %s",
                       shape_text(cot_shape_of(c->p->y), shape), instead);
}

static bool options_fit(const compiled *c, failure *f) {
    const options *o     = c->p->o;
    bool           along = c->what == JVP || c->what == HVP;
    if (c->p->n == 0) return failure_usage(f, "compile makes a function, but the expression has no names");
    if (o->sparse && c->what != JAC && c->what != HESS) return failure_usage(f, "--sparse goes with --jac and --hess");
    if (o->seed && c->what != VJP) return failure_usage(f, "--seed goes with --vjp");
    if (o->tangent_count && !along) return failure_usage(f, "--%s goes with --jvp and --hvp", o->direction);
    if (along && !o->tangent_count)
        return failure_usage(f, "--%s needs a direction: at least one --along name=V; inputs without one do not move",
                             c->what == JVP ? "jvp" : "hvp");
    if (c->what == GRAD) return needs_one_element(c, "--vjp takes a seed, --jac gives all derivatives", f);
    if (c->what == HVP || c->what == HESS) return needs_one_element(c, "only a value of one element has a Hessian", f);
    return true;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool add_input(compiled *c, const char *before, const char *name, const cot_array *value, failure *f) {
    size_t room = strlen(before) + strlen(name) + 1;
    char  *text = malloc(room);
    if (!text) return failure_memory(f);
    snprintf(text, room, "%s%s", before, name);
    c->input_name[c->inputs] = text;
    c->input[c->inputs++]    = *value;
    return true;
}

static bool add_output(compiled *c, const char *before, const char *name, const char *second, failure *f) {
    size_t room = strlen(before) + strlen(name) + strlen(second) + 2;
    char  *text = malloc(room);
    if (!text) return failure_memory(f);
    snprintf(text, room, "%s%s%s%s", before, name, *second ? "_" : "", second);
    c->output_name[c->outputs++] = text;
    return true;
}

/* Ones, unless another one was given; in the dtype of the value. */
static bool make_seed(compiled *c, failure *f) {
    cot_array given = {0};
    cot_dtype dtype = cot_dtype_of(c->p->y);
    if (c->p->o->seed && !problem_seed(c->p, &given, f)) return false;
    bool fine = array_allocate(&c->seed, dtype, cot_shape_of(c->p->y), f);
    for (int64_t i = 0; fine && i < c->seed.size; i++) {
        double v = !given.data              ? 1
                   : given.dtype == COT_F32 ? (double)((float *)given.data)[i]
                                            : ((double *)given.data)[i];
        cot__store_f64((char *)c->seed.data + i * cot__dtype_size(dtype), dtype, v);
    }
    free(given.data);
    return fine;
}

static bool list_inputs(compiled *c, failure *f) {
    const problem *p    = c->p;
    bool           fine = true;
    for (int k = 0; fine && k < p->n; k++) fine = add_input(c, "", p->inputs[k].name, &p->inputs[k].value, f);
    if (c->what == VJP) fine = fine && make_seed(c, f) && add_input(c, "", "seed", &c->seed, f);
    for (int k = 0; fine && k < p->n; k++)
        if (p->inputs[k].tangent.data) fine = add_input(c, "tangent_", p->inputs[k].name, &p->inputs[k].tangent, f);
    return fine;
}

static bool list_pairs(compiled *c, const char *first, failure *f) {
    bool fine = true;
    for (int k = 0; fine && k < c->p->n; k++)
        if (c->p->inputs[k].wanted) fine = add_output(c, "hess_", first, c->p->inputs[k].name, f);
    return fine;
}

static bool list_outputs(compiled *c, failure *f) {
    static const char *const before[] = {[GRAD] = "grad_", [VJP] = "grad_", [HVP] = "hvp_", [JAC] = "jac_"};
    const problem           *p        = c->p;
    bool                     fine     = add_output(c, "value", "", "", f);
    if (c->what == NO_DERIVATIVE || !fine) return fine;
    if (c->what == JVP) return add_output(c, "tangent", "", "", f);
    if (c->what == HESS && c->p->o->sparse) return add_output(c, "hess", "", "", f);
    for (int k = 0; fine && k < p->n; k++) {
        if (!p->inputs[k].wanted) continue;
        if (c->what == HESS)
            fine = list_pairs(c, p->inputs[k].name, f);
        else
            fine = add_output(c, before[c->what], p->inputs[k].name, "", f);
    }
    return fine;
}

bool compiled_open(compiled *c, failure *f) {
    size_t n = (size_t)c->p->n, pairs = 1 + n + (c->what == HESS ? n * n : 0);
    if (!options_fit(c, f)) return false;
    c->mode        = cot_size(c->p->y) <= c->p->wanted_size ? COT_REVERSE : COT_FORWARD;
    c->input       = calloc(2 * n + 1, sizeof *c->input);
    c->input_name  = calloc(2 * n + 1, sizeof *c->input_name);
    c->output_name = calloc(pairs + 1, sizeof *c->output_name);
    if (!c->input || !c->input_name || !c->output_name) return failure_memory(f);
    if (c->p->o->sparse && !compiled_sparse_open(c, f)) return false;
    return list_inputs(c, f) && list_outputs(c, f);
}

void compiled_close(compiled *c) {
    for (int k = 0; k < c->inputs; k++) free(c->input_name[k]);
    for (int k = 0; k < c->outputs; k++) free(c->output_name[k]);
    free(c->input_name);
    free(c->output_name);
    free(c->input);
    free(c->seed.data);
    compiled_sparse_close(c);
    free(c->header);
}
