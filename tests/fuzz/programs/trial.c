/* trial.c: runs one program in every way, and gives the verdict. */
#include "program.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tally total;

/* malloc that counts, and fails once where it is told to. */
static void *counted(void *user, void *ptr, size_t old_size, size_t new_size) {
    memory *m = user;
    if (new_size == 0) {
        m->used -= ptr ? old_size : 0;
        free(ptr);
        return NULL;
    }
    if (m->fail_at && ++m->calls == m->fail_at) return NULL;
    void *moved = realloc(ptr, new_size);
    if (moved) m->used += new_size - (ptr ? old_size : 0);
    return moved;
}

/* Half of the values that were made in the scope go on, as their copies; the others are gone. */
static void close_scope(frame *f, int from) {
    cot_var keep[MOST_VALUES];
    int     n = 0, kept = from;
    for (int i = from; i < f->count; i += 2) keep[n++] = f->at[i].var;
    if (cot_scope_close(f->run->tape, n, keep) == COT_OK)
        for (int i = 0; i < n; i++) f->at[kept] = f->at[from + 2 * i], f->at[kept++].var = keep[i];
    else kept = f->count;
    f->count = kept;
    outcome_open(f->run->out, "status of a scope");
    outcome_status(f->run->out, f->run->tape);
}

enum { SCOPED = 5 }; /* steps in one */

static int scoped_steps(frame *f, int k) {
    int from = f->count, end = k + SCOPED;
    if (!step_may_be_scoped(f, k)) return step_run(f, k);
    cot_scope_open(f->run->tape, "steps");
    while (k < f->stop && k < end && step_may_be_scoped(f, k)) k = step_run(f, k);
    close_scope(f, from);
    return k;
}

void run_program(const program *p, const way *w, outcome *o, double shake, FILE *listing) {
    run r = {
        .program = p, .way = w, .out = o, .listing = listing, .shake = shake, .flags = program_head(p, 0) & HEAD_FLAGS};
    frame   f     = {.run = &r, .stop = program_steps(p)};
    int64_t steps = 0;
    if (w->allocations_fail) r.memory.fail_at = 1 + program_head(p, 4) + 256 * (program_head(p, 5) % 8);
    way_set(w);
    bool smooth = (r.flags & SMOOTH) && (r.flags & SMOOTH_TOO);
    r.tape      = cot_tape_create(
        &(cot_options){.allocator = {counted, &r.memory}, .strict = r.flags & STRICT, .smooth = smooth,
                       .fast = w->fast});
    if (w->saves) cot_tape_set_precision(r.tape, (cot_precision){.compute = COT_F32, .saved = COT_BF16});
    r.narrow = w->saves; /* gradients are of rounded values, tangents are not */
    if (listing)
        fprintf(listing, "%s%s:\n", smooth ? "a smooth tape, " : r.flags & STRICT ? "a strict tape, " : "", w->name);
    if (r.tape) {
        for (int k = 0; k < f.stop; steps++) k = w->saves ? scoped_steps(&f, k) : step_run(&f, k);
        derive(&f);
    }
    cot_tape_destroy(r.tape);
    way_unset();
    if (r.memory.used != 0) outcome_wrong(o, "%lld bytes were not given back", (long long)r.memory.used);
    for (int k = 0; k < r.lends; k++) free(r.lent[k]);
}

/* A program may amplify rounding, as in the logarithm of the difference of two nearly equal
 * numbers; then forward and reverse mode may give any numbers. At such a point the tangent itself
 * changes when the leaves change by 2^-40 of themselves, by more than the two modes may differ.
 * Such a point is not judged. */
static bool is_stable(const program *p, const way *w, const outcome *o) {
    const double little = 1.0 / (INT64_C(1) << 40), shakes[] = {little, -little, little / 3, -little / 5};
    bool         stable = true;
    for (size_t k = 0; k < sizeof shakes / sizeof *shakes && stable; k++) {
        outcome shaken = {0};
        run_program(p, w, &shaken, shakes[k], NULL);
        stable = fabs(shaken.tangent - o->tangent) <= o->scale / 4;
        outcome_free(&shaken);
    }
    return stable;
}

/* The first of its kind. */
static int reference_of(int k) {
    int first = 0;
    while (ways[first].saves != ways[k].saves || ways[first].fast != ways[k].fast) first++;
    return first;
}

/* Do the bits of this way differ from those of its reference? */
static bool differs(int k, const outcome *first, const outcome *o, char *why, size_t size) {
    const way *w = &ways[k];
    if (reference_of(k) == k || w->allocations_fail || (w->drops && o->writes_sources)) return false;
    return outcome_differs(first, o, w->batches, w->batches_run || w->batches_again, why, size);
}

bool trial(const program *p, char *why, size_t size) {
    outcome first = {0};
    bool    right = true, mixed = program_head(p, 0) & MIXED;
    for (int k = 0; k < way_count && right; k++) {
        outcome o = {0};
        char    difference[500];
        if ((ways[k].saves || ways[k].fast) && !mixed) continue; /* they do nothing to f64 */
        run_program(p, &ways[k], &o, 0, NULL);
        if (o.wrong[0] && o.rounded && !is_stable(p, &ways[k], &o)) o.wrong[0] = 0;
        if (o.wrong[0]) {
            snprintf(why, size, "%s: %s", ways[k].name, o.wrong);
            right = false;
        } else if (differs(k, &first, &o, difference, sizeof difference)) {
            snprintf(why, size, "'%s' and '%s' differ: %s", ways[reference_of(k)].name, ways[k].name, difference);
            right = false;
        }
        if (k == 0) total.programs++;
        if (reference_of(k) == k) { /* the rows of a kind follow each other */
            outcome_free(&first);
            first = o;
        } else
            outcome_free(&o);
    }
    outcome_free(&first);
    return right;
}
