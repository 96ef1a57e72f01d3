/* einsum and tensordot: random subscripts against a loop over all indices, the order of products,
 * dtypes, empty arrays, every error. */
/* ctest: labels=threads timeout=120 */
#include "support/tape_test.h"

enum { MOST = 4096, LABELS = 5, OPERANDS = 4 };

static uint64_t seed = 1;

static int whole(int n) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)n);
}
static double small(void) { return whole(2001) / 1000.0 - 1; }

static int64_t size_of(const cot_shape *s) {
    int64_t n = 1;
    for (int k = 0; k < s->ndim; k++) n *= s->dim[k];
    return n;
}

/* ---- the definition -------------------------------------------------------------------------- */

typedef struct problem {
    char      text[64];
    int       n;
    char      axes[OPERANDS][8], out[8]; /* a letter for each axis */
    cot_shape shape[OPERANDS], out_shape;
    double    data[OPERANDS][MOST], want[MOST], scale[MOST];
    int64_t   extent[LABELS];
} problem;

static int64_t offset_of(const char *axes, const cot_shape *s, const int64_t *at) {
    int64_t o = 0;
    for (int k = 0; k < s->ndim; k++) o = o * s->dim[k] + (s->dim[k] == 1 ? 0 : at[axes[k] - 'a']);
    return o;
}

/* want[out] = Σ over every index of every label. A label that no operand has counts once. */
static void define(problem *p) {
    int64_t at[LABELS] = {0}, n = 1;
    bool    used[LABELS] = {false};
    for (int k = 0; k < p->n; k++)
        for (const char *c = p->axes[k]; *c; c++) used[*c - 'a'] = true;
    for (int l = 0; l < LABELS; l++) n *= used[l] ? p->extent[l] : 1;
    memset(p->want, 0, sizeof p->want);
    memset(p->scale, 0, sizeof p->scale);
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i, z;
        double  product = 1;
        for (int l = 0; l < LABELS; l++) {
            at[l] = used[l] ? left % p->extent[l] : 0;
            left /= used[l] ? p->extent[l] : 1;
        }
        for (int k = 0; k < p->n; k++) product *= p->data[k][offset_of(p->axes[k], &p->shape[k], at)];
        z = offset_of(p->out, &p->out_shape, at);
        p->want[z] += product;
        p->scale[z] += fabs(product);
    }
}

static void invent(problem *p) {
    memset(p, 0, sizeof *p);
    p->n = 1 + whole(OPERANDS);
    bool present[LABELS] = {false};
    for (int l = 0; l < LABELS; l++) p->extent[l] = 1 + whole(3);
    for (int k = 0; k < p->n; k++) {
        p->shape[k].ndim = whole(5);
        bool one[LABELS] = {false}; /* along these the operand has extent 1, whatever others have */
        for (int l = 0; l < LABELS; l++) one[l] = whole(6) == 0;
        for (int i = 0; i < p->shape[k].ndim; i++) {
            int l = whole(LABELS);
            p->axes[k][i] = (char)('a' + l);
            p->shape[k].dim[i] = one[l] ? 1 : p->extent[l];
        }
        for (int64_t i = 0; i < size_of(&p->shape[k]); i++) p->data[k][i] = small();
    }
    int64_t real[LABELS] = {1, 1, 1, 1, 1};
    int     at = 0;
    char    text[sizeof p->text];
    for (int k = 0; k < p->n; k++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%s", !k ? "" : whole(2) ? " ," : ",", p->axes[k]);
        for (int i = 0; i < p->shape[k].ndim; i++) {
            int l = p->axes[k][i] - 'a';
            present[l] = true;
            if (p->shape[k].dim[i] != 1) real[l] = p->shape[k].dim[i];
        }
    }
    memcpy(p->extent, real, sizeof real);
    for (int tries = 0; tries < 4; tries++) {
        int l = whole(LABELS);
        if (!present[l] || strchr(p->out, 'a' + l)) continue;
        p->out_shape.dim[p->out_shape.ndim] = p->extent[l];
        p->out[p->out_shape.ndim++] = (char)('a' + l);
    }
    snprintf(text + at, sizeof text - (size_t)at, "->%s", p->out);
    memcpy(p->text, text, sizeof text);
    define(p);
}

