/* Samples of the cumulative, ordering and selecting operations, for
 * tests/ops/test_structural_table.c. */
#ifndef ROWS
SAMPLE(s_cumsum) { UNUSED; return cot_cumsum(x[0], 1, false); }
SAMPLE(s_cumsum_back) { UNUSED; return cot_cumsum(x[0], 0, true); }
SAMPLE(s_cumprod) { UNUSED; return cot_cumprod(x[0], 1, false); }
SAMPLE(s_cumprod_back) { UNUSED; return cot_cumprod(x[0], -1, true); }
/* zeros along the way, where a quotient of products would fail */
SAMPLE(s_cumprod_zeros) {
    UNUSED;
    cot_var gap = cot_cast(cot_data(x[0].tape, COT_F64, COT_SHAPE(4), (double[]){1, 0, 1, 0}), cot_dtype_of(x[0]));
    return cot_cumprod(cot_mul(x[0], cot_add(gap, cot_mul(x[0], x[0]))), 1, false);
}
SAMPLE(s_cummax) { UNUSED; return cot_cummax(x[0], 1, false); }
SAMPLE(s_cummin) { UNUSED; return cot_cummin(x[0], 0, true); }
SAMPLE(s_sort) { UNUSED; return cot_sort(x[0], 1, false); }
SAMPLE(s_sort_down) { UNUSED; return cot_sort(x[0], 0, true); }
SAMPLE(s_topk) { UNUSED; return cot_topk(x[0], 2, -1, NULL); }
SAMPLE(s_searchsorted) {
    UNUSED;
    cot_var edges = cot_cast(cot_data(x[0].tape, COT_F64, COT_SHAPE(3), (double[]){-1, 0, 1}), cot_dtype_of(x[0]));
    return cot_mul(x[0], cot_add(cot_cast(cot_searchsorted(edges, x[0], false), cot_dtype_of(x[0])), 1));
}
SAMPLE(s_roll) { UNUSED; return cot_roll(x[0], -5, 1); }
SAMPLE(s_tile) { UNUSED; return cot_tile(x[0], COT_SHAPE(2, 3, 2)); }
SAMPLE(s_repeat) { UNUSED; return cot_repeat(x[0], 3, 0); }
SAMPLE(s_diag) { UNUSED; return cot_diag(x[0], -1); }
SAMPLE(s_tril) { UNUSED; return cot_tril(x[0], 0); }
SAMPLE(s_triu) { UNUSED; return cot_triu(x[0], 1); }
SAMPLE(s_trace) { UNUSED; return cot_trace(x[0], 1); }
SAMPLE(s_trace_strided) { UNUSED; return cot_trace(cot_transpose(x[0]), 0); }
SAMPLE(s_kron) { UNUSED; return cot_kron(x[0], x[1]); }
SAMPLE(s_gather) {
    UNUSED;
    return cot_gather(x[0], indices(x[0].tape, COT_SHAPE(3, 2), (int64_t[]){0, 2, 1, -1, 0, 2}));
}
SAMPLE(s_gather_rows) {
    UNUSED;
    return cot_gather(x[0], indices(x[0].tape, COT_SHAPE(2, 2, 1), (int64_t[]){1, 1, -2, 0}));
}
SAMPLE(s_put) { UNUSED; return cot_scatter(x[0], indices(x[0].tape, COT_SHAPE(3), (int64_t[]){2, 0, -1}), x[1], 1); }
SAMPLE(s_put_scalar) { UNUSED; return cot_scatter(x[0], indices(x[0].tape, COT_SHAPE(2), (int64_t[]){1, 1}), x[1], 0); }
static cot_var three_bools(cot_tape *t) { return cot_data(t, COT_BOOL, COT_SHAPE(3), (uint8_t[]){1, 0, 1}); }
SAMPLE(s_compress) { UNUSED; return cot_compress(x[0], three_bools(x[0].tape), 1); }
SAMPLE(s_compress_to) { UNUSED; return cot_compress_to(x[0], three_bools(x[0].tape), 1, 4, 0.5); }
SAMPLE(s_masked_select) {
    UNUSED;
    return cot_masked_select(x[0], cot_data(x[0].tape, COT_BOOL, COT_SHAPE(2, 3), (uint8_t[]){1, 0, 1, 0, 1, 1}));
}
#else
    {"cumsum", s_cumsum, 1, {{2, 2, 3}}},
    {"cumsum", s_cumsum_back, 1, {{3, 2, 3, 2}}},
    {"recurrence", s_cumprod, 1, {{2, 2, 4}}},
    {"recurrence", s_cumprod_back, 1, {{2, 2, 3}}},
    {"recurrence", s_cumprod_zeros, 1, {{2, 2, 4}}},
    {"cumargmax", s_cummax, 1, {{2, 2, 4}}},
    {"cumargmax", s_cummin, 1, {{2, 4, 2}}},
    {"argsort", s_sort, 1, {{2, 2, 4}}},
    {"argsort", s_sort_down, 1, {{2, 3, 2}}},
    {"argsort", s_topk, 1, {{2, 2, 4}}},
    {"searchsorted", s_searchsorted, 1, {{2, 2, 3}}},
    {NULL, s_roll, 1, {{2, 2, 3}}},
    {NULL, s_tile, 1, {{2, 2, 3}}},
    {NULL, s_tile, 1, {{0}}},
    {NULL, s_repeat, 1, {{2, 2, 3}}},
    {NULL, s_diag, 1, {{1, 3}}},
    {NULL, s_diag, 1, {{3, 2, 3, 2}}},
    {NULL, s_tril, 1, {{3, 2, 3, 2}}},
    {NULL, s_triu, 1, {{2, 3, 3}}},
    {NULL, s_trace, 1, {{3, 2, 2, 3}}},
    {NULL, s_trace_strided, 1, {{2, 2, 3}}},
    {NULL, s_kron, 2, {{2, 2, 1}, {2, 2, 3}}},
    {NULL, s_kron, 2, {{1, 3}, {2, 2, 2}}},
    {"ravel_index", s_gather, 1, {{2, 2, 3}}},
    {"ravel_index", s_gather_rows, 1, {{2, 2, 3}}},
    {"last_writer", s_put, 2, {{2, 2, 3}, {2, 2, 3}}},
    {"last_writer", s_put_scalar, 2, {{2, 2, 3}, {0}}},
    {"nonzero", s_compress, 1, {{2, 2, 3}}},
    {"nonzero", s_compress_to, 1, {{2, 2, 3}}},
    {"nonzero", s_masked_select, 1, {{2, 2, 3}}},
    {"nonzero", s_masked_select, 1, {{3, 2, 3, 2}}},
#endif
