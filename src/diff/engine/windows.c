/* windows.c: walks down a tape whose lists lie in files. See scalar_sweep.h. */
#include "diff/engine/sweep.h"

void cot__windows_next(cot__windows *w, int64_t i) {
    cot__lists_leave(w->t);
    w->floor = i - cot__window(w->t);
}

int64_t cot__windows_run(cot__windows *w, cot__reverse_run run, int64_t i, uint32_t *lo) {
    cot__node *nodes = w->t->nodes;
    uint8_t    before = nodes[w->floor].flags;
    nodes[w->floor].flags |= COT__RETAIN;
    i = run(nodes, i, w->floor, w->t->sweep.adjoints.data, lo);
    nodes[w->floor].flags = before;
    return i;
}
