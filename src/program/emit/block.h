/* block.h: an operation that is a block of its own on its way to text, and what the files that
 * print them share. */
#ifndef COT_EMIT_BLOCK_H
#define COT_EMIT_BLOCK_H

#include "program/emit/writer.h"

/* What all of them look at. */
typedef struct cot__block {
    cot__writer     *w;
    uint32_t         k, z;
    const uint32_t  *x;
    const cot__attr *attr;
    cot__view        xv, zv; /* of operand 0 and of the result, row-major */
} cot__block;

/* depth of the lines of a block */
enum { COT__BASE = 2 };
#define COT__ALL_AXES UINT32_MAX

static inline cot__text *cot__to(const cot__block *b) { return b->w->to; }
static inline int64_t    cot__int(const cot__block *b, int at) { return b->attr->ints[at]; }

/* "z[i] = " */
void cot__open_result(const cot__block *b, int depth, const cot__at_index *at);
/* z = operand x, which has its shape; z = a number. */
void cot__put_copy(const cot__block *b, uint32_t x);
void cot__put_fill(const cot__block *b, double value);
/* "before + step * index", in room; NULL for 0. */
const char *cot__shifted(const char *index, int64_t before, int64_t step, char room[64]);
/* An i64 that is called `text` in the result's dtype, and the end of the statement. */
void cot__put_stored(const cot__block *b, const char *text);

typedef void cot__put_fn(const cot__block *b);
cot__put_fn cot__put_reshape;
cot__put_fn cot__put_concat;
cot__put_fn cot__put_pad;
cot__put_fn cot__put_take;
cot__put_fn cot__put_take_along;
cot__put_fn cot__put_scatter_add;
cot__put_fn cot__put_scatter_add_along;
cot__put_fn cot__put_one_hot;
cot__put_fn cot__put_sum;
cot__put_fn cot__put_max;
cot__put_fn cot__put_min;
cot__put_fn cot__put_any;
cot__put_fn cot__put_all;
cot__put_fn cot__put_argmax;
cot__put_fn cot__put_argmin;
cot__put_fn cot__put_matmul;
cot__put_fn cot__put_update_slice;
cot__put_fn cot__put_add_slice;
cot__put_fn cot__put_copy_into;
cot__put_fn cot__put_cumsum;

#endif
