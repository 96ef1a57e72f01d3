/* along_parts.h: the inside of along.h. Each value of a run has a row of its own, with a place for
 * each of sixteen runs. Instructions fall into three parts, each done for sixteen runs before the
 * next:
 *   ahead    what depends on no run before: in lanes
 *   core     what the next run waits for, and all that lanes cannot do: run by run
 *   behind   what the core does not wait for, such as sums over all runs: in lanes
 * In the gradient of a body the values are ahead, the adjoints of what is carried are the core, and
 * those of constants are behind. A run reads what the one before it hands on one place to the left
 * of where that has put it: nothing is copied. */
#ifndef COT_PROGRAM_ALONG_PARTS_H
#define COT_PROGRAM_ALONG_PARTS_H

#include "program/scalars/along.h"

enum { COT__LANES = 16, COT__MOST_LINES = 256, COT__MOST_ROWS = 256, COT__NOWHERE = 0xffff };
enum { COT__LINE_mul = 2 * OP_mul, COT__LINE_smul = 2 * OP_smul, COT__LINE_add = 2 * OP_add,
       COT__LINE_sub = 2 * OP_sub, COT__LINE_neg = 2 * OP_neg, COT__LINE_total = COT__SCALAR_CODES };

/* An instruction by itself: operands and result are numbers of slots while lists are made, then
 * places in rows. Of a total, z = z of the run before + x[0]. */
typedef struct cot__line { uint16_t code, z, x[3]; } cot__line;

/* How an input comes to a run: it is the same for all; it moves; the run before hands it on as
 * output k. */
enum { COT__WORD_STAYS, COT__WORD_MOVES, COT__WORD_HANDED };

struct cot__along {
    /* what the lists were made for, if they were: how each input comes, and the slots of outputs */
    uint8_t     comes[COT__MOST_WORDS];
    uint16_t    from[COT__MOST_WORDS];
    uint32_t    inputs, outputs;
    bool        made, pays;
    /* the places of inputs and outputs */
    uint16_t    in[COT__MOST_WORDS], out[COT__MOST_WORDS];
    /* lines that are done once; ahead; behind */
    cot__line   lane[COT__MOST_LINES];
    uint32_t    once, ahead, lanes;
    cot__scalar core[COT__MOST_LINES + 1];
    double     *row;
    char        memory[COT__MOST_ROWS * COT__LANES * sizeof(double) + 64];
};

/* Makes the lists for inputs that come as `comes` says. False: it would not pay. */
bool cot__along_plan(cot__along *a, const cot__scalar *list, const cot__slot *slots, const cot__word *in,
                     const cot__word *out);

#endif
