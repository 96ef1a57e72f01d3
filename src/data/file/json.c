/* json.c: a strict scanner for JSON of a known form. */
#include "data/file/json.h"

#include <string.h>

#include "base/utf8.h"

bool cot__scan_fails(cot__scan *x, const char *what) {
    if (!x->what) x->what = what;
    return false;
}

bool cot__scan_memory(cot__scan *x) {
    x->memory = true;
    return cot__scan_fails(x, "memory is short");
}

static void skip_spaces(cot__scan *x) { x->at = cot__after_spaces(x->at, x->end); }

static bool take(cot__scan *x, char c) {
    skip_spaces(x);
    if (x->at == x->end || *x->at != c) return false;
    x->at++;
    return true;
}

bool cot__scan_open(cot__scan *x, char bracket) {
    if (x->what) return false;
    if (!take(x, bracket))
        return cot__scan_fails(x, bracket == '{' ? "something else than an object" : "something else than a list");
    x->fresh = true;
    return true;
}

bool cot__scan_next(cot__scan *x, char bracket) {
    if (x->what) return false;
    bool first = x->fresh;
    x->fresh   = false;
    if (take(x, bracket)) return false;
    if (!first && !take(x, ',')) return cot__scan_fails(x, bracket == '}' ? "neither , nor }" : "neither , nor ]");
    return true;
}

/* Four hexadecimal digits. */
static bool take_hex(cot__scan *x, uint32_t *out) {
    *out = 0;
    if (x->end - x->at < 4) return false;
    for (int k = 0; k < 4; k++) {
        char c = *x->at++;
        int  d = c >= '0' && c <= '9'   ? c - '0'
                 : c >= 'a' && c <= 'f' ? c - 'a' + 10
                 : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                        : -1;
        if (d < 0) return false;
        *out = *out << 4 | (uint32_t)d;
    }
    return true;
}

static char *put_utf8(char *to, uint32_t u) {
    if (u < 0x80) {
        *to++ = (char)u;
    } else if (u < 0x800) {
        *to++ = (char)(0xc0 | u >> 6);
        *to++ = (char)(0x80 | (u & 0x3f));
    } else if (u < 0x10000) {
        *to++ = (char)(0xe0 | u >> 12);
        *to++ = (char)(0x80 | (u >> 6 & 0x3f));
        *to++ = (char)(0x80 | (u & 0x3f));
    } else {
        *to++ = (char)(0xf0 | u >> 18);
        *to++ = (char)(0x80 | (u >> 12 & 0x3f));
        *to++ = (char)(0x80 | (u >> 6 & 0x3f));
        *to++ = (char)(0x80 | (u & 0x3f));
    }
    return to;
}

/* Reads the characters behind a backslash. They give at most 4 bytes for at least 2 that are read,
 * so the text never grows. */
static char *take_escape(cot__scan *x, char *to) {
    static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
    if (x->at == x->end) return NULL;
    char        c = *x->at++;
    const char *p = c ? strchr(from, c) : NULL;
    if (p) {
        *to++ = is[p - from];
        return to;
    }
    uint32_t u, low;
    if (c != 'u' || !take_hex(x, &u) || u == 0 || (u >= 0xdc00 && u < 0xe000)) return NULL;
    if (u >= 0xd800 && u < 0xdc00) {
        if (x->end - x->at < 2 || x->at[0] != '\\' || x->at[1] != 'u') return NULL;
        x->at += 2;
        if (!take_hex(x, &low) || low < 0xdc00 || low >= 0xe000) return NULL;
        u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(to, u);
}

char *cot__scan_string(cot__scan *x) {
    if (x->what || !take(x, '"')) {
        cot__scan_fails(x, "something else than a string");
        return NULL;
    }
    const char *close = x->at;
    while (close < x->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= x->end) {
        cot__scan_fails(x, "a string without end");
        return NULL;
    }
    char *text = cot__keep_take(x->pool, (size_t)(close - x->at) + 1), *to = text;
    if (!text) {
        cot__scan_memory(x);
        return NULL;
    }
    while (to && x->at < close) {
        if (*x->at == '\\') {
            x->at++;
            to = take_escape(x, to);
            continue;
        }
        size_t n = (unsigned char)*x->at < 0x20 ? 0 : cot__utf8(x->at, (size_t)(close - x->at));
        if (!n) to = NULL;
        for (; n > 0; n--) *to++ = *x->at++;
    }
    if (!to) {
        cot__scan_fails(x, "a string that is no JSON");
        return NULL;
    }
    *to = 0;
    x->at++;
    return text;
}

char *cot__scan_key(cot__scan *x) {
    char *key = cot__scan_string(x);
    if (key && !take(x, ':')) {
        cot__scan_fails(x, "a key without :");
        return NULL;
    }
    return key;
}

bool cot__scan_natural(cot__scan *x, uint64_t *out) {
    uint64_t n = 0;
    if (x->what) return false;
    skip_spaces(x);
    const char *start = x->at;
    for (; x->at < x->end && *x->at >= '0' && *x->at <= '9'; x->at++) {
        uint64_t d = (uint64_t)(*x->at - '0');
        if (n > (UINT64_MAX - d) / 10) return cot__scan_fails(x, "a number beyond 64 bits");
        n = 10 * n + d;
    }
    if (x->at == start || (*start == '0' && x->at - start > 1))
        return cot__scan_fails(x, "something else than a natural number");
    *out = n;
    return true;
}

bool cot__scan_end(cot__scan *x) {
    skip_spaces(x);
    return !x->what && (x->at == x->end || cot__scan_fails(x, "text behind the object"));
}
