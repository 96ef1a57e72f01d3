/* sparsity.c: the walk up the tape that gives every element the set of inputs that it depends on.
 *
 * The kind of an operation says which elements it mixes, so there is no second table of rules:
 *   elementwise          element by element, the operands that have a derivative
 *   linear               the operation is run on element numbers (sparsity_linear.c); so is a
 *                        generic one whose rule reads no values (pad)
 *   bilinear             the same for each operand while the other one is fixed: the union over the
 *                        contracted axes
 *   lists of places      sparse matrices tell what each element reads (sparsity_index.c)
 *   generic              dense over its core axes where its attributes name them (axes, axis,
 *                        from), else over all axes
 *   loops and the like   their bodies are played and walked step by step (sparsity_loop.c)
 * The sets may be too large but never too small. This holds for all values of the inputs that lead
 * to the same tape: a branch of where or cot_cond counts also if it is not taken, and positions
 * that depend on the inputs (an argsort in take) may be any (sparsity_index.c). Other positions are
 * taken from this tape. */
#include "rules/structural_ids.h"
#include "diff/sparse/sparsity.h"

#include <string.h>

/* ---- the limit ------------------------------------------------------------------------------- */

enum { DEFAULT_LIMIT = 1 << 26 };

void cot_sparse_plan_limit(cot_tape *t, int64_t entries) {
    if (t) t->options.sparse_limit = entries > 0 ? entries : 0;
}

static int64_t limit_of(const cot_tape *t) { return t->options.sparse_limit ? t->options.sparse_limit : DEFAULT_LIMIT; }

static bool too_many(const cot__patterns *p) {
    cot__fail(p->t, COT_LIMIT,
              "[%s] the pattern of (%lld,%lld) has more than %lld entries, here or on the way; where most entries can "
              "be other than zero, take the dense "
              "matrix in blocks (cot_jacobian, cot_hessian) or products (cot_vjp, cot_jvp, cot_hvp), or allow more "
              "(cot_sparse_plan_limit)",
              p->op, (long long)p->rows, (long long)p->cols, (long long)limit_of(p->t));
    return false;
}

bool cot__patterns_short(cot__patterns *p) {
    if (p->sets.full) return too_many(p);
    cot__fail(p->t, COT_MEMORY, "[%s] out of memory: the sparsity pattern", p->op);
    return false;
}

cot__set *cot__sets_at(cot__patterns *p, uint32_t node) {
    uint32_t *of = &p->of[node - p->lo];
    if (!cot__has_axes(&p->t->nodes[node])) return of;
    if (*of) return p->arrays[*of - 1].sets;
    int64_t   size = cot__size_at(p->t, node);
    cot__set *sets = cot__alloc(&p->t->al, (size_t)size * sizeof *sets);
    if (!sets ||
        !cot__ensure(&p->t->al, (void **)&p->arrays, &p->array_capacity, p->array_count + 1, sizeof *p->arrays)) {
        cot__free(&p->t->al, sets, (size_t)size * sizeof *sets);
        cot__patterns_short(p);
        return NULL;
    }
    memset(sets, 0, (size_t)size * sizeof *sets);
    p->arrays[p->array_count++] = (cot__set_array){sets, size};
    *of = (uint32_t)p->array_count;
    return sets;
}

/* ---- elementwise ----------------------------------------------------------------------------- */

/* An operand has the shape of the node. Otherwise it is 0-d and does not depend on the inputs. */
static bool elementwise(cot__patterns *p, uint32_t i) {
    cot_tape                    *t = p->t;
    const cot__elementwise_info *e = &cot__elementwise_table[t->nodes[i].op];
    for (int k = 0; k < e->arity; k++) {
        uint32_t a = cot__arg(&t->nodes[i], k);
        if (!e->partial[k] || !cot__depends(p, a)) continue;
        cot__set *z = cot__sets_at(p, i);
        if (!z) return false;
        const cot__set *x = cot__has_axes(&t->nodes[a]) ? p->arrays[p->of[a - p->lo] - 1].sets : &p->of[a - p->lo];
        int64_t         n = cot__size_at(t, i);
        for (int64_t j = 0; j < n; j++) cot__set_add(p, &z[j], x[j]);
    }
    return true;
}

/* ---- contractions ---------------------------------------------------------------------------- */

/* Walks the elements of a shape in order, and computes a number from the element's index along the
 * given axes, the first axis counting most. */
typedef struct counter {
    int     ndim;
    int64_t at[COT_MAX_NDIM], dim[COT_MAX_NDIM], weight[COT_MAX_NDIM], group;
} counter;

