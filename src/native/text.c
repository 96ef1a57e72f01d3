/* text.c: see text.h: a part as a function. */
#include "native/text.h"
#include "backend/runs.h"
#include "native/parts/plain.h"
#include "native/parts/shifts.h"
#include "native/scans.h"
#include "program/emit/block.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Elements between two looks whether sines have arguments that need the long way. */
enum { LOOK = 1024, LEAST_VECTOR = 5, LEAF = 256 };

/* ---- loops ----------------------------------------------------------------------------------- */

/* A loop on its way to text. */
typedef struct loop {
    cot__writer       *w;
    const cot__choice *c;
    cot__group         group;
    cot__loop_axes     axes;
    cot__at_index      at;
    cot__loop_names    names;
    bool               shared; /* threads share it: its positions are given */
} loop;

static bool is_line(const loop *l, uint32_t k) { return l->c->kind[k] == COT__AS_LOOP; }
static bool is_trig(const loop *l, uint32_t k) {
    int op = l->w->p->operation[k].op;
    return is_line(l, k) && (op == OP_sin || op == OP_cos || op == OP_tan);
}

static uint32_t last_trig(const loop *l) {
    for (uint32_t k = l->group.end; k-- > l->group.first;)
        if (is_trig(l, k)) return k;
    return COT__NO_VALUE;
}

/* The first position of axis j, and the one after the last, as names lo_j and hi_j. */
static void put_bounds(const loop *l, int j, int depth) {
    long long n = l->axes.extent[j], unit = l->axes.unit;
    cot__put_indent(l->w, depth);
    if (l->shared && j == l->axes.shared)
        cot__putf(l->w->to, "const ptrdiff_t lo_%d = from * %lld, hi_%d = to * %lld < %lld ? to * %lld : %lld;\n", j,
                  unit, j, unit, n, unit, n);
    else cot__putf(l->w->to, "const ptrdiff_t lo_%d = 0, hi_%d = %lld;\n", j, j, n);
}

static bool is_fold(const loop *l, uint32_t k) { return l->c->kind[k] == COT__AS_FOLD; }
static uint32_t folded_by(const loop *l, uint32_t k) {
    return cot__root_of(&l->w->layout, cot__operation_operand(l->w->p, k)[0]);
}

/* Names of what belongs to fold k: f, its state; a, a leaf; n, its nodes. */
static uint32_t fold_number(const cot__writer *w, uint32_t k) {
    return cot__number_of(w, w->p->operation[k].result);
}

/* Values that are folded go to a leaf, too, which begins at lo_0. */
static void put_to_leaf(const loop *l, uint32_t k, int depth) {
    cot__put_indent(l->w, depth);
    cot__putf(l->w->to, "a_%u[i_0 - lo_0] = v_%u;\n", fold_number(l->w, k), cot__number_of(l->w, folded_by(l, k)));
}

static void put_lines(const loop *l, int depth) {
    for (uint32_t k = l->group.first; k < l->group.end; k++) {
        if (is_fold(l, k)) put_to_leaf(l, k, depth);
        if (!is_line(l, k)) continue;
        cot__put_loop_value(l->w, k, depth, &l->at);
        cot__put_loop_store(l->w, k, depth, &l->at);
    }
}

/* Which lines arguments of sines come from, for the first operations of the group. */
enum { TRACED = 256 };
typedef struct sources { bool line[TRACED]; } sources;

static void add_operands(const loop *l, uint32_t k, sources *from) {
    const uint32_t *x = cot__operation_operand(l->w->p, k);
    for (int i = 0; i < cot__operation_operands(l->w->p, k); i++) {
        uint32_t root = x[i] == COT__NO_VALUE ? COT__NO_VALUE : cot__root_of(&l->w->layout, x[i]);
        if (root == COT__NO_VALUE || cot__value_origin(l->w->p, root) != COT__FROM_OPERATION) continue;
        uint32_t maker = cot__value_maker(l->w->p, root);
        if (maker >= l->group.first && maker - l->group.first < TRACED) from->line[maker - l->group.first] = true;
    }
}

