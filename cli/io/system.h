/* system.h: everything that depends on the system around the command: terminals, signals, time,
 * files put in place at once. A build without terminals and signals (WebAssembly) changes this one
 * file.
 *
 * May call: libc, base. Must not touch: tapes; expressions. */
#ifndef COT_CLI_SYSTEM_H
#define COT_CLI_SYSTEM_H

#include <stddef.h>
#include <stdio.h>

#include "io/failure.h"

/* A closed pipe becomes an error of the write, and an interrupted command leaves no half-written
 * file behind. */
void system_start(void);

bool   system_is_terminal(FILE *file);
bool   system_colour(FILE *file); /* a terminal, and neither NO_COLOR nor TERM=dumb say no */
int    system_width(FILE *file);  /* columns; 80 when nobody knows */
double system_seconds(void);      /* of a clock that only goes forward */

/* Puts a file there and says so on stderr, whole or not at all: written beside its place, then
 * renamed. Symbolic links are followed and stay, also to a file that is not there yet. A
 * directory is never replaced, nor a file without the right to write to it; a device, a pipe or
 * the standard output is written to. */
bool system_put_file(const char *path, const char *bytes, size_t n, failure *f);

/* Writes all of it. False when the other end of a pipe is gone (no failure is set: there is nobody
 * to tell) or the write failed. */
bool system_write(FILE *file, const char *bytes, size_t n, failure *f);

/* Texts from files and arguments may hold characters that a terminal would obey: '?' for each of
 * their bytes. New lines stay. */
void system_put_safely(FILE *file, const char *text);

#endif
