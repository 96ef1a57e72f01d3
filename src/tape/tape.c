/* tape.c: the life of a tape: creation, errors, marks and rewinds, names and source lines.
 *
 * A rewind restores counters; what it frees is storages, gradients of forgotten tensor leaves and
 * arena chunks. */
#include "rules/structural_ids.h"
#include "tape/tape.h"
#include "tape/show.h"

#include "backend/cpu/table/cpu.h"
#include "backend/elements.h"
#include "program/known/known.h"
#include "base/cpu.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/poison.h"

#include <stdarg.h>
#include <string.h>

/* ---- creation -------------------------------------------------------------------------------- */

const cot__backend *cot__new_tape_backend = &cot__cpu_backend;

/* Who misspells a setting would wonder for long why it does nothing. */
static void refuse_unread(cot_tape *t, const char *name, const char *text, const char *allowed) {
    if (text) cot__fail(t, COT_VALUE, "[tape_create] %s is \"%.200s\"; it must be %s", name, text, allowed);
}

static void check_environment(cot_tape *t) {
    refuse_unread(t, "COTANGENT_THREADS", cot__threads_unread(), "a whole number, 1 at least");
    refuse_unread(t, "COTANGENT_ISA", cot__cpu_isa_unread(), COT__ISA_NAMES);
    refuse_unread(t, "COTANGENT_BITS", cot__cpu_bits_unread(), "fast or portable");
}

cot_tape *cot_tape_create(const cot_options *options) {
    cot_options defaults = {0};
    if (!options) options = &defaults;
    cot_tape *t = cot__alloc(&options->allocator, sizeof *t);
    if (!t) return NULL;
    memset(t, 0, sizeof *t);
    t->cache.below = options->allocator;
    t->al = (cot_allocator){cot__cache_alloc, &t->cache};
    t->options.strict = options->strict;
    t->options.smooth = options->smooth;
    t->options.load_steps = options->load_steps;
    t->backend = cot__backend_of(cot__new_tape_backend, options->fast);
    t->active_mask = COT__ACTIVE;
    t->stamp = 1;
    t->steps_left = INT64_MAX;
    cot__memory_begin(t, options);
    check_environment(t);
    return t;
}

/* nodes: how many stay. What somebody else holds is no node's any more, and not made again. */
static void release_storages(cot_tape *t, uint32_t from, uint32_t nodes) {
    while (t->storages.count > from) {
        cot__storage *s = t->storages.list[--t->storages.count];
        if (s->maker >= nodes) s->maker = COT__NONE;
        if (s->owner >= nodes) s->owner = COT__NONE;
        cot__storage_release(t, s);
    }
}

static void release_gradients(cot_tape *t, uint32_t leaves, uint32_t retained) {
    while (t->leaves.count > leaves) {
        cot__node *leaf = &t->nodes[t->leaves.list[--t->leaves.count]];
        cot__storage_release(t, leaf->extra.grad);
    }
    while (t->retained.count > retained) {
        /* the value itself may be older than the mark and stay */
        const cot__retained *r = &t->retained.list[--t->retained.count];
        t->nodes[r->node].flags &= (uint8_t)~(COT__RETAIN | COT__HAS_GRAD);
        cot__storage_release(t, r->tensor);
    }
}

static void release_arena(cot_tape *t, const void *chunk, size_t used) {
    while (t->arena && t->arena != chunk) {
        cot__chunk *c = t->arena;
        t->arena = c->prev;
        cot__unpoison(c, sizeof *c + c->size);
        cot__free(&t->al, c, sizeof *c + c->size);
    }
    if (!t->arena) return;
    t->arena->used = used;
    cot__poison((char *)t->arena->align + used, t->arena->size - used);
}

