/* call.c: a program as one operation on a tape.
 *
 * With active operands its forward variant runs, whose further results are what its backward
 * variant reads; the rule is a call of that one. So a derivative is a call again, and can be
 * differentiated. On a smooth tape the program itself runs, and the derivative, which refuses at
 * kinks, is made of its operands. In the body of a loop or of another program, and where the
 * derivative holds what a program cannot hold yet, or there is none, the source is recorded
 * instead: who then asks for the derivative is told why.
 *
 * In a function that cot_vmap records nothing runs: the call is one node, whose batch is a call of
 * the batched program. */
#include "rules/structural_ids.h"
#include "compile/call.h"
#include "compile/idle.h"
#include "compile/replay.h"
#include "compile/variants.h"
#include "compile/verify.h"
#include "diff/loops/loop.h"
#include "ops/structural.h"
#include "tape/examples.h"
#include "tape/record_job.h"
#include "tape/region.h"

#include <stdio.h>
#include <string.h>

static const char NAME[] = "program_call";

typedef cot__call_node call;

static cot_program *runs(const call *c) { return cot__call_runs(c); }
static int          result_of_output(int leading, int k) { return cot__result_of_output(leading, k); }

static bool is_active_output(const call *c, int k) { return c->active && c->active[k]; }

/* The first result of a node is a float if any is, and active if any is. So the first such output
 * comes first, before those that stand before it. */
static int leading_output(const call *c) {
    const cot_program *p = c->p;
    for (int k = 0; k < cot_program_outputs(p); k++)
        if (is_active_output(c, k)) return k;
    for (int k = 0; k < cot_program_outputs(p); k++)
        if (cot__dtype_is_float(cot_program_output_type(p, k).dtype)) return k;
    return 0;
}

/* ---- operands -------------------------------------------------------------------------------- */

static bool has_type(cot_tape *t, uint32_t i, int k, cot_type want) {
    char      a[COT__SHAPE_TEXT], b[COT__SHAPE_TEXT];
    cot_dtype dtype = cot__dtype_at(&t->nodes[i]);
    if (dtype == want.dtype && cot__has_shape(t, i, &want.shape)) return true;
    cot__fail(t, cot__misfit(dtype, want.dtype),
              "[%s] xs[%d] is %s %s, but input %d of the program is %s %s; they must be equal", NAME, k,
              cot__dtype_name(dtype), cot__shape_text_at(t, i, a), k, cot__dtype_name(want.dtype),
              cot__shape_text(want.shape.ndim, want.shape.dim, b));
    return false;
}

/* A plain number has the dtype of its input, if both are floats or both are integers. */
static bool enter_one(cot_tape *t, cot_var x, int k, cot_type want, uint32_t *arg) {
    if (!cot__enter_listed(t, x, NAME, "xs", k, "", arg)) return false;
    cot_dtype dtype = cot__dtype_at(&t->nodes[*arg]);
    bool      alike = cot__dtype_is_float(dtype) == cot__dtype_is_float(want.dtype) && want.dtype != COT_BOOL;
    if (cot__is_number(x) && dtype != want.dtype && alike) {
        cot_var number = cot_cast(VAR(t, *arg), want.dtype);
        if (cot__failed(number)) return false;
        *arg = cot__index(number);
    }
    return has_type(t, *arg, k, want);
}

