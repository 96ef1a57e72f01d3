/* saved.c: trained models from their folders. */
#include "train/saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/file/source.h"
#include "train/gpt_text.h"

bool saved_fine(const saved *s, failure *f) {
    if (!s->p || cot_tape_status(s->t) == COT_MEMORY) return failure_memory(f);
    if (cot_tape_status(s->t) == COT_OK) return true;
    return failure_said(f, EXIT_RUN, "run", "%.1100s", cot_tape_message(s->t));
}

static int tensor(const saved *s, const char *name) {
    char longer[200];
    int  k = cot_file_find(s->file, name);
    snprintf(longer, sizeof longer, "transformer.%s", name);
    return k >= 0 ? k : cot_file_find(s->file, longer);
}

bool saved_open(saved *s, const char *folder, failure *f) {
    *s = (saved){.folder = folder};
    snprintf(s->path, sizeof s->path, "%.4000s/model.safetensors", folder);
    s->file = cot_file_open(s->path, NULL);
    if (!s->file || cot_file_status(s->file) == COT_MEMORY) return failure_memory(f);
    if (cot_file_status(s->file) != COT_OK)
        return failure_set(f, EXIT_RUN, "file", "%.900s; `cotangent train MODEL --checkpoint DIR` writes one into DIR",
                           cot_file_message(s->file));
    s->model = cot_file_text(s->file, "model");
    if (!s->model && tensor(s, "wte.weight") >= 0) s->model = "gpt";
    if (!s->model)
        return failure_set(f, EXIT_RUN, "file",
                           "%.600s does not say which model it is of; it was not written by "
                           "`cotangent train`",
                           s->path);
    s->t = cot_tape_create(NULL);
    s->p = cot_params_create(s->t);
    if (!saved_fine(s, f)) return false;
    cot_params_train(s->p, false);
    cot_no_grad_open(s->t);
    return saved_fine(s, f);
}

void saved_close(saved *s) {
    cot_tokenizer_destroy(s->k);
    cot_params_destroy(s->p);
    cot_tape_destroy(s->t);
    cot_file_close(s->file);
    *s = (saved){0};
}

static bool loaded(saved *s, cot_status status, const char *why, failure *f) {
    if (status == COT_OK) return saved_fine(s, f);
    if (status == COT_MEMORY) return failure_memory(f);
    return failure_said(f, EXIT_RUN, "file", "%.1100s", why);
}

bool saved_load(saved *s, cot_net net, cot_var x, failure *f) {
    char why[1200];
    cot_params_init(s->p, net, x, cot_key_of(0));
    return saved_fine(s, f) && loaded(s, cot_params_load(s->p, s->path, NULL, why, sizeof why), why, f);
}

static bool configure(saved *s, failure *f) {
    const char *heads = cot_file_text(s->file, "heads");
    cot_shape   wte   = cot_file_shape(s->file, tensor(s, "wte.weight"));
    cot_shape   wpe   = cot_file_shape(s->file, tensor(s, "wpe.weight"));
    char        name[64];
    if (wte.ndim != 2 || wpe.ndim != 2)
        return failure_set(f, EXIT_RUN, "file", "%.600s has no matrices wte.weight and wpe.weight; a gpt has both",
                           s->path);
    s->net       = (gpt){.vocabulary = wte.dim[0], .width = wte.dim[1], .context = wpe.dim[0]};
    s->net.heads = heads ? strtoll(heads, NULL, 10) : s->net.width / 64;
    do snprintf(name, sizeof name, "h.%lld.ln_1.weight", (long long)s->net.layers++);
    while (tensor(s, name) >= 0);
    s->net.layers--;
    if (s->net.heads > 0 && s->net.width % s->net.heads == 0) return true;
    return failure_set(f, EXIT_RUN, "file", "%.600s has %lld heads and a width of %lld; heads divide the width",
                       s->path, (long long)s->net.heads, (long long)s->net.width);
}

static bool find_tokenizer(saved *s, failure *f) {
    char        vocab[4096];
    const char *characters = cot_file_text(s->file, "characters");
    snprintf(vocab, sizeof vocab, "%.4000s/vocab.json", s->folder);
    if (characters)
        s->k = cot_tokenizer_of_text(characters, strlen(characters), NULL);
    else if (!cot__source_exists(vocab))
        return true;
    else
        return (s->k = gpt_byte_pairs(s->folder, f)) != NULL;
    return gpt_tokenizer_fine(s->k, f);
}

bool saved_gpt(saved *s, failure *f) {
    char why[1200];
    if (!configure(s, f)) return false;
    cot_params_set_user(s->p, &s->net);
    cot_params_init(s->p, gpt_net, cot_full(s->t, COT_I64, COT_SHAPE(1, 1), 0), cot_key_of(0));
    return saved_fine(s, f) && loaded(s, gpt_load(s->p, s->path, why, sizeof why), why, f) && find_tokenizer(s, f);
}
