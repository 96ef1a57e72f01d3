/* queue.c: compilers run one after the other, in a thread of their own that ends when nothing is
 * left to do. */
#include "native/load.h"
#include "native/object.h"

atomic_int cot__native_started;

#if COT__HAS_NATIVE
#include "base/number.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { STACK = 512 * 1024 };

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t  done; /* something was compiled */
    cot__native    *first, *last;
    cot__native    *current;
    bool            runs; /* there is a thread */
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

/* ---- the work -------------------------------------------------------------------------------- */

bool cot__native_find(cot__native *n, char why[COT__NATIVE_TEXT]) {
    int fd = cot__folder_object(&n->folder, n->key, why);
    if (fd < 0) return false;
    bool ok = cot__object_load(fd, &n->loaded, why);
    close(fd);
    return ok;
}

static bool build(cot__native *n) {
    if (!cot__folder_open(&n->folder, n->why)) return false;
    bool ok = cot__compile_text(&n->compiler, &n->folder, n->text, n->text_bytes, n->key, n->why) &&
              cot__native_find(n, n->why);
    if (!ok && !n->why[0]) cot__format(n->why, sizeof n->why, "the object is gone: the cache has no room for it");
    cot__folder_close(&n->folder);
    return ok;
}

/* Nobody waits for what has no other owner. */
static void do_one(cot__native *n) {
    bool wanted = atomic_load(&n->refs) > 1, ok = wanted && build(n);
    atomic_store(&n->state, ok ? COT__NATIVE_LOADED : COT__NATIVE_DROPPED);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *work(void *unused) {
    (void)unused;
    pthread_mutex_lock(&queue.lock);
    while (queue.first) {
        cot__native *n = queue.current = queue.first;
        queue.first = n->next;
        pthread_mutex_unlock(&queue.lock);
        do_one(n);
        pthread_mutex_lock(&queue.lock);
        queue.current = NULL;
        pthread_cond_broadcast(&queue.done);
        cot__native_release(n);
    }
    queue.runs = false;
    pthread_mutex_unlock(&queue.lock);
    return NULL;
}

/* Signals are the host's business, and what spawn.c makes must get none. */
static bool start(void) {
    pthread_attr_t attributes;
    pthread_t      thread;
    sigset_t       all, before;
    if (pthread_attr_init(&attributes) != 0) return false;
    cot__stay_loaded();
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&thread, &attributes, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return ok;
}

/* ---- forks ----------------------------------------------------------------------------------- */

/* A child has only the thread that forked: what was being compiled is not, there. Its owners have
 * it still, so nothing is freed. */
static void before_fork(void) { pthread_mutex_lock(&queue.lock); }
static void in_parent(void) { pthread_mutex_unlock(&queue.lock); }

static void give_up(cot__native *n) {
    cot__format(n->why, sizeof n->why, "the process was forked while a compiler was to run");
    atomic_store(&n->state, COT__NATIVE_DROPPED);
}

static void in_child(void) {
    if (queue.current) give_up(queue.current);
    for (cot__native *n = queue.first; n; n = n->next) give_up(n);
    queue.first = queue.last = queue.current = NULL;
    queue.runs = false;
    pthread_cond_init(&queue.done, NULL);
    pthread_mutex_init(&queue.lock, NULL);
}

static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

/* ---- what others call ------------------------------------------------------------------------ */

bool cot__native_queue(cot__native *n, char why[COT__NATIVE_TEXT]) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&queue.lock);
    bool runs = queue.runs, ok = true;
    n->next = NULL;
    atomic_fetch_add(&n->refs, 1);
    atomic_store(&n->state, COT__NATIVE_COMPILING);
    if (queue.first) queue.last->next = n;
    else queue.first = n;
    queue.last = n;
    if (!runs) ok = queue.runs = start();
    if (!ok) queue.first = NULL;
    pthread_mutex_unlock(&queue.lock);
    if (ok) return true;
    atomic_fetch_sub(&n->refs, 1);
    cot__format(why, COT__NATIVE_TEXT, "there is no thread in which to wait for a compiler");
    return false;
}

void cot__native_wait(cot__native *n) {
    pthread_mutex_lock(&queue.lock);
    while (atomic_load(&n->state) == COT__NATIVE_COMPILING) pthread_cond_wait(&queue.done, &queue.lock);
    pthread_mutex_unlock(&queue.lock);
}
#endif
