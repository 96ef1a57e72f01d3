/* watch.c: the operation that watches another one for kinks.
 *
 * While a body is recorded nothing has a value. If a derivative is recorded in a body of a smooth
 * tape, each operation that it goes through is watched: `watch` takes the operands and results of
 * that operation and, whenever it runs, refuses if they sit on a kink. It has an effect, and a
 * result only because every operation has one. */
#include "rules/structural_ids.h"
#include "backend/job_run.h"
#include "backend/runs.h"
#include "ops/kinks.h"
#include "ops/structural.h"
#include "program/program.h"

#include <string.h>

/* Attributes: the operation, how many operands it has, which of them are its plain number (a mask),
 * then its own attributes. attr->number is its number. */
enum { WATCHED, OPERANDS, NUMBERS, OWN };
enum { MOST_INTS = 16 };

/* The watched operation as a job, and what it is made of. */
typedef struct watched {
    cot__job  job;
    cot__view x[COT__KINK_OPERANDS], more[COT__JOB_RESULTS - 1];
    double    f64;
    float     f32;
    int       values, results; /* operands of `watch`: values of its operands, then its results */
    _Alignas(cot__attr) char own[sizeof(cot__attr) + MOST_INTS * sizeof(int64_t)]; /* attributes */
} watched;

static bool legal_counts(const cot__job *j, watched *w) {
    if (!cot__job_has(j, 2, COT__KINK_OPERANDS + COT__JOB_RESULTS, OWN)) return false;
    int64_t op = cot__job_int(j, WATCHED), n = cot__job_int(j, OPERANDS), numbers = cot__job_int(j, NUMBERS);
    if (op < 0 || op > INT32_MAX || !cot__operation_exists((int)op) || !cot__can_kink((int)op))
        return cot__job_illegal(j, "operation %lld has no kinks to watch", (long long)op);
    if (n < 1 || n > COT__KINK_OPERANDS || numbers < 0 || numbers >= 1 << n || (numbers && op >= OP_structural))
        return cot__job_illegal(j, "an operation of %lld operands", (long long)n);
    w->values = (int)n;
    for (int k = 0; k < n; k++) w->values -= (int)(numbers >> k & 1);
    w->results = j->n - w->values;
    if (w->values < 1 || w->results < 1 || w->results > COT__JOB_RESULTS || j->attr->nints > OWN + MOST_INTS)
        return cot__job_illegal(j, "%d values and %d results", w->values, w->results);
    return true;
}

/* Elementwise operations take their number in the type in which they compute. */
static cot__view number_of(const cot__job *j, watched *w) {
    cot_dtype compute = cot__dtype_compute(j->x[0].dtype);
    w->f64 = j->attr->number;
    w->f32 = (float)j->attr->number;
    return cot__number_view(compute == COT_F32 ? (void *)&w->f32 : (void *)&w->f64, compute);
}

static bool watched_open(const cot__job *j, watched *w) {
    if (!legal_counts(j, w)) return false;
    int op = (int)cot__job_int(j, WATCHED), n = (int)cot__job_int(j, OPERANDS);
    cot__attr *own = (cot__attr *)(void *)w->own;
    *own = (cot__attr){.nints = j->attr->nints - OWN, .number = j->attr->number};
    memcpy(own->ints, j->attr->ints + OWN, own->nints * sizeof *own->ints);
    w->job = (cot__job){.caller  = j->caller,
                        .backend = j->backend,
                        .record  = cot__op_of(op),
                        .op      = op,
                        .n       = n,
                        .numbers = (uint32_t)cot__job_int(j, NUMBERS),
                        .x       = w->x,
                        .attr    = op < OP_structural ? NULL : own,
                        .z       = j->x[w->values],
                        .more    = w->more};
    for (int k = 0, at = 0; k < n; k++) w->x[k] = w->job.numbers >> k & 1 ? number_of(j, w) : j->x[at++];
    for (int k = 1; k < w->results; k++) w->more[k - 1] = j->x[w->values + k];
    return true;
}

/* Are these the results that the operation has? */
static bool watch_infer(const cot__job *j, cot__type *z) {
    watched   w;
    cot__type of[COT__JOB_RESULTS];
    if (!watched_open(j, &w)) return false;
    cot__type_like(&of[0], w.job.z.dtype, &w.job.z); /* where it asks */
    if (cot__job_results(&w.job) != w.results) return cot__job_illegal(j, "%d results", w.results);
    if (!cot__job_infer(&w.job, of)) return false;
    for (int k = 0; k < w.results; k++)
        if (!cot__job_dtype(j, w.values + k, of[k].dtype) ||
            !cot__job_shape(j, w.values + k, of[k].shape.ndim, of[k].shape.dim))
            return false;
    *z = (cot__type){COT_BOOL, {0}};
    return true;
}

