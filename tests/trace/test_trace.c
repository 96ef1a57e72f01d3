/* Traces as people and programs see them: exact texts for the worked example, variables used twice,
 * kinks, NaN, empty and large tensors, every dtype, detached and overwritten values, seeds,
 * failures of memory, and a long tape. */
/* ctest: timeout=120 */
#include "support/tape_test.h"

#include "support/see.h"
#include "support/support.h"
#include "trace/tangents.h"
#include "trace/trace.h"

static cot__trace *trace_of(cot_var y) {
    char        why[512];
    cot__trace *tr = cot__trace_make(&(cot__trace_request){.y = y}, why);
    assert_string_equal(why, "");
    assert_non_null(tr);
    return tr;
}

static const char *table_of(const cot__trace *tr) {
    FILE *f = tmpfile();
    cot__trace_table(f, tr, (cot__trace_look){0});
    return text_of(f);
}

static bool starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* The table of a value; the trace is gone. */
static const char *table(cot_var y) {
    cot__trace *tr = trace_of(y);
    const char *text = table_of(tr);
    cot__trace_free(tr);
    return text;
}

/* ---- the worked example: f = x1 x2 + sin x1 at (2, 5); df/dx1 = x2 + cos x1, df/dx2 = x1 ----- */

typedef struct example { cot_tape *t; cot_var x1, x2, f; } example;
static example worked_example(void) {
    example e = {.t = cot_tape_create(NULL)};
    e.x1 = cot_name(cot_scalar(e.t, 2), "x1"), e.x2 = cot_name(cot_scalar(e.t, 5), "x2");
    cot_var product = cot_mul(e.x1, e.x2), sine = cot_sin(e.x1);
    e.f = cot_add(product, sine);
    return e;
}

static void the_worked_example_as_data(void **state) {
    (void)state;
    example     e = worked_example();
    cot__trace *tr = trace_of(e.f);
    char        buf[COT__TRACE_TEXT];
    assert_int_equal(tr->node_count, 5);
    assert_int_equal(tr->step_count, 5);
    assert_int_equal(tr->output, 4);
    for (int i = 0; i < 5; i++) assert_int_equal(tr->steps[i].node, 4 - i);
    assert_string_equal(cot__trace_rule(tr, 1, 0, buf, sizeof buf), "g·cos(x)");
    assert_string_equal(cot__trace_filled(tr, 1, 0, buf, sizeof buf), "v̄₂·cos(x1)");
    assert_string_equal(cot__trace_call(tr, 2, buf, sizeof buf), "mul x1 x2");
    assert_string_equal(cot__trace_formula(tr, 2, buf, sizeof buf), "x·y");
    assert_string_equal(cot__trace_saved(tr, 2, 0, buf, sizeof buf), "x");
    assert_string_equal(cot__trace_saved(tr, 2, 1, buf, sizeof buf), "y");
    assert_null(cot__trace_saved(tr, 2, 2, buf, sizeof buf));
    const cot__trace_add *adds = tr->steps[2].adds; /* the product, after the sine */
    assert_int_equal(tr->steps[2].add_count, 2);
    assert_int_equal(adds[0].to, 0);
    assert_near(*(double *)adds[0].amount.data, 5, 0);
    assert_near(*(double *)adds[0].sum.data, cos(2) + 5, 0);
    assert_int_equal(adds[1].to, 1);
    assert_near(*(double *)adds[1].sum.data, 2, 0);
    cot__view g;
    assert_true(cot__trace_adjoint(tr, 0, &g));
    assert_near(*(double *)g.data, cos(2) + 5, 0);
    assert_int_equal(cot__trace_find(tr, 3), 3);
    assert_int_equal(cot__trace_find(tr, 9), -1);
    cot__trace_free(tr);
    assert_int_equal(cot_tape_length(e.t), 5);
    assert_near(cot_grad_value(e.x1), 0, 0); /* leaf gradients are not touched */
    cot_tape_destroy(e.t);
}

static void the_worked_example_as_a_table(void **state) {
    (void)state;
    example e = worked_example();
    assert_string_equal(table(e.f), "forward tape\n"
                                    "node  operation  value     saves\n"
                                    "x1    leaf       2\n"
                                    "x2    leaf       5\n"
                                    "v₁    mul x1 x2  10        x1 x2\n"
                                    "v₂    sin x1     0.909297  x1\n"
                                    "v₃    add v₁ v₂  10.9093\n"
                                    "\n"
                                    "reverse sweep from v₃\n"
                                    "node  adjoint  to  rule        adds       so far\n"
                                    "v̄₃    1        v̄₁  v̄₃          1          1\n"
                                    "               v̄₂  v̄₃          1          1\n"
                                    "v̄₂    1        x̄1  v̄₂·cos(x1)  -0.416147  -0.416147\n"
                                    "v̄₁    1        x̄1  v̄₁·x2       5          4.58385\n"
                                    "               x̄2  v̄₁·x1       2          2\n"
                                    "x̄2    2            the gradient\n"
                                    "x̄1    4.58385      the gradient\n");
    cot_tape_destroy(e.t);
}

static void colours_when_asked(void **state) {
    (void)state;
    example     e = worked_example();
    cot__trace *tr = trace_of(e.f);
    assert_null(strchr(table_of(tr), 0x1b));
    FILE *f = tmpfile();
    assert_true(cot__trace_table(f, tr, (cot__trace_look){.colour = true}));
    assert_non_null(strstr(text_of(f), "\n\x1b[34mv₂\x1b[0m    sin x1     \x1b[1m0.909297\x1b[0m  \x1b[2mx1\x1b[0m\n"));
    cot__trace_free(tr);
    cot_tape_destroy(e.t);
}