/* The operand, perhaps as a view of other memory order. */
static cot_var operand_of(cot_tape *t, const problem *p, int k) {
    cot_shape s = p->shape[k];
    cot_var   x = cot_data(t, COT_F64, s, p->data[k]);
    cot_axes  reverse = {s.ndim, false, {0}};
    if (whole(2)) return x;
    for (int i = 0; i < s.ndim; i++) reverse.axis[i] = s.ndim - 1 - i;
    /* the same values, the first axis fastest */
    return cot_permute(cot_copy(cot_permute(x, reverse)), reverse);
}

static void any_subscripts_give_the_sum_over_all_indices(void **state) {
    (void)state;
    static problem p;
    cot_tape      *t = cot_tape_create(NULL);
    cot_mark       m = cot_tape_mark(t);
    for (int round = 0; round < (test_small() ? 300 : 3000); round++) {
        double  have[MOST];
        cot_var xs[OPERANDS];
        invent(&p);
        for (int k = 0; k < p.n; k++) xs[k] = operand_of(t, &p, k);
        cot_var   z = cot_einsum(p.text, p.n, xs);
        cot_shape s = cot_shape_of(z);
        assert_ok(t);
        if (s.ndim != p.out_shape.ndim || memcmp(s.dim, p.out_shape.dim, (size_t)s.ndim * sizeof *s.dim) != 0)
            fail_msg("%s: the shape is wrong", p.text);
        assert_int_equal(cot_read(z, have, size_of(&s)), COT_OK);
        /* at most 3^5 terms of 4 factors: each sum rounds as often as it has terms */
        for (int64_t i = 0; i < size_of(&s); i++)
            if (!(fabs(have[i] - p.want[i]) <= 250 * 0x1p-52 * p.scale[i]))
                fail_msg("%s: element %d is %.17g, not %.17g", p.text, (int)i, have[i], p.want[i]);
        cot_tape_rewind(t, m);
    }
    cot_tape_destroy(t);
}

/* ---- meanings -------------------------------------------------------------------------------- */

static const double six[6] = {1, 2, 3, 4, 5, 6};

static void is(cot_var z, cot_shape shape, const double *want) {
    double    have[64];
    cot_shape s = cot_shape_of(z);
    assert_ok(z.tape);
    assert_int_equal(s.ndim, shape.ndim);
    for (int k = 0; k < s.ndim; k++) assert_int_equal(s.dim[k], shape.dim[k]);
    assert_int_equal(cot_read(z, have, size_of(&s)), COT_OK);
    for (int64_t i = 0; i < size_of(&s); i++)
        if (have[i] != want[i]) fail_msg("element %d is %g, not %g", (int)i, have[i], want[i]);
}
#define IS(z, shape, ...) is(z, shape, (const double[]){__VA_ARGS__})
#define EINSUM(text, ...)                                                                                              \
    cot_einsum(text, (int)(sizeof((cot_var[]){__VA_ARGS__}) / sizeof(cot_var)), (cot_var[]){__VA_ARGS__})

static void the_output_is_implied_as_in_numpy(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_data(t, COT_F64, COT_SHAPE(2, 3), six), b = cot_data(t, COT_F64, COT_SHAPE(3, 2), six);
    IS(EINSUM("ba", a), COT_SHAPE(3, 2), 1, 4, 2, 5, 3, 6);
    IS(EINSUM("aB", a), COT_SHAPE(3, 2), 1, 4, 2, 5, 3, 6); /* capitals come first */
    IS(EINSUM("ij,ji", a, b), COT_SCALAR, 1 + 6 + 15 + 8 + 20 + 36);
    IS(EINSUM("i...", a), COT_SHAPE(3, 2), 1, 4, 2, 5, 3, 6); /* axes under the dots come first */
    IS(EINSUM(" i j , j k ", a, b), COT_SHAPE(2, 2), 22, 28, 49, 64);
    IS(EINSUM("...", a), COT_SHAPE(2, 3), 1, 2, 3, 4, 5, 6);
    /* nothing under the dots */
    IS(EINSUM("i...->...i", cot_index(a, 0, 0)), COT_SHAPE(3), 1, 2, 3);
    IS(EINSUM("...,i", cot_data(t, COT_F64, COT_SCALAR, six + 1), cot_index(a, 0, 0)), COT_SHAPE(3), 2, 4, 6);
    IS(EINSUM("ij,", a, cot_number(10)), COT_SHAPE(2, 3), 10, 20, 30, 40, 50, 60);
    cot_tape_destroy(t);
}

