/* reduce_template.h: folds one slice, or several neighbouring slices at once; included by reduce.c
 * once for each compute type.
 *
 * T is the type, N(name) decorates names, FLOATING says whether T is a float; sums of floats run
 * through the kernels of leaves.h. A slice is a sequence
 * of n values. Its tree is the same whether it is folded alone along contiguous memory or next to
 * others, row by row:
 *
 *   - leaves have LEAF values;
 *   - a leaf has LANES chains; value i goes to chain i % LANES; chains are folded by halves;
 *   - leaves are then combined pairwise, as a binary counter would carry. */

#define WIDTH (ROW / (int)sizeof(T))

#if FLOATING
#define IS_NAN(v) ((v) != (v))
#else
#define IS_NAN(v) false
#endif

static inline __attribute__((always_inline)) T N(apply)(fold_op op, T a, T b) {
    switch (op) {
    case OP_ADD:
#if FLOATING
        return a + b;
#else
        return (T)((uint64_t)a + (uint64_t)b); /* integers wrap */
#endif
    /* a NaN, once in, stays: nothing compares above it */
    case OP_MAX: return b > a || IS_NAN(b) ? b : a;
    case OP_MIN: return b < a || IS_NAN(b) ? b : a;
    case OP_ANY: return a != 0 || b != 0;
    case OP_ALL: return a != 0 && b != 0;
    }
    return a;
}

static inline __attribute__((always_inline)) void N(combine_as)(fold_op op, T *restrict a, const T *restrict b, int n) {
    for (int i = 0; i < n; i++) a[i] = N(apply)(op, a[i], b[i]);
}

#if !FLOATING
static void N(add)(void *a, const void *b, int n) { N(combine_as)(OP_ADD, a, b, n); }
#endif

/* a[i] = op(a[i], b[i]); the switch makes each loop one the compiler can vectorise. add: the sum of
 * two rows, for this processor. */
static void N(combine)(add_fn *add, fold_op op, T *restrict a, const T *restrict b, int n) {
    switch (op) {
    case OP_ADD: add(a, b, n); break;
    case OP_MAX: N(combine_as)(OP_MAX, a, b, n); break;
    case OP_MIN: N(combine_as)(OP_MIN, a, b, n); break;
    case OP_ANY: N(combine_as)(OP_ANY, a, b, n); break;
    case OP_ALL: N(combine_as)(OP_ALL, a, b, n); break;
    }
}

static inline __attribute__((always_inline)) T N(leaf_as)(fold_op op, const T *p, int n) {
    T   lane[LANES] = {0};
    int used = n < LANES ? n : LANES, i = LANES;
    for (int l = 0; l < used; l++) lane[l] = p[l];
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] = N(apply)(op, lane[l], p[i + l]);
    for (int l = 0; i + l < n; l++) lane[l] = N(apply)(op, lane[l], p[i + l]);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half && l + half < used; l++) lane[l] = N(apply)(op, lane[l], lane[l + half]);
    return lane[0];
}

/* The fold of one leaf, 1 <= n <= LEAF. */
static T N(leaf)(fold_op op, const T *p, int n) {
    switch (op) {
#if FLOATING
    case OP_ADD: {
        T sum;
        cot__leaves_of(DTYPE)->sum(p, n, &sum);
        return sum;
    }
#else
    case OP_ADD: return N(leaf_as)(OP_ADD, p, n);
#endif
#if FLOATING
    case OP_MAX: return MOST(n, p);
#else
    case OP_MAX: return N(leaf_as)(OP_MAX, p, n);
#endif
    case OP_MIN: return N(leaf_as)(OP_MIN, p, n);
    case OP_ANY: return N(leaf_as)(OP_ANY, p, n);
    case OP_ALL: return N(leaf_as)(OP_ALL, p, n);
    }
    return 0;
}

