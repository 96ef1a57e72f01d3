/* Every operation runs on arrays without a tape, by its record alone: the type that `infer` gives
 * is the node's, and `run` or `view` gives the node's bits in memory that is exactly as large as
 * the record says. Hostile jobs are refused or run within their memory. */
/* ctest: timeout=240 */
#include "rules/structural_ids.h"
#include "samples/samples.h"
#include "support/support.h"

#include "backend/job_run.h"
#include "base/sizes.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 64, HEARD = 512 };

/* ---- a caller that remembers ----------------------------------------------------------------- */

typedef struct heard { int errors, notes; char text[HEARD]; } heard;

static void hear_error(const cot__caller *c, cot_status code, const char *text) {
    heard *h = c->to;
    (void)code;
    if (h->errors++ == 0) snprintf(h->text, sizeof h->text, "%s", text);
}
static void hear_note(const cot__caller *c, const char *text) {
    (void)text;
    ((heard *)c->to)->notes++;
}

/* ---- a job of a node ------------------------------------------------------------------------- */

static bool overwritten(const cot_tape *t, uint32_t i) {
    const cot__node *n = &t->nodes[i];
    return cot__is_tensor(n) && n->value.tensor->version != n->value.tensor->storage->version;
}

typedef struct workbench {
    cot__caller caller;
    heard       said;
    cot__job    job;
    cot__view   x[MAX_ARGS];
    cot__value  number;
    cot__type   type[COT__JOB_RESULTS];
    /* further results, row-major, after a run */
    cot__view   more[COT__JOB_RESULTS - 1];
    int64_t     more_stride[COT__JOB_RESULTS - 1][COT_MAX_NDIM];
    int64_t     status[2], stride[COT_MAX_NDIM];
    /* operands that were overwritten since, made again */
    void       *old[MAX_ARGS];
    int64_t     old_stride[MAX_ARGS][COT_MAX_NDIM];
} workbench;

static void close_bench(workbench *w) {
    for (int k = 0; k < MAX_ARGS; k++) free(w->old[k]);
    for (int k = 0; k < COT__JOB_RESULTS - 1; k++) free(w->more[k].data);
}

static bool make_again(cot_tape *t, uint32_t i, void *bits);

/* Operand k, node a, as it was before somebody wrote it. */
static bool see_again(workbench *w, int k, cot_tape *t, uint32_t a) {
    cot__view v = cot__layout_at(t, a);
    w->old[k] = malloc(cot__bytes_at(t, a) + 1);
    cot__strides(v.ndim, v.shape, w->old_stride[k]);
    w->x[k] = (cot__view){w->old[k], v.dtype, v.ndim, v.shape, w->old_stride[k]};
    return make_again(t, a, w->old[k]);
}

/* The operands of node i as views. False: one of them was overwritten since and cannot be made
 * again. To be closed in both cases. */
static bool open_bench(workbench *w, cot_tape *t, uint32_t i) {
    static const int64_t no_axes[1];
    const cot__node     *n = &t->nodes[i];
    int                  count = cot__nargs(n);
    assert_in_range(count, 0, MAX_ARGS);
    *w = (workbench){.type = {{cot__dtype_at(n), cot__shape_at(t, i)}}};
    w->caller = (cot__caller){cot__op_of(n->op)->name, &w->said, hear_error, hear_note, NULL};
    w->job    = (cot__job){.caller = &w->caller, .backend = t->backend, .record = cot__op_of(n->op), .op = n->op,
                           .n = count, .x = w->x, .status = w->status,
                           .attr = n->op >= OP_structural ? n->extra.attr : NULL};
    for (int k = 0; k < count; k++) {
        uint32_t a = cot__arg(n, k);
        if (a != COT__NONE && overwritten(t, a)) {
            if (!see_again(w, k, t, a)) return false;
        } else if (a != COT__NONE) w->x[k] = cot__look(t, a);
        else w->job.numbers |= 1u << k;
    }
    for (int k = 0; k < count; k++) {
        if (!(w->job.numbers >> k & 1)) continue;
        cot_dtype compute = cot__dtype_compute(w->x[1 - k].dtype);
        cot__store_f64(&w->number, compute, n->extra.number);
        w->x[k] = (cot__view){&w->number, compute, 0, no_axes, no_axes};
    }
    return true;
}

