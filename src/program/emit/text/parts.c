/* parts.c: see parts.h. The text comes from our own files, through the preprocessor: a part begins
 * at the start of a line, and ends with the line on which its last brace or semicolon stands. */
#include "program/emit/text/parts.h"

#include <string.h>

/* ---- cutting --------------------------------------------------------------------------------- */

typedef struct cutter {
    int  depth;      /* of parentheses, brackets and braces */
    bool list, body; /* a parenthesis, a brace at depth 0 has come */
    bool assigned, named;
    int  word_line, word_at, word_length; /* the last word at depth 0 */
} cutter;

/* Takes one line. True: the part ends on it. */
static bool cut_line(cutter *c, cot__part *part, int line, const char *const *lines) {
    const char *text    = lines[line];
    bool        is_type = strncmp(lines[part->first], "typedef", 7) == 0;
    for (int i = 0; text[i]; i++) {
        if (cot__is_word(text[i])) {
            int start = i;
            while (cot__is_word(text[i + 1])) i++;
            if (c->depth == 0) c->word_line = line, c->word_at = start, c->word_length = i - start + 1;
            continue;
        }
        bool opens  = text[i] == '(' || text[i] == '{' || text[i] == '[';
        bool closes = text[i] == ')' || text[i] == '}' || text[i] == ']';
        if (c->depth == 0 && !c->named && !is_type && (opens || text[i] == '=' || text[i] == ';'))
            c->named = true, part->name_line = c->word_line, part->name_at = c->word_at,
            part->name_length = c->word_length;
        if (c->depth == 0) c->list |= text[i] == '(', c->assigned |= text[i] == '=';
        c->body |= c->depth == 0 && text[i] == '{' && c->list && !c->assigned && !is_type;
        c->depth += opens - closes;
        bool ends = c->depth == 0 && (text[i] == ';' || (text[i] == '}' && c->body));
        if (ends && is_type)
            part->name_line = c->word_line, part->name_at = c->word_at, part->name_length = c->word_length;
        if (ends) return true;
    }
    return false;
}

static bool add(cot__parts *x, const cot__part *part) {
    if (x->count == x->room) {
        int   room = x->room ? 2 * x->room : 256;
        void *more = cot__resize(x->al, x->part, (size_t)x->room * sizeof *part, (size_t)room * sizeof *part);
        if (!more) return false;
        x->part = more;
        x->room = room;
    }
    x->part[x->count++] = *part;
    return true;
}

static bool has_name(const cot__parts *x, const cot__part *part, const char *name, int length) {
    return length == part->name_length &&
           memcmp(x->from.line[part->name_line] + part->name_at, name, (size_t)length) == 0;
}

static bool is_named(const cot__parts *x, const cot__part *part, const char *name) {
    return has_name(x, part, name, (int)strlen(name));
}

bool cot__parts_open(cot__parts *x, const cot_allocator *al) {
    bool software = false;
    *x            = (cot__parts){.al = al};
    if (!cot__exported_open(&x->from, al)) return false;
    for (int line = 0; x->from.line[line]; line++) {
        cot__part part = {.first = line, .declared = -1};
        cutter    c    = {0};
        while (!cut_line(&c, &part, line, x->from.line)) line++;
        part.last     = line;
        part.software = software;
        /* print_part declares what must be */
        if (c.list && !c.body && !c.assigned) continue;
        if (is_named(x, &part, "cot_begins_software_fma"))
            software = true;
        else if (is_named(x, &part, "cot_ends_software_fma"))
            software = false;
        else if (!add(x, &part))
            return cot__parts_close(x), false;
    }
    return true;
}

void cot__parts_close(cot__parts *x) {
    cot__free(x->al, x->part, (size_t)x->room * sizeof *x->part);
    cot__exported_close(&x->from);
    *x = (cot__parts){.al = x->al};
}

/* ---- what is needed -------------------------------------------------------------------------- */

cot__part *cot__parts_find(const cot__parts *x, const char *name, int length) {
    for (int k = 0; k < x->count; k++)
        if (has_name(x, &x->part[k], name, length)) return &x->part[k];
    return NULL;
}

void cot__parts_need(cot__parts *x, const char *name) {
    cot__part *part = cot__parts_find(x, name, (int)strlen(name));
    if (part) part->needed = true;
}

static void need_words_of(cot__parts *x, cot__part *part) {
    part->seen = true;
    for (int line = part->first; line <= part->last; line++)
        for (const char *s = x->from.line[line]; *s;) {
            int n = 0;
            while (cot__is_word(s[n])) n++;
            cot__part *other = n && !cot__is_digit(*s) ? cot__parts_find(x, s, n) : NULL;
            if (other) other->needed = true;
            if (other > part && (other->declared < 0 || other->declared > part - x->part))
                other->declared = (int)(part - x->part);
            s += n ? n : 1;
        }
}

