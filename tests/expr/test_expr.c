/* The expression language: the meaning of texts, the nodes they record, and the messages about
 * texts without meaning. */
#include "expr/expr.h"
#include "support/tape_test.h"

/* ---- help ------------------------------------------------------------------------------------ */

/* Inputs of every test: x = 0.5, y = 3, v = [0.5, -1, 2], A = [[1, 2, 3], [4, 5, 6]], h = 2 in f32,
 * i = [0, 2] in i64. */
static int inputs(cot_tape *t, cot__expr_input *in) {
    static const double  v[] = {0.5, -1, 2}, a[] = {1, 2, 3, 4, 5, 6};
    static const int64_t i[] = {0, 2};
    in[0] = (cot__expr_input){"x", cot_scalar(t, 0.5), NULL};
    in[1] = (cot__expr_input){"y", cot_scalar(t, 3), NULL};
    in[2] = (cot__expr_input){"v", cot_tensor(t, COT_F64, COT_SHAPE(3), v), NULL};
    in[3] = (cot__expr_input){"A", cot_tensor(t, COT_F64, COT_SHAPE(2, 3), a), NULL};
    in[4] = (cot__expr_input){"h", cot_scalar_of(t, COT_F32, 2), NULL};
    in[5] = (cot__expr_input){"i", cot_data(t, COT_I64, COT_SHAPE(2), i), NULL};
    return 6;
}

typedef struct outcome {
    cot_tape       *t;
    cot__expr      *e;
    cot_var         z;
    cot__expr_error error;
} outcome;

static outcome run(const char *text) {
    outcome         o = {.t = cot_tape_create(NULL)};
    cot__expr_input in[6];
    int             n = inputs(o.t, in);
    o.e = cot__expr_parse(text, strlen(text), &o.error);
    if (o.e) o.z = cot__expr_run(o.e, o.t, n, in, &o.error, NULL, NULL);
    return o;
}

static void done(outcome *o) {
    cot__expr_free(o->e);
    cot_tape_destroy(o->t);
}

#define gives(text, type, ...)                                                                                         \
    gives_at(text, type, (double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), __LINE__)
static void gives_at(const char *text, cot_dtype type, const double *want, int n, int line) {
    outcome o = run(text);
    double  got[64];
    if (!cot_is_valid(o.z)) fail_msg("line %d: %s: column %d: %s", line, text, o.error.column, o.error.message);
    if (cot_dtype_of(o.z) != type) fail_msg("line %d: %s is %s", line, text, cot_dtype_name(cot_dtype_of(o.z)));
    if (cot_size(o.z) != n) fail_msg("line %d: %s has %lld elements, not %d", line, text, (long long)cot_size(o.z), n);
    assert_int_equal(cot_read(o.z, got, n), COT_OK);
    for (int k = 0; k < n; k++)
        if (!(got[k] == want[k] || (isnan(got[k]) && isnan(want[k]))))
            fail_msg("line %d: %s: element %d is %.17g, not %.17g", line, text, k, got[k], want[k]);
    assert_int_equal(cot_tape_check(o.t, NULL, 0), COT_OK);
    done(&o);
}
#define f64(text, ...) gives(text, COT_F64, __VA_ARGS__)
#define i64(text, ...) gives(text, COT_I64, __VA_ARGS__)
#define truth(text, ...) gives(text, COT_BOOL, __VA_ARGS__)

