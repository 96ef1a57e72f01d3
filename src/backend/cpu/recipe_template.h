/* recipe_template.h: elements of a recipe in order; included by recipe.c for each float type T, which N(name) puts behind names. */

static inline const T *N(leaf_data)(const cot__recipe *r, int l) { return r->leaf[l].data ? r->leaf[l].data : (const void *)&r->leaf[l].number; }

/* n elements of a leaf: where they lie, or in buf. */
static const T *N(operand)(const cot__recipe *r, int l, const int64_t *first, int n, T *buf) {
    int      last = r->ndim - 1, m;
    int64_t  row = r->shape[last], inner = r->leaf[l].stride[last], index[COT__RECIPE_AXES];
    const T *data = N(leaf_data)(r, l);
    if (inner == 1 && row - first[last] >= n) return data + offset_of(r, l, first);
    memcpy(index, first, sizeof index);
    for (int at = 0; at < n; at += m, next_row(r, index)) {
        const T *p = data + offset_of(r, l, index);
        m = row - index[last] < n - at ? (int)(row - index[last]) : n - at;
        if (inner == 0)
            for (int k = 0; k < m; k++) buf[at + k] = *p;
        else
            for (int k = 0; k < m; k++) buf[at + k] = p[k * inner];
    }
    return buf;
}

/* The product of a column, which repeats along rows, and a row; a product that is -0 becomes 0, as in cot__gemm. */
static void N(product)(const cot__recipe *r, int a, int b, const int64_t *first, int n, T *restrict to) {
    int      last = r->ndim - 1, m;
    int64_t  row = r->shape[last], as = r->leaf[a].stride[last], bs = r->leaf[b].stride[last], index[COT__RECIPE_AXES];
    memcpy(index, first, sizeof index);
    for (int at = 0; at < n; at += m, next_row(r, index)) {
        const T *x = N(leaf_data)(r, a) + offset_of(r, a, index), *y = N(leaf_data)(r, b) + offset_of(r, b, index);
        m = row - index[last] < n - at ? (int)(row - index[last]) : n - at;
        if (as == 0 && bs == 1) {
            const T f = *x;
            for (int k = 0; k < m; k++) to[at + k] = f * y[k] + (T)0;
        } else
            for (int k = 0; k < m; k++) to[at + k] = x[k * as] * y[k * bs] + (T)0;
    }
}

static void N(load)(const cot__recipe *r, const int64_t *first, int n, T *to) {
    T made[COT__RECIPE_STEPS - 1][COT__BLOCK], buf[3][COT__BLOCK];
    for (int k = 0; k < r->steps; k++) {
        T       *z = k + 1 < r->steps ? made[k] : to;
        const T *x[3] = {NULL, NULL, NULL};
        if (!r->step[k].kernel) {
            N(product)(r, ~r->step[k].arg[0], ~r->step[k].arg[1], first, n, z);
            continue;
        }
        for (int i = 0; i < 3; i++) {
            int arg = r->step[k].arg[i];
            x[i] = arg >= 0 ? made[arg] : arg != COT__RECIPE_NONE ? N(operand)(r, ~arg, first, n, buf[i]) : NULL;
        }
        r->step[k].kernel(n, x[0], x[1], x[2], z);
    }
}

/* Leaves that lie in one row each, which is one number times another row. */
int N(cot__recipe_sums)(const cot__recipe *r, int64_t first, int count, T *sums) {
    int     last = r->ndim - 1, a = ~r->step[0].arg[0], b = ~r->step[0].arg[1], n = 0;
    int64_t row = r->shape[last], index[COT__RECIPE_AXES], *at = &index[last];
    if ((r->steps != 1 && !r->squares) || r->leaf[a].stride[last] != 0 || r->leaf[b].stride[last] != 1) return 0;
    N(cot__leaf) *leaf = N(cot__leaf_sum)(r->squares);
    seek(r, first, index);
    for (; n < count && row - *at >= COT__BLOCK; n++) {
        sums[n] = leaf(N(leaf_data)(r, a)[offset_of(r, a, index)], N(leaf_data)(r, b) + offset_of(r, b, index));
        *at += COT__BLOCK;
        if (*at == row) next_row(r, index);
    }
    return n;
}

#undef T
#undef N
