/* called.c: what values are called where people read: by their own names if they have one, else v₁,
 * v₂, … for operations, x₁, … for leaves, c₁, … for constants and p₁, … for parameters of bodies,
 * each counted in the order of the tape; a constant of one number is that number. Ids (%3) are only
 * for those who look for a place on the tape. */
#include "tape/show.h"

#include "rules/structural_ids.h"

#include <string.h>

/* Greek letters and subscripts are fine: every byte beyond ASCII is. */
static bool in_word(char c) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || c == '_' || (unsigned char)c >= 0x80;
}

/* The name, if a sentence or formula can use it: one word. */
static const char *own_name(const cot_tape *t, uint32_t node) {
    const char *name = cot__name_of(t, node);
    size_t      n = 0;
    while (name && in_word(name[n])) n++;
    return n > 0 && n < COT__CALLED_TEXT && !name[n] ? name : NULL;
}

bool cot__is_called_by_name(const cot_tape *t, uint32_t node) { return own_name(t, node) != NULL; }

/* Is it called by its one number? */
static bool is_plain(const cot_tape *t, uint32_t node) {
    const cot__node *n = &t->nodes[node];
    return n->op == OP_constant && !cot__has_axes(n) && !cot__in_body(n) && !cot__is_stale(n);
}

enum { OPERATION, LEAF, CONSTANT, PARAMETER, UNCOUNTED };

static int kind_of(const cot_tape *t, uint32_t node) {
    const cot__node *n = &t->nodes[node];
    if (n->flags & COT__NAMED && own_name(t, node)) return UNCOUNTED;
    if (cot__op_of(n->op)->kind != KIND_SOURCE) return OPERATION;
    if (n->op == OP_parameter) return PARAMETER;
    return n->op == OP_leaf ? LEAF : is_plain(t, node) ? UNCOUNTED : CONSTANT;
}

/* They are counted before every STEP-th node, so that they take little of a limit. */
enum { STEP = 32 };
static size_t bytes_of(uint32_t nodes) { return ((size_t)nodes / STEP + 1) * UNCOUNTED * sizeof(uint32_t); }

/* A tape is never const where it lies, and whoever reads its text does not see the counts. */
void cot__calling_open(const cot_tape *t) {
    cot_tape *own = (cot_tape *)(uintptr_t)t;
    uint32_t  before[UNCOUNTED + 1] = {0};
    if (own->called.depth++) return;
    own->called.count = t->count;
    own->called.number = cot__list_resize(own, NULL, 0, bytes_of(t->count));
    for (uint32_t i = 0; t->called.number && i < t->count; i++) {
        cot__lists_walk(t, i);
        if (i % STEP == 0) memcpy(t->called.number + i / STEP * UNCOUNTED, before, UNCOUNTED * sizeof *before);
        before[kind_of(t, i)]++;
    }
}

void cot__calling_close(const cot_tape *t) {
    cot_tape *own = (cot_tape *)(uintptr_t)t;
    if (--own->called.depth) return;
    if (t->called.number) cot__list_free(own, t->called.number, bytes_of(t->called.count));
    own->called.number = NULL;
}

static uint32_t number_of(const cot_tape *t, uint32_t node, int kind) {
    bool     counted = t->called.number && node < t->called.count;
    uint32_t from = counted ? node / STEP * STEP : 0;
    uint32_t n = counted ? t->called.number[from / STEP * UNCOUNTED + (uint32_t)kind] : 0;
    for (uint32_t i = from; i < node; i++) n += kind_of(t, i) == kind;
    return n + 1;
}

const char *cot__called(const cot_tape *t, uint32_t node, char *buf) {
    static const char *const letter[] = {"v", "x", "c", "p"};
    const char              *name = own_name(t, node);
    cot__text                x = cot__text_buffer(buf, COT__CALLED_TEXT);
    char                     digits[12];
    int                      kind = kind_of(t, node);
    if (name) {
        cot__put(&x, name);
    } else if (kind == UNCOUNTED) {
        cot__view v = cot__look(t, node);
        cot__show_element(&x, t->backend, &v, 0);
    } else {
        cot__put(&x, letter[kind]);
        snprintf(digits, sizeof digits, "%u", number_of(t, node, kind));
        for (const char *d = digits; *d; d++) cot__put(&x, (char[]){'\xe2', '\x82', (char)('\x80' + (*d - '0')), 0});
    }
    return buf;
}

/* The mark goes over the first character, which may have several bytes: "x̄1", "v̄₁". */
const char *cot__with_bar(const char *name, char *buf, size_t size) {
    return cot__with_mark(name, COT__BAR, buf, size);
}

const char *cot__with_mark(const char *name, const char *mark, char *buf, size_t size) {
    cot__text x = cot__text_buffer(buf, size);
    char      first[8] = "";
    size_t    n = *name ? 1 : 0;
    while (n < sizeof first - 1 && ((unsigned char)name[n] & 0xc0) == 0x80) n++;
    memcpy(first, name, n);
    cot__put(&x, first);
    cot__put(&x, mark);
    cot__put(&x, name + n);
    return buf;
}
