/* bits_linalg.c: factorisations and what is made of them. */
#include "bits/bits.h"

typedef struct problem {
    cot_tape *t;
    cot_dtype dtype;
    int64_t   n;
    cot_var   a, b, spd;
} problem;

static problem problem_of(cot_dtype dtype, int64_t n) {
    problem p = {.t = cot_tape_create(NULL), .dtype = dtype, .n = n};
    p.a       = bits_leaf(p.t, dtype, COT_SHAPE(n, n), (int)n, -1, 1);
    p.b       = bits_leaf(p.t, dtype, COT_SHAPE(n, 3), (int)n + 1, -1, 1);
    p.spd     = cot_add(cot_matmul(p.a, cot_transpose(p.a)), cot_eye(p.t, dtype, n, n));
    return p;
}

enum { SOLVE, TRIANGULAR, INV, DET, CHOLESKY, LU, QR, EIGH, SVD, EIGVALSH, SVDVALS, LSTSQ, EXP, SLOGDET, KINDS };
static const char *const names[KINDS] = {
    "solve", "triangular_solve", "inv",     "det",   "cholesky",   "lu",     "qr", "eigh",
    "svd",   "eigvalsh",         "svdvals", "lstsq", "matrix_exp", "slogdet"};

static cot_var both(cot_var x, cot_var y) { return cot_add(cot_sum(cot_mul(x, x), COT_ALL), cot_sum(y, COT_ALL)); }

/* Several results are hashed one by one; a value of all of them is returned for its derivatives. */
static cot_var made(const problem *p, int kind) {
    cot_var q = p->a, r = p->a, s = p->a;
    switch (kind) {
    case SOLVE: return cot_solve(p->a, p->b);
    case TRIANGULAR: return cot_triangular_solve(cot_cholesky(p->spd), p->b, 0);
    case INV: return cot_inv(p->a);
    case DET: return cot_det(p->a);
    case CHOLESKY: return cot_cholesky(p->spd);
    case LU: cot_lu(p->a, &s, &q, &r); break;
    case QR:
        cot_qr(p->a, &q, &r);
        s = q;
        break;
    case EIGH:
        cot_eigh(p->spd, &q, &r);
        s = q;
        break;
    case SVD: cot_svd(p->a, &q, &r, &s); break;
    case EIGVALSH: return cot_eigvalsh(p->a);
    case SVDVALS: return cot_svdvals(p->a);
    case LSTSQ:
        return cot_lstsq(cot_concat(2, (cot_var[]){p->a, p->spd}, 0), cot_concat(2, (cot_var[]){p->b, p->b}, 0));
    case EXP: return cot_matrix_exp(p->a);
    default:
        cot_slogdet(p->a, &q, &r);
        s = q;
        break;
    }
    bits_var(q), bits_var(r), bits_var(s);
    return kind == SLOGDET ? r : both(q, r);
}

void bits_family_linalg(void) {
    static const int64_t sizes[] = {1, 3, 12, 45};
    for (int d = 0; d < BITS_DTYPE_COUNT; d++)
        for (int s = 0; s < TEST_COUNT(sizes); s++)
            for (int kind = 0; kind < KINDS; kind++) {
                if (d >= 2 && sizes[s] > 12) continue; /* computed in f32, rounded at the end */
                problem p = problem_of(BITS_DTYPES[d], sizes[s]);
                bits_item("%s of %d %s", names[kind], (int)p.n, cot_dtype_name(p.dtype));
                bits_derivatives(made(&p, kind), 1, &p.a);
                bits_close(p.t);
            }
}
