/* parts.h: the inside of the work that waits, which the files of this folder share. */
#ifndef COT_PENDING_PARTS_H
#define COT_PENDING_PARTS_H

#include "pending/pending.h"

enum { COT__WAITING_VIEWS = COT__RUN_VIEWS + COT__RUN_OUTPUTS };
#define COT__NOWHERE UINT32_MAX
enum { COT__KEY = 2 + COT__WAITING_VIEWS / 2 };

/* A storage that waiting work touches. It has its place as long as any work does. */
typedef struct cot__touched {
    cot__storage *storage;
    /* the operation that will make its elements, when it is asked; NULL: none (patient.c) */
    struct cot__patient *patient;
    struct cot__member  *readers; /* a list: it is these operands of patient operations */
    bool                 queued;  /* an operation of the queue touches it: it stands in `queued` */
    /* the tape owns it, but nobody will read it (cot__pending_unread) */
    bool                 unread;
    bool                 needed;  /* at one place of a walk: what it holds there will be read */
    /* while a group is looked at: its number, and of the group's views on this storage: whether one
     * is written, whether all are straight, the last one (see cot__waiting.before); and whether it
     * is scratch: what it holds before and after the group interests nobody */
    uint32_t group, view; /* of a place that is vacant, view is the next such */
    bool     written, straight, scratch;
} cot__touched;

/* An operation that waits, beside its run. Views are numbered as in cot__stage.moves: operand i is
 * i, output i is COT__RUN_VIEWS + i. */
typedef struct cot__waiting {
    union { /* what is compared with what was done before (outline.c) */
        struct {
            int64_t  size;
            uint16_t used;     /* bit i: view i is on a storage */
            uint16_t straight; /* bit i: it has all elements of its storage, in their order */
            uint16_t adds;     /* bit i: it is added to; bit 15: it is made by a recipe */
            uint16_t outputs;
            /* which of the touched storages each is on that is on one; the others, 0, are numbers,
             * or unread */
            uint32_t on[COT__WAITING_VIEWS];
        };
        uint64_t key[COT__KEY];
    };
    uint32_t before[COT__WAITING_VIEWS]; /* the view before it in its group on the same storage */
    uint32_t group;
    uint16_t number; /* of the operations that came since the last run */
    /* NULL, or how to make the output from the operands: in place of the run, whose views say what
     * is read and written */
    const cot__recipe *made;
} cot__waiting;

typedef struct cot__numbers {
    struct cot__numbers *next;
    uint32_t             used;
    int64_t              number[1000];
} cot__numbers;

typedef struct cot__outline cot__outline;
enum { COT__OUTLINES = 8 };

struct cot__pending {
    cot_tape       *t;
    uint32_t        count, room; /* operations, in three lists that are one piece of memory */
    cot__block_run *run;
    cot__waiting   *op;
    uint16_t       *moves;
    /* Two lists that are one piece of memory: storages that work touches, of `places` places that
     * were taken, some of which are vacant again (a list, COT__NOWHERE at its end); and those of
     * them that operations of the queue touch. */
    cot__touched *touched;
    uint32_t     *queued;
    uint32_t      places, vacant, touches, touched_room;
    /* those of them that have no owner any more: they are freed when the work is done, or serve
     * for new values */
    uint32_t       *orphan;
    uint32_t        orphans, orphan_room;
    /* Of lists that were done lately (outline.c): the oldest is the next to go. And how many lists
     * in a row had none. */
    cot__outline *outline[COT__OUTLINES];
    uint32_t      oldest, misses;
    /* of the list that waits: a view is not straight; and a word that most lists which differ
     * differ in */
    bool          bent;
    uint64_t      print;
    /* NULL, or a reduction of what one of them will hold, to be done on the way */
    cot__stage_fold *fold;
    uint32_t         folded;
    /* shapes, strides and single values that runs refer to: a list, and where there is room */
    cot__numbers   *numbers, *current;
};

/* Every view i of w that is on a storage. */
#define COT__EACH_VIEW(i, w) \
    for (uint32_t left_ = (w)->used, i = 0; left_ && (i = (uint32_t)__builtin_ctz(left_), true); left_ &= left_ - 1)

