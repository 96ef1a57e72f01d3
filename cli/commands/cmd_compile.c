/* cmd_compile.c: cotangent compile: an expression, and a derivative of it, as C. */
#include "commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include <cotangent_program.h>
#include <cotangent_transform.h>

#include "compiled/compiled.h"
#include "io/memory_file.h"
#include "problem/expression.h"
#include "problem/values.h"
#include "train/use.h"

/* ---- the function of which a program is made ------------------------------------------------- */

/* Its inputs are those of the expression, then the seed or the tangents; its outputs the value,
 * then the derivatives. */
typedef struct recording {
    const compiled *c;
    const cot_var  *all; /* of the expression's inputs */
    cot__expr_error error;
    bool            no_memory;
} recording;

static void *room_for(recording *r, int n) {
    void *room = malloc(((size_t)n + 1) * sizeof(cot_var));
    if (!room) r->no_memory = true;
    return room;
}

/* The expression as a function of some of its inputs. */
typedef struct of_some {
    recording *r;
    bool (*takes)(const problem_input *x);
} of_some;

static int value_of_some(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const of_some  *s     = user;
    const problem  *p     = s->r->c->p;
    cot_var        *vars  = room_for(s->r, p->n);
    cot__expr_span *spans = NULL;
    int64_t         count = 0;
    (void)n, (void)m;
    if (!vars) return 1;
    for (int k = 0; k < p->n; k++) vars[k] = s->takes(&p->inputs[k]) ? *xs++ : s->r->all[k];
    ys[0] = problem_run(p, s->r->all[0].tape, vars, &s->r->error, &spans, &count);
    free(spans);
    free(vars);
    return 0;
}

static bool is_wanted(const problem_input *x) { return x->wanted; }
static bool moves(const problem_input *x) { return x->tangent.data != NULL; }
static bool is_any(const problem_input *x) { return x->value.data != NULL; }

/* The gradient by the wanted inputs as a function of those that move. */
static int gradient_of_moving(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    recording     *r      = user;
    const problem *p      = r->c->p;
    const cot_var *before = r->all;
    cot_var       *vars = room_for(r, p->n), *wanted = room_for(r, p->n);
    int            count = 0;
    (void)n, (void)m;
    for (int k = 0; vars && wanted && k < p->n; k++) {
        vars[k] = moves(&p->inputs[k]) ? *xs++ : before[k];
        if (is_wanted(&p->inputs[k])) wanted[count++] = vars[k];
    }
    r->all  = vars;
    bool ok = vars && wanted &&
              cot_value_and_grad(value_of_some, &(of_some){r, is_wanted}, count, wanted, &ys[0], ys + 1) == COT_OK;
    r->all = before;
    free(vars);
    free(wanted);
    return ok ? 0 : 1;
}

/* Those inputs that are taken, in order. */
static int chosen(const problem *p, const cot_var *all, bool (*takes)(const problem_input *), cot_var *to) {
    int n = 0;
    for (int k = 0; k < p->n; k++)
        if (takes(&p->inputs[k])) to[n++] = all[k];
    return n;
}

/* ys[0] is the value; a Hessian-vector product gives the gradient too, which nobody wants. */
static bool record_hvp(recording *r, const cot_var *tangents, cot_var *ys, cot_var *xs) {
    const problem *p = r->c->p;
    int            n = chosen(p, r->all, moves, xs), m = r->c->outputs;
    cot_var       *moved = room_for(r, m), *values = room_for(r, m);
    bool ok = moved && values && cot_fn_jvp(gradient_of_moving, r, n, xs, tangents, m, values, moved) == COT_OK;
    if (ok) ys[0] = values[0];
    for (int k = 1; ok && k < m; k++) ys[k] = moved[k];
    free(moved);
    free(values);
    return ok;
}

/* The entries as they were planned. */
static bool record_sparse(recording *r, int n, const cot_var *xs, cot_var *ys) {
    const compiled *c      = r->c;
    of_some         wanted = {r, is_wanted};
    cot_var         values;
    cot_status      status = c->what == HESS
                                 ? cot_fn_sparse_hessian(c->plan, value_of_some, &wanted, n, xs, ys, &values)
                                 : cot_fn_sparse_jacobian(c->plan, value_of_some, &wanted, n, xs, 1, ys, &values);
    if (status == COT_OK) compiled_sparse_blocks(c, values, ys + 1);
    return status == COT_OK;
}

static bool record(recording *r, const cot_var *more, cot_var *ys, cot_var *xs) {
    const problem *p      = r->c->p;
    of_some        wanted = {r, is_wanted}, moving = {r, moves}, any = {r, is_any};
    cot_var        one = cot_number(1);
    int            n   = chosen(p, r->all, is_wanted, xs);
    if (r->c->plan) return record_sparse(r, n, xs, ys);
    switch (r->c->what) {
    case NO_DERIVATIVE: return value_of_some(p->n, r->all, 1, ys, &any) == 0;
    case GRAD: return cot_fn_vjp(value_of_some, &wanted, n, xs, 1, ys, &one, ys + 1) == COT_OK;
    case VJP: return cot_fn_vjp(value_of_some, &wanted, n, xs, 1, ys, more, ys + 1) == COT_OK;
    case JVP:
        return cot_fn_jvp(value_of_some, &moving, chosen(p, r->all, moves, xs), xs, more, 1, ys, ys + 1) == COT_OK;
    case HVP: return record_hvp(r, more, ys, xs);
    case JAC: return cot_fn_jacobian(value_of_some, &wanted, n, xs, 1, ys, r->c->mode, ys + 1) == COT_OK;
    case HESS: return cot_fn_hessian(value_of_some, &wanted, n, xs, ys, ys + 1) == COT_OK;
    }
    return false;
}

