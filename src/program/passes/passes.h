/* passes.h: passes: a program in, a program out, the same bits.
 *
 * What the folder does: makes programs smaller and cheaper before they are planned. A pass takes an
 * immutable program and gives another one, or the same one where it finds nothing to do. It keeps
 * every bit of every output (all NaN count as one), the inputs and outputs with their order, and
 * the effects with theirs. Each is one file and can be left out. One of them, fast.c, keeps no
 * bits: it does nothing unless that is asked for.
 *
 * Each pass walks over the operations a bounded number of times and recurses over nothing: programs
 * have millions of operations.
 *
 * May call: base, job, rules, backend, program. Must not touch: tapes, nodes, storages, memory of
 * the user's. */
#ifndef COT_PASSES_H
#define COT_PASSES_H

#include "program/program.h"

/* Every pass, in the order in which they run. */
#define COT__PASSES(_)                                                                                                 \
    _(dead) _(checks) _(same) _(loops) _(constants) _(identities) _(factors) _(views) _(turns) _(readers) _(fast)      \
    _(remake) _(gather) _(bodies)

#define COT__PASS_NUMBER(name) COT__PASS_##name,
enum { COT__PASSES(COT__PASS_NUMBER) COT__PASS_COUNT };

typedef struct cot__pass_options {
    const cot_allocator       *al; /* of the new program; NULL: malloc */
    const cot__caller         *caller;
    const struct cot__backend *backend; /* computes constants; NULL: they stay */
    bool                       fast;    /* what IEEE does not allow may be done, see fast.c */
    bool                       within;  /* inputs are what another program has computed */
    uint32_t                   without; /* bit COT__PASS_NAME: that pass is left out */
    size_t                    *longer;  /* see loops.c, of all rounds; NULL: of this one */
} cot__pass_options;

/* A new owner of the program that the pass made, or of p itself if there was nothing to do. NULL
 * after telling the caller that there is no memory; p is as it was. */
typedef cot__program *cot__pass(const cot__program *p, const cot__pass_options *o);

#define COT__PASS_DECLARE(name) cot__pass cot__pass_##name;
COT__PASSES(COT__PASS_DECLARE)
/* No arithmetic on 16-bit floats: what is left of them are casts and moves. Asked for by exports
 * alone. */
cot__pass cot__pass_halves;

/* Bytes of arrays from which on the pass remake takes any recipe, not only those with kernels of
 * their own. It is a variable only for the tests. */
extern size_t cot__remake_any_from;

/* All passes in order, and again while they find something, a bounded number of times. */
cot__program *cot__optimise(const cot__program *p, const cot__pass_options *o);

#endif
