/* memory_file.c: open_memstream with its errors kept. */
#include "memory_file.h"

#include <stdlib.h>

bool memory_file_open(memory_file *m, failure *f) {
    m->text = NULL;
    m->size = 0;
    m->file = open_memstream(&m->text, &m->size);
    return m->file ? true : failure_memory(f);
}

bool memory_file_close(memory_file *m, failure *f) {
    if (!m->file) return true;
    bool fine = !ferror(m->file);
    fine      = fclose(m->file) == 0 && fine;
    m->file   = NULL;
    return fine && m->text ? true : failure_memory(f);
}

void memory_file_free(memory_file *m) {
    if (m->file) fclose(m->file);
    m->file = NULL;
    free(m->text);
    m->text = NULL;
}
