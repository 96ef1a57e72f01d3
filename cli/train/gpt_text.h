/* gpt_text.h: a text as tokens: its characters, the byte pairs of a tokenizer's files, or a file of
 * tokens. The last tenth is for validation. */
#ifndef COT_CLI_GPT_TEXT_H
#define COT_CLI_GPT_TEXT_H

#include <cotangent.h>
#include <cotangent_data.h>

#include "io/failure.h"

typedef struct gpt_text {
    const char    *path;
    cot_tokenizer *k;    /* NULL: a file of tokens without one */
    cot_tokens    *file; /* NULL: they are in ids */
    int64_t       *ids;
    int64_t        n, trained; /* tokens, and how many of them are trained on */
    int64_t        vocabulary;
    char          *characters; /* all that the text has; NULL: it is byte pairs */
} gpt_text;

/* Opens a text of at least ten windows of `window` tokens. `tokenizer`: a folder with vocab.json
 * and merges.txt, or NULL. `least`: the vocabulary of a file of tokens is not below it. Call
 * gpt_text_close in any case. */
bool gpt_text_open(gpt_text *x, const char *path, const char *tokenizer, int64_t window, int64_t least, failure *f);
void gpt_text_close(gpt_text *x);
/* n tokens from number `from` on, which are there. */
bool gpt_text_read(const gpt_text *x, int64_t from, int64_t n, int64_t *out, failure *f);

/* A whole file of text, malloced; NULL after a failure. */
char *gpt_read(const char *path, size_t *bytes, failure *f);
/* The tokens of a text of this tokenizer, malloced; NULL after a failure. */
int64_t *gpt_encode(const cot_tokenizer *k, const char *text, size_t bytes, int64_t *n, failure *f);
/* The tokenizer of a folder's vocab.json and merges.txt; NULL after a failure. */
cot_tokenizer *gpt_byte_pairs(const char *folder, failure *f);
/* Takes a failure of a tokenizer over; true if there is none. */
bool gpt_tokenizer_fine(const cot_tokenizer *k, failure *f);

#endif
