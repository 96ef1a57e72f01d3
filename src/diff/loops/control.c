/* control.c: the public functions that record loops: cot_scan, cot_fori, cot_while, cot_cond,
 * cot_checkpoint, and cot_custom_fn, a function with a derivative of the user's. */
#include "diff/loops/loop.h"
#include "ops/structural.h"

#include <string.h>

enum { STATES = 100 }; /* states kept for the way back unless the options say otherwise */

/* ---- shared ---------------------------------------------------------------------------------- */

static cot__loop *make_loop(cot_tape *t, const char *name, const cot_loop_options *options) {
    cot__loop *l = cot__arena(t, sizeof *l, name);
    if (!l) return NULL;
    *l = (cot__loop){.name = name, .states = STATES};
    if (!options) return l;
    if (options->states < 0) {
        cot__fail(t, COT_VALUE, "[%s] %d states to keep; 0 is the default, 1 and more a bound", name, options->states);
        return NULL;
    }
    if (options->limit < 0) {
        cot__fail(t, COT_VALUE, "[%s] a limit of %lld steps; 0 is none, 1 and more a bound", name,
                  (long long)options->limit);
        return NULL;
    }
    if (options->states > 0) l->states = options->states;
    l->asked = options->states > 0 || options->spill;
    l->spill = options->spill;
    l->reverse = options->reverse;
    return l;
}

/* Writes the nodes of n inputs to `index`. Returns the tape, NULL after a failure. */
static cot_tape *enter_inputs(const char *name, const char *what, cot_tape *t, int n, const cot_var *xs,
                              uint32_t *index) {
    for (int k = 0; k < n; k++)
        if (!cot__enter_listed(t, xs[k], name, what, k, "", &index[k])) return NULL;
    return t;
}

/* Every step hands its carried values to the next, so they keep their shape and dtype. */
static bool carries_fit(cot_tape *t, const cot__loop *l, const uint32_t *init) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    for (int k = 0; k < l->carry; k++) {
        uint32_t  out = l->body[0]->out[k];
        cot_shape have = cot__shape_at(t, out), want = cot__shape_at(t, init[k]);
        cot_dtype leaves = cot__dtype_at(&t->nodes[out]), comes = cot__dtype_at(&t->nodes[init[k]]);
        if (cot__same_shape(&have, &want) && leaves == comes) continue;
        cot__fail(t, cot__misfit(leaves, comes),
                  "[%s] carried value %d comes as %s %s and leaves the body as %s %s; carried values keep their "
                  "shape and dtype",
                  l->name, k, cot__dtype_name(comes), cot__shape_text(want.ndim, want.dim, a), cot__dtype_name(leaves),
                  cot__shape_text(have.ndim, have.dim, b));
        return false;
    }
    return true;
}

/* Appends the captures of the bodies and of the test to the operands, and records the loop. */
static cot_status record(cot_tape *t, cot__loop *l, uint32_t *args, int given, cot_var *results) {
    for (int b = 0; b < 2 && l->body[b]; b++)
        for (int k = 0; k < l->body[b]->captures; k++) args[given++] = l->body[b]->captured[k];
    for (int k = 0; l->test && k < l->test->captures; k++) args[given++] = l->test->captured[k];
    return cot__loop_record(t, l, args, results);
}

static void fail_all(cot_tape *t, int n, cot_var *out) {
    for (int k = 0; out && k < n; k++) out[k] = INVALID(t);
}

/* The first value, in two lists, that is on a tape: an error is written to that tape. NULL: no
 * value is on a tape, so only the status can tell of an error. */
static const cot_var *on_a_tape(int n, const cot_var *xs, int m, const cot_var *others) {
    for (int k = 0; xs && k < n; k++)
        if (xs[k].tape && !cot__is_number(xs[k])) return &xs[k];
    for (int k = 0; others && k < m; k++)
        if (others[k].tape && !cot__is_number(others[k])) return &others[k];
    return NULL;
}

static cot_tape *tape_in(int n, const cot_var *xs, int m, const cot_var *others) {
    const cot_var *on = on_a_tape(n, xs, m, others);
    return on ? on->tape : NULL;
}

/* ---- scan and fori --------------------------------------------------------------------------- */

/* The steps go through the slices of xs. All xs have the same extent, and it is the length of the
 * loop unless the caller gives one. */
