/* The JSON writer: escapes, numbers that read back to the same bits, values of every dtype and
 * shape, summaries of large ones. */
#include "support/tape_test.h"

#include "support/see.h"
#include "support/support.h"
#include "trace/json/json.h"
#include "tape/tape.h"

#include <locale.h>

#define JSON(expected, ...)                                                                                            \
    do {                                                                                                               \
        FILE     *f = tmpfile();                                                                                       \
        cot__json j = cot__json_to(f);                                                                                 \
        __VA_ARGS__;                                                                                                   \
        assert_string_equal(text_of(f), expected);                                                                     \
    } while (0)

static void commas_and_brackets(void **state) {
    (void)state;
    JSON("{\"a\":1,\"b\":[true,null,[],{}],\"c\":{\"d\":\"e\"}}", cot__json_open(&j, '{'); cot__json_key(&j, "a");
         cot__json_integer(&j, 1); cot__json_key(&j, "b"); cot__json_open(&j, '['); cot__json_bool(&j, true);
         cot__json_null(&j); cot__json_open(&j, '['); cot__json_close(&j, ']'); cot__json_open(&j, '{');
         cot__json_close(&j, '}'); cot__json_close(&j, ']'); cot__json_key(&j, "c"); cot__json_open(&j, '{');
         cot__json_key(&j, "d"); cot__json_string(&j, "e"); cot__json_close(&j, '}'); cot__json_close(&j, '}'));
}

static void strings_are_escaped(void **state) {
    (void)state;
    JSON("\"a\\\"b\\\\c\\n\\t\\r\\b\\f\\u0001\\u001f\\u007f/\"",
         cot__json_string(&j, "a\"b\\c\n\t\r\b\f\x01\x1f\x7f/"));
    JSON("\"x\\u0000y\"", cot__json_string_n(&j, "x\0y", 3));
    JSON("\"\xc4\x81 \xe2\x8b\x85 \xf0\x9f\x98\x80\"", cot__json_string(&j, "\xc4\x81 \xe2\x8b\x85 \xf0\x9f\x98\x80"));
    JSON("null", cot__json_string(&j, NULL));
    JSON("\"\"", cot__json_string(&j, ""));
}

#define BAD "\xef\xbf\xbd"
static void what_is_no_utf8_is_replaced(void **state) {
    (void)state;
    JSON("\"a" BAD "b\"", cot__json_string(&j, "a\xff" "b"));
    /* a stray continuation */
    JSON("\"" BAD "\"", cot__json_string(&j, "\x80"));
    /* overlong */
    JSON("\"" BAD BAD "\"", cot__json_string(&j, "\xc0\xaf"));
    /* a surrogate */
    JSON("\"" BAD BAD BAD "\"", cot__json_string(&j, "\xed\xa0\x80"));
    /* beyond the last character */
    JSON("\"" BAD BAD BAD BAD "\"", cot__json_string(&j, "\xf5\x80\x80\x80"));
    /* cut off */
    JSON("\"" BAD BAD "\"", cot__json_string(&j, "\xe2\x82"));
    /* cut off by the count */
    JSON("\"" BAD "\"", cot__json_string_n(&j, "\xe2\x82\xac", 1));
}

static void numbers_read_back(void **state) {
    (void)state;
    const double special[] = {0.1,
                              1.0 / 3,
                              1e22,
                              1e23,
                              5e-324,
                              2.2250738585072014e-308,
                              1.7976931348623157e308,
                              9007199254740993.0,
                              -0.0,
                              123456789012345680.0,
                              4.35,
                              0.3,
                              2.0 / 3,
                              1e-7};
    char        buf[32];
    test_random r = test_random_of("json", 0);
    for (int i = 0; i < TEST_COUNT(special); i++) {
        double back = strtod(cot__shortest(special[i], buf), NULL);
        assert_memory_equal(&back, &special[i], sizeof back);
    }
    for (int i = 0; i < 20000; i++) {
        union {
            uint64_t u;
            double   d;
        } v = {(uint64_t)(test_uniform(&r, 0, 1) * 4294967296.0) << 32 |
               (uint64_t)(test_uniform(&r, 0, 1) * 4294967296.0)};
        if (!isfinite(v.d)) continue;
        assert_true(strtod(cot__shortest(v.d, buf), NULL) == v.d);
        union { uint32_t u; float f; } w = {(uint32_t)v.u};
        if (isfinite(w.f)) assert_true(strtof(cot__shortest_float(w.f, buf), NULL) == w.f);
    }
    JSON("[0.1,0.30000000000000004,1,-0.0,5e-324,\"nan\",\"inf\",\"-inf\",0.1,16777216,-9223372036854775808]",
         cot__json_open(&j, '[');
         cot__json_number(&j, 0.1); cot__json_number(&j, 0.1 + 0.2); cot__json_number(&j, 1);
         cot__json_number(&j, -0.0); cot__json_number(&j, 5e-324); cot__json_number(&j, -(double)NAN);
         cot__json_number(&j, INFINITY); cot__json_number(&j, -INFINITY); cot__json_float(&j, 0.1f);
         cot__json_float(&j, 16777216.0f); cot__json_integer(&j, INT64_MIN); cot__json_close(&j, ']'));
}

static void a_locale_does_not_show(void **state) {
    (void)state;
    char buf[32];
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8")) skip();
    cot__shortest(0.5, buf);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(buf, "0.5");
}

