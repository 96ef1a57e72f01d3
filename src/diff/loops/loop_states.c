/* loop_states.c: the states that a loop keeps for its way back. */
#include "backend/elements.h"
#include "diff/loops/loop.h"
#include "program/memory/revolve.h"

#include <string.h>

/* ---- bytes of a state ------------------------------------------------------------------------ */

typedef void copy_views(const cot__view *to, const cot__view *from);

static void copy_state(const cot__backend *backend, copy_views *copy, void *to, const void *from, size_t bytes) {
    int64_t   n = (int64_t)bytes, one = 1;
    cot__view a = {to, COT_U8, 1, &n, &one}, b = {(void *)(uintptr_t)from, COT_U8, 1, &n, &one};
    if (cot__on_host(backend)) memcpy(to, from, bytes);
    else copy(&a, &b);
}

static bool disk_failed(cot_tape *t, const cot__loop *l, const cot__loop_run *run, const char *what, size_t bytes) {
    const char *why = cot__store_trouble(run->store);
    cot__fail(t, COT_MEMORY, "[%s] a state of %zu bytes could not be %s a file in %s: %s", l->name, bytes, what,
              cot__store_folder(run->store), why ? why : "unknown");
    return false;
}

/* A state that lies on a device goes through memory of the host. NULL after setting the error. */
static void *host_memory(cot_tape *t, const cot__loop *l, size_t bytes) {
    void *host = cot__alloc(&t->al, bytes);
    if (!host) cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to move", l->name, bytes);
    return host;
}

/* A folder that the loop's options do not name may fail: states stay in memory then. */
static bool may_fail(const cot__loop *l) { return l && !l->spill; }

/* The state goes to where `to` says. False: the disk has failed, which is an error unless it
 * may_fail, or there is no memory. */
static bool keep(cot_tape *t, const cot__loop *l, const cot__loop_run *run, cot__kept *to, const void *state,
                 size_t bytes) {
    if (!to->stored) return copy_state(run->backend, run->backend->copy, to->state, state, bytes), true;
    bool  here = cot__on_host(run->backend) || bytes == 0;
    void *host = here ? NULL : host_memory(t, l, bytes);
    if (!here && !host) return false;
    if (host) copy_state(run->backend, run->backend->copy_out, host, state, bytes);
    bool ok = cot__store_write(run->store, to->at, host ? host : state, bytes, &to->sum);
    cot__free(&t->al, host, host ? bytes : 0);
    return ok || (!may_fail(l) && disk_failed(t, l, run, "written to", bytes));
}

/* False as for `keep`. */
static bool bring_back(cot_tape *t, const cot__loop *l, const cot__loop_run *run, void *state, const cot__kept *from,
                       size_t bytes) {
    if (!from->stored) return copy_state(run->backend, run->backend->copy, state, from->state, bytes), true;
    bool  here = cot__on_host(run->backend) || bytes == 0;
    void *host = here ? NULL : host_memory(t, l, bytes);
    if (!here && !host) return false;
    bool ok = cot__store_read(run->store, from->at, host ? host : state, bytes, from->sum);
    if (ok && host) copy_state(run->backend, run->backend->copy_in, state, host, bytes);
    cot__free(&t->al, host, host ? bytes : 0);
    return ok || (!may_fail(l) && disk_failed(t, l, run, "read back from", bytes));
}

/* ---- memory for them ------------------------------------------------------------------------- */

/* A place in a file has a storage, so it holds many states: as many as there are already, within
 * these bounds. */
enum { LEAST_BLOCK = 1 << 12, LEAST_FILE = 1 << 16, LARGEST_FILE = 1 << 28 };

static size_t file_bytes(const cot__loop_run *run, size_t bytes) {
    /* + 1: the last state, which `room` does not count */
    size_t have = (size_t)run->kept, wanted = (size_t)run->room + 1 - have, count = have;
    if (bytes == 0) return 0;
    if (count < LEAST_FILE / bytes) count = LEAST_FILE / bytes;
    if (count > LARGEST_FILE / bytes) count = LARGEST_FILE / bytes;
    if (count > wanted) count = wanted;
    return count > 1 ? count * bytes : bytes;
}

/* A storage has a header and is aligned, so small states share one, as soon as there are
 * several. */