static size_t bytes_of(const cot__type *z) {
    return (size_t)(cot__count(z->shape.ndim, z->shape.dim) * cot__dtype_size(z->dtype));
}

static void open_more(workbench *w) {
    w->job.more = w->more;
    for (int k = 1, m = cot__job_results(&w->job); k < m; k++) {
        const cot__type *z = &w->type[k];
        cot__strides(z->shape.ndim, z->shape.dim, w->more_stride[k - 1]);
        free(w->more[k - 1].data);
        w->more[k - 1] = (cot__view){malloc(bytes_of(z) + 1), z->dtype, z->shape.ndim, z->shape.dim,
                                     w->more_stride[k - 1]};
        memset(w->more[k - 1].data, 0xff, bytes_of(z));
    }
}

/* Runs an accepted job in memory of its own; `bits` gets the result, row-major. False: refused. */
static bool run_bench(workbench *w, char *bits) {
    const cot__op *op = w->job.record;
    int64_t        offset = 0, rows[COT_MAX_NDIM];
    cot__view      packed = {bits, w->type[0].dtype, w->type[0].shape.ndim, w->type[0].shape.dim, rows};
    cot__strides(packed.ndim, packed.shape, rows);
    if (w->job.op >= OP_structural && op->view && op->view(&w->job, &w->type[0], w->stride, &offset)) {
        cot__view seen = packed;
        seen.stride = w->stride;
        seen.data = (char *)w->x[0].data + offset * cot__dtype_size(w->x[0].dtype);
        w->job.backend->copy(&packed, &seen);
        return true;
    }
    w->job.z = packed;
    open_more(w);
    int64_t need = cot__job_workspace(&w->job);
    assert_true(need >= 0);
    w->job.z.data = malloc(bytes_of(&w->type[0]) + 1);
    w->job.workspace = need ? malloc((size_t)need) : NULL;
    memset(w->job.z.data, 0xff, bytes_of(&w->type[0]));
    if (need) memset(w->job.workspace, 0xff, (size_t)need);
    if (op->in_place) w->job.backend->copy(&w->job.z, &w->x[0]);
    bool legal = cot__job_check(&w->job);
    w->status[0] = w->status[1] = 0;
    if (legal) cot__job_run(&w->job);
    if (legal && op->tell && w->status[0]) op->tell(&w->job, w->status);
    memcpy(bits, w->job.z.data, bytes_of(&w->type[0]));
    free(w->job.z.data);
    free(w->job.workspace);
    return legal;
}

static bool needs_tape(int op) {
    const cot__op *o = cot__op_of(op);
    return op >= OP_structural && (o->kind == KIND_SOURCE || o->kind == KIND_PICK || o->needs_tape || o->open);
}

/* The elements that node i had before somebody wrote them, by its own job. Constants that are
 * overwritten are the zeros that recorded adjoints begin with. */
static bool make_again(cot_tape *t, uint32_t i, void *bits) {
    workbench w;
    int       op = t->nodes[i].op;
    memset(bits, 0, cot__bytes_at(t, i));
    if (op == OP_constant || needs_tape(op) || (op >= OP_structural && !cot__op_of(op)->infer))
        return op == OP_constant;
    bool made = open_bench(&w, t, i) && cot__job_infer(&w.job, &w.type[0]) && run_bench(&w, bits);
    close_bench(&w);
    return made;
}

/* ---- every node of every sample -------------------------------------------------------------- */

static uint8_t ran[OP_count];

