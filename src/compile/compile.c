/* compile.c: a C function becomes a program: it is recorded as a body on a tape of its own, which
 * is then lowered and forgotten. */
#include "compile/compile.h"

#include "backend/cpu/table/cpu.h"
#include "ops/structural.h"
#include "program/limit/limit.h"
#include "program/passes/passes.h"
#include "tape/examples.h"
#include "tape/lower.h"
#include "tape/scope.h"

#include <stdio.h>
#include <string.h>

/* ---- failing --------------------------------------------------------------------------------- */

static void fail(cot_program *p, cot_status status, const char *message) {
    if (p->status != COT_OK) return;
    p->status = status;
    snprintf(p->message, sizeof p->message, "%s", message);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Nobody computes on it: elements of large examples take addresses and no memory. So it has no
 * limit either, whatever the environment says of the tapes of users. */
static cot_tape *tape_to_record_on(cot_program *p, bool smooth) {
    cot_tape *t = cot_tape_create(&(cot_options){.allocator = {cot__reserve, &p->al}, .smooth = smooth,
                                                 .memory_limit = INT64_MAX});
    if (t) cot_tape_set_memory_limit(t, 0);
    return t;
}

static bool make_examples(cot_tape *t, int n, const cot_type *types, cot_var *examples) {
    for (int k = 0; k < n && t->status == COT_OK; k++) {
        cot__result r;
        if (cot__constant_open(t, &r, "full", types[k].dtype, &types[k].shape)) {
            cot__result_is_example(t, &r);
            examples[k] = cot__constant_push(t, &r);
        }
        if (t->status != COT_OK) cot__error_in(t, "input %d of [compile]", k);
    }
    return t->status == COT_OK;
}

static cot__program *lower(cot_program *p, cot_tape *t, const cot__region *r) {
    cot__not_yet  not_yet = {0};
    char          text[COT__MESSAGE];
    cot__program *source = r ? cot__region_lower(t, r, &p->al, &not_yet) : NULL;
    if (source || t->status != COT_OK) return source;
    if (not_yet.op)
        snprintf(text, sizeof text, "[compile] %s cannot be part of a program yet: %s", not_yet.op, not_yet.why);
    else snprintf(text, sizeof text, "[compile] the function cannot be a program yet: %s", not_yet.why);
    fail(p, COT_LIMIT, text);
    return NULL;
}

static void record(cot_program *p, cot_tape *t, cot_fn f, void *user, int n, const cot_type *types, int m) {
    cot_var *examples = cot__alloc(&p->al, (size_t)n * sizeof *examples);
    if (!examples) {
        fail(p, COT_MEMORY, "[compile] out of memory: a list of its inputs");
        return;
    }
    t->mode.compiling = true;
    if (make_examples(t, n, types, examples)) {
        const char        *name = t->options.smooth ? "program_call" : cot__compile_name;
        const cot__region *r = cot__region_record_part(t, name, "function", f, user, n, examples, m);
        p->source = lower(p, t, r);
    }
    if (t->status != COT_OK) fail(p, t->status, cot_tape_message(t));
    cot__free(&p->al, examples, (size_t)n * sizeof *examples);
}

/* ---- the form that runs ---------------------------------------------------------------------- */

static void hear(const cot__caller *c, cot_status code, const char *text) { fail(c->to, code, text); }
static void ignore(const cot__caller *c, const char *text) { (void)c, (void)text; }

/* within: its inputs are what another program has computed. */
static cot__pass_options passes_of(const cot_program *p, bool within, const cot__caller *caller) {
    return (cot__pass_options){.al = &p->al, .caller = caller, .backend = cot__program_backend(p), .fast = p->fast,
                               .within = within};
}

/* limited: there is no memory to compare native code in. */
static void optimise(cot_program *p, bool within, bool limited) {
    cot__caller       caller = {"compile", p, hear, ignore, NULL};
    cot__pass_options o = passes_of(p, within, &caller);
    if (p->source) p->runs = p->plain ? cot__program_share(p->source) : cot__optimise(p->source, &o);
    p->wants_native = !limited && cot__native_wanted(p->wants_native);
    if (p->runs && p->wants_native) p->native = cot__native_open(p->runs, &p->al);
}

/* ---- donated inputs -------------------------------------------------------------------------- */

static bool donations_are_legal(cot_program *p, const cot_compile_options *o) {
    char text[COT__MESSAGE] = "";
    int  n = cot_program_inputs(p);
    if (o->donations < 0) snprintf(text, sizeof text, "[compile] a negative number of donations: %d", o->donations);
    else if (o->donations > 0 && !o->donate)
        snprintf(text, sizeof text, "[compile] the list of %d donated inputs is NULL", o->donations);
    for (int k = 0; !text[0] && k < o->donations; k++)
        if (o->donate[k] < 0 || o->donate[k] >= n)
            snprintf(text, sizeof text, "[compile] donate[%d] is %d; the inputs are 0 to %d", k, o->donate[k], n - 1);
    if (text[0]) fail(p, COT_VALUE, text);
    return !text[0];
}

static void fail_twice(cot_program *p, int k, int input) {
    char text[COT__MESSAGE];
    snprintf(text, sizeof text, "[compile] donate[%d] is %d, and so is one before; an input is donated once", k, input);
    fail(p, COT_VALUE, text);
}

void cot__program_donate(cot_program *p, const cot_compile_options *o) {
    size_t n = (size_t)cot_program_inputs(p);
    if (p->status != COT_OK || !donations_are_legal(p, o) || o->donations == 0) return;
    p->donated = cot__alloc(&p->al, n * sizeof *p->donated);
    if (!p->donated) {
        fail(p, COT_MEMORY, "[compile] out of memory: a list of donated inputs");
        return;
    }
    memset(p->donated, 0, n * sizeof *p->donated);
    for (int k = 0; k < o->donations; k++) {
        if (p->donated[o->donate[k]]) fail_twice(p, k, o->donate[k]);
        p->donated[o->donate[k]] = true;
    }
}

/* ---- a memory limit -------------------------------------------------------------------------- */

/* What a run takes without. */
static bool measure_unlimited(cot_program *p, const cot__caller *caller) {
    cot__lent lent = {.donated = p->donated};
    bool      ok = cot__run_measure(p->runs, cot__program_backend(p), &p->al, NULL, &lent, caller, &p->unlimited);
    p->unlimited += (int64_t)cot__run_object(p);
    return ok;
}

char *cot__folder_copy(const cot_allocator *al, const char *name) {
    char *copy = name ? cot__alloc(al, strlen(name) + 1) : NULL;
    return copy ? memcpy(copy, name, strlen(name) + 1) : NULL;
}

void cot__folder_free(const cot_allocator *al, char *name) {
    if (name) cot__free(al, name, strlen(name) + 1);
}

static bool moves_something(const cot__program *p) {
    uint32_t k = 0;
    while (k < p->operations && !cot__is_fetch(p, k)) k++;
    return k < p->operations;
}

/* Another form for runs that cannot have their file. There may be none; and if it costs less, all
 * runs are by it. */
static cot__program *choose(cot_program *p, cot__program *moving, cot__limit_options o) {
    cot__heard     h = {COT_OK, ""};
    cot__caller    quiet = cot__heard_by(&h, "compile");
    cot__lent      lent = cot__program_lent(p);
    cot__limit_way how;
    lent.spill = NULL;
    o.lent = &lent;
    o.caller = &quiet;
    p->resident = cot__limit(p->runs, &o, &how);
    if (!p->resident || cot__limit_price(p->resident) > cot__limit_price(moving)) return moving;
    cot__program_release(moving);
    moving = p->resident;
    p->resident = NULL;
    p->again = how.again;
    return moving;
}

/* States of loops live there only from when they are read. */
static cot__program *keep_loops_apart(const cot_program *p, const cot__caller *caller) {
    cot__pass_options o = passes_of(p, false, caller);
    o.without = UINT32_C(1) << COT__PASS_loops;
    return p->plain || p->source->bodies == 0 ? cot__program_share(p->runs) : cot__optimise(p->source, &o);
}

static void limit_to(cot_program *p, const cot__program *apart, const cot__caller *caller) {
    cot__lent          lent = cot__program_lent(p);
    cot__limit_options o = {&p->al, cot__program_backend(p), &lent, p->memory_limit, cot__run_object(p), p->unlimited,
                            apart, caller};
    cot__limit_way     how;
    cot__program      *runs = cot__limit(p->runs, &o, &how);
    if (!runs) return;
    p->again = how.again;
    p->lends = how.lends;
    if (p->spill && runs != p->runs) runs = choose(p, runs, o);
    if (runs == p->runs || !moves_something(runs)) cot__folder_free(&p->al, p->spill), p->spill = NULL;
    cot__program_release(p->runs);
    p->runs = runs;
}

void cot__program_limit(cot_program *p, const cot_compile_options *options) {
    cot__caller caller = {"compile", p, hear, ignore, NULL};
    if (p->status != COT_OK || options->memory_limit == 0) return;
    p->memory_limit = options->memory_limit;
    p->lends = true;
    p->spill = cot__folder_copy(&p->al, options->spill);
    if (options->spill && !p->spill) {
        fail(p, COT_MEMORY, "[compile] out of memory: the name of a folder");
        return;
    }
    cot__program *apart = measure_unlimited(p, &caller) ? keep_loops_apart(p, &caller) : NULL;
    if (apart) limit_to(p, apart, &caller);
    cot__program_release(apart);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool arguments_are_legal(cot_program *p, cot_fn f, int n, const cot_type *types, int m) {
    char text[COT__MESSAGE] = "";
    if (!f) snprintf(text, sizeof text, "[compile] the function is NULL");
    else if (n < 0 || m < 0) snprintf(text, sizeof text, "[compile] a negative number of %s: %d",
                                      n < 0 ? "inputs" : "outputs", n < 0 ? n : m);
    else if (n > 0 && !types) snprintf(text, sizeof text, "[compile] the list of %d types is NULL", n);
    if (!text[0]) return true;
    fail(p, COT_VALUE, text);
    return false;
}

bool cot__options_are_legal(cot_program *p, const cot_compile_options *o) {
    char text[COT__MESSAGE] = "";
    if (o->verify && o->fast)
        snprintf(text, sizeof text, "[compile] verify compares bits, which fast does not keep; ask for one of them");
    else if (o->memory_limit < 0)
        snprintf(text, sizeof text, "[compile] a memory limit of %lld bytes; it must not be negative",
                 (long long)o->memory_limit);
    else if (o->memory_limit && o->native)
        snprintf(text, sizeof text, "[compile] native code takes memory to be compared in, which a memory limit leaves "
                                    "none for; ask for one of them");
    else if (o->spill && !*o->spill)
        snprintf(text, sizeof text, "[compile] spill is \"\"; it must be the name of a folder, or NULL");
    if (text[0]) fail(p, COT_VALUE, text);
    return !text[0];
}

cot_program *cot__program_empty(const cot_allocator *al) {
    cot_program *p = cot__alloc(al, sizeof *p);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    atomic_init(&p->refs, 1);
    cot__lock_open(&p->making);
    cot__lock_open(&p->lock);
    p->al = *al;
    return p;
}

static void take_options(cot_program *p, const cot_compile_options *o) {
    p->plain = o->plain;
    p->fast = o->fast;
    p->wants_native = o->native;
}

cot_compile_options cot__program_options(const cot_program *p) {
    return (cot_compile_options){.allocator = p->al, .plain = p->plain, .fast = p->fast, .native = p->wants_native};
}

cot_program *cot__program_object(cot__program *source, const cot_compile_options *options, bool within) {
    cot_program *p = source ? cot__program_empty(&options->allocator) : NULL;
    if (!p) return cot__program_release(source), NULL;
    p->source = source;
    take_options(p, options);
    optimise(p, within, options->memory_limit != 0);
    if (p->runs) return p;
    cot_program_destroy(p);
    return NULL;
}

cot_program *cot_compile(cot_fn f, void *user, int n, const cot_type *types, int m,
                         const cot_compile_options *options) {
    cot_compile_options defaults = {0};
    return cot__compile(f, user, n, types, m, options ? options : &defaults, false);
}

cot_program *cot__compile(cot_fn f, void *user, int n, const cot_type *types, int m,
                          const cot_compile_options *options, bool smooth) {
    cot_program *p = cot__program_empty(&options->allocator);
    if (!p) return NULL;
    if (!arguments_are_legal(p, f, n, types, m) || !cot__options_are_legal(p, options)) return p;
    cot_tape *t = tape_to_record_on(p, smooth);
    if (t) record(p, t, f, user, n, types, m);
    else fail(p, COT_MEMORY, "[compile] out of memory: a tape to record on");
    cot_tape_destroy(t);
    take_options(p, options);
    p->verified = options->verify ? f : NULL;
    p->verified_user = user;
    optimise(p, false, options->memory_limit != 0);
    cot__program_donate(p, options);
    cot__program_limit(p, options);
    return p;
}
