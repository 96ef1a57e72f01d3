/* command.h: the table of commands: their options, their help, and the function that runs each. */
#ifndef COT_CLI_COMMAND_H
#define COT_CLI_COMMAND_H

#include <stdio.h>

#include "problem/options.h"
#include "output/print.h"

/* The groups of options that a command has, a bit for each. */
enum {
    OPT_EXPRESSION = 1,       /* -f, --dtype, --threads */
    OPT_WRT        = 1 << 1,
    OPT_SEED       = 1 << 2,
    OPT_MODE       = 1 << 3,
    OPT_TANGENT    = 1 << 4,  /* --along, --tangent; one is needed */
    OPT_TRACE      = 1 << 5,  /* --step, --html, --dot */
    OPT_SIZES      = 1 << 6,  /* --inputs, --outputs, --depth and its like */
    OPT_NAMES      = 1 << 7,
    /* --y, --plot, --chart, --max-iterations, --tolerance; also -f and --threads */
    OPT_FIT        = 1 << 8,
    OPT_ORDER      = 1 << 9,  /* --order, --along, --tangent */
    OPT_SPARSE     = 1 << 10,
    /* --grad, --vjp, --jvp, --hvp, --jac, --hess, --main, --libm, -o; also --along, --tangent */
    OPT_COMPILE    = 1 << 11,
    OPT_RANK       = 1 << 12, /* --rank, --top, --svg */
    OPT_PLOT       = 1 << 13, /* --x, --y, --log, --smooth, --follow, --svg */
    /* --data, --steps, --seeds, --checkpoint, …, --threads, and those of a model */
    OPT_TRAIN      = 1 << 14,
    OPT_SAMPLE     = 1 << 15, /* --prompt, --temperature, --top-p, --length, --seed */
    OPT_PREDICT    = 1 << 16, /* --threads */
    /* --model, its sizes, --precision, --limit, --svg */
    OPT_MEMORY     = 1 << 17
};

typedef struct command {
    const char *name;
    const char *usage;   /* the text behind the name */
    const char *summary; /* one line */
    const char *about;   /* paragraphs */
    const char *examples;
    unsigned    options;
    /* Writes the whole result to `out`, which is memory, and returns the exit status. Or sets f;
     * then the text is dropped. */
    int (*run)(const options *o, FILE *out, look how, failure *f);
} command;

extern const command command_table[];
extern const int     command_count;

/* The command of this name. NULL, with a suggestion in f, when there is none. */
const command *command_find(const char *name, failure *f);

#endif
