/* Operations on rows in groups: softmax, norms and the ways back through them between elementwise
 * operations: when they join, why others do not, and that a run has the bits of one operation after
 * the other and less memory. */
#include "group_test.h"

#include "program/run_parts.h"

static void tell(cot__text *to, const cot__fusion *f, uint32_t k, uint32_t z) {
    if (f->of[k] != COT__NO_VALUE) cot__putf(to, " in %u%s", f->of[k], f->inside[z] ? " inside" : "");
    if (f->why[k] != COT__FUSED) cot__putf(to, ": %s", cot__unfused_text[f->why[k]]);
}
static void groups_are(draft *d, const char *text) { groups_are_told(d, tell, text); }

#define NORM_BACK(d, rms, ...) op(d, OP_norm_back, X(__VA_ARGS__), .ints = 2, .at = {1, rms}, .attr_number = 1e-5)

/* ---- when ------------------------------------------------------------------------------------ */

static void softmax_and_norms_join_what_stands_around_them(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(50, 30)), w = input(&d, COT_F32, SHAPE(30));
    uint32_t a = op(&d, OP_exp, X(x)), s = SOFTMAX(&d, a);          /* %2 %3 */
    uint32_t n = NORM(&d, OP_layer_norm, 1, op(&d, OP_add, X(s, x)), w); /* %4 %5, statistics %6 */
    uint32_t m = op(&d, OP_max, X(n), .ints = 2, .at = {2, 0});
    output(&d, op(&d, OP_mul, X(n, a)));
    output(&d, n + 1), output(&d, m);
    groups_are(&d, "%2 exp in 0 inside: an operation stands between that is not elementwise\n"
                   "%3 softmax in 0 inside\n"
                   "%4 add in 0 inside\n"
                   "%5 layer_norm in 0 inside\n"
                   "%7 max in 0\n"
                   "%8 mul in 0\n");
}

/* An operation on rows begins a group, too; alone it is none. */
static void an_operation_on_rows_begins_a_group(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(20, 30)), s = SOFTMAX(&d, x), t = op(&d, OP_neg, X(s));
    uint32_t c = op(&d, OP_cumsum, X(t), .ints = 2, .at = {0, 0});
    output(&d, SOFTMAX(&d, c));
    groups_are(&d, "%1 softmax in 0 inside: an operation stands between that is not elementwise\n"
                   "%2 neg in 0\n"
                   "%3 cumsum: it is not elementwise, or has no axes\n"
                   "%4 softmax: an operation stands between that is not elementwise\n");
}

static void the_reason_is_told_why_one_does_not_join(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(20, 30)), a = op(&d, OP_exp, X(x)); /* %1 */
    uint32_t b = op(&d, OP_softmax, X(a), .ints = 1, .at = {0});               /* along columns */
    uint32_t t = op(&d, OP_permute, X(op(&d, OP_exp, X(b))), .ints = 2, .at = {1, 0}); /* %3 %4 */
    uint32_t c = SOFTMAX(&d, t);                                               /* %5 */
    uint32_t e = op(&d, OP_reshape, X(op(&d, OP_exp, X(c))), .asked = {COT_F32, SHAPE(100, 6)});
    uint32_t f = SOFTMAX(&d, e);                                               /* %8: short rows */
    uint32_t g = op(&d, OP_reshape, X(f), .asked = {COT_F32, SHAPE(20, 30)});  /* %9 */
    uint32_t h = op(&d, OP_matmul, X(g, op(&d, OP_permute, X(g), .ints = 2, .at = {1, 0})));
    uint32_t i = SOFTMAX(&d, op(&d, OP_exp, X(h)));                            /* %13 */
    uint32_t j = op(&d, OP_reshape, X(op(&d, OP_exp, X(i))), .asked = {COT_F32, SHAPE(40, 10)});
    output(&d, op(&d, OP_neg, X(SOFTMAX(&d, j)))); /* %16: rows of 20 and of 10 */
    groups_are(&d, "%1 exp: an operation stands between that is not elementwise\n"
                   "%2 softmax: it has no rows along the last axes\n"
                   "%3 exp: an operation stands between that is not elementwise\n"
                   "%4 permute: it is not elementwise, or has no axes\n"
                   "%5 softmax: its operands do not lie row by row\n"
                   "%6 exp: an operation stands between that is not elementwise\n"
                   "%7 reshape: it is not elementwise, or has no axes\n"
                   "%8 softmax: its rows are too short or too long for a block\n"
                   "%9 reshape: it is not elementwise, or has no axes\n"
                   "%10 permute: it is not elementwise, or has no axes\n"
                   "%11 matmul in 0 inside: it is not elementwise, or has no axes\n"
                   "%12 exp in 0 inside\n"
                   "%13 softmax in 0 inside\n"
                   "%14 exp in 0\n"
                   "%15 reshape: it is not elementwise, or has no axes\n"
                   "%16 softmax in 1 inside: the group reduces all of its elements, or has rows of another length\n"
                   "%17 neg in 1\n");
}