static void the_worked_example_as_json(void **state) {
    (void)state;
    example                e = worked_example();
    const cot__expr_span   spans[] = {{0, 5, 0, 0}, {8, 15, 0, 0}, {0, 15, 0, 0}};
    const cot__trace_input inputs[] = {{"x1", e.x1, true}, {"x2", e.x2, false}};
    char                   why[512];
    cot__trace            *tr = cot__trace_make(
                   &(cot__trace_request){
                       .y = e.f, .input_count = 2, .inputs = inputs, .spans = spans, .span_first = 2, .span_count = 3},
                   why);
    FILE       *f = tmpfile();
    cot__json   j = cot__json_to(f);
    cot__trace_json(&j, tr, "x1*x2 + sin(x1)", COT_F64, 2, inputs);
    char       *text = strdup(text_of(f)), *code = strstr(text, "\"code\":"), *report = strstr(text, "\"report\":");
    assert_true(code && report > code);
    /* the lines are in tests/cli/test_cli_code.c; here their form */
    assert_non_null(strstr(code, ",{\"text\":\"    cot_var v1 = cot_mul(x1, x2);\",\"node\":2,\"back\":false},"));
    assert_non_null(strstr(code, ",{\"text\":\"    x1_bar += v2_bar * cos(x1);  /* v2 = sin(x1) */\",\"node\":3,"
                                 "\"back\":true},"));
    assert_non_null(strstr(code, "{\"text\":\"}\",\"node\":null,\"back\":true}],\"missing\":null},\"report\""));
    memmove(code, report, strlen(report) + 1);
    assert_string_equal(
        text, "{\"value\":10.909297426825681,\"grad\":{\"x1\":4.583853163452858},"
                    "\"expression\":\"x1*x2 + sin(x1)\",\"dtype\":\"f64\",\"seed\":1,"
                    "\"inputs\":[{\"name\":\"x1\",\"node\":0,\"arrives\":true},{\"name\":\"x2\","
                    "\"node\":1,\"arrives\":true}],\"constants\":[],\"output\":4,\"nodes\":[{\"id\":0,"
                    "\"op\":\"leaf\",\"args\":[],\"numbers\":[],\"operands\":[],\"call\":\"leaf\","
                    "\"formula\":\"a value that gradients are taken with respect to\",\"name\":\"x1\","
                    "\"label\":\"x1\",\"dtype\":\"f64\",\"shape\":[],\"value\":2,\"active\":true,"
                    "\"saves\":[],\"keeps\":[],\"span\":null,\"flops\":0,\"bytes\":8},{\"id\":1,"
                    "\"op\":\"leaf\",\"args\":[],\"numbers\":[],\"operands\":[],\"call\":\"leaf\","
                    "\"formula\":\"a value that gradients are taken with respect to\",\"name\":\"x2\","
                    "\"label\":\"x2\",\"dtype\":\"f64\",\"shape\":[],\"value\":5,\"active\":true,"
                    "\"saves\":[],\"keeps\":[],\"span\":null,\"flops\":0,\"bytes\":8},{\"id\":2,"
                    "\"op\":\"mul\",\"args\":[0,1],\"numbers\":[],\"operands\":[\"x1\",\"x2\"],"
                    "\"call\":\"mul x1 x2\",\"formula\":\"x·y\",\"name\":null,\"label\":\"v₁\","
                    "\"dtype\":\"f64\",\"shape\":[],\"value\":10,\"active\":true,\"saves\":[\"x\",\"y\"],"
                    "\"keeps\":[0,1],\"span\":[0,5],\"flops\":1,\"bytes\":8},{\"id\":3,\"op\":\"sin\","
                    "\"args\":[0],\"numbers\":[],\"operands\":[\"x1\"],\"call\":\"sin x1\","
                    "\"formula\":\"sin(x)\",\"name\":null,\"label\":\"v₂\",\"dtype\":\"f64\",\"shape\":[],"
                    "\"value\":0.9092974268256817,\"active\":true,\"saves\":[\"x\"],\"keeps\":[0],"
                    "\"span\":[8,15],\"flops\":1,\"bytes\":8},{\"id\":4,\"op\":\"add\",\"args\":[2,3],"
                    "\"numbers\":[],\"operands\":[\"v₁\",\"v₂\"],\"call\":\"add v₁ v₂\","
                    "\"formula\":\"x + y\",\"name\":null,\"label\":\"v₃\",\"dtype\":\"f64\",\"shape\":[],"
                    "\"value\":10.909297426825681,\"active\":true,\"saves\":[],\"keeps\":[],"
                    "\"span\":[0,15],\"flops\":1,\"bytes\":8}],\"sweep\":[{\"node\":4,\"adjoint\":1,"
                    "\"adds\":[{\"to\":2,\"rule\":\"g\",\"filled\":\"v̄₃\",\"amount\":1,\"sum\":1},"
                    "{\"to\":3,\"rule\":\"g\",\"filled\":\"v̄₃\",\"amount\":1,\"sum\":1}]},{\"node\":3,"
                    "\"adjoint\":1,\"adds\":[{\"to\":0,\"rule\":\"g·cos(x)\",\"filled\":\"v̄₂·cos(x1)\","
                    "\"amount\":-0.4161468365471424,\"sum\":-0.4161468365471424}]},{\"node\":2,"
                    "\"adjoint\":1,\"adds\":[{\"to\":0,\"rule\":\"g·y\",\"filled\":\"v̄₁·x2\","
                    "\"amount\":5,\"sum\":4.583853163452858},{\"to\":1,\"rule\":\"g·x\","
                    "\"filled\":\"v̄₁·x1\",\"amount\":2,\"sum\":2}]},{\"node\":1,\"adjoint\":2,"
                    "\"adds\":[]},{\"node\":0,\"adjoint\":4.583853163452858,\"adds\":[]}],"
                    "\"tangents\":{\"x1\":[{\"node\":0,\"tangent\":1,\"parts\":[]},{\"node\":1,\"tangent\":0,"
                    "\"parts\":[]},{\"node\":2,\"tangent\":5,\"parts\":[{\"from\":0,"
                    "\"filled\":\"ẋ1·x2\",\"amount\":5},{\"from\":1,\"filled\":\"ẋ2·x1\",\"amount\":0}"
                    "]},{\"node\":3,\"tangent\":-0.4161468365471424,\"parts\":[{\"from\":0,"
                    "\"filled\":\"ẋ1·cos(x1)\",\"amount\":-0.4161468365471424}]},{\"node\":4,"
                    "\"tangent\":4.583853163452858,\"parts\":[{\"from\":2,\"filled\":\"v̇₁\","
                    "\"amount\":5},{\"from\":3,\"filled\":\"v̇₂\",\"amount\":-0.4161468365471424}]}]},"
                    "\"cost\":{\"inputs\":1,\"outputs\":1,\"function\":{\"operations\":3,\"bytes\":40},"
                    "\"forward\":{\"sweeps\":1,\"operations\":7,\"bytes\":72},\"reverse\":{\"sweeps\":1,"
                    "\"operations\":7,\"bytes\":48},\"cheaper\":\"equal\",\"crossing\":{\"outputs\":1,"
                    "\"why\":\"forward mode sweeps once for each of 1 input (4 operations each), reverse mode once for "
                    "each output (4 operations each): the same at 1 output\"}},"
                    "\"report\":[]}");
    free(text);
    cot__trace_free(tr);
    cot_tape_destroy(e.t);
}

