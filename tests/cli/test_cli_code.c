/* cotangent trace --c: the program that it prints compiles, and prints the command's numbers twice:
 * as the library sweeps, and as the sweep is written out. */
/* ctest: timeout=300 plain-only */
#define _GNU_SOURCE
#include "support/cli_test.h"

#include <stdbool.h>

#define BUILD                                                                                      \
    "gcc -std=c11 -pedantic -Wall -Wextra -Werror -I " COT_INCLUDE_FOLDER " made.c -o made "         \
    "-L " COT_COMMAND_FOLDER " -lcotangent -lm -lpthread -ldl -Wl,-rpath," COT_COMMAND_FOLDER " && ./made"

/* All numbers behind "name =" in a line of the text, from the n-th such line on; how many there
 * are, -1 for no such line. */
static int numbers_of(const char *text, const char *name, int n, double *out) {
    char head[64];
    snprintf(head, sizeof head, "%s = ", name);
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, head, strlen(head)) != 0 || n-- > 0) continue;
        int   count = 0;
        char *end;
        for (const char *p = line + strlen(head); *p && *p != '\n'; p = end) {
            out[count++] = strtod(p, &end);
            if (end == p || count == 64) return -1;
        }
        return count;
    }
    return -1;
}

/* All numbers of a JSON value behind "key":. */
static int numbers_in(const char *json, const char *key, double *out) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *p = strstr(json, quoted);
    int         count = 0, depth = 0;
    assert_non_null(p);
    p += strlen(quoted);
    do {
        char *end;
        if (*p == '[') depth++, p++;
        else if (*p == ']') depth--, p++;
        else if (*p == ',') p++;
        else out[count++] = strtod(p, &end), p = end;
    } while (depth > 0);
    return count;
}

/* The program records the same operations, so bits agree. The sweep in calls of the library does
 * the same additions in the same order. In plain C the functions are libm's: each is within 2 units
 * of the last place, ours too, and no expression below has more than 16 of them on a path. */
static void agrees(const char *arguments, const char *names, bool plain) {
    char   line[1024], *copy = strdup(names), *rest = copy;
    double want[64], got[64];
    sh("cotangent trace --c %s > made.c && " BUILD, arguments);
    if (last.status) print_error("%s\n%s", arguments, last.err);
    assert_int_equal(last.status, 0);
    char *printed = strdup(last.out);
    sh("cotangent trace --json %s", arguments);
    assert_int_equal(last.status, 0);
    int n = numbers_in(last.out, "value", want);
    assert_int_equal(numbers_of(printed, "f", 0, got), n);
    assert_memory_equal(got, want, (size_t)n * sizeof *got);
    const char *gradients = strstr(last.out, "\"grad\":");
    for (char *name; (name = strsep(&rest, " "));) {
        n = numbers_in(gradients, name, want);
        snprintf(line, sizeof line, "%s_bar", name);
        for (int twice = 0; twice < 2; twice++) {
            int count = numbers_of(printed, line, twice, got);
            if (count != n) print_error("%s: %s, way %d\n%s", arguments, line, twice, printed);
            assert_int_equal(count, n);
            for (int i = 0; i < n; i++)
                if (twice && plain) assert_true(fabs(got[i] - want[i]) <= 64 * 0x1p-52 * fabs(want[i]));
                else assert_true(got[i] == want[i]);
        }
    }
    free(printed);
    free(copy);
}

static void scalars_are_plain_c(void **state) {
    (void)state;
    agrees("'x1*x2 + sin(x1)' x1=0.7853981633974483 x2=3", "x1 x2", true);
    agrees("'a = x**2; b = a**y/sqrt(a - y); where(a > b, a*b, -b) + maximum(x, y)' x=1.5 y=0.25", "x y", true);
    /* functions that <math.h> lacks, at once */
    agrees("'sigmoid(w*x + b)*softplus(x)*silu(w) + gelu(x)*mish(b) + sign(x)*logaddexp(w, b) + (x % w)*square(b)"
           " + log_sigmoid(x) + 1/x + rsqrt(w)' w=2 x=1.25 b=-0.5", "w x b", true);
    agrees("'relu(x)*elu(y, 2) + clamp(x, 0, 1) + leaky_relu(y) + abs(y)' x=0.5 y=-2 --seed 10", "x y", true);
    sh("cotangent trace --c 'x1*x2 + sin(x1)' x1=1 x2=3");
    assert_non_null(strstr(last.out, "    x1_bar += v2_bar * cos(x1);  /* v2 = sin(x1) */\n"));
    assert_non_null(strstr(last.out, "    x2_bar += v1_bar * x1;\n"));
}

