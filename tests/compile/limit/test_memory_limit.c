/* Programs under a memory limit: every bit is that of a program without one, a run takes no more
 * than the limit and just what was told, and a limit that cannot be reached is refused with the
 * smallest that can be. */
#include "compile/limit/limit_test.h"
#include "support/body_test.h"
#include "support/resident.h"

static void check_model(limit_model m) {
    cot_program      *p = limit_compile(&m, NULL);
    cot_run          *r = cot_run_create(p);
    cot_program_facts f;
    assert_string_equal(cot_run_message(r), "");
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    arrays plain = arrays_of(p);
    run(p, &plain, r);
    int64_t       smallest = smallest_limit(&m);
    const int64_t percent[] = {100, 50, 30, 20};
    for (int i = 0; i < 4; i++) {
        int64_t limit = f.run_bytes * percent[i] / 100;
        check_limit(&m, i && limit < smallest ? smallest : limit, NULL, &plain);
    }
    check_limit(&m, smallest, NULL, &plain);
    cot_run_destroy(r);
    free_arrays(&plain);
    cot_program_destroy(p);
}

static void a_deep_stack_keeps_its_bits_at_every_limit(void **state) {
    (void)state;
    check_model(deep_model());
}
static void convolutions_keep_their_bits_at_every_limit(void **state) {
    (void)state;
    check_model(cnn_model());
}
static void a_transformer_keeps_its_bits_at_every_limit(void **state) {
    (void)state;
    check_model(gpt_model());
}

/* ---- loops ----------------------------------------------------------------------------------- */

enum { LOOPS = 8, LENGTH = 64, WIDTH = 256 }; /* 128 KiB of states each */

BODY(damped) { UNUSED; ys[0] = cot_mul(cot_sin(xs[0]), 0.9); return 0; }
BODY(gradient_through_loops) {
    cot_var h = xs[0], y;
    UNUSED;
    for (int k = 0; k < LOOPS; k++, h = cot_add(y, 0.1))
        cot_scan(damped, NULL, LENGTH, 1, &h, 0, NULL, &y, 0, NULL, NULL);
    return cot_grad_of(cot_sum(h, COT_ALL), 1, xs, ys) != COT_OK;
}

/* Without one, the states of all loops are made on the way there; within one, each when it is
 * read. */
static void a_limit_lets_states_of_loops_live_shortly(void **state) {
    (void)state;
    cot_program_facts f;
    double            x[WIDTH], z[2][WIDTH];
    const cot_type    type = {COT_F64, COT_SHAPE(WIDTH)};
    cot_program      *p = cot_compile(gradient_through_loops, NULL, 1, &type, 1, NULL), *q;
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    int64_t least = smallest_told(cot_compile(gradient_through_loops, NULL, 1, &type, 1,
                                              &(cot_compile_options){.memory_limit = 1}));
    if (least > f.run_bytes / 2) fail_msg("%lld of %lld bytes", (long long)least, (long long)f.run_bytes);
    q = cot_compile(gradient_through_loops, NULL, 1, &type, 1, &(cot_compile_options){.memory_limit = least});
    for (int k = 0; k < WIDTH; k++) x[k] = 0.01 * k;
    for (int k = 0; k < 2; k++) {
        cot_run *r = cot_run_create(k ? q : p);
        assert_int_equal(cot_program_run(r, (const void *const[]){x}, (void *const[]){z[k]}), COT_OK);
        cot_run_destroy(r);
    }
    assert_memory_equal(z[0], z[1], sizeof z[0]);
    cot_program_destroy(p), cot_program_destroy(q);
}

/* What runs without one is a program within one, too, where it keeps to the limit. Loops with
 * kept, counted and chosen states, conditions and checkpoints, of large and small arrays. */
typedef struct maze { uint64_t seed; bool gradient; } maze;

static int pick(uint64_t *seed, int n) {
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)(*seed >> 33) % n;
}

BODY(drift) { UNUSED; ys[0] = cot_add(cot_mul(xs[0], 0.5), cot_sin(xs[1])); return 0; }
BODY(bend) { UNUSED; ys[0] = cot_mul(cot_tanh(xs[0]), xs[1]); return 0; }
BODY(second) { UNUSED; ys[0] = xs[1]; return 0; }