/* Forward mode ends where reverse mode does: the tangent of f along an input is its gradient. */
static void tangents_are_walked_for_each_input(void **state) {
    (void)state;
    example                e = worked_example();
    const cot__trace_input inputs[] = {{"x1", e.x1, true}, {"x2", e.x2, true}};
    char                   why[512], buf[COT__TRACE_TEXT];
    cot__trace *tr = cot__trace_make(&(cot__trace_request){.y = e.f, .input_count = 2, .inputs = inputs}, why);
    cot__tangents w;
    assert_true(cot__tangents_open(&w, tr, 2, inputs));
    assert_int_equal(w.walks, 2);
    for (int k = 0; k < 2; k++) {
        cot__view t = cot__tangent(&w, k, tr->output), g;
        assert_true(cot__trace_adjoint(tr, k, &g));
        assert_near(*(double *)t.data, *(double *)g.data, 1e-15);
        assert_true(*(double *)cot__tangent(&w, k, k).data == 1);
        assert_true(*(double *)cot__tangent(&w, k, 1 - k).data == 0);
    }
    assert_string_equal(cot__tangent_filled(tr, 2, 0, buf, sizeof buf), "ẋ1·x2");
    assert_string_equal(cot__tangent_filled(tr, 3, 0, buf, sizeof buf), "ẋ1·cos(x1)");
    cot__tangents_close(&w);
    FILE *f = tmpfile();
    cot__trace_tangent_table(f, tr, 2, inputs, (cot__trace_look){0});
    assert_non_null(strstr(text_of(f), "forward mode along x2, walk 2 of 2\n"
                                       "node  rule           tangent\n"
                                       "ẋ1    it stays       0\n"
                                       "ẋ2    it moves by 1  1\n"
                                       "v̇₁    ẋ1·x2 + ẋ2·x1  2\n"
                                       "v̇₂    ẋ1·cos(x1)     0\n"
                                       "v̇₃    v̇₁ + v̇₂        2\n"));
    cot__trace_free(tr);
    cot_tape_destroy(e.t);
}

/* An array moves in one place at a time while it has few; with many it moves as a whole. */
static void tangents_are_walked_for_each_place(void **state) {
    (void)state;
    const struct {
        int64_t     n;
        int         walks;
        const char *second;
    } cases[] = {{3, 4, "x[1]"}, {23, 24, "x[1]"}, {24, 2, "y"}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        cot_tape *t = cot_tape_create(NULL);
        int64_t   n = cases[c].n;
        double    twos[24];
        for (int i = 0; i < 24; i++) twos[i] = 2;
        cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(n), twos), y = cot_scalar(t, 5);
        const cot__trace_input inputs[] = {{"x", x, true}, {"y", y, true}};
        char                   why[512];
        cot_var                f = cot_sum(cot_mul(cot_square(x), y), COT_ALL);
        cot__trace *tr = cot__trace_make(&(cot__trace_request){.y = f, .input_count = 2, .inputs = inputs}, why);
        cot__tangents w;
        assert_true(cot__tangents_open(&w, tr, 2, inputs));
        assert_int_equal(w.walks, cases[c].walks);
        assert_string_equal(w.walk[1].name, cases[c].second);
        bool each = w.walks > 2;
        for (int k = 0; k < w.walks; k++) {
            bool          own = k < w.walks - 1;
            const double *dx = cot__tangent(&w, k, 0).data, *df = cot__tangent(&w, k, tr->output).data;
            for (int64_t i = 0; i < n; i++) assert_true(dx[i] == (own && (!each || i == k)));
            /* 2·x·y in each place that moves; Σ x² along y */
            assert_true(*df == (own ? 20.0 * (double)(each ? 1 : n) : 4.0 * (double)n));
        }
        cot__tangents_close(&w);
        cot__trace_free(tr);
        cot_tape_destroy(t);
    }
}

