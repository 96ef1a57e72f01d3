/* run_row.c: the scanner of JSON reads what has a known form; a row may also hold what is of no use
 * here, which is passed over. */
#include "watch/run_row.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "io/json_scan.h"

static void skip_spaces(json_scan *x) {
    while (x->at < x->end && (*x->at == ' ' || *x->at == '\t' || *x->at == '\r')) x->at++;
}

static size_t digits(const char *at, const char *end) {
    size_t n = 0;
    while (at + n < end && at[n] >= '0' && at[n] <= '9') n++;
    return n;
}

/* The length of the number at x->at; 0: there is none. */
static size_t number_length(const json_scan *x) {
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
static bool number(json_scan *x, double *out) {
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
static bool skip_word(json_scan *x) {
    static const char *const words[] = {"true", "false", "null"};
    double                   v;
    if (number(x, &v)) return true;
    if (x->at < x->end && *x->at == '"') {
        char *text = json_scan_string(x);
        free(text);
        return text != NULL;
    }
    for (size_t k = 0; k < 3; k++) {
        size_t n = strlen(words[k]);
        if ((size_t)(x->end - x->at) < n || memcmp(x->at, words[k], n) != 0) continue;
        x->at += n;
        return true;
    }
    return json_scan_fails(x, "something else than a value");
}

/* Passes over one value of any kind. Of lists and objects only the brackets and strings are looked
 * at: how deep it stands is all that is kept. */
static bool skip(json_scan *x) {
    int64_t depth = 0;
    do {
        skip_spaces(x);
        if (x->what) return false;
        if (x->at == x->end) return json_scan_fails(x, "a value without end");
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

static void keep(run_row *r, char *name, double v) {
    if (strcmp(name, "step") == 0)
        r->step = v, r->has_step = true;
    else if (strcmp(name, "seconds") == 0)
        r->seconds = v;
    else if (strcmp(name, "steps") == 0)
        r->steps = v;
    else if (r->n < RUN_ROW) {
        r->names[r->n]    = name;
        r->values[r->n++] = v;
        return;
    }
    free(name);
}

const char *run_row_read(run_row *r, const char *text, size_t n, bool *memory) {
    json_scan x = {.start = text, .at = text, .end = text + n};
    double    v;
    *r = (run_row){.step = NAN, .seconds = NAN, .steps = NAN};
    if (json_scan_open(&x, '{')) {
        while (json_scan_next(&x, '}')) {
            char *name = json_scan_key(&x);
            if (!name) break;
            if (number(&x, &v))
                keep(r, name, v);
            else
                free(name), skip(&x);
        }
    }
    json_scan_end(&x);
    *memory = x.memory;
    return x.what;
}

void run_row_free(run_row *r) {
    for (int k = 0; k < r->n; k++) free(r->names[k]);
    r->n = 0;
}
