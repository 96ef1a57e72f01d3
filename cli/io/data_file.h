/* data_file.h: what the command reads from files, through the library's readers (data/file), with
 * their troubles as failures of the command. */
#ifndef COT_CLI_DATA_FILE_H
#define COT_CLI_DATA_FILE_H

#include "data/file/listing.h"
#include "data/table/table.h"
#include "io/failure.h"

/* Takes a trouble over, if there is one; true if there is none. */
bool failure_of_trouble(failure *f, const cot__trouble *t);

/* Reads a whole text of at most `limit` bytes, malloced and terminated. "-" is stdin. NULL on
 * failure. `what` names the text in messages. */
char *source_text(const char *path, const char *what, size_t limit, size_t *size, failure *f);

/* A table from a file; "-" is the standard input. Call cot__data_table_free in any case. */
bool table_read(cot__data_table *t, const char *path, failure *f);
/* A whole column of finite numbers into out (rows). `name` is for messages. */
bool table_column(const cot__data_table *t, int column, const char *name, double *out, failure *f);

/* A zeroed array. Free its data with free. */
bool array_allocate(cot_array *a, cot_dtype dtype, cot_shape shape, failure *f);
/* Reads the array of a .npy source, or a tensor of a .safetensors source; key NULL is an error that
 * lists the keys. Floats become `real`, integers i64, i32 or u8, whichever holds them. Free the
 * data with free. */
bool npy_read(cot__source *s, cot_dtype real, cot_array *a, failure *f);
bool npz_read(cot__source *s, const char *key, cot_dtype real, cot_array *a, failure *f);
bool safetensors_read(cot__source *s, const char *key, cot_dtype real, cot_array *a, failure *f);

#endif