static sources sources_of_trig(const loop *l) {
    sources from = {{false}};
    for (uint32_t k = last_trig(l) + 1; k-- > l->group.first;)
        if (is_trig(l, k) || k - l->group.first >= TRACED || from.line[k - l->group.first]) add_operands(l, k, &from);
    return from;
}

/* far_0 becomes other than 0 where an argument of a sine is far from 0. */
static void put_look(const loop *l, int depth) {
    sources from = sources_of_trig(l);
    for (uint32_t k = l->group.first, last = last_trig(l); k <= last; k++) {
        if (!is_line(l, k)) continue;
        if (is_trig(l, k)) {
            cot_dtype as = cot__value_view(l->w->p, l->w->p->operation[k].result).dtype;
            cot__put_indent(l->w, depth);
            cot__put(l->w->to, "far_0 |= ");
            cot__put_call(l->w, as == COT_F32 ? "trig_is_near_vf32" : "trig_is_near_vf64");
            cot__put_operand(l->w, k, 0, &l->at, as);
            cot__put(l->w->to, ") ? 0 : 1;\n");
        }
        if (k - l->group.first >= TRACED || from.line[k - l->group.first])
            cot__put_loop_value(l->w, k, depth, &l->at);
    }
}

static void open_innermost(const loop *l, int depth, const char *from, const char *to) {
    int j = l->axes.count - 1;
    cot__putf(l->w->to, l->w->vector ? "COT_INDEPENDENT\n" : "");
    cot__put_indent(l->w, depth);
    cot__putf(l->w->to, "for (ptrdiff_t i_%d = %s_%d; i_%d < %s_%d; i_%d++) {\n", j, from, j, j, to, j, j);
}

static void close_innermost(const loop *l, int depth) {
    cot__put_indent(l->w, depth);
    cot__put(l->w->to, "}\n");
}

static void put_line(const loop *l, int depth, const char *text) {
    cot__put_indent(l->w, depth);
    cot__put(l->w->to, text);
}

/* All lines for a block, as vectors or with every function in full. */
static void put_block(const loop *l, int depth, bool vector, bool plain) {
    l->w->vector = vector, l->w->plain = plain;
    open_innermost(l, depth, "at", "end");
    put_lines(l, depth + 1);
    close_innermost(l, depth);
    l->w->vector = l->w->plain = false;
}

/* odd_0 becomes other than 0 where the block has written a NaN. */
static void put_nan_look(const loop *l, int depth) {
    l->w->vector = true;
    open_innermost(l, depth, "at", "end");
    for (uint32_t k = l->group.first; k < l->group.end; k++) {
        if (!cot__native_is_seen(l->w, l->c, k)) continue;
        put_line(l, depth + 1, "odd_0 |= isnan(");
        if (is_fold(l, k)) cot__putf(l->w->to, "a_%u[i_0 - lo_0]", fold_number(l->w, k));
        else cot__put_result(l->w, l->w->p->operation[k].result, &l->at);
        cot__put(l->w->to, ") ? 1 : 0;\n");
    }
    close_innermost(l, depth);
    l->w->vector = false;
}

/* With plain products where that can be done again, then with strong ones if there was a NaN. */
static void put_plain_first(const loop *l, int depth, const char *flag) {
    put_line(l, depth, flag), cot__put(l->w->to, " odd_0 = apart_0 ? 0 : 1;\n");
    put_line(l, depth, "if (!odd_0) {\n");
    put_block(l, depth + 1, true, true);
    put_nan_look(l, depth + 1);
    put_line(l, depth, "}\n");
    put_line(l, depth, "if (odd_0) {\n");
    put_block(l, depth + 1, true, false);
    put_line(l, depth, "}\n");
}

/* An integer as wide as the loop's floats. */
static const char *flag_of(const loop *l) {
    for (uint32_t k = l->group.first; k < l->group.end; k++)
        if (is_line(l, k) && cot__value_view(l->w->p, l->w->p->operation[k].result).dtype == COT_F32) return "int32_t";
    return "int64_t";
}

