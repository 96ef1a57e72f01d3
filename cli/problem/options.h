/* options.h: the command line, parsed and checked. */
#ifndef COT_CLI_OPTIONS_H
#define COT_CLI_OPTIONS_H

#include <stdio.h>

#include "cotangent.h"
#include "io/failure.h"

struct command;

/* What `compile` prints beside the value. */
typedef enum derivative { NO_DERIVATIVE, GRAD, VJP, JVP, HVP, JAC, HESS } derivative;

/* Of train, sample and predict; what is not given is NULL or 0. */
typedef struct train_settings {
    const char *data, *checkpoint, *resume, *log, *tensorboard, *pictures, *initial, *prompt, *tokenizer, *model;
    const char *precision, *limit, *memory;
    int64_t     steps, seeds, every;
    int64_t     layers, heads, width, context, batch, vocabulary;
    int64_t     node, length;
    uint64_t    seed;
    double      rate, temperature, top_p;
    bool        quiet, has_node;
} train_settings;

/* Of cost --depth; 0: not given. */
typedef struct loop_sizes {
    int64_t depth, width, batch, states, micro;
} loop_sizes;

typedef struct options {
    const struct command *command;
    bool                  json, help, names, step, as_c, sparse, main, libm, print, report, training_step;
    bool                  rank, log, follow, chart;
    derivative            derivative;
    const char           *output;           /* -o */
    const char           *file;             /* -f */
    const char           *wrt, *seed;       /* as given; NULL: not given */
    const char           *html, *dot;
    const char           *x, *y, *plot, *svg;
    int                   top, smooth;      /* 0: not given */
    int                   most_iterations;
    double                tolerance;
    cot_dtype             dtype;
    cot_mode              mode;
    int                   threads;          /* 0: not given */
    int                   order;            /* of taylor */
    int64_t               inputs, outputs;  /* 0: not given */
    loop_sizes            sizes;
    int                   tangent_count, positional_count;
    const char          **tangents;         /* name=V, of --along or --tangent, and */
    const char           *direction;        /* the last of these two that was written */
    const char          **positionals;
    train_settings        train;
} options;

/* Parses the arguments behind the command's name. The lists belong to o: call options_free. */
bool options_parse(options *o, const struct command *command, int n, char *const *arguments, failure *f);
void options_free(options *o);

/* Is --json among the arguments? This is asked before they are parsed, so that errors about them
 * have the right form. */
bool options_ask_json(int n, char *const *arguments);

/* The options of a command, a line each: for --help. */
void options_print(FILE *out, const struct command *command);

#endif