/* Compares further results of the job of node i with the picks behind the node. */
static void compare_more(workbench *w, cot_tape *t, uint32_t i, const char *sample) {
    static char want[1 << 16];
    const char *name = w->job.record->name;
    int         m = cot__job_results(&w->job);
    TEST_CHECK(m == cot__results_at(t, i), "%s: %s (%%%u) has other results on a tape", sample, name, i);
    for (int k = 1; k < m && m == cot__results_at(t, i); k++) {
        uint32_t  z = i + (uint32_t)k;
        cot__view v = cot__look(t, z), got = w->more[k - 1];
        bool same = v.dtype == got.dtype && cot__same_shape(&w->type[k].shape, &(cot_shape[]){cot__shape_at(t, z)}[0]);
        TEST_CHECK(same, "%s: infer gives result %d of %s (%%%u) another type", sample, k, name, i);
        if (!same || bytes_of(&w->type[k]) > sizeof want) continue;
        cot__read_view(t, name, &v, v.dtype, want, cot__view_size(&v));
        TEST_CHECK(memcmp(want, got.data, bytes_of(&w->type[k])) == 0,
                   "%s: result %d of %s (%%%u) has other bits without a tape", sample, k, name, i);
    }
}

/* Compares what the job of node i gives with the node. */
static void compare_bench(workbench *w, cot_tape *t, uint32_t i, const char *sample) {
    static char want[1 << 16], got[1 << 16];
    int         op = t->nodes[i].op;
    const char *name = cot__op_of(op)->name;
    cot__type   node = w->type[0];
    if (bytes_of(&node) > sizeof want) return;
    if (op < OP_structural || !(cot__op_of(op)->asks & COT__ASKS_SHAPE)) w->type[0].shape = (cot_shape){3, {9, 9, 9}};
    if (op < OP_structural || !(cot__op_of(op)->asks & COT__ASKS_DTYPE)) w->type[0].dtype = COT_U8;
    bool known = cot__job_infer(&w->job, &w->type[0]);
    TEST_CHECK(known, "%s: %s (%%%u) is refused: %s", sample, name, i, w->said.text);
    if (!known) return;
    TEST_CHECK(w->type[0].dtype == node.dtype && cot__same_shape(&w->type[0].shape, &node.shape),
               "%s: infer gives %s (%%%u) another type", sample, name, i);
    if (w->type[0].dtype != node.dtype || bytes_of(&w->type[0]) != bytes_of(&node)) return;
    cot__view v = cot__look(t, i);
    cot__read_view(t, name, &v, v.dtype, want, cot__view_size(&v));
    bool legal = run_bench(w, got);
    TEST_CHECK(legal, "%s: %s (%%%u) does not run: %s", sample, name, i, w->said.text);
    TEST_CHECK(!legal || memcmp(want, got, bytes_of(&node)) == 0, "%s: %s (%%%u) has other bits without a tape", sample,
               name, i);
    if (legal && op >= OP_structural) compare_more(w, t, i, sample);
    ran[op] = 1;
}

static void compare_node(cot_tape *t, uint32_t i, const char *sample) {
    workbench w;
    int       op = t->nodes[i].op;
    if (needs_tape(op) || cot__in_body(&t->nodes[i]) || overwritten(t, i)) return;
    /* records_bring_what_runs_them names these */
    if (op >= OP_structural && !cot__op_of(op)->infer) return;
    if (open_bench(&w, t, i)) compare_bench(&w, t, i, sample);
    close_bench(&w);
}

/* The same for operands whose elements lie in every second place of their memory. */
static void compare_spread(cot_tape *t, uint32_t i, const char *sample) {
    static char want[1 << 16], got[1 << 16];
    workbench   w;
    int         op = t->nodes[i].op;
    const char *name = cot__op_of(op)->name;
    int64_t     stride[MAX_ARGS][COT_MAX_NDIM];
    if (needs_tape(op) || cot__in_body(&t->nodes[i]) || overwritten(t, i)) return;
    if (op < OP_structural || !cot__op_of(op)->infer) return;
    if (!open_bench(&w, t, i) || bytes_of(&w.type[0]) > sizeof want || !cot__job_infer(&w.job, &w.type[0])) {
        close_bench(&w);
        return;
    }
    void *memory[MAX_ARGS];
    for (int k = 0; k < w.job.n; k++) {
        cot__view *v = &w.x[k], from = *v;
        cot__strides(v->ndim, v->shape, stride[k]);
        for (int a = 0; a < v->ndim; a++) stride[k][a] *= 2;
        v->stride = stride[k];
        v->data = memory[k] = malloc((size_t)(2 * cot__view_size(v) * cot__dtype_size(v->dtype)) + 8);
        w.job.backend->copy(v, &from);
    }
    cot__view z = cot__look(t, i);
    cot__read_view(t, name, &z, z.dtype, want, cot__view_size(&z));
    bool legal = run_bench(&w, got);
    TEST_CHECK(legal && memcmp(want, got, bytes_of(&w.type[0])) == 0, "%s: %s (%%%u) has other bits of spread operands",
               sample, name, i);
    for (int k = 0; k < w.job.n; k++) free(memory[k]);
    close_bench(&w);
}

