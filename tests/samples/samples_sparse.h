/* samples_sparse.h: sparse matrices for samples.h. Functions come first; rows of the table if ROWS
 * is defined. */
#ifndef ROWS

/* Three rows, of which one is empty, by four columns, of which one is: five entries, not in
 * order. */
static cot_csr sparse_of(cot_var values) {
    static const int64_t row[] = {2, 0, 2, 0, 2}, column[] = {3, 1, 0, 3, 1};
    return cot_csr_from_triplets(values.tape, 3, 4, 5, row, column, values);
}

SAMPLE(s_csr_matmul) { UNUSED; return cot_csr_matmul(sparse_of(x[0]), x[1]); }
SAMPLE(s_csr_matmul_transposed) { UNUSED; return cot_csr_matmul_transposed(sparse_of(x[0]), x[1]); }
SAMPLE(s_matmul_csr) { UNUSED; return cot_matmul_csr(x[0], sparse_of(x[1])); }
SAMPLE(s_csr_sddmm) {
    UNUSED;
    return cot_csr_sddmm(sparse_of(cot_zeros(x[0].tape, COT_F64, COT_SHAPE(5))), x[0], x[1]).values;
}
SAMPLE(s_csr_softmax) { UNUSED; return cot_csr_softmax(sparse_of(x[0])).values; }

#else

    {"csr_matmul", s_csr_matmul, 2, {{1, 5}, {2, 4, 2}}},
    {"csr_matmul", s_csr_matmul, 2, {{1, 5}, {1, 4}}},
    {"csr_matmul", s_csr_matmul, 2, {{2, 2, 5}, {2, 4, 3}}},
    {"csr_matmul", s_csr_matmul_transposed, 2, {{1, 5}, {2, 3, 2}}},
    {"csr_matmul", s_matmul_csr, 2, {{3, 2, 2, 3}, {1, 5}}},
    {"csr_sddmm", s_csr_sddmm, 2, {{2, 3, 2}, {2, 4, 2}}},
    {"csr_sddmm", s_csr_sddmm, 2, {{1, 3}, {3, 2, 4, 1}}},
    {"csr_softmax", s_csr_softmax, 1, {{1, 5}}},
    {"csr_softmax", s_csr_softmax, 1, {{2, 2, 5}}},

#endif
