/* Forecasts of memory: bytes by operation against counts by hand, and the peak against the one that
 * the tape has when the step is run. */
#include "support/tape_test.h"

#include "trace/cost/forecast.h"

enum { ROWS = 64, WIDTH = 32, LAYERS = 6, ARRAY = ROWS * WIDTH * 4 };

static cot_var net(cot_params *p, cot_var x) {
    for (int k = 0; k < LAYERS; k++) {
        cot_params_push_number(p, k);
        x = cot_tanh(cot_nn_linear(p, "fc", x, WIDTH));
        cot_params_pop(p);
    }
    return x;
}

static const cot__forecast_row *row(const cot__forecast *f, const char *op) {
    for (int64_t k = 0; k < f->row_count; k++)
        if (strcmp(f->rows[k].op, op) == 0) return &f->rows[k];
    return NULL;
}

static void values_are_counted_by_operation(void **state) {
    (void)state;
    cot_tape     *t = cot_tape_create(NULL);
    cot_params   *p = cot_params_create(t);
    cot_var       x = cot_normal(t, cot_key_of(1), COT_F32, COT_SHAPE(ROWS, WIDTH));
    cot__forecast f;
    cot_params_init(p, net, x, cot_key_of(0));
    cot_var y = cot_sum(net(p, x), COT_ALL);
    assert_ok(t);
    assert_true(cot__forecast_of(&f, y));
    const cot__forecast_row *products = row(&f, "matmul"), *tanhs = row(&f, "tanh");
    assert_non_null(products);
    assert_non_null(tanhs);
    /* the rule of tanh reads its result, which the next product reads too; that of a product reads
     * no product */
    assert_int_equal(products->count, LAYERS);
    assert_int_equal(products->bytes, LAYERS * ARRAY);
    assert_int_equal(products->saved, 0);
    assert_null(products->reader);
    assert_near(products->again, 2.0 * ROWS * WIDTH * WIDTH * LAYERS, 0);
    assert_int_equal(tanhs->saved, LAYERS * ARRAY);
    assert_string_equal(tanhs->reader, "tanh");
    assert_int_equal(f.saved, LAYERS * ARRAY);
    assert_int_equal(f.cheap, LAYERS * ARRAY);
    assert_int_equal(f.unread, LAYERS * ARRAY);
    assert_int_equal(f.sources, (ROWS + LAYERS * WIDTH) * WIDTH * 4);
    /* up to y, and on the way back what is still there and two adjoints */
    assert_int_equal(f.steps, 2 * cot_tape_length(t));
    assert_true(f.peak >= 2 * LAYERS * ARRAY && f.peak <= (2 * LAYERS + 3) * ARRAY + LAYERS * WIDTH * WIDTH * 4);
    cot__forecast_free(&f);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

/* The tape has besides: blocks rounded up by at most an eighth, nodes and shapes, workspaces of
 * kernels, and a few arrays that a rule makes on its way: not half of these twelve activations. */
static void the_peak_is_near_the_one_of_a_run(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_params *p = cot_params_create(t);
    cot_var     x = cot_zeros(t, COT_F32, COT_SHAPE(64 * ROWS, WIDTH));
    cot_params_init(p, net, x, cot_key_of(0));
    cot_mark m = cot_tape_mark(t);
    cot_var  y = cot_sum(net(p, x), COT_ALL);
    cot__forecast f;
    assert_true(cot__forecast_of(&f, y));
    cot_backward(y);
    assert_ok(t);
    double peak = (double)cot_tape_peak_bytes(t);
    assert_true(f.peak <= peak && peak < 1.5 * f.peak);
    cot_tape_rewind(t, m);
    cot__forecast_free(&f);
    cot_params_destroy(p);
    cot_tape_destroy(t);
}

static void what_is_no_value_has_no_forecast(void **state) {
    (void)state;
    cot__forecast f;
    char          text[32];
    assert_false(cot__forecast_of(&f, COT_NONE));
    cot__forecast_free(&f);
    assert_string_equal(cot__bytes_text(1000, text), "1000 B");
    assert_string_equal(cot__bytes_text(1536, text), "1.50 KiB");
    assert_string_equal(cot__bytes_text(3.0 * 1024 * 1024 * 1024, text), "3.00 GiB");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_counted_by_operation),
        cmocka_unit_test(the_peak_is_near_the_one_of_a_run),
        cmocka_unit_test(what_is_no_value_has_no_forecast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
