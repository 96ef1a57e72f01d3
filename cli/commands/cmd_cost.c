/* cmd_cost.c: cotangent cost: what a derivative costs in either mode, for a function or for sizes
 * alone. */
#include "commands/commands.h"

#include <string.h>

#include "problem/expression.h"
#include "problem/limit.h"
#include "problem/problem.h"
#include "trace/cost/cost.h"
#include "trace/cost/cost_loop.h"

static void print_cost(const options *o, FILE *out, const cot__cost *c, failure *f) {
    if (!o->json) {
        if (!cot__cost_table(out, c)) failure_memory(f);
        return;
    }
    cot__json j = cot__json_to(out);
    cot__cost_json(&j, c);
    fputs("\n", out);
}

/* The greatest k with 2^k <= n. */
static int64_t log2_of(int64_t n) {
    int64_t k = 0;
    while (n >>= 1) k++;
    return k;
}

static int cost_of_depth(const options *o, FILE *out, failure *f) {
    const loop_sizes *given = &o->sizes;
    cot__loop_plan    plans[COT__LOOP_PLANS];
    cot__loop_sizes   s = {.depth = given->depth,
                           .width = given->width ? given->width : 1,
                           .batch = given->batch ? given->batch : 1};
    s.states = given->states ? given->states : s.depth > 1 ? log2_of(s.depth) : 1;
    s.micro = given->micro ? given->micro : s.batch;
    s.bytes = o->train.precision ? 2 : cot__dtype_size(o->dtype);
    if (!read_limit(o->train.limit, &s.limit, f)) return EXIT_USAGE;
    cot__json         j = cot__json_to(out);
    if (o->inputs || o->outputs || o->file || o->positional_count || o->wrt)
        failure_usage(f, "cost --depth takes neither an expression nor --inputs and --outputs");
    else if (o->train.precision && strcmp(o->train.precision, "bf16") != 0 && strcmp(o->train.precision, "f16") != 0)
        failure_usage(f, "--precision is bf16 or f16, not '%.40s'", o->train.precision);
    else if (s.micro > s.batch)
        failure_usage(f, "--micro is %lld, --batch is %lld; a part has at least one of the batch", (long long)s.micro,
                      (long long)s.batch);
    else if (!(o->json ? cot__loop_cost_json(&j, &s) : cot__loop_cost_table(out, &s)) || !cot__loop_plans(&s, plans))
        failure_memory(f);
    if (o->json) fputs("\n", out);
    return f->status != EXIT_FINE ? f->status : cot__loop_plan_fits(&s, plans) ? EXIT_FINE : EXIT_DISAGREES;
}

int run_cost(const options *o, FILE *out, look how, failure *f) {
    problem   p;
    cot__cost c;
    char      why[512];
    (void)how;
    if (o->sizes.depth) return cost_of_depth(o, out, f);
    if (o->sizes.width || o->sizes.batch || o->sizes.states || o->sizes.micro)
        return failure_usage(f, "--width, --batch, --states and --micro are of --depth; an expression has its own "
                                "sizes"),
               f->status;
    if (o->train.precision || o->train.limit) {
        failure_usage(f, "--precision and --limit of cost go with --depth");
        return EXIT_USAGE;
    }
    if (o->inputs || o->outputs) {
        if (o->file || o->positional_count)
            failure_usage(f, "cost takes an expression, or --inputs and --outputs, not both");
        else if (o->dtype != COT_F64 || o->wrt)
            failure_usage(f, "--dtype and --wrt are of an expression; --inputs and --outputs count numbers of 8 bytes");
        cot__cost_of_sizes(&c, o->inputs ? o->inputs : 1, o->outputs ? o->outputs : 1);
        print_cost(o, out, &c, f);
        return EXIT_FINE;
    }
    if (problem_for_derivatives(&p, o, f)) {
        if (cot__cost_of(&c, p.y, p.wanted_count, p.wanted, why)) print_cost(o, out, &c, f);
        else sentence_failure(why, "cost", f);
    }
    problem_close(&p);
    return EXIT_FINE;
}
