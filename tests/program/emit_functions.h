/* emit_functions.h: functions as programs that are exported, with what they give here. */
#ifndef COT_EMIT_FUNCTIONS_H
#define COT_EMIT_FUNCTIONS_H

#include "rules/elementwise_ids.h"
#include "rules/structural_ids.h"
#include "samples/samples.h"
#include "support/emit_test.h"

enum { MOST = 3 * OP_elementwise_count, MOST_INPUTS = 40, ROOM = 1 << 15 };

/* Operations that exported programs have had. */
static uint8_t ran[OP_count];

/* As cot_compile makes it, which has programs of ways back, too. NULL: it cannot be one. */
static cot__program *compiled(cot_tape *t, cot_fn fn, void *user, int n, const cot_var *xs, int m) {
    cot__not_yet not_yet = {NULL, NULL};
    t->mode.compiling = true;
    cot__region *r = cot__region_record(t, "test", fn, user, n, xs, m);
    cot__program *p = r ? cot__region_lower(t, r, NULL, &not_yet) : NULL;
    t->mode.compiling = false;
    return p;
}

static void read_values(cot_tape *t, int n, const cot_var *xs, void **to, char (*room)[ROOM]) {
    for (int k = 0; k < n; k++) {
        cot__view v = cot__look(t, cot__index(xs[k]));
        to[k] = room[k];
        cot__read_view(t, "test", &v, v.dtype, to[k], cot__view_size(&v));
    }
}

static bool run_program(cot_tape *t, const char *name, const cot__program *p, void **in, void **out) {
    cot__run *run = prepare(t, name, p);
    bool      ok = run && cot__run_go(run, (const void *const *)in, out);
    cot__run_destroy(run);
    return ok;
}

/* The program of a function at these values, and what it gives here when it is just called, or,
 * `runs`, when the program is run. */
static bool runs;
static bool add_function(emitted *e, cot_tape *t, const char *name, cot_fn fn, void *user, int n, const cot_var *xs,
                         int m) {
    static char   in_room[MOST_INPUTS][ROOM], out_room[MOST][ROOM];
    void         *in[MOST_INPUTS], *out[MOST];
    cot_var       ys[MOST];
    emit_refusal  why = {""};
    cot__program *p = compiled(t, fn, user, n, xs, m);
    bool          ok = p && p->inputs == (uint32_t)n && fn(n, xs, m, ys, user) == 0 && cot_tape_status(t) == COT_OK;
    if (ok) read_values(t, n, xs, in, in_room), read_values(t, m, ys, out, out_room);
    ok = ok && (!runs || run_program(t, name, p, in, out));
    ok = ok && emitted_add(e, p, false, in, out, &why);
    for (uint32_t k = 0; ok && k < p->operations; k++) ran[p->operation[k].op] = 1;
    if (!ok) test_note("%s: %s %s", name, p ? "its program is refused" : "it is no program", why.text);
    cot__program_release(p);
    return ok;
}

/* Numbers as a leaf of this dtype, or as a constant where it has no leaves. */
static cot_var leaf_of(cot_tape *t, cot_dtype dtype, cot_shape shape, const double *data) {
    static char room[1][ROOM];
    void       *raw;
    cot_var     cast = cot_cast(cot_data(t, COT_F64, shape, data), dtype);
    read_values(t, 1, &cast, &raw, room);
    return (cot__dtype_is_float(dtype) ? cot_tensor : cot_data)(t, dtype, shape, raw);
}

static void inputs_of(cot_tape *t, const test_function *f, cot_dtype dtype, cot_var *xs) {
    for (int k = 0; k < f->n; k++) xs[k] = leaf_of(t, dtype, f->in[k].shape, f->in[k].data);
}

/* Several functions as one program, since what a compiler takes its time for is the file. */
typedef struct group { test_function f[24]; int count, inputs; } group;

#endif
