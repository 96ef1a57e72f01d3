/* cmd_cost.c: cotangent cost: what a derivative costs in either mode, for a function or for sizes
 * alone. */
#include "commands/commands.h"

#include <string.h>

#include "problem/expression.h"
#include "problem/problem.h"
#include "trace/cost/cost.h"

static void print_cost(const options *o, FILE *out, const cot__cost *c) {
    if (!o->json) {
        cot__cost_table(out, c);
        return;
    }
    cot__json j = cot__json_to(out);
    cot__cost_json(&j, c);
    fputs("\n", out);
}

int run_cost(const options *o, FILE *out, look how, failure *f) {
    problem   p;
    cot__cost c;
    char      why[512];
    (void)how;
    if (o->inputs || o->outputs) {
        if (o->file || o->positional_count)
            failure_usage(f, "cost takes an expression, or --inputs and --outputs, not both");
        cot__cost_of_sizes(&c, o->inputs ? o->inputs : 1, o->outputs ? o->outputs : 1);
        print_cost(o, out, &c);
        return EXIT_FINE;
    }
    if (problem_for_derivatives(&p, o, f)) {
        if (cot__cost_of(&c, p.y, p.wanted_count, p.wanted, why)) print_cost(o, out, &c);
        else sentence_failure(why, "cost", f);
    }
    problem_close(&p);
    return EXIT_FINE;
}