static int walk_maze(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    uint64_t seed = ((maze *)user)->seed;
    cot_var  v[32];
    int      k = 0, steps = 3 + pick(&seed, 16);
    for (; k < n; k++) v[k] = xs[k];
    for (; k < n + steps; k++) {
        cot_var          a = v[k - 1 - pick(&seed, k < 3 ? k : 3)], b = v[pick(&seed, k)], z = a;
        cot_loop_options o = {.states = pick(&seed, 3)};
        switch (pick(&seed, 8)) {
        case 0: z = cot_add(a, b); break;
        case 1: z = cot_mul(a, b); break;
        case 2: z = cot_square(cot_sin(a)); break;
        case 3: z = cot_sub(a, cot_mean(b, COT_ALL)); break;
        case 4: case 5: {
            cot_var each = cot_stack(3, (cot_var[]){b, a, b}, 0);
            cot_scan(drift, NULL, -1, 1, &a, 1, &each, &z, 0, NULL, &o);
            break;
        }
        case 6: cot_cond(cot_greater(cot_sum(b, COT_ALL), 0), bend, second, NULL, 2, (cot_var[]){a, b}, 1, &z); break;
        default: cot_checkpoint(bend, NULL, 2, (cot_var[]){a, b}, 1, &z); break;
        }
        v[k] = z;
    }
    for (int i = 0; i < m; i++) ys[i] = v[k - 1 - (i ? pick(&seed, k) : 0)];
    return cot_tape_status(xs[0].tape) != COT_OK;
}
BODY(maze_loss) {
    UNUSED;
    if (walk_maze(n, xs, 1, ys, user)) return 1;
    ys[0] = cot_sum(cot_square(ys[0]), COT_ALL);
    return 0;
}
BODY(maze_step) {
    cot_var g[2];
    if (!((maze *)user)->gradient) return walk_maze(n, xs, m, ys, user);
    if (cot_value_and_grad(maze_loss, user, n, xs, &ys[0], g) != COT_OK) return 1;
    for (int i = 1; i < m; i++) ys[i] = cot_sub(xs[i - 1], cot_mul(0.01, g[i - 1]));
    return 0;
}

static void a_limit_that_runs_without_one_keep_to_is_no_limit(void **state) {
    (void)state;
    static float x[2][16384], z[2][3][16384];
    static int   donate[] = {0, 1};
    for (int i = 0; i < 16384; i++) x[0][i] = 0.5f * sinf((float)i), x[1][i] = 0.7f * cosf((float)i);
    for (int seed = 0; seed < (test_small() ? 20 : 120); seed++) {
        maze                 way = {(uint64_t)seed, seed % 4 != 0};
        const cot_type       type = {COT_F32, COT_SHAPE(seed % 3 == 0 ? 64 : seed % 3 == 1 ? 4096 : 16384)};
        const cot_type       types[] = {type, type};
        cot_compile_options  o = {.donate = donate, .donations = seed % 5 ? 0 : 2};
        cot_program         *p = cot_compile(maze_step, &way, 2, types, 3, &o), *q;
        cot_run             *r = cot_run_create(p), *s;
        cot_program_facts    f;
        if (!cot_run_bytes(r) || cot_run_status(r)) fail_msg("seed %d: %s", seed, cot_run_message(r));
        o.memory_limit = (int64_t)cot_run_bytes(r);
        q = cot_compile(maze_step, &way, 2, types, 3, &o);
        s = cot_run_create(q);
        if (cot_run_status(s)) fail_msg("seed %d: %s", seed, cot_run_message(s));
        assert_int_equal(cot_program_measure(q, &f), COT_OK);
        assert_int_equal(f.unlimited_bytes, o.memory_limit);
        assert_true((int64_t)cot_run_bytes(s) <= o.memory_limit && f.run_bytes == (int64_t)cot_run_bytes(s));
        assert_true(f.again == 0); /* it is the same program */
        for (int k = 0; k < 2; k++) {
            float        copy[2][16384];
            memcpy(copy, x, sizeof x);
            const void *const in[] = {copy[0], copy[1]};
            assert_int_equal(cot_program_run(k ? s : r, in, (void *const[]){z[k][0], z[k][1], z[k][2]}), COT_OK);
        }
        assert_memory_equal(z[0], z[1], sizeof z[0]);
        cot_run_destroy(r), cot_run_destroy(s);
        cot_program_destroy(p), cot_program_destroy(q);
        o.memory_limit = 1;
        q = cot_compile(maze_step, &way, 2, types, 3, &o);
        assert_true(smallest_told(q) <= f.unlimited_bytes);
    }
}

