/* cost.c: computes what the derivative of a recorded function costs in either mode, and for how
 * many outputs both cost the same. */
#include "trace/cost/cost.h"

#include "base/number.h"
#include "tape/flow.h"
#include "trace/cost/cost_rules.h"

#include <string.h>

/* Data on each node 0 … y. */
typedef struct survey {
    cot_tape *t;
    uint32_t  y;
    uint8_t  *shown;   /* y depends on the node (SHOWN), on a path that adjoints take (FLOWS) */
    uint8_t  *matters; /* the node lies between an input and y, on a path that derivatives take */
    uint8_t  *input;
    uint8_t  *arrived; /* marks of the present walk */
    uint32_t *owner;   /* the node whose memory holds the value */
    uint32_t *last;    /* of an owner: the last node that uses its memory */
    /* of an owner: the first node whose backward rule reads its memory; COT__NONE: none */
    uint32_t *reader;
    char     *memory;
    size_t    bytes;
} survey;

/* ---- the survey ------------------------------------------------------------------------------ */

static bool survey_open(survey *s, cot_tape *t, uint32_t y) {
    size_t n = (size_t)y + 1, padded = (n + 3) / 4 * 4;
    *s = (survey){.t = t, .y = y, .bytes = 3 * n * sizeof(uint32_t) + 4 * padded};
    if (!(s->memory = cot__alloc(&t->al, s->bytes))) return false;
    memset(s->memory, 0, s->bytes);
    s->owner = (uint32_t *)(void *)s->memory, s->last = s->owner + n, s->reader = s->last + n;
    s->shown = (uint8_t *)(s->reader + n), s->matters = s->shown + padded, s->input = s->matters + padded,
    s->arrived = s->input + padded;
    return true;
}

/* Does a derivative pass from node i to its operand k? */
static bool passes(const cot_tape *t, uint32_t i, int k) {
    const cot__node *n = &t->nodes[i];
    uint32_t         a = cot__arg(n, k), inactive = cot__op_of(n->op)->inactive;
    return a != COT__NONE && (n->flags & COT__ACTIVE) && (t->nodes[a].flags & COT__ACTIVE) &&
           !(k < 32 && inactive >> k & 1);
}

enum { SHOWN = 1, FLOWS = 2 };

static cot__onward where_adjoints_flow(cot__flow *w, uint32_t i) {
    const survey *s = w->ctx;
    return s->shown[i] & FLOWS ? COT__FLOW_ON : COT__FLOW_PAST;
}

/* Down: finds what y depends on and where adjoints flow. Up: finds which of these nodes depend on
 * an input. */
static void survey_paths(survey *s, int n, const cot_var *inputs) {
    cot_tape *t = s->t;
    cot__flow down = {.t = t, .end = s->y + 1, .mark = s->shown};
    cot__flow up = {.t = t, .end = s->y + 1, .mark = s->matters, .visit = where_adjoints_flow, .ctx = s};
    s->shown[s->y] = SHOWN | FLOWS;
    cot__flow_down(&down, SHOWN, COT__EDGES_ALL);
    cot__flow_down(&down, FLOWS, COT__EDGES_SWEPT);
    for (int k = 0; k < n; k++)
        if (cot__index(inputs[k]) <= s->y && (t->nodes[cot__index(inputs[k])].flags & COT__ACTIVE))
            s->input[cot__index(inputs[k])] = 1;
    for (uint32_t i = 0; i <= s->y; i++) {
        if (n == 0 && t->nodes[i].op == OP_leaf && s->shown[i]) s->input[i] = 1;
        if (s->shown[i] & FLOWS) s->matters[i] = s->input[i];
    }
    cot__flow_up(&up, 1, COT__EDGES_SWEPT);
}

