/* called.c: see called.h. */
#include "diff/implicit/called.h"
#include "backend/backend.h"
#include "base/sizes.h"
#include "diff/loops/loop_job.h"

#include <string.h>

enum { ALIGN = 64 };

/* ---- types ----------------------------------------------------------------------------------- */

static bool is_alike(const cot__view *a, const cot__view *b) {
    bool same = a->dtype == b->dtype && a->ndim == b->ndim;
    for (int k = 0; same && k < a->ndim; k++) same = a->shape[k] == b->shape[k];
    return same;
}

bool cot__called_fits(const cot__job *j, const cot__program *body, int given, int outputs) {
    if ((int64_t)body->inputs != (int64_t)j->n - 1 + given)
        return cot__job_illegal(j, "%d operands, where its body takes others", j->n);
    if ((int64_t)body->outputs != outputs)
        return cot__job_illegal(j, "its body gives %u results, where %d belong", body->outputs, outputs);
    for (int k = 0; k < (int)body->inputs; k++) {
        cot__view want = cot__value_view(body, body->input[k]);
        if (!is_alike(&want, &j->x[k < given ? 0 : 1 + k - given]))
            return cot__job_illegal(j, "input %d of its body has another type", k);
    }
    cot__view y = cot__value_view(body, body->output[0]);
    return is_alike(&y, &j->x[0]) || cot__job_illegal(j, "its body gives another type than it takes");
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t given_bytes(const cot__program *body, int k) {
    cot__view v = cot__value_view(body, body->input[k]);
    int64_t   bytes = cot__view_size(&v) * cot__dtype_size(v.dtype);
    return bytes > INT64_MAX - ALIGN ? -1 : (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

int64_t cot__called_bytes(const cot__program *body, int given) {
    int64_t bytes = ALIGN;
    for (int k = 0; k < given; k++) {
        int64_t one = given_bytes(body, k);
        if (one < 0 || one > INT64_MAX / 4 - bytes) return -1;
        bytes += one;
    }
    return bytes;
}

static size_t list_bytes(const cot__program *body) {
    return ((size_t)body->inputs + 1) * (sizeof(cot__view) + sizeof(void *));
}

bool cot__called_open(cot__called *c, const cot__job *j, const cot__program *body, int given,
                      const cot_allocator *al) {
    *c = (cot__called){.body = body, .given = given, .al = *al};
    c->in = cot__alloc(al, list_bytes(body));
    if (!c->in) return cot__refuse(j->caller, COT_MEMORY, "out of memory: a list of %u values", body->inputs);
    cot__view *views = (cot__view *)(void *)(c->in + body->inputs + 1);
    for (int k = 0; k < (int)body->inputs; k++)
        views[k] = k < given ? cot__value_view(body, body->input[k]) : j->x[1 + k - given];
    c->run = cot__loop_open_run(j, body, views, al);
    return c->run;
}

void cot__called_close(cot__called *c) {
    cot__run_destroy(c->run);
    if (c->in) cot__free(&c->al, c->in, list_bytes(c->body));
}

/* ---- calling --------------------------------------------------------------------------------- */

char *cot__called_begin(cot__called *c, const cot__job *j, char *memory) {
    memory = (char *)(((uintptr_t)memory + ALIGN - 1) & ~(uintptr_t)(ALIGN - 1));
    for (int k = 0; k < (int)c->body->inputs; k++) {
        c->in[k] = k < c->given ? memory : j->x[1 + k - c->given].data;
        if (k < c->given) memory += given_bytes(c->body, k);
    }
    return memory;
}

void cot__called_give(cot__called *c, const cot__job *j, int k, const void *elements) {
    cot__view to = cot__value_view(c->body, c->body->input[k]), host = to;
    to.data = (void *)(uintptr_t)c->in[k];
    host.data = (void *)(uintptr_t)elements;
    j->backend->copy_in(&to, &host);
}

bool cot__called_go(cot__called *c, const cot__caller *caller) {
    char text[COT__PLACED_TEXT];
    if (cot__run_go(c->run, c->in, NULL)) return true;
    snprintf(text, sizeof text, "%s", cot__run_message(c->run));
    cot__add_place(text, "the body of [%s]", caller->name);
    caller->fail(caller, cot__run_status(c->run), text);
    return false;
}

const char *cot__called_note(const cot__called *c) { return cot__run_note(c->run); }

cot__view cot__called_output(const cot__called *c, uint32_t k) { return cot__run_output(c->run, k); }

void cot__called_read(const cot__called *c, const cot__job *j, uint32_t k, double *to) {
    cot__view v = cot__run_output(c->run, k);
    cot__fetch_f64(j, &v, to);
}

/* ---- numbers --------------------------------------------------------------------------------- */

void cot__fetch_f64(const cot__job *j, const cot__view *v, double *to) {
    int64_t stride[COT_MAX_NDIM];
    cot__strides(v->ndim, v->shape, stride);
    j->backend->copy_out(&(cot__view){to, COT_F64, v->ndim, v->shape, stride}, v);
}

void cot__round_all(void *to, cot_dtype dtype, const double *from, int64_t n) {
    for (int64_t k = 0; k < n; k++) cot__store_f64((char *)to + k * cot__dtype_size(dtype), dtype, from[k]);
}
