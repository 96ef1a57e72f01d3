/* Bad command lines: one clear message, the right status, nothing else printed, no file
 * overwritten. */
#include "support/cli_test.h"

static void expressions_that_are_none(void **state) {
    (void)state;
    fails("cotangent eval ''", 2, "expected an expression; the text is empty", "");
    fails("cotangent eval '  '", 2, "expected an expression; the text is empty", "");
    fails("cotangent eval", 2, "eval needs an expression: cotangent eval EXPR name=value… [options]", "");
    fails("cotangent eval -f /dev/null", 2, "expected an expression; the text is empty", "");
    assert_int_equal(sh("cotangent eval 'x*(' x=1"), 2);
    assert_non_null(strstr(last.err, "\nx*(\n   ^\n"));
    assert_int_equal(sh("cotangent eval '(x*2]' x=1"), 2);
    assert_non_null(strstr(last.err, "\n(x*2]\n    ^\n"));
    assert_int_equal(sh("cotangent eval --json '(x*2]' x=1"), 2);
    assert_non_null(strstr(last.out, "{\"error\":{\"code\":\"expression\",\"message\":"));
    assert_non_null(strstr(last.out, ",\"column\":5}}\n"));
    assert_int_equal(sh("printf 'a = 1\\na + )' > two.txt; cotangent eval --json -f two.txt"), 2);
    assert_non_null(strstr(last.out, ",\"column\":5,\"line\":2}}\n"));
    assert_int_equal(sh("cotangent eval '2^3'"), 2);
    assert_non_null(strstr(last.err, "**"));
    assert_int_equal(sh("cotangent eval 'matmull(x, x)' x=[1]"), 2);
    assert_non_null(strstr(last.err, "did you mean 'matmul'?"));
    fails("cotangent eval -f nowhere.txt", 3, "cannot read nowhere.txt: No such file or directory", "");
    fails("cotangent eval -f ''", 2, "the FILE of --file has an empty name", "");
    fails("cotangent trace x x=1 --html ''", 2, "the FILE of --html has an empty name", "");
    fails("cotangent trace x x=1 --dot=", 2, "the FILE of --dot has an empty name", "");
    fails("cotangent train gcn --resume ''", 2, "the DIR of --resume has an empty name", "");
    fails("cotangent memory --model mnist --limit ''", 2, "--limit needs a value: --limit BYTES", "");
    fails("cotangent train gcn --memory=", 2, "--memory needs a value: --memory BYTES|N%", "");
    fails("cotangent fit 'a*x' '' a=1", 3, "cannot read a file with an empty name: No such file or directory", "");
    fails("cotangent eval -f .", 3, "cannot read .: it is a directory", "");
}

static void ten_megabytes_of_brackets(void **state) {
    (void)state;
    assert_int_equal(sh("head -c 10000000 /dev/zero | tr '\\0' '(' > brackets"), 0);
    fails("cotangent eval -f brackets", 2, "the expression in brackets is longer than 1048576 bytes", "");
    fails("cat brackets | cotangent eval -f -", 2, "the expression in the standard input is longer than 1048576 bytes",
          "");
    assert_int_equal(sh("head -c 1000000 brackets > fewer; cotangent eval -f fewer"), 2);
    assert_non_null(strstr(last.err, "nested more than 200 deep"));
    assert_int_equal(sh("head -c 1048577 /dev/zero | tr '\\0' ' ' > blanks; cotangent eval -f blanks"), 2);
    assert_int_equal(sh("head -c 100000 /dev/urandom > noise; cotangent eval --json -f noise"), 2);
    assert_non_null(json_value(last.out));
}

