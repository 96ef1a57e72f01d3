/* plan_lists.c: finishes a plan. From the pattern and the colours it makes the lists that say which
 * entry is read off which product.
 *
 * Making the lists proves that the colours are right, so a plan that was read from a file is
 * finished here too. */
#include "diff/products/products.h"
#include "diff/sparse/sparse.h"

#include <string.h>

cot_sparse_plan *cot__plan_create(const cot_allocator *al) {
    cot_sparse_plan *p = cot__alloc(al, sizeof *p);
    if (p) *p = (cot_sparse_plan){.al = *al};
    return p;
}

void cot_sparse_plan_destroy(cot_sparse_plan *p) {
    if (!p) return;
    cot_allocator al = p->al;
    cot__free(&al, p->colour, (size_t)cot__plan_coloured(p) * sizeof *p->colour);
    cot__free(&al, p->entry_start, ((size_t)cot__plan_groups(p) + 1) * sizeof *p->entry_start);
    cot__free(&al, p->entry, (size_t)p->pattern.nnz * sizeof *p->entry);
    cot__free(&al, p->source, (size_t)p->pattern.nnz * sizeof *p->source);
    cot__free(&al, p->lane, (size_t)p->pattern.nnz * sizeof *p->lane);
    cot__csr_free(&al, &p->pattern);
    cot__free(&al, p, sizeof *p);
}

cot_sparse_info cot_sparse_plan_info(const cot_sparse_plan *p) {
    if (!p) return (cot_sparse_info){0};
    const cot__csr *m = &p->pattern;
    return (cot_sparse_info){
        m->rows, m->cols, m->nnz, m->row_start, m->col, p->colours, p->forward ? COT_FORWARD : COT_REVERSE, p->hessian};
}

/* ---- in which product an entry stands alone -------------------------------------------------- */

/* Finds for each row and colour how many entries of the row have a column of that colour. More than
 * one is a mistake in a Jacobian. In a Hessian such an entry is read in the other half. */
typedef struct reader {
    const cot_sparse_plan *p;
    int32_t               *count; /* by colour */
    bool                  *alone; /* by entry: the only one of its colour in its row */
} reader;

static void find_alone(reader *r, const cot__csr *m, const int32_t *colour) {
    for (int64_t i = 0; i < m->rows; i++) {
        int64_t from = m->row_start[i], to = m->row_start[i + 1];
        for (int64_t e = from; e < to; e++) r->count[colour[m->col[e]]]++;
        for (int64_t e = from; e < to; e++) r->alone[e] = r->count[colour[m->col[e]]] == 1;
        for (int64_t e = from; e < to; e++) r->count[colour[m->col[e]]] = 0;
    }
}

/* The place of entry (j, i) in the lists of the pattern. -1: it is not in the pattern. */
static int64_t find(const cot__csr *m, int32_t j, int32_t i) {
    int64_t low = m->row_start[j], high = m->row_start[j + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (m->col[middle] < i) low = middle + 1;
        else high = middle;
    }
    return low < m->row_start[j + 1] && m->col[low] == i ? low : -1;
}

/* Entry e is at (i, j). Finds the product, and the element of it, that holds the entry. (i, j) and
 * (j, i) of a Hessian are read off the same element, that of the upper half if possible. */
static bool place_of(const reader *r, int64_t e, int32_t i, int32_t *c, int32_t *source) {
    const cot_sparse_plan *p = r->p;
    int32_t                j = p->pattern.col[e];
    if (!p->forward) { /* rows_apart has checked the colours */
        *c = p->colour[i];
        *source = j;
        return true;
    }
    int32_t row = i, column = j;
    int64_t upper = e;
    if (p->hessian && i != j) {
        int64_t other = find(&p->pattern, j, i);
        if (other < 0) return false;
        upper = i < j ? e : other;
        row = i < j ? i : j, column = i < j ? j : i;
        if (!r->alone[upper]) { /* read the lower half instead */
            int32_t swap = row;
            row = column, column = swap;
            upper = upper == e ? other : e;
        }
    }
    *c = p->colour[column];
    *source = row;
    return r->alone[upper];
}

/* The pattern with its columns numbered anew, without columns that have no entries: a file with one
 * entry may claim a billion columns. Only `col` is new memory. */
