/* report.c: what a program takes, how its operations run together, and why some do not. */
#include "program/made_form.h"
#include "program/show/show.h"
#include "rules/structural_ids.h"

#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

static int64_t bytes_of(const cot__program *p, uint32_t v) {
    cot__view x = cot__value_view(p, v);
    return cot__view_size(&x) * cot__dtype_size(x.dtype);
}

static int64_t bytes_of_list(const cot__program *p, const uint32_t *list, uint32_t n) {
    int64_t bytes = 0;
    for (uint32_t k = 0; k < n; k++) bytes = cot__size_add(bytes, bytes_of(p, list[k]));
    return bytes;
}

static bool is_made_fold(const cot__program *p, uint32_t k, cot__made_form *f) {
    return p->operation[k].op == OP_fold_made && cot__made_form_of(cot__operation_attr(p, k), f);
}

/* Bytes of the product that operation k reduces and that nobody writes; 0: there is none, or an
 * operation before it has the same. */
static int64_t bytes_made(const cot__program *p, uint32_t k) {
    cot__made_form  f, g;
    const uint32_t *x = cot__operation_operand(p, k);
    if (!is_made_fold(p, k, &f)) return 0;
    for (uint32_t i = 0; i < k; i++) {
        const uint32_t *y = cot__operation_operand(p, i);
        if (is_made_fold(p, i, &g) && x[~f.step[1]] == y[~g.step[1]] && x[~f.step[2]] == y[~g.step[2]]) return 0;
    }
    int64_t size = cot__dtype_size(cot__value_view(p, p->operation[k].result).dtype);
    return cot__size_mul(size, cot__count(f.made.ndim, f.made.dim));
}

cot__facts cot__plan_facts(const cot__plan *plan) {
    const cot__program *p = plan->p;
    cot__facts          f = {.operations = p->operations, .workspace = plan->most_workspace};
    for (uint32_t k = 0; k < p->operations; k++) {
        f.views += plan->how[k] == COT__BY_VIEW;
        f.scalars += plan->how[k] == COT__BY_SCALARS;
        f.fused += plan->how[k] == COT__BY_GROUP;
        f.fused_away = cot__size_add(f.fused_away, bytes_made(p, k));
    }
    f.jobs = f.operations - f.views - f.scalars - f.fused;
    f.groups = plan->fusion.groups;
    f.inputs = bytes_of_list(p, p->input, p->inputs);
    f.outputs = bytes_of_list(p, p->output, p->outputs);
    for (uint32_t k = 0; k < p->constants; k++) f.constants += bytes_of(p, p->constant[k].value);
    for (uint32_t v = 0; plan->fusion.inside && v < p->values; v++)
        if (plan->fusion.inside[v]) f.fused_away = cot__size_add(f.fused_away, bytes_of(p, v));
    for (uint32_t k = 0; k < plan->stores; k++) f.stored += bytes_of(p, plan->stored[k].value);
    return f;
}

/* ---- formulas of groups ---------------------------------------------------------------------- */

enum { FORMULA_DEPTH = COT__STAGE_RUNS };

typedef struct reporting {
    const cot__plan *plan;
    cot__text       *to;
    uint8_t         *read; /* of each root: how often it is read, up to 2 */
    uint32_t         shown; /* the value that a line is about */
} reporting;

static uint32_t root_in(const void *user, uint32_t v) { return ((const reporting *)user)->plan->root[v]; }

/* Within a group, what is read twice has a line of its own. */
static bool is_written_out(const void *user, uint32_t v) {
    const reporting *r = user;
    return v == r->shown || (r->plan->fusion.inside[v] && r->read[v] < 2);
}

static void put_name(void *user, uint32_t v) { cot__putf(((reporting *)user)->to, "%%%u", v); }

static void count_readers(reporting *r) {
    const cot__program *p = r->plan->p;
    memset(r->read, 0, p->values);
    for (uint32_t i = 0; i < p->operands; i++) {
        uint32_t v = p->operand[i] == COT__NO_VALUE ? COT__NO_VALUE : r->plan->root[p->operand[i]];
        if (v != COT__NO_VALUE && r->read[v] < 2) r->read[v]++;
    }
}

static void put_line(reporting *r, uint32_t v) {
    cot__formula_style s = {r->plan->p, r->to, r, root_in, is_written_out, put_name, FORMULA_DEPTH};
    r->shown = v;
    cot__putf(r->to, "    %%%u = ", v);
    cot__put_formula_of(&s, v);
    cot__put(r->to, r->plan->fusion.inside[v] ? "  (in blocks only)\n" : "\n");
}

