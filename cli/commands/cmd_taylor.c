/* cmd_taylor.c: cotangent taylor: all derivatives along a direction, up to an order. */
#include "commands/commands.h"

#include <stdlib.h>
#include <string.h>

#include "commands/along.h"
#include "problem/expression.h"
#include "problem/results.h"
#include "problem/values.h"

/* "value", "d/ds", "d²/ds²", …, "d⁶⁰/ds⁶⁰". */
static void name_order(int order, char *buf, size_t size) {
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char                     power[8] = "";
    if (order > 9) strcat(power, raised[order / 10]);
    if (order > 1) strcat(power, raised[order % 10]);
    snprintf(buf, size, order ? "d%s/ds%s" : "value", power, power);
}

/* Prints a row for each order, beginning with the value. */
static void print_rows(const problem *p, FILE *out, look how, int order, const cot_array *rows, labelled *lines) {
    if (p->o->json) {
        cot__json j = cot__json_to(out);
        cot__json_open(&j, '{');
        cot__json_key(&j, "value");
        print_json(&j, &rows[0]);
        cot__json_key(&j, "taylor");
        cot__json_open(&j, '[');
        for (int m = 1; m <= order; m++) print_json(&j, &rows[m]);
        cot__json_close(&j, ']');
        result_note(p, out, &j);
        cot__json_close(&j, '}');
        fputs("\n", out);
    } else {
        for (int m = 0; m <= order; m++) {
            name_order(m, lines[m].label, sizeof lines[m].label);
            lines[m].value = &rows[m];
        }
        print_values(out, how, order + 1, lines);
        result_note(p, out, NULL);
    }
}

static bool print_taylor(const problem *p, FILE *out, look how, const double *series, failure *f) {
    int        order = p->o->order;
    int64_t    size = cot_size(p->y);
    cot_array *rows = calloc((size_t)order + 1, sizeof *rows);
    labelled  *lines = calloc((size_t)order + 1, sizeof *lines);
    bool       fine = (rows && lines) || failure_memory(f);
    fine = fine && value_of_var(p->y, &rows[0], f);
    for (int m = 1; fine && m <= order; m++)
        fine = result_block(&rows[m], rows[0].dtype, rows[0].shape, series + m * size, size, 0, 1, 0, size, f);
    if (fine) print_rows(p, out, how, order, rows, lines);
    for (int m = 0; rows && m <= order; m++) free(rows[m].data);
    free(rows);
    free(lines);
    return fine;
}

int run_taylor(const options *o, FILE *out, look how, failure *f) {
    problem   p;
    direction d = {0};
    double   *series = NULL;
    if (problem_for_derivatives(&p, o, f) && direction_make(&d, &p, o->tangent_count == 0, f)) {
        /* with a single number as input there is only one direction */
        if (o->tangent_count == 0 && d.size == 1) d.v[0] = 1;
        series = malloc(((size_t)o->order + 1) * ((size_t)cot_size(p.y) + 1) * sizeof *series);
        if (o->tangent_count == 0 && d.size != 1)
            failure_usage(f, "taylor needs a direction: at least one --along name=V; inputs without one do not move");
        else if (!series)
            failure_memory(f);
        else if (cot_taylor_values(p.y, d.n, d.vars, 1, d.v, o->order, series) != COT_OK)
            tape_failure(p.t, f);
        else
            print_taylor(&p, out, how, series, f);
    }
    free(series);
    direction_free(&d);
    problem_close(&p);
    return EXIT_FINE;
}
