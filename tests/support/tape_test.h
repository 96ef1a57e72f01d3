/* tape_test.h: the common part of tests of tapes: an allocator that counts, checks and fails on
 * demand; exact comparison of errors. */
#ifndef COT_TAPE_TEST_H
#define COT_TAPE_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cotangent.h>

/* Compares the status and the whole sentence. */
#define assert_error(t, code, text)                                                                                    \
    do {                                                                                                               \
        assert_string_equal(cot_tape_message(t), text);                                                                \
        assert_int_equal(cot_tape_status(t), code);                                                                    \
    } while (0)

#define assert_ok(t) assert_error(t, COT_OK, "")

/* |a - b| <= tolerance, relative to b where b is large; 0: equal; NaN equals NaN. */
static inline void assert_near_at(double a, double b, double tolerance, const char *file, int line) {
    if (isnan(b) ? isnan(a) : a == b || fabs(a - b) <= tolerance * (fabs(b) > 1 ? fabs(b) : 1)) return;
    fprintf(stderr, "%.17g is not %.17g within %g\n", a, b, tolerance);
    _fail(file, line);
}
#define assert_near(a, b, tolerance) assert_near_at(a, b, tolerance, __FILE__, __LINE__)

/* An allocator that keeps the size of each block in front of it. Request number `fail_at` fails,
 * and all later ones too if asked. */
typedef struct counting {
    long   requests, fail_at; /* fail_at 0: never */
    bool   fail_for_good;
    long   failed;
    size_t fail_from_size; /* not 0: fail every request of at least this many bytes */
    size_t live, blocks, peak; /* peak: the most bytes that were live at once */
    bool   wrong_size; /* an old_size was not the size that had been asked for */
} counting;

enum { COUNTING_HEADER = 64 };

static inline void *counting_alloc(void *user, void *ptr, size_t old_size, size_t new_size) {
    counting *c = user;
    size_t    had = 0;
    char     *block = ptr ? (char *)ptr - COUNTING_HEADER : NULL;
    if (block) memcpy(&had, block, sizeof had);
    if (had != old_size) c->wrong_size = true;
    if (new_size == 0) {
        c->live -= had;
        c->blocks--;
        free(block);
        return NULL;
    }
    c->requests++;
    bool due = c->fail_at && (c->requests == c->fail_at || (c->fail_for_good && c->requests > c->fail_at));
    if (due || (c->fail_from_size && new_size >= c->fail_from_size)) {
        c->failed++;
        return NULL;
    }
    /* always a new block, so that pointers kept across a resize are found */
    char *fresh = malloc(COUNTING_HEADER + new_size);
    if (!fresh) return NULL;
    memcpy(fresh, &new_size, sizeof new_size);
    /* no code may rely on zeros */
    memset(fresh + COUNTING_HEADER, 0xa5, new_size);
    if (block) memcpy(fresh + COUNTING_HEADER, ptr, had < new_size ? had : new_size);
    c->live += new_size - had;
    c->blocks += block ? 0 : 1;
    if (c->live > c->peak) c->peak = c->live;
    free(block);
    return fresh + COUNTING_HEADER;
}

static inline cot_tape *counted_tape(counting *c, bool strict) {
    cot_options o = {.allocator = {counting_alloc, c}, .strict = strict};
    return cot_tape_create(&o);
}

/* Is COT_TEST_SMALL set? Sanitizer builds set it, to sample less. */
bool test_small(void);
/* Is COT_TEST_DEFER set? Then the tape also asks for memory that it can do without: a place for
 * waiting work. */
bool test_defers(void);

/* From now on `left` requests succeed, then all fail. -1: all succeed. */
static inline void let_succeed(counting *c, long left) {
    c->fail_at = left < 0 ? 0 : c->requests + left + 1;
    c->fail_for_good = true;
}

/* Gives `work` ever more allocations, until it has enough. Before that each run must end with an
 * error of memory, and nothing may leak. At the end each of these pieces of sentences must have
 * been seen. Small runs leave most numbers of allocations out, and with them some sentences. */
typedef void memory_work(cot_tape *t, void *user);
static inline void assert_survives_no_memory(memory_work *work, void *user, int n, const char *const *sentences) {
    bool seen[8] = {false};
    for (long at = 1; at < 20000; at += at > 40 && test_small() ? 7 : 1) {
        counting  c = {.fail_at = at, .fail_for_good = true};
        cot_tape *t = counted_tape(&c, false);
        if (t) work(t, user);
        bool failed = c.failed > 0, spared = t && test_defers() && cot_tape_status(t) == COT_OK;
        if (failed && t && !spared &&
            (cot_tape_status(t) != COT_MEMORY || !strstr(cot_tape_message(t), "] out of memory")))
            fail_msg("allocation %ld failing: %s", at, cot_tape_message(t));
        for (int k = 0; t && k < n; k++) seen[k] |= strstr(cot_tape_message(t), sentences[k]) != NULL;
        if (!failed) assert_ok(t);
        cot_tape_destroy(t);
        if (c.live || c.blocks || c.wrong_size)
            fail_msg("allocation %ld failing: %zu bytes in %zu blocks leak", at, c.live, c.blocks);
        if (failed) continue;
        for (int k = 0; k < n && !test_small(); k++)
            if (!seen[k]) fail_msg("never said: %s", sentences[k]);
        return;
    }
    fail_msg("%s", "it never had enough");
}

#endif
