/* tokens.c: a file of tokens, mapped into memory; read, where there is no mapping. */
#include "data/tokens.h"

#include "base/file/bytes.h"

#include <errno.h>
#include <string.h>

#ifndef __wasi__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool open_bytes(cot_tokens *t, const char *path) {
    struct stat about;
    int         fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cot__trouble_errno(&t->trouble, "read", path, errno);
    bool fine = fstat(fd, &about) == 0 || cot__trouble_errno(&t->trouble, "read", path, errno);
    if (fine && !S_ISREG(about.st_mode))
        fine = cot__trouble_file(&t->trouble, "cannot read %s: it is not a regular file", path);
    if (fine) t->size = (size_t)about.st_size;
    void *map = fine && t->size ? mmap(NULL, t->size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (map == MAP_FAILED)
        fine = cot__trouble_errno(&t->trouble, "read", path, errno);
    else
        t->data = map;
    close(fd);
    return fine;
}

static void close_bytes(cot_tokens *t) {
    if (t->data) munmap(t->data, t->size);
}
#else
static bool open_bytes(cot_tokens *t, const char *path) {
    cot__source s;
    if (!cot__source_open(&s, path, &t->al, &t->trouble)) return false;
    t->size = (size_t)s.size;
    t->data = (unsigned char *)cot__source_all(&s, &t->al, &t->trouble);
    cot__source_close(&s);
    return t->data != NULL;
}

static void close_bytes(cot_tokens *t) { cot__free(&t->al, t->data, t->size + 1); }
#endif

cot_tokens *cot_tokens_open(const char *path, int bytes, const cot_allocator *allocator) {
    cot_tokens *t = cot__alloc(allocator, sizeof *t);
    if (!t) return NULL;
    *t = (cot_tokens){.al = allocator ? *allocator : (cot_allocator){0}, .bytes = bytes};
    if (!path)
        cot__trouble_file(&t->trouble, "the path is NULL");
    else if (bytes != 2 && bytes != 4)
        cot__trouble_file(&t->trouble, "%s is to hold tokens of %d bytes; a token has 2 or 4", path, bytes);
    else if (open_bytes(t, path) && t->size % (size_t)bytes)
        cot__trouble_file(&t->trouble, "%s holds %zu tokens of %d bytes, and at byte %zu a part of one", path,
                          t->size / (size_t)bytes, bytes, t->size / (size_t)bytes * (size_t)bytes);
    return t;
}

void cot_tokens_close(cot_tokens *t) {
    if (!t) return;
    close_bytes(t);
    cot_allocator al = t->al;
    cot__free(&al, t, sizeof *t);
}

cot_status  cot_tokens_status(const cot_tokens *t) { return t ? t->trouble.status : COT_MEMORY; }
const char *cot_tokens_message(const cot_tokens *t) { return t ? t->trouble.message : "memory is short"; }
int64_t     cot_tokens_count(const cot_tokens *t) {
        return t && !t->trouble.status ? (int64_t)(t->size / (size_t)t->bytes) : 0;
}

void cot__tokens_copy(const cot_tokens *t, int64_t from, int64_t n, void *out, cot_dtype dtype) {
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = cot__from_bytes(t->data + (size_t)(from + i) * (size_t)t->bytes, t->bytes);
        if (dtype == COT_I32)
            ((int32_t *)out)[i] = (int32_t)v;
        else
            ((int64_t *)out)[i] = (int64_t)v;
    }
}

cot_status cot_tokens_read(const cot_tokens *t, int64_t from, int64_t n, int64_t *out) {
    if (cot_tokens_status(t)) return cot_tokens_status(t);
    if (from < 0 || n < 0 || from > cot_tokens_count(t) || n > cot_tokens_count(t) - from || (n && !out))
        return COT_VALUE;
    cot__tokens_copy(t, from, n, out, COT_I64);
    return COT_OK;
}