static bool enter(cot_tape *t, const cot_program *p, const cot_var *xs, uint32_t *args) {
    for (int k = 0; k < cot_program_inputs(p); k++)
        if (!enter_one(t, xs[k], k, cot_program_input_type(p, k), &args[k])) return false;
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct calling {
    cot_tape       *t;
    cot__caller     caller;
    const uint32_t *args;
    const void    **input;
    void          **output;
    cot__result    *result;
    void          **packed; /* copies of operands that do not lie side by side */
    int             n, m;
} calling;

/* Operand k where the program can read it. */
static bool bind(calling *c, int k) {
    cot__view v = cot__look(c->t, c->args[k]);
    int64_t   stride[COT_MAX_NDIM];
    c->input[k] = v.data;
    if (c->t->status != COT_OK || cot__is_contiguous(v.ndim, v.shape, v.stride)) return c->t->status == COT_OK;
    c->packed[k] = cot__workspace_open(c->t, NAME, (int64_t)cot__bytes_at(c->t, c->args[k]));
    if (!c->packed[k]) return false;
    cot__strides(v.ndim, v.shape, stride);
    c->t->backend->copy(&(cot__view){c->packed[k], v.dtype, v.ndim, v.shape, stride}, &v);
    c->input[k] = c->packed[k];
    return true;
}

static bool make_room(calling *c, const cot_program *p, int leading) {
    for (int k = 0; k < c->m; k++) {
        cot_type     type = cot_program_output_type(p, k);
        cot__result *r = &c->result[result_of_output(leading, k)];
        if (!cot__result_open(c->t, r, NAME, type.dtype, type.shape.ndim, type.shape.dim)) return false;
        c->output[k] = r->view.data;
    }
    return true;
}

/* A file that is loaded may say any number of steps: they are counted, which native code does
 * not. */
static bool go_counted(cot_tape *t, cot__run *r, const calling *c) {
    cot__run_bound(r, &t->steps_left);
    bool ok = cot__run_go(r, c->input, c->output);
    cot__run_bound(r, NULL);
    return ok;
}

static bool run(calling *c, cot_program *p) {
    cot__run *r = cot__idle_take(p, c->t->backend, &c->caller);
    if (!r) return false;
    bool ok = cot__is_loading(c->t) ? go_counted(c->t, r, c)
                                    : cot__program_go(p, c->t->backend, r, c->input, c->output);
    if (!ok) cot__fail(c->t, cot__run_status(r), "%s", cot__run_message(r));
    else if (cot__run_note(r)[0]) cot__note(c->t, "%s", cot__run_note(r));
    cot__idle_give(p, c->t->backend, r);
    return ok;
}

/* In the body of a batch nothing is computed. */
static bool make_examples(calling *c, const cot_program *p, int leading) {
    if (!make_room(c, p, leading)) return false;
    for (int k = 0; k < c->m; k++) cot__result_is_example(c->t, &c->result[k]);
    return true;
}

static bool compute(calling *c, cot_program *p, int leading) {
    for (int k = 0; k < c->n; k++)
        if (!bind(c, k)) return false;
    return make_room(c, p, leading) && run(c, p);
}

static void forget(void *program) { cot_program_destroy(program); }

/* What has no derivative in the program, has none on the tape. */
static void rest_inactive(cot_tape *t, const call *known, uint32_t node) {
    for (int k = 0, m = cot_program_outputs(known->p); known->active && k < cot_program_outputs(runs(known)); k++)
        if (!(k < m ? known->active : known->kept_active)[k])
            t->nodes[node + (uint32_t)result_of_output(known->leading, k)].flags &= (uint8_t)~COT__ACTIVE;
}

/* What the node knows, in the arena. */
static call *keep(cot_tape *t, const call *known) {
    call *kept = cot__arena(t, sizeof *kept, NAME);
    bool *read = kept && t->mode.body ? cot__arena(t, sizeof *read, NAME) : NULL;
    if (!kept || (t->mode.body && !read) || !cot__tape_keep(t, known->p, forget, NAME)) return NULL;
    cot__program_counted(known->p);
    if (read) *read = false;
    *kept = *known;
    kept->kept_is_read = read;
    return kept;
}

/* The node of a call, whose picks follow it. */
static cot_var record(cot_tape *t, const call *known, const uint32_t *args) {
    cot_program *p = runs(known);
    int          n = cot_program_inputs(p), m = cot_program_outputs(p);
    size_t       bytes = (size_t)n * 2 * sizeof(void *) + (size_t)m * (sizeof(void *) + sizeof(cot__result)) + 8;
    char        *lists = cot__alloc(&t->al, bytes);
    cot_var      z = INVALID(t);
    if (!lists) return cot__fail(t, COT_MEMORY, "[%s] out of memory: lists of %d operands", NAME, n);
    memset(lists, 0, bytes);
    calling c = {.t = t, .caller = cot__tape_caller(t, NAME), .args = args, .n = n, .m = m};
    c.result = (cot__result *)(void *)lists;
    c.output = (void **)(void *)(c.result + m);
    c.packed = c.output + m;
    c.input = (const void **)(void *)(c.packed + n);
    bool ok = t->mode.body ? make_examples(&c, p, known->leading) : compute(&c, p, known->leading);
    /* without outputs it ran for its checks */
    if (ok && m > 0) {
        cot__attr *attr = cot__attr_make(t, NAME, 0, NULL, n, args);
        if (attr && (attr->pointer = keep(t, known)) != NULL) {
            z = cot__results_push(t, m, c.result, OP_call, n, attr->args, attr);
            if (!cot__failed(z)) rest_inactive(t, known, cot__index(z));
        }
    }
    for (int k = 0; k < n; k++)
        if (c.packed[k]) cot__workspace_close(t, c.packed[k], (int64_t)cot__bytes_at(t, args[k]));
    cot__free(&t->al, lists, bytes);
    return z;
}

/* Output k of the program that was called. A value that it gives out several times is one var, as
 * if the function had been recorded: contributions to its adjoint are added in the order in which
 * it is read. */
static cot_var output_of(cot_var z, const call *c, int k) {
    return cot__result_of(z, result_of_output(c->leading, c->same ? (int)c->same[k] : k));
}

/* ---- calling --------------------------------------------------------------------------------- */

static cot_var *list_of(cot_tape *t, int n) { return cot__arena(t, ((size_t)n + 1) * sizeof(cot_var), NAME); }
/* Lists of flags for the inputs and outputs of a program, in the arena. */
static bool *flags(cot_tape *t, const cot_program *p) {
    size_t n = (size_t)cot_program_inputs(p) + (size_t)cot_program_outputs(p) + 1;
    bool  *list = cot__arena(t, n * sizeof *list, NAME);
    if (list) memset(list, 0, n * sizeof *list);
    return list;
}

/* Which operands are active. False: none is. */
static bool find_active(cot_tape *t, const cot_program *p, const uint32_t *args, bool *inputs) {
    bool some = false;
    for (int k = 0; k < cot_program_inputs(p) && t->active_mask; k++) {
        const cot__node *x = &t->nodes[args[k]];
        some |= inputs[k] = (x->flags & COT__ACTIVE) && cot__dtype_is_float(cot__dtype_at(x));
    }
    return some;
}

static bool any(int n, const bool *list) {
    for (int k = 0; k < n; k++)
        if (list[k]) return true;
    return false;
}

/* Finds what is to run. False: the derivative holds what no program can hold yet, or there is none,
 * so the operations themselves are to be recorded; or there is an error on the tape. */
static bool choose(cot_tape *t, const uint32_t *args, call *known) {
    cot__heard  h = {COT_OK, ""};
    cot__caller caller = cot__heard_by(&h, NAME); /* why a derivative cannot be made */
    bool       *inputs = flags(t, known->p), smooth = t->options.smooth;
    if (!inputs) return false;
    if (!find_active(t, known->p, args, inputs)) return true;
    const cot__variant *flow = cot__variant_of(known->p, COT__FLOW, false, inputs, NULL, &caller), *v = NULL;
    known->active = flow ? flow->results : NULL;
    known->same = flow ? flow->saved : NULL;
    if (flow && !any(cot_program_outputs(known->p), flow->results)) return true;
    if (flow && atomic_load(&known->p->records)) return false;
    known->leading = leading_output(known);
    if (flow)
        v = cot__variant_of(known->p, smooth ? COT__PULL : COT__SPLIT, smooth, inputs, flow->results, &caller);
    known->variant = smooth ? NULL : v;
    if (v && !smooth) flow = cot__variant_of(v->forward, COT__FLOW, false, inputs, NULL, &caller);
    known->kept_active = flow ? flow->results : NULL;
    if (v && flow) return true;
    if (h.status == COT_LIMIT || h.status == COT_GRAD) atomic_store(&known->p->records, true);
    else cot__fail(t, h.status, "%s", h.message);
    return false;
}

/* Is a call one operation here, though a body is recorded? On smooth tapes what it stands for is
 * watched there; for a program, it would be recorded after all. */
static bool is_in_batch(const cot_tape *t) { return t->mode.batch && !t->options.smooth && !t->mode.compiling; }

/* Is a call of p one node here? False also after an error. */
static bool is_one_node(cot_tape *t, cot_program *p, const uint32_t *args, call *known) {
    *known = (call){.p = p};
    known->leading = leading_output(known);
    return (!t->mode.body || is_in_batch(t)) && choose(t, args, known) && t->status == COT_OK;
}

cot_var cot__call_node_on(cot_tape *t, cot_program *p, const cot_var *xs) {
    call      known;
    uint32_t *args = cot__arena(t, ((size_t)cot_program_inputs(p) + 1) * sizeof *args, NAME);
    return args && enter(t, p, xs, args) && is_one_node(t, p, args, &known) ? record(t, &known, args) : INVALID(t);
}

static bool has_idles(cot_program *p) {
    int known = atomic_load(&p->idles);
    for (uint32_t k = 0; !known && k < p->source->operations; k++)
        if (cot__idle_input(p->source, k) >= 0) known = 2;
    atomic_store(&p->idles, known ? known : 1);
    return known == 2;
}

/* Inputs that have nodes of their own in p, which recording its function on `args` would not give
 * them: adjoints would be added in another order. NULL: there are none. */
static const bool *computed_inputs(cot_tape *t, cot_program *p, const uint32_t *args) {
    bool *list = (t->mode.body || t->active_mask) && has_idles(p) ? flags(t, p) : NULL, some = false;
    for (uint32_t k = 0; list && k < p->source->operations; k++) {
        int i = cot__idle_input(p->source, k);
        if (i < 0 || cot__is_unchanged_apart(t, args[i])) continue;
        some |= list[i] = t->mode.body || (t->nodes[args[i]].flags & COT__ACTIVE);
    }
    return some ? list : NULL;
}

/* Of each input the first one that is the same operand, where that gets an adjoint. False: no two
 * are. In `table`, of `room` words, a power of two that is more than there are inputs, stand the
 * first inputs of the operands met so far. */
static bool find_equal(const cot_tape *t, const uint32_t *args, uint32_t n, uint32_t *first, uint32_t *table,
                       uint32_t room) {
    bool some = false;
    memset(table, 0xff, room * sizeof *table);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = args[k] & (room - 1);
        first[k] = k;
        if (!(t->nodes[args[k]].flags & COT__ACTIVE)) continue;
        while (table[at] != COT__NONE && args[table[at]] != args[k]) at = (at + 1) & (room - 1);
        if (table[at] == COT__NONE) table[at] = k;
        first[k] = table[at];
        some |= first[k] != k;
    }
    return some;
}

