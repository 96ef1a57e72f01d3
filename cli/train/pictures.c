/* pictures.c: files of pictures. */
#include "train/pictures.h"

#include "io/memory_file.h"
#include "io/system.h"

bool picture_file(training *r, const char *folder, const char *name, void (*draw)(training *r, FILE *out), FILE *out,
                  failure *f) {
    char        path[4096];
    memory_file m;
    if (!system_make_folder(folder, f)) return false;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!memory_file_open(&m, f)) return false;
    draw(r, m.file);
    if (memory_file_close(&m, f) && m.size == 0) failure_memory(f);
    if (f->status == EXIT_FINE && system_put_file(path, m.text, m.size, f))
        fprintf(out, "drawn: %s\n", path);
    memory_file_free(&m);
    return f->status == EXIT_FINE;
}
