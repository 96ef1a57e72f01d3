/* code_used.c: a function of C as a list of lines, of which those that define what nobody reads are
 * left out: a constant that a call holds by its own numbers, an adjoint that nothing is added
 * to. */
#include "trace/code.h"

#include <stdlib.h>
#include <string.h>

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

void cot__c_function_add(cot__c_function *f, const char *line) {
    if (f->count == f->room) {
        int64_t room = 2 * f->room + 64;
        char  **more = realloc(f->line, (size_t)room * sizeof *more);
        if (!more) {
            f->no_memory = true;
            return;
        }
        f->line = more, f->room = room;
    }
    if (!(f->line[f->count] = strdup(line))) f->no_memory = true;
    else f->count++;
}

/* ---- words ----------------------------------------------------------------------------------- */

typedef cot__c_words words;

static uint64_t sum_of(const char *word, size_t n) {
    uint64_t sum = 0;
    while (n-- > 0) sum = 31 * sum + (unsigned char)*word++;
    return sum * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

static size_t place_of(const words *w, uint64_t sum) {
    size_t at = (size_t)(sum >> 32) & (w->room - 1);
    while (w->slot[at] && w->slot[at] != sum) at = (at + 1) & (w->room - 1);
    return at;
}

static bool has(const words *w, const char *word, size_t n) {
    return w->room && w->slot[place_of(w, sum_of(word, n))] != 0;
}

static bool grow(words *w) {
    words more = {.room = w->room ? 2 * w->room : 512, .count = w->count};
    if (!(more.slot = calloc(more.room, sizeof *more.slot))) return false;
    for (size_t k = 0; k < w->room; k++)
        if (w->slot[k]) more.slot[place_of(&more, w->slot[k])] = w->slot[k];
    free(w->slot);
    *w = more;
    return true;
}

/* All words of a line, beside its comment. False when memory is short. */
static bool add_words(words *w, const char *line) {
    const char *comment = strstr(line, "/*"), *end = comment ? comment : line + strlen(line);
    for (const char *at = line; at < end;) {
        size_t n = strspn(at, letters);
        if (2 * w->count >= w->room && !grow(w)) return false;
        if (n && !has(w, at, n)) w->slot[place_of(w, sum_of(at, n))] = sum_of(at, n), w->count++;
        at += n ? n : 1;
    }
    return true;
}

/* ---- variables ------------------------------------------------------------------------------- */

/* "    cot_var v3 = …;": the variable, of n letters. NULL: the line does something else. */
static const char *defined(const char *line, size_t *n) {
    static const char *const types[] = {"    cot_var ", "    double "};
    for (int k = 0; k < 2; k++) {
        const char *name = line + strlen(types[k]);
        if (strncmp(line, types[k], strlen(types[k])) != 0) continue;
        *n = strspn(name, letters);
        return strncmp(name + *n, " = ", 3) == 0 ? name : NULL;
    }
    return NULL;
}

/* From the last line to the first: what only a dropped line has read goes too. */
void cot__c_function_drop_unused(cot__c_function *f) {
    for (int64_t i = f->count; i-- > 0 && !f->no_memory;) {
        size_t      n;
        const char *name = defined(f->line[i], &n);
        if (name && !has(&f->words, name, n)) free(f->line[i]), f->line[i] = NULL;
        else if (!add_words(&f->words, f->line[i])) f->no_memory = true;
    }
}

bool cot__c_function_names(const cot__c_function *f, const char *name) { return has(&f->words, name, strlen(name)); }

void cot__c_function_put(const cot__c_function *f, FILE *out) {
    for (int64_t i = 0; i < f->count; i++)
        if (f->line[i]) fprintf(out, "%s\n", f->line[i]);
}

void cot__c_function_free(cot__c_function *f) {
    for (int64_t i = 0; i < f->count; i++) free(f->line[i]);
    free(f->line);
    free(f->words.slot);
    *f = (cot__c_function){0};
}
