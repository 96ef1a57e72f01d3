/* examples.c: see examples.h. */
#include "tape/examples.h"

static double example_of(cot_dtype d) { return cot__dtype_is_float(d); }

void cot__example_ready(cot__storage *s) {
    cot_dtype     d = (cot_dtype)(s->example - 1);
    const int64_t one = 1, n = (int64_t)s->bytes / cot__dtype_size(d);
    s->example = 0;
    s->unready = false;
    s->backend->fill(&(cot__view){s->data, d, 1, &n, &one}, example_of(d));
}

void cot__storage_is_example(cot__storage *s, cot_dtype d) {
    s->example = (uint8_t)(1 + d);
    s->unready = true;
}

void cot__result_is_example(const cot_tape *t, cot__result *r) {
    if (!r->tensor) {
        t->backend->fill(&r->view, example_of(r->view.dtype));
        return;
    }
    cot__storage_is_example(r->tensor->storage, r->view.dtype);
}
