/* memory.h: values that a tape drops so that a limit holds, and computes again, or reads back from
 * a file, when they are read.
 *
 * The allocator of a tape counts what is in use (base/cache.h). When it would pass the limit it
 * asks drop.c, which lets the elements of some values go: those that cost least to make again for
 * what they free and for how long nobody has read them. A storage without elements is `dropped`.
 * Whoever asks for elements (cot__look, cot__bound_at) comes to replay.c, which does the operations
 * again that made them, by their records (job/job.h), without recording anything. Where the tape
 * has a spill folder, what is dear or not possible to make again lies in its store meanwhile
 * (spill.c), where a thread brings it before memory is short, and from where it reads ahead.
 * Without a limit values may be kept as bf16 for rules (pack.c): they are dropped between readers.
 *
 * Invariants:
 *   - a dropped value lies in the store, is packed, or can be made again: its operands are as its
 *     operation saw them, or are dropped values themselves, but for leaves, constants and wrapped
 *     memory, whose writes are found then;
 *   - what is being computed with is not dropped: elements that were asked for since the last
 *     operation was over (read_at), and what a replay holds (pins);
 *   - nothing recurses: a replay keeps what is to be made in a list.
 *
 * May call: all up to diff. Must not touch: what is recorded; the tape stays as it was. */
#ifndef COT_MEMORY_H
#define COT_MEMORY_H

#include "tape/tape.h"

/* A leaf, as it was made or as layers see it: its memory and that of its gradient do not count. */
static inline bool cot__is_leaf(const cot__node *n) { return n->op == OP_leaf || n->op == OP_parameter; }
/* That, or a constant: nothing computes it. */
static inline bool cot__is_source(const cot__node *n) {
    return n->op == OP_parameter || cot__op_of(n->op)->kind == KIND_SOURCE;
}

/* What it takes to do the operation of a node again, in operations on numbers: those of its value,
 * and one for each element that it reads or writes (cost.c). */
double cot__cost_again(const cot_tape *t, uint32_t operation);

/* Can the operation be done again without recording it? (replay.c) */
bool cot__can_replay(const cot_tape *t, uint32_t operation);

/* A limit that is enough to record nodes 0 … y and to sweep back from y (least.c): found by
 * rehearsals, or where there can be none, estimated from above. *whole is the most that is in use
 * at once without a limit; 0: not known. Computes nothing. 0: values are kept as bf16, so there can
 * be no limit. -1: memory is short. */
int64_t cot__enough(cot_tape *t, uint32_t y, int64_t *whole);
/* What is in use without the elements that can be dropped, of nodes 0 … end - 1 (least.c). -1:
 * memory is short. */
double  cot__undroppable(cot_tape *t, uint32_t end);
/* Bytes of workspace of an operation, from shapes alone (least.c). */
int64_t cot__workspace_at(const cot_tape *t, uint32_t operation);

/* Has a scope that closed let the elements of node i go? */
static inline bool cot__was_let_go(const cot_tape *t, uint32_t i) {
    const cot__tensor *x = cot__is_tensor(&t->nodes[i]) ? t->nodes[i].value.tensor : NULL;
    return x && x->storage->bytes == 0 && !x->storage->borrowed && x->version != x->storage->version;
}

/* Bytes of nodes or slots that lie in reserved address space, of which a limit could not know; 0:
 * none do (lists.c). */
size_t cot__lists_uncounted(const cot_tape *t);

/* The most that functions took for themselves at once (scratch.c). */
double cot__scratch_most(const cot_tape *t);

/* ---- rehearsals (rehearse.c, hollow.c) ---- */

typedef struct cot__rehearsal {
    size_t limit;  /* 0: none */
    size_t beside; /* what the tape has in use besides its nodes and values: names, say */
    size_t peak;   /* told: the most in use at once … */
    double lists;  /* … without values after it was recorded … */
    bool   failed; /* … and whether the tape's allocator had no memory */
    /* storages looked at for what to drop, and the most that may be: behind it nothing is */
    int64_t looks, most_looks;
} cot__rehearsal;
/* Are nodes 0 … y such that they can be rehearsed? */
bool cot__can_rehearse(const cot_tape *t, uint32_t y);
/* Records nodes 0 … y and sweeps back from y, without computing anything. Under a limit what scopes
 * have let go is there, as it would be. False: the limit is not enough within most_looks, or there
 * is no memory, or no address space for what it would be of. */
bool cot__rehearse(cot_tape *t, uint32_t y, cot__rehearsal *r);
/* A backend that computes nothing, and asks for the workspaces of `like`, of the host. */
void cot__hollow_backend(cot__backend *b, const cot__backend *like);

/* Lets elements go until `bytes` more are within the limit, if it can (drop.c): what a cache asks
 * when memory is short. */
void cot__drop_for(void *tape, size_t bytes);
/* Of more storages than these several are dropped for one look at them; else one. */
enum { COT__MANY_STORAGES = 1024 };

/* ---- the store (spill.c) ---- */

/* Does its present value lie in the store, or is on its way there or back? */
static inline bool cot__is_stored(const cot__storage *s) {
    return s->stored.store && s->stored_version == s->version;
}
/* May its elements go to the store, by what they are? */
bool cot__can_spill(const cot_tape *t, const cot__storage *s);
/* What it takes to bring them there, unless they are, and back: in operations on numbers. */
double cot__cost_to_move(const cot__storage *s);
/* The elements of s go to the store. False: the disk has failed, and they stay. */
bool cot__spill(cot_tape *t, cot__storage *s);
/* They come back. COT__NO_ROOM: there is no memory for them. COT__LOST: the disk has failed. */
typedef enum cot__return { COT__BACK, COT__NO_ROOM, COT__LOST } cot__return;
cot__return cot__bring_back(cot_tape *t, cot__storage *s);

/* Begins to write the elements of s to the store, where they stay in memory as well. */
bool cot__write_behind(cot_tape *t, cot__storage *s);
/* Elements of s that are on their way from the store arrive. False: there were none. */
bool cot__let_arrive(cot_tape *t, cot__storage *s);
/* Drops what a running sweep has passed until `bytes` more are within the limit. False: that is not
 * enough (drop.c). */
bool cot__drop_passed(cot_tape *t, size_t bytes);
/* When memory begins to be short, the next value that would go to the store is written there
 * (drop.c). */
void cot__look_behind(cot_tape *t);

/* ---- bf16 for rules alone (pack.c) ---- */

/* The elements of a packed value are there as f32. False: there is no memory. */
bool cot__pack_read(cot_tape *t, cot__storage *s);
/* Those that nobody computes with any more go again. */
void cot__pack_again(cot_tape *t);

/* For the tests: what can be spilled is, as soon as an operation is over, to this folder. NULL:
 * the usual. */
extern const char *cot__spill_always;

/* For the tests: whatever can be dropped is dropped as soon as an operation is over, on every tape
 * that is created after this was set. It must not show in any result. */
extern bool cot__drop_always;

#endif