static void what_is_said_before_a_command(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent --json grad x x=1"), 2);
    assert_string_equal(
        last.out,
        "{\"error\":{\"code\":\"usage\",\"message\":\"options stand behind the command: cotangent grad --json …\"}}\n");
    fails("cotangent --dtype f32 grad x x=1", 2, "options stand behind the command: cotangent grad --dtype …", "");
    fails("cotangent -x", 2, "options stand behind the command: cotangent COMMAND -x …", "");
    fails("COTANGENT_THREADS=abc cotangent eval 1", 2, "COTANGENT_THREADS is a whole number from 1 to 256, not 'abc'",
          "");
    fails("COTANGENT_THREADS=0 cotangent grad x x=1", 2, "COTANGENT_THREADS is a whole number from 1 to 256, not '0'",
          "");
    assert_int_equal(sh("COTANGENT_THREADS=abc cotangent eval 1 --threads 1 && COTANGENT_THREADS= cotangent eval 1 && "
                        "COTANGENT_THREADS=2 cotangent eval 1"),
                     0);
    assert_int_equal(sh("COTANGENT_THREADS=abc cotangent ops sin && COTANGENT_THREADS=abc cotangent eval --help"), 0);
}

static void names_that_do_not_fit(void **state) {
    (void)state;
    fails("cotangent eval x x=1 x=2", 2, "x is given twice", "");
    fails("cotangent eval 'sin[x]' x=1", 2, "sin is a function, called with (): sin(x); as a value it needs sin=…", "");
    fails("cotangent grad 'sum(x**2)' 'x=arange(5)'", 2,
          "grad has nothing to differentiate by: x is i64, and only floats have derivatives; cast(…, f64) makes them",
          "");
    fails("cotangent eval 'x*y' x=1", 2, "the expression needs a value for y; give y=…", "");
    fails("cotangent eval 'x*y + z' y=1", 2, "the expression needs values for x and z; give x=…", "");
    fails("cotangent eval 'Pi*x' x=1", 2, "the expression needs a value for Pi; did you mean pi?", "");
    fails("cotangent eval weight weigth=1", 2, "the expression has no name weigth; did you mean weight?", "");
    fails("cotangent eval 'x + y' x=1 y=2 banana=3", 2, "the expression has no name banana; it has x and y", "");
    fails("cotangent eval 1+2 x=1", 2, "the expression has no name x: it needs no values", "");
    fails("cotangent eval x=1 'x*x'", 2,
          "'x*x' is not name=value; the expression is the first argument, one argument in all (quote it)", "");
    fails("cotangent eval x + y x=1", 2,
          "'+' is not name=value; the expression is the first argument, one argument in all (quote it)", "");
    fails("echo x > f; cotangent eval -f f 'x*x'", 2,
          "'x*x' is not name=value; with -f the expression comes from the file", "");
    fails("cotangent eval x 2x=1", 2,
          "'2x=1' is not name=value; the expression is the first argument, one argument in all (quote it)", "");
}

