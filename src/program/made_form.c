/* made_form.c: a recipe as attributes of an operation, and back. */
#include "program/made_form.h"

#include <string.h>

static int64_t *put_shape(int64_t *to, int ndim, const int64_t *shape) {
    *to++ = ndim;
    for (int k = 0; k < ndim; k++) *to++ = shape[k];
    return to;
}

/* The places of leaves once numbers stand behind all others; how many are no numbers. */
static int sort_leaves(const cot__recipe *r, int place[COT__RECIPE_LEAVES]) {
    int arrays = 0, numbers = 0;
    for (int k = 0; k < r->leaves; k++)
        if (r->leaf[k].data) place[k] = arrays++;
    for (int k = 0; k < r->leaves; k++)
        if (!r->leaf[k].data) place[k] = arrays + numbers++;
    return arrays;
}

int cot__made_ints(const cot__made_form *f, const cot__recipe *r, int64_t ints[COT__MADE_INTS]) {
    int64_t *to = ints;
    int      place[COT__RECIPE_LEAVES], arrays = sort_leaves(r, place);
    *to++ = f->what;
    *to++ = f->mask;
    *to++ = f->keep;
    to = put_shape(to, f->reduced.ndim, f->reduced.dim);
    to = put_shape(to, r->ndim, r->shape);
    *to++ = r->leaves - arrays;
    for (int k = 0; k < r->leaves; k++)
        if (!r->leaf[k].data) memcpy(to++, &r->leaf[k].number, sizeof *to);
    for (int k = 0; k < r->steps; k++) {
        *to++ = r->step[k].op;
        for (int i = 0; i < 3; i++) {
            int arg = r->step[k].arg[i];
            *to++ = arg >= 0 || arg == COT__RECIPE_NONE ? arg : ~place[~arg];
        }
    }
    return (int)(to - ints);
}

/* The next of the integers; 0 and a flag where they have ended. */
typedef struct reader { const int64_t *at, *end; bool well; } reader;
static int64_t next(reader *r) {
    r->well &= r->at < r->end;
    return r->well ? *r->at++ : 0;
}

static void read_shape(reader *r, cot_shape *s, int most) {
    int64_t ndim = next(r);
    r->well &= ndim > 0 && ndim <= most;
    s->ndim = r->well ? (int)ndim : 0;
    for (int k = 0; k < s->ndim; k++) s->dim[k] = next(r);
}

bool cot__made_form_of(const cot__attr *a, cot__made_form *f) {
    reader  r = {a->ints, a->ints + a->nints, true};
    int64_t what = next(&r), numbers;
    r.well &= what == COT__SUM || what == COT__MAX || what == COT__MIN || what == COT__NORM2;
    f->what = (cot__reduction)what;
    f->mask = next(&r);
    f->keep = next(&r);
    read_shape(&r, &f->reduced, COT_MAX_NDIM);
    read_shape(&r, &f->made, COT__RECIPE_AXES);
    numbers = next(&r);
    if (!r.well || numbers < 0 || numbers > r.end - r.at || numbers > COT__RECIPE_LEAVES) return false;
    f->numbers = (int)numbers;
    f->number = r.at;
    f->step = r.at + numbers;
    int64_t words = r.end - f->step;
    f->steps = (int)(words / 4);
    return words % 4 == 0 && words > 0 && words <= 4 * COT__RECIPE_STEPS &&
           f->mask >= 1 && f->mask < INT64_C(1) << f->reduced.ndim && (f->keep == 0 || f->keep == 1);
}