void cot_tape_destroy(cot_tape *t) {
    if (!t) return;
    cot__pending_forget(t); /* nobody will look at its results */
    release_gradients(t, 0, 0);
    cot__release_kept(t, 0);
    cot__known_close(t->known);
    release_storages(t, 0, 0);
    cot__storage_release(t, t->storages.zero);
    cot__pending_forget(t); /* the places of what was asked for by nobody */
    cot__stores_close(t);
    release_arena(t, NULL, 0);
    cot__array_free(t, &t->node_memory);
    cot__array_free(t, &t->sweep.adjoints);
    cot__free(&t->al, t->scopes.closed, t->scopes.capacity * sizeof *t->scopes.closed);
    cot__free(&t->al, t->storages.list, t->storages.capacity * sizeof *t->storages.list);
    cot__free(&t->al, t->leaves.list, t->leaves.capacity * sizeof *t->leaves.list);
    cot__free(&t->al, t->memory.scratch.list, t->memory.scratch.capacity * sizeof *t->memory.scratch.list);
    cot__free(&t->al, t->kept.list, t->kept.capacity * sizeof *t->kept.list);
    cot__free(&t->al, t->names.list, t->names.capacity * sizeof *t->names.list);
    cot__list_free(t, t->sites.list, t->sites.capacity * sizeof *t->sites.list);
    cot__free(&t->al, t->retained.list, t->retained.capacity * sizeof *t->retained.list);
    cot__list_free(t, t->sweep.arrived, t->sweep.arrived_capacity * sizeof *t->sweep.arrived);
    cot__cache_trim(&t->cache);
    cot_allocator al = t->cache.below;
    cot__free(&al, t, sizeof *t);
}

/* ---- errors ---------------------------------------------------------------------------------- */

const char *cot_status_name(cot_status status) {
    static const char *const names[] = {
#define NAME(name, text) #name,
        COT_STATUS_LIST(NAME)
#undef NAME
    };
    return (unsigned)status < (unsigned)COUNTOF(names) ? names[status] : "?";
}

cot_status  cot_tape_status(const cot_tape *t) { return t ? t->status : COT_MEMORY; }
const char *cot_tape_message(const cot_tape *t) {
    return t ? t->errors.message : "the tape is NULL: cot_tape_create found no memory";
}

/* Memory may be short for any operation that a sweep records. The message then names the function
 * that the user called instead, but not if one of the user's own functions called the operation. */
static void name_the_asked(cot_tape *t) {
    char  *end = t->errors.message[0] == '[' ? strchr(t->errors.message, ']') : NULL;
    size_t name = end && t->sweep.asked ? strlen(t->sweep.asked) : 0, rest = end ? strlen(end) : 0;
    if (!name || name + rest + 2 > sizeof t->errors.message || t->mode.inside || t->mode.body) return;
    memmove(t->errors.message + 1 + name, end, rest + 1);
    memcpy(t->errors.message + 1, t->sweep.asked, name);
}

/* The system may have more, but the user set a limit. */
static void name_the_limit(cot_tape *t) {
    size_t used = strlen(t->errors.message);
    snprintf(t->errors.message + used, sizeof t->errors.message - used,
             "; the memory limit is %zu bytes, and %zu are in use that cannot be dropped now", t->cache.limit,
             cot__cache_used(&t->cache));
    if (t->memory.list_refused) {
        used = strlen(t->errors.message);
        snprintf(t->errors.message + used, sizeof t->errors.message - used,
                 "; operations and adjoints may lie in files of a folder, cot_options.spill");
    }
    if (t->memory.store && cot__store_trouble(t->memory.store)) {
        used = strlen(t->errors.message);
        snprintf(t->errors.message + used, sizeof t->errors.message - used, "; the disk of %s failed: %s",
                 cot__store_folder(t->memory.store), cot__store_trouble(t->memory.store));
    }
    t->cache.refused = t->memory.list_refused = false;
}