/* Straight lines where all sines have small arguments, so that vectors come of them; every function
 * in full otherwise. An element may be written where an operand was, so it is looked first. */
static void put_innermost_in_blocks(loop *l, int depth, bool trig, bool plain) {
    int         j = l->axes.count - 1;
    const char *flag = flag_of(l);
    if (plain) cot__native_put_apart(l->w, l->c, &l->group, depth);
    cot__put_indent(l->w, depth);
    cot__putf(l->w->to, "for (ptrdiff_t at_%d = lo_%d; at_%d < hi_%d; at_%d += %d) {\n", j, j, j, j, j, LOOK);
    cot__put_indent(l->w, depth + 1);
    cot__putf(l->w->to, "const ptrdiff_t end_%d = at_%d + %d < hi_%d ? at_%d + %d : hi_%d;\n", j, j, LOOK, j, j, LOOK,
              j);
    if (trig) {
        put_line(l, depth + 1, flag), cot__put(l->w->to, " far_0 = 0;\n");
        l->w->vector = true;
        open_innermost(l, depth + 1, "at", "end");
        put_look(l, depth + 2);
        close_innermost(l, depth + 1);
        put_line(l, depth + 1, "if (far_0) {\n");
        put_block(l, depth + 2, false, false);
        put_line(l, depth + 2, "continue;\n");
        put_line(l, depth + 1, "}\n");
    }
    if (plain) put_plain_first(l, depth + 1, flag);
    else put_block(l, depth + 1, true, false);
    close_innermost(l, depth);
}

/* ---- pieces of a loop that is shifted -------------------------------------------------------- */

/* Operand 0 of a patch, as the number that all of its elements are, if it is a constant. */
static void put_patched(const loop *l, uint32_t k, const cot__at_index *at, cot_dtype as) {
    const cot__program *p = l->w->p;
    uint32_t            root = cot__root_of(&l->w->layout, cot__operation_operand(p, k)[0]);
    cot__view           v = cot__value_view(p, root);
    size_t              size = (size_t)cot__dtype_size(v.dtype), bytes = (size_t)cot__view_size(&v) * size;
    bool                fixed = cot__value_origin(p, root) == COT__FROM_CONSTANT;
    const char         *first = fixed ? cot__constant_elements(p, cot__value_maker(p, root)) : NULL;
    if (first && memcmp(first, first + size, bytes - size) == 0) cot__emit_literal(l->w->to, as, first);
    else cot__put_operand(l->w, k, 0, at, as);
}

static void put_patch(const loop *l, const cot__piece *piece, uint32_t k, int depth, const cot__at_index *at) {
    uint32_t      z = l->w->p->operation[k].result;
    cot_dtype     as = cot__value_view(l->w->p, z).dtype;
    cot__at_index by = *at;
    bool          patched = cot__piece_is_patched(l->c, piece, k, at->shift);
    bool          adds = l->w->p->operation[k].op == OP_add_slice;
    by.shift -= cot__range_at(l->w->p, k);
    cot__put_indent(l->w, depth);
    cot__putf(l->w->to, "const %s ", cot__emit_type(as));
    cot__put_local(l->w, z, at->shift);
    cot__put(l->w->to, " = ");
    if (!patched || adds) put_patched(l, k, at, as);
    if (patched && adds) cot__put(l->w->to, " + ");
    if (patched) cot__put_operand(l->w, k, 1, &by, as);
    cot__put(l->w->to, ";\n");
}

static void put_piece_lines(const loop *l, const cot__piece *piece, int depth) {
    cot__at_index at = l->at;
    at.shifted = true;
    for (int i = 0; i < piece->count; i++) {
        uint32_t k = piece->line[i].operation;
        at.shift = piece->line[i].shift;
        if (cot__is_patch(l->w->p, k)) put_patch(l, piece, k, depth, &at);
        else cot__put_loop_value(l->w, k, depth, &at);
        if (at.shift == 0) cot__put_loop_store(l->w, k, depth, &at);
    }
    for (uint32_t k = l->group.first; k < l->group.end; k++)
        if (is_fold(l, k)) put_to_leaf(l, k, depth);
}

