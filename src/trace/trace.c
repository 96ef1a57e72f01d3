/* trace.c: makes a trace in two passes over the tape. The pass down finds what y depends on and
 * where adjoints flow; the pass up lists the nodes. sweep.c adds the steps of the sweep. */
#include "trace/build.h"

#include "backend/elements.h"
#include "tape/flow.h"
#include "tape/show.h"
#include "trace/cost/cost_rules.h"

#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

enum { CHUNK = 1 << 16, HEADER = (sizeof(cot__trace_chunk) + 15) / 16 * 16 };

void *cot__trace_memory(cot__trace_build *b, size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (!b->chunks || b->chunks->size - b->chunks->used < bytes) {
        size_t            size = HEADER + (bytes > CHUNK - HEADER ? bytes : CHUNK - HEADER);
        cot__trace_chunk *fresh = size < bytes ? NULL : cot__alloc(&b->trace.t->al, size);
        if (!fresh) {
            b->failed = true;
            return NULL;
        }
        *fresh = (cot__trace_chunk){b->chunks, size, HEADER};
        b->chunks = fresh;
    }
    void *p = (char *)b->chunks + b->chunks->used;
    b->chunks->used += bytes;
    return p;
}

typedef struct cot__trace_piece {
    struct cot__trace_piece *prev;
    void                    *memory;
    size_t                   bytes;
} device_piece;

static void *device_memory(cot__trace_build *b, size_t bytes) {
    device_piece *p = cot__trace_memory(b, sizeof *p);
    void         *there = p ? cot__device_alloc(b->trace.t, bytes) : NULL;
    if (!there) {
        b->failed = true;
        return NULL;
    }
    *p = (device_piece){b->device, there, bytes};
    b->device = p;
    return there;
}

static cot__view array_at(cot__trace_build *b, void *data, const cot__view *like, cot_dtype dtype) {
    int64_t *stride = cot__trace_memory(b, (size_t)like->ndim * sizeof *stride);
    if (!stride || !data) return (cot__view){0};
    cot__strides(like->ndim, like->shape, stride);
    return (cot__view){data, dtype, like->ndim, like->shape, stride};
}

static size_t bytes_of(const cot__view *like, cot_dtype dtype) {
    size_t bytes = (size_t)(cot__count(like->ndim, like->shape) * cot__dtype_size(dtype));
    return bytes ? bytes : 1;
}

cot__view cot__trace_array(cot__trace_build *b, const cot__view *like, cot_dtype dtype, bool zeros) {
    const cot__backend *on = b->trace.t->backend;
    size_t              bytes = bytes_of(like, dtype);
    void               *data = cot__on_host(on) ? cot__trace_memory(b, bytes) : device_memory(b, bytes);
    cot__view           v = array_at(b, data, like, dtype);
    if (zeros && v.data) on->fill(&v, 0);
    return v;
}

cot__view cot__trace_shown(cot__trace_build *b, const cot__view *v) {
    if (cot__on_host(b->trace.t->backend)) return *v;
    cot__view host = array_at(b, cot__trace_memory(b, bytes_of(v, v->dtype)), v, v->dtype);
    if (host.data) b->trace.t->backend->copy_out(&host, v);
    return host;
}

