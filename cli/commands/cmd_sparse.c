/* cmd_sparse.c: cotangent jac --sparse and hess --sparse: only the entries that can differ from
 * zero, computed by coloured sweeps. */
#include "problem/command.h"

#include <stdlib.h>
#include <string.h>

#include "commands/directions.h"
#include "output/entries.h"
#include "problem/expression.h"
#include "problem/results.h"
#include "problem/values.h"

typedef struct matrix {
    cot_sparse_plan *plan;
    cot_sparse_info  info;
    double          *values;
    const char      *mode;
    cot_array        value; /* of the expression */
    int              n;
    problem_input  **of;
    /* by row: the entries of the present columns */
    int64_t         *from, *to;
} matrix;

static void matrix_free(matrix *m) {
    cot_sparse_plan_destroy(m->plan);
    free(m->values);
    free(m->value.data);
    free(m->of);
    free(m->from);
    free(m->to);
}

bool sparse_plan_failure(const problem *p, failure *f) {
    const char *fact = cot_tape_message(p->t), *rule = strstr(fact, "; where most entries");
    if (!rule || !(fact = strchr(fact, ' '))) return tape_failure(p->t, f);
    return failure_set(f, EXIT_RUN, "limit",
                       "[%s]%.*s; without --sparse it is made whole, products (vjp, jvp, hvp) need no matrix, and "
                       "--wrt takes fewer inputs",
                       p->op, (int)(rule - fact), fact);
}

/* Takes memory for the entries of the plan. All rows begin at their first entry. */
static bool matrix_open(matrix *m, const problem *p, failure *f) {
    if (!m->plan) return sparse_plan_failure(p, f);
    m->info = cot_sparse_plan_info(m->plan);
    if (m->info.nnz > MATRIX_MOST)
        return failure_set(f, EXIT_RUN, "limit",
                           "[%s] the matrix has %lld entries; at most %d are made. Use products (vjp, jvp, hvp), or "
                           "--wrt for fewer inputs",
                           p->op, (long long)m->info.nnz, MATRIX_MOST);
    m->values = malloc(((size_t)m->info.nnz + 1) * sizeof *m->values);
    m->from = malloc(((size_t)m->info.rows + 1) * sizeof *m->from);
    m->to = malloc(((size_t)m->info.rows + 1) * sizeof *m->to);
    if (!m->values || !m->from || !m->to) return failure_memory(f);
    for (int64_t i = 0; i < m->info.rows; i++) m->from[i] = m->to[i] = m->info.row_start[i];
    m->of = result_wanted(p, &m->n, f);
    return m->of && value_of_var(p->y, &m->value, f);
}

