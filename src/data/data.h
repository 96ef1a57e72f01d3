/* data.h: what people train with, beside layers and optimisers: tensors and parameters in files,
 * checkpoints of training runs, data sets, the loader of batches, the tokenizer. The public header
 * include/cotangent_data.h tells what each does.
 *
 * May call: libc, base, data/file, data/table, parameters, optimisers, public functions. Must not
 * touch: operations, nodes of tapes. */
#ifndef COT_DATA_H
#define COT_DATA_H

#include <cotangent_data.h>

#include "data/file/listing.h"

/* Do the names differ, and is none NULL? The list is sorted. */
bool cot__names_differ(int n, const char **names, const char *path, cot__trouble *t);

#endif
