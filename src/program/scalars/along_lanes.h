/* along_lanes.h: lines in lanes; included in along.c for each instruction set. */

/* Returns whether a product is NaN: then all is done again with care, for zero is strong in
 * some. */
static TARGET bool N(do_lanes)(const cot__line *c, const cot__line *end, double *row, int64_t runs) {
    typedef double  vector __attribute__((vector_size(BYTES), aligned(8), may_alias));
    typedef int64_t flags __attribute__((vector_size(BYTES)));
    enum { WIDE = BYTES / 8, PIECES = COT__LANES / WIDE };
    flags   nan = {0};
    int64_t any = 0;
    for (; c < end; c++) {
        double       *to = row + c->z, *first = row + c->x[0], *second = row + c->x[1];
        vector       *z = (vector *)(void *)to;
        const vector *x = (const vector *)(const void *)first, *y = (const vector *)(const void *)second;
        switch (c->code) {
        case COT__LINE_mul: case COT__LINE_smul:
            UNROLL for (int k = 0; k < PIECES; k++) {
                vector p = x[k] * y[k];
                nan |= p != p;
                z[k] = p;
            }
            break;
        case COT__LINE_add: UNROLL for (int k = 0; k < PIECES; k++) z[k] = x[k] + y[k]; break;
        case COT__LINE_sub: UNROLL for (int k = 0; k < PIECES; k++) z[k] = x[k] - y[k]; break;
        case COT__LINE_neg: UNROLL for (int k = 0; k < PIECES; k++) z[k] = -x[k]; break;
        default: for (int64_t l = 0; l < runs; l++) to[l] = to[l - 1] + first[l]; break;
        }
    }
    for (int k = 0; k < WIDE; k++) any |= nan[k];
    return any;
}