/* Where its outputs had a place the second product would lie in one that is free already, and what
 * it works in fits behind it. */
BODY(two_products) {
    UNUSED;
    cot_var x = xs[0], flat = cot_layer_norm(x, COT_NONE, COT_NONE, -1, 1e-5);
    cot_var both = cot_concat(2, (cot_var[]){flat, flat}, 0);
    cot_var short_x = cot_cast(cot_cast(cot_where(cot_greater(x, x), x, cot_neg(x)), COT_F32), COT_F64);
    cot_var bent = cot_add(cot_mul(short_x, 2), cot_sin(short_x));
    ys[1] = cot_matmul(cot_slice(both, 0, 1, COT_END, 2), flat);
    ys[2] = cot_sum(short_x, COT_ALL);
    ys[0] = cot_matmul(cot_transpose(bent), bent);
    return 0;
}

static void outputs_have_a_place_where_that_takes_less(void **state) {
    (void)state;
    static double       x[1600], z[2][3][1600];
    counting            c = {0};
    const cot_type      type = {COT_F64, COT_SHAPE(40, 40)};
    cot_program        *p = cot_compile(two_products, NULL, 1, &type, 3, NULL), *q;
    cot_run            *r = cot_run_create(p), *s;
    cot_compile_options o = {.allocator = {counting_alloc, &c}, .memory_limit = (int64_t)cot_run_bytes(r)};
    for (int i = 0; i < 1600; i++) x[i] = sin(i);
    for (int k = 0; k < 3; k++) {
        o.donate = (int[]){0}, o.donations = k > 0;
        q = cot_compile(two_products, NULL, 1, &type, 3, &o);
        if (cot_program_status(q) != COT_OK) fail_msg("%s", cot_program_message(q));
        s = measured_run("two products", q, &c);
        void *const to[] = {k == 2 ? NULL : z[0][0], k == 2 ? (void *)x : z[0][1], z[0][2]};
        assert_int_equal(cot_program_run(r, (const void *const[]){x}, (void *const[]){z[1][0], z[1][1], z[1][2]}),
                         COT_OK);
        cot_status got = cot_program_run(s, (const void *const[]){x}, to);
        if (k == 2) assert_int_equal(got, COT_MEMORY); /* there is no memory for another run */
        else assert_int_equal(got, COT_OK), assert_memory_equal(z[0], z[1], sizeof z[0]);
        assert_true((int64_t)cot_run_bytes(s) <= o.memory_limit);
        cot_run_destroy(s);
        cot_program_destroy(q);
        assert_int_equal(c.live, 0);
    }
    o = (cot_compile_options){.memory_limit = 1};
    assert_true(smallest_told(cot_compile(two_products, NULL, 1, &type, 3, &o)) <= (int64_t)cot_run_bytes(r));
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void assert_refused(limit_model *m, const cot_compile_options *o, cot_status status, const char *sentence) {
    cot_program *p = limit_compile(m, o);
    assert_int_equal(cot_program_status(p), status);
    assert_string_equal(cot_program_message(p), sentence);
    cot_program_destroy(p);
}

static void a_limit_below_the_smallest_is_refused_by_name(void **state) {
    (void)state;
    limit_model m = short_stack(12);
    int64_t     smallest = smallest_limit(&m);
    char        text[200];
    snprintf(text, sizeof text, "[compile] a memory limit of %lld bytes cannot be reached, matmul needs most; the "
                                "smallest that can be is %lld", (long long)smallest - 1, (long long)smallest);
    assert_refused(&m, &(cot_compile_options){.memory_limit = smallest - 1}, COT_MEMORY, text);
}

/* Requests for memory that compiling within a limit makes. */
static long requests_within(limit_model *m, int64_t limit) {
    counting     c = {0};
    cot_program *p = limit_compile(m, &(cot_compile_options){.allocator = {counting_alloc, &c}, .memory_limit = limit});
    cot_program_destroy(p);
    return c.requests;
}

/* A long chain of short vectors: what computes again takes more than it spares. */
BODY(thin_loss) {
    UNUSED;
    cot_var x = xs[0];
    for (int i = 0; i < 300; i++) x = cot_tanh(cot_mul(x, xs[1]));
    ys[0] = cot_sum(x, COT_ALL);
    return 0;
}

/* Not all of the ladder is climbed down, whose last steps make the longest programs. */
static void a_limit_is_refused_before_all_budgets_are_tried(void **state) {
    (void)state;
    const cot_type vector = {COT_F32, COT_SHAPE(64)};
    limit_model    m = {"thin chain", thin_loss, 1, 2, {vector, vector}};
    int64_t        smallest = smallest_limit(&m);
    long           kept = requests_within(&m, smallest), refused = requests_within(&m, smallest - 1);
    if (refused > 2 * kept) fail_msg("%ld requests for memory to refuse, %ld to compile", refused, kept);
}

static void options_that_do_not_go_with_a_limit_are_refused(void **state) {
    (void)state;
    limit_model m = short_stack(1);
    assert_refused(&m, &(cot_compile_options){.memory_limit = -1}, COT_VALUE,
                   "[compile] a memory limit of -1 bytes; it must not be negative");
    assert_refused(&m, &(cot_compile_options){.memory_limit = 1 << 20, .native = true}, COT_VALUE,
                   "[compile] native code takes memory to be compared in, which a memory limit leaves none for; ask "
                   "for one of them");
}

/* Under a limit a large output has no place of its own: it is made where it is wanted, or not. */
static void outputs_that_cannot_be_made_where_they_are_wanted_are_refused(void **state) {
    (void)state;
    limit_model  m = short_stack(4);
    cot_program *p = limit_compile(&m, &(cot_compile_options){.memory_limit = 1 << 30});
    cot_run     *r = cot_run_create(p);
    arrays       a = arrays_of(p);
    /* the gradient by the last layer, made while the second is still to be read on the way back */
    void *own = a.output[4], *places[2] = {NULL, a.input[3]};
    for (int i = 0; i < 2; i++) {
        a.output[4] = places[i];
        assert_int_equal(cot_program_run(r, (const void *const *)a.input, a.output), COT_MEMORY);
        assert_string_equal(cot_run_message(r),
                            i ? "[program_run] output 4 cannot be made where it is wanted: input 3 lies there and is "
                                "still needed; under a memory limit it has no other place, so give it memory of its "
                                "own or donate that input"
                              : "[program_run] output 4 cannot be made where it is wanted: it is NULL; under a memory "
                                "limit it has no other place, so give it memory of its own");
    }
    a.output[4] = a.output[3];
    assert_int_equal(cot_program_run(r, (const void *const *)a.input, a.output), COT_VALUE);
    assert_string_equal(cot_run_message(r),
                        "[program_run] outputs[3] and outputs[4] overlap; each needs memory of its own");
    a.output[4] = own;
    assert_int_equal(cot_program_run(r, (const void *const *)a.input, a.output), COT_OK);
    free_arrays(&a);
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* ---- steps that write over their parameters -------------------------------------------------- */

typedef struct descent { limit_model *m; } descent;

static int descend(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    limit_model *model = ((descent *)user)->m;
    limit_step(n, xs, m, ys, model);
    for (int k = 1; k < m; k++) ys[k] = cot_sub(xs[model->data + k - 1], cot_mul(ys[k], 0.25));
    return cot_tape_status(xs[0].tape) == COT_OK ? 0 : 1;
}

static void a_step_that_owns_its_parameters_keeps_to_the_limit(void **state) {
    (void)state;
    limit_model         m = short_stack(20);
    descent             d = {&m};
    int                 donate[MOST_INPUTS], weights = m.inputs - m.data;
    cot_program_facts   f;
    for (int k = 0; k < weights; k++) donate[k] = m.data + k;
    cot_program *plain = cot_compile(descend, &d, m.inputs, m.type, 1 + weights, NULL);
    assert_int_equal(cot_program_measure(plain, &f), COT_OK);
    cot_compile_options o = {.donate = donate, .donations = weights, .memory_limit = f.run_bytes / 2};
    cot_program *p = cot_compile(descend, &d, m.inputs, m.type, 1 + weights, &o);
    if (cot_program_status(p) != COT_OK) fail_msg("%s", cot_program_message(p));
    cot_run *r = cot_run_create(p), *q = cot_run_create(plain);
    arrays   a = arrays_of(p), b = arrays_of(p);
    for (int k = 0; k < weights; k++) {
        free(a.output[1 + k]), free(b.output[1 + k]);
        a.output[1 + k] = a.input[m.data + k], b.output[1 + k] = b.input[m.data + k];
    }
    for (int step = 0; step < 3; step++) {
        if (cot_program_run(r, (const void *const *)a.input, a.output) != COT_OK) fail_msg("%s", cot_run_message(r));
        assert_int_equal(cot_program_run(q, (const void *const *)b.input, b.output), COT_OK);
        assert_same_bits("descent", o.memory_limit, p, &a, &b);
    }
    assert_true((int64_t)cot_run_bytes(r) <= o.memory_limit);
    for (int k = 0; k < weights; k++) a.output[1 + k] = b.output[1 + k] = NULL;
    free_arrays(&a), free_arrays(&b);
    cot_run_destroy(r), cot_run_destroy(q);
    cot_program_destroy(p), cot_program_destroy(plain);
}

/* What is computed again is so before the weights are written over that it is made from: at every
 * limit each step can be made in its place, with the bits of one without a limit. */
static void steps_are_made_in_donated_weights_at_every_limit(void **state) {
    (void)state;
    limit_model         m = short_stack(12);
    descent             d = {&m};
    int                 donate[MOST_INPUTS], weights = m.inputs - m.data;
    cot_compile_options o = {.donate = donate, .donations = weights, .memory_limit = 1};
    for (int k = 0; k < weights; k++) donate[k] = m.data + k;
    int64_t      least = smallest_told(cot_compile(descend, &d, m.inputs, m.type, 1 + weights, &o));
    cot_program *plain = cot_compile(descend, &d, m.inputs, m.type, 1 + weights, NULL);
    cot_run     *q = cot_run_create(plain);
    arrays       want = arrays_of(plain);
    run(plain, &want, q);
    for (int k = 0; k < 6; k++) {
        o.memory_limit = least + least * k / 10;
        cot_program *p = cot_compile(descend, &d, m.inputs, m.type, 1 + weights, &o);
        cot_run     *r = cot_run_create(p);
        arrays       a = arrays_of(p);
        for (int i = 0; i < weights; i++) free(a.output[1 + i]), a.output[1 + i] = a.input[m.data + i];
        if (cot_program_run(r, (const void *const *)a.input, a.output) != COT_OK)
            fail_msg("%lld bytes: %s", (long long)o.memory_limit, cot_run_message(r));
        assert_same_bits("donated weights", o.memory_limit, p, &a, &want);
        for (int i = 0; i < weights; i++) a.output[1 + i] = NULL;
        free_arrays(&a);
        cot_run_destroy(r);
        cot_program_destroy(p);
    }
    free_arrays(&want);
    cot_run_destroy(q);
    cot_program_destroy(plain);
}

BODY(sum_and_more) {
    UNUSED;
    ys[0] = cot_add(xs[0], xs[1]);
    ys[1] = cot_mul(cot_sin(xs[0]), cot_sum(ys[0], COT_ALL));
    return 0;
}

static void a_donated_input_that_is_still_needed_is_told(void **state) {
    (void)state;
    enum { N = 4096 };
    static float        x[3][N];
    const cot_type      types[] = {{COT_F32, COT_SHAPE(N)}, {COT_F32, COT_SHAPE(N)}};
    cot_compile_options o = {.memory_limit = 1 << 20, .donate = (int[]){0}, .donations = 1};
    cot_program        *p = cot_compile(sum_and_more, NULL, 2, types, 2, &o);
    cot_run            *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *const[]){x[0], x[1]}, (void *const[]){x[0], x[2]}), COT_MEMORY);
    assert_string_equal(cot_run_message(r),
                        "[program_run] output 0 cannot be made where it is wanted: input 0 lies there and is still "
                        "needed, though it is donated; under a memory limit it has no other place, so give it memory "
                        "of its own");
    cot_run_destroy(r);
    cot_program_destroy(p);
}

