/* limit.h: programs whose runs stay within a limit of bytes.
 *
 * What the folder does: decides before the first run what a run keeps, what it computes again
 * where it is read, and what it moves to a file and back, if there is a folder for it. The result
 * is a program like any other, with the same bits, in which some operations stand more than once,
 * and copies mark what is fetched from a file (cot__is_fetch).
 *
 *   units    what is done at once: an operation, or a group of them (units.h)
 *   keeping  what lies in memory, and what is best let go when there is no more room (keeping.h)
 *   again    one walk over the units within a budget, which builds the program (again.h)
 *   limit    the largest budget with which a run that is made has no more bytes than the limit
 *
 * The walk knows lifetimes and sizes, not where values lie; so it is given a budget, and whether
 * the limit holds is seen by planning what it built, as a run would be.
 *
 * May call: base, job, rules, backend, program, its passes. Must not touch: tapes, memory of the
 * user's. */
#ifndef COT_PROGRAM_LIMIT_H
#define COT_PROGRAM_LIMIT_H

#include "backend/backend.h"
#include "program/direct.h"
#include "program/program.h"

/* How it was done. again: the work that is done again, as a share of what it was; lends: the run
 * keeps to the limit where outputs are lent to it as the options say. Otherwise they must not be:
 * rarely that takes less, since values lie elsewhere. */
typedef struct cot__limit_way {
    double again;
    bool   lends;
} cot__limit_way;

typedef struct cot__limit_options {
    const cot_allocator *al;
    const cot__backend  *backend;
    const cot__lent     *lent;
    int64_t              bytes;   /* the limit */
    int64_t              besides; /* bytes that the caller needs for a run besides */
    int64_t              unlimited; /* a run with those, to which outputs are not lent */
    /* The same program in the form of which something is done again, where p does not keep to the
     * limit as it is: p, or one whose values live more shortly. */
    const cot__program  *apart;
    const cot__caller   *caller;
} cot__limit_options;

/* A new owner of the program that keeps to the limit: p itself if it does. NULL after telling the
 * caller: there is no memory, or the limit cannot be reached; then the sentence says which can, and
 * that one is reached when asked for. */
cot__program *cot__limit(const cot__program *p, const cot__limit_options *o, cot__limit_way *how);

/* What a run by the program costs, in operations on numbers, moving to a file and back included. */
double cot__limit_price(const cot__program *p);

/* A new owner of the program that keeps as little as the walk can, whatever has to be computed
 * again for it: p itself if there is none, or no memory. */
cot__program *cot__limit_tightest(const cot__program *p, const cot__backend *backend, const cot_allocator *al);

/* For the tests: bodies of tapes become such programs. It must not show in any result. */
extern bool cot__again_always;

#endif