static bool find_length(cot_tape *t, const char *name, int n, const uint32_t *xs, int64_t *length) {
    char text[COT__SHAPE_TEXT];
    for (int k = 0; k < n; k++) {
        if (cot__ndim_at(t, xs[k]) == 0) {
            cot__fail(t, COT_SHAPE,
                      "[%s] xs[%d] is a scalar; what the steps go through has an axis for them, the first", name, k);
            return false;
        }
        int64_t extent = cot__shape_at(t, xs[k]).dim[0];
        if (*length < 0) *length = extent;
        if (extent == *length) continue;
        cot__fail(t, COT_SHAPE, "[%s] xs[%d] has shape %s, but there are %lld steps; the first axis counts them", name,
                  k, cot__shape_text_at(t, xs[k], text), (long long)*length);
        return false;
    }
    if (*length >= 0) return true;
    cot__fail(t, COT_VALUE, "[%s] no length and no xs; one of them says how many steps there are", name);
    return false;
}

typedef struct steps {
    const char             *name;
    cot_fn                  body;
    void                   *user;
    int                     carry, nxs, nys;
    const cot_var          *init, *xs;
    bool                    counts;
    int64_t                 first, length, upper;
    const cot_loop_options *options;
} steps;

static cot_status record_steps(const steps *s, cot_var *final, cot_var *ys) {
    const cot_var *on = on_a_tape(s->carry, s->init, s->nxs, s->xs);
    cot_tape      *t = on ? cot__tape_of(1, on) : NULL;
    if (!t) return on ? cot__status_of(1, on) : COT_VAR;
    if (!cot__check_call(t, s->name, s->body, s->carry, s->init, s->carry, final) ||
        !cot__check_call(t, s->name, s->body, s->nxs, s->xs, s->nys, ys))
        return t->status;
    if (s->counts && s->length < 0) {
        cot__fail(t, COT_LIMIT, "[%s] from %lld to %lld there are more steps than can be counted, 2^63 - 1", s->name,
                  (long long)s->first, (long long)s->upper);
        return t->status;
    }
    int        given = s->carry + s->nxs, m = s->carry + s->nys;
    cot__loop *l = make_loop(t, s->name, s->options);
    uint32_t  *index = l ? cot__arena(t, ((size_t)given + 1) * sizeof *index, s->name) : NULL;
    cot_var   *examples = index ? cot__arena(t, ((size_t)given + 1 + (size_t)m) * sizeof *examples, s->name) : NULL,
            *x          = examples;
    int64_t    length = s->length;
    if (!examples || !enter_inputs(s->name, "init", t, s->carry, s->init, index) ||
        !enter_inputs(s->name, "xs", t, s->nxs, s->xs, index + s->carry) ||
        !find_length(t, s->name, s->nxs, index + s->carry, &length))
        return t->status;
    l->carry = s->carry, l->nxs = s->nxs, l->nys = s->nys;
    l->counts = s->counts, l->first = s->first, l->length = length;
    uint32_t from = t->count;
    if (l->counts) *x++ = cot_data(t, COT_I64, COT_SCALAR, &s->first);
    for (int k = 0; k < given; k++) *x++ = k < s->carry ? VAR(t, index[k]) : cot__first_slice(t, VAR(t, index[k]));
    if (t->status != COT_OK) return t->status;
    uint32_t to = t->count;
    l->body[0] = cot__region_record(t, s->name, s->body, s->user, (int)(x - examples), examples, m);
    cot__examples_over(t, from, to);
    if (!l->body[0] || !carries_fit(t, l, index)) return t->status;
    uint32_t *args = cot__arena(t, ((size_t)cot__loop_operands(l) + 1) * sizeof *args, s->name);
    if (!args) return t->status;
    memcpy(args, index, (size_t)given * sizeof *args);
    cot_var *results = x;
    if (record(t, l, args, given, results) != COT_OK) return t->status;
    for (int k = 0; k < s->carry; k++) final[k] = results[k];
    for (int k = 0; k < s->nys; k++) ys[k] = results[s->carry + k];
    return t->status;
}

