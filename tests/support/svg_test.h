/* svg_test.h: is a picture well-formed XML? Include it after cmocka.h. */
#ifndef COT_SVG_TEST_H
#define COT_SVG_TEST_H

#include <stdio.h>
#include <string.h>

/* Every tag is closed, in order; text has no < and & only in known entities; attributes are quoted.
 * The number of elements. */
static inline int well_formed(const char *p) {
    char names[16][32];
    int  depth = 0, elements = 0;
    assert_true(strncmp(p, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ", 44) == 0);
    p = strchr(p, '\n') + 1;
    while (*p) {
        if (*p == '&')
            assert_true(!strncmp(p, "&lt;", 4) || !strncmp(p, "&gt;", 4) || !strncmp(p, "&amp;", 5) ||
                        !strncmp(p, "&quot;", 6));
        assert_true(*p != '>' && ((unsigned char)*p >= 0x20 || *p == '\n'));
        if (*p++ != '<') continue;
        int    closing = *p == '/';
        char   name[32];
        size_t n = strspn(p += closing, "abcdefghijklmnopqrstuvwxyz");
        assert_true(n > 0 && n < sizeof name);
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        p += n;
        while (*p == ' ') {
            p += 1 + strcspn(p + 1, "=");
            assert_true(p[0] == '=' && p[1] == '"');
            p += 2;
            size_t length = strcspn(p, "\"<&");
            assert_true(p[length] == '"');
            p += length + 1;
        }
        int empty = *p == '/';
        p += empty;
        assert_true(*p++ == '>');
        if (closing) {
            assert_true(depth > 0);
            assert_string_equal(names[--depth], name);
        } else {
            elements++;
            if (!empty) {
                assert_true(depth < 16);
                strcpy(names[depth++], name);
            }
        }
    }
    assert_int_equal(depth, 0);
    return elements;
}

static inline int occurrences(const char *text, const char *of) {
    int n = 0;
    while ((text = strstr(text, of))) n++, text += strlen(of);
    return n;
}

#endif
