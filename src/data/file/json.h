/* json.h: reads JSON of a known form, value by value. The caller asks for the value that it
 * expects, and anything else is a failure.
 *
 *     if (!cot__scan_open(x, '[')) return false;
 *     while (cot__scan_next(x, ']')) { … one value … }
 *     return !x->what;
 *
 * There is no recursion here, so deep nesting costs nothing. */
#ifndef COT_DATA_JSON_H
#define COT_DATA_JSON_H

#include "data/file/keep.h"

/* Where what is no space begins, or the end. */
static inline const char *cot__after_spaces(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
    return at;
}

typedef struct cot__scan {
    const char *start, *at, *end;
    cot__keep  *pool;   /* what is read lies there */
    const char *what;   /* the error at `at`; NULL: none */
    bool        fresh;  /* nothing was read in this list yet, so there is no comma */
    bool        memory; /* memory was short */
} cot__scan;

/* Both return false. The first error stays. */
bool cot__scan_fails(cot__scan *x, const char *what);
bool cot__scan_memory(cot__scan *x);

bool cot__scan_open(cot__scan *x, char bracket);
/* Is there another element? Reads the comma before it, or the closing bracket. False at the end and
 * on failure (x->what). */
bool cot__scan_next(cot__scan *x, char bracket);
/* Reads a string into the pool: UTF-8 without NUL; NULL on failure. A key includes its colon. */
char *cot__scan_string(cot__scan *x);
char *cot__scan_key(cot__scan *x);
/* A whole number from 0 to 2^64-1, without fraction or exponent. */
bool cot__scan_natural(cot__scan *x, uint64_t *out);
/* True if only spaces remain up to the end. */
bool cot__scan_end(cot__scan *x);

#endif