static bool call_on(cot_tape *t, cot_program *p, const uint32_t *args, cot_var *out);

/* An operand that is given several times gets its adjoint contribution by contribution, as if the
 * function had been recorded. */
static bool call_merged(cot_tape *t, cot_program *p, const uint32_t *first, const uint32_t *args, cot_var *out) {
    cot__caller  caller = cot__tape_caller(t, NAME);
    uint32_t    *left = cot__arena(t, (size_t)cot_program_inputs(p) * sizeof *left, NAME), n = 0;
    cot_program *other = left ? cot__merged(p, first, &caller) : NULL;
    for (uint32_t k = 0; other && k < (uint32_t)cot_program_inputs(p); k++)
        if (first[k] == k) left[n++] = args[k];
    bool ok = other && call_on(t, other, left, out);
    cot_program_destroy(other);
    return ok;
}

/* Does the call, if operands that get an adjoint are given several times. */
static bool calls_merged(cot_tape *t, cot_program *p, const uint32_t *args, cot_var *out, bool *well) {
    uint32_t n = (uint32_t)cot_program_inputs(p), room = 2;
    if (n < 2 || !t->active_mask || (t->mode.body && !is_in_batch(t))) return false;
    while (room < 2 * n) room *= 2;
    size_t    bytes = ((size_t)n + room) * sizeof(uint32_t);
    uint32_t *first = cot__alloc(&t->al, bytes);
    *well = false;
    if (!first) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: a list of %u operands", NAME, n);
        return true;
    }
    bool some = find_equal(t, args, n, first, first + n, room);
    if (some) *well = call_merged(t, p, first, args, out);
    cot__free(&t->al, first, bytes);
    return some;
}

