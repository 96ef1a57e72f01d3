/* peak.c: products of growing matrices, until one takes long enough for the clock. The fastest of a
 * few counts: whatever else runs on the machine only makes it slower. */
#include "watch/peak.h"

#include "cotangent.h"
#include "io/system.h"

enum { SMALLEST = 64, LARGEST = 1024, ROUNDS = 5 };

/* Seconds of one product of matrices of this size. */
static double seconds_of(cot_tape *t, int64_t n) {
    cot_mark mark    = cot_tape_mark(t);
    cot_var  a       = cot_ones(t, COT_F32, COT_SHAPE(n, n));
    double   start   = system_seconds();
    cot_var  c       = cot_matmul(a, a);
    double   seconds = system_seconds() - start;
    (void)c;
    cot_tape_rewind(t, mark);
    return seconds;
}

double peak_measure(void) {
    cot_tape *t    = cot_tape_create(NULL);
    double    best = 0, start = system_seconds();
    for (int64_t n = SMALLEST; n <= LARGEST && system_seconds() - start < 0.02; n *= 2) {
        for (int k = 0; k < ROUNDS && system_seconds() - start < 0.08; k++) {
            double seconds = seconds_of(t, n), rate = 2.0 * (double)n * (double)n * (double)n / seconds;
            if (seconds > 0 && rate > best) best = rate;
        }
    }
    bool fine = t && cot_tape_status(t) == COT_OK;
    cot_tape_destroy(t);
    return fine ? best : 0;
}
