/* utf8.h: characters of texts that come from outside: are they any, and may a terminal see them? */
#ifndef COT_UTF8_H
#define COT_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character that s starts with, n bytes being left; 0 where there is none (a
 * stray byte, an overlong form, a surrogate). */
size_t cot__utf8(const char *s, size_t n);
/* The same, and 0 for characters that give orders instead of being shown: controls (C0, DEL, C1),
 * line separators, changes of direction. */
size_t cot__utf8_shown(const char *s, size_t n);

#endif