/* The way back through softmax, z g - z Σ z g, and the same with what is computed of each sum;
 * not with sums of other rows, which are turned. */
static void members_read_along_the_rows_what_folds_have_made_of_them(void **state) {
    (void)state;
    for (int numbers = 0; numbers < 3; numbers++) {
        draft d;
        draft_open(&d, NULL);
        uint32_t z = input(&d, COT_F32, SHAPE(50, 30)), g = input(&d, COT_F32, SHAPE(50, 30));
        uint32_t zg = op(&d, OP_smul, X(g, z)), s = op(&d, OP_sum, X(zg), .ints = 2, .at = {2, 1});
        if (numbers == 1) s = op(&d, OP_mul, X(s, input(&d, COT_F32, SHAPE(50, 1))));
        if (numbers == 2) s = op(&d, OP_slice, X(s), .ints = 5, .at = {0, 49, 50, -1, 0});
        uint32_t all = op(&d, OP_broadcast_to, X(s), .asked = {COT_F32, SHAPE(50, 30)});
        output(&d, op(&d, OP_sub, X(zg, op(&d, OP_smul, X(all, z)))));
        groups_are(&d, numbers == 2 ? "%2 smul in 0: an operation stands between that is not elementwise\n"
                                      "%3 sum in 0\n"
                                      "%4 slice: it is not elementwise, or has no axes\n"
                                      "%5 broadcast_to: it is not elementwise, or has no axes\n"
                                      "%6 smul in 1 inside: it reads elements of the group in another order\n"
                                      "%7 sub in 1\n"
                       : numbers ? "%2 smul in 0 inside: an operation stands between that is not elementwise\n"
                                   "%3 sum in 0\n"
                                   "%5 mul in 0\n"
                                   "%6 broadcast_to: it is not elementwise, or has no axes\n"
                                   "%7 smul in 0 inside\n"
                                   "%8 sub in 0\n"
                                 : "%2 smul in 0 inside: an operation stands between that is not elementwise\n"
                                 "%3 sum in 0\n"
                                 "%4 broadcast_to: it is not elementwise, or has no axes\n"
                                 "%5 smul in 0 inside\n"
                                 "%6 sub in 0\n");
    }
}

/* 512 kB. */
static void small_arrays_stay_in_cache_and_by_themselves(void **state) {
    (void)state;
    for (int large = 0; large < 2; large++) {
        draft d;
        draft_open(&d, NULL);
        uint32_t x = input(&d, COT_F32, SHAPE(1023 + large, 128));
        output(&d, SOFTMAX(&d, op(&d, OP_exp, X(x))));
        groups_are(&d, large ? "%1 exp in 0 inside: an operation stands between that is not elementwise\n"
                               "%2 softmax in 0\n"
                             : "%1 exp: an operation stands between that is not elementwise\n"
                               "%2 softmax: its arrays are small enough to stay in cache\n");
    }
}

