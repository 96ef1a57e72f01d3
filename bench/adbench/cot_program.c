/* A program with its arrays, for styles that compile. */
#include "cot_program.h"

#include <stdlib.h>

void ab_close_program(struct ab_program *c) {
    cot_run_destroy(c->run);
    cot_program_destroy(c->program);
    for (int i = 0; c->in && i < c->inputs; i++)
        free(c->in[i]);
    free(c->in);
    free(c->out);
    *c = (struct ab_program){0};
}

bool ab_open_program(struct ab_program *c, cot_fn f, void *user, int n, const cot_type *types, int m,
                     struct ab_error *error) {
    c->inputs = n;
    c->outputs = m;
    c->in = calloc((size_t)n + 1, sizeof *c->in);
    c->out = calloc((size_t)m + 1, sizeof *c->out);
    c->program = cot_compile(f, user, n, types, m, NULL);
    /* COTANGENT_NATIVE=1 asks for it */
    if (cot_program_native(c->program, true) == COT_NATIVE_DROPPED)
        fprintf(stderr, "adbench: no native code: %s\n", cot_program_native_message(c->program));
    c->run = c->program ? cot_run_create(c->program) : NULL;
    if (!c->in || !c->out || !c->run)
        return ab_fail(error, "not enough memory");
    for (int i = 0; i < n; i++) {
        size_t bytes = sizeof(double); /* f64 and i64 alone */
        for (int k = 0; k < types[i].shape.ndim; k++)
            bytes *= (size_t)types[i].shape.dim[k];
        c->bytes += bytes;
        if (!(c->in[i] = malloc(bytes + 1)))
            return ab_fail(error, "not enough memory");
    }
    return cot_run_status(c->run) == COT_OK || ab_fail(error, "%s", cot_run_message(c->run));
}

bool ab_run_program(struct ab_program *c, struct ab_error *error) {
    return cot_program_run(c->run, (const void *const *)c->in, c->out) == COT_OK ||
           ab_fail(error, "%s", cot_run_message(c->run));
}

bool ab_run_in_row(struct ab_program *c, double *outputs, struct ab_error *error) {
    for (int k = 0; k < c->outputs; k++) {
        const cot_shape shape = cot_program_output_type(c->program, k).shape;
        c->out[k] = outputs;
        size_t size = 1;
        for (int i = 0; i < shape.ndim; i++)
            size *= (size_t)shape.dim[i];
        outputs += size;
    }
    return ab_run_program(c, error);
}
