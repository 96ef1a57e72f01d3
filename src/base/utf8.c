/* utf8.c: the table of well-formed UTF-8 (Unicode, table 3-7), and the characters that must not be
 * shown. */
#include "base/utf8.h"

#include "base/base.h"

size_t cot__utf8(const char *s, size_t n) {
    static const struct { unsigned char from, to, low, high; size_t length; } kinds[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *c = (const unsigned char *)s;
    if (n == 0) return 0;
    for (int k = 0; k < COUNTOF(kinds); k++) {
        if (c[0] < kinds[k].from || c[0] > kinds[k].to) continue;
        if (kinds[k].length > n) return 0;
        for (size_t i = 1; i < kinds[k].length; i++)
            if (c[i] < (i == 1 ? kinds[k].low : 0x80) || c[i] > (i == 1 ? kinds[k].high : 0xbf)) return 0;
        return kinds[k].length;
    }
    return 0;
}

size_t cot__utf8_shown(const char *s, size_t n) {
    const unsigned char *c = (const unsigned char *)s;
    size_t               length = cot__utf8(s, n);
    if (length == 1 && (c[0] < 0x20 || c[0] == 0x7f)) return 0;
    if (length == 2 && c[0] == 0xc2 && c[1] < 0xa0) return 0;
    if (length == 3 && c[0] == 0xe2) { /* U+2028 to 202E, U+2066 to 2069 */
        if (c[1] == 0x80 && c[2] >= 0xa8 && c[2] <= 0xae) return 0;
        if (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9) return 0;
    }
    return length;
}
