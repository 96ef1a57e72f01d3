/* step_matrix.c: products, sums of products, Fourier transforms, systems and factorisations. */
#include "program.h"

static const cot_axes all = {-1, false, {0}};

/* Can it stand right of the other in a product that stays small? */
static bool multiplies(value x, value beside) {
    if (!is_float(x, beside) || rank(x) == 0 || rank(beside) == 0) return false;
    int64_t inner = rank(x) == 1 ? extent(x, 0) : extent(x, -2);
    if (inner != extent(beside, -1)) return false;
    for (int k = 3; k <= rank(x) && k <= rank(beside); k++)
        if (extent(x, -k) != extent(beside, -k) && extent(x, -k) != 1 && extent(beside, -k) != 1) return false;
    return cot_size(x.var) * (cot_size(beside.var) + 1) < 40 * MOST_ELEMENTS;
}

STEP_FUNCTION(matmul) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0) return;
    value y = pick(f, c, multiplies, x);
    if (y.name < 0 || chance(c, 6)) {
        if (rank(x) != 2 || cot_size(x.var) > 400) return;
        say(f, "cot_matmul(%s, cot_transpose(%s))", name_of(x), name_of(x));
        put(f, cot_matmul(x.var, cot_transpose(x.var)));
        return;
    }
    say(f, "cot_matmul(%s, %s)", name_of(x), name_of(y));
    put(f, cot_matmul(x.var, y.var));
}

STEP_FUNCTION(products) {
    value x = pick(f, c, is_vector, no_value), y = pick(f, c, is_vector, no_value), z = pick(f, c, is_alike, x);
    value a = pick(f, c, is_small, no_value), b = pick(f, c, is_small, no_value);
    switch (choose(c, 3)) {
    case 0:
        if (x.name < 0 || y.name < 0 || cot_size(x.var) * cot_size(y.var) > MOST_ELEMENTS) return;
        say(f, "cot_outer(%s, %s)", name_of(x), name_of(y));
        put(f, cot_outer(x.var, y.var));
        return;
    case 1:
        if (x.name < 0 || z.name < 0) return;
        say(f, "cot_dot(%s, %s)", name_of(x), name_of(z));
        put(f, cot_dot(x.var, z.var));
        return;
    default:
        if (a.name < 0 || b.name < 0 || rank(a) + rank(b) > 6 || cot_size(a.var) * cot_size(b.var) > MOST_ELEMENTS)
            return;
        say(f, "cot_kron(%s, %s)", name_of(a), name_of(b));
        put(f, cot_kron(a.var, b.var));
    }
}

STEP_FUNCTION(einsum) {
    static const struct {
        const char *one, *two;
        int         axes;
    } forms[] = {
        {"ij->ji", "ij,ij->i", 2},     {"ij->", "ij,kj->ik", 2},
        {"i->i", "i,j->ij", 1},        {"...i->...", "...i,...i->...", 1},
        {"ijk->kj", "ijk,ljk->il", 3}, {"ij->j", "ij,ij->", 2},
        {"i,i->", "i,i->", 1},         {"ij,jk", "ij,ij->ji", 2},
    };
    value x = pick(f, c, has_axes, no_value), y = pick(f, c, is_alike, x);
    if (x.name < 0 || y.name < 0 || cot_size(x.var) > 120) return;
    unsigned which = choose(c, 8), tries = 0;
    while (forms[which].axes != rank(x) && tries++ < 8) which = (which + 1) % 8;
    int         n    = chance(c, 2) ? 2 : 1;
    const char *text = n == 1 ? forms[which].one : forms[which].two;
    say(f, "cot_einsum(\"%s\", %d, %s %s)", text, n, name_of(x), name_of(y));
    put(f, cot_einsum(text, n, (cot_var[]){x.var, y.var}));
}

STEP_FUNCTION(fourier) {
    value x = pick(f, c, has_axes, no_value);
    if (x.name < 0 || cot_size(x.var) > 600) return;
    int     axis = choose_axis(f, c, x, 0);
    int64_t n    = chance(c, 2) ? 0 : (int64_t)choose(c, 9);
    switch (choose(c, 5)) {
    case 0: say(f, "cot_rfft(%s, %lld, %d)", name_of(x), (long long)n, axis), put(f, cot_rfft(x.var, n, axis)); break;
    case 1:
        say(f, "cot_irfft(cot_rfft(%s, 0, -1), %lld, -1)", name_of(x), (long long)n);
        put(f, cot_irfft(cot_rfft(x.var, 0, -1), n, -1));
        break;
    case 2:
        say(f, "cot_fft(cot_stack(2, %s %s, -1), %lld, %d)", name_of(x), name_of(x), (long long)n, axis);
        put(f, cot_fft(cot_stack(2, (cot_var[]){x.var, x.var}, -1), n, axis));
        break;
    case 3:
        say(f, "cot_ifft(cot_stack(2, %s %s, -1), %lld, %d)", name_of(x), name_of(x), (long long)n, axis);
        put(f, cot_ifft(cot_stack(2, (cot_var[]){x.var, x.var}, -1), n, axis));
        break;
    default: {
        static const char *const modes[] = {"full", "same", "valid"};
        value                    h       = pick(f, c, is_vector, no_value);
        if (h.name < 0 || rank(x) != 1 || cot_size(h.var) > 300) return;
        const char *mode = modes[choose(c, 3)];
        say(f, "cot_fft_convolve(%s, %s, 0, \"%s\")", name_of(x), name_of(h), mode);
        put(f, cot_fft_convolve(x.var, h.var, 0, mode));
    }
    }
}

