/* train.h: runs that train a model. A trainable brings data, parameters and a loss; the driver has
 * the steps, the checkpoints, what a person sees of them, and the summary over several seeds.
 *
 * May call: the public library, models, the folders of the command but commands and main. Must not
 * touch: tapes' insides. */
#ifndef COT_CLI_TRAIN_H
#define COT_CLI_TRAIN_H

#include "problem/command.h"
#include "watch/watch.h"

/* One run of a model, with one seed. */
typedef struct training {
    const options *o;
    void          *model; /* what open gave */
    uint64_t       seed;
    cot_tape      *t;
    cot_params    *p;
    cot_optim     *optim;
    cot_loader    *loader; /* NULL: the model sees all its data at each step */
    cot_key        key;    /* of the seed; that of a step is folded with its number */
    int64_t        step, steps; /* steps done, and to be done */
    watch         *w;
    double         loss;   /* of the last step */
    double         accuracy, test_loss; /* of the test, NAN where there is none */
} training;

typedef struct trainable {
    const char *name;
    const char *about;   /* a line for the help */
    int64_t     steps;   /* where --steps does not say */
    int64_t     every;   /* steps between two rows of validation; 0: none */
    /* Reads the data and checks the options; NULL after a failure. */
    void *(*open)(const options *o, failure *f);
    /* "the karate club: 34 nodes, …" */
    void (*describe)(const void *model, char *text, size_t room);
    /* Makes parameters and the optimiser of a run, on its tape. */
    bool (*begin)(training *r, failure *f);
    /* Records the loss of step r->step + 1. */
    cot_var (*loss)(training *r);
    /* A row of validation for the log; true: stop here. NULL: there is none. */
    bool (*validate)(training *r);
    /* The test, after the last step: sets accuracy or test_loss. */
    bool (*test)(training *r, failure *f);
    /* More of the last run for people: tables, and pictures into --pictures DIR. NULL: nothing. */
    bool (*show)(training *r, FILE *out, failure *f);
    /* More members of the JSON object. NULL: none. */
    void (*show_json)(training *r, cot__json *j);
    void (*close)(void *model); /* NULL is fine */
} trainable;

extern const trainable train_gcn, train_mnist, train_gpt, train_ode;

/* The model of this name, or a failure that lists them. */
const trainable *train_find(const char *name, failure *f);

#endif
