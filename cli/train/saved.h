/* saved.h: a trained model in its folder: what it is, and its parameters, without derivatives. */
#ifndef COT_CLI_SAVED_H
#define COT_CLI_SAVED_H

#include <cotangent.h>
#include <cotangent_data.h>

#include "io/failure.h"
#include "models/gpt.h"

typedef struct saved {
    char           path[4096]; /* DIR/model.safetensors */
    const char    *folder;
    cot_file      *file;
    const char    *model; /* "gpt", …: text of the file */
    cot_tape      *t;
    cot_params    *p;
    gpt            net; /* of gpt */
    cot_tokenizer *k;   /* of gpt; NULL: the folder has none */
} saved;

/* Opens DIR/model.safetensors and finds out which model it is. Call saved_close in any case. */
bool saved_open(saved *s, const char *folder, failure *f);
void saved_close(saved *s);
/* Makes the parameters of a gpt and reads them, and its tokenizer. Shapes come from the tensors; so
 * files of GPT-2 in Hugging Face's layout are fine too, whose heads have 64 numbers each. */
bool saved_gpt(saved *s, failure *f);
/* The parameters of another model, made by running `net` on x. */
bool saved_load(saved *s, cot_net net, cot_var x, failure *f);
/* The error of the tape as a failure; true: there is none. */
bool saved_fine(const saved *s, failure *f);

/* sample.c: n tokens behind the `known` that are in ids already, which has room for all; through
 * the cache or without it, which gives the same. */
typedef struct gpt_drawing {
    double   temperature, top_p; /* temperature 0: always the likeliest */
    uint64_t seed;
    bool     no_cache;
} gpt_drawing;
bool gpt_draw(saved *s, const gpt_drawing *how, int64_t *ids, int64_t known, int64_t n, failure *f);

#endif
