/* remake.c: what is cheaper to compute again than to write is computed where it is reduced.
 *
 * The gradients of every example of a batch are products of a column and a row each: as arrays they
 * are many times what they are made from. Their norms, and their sums once each has been clipped,
 * can do without the arrays. So where all that reads such a product are cheap elementwise
 * operations and reductions of these, each reduction becomes one operation, fold_made, on the
 * factors: it computes the elements in cache and folds them with the bits that it would have had.
 * Then nobody reads the product, and the pass dead drops it.
 *
 * Some sums have kernels that make elements as fast as they could be read: of a product, of its
 * square, of the product times a number for each row, where rows fill whole blocks (0.1 to 0.8 of
 * the time, whatever the size). Others are made step by step, which takes up to some four times as
 * long as writing an array that a cache holds and reading it again in one group; where the array is
 * beyond all caches it took 0.4 to 1.5 of the time, and there it is the memory that counts.
 *
 * On a tape such work waits instead (src/pending/patient.c), with the same recipes, all of them
 * from 1 MiB on: who else will read is not known there. */
#include "program/fusion.h"
#include "program/made_form.h"
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

size_t cot__remake_any_from = (size_t)64 << 20;

/* Of a value of the old program. */
typedef struct seen {
    uint32_t base; /* the value whose elements it has, all of them in their order; itself */
    uint32_t with; /* a value that stays or goes with it, see find_all; itself */
    bool     made; /* it could be made again by whoever reads it */
    bool     fold; /* it is a reduction of such a value */
    bool     refused; /* somebody reads it, or what goes with it, who needs it written */
    size_t   read; /* bytes of memory that are read for it: a view has those of what it views */
    size_t   held; /* bytes that live as long as it does: those of its root, if it is computed */
} seen;

typedef struct search {
    const cot__program      *p;
    const cot__pass_options *o;
    seen                    *of;
} search;

/* ---- values that can be made again ----------------------------------------------------------- */

/* Of matrices, (…, m, 1) and (…, 1, n). */
static bool is_product(const search *s, uint32_t k) {
    const cot__program *p = s->p;
    if (p->operation[k].op != OP_matmul) return false;
    const uint32_t *x = cot__operation_operand(p, k);
    cot__view       a = cot__value_view(p, x[0]), b = cot__value_view(p, x[1]),
                    z = cot__value_view(p, p->operation[k].result);
    if ((z.dtype != COT_F64 && z.dtype != COT_F32) || z.ndim > COT__RECIPE_AXES) return false;
    return a.ndim == z.ndim && b.ndim == z.ndim && a.shape[a.ndim - 1] == 1 && cot__view_size(&z) > 0;
}

/* Is an array of so many bytes worth making again from this value, which must live so long? */
static bool is_small(const search *s, uint32_t v, size_t made) {
    return s->of[v].held <= made && cot__recipe_pays(made, s->of[v].read);
}

static bool is_made_product(const search *s, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    if (!is_product(s, k)) return false;
    size_t made = cot__value_bytes(s->p, s->p->operation[k].result);
    return is_small(s, x[0], made) && is_small(s, x[1], made) &&
           cot__recipe_pays(made, s->of[x[0]].read + s->of[x[1]].read);
}

static bool reads_made(const search *s, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    for (int i = 0; i < cot__operation_operands(s->p, k); i++)
        if (x[i] != COT__NO_VALUE && s->of[s->of[x[i]].base].made) return true;
    return false;
}

/* Is it elementwise, cheap, and one of its operands made so, the others numbers or small? */
static bool extends(const search *s, uint32_t k) {
    const cot__program *p = s->p;
    const uint32_t     *x = cot__operation_operand(p, k);
    if (p->operation[k].op >= OP_structural || !cot__recipe_may_hold(p->operation[k].op) || !reads_made(s, k))
        return false;
    cot__view z = cot__value_view(p, p->operation[k].result);
    size_t    bytes = cot__value_bytes(p, p->operation[k].result);
    for (int i = 0; i < cot__operation_operands(p, k); i++) {
        if (x[i] == COT__NO_VALUE) continue;
        cot__view v = cot__value_view(p, x[i]);
        if (v.dtype != z.dtype || (v.ndim > 0 && v.ndim != z.ndim)) return false;
        if (!s->of[s->of[x[i]].base].made && !is_small(s, x[i], bytes)) return false;
    }
    return true;
}

