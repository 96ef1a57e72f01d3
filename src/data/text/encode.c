/* encode.c: words become tokens: each byte is one at first, and the pair of neighbours that the
 * list of merges has earliest becomes one token, until none is in the list. A heap holds the pairs,
 * so a word of n bytes takes n log n steps, however long it is. */
#include "data/text/tokenizer.h"

#include "base/utf8.h"
#include "data/file/source.h"

#include <stdlib.h>
#include <string.h>

/* Part of a word; id -1: it has become part of the one before. */
typedef struct part {
    int32_t id;
    int64_t before, next; /* -1: none */
} part;

typedef struct candidate {
    const cot__merge *merge;
    int64_t           at; /* of its left part */
} candidate;

/* Room for the longest word so far: its parts, and at most two candidates for each. */
typedef struct work {
    const cot_tokenizer *k;
    part                *parts;
    candidate           *heap;
    size_t               room, waiting;
    int64_t             *ids;
    int64_t              ids_room, count;
} work;

static bool is_first(candidate a, candidate b) {
    return a.merge->rank != b.merge->rank ? a.merge->rank < b.merge->rank : a.at < b.at;
}

static void push(work *w, int64_t at) {
    int64_t next = at < 0 ? -1 : w->parts[at].next;
    if (next < 0) return;
    candidate c = {cot__merge_find(w->k, w->parts[at].id, w->parts[next].id), at};
    if (!c.merge) return;
    size_t i = w->waiting++;
    for (; i && is_first(c, w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = c;
}

static candidate pop(work *w) {
    candidate first = w->heap[0], last = w->heap[--w->waiting];
    size_t    i = 0;
    for (size_t child; (child = 2 * i + 1) < w->waiting; i = child) {
        if (child + 1 < w->waiting && is_first(w->heap[child + 1], w->heap[child])) child++;
        if (!is_first(w->heap[child], last)) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return first;
}

static void join(work *w, candidate c) {
    part   *left = &w->parts[c.at];
    int64_t next = left->next;
    /* one of the two may be part of something else by now */
    if (next < 0 || left->id != c.merge->left || w->parts[next].id != c.merge->right) return;
    left->id          = c.merge->both;
    left->next        = w->parts[next].next;
    w->parts[next].id = -1;
    if (left->next >= 0) w->parts[left->next].before = c.at;
    push(w, left->before);
    push(w, c.at);
}

static bool make_room(work *w, size_t n) {
    if (n <= w->room) return true;
    size_t room  = n < 64 ? 64 : 2 * n;
    part  *parts = cot__resize(&w->k->al, w->parts, w->room * sizeof *parts, room * sizeof *parts);
    if (parts) w->parts = parts;
    candidate *heap =
        parts ? cot__resize(&w->k->al, w->heap, 3 * w->room * sizeof *heap, 3 * room * sizeof *heap) : NULL;
    if (heap) w->heap = heap;
    /* a block that has grown while the other could not is known by its old size: give it back */
    if (parts && !heap) cot__free(&w->k->al, w->parts, room * sizeof *parts), w->parts = NULL;
    if (!heap) {
        cot__free(&w->k->al, w->heap, 3 * w->room * sizeof *heap), w->heap = NULL;
        if (!parts) cot__free(&w->k->al, w->parts, w->room * sizeof *parts), w->parts = NULL;
        w->room = 0;
        return false;
    }
    w->room = room;
    return true;
}

static void put(work *w, int64_t id) {
    if (w->count < w->ids_room) w->ids[w->count] = id;
    w->count++;
}

/* Returns the number of the byte that has no token, n if all have. */
static size_t encode_word(work *w, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int32_t id = w->k->byte[(unsigned char)text[i]];
        if (id < 0) return i;
        w->parts[i] = (part){id, (int64_t)i - 1, i + 1 < n ? (int64_t)i + 1 : -1};
    }
    w->waiting = 0;
    for (size_t i = 0; i + 1 < n; i++) push(w, (int64_t)i);
    while (w->waiting) join(w, pop(w));
    for (int64_t i = 0; i >= 0; i = w->parts[i].next) put(w, w->parts[i].id);
    return n;
}

/* A character is a word and a token. */
static size_t encode_character(work *w, const char *text, size_t n) {
    int32_t id = cot__token_find(w->k, text, n);
    if (id < 0) return 0;
    put(w, id);
    return n;
}

int64_t cot_tokenizer_encode(const cot_tokenizer *k, const char *text, size_t bytes, int64_t *ids, int64_t room,
                             char *why, size_t why_room) {
    cot__trouble t = {0};
    work         w = {.k = k, .ids = ids, .ids_room = ids ? room : 0};
    if (!k || k->trouble.status)
        cot__trouble_set(&t, cot_tokenizer_status(k), "%s", cot_tokenizer_message(k));
    else if (!text && bytes)
        cot__trouble_file(&t, "the text is NULL");
    for (size_t at = 0; !t.status && at < bytes;) {
        size_t n = k->ranges ? cot__word(k, text + at, bytes - at) : cot__utf8(text + at, bytes - at);
        if (!n) n = 1;
        if (k->ranges && !make_room(&w, n)) {
            cot__trouble_memory(&t);
            break;
        }
        size_t done = k->ranges ? encode_word(&w, text + at, n) : encode_character(&w, text + at, n);
        if (done < n) cot__trouble_file(&t, "no token stands for the text at byte %zu", at + done);
        at += n;
    }
    if (k) {
        cot__free(&k->al, w.parts, w.room * sizeof *w.parts);
        cot__free(&k->al, w.heap, 3 * w.room * sizeof *w.heap);
    }
    return cot__trouble_tell(&t, "tokenizer_encode", why, why_room) ? -1 : w.count;
}

int64_t cot_tokenizer_decode(const cot_tokenizer *k, const int64_t *ids, int64_t n, char *text, int64_t room) {
    int64_t made = 0;
    if (cot_tokenizer_status(k) || n < 0 || (n && !ids)) return -1;
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= k->count || !k->tokens[ids[i]].text) return -1;
        cot__token t    = k->tokens[ids[i]];
        int64_t    left = text && room > made ? room - made : 0;
        if (left > 0) memcpy(text + made, t.text, (size_t)(left < t.bytes ? left : t.bytes));
        made += t.bytes;
    }
    return made;
}

char *cot_text_read(const char *path, size_t *bytes, char *why, size_t room) {
    cot__trouble t = {0};
    cot__source  s;
    char        *text = NULL;
    if (bytes) *bytes = 0;
    if (!path || !bytes)
        cot__trouble_file(&t, "the %s NULL", path ? "place for the number of bytes is" : "path is");
    else if (cot__source_open(&s, path, NULL, &t)) {
        text = cot__source_all(&s, NULL, &t);
        if (text) *bytes = (size_t)s.size;
        cot__source_close(&s);
    }
    cot__trouble_tell(&t, "text_read", why, room);
    return text;
}
