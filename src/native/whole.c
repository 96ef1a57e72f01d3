/* whole.c: the text of all parts: the functions of the library that they call, then each part that
 * no earlier one is equal to, then the table. Which functions are called is known when all parts
 * are printed, so these go to memory first. */
#define _GNU_SOURCE /* open_memstream */
#include "native/once.h"
#include "native/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- what stands before them ----------------------------------------------------------------- */

/* Vectors come of a loop only if nothing in it is called, and if selects stay selects, which gcc
 * makes branches of where that spares an expression. (As an option clang would refuse it. Without
 * threaded jumps, too, loops with sines are 2 % faster, but other code up to 13 % slower.) */
static const char *const before =
    "#include <float.h>\n#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
    "#define COT_BEFORE(a, b, n) ((uintptr_t)((a) + (n)) <= (uintptr_t)(b))\n"
    "#define COT_APART(a, b, n) (COT_BEFORE(a, b, n) || COT_BEFORE(b, a, n))\n"
    "#define inline inline __attribute__((always_inline))\n"
    "#if defined(__clang__)\n"
    "#define COT_INDEPENDENT _Pragma(\"clang loop vectorize(assume_safety)\")\n"
    "#else\n"
    "#pragma GCC optimize(\"no-tree-pre\")\n"
    "#define COT_INDEPENDENT _Pragma(\"GCC ivdep\")\n"
    "#endif\n\n";