static void a_kink_is_reported_as_json(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_name(cot_scalar(t, 0), "x"), y = cot_sum_of(2, (cot_var[]){cot_relu(x), cot_abs(x)});
    char        why[512];
    cot__trace *tr = cot__trace_make(&(cot__trace_request){.y = y}, why);
    FILE       *f = tmpfile();
    cot__json   j = cot__json_to(f);
    cot__trace_json(&j, tr, "", COT_F64, 0, NULL);
    assert_non_null(strstr(text_of(f),
                           "\"report\":[\"relu (v₁) sits on its kink x = 0; its derivative there: 0, as on the left.\","
                           "\"abs (v₂) sits on its kink x = 0; its derivative there: 0, the middle of -1 and 1.\"]}"));
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void the_worked_example_as_a_graph(void **state) {
    (void)state;
    example     e = worked_example();
    cot__trace *tr = trace_of(e.f);
    FILE       *f = tmpfile();
    cot__trace_dot(f, tr);
    const char *text = text_of(f);
    assert_true(starts(text, "digraph tape {\n"));
    assert_non_null(strstr(text, "  n0 [label=\"x1 = leaf\\n2\\nadjoint 4.58385\", style=bold];\n"));
    assert_non_null(strstr(text, "  n3 -> n4;\n"));
    /* drawn backward, so that Graphviz keeps room for the label */
    assert_non_null(strstr(text, "  n1 -> n2 [dir=back, style=dashed, color=darkorange, fontcolor=chocolate, "
                                 "label=\"+= v̄₁·x1\\n2\"];\n"));
    cot__trace_free(tr);
    cot_name(e.f, "a \"name\" with \\ and\na newline");
    tr = trace_of(e.f);
    f = tmpfile();
    cot__trace_dot(f, tr);
    assert_non_null(strstr(text_of(f), "label=\"a \\\"name\\\" with \\\\ and\\na newline\\nv₃"));
    cot__trace_free(tr);
    cot_name(e.f, "a name that is much longer than a box of a graph should ever be, so that it takes three lines and "
                  "then ends");
    tr = trace_of(e.f);
    f = tmpfile();
    cot__trace_dot(f, tr);
    assert_non_null(strstr(text_of(f), "label=\"a name that is much longer than\\na box of a graph should ever be,\\n"
                                       "so that it takes three lines an…\\nv₃ = add v₁ v₂\\n"));
    cot__trace_free(tr);
    cot_tape_destroy(e.t);
}

/* ---- sums and special values ----------------------------------------------------------------- */

static void a_reused_variable(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    /* x² + 2x: 2x + 2 = 8 */
    cot_var   x = cot_name(cot_scalar(t, 3), "x"), twice = cot_mul(x, 2.0), y = cot_add(cot_mul(x, x), twice);
    assert_string_equal(table(y), "forward tape\n"
                                  "node  operation  value  saves\n"
                                  "x     leaf       3\n"
                                  "v₁    mul x 2    6\n"
                                  "v₂    mul x x    9      x\n"
                                  "v₃    add v₂ v₁  15\n"
                                  "\n"
                                  "reverse sweep from v₃\n"
                                  "node  adjoint  to  rule  adds  so far\n"
                                  "v̄₃    1        v̄₂  v̄₃    1     1\n"
                                  "               v̄₁  v̄₃    1     1\n"
                                  "v̄₂    1        x̄   v̄₂·x  3     3\n"
                                  "               x̄   v̄₂·x  3     6\n"
                                  "v̄₁    1        x̄   v̄₁·2  2     8\n"
                                  "x̄     8            the gradient\n");
    cot__trace *tr = trace_of(cot_mul(x, x));
    assert_int_equal(tr->steps[0].add_count, 2); /* the same operand twice: two additions */
    assert_near(*(double *)tr->steps[0].adds[0].sum.data, 3, 0);
    assert_near(*(double *)tr->steps[0].adds[1].sum.data, 6, 0);
    assert_int_equal(tr->steps[0].adds[1].operand, 1);
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void a_kink_and_a_zero(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_name(cot_scalar(t, 0), "x"), y = cot_relu(cot_sin(x));
    assert_non_null(strstr(table(y), "v̄₂    1        v̄₁  [v₁ > 0]·v̄₂  0     0\n"
                                     "v̄₁    0            zero: nothing to pass on\n"
                                     "x̄     0            the gradient\n"));
    cot_tape_destroy(t);
}

static void a_nan(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_scalar(t, -1), y = cot_log(x);
    cot__trace *tr = trace_of(y);
    assert_non_null(strstr(table_of(tr), "v₁    log x₁     nan    x₁\n"));
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "log(x)", COT_F64, 0, NULL);
    assert_true(starts(text_of(f), "{\"value\":\"nan\",\"grad\":{}"));
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void an_inactive_value(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    assert_string_equal(table(cot_sin(cot_constant(t, 0))),
                        "forward tape\n"
                        "node  operation  value  saves\n"
                        "0     constant   0\n"
                        "v₁    sin 0      0\n"
                        "\n"
                        "reverse sweep from v₁\n"
                        "v₁ depends on no leaf: there is nothing to sweep\n");
    cot_tape_destroy(t);
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void only_what_y_depends_on(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), unused = cot_scalar(t, 7);
    cot_exp(x);
    cot_var                y = cot_square(x);
    const cot__trace_input inputs[] = {{"x", x, true}, {"unused", unused, true}};
    char                   why[512];
    cot__trace            *tr = trace_of(y);
    assert_int_equal(tr->node_count, 2);
    assert_int_equal(tr->nodes[0].id, 0);
    assert_int_equal(tr->nodes[1].id, 3); /* numbers are those of the tape */
    cot__trace_free(tr);
    tr = cot__trace_make(&(cot__trace_request){.y = y, .input_count = 2, .inputs = inputs}, why);
    assert_int_equal(tr->node_count, 3); /* inputs are shown all the same */
    assert_int_equal(tr->step_count, 2);
    cot__view g;
    assert_false(cot__trace_adjoint(tr, 1, &g));
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "x**2", COT_F64, 2, inputs);
    assert_true(starts(text_of(f), "{\"value\":4,\"grad\":{\"x\":4,\"unused\":0},"));
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void detached_and_without_gradient(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.5), h = cot_sin(x), cut = cot_detach(h);
    cot_no_grad_open(t);
    cot_var still = cot_cos(x);
    cot_no_grad_close(t);
    cot_var     y = cot_mul(cot_mul(cut, x), still);
    cot__trace *tr = trace_of(y);
    assert_int_equal(tr->node_count, 6);
    assert_true(tr->nodes[1].active);   /* the sine */
    assert_false(tr->nodes[2].active);  /* the detached value */
    assert_false(tr->nodes[3].active);
    assert_int_equal(tr->step_count, 3); /* y, the inner product, x: nothing flows to the sine */
    assert_int_equal(tr->steps[1].add_count, 1);
    /* one product rounded in another order */
    assert_near(*(double *)tr->steps[1].adds[0].amount.data, sin(0.5) * cos(0.5), 1e-15);
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void numbers_in_calls(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_scalar(t, 2), y = cot_div(-3.5, x);
    cot__trace *tr = trace_of(y);
    char        buf[COT__TRACE_TEXT];
    assert_int_equal(tr->nodes[1].args[0], COT__NONE);
    assert_near(tr->nodes[1].number, -3.5, 0);
    assert_string_equal(cot__trace_call(tr, 1, buf, sizeof buf), "div -3.5 x₁");
    assert_string_equal(cot__trace_filled(tr, 0, 0, buf, sizeof buf), "-v̄₁·v₁/x₁");
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "-3.5/x", COT_F64, 0, NULL);
    assert_non_null(strstr(text_of(f), "\"op\":\"div\",\"args\":[null,0],\"numbers\":[-3.5,null],"));
    cot__trace_free(tr);
    tr = trace_of(cot_mul(x, -2.0));
    assert_string_equal(cot__trace_filled(tr, 0, 0, buf, sizeof buf), "v̄₂·(-2)");
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

/* ---- tensors and dtypes ---------------------------------------------------------------------- */

static void matrices(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   w = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2, 2), (double[]){1, 2, 3, 4}), "W");
    cot_var   v = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, -1}), "v");
    cot_var   y = cot_sum(cot_matmul(w, v), COT_ALL);
    assert_non_null(strstr(table(y),
                           "v̄₂    1                v̄₁  v̄₂ broadcast  [1 1]            [1 1]\n"
                           "v̄₁    [1 1]            W̄   v̄₁ @ vᵀ       [[1 -1] [1 -1]]  [[1 -1] [1 -1]]\n"
                           "                       v̄   Wᵀ @ v̄₁       [4 6]            [4 6]\n"
                           "v̄     [4 6]                the gradient\n"
                           "W̄     [[1 -1] [1 -1]]      the gradient\n"));
    cot_tape_destroy(t);
}

