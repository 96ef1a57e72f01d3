/* step_text.c: cleans, cuts and colours text. */
#include "step/step_text.h"

#include <string.h>

#include "base/utf8.h"
#include "trace/trace.h"

const char *step_clean(const char *text, size_t n, char *buf, size_t size) {
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        size_t length = cot__utf8_shown(text + i, n - i);
        if (used + (length ? length : 1) + 1 > size) break;
        if (length) memcpy(buf + used, text + i, length);
        else buf[used] = text[i] == '\n' || text[i] == '\t' || text[i] == '\r' ? ' ' : '?';
        used += length ? length : 1;
        i += length ? length : 1;
    }
    buf[used] = 0;
    return buf;
}

void step_put(step_line *l, step_ink ink, int width, const char *text) {
    static const char *const start[] = {"", "\033[1m", "\033[34m", "\033[33m", "\033[2m", "\033[31m", "\033[32m"};
    char                     clean[2 * COT__TRACE_TEXT], cut[2 * COT__TRACE_TEXT];
    if (width > l->left) width = l->left;
    if (width < 1) return;
    cot__fit(step_clean(text, strlen(text), clean, sizeof clean), width, cut, sizeof cut);
    bool inked = l->colour && ink != INK_PLAIN && *cut;
    fprintf(l->out, "%s%s%s", inked ? start[ink] : "", cut, inked ? "\033[0m" : "");
    l->left -= cot__columns(cut);
}

void step_cell(step_line *l, step_ink ink, int width, const char *text) {
    int end = l->left - width - 2;
    step_put(l, ink, width, text);
    while (l->left > end && l->left > 0) fputc(' ', l->out), l->left--;
}

/* The number of bytes of the text that fit on a line. */
static size_t line_length(const char *text, int width) {
    char   character[8];
    size_t blank = 0, k = 0;
    for (int columns = 0; text[k];) {
        size_t next = k + 1;
        while ((text[next] & 0xc0) == 0x80) next++;
        snprintf(character, sizeof character, "%.*s", (int)(next - k), text + k);
        columns += cot__columns(character);
        if (text[k] == ' ') blank = k;
        if (columns > width && text[k] != ' ') return blank ? blank : k ? k : next;
        k = next;
    }
    return k;
}

int step_wrapped(const char *text, int width, int line, char *buf, size_t size) {
    int lines = 0;
    if (size) buf[0] = 0;
    for (; *text; lines++) {
        size_t length = line_length(text, width);
        if (lines == line) snprintf(buf, size, "%.*s", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
    return lines;
}
