/* system.h: everything that depends on the system around the command: terminals, signals, time, and
 * files that are written in full or not at all. A build without terminals and signals (WebAssembly)
 * changes only this file.
 *
 * May call: libc, base. Must not touch: tapes; expressions. */
#ifndef COT_CLI_SYSTEM_H
#define COT_CLI_SYSTEM_H

#include <stddef.h>
#include <stdio.h>

#include "io/failure.h"

/* Makes a closed pipe an error of the write, and lets an interrupted command leave no half-written
 * file behind. */
void system_start(void);

/* From now on the first SIGINT (Ctrl-C) or SIGTERM only sets a flag, so that a long computation can
 * end in order and keep what it has; the second one ends the command at once, as ever. */
void system_stop_gently(void);
/* Has that signal come? And how a command that it has ended in order is to end: 128 and the number
 * of the signal, as shells have it; 130 after Ctrl-C. */
bool system_stop_asked(void);
int  system_stop_status(void);

bool   system_is_terminal(FILE *file);
/* true for a terminal, unless NO_COLOR or TERM=dumb forbid it */
bool   system_colour(FILE *file);
/* true for a terminal that can clear a line and write it again */
bool   system_redraws(FILE *file);
int    system_width(FILE *file);  /* columns; 80 if unknown */
double system_seconds(void);      /* of a clock that only goes forward */
double system_date(void);         /* seconds since 1970 */
void   system_sleep(double seconds);
double system_peak_memory(void);  /* bytes that the process has held at most; 0 if unknown */

/* Writes a file in full or not at all, and says so on stderr: it is written beside its place, then
 * renamed. Symbolic links are followed and stay, also a link to a file that does not exist yet. A
 * directory is never replaced, nor is a file that may not be written. A device, a pipe or the
 * standard output is written to directly. */
bool system_put_file(const char *path, const char *bytes, size_t n, failure *f);

/* Makes a folder if it is not there, and sees that files can be put into it. */
bool system_make_folder(const char *path, failure *f);

/* Writes all bytes. False when the other end of a pipe is closed (no failure is set, because nobody
 * reads) or the write failed. */
bool system_write(FILE *file, const char *bytes, size_t n, failure *f);

/* Writes text from files and arguments, which may hold control characters for a terminal: '?' is
 * written for each of their bytes. New lines stay. */
void system_put_safely(FILE *file, const char *text);

#endif
