/* record_job.c: recording a structural operation through its record.
 *
 * The recorder is one executor of jobs (job/job.h). It keeps what a tape promises: errors stick
 * with the name of the function that was called, operands that wait for deferred work are written
 * first, workspaces are given back, and examples of bodies are excused where they are no
 * positions. */
#include "tape/record_job.h"
#include "backend/elements.h"
#include "tape/flow.h"

#include <stddef.h>

/* ---- the tape as caller ---------------------------------------------------------------------- */

static void fail(const cot__caller *c, cot_status code, const char *text) { cot__fail(c->to, code, "%s", text); }
static void note(const cot__caller *c, const char *text) { cot__note(c->to, "%s", text); }

cot__caller cot__tape_caller(cot_tape *t, const char *name) { return (cot__caller){name, t, fail, note, NULL}; }

/* Does the value of node i, of the body that is recorded, follow from an input of a body or from
 * what is older than them? Else it is computed once and holds for every step. */
static bool may_change(cot_tape *t, uint32_t i) {
    cot__flow w;
    if (!cot__flow_open(&w, t, t->mode.body_from, i + 1)) return false;
    w.outside = true;
    for (uint32_t k = w.from; k < w.end; k++) w.mark[k - w.from] = t->nodes[k].op == OP_parameter;
    cot__flow_up(&w, 1, COT__EDGES_ALL);
    bool found = cot__flow_mark(&w, i);
    cot__flow_close(&w);
    return found;
}

/* While a body is recorded its values are examples, and one that is no position may belong to a
 * branch that is not taken or a loop of no step: it becomes 0 for the operation that reads it here,
 * and is looked at when the body is played. False, perhaps without an error: it must stay as it
 * is. */
static bool excuse_example(cot_tape *t, const char *op, uint32_t i) {
    cot__node *n = &t->nodes[i];
    if (!t->mode.body || t->mode.strict_positions || i < t->mode.body_from || !may_change(t, i)) return false;
    if (!cot__is_tensor(n)) return n->value.i64 = 0, true;
    if (!t->storages.zero && !(t->storages.zero = cot__storage_create(t, sizeof(int64_t), op))) return false;
    cot__tensor *v = n->value.tensor;
    t->backend->fill(&(cot__view){t->storages.zero->data, COT_I64, 0, NULL, NULL}, 0);
    v->storage = t->storages.zero;
    v->version = t->storages.zero->version;
    v->offset = 0;
    for (int k = 0; k < v->ndim; k++) v->dims[v->ndim + k] = 0;
    return true;
}

