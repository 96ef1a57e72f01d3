/* The common part of the styles that use the library: a tape, leaves and scratch, made once before
 * the timing. */
#ifndef ADBENCH_COT_COMMON_H
#define ADBENCH_COT_COMMON_H

#include "problems.h"

#include <cotangent.h>

struct ab_cot {
    const struct ab_instance *in;
    cot_tape                 *tape;
    cot_mark                  start;   /* the place on the tape behind the leaves of `open` */
    cot_var                  *vars;    /* scratch */
    double                   *numbers; /* scratch */
    size_t                    scratch_bytes, peak_bytes;
    /* style tensor: the first `given` vars are leaves and constants of `open`, and the derivative
     * is by the first `wanted` of these */
    size_t                    given, wanted, vars_count;
};

/* A tape and scratch; NULL with an error when memory is short. */
struct ab_cot *ab_cot_create(const struct ab_instance *in, size_t vars, size_t numbers, struct ab_error *error);
/* Remembers how large the tape has become. */
void ab_cot_note_peak(struct ab_cot *s);
/* Notes the peak once more, then forgets all that was recorded since open. False, with a message,
 * if the tape had an error. */
bool   ab_cot_finish(struct ab_cot *s, struct ab_error *error);
size_t ab_cot_peak_bytes(const void *state);
void   ab_cot_close(void *state);

/* Style tensor, for the style compiled too: leaves and constants, and what is recorded of them. */
void   *ab_open_gmm(const struct ab_instance *in, struct ab_error *error);
void   *ab_open_lstm(const struct ab_instance *in, struct ab_error *error);
cot_var ab_record_gmm(const struct ab_cot *s);
cot_var ab_record_lstm(const struct ab_cot *s);
/* (lanes, 3, 3), the matrices of the angle-axis vectors turn, (lanes, 3), of which none is 0 */
cot_var ab_record_turn(cot_var turn);

#endif