static int function(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    recording *r    = user;
    cot_var   *room = room_for(r, n);
    (void)m;
    r->all  = xs;
    bool ok = room && record(r, xs + r->c->p->n, ys, room);
    free(room);
    return ok ? 0 : 1;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool emit(const compiled *c, const cot_program *program, FILE *code, FILE *header, failure *f) {
    char why[512], *title = malloc(c->p->length + 1);
    if (!title) return failure_memory(f);
    memcpy(title, c->p->text, c->p->length);
    title[c->p->length]     = 0;
    cot_emit_options o      = {.name     = c->name,
                               .title    = title,
                               .header   = compiled_included(c->header),
                               .inputs   = (const char *const *)c->input_name,
                               .outputs  = (const char *const *)c->output_name,
                               .patterns = c->patterns,
                               .libm     = c->p->o->libm};
    cot_status       status = cot_program_emit_c(program, &o, code, header, why, sizeof why);
    free(title);
    return status == COT_OK || sentence_failure(why, "compile", f);
}

static bool write_files(const compiled *c, const cot_program *program, FILE *out, failure *f) {
    memory_file code = {0}, header = {0};
    bool        to_files = c->header != NULL;
    bool        fine     = memory_file_open(&code, f) && memory_file_open(&header, f);
    fine                 = fine && emit(c, program, code.file, to_files ? header.file : NULL, f);
    if (fine && c->p->o->main) compiled_main(c, program, code.file);
    fine = code.file && memory_file_close(&code, f) && fine;
    fine = header.file && memory_file_close(&header, f) && fine;
    fine = fine && compiled_put(c->p->o, c->name, c->header, &code, &header, out, f);
    memory_file_free(&code);
    memory_file_free(&header);
    return fine;
}

/* ---- the program itself ---------------------------------------------------------------------- */

static bool is_shown(const options *o) { return o->print || o->report || o->dot; }

static bool show_fits(const options *o, failure *f) {
    if (o->dot && o->json) return failure_usage(f, "--json goes with the C, --print and --report, not with --dot");
    if (is_shown(o) && o->json && o->output)
        return failure_usage(f, "--json prints one object: of the C in a file (-o), or of the program "
                                "(--print, --report)");
    if (o->dot && strcmp(o->dot, "-") == 0 && (o->print || o->report))
        return failure_usage(f, "only one of --dot -, --print and --report can go to the standard output");
    return true;
}

static void write_dot(const void *program, FILE *to, failure *f) {
    (void)f;
    cot_program_dot(program, to);
}

static bool show(const compiled *c, cot_program *program, FILE *out, failure *f) {
    const options *o = c->p->o;
    if (o->json && is_shown(o)) return compiled_program_json(c, program, out, f);
    if (o->dot) memory_file_put(o->dot, write_dot, program, out, f);
    if (o->print) cot_program_print(program, out);
    if (o->print && o->report) fputs("\n", out);
    if (o->report && cot_program_report(program, out) != COT_OK) return failure_memory(f);
    return f->status == EXIT_FINE;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool open_problem(problem *p, const options *o, failure *f) {
    if (o->derivative) return problem_for_derivatives(p, o, f);
    return problem_open(p, o, f) && problem_record(p, f);
}

static bool compile(const compiled *c, FILE *out, failure *f) {
    recording r     = {.c = c};
    cot_type *types = malloc(((size_t)c->inputs + 1) * sizeof *types);
    if (!types) return failure_memory(f);
    for (int k = 0; k < c->inputs; k++) types[k] = (cot_type){c->input[k].dtype, c->input[k].shape};
    cot_program *program = cot_compile(function, &r, c->inputs, types, c->outputs, NULL);
    bool         fine    = cot_program_status(program) == COT_OK;
    bool         memory  = !program || r.no_memory || r.error.status == COT_MEMORY;
    if (!fine && memory)
        failure_memory(f);
    else if (!fine && r.error.column)
        expression_failure(&r.error, c->p->text, c->p->length, f);
    else if (!fine)
        sentence_failure(cot_program_message(program), "compile", f);
    fine = fine && show(c, program, out, f);
    if (!is_shown(c->p->o) || c->p->o->output) fine = fine && write_files(c, program, out, f);
    cot_program_destroy(program);
    free(types);
    return fine;
}

int run_compile(const options *o, FILE *out, look how, failure *f) {
    problem  p;
    compiled c = {.p = &p, .what = o->derivative};
    if (o->train.model) return run_export(o, out, how, f);
    if (o->training_step || o->train.batch) {
        failure_usage(f, "--training-step and --batch are of compile --model DIR");
        return EXIT_USAGE;
    }
    if (!show_fits(o, f)) return EXIT_USAGE;
    if (open_problem(&p, o, f) && compiled_name(o->output, c.name, &c.header, f) && compiled_open(&c, f))
        compile(&c, out, f);
    compiled_close(&c);
    problem_close(&p);
    return EXIT_FINE;
}