static bool call_computed(cot_tape *t, cot_program *p, const bool *computed, const uint32_t *args, cot_var *out) {
    cot__caller  caller = cot__tape_caller(t, NAME);
    cot_program *other = cot__computed(p, computed, &caller);
    bool         ok = other && call_on(t, other, args, out);
    cot_program_destroy(other);
    return ok;
}

/* The outputs of p for operands `args`. */
static bool call_on(cot_tape *t, cot_program *p, const uint32_t *args, cot_var *out) {
    bool well;
    if (calls_merged(t, p, args, out, &well)) return well;
    const bool *computed = computed_inputs(t, p, args);
    if (computed && !t->mode.body) return call_computed(t, p, computed, args, out);
    call known;
    bool inlined = !is_one_node(t, p, args, &known);
    if (t->status != COT_OK) return false;
    if (inlined) {
        cot_var *in = list_of(t, cot_program_inputs(p));
        for (int k = 0; in && k < cot_program_inputs(p); k++) in[k] = VAR(t, args[k]);
        return in && cot__replay_computed(t, p->source, computed, in, out);
    }
    cot_var z = record(t, &known, args);
    for (int k = 0; k < cot_program_outputs(p); k++) out[k] = output_of(z, &known, k);
    return t->status == COT_OK;
}