/* From lo to hi, as far as they are in each piece. */
static void put_pieces(loop *l, int depth) {
    cot__loop_cuts cuts;
    cot__piece     piece;
    cot__find_cuts(l->c, &l->group, &cuts);
    for (int i = 0; i < cuts.count; i++) {
        cot__find_piece(l->c, &l->group, &cuts, i, &piece);
        long long from = piece.from, to = piece.to;
        cot__put_indent(l->w, depth);
        cot__putf(l->w->to, "const ptrdiff_t at_%d = lo_0 > %lld ? lo_0 : %lld, end_%d = hi_0 < %lld ? hi_0 : %lld;\n",
                  i, from, from, i, to, to);
        l->w->vector = to - from >= LEAST_VECTOR;
        if (l->w->vector) cot__put(l->w->to, "COT_INDEPENDENT\n");
        cot__put_indent(l->w, depth);
        cot__putf(l->w->to, "for (ptrdiff_t i_0 = at_%d; i_0 < end_%d; i_0++) {\n", i, i);
        put_piece_lines(l, &piece, depth + 1);
        close_innermost(l, depth);
    }
    l->w->vector = false;
}

/* From lo to hi. */
static void put_innermost(loop *l, int depth) {
    bool vector = l->axes.extent[l->axes.count - 1] >= LEAST_VECTOR;
    if (cot__is_shifted(l->c, &l->group)) {
        put_pieces(l, depth);
        return;
    }
    bool trig = last_trig(l) != COT__NO_VALUE;
    bool plain = l->axes.flat && cot__native_can_be_plain(l->w, l->c, &l->group);
    if (vector && (trig || plain)) {
        put_innermost_in_blocks(l, depth, trig, plain);
        return;
    }
    l->w->vector = vector;
    open_innermost(l, depth, "lo", "hi");
    put_lines(l, depth + 1);
    close_innermost(l, depth);
    l->w->vector = false;
}

static void name_indices(loop *l) {
    for (int j = 0; j < l->axes.count; j++) {
        cot__text text = cot__text_buffer(l->names.text[j], sizeof l->names.text[j]);
        cot__putf(&text, "i_%d", j);
        l->at.axis[l->axes.axis[j]] = l->names.text[j];
    }
    if (l->axes.flat) l->at.flat = l->names.text[0], l->at.axis[0] = NULL;
}

/* The loop of operation k. */
static void put_loop(cot__writer *w, const cot__choice *c, uint32_t k, bool shared) {
    loop l = {.w = w, .c = c, .group = cot__loop_of(c, k), .shared = shared};
    cot__find_axes(c, &l.group, &l.axes);
    name_indices(&l);
    w->loop = w->layout.block[l.group.first];
    cot__put(w->to, "    {\n");
    int depth = 2;
    for (int j = 0; j + 1 < l.axes.count; j++) {
        put_bounds(&l, j, depth);
        cot__put_indent(w, depth++);
        cot__putf(w->to, "for (ptrdiff_t i_%d = lo_%d; i_%d < hi_%d; i_%d++) {\n", j, j, j, j, j);
    }
    if (l.axes.count) put_bounds(&l, l.axes.count - 1, depth), put_innermost(&l, depth);
    else put_lines(&l, depth);
    cot__close_loops(w, 1, depth);
    w->loop = 0;
}

/* ---- loops that end in folds ----------------------------------------------------------------- */

/* "cot_fold_WHAT_add_f32(" of fold k; WHAT NULL: the type's name. */
static void put_fold_name(cot__writer *w, uint32_t k, const char *what) {
    char      name[48];
    cot__text text = cot__text_buffer(name, sizeof name);
    int       op = w->p->operation[k].op;
    cot_dtype d = cot__value_view(w->p, w->p->operation[k].result).dtype;
    cot__putf(&text, "cot_fold%s%s_%s_%s", what ? "_" : "", what ? what : "",
              op == OP_sum ? "add" : op == OP_max ? "max" : "min", d == COT_F32 ? "f32" : "f64");
    if (what) cot__put_call(w, name);
    else cot__put(w->to, name);
}

