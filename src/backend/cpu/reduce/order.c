/* order.c: sorting along one axis, the k first of an order, and searching in sorted arrays.
 *
 * Every dtype is compared through one 64-bit key that orders like the values: -0 equals 0, all NaNs
 * are equal and above everything. A stable order is unique, so it does not matter how the work is
 * cut: rows go to different threads, and a long row is sorted in blocks that are then merged, each
 * merge cut into pieces of the output. The caller brings the scratch memory. */
#include "backend/cpu/strip.h"
#include "base/parallel.h"

#include <string.h>

typedef struct pair { uint64_t key; int64_t at; } pair;

/* FEW: if at most one element in FEW is asked for, a heap is used instead of a sort */
enum { RUN = 12, BLOCK = 1 << 14, MOST_PARTS = 32, FEW = 16 };

/* ---- keys ------------------------------------------------------------------------------------ */

static inline uint64_t key_f64(double v) {
    union { double f; uint64_t u; } bits = {v == 0 ? 0 : v};
    if (v != v) return UINT64_MAX;
    return bits.u >> 63 ? ~bits.u : bits.u | UINT64_C(1) << 63;
}

static inline uint64_t key_i64(int64_t v) { return (uint64_t)v ^ UINT64_C(1) << 63; }

/* Keys of n <= COT__BLOCK elements. */
static void load_keys(const cot__view *x, int64_t offset, int64_t stride, int n, uint64_t *key) {
    union { double f[COT__BLOCK]; int64_t i[COT__BLOCK]; } v;
    bool whole = cot__dtype_compute(x->dtype) == COT_I64;
    cot__strip(whole ? COT_I64 : COT_F64, x->dtype)(&v, 1, cot__at(x, offset), stride, n);
    if (whole) for (int i = 0; i < n; i++) key[i] = key_i64(v.i[i]);
    else for (int i = 0; i < n; i++) key[i] = key_f64(v.f[i]);
}

/* ---- merging --------------------------------------------------------------------------------- */

static void merge(const pair *a, int64_t na, const pair *b, int64_t nb, pair *z) {
    while (na > 0 && nb > 0) {
        bool second = b->key < a->key; /* of equals, a's come first */
        *z++ = second ? *b : *a;
        b += second, nb -= second;
        a += !second, na -= !second;
    }
    memcpy(z, a, (size_t)na * sizeof *a);
    memcpy(z + na, b, (size_t)nb * sizeof *b);
}

static void sort_run(pair *p, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        pair    x = p[i];
        int64_t j = i;
        for (; j > 0 && p[j - 1].key > x.key; j--) p[j] = p[j - 1];
        p[j] = x;
    }
}

/* Sorts p; other is as long. */
static void sort_block(pair *p, pair *other, int64_t n) {
    pair *from = p, *to = other;
    for (int64_t i = 0; i < n; i += RUN) sort_run(p + i, n - i < RUN ? n - i : RUN);
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t na = n - i < width ? n - i : width, nb = n - i - na < width ? n - i - na : width;
            merge(from + i, na, from + i + na, nb, to + i);
        }
        pair *swap = from;
        from = to, to = swap;
    }
    if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

/* ---- a row ----------------------------------------------------------------------------------- */

typedef struct sorting {
    cot__view x, z;
    int64_t   n, k;             /* elements of a row, and how many of its order are asked for */
    int64_t   x_axis, z_axis;
    uint64_t  flip;             /* all ones to sort downward */
    cot__walk rows;             /* of x and z */
    int64_t   row_count, parts;
    pair     *scratch;
    int64_t   each;             /* pairs of scratch a part has */
    /* a long row */
    int64_t   x_offset, z_offset, width;
    pair     *from, *to;
} sorting;

static void load_pairs(const sorting *s, int64_t x_offset, int64_t first, int64_t n, pair *p) {
    uint64_t key[COT__BLOCK];
    for (int64_t i = 0; i < n; i += COT__BLOCK) {
        int len = n - i < COT__BLOCK ? (int)(n - i) : COT__BLOCK;
        load_keys(&s->x, x_offset + (first + i) * s->x_axis, s->x_axis, len, key);
        for (int j = 0; j < len; j++) p[i + j] = (pair){key[j] ^ s->flip, first + i + j};
    }
}

static void store_places(const sorting *s, int64_t z_offset, int64_t first, int64_t n, const pair *p) {
    int64_t *z = (int64_t *)s->z.data + z_offset + first * s->z_axis;
    for (int64_t i = 0; i < n; i++) z[i * s->z_axis] = p[i].at;
}