static counter counter_of(cot_shape s, int n, const int *axis) {
    counter c = {.ndim = s.ndim};
    memcpy(c.dim, s.dim, sizeof c.dim);
    int64_t weight = 1;
    for (int k = n - 1; k >= 0; k--) c.weight[axis[k]] = weight, weight *= s.dim[axis[k]];
    return c;
}

static void step(counter *c) {
    for (int k = c->ndim - 1; k >= 0; k--) {
        c->group += c->weight[k];
        if (++c->at[k] < c->dim[k]) return;
        c->group -= c->weight[k] * c->dim[k];
        c->at[k] = 0;
    }
}

bool cot__contract(cot__patterns *p, uint32_t z, uint32_t x, int shared, const int *x_axis, const int *z_axis) {
    cot_tape *t = p->t;
    cot_shape xs = cot__shape_at(t, x), zs = cot__shape_at(t, z);
    int64_t   groups = 1, nx = cot__size_at(t, x), nz = cot__size_at(t, z);
    for (int k = 0; k < shared; k++) groups *= xs.dim[x_axis[k]];
    cot__set *to = cot__sets_at(p, z), *whole = cot__alloc(&t->al, (size_t)groups * sizeof *whole);
    if (!to || !whole) {
        cot__free(&t->al, whole, (size_t)groups * sizeof *whole);
        return cot__patterns_short(p);
    }
    memset(whole, 0, (size_t)groups * sizeof *whole);
    counter c = counter_of(xs, shared, x_axis);
    for (int64_t i = 0; i < nx; i++, step(&c)) cot__set_add(p, &whole[c.group], cot__set_at(p, x, i));
    c = counter_of(zs, shared, z_axis);
    for (int64_t i = 0; i < nz; i++, step(&c)) cot__set_add(p, &to[i], whole[c.group]);
    cot__free(&t->al, whole, (size_t)groups * sizeof *whole);
    return true;
}

/* ---- generic: what the attributes say about the core axes ------------------------------------ */

/* The axes that operand x shares with the result z, that is, those outside the core. Attributes
 * name the core in one of three ways (cot__op.attrs):
 *   "axes:m keepdims:f"   a reduction
 *   "axis:a"              one axis
 *   "from:a"              that axis and all after it */
static int shared_axes(const cot_tape *t, uint32_t z, uint32_t x, int *x_axis, int *z_axis) {
    const char      *attrs = cot__op_of(t->nodes[z].op)->attrs;
    const cot__attr *a = attrs ? t->nodes[z].extra.attr : NULL;
    cot_shape        xs = cot__shape_at(t, x), zs = cot__shape_at(t, z);
    bool             reduces = attrs && strncmp(attrs, "axes:m keepdims:f", 17) == 0,
         along               = attrs && strncmp(attrs, "axis:a", 6) == 0;
    bool from = attrs && strncmp(attrs, "from:a", 6) == 0,
         same = xs.ndim == zs.ndim && !memcmp(xs.dim, zs.dim, (size_t)xs.ndim * sizeof *xs.dim);
    int              n = 0;
    if (!reduces && !(same && (along || from))) return 0;
    for (int k = 0, at = 0; k < xs.ndim; k++) {
        bool core = reduces ? a->ints[0] >> k & 1 : along ? k == a->ints[0] : k >= a->ints[0];
        if (!core) x_axis[n] = k, z_axis[n++] = reduces ? at : k;
        at += !core || (reduces && a->ints[1]);
    }
    return n;
}

/* What is known of the core holds for result 0; any other result depends on all. */
bool cot__dense_pattern(cot__patterns *p, uint32_t i) {
    int n = cot__nargs(&p->t->nodes[i]), x_axis[COT_MAX_NDIM], z_axis[COT_MAX_NDIM];
    for (uint32_t z = i, end = i + (uint32_t)cot__results_at(p->t, i); z < end; z++) {
        if (!(p->t->nodes[z].flags & COT__ACTIVE)) continue;
        for (int k = 0; k < n; k++) {
            if (!cot__moves(p, i, k)) continue;
            uint32_t x = cot__arg(&p->t->nodes[i], k);
            int      shared = z == i ? shared_axes(p->t, i, x, x_axis, z_axis) : 0;
            if (!cot__contract(p, z, x, shared, x_axis, z_axis)) return false;
        }
    }
    return true;
}

/* An operation of any kind that makes a number from numbers depends on all of them. Sums of many
 * thousand numbers are of this kind too. */
