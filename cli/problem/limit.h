/* limit.h: --limit as a number of bytes. */
#ifndef COT_CLI_LIMIT_H
#define COT_CLI_LIMIT_H

#include "io/failure.h"

/* 0 where it was not given (NULL). */
bool read_limit(const char *text, double *limit, failure *f);

#endif
