/* trouble.h: what is wrong with a file or with its data, as one sentence for people.
 *
 * What the folder does: it reads and writes the files that tensors come in (.safetensors, .npy,
 * .npz, IDX, tables of text, each of them compressed by gzip too) and believes nothing of what
 * stands in them. This header holds what goes wrong; listing.h is what the readers give; save.h
 * writes.
 *
 * Functions that can fail take a trouble and return false. The first one stays, so callers simply
 * pass it on. The sentence names the file, and the byte or line in it where that is known.
 *
 * May call: libc, base. Must not touch: operations, tapes, parameters. */
#ifndef COT_DATA_TROUBLE_H
#define COT_DATA_TROUBLE_H

#include "base/base.h"

typedef struct cot__trouble {
    cot_status status;        /* COT_OK: nothing went wrong */
    bool       about_values;  /* the file is legal, but a number in it is missing or not finite */
    char       message[1200]; /* with COT_OK: "", or what is worth telling though all is well */
} cot__trouble;

/* All of these return false. */
bool cot__trouble_set(cot__trouble *t, cot_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The file is at fault: COT_VALUE. */
bool cot__trouble_file(cot__trouble *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A file that cannot be read or written (what: "read" or "write"). `error` is the errno. */
bool cot__trouble_errno(cot__trouble *t, const char *what, const char *path, int error);
bool cot__trouble_memory(cot__trouble *t);
/* The same, if it is known how many bytes were needed. */
bool cot__trouble_memory_for(cot__trouble *t, uint64_t bytes);

/* Hands it to a caller outside: "[op] sentence" in `why`, which may be NULL, and the status. */
cot_status cot__trouble_tell(const cot__trouble *t, const char *op, char *why, size_t room);

#endif
