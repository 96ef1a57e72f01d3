/* Native code gives the bits of the executor for every sample and its gradient, whatever the number
 * of threads. Compilers are slow, so many samples are one program. */
/* ctest: timeout=300 plain-only */
#include "samples/sample_programs.h"
#include "support/program_test.h"
#include "native_folder.h"

#include "backend/cpu/table/cpu.h"
#include "base/element.h"
#include "base/parallel.h"
#include "program/passes/passes.h"

enum { TOGETHER = 32, MOST = 40, VALUES = TOGETHER * SAMPLE_OUTPUTS };

/* Samples that are one program, and its native code. */
typedef struct bundle {
    int           number[TOGETHER], count;
    cot_dtype     dtype;
    cot__program *p;
    cot__native  *native;
} bundle;

static bundle bundles[MOST];
static int    count, taken;

/* ---- making them ----------------------------------------------------------------------------- */

static test_function function_in(const bundle *b, int i, int round) {
    return function_of(&samples[b->number[i]], b->number[i], round);
}

static int all_of_them(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    const bundle *b = user;
    (void)n, (void)m;
    for (int i = 0; i < b->count; i++) {
        test_function f = function_in(b, i, 0);
        with_gradient(f.n, xs, f.n + 2, ys, &f);
        xs += f.n;
        ys += f.n + 2;
    }
    return 0;
}

/* The program of a bundle, as a user's would be; NULL: it cannot be recorded so. */
static cot__program *program_of(bundle *b) {
    cot_tape *t = cot_tape_create(NULL);
    cot_var   xs[VALUES];
    int       n = 0, m = 0;
    for (int i = 0; i < b->count; i++) {
        test_function f = function_in(b, i, 0);
        leaves_of(t, &f, b->dtype, xs + n);
        n += f.n;
        m += f.n + 2;
    }
    cot__program     *source = lower(t, "samples", all_of_them, b, n, xs, m);
    cot__caller       caller = cot__tape_caller(t, "test");
    cot__pass_options o = {.caller = &caller, .backend = &cot__cpu_backend};
    cot__program     *p = source && !source->bound ? cot__optimise(source, &o) : NULL;
    cot__program_release(source);
    cot_tape_destroy(t);
    return p;
}

/* Begins to compile it, in the background. */
static void close_bundle(bundle *b) {
    b->p = program_of(b);
    assert_non_null(b->p);
    b->native = cot__native_open(b->p, NULL);
    assert_non_null(b->native);
}

static void take_sample(int number, cot_dtype dtype) {
    bundle alone = {.number = {number}, .count = 1, .dtype = dtype}, *b = &bundles[count - 1];
    cot__program *p = program_of(&alone);
    if (!p) return;
    cot__program_release(p);
    if (b->count == TOGETHER) {
        close_bundle(b);
        assert_true(count < MOST);
        b = &bundles[count++];
        b->dtype = dtype;
    }
    b->number[b->count++] = number;
    taken++;
}

static void take_samples(cot_dtype dtype) {
    bundles[count++].dtype = dtype;
    for (int i = 0; i < TEST_COUNT(samples); i++) take_sample(i, dtype);
    close_bundle(&bundles[count - 1]);
}

/* ---- running them ---------------------------------------------------------------------------- */

static size_t bytes_of(const cot__program *p, uint32_t value) {
    cot__view v = cot__value_view(p, value);
    return (size_t)(cot__view_size(&v) * cot__dtype_size(v.dtype));
}

static void make_inputs(const bundle *b, int round, void **in) {
    int at = 0;
    for (int i = 0; i < b->count; i++) {
        test_function f = function_in(b, i, round);
        for (int k = 0; k < f.n; k++, at++) {
            in[at] = malloc(bytes_of(b->p, b->p->input[at]) + 1);
            for (int64_t j = 0; j < test_shape_size(&f.in[k].shape); j++)
                cot__store_f64((char *)in[at] + j * cot__dtype_size(b->dtype), b->dtype, f.in[k].data[j]);
        }
    }
}

static void make_outputs(const bundle *b, void **out) {
    for (uint32_t k = 0; k < b->p->outputs; k++) out[k] = malloc(bytes_of(b->p, b->p->output[k]) + 1);
}

