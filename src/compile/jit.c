/* jit.c: functions that are compiled when they are called. The inputs' types of a program are its
 * key, so a cache is a list of programs. */
#include "compile/compile.h"

#include "ops/structural.h"
#include "tape/region.h"
#include "tape/tape.h"

#include <string.h>

static const char NAME[] = "jit_call";
enum { MOST_PROGRAMS = 16, MOST_UNDERWAY = 256 };

typedef struct entry {
    cot_program *p; /* counted */
    uint64_t     called;
} entry;

struct cot_jit {
    cot_fn              f;
    void               *user;
    cot_compile_options options;
    char               *spill; /* that of the options */
    int                 most;
    cot__lock           lock; /* of all below */
    entry              *entries;
    int                 count;
    uint64_t            calls;
    int64_t             compiled;
    /* compilations, one within the other or of other threads */
    int                 underway;
};

/* ---- its life -------------------------------------------------------------------------------- */

cot_jit *cot_jit_create(cot_fn f, void *user, const cot_jit_options *options) {
    cot_jit_options defaults = {0};
    if (!options) options = &defaults;
    const cot_allocator *al = &options->compile.allocator;
    cot_jit             *j = cot__alloc(al, sizeof *j);
    if (!j) return NULL;
    *j = (cot_jit){.f = f, .user = user, .options = options->compile};
    j->options.spill = j->spill = cot__folder_copy(al, options->compile.spill);
    if (options->compile.spill && !j->spill) return cot__free(al, j, sizeof *j), NULL;
    /* calls write over nothing, and the list need not live as long as this does */
    j->options.donate = NULL;
    j->options.donations = 0;
    j->most = options->programs ? options->programs : MOST_PROGRAMS;
    cot__lock_open(&j->lock);
    return j;
}

void cot_jit_destroy(cot_jit *j) {
    if (!j) return;
    cot_allocator al = j->options.allocator;
    for (int k = 0; k < j->count; k++) cot_program_destroy(j->entries[k].p);
    if (j->entries) cot__free(&al, j->entries, (size_t)j->most * sizeof *j->entries);
    cot__lock_close(&j->lock);
    cot__folder_free(&al, j->spill);
    cot__free(&al, j, sizeof *j);
}

int64_t cot_jit_compiled(const cot_jit *j) {
    cot_jit *locked = (cot_jit *)(uintptr_t)j;
    if (!j) return 0;
    cot__lock_take(&locked->lock);
    int64_t compiled = j->compiled;
    cot__lock_give(&locked->lock);
    return compiled;
}

/* ---- finding a program ----------------------------------------------------------------------- */

static bool is_for(const cot_program *p, int n, const cot_type *types, int m) {
    if (cot_program_inputs(p) != n || cot_program_outputs(p) != m) return false;
    for (int k = 0; k < n; k++) {
        cot_type type = cot_program_input_type(p, k);
        if (type.dtype != types[k].dtype || !cot__same_shape(&type.shape, &types[k].shape)) return false;
    }
    return true;
}

/* Under the lock: the program, with one more owner; NULL: there is none. */
static cot_program *find(cot_jit *j, int n, const cot_type *types, int m) {
    for (int k = 0; k < j->count; k++)
        if (is_for(j->entries[k].p, n, types, m)) {
            j->entries[k].called = ++j->calls;
            return cot__program_counted(j->entries[k].p);
        }
    return NULL;
}

/* Under the lock: keeps p, in the place of the one that was called longest ago if all are taken.
 * Returns that one. Without memory for the list p is just not kept. */
static cot_program *keep(cot_jit *j, cot_program *p) {
    cot_program *gone = NULL;
    int          at = 0;
    if (!j->entries) j->entries = cot__alloc(&j->options.allocator, (size_t)j->most * sizeof *j->entries);
    if (!j->entries) return NULL;
    if (j->count < j->most) at = j->count++;
    else {
        for (int k = 1; k < j->count; k++)
            if (j->entries[k].called < j->entries[at].called) at = k;
        gone = j->entries[at].p;
    }
    j->entries[at] = (entry){cot__program_counted(p), ++j->calls};
    return gone;
}

/* The function is compiled without the lock, because it may call this cot_jit itself. If another
 * thread has compiled the same meanwhile, its program stays. NULL: the tape was told. */