static size_t block_bytes(const cot__loop_run *run, size_t bytes) {
    size_t have = (size_t)run->kept, wanted = (size_t)run->room + 1 - have, count = bytes ? LEAST_BLOCK / bytes : 1;
    if (count > have) count = have;
    if (count > wanted) count = wanted;
    return count > 1 ? count * bytes : bytes;
}

enum { PART = 8 }; /* of the limit: states that take more go to the tape's folder */

const char *cot__states_folder(const cot_tape *t, const cot__loop *l, int64_t states, size_t bytes) {
    if (l->spill || !t->memory.store || !t->cache.limit || cot__store_is_broken(t->memory.store)) return l->spill;
    return (double)states * (double)bytes > (double)t->cache.limit / PART ? cot__store_folder(t->memory.store) : NULL;
}

/* From now on states stay in memory. */
static void refuse(cot_tape *t, const cot__loop *l, cot__loop_run *run) {
    const char *why = cot__store_trouble(t->memory.store);
    cot__note(t, "[%s] the disk of %s failed: %s; states of the loop stay in memory", l->name,
              cot__store_folder(t->memory.store), why ? why : "there is no room");
    run->refused = true;
    run->free = NULL, run->left = 0;
}

/* The first state decides for all of a run, unless the disk fails. */
static const char *folder_of(cot_tape *t, const cot__loop *l, cot__loop_run *run, size_t bytes) {
    if (run->refused || (run->free && !run->store)) return NULL;
    const char *folder = run->store ? cot__store_folder(run->store)
                                    : cot__states_folder(t, l, (int64_t)run->room + 1, bytes);
    cot__extent place = {0};
    if (!folder || !may_fail(l)) return folder;
    if (!cot__extent_take(t->memory.store, bytes, &place)) return refuse(t, l, run), NULL;
    cot__extent_give(&place); /* where it is taken next */
    return folder;
}

/* Room for one more state, used before or new. It stays with the tape until the loop is
 * forgotten. */
static bool find_room(cot_tape *t, const cot__loop *l, cot__loop_run *run, size_t bytes, cot__kept *to) {
    if (run->spare > 0) {
        run->spare--;
        *to = run->at[run->kept];
        return true;
    }
    if ((!run->free && (!run->store || run->refused)) || run->left < bytes) {
        const char   *folder = folder_of(t, l, run, bytes);
        cot__storage *s = folder ? cot__storage_in_store(t, file_bytes(run, bytes), bytes, folder, l->name)
                                 : cot__storage_create(t, block_bytes(run, bytes), l->name);
        if (!s || !cot__storage_keep(t, s, l->name)) return false;
        if (folder) run->store = s->stored.store;
        run->free = s->data;
        run->free_at = s->stored.at;
        run->left = folder ? s->stored.bytes : s->bytes;
    }
    to->stored = run->store && !run->refused;
    if (to->stored) to->at = run->free_at;
    else to->state = run->free;
    if (!to->stored) run->free += bytes;
    run->free_at += bytes;
    run->left -= bytes;
    return true;
}

/* While the loop runs: what the disk does not take stays in memory. */
static bool keep_somewhere(cot_tape *t, const cot__loop *l, cot__loop_run *run, cot__kept *to, const void *state,
                           size_t bytes) {
    if (keep(t, l, run, to, state, bytes)) return true;
    if (t->status != COT_OK) return false;
    if (!run->refused) refuse(t, l, run);
    cot__storage *s = cot__storage_create(t, bytes, l->name);
    if (!s || !cot__storage_keep(t, s, l->name)) return false;
    to->stored = false, to->state = s->data;
    return keep(t, l, run, to, state, bytes);
}

/* Makes the list of kept states twice as long. There are no spare entries to copy: they would have
 * been used first. */
static bool grow(cot_tape *t, const cot__loop *l, cot__loop_run *run) {
    cot__kept *more = cot__arena(t, 2 * (size_t)run->capacity * sizeof *more, l->name);
    if (!more) return false;
    memcpy(more, run->at, (size_t)run->kept * sizeof *more);
    run->at = more;
    run->capacity *= 2;
    return true;
}

