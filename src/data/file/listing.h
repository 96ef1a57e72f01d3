/* listing.h: what is in a file of tensors: their names, dtypes, shapes and places, and the pairs
 * of text beside them. A listing is made and checked before any element is read. */
#ifndef COT_DATA_LISTING_H
#define COT_DATA_LISTING_H

#include <cotangent_data.h>

#include "data/file/elements.h"
#include "data/file/keep.h"

typedef struct cot__tensor_entry {
    const char        *name;
    const char        *dtype; /* as the file calls it, where it cannot be read */
    cot__element_place place;
    uint64_t           end; /* where its elements end */
    /* of .npz: the archive's member, which begins at place.at and is read whole */
    bool     is_member, is_packed;
    uint64_t member_bytes; /* unpacked */
    uint32_t crc;
} cot__tensor_entry;

typedef struct cot__tensors {
    cot__keep          pool;
    cot__tensor_entry *entries;
    size_t             n, room;
    cot_text_pair     *pairs;
    size_t             pair_count, pair_room;
    uint64_t           data; /* of .safetensors: where elements begin */
} cot__tensors;

void cot__tensors_free(cot__tensors *l);
/* One more entry, all zero but its name; NULL when memory is short. */
cot__tensor_entry *cot__tensors_add(cot__tensors *l, const char *name);

/* Each fills a listing with what is in the source. False after a failure; either way
 * cot__tensors_free frees it.
 *
 * Of .safetensors, every tensor is checked against the data; entries are sorted by name. Of .npy,
 * header, shape and file size are compared; versions 1 to 3, both byte orders, C and Fortran
 * order; the name is "". Of .npz, members by numpy.savez and savez_compressed, without their
 * ".npy"; one that is a short text becomes a pair. Of IDX, the format of the MNIST files, one
 * tensor of the name "". */
bool cot__safetensors_list(cot__source *s, cot__tensors *l, cot__trouble *t);
bool cot__npy_list(cot__source *s, cot__tensors *l, cot__trouble *t);
bool cot__npz_list(cot__source *s, cot__tensors *l, cot__trouble *t);
bool cot__idx_list(cot__source *s, cot__tensors *l, cot__trouble *t);

enum { COT__NPY_TEXT = 31 };

/* The place of the array in an .npy source; and where the array is one short text in ASCII instead,
 * such as the format that SciPy writes beside a sparse matrix, that text. */
bool cot__npy_place(cot__source *s, cot__element_place *p, cot__trouble *t);
bool cot__npy_text(cot__source *s, char to[COT__NPY_TEXT + 1], bool *is, cot__trouble *t);
/* Reads a member of an archive, unpacks it and checks it; `unpacked` is memory of it, which
 * cot__source_close frees. */
bool cot__npz_member(cot__source *s, const cot__tensor_entry *e, const cot_allocator *al, cot__source *unpacked,
                     cot__trouble *t);
/* Reads the elements of an entry, as cot__elements_read does. */
bool cot__tensor_read(cot__source *s, const cot__tensor_entry *e, const cot_allocator *al, cot_dtype dtype, void *out,
                      cot__trouble *t);

/* The sum of zip archives, which begins with 0. */
uint32_t cot__crc32(uint32_t crc, const void *bytes, size_t n);

#endif
