/* cli_test.h: runs the command from tests, in an empty folder of their own. */
#ifndef COT_CLI_TEST_H
#define COT_CLI_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct ran {
    int   status;
    char *out, *err;
} ran;

static ran  last;
static char folder[] = "/tmp/cotangent-cli-XXXXXX";

static char *slurp(const char *path) {
    FILE  *file = fopen(path, "rb");
    size_t used = 0, room = 1 << 16;
    char  *text = malloc(room);
    assert_non_null(text);
    assert_non_null(file);
    for (size_t got; (got = fread(text + used, 1, room - used - 1, file)) > 0;) {
        used += got;
        if (room - used < 2) text = realloc(text, room *= 2);
        assert_non_null(text);
    }
    fclose(file);
    text[used] = 0;
    return text;
}

/* Runs a shell line in the test's folder; `cotangent` is the command. Its output stays available
 * until the next run. */
__attribute__((format(printf, 1, 2))) static inline int sh(const char *format, ...) {
    static char line[1 << 16];
    va_list     arguments;
    int         n = snprintf(line, sizeof line, "cd %s && exec >.out 2>.err </dev/null; export PATH=%s:$PATH; ", folder,
                             COT_COMMAND_FOLDER);
    va_start(arguments, format);
    vsnprintf(line + n, sizeof line - (size_t)n, format, arguments);
    va_end(arguments);
    int  code = system(line);
    char path[64];
    free(last.out);
    free(last.err);
    snprintf(path, sizeof path, "%s/.out", folder);
    last.out = slurp(path);
    snprintf(path, sizeof path, "%s/.err", folder);
    last.err = slurp(path);
    last.status = WIFEXITED(code) ? WEXITSTATUS(code) : -1;
    return last.status;
}

/* Runs a line that must succeed. */
static inline void runs(const char *line) {
    if (sh("%s", line) != 0) print_error("%s: %s\n", line, last.err);
    assert_int_equal(last.status, 0);
}

/* The line prints exactly this, with status 0. */
static inline void prints(const char *line, const char *out) {
    sh("%s", line);
    if (last.status != 0) print_error("%s\n%s", line, last.err);
    assert_int_equal(last.status, 0);
    assert_string_equal(last.out, out);
    assert_string_equal(last.err, "");
}

/* The line fails with this status and message, and prints nothing else; with --json the same in an
 * object. `caret` is the text behind the message. */
static inline void fails(const char *line, int status, const char *message, const char *caret) {
    char expected[4096], piped[8192];
    snprintf(expected, sizeof expected, "cotangent: %s\n%s", message, caret);
    sh("%s", line);
    if (last.status != status) print_error("%s\n%s%s", line, last.out, last.err);
    assert_string_equal(last.err, expected);
    assert_string_equal(last.out, "");
    assert_int_equal(last.status, status);
    const char *rest = strstr(line, "cotangent ");
    if (!rest || strstr(line, "--json") || strstr(line, "| cotangent")) return;
    rest = strchr(rest + strlen("cotangent "), ' ');
    if (!rest) return;
    snprintf(piped, sizeof piped, "%.*s --json%s", (int)(rest - line), line, rest);
    sh("%s", piped);
    assert_int_equal(last.status, status);
    assert_string_equal(last.err, "");
    assert_true(strncmp(last.out, "{\"error\":", 9) == 0);
}

/* ---- JSON: is the text one value? ------------------------------------------------------------ */

static const char *json_value(const char *p);

static const char *json_spaces(const char *p) { return p + strspn(p, " \t\r\n"); }

static const char *json_text(const char *p) {
    if (*p++ != '"') return NULL;
    for (; *p != '"'; p++) {
        if ((unsigned char)*p < 0x20) return NULL; /* includes the end of the text */
        if (*p != '\\') continue;
        p++;
        if (*p == 'u') {
            for (int k = 1; k <= 4; k++)
                if (!strchr("0123456789abcdefABCDEF", p[k]) || !p[k]) return NULL;
            p += 4;
        } else if (!*p || !strchr("\"\\/bfnrt", *p)) {
            return NULL;
        }
    }
    return p + 1;
}

static const char *json_list(const char *p, char close, int keys) {
    p = json_spaces(p + 1);
    if (*p == close) return p + 1;
    for (;;) {
        if (keys) {
            p = json_text(json_spaces(p));
            if (!p) return NULL;
            p = json_spaces(p);
            if (*p++ != ':') return NULL;
        }
        p = json_value(p);
        if (!p) return NULL;
        p = json_spaces(p);
        if (*p == close) return p + 1;
        if (*p++ != ',') return NULL;
    }
}

static const char *json_number(const char *p) {
    if (*p == '-') p++;
    size_t n = strspn(p, "0123456789");
    if (n == 0 || (n > 1 && *p == '0')) return NULL;
    p += n;
    if (*p == '.') {
        n = strspn(++p, "0123456789");
        if (n == 0) return NULL;
        p += n;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-') p++;
        n = strspn(p, "0123456789");
        if (n == 0) return NULL;
        p += n;
    }
    return p;
}

static const char *json_value(const char *p) {
    p = json_spaces(p);
    if (*p == '{') return json_list(p, '}', 1);
    if (*p == '[') return json_list(p, ']', 0);
    if (*p == '"') return json_text(p);
    if (strncmp(p, "true", 4) == 0 || strncmp(p, "null", 4) == 0) return p + 4;
    if (strncmp(p, "false", 5) == 0) return p + 5;
    return json_number(p);
}

/* The line prints one JSON object and a newline. */
static inline void prints_json(const char *line) {
    sh("%s", line);
    if (last.status > 1) print_error("%s\n%s%s", line, last.out, last.err);
    assert_true(last.status <= 1);
    const char *end = json_value(last.out);
    assert_int_equal(last.out[0], '{');
    assert_non_null(end);
    assert_string_equal(end, "\n");
}

static inline int folder_make(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void **state) {
    char line[64];
    (void)state;
    free(last.out);
    free(last.err);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

#endif
