/* fuzz_archive.c: any bytes as a .npz archive or as an IDX file, listed and read as arrays. The
 * lowest bits of the first byte say which reader, what floats become, and whether the sums of an
 * archive's members are corrected; without that hardly any change would get past them. */
#include "data/file/listing.h"

#include "base/file/bytes.h"

#include "counted.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CENTRAL = 46, LOCAL = 30 };

static void broken(const char *what) {
    fprintf(stderr, "fuzz_archive: %s\n", what);
    abort();
}

/* The sums of members that are stored as they are, where the directory says that they lie. */
static void correct(uint8_t *bytes, size_t size) {
    for (size_t at = 0; at + CENTRAL <= size; at++) {
        if (memcmp(bytes + at, "PK\1\2", 4) != 0) continue;
        uint64_t head = cot__from_bytes(bytes + at + 42, 4), n = cot__from_bytes(bytes + at + 20, 4);
        if (size < LOCAL || head > size - LOCAL) continue;
        uint64_t begin = head + LOCAL + cot__from_bytes(bytes + head + 26, 2) + cot__from_bytes(bytes + head + 28, 2);
        if (begin <= size && n <= size - begin)
            cot__to_bytes(bytes + at + 16, cot__crc32(0, bytes + begin, (size_t)n), 4);
    }
}

/* Everything that is listed can be asked for; the bytes of an array are in the file, packed ones
 * within what packing can do. */
static void read_all(cot__source *s, const cot__tensors *l, cot_dtype real, const cot_allocator *al) {
    for (size_t k = 0; k < l->n; k++) {
        const cot__tensor_entry *e = &l->entries[k];
        cot__trouble             t = {0};
        int64_t                  count;
        uint64_t                 bytes;
        if (!e->place.format.kind) continue; /* of a dtype that cannot be read, as callers say */
        cot_dtype d = e->place.format.kind == 'f' || e->place.format.kind == 'h' ? real
                                                                                  : cot__coding_dtype(e->place.format);
        if (!cot__elements_count(&e->place.shape, e->place.format.size, &count, &bytes)) broken("a shape without end");
        if (bytes > (e->is_member ? e->member_bytes : s->size)) broken("an array that is not there");
        if (count > MOST_MEMORY / 8) continue;
        void *out = malloc((size_t)count * 8 + 1);
        if (!out) return;
        if (cot__tensor_read(s, e, al, d, out, &t) != (t.status == COT_OK)) broken("a failure without a sentence");
        free(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    uint8_t      *bytes = malloc(size);
    size_t        used  = 0;
    cot_allocator al    = {counted, &used};
    cot__tensors  l     = {.pool.al = al};
    cot__trouble  t     = {0};
    if (!bytes) return 0;
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 4) correct(bytes, size - 1);
    cot__source s    = cot__source_of_memory("fuzz", bytes, size - 1);
    bool        fine = (data[0] & 1 ? cot__idx_list : cot__npz_list)(&s, &l, &t);
    if (fine != (t.status == COT_OK)) broken("a failure without a sentence");
    if (fine) read_all(&s, &l, data[0] & 2 ? COT_F32 : COT_F64, &al);
    cot__tensors_free(&l);
    if (used) broken("memory is left");
    free(bytes);
    return 0;
}
