/* names.c: names of the function, of inputs and of outputs as C takes them, all different. Names of
 * our own have an underscore behind their first letter, t_12, so that nobody else has them. */
#include "program/emit/writer.h"
#include "base/number.h"
#include "program/emit/text/c_words.h"

#include <string.h>

/* What ends in _x is nobody's, so a name that has got it keeps it as it is. */
static bool is_taken(const char *name) {
    size_t n = strlen(name);
    if (n > 2 && strcmp(name + n - 2, "_x") == 0) return false;
    if (cot__is_word_of_c(name)) return true;
    /* t_12 is ours; so is cot_… */
    if (strncmp(name, "cot_", 4) == 0 || strncmp(name, "COT_", 4) == 0) return true;
    return name[0] && name[1] == '_' && (cot__is_digit(name[2]) || name[2] == 0);
}

void cot__emit_name(const char *wanted, char *name, size_t size) {
    size_t n = 0;
    if (!cot__is_alpha(wanted[0]) && n + 1 < size) name[n++] = 'x';
    for (; *wanted && n + 2 < size; wanted++) {
        if (cot__is_alpha(*wanted) || cot__is_digit(*wanted))
            name[n++] = *wanted;
        else if (n > 0 && name[n - 1] != '_')
            name[n++] = '_';
    }
    name[n] = 0;
    if (n > 0 && name[n - 1] == '_' && is_taken(name)) n--; /* no two underscores */
    if (is_taken(name)) memcpy(name + (n + 3 > size ? size - 3 : n), "_x", 3);
}

/* Does the text of functions have the word on a line at its margin, before a parenthesis, a bracket
 * or the end of a declaration? Then something there may be called so. */
static bool is_exported(const cot__exported *from, const char *name) {
    size_t n = strlen(name);
    for (int line = 0; from->line[line]; line++) {
        const char *text = from->line[line];
        if (text[0] == ' ') continue;
        for (const char *s = strstr(text, name); s; s = strstr(s + 1, name))
            if ((s == text || !cot__is_word(s[-1])) && (s[n] == '(' || s[n] == '[' || strcmp(s + n, ";") == 0))
                return true;
    }
    return false;
}

static void name_function(const cot__exported *from, const char *wanted, char *name, size_t size) {
    cot__emit_name(wanted, name, size - 2);
    if (cot__is_function_of_c(name) || is_exported(from, name)) memcpy(name + strlen(name), "_x", 3);
}

bool cot__emit_function_name(const char *wanted, char *name, size_t size) {
    const cot_allocator usual = {0};
    cot__exported       from;
    if (!cot__exported_open(&from, &usual)) return false;
    name_function(&from, wanted, name, size);
    cot__exported_close(&from);
    return true;
}

static bool is_there(const cot__writer *w, uint32_t before, const char *name) {
    for (uint32_t k = 0; k < before; k++)
        if (strcmp(w->name[k], name) == 0) return true;
    return cot__parts_find(&w->parts, name, (int)strlen(name)) != NULL;
}

/* The name of a parameter, with a number behind it if others have it. */
static void set_name(cot__writer *w, uint32_t at, const char *wanted) {
    char base[COT__NAME_TEXT - 14], numbered[COT__NAME_TEXT];
    cot__emit_name(wanted, base, sizeof base);
    cot__format(w->name[at], COT__NAME_TEXT, "%s", base);
    for (unsigned n = 2; is_there(w, at, w->name[at]); n++) {
        cot__format(numbered, sizeof numbered, "%s_%u", base, n);
        cot__emit_name(numbered, w->name[at], COT__NAME_TEXT); /* t_2 is ours */
    }
}

static void set_list(cot__writer *w, uint32_t from, uint32_t n, const char *const *wanted, char letter) {
    char text[16];
    for (uint32_t k = 0; k < n; k++) {
        cot__format(text, sizeof text, "%c%u", letter, k);
        set_name(w, from + k, wanted && wanted[k] ? wanted[k] : text);
    }
}

bool cot__names_open(cot__writer *w) {
    size_t count = 1 + (size_t)w->p->inputs + w->p->outputs;
    w->name      = cot__alloc(w->al, count * sizeof *w->name);
    if (!w->name)
        return cot__refuse(w->caller, COT_MEMORY, "out of memory: the names of %llu values", (unsigned long long)count);
    w->called = cot__alloc(w->al, (w->p->bodies + 1) * sizeof *w->called);
    if (!w->called)
        return cot__refuse(w->caller, COT_MEMORY, "out of memory: the names of %u bodies", w->p->bodies);
    name_function(&w->parts.from, w->o->name && w->o->name[0] ? w->o->name : "f", w->name[0], COT__NAME_TEXT);
    set_list(w, 1, w->p->inputs, w->o->inputs, 'x');
    set_list(w, 1 + w->p->inputs, w->p->outputs, w->o->outputs, 'y');
    return true;
}

void cot__names_close(cot__writer *w) {
    cot__free(w->al, w->name, (1 + (size_t)w->p->inputs + w->p->outputs) * sizeof *w->name);
    cot__free(w->al, w->called, (w->p->bodies + 1) * sizeof *w->called);
}

const char *cot__function_name(const cot__writer *w) { return w->name[0]; }
const char *cot__input_name(const cot__writer *w, uint32_t k) { return w->name[1 + k]; }
const char *cot__output_name(const cot__writer *w, uint32_t k) { return w->name[1 + w->p->inputs + k]; }

void cot__put_name(cot__writer *w, uint32_t value) {
    const cot__layout *l     = &w->layout;
    cot__origin        from  = cot__value_origin(w->p, value);
    uint32_t           maker = cot__value_maker(w->p, value);
    cot__home          home  = (cot__home)l->home[value];
    if (from == COT__FROM_CONSTANT && home == COT__AT_NAME)
        cot__emit_literal(w->to, cot__value_view(w->p, value).dtype, cot__constant_elements(w->p, maker));
    else if (w->number)
        cot__putf(w->to, home == COT__AT_NAME || home == COT__AT_LOOP ? "v_%u" : "t_%u", w->number[value]);
    else if (from == COT__FROM_INPUT)
        cot__put(w->to, cot__input_name(w, maker));
    else if (from == COT__FROM_CONSTANT)
        cot__putf(w->to, "c_%u", value);
    else if (home == COT__AT_OUTPUT)
        cot__put(w->to, cot__output_name(w, (uint32_t)l->place[value]));
    else
        cot__putf(w->to, home == COT__AT_WORKSPACE ? "t_%u" : "v_%u", value);
}
