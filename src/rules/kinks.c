/* kinks.c: two meanings of the conditions in kinks.def: a function on numbers, and a tree to
 * print. */
#include "base/math/elementary.h"
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "rules/kinks.h"

#define T double
#define F(name) cot__##name
#define S(name) name
#define N(name) name
#include "rules/kernel_vocabulary.h"
#define KINK(id, op, condition, ...)                                                                                   \
    static bool at_##id(double X, double Y, double W) {                                                                \
        (void)X, (void)Y, (void)W;                                                                                     \
        return (condition) != 0;                                                                                       \
    }
#define KINK_OF(...)
#include "rules/kinks.def"
#include "rules/words_undef.h"
#include "rules/words_tree.h"

const cot__kink cot__kinks[KINK_count] = {
#define KINK(id, op, condition, convention, x, y, w, dx, dy, dw)                                                       \
    {OP_##op, AS_TREE(condition), convention, at_##id, {x, y, w}, {dx, dy, dw}},
#define KINK_OF(...)
#include "rules/kinks.def"
};

const cot__array_kink cot__array_kinks[ARRAY_KINK_count] = {
#define KINK(...)
#define KINK_OF(id, op, condition, convention, ...) {OP_##op, condition, convention},
#include "rules/kinks.def"
};
