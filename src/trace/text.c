/* text.c: the texts of a trace: calls, formulas, rules, labels, values. */
#include "base/number.h"
#include "backend/cpu/table/cpu.h"
#include "trace/trace.h"

#include "ops/elementwise/elementwise.h"
#include "tape/show.h"
#include "trace/operand_letters.h"

#include <stdlib.h>
#include <string.h>

static bool elementwise(const cot__trace_node *n) { return n->op < OP_structural; }

/* Operands that get names in a rule, and the longest name in bytes. */
enum { OPERANDS = 6, LABEL = 64 };

/* ---- nodes ----------------------------------------------------------------------------------- */

const char *cot__trace_call(const cot__trace *tr, int64_t node, char *buf, size_t size) {
    const cot__trace_node *n = &tr->nodes[node];
    cot__text              x = cot__text_buffer(buf, size);
    char                   operand[LABEL];
    if (elementwise(n)) {
        cot__put(&x, cot__op_name(tr->t, n->id));
        for (int k = 0; k < n->nargs; k++)
            cot__put(&x, " "), cot__put(&x, cot__trace_operand(tr, node, k, operand, sizeof operand));
    } else
        cot__show_operation(&x, tr->t, n->id);
    /* it did not fit */
    if (x.used + 1 >= x.size && x.used > 4) {
        size_t cut = x.used - 4;
        while (cut > 0 && buf[cut] != ' ') cut--;
        snprintf(buf + cut, size - cut, " …");
    }
    return buf;
}

const char *cot__trace_formula(const cot__trace *tr, int64_t node, char *buf, size_t size) {
    const cot__trace_node *n = &tr->nodes[node];
    if (elementwise(n)) return cot__formula(n->op, cot__elementwise_table[n->op].value, buf, size);
    cot__formula_value(cot__op_of(n->op)->formula, buf, size);
    return buf;
}

const char *cot__trace_label(const cot__trace *tr, int64_t node, char *buf, size_t size) {
    snprintf(buf, size, "%s", tr->nodes[node].label);
    return buf;
}

