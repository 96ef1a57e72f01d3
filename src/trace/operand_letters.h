/* operand_letters.h: the adjoint of one operand out of the formula of a record, and names in place
 * of the letters that formulas use for operands (cot__operand_letter). */
#ifndef COT_OPERAND_LETTERS_H
#define COT_OPERAND_LETTERS_H

#include "tape/tape.h"

/* A letter with a bar ("x̄", or "ā" as one character) at the beginning of s: how many bytes it
 * takes, 0: none. */
int cot__barred(const char *s, const char *letter);

/* The record's formula reads "z = value; adjoints". Its value without "z = ", and its adjoints (""
 * when there are none). */
void        cot__formula_value(const char *formula, char *buf, size_t size);
const char *cot__formula_adjoints(const char *formula);

/* Of "ā += z̄ @ bᵀ, b̄ += aᵀ @ z̄" the part that goes to `letter`: "z̄ @ bᵀ"; with what stands on the
 * left where that is only a part ("x̄[i] += z̄"), and with the definitions it uses. All of it when no
 * part is for that letter alone. */
void cot__formula_part(const char *adjoints, const char *letter, char *buf, size_t size);

/* Writes `rule` with names for letters, and names with a bar for letters with one. */
typedef struct cot__renaming { int count; const char *letter[8], *name[8]; } cot__renaming;
void cot__formula_fill(const char *rule, const cot__renaming *with, char *buf, size_t size);

#define COT__BAR "\xcc\x84" /* U+0304, over the character before it */

#endif
