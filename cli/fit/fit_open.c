/* fit_open.c: makes a fit from the command line: finds which argument is the data, which names are
 * columns and which are parameters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem/command.h"
#include "fit/fit.h"
#include "problem/names.h"
#include "io/data_file.h"
#include "problem/values.h"

enum { LISTED = 400 }; /* longest list of names in a message, in bytes */

static int find_parameter(const fit *x, const char *name) {
    for (int k = 0; k < x->p.n; k++)
        if (strcmp(x->p.inputs[k].name, name) == 0) return k;
    return -1;
}

/* The names of the columns for a message; their numbers if the table has no names. */
static const char *list_columns(const cot__data_table *t, char *buf, size_t size) {
    if (t->names) return list_names(t->columns, t->names, buf, size);
    snprintf(buf, size, "1 to %d, without names", t->columns);
    return buf;
}

static bool add_parameter(fit *x, const char *argument, size_t length, failure *f) {
    const char *const *names;
    int                n = cot__expr_names(x->p.expr, &names);
    char               list[LISTED];
    char              *name = malloc(length + 1);
    if (!name) return failure_memory(f);
    memcpy(name, argument, length);
    name[length]               = 0;
    bool twice                 = find_parameter(x, name) >= 0;
    x->p.inputs[x->p.n++].name = name;
    if (twice) return failure_usage(f, "%.100s is given twice", name);
    if (cot__expr_uses(x->p.expr, name)) return true;
    if (cot__source_exists(x->p.text))
        return failure_usage(
            f, "the expression is '%.100s', which is the name of a file: the expression comes first, then the data",
            x->p.text);
    if (cot__source_exists(argument + length + 1) || strcmp(name, "data") == 0)
        return failure_usage(
            f, "the expression has no name %.100s; the data are given by the name of their file alone: %.200s", name,
            argument + length + 1);
    const char *near = cot__nearest(name, n, names);
    if (near) return failure_usage(f, "the expression has no name %.100s; did you mean %s?", name, near);
    if (n == 0) return failure_usage(f, "the expression has no name %.100s: it needs no values", name);
    return failure_usage(f, "the expression has no name %.100s; it has %s", name,
                         list_names(n, names, list, sizeof list));
}

static bool read_start(problem_input *x, const char *text, failure *f) {
    char shape[400];
    if (!value_read(x->name, text, COT_F64, &x->value, f)) return false;
    if (x->value.dtype != COT_F64 || x->value.shape.ndim != 0)
        return failure_usage(f, "%.100s starts at one real number, not at %s of shape %s", x->name,
                             cot_dtype_name(x->value.dtype), shape_text(x->value.shape, shape));
    if (!isfinite(*(double *)x->value.data))
        return failure_usage(f, "%.100s starts at %s; a start is finite", x->name,
                             isnan(*(double *)x->value.data) ? "nan" : "infinity");
    return true;
}

/* Reads DATA and name=start, in any order behind the expression. */
static bool read_arguments(fit *x, const char *const *arguments, int count, failure *f) {
    const command *c = x->p.o->command;
    x->p.inputs      = calloc((size_t)count + 1, sizeof *x->p.inputs);
    if (!x->p.inputs) return failure_memory(f);
    for (int i = 0; i < count; i++) {
        size_t length = name_length(arguments[i]);
        if (length && !add_parameter(x, arguments[i], length, f)) return false;
        if (length) continue;
        if (x->data)
            return failure_usage(f, "'%.100s' is not name=start; the data are in %.100s", arguments[i], x->data);
        x->data = arguments[i];
    }
    if (!x->data) return failure_usage(f, "fit needs data: cotangent fit %s", c->usage);
    if (x->p.n == 0) return failure_usage(f, "fit needs parameters to find: name=start for each");
    if (x->p.o->file && strcmp(x->p.o->file, "-") == 0 && strcmp(x->data, "-") == 0)
        return failure_usage(f, "only one of the expression and the data can come from the standard input");
    for (int i = 0, k = 0; i < count; i++)
        if (name_length(arguments[i]) && !read_start(&x->p.inputs[k++], strchr(arguments[i], '=') + 1, f)) return false;
    return true;
}

