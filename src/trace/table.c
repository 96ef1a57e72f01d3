/* table.c: a trace as two tables for a terminal: the tape downward, and the sweep upward. */
#include "trace/trace.h"

#include "ops/elementwise/elementwise.h"
#include "tape/show.h"
#include "trace/tangents.h"

#include <string.h>

/* ANSI colours mean the same as on the web page: blue forward, orange backward, green
 * tangents. */
typedef enum ink { PLAIN, HEAD, FORWARD, BACKWARD, FAINT, STRONG, TANGENT } ink;

static void put(FILE *out, cot__trace_look look, ink colour, const char *text) {
    static const char *const start[] = {"", "\x1b[1m", "\x1b[34m", "\x1b[33m", "\x1b[2m", "\x1b[1m", "\x1b[32m"};
    if (!look.colour || colour == PLAIN || !*text)
        fputs(text, out);
    else
        fprintf(out, "%s%s\x1b[0m", start[colour], text);
}

/* Writes a cell, cut to its width. Unless it is the last one, it is filled up, with two blanks
 * before the next cell. */
static void cell(FILE *out, cot__trace_look look, ink colour, int width, bool last, const char *text) {
    char fitted[COT__TRACE_TEXT];
    cot__fit(text, width, fitted, sizeof fitted);
    put(out, look, colour, fitted);
    if (!last) fprintf(out, "%*s", width - cot__columns(fitted) + 2, "");
}

static int total(cot__trace_look look) {
    int width = look.width ? look.width : 80;
    return width < 40 ? 40 : width;
}

/* Widths of all columns but the last, which gets the remaining space. */
typedef struct widths { int node, call, value, saves; } widths;
static widths forward_widths(cot__trace_look look) {
    int    w = total(look);
    widths c = {.node = w >= 60 ? 10 : 6, .call = w * 3 / 8, .value = w * 5 / 16};
    c.saves = w - c.node - c.call - c.value - 6;
    return c;
}

typedef struct sweep_widths { int node, adjoint, to, rule, amount, sum; } sweep_widths;
static sweep_widths sweep_columns(cot__trace_look look) {
    int          w = total(look) - 10;
    sweep_widths c = {.node = w >= 60 ? 8 : 4, .to = w >= 60 ? 6 : 4};
    int          rest = w - c.node - c.to;
    c.adjoint = rest * 7 / 32, c.amount = rest * 7 / 32, c.sum = rest * 7 / 32;
    c.rule = rest - c.adjoint - c.amount - c.sum;
    return c;
}

/* Writes a line without blanks at its end. The last cell that is not empty may use the rest of the
 * line. */
static void row(FILE *out, cot__trace_look look, int n, const int *width, const ink *colour, const char *const *text) {
    int left = total(look);
    while (n > 0 && !*text[n - 1]) n--;
    for (int k = 0; k < n; k++) {
        cell(out, look, colour[k], k == n - 1 ? left : width[k], k == n - 1, text[k]);
        left -= width[k] + 2;
    }
    fputc('\n', out);
}

/* ---- forward --------------------------------------------------------------------------------- */

void cot__trace_table_forward_head(FILE *out, cot__trace_look look) {
    widths c = forward_widths(look);
    row(out, look, 4, (int[]){c.node, c.call, c.value, c.saves}, (ink[]){HEAD, HEAD, HEAD, HEAD},
        (const char *[]){"node", "operation", "value", "saves"});
}

/* Writes the operands and the result that the backward rule reads: "x y v₅". */
static void saved_nodes(const cot__trace *tr, const cot__trace_node *n, char *buf, size_t size) {
    cot__text   x = cot__text_buffer(buf, size);
    const char *gap = "";
    char        label[64];
    for (int k = 0; k < n->nargs && x.used + 1 < x.size; k++) {
        /* x·x names its operand once */
        bool before = k > 0 && k < 3 && n->args[k] == n->args[k - 1] && cot__saves_operand(n->saves, k - 1);
        if (!cot__saves_operand(n->saves, k) || n->args[k] == COT__NONE || before) continue;
        cot__put(&x, gap), cot__put(&x, cot__trace_label(tr, cot__trace_find(tr, n->args[k]), label, sizeof label));
        gap = " ";
    }
    if (n->saves & COT__SAVES_Z) cot__put(&x, gap), cot__put(&x, n->label);
}