static void slices_are_written_as_people_index(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2, 4), NULL), "x");
    const char *text = table(cot_sum(cot_slice(x, 1, 1, 3, 1), COT_ALL));
    assert_non_null(strstr(text, "  x̄[:, 1:3] += v̄₁  "));
    assert_non_null(strstr(table(cot_sum(cot_slice(x, 1, 0, 4, 2), COT_ALL)), "  x̄[:, 0:3:2] += "));
    assert_non_null(strstr(table(cot_sum(cot_index(x, 0, 1), COT_ALL)), "  x̄[1] += "));
    assert_non_null(strstr(table(cot_sum(cot_flip(x, COT_AXES(0)), COT_ALL)), "  x̄[1::-1] += "));
    cot_tape_destroy(t);
}

static void parts_add_up(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(3), (double[]){1, 2, 3});
    cot_var   i = cot_data(t, COT_I64, COT_SHAPE(3), (int64_t[]){0, 0, 2}), taken = cot_take(x, i, 0),
            part              = cot_slice(x, 0, 1, 3, 1);
    cot_var   y = cot_add(cot_sum(taken, COT_ALL), cot_sum(part, COT_ALL));
    cot__trace *tr = trace_of(y);
    double      amounts[2][3] = {{0, 1, 1}, {2, 0, 1}}, sums[2][3] = {{0, 1, 1}, {2, 1, 2}};
    int         seen = 0;
    for (int64_t s = 0; s < tr->step_count; s++)
        for (int k = 0; k < tr->steps[s].add_count; k++) {
            if (tr->steps[s].adds[k].to != 0) continue;
            assert_memory_equal(tr->steps[s].adds[k].amount.data, amounts[seen], sizeof amounts[0]);
            assert_memory_equal(tr->steps[s].adds[k].sum.data, sums[seen], sizeof sums[0]);
            seen++;
        }
    assert_int_equal(seen, 2);
    assert_non_null(strstr(table_of(tr), "i64 [0 0 2]"));
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void empty_tensors(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_tensor(t, COT_F64, COT_SHAPE(0, 3), NULL), y = cot_sum(cot_square(x), COT_ALL);
    cot__trace *tr = trace_of(y);
    assert_int_equal(tr->step_count, 3);
    assert_non_null(strstr(table_of(tr), "x₁    leaf               (0,3) []\n"));
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "", COT_F64, 0, NULL);
    assert_non_null(strstr(text_of(f), "\"shape\":[0,3],\"value\":[],"));
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void large_tensors(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x = cot_tensor(t, COT_F32, COT_SHAPE(100, 100), NULL), y = cot_sum(cot_cos(x), COT_ALL);
    cot__trace *tr = trace_of(y);
    assert_non_null(strstr(table_of(tr), "v₁    cos x₁             f32 1 everywhere  x₁\n"));
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "sum(cos(x))", COT_F32, 0, NULL);
    rewind(f);
    char *all = calloc(1, 1 << 20);
    size_t n = fread(all, 1, (1 << 20) - 1, f);
    fclose(f);
    assert_true(n > 0 && n < 1 << 18);
    assert_non_null(strstr(all, "{\"elided\":true,\"count\":10000,\"min\":1,\"max\":1,\"mean\":1,\"grid\":[[1,1,"));
    free(all);
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void other_dtypes(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar_of(t, COT_BF16, 1.5), k = cot_data(t, COT_I64, COT_SCALAR, (int64_t[]){3});
    cot_var   big = cot_greater(k, 2.0), y = cot_where(big, cot_mul(x, x), x), z = cot_cast(y, COT_F32);
    cot__trace            *tr;
    const cot__trace_input inputs[] = {{"x", x, true}, {"k", k, false}};
    char                   why[512];
    tr = cot__trace_make(&(cot__trace_request){.y = cot_mul(z, 0.1), .input_count = 2, .inputs = inputs}, why);
    const char *text = table_of(tr);
    assert_non_null(strstr(text, "bf16 1.5\n"));
    assert_non_null(strstr(text, "i64 3\n"));
    assert_non_null(strstr(text, "true\n"));
    assert_non_null(strstr(text, "f32 0.225\n"));
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "", COT_BF16, 2, inputs);
    text = text_of(f);
    /* 0.3 rounded to bf16 */
    assert_true(starts(text, "{\"value\":0.22500001,\"grad\":{\"x\":0.30078125},"));
    assert_non_null(strstr(text, "\"dtype\":\"bool\",\"shape\":[],\"value\":true,\"active\":false"));
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

