/* Sparse matrices as values of expressions: A=@graph.npz, what takes them, their derivatives where
 * the entries stand, and the sentences of what takes none. */
#include "support/cli_test.h"

#define FILES COT_SOURCE_FOLDER "/tests/data/scipy/"
/* [[0, 1.5, 0, -2], [0, 0, 0, 0], [4, 0, 0.25, 0]] */
#define A " A=@" FILES "csr.npz"
#define DENSE " 'A=[[0,1.5,0,-2],[0,0,0,0],[4,0,0.25,0]]'"

/* An expression gives the same with the matrix as an array. */
static void what_takes_a_matrix_computes_as_with_arrays(void **state) {
    (void)state;
    static const char *const texts[] = {
        "A @ [1,2,3,4]", "A @ [[1,2],[3,4],[5,6],[7,8]]", "[1,2,3] @ A", "[[1,2,3],[4,5,6]] @ A",
        "A.T @ [1,2,3]", "[1,2,3,4] @ A.T", "[[1,2,3,4],[5,6,7,8]] @ A.T", "A.T.T @ [1,2,3,4]",
        "to_dense(2*A)", "to_dense(A/4)", "1 + to_dense(-A)", "to_dense(+A).T", "to_dense((3*A).T)",
        "sum(A)", "sum(A, axis=0)", "sum(A, axis=1)", "sum(A.T, axis=1)", "sum(A, axis=-1, keepdims=True)",
        "sum(A, keepdims=True)", "sum(A.T, axis=0, keepdims=True)", "mean(A)", "mean(A, axis=0)", "mean(A.T, axis=0)",
        "array(A.shape) * A.ndim", "array(A.T.shape)", "zeros([2], dtype=A.dtype)",
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        assert_int_equal(sh("cotangent eval '%s'" DENSE, texts[k]), 0);
        char *with_array = strdup(last.out);
        sh("cotangent eval '%s'" A, texts[k]);
        if (strcmp(last.out, with_array)) print_error("%s\n%s", texts[k], last.err);
        assert_string_equal(last.out, with_array);
        free(with_array);
    }
    prints("cotangent eval A.data" A, "[ 1.5,   -2,    4, 0.25]\n");
    prints("cotangent eval A.nnz" A, "4\n");
    /* the entries of a row, and of a column */
    prints("cotangent eval 'round(1e9 * to_dense(softmax(log(4)/3.5 * A)))'" A,
           "[[        0, 800000000,         0, 200000000],\n"
           " [        0,         0,         0,         0],\n"
           " [815374096,         0, 184625904,         0]]\n");
    prints("cotangent eval 'to_dense(softmax(A, axis=0))'" A,
           "[[0, 1, 0, 1],\n [0, 0, 0, 0],\n [1, 0, 1, 0]]\n");
}

static void derivatives_stand_where_the_entries_do(void **state) {
    (void)state;
    prints("cotangent grad 'sum((A @ x)**2)' x=[1,2,3,4]" A, "value = 47.5625\n"
                                                             "d/dx  = [   38,   -15, 2.375,    20]\n"
                                                             "d/dA: 3 × 4, 4 entries (row, column, value)\n"
                                                             "  0 1  -20\n"
                                                             "  0 3  -40\n"
                                                             "  2 0  9.5\n"
                                                             "  2 2  28.5\n");
    /* the rule speaks of the matrix, not of its pattern */
    assert_int_equal(sh("COLUMNS=200 cotangent trace 'sum(A @ x)' x=[1,2,3,4]" A), 0);
    assert_non_null(strstr(last.out, "  v̄₁  Aᵀ v̄₂  "));
    prints("cotangent grad 'sum((A @ x)**2)' x=[1,2,3,4] --json --wrt A" A,
           "{\"value\":47.5625,\"grad\":{\"A\":{\"shape\":[3,4],\"row_start\":[0,2,2,4],\"col\":[1,3,0,2],"
           "\"values\":[-20,-40,9.5,28.5]}}}\n");
    prints("cotangent hvp 'sum((A @ x)**2)' x=[1,2,3,4] --wrt A --tangent A=[1,0,0,0]" A,
           "value = 47.5625\n"
           "d²/dA ds: 3 × 4, 4 entries (row, column, value)\n"
           "  0 1  8\n"
           "  0 3  16\n"
           "  2 0  0\n"
           "  2 2  0\n");
    prints("cotangent jvp 'A @ x' x=[1,2,3,4] --tangent A=[0,1,0,0]" A,
           "value = [  -5,    0, 4.75]\nd/ds  = [4, 0, 0]\n");
    prints("cotangent jac 'A @ x' x=[1,2,3,4] --wrt A" A,
           "value = [  -5,    0, 4.75]\n"
           "d/dA  = [[2, 4, 0, 0],\n"
           "         [0, 0, 0, 0],\n"
           "         [0, 0, 1, 3]]\n"
           "mode: reverse, 3 sweeps (outputs 3, inputs 4)\n");
    prints("cotangent grad 'sum(A @ x)' x=[1,2,3,4] --rank --top 1 --wrt A --json" A,
           "{\"value\":-0.25,\"measure\":\"x/f*df/dx\",\"rank\":[{\"name\":\"A[0,3]\",\"sensitivity\":32,"
           "\"derivative\":4,\"at\":-2}],\"remarks\":\"3 more are not shown, none above 16 in magnitude.\"}\n");
    assert_int_equal(sh("cotangent check 'sum(softmax(A).data**2) + sum((A.T @ y)**2)' y=[1,2,3]" A), 0);
    assert_int_equal(sh("cotangent trace 'sum(A @ x)' x=[1,2,3,4]" A), 0);
    assert_non_null(strstr(last.out, "csr_matmul(A, v₁, c₁)"));
}

