/* rehearse.c: a step is rehearsed under a limit: a tape of the same nodes is laid out, whose
 * storages have addresses and no numbers, and swept by a backend that computes nothing (hollow.c).
 * What is dropped, made again and asked of the allocator is what a step drops, makes and asks for.
 * So it is seen, not reckoned, whether a limit is enough.
 *
 * Nodes keep their numbers, so that attributes, which name nodes, serve both tapes. Bodies, loops,
 * programs and functions of the user's are not rehearsed: they would have to be run. */
#include "memory/memory.h"
#include "backend/elements.h"
#include "rules/structural_ids.h"
#include "tape/record_job.h"

#include <string.h>

enum { MOST_NODES = 2048 };

/* ---- which tapes ----------------------------------------------------------------------------- */

bool cot__can_rehearse(const cot_tape *t, uint32_t y) {
    if (y >= MOST_NODES || !cot__on_host(t->backend) || !cot__scalars_in_nodes(t)) return false;
    for (uint32_t i = 0; i <= y; i++) {
        const cot__node *n = &t->nodes[i];
        const cot__op   *op = cot__op_of(n->op);
        if (cot__in_body(n)) return false;
        if (n->op < OP_structural || cot__is_source(n) || op->kind == KIND_PICK) continue;
        if (op->needs_tape || op->again || !(op->run || op->view)) return false;
    }
    return true;
}

/* ---- laying it out --------------------------------------------------------------------------- */

/* `before` of a storage is free between two searches (drop.c). Here it is 1 + the number of the
 * storage that stands for it; 0: none yet; -1: none yet, and it is a leaf's. */
static void mark_leaves(const cot_tape *of, uint32_t end, bool clear) {
    for (uint32_t i = 0; i < end; i++)
        if (cot__is_tensor(&of->nodes[i])) of->nodes[i].value.tensor->storage->before = 0;
    for (uint32_t i = 0; i < end && !clear; i++) {
        const cot__node *n = &of->nodes[i];
        if (cot__is_tensor(n) && cot__is_leaf(n)) n->value.tensor->storage->before = -1;
    }
}

/* z is made by the operation of node i, and may be dropped. */
static cot__storage *made_by(cot_tape *t, cot__storage *z, const cot__node *n, uint32_t i) {
    z->maker = z->owner = n->op == OP_pick ? cot__arg(n, 0) : i;
    z->used_at = z->read_at = t->memory.clock;
    return z;
}

/* For the storage of node i, the first on it. */
static cot__storage *stand_in(cot_tape *t, const cot_tape *of, uint32_t i) {
    const cot__storage *s = of->nodes[i].value.tensor->storage;
    cot__storage       *z = s->borrowed    ? cot__storage_wrap(t, s->data, s->bytes, "memory")
                            : s->before < 0 ? cot__storage_create_aside(t, s->bytes, "memory")
                                            : cot__storage_create(t, s->bytes, "memory");
    if (!z || !cot__storage_keep(t, z, "memory")) return NULL;
    z->version = s->version, z->writer = s->writer, z->given = s->given;
    z->saver = s->saver, z->saver_version = s->saver_version;
    return t->memory.on && !s->borrowed && s->before == 0 ? made_by(t, z, &of->nodes[i], i) : z;
}

/* For what a scope let go, which it would not under a limit: the layout says how large it was. */
static cot__storage *not_let_go(cot_tape *t, const cot_tape *of, uint32_t i) {
    const cot__node *n = &of->nodes[i];
    if (n->op >= OP_structural && cot__op_of(n->op)->view) {
        const cot__node *x = &t->nodes[cot__arg(n, 0)];
        if (cot__is_tensor(x)) return x->value.tensor->storage;
    }
    cot__storage *z = cot__storage_create(t, (size_t)cot__bytes_at(of, i), "memory");
    return z && cot__storage_keep(t, z, "memory") ? made_by(t, z, n, i) : NULL;
}

