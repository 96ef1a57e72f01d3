/* limit.c: the limit of a tape: where it comes from, and when values may be dropped. */
#include "memory/memory.h"
#include "base/number.h"
#include "base/poison.h"
#include "pending/pending.h"

#include <stdlib.h>
#include <string.h>

bool        cot__drop_always = false;
const char *cot__spill_always = NULL;

/* ---- "1.5 GiB" ------------------------------------------------------------------------------- */

/* Bytes, or -1. */
static int64_t bytes_of(const char *text) { return (int64_t)cot__read_bytes(text); }

/* ---- setting it ------------------------------------------------------------------------------ */

/* libc keeps what is freed between blocks that are not, and a process that drops and makes again
 * would grow: from a tape that has nothing yet, large blocks come from the system and go back
 * there. */
static void take_from_system(cot_tape *t) {
    if (!COT__ADDRESS_SANITIZER && !t->cache.below.alloc && !t->cache.held)
        t->cache.below = (cot_allocator){cot__pages, NULL};
}

static void set_limit(cot_tape *t, int64_t bytes) {
    if (bytes > 0) take_from_system(t);
    t->cache.limit = (size_t)bytes;
    t->cache.make_room = cot__drop_for;
    t->cache.of = t;
    t->memory.on = bytes > 0 || cot__drop_always || cot__spill_always || cot__packs(t);
    cot__lists_limited(t);
}

void cot__memory_begin(cot_tape *t, const cot_options *options) {
    const char *text = options->memory_limit ? NULL : getenv("COTANGENT_MEMORY_LIMIT");
    int64_t     bytes = text && *text ? bytes_of(text) : options->memory_limit;
    const char *folder = options->spill ? options->spill : cot__spill_always;
    set_limit(t, bytes > 0 ? bytes : 0);
    if (folder && !*folder)
        cot__fail(t, COT_VALUE, "[tape_create] spill is \"\"; it must be the name of a folder, or NULL");
    else if (folder) t->memory.store = cot__store_of(t, folder, "tape_create");
    if (bytes >= 0) return;
    if (text)
        cot__fail(t, COT_VALUE,
                  "[tape_create] COTANGENT_MEMORY_LIMIT is \"%s\"; it must be a number of bytes, or of KiB, MiB, GiB "
                  "or TiB: 1 byte at least, or 0 for no limit",
                  text);
    else
        cot__fail(t, COT_VALUE, "[tape_create] a memory limit of %lld bytes; it must not be negative",
                  (long long)bytes);
}

cot_status cot_tape_set_memory_limit(cot_tape *t, int64_t bytes) {
    if (!cot__usable(t)) return cot_tape_status(t);
    int64_t before = (int64_t)t->cache.limit;
    if (bytes > 0 && (t->memory.packed || cot__packs(t))) {
        cot__fail(t, COT_VALUE, "[tape_set_memory_limit] values are kept as bf16 for derivatives, from which a limit "
                                "would compute others again; ask for one of them");
        return t->status;
    }
    if (bytes < 0) {
        cot__fail(t, COT_VALUE, "[tape_set_memory_limit] a limit of %lld bytes; it must not be negative",
                  (long long)bytes);
        return t->status;
    }
    if (bytes) cot__pending_finish(t);
    set_limit(t, bytes);
    size_t uncounted = bytes ? cot__lists_uncounted(t) : 0;
    if (uncounted) {
        set_limit(t, before);
        cot__fail(t, COT_MEMORY, "[tape_set_memory_limit] out of memory: %zu bytes for a list of the tape", uncounted);
        return t->status;
    }
    if (bytes) cot__lists_trim(t);
    cot__memory_tick(t);
    if (cot__cache_room(&t->cache, 0)) return COT_OK;
    size_t used = cot__cache_used(&t->cache);
    set_limit(t, before);
    cot__fail(t, COT_MEMORY,
              "[tape_set_memory_limit] a limit of %lld bytes, but %zu are in use that cannot be dropped now; rewind "
              "first, or set it before they are recorded",
              (long long)bytes, used);
    return t->status;
}

/* Values that a limit dropped are made again from others also when it is gone. Packed ones are not,
 * and stand as dropped while they are not widened. */
bool cot__limited(const cot_tape *t) {
    uint32_t packed = t->memory.packed;
    for (const cot__storage *s = t->memory.wide; s; s = s->next_wide) packed--;
    return t->cache.limit || cot__drop_always || cot__spill_always || t->memory.dropped > packed;
}

int64_t cot_tape_memory_limit(const cot_tape *t) { return t ? (int64_t)t->cache.limit : 0; }

/* ---- while there is one ---------------------------------------------------------------------- */

/* A body, or a function of the user's, may hold addresses for as long as it takes. */
static bool may_hold_addresses(const cot_tape *t) {
    return t->memory.holds || t->mode.body || t->mode.inside || t->pending.at_once;
}

void cot__memory_next(cot_tape *t) {
    t->memory.clock++;
    if (may_hold_addresses(t)) return;
    t->memory.pinned_from = t->memory.clock;
    if (t->memory.wide) cot__pack_again(t);
    if (cot__drop_always || cot__spill_always) cot__drop_for(t, SIZE_MAX / 2);
    if (t->memory.store && t->cache.limit) cot__look_behind(t);
}

void cot__memory_expect(cot_tape *t, size_t bytes) {
    if (t->cache.limit && cot__pending_any(t) && cot__cache_used(&t->cache) + bytes + bytes / 8 + 256 > t->cache.limit)
        cot__pending_finish(t);
}
