/* fusion.c: finds the groups of a program: walks that look who views and who reads what, one that
 * joins neighbours, one that looks what stays inside a group. */
#include "program/fusion.h"
#include "backend/backend.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

#define TEXT(name, text) text,
const char *const cot__unfused_text[COT__UNFUSED_COUNT] = {COT__UNFUSED(TEXT)};

typedef cot__group_search search;

/* ---- operations by themselves ---------------------------------------------------------------- */

bool cot__is_fusable(const cot__program *p, uint32_t k) {
    int op = p->operation[k].op;
    if (cot__value_view(p, p->operation[k].result).ndim == 0 || cot__fused_size(p, k) == 0) return false;
    return op < OP_structural || (op == OP_copy && !cot__is_fetch(p, k)) || op == OP_cast;
}

enum { SHORTEST_ROW = 8, LONGEST_ROW = 4096 }; /* elements */
int64_t cot__small_rows = 1 << 19;

static bool is_small(const cot__program *p, uint32_t k) {
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]);
    return cot__view_size(&x) * cot__dtype_size(x.dtype) < cot__small_rows;
}

static int64_t row_of_operand(const cot__program *p, uint32_t k) {
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]);
    int       axes = cot__axes_of_rows(p, k);
    return cot__count(x.ndim - axes, x.shape + axes);
}

int64_t cot__fold_row(const cot__program *p, uint32_t k) {
    if (cot__rows_read(p, k)) return row_of_operand(p, k);
    cot__view z = cot__value_view(p, p->operation[k].result);
    if (cot__view_size(&z) == 1) return 0;
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]);
    return cot__view_size(&x) / cot__view_size(&z);
}

/* Are the reduced axes the last ones, and the rows neither too short nor too long? */
static bool has_rows(const cot__program *p, uint32_t k, const cot__view *x) {
    uint64_t axes = (uint64_t)cot__operation_attr(p, k)->ints[0];
    int      i = x->ndim;
    while (i > 0 && (axes >> (i - 1) & 1)) axes &= ~(UINT64_C(1) << --i);
    return axes == 0 && cot__fold_row(p, k) >= SHORTEST_ROW && cot__fold_row(p, k) <= LONGEST_ROW;
}

int cot__rows_read(const cot__program *p, uint32_t k) {
    int rows = cot__op_of(p->operation[k].op)->rows;
    return rows > 0 ? rows : 0;
}

/* Does it mix one axis, where others mix all from one on? */
static bool mixes_one_axis(int op) { return strncmp(cot__op_of(op)->attrs, "axis:a", 6) == 0; }

/* Why an operation on rows joins no group, whatever stands before it; COT__FUSED: it may. */
static cot__unfused reason_alone(const cot__program *p, uint32_t k) {
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]);
    int       axes = cot__axes_of_rows(p, k);
    if (axes == 0 || (mixes_one_axis(p->operation[k].op) && axes != x.ndim - 1)) return COT__OTHER_AXIS;
    if (is_small(p, k)) return COT__SMALL_ROWS;
    int64_t row = cot__fold_row(p, k);
    return row < SHORTEST_ROW || row > LONGEST_ROW ? COT__ROW_LENGTH : COT__FUSED;
}

bool cot__is_on_rows(const cot__program *p, uint32_t k) {
    return cot__rows_read(p, k) && reason_alone(p, k) == COT__FUSED;
}

int cot__fold_reduction(int op) {
    int fold = cot__op_of(op)->fold;
    return fold > 0 ? fold - 1 : -1;
}

/* Shorter arrays are one block, so there is nothing to gain. All axes go, or the last ones. */
bool cot__is_fold(const cot__program *p, uint32_t k) {
    const cot__operation *o = &p->operation[k];
    int  what = cot__fold_reduction(o->op);
    bool rows_alone = what == COT__LOGSUMEXP || what == COT__NORM2;
    if (what < 0) return false;
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]), z = cot__value_view(p, o->result);
    if (!cot__dtype_is_float(x.dtype) || !cot__dtype_is_float(z.dtype) || cot__view_size(&x) < 4 * COT__BLOCK)
        return false;
    return cot__view_size(&z) == 1 ? !rows_alone : has_rows(p, k, &x);
}

