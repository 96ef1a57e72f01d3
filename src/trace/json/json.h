/* json.h: a JSON writer that streams. It writes commas by itself; the caller opens and closes
 * brackets. It needs no memory and cannot fail (ferror of the file says whether writing did).
 *
 *     cot__json j = cot__json_to(stdout);
 *     cot__json_open(&j, '{');
 *     cot__json_key(&j, "value");
 *     cot__json_number(&j, 2.5);
 *     cot__json_close(&j, '}');
 *
 * May call: base, tape. Must not touch: derivatives. */
#ifndef COT_JSON_H
#define COT_JSON_H

#include "backend/backend.h"

#include <stdio.h>

typedef struct cot__json {
    FILE *out;
    bool  comma; /* the next value needs a comma */
} cot__json;

cot__json cot__json_to(FILE *out);
void      cot__json_open(cot__json *j, char bracket);  /* '{' or '[' */
void      cot__json_close(cot__json *j, char bracket); /* '}' or ']' */
void      cot__json_key(cot__json *j, const char *key);
/* Writes an escaped string. Bytes that are not UTF-8 become U+FFFD. NULL is written as null. */
void cot__json_string(cot__json *j, const char *s);
void cot__json_string_n(cot__json *j, const char *s, size_t n);
/* The shortest text that reads back to the same double (float); "nan", "inf", "-inf" as strings. */
void cot__json_number(cot__json *j, double v);
void cot__json_float(cot__json *j, float v);
void cot__json_integer(cot__json *j, int64_t v);
void cot__json_bool(cot__json *j, bool v);
void cot__json_null(cot__json *j);

/* The same text outside of JSON. buf has 32 bytes. "-0.0" keeps its sign; "nan", "inf", "-inf". */
const char *cot__shortest(double v, char *buf);
const char *cot__shortest_float(float v, char *buf);
/* One element as JSON writes it, by its dtype, without quotes around nan and inf. */
const char *cot__element_text(const void *p, cot_dtype dtype, char *buf);

/* Writes any view of memory of the host: a number, true or false, or nested lists. */
void cot__json_view(cot__json *j, const cot__view *v);
/* Writes a view with at most COT__JSON_ALL elements in full. A larger one becomes
 * {"elided":true,"count","min","max","mean","grid"}: extremes and mean of the finite elements
 * ("nan" when there are none), and block means of the value seen as a matrix (rows: all axes but
 * the last), at most COT__JSON_GRID a side. A block with an element that is not finite is "nan". */
enum { COT__JSON_ALL = 4096, COT__JSON_GRID = 64 };
void cot__json_tensor(cot__json *j, const cot__view *v);

#endif