void cot__trace_free(cot__trace *tr) {
    if (!tr) return;
    cot__trace_build *b = (cot__trace_build *)(void *)tr;
    cot_tape         *t = tr->t;
    if (b->watching) cot__kept_adjoints_close(&b->watch);
    if (b->calling) cot__calling_close(t);
    for (device_piece *p = b->device; p; p = p->prev) cot__device_free(t, p->memory, p->bytes);
    for (cot__trace_chunk *c = b->chunks; c;) {
        cot__trace_chunk *prev = c->prev;
        cot__free(&t->al, c, c->size);
        c = prev;
    }
    cot__list_free(t, b->marks, b->marks ? (size_t)b->top + 1 : 0);
    cot__free(&t->al, b, sizeof *b);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static bool mark(cot__trace_build *b, uint32_t y, const cot__trace_request *request) {
    cot_tape *t = b->trace.t;
    for (int k = 0; k < request->input_count; k++) {
        uint32_t i = cot__index(request->inputs[k].value);
        if (i > b->top) b->top = i;
    }
    cot__flow w;
    if (!cot__flow_open(&w, t, 0, b->top + 1)) return false;
    b->marks = w.mark;
    b->marks[y] = COT__TRACE_SHOWN | (t->nodes[y].flags & COT__ACTIVE ? COT__TRACE_FLOWS : 0);
    cot__flow_down(&w, COT__TRACE_SHOWN, COT__EDGES_ALL);
    cot__flow_down(&w, COT__TRACE_FLOWS, COT__EDGES_SWEPT);
    for (int k = 0; k < request->input_count; k++) b->marks[cot__index(request->inputs[k].value)] |= COT__TRACE_SHOWN;
    return true;
}

/* A 0-d value may lie in its node, and nodes move when the tape grows. So such values are copied.
 * A value that was overwritten is not read. */
static cot__view value_of(cot__trace_build *b, uint32_t id) {
    cot__view v = cot__look(b->trace.t, id);
    if (cot__is_stale(&b->trace.t->nodes[id])) return v;
    if (cot__is_tensor(&b->trace.t->nodes[id])) return cot__trace_shown(b, &v);
    void *copy = cot__trace_memory(b, sizeof(cot__value));
    if (copy) memcpy(copy, v.data, (size_t)cot__dtype_size(v.dtype));
    v.data = copy;
    return v;
}

static void list_node(cot__trace_build *b, uint32_t id, const cot__trace_request *request, cot__trace_node *out) {
    cot_tape        *t = b->trace.t;
    const cot__node *n = &t->nodes[id];
    int              nargs = cot__nargs(n);
    uint32_t        *args = cot__trace_memory(b, (size_t)nargs * sizeof *args);
    *out = (cot__trace_node){.id = id, .op = n->op, .nargs = nargs, .args = args, .span = {-1, -1}};
    for (int k = 0; k < nargs && args; k++)
        if ((args[k] = cot__arg(n, k)) == COT__NONE) out->number = n->extra.number;
    out->value = value_of(b, id);
    out->active = (n->flags & COT__ACTIVE) != 0;
    out->overwritten = cot__is_stale(n);
    out->saves = cot__values_read(t, id);
    out->name = cot__name_of(t, id);
    char *label = cot__trace_memory(b, COT__CALLED_TEXT);
    if (label) out->label = cot__called(t, id, label);
    int64_t at = (int64_t)id - request->span_first;
    if (request->spans && at >= 0 && at < request->span_count && request->spans[at].stop > request->spans[at].start) {
        out->span[0] = request->spans[at].start;
        out->span[1] = request->spans[at].stop;
    }
    cot__cost_of_node(t, id, &out->flops, &out->bytes);
}

static bool list_nodes(cot__trace_build *b, uint32_t y, const cot__trace_request *request) {
    cot__trace *tr = &b->trace;
    for (uint32_t i = 0; i <= b->top; i++) tr->node_count += b->marks[i] != 0;
    if (!(tr->nodes = cot__trace_memory(b, (size_t)tr->node_count * sizeof *tr->nodes))) return false;
    int64_t at = 0;
    for (uint32_t i = 0; i <= b->top && !b->failed; i++) {
        if (!b->marks[i]) continue;
        if (i == y) tr->output = (uint32_t)at;
        list_node(b, i, request, &tr->nodes[at++]);
    }
    return !b->failed;
}

/* ---- the request ----------------------------------------------------------------------------- */

static bool check_var(const cot_tape *t, cot_var x, const char *what, char why[512]) {
    if (!cot__is_number(x) && cot_is_valid(x) && x.tape == t) return true;
    snprintf(why, 512, "[trace] %s is not a value on the tape", what);
    return false;
}

static bool check_request(const cot__trace_request *q, char why[512]) {
    cot_tape *t = cot__is_number(q->y) ? NULL : q->y.tape;
    if (t && t->status != COT_OK) {
        memcpy(why, t->errors.message, sizeof t->errors.message);
        return false;
    }
    if (!check_var(t, q->y, "y", why)) return false;
    for (int k = 0; k < q->input_count; k++)
        if (!check_var(t, q->inputs[k].value, "an input", why)) return false;
    if (!q->seed || cot__is_number(*q->seed)) return true;
    if (!check_var(t, *q->seed, "the seed", why)) return false;
    cot_shape seed = cot_shape_of(*q->seed), y = cot_shape_of(q->y);
    if (seed.ndim == 0 || (seed.ndim == y.ndim && memcmp(seed.dim, y.dim, (size_t)y.ndim * sizeof *y.dim) == 0))
        return true;
    char a[COT__SHAPE_TEXT], c[COT__SHAPE_TEXT];
    snprintf(why, 512, "[trace] the seed has shape %s and y %s; they must be equal, or the seed one number",
             cot__shape_text(seed.ndim, seed.dim, a),
             cot__shape_text(y.ndim, y.dim, c));
    return false;
}

/* The seed in the dtype of y's adjoint, as the sweep will have it. A 0-d seed stands for all
 * elements. */
static bool set_seed(cot__trace_build *b, uint32_t y, const cot_var *seed) {
    const cot__backend *on = b->trace.t->backend;
    double              number = !seed ? 1 : cot__is_number(*seed) ? cot__number_value(*seed) : 0;
    bool                given = seed && !cot__is_number(*seed);
    cot__view from = given ? cot__look(b->trace.t, cot__index(*seed)) : cot__number_view(&number, COT_F64);
    cot_dtype dtype = cot__dtype_at(&b->trace.t->nodes[y]);
    b->seed = cot__trace_array(b, &from, cot__dtype_is_float(dtype) ? dtype : COT_F64, false);
    if (!b->seed.data) return false;
    if (given) on->copy(&b->seed, &from);
    else cot__set_f64(on, &b->seed, number);
    b->trace.seed = cot__trace_shown(b, &b->seed);
    return b->trace.seed.data != NULL;
}

static bool set_cost(cot__trace_build *b, const cot__trace_request *q) {
    char     why[512];
    cot_var *wanted = cot__trace_memory(b, (size_t)(q->input_count + 1) * sizeof *wanted);
    int      n = 0;
    for (int k = 0; k < q->input_count && wanted; k++)
        if (q->inputs[k].wanted) wanted[n++] = q->inputs[k].value;
    return wanted && cot__cost_of(&b->trace.cost, q->y, n, wanted, why);
}

cot__trace *cot__trace_make(const cot__trace_request *q, char why[512]) {
    why[0] = 0;
    if (!check_request(q, why)) return NULL;
    cot_tape         *t = q->y.tape;
    uint32_t          y = cot__index(q->y);
    cot__trace_build *b = cot__alloc(&t->al, sizeof *b);
    if (b) {
        memset(b, 0, sizeof *b);
        b->trace.t = t;
        b->trace.expr = q->expr;
        b->top = y;
        b->calling = true;
        cot__calling_open(t);
        if (mark(b, y, q) && list_nodes(b, y, q) && set_seed(b, y, q->seed) && cot__trace_sweep(b) && set_cost(b, q))
            return &b->trace;
        cot__trace_free(&b->trace);
    }
    snprintf(why, 512, "[trace] out of memory: the trace of a tape of %lld nodes", (long long)t->count);
    return NULL;
}

/* ---- looking up ------------------------------------------------------------------------------ */

int64_t cot__trace_find(const cot__trace *tr, uint32_t id) {
    int64_t lo = 0, hi = tr->node_count;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (tr->nodes[mid].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < tr->node_count && tr->nodes[lo].id == id ? lo : -1;
}

bool cot__trace_adjoint(const cot__trace *tr, int64_t node, cot__view *g) {
    int64_t lo = 0, hi = tr->step_count; /* steps are in descending order of nodes */
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if ((int64_t)tr->steps[mid].node > node)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == tr->step_count || (int64_t)tr->steps[lo].node != node) return false;
    *g = tr->steps[lo].adjoint;
    return true;
}