#define TAKES                                                                                                          \
    "a sparse matrix of shape (3,4) is no number and no array; it takes @, * and / by a number, -, .T, sum, mean, "   \
    "softmax and solve, and to_dense(…) makes an array of it"

static void what_takes_none_says_so(void **state) {
    (void)state;
    fails("cotangent eval A+1" A, 2, TAKES, "A+1\n ^\n");
    fails("cotangent eval 1/A" A, 2, TAKES, "1/A\n ^\n");
    fails("cotangent eval 'A*[1,2,3,4]'" A, 2, TAKES, "A*[1,2,3,4]\n ^\n");
    fails("cotangent eval 'A[0]'" A, 2, TAKES, "A[0]\n ^~~\n");
    fails("cotangent eval 'A < 1'" A, 2, TAKES, "A < 1\n  ^\n");
    fails("cotangent eval '1 if A else 2'" A, 2,
          "the condition of 'if' takes a single number, not a sparse matrix of shape (3,4); where(condition, a, b) "
          "goes element by element",
          "1 if A else 2\n     ^\n");
    fails("cotangent eval 'A @ A.T'" A, 2,
          "both are sparse matrices; one of a product's operands may be: to_dense(…) makes an array of the other",
          "A @ A.T\n  ^\n");
    fails("cotangent eval 'exp(A)'" A, 2,
          "[exp] x must be a number or an array, not a sparse matrix of shape (3,4); to_dense(…) makes an array of it, "
          ".data its entries",
          "exp(A)\n    ^\n");
    fails("cotangent eval 'stack([A])'" A, 2,
          "[stack] xs must be a number or an array, not a sparse matrix of shape (3,4); to_dense(…) makes an array of "
          "it, .data its entries",
          "stack([A])\n      ^~~\n");
    fails("cotangent eval A.size" A, 2,
          "a sparse matrix has no attribute 'size'; there are T, shape, ndim, nnz, data (its entries) and dtype",
          "A.size\n  ^~~~\n");
    fails("cotangent eval 'sum(A, axis=2)'" A, 2, "[sum] an axis of a sparse matrix is 0 or 1, or None for both",
          "sum(A, axis=2)\n^~~\n");
    fails("cotangent eval 'softmax(A, axis=None)'" A, 2, "[softmax] an axis of a sparse matrix is 0 or 1",
          "softmax(A, axis=None)\n^~~~~~~\n");
    fails("cotangent eval 2*A" A, 2,
          "the result is a sparse matrix of shape (3,4), not a number or an array; to_dense(…) makes an array of it",
          "2*A\n^~~\n");
    fails("cotangent eval 'A @ [1,2]'" A, 3,
          "[csr_matmul] x has shape (2,), and the matrix 4 columns; x has as many rows", "A @ [1,2]\n  ^\n");
    fails("cotangent eval 'solve(A, [1,2,3])'" A, 3,
          "[eval] the matrix has 3 rows and 4 columns; it must be square", "solve(A, [1,2,3])\n^~~~~\n");
}

static void files_are_told_apart(void **state) {
    (void)state;
    prints("cotangent eval x x=@" FILES "csr.npz:data", "[ 1.5,   -2,    4, 0.25]\n");
    assert_int_equal(sh("cotangent jvp 'A @ x' x=[1,2,3,4] --tangent A=@" FILES "csr.npz" A), 2);
    assert_non_null(strstr(last.err, "csr.npz holds a sparse matrix, and an array is needed here"));
    assert_int_equal(sh("cotangent eval 'sum(A)' A=@" FILES "dia.npz"), 3);
    assert_non_null(strstr(last.err, "dia.npz holds a matrix of format dia; csr, csc and coo can be read"));
    assert_int_equal(sh("cotangent eval 'sum(A)' A=@" FILES "complex.npz"), 3);
    assert_non_null(strstr(last.err, "complex.npz has elements of type '<c16'"));
    prints("cotangent eval 'solve(A, [2,3])' A=@" FILES "integers.npz", "[3, 2]\n");
    prints("cotangent eval 'solve(2*A.T, [2,3])' A=@" FILES "integers.npz", "[1.5,   1]\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_takes_a_matrix_computes_as_with_arrays),
        cmocka_unit_test(derivatives_stand_where_the_entries_do),
        cmocka_unit_test(what_takes_none_says_so),
        cmocka_unit_test(files_are_told_apart),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
