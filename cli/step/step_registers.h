/* step_registers.h: finds the adjoint of any node after any number of steps of the sweep, without
 * walking the steps. */
#ifndef COT_CLI_STEP_REGISTERS_H
#define COT_CLI_STEP_REGISTERS_H

#include "io/failure.h"
#include "trace/trace.h"

typedef struct step_registers {
    int64_t *first;   /* node i has entries first[i] … first[i + 1] - 1 */
    int64_t *step;    /* in the order of the sweep: the step that added, and */
    int     *add;     /* the number of the addition in that step */
    int64_t *step_of; /* the step of node i; -1: it has none */
} step_registers;

bool registers_open(step_registers *r, const cot__trace *tr, failure *f);
void registers_close(step_registers *r);

/* The adjoint of a node after `swept` steps; false when nothing has arrived yet. */
bool registers_read(const step_registers *r, const cot__trace *tr, int64_t node, int64_t swept, cot__view *sum);

#endif
