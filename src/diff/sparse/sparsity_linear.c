/* sparsity_linear.c: runs a linear operation to find where each element goes.
 *
 * There are four ways, and the first that fits is taken:
 *   selection     On the numbers 1, 2, 3, … of its operands' elements the result holds, at each
 *                 place, the number of the element that came there, or 0: slice, take,
 *                 broadcast_to, concat, pad. A second run on random numbers shows that elements
 *                 were copied and not computed: the same elements must have come to the same places
 *                 to the bit.
 *   transpose     The transpose is a selection: every element of an operand goes to one place, and
 *                 many may meet there (sum, scatter_add).
 *   axes          An operation that mixes more (matmul, cumsum, fft, convolution) may still keep
 *                 axes apart. Axis b of an operand and axis a of the result are one axis if the
 *                 operation commutes with multiplying along them. All other axes are contracted:
 *                 the union.
 *   taps          A product with a small operand (the kernel of a convolution) is a sum over the
 *                 elements of that operand, the taps. With one tap 1 and the others 0 the product
 *                 may be a selection. If it is one for each tap, the union over all taps is exact,
 *                 where axes would mix everything.
 * Random numbers are the same in every run. It practically never happens that two of 2^52 are
 * equal, or that a sum equals its own scaled copy within 1e-9, by chance. */
#include "base/random.h"
#include "diff/sparse/sparsity.h"
#include "ops/structural.h"

#include <math.h>
#include <string.h>

/* ---- tensors to run on ----------------------------------------------------------------------- */

/* A number in [1, 2) that depends on i alone. */
static double noise_at(uint64_t i) { return 1 + (double)(cot__mixed(i) >> 12) * 0x1p-52; }

/* Ensures n element numbers and n random numbers on the tape. They stand below the nodes that are
 * recorded for one probe and then forgotten. */
static bool ensure_probes(cot__patterns *p, int64_t n) {
    if (n <= p->probes) return true;
    int64_t     size = 2 * p->probes > n ? 2 * p->probes : n > 512 ? n : 512;
    cot_shape   shape = COT_SHAPE(size);
    cot__result a, b;
    if (!cot__constant_open(p->t, &a, p->op, COT_F64, &shape) || !cot__constant_open(p->t, &b, p->op, COT_F64, &shape))
        return false;
    if (!cot__ensure(&p->t->al, (void **)&p->noises, &p->noise_capacity, 2 * size, sizeof(double))) {
        cot__fail(p->t, COT_MEMORY, "[%s] out of memory: the sparsity pattern", p->op);
        return false;
    }
    double *noise = p->noises, *number = noise + size;
    for (int64_t i = 0; i < size; i++) number[i] = (double)(i + 1), noise[i] = noise_at((uint64_t)i);
    p->t->backend->copy_in(&a.view, &(cot__view){number, COT_F64, 1, a.view.shape, a.view.stride});
    p->t->backend->copy_in(&b.view, &(cot__view){noise, COT_F64, 1, b.view.shape, b.view.stride});
    p->numbers = cot__constant_push(p->t, &a);
    p->noise = cot__constant_push(p->t, &b);
    p->probes = size;
    return p->t->status == COT_OK;
}

/* A piece of `of` that begins at element `from`, in the given shape. */
static cot_var piece(cot_var of, int64_t from, cot_shape shape) {
    return cot_reshape(cot_slice(of, 0, from, from + cot__count(shape.ndim, shape.dim), 1), shape);
}

/* Reads the elements of v into buffer `which`. NULL after setting the error. */
static const double *read(cot__patterns *p, cot_var v, int which) {
    cot_tape *t = p->t;
    if (t->status != COT_OK) return NULL;
    int64_t n = cot__size_at(t, cot__index(v));
    if (!cot__ensure(&t->al, (void **)&p->buffer[which], &p->buffer_capacity[which], n, sizeof(double))) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: the sparsity pattern", p->op);
        return NULL;
    }
    cot__view view = cot__look(t, cot__index(v));
    return cot__read_view(t, p->op, &view, COT_F64, p->buffer[which], n) == COT_OK ? p->buffer[which] : NULL;
}

/* ---- one node -------------------------------------------------------------------------------- */

typedef struct probe {
    cot__patterns *p;
    cot__rule      r;
    int            n;     /* number of operands */
    cot_var       *xs;    /* the values that the operation is run on */
    /* for the transpose: a leaf and two gradients for each operand that moves */
    cot_var       *leaves, *grads;
    int64_t       *base;  /* elements of the moving operands before operand k; base[n]: of all */
} probe;