static void put_fold_begin(cot__writer *w, uint32_t k, int depth) {
    cot__put_indent(w, depth);
    put_fold_name(w, k, NULL);
    cot__putf(w->to, " f_%u;\n", fold_number(w, k));
    cot__put_indent(w, depth);
    put_fold_name(w, k, "begin");
    cot__putf(w->to, "&f_%u);\n", fold_number(w, k));
}

/* A whole leaf at once, the last one value by value. */
static void put_fold_leaf(cot__writer *w, uint32_t k, int depth) {
    cot__put_indent(w, depth);
    cot__putf(w->to, "if (hi_0 - lo_0 == %d) ", LEAF);
    put_fold_name(w, k, "full");
    cot__putf(w->to, "&f_%u, a_%u);\n", fold_number(w, k), fold_number(w, k));
    cot__put_indent(w, depth);
    cot__put(w->to, "else for (ptrdiff_t i_0 = 0; i_0 < hi_0 - lo_0; i_0++) ");
    put_fold_name(w, k, "take");
    cot__putf(w->to, "&f_%u, a_%u[i_0]);\n", fold_number(w, k), fold_number(w, k));
}

/* Nodes of whole blocks, then that of the rest. */
static void put_fold_end(cot__writer *w, uint32_t k, int64_t size, int at) {
    int64_t     step = cot__native_step(size);
    const char *type = cot__emit_type(cot__value_view(w->p, w->p->operation[k].result).dtype);
    put_fold_begin(w, k, 2);
    cot__putf(w->to, "        for (ptrdiff_t b_0 = 0; b_0 < %lld; b_0++) ", (long long)(size / step));
    put_fold_name(w, k, "node");
    cot__putf(w->to, "&f_%u, n_%u[b_0]);\n", fold_number(w, k), fold_number(w, k));
    if (size % step) {
        cot__put(w->to, "        ");
        put_fold_name(w, k, "last");
        cot__putf(w->to, "&f_%u, n_%u[%lld]);\n", fold_number(w, k), fold_number(w, k),
                  (long long)(size / step));
    }
    if (at < 0) return;
    cot__putf(w->to, "        *(%s *)at[%d] = ", type, at);
    put_fold_name(w, k, "end");
    cot__putf(w->to, "&f_%u);\n", fold_number(w, k));
}

/* Which of the values of the part it is; -1: none. */
static int place_in_part(const cot__choice *c, uint32_t part, uint32_t value) {
    for (uint32_t i = 0; i < c->part[part].values; i++)
        if (c->value[c->part[part].value + i] == value) return (int)i;
    return -1;
}

/* Something for each fold of the loop. */
typedef void put_fold(cot__writer *w, uint32_t k, int depth);
static void for_each_fold(const loop *l, put_fold *put, int depth) {
    for (uint32_t k = l->group.first; k < l->group.end; k++)
        if (is_fold(l, k)) put(l->w, k, depth);
}

static void put_leaf_array(cot__writer *w, uint32_t k, int depth) {
    cot__put_indent(w, depth);
    cot_dtype d = cot__value_view(w->p, w->p->operation[k].result).dtype;
    cot__putf(w->to, "%s a_%u[%d];\n", cot__emit_type(d), fold_number(w, k), LEAF);
}

static void put_node(cot__writer *w, uint32_t k, int depth) {
    cot__put_indent(w, depth);
    cot__putf(w->to, "n_%u[b_0] = ", fold_number(w, k));
    put_fold_name(w, k, "end");
    cot__putf(w->to, "&f_%u);\n", fold_number(w, k));
}

