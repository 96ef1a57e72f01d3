/* The table of tables: every style of differentiation that is compiled in. */
#include "problems.h"

#include <string.h>

static const struct ab_method *const tables[] = {
    ab_methods_by_hand,
};

const struct ab_method *ab_method_find(enum ab_kind kind, const char *style) {
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct ab_method *m = tables[t]; m->style; m++)
            if (m->kind == kind && strcmp(m->style, style) == 0)
                return m;
    return NULL;
}
