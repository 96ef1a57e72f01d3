/* step_panel.c: the text about a step, one line at a time. So a step with very many additions costs
 * no more than its visible lines. */
#include <string.h>

#include "step/step_draw.h"
#include "trace/operand_letters.h"

/* WIDE: from this many columns on an addition fits on one line. OPERANDS: operands whose names a
 * formula shows */
enum { WIDE = 64, OPERANDS = 6 };

static const char *walk_name(const step_view *v, int walk) { return v->tangents->w.walk[walk].name; }

const char *panel_title(const step_view *v, char *buf, size_t size) {
    int64_t    index;
    step_phase phase = step_where(v->m, &index);
    long long  k = (long long)index + 1;
    switch (phase) {
    case STEP_FORWARD: snprintf(buf, size, "forward: node %lld of %lld", k, (long long)v->m->nodes); break;
    case STEP_SEED: snprintf(buf, size, v->tangents->on ? "tangents: forward mode" : "reverse: the seed"); break;
    case STEP_REVERSE:
        if (v->tangents->on) {
            int64_t node;
            int     walk = tangents_walk(v->tangents, index, &node, v->x);
            snprintf(buf, size, "tangents: %.60s moves, walk %d of %d", walk_name(v, walk), walk + 1,
                     v->tangents->w.walks);
            break;
        }
        snprintf(buf, size, "reverse: step %lld of %lld", k, (long long)v->m->steps); break;
    case STEP_END:
        if (v->m->steps == 0) snprintf(buf, size, "no reverse sweep");
        else snprintf(buf, size, v->tangents->on ? "the derivatives" : "the gradient");
        break;
    }
    return buf;
}

static const char *label(const step_view *v, int64_t node, char *buf, size_t size) {
    return cot__trace_label(v->x->trace, node, buf, size);
}

/* "name   text". */
static void entry(step_line *l, const char *name, step_ink ink, const char *text) {
    step_cell(l, INK_FAINT, 7, name);
    step_put(l, ink, l->left, text);
}

