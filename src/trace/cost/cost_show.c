/* cost_show.c: a cost as JSON and as a table. */
#include "trace/cost/cost.h"

#include <string.h>

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

static void line(FILE *out, const char *name, const char *sweeps, double operations, double bytes) {
    char a[32], b[32];
    fprintf(out, "%-10s %12s %20s %20s\n", name, sweeps, isnan(operations) ? "-" : cot__shortest(operations, a),
            cot__shortest(bytes, b));
}

/* Breaks a sentence into lines of at most 79 characters. */
static void wrapped(FILE *out, const char *text) {
    for (int column = 0; *text;) {
        int word = (int)strcspn(text, " ");
        if (column + 1 + word > 79)
            fputc('\n', out), column = 0;
        else if (column)
            fputc(' ', out), column++;
        fprintf(out, "%.*s", word, text);
        column += word;
        text += word + (text[word] == ' ');
    }
    fputc('\n', out);
}

void cot__cost_table(FILE *out, const cot__cost *c) {
    char forward[32], reverse[32];
    snprintf(forward, sizeof forward, "%lld", (long long)c->inputs);
    snprintf(reverse, sizeof reverse, "%lld", (long long)c->outputs);
    fprintf(out, "%s input%s, %s output%s\n\n", forward, c->inputs == 1 ? "" : "s", reverse,
            c->outputs == 1 ? "" : "s");
    fprintf(out, "%-10s %12s %20s %20s\n", "", "sweeps", c->abstract ? "evaluations" : "operations",
            c->abstract ? "bytes at least" : "bytes");
    line(out, "function", "", c->function_operations, c->function_bytes);
    line(out, "forward", forward, c->forward_operations, c->forward_bytes);
    line(out, "reverse", reverse, c->reverse_operations, c->reverse_bytes);
    fprintf(out, "\ncheaper: %s\n", cheaper_names[c->cheaper + 1]);
    wrapped(out, c->why);
}
