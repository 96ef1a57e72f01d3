/* step_write.c: writes in place, new numbers for leaves, marks and rewinds, values read in
 * between. */
#include "program.h"

/* An old var stays in the frame when its memory is written: reading it later is an error, the
 * same one in every way. */
STEP_FUNCTION(into) {
    static const struct {
        const char *name;
        cot_status (*f)(cot_var *, cot_var);
    } table[] = {
        {"cot_add_into", cot_add_into}, {"cot_sub_into", cot_sub_into},   {"cot_mul_into", cot_mul_into},
        {"cot_div_into", cot_div_into}, {"cot_copy_into", cot_copy_into},
    };
    unsigned which = choose(c, 5);
    value    x = any_of(f, c), y = pick(f, c, is_alike, x);
    if (x.name < 0 || y.name < 0) return;
    cot_var z = x.var;
    if (chance(c, 2)) {
        say(f, "z = cot_copy(%s); %s(&z, %s)", name_of(x), table[which].name, name_of(y));
        z = cot_copy(x.var);
    } else {
        say(f, "z = %s; %s(&z, %s)", name_of(x), table[which].name, name_of(y));
    }
    table[which].f(&z, y.var);
    put(f, z);
}

STEP_FUNCTION(update_slice) {
    value x = pick(f, c, has_axes, no_value), y = any_of(f, c);
    if (x.name < 0 || y.name < 0) return;
    int     axis = choose_axis(f, c, x, 0);
    int64_t n = extent(x, axis), start = (int64_t)choose(c, (unsigned)n + 1), step = chance(c, 3) ? 2 : 1;
    cot_var z = chance(c, 2) ? cot_copy(x.var) : x.var;
    say(f, "z = %s or a copy; cot_update_slice(&z, %d, %lld, COT_END, %lld, the sum of %s)", name_of(x), axis,
        (long long)start, (long long)step, name_of(y));
    cot_update_slice(&z, axis, start, COT_END, step, cot_sum(y.var, (cot_axes){-1, false, {0}}));
    put(f, z);
}

/* From here on derivatives that would read the old numbers of a leaf are errors; derivatives of new
 * values are not. */
STEP_FUNCTION(assign) {
    run *r = f->run;
    if (f->depth > 0 || r->leaves == 0) return;
    value leaf = r->leaf[choose(c, (unsigned)r->leaves)], x = pick(f, c, is_alike, leaf);
    if (x.name < 0) return;
    say(f, "cot_assign(%s, %s)", name_of(leaf), name_of(x));
    f->run->out->writes_sources = true;
    cot_assign(leaf.var, x.var);
    put_status(f);
}

STEP_FUNCTION(touch) {
    value x = any_of(f, c);
    if (x.name < 0 || f->depth > 0) return;
    cot_var z = x.var;
    say(f, "z = %s; cot_touch(&z)", name_of(x));
    f->run->out->writes_sources = true;
    cot_touch(&z);
    put(f, z);
}

STEP_FUNCTION(mark) {
    run *r = f->run;
    (void)c;
    if (f->depth > 0) return;
    say(f, "mark");
    r->mark          = cot_tape_mark(r->tape);
    r->marked        = true;
    r->marked_names  = f->count;
    r->marked_leaves = r->leaves;
}

/* Some vars from behind the mark stay in the frame. They are forgotten, and every use of them must
 * say so. */
STEP_FUNCTION(rewind) {
    run *r = f->run;
    if (f->depth > 0 || !r->marked) return;
    say(f, "rewind to the mark");
    cot_tape_rewind(r->tape, r->mark);
    if (!chance(c, 4)) f->count = r->marked_names;
    r->leaves = r->marked_leaves;
    put_status(f);
}

STEP_FUNCTION(look) {
    value x = any_of(f, c);
    if (x.name < 0 || f->depth > 0) return;
    say(f, "read %s", name_of(x));
    outcome_open(f->run->out, "v%d on the way", x.name);
    if (!outcome_value(f->run->out, x.var)) outcome_status(f->run->out, f->run->tape);
}

STEP_FUNCTION(detach) {
    value x = any_of(f, c);
    if (x.name < 0) return;
    if (chance(c, 2)) {
        say(f, "cot_detach(%s)", name_of(x));
        put(f, cot_detach(x.var));
        return;
    }
    say(f, "cot_no_grad_open; cot_sin(%s); cot_no_grad_close", name_of(x));
    cot_no_grad_open(f->run->tape);
    cot_var y = cot_sin(x.var);
    cot_no_grad_close(f->run->tape);
    put(f, y);
}