static cot_var loss(cot_var y) { return cot_sum(cot_mul(y, cot_add(cot_mul(y, 0.5), 1.0)), COT_ALL); }

static void leaves_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) {
        double *data = (double *)(uintptr_t)f->in[k].data;
        char    raw[TEST_MAX_SIZE * sizeof(double)];
        cot_var cast = cot_cast(cot_data(t, COT_F64, f->in[k].shape, data), dtype);
        cot__view v = cot__look(t, cot__index(cast));
        cot__read_view(t, "test", &v, dtype, raw, cot__view_size(&v));
        xs[k] = cot_tensor(t, dtype, f->in[k].shape, raw);
    }
}

static void each_node(void (*compare)(cot_tape *t, uint32_t node, const char *sample)) {
    static const cot_dtype dtypes[] = {COT_F64, COT_F32, COT_BF16};
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int d = 0; d < TEST_COUNT(dtypes); d++) {
            test_function f = function_of(&samples[i], i, 0);
            cot_tape     *t = cot_tape_create(NULL);
            cot_var       xs[TEST_MAX_INPUTS], grads[TEST_MAX_INPUTS];
            leaves_of(t, &f, dtypes[d], xs);
            cot_var y = loss(f.f(f.n, xs, f.user));
            if (cot_tape_status(t) == COT_OK) cot_grad_of(y, f.n, xs, grads);
            for (uint32_t k = 0; k < t->count; k++) compare(t, k, f.name);
            cot_tape_destroy(t);
        }
}

static void every_node_runs_without_a_tape(void **state) {
    (void)state;
    each_node(compare_node);
    for (int op = OP_structural; op < OP_count; op++)
        TEST_CHECK(ran[op] || needs_tape(op) || !cot__op_of(op)->infer || cot__op_of(op)->planned,
                   "%s never ran: no sample of tests/samples records it", cot__op_of(op)->name);
    test_verdict();
}

static void it_does_not_matter_where_the_operands_lie(void **state) {
    (void)state;
    each_node(compare_spread);
    test_verdict();
}

/* ---- the records ----------------------------------------------------------------------------- */

static void records_bring_what_runs_them(void **state) {
    (void)state;
    for (int op = OP_structural; op < OP_count; op++) {
        const cot__op *o = cot__op_of(op);
        if (o->kind == KIND_SOURCE || o->kind == KIND_PICK) continue;
        if (o->needs_tape) {
            TEST_CHECK(o->apply && o->needs_tape[0] && !o->infer && !o->run,
                       "%s needs a tape: it says why and brings apply", o->name);
            continue;
        }
        bool runs = o->open ? o->go && o->close && o->plain && o->apply : o->run || o->view;
        TEST_CHECK(o->infer && runs, "%s brings no %s", o->name, o->infer ? "run" : "infer");
    }
    test_verdict();
}

/* A number that is no dtype is as far from the table of dtypes as it can be. */
static void ask_for_no_dtype(cot_tape *t, uint32_t i, const char *sample) {
    workbench w;
    int       op = t->nodes[i].op;
    if (op < OP_structural || !(cot__op_of(op)->asks & COT__ASKS_DTYPE)) return;
    if (open_bench(&w, t, i)) {
        w.type[0].dtype = (cot_dtype)INT32_MAX;
        bool known = cot__job_infer(&w.job, &w.type[0]);
        TEST_CHECK(!known || (unsigned)w.type[0].dtype < COT_DTYPE_COUNT, "%s: %s has no dtype", sample, w.caller.name);
    }
    close_bench(&w);
}

