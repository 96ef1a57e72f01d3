/* run.c: running a program on plain arrays. */
#include "compile/compile.h"

#include "backend/cpu/table/cpu.h"
#include "compile/verify.h"

#include <stdio.h>
#include <string.h>

/* ---- making one ------------------------------------------------------------------------------ */

static void heard(const cot__caller *c, cot_status code, const char *text) {
    cot_run *r = c->to;
    if (r->status != COT_OK) return;
    r->status = code;
    snprintf(r->message, sizeof r->message, "%s", text);
}
static void ignored(const cot__caller *c, const char *text) { (void)c, (void)text; }

/* What went wrong, "[…] fact; consequence", as a note: why runs go without the disk. */
static void note_fact(const cot__caller *c, const char *message) {
    char        text[COT__MESSAGE];
    const char *fact = strstr(message, "] ");
    fact = fact ? fact + 2 : message;
    const char *end = strstr(fact, "; what lay there");
    int         length = (int)(end ? end - fact : (ptrdiff_t)strlen(fact));
    snprintf(text, sizeof text, "[spill] %.*s; values are computed again", length, fact);
    c->note(c, text);
}
static void noted(const cot__caller *c, const char *text) {
    cot_run *r = c->to;
    snprintf(r->note, sizeof r->note, "%s", text);
}

/* Moves nothing. A call, to which nothing is lent, has no limit to keep to. */
static cot__run *make_resident(cot_program *p, const cot__lent *lent, const cot__caller *caller) {
    cot__lent without = lent ? *lent : (cot__lent){0};
    without.spill = NULL;
    return cot__run_create_with(p->resident ? p->resident : p->runs, cot__program_backend(p), &p->al, NULL, &without,
                                caller);
}

cot__run *cot__program_make_run(cot_program *p, const cot__backend *backend, const cot__lent *lent,
                                const cot__caller *caller) {
    bool                  here = cot__is_cpu(backend);
    const cot__run_parts *parts = here ? cot__native_parts(p->native) : NULL;
    if (here) backend = cot__program_backend(p);
    if (!here || !p->spill) return cot__run_create_with(p->runs, backend, &p->al, parts, lent, caller);
    cot__heard  h = {COT_OK, ""};
    cot__caller quiet = cot__heard_by(&h, caller->name);
    cot__lent   with = lent ? *lent : (cot__lent){.spill = p->spill};
    cot__run   *r = cot__run_create_with(p->runs, backend, &p->al, NULL, &with, &quiet);
    if (r) return r;
    if (p->resident && lent) note_fact(caller, h.message);
    if (p->resident || !lent) return make_resident(p, lent, caller);
    caller->fail(caller, h.status, h.message);
    return NULL;
}

bool cot__program_go(cot_program *p, const cot__backend *backend, cot__run *r, const void *const *inputs,
                     void *const *outputs) {
    if (!cot__is_cpu(backend)) return cot__run_go(r, inputs, outputs);
    bool   due = cot__native_look(p->native, false) == COT__NATIVE_LOADED;
    size_t bytes = due ? cot__native_aside(p->native) : 0;
    void  *aside = bytes ? cot__alloc(&p->al, bytes) : NULL;
    bool   ok = cot__native_go(p->native, r, aside, inputs, outputs);
    cot__free(&p->al, aside, bytes);
    return ok;
}

/* Without this memory a run goes by the library until another one has compared. */
static void take_aside(cot_run *r) {
    r->aside_bytes = r->run ? cot__native_aside(r->p->native) : 0;
    r->aside = r->aside_bytes ? cot__alloc(&r->p->al, r->aside_bytes) : NULL;
}

static void give_aside(cot_run *r) {
    cot__free(&r->p->al, r->aside, r->aside_bytes);
    r->aside = NULL;
}

