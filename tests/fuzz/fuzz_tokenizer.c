/* fuzz_tokenizer.c: any bytes as GPT-2's files and a text: a vocab.json, a merges.txt and the text,
 * with a byte 0 between them. What becomes tokens comes back as it was. */
#include "data/text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void broken(const char *what) {
    fprintf(stderr, "fuzz_tokenizer: %s\n", what);
    abort();
}

/* The bytes up to the next 0, which is passed over. */
static cot__source part(const uint8_t **data, size_t *size) {
    const uint8_t *start = *data, *stop = *size ? memchr(start, 0, *size) : NULL;
    size_t         n = stop ? (size_t)(stop - start) : *size, passed = stop ? n + 1 : n;
    *data += passed, *size -= passed;
    return cot__source_of_memory("fuzz", start, n);
}

static void there_and_back(const cot_tokenizer *k, const char *text, size_t size) {
    char    why[200] = "";
    int64_t n        = cot_tokenizer_encode(k, text, size, NULL, 0, why, sizeof why);
    if ((n < 0) != (why[0] != 0)) broken("a failure without a sentence");
    if (n < 0) return;
    if ((uint64_t)n > size) broken("more tokens than bytes");
    int64_t *ids  = malloc(((size_t)n + 1) * sizeof *ids);
    char    *back = malloc(size + 1);
    if (ids && back) {
        if (cot_tokenizer_encode(k, text, size, ids, n, NULL, 0) != n) broken("another number of tokens");
        if (cot_tokenizer_decode(k, ids, n, back, (int64_t)size) != (int64_t)size) broken("another number of bytes");
        if (size && memcmp(text, back, size) != 0) broken("another text");
    }
    free(ids);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cot__source    vocab = part(&data, &size), merges = part(&data, &size);
    cot_tokenizer *k     = cot__tokenizer_create(NULL);
    if (!k) return 0;
    bool fine = cot__vocabulary_read(k, &vocab) && cot__merges_read(k, &merges);
    if (fine != (cot_tokenizer_status(k) == COT_OK) || fine != !cot_tokenizer_message(k)[0])
        broken("a failure without a sentence");
    there_and_back(k, (const char *)data, size);
    for (int64_t id = 0; fine && id < cot_tokenizer_count(k); id++) {
        cot__token t = k->tokens[id];
        if (!t.text) continue;
        int64_t found = cot_tokenizer_find(k, t.text, t.bytes);
        if (found < 0 || k->tokens[found].bytes != t.bytes || memcmp(k->tokens[found].text, t.text, t.bytes) != 0)
            broken("a token that is not found");
    }
    cot_tokenizer_destroy(k);
    return 0;
}
