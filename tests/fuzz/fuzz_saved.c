/* fuzz_saved.c: any bytes as a program file. The first byte says whether lengths and checksum are
 * corrected; without that hardly any change would get past them. A program that loads is legal, is
 * printed, and is saved again, to the same bytes. */
#include "program/file/file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 4096, HEAD = 24, PART = 12, SUM = 8 };

static void broken(const char *what) {
    fprintf(stderr, "fuzz_saved: %s\n", what);
    abort();
}

/* Memory is in proportion to the file: what asks for much more has believed it. */
static void *counted(void *user, void *ptr, size_t old_size, size_t new_size) {
    size_t *used = user;
    if (new_size > 64 * MOST_BYTES + 65536) broken("a file of few bytes asks for many");
    *used += new_size - (ptr ? old_size : 0);
    if (new_size == 0) return free(ptr), NULL;
    return realloc(ptr, new_size);
}

typedef struct heard { int errors; char text[512]; } heard;

static void hear_error(const cot__caller *c, cot_status code, const char *text) {
    heard *h = c->to;
    if (code == COT_OK) broken("an error without a code");
    h->errors++;
    snprintf(h->text, sizeof h->text, "%s", text);
}
static void hear_note(const cot__caller *c, const char *text) { (void)c, (void)text; }

typedef struct left { const uint8_t *at; size_t size; } left;
static bool is_next(void *to, const void *bytes, size_t n) {
    left *l = to;
    if (n > l->size || memcmp(l->at, bytes, n) != 0) return false;
    l->at += n, l->size -= n;
    return true;
}

static void is_what_it_says(const cot__program *p, const uint8_t *bytes, size_t size, const cot__caller *caller) {
    static char text[4096];
    cot__text   to = cot__text_buffer(text, sizeof text);
    left        l = {bytes, size};
    if (!cot__program_check(p, &to)) broken(text);
    cot__program_print(p, &to);
    if (!cot__program_save(p, is_next, &l, caller) || l.size) broken("a program is saved to other bytes");
}

/* Lengths, for a file of one part, and the checksum. */
static size_t correct(uint8_t *bytes, size_t size) {
    if (size >= HEAD) cot__to_bytes(bytes + 16, size + SUM, 8);
    if (size >= HEAD + PART) cot__to_bytes(bytes + HEAD + 4, size - HEAD - PART, 8);
    cot__to_bytes(bytes + size, cot__checksum(0, bytes, size), SUM);
    return size + SUM;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    heard       h = {0};
    size_t      used = 0;
    cot__caller caller = {"load", &h, hear_error, hear_note, NULL};
    if (size < 2 || size > MOST_BYTES) return 0;
    size_t   n = size - 1, whole = n + (data[0] & 1 ? SUM : 0);
    uint8_t *bytes = malloc(whole); /* just so many, so that a sanitizer sees a read beyond them */
    if (!bytes) abort();
    memcpy(bytes, data + 1, n);
    if (data[0] & 1) correct(bytes, n);
    cot__program *p = cot__program_load(bytes, whole, &(cot_allocator){counted, &used}, &caller);
    if (p ? h.errors != 0 : h.errors != 1 || strncmp(h.text, "[load] ", 7) != 0) broken("refused without a sentence");
    if (p) is_what_it_says(p, bytes, whole, &caller);
    cot__program_release(p);
    free(bytes);
    if (used != 0) broken("memory that was not given back");
    return 0;
}
