/* reader.h: the elements of a view, one after the other. */
#ifndef COT_READER_H
#define COT_READER_H

#include "backend/elements.h"

/* The elements of a view on a backend, one after the other, as f64. */
typedef struct cot__reader {
    cot__elements block;
    int64_t       at, size;
} cot__reader;
void   cot__reader_open(cot__reader *r, const cot__backend *b, const cot__view *v);
/* A 0-d v, also a number of the host, repeats over the elements of `like`. */
void   cot__reader_spread(cot__reader *r, const cot__backend *b, const cot__view *v, const cot__view *like);
double cot__reader_next(cot__reader *r);

#endif
