/* dot.c: a trace as a graph for Graphviz. */
#include "trace/trace.h"

#include "tape/show.h"

/* A text inside a quoted string of dot; lines are centred. */
static void quoted(FILE *out, const char *text) {
    for (const char *p = text; *p; p++) {
        if (*p == '"' || *p == '\\') fputc('\\', out);
        fputc(*p == '\n' || *p == '\r' ? ' ' : *p, out);
    }
}

static void write_node(FILE *out, const cot__trace *tr, int64_t i) {
    const cot__trace_node *n = &tr->nodes[i];
    char                   text[COT__TRACE_TEXT], fitted[COT__TRACE_TEXT];
    cot__view              g;
    fprintf(out, "  n%u [label=\"", n->id);
    if (n->name && !cot__is_called_by_name(tr->t, n->id)) quoted(out, n->name), fputs("\\n", out);
    quoted(out, n->label), fputs(" = ", out);
    quoted(out, cot__fit(cot__trace_call(tr, i, text, sizeof text), 40, fitted, sizeof fitted));
    fputs("\\n", out);
    quoted(out, n->overwritten ? "(overwritten)" : cot__trace_value_text(&n->value, 40, text, sizeof text));
    if (cot__trace_adjoint(tr, i, &g)) {
        fputs("\\nadjoint ", out);
        quoted(out, cot__trace_value_text(&g, 40, text, sizeof text));
    }
    fprintf(out, "\"%s];\n", n->op == OP_leaf ? ", style=bold" : n->active ? "" : ", style=dashed");
}

static void write_operands(FILE *out, const cot__trace_node *n) {
    for (int k = 0; k < n->nargs; k++)
        if (n->args[k] != COT__NONE) fprintf(out, "  n%u -> n%u;\n", n->args[k], n->id);
}

static void write_additions(FILE *out, const cot__trace *tr, int64_t step) {
    const cot__trace_step *s = &tr->steps[step];
    char                   text[COT__TRACE_TEXT], fitted[COT__TRACE_TEXT];
    for (int k = 0; k < s->add_count; k++) {
        fprintf(out,
                "  n%u -> n%u [style=dashed, constraint=false, color=darkorange, label=\"+= ", tr->nodes[s->node].id,
                s->adds[k].to);
        quoted(out, cot__fit(cot__trace_filled(tr, step, k, text, sizeof text), 40, fitted, sizeof fitted));
        fputs("\\n", out);
        quoted(out, cot__trace_value_text(&s->adds[k].amount, 40, text, sizeof text));
        fputs("\"];\n", out);
    }
}

void cot__trace_dot(FILE *out, const cot__trace *tr) {
    fputs("digraph tape {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n  edge "
          "[fontname=\"monospace\"];\n",
          out);
    for (int64_t i = 0; i < tr->node_count; i++) write_node(out, tr, i);
    for (int64_t i = 0; i < tr->node_count; i++) write_operands(out, &tr->nodes[i]);
    for (int64_t i = 0; i < tr->step_count; i++) write_additions(out, tr, i);
    fputs("}\n", out);
}
