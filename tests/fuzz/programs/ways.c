/* ways.c: the ways to run a program. A new one is a row of this table, and a member of `way` with a
 * line in way_set where it needs a setting that the others lack. */
#include "program/fusion.h"
#include "program/limit/limit.h"
#include "program.h"

#include "base/parallel.h"
#include "diff/batch/vmap.h"
#include "diff/products/products.h"
#include "memory/memory.h"
#include "pending/pending.h"

const way ways[] = {
    {.name = "one thread, nothing waits", .threads = 1},
    {.name = "seven threads, cut small, all work waits", .threads = 7, .grain = 1, .work_waits = true},
    {.name          = "three threads, cut small, work and products wait",
     .threads       = 3,
     .grain         = 1,
     .work_waits   = true,
     .products_wait = true},
    {.name = "two threads, cut small, batches are programs", .threads = 2, .grain = 1, .batches_run = true},
    {.name = "one thread, batches that are met again are programs", .threads = 1, .batches_again = true},
    {.name = "one thread, directions in batches", .threads = 1, .batches = true},
    {.name = "one thread, values dropped as under a limit", .threads = 1, .drops = true},
    {.name = "two threads, all work waits, values dropped", .threads = 2, .work_waits = true, .drops = true},
    {.name = "one thread, values spilled as under a limit", .threads = 1, .spills = true},
    {.name = "two threads, all work waits, values spilled", .threads = 2, .work_waits = true, .spills = true},
    {.name        = "one thread, batches are programs, which compute again what they can",
     .threads     = 1,
     .batches_run = true,
     .again       = true},
    {.name = "one thread, an allocation fails", .threads = 1, .allocations_fail = true},
    {.name = "one thread, scopes save as bf16", .threads = 1, .saves = true},
    {.name       = "three threads, cut small, all work waits, scopes save as bf16",
     .threads    = 3,
     .grain      = 1,
     .work_waits = true,
     .saves      = true},
    {.name = "one thread, fast", .threads = 1, .fast = true},
    {.name       = "three threads, cut small, all work waits, fast",
     .threads    = 3,
     .grain      = 1,
     .work_waits = true,
     .fast       = true},
};
const int way_count = sizeof ways / sizeof *ways;

typedef struct settings {
    int64_t grain, pending_from, pending_bytes, batch_from, program_from, small_rows;
    size_t  product_from, product_times;
    bool    spoils;
} settings;

static settings usual;
static bool     known;

static settings get(void) {
    return (settings){cot__grain,        cot__pending_from,      cot__pending_bytes,
                      cot__batch_from,   cot__vmap_program_from, cot__small_rows,
                      cot__product_from, cot__product_times,     cot__pending_spoils};
}
static void set(settings s) {
    cot__grain = s.grain, cot__pending_from = s.pending_from, cot__pending_bytes = s.pending_bytes;
    cot__batch_from = s.batch_from, cot__vmap_program_from = s.program_from, cot__small_rows = s.small_rows;
    cot__product_from = s.product_from, cot__product_times = s.product_times;
    cot__pending_spoils = s.spoils;
}

void way_set(const way *w) {
    if (!known) usual = get(), known = true;
    settings s = usual;
    if (w->grain) s.grain = w->grain;
    s.batch_from    = w->batches ? 1 : INT64_MAX;
    s.program_from  = w->batches_run ? 0 : w->batches_again ? usual.program_from : INT64_MAX;
    s.small_rows    = w->batches_run ? 1 : usual.small_rows;
    s.pending_from  = w->work_waits ? 1 : INT64_MAX;
    s.pending_bytes = w->work_waits ? 1 : usual.pending_bytes;
    s.product_from  = w->products_wait ? 0 : SIZE_MAX;
    s.product_times = w->products_wait ? 0 : usual.product_times;
    s.spoils        = w->work_waits || w->products_wait;
    set(s);
    cot__drop_always = w->drops;
    cot__spill_always = w->spills ? P_tmpdir : NULL;
    cot__again_always = w->again;
    cot_set_threads(w->threads);
}

void way_unset(void) {
    set(usual);
    cot__drop_always = cot__again_always = false;
    cot__spill_always = NULL;
    cot_set_threads(0);
}
