/* fold_made.c: the reduction of an array that is not written (backend/recipe.h).
 *
 * Programs alone have it: the pass `remake` puts it in the place of a reduction of products of
 * columns and rows, which are many times what they are made from. Its operands are the leaves of
 * the recipe; the attributes tell the rest of it. Nothing records it, so it has no derivative; a
 * file that holds it is refused. */
#include "rules/structural_ids.h"
#include "ops/structural.h"
#include "program/made_form.h"

#include <string.h>

/* ---- the record ------------------------------------------------------------------------------ */

/* Does operand k repeat to the shape that is made? */
static bool repeats(const cot__job *j, const cot__made_form *p, int k) {
    const cot__view *x = &j->x[k];
    bool             well = x->ndim == 0 || x->ndim == p->made.ndim;
    for (int i = 0; well && i < x->ndim; i++) well = x->shape[i] == 1 || x->shape[i] == p->made.dim[i];
    return well;
}

/* Are the arguments of step s those that its operation takes, made before it? */
static bool is_step(const cot__made_form *p, int s, int leaves) {
    const int64_t *at = p->step + (ptrdiff_t)4 * s;
    bool           product = at[0] == COT__RECIPE_PRODUCT;
    if (!product && (at[0] < 0 || at[0] >= OP_structural || !cot__recipe_may_hold((int)at[0]))) return false;
    int arity = product ? 2 : cot__elementwise_arity((int)at[0]);
    for (int i = 0; i < 3; i++) {
        bool well = i >= arity            ? at[1 + i] == COT__RECIPE_NONE
                    : product || at[1 + i] < 0 ? at[1 + i] < 0 && ~at[1 + i] < leaves
                                          : at[1 + i] < s;
        if (!well) return false;
    }
    return true;
}

static bool fold_made_infer(const cot__job *j, cot__type *z) {
    cot__made_form p;
    if (!cot__job_has(j, 1, COT__RECIPE_LEAVES, 1) || !cot__job_float(j, 0)) return false;
    if (j->x[0].dtype != COT_F64 && j->x[0].dtype != COT_F32) return cot__job_illegal(j, "16 bits");
    if (!cot__made_form_of(j->attr, &p)) return cot__job_illegal(j, "the attributes hold no recipe");
    int leaves = j->n + p.numbers;
    if (leaves > COT__RECIPE_LEAVES) return cot__job_illegal(j, "too many leaves");
    if (!cot__legal_shape(j->caller, &p.made) || !cot__legal_shape(j->caller, &p.reduced)) return false;
    int64_t size = cot__count(p.made.ndim, p.made.dim);
    if (size == 0 || size != cot__count(p.reduced.ndim, p.reduced.dim))
        return cot__job_illegal(j, "no elements, or two numbers of them");
    for (int k = 0; k < j->n; k++) {
        if (!cot__job_dtype(j, k, j->x[0].dtype)) return false;
        if (!repeats(j, &p, k)) return cot__job_illegal(j, "operand %d has another shape", k);
    }
    for (int s = 0; s < p.steps; s++)
        if (!is_step(&p, s, leaves)) return cot__job_illegal(j, "step %d", s);
    if (p.step[0] != COT__RECIPE_PRODUCT) return cot__job_illegal(j, "it does not begin with a product");
    z->dtype = j->x[0].dtype;
    cot__reduced_shape(&z->shape, p.reduced.ndim, p.reduced.dim, (uint32_t)p.mask, p.keep);
    return true;
}

/* The recipe, and the array that it makes, whose first element would lie at `data`. */
static void describe(const cot__job *j, const cot__made_form *p, void *data, cot__recipe *r) {
    *r = (cot__recipe){.dtype = j->x[0].dtype, .ndim = p->made.ndim, .data = data};
    memcpy(r->shape, p->made.dim, (size_t)p->made.ndim * sizeof *r->shape);
    r->leaves = j->n + p->numbers; /* as they stand: steps call them by their places */
    for (int k = 0; k < j->n; k++) {
        r->leaf[k].data = j->x[k].data;
        for (int i = 0; i < j->x[k].ndim; i++)
            r->leaf[k].stride[i] = j->x[k].shape[i] == 1 ? 0 : j->x[k].stride[i];
    }
    for (int k = 0; k < p->numbers; k++) memcpy(&r->leaf[j->n + k].number, p->number + k, sizeof *p->number);
    r->steps = p->steps;
    for (int s = 0; s < p->steps; s++) {
        r->step[s].op = (int)p->step[4 * s];
        for (int i = 0; i < 3; i++) r->step[s].arg[i] = (int8_t)p->step[4 * s + 1 + i];
    }
    cot__recipe_close(r);
}

typedef struct fold { cot__made_form p; int64_t stride[2][COT_MAX_NDIM]; cot_shape kept; cot__view x, z; } fold;

static void see(const cot__job *j, void *data, fold *f) {
    cot__made_form_of(j->attr, &f->p); /* infer has looked */
    const cot_shape *x = &f->p.reduced;
    cot__strides(x->ndim, x->dim, f->stride[0]);
    cot__reduced_shape(&f->kept, x->ndim, x->dim, (uint32_t)f->p.mask, true);
    cot__strides(f->kept.ndim, f->kept.dim, f->stride[1]);
    f->x = (cot__view){data, j->x[0].dtype, x->ndim, x->dim, f->stride[0]};
    f->z = (cot__view){j->z.data, j->x[0].dtype, f->kept.ndim, f->kept.dim, f->stride[1]};
}

/* Room for the array, where it is better written first. */
static int64_t fold_made_workspace(const cot__job *j) {
    fold f;
    see(j, NULL, &f);
    if (j->backend->reduce_made(f.p.what, &f.x, NULL, (uint32_t)f.p.mask, &f.z)) return 0;
    return cot__view_size(&f.x) * cot__dtype_size(f.x.dtype);
}

static void fold_made_run(const cot__job *j) {
    cot__recipe r;
    fold        f;
    void       *data = j->workspace ? j->workspace : j->z.data;
    see(j, data, &f);
    describe(j, &f.p, data, &r);
    if (j->backend->reduce_made(f.p.what, &f.x, &r, (uint32_t)f.p.mask, &f.z)) return;
    j->backend->make(&r);
    j->backend->reduce(f.p.what, &f.x, (uint32_t)f.p.mask, &f.z);
}

/* Each step makes each element, which is folded then. */
static double fold_made_cost(const cot__attr *a) {
    cot__made_form f;
    if (!cot__made_form_of(a, &f)) return 0;
    return (double)cot__count(f.made.ndim, f.made.dim) * (f.steps + 1);
}

const cot__op cot__op_fold_made = {.name      = "fold_made",
                                   .attrs     = "recipe:l",
                                   .kind      = KIND_NONE,
                                   .infer     = fold_made_infer,
                                   .workspace = fold_made_workspace,
                                   .run       = fold_made_run,
                                   .planned   = true,
                                   .formula   = "z = the reduction of an array that is made of x0, x1, … on the way",
                                   .cost      = {.planned = fold_made_cost},
                                   .operands  = "*"};
