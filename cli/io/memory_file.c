/* memory_file.c: a stream into memory that keeps its errors. glibc's open_memstream does not: a
 * printf that finds no memory loses its text and leaves ferror at 0. So with glibc this file makes
 * its own stream. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fopencookie */
#endif
#include "io/memory_file.h"
#include "io/system.h"

#include <stdlib.h>
#include <string.h>

#ifdef __GLIBC__
static ssize_t append(void *cookie, const char *bytes, size_t n) {
    memory_file *m = cookie;
    if (m->room - m->size <= n) {
        size_t room = 2 * m->room + n + 1;
        char  *grown = realloc(m->text, room);
        if (!grown) return 0; /* an error, which the stream keeps */
        m->text = grown;
        m->room = room;
    }
    memcpy(m->text + m->size, bytes, n);
    m->size += n;
    m->text[m->size] = 0;
    return (ssize_t)n;
}

bool memory_file_open(memory_file *m, failure *f) {
    *m = (memory_file){.room = 4096, .text = malloc(4096)};
    if (m->text) {
        m->text[0] = 0;
        m->file = fopencookie(m, "w", (cookie_io_functions_t){.write = append});
    }
    if (m->file) return true;
    memory_file_free(m);
    return failure_memory(f);
}
#else
bool memory_file_open(memory_file *m, failure *f) {
    *m = (memory_file){0};
    m->file = open_memstream(&m->text, &m->size);
    return m->file ? true : failure_memory(f);
}
#endif

bool memory_file_close(memory_file *m, failure *f) {
    if (!m->file) return true;
    bool fine = !ferror(m->file);
    fine = fclose(m->file) == 0 && fine;
    m->file = NULL;
    return fine && m->text ? true : failure_memory(f);
}

void memory_file_free(memory_file *m) {
    if (m->file) fclose(m->file);
    m->file = NULL;
    free(m->text);
    m->text = NULL;
}

void memory_file_put(const char *path, writer *write, const void *x, FILE *out, failure *f) {
    memory_file m;
    if (f->status != EXIT_FINE) return;
    if (strcmp(path, "-") == 0) {
        write(x, out, f);
        return;
    }
    if (!memory_file_open(&m, f)) return;
    write(x, m.file, f);
    if (memory_file_close(&m, f) && f->status == EXIT_FINE) system_put_file(path, m.text, m.size, f);
    memory_file_free(&m);
}
