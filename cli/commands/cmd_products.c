/* cmd_products.c: cotangent jvp and hvp: how the value, or its gradient, changes along a
 * direction. */
#include "commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "commands/along.h"
#include "problem/expression.h"
#include "problem/results.h"
#include "problem/values.h"

static bool print_jvp(const problem *p, FILE *out, look how, const double *moved, failure *f) {
    cot_array value, tangent;
    if (!value_of_var(p->y, &value, f)) return false;
    bool fine = result_block(&tangent, value.dtype, value.shape, moved, value.size, 0, 1, 0, value.size, f);
    if (fine && p->o->json) {
        cot__json j = cot__json_to(out);
        cot__json_open(&j, '{');
        cot__json_key(&j, "value");
        print_json(&j, &value);
        cot__json_key(&j, "tangent");
        print_json(&j, &tangent);
        result_note(p, out, &j);
        cot__json_close(&j, '}');
        fputs("\n", out);
    } else if (fine) {
        print_values(out, how, 2, (labelled[]){{"value", &value}, {"d/ds", &tangent}});
        result_note(p, out, NULL);
    }
    free(value.data);
    if (fine) free(tangent.data);
    return fine;
}

int run_jvp(const options *o, FILE *out, look how, failure *f) {
    problem   p;
    direction d = {0};
    double   *moved = NULL;
    if (problem_for_derivatives(&p, o, f) && direction_make(&d, &p, false, f)) {
        moved = malloc(((size_t)cot_size(p.y) + 1) * sizeof *moved);
        if (!moved)
            failure_memory(f);
        else if (cot_jvps(1, d.n, d.vars, d.v, 1, &p.y, moved) != COT_OK)
            tape_failure(p.t, f);
        else
            print_jvp(&p, out, how, moved, f);
    }
    free(moved);
    direction_free(&d);
    problem_close(&p);
    return EXIT_FINE;
}

/* Drops the rows of inputs that only move: the direction may name an input that --wrt does not. */
static int keep_wanted(direction *d, double *product) {
    int     n = 0;
    int64_t to = 0;
    for (int64_t k = 0, at = 0; k < d->n; k++) {
        int64_t size = d->inputs[k]->value.size;
        if (d->inputs[k]->wanted) {
            memmove(product + to, product + at, (size_t)size * sizeof *product);
            to += size;
            d->inputs[n++] = d->inputs[k];
        }
        at += size;
    }
    return n;
}

int run_hvp(const options *o, FILE *out, look how, failure *f) {
    problem   p;
    direction d = {0};
    double   *product = NULL;
    char      shape[400];
    if (problem_for_derivatives(&p, o, f)) {
        if (cot_size(p.y) != 1)
            failure_set(f, EXIT_USAGE, "shape",
                        "[hvp] the value has shape %s; only a value of one element has a Hessian",
                        shape_text(cot_shape_of(p.y), shape));
        else if (direction_make(&d, &p, true, f)) {
            product = malloc(((size_t)d.size + 1) * sizeof *product);
            if (!product)
                failure_memory(f);
            else if (cot_hvp(p.y, d.n, d.vars, d.v, product) != COT_OK)
                tape_failure(p.t, f);
            else
                result_print(&p, out, how, "hvp", "d²/d", " ds", keep_wanted(&d, product), d.inputs, product, f);
        }
    }
    free(product);
    direction_free(&d);
    problem_close(&p);
    return EXIT_FINE;
}