static void json_var(cot__json *j, cot_var x) {
    cot__view v = cot__look(x.tape, cot__index(x));
    cot__json_view(j, &v);
}

static void values_of_every_dtype(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    JSON("[[1,2,3],[4,5,6]]", json_var(&j, cot_data(t, COT_F64, COT_SHAPE(2, 3), (double[]){1, 2, 3, 4, 5, 6})));
    JSON("[[1,4],[2,5],[3,6]]",
         json_var(&j, cot_transpose(cot_data(t, COT_I64, COT_SHAPE(2, 3), (int64_t[]){1, 2, 3, 4, 5, 6}))));
    JSON("[0.1,\"nan\"]", json_var(&j, cot_data(t, COT_F32, COT_SHAPE(2), (float[]){0.1f, NAN})));
    JSON("[true,false]", json_var(&j, cot_data(t, COT_BOOL, COT_SHAPE(2), (uint8_t[]){1, 0})));
    JSON("[255,0]", json_var(&j, cot_data(t, COT_U8, COT_SHAPE(2), (uint8_t[]){255, 0})));
    JSON("1.1015625", json_var(&j, cot_cast(cot_constant(t, 1.1), COT_BF16)));
    JSON("0.33325195", json_var(&j, cot_cast(cot_constant(t, 1.0 / 3), COT_F16)));
    JSON("9007199254740993", json_var(&j, cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){9007199254740993})));
    JSON("[7,7,7]", json_var(&j, cot_broadcast_to(cot_constant(t, 7), COT_SHAPE(3))));
    assert_ok(t);
    cot_tape_destroy(t);
}

static void empty_values_keep_their_shape(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    JSON("[]", json_var(&j, cot_zeros(t, COT_F64, COT_SHAPE(0))));
    JSON("[[],[]]", json_var(&j, cot_zeros(t, COT_F64, COT_SHAPE(2, 0))));
    JSON("[]", json_var(&j, cot_zeros(t, COT_F64, COT_SHAPE(0, 3))));
    JSON("[[[]]]", json_var(&j, cot_zeros(t, COT_F64, COT_SHAPE(1, 1, 0, 5))));
    JSON("[[[[[[[[[[[[[[[[3]]]]]]]]]]]]]]]]",
         json_var(&j, cot_full(t, COT_F64, COT_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), 3)));
    cot_tape_destroy(t);
}

/* The text of cot__json_tensor for a var. */
static const char *picture(cot_var x) {
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__view v = cot__look(x.tape, cot__index(x));
    cot__json_tensor(&j, &v);
    return text_of(f);
}

static void large_values_become_pictures(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    assert_true(strncmp(picture(cot_arange(t, COT_F64, 0, 4096, 1)), "[0,1,2,", 7) == 0);
    const char *text = picture(cot_arange(t, COT_F64, 0, 8192, 1)); /* one row: 64 blocks of 128 */
    const char *start = "{\"elided\":true,\"count\":8192,\"min\":0,\"max\":8191,\"mean\":4095.5,\"grid\":[[63.5,191.5,";
    assert_true(strncmp(text, start, strlen(start)) == 0);
    assert_non_null(strstr(text, ",8127.5]]}"));
    /* rows 0 … 99 of three: each of the 64 bands has one or two of them, and three columns stay
     * three */
    cot_var m =
        cot_reshape(cot_broadcast_to(cot_arange(t, COT_F64, 0, 3, 1), COT_SHAPE(2000, 3)), COT_SHAPE(20, 100, 3));
    text = picture(m);
    start = "{\"elided\":true,\"count\":6000,\"min\":0,\"max\":2,\"mean\":1,\"grid\":[[0,1,2],[0,1,2],";
    assert_true(strncmp(text, start, strlen(start)) == 0);
    int rows = 0;
    for (const char *p = text; (p = strstr(p, "[0,1,2]")); p++) rows++;
    assert_int_equal(rows, 64);
    cot_tape_destroy(t);
}

static void pictures_show_what_is_not_finite(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    double   *data = calloc(8192, sizeof *data);
    data[0] = NAN, data[200] = INFINITY, data[8191] = 2;
    const char *text = picture(cot_data(t, COT_F64, COT_SHAPE(8192), data));
    const char *start = "{\"elided\":true,\"count\":8192,\"min\":0,\"max\":2,\"mean\":0.0002442002442002442,\"grid\":[["
                        "\"nan\",\"inf\",0,";
    assert_true(strncmp(text, start, strlen(start)) == 0);
    for (int i = 0; i < 8192; i++) data[i] = NAN;
    text = picture(cot_data(t, COT_F64, COT_SHAPE(8192), data));
    start = "{\"elided\":true,\"count\":8192,\"min\":\"nan\",\"max\":\"nan\",\"mean\":\"nan\",\"grid\":[[\"nan\",";
    assert_true(strncmp(text, start, strlen(start)) == 0);
    free(data);
    cot_tape_destroy(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_and_brackets),         cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(what_is_no_utf8_is_replaced), cmocka_unit_test(numbers_read_back),
        cmocka_unit_test(a_locale_does_not_show),      cmocka_unit_test(values_of_every_dtype),
        cmocka_unit_test(empty_values_keep_their_shape), cmocka_unit_test(large_values_become_pictures),
        cmocka_unit_test(pictures_show_what_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
