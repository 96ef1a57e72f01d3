/* cost.h: what derivatives cost: operations, sweeps and memory of forward and reverse mode.
 *
 * One operation is one arithmetic operation, comparison, choice or call of an elementary function
 * on one element. Moving data does not count. Elementwise operations are counted in the formulas of
 * rules.def, the others by their sizes, as their records say. In sweeps, the second and each
 * further contribution to an adjoint or tangent costs one addition for each element.
 *
 * Bytes are those of values that must be held at once:
 *   evaluation     a value is freed after its last use, but leaves and constants stay
 *   forward mode   a tangent is held beside every active value
 *   reverse mode   all values that backward rules read are held until the sweep, and adjoints
 *                  during the sweep
 *
 * May call: base, rules, tape, JSON. Must not touch: values: costs follow from shapes. */
#ifndef COT_COST_H
#define COT_COST_H

#include "trace/json/json.h"

typedef struct cot__cost {
    int64_t inputs, outputs;     /* in elements */
    /* only sizes are known: the unit of operations is one evaluation of the function */
    bool    abstract;
    double  function_operations, function_bytes;
    /* operations of one sweep, without the function itself; NaN (in JSON null): impossible */
    double  forward_sweep, reverse_sweep;
    /* function and all sweeps, one for each input */
    double  forward_operations, forward_bytes;
    double  reverse_operations, reverse_bytes; /* the same, with one sweep for each output */
    int     cheaper;             /* -1 forward, 0 equal, 1 reverse */
    /* the number of outputs at which both modes cost the same, with these inputs; NaN: there is
     * none */
    double  crossing;
    char    why[256];
} cot__cost;

/* The cost of y by n inputs (0: by all leaves that y depends on). False, with a sentence in why,
 * when memory is short or y is not a value of a tape. */
bool cot__cost_of(cot__cost *c, cot_var y, int n, const cot_var *inputs, char why[512]);
/* The cost for any function from n inputs to m outputs. */
void cot__cost_of_sizes(cot__cost *c, int64_t n, int64_t m);

/* Operations and bytes of the value of one node. A view has 0 bytes. */
void cot__cost_of_node(const cot_tape *t, uint32_t node, int64_t *operations, int64_t *bytes);

void cot__cost_json(cot__json *j, const cot__cost *c); /* an object */
/* False when memory is short. */
bool cot__cost_table(FILE *out, const cot__cost *c);

#endif