static cot_var run_on(probe *q) {
    if (q->p->t->status != COT_OK) return INVALID(q->p->t);
    if (q->r.op->kind != KIND_SOURCE && q->r.op->kind != KIND_GENERIC) return cot__apply(&q->r, q->xs);
    q->r.tangents = q->xs;
    q->r.tangent = INVALID(q->p->t);
    q->r.op->jvp(&q->r);
    return q->r.tangent;
}

static cot_shape operand_shape(const probe *q, int k) { return cot__rule_shape(&q->r, k); }

/* The value of an operand that does not move: its own if it has no derivative, else zeros. */
static cot_var resting(probe *q, int k) {
    bool passive = k < 32 && q->r.op->inactive >> k & 1;
    return passive ? cot__rule_x(&q->r, k) : cot_zeros(q->p->t, COT_F64, operand_shape(q, k));
}

static cot_var run_selection(probe *q, cot_var from) {
    for (int k = 0; k < q->n; k++)
        q->xs[k] = cot__moves(q->p, q->r.node, k) ? piece(from, q->base[k], operand_shape(q, k)) : resting(q, k);
    return run_on(q);
}

/* Both runs gave n results, `number` and `noise`. Are all of them copies of elements, or zero? */
static bool copies(const double *in_noise, int64_t total, int64_t n, const double *number, const double *noise) {
    for (int64_t j = 0; j < n; j++) {
        double c = number[j];
        if (!(c >= 0 && c <= (double)total && c == floor(c))) return false;
        if (noise[j] != (c > 0 ? in_noise[(int64_t)c - 1] : 0)) return false;
    }
    return true;
}

/* The operand to which element number c (from 0, over all moving operands) belongs. */
static int operand_with(const probe *q, int64_t c) {
    int low = 0, high = q->n;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (q->base[middle] <= c) low = middle;
        else high = middle;
    }
    return low;
}

static bool by_selection(probe *q, bool *fits) {
    cot__patterns *p = q->p;
    const double  *number = read(p, run_selection(q, p->numbers), 0),
                 *noise   = number ? read(p, run_selection(q, p->noise), 1) : NULL;
    int64_t        n = cot__size_at(p->t, q->r.node);
    if (!noise) return false;
    *fits = copies(p->noises, q->base[q->n], n, number, noise);
    cot__set *z = *fits ? cot__sets_at(p, q->r.node) : NULL;
    if (!z) return !*fits;
    for (int64_t j = 0; j < n; j++) {
        if (number[j] == 0) continue;
        int64_t c = (int64_t)number[j] - 1;
        int     k = operand_with(q, c);
        cot__set_add(p, &z[j], cot__set_at(p, cot__rule_arg(&q->r, k), c - q->base[k]));
    }
    return true;
}

/* Computes the adjoints of all moving operands, first for the seeds 1, 2, 3, …, then for random
 * seeds. They stand in q->grads in this order. */
static int transpose(probe *q, bool *ok) {
    cot_tape *t = q->p->t;
    int       moving = 0;
    for (int k = 0; k < q->n; k++) {
        bool moves = cot__moves(q->p, q->r.node, k);
        cot_shape s = operand_shape(q, k);
        q->xs[k] = !moves ? resting(q, k) : s.ndim ? cot_tensor(t, COT_F64, s, NULL) : cot_scalar(t, 0);
        if (moves) q->leaves[moving++] = q->xs[k];
    }
    cot_var   z = run_on(q);
    cot_shape s = cot__shape_at(t, q->r.node);
    for (int round = 0; round < 2 && t->status == COT_OK; round++) {
        cot_var seed = piece(round ? q->p->noise : q->p->numbers, 0, s);
        cot__grad_of(q->p->op, z, &seed, moving, q->leaves, q->grads + round * moving);
    }
    *ok = t->status == COT_OK;
    return moving;
}

