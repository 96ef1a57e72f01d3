/* loader.c: batches of rows, made by a thread that stays ahead of who asks for them.
 *
 * Batches are numbered from the last seek on; batch i is made in slot i % slots. Whoever asks holds
 * the last one given, and the thread makes at most `ahead` more. Made and given are counted under
 * the lock; a slot belongs to the thread before it counts as made, and to the asker afterwards. All
 * memory is taken at the beginning. The thread starts with the first batch that is asked for, and
 * a seek ends it. */
#include "data/data.h"
#include "data/tokens.h"

#include <string.h>

#ifndef __wasi__
#include <pthread.h>
#include <signal.h>
#endif

enum { MOST_AHEAD = 64 };

typedef struct slot {
    cot_array   *arrays; /* n: what is given */
    cot_position after;
    int64_t      rows;
} slot;

struct cot_loader {
    cot_allocator      al;
    cot__trouble       trouble;
    cot__keep          keep;
    cot_loader_options o;
    int                n, slots;
    cot_array         *from; /* n: what rows are taken from; of tokens: the type of a row */
    const cot_tokens  *tokens;
    int64_t            stride, rows, per_epoch; /* rows, and those of them that are given */
    int64_t           *order;                   /* of the epoch `ordered`; NULL: as they lie */
    int64_t            ordered;
    slot              *slot;
    cot_position       start;  /* of the last seek */
    cot_position       making; /* of the next batch to make: the thread's */
    int64_t            made, given;
    bool               ended; /* nothing is made any more */
#ifndef __wasi__
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    pthread_t       thread;
    bool            running, stop;
#endif
};

/* ---- one batch ------------------------------------------------------------------------------- */

static size_t row_bytes(const cot_array *a) {
    return (size_t)cot__count(a->shape.ndim - 1, a->shape.dim + 1) * (size_t)cot__dtype_size(a->dtype);
}

static void copy_row(const cot_loader *l, int64_t row, slot *s, int64_t to) {
    for (int k = 0; k < l->n; k++) {
        size_t bytes = row_bytes(&l->from[k]);
        char  *place = (char *)s->arrays[k].data + (size_t)to * bytes;
        if (l->tokens)
            cot__tokens_copy(l->tokens, row * l->stride, l->from[k].shape.dim[1], place, l->from[k].dtype);
        else if (bytes)
            memcpy(place, (const char *)l->from[k].data + (size_t)row * bytes, bytes);
    }
}

/* Fills the slot with the batch at `making`; false at the end. */
static bool make(cot_loader *l, slot *s) {
    if (l->making.row >= l->per_epoch) l->making = (cot_position){l->making.epoch + 1, 0};
    if (!l->per_epoch || (l->o.epochs > 0 && l->making.epoch >= l->o.epochs)) return false;
    if (l->order && l->ordered != l->making.epoch) {
        cot_row_order(cot_key_fold(l->o.key, (uint64_t)l->making.epoch), l->rows, l->order);
        l->ordered = l->making.epoch;
    }
    int64_t left = l->per_epoch - l->making.row;
    s->rows      = left < l->o.batch ? left : l->o.batch;
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t row = l->making.row + i;
        copy_row(l, l->order ? l->order[row] : row, s, i);
    }
    l->making.row += s->rows;
    /* the end of an epoch is the start of the next */
    s->after = l->making.row < l->per_epoch ? l->making : (cot_position){l->making.epoch + 1, 0};
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

#ifndef __wasi__
static void *stay_ahead(void *loader) {
    cot_loader *l = loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stop && !l->ended) {
        if (l->made - l->given >= l->o.ahead) {
            pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        slot *s = &l->slot[l->made % l->slots];
        pthread_mutex_unlock(&l->lock);
        bool more = make(l, s);
        pthread_mutex_lock(&l->lock);
        if (more)
            l->made++;
        else
            l->ended = true;
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* It takes no signals: those are for the threads of the host. */
static void start(cot_loader *l) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    l->stop    = false;
    l->running = pthread_create(&l->thread, NULL, stay_ahead, l) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!l->running) l->o.ahead = -1; /* then batches are made when they are asked for */
}

static void end_thread(cot_loader *l) {
    if (!l->running) return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    l->running = false;
}

static void open_lock(cot_loader *l) {
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
}

static void close_lock(cot_loader *l) {
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
}