static bool call_legal(cot_tape *t, const cot_program *p, int n, const cot_var *xs, int m, const cot_var *ys) {
    if (!p) return cot__fail(t, COT_VALUE, "[%s] the program is NULL", NAME), false;
    if (p->status != COT_OK) return cot__fail(t, p->status, "%s", p->message), false;
    if (!cot__check_lists(t, NAME, n, xs, m, ys)) return false;
    if (n == cot_program_inputs(p) && m == cot_program_outputs(p)) return true;
    cot__fail(t, COT_VALUE, "[%s] %d input%s and %d output%s, but the program has %d and %d", NAME, n,
              n == 1 ? "" : "s", m, m == 1 ? "" : "s", cot_program_inputs(p), cot_program_outputs(p));
    return false;
}

static bool call_into(cot_tape *t, cot_program *p, int n, const cot_var *xs, int m, cot_var *ys) {
    uint32_t *args = cot__arena(t, ((size_t)n + 1) * sizeof *args, NAME);
    cot_var  *out = args ? list_of(t, m) : NULL;
    if (!out || !enter(t, p, xs, args) || !call_on(t, p, args, out)) return false;
    if (p->verified && !t->mode.body && !cot__verify_call(t, p, args, out)) return false;
    for (int k = 0; k < m; k++) ys[k] = out[k];
    return true;
}

cot_status cot_program_call(cot_program *p, int n, const cot_var *xs, int m, cot_var *ys) {
    cot_tape *t = cot__tape_of(n > 0 && xs ? n : 0, xs);
    cot_var   none = cot__invalid(n > 0 && xs ? n : 0, xs);
    bool      done = t && call_legal(t, p, n, xs, m, ys) && call_into(t, p, n, xs, m, ys);
    for (int k = 0; !done && ys && k < m; k++) ys[k] = none; /* ys may be where the xs were */
    return t ? t->status : cot__status_of(n, xs);
}

/* ---- its rules ------------------------------------------------------------------------------- */

static const call *call_of(const cot__rule *r) { return cot__rule_attr(r)->pointer; }