/* ---- recipes --------------------------------------------------------------------------------- */

/* A value as a leaf, called by its number plus one where a backend has an address. It must have the
 * shape of the recipe, repeat to it, or have no axes. */
static int add_leaf(const search *s, cot__recipe *r, uint32_t v) {
    static const int64_t none[COT__RECIPE_AXES];
    cot__view            x = cot__value_view(s->p, v);
    for (int i = 0; i < x.ndim; i++)
        if (x.ndim != r->ndim || (x.shape[i] != 1 && x.shape[i] != r->shape[i])) return COT__RECIPE_NONE;
    return cot__recipe_leaf(r, (const void *)((uintptr_t)v + 1), 0, none);
}

static int add_number(cot__recipe *r, double number) {
    static const int64_t none[COT__RECIPE_AXES];
    float                f32 = (float)number;
    uint64_t             bits = 0;
    if (r->dtype == COT_F32) memcpy(&bits, &f32, sizeof f32);
    else memcpy(&bits, &number, sizeof number);
    return cot__recipe_leaf(r, NULL, bits, none);
}

/* The value and what it is made of: the number of its step, or COT__RECIPE_NONE: there is no room,
 * or shapes differ. It goes as deep as there are steps at most. */
static int add_value(const search *s, cot__recipe *r, uint32_t v, int depth) {
    const cot__program *p = s->p;
    v = s->of[v].base;
    uint32_t        k = cot__value_maker(p, v);
    const uint32_t *x = cot__operation_operand(p, k);
    int8_t          arg[3] = {COT__RECIPE_NONE, COT__RECIPE_NONE, COT__RECIPE_NONE};
    cot__view       z = cot__value_view(p, v);
    bool            product = p->operation[k].op == OP_matmul;
    if (r->ndim == 0 && product) { /* the first one gives the shape */
        r->ndim = z.ndim;
        memcpy(r->shape, z.shape, (size_t)z.ndim * sizeof *z.shape);
    }
    for (int i = 0; depth > 0 && i < cot__operation_operands(p, k); i++) {
        bool made = !product && x[i] != COT__NO_VALUE && s->of[s->of[x[i]].base].made;
        /* leaves wait until the shape is known */
        if (made && (arg[i] = (int8_t)add_value(s, r, x[i], depth - 1)) == COT__RECIPE_NONE) return COT__RECIPE_NONE;
    }
    bool like = z.ndim == r->ndim && memcmp(z.shape, r->shape, (size_t)z.ndim * sizeof *z.shape) == 0;
    for (int i = 0; depth > 0 && i < cot__operation_operands(p, k); i++) {
        if (arg[i] != COT__RECIPE_NONE) continue;
        bool number = x[i] == COT__NO_VALUE;
        if (!number && !like && cot__value_view(p, x[i]).ndim > 0) return COT__RECIPE_NONE;
        arg[i] = (int8_t)(number ? add_number(r, cot__operation_number(p, k)) : add_leaf(s, r, x[i]));
        if (arg[i] == COT__RECIPE_NONE) return COT__RECIPE_NONE;
    }
    if (depth == 0 || (product && !like)) return COT__RECIPE_NONE;
    return cot__recipe_step(r, product ? COT__RECIPE_PRODUCT : p->operation[k].op, arg);
}

