/* Native code gives the bits of the executor at zeros of both signs, infinities, NaN and the ends
 * of the range, by gcc and by clang: a compiler that knows what a function cannot give leaves out
 * what comes behind it, and may be wrong at such a place. */
/* ctest: timeout=300 plain-only */
#include "native_folder.h"
#include "program/passes/pass_test.h"

#include "native/object.h"
#include "program/run.h"

static const double special[] = {0.0,   -0.0,  1,      -1,   0.5,  -2.5,
                                 4,     88.5,  -746,   3e38, -3e38, 1e-310,
                                 -1e-310, 1e300, -1e300, (double)INFINITY, -(double)INFINITY, (double)NAN};
/* Each number beside each other one, in loops that have a rest. */
enum { SPECIAL = TEST_COUNT(special), SIZE = SPECIAL * SPECIAL + 5, MOST = 3 * OP_elementwise_count };

/* ---- a program ------------------------------------------------------------------------------- */

/* Which operations made an output: the second is NONE where there is one alone. */
enum { NONE = -1 };
typedef struct made { int first, second; } made;

typedef struct work { draft d; uint32_t x, y, w, flag; made of[MOST]; int outputs; } work;

static uint32_t apply(work *k, int o, uint32_t x) {
    int arity = cot__elementwise_arity(o);
    if (o == OP_where) return op(&k->d, o, X(k->flag, x, k->y));
    return arity == 1 ? op(&k->d, o, X(x)) : arity == 2 ? op(&k->d, o, X(x, k->y)) : op(&k->d, o, X(x, k->y, k->w));
}

static void give(work *k, uint32_t value, int first, int second) {
    output(&k->d, value);
    k->of[k->outputs++] = (made){first, second};
}

/* Every operation; behind each whose result is a float two that ask for its sign, and behind a root
 * a quotient that hides it. */
static cot__program *all_of_them(work *k, cot_dtype dtype) {
    draft_open(&k->d, NULL);
    k->x = input(&k->d, dtype, SHAPE(SIZE)), k->y = input(&k->d, dtype, SHAPE(SIZE));
    k->w = op(&k->d, OP_neg, X(k->x));
    k->flag = op(&k->d, OP_less, X(k->x, k->y));
    for (int o = 0; o < OP_elementwise_count; o++) {
        uint32_t z = apply(k, o, k->x);
        give(k, z, o, NONE);
        if (cot__op_is_test(o)) continue;
        if (o == OP_sqrt) z = op(&k->d, OP_reciprocal, X(z));
        give(k, op(&k->d, OP_sign, X(z)), o, OP_sign);
        give(k, op(&k->d, OP_selu, X(z)), o, OP_selu);
    }
    return draft_close(&k->d);
}

/* ---- by both ways ---------------------------------------------------------------------------- */

static void fill(cot_dtype dtype, char *x, char *y) {
    for (int i = 0; i < SIZE; i++) {
        cot__store_f64(x + i * cot__dtype_size(dtype), dtype, special[i % SPECIAL]);
        cot__store_f64(y + i * cot__dtype_size(dtype), dtype, special[i / SPECIAL % SPECIAL]);
    }
}

static const char *name_of(int o) { return o == NONE ? "" : cot__op_of(o)->name; }

/* Any two NaN are the same. */
static void compare(const work *k, int number, cot_dtype dtype, const char *want, const char *got, const char *by) {
    size_t size = (size_t)cot__dtype_size(dtype);
    for (int i = 0; i < SIZE; i++, want += size, got += size) {
        double a = cot__load_f64(want, dtype), b = cot__load_f64(got, dtype);
        if (memcmp(want, got, size) == 0 || (isnan(a) && isnan(b))) continue;
        fail_msg("%s, %s: %s %s(%g, %g) is %g, by the executor %g", by, cot__dtype_name(dtype),
                 name_of(k->of[number].second), name_of(k->of[number].first), special[i % SPECIAL],
                 special[i / SPECIAL % SPECIAL], b, a);
    }
}

static void compare_all(cot_dtype dtype, const char *compiler) {
    static work  k;
    static char  in[2][SIZE * 8], want[MOST][SIZE * 8], got[MOST][SIZE * 8];
    void        *to[2][MOST];
    heard        h = {0};
    cot__caller  caller = {"test", &h, hear_error, hear_note, NULL};
    k.outputs = 0;
    cot__program *p = all_of_them(&k, dtype);
    cot__native  *n = cot__native_open(p, NULL);
    if (cot__native_look(n, true) != COT__NATIVE_LOADED) fail_msg("%s", cot__native_message(n));
    cot__run *r = cot__run_create_with(p, &cot__cpu_backend, NULL, cot__native_parts(n), NULL, &caller);
    assert_non_null(r);
    for (int i = 0; i < k.outputs; i++) to[0][i] = want[i], to[1][i] = got[i];
    fill(dtype, in[0], in[1]);
    assert_true(cot__run_go(r, (const void *const[]){in[0], in[1]}, to[0]));
    assert_true(cot__run_go_by(r, n->loaded.functions, (const void *const[]){in[0], in[1]}, to[1]));
    for (int i = 0; i < k.outputs; i++)
        compare(&k, i, cot__value_view(p, p->output[i]).dtype, want[i], got[i], compiler);
    cot__run_destroy(r);
    cot__native_close(n);
    cot__program_release(p);
}

/* ---- by each compiler ------------------------------------------------------------------------ */

static bool has(const char *compiler) {
    char command[64];
    snprintf(command, sizeof command, "command -v %s > /dev/null", compiler);
    return system(command) == 0;
}

static void compare_by(const char *compiler) {
    if (!has(compiler)) skip();
    setenv("COTANGENT_CC", compiler, 1);
    compare_all(COT_F64, compiler);
    compare_all(COT_F32, compiler);
}

static void gcc_has_the_executors_bits_at_special_numbers(void **state) {
    (void)state;
    compare_by("gcc");
}
static void clang_has_the_executors_bits_at_special_numbers(void **state) {
    (void)state;
    compare_by("clang");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gcc_has_the_executors_bits_at_special_numbers, fresh, clean),
        cmocka_unit_test_setup_teardown(clang_has_the_executors_bits_at_special_numbers, fresh, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
