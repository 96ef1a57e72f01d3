/* share.c: threads that spin while they wait for work: the least that sharing a loop can cost. */
#include "handwritten/handwritten.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { MOST = 64 };

static struct {
    int          threads;
    void       (*run)(void *ctx, int part);
    void        *ctx;
    _Atomic int  round, left;
} all = {.threads = 1};

/* Spins, and yields now and then, because there may be fewer processors than threads. */
static void pause_for(int *spins) {
    if (++*spins % 20000 == 0) sched_yield();
}

static void *work(void *arg) {
    int part = (int)(intptr_t)arg, seen = 0;
    for (;;) {
        int spins = 0;
        while (atomic_load(&all.round) == seen) pause_for(&spins);
        seen++;
        all.run(all.ctx, part);
        atomic_fetch_sub(&all.left, 1);
    }
    return NULL;
}

/* The threads live until the program ends. */
void share_start(int threads) {
    pthread_t thread;
    all.threads = threads > MOST ? MOST : threads;
    for (int i = 1; i < all.threads; i++)
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)i) != 0 || pthread_detach(thread) != 0) exit(1);
}

int share_threads(void) { return all.threads; }

void share(void (*run)(void *ctx, int part), void *ctx) {
    int spins = 0;
    all.run = run;
    all.ctx = ctx;
    atomic_store(&all.left, all.threads - 1);
    atomic_fetch_add(&all.round, 1);
    run(ctx, 0);
    while (atomic_load(&all.left) > 0) pause_for(&spins);
}
