/* step_tangents.h: forward mode as a walk: for each input that moves a start and then every node
 * that has a tangent. */
#ifndef COT_CLI_STEP_TANGENTS_H
#define COT_CLI_STEP_TANGENTS_H

#include "io/failure.h"
#include "problem/traced.h"
#include "trace/tangents.h"

typedef struct step_tangents {
    cot__tangents w;
    int64_t      *moving; /* the nodes with tangents that are computed, in order */
    int64_t       count;
    bool          on;     /* forward mode was asked for, and there are tangents */
} step_tangents;

bool tangents_open(step_tangents *s, const traced *x, failure *f);
void tangents_close(step_tangents *s);

/* Steps of all walks. */
int64_t tangents_steps(const step_tangents *s);
/* The walk of a step, and the node that moves in it: the input at the start of a walk. */
int     tangents_walk(const step_tangents *s, int64_t step, int64_t *node, const traced *x);
/* The tangent of a node after so many steps, with strides of its own; false: not computed yet. */
bool    tangents_read(const step_tangents *s, const traced *x, int64_t node, int64_t swept, cot__view *v,
                      int64_t stride[COT_MAX_NDIM]);

#endif
