/* cotangent compile: a main that it prints gives what the command itself gives; files, names,
 * errors. */
/* ctest: timeout=300 plain-only */
#define _GNU_SOURCE
#include "support/cli_test.h"

#define STRICT "-std=c99 -Wall -Wextra -Werror -pedantic -Wconversion"

/* The derivative's command, its option of compile, and the arguments of both. */
static const char *const same[][3] = {
    {"eval", "", "'x*y + sin(x)' x=pi/4 y=3"},
    {"eval", "", "'x > y' x=[1,2] y=1.5"},
    {"eval", "", "'x' x=[1,nan,-0.0,inf,1e-310]"},
    {"eval", "", "'sin(1e22*x) + cbrt(x)' x=[1,2] --dtype f32"},
    {"eval", "", "'cast(x, bf16)' x=[1,-2.7,1e39,-0.0,nan,-1e39,1e-40,3.14159]"},
    {"eval", "", "'cast(x, f16)*2' x=[1,-2.7,1e39,-0.0,nan,-1e39,1e-7,6e-8,3.14159]"},
    {"grad", "--grad", "'l1*cos(q1) + l2*cos(q1 + q2)' q1=0.5 q2=0.25 l1=1 l2=0.7 --wrt q1,q2"},
    {"grad", "--grad", "'sum((W @ x - t)**2)' W=[[1,2],[3,4]] x=[5,6] t=[1,1]"},
    {"grad", "--grad", "'mean(sigmoid(W @ x)**2)' 'W=uniform(1, [12, 78], 0.5)' 'x=uniform(2, [78], 1)'"},
    {"grad", "--grad", "'mean(gelu(W @ x)**2)' 'W=uniform(1, [12, 78], 0.5)' 'x=uniform(2, [78], 1)' --dtype f32"},
    {"grad", "--grad", "'double*if_ + workspace**2' double=2 if_=3 workspace=4"},
    {"grad", "--grad", "'sum(x)*DBL_MAX' x=[] DBL_MAX=2"},
    {"vjp", "--vjp", "'W @ x' W=[[1,2],[3,4]] x=[5,6] --seed [1,-1]"},
    {"jvp", "--jvp", "'tanh(W @ x)' W=[[1,2],[3,4]] x=[5,6] --tangent x=[1,0] --tangent W=[[0,1],[0,0]]"},
    {"hvp", "--hvp", "'sum(x**3)*y' x=[1,2,3] y=2 --tangent x=[1,0,0]"},
    {"hvp", "--hvp", "'sum(exp(x)*y)' x=[1,2,3] y=2 --tangent y=1 --wrt x"},
    {"jac", "--jac", "'tanh(W @ x)' W=[[1,2],[3,4]] x=[0.5,0.6]"},
    {"jac", "--jac", "'x[1:]**2 - x[:-1]' x=[1,2,3,4]"},
    {"jac", "--jac", "'x*[1,2,3,4]' x=2"},
    {"hess", "--hess", "'100*(y - x**2)**2 + (1 - x)**2' x=1 y=1"},
    {"hess", "--hess", "'sum(exp(x)*sin(y))' x=[1,2,3] y=0.5"},
    {"jac --sparse", "--jac --sparse", "'x[1:]**2*y - x[:-1]' x=[1,2,3,4] y=0.3"},
    {"jac --sparse", "--jac --sparse", "'jac_x*x' x=[3,4] jac_x=2 --dtype f32"},
    {"hess --sparse", "--hess --sparse", "'sum((x[1:] - x[:-1]**2)**2)*y' x=[1,2.5,3,4] y=2"},
    {"hess --sparse", "--hess --sparse", "'sum(x)' x=[1,2]"},
};

static void its_main_prints_what_the_command_prints(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        char *want;
        sh("cotangent %s --json %s", same[k][0], same[k][2]);
        assert_int_equal(last.status, 0);
        want = strdup(last.out);
        sh("cotangent compile %s --main %s -o made.c && gcc " STRICT " made.c -o made -lm && ./made", same[k][1],
           same[k][2]);
        if (last.status) print_error("%s: %s", same[k][2], last.err);
        assert_int_equal(last.status, 0);
        assert_string_equal(last.out, want);
        free(want);
    }
}