/* Waits until there is one more batch than were given; false at the end. */
static bool wait_for_one(cot_loader *l) {
    if (!l->running && !l->ended && l->o.ahead > 0) start(l);
    if (!l->running && l->made == l->given) {
        if (!l->ended && make(l, &l->slot[l->made % l->slots]))
            l->made++;
        else
            l->ended = true;
    }
    pthread_mutex_lock(&l->lock);
    while (l->running && l->made == l->given && !l->ended) pthread_cond_wait(&l->changed, &l->lock);
    bool there = l->made > l->given;
    l->given += there;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return there;
}
#else
static void end_thread(cot_loader *l) { (void)l; }
static void open_lock(cot_loader *l) { (void)l; }
static void close_lock(cot_loader *l) { (void)l; }

static bool wait_for_one(cot_loader *l) {
    bool there = !l->ended && make(l, &l->slot[l->made % l->slots]);
    l->ended   = !there;
    l->made += there;
    l->given += there;
    return there;
}
#endif

/* ---- making one ------------------------------------------------------------------------------ */

static bool check_arrays(cot_loader *l, const cot_array *arrays) {
    cot__trouble *t = &l->trouble;
    if (l->n < 1 || !arrays) return cot__trouble_file(t, "the list of %d arrays is empty or NULL", l->n);
    for (int k = 0; k < l->n; k++) {
        int64_t  count;
        uint64_t bytes;
        if ((unsigned)arrays[k].dtype >= COT_DTYPE_COUNT)
            return cot__trouble_set(t, COT_DTYPE, "array %d has a dtype that is none (%d)", k, (int)arrays[k].dtype);
        if (!cot__elements_count(&arrays[k].shape, 1, &count, &bytes) || count != arrays[k].size)
            return cot__trouble_set(t, COT_SHAPE, "array %d has a shape that is not of its %lld elements", k,
                                    (long long)arrays[k].size);
        if (arrays[k].shape.ndim < 1) return cot__trouble_set(t, COT_SHAPE, "array %d has no axis of rows", k);
        if (!arrays[k].data && count) return cot__trouble_file(t, "the elements of array %d are NULL", k);
        if (arrays[k].shape.dim[0] != arrays[0].shape.dim[0])
            return cot__trouble_set(t, COT_SHAPE, "array %d has %lld rows, and array 0 has %lld; all have as many", k,
                                    (long long)arrays[k].shape.dim[0], (long long)arrays[0].shape.dim[0]);
        l->from[k] = arrays[k];
    }
    l->rows = arrays[0].shape.dim[0];
    return true;
}

static bool check_tokens(cot_loader *l, const cot_tokens *t, int64_t window, int64_t stride) {
    if (!t) return cot__trouble_file(&l->trouble, "the tokens are NULL");
    if (cot_tokens_status(t)) return cot__trouble_set(&l->trouble, t->trouble.status, "%s", t->trouble.message);
    if (window < 1 || stride < 1)
        return cot__trouble_file(&l->trouble, "windows of %lld tokens, %lld apart; both are at least 1",
                                 (long long)window, (long long)stride);
    int64_t count = cot_tokens_count(t);
    l->tokens     = t;
    l->stride     = stride;
    l->rows       = count < window ? 0 : (count - window) / stride + 1;
    l->from[0]    = (cot_array){t->bytes == 2 ? COT_I32 : COT_I64, {2, {l->rows, window}}, 0, NULL};
    return true;
}

static bool take_memory(cot_loader *l) {
    l->slot = cot__keep_take(&l->keep, (size_t)l->slots * sizeof *l->slot);
    if (l->o.shuffle && l->rows > 0) {
        l->order =
            (uint64_t)l->rows < SIZE_MAX / 16 ? cot__keep_take(&l->keep, (size_t)l->rows * sizeof *l->order) : NULL;
        if (!l->order) return cot__trouble_memory(&l->trouble);
    }
    for (int i = 0; l->slot && i < l->slots; i++) {
        l->slot[i] = (slot){.arrays = cot__keep_take(&l->keep, (size_t)l->n * sizeof(cot_array))};
        if (!l->slot[i].arrays) return cot__trouble_memory(&l->trouble);
        for (int k = 0; k < l->n; k++) {
            cot_array *a   = &l->slot[i].arrays[k];
            size_t     row = row_bytes(&l->from[k]), batch = (size_t)l->o.batch;
            *a      = l->from[k];
            a->data = !row || batch < PTRDIFF_MAX / 2 / row ? cot__keep_take(&l->keep, row * batch) : NULL;
            if (!a->data) return cot__trouble_memory_for(&l->trouble, row * batch);
        }
    }
    return l->slot || cot__trouble_memory(&l->trouble);
}

