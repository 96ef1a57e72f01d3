/* table.c: a trace as two tables for a terminal: the tape downward, and the sweep upward. */
#include "trace/trace.h"

#include "ops/elementwise/elementwise.h"
#include "tape/show.h"
#include "trace/lines/grid.h"
#include "trace/tangents.h"

#include <string.h>

/* ANSI colours mean the same as on the web page: blue forward, orange backward, green tangents. */
static const char head[] = "\x1b[1m", forward[] = "\x1b[34m", backward[] = "\x1b[33m", faint[] = "\x1b[2m",
                  strong[] = "\x1b[1m", green[] = "\x1b[32m";

static int total(cot__trace_look look) {
    int width = look.width ? look.width : 80;
    return width < 40 ? 40 : width;
}

static void title(FILE *out, cot__trace_look look, const char *text) {
    fprintf(out, "%s%s%s", look.colour ? head : "", text, look.colour ? "\x1b[0m" : "");
}

static void put_head(cot__grid *g, const char *const *names) {
    for (int k = 0; k < g->columns; k++) cot__grid_put(g, head, names[k]);
}

/* ---- forward --------------------------------------------------------------------------------- */

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

static void put_node(cot__grid *g, const cot__trace *tr, int64_t node) {
    const cot__trace_node *n = &tr->nodes[node];
    char                   call[COT__TRACE_TEXT], value[COT__TRACE_TEXT], saves[COT__TRACE_TEXT];
    cot__trace_call(tr, node, call, sizeof call);
    saved_nodes(tr, n, saves, sizeof saves);
    value_cell(n, g->width * 5 / 16, value, sizeof value);
    cot__grid_put(g, forward, n->label);
    cot__grid_put(g, NULL, call);
    cot__grid_put(g, n->active ? strong : faint, value);
    cot__grid_put(g, faint, saves);
}

static bool forward_part(FILE *out, const cot__trace *tr, cot__trace_look look) {
    cot__grid g = {.columns = 4,
                   .column = {COT__CUT, COT__CUT, COT__CUT, COT__CUT},
                   .width = total(look),
                   .colour = look.colour};
    title(out, look, "forward tape");
    fputc('\n', out);
    put_head(&g, (const char *const[]){"node", "operation", "value", "saves"});
    for (int64_t i = 0; i < tr->node_count; i++) put_node(&g, tr, i);
    bool fine = cot__grid_print(out, &g);
    fputc('\n', out);
    return fine;
}

/* ---- backward -------------------------------------------------------------------------------- */

static const char *remark(const cot__trace *tr, const cot__trace_step *step) {
    const cot__trace_node *n = &tr->nodes[step->node];
    if (n->op == OP_leaf) return "the gradient";
    if (step->skipped) return "zero: nothing to pass on";
    return step->add_count ? "" : "passes nothing on";
}

static void put_step(cot__grid *g, const cot__trace *tr, int64_t step) {
    const cot__trace_step *s = &tr->steps[step];
    int                    room = g->width / 4; /* of a value */
    char text[COT__TRACE_TEXT], adjoint[COT__TRACE_TEXT];
    for (int k = 0; k < s->add_count || k == 0; k++) {
        bool gives = k < s->add_count;
        cot__with_bar(tr->nodes[s->node].label, text, sizeof text);
        cot__grid_put(g, backward, k ? "" : text);
        cot__trace_value_text(&s->adjoint, room, adjoint, sizeof adjoint);
        cot__grid_put(g, strong, k ? "" : adjoint);
        if (gives) cot__with_bar(tr->nodes[cot__trace_find(tr, s->adds[k].to)].label, text, sizeof text);
        cot__grid_put(g, forward, gives ? text : "");
        cot__grid_put(g, NULL, gives ? cot__trace_filled(tr, step, k, text, sizeof text) : remark(tr, s));
        cot__grid_put(g, NULL, gives ? cot__trace_value_text(&s->adds[k].amount, room, text, sizeof text) : "");
        cot__grid_put(g, strong, gives ? cot__trace_value_text(&s->adds[k].sum, room, text, sizeof text) : "");
    }
}

