/* op_table.c: the record of every operation, by its number, and the names of operands from its
 * words. */
#include "rules/structural_ids.h"
#include "rules/record.h"

#include <stdio.h>
#include <string.h>

#define STRUCTURAL(name) extern const cot__op cot__op_##name;
#include "rules/ops.def"
static const cot__op *const structural_ops[OP_count - OP_structural] = {
#define STRUCTURAL(name) [OP_##name - OP_structural] = &cot__op_##name,
#include "rules/ops.def"
};

const cot__op *cot__op_of(int op) {
    return op < OP_structural ? &cot__elementwise_ops[op] : structural_ops[op - OP_structural];
}

/* Of structural operations, from the words of their records. */
const char *cot__operand_letter(int op, int k, int n, char *buf) {
    static const char *const usual[] = {"x", "y", "w"};
    if (op < OP_structural) return cot__operand_name(op, k);
    const char *words = cot__op_of(op)->operands, *p = words ? words : "*";
    size_t      length = strcspn(p, " *");
    if (length == 0 && n <= 3 && k < 3) return usual[k];
    /* one list, or two of which each has half of the operands */
    int at = p[length] != '*' ? k : strchr(p, ' ') ? k >= n / 2 : 0;
    for (; at > 0 && *p; at--) p += strcspn(p, " "), p += *p == ' ';
    length = strcspn(p, " *");
    if (length) snprintf(buf, 16, "%.*s", (int)length, p);
    else snprintf(buf, 16, "x%d", k);
    return buf;
}

bool cot__takes_lists(int op) {
    const char *words = op < OP_structural ? NULL : cot__op_of(op)->operands;
    return words && words[0] != '*' && strchr(words, '*');
}
