/* c_words.h: words that C, C++ and the standard headers have taken, so that nothing in an exported
 * file or its header may be called so. Calls nothing. */
#ifndef COT_EMIT_C_WORDS_H
#define COT_EMIT_C_WORDS_H

#include "base/base.h"

/* A keyword, a type, a macro that takes no arguments, or what exported files call: no parameter and
 * no function may be called so. */
bool cot__is_word_of_c(const char *name);
/* What the standard headers declare besides: a parameter may be called so, a function may not. */
bool cot__is_function_of_c(const char *name);

#endif
