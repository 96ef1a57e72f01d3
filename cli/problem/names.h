/* names.h: names on the command line and in messages. */
#ifndef COT_CLI_NAMES_H
#define COT_CLI_NAMES_H

#include <stddef.h>

/* The length of the name before the = of name=value; 0 if there is none. */
size_t name_length(const char *text);

/* Names as messages list them: "x, y and z". */
const char *list_names(int n, const char *const *names, char *buf, size_t size);

#endif
