/* cmd_check.c: cotangent check: compares the derivatives with finite differences, and both modes
 * with each other. */
#include "commands/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "problem/expression.h"
#include "problem/problem.h"
#include "io/progress.h"
#include "trace/lines/grid.h"
#include "trace/trace.h"
#include "problem/values.h"

typedef struct checked {
    problem        *p;
    cot_var        *vars; /* one for each input */
    progress        shown;
    int64_t         runs;
    cot__expr_error error;
    /* memory was short in some run. The point then counts as outside of the domain, which it is
     * not */
    bool            short_of_memory;
} checked;

/* The expression as a function of the wanted inputs. The other inputs are constants. */
static cot_var function(int n, const cot_var *xs, void *user) {
    checked  *c = user;
    cot_tape *t = n > 0 ? xs[0].tape : NULL;
    for (int k = 0, at = 0; k < c->p->n; k++) {
        const problem_input *x = &c->p->inputs[k];
        c->vars[k] = x->wanted && at < n ? xs[at++] : cot_data(t, x->value.dtype, x->value.shape, x->value.data);
    }
    progress_at(&c->shown, ++c->runs);
    cot_var y = problem_run(c->p, t, c->vars, &c->error, NULL, NULL);
    if (!cot_is_valid(y) && c->error.status == COT_MEMORY) c->short_of_memory = true;
    return y;
}

static void put_check(cot__grid *g, const char *what, double error) {
    bool fine = error <= 1; /* false for NaN too */
    char text[64] = "nothing finite to compare";
    cot__grid_put(g, NULL, what);
    cot__grid_put(g, fine ? "\033[32m" : "\033[1;31m", fine ? "agree" : "DISAGREE");
    if (isfinite(error)) cot__format(text, sizeof text, "%.2g of the tolerance", error);
    cot__grid_put(g, NULL, text);
}

/* Replaces the library's names of inputs, xs[0], xs[1], …, by their names in the expression. */
static void name_inputs(const problem *p, const char *message, char *out, size_t size) {
    size_t used = 0;
    out[0] = 0;
    while (*message && used + 1 < size) {
        int k = -1, length = 0;
        if (strncmp(message, "all xs", 6) == 0) {
            used += (size_t)snprintf(out + used, size - used, "all inputs");
            message += 6;
        } else if (sscanf(message, "xs[%d]%n", &k, &length) == 1 && length > 0) {
            for (int i = 0; i < p->n; i++)
                if (p->inputs[i].wanted && k-- == 0)
                    used += (size_t)snprintf(out + used, size - used, "%s", p->inputs[i].name);
            message += length;
        } else {
            out[used++] = *message++;
            out[used] = 0;
        }
    }
}

static void print_json_check(FILE *out, const cot_check_report *r, bool agree, const char *message, const char *kinks) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__json_key(&j, "agree");
    cot__json_bool(&j, agree);
    cot__json_key(&j, "jvp_error");
    cot__json_number(&j, r->jvp_error);
    cot__json_key(&j, "vjp_error");
    cot__json_number(&j, r->vjp_error);
    cot__json_key(&j, "second_error");
    cot__json_number(&j, r->second_error);
    cot__json_key(&j, "message");
    cot__json_string(&j, message);
    cot__json_key(&j, "kinks");
    cot__json_string(&j, kinks);
    cot__json_close(&j, '}');
    fputs("\n", out);
}

static int print_report(const problem *p, FILE *out, look how, const cot_check_report *r, bool agree, failure *f) {
    char  message[2 * sizeof r->message];
    int   found;
    char *kinks = cot__whole_text(cot_report, p->y, &found);
    name_inputs(p, r->message, message, sizeof message);
    if (!kinks) {
        failure_memory(f);
        return EXIT_RUN;
    }
    if (p->o->json) {
        print_json_check(out, r, agree, message, kinks);
    } else {
        cot__grid g = {.columns = 3, .column = {COT__LEFT, COT__LEFT, COT__LEFT}, .colour = how.colour};
        fprintf(out, "compared in f64, along random directions:\n");
        put_check(&g, "forward with finite differences", r->jvp_error);
        put_check(&g, "reverse with forward", r->vjp_error);
        put_check(&g, "second order, both ways", r->second_error);
        if (!cot__grid_print(out, &g)) failure_memory(f);
        if (message[0]) fprintf(out, "%s\n", message);
        if (kinks[0])
            fprintf(out, "this point is not smooth, where differences and derivatives may differ:\n%s\n", kinks);
    }
    free(kinks);
    return agree ? EXIT_FINE : EXIT_DISAGREES;
}

int run_check(const options *o, FILE *out, look how, failure *f) {
    problem          p;
    checked          c = {.p = &p};
    cot_check_report report = {0};
    cot_array       *point = NULL;
    int              n = 0, status = EXIT_FINE;
    /* differences in f32 say nothing */
    options          in_f64 = *o;
    in_f64.dtype = COT_F64;
    if (problem_for_derivatives(&p, &in_f64, f)) {
        c.vars = malloc(((size_t)p.n + 1) * sizeof *c.vars);
        point = malloc(((size_t)p.n + 1) * sizeof *point);
        c.shown = progress_start("check", 0);
        if (!c.vars || !point) failure_memory(f);
        for (int k = 0; point && k < p.n; k++)
            if (p.inputs[k].wanted) point[n++] = p.inputs[k].value;
        if (c.vars && point) {
            cot_status s = cot_check_grads(function, &c, n, point, 2, &report);
            progress_end(&c.shown);
            if (c.short_of_memory)
                failure_memory(f);
            else if (s == COT_OK || (s == COT_GRAD && report.message[0]))
                status = print_report(&p, out, how, &report, s == COT_OK, f);
            else if (s == COT_MEMORY)
                failure_memory(f);
            else if (c.error.message[0])
                expression_failure(&c.error, p.text, p.length, f);
            else
                failure_set(f, EXIT_RUN, "check", "[check] the function fails near this point: %s", report.message);
        }
    }
    free(c.vars);
    free(point);
    problem_close(&p);
    return status;
}
