/* print.c: the tape as a let-list. One line a node:
 *
 *     %2 = mul %0 %1          f64           2.35619     "area"  model.c:12
 */
#include "tape/show.h"

void cot_tape_print(const cot_tape *t, FILE *out) {
    if (!out) return;
    cot__text x = cot__text_file(out);
    for (uint32_t i = 0; t && i < t->count; i++) {
        cot__show_node(&x, t, i);
        cot__show_origin(&x, t, i);
        cot__put(&x, "\n");
    }
    if (cot_tape_status(t) == COT_OK) return;
    cot__put(&x, "error: ");
    cot__put(&x, cot_tape_message(t));
    cot__put(&x, "\n");
}
