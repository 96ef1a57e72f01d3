/* along_plan.c: which instruction belongs to which part (along_parts.h), where its values lie, and
 * the order of the core: what the next run waits for longest comes first, and where one can follow
 * at once what it reads, it finds that in a register. */
#include "program/scalars/along_parts.h"
#include "rules/elementwise_table.h"

#include <string.h>

/* How early a value is known, by what it depends on: constants; inputs of its own run; runs
 * before. */
typedef enum level { STAYS, AHEAD, WAITS } level;

enum { MOST_SLOTS = 256, SMALL_PART = 4 };

typedef struct planner {
    cot__along *a;
    cot__line   line[COT__MOST_LINES];
    uint16_t    row_of[COT__MOST_LINES]; /* where the result has to lie; 0: anywhere */
    uint16_t    at[MOST_SLOTS];          /* the place of what each slot holds */
    uint32_t    lines, rows;
    /* of each row */
    uint8_t     level[COT__MOST_ROWS];
    bool        needed[COT__MOST_ROWS]; /* by the core, or by the next run */
    uint16_t    reads[COT__MOST_ROWS], maker[COT__MOST_ROWS], negated[COT__MOST_ROWS];
} planner;

static uint32_t row(uint32_t place) { return place / COT__LANES; }
static int      operands(const cot__line *c) { return cot__elementwise_arity(c->code / 2); }

static bool fits_lanes(uint32_t code) {
    return code == COT__LINE_mul || code == COT__LINE_smul || code == COT__LINE_add || code == COT__LINE_sub ||
           code == COT__LINE_neg;
}

/* ---- instructions one by one ----------------------------------------------------------------- */

static void add_line(planner *q, uint32_t code, uint32_t z, uint32_t x, uint32_t y, uint32_t w) {
    q->row_of[q->lines] = 0;
    q->line[q->lines++] = (cot__line){(uint16_t)code, (uint16_t)z, {(uint16_t)x, (uint16_t)y, (uint16_t)w}};
}

