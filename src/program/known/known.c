/* known.c: see known.h. A ring of descriptions, looked through from end to end. */
#include "program/known/known.h"

#include "backend/cpu/table/cpu.h"
#include "program/memory/entries.h"
#include "program/passes/passes.h"

#include <string.h>

/* ENTRIES: programs that are known at once. RUN_BYTES: a run that takes more is not kept. MET:
 * places for hashes of descriptions that had no program. LATELY: so many were asked for since. */
enum { ENTRIES = 64, RUN_BYTES = 1 << 18, MET = 256, LATELY = 4 * MET };

typedef struct entry {
    uint64_t      number;
    cot__words    words;
    uint32_t      hash, met;
    uint32_t      used; /* as many descriptions had been asked for when it was found last */
    cot__program *program;
    cot__run     *idle;
    int32_t      *more;
    uint32_t      count;
} entry;

struct cot__known {
    cot_allocator al;
    uint64_t      last; /* the number that was given last */
    uint32_t      asked;
    entry         at[ENTRIES];
    uint32_t      met[MET];
};

/* ---- words ----------------------------------------------------------------------------------- */

void cot__words_put_more(cot__words *w, uint64_t word) {
    uint32_t  room = w->room ? 2 * w->room : 256;
    uint64_t *at = w->failed ? NULL : cot__resize(&w->al, w->at, w->room * sizeof *at, room * sizeof *at);
    w->failed = !at;
    if (!at) return;
    w->at = at;
    w->room = room;
    w->at[w->count++] = word;
}

void cot__words_put_bytes(cot__words *w, const void *bytes, size_t n) {
    for (size_t k = 0; k < n; k += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)bytes + k, n - k < 8 ? n - k : 8);
        cot__words_put(w, word);
    }
}

void cot__words_free(cot__words *w) {
    cot__free(&w->al, w->at, w->room * sizeof *w->at);
    *w = (cot__words){.al = w->al};
}

static uint32_t hash_of(const cot__words *w) {
    uint32_t hash = w->count;
    for (uint32_t k = 0; k < w->count; k++) hash = cot__hash_more(hash, w->at[k]);
    return hash;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void forget(const cot__known *k, entry *e) {
    cot__run_destroy(e->idle);
    cot__program_release(e->program);
    cot__words_free(&e->words);
    cot__free(&k->al, e->more, e->count * sizeof *e->more);
    *e = (entry){0};
}

static entry *entry_of(cot__known *k, uint64_t number) {
    entry *e = k && number ? &k->at[number % ENTRIES] : NULL;
    return e && e->number == number ? e : NULL;
}

cot__known *cot__known_open(const cot_allocator *al) {
    cot__known *k = cot__alloc(al, sizeof *k);
    if (!k) return NULL;
    memset(k, 0, sizeof *k);
    k->al = *al;
    return k;
}

void cot__known_close(cot__known *k) {
    if (!k) return;
    for (int i = 0; i < ENTRIES; i++)
        if (k->at[i].number) forget(k, &k->at[i]);
    cot_allocator al = k->al;
    cot__free(&al, k, sizeof *k);
}

/* Was the entry that goes next used lately? Where more descriptions come in turn than there are
 * entries, each would drive out one that comes again before itself. */
static bool is_full(const cot__known *k) {
    const entry *e = &k->at[(k->last + 1) % ENTRIES];
    return e->number && k->asked - e->used <= LATELY;
}

static cot__known_program tell(const entry *e) {
    if (!e) return (cot__known_program){0};
    return (cot__known_program){.number = e->number, .program = e->program, .more = e->more, .count = e->count};
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* A program that cannot be made smaller for want of memory stays as it is. */
static void ignore(const cot__caller *c, cot_status code, const char *text) { (void)c, (void)code, (void)text; }
static void ignore_note(const cot__caller *c, const char *text) { (void)c, (void)text; }

/* What brings operations together makes values live longer, and a body of a loop is to take no more
 * memory than its steps do when they are recorded. */
static void optimise(const cot__known *k, entry *e) {
    cot__caller       caller = {"program", NULL, ignore, ignore_note, NULL};
    cot__pass_options o = {.al = &k->al, .caller = &caller, .backend = &cot__cpu_backend,
                           .without = 1u << COT__PASS_gather};
    cot__program     *better = cot__optimise(e->program, &o);
    if (!better) return;
    cot__program_release(e->program);
    e->program = better;
    cot__run_destroy(e->idle);
    e->idle = NULL;
}

/* ---- the whole ------------------------------------------------------------------------------- */

cot__known_program cot__known_find(cot__known *k, const cot__words *w, uint32_t worth) {
    if (!k || w->failed) return tell(NULL);
    uint32_t hash = hash_of(w);
    k->asked++;
    for (int i = 0; i < ENTRIES; i++) {
        entry *e = &k->at[i];
        if (e->hash != hash || !e->number || e->words.count != w->count) continue;
        if (memcmp(e->words.at, w->at, w->count * sizeof *w->at)) continue;
        if (++e->met == worth) optimise(k, e);
        e->used = k->asked;
        return tell(e);
    }
    bool met = k->met[hash % MET] == hash;
    k->met[hash % MET] = hash;
    return (cot__known_program){.again = met && !is_full(k)};
}

cot__known_program cot__known_add(cot__known *k, const cot__words *w, const cot__program *p, uint32_t count,
                                  const int32_t *more) {
    if (!k || w->failed) return tell(NULL);
    entry fresh = {.number = k->last + 1, .words.al = k->al, .hash = hash_of(w), .used = k->asked, .count = count};
    cot__words_put_bytes(&fresh.words, w->at, w->count * sizeof *w->at);
    fresh.more = cot__alloc(&k->al, count * sizeof *more);
    if (fresh.words.failed || !fresh.more) return forget(k, &fresh), tell(NULL);
    if (count) memcpy(fresh.more, more, count * sizeof *more);
    fresh.program = cot__program_share(p);
    entry *e = &k->at[++k->last % ENTRIES];
    forget(k, e);
    *e = fresh;
    return tell(e);
}

cot__run *cot__known_take(cot__known *k, uint64_t number) {
    entry    *e = entry_of(k, number);
    cot__run *r = e ? e->idle : NULL;
    if (e) e->idle = NULL;
    return r;
}

void cot__known_give(cot__known *k, uint64_t number, cot__run *r) {
    entry *e = r ? entry_of(k, number) : NULL;
    if (e && !e->idle && cot__run_bytes(r) <= RUN_BYTES && cot__run_program(r) == e->program) e->idle = r;
    else cot__run_destroy(r);
}
