/* gpt_text.c: texts as tokens. */
#include "train/gpt_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gpt_tokenizer_fine(const cot_tokenizer *k, failure *f) {
    if (!k || cot_tokenizer_status(k) == COT_MEMORY) return failure_memory(f);
    if (cot_tokenizer_status(k) == COT_OK) return true;
    return failure_set(f, EXIT_RUN, "file", "%.900s", cot_tokenizer_message(k));
}

cot_tokenizer *gpt_byte_pairs(const char *folder, failure *f) {
    char vocab[4096], merges[4096];
    snprintf(vocab, sizeof vocab, "%.4000s/vocab.json", folder);
    snprintf(merges, sizeof merges, "%.4000s/merges.txt", folder);
    cot_tokenizer *k = cot_tokenizer_load(vocab, merges, NULL);
    if (gpt_tokenizer_fine(k, f)) return k;
    cot_tokenizer_destroy(k);
    return NULL;
}

int64_t *gpt_encode(const cot_tokenizer *k, const char *text, size_t bytes, int64_t *n, failure *f) {
    char     why[600] = "";
    int64_t *ids      = NULL;
    *n                = cot_tokenizer_encode(k, text, bytes, NULL, 0, why, sizeof why);
    if (*n >= 0) ids = malloc(((size_t)*n + 1) * sizeof *ids);
    if (ids && cot_tokenizer_encode(k, text, bytes, ids, *n, why, sizeof why) == *n) return ids;
    if (*n < 0 && why[0] && cot_tokenizer_status(k) != COT_MEMORY)
        failure_said(f, EXIT_RUN, "text", "%s", why);
    else
        failure_memory(f);
    free(ids);
    return NULL;
}

/* All tokens in turn are all characters in turn. */
static bool list_characters(gpt_text *x, failure *f) {
    int64_t *all = malloc(((size_t)x->vocabulary + 1) * sizeof *all);
    for (int64_t k = 0; all && k < x->vocabulary; k++) all[k] = k;
    int64_t bytes = all ? cot_tokenizer_decode(x->k, all, x->vocabulary, NULL, 0) : 0;
    x->characters = all ? calloc((size_t)bytes + 1, 1) : NULL;
    if (x->characters) cot_tokenizer_decode(x->k, all, x->vocabulary, x->characters, bytes);
    free(all);
    return x->characters || failure_memory(f);
}

char *gpt_read(const char *path, size_t *bytes, failure *f) {
    char  why[600];
    char *text = cot_text_read(path, bytes, why, sizeof why);
    if (!text && strstr(why, "memory is short")) failure_memory(f);
    else if (!text) failure_set(f, EXIT_RUN, "file", "%s", why);
    return text;
}

static bool read_text(gpt_text *x, failure *f) {
    size_t bytes;
    char  *text = gpt_read(x->path, &bytes, f);
    if (!text) return false;
    bool pairs = x->k != NULL, fine = pairs;
    /* the characters are kept as a C string */
    if (memchr(text, 0, bytes))
        fine = failure_set(f, EXIT_RUN, "file", "[gpt] %.600s holds a byte 0; --data is a text, or a .bin of tokens",
                           x->path);
    else if (!pairs)
        fine = gpt_tokenizer_fine(x->k = cot_tokenizer_of_text(text, bytes, NULL), f);
    if (fine) {
        x->vocabulary = cot_tokenizer_count(x->k);
        x->ids        = gpt_encode(x->k, text, bytes, &x->n, f);
        fine          = x->ids && (pairs || list_characters(x, f));
    }
    free(text);
    return fine;
}

/* The tokens are looked at once, so that none is out of range later. */
static bool read_tokens(gpt_text *x, int64_t least, failure *f) {
    enum { AT_ONCE = 4096 };
    int64_t some[AT_ONCE], most = -1;
    x->file = cot_tokens_open(x->path, 2, NULL);
    if (!x->file) return failure_memory(f);
    if (cot_tokens_status(x->file))
        return failure_set(f, EXIT_RUN, "file", "%.900s", cot_tokens_message(x->file));
    x->n = cot_tokens_count(x->file);
    for (int64_t k = 0; k < x->n; k += AT_ONCE) {
        int64_t n = x->n - k < AT_ONCE ? x->n - k : AT_ONCE;
        if (!gpt_text_read(x, k, n, some, f)) return false;
        for (int64_t i = 0; i < n; i++)
            if (some[i] > most) most = some[i];
    }
    x->vocabulary = most + 1 > least ? most + 1 : least;
    if (!x->k) return true;
    x->vocabulary = cot_tokenizer_count(x->k);
    if (most < x->vocabulary) return true;
    return failure_set(f, EXIT_RUN, "file",
                       "[gpt] %.600s has the token %lld, the tokenizer has %lld; tokens are below that", x->path,
                       (long long)most, (long long)x->vocabulary);
}

bool gpt_text_open(gpt_text *x, const char *path, const char *tokenizer, int64_t window, int64_t least, failure *f) {
    size_t length = strlen(path);
    *x            = (gpt_text){.path = path};
    if (tokenizer && !(x->k = gpt_byte_pairs(tokenizer, f))) return false;
    bool binary = length > 4 && strcmp(path + length - 4, ".bin") == 0;
    if (!(binary ? read_tokens(x, least, f) : read_text(x, f))) return false;
    x->trained = x->n - x->n / 10;
    if (x->n / 10 >= window) return true;
    return failure_set(
        f, EXIT_RUN, "file",
        "[gpt] %.600s has %lld tokens, a window has %lld; the last tenth must hold one: give a longer text "
        "or a smaller --context",
        path, (long long)x->n, (long long)window);
}

void gpt_text_close(gpt_text *x) {
    cot_tokenizer_destroy(x->k);
    cot_tokens_close(x->file);
    free(x->ids);
    free(x->characters);
    *x = (gpt_text){0};
}

bool gpt_text_read(const gpt_text *x, int64_t from, int64_t n, int64_t *out, failure *f) {
    if (!x->file) {
        memcpy(out, x->ids + from, (size_t)n * sizeof *out);
        return true;
    }
    if (cot_tokens_read(x->file, from, n, out) == COT_OK) return true;
    return failure_set(f, EXIT_RUN, "file", "%.900s", cot_tokens_message(x->file));
}