static void values_that_are_none(void **state) {
    (void)state;
    fails("cotangent eval x x=", 2, "x: there is no value", "");
    assert_int_equal(sh("cotangent eval x 'x=1;2'"), 2);
    assert_non_null(strstr(last.err, "x: this value is not used"));
    assert_int_equal(sh(": > there.npy; : > there"), 0);
    fails("cotangent eval x x=away.npy", 2,
          "x: away.npy is the name of a file (and there is none); files are given with an @: @away.npy", "");
    fails("cotangent eval x x=./there.npy", 2,
          "x: ./there.npy is the name of a file; files are given with an @: @./there.npy", "");
    fails("cotangent eval x x=there", 2,
          "x: there is the name of a file, and values are read from .npy, .npz and .safetensors files: @FILE.npy", "");
    fails("cotangent eval x x=w.safetensors:a", 2,
          "x: w.safetensors:a is the name of a file; files are given with an @: @w.safetensors:a", "");
    fails("cotangent eval x x=my-data.csv", 2,
          "x: my-data.csv is the name of a file, and values are read from .npy, .npz and .safetensors files: @FILE.npy",
          "");
    fails("cotangent eval x x=@w.npz", 3, "x: cannot read w.npz: No such file or directory", "");
    fails("cotangent taylor 'exp(x)' x=0 --along x=v.npy", 2,
          "--along x: v.npy is the name of a file (and there is none); files are given with an @: @v.npy", "");
    fails("cotangent eval x x=y", 2, "x: a value is made of numbers, and y is a name", "");
    fails("cotangent eval x 'x=[1,[2,3]]'", 2,
          "x: the rows of the list differ in length or depth; an array needs equal ones", "[1,[2,3]]\n^~~~~~~~~\n");
    const char rule[] =
        "x: uniform is written uniform(seed, [extents], scale), with a whole seed from 0 to 4294967295: uniform(1, "
        "[128, 784], 0.5)";
    fails("cotangent eval x 'x=uniform(1)'", 2, rule, "");
    fails("cotangent eval x 'x=uniform(-1,[2],1)'", 2, rule, "");
    fails("cotangent eval x 'x=uniform(4294967296,[2],1)'", 2, rule, "");
    fails("cotangent eval x 'x=uniform(1,[2],)'", 2, rule, "");
    fails("cotangent eval x 'x=uniform(1,[2,],[1,2])'", 2, "x: the scale of uniform is one number", "");
    fails("cotangent eval x 'x=uniform(1,[1000000,1000000,1000000],1)'", 3,
          "x: an array of this shape has too many elements", "");
    fails("cotangent eval 'x @ y' x=[1,2] y=[1,2,3]", 3,
          "[matmul] inner dimensions differ: (2,) @ (3,); the last axis of a must equal the only one of b",
          "x @ y\n  ^\n");
    assert_int_equal(sh("cotangent eval --json 'x @ y' x=[1,2] y=[1,2,3]"), 3);
    assert_non_null(strstr(last.out, "{\"error\":{\"code\":\"shape\",\"message\":\"[matmul] "));
    assert_non_null(strstr(last.out, ",\"column\":3}}\n"));
}