static void what_is_no_dtype_is_refused(void **state) {
    (void)state;
    each_node(ask_for_no_dtype);
    test_verdict();
}

/* ---- workspaces on a tape -------------------------------------------------------------------- */

static void a_workspace_that_no_memory_holds_is_an_error(void **state) {
    cot_tape *t = cot_tape_create(NULL);
    (void)state;
    assert_null(cot__workspace_open(t, "sort", -1));
    assert_string_equal(cot_tape_message(t), "[sort] the workspace would be larger than any memory");
    cot_tape_destroy(t);
}

/* Views of one element, repeated as often as a shape can say, that a kernel wants side by side. */
static void a_workspace_beyond_all_sizes_is_told(void **state) {
    static const int64_t huge[2] = {1, COT__SIZE_MOST / 16}, once[2] = {0, 0};
    workbench            w;
    cot_tape            *t = cot_tape_create(NULL);
    cot_var              x = cot_ones(t, COT_F64, COT_SHAPE(1, 2)), v = cot_ones(t, COT_F64, COT_SHAPE(2));
    uint32_t             i = cot__index(cot_layer_norm(x, v, v, 1, 1e-5));
    (void)state;
    assert_true(open_bench(&w, t, i));
    for (int k = 0; k < w.job.n; k++) w.x[k].shape = huge + (k > 0), w.x[k].stride = once;
    assert_true(cot__job_infer(&w.job, &w.type[0]));
    w.job.z = (cot__view){NULL, w.type[0].dtype, w.type[0].shape.ndim, w.type[0].shape.dim, once};
    assert_true(cot__job_workspace(&w.job) < 0);
    close_bench(&w);
    cot_tape_destroy(t);
}

/* ---- hostile jobs ---------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *s) {
    *s += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = *s;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static int64_t odd_number(uint64_t *s) {
    static const int64_t odd[] = {-1, 0, 1, 2, 3, 4, 5, 7, 16, 17, 64, -2, INT32_MAX, INT64_MAX, INT64_MIN, 1 << 20};
    return odd[next_random(s) % TEST_COUNT(odd)];
}

/* Other operands than the node has: of other shapes, dtypes, or fewer. Their memory is theirs
 * alone, so that a sanitizer sees every access outside. */
typedef struct hostile {
    cot_shape shape[MAX_ARGS];
    int64_t   stride[MAX_ARGS][COT_MAX_NDIM];
    void     *data[MAX_ARGS];
} hostile;

static void change_shape(cot_shape *s, uint64_t *seed) {
    int what = (int)(next_random(seed) % 4);
    if (what == 0 && s->ndim > 0) s->ndim--;
    else if (what == 1 && s->ndim < 5) s->dim[s->ndim++] = (int64_t)(next_random(seed) % 4);
    else if (s->ndim > 0) s->dim[next_random(seed) % (uint64_t)s->ndim] = (int64_t)(next_random(seed) % 5);
}

static void spoil_operands(workbench *w, hostile *h, uint64_t *seed) {
    for (int k = 0; k < w->job.n; k++) {
        cot__view *v = &w->x[k], old = *v;
        h->shape[k] = cot__view_extents(v);
        if (next_random(seed) % 3 == 0) change_shape(&h->shape[k], seed);
        if (next_random(seed) % 6 == 0) v->dtype = (cot_dtype)(next_random(seed) % COT_DTYPE_COUNT);
        v->ndim = h->shape[k].ndim;
        v->shape = h->shape[k].dim;
        v->stride = h->stride[k];
        cot__strides(v->ndim, v->shape, h->stride[k]);
        size_t  bytes = (size_t)(cot__view_size(v) * cot__dtype_size(v->dtype));
        int64_t size = cot__view_size(&old), used = cot__view_size(v);
        v->data = h->data[k] = malloc(bytes + 1);
        memset(v->data, 0, bytes + 1);
        /* values as they were, as far as they reach */
        for (int64_t i = 0; i < used && size; i++) {
            double x;
            w->job.backend->read(&old, i % size, 1, COT_F64, &x);
            w->job.backend->write(v, i, 1, COT_F64, &x);
        }
    }
    if (w->job.n > 0 && next_random(seed) % 16 == 0) w->job.n--;
}