/* --y NAME, or --y N with the number of a column. Without --y the response is column y, or the
 * first column of a table without names. */
static bool choose_response(fit *x, failure *f) {
    const cot__data_table *t    = &x->table;
    const char            *wish = x->p.o->y;
    char                   list[LISTED];
    snprintf(x->response_name, sizeof x->response_name, "%.60s", wish && t->names ? wish : "y");
    if (!wish && !t->names) return true;
    x->response = cot__data_table_find(t, wish ? wish : "y");
    if (x->response >= 0) return true;
    if (x->response == COT__COLUMN_TWICE)
        return failure_usage(f, "%.200s has more than one column %.60s; choose one by its number: --y N", t->path,
                             x->response_name);
    char     *end;
    long long number = wish ? strtoll(wish, &end, 10) : 0;
    if (wish && *end == 0 && number >= 1 && number <= t->columns) {
        x->response = (int)number - 1;
        if (t->names) snprintf(x->response_name, sizeof x->response_name, "%.60s", t->names[x->response]);
        return true;
    }
    return failure_usage(f, "%.200s has no column %.60s; %s %s%s%s", t->path, wish ? wish : "y",
                         t->columns == 1 ? "its only column is" : "its columns are", list_columns(t, list, sizeof list),
                         t->columns == 1 ? " (commas, semicolons, tabs or blanks stand between cells)" : "",
                         wish ? "" : "; choose one with --y NAME");
}

/* x or x1, x2, …: the columns beside the response, in their order. */
static int numbered_column(const fit *x, const char *name) {
    char *end;
    if (name[0] != 'x') return COT__COLUMN_NONE;
    long long number = name[1] ? strtoll(name + 1, &end, 10) : 1;
    if (name[1] && (*end || name[1] < '1' || name[1] > '9')) return COT__COLUMN_NONE;
    if (number < 1 || number >= x->table.columns) return COT__COLUMN_NONE;
    return (int)number - 1 < x->response ? (int)number - 1 : (int)number;
}

/* Refuses a column whose name is known to expressions, such as pi: either meaning would be wrong
 * for some user. */
static bool known_names_are_no_columns(const fit *x, failure *f) {
    static const char *const known[] = {"pi",  "e",       "inf",   "nan",      "f64",   "float64", "float", "double",
                                        "f32", "float32", "bf16",  "bfloat16", "f16",   "float16", "i64",   "int64",
                                        "int", "i32",     "int32", "u8",       "uint8", "bool",    "bool_"};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (cot__expr_uses(x->p.expr, known[k]) && cot__data_table_find(&x->table, known[k]) != COT__COLUMN_NONE)
            return failure_usage(f, "%s is a %s in expressions and a column of %.200s; rename the column", known[k],
                                 k < 4 ? "number" : "dtype", x->table.path);
    return true;
}

/* Can the names of all columns be written in an expression? "time (s)" cannot. */
static bool names_are_names(const cot__data_table *t) {
    char text[128];
    for (int k = 0; t->names && k < t->columns; k++) {
        int length = snprintf(text, sizeof text, "%.100s=", t->names[k]);
        if (name_length(text) != (size_t)length - 1) return false;
    }
    return t->names != NULL;
}

