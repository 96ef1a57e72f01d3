/* The common part of the styles that compile: a program, its run, and arrays for its inputs. */
#ifndef ADBENCH_COT_PROGRAM_H
#define ADBENCH_COT_PROGRAM_H

#include "cot_common.h"

#include <cotangent_program.h>

struct ab_program {
    cot_program *program;
    cot_run     *run;
    int          inputs, outputs;
    void       **in, **out;
    size_t       bytes; /* of the inputs */
};

/* The program of f for inputs of these types, whose arrays the caller fills. */
bool ab_open_program(struct ab_program *c, cot_fn f, void *user, int n, const cot_type *types, int m,
                     struct ab_error *error);
/* Runs it, with the outputs where c->out says, or one behind the other. */
bool ab_run_program(struct ab_program *c, struct ab_error *error);
bool ab_run_in_row(struct ab_program *c, double *outputs, struct ab_error *error);
void ab_close_program(struct ab_program *c);

#endif