static bool take_apart(planner *q, const cot__scalar *c) {
    for (; c->code != COT__SCALAR_END; c++) {
        if (q->lines + 2 > COT__MOST_LINES || (c->z | c->x | c->y | c->w | c->t) >= MOST_SLOTS) return false;
        if (c->code < COT__PAIR_mul_f64) {
            add_line(q, c->code, c->z, c->x, c->y, c->w);
            continue;
        }
        uint32_t pair = c->code - COT__PAIR_mul_f64, form = pair % COT__PAIR_FORMS % COT__PAIR_KEPT;
        uint32_t kind = pair / COT__PAIR_FORMS, is_f32 = kind % 2;
        bool     from = form == COT__PAIR_FROM;
        add_line(q, (kind < 2 ? COT__LINE_mul : COT__LINE_smul) + is_f32, c->t, c->x, c->y, 0);
        add_line(q, (form == COT__PAIR_ADD ? COT__LINE_add : COT__LINE_sub) + is_f32, c->z, from ? c->w : c->t,
                 from ? c->t : c->w, 0);
    }
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint16_t new_row(planner *q, level l) {
    q->level[q->rows] = (uint8_t)l;
    q->needed[q->rows] = false;
    q->reads[q->rows] = 0;
    q->maker[q->rows] = q->negated[q->rows] = COT__NOWHERE;
    return (uint16_t)(q->rows++ * COT__LANES);
}

static uint32_t last_write(const planner *q, uint32_t slot) {
    uint32_t k = q->lines;
    while (k-- > 0)
        if (q->line[k].z == slot) return k;
    return COT__NOWHERE;
}

/* What is handed on has a row behind one whose last place is for what the first run reads. */
static bool place_handed(planner *q, uint32_t i, uint32_t from, uint32_t to) {
    uint32_t k = last_write(q, from);
    if (k == COT__NOWHERE || q->row_of[k]) return false;
    new_row(q, WAITS);
    uint16_t z = new_row(q, WAITS);
    q->row_of[k] = (uint16_t)row(z);
    q->a->in[i] = q->at[to] = (uint16_t)(z - 1);
    return true;
}

static bool place_inputs(planner *q, const cot__word *in, const cot__word *out) {
    for (uint32_t i = 0; i < q->a->inputs; i++) {
        int comes = q->a->comes[i];
        if (in[i].slot >= MOST_SLOTS) return false;
        if (comes < COT__WORD_HANDED)
            q->a->in[i] = q->at[in[i].slot] = new_row(q, comes == COT__WORD_STAYS ? STAYS : AHEAD);
        else if (!place_handed(q, i, out[comes - COT__WORD_HANDED].slot, in[i].slot)) return false;
    }
    return true;
}

/* The place of a slot's value; a slot that nothing was written to is a constant. */
static uint16_t place_of(planner *q, const cot__slot *slots, uint32_t slot) {
    if (q->at[slot] == COT__NOWHERE) {
        q->at[slot] = new_row(q, STAYS);
        for (int l = 0; l < COT__LANES; l++) memcpy(&q->a->row[q->at[slot] + l], &slots[slot], sizeof *q->a->row);
    }
    q->reads[row(q->at[slot])]++;
    return q->at[slot];
}

static bool place_lines(planner *q, const cot__slot *slots) {
    for (uint32_t k = 0; k < q->lines; k++) {
        cot__line *c = &q->line[k];
        level      l = fits_lanes(c->code) ? STAYS : WAITS;
        if (q->rows + 4 > COT__MOST_ROWS) return false;
        for (int i = 0; i < operands(c); i++) {
            c->x[i] = place_of(q, slots, c->x[i]);
            if (q->level[row(c->x[i])] > l) l = q->level[row(c->x[i])];
        }
        uint16_t z = q->row_of[k] ? (uint16_t)(q->row_of[k] * COT__LANES) : new_row(q, l);
        q->level[row(z)] = (uint8_t)(q->row_of[k] ? WAITS : l);
        q->maker[row(z)] = (uint16_t)k;
        c->z = q->at[c->z] = z;
    }
    return true;
}

static bool place_outputs(planner *q, const cot__slot *slots, const cot__word *out) {
    for (uint32_t k = 0; k < q->a->outputs; k++) {
        if (q->rows + 1 > COT__MOST_ROWS || out[k].slot >= MOST_SLOTS) return false;
        q->a->out[k] = place_of(q, slots, out[k].slot);
    }
    return true;
}

/* ---- the core and what is not ---------------------------------------------------------------- */

/* A sum of what the run before hands on, and something else, that is nothing but handed on. */
static void find_totals(planner *q) {
    for (uint32_t k = 0; k < q->lines; k++) {
        cot__line *c = &q->line[k];
        uint16_t   before = (uint16_t)(c->z - 1), other = c->x[0] == before ? c->x[1] : c->x[0];
        if (!q->row_of[k]) continue;
        bool total = c->code == COT__LINE_add && (c->x[0] == before) != (c->x[1] == before) &&
                     q->reads[row(before)] == 1 && q->reads[row(c->z)] == 1;
        q->needed[row(c->z)] = !total;
        if (!total) continue;
        c->code = COT__LINE_total;
        c->x[0] = other;
    }
}

static bool is_core(const planner *q, const cot__line *c) {
    if (q->level[row(c->z)] < WAITS || c->code == COT__LINE_total) return false;
    return q->needed[row(c->z)] || !fits_lanes(c->code);
}

/* Makes -x, of something known before the core, if it is not there yet. False: no room. */
static bool find_negated(planner *q, uint16_t x, uint16_t *to) {
    if (q->negated[row(x)] == COT__NOWHERE) {
        if (q->lines + 1 > COT__MOST_LINES || q->rows + 1 > COT__MOST_ROWS) return false;
        add_line(q, COT__LINE_neg, new_row(q, (level)q->level[row(x)]), x, 0, 0);
        q->negated[row(x)] = q->line[q->lines - 1].z;
        q->reads[row(x)]++;
    }
    *to = q->negated[row(x)];
    return true;
}

/* (-x) y is x (-y), strong or not: where y is known before, the core need not wait for -x. */
static void pass_negation(planner *q, cot__line *c) {
    for (int i = 0; i < 2 && (c->code == COT__LINE_mul || c->code == COT__LINE_smul); i++) {
        uint16_t maker = q->maker[row(c->x[i])], other = c->x[1 - i], negated;
        if (maker == COT__NOWHERE || q->line[maker].code != COT__LINE_neg || q->level[row(other)] == WAITS) continue;
        if (q->level[row(c->x[i])] < WAITS || !find_negated(q, other, &negated)) continue;
        q->reads[row(c->x[i])]--;
        q->reads[row(other)]--;
        c->x[i] = q->line[maker].x[0];
        c->x[1 - i] = negated;
        q->reads[row(c->x[i])]++;
        q->reads[row(negated)]++;
    }
}

static void find_core(planner *q) {
    for (uint32_t k = q->lines; k-- > 0;) {
        cot__line *c = &q->line[k];
        if (!is_core(q, c)) continue;
        pass_negation(q, c);
        for (int i = 0; i < operands(c); i++) q->needed[row(c->x[i])] = true;
    }
}

static void take_lanes(planner *q, level l) {
    for (uint32_t k = 0; k < q->lines; k++) {
        const cot__line *c = &q->line[k];
        if (q->level[row(c->z)] == l && q->reads[row(c->z)] && !is_core(q, c)) q->a->lane[q->a->lanes++] = *c;
    }
}

/* ---- the order of the core ------------------------------------------------------------------- */

/* What it costs in cycles, about: a jump, arithmetic, and a way through memory. */
enum { JUMP = 4, ARITHMETIC = 4, MEMORY = 12, WINDOW = 32 };

/* Instructions of the core, those that are joined with a later one left out (code: END). */
typedef struct order {
    cot__scalar all[COT__MOST_LINES];
    uint16_t    maker[COT__MOST_ROWS]; /* which of them makes the row */
    uint32_t    count;
    int32_t     height[COT__MOST_LINES], ready[COT__MOST_LINES]; /* ready < 0: not done yet */
} order;

static int reads_of(const cot__scalar *s) {
    return s->code < COT__PAIR_mul_f64 ? cot__elementwise_arity((int)s->code / 2) : 3;
}
static uint32_t operand(const cot__scalar *s, int i) { return i == 0 ? s->x : i == 1 ? s->y : s->w; }

/* Which instruction of the core makes operand i; COT__NOWHERE: none does. */
static uint32_t maker_of(const order *o, const cot__scalar *s, int i) { return o->maker[row(operand(s, i))]; }

/* The product that is joined with a sum: read by it alone, and the later one if both are. */
static uint32_t product_of(const planner *q, const order *o, const cot__scalar *s) {
    uint32_t best = COT__NOWHERE;
    for (int i = 0; i < 2; i++) {
        uint32_t    k = maker_of(o, s, i);
        cot__scalar joined = k == COT__NOWHERE ? *s : o->all[k];
        if (k == COT__NOWHERE || q->reads[row(operand(s, i))] != 1 || !cot__scalars_join(&joined, s)) continue;
        if (best == COT__NOWHERE || k > best) best = k;
    }
    return best;
}

static void list_core(const planner *q, order *o) {
    o->count = 0;
    memset(o->maker, 0xff, sizeof o->maker);
    for (uint32_t k = 0; k < q->lines; k++) {
        const cot__line *c = &q->line[k];
        if (!is_core(q, c)) continue;
        cot__scalar s = {c->code, c->z, c->x[0], c->x[1], c->x[2], 0, NULL};
        uint32_t    product = reads_of(&s) == 2 ? product_of(q, o, &s) : COT__NOWHERE;
        if (product != COT__NOWHERE) {
            cot__scalar joined = o->all[product];
            cot__scalars_join(&joined, &s);
            joined.code -= COT__PAIR_KEPT;
            o->all[product].code = COT__SCALAR_END;
            s = joined;
        }
        o->maker[row(c->z)] = (uint16_t)o->count;
        o->all[o->count++] = s;
    }
}

/* The longest way from each to the end. */
static void measure(order *o) {
    memset(o->height, 0, sizeof o->height);
    for (uint32_t k = o->count; k-- > 0;) {
        const cot__scalar *s = &o->all[k];
        if (s->code == COT__SCALAR_END) continue;
        o->height[k] += MEMORY + ARITHMETIC * (s->code < COT__PAIR_mul_f64 ? 1 : 2);
        for (int i = 0; i < reads_of(s); i++) {
            uint32_t m = maker_of(o, s, i);
            if (m != COT__NOWHERE && o->height[m] < o->height[k]) o->height[m] = o->height[k];
        }
    }
}

/* When what it reads is there; what `last` makes is in a register. -1: not yet known. */
static int32_t begin_at(const order *o, const cot__scalar *s, uint32_t last) {
    int32_t at = 0;
    for (int i = 0; i < reads_of(s); i++) {
        uint32_t m = maker_of(o, s, i);
        if (m == COT__NOWHERE) continue;
        if (o->ready[m] < 0) return -1;
        int32_t there = o->ready[m] + (m == last ? 0 : MEMORY);
        if (there > at) at = there;
    }
    return at;
}

static void put_in_order(cot__along *a, order *o) {
    uint32_t first = 0, last = COT__NOWHERE, cores = 0;
    int32_t  now = 0;
    for (uint32_t k = 0; k < o->count; k++) o->ready[k] = -1;
    while (first < o->count) {
        uint32_t best = COT__NOWHERE, seen = 0;
        int32_t  best_at = 0;
        for (uint32_t k = first; k < o->count && seen < WINDOW; k++) {
            if (o->ready[k] >= 0 || o->all[k].code == COT__SCALAR_END) continue;
            int32_t at = begin_at(o, &o->all[k], last);
            seen++;
            if (at < 0) continue;
            if (at < now) at = now;
            bool better = best == COT__NOWHERE || at < best_at || (at == best_at && o->height[k] > o->height[best]);
            if (better) best = k, best_at = at;
        }
        if (best == COT__NOWHERE) break; /* all are done */
        a->core[cores++] = o->all[best];
        o->ready[best] = best_at + ARITHMETIC * (o->all[best].code < COT__PAIR_mul_f64 ? 1 : 2);
        now += JUMP;
        last = best;
        while (first < o->count && (o->ready[first] >= 0 || o->all[first].code == COT__SCALAR_END)) first++;
    }
    cot__scalars_link(a->core, cores);
}

/* ---- the whole ------------------------------------------------------------------------------- */

bool cot__along_plan(cot__along *a, const cot__scalar *list, const cot__slot *slots, const cot__word *in,
                     const cot__word *out) {
    planner q;
    order   o;
    q.a = a;
    q.lines = q.rows = 0;
    memset(q.at, 0xff, sizeof q.at);
    a->lanes = 0;
    if (2 * (a->inputs + a->outputs) > COT__MOST_ROWS || !take_apart(&q, list)) return false;
    if (!place_inputs(&q, in, out) || !place_lines(&q, slots) || !place_outputs(&q, slots, out)) return false;
    find_totals(&q);
    find_core(&q);
    take_lanes(&q, STAYS);
    a->once = a->lanes;
    take_lanes(&q, AHEAD);
    a->ahead = a->lanes;
    take_lanes(&q, WAITS);
    if (SMALL_PART * a->lanes < q.lines) return false;
    list_core(&q, &o);
    measure(&o);
    put_in_order(a, &o);
    return true;
}