static void prepare(cot_loader *l) {
    if (l->o.batch < 1)
        cot__trouble_file(&l->trouble, "a batch of %lld rows; it has at least 1", (long long)l->o.batch);
    if (l->o.epochs < 0) cot__trouble_file(&l->trouble, "%lld epochs; 0 is without end", (long long)l->o.epochs);
    if (l->trouble.status) return;
    /* no batch has more rows than there are */
    if (l->o.batch > l->rows && !l->o.drop_last) l->o.batch = l->rows > 0 ? l->rows : 1;
    l->per_epoch = l->o.drop_last ? l->rows / l->o.batch * l->o.batch : l->rows;
    if (!l->per_epoch && l->rows)
        cot__trouble_file(&l->trouble,
                          "a batch of %lld rows, of which there are %lld, and one that is not full is left out",
                          (long long)l->o.batch, (long long)l->rows);
    else
        take_memory(l);
}

/* from: of n arrays; or tokens. */
static cot_loader *create(int n, const cot_array *arrays, const cot_tokens *tokens, bool of_tokens, int64_t window,
                          int64_t stride, const cot_loader_options *options) {
    cot_loader_options defaults = {0};
    if (!options) options = &defaults;
    cot_loader *l = cot__alloc(&options->allocator, sizeof *l);
    if (!l) return NULL;
    *l = (cot_loader){.al = options->allocator, .keep.al = options->allocator, .o = *options, .n = n, .ordered = -1};
    l->o.ahead = l->o.ahead == 0 ? 2 : l->o.ahead > MOST_AHEAD ? MOST_AHEAD : l->o.ahead;
    l->slots   = l->o.ahead > 0 ? l->o.ahead + 1 : 1;
    open_lock(l);
    l->from = n > 0 ? cot__keep_take(&l->keep, (size_t)n * sizeof *l->from) : NULL;
    if (n > 0 && !l->from)
        cot__trouble_memory(&l->trouble);
    else if (of_tokens ? check_tokens(l, tokens, window, stride) : check_arrays(l, arrays))
        prepare(l);
    l->ended = l->trouble.status != COT_OK;
    return l;
}

cot_loader *cot_loader_create(int n, const cot_array *arrays, const cot_loader_options *options) {
    return create(n, arrays, NULL, false, 0, 0, options);
}

cot_loader *cot_loader_tokens(const cot_tokens *t, int64_t window, int64_t stride, const cot_loader_options *options) {
    return create(1, NULL, t, true, window, stride, options);
}

void cot_loader_destroy(cot_loader *l) {
    if (!l) return;
    end_thread(l);
    close_lock(l);
    cot_allocator al = l->al;
    cot__keep_free(&l->keep);
    cot__free(&al, l, sizeof *l);
}

cot_status  cot_loader_status(const cot_loader *l) { return l ? l->trouble.status : COT_MEMORY; }
const char *cot_loader_message(const cot_loader *l) { return l ? l->trouble.message : "memory is short"; }
int64_t     cot_loader_rows(const cot_loader *l) { return l ? l->rows : 0; }

/* ---- asking ---------------------------------------------------------------------------------- */

const cot_array *cot_loader_next(cot_loader *l) {
    if (!l || l->trouble.status || !wait_for_one(l)) return NULL;
    slot *s = &l->slot[(l->given - 1) % l->slots];
    for (int k = 0; k < l->n; k++) {
        cot_array *a    = &s->arrays[k];
        a->shape.dim[0] = s->rows;
        a->size         = cot__count(a->shape.ndim, a->shape.dim);
    }
    l->start = s->after;
    return s->arrays;
}

cot_position cot_loader_position(const cot_loader *l) { return l ? l->start : (cot_position){0, 0}; }

cot_status cot_loader_seek(cot_loader *l, cot_position position) {
    if (cot_loader_status(l)) return cot_loader_status(l);
    /* epochs are counted on from there */
    if (position.epoch < 0 || position.epoch > INT64_MAX / 2) return COT_VALUE;
    if (position.row < 0 || position.row > l->per_epoch) return COT_VALUE;
    end_thread(l);
    l->start = l->making = position;
    l->made = l->given = 0;
    l->ended           = false;
    return COT_OK;
}
