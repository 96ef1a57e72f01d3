/* parallel.c: a pool of workers with one job at a time.
 *
 * A job is open while its parts are claimed. A worker enters (counts itself in), checks whether a
 * job is open, claims parts until there are none, and leaves. The caller claims parts too, then
 * closes the job and waits until no worker is inside. Then all parts are done, and no worker can
 * still read the job. Every thread has a share of the parts, in order, and claims from the others'
 * when its own is done: so rows that one operation made are read by the next one where they lie in
 * the cache, and uneven parts balance. Workers spin for a moment after a job, because the
 * next one often follows at once and waking a sleeping thread takes tens of microseconds. Then they
 * sleep. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_THREADS = 256, SPINS = 4000 };

typedef struct job {
    void (*run)(void *ctx, int64_t part);
    void *ctx;
    int   threads; /* that have shares */
} job;

/* The parts of one thread that nobody has claimed yet; a line of the cache each. */
typedef struct share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} share;

static struct pool {
    /* held by the caller that owns the job, and while workers are started and stopped */
    pthread_mutex_t  owner;
    pthread_mutex_t  sleep;
    pthread_cond_t   wake;
    pthread_t        thread[MOST_THREADS];
    pthread_cond_t   left;
    int              workers;  /* started */
    _Atomic int      asked;    /* threads wanted, the caller's included; 0: not decided yet */
    job              current;
    share            shares[MOST_THREADS];
    _Atomic int      inside;   /* number of workers that may be reading `current` */
    _Atomic int      sleeping;
    _Atomic bool     waits;    /* the owner sleeps until the last worker has left */
    _Atomic uint32_t round;    /* changes when a job opens and when the workers shall stop */
    uint32_t         first_round; /* when the workers were started */
    _Atomic bool     open, stop;
    bool             spins;    /* there is a processor for each thread */
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER, .sleep = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER,
          .left = PTHREAD_COND_INITIALIZER};

int64_t cot__grain = 32768;

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void hand_out(int64_t parts, int threads) {
    for (int t = 0; t < threads; t++) {
        pool.shares[t].end = cot__part_start(parts, threads, t + 1);
        atomic_store_explicit(&pool.shares[t].next, cot__part_start(parts, threads, t), memory_order_relaxed);
    }
}

static void claim(const job *j, int self) {
    for (int k = 0, t = self; k < j->threads; k++, t = t + 1 < j->threads ? t + 1 : 0) {
        share *s = &pool.shares[t];
        while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
            int64_t part = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
            if (part < s->end) j->run(j->ctx, part);
        }
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

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
    int      self = (int)(intptr_t)arg;
    uint32_t seen = pool.first_round;
    for (;;) {
        wait_for_round(seen);
        seen = atomic_load(&pool.round);
        if (atomic_load(&pool.stop)) return NULL;
        atomic_fetch_add(&pool.inside, 1);
        if (atomic_load(&pool.open)) claim(&pool.current, self);
        if (atomic_fetch_sub(&pool.inside, 1) == 1 && atomic_load(&pool.waits)) {
            pthread_mutex_lock(&pool.sleep);
            pthread_cond_signal(&pool.left);
            pthread_mutex_unlock(&pool.sleep);
        }
    }
}

/* Waits until all workers have left. Parts that are still at work end soon, unless their threads
 * were descheduled. */
static void wait_for_leaving(void) {
    for (int i = 0; i < SPINS && pool.spins; i++) {
        if (atomic_load(&pool.inside) == 0) return;
        relax();
    }
    pthread_mutex_lock(&pool.sleep);
    atomic_store(&pool.waits, true);
    while (atomic_load(&pool.inside) > 0) pthread_cond_wait(&pool.left, &pool.sleep);
    atomic_store(&pool.waits, false);
    pthread_mutex_unlock(&pool.sleep);
}