static void survey_uses(survey *s) {
    for (uint32_t i = 0; i <= s->y; i++) {
        uint32_t with;
        s->owner[i] = cot__shares_storage(s->t, i, &with) ? s->owner[with] : i;
        s->last[i] = i;
        s->reader[i] = COT__NONE;
        if (!s->shown[i]) continue;
        const cot__node *n = &s->t->nodes[i];
        uint32_t         mask = s->matters[i] && !s->input[i] ? cot__values_read(s->t, i) : 0;
        for (int k = 0, count = cot__nargs(n); k < count; k++) {
            uint32_t a = cot__arg(n, k) == COT__NONE ? COT__NONE : s->owner[cot__arg(n, k)];
            if (a == COT__NONE) continue;
            s->last[a] = i;
            if (cot__saves_operand(mask, k) && s->reader[a] == COT__NONE) s->reader[a] = i;
        }
        if ((mask & COT__SAVES_Z) && s->reader[s->owner[i]] == COT__NONE) s->reader[s->owner[i]] = i;
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static double bytes_at(const survey *s, uint32_t i) {
    return (double)cot__bytes_at(s->t, i);
}

/* A value is freed after its last use. Inputs, leaves, constants and y stay. */
static bool stays(const survey *s, uint32_t owner) {
    return s->input[owner] || owner == s->owner[s->y] || cot__op_of(s->t->nodes[owner].op)->kind == KIND_SOURCE;
}

typedef enum mode { EVALUATE, FORWARD, REVERSE } mode;

/* The most memory that is held at once while y is computed. *left: the memory held at the end. */
static double peak_upward(survey *s, mode m, double *left) {
    double live = 0, peak = 0;
    memset(s->arrived, 0, (size_t)s->y + 1);
    for (uint32_t i = 0; i <= s->y; i++) {
        if (!s->shown[i]) continue;
        double weight = m == FORWARD && s->matters[i] ? 2 : 1;
        if (s->owner[i] == i) live += weight * bytes_at(s, i);
        peak = live > peak ? live : peak;
        for (int k = 0, count = cot__nargs(&s->t->nodes[i]); k < count; k++) {
            uint32_t a = cot__arg(&s->t->nodes[i], k);
            if (a == COT__NONE) continue;
            a = s->owner[a];
            if (s->arrived[a] || s->last[a] != i || stays(s, a) || (m == REVERSE && s->reader[a] != COT__NONE))
                continue;
            /* freed once, however often it is an operand */
            s->arrived[a] = 1;
            live -= (m == FORWARD && s->matters[a] ? 2 : 1) * bytes_at(s, a);
        }
    }
    *left = live;
    return peak;
}

/* The sweep. An adjoint is held from its first contribution to its own step. A saved value is held
 * until the last rule that reads it, which is the rule of the node recorded first. */
static double peak_downward(survey *s, double live, double peak) {
    memset(s->arrived, 0, (size_t)s->y + 1);
    s->arrived[s->y] = 1;
    live += bytes_at(s, s->y);
    for (uint32_t i = s->y + 1; i-- > 0;) {
        if (!s->matters[i]) continue;
        for (int k = 0, count = s->input[i] ? 0 : cot__nargs(&s->t->nodes[i]); k < count; k++) {
            uint32_t a = cot__arg(&s->t->nodes[i], k);
            if (a == COT__NONE || !passes(s->t, i, k) || !s->matters[a] || s->arrived[a]) continue;
            s->arrived[a] = 1;
            live += bytes_at(s, a);
        }
        peak = live > peak ? live : peak;
        if (!s->input[i]) live -= bytes_at(s, i);
        for (int k = -1, count = cot__nargs(&s->t->nodes[i]); k < count; k++) {
            uint32_t a = k < 0 ? i : cot__arg(&s->t->nodes[i], k);
            if (a == COT__NONE) continue;
            a = s->owner[a];
            if (s->reader[a] != i || stays(s, a)) continue;
            live -= bytes_at(s, a);
            s->reader[a] = COT__NONE; /* freed once */
        }
    }
    return peak;
}

/* ---- both together --------------------------------------------------------------------------- */

/* A mode is impossible (NaN) if a rule cannot run: a value that it reads was overwritten, or a
 * custom operation has no such rule. False when memory is short. */
static bool impossible(survey *s, double *sweep, char why[512]) {
    cot_tape *t = s->t;
    memcpy(why, t->errors.message, sizeof t->errors.message);
    bool memory = t->status == COT_MEMORY;
    cot_tape_clear_error(t);
    *sweep = (double)NAN;
    return !memory;
}

static bool count_sweeps(survey *s, cot__cost *c, char why[512]) {
    cot__cost_sweep forward = {.t = s->t, .matters = s->matters},
                    reverse = {.t = s->t, .matters = s->matters, .arrived = s->arrived};
    for (uint32_t i = 0; i <= s->y; i++) {
        int64_t operations, bytes;
        if (!s->shown[i]) continue;
        cot__cost_of_node(s->t, i, &operations, &bytes);
        c->function_operations += (double)operations;
        if (!s->matters[i] || s->input[i] || isnan(forward.operations)) continue;
        if (!cot__cost_forward(&forward, i) && !impossible(s, &forward.operations, why)) return false;
    }
    for (uint32_t i = s->y + 1; i-- > 0 && !isnan(reverse.operations);)
        if (s->matters[i] && !s->input[i] && !cot__cost_backward(&reverse, i) &&
            !impossible(s, &reverse.operations, why))
            return false;
    c->forward_sweep = forward.operations;
    c->reverse_sweep = reverse.operations;
    return true;
}

static void compare(cot__cost *c, const char *why) {
    double n = (double)c->inputs, m = (double)c->outputs;
    c->forward_operations = c->function_operations + n * c->forward_sweep;
    c->reverse_operations = c->function_operations + m * c->reverse_sweep;
    bool forth = !isnan(c->forward_sweep), back = !isnan(c->reverse_sweep);
    c->cheaper = back - forth;
    if (forth && back)
        c->cheaper = (c->reverse_operations < c->forward_operations) - (c->reverse_operations > c->forward_operations);
    c->crossing = c->reverse_sweep > 0 ? n * c->forward_sweep / c->reverse_sweep : (double)NAN;
    const char *unit = c->abstract ? "evaluations" : "operations";
    if (!forth || !back)
        snprintf(c->why, sizeof c->why, "a sweep is impossible: %.200s", why);
    else if (isnan(c->crossing))
        snprintf(c->why, sizeof c->why, "a reverse sweep costs nothing here, so it is never dearer");
    else {
        char same[64] = "reverse mode costs more for any number of outputs";
        if (c->crossing >= 1)
            cot__format(same, sizeof same, "the same at %.4g output%s", c->crossing, c->crossing == 1 ? "" : "s");
        cot__format(c->why, sizeof c->why,
                    "forward mode sweeps once for each of %lld input%s (%g %s each), reverse mode once for each output "
                    "(%g %s each): %s",
                    (long long)c->inputs, c->inputs == 1 ? "" : "s", c->forward_sweep, unit, c->reverse_sweep, unit,
                    same);
    }
}

bool cot__cost_of(cot__cost *c, cot_var y, int n, const cot_var *inputs, char why[512]) {
    survey s;
    *c = (cot__cost){0};
    why[0] = 0;
    if (cot__is_number(y) || !cot_is_valid(y)) {
        snprintf(why, 512, "[cost] y is not a value on a tape");
        return false;
    }
    for (int k = 0; k < n; k++)
        if (cot__is_number(inputs[k]) || !cot_is_valid(inputs[k]) || inputs[k].tape != y.tape) {
            snprintf(why, 512, "[cost] input %d is not a value on the tape of y", k);
            return false;
        }
    cot_tape *t = y.tape;
    if (t->status != COT_OK) {
        memcpy(why, t->errors.message, sizeof t->errors.message);
        return false;
    }
    if (!survey_open(&s, t, cot__index(y))) {
        snprintf(why, 512, "[cost] out of memory: a survey of %lld nodes", (long long)cot__index(y) + 1);
        return false;
    }
    survey_paths(&s, n, inputs);
    survey_uses(&s);
    c->outputs = cot_size(y);
    for (uint32_t i = 0; i <= s.y && n == 0; i++) c->inputs += s.input[i] ? cot__size_at(t, i) : 0;
    for (int k = 0; k < n; k++)
        c->inputs += t->nodes[cot__index(inputs[k])].flags & COT__ACTIVE ? cot_size(inputs[k]) : 0;
    bool   ok = count_sweeps(&s, c, why);
    double left;
    c->function_bytes = peak_upward(&s, EVALUATE, &left);
    c->forward_bytes = peak_upward(&s, FORWARD, &left);
    c->reverse_bytes = peak_upward(&s, REVERSE, &left);
    c->reverse_bytes = peak_downward(&s, left, c->reverse_bytes);
    cot__free(&t->al, s.memory, s.bytes);
    if (!ok) return false;
    compare(c, why);
    why[0] = 0;
    return true;
}

/* The classical bounds (Griewank and Walther, Evaluating Derivatives, chapter 4): value and one
 * tangent within 5/2 evaluations, value and one gradient within 4. Memory: at least the inputs and
 * outputs, and as many tangents or adjoints, in f64. Reverse mode keeps the tape besides. It grows
 * with the operations of the function, which are not known here. */
void cot__cost_of_sizes(cot__cost *c, int64_t n, int64_t m) {
    *c                = (cot__cost){.inputs              = n,
                                    .outputs             = m,
                                    .abstract            = true,
                                    .function_operations = 1,
                                    .forward_sweep       = 1.5,
                                    .reverse_sweep       = 3};
    c->function_bytes = 8 * ((double)n + (double)m);
    c->forward_bytes = c->reverse_bytes = 2 * c->function_bytes;
    compare(c, "");
}