cot_run *cot_run_create(cot_program *p) {
    cot_run *r = p ? cot__alloc(&p->al, cot__run_object(p)) : NULL;
    if (!r) return NULL;
    memset(r, 0, cot__run_object(p));
    for (int k = 0; k < cot_program_outputs(p); k++) r->laid[k].sorted = k;
    r->p = cot__program_counted(p);
    cot__caller caller = {"run_create", r, heard, noted, NULL};
    if (p->status != COT_OK) heard(&caller, p->status, p->message);
    else {
        cot__lent lent = cot__program_lent(p);
        r->run = cot__program_make_run(p, &cot__cpu_backend, &lent, &caller);
    }
    take_aside(r);
    return r;
}

void cot_run_destroy(cot_run *r) {
    if (!r) return;
    cot_program *p = r->p;
    cot__run_destroy(r->run);
    give_aside(r);
    cot__run_destroy(r->sparing);
    cot__free(&p->al, r, cot__run_object(p));
    cot_program_destroy(p);
}

/* The one that did the last run. */
static const cot__run *last(const cot_run *r) { return r->spared ? r->sparing : r->run; }

/* ---- what it says ---------------------------------------------------------------------------- */

cot_status cot_run_status(const cot_run *r) {
    if (!r) return COT_MEMORY;
    return r->status != COT_OK || !r->run ? r->status : cot__run_status(last(r));
}
const char *cot_run_message(const cot_run *r) {
    if (!r) return "the run is NULL: cot_run_create was given no program, or found no memory";
    return r->status != COT_OK || !r->run ? r->message : cot__run_message(last(r));
}
const char *cot_run_note(const cot_run *r) {
    const char *note = r && r->run ? cot__run_note(last(r)) : "";
    return *note || !r || !r->run ? note : r->note;
}
size_t cot_run_bytes(const cot_run *r) {
    if (!r) return 0;
    size_t runs = (r->run ? cot__run_bytes(r->run) : 0) + (r->sparing ? cot__run_bytes(r->sparing) : 0);
    return cot__run_object(r->p) + runs + (r->aside ? r->aside_bytes : 0);
}

/* ---- running --------------------------------------------------------------------------------- */

static bool refuse(cot_run *r, const char *format, const char *what, int k) {
    r->status = COT_VALUE;
    snprintf(r->message, sizeof r->message, format, what, k);
    return false;
}

static int64_t size_of(cot_type type) { return cot__count(type.shape.ndim, type.shape.dim); }
static int64_t bytes_of(cot_type type) { return size_of(type) * cot__dtype_size(type.dtype); }

/* Those of a training loop lie where they lay. (Where large outputs may be made depends on inputs,
 * too, and each run by itself remembers both: lie_as_before of program/run.c.) */
static bool lie_as_before(const cot_run *r, int m, void *const *outputs) {
    if (!r->apart) return false;
    for (int k = 0; k < m; k++)
        if (r->laid[k].at != outputs[k]) return false;
    return true;
}

/* Of two at one place the later one: so an error names the same two, wherever they lay before. */
static bool lies_behind(const cot__laid *laid, int a, int b) {
    uintptr_t of_a = (uintptr_t)laid[a].at, of_b = (uintptr_t)laid[b].at;
    return of_a > of_b || (of_a == of_b && a > b);
}

/* By insertion at shrinking distances: in place, and one pass for what is sorted. */
static void sort_by_place(cot__laid *laid, int m) {
    for (int far = m, step = 0; step != 1;) {
        step = far = far > 2 ? (int)((int64_t)far * 5 / 11) : 1;
        for (int i = step; i < m; i++) {
            int k = i, moved = laid[i].sorted;
            for (; k >= step && lies_behind(laid, laid[k - step].sorted, moved); k -= step)
                laid[k].sorted = laid[k - step].sorted;
            laid[k].sorted = moved;
        }
    }
}

