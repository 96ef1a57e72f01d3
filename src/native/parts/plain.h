/* plain.h: strong products (0 times anything is 0, also NaN) that plain ones can stand for. A plain
 * product differs from the strong one only where it is NaN, and arithmetic hands NaN on. So where
 * all that becomes of the products of a loop or a part is written, and no NaN is, plain ones have
 * done. */
#ifndef COT_NATIVE_PLAIN_H
#define COT_NATIVE_PLAIN_H

#include "native/parts/choose.h"
#include "program/emit/writer.h"

/* Would a NaN that a product of the loop makes be seen in what the loop writes, and do plain
 * products spare more than it takes to look? */
bool cot__native_can_be_plain(const cot__writer *w, const cot__choice *c, const cot__group *g);

/* Does the line write floats to memory, or a fold take them? */
bool cot__native_is_seen(const cot__writer *w, const cot__choice *c, uint32_t k);

/* The same of a part that is statements alone: its results wait until all are made. */
bool cot__native_part_can_be_plain(const cot__choice *c, const cot__run_part *q);

/* Is a result of operation k, which the part makes, read behind it? */
bool cot__native_leaves(const cot__choice *c, const cot__run_part *q, uint32_t k);

/* "apart_0", true where nothing that the loop writes lies where it reads: then it can be done
 * again. */
void cot__native_put_apart(cot__writer *w, const cot__choice *c, const cot__group *g, int depth);

#endif