const char *cot__trace_saved(const cot__trace *tr, int64_t node, int k, char *buf, size_t size) {
    const cot__trace_node *n = &tr->nodes[node];
    char                   letter[16], before[16];
    for (int i = 0; i < n->nargs; i++) {
        if (!cot__saves_operand(n->saves, i) || n->args[i] == COT__NONE) continue;
        const char *name = cot__operand_letter(n->op, i, n->nargs, letter);
        /* further operands of a list have the same letter */
        if (i > 0 && strcmp(name, cot__operand_letter(n->op, i - 1, n->nargs, before)) == 0) continue;
        if (k-- > 0) continue;
        snprintf(buf, size, "%s", name);
        return buf;
    }
    if (!(n->saves & COT__SAVES_Z) || k > 0) return NULL;
    snprintf(buf, size, "z");
    return buf;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const cot__trace_add *add_of(const cot__trace *tr, int64_t step, int add, const cot__trace_node **n) {
    *n = &tr->nodes[tr->steps[step].node];
    return &tr->steps[step].adds[add];
}

const char *cot__trace_rule(const cot__trace *tr, int64_t step, int add, char *buf, size_t size) {
    const cot__trace_node *n;
    const cot__trace_add  *a = add_of(tr, step, add, &n);
    char                   letter[16];
    if (elementwise(n)) return cot__formula(n->op, cot__elementwise_table[n->op].partial[a->operand], buf, size);
    const char *adjoints = cot__formula_adjoints(cot__op_of(n->op)->formula);
    if (*adjoints)
        cot__formula_part(adjoints, cot__operand_letter(n->op, a->operand, n->nargs, letter), buf, size);
    else
        /* a custom operation */
        snprintf(buf, size, "the rule of %s, z̄", cot__op_name(tr->t, n->id));
    return buf;
}

/* The name of a constant of the text, or the number with as few digits as tell it. */
static const char *number_text(const cot__trace *tr, double v, char *buf, size_t size) {
    const char *name[COT__EXPR_CONSTANTS];
    double      value[COT__EXPR_CONSTANTS];
    char        text[32];
    for (int k = tr->expr ? cot__expr_constants(tr->expr, name, value) : 0; k-- > 0;)
        if (v == value[k] && isfinite(v)) {
            snprintf(buf, size, "%s", name[k]);
            return buf;
        }
    snprintf(buf, size, "%s", cot__shortest(v, text));
    return buf;
}

const char *cot__trace_operand(const cot__trace *tr, int64_t node, int k, char *buf, size_t size) {
    const cot__trace_node *n = &tr->nodes[node];
    if (n->args[k] == COT__NONE) return number_text(tr, n->number, buf, size);
    return cot__trace_label(tr, cot__trace_find(tr, n->args[k]), buf, size);
}

/* The same inside a formula, where a sign needs brackets. */
static const char *operand_label(const cot__trace *tr, const cot__trace_node *n, int k, char *buf, size_t size) {
    char text[LABEL - 2];
    cot__trace_operand(tr, n - tr->nodes, k, text, sizeof text);
    snprintf(buf, size, *text == '-' ? "(%s)" : "%s", text);
    return buf;
}

/* For operands in lists, which have no letters of their own. The rule speaks of x[i] and y[i]: the
 * operand, and the one that it is multiplied by. */
static const char *fill_list(const cot__trace *tr, const cot__trace_node *n, int k, const char *rule, const char *own,
                             char *buf, size_t size) {
    char          label[LABEL], letter[16], element[20];
    int           other = cot__factor_of(cot__op_of(n->op), k, n->nargs);
    cot__renaming with = {.count = 1, .letter = {"z"}, .name = {own}};
    const char   *right = strstr(rule, " += ");
    if (other >= 0) {
        snprintf(element, sizeof element, "%s[i]", cot__operand_letter(n->op, other, n->nargs, letter));
        with.letter[1] = element;
        with.name[1] = operand_label(tr, n, other, label, sizeof label);
        with.count = 2;
    }
    cot__formula_fill(right ? right + 4 : rule, &with, buf, size);
    return buf;
}

/* Exponents of numbers are computed: x^(2 - 1) is x, x^(3 - 1) is x². The text gets no longer. */
void cot__trace_simplify(char *text) {
    for (char *at = text; (at = strstr(at, "^(")); at++) {
        char  *middle, *end;
        double a = cot__read_number(at + 2, &middle), b;
        if (middle == at + 2 || strncmp(middle, " - ", 3) != 0) continue;
        b = cot__read_number(middle + 3, &end);
        if (end == middle + 3 || *end != ')') continue;
        char   power[32], number[32];
        double e = a - b;
        cot__shortest(e, number);
        power[0] = 0;
        if (e == 2) snprintf(power, sizeof power, "²");
        else if (e != 1) snprintf(power, sizeof power, e < 0 ? "^(%s)" : "^%s", number);
        size_t length = strlen(power), room = (size_t)(end + 1 - at);
        if (length > room) continue; /* 0.1 - 1e-9: all digits of it */
        memcpy(at, power, length);
        memmove(at + length, end + 1, strlen(end + 1) + 1);
    }
}

const char *cot__trace_filled(const cot__trace *tr, int64_t step, int add, char *buf, size_t size) {
    const cot__trace_node *n;
    const cot__trace_add  *a = add_of(tr, step, add, &n);
    char rule[COT__TRACE_TEXT], letter[OPERANDS][16], name[OPERANDS][LABEL], own[LABEL], bar[LABEL + 4];
    cot__renaming          with = {.count = 0};
    cot__trace_rule(tr, step, add, rule, sizeof rule);
    cot__trace_label(tr, tr->steps[step].node, own, sizeof own);
    if (cot__takes_lists(n->op)) return fill_list(tr, n, a->operand, rule, own, buf, size);
    for (; with.count < n->nargs && with.count < OPERANDS; with.count++) {
        int k = with.count;
        with.letter[k] = cot__operand_letter(n->op, k, n->nargs, letter[k]);
        with.name[k] = operand_label(tr, n, k, name[k], LABEL);
    }
    cot__with_bar(own, bar, sizeof bar);
    if (elementwise(n)) with.letter[with.count] = "g", with.name[with.count++] = bar;
    with.letter[with.count] = "z", with.name[with.count++] = own;
    cot__formula_fill(rule, &with, buf, size);
    cot__trace_simplify(buf);
    return buf;
}

/* ---- values ---------------------------------------------------------------------------------- */

const char *cot__trace_value_text(const cot__view *v, int width, char *buf, size_t size) {
    char      text[512], shape[COT__SHAPE_TEXT] = "";
    cot__text x = cot__text_buffer(text, sizeof text);
    bool      many = cot__count(v->ndim, v->shape) > 8 || cot__count(v->ndim, v->shape) == 0;
    if (many) cot__put(&x, cot__shape_text(v->ndim, v->shape, shape)), cot__put(&x, " ");
    cot__show_values(&x, &cot__cpu_backend, v); /* traces are made of values on the host */
    /* if it is too long, the numbers are shown rather than the shape */
    bool narrow = many && cot__columns(text) > width;
    return cot__fit(narrow ? text + strlen(shape) + 1 : text, width, buf, size);
}
