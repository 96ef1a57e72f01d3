/* cotangent_data.h: tensors in files, parameters and training runs in files, and data to train on.
 *
 *     cot_file *f = cot_file_open("model.safetensors", NULL);
 *     int       k = cot_file_find(f, "fc1.weight");
 *     cot_type  w = cot_file_type(f, k);
 *     cot_file_read(f, k, COT_F32, memory);
 *     if (cot_file_status(f)) puts(cot_file_message(f));
 *     cot_file_close(f);
 *
 * Nothing here is on a tape, but for what takes a cot_params. An error is a sentence with the path
 * of the file and, where that is known, the byte or the line in it: on the object (its status and
 * message; the first error stays, and what is done afterwards does nothing), or in `why` of `room`
 * bytes, with its end (NULL: not wanted), which becomes "" where there is none. A file is believed
 * in nothing: what is cut short, altered or made to deceive is an error, and no memory is taken for
 * what a file only claims to hold. A file that is written is put in its place as a whole: when the
 * disk is full, or the machine stops, there is the old one. */
#ifndef COTANGENT_DATA_H
#define COTANGENT_DATA_H

#ifndef COTANGENT_H
#include <cotangent.h>
#endif
#include <cotangent_program.h> /* cot_type */

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Tensors in files
 * ==================================================================================== */

/* What is in a file, and its elements when they are asked for:
 *     .safetensors     tensors by name, and pairs of text beside them (__metadata__)
 *     .npy             one array, of the name ""
 *     .npz             arrays by name; opening reads all of it once, and checks its sums
 *     IDX              the format of the MNIST files: one array, of the name ""
 *     .csv .tsv .txt .dat    a table of numbers, each column an f64 array of its rows, by the name
 *                      in the first line, or "0", "1", … where it has none; a missing value is NaN
 * Each may be compressed by gzip, and members of .npz as numpy.savez_compressed does it. That is
 * unpacked by zlib, which is opened when it is needed (libz.so.1, Debian: zlib1g; the static
 * library never opens it): without it the error says so. All others need nothing. Both orders of
 * bytes are read, and Fortran's order of elements. */
typedef struct cot_file cot_file;

/* Opens a file and lists what is in it. NULL only when there is no memory for the object; after any
 * other failure it is empty and says why. NULL allocator: malloc, realloc, free. */
COT_API cot_file   *cot_file_open(const char *path, const cot_allocator *allocator);
COT_API void        cot_file_close(cot_file *f); /* NULL is fine */
COT_API cot_status  cot_file_status(const cot_file *f);
COT_API const char *cot_file_message(const cot_file *f);

/* How many tensors there are; the name of one, NULL where there is no such; and the number of a
 * name, -1 where there is none (or several columns have it). */
COT_API int         cot_file_count(const cot_file *f);
COT_API const char *cot_file_name(const cot_file *f, int k);
COT_API int         cot_file_find(const cot_file *f, const char *name);
/* Shape, and the dtype that holds every element: that of the file, or of integers that the library
 * has not (8, 16 bits, unsigned ones) the next wider. An f64 scalar where there is no such. */
COT_API cot_type cot_file_type(const cot_file *f, int k);
/* Reads all elements of tensor k, row-major, in a dtype of your choice, to `out`, which has room
 * for them. Floats become any float dtype, each rounded once to the nearest: f32 to f64, and bf16
 * and f16 to either, change nothing. Integers and bools become any dtype, and the first that would
 * be another number there is an error. Floats are not read as integers. */
COT_API cot_status cot_file_read(cot_file *f, int k, cot_dtype dtype, void *out);

/* Pairs of text beside the tensors, such as a model's name and configuration: the text of a key
 * (NULL: there is none); or all of them, k from 0 on, false beyond the end. */
typedef struct cot_text_pair {
    const char *key;
    const char *text;
} cot_text_pair;
COT_API const char *cot_file_text(const cot_file *f, const char *key);
COT_API bool        cot_file_pair(const cot_file *f, int k, cot_text_pair *pair);

typedef struct cot_save_options {
    cot_allocator        allocator COT__OR_0; /* alloc NULL: malloc, realloc, free */
    int                  pairs COT__OR_0;     /* texts beside the tensors; .safetensors only */
    const cot_text_pair *texts COT__OR_0;
    bool                 compress COT__OR_0; /* members of .npz, by zlib */
} cot_save_options;

/* Writes n tensors under these names, which differ. The ending of the path says how: .safetensors,
 * .npz, or .npy, which holds one and no name. NumPy knows no bf16, and .npz files end at 4 GB: both
 * are errors that say what to do. NULL options for the defaults. */
COT_API cot_status cot_file_save(const char *path, int n, const char *const *names, const cot_array *arrays,
                                 const cot_save_options *options, char *why, size_t room);

#ifdef __cplusplus
}
#endif

#endif