/* ---- compiling itself ------------------------------------------------------------------------ */

enum { TALL = 8192, WIDE = 128, MANY = 12, LITTLE = 4 << 20 }; /* 4 MiB each */

BODY(tall_loss) {
    UNUSED;
    cot_var h = xs[0];
    for (int k = 0; k < MANY; k++) h = cot_tanh(cot_matmul(h, xs[1]));
    ys[0] = cot_mean(cot_square(h), COT_ALL);
    return 0;
}
BODY(tall_step) {
    UNUSED;
    cot_var g[2];
    bool    ok = cot_value_and_grad(tall_loss, NULL, 2, xs, &ys[0], g) == COT_OK;
    ys[1] = g[1];
    return !ok;
}
static cot_program *compile_tall(counting *c) {
    const cot_type types[] = {{COT_F32, COT_SHAPE(TALL, WIDE)}, {COT_F32, COT_SHAPE(WIDE, WIDE)}};
    return cot_compile(tall_step, NULL, 2, types, 2,
                       &(cot_compile_options){.allocator = {c ? counting_alloc : NULL, c}, .memory_limit = 26000000});
}

static void compiling_takes_memory_for_lists_alone(void **state) {
    (void)state;
    counting c = {0};
    size_t   before = forget_the_most();
    cot_program_destroy(compile_tall(NULL));
    size_t most = resident("VmHWM");
    if (!SANITIZER && most > before + LITTLE) fail_msg("%zu bytes more", most - before);
    cot_program *p = compile_tall(&c);
    assert_string_equal(cot_program_message(p), "");
    if (c.peak > LITTLE) fail_msg("%zu bytes at once", c.peak);
    cot_program_destroy(p);
    assert_int_equal(c.live, 0);
}

