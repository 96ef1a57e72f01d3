/* number.c: printf and strtod that know no locale.
 *
 * Writing: the format is taken apart. Conversions of floating-point numbers are written one by one:
 * any character that is not a digit, sign or letter can only be the decimal point of some locale.
 * All other conversions go to snprintf. Reading: the text is written again without its point,
 * 12.5e3 as 125e2, which every locale reads alike. */
#include "base/number.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct sink {
    char  *out;
    size_t size, used; /* used: length of the whole text, also if it does not fit */
} sink;

typedef struct conversion {
    char flags[8], length[3], letter;
    int  width, precision; /* precision -1: not given */
} conversion;

static char  *place(const sink *s) { return s->used < s->size ? s->out + s->used : NULL; }
static size_t room(const sink *s) { return s->used < s->size ? s->size - s->used : 0; }

static void put_bytes(sink *s, const char *text, size_t n) {
    size_t fits = room(s) ? room(s) - 1 : 0;
    if (fits > n) fits = n;
    if (fits) memcpy(place(s), text, fits);
    if (room(s)) place(s)[fits] = 0;
    s->used += n;
}

/* Reads the characters behind a percent sign. Returns where the format goes on. */
static const char *read_conversion(const char *p, conversion *c, va_list *args) {
    *c = (conversion){.precision = -1};
    for (size_t n = 0; *p && strchr("-+ #0", *p); p++)
        if (n + 1 < sizeof c->flags) c->flags[n++] = *p;
    if (*p == '*') c->width = va_arg(*args, int), p++;
    else for (; *p >= '0' && *p <= '9'; p++) c->width = 10 * c->width + (*p - '0');
    if (*p == '.') {
        c->precision = 0;
        if (*++p == '*') c->precision = va_arg(*args, int), p++;
        else for (; *p >= '0' && *p <= '9'; p++) c->precision = 10 * c->precision + (*p - '0');
    }
    for (size_t n = 0; *p && strchr("hljzt", *p); p++)
        if (n + 1 < sizeof c->length) c->length[n++] = *p;
    c->letter = *p;
    return *p ? p + 1 : p;
}

/* Writes "%-*.*lld": width and precision are passed as arguments; a precision below 0 counts as
 * none. */
static const char *specification(const conversion *c, char spec[24]) {
    snprintf(spec, 24, "%%%s*.*%s%c", c->flags, c->length, c->letter);
    return spec;
}

static void put_floating(sink *s, const conversion *c, double v) {
    char       text[512];
    conversion bare = *c;
    char       spec[24];
    bare.length[0] = 0; /* %lf is %f */
    if (isnan(v)) v = fabs(v); /* all NaNs are one */
    int   n = snprintf(text, sizeof text, specification(&bare, spec), 0, c->precision, v);
    char *to = text;
    if (n >= (int)sizeof text) n = (int)sizeof text - 1;
    for (const char *p = text; isfinite(v) && *p; p++) {
        if (strchr(strchr("aA", c->letter) ? "0123456789abcdefABCDEFxXpP+- " : "0123456789eE+- ", *p)) *to++ = *p;
        /* one point, however many bytes the locale's point has */
        else if (to == text || to[-1] != '.') *to++ = '.';
    }
    if (isfinite(v)) *to = 0;
    bare = (conversion){.letter = 's', .width = c->width, .precision = -1};
    if (strchr(c->flags, '-')) strcpy(bare.flags, "-");
    s->used += (size_t)snprintf(place(s), room(s), specification(&bare, spec), bare.width, -1, text);
}

/* Integers, texts and pointers: snprintf writes them. The letters give the type of the argument. */
static int put_other(sink *s, const conversion *c, va_list *args) {
    char        spec[24], *at = place(s);
    size_t      n = room(s);
    const char *f = specification(c, spec), *l = c->length;
    int         w = c->width, p = c->precision;
    switch (c->letter) {
    case 's': return snprintf(at, n, f, w, p, va_arg(*args, const char *));
    case 'p': return snprintf(at, n, f, w, p, va_arg(*args, void *));
    case 'c': return snprintf(at, n, f, w, p, va_arg(*args, int));
    case 'd': case 'i': case 'u': case 'x': case 'X': case 'o':
        if (strcmp(l, "ll") == 0) return snprintf(at, n, f, w, p, va_arg(*args, long long));
        if (strcmp(l, "l") == 0) return snprintf(at, n, f, w, p, va_arg(*args, long));
        if (strcmp(l, "z") == 0) return snprintf(at, n, f, w, p, va_arg(*args, size_t));
        if (strcmp(l, "j") == 0) return snprintf(at, n, f, w, p, va_arg(*args, intmax_t));
        if (strcmp(l, "t") == 0) return snprintf(at, n, f, w, p, va_arg(*args, ptrdiff_t));
        return snprintf(at, n, f, w, p, va_arg(*args, int));
    default: return -1;
    }
}

int cot__vformat(char *out, size_t size, const char *format, va_list given) {
    sink    s = {out, size, 0};
    va_list args;
    va_copy(args, given);
    put_bytes(&s, "", 0);
    while (*format) {
        size_t n = strcspn(format, "%");
        put_bytes(&s, format, n);
        format += n;
        if (!*format) break;
        if (format[1] == '%') {
            put_bytes(&s, "%", 1);
            format += 2;
            continue;
        }
        conversion c;
        format = read_conversion(format + 1, &c, &args);
        if (c.letter && strchr("aefgAEFG", c.letter)) {
            put_floating(&s, &c, va_arg(args, double));
            continue;
        }
        int wrote = put_other(&s, &c, &args);
        /* a conversion that is not known: the arguments behind it cannot be read */
        if (wrote < 0) break;
        s.used += (size_t)wrote;
    }
    va_end(args);
    return s.used < INT_MAX ? (int)s.used : INT_MAX;
}

