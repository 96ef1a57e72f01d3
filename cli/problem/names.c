/* names.c: recognises names, and lists several of them in a sentence. */
#include "problem/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

const char *list_names(int n, const char *const *names, char *buf, size_t size) {
    size_t used = 0;
    buf[0] = 0;
    for (int k = 0; k < n && used < size; k++)
        used += (size_t)snprintf(buf + used, size - used, "%s%.60s",
                                 k == 0       ? ""
                                 : k == n - 1 ? " and "
                                              : ", ",
                                 names[k]);
    return buf;
}

size_t name_length(const char *text) {
    size_t      n = strcspn(text, "= \t");
    const char *equals = text + n + strspn(text + n, " \t");
    if (n == 0 || *equals != '=' || equals[1] == '=') return 0;
    for (size_t k = 0; k < n; k++) {
        unsigned char c = (unsigned char)text[k];
        bool          letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
        if (!letter && !(k > 0 && c >= '0' && c <= '9')) return 0;
    }
    return n;
}