/* A zero wins over an infinite factor here too. */
static void a_zero_adjoint_wins_as_in_the_library(void **state) {
    (void)state;
    agrees("'where(x > 0, sqrt(x), 0)*1' x=0", "x", true);
    agrees("'where(y > 0, x/y, 0)*1 + where(z > 0, log(z), 0)' x=1 y=0 z=0", "x y z", true);
    agrees("'where(x > 0, 1, x*y)*1' x=2 y=inf", "x y", true);
    agrees("'where(x > 0, 1, 1e200*x*x*x)*1' x=1e100", "x", true);
    /* the other way: an infinite adjoint, a factor of 0 */
    sh("cotangent trace --c 'sqrt(x*y)' x=0 y=2 > made.c && " BUILD);
    assert_string_equal(last.out, "f = 0\nx_bar = inf\ny_bar = 0\nf = 0\nx_bar = inf\ny_bar = 0\n");
    /* operators where nothing is infinite */
    sh("cotangent trace --c 'sqrt(x)*y + x/y + x**2' x=2 y=3");
    assert_non_null(strstr(last.out, " / (2.0 * "));
    assert_null(strstr(last.out, "smul("));
    assert_null(strstr(last.out, "sdiv("));
}

static void arrays_are_calls_with_their_arguments(void **state) {
    (void)state;
    agrees("'mean((A @ x - b)**2)' A=[[1,2],[3,4]] x=[1,2] b=[0,1]", "A x b", false);
    agrees("'sum(softmax(A @ B, axis=1)*B[:2]) + sum(A[0, 1:]*max(A, axis=0)[:2])' A=[[1,2,3],[4,5,6]] "
           "B=[[1,0.5],[2,1],[0,3]]", "A B", false);
    agrees("'A*x + concat([x, x[::-1]])[1:4]' A=[[1,2,3],[4,5,6]] x=[1,2,3] --seed [[1,2,3],[4,5,6]]", "A x", false);
    agrees("'softmax_cross_entropy((W @ x)[None], [2])' W=[[1,2],[3,4],[0,1]] x=[0.5,-1]", "W x", false);
    /* more elements than stand in a line */
    agrees("'sum(cumsum(A*A)[::9]) + norm(A)' 'A=uniform(1, [63], 1)'", "A", false);
    sh("cotangent trace --c 'sum(x*x)' 'x=uniform(1, [65], 1)' > made.c && " BUILD
       " > told && grep -c x_data made.c && sort -u told | wc -l");
    assert_string_equal(last.out, "3\n2\n");
    sh("cotangent trace --c 'sum(A @ x)' A=[[1,2],[3,4]] x=[1,2]");
    assert_non_null(strstr(last.out, "    x_bar = cot_add(x_bar, cot_matmul(cot_transpose(A), v1_bar));\n"));
    assert_non_null(strstr(last.out, "    cot_var f = cot_sum(v1, COT_ALL);\n"));
}

/* Is the rule of this operation asked of the library in the program that was made last? */
static void asks_for_the_rule_of(const char *op) {
    sh("grep -q '/. the rule of %s is the library.s ./' made.c", op);
    if (last.status) fail_msg("%s", op);
}

static void networks_are_calls_with_their_options(void **state) {
    (void)state;
    agrees("'sum(max_pool2d(conv2d(x, w, stride=[1,2], padding=1, dilation=[2,1]), [2,1], ceil_mode=True)**2)"
           " + sum(avg_pool1d(x[0], 2, stride=1, padding=1, exclude_padding=True)*2)' "
           "'x=uniform(1, [1,2,5,3], 1)' 'w=uniform(2, [2,2,2,2], 1)'", "x w", false);
    asks_for_the_rule_of("max_pool");
    asks_for_the_rule_of("avg_pool"); /* windows of other sizes */
    agrees("'sum(avg_pool2d(x, [2,3], stride=[3,2], padding=[1,0])**2)' 'x=uniform(1, [1,2,6,4], 1)'", "x", true);
    sh("grep -q 'x_bar = cot_add(x_bar, cot_conv_transpose2d(' made.c");
    assert_int_equal(last.status, 0);
    agrees("'conv_transpose1d(x, w, stride=3, padding=1, output_padding=2, groups=2)**2' --seed 2 "
           "'x=uniform(1, [1,2,3], 1)' 'w=uniform(2, [2,1,2], 1)'", "x w", false);
    agrees("'sum(conv1d(x, w, groups=2, padding_before=2)**2)' 'x=uniform(1, [1,4,3], 1)' 'w=uniform(2, [2,2,2], 1)'",
           "x w", false);
    agrees("'sum(layer_norm(x, w, b)*x) + sum(rms_norm(x, w, eps=0.5)**2) + sum(group_norm(x[None], 1)*2*x)' "
           "x=[[1,2,4],[3,1,2]] w=[1,2,3] b=[1,0,1]", "x w b", false);
    asks_for_the_rule_of("layer_norm");
    asks_for_the_rule_of("rms_norm");
    agrees("'sum(attention(q, k, q, mask=k > 0, causal=True, scale=0.5)*q + attention(k, q, q, bias=q))' "
           "q=[[1,2],[3,1]] k=[[1,-1],[2,1]]", "q k", false);
    asks_for_the_rule_of("attention");
    /* a transform's way back is one of other scale: a power of two here, so bits stay */
    agrees("'sum(ifft(fft(z)*z)[:,0]*z[:,1]) + sum(irfft(rfft(x)**2, 4)*x)' z=[[1,2],[3,4]] x=[1,2,0.5,3]", "z x",
           false);
}