cot_var cot__fail(cot_tape *t, cot_status code, const char *format, ...) {
    if (t && t->status == COT_OK) {
        va_list args;
        va_start(args, format);
        cot__vformat(t->errors.message, sizeof t->errors.message, format, args);
        va_end(args);
        if (code == COT_MEMORY) name_the_asked(t);
        if (code == COT_MEMORY && t->cache.refused) name_the_limit(t);
        t->status = code;
        t->errors.count++;
        t->errors.placed = false;
        t->fast_limit = 0;
    }
    return INVALID(t);
}

void cot_tape_clear_error(cot_tape *t) {
    if (!t) return;
    t->status = COT_OK;
    t->errors.message[0] = 0;
    t->fast_limit = cot__scalars_in_nodes(t) ? t->capacity : 0;
}

/* ---- notes ----------------------------------------------------------------------------------- */

const char *cot_tape_note(const cot_tape *t) { return t ? t->notes.first : ""; }

void cot_tape_clear_note(cot_tape *t) {
    if (t) t->notes.first[0] = 0;
}

void cot__note(cot_tape *t, const char *format, ...) {
    if (t->notes.first[0]) return;
    va_list args;
    va_start(args, format);
    cot__vformat(t->notes.first, sizeof t->notes.first, format, args);
    va_end(args);
    t->notes.count++;
}

/* ---- marks ----------------------------------------------------------------------------------- */

enum { NODES, STAMP, STORAGES, LEAVES, CHUNK, USED, LISTS, RETAINED, SCOPES_AT = 56 };

/* Tells marks of different tapes apart; never 0. */
static uint64_t tag(const cot_tape *t) { return (uint64_t)((uint32_t)((uintptr_t)t >> 4) | 1) << 32; }

cot_mark cot__mark(cot_tape *t) {
    return (cot_mark){{
        [NODES] = t->count | (uint64_t)t->errors.count << 32,
        [STAMP] = tag(t) | (t->count ? t->nodes[t->count - 1].stamp : 0),
        [STORAGES] = t->storages.count | (uint64_t)t->notes.count << 32,
        [LEAVES] = t->leaves.count | (uint64_t)t->kept.count << 32,
        [CHUNK] = (uint64_t)(uintptr_t)t->arena,
        [USED] = t->arena ? t->arena->used : 0,
        [LISTS] = (uint64_t)t->names.count << 32 | t->sites.count,
        [RETAINED] = (uint64_t)t->scopes.depth << SCOPES_AT | (uint64_t)t->mode.no_grad << 32 | t->retained.count,
    }};
}

static void forget(cot_tape *t, cot_mark m) {
    if (t->count > t->most_nodes) t->most_nodes = t->count;
    release_gradients(t, (uint32_t)m.part[LEAVES], (uint32_t)m.part[RETAINED]);
    if (UNLIKELY(t->kept.count > m.part[LEAVES] >> 32)) cot__release_kept(t, (uint32_t)(m.part[LEAVES] >> 32));
    release_storages(t, (uint32_t)m.part[STORAGES], (uint32_t)m.part[NODES]);
    /* values older than the mark may wait, too; those of what is forgotten need not be computed */
    if (UNLIKELY(t->pending.work)) cot__pending_rewound(t);
    release_arena(t, (const void *)(uintptr_t)m.part[CHUNK], (size_t)m.part[USED]);
    t->count = (uint32_t)m.part[NODES];
    if (t->scalars_from > t->count) t->scalars_from = t->count;
    if (UNLIKELY(t->memory.mapped)) cot__lists_rewound(t);
    t->names.count = (uint32_t)(m.part[LISTS] >> 32);
    t->sites.count = (uint32_t)m.part[LISTS];
    int scopes = (int)(m.part[RETAINED] >> SCOPES_AT);
    if (t->scopes.depth > scopes) t->scopes.depth = scopes;
}

/* If an assignment was made since the mark (by a rule of the user's, say), its time, a count of
 * nodes, will come again. Another stamp tells nodes that are recorded then from the forgotten
 * ones. */
