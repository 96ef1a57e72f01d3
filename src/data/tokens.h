/* tokens.h: the inside of a file of tokens, for the loader. */
#ifndef COT_DATA_TOKENS_H
#define COT_DATA_TOKENS_H

#include "data/data.h"

struct cot_tokens {
    cot_allocator  al;
    cot__trouble   trouble;
    unsigned char *data;
    size_t         size;  /* bytes */
    int            bytes; /* of a token */
};

/* n tokens as i32 or i64. They are there. */
void cot__tokens_copy(const cot_tokens *t, int64_t from, int64_t n, void *out, cot_dtype dtype);

#endif