#define refused(text, at, many, message) refused_at(text, 1, at, many, message, __LINE__)
static void refused_at(const char *text, int line, int column, int length, const char *message, int at) {
    outcome o = run(text);
    if (cot_is_valid(o.z)) fail_msg("line %d: %s is accepted", at, text);
    if (strcmp(o.error.message, message) || o.error.column != column || o.error.length != length ||
        o.error.line != line)
        fail_msg("line %d: %s\n  says %d:%d+%d %s\n  not  %d:%d+%d %s", at, text, o.error.line, o.error.column,
                 o.error.length, o.error.message, line, column, length, message);
    done(&o);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void numbers_are_those_of_python(void **state) {
    (void)state;
    i64("1", 1);
    f64("1.", 1);
    f64(".5", 0.5);
    f64("1e-3", 1e-3);
    f64("1_000.5", 1000.5);
    i64("1_000", 1000);
    i64("9223372036854775807", 9223372036854775807.0);
    f64("9223372036854775808", 9223372036854775808.0);
    f64("pi", 3.141592653589793);
    f64("e", 2.718281828459045);
    f64("-inf", -INFINITY);
    f64("nan", NAN);
    truth("True", 1);
    i64("7 // 2", 3);
    i64("-7 // 2", -4);
    i64("-7 % 3", 2);
    i64("7 % -3", -2);
    f64("1 // 0.1", 9);
    f64("7.5 % -2", -0.5);
    f64("-1 // inf", -1);
    f64("arctan2(6.0 % -3, -1.0)", -3.141592653589793); /* a zero has the divisor's sign */
    f64("-7.5 // 2", -4);
    f64("7 / 2", 3.5);
    i64("2 ** 10", 1024);
    f64("2 ** -1", 0.5);
    f64("2 ** 64", 18446744073709551616.0);
    f64("9223372036854775807 + 1", 9223372036854775808.0);
    i64("-9223372036854775807 % -1", 0);
    i64("True + True", 2);
    truth("1 < 2 <= 2 != 3", 1);
    truth("1 < 2 > 5", 0);
}

static void quotients_of_arrays_round_down_exactly(void **state) {
    (void)state;
    f64("array([-3., 3., -3., 3., 0.]) // [inf, inf, -inf, -inf, inf]", -1, 0, 0, -1, 0);
    f64("array([-7.5, 7.5, 6.0]) // array([2.0, -2.0, -3.0])", -4, -4, -2);
    i64("array([7, -7, 7, -7, 0]) // array([2, 2, -2, -2, 5])", 3, -4, -4, 3, 0);
    i64("array([7, -7, 0]) // 0", 0, 0, 0);
    i64("7 // array([2, -2, 0])", 3, -4, 0);
    /* More than the 53 bits of a float: the difference shows the other bits. */
    i64("array([9007199254740993, 9223372036854775807]) // array([1, 3]) - [9007199254740993, 3074457345618258602]", 0,
        0);
    i64("array(9223372036854775807) // 2 - 4611686018427387903", 0);
    i64("(array(-9223372036854775807) - 1) // 7 + 1317624576693539402", 0);
    truth("array([True, False]) // array([True, True])", 1, 0);
}

static void operators_bind_as_in_python(void **state) {
    (void)state;
    f64("-x**2", -0.25);
    f64("2**-x*0 + 2**-1", 0.5);
    i64("2**3**2", 512);
    i64("-2**2", -4);
    i64("1 - 2 - 3", -4);
    f64("8 / 4 / 2", 1);
    i64("2 + 3 * 4", 14);
    i64("(2 + 3) * 4", 20);
    i64("- -3", 3);
    f64("x if y > 2 else y", 0.5);
    i64("1 if False else 2 if True else 3", 2);
    i64("(1 if True else 2) if False else 3", 3);
    i64("1 if (2 if True else 0) else 3", 1);
    truth("not 1 == 2", 1);
    i64("0 and 1 or 2", 2);
    i64("1 or 1/0", 1);
    i64("0 and 1/0", 0);
    f64("2 * x ** 2 * 3", 1.5);
    f64("-x * -x", 0.25);
    f64("A @ v * 2", 9, 18);
}

static void a_program_is_statements_and_its_value_the_last(void **state) {
    (void)state;
    f64("a = 2*x; b = a + y; a*b", 4);
    f64("a = x\n# a comment\n\nb = (a +\n   y)  # in brackets a line goes on\nb\n", 3.5);
    f64("a = x + \\\n y", 3.5);
    f64("a = b = x; a + b", 1);
    f64("q, r = [x, y]; r - q", 2.5);
    f64("a, b, c = v; a + c", 2.5);
    f64("a, = [x]; a", 0.5);
    f64("x += 1; x *= 2; x", 3);
    f64("x = x + 1; x", 1.5);
    f64("y = x", 0.5);
    f64("e = 2; e * x", 1);
    i64(";;1;;", 1);
    f64("\xef\xbb\xbfx\r\n", 0.5); /* as some editors save a file */
    f64("  a = x\n  a + y", 3.5);   /* all lines in from the margin */
    f64("a = 1;  b = 2;\n\t\\\n\n(x\n    + y)", 3.5);
    f64("a = 1; \\\n  x", 0.5);
}

static void no_line_is_dropped_in_silence(void **state) {
    (void)state;
    const char *indent =
        "unexpected indent: statements begin in one column; put brackets around an expression of several lines";
    const char *unused =
        "this value is not used: the last statement is the result; assign it, as in a = …, or put brackets around an "
        "expression of several lines";
    refused_at("sum(v**2)\n    + y*sum(v)", 2, 5, 1, indent, __LINE__);
    refused_at("a = sum(v**2)\n\t+ y", 2, 2, 1, indent, __LINE__);
    refused_at("  a = x\n   a", 2, 4, 1, indent, __LINE__);
    refused("sum(v)\n+ y", 1, 6, unused);
    refused("1; 2", 1, 1, unused);
    refused("a = 1; a + x ; a", 8, 5, unused);
    refused("x, y; 2", 1, 4, unused);
}

static void operations_are_called_by_name(void **state) {
    (void)state;
    f64("sum(A)", 21);
    f64("sum(A, axis=0)", 5, 7, 9);
    f64("sum(A, 1, keepdims=True)", 6, 15);
    f64("sum(A, axis=[0, 1])", 21);
    f64("max(A, axis=-1)", 3, 6);
    f64("where(v > 0, v, 0)", 0.5, 0, 2);
    f64("clip(v, -0.5, max=1)", 0.5, -0.5, 1);
    f64("concatenate([v, [1, 2]])", 0.5, -1, 2, 1, 2);
    f64("stack([x, y])", 0.5, 3);
    f64("einsum('ij,j->i', A, v)", 4.5, 9);
    f64("reshape(A, (3, -1))[2]", 5, 6);
    i64("arange(4)", 0, 1, 2, 3);
    f64("arange(0, 1, 0.25)", 0, 0.25, 0.5, 0.75);
    i64("full([2], 7)", 7, 7);
    f64("full([2], 7.)", 7, 7);
    f64("zeros(2)", 0, 0);
    f64("eye(2)", 1, 0, 0, 1);
    f64("cumsum(A)", 1, 3, 6, 10, 15, 21);
    f64("cumsum(A, axis=0)", 1, 2, 3, 5, 7, 9);
    f64("roll(A, 1)", 6, 1, 2, 3, 4, 5);
    f64("topk(v, 2)[0]", 2, 0.5);
    i64("topk(v, 2)[1]", 2, 0);
    f64("sort(v)", -1, 0.5, 2);
    f64("a, b = split(A, 2); b", 4, 5, 6);
    f64("conv1d(reshape(v, [1, 1, 3]), ones([1, 1, 2]), padding=1)", 0.5, -0.5, 1, 2);
    f64("avg_pool1d(v[None], window=3)", 0.5);
    f64("norm(v, ord=inf)", 2);
    f64("norm([3., 4])", 5);
    f64("norm([3., 4], 'fro')", 5);
    f64("norm([[3., 0], [0, 4]])", 5);
    f64("norm([[3., 0], [0, 4]], ord='fro')", 5);
    f64("norm([[3., 0], [0, 4]], 'fro', axis=[0, 1], keepdims=True)", 5);
    f64("norm(A, 1, axis=0)", 5, 7, 9);
    f64("norm(A, ord=None, axis=(0, 1), keepdims=True) / norm(reshape(A, -1))", 1);
    /* along the first two axes, as in NumPy */
    i64("trace(reshape(arange(18), [3, 3, 2]), 1)", 12, 14);
    f64("trace([[1., 2], [3, 4]], offset=-1)", 3);
    f64("compress([True, False, True], v)", 0.5, 2);
    f64("compress([False, True], A, axis=0)", 4, 5, 6);
    f64("compress([False, True, False, False, False, True], A)", 2, 6);
    gives("cast(v, f32)", COT_F32, 0.5, -1, 2);
    gives("cast(v, 'int32')", COT_I32, 0, -1, 2);
    gives("sqrt(4)*h", COT_F32, 4); /* numbers are weak, also as results */
    i64("abs(-3)", 3);
    f64("array([1, 2]) / 2", 0.5, 1);
    i64("floor_divide(array([7, -7]), 2)", 3, -4);
    f64("A.T[0]", 1, 4);
    i64("A.shape[1]", 3);
    i64("v.ndim + A.size", 7);
}

static void indexing_is_numpys(void **state) {
    (void)state;
    f64("A[0]", 1, 2, 3);
    f64("A[-1, 1:]", 5, 6);
    f64("A[:, ::2]", 1, 3, 4, 6);
    f64("A[..., 0]", 1, 4);
    f64("A[:, None, 0]", 1, 4);
    f64("v[::-1]", 2, -1, 0.5);
    f64("v[-2:]", -1, 2);
    f64("v[2:0:-1]", 2, -1);
    f64("v[i]", 0.5, 2);
    f64("A[:, [0, 2]]", 1, 3, 4, 6);
    f64("A[1, i]", 4, 6);
    f64("v[v > 0]", 0.5, 2);
    f64("A[A > 4]", 5, 6);
    f64("A[:, v > 0]", 1, 3, 4, 6);
    f64("A[[0, 1], [1, 2]]", 2, 6);
    f64("A[[[0], [1]], i]", 1, 3, 4, 6);
    f64("A[(0, 1)]", 2);
    f64("v[i[1]]", 2);
    i64("[1, 2, 3][1]", 2);
    i64("A[None].shape[0]", 1);
}

static void lists_are_arrays(void **state) {
    (void)state;
    i64("[1, 2, 3]", 1, 2, 3);
    f64("[[1, 2], [3, 4.5]]", 1, 2, 3, 4.5);
    truth("[True, False]", 1, 0);
    f64("[x, 2, y]", 0.5, 2, 3);
    f64("[[x, 1], [2, y]]", 0.5, 1, 2, 3);
    f64("v + [1, 2, 3]", 1.5, 1, 5);
    gives("[h, 0.5, 1]", COT_F32, 2, 0.5, 1); /* numbers are weak here too */
    gives("[[h, 1], [2, 0.5]]", COT_F32, 2, 1, 2, 0.5);
    f64("[i[0], 0.5]", 0, 0.5);
    i64("[i[1], 1]", 2, 1);
    f64("(1, 2) * v[:2]", 0.5, -2);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void a_wrong_text_is_shown_where_it_is_wrong(void **state) {
    (void)state;
    refused("", 1, 1, "expected an expression; the text is empty");
    refused("# nothing", 1, 1, "expected an expression; the text is empty");
    refused("x ^ 2", 3, 1, "'^' is no power here; write ** for a power");
    refused("(x + (y", 8, 1, "expected ')' to close the '(' at column 6, found the end of the text");
    refused("sum(A,", 7, 1, "expected ')' to close the '(' at column 4, found the end of the text");
    refused("A[1:", 5, 1, "expected ']' to close the '[' at column 2, found the end of the text");
    refused("[1, ", 5, 1, "expected ']' to close the '[' at column 1, found the end of the text");
    const char *matrix = "[norm] ord=2 over 2 axes is ambiguous: NumPy's is a norm of matrices, not of their elements; "
                         "norm(x) or ord='fro' is "
                         "sqrt(sum(x**2)), axis=k takes vectors, norm(reshape(x, -1), ord) all elements, and the "
                         "spectral norm is max(svdvals(x))";
    refused("x @ y", 3, 1, "[matmul] a scalar has no axis to multiply along: () @ (); mul takes scalars");
    refused("norm(A, 2)", 1, 4, matrix);
    refused("norm(A, ord=2, axis=[0, 1])", 1, 4, matrix);
    refused("norm(A, 'nuc')", 9, 5, "[norm] ord='nuc' is not here; write sum(svdvals(x))");
    refused("norm(v, 'two')", 9, 5, "[norm] ord must be a number, inf, 'fro' or None, not a string");
    refused("ln(x)", 1, 2, "unknown function 'ln'; write log(x)");
    refused("sinn(x)", 1, 4, "unknown function 'sinn'; did you mean 'sin'?");
    refused("cross(v, v)", 1, 5, "unknown function 'cross'");
    refused("|x|", 1, 1,
            "'|' is not part of the language; write abs(x) for an absolute value, or for numbers, logical_or(x, y) for "
            "arrays");
    refused("x > 0 ? 1 : 2", 7, 1,
            "'?' is not part of the language; a choice is written a if c else b, or where(c, a, b) for arrays");
    refused("0x10 + 1", 1, 4, "numbers are decimal here: 16, not 0x10");
    refused("max(2, 3)", 8, 1,
            "[max] this is the axis, and a single number has none; the larger of two is maximum(x, y)");
    refused("amin(x, 3)", 9, 1,
            "[amin] this is the axis, and a single number has none; the smaller of two is minimum(x, y)");
    refused("v[v]", 2, 3, "positions are integers, and this is an array of f64(3,); cast(…, i64) makes them");
    refused("v[x]", 2, 3,
            "an index must be an integer, a slice, an array of integers or bools, None or ..., not a value of f64; "
            "cast(…, i64) makes an integer");
    refused("sin x", 5, 1, "expected '(' after the name of a function, found 'x'");
    refused("(x y)", 4, 1, "expected an operator, ',' or ')' to close the '(' at column 1, found 'y'");
    refused("[1, 2)", 6, 1, "expected an operator, ',' or ']' to close the '[' at column 1, found ')'");
    refused("x)", 2, 1, "')' closes nothing: no bracket is open");
    refused("x + ", 5, 1, "expected a number, a name or '(', found the end of the text");
    refused("x * * y", 5, 1, "expected a number, a name or '(', found '*'");
    refused("2x", 2, 1, "expected an operator between 2 and x; a product is written 2*x");
    refused("x y", 3, 1, "expected an operator or the end of the statement, found 'y'");
    refused("x + 1 = 2", 7, 1, "only names can be assigned to, as in y = x + 1; equality is written ==");
    refused("x if y", 7, 1, "expected 'else' and a value for the other case, found the end of the text");
    refused("for", 1, 3,
            "expected a number, a name or '('; 'for' is a word of Python that is not part of the language");
    refused("'abc", 1, 1, "expected ' to end the string that starts here");
    refused("x²", 2, 1, "'²' is not part of the language; write **2");
    refused("äx", 1, 1, "'ä' is not part of the language");
    refused("'äö' + $", 8, 1, "'$' is not part of the language");
    refused("x \x01", 3, 1, "the byte 0x01 is not part of the language");
    refused("x +\xc2\xa0y", 4, 1, "a non-breaking space is not part of the language; write a plain one");
    refused("x + '\xff\xc3\xa4' y", 10, 1, "expected an operator or the end of the statement, found 'y'");
    refused("x '\xff\xc3\xa4'", 3, 4, "expected an operator or the end of the statement, found ''?\xc3\xa4''");
    refused("x[]", 3, 1, "expected an index: an integer, a slice, a list, None or ..., found ']'");
    refused("2(x)", 2, 1,
            "expected an operator (only a name can be called, and a product is written with *), found '('");
    refused("x.sum()", 3, 3, "there are no methods and modules here; write sum(…)");
    refused_at("x +\n", 1, 4, 1, "expected a number, a name or '(', found the end of the line", __LINE__);
    refused_at("a = 1\nb = (a\n  + ]", 3, 5, 1, "expected a number, a name or '(', found ']'", __LINE__);
    refused_at("a = 1\nb = (a\n", 3, 1, 1,
               "expected ')' to close the '(' at line 2, column 5, found the end of the text", __LINE__);
}

static void unknown_names_suggest_the_nearest(void **state) {
    (void)state;
    refused("x + z", 5, 1, "unknown name 'z'; give it a value, as in z=2");
    refused("speed = 2; sped * x", 12, 4, "unknown name 'sped'; did you mean 'speed'?");
    refused("sun(A)", 1, 3, "unknown function 'sun'; did you mean 'sin'?");
    refused("sigmiod(x)", 1, 7, "unknown function 'sigmiod'; did you mean 'sigmoid'?");
    refused("frobnicate(x)", 1, 10, "unknown function 'frobnicate'");
    refused("pi(x)", 1, 2, "'pi' is a number, not a function; a product is written with *");
    refused("min + 1", 1, 3, "'min' is a function, called with (): min(x, axis=None, keepdims=False)");
    refused("sum(A, axs=0)", 8, 3, "sum has no keyword 'axs'; did you mean 'axis'? There are x, axis and keepdims");
    refused("sin(x, frequency=2)", 8, 9, "sin has no keyword 'frequency'; there is x");
}

static void a_call_is_checked_against_the_signature(void **state) {
    (void)state;
    refused("sin()", 1, 3, "sin needs x: sin(x)");
    refused("sin(x, y)", 8, 1, "sin takes at most 1 argument: sin(x)");
    refused("sum(A, x=A)", 8, 1, "x is given twice to sum");
    refused("sum(axis=0, A)", 13, 1, "an argument without a name cannot follow one with a name");
    refused("sum(A, axis='a')", 13, 3, "[sum] axis must be an integer, a list of integers or None, not a string");
    refused("sum(A, axis=0.5)", 13, 3, "[sum] axis must be an integer, a list of integers or None, not the number 0.5");
    refused("sum(A, keepdims=2)", 17, 1, "[sum] keepdims must be True or False, not the integer 2");
    refused("cast(x, 3)", 9, 1,
            "[cast] dtype must be a dtype (float64, float32, bfloat16, float16, int64, int32, uint8 or bool), not the "
            "integer 3");
    refused("sin(None)", 5, 4, "[sin] x must be a number or an array, not None");
    refused("stack(x)", 7, 1, "[stack] xs must be a list of arrays, as in [a, b], not a value of f64");
    refused("huber(x, y, delta=x)", 19, 1,
            "[huber] delta is a fixed number here: no derivative flows through it; write detach(…) if that is meant");
    refused("full([2], 9007199254740993)", 11, 16,
            "[full] fill_value is 9007199254740993, which becomes 9007199254740992 as a floating-point number; add the "
            "rest to the result");
    refused("arange(array(9223372036854775807))", 8, 26,
            "[arange] start is 9223372036854775807, which becomes 9223372036854775808 as a floating-point number; add "
            "the rest to the result");
    refused("sum(A, axis=99999999999)", 13, 11,
            "[sum] axis is 99999999999; it must lie between -2147483647 and 2147483647");
    refused("sum(A, axis=[0, -99999999999])", 13, 17,
            "[sum] axis is -99999999999; it must lie between -2147483647 and 2147483647");
    refused("softmax(A, 4294967296)", 12, 10,
            "[softmax] axis is 4294967296; it must lie between -2147483647 and 2147483647");
    refused("split(A, 4294967298)[0]", 10, 10,
            "[split] parts is 4294967298; it must lie between -2147483647 and 2147483647");
    refused("tensordot(A, A, [[4294967296], [0]])", 17, 19,
            "[tensordot] axes is 4294967296; it must lie between -2147483647 and 2147483647");
    refused("fft(A, 99999999999999999999)", 8, 20,
            "[fft] n must be an integer, not the number 1e+20, which no int64 holds");
    refused("sum(svd(A))", 1, 3,
            "element 0 of the tuple has shape (2,2), element 1 has (2,); an array needs equal ones");
    refused("sum([A, x])", 1, 3, "element 0 of the list has shape (2,3), element 1 has (); an array needs equal ones");
    refused("max(x, y)", 8, 1,
            "[max] axis must be an integer (the larger of two is maximum(x, y)), not a value of f64");
    refused("stack([])", 7, 2, "[stack] xs is empty; at least one is needed");
    refused("pad(A, [1, 2, 3])", 1, 3,
            "[pad] widths do not fit 2 axes; give one number, (before, after), or such a pair for each axis");
    refused("pad(A, 1, mode='edge')", 1, 3, "[pad] mode 'edge'; 'constant' is the one there is");
    refused("tensordot(A, A, axes=3)", 1, 9, "[tensordot] the last 3 axes of an array that has 2");
    refused("tensordot(A, A, axes=[1, 2, 3])", 1, 9,
            "[tensordot] axes must be a number of axes, or two lists: those of a and those of b");
    refused("split(v, 65)", 1, 5, "[split] into 65 parts; 1 to 64 are possible");
    refused("dot_of([x], [x, y])", 1, 6, "[dot_of] 1 and 2 operands; both lists have as many");
    refused("conv1d(A[None], A[None], stride=[1, 2])", 33, 6, "[conv1d] stride has 2 entries; at most 1 are possible");
}

static void an_error_of_the_library_keeps_its_sentence(void **state) {
    (void)state;
    refused("1 + A @ A", 7, 1,
            "[matmul] inner dimensions differ: (2,3) @ (2,3); the last axis of a must equal the second last of b");
    refused("2 * sum(A, axis=5)", 5, 3, "[sum] axis 5 is out of range for rank 2; axes run from -2 to 1");
    outcome o = run("A @ A");
    assert_int_equal(o.error.status, COT_SHAPE);
    assert_error(o.t, COT_SHAPE, o.error.message);
    done(&o);
    o = run("(x");
    assert_int_equal(o.error.status, COT_OK);
    done(&o);
}

static void a_run_says_what_does_not_fit(void **state) {
    (void)state;
    refused("1/0", 2, 1, "division by zero; for a limit write inf or nan");
    refused("0**-1", 2, 2, "division by zero; for a limit write inf or nan");
    refused("not v", 1, 3,
            "'not' takes a single number, not an array of f64(3,); logical_not(x) goes element by element");
    refused("v and x", 3, 3,
            "'and' takes a single number, not an array of f64(3,); logical_and(x, y) goes element by element");
    refused("1 if v > 0 else 2", 6, 5,
            "the condition of 'if' takes a single number, not an array of bool(3,); where(condition, a, b) goes "
            "element by element");
    refused("[[1, 2], [3]]", 1, 13, "the rows of the list differ in length or depth; an array needs equal ones");
    refused("[1, 2] + [3, 4]", 8, 1, "in Python '+' joins lists; write array([…]) for arithmetic on the elements");
    refused("2 * [1, 2]", 3, 1, "in Python '*' repeats lists; write array([…]) for arithmetic on the elements");
    refused(
        "1, 2", 1, 4,
        "the result is a tuple of 2; an array is written [a, b]; or choose one, as in (…)[0], or name them: a, b = …");
    refused("'text'", 1, 6, "the result is a string, not a number or an array");
    refused("a, b = [1, 2, 3]", 1, 5, "2 names for a list of 3");
    refused("v[0, 1]", 2, 6, "2 indices for an array of 1 axis");
    refused("x[0]", 2, 3, "a single number has no elements to choose from");
    refused("cast(x, int23)", 9, 5, "unknown name 'int23'; did you mean 'int32'?");
    refused("v[0.5]", 2, 5,
            "an index must be an integer, a slice, an array of integers or bools, None or ..., not the number 0.5");
    refused("[1, 2][2]", 7, 3, "element 2 of 2; they are counted from 0, or from the end as -1, -2, …");
    refused("x.foo", 3, 3, "there is no attribute 'foo'; there are T, shape, ndim, size and dtype");
    refused("f64 + 1", 5, 1, "the dtype f64 is no number and no array");
}

static void the_caret_stands_below_what_is_meant(void **state) {
    (void)state;
    char            out[400];
    const char     *text = "a = 1\n'ä' + sin(1, 2)";
    cot__expr_error error;
    assert_null(cot__expr_parse(text, strlen(text), &error));
    cot__expr_show(&error, text, strlen(text), out, sizeof out);
    assert_string_equal(out, "'ä' + sin(1, 2)\n             ^\n");
    text = "sigmiod(x)";
    assert_null(cot__expr_parse(text, strlen(text), &error));
    cot__expr_show(&error, text, strlen(text), out, sizeof out);
    assert_string_equal(out, "sigmiod(x)\n^~~~~~~\n");
    cot__expr_show(&error, text, strlen(text), out, 5);
    assert_string_equal(out, "sigm");
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The inputs of an expression are never assigned, so an operation that has nothing to do is no step
 * of its trace. */
static void what_has_nothing_to_do_records_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"x", "sum(x)", "mean(x)", "v", "v.T", "transpose(v)", "v[:]", "reshape(v, 3)",
                                        "cast(v, float64)", "roll(v, 0)", "einsum('i->i', v)"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        outcome o = run(texts[k]);
        if (!cot_is_valid(o.z)) fail_msg("%s: %s", texts[k], o.error.message);
        if (cot_tape_length(o.t) != 6) fail_msg("%s records a node", texts[k]);
        done(&o);
    }
}

static void a_node_knows_its_part_of_the_text(void **state) {
    (void)state;
    const char     *text = "x*y + sin(x)";
    cot_tape       *t = cot_tape_create(NULL);
    cot__expr_input in[6];
    int             n = inputs(t, in);
    cot__expr_error error;
    cot__expr_span *spans;
    int64_t         count;
    cot__expr      *e = cot__expr_parse(text, strlen(text), &error);
    cot_var         z = cot__expr_run(e, t, n, in, &error, &spans, &count);
    assert_int_equal(count, 3);
    assert_int_equal(spans[0].start, 0);
    assert_int_equal(spans[0].stop, 3);
    assert_int_equal(spans[1].start, 6);
    assert_int_equal(spans[1].stop, 12);
    assert_int_equal(spans[2].start, 0);
    assert_int_equal(spans[2].stop, 12);
    assert_int_equal(cot_backward(z), COT_OK);
    assert_near(cot_grad_value(in[0].value), 3 + cos(0.5), 0);
    assert_near(cot_grad_value(in[1].value), 0.5, 0);
    free(spans);
    cot__expr_free(e);
    cot_tape_destroy(t);
}

static void a_node_knows_where_a_number_stopped_being_finite(void **state) {
    (void)state;
    const char     *text = "a = 2*log(-1) + 1; x*3 + a*y";
    cot_tape       *t = cot_tape_create(NULL);
    cot__expr_input in[6];
    int             n = inputs(t, in);
    cot__expr_error error;
    cot__expr_span *spans;
    int64_t         count;
    cot__expr      *e = cot__expr_parse(text, strlen(text), &error);
    cot__expr_run(e, t, n, in, &error, &spans, &count);
    assert_int_equal(count, 3);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(spans[k].odd_start, k == 1 ? 6 : 0);
        assert_int_equal(spans[k].odd_stop, k == 1 ? 13 : 0);
    }
    free(spans);
    cot__expr_free(e);
    cot_tape_destroy(t);
}

