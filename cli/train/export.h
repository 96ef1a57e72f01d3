/* export.h: functions of a trained model printed as C. */
#ifndef COT_CLI_EXPORT_H
#define COT_CLI_EXPORT_H

#include "problem/command.h"
#include "train/saved.h"

enum { EXPORT_MOST = 8 }; /* inputs, and outputs, of an exported function */

/* A function of vars, and what its file shall say of it. */
typedef struct exported {
    cot_fn      function;
    void       *user;
    const char *title;
    int         inputs, outputs;
    cot_type    types[EXPORT_MOST];
    const char *input_names[EXPORT_MOST], *output_names[EXPORT_MOST];
} exported;

/* Compiles it, and prints it or writes the files of -o. */
bool export_function(const exported *e, const options *o, FILE *out, failure *f);

/* export_step.c: the step that trains the model of s, which is open. */
bool export_step(saved *s, const options *o, FILE *out, failure *f);

#endif
