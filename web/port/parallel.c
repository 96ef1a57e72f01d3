/* parallel.c: the worker pool where there are no threads (WebAssembly): the caller does every part,
 * in order. In place of src/base/parallel.c. */
#include "base/parallel.h"

int64_t cot__grain = 32768;

int  cot_threads(void) { return 1; }
void cot_set_threads(int n) { (void)n; }
const char *cot__threads_unread(void) { return 0; }

void cot__parallel(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    for (int64_t part = 0; part < parts; part++) run(ctx, part);
}
void cot__parallel_small(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    cot__parallel(parts, run, ctx);
}
