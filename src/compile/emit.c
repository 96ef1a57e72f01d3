/* emit.c: programs as C (program/emit/emit.h), from their source form. */
#include "compile/compile.h"

#include "base/number.h"
#include "program/emit/emit.h"

/* Where the sentence goes. */
typedef struct hearer {
    cot_status status;
    char      *why;
    size_t     size;
} hearer;

static void hear(const cot__caller *c, cot_status code, const char *text) {
    hearer *h = c->to;
    h->status = code;
    if (h->why && h->size) cot__format(h->why, h->size, "%s", text);
}

cot_status cot_program_emit_c(const cot_program *p, const cot_emit_options *options, FILE *source, FILE *header,
                              char *why, size_t size) {
    const cot_emit_options o = options ? *options : (cot_emit_options){0};
    const cot__emit_options names = {.name     = o.name,
                                     .header   = o.header,
                                     .title    = o.title,
                                     .inputs   = o.inputs,
                                     .outputs  = o.outputs,
                                     .patterns = o.patterns,
                                     .libm     = o.libm};
    hearer      h = {COT_OK, why, size};
    cot__caller caller = {"compile", &h, hear, NULL, NULL};
    if (why && size) why[0] = 0;
    if (cot_program_status(p) != COT_OK) {
        hear(&caller, cot_program_status(p), cot_program_message(p));
        return h.status;
    }
    cot__text to_source = cot__text_file(source), to_header = cot__text_file(header);
    cot__program_emit_c(p->source, &names, &p->al, header ? &to_header : NULL, source ? &to_source : NULL, &caller);
    return h.status;
}
