/* element.h: single values of any dtype that lie on the host: in nodes, in lists, in the caller's
 * memory.
 *
 * Elements of tensors may lie where the host cannot load them. They are read and written through
 * their backend (backend/backend.h). */
#ifndef COT_ELEMENT_H
#define COT_ELEMENT_H

#include "base/base.h"

/* The element at p, of dtype d, as f64 or i64, and back, as backend copies convert. */
double  cot__load_f64(const void *p, cot_dtype d);
int64_t cot__load_i64(const void *p, cot_dtype d);
void    cot__store_f64(void *p, cot_dtype d, double v);
void    cot__store_i64(void *p, cot_dtype d, int64_t v);

#endif
