/* recipe.c: makes ranges of arrays that are not written. */
#include "backend/cpu/gemm/recipe.h"
#include "backend/cpu/strip.h"
#include "base/parallel.h"

#include <string.h>

/* ---- axes ------------------------------------------------------------------------------------ */

static bool one_axis(const cot__recipe *r, int outer, int inner) {
    for (int l = 0; l < r->leaves; l++)
        if (r->leaf[l].stride[outer] != r->leaf[l].stride[inner] * r->shape[inner]) return false;
    return true;
}

static void move_axis(cot__recipe *r, int from, int to) {
    r->shape[to] = r->shape[from];
    for (int l = 0; l < r->leaves; l++) r->leaf[l].stride[to] = r->leaf[l].stride[from];
}

void cot__recipe_ready(const cot__recipe *r, cot__recipe *m) {
    *m = *r;
    m->bytes = cot__dtype_size(r->dtype);
    m->row = cot__row_kernels_of(r->dtype);
    for (int k = 0; k < r->steps; k++)
        m->step[k].kernel = r->step[k].op == COT__RECIPE_PRODUCT ? NULL : cot__blocks(r->step[k].op, r->dtype)->value;
    m->ndim = 0;
    for (int k = 0; k < r->ndim; k++) {
        if (r->shape[k] == 1) continue;
        move_axis(m, k, m->ndim);
        if (m->ndim > 0 && one_axis(m, m->ndim - 1, m->ndim)) {
            int64_t outer = m->shape[m->ndim - 1];
            move_axis(m, m->ndim, m->ndim - 1);
            m->shape[m->ndim - 1] *= outer;
        } else
            m->ndim++;
    }
    if (m->ndim == 0) {
        m->ndim = 1;
        m->shape[0] = 1;
        for (int l = 0; l < m->leaves; l++) m->leaf[l].stride[0] = 0;
    }
    for (int l = 0; l < m->leaves; l++) {
        if (!m->leaf[l].data) m->leaf[l].data = &m->leaf[l].number;
        for (int k = 0; k < m->ndim; k++) m->leaf[l].stride[k] *= m->bytes;
    }
}

/* The index of element `first`. */
static void seek(const cot__recipe *r, int64_t first, int64_t *index) {
    for (int k = r->ndim - 1; k > 0; k--) {
        index[k] = first % r->shape[k];
        first /= r->shape[k];
    }
    index[0] = first;
}

static void next_row(const cot__recipe *r, int64_t *index) {
    int k = r->ndim - 1;
    index[k] = 0;
    while (--k >= 0 && ++index[k] == r->shape[k]) index[k] = 0;
}

