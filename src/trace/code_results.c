/* code_results.c: operations that public functions give back through pointers, as statements: those
 * with several results, and determinants by sign and logarithm.
 *
 * Factors of an elimination (lu_factors) have no function of their own: whoever needs them is said
 * as the function of the matrix, which factors it again. */
#include "trace/code.h"

#include "rules/structural_ids.h"

/* The function, and for each of its pointers the number of the result that goes there; -1: NULL. */
static const struct row { int op; const char *function; int pointers, to[3]; } rows[] = {
    {OP_qr, "cot_qr", 2, {0, 1, 0}},
    {OP_svd, "cot_svd", 3, {0, 1, 2}},
    {OP_eigh, "cot_eigh", 2, {1, 0, 0}},
    {OP_lu, "cot_lu", 3, {-1, 0, 1}},
    {OP_det_sign, "cot_slogdet", 2, {0, -1, 0}},
    {OP_logabsdet, "cot_slogdet", 2, {-1, 0, 0}},
};
static const struct row permutation = {OP_pick, "cot_lu", 3, {0, -1, -1}};

static const struct row *row_of(const cot_tape *t, uint32_t id) {
    int op = t->nodes[id].op;
    if (op == OP_pick && t->nodes[t->nodes[id].a].op == OP_lu_factors) return &permutation;
    for (int k = 0; k < COUNTOF(rows); k++)
        if (rows[k].op == op) return &rows[k];
    return NULL;
}

bool cot__c_is_statement(const cot_tape *t, uint32_t id) { return row_of(t, id) != NULL; }

bool cot__c_has_no_line(const cot_tape *t, uint32_t id) {
    const cot__node *n = &t->nodes[id];
    return n->op == OP_lu_factors || (n->op == OP_pick && !row_of(t, id) && row_of(t, n->a));
}

const char *cot__c_result_name(const cot__trace *tr, uint32_t id, char *buf) {
    int64_t node = cot__trace_find(tr, id);
    if (node >= 0) return cot__c_name(tr, node, buf);
    const cot__node *n = &tr->t->nodes[id];
    if (n->op != OP_pick || !row_of(tr->t, n->a)) return NULL;
    char of[COT__C_NAME];
    node = cot__trace_find(tr, n->a);
    if (node < 0) return NULL;
    snprintf(buf, COT__C_NAME, "%.180s_r%u", cot__c_name(tr, node, of), id - n->a);
    return buf;
}

/* The matrix: operand 0, or where the operands are factors, what these are of. */
static const char *matrix_of(const cot__trace *tr, uint32_t id, char *buf) {
    uint32_t a = tr->t->nodes[id].op == OP_pick ? tr->t->nodes[id].a : cot__arg(&tr->t->nodes[id], 0);
    if (tr->t->nodes[a].op == OP_lu_factors) a = cot__arg(&tr->t->nodes[a], 0);
    return cot__c_result_name(tr, a, buf);
}

bool cot__c_statement_put(cot__text *x, const cot__trace *tr, int64_t node) {
    uint32_t          id = tr->nodes[node].id;
    const struct row *r = row_of(tr->t, id);
    char              name[COT__C_NAME];
    const char       *comma = "    cot_var ";
    for (int k = 0; k < r->pointers; k++) {
        if (r->to[k] < 0) continue;
        cot__put(x, comma), cot__put(x, cot__c_result_name(tr, id + (uint32_t)r->to[k], name));
        comma = ", ";
    }
    cot__putf(x, "; %s(", r->function);
    const char *matrix = matrix_of(tr, id, name);
    if (!matrix) return false;
    cot__put(x, matrix);
    for (int k = 0; k < r->pointers; k++) {
        cot__put(x, r->to[k] < 0 ? ", NULL" : ", &");
        if (r->to[k] >= 0) cot__put(x, cot__c_result_name(tr, id + (uint32_t)r->to[k], name));
    }
    cot__put(x, ")");
    return true;
}
