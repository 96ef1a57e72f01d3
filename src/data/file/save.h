/* save.h: tensors as files: .safetensors, .npy and .npz, put in their place as a whole or not at
 * all. */
#ifndef COT_DATA_SAVE_H
#define COT_DATA_SAVE_H

#include "data/file/listing.h"

typedef enum cot__file_kind_of { COT__FILE_OTHER, COT__FILE_SAFETENSORS, COT__FILE_NPY, COT__FILE_NPZ } cot__file_form;

/* By the ending of the path. */
cot__file_form cot__file_form_of(const char *path);

typedef struct cot__saved_item {
    const char *name;
    cot_dtype   dtype;
    cot_shape   shape;
} cot__saved_item;

typedef struct cot__saving {
    cot_allocator          al;
    cot__file_form         form;
    int                    n;
    const cot__saved_item *items;
    /* The elements of item k, row-major; they may lie where those of the last item lay. NULL after
     * a failure, which it has told `t`. */
    const void *(*elements)(void *user, int k, cot__trouble *t);
    void *user;
    /* of .safetensors: pairs of text beside the tensors */
    int                  pair_count;
    const cot_text_pair *pairs;
    /* of .safetensors: the first pair is the sum of all other bytes, see cot__safetensors_sum */
    bool sum;
    bool pack; /* of .npz: compress members, if zlib is there; else it is a failure */
} cot__saving;

/* Names and shapes are legal. */
bool cot__save(const char *path, const cot__saving *w, cot__trouble *t);

/* Does the file begin with the sum of its other bytes, and does that fit? */
bool cot__safetensors_sum(cot__source *s, cot__trouble *t);

#endif
