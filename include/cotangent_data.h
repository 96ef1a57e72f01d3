/* cotangent_data.h: tensors in files, parameters and training runs in files, and data to train on.
 *
 *     cot_file *f = cot_file_open("model.safetensors", NULL);
 *     int       k = cot_file_find(f, "fc1.weight");
 *     float    *w = malloc(cot_file_size(f, k) * sizeof *w);
 *     cot_file_read(f, k, COT_F32, w);
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
#ifndef COTANGENT_H
/* This file is a part of it, which it includes where the turn is: after the parts that this one
 * needs. */
#include <cotangent.h>
#elif !defined(COTANGENT_DATA_H)
#define COTANGENT_DATA_H

#ifdef __cplusplus
extern "C" {
#endif

/* ==== Tensors in files
 * ==================================================================================== */

/* What is in a file, and its elements when they are asked for:
 *     .safetensors     tensors by name, and pairs of text beside them (__metadata__)
 *     .npy             one array, of the name ""
 *     .npz             arrays by name; opening reads all of it once, and checks its sums. A member
 *                      that is a short text, as SciPy's "format", is a pair of text
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
/* Shape, number of elements, and the dtype that holds every element: that of the file, or of
 * integers that the library has not (8, 16 bits, unsigned ones) the next wider. COT_SCALAR, 0 and
 * COT_F64 where there is no such. */
COT_API cot_shape cot_file_shape(const cot_file *f, int k);
COT_API int64_t   cot_file_size(const cot_file *f, int k);
COT_API cot_dtype cot_file_dtype(const cot_file *f, int k);
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

/* ==== Parameters in files
 * ==================================================================================== */

struct cot_params; /* cotangent_nn.h */

/* Saves all parameters, statistics included, under their names; the tape stays as it is. */
COT_API cot_status cot_params_save(struct cot_params *p, const char *path, const cot_save_options *options, char *why,
                                   size_t room);

typedef struct cot_load_options {
    cot_allocator      allocator COT__OR_0; /* alloc NULL: malloc, realloc, free */
    /* Take what is there: parameters that the file does not hold stay as they are, and what else it
     * holds is left. `why` then gets the list of both, and the status is COT_OK. Shapes must still
     * fit. */
    bool               partial COT__OR_0;
    /* what stands before every name in the file, "transformer." say; NULL: nothing */
    const char        *prefix COT__OR_0;
    /* the name that a parameter has in the file, without the prefix, written to `to` of `size`
     * bytes or returned; NULL leaves the parameter as it is. NULL: its own name */
    const char *(*rename)(const char *name, char *to, size_t size, void *user) COT__OR_0;
    void              *user COT__OR_0;
    /* names in the file that are no parameters, with * and ? as in cot_params_freeze:
     * "h.*.attn.bias" */
    int                ignores COT__OR_0;
    const char *const *ignore COT__OR_0;
} cot_load_options;

/* Writes what is in a file of tensors over the parameters of these names, frozen ones and
 * statistics too, as cot_assign_data does. Each keeps its dtype, and floats are converted as by
 * cot_file_read: f32 to f64 exactly, f64 to f32 and both to bf16 rounded once, so f32 saved from
 * f64 and loaded into f64 is what was rounded. All names and shapes are compared before anything is
 * written; if they do not fit, `why` lists in one sentence what is missing, what is unknown and
 * which shapes differ, and no parameter has changed. NULL options for the defaults. */
COT_API cot_status cot_params_load(struct cot_params *p, const char *path, const cot_load_options *options, char *why,
                                   size_t room);

/* ==== Batches
 * ==================================================================================== */

/* The numbers 0 … n - 1 in an order that the key gives: the same on every machine. */
COT_API void cot_row_order(cot_key key, int64_t n, int64_t *order);

/* Tokens in a file of nothing else: unsigned numbers of 2 or 4 bytes, the lowest byte first. The
 * file is mapped into memory, not read: it may be larger than that, and must not be cut while it is
 * open. */
typedef struct cot_tokens cot_tokens;
COT_API cot_tokens *cot_tokens_open(const char *path, int bytes, const cot_allocator *allocator);
COT_API void        cot_tokens_close(cot_tokens *t); /* NULL is fine */
COT_API cot_status  cot_tokens_status(const cot_tokens *t);
COT_API const char *cot_tokens_message(const cot_tokens *t);
COT_API int64_t     cot_tokens_count(const cot_tokens *t);
/* n tokens from number `from` on, as i64. */
COT_API cot_status cot_tokens_read(const cot_tokens *t, int64_t from, int64_t n, int64_t *out);

typedef struct cot_loader_options {
    cot_allocator allocator COT__OR_0; /* alloc NULL: malloc, realloc, free */
    int64_t       batch COT__OR_0;     /* rows of a batch, at least 1 */
    bool          shuffle COT__OR_0;   /* each epoch in an order of its own: cot_row_order with … */
    cot_key       key COT__OR_0;       /* … this key folded with the number of the epoch */
    bool          drop_last COT__OR_0; /* leave out a last batch that is not full */
    int64_t       epochs COT__OR_0;    /* how often all rows are given; 0: there is no end */
    /* Batches that a thread makes before they are asked for; 0: 2. Negative: no thread, they are
     * made when they are asked for. */
    int           ahead COT__OR_0;
} cot_loader_options;

/* Batches of rows. A position is that of the next batch: how many rows of which epoch were
 * given. */
typedef struct cot_loader cot_loader;
typedef struct cot_position {
    int64_t epoch;
    int64_t row;
} cot_position;

/* Rows of n arrays of the same extent along axis 0, (rows, …), which must live and stay as long as
 * the loader. NULL only when there is no memory for the object; after any other failure it gives
 * nothing and says why. The loader belongs to one thread. */
COT_API cot_loader *cot_loader_create(int n, const cot_array *arrays, const cot_loader_options *options);
/* Rows of `window` tokens: row r begins at token r · stride. Batches are one array (batch, window),
 * i32 of tokens of 2 bytes and i64 of 4. */
COT_API cot_loader *cot_loader_tokens(const cot_tokens *t, int64_t window, int64_t stride,
                                      const cot_loader_options *options);
COT_API void        cot_loader_destroy(cot_loader *l); /* at any time; NULL is fine */
COT_API cot_status  cot_loader_status(const cot_loader *l);
COT_API const char *cot_loader_message(const cot_loader *l);
COT_API int64_t     cot_loader_rows(const cot_loader *l);

/* The next batch: n arrays (batch, …), good until the next call on the loader; the last of an epoch
 * may have fewer rows. NULL at the end, and after a failure. */
COT_API const cot_array *cot_loader_next(cot_loader *l);
COT_API cot_position     cot_loader_position(const cot_loader *l);
/* Goes on from there: with the same rows and options, to the same batches. */
COT_API cot_status cot_loader_seek(cot_loader *l, cot_position position);

/* ==== Text
 * ==================================================================================== */

/* A whole file of text, unpacked if gzip packed it, with a 0 behind its *bytes bytes; free it with
 * free. NULL after a failure. */
COT_API char *cot_text_read(const char *path, size_t *bytes, char *why, size_t room);

/* Text as tokens and back. Threads may share a tokenizer. */
typedef struct cot_tokenizer cot_tokenizer;

/* Byte-pair encoding as GPT-2 does it, from its vocab.json and merges.txt. Text is cut into words
 * by GPT-2's pattern (contractions; letters, numbers, others, each with a space before them; white
 * space), where letters and numbers are those of Unicode; a byte that is no UTF-8 counts as one
 * that is neither. Any bytes go in and come back. Special tokens are not looked for in a text:
 * cot_tokenizer_find gives their numbers. */
COT_API cot_tokenizer *cot_tokenizer_load(const char *vocab, const char *merges, const cot_allocator *allocator);
/* One token for each character that the text has, in the order of Unicode. */
COT_API cot_tokenizer *cot_tokenizer_of_text(const char *text, size_t bytes, const cot_allocator *allocator);
COT_API void           cot_tokenizer_destroy(cot_tokenizer *k); /* NULL is fine */
COT_API cot_status     cot_tokenizer_status(const cot_tokenizer *k);
COT_API const char    *cot_tokenizer_message(const cot_tokenizer *k);
/* One more than the highest number of a token. */
COT_API int64_t cot_tokenizer_count(const cot_tokenizer *k);
/* The number of the token with these bytes; -1: there is none. */
COT_API int64_t cot_tokenizer_find(const cot_tokenizer *k, const char *token, size_t bytes);
/* The tokens of a text: returns how many there are, and writes the first `room` of them to ids
 * (NULL with room 0: only counts). -1 after a failure: memory is short, or a part of the text, at a
 * byte that `why` names, has no token. */
COT_API int64_t cot_tokenizer_encode(const cot_tokenizer *k, const char *text, size_t bytes, int64_t *ids, int64_t room,
                                     char *why, size_t why_room);
/* The bytes of n tokens: returns how many there are, and writes the first `room` of them, without a
 * 0 at the end. -1: a number is of no token. */
COT_API int64_t cot_tokenizer_decode(const cot_tokenizer *k, const int64_t *ids, int64_t n, char *text, int64_t room);

/* ==== Training that goes on
 * ==================================================================================== */

struct cot_optim; /* cotangent_optim.h */

/* What a training run is made of. What is NULL or zero is not part of it. */
typedef struct cot_training {
    struct cot_params *params COT__OR_0; /* with statistics */
    struct cot_optim  *optim COT__OR_0;  /* its states and steps: so its schedule too */
    cot_loader        *loader COT__OR_0; /* its position */
    /* more arrays, by names, which a resumed run writes over */
    int                extras COT__OR_0;
    const char *const *extra_names COT__OR_0;
    const cot_array   *extra COT__OR_0;
    int64_t            step COT__OR_0;
    cot_key            key COT__OR_0;
    cot_allocator      allocator COT__OR_0;
    bool               resumed COT__OR_0; /* set by cot_training_resume: there was a checkpoint */
} cot_training;

/* Saves all of it as a checkpoint in a folder, which is made if it is not there:
 * step-000000001200.safetensors, whose checksum covers every byte (docs/file-format.md). It is put
 * in its place as a whole, and then all older than the newest two that are whole are removed: so
 * whenever the process is killed, the machine stops or the disk is full, the newest one that was
 * complete is there. One process at a time writes to a folder. An error: a step beyond
 * 10^18 - 1, or before that of a whole checkpoint in the folder, from which a resumed run would go
 * on. */
COT_API cot_status cot_training_save(const char *folder, const cot_training *t, char *why, size_t room);
/* Goes on from the newest checkpoint in the folder: writes over parameters, states, position,
 * extras, step and key, so that what follows has the bits of a run that was never interrupted. One
 * that is cut short or altered is passed over for the one before, and `why` says so, with the
 * status COT_OK. No folder, or none in it: nothing happens, and t->resumed is false. An error: none
 * of those that are there is whole; or the newest whole one is of another model, and then nothing
 * has been written. */
COT_API cot_status cot_training_resume(const char *folder, cot_training *t, char *why, size_t room);

#ifdef __cplusplus
}
#endif

#endif
