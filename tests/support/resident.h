/* resident.h: memory that the process has, as the system counts it. */
#ifndef COT_TEST_RESIDENT_H
#define COT_TEST_RESIDENT_H

#include "base/poison.h"
#include "support/tape_test.h"

#include <stdio.h>
#include <string.h>

/* A sanitizer takes its time, and memory of its own. */
#if defined(__SANITIZE_THREAD__)
#define SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZER 1
#endif
#endif
#ifndef SANITIZER
#define SANITIZER (COT__ADDRESS_SANITIZER || COT__MEMORY_SANITIZER)
#endif

/* VmRSS or VmHWM, the most since it was forgotten, in bytes. */
static inline size_t resident(const char *which) {
    char   line[256];
    size_t kib = 0;
    FILE  *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, which, 5)) sscanf(line + 6, "%zu", &kib);
    fclose(f);
    return kib * 1024;
}

/* What the process has from now on counts for VmHWM. */
static inline size_t forget_the_most(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (f) fputs("5", f), fclose(f);
    return resident("VmRSS");
}

#endif
