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

/* Linear algebra on matrices for which there is no text. */
bool cot__is_too_large(const cot__block *b);
/* And gradients of weights over too many images. */
bool cot__has_too_many_images(const cot__block *b);

/* "z[i] = " */
void cot__open_result(const cot__block *b, int depth, const cot__at_index *at);
/* z = operand x, which has its shape; z = a number. */
void cot__put_copy(const cot__block *b, uint32_t x);
void cot__put_fill(const cot__block *b, double value);
/* "&z[i]": where an element of a value lies that has axes; and how far it is to the next along an
 * axis. */
void    cot__put_address(const cot__block *b, uint32_t value, const cot__at_index *at);
int64_t cot__step(const cot__block *b, uint32_t value, int axis);
/* Operand k as it lies: its shape, and strides that need not be row-major. */
cot__view cot__operand_view(const cot__block *b, int k);
/* Operands of an operation that wants them row-major (cot__wants_dense): copies of those that are
 * not, and a pointer to operand k. */
void cot__put_dense_copies(const cot__block *b);
void cot__put_dense(const cot__block *b, int k);
/* "NAME_f64(" of an operand's dtype, _u8 for bool */
void cot__put_typed_call(const cot__block *b, const char *name, cot_dtype d);
/* What makes a double a number of the result's dtype: stands before it. */
const char *cot__rounded(const cot__block *b);
/* The function returns if this holds, and its caller learns which check it was: "if (CONDITION". */
void cot__open_check(const cot__block *b, int depth);
void cot__close_check(const cot__block *b);
/* "before + step * index", in room; NULL for 0. */
const char *cot__shifted(const char *index, int64_t before, int64_t step, char room[64]);
/* An i64 that is called `text` in the result's dtype, and the end of the statement. */
void cot__put_stored(const cot__block *b, const char *text);

/* A fold of values through cot_fold_KIND_f64 or _f32 (fold.inc), in a variable f_0; before
 * and behind: what stands around each value. */
typedef struct cot__fold {
    const char *kind, *before, *behind;
    cot_dtype   as;
} cot__fold;

/* A fold of so many values will be printed. */
void cot__note_levels(cot__writer *w, int64_t count);

/* Loops over the axes that stay when those of `mask` are folded, and the place of the result. */
int  cot__open_kept(const cot__block *b, uint32_t mask, bool keeps, cot__at_index *xi, cot__at_index *zi,
                    cot__loop_names *room);
/* Folds the slices of x along `mask`. */
void cot__put_fold(const cot__block *b, int depth, uint32_t mask, const cot__fold *f, cot__at_index *xi,
                   cot__loop_names *room);
/* s_0 = the sum of x[0][ai] x[1][bi] over k_0 below `terms`, which are 2 or more; `declared`: there
 * is an s_0. */
void cot__put_vectors(const cot__block *b, int depth, int64_t terms, const cot__at_index *ai, const cot__at_index *bi,
                      bool declared);
/* "cot_fold_end_KIND_f64(" */
void cot__put_fold_call(const cot__block *b, const cot__fold *f, const char *what);

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
cot__put_fn cot__put_norm;
cot__put_fn cot__put_logsumexp;
cot__put_fn cot__put_softmax;
cot__put_fn cot__put_csr_matmul;
cot__put_fn cot__put_csr_sddmm;
cot__put_fn cot__put_csr_softmax;
cot__put_fn cot__put_mse;
cot__put_fn cot__put_cross_entropy;
cot__put_fn cot__put_ravel_index;
cot__put_fn cot__put_last_writer;
cot__put_fn cot__put_nonzero;
cot__put_fn cot__put_recurrence;
cot__put_fn cot__put_cumargmax;
cot__put_fn cot__put_argsort;
cot__put_fn cot__put_searchsorted;
cot__put_fn cot__put_probabilities;
cot__put_fn cot__put_draw_at;
cot__put_fn cot__put_list;
cot__put_fn cot__put_logsumexp_of;
cot__put_fn cot__put_lu_factors;
cot__put_fn cot__put_lu;
cot__put_fn cot__put_lu_solve;
cot__put_fn cot__put_determinant;
cot__put_fn cot__put_triangular_solve;
cot__put_fn cot__put_cholesky;
cot__put_fn cot__put_qr;
cot__put_fn cot__put_convolution;
cot__put_fn cot__put_loop;
cot__put_fn cot__put_way_back;
cot__put_fn cot__put_pool;
cot__put_fn cot__put_normalized;
cot__put_fn cot__put_norm_back;
cot__put_fn cot__put_norm_weights;

#endif