bool cot__is_row_fold(const cot__program *p, uint32_t k) {
    return cot__is_fold(p, k) && cot__fold_row(p, k) > 0 && !is_small(p, k);
}

bool cot__is_along_rows(const cot__program *p, uint32_t k) {
    if (p->operation[k].op != OP_broadcast_to) return false;
    cot__view x = cot__value_view(p, cot__operation_operand(p, k)[0]), z = cot__value_view(p, p->operation[k].result);
    int       i = 0;
    if (x.ndim != z.ndim) return false;
    while (i < x.ndim && x.shape[i] == z.shape[i]) i++;
    while (i < x.ndim && x.shape[i] == 1) i++;
    return i == x.ndim;
}

/* Vectors, and 16 bits, which are rounded when the whole product is there, have no ends. */
bool cot__is_product(const cot__program *p, uint32_t k) {
    if (p->operation[k].op != OP_matmul) return false;
    cot__view z = cot__value_view(p, p->operation[k].result);
    if (z.ndim != 2 || cot__value_view(p, cot__operation_operand(p, k)[0]).ndim != 2) return false;
    return (z.dtype == COT_F64 || z.dtype == COT_F32) && z.shape[0] > 1 && z.shape[1] > 1;
}

int64_t cot__fused_size(const cot__program *p, uint32_t k) {
    cot__view z = cot__value_view(p, cot__is_fold(p, k) ? cot__operation_operand(p, k)[0] : p->operation[k].result);
    return cot__view_size(&z);
}

bool cot__keeps_order(int op) { return op == OP_reshape || op == OP_detach || op == OP_alias; }

bool cot__is_always_view(const cot__program *p, uint32_t k, bool dense) {
    int op = p->operation[k].op;
    if (op < OP_structural || !cot__op_of(op)->view || cot__value_view(p, p->operation[k].result).ndim == 0)
        return false;
    return op != OP_reshape || dense;
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Lies the value row-major? The plan may find views where the search has none: then what they view
 * must lie so. */
static bool lies_in_rows(const search *s, uint32_t v) {
    for (;;) {
        uint32_t base = s->base[v], k = cot__value_maker(s->p, base);
        if (s->straight[v] != COT__WHOLE_IN_ORDER) return false;
        switch (cot__value_origin(s->p, base)) {
        case COT__FROM_INPUT: {
            cot__view x = cot__value_view(s->p, base);
            return !s->inputs || cot__is_contiguous(x.ndim, x.shape, s->inputs[k].stride);
        }
        case COT__FROM_OPERATION: break;
        default: return true;
        }
        if (s->p->operation[k].op < OP_structural || !cot__op_of(s->p->operation[k].op)->view) return true;
        v = cot__operation_operand(s->p, k)[0];
    }
}

/* A view of an input is none here, whose elements lie as they are given. */
static bool is_dense(const search *s, uint32_t v) {
    return cot__value_origin(s->p, s->base[v]) != COT__FROM_INPUT && lies_in_rows(s, v);
}

static bool is_view(const search *s, uint32_t k) {
    uint32_t z = s->p->operation[k].result;
    return s->base[z] != z;
}

/* What a view views. */
static void follow_view(search *s, uint32_t k) {
    uint32_t z = s->p->operation[k].result, x = cot__operation_operand(s->p, k)[0];
    int      op = s->p->operation[k].op;
    /* of what lies in order, and not of one that is repeated */
    bool     ordered = s->straight[x] == COT__WHOLE_IN_ORDER || s->straight[x] == COT__RANGE_IN_ORDER;
    int64_t  first = op == OP_slice && ordered ? cot__range_at(s->p, k) : -1;
    s->base[z] = s->base[x];
    s->straight[z] = cot__keeps_order(op) && s->straight[x] == COT__WHOLE_IN_ORDER ? COT__WHOLE_IN_ORDER
                     : first >= 0                                                   ? COT__RANGE_IN_ORDER
                     : s->straight[x] == COT__WHOLE_IN_ORDER && cot__is_along_rows(s->p, k) ? COT__ALONG_ROWS
                                                                                    : COT__OTHER_WAY;
    s->shift[z] = first + (s->straight[x] == COT__RANGE_IN_ORDER ? s->shift[x] : 0);
}

static void find_views(search *s) {
    for (uint32_t v = 0; v < s->p->values; v++)
        s->base[v] = v, s->straight[v] = COT__WHOLE_IN_ORDER, s->shift[v] = 0;
    for (uint32_t k = 0; k < s->p->operations; k++) {
        bool structural = s->p->operation[k].op >= OP_structural;
        if (structural && cot__operation_operands(s->p, k) == 1 &&
            cot__is_always_view(s->p, k, is_dense(s, cot__operation_operand(s->p, k)[0])))
            follow_view(s, k);
    }
}

static void find_last_readers(search *s) {
    const cot__program *p = s->p;
    for (uint32_t v = 0; v < p->values; v++) s->last_reader[v] = 0;
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        for (int i = 0; i < cot__operation_operands(p, k) && !is_view(s, k); i++)
            if (x[i] != COT__NO_VALUE) s->last_reader[s->base[x[i]]] = k;
    }
    for (uint32_t k = 0; k < p->outputs; k++) s->last_reader[s->base[p->output[k]]] = p->operations;
}

