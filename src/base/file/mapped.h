/* mapped.h: a growing block of bytes that lies in a file without a name, and is read and written
 * like memory.
 *
 * The system moves its pages between memory and the file. Those that are in the process now leave
 * it when somebody says so, at any time and without a change to what is read: until then they
 * count as memory of the process, like any other. Bytes that were never written are zero.
 *
 * The disk has room for all of it, so that no write ends the process. What the disk loses later
 * nobody finds: there is no checksum, and a page that cannot be read is the end of the process, as
 * it is for the program's own code.
 *
 * In a forked child a block is its own and cannot grow; parts that its parent writes before it has
 * looked at them it sees so. Where the system has no pages for the child, a write there ends it.
 *
 * May call: libc, threads, base. Must not touch: what the bytes mean. */
#ifndef COT_MAPPED_H
#define COT_MAPPED_H

#include "base/base.h"

typedef struct cot__mapped {
    void               *data;
    size_t              bytes;
    struct cot__mapped *next;      /* for the owner: a list of them */
    size_t              counted;   /* for the owner: how much of it counts as memory */
    int                 fd;
    bool                inherited; /* in a forked child: the file is the parent's */
    struct cot__mapped *before, *behind; /* of the process, whoever owns them */
    cot_allocator       al;
} cot__mapped;

/* An empty one in a folder. NULL, with errno set, where there is none. */
cot__mapped *cot__mapped_open(const cot_allocator *al, const char *folder);
void         cot__mapped_close(cot__mapped *m);
/* It has at least `bytes`; `data` may change. False, with errno set: it is as it was. */
bool         cot__mapped_grow(cot__mapped *m, size_t bytes);
/* Its pages leave the process, and come back when somebody reads or writes there. */
void         cot__mapped_leave(cot__mapped *m);

#endif
