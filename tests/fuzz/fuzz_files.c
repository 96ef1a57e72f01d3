/* fuzz_files.c: a fuzz target for the readers of .npy and .safetensors files.
 *
 * The lowest bits of the first byte say which reader, what floats become and whether a tensor is
 * named. */
#include <stdlib.h>

#include "io/data_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    cot__source s    = cot__source_of_memory("fuzz", data + 1, size - 1);
    cot_dtype   real = data[0] & 2 ? COT_F32 : COT_F64;
    cot_array   a    = {0};
    failure     f    = {0};
    bool fine = data[0] & 1 ? safetensors_read(&s, data[0] & 4 ? "a" : NULL, real, &a, &f) : npy_read(&s, real, &a, &f);
    if (fine != (f.status == EXIT_FINE) || fine != (a.data != NULL) || (fine && (size_t)a.size > size)) abort();
    free(a.data);
    return 0;
}
