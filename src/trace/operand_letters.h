/* operand_letters.h: finds the adjoint of one operand in the formula of a record, and replaces the
 * letters that formulas use for operands by names (cot__operand_letter). */
#ifndef COT_OPERAND_LETTERS_H
#define COT_OPERAND_LETTERS_H

#include "tape/show.h"

/* The number of bytes of a letter with a bar ("x̄", or "ā" as one character) at the beginning of s.
 * 0: there is none. */
int cot__barred(const char *s, const char *letter);

/* The formula of a record reads "z = value; adjoints". These return the value without "z = ", and
 * the adjoints ("" when there are none). */
void        cot__formula_value(const char *formula, char *buf, size_t size);
const char *cot__formula_adjoints(const char *formula);

/* Of "ā += z̄ @ bᵀ, b̄ += aᵀ @ z̄" the part for `letter`: "z̄ @ bᵀ". If the left side is only a part of
 * the operand ("x̄[i] += z̄"), the left side is included. Definitions that the part uses are included
 * too. If no part is for this letter alone, the whole text is returned. */
void cot__formula_part(const char *adjoints, const char *letter, char *buf, size_t size);

/* Writes `rule` with names in place of letters, and barred names in place of barred letters. */
typedef struct cot__renaming { int count; const char *letter[8], *name[8]; } cot__renaming;
void cot__formula_fill(const char *rule, const cot__renaming *with, char *buf, size_t size);

#endif
