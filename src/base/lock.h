/* lock.h: one thread at a time. In WebAssembly there is one thread. */
#ifndef COT_LOCK_H
#define COT_LOCK_H

#if defined(__wasm__)
typedef struct cot__lock { char unused; } cot__lock;
static inline void cot__lock_open(cot__lock *l) { l->unused = 0; }
static inline void cot__lock_take(cot__lock *l) { (void)l; }
static inline void cot__lock_give(cot__lock *l) { (void)l; }
static inline void cot__lock_close(cot__lock *l) { (void)l; }
#else
#include <pthread.h>

typedef pthread_mutex_t cot__lock;
/* With default attributes this cannot fail on systems we know. */
static inline void cot__lock_open(cot__lock *l) { pthread_mutex_init(l, NULL); }
static inline void cot__lock_take(cot__lock *l) { pthread_mutex_lock(l); }
static inline void cot__lock_give(cot__lock *l) { pthread_mutex_unlock(l); }
static inline void cot__lock_close(cot__lock *l) { pthread_mutex_destroy(l); }
#endif

#endif