static void names_are_listed_in_order_of_use(void **state) {
    (void)state;
    const char        *text = "b = y + e; a = b*x; a + b + cast(y, f32) + w";
    const char *const *names;
    cot__expr         *e = cot__expr_parse(text, strlen(text), NULL);
    assert_int_equal(cot__expr_names(e, &names), 3);
    assert_string_equal(names[0], "y");
    assert_string_equal(names[1], "x");
    assert_string_equal(names[2], "w");
    assert_true(cot__expr_uses(e, "e"));
    assert_false(cot__expr_uses(e, "pi"));
    cot__expr_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_python),
        cmocka_unit_test(quotients_of_arrays_round_down_exactly),
        cmocka_unit_test(operators_bind_as_in_python),
        cmocka_unit_test(a_program_is_statements_and_its_value_the_last),
        cmocka_unit_test(no_line_is_dropped_in_silence),
        cmocka_unit_test(operations_are_called_by_name),
        cmocka_unit_test(indexing_is_numpys),
        cmocka_unit_test(lists_are_arrays),
        cmocka_unit_test(a_wrong_text_is_shown_where_it_is_wrong),
        cmocka_unit_test(unknown_names_suggest_the_nearest),
        cmocka_unit_test(a_call_is_checked_against_the_signature),
        cmocka_unit_test(an_error_of_the_library_keeps_its_sentence),
        cmocka_unit_test(a_run_says_what_does_not_fit),
        cmocka_unit_test(the_caret_stands_below_what_is_meant),
        cmocka_unit_test(what_has_nothing_to_do_records_nothing),
        cmocka_unit_test(a_node_knows_its_part_of_the_text),
        cmocka_unit_test(a_node_knows_where_a_number_stopped_being_finite),
        cmocka_unit_test(names_are_listed_in_order_of_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
