/* einsum_plan.c: in which order the factors of a sum of products are multiplied.
 *
 * Greedy: of all pairs, first those that share a label (others only make outer products, which are
 * better made late), then the one after which the fewest numbers are left over: size(product) -
 * size(a) - size(b). Equal ones: the fewest multiplications, then the first pair. So a chain of
 * matrices with a vector at its end is done from that end, and no product is larger than it must be
 * at its step; it is not always the best order of all, which takes exponential time to find. A
 * product of more axes than a tensor may have comes last. */
#include "ops/linalg/einsum.h"

/* Π extents of a set of labels; a double does not overflow */
static double size_of(const cot__einsum *e, uint64_t set) {
    double size = 1;
    for (; set; set &= set - 1) size *= (double)e->extent[__builtin_ctzll(set)];
    return size;
}

typedef struct cost {
    int    class; /* 0 shares a label, 1 outer product, 2 has too many axes */
    double left_over, multiplications;
} cost;

static bool cheaper(const cost *a, const cost *b) {
    if (a->class != b->class) return a->class < b->class;
    if (a->left_over != b->left_over) return a->left_over < b->left_over;
    return a->multiplications < b->multiplications;
}

static cost cost_of(const cot__einsum *e, uint64_t a, uint64_t b, uint64_t kept) {
    /* what only one of them has cannot be summed yet, or would have been */
    uint64_t product = (a | b) & (kept | (a ^ b));
    return (cost){__builtin_popcountll(product) > COT_MAX_NDIM ? 2 : (a & b) ? 0 : 1,
                  size_of(e, product) - size_of(e, a) - size_of(e, b), size_of(e, a | b)};
}

void cot__einsum_pick(const cot__einsum *e, int *i, int *j) {
    uint64_t once = 0, twice = 0, more = 0; /* labels of at least one, two, three terms */
    cost     best = {3, 0, 0};
    for (int k = 0; k < e->n; k++) {
        uint64_t set = e->terms[k].set;
        more |= twice & set, twice |= once & set, once |= set;
    }
    *i = 0, *j = 1;
    for (int p = 0; e->n > 2 && p < e->n; p++)
        for (int q = p + 1; q < e->n; q++) {
            cost c = cost_of(e, e->terms[p].set, e->terms[q].set, e->out.set | more);
            if (cheaper(&c, &best)) best = c, *i = p, *j = q;
        }
}
