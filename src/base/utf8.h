/* utf8.h: checks texts that come from outside: is a byte part of a character, and may a terminal
 * show it? */
#ifndef COT_UTF8_H
#define COT_UTF8_H

#include <stddef.h>

/* The number of bytes of the UTF-8 character at the beginning of s, with n bytes left. 0 if there
 * is none (a stray byte, an overlong form, a surrogate). */
size_t cot__utf8(const char *s, size_t n);
/* The same, but also 0 for characters that a terminal obeys instead of showing: controls (C0, DEL,
 * C1), line separators, changes of direction. */
size_t cot__utf8_shown(const char *s, size_t n);

#endif
