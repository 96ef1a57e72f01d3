/* problem.c: makes an expression with its inputs from the command line. */
#include "problem/problem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "tape/tape.h"
#include "problem/command.h"
#include "problem/expression.h"
#include "problem/names.h"
#include "problem/values.h"

static bool same_shape(cot_shape a, cot_shape b) {
    return a.ndim == b.ndim && (a.ndim == 0 || memcmp(a.dim, b.dim, (size_t)a.ndim * sizeof *a.dim) == 0);
}

static problem_input *find_input(problem *p, const char *name, size_t length) {
    int k = cot__expr_name(p->expr, name, length);
    return k >= 0 && p->input_of[k] > 0 ? &p->inputs[p->input_of[k] - 1] : NULL;
}

bool problem_expression(problem *p, const char *const **arguments, int *count, failure *f) {
    const options *o = p->o;
    *arguments = o->positionals;
    *count = o->positional_count;
    if (o->file) {
        p->own = source_text(o->file, "the expression", COT__EXPR_MAX_BYTES, &p->length, f);
        p->text = p->own;
        if (!p->own) return false;
    } else {
        if (*count == 0)
            return failure_usage(f, "%s needs an expression: cotangent %s %s", o->command->name, o->command->name,
                                 o->command->usage);
        p->text = (*arguments)++[0];
        p->length = strlen(p->text);
        --*count;
    }
    cot__expr_error error = {0};
    p->expr = cot__expr_parse(p->text, p->length, &error);
    return p->expr ? true : expression_failure(&error, p->text, p->length, f);
}

/* Reads the names of name=value arguments. All names are checked before a file is opened. */
static bool read_names(problem *p, const char *const *arguments, int count, failure *f) {
    const char *const *names;
    int                n = cot__expr_names(p->expr, &names);
    char               list[400];
    p->inputs = calloc((size_t)count + 1, sizeof *p->inputs);
    p->input_of = calloc((size_t)cot__expr_name_count(p->expr) + 1, sizeof *p->input_of);
    if (!p->inputs || !p->input_of) return failure_memory(f);
    for (int i = 0; i < count; i++) {
        size_t length = name_length(arguments[i]);
        if (!length)
            return failure_usage(f, "'%.100s' is not name=value; %s", arguments[i],
                                 p->o->file ? "with -f the expression comes from the file"
                                            : "the expression is the first argument, one argument in all (quote it)");
        if (find_input(p, arguments[i], length))
            return failure_usage(f, "%.*s is given twice", length < 100 ? (int)length : 100, arguments[i]);
        char *name = malloc(length + 1);
        if (!name) return failure_memory(f);
        memcpy(name, arguments[i], length);
        name[length] = 0;
        p->inputs[p->n++].name = name;
        int k = cot__expr_name(p->expr, name, length);
        if (k >= 0) {
            p->input_of[k] = p->n;
            continue;
        }
        const char *near = cot__nearest(name, n, names);
        if (near) return failure_usage(f, "the expression has no name %.100s; did you mean %s?", name, near);
        if (n == 0) return failure_usage(f, "the expression has no name %.100s: it needs no values", name);
        return failure_usage(f, "the expression has no name %.100s; it has %s", name,
                             list_names(n, names, list, sizeof list));
    }
    const char *missing[64];
    int         missing_count = 0;
    for (int k = 0; k < n && missing_count < 64; k++)
        if (!find_input(p, names[k], strlen(names[k]))) missing[missing_count++] = names[k];
    for (int k = 0; k < missing_count; k++) {
        static const char *const known[] = {"pi", "e", "inf", "nan", "True", "False"};
        for (size_t c = 0; c < sizeof known / sizeof *known; c++)
            if (strcasecmp(missing[k], known[c]) == 0)
                return failure_usage(f, "the expression needs a value for %s; did you mean %s?", missing[k], known[c]);
    }
    char signature[400];
    for (int k = 0; k < missing_count; k++)
        if (cot__expr_signature(missing[k], signature, sizeof signature))
            return failure_usage(f, "%s is a function, called with (): %s; as a value it needs %s=…", missing[k],
                                 signature, missing[k]);
    if (missing_count)
        return failure_usage(f, "the expression needs %s %s; give %s=…",
                             missing_count == 1 ? "a value for" : "values for",
                             list_names(missing_count, missing, list, sizeof list), missing[0]);
    return true;
}

static bool read_values(problem *p, const char *const *arguments, failure *f) {
    for (int i = 0; i < p->n; i++) {
        problem_input *x = &p->inputs[i];
        const char    *text = strchr(arguments[i], '=') + 1;
        if (!(p->way && value_shape(text, p->o->dtype, &x->value)) &&
            !value_or_matrix_read(x->name, text, p->o->dtype, &x->value, &x->sparse, f))
            return false;
        p->inputs[i].wanted = cot__dtype_is_float(p->inputs[i].value.dtype);
    }
    return true;
}

