/* reader.c: reads the elements of a view, a block at a time. */
#include "tape/reader.h"

#include "backend/cpu/table/cpu.h"

void cot__reader_open(cot__reader *r, const cot__backend *b, const cot__view *v) {
    cot__elements_open(&r->block, b, v, COT_F64);
    r->at = 0;
    r->size = r->block.size;
}

void cot__reader_spread(cot__reader *r, const cot__backend *b, const cot__view *v, const cot__view *like) {
    static const int64_t still[COT_MAX_NDIM];
    cot__view all = v->ndim == like->ndim ? *v : (cot__view){v->data, v->dtype, like->ndim, like->shape, still};
    cot__reader_open(r, cot__is_number_view(v) ? &cot__cpu_backend : b, &all);
}

double cot__reader_next(cot__reader *r) {
    int64_t k = r->at % COT__BLOCK;
    if (k == 0) cot__elements_next(&r->block);
    r->at++;
    return r->block.f64[k];
}