/* The map of each value before it is folded; q[i * qs] belongs to value i. */
static const T *N(prepare)(fold_map map, T *restrict buf, const T *p, const T *q, int qs, int n) {
    switch (map) {
    case MAP_NONE: return p;
    case MAP_TRUTH:
        for (int i = 0; i < n; i++) buf[i] = p[i] != 0;
        break;
#if FLOATING
    case MAP_ABS:
        for (int i = 0; i < n; i++) buf[i] = p[i] < 0 ? -p[i] : p[i];
        break;
    case MAP_SQUARE:
        for (int i = 0; i < n; i++) {
            T v    = p[i] * q[i * qs];
            buf[i] = v * v;
        }
        break;
    case MAP_EXP:
        if (qs) {
            for (int i = 0; i < n; i++) buf[i] = p[i] - q[i];
            EXP(n, buf, 0, buf);
        } else EXP(n, p, *q, buf);
        break;
#else
    default: (void)q, (void)qs; break;
#endif
    }
    return buf;
}

/* Where the values of a slice lie side by side. NULL: they do not. */
static const T *N(lies)(const fold_plan *f, const cot__view *v) {
    bool run = f->slice.ndim == 0 || (f->slice.ndim == 1 && f->slice.stride[0][0] == 1);
    return FLOATING && run && !f->made && v->dtype == DTYPE ? v->data : NULL;
}

/* Sums of whole leaves from `done` on, several at a time. */
static int N(sums_of)(const fold_plan *f, const T *x, int64_t done, T *ready) {
    int64_t whole = (f->n - done) / LEAF;
#if FLOATING
    if (whole > READY) whole = READY;
    cot__leaves_of(DTYPE)->sums(x + done, whole, ready);
#else
    whole = 0, (void)x, (void)ready;
#endif
    return (int)whole;
}

/* Folds one slice, read through a cursor. Neither this function nor fold_many is inlined, so that
 * their buffers never add up on the stack. */
static __attribute__((noinline)) T N(fold_one)(const fold_plan *f, int64_t offset, fold_op op, fold_map map,
                                               const T *q) {
    cot__cursor c;
    cot__view   v = {cot__at(&f->x, offset), f->x.dtype, f->slice.ndim, f->slice.shape, f->slice.stride[0]};
    T           tree[LEVELS], buf[LEAF], mapped[LEAF], ready[READY];
    int         top = 0, next = 0, have = 0;
    int64_t     leaf = 0;
    bool        sums = op == OP_ADD && map == MAP_NONE;
    const T    *lie  = sums ? N(lies)(f, &v) : NULL;
    cot__cursor_open(&c, &v, DTYPE);
    if (f->from > 0) cot__cursor_seek(&c, f->from);
    for (int64_t done = f->from; done < f->n; done += LEAF, leaf++) {
        int n = f->n - done < LEAF ? (int)(f->n - done) : LEAF;
        T   t;
        if (next == have && sums && (f->made || lie))
            next = 0, have = lie ? N(sums_of)(f, lie, done, ready) : make_sums(f, offset, done, ready);
        if (next < have) t = ready[next++];
        else {
            const T *p = f->made ? make(f, offset, done, n, buf) : lie ? lie + done : cot__cursor_load(&c, n, buf);
            t = N(leaf)(op, N(prepare)(map, mapped, p, q, 0, n), n);
        }
        for (int64_t carry = leaf; carry & 1; carry >>= 1, top--)
            t = op == OP_ADD ? N(apply)(OP_ADD, tree[top - 1], t) : N(apply)(op, tree[top - 1], t);
        tree[top++] = t;
    }
    T t = tree[--top];
    while (top > 0) t = N(apply)(op, tree[--top], t);
    return t;
}

#if FLOATING
/* Sums of w slices side by side whose rows lie evenly: a leaf of all of them at a time. False:
 * there are too few slices. */
