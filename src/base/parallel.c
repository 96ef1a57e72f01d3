/* parallel.c: a pool of workers with one job at a time.
 *
 * Every thread has a seat: a line of the cache with its share of the parts, in order, and for a
 * worker a state that says whose turn it is. The caller writes down the job, posts it to as many
 * workers as there are parts, and claims parts too. A worker that finds its seat posted takes it,
 * claims parts until there are none, and leaves. At the end the caller takes back what a worker has
 * not taken, and waits for those that have: then all parts are done, and no worker reads the job.
 *
 * To fetch the line of a worker's seat takes a tenth of a microsecond, so the caller writes each
 * once, by a plain store that need not wait for the line. A share is known from the job; what was
 * claimed of it bears the number of the job, and begins anew where that is another one's. Whether a
 * worker sleeps stands apart from its seat, on lines that seldom change.
 *
 * A thread claims from the others' shares when its own is done: so rows that one operation made are
 * read by the next one where they lie in the cache, and uneven parts balance. Workers spin for a
 * moment after a job, because the next one often follows at once and waking a sleeping thread takes
 * tens of microseconds. Then they sleep. A worker that spins has its share in a tenth of a
 * microsecond; so small jobs are posted to workers that spin, and wake others only when enough of
 * them have gone by without. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MOST_THREADS = 256,
    SPINS        = 4000,
    PATIENCE     = 32, /* small jobs that find workers asleep before they are woken for the next */
};

/* Of a worker. IDLE: it has none. POSTED: there is a job. TAKEN: it is at work. AWAITED: and the
 * owner sleeps until it is done. STOPPED: it shall end. A seat that is idle is the owner's to
 * write, any other one changes by exchanges alone. */
enum { IDLE, POSTED, TAKEN, AWAITED, STOPPED };

typedef struct seat {
    _Alignas(64) _Atomic int state;
    /* the number of a job · 2^PART_BITS + the first part of its share that is left */
    _Atomic uint64_t         claimed;
} seat;

enum { PART_BITS = 24, MOST_PARTS = 1 << PART_BITS }; /* of a job; more parts are several jobs */
/* Jobs have numbers from 1 on, which a seat that had none has not, to this one, and again from 1
 * on: a process may live for months. */
#define LAST_NUMBER (((uint64_t)1 << (64 - PART_BITS)) - 1)

typedef struct job {
    void   (*run)(void *ctx, int64_t part);
    void    *ctx;
    int64_t  first, parts;
    int      threads; /* that have shares */
    uint64_t number;
} job;