/* Other work stands between the parts of a norm and of a way back: the pass puts it before or
 * behind, and all of each is one group. */
static void what_is_done_to_rows_is_gathered(void **state) {
    draft d;
    char  text[4096];
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(50, 30)), y = input(&d, COT_F32, SHAPE(40));
    uint32_t a = op(&d, OP_exp, X(x)), c = op(&d, OP_cumsum, X(y), .ints = 2, .at = {0, 0});
    uint32_t n = NORM(&d, OP_rms_norm, 0, a);
    c = op(&d, OP_cumsum, X(c), .ints = 2, .at = {0, 0});
    uint32_t s = op(&d, OP_sum, X(n), .ints = 2, .at = {2, 1});
    c = op(&d, OP_cumsum, X(c), .ints = 2, .at = {0, 0});
    uint32_t all = op(&d, OP_broadcast_to, X(s), .asked = {COT_F32, SHAPE(50, 30)});
    c = op(&d, OP_cumsum, X(c), .ints = 2, .at = {0, 0});
    output(&d, op(&d, OP_mul, X(n, all)));
    output(&d, c);
    cot__program *p = draft_close(&d), *q = after(p, cot__pass_gather);
    describe_groups(q, tell, text, sizeof text);
    assert_non_null(strstr(text, "exp in 0 inside: an operation stands between that is not elementwise\n"));
    assert_non_null(strstr(text, "rms_norm in 0 inside\n"));
    assert_non_null(strstr(text, "sum in 0\n"));
    assert_non_null(strstr(text, "mul in 0\n"));
    cot__program_release(p);
    cot__program_release(q);
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* A NaN or an infinity is seen in all of its row, so most rows have none. */
static void fill_rows(const cot__program *p, uint64_t seed, void **in) {
    dice r = {seed};
    for (uint32_t k = 0; k < p->inputs; k++) {
        cot__view v = cot__value_view(p, p->input[k]);
        in[k] = malloc(bytes_at(p, p->input[k]) + 1);
        for (int64_t i = 0; i < cot__view_size(&v); i++)
            cot__store_f64((char *)in[k] + i * cot__dtype_size(v.dtype), v.dtype,
                           below(&r, 4000) ? (double)below(&r, 4001) / 500 - 4 : odd_number(&r));
    }
}

static void same_bits_in_groups(const cot__program *p, uint64_t seed) {
    void *in[4];
    fill_rows(p, seed, in);
    groups_keep_bits(p, in, seed);
}

/* Bias, mask and residual before, a factor and the sum of rows behind. Norms take F64 and F32, so
 * 16 bits are widened for them and rounded behind. */
static void program_of(draft *d, int which, cot_dtype dtype, cot_shape shape) {
    cot_shape row = {1, {shape.dim[1]}}, pair = {2, {shape.dim[0], shape.dim[1] ? 2 : 0}};
    cot_dtype wide = cot__dtype_compute(dtype);
    uint32_t  x = input(d, dtype, shape), y = input(d, dtype, shape), b = input(d, dtype, row), z = 0;
    uint32_t  every = op(d, OP_broadcast_to, X(b), .asked = {dtype, shape});
    uint32_t  masked = op(d, OP_where, X(op(d, OP_less, X(y, NUM), .number = 3), x, every));
    uint32_t  a = op(d, OP_add, X(op(d, OP_mul, X(masked, NUM), .number = 0.3), every));
    uint32_t  u = op(d, OP_cast, X(a), .asked = {wide, {0}}), w = op(d, OP_cast, X(b), .asked = {wide, {0}});
    switch (which) {
    case 0: z = SOFTMAX(d, a); break;
    case 1: z = op(d, OP_log_softmax, X(a), .ints = 1, .at = {1}); break;
    case 2: z = NORM(d, OP_layer_norm, 1, u, w, w), output(d, z + 1); break;
    case 3: z = NORM(d, OP_rms_norm, 0, u); break;
    case 4: z = NORM_BACK(d, 0, u, op(d, OP_cast, X(y), .asked = {wide, {0}}), input(d, wide, pair), w); break;
    default:
        z = op(d, OP_norm_known, X(u, input(d, wide, pair)), .ints = 2, .at = {1, 1}, .attr_number = 1e-5);
        z = op(d, OP_rms_norm, X(z, w), .ints = 3, .at = {1, 1, 0}, .attr_number = 0);
    }
    uint32_t narrow = op(d, OP_cast, X(z), .asked = {dtype, {0}});
    uint32_t scaled = op(d, OP_mul, X(op(d, OP_add, X(narrow, y)), NUM), .number = 0.7);
    output(d, scaled);
    output(d, op(d, OP_sum, X(scaled), .ints = 2, .at = {2, 1}));
    if (shape.dim[1] % 2) output(d, z);
}

