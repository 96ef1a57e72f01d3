/* remake.c: what is cheaper to compute again than to write is computed where it is reduced.
 *
 * The gradients of every example of a batch are products of a column and a row each: as arrays they
 * are many times what they are made from, and writing them takes longer than computing them twice.
 * Their norms, and their sums once each has been clipped, can do without the arrays. So where all
 * that reads such a product are cheap elementwise operations and reductions of these, each
 * reduction becomes one operation, fold_made, on the factors: it computes the elements in cache and
 * folds them with the bits that it would have had. Then nobody reads the product, and the pass dead
 * drops it.
 *
 * On a tape such work waits instead (src/pending/product.c), with the same recipes and bounds. */
#include "program/made_form.h"
#include "program/passes/makers.h"
#include "program/passes/rewrite.h"
#include "rules/structural_ids.h"

#include <string.h>

/* Of a value of the old program. */
typedef struct seen {
    uint32_t base; /* the value whose elements it has, all of them in their order; itself */
    bool     made; /* it could be made again by whoever reads it */
    bool     fold; /* it is a reduction of such a value */
    bool     refused; /* somebody reads it who needs it written */
} seen;

typedef struct search {
    const cot__program      *p;
    const cot__pass_options *o;
    seen                    *of;
} search;

/* ---- values that can be made again ----------------------------------------------------------- */

/* Bytes of memory that are read for a value: a view has those of what it views, if they are
 * fewer. */
static size_t bytes_behind(const cot__program *p, uint32_t v) {
    size_t   bytes = cot__value_bytes(p, v);
    uint32_t k;
    while ((k = cot__maker_of(p, v)) != COT__NO_VALUE && p->operation[k].op >= OP_structural &&
           cot__op_of(p->operation[k].op)->view) {
        v = cot__operation_operand(p, k)[0];
        if (cot__value_bytes(p, v) < bytes) bytes = cot__value_bytes(p, v);
    }
    return bytes;
}

/* Of matrices, (…, m, 1) and (…, 1, n). */
static bool is_product(const search *s, uint32_t k) {
    const cot__program *p = s->p;
    if (p->operation[k].op != OP_matmul) return false;
    const uint32_t *x = cot__operation_operand(p, k);
    cot__view       a = cot__value_view(p, x[0]), b = cot__value_view(p, x[1]),
                    z = cot__value_view(p, p->operation[k].result);
    if ((z.dtype != COT_F64 && z.dtype != COT_F32) || z.ndim > COT__RECIPE_AXES) return false;
    if (a.ndim != z.ndim || b.ndim != z.ndim || a.shape[a.ndim - 1] != 1) return false;
    return cot__view_size(&z) > 0 &&
           cot__recipe_pays(cot__value_bytes(p, p->operation[k].result), bytes_behind(p, x[0]) + bytes_behind(p, x[1]));
}

/* Is it elementwise, cheap, and one of its operands made so, the others numbers or small? */
static bool extends(const search *s, uint32_t k) {
    const cot__program *p = s->p;
    const uint32_t     *x = cot__operation_operand(p, k);
    bool                some = false;
    if (p->operation[k].op >= OP_structural || !cot__recipe_may_hold(p->operation[k].op)) return false;
    cot__view z = cot__value_view(p, p->operation[k].result);
    size_t    bytes = cot__value_bytes(p, p->operation[k].result);
    for (int i = 0; i < cot__operation_operands(p, k); i++) {
        if (x[i] == COT__NO_VALUE) continue;
        bool      made = s->of[s->of[x[i]].base].made;
        cot__view v = cot__value_view(p, x[i]);
        if (v.dtype != z.dtype || (v.ndim > 0 && v.ndim != z.ndim)) return false;
        if (!made && !cot__recipe_pays(bytes, bytes_behind(p, x[i]))) return false;
        some |= made;
    }
    return some;
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
    int                 what = cot__op_of(p->operation[k].op)->fold - 1;
    if (p->operation[k].op < OP_structural || what < 0 || what == COT__LOGSUMEXP) return false;
    uint32_t  v = cot__operation_operand(p, k)[0];
    cot__view x = cot__value_view(p, v);
    *f = (cot__made_form){.what = (cot__reduction)what, .mask = cot__operation_attr(p, k)->ints[0],
                          .keep = cot__operation_attr(p, k)->ints[1]};
    cot__extents_of(&f->reduced, &x);
    return s->of[s->of[v].base].made && x.dtype == cot__value_view(p, p->operation[k].result).dtype;
}

