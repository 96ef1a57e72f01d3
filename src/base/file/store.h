/* store.h: extents of a file without a name, for what shall not stay in memory.
 *
 * A store is one file in a folder of the user's. Its name is gone as soon as it is open, so nothing
 * is left of it, however the process ends. An extent is a range of bytes of the file; those that
 * were given back are used again, and the end of the file is cut off when nothing lies there. What
 * is written has a checksum, which the writer keeps in memory: so a read finds also what never
 * reached the disk.
 *
 * A forked child reads what the store has, and writes nothing more there: the file is its parent's.
 *
 * A store that cannot write says so and writes no more (a full disk: takes no more room); what it
 * has can still be read. A store belongs to one thread, but has one of its own that writes and
 * reads meanwhile (errands.h), from the first such errand on.
 *
 * May call: libc, base. Must not touch: what the bytes mean. Elsewhere than on Linux there is no
 * store. */
#ifndef COT_STORE_H
#define COT_STORE_H

#include "base/base.h"

typedef struct cot__store cot__store;

typedef struct cot__extent {
    cot__store *store; /* NULL: none */
    uint64_t    at;    /* in the file */
    size_t      bytes;
    uint64_t    sum;   /* of what was written there, where that is the whole of it */
    int         errand; /* 1 + the number of what the store's thread does with it; 0: nothing */
} cot__extent;

/* An open file in `folder`, whose name is copied. NULL, with errno set, where there is none. */
cot__store *cot__store_open(const cot_allocator *al, const char *folder);
void        cot__store_close(cot__store *s); /* NULL is fine */
const char *cot__store_folder(const cot__store *s);
/* What went wrong first, "No space left on device"; NULL: nothing. */
const char *cot__store_trouble(const cot__store *s);
/* Another file in its folder failed, with this errno. */
void        cot__store_blame(cot__store *s, int why);
/* Will it take nothing more, whatever is given back? */
bool        cot__store_is_broken(const cot__store *s);
/* What it costs to move a byte, in operations on numbers, by what disks and processors do: it is
 * written at 1 GB/s and read at twice that, while some ten operations are done in a nanosecond. */
enum { COT__WRITE_BYTE = 10, COT__READ_BYTE = 5 };
/* Bytes of memory that a store takes with its thread, as long as nothing is given back to it; and
 * has it its thread from now on, before the first errand? */
size_t cot__store_bytes(const char *folder);
bool   cot__store_hire(cot__store *s);
/* Stores of one owner are a list. */
cot__store **cot__store_next(cot__store *s);

/* A range of `bytes`, used before or at the end of the file. False, with errno set: the file cannot
 * have it. */
bool cot__extent_take(cot__store *s, size_t bytes, cot__extent *p);
void cot__extent_give(cot__extent *p);
/* Might cot__extent_take find one? */
bool cot__store_has_room(const cot__store *s, size_t bytes);

/* Writes `bytes` there; *sum is their checksum. False: they could not be written. */
bool cot__store_write(cot__store *s, uint64_t at, const void *data, size_t bytes, uint64_t *sum);
/* Reads them back. False: they could not be read, or are not what was written. */
bool cot__store_read(cot__store *s, uint64_t at, void *data, size_t bytes, uint64_t sum);

/* The same for a whole extent, by the store's thread: begins, and returns at once. Until it is
 * finished nobody may write `data`, or look at what is read. False: it was not begun, because the
 * thread has enough to do, or there is none. */
bool cot__extent_write_behind(cot__extent *p, const void *data);
bool cot__extent_read_ahead(cot__extent *p, void *data);
/* Waits for it. False: it has failed. Without an errand: true. */
bool cot__extent_finish(cot__extent *p);
/* Has the thread nothing to do? */
bool cot__store_is_idle(const cot__store *s);

#endif
