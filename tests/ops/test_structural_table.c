/* Properties of every structural operation: loops over ops.def. A new line there needs one small
 * example in `samples` (samples.h), and is then covered by all of them; without one the tests
 * fail. */
/* ctest: timeout=120 */
#include "rules/structural_ids.h"
#include "samples/samples.h"
#include "support/support.h"

#include "base/parallel.h"
#include "rules/kinks.h"

#include <stdlib.h>
#include <string.h>

#define EACH_STRUCTURAL(op) for (int op = OP_structural; op < OP_count; op++)

static const char *const ids[OP_count] = {
#define STRUCTURAL(name) [OP_##name] = #name,
#include "rules/ops.def"
};

/* ---- the records ----------------------------------------------------------------------------- */

static void records_are_complete(void **state) {
    (void)state;
    EACH_STRUCTURAL(op) {
        const cot__op *o = cot__op_of(op);
        assert_non_null(o);
        TEST_CHECK(o->name && strcmp(o->name, ids[op]) == 0, "the record of %s calls itself %s", ids[op],
                   o->name ? o->name : "nothing");
        /* its rule is the user's: tests/ops/test_custom.c */
        if (op == OP_custom || op == OP_custom_numbers) continue;
        TEST_CHECK(o->formula && o->formula[0], "%s has no formula", ids[op]);
        switch (o->kind) {
        case KIND_NONE:
        case KIND_PICK:
        case KIND_SOURCE: TEST_CHECK(!o->vjp && !o->jvp, "%s has no derivative, but a rule", ids[op]); break;
        case KIND_LINEAR:
        case KIND_BILINEAR:
            TEST_CHECK(o->vjp && !o->jvp, "%s is (bi)linear: it brings vjp, and forward mode follows", ids[op]);
            break;
        case KIND_GENERIC: TEST_CHECK(o->vjp, "%s is generic and has no vjp", ids[op]); break;
        }
        TEST_CHECK(!o->apply || o->kind != KIND_SOURCE, "%s is a source and brings apply", ids[op]);
    }
    test_verdict();
}

/* No operation costs nothing for want of a word about it. */
static void records_state_a_cost_or_why_there_is_none(void **state) {
    (void)state;
    EACH_STRUCTURAL(op) {
        const cot__op_cost *c = &cot__op_of(op)->cost;
        bool counted = c->each_x > 0 || c->each_z > 0 || c->each_inner > 0 || c->each_cube > 0 || c->more ||
                       c->planned;
        TEST_CHECK(counted != (c->none && c->none[0]),
                   "%s: its record says %s; give .cost, or .cost.none with a reason", ids[op],
                   counted ? "what it costs, and that it costs nothing" : "nothing of its cost");
    }
    test_verdict();
}

/* The tape of a sample. */
static cot_tape *recorded(const test_function *f) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS];
    for (int k = 0; k < f->n; k++)
        xs[k] = f->in[k].shape.ndim ? cot_tensor(t, COT_F64, f->in[k].shape, f->in[k].data)
                                    : cot_scalar(t, f->in[k].data[0]);
    f->f(f->n, xs, f->user);
    test_tape_ok(t, f->name);
    return t;
}

static int words_of(const char *words) {
    int n = words[0] != 0;
    for (const char *p = words; *p; p++) n += *p == ' ';
    return n;
}