/* Does the backend reduce it so? */
static bool can_fold(const search *s, uint32_t k) {
    cot__made_form f;
    cot__recipe    r;
    int64_t        stride[COT_MAX_NDIM], kept[COT_MAX_NDIM];
    if (!form_of(s, k, &f)) return false;
    uint32_t  v = cot__operation_operand(s->p, k)[0];
    cot__view x = cot__value_view(s->p, v), z = x;
    memcpy(stride, x.stride, (size_t)x.ndim * sizeof *stride);
    for (int i = 0; i < x.ndim; i++) kept[i] = f.mask >> i & 1 ? 1 : x.shape[i];
    z.shape = kept;
    cot__strides(x.ndim, kept, stride);
    z.stride = stride;
    return describe(s, v, &r) && s->o->backend->reduce_made(f.what, &x, NULL, (uint32_t)f.mask, &z);
}

/* ---- who reads what -------------------------------------------------------------------------- */

static bool is_same_elements(const cot__program *p, uint32_t k) {
    int op = p->operation[k].op;
    return op == OP_reshape || op == OP_detach || op == OP_alias;
}

static bool look_forward(const search *s) {
    bool some = false;
    for (uint32_t v = 0; v < s->p->values; v++) {
        bool refused = s->of[v].refused;
        s->of[v] = (seen){.base = v, .refused = refused};
    }
    for (uint32_t k = 0; k < s->p->operations; k++) {
        seen *z = &s->of[s->p->operation[k].result];
        if (is_same_elements(s->p, k)) z->base = s->of[cot__operation_operand(s->p, k)[0]].base;
        else {
            z->made = !z->refused && (is_product(s, k) || extends(s, k));
            z->fold = can_fold(s, k);
            some |= z->fold;
        }
    }
    return some;
}

/* Refuses what somebody needs written. Readers stand behind what they read. */
static bool look_back(const search *s) {
    const cot__program *p = s->p;
    bool                changes = false;
    for (uint32_t k = 0; k < p->outputs; k++) {
        seen *x = &s->of[s->of[p->output[k]].base];
        changes |= x->made && !x->refused;
        x->refused = true;
    }
    for (uint32_t k = p->operations; k-- > 0;) {
        const uint32_t *x = cot__operation_operand(p, k);
        const seen     *z = &s->of[p->operation[k].result];
        if (is_same_elements(p, k) || z->fold || (z->made && !z->refused)) continue;
        for (int i = 0; i < cot__operation_operands(p, k); i++) {
            if (x[i] == COT__NO_VALUE) continue;
            seen *of = &s->of[s->of[x[i]].base];
            changes |= of->made && !of->refused;
            of->refused = true;
        }
    }
    return changes;
}

/* What is refused is written, and then others may read it; so it is looked at again. */
static bool find(const search *s) {
    enum { ROUNDS = 8 };
    memset(s->of, 0, s->p->values * sizeof *s->of);
    for (int round = 0; round < ROUNDS; round++) {
        if (!look_forward(s)) return false;
        if (!look_back(s)) return true;
    }
    return false;
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
    cot__program *made = find(&s) ? cot__rewrite_run(p, o, &how) : cot__program_share(p);
    cot__free(o->al, s.of, bytes);
    return made;
}