/* The input that an option names. */
static problem_input *named_by(problem *p, const char *option, const char *name, size_t length, failure *f) {
    problem_input *x = find_input(p, name, length);
    if (!x) {
        const char *names[64];
        int         n = 0;
        char        given[101];
        snprintf(given, sizeof given, "%.*s", length < 100 ? (int)length : 100, name);
        for (; n < p->n && n < 64; n++) names[n] = p->inputs[n].name;
        const char *near = cot__nearest(given, n, names);
        if (near)
            failure_usage(f, "%s: there is no input %s; did you mean %s?", option, given, near);
        else
            failure_usage(f, "%s: there is no input %s", option, given);
        return NULL;
    }
    if (cot__dtype_is_float(x->value.dtype)) return x;
    failure_usage(f, "%s: %s is %s, and only floats have derivatives", option, x->name, cot_dtype_name(x->value.dtype));
    return NULL;
}

static bool read_wrt(problem *p, failure *f) {
    const char *text = p->o->wrt;
    if (!text) return true;
    for (int k = 0; k < p->n; k++) p->inputs[k].wanted = false;
    for (;;) {
        text += strspn(text, " \t");
        size_t      length = strcspn(text, ", \t");
        const char *end = text + length + strspn(text + length, " \t");
        if (length == 0 || (*end && *end != ','))
            return failure_usage(f, "--wrt is a list of inputs, a,b, not '%.100s'", p->o->wrt);
        problem_input *x = named_by(p, "--wrt", text, length, f);
        if (!x) return false;
        if (x->wanted) return failure_usage(f, "--wrt names %s twice", x->name);
        x->wanted = true;
        if (!*end) return true;
        text = end + 1;
    }
}

static bool read_tangents(problem *p, failure *f) {
    char has[400], needs[400], who[128], option[16];
    snprintf(option, sizeof option, "--%s", p->o->direction);
    for (int i = 0; i < p->o->tangent_count; i++) {
        const char *text = p->o->tangents[i];
        size_t      length = name_length(text);
        if (!length) return failure_usage(f, "%s is name=V, not '%.100s'", option, text);
        problem_input *x = named_by(p, option, text, length, f);
        if (!x) return false;
        if (x->tangent.data) return failure_usage(f, "%s %s is given twice", option, x->name);
        snprintf(who, sizeof who, "%s %.100s", option, x->name);
        if (!value_read(who, strchr(text, '=') + 1, x->value.dtype, &x->tangent, f)) return false;
        if (!same_shape(x->tangent.shape, x->value.shape) || !cot__dtype_is_float(x->tangent.dtype))
            return failure_usage(f, "%s is %s of shape %s; it must be a float of %s's shape %s", who,
                                 cot_dtype_name(x->tangent.dtype), shape_text(x->tangent.shape, has), x->name,
                                 shape_text(x->value.shape, needs));
    }
    if ((p->o->command->options & OPT_TANGENT) && p->o->tangent_count == 0)
        return failure_usage(f, "%s needs a direction: at least one --along name=V; inputs without one do not move",
                             p->o->command->name);
    return true;
}

static bool open_in(problem *p, const options *o, const problem_way *way, failure *f) {
    const char *const *arguments;
    int                count;
    *p = (problem){.o = o, .op = o->command->name, .way = way};
    return problem_expression(p, &arguments, &count, f) && read_names(p, arguments, count, f) &&
           read_values(p, arguments, f) && read_wrt(p, f) && read_tangents(p, f);
}

bool problem_open(problem *p, const options *o, failure *f) { return open_in(p, o, NULL, f); }

cot_var problem_run(const problem *p, cot_tape *t, const cot_var *vars, cot__expr_error *error, cot__expr_span **spans,
                    int64_t *span_count) {
    cot__expr_input *given = malloc(((size_t)p->n + 1) * sizeof *given);
    cot_csr         *matrices = malloc(((size_t)p->n + 1) * sizeof *matrices);
    cot_var          y = COT_NONE;
    *error = (cot__expr_error){.status = COT_MEMORY};
    if (given && matrices) {
        for (int k = 0; k < p->n; k++) {
            const problem_input *x = &p->inputs[k];
            if (x->sparse.row) matrices[k] = sparse_input_matrix(&x->sparse, vars[k]);
            given[k] = (cot__expr_input){x->name, vars[k], x->sparse.row ? &matrices[k] : NULL};
        }
        cot_dtype real = p->derivatives ? p->o->dtype : COT_DTYPE_COUNT;
        y = cot__expr_run_as(p->expr, t, real, p->n, given, error, spans, span_count);
    }
    free(given);
    free(matrices);
    return y;
}

/* The result is called f, unless the text gives it a name or uses that one for another value. */
static void name_result(problem *p) {
    uint32_t y = cot__index(p->y);
    if (!cot__name_of(p->t, y) && cot__op_of(p->t->nodes[y].op)->kind != KIND_SOURCE && !cot__expr_uses(p->expr, "f"))
        cot_name(p->y, "f");
}