enum { KINDS = 6 };

/* Elements: a part of the work has one block, or several. */
static int size_of(int i) { return i % 2 ? 9000 : 90000; }

/* Rows that are too short or too long for a group, around vectors and calls, and one row. */
static void operations_on_rows_have_the_bits_of_themselves_alone(void **state) {
    static const int       rows[] = {1, 8, 9, 100, 257, 1000, 1024, 1025, 4096, 5000};
    static const cot_dtype dtypes[] = {COT_F32, COT_F64, COT_BF16, COT_F16};
    (void)state;
    for (int i = 0; i < TEST_COUNT(rows); i++)
        for (int t = 0; t < TEST_COUNT(dtypes); t++)
            for (int which = 0; which < KINDS; which++) {
                draft d;
                if (test_small() && (i + t + which) % 3) continue;
                draft_open(&d, NULL);
                program_of(&d, which, dtypes[t], SHAPE(i % 4 == 3 ? 1 : 1 + size_of(i) / rows[i], rows[i]));
                cot__program *p = draft_close(&d);
                same_bits_in_groups(p, (uint64_t)(100 * i + 10 * t + which));
                cot__program_release(p);
            }
    test_verdict();
}

/* The ways back through softmax and log_softmax, logsumexp with its weights, and rows divided by
 * their lengths. */
static uint32_t along_rows(draft *d, int which, cot_dtype dtype, cot_shape shape, uint32_t x, uint32_t y) {
    int64_t  kept = which % 2; /* or a reshape instead */
    int      reduction = which < 2 ? OP_sum : which < 4 ? OP_logsumexp : which < 6 ? OP_norm : OP_max;
    uint32_t a = op(d, OP_tanh, X(op(d, OP_add, X(x, y)))), s;
    s = op(d, reduction, X(a), .ints = 2, .at = {2, kept});
    if (!kept) s = op(d, OP_reshape, X(s), .asked = {dtype, SHAPE((int)shape.dim[0], 1)});
    uint32_t all = op(d, OP_broadcast_to, X(s), .asked = {dtype, shape});
    uint32_t z = op(d, OP_sub, X(a, op(d, OP_mul, X(all, x))));
    output(d, op(d, OP_min, X(z), .ints = 2, .at = {2, 0}));
    if (which % 3 == 0) output(d, s);
    return op(d, OP_div, X(z, all));
}

