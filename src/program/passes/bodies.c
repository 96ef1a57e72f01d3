/* bodies.c: bodies of operations are made smaller, each as a program of its own. */
#include "program/passes/rewrite.h"

enum { MOST_BODIES = 8 };

static void optimise_operation(cot__rewrite *r, uint32_t k) {
    cot__pass_options        o = *(const cot__pass_options *)r->edit->state;
    cot__program            *body[MOST_BODIES] = {NULL};
    cot__type                asked;
    cot__append              a = cot__rewrite_operation(r, k, &asked);
    bool                     ok = a.bodies <= MOST_BODIES, changes = false;
    o.within = true;
    for (int i = 0; ok && i < a.bodies; i++) {
        body[i] = cot__optimise(a.body[i], &o);
        ok = body[i];
        changes |= body[i] != a.body[i];
    }
    if (ok && changes) a.body = body, r->changes++;
    r->to.failed |= !ok;
    if (ok) cot__rewrite_put(r, k, &a);
    for (int i = 0; i < MOST_BODIES; i++) cot__program_release(body[i]);
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    if (cot__operation_bodies(r->from, k)) optimise_operation(r, k);
    else cot__rewrite_keep(r, k);
}

/* Bodies nest no deeper than COT__PROGRAM_DEPTH, so this may call itself through cot__optimise. */
cot__program *cot__pass_bodies(const cot__program *p, const cot__pass_options *o) {
    cot__edit edit = {.state = (void *)(uintptr_t)o, .operation = edit_operation};
    return p->bodies ? cot__rewrite_run(p, o, &edit) : cot__program_share(p);
}
