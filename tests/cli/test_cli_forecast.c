/* cotangent memory: forecasts of expressions and models. */
#include "support/cli_test.h"

/* The number behind a key of the last output. */
static double number(const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(last.out, quoted);
    assert_non_null(at);
    return strtod(at + strlen(quoted), NULL);
}

static void an_expression_is_told_by_operation(void **state) {
    (void)state;
    static const char told[] =
        "values    count    stored     saved  again  read by the rule of\n"
        "exp           1  7.81 KiB  7.81 KiB  1e+03  exp\n"
        "leaf \"x\"      1  7.81 KiB  7.81 KiB         mul\n"
        "mul           1  7.81 KiB         -  1e+03\n\n"
        "15.62 KiB beside leaves and constants: 7.81 KiB that rules read (7.81 KiB elementwise, cheap to make "
        "again), 7.81 KiB that none reads\n"
        "the most at once, if each adjoint had memory of its own: 31.25 KiB, on the way back, at mul (v₂)\n"
        "as it runs, with the tape's lists, what rules make on their way and what kernels need: ";
    assert_int_equal(sh("cotangent memory 'sum(exp(x)*x)' 'x=uniform(1, [1000], 1)'"), 0);
    assert_true(strlen(last.out) > strlen(told));
    last.out[strlen(told)] = 0; /* how much, depends on the machine */
    assert_string_equal(last.out, told);
}

/* The adjoint of a sum is handed on from addition to addition, so a run takes less than is stored
 * and swept. */
static void less_than_the_most_at_once_is_told_with_its_reason(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --json 'sum(x+x+x+x+x+x)' 'x=uniform(1, [100000], 1)'"), 0);
    assert_true(number("whole") < number("peak"));
    assert_int_equal(sh("cotangent memory 'sum(x+x+x+x+x+x)' 'x=uniform(1, [100000], 1)'"), 0);
    assert_non_null(strstr(last.out, "\nas it runs, where adjoints that are handed on share it, with the tape's "));
}

static void a_model_of_any_size_is_answered_at_once(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --json --model gpt --layers 100 --batch 32 --context 2048 --width 4096"), 0);
    assert_string_equal(last.err, "");
    /* 12 width² a block and its biases and scales, tokens and places */
    double w = 4096, block = 12 * w * w + 13 * w, rest = 50257 * w + 2048 * w + 2 * w;
    assert_true(number("parameters") == 100 * block + rest);
    /* a block saves more than ten activations of its width, in f32 */
    assert_true(number("peak") > 100 * 10.0 * 32 * 2048 * w * 4);
    double peak = number("peak"), saved = number("saved"), cut = number("cut");
    assert_true(cut < peak / 4);
    assert_true(number("segments") == 10);
    assert_int_equal(sh("cotangent memory --json --model gpt --layers 100 --batch 32 --context 2048 --width 4096 "
                        "--precision bf16"), 0);
    assert_true(number("saved") < 0.62 * saved && number("saved") > 0.4 * saved);
}

/* A text by its characters has some 65 tokens. */
static void a_vocabulary_is_told_and_may_be_another(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --model gpt"), 0);
    assert_non_null(strstr(last.out, "\n7242624 parameters, with a vocabulary of 50257 tokens: 27.63 MiB, "));
    assert_int_equal(sh("cotangent memory --model gpt --json"), 0);
    double parameters = number("parameters");
    assert_true(number("vocabulary") == 50257);
    assert_int_equal(sh("cotangent memory --model gpt --vocabulary 65 --json"), 0);
    assert_true(number("vocabulary") == 65);
    assert_true(number("parameters") == parameters - (50257 - 65) * 128);
    assert_int_equal(sh("cotangent memory --model mnist --json"), 0);
    assert_non_null(strstr(last.out, "\"vocabulary\":null,"));
}

