/* report.c: what a program takes and how it runs, told before any run. */
#include "compile/variants.h"

#include "backend/cpu/table/cpu.h"
#include "program/show/show.h"

#include <string.h>

/* What went wrong is known by its code; only memory can be short. */
static void hear(const cot__caller *c, cot_status code, const char *text) {
    cot_status *to = c->to;
    (void)text;
    if (*to == COT_OK) *to = code;
}
static void ignore(const cot__caller *c, const char *text) { (void)c, (void)text; }

static cot_status open_plan(cot__plan *plan, const cot_program *p) {
    cot_status  status = COT_OK;
    cot__caller caller = {"program_report", &status, hear, ignore, NULL};
    if (cot_program_status(p) != COT_OK) return cot_program_status(p);
    cot__lent lent = cot__program_lent(p);
    cot__plan_open_lent(plan, p->runs, cot__program_backend(p), &p->al, NULL, true, &lent, &caller);
    return status;
}

/* ---- the derivative -------------------------------------------------------------------------- */

/* Flags of inputs that have derivatives. False: there is none. */
static bool find_floats(const cot_program *p, bool *inputs) {
    bool some = false;
    for (int k = 0; k < cot_program_inputs(p); k++)
        some |= inputs[k] = cot__dtype_is_float(cot_program_input_type(p, k).dtype);
    return some;
}

static bool any(int n, const bool *list) {
    for (int k = 0; k < n; k++)
        if (list[k]) return true;
    return false;
}

static int64_t bytes_of(cot_type type) {
    return cot__count(type.shape.ndim, type.shape.dim) * cot__dtype_size(type.dtype);
}

/* Results of the forward program behind those of the function itself. */
static int64_t count_saved(const cot_program *p, const cot__variant *v) {
    int64_t bytes = 0;
    for (int k = cot_program_outputs(p); k < cot_program_outputs(v->forward); k++)
        bytes = cot__size_add(bytes, bytes_of(cot_program_output_type(v->forward, k)));
    return bytes;
}