/* (a - mean a) / sqrt(variance a + eps) in single operations. In 16 bits each is rounded. */
static uint32_t normalised(draft *d, cot_dtype dtype, cot_shape shape, uint32_t x, uint32_t y) {
    double   share = 1 / (double)shape.dim[1];
    uint32_t a = op(d, OP_tanh, X(op(d, OP_add, X(x, y))));
    uint32_t mean = op(d, OP_mul, X(op(d, OP_sum, X(a), .ints = 2, .at = {2, 1}), NUM), .number = share);
    uint32_t away = op(d, OP_sub, X(a, op(d, OP_broadcast_to, X(mean), .asked = {dtype, shape})));
    uint32_t squares = op(d, OP_sum, X(op(d, OP_square, X(away))), .ints = 2, .at = {2, 0});
    uint32_t variance = op(d, OP_mul, X(squares, NUM), .number = share);
    uint32_t r = op(d, OP_rsqrt, X(op(d, OP_add, X(variance, NUM), .number = 1e-3)));
    uint32_t each = op(d, OP_reshape, X(r), .asked = {dtype, SHAPE((int)shape.dim[0], 1)});
    output(d, mean), output(d, op(d, OP_cast, X(variance), .asked = {COT_F64, {0}}));
    return op(d, OP_mul, X(away, op(d, OP_broadcast_to, X(each), .asked = {dtype, shape})));
}

static void what_folds_have_made_of_rows_is_read_with_the_same_bits(void **state) {
    static const int       rows[] = {8, 100, 257, 1025, 4096, 5000};
    static const cot_dtype dtypes[] = {COT_F32, COT_F64, COT_BF16};
    (void)state;
    for (int i = 0; i < TEST_COUNT(rows); i++)
        for (int t = 0; t < TEST_COUNT(dtypes); t++)
            for (int which = 0; which < 9; which++) {
                draft d;
                if (test_small() && (i + t + which) % 3) continue;
                draft_open(&d, NULL);
                cot_shape shape = SHAPE(1 + size_of(i) / rows[i], rows[i]);
                uint32_t  x = input(&d, dtypes[t], shape), y = input(&d, dtypes[t], shape);
                uint32_t  z = which < 8 ? along_rows(&d, which, dtypes[t], shape, x, y)
                                        : normalised(&d, dtypes[t], shape, x, y);
                output(&d, which == 5 ? SOFTMAX(&d, z) : z);
                cot__program *p = draft_close(&d);
                cot__fusion   f;
                open_groups(p, &f);
                TEST_CHECK(f.groups == 1 || rows[i] > 4096, "rows of %d, %d: %u groups", rows[i], which, f.groups);
                cot__fusion_close(&f);
                same_bits_in_groups(p, (uint64_t)(100 * i + 10 * t + which));
                cot__program_release(p);
            }
    test_verdict();
}

static void rows_may_have_several_axes(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(7, 9, 5, 6)), w = input(&d, COT_F32, SHAPE(5, 6));
    uint32_t a = op(&d, OP_tanh, X(x));
    uint32_t n = op(&d, OP_layer_norm, X(a, w), .ints = 3, .at = {2, 0, 1}, .attr_number = 1e-3);
    uint32_t g = op(&d, OP_mul, X(n, x));
    output(&d, op(&d, OP_norm_back, X(x, g, input(&d, COT_F32, SHAPE(7, 9, 2)), w), .ints = 2, .at = {2, 0}));
    output(&d, n + 1);
    cot__program *p = draft_close(&d);
    cot__fusion   f;
    open_groups(p, &f);
    assert_true(f.groups == 1 && f.group[0].row == 30 && f.group[0].folds == 2 && f.group[0].runs == 2);
    cot__fusion_close(&f);
    same_bits_in_groups(p, 1);
    cot__program_release(p);
    test_verdict();
}

