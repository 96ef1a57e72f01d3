/* samples_einsum.h: einsum and tensordot, all composed of other operations. */
#ifndef ROWS
SAMPLE(s_einsum_matmul) { (void)user; return cot_einsum("ij,jk->ik", n, x); }
SAMPLE(s_einsum_batched) { (void)user; return cot_einsum("bij,bkj->kbi", n, x); }
SAMPLE(s_einsum_diagonal) { (void)user; return cot_einsum("iji->ij", n, x); }
SAMPLE(s_einsum_trace) { (void)user; return cot_einsum("ii", n, x); }
SAMPLE(s_einsum_chain) { (void)user; return cot_einsum("i,ij,j->", n, x); }
SAMPLE(s_einsum_dots) { (void)user; return cot_einsum("...i,ji->j...", n, x); }
SAMPLE(s_einsum_self) { UNUSED; return cot_einsum("ij,ik,i->jk", 3, (cot_var[]){x[0], x[0], x[1]}); }
SAMPLE(s_einsum_repeated) { (void)user; return cot_einsum("ij,kj->ik", n, x); }
SAMPLE(s_tensordot) { UNUSED; return cot_tensordot(x[0], x[1], COT_AXES(2, 0), COT_AXES(0, 1)); }
#else
    {NULL, s_einsum_matmul, 2, {{2, 2, 3}, {2, 3, 2}}},
    {NULL, s_einsum_batched, 2, {{3, 2, 1, 3}, {3, 2, 2, 3}}},
    {"slice", s_einsum_diagonal, 1, {{3, 2, 3, 2}}},
    {NULL, s_einsum_trace, 1, {{2, 3, 3}}},
    {NULL, s_einsum_chain, 3, {{1, 2}, {2, 2, 3}, {1, 3}}},
    {NULL, s_einsum_dots, 2, {{3, 2, 2, 3}, {2, 2, 3}}},
    {NULL, s_einsum_self, 2, {{2, 2, 3}, {1, 2}}},
    {NULL, s_einsum_repeated, 2, {{2, 2, 1}, {2, 2, 3}}},
    {NULL, s_tensordot, 2, {{3, 2, 2, 3}, {3, 3, 2, 1}}},
#endif