/* Each operand of every node has a name. */
static void records_name_their_operands(void **state) {
    (void)state;
    EACH_STRUCTURAL(op) {
        const char *words = cot__op_of(op)->operands;
        bool        source = cot__op_of(op)->kind == KIND_SOURCE;
        TEST_CHECK(source ? !words : words && words[0], "%s: its record has %s", ids[op],
                   source ? "operands, though it is a source" : "no .operands");
    }
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = recorded(&f);
        for (uint32_t node = 0; node < t->count; node++) {
            const char *words = cot__op_of(t->nodes[node].op)->operands;
            int         count = cot__nargs(&t->nodes[node]);
            TEST_CHECK(!words || strchr(words, '*') || count <= words_of(words),
                       "%s: %s has %d operands, and its record names %d", f.name, ids[t->nodes[node].op], count,
                       words_of(words));
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* Sweeps and patterns must know what becomes of the memory that a result has taken over. */
static void records_say_what_they_write_in_place(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = recorded(&f);
        for (uint32_t node = 0; node < t->count; node++) {
            const cot__op *o = cot__op_of(t->nodes[node].op);
            bool in_place = t->nodes[node].op >= OP_structural && (t->nodes[node].flags & COT__IN_PLACE);
            TEST_CHECK(!in_place || o->writes || o->same, "%s: %s works in place; its record has .writes, or .same",
                       f.name, o->name);
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* A convention is of use only if cot_report finds where it was applied; and every kink that is
 * found has a convention. */
static void records_find_the_kinks_that_have_a_convention(void **state) {
    (void)state;
    EACH_STRUCTURAL(op) {
        bool convention = false;
        for (int k = 0; k < ARRAY_KINK_count; k++) convention |= cot__array_kinks[k].op == op;
        TEST_CHECK(convention == (cot__op_of(op)->kinks != NULL), "%s: %s", ids[op],
                   convention ? "kinks.def has a convention, and its record no .kinks"
                              : "its record has .kinks, and kinks.def no convention");
    }
    test_verdict();
}

/* Without it, the pattern of an operation whose positions move would be dense. */
static void records_say_what_positions_choose(void **state) {
    (void)state;
    EACH_STRUCTURAL(op) {
        const cot__op *o = cot__op_of(op);
        bool given = o->kind == KIND_LINEAR && o->inactive, found = o->kind == KIND_GENERIC && o->results && o->jvp;
        TEST_CHECK(!given || o->choice.from, "%s: a linear operation with positions among its operands has .choice",
                   ids[op]);
        TEST_CHECK(given || found || !o->choice.from,
                   "%s: no other has one, except where positions are a further result", ids[op]);
    }
    test_verdict();
}

static bool begins(const char *words, const char *with) { return words && strncmp(words, with, strlen(with)) == 0; }

/* Groups of programs ask no operation by its name. */
static void records_say_how_groups_do_rows_and_reductions(void **state) {
    (void)state;
    EACH_STRUCTURAL(op) {
        const cot__op *o = cot__op_of(op);
        bool mixes = o->kind == KIND_GENERIC && (begins(o->attrs, "axis:a") || begins(o->attrs, "from:a"));
        bool reduces = begins(o->attrs, "axes:m");
        TEST_CHECK(mixes == (o->rows != 0), "%s: %s", ids[op],
                   mixes ? "it mixes an axis; its record has .rows, or COT__BY_ITSELF with a reason"
                         : "its record has .rows, and no axis that it mixes");
        TEST_CHECK(reduces == (o->fold != 0), "%s: %s", ids[op],
                   reduces ? "it reduces axes; its record has .fold, or COT__BY_ITSELF with a reason"
                           : "its record has .fold, and no axes that it reduces");
    }
    test_verdict();
}

/* Operands with rows begin with the axes in front of a row that the result has; others have no room
 * for these. */
static void operands_have_rows_as_records_say(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = recorded(&f);
        for (uint32_t node = 0; node < t->count; node++) {
            int       rows = cot__op_of(t->nodes[node].op)->rows, count = cot__nargs(&t->nodes[node]);
            cot_shape z = cot_shape_of(VAR(t, node));
            for (int k = 0; rows > 0 && k < count; k++) {
                int       axes = (int)t->nodes[node].extra.attr->ints[0];
                cot_shape x = cot_shape_of(VAR(t, cot__arg(&t->nodes[node], k)));
                bool      begins_so = x.ndim > axes && memcmp(x.dim, z.dim, (size_t)axes * sizeof *x.dim) == 0;
                TEST_CHECK(k < rows ? begins_so : x.ndim <= z.ndim - axes,
                           "%s: operand %d of %s %s rows, and its record has .rows = %d", f.name, k,
                           ids[t->nodes[node].op], k < rows ? "has no" : "has", rows);
            }
        }
        cot_tape_destroy(t);
    }
    test_verdict();
}

static bool tape_has(const cot_tape *t, int op) {
    for (uint32_t i = 0; i < t->count; i++)
        if (t->nodes[i].op == op) return true;
    return false;
}

static int op_named(const char *name) {
    EACH_STRUCTURAL(op) if (strcmp(ids[op], name) == 0) return op;
    return -1;
}

static void every_operation_has_a_sample_that_records_it(void **state) {
    (void)state;
    EACH_STRUCTURAL(op) {
        bool found = op == OP_custom || op == OP_custom_numbers; /* tests/ops/test_custom.c */
        /* what no tape records: tests/program/passes/test_pass_remake.c */
        found |= cot__op_of(op)->planned;
        for (int i = 0; i < TEST_COUNT(samples); i++) found |= samples[i].op && strcmp(samples[i].op, ids[op]) == 0;
        TEST_CHECK(found, "%s has no sample: add a small example to `samples` in tests/samples/samples.h", ids[op]);
    }
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        test_function f = function_of(&samples[i], i, 0);
        cot_tape     *t = cot_tape_create(NULL);
        cot_var       xs[TEST_MAX_INPUTS];
        for (int k = 0; k < f.n; k++)
            xs[k] = f.in[k].shape.ndim ? cot_tensor(t, COT_F32, f.in[k].shape, NULL) : cot_scalar_of(t, COT_F32, 0);
        f.f(f.n, xs, f.user);
        test_tape_ok(t, f.name);
        TEST_CHECK(!samples[i].op || tape_has(t, op_named(samples[i].op)), "%s does not record %s", f.name,
                   samples[i].op);
        cot_tape_destroy(t);
    }
    test_verdict();
}

/* ---- the rules ------------------------------------------------------------------------------- */

static void each_sample(void (*check)(const test_function *)) {
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int round = 0; round < (test_small() ? 1 : 10); round++) {
            test_function f = function_of(&samples[i], i, round);
            check(&f);
        }
    test_verdict();
}

static void differences(int order, int rounds) {
    for (int i = 0; i < TEST_COUNT(samples); i++) {
        int smooth = 0, round = 0;
        for (; smooth < rounds && round < 4 * rounds + 8; round++) {
            test_function f = function_of(&samples[i], i, round);
            smooth += test_differences(&f, order);
        }
        TEST_CHECK(smooth == rounds, "sample %d (%s): order %d: only %d of %d points look smooth", i,
                   samples[i].op ? samples[i].op : "composed", order, smooth, round);
    }
    test_verdict();
}

static void jvps_match_differences(void **state) {
    (void)state;
    differences(1, test_small() ? 1 : 10);
}
static void second_derivatives_match_differences(void **state) {
    (void)state;
    differences(2, test_small() ? 1 : 5);
}
static void third_derivatives_match_differences(void **state) {
    (void)state;
    differences(3, test_small() ? 1 : 3);
}
static void vjp_is_the_transpose_of_jvp(void **state) {
    (void)state;
    each_sample(test_transpose);
}
static void forward_over_reverse_is_reverse_over_reverse(void **state) {
    (void)state;
    each_sample(test_second_order);
}
static void backward_is_grad_of_to_the_bit(void **state) {
    (void)state;
    each_sample(test_numbers_as_recorded);
}
static void f32_is_near_f64(void **state) {
    (void)state;
    each_sample(test_single_precision);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The value and all gradients of a sample, in one row. */
static int64_t numbers_of(const test_function *f, cot_dtype dtype, double *out) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[TEST_MAX_INPUTS];
    int64_t   n = 0;
    for (int k = 0; k < f->n; k++) {
        float narrow[TEST_MAX_SIZE];
        for (int64_t i = 0; i < TEST_MAX_SIZE; i++) narrow[i] = (float)f->in[k].data[i];
        xs[k] = f->in[k].shape.ndim
                    ? cot_tensor(t, dtype, f->in[k].shape, dtype == COT_F64 ? (const void *)f->in[k].data : narrow)
                    : cot_scalar_of(t, dtype, f->in[k].data[0]);
    }
    cot_var y = f->f(f->n, xs, f->user), seed = cot_cos(cot_cast(y, dtype));
    n += cot_size(y);
    cot_read(y, out, n);
    cot_backward_seeded(y, seed);
    for (int k = 0; k < f->n; k++) {
        cot_var g = cot_grad(xs[k]);
        cot_read(g, out + n, cot_size(g));
        n += cot_size(g);
    }
    test_tape_ok(t, f->name);
    cot_tape_destroy(t);
    return n;
}

/* With a grain of 1 even these small operands are cut into parts. No result may show the cuts, or
 * which thread ran a part. */
static void threads_do_not_show(void **state) {
    (void)state;
    for (int i = 0; i < TEST_COUNT(samples); i++)
        for (int d = COT_F64; d <= COT_F32; d++) {
            test_function f = function_of(&samples[i], i, 0);
            double        alone[1024], shared[1024];
            cot_set_threads(1);
            int64_t n = numbers_of(&f, (cot_dtype)d, alone), usual = cot__grain;
            cot__grain = 1;
            for (int threads = 1; threads <= 8; threads = threads * 2 + (threads == 1)) {
                cot_set_threads(threads);
                numbers_of(&f, (cot_dtype)d, shared);
                test_same_array("cut into parts", f.name, n, shared, alone);
            }
            cot__grain = usual;
        }
    cot_set_threads(0);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_complete),
        cmocka_unit_test(records_name_their_operands),
        cmocka_unit_test(records_say_what_they_write_in_place),
        cmocka_unit_test(records_find_the_kinks_that_have_a_convention),
        cmocka_unit_test(records_say_what_positions_choose),
        cmocka_unit_test(records_say_how_groups_do_rows_and_reductions),
        cmocka_unit_test(operands_have_rows_as_records_say),
        cmocka_unit_test(records_state_a_cost_or_why_there_is_none),
        cmocka_unit_test(every_operation_has_a_sample_that_records_it),
        cmocka_unit_test(jvps_match_differences),
        cmocka_unit_test(second_derivatives_match_differences),
        cmocka_unit_test(third_derivatives_match_differences),
        cmocka_unit_test(vjp_is_the_transpose_of_jvp),
        cmocka_unit_test(forward_over_reverse_is_reverse_over_reverse),
        cmocka_unit_test(backward_is_grad_of_to_the_bit),
        cmocka_unit_test(f32_is_near_f64),
        cmocka_unit_test(threads_do_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