int cot__format(char *out, size_t size, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = cot__vformat(out, size, format, args);
    va_end(args);
    return n;
}

void cot__write(FILE *file, const char *format, ...) {
    char    line[2048];
    va_list args;
    va_start(args, format);
    cot__vformat(line, sizeof line, format, args);
    va_end(args);
    fputs(line, file);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A double has at most 767 digits, and a number half way between two doubles at most one more. All
 * digits behind these count as one digit, which says whether they are all zero. */
enum { DIGITS = 800, REWRITTEN = DIGITS + 32 };

static int digit_of(char c, int base) {
    static const char digits[] = "0123456789abcdef";
    char              small = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char       *at = small ? strchr(digits, small) : NULL;
    return at && at - digits < base ? (int)(at - digits) : -1;
}

typedef struct scan {
    char     *to;    /* the digits that count, without the point */
    int       count; /* how many of them there are */
    long long shift; /* places by which the point moved, to behind the last digit */
    bool      seen, rest;
} scan;

static const char *scan_digits(scan *s, const char *p, int base, bool fraction) {
    for (; digit_of(*p, base) >= 0; p++) {
        s->seen = true;
        /* a leading zero only tells where the point is */
        if (s->count == 0 && *p == '0') {
            s->shift -= fraction;
        } else if (s->count < DIGITS) {
            s->to[s->count++] = *p;
            s->shift -= fraction;
        } else {
            s->rest = s->rest || *p != '0';
            s->shift += !fraction;
        }
    }
    return p;
}

/* Reads the exponent at p, "e-12". Returns where it ends; p if there is none. */
static const char *scan_exponent(const char *p, const char *letters, long long *exponent) {
    const char *digits = p + 1;
    *exponent = 0;
    if (!*p || !strchr(letters, *p)) return p;
    bool minus = *digits == '-';
    if (*digits == '-' || *digits == '+') digits++;
    if (*digits < '0' || *digits > '9') return p;
    for (p = digits; *p >= '0' && *p <= '9'; p++)
        if (*exponent < LLONG_MAX / 100) *exponent = 10 * *exponent + (*p - '0');
    if (minus) *exponent = -*exponent;
    return p;
}

/* Writes the number at the beginning of `text` again, without a point. Returns where it ends, or
 * NULL if there is none. */
static const char *rewrite(const char *text, char out[REWRITTEN]) {
    const char *p = text + strspn(text, " \t\n\v\f\r");
    scan        s = {.to = out};
    if (*p == '-' || *p == '+') *s.to++ = *p++;
    bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X') &&
               (digit_of(p[2], 16) >= 0 || (p[2] == '.' && digit_of(p[3], 16) >= 0));
    int  base = hex ? 16 : 10;
    if (hex) *s.to++ = '0', *s.to++ = 'x', p += 2;
    p = scan_digits(&s, p, base, false);
    if (*p == '.' && (s.seen || digit_of(p[1], base) >= 0)) p = scan_digits(&s, p + 1, base, true);
    if (!s.seen) return NULL;
    long long exponent;
    p = scan_exponent(p, hex ? "pP" : "eE", &exponent);
    if (s.rest) s.to[s.count++] = '1', s.shift--;
    if (s.count == 0) s.to[s.count++] = '0', exponent = s.shift = 0;
    exponent += hex ? 4 * s.shift : s.shift;
    /* larger exponents are beyond all doubles */
    exponent = exponent < -99999 ? -99999 : exponent > 99999 ? 99999 : exponent;
    snprintf(s.to + s.count, REWRITTEN - (size_t)(s.to + s.count - out), "%c%lld", hex ? 'p' : 'e', exponent);
    return p;
}

/* inf and nan have no point, so strtod may read them. It must not read other text, which in some
 * locale could begin with a point. */
static bool is_word(const char *text) {
    text += strspn(text, " \t\n\v\f\r");
    if (*text == '-' || *text == '+') text++;
    return *text && strchr("iInN", *text) != NULL;
}

double cot__read_number(const char *text, char **end) {
    char        plain[REWRITTEN];
    const char *stop = rewrite(text, plain);
    if (!stop && is_word(text)) return strtod(text, end);
    if (end) *end = (char *)(uintptr_t)(stop ? stop : text);
    return stop ? strtod(plain, NULL) : 0;
}

float cot__read_float(const char *text) {
    char plain[REWRITTEN];
    if (rewrite(text, plain)) return strtof(plain, NULL);
    return is_word(text) ? strtof(text, NULL) : 0;
}

double cot__read_bytes(const char *text) {
    static const struct { const char *unit; int power; } units[] = {{"", 0},    {"B", 0},    {"KiB", 10},
                                                                    {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    char  *end;
    double number = cot__read_number(text, &end);
    if (end == text || !(number >= 0)) return -1;
    while (*end == ' ') end++;
    for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
        double bytes = ldexp(number, units[k].power);
        if (strcmp(end, units[k].unit) == 0 && (bytes == 0 || bytes >= 1) && bytes < 0x1p63) return bytes;
    }
    return -1;
}