static void spoil_attributes(cot__attr *to, const cot__attr *from, uint64_t *seed) {
    memcpy(to, from, sizeof *from + from->nints * sizeof from->ints[0]);
    if (next_random(seed) % 3 && to->nints) to->ints[next_random(seed) % to->nints] = odd_number(seed);
    if (next_random(seed) % 16 == 0 && to->nints) to->nints--;
    if (next_random(seed) % 16 == 0) to->number = (double)odd_number(seed);
}

/* Would an executor have room for it? A padding may be as large as the public functions allow. */
static bool has_room(const workbench *w, size_t most) {
    int64_t  rows[COT_MAX_NDIM];
    cot__job j = w->job;
    j.z = (cot__view){NULL, w->type[0].dtype, w->type[0].shape.ndim, w->type[0].shape.dim, rows};
    cot__strides(j.z.ndim, j.z.shape, rows);
    int64_t need = bytes_of(&w->type[0]) <= most ? cot__job_workspace(&j) : -1;
    return need >= 0 && need < 1 << 24;
}

static void try_hostile(cot_tape *t, uint32_t i, uint64_t seed) {
    static char bits[1 << 20];
    static union { cot__attr attr; char room[4096]; } changed;
    workbench   w;
    hostile     h = {0};
    if (!open_bench(&w, t, i) || w.job.numbers) {
        close_bench(&w);
        return;
    }
    int n = w.job.n;
    spoil_operands(&w, &h, &seed);
    if (w.job.attr && sizeof(cot__attr) + w.job.attr->nints * 8 < sizeof changed) {
        spoil_attributes(&changed.attr, w.job.attr, &seed);
        w.job.attr = &changed.attr;
    }
    if (next_random(&seed) % 4 == 0) change_shape(&w.type[0].shape, &seed);
    if (next_random(&seed) % 8 == 0) w.type[0].dtype = (cot_dtype)(next_random(&seed) % 9);
    bool accepted = cot__job_infer(&w.job, &w.type[0]);
    TEST_CHECK(accepted == (w.said.errors == 0), "%s: infer is %s, with %d errors", w.caller.name,
               accepted ? "content" : "not content", w.said.errors);
    if (accepted && has_room(&w, sizeof bits)) {
        bool legal = run_bench(&w, bits);
        TEST_CHECK(legal == (w.said.errors == 0), "%s: check is %s, with %d errors", w.caller.name,
                   legal ? "content" : "not content", w.said.errors);
    }
    for (int k = 0; k < n; k++) free(h.data[k]);
    close_bench(&w);
}

static void hostile_jobs_are_refused_or_stay_in_their_memory(void **state) {
    enum { TRIES = 40 };
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS], grads[TEST_MAX_INPUTS];
        leaves_of(t, &f, COT_F64, xs);
        cot_var y = loss(f.f(f.n, xs, f.user));
        if (cot_tape_status(t) == COT_OK) cot_grad_of(y, f.n, xs, grads);
        for (uint32_t k = 0; k < t->count; k++) {
            int op = t->nodes[k].op;
            if (needs_tape(op) || cot__in_body(&t->nodes[k])) continue;
            if (op >= OP_structural && !cot__op_of(op)->infer) continue;
            for (uint64_t s = 0; s < TRIES; s++) try_hostile(t, k, ((uint64_t)i << 40) + ((uint64_t)k << 16) + s);
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_bring_what_runs_them),
        cmocka_unit_test(what_is_no_dtype_is_refused),
        cmocka_unit_test(every_node_runs_without_a_tape),
        cmocka_unit_test(a_workspace_that_no_memory_holds_is_an_error),
        cmocka_unit_test(a_workspace_beyond_all_sizes_is_told),
        cmocka_unit_test(it_does_not_matter_where_the_operands_lie),
        cmocka_unit_test(hostile_jobs_are_refused_or_stay_in_their_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
