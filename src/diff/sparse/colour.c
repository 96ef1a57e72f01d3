/* colour.c: colourings of columns; see colour.h. The work is the number of pairs of entries that
 * share a row. That is at most entries times colours, less than the sweeps will take. */
#include "diff/sparse/colour.h"

#include <string.h>

bool cot__csr_transpose(const cot_allocator *al, const cot__csr *m, cot__csr *out) {
    *out = (cot__csr){m->cols, m->rows, m->nnz, cot__alloc(al, (size_t)(m->cols + 1) * sizeof *out->row_start),
                      cot__alloc(al, (size_t)m->nnz * sizeof *out->col)};
    if (!out->row_start || !out->col) {
        cot__csr_free(al, out);
        return false;
    }
    memset(out->row_start, 0, (size_t)(m->cols + 1) * sizeof *out->row_start);
    for (int64_t e = 0; e < m->nnz; e++) out->row_start[m->col[e] + 1]++;
    for (int64_t j = 0; j < m->cols; j++) out->row_start[j + 1] += out->row_start[j];
    /* row_start[j] is used as the next free place of row j, and ends where row j + 1 began */
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++)
            out->col[out->row_start[m->col[e]]++] = (int32_t)i;
    memmove(out->row_start + 1, out->row_start, (size_t)m->cols * sizeof *out->row_start);
    out->row_start[0] = 0;
    return true;
}

int64_t cot__fullest_row(const cot__csr *m) {
    int64_t most = 0;
    for (int64_t i = 0; i < m->rows; i++) {
        int64_t n = m->row_start[i + 1] - m->row_start[i];
        most = n > most ? n : most;
    }
    return most;
}

/* Visits every column that shares a row with column j, j included. A column that shares several
 * rows is visited once for each of them. */
#define EACH_NEAR(m, t, j, other)                                                                                      \
    for (int64_t e_ = (t)->row_start[j]; e_ < (t)->row_start[(j) + 1]; e_++)                                           \
        for (int64_t f_ = (m)->row_start[(t)->col[e_]]; f_ < (m)->row_start[(t)->col[e_] + 1]; f_++)                   \
            for (int32_t other = (m)->col[f_], once_ = 1; once_; once_ = 0)

/* ---- first fit ------------------------------------------------------------------------------- */

static int32_t first_fit(const cot__csr *m, const cot__csr *t, int32_t *colour, int32_t *used) {
    int32_t colours = 0;
    for (int64_t j = 0; j < m->cols; j++) colour[j] = -1;
    /* used[c]: the last column that has a neighbour of colour c */
    memset(used, 0xff, (size_t)m->cols * sizeof *used);
    for (int32_t j = 0; j < m->cols; j++) {
        int32_t c = 0;
        EACH_NEAR(m, t, j, other) if (colour[other] >= 0) used[colour[other]] = j;
        while (c < colours && used[c] == j) c++;
        colour[j] = c;
        colours = c == colours ? c + 1 : colours;
    }
    return colours;
}

/* ---- by saturation --------------------------------------------------------------------------- */

/* Columns without a colour, in a heap. First come columns that see most colours (a column sees the
 * colours of its neighbours), then those with most neighbours, then those with the lowest
 * number. */
typedef struct saturation {
    const cot__csr *m, *t;
    int             words; /* words of 64 bits in a row of `sees`, one bit for each colour */
    uint64_t       *sees;  /* (cols, words): the colours that each column sees */
    int32_t        *seen;  /* how many colours each column sees */
    int64_t        *degree;
    int32_t        *heap, *place; /* place: where a column is in the heap; -1: it has a colour */
    int32_t         count;
} saturation;

static bool before(const saturation *s, int32_t a, int32_t b) {
    if (s->seen[a] != s->seen[b]) return s->seen[a] > s->seen[b];
    if (s->degree[a] != s->degree[b]) return s->degree[a] > s->degree[b];
    return a < b;
}

static void settle(saturation *s, int32_t v, int32_t at) {
    s->heap[at] = v;
    s->place[v] = at;
}

static void rise(saturation *s, int32_t v) {
    int32_t at = s->place[v];
    for (; at > 0 && before(s, v, s->heap[(at - 1) / 2]); at = (at - 1) / 2) settle(s, s->heap[(at - 1) / 2], at);
    settle(s, v, at);
}

