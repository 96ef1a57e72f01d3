/* cpu_backend.c: the CPU's tables. Most entries are kernels of its folders as they are; here are
 * those that the host serves in a few lines. */
#include "backend/cpu/conv/conv.h"
#include "backend/cpu/conv/pool.h"
#include "backend/cpu/table/cpu.h"
#include "backend/cpu/elementwise/block_run.h"
#include "backend/cpu/stage/stage.h"
#include "backend/cpu/fft/fft.h"
#include "backend/cpu/gemm/recipe.h"
#include "backend/cpu/linalg/lin.h"
#include "backend/cpu/nn/nn.h"
#include "backend/cpu/sparse/csr.h"

#include <string.h>

/* cursor_load may hand out the array itself; the caller wants the elements in its own memory. */
static void read_elements(const cot__view *v, int64_t first, int n, cot_dtype as, void *host) {
    cot__cursor c;
    cot__cursor_open(&c, v, as);
    if (first) cot__cursor_seek(&c, first);
    const void *p = cot__cursor_load(&c, n, host);
    if (p != host) memcpy(host, p, (size_t)n * (size_t)cot__dtype_size(as));
}

static void write_elements(const cot__view *v, int64_t first, int n, cot_dtype as, const void *host) {
    cot__cursor c;
    cot__cursor_open(&c, v, as);
    if (first) cot__cursor_seek(&c, first);
    cot__cursor_store(&c, n, host);
}

/* Threads of the pool are done when a kernel returns. */
static void sync_nothing(void) {}

void cot__host_value(int op, cot_dtype compute, const void *x, const void *y, const void *w, void *z) {
    cot__plain_blocks(op, compute)->value(1, x, y, w, z);
}

bool cot__takes_integers(int op) { return cot__blocks_i64[op].value != NULL; }

static const cot__backend fast_backend = {
    .name = "cpu",
    .matmul_workspace = cot__matmul_fast_workspace,
    .matmul = cot__matmul_fast,
#include "backend/cpu/table/entries.inc"
};

const cot__backend cot__cpu_backend = {
    .name = "cpu",
    .fast = &fast_backend,
    .matmul_workspace = cot__matmul_workspace,
    .matmul = cot__matmul,
#include "backend/cpu/table/entries.inc"
};
