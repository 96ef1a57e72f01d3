/* tape_bytes.h: what the tests of tape files share: a file in memory, and functions of solvers. */
#ifndef COT_TEST_TAPE_BYTES_H
#define COT_TEST_TAPE_BYTES_H

#include "support/support.h"
#include "support/tape_test.h"

#include "compile/tape_file.h"
#include "tape/record_job.h"

#include <stdlib.h>
#include <string.h>

typedef struct file_bytes {
    unsigned char *at;
    size_t         count, room;
} file_bytes;

static inline bool take(void *to, const void *from, size_t n) {
    file_bytes *b = to;
    if (b->count + n > b->room) b->at = realloc(b->at, b->room = 2 * (b->count + n));
    memcpy(b->at + b->count, from, n);
    b->count += n;
    return true;
}

enum { MOST_VARS = TEST_MAX_INPUTS + 4 };

/* Empty: it cannot be saved, and the tape says why. */
static inline file_bytes bytes_of(cot_tape *t, int n, const cot_var *vars) {
    cot__tape_file f;
    cot__caller    caller = cot__tape_caller(t, "test");
    file_bytes     b      = {0};
    uint32_t       nodes[MOST_VARS];
    for (int k = 0; k < n; k++) nodes[k] = cot__index(vars[k]);
    if (cot__tape_file_open(&f, t, n, nodes, &caller)) assert_true(cot__tape_file_write(&f, take, &b, &caller));
    if (b.count) assert_int_equal(b.count, f.bytes);
    cot__tape_file_close(&f);
    return b;
}

static inline int tridiagonal(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m;
    ys[0] = cot_add(cot_mul(xs[0], cot_add(*(const cot_var *)user, 3)), cot_roll(xs[0], 1, 0));
    return 0;
}
static inline int cubic(int n, const cot_var *xs, int m, cot_var *ys, void *user) {
    (void)n, (void)m, (void)user;
    ys[0] = cot_sub(cot_add(cot_mul(xs[0], cot_square(xs[0])), xs[0]), xs[1]);
    return 0;
}

#endif
