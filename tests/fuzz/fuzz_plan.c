/* fuzz_plan.c: any bytes as the file of a sparse plan. The first byte says whether the checksum is
 * corrected; without that hardly any change would get past it. A plan that loads is saved again, to
 * the same bytes, and used on a function of its sizes. Its pattern is mostly wrong for this
 * function: then the numbers are wrong too, but no memory is touched that should not be. */
#include <cotangent.h>

#include <stdio.h>
#include "counted.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 4096, MOST_ELEMENTS = 64 };

static void broken(const char *what) {
    fprintf(stderr, "fuzz_plan: %s\n", what);
    abort();
}

static void put_sum(uint8_t *bytes, size_t size) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    for (int i = 0; i < 8; i++) bytes[size + (size_t)i] = (uint8_t)(sum >> 8 * i);
}

static void saves_to_the_same_bytes(const cot_sparse_plan *plan, const uint8_t *bytes, size_t size) {
    static uint8_t again[MOST_BYTES + 16];
    FILE          *file = fmemopen(again, sizeof again, "wb");
    if (!file) return;
    if (cot_sparse_plan_save(plan, file) != COT_OK) broken("a plan that cannot be saved");
    long written = ftell(file);
    fclose(file);
    if (written < 0 || (size_t)written > size || memcmp(again, bytes, (size_t)written) != 0)
        broken("a plan that is saved to other bytes");
}

static void is_used(cot_tape *t, const cot_sparse_plan *plan) {
    static double   numbers[MOST_ELEMENTS], values[MOST_ELEMENTS * MOST_ELEMENTS];
    cot_sparse_info info = cot_sparse_plan_info(plan);
    if (info.rows > MOST_ELEMENTS || info.cols > MOST_ELEMENTS) return;
    cot_var x = cot_tensor(t, COT_F64, COT_SHAPE(info.cols), numbers);
    cot_var y = cot_matmul(cot_ones(t, COT_F64, COT_SHAPE(info.rows, info.cols)), cot_sin(x));
    if (info.hessian)
        cot_sparse_hessian(plan, cot_sum(cot_square(x), COT_ALL), 1, &x, values);
    else
        cot_sparse_jacobian(plan, 1, &y, 1, &x, values);
    if (cot_tape_status(t) == COT_OK) cot_sparse_check(plan, 1, &y, 1, &x, values, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static uint8_t bytes[MOST_BYTES + 16];
    size_t         used = 0;
    if (size < 2 || size > MOST_BYTES) return 0;
    memcpy(bytes, data + 1, size - 1);
    size--;
    if (data[0] & 1) put_sum(bytes, size), size += 8;
    cot_tape *t    = cot_tape_create(&(cot_options){.allocator = {counted, &used}});
    FILE     *file = fmemopen(bytes, size, "rb");
    if (!t || !file) abort();
    cot_sparse_plan *plan = cot_sparse_plan_load(t, file);
    fclose(file);
    if (!plan && (cot_tape_status(t) == COT_OK || !cot_tape_message(t)[0]))
        broken("a plan is refused without a reason");
    if (plan) {
        saves_to_the_same_bytes(plan, bytes, size);
        is_used(t, plan);
    }
    cot_sparse_plan_destroy(plan);
    cot_tape_destroy(t);
    if (used != 0) broken("memory that was not given back");
    return 0;
}