void cot__rewind(cot_tape *t, cot_mark m) {
    forget(t, m);
    if (UNLIKELY(t->memory.scratch.count)) cot__scratch_rewound(t, true);
    if (LIKELY(t->assigned_at <= t->count)) return;
    t->assigned_at = t->count;
    cot__next_stamp(t);
}

cot_mark cot_tape_mark(cot_tape *t) { return t ? cot__mark(t) : (cot_mark){{0}}; }

/* Is everything that the mark remembers still there? The last node tells by its stamp; what was
 * made between nodes tells by its counters. */
static bool still_there(const cot_tape *t, const cot_mark *m) {
    uint32_t n = (uint32_t)m->part[NODES];
    if (n > t->count || (n && t->nodes[n - 1].stamp != (uint32_t)m->part[STAMP])) return false;
    if ((uint32_t)m->part[STORAGES] > t->storages.count || (uint32_t)m->part[LEAVES] > t->leaves.count ||
        m->part[LISTS] >> 32 > t->names.count || (uint32_t)m->part[LISTS] > t->sites.count ||
        (uint32_t)m->part[RETAINED] > t->retained.count)
        return false;
    const cot__chunk *c = t->arena, *want = (const cot__chunk *)(uintptr_t)m->part[CHUNK];
    while (c && c != want) c = c->prev; /* over chunks that the rewind is about to free */
    return c == want && (!c || m->part[USED] <= c->used);
}

void cot_tape_rewind(cot_tape *t, cot_mark m) {
    if (!t) return;
    if ((m.part[STAMP] >> 32) << 32 != tag(t)) {
        cot__fail(t, COT_VALUE, "[tape_rewind] this mark was made on another tape, or never; cot_tape_mark makes one");
        return;
    }
    if (!still_there(t, &m)) {
        cot__fail(t, COT_VALUE, "[tape_rewind] this mark lies in a part of the tape that was already forgotten; "
                                "marks are rewound in the reverse of the order in which they were made");
        return;
    }
    if (t->mode.inside && (uint32_t)m.part[NODES] < t->mode.inside_from) {
        cot__fail(t, COT_VALUE,
                  "[tape_rewind] called inside a function of [%s], to a mark made before; such a function may forget "
                  "only what "
                  "it recorded itself",
                  t->mode.inside);
        return;
    }
    if (t->mode.body && (uint32_t)m.part[NODES] < t->mode.body_from) {
        cot__fail(t, COT_VALUE,
                  "[tape_rewind] called while the body of [%s] is recorded, to a mark made before; a body may forget "
                  "only what it "
                  "recorded itself",
                  t->mode.body);
        return;
    }
    /* the error, or the note, is newer than the mark */
    if (t->status != COT_OK && t->errors.count != m.part[NODES] >> 32) cot_tape_clear_error(t);
    if (t->notes.count != m.part[STORAGES] >> 32) cot_tape_clear_note(t);
    forget(t, m);
    if (t->memory.scratch.count) cot__scratch_rewound(t, false);
    if (t->assigned_at > t->count) t->assigned_at = t->count;
    t->mode.no_grad = (int)(m.part[RETAINED] << (64 - SCOPES_AT) >> (96 - SCOPES_AT));
    t->active_mask = t->mode.no_grad ? 0 : COT__ACTIVE;
    cot__next_stamp(t);
    if (UNLIKELY(t->cache.limit)) cot__lists_trim(t);
}

