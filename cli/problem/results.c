/* results.c: results with names. */
#include "problem/results.h"

#include <stdlib.h>
#include <string.h>

#include "problem/values.h"

bool result_block(cot_array *a, cot_dtype dtype, cot_shape shape, const double *matrix, int64_t columns, int64_t top,
                  int64_t height, int64_t left, int64_t width, failure *f) {
    if (!array_allocate(a, dtype == COT_F64 ? COT_F64 : COT_F32, shape, f)) return false;
    for (int64_t i = 0, k = 0; i < height; i++) {
        for (int64_t j = 0; j < width; j++, k++) {
            double v = matrix[(top + i) * columns + left + j];
            if (a->dtype == COT_F64)
                ((double *)a->data)[k] = v;
            else
                ((float *)a->data)[k] = (float)v;
        }
    }
    return true;
}

problem_input **result_wanted(const problem *p, int *n, failure *f) {
    problem_input **list = malloc(((size_t)p->n + 1) * sizeof *list);
    *n = 0;
    if (!list) failure_memory(f);
    for (int k = 0; list && k < p->n; k++)
        if (p->inputs[k].wanted) list[(*n)++] = &p->inputs[k];
    return list;
}

void result_note(const problem *p, FILE *out, cot__json *j) {
    const char *note = cot_tape_note(p->t);
    if (!*note) return;
    if (j) {
        cot__json_key(j, "note");
        cot__json_string(j, note);
    } else {
        fprintf(out, "note: %s\n", note);
    }
}

static void print_as_json(const problem *p, FILE *out, const char *key, const cot_array *value, int n,
                          problem_input *const *of, const cot_array *parts) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__json_key(&j, "value");
    print_json(&j, value);
    cot__json_key(&j, key);
    cot__json_open(&j, '{');
    for (int k = 0; k < n; k++) {
        cot__json_key(&j, of[k]->name);
        print_json(&j, &parts[k]);
    }
    cot__json_close(&j, '}');
    result_note(p, out, &j);
    cot__json_close(&j, '}');
    fputs("\n", out);
}

bool result_print(const problem *p, FILE *out, look how, const char *key, const char *label, int n,
                  problem_input *const *of, const double *flat, failure *f) {
    cot_array *parts = calloc((size_t)n + 1, sizeof *parts);
    labelled  *lines = calloc((size_t)n + 1, sizeof *lines);
    cot_array  value = {0};
    bool       fine = (parts && lines) || failure_memory(f);
    fine = fine && value_of_var(p->y, &value, f);
    for (int k = 0; fine && k < n; k++) {
        const cot_array *x = &of[k]->value;
        fine = result_block(&parts[k], x->dtype, x->shape, flat, x->size, 0, 1, 0, x->size, f);
        flat += x->size;
    }
    if (fine && p->o->json) {
        print_as_json(p, out, key, &value, n, of, parts);
    } else if (fine) {
        lines[0] = (labelled){.label = "value", .value = &value};
        for (int k = 0; k < n; k++) {
            snprintf(lines[k + 1].label, sizeof lines->label, "%s%.80s", label, of[k]->name);
            lines[k + 1].value = &parts[k];
        }
        print_values(out, how, n + 1, lines);
        result_note(p, out, NULL);
    }
    for (int k = 0; parts && k < n; k++) free(parts[k].data);
    free(parts);
    free(lines);
    free(value.data);
    return fine;
}