bool cot__keep_state(cot_tape *t, const cot__loop *l, cot__loop_run *run, int64_t k, const void *state, size_t bytes) {
    if (run->kept == run->capacity && !grow(t, l, run)) return false;
    cot__kept to = {0};
    if (!find_room(t, l, run, bytes, &to)) return false;
    to.step = k;
    to.level = 0;
    if (!keep_somewhere(t, l, run, &to, state, bytes)) return false;
    run->at[run->kept++] = to;
    return true;
}

/* On the way back, into memory of the first run: new memory would not outlive this sweep. False as
 * for `keep`: it is not kept. */
static bool keep_again(cot_tape *t, const cot__loop *l, cot__loop_run *run, const cot__steps *s, int64_t k) {
    cot__kept to = run->at[run->kept];
    to.step = k, to.level = 0;
    if (!keep(t, l, run, &to, s->state, s->bytes)) return false;
    run->spare--;
    run->at[run->kept++] = to;
    return true;
}

/* Was it the disk alone that failed, and may it? */
static bool goes_on(const cot_tape *t, const cot__loop *l) { return may_fail(l) && t->status == COT_OK; }

/* The last state that is kept and can be read; what cannot is dropped. False after an error. */
static bool bring_last(cot_tape *t, const cot__loop *l, cot__loop_run *run, cot__steps *s) {
    while (run->kept && !bring_back(t, l, run, s->state, &run->at[run->kept - 1], s->bytes)) {
        if (!goes_on(t, l)) return false;
        run->spare += --run->kept < run->room;
    }
    return true;
}

/* The last kept state that has a state of a higher level behind it. -1: none. */
static int dispensable(const cot__loop_run *run) {
    int highest = -1;
    for (int i = run->kept; i-- > 0;) {
        if (run->at[i].level < highest) return i;
        if (run->at[i].level > highest) highest = run->at[i].level;
    }
    return -1;
}

bool cot__keep_online(cot_tape *t, const cot__loop *l, cot__loop_run *run, int64_t k, const void *state, size_t bytes) {
    if (run->kept < run->room) return cot__keep_state(t, l, run, k, state, bytes);
    int       i = dispensable(run), last = run->kept - 1;
    cot__kept moved = run->at[i >= 0 ? i : last];
    moved.step = k;
    moved.level = i >= 0 ? 0 : moved.level + 1;
    if (i >= 0) memmove(run->at + i, run->at + i + 1, (size_t)(last - i) * sizeof *run->at);
    bool ok = keep_somewhere(t, l, run, &moved, state, bytes);
    run->at[last] = moved;
    return ok;
}

int64_t cot__next_kept(const cot__loop_run *run, int64_t k, int64_t last) {
    int64_t steps = last - k + 1, states = (int64_t)run->room - run->kept + 1;
    return steps >= 2 && states >= 2 ? k + cot__revolve_split(steps, states) : -1;
}

bool cot__keep_planned(cot_tape *t, const cot__loop *l, cot__loop_run *run, const cot__steps *s, int64_t k,
                       int64_t *next) {
    if (k != *next) return true;
    if (k > 0 && !cot__keep_state(t, l, run, k, s->state, s->bytes)) return false;
    *next = cot__next_kept(run, k, run->length - 1);
    /* The way back begins at the last step. Its state is at hand now, and is kept beside the
     * others. */
    if (*next < 0) *next = k < run->length - 1 ? run->length - 1 : -1;
    return true;
}

bool cot__reach(cot_tape *t, const cot__loop *l, cot__loop_run *run, cot__steps *s, int64_t k, cot__go_on *go,
                void *to) {
    if (run->all) {
        s->state = run->all + (size_t)k * s->bytes;
        return true;
    }
    /* The state of the last step was kept beyond `room`, so its memory is not used again. */
    while (run->kept && run->at[run->kept - 1].step > k) run->spare += --run->kept < run->room;
    if (s->f.carry == 0) return true;
    if (!bring_last(t, l, run, s) || (!run->kept && !go(to, -1))) return false;
    int64_t from = run->kept ? run->at[run->kept - 1].step : 0;
    int     room = run->room;
    run->room = run->kept + run->spare;
    bool ok = true;
    for (int64_t next = cot__next_kept(run, from, k); ok && from < k; from++) {
        if (from == next) {
            bool kept = keep_again(t, l, run, s, from);
            ok = kept || goes_on(t, l);
            next = kept ? cot__next_kept(run, from, k) : -1;
        }
        ok = ok && go(to, from);
    }
    run->room = room;
    return ok;
}
