/* The rule table for people: every operation is in it, in full, and the table agrees with the
 * library. */
#include "rules/structural_ids.h"
#include "rules/elementwise_ids.h"
#include "support/tape_test.h"

#include "rules/kinks.h"
#include "support/see.h"
#include "support/support.h"
#include "trace/listing/listing.h"
#include "trace/trace.h"

static const char *shown(const char *name) {
    int i = cot__listing_find(name);
    assert_true(i >= 0);
    FILE *f = tmpfile();
    cot__listing_show(f, i, NULL);
    return text_of(f);
}

static void every_operation_is_listed_once(void **state) {
    (void)state;
    int n = cot__listing_count();
    assert_true(n >= OP_elementwise_count + OP_count - OP_structural - 1); /* fold_made */
    for (int op = 0; op < OP_count; op++) {
        if (op == OP_elementwise_count) op = OP_structural;
        bool planned = cot__op_of(op)->planned; /* no tape has it */
        TEST_CHECK((cot__listing_find(cot__op_of(op)->name) >= 0) != planned, "%s is %s", cot__op_of(op)->name,
                   planned ? "listed" : "not listed");
    }
    for (int i = 0; i < n; i++) {
        cot__listing l;
        cot__listing_get(i, &l);
        TEST_CHECK(cot__listing_find(l.name) == i, "%s is listed twice, or found elsewhere", l.name);
        TEST_CHECK(l.value[0] && l.family[0], "%s has no value or family", l.name);
        TEST_CHECK(strlen(l.value) + 1 < sizeof l.value && strlen(l.adjoints) + 1 < sizeof l.adjoints,
                   "%s: a text was cut", l.name);
        TEST_CHECK(strcmp(cot__listing_name(i), l.name) == 0, "%s goes by two names", l.name);
    }
    test_verdict();
}

static void functions_of_the_header_are_listed(void **state) {
    (void)state;
#define FAMILY(...)
#define FUNCTION(name, ...) TEST_CHECK(cot__listing_find("cot_" #name) >= 0, "%s is not listed", #name);
#include "rules/functions.def"
    test_verdict();
}

/* An operation with a rule shows what the rule gives: a formula for each operand of an elementwise
 * operation, words for the others. */
static void every_rule_is_written(void **state) {
    (void)state;
    for (int op = 0; op < OP_count; op++) {
        if (op == OP_elementwise_count) op = OP_structural;
        const cot__op *record = cot__op_of(op);
        if (op == OP_custom || op == OP_custom_numbers || record->planned) continue;
        cot__listing   l;
        cot__listing_get(cot__listing_find(record->name), &l);
        if (op < OP_structural)
            for (int k = 0; k < l.arity; k++)
                TEST_CHECK((l.partial[k][0] != 0) == !(record->inactive >> k & 1), "%s: partial %d", l.name, k);
        else
            TEST_CHECK((l.adjoints[0] != 0) == (record->vjp != NULL), "%s: its adjoints are '%s'", l.name, l.adjoints);
    }
    test_verdict();
}

static void every_convention_is_shown(void **state) {
    (void)state;
    for (int k = 0; k < KINK_count; k++) {
        cot__listing l;
        cot__listing_get(cot__kinks[k].op, &l);
        bool found = false;
        for (int i = 0; i < l.kink_count; i++) found |= l.kinks[i].convention == cot__kinks[k].convention;
        TEST_CHECK(found, "%s does not show its convention '%s'", l.name, cot__kinks[k].convention);
    }
    for (int k = 0; k < ARRAY_KINK_count; k++) {
        bool found = false;
        for (int i = 0; i < cot__listing_count(); i++) {
            cot__listing l;
            cot__listing_get(i, &l);
            for (int j = 0; j < l.kink_count; j++) found |= l.kinks[j].convention == cot__array_kinks[k].convention;
        }
        TEST_CHECK(found, "no entry shows the convention '%s'", cot__array_kinks[k].convention);
    }
    test_verdict();
}

/* Outside of its domain an operation is not finite; at the points where the rules are tested it
 * is. */
