/* dot.c: a program as a graph for Graphviz. */
#include "program/show/show.h"

static void put_type(const cot__program *p, uint32_t v, cot__text *to) {
    char      buf[COT__SHAPE_TEXT];
    cot__view x = cot__value_view(p, v);
    cot__putf(to, "%s%s", cot__dtype_name(x.dtype), x.ndim ? cot__shape_text(x.ndim, x.shape, buf) : "");
}

/* What makes a value: the node that edges come from. */
static void put_maker(const cot__program *p, uint32_t v, cot__text *to) {
    static const char *const of[] = {[COT__FROM_OPERATION] = "op", [COT__FROM_INPUT] = "in",
                                     [COT__FROM_CONSTANT] = "const"};
    cot__putf(to, "%s%u", of[cot__value_origin(p, v)], cot__value_maker(p, v));
}

static void put_source(const cot__program *p, uint32_t v, cot__text *to) {
    bool input = cot__value_origin(p, v) == COT__FROM_INPUT;
    cot__put(to, "  ");
    put_maker(p, v, to);
    cot__putf(to, " [label=\"%%%u %s %u\\n", v, input ? "input" : "constant", cot__value_maker(p, v));
    put_type(p, v, to);
    cot__putf(to, "\", style=%s];\n", input ? "bold" : "dashed");
}

static void put_operation(const cot__plan *plan, uint32_t k, cot__text *to) {
    const cot__program   *p = plan->p;
    const cot__operation *o = &p->operation[k];
    bool                  nothing = plan->how[k] == COT__BY_VIEW;
    cot__putf(to, "  op%u [label=\"%%%u %s", k, o->result, cot__op_of(o->op)->name);
    if (o->op < OP_structural && o->extra != COT__NO_VALUE) {
        cot__put(to, " ");
        cot__put_number(to, cot__operation_number(p, k));
    }
    for (uint32_t i = 0; i < o->results; i++) {
        cot__put(to, "\\n");
        put_type(p, o->result + i, to);
    }
    cot__putf(to, "\"%s];\n", nothing ? ", shape=ellipse" : cot__operation_has_effect(p, k) ? ", peripheries=2" : "");
}

static void put_edges(const cot__program *p, uint32_t k, cot__text *to) {
    const uint32_t *x = cot__operation_operand(p, k);
    for (int i = 0; i < cot__operation_operands(p, k); i++) {
        if (x[i] == COT__NO_VALUE) continue;
        cot__put(to, "  ");
        put_maker(p, x[i], to);
        cot__putf(to, " -> op%u;\n", k);
    }
}

static void put_outputs(const cot__program *p, cot__text *to) {
    for (uint32_t k = 0; k < p->outputs; k++) {
        cot__putf(to, "  out%u [label=\"output %u\", style=bold];\n  ", k, k);
        put_maker(p, p->output[k], to);
        cot__putf(to, " -> out%u;\n", k);
    }
}

/* Views between the members of a group stand in its box, too. */
void cot__plan_dot(const cot__plan *plan, cot__text *to) {
    const cot__program *p = plan->p;
    cot__put(to, "digraph program {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n");
    for (uint32_t v = 0; v < p->values; v++)
        if (cot__value_origin(p, v) != COT__FROM_OPERATION) put_source(p, v, to);
    for (uint32_t k = 0, group = 0; k < p->operations; k++) {
        bool first = group < plan->fusion.groups && plan->fusion.group[group].first == k;
        if (first) cot__putf(to, "  subgraph cluster_%u {\n  label=\"group %u\"; color=grey;\n", group, group + 1);
        put_operation(plan, k, to);
        if (group < plan->fusion.groups && plan->fusion.group[group].end == k + 1) group++, cot__put(to, "  }\n");
    }
    for (uint32_t k = 0; k < p->operations; k++) put_edges(p, k, to);
    put_outputs(p, to);
    cot__put(to, "}\n");
}