/* Goes on to the next columns, up to `right`. Returns the number of their entries. */
static int64_t next_columns(matrix *m, int64_t right) {
    int64_t count = 0;
    for (int64_t i = 0; i < m->info.rows; i++) {
        m->from[i] = m->to[i];
        while (m->to[i] < m->info.row_start[i + 1] && m->info.col[m->to[i]] < right) m->to[i]++;
        count += m->to[i] - m->from[i];
    }
    return count;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_entries(const matrix *m, entries *list, int64_t left) {
    for (int64_t i = 0; i < m->info.rows; i++)
        for (int64_t e = m->from[i]; e < m->to[i]; e++) entries_put(list, i, m->info.col[e] - left, m->values[e]);
}

static void print_text(matrix *m, const problem *p, FILE *out, look how) {
    print_values(out, how, 1, &(labelled){"value", &m->value});
    fprintf(out, "%smode: %s, %d colour%s%s\n", how.colour ? "\033[2m" : "", m->mode, m->info.colours,
            m->info.colours == 1 ? "" : "s", how.colour ? "\033[0m" : "");
    if (m->info.hessian) {
        int64_t at = 0;
        entries list = {out, m->info.rows, m->info.cols, m->info.nnz, p->o->dtype, 0};
        entries_head(&list, how, "hessian");
        for (int k = 0; m->n > 1 && k < m->n; at += m->of[k++]->value.size)
            fprintf(out, "%s%s from %lld%s", k ? ", " : "rows and columns: ", m->of[k]->name, (long long)at,
                    k + 1 == m->n ? "\n" : "");
        next_columns(m, m->info.cols);
        print_entries(m, &list, 0);
    }
    for (int64_t k = 0, left = 0; !m->info.hessian && k < m->n; left += m->of[k++]->value.size) {
        char    name[96];
        int64_t columns = m->of[k]->value.size, count = next_columns(m, left + columns);
        entries list = {out, m->info.rows, columns, count, p->o->dtype, 0};
        snprintf(name, sizeof name, "d/d%.80s", m->of[k]->name);
        entries_head(&list, how, name);
        print_entries(m, &list, left);
    }
    result_note(p, out, NULL);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Writes the present columns as members "shape", "row_start", "col", "values" of the open
 * object. */
static void json_entries(const matrix *m, const problem *p, cot__json *j, int64_t columns, int64_t left) {
    int64_t start = 0;
    cot__json_key(j, "shape");
    cot__json_open(j, '[');
    cot__json_integer(j, m->info.rows);
    cot__json_integer(j, columns);
    cot__json_close(j, ']');
    cot__json_key(j, "row_start");
    cot__json_open(j, '[');
    cot__json_integer(j, 0);
    for (int64_t i = 0; i < m->info.rows; i++) cot__json_integer(j, start += m->to[i] - m->from[i]);
    cot__json_close(j, ']');
    cot__json_key(j, "col");
    cot__json_open(j, '[');
    for (int64_t i = 0; i < m->info.rows; i++)
        for (int64_t e = m->from[i]; e < m->to[i]; e++) cot__json_integer(j, m->info.col[e] - left);
    cot__json_close(j, ']');
    cot__json_key(j, "values");
    cot__json_open(j, '[');
    for (int64_t i = 0; i < m->info.rows; i++) {
        for (int64_t e = m->from[i]; e < m->to[i]; e++) {
            if (p->o->dtype == COT_F64) cot__json_number(j, m->values[e]);
            else cot__json_float(j, (float)m->values[e]);
        }
    }
    cot__json_close(j, ']');
}

static void json_hessian(matrix *m, const problem *p, cot__json *j) {
    int64_t at = 0;
    next_columns(m, m->info.cols);
    json_entries(m, p, j, m->info.cols, 0);
    cot__json_key(j, "offsets");
    cot__json_open(j, '{');
    for (int k = 0; k < m->n; at += m->of[k++]->value.size) {
        cot__json_key(j, m->of[k]->name);
        cot__json_integer(j, at);
    }
    cot__json_close(j, '}');
}

static void json_jacobian(matrix *m, const problem *p, cot__json *j) {
    for (int64_t k = 0, left = 0; k < m->n; left += m->of[k++]->value.size) {
        cot__json_key(j, m->of[k]->name);
        cot__json_open(j, '{');
        next_columns(m, left + m->of[k]->value.size);
        json_entries(m, p, j, m->of[k]->value.size, left);
        cot__json_close(j, '}');
    }
}

static void print_sparse_json(matrix *m, const problem *p, FILE *out) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__json_key(&j, "value");
    print_json(&j, &m->value);
    cot__json_key(&j, "mode");
    cot__json_string(&j, m->mode);
    cot__json_key(&j, "colours");
    cot__json_integer(&j, m->info.colours);
    cot__json_key(&j, m->info.hessian ? "hessian" : "jacobian");
    cot__json_open(&j, '{');
    if (m->info.hessian) json_hessian(m, p, &j);
    else json_jacobian(m, p, &j);
    cot__json_close(&j, '}');
    result_note(p, out, &j);
    cot__json_close(&j, '}');
    fputs("\n", out);
}

/* ---- commands -------------------------------------------------------------------------------- */

bool sparse_jacobian_print(const problem *p, FILE *out, look how, failure *f) {
    matrix m = {.plan = cot_sparse_jacobian_plan(1, &p->y, p->wanted_count, p->wanted, p->o->mode)};
    bool   fine = matrix_open(&m, p, f);
    fine        = fine && (cot_sparse_jacobian(m.plan, 1, &p->y, p->wanted_count, p->wanted, m.values) == COT_OK ||
                    tape_failure(p->t, f));
    m.mode = m.info.mode == COT_FORWARD ? "forward" : "reverse";
    if (fine && p->o->json) print_sparse_json(&m, p, out);
    else if (fine) print_text(&m, p, out, how);
    matrix_free(&m);
    return fine;
}

bool sparse_hessian_print(const problem *p, FILE *out, look how, failure *f) {
    if (p->o->mode == COT_REVERSE)
        return failure_usage(f, "hess --sparse sweeps forward over the gradient; it has no --mode reverse");
    matrix m = {.plan = cot_sparse_hessian_plan(p->y, p->wanted_count, p->wanted), .mode = "forward over reverse"};
    bool   fine = matrix_open(&m, p, f);
    fine        = fine &&
           (cot_sparse_hessian(m.plan, p->y, p->wanted_count, p->wanted, m.values) == COT_OK || tape_failure(p->t, f));
    if (fine && p->o->json) print_sparse_json(&m, p, out);
    else if (fine) print_text(&m, p, out, how);
    matrix_free(&m);
    return fine;
}