static void derivatives_that_do_not_exist(void **state) {
    (void)state;
    fails("cotangent grad 'x**2' x=[1,2]", 2,
          "[grad] the value has shape (2,), not one element; give --seed V of that shape, or use jac", "");
    fails("cotangent grad 'x**2' x=[1,2] --seed [1,2,3]", 2,
          "--seed has shape (3,), and the value has (2,); give one of that shape, or one number", "");
    fails("cotangent vjp 'x**2' x=[1,2] --seed 'cast(1, i64)'", 2, "--seed is i64; it must be a float", "");
    fails("cotangent grad 'x > 1' x=2", 3, "[grad] the value is bool; only floats have derivatives", "");
    fails("cotangent grad '1.5 + 2'", 2, "grad has nothing to differentiate by: the expression has no float input", "");
    fails("cotangent grad 'x*y' x=1 y=2 --wrt z", 2, "--wrt: there is no input z", "");
    fails("cotangent grad 'x*y' x=1 y=2 --wrt x,,y", 2, "--wrt is a list of inputs, a,b, not 'x,,y'", "");
    fails("cotangent grad 'x*y' x=1 y=2 --wrt ''", 2, "--wrt is a list of inputs, a,b, not ''", "");
    fails("cotangent grad 'x*y' x=1 y=2 --wrt x,x", 2, "--wrt names x twice", "");
    fails("cotangent grad 'x*i' x=1 'i=cast(2, i64)' --wrt i", 2, "--wrt: i is i64, and only floats have derivatives",
          "");
    fails("cotangent jvp x x=1", 2,
          "jvp needs a direction: at least one --along name=V; inputs without one do not move", "");
    fails("cotangent hvp x x=1", 2,
          "hvp needs a direction: at least one --along name=V; inputs without one do not move", "");
    fails("cotangent jvp x x=1 --tangent x=[1,2]", 2,
          "--tangent x is f64 of shape (2,); it must be a float of x's shape ()", "");
    fails("cotangent jvp x x=1 --tangent x=1 --tangent x=2", 2, "--tangent x is given twice", "");
    fails("cotangent jvp x x=1 --tangent y=1", 2, "--tangent: there is no input y", "");
    fails("cotangent jvp x x=1 --tangent 1", 2, "--tangent is name=V, not '1'", "");
    fails("cotangent hess 'x**2' x=[1,2]", 2,
          "[hess] the value has shape (2,); only a value of one element has a Hessian", "");
    fails("cotangent taylor 'x*y' x=1 y=1", 2,
          "taylor needs a direction: at least one --along name=V; inputs without one do not move", "");
    fails("cotangent taylor x x=1 --along x=[1,2]", 2,
          "--along x is f64 of shape (2,); it must be a float of x's shape ()", "");
    fails("cotangent taylor x x=1 --along x=1 --along x=2", 2, "--along x is given twice", "");
    fails("cotangent taylor x x=1 --along y=1", 2, "--along: there is no input y", "");
    fails("cotangent taylor x x=1 --along 1", 2, "--along is name=V, not '1'", "");
    fails("cotangent taylor x x=1 --order 61", 2, "--order is a whole number from 0 to 60, not '61'", "");
    fails("cotangent taylor x x=1 --order=-1", 2, "--order is a whole number from 0 to 60, not '-1'", "");
    fails("cotangent jvp x x=1 --along 1", 2, "--along is name=V, not '1'", "");
    fails("cotangent taylor x x=1 --tangent 1", 2, "--tangent is name=V, not '1'", "");
    fails("cotangent taylor 'x > 0' x=1", 3, "[taylor] the value is bool; only floats have derivatives", "");
    fails("cotangent hvp 'x**2' x=[1,2] --tangent x=[1,1]", 2,
          "[hvp] the value has shape (2,); only a value of one element has a Hessian", "");
    fails("cotangent jac 'x' 'x=zeros([100000])'", 3,
          "[jac] the matrix has 100000 × 100000 elements; at most 134217728 are made. Use products (vjp, jvp, hvp), or "
          "--wrt for "
          "fewer inputs",
          "");
}

static void options_that_are_none(void **state) {
    (void)state;
    fails("cotangent", 2, "which command? `cotangent --help` lists them", "");
    fails("cotangent gradd x x=1", 2, "there is no command gradd; did you mean grad?", "");
    fails("cotangent qqqqqqqq", 2, "there is no command qqqqqqqq; `cotangent --help` lists them", "");
    fails("cotangent grad x x=1 --wrtt x", 2, "grad has no option --wrtt; did you mean --wrt?", "");
    fails("cotangent eval x x=1 --seed 1", 2, "eval has no option --seed; `cotangent eval --help` lists them", "");
    fails("cotangent eval -x x=1", 2,
          "eval has no option -x; write -- before an expression that begins with a minus sign", "");
    fails("cotangent eval x x=1 --threads", 2, "--threads needs a value: --threads N", "");
    fails("cotangent eval x x=1 --threads 0", 2, "--threads is a whole number from 1 to 256, not '0'", "");
    fails("cotangent eval x x=1 --threads 1.5", 2, "--threads is a whole number from 1 to 256, not '1.5'", "");
    fails("cotangent eval x x=1 --threads 99999999999999999999", 2,
          "--threads is a whole number from 1 to 256, not '99999999999999999999'", "");
    fails("cotangent eval x x=1 --dtype f16", 2, "--dtype is f64 or f32, not 'f16'", "");
    fails("cotangent grad x x=1 --mode up", 2, "--mode is reverse or forward, not 'up'", "");
    fails("cotangent grad x x=1 --seed 1 --seed 2", 2, "--seed is given twice", "");
    fails("cotangent eval x x=1 --help=1", 2, "--help takes no value", "");
    fails("cotangent help a b", 2, "help takes one command, not 2", "");
    fails("cotangent trace x x=1 --html - --dot -", 2,
          "only one of --json, --c, --html - and --dot - can go to the standard output", "");
}