/* Positions are blocks of the reduction's tree, and a block is leaves. */
static void put_fold_blocks(loop *l) {
    long long size = l->axes.extent[0], step = cot__native_step(size);
    cot__put(l->w->to, "    for (ptrdiff_t b_0 = from; b_0 < to; b_0++) {\n");
    cot__putf(l->w->to, "        const ptrdiff_t stop_0 = (b_0 + 1) * %lld < %lld ? (b_0 + 1) * %lld : %lld;\n", step,
              size, step, size);
    for_each_fold(l, put_fold_begin, 2);
    cot__putf(l->w->to, "        for (ptrdiff_t lo_0 = b_0 * %lld; lo_0 < stop_0; lo_0 += %d) {\n", step, LEAF);
    cot__putf(l->w->to, "            const ptrdiff_t hi_0 = lo_0 + %d < stop_0 ? lo_0 + %d : stop_0;\n", LEAF, LEAF);
    for_each_fold(l, put_leaf_array, 3);
    put_innermost(l, 3);
    for_each_fold(l, put_fold_leaf, 3);
    cot__put(l->w->to, "        }\n");
    for_each_fold(l, put_node, 2);
    cot__put(l->w->to, "    }\n");
}

static void put_folded_loop(cot__writer *w, const cot__choice *c, uint32_t k, uint32_t part) {
    loop l = {.w = w, .c = c, .group = cot__loop_of(c, k), .shared = true};
    cot__find_axes(c, &l.group, &l.axes);
    name_indices(&l);
    cot__note_levels(w, 4 * l.axes.extent[0]);
    w->loop = w->layout.block[l.group.first];
    cot__put(w->to, "    if (from < 0) {\n");
    for (uint32_t f = l.group.first; f < l.group.end; f++)
        if (is_fold(&l, f)) put_fold_end(w, f, l.axes.extent[0], place_in_part(c, part, w->p->operation[f].result));
    cot__put(w->to, "        return;\n    }\n");
    put_fold_blocks(&l);
    w->loop = 0;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool is_made_in(const cot__choice *c, uint32_t value, uint32_t part) {
    return cot__value_origin(c->p, value) == COT__FROM_OPERATION && c->of[cot__value_maker(c->p, value)] == part;
}

/* The value of the part's list, of which a value has memory. */
static void put_pointer(cot__writer *w, const cot__choice *c, uint32_t part, uint32_t i, uint32_t v) {
    cot__view   view = cot__value_view(c->p, v);
    const char *type = cot__emit_type(view.dtype);
    bool        made = is_made_in(c, v, part) && c->plan.root[v] == v;
    if (view.ndim == 0 && made) return;
    cot__putf(w->to, view.ndim == 0 ? "    const %s " : made ? "    %s *const " : "    const %s *const ", type);
    cot__put_name(w, v);
    if (view.ndim == 0) cot__putf(w->to, " = *(const %s *)at[%u];\n", type, i);
    else cot__putf(w->to, " = at[%u];\n", i);
}

/* Values from elsewhere, the memory of those that are made here, and nodes of folds. */
static void put_memory(cot__writer *w, const cot__choice *c, uint32_t part) {
    for (uint32_t i = 0; i < c->part[part].values; i++) {
        uint32_t v = c->value[c->part[part].value + i], k = v & ~COT__WORKSPACE_OF;
        if (v & COT__ELEMENT_OF) continue; /* it is read in its turn */
        if (v & COT__WORKSPACE_OF)
            cot__putf(w->to, "    %s *const n_%u = at[%u];\n",
                      cot__emit_type(cot__value_view(c->p, c->p->operation[k].result).dtype), fold_number(w, k), i);
        else put_pointer(w, c, part, i, v);
    }
}

/* Memory of a 0-d value may be that of another one that is not needed any more: so values are read
 * before the first operation. What leaves the part is written when it is made, and does not wait in
 * a register; folds end by themselves. */
static void put_results(cot__writer *w, const cot__choice *c, uint32_t k, uint32_t part) {
    for (uint32_t r = 0; r < c->p->operation[k].results; r++) {
        uint32_t    v = c->p->operation[k].result + r;
        cot__view   view = cot__value_view(c->p, v);
        const char *type = cot__emit_type(view.dtype);
        int         at = view.ndim == 0 && !c->part[part].ends ? place_in_part(c, part, v) : -1;
        if (at >= 0) cot__putf(w->to, "    *(%s *)at[%d] = v_%u;\n", type, at, cot__number_of(w, v));
    }
}

/* A number that no value of the part has. */
static uint32_t free_number(const cot__choice *c, uint32_t part) {
    const cot__run_part *q = &c->part[part];
    uint32_t             n = q->values;
    for (uint32_t k = q->first; k < q->end; k++) n += c->p->operation[k].results;
    return n;
}

/* A statement; of an element from elsewhere, through its own pointer. */
static void put_statement(cot__writer *w, const cot__choice *c, uint32_t k, uint32_t part) {
    int         at = c->plan.how[k] == COT__BY_MOVE ? place_in_part(c, part, COT__ELEMENT_OF | k) : -1;
    uint32_t    z = c->p->operation[k].result;
    const char *type = cot__emit_type(cot__value_view(c->p, z).dtype);
    if (at < 0) cot__put_statement(w, k);
    else cot__putf(w->to, "    const %s v_%u = *(const %s *)at[%d];\n", type, cot__number_of(w, z), type, at);
}

static const char *const parameters = "(void *const *at, int64_t from, int64_t to) {\n";

/* With plain products; nothing is written before it is known that no result is NaN. Otherwise the
 * part is done from the beginning, by the function with strong ones. */
static void put_plain_part(cot__writer *w, const cot__choice *c, uint32_t part) {
    const cot__run_part *q = &c->part[part];
    cot__put(w->to, parameters);
    put_memory(w, c, part);
    w->plain = true;
    for (uint32_t k = q->first; k < q->end; k++)
        if (c->kind[k] == COT__AS_STATEMENT) put_statement(w, c, k, part);
    w->plain = false;
    cot__put(w->to, "    if (0");
    for (uint32_t k = q->first; k < q->end; k++)
        if (cot__dtype_is_float(cot__value_view(c->p, c->p->operation[k].result).dtype) && cot__native_leaves(c, q, k))
            cot__putf(w->to, " || isnan(v_%u)", cot__number_of(w, c->p->operation[k].result));
    cot__put(w->to, ") {\n        " COT__NATIVE_STRONG "(at, from, to);\n        return;\n    }\n");
    for (uint32_t k = q->first; k < q->end; k++)
        if (c->kind[k] == COT__AS_STATEMENT) put_results(w, c, k, part);
    cot__put(w->to, "}\n");
}

static bool put_strong_part(cot__writer *w, const cot__choice *c, uint32_t part) {
    const cot__run_part *q = &c->part[part];
    cot__put(w->to, parameters);
    put_memory(w, c, part);
    for (uint32_t k = q->first; k < q->end; k++) {
        uint8_t kind = c->kind[k];
        if (kind == COT__AS_STATEMENT) put_statement(w, c, k, part);
        else if (kind == COT__AS_BLOCK && !cot__put_structural(w, k)) return false;
        else if (kind == COT__AS_SCAN && !cot__native_put_scan(w, k, free_number(c, part))) return false;
        if (kind == COT__AS_LOOP) {
            if (q->ends) put_folded_loop(w, c, k, part);
            else put_loop(w, c, k, q->shared > 0);
            k = cot__loop_of(c, k).end - 1;
        } else if (kind != COT__FOR_NOBODY) put_results(w, c, k, part);
    }
    cot__put(w->to, "}\n");
    return true;
}

bool cot__native_put_part(cot__writer *w, const cot__choice *c, uint32_t part) {
    bool plain = cot__native_part_can_be_plain(c, &c->part[part]);
    if (plain) cot__put(w->to, "static __attribute__((noinline, cold)) void " COT__NATIVE_STRONG);
    else cot__put(w->to, "static void " COT__NATIVE_PART);
    if (!put_strong_part(w, c, part)) return false;
    if (plain) cot__put(w->to, "static void " COT__NATIVE_PART), put_plain_part(w, c, part);
    return true;
}