/* Writes the value, with its dtype if it is not the usual one. */
static void value_cell(const cot__trace_node *n, int width, char *buf, size_t size) {
    cot_dtype dtype = n->value.dtype;
    int       used = dtype == COT_F64 || dtype == COT_BOOL ? 0 : snprintf(buf, size, "%s ", cot__dtype_name(dtype));
    if (n->overwritten)
        snprintf(buf + used, size - (size_t)used, "(overwritten)");
    else
        cot__trace_value_text(&n->value, width - used, buf + used, size - (size_t)used);
}

void cot__trace_table_node(FILE *out, const cot__trace *tr, int64_t node, cot__trace_look look) {
    const cot__trace_node *n = &tr->nodes[node];
    widths                 c = forward_widths(look);
    char                   call[COT__TRACE_TEXT], value[COT__TRACE_TEXT], saves[COT__TRACE_TEXT];
    cot__trace_call(tr, node, call, sizeof call);
    saved_nodes(tr, n, saves, sizeof saves);
    value_cell(n, c.value, value, sizeof value);
    row(out, look, 4, (int[]){c.node, c.call, c.value, c.saves},
        (ink[]){FORWARD, PLAIN, n->active ? STRONG : FAINT, FAINT}, (const char *[]){n->label, call, value, saves});
}

/* ---- backward -------------------------------------------------------------------------------- */

void cot__trace_table_sweep_head(FILE *out, const cot__trace *tr, cot__trace_look look) {
    sweep_widths c = sweep_columns(look);
    (void)tr;
    row(out, look, 6, (int[]){c.node, c.adjoint, c.to, c.rule, c.amount, c.sum},
        (ink[]){HEAD, HEAD, HEAD, HEAD, HEAD, HEAD},
        (const char *[]){"node", "adjoint", "to", "rule", "adds", "so far"});
}

static const char *remark(const cot__trace *tr, const cot__trace_step *step) {
    const cot__trace_node *n = &tr->nodes[step->node];
    if (n->op == OP_leaf) return "the gradient";
    if (step->skipped) return "zero: nothing to pass on";
    return step->add_count ? "" : "passes nothing on";
}

void cot__trace_table_step(FILE *out, const cot__trace *tr, int64_t step, cot__trace_look look) {
    const cot__trace_step *s = &tr->steps[step];
    const cot__trace_node *n = &tr->nodes[s->node];
    sweep_widths           c = sweep_columns(look);
    const int              width[] = {c.node, c.adjoint, c.to, c.rule, c.amount, c.sum};
    const ink              colour[] = {BACKWARD, STRONG, FORWARD, PLAIN, PLAIN, STRONG};
    char id[COT__TRACE_TEXT], adjoint[COT__TRACE_TEXT], to[COT__CALLED_TEXT + 2], rule[COT__TRACE_TEXT],
        amount[COT__TRACE_TEXT], sum[COT__TRACE_TEXT];
    cot__with_bar(n->label, id, sizeof id);
    cot__trace_value_text(&s->adjoint, c.adjoint, adjoint, sizeof adjoint);
    if (s->add_count == 0) row(out, look, 6, width, colour, (const char *[]){id, adjoint, "", remark(tr, s), "", ""});
    for (int k = 0; k < s->add_count; k++) {
        cot__with_bar(tr->nodes[cot__trace_find(tr, s->adds[k].to)].label, to, sizeof to);
        cot__trace_filled(tr, step, k, rule, sizeof rule);
        cot__trace_value_text(&s->adds[k].amount, c.amount, amount, sizeof amount);
        cot__trace_value_text(&s->adds[k].sum, c.sum, sum, sizeof sum);
        row(out, look, 6, width, colour, (const char *[]){k ? "" : id, k ? "" : adjoint, to, rule, amount, sum});
    }
}