static void put_before(cot__writer *w) {
    cot__put(w->to, before);
    if (w->levels) cot__putf(w->to, "#define COT_LEVELS %d\n\n", w->levels);
    cot__parts_print(&w->parts, w->to);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Where values are, as program/emit sees it. */
static bool open_layout(cot__layout *l, const cot__choice *c) {
    size_t operations = c->p->operations, values = c->p->values;
    *l = (cot__layout){.p = c->p, .plan = c->plan};
    l->block = cot__alloc(&c->al, operations * sizeof *l->block);
    l->wanted = cot__alloc(&c->al, values);
    l->home = cot__alloc(&c->al, values);
    l->scratch = cot__alloc(&c->al, operations * sizeof *l->scratch);
    if (!l->block || !l->wanted || !l->home || !l->scratch) return false;
    memset(l->wanted, 1, values);
    for (uint32_t k = 0; k < operations; k++) l->block[k] = cot__loop_of(c, k).first + 1, l->scratch[k] = -1;
    for (uint32_t v = 0; v < values; v++) {
        cot__origin from = cot__value_origin(c->p, v);
        l->home[v] = cot__value_view(c->p, v).ndim == 0 ? COT__AT_NAME
                     : from == COT__FROM_INPUT          ? COT__AT_INPUT
                     : from == COT__FROM_CONSTANT       ? COT__AT_CONSTANT
                     : c->plan.fusion.inside[v]         ? COT__AT_LOOP
                                                        : COT__AT_WORKSPACE;
    }
    return true;
}

static void close_layout(cot__layout *l, const cot__choice *c) {
    cot__free(&c->al, l->block, c->p->operations * sizeof *l->block);
    cot__free(&c->al, l->wanted, c->p->values);
    cot__free(&c->al, l->home, c->p->values);
    cot__free(&c->al, l->scratch, c->p->operations * sizeof *l->scratch);
}

/* Values are told apart by their places among those of the part, so that parts that do the same to
 * other values have one text. */
static void number_values(const cot__choice *c, uint32_t part, uint32_t *number, uint8_t *pointed) {
    const cot__run_part *q = &c->part[part];
    uint32_t             next = q->values;
    for (uint32_t k = q->first; k < q->end; k++)
        for (uint32_t r = 0; r < c->p->operation[k].results; r++) number[c->p->operation[k].result + r] = next++;
    for (uint32_t i = 0; i < q->values; i++) {
        uint32_t v = c->value[q->value + i];
        if (v & (COT__WORKSPACE_OF | COT__ELEMENT_OF)) continue;
        number[v] = i;
        pointed[v] = c->plan.root[v] != v;
    }
}

/* Views of the part are not those of the next one. */
static void forget_views(const cot__choice *c, uint32_t part, uint8_t *pointed) {
    for (uint32_t i = 0; i < c->part[part].values; i++) {
        uint32_t v = c->value[c->part[part].value + i];
        if (!(v & (COT__WORKSPACE_OF | COT__ELEMENT_OF))) pointed[v] = 0;
    }
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* What is needed to print them: numbers of values, and what was printed so far. */
typedef struct printing {
    cot__writer        w;
    const cot__choice *c;
    uint32_t          *number;
    uint8_t           *pointed;
    cot__once          once;
    FILE              *parts;
    uint32_t           lines;
} printing;

static bool no_memory(const printing *x) {
    return cot__refuse(x->w.caller, COT_MEMORY, "out of memory: the text of %u parts", x->c->parts);
}

static void keep_part(printing *x, uint32_t part, const char *text, size_t bytes) {
    fprintf(x->parts, "\n#undef " COT__NATIVE_PART "\n#undef " COT__NATIVE_STRONG "\n#define " COT__NATIVE_PART
            " part_%u\n#define " COT__NATIVE_STRONG " strong_%u\n", part, part);
    fwrite(text, 1, bytes, x->parts);
    x->lines += x->c->part[part].lines;
}

static bool print_part(printing *x, uint32_t part) {
    char  *text = NULL;
    size_t bytes = 0;
    FILE  *file = open_memstream(&text, &bytes);
    if (!file) return no_memory(x);
    cot__text to = cot__text_file(file);
    x->w.to = &to;
    number_values(x->c, part, x->number, x->pointed);
    bool ok = cot__native_put_part(&x->w, x->c, part);
    forget_views(x->c, part, x->pointed);
    if (fclose(file) && ok) ok = no_memory(x);
    if (ok && cot__once_is_first(&x->once, part, text, bytes)) keep_part(x, part, text, bytes);
    free(text);
    return ok;
}

static bool print_parts(printing *x) {
    for (uint32_t part = 0; part < x->c->parts; part++)
        if (!print_part(x, part)) return false;
    return true;
}

static void put_table(printing *x) {
    cot__put(x->w.to, "\n__attribute__((visibility(\"default\")))\n"
                      "void (*const " COT__NATIVE_TABLE "[])(void *const *, int64_t, int64_t) = {\n");
    for (uint32_t part = 0; part < x->c->parts; part++) cot__putf(x->w.to, "    part_%u,\n", x->once.first[part]);
    cot__put(x->w.to, "};\n");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool print(printing *x, cot__text *to) {
    char  *text = NULL;
    size_t bytes = 0;
    x->parts = open_memstream(&text, &bytes);
    if (!x->parts) return no_memory(x);
    bool ok = print_parts(x);
    if (fclose(x->parts) && ok) ok = no_memory(x);
    if (ok) {
        x->w.to = to;
        put_before(&x->w);
        cot__put(to, text);
        put_table(x);
    }
    free(text);
    return ok;
}

bool cot__native_write(const cot__choice *c, cot__text *to, uint32_t *lines, const cot__caller *caller) {
    const cot__emit_options none = {0};
    printing                x = {.w = {.p = c->p, .o = &none, .al = &c->al, .caller = caller}, .c = c};
    x.w.number = x.number = cot__alloc(&c->al, c->p->values * sizeof *x.number);
    x.w.pointed = x.pointed = cot__alloc(&c->al, c->p->values);
    if (x.pointed) memset(x.pointed, 0, c->p->values);
    bool ok = x.number && x.pointed && open_layout(&x.w.layout, c) && cot__parts_open(&x.w.parts, &c->al);
    bool once = ok && cot__once_open(&x.once, c->parts, &c->al);
    ok = once ? print(&x, to) : no_memory(&x);
    *lines = x.lines;
    if (once) cot__once_close(&x.once);
    cot__parts_close(&x.w.parts);
    close_layout(&x.w.layout, c);
    cot__free(&c->al, x.number, c->p->values * sizeof *x.number);
    cot__free(&c->al, x.pointed, c->p->values);
    return ok;
}