/* Nothing is made of empty arrays, and nothing is read. */
static void empty_arrays_have_no_rows(void **state) {
    (void)state;
    for (int which = 0; which < KINDS; which++)
        for (int k = 0; k < 2; k++) {
            draft d;
            draft_open(&d, NULL);
            program_of(&d, which, COT_F32, k ? SHAPE(3, 0) : SHAPE(0, 30));
            cot__program *p = draft_close(&d);
            same_bits_in_groups(p, 1);
            cot__program_release(p);
        }
    test_verdict();
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t arena_of(const cot__program *p) {
    heard       h;
    cot__caller caller = {"test", &h, hear_error, hear_note, NULL};
    cot__run   *r = cot__run_create(p, &cot__cpu_backend, NULL, NULL, &caller);
    size_t      bytes = cot__run_arena_bytes(r);
    cot__run_destroy(r);
    return bytes;
}

/* exp(x), its softmax and a product: 8 MB each. Alone, two arrays are there at the same time; in a
 * group one, and some blocks of the others. */
static void what_stands_between_takes_some_blocks(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1024, 1024)), s = SOFTMAX(&d, op(&d, OP_exp, X(x)));
    output(&d, op(&d, OP_mul, X(s, x)));
    cot__program *p = draft_close(&d);
    size_t        array = 8 << 20, blocks = 2 * 8 * COT__STAGE_ROOM;
    cot__small_rows = usual_size;
    size_t together = arena_of(p);
    cot__small_rows = INT64_MAX;
    size_t alone = arena_of(p);
    cot__small_rows = 1;
    assert_true(alone >= 2 * array && alone < 2 * array + 4096);
    assert_true(together >= array + blocks && together < array + blocks + 4096);
    cot__program_release(p);
}

/* Of shorter arrays, 1 MB, what lives within blocks takes half of one. */
static void what_stands_between_takes_half_an_array(void **state) {
    draft d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(1024, 128));
    output(&d, op(&d, OP_mul, X(op(&d, OP_exp, X(x)), op(&d, OP_sin, X(x)))));
    cot__program *p = draft_close(&d);
    size_t        array = 1 << 20, bytes = arena_of(p);
    assert_true(bytes >= 2 * array && bytes < 2 * array + 4096);
    cot__program_release(p);
}

/* Of long arrays each part of the work has a piece of its own, however many parts there are. */
static void parts_do_not_share_their_pieces(void **state) {
    static const cot_dtype dtypes[] = {COT_F32, COT_F64, COT_BF16};
    (void)state;
    for (int t = 0; t < TEST_COUNT(dtypes); t++)
        for (int rows = 0; rows < 4; rows++) {
            draft d;
            draft_open(&d, NULL);
            int       n = rows & 2 ? 132 : 700;
            cot_shape shape = SHAPE(n, 1000);
            uint32_t  x = input(&d, dtypes[t], shape), y = input(&d, dtypes[t], SHAPE(n));
            uint32_t  tall = op(&d, OP_broadcast_to, X(op(&d, OP_reshape, X(y), .asked = {dtypes[t], SHAPE(n, 1)})),
                                .asked = {dtypes[t], shape});
            uint32_t  a = op(&d, OP_exp, X(x)), b = op(&d, OP_sin, X(op(&d, OP_mul, X(x, tall))));
            if (rows & 1) b = SOFTMAX(&d, b);
            output(&d, op(&d, OP_add, X(op(&d, OP_mul, X(a, b)), op(&d, OP_cos, X(b)))));
            cot__program *p = draft_close(&d);
            same_bits_in_groups(p, (uint64_t)t);
            cot__program_release(p);
        }
    test_verdict();
}

/* Inputs that do not lie row by row are copied by what packs them, and join no group. */
static void inputs_that_lie_apart_are_read_alone(void **state) {
    heard         h = {0};
    cot__caller   caller = {"test", &h, hear_error, hear_note, NULL};
    int64_t       shape[2] = {20, 30}, apart[2] = {1, 20}, side[2] = {30, 1};
    float         data[600], turned[600], out[2][600];
    draft         d;
    (void)state;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F32, SHAPE(20, 30));
    output(&d, op(&d, OP_neg, X(NORM(&d, OP_layer_norm, 0, x))));
    cot__program *p = draft_close(&d);
    for (int i = 0; i < 600; i++) data[i] = (float)((i * 37) % 101), turned[i % 30 * 20 + i / 30] = data[i];
    for (int k = 0; k < 2; k++) {
        cot__view   v = {NULL, COT_F32, 2, shape, k ? apart : side};
        const void *in[1] = {k ? turned : data};
        void       *to[1] = {out[k]};
        cot__run   *r = cot__run_create(p, &cot__cpu_backend, NULL, &v, &caller);
        assert_non_null(r);
        assert_true(cot__run_go(r, in, to));
        cot__run_destroy(r);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    cot__program_release(p);
}