#define COT__WAITING_BYTES (sizeof(cot__block_run) + sizeof(cot__waiting) + sizeof(uint16_t))
#define COT__TOUCHED_BYTES (sizeof(cot__touched) + sizeof(uint32_t))

static inline bool cot__view_in_use(const cot__block_run *r, int i) {
    return i < COT__RUN_VIEWS ? i < r->n : i - COT__RUN_VIEWS < r->outputs;
}
static inline const cot__view *cot__view_of_run(const cot__block_run *r, uint32_t i) {
    return i < COT__RUN_VIEWS ? &r->x[i] : &r->out[i - COT__RUN_VIEWS].to;
}
/* Has it all elements of its storage, in their order? */
static inline bool cot__is_straight(const cot__view *v, const cot__storage *s) {
    return v->data == s->data && cot__is_dense(v, v->dtype) &&
           (size_t)(cot__count(v->ndim, v->shape) * cot__dtype_size(v->dtype)) == s->bytes;
}
/* Does it put there what was not there before, all of it? */
static inline bool cot__overwrites(const cot__block_run *r, const cot__waiting *w, uint32_t i) {
    return i >= COT__RUN_VIEWS && !r->out[i - COT__RUN_VIEWS].accumulate && w->straight >> i & 1;
}

/* Drops operations whose results nothing will read, after cot__pending_from_end (dead.c). */
void cot__pending_drop_dead(cot__pending *q);
/* Walks back over operations first … end - 1; `needed` of the storages changes from what holds
 * after them to what holds before. */
void cot__pending_walk_back(cot__pending *q, uint32_t first, uint32_t end);
/* Of all storages: `needed` after the last operation, and no group. */
void cot__pending_from_end(cot__pending *q);

/* Numbers the groups of all operations, when dead ones were dropped, and finds what lives in their
 * blocks alone (groups.c). */
void cot__pending_group(cot__pending *q);
void cot__pending_find_scratch(cot__pending *q);

/* After cot__pending_from_end: drops, groups and finds scratch as for a list like this one before.
 * False: none is kept, and *keep says whether this one is to be (outline.c). */
bool cot__outline_follow(cot__pending *q, bool *keep);
/* Keeps what will be found: before these steps and after them. NULL: there is no memory. */
cot__outline *cot__outline_begin(cot__pending *q);
void          cot__outline_end(cot__outline *p, const cot__pending *q);
size_t        cot__outlines_bytes(const cot__pending *q);
void          cot__outlines_free(cot__pending *q);

/* Does all that waits (run.c). */
void cot__pending_run(cot__pending *q);

/* Adds an operation to the queue (add.c). on: for each view, the storage it lies on; NULL: it is a
 * number, or not read. made: NULL, or see cot__waiting. False: there is no memory for it. */
bool cot__pending_add(cot_tape *t, cot__block_run *r, cot__storage *const *on, const cot__recipe *made);
/* The list of waiting work with room for as many storages as an operation has views; NULL: no
 * memory. */
cot__pending *cot__pending_with_places(cot_tape *t);
/* The place of a storage among those that work touches, one of its own from now on; and its end, if
 * no work touches the storage any more. */
uint32_t cot__pending_place(cot__pending *q, cot__storage *s);
static inline void cot__pending_vacate(cot__pending *q, cot__storage *s) {
    cot__touched *e = &q->touched[s->touched - 1];
    if (e->queued || e->patient || e->readers) return;
    e->view = q->vacant;
    q->vacant = s->touched - 1;
    s->touched = 0;
}

/* The operation that makes the elements of s when it is asked (patient.c); NULL: there is none. */
static inline struct cot__patient *cot__patient_of(const cot_tape *t, const cot__storage *s) {
    return s && s->touched ? t->pending.work->touched[s->touched - 1].patient : NULL;
}
/* Nobody will ask: it is forgotten, with all it holds. */
void cot__patient_forget(cot_tape *t, cot__storage *s);
/* Reduces x, which such an operation makes, without writing it. False: it is better written. */
bool cot__patient_reduce(cot_tape *t, cot__reduction what, const cot__bound *x, uint32_t axes, const cot__view *z);

#endif
