/* print.c: a program as text, one line for each value and output (declared in program.h). */
#include "program/program.h"

static void put_type(const cot__program *p, uint32_t v, cot__text *to) {
    char      buf[COT__SHAPE_TEXT];
    cot__view x = cot__value_view(p, v);
    cot__putf(to, " %s%s", cot__dtype_name(x.dtype), x.ndim ? cot__shape_text(x.ndim, x.shape, buf) : "");
}

static void put_indent(int depth, cot__text *to) {
    for (int k = 0; k < depth; k++) cot__put(to, "    ");
}

static void put_operands(const cot__program *p, uint32_t k, cot__text *to) {
    const uint32_t *x = cot__operation_operand(p, k);
    for (int i = 0, n = cot__operation_operands(p, k); i < n; i++) {
        cot__put(to, i ? ", " : "");
        if (x[i] == COT__NO_VALUE) cot__put_number(to, cot__operation_number(p, k));
        else cot__putf(to, "%%%u", x[i]);
    }
}

/* Integers as they are: the record's `attrs` names them. */
static void put_attributes(const cot__program *p, uint32_t k, cot__text *to) {
    const cot__attr *a = cot__operation_attr(p, k);
    if (!a || (a->nints == 0 && a->number == 0)) return;
    cot__put(to, " [");
    for (uint32_t i = 0; i < a->nints; i++) cot__putf(to, i ? " %lld" : "%lld", (long long)a->ints[i]);
    if (a->number != 0) cot__put(to, a->nints ? " " : ""), cot__put_number(to, a->number);
    cot__put(to, "]");
}

static void put_site(const cot__program *p, uint32_t k, cot__text *to) {
    const cot__label *l = &p->label[p->operation[k].label];
    if (l->file) cot__putf(to, "  (%s:%d)", p->text + l->file, (int)l->line);
}

static void print_at(const cot__program *p, int depth, cot__text *to);

/* The results, "%3, %4 = name(operands) [attributes]", and their types. */
static void put_operation(const cot__program *p, uint32_t k, int depth, cot__text *to) {
    const cot__operation *o = &p->operation[k];
    put_indent(depth, to);
    for (uint32_t r = 0; r < o->results; r++) cot__putf(to, r ? ", %%%u" : "%%%u", o->result + r);
    cot__putf(to, " = %s(", cot__op_of(o->op)->name);
    put_operands(p, k, to);
    cot__put(to, ")");
    put_attributes(p, k, to);
    for (uint32_t r = 0; r < o->results; r++) put_type(p, o->result + r, to);
    put_site(p, k, to);
    cot__put(to, "\n");
    for (uint32_t b = o->body; b < o[1].body; b++) print_at(p->body[b], depth + 1, to);
}

/* Bodies nest no deeper than COT__PROGRAM_DEPTH, so this may call itself. */
static void print_at(const cot__program *p, int depth, cot__text *to) {
    for (uint32_t v = 0; v < p->values; v++) {
        cot__origin from = cot__value_origin(p, v);
        uint32_t    k = cot__value_maker(p, v);
        if (from == COT__FROM_OPERATION) {
            if (p->operation[k].result == v) put_operation(p, k, depth, to);
            continue;
        }
        put_indent(depth, to);
        cot__putf(to, "%%%u = %s %u", v, from == COT__FROM_INPUT ? "input" : "constant", k);
        put_type(p, v, to);
        cot__put(to, "\n");
    }
    put_indent(depth, to);
    cot__put(to, "gives");
    for (uint32_t k = 0; k < p->outputs; k++) cot__putf(to, k ? ", %%%u" : " %%%u", p->output[k]);
    cot__put(to, "\n");
}

void cot__program_print(const cot__program *p, cot__text *to) { print_at(p, 0, to); }
