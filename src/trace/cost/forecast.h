/* forecast.h: what a step takes: the bytes on the tape while y is recorded and swept, one number
 * for each node there and back, the peak, and the values by operation and name. From shapes alone:
 * elements are never looked at, so the values may be examples (tape/examples.h).
 *
 * Values stay on the tape until it is rewound, and an adjoint from its first contribution to its
 * own step, in memory of its own; one that a rule hands on as it is shares it in fact, so `whole`
 * may be less than `peak`. Leaves and their gradients do not count, as in cot_tape_peak_bytes. What
 * rules make on their way, and what kernels need for themselves, is in `whole` and `least`
 * alone. */
#ifndef COT_FORECAST_H
#define COT_FORECAST_H

#include "tape/tape.h"
#include "trace/json/json.h"

typedef struct cot__forecast_row {
    const char *op, *name;  /* name NULL: they have none */
    const char *reader;     /* an operation whose rule reads one of them; NULL: none does */
    bool        readers;    /* and there are others */
    bool        source;     /* leaves and constants */
    int64_t     count, bytes, saved;
    double      again;      /* operations that would make them again */
} cot__forecast_row;

typedef struct cot__forecast {
    int64_t            sources, stored, saved, cheap, unread; /* as in cot_memory */
    double             peak;
    /* told by cot__forecast_least: all that is in use at once (0: not known), and a memory limit
     * that is enough, as in cot_memory (0: there can be none) */
    double             whole, least;
    int64_t            peak_at;   /* the step of it, 0 … steps - 1 */
    char               when[160]; /* in words */
    int64_t            steps;     /* nodes up, then nodes down */
    int64_t            points;    /* steps whose bytes are known: all, unless it was stretched */
    double            *bytes;     /* at each of them */
    double            *place;     /* which steps they are; NULL: 0, 1, … */
    const char       **op;        /* what is done there */
    cot__forecast_row *rows;      /* the largest first */
    int64_t            row_count, row_room;
} cot__forecast;

/* Of the sweep of y by all leaves and parameters. False when memory is short, or y is no value. */
bool cot__forecast_of(cot__forecast *f, cot_var y);
/* Finds `whole` and `least`, by rehearsals (memory.h), which take no more than about a second
 * together. False when memory is short. */
bool cot__forecast_least(cot__forecast *f, cot_var y);
/* The same of a net of equal blocks, from those of a net that has `times` blocks less, and of one
 * that has still one less. */
void cot__forecast_deepen(cot__forecast *f, const cot__forecast *some, const cot__forecast *less, int64_t times);
/* What the nodes of one block take without its values, from forecasts with it and without it. */
double cot__forecast_lists(const cot__forecast *some, const cot__forecast *less);
void cot__forecast_free(cot__forecast *f);
/* Makes f, of a net of equal blocks, the forecast of a net with `times` blocks more. `less` is that
 * of one block less; both have some blocks. Every number grows by as much with each block; in the
 * middle, whose steps are left out, bytes lie between those at both ends. !*fits: an int64_t does
 * not hold one of the numbers, and f must not be shown. False when memory is short. */
bool cot__forecast_stretch(cot__forecast *f, const cot__forecast *less, int64_t times, bool *fits);
/* False when memory is short. */
bool cot__forecast_table(FILE *out, const cot__forecast *f);
/* The members of an object, which the caller opens and closes. */
void cot__forecast_json(cot__json *j, const cot__forecast *f);
/* Bytes as people read them: "1.50 GiB". buf has 32 bytes. */
const char *cot__bytes_text(double bytes, char *buf);

#endif