/* Results are looked at row-major. */
static int64_t watch_workspace(const cot__job *j) {
    int64_t bytes = 0;
    watched w;
    if (!watched_open(j, &w)) return 0;
    for (int k = w.values; k < j->n; k++) bytes = cot__size_add(bytes, cot__pack_bytes(&j->x[k], j->x[k].dtype));
    return bytes;
}

static void pack_results(const cot__job *j, watched *w, int64_t stride[COT__JOB_RESULTS][COT_MAX_NDIM]) {
    char *at = j->workspace;
    for (int k = 0; k < w->results; k++) {
        cot__view *v = k ? &w->more[k - 1] : &w->job.z;
        v->data = (void *)(uintptr_t)cot__pack_operand(j, w->values + k, v->dtype, &at);
        v->stride = stride[k];
        cot__strides(v->ndim, v->shape, stride[k]);
    }
}

static bool watch_check(const cot__job *j) {
    char          text[320];
    watched       w;
    int64_t       stride[COT__JOB_RESULTS][COT_MAX_NDIM];
    cot__findings f = {.x = cot__text_buffer(text, sizeof text), .j = &w.job, .node = COT__NONE};
    if (!watched_open(j, &w)) return false;
    pack_results(j, &w, stride);
    snprintf(f.where, sizeof f.where, "In a body of [%s]: ", j->caller->name);
    cot__kinks_of(&f);
    if (!f.found) return true;
    text[strcspn(text, "\n")] = 0;
    return cot__refuse(j->caller, COT_GRAD, COT__KINK_REFUSED "%s", text);
}

static void watch_run(const cot__job *j) { j->backend->fill(&j->z, 0); }

/* The operands of `watch` for node i: its own, and its results. Their number. */
static int operands_of(const cot_tape *t, uint32_t i, int64_t *ints, uint32_t *args) {
    const cot__node *n = &t->nodes[i];
    int              count = 0;
    ints[WATCHED] = n->op, ints[OPERANDS] = cot__nargs(n), ints[NUMBERS] = 0;
    for (int k = 0; k < cot__nargs(n); k++)
        if (cot__arg(n, k) == COT__NONE) ints[NUMBERS] |= 1 << k;
        else args[count++] = cot__arg(n, k);
    for (int k = 0, m = cot__results_at(t, i); k < m; k++) args[count++] = i + (uint32_t)k;
    return count;
}

static cot_var record_unseen(cot_tape *t, const char *op, int n, const uint32_t *args, cot__attr *attr) {
    cot__recording r;
    if (!cot__record_open(&r, t, op, OP_watch, n, args, attr, NULL)) return INVALID(t);
    watch_run(&r.job);
    return cot__record_push(&r);
}

cot_var cot__watch_again(cot_tape *t, const char *op, int n, const uint32_t *args, cot__attr *attr) {
    return t->mode.body ? record_unseen(t, op, n, args, attr) : cot__record(t, op, OP_watch, n, args, attr, NULL);
}

bool cot__watch(cot_tape *t, const char *op, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    const cot__attr *own = n->op >= OP_structural ? n->extra.attr : NULL;
    uint32_t         args[COT__KINK_OPERANDS + COT__JOB_RESULTS], extra = own ? own->nints : 0;
    int64_t          ints[OWN + MOST_INTS];
    int              count = operands_of(t, i, ints, args);
    if (extra) memcpy(ints + OWN, own->ints, extra * sizeof *ints);
    cot__attr *attr = cot__attr_make(t, op, OWN + (int)extra, ints, count > 2 ? count : 0, args);
    if (!attr) return false;
    attr->number = own ? own->number : ints[NUMBERS] ? n->extra.number : 0;
    return !cot__failed(record_unseen(t, op, count, args, attr));
}

int cot__watched_operand(const cot__node *watch) {
    const int64_t *ints = watch->extra.attr->ints;
    int            values = (int)ints[OPERANDS];
    for (int k = 0; k < ints[OPERANDS]; k++) values -= (int)(ints[NUMBERS] >> k & 1);
    return values;
}

const cot__op cot__op_watch = {.name      = "watch",
                               .attrs     = "operation:d operands:d numbers:d own:l number:n",
                               .kind      = KIND_NONE,
                               .formula   = "z = false, if what has these operands and results sits on no kink",
                               .infer     = watch_infer,
                               .check     = watch_check,
                               .workspace = watch_workspace,
                               .run       = watch_run,
                               .cost      = {.each_x = 1},
                               .operands  = "*"};