/* The results may be written where the initial values are. After a failure they are invalid. */
static cot_status run_steps(const steps *s, cot_var *final, cot_var *ys) {
    /* taken first, because `final` may be the same memory as `init` */
    cot_tape  *t = tape_in(s->carry, s->init, s->nxs, s->xs);
    cot_status status = record_steps(s, final, ys);
    if (status == COT_OK) return status;
    fail_all(t, s->carry, final);
    fail_all(t, s->nys, ys);
    return status;
}

cot_status cot_scan(cot_fn body, void *user, int64_t length, int carry, const cot_var *init, int nxs, const cot_var *xs,
                    cot_var *final, int nys, cot_var *ys, const cot_loop_options *options) {
    return run_steps(&(steps){.name    = "scan",
                              .body    = body,
                              .user    = user,
                              .carry   = carry,
                              .init    = init,
                              .nxs     = nxs,
                              .xs      = xs,
                              .nys     = nys,
                              .length  = length,
                              .options = options},
                     final, ys);
}

cot_status cot_fori(cot_fn body, void *user, int64_t lower, int64_t upper, int carry, const cot_var *init,
                    cot_var *final, const cot_loop_options *options) {
    int64_t length = 0;
    if (upper > lower && __builtin_sub_overflow(upper, lower, &length)) length = -1;
    return run_steps(&(steps){.name = "fori", .body = body, .user = user, .carry = carry, .init = init, .counts = true,
                              .first = lower, .upper = upper, .length = length, .options = options}, final, NULL);
}

/* ---- while ----------------------------------------------------------------------------------- */

static cot_status record_while(cot_fn test, cot_fn body, void *user, int carry, const cot_var *init, cot_var *final,
                               const cot_loop_options *options) {
    cot_tape *t = cot__tape_of(carry, init);
    if (!t) return cot__status_of(carry, init);
    if (!cot__check_call(t, "while", test, carry, init, carry, final) ||
        !cot__check_call(t, "while", body, carry, init, carry, final))
        return t->status;
    cot__loop *l = make_loop(t, "while", options);
    uint32_t  *index = l ? cot__arena(t, ((size_t)carry + 1) * sizeof *index, "while") : NULL;
    cot_var   *examples = index ? cot__arena(t, ((size_t)carry + 1) * sizeof *examples, "while") : NULL;
    if (!examples || !enter_inputs("while", "init", t, carry, init, index)) return t->status;
    for (int k = 0; k < carry; k++) examples[k] = VAR(t, index[k]);
    l->carry = carry;
    l->length = options ? options->limit : 0;
    l->test = cot__region_record_part(t, "while", "test", test, user, carry, examples, 1);
    l->body[0] = l->test ? cot__region_record(t, "while", body, user, carry, examples, carry) : NULL;
    if (!l->body[0] || !carries_fit(t, l, index)) return t->status;
    if (cot__ndim_at(t, l->test->out[0]) != 0) {
        char text[COT__SHAPE_TEXT];
        cot__fail(t, COT_SHAPE, "[while] its test gives shape %s; it must be one number, true to go on",
                  cot__shape_text_at(t, l->test->out[0], text));
        return t->status;
    }
    uint32_t *args = cot__arena(t, ((size_t)cot__loop_operands(l) + 1) * sizeof *args, "while");
    if (!args) return t->status;
    memcpy(args, index, (size_t)carry * sizeof *args);
    return record(t, l, args, carry, final);
}

cot_status cot_while(cot_fn test, cot_fn body, void *user, int carry, const cot_var *init, cot_var *final,
                     const cot_loop_options *options) {
    cot_tape  *t = tape_in(carry, init, 0, NULL);
    cot_status status = record_while(test, body, user, carry, init, final, options);
    if (status != COT_OK) fail_all(t, carry, final);
    return status;
}

/* ---- cond and checkpoint --------------------------------------------------------------------- */

static bool branches_agree(cot_tape *t, const cot__loop *l) {
    char a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    for (int k = 0; k < l->nys; k++) {
        uint32_t  x = l->body[0]->out[k], y = l->body[1]->out[k];
        cot_shape have = cot__shape_at(t, x), want = cot__shape_at(t, y);
        cot_dtype then = cot__dtype_at(&t->nodes[x]), otherwise = cot__dtype_at(&t->nodes[y]);
        if (cot__same_shape(&have, &want) && then == otherwise) continue;
        cot__fail(t, cot__misfit(then, otherwise),
                  "[cond] result %d is %s %s where the choice is true and %s %s where it is false; they must agree", k,
                  cot__dtype_name(then), cot__shape_text(have.ndim, have.dim, a), cot__dtype_name(otherwise),
                  cot__shape_text(want.ndim, want.dim, b));
        return false;
    }
    return true;
}

