/* The marks of a flow over a tape, node by node, for each kind of edge. */
#include "support/support.h"

#include <string.h>

#include "tape/flow.h"

/* A tape with one of everything that flows tell apart. */
typedef struct sample {
    cot_tape *t;
    uint32_t  x, c;      /* a leaf (3,), and a constant */
    uint32_t  index;     /* positions, computed from x: argsort */
    uint32_t  taken;     /* take(x, index) */
    uint32_t  half;      /* 0.5 * taken: an immediate */
    uint32_t  silent;    /* 2 * half, recorded without gradients */
    uint32_t  beside;    /* exp(c): depends on no leaf */
    uint32_t  joined;    /* concat of silent, half, beside and x: n-ary */
    uint32_t  end;
} sample;

static sample open_sample(void) {
    sample  s = {.t = cot_tape_create(NULL)};
    cot_var x = cot_tensor(s.t, COT_F64, COT_SHAPE(3), (double[]){3, 1, 2});
    cot_var c = cot_ones(s.t, COT_F64, COT_SHAPE(3));
    cot_var index = cot_argsort(x, 0, false), taken = cot_take(x, index, 0), half = cot_mul(0.5, taken);
    cot_no_grad_open(s.t);
    cot_var silent = cot_mul(2, half);
    cot_no_grad_close(s.t);
    cot_var beside = cot_exp(c), list[] = {silent, half, beside, x};
    cot_var joined = cot_concat(4, list, 0);
    assert_int_equal(cot_tape_status(s.t), COT_OK);
    s.x = cot__index(x), s.c = cot__index(c), s.index = cot__index(index), s.taken = cot__index(taken);
    s.half = cot__index(half), s.silent = cot__index(silent), s.beside = cot__index(beside);
    s.joined = cot__index(joined), s.end = s.t->count;
    return s;
}

/* Which of the sample's nodes are marked, as a text of their letters. */
static const char *marked(const sample *s, const cot__flow *w, uint8_t bit) {
    static char    text[16];
    const uint32_t nodes[] = {s->x, s->c, s->index, s->taken, s->half, s->silent, s->beside, s->joined};
    const char    *letters = "xcithsbj";
    int            n = 0;
    for (int k = 0; k < TEST_COUNT(nodes); k++)
        if (cot__flow_mark(w, nodes[k]) & bit) text[n++] = letters[k];
    text[n] = 0;
    return text;
}

typedef struct expected { cot__edges edges; const char *down, *up; } expected;

static void test_each_kind_of_edge_marks_what_it_says(void **state) {
    (void)state;
    /* down from the joined value, up from x */
    static const expected table[] = {
        {COT__EDGES_ALL, "xcithsbj", "xithsj"},
        {COT__EDGES_VALUES, "xithsbj", "xthj"},
        {COT__EDGES_MOVING, "xthsbj", "xthj"},
        {COT__EDGES_SWEPT, "xthj", "xthj"},
        {COT__EDGES_DIFFERENTIABLE, "xcthsbj", "xthsj"},
    };
    sample s = open_sample();
    for (int k = 0; k < TEST_COUNT(table); k++) {
        cot__flow w;
        assert_true(cot__flow_open(&w, s.t, 0, s.end));
        cot__flow_start(&w, 1, &s.joined, 1);
        cot__flow_start(&w, 1, &s.x, 2);
        assert_true(cot__flow_down(&w, 1, table[k].edges));
        assert_true(cot__flow_up(&w, 2, table[k].edges));
        TEST_CHECK(!strcmp(marked(&s, &w, 1), table[k].down), "edges %d down: %s, not %s", k, marked(&s, &w, 1),
                   table[k].down);
        TEST_CHECK(!strcmp(marked(&s, &w, 2), table[k].up), "edges %d up: %s, not %s", k, marked(&s, &w, 2),
                   table[k].up);
        cot__flow_close(&w);
    }
    cot_tape_destroy(s.t);
    test_verdict();
}

/* A cast has a derivative, but an integer none. */
static void test_integers_are_not_differentiable(void **state) {
    (void)state;
    sample    s = open_sample();
    uint32_t  whole = cot__index(cot_cast(VAR(s.t, s.x), COT_I64));
    cot__flow w;
    assert_true(cot__flow_open(&w, s.t, 0, s.t->count));
    cot__flow_start(&w, 1, &s.x, 1);
    assert_true(cot__flow_meets(&w, whole, 1, COT__EDGES_ALL));
    assert_false(cot__flow_meets(&w, whole, 1, COT__EDGES_DIFFERENTIABLE));
    cot__flow_close(&w);
    cot_tape_destroy(s.t);
}

static void test_a_value_overwritten_as_a_whole_counts_only_where_all_operands_do(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_tensor(t, COT_F64, COT_SHAPE(2), (double[]){1, 2}), y = cot_exp(x), z = cot_copy(x);
    uint32_t  old = cot__index(z);
    assert_int_equal(cot_copy_into(&z, y), COT_OK);
    uint32_t top = cot__index(z);
    for (int k = 0; k < 2; k++) {
        uint8_t *needed = cot__needed(t, 0, top, 1, &top, k ? COT__EDGES_ALL : COT__EDGES_VALUES);
        assert_non_null(needed);
        assert_int_equal(needed[old] & 1, k);
        assert_int_equal(needed[cot__index(y)] & 1, 1);
        cot__free(&t->al, needed, (size_t)top + 1);
    }
    cot_tape_destroy(t);
}