/* Names of inputs, and of the function, that a file must not have: its own, those of its main, and
 * those of the standard headers. */
static const char *const taken[] = {
    "space",  "failed", "in_0",     "out_0",   "cot_y",   "cot_print", "cot_in_0", "t_12",     "v_3",     "EOF",
    "FILE",   "BUFSIZ", "stdin",    "stdout",  "stderr",  "signbit",   "NULL",     "INFINITY", "NAN",     "isnan",
    "main",   "errno",  "printf",   "fprintf", "strtod",  "snprintf",  "strcpy",   "uint16_t", "complex", "SIGINT",
    "EDOM",   "EIO",    "PRId64",   "div",     "time",    "abs",       "index",    "signgam",  "uint",    "isgreater",
    "double", "xor",    "noexcept", "i386",    "float_t", "workspace", "static_assert", "offsetof", "I", "RAND_MAX"};

static void names_that_c_has_are_replaced(void **state) {
    (void)state;
    char *want = NULL;
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++) {
        const char *n = taken[k];
        sh("cotangent grad --json '%s*y + sin(y)' %s=2 y=3", n, n);
        assert_int_equal(last.status, 0);
        free(want);
        want = strdup(last.out);
        sh("cotangent compile --grad --main '%s*y + sin(y)' %s=2 y=3 -o %s.c && gcc " STRICT
           " %s.c -o made -lm && gcc -std=gnu17 -Wall -Werror -fsyntax-only %s.c && ./made", n, n, n, n, n);
        if (last.status) print_error("%s: %s%s", n, last.out, last.err);
        assert_int_equal(last.status, 0);
        assert_string_equal(last.out, want);
        sh("n=%s; printf '#include <%%s.h>\\n' assert complex ctype errno fenv float inttypes iso646 limits "
           "locale math setjmp signal stdarg stdbool stddef stdint stdio stdlib string time wchar wctype > user.c; "
           "echo '#include \"'$n'.h\"' >> user.c; for std in c99 gnu17; do gcc -std=$std -Wall -Werror -fsyntax-only "
           "user.c || exit; done; g++ -x c++ -Wall -Werror -fsyntax-only user.c", n);
        if (last.status) print_error("%s: %s%s", n, last.out, last.err);
        assert_int_equal(last.status, 0);
    }
    free(want);
}

/* What was replaced is not replaced again. */
static void names_are_replaced_once(void **state) {
    (void)state;
    sh("cotangent compile 'cot_y*x' cot_y=1 x=2 -o cot_y.c && cat cot_y.h");
    assert_non_null(strstr(last.out, "int cot_y_x(double cot_y_x_2_x, double x, double *value, void *workspace);"));
    sh("cotangent compile 't_12*x' t_12=1 x=2 -o t_12.c && cat t_12.h");
    assert_non_null(strstr(last.out, "int t_12_x(double t_12_x_2_x, double x, double *value, void *workspace);"));
}

/* Contraction, with the instruction at hand and in gcc's own mode, changes nothing. */
static void the_bits_do_not_depend_on_options_of_the_compiler(void **state) {
    (void)state;
    static const char *const compilers[] = {"gcc -O3 -std=gnu11 -march=haswell", "gcc -O2 -ffp-contract=fast -mfma",
                                            "clang -O3 -march=haswell", "gcc -O0"};
    const char              *arguments   = "'sum(sin(x*y + 0.1)*exp(x)) + x[0]*y*3 - 1' 'x=uniform(3, [40], 2)' y=1.7";
    sh("grep -q fma /proc/cpuinfo && command -v clang");
    if (last.status) skip();
    sh("cotangent grad --json %s", arguments);
    char *want = strdup(last.out);
    for (int k = 0; k < 4; k++) {
        sh("cotangent compile --grad --main %s -o made.c && %s made.c -o made -lm && ./made", arguments, compilers[k]);
        assert_int_equal(last.status, 0);
        assert_string_equal(last.out, want);
    }
    free(want);
}