static void next_round(void) {
    atomic_fetch_add(&pool.round, 1);
    /* a worker that is about to sleep looks at the round once more, under the mutex */
    if (atomic_load(&pool.sleeping) == 0) return;
    pthread_mutex_lock(&pool.sleep);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.sleep);
}

/* ---- how many -------------------------------------------------------------------------------- */

/* The processors that a container may use: quota and period of cgroup v2. 0: no limit is known. */
static int processors_granted(void) {
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    long  quota = 0, period = 0;
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &quota, &period) != 2) quota = 0; /* "max" is no number */
    fclose(f);
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

static int processors(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    int  granted = processors_granted();
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#endif
    if (granted > 0 && n > granted) n = granted;
    return n > 0 ? (int)n : 1;
}

static int default_threads(void) {
    const char *text = getenv("COTANGENT_THREADS");
    char       *end = NULL;
    long        n = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || n < 1) n = processors();
    return n > MOST_THREADS ? MOST_THREADS : (int)n;
}

/* The owner calls the three functions below. */
static void stop_workers(void) {
    if (pool.workers == 0) return;
    atomic_store(&pool.stop, true);
    next_round();
    for (int i = 0; i < pool.workers; i++) pthread_join(pool.thread[i], NULL);
    pool.workers = 0;
    atomic_store(&pool.stop, false);
}

/* After a fork only the calling thread exists, so the child gets a new pool. */
static void forked(void) {
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.sleep, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.left, NULL);
    pool.workers = 0;
    atomic_store(&pool.inside, 0);
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.waits, false);
    atomic_store(&pool.open, false);
    atomic_store(&pool.stop, false);
}

static void register_forked(void) { pthread_atfork(NULL, NULL, forked); }

/* Called before the first lock is taken, so that no child inherits a lock. */
static void watch_forks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_forked);
}

/* Starts workers: fewer than asked for, or none, if the system refuses. The caller then does the
 * remaining parts. */
static void start_workers(void) {
    pthread_attr_t attributes;
    sigset_t       all, before;
    int            asked = cot_threads();
    if (pool.workers == asked - 1) return;
    stop_workers();
    pool.spins = asked <= processors();
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, 1 << 20);
    sigfillset(&all); /* the program handles signals, not our threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pool.first_round = atomic_load(&pool.round);
    while (pool.workers < asked - 1 &&
           pthread_create(&pool.thread[pool.workers], &attributes, worker, (void *)(intptr_t)(pool.workers + 1)) == 0)
        pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    /* do not try again at every job */
    if (pool.workers < asked - 1) atomic_compare_exchange_strong(&pool.asked, &asked, pool.workers + 1);
}

int cot_threads(void) {
    int n = atomic_load(&pool.asked), decided = 0;
    if (n > 0) return n;
    n = default_threads();
    return atomic_compare_exchange_strong(&pool.asked, &decided, n) ? n : decided;
}

void cot_set_threads(int n) {
    atomic_store(&pool.asked, n < 1 ? default_threads() : n > MOST_THREADS ? MOST_THREADS : n);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool become_owner(void) {
    watch_forks();
    return pthread_mutex_trylock(&pool.owner) == 0;
}

void cot__parallel(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    if (parts > 1 && become_owner()) {
        start_workers();
        if (pool.workers > 0) {
            pool.current = (job){run, ctx, pool.workers + 1};
            hand_out(parts, pool.workers + 1);
            atomic_store(&pool.open, true);
            next_round();
            claim(&pool.current, 0);
            atomic_store(&pool.open, false);
            wait_for_leaving();
            pthread_mutex_unlock(&pool.owner);
            return;
        }
        pthread_mutex_unlock(&pool.owner);
    }
    for (int64_t part = 0; part < parts; part++) run(ctx, part);
}

/* Runs when the library is unloaded or the program ends. If a job of another thread runs, nothing
 * is done, because stopping the workers would have to wait for that job. */
static __attribute__((destructor)) void end_workers(void) {
    if (!become_owner()) return;
    stop_workers();
    pthread_mutex_unlock(&pool.owner);
}