bool problem_record(problem *p, failure *f) {
    cot__expr_error error = {0};
    cot_var        *vars = malloc(((size_t)p->n + 1) * sizeof *vars);
    p->wanted = malloc(((size_t)p->n + 1) * sizeof *p->wanted);
    p->t = p->way ? p->way->open() : cot_tape_create(NULL);
    if (!vars || !p->wanted || !p->t) {
        free(vars);
        return failure_memory(f);
    }
    for (int k = 0; k < p->n; k++) {
        problem_input *x = &p->inputs[k];
        /* An input that is not asked for is a constant, so sweeps, costs and traces leave it
         * out. */
        bool leaf = x->wanted || x->tangent.data;
        vars[k] = p->way ? p->way->input(p->t, x, leaf)
                  : leaf ? cot_tensor(p->t, x->value.dtype, x->value.shape, x->value.data)
                         : cot_data(p->t, x->value.dtype, x->value.shape, x->value.data);
        x->var = cot_name(vars[k], x->name);
        if (!x->wanted) continue;
        p->wanted[p->wanted_count++] = x->var;
        p->wanted_size += x->value.size;
    }
    p->y = cot_tape_status(p->t) == COT_OK ? problem_run(p, p->t, vars, &error, &p->spans, &p->span_count) : COT_NONE;
    free(vars);
    p->first = cot_tape_length(p->t) - p->span_count; /* patterns of matrices are before it, too */
    if (cot_is_valid(p->y)) {
        name_result(p);
        return cot_tape_status(p->t) == COT_OK || tape_failure(p->t, f);
    }
    return cot_tape_status(p->t) != COT_OK && error.column == 0 ? tape_failure(p->t, f)
                                                                : expression_failure(&error, p->text, p->length, f);
}

bool problem_for_derivatives(problem *p, const options *o, failure *f) {
    return problem_for_derivatives_in(p, o, NULL, f);
}

bool problem_for_derivatives_in(problem *p, const options *o, const problem_way *way, failure *f) {
    if (!open_in(p, o, way, f)) return false;
    p->derivatives = true;
    if (!problem_record(p, f)) return false;
    /* as in x=arange(5) */
    const problem_input *integer = NULL;
    for (int k = 0; k < p->n && !integer; k++)
        if (!cot__dtype_is_float(p->inputs[k].value.dtype)) integer = &p->inputs[k];
    if (integer && p->wanted_count == 0)
        return failure_usage(f,
                             "%s has nothing to differentiate by: %.100s is %s, and only floats have derivatives; "
                             "cast(…, f64) makes them",
                             p->op, integer->name, cot_dtype_name(integer->value.dtype));
    if (!cot__dtype_is_float(cot_dtype_of(p->y)))
        return failure_set(f, EXIT_RUN, "dtype", "[%s] the value is %s; only floats have derivatives", p->op,
                           cot_dtype_name(cot_dtype_of(p->y)));
    if (p->wanted_count == 0)
        return failure_usage(f, "%s has nothing to differentiate by: the expression has no float input", p->op);
    return true;
}

void problem_forget(problem *p) {
    free(p->spans);
    free(p->wanted);
    cot_tape_destroy(p->t);
    p->spans = NULL;
    p->wanted = NULL;
    p->t = NULL;
    p->y = COT_NONE;
    p->wanted_count = 0;
    p->wanted_size = p->span_count = 0;
}

void problem_close(problem *p) {
    problem_forget(p);
    for (int k = 0; k < p->n; k++) {
        free(p->inputs[k].name);
        free(p->inputs[k].value.data);
        free(p->inputs[k].tangent.data);
        sparse_input_free(&p->inputs[k].sparse);
    }
    free(p->inputs);
    free(p->input_of);
    free(p->own);
    cot__expr_free(p->expr);
}

bool problem_seed(const problem *p, cot_array *seed, failure *f) {
    cot_shape shape = cot_shape_of(p->y);
    int64_t   size = cot_size(p->y);
    char      has[400], needs[400];
    *seed = (cot_array){0};
    if (!p->o->seed) {
        if (size != 1)
            return failure_set(f, EXIT_USAGE, "shape",
                               "[%s] the value has shape %s, not one element; give --seed V of that shape, or use jac",
                               p->op, shape_text(shape, needs));
        if (!array_allocate(seed, COT_F64, shape, f)) return false;
        *(double *)seed->data = 1;
        return true;
    }
    cot_array given;
    if (!value_read("--seed", p->o->seed, COT_F64, &given, f)) return false;
    bool fine = cot__dtype_is_float(given.dtype) ||
                failure_usage(f, "--seed is %s; it must be a float", cot_dtype_name(given.dtype));
    if (fine && same_shape(given.shape, shape)) {
        *seed = given;
        return true;
    }
    if (fine && given.shape.ndim != 0)
        fine = failure_usage(f, "--seed has shape %s, and the value has %s; give one of that shape, or one number",
                             shape_text(given.shape, has), shape_text(shape, needs));
    fine = fine && array_allocate(seed, COT_F64, shape, f);
    for (int64_t i = 0; fine && i < size; i++) ((double *)seed->data)[i] = *(double *)given.data;
    free(given.data);
    return fine;
}
