/* compiled_files.c: the names of what -o asks for, and the files. */
#include <stdlib.h>
#include <string.h>

#include "compiled/compiled.h"
#include "io/system.h"
#include "program/emit/emit.h"
#include "trace/json/json.h"

bool compiled_name(const char *path, char *name, char **header, failure *f) {
    const char *base = path ? strrchr(path, '/') : NULL;
    size_t      n;
    snprintf(name, COMPILED_NAME, "f");
    if (!path || strcmp(path, "-") == 0) return true;
    base = base ? base + 1 : path;
    n    = strlen(base);
    if (n < 2 || strcmp(base + n - 2, ".c") != 0)
        return failure_usage(f, "-o writes C, so its FILE ends in .c; '%.100s' does not", path);
    if (n == 2) return failure_usage(f, "-o names the function by its FILE; '%.100s' has no name before .c", path);
    char stem[COMPILED_NAME];
    snprintf(stem, sizeof stem, "%.*s", n - 2 < sizeof stem ? (int)n - 2 : (int)sizeof stem - 1, base);
    if (!cot__emit_function_name(stem, name, COMPILED_NAME)) return failure_memory(f);
    *header = malloc(strlen(path) + 1);
    if (!*header) return failure_memory(f);
    strcpy(*header, path);
    strcpy(*header + strlen(path) - 1, "h");
    return true;
}

const char *compiled_included(const char *header) {
    const char *slash = header ? strrchr(header, '/') : NULL;
    return slash ? slash + 1 : header;
}

/* The text, or the files that hold it. */
static void print_json_of(const options *o, const char *name, const char *header, const char *text, FILE *out) {
    cot__json j = cot__json_to(out);
    cot__json_open(&j, '{');
    cot__json_key(&j, "name");
    cot__json_string(&j, name);
    cot__json_key(&j, header ? "file" : "source");
    cot__json_string(&j, header ? o->output : text);
    if (header) {
        cot__json_key(&j, "header");
        cot__json_string(&j, header);
    }
    cot__json_close(&j, '}');
    fputs("\n", out);
}

bool compiled_put(const options *o, const char *name, const char *header, const memory_file *code,
                  const memory_file *declared, FILE *out, failure *f) {
    if (header && !(system_put_file(o->output, code->text, code->size, f) &&
                    system_put_file(header, declared->text, declared->size, f)))
        return false;
    if (o->json) print_json_of(o, name, header, code->text, out);
    else if (!header) fwrite(code->text, 1, code->size, out);
    return true;
}
