/* Programs of the user's in files: what is loaded gives the bits of what was saved, with its
 * gradients, and whatever is refused says why. */
#include "support/body_test.h"
#include "support/tape_test.h"

#include <cotangent_program.h>

#include <unistd.h>

static char folder[] = "/tmp/cotangent-saved-XXXXXX";
static int  enter_folder(void **state) { return (void)state, !mkdtemp(folder) || chdir(folder) != 0; }
static int  leave_folder(void **state) { return (void)state, chdir("/") != 0 || rmdir(folder) != 0; }

static const cot_type TYPES[] = {{COT_F32, {2, {2, 3}}}, {COT_F32, {1, {3}}}};

BODY(loss) {
    UNUSED;
    ys[0] = cot_sum(cot_tanh(cot_matmul(xs[0], cot_mul(xs[1], 0.5))), COT_ALL);
    return 0;
}
BODY(gradient) {
    (void)m, (void)user;
    return cot_value_and_grad(loss, NULL, n, xs, &ys[0], ys + 1) == COT_OK ? 0 : 1;
}

static void run(cot_program *p, float out[10]) {
    static const float a[] = {0.1f, -2, 3, 0.7f, 5, -6}, b[] = {1, 0.25f, -1.5f};
    cot_run           *r = cot_run_create(p);
    assert_int_equal(cot_program_run(r, (const void *[]){a, b}, (void *[]){out, out + 1, out + 7}), COT_OK);
    cot_run_destroy(r);
}

static void a_loaded_program_gives_the_same_bits(void **state) {
    float        before[10], after[10];
    char         why[256] = "old";
    cot_program *p = cot_compile(gradient, NULL, 2, TYPES, 3, NULL);
    (void)state;
    assert_string_equal(cot_program_message(p), "");
    assert_int_equal(cot_program_save(p, "p.cot", why, sizeof why), COT_OK);
    assert_string_equal(why, "");
    run(p, before);
    cot_program_destroy(p);
    p = cot_program_load("p.cot", NULL);
    assert_string_equal(cot_program_message(p), "");
    assert_int_equal(cot_program_inputs(p), 2);
    run(p, after);
    assert_memory_equal(after, before, sizeof before);
    cot_program_destroy(p);
    unlink("p.cot");
}

/* On a tape it is differentiated like the function that it was made from. */
static void a_loaded_program_is_called_on_a_tape(void **state) {
    static float a[] = {0.1f, -2, 3, 0.7f, 5, -6}, b[] = {1, 0.25f, -1.5f};
    cot_tape    *t = cot_tape_create(NULL);
    cot_var      xs[] = {cot_tensor(t, COT_F32, TYPES[0].shape, a), cot_tensor(t, COT_F32, TYPES[1].shape, b)}, y, g[4];
    cot_program *p = cot_compile(loss, NULL, 2, TYPES, 1, NULL);
    double       want[9], got[9];
    (void)state;
    assert_int_equal(cot_program_save(p, "p.cot", NULL, 0), COT_OK);
    cot_program *q = cot_program_load("p.cot", NULL);
    for (int k = 0; k < 2; k++) {
        cot_program_call(k ? q : p, 2, xs, 1, &y);
        cot_grad_of(y, 2, xs, g + 2 * k);
        cot_read(g[2 * k], k ? got : want, 6), cot_read(g[2 * k + 1], (k ? got : want) + 6, 3);
    }
    assert_ok(t);
    assert_memory_equal(got, want, sizeof want);
    cot_tape_destroy(t);
    cot_program_destroy(p), cot_program_destroy(q);
    unlink("p.cot");
}

static void refuses_to_save(const cot_program *p, const char *path, cot_status status, const char *sentence) {
    char why[256];
    assert_int_equal(cot_program_save(p, path, why, sizeof why), status);
    assert_string_equal(why, sentence);
    assert_int_equal(cot_program_save(p, path, NULL, 0), status);
}
static void refuses_to_load(const char *path, const char *sentence) {
    cot_program *p = cot_program_load(path, NULL);
    assert_string_equal(cot_program_message(p), sentence);
    assert_int_equal(cot_program_status(p), COT_VALUE);
    cot_program_destroy(p);
}

static void what_is_refused_says_why(void **state) {
    cot_program *p = cot_compile(loss, NULL, 2, TYPES, 1, NULL), *failed = cot_compile(NULL, NULL, 0, NULL, 0, NULL);
    (void)state;
    refuses_to_save(p, NULL, COT_VALUE, "[program_save] the path is NULL");
    refuses_to_save(p, ".", COT_VALUE, "[program_save] cannot write .: it is a directory");
    refuses_to_save(failed, "p.cot", COT_VALUE, "[compile] the function is NULL");
    refuses_to_save(NULL, "p.cot", COT_MEMORY, "the program is NULL: cot_compile found no memory");
    refuses_to_load(NULL, "[program_load] the path is NULL");
    refuses_to_load("none", "[program_load] cannot read none: No such file or directory");
    FILE *file = fopen("none.cot", "w");
    assert_true(file && fputs("nothing", file) >= 0 && fclose(file) == 0);
    refuses_to_load("none.cot",
                    "[program_load] this is no program file: it does not begin with COTPROG (in the file none.cot)");
    unlink("none.cot");
    cot_program *verified = cot_program_load("none", &(cot_compile_options){.verify = true});
    assert_string_equal(cot_program_message(verified),
                        "[program_load] verify needs the function, which a file does not hold");
    cot_program_destroy(verified);
    cot_program_destroy(p), cot_program_destroy(failed);
}

static void any_allocation_of_loading_may_fail(void **state) {
    cot_program *p = cot_compile(gradient, NULL, 2, TYPES, 3, NULL);
    (void)state;
    assert_int_equal(cot_program_save(p, "p.cot", NULL, 0), COT_OK);
    for (long at = 1;; at++) {
        counting            c = {.fail_at = at};
        cot_compile_options o = {.allocator = {counting_alloc, &c}};
        cot_program        *q = cot_program_load("p.cot", &o);
        if (c.failed && q) assert_true(cot_program_status(q) == COT_MEMORY && strstr(cot_program_message(q), "memory"));
        if (!c.failed) assert_int_equal(cot_program_status(q), COT_OK);
        cot_program_destroy(q);
        assert_true(c.live == 0 && !c.wrong_size);
        if (!c.failed) break;
    }
    cot_program_destroy(p);
    unlink("p.cot");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loaded_program_gives_the_same_bits),
        cmocka_unit_test(a_loaded_program_is_called_on_a_tape),
        cmocka_unit_test(what_is_refused_says_why),
        cmocka_unit_test(any_allocation_of_loading_may_fail),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
