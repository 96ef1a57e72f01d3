/* problem.h: the data of most commands: an expression, values for its names, and the inputs to
 * differentiate by.
 *
 * May call: the public library, expressions, traces, io, output. Must not touch: files and
 * terminals but through io. */
#ifndef COT_CLI_PROBLEM_H
#define COT_CLI_PROBLEM_H

#include "expr/expr.h"
#include "problem/options.h"
#include "problem/sparse_input.h"

typedef struct problem_input {
    char        *name;
    cot_array    value;
    sparse_input sparse;  /* where the entries are, of which `value` holds the values */
    bool         wanted;  /* to differentiate by */
    cot_array    tangent; /* data NULL: none was given */
    cot_var      var;     /* set by problem_record */
} problem_input;

/* How a problem is recorded otherwise than by its values: floats with axes are not read where
 * their text says their shape (uniform), and have no data. */
typedef struct problem_way {
    cot_tape *(*open)(void);
    cot_var (*input)(cot_tape *t, const problem_input *x, bool leaf);
} problem_way;

typedef struct problem {
    const options     *o;
    const problem_way *way; /* NULL: by its values */
    const char    *text; /* the expression */
    size_t         length;
    char          *own; /* memory of the text, if it was read from a file */
    cot__expr     *expr;
    int            n;
    problem_input *inputs; /* in the order of the command line */
    /* for each name of the expression (cot__expr_name): the number of its input + 1 */
    int           *input_of;

    cot_tape       *t;
    /* length of the tape before the expression ran: spans are for nodes from there on */
    int64_t         first;
    cot__expr_span *spans;
    int64_t         span_count;
    cot_var         y;
    int             wanted_count;
    cot_var        *wanted;      /* the vars to differentiate by */
    int64_t         wanted_size; /* number of elements of all of them */
    const char     *op;          /* the command, for messages */
    /* Derivatives are asked for, so a result that is a plain number is a float. */
    bool            derivatives;
} problem;

/* Reads the command line: expression, values, --wrt, --along. All mistakes that can be found
 * without running are reported here. Call problem_close also after a failure. */
bool problem_open(problem *p, const options *o, failure *f);
/* Reads only the expression; p->o is set already. *arguments and *count are the arguments behind it
 * on the command line. */
bool problem_expression(problem *p, const char *const **arguments, int *count, failure *f);
/* Records the inputs (float ones as leaves, others as constants) and the expression on a new
 * tape. */
bool problem_record(problem *p, failure *f);
/* Does both. Then checks that there is a value to differentiate, and an input to differentiate
 * by. */
bool problem_for_derivatives(problem *p, const options *o, failure *f);
bool problem_for_derivatives_in(problem *p, const options *o, const problem_way *way, failure *f);
/* Forgets the recording, so that the problem can be recorded again with other values. */
void problem_forget(problem *p);
void problem_close(problem *p);

/* Runs the expression with these vars, one for each input. */
cot_var problem_run(const problem *p, cot_tape *t, const cot_var *vars, cot__expr_error *error, cot__expr_span **spans,
                    int64_t *span_count);

/* The seed of --seed, or 1 for a value of one element. It has the shape of y. Fails otherwise. */
bool problem_seed(const problem *p, cot_array *seed, failure *f);

#endif