/* A square matrix that is far from singular, and of which derivatives are not large: m mᵀ + 3. */
static cot_var steady(frame *f, value x) {
    cot_var m  = cot_tanh(x.var);
    cot_var bt = m;
    int     n  = rank(x);
    if (n >= 2) {
        cot_axes order = {n, false, {0}};
        for (int i = 0; i < n; i++) order.axis[i] = i;
        order.axis[n - 1] = n - 2, order.axis[n - 2] = n - 1;
        bt = cot_permute(m, order);
    }
    return cot_add(cot_matmul(m, bt),
                   cot_mul(cot_eye(f->run->tape, cot_dtype_of(x.var), extent(x, -2), extent(x, -2)), cot_number(3)));
}

STEP_FUNCTION(solve) {
    value x = pick(f, c, has_matrix, no_value);
    if (x.name < 0 || cot_size(x.var) > 100 || extent(x, -2) > 8) return;
    cot_var a = steady(f, x);
    say(f, "a = cot_tanh(%s) @ cot_tanh(%s)' + 3", name_of(x), name_of(x));
    switch (choose(c, 7)) {
    case 0: say(f, "cot_inv(a)"), put(f, cot_inv(a)); break;
    case 1: say(f, "cot_det(a)"), put(f, cot_det(a)); break;
    case 2: say(f, "cot_cholesky(a)"), put(f, cot_cholesky(a)); break;
    case 3: say(f, "cot_solve(a, %s)", name_of(x)), put(f, cot_solve(a, x.var)); break;
    case 4: say(f, "cot_matrix_exp(a / 8)"), put(f, cot_matrix_exp(cot_mul(a, cot_number(0.125)))); break;
    case 5: {
        int flags = (int)choose(c, 4);
        say(f, "cot_triangular_solve(a, %s, %d)", name_of(x), flags), put(f, cot_triangular_solve(a, x.var, flags));
        break;
    }
    default: say(f, "cot_lstsq(a, %s)", name_of(x)), put(f, cot_lstsq(a, x.var));
    }
}

/* Derivatives of eigenvectors are as large as eigenvalues are near each other, so only bits are
 * compared. */
STEP_FUNCTION(factor) {
    value   x = pick(f, c, has_matrix, no_value);
    cot_var p = {NULL, 0}, q = {NULL, 0}, r = {NULL, 0};
    if (x.name < 0 || cot_size(x.var) > 100) return;
    f->run->ill = true;
    switch (choose(c, 7)) {
    case 0: say(f, "cot_qr(%s, &p, &q)", name_of(x)), cot_qr(x.var, &p, &q); break;
    case 1: say(f, "cot_lu(%s, &r, &p, &q)", name_of(x)), cot_lu(x.var, &r, &p, &q); break;
    case 2: say(f, "cot_svd(%s, &p, &q, &r)", name_of(x)), cot_svd(x.var, &p, &q, &r); break;
    case 3: say(f, "cot_eigh(steady %s, &p, &q)", name_of(x)), cot_eigh(steady(f, x), &p, &q); break;
    case 4: say(f, "cot_slogdet(steady %s, &p, &q)", name_of(x)), cot_slogdet(steady(f, x), &p, &q); break;
    case 5: say(f, "cot_svdvals(%s)", name_of(x)), p = cot_svdvals(x.var); break;
    default:
        say(f, "cot_inv of a square part of %s", name_of(x));
        p = extent(x, -1) == extent(x, -2) ? cot_inv(x.var) : cot_sum(x.var, all);
    }
    if (cot_tape_status(f->run->tape) != COT_OK) {
        put_status(f);
        return;
    }
    if (cot_is_valid(p)) say(f, "p"), put(f, p);
    if (cot_is_valid(q)) say(f, "q"), put(f, q);
    if (cot_is_valid(r)) say(f, "r"), put(f, r);
}
