/* gpt.h: a decoder-only transformer as GPT-2 is: tokens and places embedded, blocks of attention
 * and a two-layer network, each behind a layer norm and added to what it reads, and the table of
 * tokens as the last layer too. */
#ifndef MODELS_GPT_H
#define MODELS_GPT_H

#include <cotangent.h>

typedef struct gpt {
    int64_t       vocabulary, context, layers, heads, width;
    double        dropout;
    cot_nn_cache *cache; /* NULL, or what was seen before: then `seen` tokens were */
    int64_t       seen;
    /* attention by matrix products and a softmax, which can be exported as C */
    bool          plain;
} gpt;

/* How GPT-2's numbers begin: before cot_params_init, for this configuration. */
cot_status gpt_begin(cot_params *p, const gpt *config);
/* Tokens (B, T), integers below the vocabulary, T at most the context -> logits (B, T, vocabulary).
 * The configuration is cot_params_user(p). */
cot_var gpt_net(cot_params *p, cot_var tokens);
/* The mean loss of predicting next (B, T) from tokens (B, T). */
cot_var gpt_loss(cot_params *p, cot_var tokens, cot_var next);
/* What trains it, but for the rate: matrices and tables decay, biases and scales, which become
 * group 1, do not. Gradients are clipped to a norm of GPT_CLIP. */
enum { GPT_CLIP = 1 };
cot_optim_options gpt_optim(cot_params *p);
/* Loads the parameters of a file with GPT-2's names in Hugging Face's layout, with "transformer."
 * before each or without. */
cot_status gpt_load(cot_params *p, const char *path, char *why, size_t room);

#endif