static void free_all(void **list, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) free(list[k]);
}

/* Any two NaN are the same. */
static bool same_elements(const char *a, const char *b, size_t bytes, cot_dtype dtype) {
    size_t size = (size_t)cot__dtype_size(dtype);
    for (size_t i = 0; i < bytes; i += size) {
        if (memcmp(a + i, b + i, size) == 0) continue;
        if (!isnan(cot__load_f64(a + i, dtype)) || !isnan(cot__load_f64(b + i, dtype))) return false;
    }
    return true;
}

/* The sample that has output k. */
static int sample_of(const bundle *b, uint32_t k) {
    int i = 0;
    for (uint32_t end = 0; i < b->count; i++)
        if (k < (end += (uint32_t)samples[b->number[i]].n + 2)) break;
    return b->number[i];
}

static void compare_outputs(const bundle *b, void **want, void **got, int threads) {
    for (uint32_t k = 0; k < b->p->outputs; k++) {
        cot_dtype dtype = cot__value_view(b->p, b->p->output[k]).dtype;
        bool      same = same_elements(want[k], got[k], bytes_of(b->p, b->p->output[k]), dtype);
        TEST_CHECK(same, "sample %d (%s), %s, %d threads: other bits in output %u", sample_of(b, k),
                   samples[sample_of(b, k)].op, cot__dtype_name(b->dtype), threads, k);
    }
}

/* One run of each kind, at one point. */
static void compare_at(const bundle *b, cot__run *plain, cot__run *native, void *aside, int round, int threads) {
    void *in[VALUES], *want[VALUES], *got[VALUES];
    cot_set_threads(threads);
    make_inputs(b, round, in);
    make_outputs(b, want);
    make_outputs(b, got);
    bool by_executor = cot__run_go(plain, (const void *const *)in, want);
    TEST_CHECK(by_executor, "samples from %d on: %s", b->number[0], cot__run_message(plain));
    assert_int_equal(cot__native_go(b->native, native, aside, (const void *const *)in, got), by_executor);
    if (by_executor) compare_outputs(b, want, got, threads);
    free_all(in, b->p->inputs);
    free_all(want, b->p->outputs);
    free_all(got, b->p->outputs);
}

static void compare_bundle(bundle *b) {
    static const int threads[] = {1, 2, 7};
    cot_tape   *t = cot_tape_create(NULL);
    cot__caller caller = cot__tape_caller(t, "test");
    TEST_CHECK(cot__native_look(b->native, true) == COT__NATIVE_LOADED, "samples from %d on: %s", b->number[0],
               cot__native_message(b->native));
    cot__run *plain = cot__run_create(b->p, &cot__cpu_backend, NULL, NULL, &caller);
    cot__run *native = cot__run_create_with(b->p, &cot__cpu_backend, NULL, cot__native_parts(b->native), NULL, &caller);
    void     *aside = malloc(cot__native_aside(b->native) + 1);
    assert_true(plain && native && aside);
    for (int round = 0; round < TEST_COUNT(threads); round++)
        compare_at(b, plain, native, aside, round, threads[round]);
    TEST_CHECK(cot__native_look(b->native, false) == COT__NATIVE_READY, "samples from %d on: %s", b->number[0],
               cot__native_message(b->native));
    cot_set_threads(0);
    free(aside);
    cot__run_destroy(plain);
    cot__run_destroy(native);
    cot_tape_destroy(t);
}

static void every_sample_and_its_gradient_has_the_executors_bits(void **state) {
    int64_t grain = cot__grain;
    (void)state;
    use_compiler("exec cc \"$@\" -O0");
    cot__grain = 1; /* loops are shared by threads */
    take_samples(COT_F64);
    take_samples(COT_F32);
    for (int k = 0; k < count; k++) compare_bundle(&bundles[k]);
    cot__grain = grain;
    for (int k = 0; k < count; k++) {
        cot__native_close(bundles[k].native);
        cot__program_release(bundles[k].p);
    }
    assert_true(taken > 400);
    test_verdict();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_sample_and_its_gradient_has_the_executors_bits, fresh, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
