/* fit.h: a fit: an expression and a table. Some names of the expression are columns of the table,
 * the others are parameters.
 *
 * May call: the public library and its least squares in plain numbers, expressions, io, output,
 * problem. Must not touch: files and terminals but through io. */
#ifndef COT_CLI_FIT_H
#define COT_CLI_FIT_H

#include "io/data_file.h"
#include "optim/levenberg.h"
#include "output/print.h"
#include "problem/problem.h"
#include "io/progress.h"

typedef struct fit_column {
    const char *name; /* its name in the expression */
    int         at;   /* its number in the table */
    double     *values;
} fit_column;

typedef struct fit {
    problem         p; /* the expression; its inputs are the parameters with their starts */
    const char     *data;
    cot__data_table table;
    int             response; /* the column of the response */
    char            response_name[64];
    double         *y;
    int             column_count;
    fit_column     *columns; /* the columns that the expression uses */

    cot_tape *t;
    cot_mark  mark;   /* the place on the tape behind the columns */
    cot_var  *inputs; /* parameters, then columns */
    cot_var   model;  /* (rows): its value at the last point */
    double   *units;  /* (n, n): unit directions */
    double   *b, *r;  /* parameters (n) and residuals (rows) */
    progress  shown;
    int64_t   evaluations;
    failure  *f;
} fit;

/* fit_open.c: reads the command line and the table. Call fit_close also after a failure. */
bool fit_open(fit *x, const options *o, failure *f);
void fit_close(fit *x);

/* fit_model.c: the expression on the columns. */
bool fit_start(fit *x, failure *f);
bool fit_residuals(void *fit, const double *b, double *r);
bool fit_jacobian(void *fit, double *j);
/* The model at the parameters b for other values of its only column. False when the expression has
 * no such values. */
bool fit_curve(fit *x, int64_t n, const double *at, double *out);

/* fit_errors.c: t with P(|T| < t) = 0.95 for so many degrees of freedom; NaN without any. */
double fit_student(int64_t degrees);
/* A number to the second digit of its error; all its digits, if there is none. buf has 32 bytes. */
const char *fit_rounded(double v, double error, char *buf);

/* fit_print.c */
void fit_print(const fit *x, FILE *out, look how, const cot__fit_result *r, cot_fit_end end);
/* Writes "a = 1, b = 2", cut where buf ends. */
const char *fit_point(const fit *x, char *buf, size_t size);
/* Writes the columns of a row: ", where x = 1, z = 2,". */
const char *fit_row(const fit *x, int64_t row, char *buf, size_t size);
/* Writes the names of the marked parameters: "a and b". */
const char *fit_marked(const fit *x, const bool *marked, int *count, char *buf, size_t size);

/* fit_plot.c: writes an SVG file; draws data and curve in the terminal. */
void fit_plot(fit *x, FILE *out, const cot__fit_result *r);
void fit_chart(fit *x, FILE *out, look how);

#endif
