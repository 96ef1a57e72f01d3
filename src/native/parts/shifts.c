/* shifts.c: see shifts.h. What is wanted of a member is asked from the last one to the first: what
 * leaves the group at shift 0, and of operands whatever their readers read. */
#include "native/parts/shifts.h"
#include "rules/structural_ids.h"

/* ---- the group ------------------------------------------------------------------------------- */

bool cot__is_shifted(const cot__choice *c, const cot__group *g) {
    if (g->spans) return true;
    for (uint32_t k = g->first; k < g->end; k++)
        if (c->kind[k] == COT__AS_LOOP && cot__is_patch(c->p, k)) return true;
    return false;
}

/* Is it written to memory, because somebody else reads it? */
static bool is_stored(const cot__choice *c, uint32_t k) {
    return c->kind[k] == COT__AS_LOOP && !c->plan.fusion.inside[c->p->operation[k].result];
}

/* The range that a patch changes. */
typedef struct range { int64_t first, end; } range;
static range range_of(const cot__choice *c, uint32_t k) {
    cot__view u = cot__value_view(c->p, cot__operation_operand(c->p, k)[1]);
    int64_t   first = cot__range_at(c->p, k);
    return (range){first, first + cot__view_size(&u)};
}

bool cot__piece_is_patched(const cot__choice *c, const cot__piece *piece, uint32_t k, int64_t shift) {
    range r = range_of(c, k);
    return piece->from + shift >= r.first && piece->to + shift <= r.end;
}

/* ---- what a piece needs ---------------------------------------------------------------------- */

/* `all`: whichever elements a patch changes, as if it had changed and left all of them. */
typedef struct search {
    const cot__choice *c;
    const cot__group  *g;
    cot__piece        *piece;
    bool               all;
} search;

static bool need(cot__piece *p, uint32_t k, int64_t shift) {
    for (int i = 0; i < p->count; i++)
        if (p->line[i].operation == k && p->line[i].shift == shift) return true;
    if (p->count == COT__SHIFTED_LINES) return false;
    p->line[p->count++] = (cot__shifted_line){k, shift};
    return true;
}

/* Operand i of operation k; what is not made here is read from memory. */
static bool need_operand(const search *s, uint32_t k, int i, int64_t shift) {
    const cot__choice *c = s->c;
    uint32_t           v = cot__operation_operand(c->p, k)[i], root = v == COT__NO_VALUE ? v : c->plan.root[v];
    if (v == COT__NO_VALUE || cot__value_origin(c->p, root) != COT__FROM_OPERATION) return true;
    uint32_t maker = cot__value_maker(c->p, root);
    int64_t  place = v == root ? 0 : c->plan.place[v] / cot__dtype_size(cot__value_view(c->p, v).dtype);
    return maker < s->g->first || maker >= s->g->end || need(s->piece, maker, shift + place);
}

static bool need_of_patch(const search *s, uint32_t k, int64_t shift) {
    bool patched = cot__piece_is_patched(s->c, s->piece, k, shift);
    bool replaced = patched && s->c->p->operation[k].op == OP_update_slice;
    if ((s->all || !replaced) && !need_operand(s, k, 0, shift)) return false;
    return (!s->all && !patched) || need_operand(s, k, 1, shift - range_of(s->c, k).first);
}

static bool need_operands(const search *s, uint32_t k, int64_t shift) {
    if (cot__is_patch(s->c->p, k)) return need_of_patch(s, k, shift);
    for (int i = 0; i < cot__operation_operands(s->c->p, k); i++)
        if (!need_operand(s, k, i, shift)) return false;
    return true;
}

/* All shifts of operation k are known: readers come after it. */
static bool need_line(const search *s, uint32_t k) {
    bool leaves = is_stored(s->c, k) && (s->all || s->piece->to <= cot__result_size(s->c->p, k));
    if (s->c->kind[k] == COT__AS_FOLD) return need_operand(s, k, 0, 0);
    if (leaves && !need(s->piece, k, 0)) return false;
    for (int i = 0; i < s->piece->count; i++)
        if (s->piece->line[i].operation == k && !need_operands(s, k, s->piece->line[i].shift)) return false;
    return true;
}

static bool need_all(const search *s) {
    for (uint32_t k = s->g->end; k-- > s->g->first;)
        if (!need_line(s, k)) return false;
    return true;
}

/* In the order of the operations. */
static void sort(cot__piece *p) {
    for (int i = 1; i < p->count; i++) {
        cot__shifted_line line = p->line[i];
        int               at = i;
        for (; at > 0 && p->line[at - 1].operation > line.operation; at--) p->line[at] = p->line[at - 1];
        p->line[at] = line;
    }
}

/* Does each line make elements that its member has? */
static bool is_within(const cot__choice *c, const cot__piece *p) {
    for (int i = 0; i < p->count; i++) {
        int64_t shift = p->line[i].shift;
        if (p->from + shift < 0 || p->to + shift > cot__result_size(c->p, p->line[i].operation)) return false;
    }
    return true;
}

bool cot__find_piece(const cot__choice *c, const cot__group *g, const cot__loop_cuts *cuts, int i, cot__piece *piece) {
    search s = {c, g, piece, false};
    piece->from = cuts->cut[i];
    piece->to = cuts->cut[i + 1];
    piece->count = 0;
    if (!need_all(&s)) return false;
    sort(piece);
    return is_within(c, piece);
}

/* ---- where it is cut ------------------------------------------------------------------------- */

static bool cut_at(cot__loop_cuts *p, int64_t at) {
    int i = p->count;
    while (p->cut[i] > at && i > 0) i--;
    if (at <= 0 || p->cut[i] == at || at >= p->cut[p->count]) return true;
    if (p->count == COT__MOST_PIECES) return false;
    for (int j = ++p->count; j > i + 1; j--) p->cut[j] = p->cut[j - 1];
    p->cut[i + 1] = at;
    return true;
}

static bool cut_for(cot__loop_cuts *p, const cot__choice *c, const cot__shifted_line *line) {
    uint32_t k = line->operation;
    if (is_stored(c, k) && !cut_at(p, cot__result_size(c->p, k))) return false;
    if (!cot__is_patch(c->p, k)) return true;
    range r = range_of(c, k);
    return cut_at(p, r.first - line->shift) && cut_at(p, r.end - line->shift);
}

/* Blocks of a fold are those of the loop. */
static bool has_size(const cot__choice *c, const cot__group *g, uint32_t k) {
    if (c->kind[k] != COT__AS_FOLD) return true;
    cot__view x = cot__value_view(c->p, cot__operation_operand(c->p, k)[0]);
    return cot__view_size(&x) == g->size;
}

bool cot__find_cuts(const cot__choice *c, const cot__group *g, cot__loop_cuts *cuts) {
    cot__piece piece = {.to = g->size};
    search     s = {c, g, &piece, true};
    *cuts = (cot__loop_cuts){.count = 1, .cut = {0, g->size}};
    for (uint32_t k = g->first; k < g->end; k++)
        if (!has_size(c, g, k)) return false;
    if (!need_all(&s)) return false;
    for (int i = 0; i < piece.count; i++)
        if (!cut_for(cuts, c, &piece.line[i])) return false;
    for (int i = 0; i < cuts->count; i++)
        if (!cot__find_piece(c, g, cuts, i, &piece)) return false;
    return true;
}
