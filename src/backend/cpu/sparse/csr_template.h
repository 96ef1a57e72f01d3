/* csr_template.h: rows of a sparse matrix times a dense one, for one float type and one instruction
 * set; included by csr_matmul.c for each pair.
 *
 *   T        the type
 *   N(name)  decorates names
 *   TARGET   the function attribute
 *
 * The chain of an element is the same in all of them: t = 0, then t = t + v x over the entries of
 * its row in order, each product and each sum rounded. Entries whose column there is not are left
 * out, so that a pattern from a file reads nothing but x. */

typedef T N(wide) __attribute__((vector_size(64), aligned(4), may_alias));
typedef T N(narrow) __attribute__((vector_size(16), aligned(4), may_alias));

/* Some entries of one row: values, and the rows of x that they multiply. */
typedef struct N(entries) {
    int      n;
    T        value[MOST];
    const T *row[MOST];
} N(entries);

/* Columns j … of z, `many` vectors of V side by side: z = (first ? 0 : z) + the entries. */
#define TILE(NAME, V)                                                                                                  \
    static inline __attribute__((always_inline)) TARGET void NAME(const int many, const N(entries) * e, int64_t j,     \
                                                                  T *z, bool first) {                                 \
        enum { VL = sizeof(V) / sizeof(T) };                                                                           \
        V t[TILES];                                                                                                    \
        UNROLL for (int c = 0; c < many; c++) t[c] = first ? (V){0} : *(const V *)(const void *)(z + j + c * VL);      \
        for (int i = 0; i < e->n; i++) {                                                                               \
            const T *x = e->row[i] + j;                                                                                \
            V        v = e->value[i] - (V){0};                                                                         \
            UNROLL for (int c = 0; c < many; c++) t[c] = t[c] + v * *(const V *)(const void *)(x + c * VL);            \
        }                                                                                                              \
        UNROLL for (int c = 0; c < many; c++) *(V *)(void *)(z + j + c * VL) = t[c];                                   \
    }
TILE(N(wide_tile), N(wide))
TILE(N(narrow_tile), N(narrow))
#undef TILE

/* All k columns of one row of z. Where z was not begun before, the last few are done together with
 * some before them once more, which gives the same. */
static TARGET void N(row)(const N(entries) *e, int64_t k, T *z, bool first) {
    enum { WIDE = 64 / sizeof(T), NARROW = 16 / sizeof(T) };
    int64_t j = 0;
    for (; j + TILES * WIDE <= k; j += TILES * WIDE) N(wide_tile)(TILES, e, j, z, first);
    for (; j + WIDE <= k; j += WIDE) N(wide_tile)(1, e, j, z, first);
    for (; j + NARROW <= k; j += NARROW) N(narrow_tile)(1, e, j, z, first);
    if (j < k && first && k >= NARROW) {
        N(narrow_tile)(1, e, k - NARROW, z, first);
        return;
    }
    for (; j < k; j++) {
        T t = first ? 0 : z[j];
        for (int i = 0; i < e->n; i++) t = t + e->value[i] * e->row[i][j];
        z[j] = t;
    }
}

/* Rows of z that are `many` vectors: they stay in registers, and entries are used as they are
 * found. */
static inline __attribute__((always_inline)) TARGET void N(direct)(const int many, const product *p, int64_t from,
                                                                   int64_t to) {
    enum { WIDE = 64 / sizeof(T) };
    const cot__compressed *a = p->a;
    const T               *v = p->v, *x = p->x;
    for (int64_t i = from; i < to; i++) {
        N(wide) t[TILES];
        T      *z = (T *)p->z + i * p->k;
        int64_t at = start_of(a, i), end = end_of(a, i, at);
        UNROLL for (int c = 0; c < many; c++) t[c] = (N(wide)){0};
        for (; at < end; at++) {
            uint32_t j = (uint32_t)a->column[at], o = a->order ? (uint32_t)a->order[at] : (uint32_t)at;
            if (j >= p->columns || o >= p->entries) continue;
            const T *row = x + j * p->row;
            N(wide)  u = v[o] - (N(wide)){0};
            UNROLL for (int c = 0; c < many; c++) t[c] = t[c] + u * *(const N(wide) *)(const void *)(row + c * WIDE);
        }
        UNROLL for (int c = 0; c < many; c++) *(N(wide) *)(void *)(z + c * WIDE) = t[c];
    }
}
static TARGET void N(one_vector)(const product *p, int64_t from, int64_t to) { N(direct)(1, p, from, to); }
static TARGET void N(two_vectors)(const product *p, int64_t from, int64_t to) { N(direct)(2, p, from, to); }