static void a_limit_of_the_environment_is_for_tapes_of_users(void **state) {
    (void)state;
    const char *limits[] = {"100 KiB", "no number"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(setenv("COTANGENT_MEMORY_LIMIT", limits[k], 1), 0);
        cot_program *p = compile_tall(NULL);
        unsetenv("COTANGENT_MEMORY_LIMIT");
        assert_string_equal(cot_program_message(p), "");
        cot_program_destroy(p);
    }
}

/* ---- effects, calls, files, memory ----------------------------------------------------------- */

static void what_is_refused_is_refused_as_without_a_limit(void **state) {
    (void)state;
    limit_model  m = gpt_model();
    cot_program *plain = limit_compile(&m, NULL);
    cot_program *p = limit_compile(&m, &(cot_compile_options){.memory_limit = smallest_limit(&m)});
    cot_run     *r = cot_run_create(p), *q = cot_run_create(plain);
    arrays       a = arrays_of(p);
    for (int wrong = 0; wrong < 2; wrong++) { /* a token, then a target */
        ((int64_t *)a.input[wrong])[3] = 1000;
        assert_int_not_equal(cot_program_run(q, (const void *const *)a.input, a.output), COT_OK);
        assert_int_equal(cot_program_run(r, (const void *const *)a.input, a.output), cot_run_status(q));
        assert_string_equal(cot_run_message(r), cot_run_message(q));
        for (int k = 0; k < cot_program_outputs(p); k++)
            for (int64_t i = 0; i < bytes_of(cot_program_output_type(p, k)); i++)
                assert_int_equal(((char *)a.output[k])[i], 0);
        ((int64_t *)a.input[wrong])[3] = 3;
    }
    free_arrays(&a);
    cot_run_destroy(r), cot_run_destroy(q);
    cot_program_destroy(p), cot_program_destroy(plain);
}