/* ---- joining --------------------------------------------------------------------------------- */

bool cot__is_row_number(const cot__fusion *f, const cot__program *p, uint32_t k) {
    const cot__group *g = &f->group[f->of[k]];
    return g->row && cot__is_fusable(p, k) && cot__fused_size(p, k) != g->size;
}

/* Has the open group made it for each row: a fold, or an operation on what folds have made? */
static bool is_of_rows(const search *s, uint32_t v) {
    uint32_t k = cot__value_maker(s->p, v);
    bool     number = cot__is_fusable(s->p, k) && cot__fused_size(s->p, k) != s->size;
    return cot__is_row_fold(s->p, k) || (s->f->group[s->open].row && number);
}

/* Is it the result of a fold, or of such an operation, or a further one? */
static bool is_folded(const search *s, uint32_t v) {
    uint32_t k = cot__value_maker(s->p, v);
    return cot__is_fold(s->p, k) || is_of_rows(s, v) || s->p->operation[k].result != v;
}

/* May operation k read operand i, which the open group makes? */
static bool may_read(const search *s, uint32_t k, int i) {
    uint32_t v = cot__operation_operand(s->p, k)[i];
    if (is_folded(s, s->base[v])) return s->straight[v] == COT__ALONG_ROWS && is_of_rows(s, s->base[v]);
    if (s->straight[v] == COT__RANGE_IN_ORDER) return !s->alone[k] && cot__shift_is_short(cot__shift_of(s, k, i));
    return s->straight[v] == COT__WHOLE_IN_ORDER;
}

/* Notes whether it does so shifted, or for arrays of another size. */
static cot__unfused reason(const search *s, uint32_t k, bool *shifted) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    bool            reads = false, other = cot__fused_size(s->p, k) != s->size;
    *shifted = false;
    if (s->open == COT__NO_VALUE) return s->alone[k] ? COT__SHIFTED : COT__NOTHING_BEFORE;
    for (int i = 0; i < cot__operation_operands(s->p, k); i++) {
        if (!cot__in_open_group(s, x[i])) continue;
        if (!may_read(s, k, i)) return COT__OTHER_ORDER;
        *shifted |= s->straight[x[i]] == COT__RANGE_IN_ORDER;
        reads = true;
    }
    if (other && !reads) return COT__OTHER_SIZE;
    *shifted |= other;
    if (*shifted && s->f->group[s->open].product) return COT__PART_OF_PRODUCT;
    if (*shifted && s->f->group[s->open].row) return COT__PART_OF_ROWS;
    return s->f->group[s->open].runs >= COT__STAGE_RUNS ? COT__FULL : COT__FUSED;
}

