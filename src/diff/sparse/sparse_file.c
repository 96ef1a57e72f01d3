/* sparse_file.c: plans in files.
 *
 *     "COTPLAN1"   u64 flags (1 Hessian, 2 forward), rows, columns, entries, colours
 *     u32 entries of each row
 *     u32 column of each entry
 *     u32 colour of each column (forward) or row
 *     u64 checksum of all before
 *
 * Little-endian. A file may claim sizes that are too large to be true. Arrays grow while they are
 * read, so the file ends before much memory is asked for. The lists of a plan are not in the file:
 * making them shows whether the colours are right. */
#include "diff/sparse/sparse.h"
#include "base/file/bytes.h"

#include <string.h>

static const char magic[8] = {'C', 'O', 'T', 'P', 'L', 'A', 'N', '1'};

/* ---- saving ---------------------------------------------------------------------------------- */

cot_status cot_sparse_plan_save(const cot_sparse_plan *p, FILE *file) {
    cot__sink s = {.write = cot__write_to_file, .to = file};
    if (!p || !file) return COT_VALUE;
    const cot__csr *m = &p->pattern;
    cot__sink_put(&s, magic, sizeof magic);
    cot__sink_number(&s, (uint64_t)p->hessian | (uint64_t)p->forward << 1, 8);
    cot__sink_number(&s, (uint64_t)m->rows, 8);
    cot__sink_number(&s, (uint64_t)m->cols, 8);
    cot__sink_number(&s, (uint64_t)m->nnz, 8);
    cot__sink_number(&s, (uint64_t)p->colours, 8);
    for (int64_t i = 0; i < m->rows; i++) cot__sink_number(&s, (uint64_t)(m->row_start[i + 1] - m->row_start[i]), 4);
    for (int64_t e = 0; e < m->nnz; e++) cot__sink_number(&s, (uint64_t)m->col[e], 4);
    for (int64_t j = 0, n = cot__plan_coloured(p); j < n; j++) cot__sink_number(&s, (uint64_t)p->colour[j], 4);
    cot__sink_number(&s, s.sum, 8);
    return cot__sink_end(&s) && fflush(file) == 0 ? COT_OK : COT_VALUE;
}

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct stream {
    FILE    *file;
    uint64_t sum;
    bool     ok;
} stream;

static uint64_t get(stream *s, int bytes) {
    unsigned char b[8];
    s->ok = s->ok && fread(b, 1, (size_t)bytes, s->file) == (size_t)bytes;
    if (!s->ok) return 0;
    s->sum = cot__checksum(s->sum, b, (size_t)bytes);
    return cot__from_bytes(b, bytes);
}

/* Reads `count` numbers, at most INT32_MAX each. The array ends with room for exactly `count`.
 * False: short of memory. */
static bool get_all(stream *s, const cot_allocator *al, int64_t count, int32_t **out) {
    int64_t  room = 0;
    int32_t *a = NULL;
    for (int64_t i = 0; i < count && s->ok; i++) {
        if (i == room) {
            int64_t more = room ? (2 * room < count ? 2 * room : count) : count < 4096 ? count : 4096;
            void   *p = cot__resize(al, a, (size_t)room * sizeof *a, (size_t)more * sizeof *a);
            if (!p) {
                cot__free(al, a, (size_t)room * sizeof *a);
                return false;
            }
            a = p;
            room = more;
        }
        uint64_t v = get(s, 4);
        a[i] = v <= INT32_MAX ? (int32_t)v : -1;
    }
    if (s->ok && room == 0) return (*out = cot__alloc(al, 0)) != NULL;
    if (s->ok) *out = a;
    else cot__free(al, a, (size_t)room * sizeof *a);
    return true;
}

/* Checks that the numbers read are consistent. Returns NULL, or what is wrong. Fills row_start from
 * the lengths of the rows. */
