/* vocabulary.c: GPT-2's files: vocab.json, {"token": number, …}, and merges.txt, a pair of tokens a
 * line.
 *
 * They write bytes as letters: those that show stand for themselves, the others are the letters
 * from U+0100 on. Here they become bytes again at once. */
#include "data/text/tokenizer.h"

#include "data/file/json.h"
#include "data/file/source.h"

#include "base/file/bytes.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of tokens: a table of them is made, so a short file may not claim high ones. */
enum { FEW_TOKENS = 1 << 16, MOST_TOKENS = 1 << 24 };

/* ---- tables ---------------------------------------------------------------------------------- */

static size_t text_place(const cot_tokenizer *k, const char *text, size_t bytes) {
    size_t at = (size_t)cot__checksum(bytes, text, bytes);
    for (at ^= at >> 29;; at++) {
        int32_t id = k->by_text[at &= k->text_room - 1];
        if (id < 0 || (k->tokens[id].bytes == bytes && memcmp(k->tokens[id].text, text, bytes) == 0)) return at;
    }
}

int32_t cot__token_find(const cot_tokenizer *k, const char *text, size_t bytes) {
    return k->text_room ? k->by_text[text_place(k, text, bytes)] : -1;
}

static size_t merge_place(const cot_tokenizer *k, int32_t left, int32_t right) {
    uint64_t at = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * UINT64_C(0x9e3779b97f4a7c15);
    for (at ^= at >> 32;; at++) {
        const cot__merge *m = &k->merges[at &= k->merge_room - 1];
        if (m->left < 0 || (m->left == left && m->right == right)) return (size_t)at;
    }
}

const cot__merge *cot__merge_find(const cot_tokenizer *k, int32_t left, int32_t right) {
    const cot__merge *m = k->merge_room ? &k->merges[merge_place(k, left, right)] : NULL;
    return m && m->left >= 0 ? m : NULL;
}

/* A power of two, at least twice n. */
static size_t room_for(size_t n) {
    size_t room = 16;
    while (room < 2 * n) room *= 2;
    return room;
}

/* By their texts; false when memory is short. */
static bool index_tokens(cot_tokenizer *k) {
    size_t room = room_for((size_t)k->count);
    k->by_text  = cot__keep_take(&k->keep, room * sizeof *k->by_text);
    if (!k->by_text) return false;
    for (size_t i = 0; i < room; i++) k->by_text[i] = -1;
    k->text_room = room;
    for (int i = 0; i < 256; i++) k->byte[i] = -1;
    for (int64_t id = 0; id < k->count; id++) {
        if (!k->tokens[id].text) continue;
        k->by_text[text_place(k, k->tokens[id].text, k->tokens[id].bytes)] = (int32_t)id;
        if (k->tokens[id].bytes == 1) k->byte[(unsigned char)k->tokens[id].text[0]] = (int32_t)id;
    }
    return true;
}

/* ---- letters as bytes ------------------------------------------------------------------------ */

