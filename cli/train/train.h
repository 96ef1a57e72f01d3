/* train.h: runs that train a model. A trainable brings data, parameters and a loss; the driver has
 * the steps, the checkpoints, what a person sees of them, and the summary over several seeds.
 *
 * May call: the public library, models, the folders of the command but commands and main. Must not
 * touch: tapes' insides, but for shapes.c. */
#ifndef COT_CLI_TRAIN_H
#define COT_CLI_TRAIN_H

#include "problem/command.h"
#include "train/shapes.h"
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
    cot_key        key;    /* of the seed; that of a step is cot_key_at its number */
    int64_t        step, steps; /* steps done, and to be done */
    bool           resumed, again; /* of train_resume */
    int64_t        planned;     /* the steps that a resumed run was to have before */
    char           torn[900];   /* a checkpoint that was passed over; "": none */
    uint64_t       data;        /* the checksum of its data, where a run is saved */
    watch         *w;
    double         loss, rate; /* of the last step; the rate is 0 where none was taken here */
    int            shown;  /* numbers of the last validation, which validate sets */
    watch_number   numbers[8];
    int                batch_arrays; /* of the last batch; 0: there is none */
    const cot_array   *batch;
    const char *const *batch_names;
    /* what a checkpoint holds beside the rest: arrays of the model's own */
    int                extras;
    const char *const *extra_names;
    const cot_array   *extra;
    cot_dtype      precision; /* COT_BF16, COT_F16: what layers compute in; COT_F32: no other */
    cot_loss_scale scale;     /* of COT_F16 */
    double         mixed[3];  /* of a checkpoint then: the scale, steps since it changed, skipped */
    double         accuracy, test_loss; /* of the test, NAN where there is none */
    int64_t        limit;     /* of the tape's memory, in bytes; 0: none */
} training;

typedef struct trainable {
    const char *name;
    const char *about; /* a line for the help */
    int64_t     steps; /* where --steps does not say */
    int64_t     every; /* steps between two rows of validation; 0: none */
    double      clip;  /* the norm that gradients may have; 0: any */
    bool        draws; /* its runs draw random numbers */
    bool        scheduled; /* the rate of a step depends on how many there will be */
    const char *unit;  /* what the examples of a step are called; NULL: "examples" */
    bool        tells_perplexity; /* its losses are of a token each */
    /* Reads the data and checks the options; NULL after a failure. */
    void *(*open)(const options *o, failure *f);
    /* "the karate club: 34 nodes, …" */
    void (*describe)(const void *model, char *text, size_t room);
    /* A checksum of the data, by which a run that goes on knows them. False: f says why not. */
    bool (*sum)(const void *model, uint64_t *sum, failure *f);
    /* Makes the parameters, the optimiser and perhaps a loader of a run, on its tape. */
    bool (*begin)(training *r, failure *f);
    /* The shapes of a step, from which its memory is known. NULL: only a step can tell. */
    void (*shapes)(const training *r, shapes *of);
    /* Numbers that a step handles: examples, floating-point operations; 0: not known. */
    void (*work)(const training *r, double *examples, double *flops);
    /* Records the loss of the next step. Of a failed loader it is invalid. */
    cot_var (*loss)(training *r);
    /* Sets the numbers of a validation; true: stop here. NULL: there is none. */
    bool (*validate)(training *r);
    /* The test, after the last step: sets accuracy or test_loss. */
    bool (*test)(training *r, failure *f);
    /* More of the last run for people: tables, and pictures into --pictures DIR. NULL: nothing. */
    bool (*show)(training *r, FILE *out, look how, failure *f);
    /* More members of the JSON object. NULL: none. */
    bool (*show_json)(training *r, cot__json *j, failure *f);
    /* What model.safetensors says of itself beside "model": up to `most` pairs. NULL: nothing. */
    int (*pairs)(const training *r, int most, cot_text_pair *pairs);
    /* More files beside it. NULL: none. */
    bool (*save)(const training *r, const char *folder, failure *f);
    void (*close)(void *model); /* NULL is fine */
} trainable;

extern const trainable train_gcn, train_mnist, train_gpt, train_ode;

/* The model of this name, or a failure that lists them. */
const trainable *train_find(const char *name, failure *f);
/* "gcn, mnist, gpt or ode" */
const char *train_names(void);

/* Data that a model could not read or make, for the reason that it gave. Always false. */
bool train_no_data(failure *f, const char *why);
/* The error of the run's tape as a failure; true: there is none. */
bool train_fine(const training *r, failure *f);
/* The same of its loader. */
bool train_loads(const training *r, failure *f);
/* The next batch of the loader, of arrays of these names; NULL after a failure of the loader. Where
 * the loss turns out to be no number, it is saved under them. */
const cot_array *train_batch(training *r, int n, const char *const *names);
/* --rate, or this one. */
double train_rate(const training *r, double rate);

/* train_run.c: one seed from beginning to end. `stopped` says that Ctrl-C came. The caller ends it
 * with train_end, whether it failed or not. */
bool train_run(training *r, const trainable *m, bool *stopped, failure *f);
void train_end(training *r);

/* train_files.c: checkpoints and the model at the end, in --checkpoint DIR or --resume DIR, which
 * is made here: one that cannot be is told before the first step. */
bool train_folder(const options *o, const char **folder, failure *f);
/* Goes on where a checkpoint ends; without one r->resumed stays false. Where --steps is left out
 * and the run had other steps than r->steps, r->steps becomes those and r->again says that the
 * optimiser must be made for them: begin and resume again. */
bool train_resume(training *r, const char *folder, failure *f);
/* What became of --resume, for people. */
void train_tell_resumed(const training *r, const trainable *m, const char *folder);
bool train_save(training *r, const char *folder, failure *f);
bool train_save_model(training *r, const trainable *m, const char *folder, failure *f);

#endif
