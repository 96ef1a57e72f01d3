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

void run_program(const program *p, const way *w, outcome *o, double shake, FILE *listing) {
    run r = {
        .program = p, .way = w, .out = o, .listing = listing, .shake = shake, .flags = program_head(p, 0) & HEAD_FLAGS};
    frame   f     = {.run = &r, .stop = program_steps(p)};
    int64_t steps = 0;
    if (w->allocations_fail) r.memory.fail_at = 1 + program_head(p, 4) + 256 * (program_head(p, 5) % 8);
    way_set(w);
    bool smooth = (r.flags & SMOOTH) && (r.flags & SMOOTH_TOO);
    r.tape      = cot_tape_create(
        &(cot_options){.allocator = {counted, &r.memory}, .strict = r.flags & STRICT, .smooth = smooth});
    if (listing)
        fprintf(listing, "%s%s:\n", smooth ? "a smooth tape, " : r.flags & STRICT ? "a strict tape, " : "", w->name);
    if (r.tape) {
        for (int k = 0; k < f.stop; steps++) k = step_run(&f, k);
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

bool trial(const program *p, char *why, size_t size) {
    outcome first = {0};
    bool    right = true;
    for (int k = 0; k < way_count && right; k++) {
        outcome o = {0};
        char    difference[500];
        run_program(p, &ways[k], &o, 0, NULL);
        if (o.wrong[0] && o.rounded && !is_stable(p, &ways[k], &o)) o.wrong[0] = 0;
        if (o.wrong[0]) {
            snprintf(why, size, "%s: %s", ways[k].name, o.wrong);
            right = false;
        } else if (k > 0 && !ways[k].allocations_fail && !(ways[k].drops && o.writes_sources) &&
                   outcome_differs(&first, &o, ways[k].batches, ways[k].batches_run, difference,
                                   sizeof difference)) {
            snprintf(why, size, "'%s' and '%s' differ: %s", ways[0].name, ways[k].name, difference);
            right = false;
        }
        if (k == 0) total.programs++;
        if (k == 0)
            first = o;
        else
            outcome_free(&o);
    }
    outcome_free(&first);
    return right;
}
