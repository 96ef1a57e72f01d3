/* cost_show.c: a cost as JSON and as a table. */
#include "trace/cost/cost.h"

#include <string.h>

#include "trace/lines/grid.h"
#include "trace/lines/lines.h"

static const char *const cheaper_names[] = {"forward", "equal", "reverse"};

static void number_or_null(cot__json *j, double v) {
    if (isnan(v))
        cot__json_null(j);
    else
        cot__json_number(j, v);
}

static void part(cot__json *j, const char *name, int64_t sweeps, double operations, double bytes) {
    cot__json_key(j, name);
    cot__json_open(j, '{');
    if (sweeps >= 0) cot__json_key(j, "sweeps"), cot__json_integer(j, sweeps);
    cot__json_key(j, "operations"), number_or_null(j, operations);
    cot__json_key(j, "bytes"), cot__json_number(j, bytes);
    cot__json_close(j, '}');
}

void cot__cost_json(cot__json *j, const cot__cost *c) {
    cot__json_open(j, '{');
    cot__json_key(j, "inputs"), cot__json_integer(j, c->inputs);
    cot__json_key(j, "outputs"), cot__json_integer(j, c->outputs);
    part(j, "function", -1, c->function_operations, c->function_bytes);
    part(j, "forward", c->inputs, c->forward_operations, c->forward_bytes);
    part(j, "reverse", c->outputs, c->reverse_operations, c->reverse_bytes);
    cot__json_key(j, "cheaper"), cot__json_string(j, cheaper_names[c->cheaper + 1]);
    cot__json_key(j, "crossing");
    cot__json_open(j, '{');
    cot__json_key(j, "outputs"), number_or_null(j, c->crossing);
    cot__json_key(j, "why"), cot__json_string(j, c->why);
    cot__json_close(j, '}');
    cot__json_close(j, '}');
}

static void line(cot__grid *g, const char *name, const char *sweeps, double operations, double bytes) {
    char text[32];
    cot__grid_put(g, NULL, name);
    cot__grid_put(g, NULL, sweeps);
    cot__grid_put(g, NULL, isnan(operations) ? "-" : cot__shortest(operations, text));
    cot__grid_put(g, NULL, cot__shortest(bytes, text));
}

bool cot__cost_table(FILE *out, const cot__cost *c) {
    char      forward[32], reverse[32];
    cot__grid g = {.columns = 4, .column = {COT__LEFT, COT__RIGHT, COT__RIGHT, COT__RIGHT}};
    snprintf(forward, sizeof forward, "%lld", (long long)c->inputs);
    snprintf(reverse, sizeof reverse, "%lld", (long long)c->outputs);
    fprintf(out, "%s input%s, %s output%s\n\n", forward, c->inputs == 1 ? "" : "s", reverse,
            c->outputs == 1 ? "" : "s");
    cot__grid_put(&g, NULL, "");
    cot__grid_put(&g, NULL, "sweeps");
    cot__grid_put(&g, NULL, c->abstract ? "evaluations" : "operations");
    cot__grid_put(&g, NULL, c->abstract ? "bytes at least" : "bytes");
    line(&g, "function", "", c->function_operations, c->function_bytes);
    line(&g, "forward", forward, c->forward_operations, c->forward_bytes);
    line(&g, "reverse", reverse, c->reverse_operations, c->reverse_bytes);
    bool fine = cot__grid_print(out, &g);
    fprintf(out, "\ncheaper: %s\n", cheaper_names[c->cheaper + 1]);
    cot__paragraph(out, 79, 0, c->why);
    return fine;
}