static void a_hessian_of_too_many_inputs_is_refused_before_it_is_computed(void **state) {
    (void)state;
    assert_int_equal(
        sh("seq 1000 | sed 's/^/a/' | paste -s -d+ > many; cotangent hess -f many $(seq 1000 | sed 's/.*/a&=1/')"), 3);
    assert_string_equal(last.err,
                        "cotangent: [hess] 1000 inputs; at most 999 at a time. Use hvp, or --wrt for fewer\n");
}

static void control_characters_do_not_reach_the_terminal(void **state) {
    (void)state;
    assert_int_equal(sh("cotangent eval \"$(printf 'x\\033[31m')\" x=1"), 2);
    assert_null(strchr(last.err, '\033'));
    /* U+009B begins orders too, U+202E turns the line */
    assert_int_equal(sh("cotangent eval \"$(printf 'x\\302\\23331m\\342\\200\\256')\" x=1"), 2);
    assert_null(strstr(last.err, "\302\233"));
    assert_null(strstr(last.err, "\342\200\256"));
    assert_int_equal(sh("cotangent trace x*x x=1 --dot \"$(printf 'a\\033[31m.dot')\""), 0);
    assert_string_equal(last.err, "cotangent: wrote a?[31m.dot\n");
    assert_int_equal(sh("cotangent eval --json \"$(printf 'x + \\377\\033')\" x=1"), 2);
    assert_non_null(json_value(last.out));
    assert_null(strchr(last.out, '\033'));
}

/* The sign of a NaN says nothing, and differs between machines. */
static void a_nan_has_no_sign(void **state) {
    (void)state;
    static const char *const lines[] = {
        "check 'sqrt(x)' x=-1", "check --json 'sqrt(x)' x=-1", "eval 'log(x)' x=-1", "grad 'sqrt(x)' x=-1",
        "eval 'x*(-nan)' x=1", "eval --json 'x*(-nan)' x=[1,2]", "explain 'log(x)' x=-1", "trace 'x*(-nan)' x=1",
        "taylor 'log(x)' x=-1 --along x=1", "compile 'x*(-nan)' x=1 --print", "jac 'sqrt(x)' x=[-1,-2]"};
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        sh("cotangent %s", lines[k]);
        if (strstr(last.out, "-nan") || strstr(last.err, "-nan")) fail_msg("%s: %s%s", lines[k], last.out, last.err);
        assert_non_null(strstr(last.out, "nan"));
    }
}

/* A folder may be called like what messages begin with. */
static void brackets_of_a_path_are_kept(void **state) {
    (void)state;
    runs("mkdir '[a] d' '[grad] d'; for d in '[a] d' '[grad] d'; do "
         "for i in images-idx3 labels-idx1; do echo junk > \"$d/t10k-$i-ubyte.gz\"; done; done");
    fails("cotangent train mnist --data '[a] d'", 3,
          "[train] [a] d/t10k-images-idx3-ubyte.gz is of no kind that is known: .safetensors, .npy, .npz, IDX, or a "
          "table .csv, .tsv, .txt or .dat", "");
    fails("cotangent train mnist --data '[grad] d'", 3,
          "[train] [grad] d/t10k-images-idx3-ubyte.gz is of no kind that is known: .safetensors, .npy, .npz, IDX, or a "
          "table .csv, .tsv, .txt or .dat", "");
    runs("for i in $(seq 40); do echo 'one text of words'; done > words.txt; echo junk > '[a] d/w'");
    fails("cotangent train gpt --quiet --data words.txt --layers 1 --width 4 --heads 1 --context 4 --initial '[a] d/w'",
          3,
          "[train] [a] d/w is of no kind that is known: .safetensors, .npy, .npz, IDX, or a table .csv, .tsv, .txt or "
          ".dat", "");
    fails("cotangent eval x 'x=@[a] d/w.npy'", 3, "x: cannot read [a] d/w.npy: No such file or directory", "");
    runs("mkdir '[a] r'; echo junk > '[a] r/step-000000000100.safetensors'");
    fails("cotangent train gcn --quiet --resume '[a] r'", 3,
          "[train] none of the 1 checkpoints in [a] r is whole: [a] r/step-000000000100.safetensors is cut short: it "
          "has 5 bytes", "");
}

