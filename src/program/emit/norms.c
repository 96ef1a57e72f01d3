/* norms.c: blocks of normalisations, by calls of functions in text/norms.inc. */
#include "program/emit/block.h"
#include "rules/structural_ids.h"

enum { AXIS, RMS, KEEPS }; /* attributes; the number is eps */
enum { X, G, STATS, WEIGHT }; /* operands of norm_back and norm_weights */
enum { KNOWN_STATS = 1, KNOWN_WEIGHT, KNOWN_BIAS }; /* of norm_known; others have no statistics */

static int64_t rows_of(const cot__block *b) { return cot__count((int)cot__int(b, AXIS), b->xv.shape); }
static int64_t length_of(const cot__block *b) {
    int axis = (int)cot__int(b, AXIS);
    return cot__count(b->xv.ndim - axis, b->xv.shape + axis);
}

/* Operand k, if there are so many. */
static void put_operand(const cot__block *b, int k) {
    if (k < cot__operation_operands(b->w->p, b->k)) cot__put_dense(b, k);
    else cot__put(cot__to(b), "NULL");
    cot__put(cot__to(b), ", ");
}

static void put_result(const cot__block *b, uint32_t z) {
    cot__at_index none = {0};
    cot__put_address(b, z, &none);
}

static void begin_call(const cot__block *b, const char *name) {
    cot__put_dense_copies(b);
    cot__put_indent(b->w, COT__BASE);
    cot__put_typed_call(b, name, b->zv.dtype);
    cot__putf(cot__to(b), "%lld, %lld, ", (long long)rows_of(b), (long long)length_of(b));
}

void cot__put_normalized(const cot__block *b) {
    bool known = b->w->p->operation[b->k].op == OP_norm_known;
    if (length_of(b) == 0) return;
    begin_call(b, "cot_norm");
    cot__put(cot__to(b), cot__int(b, RMS) ? "true, " : "false, ");
    cot__emit_literal(cot__to(b), COT_F64, &b->attr->number);
    cot__put(cot__to(b), known ? ", true, " : ", false, ");
    put_operand(b, X);
    put_operand(b, known ? KNOWN_WEIGHT : 1);
    put_operand(b, known ? KNOWN_BIAS : 2);
    if (known) put_operand(b, KNOWN_STATS);
    else cot__put(cot__to(b), "NULL, ");
    if (b->w->p->operation[b->k].results > 1) put_result(b, b->z + 1), cot__put(cot__to(b), ", ");
    else cot__put(cot__to(b), "NULL, ");
    put_result(b, b->z);
    cot__put(cot__to(b), ");\n");
}

void cot__put_norm_back(const cot__block *b) {
    begin_call(b, "cot_norm_back");
    cot__put(cot__to(b), cot__int(b, RMS) ? "true, " : "false, ");
    put_operand(b, X);
    put_operand(b, WEIGHT);
    put_operand(b, G);
    put_operand(b, STATS);
    put_result(b, b->z);
    cot__put(cot__to(b), ");\n");
}

/* Rows are summed in parts of so much work, at most 32 (normalize.c). */
static int64_t parts_of(const cot__block *b) {
    enum { COST = 4, GRAIN = 1 << 15, MOST_SUMS = 32 };
    int64_t cost = COST * length_of(b), items = GRAIN / cost, parts = rows_of(b) / (items > 0 ? items : 1);
    return parts < 1 ? 1 : parts > MOST_SUMS ? MOST_SUMS : parts;
}

void cot__put_norm_weights(const cot__block *b) {
    begin_call(b, "cot_norm_weights");
    cot__putf(cot__to(b), "%lld, ", (long long)parts_of(b));
    put_operand(b, X);
    put_operand(b, G);
    put_operand(b, STATS);
    put_result(b, b->z);
    cot__put(cot__to(b), ");\n");
}
