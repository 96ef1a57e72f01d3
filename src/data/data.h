/* data.h: what people train with, beside layers and optimisers: tensors and parameters in files,
 * checkpoints of training runs, data sets, the loader of batches, the tokenizer. The public header
 * include/cotangent_data.h tells what each does.
 *
 * May call: libc, base, data/file, data/table, parameters, optimisers, public functions. Must not
 * touch: operations, nodes of tapes. */
#ifndef COT_DATA_H
#define COT_DATA_H

#include <cotangent_data.h>

#include "data/file/save.h"

/* Do the names differ, and is none NULL? The list is sorted. */
bool cot__names_differ(int n, const char **names, const char *path, cot__trouble *t);

/* Has an array for a file (or for a folder of checkpoints) a name, a dtype, and the elements of its
 * shape? */
bool cot__array_given(const char *path, const char *name, const cot_array *a, cot__trouble *t);

/* Are the texts beside tensors given, and is there room for any in this kind of file? */
bool cot__pairs_given(const char *path, const cot__saving *w, cot__trouble *t);

/* Are elements of tensor k of the file read in this dtype, as far as its own tells? */
bool cot__file_can_read(const cot_file *f, int k, cot_dtype dtype);

/* The newest checkpoint in a folder that is whole: its path, malloced. NULL: there is none, or
 * memory is short. */
char *cot__training_newest(const char *folder);

/* Something that is saved and loaded under a name: a parameter, or an array of the host. */
typedef struct cot__part {
    const char *name;
    cot_var     var;   /* no tape: the array counts */
    cot_array   array; /* of a var: its dtype, shape and size */
} cot__part;

typedef struct cot__parts {
    cot__keep  keep;
    cot__part *part;
    size_t     n, room;
    void      *scratch; /* room for the elements of the largest var */
    size_t     scratch_bytes;
} cot__parts;

/* Adds all parameters, each name behind `before`. False when memory is short. */
bool cot__parts_of_params(cot__parts *x, const cot_params *p, const char *before);
bool cot__parts_add(cot__parts *x, const char *before, const char *name, cot_var var, const cot_array *array);
void cot__parts_free(cot__parts *x);
/* Saves them; w says how, beside the items and elements. */
bool cot__parts_save(cot__parts *x, const char *path, cot__saving *w, cot__trouble *t);
/* Compares names, shapes and dtypes of all parts with those of the file, of which `place[k]`
 * becomes the number of part k, or -1. False, and one sentence, where they do not fit. */
bool cot__parts_match(const cot__parts *x, const cot_file *f, const char *path, const cot_load_options *o, int *place,
                      cot__trouble *t);
/* Reads them, where place[k] >= 0. */
bool cot__parts_load(cot__parts *x, cot_file *f, const int *place, cot__trouble *t);

#endif
