/* print.c: the tape as a let-list. One line a node:
 *
 *     area = mul x y          f64           2.35619     model.c:12
 */
#include "tape/show.h"

void cot_tape_print(const cot_tape *t, FILE *out) {
    if (!out) return;
    cot__text x = cot__text_file(out);
    if (t) cot__calling_open(t);
    for (uint32_t i = 0; t && i < t->count; i++) {
        cot__lists_walk(t, i);
        cot__memory_tick((cot_tape *)(uintptr_t)t); /* the values before it may go again */
        cot__show_node(&x, t, i);
        cot__show_origin(&x, t, i);
        cot__put(&x, "\n");
    }
    if (t) cot__calling_close(t);
    if (cot_tape_status(t) == COT_OK) return;
    cot__put(&x, "error: ");
    cot__put(&x, cot_tape_message(t));
    cot__put(&x, "\n");
}
