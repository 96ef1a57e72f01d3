/* sparsity.h: finds the inputs that each element of a value depends on, from the tape and the kinds
 * of its operations. */
#ifndef COT_SPARSITY_H
#define COT_SPARSITY_H

#include "diff/sparse/sets.h"
#include "diff/engine/sweep.h"

/* The sets of all elements of a tensor. */
typedef struct cot__set_array {
    cot__set *sets;
    int64_t   size;
} cot__set_array;

typedef struct cot__patterns {
    cot_tape       *t;
    const char     *op; /* the public function that was called, for messages */
    int64_t         rows, cols; /* of the whole pattern, for messages */
    cot__sets       sets;
    uint32_t        lo;        /* the oldest node that can depend on an input */
    /* nodes older than this count as not depending on the inputs. While a rule of the user's is
     * walked, these are the values that it reads beside tangents */
    uint32_t        hidden;
    /* of a scalar node: its set. Of a tensor: 1 + its place in `arrays`, or 0: no element depends
     * on an input */
    uint32_t       *of;
    /* of any node: may its value differ from the one on the tape? See the bits below */
    uint8_t        *varies;
    int64_t         of_capacity, varies_capacity;
    cot__set_array *arrays;
    int64_t         array_count, array_capacity;
    int             depth;     /* how deep loops whose bodies are walked are nested */
    /* the `varies` bits of all positions and choices that were taken from the tape */
    uint8_t         consulted;
    /* the nodes that are walked now were played on examples: no equation was solved in them, and no
     * cot_while ran */
    bool            examples;
    /* Operations are run on these tensors: element numbers and random numbers, `probes` elements
     * each, growing. */
    cot_var numbers, noise;
    int64_t probes;
    double *buffer[2];
    int64_t buffer_capacity[2];
    double *noises; /* on the host: the elements of `noise` */
    int64_t noise_capacity;
} cot__patterns;

/* Bits of `varies`: the value may differ in another run, because the inputs reach it (COT__VARIES);
 * it may differ in another step of the loop at this depth (one bit for each depth, the seventh and
 * deeper share one). */
enum { COT__VARIES = 1 };
static inline uint8_t cot__varies_by_step(int depth) { return (uint8_t)(2u << (depth < 6 ? depth : 6)); }
static inline uint8_t cot__varies(const cot__patterns *p, uint32_t node) {
    return node == COT__NONE || node < p->lo ? 0 : p->varies[node - p->lo];
}

/* The set of one element. It is empty for an operand that does not depend on the inputs or is too
 * old to. */
static inline cot__set cot__set_at(const cot__patterns *p, uint32_t node, int64_t element) {
    if (node == COT__NONE || node < p->lo || node < p->hidden || p->of[node - p->lo] == 0) return 0;
    uint32_t of = p->of[node - p->lo];
    return cot__has_axes(&p->t->nodes[node]) ? p->arrays[of - 1].sets[element] : of;
}
static inline bool cot__depends(const cot__patterns *p, uint32_t node) {
    return node != COT__NONE && node >= p->lo && node >= p->hidden && p->of[node - p->lo] != 0;
}
/* Does operand k of a structural node have a derivative, and does it depend on the inputs? */
static inline bool cot__moves(const cot__patterns *p, uint32_t node, int k) {
    const cot__node *n = &p->t->nodes[node];
    return !(k < 32 && cot__op_of(n->op)->inactive >> k & 1) && cot__depends(p, cot__arg(n, k));
}

/* The sets of a node's elements, empty at first. For a scalar it is the place in `of`. NULL after
 * setting the error. */
cot__set *cot__sets_at(cot__patterns *p, uint32_t node);
static inline void cot__set_add(cot__patterns *p, cot__set *to, cot__set from) {
    if (from) *to = cot__set_union(&p->sets, *to, from);
}

/* Adds to the sets of z the union of the sets of x over all axes that are not shared. Axis
 * x_axis[k] of operand x is axis z_axis[k] of node z. */
bool cot__contract(cot__patterns *p, uint32_t z, uint32_t x, int shared, const int *x_axis, const int *z_axis);
/* For a node whose derivative does not depend on values, or of kind bilinear: runs the operation to
 * find where each element goes. False after setting the error. */
bool cot__linear_pattern(cot__patterns *p, uint32_t node);

/* For a linear operation whose positions vary: every element that they could choose counts. False
 * after setting the error. */
bool cot__chosen_pattern(cot__patterns *p, uint32_t node);
/* For an operation that tells what it reads (cot__op.reach). False after setting the error. */
bool cot__reached_pattern(cot__patterns *p, uint32_t node);
/* For a loop, condition, checkpoint or function with rules of the user's: walks the steps. False
 * after setting the error. */
bool cot__loop_pattern(cot__patterns *p, uint32_t node);
/* The same for the way back through a loop that is one operation. */
bool cot__loop_adjoint_pattern(cot__patterns *p, uint32_t node);
/* The same for an operation that stands for others (cot__op.inlined): theirs. */
bool cot__inlined_pattern(cot__patterns *p, uint32_t node);

/* Helpers of the functions above:
 *   _grow    makes room for all nodes on the tape
 *   _walk    gives nodes first … end - 1 their sets, if they are `needed`
 *   _dense   a node all of whose elements depend on all that its operands depend on
 *   _same    a node each of whose elements depends on the same element of its operand k */
bool cot__patterns_grow(cot__patterns *p);
bool cot__patterns_walk(cot__patterns *p, uint32_t first, uint32_t end, const uint8_t *needed);
bool cot__dense_pattern(cot__patterns *p, uint32_t node);
bool cot__same_pattern(cot__patterns *p, uint32_t node, int k);
/* Sets the error of running out of memory or of the limit. Returns false. */
bool cot__patterns_short(cot__patterns *p);
/* Frees the arrays from number `arrays` on. */
void cot__patterns_drop(cot__patterns *p, int64_t arrays);

/* The pattern of the elements of ys (all of them in order, row-major) with respect to those of xs:
 * compressed rows in the memory of `al`, columns ascending. False after setting the error; then
 * nothing is kept. */
typedef struct cot__csr {
    int64_t  rows, cols, nnz;
    int64_t *row_start; /* rows + 1 */
    int32_t *col;       /* nnz */
} cot__csr;
bool cot__sparsity(const char *op, cot_tape *t, const cot_allocator *al, int m, const cot_var *ys, int n,
                   const cot_var *xs, cot__csr *out);
void cot__csr_free(const cot_allocator *al, cot__csr *c);

#endif