static bool all_scalars(cot__patterns *p, uint32_t i) {
    const cot__node *node = &p->t->nodes[i];
    int              n = cot__nargs(node);
    bool             all = !cot__has_axes(node);
    for (int k = 0; k < n && all; k++) all = !cot__moves(p, i, k) || !cot__has_axes(&p->t->nodes[cot__arg(node, k)]);
    for (int k = 0; k < n && all; k++)
        if (cot__moves(p, i, k)) cot__set_add(p, &p->of[i - p->lo], cot__set_at(p, cot__arg(node, k), 0));
    return all;
}

/* Node i writes to the memory of its operand a, and takes over the sets of a. Nothing reads the old
 * value any more, unless a is a leaf that was assigned new numbers since; then the sets are copied.
 * So a loop of writes to slices costs linear time. (In a body the memory is a copy of its own.) */
static cot__set *inherit(cot__patterns *p, uint32_t i) {
    uint32_t a = p->t->nodes[i].a;
    if (!cot__depends(p, a)) return cot__sets_at(p, i);
    if (p->of[i - p->lo] == 0 && !cot__assigned_since(p->t, a, i)) {
        p->of[i - p->lo] = p->of[a - p->lo];
        p->of[a - p->lo] = 0;
        return cot__sets_at(p, i);
    }
    cot__set *z = cot__sets_at(p, i);
    for (int64_t j = 0, n = z ? cot__size_at(p->t, i) : 0; j < n; j++) cot__set_add(p, &z[j], cot__set_at(p, a, j));
    return z;
}

/* x[slice] += y or x[slice] = y, in place. Elements outside the slice keep their sets. */
static bool write_slice(cot__patterns *p, uint32_t i) {
    cot_tape      *t = p->t;
    uint32_t       y = t->nodes[i].b;
    const int64_t *slice = t->nodes[i].extra.attr->ints;
    cot_shape      s = cot__shape_at(t, i);
    int64_t        inner = cot__count(s.ndim - 1 - (int)slice[0], s.dim + slice[0] + 1),
            outer        = cot__count((int)slice[0], s.dim);
    /* an input has columns of its own, which no write takes away */
    bool           input = p->of[i - p->lo] != 0, sets = cot__op_of(t->nodes[i].op)->writes == COT__SETS_SLICE;
    cot__set      *z = inherit(p, i);
    int64_t        from = 0;
    if (!z) return false;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < slice[2]; k++)
            for (int64_t e = 0; e < inner; e++, from++) {
                cot__set *to = &z[(o * s.dim[slice[0]] + slice[1] + k * slice[3]) * inner + e];
                if (sets && !input) *to = 0;
                cot__set_add(p, to, cot__set_at(p, y, from));
            }
    return true;
}

/* Node i has the shape of its operand k, and each element depends on the same element of the
 * operand: a cast, because element numbers would not survive in another dtype, and a copy in
 * place. */
bool cot__same_pattern(cot__patterns *p, uint32_t i, int k) {
    uint32_t  x = cot__arg(&p->t->nodes[i], k);
    cot__set *z = cot__depends(p, x) ? cot__sets_at(p, i) : NULL;
    if (!z) return !cot__depends(p, x);
    for (int64_t j = 0, n = cot__size_at(p->t, i); j < n; j++) cot__set_add(p, &z[j], cot__set_at(p, x, j));
    return true;
}

