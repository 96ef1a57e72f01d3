/* cpu.h: the door of the CPU's backend: its table, and single numbers.
 *
 * Files above src/backend include this header of src/backend/cpu and no other.
 *
 * May call: base, rules, kernels of the CPU. Must not touch: tapes, nodes, vars, derivatives. */
#ifndef COT_CPU_BACKEND_H
#define COT_CPU_BACKEND_H

#include "backend/backend.h"

extern const cot__backend cot__cpu_backend;
/* Is it the CPU, by either of its tables? */
static inline bool cot__is_cpu(const cot__backend *b) { return b == &cot__cpu_backend || b == cot__cpu_backend.fast; }

/* An elementwise operation on numbers of the host, which no tape has: x, y, w and z are values of
 * the compute type (F64, F32 or I64), those it does not take are not read. */
void cot__host_value(int op, cot_dtype compute, const void *x, const void *y, const void *w, void *z);
/* Does the operation keep integers? */
bool cot__takes_integers(int op);

#endif
