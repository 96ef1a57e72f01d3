/* rows.c: operations on rows (softmax, norms) within a stage, and on numbers made of rows: the job
 * of the whole arrays is done on the rows of a block, while they are in cache. So there is one
 * kernel for both, and a row has the same bits. */
#include "backend/cpu/stage/stage.h"
#include "backend/job_run.h"

enum { OPERANDS = 4 }; /* of an operation on rows, at most */

/* Some rows of an array: its axes in front have extent 1 but the last of them. */
typedef struct some_rows { int64_t shape[COT_MAX_NDIM], stride[COT_MAX_NDIM]; } some_rows;

static void cut(cot__view *v, some_rows *to, int axes, int64_t first, int64_t count) {
    int64_t row = cot__count(v->ndim - axes, v->shape + axes);
    for (int k = 0; k < v->ndim; k++) to->shape[k] = k < axes - 1 ? 1 : k == axes - 1 ? count : v->shape[k];
    cot__strides(v->ndim, to->shape, to->stride);
    v->data = (char *)v->data + first * row * cot__dtype_size(v->dtype);
    v->shape = to->shape;
    v->stride = to->stride;
}

void cot__stage_rows_do(const cot__stage_rows *r, int64_t first, int64_t count, int64_t back) {
    cot__job  j = r->job;
    cot__view x[OPERANDS], more[COT__JOB_RESULTS];
    some_rows of_x[OPERANDS], of_z[COT__JOB_RESULTS];
    j.x = x;
    j.more = more;
    for (int k = 0; k < j.n; k++) {
        x[k] = r->job.x[k];
        if (k < r->operands && x[k].ndim > 0)
            cut(&x[k], &of_x[k], r->axes, r->moves >> k & 1 ? first - back : first, count);
    }
    cut(&j.z, &of_z[0], r->axes, r->moves >> COT__RUN_VIEWS & 1 ? first - back : first, count);
    for (int k = 1; k < r->results; k++) {
        more[k - 1] = r->job.more[k - 1];
        cut(&more[k - 1], &of_z[k], r->axes, first, count);
    }
    cot__job_run(&j);
}
