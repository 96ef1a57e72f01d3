/* problem.h: what most commands work on: an expression, values for its names, and what to
 * differentiate by.
 *
 * May call: the public library, expressions, traces, io, output. Must not touch: files and
 * terminals but through io. */
#ifndef COT_CLI_PROBLEM_H
#define COT_CLI_PROBLEM_H

#include "expr/expr.h"
#include "problem/options.h"

typedef struct problem_input {
    char     *name;
    cot_array value;
    bool      wanted;  /* differentiate by it */
    cot_array tangent; /* data NULL: none was given */
    cot_var   var;     /* after problem_record */
} problem_input;

typedef struct problem {
    const options *o;
    const char    *text; /* the expression */
    size_t         length;
    char          *own; /* text, when it was read from a file */
    cot__expr     *expr;
    int            n;
    problem_input *inputs; /* in the order of the command line */
    /* for each name of the expression (cot__expr_name): its place in inputs + 1 */
    int           *input_of;

    cot_tape       *t;
    /* length of the tape before the expression ran: spans belong to nodes from there on */
    int64_t         first;
    cot__expr_span *spans;
    int64_t         span_count;
    cot_var         y;
    int             wanted_count;
    cot_var        *wanted;      /* the vars to differentiate by */
    int64_t         wanted_size; /* elements of all of them */
    const char     *op;          /* the command, for messages */
    bool            derivatives; /* are asked for: a number as the result is a float */
} problem;

/* Reads the command line: expression, values, --wrt, --tangent. Everything that can be wrong
 * without running anything is said here. Call problem_close in any case. */
bool problem_open(problem *p, const options *o, failure *f);
/* Only the expression, of a *p that has o; *arguments and *count are what stands behind it on the
 * command line. */
bool problem_expression(problem *p, const char *const **arguments, int *count, failure *f);
/* Records the inputs (float ones as leaves, others as constants) and the expression on a new
 * tape. */
bool problem_record(problem *p, failure *f);
/* Both, and then: is there something to differentiate, and something to differentiate by? */
bool problem_for_derivatives(problem *p, const options *o, failure *f);
/* Drops what was recorded, to record it again with other values. */
void problem_forget(problem *p);
void problem_close(problem *p);

/* Runs the expression with these vars, one for each input. */
cot_var problem_run(const problem *p, cot_tape *t, const cot_var *vars, cot__expr_error *error, cot__expr_span **spans,
                    int64_t *span_count);

/* --seed, or 1 for a value of one element; it has y's shape. Fails when there is neither. */
bool problem_seed(const problem *p, cot_array *seed, failure *f);

#endif