static void sink(saturation *s, int32_t v, int32_t at) {
    for (int64_t child; (child = 2 * (int64_t)at + 1) < s->count; at = (int32_t)child) {
        if (child + 1 < s->count && before(s, s->heap[child + 1], s->heap[child])) child++;
        if (before(s, v, s->heap[child])) break;
        settle(s, s->heap[child], at);
    }
    settle(s, v, at);
}

static int32_t next_column(saturation *s) {
    int32_t first = s->heap[0], last = s->heap[--s->count];
    if (s->count > 0) sink(s, last, 0);
    s->place[first] = -1;
    return first;
}

static int32_t lowest_unseen(const saturation *s, int32_t j) {
    const uint64_t *sees = s->sees + (int64_t)j * s->words;
    for (int w = 0; w < s->words; w++)
        if (~sees[w]) return 64 * w + __builtin_ctzll(~sees[w]);
    return 64 * s->words;
}

/* Returns -1 as soon as it would need `limit` colours. */
static int32_t saturate(saturation *s, int32_t *colour, int32_t limit) {
    int32_t colours = 0;
    for (int32_t j = 0; j < s->m->cols; j++) {
        s->degree[j] = 0;
        for (int64_t e = s->t->row_start[j]; e < s->t->row_start[j + 1]; e++)
            s->degree[j] += s->m->row_start[s->t->col[e] + 1] - s->m->row_start[s->t->col[e]];
    }
    s->count = (int32_t)s->m->cols;
    for (int32_t j = 0; j < s->count; j++) settle(s, j, j);
    for (int32_t j = s->count; j-- > 0;) sink(s, s->heap[j], j);
    while (s->count > 0) {
        int32_t j = next_column(s), c = lowest_unseen(s, j);
        if (c + 1 >= limit) return -1;
        colour[j] = c;
        colours = c >= colours ? c + 1 : colours;
        EACH_NEAR(s->m, s->t, j, other) {
            uint64_t *word = &s->sees[(int64_t)other * s->words + c / 64], bit = UINT64_C(1) << c % 64;
            if (s->place[other] < 0 || *word & bit) continue;
            *word |= bit;
            s->seen[other]++;
            rise(s, other);
        }
    }
    return colours;
}

/* Replaces the given colours if it finds fewer; otherwise leaves them. */
static int32_t by_saturation(const cot_allocator *al, const cot__csr *m, const cot__csr *t, int32_t *colour,
                             int32_t colours) {
    /* With more colours than this, the memory for `sees` would cost more than the gain is worth. */
    enum { MOST = 512 };
    if (colours > MOST) return colours;
    saturation s = {.m = m, .t = t, .words = (colours + 63) / 64};
    size_t     n = (size_t)m->cols, see_bytes = n * (size_t)s.words * sizeof *s.sees;
    s.sees = cot__alloc(al, see_bytes);
    s.degree = cot__alloc(al, n * sizeof *s.degree);
    s.seen = cot__alloc(al, 4 * n * sizeof *s.seen);
    int32_t better = -1;
    if (s.sees && s.degree && s.seen) {
        memset(s.sees, 0, see_bytes);
        memset(s.seen, 0, n * sizeof *s.seen);
        s.heap = s.seen + n;
        s.place = s.heap + n;
        better = saturate(&s, s.place + n, colours);
        if (better > 0) memcpy(colour, s.place + n, n * sizeof *colour);
    }
    cot__free(al, s.sees, see_bytes);
    cot__free(al, s.degree, n * sizeof *s.degree);
    cot__free(al, s.seen, 4 * n * sizeof *s.seen);
    /* When memory is short, the colours of first fit will do. */
    return better > 0 ? better : colours;
}

int32_t cot__colour_columns(const cot_allocator *al, const cot__csr *m, int32_t *colour) {
    int64_t least = cot__fullest_row(m);
    if (m->cols == 0) return 0;
    /* A full row: every column needs a colour of its own, so there is nothing to search. */
    if (least == m->cols) {
        for (int32_t j = 0; j < m->cols; j++) colour[j] = j;
        return (int32_t)m->cols;
    }
    cot__csr t;
    int32_t *used = cot__alloc(al, (size_t)m->cols * sizeof *used), colours = -1;
    if (used && cot__csr_transpose(al, m, &t)) {
        colours = first_fit(m, &t, colour, used);
        if (colours > least) colours = by_saturation(al, m, &t, colour, colours);
        cot__csr_free(al, &t);
    }
    cot__free(al, used, (size_t)m->cols * sizeof *used);
    return colours;
}
