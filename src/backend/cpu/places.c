/* places.c: integers that are positions: flattened coordinates, the last writer of each place, the
 * places of nonzero elements, and one_hot. */
#include "backend/cpu/kernels.h"

static int64_t wrap(int64_t position, int64_t extent) { return position < 0 ? position + extent : position; }

/* A reader of integers in row-major order. */
typedef struct integers {
    cot__cursor    c;
    int64_t        left, buf[COT__BLOCK];
    const int64_t *p;
    int            at, len;
} integers;

static void integers_open(integers *s, const cot__view *v) {
    cot__cursor_open(&s->c, v, COT_I64);
    s->left = cot__count(v->ndim, v->shape);
    s->at = s->len = 0;
}

static int64_t integers_next(integers *s) {
    if (s->at == s->len) {
        s->len = s->left < COT__BLOCK ? (int)s->left : COT__BLOCK;
        s->p = cot__cursor_load(&s->c, s->len, s->buf);
        s->left -= s->len;
        s->at = 0;
    }
    return s->p[s->at++];
}

/* Of one coordinate: a block at a time. */
static void count_from_front(const cot__view *index, int64_t extent, int64_t *z) {
    cot__cursor c;
    int64_t     buf[COT__BLOCK], n = cot__count(index->ndim, index->shape);
    cot__cursor_open(&c, index, COT_I64);
    for (int64_t at = 0; at < n; at += COT__BLOCK) {
        int            some = n - at < COT__BLOCK ? (int)(n - at) : COT__BLOCK;
        const int64_t *p = cot__cursor_load(&c, some, buf);
        for (int i = 0; i < some; i++) z[at + i] = wrap(p[i], extent);
    }
}

void cot__ravel_index(const cot__view *index, int d, const int64_t *extent, const cot__view *places) {
    int64_t *z = places->data, n = cot__count(places->ndim, places->shape);
    integers in;
    if (d == 1) {
        count_from_front(index, extent[0], z);
        return;
    }
    integers_open(&in, index);
    for (int64_t i = 0; i < n; i++) {
        z[i] = 0;
        for (int k = 0; k < d; k++) z[i] = z[i] * extent[k] + wrap(integers_next(&in), extent[k]);
    }
}

void cot__last_writer(const cot__view *index, const cot__view *writers) {
    int64_t *z = writers->data, n = cot__count(index->ndim, index->shape), extent = writers->shape[0];
    integers in;
    for (int64_t i = 0; i < extent; i++) z[i] = -1;
    integers_open(&in, index);
    for (int64_t i = 0; i < n; i++) z[wrap(integers_next(&in), extent)] = i;
}

void cot__nonzero(const cot__view *mask, const cot__view *places, int64_t *status) {
    int64_t n = cot__count(mask->ndim, mask->shape), found = 0, room = places ? places->shape[0] : n;
    int64_t *z = places ? places->data : NULL;
    integers in;
    integers_open(&in, mask);
    for (int64_t i = 0; i < n && found < room; i++) {
        if (!integers_next(&in)) continue;
        if (z) z[found] = i;
        found++;
    }
    for (int64_t i = found; z && i < room; i++) z[i] = -1;
    status[0] = found;
}

void cot__one_hot(const cot__view *index, const cot__view *z) {
    int64_t  count = cot__count(index->ndim, index->shape), n = z->shape[z->ndim - 1], size = cot__dtype_size(z->dtype);
    char    *row = z->data;
    integers in;
    cot__fill(z, 0);
    integers_open(&in, index);
    for (int64_t k = 0; k < count; k++, row += n * size)
        cot__store_f64(row + wrap(integers_next(&in), n) * size, z->dtype, 1);
}
