/* The table of tables: every style of differentiation that is compiled in. With
 * ADBENCH_WITHOUT_LIBRARY only derivatives by hand are, and no cot_*.c file is needed. */
#include "problems.h"

#include <string.h>

static const struct ab_method *const tables[] = {
    ab_methods_by_hand,
#ifndef ADBENCH_WITHOUT_LIBRARY
    ab_methods_scalar,
    ab_methods_fused,
    ab_methods_tensor,
    ab_methods_tensor_hand,
    ab_methods_sparse,
    ab_methods_compiled,
    ab_methods_compiled_hand,
#endif
};

const struct ab_method *ab_method_find(enum ab_kind kind, const char *style) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct ab_method *m = tables[t]; m->style; m++)
            if (m->kind == kind && strcmp(m->style, style) == 0)
                return m;
    return NULL;
}
