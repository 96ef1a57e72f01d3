/* tokenizer.h: text as tokens.
 *
 * What the folder does: it reads vocabularies, cuts text into words, and words into tokens by byte
 * pairs.
 *
 * May call: libc, base, data/file. Must not touch: tapes, parameters. */
#ifndef COT_DATA_TOKENIZER_H
#define COT_DATA_TOKENIZER_H

#include <cotangent_data.h>

#include "data/file/keep.h"
#include "data/file/source.h"

typedef struct cot__token {
    const char *text; /* NULL: no token has this number */
    uint32_t    bytes;
} cot__token;

/* Two tokens that become one; earlier ones come first. */
typedef struct cot__merge {
    int32_t left, right, both; /* left -1: this place of the table is free */
    int32_t rank;
} cot__merge;

typedef struct cot__range {
    uint32_t start, stop;
    bool     number; /* else letters */
} cot__range;

struct cot_tokenizer {
    cot_allocator al;
    cot__trouble  trouble;
    cot__keep     keep;
    cot__token   *tokens; /* by number */
    int64_t       count;
    int32_t      *by_text; /* open addressing: numbers, -1 is free */
    size_t        text_room;
    cot__merge   *merges; /* open addressing */
    size_t        merge_room;
    int32_t       byte[256]; /* the token of one byte, -1: none */
    cot__range   *ranges;    /* letters and numbers beyond ASCII; NULL: each character is a token */
    size_t        range_count;
};

/* ---- vocabulary.c ---- */
/* One without tokens, which reads a vocab.json and then a merges.txt; false after a failure. */
cot_tokenizer    *cot__tokenizer_create(const cot_allocator *allocator);
bool              cot__vocabulary_read(cot_tokenizer *k, cot__source *s);
bool              cot__merges_read(cot_tokenizer *k, cot__source *s);
int32_t           cot__token_find(const cot_tokenizer *k, const char *text, size_t bytes);
const cot__merge *cot__merge_find(const cot_tokenizer *k, int32_t left, int32_t right);

/* ---- words.c ---- */
/* Letters and numbers, unpacked into the tokenizer; false when memory is short. */
bool cot__words_prepare(cot_tokenizer *k);
/* The bytes of the first word of a text, at least 1 of n >= 1. */
size_t cot__word(const cot_tokenizer *k, const char *text, size_t n);

#endif
