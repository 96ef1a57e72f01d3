/* outcome.c: the results of a run: numbers in named sections; texts are numbers of their letters.
 * Two runs agree when they have the same sections with the same bits. Any two NaN count as the same
 * number. */
#include "program.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void no_memory(void) {
    fputs("no memory for the outcome of a program\n", stderr);
    exit(3);
}

void outcome_free(outcome *o) {
    free(o->number);
    free(o->part);
    memset(o, 0, sizeof *o);
}

void outcome_open(outcome *o, const char *format, ...) {
    if (o->parts == o->part_room) {
        o->part_room = o->part_room ? 2 * o->part_room : 64;
        o->part      = realloc(o->part, (size_t)o->part_room * sizeof *o->part);
        if (!o->part) no_memory();
    }
    section *s = &o->part[o->parts++];
    va_list  args;
    va_start(args, format);
    memset(s, 0, sizeof *s);
    vsnprintf(s->name, sizeof s->name, format, args);
    va_end(args);
    s->from = o->count;
}

void outcome_add(outcome *o, double number) {
    if (o->count == o->room) {
        o->room   = o->room ? 2 * o->room : 1024;
        o->number = realloc(o->number, (size_t)o->room * sizeof *o->number);
        if (!o->number) no_memory();
    }
    o->number[o->count++] = isnan(number) ? NAN : number;
    o->part[o->parts - 1].count++;
}

void outcome_text(outcome *o, const char *text) {
    for (; *text; text++) outcome_add(o, (unsigned char)*text);
}

bool outcome_status(outcome *o, cot_tape *t) {
    cot_status s = cot_tape_status(t);
    outcome_add(o, s);
    outcome_text(o, cot_tape_message(t));
    cot_tape_clear_error(t);
    return s == COT_OK;
}

bool outcome_value(outcome *o, cot_var x) {
    int64_t n     = cot_size(x);
    bool    whole = cot_dtype_of(x) > COT_F16;
    void   *data  = malloc(n > 0 ? (size_t)n * 8 : 1);
    if (!data) no_memory();
    bool fine = cot_read_as(x, whole ? COT_I64 : COT_F64, data, n) == COT_OK;
    for (int64_t i = 0; fine && i < n; i++) {
        if (whole) { /* all bits of it */
            uint64_t bits = (uint64_t)((int64_t *)data)[i];
            outcome_add(o, (double)(bits >> 32));
            outcome_add(o, (double)(bits & 0xffffffff));
        } else {
            outcome_add(o, ((double *)data)[i]);
        }
    }
    free(data);
    return fine;
}

void outcome_wrong(outcome *o, const char *format, ...) {
    if (o->wrong[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(o->wrong, sizeof o->wrong, format, args);
    va_end(args);
}

void outcome_far(outcome *o, const char *format, ...) {
    if (o->wrong[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(o->wrong, sizeof o->wrong, format, args);
    va_end(args);
    o->rounded = true;
}

/* A section whose numbers are letters, for people. */
static void put_words(const outcome *o, const section *s, char *out, size_t size) {
    size_t n = 0;
    for (int64_t i = s->from; i < s->from + s->count && n + 1 < size; i++)
        if (o->number[i] >= ' ' && o->number[i] < 127) out[n++] = (char)o->number[i];
    out[n] = 0;
}

static bool same_number(double a, double b, bool zeros_alike) {
    return memcmp(&a, &b, sizeof a) == 0 || (zeros_alike && a == 0 && b == 0);
}

bool outcome_differs(const outcome *a, const outcome *b, bool zeros_alike, bool codes_alone, char *why, size_t size) {
    for (int k = 0; k < a->parts || k < b->parts; k++) {
        static const section none = {"nothing", 0, 0};
        const section       *s = k < a->parts ? &a->part[k] : &none, *t = k < b->parts ? &b->part[k] : &none;
        bool                 status = strncmp(s->name, "status", 6) == 0, says = strncmp(s->name, "what", 4) == 0;
        bool                 words = codes_alone && (status || says);
        bool                 same = strcmp(s->name, t->name) == 0 && (words || s->count == t->count);
        for (int64_t i = 0; same && i < (words ? status : s->count); i++)
            if (!same_number(a->number[s->from + i], b->number[t->from + i], zeros_alike)) {
                char one[160], other[160];
                put_words(a, s, one, sizeof one);
                put_words(b, t, other, sizeof other);
                if (strncmp(s->name, "status", 6) == 0)
                    snprintf(why, size, "%s: '%s' and '%s'", s->name, one, other);
                else
                    snprintf(why, size, "%s, number %lld of %lld: %.17g and %.17g", s->name, (long long)i,
                             (long long)s->count, a->number[s->from + i], b->number[t->from + i]);
                return true;
            }
        if (!same) {
            char one[160], other[160];
            put_words(a, s, one, sizeof one);
            put_words(b, t, other, sizeof other);
            snprintf(why, size, "'%s' (%lld numbers%s%s) and '%s' (%lld numbers%s%s)", s->name, (long long)s->count,
                     strncmp(s->name, "status", 6) == 0 ? ", " : "", strncmp(s->name, "status", 6) == 0 ? one : "",
                     t->name, (long long)t->count, strncmp(t->name, "status", 6) == 0 ? ", " : "",
                     strncmp(t->name, "status", 6) == 0 ? other : "");
            return true;
        }
    }
    return false;
}
