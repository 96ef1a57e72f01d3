/* tape_file.h: tapes in files. docs/file-format.md tells the format: the tape as a program, in the
 * words of a program file, and behind it what a program has not: the numbers of leaves, what was
 * recorded without a gradient, names, and source lines.
 *
 * Loading records the program again. Then the tape is written once more, to a writer that compares
 * its bytes with the file: so what the file holds and the tape has not is found without a check of
 * its own. */
#ifndef COT_COMPILE_TAPE_FILE_H
#define COT_COMPILE_TAPE_FILE_H

#include "program/file/head.h"
#include "program/file/parts.h"
#include "tape/tape.h"

#define COT__TAPE_MAGIC "COTTAPE\n"
enum { COT__TAPE_FORMAT = 1 };

/* A tape that can be written. A node whose value follows from numbers that were written over in
 * place is saved with its value, if that is there; else it is gone in the loaded tape, too. */
typedef struct cot__tape_file {
    cot_tape     *t;
    cot__program *p;     /* its nodes as values */
    uint32_t     *value; /* of each node */
    uint8_t      *lost;  /* of each node: can it not be computed again from leaves and constants? */
    uint32_t      nodes; /* how many there are */
    char         *elements; /* room for the elements of any value */
    size_t        room;
    uint64_t      bytes; /* of the whole file */
} cot__tape_file;

/* Of these nodes, n of them, the values are wanted back. False after telling the caller; to be
 * closed in any case. */
bool cot__tape_file_open(cot__tape_file *f, cot_tape *t, int n, const uint32_t *vars, const cot__caller *caller);
/* False: not all bytes were taken, or there was no memory. */
bool cot__tape_file_write(cot__tape_file *f, cot__write_bytes *write, void *to, const cot__caller *caller);
void cot__tape_file_close(cot__tape_file *f);

/* Records what the bytes of a file say on an empty tape, whose vars then are those that were
 * wanted back. False after an error on the tape. */
bool cot__tape_file_record(cot_tape *t, const unsigned char *bytes, size_t size, int n, cot_var *vars);

extern const cot__file_kind cot__tape_file_kind;

#endif
