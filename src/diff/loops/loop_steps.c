/* loop_steps.c: see loop_steps.h. */
#include "diff/loops/loop_steps.h"

#include "backend/elements.h"

#include <string.h>

enum { ALIGN = 64, WORD = 8 };
static const int64_t no_axes[1] = {0};

/* ---- lists ----------------------------------------------------------------------------------- */

static int most_inputs(const cot__form *f) {
    int a = cot__form_inputs(f, 0), b = cot__form_inputs(f, 1);
    return a > b ? a : b;
}

size_t cot__steps_lists(const cot__form *f) {
    size_t moving = (size_t)most_inputs(f) + (size_t)cot__form_results(f), tested = (size_t)cot__form_tested(f);
    return (moving + tested) * sizeof(void *) + moving * sizeof(int64_t) + ((size_t)f->carry + 1) * sizeof(size_t);
}

void cot__steps_lay(cot__steps *s, void *lists) {
    s->in = lists;
    s->tested = s->in + most_inputs(&s->f);
    s->out = (void **)(uintptr_t)(s->tested + cot__form_tested(&s->f));
    s->in_step = (int64_t *)(void *)(s->out + cot__form_results(&s->f));
    s->out_step = s->in_step + most_inputs(&s->f);
    s->offset = (size_t *)(void *)(s->out_step + cot__form_results(&s->f));
}

/* Small values lie close together: a state of some scalars fills few lines of the cache. */
bool cot__steps_measure(cot__steps *s, const cot__view *x) {
    s->bytes = 0;
    for (int k = 0; k < s->f.carry; k++) {
        const cot__view *v = &x[cot__form_first_carry(&s->f) + k];
        size_t           one = (size_t)(cot__view_size(v) * cot__dtype_size(v->dtype));
        size_t           align = one < ALIGN ? WORD : ALIGN;
        s->offset[k] = (s->bytes + align - 1) / align * align;
        one = (one + WORD - 1) / WORD * WORD;
        if (!cot__size_bytes(cot__size_add((int64_t)s->offset[k], (int64_t)one), 1, &s->bytes)) return false;
    }
    /* states side by side are aligned like the first */
    size_t align = s->bytes < ALIGN ? WORD : ALIGN;
    s->bytes = (s->bytes + align - 1) / align * align;
    return true;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static cot__view carried(const cot__steps *s, const cot__view *x, int k) {
    cot__view v = x[cot__form_first_carry(&s->f) + k];
    return (cot__view){s->state ? s->state + s->offset[k] : NULL, v.dtype, v.ndim, v.shape, NULL};
}

cot__view cot__steps_input(const cot__steps *s, const cot__view *x, int k) {
    const cot__form *f = &s->f;
    if (k < f->consts) return x[cot__form_first_const(f) + k];
    k -= f->consts;
    if (f->counts && k-- == 0) return (cot__view){s->count, COT_I64, 0, no_axes, no_axes};
    if (k < f->carry) return carried(s, x, k);
    k -= f->carry;
    if (k >= f->nxs) return x[cot__form_first_capture(f) + (s->choice ? f->captures[0] : 0) + k - f->nxs];
    cot__view v = x[cot__form_first_xs(f) + k];
    return (cot__view){v.data, v.dtype, v.ndim - 1, v.shape + 1, v.stride + 1};
}

cot__view cot__steps_tested(const cot__steps *s, const cot__view *x, int k) {
    return k < s->f.carry ? carried(s, x, k) : x[cot__form_first_tested(&s->f) + k - s->f.carry];
}

void cot__steps_bind(cot__steps *s, const cot__view *x) {
    for (int k = 0; k < cot__form_inputs(&s->f, s->choice); k++) s->in[k] = cot__steps_input(s, x, k).data;
    for (int k = 0; s->f.tests && k < cot__form_tested(&s->f); k++) s->tested[k] = cot__steps_tested(s, x, k).data;
}

void cot__steps_first(cot__steps *s, const cot__view *x) {
    int64_t stride[COT_MAX_NDIM];
    for (int k = 0; k < s->f.carry; k++) {
        cot__view to = carried(s, x, k);
        cot__strides(to.ndim, to.shape, stride);
        to.stride = stride;
        s->backend->copy(&to, &x[cot__form_first_carry(&s->f) + k]);
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void set_count(const cot__steps *s, int64_t at) {
    cot__view count = {s->count, COT_I64, 0, no_axes, no_axes};
    if (s->f.counts) cot__set_i64(s->backend, &count, s->f.first + at);
}

bool cot__steps_go(cot__steps *s, const cot__view *x, const cot__view *y, int64_t k, int64_t length) {
    const cot__form *f = &s->f;
    int64_t          at = f->reverse ? length - 1 - k : k;
    const void     **in = s->in + f->consts + f->counts;
    char            *from = s->state;
    set_count(s, at);
    for (int i = 0; i < f->carry; i++) {
        in[i] = from + s->offset[i];
        s->out[i] = s->next + s->offset[i];
    }
    for (int i = 0; i < f->nxs; i++) in[f->carry + i] = cot__slice_at(&x[cot__form_first_xs(f) + i], at);
    for (int i = 0; i < f->nys; i++)
        s->out[f->carry + i] = !y ? NULL : f->once ? y[i].data : cot__slice_at(&y[i], at);
    if (!cot__run_go(s->body, s->in, s->out)) return false;
    s->state = s->next;
    s->next = from;
    return true;
}

bool cot__steps_go_along(cot__steps *s, const cot__view *x, const cot__view *y, int64_t k, int64_t n, int64_t length,
                         size_t apart) {
    const cot__form *f = &s->f;
    int64_t          at = f->reverse ? length - 1 - k : k, way = f->reverse ? -1 : 1, *step = s->in_step + f->consts;
    const void     **in = s->in + f->consts;
    if (f->counts || f->once) return false;
    memset(s->in_step, 0, (size_t)cot__form_inputs(f, s->choice) * sizeof *step);
    for (int i = 0; i < f->carry; i++) {
        in[i] = s->state + s->offset[i];
        s->out[i] = s->state + apart + s->offset[i];
        step[i] = s->out_step[i] = (int64_t)apart;
    }
    for (int i = 0; i < f->nxs; i++) {
        const cot__view *v = &x[cot__form_first_xs(f) + i];
        in[f->carry + i] = cot__slice_at(v, at);
        step[f->carry + i] = way * cot__slice_step(v);
    }
    for (int i = 0; i < f->nys; i++) {
        s->out[f->carry + i] = y ? cot__slice_at(&y[i], at) : NULL;
        s->out_step[f->carry + i] = y ? way * cot__slice_step(&y[i]) : 0;
    }
    if (!cot__run_go_along(s->body, n, s->in, s->in_step, s->out, s->out_step)) return false;
    s->state += (size_t)n * apart;
    return true;
}

bool cot__steps_test(cot__steps *s, bool *go) {
    for (int i = 0; i < s->f.carry; i++) s->tested[i] = s->state + s->offset[i];
    if (!cot__run_go(s->test, s->tested, NULL)) return false;
    cot__view answer = cot__run_output(s->test, 0);
    *go = cot__element_f64(s->backend, &answer, 0) != 0;
    return true;
}