static void factors_are_statements(void **state) {
    (void)state;
    agrees("'q, r = qr(A); u, s, v = svd(A); w, d = eigh(A); sum(q*r) + sum(u*v)*s[0] + sum(w) + sum(d*d*A)' "
           "A=[[3,1],[1,2]]", "A", false);
    agrees("'sum(svdvals(A)*b) + sum(eigvalsh(A @ A.T)) + sum(lstsq(A, b)) + sum(cholesky(A @ A.T))' A=[[3,1],[1,2]] "
           "b=[1,2]", "A b", false);
    /* a transposed system is factored again, so bits differ: both ways are within a few units */
    agrees("'p, l, u = lu(A); s, d = slogdet(A); sum(solve(A, b)) + det(A) + d*s + sum(inv(A)) + sum(l*u)' "
           "A=[[1,3],[4,2]] b=[1,2]", "A b", true);
    agrees("'sum(solve(A, b)**2) + sum(lu(A[0])[0])' A=[[[1,3],[4,2]],[[2,1],[1,3]]] b=[[[1],[2]],[[3],[1]]]", "A b",
           true);
    sh("cotangent trace --c 'sum(solve(A, b))' A=[[1,2],[3,4]] b=[1,2]");
    assert_non_null(strstr(last.out, " = cot_solve(A, v1);\n"));
    assert_non_null(strstr(last.out, "cot_solve(cot_transpose(A), v4_bar)"));
}

static void selections_are_calls(void **state) {
    (void)state;
    agrees("'sum(x[x > 1]**2) + sum(sort(x)*x) + sum(topk(x, 2)[0]) + sum(compress_to(x, x < 3, 4, fill=7)*x[0])' "
           "x=[2,4,1,3]", "x", false);
    agrees("'sum(scatter(x, [0,2], y)*x) + sum(gather(A, [[0,1],[1,1]])) + sum(cummax(x)*y[0]) + "
           "sum(diag(y, 1)) + sum(take_along_axis(A, [[0,1],[1,1]], axis=0)*A)' x=[1,2,3] y=[5,7] A=[[1,2],[3,4]]",
           "x y A", false);
    agrees("'sum(cumprod(x)*x) + searchsorted(x, 2.5)' x=[1,2,3]", "x", true);
    asks_for_the_rule_of("recurrence");
    agrees("'sum(x) + y' x=[] y=2", "y", false);
}