/* c is the caller of a recording. */
static bool excuse(const cot__caller *c, int k) {
    cot__recording *r = (cot__recording *)((uintptr_t)c - offsetof(cot__recording, caller));
    if (!excuse_example(r->t, c->name, r->args[k])) return r->t->status != COT_OK;
    r->job.x[k] = cot__view_read(r->t, r->args[k]);
    return true;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Views of the operands: on the stack, or in the arena where they are many. */
bool cot__recording_begin(cot__recording *r, cot_tape *t, const char *name, int n, const uint32_t *args) {
    cot__view *x = n <= COT__FEW_OPERANDS ? r->few : cot__arena(t, (size_t)n * sizeof *x, name);
    cot__job  *j = &r->job;
    if (!x) return false;
    r->t = t;
    r->args = args;
    r->caller = (cot__caller){name, t, fail, note, excuse};
    /* one by one: views of results that are not there need no zeros */
    j->caller = &r->caller;
    j->backend = t->backend;
    j->n = n;
    j->numbers = 0;
    j->x = x;
    j->more[0].data = j->more[1].data = j->workspace = NULL;
    j->status = r->status;
    for (int k = 0; k < n; k++) x[k] = cot__view_shape(t, args[k]);
    return true;
}

bool cot__recording_read(cot__recording *r) {
    for (int k = 0; k < r->job.n; k++) r->job.x[k] = cot__view_read(r->t, r->args[k]);
    return r->t->status == COT_OK;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static bool infer(cot__recording *r, cot_tape *t, const char *name, int op, int n, const uint32_t *args,
                  cot__attr *attr, const cot__type *asked, cot__type *z) {
    if (!cot__recording_begin(r, t, name, n, args)) return false;
    r->attr = attr;
    r->job.attr = attr;
    r->job.op = op;
    r->job.record = cot__op_of(op);
    if (asked) {
        z->dtype = asked->dtype;
        z->shape.ndim = asked->shape.ndim;
        for (int k = 0; k < asked->shape.ndim && k < COT_MAX_NDIM; k++) z->shape.dim[k] = asked->shape.dim[k];
    }
    return cot__job_infer(&r->job, z);
}

static bool make_room(cot__recording *r, const cot__type *z) {
    const cot_shape *s = &z->shape;
    if (!cot__result_open_sized(r->t, &r->result, r->caller.name, z->dtype, s->ndim, s->dim, cot__count(s->ndim, s->dim)))
        return false;
    r->job.z = r->result.view;
    return true;
}

bool cot__record_open(cot__recording *r, cot_tape *t, const char *name, int op, int n, const uint32_t *args,
                      cot__attr *attr, const cot__type *asked) {
    cot__type z;
    return infer(r, t, name, op, n, args, attr, asked, &z) && make_room(r, &z);
}

bool cot__recording_room(cot__recording *r, int64_t need, size_t *bytes) {
    cot_tape *t = r->t;
    bool      host = cot__on_host(t->backend);
    size_t    status = host ? 0 : sizeof r->status;
    *bytes = (((size_t)need + 15) & ~(size_t)15) + status;
    r->status[0] = r->status[1] = 0;
    if (need == 0 && host) return true;
    void *p = need < 0 ? NULL : cot__device_alloc(t, *bytes);
    if (!p) {
        cot__fail(t, COT_MEMORY, need < 0 ? "[%s] the workspace would be larger than any memory"
                                          : "[%s] out of memory: %zu bytes of workspace", r->caller.name, *bytes);
        return false;
    }
    r->job.workspace = p;
    if (host) return true;
    static const int64_t two[1] = {2}, one[1] = {1};
    r->job.status = (int64_t *)((char *)p + *bytes - status);
    t->backend->fill(&(cot__view){r->job.status, COT_I64, 1, two, one}, 0);
    return true;
}

void cot__recording_leave(cot__recording *r, size_t bytes) {
    cot__device_free(r->t, r->job.workspace, bytes);
    r->job.workspace = NULL;
}

bool cot__record_run(cot__recording *r) {
    size_t  bytes;
    int64_t found[2];
    if (!cot__recording_read(r) || !cot__recording_room(r, cot__job_workspace(&r->job), &bytes)) return false;
    bool legal = cot__job_check(&r->job);
    if (legal) cot__job_run(&r->job);
    if (legal && r->job.record->tell) {
        cot__job_found(&r->job, found);
        if (found[0]) r->job.record->tell(&r->job, found);
    }
    cot__recording_leave(r, bytes);
    return legal;
}

cot_var cot__record_push(cot__recording *r) {
    return cot__result_push(r->t, &r->result, r->job.op, r->job.n, r->args, r->attr);
}

/* ---- all of it ------------------------------------------------------------------------------- */

cot_var cot__record(cot_tape *t, const char *name, int op, int n, const uint32_t *args, cot__attr *attr,
                    const cot__type *asked) {
    cot__recording r;
    cot__type      z;
    int64_t        stride[COT_MAX_NDIM], offset = 0;
    if (!infer(&r, t, name, op, n, args, attr, asked, &z)) return INVALID(t);
    if (r.job.record->view && r.job.record->view(&r.job, &z, stride, &offset))
        return cot__push_view_as(t, name, op, args[0], &z, stride, offset, attr);
    return make_room(&r, &z) && cot__record_run(&r) ? cot__record_push(&r) : INVALID(t);
}

/* The attributes in the arena, as a rule may have them on its stack, without operands. */
static cot__attr *attributes_of(const cot__rule *r) {
    const cot__attr *of = cot__rule_attr(r);
    cot__attr       *attr = cot__attr_make(r->t, r->op->name, (int)of->nints, of->ints, 0, NULL);
    if (attr) attr->number = of->number, attr->pointer = of->pointer, attr->pointer2 = of->pointer2;
    return attr;
}

static cot_var record_again(cot__rule *r, const cot_var *xs) {
    cot_tape        *t = r->t;
    const cot__node *node = cot__rule_node(r);
    int              n = cot__nargs(node), op = node->op;
    cot__type        asked = {cot__dtype_at(node), cot__rule_result(r)};
    uint32_t         few[COT__FEW_OPERANDS],
        *args = n <= COT__FEW_OPERANDS ? few : cot__arena(t, (size_t)n * sizeof *args, r->op->name);
    cot__attr *attr = NULL;
    if (!args || (cot__rule_attr(r) && !(attr = attributes_of(r)))) return INVALID(t);
    for (int k = 0; k < n; k++)
        if (!cot__enter_listed(t, xs[k], r->op->name, "operand", k, "", &args[k])) return INVALID(t);
    return cot__record(t, r->op->name, op, n, args, attr, &asked);
}

cot_var cot__apply(cot__rule *r, const cot_var *xs) { return r->op->apply ? r->op->apply(r, xs) : record_again(r, xs); }
