/* nearest.h: the name that was meant, for messages about a name that is not there.
 *
 * May call: libc. Must not touch: anything else; it compares texts. */
#ifndef COT_NEAREST_H
#define COT_NEAREST_H

/* The name most like `name` among n names, or NULL when none is near. */
const char *cot__nearest(const char *name, int n, const char *const *among);

#endif