/* The outputs of a variant's program on these operands; NULL after a failure. */
static cot_var *call_derivative(cot__rule *r, cot_program *p, int n, const cot_var *xs) {
    uint32_t *args = cot__arena(r->t, ((size_t)n + 1) * sizeof *args, NAME);
    cot_var  *out = args ? list_of(r->t, cot_program_outputs(p)) : NULL;
    return out && enter(r->t, p, xs, args) && call_on(r->t, p, args, out) ? out : NULL;
}

/* Has every active output of the program that was called an adjoint, and nothing else one? */
static bool is_seeded_fully(const call *c, const bool *seeded) {
    for (int k = 0; k < cot_program_outputs(runs(c)); k++)
        if (seeded[k] != (k < cot_program_outputs(c->p) && is_active_output(c, k))) return false;
    return true;
}

/* Calls the backward program of v, a variant for `results` outputs, on what it reads of operands
 * and results, and on the seeds. */
static void pull(cot__rule *r, const call *c, const cot__variant *v, int results) {
    int      inputs = cot_program_inputs(c->p), at = 0;
    if (!any(inputs, v->reached)) return;
    if (c->kept_is_read) *c->kept_is_read = true;
    cot_var *xs = list_of(r->t, cot_program_inputs(v->backward));
    if (!xs) return;
    for (uint32_t i = 0; i < v->count; i++) {
        int from = (int)v->saved[i];
        xs[at++] = from < inputs ? cot__rule_x(r, from)
                                 : cot__rule_result_of(r, result_of_output(c->leading, from - inputs));
    }
    for (int k = 0; k < results; k++)
        if (v->results[k]) xs[at++] = cot__rule_g(r, result_of_output(c->leading, k));
    const cot_var *bar = call_derivative(r, v->backward, at, xs);
    for (int k = 0; bar && k < inputs; k++)
        if (v->reached[k]) {
            if (cot__rule_wants(r, k)) cot__give(r, k, *bar);
            bar++;
        }
}

static void call_vjp(cot__rule *r) {
    const call  *c = call_of(r);
    cot_program *p = runs(c);
    cot__caller  caller = cot__tape_caller(r->t, NAME);
    bool        *wanted = flags(r->t, p), *seeded = cot__behind(wanted, cot_program_inputs(p));
    if (!wanted) return;
    for (int k = 0; k < cot_program_inputs(p); k++) wanted[k] = cot__rule_wants(r, k);
    for (int k = 0; k < cot_program_outputs(p); k++)
        seeded[k] = !cot__failed(cot__rule_g(r, result_of_output(c->leading, k)));
    if (c->variant && is_seeded_fully(c, seeded)) {
        pull(r, c, c->variant, cot_program_outputs(c->p));
        return;
    }
    const cot__variant *v = cot__variant_of(p, COT__PULL, r->t->options.smooth, wanted, seeded, &caller);
    if (v) pull(r, c, v, cot_program_outputs(p));
}

static void call_jvp(cot__rule *r) {
    const call  *c = call_of(r);
    cot_program *p = runs(c);
    cot__caller  caller = cot__tape_caller(r->t, NAME);
    int          inputs = cot_program_inputs(p), results = cot_program_outputs(p), at = 0, leading = c->leading;
    bool        *moved = flags(r->t, p), *outputs = cot__behind(moved, inputs);
    cot_var     *xs = list_of(r->t, 2 * inputs);
    if (!moved || !xs) return;
    for (int k = 0; k < inputs; k++) xs[at++] = cot__rule_x(r, k);
    for (int k = 0; k < inputs; k++) {
        moved[k] = !cot__failed(r->tangents[k]);
        if (moved[k]) xs[at++] = r->tangents[k];
    }
    /* others would be given zeros, which a rule multiplies by what is not finite */
    const cot__variant *flow = cot__variant_of(p, COT__FLOW, false, moved, NULL, &caller);
    for (int k = 0; flow && k < results; k++) outputs[k] = flow->results[flow->saved[k]];
    if (!flow || !any(results, outputs)) return;
    const cot__variant *v = cot__variant_of(p, COT__PUSH, r->t->options.smooth, moved, outputs, &caller);
    const cot_var      *tangent = v ? call_derivative(r, v->backward, at, xs) : NULL;
    for (int k = 0; tangent && k < results; k++)
        if (outputs[k]) cot__rule_tangent(r, result_of_output(leading, k), *tangent++);
}

