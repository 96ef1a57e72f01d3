/* See cot_common.h. */
#include "cot_common.h"

#include <stdlib.h>

struct ab_cot *ab_cot_create(const struct ab_instance *in, size_t vars, size_t numbers, struct ab_error *error) {
    struct ab_cot *s = calloc(1, sizeof *s);
    if (!s) {
        ab_fail(error, "not enough memory");
        return NULL;
    }
    s->in = in;
    s->tape = cot_tape_create(NULL);
    s->vars = calloc(vars + 1, sizeof *s->vars);
    s->vars_count = vars;
    s->numbers = calloc(numbers + 1, sizeof *s->numbers);
    s->scratch_bytes = vars * sizeof *s->vars + numbers * sizeof *s->numbers;
    if (!s->tape || !s->vars || !s->numbers) {
        ab_fail(error, "not enough memory for a tape and %zu bytes of scratch", s->scratch_bytes);
        ab_cot_close(s);
        return NULL;
    }
    s->start = cot_tape_mark(s->tape);
    return s;
}

void ab_cot_note_peak(struct ab_cot *s) {
    const size_t bytes = (size_t)cot_tape_bytes(s->tape) + s->scratch_bytes;
    s->peak_bytes = bytes > s->peak_bytes ? bytes : s->peak_bytes;
}

bool ab_cot_finish(struct ab_cot *s, struct ab_error *error) {
    ab_cot_note_peak(s);
    const bool ok = cot_tape_status(s->tape) == COT_OK || ab_fail(error, "%s", cot_tape_message(s->tape));
    cot_tape_rewind(s->tape, s->start);
    return ok;
}

size_t ab_cot_peak_bytes(const void *state) { return ((const struct ab_cot *)state)->peak_bytes; }

void ab_cot_close(void *state) {
    struct ab_cot *s = state;
    cot_tape_destroy(s->tape);
    free(s->vars);
    free(s->numbers);
    free(s);
}
