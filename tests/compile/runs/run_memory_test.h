/* run_memory_test.h: a run takes the memory that it says, and that was told before. */
#ifndef COT_RUN_MEMORY_TEST_H
#define COT_RUN_MEMORY_TEST_H

#include "support/tape_test.h"

#include <cotangent_program.h>

/* A run of a program whose memory is counted. */
static inline cot_run *measured_run(const char *name, cot_program *p, const counting *c) {
    cot_program_facts f;
    assert_int_equal(cot_program_measure(p, &f), COT_OK);
    size_t   before = c->live;
    cot_run *r = cot_run_create(p);
    assert_string_equal(cot_run_message(r), "");
    if (cot_run_bytes(r) != c->live - before || f.run_bytes != (int64_t)cot_run_bytes(r))
        fail_msg("%s: %zu bytes, it says %zu, and was told %lld", name, c->live - before, cot_run_bytes(r),
                 (long long)f.run_bytes);
    return r;
}

#endif
