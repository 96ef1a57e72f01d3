/* limit_test.h: programs of limit_models.h within limits: arrays to run them on, and the smallest
 * limit that is told. */
#ifndef COT_LIMIT_TEST_H
#define COT_LIMIT_TEST_H

#include "compile/limit/limit_models.h"
#include "compile/runs/run_memory_test.h"
#include "support/tape_test.h"

#include <stdlib.h>
#include <string.h>

static inline int64_t bytes_of(cot_type type) {
    int64_t n = type.dtype == COT_I64 ? 8 : 4;
    for (int i = 0; i < type.shape.ndim; i++) n *= type.shape.dim[i];
    return n;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef struct arrays { void *input[MOST_INPUTS], *output[MOST_INPUTS]; int64_t bytes; } arrays;

static inline void fill(void *to, cot_type type, int seed) {
    int64_t bytes = bytes_of(type);
    for (int64_t i = 0; type.dtype == COT_F32 && i < bytes / 4; i++)
        ((float *)to)[i] = 0.6f * (float)sin((double)(i + 1) * (1 + 0.37 * seed));
    for (int64_t i = 0; type.dtype == COT_I64 && i < bytes / 8; i++) ((int64_t *)to)[i] = (7 * i + seed) % 24;
}

static inline arrays arrays_of(cot_program *p) {
    arrays a = {.bytes = 0};
    for (int k = 0; k < cot_program_inputs(p); k++) {
        cot_type type = cot_program_input_type(p, k);
        a.input[k] = malloc((size_t)bytes_of(type));
        fill(a.input[k], type, k);
    }
    for (int k = 0; k < cot_program_outputs(p); k++) {
        int64_t bytes = bytes_of(cot_program_output_type(p, k));
        a.output[k] = calloc(1, (size_t)bytes);
        a.bytes += bytes;
    }
    return a;
}

static inline void free_arrays(arrays *a) {
    for (int k = 0; k < MOST_INPUTS; k++) free(a->input[k]), free(a->output[k]);
}

static inline void run(cot_program *p, arrays *a, cot_run *r) {
    if (cot_program_run(r, (const void *const *)a->input, a->output) != COT_OK) fail_msg("%s", cot_run_message(r));
    for (int k = 0; k < cot_program_outputs(p); k++) assert_non_null(a->output[k]);
}

static inline void assert_same_bits(const char *name, int64_t limit, cot_program *p, const arrays *a, const arrays *b) {
    for (int k = 0; k < cot_program_outputs(p); k++)
        if (memcmp(a->output[k], b->output[k], (size_t)bytes_of(cot_program_output_type(p, k))))
            fail_msg("%s within %lld bytes: output %d has other bits", name, (long long)limit, k);
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* The smallest that the program, which has failed, tells. It is destroyed. */
static inline int64_t smallest_told(cot_program *p) {
    const char *told = strstr(cot_program_message(p), "the smallest that can be is ");
    assert_int_equal(cot_program_status(p), COT_MEMORY);
    assert_non_null(told);
    int64_t bytes = strtoll(told + strlen("the smallest that can be is "), NULL, 10);
    cot_program_destroy(p);
    return bytes;
}
/* With this folder to spill to; NULL: none. */
static inline int64_t smallest_with(limit_model *m, const char *folder) {
    return smallest_told(limit_compile(m, &(cot_compile_options){.memory_limit = 1, .spill = folder}));
}
static inline int64_t smallest_limit(limit_model *m) { return smallest_with(m, NULL); }

/* The bits of `plain`, within the limit, and as told. How many bytes it spills. */
static inline int64_t check_limit(limit_model *m, int64_t limit, const char *folder, const arrays *plain) {
    counting            c = {0};
    cot_program_facts   f;
    cot_compile_options o = {.allocator = {counting_alloc, &c}, .memory_limit = limit, .spill = folder};
    cot_program        *p = limit_compile(m, &o);
    if (cot_program_status(p) != COT_OK) fail_msg("%s: %s", m->name, cot_program_message(p));
    cot_run *r = measured_run(m->name, p, &c);
    if ((int64_t)cot_run_bytes(r) > limit) fail_msg("%s: %zu bytes", m->name, cot_run_bytes(r));
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    arrays a = arrays_of(p);
    size_t held = c.peak = c.live;
    run(p, &a, r);
    assert_same_bits(m->name, limit, p, &a, plain);
    run(p, &a, r);
    assert_int_equal(c.peak, held); /* a run takes nothing more */
    assert_same_bits(m->name, limit, p, &a, plain);
    assert_string_equal(cot_run_note(r), "");
    cot_run_destroy(r);
    free_arrays(&a);
    cot_program_destroy(p);
    assert_int_equal(c.live, 0);
    assert_false(c.wrong_size);
    return f.spilled_bytes;
}

/* `layers` of the deep stack. */
static inline limit_model short_stack(int layers) {
    limit_model m = deep_model();
    m.inputs = 2 + layers;
    return m;
}

#endif