static cot_status record_once(const char *name, const cot_var *choice, cot_fn body, cot_fn other,
                              const cot_fn_rules *rules, void *user, int n, const cot_var *xs, int m, cot_var *ys) {
    const cot_var *on = on_a_tape(n, xs, choice != NULL, choice);
    cot_tape      *t = on ? cot__tape_of(1, on) : NULL;
    if (!t) return on ? cot__status_of(1, on) : COT_VAR;
    if (!cot__check_call(t, name, body, n, xs, m, ys) || (choice && !cot__check_call(t, name, other, n, xs, m, ys)))
        return t->status;
    cot__loop *l = make_loop(t, name, NULL);
    int        given = n + (choice != NULL);
    uint32_t  *index = l ? cot__arena(t, ((size_t)given + 1) * sizeof *index, name) : NULL, *x = index;
    cot_var   *examples = index ? cot__arena(t, ((size_t)n + 1) * sizeof *examples, name) : NULL;
    if (!examples || (choice && !enter_inputs(name, "choice", t, 1, choice, x++)) ||
        !enter_inputs(name, "xs", t, n, xs, x))
        return t->status;
    if (choice && cot__ndim_at(t, index[0]) != 0) {
        char text[COT__SHAPE_TEXT];
        cot__fail(t, COT_SHAPE, "[%s] the choice has shape %s; it must be one number, or use cot_where", name,
                  cot__shape_text_at(t, index[0], text));
        return t->status;
    }
    for (int k = 0; k < n; k++) examples[k] = VAR(t, x[k]);
    l->consts = n, l->nys = m, l->once = true, l->length = 1;
    l->rules = rules, l->user = user;
    l->body[0] = choice ? cot__region_record_part(t, name, cot__branch(0), body, user, n, examples, m)
                        : cot__region_record(t, name, body, user, n, examples, m);
    if (choice && l->body[0])
        l->body[1] = cot__region_record_part(t, name, cot__branch(1), other, user, n, examples, m);
    if (!l->body[0] || (choice && (!l->body[1] || !branches_agree(t, l)))) return t->status;
    uint32_t *args = cot__arena(t, ((size_t)cot__loop_operands(l) + 1) * sizeof *args, name);
    if (!args) return t->status;
    memcpy(args, index, (size_t)given * sizeof *args);
    return record(t, l, args, given, ys);
}

static cot_status run_once(const char *name, const cot_var *choice, cot_fn body, cot_fn other,
                           const cot_fn_rules *rules, void *user, int n, const cot_var *xs, int m, cot_var *ys) {
    /* taken before ys are written, because ys may be the same memory as xs */
    cot_tape  *t = tape_in(n, xs, choice != NULL, choice);
    cot_status status = record_once(name, choice, body, other, rules, user, n, xs, m, ys);
    if (status != COT_OK) fail_all(t, m, ys);
    return status;
}

cot_status cot_cond(cot_var choice, cot_fn then, cot_fn otherwise, void *user, int n, const cot_var *xs, int m,
                    cot_var *ys) {
    return run_once("cond", &choice, then, otherwise, NULL, user, n, xs, m, ys);
}

cot_status cot_checkpoint(cot_fn f, void *user, int n, const cot_var *xs, int m, cot_var *ys) {
    return run_once("checkpoint", NULL, f, NULL, NULL, user, n, xs, m, ys);
}

cot_status cot_custom_fn(const cot_fn_rules *rules, cot_fn f, void *user, int n, const cot_var *xs, int m,
                         cot_var *ys) {
    const char *name = rules && rules->name ? rules->name : "custom_fn";
    cot_tape   *t = cot__tape_of(n, xs);
    if (t && (!rules || (!rules->vjp && !rules->jvp))) {
        cot__fail(t, COT_VALUE, "[%s] no rules; give a vjp, a jvp or both", name);
        fail_all(t, m, ys);
        return t->status;
    }
    return run_once(name, NULL, f, NULL, rules, user, n, xs, m, ys);
}
