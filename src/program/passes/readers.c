/* readers.c: what readers can take as it is.
 *
 * An elementwise operation repeats an operand without axes, so it reads the value itself rather
 * than a broadcast of it; and an operand that is one number becomes its plain number. Then the
 * broadcast and the constant have one reader less, and no memory is read for them. The other
 * operand must have the shape of the result. Where a transpose, a broadcast or a slice is read by
 * something else, it costs nothing: it is a view in the plan. */
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "program/passes/uniform.h"
#include "rules/structural_ids.h"

static bool has_axes(const cot__program *p, uint32_t v) { return v != COT__NO_VALUE && cot__value_view(p, v).ndim > 0; }

/* Has another operand than i the shape of the result, which has axes? */
static bool shape_stays(const cot__rewrite *r, const cot__append *o, int i) {
    for (int other = 0; other < o->n; other++)
        if (other != i && has_axes(r->to.p, o->x[other])) return true;
    return false;
}

static void read_scalars(cot__rewrite *r, const cot__append *o) {
    for (int i = 0; i < o->n; i++) {
        uint32_t of;
        if (!cot__made_by(r->to.p, o->x[i], OP_broadcast_to, &of) || has_axes(r->to.p, of)) continue;
        if (!shape_stays(r, o, i)) continue;
        r->x[i] = of;
        r->changes++;
    }
}

/* Is it operand i that gives the result its shape? */
static bool gives_shape(const cot__rewrite *r, const cot__append *o, int i) {
    return has_axes(r->to.p, o->x[i]) && !shape_stays(r, o, i);
}

static void read_numbers(cot__rewrite *r, cot__append *o) {
    double number;
    if (o->n != 2 || o->x[0] == COT__NO_VALUE || o->x[1] == COT__NO_VALUE) return;
    for (int i = 1; i >= 0; i--) {
        if (gives_shape(r, o, i) || !cot__uniform_value(r->edit->state, r->to.p, o->x[i], &number)) continue;
        r->x[i] = COT__NO_VALUE;
        o->number = number;
        r->changes++;
        return;
    }
}

static void edit_operation(cot__rewrite *r, uint32_t k) {
    cot__type   asked;
    cot__append o = cot__rewrite_operation(r, k, &asked);
    if (o.op < OP_structural) {
        read_scalars(r, &o);
        read_numbers(r, &o);
    }
    cot__rewrite_put(r, k, &o);
}

cot__program *cot__pass_readers(const cot__program *p, const cot__pass_options *o) {
    cot__uniform  u;
    cot__edit     how = {.state = &u, .operation = edit_operation};
    cot__program *made = cot__uniform_open(&u, p, o) ? cot__rewrite_run(p, o, &how) : NULL;
    cot__uniform_close(&u, o);
    return made;
}