/* Logits are cast for the loss: with many tokens and few layers 16 bits take more than 32. */
static void what_16_bits_cost_is_told(void **state) {
    (void)state;
    static const char reason[] = " of the values are casts, which f32 does not have: ";
    assert_int_equal(sh("cotangent memory --model gpt --layers 1 --json"), 0);
    double whole = number("whole");
    assert_int_equal(sh("cotangent memory --model gpt --layers 1 --precision bf16 --json"), 0);
    assert_true(number("whole") > whole);
    assert_int_equal(sh("cotangent memory --model gpt --layers 1 --precision bf16"), 0);
    assert_non_null(strstr(last.out, reason));
    assert_int_equal(sh("cotangent memory --model gpt --layers 1 --precision f32"), 0);
    assert_null(strstr(last.out, reason));
}

/* Tokens are embedded and told apart by one matrix. */
static void a_parameter_that_is_used_twice_is_stored_once(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --json --model gpt --layers 2"), 0);
    const char *row = strstr(last.out, "{\"op\":\"parameter\",\"name\":null,\"count\":");
    assert_non_null(row);
    assert_true(strtod(strstr(row, "\"bytes\":") + 8, NULL) == 4 * number("parameters"));
}

/* Up to 200 blocks all are recorded, and each adds as much as the one before; beyond them numbers
 * go on in the same way. */
static void a_million_layers_are_answered_at_once(void **state) {
    (void)state;
    static const char *const keys[] = {"stored", "sources", "saved", "cheap", "unread", "peak", "steps", "parameters"};
    enum { KEYS = sizeof keys / sizeof *keys };
    static const int layers[] = {199, 200, 201, 1000};
    double           v[4][KEYS];
    /* with few tokens a batch the peak is where parameters are the most, with many at the loss */
    for (int batch = 1; batch <= 64; batch += 63) {
        for (int k = 0; k < 4; k++) {
            assert_int_equal(sh("cotangent memory --json --model gpt --layers %d --width 32 --context 16 --batch %d",
                                layers[k], batch), 0);
            for (int i = 0; i < KEYS; i++) v[k][i] = number(keys[i]);
        }
        for (int i = 0; i < KEYS; i++) {
            double more = v[1][i] - v[0][i];
            assert_true(more > 0);
            assert_true(v[2][i] - v[1][i] == more);
            assert_true(v[3][i] - v[1][i] == 800 * more);
        }
    }
    assert_int_equal(sh("cotangent memory --model gpt --layers 1000000 --svg m.svg"), 0);
    assert_non_null(strstr(last.out, "\nadd          6000001  "));
    assert_int_equal(sh("grep -c '<svg' m.svg"), 0);
}

static void what_int64_does_not_hold_is_refused(void **state) {
    (void)state;
    fails("cotangent memory --model gpt --layers 1000000000 --width 65536 --heads 8", 3,
          "[memory] a step of 1000000000 blocks takes more than 2^63 - 1 bytes; ask for fewer, or a smaller --width",
          "");
    /* what it does hold is counted */
    assert_int_equal(sh("cotangent memory --json --model gpt --layers 1000000000 --width 8192 --heads 8"), 0);
    assert_true(number("stored") > 1e17 && number("stored") < 0x1p63);
    assert_true(number("peak") > 9e17 && number("whole") > 9e17 && number("parameters") > 1e17);
}

/* Nothing is computed, whatever the sizes; where the operations depend on values, these are. */
static void expressions_are_known_by_their_shapes(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --json 'sum(tanh(A @ x))' 'A=uniform(1, [300000,300000], 1)' "
                        "'x=uniform(2, [300000], 1)'"), 0);
    assert_true(number("sources") == 8.0 * (300000.0 * 300000 + 300000));
    assert_true(number("peak") == 8.0 * 4 * 300000); /* leaves and their gradients do not count */
    assert_int_equal(sh("cotangent memory --json 'sum(x) if sum(x) > 9 else sum(exp(x))' 'x=uniform(1, [8], 1)'"), 0);
    assert_non_null(strstr(last.out, "{\"op\":\"exp\""));
    fails("cotangent memory 'sum(x) if sum(x) > 9 else 0' 'x=uniform(1, [1000000, 1000000], 1)'", 2,
          "the condition of 'if' takes a single number, not a value of bool; where(condition, a, b) goes element by "
          "element (from shapes alone: with inputs of 7.28 TiB nothing is computed)",
          "sum(x) if sum(x) > 9 else 0\n          ^~~~~~~~~~\n");
    fails("cotangent memory 'sum(x)' 'x=uniform(1, 3)'", 2,
          "x: uniform is written uniform(seed, [extents], scale), with a whole seed from 0 to 4294967295: uniform(1, "
          "[128, 784], 0.5)", "");
    fails("cotangent memory 'sum(x)' 'x=uniform(1, [3], [1, 2])'", 2, "x: the scale of uniform is one number", "");
}