/* Takes the members from operation k on out of the open group again. */
static void cut_group(search *s, uint32_t from) {
    cot__group *g = &s->f->group[s->open];
    g->runs = g->folds = 0;
    for (uint32_t k = g->first; k <= s->last; k++) {
        if (s->f->of[k] != s->open) continue;
        if (k >= from) s->f->of[k] = COT__NO_VALUE;
        else if (cot__is_fold(s->p, k)) g->folds++;
        else g->runs += cot__is_patch(s->p, k) ? COT__PATCH_RUNS : 1;
    }
    while (s->f->of[s->last] != s->open) s->last--;
}

/* Takes the product out of the open group, of which no member reads it. */
static void drop_product(search *s) {
    cot__group *g = &s->f->group[s->open];
    g->product = false;
    s->f->of[g->first] = COT__NO_VALUE;
    s->f->why[g->first] = COT__NOT_ELEMENTWISE;
    while (g->first < s->last && s->f->of[g->first] != s->open) g->first++;
    if (g->runs + g->folds) s->f->why[g->first] = COT__NOTHING_BEFORE;
}

/* A group of one is none. Where shifted reads do not work out, the group ends before the first, and
 * the walk goes on there. */
static void close_group(search *s) {
    if (s->open == COT__NO_VALUE) return;
    cot__group *g = &s->f->group[s->open];
    if (g->product && !s->reads_product) drop_product(s);
    g->size = s->size;
    g->spans = s->shifted != COT__NO_VALUE;
    if (g->spans && !cot__find_spans(s)) {
        s->again = s->shifted;
        s->alone[s->again] = 1;
        cut_group(s, s->again);
        g->spans = false;
        g->size = cot__fused_size(s->p, g->first);
    }
    g->end = s->last + 1;
    if (g->runs + g->folds + g->product < 2) {
        s->f->of[s->last] = COT__NO_VALUE;
        s->f->groups--;
    }
    s->open = COT__NO_VALUE;
}

static bool open_group(search *s, uint32_t k) {
    cot__fusion *f = s->f;
    if (f->groups == f->room) {
        uint32_t room = f->room ? 2 * f->room : 16;
        void    *more = cot__resize(&f->al, f->group, f->room * sizeof *f->group, room * sizeof *f->group);
        if (!more) return false;
        f->group = more;
        f->room = room;
    }
    f->group[f->groups] = (cot__group){.first = k};
    s->open = f->groups++;
    s->size = cot__fused_size(s->p, k);
    s->shifted = COT__NO_VALUE;
    s->reads_product = false;
    return true;
}

/* A product begins a group. */
static bool open_product(search *s, uint32_t k) {
    if (!open_group(s, k)) return false;
    s->f->group[s->open].product = true;
    s->f->of[k] = s->open;
    s->last = k;
    return true;
}

static bool reads_product(const search *s, uint32_t k) {
    const cot__group *g = &s->f->group[s->open];
    const uint32_t   *x = cot__operation_operand(s->p, k);
    for (int i = 0; g->product && i < cot__operation_operands(s->p, k); i++)
        if (x[i] != COT__NO_VALUE && s->base[x[i]] == s->p->operation[g->first].result) return true;
    return false;
}

