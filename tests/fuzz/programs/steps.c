/* steps.c: the table of steps, by their first byte. */
#include "program.h"

typedef void (*step)(frame *f, chooser *c);

static const step table[] = {
#define ROW(name) step_##name,
    STEPS(ROW)
#undef ROW
};
static const step common[] = {step_unary, step_binary, step_binary_number, step_reduce};
enum { COUNT = sizeof table / sizeof *table };

/* The first two steps of every program are leaves: without them there would be nothing to compute
 * with. A quarter of the bytes stands for the common steps, the others for all in turn. */
static step step_of(const frame *f, int k, uint8_t byte) {
    if (f->depth == 0 && k < 2) return step_leaf;
    return byte >= 192 ? common[byte % 4] : table[byte % COUNT];
}

int step_run(frame *f, int k) {
    chooser c = chooser_of(f->run->program, k);
    f->now    = k;
    f->next   = k + 1;
    if (c.byte[0] != NO_STEP) step_of(f, k, c.byte[0])(f, &c);
    return f->next;
}

bool step_may_be_scoped(const frame *f, int k) {
    chooser c = chooser_of(f->run->program, k);
    step    s = c.byte[0] == NO_STEP ? NULL : step_of(f, k, c.byte[0]);
    return s != step_leaf && s != step_mark && s != step_rewind;
}