static bool choose_columns(fit *x, failure *f) {
    const cot__data_table *t = &x->table;
    const char *const     *names;
    int                    n = cot__expr_names(x->p.expr, &names);
    char                   list[LISTED];
    if (!known_names_are_no_columns(x, f)) return false;
    x->columns = calloc((size_t)n + 1, sizeof *x->columns);
    if (!x->columns) return failure_memory(f);
    for (int k = 0; k < n; k++) {
        int at = cot__data_table_find(t, names[k]);
        if (find_parameter(x, names[k]) >= 0) {
            if (at == COT__COLUMN_NONE) continue;
            return failure_usage(f, "%.60s is a parameter and a column of %.200s; give the parameter another name",
                                 names[k], t->path);
        }
        if (at == COT__COLUMN_TWICE)
            return failure_usage(f, "%.200s has more than one column %.60s; rename one", t->path, names[k]);
        if (at == COT__COLUMN_NONE && !t->names && strcmp(names[k], "y") == 0) at = x->response;
        if (at == COT__COLUMN_NONE) at = numbered_column(x, names[k]);
        if (at == COT__COLUMN_NONE)
            return failure_usage(
                f, "%.60s is neither a parameter (%.60s=start) nor a column of %.200s, whose columns are %s%s",
                names[k], names[k], t->path, list_columns(t, list, sizeof list),
                names_are_names(t) ? "" : "; x, or x1, x2, … stand for those beside the fitted one");
        if (at == x->response)
            return failure_usage(f, "the expression uses %.60s, the column that it is fitted to", names[k]);
        x->columns[x->column_count++] = (fit_column){.name = names[k], .at = at};
    }
    return true;
}

static bool read_columns(fit *x, failure *f) {
    size_t bytes = ((size_t)x->table.rows + 1) * sizeof(double);
    x->y         = malloc(bytes);
    if (!x->y) return failure_memory(f);
    if (!table_column(&x->table, x->response, x->response_name, x->y, f)) return false;
    for (int k = 0; k < x->column_count; k++) {
        fit_column *c = &x->columns[k];
        c->values     = malloc(bytes);
        if (!c->values) return failure_memory(f);
        if (!table_column(&x->table, c->at, c->name, c->values, f)) return false;
    }
    return true;
}

/* Refuses y ~ a*x, as some programs write a model. */
static bool right_side_alone(const fit *x, failure *f) {
    const char *tilde = x->p.text ? strchr(x->p.text, '~') : NULL;
    if (!tilde || f->status != EXIT_USAGE) return false;
    *f = (failure){0};
    return failure_usage(f,
                         "a model is written without ~, the right side alone: '%.200s'; --y NAME chooses the column "
                         "that it is fitted to",
                         tilde + 1 + strspn(tilde + 1, " "));
}

bool fit_open(fit *x, const options *o, failure *f) {
    const char *const *arguments;
    int                count;
    *x = (fit){.p = {.o = o, .op = "fit"}, .f = f};
    if (!problem_expression(&x->p, &arguments, &count, f)) return right_side_alone(x, f);
    if (!read_arguments(x, arguments, count, f)) return false;
    if (!table_read(&x->table, x->data, f)) {
        /* values are given as @file, data are not */
        if (x->data[0] == '@' && cot__source_exists(x->data + 1)) {
            *f = (failure){0};
            failure_usage(f, "the data are named without @: %.200s", x->data + 1);
        }
        return false;
    }
    if (x->table.rows == 0)
        return failure_set(f, EXIT_DISAGREES, "rows", "%.200s has no rows of data: %s", x->table.path,
                           x->table.names ? "nothing follows the names of its columns" : "it is empty");
    if (!choose_response(x, f) || !choose_columns(x, f)) return false;
    if (x->table.rows < x->p.n)
        return failure_set(f, EXIT_DISAGREES, "rows",
                           "%.200s has %lld row%s, too few for %d parameter%s: it takes at least as many rows",
                           x->table.path, (long long)x->table.rows, x->table.rows == 1 ? "" : "s", x->p.n,
                           x->p.n == 1 ? "" : "s");
    return read_columns(x, f);
}

void fit_close(fit *x) {
    cot_tape_destroy(x->t);
    for (int k = 0; k < x->column_count; k++) free(x->columns[k].values);
    free(x->columns);
    free(x->y);
    free(x->inputs);
    free(x->units);
    free(x->b);
    cot__data_table_free(&x->table);
    problem_close(&x->p);
}