/* Is a behind b in the order? No two elements are equal here. */
static inline bool behind(const pair *a, const pair *b) {
    return a->key > b->key || (a->key == b->key && a->at > b->at);
}

static void sift_down(pair *heap, int64_t n, int64_t i) {
    pair x = heap[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && behind(&heap[child + 1], &heap[child]);
        if (!behind(&heap[child], &x)) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

/* Finds the k first: a heap of the best so far, with the last of them on top. Every better element
 * replaces the top. */
static void select_row(const sorting *s, int64_t x_offset, int64_t z_offset, pair *heap) {
    pair next[COT__BLOCK];
    load_pairs(s, x_offset, 0, s->k, heap);
    for (int64_t i = s->k / 2; i-- > 0;) sift_down(heap, s->k, i);
    for (int64_t i = s->k; i < s->n; i += COT__BLOCK) {
        int64_t len = s->n - i < COT__BLOCK ? s->n - i : COT__BLOCK;
        load_pairs(s, x_offset, i, len, next);
        for (int64_t j = 0; j < len; j++)
            if (next[j].key < heap->key) { /* of equals the earlier stays */
                heap[0] = next[j];
                sift_down(heap, s->k, 0);
            }
    }
    for (int64_t left = s->k - 1; left > 0; left--) {
        pair last = heap[0];
        heap[0] = heap[left];
        heap[left] = last;
        sift_down(heap, left, 0);
    }
    store_places(s, z_offset, 0, s->k, heap);
}

static bool selects(const sorting *s) { return s->k <= s->n / FEW; }

static void row_offsets(const sorting *s, int64_t row, int64_t *x, int64_t *z) {
    *x = *z = 0;
    for (int i = s->rows.ndim - 1; i >= 0; row /= s->rows.shape[i], i--) {
        *x += row % s->rows.shape[i] * s->rows.stride[0][i];
        *z += row % s->rows.shape[i] * s->rows.stride[1][i];
    }
}

static void sort_rows(void *ctx, int64_t part) {
    const sorting *s = ctx;
    pair          *p = s->scratch + part * s->each;
    int64_t        end = cot__part_start(s->row_count, s->parts, part + 1), x, z;
    for (int64_t row = cot__part_start(s->row_count, s->parts, part); row < end; row++) {
        row_offsets(s, row, &x, &z);
        if (selects(s)) {
            select_row(s, x, z, p);
            continue;
        }
        load_pairs(s, x, 0, s->n, p);
        sort_block(p, p + s->n, s->n);
        store_places(s, z, 0, s->k, p);
    }
}

/* ---- a long row: blocks, then merges cut into blocks of their output ------------------------- */

static void sort_one_block(void *ctx, int64_t part) {
    const sorting *s = ctx;
    int64_t        first = part * BLOCK, n = s->n - first < BLOCK ? s->n - first : BLOCK;
    load_pairs(s, s->x_offset, first, n, s->from + first);
    sort_block(s->from + first, s->to + first, n);
}

/* How many of a's are among the first `o` of the merge of a and b. */
static int64_t split_at(const pair *a, int64_t na, const pair *b, int64_t nb, int64_t o) {
    int64_t low = o > nb ? o - nb : 0, high = o < na ? o : na;
    while (low < high) {
        int64_t i = low + (high - low) / 2;
        if (b[o - i - 1].key >= a[i].key) low = i + 1;
        else high = i;
    }
    return low;
}

static void merge_one_block(void *ctx, int64_t part) {
    const sorting *s = ctx;
    int64_t        first = part * BLOCK, n = s->n - first < BLOCK ? s->n - first : BLOCK;
    int64_t        start = first / (2 * s->width) * (2 * s->width), rest = s->n - start;
    int64_t        na = rest < s->width ? rest : s->width, nb = rest - na < s->width ? rest - na : s->width;
    const pair    *a = s->from + start, *b = a + na;
    int64_t        i = split_at(a, na, b, nb, first - start), i_end = split_at(a, na, b, nb, first - start + n);
    int64_t        j = first - start - i, j_end = first - start + n - i_end;
    merge(a + i, i_end - i, b + j, j_end - j, s->to + first);
}

static void store_one_block(void *ctx, int64_t part) {
    const sorting *s = ctx;
    int64_t        first = part * BLOCK;
    if (first < s->k) store_places(s, s->z_offset, first, s->k - first < BLOCK ? s->k - first : BLOCK, s->from + first);
}

static void sort_long_row(sorting *s, int64_t row) {
    int64_t blocks = (s->n + BLOCK - 1) / BLOCK;
    row_offsets(s, row, &s->x_offset, &s->z_offset);
    s->from = s->scratch;
    s->to = s->scratch + s->n;
    cot__parallel(blocks, sort_one_block, s);
    for (s->width = BLOCK; s->width < s->n; s->width *= 2) {
        cot__parallel(blocks, merge_one_block, s);
        pair *swap = s->from;
        s->from = s->to, s->to = swap;
    }
    cot__parallel(blocks, store_one_block, s);
}

static sorting plan(const cot__view *x, int axis, int64_t k, bool descending, const cot__view *z) {
    sorting s = {.x = *x, .n = x->shape[axis], .k = k, .x_axis = x->stride[axis], .flip = descending ? UINT64_MAX : 0};
    if (z) s.z = *z, s.z_axis = z->stride[axis];
    cot__walk_start(&s.rows, 2);
    for (int i = 0; i < x->ndim; i++)
        if (i != axis) cot__walk_axis(&s.rows, x->shape[i], x->stride[i], z ? z->stride[i] : 0, 0);
    s.row_count = s.n > 0 ? cot__count(x->ndim, x->shape) / s.n : 0;
    s.each = selects(&s) ? k : 2 * s.n;
    s.parts = selects(&s) || s.n <= BLOCK ? cot__parts(s.row_count, cot__size_mul(s.n, 16), MOST_PARTS) : 1;
    return s;
}

int64_t cot__argsort_scratch(const cot__view *x, int axis, int64_t k) {
    sorting s = plan(x, axis, k, false, NULL);
    size_t  bytes;
    return cot__size_bytes(cot__size_mul(s.parts, s.each), sizeof(pair), &bytes) ? (int64_t)bytes : -1;
}

void cot__argsort(const cot__view *x, int axis, bool descending, const cot__view *z, void *scratch) {
    sorting s = plan(x, axis, z->shape[axis], descending, z);
    s.scratch = scratch;
    if (s.row_count == 0 || s.k == 0) return;
    if (selects(&s) || s.n <= BLOCK) cot__parallel(s.parts, sort_rows, &s);
    else
        for (int64_t row = 0; row < s.row_count; row++) sort_long_row(&s, row);
}

/* ---- searching ------------------------------------------------------------------------------- */

void cot__first_descent(const cot__view *x, int64_t *status) {
    uint64_t key[COT__BLOCK], last = 0;
    status[0] = 0;
    for (int64_t i = 0; i < x->shape[0]; i += COT__BLOCK) {
        int len = x->shape[0] - i < COT__BLOCK ? (int)(x->shape[0] - i) : COT__BLOCK;
        load_keys(x, i * x->stride[0], x->stride[0], len, key);
        for (int j = 0; j < len; last = key[j++])
            if (key[j] < last) {
                status[0] = 1;
                status[1] = i + j;
                return;
            }
    }
}

typedef struct searching {
    cot__view sorted, v;
    bool      right;
    int64_t  *z, count, parts;
} searching;

static uint64_t key_at(const cot__view *x, int64_t offset) {
    const void *p = cot__at(x, offset);
    return cot__dtype_compute(x->dtype) == COT_I64 ? key_i64(cot__load_i64(p, x->dtype))
                                                   : key_f64(cot__load_f64(p, x->dtype));
}

static void search_part(void *ctx, int64_t part) {
    const searching *s = ctx;
    int64_t          end = cot__part_start(s->count, s->parts, part + 1);
    for (int64_t e = cot__part_start(s->count, s->parts, part); e < end; e++) {
        int64_t offset = 0, low = 0, high = s->sorted.shape[0], left = e;
        for (int i = s->v.ndim - 1; i >= 0; left /= s->v.shape[i], i--) offset += left % s->v.shape[i] * s->v.stride[i];
        uint64_t key = key_at(&s->v, offset);
        while (low < high) {
            int64_t  middle = low + (high - low) / 2;
            uint64_t x = key_at(&s->sorted, middle * s->sorted.stride[0]);
            if (s->right ? x <= key : x < key) low = middle + 1;
            else high = middle;
        }
        s->z[e] = low;
    }
}

void cot__searchsorted(const cot__view *sorted, const cot__view *v, bool right, const cot__view *z) {
    searching s = {*sorted, *v, right, z->data, cot__count(v->ndim, v->shape), 1};
    if (s.count == 0) return;
    s.parts = cot__parts(s.count, 256, 64);
    cot__parallel(s.parts, search_part, &s);
}