static __attribute__((noinline)) bool N(sum_columns)(const fold_plan *f, int64_t offset, int w, T *out) {
    T                  tree[SHALLOW][WIDTH];
    const cot__leaves *leaves = cot__leaves_of(DTYPE);
    int64_t            stride = f->slice.stride[0][0], leaf = 0;
    int                top = 0;
    for (int64_t r = f->from; r < f->n; r += LEAF, leaf++, top++) {
        int n = f->n - r < LEAF ? (int)(f->n - r) : LEAF;
        /* if at all, then for the first leaf */
        if (!leaves->columns(cot__at(&f->x, offset + r * stride), stride, n, w, tree[top])) return false;
        for (int64_t carry = leaf; carry & 1; carry >>= 1, top--) leaves->add(tree[top - 1], tree[top], w);
    }
    for (top--; top > 0; top--) leaves->add(tree[top - 1], tree[top], w);
    memcpy(out, tree[0], (size_t)w * sizeof(T));
    return true;
}
#endif

/* w slices side by side, f->step apart: one pass over the rows, each row's values going to their
 * slices' chains. */
static __attribute__((noinline)) void N(fold_many)(const fold_plan *f, int64_t offset, int w, fold_op op, fold_map map,
                                                   const T *q, T *out) {
    T              tree[SHALLOW][WIDTH], lane[LANES][WIDTH], buf[WIDTH], mapped[WIDTH];
    cot__strip_fn *strip  = cot__strip(DTYPE, f->x.dtype);
    bool           direct = f->step == 1 && f->x.dtype == DTYPE && !f->made;
    cot__walk      row    = f->slice;
    int            top    = 0;
#if FLOATING
    add_fn        *add    = cot__leaves_of(DTYPE)->add;
#else
    add_fn        *add    = N(add);
#endif
    if (f->from > 0) cot__walk_seek(&row, f->from);
    for (int64_t r = f->from; r < f->n; r++) {
        const void *x = cot__at(&f->x, offset + row.offset[0]);
        int         in_leaf = (int)(r % LEAF);
        bool        added   = f->made && op == OP_ADD && map == MAP_NONE &&
                     make_added(f, offset + row.offset[0], w, lane[in_leaf % LANES], in_leaf >= LANES);
        if (!added) {
            if (f->made) make_row(f, offset + row.offset[0], w, buf);
            else if (!direct) strip(buf, 1, x, f->step, w);
            const T *p = N(prepare)(map, mapped, direct ? x : buf, q, 1, w);
            if (in_leaf < LANES) memcpy(lane[in_leaf], p, (size_t)w * sizeof(T));
            else N(combine)(add, op, lane[in_leaf % LANES], p, w);
        }
        cot__walk_next(&row);
        if (in_leaf < LEAF - 1 && r < f->n - 1) continue;
        int used = in_leaf + 1 < LANES ? in_leaf + 1 : LANES;
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half && l + half < used; l++) N(combine)(add, op, lane[l], lane[l + half], w);
        memcpy(tree[top], lane[0], (size_t)w * sizeof(T));
        for (int64_t carry = (r - f->from) / LEAF; carry & 1; carry >>= 1, top--)
            N(combine)(add, op, tree[top - 1], tree[top], w);
        top++;
    }
    for (top--; top > 0; top--) N(combine)(add, op, tree[top - 1], tree[top], w);
    memcpy(out, tree[0], (size_t)w * sizeof(T));
}

static __attribute__((noinline)) void N(fold_here)(const fold_plan *f, int64_t offset, int w, fold_op op, fold_map map,
                                                   const T *q, T *out) {
#if FLOATING
    bool even = f->slice.ndim == 1 && f->step == 1 && f->x.dtype == DTYPE && !f->made && !f->alone;
    if (even && op == OP_ADD && map == MAP_NONE && N(sum_columns)(f, offset, w, out)) return;
#endif
    if (!f->alone) N(fold_many)(f, offset, w, op, map, q, out);
    else
        for (int i = 0; i < w; i++) out[i] = N(fold_one)(f, offset + i * f->step, op, map, q ? q + i : NULL);
}

