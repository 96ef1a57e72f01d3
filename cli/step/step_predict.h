/* step_predict.h: predictions: what the next step will find is asked before it is shown. */
#ifndef COT_CLI_STEP_PREDICT_H
#define COT_CLI_STEP_PREDICT_H

#include "step/step_draw.h"

/* Puts the question about the next step into m->question and opens the prompt; says so when there
 * is nothing to predict. */
void predict_ask(const step_view *v);
/* Judges what was typed, takes the step, and says whether it was right: a sign (+, - or 0), or a
 * number that is right within a twentieth. */
void predict_judge(const step_view *v);

#endif
