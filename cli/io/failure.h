/* failure.h: an error, kept until the command ends and reports it once: as a sentence on stderr, or
 * as the JSON object of a failure.
 *
 * Functions that can fail take a failure and return false. The first failure stays, so callers
 * simply pass it on. */
#ifndef COT_CLI_FAILURE_H
#define COT_CLI_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

/* How the command ends. */
enum { EXIT_FINE = 0, EXIT_DISAGREES = 1, EXIT_USAGE = 2, EXIT_RUN = 3 };

typedef struct failure {
    int  status;        /* EXIT_FINE: nothing went wrong */
    char code[16];      /* "usage", "expression", "file", "memory", …: for programs */
    int  line, column;  /* in the expression, from 1; column 0: no place in it is to blame */
    char message[1280]; /* for people */
    char caret[512];    /* the line of text and the caret below it, or "" */
    bool said;          /* the message is a sentence of the library's, for people who write C */
} failure;

/* Sets a failure. Always returns false, as do the functions below. */
bool failure_set(failure *f, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with what the library says: "[params_load] fact; rule". */
bool failure_said(failure *f, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A mistake on the command line. */
bool failure_usage(failure *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A file that cannot be read or written (what: "read" or "write"). `error` is the errno. */
bool failure_file(failure *f, const char *what, const char *path, int error);
/* Memory is short. */
bool failure_memory(failure *f);
/* The same, if it is known how many bytes were needed. */
bool failure_memory_for(failure *f, uint64_t bytes);

#endif