/* A number with all its digits, so that it reads back to the same number; an array as in tables. */
static const char *value_text(const cot__view *value, int width, char *buf, size_t size) {
    char text[64];
    if (value->ndim > 0) return cot__trace_value_text(value, width, buf, size);
    snprintf(buf, size, "%s", cot__element_text(value->data, value->dtype, text));
    return buf;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* "x·y = x1·x2": the formula in letters, then with the operands. */
static void formula_line(const step_view *v, int64_t node, step_line *l) {
    const cot__trace_node *n = &v->x->trace->nodes[node];
    char                   formula[COT__TRACE_TEXT], filled[COT__TRACE_TEXT], text[2 * COT__TRACE_TEXT + 4];
    char                   letter[OPERANDS][16], name[OPERANDS][64], number[32];
    cot__renaming          with = {.count = n->nargs};
    cot__trace_formula(v->x->trace, node, formula, sizeof formula);
    snprintf(text, sizeof text, "%s", formula);
    if (n->nargs > 0 && n->nargs <= OPERANDS) {
        for (int k = 0; k < n->nargs; k++) {
            with.letter[k] = cot__operand_letter(n->op, k, n->nargs, letter[k]);
            with.name[k] = name[k];
            if (n->args[k] != COT__NONE) label(v, cot__trace_find(v->x->trace, n->args[k]), name[k], sizeof name[k]);
            else snprintf(name[k], sizeof name[k], "%s", cot__shortest(n->number, number));
        }
        cot__formula_fill(formula, &with, filled, sizeof filled);
        if (strcmp(filled, formula) != 0) snprintf(text, sizeof text, "%s = %s", formula, filled);
    }
    entry(l, "rule", INK_PLAIN, text);
}

/* The values that are kept for the reverse sweep. */
static void saves_line(const step_view *v, int64_t node, step_line *l) {
    const cot__trace_node *n = &v->x->trace->nodes[node];
    char                   text[COT__TRACE_TEXT] = "";
    size_t                 used = 0;
    for (int k = 0; k < n->nargs && used + 80 < sizeof text; k++) {
        /* x·x names its operand once */
        bool again = k > 0 && n->args[k] == n->args[k - 1] && cot__saves_operand(n->saves, k - 1);
        if (!cot__saves_operand(n->saves, k) || n->args[k] == COT__NONE || again) continue;
        if (used) used += (size_t)snprintf(text + used, sizeof text - used, ", ");
        used += strlen(label(v, cot__trace_find(v->x->trace, n->args[k]), text + used, 64));
    }
    if (n->saves & COT__SAVES_Z) snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", n->label);
    if (text[0]) entry(l, "saves", INK_PLAIN, text);
    else entry(l, "saves", INK_FAINT, n->active ? "nothing" : "nothing: no derivative passes here");
}

static void forward_line(const step_view *v, int64_t node, int64_t line, step_line *l) {
    const cot__trace      *tr = v->x->trace;
    const cot__trace_node *n = &tr->nodes[node];
    char                   text[COT__TRACE_TEXT];
    size_t                 used;
    switch (line) {
    case 0:
        used = strlen(label(v, node, text, 128));
        used += (size_t)snprintf(text + used, sizeof text - used, n->op == OP_leaf ? ", an input" : " = ");
        if (n->op != OP_leaf) cot__trace_call(tr, node, text + used, sizeof text - used);
        step_put(l, INK_FORWARD, l->left, text);
        return;
    case 1:
        if (n->overwritten) entry(l, "value", INK_BOLD, "overwritten since");
        else entry(l, "value", INK_BOLD, value_text(&n->value, l->left - 9, text, sizeof text));
        return;
    case 2:
        used = (size_t)snprintf(text, sizeof text, "%s (", cot__dtype_name(n->value.dtype));
        for (int k = 0; k < n->value.ndim; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", k ? ", " : "",
                                     (long long)n->value.shape[k]);
        snprintf(text + used, sizeof text - used, n->value.ndim == 1 ? ",)" : ")");
        entry(l, "shape", INK_PLAIN, text);
        return;
    case 3: formula_line(v, node, l); return;
    default: saves_line(v, node, l);
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

static void seed_line(const step_view *v, int64_t line, step_line *l) {
    char text[COT__TRACE_TEXT], own[128], bar[132];
    label(v, v->x->trace->output, own, sizeof own);
    cot__with_bar(own, bar, sizeof bar);
    if (line == 0) {
        snprintf(text, sizeof text, "The sweep begins at %s, the value, whose adjoint is the seed:", own);
        step_put(l, INK_PLAIN, l->left, text);
    } else if (line == 1) {
        size_t used = (size_t)snprintf(text, sizeof text, "%s = ", bar);
        value_text(&v->x->trace->steps[0].adjoint, l->left - cot__columns(text), text + used, sizeof text - used);
        step_put(l, INK_REVERSE, l->left, text);
    } else {
        step_put(l, INK_PLAIN, l->left, "All other adjoints are 0; each will be the sum of what is added to it.");
    }
}

/* The node and its adjoint, which is complete now. */
static void step_head(const step_view *v, int64_t step, step_line *l) {
    const cot__trace_step *s = &v->x->trace->steps[step];
    char                   text[COT__TRACE_TEXT], own[128], bar[132];
    int                    half = l->left / 2;
    label(v, s->node, own, sizeof own);
    size_t used = (size_t)snprintf(text, sizeof text, "%s = ", own);
    cot__trace_call(v->x->trace, s->node, text + used, sizeof text - used);
    if (v->x->trace->nodes[s->node].op == OP_leaf) snprintf(text, sizeof text, "%s", own);
    step_put(l, INK_REVERSE, half, text);
    used = (size_t)snprintf(text, sizeof text, ", adjoint %s = ", cot__with_bar(own, bar, sizeof bar));
    value_text(&s->adjoint, l->left - cot__columns(text), text + used, sizeof text - used);
    step_put(l, INK_BOLD, l->left, text);
}

static void remark(const step_view *v, int64_t step, step_line *l) {
    const cot__trace_step *s = &v->x->trace->steps[step];
    char                   text[256], own[128];
    label(v, s->node, own, sizeof own);
    if (v->x->trace->nodes[s->node].op == OP_leaf)
        snprintf(text, sizeof text, "%s is an input: its adjoint is the gradient.", own);
    else if (s->skipped) snprintf(text, sizeof text, "Zero, or nothing, has arrived: there is nothing to pass on.");
    else snprintf(text, sizeof text, "It passes nothing on.");
    step_put(l, INK_PLAIN, l->left, text);
}

typedef struct addition {
    char to[128], rule[COT__TRACE_TEXT], filled[COT__TRACE_TEXT], amount[COT__TRACE_TEXT], sum[COT__TRACE_TEXT];
} addition;

static addition read_addition(const step_view *v, int64_t step, int k, int width) {
    const cot__trace     *tr = v->x->trace;
    const cot__trace_add *add = &tr->steps[step].adds[k];
    addition              a;
    char                  own[120];
    label(v, cot__trace_find(tr, add->to), own, sizeof own);
    cot__with_bar(own, a.to, sizeof a.to);
    cot__trace_rule(tr, step, k, a.rule, sizeof a.rule);
    cot__trace_filled(tr, step, k, a.filled, sizeof a.filled);
    cot__trace_value_text(&add->amount, width, a.amount, sizeof a.amount);
    cot__trace_value_text(&add->sum, width, a.sum, sizeof a.sum);
    return a;
}

/* The columns: target, rule, rule with names, amount, sum so far. */
static void addition_row(step_line *l, int columns, step_ink ink, const char *to, const char *rule, const char *filled,
                         const char *amount, const char *sum) {
    int number = (columns - 16) / 5, formula = (columns - 14 - 2 * number) / 2;
    step_cell(l, ink == INK_BOLD ? INK_BOLD : INK_REVERSE, 6, to);
    step_cell(l, ink, formula, rule);
    step_cell(l, ink, formula, filled);
    step_cell(l, ink, number, amount);
    step_put(l, INK_BOLD, number, sum);
}

static void addition_line(const step_view *v, int64_t step, int64_t line, step_line *l) {
    char text[4 * COT__TRACE_TEXT];
    if (v->columns >= WIDE && line == 0) {
        addition_row(l, v->columns, INK_BOLD, "to", "rule", "filled in", "adds", "so far");
    } else if (v->columns >= WIDE) {
        addition a = read_addition(v, step, (int)line - 1, (v->columns - 16) / 5);
        addition_row(l, v->columns, INK_PLAIN, a.to, a.rule, a.filled, a.amount, a.sum);
    } else {
        addition a = read_addition(v, step, (int)(line / 2), v->columns / 3);
        if (line % 2 == 0) snprintf(text, sizeof text, "%s += %s  (%s)", a.to, a.filled, a.rule);
        else snprintf(text, sizeof text, "  adds %s, so far %s", a.amount, a.sum);
        step_put(l, line % 2 ? INK_PLAIN : INK_REVERSE, l->left, text);
    }
}

/* ---- tangents -------------------------------------------------------------------------------- */

static void start_tangents_line(const step_view *v, int64_t line, step_line *l) {
    char text[256];
    if (line == 0)
        snprintf(text, sizeof text, "A tangent says how a value moves with an input. Each number has a walk: %d.",
                 v->tangents->w.walks);
    else if (line == 1)
        snprintf(text, sizeof text, "The input that moves has the tangent 1, all others have 0;");
    else
        snprintf(text, sizeof text, "then each operation turns its operands' tangents into its own, with the values.");
    step_put(l, INK_PLAIN, l->left, text);
}

static void tangent_value(const step_view *v, int64_t node, int64_t swept, step_line *l) {
    char      text[COT__TRACE_TEXT], own[120], dot[128];
    int64_t   stride[COT_MAX_NDIM];
    cot__view value;
    cot__with_mark(label(v, node, own, sizeof own), COT__DOT, dot, sizeof dot);
    snprintf(text, sizeof text, "%s = ", dot);
    step_put(l, INK_TANGENT, l->left, text);
    if (tangents_read(v->tangents, v->x, node, swept, &value, stride))
        step_put(l, INK_BOLD, l->left, value_text(&value, l->left, text, sizeof text));
}

static void tangent_line(const step_view *v, int64_t step, int64_t line, step_line *l) {
    char    text[COT__TRACE_TEXT + 256], own[128], rule[COT__TRACE_TEXT];
    int64_t node;
    int     walk = tangents_walk(v->tangents, step, &node, v->x);
    label(v, node, own, sizeof own);
    if (line == 1) tangent_value(v, node, step + 1, l);
    else if (step % (1 + v->tangents->count) == 0) {
        bool whole = v->tangents->w.walk[walk].place < 0;
        snprintf(text, sizeof text, "%s moves: by 1%s.", walk_name(v, walk), whole ? ", in each element" : "");
        step_put(l, line ? INK_PLAIN : INK_TANGENT, l->left, line ? "All other inputs stay." : text);
    } else if (line == 0) {
        snprintf(text, sizeof text, "%s = %s", own, cot__trace_call(v->x->trace, node, rule, sizeof rule));
        step_put(l, INK_TANGENT, l->left, text);
    } else
        entry(l, "rule", INK_PLAIN, cot__tangent_rule(v->x->trace, node, rule, sizeof rule));
}

/* The tangent of the value at the end of each walk. */
static void derivative_line(const step_view *v, int64_t line, step_line *l) {
    char text[256];
    snprintf(text, sizeof text, "along %.100s: ", walk_name(v, (int)line));
    step_put(l, INK_PLAIN, l->left, text);
    tangent_value(v, v->x->trace->output, (line + 1) * (1 + v->tangents->count), l);
}

/* ---- the end --------------------------------------------------------------------------------- */

static const char *reason(const step_view *v) {
    return v->x->trace->why[0] ? v->x->trace->why : "The value depends on no float input: there is nothing to sweep.";
}

/* Input k among those whose gradient was asked for. */
static const problem_input *wanted(const step_view *v, int64_t k) {
    const problem *p = &v->x->p;
    for (int i = 0; i < p->n; i++)
        if (p->inputs[i].wanted && k-- == 0) return &p->inputs[i];
    return NULL;
}

static void gradient_line(const step_view *v, int64_t line, step_line *l) {
    const cot__trace    *tr = v->x->trace;
    const problem_input *in = line > 0 ? wanted(v, line - 1) : NULL;
    char                 name[128] = "value", text[COT__TRACE_TEXT];
    cot__view            value = tr->nodes[tr->output].value;
    bool                 there = true;
    if (line > 0 && !in) return;
    if (in) {
        snprintf(name, sizeof name, "d/d%.100s", in->name);
        there = cot__trace_adjoint(tr, cot__trace_find(tr, cot__index(in->var)), &value);
    }
    step_put(l, in ? INK_REVERSE : INK_FORWARD, l->left, name);
    step_put(l, INK_PLAIN, l->left, " = ");
    step_put(l, INK_BOLD, l->left,
             there ? value_text(&value, l->left, text, sizeof text) : "0: the value does not depend on it");
}

/* ---- all ------------------------------------------------------------------------------------- */

int64_t panel_lines(const step_view *v) {
    int64_t index, adds;
    switch (step_where(v->m, &index)) {
    case STEP_FORWARD: return 5;
    case STEP_SEED: return 3;
    case STEP_REVERSE:
        if (v->tangents->on) return 3;
        adds = v->x->trace->steps[index].add_count;
        return adds == 0 ? 2 : v->columns >= WIDE ? 2 + adds : 1 + 2 * adds;
    case STEP_END: break;
    }
    int64_t n = 1;
    if (v->m->steps == 0) return step_wrapped(reason(v), v->columns, -1, NULL, 0);
    if (v->tangents->on) return v->tangents->w.walks;
    while (wanted(v, n - 1)) n++;
    return n;
}

void panel_line(const step_view *v, int64_t line, step_line *l) {
    int64_t index;
    char    text[COT__TRACE_TEXT];
    switch (step_where(v->m, &index)) {
    case STEP_FORWARD: forward_line(v, index, line, l); break;
    case STEP_SEED:
        if (v->tangents->on) start_tangents_line(v, line, l);
        else seed_line(v, line, l);
        break;
    case STEP_REVERSE:
        if (v->tangents->on) {
            tangent_line(v, index, line, l);
            break;
        }
        if (line == 0) step_head(v, index, l);
        else if (v->x->trace->steps[index].add_count == 0) remark(v, index, l);
        else addition_line(v, index, line - 1, l);
        break;
    case STEP_END:
        if (v->m->steps && v->tangents->on) {
            derivative_line(v, line, l);
        } else if (v->m->steps) {
            gradient_line(v, line, l);
        } else {
            step_wrapped(reason(v), v->columns, (int)line, text, sizeof text);
            step_put(l, INK_PLAIN, l->left, text);
        }
        break;
    }
}