#define MASKS "masks count as if they selected everything: how much they do depends on values\n"

/* How many elements a mask selects is not known from shapes: all, unless they are listed. */
static void masks_count_as_selecting_everything(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --json 'sum(x[x > 2])' 'x=uniform(1, [1000000, 1000000], 1)'"), 0);
    assert_non_null(strstr(last.out, "{\"op\":\"take\",\"name\":null,\"count\":1,\"bytes\":8000000000000,"));
    assert_non_null(strstr(last.out, "\"all_selected\":true"));
    assert_int_equal(sh("cotangent memory --json 'sum(compress(x[0] > 2, x, 1))' 'x=uniform(1, [1000000, 10], 1)'"), 0);
    assert_non_null(strstr(last.out, "{\"op\":\"take\",\"name\":null,\"count\":1,\"bytes\":80000000,"));
    assert_int_equal(sh("cotangent memory 'sum(x[x > 2])' 'x=uniform(1, [8], 1)'"), 0);
    assert_non_null(strstr(last.out, MASKS));
    assert_int_equal(sh("cotangent memory 'sum(x[x > 2])' 'x=[1, 2, 3]'"), 0);
    assert_null(strstr(last.out, MASKS));
    assert_non_null(strstr(last.out, "\ntake          1     8 B "));
}

#define SMALL "'sum(exp(tanh(x)*x)*x)' 'x=uniform(1, [100000], 1)'"

static void a_limit_is_judged_and_drawn(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --model mnist --batch 64 --limit 1TiB --svg m.svg"), 0);
    assert_int_equal(sh("cotangent memory --model mnist --batch 64 --limit '5 B'"), 1);
    assert_non_null(strstr(last.out, "a limit of 5 B is not enough, as far as shapes tell; "));
    assert_int_equal(sh("cotangent memory --model mnist --batch 64 --limit 1TiB --svg m.svg"), 0);
    assert_non_null(strstr(last.out, "a limit of 1.00 TiB is enough as it is\n"));
    assert_int_equal(sh("cotangent memory --model mnist --batch 64 --limit 1000"), 1);
    assert_non_null(strstr(last.out, "a limit of 1000 B is not enough, as far as shapes tell; "));
    assert_string_equal(last.err, "");
    /* what is enough is enough for the limit that runs keep: they count the same */
    assert_int_equal(sh("cotangent memory --json " SMALL), 0);
    double small[2] = {number("least"), number("whole")};
    assert_true(small[1] > small[0] && small[0] > 0);
    for (int k = 0; k < 2; k++) {
        double enough = small[k];
        assert_int_equal(sh("cotangent memory --json " SMALL " --limit %.0f", enough), 0);
        assert_non_null(strstr(last.out, "\"fits\":true}"));
        assert_int_equal(sh("COTANGENT_MEMORY_LIMIT=%.0f cotangent grad " SMALL " > under", enough), 0);
        assert_int_equal(sh("cotangent grad " SMALL " | cmp - under"), 0);
    }
    assert_int_equal(sh("cotangent memory --json " SMALL " --limit %.0f", small[0] - 1), 1);
    assert_non_null(strstr(last.out, "\"fits\":false}"));
    assert_int_equal(sh("cotangent memory --json --model mnist"), 0);
    double least = number("least");
    assert_true(least < number("peak"));
    assert_int_equal(sh("cotangent memory --model mnist --limit %.0f", least), 0);
    const char *judged = strstr(last.out, "\na limit of ");
    assert_true(judged && strstr(judged, " is enough, with values computed again\n"));
    assert_int_equal(sh("cotangent memory --model mnist --limit %.0f", least - 1), 1);
    /* checkpoints need no less, by the same measure */
    for (int layers = 4; layers <= 64; layers *= 4) {
        assert_int_equal(sh("cotangent memory --json --model gpt --layers %d", layers), 0);
        assert_true(number("cut") < number("whole") && number("cut") >= number("least"));
    }
    assert_int_equal(sh("grep -c '<svg' m.svg"), 0);
}

