/* results.c: results with names. */
#include "problem/results.h"

#include <stdlib.h>
#include <string.h>

#include "output/entries.h"
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

static double element(const cot_array *a, int64_t k) {
    return a->dtype == COT_F64 ? ((const double *)a->data)[k] : (double)((const float *)a->data)[k];
}

/* Derivatives by the entries of a sparse matrix stand where the entries do. */
static void print_sparse(FILE *out, look how, const char *label, const sparse_input *m, const cot_array *a) {
    entries list = {out, m->rows, m->columns, a->size, a->dtype, 0};
    entries_head(&list, how, label);
    for (int64_t k = 0; k < a->size; k++) entries_put(&list, m->row[k], m->column[k], element(a, k));
}

static void list_integers(cot__json *j, const char *key, int64_t n, const int64_t *list) {
    cot__json_key(j, key);
    cot__json_open(j, '[');
    for (int64_t k = 0; k < n; k++) cot__json_integer(j, list[k]);
    cot__json_close(j, ']');
}

static void json_sparse(cot__json *j, const sparse_input *m, const cot_array *a) {
    cot__json_open(j, '{');
    list_integers(j, "shape", 2, (const int64_t[]){m->rows, m->columns});
    cot__json_key(j, "row_start");
    cot__json_open(j, '[');
    cot__json_integer(j, 0);
    for (int64_t i = 0, k = 0; i < m->rows; i++) {
        while (k < a->size && m->row[k] == i) k++;
        cot__json_integer(j, k);
    }
    cot__json_close(j, ']');
    list_integers(j, "col", a->size, m->column);
    cot__json_key(j, "values");
    print_json(j, a);
    cot__json_close(j, '}');
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
        if (of[k]->sparse.row) json_sparse(&j, &of[k]->sparse, &parts[k]);
        else print_json(&j, &parts[k]);
    }
    cot__json_close(&j, '}');
    result_note(p, out, &j);
    cot__json_close(&j, '}');
    fputs("\n", out);
}

bool result_print(const problem *p, FILE *out, look how, const char *key, const char *before, const char *behind, int n,
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
        int arrays = 1;
        lines[0] = (labelled){.label = "value", .value = &value};
        for (int k = 0; k < n; k++) {
            if (of[k]->sparse.row) continue;
            snprintf(lines[arrays].label, sizeof lines->label, "%s%.80s%s", before, of[k]->name, behind);
            lines[arrays++].value = &parts[k];
        }
        print_values(out, how, arrays, lines);
        for (int k = 0; k < n; k++) {
            char name[sizeof lines->label];
            snprintf(name, sizeof name, "%s%.80s%s", before, of[k]->name, behind);
            if (of[k]->sparse.row) print_sparse(out, how, name, &of[k]->sparse, &parts[k]);
        }
        result_note(p, out, NULL);
    }
    for (int k = 0; parts && k < n; k++) free(parts[k].data);
    free(parts);
    free(lines);
    free(value.data);
    return fine;
}
