/* train_none.c: a page has neither files to train on nor folders of trained models, and not the
 * models that `memory` forecasts. */
#include "commands/commands.h"
#include "train/use.h"

static int none(const options *o, failure *f) {
    failure_usage(f, "%s is not in the page; the command on your machine has it", o->command->name);
    return EXIT_USAGE;
}

int run_train(const options *o, FILE *out, look how, failure *f) { return (void)out, (void)how, none(o, f); }
int run_sample(const options *o, FILE *out, look how, failure *f) { return (void)out, (void)how, none(o, f); }
int run_memory(const options *o, FILE *out, look how, failure *f) { return (void)out, (void)how, none(o, f); }
int run_predict(const options *o, FILE *out, look how, failure *f) { return (void)out, (void)how, none(o, f); }

int run_export(const options *o, FILE *out, look how, failure *f) {
    (void)o, (void)out, (void)how;
    failure_usage(f, "compile --model is not in the page; the command on your machine has it");
    return EXIT_USAGE;
}
