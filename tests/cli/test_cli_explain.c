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
           "Keep the argument above 0: log(x + 1e-12) for x >= 0;\n"
           "  log(clamp(x, 1e-12, inf)) is finite too, but has no\n"
           "  gradient below the bound. Of softmax(x) write\n"
           "  log_softmax(x), of sigmoid(x) log_sigmoid(x), of\n"
           "  sum(exp(x)) logsumexp(x), of 1 + x log1p(x), which is\n"
           "  exact for small x too. Where a branch is not used, choose\n"
           "  its argument, not its result: log(where(x > 0, x, 1)).\n");
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
        {"'log1p(x)' x=-1 --dtype f32", "log1p(clamp(x, -1 + 1e-6, inf))"},
        {"'asin(x)' x=2", "clamp(x, -1 + 1e-12, 1 - 1e-12)"},
        {"'acosh(x)' x=0", "acosh(clamp(x, 1 + 1e-12, inf))"},
        {"'x + y' x=inf y=1", "where(isfinite(x), x, 0)"},
        {"'x*y' x=1e300 y=1e300", "take a smaller step"},
        {"'lgamma(x)' x=0", "not behind it"},
        {"'sum(inv(A))' A=[[1,1],[1,1]]", "A + 1e-9*eye(n)"},
        {"'relu(x)' x=-1", "leaky_relu(x, 0.01)"},
        {"'sigmoid(x)' x=1000", "bce_with_logits(x, t)"},
        {"'clamp(x, 0, 1)' x=2", "widen the bounds"},
        {"'log(clamp(x, 1e-12, inf))' x=-1", "log(softplus(x)) has a gradient where log(clamp(x, 1e-12, "},
        {"'sum(cholesky(A))' A=[[1,2],[2,1]]",
         "One with a negative eigenvalue (eigvalsh(A) lists them) has no such factor"},
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

/* Copies the expression that begins here, up to the comma, blank or point behind it; 2 for n. */
static void expression_at(const char *text, char *made, size_t size) {
    size_t n = 0;
    assert_non_null(text);
    for (int depth = 0; *text && *text != '\n' && n + 1 < size; text++) {
        bool sum = *text == ' ' && (text[1] == '+' || text[-1] == '+');
        if (depth == 0 && n > 0 && strchr(",;. ", *text) && !sum) break;
        depth += (*text == '(') - (*text == ')');
        made[n++] = *text == 'n' && text[-1] == '(' && text[1] == ')' ? '2' : *text;
    }
    made[n] = 0;
}

/* `form` with the expression in parentheses for every @. */
static void put_inside(const char *form, const char *made, char *whole, size_t size) {
    size_t n = 0;
    for (whole[0] = 0; *form && n + 1 < size; form++)
        n += (size_t)snprintf(whole + n, size - n, *form == '@' ? "(%s)" : "%.1s", *form == '@' ? made : form);
}

/* Expressions that a cure proposes, as explain prints them, in each dtype: they and their gradients
 * are finite where what they cure is not. */
static void cures_are_finite_in_every_dtype(void **state) {
    (void)state;
    static const struct {
        const char *sick, *cure, *form, *inputs;
    } cases[] = {
        {"'log(x)' x=0", "log(clamp(x, ", "@", "x=0"},
        {"'log(x)' x=0", "log(x + 1e-12)", "@", "x=0"},
        {"'sum(log(softmax(x)))' x=[-1000,1]", "log_softmax(x)", "sum(@)", "x=[-1000,1]"},
        {"'log(clamp(x, 1e-12, inf))' x=-1", "log(softplus(x))", "@", "x=-1"},
        {"'log(x)' x=0", "log(where(x > 0, x, 1))", "@", "x=0"},
        {"'log1p(x)' x=-1", "log1p(clamp(x, ", "@", "x=-1"},
        {"'sqrt(x)' x=0", "sqrt(x + ", "@", "x=0"},
        {"'sqrt(x)' x=0", "sqrt(where(x > 0, x, 1))", "@", "x=0"},
        {"'x/y' x=1 y=0", "x/(y + ", "@", "x=1 y=0"},
        {"'x/y' x=1 y=0", "x/where(y == 0, 1, y)", "@", "x=1 y=0"},
        {"'exp(x)' x=1000", "clamp(x, -50, 50)", "exp(@)", "x=1000"},
        {"'log(sum(exp(x)))' x=[1000,1]", "logsumexp(x)", "@", "x=[1000,1]"},
        {"'asin(x)' x=1", "clamp(x, -1", "asin(@)", "x=1"},
        {"'acos(x)' x=-1", "clamp(x, -1", "acos(@)", "x=-1"},
        {"'atanh(x)' x=1", "clamp(x, -1", "atanh(@)", "x=-1"},
        {"'erfinv(x)' x=1", "clamp(x, -1", "erfinv(@)", "x=1"},
        {"'acosh(x)' x=1", "acosh(clamp(x, ", "@", "x=1"},
        {"'abs(x)' x=0", "hypot(x, ", "@", "x=0"},
        {"'relu(x)' x=0", "softplus(k*x)/k", "@", "x=0 k=10"},
        {"'maximum(x, y)' x=1 y=1", "logaddexp(k*x, k*y)/k", "@", "x=1 y=1 k=10"},
        {"'where(x > 0, 1, x)' x=1", "lerp(a, b, sigmoid(k*x))", "@", "a=1 b=2 k=3 x=0"},
        {"'x + y' x=inf y=1", "where(isfinite(x), x, 0)", "sum(@)", "x=[inf,1]"},
        {"'sigmoid(x)' x=1000", "bce_with_logits(x, t)", "@", "x=[1,2] t=[0,1]"},
        {"'sum(inv(A))' A=[[1,1],[1,1]]", "A + ", "sum(inv(@))", "A=[[1,1],[1,1]]"},
        /* they differ */
        {"'sum(eigvalsh(A))' A=[[1,0],[0,1]]", "A + diag", "1/(eigvalsh(@)[1] - eigvalsh(@)[0])", "A=[[1,0],[0,1]]"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int single = 0; single < 2; single++) {
            char        made[120], whole[400];
            const char *dtype = single ? "f32" : "f64";
            assert_int_equal(sh("COLUMNS=900 cotangent explain %s --dtype %s", cases[k].sick, dtype), 0);
            expression_at(strstr(last.out, cases[k].cure), made, sizeof made);
            put_inside(cases[k].form, made, whole, sizeof whole);
            if (sh("cotangent grad '%s' %s --dtype %s", whole, cases[k].inputs, dtype)) fail_msg("%s", last.err);
            if (strstr(last.out, "inf") || strstr(last.out, "nan")) fail_msg("%s in %s: %s", whole, dtype, last.out);
        }
}

static void every_operation_has_a_cure(void **state) {
    (void)state;
    for (int i = 0; i < cot__listing_count(); i++)
        for (int what = NOT_FINITE; what <= ZERO_WINS; what++)
            assert_true(cure_of((ailment)what, cot__listing_name(i), false) &&
                        cure_of((ailment)what, cot__listing_name(i), true));
    const char *cures[CURES_MOST];
    assert_int_equal(cures_find("", "", false, cures), 0);
    assert_int_equal(cures_find("nothing known", "no brackets", true, cures), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(findings_wrap_and_offer_cures),
        cmocka_unit_test(every_kind_of_finding_has_a_cure),
        cmocka_unit_test(cures_are_finite_in_every_dtype),
        cmocka_unit_test(every_operation_has_a_cure),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