static inline const void *leaf_at(const cot__recipe *r, int l, const int64_t *index) {
    const char *at = r->leaf[l].data;
    for (int k = 0; k < r->ndim; k++) at += index[k] * r->leaf[l].stride[k];
    return at;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

typedef union block { double f64[COT__BLOCK]; float f32[COT__BLOCK]; } block;

/* How many of n elements from `index` on are left in its row. */
static int in_row(const cot__recipe *r, const int64_t *index, int n) {
    int64_t left = r->shape[r->ndim - 1] - index[r->ndim - 1];
    return left < n ? (int)left : n;
}

/* n elements of a leaf: a pointer to them, or to a copy in buf. */
static const void *operand(const cot__recipe *r, int l, const int64_t *first, int n, void *buf) {
    int64_t        inner = r->leaf[l].stride[r->ndim - 1], index[COT__RECIPE_AXES];
    cot__strip_fn *strip = cot__strip(r->dtype, r->dtype);
    if (inner == r->bytes && in_row(r, first, n) == n) return leaf_at(r, l, first);
    memcpy(index, first, sizeof index);
    for (int at = 0, m; at < n; at += m, next_row(r, index)) {
        m = in_row(r, index, n - at);
        strip((char *)buf + at * r->bytes, 1, leaf_at(r, l, index), inner / r->bytes, m);
    }
    return buf;
}

static const void *one_of(cot_dtype dtype) {
    static const double f64 = 1;
    static const float  f32 = 1;
    return dtype == COT_F64 ? (const void *)&f64 : &f32;
}

/* The number and the row of the row at index. */
typedef struct row_at { const char *x, *y; } row_at;
static inline row_at find_row(const cot__recipe *r, int a, int b, const int64_t *index) {
    return (row_at){leaf_at(r, a, index), leaf_at(r, b, index)};
}

/* The next row, mostly a step away. */
static inline void go_on(const cot__recipe *r, int a, int b, int64_t *index, row_at *at) {
    int last = r->ndim - 1;
    if (last > 0 && index[last - 1] + 1 < r->shape[last - 1]) {
        at->x += r->leaf[a].stride[last - 1];
        at->y += r->leaf[b].stride[last - 1] - index[last] * r->bytes;
        index[last - 1]++;
        index[last] = 0;
        return;
    }
    next_row(r, index);
    *at = find_row(r, a, b, index);
}

/* n elements of numbers times rows that lie as they are read. */
static void rows_of_numbers(const cot__recipe *r, int a, int b, int64_t *index, int n, char *to) {
    int    last = r->ndim - 1;
    row_at at = find_row(r, a, b, index);
    for (int m; n > 0; n -= m, to += m * r->bytes) {
        m = in_row(r, index, n);
        r->row->row(at.x, at.y, one_of(r->dtype), m, to, false);
        if (index[last] + m == r->shape[last]) go_on(r, a, b, index, &at);
    }
}

/* A column, which repeats along rows, times a row. Otherwise (one row, one column, any strides)
 * numbers times numbers, each a row of one element. */
static void product(const cot__recipe *r, int step, const int64_t *first, int n, void *to) {
    int     a = ~r->step[step].arg[0], b = ~r->step[step].arg[1], last = r->ndim - 1;
    bool    rows = r->leaf[a].stride[last] == 0;
    int64_t index[COT__RECIPE_AXES];
    block   buf;
    /* a column of one row: exchange the two */
    if (!rows && r->leaf[b].stride[last] == 0) {
        int other = a;
        a = b, b = other;
        rows = true;
    }
    memcpy(index, first, sizeof index);
    if (rows && r->leaf[b].stride[last] == r->bytes) {
        rows_of_numbers(r, a, b, index, n, to);
        return;
    }
    for (int at = 0, m; at < n; at += m) {
        m = rows ? in_row(r, index, n - at < COT__BLOCK ? n - at : COT__BLOCK) : 1;
        const void *y = operand(r, b, index, m, &buf);
        r->row->row(leaf_at(r, a, index), y, one_of(r->dtype), m, (char *)to + at * r->bytes, false);
        if ((index[last] += m) == r->shape[last]) next_row(r, index);
    }
}

void cot__recipe_load(const cot__recipe *r, int64_t first, int n, void *to) {
    block   made[COT__RECIPE_STEPS - 1], buf[3];
    int64_t index[COT__RECIPE_AXES];
    seek(r, first, index);
    for (int k = 0; k < r->steps; k++) {
        void       *z = k + 1 < r->steps ? &made[k] : to;
        const void *x[3] = {NULL, NULL, NULL};
        if (!r->step[k].kernel) {
            product(r, k, index, n, z);
            continue;
        }
        for (int i = 0; i < 3; i++) {
            int arg = r->step[k].arg[i];
            if (arg != COT__RECIPE_NONE) x[i] = arg >= 0 ? &made[arg] : operand(r, ~arg, index, n, &buf[i]);
        }
        r->step[k].kernel(n, x[0], x[1], x[2], z);
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

int cot__recipe_sums(const cot__recipe *r, int64_t first, int count, void *sums) {
    int         last = r->ndim - 1, a = ~r->step[0].arg[0], b = ~r->step[0].arg[1], n = 0;
    int64_t     index[COT__RECIPE_AXES], row = r->shape[last];
    const void *f[COT__RECIPE_SUMS], *y[COT__RECIPE_SUMS];
    if ((r->steps != 1 && !r->squares) || r->leaf[a].stride[last] != 0 || r->leaf[b].stride[last] != r->bytes) return 0;
    seek(r, first, index);
    row_at at = find_row(r, a, b, index);
    while (n < count && row - index[last] >= COT__BLOCK) {
        f[n] = at.x;
        y[n++] = at.y;
        index[last] += COT__BLOCK;
        if (index[last] == row) {
            index[last] -= COT__BLOCK; /* which `at` has */
            go_on(r, a, b, index, &at);
        } else at.y += COT__BLOCK * r->bytes;
    }
    r->row->leaves(f, y, n, r->squares, sums);
    return n;
}

bool cot__recipe_add(const cot__recipe *r, int64_t first, int n, void *sums, bool add) {
    int     last = r->ndim - 1, a = ~r->step[0].arg[0], b = ~r->step[0].arg[1];
    int64_t index[COT__RECIPE_AXES];
    bool    scaled = r->steps > 1;
    if (scaled && (r->scale < 0 || r->leaf[r->scale].stride[last] != 0)) return false;
    seek(r, first, index);
    if (in_row(r, index, n) != n || r->leaf[a].stride[last] != 0 || r->leaf[b].stride[last] != r->bytes) return false;
    r->row->row(leaf_at(r, a, index), leaf_at(r, b, index), scaled ? leaf_at(r, r->scale, index) : one_of(r->dtype), n,
                sums, add);
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct share { const cot__recipe *r; int64_t blocks, parts, size; } share;

static void write_part(void *ctx, int64_t part) {
    const share *s = ctx;
    int64_t      at = cot__part_start(s->blocks, s->parts, part) * COT__BLOCK,
            stop    = cot__part_start(s->blocks, s->parts, part + 1) * COT__BLOCK;
    if (stop > s->size) stop = s->size;
    for (int n; at < stop; at += n) {
        /* a single product needs no blocks in between */
        int most = s->r->steps == 1 ? COT__BLOCK << 10 : COT__BLOCK;
        n = stop - at < most ? (int)(stop - at) : most;
        cot__recipe_load(s->r, at, n, (char *)s->r->data + at * s->r->bytes);
    }
}

void cot__recipe_write(const cot__recipe *r) {
    cot__recipe m;
    cot__recipe_ready(r, &m);
    share s = {&m, 0, 1, cot__count(m.ndim, m.shape)};
    s.blocks = (s.size + COT__BLOCK - 1) / COT__BLOCK;
    s.parts = cot__parts(s.blocks, COT__BLOCK * m.steps, 64);
    if (s.size > 0) cot__parallel(s.parts, write_part, &s);
}
