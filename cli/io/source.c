/* source.c: files, opened with care. */
#include "io/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool source_open(source *s, const char *path, failure *f) {
    *s = (source){.path = path};
    struct stat about;
    if (stat(path, &about) != 0) return failure_file(f, "read", path, errno);
    if (!S_ISREG(about.st_mode))
        return failure_set(f, EXIT_RUN, "file", "cannot read %s: it is not a regular file", path);
    s->file = fopen(path, "rb");
    if (!s->file) return failure_file(f, "read", path, errno);
    s->size = (uint64_t)about.st_size;
    return true;
}

bool source_exists(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

source source_of_memory(const char *name, const void *memory, size_t size) {
    return (source){.path = name, .memory = memory, .size = size};
}

void source_close(source *s) {
    if (s->file) fclose(s->file);
    s->file = NULL;
}

bool source_read(source *s, uint64_t offset, void *to, size_t n, failure *f) {
    if (offset > s->size || n > s->size - offset)
        return failure_set(f, EXIT_RUN, "file", "%s ends too early: it has %llu bytes", s->path,
                           (unsigned long long)s->size);
    if (!s->file) {
        if (n) memcpy(to, s->memory + offset, n);
        return true;
    }
    if (offset != s->at && fseeko(s->file, (off_t)offset, SEEK_SET) != 0)
        return failure_file(f, "read", s->path, errno);
    size_t got = fread(to, 1, n, s->file);
    s->at      = offset + got;
    if (got == n) return true;
    if (ferror(s->file)) return failure_file(f, "read", s->path, errno);
    return failure_set(f, EXIT_RUN, "file", "%s became shorter while it was read", s->path);
}

/* Reads to the end of the stream into growing memory, because the size of stdin is not known. */
static char *read_all(FILE *file, const char *name, const char *what, size_t limit, size_t *size, failure *f) {
    char  *text = NULL;
    size_t used = 0, room = 0;
    for (;;) {
        if (room - used < 2) {
            size_t more = room ? 2 * room : 4096;
            char  *grown = realloc(text, more);
            if (!grown) {
                free(text);
                failure_memory(f);
                return NULL;
            }
            text = grown;
            room = more;
        }
        size_t got = fread(text + used, 1, room - used - 1, file);
        used += got;
        if (used > limit)
            failure_usage(f, "%s in %s is longer than %zu bytes", what, name, limit);
        else if (ferror(file))
            failure_file(f, "read", name, errno);
        else if (got)
            continue;
        break;
    }
    if (f->status != EXIT_FINE) {
        free(text);
        return NULL;
    }
    text[used] = 0;
    *size      = used;
    return text;
}

char *source_text(const char *path, const char *what, size_t limit, size_t *size, failure *f) {
    if (strcmp(path, "-") == 0) return read_all(stdin, "the standard input", what, limit, size, f);
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        failure_set(f, EXIT_RUN, "file", "cannot read %s: it is a directory", path);
        return NULL;
    }
    FILE *file = fopen(path, "rb");
    if (!file) {
        failure_file(f, "read", path, errno);
        return NULL;
    }
    char *text = read_all(file, path, what, limit, size, f);
    fclose(file);
    return text;
}