static struct pool {
    /* held by the caller that owns the job, and while workers are started and stopped */
    pthread_mutex_t owner;
    pthread_mutex_t sleep;
    pthread_cond_t  wake, left;
    pthread_t       thread[MOST_THREADS];
    seat            seats[MOST_THREADS]; /* the first is the caller's */
    job             job;                 /* stays as it is while a worker is at work */
    _Alignas(64) _Atomic bool asleep[MOST_THREADS];
    int             workers;             /* started */
    int             missed;              /* small jobs that found workers asleep */
    _Atomic int     asked;               /* threads wanted, with the caller's; 0: not decided yet */
    _Atomic bool    told;                /* by the program, so the environment does not count */
    bool            spins;               /* there is a processor for each thread */
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

static bool passes(seat *s, int from, int to) { return atomic_compare_exchange_strong(&s->state, &from, to); }

/* The owner posts a seat and then looks whether its worker sleeps; a worker says that it sleeps and
 * then looks at its seat. One of them must see the other: stores pass later loads unless there is a
 * fence between them, of which TSan knows nothing, so under it both are ordered one by one. */
#if defined(__SANITIZE_THREAD__)
#define POSTING memory_order_seq_cst
static void look_after_storing(void) {}
#else
#define POSTING memory_order_release
static void look_after_storing(void) { atomic_thread_fence(memory_order_seq_cst); }
#endif

/* The next part of a share that begins at `start`; `end`: there is none left. */
static int64_t next_part(seat *s, uint64_t number, int64_t start, int64_t end) {
    uint64_t was = atomic_load_explicit(&s->claimed, memory_order_relaxed);
    for (;;) {
        int64_t part = was >> PART_BITS == number ? (int64_t)(was % MOST_PARTS) : start;
        if (part >= end) return end;
        if (atomic_compare_exchange_weak_explicit(&s->claimed, &was, (number << PART_BITS) + (uint64_t)part + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return part;
    }
}

/* The first part of thread t's share. Shares end as near to even fractions as parts do, so that of
 * two jobs over the same rows, cut into other numbers of parts, a thread has the same rows. */
static int64_t share_start(const job *j, int t) { return j->parts * t / j->threads; }

static void claim(int self) {
    const job j = pool.job;
    for (int k = 0, t = self; k < j.threads; k++, t = t + 1 < j.threads ? t + 1 : 0) {
        int64_t start = share_start(&j, t), end = share_start(&j, t + 1), part;
        while ((part = next_part(&pool.seats[t], j.number, start, end)) < end) j.run(j.ctx, j.first + part);
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

static void wait_for_job(int self) {
    seat *s = &pool.seats[self];
    for (int i = 0; i < SPINS && pool.spins; i++) {
        if (atomic_load_explicit(&s->state, memory_order_relaxed) != IDLE) return;
        relax();
    }
    pthread_mutex_lock(&pool.sleep);
    atomic_store_explicit(&pool.asleep[self], true, POSTING);
    look_after_storing();
    while (atomic_load(&s->state) == IDLE) pthread_cond_wait(&pool.wake, &pool.sleep);
    atomic_store_explicit(&pool.asleep[self], false, memory_order_relaxed);
    pthread_mutex_unlock(&pool.sleep);
}

static void *worker(void *arg) {
    int   self = (int)(intptr_t)arg;
    seat *s = &pool.seats[self];
    for (;;) {
        wait_for_job(self);
        if (passes(s, POSTED, TAKEN)) {
            claim(self);
            if (atomic_exchange(&s->state, IDLE) == AWAITED) {
                pthread_mutex_lock(&pool.sleep);
                pthread_cond_signal(&pool.left);
                pthread_mutex_unlock(&pool.sleep);
            }
        } else if (atomic_load(&s->state) == STOPPED) return NULL;
    }
}

/* Takes the job back, or waits until it is done. A part that is still at work ends soon, unless its
 * thread was descheduled. The owner looks before it takes: an exchange that fails takes the line
 * from a worker that is about to write there, and the owner would wait for one line after the
 * other. */
static void wait_for_leaving(seat *s) {
    if (atomic_load_explicit(&s->state, memory_order_relaxed) == POSTED && passes(s, POSTED, IDLE)) return;
    for (int i = 0; i < SPINS && pool.spins; i++) {
        if (atomic_load_explicit(&s->state, memory_order_acquire) != TAKEN) return;
        relax();
    }
    pthread_mutex_lock(&pool.sleep);
    if (passes(s, TAKEN, AWAITED))
        while (atomic_load(&s->state) == AWAITED) pthread_cond_wait(&pool.left, &pool.sleep);
    pthread_mutex_unlock(&pool.sleep);
}

static void wake_all(void) {
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

/* The number that a text is; 0: it is none. */
static long threads_of(const char *text) {
    char *end = NULL;
    long  n = text ? strtol(text, &end, 10) : 0;
    return !text || end == text || *end || n < 1 ? 0 : n;
}

static int default_threads(void) {
    long n = threads_of(getenv("COTANGENT_THREADS"));
    if (n == 0) n = processors();
    return n > MOST_THREADS ? MOST_THREADS : (int)n;
}

const char *cot__threads_unread(void) {
    const char *text = getenv("COTANGENT_THREADS");
    return text && text[0] && !atomic_load(&pool.told) && threads_of(text) == 0 ? text : NULL;
}

/* The owner calls the three functions below. */
static void stop_workers(void) {
    if (pool.workers == 0) return;
    for (int t = 1; t <= pool.workers; t++) atomic_store(&pool.seats[t].state, STOPPED);
    wake_all();
    for (int i = 0; i < pool.workers; i++) pthread_join(pool.thread[i], NULL);
    pool.workers = 0;
}

/* After a fork only the calling thread exists, so the child gets a new pool. */
static void forked(void) {
    pthread_mutex_init(&pool.owner, NULL);
    pthread_mutex_init(&pool.sleep, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.left, NULL);
    pool.workers = 0;
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
    for (int t = 1; t < asked; t++) {
        atomic_store(&pool.seats[t].state, IDLE);
        atomic_store(&pool.asleep[t], false);
    }
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
    atomic_store(&pool.told, n >= 1);
    atomic_store(&pool.asked, n < 1 ? default_threads() : n > MOST_THREADS ? MOST_THREADS : n);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool become_owner(void) {
    watch_forks();
    return pthread_mutex_trylock(&pool.owner) == 0;
}

static void post(int threads) {
    bool asleep = false;
    for (int t = 1; t < threads; t++) atomic_store_explicit(&pool.seats[t].state, POSTED, POSTING);
    look_after_storing();
    for (int t = 1; t < threads; t++) asleep |= atomic_load(&pool.asleep[t]);
    if (asleep) wake_all();
}

/* The owner does `parts` parts from `first` on with the workers. */
static void share_out(int64_t first, int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    int threads = parts < pool.workers + 1 ? (int)parts : pool.workers + 1;
    pool.job = (job){run, ctx, first, parts, threads, pool.job.number % LAST_NUMBER + 1};
    post(threads);
    claim(0);
    for (int t = 1; t < threads; t++) wait_for_leaving(&pool.seats[t]);
}

/* Are the workers that a small job asks for awake, or is it time to wake them? */
static bool worth_asking(int64_t parts) {
    bool awake = pool.workers == cot_threads() - 1;
    if (awake && !pool.spins) return false;
    for (int t = 1; t <= pool.workers && t < parts && awake; t++)
        awake = !atomic_load_explicit(&pool.asleep[t], memory_order_relaxed);
    if (awake) return true;
    if (pool.missed++ < PATIENCE) return false;
    pool.missed = 0;
    return true;
}

static void in_parallel(bool small, int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    if (parts > 1 && become_owner()) {
        if (!small || worth_asking(parts)) {
            start_workers();
            if (pool.workers > 0) {
                for (int64_t first = 0, left = parts; left > 0; first += MOST_PARTS - 1, left = parts - first)
                    share_out(first, left < MOST_PARTS ? left : MOST_PARTS - 1, run, ctx);
                pthread_mutex_unlock(&pool.owner);
                return;
            }
        }
        pthread_mutex_unlock(&pool.owner);
    }
    for (int64_t part = 0; part < parts; part++) run(ctx, part);
}

void cot__parallel(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    in_parallel(false, parts, run, ctx);
}
void cot__parallel_small(int64_t parts, void (*run)(void *ctx, int64_t part), void *ctx) {
    in_parallel(true, parts, run, ctx);
}

/* Runs when the library is unloaded or the program ends. If a job of another thread runs, nothing
 * is done, because stopping the workers would have to wait for that job. */
static __attribute__((destructor)) void end_workers(void) {
    if (!become_owner()) return;
    stop_workers();
    pthread_mutex_unlock(&pool.owner);
}
