/* nameless.h: files without a name, in a folder of the user's (Linux). Nothing is left of one,
 * however the process ends. */
#ifndef COT_NAMELESS_H
#define COT_NAMELESS_H

#include "base/base.h"

/* The descriptor of an open one; -1, with errno set, where there is none. */
int cot__nameless_open(const char *folder);
/* The disk has room for bytes size … more - 1 of the file, so that no write finds it full. 0, or an
 * errno that says why not. */
int cot__nameless_grow(int fd, uint64_t size, uint64_t more);

#endif
