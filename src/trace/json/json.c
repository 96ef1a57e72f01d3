/* json.c: a JSON writer that streams. */
#include "trace/json/json.h"

#include "base/number.h"
#include "base/utf8.h"
#include "diff/engine/kept_adjoints.h"

#include <stdlib.h>
#include <string.h>

cot__json cot__json_to(FILE *out) { return (cot__json){out, false}; }

static void before_value(cot__json *j) {
    if (j->comma) fputc(',', j->out);
    j->comma = true;
}

void cot__json_open(cot__json *j, char bracket) {
    before_value(j);
    fputc(bracket, j->out);
    j->comma = false;
}

void cot__json_close(cot__json *j, char bracket) {
    fputc(bracket, j->out);
    j->comma = true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static void quoted(FILE *out, const char *s, size_t n) {
    static const char plain[] = "\"\\\b\f\n\r\t", short_form[] = "\"\\bfnrt";
    fputc('"', out);
    while (n > 0) {
        size_t      length = cot__utf8(s, n);
        const char *at = *s ? strchr(plain, *s) : NULL;
        if (length == 0)
            fputs("\xef\xbf\xbd", out), length = 1;
        else if (at)
            fprintf(out, "\\%c", short_form[at - plain]);
        else if ((unsigned char)*s < 0x20 || *s == 0x7f)
            fprintf(out, "\\u%04x", (unsigned)*s);
        else
            fwrite(s, 1, length, out);
        s += length, n -= length;
    }
    fputc('"', out);
}

void cot__json_key(cot__json *j, const char *key) {
    before_value(j);
    quoted(j->out, key, strlen(key));
    fputc(':', j->out);
    j->comma = false;
}

void cot__json_string_n(cot__json *j, const char *s, size_t n) {
    before_value(j);
    quoted(j->out, s, n);
}

void cot__json_string(cot__json *j, const char *s) {
    if (s)
        cot__json_string_n(j, s, strlen(s));
    else
        cot__json_null(j);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static const char *odd_number(double v) { return isnan(v) ? "nan" : v > 0 ? "inf" : "-inf"; }

/* 17 digits take at most 24 characters. In sanitizer builds gcc expects more, and would warn. */
static void write_digits(char *buf, int digits, double v) {
    char text[64];
    int  n = cot__format(text, sizeof text, "%.*g", digits, v);
    memcpy(buf, text, n < 31 ? (size_t)n + 1 : 32);
}

/* 15 digits (6 for a float) are always exact. If they do not read back to the same number, one or
 * two more do. Subnormal numbers have fewer exact digits. */
const char *cot__shortest(double v, char *buf) {
    if (!isfinite(v)) return strcpy(buf, odd_number(v));
    if (v == 0) return strcpy(buf, signbit(v) ? "-0.0" : "0");
    for (int digits = fabs(v) < 2.2250738585072014e-308 ? 1 : 15; digits <= 17; digits++) {
        write_digits(buf, digits, v);
        if (cot__read_number(buf, NULL) == v) break;
    }
    return buf;
}

const char *cot__shortest_float(float v, char *buf) {
    if (!isfinite(v)) return strcpy(buf, odd_number((double)v));
    if (v == 0) return strcpy(buf, signbit(v) ? "-0.0" : "0");
    for (int digits = fabsf(v) < 1.17549435e-38f ? 1 : 6; digits <= 9; digits++) {
        write_digits(buf, digits, (double)v);
        if (cot__read_float(buf) == v) break;
    }
    return buf;
}

const char *cot__element_text(const void *p, cot_dtype dtype, char *buf) {
    if (dtype == COT_BOOL) return strcpy(buf, cot__load_i64(p, dtype) ? "true" : "false");
    if (dtype == COT_F64) return cot__shortest(cot__load_f64(p, dtype), buf);
    if (cot__dtype_is_float(dtype)) return cot__shortest_float((float)cot__load_f64(p, dtype), buf);
    snprintf(buf, 32, "%lld", (long long)cot__load_i64(p, dtype));
    return buf;
}

static void bare(cot__json *j, const char *text, bool quote) {
    before_value(j);
    fprintf(j->out, quote ? "\"%s\"" : "%s", text);
}

void cot__json_number(cot__json *j, double v) {
    char buf[32];
    bare(j, cot__shortest(v, buf), !isfinite(v));
}

void cot__json_float(cot__json *j, float v) {
    char buf[32];
    bare(j, cot__shortest_float(v, buf), !isfinite(v));
}

void cot__json_integer(cot__json *j, int64_t v) {
    before_value(j);
    fprintf(j->out, "%lld", (long long)v);
}

void cot__json_bool(cot__json *j, bool v) { bare(j, v ? "true" : "false", false); }
void cot__json_null(cot__json *j) { bare(j, "null", false); }
