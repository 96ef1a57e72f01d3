/* viewer.h: the page that `trace --html` writes around a trace. */
#ifndef COT_CLI_VIEWER_H
#define COT_CLI_VIEWER_H

#include <stdio.h>

/* The HTML page. VIEWER_MARK stands in it once, in place of the JSON of a trace. The mark is a
 * JavaScript expression: null, for a page without a trace. */
#define VIEWER_MARK "/*TRACE*/null"
const char *viewer_template(void);

/* Writes the page with a trace. In the JSON "</" is written as "<\/", and the < of "<!" as \u003c.
 * Otherwise they could end the script around it. */
void viewer_write(FILE *out, const char *json, size_t n);

#endif
