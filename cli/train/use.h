/* use.h: the commands that use a trained model. */
#ifndef COT_CLI_USE_H
#define COT_CLI_USE_H

#include "problem/command.h"

int run_sample(const options *o, FILE *out, look how, failure *f);
int run_predict(const options *o, FILE *out, look how, failure *f);
/* `compile --model DIR`: a trained mnist or gpt as C. */
int run_export(const options *o, FILE *out, look how, failure *f);

#endif
