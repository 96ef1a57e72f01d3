/* saved.c: programs in files: what a program was made from is saved, and optimised again when it is
 * loaded. */
#include "compile/compile.h"

#include "program/file/file.h"

#include <stdio.h>
#include <string.h>

cot_status cot_program_save(const cot_program *p, const char *path, char *why, size_t room) {
    cot__heard  h = {COT_OK, ""};
    cot__caller caller = cot__heard_by(&h, "program_save");
    if (cot_program_status(p) != COT_OK) caller.fail(&caller, cot_program_status(p), cot_program_message(p));
    else if (!path) cot__refuse(&caller, COT_VALUE, "the path is NULL");
    else cot__program_save_to_file(p->source, path, &caller);
    if (why && room) snprintf(why, room, "%s", h.message);
    return h.status;
}

/* Which file a sentence is about, where it does not say so. */
static void name_file(cot__heard *h, const char *path) {
    size_t n = strlen(h->message);
    if (!strstr(h->message, path)) snprintf(h->message + n, sizeof h->message - n, " (in the file %s)", path);
}

cot_program *cot_program_load(const char *path, const cot_compile_options *options) {
    cot_compile_options defaults = {0};
    cot__heard          h = {COT_OK, ""};
    cot__caller         caller = cot__heard_by(&h, "program_load");
    if (!options) options = &defaults;
    bool                legal = path && !options->verify;
    cot__program       *source = legal ? cot__program_load_from_file(path, &options->allocator, &caller) : NULL;
    if (source) {
        cot_program *made = cot__program_object(source, options, false);
        if (!made || !cot__options_are_legal(made, options)) return made;
        cot__program_donate(made, options);
        cot__program_limit(made, options);
        return made;
    }
    if (!path) cot__refuse(&caller, COT_VALUE, "the path is NULL");
    else if (!legal) cot__refuse(&caller, COT_VALUE, "verify needs the function, which a file does not hold");
    else name_file(&h, path);
    cot_program *p = cot__program_empty(&options->allocator);
    if (!p) return NULL;
    p->status = h.status;
    memcpy(p->message, h.message, sizeof h.message);
    return p;
}
