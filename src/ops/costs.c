/* costs.c: the operations of the value of one structural node, from its record (cot__op_cost) and
 * the shapes of its operands. */
#include "ops/costs.h"
#include "base/math/elementary.h"

#include <math.h>

double cot__operand_size(const cot_tape *t, uint32_t node, int k) {
    const cot__node *n = &t->nodes[node];
    return k < cot__nargs(n) && cot__arg(n, k) != COT__NONE ? (double)cot__size_at(t, cot__arg(n, k)) : 0;
}

double cot__operand_extent(const cot_tape *t, uint32_t node, int k, int axis) {
    const cot__node *n = &t->nodes[node];
    if (k >= cot__nargs(n) || cot__arg(n, k) == COT__NONE) return 1;
    cot_shape shape = cot__shape_at(t, cot__arg(n, k));
    if (axis < 0) axis += shape.ndim;
    return axis >= 0 && axis < shape.ndim ? (double)shape.dim[axis] : 1;
}

double cot__halvings(double n) { return n > 1 ? ceil(cot__log2(n)) : 1; }

/* rows · columns · the smaller of both, over all matrices of the first operand. */
static double cubes(const cot_tape *t, uint32_t node) {
    double rows = cot__operand_extent(t, node, 0, -2), columns = cot__operand_extent(t, node, 0, -1);
    double small = rows < columns ? rows : columns;
    return rows * columns > 0 ? cot__operand_size(t, node, 0) / (rows * columns) * rows * columns * small : 0;
}

double cot__cost_of_value(const cot_tape *t, uint32_t node) {
    const cot__op_cost *c = &cot__op_of(t->nodes[node].op)->cost;
    double              z = (double)cot__size_at(t, node), sum = c->more ? c->more(t, node) : 0;
    if (c->each_x != 0) sum += c->each_x * cot__operand_size(t, node, 0);
    if (c->each_z != 0) sum += c->each_z * z;
    if (c->each_inner != 0) sum += c->each_inner * z * cot__operand_extent(t, node, 0, -1);
    if (c->each_cube != 0) sum += c->each_cube * cubes(t, node);
    return sum;
}
