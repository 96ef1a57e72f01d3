/* lines.c: see lines.h. */
#include "trace/lines/lines.h"

#include <stdint.h>
#include <string.h>

#include "base/base.h"

/* ---- columns --------------------------------------------------------------------------------- */

static uint32_t next_character(const unsigned char **s) {
    uint32_t c = *(*s)++;
    int      more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    if (more) c &= 0x3fu >> more;
    for (; more > 0 && (**s & 0xc0) == 0x80; more--) c = c << 6 | (*(*s)++ & 0x3fu);
    return c;
}

static int columns_of(uint32_t c) {
    static const struct { uint32_t from, to; int columns;
    } ranges[] = {
        {0x0300, 0x036f, 0}, {0x200b, 0x200f, 0}, {0x20d0, 0x20ff, 0},   {0xfe00, 0xfe0f, 0},
        {0x1100, 0x115f, 2}, {0x2e80, 0xa4cf, 2}, {0xac00, 0xd7a3, 2},   {0xf900, 0xfaff, 2},
        {0xfe30, 0xfe6f, 2}, {0xff00, 0xff60, 2}, {0x1f300, 0x1faff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (int k = 0; k < COUNTOF(ranges); k++)
        if (c >= ranges[k].from && c <= ranges[k].to) return ranges[k].columns;
    return c < 0x20 ? 0 : 1;
}

int cot__columns(const char *utf8) {
    int n = 0;
    for (const unsigned char *s = (const unsigned char *)utf8; *s;) n += columns_of(next_character(&s));
    return n;
}

const char *cot__fit(const char *utf8, int width, char *buf, size_t size) {
    const unsigned char *s = (const unsigned char *)utf8, *end = s;
    if (cot__columns(utf8) <= width) {
        snprintf(buf, size, "%s", utf8);
        return buf;
    }
    for (int used = 0; *s;) {
        used += columns_of(next_character(&s));
        if (used > width - 1 || (size_t)(s - (const unsigned char *)utf8) + 4 > size) break;
        end = s;
    }
    snprintf(buf, size, "%.*s…", (int)(end - (const unsigned char *)utf8), utf8);
    return buf;
}

/* ---- paragraphs ------------------------------------------------------------------------------ */

size_t cot__line(const char *text, int width) {
    const unsigned char *s = (const unsigned char *)text;
    size_t               n = 0, blank = 0;
    for (int columns = 0; *s && *s != '\n';) {
        bool is_blank = *s == ' ';
        columns += columns_of(next_character(&s));
        if (is_blank && n > 0 && text[n - 1] != ' ') blank = n;
        if (columns > width && n > 0) return blank ? blank : n;
        n = (size_t)(s - (const unsigned char *)text);
    }
    return n;
}

void cot__paragraph(FILE *out, int width, int indent, const char *text) {
    for (bool begins = true; *text;) {
        int    before = begins ? 0 : indent;
        size_t n = cot__line(text, width - before);
        fprintf(out, "%*s%.*s\n", before, "", (int)n, text);
        text += n;
        begins = *text == '\n';
        text += begins ? 1 : strspn(text, " ");
    }
}
