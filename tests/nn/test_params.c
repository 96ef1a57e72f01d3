/* Parameters: names, initial numbers, freezing, groups, binding, and what is refused. */
#include "support/tape_test.h"

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
    f.p = cot_params_create(f.t);
    f.x = cot_data(f.t, COT_F64, COT_SHAPE(3, 2), (double[]){0.1, -0.4, 0.7, 0.2, -0.9, 0.5});
    f.y = cot_data(f.t, COT_I64, COT_SHAPE(3), (int64_t[]){0, 1, 1});
    assert_int_equal(cot_params_init(f.p, net, f.x, cot_key_of(1)), COT_OK);
    return f;
}

static void destroy(fixture *f) {
    cot_params_destroy(f->p);
    cot_tape_destroy(f->t);
}

static void a_net_is_run_once_and_only_its_leaves_stay(void **state) {
    (void)state;
    fixture     f = made();
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_net_is_run_once_and_only_its_leaves_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