static void need_all(cot__parts *x) {
    for (bool more = true; more;) {
        more = false;
        for (int k = x->count - 1; k >= 0; k--)
            if (x->part[k].needed && !x->part[k].seen) need_words_of(x, &x->part[k]), more = true;
    }
}

/* ---- printing -------------------------------------------------------------------------------- */

static bool needs(const cot__parts *x, const char *name) {
    const cot__part *part = cot__parts_find(x, name, (int)strlen(name));
    return part && part->needed;
}

/* A fused multiply-add is an instruction, or the software; both round once. */
static const char *const        fast = "#if defined(__FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__)\n",
                         *const fast_float =
                             "#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__aarch64__)\n";

/* clang takes sqrt(x) for nothing below 0, and so 1 / sqrt(x), which is -inf at -0: it leaves out
 * what would see that. Its own sign, given again, is one that it does not know. */
static void print_root(const cot__parts *x, cot__text *to) {
    if (!needs(x, "cot_sqrt") && !needs(x, "cot_sqrtf")) return;
    cot__put(to, "/* A square root: clang would forget that 1 / sqrt(-0.0) is negative. */\n"
                 "#if !defined(__clang__)\n");
    if (needs(x, "cot_sqrt")) cot__put(to, "#define cot_sqrt sqrt\n");
    if (needs(x, "cot_sqrtf")) cot__put(to, "#define cot_sqrtf sqrtf\n");
    cot__put(to, "#endif\n\n");
}

static void print_choice(const cot__parts *x, cot__text *to) {
    if (!needs(x, "cot_fma") && !needs(x, "cot_fmaf")) return;
    cot__put(
        to, "/* Fused multiply-add: the instruction where there is one, otherwise software that rounds once too. */\n");
    if (needs(x, "cot_fma")) cot__put(to, fast), cot__put(to, "#define cot_fma fma\n#define COT_HAS_FMA 1\n");
    if (needs(x, "cot_fma"))
        cot__put(to, "#else\n#define COT_HAS_FMA 0\n#endif\n");
    else
        cot__put(to, "#define COT_HAS_FMA 1\n");
    if (needs(x, "cot_fmaf")) cot__put(to, fast_float), cot__put(to, "#define cot_fmaf fmaf\n#define COT_HAS_FMAF 1\n");
    if (needs(x, "cot_fmaf"))
        cot__put(to, "#else\n#define COT_HAS_FMAF 0\n#endif\n");
    else
        cot__put(to, "#define COT_HAS_FMAF 1\n");
    cot__put(to, "\n");
}

/* Under which condition a part is compiled; NULL: always. */
static const char *condition(const cot__parts *x, const cot__part *part) {
    if (is_named(x, part, "cot_sqrt") || is_named(x, part, "cot_sqrtf")) return "#if defined(__clang__)\n";
    if (!part->software) return NULL;
    if (is_named(x, part, "cot__sum_to_odd")) return "#if !COT_HAS_FMA || !COT_HAS_FMAF\n";
    bool single = is_named(x, part, "cot__software_fmaf") || is_named(x, part, "cot_fmaf");
    return single ? "#if !COT_HAS_FMAF\n" : "#if !COT_HAS_FMA\n";
}

static void print_static(const cot__parts *x, const cot__part *part, cot__text *to) {
    const char *text = x->from.line[part->first];
    if (strncmp(text, "static", 6) && strncmp(text, "typedef", 7)) cot__put(to, "static ");
}

/* The head of a function stands on one line. */
static void print_declaration(const cot__parts *x, const cot__part *part, cot__text *to) {
    const char *text = x->from.line[part->first];
    print_static(x, part, to);
    cot__putf(to, "%.*s;\n", (int)strcspn(text, "{") - 1, text);
}

static void print_part(const cot__parts *x, const cot__part *part, cot__text *to) {
    print_static(x, part, to);
    for (int line = part->first; line <= part->last; line++) cot__put(to, x->from.line[line]), cot__put(to, "\n");
}

void cot__parts_print(cot__parts *x, cot__text *to) {
    const char *open = NULL;
    need_all(x);
    print_choice(x, to);
    print_root(x, to);
    for (int k = 0; k < x->count; k++) {
        if (!x->part[k].needed) continue;
        const char *now = condition(x, &x->part[k]);
        if (open && open != now) cot__put(to, "#endif\n");
        if (now && open != now) cot__put(to, now);
        open = now;
        for (int later = k + 1; later < x->count; later++)
            if (x->part[later].needed && x->part[later].declared == k) print_declaration(x, &x->part[later], to);
        print_part(x, &x->part[k], to);
    }
    if (open) cot__put(to, "#endif\n");
}
