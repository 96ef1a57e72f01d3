/* json_scan.h: reads JSON of a known form, value by value. The caller asks for the value that it
 * expects, and anything else is a failure.
 *
 *     if (!json_scan_open(x, '[')) return false;
 *     while (json_scan_next(x, ']')) { … one value … }
 *     return !x->what;
 *
 * There is no recursion here, so deep nesting costs nothing. */
#ifndef COT_CLI_JSON_SCAN_H
#define COT_CLI_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct json_scan {
    const char *start, *at, *end;
    const char *what;   /* the error at `at`; NULL: none */
    bool        fresh;  /* nothing was read in this list yet, so there is no comma */
    bool        memory; /* memory was short */
} json_scan;

/* Both return false. The first error stays. */
bool json_scan_fails(json_scan *x, const char *what);
bool json_scan_memory(json_scan *x);

bool json_scan_open(json_scan *x, char bracket);
/* Is there another element? Reads the comma before it, or the closing bracket. False at the end and
 * on failure (x->what). */
bool json_scan_next(json_scan *x, char bracket);
/* Reads a string: malloced, UTF-8 without NUL; NULL on failure. A key includes its colon. */
char *json_scan_string(json_scan *x);
char *json_scan_key(json_scan *x);
/* A whole number from 0 to 2^64-1, without fraction or exponent. */
bool json_scan_natural(json_scan *x, uint64_t *out);
/* True if only spaces remain up to the end. */
bool json_scan_end(json_scan *x);

#endif
