/* Exported C of every operation in every dtype that it takes: it compiles with strict warnings and
 * gives the library's bits. Values alone; test_emit.c has gradients. */
/* ctest: timeout=600 plain-only */
#define _GNU_SOURCE /* mkdtemp, open_memstream */
#include "program/emit_functions.h"
#include "support/tape_test.h"

enum { LENGTH = 12 };

static emitted all;

/* ---- functions ------------------------------------------------------------------------------- */

/* An elementwise operation, whose number is given. */
SAMPLE(on_arrays) {
    int     op = *(int *)user;
    cot_var own[3] = {op == OP_where ? cot_greater(x[0], x[1]) : x[0], x[1], x[2]};
    (void)n;
    return test_call(op, own);
}
SAMPLE(on_scalars) {
    cot_var own[3];
    for (int k = 0; k < n; k++) own[k] = cot_index(x[k], 0, 3);
    return on_arrays(n, own, user);
}

/* With a plain number: inside and outside of what the dtype holds. */
SAMPLE(with_numbers) {
    int     op = *(int *)user;
    (void)n;
    cot_var z = cot_constant(x[0].tape, 0);
    if (op == OP_where || op == OP_polygamma || cot__elementwise_arity(op) != 2) return INVALID(x[0].tape);
    for (int k = 0; k < 4; k++) {
        cot_var number = cot_number((const double[]){0, 255, -1, 300}[k]);
        z = cot_add(z, cot_sum(cot_cast(test_call(op, (cot_var[]){x[0], number}), COT_F64), COT_ALL));
        z = cot_add(z, cot_sum(cot_cast(test_call(op, (cot_var[]){number, x[1]}), COT_F64), COT_ALL));
        z = cot_mul(z, 0.5);
    }
    return cot_add(z, cot_sum(cot_cast(x[2], COT_F64), COT_ALL));
}

static test_function elementwise_function(int op, cot_function of) {
    static int    numbers[OP_elementwise_count];
    test_function f = {.name = cot__op_of(op)->name, .f = of, .n = 3, .user = &numbers[op]};
    test_random   random = test_random_of(f.name, 0);
    numbers[op] = op;
    for (int k = 0; k < 3; k++) f.in[k].shape = COT_SHAPE(LENGTH);
    test_fill(&f, &random, -3, 3);
    return f;
}

/* Integers are to differ, also where they are not negative. */
static test_function scaled(test_function f, cot_dtype dtype) {
    double by = dtype == COT_U8 ? 90 : dtype == COT_BOOL ? 0.6 : 3;
    for (int k = 0; !cot__dtype_is_float(dtype) && k < f.n; k++)
        for (int i = 0; i < TEST_MAX_SIZE; i++) f.in[k].data[i] *= by;
    return f;
}

/* ---- several of them ------------------------------------------------------------------------- */

static int values_of_group(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const group *g = user;
    (void)n, (void)m;
    for (int k = 0; k < g->count; xs += g->f[k++].n) ys[k] = g->f[k].f(g->f[k].n, xs, g->f[k].user);
    return 0;
}

/* Does it take the dtype, and can it be exported at all? */
static bool can_be_exported(const test_function *f, cot_dtype dtype) {
    cot_tape    *t = cot_tape_create(NULL);
    char         text[8];
    cot_var      xs[TEST_MAX_INPUTS], y;
    emit_refusal why = {""};
    cot__caller  caller = {"compile", &why, emit_hear, NULL, NULL};
    cot__text    nothing = cot__text_buffer(text, sizeof text);
    group        g = {.f = {*f}, .count = 1, .inputs = f->n};
    inputs_of(t, f, dtype, xs);
    values_of_group(f->n, xs, 1, &y, &g);
    bool taken = cot_tape_status(t) == COT_OK;
    cot__program *p = taken ? compiled(t, values_of_group, &g, f->n, xs, 1) : NULL;
    bool ok = p && p->inputs == (uint32_t)f->n &&
              cot__program_emit_c(p, &(cot__emit_options){.name = "f"}, NULL, &nothing, NULL, &caller);
    if (getenv("COT_TEST_TELL") && !ok)
        print_message("%s of %s: %s\n", f->name, cot__dtype_name(dtype), p ? why.text : cot_tape_message(t));
    cot__program_release(p);
    cot_tape_destroy(t);
    return ok;
}

static int taken[COT_DTYPE_COUNT];

static void close_group(group *g, cot_dtype dtype) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[MOST_INPUTS];
    for (int k = 0, at = 0; k < g->count; at += g->f[k++].n) inputs_of(t, &g->f[k], dtype, xs + at);
    if (g->count)
        TEST_CHECK(add_function(&all, t, g->f[0].name, values_of_group, g, g->inputs, xs, g->count),
                   "%s of %s and what follows are refused together: %s", g->f[0].name, cot__dtype_name(dtype),
                   cot_tape_message(t));
    taken[dtype] += g->count;
    g->count = g->inputs = 0;
    cot_tape_destroy(t);
}

static void take(group *g, const test_function *plain, cot_dtype dtype) {
    test_function f = scaled(*plain, dtype);
    if (!can_be_exported(&f, dtype)) return;
    if (g->count == TEST_COUNT(g->f) || g->inputs + f.n > MOST_INPUTS) close_group(g, dtype);
    g->f[g->count++] = f;
    g->inputs += f.n;
}

static void take_all(cot_dtype dtype) {
    static group g;
    static const cot_function ways[] = {on_arrays, on_scalars, with_numbers};
    for (int op = 0; op < 3 * OP_elementwise_count; op++) {
        test_function f = elementwise_function(op / 3, ways[op % 3]);
        take(&g, &f, dtype);
    }
    for (int k = 0; k < TEST_COUNT(samples); k++) {
        test_function f = function_of(&samples[k], k, 0);
        take(&g, &f, dtype);
    }
    close_group(&g, dtype);
}

/* ---- what is promised ------------------------------------------------------------------------ */

static void every_operation_in_every_dtype_has_the_librarys_bits(void **state) {
    (void)state;
    for (cot_dtype d = COT_F32; d < COT_DTYPE_COUNT; d++) TEST_CHECK(taken[d] > 40, "few take %s", cot__dtype_name(d));
    emitted_compare(&all, "gcc -O0 -Wtype-limits", "");
    if (emit_has("clang") && !test_small()) emitted_compare(&all, "clang -O0 -Wtype-limits", "");
    test_verdict();
}

int main(void) {
    emitted_begin(&all);
    for (cot_dtype d = COT_F32; d < COT_DTYPE_COUNT; d++)
        if (!test_small() || d >= COT_I64) take_all(d);
    emitted_end(&all);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_in_every_dtype_has_the_librarys_bits),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    emitted_close(&all);
    return failed;
}
