/* job_run.c: a job of any operation, asked and run. An elementwise operation needs no record for
 * this: its class and arity say all. */
#include "backend/job_run.h"
#include "backend/elements.h"
#include "base/sizes.h"
#include "rules/elementwise_ids.h"

#include <stdio.h>

/* ---- elementwise operations ------------------------------------------------------------------ */

/* The operand whose dtype the others have: the first that is no number and no condition. */
static int leading_operand(const cot__job *j) {
    for (int k = j->op == OP_where; k < j->n; k++)
        if (!(j->numbers >> k & 1)) return k;
    return -1;
}

/* Operands have one dtype and one shape; a 0-d one repeats. A number has the computing dtype. */
static bool infer_elementwise(const cot__job *j, cot__type *z) {
    const cot__elementwise_info *e = &cot__elementwise_table[j->op];
    int                          arity = cot__elementwise_arity(j->op);
    if (!cot__job_has(j, arity, arity, 0)) return false;
    int lead = leading_operand(j);
    if (lead < 0) return cot__job_illegal(j, "all operands are numbers");
    cot_dtype dtype = j->x[lead].dtype;
    if (e->class == REAL && !cot__job_float(j, lead)) return false;
    z->shape = (cot_shape){0};
    for (int k = 0; k < j->n; k++)
        if (j->x[k].ndim > z->shape.ndim) z->shape = cot__view_extents(&j->x[k]);
    for (int k = 0; k < j->n; k++) {
        bool condition = j->op == OP_where && k == 0, number = j->numbers >> k & 1;
        if (!cot__job_dtype(j, k, condition ? COT_BOOL : number ? cot__dtype_compute(dtype) : dtype)) return false;
        if (j->x[k].ndim > 0 && !cot__job_shape(j, k, z->shape.ndim, z->shape.dim)) return false;
    }
    z->dtype = e->class == TEST ? COT_BOOL : dtype;
    return true;
}

static void run_elementwise(const cot__job *j) {
    cot_dtype dtype = j->x[leading_operand(j)].dtype;
    cot__run_value(j->backend, j->op, cot__dtype_compute(dtype), j->n, j->x, &j->z);
}

/* ---- any operation --------------------------------------------------------------------------- */

int cot__job_results(const cot__job *j) {
    return j->op >= OP_structural && j->record->results ? j->record->results(j) : 1;
}

bool cot__job_infer(const cot__job *j, cot__type *z) {
    bool structural = j->op >= OP_structural;
    if (structural && j->record->asker && j->attr && !cot__job_asker(j)) return false;
    if (!(structural ? j->record->infer(j, z) : infer_elementwise(j, z))) return false;
    for (int k = 0, m = cot__job_results(j); k < m; k++)
        if (!cot__job_check_type(j, &z[k])) return false;
    return true;
}

/* Sums of sizes end at COT__SIZE_MOST, to which an executor may want to add. */
int64_t cot__job_workspace(const cot__job *j) {
    int64_t bytes = j->op >= OP_structural && j->record->workspace ? j->record->workspace(j) : 0;
    return bytes > COT__SIZE_MOST / 2 ? -1 : bytes;
}

bool cot__job_check(const cot__job *j) {
    return j->backend->hollow || j->op < OP_structural || !j->record->check || j->record->check(j);
}

void cot__job_found(const cot__job *j, int64_t found[2]) {
    static const int64_t two[1] = {2}, one[1] = {1};
    if (LIKELY(cot__on_host(j->backend))) found[0] = j->status[0], found[1] = j->status[1];
    else j->backend->read(&(cot__view){j->status, COT_I64, 1, two, one}, 0, 2, COT_I64, found);
}

/* A hollow backend computes nothing but truths about numbers without axes, which rules ask for.
 * What else has no axes is 1, or 0 where it may be a position (memory/hollow.c). */
static bool is_passed_over(const cot__job *j) {
    bool truth = j->z.dtype == COT_BOOL && j->z.ndim == 0;
    for (int k = 0; k < j->n; k++) truth &= j->x[k].ndim == 0;
    for (int k = 0, m = cot__job_results(j); k < m && !truth; k++) {
        const cot__view *z = k ? &j->more[k - 1] : &j->z;
        j->backend->fill(z, cot__dtype_is_float(z->dtype) ? 1 : 0);
    }
    return !truth;
}

