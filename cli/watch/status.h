/* status.h: the line of progress, and the numbers in it. It knows no terminal and no clock. */
#ifndef COT_CLI_STATUS_H
#define COT_CLI_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct run_status {
    const char *name;
    int64_t     step, steps; /* steps 0: unknown */
    double      loss;        /* a mean of the last ones */
    double      weight;      /* of that mean: 1 - 0.98^n after n losses */
    double      rate;        /* steps a second; 0: unknown */
    double      rate_at;     /* when it was measured, and at which step */
    int64_t     rate_step;
    double      examples, flops; /* of a step */
    const char *unit;            /* what those examples are called; NULL: "examples" */
    double      peak;            /* such operations a second of a matrix product; 0: unknown */
    double      memory;          /* bytes */
} run_status;

/* Takes a loss into the mean. One that is not finite is shown until a finite one follows. */
void status_loss(run_status *s, double loss);
/* Measures the rate at a time in seconds; what was measured before counts less the longer ago. */
void status_time(run_status *s, double now);
/* The line, in at most `width` columns: what does not fit is left out from the right. */
const char *status_text(const run_status *s, int width, char *buf, size_t size);

#endif