static bool by_transpose(probe *q, bool *fits) {
    cot__patterns *p = q->p;
    bool           ok;
    int64_t        nz = cot__size_at(p->t, q->r.node);
    int            moving = transpose(q, &ok), at = 0;
    *fits = ok;
    /* write = 0 only checks, so no set is changed before all operands are known to be copies */
    for (int write = 0; write < 2 && *fits; write++, at = 0)
        for (int k = 0; k < q->n && *fits; k++) {
            if (!cot__moves(p, q->r.node, k)) continue;
            const double *number = read(p, q->grads[at], 0), *noise = number ? read(p, q->grads[moving + at], 1) : NULL;
            cot__set     *z = write ? cot__sets_at(p, q->r.node) : NULL;
            int64_t       n = cot__size_at(p->t, cot__rule_arg(&q->r, k));
            if (!noise || (write && !z)) return false;
            *fits = copies(p->noises, nz, n, number, noise);
            for (int64_t i = 0; i < n && write; i++)
                if (number[i] > 0)
                    cot__set_add(p, &z[(int64_t)number[i] - 1], cot__set_at(p, cot__rule_arg(&q->r, k), i));
            at++;
        }
    return ok;
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* Runs the operation with random numbers for operand k, times factors along axis b (b < 0: no
 * factors). The other operand of a product is random too. */
static cot_var run_scaled(probe *q, int k, int b, cot_var factors) {
    cot_var noise = q->p->noise;
    int64_t other = q->n > 1 ? cot__size_at(q->p->t, cot__rule_arg(&q->r, k)) : 0;
    for (int j = 0; j < q->n; j++)
        if (q->r.op->kind == KIND_BILINEAR && j < 2 && j != k) q->xs[j] = piece(noise, other, operand_shape(q, j));
        else if (j != k) q->xs[j] = resting(q, j);
    q->xs[k] = piece(noise, 0, operand_shape(q, k));
    if (b >= 0) {
        cot_shape along = operand_shape(q, k);
        for (int a = 0; a < along.ndim; a++) along.dim[a] = a == b ? along.dim[a] : 1;
        q->xs[k] = cot_mul(q->xs[k], cot_reshape(factors, along));
    }
    return run_on(q);
}

/* Is `scaled` equal to `plain` times factors along axis a of shape s? */
static bool commutes(cot_shape s, int a, const double *plain, const double *scaled, const double *factors) {
    int64_t inner = cot__count(s.ndim - a - 1, s.dim + a + 1), n = cot__count(s.ndim, s.dim);
    for (int64_t j = 0; j < n; j++) {
        double want = plain[j] * factors[j / inner % s.dim[a]];
        if (!(fabs(scaled[j] - want) <= 1e-9 * (fabs(scaled[j]) + fabs(want)))) return false;
    }
    return true;
}

/* ---- taps ------------------------------------------------------------------------------------ */

enum { MOST_TAPS = 256 };

/* A tensor of zeros with a single 1 at element `at`. */
static cot_var unit(cot__patterns *p, cot_shape shape, int64_t at) {
    cot__result r;
    if (!cot__constant_open(p->t, &r, p->op, COT_F64, &shape)) return INVALID(p->t);
    static const double one = 1;
    p->t->backend->fill(&r.view, 0);
    p->t->backend->write(&r.view, at, 1, COT_F64, &one);
    return cot__constant_push(p->t, &r);
}

/* Tries the taps for operand k of a product whose other operand has few elements. Sets added before
 * a tap fails do no harm, because sets may be too large. */
static bool by_taps(probe *q, int k, int64_t taps, bool *fits) {
    cot__patterns *p = q->p;
    cot_tape      *t = p->t;
    uint32_t       x = cot__rule_arg(&q->r, k);
    int64_t        n = cot__size_at(t, q->r.node), nx = cot__size_at(t, x);
    cot__set      *z = cot__sets_at(p, q->r.node);
    *fits = true;
    for (int64_t tap = 0; tap < taps && z && *fits; tap++) {
        cot_mark      mark = cot__mark(t);
        const double *came[2] = {NULL, NULL};
        if (q->n > 2) q->xs[2] = resting(q, 2);
        q->xs[1 - k] = unit(p, operand_shape(q, 1 - k), tap);
        for (int run = 0; run < 2; run++) {
            q->xs[k] = piece(run ? p->noise : p->numbers, 0, operand_shape(q, k));
            came[run] = read(p, run_on(q), run);
        }
        if (!came[0] || !came[1]) return false;
        *fits = copies(p->noises, nx, n, came[0], came[1]);
        for (int64_t j = 0; j < n && *fits; j++)
            if (came[0][j] > 0) cot__set_add(p, &z[j], cot__set_at(p, x, (int64_t)came[0][j] - 1));
        cot__rewind(t, mark);
    }
    return z != NULL;
}

/* ---- axes, and the choice between the two ---------------------------------------------------- */

static bool by_axes(probe *q, int k) {
    cot__patterns *p = q->p;
    cot_shape      xs = operand_shape(q, k), zs = cot__shape_at(p->t, q->r.node);
    int            x_axis[COT_MAX_NDIM], z_axis[COT_MAX_NDIM], shared = 0;
    uint32_t       taken = 0;
    const double  *plain = read(p, run_scaled(q, k, -1, p->noise), 0);
    if (!plain) return false;
    for (int b = 0; b < xs.ndim; b++) {
        if (xs.dim[b] <= 1) continue;
        int64_t       from = p->probes - xs.dim[b];
        const double *scaled = read(p, run_scaled(q, k, b, piece(p->noise, from, COT_SHAPE(xs.dim[b]))), 1);
        if (!scaled) return false;
        for (int a = 0; a < zs.ndim; a++) {
            if (taken >> a & 1 || zs.dim[a] != xs.dim[b] || !commutes(zs, a, plain, scaled, p->noises + from))
                continue;
            taken |= 1u << a;
            x_axis[shared] = b;
            z_axis[shared++] = a;
            break;
        }
    }
    int64_t taps  = q->r.op->kind == KIND_BILINEAR ? cot__size_at(p->t, cot__rule_arg(&q->r, 1 - k)) : 0,
            group = cot__size_at(p->t, cot__rule_arg(&q->r, k));
    for (int i = 0; i < shared; i++) group /= xs.dim[x_axis[i]];
    bool fits = false;
    if (taps > 0 && taps <= MOST_TAPS && group > taps && (!by_taps(q, k, taps, &fits) || fits)) return fits;
    return cot__contract(p, q->r.node, cot__rule_arg(&q->r, k), shared, x_axis, z_axis);
}

static bool find(probe *q) {
    bool fits = false, transposable = q->r.op->kind == KIND_LINEAR;
    if (q->r.op->kind != KIND_BILINEAR && (!by_selection(q, &fits) || fits)) return fits;
    if (transposable && (!by_transpose(q, &fits) || fits)) return fits;
    /* operands that move and have elements */
    for (int k = 0; k < q->n; k++)
        if (q->base[k + 1] > q->base[k] && !by_axes(q, k)) return false;
    return true;
}

bool cot__linear_pattern(cot__patterns *p, uint32_t node) {
    cot_tape *t = p->t;
    int       n = cot__nargs(&t->nodes[node]);
    size_t    bytes = (size_t)n * 4 * sizeof(cot_var) + (size_t)(n + 1) * sizeof(int64_t);
    cot_var  *vars = cot__alloc(&t->al, bytes);
    if (!vars) {
        cot__fail(t, COT_MEMORY, "[%s] out of memory: the sparsity pattern", p->op);
        return false;
    }
    probe   q      = {.p      = p,
                      .r      = {.t = t, .node = node, .op = cot__op_of(t->nodes[node].op)},
                      .n      = n,
                      .xs     = vars,
                      .leaves = vars + n,
                      .grads  = vars + 2 * n};
    int64_t widest = cot__size_at(t, node), total = 0;
    q.base = (int64_t *)(void *)(vars + 4 * n);
    q.base[0] = 0;
    for (int k = 0; k < n; k++) {
        int64_t size = cot__size_at(t, cot__arg(&t->nodes[node], k));
        q.base[k + 1] = cot__size_add(q.base[k], cot__moves(p, node, k) ? size : 0);
        total = cot__size_add(total, size);
    }
    widest = total > widest ? total : widest;
    /* none: no element goes anywhere, and extents may be larger than the probes. Twice the widest
     * operand, because by_axes takes the factors from the other end. */
    bool    none = q.base[n] == 0 || cot__size_at(t, node) == 0;
    bool    ok = none || ensure_probes(p, cot__size_mul(2, widest));
    cot_mark mark = cot__mark(t);
    /* the transpose needs active nodes, whatever scope is open */
    cot__scope scope = cot__scope_open(t, COT__ACTIVE);
    ok = ok && (none || find(&q)) && t->status == COT_OK;
    cot__scope_close(t, &scope);
    cot__rewind(t, mark);
    cot__free(&t->al, vars, bytes);
    return ok;
}