static void domains_are_true(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
#define DOMAIN(name, where, x, y)                                                                                      \
    {                                                                                                                  \
        double value =                                                                                                 \
            cot_value(test_call(OP_##name, (cot_var[]){cot_constant(t, x), cot_constant(t, y), cot_constant(t, 0)}));  \
        TEST_CHECK(!isfinite(value), "%s at %g %g is %g, but should be outside of %s", #name, (double)(x),             \
                   (double)(y), value, where);                                                                         \
    }
#include "trace/listing/domains.def"
    for (int op = 0; op < OP_elementwise_count; op++) {
        test_random r = test_random_of(cot__op_of(op)->name, 7);
        cot__listing l;
        cot__listing_get(op, &l);
        /* an infinite value at an ordinary point of an operation that claims to be defined
         * everywhere */
        for (int i = 0; i < 50 && !l.domain[0]; i++) {
            double  v[3] = {test_uniform(&r, -3, 3), test_uniform(&r, -3, 3), test_uniform(&r, -3, 3)};
            cot_var x[3];
            for (int k = 0; k < 3; k++)
                x[k] = op == OP_where && k == 0 ? cot_greater(cot_constant(t, v[0]), 0.0) : cot_constant(t, v[k]);
            TEST_CHECK(isfinite(cot_value(test_call(op, x))), "%s is not finite at %g %g %g, and has no domain", l.name,
                       v[0], v[1], v[2]);
        }
    }
    assert_ok(t);
    cot_tape_destroy(t);
    test_verdict();
}

static void entries_in_full(void **state) {
    (void)state;
    assert_string_equal(shown("log"), "log(cot_var x)   [Elementwise]\n"
                                      "  value      log(x)\n"
                                      "  adjoints   x̄ += z̄/x\n"
                                      "  domain     x > 0\n"
                                      "  where there is no derivative\n"
                                      "    x = 0: inf, the limit from the right\n");
    assert_string_equal(
        shown("cot_matmul"),
        "matmul(cot_var a, cot_var b)   [Matrices]\n"
        "  value      a @ b; leading axes are batches and broadcast; a vector on either side is a row or a column\n"
        "  there      a @ b\n"
        "  adjoints   ā += z̄ @ bᵀ, b̄ += aᵀ @ z̄\n");
    assert_string_equal(shown("where"), "where(cot_var c, cot_var x, cot_var y)   [Elementwise]\n"
                                        "  value      c ? x : y\n"
                                        "  adjoints   none of c\n"
                                        "             x̄ += [c]·z̄\n"
                                        "             ȳ += [not c]·z̄\n");
    assert_string_equal(shown("argmin"), "argmin(cot_var x, cot_axes axes)   [Reductions]\n"
                                         "  value      position (i64) of the first minimum\n"
                                         "  there      the first i with x[i] = min x\n"
                                         "  remark     no derivative\n");
    assert_string_equal(shown("flip"), "flip(cot_var x, cot_axes axes)   [Shape]\n"
                                       "  value      reversed along axes\n"
                                       "  on tape    slice\n"
                                       "  there      x[first : : step] along one axis\n"
                                       "  adjoints   x̄[first : : step] += z̄\n");
    assert_int_equal(cot__listing_find("no such thing"), -1);
    assert_int_equal(cot__listing_find(""), -1);
}

/* A function that is said to be recorded under another name is. */
static void functions_record_what_is_said(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   m     = cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){2, 1, 1, 3}),
            v       = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2});
    cot_var image   = cot_tensor(t, COT_F64, COT_SHAPE(1, 2, 4, 4, 4), NULL),
            kernel  = cot_tensor(t, COT_F64, COT_SHAPE(2, 2, 2, 2, 2), NULL);
    cot_var   index = cot_data(t, COT_I64, COT_SHAPE(2), (int64_t[]){1, 0});
#define IMAGE(n)                                                                                                       \
    cot_reshape(image, n == 1 ? COT_SHAPE(1, 2, 64) : n == 2 ? COT_SHAPE(1, 2, 8, 8) : COT_SHAPE(1, 2, 4, 4, 4))
#define KERNEL(n)                                                                                                      \
    cot_reshape(kernel, n == 1 ? COT_SHAPE(2, 2, 8) : n == 2 ? COT_SHAPE(2, 2, 2, 4) : COT_SHAPE(2, 2, 2, 2, 2))