static void extents_of_one_repeat(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   column = cot_data(t, COT_F64, COT_SHAPE(2, 1), six), a = cot_data(t, COT_F64, COT_SHAPE(3, 2), six);
    IS(EINSUM("ij,jk->ik", column, a), COT_SHAPE(2, 2), 9, 12, 18, 24);
    IS(EINSUM("...i,...i->...", cot_data(t, COT_F64, COT_SHAPE(1, 2), six), a), COT_SHAPE(3), 5, 11, 17);
    IS(EINSUM("i,i->", cot_data(t, COT_F64, COT_SHAPE(1), six), cot_zeros(t, COT_F64, COT_SHAPE(0))), COT_SCALAR, 0);
    IS(EINSUM("i,i->i", cot_data(t, COT_F64, COT_SHAPE(1), six), cot_zeros(t, COT_F64, COT_SHAPE(0))), COT_SHAPE(0), 0);
    cot_tape_destroy(t);
}

static void tensordot_lists_axes(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_data(t, COT_F64, COT_SHAPE(2, 3), six), b = cot_data(t, COT_F64, COT_SHAPE(3, 2), six);
    IS(cot_tensordot(a, b, COT_AXES(1), COT_AXES(0)), COT_SHAPE(2, 2), 22, 28, 49, 64);
    IS(cot_tensordot(a, b, COT_AXES(0, 1), COT_AXES(-1, -2)), COT_SCALAR, 86);
    IS(cot_tensordot(a, a, COT_ALL, COT_ALL), COT_SCALAR, 91);
    IS(cot_tensordot(a, cot_number(2), (cot_axes){0, false, {0}}, (cot_axes){0, false, {0}}), COT_SHAPE(2, 3), 2, 4, 6,
       8, 10, 12);
    IS(cot_tensordot(cot_zeros(t, COT_F64, COT_SHAPE(2, 0)), cot_zeros(t, COT_F64, COT_SHAPE(0, 2)), COT_AXES(1),
                     COT_AXES(0)),
       COT_SHAPE(2, 2), 0, 0, 0, 0);
    cot_tape_destroy(t);
}

static void dtypes_stay_and_truths_count(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    const int32_t i32[4] = {1, 2, 3, INT32_MAX};
    const bool    truths[4] = {true, true, false, true};
    cot_var       a = cot_data(t, COT_I32, COT_SHAPE(2, 2), i32), b = cot_data(t, COT_BOOL, COT_SHAPE(2, 2), truths);
    cot_var       sum = EINSUM("ij->j", a), product = EINSUM("ij,ij->ij", a, a);
    assert_int_equal(cot_dtype_of(sum), COT_I32);
    IS(sum, COT_SHAPE(2), 4, (double)(INT32_MIN + 1)); /* integers wrap */
    assert_int_equal(cot_dtype_of(product), COT_I32);
    IS(product, COT_SHAPE(2, 2), 1, 4, 9, 1);
    assert_int_equal(cot_dtype_of(EINSUM("ij->", b)), COT_I64);
    IS(EINSUM("ij->", b), COT_SCALAR, 3);
    IS(EINSUM("ij,ij->", b, b), COT_SCALAR, 3);
    for (int d = COT_F64; d <= COT_F16; d++) {
        cot_var x = cot_cast(cot_data(t, COT_F64, COT_SHAPE(2, 3), six), (cot_dtype)d), z = EINSUM("ij,kj->ik", x, x);
        assert_int_equal(cot_dtype_of(z), d);
        IS(z, COT_SHAPE(2, 2), 14, 32, 32, 77);
    }
    /* the sum of squares, 76800, is beyond f16; the sum of 1/16 of them is not rounded on the
     * way */
    cot_var big = cot_full(t, COT_F16, COT_SHAPE(300), 16);
    IS(EINSUM("i,i->", big, cot_full(t, COT_F16, COT_SHAPE(300), 1)), COT_SCALAR, 4800);
    assert_int_equal(cot_dtype_of(EINSUM("i,i->", big, cot_full(t, COT_F32, COT_SHAPE(300), 16))), COT_F32);
    cot_tape_destroy(t);
}

