/* cotangent explain: findings in lines that fit, and what helps against each kind of them. */
#include "support/cli_test.h"

#include "texts/cures.h"
#include "trace/listing/listing.h"

static void findings_wrap_and_offer_cures(void **state) {
    (void)state;
    prints("COLUMNS=60 cotangent explain 'log(x)' x=0",
           "value = -inf\n"
           "The result, log (f), is -inf. The first value that is not\n"
           "finite is log (f): log(x) = -inf for x = 0.\n"
           "not smooth here:\n"
           "log (f) sits on its kink x = 0; its derivative there: inf,\n"
           "  the limit from the right.\n"
           "what helps:\n"
           "Keep the argument above 0: log(clamp(x, 1e-12, inf)). Of 1 +\n"
           "  x write log1p(x), which is exact for small x too. Where a\n"
           "  branch is not used, choose its argument, not its result:\n"
           "  log(where(x > 0, x, 1)).\n");
    prints_json("cotangent explain 'y*x' x=1 y=0 --json");
    assert_non_null(strstr(last.out, ",\"kinks\":0,\"report\":\"\",\"cures\":[\"The other factor is 0 here"));
    prints_json("cotangent explain 'x*x' x=1 --json");
    assert_non_null(strstr(last.out, "\"cures\":[]"));
}

/* One finding of each kind, and words of the cure. */
static void every_kind_of_finding_has_a_cure(void **state) {
    (void)state;
    static const struct {
        const char *line, *cure;
    } cases[] = {
        {"'log1p(x)' x=-1", "log1p(clamp(x, -1 + 1e-12, inf))"},
        {"'sqrt(x)' x=0", "hypot(x, y)"},
        {"'x**0.5' x=-1", "real only for whole exponents"},
        {"'1/x' x=0", "x/where(y == 0, 1, y)"},
        {"'log(sum(exp(x)))' x=[1000,1]", "logsumexp(x)"},
        {"'exp(x) - 1' x=1000", "expm1(x)"},
        {"'asin(x)' x=2", "clamp(x, -1 + 1e-12, 1 - 1e-12)"},
        {"'acosh(x)' x=0", "acosh(clamp(x, 1 + 1e-12, inf))"},
        {"'x + y' x=inf y=1", "where(isfinite(x), x, 0)"},
        {"'x*y' x=1e300 y=1e300", "take a smaller step"},
        {"'lgamma(x)' x=0", "not behind it"},
        {"'sum(inv(A))' A=[[1,1],[1,1]]", "A + 1e-9*eye(n)"},
        {"'relu(x)' x=-1", "leaky_relu(x, 0.01)"},
        {"'sigmoid(x)' x=1000", "bce_with_logits(x, t)"},
        {"'clamp(x, 0, 1)' x=2", "widen the bounds"},
        {"'where(x > 0, 1, x)' x=1", "lerp(a, b, sigmoid(k*x))"},
        {"'floor(x)' x=1.5", "tanh(k*x) for sign(x)"},
        {"'detach(x)*2' x=1", "leave it out where the gradient is wanted"},
        {"'x - x' x=1", ""},
        {"'abs(x)' x=0", "hypot(x, 1e-6) for abs(x)"},
        {"'x + sign(x)' x=0", "The value leaps here"},
        {"'sum(eigvalsh(A))' A=[[1,0],[0,1]]", "make them differ"},
        {"'where(x > 0, log(x), x)' x=0", "choose the argument, not the result: log(where(x > 0, x, 1))"},
        {"'where(x > 0, x, exp(1000*x))' x=2", "overflows beyond 709"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(sh("COLUMNS=900 cotangent explain %s", cases[k].line), 0);
        if (!strstr(last.out, cases[k].cure)) fail_msg("%s: %s", cases[k].line, last.out);
        assert_true((strstr(last.out, "what helps:\n") != NULL) == (cases[k].cure[0] != 0));
    }
}

/* An expression that a cure proposes can be computed. */
static void cures_are_expressions(void **state) {
    (void)state;
    static const char *const lines[] = {
        "'log(clamp(x, 1e-12, inf))' x=0", "'log(where(x > 0, x, 1))' x=0", "'sqrt(where(x > 0, x, 1))' x=0",
        "'x/where(y == 0, 1, y)' x=1 y=0", "'logsumexp(x)' x=[1000,1]", "'softplus(k*x)/k' x=0 k=10",
        "'logaddexp(k*x, k*y)/k' x=1 y=1 k=10", "'lerp(a, b, sigmoid(k*x))' a=1 b=2 k=3 x=0",
        "'sum(where(isfinite(x), x, 0))' x=[inf,1]", "'hypot(x, 1e-6)' x=0",
        "'sum(inv(A + 1e-9*eye(2)))' A=[[1,1],[1,1]]", "'sum(A + diag(1e-9*arange(2)))' A=[[1,0],[0,1]]",
        "'bce_with_logits(x, t)' x=[1,2] t=[0,1]",
    };
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        assert_int_equal(sh("cotangent eval %s", lines[k]), 0);
        assert_null(strstr(last.out, "inf"));
        assert_null(strstr(last.out, "nan"));
    }
}

static void every_operation_has_a_cure(void **state) {
    (void)state;
    for (int i = 0; i < cot__listing_count(); i++)
        for (int what = NOT_FINITE; what <= ZERO_WINS; what++)
            assert_non_null(cure_of((ailment)what, cot__listing_name(i)));
    const char *cures[CURES_MOST];
    assert_int_equal(cures_find("", "", cures), 0);
    assert_int_equal(cures_find("nothing known", "no brackets", cures), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_wrap_and_offer_cures),
        cmocka_unit_test(every_kind_of_finding_has_a_cure),
        cmocka_unit_test(cures_are_expressions),
        cmocka_unit_test(every_operation_has_a_cure),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