static bool describe(const search *s, uint32_t v, cot__recipe *r) {
    *r = (cot__recipe){.dtype = cot__value_view(s->p, v).dtype};
    return add_value(s, r, v, COT__RECIPE_STEPS) == r->steps - 1 && cot__recipe_close(r);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Its attributes are those of a reduction (ops/array/reduce.c). */
static bool form_of(const search *s, uint32_t k, cot__made_form *f) {
    const cot__program *p = s->p;
    int                 what = cot__fold_reduction(p->operation[k].op);
    if (what < 0 || what == COT__LOGSUMEXP) return false;
    uint32_t  v = cot__operation_operand(p, k)[0];
    cot__view x = cot__value_view(p, v);
    *f = (cot__made_form){.what = (cot__reduction)what, .mask = cot__operation_attr(p, k)->ints[0],
                          .keep = cot__operation_attr(p, k)->ints[1]};
    cot__extents_of(&f->reduced, &x);
    return s->of[s->of[v].base].made && x.dtype == cot__value_view(p, p->operation[k].result).dtype;
}

/* Do the elements of the last axis of a value lie side by side, as far as is known? */
static bool lies_along(const cot__program *p, uint32_t v) {
    for (uint32_t k; (k = cot__maker_of(p, v)) != COT__NO_VALUE; v = cot__operation_operand(p, k)[0]) {
        int op = p->operation[k].op;
        if (op < OP_structural || !cot__op_of(op)->view) return true;
        cot__view z = cot__value_view(p, v), x = cot__value_view(p, cot__operation_operand(p, k)[0]);
        if (op == OP_permute || z.ndim == 0 || x.ndim == 0) return false;
        if (op != OP_reshape && x.shape[x.ndim - 1] != z.shape[z.ndim - 1]) return false;
        if (op == OP_slice && cot__operation_attr(p, k)->ints[0] == x.ndim - 1) return false;
    }
    return true;
}

/* Is the leaf one number for each row? */
static bool is_for_rows(const search *s, uint32_t v) {
    cot__view x = cot__value_view(s->p, v);
    uint32_t  of;
    if (cot__made_by(s->p, v, OP_broadcast_to, &of)) x = cot__value_view(s->p, of);
    return x.ndim == 0 || x.shape[x.ndim - 1] == 1;
}

/* Are elements made by a kernel of sums (backend/cpu/gemm/recipe.h), which wants rows of whole
 * blocks? Rows of results that are folded side by side are pieces of 512 bytes. */
static bool is_quick(const search *s, const cot__made_form *f, const cot__recipe *r) {
    enum { PIECE = 512 };
    const cot_shape *x = &f->reduced;
    int64_t          n = r->shape[r->ndim - 1], slice = 1;
    int              i = x->ndim;
    const void      *scale = r->scale >= 0 ? r->leaf[r->scale].data : NULL;
    if (f->what != COT__SUM || !lies_along(s->p, (uint32_t)((uintptr_t)r->leaf[~r->step[0].arg[1]].data - 1)))
        return false;
    if (f->mask >> (x->ndim - 1) & 1) { /* the last axes go */
        while (i > 0 && (f->mask >> (i - 1) & 1)) slice *= x->dim[--i];
        return (r->steps == 1 || r->squares) && f->mask >> i == (INT64_C(1) << (x->ndim - i)) - 1 &&
               (f->mask & ((INT64_C(1) << i) - 1)) == 0 && slice % n == 0 && n % COT__BLOCK == 0;
    }
    if (r->steps > 1 && (r->scale < 0 || (scale && !is_for_rows(s, (uint32_t)((uintptr_t)scale - 1))))) return false;
    return x->dim[x->ndim - 1] % n == 0 && n * cot__dtype_size(r->dtype) % PIECE == 0;
}

/* Does the backend reduce it so, and is that as fast as reading it, or is it too large to write? */
static bool can_fold(const search *s, uint32_t k) {
    cot__made_form f;
    cot__recipe    r;
    int64_t        stride[COT_MAX_NDIM], kept[COT_MAX_NDIM];
    if (!form_of(s, k, &f)) return false;
    uint32_t  v = cot__operation_operand(s->p, k)[0];
    cot__view x = cot__value_view(s->p, v), z = x;
    for (int i = 0; i < x.ndim; i++) kept[i] = f.mask >> i & 1 ? 1 : x.shape[i];
    cot__strides(x.ndim, kept, stride);
    z.shape = kept;
    z.stride = stride;
    return describe(s, v, &r) && (cot__value_bytes(s->p, v) >= cot__remake_any_from || is_quick(s, &f, &r)) &&
           s->o->backend->reduce_made(f.what, &x, NULL, (uint32_t)f.mask, &z);
}

/* ---- who reads what -------------------------------------------------------------------------- */

static uint32_t first_with(const search *s, uint32_t v) {
    while (s->of[v].with != v) v = s->of[v].with = s->of[s->of[v].with].with;
    return v;
}

/* If one of the two has to be written, so has the other. */
static void goes_with(const search *s, uint32_t v, uint32_t k) {
    const uint32_t *x = cot__operation_operand(s->p, k);
    for (int i = 0; i < cot__operation_operands(s->p, k); i++)
        if (x[i] != COT__NO_VALUE && s->of[s->of[x[i]].base].made)
            s->of[first_with(s, s->of[x[i]].base)].with = first_with(s, v);
}

static void look_at_result(const search *s, uint32_t k) {
    const cot__program *p = s->p;
    uint32_t            v = p->operation[k].result;
    seen               *z = &s->of[v];
    const uint32_t     *x = cot__operation_operand(p, k);
    if (p->operation[k].op >= OP_structural && cot__op_of(p->operation[k].op)->view) {
        if (s->of[x[0]].read < z->read) z->read = s->of[x[0]].read;
        z->held = s->of[x[0]].held;
    }
    if (cot__keeps_order(p->operation[k].op)) {
        z->base = s->of[x[0]].base;
        return;
    }
    z->made = is_made_product(s, k) || extends(s, k);
    z->fold = can_fold(s, k);
    if (z->made || z->fold) goes_with(s, v, k);
}

static void refuse(const search *s, uint32_t v) {
    if (s->of[s->of[v].base].made) s->of[first_with(s, s->of[v].base)].refused = true;
}

/* What is read by others than reductions that can do without it is written, and so is all that it
 * is made from or that is made from it: then reading is cheaper. True: something is not. */
static bool find_all(const search *s) {
    const cot__program *p = s->p;
    bool                some = false;
    for (uint32_t v = 0; v < p->values; v++) {
        bool made = cot__value_origin(p, v) == COT__FROM_OPERATION;
        s->of[v] = (seen){.base = v, .with = v, .read = cot__value_bytes(p, v)};
        s->of[v].held = made ? s->of[v].read : 0;
    }
    for (uint32_t k = 0; k < p->operations; k++) look_at_result(s, k);
    for (uint32_t k = 0; k < p->outputs; k++) refuse(s, p->output[k]);
    for (uint32_t k = 0; k < p->operations; k++) {
        const uint32_t *x = cot__operation_operand(p, k);
        const seen     *z = &s->of[p->operation[k].result];
        if (cot__keeps_order(p->operation[k].op) || z->fold || z->made) continue;
        for (int i = 0; i < cot__operation_operands(p, k); i++)
            if (x[i] != COT__NO_VALUE) refuse(s, x[i]);
    }
    for (uint32_t k = 0; k < p->operations; k++) {
        seen *z = &s->of[p->operation[k].result];
        z->fold &= !s->of[first_with(s, p->operation[k].result)].refused;
        some |= z->fold;
    }
    return some;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void edit_operation(cot__rewrite *r, uint32_t k) {
    const search  *s = r->edit->state;
    cot__made_form f;
    cot__recipe    recipe;
    cot__type      asked;
    uint32_t       x[COT__RECIPE_LEAVES];
    union { cot__attr attr; char room[sizeof(cot__attr) + COT__MADE_INTS * sizeof(int64_t)]; } a = {.attr = {0}};
    if (!s->of[s->p->operation[k].result].fold) {
        cot__rewrite_keep(r, k);
        return;
    }
    cot__append o = cot__rewrite_operation(r, k, &asked);
    form_of(s, k, &f);
    describe(s, cot__operation_operand(s->p, k)[0], &recipe);
    a.attr.nints = (uint32_t)cot__made_ints(&f, &recipe, a.attr.ints);
    o.op = OP_fold_made;
    o.attr = &a.attr;
    o.asked = NULL;
    o.x = x;
    o.n = 0;
    for (int i = 0; i < recipe.leaves; i++)
        if (recipe.leaf[i].data) x[o.n++] = r->value[(uintptr_t)recipe.leaf[i].data - 1];
    r->changes++;
    cot__rewrite_put(r, k, &o);
}

static bool has_product(const search *s) {
    for (uint32_t k = 0; k < s->p->operations; k++)
        if (is_product(s, k)) return true;
    return false;
}

cot__program *cot__pass_remake(const cot__program *p, const cot__pass_options *o) {
    size_t    bytes = p->values * sizeof(seen);
    search    s = {p, o, NULL};
    cot__edit how = {.state = &s, .operation = edit_operation};
    if (!o->backend || !has_product(&s)) return cot__program_share(p);
    s.of = cot__alloc(o->al, bytes);
    if (!s.of) return cot__refuse(o->caller, COT_MEMORY, "out of memory: %zu bytes of a pass", bytes), NULL;
    cot__program *made = find_all(&s) ? cot__rewrite_run(p, o, &how) : cot__program_share(p);
    cot__free(o->al, s.of, bytes);
    return made;
}