/* Times of nodes ascend along the tape. */
uint32_t cot__older_nodes(const cot_tape *t, const cot__node *n) {
    uint32_t lo = 0, hi = t->count, stamp = n->b / COT__ASSIGNERS;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2, at = t->nodes[mid].stamp & ~COT__BODY_STAMP;
        if (at < stamp || (at == stamp && mid < n->a)) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static uint32_t stamp_before(const cot_tape *t, uint32_t i) { return i ? t->nodes[i - 1].stamp & ~COT__BODY_STAMP : 0; }

/* When stamps are used up, the ones after the last node's are used again. An assignment must stay
 * later than every node before it, and no later than the nodes to come, so it gets the time of the
 * last node before it. If the last node has the last stamp itself, that stamp stays for good: from
 * then on a forgotten var may be taken for a new one. */
static void reuse_stamps(cot_tape *t) {
    for (uint32_t i = 0; i < t->count; i++) {
        cot__node *n = &t->nodes[i];
        if (!cot__was_assigned(n)) continue;
        uint32_t end = cot__older_nodes(t, n);
        n->a = end, n->b = stamp_before(t, end) * COT__ASSIGNERS + n->b % COT__ASSIGNERS;
    }
    t->stamp = stamp_before(t, t->count);
}

void cot__next_stamp(cot_tape *t) {
    if (UNLIKELY(t->stamp >= COT__LAST_STAMP)) reuse_stamps(t);
    if (t->stamp < COT__LAST_STAMP) t->stamp++;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t cot_tape_length(const cot_tape *t) { return t ? t->count : 0; }
int64_t cot_tape_storage_bytes(const cot_tape *t) { return t ? t->storages.bytes : 0; }

void cot_tape_trim(cot_tape *t) {
    if (!t) return;
    cot__lists_trim(t);
    cot__cache_trim(&t->cache);
}

/* What is touched of the arrays that lie in reserved address space, which the cache does not
 * count. */
static int64_t reserved_bytes(const cot_tape *t, uint32_t nodes, size_t slots) {
    return (t->node_memory.reserved ? (int64_t)nodes * (int64_t)sizeof *t->nodes : 0) +
           (t->sweep.adjoints.reserved ? (int64_t)slots : 0);
}

int64_t cot_tape_bytes(const cot_tape *t) {
    if (!t) return 0;
    return (int64_t)(sizeof *t + t->cache.held) + reserved_bytes(t, t->count, t->sweep.zeroed);
}

int64_t cot_tape_peak_bytes(const cot_tape *t) {
    if (!t) return 0;
    uint32_t nodes = t->count > t->most_nodes ? t->count : t->most_nodes;
    size_t   slots = t->sweep.zeroed > t->sweep.most_zeroed ? t->sweep.zeroed : t->sweep.most_zeroed;
    return (int64_t)t->cache.peak + reserved_bytes(t, nodes, slots);
}

/* ---- no-grad scopes -------------------------------------------------------------------------- */

void cot_no_grad_open(cot_tape *t) {
    if (!t) return;
    t->mode.no_grad++;
    t->active_mask = 0;
}

void cot_no_grad_close(cot_tape *t) {
    if (!t) return;
    if (t->mode.no_grad == 0) {
        cot__fail(t, COT_VALUE, "[no_grad_close] no no-grad scope is open; every close needs its open");
        return;
    }
    if (--t->mode.no_grad == 0) t->active_mask = COT__ACTIVE;
}

/* ---- names and source lines ------------------------------------------------------------------ */

cot_var cot_name(cot_var x, const char *name) {
    cot_tape *t = cot__tape_of(1, &x);
    uint32_t  i;
    if (!t || !cot__operand(t, x, "name", "named", &i)) return INVALID(t);
    if (!name) return cot__fail(t, COT_VALUE, "[name] the name is NULL; give a text, it is copied");
    void *list = t->names.list;
    if (!cot__grow(t, &list, &t->names.capacity, t->names.count, sizeof *t->names.list, "name")) return INVALID(t);
    t->names.list = list;
    size_t length = strlen(name) + 1;
    char  *copy = cot__arena(t, length, "name");
    if (!copy) return INVALID(t);
    memcpy(copy, name, length);
    if (t->names.count == 0) t->names.mixed = false;
    if (t->names.count > 0 && t->names.list[t->names.count - 1].node >= i) t->names.mixed = true;
    t->names.list[t->names.count++] = (cot__named){.node = i, .name = copy};
    t->nodes[i].flags |= COT__NAMED;
    return x;
}

/* The newest name wins. Values are mostly named as they are made: then the list is in order, and
 * searched by halves. */
const char *cot__name_of(const cot_tape *t, uint32_t node) {
    if (!(t->nodes[node].flags & COT__NAMED)) return NULL;
    uint32_t lo = 0, hi = t->names.count;
    while (!t->names.mixed && lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->names.list[mid].node == node) return t->names.list[mid].name;
        if (t->names.list[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (uint32_t i = t->names.count; t->names.mixed && i-- > 0;)
        if (t->names.list[i].node == node) return t->names.list[i].name;
    return NULL;
}

/* "train.c:42 in step", without a function if that is not known */
enum { SITE_TEXT = 200 };
static const char *site_text(const cot_site *site, char text[SITE_TEXT]) {
    const char *slash = strrchr(site->file, '/'), *function = site->function;
    snprintf(text, SITE_TEXT, "%s:%d%s%s", slash ? slash + 1 : site->file, site->line, function ? " in " : "",
             function ? function : "");
    return text;
}

/* The error gets the source line of the call that just failed. Later calls found the tape failed
 * and add nothing. */
static void place_error(cot_tape *t, const cot_site *site) {
    if (t->errors.placed || !site) return;
    size_t used = strlen(t->errors.message);
    char   text[SITE_TEXT];
    snprintf(t->errors.message + used, sizeof t->errors.message - used, " (%s)", site_text(site, text));
    t->errors.placed = true;
}

/* Sites are runs: a call stamps all nodes made since the previous stamp. A NULL site marks nodes
 * made without one. */
cot_var cot_sited(cot_var x, const cot_site *site) {
    cot_tape *t = x.tape;
    if (site && !site->file) site = NULL;
    if (t && !cot__is_number(x) && t->status != COT_OK) place_error(t, site);
    if (!t || cot__is_number(x) || t->count == 0) return x;
    /* `first` of the last run is its end, exclusive */
    uint32_t first = t->sites.count ? t->sites.list[t->sites.count - 1].first : 0;
    if (t->sites.count && first >= t->count) return x;
    void *list = t->sites.list;
    if (!cot__list_grow(t, &list, &t->sites.capacity, t->sites.count, sizeof *t->sites.list, "source line"))
        return INVALID(t);
    t->sites.list = list;
    t->sites.list[t->sites.count++] = (cot__site_run){t->count, site};
    return x;
}

const cot_site *cot__site_of(const cot_tape *t, uint32_t node) {
    uint32_t lo = 0, hi = t->sites.count; /* the first run whose end lies beyond node */
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (t->sites.list[mid].first > node)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo < t->sites.count ? t->sites.list[lo].site : NULL;
}

const char *cot__op_name(const cot_tape *t, uint32_t node) {
    const cot__node *n = &t->nodes[node];
    if (n->op == OP_loop)
        /* "scan": a cot__loop begins with the name of the public function */
        return *(const char *const *)n->extra.attr->pointer;
    if (n->op != OP_custom) return cot__op_of(n->op)->name;
    const cot_custom *custom = n->extra.attr->pointer;
    return custom->name ? custom->name : "custom";
}

const char *cot__describe(const cot_tape *t, uint32_t node, char *buf, size_t size) {
    const char     *name = cot__name_of(t, node), *op = cot__op_name(t, cot__operation_at(t, node));
    const cot_site *site = cot__site_of(t, node);
    char            called[COT__CALLED_TEXT], where[SITE_TEXT];
    /* a name that is no word stands behind what the value is called */
    bool            twice = name && !cot__is_called_by_name(t, node);
    int n = snprintf(buf, size, twice ? "%s (%s \"%s\"" : "%s (%s", op, cot__called(t, node, called), name);
    if (n < 0 || (size_t)n >= size) return buf;
    if (site)
        snprintf(buf + n, size - (size_t)n, ", %s)", site_text(site, where));
    else
        snprintf(buf + n, size - (size_t)n, ")");
    return buf;
}