/* A derivative that no program can hold is none. */
static cot_status measure_derivative(cot_program *p, cot_program_facts *f) {
    cot_status  status = COT_OK;
    cot__caller caller = {"program_report", &status, hear, ignore, NULL};
    size_t      n = (size_t)cot_program_inputs(p);
    bool       *flags = cot__alloc(&p->al, n * sizeof *flags);
    if (!flags) return COT_MEMORY;
    f->saved_bytes = f->recomputed_bytes = -1;
    const cot__variant *v = find_floats(p, flags) && !atomic_load(&p->records)
                                ? cot__variant_of(p, COT__FLOW, false, flags, NULL, &caller)
                                : NULL;
    if (v && !any(cot_program_outputs(p), v->results)) v = NULL;
    if (v) v = cot__variant_of(p, COT__SPLIT, false, flags, v->results, &caller);
    if (v) f->saved_bytes = count_saved(p, v), f->recomputed_bytes = v->recomputed;
    cot__free(&p->al, flags, n * sizeof *flags);
    return status == COT_MEMORY ? COT_MEMORY : COT_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static cot_program_facts facts_of(const cot__plan *plan) {
    cot__facts f = cot__plan_facts(plan);
    return (cot_program_facts){.operations = f.operations, .views = f.views, .scalars = f.scalars, .fused = f.fused,
                               .groups = f.groups, .jobs = f.jobs, .input_bytes = f.inputs,
                               .constant_bytes = f.constants, .output_bytes = f.outputs,
                               .workspace_bytes = f.workspace, .fused_bytes = f.fused_away, .spilled_bytes = f.stored};
}

/* What cot_run_create would take. */
static cot_status measure_run(cot_program *p, cot_program_facts *f) {
    cot_status            status = COT_OK;
    cot__caller           caller = {"program_report", &status, hear, ignore, NULL};
    const cot__run_parts *parts = cot__native_parts(p->native);
    cot__lent             lent = cot__program_lent(p);
    const cot__backend *b = cot__program_backend(p);
    if (!cot__run_measure(p->runs, b, &p->al, parts, &lent, &caller, &f->run_bytes)) return status;
    int64_t aside = (int64_t)cot__native_aside(p->native);
    f->run_bytes = cot__size_add(f->run_bytes, cot__size_add((int64_t)cot__run_object(p), aside));
    f->memory_limit = p->memory_limit;
    f->unlimited_bytes = p->memory_limit ? p->unlimited : f->run_bytes;
    f->again = p->again;
    return COT_OK;
}

cot_status cot_program_measure(cot_program *p, cot_program_facts *facts) {
    cot__plan plan;
    if (!facts) return COT_VALUE;
    memset(facts, 0, sizeof *facts);
    cot_status        status = open_plan(&plan, p);
    cot_program_facts f = {0};
    if (status != COT_OK) return status;
    f = facts_of(&plan);
    cot__plan_close(&plan);
    status = measure_run(p, &f);
    if (status == COT_OK) status = measure_derivative(p, &f);
    if (status == COT_OK) *facts = f;
    return status;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void put_bytes(cot__text *to, const char *what, int64_t bytes, const char *why) {
    cot__putf(to, "  %-11s %12lld  %s\n", what, (long long)bytes, why);
}

static void put_facts(const cot_program *p, const cot_program_facts *f, cot__text *to) {
    int n = cot_program_inputs(p), m = cot_program_outputs(p);
    cot__putf(to, "%d input%s, %d output%s, %lld operation%s: ", n, n == 1 ? "" : "s", m, m == 1 ? "" : "s",
              (long long)f->operations, f->operations == 1 ? "" : "s");
    cot__putf(to, "%lld in %lld group%s, %lld by %s, %lld on scalars, %lld view%s\n", (long long)f->fused,
              (long long)f->groups, f->groups == 1 ? "" : "s", (long long)f->jobs,
              f->jobs == 1 ? "itself" : "themselves",
              (long long)f->scalars, (long long)f->views, f->views == 1 ? "" : "s");
    cot__put(to, "bytes:\n");
    put_bytes(to, "inputs", f->input_bytes, "the caller's");
    put_bytes(to, "outputs", f->output_bytes, "the caller's");
    put_bytes(to, "constants", f->constant_bytes, "in the program");
    put_bytes(to, "run", f->run_bytes, "all that a cot_run takes");
    if (f->memory_limit) {
        put_bytes(to, "limit", f->memory_limit, "for this");
        put_bytes(to, "unlimited", f->unlimited_bytes, "what a cot_run would take without it");
    }
    if (f->spilled_bytes) put_bytes(to, "spilled", f->spilled_bytes, "written to a file by each run, and read back");
    put_bytes(to, "workspace", f->workspace_bytes, "of this, for the operation that needs most");
    put_bytes(to, "fused away", f->fused_bytes, "values that need no array");
    if (f->saved_bytes < 0) cot__put(to, "  no derivative as a program\n");
    else {
        put_bytes(to, "saved", f->saved_bytes, "for the way back, if it is differentiated");
        put_bytes(to, "recomputed", f->recomputed_bytes, "there, rather than saved");
    }
}

/* What the limit costs. */
static void put_limit(const cot_program_facts *f, cot__text *to) {
    if (!f->memory_limit) return;
    cot__putf(to, "memory limit: a run takes %.1f %% of what it would take without, "
                  "and does %.1f %% of the work again\n",
              100 * (double)f->run_bytes / (double)f->unlimited_bytes, 100 * f->again);
}

/* Why no output is made in donated input k. One that the caller wants there is written there all
 * the same, when nobody reads the input any more. */
static void put_useless(const cot__plan *plan, uint32_t k, cot__text *to) {
    const cot__program *p = plan->p;
    const cot__directs *d = &plan->directs;
    uint32_t            same = 0;
    cot__putf(to, "donated: input %u saves no memory: ", k);
    for (uint32_t i = 0; i < d->count; i++) {
        if (p->value[d->one[i].root].type != p->value[p->input[k]].type) continue;
        same++;
        if (!cot__may_take_place(p, d, i, k)) continue;
        uint32_t donor = d->one[i].donor, output = d->one[i].output;
        if (donor != COT__NO_VALUE) cot__putf(to, "output %u could be made there, and takes input %u\n", output, donor);
        else cot__putf(to, "output %u is made in memory that the run has anyway\n", output);
        return;
    }
    cot__put(to, same ? "outputs of its type are made while it is still read\n"
                      : "no output of its type and of 8 KiB is made as a whole after the last check\n");
}

/* Which output is made in each donated input. */
static void put_donations(const cot_program *p, const cot__plan *plan, cot__text *to) {
    for (int k = 0; p->donated && k < cot_program_inputs(p); k++) {
        uint32_t i = 0;
        if (!p->donated[k]) continue;
        while (i < plan->directs.count && plan->directs.one[i].donor != (uint32_t)k) i++;
        if (i < plan->directs.count)
            cot__putf(to, "donated: input %d takes output %u\n", k, plan->directs.one[i].output);
        else put_useless(plan, (uint32_t)k, to);
    }
}

cot_status cot_program_report(cot_program *p, FILE *out) {
    cot_program_facts f;
    cot__plan         plan;
    cot_status        status = cot_program_measure(p, &f);
    if (!out) return status;
    cot__text to = cot__text_file(out);
    if (status != COT_OK) {
        cot__putf(&to, "%s\n", cot_program_status(p) == COT_OK ? "out of memory" : cot_program_message(p));
        return status;
    }
    put_facts(p, &f, &to);
    put_limit(&f, &to);
    if (open_plan(&plan, p) != COT_OK) return COT_MEMORY;
    put_donations(p, &plan, &to);
    bool told = cot__plan_print(&plan, &to);
    cot__plan_close(&plan);
    return told ? COT_OK : COT_MEMORY;
}

/* Without memory for a plan, or without a program, there is no graph. */
void cot_program_dot(const cot_program *p, FILE *out) {
    cot__plan plan;
    if (!out) return;
    if (open_plan(&plan, p) != COT_OK) {
        fprintf(out, "digraph program {\n}\n");
        return;
    }
    cot__text to = cot__text_file(out);
    cot__plan_dot(&plan, &to);
    cot__plan_close(&plan);
}