/* An operation of the user's, with a rule in numbers only: z = x y². */
static int wave(int n, const cot_array *xs, cot_array *z, void *user) {
    (void)n, (void)user;
    const double *x = xs[0].data, *y = xs[1].data;
    for (int64_t i = 0; i < z->size; i++) ((double *)z->data)[i] = x[i] * y[i] * y[i];
    return 0;
}
static int wave_vjp(int n, const cot_array *xs, const cot_array *z, const cot_array *g, cot_array *bars, void *user) {
    (void)n, (void)user;
    const double *x = xs[0].data, *y = xs[1].data, *gs = g->data;
    for (int64_t i = 0; i < z->size; i++) {
        ((double *)bars[0].data)[i] += gs[i] * y[i] * y[i];
        ((double *)bars[1].data)[i] += gs[i] * 2 * x[i] * y[i];
    }
    return 0;
}

static void custom_operations(void **state) {
    (void)state;
    static const cot_custom op = {.name = "wave", .value = wave, .vjp_numbers = wave_vjp};
    cot_tape   *t = cot_tape_create(NULL);
    cot_var                 x  = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}),
            y                  = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){3, 4});
    cot__trace *tr = trace_of(cot_call(&op, 2, (cot_var[]){x, y}, NULL));
    char        buf[COT__TRACE_TEXT];
    assert_string_equal(tr->why, "");
    assert_int_equal(tr->steps[0].add_count, 2);
    assert_memory_equal(tr->steps[0].adds[0].amount.data, ((double[]){9, 16}), 16);
    assert_memory_equal(tr->steps[0].adds[1].amount.data, ((double[]){6, 16}), 16);
    assert_string_equal(cot__trace_call(tr, 2, buf, sizeof buf), "wave x₁ x₂");
    assert_string_equal(cot__trace_rule(tr, 0, 0, buf, sizeof buf), "the rule of wave, z̄");
    assert_string_equal(cot__trace_filled(tr, 0, 1, buf, sizeof buf), "the rule of wave, v̄₁");
    cot__trace_free(tr);
    assert_ok(t);
    cot_tape_destroy(t);
}

