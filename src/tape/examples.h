/* examples.h: the values that a function is compiled on stand for any others, so what depends on
 * them is recorded and not computed: their storages are unready. Who looks at elements all the same
 * (a function of the user's) finds 1 for floats, which most operations take, and 0 for integers,
 * which is a position wherever there is one. Values without axes hold these numbers. */
#ifndef COT_EXAMPLES_H
#define COT_EXAMPLES_H

#include "tape/tape.h"

/* Makes an example of a result that is open, in place of computing it. */
void cot__result_is_example(const cot_tape *t, cot__result *r);
/* The same of a storage that is new and for elements of this dtype alone. */
void cot__storage_is_example(cot__storage *s, cot_dtype d);
/* Writes the elements of a storage that has none. */
void cot__example_ready(cot__storage *s);

static inline bool cot__is_example(const cot_tape *t, uint32_t i) {
    const cot__node *n = i == COT__NONE ? NULL : &t->nodes[i];
    return n && cot__is_tensor(n) && n->value.tensor->storage->example;
}
/* Is one of the operands an example whose elements nobody has looked at? */
static inline bool cot__has_examples(const cot_tape *t, int n, const uint32_t *args) {
    bool has = false;
    for (int k = 0; t->mode.compiling && !has && k < n; k++) has = cot__is_example(t, args[k]);
    return has;
}

#endif
