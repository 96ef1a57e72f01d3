/* passes.c: all passes, one after the other. */
#include "program/passes/passes.h"

/* What one pass finds may let another find more; after a few rounds it is little. */
enum { ROUNDS = 4 };

#define PASS(name) cot__pass_##name,
static cot__pass *const pass[COT__PASS_COUNT] = {COT__PASSES(PASS)};

/* Each pass once. */
static cot__program *one_round(const cot__program *p, const cot__pass_options *o) {
    cot__program *now = cot__program_share(p);
    for (int k = 0; k < COT__PASS_COUNT && now; k++) {
        if (o->without >> k & 1) continue;
        cot__program *next = pass[k](now, o);
        cot__program_release(now);
        now = next;
    }
    return now;
}

cot__program *cot__optimise(const cot__program *p, const cot__pass_options *o) {
    cot__program *now = cot__program_share(p);
    bool          changes = true;
    for (int round = 0; round < ROUNDS && changes && now; round++) {
        cot__program *next = one_round(now, o);
        changes = next != now;
        cot__program_release(now);
        now = next;
    }
    return now;
}