void cot__job_run(const cot__job *j) {
    if (UNLIKELY(j->backend->hollow) && is_passed_over(j)) return;
    if (j->op < OP_structural) run_elementwise(j);
    else j->record->run(j);
}

/* ---- row-major copies ------------------------------------------------------------------------ */

int64_t cot__room_bytes(const cot__view *v, cot_dtype dtype) {
    return (cot__view_size(v) * cot__dtype_size(dtype) + 16) & ~(int64_t)15;
}

int64_t cot__pack_bytes(const cot__view *v, cot_dtype dtype) {
    bool packed = v->dtype == dtype && cot__is_contiguous(v->ndim, v->shape, v->stride);
    return packed ? 0 : cot__room_bytes(v, dtype);
}

/* Without a workspace there is nothing that needs one. */
void *cot__pack_room(const cot__view *v, cot_dtype dtype, char **at) {
    int64_t bytes = *at ? cot__pack_bytes(v, dtype) : 0;
    if (!bytes) return v->data;
    *at += bytes;
    return *at - bytes;
}

const void *cot__pack_operand(const cot__job *j, int k, cot_dtype dtype, char **at) {
    const cot__view *v = &j->x[k];
    int64_t          stride[COT_MAX_NDIM];
    void            *data = cot__pack_room(v, dtype, at);
    if (data == v->data) return data;
    cot__strides(v->ndim, v->shape, stride);
    j->backend->copy(&(cot__view){data, dtype, v->ndim, v->shape, stride}, v);
    return data;
}

void cot__unpack(const cot__job *j, const cot__view *z, cot_dtype dtype, void *data) {
    if (data != z->data) j->backend->copy(z, &(cot__view){data, dtype, z->ndim, z->shape, z->stride});
}

/* ---- positions ------------------------------------------------------------------------------- */

const char *cot__place_text(int ndim, const int64_t *shape, int64_t k, char *buf) {
    int64_t at[COT_MAX_NDIM];
    int     n = 0;
    for (int i = ndim - 1; i >= 0; i--) at[i] = k % shape[i], k /= shape[i];
    buf[0] = 0;
    for (int i = 0; i < ndim && n < COT__SHAPE_TEXT - 24; i++)
        n += snprintf(buf + n, (size_t)(COT__SHAPE_TEXT - n), "%s%lld", i ? "," : "[", (long long)at[i]);
    if (ndim) snprintf(buf + n, (size_t)(COT__SHAPE_TEXT - n), "]");
    return buf;
}

/* v is operand k or a part of it. */
static bool positions(const cot__job *j, int k, const cot__view *v, const char *what, int64_t extent, bool wrap) {
    int64_t found[2];
    char    place[COT__SHAPE_TEXT];
    j->backend->bad_position(v, extent, wrap, j->status);
    cot__job_found(j, found);
    if (!found[0]) return true;
    long long value = cot__element_i64(j->backend, v, found[1]);
    if (extent > 0 && j->caller->excuse && j->caller->excuse(j->caller, k)) return true;
    cot__place_text(v->ndim, v->shape, found[1], place);
    if (extent == 0)
        return cot__refuse(j->caller, COT_VALUE, "%s%s is %lld, but the axis has extent 0; it has no positions", what,
                           place, value);
    return cot__refuse(j->caller, COT_VALUE, "%s%s is %lld, out of range for extent %lld; values run from %lld to %lld",
                       what, place, value, (long long)extent, (long long)(wrap ? -extent : 0), (long long)extent - 1);
}

bool cot__job_positions(const cot__job *j, int k, const char *what, int64_t extent, bool wrap) {
    return positions(j, k, &j->x[k], what, extent, wrap);
}

bool cot__job_positions_in(const cot__job *j, int k, int64_t column, const char *what, int64_t extent, bool wrap) {
    cot__view part = j->x[k];
    part.ndim--;
    part.data = (char *)part.data + column * part.stride[part.ndim] * cot__dtype_size(part.dtype);
    return positions(j, k, &part, what, extent, wrap);
}