static bool structural(cot__patterns *p, uint32_t i) {
    cot_tape      *t = p->t;
    const cot__op *op = cot__op_of(t->nodes[i].op);
    bool           moves = false;
    /* a pick got its sets with its operation */
    if (op->kind == KIND_NONE || op->kind == KIND_SOURCE || op->kind == KIND_PICK) return true;
    for (int k = 0, n = cot__nargs(&t->nodes[i]); k < n && !moves; k++) moves = cot__moves(p, i, k);
    if (!moves) return true;
    if (cot__results_at(t, i) == 1 && (cot__size_at(t, i) == 0 || all_scalars(p, i))) return true;
    switch (t->nodes[i].op) {
    case OP_loop: return cot__loop_pattern(p, i);
    case OP_loop_adjoint: return cot__loop_adjoint_pattern(p, i);
    default: break;
    }
    if (op->inlined) return cot__inlined_pattern(p, i);
    if (op->reach) return cot__reached_pattern(p, i);
    if (op->same) return cot__same_pattern(p, i, (int)op->same - 1);
    if (op->writes) return write_slice(p, i);
    if (op->kind == KIND_GENERIC && op->choice.from) return cot__chosen_pattern(p, i);
    uint8_t positions = 0;
    for (int k = 0; k < 32 && op->kind == KIND_LINEAR && op->inactive >> k; k++)
        if (op->inactive >> k & 1) positions |= cot__varies(p, cot__arg(&t->nodes[i], k));
    if (positions & COT__VARIES) return cot__chosen_pattern(p, i);
    p->consulted |= positions;
    bool constant = op->kind == KIND_LINEAR || (op->kind == KIND_GENERIC && op->saves == 0 && op->jvp);
    return constant || op->kind == KIND_BILINEAR ? cot__linear_pattern(p, i) : cot__dense_pattern(p, i);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool seed_inputs(cot__patterns *p, int n, const cot_var *xs) {
    uint32_t column = 0;
    for (int k = 0; k < n; k++) {
        uint32_t  i = cot__index(xs[k]);
        int64_t   size = cot__size_at(p->t, i);
        cot__set *z = cot__sets_at(p, i);
        if (!z) return false;
        p->varies[i - p->lo] = COT__VARIES;
        for (int64_t e = 0; e < size; e++)
            /* an input that is listed twice has both columns */
            cot__set_add(p, &z[e], cot__set_of(&p->sets, column++));
    }
    return true;
}

bool cot__patterns_grow(cot__patterns *p) {
    int64_t count = (int64_t)p->t->count - p->lo, before = p->of_capacity, varied = p->varies_capacity;
    if (!cot__ensure(&p->t->al, (void **)&p->of, &p->of_capacity, count, sizeof *p->of) ||
        !cot__ensure(&p->t->al, (void **)&p->varies, &p->varies_capacity, count, 1))
        return cot__patterns_short(p);
    memset(p->of + before, 0, (size_t)(p->of_capacity - before) * sizeof *p->of);
    memset(p->varies + varied, 0, (size_t)(p->varies_capacity - varied));
    return true;
}

/* Notes whether the value of node i varies. It does if an operand varies, with a derivative or
 * without. It also does if it is an example that stands for a computed value. */
static void note_varying(cot__patterns *p, uint32_t i) {
    const cot__node *n = &p->t->nodes[i];
    uint8_t          bits = p->varies[i - p->lo];
    for (int k = 0, args = cot__nargs(n); k < args; k++) bits |= cot__varies(p, cot__arg(n, k));
    if (p->examples && cot__op_of(n->op)->example) bits |= COT__VARIES;
    p->varies[i - p->lo] = bits;
}

bool cot__patterns_walk(cot__patterns *p, uint32_t first, uint32_t end, const uint8_t *needed) {
    cot_tape *t = p->t;
    bool      ok = true;
    for (uint32_t i = first; i < end && ok; i++) {
        const cot__node *n = &t->nodes[i];
        note_varying(p, i);
        if (!needed[i - first] || !(n->flags & COT__ACTIVE) || n->op == OP_leaf) continue;
        ok = n->op < OP_structural ? elementwise(p, i) : structural(p, i);
        if (ok && p->sets.failed) ok = cot__patterns_short(p);
    }
    return ok;
}

/* Will the rows have more than `limit` entries? This is counted before memory is taken for them.
 * First the columns that the sets name are counted, repeated ones too; only if they are too many,
 * those that the sets really have (exactly). Rows of a dense pattern mostly share a set. */
static bool exceeds(cot__patterns *p, int m, const cot_var *ys, int64_t limit, bool exactly) {
    int64_t  sum = 0, n = 0;
    cot__set last = 0; /* the empty set, which has n = 0 columns */
    for (int k = 0; k < m; k++) {
        uint32_t i = cot__index(ys[k]);
        for (int64_t e = 0, size = i >= p->lo ? cot__size_at(p->t, i) : 0; e < size; e++) {
            cot__set a = cot__set_at(p, i, e);
            if (!exactly) n = (int64_t)p->sets.entries[a].cost;
            else if (a != last) cot__set_columns(&p->sets, a, &n);
            last = a;
            if (n > limit - sum) return exactly || exceeds(p, m, ys, limit, true);
            sum += n;
        }
    }
    return false;
}

static bool write_rows(cot__patterns *p, const cot_allocator *al, int m, const cot_var *ys, cot__csr *out) {
    int64_t capacity = 0, row = 0, limit = limit_of(p->t);
    if (exceeds(p, m, ys, limit, false)) return too_many(p);
    for (int k = 0; k < m; k++) {
        uint32_t i = cot__index(ys[k]);
        for (int64_t e = 0, size = cot__size_at(p->t, i); e < size; e++, row++) {
            int64_t         n;
            const uint32_t *columns = cot__set_columns(&p->sets, cot__set_at(p, i, e), &n);
            if (p->sets.failed || !cot__ensure(al, (void **)&out->col, &capacity, out->nnz + n, sizeof *out->col)) {
                cot__free(al, out->col, (size_t)capacity * sizeof *out->col);
                out->col = NULL;
                return cot__patterns_short(p);
            }
            for (int64_t c = 0; c < n; c++) out->col[out->nnz + c] = (int32_t)columns[c];
            out->nnz += n;
            out->row_start[row + 1] = out->nnz;
        }
    }
    void *exact = cot__resize(al, out->col, (size_t)capacity * sizeof *out->col, (size_t)out->nnz * sizeof *out->col);
    if (exact || out->nnz == 0) {
        out->col = exact;
        return true;
    }
    cot__free(al, out->col, (size_t)capacity * sizeof *out->col);
    out->col = NULL;
    return cot__patterns_short(p);
}

void cot__patterns_drop(cot__patterns *p, int64_t arrays) {
    for (; p->array_count > arrays; p->array_count--) {
        const cot__set_array *a = &p->arrays[p->array_count - 1];
        cot__free(&p->t->al, a->sets, (size_t)a->size * sizeof *a->sets);
    }
}

static void close(cot__patterns *p) {
    const cot_allocator *al = &p->t->al;
    cot__patterns_drop(p, 0);
    cot__free(al, p->arrays, (size_t)p->array_capacity * sizeof *p->arrays);
    for (int k = 0; k < 2; k++) cot__free(al, p->buffer[k], (size_t)p->buffer_capacity[k] * sizeof(double));
    cot__free(al, p->noises, (size_t)p->noise_capacity * sizeof(double));
    cot__free(al, p->of, (size_t)p->of_capacity * sizeof *p->of);
    cot__free(al, p->varies, (size_t)p->varies_capacity);
    cot__sets_close(&p->sets);
}

void cot__csr_free(const cot_allocator *al, cot__csr *c) {
    cot__free(al, c->row_start, (size_t)(c->rows + 1) * sizeof *c->row_start);
    cot__free(al, c->col, (size_t)c->nnz * sizeof *c->col);
    *c = (cot__csr){0};
}

bool cot__sparsity(const char *op, cot_tape *t, const cot_allocator *al, int m, const cot_var *ys, int n,
                   const cot_var *xs, cot__csr *out) {
    cot__patterns p = {.t = t, .op = op, .lo = UINT32_MAX};
    uint32_t      hi = 0;
    *out = (cot__csr){.rows = cot__total_size(m, ys), .cols = cot__total_size(n, xs)};
    if (out->rows > INT32_MAX || out->cols > INT32_MAX) {
        cot__fail(t, COT_LIMIT,
                  "[%s] a matrix of %lld rows and %lld columns; sparse ones have at most 2147483647 of each", op,
                  (long long)out->rows, (long long)out->cols);
        return false;
    }
    out->row_start = cot__alloc(al, (size_t)(out->rows + 1) * sizeof *out->row_start);
    if (!out->row_start) return cot__patterns_short(&p);
    memset(out->row_start, 0, (size_t)(out->rows + 1) * sizeof *out->row_start);
    if (out->rows == 0 || out->cols == 0) return true;

    uint32_t *index = cot__alloc(&t->al, (size_t)m * sizeof *index);
    for (int k = 0; k < n; k++) p.lo = cot__index(xs[k]) < p.lo ? cot__index(xs[k]) : p.lo;
    for (int k = 0; k < m && index; k++) index[k] = cot__index(ys[k]), hi = index[k] > hi ? index[k] : hi;
    for (int k = 0; k < n; k++) hi = cot__index(xs[k]) > hi ? cot__index(xs[k]) : hi;
    p.rows = out->rows, p.cols = out->cols;
    uint8_t *needed = index ? cot__needed(t, p.lo, hi, m, index, COT__EDGES_VALUES) : NULL;
    int64_t  limit = limit_of(t);
    bool     ok     = needed && cot__sets_open(&p.sets, &t->al, out->cols, limit > out->cols ? limit : out->cols) &&
              cot__patterns_grow(&p);
    if (!ok) cot__patterns_short(&p);
    cot_mark mark = cot__mark(t);
    ok = ok && seed_inputs(&p, n, xs) && cot__patterns_walk(&p, p.lo, hi + 1, needed) && write_rows(&p, al, m, ys, out);
    cot__rewind(t, mark);
    cot__list_free(t, needed, (size_t)hi - p.lo + 1);
    cot__free(&t->al, index, (size_t)m * sizeof *index);
    close(&p);
    if (!ok) {
        out->nnz = 0;
        cot__csr_free(al, out);
    }
    return ok;
}
