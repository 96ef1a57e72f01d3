/* parallel.c: a pool of workers with one job at a time.
 *
 * A job is open while its parts are claimed from a shared counter. A worker enters (counts itself in), looks whether a job is open, claims
 * parts until there are none, and leaves. The caller claims parts too, then closes the job and waits until nobody is inside: all parts
 * are done then, and nobody can still look at the job. Workers spin for a moment after a job, because the next often follows at once
 * and waking a sleeping thread takes tens of microseconds; then they sleep. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 256, SPINS = 4000 };

typedef struct job {
    void (*run)(void *ctx, int64_t part);
    void   *ctx;
    int64_t parts;
} job;

static struct pool {
    pthread_mutex_t  owner; /* held by the caller whose job it is, and while workers are started and stopped */
    pthread_mutex_t  sleep;
    pthread_cond_t   wake;
    pthread_t        thread[MOST_THREADS];
    int              workers;  /* started */
    int              asked;    /* threads wanted, the caller's included; 0: not decided yet */
    int              tapes;    /* guarded by count */
    pthread_mutex_t  count;
    job              current;
    _Atomic int64_t  next;     /* part to claim */
    _Atomic int      inside;   /* workers that may be looking at current */
    _Atomic int      sleeping;
    _Atomic uint32_t round;    /* changes when a job opens and when the workers shall stop */
    _Atomic bool     open, stop;
    bool             spins;    /* there is a processor for each thread */
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER, .sleep = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
          .count = PTHREAD_MUTEX_INITIALIZER};

int64_t cot__grain = 32768;

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void claim(const job *j) {
    for (int64_t part; (part = atomic_fetch_add(&pool.next, 1)) < j->parts;) j->run(j->ctx, part);
}

/* ---- workers ------------------------------------------------------------------------------------------------------------- */

static void wait_for_round(uint32_t seen) {
    if (pool.spins)
        for (int i = 0; i < SPINS; i++) {
            if (atomic_load(&pool.round) != seen) return;
            relax();
        }
    pthread_mutex_lock(&pool.sleep);
    atomic_fetch_add(&pool.sleeping, 1);
    while (atomic_load(&pool.round) == seen) pthread_cond_wait(&pool.wake, &pool.sleep);
    atomic_fetch_sub(&pool.sleeping, 1);
    pthread_mutex_unlock(&pool.sleep);
}

static void *worker(void *arg) {
    uint32_t seen = (uint32_t)(uintptr_t)arg;
    for (;;) {
        wait_for_round(seen);
        seen = atomic_load(&pool.round);
        if (atomic_load(&pool.stop)) return NULL;
        atomic_fetch_add(&pool.inside, 1);
        if (atomic_load(&pool.open)) claim(&pool.current);
        atomic_fetch_sub(&pool.inside, 1);
    }
}

static void next_round(void) {
    atomic_fetch_add(&pool.round, 1);
    if (atomic_load(&pool.sleeping) == 0) return; /* who is about to sleep looks at the round once more, under the mutex */
    pthread_mutex_lock(&pool.sleep);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.sleep);
}

/* ---- how many ------------------------------------------------------------------------------------------------------------ */

static int processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static int default_threads(void) {
    const char *text = getenv("COTANGENT_THREADS");
    char       *end = NULL;
    long        n = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || n < 1) n = processors();
    return n > MOST_THREADS ? MOST_THREADS : (int)n;
}

/* The three below are called by the owner. */
static void stop_workers(void) {
    if (pool.workers == 0) return;
    atomic_store(&pool.stop, true);
    next_round();
    for (int i = 0; i < pool.workers; i++) pthread_join(pool.thread[i], NULL);
    pool.workers = 0;
    atomic_store(&pool.stop, false);
}

/* After a fork only the calling thread exists: the child's pool is new. */
static void forked(void) {
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.sleep, NULL);
    pthread_mutex_init(&pool.count, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pool.workers = 0;
    atomic_store(&pool.inside, 0);
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.open, false);
    atomic_store(&pool.stop, false);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forked); }

/* Fewer than asked for, or none, where the system refuses: the caller does what nobody else does. */
static void start_workers(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_attr_t        attributes;
    sigset_t              all, before;
    if (pool.asked == 0) pool.asked = default_threads();
    if (pool.workers == pool.asked - 1) return;
    stop_workers();
    pool.spins = pool.asked <= processors();
    pthread_once(&once, watch_forks);
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, 1 << 20);
    sigfillset(&all); /* signals are the program's affair, not ours */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    void *round = (void *)(uintptr_t)atomic_load(&pool.round);
    while (pool.workers < pool.asked - 1 && pthread_create(&pool.thread[pool.workers], &attributes, worker, round) == 0) pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (pool.workers < pool.asked - 1) pool.asked = pool.workers + 1; /* do not try again at every job */
}

int cot_threads(void) {
    pthread_mutex_lock(&pool.owner);
    if (pool.asked == 0) pool.asked = default_threads();
    int n = pool.asked;
    pthread_mutex_unlock(&pool.owner);
    return n;
}

void cot_set_threads(int n) {
    pthread_mutex_lock(&pool.owner);
    pool.asked = n < 1 ? default_threads() : n > MOST_THREADS ? MOST_THREADS : n;
    pthread_mutex_unlock(&pool.owner);
}

/* ---- jobs ---------------------------------------------------------------------------------------------------------------- */

static bool become_owner(void) { return pthread_mutex_trylock(&pool.owner) == 0; }

void cot__parallel(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    if (parts > 1 && become_owner()) {
        start_workers();
        if (pool.workers > 0) {
            pool.current = (job){run, ctx, parts};
            atomic_store(&pool.next, 0);
            atomic_store(&pool.open, true);
            next_round();
            claim(&pool.current);
            atomic_store(&pool.open, false);
            for (int i = 0; atomic_load(&pool.inside) > 0; i++) {
                if (i < SPINS && pool.spins) relax();
                else sched_yield();
            }
            pthread_mutex_unlock(&pool.owner);
            return;
        }
        pthread_mutex_unlock(&pool.owner);
    }
    for (int64_t part = 0; part < parts; part++) run(ctx, part);
}

void cot__pool_hold(void) {
    pthread_mutex_lock(&pool.count);
    pool.tapes++;
    pthread_mutex_unlock(&pool.count);
}

void cot__pool_release(void) {
    pthread_mutex_lock(&pool.count);
    if (--pool.tapes == 0) {
        pthread_mutex_lock(&pool.owner);
        stop_workers();
        pthread_mutex_unlock(&pool.owner);
    }
    pthread_mutex_unlock(&pool.count);
}
