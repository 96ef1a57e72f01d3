/* Parameters: names, initial numbers, freezing, groups, binding, and what is refused. */
#include "support/tape_test.h"
#include "base/poison.h"

static cot_var net(cot_params *p, cot_var x) {
    x = cot_tanh(cot_nn_dense(p, "fc1", x, 4));
    return cot_nn_dense(p, "fc2", x, 2);
}

typedef struct fixture {
    cot_tape   *t;
    cot_params *p;
    cot_var     x, y;
} fixture;

static fixture made(void) {
    fixture f = {.t = cot_tape_create(NULL)};
    f.p       = cot_params_create(f.t);
    f.x       = cot_data(f.t, COT_F64, COT_SHAPE(3, 2), (double[]){0.1, -0.4, 0.7, 0.2, -0.9, 0.5});
    f.y       = cot_data(f.t, COT_I64, COT_SHAPE(3), (int64_t[]){0, 1, 1});
    assert_int_equal(cot_params_init(f.p, net, f.x, cot_key_of(1)), COT_OK);
    return f;
}

static void destroy(fixture *f) {
    cot_params_destroy(f->p);
    cot_tape_destroy(f->t);
}

static void a_net_is_run_once_and_only_its_leaves_stay(void **state) {
    (void)state;
    fixture     f        = made();
    const char *names[4] = {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"};
    assert_int_equal(cot_params_count(f.p), 4);
    assert_int_equal(cot_tape_length(f.t), 6);
    for (int k = 0; k < 4; k++) {
        cot_param a = cot_params_at(f.p, k);
        assert_string_equal(a.name, names[k]);
        assert_true(cot_requires_grad(a.var) && !a.statistic && !a.frozen && a.group == 0);
        assert_true(cot_params_get(f.p, names[k]).id == a.var.id);
    }
    assert_null(cot_params_at(f.p, 4).name);
    int n;
    assert_true(cot_params_vars(f.p, &n)[2].id == cot_params_at(f.p, 2).var.id && n == 4);
    assert_true(cot_dtype_of(cot_params_at(f.p, 0).var) == COT_F64);
    assert_ok(f.t);
    destroy(&f);
}

static cot_var other_net(cot_params *p, cot_var x) {
    x = cot_nn_dense(p, "fc0", x, 2);
    return net(p, x);
}

static void initial_numbers_depend_on_key_and_name_alone(void **state) {
    (void)state;
    fixture     f = made();
    cot_params *q = cot_params_create(f.t), *r = cot_params_create(f.t);
    double      a[8], b[8];
    assert_int_equal(cot_params_init(q, other_net, f.x, cot_key_of(1)), COT_OK);
    cot_read(cot_params_get(f.p, "fc1.weight"), a, 8), cot_read(cot_params_get(q, "fc1.weight"), b, 8);
    assert_memory_equal(a, b, sizeof a);
    cot_read(cot_params_get(f.p, "fc2.weight"), b, 8);
    assert_memory_not_equal(a, b, sizeof a);
    for (int i = 0; i < 8; i++) assert_true(fabs(a[i]) <= 1 / sqrt(2) && fabs(b[i]) <= 0.5);
    assert_int_equal(cot_params_init(r, net, f.x, cot_key_of(2)), COT_OK);
    cot_read(cot_params_get(r, "fc1.weight"), b, 8);
    assert_memory_not_equal(a, b, sizeof a);
    /* again, for another net: what is there stays */
    assert_int_equal(cot_params_init(r, other_net, f.x, cot_key_of(1)), COT_OK);
    cot_read(cot_params_get(r, "fc1.weight"), a, 8);
    assert_memory_equal(a, b, sizeof a);
    assert_int_equal(cot_params_count(r), 6);
    assert_ok(f.t);
    cot_params_destroy(q), cot_params_destroy(r);
    destroy(&f);
}

/* ---- initialisers ---------------------------------------------------------------------------- */

static cot_var wide(cot_params *p, cot_var x) { return cot_nn_dense(p, "w", x, 200); }

/* Mean, deviation and largest magnitude of 300 · 200 numbers. A mean of n numbers of deviation s
 * is off by more than 5 s / sqrt(n) in one case of 10^6, the deviation by 5 s / sqrt(2 n). */
static void initialisers_have_their_deviation_and_bounds(void **state) {
    (void)state;
    enum { N = 60000 };
    static const struct {
        cot_init how;
        double   deviation, most;
    } rows[] = {
        {{COT_INIT_DEFAULT, 0}, 0.033333333333333333, 0.057735026918962581},
        {{COT_INIT_CONSTANT, 0.25}, 0, 0.25},
        {{COT_INIT_ONES, 0}, 0, 1},
        {{COT_INIT_UNIFORM, 0.3}, 0.17320508075688773, 0.3},
        {{COT_INIT_NORMAL, 0.02}, 0.02, 0.2},
        {{COT_INIT_TRUNCATED_NORMAL, 0.5}, 0.43981285, 1},
        {{COT_INIT_XAVIER_UNIFORM, 0}, 0.063245553203367587, 0.10954451150103322},
        {{COT_INIT_XAVIER_NORMAL, 2}, 0.12649110640673517, 1},
        {{COT_INIT_HE_UNIFORM, 0}, 0.081649658092772603, 0.1414213562373095},
        {{COT_INIT_HE_NORMAL, 0}, 0.081649658092772603, 1},
    };
    static double v[N];
    for (int k = 0; k < (int)(sizeof rows / sizeof *rows); k++) {
        cot_tape   *t   = cot_tape_create(NULL);
        cot_params *p   = cot_params_create(t);
        double      sum = 0, squares = 0, most = 0, s = rows[k].deviation;
        assert_int_equal(cot_params_init_with(p, "*", (cot_init){COT_INIT_ONES, 0}), COT_OK);
        assert_int_equal(cot_params_init_with(p, "?.wei*t", rows[k].how), COT_OK);
        assert_int_equal(cot_params_init(p, wide, cot_zeros(t, COT_F32, COT_SHAPE(1, 300)), cot_key_of(7)), COT_OK);
        cot_var w = cot_params_get(p, "w.weight");
        cot_read(w, v, N);
        assert_true(cot_dtype_of(w) == COT_F32 && cot_value(cot_max(cot_params_get(p, "w.bias"), COT_ALL)) == 1);
        for (int i = 0; i < N; i++) sum += v[i], most = fmax(most, fabs(v[i]));
        double mean = s > 0 ? 0 : rows[k].most;
        for (int i = 0; i < N; i++) squares += (v[i] - mean) * (v[i] - mean);
        if (fabs(sum / N - mean) > 5 * s / sqrt(N) + 1e-7 || fabs(sqrt(squares / N) - s) > 5 * s / sqrt(2 * N) ||
            most > rows[k].most * (1 + 1e-6))
            fail_msg("%d: mean %g, deviation %g, most %g", k, sum / N, sqrt(squares / N), most);
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

static cot_var bytes_in(cot_params *p, cot_var x) { return cot_nn_linear(p, "a", x, 2); }

static void the_dtype_is_that_of_x_or_f32_or_the_one_that_was_set(void **state) {
    (void)state;
    static const cot_dtype of[][2] = {{COT_F64, COT_F64}, {COT_BF16, COT_BF16}, {COT_U8, COT_F32}};
    for (int k = 0; k < 6; k++) {
        cot_tape   *t = cot_tape_create(NULL);
        cot_params *p = cot_params_create(t);
        if (k >= 3) cot_params_set_dtype(p, COT_F16);
        assert_int_equal(cot_params_init(p, bytes_in, cot_ones(t, of[k % 3][0], COT_SHAPE(2, 3)), cot_key_of(1)),
                         COT_OK);
        assert_int_equal(cot_dtype_of(cot_params_at(p, 0).var), k < 3 ? of[k][1] : COT_F16);
        cot_params_set_dtype(p, COT_I32);
        assert_error(t, COT_DTYPE, "[params_set_dtype] the dtype is no float; parameters are");
        cot_params_destroy(p);
        cot_tape_destroy(t);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static cot_var tower(cot_params *p, cot_var x) {
    cot_params_push(p, "encoder");
    for (int k = 0; k < 3; k++) {
        cot_params_push_number(p, k);
        x = cot_nn_linear(p, "a", cot_nn_linear(p, "shared", x, 2), 2);
        x = cot_nn_linear(p, "shared", x, 2);
        cot_params_pop(p);
    }
    cot_params_pop(p);
    return cot_mul(x, cot_nn_parameter(p, "scale", COT_SCALAR, x, (cot_init){COT_INIT_CONSTANT, 2}));
}

static void names_are_pushed_and_the_same_name_is_the_same_parameter(void **state) {
    (void)state;
    fixture f = made();
    assert_int_equal(cot_params_init(f.p, tower, f.x, cot_key_of(1)), COT_OK);
    assert_int_equal(cot_params_count(f.p), 4 + 6 + 1);
    assert_string_equal(cot_params_at(f.p, 6).name, "encoder.1.shared.weight");
    assert_string_equal(cot_params_at(f.p, 10).name, "scale");
    assert_near(cot_value(cot_params_get(f.p, "scale")), 2, 0);
    assert_true(cot_is_valid(tower(f.p, f.x)));
    assert_ok(f.t);
    cot_params_pop(f.p);
    assert_error(f.t, COT_VALUE, "[params_pop] no name is pushed; each pop belongs to a push before it");
    destroy(&f);
}

/* More than the first tables hold, and found in any order. */
static cot_var many(cot_params *p, cot_var x) {
    char name[16];
    for (int k = 0; k < 100; k++) {
        snprintf(name, sizeof name, "p%d", k * 37 % 100);
        x = cot_add(x, cot_nn_parameter(p, name, COT_SHAPE(2), x, (cot_init){COT_INIT_CONSTANT, k}));
    }
    return x;
}

static const char *const layer[] = {"a", "b", "ab", "a"}, *const own[] = {"w", "w", "w", "wide"};
static cot_var four_scales(cot_params *p, cot_var x) {
    for (int k = 0; k < 4; k++) {
        cot_params_push(p, layer[k]);
        x = cot_mul(x, cot_nn_parameter(p, own[k], COT_SHAPE(1), x, (cot_init){0}));
        cot_params_pop(p);
    }
    return x;
}

/* Layers of one shape, asked in any order: "a.w" after "b.w", and a name that begins as another. */
static void names_are_found_in_any_order(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = cot_data(t, COT_F64, COT_SHAPE(1), (double[]){1});
    assert_int_equal(cot_params_init(p, four_scales, x, cot_key_of(1)), COT_OK);
    assert_int_equal(cot_params_count(p), 4);
    for (int first = 0; first < 4; first++)
        for (int second = 0; second < 4; second++) {
            char full[16];
            for (int turn = 0; turn < 2; turn++) {
                int k = turn ? second : first;
                cot_params_push(p, layer[k]);
                cot_var found = cot_nn_parameter(p, own[k], COT_SHAPE(1), x, (cot_init){0});
                cot_params_pop(p);
                assert_true(found.id == cot_params_at(p, k).var.id);
                snprintf(full, sizeof full, "%s.%s", layer[k], own[k]);
                assert_true(cot_params_get(p, full).id == found.id);
            }
        }
    assert_ok(t);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

static void tables_grow(void **state) {
    (void)state;
    fixture f = made();
    assert_int_equal(cot_params_init(f.p, many, f.x, cot_key_of(1)), COT_OK);
    assert_int_equal(cot_params_count(f.p), 104);
    assert_near(cot_value(cot_index(cot_params_get(f.p, "p37"), 0, 0)), 1, 0);
    double v[6];
    cot_read(cot_sub(many(f.p, f.x), f.x), v, 6);
    for (int i = 0; i < 6; i++) assert_near(v[i], 4950, 1e-12);
    destroy(&f);
}

static cot_var refused_net(cot_params *p, cot_var x) {
    char long_name[300];
    memset(long_name, 'a', sizeof long_name);
    long_name[299] = 0;
    switch (*(int *)cot_params_user(p)) {
    case 0: return cot_nn_dense(p, "fc1", cot_transpose(x), 4);
    case 1: return cot_nn_dense(p, "fcl", x, 4);
    case 2: return cot_nn_dense(p, "nothing_like_it", x, 4);
    case 3: return cot_nn_dense(p, long_name, x, 4);
    case 4: return cot_params_push(p, "a"), cot_nn_dense(p, "b", x, 2);
    case 5: return cot_nn_parameter(p, "", COT_SHAPE(2), x, (cot_init){0});
    case 6: return cot_nn_parameter(p, "a", COT_SHAPE(-2), x, (cot_init){0});
    case 7: return cot_params_get(p, "fc2.wieght");
    case 8: return cot_nn_update(p, "fc1.bias", x), x;
    case 9: return cot_nn_update(p, "fc3.bias", x), x;
    case 10: return cot_params_init(p, net, x, cot_key_of(1)), x;
    default: return COT_NONE;
    }
}

static void wrong_names_and_shapes_are_told(void **state) {
    (void)state;
    static const char *const later[] = {
        "[nn_dense] the parameter \"fc1.weight\" has shape (2,4), the layer wants (3,4); a name has one shape, which "
        "follows from the layer's input",
        "[nn_dense] there is no parameter \"fcl.weight\", a near name is \"fc1.weight\"; cot_params_init makes those "
        "that "
        "its net asks for",
        "[nn_dense] there is no parameter \"nothing_like_it.weight\"; cot_params_init makes those that its net asks "
        "for",
        "[nn_dense] the name \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" makes a path of more than 254 letters or 32 "
        "names",
        "[nn_dense] there is no parameter \"a.b.weight\", a near name is \"fc1.weight\"; cot_params_init makes those "
        "that "
        "its net asks for",
        "[nn_parameter] the name is empty; parameters are found by it",
        "[nn_parameter] axis 0 of shape (-2,) has extent -2",
        "[params_get] there is no parameter \"fc2.wieght\", a near name is \"fc2.weight\"; cot_params_init makes those "
        "that its net asks for",
        "[nn_update] \"fc1.bias\" is trained; only statistics are updated",
        "[nn_update] there is no parameter \"fc3.bias\", a near name is \"fc1.bias\"; cot_params_init makes those that "
        "its "
        "net asks for"};
    for (int k = 0; k < 10; k++) {
        fixture f = made();
        cot_params_set_user(f.p, &k);
        refused_net(f.p, f.x);
        if (k != 6)
            assert_string_equal(cot_tape_message(f.t), later[k]);
        else
            assert_int_equal(cot_tape_status(f.t), COT_SHAPE);
        destroy(&f);
    }
    for (int k = 4; k < 12; k += k == 4 ? 6 : 1) {
        fixture f = made();
        cot_params_set_user(f.p, &k);
        int64_t length = cot_tape_length(f.t);
        cot_params_init(f.p, refused_net, f.x, cot_key_of(1));
        assert_string_equal(cot_tape_message(f.t),
                            k == 4 ? "[params_init] the net left 1 names pushed; each push has its pop"
                            : k == 10
                                ? "[params_init] called by a net that is run for its parameters; a net calls layers"
                                : "[params_init] the net returned no var; it returns its result");
        /* all is as before */
        assert_int_equal(cot_params_count(f.p), 4);
        assert_int_equal(cot_tape_length(f.t), length);
        cot_tape_clear_error(f.t);
        assert_true(cot_is_valid(net(f.p, f.x)));
        destroy(&f);
    }
}

static void null_and_wrong_arguments_are_errors(void **state) {
    (void)state;
    fixture   f     = made();
    cot_tape *u     = cot_tape_create(NULL);
    cot_var   xs[4] = {f.x, f.x, f.x, f.x};
#define SAYS(call, text)                                                                                               \
    do {                                                                                                               \
        (void)(call);                                                                                                  \
        assert_string_equal(cot_tape_message(f.t), text);                                                              \
        cot_tape_clear_error(f.t);                                                                                     \
    } while (0)
    SAYS(cot_params_init(f.p, NULL, f.x, cot_key_of(1)),
         "[params_init] the net is NULL; it says which parameters there are");
    SAYS(cot_params_get(f.p, NULL), "[params_get] the name is NULL; parameters are found by it");
    SAYS((cot_params_push(f.p, NULL), cot_params_pop(f.p), 0),
         "[params_push] the name is NULL; parameters are found by it");
    SAYS(cot_params_freeze(f.p, NULL, true), "[params_freeze] the pattern is NULL; \"*\" matches every name");
    SAYS(cot_params_freeze(f.p, "fc3.bias", true), "[params_freeze] no parameter matches \"fc3.bias\", a near name is "
                                                   "\"fc1.bias\"; * stands for any letters, dots too, ? for one");
    SAYS(cot_params_group(f.p, "encoder.*", 1),
         "[params_group] no parameter matches \"encoder.*\"; * stands for any letters, dots too, ? for one");
    SAYS(cot_params_init_with(f.p, NULL, (cot_init){0}), "[params_init_with] the pattern is NULL, the kind 0, the "
                                                         "value 0; there must be a pattern, a kind of cot_init_kind "
                                                         "and a finite value");
    SAYS(cot_params_bind(f.p, 3, xs),
         "[params_bind] n is 3, of 4 parameters 4 are trained; xs stand for the trained or for all");
    SAYS(cot_params_bind(f.p, 4, NULL), "[params_bind] the list of 4 xs is NULL");
    SAYS(cot_params_key(f.p, NULL), "[params_key] the name is NULL; it is folded into the key");
    SAYS(cot_params_key(f.p, "a"),
         "[params_key] the step has no key; cot_params_set_key sets one, another at each step");
    SAYS(cot_nn_update(f.p, NULL, f.x), "[nn_update] the name is NULL; statistics are found by it");
    SAYS(cot_nn_dense(NULL, "a", f.x, 2), "[nn_dense] p is NULL; cot_params_create makes parameters");
    SAYS(cot_params_summary(f.p, net, f.x, NULL), "[params_summary] there is no file; the table is written to one");
    SAYS(cot_nn_cache_create(f.p, 0), "[nn_cache_create] room for 0 positions; there must be 1 or more");
#undef SAYS
    cot_params_pop(f.p); /* an error there is already does not make a shape right */
    assert_false(cot_is_valid(cot_nn_parameter(f.p, "a", (cot_shape){1 << 24, {1}}, f.x, (cot_init){0})));
    cot_tape_clear_error(f.t);
    assert_int_equal(cot_params_init(f.p, net, cot_scalar(u, 1), cot_key_of(1)), COT_VAR);
    cot_tape_clear_error(f.t);
    /* no p at all */
    assert_null(cot_params_create(NULL));
    cot_params_destroy(NULL);
    cot_params_set_user(NULL, u), cot_params_train(NULL, true), cot_params_set_key(NULL, cot_key_of(1));
    cot_params_push(NULL, "a"), cot_params_push_number(NULL, 1), cot_params_pop(NULL);
    cot_params_set_dtype(NULL, COT_F32);
    cot_nn_cache_clear(NULL), cot_nn_cache_destroy(NULL);
    assert_true(!cot_params_tape(NULL) && !cot_params_user(NULL) && !cot_params_training(NULL));
    assert_true(cot_params_count(NULL) == 0 && !cot_params_at(NULL, 0).name && !cot_params_vars(NULL, NULL));
    assert_false(cot_is_valid(cot_params_get(NULL, "a")));
    assert_int_equal(cot_params_init(NULL, net, f.x, cot_key_of(1)), COT_OK);
    assert_int_equal(cot_params_freeze(NULL, "*", true), COT_VAR);
    assert_int_equal(cot_params_group(NULL, "*", 1), COT_VAR);
    assert_int_equal(cot_params_init_with(NULL, "*", (cot_init){0}), COT_VAR);
    assert_null(cot_nn_cache_create(NULL, 2));
    assert_ok(f.t);
    cot_tape_destroy(u);
    destroy(&f);
}

/* ---- freezing and groups --------------------------------------------------------------------- */

static void patterns_freeze_and_group(void **state) {
    (void)state;
    fixture f = made();
    int     n;
    assert_int_equal(cot_params_freeze(f.p, "fc1.*", true), COT_OK);
    assert_int_equal(cot_params_group(f.p, "*.bias", 1), COT_OK);
    const cot_var *w = cot_params_vars(f.p, &n);
    assert_true(n == 2 && w[0].id == cot_params_at(f.p, 2).var.id && cot_params_at(f.p, 0).frozen);
    assert_true(cot_params_at(f.p, 1).group == 1 && cot_params_at(f.p, 2).group == 0 &&
                cot_params_at(f.p, 3).group == 1);
    cot_backward(cot_sum(net(f.p, f.x), COT_ALL));
    double g[8];
    cot_read_grad(cot_params_at(f.p, 0).var, g, 8);
    for (int i = 0; i < 8; i++) assert_near(g[i], 0, 0);
    cot_read_grad(w[1], g, 2);
    assert_near(g[0], 3, 0);
    assert_int_equal(cot_params_freeze(f.p, "fc?.w*", false), COT_OK);
    cot_params_vars(f.p, &n);
    assert_true(n == 3 && !cot_params_at(f.p, 0).frozen);
    destroy(&f);
}

/* ---- binding --------------------------------------------------------------------------------- */

typedef struct model {
    fixture *f;
    cot_net  net;
} model;

/* xs: input, labels, parameters. */
static int loss(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const model *a = user;
    (void)m;
    cot_params_bind(a->f->p, n - 2, xs + 2);
    ys[0] = cot_softmax_cross_entropy(a->net(a->f->p, xs[0]), xs[1]);
    return cot_params_bind(a->f->p, 0, NULL) == COT_OK ? 0 : 1;
}
static int loss_and_grads(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    cot_var g[8];
    if (cot_value_and_grad(loss, user, n, xs, &ys[0], g) != COT_OK) return 1;
    for (int k = 1; k < m; k++) ys[k] = g[k + 1];
    return 0;
}

static void a_compiled_step_over_bound_parameters_has_the_eager_bits(void **state) {
    (void)state;
    fixture     f        = made();
    model       a        = {&f, net};
    cot_type    types[6] = {{COT_F64, COT_SHAPE(3, 2)}, {COT_I64, COT_SHAPE(3)}};
    double      x[6], w[4][8], got[5][8], want[8];
    int64_t     y[3];
    const void *in[6]  = {x, y, w[0], w[1], w[2], w[3]};
    void       *out[5] = {got[0], got[1], got[2], got[3], got[4]};
    cot_read(f.x, x, 6), cot_read_as(f.y, COT_I64, y, 3);
    for (int k = 0; k < 4; k++) {
        cot_var v    = cot_params_at(f.p, k).var;
        types[2 + k] = (cot_type){COT_F64, cot_shape_of(v)};
        cot_read(v, w[k], cot_size(v));
    }
    cot_program *program = cot_compile(loss_and_grads, &a, 6, types, 5, NULL);
    cot_run     *run     = cot_run_create(program);
    assert_int_equal(cot_program_run(run, in, out), COT_OK);
    cot_var value = cot_softmax_cross_entropy(net(f.p, f.x), f.y);
    double  eager = cot_value(value);
    assert_memory_equal(&eager, got[0], sizeof eager);
    cot_backward(value);
    for (int k = 0; k < 4; k++) {
        cot_var v = cot_params_at(f.p, k).var;
        cot_read_grad(v, want, cot_size(v));
        assert_memory_equal(want, got[1 + k], (size_t)cot_size(v) * sizeof *want);
    }
    assert_ok(f.t);
    cot_run_destroy(run);
    cot_program_destroy(program);
    destroy(&f);
}

/* By cot_fn_hessian over bound vars, and by cot_hessian over the leaves. */
static int loss_of_params(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const model *a      = user;
    cot_var      all[8] = {a->f->x, a->f->y};
    for (int k = 0; k < n; k++) all[2 + k] = xs[k];
    return loss(n + 2, all, m, ys, user);
}

static void hessians_over_parameters(void **state) {
    (void)state;
    fixture        f = made();
    model          a = {&f, net};
    int            n;
    const cot_var *w = cot_params_vars(f.p, &n);
    cot_var        h[16];
    double         all[22 * 22], part[64];
    assert_int_equal(cot_fn_hessian(loss_of_params, &a, n, w, NULL, h), COT_OK);
    assert_int_equal(cot_hessian(cot_softmax_cross_entropy(net(f.p, f.x), f.y), n, w, all), COT_OK);
    int64_t size[4] = {8, 4, 8, 2}, row = 0;
    for (int i = 0; i < 4; row += size[i++]) {
        int64_t column = 0;
        for (int j = 0; j < 4; column += size[j++]) {
            cot_read(h[i * 4 + j], part, size[i] * size[j]);
            for (int64_t r = 0; r < size[i]; r++)
                for (int64_t c = 0; c < size[j]; c++)
                    assert_near(part[r * size[j] + c], all[(row + r) * 22 + column + c], 1e-15);
        }
    }
    assert_true(fabs(all[0]) > 1e-6);
    assert_ok(f.t);
    destroy(&f);
}

static int one_example(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    model  *a = user;
    cot_var v = cot_softmax_cross_entropy(a->net(a->f->p, xs[0]), xs[1]);
    int     count;
    (void)n, (void)m;
    const cot_var *w = cot_params_vars(a->f->p, &count);
    return cot_grad_of(v, count, w, ys) == COT_OK ? 0 : 1;
}

static void a_batch_gives_the_gradients_of_each_example(void **state) {
    (void)state;
    fixture f = made();
    model   a = {&f, net};
    cot_var each[4], xs[2] = {f.x, f.y};
    double  got[24], want[8];
    assert_int_equal(cot_vmap(one_example, &a, 2, xs, NULL, 4, each, NULL), COT_OK);
    for (int i = 0; i < 3; i++) {
        cot_tape_zero_grads(f.t);
        cot_backward(cot_softmax_cross_entropy(net(f.p, cot_index(f.x, 0, i)), cot_index(f.y, 0, i)));
        for (int k = 0; k < 4; k++) {
            cot_var v = cot_params_at(f.p, k).var;
            cot_read(each[k], got, 3 * cot_size(v)), cot_read_grad(v, want, cot_size(v));
            for (int64_t j = 0; j < cot_size(v); j++) assert_near(got[i * cot_size(v) + j], want[j], 1e-15);
        }
    }
    /* models side by side: the parameters are the batch */
    cot_var stacked[6] = {f.x, f.y}, ys;
    int     axes[6]    = {COT_NOT_BATCHED, COT_NOT_BATCHED, 0, 0, 0, 0};
    for (int k = 0; k < 4; k++) {
        cot_var v      = cot_params_at(f.p, k).var;
        stacked[2 + k] = cot_stack(2, (cot_var[]){v, cot_mul(2, v)}, 0);
    }
    assert_int_equal(cot_vmap(loss, &a, 6, stacked, axes, 1, &ys, NULL), COT_OK);
    assert_near(cot_value(cot_index(ys, 0, 0)), cot_value(cot_softmax_cross_entropy(net(f.p, f.x), f.y)), 1e-15);
    assert_ok(f.t);
    destroy(&f);
}

static cot_var normed(cot_params *p, cot_var x) {
    return cot_nn_dense(p, "fc", cot_nn_batch_norm(p, "bn", x, 0, 0), 2);
}

/* Where all are bound, a training step gives the new statistics out; bound alone, the trained ones
 * leave them as they are, and on another tape they are missed. */
static void bound_statistics_are_replaced_not_written(void **state) {
    (void)state;
    fixture     f = made();
    cot_params *p = cot_params_create(f.t);
    cot_tape   *u = cot_tape_create(NULL);
    cot_var     all[6], trained[4];
    assert_int_equal(cot_params_init(p, normed, f.x, cot_key_of(1)), COT_OK);
    for (int k = 0; k < 6; k++) all[k] = cot_params_at(p, k).var;
    int n;
    for (int k = 0; k < 4; k++) trained[k] = cot_mul(1, cot_params_vars(p, &n)[k]);
    assert_int_equal(n, 4);
    cot_params_bind(p, 6, all);
    normed(p, f.x);
    double new[2], old[2];
    cot_read(cot_params_get(p, "bn.running_mean"), new, 2), cot_read(all[2], old, 2);
    assert_near(new[0], 0.1 * (0.1 + 0.7 - 0.9) / 3, 1e-16);
    assert_true(old[0] == 0 && old[1] == 0);
    cot_params_bind(p, 4, trained);
    normed(p, f.x);
    cot_params_bind(p, 0, NULL);
    cot_read(all[2], old, 2);
    assert_true(old[0] == 0);
    normed(p, f.x);
    cot_read(all[2], old, 2);
    assert_near(old[0], new[0], 0);
    assert_ok(f.t);
    for (int k = 0; k < 4; k++) trained[k] = cot_ones(u, COT_F64, cot_shape_of(trained[k]));
    cot_params_bind(p, 4, trained);
    normed(p, cot_ones(u, COT_F64, COT_SHAPE(3, 2)));
    assert_error(
        u, COT_VALUE,
        "[nn_batch_norm] \"bn.running_mean\" is not bound, and is on another tape than what is; statistics and "
        "frozen parameters are bound where n is cot_params_count");
    assert_ok(f.t);
    cot_params_destroy(p);
    cot_tape_destroy(u);
    destroy(&f);
}

static cot_var noisy(cot_params *p, cot_var x) { return cot_nn_dropout(p, "d", cot_nn_linear(p, "fc", x, 32), 0.5); }
static int     noisy_step(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
        (void)n, (void)m;
        cot_params_bind(user, 1, xs + 2);
        cot_params_set_key(user, cot_key_at(cot_key_of(5), xs[1]));
        ys[0] = noisy(user, xs[0]);
        return cot_params_bind(user, 0, NULL) == COT_OK ? 0 : 1;
}

/* The step is an input of the program: each run has the mask of its eager step. */
static void a_compiled_step_draws_by_a_key_at_the_step(void **state) {
    (void)state;
    cot_tape      *t        = cot_tape_create(NULL);
    cot_params    *p        = cot_params_create(t);
    cot_var        x        = cot_ones(t, COT_F64, COT_SHAPE(1));
    const cot_type types[3] = {{COT_F64, COT_SHAPE(1)}, {COT_I64, COT_SCALAR}, {COT_F64, COT_SHAPE(1, 32)}};
    double         one      = 1, w[32], want[32], got[32];
    cot_params_init(p, noisy, x, cot_key_of(1));
    cot_read(cot_params_get(p, "fc.weight"), w, 32);
    cot_program *program = cot_compile(noisy_step, p, 3, types, 1, NULL);
    cot_run     *run     = cot_run_create(program);
    for (int64_t step = 0; step < 3; step++) {
        cot_params_set_key(p, cot_key_at(cot_key_of(5), cot_integer(step)));
        cot_read(noisy(p, x), want, 32);
        assert_int_equal(cot_program_run(run, (const void *[]){&one, &step, w}, (void *[]){got}), COT_OK);
        assert_memory_equal(want, got, sizeof want);
    }
    assert_ok(t);
    cot_run_destroy(run);
    cot_program_destroy(program);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static cot_var every(cot_params *p, cot_var x) {
    cot_params_push(p, "a");
    x = cot_nn_dropout(p, "drop", cot_nn_batch_norm(p, "bn", cot_nn_dense(p, "fc", x, 4), 0, 0), 0.1);
    x = cot_nn_layer_norm(p, "ln", x, 0);
    cot_params_pop(p);
    return cot_nn_attention(p, "at", x, &(cot_nn_attention_options){.heads = 2, .causal = true, .rotary = 100});
}

static void a_training_loop_asks_for_no_memory_in_its_steady_state(void **state) {
    (void)state;
#if COT__ADDRESS_SANITIZER
    skip(); /* there freed memory is not kept for the next step */
#endif
    counting    c = {0};
    cot_tape   *t = counted_tape(&c, false);
    cot_params *p = cot_params_create(t);
    cot_var     x = cot_ones(t, COT_F32, COT_SHAPE(3, 5));
    assert_int_equal(cot_params_init(p, every, x, cot_key_of(1)), COT_OK);
    int            n;
    const cot_var *w        = cot_params_vars(p, &n);
    cot_mark       start    = cot_tape_mark(t);
    long           requests = 0;
    for (int step = 0; step < 20; step++) {
        if (step == 5) requests = c.requests;
        cot_params_set_key(p, cot_key_at(cot_key_of(3), cot_integer(step)));
        cot_backward(cot_sum(cot_square(every(p, x)), COT_ALL));
        cot_sgd_step(n, w, 0.01);
        cot_tape_zero_grads(t);
        assert_ok(t);
        cot_tape_rewind(t, start);
    }
    assert_int_equal(c.requests, requests);
    cot_params_destroy(p);
    cot_tape_destroy(t);
    assert_true(c.live == 0 && !c.wrong_size);
}

static void train(cot_tape *t, void *user) {
    cot_params *p   = cot_params_create(t);
    cot_var     x   = cot_ones(t, COT_F32, COT_SHAPE(3, 5));
    FILE       *out = tmpfile();
    (void)user;
    assert_non_null(out);
    if (p) {
        cot_params_init_with(p, "*.bias", (cot_init){COT_INIT_ONES, 0});
        cot_params_init(p, every, x, cot_key_of(1));
        cot_params_init(p, many, cot_ones(t, COT_F32, COT_SHAPE(3, 2)), cot_key_of(1));
        if (cot_tape_status(t) == COT_OK)
            assert_int_equal(cot_params_count(p), 112);
        else
            assert_true(cot_params_count(p) == 0 || cot_params_count(p) == 12);
        cot_params_set_key(p, cot_key_of(1));
        cot_backward(cot_sum(every(p, x), COT_ALL));
        cot_params_summary(p, every, x, out);
        cot_nn_cache *cache = cot_nn_cache_create(p, 4);
        cot_params_push(p, "b");
        cot_params_pop(p);
        cot_params_set_user(p, cache);
        cot_var y = cot_nn_attention(p, "at", cot_ones(t, COT_F32, COT_SHAPE(3, 4)),
                                     &(cot_nn_attention_options){.heads = 2, .cache = cache});
        if (cache && cot_is_valid(y)) cot_value(cot_sum(y, COT_ALL));
        cot_nn_cache_destroy(cache);
    }
    cot_params_destroy(p);
    fclose(out);
}

static void every_failing_allocation_is_an_error(void **state) {
    (void)state;
    static const char *const said[] = {"for the list of parameters", "[params_create] out of memory",
                                       "[nn_cache_create] out of memory", "for keys and values",
                                       "[params_summary] out of memory"};
    assert_survives_no_memory(train, NULL, 5, said);
}

/* ---- the summary ----------------------------------------------------------------------------- */

static cot_var shown(cot_params *p, cot_var x) {
    x = cot_relu(cot_nn_dense(p, "fc1", x, 512));
    cot_params_push(p, "block");
    x = cot_nn_dropout(p, "drop", cot_nn_dense(p, "fc", x, 512), 0.5);
    x = cot_nn_dense(p, "fc", x, 512);
    cot_params_pop(p);
    return cot_nn_linear(p, "head", x, 10);
}

static void a_summary_is_a_table_and_changes_nothing(void **state) {
    (void)state;
    cot_tape   *t          = cot_tape_create(NULL);
    cot_params *p          = cot_params_create(t);
    cot_var     x          = cot_ones(t, COT_F32, COT_SHAPE(8, 784));
    FILE       *out        = tmpfile();
    char        text[4096] = {0};
    assert_int_equal(cot_params_summary(p, shown, x, out), COT_OK);
    assert_true(cot_params_count(p) == 0 && cot_tape_length(t) == 1);
    rewind(out);
    text[fread(text, 1, sizeof text - 1, out)] = 0;
    fclose(out);
    assert_string_equal(text, "layer                     output              parameters    operations     bytes\n"
                              "fc1                       (8,512)             401920        6426624        32768\n"
                              "block.fc                  (8,512)             262656        4198400        32768\n"
                              "block.drop                (8,512)             0             4096           32768\n"
                              "block.fc                  (8,512)             0             4198400        32768\n"
                              "head                      (8,10)              5120          81920          320\n"
                              "(between layers)          (8,10)              0             4096           16384\n"
                              "in all                    (8,10)              669696        14913536       147776\n");
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_net_is_run_once_and_only_its_leaves_stay),
        cmocka_unit_test(initial_numbers_depend_on_key_and_name_alone),
        cmocka_unit_test(initialisers_have_their_deviation_and_bounds),
        cmocka_unit_test(the_dtype_is_that_of_x_or_f32_or_the_one_that_was_set),
        cmocka_unit_test(names_are_pushed_and_the_same_name_is_the_same_parameter),
        cmocka_unit_test(names_are_found_in_any_order),
        cmocka_unit_test(tables_grow),
        cmocka_unit_test(wrong_names_and_shapes_are_told),
        cmocka_unit_test(null_and_wrong_arguments_are_errors),
        cmocka_unit_test(patterns_freeze_and_group),
        cmocka_unit_test(a_compiled_step_over_bound_parameters_has_the_eager_bits),
        cmocka_unit_test(hessians_over_parameters),
        cmocka_unit_test(a_batch_gives_the_gradients_of_each_example),
        cmocka_unit_test(bound_statistics_are_replaced_not_written),
        cmocka_unit_test(a_compiled_step_draws_by_a_key_at_the_step),
        cmocka_unit_test(a_training_loop_asks_for_no_memory_in_its_steady_state),
        cmocka_unit_test(every_failing_allocation_is_an_error),
        cmocka_unit_test(a_summary_is_a_table_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
