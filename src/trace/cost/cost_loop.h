/* cost_loop.h: what the way back through many equal steps keeps and runs again: a loop, or the
 * layers of a deep network.
 *
 * Each step hands a state of width × batch numbers to the next. Its reverse needs that state. Five
 * plans say which states are kept:
 *   plain      all of them, recorded on the tape
 *   sqrt       every √depth-th; the steps between two of them are recorded again, a stretch at a
 *              time
 *   binomial   at most `states`, besides the first and the last, as cot_loop_options says; the
 *              schedule is that of diff/loops (cot__revolve_split)
 *   micro      all of them, of one part of the batch at a time; gradients are added up
 *   limit      as many as fit into a number of bytes: the fastest of plain, sqrt and binomial that
 *              fits, all with the whole batch at once
 *
 * Time counts evaluations of a step, with a sweep as in cot__cost_of_sizes. */
#ifndef COT_COST_LOOP_H
#define COT_COST_LOOP_H

#include "trace/json/json.h"

enum { COT__PLAIN, COT__SQRT, COT__BINOMIAL, COT__MICRO, COT__LIMIT, COT__LOOP_PLANS };

typedef struct cot__loop_sizes {
    int64_t depth, width, batch; /* all at least 1 */
    int64_t states;              /* of the binomial plan */
    int64_t micro;               /* parts of the batch, the last one perhaps smaller */
    int64_t bytes;               /* of a number: 8, 4, or 2 for half precision; 0: 8 */
    double  limit;               /* in bytes; 0: none, and no plan of that name */
} cot__loop_sizes;

typedef struct cot__loop_plan {
    const char *name;
    int64_t     kept;  /* states held at once */
    int64_t     runs;  /* evaluations of a step, the first ones included */
    double      time, bytes;
    const char *as;    /* of the plan for a limit: the one that it is; else NULL */
} cot__loop_plan;

typedef enum cot__loop_event { COT__LOOP_KEEP, COT__LOOP_RUN, COT__LOOP_BACK } cot__loop_event;

/* Goes through the schedule of the binomial plan. visit (NULL: none) is told of each event in
 * order:
 *   KEEP   the state before step `from` is kept
 *   RUN    steps from … end - 1 run
 *   BACK   step `from` is played once more and reversed
 * Returns the evaluations of a step in all; *held gets the most states that are held at once. 0
 * when memory is short. */
int64_t cot__loop_schedule(int64_t depth, int64_t states, int64_t *held,
                           void (*visit)(void *to, cot__loop_event what, int64_t from, int64_t end), void *to);

/* All plans for these sizes; the name of a plan that there is not is NULL. False when memory is
 * short. */
bool cot__loop_plans(const cot__loop_sizes *sizes, cot__loop_plan plans[COT__LOOP_PLANS]);

/* Does a plan keep to the limit of these sizes? Without a limit: all do. */
bool cot__loop_plan_fits(const cot__loop_sizes *sizes, const cot__loop_plan plans[COT__LOOP_PLANS]);

/* The plans as an object and as a table. Up to a depth of COT__LOOP_SHOWN the object has the
 * schedule too. False when memory is short. */
#define COT__LOOP_SHOWN 1000
bool cot__loop_cost_json(cot__json *j, const cot__loop_sizes *sizes);
bool cot__loop_cost_table(FILE *out, const cot__loop_sizes *sizes);

#endif