static bool stands_for_itself(uint32_t c) {
    return (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || (c >= 174 && c <= 255);
}

/* The byte of a letter; -1: it stands for none. */
static int byte_of(uint32_t point) {
    if (point < 256) return stands_for_itself(point) ? (int)point : -1;
    uint32_t n = point - 256;
    for (uint32_t b = 0; b < 256; b++)
        if (!stands_for_itself(b) && n-- == 0) return (int)b;
    return -1;
}

/* Turns n bytes of UTF-8 into what they stand for, in place, and returns how many that are; a
 * letter that stands for no byte (of a special token) stays as it is. */
static size_t to_bytes(char *text, size_t n) {
    size_t made = 0;
    for (size_t at = 0; at < n;) {
        size_t length = cot__utf8(text + at, n - at);
        if (!length) length = 1;
        uint32_t point = (unsigned char)text[at] & (length > 1 ? 0x7fu >> length : 0xffu);
        for (size_t i = 1; i < length; i++) point = point << 6 | ((unsigned char)text[at + i] & 0x3f);
        int b = byte_of(point);
        if (b >= 0)
            text[made++] = (char)b;
        else
            memmove(text + made, text + at, length), made += length;
        at += length;
    }
    return made;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool take_token(cot_tokenizer *k, cot__scan *x, size_t *room) {
    char    *text = cot__scan_key(x);
    uint64_t id   = 0;
    if (!text || !cot__scan_natural(x, &id)) return false;
    if (id >= MOST_TOKENS || (id >= FEW_TOKENS && id >= (uint64_t)(x->end - x->start)))
        return cot__scan_fails(x, "a number of a token that is too large for this file");
    while (id >= *room) {
        size_t      before = *room;
        cot__token *grown  = cot__keep_grow(&k->keep, k->tokens, before, room, sizeof *grown);
        if (!grown) return cot__scan_memory(x);
        k->tokens = grown;
        memset(grown + before, 0, (*room - before) * sizeof *grown);
    }
    if (k->tokens[id].text) return cot__scan_fails(x, "the number of another token");
    if ((int64_t)id >= k->count) k->count = (int64_t)id + 1;
    k->tokens[id] = (cot__token){text, (uint32_t)to_bytes(text, strlen(text))};
    return true;
}

bool cot__vocabulary_read(cot_tokenizer *k, cot__source *s) {
    size_t bytes = (size_t)s->size, room = 0;
    char  *text = cot__source_all(s, &k->al, &k->trouble);
    if (!text) return false;
    cot__scan x = {.start = text, .at = text, .end = text + bytes, .pool = &k->keep};
    cot__scan_open(&x, '{');
    while (cot__scan_next(&x, '}'))
        if (!take_token(k, &x, &room)) break;
    bool fine = cot__scan_end(&x);
    if (!fine && x.memory)
        cot__trouble_memory(&k->trouble);
    else if (!fine)
        cot__trouble_file(&k->trouble, "%s cannot be read: %s at byte %zu", s->path, x.what, (size_t)(x.at - x.start));
    cot__free(&k->al, text, bytes + 1);
    return fine && ((index_tokens(k) && cot__words_prepare(k)) || cot__trouble_memory(&k->trouble));
}

static bool bad_line(cot_tokenizer *k, const char *path, int64_t line, size_t at, const char *what) {
    return cot__trouble_file(&k->trouble, "line %lld of %s, at byte %zu, %s", (long long)line, path, at, what);
}

/* One line "left right". Both, and both together, are tokens. */
static bool take_merge(cot_tokenizer *k, const char *path, int64_t line, size_t at, char *text, size_t n,
                       int32_t rank) {
    char *space = memchr(text, ' ', n);
    if (!space || memchr(space + 1, ' ', n - (size_t)(space + 1 - text)))
        return bad_line(k, path, line, at, "is not two tokens with a space between them");
    size_t a = to_bytes(text, (size_t)(space - text)), b = to_bytes(space + 1, n - (size_t)(space + 1 - text));
    memmove(text + a, space + 1, b);
    int32_t left = cot__token_find(k, text, a), right = cot__token_find(k, text + a, b);
    int32_t both = cot__token_find(k, text, a + b);
    if (left < 0 || right < 0 || both < 0)
        return bad_line(k, path, line, at, "has a token that the vocabulary has not");
    cot__merge *m = &k->merges[merge_place(k, left, right)];
    if (m->left < 0) *m = (cot__merge){left, right, both, rank};
    return true;
}

bool cot__merges_read(cot_tokenizer *k, cot__source *s) {
    size_t bytes = (size_t)s->size, lines = 1;
    char  *text = cot__source_all(s, &k->al, &k->trouble);
    if (!text) return false;
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    size_t room = room_for(lines);
    k->merges   = cot__keep_take(&k->keep, room * sizeof *k->merges);
    bool fine   = k->merges || cot__trouble_memory(&k->trouble);
    if (fine) k->merge_room = room;
    for (size_t i = 0; i < k->merge_room; i++) k->merges[i].left = -1;
    int64_t line = 0;
    int32_t rank = 0;
    for (size_t at = 0; fine && at < bytes;) {
        char  *start = text + at, *stop = memchr(start, '\n', bytes - at);
        size_t n = stop ? (size_t)(stop - start) : bytes - at, whole = n;
        if (n && start[n - 1] == '\r') n--;
        line++;
        if (n && !(line == 1 && n >= 8 && memcmp(start, "#version", 8) == 0))
            fine = take_merge(k, s->path, line, at, start, n, rank++);
        at += whole + 1;
    }
    cot__free(&k->al, text, bytes + 1);
    return fine;
}

cot_tokenizer *cot__tokenizer_create(const cot_allocator *allocator) {
    cot_tokenizer *k = cot__alloc(allocator, sizeof *k);
    if (!k) return NULL;
    *k         = (cot_tokenizer){.al = allocator ? *allocator : (cot_allocator){0}};
    k->keep.al = k->al;
    return k;
}

static bool read_file(cot_tokenizer *k, const char *path, bool (*read)(cot_tokenizer *k, cot__source *s)) {
    cot__source s;
    if (!cot__source_open(&s, path, &k->al, &k->trouble)) return false;
    bool fine = read(k, &s);
    cot__source_close(&s);
    return fine;
}

cot_tokenizer *cot_tokenizer_load(const char *vocab, const char *merges, const cot_allocator *allocator) {
    cot_tokenizer *k = cot__tokenizer_create(allocator);
    if (!k) return NULL;
    if (!vocab || !merges)
        cot__trouble_file(&k->trouble, "the path of the %s is NULL", vocab ? "merges" : "vocabulary");
    else if (read_file(k, vocab, cot__vocabulary_read))
        read_file(k, merges, cot__merges_read);
    return k;
}

/* ---- characters ------------------------------------------------------------------------------ */

static int by_bytes(const void *a, const void *b) {
    const cot__token *x = a, *y = b;
    size_t            n     = x->bytes < y->bytes ? x->bytes : y->bytes;
    int               order = memcmp(x->text, y->text, n);
    return order ? order : (int)x->bytes - (int)y->bytes;
}

/* Every character of the text that is not in the table yet becomes a token; the order of UTF-8 is
 * that of Unicode. */
static bool collect(cot_tokenizer *k, const char *text, size_t bytes) {
    size_t room = 0;
    if (!index_tokens(k)) return cot__trouble_memory(&k->trouble);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = cot__utf8(text + at, bytes - at);
        if (!n) return cot__trouble_file(&k->trouble, "the text is not UTF-8 at byte %zu", at);
        if (cot__token_find(k, text + at, n) >= 0) continue;
        cot__token *grown = cot__keep_grow(&k->keep, k->tokens, (size_t)k->count, &room, sizeof *grown);
        char       *copy  = cot__keep_text(&k->keep, text + at, n);
        if (!grown || !copy) return cot__trouble_memory(&k->trouble);
        k->tokens         = grown;
        grown[k->count++] = (cot__token){copy, (uint32_t)n};
        if (2 * (size_t)k->count > k->text_room) {
            if (!index_tokens(k)) return cot__trouble_memory(&k->trouble);
        } else
            k->by_text[text_place(k, copy, n)] = (int32_t)k->count - 1;
    }
    if (k->count) qsort(k->tokens, (size_t)k->count, sizeof *k->tokens, by_bytes);
    return index_tokens(k) || cot__trouble_memory(&k->trouble);
}

cot_tokenizer *cot_tokenizer_of_text(const char *text, size_t bytes, const cot_allocator *allocator) {
    cot_tokenizer *k = cot__tokenizer_create(allocator);
    if (!k) return NULL;
    if (!text && bytes)
        cot__trouble_file(&k->trouble, "the text is NULL");
    else
        collect(k, text, bytes);
    return k;
}

void cot_tokenizer_destroy(cot_tokenizer *k) {
    if (!k) return;
    cot_allocator al = k->al;
    cot__keep_free(&k->keep);
    cot__free(&al, k, sizeof *k);
}

cot_status  cot_tokenizer_status(const cot_tokenizer *k) { return k ? k->trouble.status : COT_MEMORY; }
const char *cot_tokenizer_message(const cot_tokenizer *k) { return k ? k->trouble.message : "memory is short"; }
int64_t     cot_tokenizer_count(const cot_tokenizer *k) { return k && !k->trouble.status ? k->count : 0; }

int64_t cot_tokenizer_find(const cot_tokenizer *k, const char *token, size_t bytes) {
    return k && !k->trouble.status && token ? cot__token_find(k, token, bytes) : -1;
}
