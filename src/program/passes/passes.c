/* passes.c: all passes, one after the other. */
#include "program/passes/passes.h"

/* What one pass finds may let another find more; after a few rounds it is little. */
enum { ROUNDS = 4 };

#define PASS(name) cot__pass_##name,
static cot__pass *const pass[COT__PASS_COUNT] = {COT__PASSES(PASS)};

/* Bringing operations together changes their order, of which no other pass finds more. */
static bool matters_to(int changed, int k) { return changed != COT__PASS_gather || k == COT__PASS_gather; }

/* Each pass once that may find something: what it looked at was changed since. A pass may find more
 * in what it has made itself. */
static cot__program *one_round(const cot__program *p, const cot__pass_options *o, bool *stale) {
    cot__program *now = cot__program_share(p);
    for (int k = 0; k < COT__PASS_COUNT && now; k++) {
        if (o->without >> k & 1 || !stale[k]) continue;
        cot__program *next = pass[k](now, o);
        stale[k] = false;
        for (int i = 0; i < COT__PASS_COUNT && next != now; i++) stale[i] |= matters_to(k, i);
        cot__program_release(now);
        now = next;
    }
    return now;
}

cot__program *cot__optimise(const cot__program *p, const cot__pass_options *o) {
    cot__program     *now = cot__program_share(p);
    bool              changes = true, stale[COT__PASS_COUNT];
    size_t            longer = 0;
    cot__pass_options all = *o;
    if (!all.longer) all.longer = &longer;
    for (int k = 0; k < COT__PASS_COUNT; k++) stale[k] = true;
    for (int round = 0; round < ROUNDS && changes && now; round++) {
        cot__program *next = one_round(now, &all, stale);
        changes = next != now;
        cot__program_release(now);
        now = next;
    }
    return now;
}