static void the_report_tells_the_limit_and_its_price(void **state) {
    (void)state;
    limit_model  m = short_stack(20);
    cot_program *p = limit_compile(&m, NULL), *limited;
    cot_program_facts f, g;
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    assert_true(f.memory_limit == 0 && f.again == 0 && f.unlimited_bytes == f.run_bytes);
    limited = limit_compile(&m, &(cot_compile_options){.memory_limit = f.run_bytes / 2});
    assert_int_equal(cot_program_measure(limited, &g), COT_OK);
    assert_int_equal(g.memory_limit, f.run_bytes / 2);
    assert_int_equal(g.unlimited_bytes, f.run_bytes);
    assert_true(g.run_bytes <= g.memory_limit && g.again > 0 && g.operations > f.operations);
    char   line[200], *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    assert_int_equal(cot_program_report(limited, out), COT_OK);
    fclose(out);
    snprintf(line, sizeof line,
             "\nmemory limit: a run takes %.1f %% of what it would take without, and does %.1f %% of the work again\n",
             100 * (double)g.run_bytes / (double)g.unlimited_bytes, 100 * g.again);
    assert_non_null(strstr(text, line));
    snprintf(line, sizeof line, "  limit       %12lld  for this\n", (long long)g.memory_limit);
    assert_non_null(strstr(text, line));
    free(text);
    cot_program_destroy(p), cot_program_destroy(limited);
}