/* Both are within 2 units of the last place, so they are within 4 of each other. */
static void functions_of_libm_are_as_near_as_both_promise(void **state) {
    (void)state;
    static const char *const functions[] = {"exp", "log", "sin", "cos", "tanh", "cbrt", "erf", "expm1", "atan"};
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        double ours[3], theirs[3];
        sh("cotangent eval --json '%s(x)' x=[0.3,1.7,2.9]", functions[k]);
        assert_int_equal(sscanf(last.out, "{\"value\":[%lf,%lf,%lf]}", &ours[0], &ours[1], &ours[2]), 3);
        sh("cotangent compile --libm --main '%s(x)' x=[0.3,1.7,2.9] -o made.c && gcc -c " STRICT
           " made.c && nm -u made.o | grep -qw %s && gcc made.o -o made -lm && ./made",
           functions[k], functions[k]);
        assert_int_equal(last.status, 0);
        assert_int_equal(sscanf(last.out, "{\"value\":[%lf,%lf,%lf]}", &theirs[0], &theirs[1], &theirs[2]), 3);
        for (int i = 0; i < 3; i++) assert_true(fabs(ours[i] - theirs[i]) <= 4 * 0x1p-52 * fabs(theirs[i]));
    }
}

static void a_compiler_that_breaks_ieee_is_refused(void **state) {
    (void)state;
    static const char *const options[] = {"-ffast-math", "-ffinite-math-only", "-funsafe-math-optimizations",
                                          "-m32 -mfpmath=387 -mno-sse"};
    sh("cotangent compile 'x*y' x=1 y=2 -o made.c");
    for (int k = 0; k < 4; k++) {
        sh("gcc -ffreestanding %s -E made.c > preprocessed", options[k]);
        assert_int_not_equal(last.status, 0);
        if (k < 3) assert_non_null(strstr(last.err, "this file keeps to IEEE 754"));
    }
}

static void without_a_file_it_goes_to_the_output(void **state) {
    (void)state;
    sh("cotangent compile 'x*y' x=1 y=2 > printed.c && gcc " STRICT " -c printed.c");
    /* what compilers warn of depends on how hard they look */
    for (int o = 1; o <= 3; o++)
        sh("cotangent compile --main 'sum(x) + max(cast(x, bf16)*1.5)' x=[1,2,3] -o made.c && gcc " STRICT
           " -O%d made.c -o made -lm && cotangent compile --main 'cast(x, bf16)' x=[1,2] -o made.c && gcc " STRICT
           " -O%d made.c -o made -lm", o, o);
    assert_int_equal(last.status, 0);
    sh("cotangent compile 'x*y' x=1 y=2 -o - | cmp - printed.c");
    assert_int_equal(last.status, 0);
    sh("cotangent compile --json 'x*y' x=1 y=2");
    assert_ptr_equal(strstr(last.out, "{\"name\":\"f\",\"source\":\"/* f: x*y"), last.out);
    sh("cotangent compile 'x*y /* ?' x=1 y=2");
    assert_int_not_equal(last.status, 0);
}

/* A C++ program can include the header; nothing is taken, and nothing is global but the
 * function. */
static void the_object_has_one_symbol_and_no_data(void **state) {
    (void)state;
    sh("cotangent compile 'sum(exp(W @ x))' W=[[1,2],[3,4]] x=[5,6] --hess -o net.c && gcc -c net.c && "
       "nm net.o | grep -v ' [tUrR] ' | sed 's/^[0-9a-f]* *//'");
    assert_string_equal(last.out, "T net\n");
    sh("nm -u net.o | grep -E 'malloc|calloc|free|printf|memcpy'");
    assert_string_equal(last.out, "");
    sh("printf '#include \"net.h\"\\nint main() { return NET_WORKSPACE %%%% 8; }\\n' > user.cpp && g++ user.cpp -o "
       "user "
       "&& ./user");
    assert_int_equal(last.status, 0);
}