static cot__storage *storage_for(cot_tape *t, const cot_tape *of, uint32_t i) {
    cot__storage *s = of->nodes[i].value.tensor->storage;
    if (t->memory.on && cot__was_let_go(of, i)) return not_let_go(t, of, i);
    if (s->before > 0) return t->storages.list[(uint32_t)s->before - 1];
    cot__storage *z = stand_in(t, of, i);
    s->before = t->storages.count;
    return z;
}

static bool lay_tensor(cot_tape *t, const cot_tape *of, uint32_t i, cot__node *n) {
    const cot__tensor *x = of->nodes[i].value.tensor;
    size_t             bytes = sizeof *x + 2 * (size_t)x->ndim * sizeof *x->dims;
    cot__storage      *s = storage_for(t, of, i);
    cot__tensor       *v = s ? cot__arena(t, bytes, "memory") : NULL;
    if (!v) return false;
    memcpy(v, x, bytes);
    v->storage = s;
    n->value.tensor = v;
    return true;
}

static bool lay_leaf(cot_tape *t, cot__node *n) {
    void *list = t->leaves.list;
    n->op = OP_leaf;
    n->flags &= (uint8_t)~(COT__HAS_GRAD | COT__NARY);
    if (!cot__is_tensor(n)) return n->extra.number = 0, true;
    n->extra.grad = NULL;
    if (!cot__grow(t, &list, &t->leaves.capacity, t->leaves.count, sizeof *t->leaves.list, "memory")) return false;
    t->leaves.list = list;
    t->leaves.list[t->leaves.count++] = t->count;
    return true;
}

/* Attributes serve both tapes, but each has memory for its own. */
static bool lay_attributes(cot_tape *t, const cot__node *n) {
    const cot__attr *a = n->op >= OP_structural && !cot__is_source(n) ? n->extra.attr : NULL;
    return !a || cot__arena(t, sizeof *a + a->nints * sizeof *a->ints + a->nargs * sizeof *a->args, "memory");
}

/* An operation as it is recorded: attributes, views of many operands, room for all results, then
 * operands, which may have to be made again, then a workspace, then the nodes. What is dropped
 * depends on the order. */
static bool begin_operation(cot_tape *t, const cot_tape *of, uint32_t i, cot__node *n) {
    bool    computes = !cot__is_source(n) && !(n->op >= OP_structural && cot__op_of(n->op)->view);
    int     count = computes ? cot__nargs(n) : 0;
    int64_t bytes = computes ? cot__workspace_at(of, i) : 0;
    size_t  seen = count > COT__FEW_OPERANDS ? (size_t)count * sizeof(cot__view) : 0;
    void   *views = seen ? cot__alloc(&t->al, seen) : NULL, *workspace;
    if (!lay_attributes(t, n)) return cot__free(&t->al, views, seen), false;
    for (int k = 0, m = cot__results_at(of, i); k < m && t->status == COT_OK; k++)
        if (cot__is_tensor(n + k)) lay_tensor(t, of, i + (uint32_t)k, n + k);
    for (int k = 0; k < count && t->status == COT_OK; k++)
        if (cot__arg(n, k) != COT__NONE) cot__look(t, cot__arg(n, k));
    workspace = bytes && t->status == COT_OK ? cot__workspace_open(t, "memory", bytes) : NULL;
    cot__workspace_close(t, workspace, bytes);
    cot__free(&t->al, views, seen);
    return t->status == COT_OK && (views || !seen);
}

static bool lay_node(cot_tape *t, uint32_t i, cot__node *n) {
    n->flags &= (uint8_t)~(COT__WANTED | COT__RETAIN | COT__NAMED);
    if (!cot__room(t, "memory") || (cot__is_leaf(n) && !lay_leaf(t, n))) return false;
    t->nodes[i] = *n; /* a leaf stands in a list now, so it must be there */
    t->count = i + 1;
    cot__memory_tick(t);
    return t->status == COT_OK;
}

