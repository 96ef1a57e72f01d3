/* viewer.h: the page that `trace --html` writes around a trace. */
#ifndef COT_CLI_VIEWER_H
#define COT_CLI_VIEWER_H

#include <stdio.h>

/* One HTML text in which the mark stands once, where the JSON of a trace goes: it is a JavaScript
 * expression, null without a trace. */
#define VIEWER_MARK "/*TRACE*/null"
const char *viewer_template(void);

/* The page with the trace in it. A "</" in the JSON is written "<\/", and the < of "<!" as \u003c,
 * or they could end the script around it. */
void viewer_write(FILE *out, const char *json, size_t n);

#endif
