/* words.c: cuts text as GPT-2 does, whose pattern is
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * The first alternative that matches counts. A byte that is no UTF-8 is one of neither letters,
 * numbers nor white space. */
#include "data/text/tokenizer.h"

#include "base/utf8.h"

#include <string.h>

static const uint8_t packed[] = {
#include "data/text/unicode_ranges.inc"
};

static uint32_t unpack(size_t *at) {
    uint32_t v = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t b = packed[(*at)++];
        v |= (uint32_t)(b & 127) << shift;
        if (b < 128) return v;
    }
}

bool cot__words_prepare(cot_tokenizer *k) {
    size_t   room = 0;
    uint32_t at   = 0x80;
    for (size_t i = 0; i < sizeof packed;) {
        uint32_t    gap = unpack(&i), length = unpack(&i) + 1;
        cot__range *grown = cot__keep_grow(&k->keep, k->ranges, k->range_count, &room, sizeof *grown);
        if (!grown) return false;
        at += gap / 2;
        k->ranges               = grown;
        grown[k->range_count++] = (cot__range){at, at + length, gap & 1};
        at += length;
    }
    return true;
}

typedef enum kind { OTHER, LETTER, NUMBER, SPACE } kind;

static kind kind_beyond_ascii(const cot_tokenizer *k, uint32_t c) {
    size_t low = 0, high = k->range_count;
    if (c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
        c == 0x202f || c == 0x205f || c == 0x3000)
        return SPACE;
    while (low < high) {
        size_t            middle = (low + high) / 2;
        const cot__range *r      = &k->ranges[middle];
        if (c >= r->stop)
            low = middle + 1;
        else if (c < r->start)
            high = middle;
        else
            return r->number ? NUMBER : LETTER;
    }
    return OTHER;
}

/* The kind of the character at s, and its bytes. */
static kind look(const cot_tokenizer *k, const char *s, size_t n, size_t *bytes) {
    unsigned char c = (unsigned char)*s;
    *bytes          = 1;
    if (c < 0x80) {
        if ((c | 32) >= 'a' && (c | 32) <= 'z') return LETTER;
        if (c >= '0' && c <= '9') return NUMBER;
        return c == ' ' || (c >= 9 && c <= 13) ? SPACE : OTHER;
    }
    size_t length = cot__utf8(s, n);
    if (!length) return OTHER;
    uint32_t point = c & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) point = point << 6 | ((unsigned char)s[i] & 0x3f);
    *bytes = length;
    return kind_beyond_ascii(k, point);
}

static size_t contraction(const char *s, size_t n) {
    static const char *const all[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (int i = 0; *s == '\'' && i < COUNTOF(all); i++) {
        size_t m = strlen(all[i]);
        if (n >= m && memcmp(s, all[i], m) == 0) return m;
    }
    return 0;
}

size_t cot__word(const cot_tokenizer *k, const char *text, size_t n) {
    size_t at = contraction(text, n), bytes, last = 0;
    if (at) return at;
    if (*text == ' ' && n > 1 && look(k, text + 1, n - 1, &bytes) != SPACE) at = 1;
    kind first = look(k, text + at, n - at, &bytes);
    while (at < n && look(k, text + at, n - at, &bytes) == first) last = bytes, at += bytes;
    /* of white space before something else the last character goes to that, or stands alone */
    return first == SPACE && at < n && at > last ? at - last : at;
}
