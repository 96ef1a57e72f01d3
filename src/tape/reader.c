/* reader.c: the elements of a view, a block at a time. */
#include "tape/reader.h"

void cot__reader_open(cot__reader *r, const cot__view *v) {
    r->at = 0;
    r->size = cot__count(v->ndim, v->shape);
    cot__cursor_open(&r->cursor, v, COT_F64);
}

void cot__reader_spread(cot__reader *r, const cot__view *v, const cot__view *like) {
    static const int64_t still[COT_MAX_NDIM];
    cot__view all = v->ndim == like->ndim ? *v : (cot__view){v->data, v->dtype, like->ndim, like->shape, still};
    cot__reader_open(r, &all);
}

double cot__reader_next(cot__reader *r) {
    int64_t k = r->at % COT__BLOCK;
    if (k == 0)
        r->block =
            cot__cursor_load(&r->cursor, r->size - r->at < COT__BLOCK ? (int)(r->size - r->at) : COT__BLOCK, r->buf);
    r->at++;
    return r->block[k];
}