/* A net of one block, which is one checkpoint, is whole when it is made again. */
static void checkpoints_are_counted_as_a_limit_counts(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent memory --json --model gpt --layers 1"), 0);
    double whole = number("whole"), between = 4.0 * 8 * 128 * 128;
    assert_true(number("segments") == 1);
    assert_true(fabs(number("cut") - (whole + between)) <= 1);
    /* each of four blocks takes as much, two at a time; the nodes of the others are there */
    assert_int_equal(sh("cotangent memory --json --model gpt --layers 2"), 0);
    double block = number("whole") - whole;
    assert_int_equal(sh("cotangent memory --json --model gpt --layers 4"), 0);
    assert_true(number("segments") == 2);
    assert_true(number("cut") > whole + block + 2 * between);
    assert_true(number("cut") < whole + block + 2 * between + block / 100);
}

static void what_it_does_not_know_it_says(void **state) {
    (void)state;
    fails("cotangent memory --model resnet", 2, "--model is \"resnet\"; memory knows the shapes of gpt and mnist", "");
    fails("cotangent memory --model gpt --width 10 --heads 4", 2,
          "a width of 10 is not divided by 4 heads; each has as many numbers as the others", "");
    fails("cotangent memory --model mnist --layers 3", 2,
          "--layers, --heads, --width, --context and --vocabulary are for gpt; mnist has one shape", "");
    fails("cotangent memory --model mnist --vocabulary 65", 2,
          "--layers, --heads, --width, --context and --vocabulary are for gpt; mnist has one shape", "");
    fails("cotangent memory --model gpt --limit lots", 2,
          "--limit is \"lots\"; it is a number of bytes, 1 or more, or with B, KiB, MiB, GiB or TiB behind it", "");
    fails("cotangent memory --model gpt --precision f8", 2, "--precision is \"f8\"; it is bf16, f16 or f32", "");
    fails("cotangent memory 'sum(x)' x=[1] --layers 3", 2,
          "--layers, --heads, --width, --context, --vocabulary, --batch and --precision are of --model; an expression "
          "has its own shapes",
          "");
    fails("cotangent memory --model gpt --dtype f32", 2,
          "--dtype and --wrt are of an expression; a model computes in --precision", "");
    fails("cotangent memory x x=1 --model gpt", 2, "memory takes an expression or --model, not both", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_expression_is_told_by_operation),
        cmocka_unit_test(less_than_the_most_at_once_is_told_with_its_reason),
        cmocka_unit_test(a_model_of_any_size_is_answered_at_once),
        cmocka_unit_test(a_vocabulary_is_told_and_may_be_another),
        cmocka_unit_test(what_16_bits_cost_is_told),
        cmocka_unit_test(a_parameter_that_is_used_twice_is_stored_once),
        cmocka_unit_test(a_million_layers_are_answered_at_once),
        cmocka_unit_test(what_int64_does_not_hold_is_refused),
        cmocka_unit_test(expressions_are_known_by_their_shapes),
        cmocka_unit_test(masks_count_as_selecting_everything),
        cmocka_unit_test(a_limit_is_judged_and_drawn),
        cmocka_unit_test(checkpoints_are_counted_as_a_limit_counts),
        cmocka_unit_test(what_it_does_not_know_it_says),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
