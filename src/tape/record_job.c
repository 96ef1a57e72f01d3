/* record_job.c: recording a structural operation through its record.
 *
 * The recorder is one executor of jobs (job/job.h). It keeps what a tape promises: errors stick
 * with the name of the function that was called, waiting work that makes its operands is done
 * first, workspaces are given back, and examples of bodies are excused where they are no
 * positions. */
#include "tape/record_job.h"
#include "backend/elements.h"
#include "tape/examples.h"
#include "tape/flow.h"

#include <stddef.h>

/* ---- the tape as caller ---------------------------------------------------------------------- */

static void fail(const cot__caller *c, cot_status code, const char *text) { cot__fail(c->to, code, "%s", text); }
static void note(const cot__caller *c, const char *text) { cot__note(c->to, "%s", text); }

cot__caller cot__tape_caller(cot_tape *t, const char *name) { return (cot__caller){name, t, fail, note, NULL}; }

/* Does the value of node i, of the body that is recorded, follow from an input of a body or from
 * what is older than them? Else it is computed once and holds for every step. */
static bool may_change(cot_tape *t, const char *op, uint32_t i) {
    cot__flow w;
    if (!cot__flow_open(&w, t, t->mode.body_from, i + 1))
        return cot__fail(t, COT_MEMORY, "[%s] out of memory for looking at a body", op), false;
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
    if (!t->mode.body || t->mode.strict_positions || i < t->mode.body_from || !may_change(t, op, i)) return false;
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
    if (!excuse_example(r->t, c->name, r->args[k])) return false;
    r->job.x[k] = cot__look(r->t, r->args[k]);
    return true;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* x has room for views of the n operands. */
static void begin(cot__recording *r, cot_tape *t, const char *name, int n, const uint32_t *args, cot__view *x) {
    cot__job *j = &r->job;
    r->t = t;
    r->args = args;
    r->caller = (cot__caller){name, t, fail, note, excuse};
    /* one by one: views of results that are not there need no zeros */
    j->caller = &r->caller;
    j->backend = t->backend;
    j->op = 0;
    j->n = n;
    j->numbers = 0;
    j->x = x;
    j->more = r->more;
    j->workspace = NULL;
    j->status = r->status;
    for (int k = 0; k < n; k++) x[k] = cot__layout_at(t, args[k]);
}

/* The views on the stack, or in the arena where they are many. */
bool cot__recording_begin(cot__recording *r, cot_tape *t, const char *name, int n, const uint32_t *args) {
    cot__view *x = n <= COT__FEW_OPERANDS ? r->few : cot__arena(t, (size_t)n * sizeof *x, name);
    if (x) begin(r, t, name, n, args, x);
    return x != NULL;
}

bool cot__recording_read(cot__recording *r) {
    for (int k = 0; k < r->job.n; k++) r->job.x[k].data = cot__look(r->t, r->args[k]).data;
    return r->t->status == COT_OK;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* After the recording was begun. */
static bool infer(cot__recording *r, int op, cot__attr *attr, const cot__type *asked, cot__type *z) {
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
    r->results = cot__job_results(&r->job);
    for (int k = 0; k < r->results; k++) {
        const cot_shape *s = &z[k].shape;
        int64_t          size = cot__count(s->ndim, s->dim);
        if (!cot__result_open_sized(r->t, &r->result[k], r->caller.name, z[k].dtype, s->ndim, s->dim, size))
            return false;
        if (k > 0) r->more[k - 1] = r->result[k].view;
    }
    r->job.z = r->result[0].view;
    return true;
}

bool cot__record_open(cot__recording *r, cot_tape *t, const char *name, int op, int n, const uint32_t *args,
                      cot__attr *attr, const cot__type *asked) {
    cot__type z[COT__JOB_RESULTS];
    return cot__recording_begin(r, t, name, n, args) && infer(r, op, attr, asked, z) && make_room(r, z);
}

void *cot__workspace_open(cot_tape *t, const char *op, int64_t bytes) {
    size_t size = (size_t)bytes;
    if (bytes < 0) return cot__fail(t, COT_MEMORY, "[%s] the workspace would be larger than any memory", op), NULL;
    if (UNLIKELY(t->memory.on)) cot__memory_expect(t, size);
    void *p = cot__device_alloc(t, size);
    if (!p) cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes of workspace", op, size);
    return p;
}

void cot__workspace_close(cot_tape *t, void *memory, int64_t bytes) {
    cot__device_free(t, memory, (size_t)bytes);
}

/* The workspace, and behind it the status words where the host does not compute. */
static bool open_workspace(cot__recording *r, int64_t *bytes) {
    static const int64_t two[1] = {2}, one[1] = {1};
    cot_tape            *t = r->t;
    bool                 host = cot__on_host(t->backend);
    int64_t              need = cot__job_workspace(&r->job), status = host ? 0 : (int64_t)sizeof r->status;
    r->status[0] = r->status[1] = 0;
    *bytes = need < 0 ? need : ((need + 15) & ~(int64_t)15) + status;
    if (*bytes == 0) return true;
    r->job.workspace = cot__workspace_open(t, r->caller.name, *bytes);
    if (!r->job.workspace || host) return r->job.workspace != NULL;
    r->job.status = (int64_t *)((char *)r->job.workspace + *bytes - status);
    t->backend->fill(&(cot__view){r->job.status, COT_I64, 1, two, one}, 0);
    return true;
}

static void close_workspace(cot__recording *r, int64_t bytes) {
    if (r->job.workspace) cot__workspace_close(r->t, r->job.workspace, bytes);
    r->job.workspace = NULL;
}

bool cot__recording_look(cot__recording *r, void (*look)(const cot__job *j), int64_t found[2]) {
    int64_t bytes;
    if (!cot__recording_read(r) || !open_workspace(r, &bytes)) return false;
    look(&r->job);
    cot__job_found(&r->job, found);
    close_workspace(r, bytes);
    return true;
}

/* What depends on examples of a compiled function is not computed; what is known already, positions
 * that are constants, is checked now. False: it has to be computed to be checked. */
static bool is_example(cot__recording *r, bool *legal) {
    const cot__op *record = r->job.record;
    cot__positions asked;
    int64_t        bytes;
    *legal = true;
    if (record->check && !(record->positions && record->positions(&r->job, &asked))) return false;
    if (record->check && !cot__is_example(r->t, r->args[asked.operand])) {
        r->job.x[asked.operand].data = cot__look(r->t, r->args[asked.operand]).data;
        *legal = open_workspace(r, &bytes) && cot__job_check(&r->job);
        close_workspace(r, bytes);
    }
    for (int k = 0; k < r->results; k++) cot__result_is_example(r->t, &r->result[k]);
    return true;
}

bool cot__record_run(cot__recording *r) {
    int64_t bytes, found[2];
    bool    checked;
    if (UNLIKELY(r->t->mode.compiling) && cot__has_examples(r->t, r->job.n, r->args) && is_example(r, &checked))
        return checked && r->t->status == COT_OK;
    if (!cot__recording_read(r) || !open_workspace(r, &bytes)) return false;
    bool legal = cot__job_check(&r->job);
    /* what works in place is recorded on a copy */
    if (legal && r->job.record->in_place) r->t->backend->copy(&r->job.z, &r->job.x[0]);
    if (legal) cot__job_run(&r->job);
    if (legal && r->job.record->tell) {
        cot__job_found(&r->job, found);
        if (found[0]) r->job.record->tell(&r->job, found);
    }
    close_workspace(r, bytes);
    return legal;
}

cot_var cot__record_push(cot__recording *r) {
    return r->results == 1 ? cot__result_push(r->t, r->result, r->job.op, r->job.n, r->args, r->attr)
                           : cot__results_push(r->t, r->results, r->result, r->job.op, r->job.n, r->args, r->attr);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The same after the recording was begun. */
static cot_var finish(cot__recording *r, int op, cot__attr *attr, const cot__type *asked) {
    cot__type z[COT__JOB_RESULTS];
    int64_t   stride[COT_MAX_NDIM], offset = 0;
    if (!infer(r, op, attr, asked, z)) return INVALID(r->t);
    if (r->job.record->view && r->job.record->view(&r->job, z, stride, &offset))
        return cot__push_view_as(r->t, r->caller.name, op, r->args[0], z, stride, offset, attr);
    return make_room(r, z) && cot__record_run(r) ? cot__record_push(r) : INVALID(r->t);
}

/* Views of many operands are as large as the values of many scalars, so they do not stay. */
static cot_var record_many(cot_tape *t, const char *name, int op, int n, const uint32_t *args, cot__attr *attr,
                           const cot__type *asked) {
    cot__recording r;
    size_t         bytes = (size_t)n * sizeof(cot__view);
    cot__view     *x = cot__alloc(&t->al, bytes);
    if (!x) return cot__fail(t, COT_MEMORY, "[%s] out of memory: %zu bytes to see %d operands", name, bytes, n);
    begin(&r, t, name, n, args, x);
    cot_var z = finish(&r, op, attr, asked);
    cot__free(&t->al, x, bytes);
    return z;
}

cot_var cot__record(cot_tape *t, const char *name, int op, int n, const uint32_t *args, cot__attr *attr,
                    const cot__type *asked) {
    cot__recording r;
    if (n > COT__FEW_OPERANDS) return record_many(t, name, op, n, args, attr, asked);
    begin(&r, t, name, n, args, r.few);
    return finish(&r, op, attr, asked);
}

/* The attributes in the arena, as a rule may have them on its stack, with these operands where a
 * node lists them. */
static cot__attr *attributes_of(const cot__rule *r, int n, const uint32_t *args) {
    const cot__attr *of = cot__rule_attr(r);
    cot__attr       *attr = cot__attr_make(r->t, r->op->name, (int)of->nints, of->ints, n > 2 ? n : 0, args);
    if (attr) attr->number = of->number, attr->pointer = of->pointer, attr->pointer2 = of->pointer2;
    return attr;
}

static cot_var record_again(cot__rule *r, const cot_var *xs) {
    cot_tape        *t = r->t;
    const cot__node *node = cot__rule_node(r);
    const char      *name = cot__caller_name(r->op, cot__rule_attr(r));
    int              n = cot__nargs(node), op = node->op;
    cot__type        asked = {cot__dtype_at(node), cot__rule_result(r)};
    uint32_t         few[COT__FEW_OPERANDS],
        *args = n <= COT__FEW_OPERANDS ? few : cot__arena(t, (size_t)n * sizeof *args, name);
    cot__attr *attr = NULL;
    if (!args) return INVALID(t);
    for (int k = 0; k < n; k++)
        if (!cot__enter_listed(t, xs[k], name, "operand", k, "", &args[k])) return INVALID(t);
    if (cot__rule_attr(r) && !(attr = attributes_of(r, n, args))) return INVALID(t);
    return cot__record(t, name, op, n, args, attr, &asked);
}

cot_var cot__apply(cot__rule *r, const cot_var *xs) { return r->op->apply ? r->op->apply(r, xs) : record_again(r, xs); }
