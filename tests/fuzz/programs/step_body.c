/* step_body.c: the steps behind a step as the body of a loop, a condition, a checkpoint, a
 * batch. */
#include "program.h"

/* Up to four steps; none where bodies are already as deep as they may be. */
body body_of(frame *f, chooser *c) {
    int left = f->stop - (c->step + 1), n = 1 + (int)choose(c, 4);
    if (n > left) n = left;
    if (f->depth == MOST_DEPTH) n = 0;
    f->next        = c->step + 1 + n;
    f->run->bodies = true;
    return (body){.outer = f, .from = c->step + 1, .to = c->step + 1 + n};
}

/* The newest value of the frame, or an input. */
static cot_var last(const frame *f, int back) {
    return f->count > back ? f->at[f->count - 1 - back].var : f->at[0].var;
}

int body_play(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const body *b = user;
    frame f = {.run = b->outer->run, .outer = b->outer, .depth = b->outer->depth + 1, .stop = b->to, .now = b->from};
    for (int k = 0; k < n; k++) {
        say(&f, "input %d", k);
        put(&f, xs[k]);
    }
    for (int k = b->from; k < b->to && !f.failed;) k = step_run(&f, k);
    if (f.failed || f.count == 0) return 1;
    for (int k = 0; k < m; k++) {
        if (b->counter && k == 0)
            ys[k] = cot_add(xs[0], cot_number(1));
        else if (b->like_inputs && k + b->first_input < n)
            ys[k] = fit(last(&f, k - b->counter), xs[k + b->first_input]);
        else
            ys[k] = last(&f, k);
    }
    return 0;
}

static void put_all(frame *f, int n, const cot_var *ys) {
    if (cot_tape_status(f->run->tape) != COT_OK) {
        put_status(f);
        return;
    }
    for (int k = 0; k < n; k++) put(f, ys[k]);
}

STEP_FUNCTION(checkpoint) {
    value x = float_of(f, c);
    body  b = body_of(f, c);
    if (x.name < 0 || b.from == b.to) return;
    cot_var ys[2];
    int     m = 1 + (int)choose(c, 2);
    say(f, "cot_checkpoint(%s, %d results) of", name_of(x), m);
    cot_checkpoint(body_play, &b, 1, &x.var, m, ys);
    put_all(f, m, ys);
}

static bool is_batch(value x, value beside) { return has_axes(x, beside) && is_float(x, beside) && extent(x, 0) <= 8; }

STEP_FUNCTION(scan) {
    value init = pick(f, c, is_small, no_value), x = pick(f, c, is_batch, no_value);
    body  b = body_of(f, c);
    if (init.name < 0 || b.from == b.to) return;
    cot_var          final = {NULL, 0}, ys = {NULL, 0};
    /* a wild pick may be longer */
    bool             slices = x.name >= 0 && extent(x, 0) <= 8 && chance(c, 2);
    int64_t          length = slices ? -1 : (int64_t)choose(c, 6);
    cot_loop_options o      = {.states = (int)choose(c, 3), .reverse = chance(c, 2)};
    b.like_inputs           = true;
    say(f, "cot_scan(length %lld, init %s, xs %s, states %d, reverse %d) of", (long long)length, name_of(init),
        slices ? name_of(x) : "none", o.states, o.reverse);
    cot_scan(body_play, &b, length, 1, &init.var, slices, &x.var, &final, 1, &ys, &o);
    put_all(f, 2, (cot_var[]){final, ys});
}

STEP_FUNCTION(fori) {
    value init = pick(f, c, is_small, no_value);
    body  b    = body_of(f, c);
    if (init.name < 0 || b.from == b.to) return;
    cot_var          final = {NULL, 0};
    int64_t          lower = (int64_t)choose(c, 3) - 1, upper = lower + (int64_t)choose(c, 5);
    cot_loop_options o = {.states = (int)choose(c, 3), .reverse = chance(c, 4)};
    b.like_inputs      = true;
    b.first_input      = 1;
    say(f, "cot_fori(%lld, %lld, init %s, states %d, reverse %d) of", (long long)lower, (long long)upper, name_of(init),
        o.states, o.reverse);
    cot_fori(body_play, &b, lower, upper, 1, &init.var, &final, &o);
    put_all(f, 1, &final);
}

/* Goes on while the counter, which is carried first, is below a bound that may depend on a
 * value. */
static int below(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_less(xs[0], cot_add(cot_number(2.5), cot_sum(cot_tanh(xs[1]), (cot_axes){-1, false, {0}})));
    return 0;
}

STEP_FUNCTION(loop_while) {
    value init = pick(f, c, is_small, no_value);
    body  b    = body_of(f, c);
    if (init.name < 0 || b.from == b.to) return;
    cot_var from[2] = {cot_constant(f->run->tape, (double)choose(c, 4)), init.var}, final[2] = {{NULL, 0}, {NULL, 0}};
    cot_loop_options o = {.states = (int)choose(c, 3), .limit = 12};
    b.like_inputs      = true;
    b.counter          = 1;
    say(f, "cot_while(counter and %s, states %d) of", name_of(init), o.states);
    cot_while(below, body_play, &b, 2, from, final, &o);
    put_all(f, 2, final);
}

static int otherwise(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)user;
    for (int k = 0; k < m; k++) ys[k] = cot_neg(xs[k]);
    return 0;
}

STEP_FUNCTION(cond) {
    value x = float_of(f, c), asked = any_of(f, c);
    body  b = body_of(f, c);
    if (x.name < 0 || b.from == b.to) return;
    cot_var y = {NULL, 0}, choice = cot_greater(cot_sum(asked.var, (cot_axes){-1, false, {0}}), cot_number(0));
    b.like_inputs = true;
    say(f, "cot_cond(the sum of %s > 0, %s; else cot_neg) of", name_of(asked), name_of(x));
    if (chance(c, 2))
        cot_cond(choice, body_play, otherwise, &b, 1, &x.var, 1, &y);
    else
        cot_cond(choice, otherwise, body_play, &b, 1, &x.var, 1, &y);
    put_all(f, 1, &y);
}

STEP_FUNCTION(vmap) {
    value x = pick(f, c, is_batch, no_value), y = float_of(f, c);
    body  b = body_of(f, c);
    if (x.name < 0 || b.from == b.to) return;
    int     axis = choose_axis(f, c, x, 0), axes[2] = {axis, COT_NOT_BATCHED}, n = y.name >= 0 && chance(c, 2) ? 2 : 1;
    cot_var z = {NULL, 0}, xs[2] = {x.var, y.var};
    say(f, "cot_vmap(%s along %d%s%s) of", name_of(x), axis, n == 2 ? ", for all " : "", n == 2 ? name_of(y) : "");
    if (extent(x, axis) > 16) return;
    /* what is met again may run otherwise (loops/vmap.c) */
    for (int k = 0; k < 3; k++) cot_vmap(body_play, &b, n, xs, axes, 1, &z, NULL);
    put_all(f, 1, &z);
}
