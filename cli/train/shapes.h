/* shapes.h: what a step of a model or an expression would take, from its shapes alone. */
#ifndef COT_CLI_SHAPES_H
#define COT_CLI_SHAPES_H

#include "io/failure.h"
#include "models/gpt.h"
#include "problem/problem.h"
#include "trace/cost/forecast.h"

typedef struct shapes {
    bool      is_gpt; /* otherwise it is mnist */
    gpt       net;    /* of gpt */
    int64_t   batch;
    cot_dtype precision;
} shapes;

/* The expression of the command line, recorded for a forecast: by the shapes of its inputs, unless
 * it needs their values. *all_selected: it has masks, which are taken to select everything. Call
 * problem_close in any case. */
bool shapes_of_expression(problem *p, const options *o, bool *all_selected, failure *f);

/* The forecast of a step, with what is enough if `least`, and how many numbers the parameters are.
 * Call cot__forecast_free in any case. */
bool shapes_forecast(const shapes *m, bool least, cot__forecast *a, int64_t *parameters, failure *f);
/* The same, with what is enough, at once however many layers there are: of many equal ones only
 * some are recorded. */
bool shapes_forecast_layers(const shapes *m, cot__forecast *a, int64_t *parameters, failure *f);

#endif