/* `shifted`: it reads something so, or has another size than those before it. */
static void take_in(search *s, uint32_t k, uint32_t runs, bool shifted) {
    s->f->why[k] = COT__FUSED;
    s->f->of[k] = s->open;
    s->f->group[s->open].runs += runs;
    s->f->group[s->open].folds += runs == 0;
    s->reads_product |= reads_product(s, k);
    s->last = k;
    if (runs && cot__fused_size(s->p, k) > s->size) s->size = cot__fused_size(s->p, k);
    if (shifted && s->shifted == COT__NO_VALUE) s->shifted = k;
}

static bool join(search *s, uint32_t k) {
    bool         shifted;
    cot__unfused why = reason(s, k, &shifted);
    if (why != COT__FUSED) {
        close_group(s);
        if (s->again != COT__NO_VALUE) return true;
        if (!open_group(s, k)) return false;
    }
    take_in(s, k, 1, why == COT__FUSED && shifted);
    s->f->why[k] = (uint8_t)why;
    return true;
}

/* A fold joins the group that makes what it reduces, or none. */
static bool join_fold(search *s, uint32_t k) {
    uint32_t x = cot__operation_operand(s->p, k)[0];
    if (!cot__in_open_group(s, x) || s->straight[x] != COT__WHOLE_IN_ORDER || is_folded(s, s->base[x])) return false;
    cot__group *g = &s->f->group[s->open];
    int64_t     row = cot__fold_row(s->p, k);
    if (g->folds == COT__STAGE_FOLDS || (g->folds && g->row != row)) return false;
    if (row && (s->shifted != COT__NO_VALUE || s->size != cot__fused_size(s->p, k))) return false;
    take_in(s, k, 0, false);
    g->row = row;
    return true;
}

/* Is operation k elementwise on what the open group has made for each row? */
static bool is_on_row_numbers(const search *s, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    bool            some = false;
    if (s->open == COT__NO_VALUE) return false;
    const cot__group *g = &s->f->group[s->open];
    if (!g->row || cot__fused_size(s->p, k) * g->row != s->size || g->folds == COT__STAGE_FOLDS) return false;
    for (int i = 0; i < cot__operation_operands(s->p, k); i++) {
        if (x[i] == COT__NO_VALUE) continue;
        bool made = cot__in_open_group(s, x[i]);
        if (cot__value_view(s->p, x[i]).ndim > 0 && !lies_in_rows(s, x[i])) return false;
        if (made && !is_of_rows(s, s->base[x[i]])) return false;
        some |= made;
    }
    return some;
}

/* Why an operation on rows does not join the group that is open. */
static cot__unfused reason_of_rows(const search *s, uint32_t k) {
    if (s->open == COT__NO_VALUE) return COT__NOTHING_BEFORE;
    const cot__group *g = &s->f->group[s->open];
    const uint32_t   *x = cot__operation_operand(s->p, k);
    if (g->folds && g->row != cot__fold_row(s->p, k)) return COT__OTHER_ROWS;
    if (s->size != cot__fused_size(s->p, k)) return COT__OTHER_SIZE;
    if (s->shifted != COT__NO_VALUE) return COT__PART_OF_ROWS;
    for (int i = 0; i < cot__operation_operands(s->p, k); i++)
        if (cot__in_open_group(s, x[i]) && (i >= cot__rows_read(s->p, k) || !may_read(s, k, i)))
            return COT__OTHER_ORDER;
    return g->folds == COT__STAGE_FOLDS ? COT__FULL : COT__FUSED;
}

/* It joins, or begins a group. */
static bool join_rows(search *s, uint32_t k) {
    cot__unfused why = reason_of_rows(s, k);
    if (why != COT__FUSED) {
        close_group(s);
        if (s->again != COT__NO_VALUE) return true;
        if (!open_group(s, k)) return false;
    }
    take_in(s, k, 0, false);
    s->f->group[s->open].row = cot__fold_row(s->p, k);
    s->f->why[k] = (uint8_t)why;
    return true;
}

