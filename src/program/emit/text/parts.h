/* parts.h: the functions that an exported file may hold (exported.h), cut into parts, each one
 * function, type or table, of which those are printed that somebody needs. */
#ifndef COT_EMIT_PARTS_H
#define COT_EMIT_PARTS_H

#include "base/base.h"
#include "base/text.h"
#include "program/emit/text/exported.h"

/* Letters of C, whatever the locale says. */
static inline bool cot__is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool cot__is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static inline bool cot__is_word(char c) { return cot__is_alpha(c) || cot__is_digit(c) || c == '_'; }
static inline char cot__upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c; }

typedef struct cot__part {
    int  first, last; /* lines */
    int  name_line, name_at, name_length;
    bool needed, seen; /* seen: what it needs is noted */
    bool software;     /* only where there is no fused multiply-add */
    int  declared;     /* the part, if one before it calls it, before which it is declared; -1 */
} cot__part;

typedef struct cot__parts {
    const cot_allocator *al;
    cot__exported        from;
    cot__part           *part;
    int                  count, room;
} cot__parts;

/* False: out of memory. */
bool cot__parts_open(cot__parts *x, const cot_allocator *al);
void cot__parts_close(cot__parts *x);

/* The part of this name, or NULL. */
cot__part *cot__parts_find(const cot__parts *x, const char *name, int length);
/* Notes that the part is needed, if there is one of this name. */
void cot__parts_need(cot__parts *x, const char *name);
/* Prints what is needed, and what that needs. */
void cot__parts_print(cot__parts *x, cot__text *to);

#endif