/* Softmax of an input, the same of a view of it, a way back through a norm that reads it second,
 * and what reads it once more: x - softmax(x). */
static cot__program *reader_of_rows(int which) {
    draft d;
    draft_open(&d, NULL);
    uint32_t x = input(&d, COT_F64, SHAPE(50, 30)), z = x;
    if (which == 1) z = op(&d, OP_reshape, X(x), .asked = {COT_F64, SHAPE(50, 30)});
    if (which != 2) z = SOFTMAX(&d, z);
    else z = NORM_BACK(&d, 0, op(&d, OP_exp, X(x)), x, input(&d, COT_F64, SHAPE(50, 2)));
    if (which == 3) z = op(&d, OP_sub, X(x, z));
    output(&d, z), output(&d, op(&d, OP_neg, X(z)));
    return draft_close(&d);
}

/* An output that is given the memory of an input is not made there by an operation on rows that
 * reads it, whose kernels may not; the operation behind it may. */
static void operations_on_rows_do_not_write_where_they_read(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++) {
        cot__program *p = reader_of_rows(which);
        heard         h = {0};
        cot__caller   caller = {"test", &h, hear_error, hear_note, NULL};
        void         *in[2] = {NULL, NULL}, *second = malloc(50 * 30 * sizeof(double));
        fill_rows(p, 5, in);
        result        want = run_program(p, in, false);
        cot__run     *r = cot__run_create(p, &cot__cpu_backend, NULL, NULL, &caller);
        assert_int_equal(r->jobs, 1);
        assert_true(cot__run_go(r, (const void *const *)in, (void *[]){in[0], second}));
        bool there = r->base[p->inputs] == in[0];
        TEST_CHECK(there == (which == 3), "%d: made %s", which, there ? "there" : "elsewhere");
        assert_true(same_elements(in[0], want.out[0], want.bytes[0], COT_F64));
        assert_true(same_elements(second, want.out[1], want.bytes[1], COT_F64));
        cot__run_destroy(r);
        free_result(&want);
        free(in[0]), free(in[1]), free(second);
        cot__program_release(p);
    }
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_and_norms_join_what_stands_around_them),
        cmocka_unit_test(an_operation_on_rows_begins_a_group),
        cmocka_unit_test(the_reason_is_told_why_one_does_not_join),
        cmocka_unit_test(members_read_along_the_rows_what_folds_have_made_of_them),
        cmocka_unit_test(what_is_done_to_rows_is_gathered),
        cmocka_unit_test(what_folds_have_made_of_rows_is_read_with_the_same_bits),
        cmocka_unit_test_setup_teardown(small_arrays_stay_in_cache_and_by_themselves, of_usual_size, of_any_size),
        cmocka_unit_test(operations_on_rows_have_the_bits_of_themselves_alone),
        cmocka_unit_test(rows_may_have_several_axes),
        cmocka_unit_test(empty_arrays_have_no_rows),
        cmocka_unit_test(what_stands_between_takes_some_blocks),
        cmocka_unit_test(what_stands_between_takes_half_an_array),
        cmocka_unit_test(parts_do_not_share_their_pieces),
        cmocka_unit_test(inputs_that_lie_apart_are_read_alone),
        cmocka_unit_test(operations_on_rows_do_not_write_where_they_read),
    };
    return cmocka_run_group_tests(tests, of_any_size, of_usual_size);
}
