/* ways.c: the ways to run a program. A new one is a row of this table, and a member of `way` with a
 * line in way_set where it needs a setting that the others lack. */
#include "program.h"

#include "base/parallel.h"
#include "diff/products/products.h"
#include "ops/elementwise/deferred.h"
#include "ops/elementwise/lazy_product.h"

const way ways[] = {
    {.name = "one thread, nothing deferred", .threads = 1},
    {.name = "three threads, cut small, all work deferred", .threads = 3, .grain = 1, .defers_work = true},
    {.name          = "three threads, cut small, work deferred, products lazy",
     .threads       = 3,
     .grain         = 1,
     .defers_work   = true,
     .lazy_products = true},
    {.name = "two threads, cut small, nothing deferred", .threads = 2, .grain = 1},
    {.name = "one thread, directions in batches", .threads = 1, .batches = true},
    {.name = "one thread, an allocation fails", .threads = 1, .allocations_fail = true},
};
const int way_count = sizeof ways / sizeof *ways;

typedef struct settings {
    int64_t grain, deferred_from, deferred_bytes, batch_from;
    size_t  lazy_from, lazy_times;
    bool    deferred_spoils, lazy_spoils;
} settings;

static settings usual;
static bool     known;

static settings get(void) {
    return (settings){cot__grain,        cot__deferred_from,    cot__deferred_bytes,  cot__batch_from,
                      cot__lazy_product_from, cot__lazy_product_times, cot__deferred_spoils, cot__lazy_product_spoils};
}
static void set(settings s) {
    cot__grain = s.grain, cot__deferred_from = s.deferred_from, cot__deferred_bytes = s.deferred_bytes;
    cot__batch_from = s.batch_from;
    cot__lazy_product_from = s.lazy_from, cot__lazy_product_times = s.lazy_times;
    cot__deferred_spoils = s.deferred_spoils, cot__lazy_product_spoils = s.lazy_spoils;
}

void way_set(const way *w) {
    if (!known) usual = get(), known = true;
    settings s = usual;
    if (w->grain) s.grain = w->grain;
    s.batch_from      = w->batches ? 1 : INT64_MAX;
    s.deferred_from   = w->defers_work ? 1 : INT64_MAX;
    s.deferred_bytes  = w->defers_work ? 1 : usual.deferred_bytes;
    s.deferred_spoils = w->defers_work;
    s.lazy_from       = w->lazy_products ? 0 : SIZE_MAX;
    s.lazy_times      = w->lazy_products ? 0 : usual.lazy_times;
    s.lazy_spoils     = w->lazy_products;
    set(s);
    cot_set_threads(w->threads);
}

void way_unset(void) {
    set(usual);
    cot_set_threads(0);
}