static void mistakes_are_sentences(void **state) {
    (void)state;
    fails("cotangent compile 'svdvals(A)' A=[[1,2],[3,5]]", 3,
          "[compile] svd cannot be exported yet; docs/export.md lists the operations that can", "");
    fails("cotangent compile 'x*y' x=1 y=2 -o f.txt", 2, "-o writes C, so its FILE ends in .c; 'f.txt' does not", "");
    fails("cotangent compile 'x*y' x=1 y=2 -o .c", 2, "-o names the function by its FILE; '.c' has no name before .c",
          "");
    fails("cotangent compile 'x*y' x=1 y=2 -o ./.c", 2,
          "-o names the function by its FILE; './.c' has no name before .c", "");
    fails("cotangent compile 'x*y' x=1 y=2 --grad --jac", 2, "--grad and --jac are given; one derivative at a time",
          "");
    static const char known[] = " depends on the inputs, and a function is compiled for all values that they may have; "
                                "write ";
    static const char *const conditions[][4] = {
        {"x if x>0 else 2*x", "the condition of 'if'", "where(condition, a, b)", "     ^~~"},
        {"1 if not x else 2*x", "'not'", "logical_not(x)", "     ^~~"},
        {"x and 2*x", "'and'", "logical_and(x, y)", "  ^~~"},
        {"2*x or x", "'or'", "logical_or(x, y)", "    ^~"}};
    for (int k = 0; k < 4; k++) {
        char line[200], said[300], caret[100];
        snprintf(line, sizeof line, "cotangent compile '%s' x=1", conditions[k][0]);
        snprintf(said, sizeof said, "%s%s%s", conditions[k][1], known, conditions[k][2]);
        snprintf(caret, sizeof caret, "%s\n%s\n", conditions[k][0], conditions[k][3]);
        fails(line, 2, said, caret);
    }
    runs("cotangent compile 'where(x > 0, x, 2*x) if 1 else x' x=1");
    fails("cotangent compile 'x[i]' x=[1,2] 'i=cast(1,i64)'", 2,
          "an index must be an integer, a slice, an array of integers or bools, None or ..., not a value of i64 that "
          "is not known while a function is compiled; take(x, i, axis=0) takes one", "x[i]\n ^~~\n");
    fails("cotangent compile 'sum(x, axis=i)' x=[1,2] 'i=cast(0,i64)'", 2,
          "[sum] axis must be an integer, a list of integers or None, not a value of i64 that is not known while a "
          "function is compiled", "sum(x, axis=i)\n            ^\n");
    static const char *const drawn[] = {"uniform", "sum(uniform(1, [2])*x)", "dropout", "sum(dropout(x, 0.5, 3))"};
    for (int k = 0; k < 4; k += 2) {
        char line[200], said[300], caret[100];
        snprintf(line, sizeof line, "cotangent compile '%s' x=[1,2]", drawn[k + 1]);
        snprintf(said, sizeof said, "[%s] draws from a plain key in a function that is compiled, which would give the "
                 "same numbers in every run; make the random numbers an input, such as 'r=uniform(1, [3])'", drawn[k]);
        snprintf(caret, sizeof caret, "%s\n    ^~~~~~~\n", drawn[k + 1]);
        fails(line, 3, said, caret);
    }
    fails("cotangent compile '1 + 2'", 2, "compile makes a function, but the expression has no names", "");
    fails("cotangent compile 'x*2' x=[1,2] --grad", 2,
          "[compile] the value has shape (2,), not one element; --vjp takes a seed, --jac gives all derivatives", "");
    fails("cotangent compile 'x*2' x=[1,2] --hess", 2,
          "[compile] the value has shape (2,), not one element; only a value of one element has a Hessian", "");
    fails("cotangent compile 'x*2' x=[1,2] --jvp", 2,
          "--jvp needs a direction: at least one --along name=V; inputs without one do not move", "");
    fails("cotangent compile 'x*2' x=[1,2] --sparse", 2, "--sparse goes with --jac and --hess", "");
    fails("cotangent compile 'x*2' x=[1,2] -o 'a\"b.c'", 3,
          "[compile] byte 1 of the header's name is no part of one in C; take letters, digits, and . _ - /", "");
    fails("cotangent compile 'x*2' x=[1,2] --seed [1,2]", 2, "--seed goes with --vjp", "");
    fails("cotangent compile 'x*2' x=[1,2] --along x=[1,2]", 2, "--along goes with --jvp and --hvp", "");
    fails("cotangent compile 'x*2' x=[1,2] --tangent x=[1,2]", 2, "--tangent goes with --jvp and --hvp", "");
}