static const char *inspect(cot_sparse_plan *p, const int32_t *lengths) {
    cot__csr *m = &p->pattern;
    m->row_start[0] = 0;
    for (int64_t i = 0; i < m->rows; i++) {
        if (lengths[i] < 0 || lengths[i] > m->nnz - m->row_start[i]) return "its rows have more entries than it has";
        m->row_start[i + 1] = m->row_start[i] + lengths[i];
        for (int64_t e = m->row_start[i]; e < m->row_start[i + 1]; e++)
            if (m->col[e] < 0 || m->col[e] >= m->cols || (e > m->row_start[i] && m->col[e] <= m->col[e - 1]))
                return "the columns of a row are out of range or order";
    }
    if (m->row_start[m->rows] != m->nnz) return "its rows have fewer entries than it has";
    for (int64_t j = 0, n = cot__plan_coloured(p); j < n; j++)
        if (p->colour[j] < 0 || (p->colour[j] >= p->colours && (p->colours > 0 || m->nnz > 0 || p->colour[j] > 0)))
            return "a colour is out of range";
    return NULL;
}

static bool header(stream *s, cot_sparse_plan *p) {
    uint64_t flags = get(s, 8), rows = get(s, 8), cols = get(s, 8), nnz = get(s, 8), colours = get(s, 8);
    if (flags > 3 || rows > INT32_MAX || cols > INT32_MAX || nnz > rows * cols) return false;
    p->hessian = flags & 1;
    p->forward = flags >> 1 & 1;
    if (colours > (p->forward ? cols : rows) || (p->hessian && (!p->forward || rows != cols))) return false;
    p->pattern.rows = (int64_t)rows;
    p->pattern.cols = (int64_t)cols;
    p->pattern.nnz = (int64_t)nnz;
    p->colours = (int32_t)colours;
    return true;
}

/* Reads everything between header and checksum. Returns "memory" or what is wrong, NULL when all is
 * fine. */
static const char *body(stream *s, cot_sparse_plan *p) {
    static const char *const memory = "memory", *const ends = "it ends too early";
    cot__csr *m = &p->pattern;
    int32_t  *lengths = NULL;
    if (!get_all(s, &p->al, m->rows, &lengths)) return memory;
    if (!s->ok) return ends;
    const char *wrong =
        get_all(s, &p->al, m->nnz, &m->col) && (!s->ok || get_all(s, &p->al, cot__plan_coloured(p), &p->colour))
            ? NULL
            : memory;
    if (!wrong) {
        uint64_t sum = s->sum;
        bool     same = get(s, 8) == sum;
        wrong = !s->ok ? ends : !same ? "its checksum does not fit: it was altered" : NULL;
    }
    if (!wrong && !(m->row_start = cot__alloc(&p->al, (size_t)(m->rows + 1) * sizeof *m->row_start))) wrong = memory;
    if (!wrong) wrong = inspect(p, lengths);
    cot__free(&p->al, lengths, (size_t)m->rows * sizeof *lengths);
    if (wrong) return wrong;
    cot__plan_verdict verdict = cot__plan_finish(p);
    return verdict == COT__PLAN_MEMORY ? memory : verdict == COT__PLAN_MIXES ? "its colours would mix entries" : NULL;
}

cot_sparse_plan *cot_sparse_plan_load(cot_tape *t, FILE *file) {
    stream s = {file, 0, true};
    if (!t || t->status != COT_OK) return NULL;
    if (!file) {
        cot__fail(t, COT_VALUE, "[sparse_plan_load] the file is NULL");
        return NULL;
    }
    bool is_plan = true;
    for (int i = 0; i < 8; i++) is_plan &= get(&s, 1) == (uint64_t)magic[i];
    cot_sparse_plan *p = cot__plan_create(&t->cache.below);
    const char      *wrong = !p               ? "memory"
                             : !is_plan       ? "it does not begin like one"
                             : !header(&s, p) ? "its sizes are impossible"
                             : !s.ok          ? "it ends too early"
                                              : body(&s, p);
    if (!wrong) return p;
    if (!strcmp(wrong, "memory"))
        cot__fail(t, COT_MEMORY, "[sparse_plan_load] out of memory: a plan of %lld entries",
                  p ? (long long)p->pattern.nnz : 0LL);
    else cot__fail(t, COT_VALUE, "[sparse_plan_load] this file is not a plan: %s", wrong);
    cot_sparse_plan_destroy(p);
    return NULL;
}
