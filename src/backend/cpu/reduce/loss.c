/* loss.c: the means of losses, summed in f64, block by block, and rounded once. */
#include "backend/cpu/kernels.h"
#include "base/math/elementary.h"

static void write_mean(const cot__view *z, double total, int64_t n) {
    cot__store_f64(z->data, z->dtype, total / (double)n);
}

/* p: values of which, with `logarithm`, the logarithm is still to be taken. */
void cot__mean_labelled(const cot__view *p, const cot__view *labels, bool logarithm, const cot__view *z) {
    int64_t     rows = cot__count(p->ndim - 1, p->shape), buf[COT__BLOCK], at[COT_MAX_NDIM] = {0};
    double      total = 0;
    cot__cursor c;
    cot__cursor_open(&c, labels, COT_I64);
    for (int64_t done = 0, offset = 0; done < rows; done += COT__BLOCK) {
        int            len = rows - done < COT__BLOCK ? (int)(rows - done) : COT__BLOCK;
        const int64_t *label = cot__cursor_load(&c, len, buf);
        double         part = 0;
        for (int i = 0; i < len; i++) {
            int64_t place = offset + label[i] * p->stride[p->ndim - 1];
            double  v = cot__load_f64((const char *)p->data + place * cot__dtype_size(p->dtype), p->dtype);
            part -= logarithm ? cot__log(v) : v;
            for (int k = p->ndim - 2; k >= 0; k--) { /* the next row */
                offset += p->stride[k];
                if (++at[k] < p->shape[k]) break;
                offset -= at[k] * p->stride[k];
                at[k] = 0;
            }
        }
        total += part;
    }
    write_mean(z, total, rows);
}

void cot__mean_weighted(const cot__view *p, const cot__view *q, bool logarithm, const cot__view *z) {
    double      a[COT__BLOCK], b[COT__BLOCK], total = 0;
    int64_t     n = cot__count(p->ndim, p->shape);
    cot__cursor cp, cq;
    cot__cursor_open(&cp, p, COT_F64);
    cot__cursor_open(&cq, q, COT_F64);
    for (int64_t done = 0; done < n; done += COT__BLOCK) {
        int           len = n - done < COT__BLOCK ? (int)(n - done) : COT__BLOCK;
        const double *v = cot__cursor_load(&cp, len, a), *w = cot__cursor_load(&cq, len, b);
        double        part = 0;
        for (int i = 0; i < len; i++)
            if (w[i] != 0) part -= w[i] * (logarithm ? cot__log(v[i]) : v[i]);
        total += part;
    }
    write_mean(z, total, cot__count(p->ndim - 1, p->shape));
}

void cot__mean_squares(const cot__view *x, const cot__view *y, const cot__view *z) {
    double      a[COT__BLOCK], b[COT__BLOCK], total = 0;
    int64_t     n = cot__count(x->ndim, x->shape);
    cot__cursor cx, cy;
    cot__cursor_open(&cx, x, COT_F64);
    cot__cursor_open(&cy, y, COT_F64);
    for (int64_t done = 0; done < n; done += COT__BLOCK) {
        int           len = n - done < COT__BLOCK ? (int)(n - done) : COT__BLOCK;
        const double *p = cot__cursor_load(&cx, len, a), *q = cot__cursor_load(&cy, len, b);
        double        part = 0;
        for (int i = 0; i < len; i++) part += (p[i] - q[i]) * (p[i] - q[i]);
        total += part;
    }
    write_mean(z, total, n);
}