/* Exactly one value stands behind name=, and nothing behind it. */
static void nothing_stands_behind_a_value(void **state) {
    (void)state;
    fails("cotangent grad 'sum(x)' 'x=[1,2] 3'", 2,
          "x: expected an operator or the end of the statement, found '3'", "[1,2] 3\n      ^\n");
    fails("cotangent grad 'sum(x)' 'x=[1,2][3,4]'", 2, "x: 2 indices for an array of 1 axis",
          "[1,2][3,4]\n     ^~~~~\n");
    fails("cotangent vjp x x=[1,2] --seed '[1,2] 3'", 2,
          "--seed: expected an operator or the end of the statement, found '3'", "[1,2] 3\n      ^\n");
    prints("cotangent eval x 'x=[1,2][0]'", "1\n");
}

/* Sentences of the library begin with a function of C's, and point to options of C's. Here they are
 * of the command that was typed, unless they are of an operation. */
static void functions_of_c_are_not_named(void **state) {
    (void)state;
    fails("COTANGENT_BITS=abc cotangent eval 1", 3,
          "[eval] COTANGENT_BITS is \"abc\"; it must be fast or portable", "");
    fails("cotangent eval 'x[9]' x=[1]", 3, "[index] position 9 is out of range for axis 0 of extent 1",
          "x[9]\n ^~~\n");
    fails("cotangent train gcn --data nowhere", 3,
          "[train] cannot read nowhere/labels.npy: No such file or directory", "");
    assert_int_equal(sh("for i in $(seq 40); do echo 'one text of words'; done > words.txt"), 0);
    assert_int_equal(sh("cotangent train gpt --quiet --data words.txt --layers 1 --width 4 --heads 1 --context 4 "
                        "--initial nowhere"), 3);
    assert_string_equal(last.err, "cotangent: [train] cannot read nowhere: No such file or directory\n");
    assert_int_equal(sh("{ printf x; for i in $(seq 3000); do printf '+sin(x)'; done; } > long"), 0);
    const char *const lines[] = {"100KiB cotangent eval", "250KiB cotangent grad", "250KiB cotangent hess",
                                 "250KiB cotangent trace"};
    for (int k = 0; k < 4; k++) {
        assert_int_equal(sh("COTANGENT_MEMORY_LIMIT=%s -f long x=1", lines[k]), 3);
        if (strstr(last.err, "cot_")) fail_msg("%s", last.err);
        assert_non_null(strstr(last.err, "] memory is short: "));
        if (k) assert_int_equal(strncmp(last.err, "cotangent: [", 12), 0);
        if (k) assert_int_equal(strncmp(last.err + 12, lines[k] + strlen("250KiB cotangent "), 4), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_that_are_none),
        cmocka_unit_test(ten_megabytes_of_brackets),
        cmocka_unit_test(what_is_said_before_a_command),
        cmocka_unit_test(names_that_do_not_fit),
        cmocka_unit_test(values_that_are_none),
        cmocka_unit_test(derivatives_that_do_not_exist),
        cmocka_unit_test(options_that_are_none),
        cmocka_unit_test(a_hessian_of_too_many_inputs_is_refused_before_it_is_computed),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(a_nan_has_no_sign),
        cmocka_unit_test(brackets_of_a_path_are_kept),
        cmocka_unit_test(nothing_stands_behind_a_value),
        cmocka_unit_test(functions_of_c_are_not_named),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