static bool refuse_pair(cot_run *r, int a, int b) {
    r->status = COT_VALUE;
    snprintf(r->message, sizeof r->message,
             "[program_run] outputs[%d] and outputs[%d] overlap; each needs memory of its own", a < b ? a : b,
             a < b ? b : a);
    return false;
}

/* Neighbours in memory are compared, so many outputs take little longer than few. */
static bool outputs_lie_apart(cot_run *r, int m, void *const *outputs) {
    int     before = -1;
    int64_t bytes = 0;
    for (int k = 0; k < m; k++) r->laid[k].at = outputs[k];
    sort_by_place(r->laid, m);
    r->apart = false;
    for (int i = 0; i < m; i++) {
        int     k = r->laid[i].sorted;
        int64_t bytes_of_k = outputs[k] ? bytes_of(cot_program_output_type(r->p, k)) : 0;
        if (bytes_of_k == 0) continue;
        if (cot__bytes_overlap(before < 0 ? NULL : outputs[before], bytes, outputs[k], bytes_of_k))
            return refuse_pair(r, before, k);
        before = k, bytes = bytes_of_k;
    }
    return r->apart = true;
}

static bool arguments_are_legal(cot_run *r, const void *const *inputs, void *const *outputs) {
    int n = cot_program_inputs(r->p), m = cot_program_outputs(r->p);
    if (n && !inputs) return refuse(r, "[program_run] the list of %s is NULL; it has %d elements", "inputs", n);
    if (m && !outputs) return refuse(r, "[program_run] the list of %s is NULL; it has %d elements", "outputs", m);
    for (int k = 0; k < n; k++)
        if (!inputs[k] && size_of(cot_program_input_type(r->p, k)) > 0)
            return refuse(r, "[program_run] %s[%d] is NULL; every input must be given", "inputs", k);
    return m < 2 || lie_as_before(r, m, outputs) || outputs_lie_apart(r, m, outputs);
}

/* Is native code to be compared now? Then the inputs are read twice. */
static bool is_comparing(const cot_run *r) {
    return r->aside && cot__native_look(r->p->native, false) == COT__NATIVE_LOADED;
}

static bool lie_together(const void *a, cot_type of_a, const void *b, cot_type of_b) {
    return cot__bytes_overlap(a, bytes_of(of_a), b, bytes_of(of_b));
}

/* Why output k cannot be made where it is wanted; false: the input that lies there can be
 * donated. */
static bool tell_obstacle(const cot_run *r, int k, const void *const *inputs, void *const *outputs, char *to,
                          size_t room) {
    const cot_program *p = r->p;
    cot_type           type = cot_program_output_type(p, k);
    int                i = 0, n = cot_program_inputs(p);
    if (!outputs[k]) return snprintf(to, room, "it is NULL"), true;
    for (; i + 1 < n && !lie_together(outputs[k], type, inputs[i], cot_program_input_type(p, i));) i++;
    bool donated = p->donated && p->donated[i];
    snprintf(to, room, "input %d lies there and is still needed%s", i, donated ? ", though it is donated" : "");
    return donated;
}

/* A limit leaves no memory to make the output elsewhere first. */
static bool is_unfit(cot_run *r, bool ok, const void *const *inputs, void *const *outputs) {
    char why[100];
    if (ok || !r->run || !cot__run_unfit(r->run)) return ok;
    int  k = (int)cot__run_unfit_output(r->run);
    bool final = tell_obstacle(r, k, inputs, outputs, why, sizeof why);
    r->status = COT_MEMORY;
    snprintf(r->message, sizeof r->message,
             "[program_run] output %d cannot be made where it is wanted: %s; under a memory limit it has no other "
             "place, so give it memory of its own%s",
             k, why, final ? "" : " or donate that input");
    return false;
}

/* Were no inputs written over? */
static bool are_inputs_whole(const cot_run *r, const void *const *inputs, void *const *outputs) {
    for (int i = 0; i < cot_program_inputs(r->p); i++)
        for (int k = 0; k < cot_program_outputs(r->p); k++)
            if (cot__bytes_overlap(inputs[i], bytes_of(cot_program_input_type(r->p, i)), outputs[k],
                                   bytes_of(cot_program_output_type(r->p, k))))
                return false;
    return !r->p->donated;
}