/* What an operation on rows reads of other groups must lie so. */
static cot__unfused reason_apart(const search *s, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    for (int i = 0; i < cot__operation_operands(s->p, k); i++)
        if (!lies_in_rows(s, x[i])) return COT__ROWS_APART;
    return reason_alone(s->p, k);
}

/* A patch joins a group that makes one of its operands. */
static bool join_patch(search *s, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    if (s->alone[k] || (!cot__in_open_group(s, x[0]) && !cot__in_open_group(s, x[1]))) return false;
    if (!cot__is_plain_group(&s->f->group[s->open])) return false;
    if (s->f->group[s->open].runs + COT__PATCH_RUNS > COT__STAGE_RUNS) return false;
    for (int i = 0; i < 2; i++)
        if (cot__in_open_group(s, x[i]) && (!may_read(s, k, i) || !cot__shift_is_short(cot__shift_of(s, k, i))))
            return false;
    if (s->straight[x[0]] != COT__WHOLE_IN_ORDER && cot__in_open_group(s, x[0])) return false;
    take_in(s, k, COT__PATCH_RUNS, true);
    return true;
}

static bool look_at(search *s, uint32_t k) {
    s->f->of[k] = COT__NO_VALUE;
    s->f->why[k] = COT__NOT_ELEMENTWISE;
    if (is_view(s, k)) return true;
    if (cot__is_fusable(s->p, k) && is_on_row_numbers(s, k)) return take_in(s, k, 0, false), true;
    if (cot__is_fusable(s->p, k)) return join(s, k);
    if (cot__is_fold(s->p, k) && join_fold(s, k)) return true;
    if (cot__is_patch(s->p, k) && join_patch(s, k)) return true;
    if (cot__rows_read(s->p, k)) {
        s->f->why[k] = (uint8_t)reason_apart(s, k);
        if (s->f->why[k] == COT__FUSED) return join_rows(s, k);
    }
    close_group(s);
    return s->again != COT__NO_VALUE || !cot__is_product(s->p, k) || open_product(s, k);
}

static bool walk(search *s) {
    memset(s->alone, 0, s->p->operations);
    s->again = COT__NO_VALUE;
    for (uint32_t k = 0; k <= s->p->operations; k++) {
        if (k == s->p->operations) close_group(s);
        else if (!look_at(s, k)) return false;
        if (s->again == COT__NO_VALUE) continue;
        k = s->again - 1;
        s->again = COT__NO_VALUE;
    }
    return true;
}

/* ---- what stays inside ----------------------------------------------------------------------- */

static uint32_t group_of(const search *s, uint32_t v) {
    bool made = cot__value_origin(s->p, v) == COT__FROM_OPERATION;
    return made ? s->f->of[cot__value_maker(s->p, v)] : COT__NO_VALUE;
}

/* Values that something else than their group reads do not. */
static void find_readers(search *s) {
    const cot__program *p = s->p;
    uint8_t            *inside = s->f->inside;
    for (uint32_t v = 0; v < p->values; v++) inside[v] = group_of(s, v) != COT__NO_VALUE ? COT__INSIDE : 0;
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        bool number = s->f->of[k] != COT__NO_VALUE && cot__is_row_number(s->f, p, k);
        if (cot__is_fold(p, k) || number) inside[p->operation[k].result] = 0;
        for (uint32_t i = 1; i < p->operation[k].results; i++) inside[p->operation[k].result + i] = 0;
        if (is_view(s, k)) continue; /* it reads nothing */
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE && s->f->of[k] != group_of(s, s->base[x[i]])) inside[s->base[x[i]]] = 0;
    }
    for (uint32_t k = 0; k < p->outputs; k++) inside[s->base[p->output[k]]] = 0;
}