static uint32_t members(const cot__plan *plan, const cot__group *g) {
    uint32_t n = 0;
    for (uint32_t k = g->first; k < g->end; k++) n += plan->how[k] == COT__BY_GROUP;
    return n;
}

static void put_group(reporting *r, uint32_t group) {
    const cot__program *p = r->plan->p;
    const cot__group   *g = &r->plan->fusion.group[group];
    char                shape[COT__SHAPE_TEXT];
    cot__view           x = cot__value_view(p, p->operation[g->first].result);
    uint32_t            n = members(r->plan, g);
    cot__putf(r->to, "  group %u: %u operation%s over %s\n", group + 1, n, n == 1 ? "" : "s",
              cot__shape_text(x.ndim, x.shape, shape));
    for (uint32_t k = g->first; k < g->end; k++) {
        uint32_t z = p->operation[k].result;
        if (r->plan->how[k] == COT__BY_GROUP && (!r->plan->fusion.inside[z] || r->read[z] > 1)) put_line(r, z);
    }
}

/* What is computed where it is reduced, and needs no array. */
static void put_made(reporting *r) {
    const cot__program *p = r->plan->p;
    bool                some = false;
    for (uint32_t k = 0; k < p->operations; k++) {
        cot__made_form f;
        char           shape[COT__SHAPE_TEXT];
        if (!is_made_fold(p, k, &f)) continue;
        cot__put(r->to, some ? "" : "computed where it is reduced:\n");
        cot__putf(r->to, "  over %s\n", cot__shape_text(f.reduced.ndim, f.reduced.dim, shape));
        put_line(r, p->operation[k].result);
        some = true;
    }
}

/* ---- who does not run together --------------------------------------------------------------- */

/* Does operation k read value v from an array that another operation has made? */
static bool reads_array(const cot__plan *plan, uint32_t v) {
    return v != COT__NO_VALUE && cot__value_origin(plan->p, plan->root[v]) == COT__FROM_OPERATION &&
           cot__value_view(plan->p, v).ndim > 0;
}

static bool begins_step(const cot__plan *plan, uint32_t k) {
    if (plan->how[k] == COT__BY_GROUP) return plan->fusion.group[plan->fusion.of[k]].first == k;
    return plan->how[k] == COT__BY_JOB || plan->how[k] == COT__BY_JOB_COPY;
}

/* Each array once, though an operation reads it twice. */
static bool is_new(const cot__plan *plan, const uint32_t *x, int i) {
    for (int k = 0; k < i; k++)
        if (x[k] != COT__NO_VALUE && plan->root[x[k]] == plan->root[x[i]]) return false;
    return true;
}

/* What made the value is to blame, or operation k, which reads it. */
static void put_reason(const cot__plan *plan, uint32_t v, uint32_t k, cot__text *to) {
    const cot__program *p = plan->p;
    uint32_t            maker = cot__value_maker(p, v);
    if (plan->how[k] != COT__BY_GROUP || plan->how[maker] == COT__BY_GROUP || cot__is_fusable(p, maker))
        cot__put(to, cot__unfused_text[plan->fusion.why[k]]);
    else cot__putf(to, "%s is not elementwise", cot__op_of(p->operation[maker].op)->name);
}

static int put_boundary(const cot__plan *plan, uint32_t k, cot__text *to) {
    const cot__program *p = plan->p;
    const uint32_t     *x = cot__operation_operand(p, k);
    int                 some = 0;
    for (int i = 0; i < cot__operation_operands(p, k); i++) {
        if (!reads_array(plan, x[i]) || !is_new(plan, x, i)) continue;
        cot__putf(to, "  %%%u -> %%%u = %s: ", plan->root[x[i]], p->operation[k].result,
                  cot__op_of(p->operation[k].op)->name);
        put_reason(plan, plan->root[x[i]], k, to);
        cot__put(to, "\n");
        some++;
    }
    return some;
}

bool cot__plan_print(const cot__plan *plan, cot__text *to) {
    reporting r = {.plan = plan, .to = to, .read = cot__alloc(&plan->al, plan->p->values)};
    if (!r.read) return false;
    count_readers(&r);
    if (plan->fusion.groups) cot__put(to, "run together:\n");
    for (uint32_t g = 0; g < plan->fusion.groups; g++) put_group(&r, g);
    put_made(&r);
    cot__put(to, "not together, so through memory:\n");
    int some = 0;
    for (uint32_t k = 0; k < plan->p->operations; k++)
        if (begins_step(plan, k)) some += put_boundary(plan, k, to);
    if (!some) cot__put(to, "  nothing\n");
    cot__free(&plan->al, r.read, plan->p->values);
    return true;
}