static void products_of_scalars_read_their_partners(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot_var     x[4];
    char        buf[COT__TRACE_TEXT];
    for (int i = 0; i < 4; i++) x[i] = cot_scalar(t, i + 1);
    cot__trace *tr = trace_of(cot_dot_of(2, x, x + 2));
    assert_string_equal(cot__trace_saved(tr, 4, 0, buf, sizeof buf), "x");
    assert_string_equal(cot__trace_saved(tr, 4, 1, buf, sizeof buf), "y");
    assert_null(cot__trace_saved(tr, 4, 2, buf, sizeof buf));
    assert_int_equal(tr->steps[0].adds[1].to, 2); /* pair by pair */
    assert_string_equal(cot__trace_filled(tr, 0, 1, buf, sizeof buf), "v̄₁·x₁");
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

/* ---- writes in place ------------------------------------------------------------------------- */

static void writes_in_place(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), z = cot_mul(x, 3.0);
    cot_add_into(&z, x);
    const char *text = table(cot_sum(z, COT_ALL));
    assert_non_null(strstr(text, "mul x₁ 3         (overwritten)\n"));
    assert_non_null(strstr(text, "x̄₁    [4 4]        the gradient\n"));
    /* a value that a rule needs is gone: the tape is still shown, and the reason */
    cot_var h = cot_mul(x, 1.0), e = cot_exp(h), y = cot_sum(e, COT_ALL);
    cot_mul_into(&e, cot_number(2));
    cot__trace *tr = trace_of(y);
    assert_int_equal(tr->step_count, 0);
    assert_non_null(strstr(tr->why, "was overwritten by"));
    text = table_of(tr);
    assert_non_null(strstr(text, "error: [sweep] exp"));
    FILE     *f = tmpfile();
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "", COT_F64, 0, NULL);
    assert_non_null(strstr(text_of(f), "\"value\":null,\"active\":true"));
    cot__trace_free(tr);
    /* the same for an operation whose rule runs in recorded operations */
    z = cot_softmax(x, 0), y = cot_sum(z, COT_ALL);
    cot_mul_into(&z, cot_number(2));
    tr = trace_of(y);
    assert_non_null(strstr(tr->why, "[sweep] softmax"));
    cot__trace_free(tr);
    assert_ok(t);
    cot_tape_destroy(t);
}

/* ---- seeds and requests ---------------------------------------------------------------------- */

static void seeds(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F32, COT_SHAPE(2), (float[]){1, 2}), y = cot_mul(x, 2.0);
    cot_var   seed = cot_data(t, COT_F64, COT_SHAPE(2), (double[]){0.1, -1}), number = cot_number(3),
            wrong = cot_zeros(t, COT_F64, COT_SHAPE(3));
    char      why[512];
    cot__view g;
    cot__trace *tr = cot__trace_make(&(cot__trace_request){.y = y, .seed = &seed}, why);
    assert_true(cot__trace_adjoint(tr, 0, &g));
    assert_near(((float *)g.data)[0], (double)(0.1f * 2), 0);
    assert_near(((float *)g.data)[1], -2, 0);
    assert_int_equal(tr->seed.dtype, COT_F32);
    cot__trace_free(tr);
    tr = cot__trace_make(&(cot__trace_request){.y = y, .seed = &number}, why);
    assert_true(cot__trace_adjoint(tr, 0, &g));
    assert_near(((float *)g.data)[1], 6, 0);
    assert_int_equal(tr->seed.ndim, 0);
    cot__trace_free(tr);
    assert_null(cot__trace_make(&(cot__trace_request){.y = y, .seed = &wrong}, why));
    assert_string_equal(why, "[trace] the seed has shape (3,) and y (2,); they must be equal, or the seed one number");
    assert_ok(t);
    cot_tape_destroy(t);
}

static void what_cannot_be_traced(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL), *other = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 1), far = cot_scalar(other, 1);
    char      why[512];
    assert_null(cot__trace_make(&(cot__trace_request){.y = cot_number(1)}, why));
    assert_string_equal(why, "[trace] y is not a value on the tape");
    assert_null(cot__trace_make(&(cot__trace_request){.y = {t, UINT64_MAX}}, why));
    assert_string_equal(why, "[trace] y is not a value on the tape");
    assert_null(cot__trace_make(&(cot__trace_request){.y = x, .seed = &far}, why));
    assert_string_equal(why, "[trace] the seed is not a value on the tape");
    assert_null(cot__trace_make(
        &(cot__trace_request){.y = x, .input_count = 1, .inputs = &(cot__trace_input){"far", far, true}}, why));
    assert_string_equal(why, "[trace] an input is not a value on the tape");
    cot_matmul(x, x);
    assert_null(cot__trace_make(&(cot__trace_request){.y = x}, why));
    assert_string_equal(why, cot_tape_message(t));
    cot__trace_free(NULL);
    cot_tape_destroy(other);
    cot_tape_destroy(t);
}

