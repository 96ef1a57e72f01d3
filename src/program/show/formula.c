/* formula.c: what a value of a program is, in terms of others. */
#include "program/made_form.h"
#include "program/show/show.h"
#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Are the axes of the value turned on the way from its root? What other views do is in the
 * shapes. */
static bool is_turned(const cot__formula_style *s, uint32_t value, uint32_t root) {
    bool turned = false;
    while (value != root && cot__value_origin(s->p, value) == COT__FROM_OPERATION) {
        uint32_t k = cot__value_maker(s->p, value);
        turned |= s->p->operation[k].op == OP_permute;
        value = cot__operation_operand(s->p, k)[0];
    }
    return turned;
}

/* ---- arrays that are not written ------------------------------------------------------------- */

/* Leaf number `leaf` of the operation, an operand or a number behind these. */
static void put_leaf(const cot__formula_style *s, const cot__made_form *f, uint32_t k, int leaf) {
    int    n = cot__operation_operands(s->p, k);
    float  f32;
    double f64;
    if (leaf < n) {
        s->name(s->user, s->root(s->user, cot__operation_operand(s->p, k)[leaf]));
        return;
    }
    memcpy(&f64, f->number + (leaf - n), sizeof f64);
    memcpy(&f32, f->number + (leaf - n), sizeof f32);
    cot__put_number(s->to, cot__value_view(s->p, s->p->operation[k].result).dtype == COT_F32 ? (double)f32 : f64);
}

/* Calls itself once for each step on the way, of which there are few. */
static void put_step(const cot__formula_style *s, const cot__made_form *f, uint32_t k, int64_t step) {
    const int64_t *at = f->step + 4 * step;
    cot__putf(s->to, "%s(", at[0] == COT__RECIPE_PRODUCT ? "matmul" : cot__op_of((int)at[0])->name);
    for (int i = 1; i < 4 && at[i] != COT__RECIPE_NONE; i++) {
        cot__put(s->to, i > 1 ? ", " : "");
        if (at[i] >= 0) put_step(s, f, k, at[i]);
        else put_leaf(s, f, k, (int)~at[i]);
    }
    cot__put(s->to, ")");
}

static void put_made(const cot__formula_style *s, uint32_t k) {
    static const char *const names[] = {[COT__SUM] = "sum", [COT__MAX] = "max", [COT__MIN] = "min",
                                        [COT__NORM2] = "norm"};
    cot__made_form f;
    cot__made_form_of(cot__operation_attr(s->p, k), &f);
    cot__putf(s->to, "%s(", names[f.what]);
    put_step(s, &f, k, f.steps - 1);
    cot__put(s->to, ")");
}

/* ---- formulas -------------------------------------------------------------------------------- */

/* Calls itself at most `depth` times. */
static void put_root(const cot__formula_style *s, uint32_t root, int depth, bool bare);

static void put(const cot__formula_style *s, uint32_t value, int depth, bool bare) {
    uint32_t root = s->root(s->user, value);
    bool     turned = is_turned(s, value, root);
    cot__put(s->to, turned ? "transpose(" : "");
    put_root(s, root, depth, bare || turned);
    cot__put(s->to, turned ? ")" : "");
}

static void put_root(const cot__formula_style *s, uint32_t root, int depth, bool bare) {
    static const char *const signs[OP_elementwise_count] = {
        [OP_add] = " + ", [OP_sub] = " - ", [OP_mul] = " * ", [OP_smul] = " * ", [OP_div] = " / ", [OP_sdiv] = " / "};
    if (depth == 0 || !s->written_out(s->user, root)) {
        s->name(s->user, root);
        return;
    }
    uint32_t        k = cot__value_maker(s->p, root);
    const uint32_t *x = cot__operation_operand(s->p, k);
    int             op = s->p->operation[k].op;
    const char     *sign = op < OP_structural ? signs[op] : NULL;
    if (op == OP_fold_made) {
        put_made(s, k);
        return;
    }
    cot__putf(s->to, "%s%s", sign ? "" : op == OP_neg ? "-" : cot__op_of(op)->name, sign && bare ? "" : "(");
    for (int i = 0; i < cot__operation_operands(s->p, k); i++) {
        cot__put(s->to, i ? (sign ? sign : ", ") : "");
        if (x[i] == COT__NO_VALUE) cot__put_number(s->to, cot__operation_number(s->p, k));
        else put(s, x[i], depth - 1, !sign);
    }
    cot__put(s->to, sign && bare ? "" : ")");
}

void cot__put_formula_of(const cot__formula_style *s, uint32_t value) { put(s, value, s->depth, true); }