/* Long slices in chunks. A chunk of 2^c leaves folds to the very node that the whole tree has above
 * them; the nodes are then combined as the counter would, and the last chunk, if it is shorter,
 * comes last. */
typedef struct N(chunks) {
    const fold_plan *f;
    int64_t          offset, size;
    int              w;
    fold_op          op;
    fold_map         map;
    const T         *q;
    T               *out;
} N(chunks);

static void N(fold_chunk)(void *ctx, int64_t part) {
    const N(chunks) *c = ctx;
    fold_plan        f = *c->f;
    f.from = part * c->size;
    if (f.n - f.from > c->size) f.n = f.from + c->size;
    N(fold_here)(&f, c->offset, c->w, c->op, c->map, c->q, c->out + part * c->w);
}

/* The fold of all chunks, from the nodes of each, which lie w apart; the first `whole` are full. */
static T N(join)(fold_op op, const T *node, int w, int64_t whole, int64_t parts) {
    T   tree[LEVELS];
    int top = 0;
    for (int64_t k = 0; k < whole; k++) {
        T t = node[k * w];
        for (int64_t carry = k; carry & 1; carry >>= 1) t = N(apply)(op, tree[--top], t);
        tree[top++] = t;
    }
    T t = whole < parts ? node[whole * w] : tree[--top];
    while (top > 0) t = N(apply)(op, tree[--top], t);
    return t;
}

static __attribute__((noinline)) void N(fold_chunked)(const fold_plan *f, int64_t offset, int w, fold_op op,
                                                      fold_map map, const T *q, int64_t size, T *out) {
    T         node[CHUNKS * CHUNKED_WIDTH];
    N(chunks) c = {f, offset, size, w, op, map, q, node};
    int64_t   parts = (f->n + size - 1) / size, whole = f->n / size;
    cot__parallel(parts, N(fold_chunk), &c);
    for (int i = 0; i < w; i++) out[i] = N(join)(op, node + i, w, whole, parts);
}

static void N(fold)(const fold_plan *f, int64_t offset, int w, fold_op op, fold_map map, const T *q, T *out) {
    int64_t size = LEAF;
    while (size * CHUNKS < f->n || size * w < cot__grain) size *= 2;
    if (w <= CHUNKED_WIDTH && size < f->n) N(fold_chunked)(f, offset, w, op, map, q, size, out);
    else N(fold_here)(f, offset, w, op, map, q, out);
}

/* Does b come before a as the extreme? Strictly, so that the first of equals stays; the first NaN
 * beats all. */
static inline bool N(better)(bool most, T a, T b) { return (most ? b > a : b < a) || (IS_NAN(b) && !IS_NAN(a)); }

static int64_t N(where_one)(const fold_plan *f, int64_t offset, bool most) {
    cot__cursor c;
    cot__view   v = {cot__at(&f->x, offset), f->x.dtype, f->slice.ndim, f->slice.shape, f->slice.stride[0]};
    T           buf[LEAF], best = 0;
    int64_t     where = -1;
    cot__cursor_open(&c, &v, DTYPE);
    for (int64_t done = 0; done < f->n; done += LEAF) {
        int      n = f->n - done < LEAF ? (int)(f->n - done) : LEAF;
        const T *p = cot__cursor_load(&c, n, buf);
        for (int i = 0; i < n; i++)
            if (where < 0 || N(better)(most, best, p[i])) {
                best  = p[i];
                where = done + i;
            }
    }
    return where;
}