static void test_the_last_use_of_an_operand_is_told_once(void **state) {
    (void)state;
    cot_tape *t = cot_tape_create(NULL);
    cot_var   x = cot_scalar(t, 2), y = cot_mul(x, x), z = cot_add(x, y);
    uint32_t  top = cot__index(z);
    uint8_t  *needed = cot__needed(t, 0, top, 1, &top, COT__EDGES_MOVING);
    assert_non_null(needed);
    assert_int_equal(needed[top], 1 | 2 | 4);     /* x and y: nothing later uses them */
    assert_int_equal(needed[cot__index(y)], 1);   /* z uses x later */
    cot__free(&t->al, needed, (size_t)top + 1);
    top = cot__index(y);
    needed = cot__needed(t, 0, top, 1, &top, COT__EDGES_MOVING);
    assert_int_equal(needed[top], 1 | 2); /* x twice: the first time */
    cot__free(&t->al, needed, (size_t)top + 1);
    cot_tape_destroy(t);
}

/* Nodes before a range carry a mark into it only if the caller asks for that. */
static void test_operands_before_the_range_count_where_asked(void **state) {
    (void)state;
    sample s = open_sample();
    for (int outside = 0; outside < 2; outside++) {
        cot__flow w;
        assert_true(cot__flow_open(&w, s.t, s.half, s.end));
        w.outside = outside;
        assert_true(cot__flow_up(&w, 1, COT__EDGES_ALL));
        assert_string_equal(marked(&s, &w, 1), outside ? "hsbj" : "");
        assert_int_equal(cot__flow_mark(&w, COT__NONE), 0);
        assert_int_equal(cot__flow_meets(&w, s.half, 1, COT__EDGES_ALL), outside);
        cot__flow_close(&w);
    }
    cot_tape_destroy(s.t);
}

typedef struct visits { const sample *s; cot__onward at_half; int count; } visits;

static cot__onward visit(cot__flow *w, uint32_t i) {
    visits *v = w->ctx;
    v->count++;
    return i == v->s->half ? v->at_half : COT__FLOW_ON;
}

static void test_a_visitor_may_stop_a_flow_or_keep_it_from_going_on(void **state) {
    (void)state;
    sample s = open_sample();
    for (int k = 0; k < 3; k++) {
        visits    v = {&s, (cot__onward)k, 0};
        cot__flow w;
        assert_true(cot__flow_open(&w, s.t, 0, s.end));
        w.visit = visit, w.ctx = &v;
        cot__flow_start(&w, 1, &s.taken, 1);
        assert_int_equal(cot__flow_up(&w, 1, COT__EDGES_ALL), k != COT__FLOW_STOP);
        assert_string_equal(marked(&s, &w, 1), k == COT__FLOW_ON ? "thsj" : "t");
        assert_int_equal(v.count, k == COT__FLOW_ON ? 3 : 1);
        cot__flow_start(&w, 1, &s.half, 2);
        assert_int_equal(cot__flow_down(&w, 2, COT__EDGES_ALL), k != COT__FLOW_STOP);
        assert_string_equal(marked(&s, &w, 2), k == COT__FLOW_ON ? "xith" : "h");
        cot__flow_close(&w);
    }
    cot_tape_destroy(s.t);
}

/* A node that the flow starts from is seen too, when an operand of it is marked. */
static void test_up_shows_the_visitor_nodes_that_are_marked_already(void **state) {
    (void)state;
    sample    s = open_sample();
    visits    v = {&s, COT__FLOW_ON, 0};
    uint32_t  both[] = {s.taken, s.half};
    cot__flow w;
    assert_true(cot__flow_open(&w, s.t, 0, s.end));
    w.visit = visit, w.ctx = &v;
    cot__flow_start(&w, 2, both, 1);
    assert_true(cot__flow_up(&w, 1, COT__EDGES_MOVING));
    assert_int_equal(v.count, 2); /* half and joined: silent has no edges */
    cot__flow_close(&w);
    cot_tape_destroy(s.t);
}

static void *refuse(void *ctx, void *p, size_t old, size_t new) {
    return (void)ctx, (void)p, (void)old, (void)new, NULL;
}

static void test_where_memory_is_short_nothing_is_marked_and_no_error_set(void **state) {
    (void)state;
    sample        s = open_sample();
    cot_allocator before = s.t->al;
    cot__flow     w;
    s.t->al = (cot_allocator){refuse, NULL};
    assert_false(cot__flow_open(&w, s.t, 0, s.end));
    cot__flow_close(&w);
    assert_null(cot__needed(s.t, 0, s.joined, 1, &s.joined, COT__EDGES_ALL));
    s.t->al = before;
    assert_int_equal(cot_tape_status(s.t), COT_OK);
    cot_tape_destroy(s.t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kind_of_edge_marks_what_it_says),
        cmocka_unit_test(test_integers_are_not_differentiable),
        cmocka_unit_test(test_a_value_overwritten_as_a_whole_counts_only_where_all_operands_do),
        cmocka_unit_test(test_the_last_use_of_an_operand_is_told_once),
        cmocka_unit_test(test_operands_before_the_range_count_where_asked),
        cmocka_unit_test(test_a_visitor_may_stop_a_flow_or_keep_it_from_going_on),
        cmocka_unit_test(test_up_shows_the_visitor_nodes_that_are_marked_already),
        cmocka_unit_test(test_where_memory_is_short_nothing_is_marked_and_no_error_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
