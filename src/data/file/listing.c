/* listing.c: see listing.h. */
#include "data/file/listing.h"

void cot__tensors_free(cot__tensors *l) { cot__keep_free(&l->pool); }

cot__tensor_entry *cot__tensors_add(cot__tensors *l, const char *name) {
    cot__tensor_entry *grown = name ? cot__keep_grow(&l->pool, l->entries, l->n, &l->room, sizeof *grown) : NULL;
    if (!grown) return NULL;
    l->entries  = grown;
    grown[l->n] = (cot__tensor_entry){.name = name};
    return &grown[l->n++];
}

bool cot__tensor_read(cot__source *s, const cot__tensor_entry *e, const cot_allocator *al, cot_dtype dtype, void *out,
                      cot__trouble *t) {
    if (!e->is_member) return cot__elements_read(s, &e->place, dtype, out, t);
    cot__source        member = {0};
    cot__element_place place;
    bool               fine = cot__npz_member(s, e, al, &member, t) && cot__npy_place(&member, &place, t);
    /* the listing has seen the same header, unless the file has changed */
    int64_t  listed = 0, there = 0;
    uint64_t ignored;
    fine = fine && cot__elements_count(&e->place.shape, 1, &listed, &ignored) &&
           cot__elements_count(&place.shape, 1, &there, &ignored);
    if (fine && listed != there) fine = cot__trouble_file(t, "%s has changed while it was read", s->path);
    fine = fine && cot__elements_read(&member, &place, dtype, out, t);
    cot__source_close(&member);
    return fine;
}