/* With the same variant: it has the same results. */
static cot_var call_apply(cot__rule *r, const cot_var *xs) {
    const call *c = call_of(r);
    uint32_t   *args = cot__arena(r->t, ((size_t)cot_program_inputs(c->p) + 1) * sizeof *args, NAME);
    return args && enter(r->t, c->p, xs, args) ? record(r->t, c, args) : INVALID(r->t);
}

/* ---- for a batch ----------------------------------------------------------------------------- */

/* What a call in a body is played with. */
static cot_program *played(const call *c) { return *c->kept_is_read ? runs(c) : c->p; }

static bool call_reached(cot__rule *r, const bool *is, bool *results) {
    const call        *c = call_of(r);
    const cot_program *p = runs(c);
    bool              *outputs = flags(r->t, p);
    if (!outputs || !cot__batched_outputs(r->t, p, is, outputs)) return false;
    for (int k = 0; k < cot_program_outputs(p); k++) results[result_of_output(c->leading, k)] = outputs[k];
    return true;
}

/* The outputs of p for operands of which some have the batch. */
static bool call_on_batch(cot_tape *t, cot_program *p, const cot__batch *b, const cot_var *xs, cot_var *out) {
    cot__heard   h = {COT_OK, ""};
    cot__caller  caller = cot__heard_by(&h, NAME);
    uint32_t    *args = cot__arena(t, ((size_t)b->n + 1) * sizeof *args, NAME);
    cot_program *batched = NULL;
    if (!args) return false;
    if (!any(b->n, b->is)) return enter(t, p, xs, args) && call_on(t, p, args, out);
    if (!atomic_load(&p->batches_record)) batched = cot__batched(p, b->is, b->extent, &caller);
    if (batched) {
        bool ok = enter(t, batched, xs, args) && call_on(t, batched, args, out);
        cot_program_destroy(batched);
        return ok;
    }
    if (h.status == COT_MEMORY) return cot__fail(t, h.status, "%s", h.message), false;
    if (h.status != COT_OK) atomic_store(&p->batches_record, true);
    return cot__batched_record(t, p, b->is, xs, out);
}

static cot_var call_batch(cot__rule *r, const cot__batch *b, cot_var *xs) {
    const call  *c = call_of(r);
    cot_program *p = played(c);
    int          m = cot_program_outputs(p), results = cot__results_at(r->t, r->node);
    cot_var     *out = list_of(r->t, results);
    if (!out || !call_on_batch(r->t, p, b, xs, out)) return INVALID(r->t);
    for (int k = m; k < results; k++) out[k] = INVALID(r->t);
    for (int k = 0; r->more && k < results; k++)
        if (k != c->leading) r->more[result_of_output(c->leading, k) - 1] = out[k];
    return out[c->leading];
}

static bool call_bodies_act(const cot__rule *r) {
    return cot__call_runs(cot__rule_attr(r)->pointer)->source->effects;
}

const cot__op cot__op_call = {.name       = "call",
                              .kind       = KIND_GENERIC,
                              .formula    = "z = a program of x; x̄ += its derivative, a program of x and z̄",
                              .saves      = 0x7f | COT__SAVES_Z,
                              .vjp        = call_vjp,
                              .jvp        = call_jvp,
                              .apply      = call_apply,
                              .batch      = call_batch,
                              .reached    = call_reached,
                              .example    = true,
                              .sweeps_alone = true,
                              .results    = cot__call_job_results,
                              .infer      = cot__call_job_infer,
                              .bodies     = 2,
                              .bodies_act = call_bodies_act,
                              .open       = cot__call_job_open,
                              .go         = cot__call_job_go,
                              .close      = cot__call_job_close,
                              .plain      = cot__call_plain,
                              .called     = "program_call",
                              .cost       = {.none = "what its functions do is not counted"},
                              .operands   = "*",
                              .inlined    = cot__call_inlined,
                              .opaque     = true};