static cot_program *program_for(cot_jit *j, cot_tape *t, int n, const cot_type *types, int m) {
    cot__lock_take(&j->lock);
    cot_program *p = find(j, n, types, m), *gone = NULL;
    bool         endless = !p && j->underway == MOST_UNDERWAY;
    j->underway += !p && !endless;
    cot__lock_give(&j->lock);
    if (p) return p;
    if (endless) {
        cot__fail(t, COT_VALUE, "[%s] %d programs of this cot_jit are being compiled; its function shall not call it "
                  "with the same types without end", NAME, MOST_UNDERWAY);
        return NULL;
    }
    p = cot_compile(j->f, j->user, n, types, m, &j->options);
    if (!p) cot__fail(t, COT_MEMORY, "[%s] out of memory: a program", NAME);
    cot__lock_take(&j->lock);
    j->underway--;
    j->compiled++;
    cot_program *other = find(j, n, types, m);
    if (!other && p && p->status == COT_OK) gone = keep(j, p);
    cot__lock_give(&j->lock);
    cot_program_destroy(gone);
    if (!other) return p;
    cot_program_destroy(p);
    return other;
}

/* ---- calling --------------------------------------------------------------------------------- */

/* The dtype of numbers among the xs: the widest of the others, floats or integers. */
static cot_dtype number_dtype(int n, const cot_var *xs, const cot_type *types, bool real) {
    bool      some = false;
    cot_dtype dtype = real ? COT_F64 : COT_I64;
    for (int k = 0; k < n; k++) {
        cot_dtype d = types[k].dtype;
        if (cot__is_number(xs[k]) || d == COT_BOOL || cot__dtype_is_float(d) != real) continue;
        dtype = some ? cot__dtype_promote(dtype, d) : d;
        some = true;
    }
    return dtype;
}

static bool find_types(cot_tape *t, int n, const cot_var *xs, cot_type *types) {
    for (int k = 0; k < n; k++) {
        uint32_t i;
        if (cot__is_number(xs[k])) continue;
        if (!cot__enter_listed(t, xs[k], NAME, "xs", k, "", &i)) return false;
        types[k] = (cot_type){cot__dtype_at(&t->nodes[i]), cot__shape_at(t, i)};
    }
    for (int k = 0; k < n; k++)
        if (cot__is_number(xs[k])) {
            bool real = (uintptr_t)xs[k].tape != 2; /* else it is a whole number */
            types[k] = (cot_type){number_dtype(n, xs, types, real), {0, {0}}};
        }
    return true;
}

static bool call(cot_jit *j, cot_tape *t, int n, const cot_var *xs, int m, cot_var *ys) {
    size_t    bytes = ((size_t)n + 1) * sizeof(cot_type);
    cot_type *types = cot__alloc(&t->al, bytes);
    if (!types) return cot__fail(t, COT_MEMORY, "[%s] out of memory: the types of %d inputs", NAME, n), false;
    if (find_types(t, n, xs, types)) {
        cot_program *p = program_for(j, t, n, types, m);
        if (p) cot_program_call(p, n, xs, m, ys);
        cot_program_destroy(p);
    }
    cot__free(&t->al, types, bytes);
    return t->status == COT_OK;
}

static bool call_legal(cot_tape *t, const cot_jit *j, int n, const cot_var *xs, int m, const cot_var *ys) {
    if (!j) return cot__fail(t, COT_VALUE, "[%s] the cot_jit is NULL", NAME), false;
    if (j->most > 0) return cot__check_call(t, NAME, j->f, n, xs, m, ys);
    return cot__fail(t, COT_VALUE, "[%s] programs is %d in the options; it must not be negative", NAME, j->most), false;
}

cot_status cot_jit_call(cot_jit *j, int n, const cot_var *xs, int m, cot_var *ys) {
    cot_tape *t = cot__tape_of(n > 0 && xs ? n : 0, xs);
    cot_var   none = cot__invalid(n > 0 && xs ? n : 0, xs);
    bool      done = t && call_legal(t, j, n, xs, m, ys) && call(j, t, n, xs, m, ys);
    for (int k = 0; !done && ys && k < m; k++) ys[k] = none; /* ys may be where the xs were */
    return t ? t->status : cot__status_of(n, xs);
}

int cot_jit_fn(int n, const cot_var *xs, int m, cot_var *ys, void *jit) {
    return cot_jit_call(jit, n, xs, m, ys) == COT_OK ? 0 : 1;
}
