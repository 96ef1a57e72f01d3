/* memory.c: cot_tape_memory: what the values of a tape take, which rules read them, and what it
 * would cost to make them again. A storage counts once, for the first value on it; nothing is
 * computed, so waiting work goes on waiting. */
#include "inspect/inspect.h"
#include "memory/memory.h"

#include "base/text.h"
#include "ops/costs.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 34, SAVED = 50, AGAIN = 66, READERS = 80, LONGEST = 24 };

/* The values of one operation, or of one name. */
typedef struct row {
    uint16_t    op;
    const char *name;      /* NULL: they have none */
    int64_t     count, bytes, saved;
    double      again;     /* operations that would make them again */
    uint32_t    reader;    /* a node whose rule reads one of them; COT__NONE: none does */
    bool        readers;   /* rules of several operations do */
} row;

typedef struct rows {
    row     *all;
    uint32_t count, capacity;
} rows;

static row *row_of(cot_tape *t, rows *r, uint16_t op, const char *name) {
    for (uint32_t k = 0; k < r->count; k++)
        if (r->all[k].op == op && r->all[k].name == name) return &r->all[k];
    void *list = r->all;
    if (!cot__grow(t, &list, &r->capacity, r->count, sizeof *r->all, "tape_memory")) return NULL;
    r->all = list;
    r->all[r->count] = (row){.op = op, .name = name, .reader = COT__NONE};
    return &r->all[r->count++];
}

static double cost_of(const cot_tape *t, uint32_t i) {
    return t->nodes[i].op < OP_structural ? (double)cot__size_at(t, i) : cot__cost_of_value(t, i);
}

/* Adds the value of node i, the first on its storage. */
static bool add(cot_tape *t, rows *r, cot_memory *m, uint32_t i) {
    const cot__node    *n = &t->nodes[i];
    const cot__storage *s = n->value.tensor->storage;
    row                *to = row_of(t, r, n->op, (n->flags & COT__NAMED) ? cot__name_of(t, i) : NULL);
    int64_t             bytes = (int64_t)(s->packed ? s->bytes / 2 : s->bytes);
    if (!to) return false;
    bool saved = s->saver_version != UINT32_MAX && cot__has_saver(t, s, s->saver_version);
    m->stored += bytes;
    to->count++, to->bytes += bytes, to->again += cost_of(t, i);
    if (saved) {
        to->saved += bytes;
        to->readers |= to->reader != COT__NONE && t->nodes[to->reader].op != t->nodes[s->saver].op;
        to->reader = s->saver;
    }
    if (cot__is_source(n)) m->sources += bytes;
    else if (saved) m->saved += bytes;
    else m->unread += bytes;
    if (saved && n->op < OP_structural) m->cheap += bytes;
    if (cot__is_stored(s)) m->spilled += bytes;
    if (s->packed) m->packed += bytes;
    return true;
}

/* A storage is told by the first value on it: later ones find its mark. */
static bool add_all(cot_tape *t, rows *r, cot_memory *m) {
    bool ok = true;
    for (const cot__mapped *list = t->memory.mapped; list; list = list->next) m->spilled += (int64_t)list->bytes;
    for (uint32_t i = 0; ok && i < t->count; i++) {
        const cot__node *n = &t->nodes[i];
        cot__lists_walk(t, i);
        if (!cot__is_tensor(n) || cot__in_body(n) || n->value.tensor->storage->scoped) continue;
        n->value.tensor->storage->scoped = 1;
        ok = n->value.tensor->storage->bytes == 0 || add(t, r, m, i);
    }
    for (uint32_t k = 0; k < t->storages.count; k++) t->storages.list[k]->scoped = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        cot__lists_walk(t, i);
        if (cot__is_tensor(&t->nodes[i])) t->nodes[i].value.tensor->storage->scoped = 0;
    }
    return ok;
}

static int larger_first(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->op != y->op ? (x->op < y->op ? -1 : 1) : 0;
}

static void put_row(const cot_tape *t, cot__text *x, const row *r) {
    cot__putf(x, "%lld ", (long long)r->count);
    cot__put(x, cot__op_of(r->op)->name);
    if (r->name) cot__putf(x, " \"%.*s\"", LONGEST, r->name);
    cot__tab(x, BYTES);
    cot__putf(x, "%lld", (long long)r->bytes);
    cot__tab(x, SAVED);
    cot__putf(x, "%lld", (long long)r->saved);
    cot__tab(x, AGAIN);
    if (cot__op_of(r->op)->kind == KIND_SOURCE) cot__put(x, "–");
    else cot__putf(x, "%.4g", r->again);
    if (r->reader != COT__NONE) {
        cot__tab(x, READERS);
        cot__putf(x, "%s%s", cot__op_name(t, r->reader), r->readers ? " and others" : "");
    }
    cot__put(x, "\n");
}

static void put_table(const cot_tape *t, FILE *out, const rows *r, const cot_memory *m) {
    cot__text x = cot__text_file(out);
    cot__put(&x, "values");
    cot__tab(&x, BYTES), cot__put(&x, "bytes");
    cot__tab(&x, SAVED), cot__put(&x, "saved");
    cot__tab(&x, AGAIN), cot__put(&x, "again");
    cot__tab(&x, READERS), cot__put(&x, "read by the rule of\n");
    for (uint32_t k = 0; k < r->count; k++) put_row(t, &x, &r->all[k]);
    cot__putf(&x, "%lld bytes: %lld of leaves and constants, %lld that rules read (%lld of them cheap to make again), "
                  "%lld that none reads\n",
              (long long)m->stored, (long long)m->sources, (long long)m->saved, (long long)m->cheap,
              (long long)m->unread);
    if (m->spilled) cot__putf(&x, "%lld bytes lie in files\n", (long long)m->spilled);
    if (m->packed) cot__putf(&x, "%lld bytes are kept as bf16\n", (long long)m->packed);
    cot__putf(&x, "the most at once so far, without leaves and gradients: %lld bytes\n", (long long)m->peak);
    if (m->least) cot__putf(&x, "a memory limit of %lld bytes is enough\n", (long long)m->least);
    else if (t->count) cot__put(&x, "there can be no memory limit: values are kept as bf16\n");
}

/* From the last value that a sweep could begin at; the last one, if there is none. */
static bool find_least(cot_tape *t, cot_memory *m) {
    uint32_t y = t->count;
    int64_t  whole;
    while (y > 0 && !(t->nodes[y - 1].flags & COT__ACTIVE)) y--;
    if (t->count) m->least = cot__enough(t, y ? y - 1 : t->count - 1, &whole);
    if (m->least >= 0) return true;
    cot__fail(t, COT_MEMORY, "[tape_memory] out of memory: %lld operations to look at", (long long)t->count);
    return false;
}

cot_status cot_tape_memory(cot_tape *t, cot_memory *memory, FILE *out) {
    cot_memory m = {0};
    rows       r = {0};
    if (memory) *memory = m;
    if (!t) return COT_MEMORY;
    if (t->status != COT_OK) return t->status;
    m.peak = cot_tape_peak_bytes(t);
    size_t peak = t->cache.peak; /* the lists of a report are no part of it, nor of a step */
    if (find_least(t, &m) && add_all(t, &r, &m)) {
        if (r.count) qsort(r.all, r.count, sizeof *r.all, larger_first);
        if (memory) *memory = m;
        if (out) put_table(t, out, &r, &m);
    }
    cot__free(&t->al, r.all, r.capacity * sizeof *r.all);
    t->cache.peak = peak;
    return t->status;
}
