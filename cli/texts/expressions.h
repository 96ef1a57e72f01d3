/* expressions.h: the language of expressions on one page, for `cotangent help expressions`. */
#ifndef COT_CLI_EXPRESSIONS_H
#define COT_CLI_EXPRESSIONS_H

#include <stdbool.h>
#include <stdio.h>

/* What may stand behind name= on the command line, a line each. */
void values_help(FILE *out);
/* The whole page. False when memory is short. */
bool expressions_help(FILE *out, int width, bool colour);

#endif