/* The gradient of a matrix is that of its entries, row by row. */
static void sparse_matrices_are_structs_of_their_pattern(void **state) {
    (void)state;
    static const struct { const char *expression, *numbers; } cases[] = {
        {"sum(A @ x)", "f = -0.25\nA_bar = 2 4 1 3\nx_bar = 4 1.5 0.25 -2\n"},
        {"sum((A.T @ x[:3])**2) + sum(sum(A, axis=1)**2)",
         "f = 169.125\nA_bar = 2 -5 80.5 13\nx_bar = 12.5 0 96.375 0\n"},
        {"sum((x[:3] @ (2*A))*x) + sum(A.data**2)", "f = 40.8125\nA_bar = 7 4 14 18.5\nx_bar = 14 3 11 -4\n"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char twice[400];
        sh("cotangent trace --c '%s' A=@" COT_SOURCE_FOLDER "/tests/data/scipy/csr.npz x=[1,2,3,4] > made.c && " BUILD,
           cases[k].expression);
        snprintf(twice, sizeof twice, "%s%s", cases[k].numbers, cases[k].numbers);
        if (last.status) print_error("%s", last.err);
        assert_string_equal(last.out, twice);
    }
    sh("cotangent trace --c 'sum(softmax(A) @ x)' A=@" COT_SOURCE_FOLDER "/tests/data/scipy/csr.npz x=[1,2,3,4] > "
       "made.c && " BUILD " > both; head -n 3 both > one; tail -n 3 both | cmp - one && grep -c csr_softmax made.c");
    assert_string_equal(last.out, "2\n");
    sh("grep -F 'cot_csr_sddmm((cot_csr){3, 4, cot_zeros(t, COT_F64, COT_SHAPE(4)), c1}, ' made.c");
    assert_int_equal(last.status, 0);
}

/* A leaf whose array is long, and is not looked at; what only it was for goes too. */
static void what_nobody_reads_is_left_out(void **state) {
    (void)state;
    sh("cotangent trace --c '5 if sum(x*x) > 0 else sum(x)' 'x=uniform(1, [100], 1)' > made.c && " BUILD);
    assert_int_equal(last.status, 0);
    assert_string_equal(last.out, "_5 = 5\n");
    assert_int_equal(sh("grep -c x_data made.c"), 1); /* nowhere */
    agrees("'v = sin(x); w = cos(v); v*x' x=2", "x", true);
}

static void names_that_c_has_are_changed(void **state) {
    (void)state;
    sh("cotangent trace --c 'v1 = double*t; v1*sin(x_bar) + v1_' double=2 t=3 x_bar=1 v1_=5 > made.c && " BUILD);
    assert_int_equal(last.status, 0);
    assert_non_null(strstr(last.out, "double__bar = 2.5244129544236893\n"));
    assert_non_null(strstr(last.out, "x_bar__bar = 3.2418138352088386\n"));
    assert_non_null(strstr(last.out, "v1___bar = 1\n"));
    /* macros of the headers; the sweep with doubles, and in calls */
    const char *const values[] = {"2", "[2]"};
    for (int k = 0; k < 2; k++) {
        sh("cotangent trace --c 'M_PI*x + BUFSIZ*x + sum(L_tmpnam*math_errhandling + int64_t*W1)' --seed 1 M_PI=2 x=3 "
           "BUFSIZ=1 L_tmpnam=%s math_errhandling=2 int64_t=%s W1=7 > made.c && " BUILD, values[k], values[k]);
        if (last.status) print_error("%s", last.err);
        assert_int_equal(last.status, 0);
        assert_non_null(strstr(last.out, "M_PI__bar = 3\n"));
        assert_non_null(strstr(last.out, "x_bar = 3\n"));
        assert_non_null(strstr(last.out, "int64_t__bar = 7\n"));
        assert_non_null(strstr(last.out, "W1_bar = 2\n")); /* no header's */
    }
}

static void what_no_function_says_is_told(void **state) {
    (void)state;
    sh("cotangent trace --c 'sum(solve(A, b))' A=@" COT_SOURCE_FOLDER "/tests/data/scipy/integers.npz b=[1,2]");
    assert_int_equal(last.status, 3);
    assert_string_equal(last.err, "cotangent: [trace] --c has no line for linear_solve yet, which the function "
                                  "records; `cotangent compile` may have\n");
    /* a result that is a number */
    sh("cotangent trace --c 'x if x > 0 else 5' x=-1 > made.c && " BUILD);
    assert_int_equal(last.status, 0);
    assert_string_equal(last.out, "_5 = 5\n");
    sh("cotangent trace --c 'x > 1' x=2 > made.c && " BUILD);
    assert_string_equal(last.out, "f = 1\n");
    sh("cotangent trace --c --json 'x' x=2");
    assert_string_equal(last.out, "{\"error\":{\"code\":\"usage\",\"message\":\"only one of --json, --c, --html - and "
                                  "--dot - can go to the standard output\"}}\n");
    sh("cotangent trace --c --step 'x' x=2");
    assert_string_equal(last.err, "cotangent: --step is interactive; it does not go together with --c\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_plain_c),
        cmocka_unit_test(a_zero_adjoint_wins_as_in_the_library),
        cmocka_unit_test(arrays_are_calls_with_their_arguments),
        cmocka_unit_test(networks_are_calls_with_their_options),
        cmocka_unit_test(factors_are_statements),
        cmocka_unit_test(selections_are_calls),
        cmocka_unit_test(sparse_matrices_are_structs_of_their_pattern),
        cmocka_unit_test(what_nobody_reads_is_left_out),
        cmocka_unit_test(names_that_c_has_are_changed),
        cmocka_unit_test(what_no_function_says_is_told),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
