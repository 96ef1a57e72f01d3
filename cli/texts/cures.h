/* cures.h: what helps against a finding of cot_explain or cot_report: advice by operation, for
 * people who write expressions.
 *
 * May call: libc. Must not touch: tapes; findings are read as the sentences that they are. */
#ifndef COT_CLI_CURES_H
#define COT_CLI_CURES_H

#include <stdbool.h>

/* What a finding says of the operation that it names. */
typedef enum ailment {
    NOT_FINITE, /* it made the value NaN or infinite, or the gradient */
    CUT,        /* it let no gradient through */
    KINK,       /* the point sits on its kink */
    ZERO_WINS   /* its partial is infinite, and its adjoint 0 */
} ailment;

/* The advice; there is always one. f32: its numbers are large enough to count in f32. */
const char *cure_of(ailment what, const char *op, bool f32);

/* The different cures of all findings in both texts, at most `most`. Returns how many. */
enum { CURES_MOST = 8 };
int cures_find(const char *explanation, const char *report, bool f32, const char *cures[CURES_MOST]);

#endif