#define SPATIAL(n)                                                                                                     \
    SAID(conv##n##d, cot_conv##n##d(IMAGE(n), KERNEL(n), COT_CONV_DEFAULT))                                            \
    SAID(conv_transpose##n##d, cot_conv_transpose##n##d(IMAGE(n), KERNEL(n), COT_CONV_DEFAULT))                        \
    SAID(max_pool##n##d, cot_max_pool##n##d(IMAGE(n), COT_POOL(.window = {2, n > 1 ? 2 : 0, n > 2 ? 2 : 0})))          \
    SAID(avg_pool##n##d, cot_avg_pool##n##d(IMAGE(n), COT_POOL(.window = {2, n > 1 ? 2 : 0, n > 2 ? 2 : 0})))
#define SAID(name, call)                                                                                               \
    {                                                                                                                  \
        cot__listing l;                                                                                                \
        cot__listing_get(cot__listing_find(#name), &l);                                                                \
        uint32_t from  = t->count;                                                                                     \
        bool     found = false;                                                                                        \
        (void)(call);                                                                                                  \
        for (uint32_t i = from; i < t->count; i++) found |= strcmp(cot__op_name(t, i), l.recorded_as) == 0;            \
        TEST_CHECK(found &&strcmp(l.recorded_as, #name) != 0, "%s does not record %s", #name, l.recorded_as);          \
        said++;                                                                                                        \
    }
    int said = 0, listed = 0;
    SAID(transpose, cot_transpose(m))
    SAID(expand_dims, cot_expand_dims(v, 0))
    SAID(squeeze, cot_squeeze(cot_reshape(v, COT_SHAPE(1, 2)), COT_ALL))
    SAID(stack, cot_stack(2, (cot_var[]){v, v}, 0))
    SAID(index, cot_index(v, 0, 1))
    SAID(flip, cot_flip(v, COT_ALL))
    SAID(embedding, cot_embedding(m, index, COT_NO_PADDING))
    SAID(dot, cot_dot(v, v))
    SAID(outer, cot_outer(v, v))
    SAID(solve, cot_solve(m, v))
    SAID(inv, cot_inv(m))
    SAID(eigvalsh, cot_eigvalsh(m))
    SAID(svdvals, cot_svdvals(m))
    SAID(group_norm, cot_group_norm(m, 1, COT_NONE, COT_NONE, 1e-5))
    SPATIAL(1)
    SPATIAL(2)
    SPATIAL(3)
    for (int i = 0; i < cot__listing_count(); i++) {
        cot__listing l;
        cot__listing_get(i, &l);
        listed += l.recorded_as[0] && strcmp(l.recorded_as, l.name) != 0;
    }
    assert_int_equal(said, listed); /* no other entry says so */
    assert_ok(t);
    cot_tape_destroy(t);
    test_verdict();
}

static void as_json(void **state) {
    (void)state;
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__listing_json(&j, cot__listing_find("abs"));
    assert_string_equal(
        text_of(f), "{\"name\":\"abs\",\"family\":\"Elementwise\",\"parameters\":\"(cot_var "
                    "x)\",\"value\":\"|x|\",\"partials\":{\"x\":\"z̄·sign(x)\"},"
                    "\"recorded_as\":null,\"recorded_value\":null,\"adjoints\":null,\"remark\":null,\"domain\":null,"
                    "\"kinks\":[{\"condition\":\"x = 0\",\"convention\":\"0, the middle of -1 and 1\"}]}");
    f = tmpfile();
    j = cot__json_to(f);
    cot__listing_json(&j, -1);
    long objects = 0;
    rewind(f);
    for (int c; (c = fgetc(f)) != EOF;) objects += c == '\n';
    assert_int_equal(objects, 0);
    rewind(f);
    char start[24] = "";
    assert_true(fread(start, 1, 20, f) == 20);
    assert_string_equal(start, "[{\"name\":\"neg\",\"fami");
    fclose(f);
}

static void the_table_fits(void **state) {
    (void)state;
    FILE *f = tmpfile();
    char  line[1024];
    int   lines = 0;
    cot__listing_table(f, 80);
    rewind(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        TEST_CHECK(cot__columns(line) <= 80, "%d columns: %s", cot__columns(line), line);
        lines++;
    }
    fclose(f);
    assert_true(lines > cot__listing_count());
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_listed_once), cmocka_unit_test(functions_of_the_header_are_listed),
        cmocka_unit_test(every_rule_is_written),          cmocka_unit_test(every_convention_is_shown),
        cmocka_unit_test(domains_are_true),               cmocka_unit_test(entries_in_full),
        cmocka_unit_test(as_json),                        cmocka_unit_test(the_table_fits),
        cmocka_unit_test(functions_record_what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
