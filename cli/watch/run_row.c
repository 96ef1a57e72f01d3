/* run_row.c: the scanner of JSON reads what has a known form; a row may also hold what is of no use
 * here, which is passed over. */
#include "watch/run_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "data/file/json.h"

static void skip_spaces(cot__scan *x) { x->at = cot__after_spaces(x->at, x->end); }

static size_t digits(const char *at, const char *end) {
    size_t n = 0;
    while (at + n < end && at[n] >= '0' && at[n] <= '9') n++;
    return n;
}

/* The length of the number at x->at; 0: there is none. */
static size_t number_length(const cot__scan *x) {
    const char *p = x->at, *end = x->end;
    if (p < end && *p == '-') p++;
    size_t n = digits(p, end);
    if (n == 0 || (n > 1 && *p == '0')) return 0;
    p += n;
    if (p < end && *p == '.') {
        n = digits(++p, end);
        if (n == 0) return 0;
        p += n;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        n = digits(p, end);
        if (n == 0) return 0;
        p += n;
    }
    return (size_t)(p - x->at);
}

/* A number as JSON writes it, or one of the strings "nan", "inf" and "-inf". False, and nothing is
 * read, where something else stands; that is no failure. */
static bool number(cot__scan *x, double *out) {
    static const struct {
        const char *text;
        double      value;
    } words[] = {{"\"nan\"", NAN}, {"\"inf\"", INFINITY}, {"\"-inf\"", -INFINITY}};
    char text[400];
    if (x->what) return false;
    skip_spaces(x);
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        size_t n = strlen(words[k].text);
        if ((size_t)(x->end - x->at) < n || memcmp(x->at, words[k].text, n) != 0) continue;
        x->at += n;
        *out = words[k].value;
        return true;
    }
    size_t n = number_length(x);
    if (n == 0 || n >= sizeof text) return false;
    memcpy(text, x->at, n);
    text[n] = 0;
    x->at += n;
    *out = cot__read_number(text, NULL);
    return true;
}

/* Passes over one word or one string of a value. */
static bool skip_word(cot__scan *x) {
    static const char *const words[] = {"true", "false", "null"};
    double                   v;
    if (number(x, &v)) return true;
    if (x->at < x->end && *x->at == '"') {
        return cot__scan_string(x) != NULL;
    }
    for (size_t k = 0; k < 3; k++) {
        size_t n = strlen(words[k]);
        if ((size_t)(x->end - x->at) < n || memcmp(x->at, words[k], n) != 0) continue;
        x->at += n;
        return true;
    }
    return cot__scan_fails(x, "something else than a value");
}

/* Passes over one value of any kind. Of lists and objects only the brackets and strings are looked
 * at: how deep it stands is all that is kept. */
static bool skip(cot__scan *x) {
    int64_t depth = 0;
    do {
        skip_spaces(x);
        if (x->what) return false;
        if (x->at == x->end) return cot__scan_fails(x, "a value without end");
        if (*x->at == '{' || *x->at == '[')
            x->at++, depth++;
        else if (depth > 0 && (*x->at == '}' || *x->at == ']'))
            x->at++, depth--;
        else if (depth > 0 && (*x->at == ',' || *x->at == ':'))
            x->at++;
        else if (!skip_word(x))
            return false;
    } while (depth > 0);
    return true;
}

/* False when memory is short. */
static bool keep(run_row *r, const char *name, double v) {
    if (strcmp(name, "step") == 0)
        r->step = v, r->has_step = true;
    else if (strcmp(name, "seconds") == 0)
        r->seconds = v;
    else if (strcmp(name, "steps") == 0)
        r->steps = v;
    else if (r->n < RUN_ROW) {
        r->names[r->n]  = strdup(name);
        r->values[r->n] = v;
        return r->names[r->n] && ++r->n;
    }
    return true;
}

const char *run_row_read(run_row *r, const char *text, size_t n, bool *memory) {
    cot__keep pool = {0};
    cot__scan x = {.start = text, .at = text, .end = text + n, .pool = &pool};
    double    v;
    *r = (run_row){.step = NAN, .seconds = NAN, .steps = NAN};
    if (cot__scan_open(&x, '{')) {
        while (cot__scan_next(&x, '}')) {
            char *name = cot__scan_key(&x);
            if (!name) break;
            if (!number(&x, &v)) skip(&x);
            else if (!keep(r, name, v)) cot__scan_memory(&x);
        }
    }
    cot__scan_end(&x);
    cot__keep_free(&pool);
    *memory = x.memory;
    return x.what;
}

void run_row_free(run_row *r) {
    for (int k = 0; k < r->n; k++) free(r->names[k]);
    r->n = 0;
}
