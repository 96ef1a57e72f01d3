/* uniform.h: which values of a program are one number, repeated. */
#ifndef COT_PASSES_UNIFORM_H
#define COT_PASSES_UNIFORM_H

#include "program/passes/passes.h"

typedef struct cot__uniform_constant { double number; uint8_t known, is; } cot__uniform_constant;

/* What was found out about each constant, so that no constant is looked at twice. */
typedef struct cot__uniform { cot__uniform_constant *constant; uint32_t constants; } cot__uniform;

/* For a walk over p that makes no constants. False after telling the caller that there is no
 * memory. */
bool cot__uniform_open(cot__uniform *u, const cot__program *p, const cot__pass_options *o);
void cot__uniform_close(cot__uniform *u, const cot__pass_options *o);

/* Have all elements of the value the same bits, and are they a number that an f64 can be? Constants
 * are, or views of them. */
bool cot__uniform_value(cot__uniform *u, const cot__program *p, uint32_t v, double *number);

#endif
