/* command.h: the commands, and what each of them gets and gives. */
#ifndef COT_CLI_COMMAND_H
#define COT_CLI_COMMAND_H

#include <stdio.h>

#include "problem/options.h"
#include "output/print.h"

/* Which options a command has: a bit for each group. */
enum {
    OPT_EXPRESSION = 1,       /* -f, --dtype, --threads */
    OPT_WRT        = 1 << 1,
    OPT_SEED       = 1 << 2,
    OPT_MODE       = 1 << 3,
    OPT_TANGENT    = 1 << 4,
    OPT_TRACE      = 1 << 5,  /* --step, --html, --dot */
    OPT_SIZES      = 1 << 6,  /* --inputs, --outputs */
    OPT_NAMES      = 1 << 7,
    OPT_FIT        = 1 << 8,  /* --y, --plot, --max-iterations, --tolerance; -f and --threads too */
    OPT_ALONG      = 1 << 9,  /* --along, --order */
    OPT_SPARSE     = 1 << 10
};

typedef struct command {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* a line */
    const char *about;   /* paragraphs */
    const char *examples;
    unsigned    options;
    /* Writes its whole result to `out`, which is memory, and returns the exit status; or sets f,
     * and what it wrote is dropped. */
    int (*run)(const options *o, FILE *out, look how, failure *f);
} command;

extern const command command_table[];
extern const int     command_count;

/* NULL, with a suggestion in f, when there is none of that name. */
const command *command_find(const char *name, failure *f);

#endif