/* What functions have taken for themselves by the time of a node, `open` bytes: counted, since
 * nobody writes there. Notes before `first` were given back. */
typedef struct scratches { uint32_t first, next; size_t open; } scratches;

static bool count_scratch(cot_tape *t, scratches *w, size_t bytes) {
    if (bytes > w->open && !cot__cache_room(&t->cache, bytes - w->open))
        return cot__fail(t, COT_MEMORY, "[memory] out of memory"), false;
    cot__cache_count(&t->cache, w->open, bytes);
    w->open = bytes;
    return true;
}
/* That before node i, one after the other, and then what is still there when it is recorded. */
static bool lay_scratch(cot_tape *t, const cot_tape *of, scratches *w, uint32_t i) {
    const cot__scratch_note *list = of->memory.scratch.list;
    size_t                   open = 0;
    for (; w->next < of->memory.scratch.count && list[w->next].from <= i; w->next++)
        if (!count_scratch(t, w, list[w->next].at_once)) return false;
    while (w->first < w->next && list[w->first].to <= i) w->first++;
    for (uint32_t k = w->first; k < w->next; k++) open += list[k].to > i ? list[k].bytes : 0;
    return open == w->open || count_scratch(t, w, open);
}

/* The operation of node i, whose picks stand behind it. */
static bool lay_operation(cot_tape *t, const cot_tape *of, uint32_t i) {
    cot__node n[COT__JOB_RESULTS];
    int       m = cot__results_at(of, i);
    bool      well = m <= COT__JOB_RESULTS;
    for (int k = 0; k < m && well; k++) n[k] = of->nodes[i + (uint32_t)k];
    well = well && begin_operation(t, of, i, n);
    for (int k = 0; k < m && well; k++) well = lay_node(t, i + (uint32_t)k, &n[k]);
    return well;
}

static size_t side_records(const cot_tape *t) {
    size_t bytes = 0;
    for (const cot__chunk *c = t->arena; c; c = c->prev) bytes += c->used;
    return bytes;
}