static bool number_columns(const cot_allocator *al, const cot__csr *m, cot__csr *out) {
    uint32_t *sorted = cot__alloc(al, (size_t)m->nnz * sizeof *sorted);
    int64_t   n = 0;
    *out = (cot__csr){m->rows, 0, m->nnz, m->row_start, cot__alloc(al, (size_t)m->nnz * sizeof *out->col)};
    if (!sorted || !out->col) {
        cot__free(al, sorted, (size_t)m->nnz * sizeof *sorted);
        cot__free(al, out->col, (size_t)m->nnz * sizeof *out->col);
        return false;
    }
    for (int64_t e = 0; e < m->nnz; e++) sorted[e] = (uint32_t)m->col[e];
    cot__sort(sorted, m->nnz);
    for (int64_t e = 0; e < m->nnz; e++)
        if (e == 0 || sorted[e] != sorted[n - 1]) sorted[n++] = sorted[e];
    for (int64_t e = 0; e < m->nnz; e++) {
        int64_t low = 0, high = n;
        while (high - low > 1) {
            int64_t middle = low + (high - low) / 2;
            if (sorted[middle] <= (uint32_t)m->col[e]) low = middle;
            else high = middle;
        }
        out->col[e] = (int32_t)low;
    }
    out->cols = n;
    cot__free(al, sorted, (size_t)m->nnz * sizeof *sorted);
    return true;
}

/* Checks colours of rows: no column may have two rows of one colour. */
static bool rows_apart(const cot_sparse_plan *p, reader *r, bool *memory) {
    cot__csr m = p->pattern, t;
    bool     renumbered = m.cols > m.nnz;
    *memory = !renumbered || number_columns(&p->al, &p->pattern, &m);
    if (!*memory) return false;
    *memory = cot__csr_transpose(&p->al, &m, &t);
    if (renumbered) cot__free(&p->al, m.col, (size_t)m.nnz * sizeof *m.col);
    if (!*memory) return false;
    find_alone(r, &t, p->colour);
    int64_t e = 0;
    while (e < t.nnz && r->alone[e]) e++;
    cot__csr_free(&p->al, &t);
    return e == p->pattern.nnz;
}

static bool fill(cot_sparse_plan *p, const reader *r) {
    const cot__csr *m = &p->pattern;
    int32_t         c, source, groups = cot__plan_groups(p);
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++) {
            if (!place_of(r, e, (int32_t)i, &c, &source)) return false;
            p->entry_start[c / p->lanes + 1]++;
        }
    for (int32_t k = 0; k < groups; k++) p->entry_start[k + 1] += p->entry_start[k];
    /* entry_start[g] is used as the next free place of group g, and ends where group g + 1 began */
    for (int64_t i = 0; i < m->rows; i++)
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++) {
            place_of(r, e, (int32_t)i, &c, &source);
            int64_t at = p->entry_start[c / p->lanes]++;
            if (p->entry) p->entry[at] = (uint32_t)e;
            p->source[at] = source;
            p->lane[at] = (uint8_t)(c % p->lanes);
        }
    memmove(p->entry_start + 1, p->entry_start, (size_t)groups * sizeof *p->entry_start);
    p->entry_start[0] = 0;
    return true;
}

cot__plan_verdict cot__plan_finish(cot_sparse_plan *p) {
    /* the lists have 32-bit numbers; the values of that many entries alone would take 32 GiB */
    if (p->pattern.nnz > UINT32_MAX) return COT__PLAN_MEMORY;
    size_t nnz = (size_t)p->pattern.nnz, colours = (size_t)p->colours;
    reader  r      = {.p     = p,
                      .count = cot__alloc(&p->al, colours * sizeof *r.count),
                      .alone = cot__alloc(&p->al, nnz * sizeof *r.alone)};
    int32_t groups = (p->colours + COT__HELD - 1) / COT__HELD;
    /* groups of about the same size */
    p->lanes = groups ? (p->colours + groups - 1) / groups : 0;
    size_t starts = ((size_t)cot__plan_groups(p) + 1) * sizeof *p->entry_start;
    p->entry_start = cot__alloc(&p->al, starts);
    p->entry = groups > 1 ? cot__alloc(&p->al, nnz * sizeof *p->entry) : NULL;
    p->source = cot__alloc(&p->al, nnz * sizeof *p->source);
    p->lane = cot__alloc(&p->al, nnz * sizeof *p->lane);
    bool fine      = true,
         memory    = r.count && r.alone && p->entry_start && (p->entry || groups <= 1) && p->source && p->lane;
    if (memory) {
        memset(r.count, 0, colours * sizeof *r.count);
        memset(p->entry_start, 0, starts);
        if (p->forward) find_alone(&r, &p->pattern, p->colour);
        else fine = rows_apart(p, &r, &memory);
        fine = fine && fill(p, &r);
    }
    cot__free(&p->al, r.count, colours * sizeof *r.count);
    cot__free(&p->al, r.alone, nnz * sizeof *r.alone);
    return !memory ? COT__PLAN_MEMORY : fine ? COT__PLAN_FINE : COT__PLAN_MIXES;
}
