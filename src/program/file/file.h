/* file.h: programs in files, the same bytes on every machine. docs/file-format.md tells the format.
 *
 * What the folder does: saving writes a program and all its bodies; loading builds them again
 * through the builder (program/build.h), which holds them to the grammar, and believes nothing: a
 * file that is cut short, altered, newer or made to deceive is refused with a sentence. No memory
 * is asked for that is not in proportion to the bytes that are there.
 *
 * A program has one file: saving what was loaded gives the same bytes, and a file that would be
 * saved to other bytes is refused. So files can be compared, and a program is what its file says.
 *
 * Operations and dtypes stand in a file by their names: their numbers differ between versions of
 * the library.
 *
 * May call: base, job, rules, program. Must not touch: tapes, nodes, storages. */
#ifndef COT_PROGRAM_FILE_H
#define COT_PROGRAM_FILE_H

#include "base/file/bytes.h"
#include "program/program.h"

/* The newest format that this library reads, and the one that it writes. */
enum { COT__PROGRAM_FORMAT = 1 };

/* These are false, or NULL, after telling the caller why. */

/* A program that is bound to this process, because an operation of it holds an address, cannot be
 * saved. */
bool cot__program_save(const cot__program *p, cot__write_bytes *write, void *to, const cot__caller *caller);
cot__program *cot__program_load(const void *bytes, size_t size, const cot_allocator *al, const cot__caller *caller);

/* Reads up to `room` bytes and returns how many; 0: there are no more; negative: they could not be
 * read. */
typedef int64_t cot__read_bytes(void *from, void *to, size_t room);
/* Loads the program that is read. No more is read than its head says. */
cot__program *cot__program_read(cot__read_bytes *read, void *from, const cot_allocator *al, const cot__caller *caller);

/* The file at `path` is replaced as a whole or stays as it was (base/file/replace.h). */
bool cot__program_save_to_file(const cot__program *p, const char *path, const cot__caller *caller);
cot__program *cot__program_load_from_file(const char *path, const cot_allocator *al, const cot__caller *caller);
/* Says why a file could not be written, by errno; returns false. */
bool cot__cannot_write(const char *path, int error, const cot__caller *caller);

#endif
