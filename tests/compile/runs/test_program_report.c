/* What is told of a program before it runs: its memory is what a run takes, groups have formulas,
 * and whatever passes through memory has a reason. */
#include "compile/runs/run_memory_test.h"
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <stdlib.h>
#include <string.h>

enum { N = 100, BYTES = N * 8 };

static const cot_type types[3] = {{COT_F64, {2, {N, N}}}, {COT_F64, {1, {N}}}, {COT_F64, {0, {0}}}};

BODY(layered) {
    UNUSED;
    cot_var h = cot_tanh(cot_add(cot_mul(cot_matmul(xs[0], xs[1]), xs[2]), 1));
    ys[0] = cot_sort(cot_exp(cot_sub(h, cot_square(h))), 0, false);
    return 0;
}
BODY(elementwise) {
    UNUSED;
    cot_var e = cot_exp(xs[0]), sine = cot_sin(cot_add(e, 1));
    ys[0] = cot_mul(sine, cot_div(e, 3));
    return 0;
}
/* A loop whose body needs an array of its own, and its way back. */
BODY(turn) { UNUSED; ys[0] = cot_tanh(cot_matmul(cot_sort(xs[1], 0, false), *(cot_var *)user)); return 0; }
BODY(loops) {
    UNUSED;
    cot_var w = xs[0], y;
    cot_fori(turn, &w, 0, 3, 1, &xs[0], &y, NULL);
    ys[0] = cot_add(cot_sum(y, COT_ALL), cot_mul(cot_sum(xs[1], COT_ALL), xs[2]));
    return 0;
}
BODY(loops_back) {
    UNUSED;
    return cot_value_and_grad(loops, NULL, n, xs, &(cot_var){0}, ys) != COT_OK;
}
BODY(counts) { UNUSED; ys[0] = cot_argmax(xs[1], COT_AXES(0)); return 0; }

/* Everything that `tell` prints of a program. */
static char *printed(cot_program *p, void (*tell)(cot_program *p, FILE *out)) {
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    tell(p, out);
    fclose(out);
    return text;
}

static void report(cot_program *p, FILE *out) { cot_program_report(p, out); }
static void graph(cot_program *p, FILE *out) { cot_program_dot(p, out); }

static void the_memory_that_is_told_is_what_a_run_takes(void **state) {
    static const cot_fn functions[] = {layered, elementwise, counts};
    (void)state;
    for (int k = 0; k < 3; k++) {
        cot_program      *p = cot_compile(functions[k], NULL, 3, types, 1, NULL);
        cot_run          *r = cot_run_create(p);
        cot_program_facts f;
        assert_string_equal(cot_run_message(r), "");
        assert_int_equal(cot_program_measure(p, &f), COT_OK);
        assert_int_equal(f.run_bytes, cot_run_bytes(r));
        assert_int_equal(f.input_bytes, N * BYTES + BYTES + 8);
        assert_int_equal(f.output_bytes, k == 0 ? BYTES : k == 1 ? N * BYTES : 8);
        assert_int_equal(f.operations, f.views + f.scalars + f.fused + f.jobs);
        cot_run_destroy(r);
        cot_program_destroy(p);
    }
}

/* Measuring takes no array, so it can be done where a run would not find memory. */
static void what_is_too_large_to_run_can_be_measured(void **state) {
    static const cot_fn functions[] = {loops, loops_back};
    (void)state;
    for (int k = 0; k < 2; k++) {
        counting          c = {0};
        cot_program      *p = cot_compile(functions[k], NULL, 3, types, k ? 3 : 1,
                                          &(cot_compile_options){.allocator = {counting_alloc, &c}});
        cot_program_facts f, again;
        assert_string_equal(cot_program_message(p), "");
        cot_run_destroy(measured_run("measured", p, &c));
        assert_int_equal(cot_program_measure(p, &f), COT_OK);
        c.fail_from_size = N * BYTES;
        assert_int_equal(cot_program_measure(p, &again), COT_OK);
        assert_int_equal(again.run_bytes, f.run_bytes);
        assert_true(f.run_bytes > N * BYTES);
        cot_run *r = cot_run_create(p);
        assert_int_equal(cot_run_status(r), COT_MEMORY);
        cot_run_destroy(r);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
    }
}

/* It lies on the tape beside the result. */
static void what_is_saved_is_what_the_tape_keeps(void **state) {
    (void)state;
    static double     x[N * N];
    cot_program      *p = cot_compile(elementwise, NULL, 3, types, 1, NULL);
    cot_program_facts f;
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    assert_true(f.saved_bytes >= N * BYTES && f.recomputed_bytes >= 0);
    for (int active = 0; active < 2; active++) {
        counting  c = {0};
        cot_tape *t = counted_tape(&c, false);
        cot_var   in[3] = {COT_NONE, cot_ones(t, COT_F64, types[1].shape), cot_constant(t, 1)}, y;
        in[0] = active ? cot_tensor(t, COT_F64, types[0].shape, x) : cot_data(t, COT_F64, types[0].shape, x);
        size_t before = c.live;
        cot_program_call(p, 3, in, 1, &y);
        assert_ok(t);
        size_t want = N * BYTES + (active ? (size_t)f.saved_bytes : 0);
        /* nodes and lists come to it */
        assert_in_range(c.live - before, want, want + N * BYTES / 4);
        cot_tape_destroy(t);
    }
    cot_program_destroy(p);
}