cot_dtype cot__member_compute(const cot__program *p, uint32_t k) {
    const uint32_t *x = cot__operation_operand(p, k);
    int             i = p->operation[k].op == OP_where || x[0] == COT__NO_VALUE;
    return cot__dtype_compute(cot__value_view(p, x[i]).dtype);
}

cot_dtype cot__inside_dtype(const cot__fusion *f, const cot__program *p, uint32_t v) {
    bool number = f->inside && f->inside[v] == COT__INSIDE_AS_NUMBER;
    return number ? cot__member_compute(p, cot__value_maker(p, v)) : cot__value_view(p, v).dtype;
}

/* Truths of floats. Views have the dtype of the value, so nothing may view it. */
static void find_truths(search *s) {
    const cot__program *p = s->p;
    for (uint32_t k = 0; k < p->operations; k++) {
        uint32_t z = p->operation[k].result;
        if (s->f->inside[z] != COT__INSIDE || p->operation[k].op >= OP_structural) continue;
        if (cot__value_view(p, z).dtype == COT_BOOL && cot__dtype_is_float(cot__member_compute(p, k)))
            s->f->inside[z] = COT__INSIDE_AS_NUMBER;
    }
    for (uint32_t v = 0; v < p->values; v++)
        if (s->base[v] != v && s->f->inside[s->base[v]] == COT__INSIDE_AS_NUMBER)
            s->f->inside[s->base[v]] = COT__INSIDE;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Operations without which no member reads anything shifted. */
static bool may_shift(const cot__program *p, uint32_t k) {
    int op = p->operation[k].op;
    return op == OP_slice || op == OP_add_slice || op == OP_update_slice;
}

/* What the search needs by itself, in one piece. */
static size_t search_bytes(const cot__program *p) {
    return p->values * (sizeof(int64_t) + 2 * sizeof(uint32_t) + 1) + p->operations;
}

static bool open_lists(search *s) {
    cot__fusion *f = s->f;
    f->of = cot__alloc(&f->al, f->operations * sizeof *f->of);
    f->why = cot__alloc(&f->al, f->operations);
    f->inside = cot__alloc(&f->al, f->values);
    s->shift = cot__alloc(&f->al, search_bytes(s->p));
    for (uint32_t k = 0; k < f->operations && !f->shifts; k++) f->shifts = may_shift(s->p, k);
    if (f->shifts) f->span = cot__alloc(&f->al, f->operations * sizeof *f->span);
    if (!f->of || !f->why || !f->inside || !s->shift || (f->shifts && !f->span)) return false;
    s->base = (uint32_t *)(s->shift + f->values);
    s->last_reader = s->base + f->values;
    s->straight = (uint8_t *)(s->last_reader + f->values);
    s->alone = s->straight + f->values;
    return true;
}

bool cot__fusion_open(cot__fusion *f, const cot__program *p, const cot_allocator *al, const cot__view *inputs,
                      const cot__caller *caller) {
    *f = (cot__fusion){.al = al ? *al : (cot_allocator){0}, .values = p->values, .operations = p->operations};
    search s = {.f = f, .p = p, .inputs = inputs, .open = COT__NO_VALUE};
    bool   ok = open_lists(&s);
    if (ok) {
        find_views(&s);
        find_last_readers(&s);
        ok = walk(&s);
    }
    if (ok) find_readers(&s), find_truths(&s);
    cot__free(&f->al, s.shift, search_bytes(p));
    if (ok) return true;
    cot__fusion_close(f);
    return cot__refuse(caller, COT_MEMORY, "out of memory: the groups of %u operations", p->operations);
}

void cot__fusion_close(cot__fusion *f) {
    cot__free(&f->al, f->of, f->operations * sizeof *f->of);
    cot__free(&f->al, f->why, f->operations);
    cot__free(&f->al, f->inside, f->values);
    cot__free(&f->al, f->span, f->operations * sizeof *f->span);
    cot__free(&f->al, f->group, f->room * sizeof *f->group);
    *f = (cot__fusion){0};
}
