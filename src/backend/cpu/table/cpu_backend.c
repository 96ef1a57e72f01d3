/* cpu_backend.c: the CPU's table. Most entries are kernels of its folders as they are; here are
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

const cot__backend cot__cpu_backend = {
    .name = "cpu",
    .scalars_in_nodes = true,
    .read = read_elements,
    .write = write_elements,
    .copy_in = cot__copy,
    .copy_out = cot__copy,
    .sync = sync_nothing,
    .copy = cot__copy,
    .fill = cot__fill,
    .elementwise = cot__stage_run,
    .make = cot__recipe_write,
    .reduce = cot__reduce,
    .reduce_made = cot__reduce_made,
    .mean_squares = cot__mean_squares,
    .mean_labelled = cot__mean_labelled,
    .mean_weighted = cot__mean_weighted,
    .softmax = cot__softmax,
    .cumsum = cot__cumsum,
    .recurrence = cot__recurrence,
    .cumargmax = cot__cumargmax,
    .matmul_workspace = cot__matmul_workspace,
    .matmul = cot__matmul,
    .bad_position = cot__bad_position,
    .take = cot__take,
    .scatter_add = cot__scatter_add,
    .take_along = cot__take_along,
    .scatter_add_along = cot__scatter_add_along,
    .ravel_index = cot__ravel_index,
    .last_writer = cot__last_writer,
    .nonzero = cot__nonzero,
    .one_hot = cot__one_hot,
    .equal_to = cot__equal_to,
    .pick = cot__pick,
    .argsort_workspace = cot__argsort_scratch,
    .argsort = cot__argsort,
    .searchsorted = cot__searchsorted,
    .first_descent = cot__first_descent,
    .draw = cot__draw,
    .permutation = cot__permutation,
    .normalize = cot__normalize,
    .normalize_back = cot__normalize_back,
    .normalize_workspace = cot__normalize_scratch,
    .normalize_weights = cot__normalize_weights,
    .attention_workspace = cot__attention_bytes,
    .attention_forward = cot__attention_forward,
    .attention_backward = cot__attention_backward,
    .conv_workspace = cot__conv_bytes,
    .conv = cot__conv_run,
    .max_pool = cot__max_pool,
    .pool_take = cot__pool_take,
    .pool_put = cot__pool_put,
    .avg_pool = cot__avg_pool,
    .avg_unpool = cot__avg_unpool,
    .update = cot__update_step,
    .fft_workspace = cot__fft_workspace,
    .fft = cot__fft,
    .lu_workspace = cot__lin_lu_workspace,
    .lu = cot__lin_lu,
    .lu_solve_workspace = cot__lin_lu_solve_workspace,
    .lu_solve = cot__lin_lu_solve,
    .lu_det = cot__lin_lu_det,
    .lu_sign = cot__lin_lu_sign,
    .lu_split = cot__lin_lu_split,
    .triangular_workspace = cot__lin_triangular_workspace,
    .triangular = cot__lin_triangular,
    .cholesky_workspace = cot__lin_cholesky_workspace,
    .cholesky = cot__lin_cholesky,
    .qr_workspace = cot__lin_qr_workspace,
    .qr = cot__lin_qr,
    .eigh_workspace = cot__lin_eigh_workspace,
    .eigh = cot__lin_eigh,
    .svd_workspace = cot__lin_svd_workspace,
    .svd = cot__lin_svd,
};