/* From now on runs move nothing. False: there is no memory for that yet. The limit has none for two
 * at once. */
static bool leave_disk(cot_run *r) {
    cot__caller caller = {"program_run", r, heard, noted, NULL};
    cot__lent   lent = cot__program_lent(r->p);
    char        text[COT__MESSAGE];
    snprintf(text, sizeof text, "the file in %s is that of the parent process", r->p->spill);
    if (r->run) note_fact(&caller, cot__run_lost(r->run) ? cot__run_message(r->run) : text);
    cot__run_destroy(r->run);
    r->run = make_resident(r->p, &lent, &caller);
    r->left_disk = true;
    return r->run != NULL;
}

/* The disk has failed: the run begins again without, if it can. Functions of the user's run
 * once. */
static bool go_without_disk(cot_run *r, const void *const *inputs, void *const *outputs) {
    cot__caller caller = {"program_run", r, heard, ignored, NULL};
    if (!r->p->resident) return false;
    heard(&caller, cot__run_status(r->run), cot__run_message(r->run));
    if (!leave_disk(r) || r->p->runs->bound || !are_inputs_whole(r, inputs, outputs)) return false;
    r->status = COT_OK;
    return cot__run_go(r->run, inputs, outputs);
}

static bool go_limited(cot_run *r, const void *const *inputs, void *const *outputs) {
    if (r->p->resident && cot__run_disk_is_broken(r->run) && !leave_disk(r)) return false;
    bool ok = cot__native_go(r->p->native, r->run, NULL, inputs, outputs);
    if (!ok && cot__run_lost(r->run)) ok = go_without_disk(r, inputs, outputs);
    return is_unfit(r, ok, inputs, outputs);
}

/* Where inputs and outputs lie so that donated memory cannot be used, or where inputs are still
 * needed, another run does it. */
static bool go(cot_run *r, const void *const *inputs, void *const *outputs) {
    cot__caller  caller = {"program_run", r, heard, ignored, NULL};
    cot__native *native = r->p->native;
    r->spared = false;
    if (r->p->memory_limit) return go_limited(r, inputs, outputs);
    if (!r->p->donated) return cot__native_go(native, r->run, r->aside, inputs, outputs);
    if (!is_comparing(r)) {
        if (cot__native_go(native, r->run, NULL, inputs, outputs)) return true;
        if (!cot__run_unfit(r->run)) return false;
    }
    if (!r->sparing) r->sparing = cot__program_make_run(r->p, &cot__cpu_backend, NULL, &caller);
    r->spared = r->sparing != NULL;
    return r->spared && cot__native_go(native, r->sparing, r->aside, inputs, outputs);
}

/* The function runs first: outputs may lie where inputs lie. */
static void run_verified(cot_run *r, const void *const *inputs, void *const *outputs) {
    cot__caller    caller = {"program_run", r, heard, ignored, NULL};
    cot__verifying v = cot__verify_open(r->p, inputs);
    bool           ok = go(r, inputs, outputs);
    if (ok) cot__verify(&v, (const void *const *)outputs, &caller);
    cot__verify_close(&v);
}

cot_status cot_program_run(cot_run *r, const void *const *inputs, void *const *outputs) {
    if (!r || (!r->run && !r->left_disk)) return cot_run_status(r);
    r->status = COT_OK;
    if (!r->run && !leave_disk(r)) return r->status;
    if (!arguments_are_legal(r, inputs, outputs)) return r->status;
    if (r->p->verified) run_verified(r, inputs, outputs);
    else go(r, inputs, outputs);
    if (r->aside && !cot__native_aside(r->p->native)) give_aside(r);
    return cot_run_status(r);
}
