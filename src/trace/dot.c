/* dot.c: a trace as a graph for Graphviz. */
#include "trace/trace.h"

#include "tape/show.h"

#include <string.h>

/* WIDE: columns of a line of a label. LINES: the most lines of one text; then it is cut. */
enum { WIDE = 32, LINES = 3 };

/* A text inside a quoted string of dot. */
static void quoted(FILE *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"' || text[i] == '\\') fputc('\\', out);
        fputc((unsigned char)text[i] < ' ' ? ' ' : text[i], out);
    }
}

/* Lines of a label. `more`: there are some before them. */
static void lines(FILE *out, bool more, const char *text) {
    char cut[4 * WIDE + 8];
    for (int line = 1; *text; line++) {
        if (more || line > 1) fputs("\\n", out);
        size_t n = cot__line(text, WIDE);
        if (line == LINES && text[n]) {
            cot__fit(text, WIDE, cut, sizeof cut);
            text = cut;
            n = strlen(cut);
        }
        quoted(out, text, n);
        text += n + strspn(text + n, " \n");
    }
}

static void write_node(FILE *out, const cot__trace *tr, int64_t i) {
    const cot__trace_node *n = &tr->nodes[i];
    char                   call[COT__TRACE_TEXT], text[2 * COT__TRACE_TEXT];
    cot__view              g;
    fprintf(out, "  n%u [label=\"", n->id);
    bool named = n->name && !cot__is_called_by_name(tr->t, n->id);
    if (named) lines(out, false, n->name);
    snprintf(text, sizeof text, "%s = %s", n->label, cot__trace_call(tr, i, call, sizeof call));
    lines(out, named, text);
    lines(out, true, n->overwritten ? "(overwritten)" : cot__trace_value_text(&n->value, WIDE, text, sizeof text));
    if (cot__trace_adjoint(tr, i, &g)) {
        cot__trace_value_text(&g, WIDE - 8, call, sizeof call);
        snprintf(text, sizeof text, "adjoint %s", call);
        lines(out, true, text);
    }
    fprintf(out, "\"%s];\n", n->op == OP_leaf ? ", style=bold" : n->active ? "" : ", style=dashed");
}

static void write_operands(FILE *out, const cot__trace_node *n) {
    for (int k = 0; k < n->nargs; k++)
        if (n->args[k] != COT__NONE) fprintf(out, "  n%u -> n%u;\n", n->args[k], n->id);
}

/* An addition is an edge from operand to result, drawn backward: edges in the order of the ranks
 * are those whose labels Graphviz keeps free of everything else. */
static void write_additions(FILE *out, const cot__trace *tr, int64_t step) {
    const cot__trace_step *s = &tr->steps[step];
    char                   rule[COT__TRACE_TEXT], text[2 * COT__TRACE_TEXT];
    for (int k = 0; k < s->add_count; k++) {
        fprintf(out, "  n%u -> n%u [dir=back, style=dashed, color=darkorange, fontcolor=chocolate, label=\"",
                s->adds[k].to, tr->nodes[s->node].id);
        cot__trace_filled(tr, step, k, rule, sizeof rule);
        snprintf(text, sizeof text, "%s%s", strstr(rule, " += ") ? "" : "+= ", rule);
        lines(out, false, text);
        lines(out, true, cot__trace_value_text(&s->adds[k].amount, WIDE, text, sizeof text));
        fputs("\"];\n", out);
    }
}

void cot__trace_dot(FILE *out, const cot__trace *tr) {
    fputs("digraph tape {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n  edge "
          "[fontname=\"monospace\", fontsize=11];\n",
          out);
    for (int64_t i = 0; i < tr->node_count; i++) write_node(out, tr, i);
    for (int64_t i = 0; i < tr->node_count; i++) write_operands(out, &tr->nodes[i]);
    for (int64_t i = 0; i < tr->step_count; i++) write_additions(out, tr, i);
    fputs("}\n", out);
}