/* Leaves at which nothing arrives have no step; their adjoint is 0 all the same. */
static void put_untouched(cot__grid *g, const cot__trace *tr) {
    for (int64_t i = tr->node_count; i-- > 0;) {
        cot__view v;
        char      text[COT__TRACE_TEXT];
        if (tr->nodes[i].op != OP_leaf || cot__trace_adjoint(tr, i, &v)) continue;
        cot__grid_put(g, backward, cot__with_bar(tr->nodes[i].label, text, sizeof text));
        cot__grid_put(g, strong, "0");
        cot__grid_put(g, NULL, "");
        snprintf(text, sizeof text, "nothing arrives: %s does not depend on it", tr->nodes[tr->output].label);
        cot__grid_put(g, NULL, text);
        cot__grid_put(g, NULL, "");
        cot__grid_put(g, NULL, "");
    }
}

bool cot__trace_table(FILE *out, const cot__trace *tr, cot__trace_look look) {
    char      label[64];
    cot__grid g = {.columns = 6,
                   .column = {COT__CUT, COT__CUT, COT__CUT, COT__WRAP, COT__CUT, COT__CUT},
                   .width = total(look),
                   .colour = look.colour};
    if (!forward_part(out, tr, look)) return false;
    title(out, look, "reverse sweep");
    fprintf(out, " from %s\n", cot__trace_label(tr, tr->output, label, sizeof label));
    if (tr->why[0]) {
        fprintf(out, "error: %s\n", tr->why);
        return true;
    }
    if (tr->step_count == 0) {
        fprintf(out, "%s depends on no leaf: there is nothing to sweep\n", label);
        return true;
    }
    put_head(&g, (const char *const[]){"node", "adjoint", "to", "rule", "adds", "so far"});
    for (int64_t i = 0; i < tr->step_count; i++) put_step(&g, tr, i);
    put_untouched(&g, tr);
    return cot__grid_print(out, &g);
}

/* ---- tangents -------------------------------------------------------------------------------- */

static void put_walk(cot__grid *g, const cot__tangents *w, int which, const cot__trace_input *inputs) {
    const cot__trace *tr = w->trace;
    char              name[COT__TRACE_TEXT], rule[COT__TRACE_TEXT], value[COT__TRACE_TEXT];
    for (int64_t i = 0; i < tr->node_count; i++) {
        cot__view v = cot__tangent(w, which, i);
        int64_t   stride[COT_MAX_NDIM];
        if (!tr->nodes[i].active) continue;
        if (!v.stride) cot__strides(v.ndim, v.shape, stride), v.stride = stride;
        bool own = tr->nodes[i].id == cot__index(inputs[w->walk[which].input].value);
        if (w->at[i] >= 0) cot__tangent_rule(tr, i, rule, sizeof rule);
        else snprintf(rule, sizeof rule, "%s", own ? "it moves by 1" : "it stays");
        cot__grid_put(g, green, cot__with_mark(tr->nodes[i].label, COT__DOT, name, sizeof name));
        cot__grid_put(g, NULL, rule);
        cot__grid_put(g, strong, cot__trace_value_text(&v, g->width * 5 / 16, value, sizeof value));
    }
}

bool cot__trace_tangent_table(FILE *out, const cot__trace *tr, int n, const cot__trace_input *inputs,
                              cot__trace_look look) {
    cot__tangents w;
    bool          fine = forward_part(out, tr, look);
    if (!fine) return false;
    if (!cot__tangents_open(&w, tr, n, inputs)) {
        fprintf(out, "%s has no tangents to show here\n", tr->nodes[tr->output].label);
        return !w.no_memory;
    }
    for (int k = 0; fine && k < w.walks; k++) {
        cot__grid g = {.columns = 3,
                       .column = {COT__CUT, COT__WRAP, COT__CUT},
                       .width = total(look),
                       .colour = look.colour};
        fputs(k ? "\n" : "", out);
        title(out, look, "forward mode");
        fprintf(out, " along %s, walk %d of %d\n", w.walk[k].name, k + 1, w.walks);
        put_head(&g, (const char *const[]){"node", "rule", "tangent"});
        put_walk(&g, &w, k, inputs);
        fine = cot__grid_print(out, &g);
    }
    cot__tangents_close(&w);
    return fine;
}