/* The program, instead of C or beside it. */
static void the_program_is_shown_instead(void **state) {
    (void)state;
    const char *arguments = "'sum(exp(x)*x)' x=[1,2,3]";
    sh("cotangent compile %s --print", arguments);
    assert_string_equal(last.err, "");
    assert_string_equal(last.out, "%0 = input 0 f64(3,)\n%1 = exp(%0) f64(3,)\n%2 = mul(%1, %0) f64(3,)\n"
                                  "%3 = sum(%2) [1 0] f64\ngives %3\n");
    sh("cotangent compile %s --report", arguments);
    assert_non_null(strstr(last.out, "1 input, 1 output, 3 operations"));
    assert_non_null(strstr(last.out, "%2 = exp(%0) * %0"));
    sh("cotangent compile %s --dot -", arguments);
    assert_non_null(strstr(last.out, "digraph program {"));
    sh("cotangent compile %s --print --dot made.dot -o made.c && cat made.dot made.c", arguments);
    assert_non_null(strstr(last.out, "gives %3\ndigraph program {"));
    assert_non_null(strstr(last.out, "int made("));
    sh("cotangent compile %s --print --json", arguments);
    assert_string_equal(last.err, "");
    assert_non_null(strstr(last.out, "{\"values\":[{\"input\":\"x\",\"dtype\":\"f64\",\"shape\":[3]},"
                                     "{\"op\":\"exp\",\"args\":[0],\"how\":\"group\",\"group\":1,"));
    assert_non_null(strstr(last.out, "\"outputs\":[{\"name\":"));
    assert_non_null(strstr(last.out, "\"text\":\"%0 = input 0 f64(3,)\\n"));
    assert_null(strstr(last.out, "\"facts\""));
    sh("cotangent compile %s --report --json", arguments);
    assert_non_null(strstr(last.out, "{\"facts\":{\"operations\":3,\"views\":0,\"scalars\":0,"
                                     "\"fused\":2,\"groups\":1,"));
    assert_non_null(strstr(last.out, "\"report\":\"1 input, 1 output, 3 operations"));
    sh("cotangent compile %s --report --json -o made.c", arguments);
    assert_int_equal(last.status, 2);
    assert_non_null(strstr(last.out, "--json prints one object"));
    sh("cotangent compile %s --dot - --json", arguments);
    assert_int_equal(last.status, 2);
    assert_non_null(strstr(last.out, "--json goes with the C, --print and --report, not with --dot"));
    sh("cotangent compile %s --report --dot -", arguments);
    assert_int_equal(last.status, 2);
    assert_non_null(strstr(last.err, "only one of --dot -, --print and --report can go to the standard output"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_main_prints_what_the_command_prints),
        cmocka_unit_test(names_that_c_has_are_replaced),
        cmocka_unit_test(names_are_replaced_once),
        cmocka_unit_test(the_bits_do_not_depend_on_options_of_the_compiler),
        cmocka_unit_test(functions_of_libm_are_as_near_as_both_promise),
        cmocka_unit_test(a_compiler_that_breaks_ieee_is_refused),
        cmocka_unit_test(without_a_file_it_goes_to_the_output),
        cmocka_unit_test(the_object_has_one_symbol_and_no_data),
        cmocka_unit_test(mistakes_are_sentences),
        cmocka_unit_test(the_program_is_shown_instead),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