static void N(where_many)(const fold_plan *f, int64_t offset, int w, bool most, int64_t *where) {
    T              best[WIDTH], buf[WIDTH];
    cot__strip_fn *strip  = cot__strip(DTYPE, f->x.dtype);
    cot__walk      row    = f->slice;
    for (int64_t r = 0; r < f->n; r++, cot__walk_next(&row)) {
        strip(buf, 1, cot__at(&f->x, offset + row.offset[0]), f->step, w);
        for (int i = 0; i < w; i++)
            if (r == 0 || N(better)(most, best[i], buf[i])) {
                best[i]  = buf[i];
                where[i] = r;
            }
    }
}

static void N(where)(const fold_plan *f, int64_t offset, int w, bool most, int64_t *where) {
    if (!f->alone) N(where_many)(f, offset, w, most, where);
    else
        for (int i = 0; i < w; i++) where[i] = N(where_one)(f, offset + i * f->step, most);
}

#if FLOATING
/* m = max, s = sum exp(x - m). An infinite or NaN maximum shifts nothing, lest inf - inf make a NaN
 * of a good slice. */
static void N(fold_exp)(const fold_plan *f, int64_t offset, int w, T *m, T *s) {
    T shift[WIDTH];
    N(fold)(f, offset, w, OP_MAX, MAP_NONE, NULL, m);
    for (int i = 0; i < w; i++) shift[i] = isfinite(m[i]) ? m[i] : 0;
    N(fold)(f, offset, w, OP_ADD, MAP_EXP, shift, s);
}

static void N(fold_logsumexp)(const fold_plan *f, int64_t offset, int w, T *out) {
    T s[WIDTH];
    N(fold_exp)(f, offset, w, out, s);
    for (int i = 0; i < w; i++)
        if (isfinite(out[i])) out[i] += LOG(s[i]);
}

/* Scaled by a power of two near the largest magnitude, which rounds nothing and keeps every square
 * in range. */
static void N(fold_norm2)(const fold_plan *f, int64_t offset, int w, T *out) {
    T most[WIDTH], scale[WIDTH];
    N(fold)(f, offset, w, OP_MAX, MAP_ABS, NULL, most);
    for (int i = 0; i < w; i++) {
        int e = isfinite(most[i]) && most[i] > 0 ? ilogb((double)most[i]) : 0;
        e     = e < -MAX_SCALE ? -MAX_SCALE : e > MAX_SCALE ? MAX_SCALE : e;
        scale[i] = (T)ldexp(1, -e);
    }
    N(fold)(f, offset, w, OP_ADD, MAP_SQUARE, scale, out);
    for (int i = 0; i < w; i++) out[i] = isfinite(most[i]) ? (T)sqrt((double)out[i]) / scale[i] : most[i];
}
#endif

/* w slices from offset on; out has w values. */
static void N(reduce)(cot__reduction what, const fold_plan *f, int64_t offset, int w, void *out) {
    switch (what) {
    case COT__SUM: N(fold)(f, offset, w, OP_ADD, MAP_NONE, NULL, out); break;
    case COT__MAX: N(fold)(f, offset, w, OP_MAX, MAP_NONE, NULL, out); break;
    case COT__MIN: N(fold)(f, offset, w, OP_MIN, MAP_NONE, NULL, out); break;
    case COT__ANY: N(fold)(f, offset, w, OP_ANY, MAP_TRUTH, NULL, out); break;
    case COT__ALL: N(fold)(f, offset, w, OP_ALL, MAP_TRUTH, NULL, out); break;
    case COT__ARGMAX: N(where)(f, offset, w, true, out); break;
    case COT__ARGMIN: N(where)(f, offset, w, false, out); break;
#if FLOATING
    case COT__NORM2: N(fold_norm2)(f, offset, w, out); break;
    case COT__LOGSUMEXP: N(fold_logsumexp)(f, offset, w, out); break;
#else
    case COT__NORM2:
    case COT__LOGSUMEXP: break; /* integers come through a float type */
#endif
    }
}

#undef IS_NAN
#undef WIDTH
#undef T
#undef N
#undef DTYPE
#undef FLOATING
#undef EXP
#undef MOST
#undef LOG
#undef MAX_SCALE
