/* object.c: programs as objects: counting, what they say of themselves, and printing. */
#include "compile/compile.h"

#include "base/text.h"
#include "compile/idle.h"
#include "compile/variants.h"

#include <stdio.h>

/* ---- counting -------------------------------------------------------------------------------- */

cot_program *cot__program_counted(cot_program *p) {
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void cot_program_destroy(cot_program *p) {
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1) return;
    cot__variants_close(p);
    cot__idle_close(p);
    cot__lock_close(&p->making);
    cot__lock_close(&p->lock);
    cot__native_close(p->native);
    cot__program_release(p->resident);
    cot__folder_free(&p->al, p->spill);
    if (p->donated) cot__free(&p->al, p->donated, p->source->inputs * sizeof *p->donated);
    cot__program_release(p->source);
    cot__program_release(p->runs);
    cot_allocator al = p->al;
    cot__free(&al, p, sizeof *p);
}

/* ---- what it says ---------------------------------------------------------------------------- */

cot_status  cot_program_status(const cot_program *p) { return p ? p->status : COT_MEMORY; }
const char *cot_program_message(const cot_program *p) {
    return p ? p->message : "the program is NULL: cot_compile found no memory";
}

int cot_program_inputs(const cot_program *p) { return p && p->source ? (int)p->source->inputs : 0; }
int cot_program_outputs(const cot_program *p) { return p && p->source ? (int)p->source->outputs : 0; }

static cot_type type_of(const cot__program *p, const uint32_t *list, int n, int k) {
    if (k < 0 || k >= n) return (cot_type){COT_F64, {0, {0}}};
    cot__view v = cot__value_view(p, list[k]);
    cot_type  type = {v.dtype, {v.ndim, {0}}};
    for (int i = 0; i < v.ndim; i++) type.shape.dim[i] = v.shape[i];
    return type;
}

cot_type cot_program_input_type(const cot_program *p, int k) {
    return type_of(p ? p->source : NULL, p && p->source ? p->source->input : NULL, cot_program_inputs(p), k);
}
cot_type cot_program_output_type(const cot_program *p, int k) {
    return type_of(p ? p->source : NULL, p && p->source ? p->source->output : NULL, cot_program_outputs(p), k);
}

void cot_program_print(const cot_program *p, FILE *out) {
    if (!out) return;
    if (!p || p->status != COT_OK) {
        fprintf(out, "%s\n", cot_program_message(p));
        return;
    }
    cot__text text = cot__text_file(out);
    cot__program_print(p->runs, &text);
    if (p->wants_native) cot__putf(&text, "native: %s\n", cot_program_native_message(p));
}

/* ---- native code ----------------------------------------------------------------------------- */

cot_native_state cot_program_native(const cot_program *p, bool wait) {
    cot__native *n = p ? p->native : NULL;
    switch (cot__native_look(n, wait)) {
    case COT__NATIVE_COMPILING: return COT_NATIVE_COMPILING;
    case COT__NATIVE_LOADED:
    case COT__NATIVE_READY: return COT_NATIVE_READY;
    case COT__NATIVE_DROPPED: return COT_NATIVE_DROPPED;
    default: return COT_NATIVE_OFF;
    }
}

const char *cot_program_native_message(const cot_program *p) { return cot__native_message(p ? p->native : NULL); }

/* ---- errors without a place ------------------------------------------------------------------ */

static void hear(const cot__caller *c, cot_status status, const char *text) {
    cot__heard *h = c->to;
    if (h->status != COT_OK) return;
    h->status = status;
    snprintf(h->message, sizeof h->message, "%s", text);
}
static void ignore(const cot__caller *c, const char *text) { (void)c, (void)text; }

cot__caller cot__heard_by(cot__heard *h, const char *name) { return (cot__caller){name, h, hear, ignore, NULL}; }
