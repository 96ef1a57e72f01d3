/* emit_gradients.h: functions with their gradients, many to a program, that are exported. */
#ifndef COT_EMIT_GRADIENTS_H
#define COT_EMIT_GRADIENTS_H

#include "program/emit_functions.h"
#include "samples/sample_programs.h"

/* Can its program, with the gradient, be exported? */
static inline bool can_be_exported(const test_function *f, cot_dtype dtype) {
    cot_tape     *t = cot_tape_create(NULL);
    char          text[8];
    cot_var       xs[TEST_MAX_INPUTS];
    emit_refusal  why = {""};
    cot__caller   caller = {"compile", &why, emit_hear, NULL, NULL};
    cot__text     nothing = cot__text_buffer(text, sizeof text);
    inputs_of(t, f, dtype, xs);
    cot__program *p = compiled(t, with_gradient, (void *)(uintptr_t)f, f->n, xs, 2 + f->n);
    bool ok = p && cot__program_emit_c(p, &(cot__emit_options){.name = "f"}, NULL, &nothing, NULL, &caller);
    if (getenv("COT_TEST_TELL") && !ok) print_message("%s: %s\n", f->name, p ? why.text : cot_tape_message(t));
    cot__program_release(p);
    cot_tape_destroy(t);
    return ok;
}

static inline int all_of_group(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    group *g = user;
    (void)n, (void)m;
    for (int k = 0; k < g->count; k++) {
        with_gradient(g->f[k].n, xs, 2 + g->f[k].n, ys, &g->f[k]);
        xs += g->f[k].n;
        ys += 2 + g->f[k].n;
    }
    return 0;
}

static inline void add_group(emitted *e, group *g, cot_dtype dtype) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[MOST_INPUTS];
    for (int k = 0, at = 0; k < g->count; at += g->f[k++].n) inputs_of(t, &g->f[k], dtype, xs + at);
    if (g->count)
        TEST_CHECK(add_function(e, t, g->f[0].name, all_of_group, g, g->inputs, xs, 2 * g->count + g->inputs),
                   "%s and what follows are refused together: %s", g->f[0].name, cot_tape_message(t));
    g->count = g->inputs = 0;
    cot_tape_destroy(t);
}

#endif