static void a_saved_program_is_loaded_within_a_limit(void **state) {
    (void)state;
    const char  *path = "memory_limit_test.cotp";
    limit_model  m = short_stack(12);
    cot_program *p = limit_compile(&m, NULL);
    int64_t      smallest = smallest_limit(&m);
    assert_int_equal(cot_program_save(p, path, NULL, 0), COT_OK);
    cot_program *q = cot_program_load(path, &(cot_compile_options){.memory_limit = smallest});
    cot_run     *r = cot_run_create(p), *s = cot_run_create(q);
    assert_string_equal(cot_run_message(s), "");
    assert_true((int64_t)cot_run_bytes(s) <= smallest && cot_run_bytes(s) < cot_run_bytes(r));
    arrays a = arrays_of(p), b = arrays_of(p);
    run(p, &a, r), run(q, &b, s);
    assert_same_bits("loaded", smallest, p, &a, &b);
    cot_program *bad = cot_program_load(path, &(cot_compile_options){.memory_limit = -5});
    assert_string_equal(cot_program_message(bad), "[compile] a memory limit of -5 bytes; it must not be negative");
    remove(path);
    free_arrays(&a), free_arrays(&b);
    cot_run_destroy(r), cot_run_destroy(s);
    cot_program_destroy(p), cot_program_destroy(q), cot_program_destroy(bad);
}

/* Every allocation fails once, in the search too: the program says so, and nothing is lost. */
static void without_memory_a_limited_program_fails_in_order(void **state) {
    (void)state;
    limit_model m = short_stack(6);
    int64_t     smallest = smallest_limit(&m);
    bool        done = false;
    for (long at = 1; !done; at += at < 100 ? 9 : at < 1000 ? 53 : 311) {
        counting     c = {.fail_at = at, .fail_for_good = true};
        cot_program *p = limit_compile(&m, &(cot_compile_options){.allocator = {counting_alloc, &c},
                                                                 .memory_limit = smallest});
        done = c.failed == 0;
        if (done) assert_int_equal(cot_program_status(p), COT_OK);
        else if (p) assert_int_equal(cot_program_status(p), COT_MEMORY);
        if (!done && p && !strstr(cot_program_message(p), "out of memory")) fail_msg("%s", cot_program_message(p));
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
        assert_false(c.wrong_size);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deep_stack_keeps_its_bits_at_every_limit),
        cmocka_unit_test(convolutions_keep_their_bits_at_every_limit),
        cmocka_unit_test(a_transformer_keeps_its_bits_at_every_limit),
        cmocka_unit_test(a_limit_lets_states_of_loops_live_shortly),
        cmocka_unit_test(a_limit_that_runs_without_one_keep_to_is_no_limit),
        cmocka_unit_test(outputs_have_a_place_where_that_takes_less),
        cmocka_unit_test(a_limit_below_the_smallest_is_refused_by_name),
        cmocka_unit_test(a_limit_is_refused_before_all_budgets_are_tried),
        cmocka_unit_test(options_that_do_not_go_with_a_limit_are_refused),
        cmocka_unit_test(outputs_that_cannot_be_made_where_they_are_wanted_are_refused),
        cmocka_unit_test(a_step_that_owns_its_parameters_keeps_to_the_limit),
        cmocka_unit_test(steps_are_made_in_donated_weights_at_every_limit),
        cmocka_unit_test(a_donated_input_that_is_still_needed_is_told),
        cmocka_unit_test(compiling_takes_memory_for_lists_alone),
        cmocka_unit_test(a_limit_of_the_environment_is_for_tapes_of_users),
        cmocka_unit_test(what_is_refused_is_refused_as_without_a_limit),
        cmocka_unit_test(the_report_tells_the_limit_and_its_price),
        cmocka_unit_test(a_saved_program_is_loaded_within_a_limit),
        cmocka_unit_test(without_memory_a_limited_program_fails_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
