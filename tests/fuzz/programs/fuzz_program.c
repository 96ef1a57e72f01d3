/* fuzz_program.c: random programs as a target for libFuzzer. A program that is wrong is printed
 * as a list of calls before the target aborts. */
#include "program.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    program p = {data, size};
    char    why[800];
    if (trial(&p, why, sizeof why)) return 0;
    fprintf(stderr, "fuzz_program: %s\n", why);
    outcome o = {0};
    run_program(&p, &ways[0], &o, 0, stderr);
    outcome_free(&o);
    abort();
}
