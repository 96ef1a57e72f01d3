/* custom_job.c: a function of the user's as an operation of a program, which is bound to this
 * process by it. */
#include "ops/custom_job.h"
#include "ops/host_arrays.h"

bool cot__custom_job_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 1, INT32_MAX, 0)) return false;
    const cot_custom *op = j->attr ? j->attr->pointer : NULL;
    if (!op || !op->value) return cot__job_illegal(j, "no function");
    return cot__job_check_type(j, z);
}

bool cot__custom_job_again(const cot__attr *a) { return ((const cot_custom *)a->pointer)->pure; }

/* It may fail. */
bool cot__custom_job_effect(const cot__attr *a) { return (void)a, true; }

bool cot__custom_plain(cot__rule *r, cot__plain *to) {
    const cot_custom *op = cot__rule_attr(r)->pointer;
    to->attr = cot__rule_attr(r);
    to->name = op->name ? op->name : "custom";
    if (!r->t->mode.compiling) to->why = "a function of the user's may ask the tape and fail on it";
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The operands, then the result. */
void *cot__custom_job_open(const cot__job *j, const cot_allocator *al) {
    cot__host_arrays *h = cot__alloc(al, sizeof *h);
    if (!h) return cot__refuse(j->caller, COT_MEMORY, "out of memory: arrays of %d operands", j->n), NULL;
    bool ok = cot__host_arrays_open(h, j, j->n + 1, al);
    for (int k = 0; ok && k <= j->n; k++) ok = cot__host_array_like(h, j, k, k < j->n ? &j->x[k] : &j->z);
    if (ok) return h;
    cot__custom_job_close(h);
    return NULL;
}

void cot__custom_job_close(void *held) {
    cot__host_arrays *h = held;
    cot_allocator     al = h->al;
    cot__host_arrays_close(h);
    cot__free(&al, h, sizeof *h);
}

bool cot__custom_job_go(const cot__job *j) {
    const cot_custom *op = j->attr->pointer;
    cot__host_arrays *h = j->held;
    for (int k = 0; k < j->n; k++) cot__host_array_see(h, j, k, &j->x[k]);
    cot__host_array_clear(h, j->n, &j->z);
    int code = op->value(j->n, h->x, &h->x[j->n], (void *)(uintptr_t)j->attr->pointer2);
    if (code) return cot__refuse(j->caller, COT_CUSTOM, "value failed with code %d", code);
    cot__host_array_give(h, j, j->n, &j->z);
    return true;
}

/* ---- its derivatives in numbers -------------------------------------------------------------- */

/* The first integer is the number n of operands of the function. Operands are those, then its
 * result, then
 *   of a vjp (the number is 0)   the adjoint; the second integer says whose adjoint this is
 *   of a jvp                     the tangents that move, as the other n integers say */
static int  functions_operands(const cot__job *j) { return (int)j->attr->ints[0]; }
static bool is_tangent(const cot__job *j) { return j->attr->number != 0; }
static int  receiver_of(const cot__job *j) { return (int)j->attr->ints[1]; }

static bool tangents_fit(const cot__job *j, int n) {
    int moving = 0;
    if (!cot__job_has(j, n + 1, 2 * n + 1, 1 + n)) return false;
    for (int k = 0; k < n; k++) {
        if (!cot__job_range(j, 1 + k, 0, 1)) return false;
        moving += (int)j->attr->ints[1 + k];
        int at = n + moving;
        if (!j->attr->ints[1 + k]) continue;
        if (at >= j->n || !cot__job_dtype(j, at, j->x[k].dtype) ||
            !cot__job_shape(j, at, j->x[k].ndim, j->x[k].shape))
            return cot__job_illegal(j, "a tangent is not like what it belongs to");
    }
    return j->n == n + 1 + moving || cot__job_illegal(j, "%d operands, where %d belong", j->n, n + 1 + moving);
}

bool cot__numbers_job_infer(const cot__job *j, cot__type *z) {
    if (!cot__job_has(j, 2, INT32_MAX, 2) || !cot__job_range(j, 0, 1, j->n - 1)) return false;
    const cot_custom *op = j->attr->pointer;
    int               n = functions_operands(j);
    bool              tangent = is_tangent(j);
    if (!op || (tangent ? !op->jvp_numbers : !op->vjp_numbers)) return cot__job_illegal(j, "no function");
    if (tangent ? !tangents_fit(j, n) : !cot__job_has(j, n + 2, n + 2, 2) || !cot__job_range(j, 1, 0, n - 1))
        return false;
    const cot__view *like = &j->x[tangent ? n : receiver_of(j)];
    cot__type_like(z, like->dtype, like);
    return true;
}

/* The arrays as the function takes them: operands, result; then of a vjp the adjoint and those that
 * it gives, of which one is the result here; of a jvp the tangents, and its own at the end. */
static bool open_numbers(const cot__job *j, cot__host_arrays *h) {
    int n = functions_operands(j), next = n + 1;
    for (int k = 0; k <= n; k++)
        if (!cot__host_array_like(h, j, k, &j->x[k])) return false;
    if (!is_tangent(j) && !cot__host_array_like(h, j, n + 1, &j->x[n + 1])) return false;
    for (int k = 0; k < n; k++) {
        bool ok = true;
        if (!is_tangent(j) && k == receiver_of(j)) ok = cot__host_array_like(h, j, n + 2 + k, &j->z);
        else if (!is_tangent(j)) ok = cot__host_array_apart(h, j, n + 2 + k, &j->x[k]);
        else if (j->attr->ints[1 + k]) ok = cot__host_array_like(h, j, n + 1 + k, &j->x[next++]);
        else cot__host_array_described(h, n + 1 + k, &j->x[k]);
        if (!ok) return false;
    }
    return !is_tangent(j) || cot__host_array_like(h, j, 2 * n + 1, &j->z);
}

void *cot__numbers_job_open(const cot__job *j, const cot_allocator *al) {
    cot__host_arrays *h = cot__alloc(al, sizeof *h);
    if (!h) return cot__refuse(j->caller, COT_MEMORY, "out of memory: arrays of %d operands", j->n), NULL;
    if (cot__host_arrays_open(h, j, 2 * functions_operands(j) + 2, al) && open_numbers(j, h)) return h;
    cot__custom_job_close(h);
    return NULL;
}

static int call_vjp(const cot__job *j, cot__host_arrays *h, const cot_custom *op, void *user) {
    int n = functions_operands(j), to = n + 2 + receiver_of(j);
    cot__host_array_see(h, j, n + 1, &j->x[n + 1]);
    for (int k = n + 2; k < 2 * n + 2; k++) cot__host_array_clear(h, k, &j->z);
    int code = op->vjp_numbers(n, h->x, &h->x[n], &h->x[n + 1], &h->x[n + 2], user);
    if (!code) cot__host_array_give(h, j, to, &j->z);
    return code;
}

static int call_jvp(const cot__job *j, cot__host_arrays *h, const cot_custom *op, void *user) {
    int n = functions_operands(j), next = n + 1;
    for (int k = 0; k < n; k++)
        if (j->attr->ints[1 + k]) cot__host_array_see(h, j, n + 1 + k, &j->x[next++]);
    cot__host_array_clear(h, 2 * n + 1, &j->z);
    int code = op->jvp_numbers(n, h->x, &h->x[n], &h->x[n + 1], &h->x[2 * n + 1], user);
    if (!code) cot__host_array_give(h, j, 2 * n + 1, &j->z);
    return code;
}

bool cot__numbers_job_go(const cot__job *j) {
    const cot_custom *op = j->attr->pointer;
    void             *user = (void *)(uintptr_t)j->attr->pointer2;
    for (int k = 0; k <= functions_operands(j); k++) cot__host_array_see(j->held, j, k, &j->x[k]);
    int code = is_tangent(j) ? call_jvp(j, j->held, op, user) : call_vjp(j, j->held, op, user);
    if (!code) return true;
    return cot__refuse(j->caller, COT_CUSTOM, "%s failed with code %d", is_tangent(j) ? "jvp_numbers" : "vjp_numbers",
                       code);
}