/* Nodes 0 … end - 1, and what there is besides in the arena: names, keys of random numbers. */
static bool lay_out(cot_tape *t, const cot_tape *of, uint32_t end) {
    scratches open = {0};
    mark_leaves(of, end, false);
    while (t->count < end && lay_scratch(t, of, &open, t->count) && lay_operation(t, of, t->count)) {}
    count_scratch(t, &open, 0);
    mark_leaves(of, end, true);
    size_t all = side_records(of), laid = side_records(t);
    return t->count == end && (all <= laid || cot__arena(t, all - laid, "memory"));
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Elements take address space and no memory (cot__reserve). What is small comes in chunks from the
 * allocator of the tape that is rehearsed, and goes back there at the end; blocks that are freed
 * meanwhile serve again by their size. */
enum { CHUNK = 1 << 18, SIZES = 64, ALIGNED = 64 };
/* Nobody computes numbers, but sweeps pass over adjoints that are 0: all are small and none is 0,
 * so that a rehearsal goes everywhere, and the same way each time. */
enum { SOME_BYTE = 0x3f };

typedef struct chunk { struct chunk *next; size_t used; } chunk;
/* Free blocks of one size: each begins with the address of the next. */
typedef struct spare { size_t bytes; void *first; } spare;
typedef struct supply { const cot_allocator *of; chunk *chunks; spare spare[SIZES]; bool failed; } supply;

static size_t rounded(size_t bytes) { return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED; }

/* The list of this size; NULL: there are too many others. */
static spare *spare_of(supply *s, size_t bytes) {
    for (int k = 0; k < SIZES; k++) {
        if (!s->spare[k].bytes) s->spare[k].bytes = bytes;
        if (s->spare[k].bytes == bytes) return &s->spare[k];
    }
    return NULL;
}

static void *take(supply *s, size_t bytes) {
    spare *list = spare_of(s, bytes);
    void  *block = list ? list->first : NULL;
    if (block) return memcpy(&list->first, block, sizeof list->first), block;
    if (!s->chunks || s->chunks->used + bytes > CHUNK) {
        chunk *more = cot__alloc(s->of, CHUNK);
        if (!more) return s->failed = true, NULL;
        memset(more, SOME_BYTE, CHUNK);
        *more = (chunk){s->chunks, rounded(sizeof *more)};
        s->chunks = more;
    }
    s->chunks->used += bytes;
    return (char *)s->chunks + s->chunks->used - bytes;
}

static void put_back(supply *s, void *block, size_t bytes) {
    spare *list = spare_of(s, bytes);
    if (!list) return;
    memcpy(block, &list->first, sizeof list->first);
    list->first = block;
}

static void *small_block(void *user, void *ptr, size_t old_size, size_t new_size) {
    void *block = new_size ? take(user, rounded(new_size)) : NULL;
    if (new_size && !block) return NULL;
    if (ptr && block) memcpy(block, ptr, old_size < new_size ? old_size : new_size);
    if (ptr) put_back(user, ptr, rounded(old_size));
    return block;
}

static void close_supply(supply *s) {
    while (s->chunks) {
        chunk *last = s->chunks;
        s->chunks = last->next;
        cot__free(s->of, last, CHUNK);
    }
}

/* ---- within its share ------------------------------------------------------------------------ */

/* To find what to drop all storages are looked at, and the tighter a limit is, the more often. Who
 * has looked at too many drops nothing more, so memory is refused, and the limit is not enough. */
typedef struct share { cot_tape *t; cot__rehearsal *r; } share;

enum { AGAIN = 128 }; /* looks that an operation done again is worth, with its memory */

static void drop_within(void *user, size_t bytes) {
    const share *s = user;
    if (s->r->looks >= s->r->most_looks) return;
    uint32_t before = s->t->memory.dropped;
    cot__drop_for(s->t, bytes);
    int64_t count = s->t->storages.count, gone = (int64_t)(s->t->memory.dropped - before);
    s->r->looks += (1 + gone) * AGAIN + (count > COT__MANY_STORAGES ? count : (1 + gone) * count);
}

bool cot__rehearse(cot_tape *of, uint32_t y, cot__rehearsal *r) {
    cot__backend  hollow;
    supply        from = {.of = &of->cache.below};
    cot_allocator small = {small_block, &from};
    cot_tape     *t = cot_tape_create(&(cot_options){.allocator = {cot__reserve, &small}, .memory_limit = 1});
    if (!t) return close_supply(&from), r->failed = true, false;
    share within = {t, r};
    cot__hollow_backend(&hollow, of->backend);
    t->backend = &hollow;
    t->memory.store = NULL;
    cot_tape_clear_error(t);
    cot_tape_set_memory_limit(t, 0);
    t->cache.limit = r->limit, t->memory.on = r->limit > 0;
    t->cache.set = true, t->cache.make_room = drop_within, t->cache.of = &within;
    t->stamp = of->stamp;
    cot__cache_count(&t->cache, 0, r->beside);
    uint32_t end = y + 1;
    while (end < of->count && of->nodes[end].op == OP_pick) end++; /* they come with y */
    bool laid = lay_out(t, of, end);
    t->scalars_from = of->scalars_from < t->count ? of->scalars_from : t->count;
    if (!r->limit) r->lists = cot__undroppable(t, t->count);
    if (laid && (t->nodes[y].flags & COT__ACTIVE)) (cot_backward_seeded)(VAR(t, y), cot_number(1));
    bool enough = laid && t->status == COT_OK;
    r->peak = t->cache.peak;
    cot_tape_destroy(t);
    close_supply(&from);
    r->failed = from.failed;
    return enough;
}
