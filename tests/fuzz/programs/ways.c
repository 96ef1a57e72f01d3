/* ways.c: the ways to run a program. A new one is a row of this table, and a member of `way` with a
 * line in way_set where it needs a setting that the others lack. */
#include "program.h"

#include "base/parallel.h"
#include "diff/products/products.h"
#include "ops/elementwise/deferred.h"
#include "ops/elementwise/lazy_product.h"

const way ways[] = {
    {.name = "one thread, nothing waits", .threads = 1},
    {.name = "three threads, cut small, all work waits", .threads = 3, .grain = 1, .work_waits = true},
    {.name          = "three threads, cut small, work and products wait",
     .threads       = 3,
     .grain         = 1,
     .work_waits    = true,
     .products_wait = true},
    {.name = "two threads, cut small, nothing waits", .threads = 2, .grain = 1},
    {.name = "one thread, directions in batches", .threads = 1, .batches = true},
    {.name = "one thread, an allocation fails", .threads = 1, .allocations_fail = true},
};
const int way_count = sizeof ways / sizeof *ways;

typedef struct settings {
    int64_t grain, queue_from, queue_bytes, batch_from;
    size_t  waiting_from, waiting_times;
    bool    queue_spoils, waiting_spoils;
} settings;

static settings usual;
static bool     known;

static settings get(void) {
    return (settings){cot__grain,        cot__deferred_from,    cot__deferred_bytes,  cot__batch_from,
                      cot__lazy_product_from, cot__lazy_product_times, cot__deferred_spoils, cot__lazy_product_spoils};
}
static void set(settings s) {
    cot__grain = s.grain, cot__deferred_from = s.queue_from, cot__deferred_bytes = s.queue_bytes;
    cot__batch_from = s.batch_from;
    cot__lazy_product_from = s.waiting_from, cot__lazy_product_times = s.waiting_times;
    cot__deferred_spoils = s.queue_spoils, cot__lazy_product_spoils = s.waiting_spoils;
}

void way_set(const way *w) {
    if (!known) usual = get(), known = true;
    settings s = usual;
    if (w->grain) s.grain = w->grain;
    s.batch_from     = w->batches ? 1 : INT64_MAX;
    s.queue_from     = w->work_waits ? 1 : INT64_MAX;
    s.queue_bytes    = w->work_waits ? 1 : usual.queue_bytes;
    s.queue_spoils   = w->work_waits;
    s.waiting_from   = w->products_wait ? 0 : SIZE_MAX;
    s.waiting_times  = w->products_wait ? 0 : usual.waiting_times;
    s.waiting_spoils = w->products_wait;
    set(s);
    cot_set_threads(w->threads);
}

void way_unset(void) {
    set(usual);
    cot_set_threads(0);
}
