/* errands.c: see errands.h. All states are changed under one lock. */
#define _GNU_SOURCE
#include "base/file/errands.h"

#if defined(__linux__)
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* ---- one transfer ---------------------------------------------------------------------------- */

/* As cot__checksum, which takes one byte at a time, with eight: these sums never leave the process,
 * and are computed as fast as memory is read. Four sums side by side do not wait for each other. */
static uint64_t sum_of(const void *data, size_t bytes) {
    const unsigned char *b = data;
    const uint64_t       prime = UINT64_C(0x100000001b3);
    uint64_t             lane[4] = {1, 2, 3, 4}, word[4] = {0}, sum = bytes;
    for (; bytes >= sizeof word; b += sizeof word, bytes -= sizeof word) {
        memcpy(word, b, sizeof word);
        for (int k = 0; k < 4; k++) lane[k] = ((lane[k] ^ word[k]) * prime) ^ (lane[k] >> 32);
    }
    memset(word, 0, sizeof word);
    if (bytes) memcpy(word, b, bytes);
    for (int k = 0; k < 4; k++) sum = (sum ^ lane[k] ^ word[k]) * prime ^ (sum >> 32);
    return sum;
}

/* 0, or errno. A file that takes or gives nothing more is full, or has ended. */
static int move(const cot__transfer *x) {
    for (size_t done = 0; done < x->bytes;) {
        char   *data = (char *)x->data + done;
        size_t  left = x->bytes - done;
        off_t   at = (off_t)(x->at + done);
        ssize_t n = x->writes ? pwrite(x->fd, data, left, at) : pread(x->fd, data, left, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : x->writes ? ENOSPC : EIO;
        done += (size_t)n;
    }
    return 0;
}

void cot__transfer_do(cot__transfer *x) {
    if (x->writes) x->sum = sum_of(x->data, x->bytes);
    x->trouble = move(x);
    if (!x->trouble && !x->writes && sum_of(x->data, x->bytes) != x->sum) x->trouble = -1;
}

/* ---- forks ----------------------------------------------------------------------------------- */

static atomic_uint forks;

static void forked(void) { atomic_fetch_add(&forks, 1); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, forked); }

unsigned cot__forks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

/* ---- the thread ------------------------------------------------------------------------------ */

enum { ERRANDS = 16, STACK = 1 << 18 };

typedef enum state { NONE, BEGUN, DONE } state;

struct cot__errands {
    cot_allocator   al;
    pthread_t       thread;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    bool            stop;
    unsigned        forks; /* of the process whose thread it is */
    uint64_t        next; /* the time of the next errand */
    struct { state is; uint64_t begun; cot__transfer x; } errand[ERRANDS];
};

/* The oldest that is not done; -1: none. */
static int oldest(const cot__errands *e) {
    int found = -1;
    for (int k = 0; k < ERRANDS; k++)
        if (e->errand[k].is == BEGUN && (found < 0 || e->errand[k].begun < e->errand[found].begun)) found = k;
    return found;
}

static void *run(void *errands) {
    cot__errands *e = errands;
    pthread_mutex_lock(&e->lock);
    for (;;) {
        int k = oldest(e);
        if (k < 0 && e->stop) break;
        if (k < 0) {
            pthread_cond_wait(&e->changed, &e->lock);
            continue;
        }
        cot__transfer x = e->errand[k].x;
        pthread_mutex_unlock(&e->lock);
        cot__transfer_do(&x);
        pthread_mutex_lock(&e->lock);
        e->errand[k].x = x;
        e->errand[k].is = DONE;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* It takes no signals: those are for the threads of the host. */
static bool start(cot__errands *e) {
    sigset_t       all, before;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&e->thread, &attributes, run, e) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return ok;
}

size_t cot__errands_bytes(void) { return sizeof(cot__errands); }

cot__errands *cot__errands_open(const cot_allocator *al) {
    cot__errands *e = cot__alloc(al, sizeof *e);
    if (!e) return NULL;
    memset(e, 0, sizeof *e);
    e->al = *al;
    e->forks = cot__forks();
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    if (start(e)) return e;
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    cot__free(al, e, sizeof *e);
    return NULL;
}

/* The lock and the thread of a parent are left alone. */
static bool is_parents(const cot__errands *e) { return e->forks != cot__forks(); }

static void end_thread(cot__errands *e) {
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
}

void cot__errands_close(cot__errands *e) {
    if (!e) return;
    if (!is_parents(e)) end_thread(e);
    cot_allocator al = e->al;
    cot__free(&al, e, sizeof *e);
}

/* ---- errands --------------------------------------------------------------------------------- */

int cot__errands_begin(cot__errands *e, const cot__transfer *x) {
    int k = 0;
    pthread_mutex_lock(&e->lock);
    while (k < ERRANDS && e->errand[k].is != NONE) k++;
    if (k < ERRANDS) {
        e->errand[k].is = BEGUN;
        e->errand[k].begun = e->next++;
        e->errand[k].x = *x;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->lock);
    return k < ERRANDS ? k + 1 : 0;
}

static cot__transfer finish_in_child(cot__errands *e, int number) {
    cot__transfer x = e->errand[number - 1].x;
    bool          begun = e->errand[number - 1].is == BEGUN;
    e->errand[number - 1].is = NONE;
    if (begun && x.writes) x.trouble = EIO;
    else if (begun) cot__transfer_do(&x);
    return x;
}

cot__transfer cot__errands_finish(cot__errands *e, int number) {
    if (is_parents(e)) return finish_in_child(e, number);
    pthread_mutex_lock(&e->lock);
    while (e->errand[number - 1].is == BEGUN) pthread_cond_wait(&e->changed, &e->lock);
    cot__transfer x = e->errand[number - 1].x;
    e->errand[number - 1].is = NONE;
    pthread_mutex_unlock(&e->lock);
    return x;
}

bool cot__errands_are_done(cot__errands *e) {
    pthread_mutex_lock(&e->lock);
    bool done = oldest(e) < 0;
    pthread_mutex_unlock(&e->lock);
    return done;
}
#endif