/* Leaves at which nothing arrives have no step; their adjoint is 0 all the same. */
static void untouched(FILE *out, const cot__trace *tr, cot__trace_look look) {
    sweep_widths c = sweep_columns(look);
    for (int64_t i = tr->node_count; i-- > 0;) {
        cot__view g;
        char      bar[COT__TRACE_TEXT], why[COT__TRACE_TEXT];
        if (tr->nodes[i].op != OP_leaf || cot__trace_adjoint(tr, i, &g)) continue;
        cot__with_bar(tr->nodes[i].label, bar, sizeof bar);
        snprintf(why, sizeof why, "nothing arrives: %s does not depend on it", tr->nodes[tr->output].label);
        row(out, look, 4, (int[]){c.node, c.adjoint, c.to, c.rule}, (ink[]){BACKWARD, STRONG, FORWARD, PLAIN},
            (const char *[]){bar, "0", "", why});
    }
}

static void forward_part(FILE *out, const cot__trace *tr, cot__trace_look look) {
    put(out, look, HEAD, "forward tape");
    fputc('\n', out);
    cot__trace_table_forward_head(out, look);
    for (int64_t i = 0; i < tr->node_count; i++) cot__trace_table_node(out, tr, i, look);
    fputc('\n', out);
}

void cot__trace_table(FILE *out, const cot__trace *tr, cot__trace_look look) {
    char label[64];
    forward_part(out, tr, look);
    put(out, look, HEAD, "reverse sweep");
    fprintf(out, " from %s\n", cot__trace_label(tr, tr->output, label, sizeof label));
    if (tr->why[0]) {
        fprintf(out, "error: %s\n", tr->why);
        return;
    }
    if (tr->step_count == 0) {
        fprintf(out, "%s depends on no leaf: there is nothing to sweep\n", label);
        return;
    }
    cot__trace_table_sweep_head(out, tr, look);
    for (int64_t i = 0; i < tr->step_count; i++) cot__trace_table_step(out, tr, i, look);
    untouched(out, tr, look);
}

/* ---- tangents -------------------------------------------------------------------------------- */

static void walk(FILE *out, const cot__tangents *w, int which, const cot__trace_input *inputs, cot__trace_look look) {
    const cot__trace *tr = w->trace;
    widths            c = forward_widths(look);
    const int         width[] = {c.node, c.call, c.value};
    char              name[COT__TRACE_TEXT], rule[COT__TRACE_TEXT], value[COT__TRACE_TEXT];
    for (int64_t i = 0; i < tr->node_count; i++) {
        cot__view v = cot__tangent(w, which, i, inputs);
        int64_t   stride[COT_MAX_NDIM];
        if (!tr->nodes[i].active) continue;
        if (!v.stride) cot__strides(v.ndim, v.shape, stride), v.stride = stride;
        cot__with_mark(tr->nodes[i].label, COT__DOT, name, sizeof name);
        bool own = tr->nodes[i].id == cot__index(inputs[w->input[which]].value);
        if (w->at[i] >= 0) cot__tangent_rule(tr, i, rule, sizeof rule);
        else snprintf(rule, sizeof rule, "%s", own ? "it moves by 1" : "it stays");
        cot__trace_value_text(&v, c.value, value, sizeof value);
        row(out, look, 3, width, (ink[]){TANGENT, PLAIN, STRONG}, (const char *[]){name, rule, value});
    }
}

bool cot__trace_tangent_table(FILE *out, const cot__trace *tr, int n, const cot__trace_input *inputs,
                              cot__trace_look look) {
    cot__tangents w;
    widths        c = forward_widths(look);
    forward_part(out, tr, look);
    if (!cot__tangents_open(&w, tr, n, inputs)) {
        fprintf(out, "%s has no tangents to show here\n", tr->nodes[tr->output].label);
        return !w.no_memory;
    }
    for (int k = 0; k < w.inputs; k++) {
        fputs(k ? "\n" : "", out);
        put(out, look, HEAD, "forward mode");
        fprintf(out, " along %s, walk %d of %d\n", inputs[w.input[k]].name, k + 1, w.inputs);
        row(out, look, 3, (int[]){c.node, c.call, c.value}, (ink[]){HEAD, HEAD, HEAD},
            (const char *[]){"node", "rule", "tangent"});
        walk(out, &w, k, inputs, look);
    }
    cot__tangents_close(&w);
    return true;
}
