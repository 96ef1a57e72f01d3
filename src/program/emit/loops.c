/* loops.c: loops over the axes of a view. */
#include "program/emit/writer.h"
#include "base/number.h"

void cot__put_indent(cot__writer *w, int depth) {
    for (int k = 0; k < depth; k++) cot__put(w->to, "    ");
}

int cot__open_loops(cot__writer *w, int depth, char prefix, const cot__view *v, uint32_t mask, cot__at_index *at,
                    cot__loop_names *room) {
    int inside = depth;
    for (int k = 0; k < v->ndim; k++) {
        if (!(mask >> k & 1)) continue;
        at->axis[k] = NULL;
        if (v->shape[k] == 1) continue;
        cot__format(room->text[k], sizeof room->text[k], "%c_%d", prefix, k);
        at->axis[k] = room->text[k];
        cot__put_indent(w, inside++);
        cot__putf(w->to, "for (ptrdiff_t %s = 0; %s < %lld; %s++) {\n", at->axis[k], at->axis[k],
                  (long long)v->shape[k], at->axis[k]);
    }
    return inside;
}

void cot__close_loops(cot__writer *w, int depth, int inside) {
    while (inside > depth) cot__put_indent(w, --inside), cot__put(w->to, "}\n");
}
