/* viewer.c: puts a trace into its page. */
#include "output/viewer.h"

#include <string.h>

void viewer_write(FILE *out, const char *json, size_t n) {
    const char *page = viewer_template(), *mark = strstr(page, VIEWER_MARK);
    if (!mark) return;
    fwrite(page, 1, (size_t)(mark - page), out);
    for (size_t i = 0; i < n; i++) { /* in JSON, < stands only inside strings */
        char next = json[i] == '<' && i + 1 < n ? json[i + 1] : 0;
        if (next == '/') fputs("<\\", out);
        else if (next == '!') fputs("\\u003c", out);
        else putc(json[i], out);
    }
    fputs(mark + strlen(VIEWER_MARK), out);
}
