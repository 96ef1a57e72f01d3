/* trial.c: is native code quicker? A compiler may make no vectors of a loop for which the library
 * has some, so the first runs behind the comparison go by turns, by the executor and by native
 * code, and are timed. It is decided once: if the quickest by native code took longer, it is
 * dropped. Both ways give the same bits, so a run does not notice which one it was. */
#define _GNU_SOURCE /* clock_gettime */
#include "native/native.h"
#include "base/number.h"
#include "native/object.h"

#include <time.h>

/* Turns that each of the two has; and what may be chance: a tenth of a run, and some nanoseconds,
 * in which a short run ends. */
enum { TURNS = 5, SLACK = 10, NOISE = 1000 };

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void note(_Atomic int64_t *least, int64_t took) {
    int64_t before = atomic_load(least);
    while ((before == 0 || took < before) && !atomic_compare_exchange_weak(least, &before, took)) {}
}

static void decide(cot__native *n) {
    int64_t executor = atomic_load(&n->trial.least[0]), native = atomic_load(&n->trial.least[1]);
    if (executor == 0 || native <= executor + executor / SLACK + NOISE) return;
    if (atomic_flag_test_and_set(&n->told)) return;
    cot__format(n->differs, sizeof n->differs,
                "native code was dropped: it is slower, %.3g us a run where the executor takes %.3g",
                (double)native / 1000, (double)executor / 1000);
    atomic_store(&n->state, COT__NATIVE_DROPPED);
}

bool cot__native_is_tried(const cot__native *n) { return atomic_load(&n->trial.begun) >= 2 * TURNS; }

/* A run that was refused says nothing about time. */
bool cot__native_try(cot__native *n, cot__run *r, const void *const *inputs, void *const *outputs) {
    int     turn = atomic_fetch_add(&n->trial.begun, 1), native = turn & 1;
    int64_t start = now();
    bool    ok = native ? cot__run_go_by(r, n->loaded.functions, inputs, outputs) : cot__run_go(r, inputs, outputs);
    if (turn >= 2 * TURNS) return ok;
    if (ok) note(&n->trial.least[native], now() - start + 1);
    if (atomic_fetch_add(&n->trial.done, 1) + 1 == 2 * TURNS) decide(n);
    return ok;
}
