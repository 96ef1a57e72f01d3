/* exported.c: see exported.h. The packed bytes are a list of
 *
 *     n < 128      n + 1 letters follow, as they are
 *     n >= 128     n - 124 letters are those that stand b letters before this place; two bytes
 *                  follow, b % 256 and b / 256
 *
 * and lines end with a 0. Only the build writes them, so nothing is checked. */
#include "program/emit/text/exported.h"

#include <string.h>

static void unpack(char *to) {
    const unsigned char *from = cot__packed_text, *end = from + cot__packed_bytes;
    while (from < end) {
        int n = *from++;
        if (n < 128) {
            memcpy(to, from, (size_t)n + 1);
            from += n + 1, to += n + 1;
        } else {
            const char *again = to - (from[0] | from[1] << 8);
            /* letter by letter: a repetition may reach into itself */
            for (n -= 124; n > 0; n--) *to++ = *again++;
            from += 2;
        }
    }
}

static size_t bytes_of_text(void) { return (size_t)cot__packed_letters; }
static size_t bytes_of_lines(void) { return ((size_t)cot__packed_lines + 1) * sizeof(char *); }

bool cot__exported_open(cot__exported *x, const cot_allocator *al) {
    *x = (cot__exported){.al = al, .text = cot__alloc(al, bytes_of_text()), .line = cot__alloc(al, bytes_of_lines())};
    if (!x->text || !x->line) return cot__exported_close(x), false;
    unpack(x->text);
    const char *s = x->text;
    for (int k = 0; k < cot__packed_lines; k++, s += strlen(s) + 1) x->line[k] = s;
    x->line[cot__packed_lines] = NULL;
    return true;
}

void cot__exported_close(cot__exported *x) {
    cot__free(x->al, x->text, bytes_of_text());
    cot__free(x->al, (void *)x->line, bytes_of_lines());
    *x = (cot__exported){.al = x->al};
}
