/* bytes.h: what our files are made of: numbers as bytes, the same on every machine, and a checksum
 * of all bytes before it.
 *
 * What the folder does: it turns numbers into bytes and back (here), and puts a file in its place
 * as a whole or not at all (replace.h).
 *
 * The least significant byte of a number comes first.
 *
 * May call: libc, base. Must not touch: what a file means; operations, tapes. */
#ifndef COT_BYTES_H
#define COT_BYTES_H

#include "base/base.h"

static inline void cot__to_bytes(unsigned char *to, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(v >> 8 * i);
}
static inline uint64_t cot__from_bytes(const unsigned char *from, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)from[i] << 8 * i;
    return v;
}

/* The sum with these bytes added (FNV, 64 bits); it begins with 0. Each step is a bijection of the
 * sum, and maps different bytes to different sums: so a file in which one byte is another never
 * has the same sum, and any other damage goes unseen once in 2^64. It is no signature: who wants
 * to deceive computes it again. */
static inline uint64_t cot__checksum(uint64_t sum, const void *bytes, size_t n) {
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++) sum = (sum ^ b[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Takes all of n bytes, or returns false. */
typedef bool cot__write_bytes(void *to, const void *bytes, size_t n);

/* Where the bytes of a file go, one number after the other. */
typedef struct cot__sink {
    cot__write_bytes *write; /* NULL: they are only counted */
    void             *to;
    uint64_t          count; /* bytes so far */
    uint64_t          sum;   /* of these, unless they are only counted */
    bool              failed;
    uint32_t          waiting; /* bytes in `room`, which are not written yet */
    unsigned char     room[1000];
} cot__sink;

void cot__sink_put(cot__sink *s, const void *bytes, size_t n);
void cot__sink_number(cot__sink *s, uint64_t v, int bytes);
/* Writes what waits. False: not all bytes were taken. */
bool cot__sink_end(cot__sink *s);

/* A cot__write_bytes to a FILE. */
bool cot__write_to_file(void *file, const void *bytes, size_t n);

#endif
