/* Jobs of the worker pool have numbers, of which a seat has room for forty bits: what happens when
 * these are used up is seen here, in a pool of the test's own. */
/* ctest: labels=threads */
#define _GNU_SOURCE /* as parallel.c has it */
#include "support/support.h"

#define cot__grain numbers_grain
#define cot_threads numbers_threads
#define cot_set_threads numbers_set_threads
#define cot__parallel numbers_parallel
#define cot__parallel_small numbers_parallel_small
#define cot__threads_unread numbers_threads_unread
int  numbers_threads(void);
void numbers_set_threads(int n);
#include "base/parallel.c"

enum { PARTS = 7, JOBS = 6 };

static void count_part(void *ctx, int64_t part) {
    int times = atomic_fetch_add((_Atomic int *)ctx + part, 1) + 1;
    if (times > 1) fail_msg("part %d runs %d times", (int)part, times);
}

static void each_part_runs_once_after_the_last_number(void **state) {
    (void)state;
    cot_set_threads(3);
    for (int k = 0; k < JOBS; k++) {
        _Atomic int ran[PARTS] = {0};
        if (k == 1) pool.job.number = ((uint64_t)1 << 40) - 3;
        cot__parallel(PARTS, count_part, ran);
        for (int i = 0; i < PARTS; i++) assert_int_equal(ran[i], 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_part_runs_once_after_the_last_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
