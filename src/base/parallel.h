/* parallel.h: the worker pool, the only process-wide object of the library.
 *
 * A kernel cuts its work into parts. The parts depend on shapes only (those of matrix products,
 * where no cut shows, on the number of threads too), and their results do not depend on the thread
 * that computes them. So any number of threads gives the same bits. Every thread has a share of
 * the parts, and claims from the others' when its own is done. */
#ifndef COT_PARALLEL_H
#define COT_PARALLEL_H

#include <stdatomic.h>

#if !defined(__wasm__)
#include <pthread.h>
#include <sched.h>
#endif
#include "base/base.h"

/* Runs run(ctx, 0) … run(ctx, parts - 1), each once, on the caller's thread and on idle workers,
 * and returns when all are done. If the pool is busy (with the work of another thread, or of the
 * caller itself: a part may call this), the caller does all parts itself, in order. Parts must not
 * allocate, because the caller's allocator need not be safe to share; the caller gives them
 * memory. */
void cot__parallel(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx);

/* The same for small work, of a microsecond or more: on workers that still spin after a job before.
 * Workers that sleep are not woken for it, but for every 33rd such job that finds them so, however
 * much time lies between. */
void cot__parallel_small(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx);

/* Twice this many elementary operations (additions, say) are worth waking a second thread, which
 * takes some ten thousand; half as many are worth one that is awake. It is a variable only for the
 * tests, which make it small, so that small work is cut as well. No result may show where the cuts
 * are. */
extern int64_t cot__grain;

/* COTANGENT_THREADS, if it is asked for and is no number of threads; else NULL. */
const char *cot__threads_unread(void);

/* Parts of n items of `cost` elementary operations each, about a quarter of cot__grain a part, at
 * most `most` parts: 1 for small work. Part p is items [cot__part_start(n, parts, p),
 * cot__part_start(n, parts, p + 1)). */
static inline int64_t cot__pieces_of(int64_t n, int64_t cost, int64_t most, int64_t grain) {
    int64_t items = grain / (cost > 0 ? cost : 1), parts = n / (items > 0 ? items : 1);
    return parts < 1 ? 1 : parts > most ? most : parts;
}
static inline int64_t cot__parts(int64_t n, int64_t cost, int64_t most) {
    /* several for each thread */
    return cot__pieces_of(n, cost, most, cot__grain) == 1 && cot__grain > 1
               ? 1
               : cot__pieces_of(n, cost, most, cot__grain / 4);
}
/* The same for work that workers share from half of cot__grain on if they are awake. The parts are
 * run by what cot__spread_of gives for all of the work. */
static inline int64_t cot__parts_awake(int64_t n, int64_t cost, int64_t most) {
    return cot__pieces_of(n, cost, most, cot__grain / 4);
}
typedef void cot__spread(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx);
static inline cot__spread *cot__spread_of(int64_t work) {
    return work < 2 * cot__grain ? cot__parallel_small : cot__parallel;
}
/* cot__parts for parts that each sum up a share of one result. Their number is then part of the
 * definition of the result. */
static inline int64_t cot__pieces(int64_t n, int64_t cost, int64_t most) {
    return cot__pieces_of(n, cost, most, 32768);
}
static inline int64_t cot__part_start(int64_t n, int64_t parts, int64_t part) {
    return n / parts * part + (part < n % parts ? part : n % parts);
}

/* Whoever waits for a thread that the system may have put aside, lets it run. */
#if defined(__wasm__)
static inline void cot__let_others_run(void) {}
#else
static inline void cot__let_others_run(void) { sched_yield(); }
#endif

/* Rooms of memory, one for each part that is at work. A part asks for that of its thread's share
 * first, which may still be in its cache; where all are taken, it waits for one. Who takes a room
 * gives it back soon. */
enum { COT__MOST_ROOMS = 64 };
typedef struct cot__rooms {
    int64_t      count;
    _Atomic bool taken[COT__MOST_ROOMS];
} cot__rooms;
static inline void cot__rooms_open(cot__rooms *r, int64_t count) {
    r->count = count < COT__MOST_ROOMS ? count : COT__MOST_ROOMS;
    for (int64_t k = 0; k < r->count; k++) atomic_init(&r->taken[k], false);
}
static inline int64_t cot__room_take(cot__rooms *r, int64_t part, int64_t parts) {
    int64_t room = part * cot_threads() / parts % r->count, tried = 0;
    while (atomic_exchange(&r->taken[room], true)) {
        room = room + 1 < r->count ? room + 1 : 0;
        if (++tried % r->count == 0) cot__let_others_run();
    }
    return room;
}
static inline void cot__room_give(cot__rooms *r, int64_t room) { atomic_store(&r->taken[room], false); }

/* One thread at a time. In WebAssembly there is one thread. */
#if defined(__wasm__)
typedef struct cot__lock { char unused; } cot__lock;
static inline void cot__lock_open(cot__lock *l) { l->unused = 0; }
static inline void cot__lock_take(cot__lock *l) { (void)l; }
static inline void cot__lock_give(cot__lock *l) { (void)l; }
static inline void cot__lock_close(cot__lock *l) { (void)l; }
#else
typedef pthread_mutex_t cot__lock;
/* With default attributes this cannot fail on systems we know. */
static inline void cot__lock_open(cot__lock *l) { pthread_mutex_init(l, NULL); }
static inline void cot__lock_take(cot__lock *l) { pthread_mutex_lock(l); }
static inline void cot__lock_give(cot__lock *l) { pthread_mutex_unlock(l); }
static inline void cot__lock_close(cot__lock *l) { pthread_mutex_destroy(l); }
#endif

#endif