static void groups_are_told_with_their_formulas(void **state) {
    (void)state;
    cot_program *p = cot_compile(elementwise, NULL, 3, types, 1, NULL);
    char        *text = printed(p, report);
    /* %3 is read twice, so it has a line; the rest is one formula */
    assert_non_null(strstr(text, "  group 1: 5 operations over (100,100)\n"
                                 "    %3 = exp(%0)  (in blocks only)\n"
                                 "    %7 = sin(%3 + 1) * (%3 / 3)\n"));
    assert_non_null(strstr(text, "not together, so through memory:\n  nothing\n"));
    free(text);
    cot_program_destroy(p);
}

BODY(turned) {
    UNUSED;
    ys[0] = cot_mul(cot_exp(xs[0]), cot_sub(cot_transpose(xs[0]), xs[1]));
    return 0;
}
static void a_transposed_operand_is_told_as_such(void **state) {
    (void)state;
    cot_program *p = cot_compile(turned, NULL, 3, types, 1, NULL);
    char        *text = printed(p, report);
    assert_non_null(strstr(text, " = exp(%0) * (transpose(%0) - %1)\n"));
    free(text);
    cot_program_destroy(p);
}

static void what_goes_through_memory_has_a_reason(void **state) {
    (void)state;
    cot_program *p = cot_compile(layered, NULL, 3, types, 1, NULL);
    char        *text = printed(p, report);
    assert_non_null(strstr(text, "3 inputs, 1 output, "));
    assert_non_null(strstr(text, " = argsort: it is not elementwise, or has no axes\n"));
    free(text);
    cot_program_destroy(p);
}

static void a_graph_has_every_operation_and_edge(void **state) {
    (void)state;
    cot_program *p = cot_compile(elementwise, NULL, 3, types, 1, NULL);
    char        *text = printed(p, graph);
    assert_string_equal(text, "digraph program {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n"
                              "  in0 [label=\"%0 input 0\\nf64(100,100)\", style=bold];\n"
                              "  in1 [label=\"%1 input 1\\nf64(100,)\", style=bold];\n"
                              "  in2 [label=\"%2 input 2\\nf64\", style=bold];\n"
                              "  subgraph cluster_0 {\n  label=\"group 1\"; color=grey;\n"
                              "  op0 [label=\"%3 exp\\nf64(100,100)\"];\n"
                              "  op1 [label=\"%4 add 1\\nf64(100,100)\"];\n"
                              "  op2 [label=\"%5 sin\\nf64(100,100)\"];\n"
                              "  op3 [label=\"%6 div 3\\nf64(100,100)\"];\n"
                              "  op4 [label=\"%7 mul\\nf64(100,100)\"];\n  }\n"
                              "  in0 -> op0;\n  op0 -> op1;\n  op1 -> op2;\n  op0 -> op3;\n  op2 -> op4;\n"
                              "  op3 -> op4;\n  out0 [label=\"output 0\", style=bold];\n  op4 -> out0;\n}\n");
    free(text);
    cot_program_destroy(p);
}

static void a_function_without_a_derivative_says_so(void **state) {
    (void)state;
    cot_program      *p = cot_compile(counts, NULL, 3, types, 1, NULL);
    cot_program_facts f;
    char             *text = printed(p, report);
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    assert_true(f.saved_bytes == -1 && f.recomputed_bytes == -1);
    assert_non_null(strstr(text, "no derivative as a program\n"));
    free(text);
    cot_program_destroy(p);
}

static void what_failed_is_told_instead(void **state) {
    (void)state;
    cot_program      *p = cot_compile(NULL, NULL, 0, NULL, 0, NULL);
    cot_program_facts f = {.operations = 7};
    char             *text = printed(p, report), *none = printed(NULL, report), *dot = printed(p, graph);
    assert_string_equal(text, "[compile] the function is NULL\n");
    assert_string_equal(none, "the program is NULL: cot_compile found no memory\n");
    assert_string_equal(dot, "digraph program {\n}\n");
    assert_int_equal(cot_program_measure(p, &f), COT_VALUE);
    assert_int_equal(f.operations, 0);
    assert_int_equal(cot_program_measure(p, NULL), COT_VALUE);
    assert_int_equal(cot_program_measure(NULL, &f), COT_MEMORY);
    assert_int_equal(cot_program_report(p, NULL), COT_VALUE);
    assert_int_equal(cot_program_report(NULL, NULL), COT_MEMORY);
    cot_program_dot(NULL, NULL);
    free(text);
    free(none);
    free(dot);
    cot_program_destroy(p);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (long at = 1;; at++) {
        counting          c = {0};
        cot_program      *p = cot_compile(layered, NULL, 3, types, 1,
                                          &(cot_compile_options){.allocator = {counting_alloc, &c}});
        cot_program_facts f;
        let_succeed(&c, at);
        cot_status status = cot_program_measure(p, &f);
        if (status != COT_OK) assert_int_equal(status, COT_MEMORY);
        char *text = printed(p, report), *dot = printed(p, graph);
        free(text);
        free(dot);
        cot_program_destroy(p);
        assert_int_equal(c.live, 0);
        if (status == COT_OK) break;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_memory_that_is_told_is_what_a_run_takes),
        cmocka_unit_test(what_is_too_large_to_run_can_be_measured),
        cmocka_unit_test(what_is_saved_is_what_the_tape_keeps),
        cmocka_unit_test(groups_are_told_with_their_formulas),
        cmocka_unit_test(a_transposed_operand_is_told_as_such),
        cmocka_unit_test(what_goes_through_memory_has_a_reason),
        cmocka_unit_test(a_graph_has_every_operation_and_edge),
        cmocka_unit_test(a_function_without_a_derivative_says_so),
        cmocka_unit_test(what_failed_is_told_instead),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