static void a_nan_reaches_what_it_touches(void **state) {
    (void)state;
    cot_tape    *t = cot_tape_create(NULL);
    const double v[4] = {1, NAN, INFINITY, 4};
    double       have[4];
    cot_var      x = cot_data(t, COT_F64, COT_SHAPE(2, 2), v);
    assert_int_equal(cot_read(EINSUM("ij->i", x), have, 2), COT_OK);
    assert_true(isnan(have[0]) && have[1] == INFINITY);
    assert_int_equal(cot_read(EINSUM("ii->i", x), have, 2), COT_OK);
    assert_true(have[0] == 1 && have[1] == 4);
    cot_tape_destroy(t);
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Bytes that the product makes. */
static int64_t bytes_of(cot_tape *t, const char *text, int n, const cot_var *xs) {
    int64_t before = cot_tape_storage_bytes(t);
    cot_einsum(text, n, xs);
    assert_ok(t);
    return cot_tape_storage_bytes(t) - before;
}

static void no_larger_product_than_needed(void **state) {
    (void)state;
    enum { N = 200 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   m = cot_ones(t, COT_F64, COT_SHAPE(N, N)), v = cot_ones(t, COT_F64, COT_SHAPE(N)),
            small_one = cot_ones(t, COT_F64, COT_SHAPE(N, 2));
    /* A B C v from the right: vectors only */
    assert_true(bytes_of(t, "ab,bc,cd,d->a", 4, (cot_var[]){m, m, m, v}) <= 4 * N * 8);
    /* xᵀ A y: never x yᵀ */
    assert_true(bytes_of(t, "i,j,ij->", 3, (cot_var[]){v, v, m}) <= 3 * N * 8);
    /* Uᵀ A U of thin U: never U Uᵀ */
    assert_true(bytes_of(t, "ip,jp,ij->", 3, (cot_var[]){small_one, small_one, m}) <= 8 * N * 8);
    /* 2 N³ numbers if the two matrices were joined first */
    assert_true(bytes_of(t, "ij,ik,jl,kl->", 4, (cot_var[]){m, m, small_one, small_one}) <= 8 * N * N * 8);
    /* scalars and disjoint operands are multiplied last */
    assert_true(bytes_of(t, "a,b,ab,c,c->", 5, (cot_var[]){v, v, m, v, v}) <= 4 * N * 8);
    cot_tape_destroy(t);
}

static void many_operands(void **state) {
    (void)state;
    enum { N = 60 };
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[N];
    char      text[3 * N];
    for (int k = 0; k < N; k++) xs[k] = cot_full(t, COT_F64, COT_SHAPE(2, 2), k % 2 ? 0.5 : 1);
    /* a chain over 51 letters, the others repeat: ab,bc,cd,… */
    for (int k = 0; k < 51; k++) {
        const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        text[3 * k] = letters[k], text[3 * k + 1] = letters[k + 1], text[3 * k + 2] = k < 50 ? ',' : '\0';
    }
    /* every product of two all-ones matrices doubles: 2^50, halved 25 times */
    cot_var z = cot_einsum(text, 51, xs);
    IS(z, COT_SHAPE(2, 2), 0x1p25, 0x1p25, 0x1p25, 0x1p25);
    cot_tape_destroy(t);
}

static void threads_give_the_same_bits(void **state) {
    (void)state;
    enum { N = 96 };
    static double data[N * N], have[4][N * N];
    const int     threads[4] = {1, 2, 3, 8};
    for (int i = 0; i < N * N; i++) data[i] = small();
    for (int k = 0; k < 4; k++) {
        cot_set_threads(threads[k]);
        cot_tape *t = cot_tape_create(NULL);
        cot_var   x = cot_data(t, COT_F64, COT_SHAPE(N, N), data);
        assert_int_equal(cot_read(EINSUM("ij,kj,kl->li", x, x, x), have[k], N * N), COT_OK);
        cot_tape_destroy(t);
        assert_memory_equal(have[0], have[k], sizeof have[0]);
    }
    cot_set_threads(0);
}

/* ---- errors ---------------------------------------------------------------------------------- */

#define expect(t, code, text)                                                                                          \
    do {                                                                                                               \
        assert_error(t, code, text);                                                                                   \
        cot_tape_clear_error(t);                                                                                       \
    } while (0)

static void errors_say_what_is_wrong(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   a = cot_data(t, COT_F64, COT_SHAPE(2, 3), six), s = cot_data(t, COT_F64, COT_SHAPE(3, 3), NULL);
    assert_false(cot_is_valid(cot_einsum("i", 0, NULL)));
    cot_einsum(NULL, 1, &a);
    expect(t, COT_VALUE, "[einsum] the subscripts are NULL; they are a text like \"ij,jk->ik\"");
    EINSUM("ij,jk", a);
    expect(t, COT_VALUE, "[einsum] \"ij,jk\" has subscripts for 2 operands; there are 1");
    EINSUM("ij->ij", a, a);
    expect(t, COT_VALUE, "[einsum] \"ij->ij\" has subscripts for 1 operands; there are 2");
    EINSUM("i2->i", a);
    expect(t, COT_VALUE,
           "[einsum] '2' at place 1 of \"i2->i\" is out of place; subscripts are letters, \"...\", \",\" between "
           "operands and one \"->\"");
    EINSUM("..i", a);
    expect(t, COT_VALUE,
           "[einsum] '.' at place 0 of \"..i\" is out of place; subscripts are letters, \"...\", \",\" between "
           "operands and one \"->\"");
    EINSUM("ij-ji", a);
    expect(t, COT_VALUE,
           "[einsum] '-' at place 2 of \"ij-ji\" is out of place; subscripts are letters, \"...\", \",\" between "
           "operands and one \"->\"");
    EINSUM("ij->i,j", a);
    expect(t, COT_VALUE,
           "[einsum] ',' at place 5 of \"ij->i,j\" is out of place; subscripts are letters, \"...\", \",\" between "
           "operands and one \"->\"");
    EINSUM("ij->i->j", a);
    expect(t, COT_VALUE,
           "[einsum] '-' at place 5 of \"ij->i->j\" is out of place; subscripts are letters, \"...\", \",\" between "
           "operands and one \"->\"");
    EINSUM("...i...", a);
    expect(t, COT_VALUE, "[einsum] \"...i...\" has \"...\" twice for xs[0]; once is possible");
    EINSUM("ij->...i...", a);
    expect(t, COT_VALUE, "[einsum] \"ij->...i...\" has \"...\" twice for the output; once is possible");
    EINSUM("abcdefghijklmnopq", a);
    expect(t, COT_LIMIT,
           "[einsum] \"abcdefghijklmnopq\" has more than 16 letters for xs[0]; there are at most 16 axes");
    EINSUM("ij,ijk", a, a);
    expect(t, COT_SHAPE,
           "[einsum] \"ij,ijk\" has 3 letters for xs[1] of shape (2,3); each axis has one, or \"...\" stands for the "
           "others");
    EINSUM("i...jk", a);
    expect(t, COT_SHAPE,
           "[einsum] \"i...jk\" has 3 letters for xs[0] of shape (2,3); there are no more letters than axes");
    EINSUM("ii", a);
    expect(t, COT_SHAPE,
           "[einsum] 'i' names axes of extents 2 and 3 of xs[0]; a subscript that repeats names a diagonal of equal "
           "extents");
    EINSUM("ii", cot_data(t, COT_F64, COT_SHAPE(1, 3), six));
    expect(t, COT_SHAPE,
           "[einsum] 'i' names axes of extents 1 and 3 of xs[0]; a subscript that repeats names a diagonal of equal "
           "extents");
    EINSUM("ij,jk", a, a);
    expect(t, COT_SHAPE, "[einsum] 'j' has extent 2 in xs[1] and 3 before; extents of one subscript are equal or 1");
    EINSUM("...i,...j", a, s);
    expect(
        t, COT_SHAPE,
        "[einsum] an axis under \"...\" has extent 3 in xs[1] and 2 before; extents of one subscript are equal or 1");
    EINSUM("ij->iz", a);
    expect(t, COT_VALUE, "[einsum] the output of \"ij->iz\" has 'z', which no operand has");
    EINSUM("ij->ii", a);
    expect(t, COT_VALUE, "[einsum] the output of \"ij->ii\" has 'i' twice; each subscript appears there once");
    EINSUM("...i->i", a);
    expect(t, COT_VALUE,
           "[einsum] the output of \"...i->i\" has no \"...\", but operands have axes under theirs; write \"...\" "
           "there too");
    cot_var wide = cot_zeros(t, COT_F64, ((cot_shape){9, {1, 1, 1, 1, 1, 1, 1, 1, 1}}));
    EINSUM("abcdefghi,jklmnopqr", wide, wide);
    expect(t, COT_LIMIT, "[einsum] the output of \"abcdefghi,jklmnopqr\" has 18 axes; there are at most 16");
    EINSUM("...,jklmnopqr->...jklmnopqr", wide, wide);
    expect(t, COT_LIMIT, "[einsum] the output of \"...,jklmnopqr->...jklmnopqr\" has 18 axes; there are at most 16");
    /* in a good order no product is too wide */
    EINSUM("abcdefghi,jklmnopqr,abcdefghi,jklmnopqr->", wide, wide, wide, wide);
    assert_ok(t);
    cot_var four[4]; /* each shares five subscripts with each other: any two keep 20 */
    for (int k = 0; k < 4; k++)
        four[k] = cot_zeros(t, COT_F64, ((cot_shape){15, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}));
    cot_einsum("abcdefghijklmno,abcdepqrstuvwxy,fghijpqrstABCDE,klmnouvwxyABCDE->", 4, four);
    expect(t, COT_LIMIT, "[einsum] the product of two operands would have 20 axes; there are at most 16");
    cot_tensordot(a, a, COT_AXES(0), COT_AXES(0, 1));
    expect(t, COT_SHAPE, "[tensordot] 1 axes of a meet 2 of b; each axis of one list meets one of the other");
    cot_tensordot(a, a, COT_AXES(0), COT_AXES(1));
    expect(t, COT_SHAPE, "[tensordot] axis 0 of a (2,3) meets axis 1 of b (2,3); axes that meet have equal extents");
    cot_tensordot(a, a, COT_AXES(2), COT_AXES(1));
    expect(t, COT_SHAPE, "[tensordot] axis 2 is out of range for rank 2; axes run from -2 to 1");
    cot_tensordot(s, s, COT_AXES(0, -2), COT_AXES(0, 1));
    expect(t, COT_SHAPE, "[tensordot] axis 0 is listed twice; each axis may appear once");
    cot_tensordot(wide, wide, (cot_axes){0, false, {0}}, (cot_axes){0, false, {0}});
    expect(t, COT_LIMIT, "[tensordot] the result would have 18 axes; there are at most 16");
    cot_tape_destroy(t);
}

static void more_labels_than_a_word_holds(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[5];
    cot_shape deep = {16, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, last = deep;
    last.ndim = 13;
    for (int k = 0; k < 5; k++) xs[k] = cot_zeros(t, COT_F64, k < 4 ? deep : last);
    xs[3] = cot_zeros(t, COT_F64, (cot_shape){4, {1, 1, 1, 1}});
    cot_einsum("abcdefghijklmnop,qrstuvwxyzABCDEF,GHIJKLMNOPQRSTUV,WXYZ,...->...", 5, xs);
    expect(t, COT_LIMIT,
           "[einsum] \"abcdefghijklmnop,qrstuvwxyzABCDEF,GHIJKLMNOPQRSTUV,WXYZ,...->...\" has more than 64 different "
           "subscripts");
    cot_tape_destroy(t);
}

static void absurd_sizes_are_refused(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_broadcast_to(cot_scalar(t, 1), COT_SHAPE(INT64_C(1) << 40));
    cot_einsum("i,j->ij", 2, (cot_var[]){x, x});
    assert_int_equal(cot_tape_status(t), COT_LIMIT);
    assert_non_null(strstr(cot_tape_message(t), "(1099511627776,1099511627776)"));
    cot_tape_destroy(t);
}

static void sum_products(cot_tape *t, void *user) {
    (void)user;
    cot_var a = cot_tensor(t, COT_F64, COT_SHAPE(2, 3), six), b = cot_tensor(t, COT_F64, COT_SHAPE(3, 3), NULL);
    cot_var z = cot_einsum("ij,jj,kj->ik", 3, (cot_var[]){a, b, a}), g[2];
    cot_grad_of(cot_sum(cot_square(z), COT_ALL), 2, (cot_var[]){a, b}, g);
}

static void any_allocation_may_fail(void **state) {
    (void)state;
    assert_survives_no_memory(sum_products, NULL, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_subscripts_give_the_sum_over_all_indices),
        cmocka_unit_test(the_output_is_implied_as_in_numpy),
        cmocka_unit_test(extents_of_one_repeat),
        cmocka_unit_test(tensordot_lists_axes),
        cmocka_unit_test(dtypes_stay_and_truths_count),
        cmocka_unit_test(a_nan_reaches_what_it_touches),
        cmocka_unit_test(no_larger_product_than_needed),
        cmocka_unit_test(many_operands),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(errors_say_what_is_wrong),
        cmocka_unit_test(more_labels_than_a_word_holds),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
