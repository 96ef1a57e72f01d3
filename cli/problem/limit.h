/* limit.h: --limit and --memory as numbers of bytes. */
#ifndef COT_CLI_LIMIT_H
#define COT_CLI_LIMIT_H

#include "io/failure.h"

/* 0 where it was not given (NULL). */
bool read_limit(const char *text, double *limit, failure *f);

/* --memory: bytes, or a part of what a step takes without a limit. */
typedef struct memory_wish {
    int64_t bytes; /* 0: it is a part, or was not given */
    double  part;  /* above 0, at most 1; 0: it is in bytes, or was not given */
} memory_wish;
bool read_memory(const char *text, memory_wish *wish, failure *f);

#endif
