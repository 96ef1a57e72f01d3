/* replace.h: a file that is put in its place as a whole, or not at all.
 *
 * It is written beside its place, brought to the disk, and renamed. So at any time, also after the
 * machine has lost its power, there is the old file or the new one. */
#ifndef COT_REPLACE_H
#define COT_REPLACE_H

#include "base/base.h"

#include <stdio.h>

/* Writes the whole content to the file; false, with errno, if that fails. */
typedef bool cot__fill_file(FILE *file, void *content);
/* Is told the name of the unfinished file before that exists, and NULL when the file is in its
 * place or gone. */
typedef void cot__guard_file(char *name);

/* Puts a file of so many bytes at `path`. Symbolic links are followed and stay, also a link to a
 * file that does not exist yet. The file keeps the permissions of the one that it replaces. A
 * directory is never replaced (EISDIR), nor is a file that may not be written. A device or a pipe
 * is written to directly. False, with errno, if it fails. `guard` may be NULL. */
bool cot__file_replace(const cot_allocator *al, const char *path, uint64_t bytes, cot__fill_file *fill, void *content,
                       cot__guard_file *guard);
/* Fills the file and closes it, which writes too. Brings it to the disk if `sync`. */
bool cot__file_fill(FILE *file, cot__fill_file *fill, void *content, bool sync);

#endif