static TARGET void N(product)(const product *p, int64_t from, int64_t to) {
    const cot__compressed *a = p->a;
    const T        *v = p->v, *x = p->x;
    for (int64_t i = from; i < to; i++) {
        N(entries) e;
        T      *z = (T *)p->z + i * p->k;
        int64_t at = start_of(a, i), end = end_of(a, i, at);
        bool    first = true;
        do {
            for (e.n = 0; at < end && e.n < MOST; at++) {
                uint32_t c = (uint32_t)a->column[at], o = a->order ? (uint32_t)a->order[at] : (uint32_t)at;
                if (c >= p->columns || o >= p->entries) continue;
                e.value[e.n] = v[o];
                e.row[e.n++] = x + c * p->row;
            }
            N(row)(&e, p->k, z, first);
            first = false;
        } while (at < end);
    }
}

/* The same of one column: one chain for each row. */
static TARGET void N(chains)(const product *p, int64_t from, int64_t to) {
    const cot__compressed *a = p->a;
    const T               *v = p->v, *x = p->x;
    for (int64_t i = from; i < to; i++) {
        int64_t at = start_of(a, i), end = end_of(a, i, at);
        T       t = 0;
        for (; at < end; at++) {
            uint32_t c = (uint32_t)a->column[at], o = a->order ? (uint32_t)a->order[at] : (uint32_t)at;
            if (c >= p->columns || o >= p->entries) continue;
            t = t + v[o] * x[c * p->row];
        }
        ((T *)p->z)[i] = t;
    }
}

/* Are the starts of these rows and the columns of their entries legal? Without a branch, so that it
 * is done by vectors. */
static TARGET bool N(are_legal)(const product *p, int64_t from, int64_t to) {
    const int32_t *start = p->a->start, *column = p->a->column;
    uint32_t       wrong = start[from] < 0 || start[to] > p->a->entries, columns = p->columns;
    for (int64_t i = from; i < to; i++) wrong |= start[i + 1] < start[i];
    if (wrong) return false;
    for (int64_t at = start[from], end = start[to]; at < end; at++) wrong |= (uint32_t)column[at] >= columns;
    return !wrong;
}

/* Where x lies together and values are in the order of entries, rows that are legal are done
 * without looking at each entry's place: a few at a time, whose columns stay in the cache. */
static TARGET void N(column)(const product *p, int64_t from, int64_t to) {
    enum { AT_ONCE = 128 };
    const int32_t *start = p->a->start, *column = p->a->column;
    const T       *v = p->v, *x = p->x;
    T             *z = p->z;
    bool           plain = p->row == 1 && !p->a->order;
    for (int64_t few; from < to; from = few) {
        few = plain && to - from > AT_ONCE ? from + AT_ONCE : to;
        if (!plain || !N(are_legal)(p, from, few)) {
            N(chains)(p, from, few);
            continue;
        }
        for (int64_t i = from, at = start[i]; i < few; i++) {
            T t = 0;
            for (int64_t end = start[i + 1]; at < end; at++) {
                t = t + v[at] * x[column[at]];
                __asm__("" : "+r"(at)); /* vectors would only be taken apart again for the sum */
            }
            z[i] = t;
        }
    }
}

#undef T
#undef N
#undef TARGET
