/* number.h: numbers as text and back, with a decimal point whatever locale the program or the
 * thread has chosen.
 *
 * The C library's printf and strtod write and read the decimal point of LC_NUMERIC: a program
 * that called setlocale would get "2,5", and its expressions would end at a point. Everything
 * here asks no locale and sets none, so any number of threads may use it. All of the library and
 * the command formats with these functions wherever a floating-point number may stand among the
 * arguments. */
#ifndef COT_NUMBER_H
#define COT_NUMBER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Like vsnprintf, snprintf and fprintf. Of floating-point conversions there are a e f g and their
 * capitals, for double only, without the flag 0. A single number may have up to 500 characters, a
 * line of cot__write up to 2047. */
int  cot__vformat(char *out, size_t size, const char *format, va_list args);
int  cot__format(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
void cot__write(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like strtod, with the same bits. `end` may be NULL. */
double cot__read_number(const char *text, char **end);
/* Like strtof. */
float cot__read_float(const char *text);
/* Bytes as people write them: "1.5 GiB", a number that is not negative, then nothing, B, KiB, MiB,
 * GiB or TiB. -1: it is something else, less than a byte and not 0, or 2^63 or more. */
double cot__read_bytes(const char *text);

#endif