static void leaves_alone(void **state) {
    (void)state;
    cot_tape   *t = cot_tape_create(NULL);
    cot__trace *tr = trace_of(cot_scalar(t, 4));
    assert_int_equal(tr->node_count, 1);
    assert_int_equal(tr->step_count, 1);
    assert_int_equal(tr->steps[0].add_count, 0);
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void columns_and_cuts(void **state) {
    (void)state;
    char buf[64];
    assert_int_equal(cot__columns("x̄·y"), 3);      /* x and a combining bar */
    assert_int_equal(cot__columns("ā @ bᵀ"), 6);
    assert_int_equal(cot__columns("\xe5\x90\x8d"), 2); /* a wide character */
    assert_int_equal(cot__columns(""), 0);
    assert_string_equal(cot__fit("abcdef", 6, buf, sizeof buf), "abcdef");
    assert_string_equal(cot__fit("abcdef", 4, buf, sizeof buf), "abc…");
    assert_string_equal(cot__fit("x̄·ȳ·z̄", 4, buf, sizeof buf), "x̄·ȳ…");
    assert_string_equal(cot__fit("\xe5\x90\x8d\xe5\x90\x8d", 3, buf, sizeof buf), "\xe5\x90\x8d…");
    /* a small buffer cuts too, between characters */
    assert_string_equal(cot__fit("abcdefghij", 9, buf, 8), "abcd…");
}

static void lines_fit(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_name(cot_tensor(t, COT_F64, COT_SHAPE(2, 3), (double[]){1e-10, 2.123456, 3, 4, 5, 6e20}),
                           "a_long_name_for_an_input");
    cot_var   y = cot_sum(cot_softmax(cot_mul(cot_gelu_tanh(x), cot_sum(x, COT_KEEP(1))), 1), COT_ALL);
    for (int width = 60; width <= 200; width += 20) {
        cot__trace *tr = trace_of(y);
        FILE       *f = tmpfile();
        char        line[2048];
        cot__trace_table(f, tr, (cot__trace_look){.width = width});
        rewind(f);
        while (fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = 0;
            TEST_CHECK(cot__columns(line) <= width, "%d columns instead of %d: %s", cot__columns(line), width, line);
            TEST_CHECK(!*line || line[strlen(line) - 1] != ' ', "blanks at the end: '%s'", line);
        }
        fclose(f);
        cot__trace_free(tr);
    }
    cot_tape_destroy(t);
    test_verdict();
}

static void very_many_operands(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    enum { N = 1000 };
    cot_var *x = calloc(N, sizeof *x);
    for (int i = 0; i < N; i++) x[i] = cot_scalar(t, i);
    cot__trace *tr = trace_of(cot_sum_of(N, x));
    char        buf[COT__TRACE_TEXT];
    size_t      n = strlen(cot__trace_call(tr, N, buf, sizeof buf));
    assert_true(n < sizeof buf && n > 900);
    assert_string_equal(buf + n - 4, " …");
    assert_int_equal(tr->steps[0].add_count, N);
    cot__trace_free(tr);
    free(x);
    cot_tape_destroy(t);
}

/* ---- memory and size ------------------------------------------------------------------------- */

static void memory_may_run_out(void **state) {
    (void)state;
    int failures = 0;
    for (long n = 1;; n++) {
        counting  count = {0};
        cot_tape *t = counted_tape(&count, false);
        cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(70, 70), NULL), h = cot_tanh(cot_matmul(x, cot_transpose(x)));
        cot_var   y = cot_sum(cot_add(cot_softmax(h, 1), h), COT_ALL);
        char      why[512];
        int64_t   length = cot_tape_length(t);
        cot_tape_trim(t);
        count.fail_at = count.requests + n;
        cot__trace *tr = cot__trace_make(&(cot__trace_request){.y = y}, why);
        count.fail_at = 0;
        assert_true(tr || count.failed);
        if (!tr) {
            assert_string_equal(why, "[trace] out of memory: the trace of a tape of 7 nodes");
            failures++;
        } else if (count.failed)
            assert_string_equal(tr->why, ""); /* a failure that did not matter */
        cot__trace_free(tr);
        assert_ok(t);
        assert_int_equal(cot_tape_length(t), length);
        tr = trace_of(y); /* and again */
        assert_int_equal(tr->step_count, 7);
        cot__trace_free(tr);
        cot_tape_destroy(t);
        assert_int_equal(count.live, 0);
        assert_false(count.wrong_size);
        if (!count.failed) break;
    }
    assert_true(failures > 10);
}

static void long_tape(int n, bool tables) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 0.25), y = x;
    for (int i = 0; i < n; i++) y = i % 2 ? cot_mul(y, x) : cot_add(y, x);
    cot__trace *tr = trace_of(y);
    assert_int_equal(tr->node_count, n + 1);
    assert_int_equal(tr->step_count, n + 1);
    FILE *f = fopen("/dev/null", "w");
    assert_non_null(f);
    cot__json j = cot__json_to(f);
    cot__trace_json(&j, tr, "", COT_F64, 0, NULL);
    if (tables) cot__trace_table(f, tr, (cot__trace_look){0}), cot__trace_dot(f, tr);
    fclose(f);
    cot_backward(y);
    cot__view g;
    assert_true(cot__trace_adjoint(tr, 0, &g));
    assert_near(*(double *)g.data, cot_grad_value(x), 0);
    cot__trace_free(tr);
    cot_tape_destroy(t);
}

static void a_long_tape(void **state) {
    (void)state;
    long_tape(test_small() ? 5000 : 50000, true);
    long_tape(test_small() ? 20000 : 1000000, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worked_example_as_data), cmocka_unit_test(the_worked_example_as_a_table),
        cmocka_unit_test(colours_when_asked),         cmocka_unit_test(the_worked_example_as_json),
        cmocka_unit_test(a_kink_is_reported_as_json), cmocka_unit_test(tangents_are_walked_for_each_input),
        cmocka_unit_test(tangents_are_walked_for_each_place),
        cmocka_unit_test(the_worked_example_as_a_graph), cmocka_unit_test(a_reused_variable),
        cmocka_unit_test(a_kink_and_a_zero),          cmocka_unit_test(a_nan),
        cmocka_unit_test(an_inactive_value),          cmocka_unit_test(only_what_y_depends_on),
        cmocka_unit_test(detached_and_without_gradient), cmocka_unit_test(numbers_in_calls),
        cmocka_unit_test(slices_are_written_as_people_index),
        cmocka_unit_test(matrices),                   cmocka_unit_test(parts_add_up),
        cmocka_unit_test(empty_tensors),              cmocka_unit_test(large_tensors),
        cmocka_unit_test(other_dtypes),               cmocka_unit_test(writes_in_place),
        cmocka_unit_test(seeds),                      cmocka_unit_test(what_cannot_be_traced),
        cmocka_unit_test(leaves_alone),               cmocka_unit_test(columns_and_cuts),
        cmocka_unit_test(lines_fit),                  cmocka_unit_test(very_many_operands),
        cmocka_unit_test(memory_may_run_out),         cmocka_unit_test(a_long_tape),
        cmocka_unit_test(custom_operations),          cmocka_unit_test(products_of_scalars_read_their_partners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
